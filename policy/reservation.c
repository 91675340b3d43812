/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * reservation: every child gets its budget in every period. With the preset parameters each child has a hard constant bandwidth
 * server (CBS): no time beyond the budget, and the earliest server deadline runs first. The order and the replenishment are
 * parameters of the node.
 *
 * Example: budget 2 ms, period 10 ms, a child that always wants the CPU. It runs [0, 2), is throttled until 10, has 2 ms
 * again with deadline 20, and so on: 2 ms in each period however many others compete. When it sleeps at 11 with 1 ms
 * left and wakes at 13, it may use the 1 ms before its deadline 20 (1 <= (20 - 13) * 2/10); had it woken at 19, it
 * would have got a new period [19, 29) instead.
 *
 * Rules
 *   1. The earliest server deadline is picked (EDF); equal deadlines: the lower edge id.
 *   2. Running spends the budget. At 0 (or when no more than the port's timer floor is left, which is carried over) the server
 *      is exhausted, the edge SPENT: throttled until the end of its period, even with deadline < period.
 *   3. An exhausted server is replenished at the end of its period, also while the child sleeps: remaining = min(remaining,
 *      floor) + budget, and the next period follows without a gap. A period that is over as a whole (clock gap, overload) is
 *      not made up for. A server that is not exhausted keeps budget and deadline until it is, or until rule 5.
 *   4. An overrun (late timer, code that cannot be preempted) is debt: it comes off the next replenishments. Debt is capped at
 *      one budget, so a throttled child has a budget again after at most two periods (when it runs then, rule 1 says); what
 *      is written off counts as forgiven.
 *   5. A child that wakes keeps remaining budget and deadline if remaining <= (deadline - now) * budget / deadline_length;
 *      otherwise a new period begins now. With deadline < period a new one must not begin before the old has ended: in
 *      its deadline the remaining budget is cut to what fits, after it the edge is SPENT until the period ends.
 *   6. Admission: budget <= deadline <= period, and the children's budget/period add up to at most 1 here. Each is rounded
 *      down to 2^-20, so sums a little above 1 pass; exact fractions are the analysis's. The sum is the whole test for
 *      deadline = period; the demand test for shorter deadlines belongs to the analysis.
 *   7. Order `fixed-priority`: the larger priority is picked; equal priorities: the lower edge id. Deadlines order nothing
 *      then, and rule 5 takes the period for them. The sum of budget/period
 *      must be at most 1 here, too, but that is not sufficient: the analysis computes response times.
 *   8. Replenishment `soft` (the original CBS): at 0 the budget is replenished at once, with a deadline one period later; the
 *      edge is never SPENT. `total-bandwidth`: the same, and whoever wakes gets a whole budget, with the deadline
 *      max(now, old deadline) + period. Both need the order of deadlines.
 *   9. Replenishment `periodic`: the budget is replenished on a grid of periods, which begins with the first wake-up. A child
 *      that has slept for a whole period begins a new grid when it wakes up; its debt is then paid. An idle server keeps its
 *      budget until the period ends (a deferrable server); what is left then is lost. `polling`: what is left is lost as soon as it has
 *      nothing to run; who wakes within a period waits for the next.
 *   10. Replenishment `sporadic`: an amount used is refilled one period after its activation: the later of the wake-up and the
 *      time at which that amount was refilled itself. Two pending amounts are kept beside the one in use; of more, the two
 *      that are closest are refilled together, at the later time.
 *   11. Only hard budgets have deadlines < period; a sporadic period is at most 4 s.
 *   12. Charge `own`: only CPU time of the child itself is charged. After an interrupt it still gets its whole budget, and
 *      children with later deadlines wait. `wall`: interference (not a hypervisor's steal time) while it has the CPU is charged
 *      to it, too. It gets less, and the others are not delayed.
 *   13. A `gain` G above 0: each new budget is C = C' + G * (asked + lost - C'), where C' is the budget before, asked the one of
 *      the plan, and lost what was stolen of C', at most C'. (HLS: C' + G * (R - P), R = asked, P = C' - lost, what it received;
 *      what the child did not want counts as received.) C is at least the budget of the plan and at most (cap - sum of the
 *      siblings' budget/period) * period. While C is larger than the plan's budget, it counts in the sum. It needs hard budgets by wall time, with deadlines that are the periods.
 *   14. A `cap` above 0 stands in the place of 1 in rule 6. A child that comes or grows is refused beyond it. Lowering the
 *      cap removes no child.
 *   15. Order `fixed-priority`, `hard` or `periodic`: a task below that has the CPU says when it is to have a lock, with the lock's ceiling
 *      (a priority) and how much CPU time it has it for. Where less is left it may skip: the rest of the budget is given up. While it has
 *      the lock the child is ordered by the ceiling, before equals, and is not throttled at 0: the budget is overrun, which is debt (rule 4),
 *      by at most one budget. When it leaves the lock it is throttled, if nothing is left. A lock is left, too, when the child sleeps.
 * Files: here the hard CBS by deadlines, rules 1 to 5; the folder reservation/ has the others, a file each.
 * Gives up: unused budget. It does not enlarge the budgets of siblings; the CPU goes to nodes of lower priority than this one, and
 * to children with a second parent there. If this node is a root, the CPU idles.
 * Conservation: replenished + debt written off - budget cut - charged = remaining; in a period supply <= budget + floor +
 * lateness. Charged is the supply; with `wall`, the supply and what was stolen meanwhile. Sporadic: remaining + pending = budget.
 * Source: Abeni & Buttazzo 1998, hard form; OXC 1.1, corrected: a new deadline counts from now. Spuri & Buttazzo 1996 (total
 * bandwidth); Lehoczky, Sha & Strosnider 1987 (polling, deferrable); Sprunt, Sha & Lehoczky 1989 (sporadic), by amounts as in
 * Stanovich, Baker, Wang & Harbour 2010; ExSched 2013. Stolen time: Rez (wall), Rez-C (own) and Rez-FB (gain) of HLS 11.5.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_reservation(P, V) \
	P(4, reservation, "reservation", TIERCE_BUDGETS, \
	  V("order", CHOICE, 0, 1, 0, "edf, fixed-priority: the order of the servers") \
	  V("replenishment", CHOICE, 0, 5, 0, \
	    "hard, soft, total-bandwidth, periodic, sporadic, polling: when a budget is replenished") \
	  V("charge", CHOICE, 0, 1, 0, "own, wall: whether interference while the child runs is charged to it (wall) or not (own)") \
	  V("gain", RATIO, 0, 1048576, 0, "feedback: by how much of the interference the next budget is larger; 0: none") \
	  V("cap", RATIO, 0, 1048576, 0, "largest sum of budget/period; 0: a whole CPU"), \
	  V("budget", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "CPU time in every period") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "time from one replenishment to the next") \
	  V("deadline", DURATION_OF, 1000, TIERCE_PERIOD_MAX, 1, \
	    "relative server deadline, from the start of the period; at most the period") \
	  V("priority", COUNT, 0, 65535, 0, "with order fixed-priority: larger runs first, equals by the order of the plan"))

struct reservation_edge {
	s64 remaining_ns; /* may be negative: debt, paid from the next budgets */
	u64 deadline_ns;  /* absolute; ordered by priority: from that (server_place) */
	u64 replenish_ns; /* end of the current period; sporadic: when what is used now is refilled */
	u64 share;	  /* budget/period in 2^-32, rounded down to 2^-20: the node's sum */
	union {
		u64 density; /* budget/deadline, as share */
		u64 first; /* sporadic: the first pending refill: amount in ns, in the high half its time before replenish_ns */
		u64 lost_ns; /* with feedback: what was stolen of the budget under way */
	};
	union {
		u64 second;   /* the second, in the same way */
		u64 asked_ns; /* with feedback: the budget without it */
	};
};

#else
#include "check.h"

enum { RESERVATION_ORDER, RESERVATION_REPLENISHMENT, RESERVATION_CHARGE, RESERVATION_GAIN, RESERVATION_CAP }; /* of the node */
enum { RESERVATION_BUDGET, RESERVATION_PERIOD, RESERVATION_DEADLINE, RESERVATION_PRIORITY };		      /* of edges */

/* The variant of an edge, 0 the usual one: its replenishment (KIND_MASK), whether it is ordered by priority, whether it
 * pays for what is stolen from it, whether its budget is corrected for that. */
enum {
	RESERVATION_HARD,
	RESERVATION_SOFT,
	RESERVATION_TOTAL_BANDWIDTH,
	RESERVATION_PERIODIC,
	RESERVATION_SPORADIC,
	RESERVATION_POLLING
};
#define RESERVATION_KIND_MASK   7u
#define RESERVATION_BY_PRIORITY 8u
#define RESERVATION_WALL    16u /* matters to reservation_lose only: the usual ways do not look at it */
#define RESERVATION_FED	    32u /* param[BUDGET] is the amount under way, asked_ns what was asked for */
#define RESERVATION_HELD    64u /* a task below it has a lock, rule 15 */

#include "reservation/parameters.c"
#include "reservation/feedback.c"
#include "reservation/soft.c"
#include "reservation/periodic.c"
#include "reservation/sporadic.c"
#include "reservation/sections.c"

/* A new period begins at `now` with the whole budget. */
static inline void reservation_begin(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt = x->reservation.remaining_ns < 0 ? x->reservation.remaining_ns : 0;
	x->reservation.remaining_ns = (s64)x->param[RESERVATION_BUDGET] + debt;
	x->reservation.deadline_ns = now + x->param[RESERVATION_DEADLINE];
	x->reservation.replenish_ns = now + x->param[RESERVATION_PERIOD];
	x->replenishments++;
	server_promises(x);
	port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
}

/* Throttled until its period ends, or something is refilled. */
static inline void reservation_spend(u32 edge, u64 until_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->flags |= EDGE_SPENT;
	x->throttles++;
	event_set(edge, until_ns);
	port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, until_ns, now);
}

