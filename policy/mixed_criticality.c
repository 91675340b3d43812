/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * mixed-criticality: fixed priorities for critical children and others. Each child usually needs at most `work` in each of its
 * periods; a critical one may need more, up to `work_hi`. As long as none does, all run by priority. As soon as one does, the node
 * is in critical mode: children that are not critical get only the time that the critical ones leave.
 *
 * Example: `video` has priority 2, work 3 ms and period 7 ms; `brake` is critical and has priority 1, work 2 ms, period 10 ms and
 * work_hi 5 ms. Both wake up at 0. `video` runs until 3, `brake` until 5 and is not done: critical mode. At 7 `video` wakes up again,
 * and waits. At 8 `brake` is done: the mode ends, and `video` runs in the time that is left. At 10 `brake` wakes up and goes first,
 * until 12, then `video` until 13. At 14 a period of `video` begins that is after the mode: it goes before `brake` again.
 *
 * Rules
 *   1. Of two children the one of larger priority runs, of equal ones the one that was requested first. A child that lost the CPU
 *      without blocking keeps its place.
 *   2. A period of a child begins when the child is requested and the last one is over; while the child does not block, periods follow
 *      each other. In each it may run for `work`, a critical one in critical mode for `work_hi`. Who has used that up is behind until
 *      its period is over.
 *   3. A critical child that has used more than `work` begins critical mode, unless its `work` is its `work_hi`.
 *   4. In critical mode all children that are not critical are behind, each until the first end of a period of its own after the mode.
 *   5. Who is behind runs only while nobody else wants the CPU; among themselves they have the order of rule 1.
 *   6. Critical mode ends as soon as no critical child that is not behind wants the CPU.
 * Gives up: deadlines of children that are not critical, in critical mode and until a period of their own has begun after it.
 * Conservation: not counting what it runs while it is behind, a child gets at most `work` (a critical one `work_hi`) in a period,
 * and the lateness of one entry.
 * Source: adaptive mixed criticality (AMC): Baruah, Burns & Davis, RTSS 2011, section III; the budget of every period is that of a
 * deferrable server, so that jobs which block in between keep their promise, and it bounds what those of others can do.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_mixed_criticality(P, V) \
	P(14, mixed_criticality, "mixed-criticality", 0, , \
	  V("priority", COUNT, 0, 65535, 0, "larger runs first; equals run first come, first served") \
	  V("work", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "CPU time that it usually needs at most in a period") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "least time between the begins of its periods") \
	  V("work_hi", TIME, 0, TIERCE_PERIOD_MAX, 0, "of a critical child: what it needs at the worst; 0: it is not critical"))

struct mixed_criticality_edge {
	u64 turn;     /* priority, and position in the order of requests */
	u64 begin_ns; /* of its period; TIERCE_NEVER: there was none */
	u64 used_ns;  /* in it */
	u32 epoch;    /* of the node, when it began */
	u32 heap;     /* in which it waits, enum mixed_heap */
	u32 used_up;  /* behind until its period is over */
	u32 counted;  /* among the node's critical children that want the CPU and are not behind */
};

#else
#include "check.h"

enum { MIXED_PRIORITY, MIXED_WORK, MIXED_PERIOD, MIXED_WORK_HI }; /* edge parameters */

/* READY edges but the first of all, which is alone in the node's order. By turn, so that two heaps become one at no cost. */
enum mixed_heap { MIXED_CRITICAL, MIXED_USUAL, MIXED_BEHIND };

static inline bool mixed_is_critical(const edge_t *x)
{
	return x->param[MIXED_WORK_HI] != 0;
}

static inline bool mixed_is_behind(u32 edge)
{
	edge_t *x = edge_at(edge);
	return x->mixed.used_up || (!mixed_is_critical(x) && x->mixed.epoch != parent_of(edge)->mixed.epoch);
}

