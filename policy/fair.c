/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fair: start-time fair queueing (SFQ). Each child has a start tag in virtual time, which running advances by time /
 * weight; the smallest tag minus warp is served next, a quantum at a time.
 *
 * Example, quantum 3 ms, weights 100 and 200: a runs 3 ms (tag 0 -> 3/100), b runs 3 ms (0 -> 3/200) and, being behind,
 * another 3 (-> 6/200 = a's tag): b gets two thirds. c wakes when a and b stand near tag 5: its tag is lifted to the
 * smaller of theirs: with the preset credit of 0 it keeps nothing of the time that it slept. With warp it is ordered as if it stood further behind by that much.
 *
 * Virtual time is in 2^-10 ns per unit of weight, charged exactly: low bits are carried in `fraction`, and 2^32/weight
 * is off by less than 2.4e-6. At weight 1 it wraps after 195 days of CPU time.
 *
 * Rules
 *   1. The least (tag - warp) is picked, ties to the lower edge id, once the running child's quantum is used.
 *   2. Within its quantum the running child is replaced only by one with warp whose (tag - warp) is smaller than the running
 *      child's was when the quantum began.
 *   3. A waking child's tag is lifted to the node's virtual time, which is the smallest tag of those that want the CPU and
 *      never falls; when nobody wants it, it is the largest tag ever reached. On several CPUs tags are looked at as if all
 *      that run were charged at that moment, and who may run on some of them only does not hold it back while it waits.
 *   4. A child that lost the CPU without blocking keeps its tag and the rest of its quantum. Quanta of a child alone
 *      follow each other without a gap: a newcomer waits for the rest of the one under way.
 *   5. With order = "eevdf" virtual time advances by time / the weight of all children that count, and a child is eligible
 *      when its tag is not beyond it. The eligible child whose quantum has the earliest virtual deadline, tag +
 *      quantum/weight, is picked, ties to the lower edge id, and keeps the CPU for its quantum. If nobody is eligible, the
 *      least tag is, and virtual time moves on to it.
 *   6. eevdf: who wants the CPU counts. One that sleeps ahead of its share goes on to count until virtual time has reached
 *      its tag; one that sleeps behind gives up what it was owed. A new weight keeps what a child is owed, in CPU time.
 *   7. With order = "stride" the least tag (pass) is picked once the running child's quantum is used, ties to the lower edge
 *      id. Virtual time (the global pass) advances by time / the weight of those that want the CPU.
 *   8. stride: a child that stops wanting the CPU keeps what its tag is beyond virtual time or behind it, up to a quantum of
 *      its own CPU time either way, and comes back as far from it; a new one begins a quantum beyond. What it gives up moves
 *      virtual time on, so that the others are not ahead by it. A new weight keeps what it is away from it, in CPU time.
 *   9. With order = "lottery" one of those that want the CPU is drawn when it is to be given to one of them anew: when the
 *      running child's quantum is used or it stops wanting. Each has a chance proportional to its weight. The drawings are
 *      those of a generator and the node's seed: the same seed and the same history bring the same.
 *   10. lottery: a child that stops wanting the CPU within its quantum and comes back has a chance as if its weight were
 *      larger by quantum / what it used of it, until its next quantum begins or it leaves again.
 *   11. A child with a warp limit that has run for as long since its warp began is without it from then on: its quantum ends,
 *      and it is ordered by its tag alone. A warp begins when the child wakes and when the warp comes back; a new limit counts
 *      anew. Of a child alone the end is found when another comes.
 *   12. The warp comes back when the time `unwarp` has passed since, whether or not the child slept or ran meanwhile; where
 *      that is 0, when it wakes next.
 *   13. With order = "surplus", where several CPUs run children at a time, a child's weight counts for one CPU at most: who has
 *      more than a CPU's part of all weights counts as if it had what is left of them for each of the CPUs that are left.
 *   14. surplus: once the running child's quantum is used, the one with the least surplus is picked, of it and the 16 with the
 *      least tags that wait: of what it has had beyond virtual time, weight * (tag - virtual time), the weight as far as it
 *      counts. Ties as in rule 1, which on one CPU says the same.
 *   15. With a credit, a waking child's tag is lifted only to virtual time minus the credit (in its own CPU time): it is owed
 *      what it did not use while it slept, up to that. While it is owed the last 32nd of the credit it is served before the others,
 *      also within their quanta, but not within that of one that is owed it, too. A child that comes for the first time has no
 *      credit, nor has one with a warp a claim to be first. A child of a spread node that is owed at least half of its
 *      credit and goes to another CPU is owed as much there. By start tags only.
 *   16. With a credit, a child that wakes behind the running one (tag - warp) replaces it, also within its quantum, if nobody else
 *      waits. Where one CPU runs the children.
 * Gives up: latency without warp or credit, up to (n - 1) quanta; warp takes from the others what it gains, bounded by its length, and who
 * sleeps again and again before its limit keeps it. Orders other than start-tag: warp. Orders eevdf, stride, lottery: nodes that
 * several CPUs reach.
 * Conservation: supply = sum of tag advances * weight, to 2^-10 ns per charge; between two children that both want the
 * CPU throughout, |supply_a/weight_a - supply_b/weight_b| <= quantum/weight_a + quantum/weight_b (Goyal et al. 1996). eevdf:
 * lag = (virtual time - tag) * weight stays within a quantum on either side, whoever comes and goes. stride: the same bound
 * between two children as start tags. lottery: of n drawings among the same children one of them wins n * its part of the
 * weights on the average, with the variance of the binomial distribution.
 * Source: Goyal, Guo, Vin 1996; warp from Duda & Cheriton 1999 (BVT); rule 13 from Chandra, Adler, Goyal & Shenoy 2000 (SFS);
 * eevdf from Stoica & Abdel-Wahab 1996; stride and lottery from Waldspurger & Weihl 1995 and 1994; HLS appendix C with its
 * repairs: remainders kept, virtual time does not restart, no division by a share of 0.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_fair(P, V) \
	P(5, fair, "fair", TIERCE_SPREADS, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "a child keeps the CPU this long before another is chosen") \
	  V("order", CHOICE, 0, 4, 0, "start-tag, eevdf, stride, lottery, surplus: which child is next") \
	  V("seed", COUNT, 0, 65535, 0, "seed of the random numbers of order lottery") \
	  V("credit", TIME, 0, TIERCE_PERIOD_MAX, 0, \
	    "lag that a sleeping child keeps, in its own CPU time; one that wakes up with at least 31/32 of it runs at once, for up to 1/32 of it"), \
	  V("weight", COUNT, 1, 10000, 100, "share of the node's time relative to its siblings") \
	  V("warp", TIME, 0, TIERCE_PERIOD_MAX, 0, "own CPU time by which the child may run ahead of its share after a wake-up") \
	  V("warp_limit", TIME, 0, 4000000000, 0, "own CPU time for which the child may run with its warp at a time; 0: no limit") \
	  V("unwarp", TIME, 0, TIERCE_PERIOD_MAX, 0, "time without its warp after the limit is used up; 0: until it wakes up next") \
	  TIERCE_PROMISED(V))

