/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * uniform: every child has a uniformly slower processor of its own, a share of this one. Between any two deadlines that it
 * announces it gets that share of the time between them, as if it had the slower processor alone: what meets its deadlines
 * there meets them here.
 *
 * Example: share 0.5, a child that always wants the CPU. At 0 it announces the deadline 20: 10 ms are left until then. It
 * runs, and at 4 announces 10, which is nearer: 0.5 * (10 - 4) = 3 of the 6 ms left until 20. It runs, and at 6 is done with
 * that and announces 20 again, until which 4 are left. They are used up at 10: it is throttled until 20.
 *
 * Rules
 *   1. A child is served for the deadline that it announces (a task that of its job, a node the earliest of its children). If
 *      it announces none, or one that is over or more than 4 s ahead, its last one stays until it is over; then comes one
 *      that is a `period` of the node after that, or after now if it was asleep or that would be over, too.
 *   2. The earliest deadline is picked (EDF); equal deadlines: the lower edge id.
 *   3. A deadline d that is nearer than the one before has share * (d - now) left, or what is left until a later one that
 *      is kept, if that is less. A farther one has what was left until the nearer one and share * (d - nearer one). What
 *      it uses comes off what is left until all later ones, too.
 *   4. Going back to a deadline that is kept, a child finds what is left until that.
 *   5. A child that wakes loses the time in which it did not want the CPU: no deadline d has more than share * (d - now) left.
 *      So does one that was throttled until a deadline was over: others have not run instead.
 *   6. Until an own deadline for which nothing is left (or no more than the port's timer floor) the edge is SPENT: throttled
 *      until that is over, or, the timer floor later, when a deadline beyond it is announced.
 *   7. An overrun is debt, which comes off what is left until later deadlines. Debt is capped at share * period, when the
 *      share becomes another one, too; what is written off counts as forgiven.
 *   8. Four deadlines are kept beside the one of the moment, while they can matter. Of more, the two farthest become one, in the
 *      child's disfavour: what it used for either counts for the nearer. What it loses by that counts as forgiven.
 *   9. Admission: shares add up to at most 1. They are shares of a whole CPU, at any depth.
 * Gives up: what a child does not use (below a root nobody gets slack from here: add a second parent for that), and long
 * turns: who announces deadlines close to each other is switched as often.
 * Conservation: between the time at which it began to want the CPU and a deadline it is served for a child gets at most
 * share * that time + floor + lateness, whatever it announces.
 * Source: Lipari & Buttazzo 1999 (BSS), Lipari, Carpenter & Baruah 2000 (PShED); HLS 5.2.2.3.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_uniform(P, V) \
	P(11, uniform, "uniform", TIERCE_HEEDS_DEADLINES, \
	  V("period", TIME, 10000, 4000000000, 10000000, "distance of the deadlines of a child that announces none"), \
	  V("share", RATIO, 1, 1048576, REQUIRED, "share of a CPU between any two deadlines that the child announces"))

struct uniform_edge {
	u64 deadline_ns; /* it is served for: where edf has its own */
	s64 left_ns;	 /* until then; may be negative: debt */
	u64 kept[4];	 /* other deadlines, and what is left until them */
};

#else
#include "check.h"

enum { UNIFORM_PERIOD }; /* node parameter */
/* Edge parameters; the second follows: the same in 2^-32, rounded up, so that who uses a share to its end is done in time. */
enum { UNIFORM_SHARE, UNIFORM_RATE };

#define UNIFORM_KEPT  4			   /* deadlines beside the one of the moment */
#define UNIFORM_TICK  4			   /* kept in units of 2^4 ns, rounded down */
#define UNIFORM_AHEAD (1ull << 32)	   /* no deadline is farther away, no more is left until it */
#define UNIFORM_LEFT  34		   /* bits of what is left until it, which may be negative */
#define UNIFORM_WAITS (1u << 31)	   /* variant: throttled, and a later deadline is announced; or when that was so last */
#define UNIFORM_SOON  1000		   /* before it is so again at one time: ns */
#define UNIFORM_NONE  ((1ull << 63) - 1) /* instead of one: after all others */
#define UNIFORM_ONE   1000000		   /* shares as written, which are what has to fit */

static inline u64 uniform_millionths(u64 share)
{
	return (share * UNIFORM_ONE + (1 << 19)) >> 20;
}

/* What a processor of this speed has done until then. Differences of it add up, however small they are. */
static inline u64 uniform_work(edge_t *x, u64 at_ns)
{
	return scale(at_ns, x->param[UNIFORM_RATE]);
}

/* A deadline that is kept: how many ticks from the one of the moment, and what is left until it (beyond what is left until
 * the one of the moment, if it is later). Compared as they are, they are in the order of deadlines. */
static inline u64 kept_make(u64 ticks, u64 left_ns)
{
	return ticks << UNIFORM_LEFT | (left_ns & ((1ull << UNIFORM_LEFT) - 1));
}
static inline u64 kept_ticks(u64 kept)
{
	return (u64)((s64)kept >> UNIFORM_LEFT);
}
static inline u64 kept_left(u64 kept)
{
	return (u64)((s64)(kept << (64 - UNIFORM_LEFT)) >> (64 - UNIFORM_LEFT));
}
static inline bool kept_is_later(u64 kept)
{
	return (s64)kept >> UNIFORM_LEFT > 0;
}

static inline s64 uniform_debt_max(edge_t *x)
{
	return (s64)scale(node_at(x->parent)->param[UNIFORM_PERIOD], x->param[UNIFORM_RATE]);
}

/* After a new share: debt would matter for longer than deadlines can be kept, if it were that of a larger one; and no more is
 * left than a processor of this speed has ever done, so that claims stay positive. */
static inline s64 uniform_within(edge_t *x, s64 left_ns, u64 deadline_ns)
{
	s64 least_ns = -uniform_debt_max(x), most_ns = (s64)uniform_work(x, deadline_ns);
	return left_ns < least_ns ? least_ns : left_ns > most_ns ? most_ns : left_ns;
}
static inline void uniform_owes(edge_t *x)
{
	s64 was_ns = x->uniform.left_ns, left_ns = uniform_within(x, was_ns, x->uniform.deadline_ns);
	u64 base = x->uniform.deadline_ns >> UNIFORM_TICK, kept, ticks;
	u32 i;
	x->forgiven_ns += (u64)(left_ns < was_ns ? was_ns - left_ns : left_ns - was_ns);
	x->uniform.left_ns = left_ns;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		ticks = kept_ticks(kept);
		if (kept == UNIFORM_NONE)
			continue;
		left_ns = uniform_within(x, (s64)kept_left(kept) + (kept_is_later(kept) ? was_ns : 0),
					 (base + ticks) << UNIFORM_TICK);
		AT(x->uniform.kept, i) = kept_make(ticks, (u64)(left_ns - (kept_is_later(kept) ? x->uniform.left_ns : 0)));
	}
}

