/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * reservation: every child gets its budget in every period, and no more (hard constant bandwidth server, CBS).
 *
 * Example: budget 2 ms, period 10 ms, a child that always wants the CPU. It runs [0, 2), is throttled until 10, has 2 ms
 * again with deadline 20, and so on: 2 ms in each period however many others compete. When it sleeps at 11 with 1 ms
 * left and wakes at 13, it may use the 1 ms before its deadline 20 (1 <= (20 - 13) * 2/10); had it woken at 19, it
 * would have got a new period [19, 29) instead.
 *
 * Rules
 *   1. The earliest server deadline is picked (EDF); equal deadlines: the lower edge id.
 *   2. Running spends the budget. At 0 (or when less than the port's timer floor is left, which is carried over) the edge
 *      is SPENT: throttled until the end of its period, even with deadline < period.
 *   3. At the end of the period the budget is replenished: remaining = min(remaining, floor) + budget, and the next
 *      period follows without a gap. A period that is over as a whole (clock gap, overload) is not made up for.
 *   4. An overrun (late timer, code that cannot be preempted) is debt: it comes off the next budgets. Debt is capped at
 *      one budget, so a throttled child waits for at most two periods; what is written off counts as forgiven.
 *   5. A child that wakes keeps remaining budget and deadline if remaining <= (deadline - now) * budget / deadline_length;
 *      otherwise a new period begins now. With deadline < period a new one must not begin before the old has ended: in
 *      its deadline the remaining budget is cut to what fits, after it the edge is SPENT until the period ends.
 *   6. Admission: budget <= deadline <= period, and the children's budget/period add up to at most 1 here. That is the
 *      whole test for deadline = period; the demand test for shorter deadlines belongs to the analysis.
 * Gives up: unused budget (below a root nobody gets slack from here: add a second parent for that).
 * Conservation: replenished + debt written off - budget cut - charged = remaining; in a period supply <= budget + floor +
 * lateness.
 * Source: Abeni & Buttazzo 1998, hard form; OXC 1.1, corrected: a new deadline counts from now.
 */
#include "service.h"

enum { RESERVATION_BUDGET, RESERVATION_PERIOD, RESERVATION_DEADLINE }; /* edge parameters */

#define SHARE_ONE (1ull << 32)

static inline u64 reservation_share(u64 budget_ns, u64 period_ns)
{
	return (budget_ns << 20) / period_ns << 12; /* budget below 2^42 (one hour); rounded down: never refuses exact fits */
}

TIERCE_FN int reservation_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 budget_ns = AT(S.stage, RESERVATION_BUDGET), period_ns = AT(S.stage, RESERVATION_PERIOD);
	u64 deadline_ns = AT(S.stage, RESERVATION_DEADLINE), share;

	if (deadline_ns > period_ns)
		return TIERCE_E_deadline_beyond_period;
	if (budget_ns > deadline_ns)
		return TIERCE_E_budget_beyond_deadline;
	share = reservation_share(budget_ns, period_ns);
	if (node->sum - x->reservation.share + share > SHARE_ONE)
		return TIERCE_E_utilisation_above_one;
	node->sum += share - x->reservation.share;
	x->reservation.share = share;
	x->reservation.density = reservation_share(budget_ns, deadline_ns);
	x->param[RESERVATION_BUDGET] = budget_ns;
	x->param[RESERVATION_PERIOD] = period_ns;
	x->param[RESERVATION_DEADLINE] = deadline_ns;
	/* A running reservation keeps its period; only what the new budget cannot hold is cut: what is left, and debt (rule 4).
	 * A larger one begins next time. */
	if (x->reservation.remaining_ns > (s64)budget_ns) {
		x->forgiven_ns += (u64)(x->reservation.remaining_ns - (s64)budget_ns);
		x->reservation.remaining_ns = (s64)budget_ns;
	}
	if (x->reservation.remaining_ns < -(s64)budget_ns) {
		x->forgiven_ns += (u64)(-(s64)budget_ns - x->reservation.remaining_ns);
		x->reservation.remaining_ns = -(s64)budget_ns;
	}
	return TIERCE_OK;
}

TIERCE_FN int reservation_attach(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->reservation.share = 0;
	x->reservation.remaining_ns = 0;
	x->reservation.deadline_ns = 0; /* in the past: the first request begins a period */
	x->reservation.replenish_ns = 0;
	return reservation_set(edge, now);
}

