/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * reservation: every child gets its budget in every period. As it is, and no more: a hard constant bandwidth server (CBS) per
 * child, in the order of deadlines. The order and the way in which budgets come back are parameters of the node.
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
 *   7. Order `fixed-priority`: the larger priority is picked; equal priorities: the lower edge id. Deadlines order nothing
 *      then, and rule 5 takes the period for them. Sums are not enough here: response times belong to the analysis.
 *   8. Replenishment `soft` (the original CBS): at 0 the budget comes back at once, with a deadline one period later; the
 *      edge is never SPENT. `total-bandwidth`: the same, and whoever wakes gets a whole budget, with the deadline
 *      max(now, old deadline) + period. Both need the order of deadlines.
 *   9. Replenishment `periodic`: the budget is replenished on a grid of periods, which begins with the first wake-up and
 *      anew with one after a whole period asleep. An idle server keeps it until the period ends (a deferrable server);
 *      what is left then is lost. `polling`: what is left is lost as soon as it has nothing to run; who wakes within a
 *      period waits for the next.
 *   10. Replenishment `sporadic`: what was used comes back one period after it began to be wanted: after the wake-up, or
 *      after it had come back itself. Two such amounts are kept beside the one under way; of more, the two that are
 *      closest come back together, at the later time.
 *   11. Only hard budgets have deadlines < period; a sporadic period is at most 4 s.
 *   12. Charge `own`: a budget is spent by what the child itself runs; it catches up with what is stolen meanwhile. `wall`: what
 *      is stolen while it has the CPU is charged to it, too: it loses that, and those behind it do not.
 *   13. A `gain` G above 0: with each new budget its amount becomes C = C' + G * (R - P), R being the budget that was asked for,
 *      C' the amount before and P what of that was not stolen; what the child had and did not want counts as received.
 *      R <= C <= what the siblings leave of the cap, where C counts for the child. It needs hard budgets by wall time, with
 *      deadlines that are the periods.
 *   14. A `cap` above 0 stands in the place of 1 in rule 6. A child that comes or grows is refused beyond it; a lower one turns
 *      nobody out.
 * Gives up: unused budget (below a root nobody gets slack from here: add a second parent for that).
 * Conservation: replenished + debt written off - budget cut - charged = remaining; in a period supply <= budget + floor +
 * lateness. Charged is the supply, by wall time and what was stolen meanwhile. Sporadic: remaining + what is to come back = budget.
 * Source: Abeni & Buttazzo 1998, hard form; OXC 1.1, corrected: a new deadline counts from now. Spuri & Buttazzo 1996 (total
 * bandwidth); Lehoczky, Sha & Strosnider 1987 (polling, deferrable); Sprunt, Sha & Lehoczky 1989 (sporadic), by amounts as in
 * Stanovich, Baker, Wang & Harbour 2010; ExSched 2013. Stolen time: Rez (wall), Rez-C (own) and Rez-FB (gain) of HLS 11.5.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_reservation(P, V) \
	P(4, reservation, "reservation", 0, \
	  V("order", CHOICE, 0, 1, 0, "edf, fixed-priority: the order of the servers") \
	  V("replenishment", CHOICE, 0, 5, 0, \
	    "hard, soft, total-bandwidth, periodic, sporadic, polling: when a budget is replenished") \
	  V("charge", CHOICE, 0, 1, 0, "own, wall: whether interference while the child runs is charged to it (wall) or not (own)") \
	  V("gain", RATIO, 0, 1048576, 0, "feedback: by how much of the interference the next budget is larger; 0: none") \
	  V("cap", RATIO, 0, 1048576, 0, "largest sum of budget/period; 0: a whole CPU"), \
	  V("budget", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "CPU time in every period, hard") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "time from one replenishment to the next") \
	  V("deadline", DURATION_OF, 1000, TIERCE_PERIOD_MAX, 1, "the budget arrives within this time; at most the period") \
	  V("priority", COUNT, 0, 65535, 0, "with order fixed-priority: larger runs first, equals by the order of the plan"))