/* What it may run in a period before it is behind. */
static inline u64 mixed_most(const edge_t *x)
{
	return mixed_is_critical(x) ? x->param[MIXED_WORK_HI] : x->param[MIXED_WORK];
}

/* More than its work begins critical mode. */
static inline bool mixed_may_begin(u32 edge)
{
	return mixed_is_critical(edge_at(edge)) && !parent_of(edge)->mixed.critical;
}

static inline u64 mixed_turn(const edge_t *x, u64 turn)
{
	return (65535 - x->param[MIXED_PRIORITY]) << TURN_BITS | (turn & TURN_MASK);
}

static inline u64 mixed_end(const edge_t *x)
{
	return x->mixed.begin_ns + x->param[MIXED_PERIOD];
}

/* ---- who waits --------------------------------------------------------------------------------------------------- */

static inline bool mixed_earlier(u32 a, u32 b)
{
	bool behind = mixed_is_behind(a);
	if (behind != mixed_is_behind(b))
		return !behind;
	return edge_at(a)->mixed.turn < edge_at(b)->mixed.turn;
}

/* Beside the order. */
static inline void mixed_put(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u32 heap = mixed_is_behind(edge) ? MIXED_BEHIND : mixed_is_critical(x) ? MIXED_CRITICAL : MIXED_USUAL;
	x->mixed.heap = heap;
	AT(n->mixed.waiting, heap) = heap_put(AT(n->mixed.waiting, heap), edge, x->mixed.turn, TIERCE_ORDER);
}

/* Alone in the order. */
static inline void mixed_is_first(node_t *n, u32 edge)
{
	n->order = heap_put(0, edge, edge_at(edge)->mixed.turn, TIERCE_ORDER);
}

/* A child waits. */
TIERCE_FN int mixed_wait(u32 edge)
{
	node_t *n = parent_of(edge);
	u32 first = n->order;
	if (!first || mixed_earlier(edge, first)) {
		mixed_is_first(n, edge);
		edge = first;
	}
	if (edge)
		mixed_put(edge);
	return 0;
}

/* The first of all is in the order if anybody waits. */
TIERCE_FN int mixed_fill(u32 node)
{
	node_t *n = node_at(node);
	u32 first = n->mixed.waiting[MIXED_CRITICAL], usual = n->mixed.waiting[MIXED_USUAL], heap = MIXED_CRITICAL;
	if (n->order)
		return 0;
	if (!first || (usual && edge_at(usual)->mixed.turn < edge_at(first)->mixed.turn)) {
		first = usual;
		heap = MIXED_USUAL;
	}
	if (!first) {
		first = n->mixed.waiting[MIXED_BEHIND];
		heap = MIXED_BEHIND;
	}
	if (!first)
		return 0;
	AT(n->mixed.waiting, heap) = heap_take(first, first, TIERCE_ORDER);
	mixed_is_first(n, first);
	return 0;
}

/* It waits no longer: mixed_fill is next. */
TIERCE_FN int mixed_unlink(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u32 heap = x->mixed.heap;
	if (!order_link(edge)->rank)
		return 0;
	if (n->order == edge) {
		order_link(edge)->rank = 0;
		n->order = 0;
		return 0;
	}
	if (mixed_is_behind(edge)) /* perhaps only since critical mode began */
		heap = MIXED_BEHIND;
	AT(n->mixed.waiting, heap) = heap_take(AT(n->mixed.waiting, heap), edge, TIERCE_ORDER);
	return 0;
}

/* ---- critical mode ----------------------------------------------------------------------------------------------- */

/* The child that runs begins it: mixed_fill is next. */
TIERCE_FN int mixed_begins(u32 edge, u64 now)
{
	node_t *n = parent_of(edge);
	u32 first = n->order;
	n->mixed.critical = 1;
	n->mixed.epoch++;
	n->mixed.waiting[MIXED_BEHIND] =
	    heap_merge(n->mixed.waiting[MIXED_BEHIND], n->mixed.waiting[MIXED_USUAL], TIERCE_ORDER);
	n->mixed.waiting[MIXED_USUAL] = 0;
	port_trace(TIERCE_EV_mode, edge_at(edge)->on_cpu, edge_at(edge)->parent, 1, edge, now);
	if (first && mixed_is_behind(first)) {
		n->order = 0;
		mixed_put(first);
	}
	return 0;
}

