/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: what all variants (EDGE_VARIANT) have in common: when a budget is exhausted, when it is refilled, what is left at a
 * wake-up. A hard budget by deadline, the usual one, is in reservation.c. */

/* Trace what the functions below did, where there is a frame left for it. */
static inline void server_trace(u32 edge, u32 replenishments, u64 forgiven_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->forgiven_ns != forgiven_ns)
		port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, x->forgiven_ns - forgiven_ns, now);
	if (x->replenishments != replenishments)
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->reservation.remaining_ns, now);
}

/* Too little to use; a sporadic budget below the floor is used as a whole. */
static inline bool server_exhausted(u32 edge)
{
	edge_t *x = edge_at(edge);
	s64 rest = x->reservation.remaining_ns;
	return rest <= (s64)STATE(floor_ns) &&
	       ((x->variant & RESERVATION_KIND_MASK) != RESERVATION_SPORADIC || rest < (s64)x->param[RESERVATION_BUDGET]);
}

/* When an exhausted server is refilled, or has to look whether it is. */
static inline u64 server_refill_ns(u32 edge)
{
	edge_t *x = edge_at(edge);
	bool waits = (x->variant & RESERVATION_KIND_MASK) == RESERVATION_SPORADIC && x->reservation.first;
	return x->reservation.replenish_ns - (waits ? x->reservation.first >> 32 : 0);
}

/* Nothing usable is left: refill what is due now. Is there anything then? Else it is SPENT. */
static inline bool server_refill_here(u32 edge, u64 now)
{
	u32 kind = edge_at(edge)->variant & RESERVATION_KIND_MASK;
	if (kind == RESERVATION_SOFT || kind == RESERVATION_TOTAL_BANDWIDTH) {
		server_recharge(edge, now);
		return true;
	}
	if (kind == RESERVATION_SPORADIC)
		sporadic_stretch(edge, false, now);
	return !server_exhausted(edge);
}
/* The same as a call of its own, where there is a frame left for it. */
TIERCE_FN int server_refill(u32 edge, u64 now)
{
	return server_refill_here(edge, now);
}

/* The waking rules. They call nothing, and what follows is a call beside them: no frame is left for the verifier. */
TIERCE_FN int server_wakes(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 end_ns = x->reservation.replenish_ns, period_ns = x->param[RESERVATION_PERIOD];
	u32 kind = x->variant & RESERVATION_KIND_MASK;
	s64 rest = x->reservation.remaining_ns;

	if (kind == RESERVATION_PERIODIC || kind == RESERVATION_POLLING) {
		if (now >= end_ns)
			server_next_period(edge, now);
		rest = x->reservation.remaining_ns;
		if (kind == RESERVATION_POLLING && why != TIERCE_RESTORED && rest > 0 &&
		    now + period_ns != x->reservation.replenish_ns) { /* it had nothing to run */
			x->forgiven_ns += (u64)rest;
			x->reservation.remaining_ns = 0;
		}
	} else if (why == TIERCE_RESTORED) {
		return 0;
	} else if (kind == RESERVATION_SPORADIC) {
		sporadic_stretch(edge, true, now);
	} else if (kind == RESERVATION_TOTAL_BANDWIDTH) {
		server_begin(edge, now > end_ns ? now : end_ns, now);
	} else if (now >= end_ns ||
		   (rest > 0 && wide_product_exceeds((u64)rest, period_ns, end_ns - now, x->param[RESERVATION_BUDGET]))) {
		server_begin(edge, now, now);
	}
	return 0;
}

/* At a wake-up: SPENT where nothing usable is left. Returns when its event is due, 0: it needs none. */
TIERCE_FN u64 server_ensure_budget(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 kind = x->variant & RESERVATION_KIND_MASK;
	if ((kind == RESERVATION_PERIODIC || kind == RESERVATION_POLLING || why != TIERCE_RESTORED) && server_exhausted(edge) &&
	    !reservation_is_held(x) && (kind == RESERVATION_SPORADIC || !server_refill_here(edge, now))) {
		x->flags |= EDGE_SPENT;
		return server_refill_ns(edge);
	}
	return kind == RESERVATION_PERIODIC || kind == RESERVATION_POLLING ? x->reservation.replenish_ns : 0;
}

/* A period on the grid begins, or a sporadic amount is refilled. */
static inline void server_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 forgiven_ns = x->forgiven_ns;
	u32 replenishments = x->replenishments;
	bool sporadic = (x->variant & RESERVATION_KIND_MASK) == RESERVATION_SPORADIC;
	if (now < server_refill_ns(edge)) {
		event_set(edge, server_refill_ns(edge));
		return;
	}
	if (!sporadic && x->state == TIERCE_WAITING) { /* the next period begins when it wakes */
		x->flags &= ~EDGE_SPENT;
		return;
	}
	if (x->promise.end_ns <= now)
		server_is_over(edge, 0, now);
	if (sporadic)
		sporadic_stretch(edge, false, now);
	else
		server_next_period(edge, now);
	server_trace(edge, replenishments, forgiven_ns, now);
	if (server_exhausted(edge)) { /* still in debt */
		event_set(edge, server_refill_ns(edge));
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