struct reservation_edge {
	s64 remaining_ns; /* may be negative: debt, paid from the next budgets */
	u64 deadline_ns;  /* absolute; ordered by priority: the place */
	u64 replenish_ns; /* end of the current period; sporadic: when what is used now comes back */
	u64 share;	  /* budget/period in 2^-32, rounded down: the node's sum */
	union {
		u64 density; /* budget/deadline in 2^-32, rounded down */
		u64 first;   /* sporadic: what comes back before that: ns, how long before << 32 */
		u64 lost_ns; /* with feedback: what was stolen of the budget under way */
	};
	union {
		u64 second;   /* and then */
		u64 asked_ns; /* with feedback: the budget without it */
	};
};

#else
#include "check.h"

enum { RESERVATION_ORDER, RESERVATION_REPLENISHMENT, RESERVATION_CHARGE, RESERVATION_GAIN, RESERVATION_CAP }; /* of the node */
enum { RESERVATION_BUDGET, RESERVATION_PERIOD, RESERVATION_DEADLINE, RESERVATION_PRIORITY };		      /* of edges */

/* The variant of an edge, 0 the usual one: how its budget comes back, whether its place in the order is its priority, whether it
 * pays for what is stolen from it, whether its budget is corrected for that. */
enum {
	RESERVATION_HARD,
	RESERVATION_SOFT,
	RESERVATION_TOTAL_BANDWIDTH,
	RESERVATION_PERIODIC,
	RESERVATION_SPORADIC,
	RESERVATION_POLLING
};
#define RESERVATION_COMES   7u
#define RESERVATION_BY_RANK 8u
#define RESERVATION_WALL    16u /* matters to reservation_lose only: the usual ways do not look at it */
#define RESERVATION_FED	    32u /* param[BUDGET] is the amount under way, asked_ns what was asked for */

#define SPORADIC_PERIOD_MAX 4000000000ull /* what comes back is kept in 32 bits: amount, and time before the last */

#define RESERVATION_PRIORITY_MAX 65535u

static inline u64 reservation_share(u64 budget_ns, u64 period_ns)
{
	return (budget_ns << 20) / period_ns << 12; /* budget below 2^42 (one hour); rounded down: never refuses exact fits */
}

/* What the children's shares may add up to. */
static inline u64 reservation_cap(node_t *node)
{
	u64 cap = node->more[RESERVATION_CAP - TIERCE_PARAMS];
	return cap ? cap << 12 : SHARE_ONE;
}

/* Does its budget come back in another way than hard and by deadline, or with feedback? */
static inline bool server_is_rare(const edge_t *x)
{
	return PORT_HAS_PART(servers) && (x->flags & EDGE_VARIANT);
}

/* Its place in the order: the end of its period, or by its priority. */
static inline void server_place(edge_t *x, u64 deadline_ns)
{
	x->reservation.deadline_ns =
	    x->variant & RESERVATION_BY_RANK ? RESERVATION_PRIORITY_MAX - x->param[RESERVATION_PRIORITY] : deadline_ns;
}