/* It wants the CPU, and is critical and not behind. */
static inline void mixed_count(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (!mixed_is_critical(x) || x->mixed.used_up || x->mixed.counted)
		return;
	x->mixed.counted = 1;
	parent_of(edge)->mixed.urgent++;
}

/* No longer: with the last one critical mode ends. */
TIERCE_FN int mixed_uncount(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	if (!x->mixed.counted)
		return 0;
	x->mixed.counted = 0;
	if (--n->mixed.urgent || !n->mixed.critical)
		return 0;
	n->mixed.critical = 0;
	port_trace(TIERCE_EV_mode, x->on_cpu < TIERCE_CPUS ? x->on_cpu : 0, x->parent, 0, edge, now);
	return 0;
}

/* ---- periods ----------------------------------------------------------------------------------------------------- */

static inline bool mixed_is_over(const edge_t *x, u64 now)
{
	return x->mixed.begin_ns == TIERCE_NEVER || now >= mixed_end(x);
}

/* In critical mode the period of a child that is not critical is one of before: it is behind. */
static inline void mixed_period(u32 edge, u64 begin_ns)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	x->mixed.begin_ns = begin_ns;
	x->mixed.used_ns = 0;
	x->mixed.used_up = 0;
	x->mixed.epoch = n->mixed.epoch - n->mixed.critical;
}

TIERCE_FN int mixed_criticality_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 work_ns = AT(S.stage, MIXED_WORK), period_ns = AT(S.stage, MIXED_PERIOD), work_hi_ns = AT(S.stage, MIXED_WORK_HI);
	if (work_ns > period_ns || work_hi_ns > period_ns)
		return TIERCE_E_budget_beyond_period;
	if (work_hi_ns && work_hi_ns < work_ns)
		return TIERCE_E_work_hi_below_work;
	if (!work_hi_ns)
		mixed_uncount(edge, now);
	x->param[MIXED_PRIORITY] = AT(S.stage, MIXED_PRIORITY);
	x->param[MIXED_WORK] = work_ns;
	x->param[MIXED_PERIOD] = period_ns;
	x->param[MIXED_WORK_HI] = work_hi_ns;
	x->mixed.turn = mixed_turn(x, x->mixed.turn);
	if (x->state == TIERCE_GRANTED) { /* one that waits has left, and will come back */
		event_set(edge, mixed_end(x));
		mixed_count(edge);
	}
	return TIERCE_OK;
}

TIERCE_FN int mixed_criticality_attach(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	if (parent_of(edge)->row)
		return TIERCE_E_several_cpus_in_order;
	x->mixed.turn = 0;
	x->mixed.counted = 0;
	mixed_period(edge, TIERCE_NEVER);
	return mixed_criticality_set(edge, now);
}

static inline void mixed_criticality_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED)
		x->mixed.turn = mixed_turn(x, ++parent_of(edge)->clock);
	if (mixed_is_over(x, now))
		mixed_period(edge, now);
	event_set(edge, mixed_end(x));
	mixed_count(edge);
	mixed_wait(edge);
}

/* It wants no more. Calls in a row rather than in each other: a verifier counts frames. */
static inline void mixed_leave(u32 edge, u64 now)
{
	event_clear(edge);
	mixed_unlink(edge);
	mixed_uncount(edge, now);
	mixed_fill(edge_at(edge)->parent);
}

static inline void mixed_criticality_release(u32 edge, u32 why, u64 now)
{
	mixed_leave(edge, now);
}

static inline void mixed_criticality_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		mixed_wait(edge);
	else
		mixed_leave(edge, now);
}

