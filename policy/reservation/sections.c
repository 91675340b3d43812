/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* reservation: locks of the tasks below a budget (rule 15). */

/* Its child has a lock no more. */
static inline void section_ends(edge_t *x)
{
	if (!reservation_is_held(x))
		return;
	x->variant &= ~RESERVATION_HELD;
	server_place(x, 0);
}

/* Nothing is left. May it go on, with a lock? Not when it owes a whole budget. */
static inline bool section_overruns(edge_t *x)
{
	if (!reservation_is_held(x))
		return false;
	if (x->reservation.remaining_ns > -(s64)x->param[RESERVATION_BUDGET])
		return true;
	section_ends(x);
	return false;
}

static inline int section_begins(edge_t *x)
{
	u64 ceiling = AT(S.stage, 0), length_ns = AT(S.stage, 1);
	if (reservation_is_held(x))
		return TIERCE_E_section_already;
	if (x->state != TIERCE_GRANTED)
		return TIERCE_E_section_needs_budget_by_priority;
	if ((x->flags & EDGE_SPENT) || x->reservation.remaining_ns <= (s64)STATE(floor_ns) ||
	    (length_ns && (s64)length_ns > x->reservation.remaining_ns))
		return TIERCE_E_section_beyond_budget;
	if (ceiling < x->param[RESERVATION_PRIORITY])
		ceiling = x->param[RESERVATION_PRIORITY];
	if (ceiling > RESERVATION_PRIORITY_MAX)
		ceiling = RESERVATION_PRIORITY_MAX;
	x->reservation.deadline_ns = 2 * (RESERVATION_PRIORITY_MAX - ceiling);
	x->variant |= RESERVATION_HELD;
	return TIERCE_OK;
}

/* The caller charges the edge afterwards, which throttles it where nothing is left. */
static inline int section_is_left(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (!reservation_is_held(x))
		return TIERCE_E_no_section;
	section_ends(x);
	if (x->state == TIERCE_READY && !(x->flags & EDGE_SPENT)) {
		order_remove(edge);
		if (x->reservation.remaining_ns > (s64)STATE(floor_ns))
			order_insert(edge, x->reservation.deadline_ns);
	}
	return TIERCE_OK;
}

static inline int section_skips(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 rest = x->reservation.remaining_ns - (s64)STATE(floor_ns);
	if (reservation_is_held(x))
		return TIERCE_E_section_already;
	if (x->state != TIERCE_GRANTED)
		return TIERCE_E_section_needs_budget_by_priority;
	if (rest <= 0)
		return TIERCE_OK;
	promise_ends(x);
	x->forgiven_ns += (u64)rest;
	x->reservation.remaining_ns -= rest;
	port_trace(TIERCE_EV_forgive, x->cpu, edge, x->child, (u64)rest, now);
	return TIERCE_OK;
}

TIERCE_FN int reservation_tell(u32 edge, u32 kind, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 way = x->variant & RESERVATION_KIND_MASK;
	if (kind < TIERCE_SECTION_BEGIN || !PORT_HAS_PART(servers) || !(x->variant & RESERVATION_BY_PRIORITY) ||
	    !(x->flags & EDGE_PLAIN) || (way != RESERVATION_HARD && way != RESERVATION_PERIODIC))
		return TIERCE_E_not_understood;
	if (kind == TIERCE_SECTION_BEGIN)
		return section_begins(x);
	if (kind == TIERCE_SECTION_END)
		return section_is_left(edge);
	if (kind == TIERCE_SECTION_SKIP)
		return section_skips(edge, now);
	return TIERCE_E_not_understood;
}