TIERCE_FN int reservation_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 budget_ns = AT(S.stage, RESERVATION_BUDGET), period_ns = AT(S.stage, RESERVATION_PERIOD);
	u64 deadline_ns = AT(S.stage, RESERVATION_DEADLINE), share, sum;
	u32 comes = (u32)node->param[RESERVATION_REPLENISHMENT];
	u32 variant = comes | (node->param[RESERVATION_ORDER] ? RESERVATION_BY_RANK : 0) |
		      (node->param[RESERVATION_CHARGE] ? RESERVATION_WALL : 0) |
		      (node->param[RESERVATION_GAIN] ? RESERVATION_FED : 0);

	if (variant && !PORT_HAS_PART(servers))
		return TIERCE_E_part_is_left_out;
	if (deadline_ns > period_ns)
		return TIERCE_E_deadline_beyond_period;
	if (budget_ns > deadline_ns)
		return TIERCE_E_budget_beyond_deadline;
	if (deadline_ns < period_ns && comes != RESERVATION_HARD)
		return TIERCE_E_deadline_needs_hard_budget;
	if ((variant & RESERVATION_BY_RANK) && (comes == RESERVATION_SOFT || comes == RESERVATION_TOTAL_BANDWIDTH))
		return TIERCE_E_recharge_needs_deadlines;
	if (comes == RESERVATION_SPORADIC && period_ns > SPORADIC_PERIOD_MAX)
		return TIERCE_E_sporadic_period_too_long;
	if ((variant & RESERVATION_FED) &&
	    (comes != RESERVATION_HARD || deadline_ns < period_ns || !(variant & RESERVATION_WALL)))
		return TIERCE_E_feedback_needs_hard_wall_time;
	share = reservation_share(budget_ns, period_ns);
	sum = node->sum - x->reservation.share + share;
	if (sum > SHARE_ONE)
		return TIERCE_E_utilisation_above_one;
	if (sum > reservation_cap(node) && share > x->reservation.share)
		return TIERCE_E_utilisation_above_cap;
	node->sum = sum;
	x->reservation.share = share;
	x->reservation.density = reservation_share(budget_ns, deadline_ns);
	x->param[RESERVATION_BUDGET] = budget_ns;
	x->param[RESERVATION_PERIOD] = period_ns;
	x->param[RESERVATION_DEADLINE] = deadline_ns;
	x->param[RESERVATION_PRIORITY] = AT(S.stage, RESERVATION_PRIORITY);
	x->variant = variant;
	x->flags &= ~EDGE_VARIANT;
	if (variant & ~RESERVATION_WALL)
		x->flags |= EDGE_VARIANT;
	if (variant & RESERVATION_BY_RANK)
		server_place(x, 0);
	if (comes == RESERVATION_SPORADIC) { /* all that is to come back comes at the last of the times */
		x->reservation.first = 0;
		x->reservation.second = 0;
	}
	if (variant & RESERVATION_WALL)
		S.loses = 1;
	if (variant & RESERVATION_FED) {
		x->reservation.lost_ns = 0;
		x->reservation.asked_ns = budget_ns;
	}
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
	/* Feedback knows no budget that is spent before it is used up (rule 5, when its deadline was shorter). */
	if ((variant & RESERVATION_FED) && (x->flags & EDGE_SPENT) && x->reservation.remaining_ns > (s64)STATE(floor_ns)) {
		x->forgiven_ns += (u64)x->reservation.remaining_ns - STATE(floor_ns);
		x->reservation.remaining_ns = (s64)STATE(floor_ns);
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

/* Throttled until its period ends, or something comes back. */
static inline void reservation_spend(u32 edge, u64 until_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->flags |= EDGE_SPENT;
	x->throttles++;
	event_set(edge, until_ns);
	port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, until_ns, now);
}

/* ---- variants ---------------------------------------------------------------------------------------------------- */

/* What the functions below did, told where there is a frame left for it. */
static inline void server_tell(u32 edge, u32 replenishments, u64 forgiven_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->forgiven_ns != forgiven_ns)
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, x->forgiven_ns - forgiven_ns, now);
	if (x->replenishments != replenishments)
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
}

/* Who is never throttled may run ahead without end, but no further than anybody waits. */
static inline u64 server_ahead(u64 end_ns, u64 now)
{
	return end_ns < now + TIERCE_TIME_MAX ? end_ns : now + TIERCE_TIME_MAX;
}

/* A whole budget, for the period after `from_ns`. */
static inline void server_begin(u32 edge, u64 from_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt = x->reservation.remaining_ns < 0 ? x->reservation.remaining_ns : 0;
	x->reservation.remaining_ns = (s64)x->param[RESERVATION_BUDGET] + debt;
	x->reservation.replenish_ns = server_ahead(from_ns + x->param[RESERVATION_PERIOD], now);
	server_place(x, x->reservation.replenish_ns);
	x->replenishments++;
}

/* Between two budgets: what the next one is, by rule 13, and debt of no more than that. It calls nothing, as server_wakes. */
TIERCE_FN int server_corrects(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 period_ns = x->param[RESERVATION_PERIOD], was_ns = x->param[RESERVATION_BUDGET];
	u64 aim_ns = x->reservation.asked_ns + (x->reservation.lost_ns < was_ns ? x->reservation.lost_ns : was_ns);
	u64 kept = SHARE_ONE - (node->param[RESERVATION_GAIN] << 12);
	u64 others = node->sum - x->reservation.share, most_ns = 0, budget_ns;

	if (reservation_cap(node) > others)
		most_ns = scale(period_ns, reservation_cap(node) - others);
	/* C' + G * (aim - C'), rounded towards the aim, which is reached */
	budget_ns = was_ns > aim_ns ? aim_ns + scale(was_ns - aim_ns, kept) : aim_ns - scale(aim_ns - was_ns, kept);
	if (budget_ns > most_ns)
		budget_ns = most_ns;
	if (budget_ns < x->reservation.asked_ns)
		budget_ns = x->reservation.asked_ns;
	x->param[RESERVATION_BUDGET] = budget_ns;
	x->reservation.lost_ns = 0;
	x->reservation.share = reservation_share(budget_ns, period_ns);
	node->sum = others + x->reservation.share;
	if (x->reservation.remaining_ns < -(s64)budget_ns) {
		x->forgiven_ns += (u64)(-(s64)budget_ns - x->reservation.remaining_ns);
		x->reservation.remaining_ns = -(s64)budget_ns;
	}
	return 0;
}