#include "reservation/servers.c"

/* Rule 5: may a child that wakes use what is left of its budget until its deadline? */
static inline bool reservation_fits(const edge_t *x, u64 now)
{
	u64 deadline_ns = x->reservation.deadline_ns;
	s64 remaining_ns = x->reservation.remaining_ns;
	return now < deadline_ns && (remaining_ns <= 0 || !product_exceeds((u64)remaining_ns, x->param[RESERVATION_DEADLINE],
									   deadline_ns - now, x->param[RESERVATION_BUDGET]));
}

/* The deadline is before the end of the period: what is left is cut to what fits, (deadline - now) * budget / deadline_length. Rule 5
 * is tested exactly; what is kept is rounded down, which is the safe side. */
static inline void reservation_cut(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 fits = scale(x->reservation.deadline_ns - now, x->reservation.density), left = (u64)x->reservation.remaining_ns;
	if (fits > left)
		fits = left;
	x->forgiven_ns += left - fits;
	port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, left - fits, now);
	x->reservation.remaining_ns = (s64)fits;
}

static inline void reservation_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED)
		promise_ends(x);
	if (x->flags & EDGE_SPENT)
		return; /* its event puts it into the order */
	if (reservation_is_variant(x)) {
		u64 forgiven_ns = x->forgiven_ns, event_ns;
		u32 replenishments = x->replenishments;
		server_wakes(edge, why, now);
		if ((x->variant & RESERVATION_FED) && x->replenishments != replenishments) {
			x->reservation.remaining_ns -= (s64)x->param[RESERVATION_BUDGET];
			server_corrects(edge);
			x->reservation.remaining_ns += (s64)x->param[RESERVATION_BUDGET];
		}
		event_ns = server_ensure_budget(edge, why, now);
		server_trace(edge, replenishments, forgiven_ns, now);
		if (x->flags & EDGE_SPENT) {
			reservation_spend(edge, event_ns, now);
			return;
		}
		if (event_ns)
			event_set(edge, event_ns);
	} else if (why != TIERCE_RESTORED) {
		bool over = now >= x->reservation.replenish_ns;
		if (over || !reservation_fits(x, now)) {
			if (over || x->param[RESERVATION_DEADLINE] == x->param[RESERVATION_PERIOD]) {
				reservation_begin(edge, now);
			} else if (now >= x->reservation.deadline_ns) {
				reservation_spend(edge, x->reservation.replenish_ns, now);
				return;
			} else {
				reservation_cut(edge, now);
			}
		}
		if (x->reservation.remaining_ns <= (s64)STATE(floor_ns)) {
			reservation_spend(edge, x->reservation.replenish_ns, now);
			return;
		}
	}
	order_insert(edge, x->reservation.deadline_ns);
}