TIERCE_FN int uniform_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 millionths = uniform_millionths(AT(S.stage, UNIFORM_SHARE)),
	    rate = ((millionths << 32) + UNIFORM_ONE - 1) / UNIFORM_ONE;
	u64 sum = parent_of(edge)->sum - uniform_millionths(x->param[UNIFORM_SHARE]) + millionths;
	if (sum > UNIFORM_ONE)
		return TIERCE_E_utilisation_above_one;
	parent_of(edge)->sum = sum;
	x->param[UNIFORM_SHARE] = AT(S.stage, UNIFORM_SHARE);
	x->param[UNIFORM_RATE] = rate;
	promise_ends(x);
	uniform_owes(x);
	return TIERCE_OK;
}

TIERCE_FN int uniform_attach(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 i;
	x->param[UNIFORM_SHARE] = 0;
	x->param[UNIFORM_RATE] = 0;
	x->uniform.deadline_ns = 0;
	x->uniform.left_ns = 0;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++)
		AT(x->uniform.kept, i) = UNIFORM_NONE;
	return uniform_set(edge, now);
}

TIERCE_FN int uniform_detach(u32 edge)
{
	event_clear(edge);
	parent_of(edge)->sum -= uniform_millionths(edge_at(edge)->param[UNIFORM_SHARE]);
	edge_at(edge)->param[UNIFORM_SHARE] = 0;
	edge_at(edge)->param[UNIFORM_RATE] = 0;
	return 0;
}

