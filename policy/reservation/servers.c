/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: what all ways but the usual one have in common: when a budget is empty, comes back, is had by who wakes. */

/* What the functions below did, told where there is a frame left for it. */
static inline void server_tell(u32 edge, u32 replenishments, u64 forgiven_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->forgiven_ns != forgiven_ns)
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, x->forgiven_ns - forgiven_ns, now);
	if (x->replenishments != replenishments)
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
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