/* Recharged as often as it takes, each time for a period more: with debt capped and budgets above the floor once or twice. */
static inline void server_recharge(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 budget_ns = x->param[RESERVATION_BUDGET];
	u64 times = (u64)((s64)STATE(floor_ns) - x->reservation.remaining_ns) / budget_ns + 1;
	u64 end_ns = server_ahead(x->reservation.replenish_ns + times * x->param[RESERVATION_PERIOD], now);
	x->reservation.remaining_ns += (s64)(times * budget_ns);
	x->reservation.replenish_ns = end_ns;
	x->reservation.deadline_ns = end_ns;
	x->replenishments++;
}

/* The next period on its grid begins; the first one, and one after a period that is over as a whole, now. */
static inline void server_turn(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 begin_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	s64 rest = x->reservation.remaining_ns;
	if (begin_ns + period_ns <= now || !begin_ns) {
		begin_ns = now;
		if (rest < 0) /* the budget of the period that is over has paid it */
			rest = 0;
	}
	if (rest > (s64)STATE(floor_ns)) {
		x->forgiven_ns += (u64)rest - STATE(floor_ns);
		rest = (s64)STATE(floor_ns);
	}
	x->reservation.remaining_ns = rest + (s64)x->param[RESERVATION_BUDGET];
	x->reservation.replenish_ns = begin_ns + period_ns;
	server_place(x, x->reservation.replenish_ns);
	x->replenishments++;
}

/* What comes back to a sporadic server: an amount (low half), at a time before replenish_ns (high half). */
static inline u64 parcel(u64 amount_ns, u64 at_ns, u64 last_ns)
{
	u64 before_ns = last_ns - at_ns;
	return amount_ns ? (before_ns >> 32 ? 0xffffffff : before_ns) << 32 | amount_ns : 0;
}

/* The stretch in which a sporadic server uses what it has ends, and another begins: now if it wakes, else when what it uses
 * from here on came back. What has come back until now is there again. */
static inline void sporadic_stretch(u32 edge, bool wakes, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 last_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD], begin_ns = last_ns - period_ns;
	u64 first = (u32)x->reservation.first, first_ns = last_ns - (x->reservation.first >> 32);
	u64 second = (u32)x->reservation.second, second_ns = last_ns - (x->reservation.second >> 32);
	s64 rest = x->reservation.remaining_ns, third;
	bool back = false;

	/* used in this stretch; an overrun counts for the next one */
	third = (s64)x->param[RESERVATION_BUDGET] - (rest > 0 ? rest : 0) - (s64)first - (s64)second;
	if (begin_ns > last_ns) /* it never had one */
		begin_ns = 0;
	if (first && first_ns <= now) {
		rest += (s64)first;
		begin_ns = begin_ns > first_ns ? begin_ns : first_ns;
		back = true;
		first = second;
		first_ns = second_ns;
		second = 0;
	}
	if (first && first_ns <= now) {
		rest += (s64)first;
		begin_ns = begin_ns > first_ns ? begin_ns : first_ns;
		first = 0;
	}
	if (third > 0 && last_ns <= now) {
		rest += third;
		begin_ns = last_ns;
		back = true;
		third = 0;
	}
	if (!wakes && !back)
		return;
	if (wakes || begin_ns + period_ns <= now)
		begin_ns = now;
	if (third > 0 && !first) {
		first = (u64)third;
		first_ns = last_ns;
	} else if (third > 0 && !second) {
		second = (u64)third;
		second_ns = last_ns;
	} else if (third > 0 &&
		   second_ns - first_ns <= last_ns - second_ns) { /* two of three come together, at the later time */
		first += second;
		first_ns = second_ns;
		second = (u64)third;
		second_ns = last_ns;
	} else if (third > 0) {
		second += (u64)third;
		second_ns = last_ns;
	}
	if (begin_ns + period_ns > last_ns)
		last_ns = begin_ns + period_ns;
	x->reservation.remaining_ns = rest;
	x->reservation.replenish_ns = last_ns;
	x->reservation.first = parcel(first, first_ns, last_ns);
	x->reservation.second = parcel(second, second_ns, last_ns);
	server_place(x, last_ns);
	if (back)
		x->replenishments++;
}