struct fair_edge {
	u64 tag; /* start tag: virtual time at which the rest of its work starts; stride: pass */
	union {
		u64 inverse; /* 2^32 / weight */
		u64 counted; /* not by start tags: its weight in the node's sum, 0: none */
	};
	u64 fraction;	/* low bits of the last charge, carried over */
	u64 lead;	/* warp in virtual time */
	u64 begin;	/* tag - warp when the quantum began; eevdf: its virtual deadline; moving: what it is owed */
	s64 quantum_ns; /* rest of the quantum; FAIR_WOKE */
};

#else
#include "check.h"

enum { FAIR_QUANTUM, FAIR_ORDER, FAIR_SEED, FAIR_CREDIT };     /* node parameters */
enum { FAIR_WEIGHT, FAIR_WARP, FAIR_WARP_LIMIT, FAIR_UNWARP }; /* edge parameters */
enum { FAIR_START_TAG, FAIR_EEVDF, FAIR_STRIDE, FAIR_LOTTERY, FAIR_SURPLUS };

#define FAIR_SHIFT 22		   /* 2^32/weight * ns >> 22: units of 2^-10 ns per weight */
#define FAIR_WORTH 16		   /* what a CPU is worth: units of 2^-16 */
#define FAIR_POINT 10		   /* virtual time is in units of 2^-10 ns per weight */
#define FAIR_BEGIN (1ull << 60)	   /* tags begin here, so that tag - warp stays positive */
#define FAIR_FIRST (1ull << 52)	   /* lead of a child that is served before the others: beyond what tags differ by */
#define FAIR_FIRST_PART 32	   /* a child is served first while it is owed the last of so many parts of the credit */
#define FAIR_WOKE (-1)		   /* in place of a quantum: it woke behind the others, and has not run since */
#define FAIR_FIRST_MOST 4000000000u /* ns for which it is served first at most */

