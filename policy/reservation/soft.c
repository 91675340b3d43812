/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: replenishment `soft` and `total-bandwidth` (rule 8): the budget comes back at once, the deadline moves on. */

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
	server_promises(x);
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
	server_promises(x);
}
