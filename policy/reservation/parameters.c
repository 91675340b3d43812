/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: parameters of a child are admitted or refused (rules 6, 11, 13, 14). */

#define SPORADIC_PERIOD_MAX 4000000000ull /* a pending refill has 32 bits for its amount, and 32 for its time before the last */

#define RESERVATION_PRIORITY_MAX 65535u

static inline u64 reservation_share(u64 budget_ns, u64 period_ns)
{
	return (budget_ns << 20) / period_ns
	       << 12; /* budget below 2^42 (one hour); rounded down to 2^-20: never refuses exact fits */
}

/* What the children's shares may add up to. */
static inline u64 reservation_cap(node_t *node)
{
	u64 cap = node->more[RESERVATION_CAP - TIERCE_PARAMS];
	return cap ? cap << 12 : SHARE_ONE;
}

/* Not a hard budget by deadline: another replenishment or order, or feedback? */
static inline bool reservation_is_variant(const edge_t *x)
{
	return PORT_HAS_PART(servers) && (x->flags & EDGE_VARIANT);
}

/* Has a task below it a lock that the budget knows of? */
static inline bool reservation_is_held(const edge_t *x)
{
	return PORT_HAS_PART(servers) && (x->variant & RESERVATION_HELD);
}

/* Its place in the order: the end of its period, or by its priority; with a lock before equals, by its ceiling. */
static inline void server_place(edge_t *x, u64 deadline_ns)
{
	if (reservation_is_held(x))
		return;
	x->reservation.deadline_ns = x->variant & RESERVATION_BY_PRIORITY
					 ? 2 * (RESERVATION_PRIORITY_MAX - x->param[RESERVATION_PRIORITY]) + 1
					 : deadline_ns;
}

/* A period has begun: the budget, less debt, is promised until its end. */
static inline void server_promises(edge_t *x)
{
	promise_begins(x, x->reservation.remaining_ns, x->reservation.replenish_ns);
}

/* That period is over, or the budget used. What was carried over, and what feedback adds, was not promised. */
static inline int server_is_over(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 asked_ns = x->variant & RESERVATION_FED ? x->reservation.asked_ns : x->param[RESERVATION_BUDGET];
	return promise_over(edge, ran_ns, x->param[RESERVATION_PERIOD], asked_ns, now);
}

TIERCE_FN int reservation_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 budget_ns = AT(S.stage, RESERVATION_BUDGET), period_ns = AT(S.stage, RESERVATION_PERIOD);
	u64 deadline_ns = AT(S.stage, RESERVATION_DEADLINE), share, sum;
	u32 kind = (u32)node->param[RESERVATION_REPLENISHMENT];
	u32 variant = kind | (node->param[RESERVATION_ORDER] ? RESERVATION_BY_PRIORITY : 0) |
		      (node->param[RESERVATION_CHARGE] ? RESERVATION_WALL : 0) |
		      (node->param[RESERVATION_GAIN] ? RESERVATION_FED : 0);

	if (variant && !PORT_HAS_PART(servers))
		return TIERCE_E_part_is_left_out;
	if (deadline_ns > period_ns)
		return TIERCE_E_deadline_beyond_period;
	if (budget_ns > deadline_ns)
		return TIERCE_E_budget_beyond_deadline;
	if (deadline_ns < period_ns && kind != RESERVATION_HARD)
		return TIERCE_E_deadline_needs_hard_budget;
	if ((variant & RESERVATION_BY_PRIORITY) && (kind == RESERVATION_SOFT || kind == RESERVATION_TOTAL_BANDWIDTH))
		return TIERCE_E_recharge_needs_deadlines;
	if (kind == RESERVATION_SPORADIC && period_ns > SPORADIC_PERIOD_MAX)
		return TIERCE_E_sporadic_period_too_long;
	if ((variant & RESERVATION_FED) &&
	    (kind != RESERVATION_HARD || deadline_ns < period_ns || !(variant & RESERVATION_WALL)))
		return TIERCE_E_feedback_needs_hard_wall_time;
	share = reservation_share(budget_ns, period_ns);
	sum = node->sum - x->reservation.share + share;
	if (sum > SHARE_ONE)
		return TIERCE_E_utilisation_above_one;
	if (sum > reservation_cap(node) && share > x->reservation.share)
		return TIERCE_E_utilisation_above_cap;
	promise_ends(x);
	node->sum = sum;
	x->reservation.share = share;
	x->reservation.density = reservation_share(budget_ns, deadline_ns);
	x->param[RESERVATION_BUDGET] = budget_ns;
	x->param[RESERVATION_PERIOD] = period_ns;
	x->param[RESERVATION_DEADLINE] = deadline_ns;
	x->param[RESERVATION_PRIORITY] = AT(S.stage, RESERVATION_PRIORITY);
	x->variant = variant | (variant & RESERVATION_BY_PRIORITY ? x->variant & RESERVATION_HELD : 0);
	x->flags &= ~EDGE_VARIANT;
	if (variant & ~RESERVATION_WALL)
		x->flags |= EDGE_VARIANT;
	if (variant & RESERVATION_BY_PRIORITY)
		server_place(x, 0);
	if (kind == RESERVATION_SPORADIC) { /* all pending amounts are refilled at the last of their times */
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
	x->variant = 0;
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