/* ---- deadlines --------------------------------------------------------------------------------------------------- */

/* For which deadline is it served from `now` on (rule 1), where the last one is over since then? */
static inline u64 uniform_next(u32 edge, u64 since_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 announced_ns = node_at(x->child)->deadline_ns;
	if (announced_ns > now && announced_ns - now <= UNIFORM_AHEAD)
		return announced_ns;
	return x->uniform.deadline_ns > now ? x->uniform.deadline_ns : since_ns + parent_of(edge)->param[UNIFORM_PERIOD];
}

/* Instead of what is left until a deadline this reckons with the claim: the work of the slower processor until then less what
 * is left; in other words, where in its work that processor's is used up. It is the same for all deadlines between one that is
 * kept and the next, whose claim may be smaller: then the child has wanted the CPU for that for longer. */
static inline u64 uniform_claim(edge_t *x)
{
	return uniform_work(x, x->uniform.deadline_ns) - (u64)x->uniform.left_ns;
}
static inline u64 kept_claim(edge_t *x, u64 kept, u64 tick)
{
	return uniform_work(x, tick << UNIFORM_TICK) - kept_left(kept) - (kept_is_later(kept) ? (u64)x->uniform.left_ns : 0);
}

/* Of the deadlines that are over only the last one matters. */
TIERCE_FN int uniform_forget(u32 edge, u64 since_ns)
{
	edge_t *x = edge_at(edge);
	u64 base = x->uniform.deadline_ns >> UNIFORM_TICK, over = since_ns >> UNIFORM_TICK, kept, tick;
	u32 i, to = ZERO;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		AT(x->uniform.kept, i) = UNIFORM_NONE;
		tick = base + kept_ticks(kept);
		if (kept == UNIFORM_NONE || (tick < base && base <= over))
			continue;
		if (tick <= over)
			to = ZERO;
		AT(x->uniform.kept, to) = kept;
		to++;
	}
	return 0;
}

/* The claim until another deadline. `anew`: it did not want the CPU until then. */
TIERCE_FN u64 uniform_asks(u32 edge, u64 deadline_ns, u32 anew, u64 since_ns)
{
	edge_t *x = edge_at(edge);
	u64 base = x->uniform.deadline_ns >> UNIFORM_TICK, here = deadline_ns >> UNIFORM_TICK, tick, kept;
	u64 begin = uniform_work(x, since_ns), claim = uniform_claim(x), nearest = base;
	u32 i;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		tick = base + kept_ticks(kept);
		if (kept != UNIFORM_NONE && tick <= here && (tick > nearest || nearest > here)) {
			nearest = tick;
			claim = kept_claim(x, kept, tick);
		}
	}
	return nearest > here || ((anew || deadline_ns < x->uniform.deadline_ns) && claim < begin) ? begin : claim;
}

/* Of those that are kept, who still matters once the deadline is another one; from there on, and with all that is left until
 * each. Returns the least that is left until a later one. What is left until the old one is what it was, if not `anew`. */