#include "fair/eevdf.c"
#include "fair/weights.c"
#include "fair/warp.c"

TIERCE_FN int fair_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 order = parent_of(edge)->param[FAIR_ORDER], was = x->param[FAIR_WEIGHT];
	if (order != FAIR_START_TAG && AT(S.stage, FAIR_WARP))
		return TIERCE_E_warp_needs_start_tags;
	if (!AT(S.stage, FAIR_WARP) && AT(S.stage, FAIR_WARP_LIMIT))
		return TIERCE_E_limit_needs_warp;
	if (!AT(S.stage, FAIR_WARP_LIMIT) && AT(S.stage, FAIR_UNWARP))
		return TIERCE_E_unwarp_needs_limit;
	if (share_promise_is_wrong())
		return TIERCE_E_promise_beyond_its_period;
	share_promise_set(x, now);
	x->param[FAIR_WEIGHT] = AT(S.stage, FAIR_WEIGHT);
	x->param[FAIR_WARP] = AT(S.stage, FAIR_WARP);
	if (is_by_clock(parent_of(edge))) {
		if (x->fair.counted || order == FAIR_STRIDE)
			eevdf_weigh(edge, was, x->param[FAIR_WEIGHT]);
		return TIERCE_OK;
	}
	if (x->state == TIERCE_GRANTED)
		fair_counts(x->parent, x->param[FAIR_WEIGHT] - was);
	fair_credit_ends(x);
	x->fair.inverse = (1ull << 32) / x->param[FAIR_WEIGHT];
	fair_limit_set(edge, AT(S.stage, FAIR_WARP_LIMIT), AT(S.stage, FAIR_UNWARP));
	fair_warp(x);
	return TIERCE_OK;
}

TIERCE_FN int fair_attach(u32 edge, u64 now)
{
	u64 order = parent_of(edge)->param[FAIR_ORDER];
	int error;
	if (is_by_clock(parent_of(edge)) && is_shared(parent_of(edge)->domain))
		return TIERCE_E_several_cpus_in_order;
	edge_at(edge)->fair.tag = 0;
	edge_at(edge)->fair.inverse = 0;
	edge_at(edge)->fair.fraction = 0;
	edge_at(edge)->fair.quantum_ns = 0;
	error = fair_set(edge, now);
	if (order == FAIR_STRIDE && !error)
		stride_new(edge);
	return error;
}

TIERCE_FN int fair_detach(u32 edge)
{
	if (is_by_clock(parent_of(edge))) {
		eevdf_unlink(edge);
		eevdf_uncount(edge);
	}
	event_clear(edge);
	return 0;
}

#include "fair/clock.c"

static inline void fair_quantum_begin(u32 edge)
{
	edge_t *x = edge_at(edge);
	u64 limit = x->variant - 1ull, quantum = node_at(parent_held(x))->param[FAIR_QUANTUM];
	x->fair.quantum_ns = (s64)(limit < quantum ? limit + 1 : quantum);
	x->fair.begin = fair_key(edge);
}

/* Is somebody who may run on its CPU before the running child? */
TIERCE_FN int fair_is_behind(u32 edge)
{
	u32 node = edge_at(edge)->parent, row = node_at(node)->row, first = node_at(node)->order;
	u32 local = row ? ROW(row, order, edge_at(edge)->on_cpu) : TIERCE_NONE;
	if (fair_is_surplus(node_at(node)))
		return true; /* or the last charge would have begun its quantum */
	return (first && fair_earlier(first, edge)) || (local && fair_earlier(local, edge));
}

/* It has run for that long: if with its warp, that ends with the limit. */
TIERCE_FN int fair_limit(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (!x->variant)
		return 0;
	if (ran_ns < x->variant) {
		x->variant -= (u32)ran_ns;
		if (x->fair.quantum_ns <= 0 && !fair_is_behind(edge))
			fair_quantum_begin(edge);
		fair_quantum_fits(x);
		return 0;
	}
	x->variant = 0;
	fair_lead(x, 0);
	if (x->param[FAIR_UNWARP])
		event_set(edge, now + x->param[FAIR_UNWARP]);
	return 0;
}