static inline void reservation_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
	if (why != TIERCE_MOVED) /* it is only set, or goes */
		section_ends(edge_at(edge));
}

static inline bool reservation_earlier(u32 a, u32 b)
{
	u64 x = edge_at(a)->reservation.deadline_ns, y = edge_at(b)->reservation.deadline_ns;
	return x < y || (x == y && a < b);
}
static inline bool reservation_before(u32 a, u32 b, u64 now)
{
	return reservation_earlier(a, b);
}

static inline u32 reservation_pick(u32 node, u32 first, u32 running, u64 now)
{
	return reservation_earlier(first, running) ? first : running;
}

static inline void reservation_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->reservation.deadline_ns);
	else if (why == TIERCE_BLOCKED)
		section_ends(edge_at(edge));
}

/* Nothing usable is left, or the period is over that it was promised in. */
TIERCE_FN int reservation_exhausted(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt_max = -(s64)x->param[RESERVATION_BUDGET];
	u64 until_ns = x->reservation.replenish_ns;
	if (x->promise.end_ns != TIERCE_NEVER)
		server_is_over(edge, ran_ns, now);
	if (x->reservation.remaining_ns > (s64)STATE(floor_ns)) {
		port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
		return false;
	}
	if (x->reservation.remaining_ns < debt_max) {
		u64 excess = (u64)(debt_max - x->reservation.remaining_ns);
		x->forgiven_ns += excess;
		x->reservation.remaining_ns = debt_max;
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, excess, now);
	}
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	if ((x->flags & EDGE_SPENT) || section_overruns(x))
		return false;
	if (reservation_is_variant(x)) {
		u64 forgiven_ns = x->forgiven_ns;
		u32 replenishments = x->replenishments;
		bool refilled = server_refill(edge, now);
		server_trace(edge, replenishments, forgiven_ns, now);
		if (refilled)
			return false;
		until_ns = server_refill_ns(edge);
	}
	reservation_spend(edge, until_ns, now);
	return true;
}
static inline bool reservation_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->reservation.remaining_ns -= (s64)ran_ns;
	if (x->reservation.remaining_ns <= (s64)STATE(floor_ns) || promise_is_late(x, now))
		return reservation_exhausted(edge, ran_ns, now);
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	return false;
}