TIERCE_FN u64 uniform_sort(u32 edge, u64 deadline_ns, u64 claim, u32 anew, u64 since_ns)
{
	edge_t *x = edge_at(edge);
	u64 base = x->uniform.deadline_ns >> UNIFORM_TICK, here = deadline_ns >> UNIFORM_TICK, kept, tick, at;
	u64 begin = uniform_work(x, since_ns), before = begin;
	s64 left_ns, least_ns = (s64)UNIFORM_AHEAD;
	u32 i, to = ZERO;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		AT(x->uniform.kept, i) = UNIFORM_NONE;
		tick = base + kept_ticks(kept);
		at = kept_claim(x, kept, tick);
		if (kept == UNIFORM_NONE || tick == here)
			continue;
		if (tick > here) {
			if ((anew || tick < base) && at < begin) /* it comes anew for these, too */
				at = begin;
			left_ns = (s64)(uniform_work(x, tick << UNIFORM_TICK) - at);
			least_ns = left_ns < least_ns ? left_ns : least_ns;
			before = claim;
			claim = at;
		}
		if (at == before || (tick < here && at < begin && before == begin))
			continue;
		if (tick < here)
			before = at;
		AT(x->uniform.kept, to) = kept_make(tick - here, uniform_work(x, tick << UNIFORM_TICK) - at);
		to++;
	}
	if (anew && uniform_claim(x) < begin)
		x->uniform.left_ns = (s64)(uniform_work(x, x->uniform.deadline_ns) - begin);
	left_ns = (s64)(uniform_work(x, base << UNIFORM_TICK) - uniform_claim(x));
	return (u64)(base > here && left_ns < least_ns ? left_ns : least_ns);
}

/* One for two: the first of them, with the larger claim. */
static inline u64 kept_merge(edge_t *x, u64 first, u64 second, u64 here)
{
	u64 between_ns = uniform_work(x, (here + kept_ticks(second)) << UNIFORM_TICK) -
			 uniform_work(x, (here + kept_ticks(first)) << UNIFORM_TICK);
	s64 lost_ns = (s64)(kept_left(first) + between_ns - kept_left(second));
	x->forgiven_ns += (u64)(lost_ns < 0 ? -lost_ns : lost_ns);
	return lost_ns > 0 ? kept_make(kept_ticks(first), kept_left(first) - (u64)lost_ns) : first;
}

/* One more is kept, in its place. */
static inline void uniform_keep(edge_t *x, u64 put, u64 here)
{
	u64 kept;
	u32 i;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		if ((s64)put < (s64)kept) {
			AT(x->uniform.kept, i) = put;
			put = kept;
		}
	}
	if (put == UNIFORM_NONE)
		return;
	kept = x->uniform.kept[UNIFORM_KEPT - 1];
	if (kept_is_later(kept) == kept_is_later(put)) {
		x->uniform.kept[UNIFORM_KEPT - 1] = kept_merge(x, kept, put, here);
	} else {
		x->uniform.kept[UNIFORM_KEPT - 2] = kept_merge(x, x->uniform.kept[UNIFORM_KEPT - 2], kept, here);
		x->uniform.kept[UNIFORM_KEPT - 1] = put;
	}
}

/* The deadline is another one from here on; that of before is kept, if it matters. */
TIERCE_FN int uniform_turn(u32 edge, u64 deadline_ns, u64 claim, u64 least_ns, u64 since_ns)
{
	edge_t *x = edge_at(edge);
	u64 base = x->uniform.deadline_ns >> UNIFORM_TICK, here = deadline_ns >> UNIFORM_TICK, was = uniform_claim(x), kept;
	s64 left_ns = (s64)(uniform_work(x, deadline_ns) - claim);
	u32 i;
	kept = kept_make(base - here, uniform_work(x, base << UNIFORM_TICK) - was);
	if (base > here ? was != claim
			: base < here && (was > uniform_work(x, since_ns) || (s64)x->uniform.kept[0] < (s64)kept))
		uniform_keep(x, kept, here);
	if (left_ns > (s64)least_ns)
		left_ns = (s64)least_ns;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		if (kept_is_later(kept) && kept != UNIFORM_NONE)
			AT(x->uniform.kept, i) = kept_make(kept_ticks(kept), kept_left(kept) - (u64)left_ns);
	}
	x->uniform.deadline_ns = deadline_ns;
	x->uniform.left_ns = left_ns;
	x->replenishments++;
	return 0;
}