/* A child alone has used its quantum: the rest of the one that is under way. */
static inline void fair_quantum_next(edge_t *x, u64 tag, u64 inverse, u64 quantum_ns, u64 ran_ns)
{
	u64 rest = quantum_rest(quantum_ns, x->fair.quantum_ns, ran_ns);
	x->fair.quantum_ns = (s64)rest;
	x->fair.begin = tag - x->fair.lead - fair_virtual(inverse, quantum_ns - rest, 0, false);
}

/* Another child comes while one runs that has done so for `ran_ns` since it was charged: all is as if it were charged now. */
static inline void fair_meets(node_t *node, u32 running, u64 ran_ns)
{
	edge_t *x = edge_at(running);
	u64 tag = fair_tag(running, x->fair.inverse, ran_ns);
	node->clock = fair_clock_with(node, tag);
	if (!ran_ns)
		return;
	if (!x->fair.quantum_ns && !fair_is_behind(running))
		fair_quantum_begin(running);
	if (x->fair.quantum_ns <= (s64)ran_ns && !node_contended(x->parent)) {
		fair_quantum_next(x, tag, x->fair.inverse, node->param[FAIR_QUANTUM], ran_ns);
		x->fair.quantum_ns += (s64)ran_ns; /* which the charge takes off */
	}
}

/* Virtual time of the parent, before the child comes. */
static inline void fair_clock_comes(const edge_t *x, u64 now)
{
	node_t *n = node_at(parent_held(x));
	if (fair_is_several(n)) {
		n->clock = fair_clock_now(x->parent, now);
	} else if (n->running) {
		fair_meets(n, n->running, uncharged_ns(n, now));
	} else if (!n->servable) {
		if (n->clock < n->tail)
			n->clock = n->tail;
		n->clock = family_clock(n, n->clock, now);
	}
}

/* Rule 15: the child wakes behind virtual time. */
static inline void fair_credit(u32 edge, u64 credit_ns)
{
	edge_t *x = edge_at(edge);
	u64 clock = parent_of(edge)->clock, lag = clock - x->fair.tag, most, owed_ns;
	most = fair_virtual(x->fair.inverse, credit_ns, 0, false);
	if (lag > most)
		lag = most;
	x->fair.tag = clock - lag;
	if (!fair_is_several(parent_of(edge)))
		x->fair.quantum_ns = FAIR_WOKE;
	owed_ns = lag * x->param[FAIR_WEIGHT] >> FAIR_POINT;
	credit_ns -= credit_ns / FAIR_FIRST_PART;
	if (x->param[FAIR_WARP] || owed_ns <= credit_ns)
		return;
	owed_ns -= credit_ns;
	x->flags |= EDGE_VARIANT;
	x->variant = owed_ns < FAIR_FIRST_MOST ? (u32)owed_ns : FAIR_FIRST_MOST;
	fair_lead(x, FAIR_FIRST);
}

/* The child begins to want the CPU. */
TIERCE_FN int fair_comes(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	share_promise_begins(x, now);
	fair_credit_ends(x);
	x->fair.quantum_ns = 0;
	if (x->fair.tag < node->clock && why != TIERCE_MOVED) {
		if (node->param[FAIR_CREDIT] && node->param[FAIR_ORDER] == FAIR_START_TAG && x->fair.tag && why == TIERCE_WOKE)
			fair_credit(edge, node->param[FAIR_CREDIT]);
		else
			x->fair.tag = node->clock;
	}
	if (x->param[FAIR_WARP_LIMIT])
		fair_warp_begins(edge);
	return 0;
}

static inline void fair_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(parent_held(x));
	if (is_by_clock(node)) {
		if ((x->flags & EDGE_PROMISED) && why != TIERCE_RESTORED)
			share_promise_begins(x, now);
		eevdf_request(edge, why, now);
		return;
	}
	if (why != TIERCE_RESTORED) {
		fair_clock_comes(x, now);
		if ((x->flags & (EDGE_VARIANT | EDGE_PROMISED)) || x->param[FAIR_WARP_LIMIT] || node->param[FAIR_CREDIT] ||
		    why == TIERCE_MOVED) {
			fair_comes(edge, why, now);
		} else { /* the same without credit, warp and promise */
			if (x->fair.tag < node->clock)
				x->fair.tag = node->clock;
			x->fair.quantum_ns = 0;
		}
	}
	fair_counts(parent_held(x), x->param[FAIR_WEIGHT]);
	order_insert(edge, fair_key(edge));
}