static inline bool reservation_lose(u32 edge, u64 stolen_ns)
{
	edge_t *x = edge_at(edge);
	if (!(x->variant & RESERVATION_WALL))
		return false;
	x->reservation.remaining_ns -= (s64)stolen_ns;
	if (x->variant & RESERVATION_FED)
		x->reservation.lost_ns += stolen_ns;
	return true;
}

static inline u64 reservation_until(u32 edge, u64 now)
{
	s64 remaining_ns = edge_at(edge)->reservation.remaining_ns;
	if (reservation_is_held(edge_at(edge)))
		remaining_ns += (s64)edge_at(edge)->param[RESERVATION_BUDGET];
	return remaining_ns > 0 ? now + (u64)remaining_ns : now;
}

TIERCE_FN int reservation_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 begin_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	s64 rest;

	if (x->variant & ~RESERVATION_WALL) {
		if ((x->variant & RESERVATION_KIND_MASK) >= RESERVATION_PERIODIC) {
			server_event(edge, now);
			return 0;
		}
		if ((x->variant & RESERVATION_FED) && (x->flags & EDGE_SPENT)) {
			u64 forgiven_ns = x->forgiven_ns;
			server_corrects(edge);
			server_trace(edge, x->replenishments, forgiven_ns, now);
		}
	}
	if (!(x->flags & EDGE_SPENT))
		return 0; /* set under another replenishment */
	rest = x->reservation.remaining_ns;
	if (begin_ns + period_ns <= now)
		begin_ns = now;
	if (rest > (s64)STATE(floor_ns)) { /* unusable since its deadline passed: rule 5 */
		x->forgiven_ns += (u64)rest - STATE(floor_ns);
		rest = (s64)STATE(floor_ns);
	}
	x->reservation.remaining_ns = rest + (s64)x->param[RESERVATION_BUDGET];
	server_place(x, begin_ns + x->param[RESERVATION_DEADLINE]);
	x->reservation.replenish_ns = begin_ns + period_ns;
	x->replenishments++;
	server_promises(x);
	port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	if (x->reservation.remaining_ns <= (s64)STATE(floor_ns)) { /* still in debt */
		event_set(edge, x->reservation.replenish_ns);
		return 0;
	}
	x->flags &= ~EDGE_SPENT;
	if (x->state == TIERCE_READY)
		order_insert(edge, x->reservation.deadline_ns);
	return 0;
}

#define reservation_init     nothing_init
#define reservation_grant    nothing_grant
#define reservation_depart nothing_depart
#define reservation_arrive nothing_arrive
#define reservation_ahead nothing_ahead
#define reservation_clock nothing_clock
#define reservation_first nothing_first
#define reservation_announce nothing_announce
#define reservation_deadline nothing_deadline

static inline u32 reservation_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	s64 budget_ns = (s64)x->param[RESERVATION_BUDGET];
	HOLDS(budget_kept, x->reservation.share == reservation_share((u64)budget_ns, x->param[RESERVATION_PERIOD]));
	HOLDS(budget_kept,
	      x->reservation.remaining_ns <= budget_ns + (s64)STATE(floor_ns) && x->reservation.remaining_ns >= -budget_ns);
	if (!(x->variant & RESERVATION_FED))
		return TIERCE_HOLDS;
	HOLDS(budget_kept, x->reservation.asked_ns <= (u64)budget_ns && (u64)budget_ns <= x->param[RESERVATION_PERIOD]);
	HOLDS(budget_kept, !(x->flags & EDGE_SPENT) || x->reservation.remaining_ns <= (s64)STATE(floor_ns));
	return TIERCE_HOLDS;
}

static inline u32 reservation_check_node(u32 node)
{
	u64 sum = 0;
	u32 edge;
	for (edge = 1; edge < S.fresh_edge; edge++)
		if (is_child_of(edge, node))
			sum += edge_at(edge)->reservation.share;
	HOLDS(sums, sum == node_at(node)->sum && sum <= SHARE_ONE);
	return TIERCE_HOLDS;
}

#endif
