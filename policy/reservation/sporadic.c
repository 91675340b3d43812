/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: replenishment `sporadic` (rule 10): an amount used is refilled one period after its activation. A stretch is the time
 * in which the server uses one activation. */

/* A pending refill: its amount in the low half, in the high half how long before replenish_ns it is due. */
static inline u64 pack_refill(u64 amount_ns, u64 at_ns, u64 last_ns)
{
	u64 before_ns = last_ns - at_ns;
	return amount_ns ? (before_ns >> 32 ? 0xffffffff : before_ns) << 32 | amount_ns : 0;
}

/* A stretch ends, and another begins: now if the server wakes, else when what it uses from here on was refilled. What is due until
 * now is refilled. */
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
	x->reservation.first = pack_refill(first, first_ns, last_ns);
	x->reservation.second = pack_refill(second, second_ns, last_ns);
	server_place(x, last_ns);
	server_promises(x);
	if (back)
		x->replenishments++;
}