static inline void fair_release(u32 edge, u32 why, u64 now)
{
	if (is_by_clock(parent_of(edge))) {
		eevdf_leave(edge, why);
		return;
	}
	fair_counts(edge_at(edge)->parent, -edge_at(edge)->param[FAIR_WEIGHT]);
	order_remove(edge);
}

static inline bool fair_before(u32 a, u32 b, u64 now)
{
	return fair_earlier(a, b);
}

/* Rule 16: it woke, the running one has had more, and nobody else waits. */
static inline bool fair_is_alone_behind(u32 first, u32 running)
{
	return edge_at(first)->fair.quantum_ns == FAIR_WOKE && order_is_alone(first) && fair_key(first) < fair_key(running);
}

/* Does a child replace the running one within the quantum of that one? Who is owed CPU time is soon done: it is not replaced by
 * another one that is, or those that wake each other would switch at each wake-up. */
static inline bool fair_preempts(u32 first, u32 running)
{
	if (fair_is_alone_behind(first, running))
		return true;
	return edge_at(first)->fair.lead && fair_key(first) < edge_at(running)->fair.begin &&
	       !(fair_is_owed(edge_at(first)) && fair_is_owed(edge_at(running)));
}

static inline u32 fair_pick(u32 node, u32 first, u32 running, u64 now)
{
	if (edge_at(running)->fair.quantum_ns > 0)
		return fair_preempts(first, running) ? first : running;
	if (is_by_clock(node_at(node)))
		return eevdf_pick(node, first, running);
	if (fair_is_surplus(node_at(node)))
		return first; /* or the charge would have begun its next quantum */
	return fair_earlier(first, running) ? first : running;
}

static inline void fair_grant(u32 edge, u64 now)
{
	if (is_by_clock(parent_of(edge)))
		eevdf_grant(edge);
	else if (edge_at(edge)->fair.quantum_ns <= 0)
		fair_quantum_begin(edge);
}

static inline void fair_revoke(u32 edge, u32 why, u64 now)
{
	if (is_by_clock(parent_of(edge)))
		eevdf_leave(edge, why);
	else if (why == TIERCE_OUTRANKED)
		order_insert(edge, fair_key(edge));
	else
		fair_counts(edge_at(edge)->parent, -edge_at(edge)->param[FAIR_WEIGHT]);
}

/* A child whose quantum is used and who is not behind begins the next one. One that is behind goes on for as long as the
 * CPU needs to decide anew. */
static inline void fair_advance(u32 edge, u64 inverse, u64 ran_ns, bool several)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(parent_held(x));
	u64 tag;

	if (!x->fair.quantum_ns && !fair_is_behind(edge))
		fair_quantum_begin(edge);
	tag = fair_tag(edge, inverse, ran_ns);
	x->fair.tag = tag;
	x->fair.fraction = fair_virtual(inverse, ran_ns, x->fair.fraction, true);
	if (tag > node->tail)
		node->tail = tag;
	if (!several)
		node->clock = fair_clock_with(node, tag);

	if (x->fair.quantum_ns > (s64)ran_ns)
		x->fair.quantum_ns -= (s64)ran_ns;
	else if (node_contended(x->parent))
		x->fair.quantum_ns = 0;
	else
		fair_quantum_next(x, tag, inverse, node->param[FAIR_QUANTUM], ran_ns);
}
/* The same where several CPUs run children, as a call. */
TIERCE_FN int fair_advance_several(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 first;
	u64 clock;
	if (!fair_is_surplus(node_at(x->parent))) {
		fair_advance(edge, x->fair.inverse, ran_ns, true);
		return 0;
	}
	fair_appraise(x->parent);
	fair_advance(edge, fair_inverse(edge), ran_ns, true);
	if (x->fair.quantum_ns > 0)
		return 0;
	clock = fair_clock_now(x->parent, now);
	first = fair_choose(x->parent, x->on_cpu, clock);
	if (!first || fair_has_less(edge, first, clock))
		fair_quantum_begin(edge);
	return 0;
}