static inline void mixed_criticality_grant(u32 edge, u64 now)
{
	mixed_fill(edge_at(edge)->parent);
}

static inline bool mixed_criticality_before(u32 a, u32 b, u64 now)
{
	return mixed_earlier(a, b);
}

static inline u32 mixed_criticality_pick(u32 node, u32 first, u32 running, u64 now)
{
	return mixed_earlier(first, running) ? first : running;
}

/* What it has run since its period is over counts for none. */
static inline bool mixed_criticality_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 end_ns = mixed_end(x), late_ns = now > end_ns ? now - end_ns : 0;
	if (ran_ns > late_ns)
		x->mixed.used_ns += ran_ns - late_ns;
	if (x->mixed.used_up)
		return false;
	if (x->mixed.used_ns >= mixed_most(x)) {
		x->mixed.used_up = 1;
		mixed_uncount(edge, now);
	} else if (x->mixed.used_ns > x->param[MIXED_WORK] && mixed_may_begin(edge)) {
		mixed_begins(edge, now);
		mixed_fill(x->parent);
	}
	return false;
}

/* Critical mode begins 1 ns beyond the work: who needs exactly so much is done by then. */
static inline u64 mixed_criticality_until(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 limit_ns = mixed_most(x);
	if (mixed_is_behind(edge))
		return TIERCE_NEVER;
	if (x->param[MIXED_WORK] < limit_ns && mixed_may_begin(edge))
		limit_ns = x->param[MIXED_WORK] + 1;
	return now + (x->mixed.used_ns < limit_ns ? limit_ns - x->mixed.used_ns : 1);
}

/* Its period is over: the next one begins if it wants the CPU. */
static inline void mixed_criticality_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 waits = order_link(edge)->rank;
	if (x->state == TIERCE_WAITING || !mixed_is_over(x, now))
		return;
	if (waits) {
		mixed_unlink(edge);
		mixed_fill(x->parent);
	}
	mixed_period(edge, now - (now - x->mixed.begin_ns) % x->param[MIXED_PERIOD]);
	event_set(edge, mixed_end(x));
	mixed_count(edge);
	if (waits)
		mixed_wait(edge);
}

TIERCE_FN int mixed_criticality_detach(u32 edge)
{
	event_clear(edge);
	return 0;
}

static inline u32 mixed_criticality_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	bool wants = x->state != TIERCE_WAITING;
	HOLDS(periods_kept, event_is_set(edge) == wants);
	HOLDS(periods_kept, !wants || x->mixed.begin_ns != TIERCE_NEVER);
	HOLDS(criticals_counted, x->mixed.counted == (wants && mixed_is_critical(x) && !x->mixed.used_up));
	return TIERCE_HOLDS;
}

static inline u32 mixed_criticality_check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, urgent = 0, i;
	for (edge = 1; edge < S.fresh_edge; edge++) {
		if (!is_child_of(edge, node))
			continue;
		urgent += edge_at(edge)->mixed.counted;
		HOLDS(mixed_order, edge_at(edge)->state != TIERCE_READY || edge == n->order || !mixed_earlier(edge, n->order));
	}
	HOLDS(criticals_counted, urgent == n->mixed.urgent && (urgent || !n->mixed.critical));
	for (i = 0; i < 3; i++)
		HOLDS(mixed_order, n->order || !n->mixed.waiting[i]);
	HOLDS(mixed_order, !n->order || order_is_alone(n->order));
	return TIERCE_HOLDS;
}

#define mixed_criticality_init	   nothing_init
#define mixed_criticality_first	   nothing_first
#define mixed_criticality_lose	   nothing_lose
#define mixed_criticality_announce nothing_announce
#define mixed_criticality_deadline nothing_deadline
#define mixed_criticality_depart   nothing_depart
#define mixed_criticality_arrive   nothing_arrive
#define mixed_criticality_ahead	   nothing_ahead
#define mixed_criticality_clock	   nothing_clock
#define mixed_criticality_tell	   nothing_tell

#endif