/* What is left until the deadline is promised, but for a nanosecond that rounding may take. A window under way goes on if its end is the
 * same; if the child has announced another one, it is not counted. */
static inline void uniform_promises(u32 edge, u32 anew)
{
	edge_t *x = edge_at(edge);
	if (!anew && x->promise.end_ns == x->uniform.deadline_ns)
		return;
	promise_ends(x);
	if (x->uniform.left_ns > 1)
		promise_begins(x, x->uniform.left_ns - 1, x->uniform.deadline_ns);
}

/* That deadline is over, or all used that was left until it. Of a child that announces none, the next one is a period later. */
static inline void uniform_is_over(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 period_ns = node_at(x->parent)->param[UNIFORM_PERIOD];
	if (node_at(x->child)->deadline_ns == x->promise.end_ns)
		period_ns = 0;
	promise_over(edge, ran_ns, period_ns, (u64)x->promise.owed_ns, now);
}

/* The calls stand beside each other: no frame is left for the verifier. */
static inline void uniform_serve(u32 edge, u64 deadline_ns, u32 anew, u64 since_ns)
{
	u64 claim, least_ns;
	uniform_forget(edge, since_ns);
	claim = uniform_asks(edge, deadline_ns, anew, since_ns);
	least_ns = uniform_sort(edge, deadline_ns, claim, anew, since_ns);
	uniform_turn(edge, deadline_ns, claim, least_ns, since_ns);
	uniform_promises(edge, anew);
}

static inline bool uniform_has(u32 edge)
{
	return edge_at(edge)->uniform.left_ns > (s64)STATE(floor_ns);
}

/* Throttled until the last deadline is over for which nothing is left. */
static inline void uniform_spend(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 until_ns = x->uniform.deadline_ns, kept;
	u32 i;
	for (i = ZERO; i < UNIFORM_KEPT && CAN_LOOP; i++) {
		kept = AT(x->uniform.kept, i);
		if (kept_is_later(kept) && kept != UNIFORM_NONE &&
		    x->uniform.left_ns + (s64)kept_left(kept) <= (s64)STATE(floor_ns))
			until_ns = ((x->uniform.deadline_ns >> UNIFORM_TICK) + kept_ticks(kept)) << UNIFORM_TICK;
	}
	x->throttles += !(x->flags & EDGE_SPENT);
	x->flags |= EDGE_SPENT;
	event_set(edge, until_ns);
	port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, until_ns, now);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static inline void uniform_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	uniform_serve(edge, uniform_next(edge, now, now), why != TIERCE_RESTORED, now);
	if (uniform_has(edge)) {
		x->flags &= ~EDGE_SPENT;
		event_clear(edge);
		order_insert(edge, x->uniform.deadline_ns);
	} else {
		uniform_spend(edge, now);
	}
}

static inline void uniform_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
}

static inline void uniform_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->uniform.deadline_ns);
}

/* Nothing usable is left. Debt is no larger than it was, or than the cap. */
TIERCE_FN int uniform_end(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt_max = -uniform_debt_max(x);
	if (x->uniform.left_ns < debt_max) {
		u64 excess = (u64)(debt_max - x->uniform.left_ns);
		if (excess > ran_ns)
			excess = ran_ns;
		x->forgiven_ns += excess;
		x->uniform.left_ns += (s64)excess;
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, excess, now);
	}
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->uniform.left_ns, now);
	if (x->flags & EDGE_SPENT)
		return false;
	if (x->promise.end_ns != TIERCE_NEVER)
		uniform_is_over(edge, 0, now);
	uniform_spend(edge, now);
	return true;
}
static inline bool uniform_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->uniform.left_ns -= (s64)ran_ns;
	if (promise_is_late(x, now))
		uniform_is_over(edge, ran_ns, now);
	if (!uniform_has(edge))
		return uniform_end(edge, ran_ns, now);
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->uniform.left_ns, now);
	return false;
}

