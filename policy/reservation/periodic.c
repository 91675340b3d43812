/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: replenishment `periodic` and `polling` (rule 9), on a grid of periods. */

/* The next period on its grid begins; the first one, and one after a period that is over as a whole, now. */
static inline void server_next_period(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 begin_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	s64 rest = x->reservation.remaining_ns;
	if (begin_ns + period_ns <= now || !begin_ns) {
		begin_ns = now;
		if (rest < 0) /* paid by the budget of the period that is over, which was not used */
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
	server_promises(x);
}