/* Too little to use; a sporadic budget below the floor is used as a whole. */
static inline bool server_empty(u32 edge)
{
	edge_t *x = edge_at(edge);
	s64 rest = x->reservation.remaining_ns;
	return rest <= (s64)STATE(floor_ns) &&
	       ((x->variant & RESERVATION_COMES) != RESERVATION_SPORADIC || rest < (s64)x->param[RESERVATION_BUDGET]);
}

/* When a spent server has something again, or has to look. */
static inline u64 server_back_ns(u32 edge)
{
	edge_t *x = edge_at(edge);
	bool waits = (x->variant & RESERVATION_COMES) == RESERVATION_SPORADIC && x->reservation.first;
	return x->reservation.replenish_ns - (waits ? x->reservation.first >> 32 : 0);
}

/* Nothing usable is left: does something come at once? Else it is spent. */
static inline bool server_comes_here(u32 edge, u64 now)
{
	u32 comes = edge_at(edge)->variant & RESERVATION_COMES;
	if (comes == RESERVATION_SOFT || comes == RESERVATION_TOTAL_BANDWIDTH) {
		server_recharge(edge, now);
		return true;
	}
	if (comes == RESERVATION_SPORADIC)
		sporadic_stretch(edge, false, now);
	return !server_empty(edge);
}
/* The same as a call of its own, where there is a frame left for it. */
TIERCE_FN int server_comes(u32 edge, u64 now)
{
	return server_comes_here(edge, now);
}

/* The waking rules. They call nothing, and what follows is a call beside them: no frame is left for the verifier. */
TIERCE_FN int server_wakes(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 end_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	u32 comes = x->variant & RESERVATION_COMES;
	s64 rest = x->reservation.remaining_ns;

	if (comes == RESERVATION_PERIODIC || comes == RESERVATION_POLLING) {
		if (now >= end_ns)
			server_turn(edge, now);
		rest = x->reservation.remaining_ns;
		if (comes == RESERVATION_POLLING && why != TIERCE_RESTORED && rest > 0 &&
		    now + period_ns != x->reservation.replenish_ns) { /* it had nothing to run */
			x->forgiven_ns += (u64)rest;
			x->reservation.remaining_ns = 0;
		}
	} else if (why == TIERCE_RESTORED) {
		return 0;
	} else if (comes == RESERVATION_SPORADIC) {
		sporadic_stretch(edge, true, now);
	} else if (comes == RESERVATION_TOTAL_BANDWIDTH) {
		server_begin(edge, now > end_ns ? now : end_ns, now);
	} else if (now >= end_ns ||
		   (rest > 0 && wide_product_exceeds((u64)rest, period_ns, end_ns - now, x->param[RESERVATION_BUDGET]))) {
		server_begin(edge, now, now);
	}
	return 0;
}

/* Who wants the CPU has something, or is spent. Returns when its event is due, 0: it needs none. */
TIERCE_FN u64 server_has(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 comes = x->variant & RESERVATION_COMES;
	if ((comes == RESERVATION_PERIODIC || comes == RESERVATION_POLLING || why != TIERCE_RESTORED) && server_empty(edge) &&
	    (comes == RESERVATION_SPORADIC || !server_comes_here(edge, now))) {
		x->flags |= EDGE_SPENT;
		return server_back_ns(edge);
	}
	return comes == RESERVATION_PERIODIC || comes == RESERVATION_POLLING ? x->reservation.replenish_ns : 0;
}

/* A period on the grid begins, or something has come back. */
static inline void server_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 forgiven_ns = x->forgiven_ns;
	u32 replenishments = x->replenishments;
	bool sporadic = (x->variant & RESERVATION_COMES) == RESERVATION_SPORADIC;
	if (now < server_back_ns(edge)) {
		event_set(edge, server_back_ns(edge));
		return;
	}
	if (!sporadic && x->state == TIERCE_WAITING) { /* the next period begins when it wakes */
		x->flags &= ~EDGE_SPENT;
		return;
	}
	if (sporadic)
		sporadic_stretch(edge, false, now);
	else
		server_turn(edge, now);
	server_tell(edge, replenishments, forgiven_ns, now);
	if (server_empty(edge)) { /* still in debt */
		event_set(edge, server_back_ns(edge));
		return;
	}
	x->flags &= ~EDGE_SPENT;
	if (x->state == TIERCE_READY) {
		order_remove(edge);
		order_insert(edge, x->reservation.deadline_ns);
	}
	if (!sporadic)
		event_set(edge, x->reservation.replenish_ns);
}