TIERCE_FN int reservation_detach(u32 edge)
{
	event_clear(edge);
	parent_of(edge)->sum -= edge_at(edge)->reservation.share;
	edge_at(edge)->reservation.share = 0;
	return 0;
}

/* A new period begins at `now` with the whole budget. */
static inline void reservation_begin(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt = x->reservation.remaining_ns < 0 ? x->reservation.remaining_ns : 0;
	x->reservation.remaining_ns = (s64)x->param[RESERVATION_BUDGET] + debt;
	x->reservation.deadline_ns = now + x->param[RESERVATION_DEADLINE];
	x->reservation.replenish_ns = now + x->param[RESERVATION_PERIOD];
	x->replenishments++;
	port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
}

/* Throttled until its period ends. */
static inline void reservation_spend(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->flags |= EDGE_SPENT;
	x->throttles++;
	event_set(edge, x->reservation.replenish_ns);
	port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, x->reservation.replenish_ns, now);
}

static inline void reservation_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 deadline_ns = x->reservation.deadline_ns, length_ns = x->param[RESERVATION_DEADLINE];
	s64 remaining_ns = x->reservation.remaining_ns;

	if (x->flags & EDGE_SPENT)
		return; /* its event puts it into the order */
	if (why != TIERCE_RESTORED) {
		bool past = now >= deadline_ns;
		bool fits = !past && (remaining_ns <= 0 || !product_exceeds((u64)remaining_ns, length_ns, deadline_ns - now,
									    x->param[RESERVATION_BUDGET]));
		if (now >= x->reservation.replenish_ns || (!fits && length_ns == x->param[RESERVATION_PERIOD])) {
			reservation_begin(edge, now);
		} else if (past) {
			reservation_spend(edge, now);
			return;
		} else if (!fits) { /* deadline < period: cut to (deadline - now) * budget / length */
			u64 fit = scale(deadline_ns - now, x->reservation.density);
			if (fit > (u64)remaining_ns)
				fit = (u64)remaining_ns;
			x->forgiven_ns += (u64)remaining_ns - fit;
			port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, (u64)remaining_ns - fit, now);
			x->reservation.remaining_ns = (s64)fit;
		}
		if (x->reservation.remaining_ns <= (s64)S.floor_ns) {
			reservation_spend(edge, now);
			return;
		}
	}
	order_insert(edge, x->reservation.deadline_ns);
}

static inline void reservation_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
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
}

/* Nothing usable is left. */
TIERCE_FN int reservation_end(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt_max = -(s64)x->param[RESERVATION_BUDGET];
	if (x->reservation.remaining_ns < debt_max) {
		u64 excess = (u64)(debt_max - x->reservation.remaining_ns);
		x->forgiven_ns += excess;
		x->reservation.remaining_ns = debt_max;
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, excess, now);
	}
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	if (x->flags & EDGE_SPENT)
		return false;
	reservation_spend(edge, now);
	return true;
}
static inline bool reservation_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->reservation.remaining_ns -= (s64)ran_ns;
	if (x->reservation.remaining_ns <= (s64)S.floor_ns)
		return reservation_end(edge, now);
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	return false;
}

static inline u64 reservation_until(u32 edge, u64 now)
{
	s64 remaining_ns = edge_at(edge)->reservation.remaining_ns;
	return remaining_ns > 0 ? now + (u64)remaining_ns : now;
}

TIERCE_FN int reservation_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 begin_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	s64 rest = x->reservation.remaining_ns;

	if (begin_ns + period_ns <= now)
		begin_ns = now;
	if (rest > (s64)S.floor_ns) { /* unusable since its deadline passed: rule 5 */
		x->forgiven_ns += (u64)rest - S.floor_ns;
		rest = (s64)S.floor_ns;
	}
	x->reservation.remaining_ns = rest + (s64)x->param[RESERVATION_BUDGET];
	x->reservation.deadline_ns = begin_ns + x->param[RESERVATION_DEADLINE];
	x->reservation.replenish_ns = begin_ns + period_ns;
	x->replenishments++;
	port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	if (x->reservation.remaining_ns <= (s64)S.floor_ns) { /* still in debt */
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
#define reservation_announce nothing_announce
#define reservation_deadline nothing_deadline