static inline u64 uniform_until(u32 edge, u64 now)
{
	s64 left_ns = edge_at(edge)->uniform.left_ns;
	return left_ns > 0 ? now + (u64)left_ns : now;
}

/* Its event sees to that in this very moment, when what has run is charged. */
static inline void uniform_announce(u32 edge, u64 deadline_ns, u64 now)
{
	if (edge_at(edge)->state != TIERCE_WAITING)
		event_set(edge, now);
}

/* A deadline for which nothing was left is over, or another one was announced. It counts from when that was due. */
TIERCE_FN int uniform_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 since_ns = event_link(edge)->key, next_ns;
	u32 anew = since_ns + parent_of(edge)->param[UNIFORM_PERIOD] <= now, at = (u32)now & ~UNIFORM_WAITS;
	order_remove(edge);
	if (x->state == TIERCE_WAITING) {
		x->flags &= ~EDGE_SPENT;
		return 0;
	}
	if (x->promise.end_ns <= now)
		uniform_is_over(edge, 0, now);
	if (anew) /* a gap as long as that is not made up for */
		since_ns = now;
	next_ns = uniform_next(edge, since_ns, now);
	/* Where what it announces depends on whether it runs (a child with other parents), it would come and go without an end. */
	if (!(x->variant & UNIFORM_WAITS) && (x->flags & EDGE_SPENT) && x->uniform.deadline_ns > now &&
	    next_ns > x->uniform.deadline_ns) {
		u64 soon_ns = now + STATE(floor_ns) + (x->variant == at ? UNIFORM_SOON : 0);
		x->variant = UNIFORM_WAITS;
		event_set(edge, x->uniform.deadline_ns < soon_ns ? x->uniform.deadline_ns : soon_ns);
		return 0;
	}
	if (x->variant & UNIFORM_WAITS)
		x->variant = at;
	anew |= (x->flags & EDGE_SPENT) && x->uniform.deadline_ns <= now; /* it was throttled until then */
	if (anew || next_ns != x->uniform.deadline_ns) {
		uniform_serve(edge, next_ns, anew, since_ns);
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->uniform.left_ns, now);
	}
	if (!uniform_has(edge)) {
		uniform_spend(edge, now);
		return 0;
	}
	x->flags &= ~EDGE_SPENT;
	if (x->state == TIERCE_READY)
		order_insert(edge, x->uniform.deadline_ns);
	return 0;
}

/* The order is that of edf, and so is what the node announces. */
#define uniform_pick	 edf_pick
#define uniform_before	 edf_before
#define uniform_depart nothing_depart
#define uniform_arrive nothing_arrive
#define uniform_ahead nothing_ahead
#define uniform_clock nothing_clock
#define uniform_first nothing_first
#define uniform_deadline edf_deadline
#define uniform_init	 nothing_init
#define uniform_grant	 nothing_grant
#define uniform_lose	 nothing_lose
#define uniform_tell nothing_tell

static inline u32 uniform_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	u32 i, later = 0;
	HOLDS(claims_kept, x->uniform.left_ns <= (s64)UNIFORM_AHEAD && x->uniform.left_ns >= -2 * (s64)UNIFORM_AHEAD);
	for (i = 0; i < UNIFORM_KEPT; i++) {
		u64 kept = x->uniform.kept[i];
		HOLDS(claims_kept, !i || (s64)x->uniform.kept[i - 1] < (s64)kept || kept == UNIFORM_NONE);
		later += kept_is_later(kept);
		HOLDS(claims_kept, later || kept_ticks(kept) >> 63);
	}
	return TIERCE_HOLDS;
}

static inline u32 uniform_check_node(u32 node)
{
	u64 sum = 0;
	u32 edge;
	for (edge = 1; edge < S.fresh_edge; edge++)
		if (is_child_of(edge, node))
			sum += uniform_millionths(edge_at(edge)->param[UNIFORM_SHARE]);
	HOLDS(sums, sum == node_at(node)->sum && sum <= UNIFORM_ONE);
	return TIERCE_HOLDS;
}

#endif