/* ---- operations -------------------------------------------------------------------------------------------------- */

static inline void reservation_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 deadline_ns = x->reservation.deadline_ns, length_ns = x->param[RESERVATION_DEADLINE];
	s64 remaining_ns = x->reservation.remaining_ns;

	if (x->flags & EDGE_SPENT)
		return; /* its event puts it into the order */
	if (server_is_rare(x)) {
		u64 forgiven_ns = x->forgiven_ns, event_ns;
		u32 replenishments = x->replenishments;
		server_wakes(edge, why, now);
		if ((x->variant & RESERVATION_FED) && x->replenishments != replenishments) {
			x->reservation.remaining_ns -= (s64)x->param[RESERVATION_BUDGET];
			server_corrects(edge);
			x->reservation.remaining_ns += (s64)x->param[RESERVATION_BUDGET];
		}
		event_ns = server_has(edge, why, now);
		server_tell(edge, replenishments, forgiven_ns, now);
		if (x->flags & EDGE_SPENT) {
			reservation_spend(edge, event_ns, now);
			return;
		}
		if (event_ns)
			event_set(edge, event_ns);
	} else if (why != TIERCE_RESTORED) {
		bool past = now >= deadline_ns;
		bool fits = !past && (remaining_ns <= 0 || !product_exceeds((u64)remaining_ns, length_ns, deadline_ns - now,
									    x->param[RESERVATION_BUDGET]));
		if (now >= x->reservation.replenish_ns || (!fits && length_ns == x->param[RESERVATION_PERIOD])) {
			reservation_begin(edge, now);
		} else if (past) {
			reservation_spend(edge, x->reservation.replenish_ns, now);
			return;
		} else if (!fits) { /* deadline < period: cut to (deadline - now) * budget / length */
			u64 fit = scale(deadline_ns - now, x->reservation.density);
			if (fit > (u64)remaining_ns)
				fit = (u64)remaining_ns;
			x->forgiven_ns += (u64)remaining_ns - fit;
			port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, (u64)remaining_ns - fit, now);
			x->reservation.remaining_ns = (s64)fit;
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
	u64 until_ns = x->reservation.replenish_ns;
	if (x->reservation.remaining_ns < debt_max) {
		u64 excess = (u64)(debt_max - x->reservation.remaining_ns);
		x->forgiven_ns += excess;
		x->reservation.remaining_ns = debt_max;
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, excess, now);
	}
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
	if (x->flags & EDGE_SPENT)
		return false;
	if (server_is_rare(x)) {
		u64 forgiven_ns = x->forgiven_ns;
		u32 replenishments = x->replenishments;
		bool comes = server_comes(edge, now);
		server_tell(edge, replenishments, forgiven_ns, now);
		if (comes)
			return false;
		until_ns = server_back_ns(edge);
	}
	reservation_spend(edge, until_ns, now);
	return true;
}
static inline bool reservation_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->reservation.remaining_ns -= (s64)ran_ns;
	if (x->reservation.remaining_ns <= (s64)STATE(floor_ns))
		return reservation_end(edge, now);
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
	return remaining_ns > 0 ? now + (u64)remaining_ns : now;
}

TIERCE_FN int reservation_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 begin_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	s64 rest;

	if (x->variant & ~RESERVATION_WALL) {
		if ((x->variant & RESERVATION_COMES) >= RESERVATION_PERIODIC) {
			server_event(edge, now);
			return 0;
		}
		if ((x->variant & RESERVATION_FED) && (x->flags & EDGE_SPENT)) {
			u64 forgiven_ns = x->forgiven_ns;
			server_corrects(edge);
			server_tell(edge, x->replenishments, forgiven_ns, now);
		}
	}
	if (!(x->flags & EDGE_SPENT))
		return 0; /* set in another way of replenishment */
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
#define reservation_tell nothing_tell

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