static inline bool fair_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(parent_held(x));

	if (is_by_clock(node)) {
		eevdf_charge(edge, ran_ns);
		if (x->flags & EDGE_PROMISED)
			share_promise_charge(edge, ran_ns, now);
		return false;
	}
	if (fair_is_several(node))
		fair_advance_several(edge, ran_ns, now);
	else
		fair_advance(edge, x->fair.inverse, ran_ns, false);
	if (x->flags & (EDGE_VARIANT | EDGE_PROMISED)) {
		if (x->flags & EDGE_VARIANT)
			fair_limit(edge, ran_ns, now);
		share_promise_charge(edge, ran_ns, now);
	}
	return false;
}

static inline u64 fair_until(u32 edge, u64 now)
{
	s64 rest = edge_at(edge)->fair.quantum_ns;
	if (!node_contended(parent_held(edge_at(edge))))
		return TIERCE_NEVER;
	return now + (rest > 0 ? (u64)rest : node_at(parent_held(edge_at(edge)))->param[FAIR_QUANTUM]);
}

/* It may be warped again. */
TIERCE_FN int fair_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	bool waits = x->state == TIERCE_READY;
	if (waits)
		order_remove(edge);
	fair_warp_begins(edge);
	if (waits)
		order_insert(edge, fair_key(edge));
	return 0;
}

#include "fair/spread.c"

#define fair_lose nothing_lose
#define fair_announce nothing_announce
#define fair_deadline nothing_deadline
#define fair_tell nothing_tell

static inline u32 fair_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	if (is_by_clock(parent_of(edge)))
		return TIERCE_HOLDS;
	if (fair_is_owed(x)) {
		HOLDS(warp_kept, !event_is_set(edge) && !x->param[FAIR_WARP] && x->fair.lead == (x->variant ? FAIR_FIRST : 0));
		return TIERCE_HOLDS;
	}
	HOLDS(warp_kept, !(x->flags & EDGE_VARIANT) == !x->param[FAIR_WARP_LIMIT] && x->variant <= x->param[FAIR_WARP_LIMIT]);
	if (fair_is_unwarped(x))
		HOLDS(warp_kept, !x->fair.lead);
	else
		HOLDS(warp_kept,
		      !event_is_set(edge) && x->fair.lead == fair_virtual(x->fair.inverse, x->param[FAIR_WARP], 0, false));
	return TIERCE_HOLDS;
}

/* It sleeps ahead of its share. */
static inline bool edge_is_ahead(u32 edge)
{
	edge_t *x = edge_at(edge);
	return x->kind == TIERCE_fair && x->state == TIERCE_WAITING && x->fair.counted &&
	       parent_of(edge)->param[FAIR_ORDER] == FAIR_EEVDF;
}

static inline u32 fair_check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, order = n->order, later = heap_count(n->share.later, TIERCE_ORDER),
		  ahead = heap_count(n->share.ahead, TIERCE_ORDER);
	bool by_tags = !is_by_clock(n);
	u64 weight = 0;
	for (edge = 1; edge < S.fresh_edge; edge++) {
		edge_t *x = edge_at(edge);
		if (!is_child_of(edge, node))
			continue;
		if (by_tags) {
			weight += fair_is_surplus(n) && x->state != TIERCE_WAITING ? x->param[FAIR_WEIGHT] : 0;
			continue;
		}
		weight += x->fair.counted;
		HOLDS(shares_counted,
		      x->fair.counted == (x->state != TIERCE_WAITING || order_link(edge)->rank ? x->param[0] : 0));
		if (edge_is_ahead(edge))
			ahead--;
		else if (x->state == TIERCE_READY && order_link(edge)->rank && edge != order &&
			 !eevdf_is_eligible(edge, n->clock))
			later--;
	}
	HOLDS(shares_counted, weight == n->share.weight && (by_tags || !ahead));
	if (by_tags)
		return TIERCE_HOLDS;
	HOLDS(order_heap, n->order || !n->share.later);
	HOLDS(eligible, !later || (later <= TIERCE_EDGES && order && eevdf_is_eligible(order, n->clock)));
	return TIERCE_HOLDS;
}

#endif
