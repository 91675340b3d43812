/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * slots: time is cut into timeslots of equal length, and in each of them every child has a reserve of its own.
 *
 * Example, slot 5 ms: a has [0, 1) of each slot, b [1, 4) and fill, c [4, 5). With all three ready a runs 0 to 1, b 1 to 4,
 * c 4 to 5, a 5 to 6. When c sleeps then, b runs 6 to 10; when b sleeps from 11 on, nobody takes its place. A task split over
 * two CPUs has [4, 5) on the first and [0, 1) on the second: it runs 4 to 5 there and goes on 5 to 6 here, 2 ms in every 5,
 * never on both.
 *
 * Rules
 *   1. In its reserve, [offset, offset + length) of each slot, a child runs before all others. Where reserves overlap: the
 *      lower edge id.
 *   2. Outside of its reserve a child does not run (the edge is SPENT until it opens); one with `fill` runs when the owner of
 *      the current reserve wants no CPU; several of them: the lower edge id.
 *   3. Slots of all CPUs count from time 0 of the one clock: reserves of one child on several CPUs stay apart for good.
 *   4. Nothing is kept: a reserve that was not used, or of which others took a part, is not made up for.
 *   5. Admission: a reserve lies within the slot. That reserves do not overlap is for the analysis to see. When the slot of a
 *      node changes, each child goes by it from the next end of its reserve on.
 * Gives up: time. A child that wakes just after its reserve waits for nearly a slot, whoever is idle.
 * Conservation: per slot a child without `fill` gets its length at most, plus what its timer was late.
 * Source: S-EKG (Andersson & Bletsas, ECRTS 2008), NPS-F (Bletsas & Andersson, RTSS 2009); ReTAS 2 and 4.3.3.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_slots(P, V) \
	P(7, slots, "slots", 0, V("slot", TIME, 10000, TIERCE_PERIOD_MAX, REQUIRED, "length of the timeslot"), \
	  V("offset", TIME, 0, TIERCE_PERIOD_MAX, 0, "start of the child's reserve in each slot") \
	  V("length", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "length of its reserve, which ends within the slot") \
	  V("fill", COUNT, 0, 1, 0, "0 or 1; 1: it also runs outside its reserve, when the owner of the current reserve does not want the CPU"))

struct slots_edge {
	u64 close_ns; /* end of the current reserve, or of the next one */
	u64 slot_ns;  /* with which it was found */
	u32 open;     /* it is the current one */
};

#else
#include "check.h"

enum { SLOTS_SLOT };				 /* node parameter */
enum { SLOTS_OFFSET, SLOTS_LENGTH, SLOTS_FILL }; /* edge parameters */

TIERCE_FN int slots_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 slot_ns = parent_of(edge)->param[SLOTS_SLOT], length_ns = AT(S.stage, SLOTS_LENGTH);
	if (length_ns > slot_ns || AT(S.stage, SLOTS_OFFSET) > slot_ns - length_ns)
		return TIERCE_E_parameter_out_of_range;
	x->param[SLOTS_OFFSET] = AT(S.stage, SLOTS_OFFSET);
	x->param[SLOTS_LENGTH] = length_ns;
	x->param[SLOTS_FILL] = AT(S.stage, SLOTS_FILL);
	x->slots.close_ns = 0; /* to be found anew */
	x->slots.slot_ns = 0;
	return TIERCE_OK;
}

TIERCE_FN int slots_attach(u32 edge, u64 now)
{
	edge_at(edge)->slots.open = 0;
	return slots_set(edge, now);
}

/* Without a child that wants a CPU there is no timer. */
static inline void slots_rest(u32 edge)
{
	event_clear(edge);
	edge_at(edge)->flags &= ~EDGE_SPENT;
}

TIERCE_FN int slots_detach(u32 edge)
{
	slots_rest(edge);
	return 0;
}

/* Owners of the current reserve come first, then who fills. */
static inline void slots_order(u32 edge)
{
	order_insert(edge, !edge_at(edge)->slots.open);
}

/* Find the reserve that contains `now`, or else the next one, and wait for its other end. */
static inline void slots_find(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 slot_ns = parent_of(edge)->param[SLOTS_SLOT], length_ns = x->param[SLOTS_LENGTH], close_ns = x->slots.close_ns,
	    open_ns;
	if (now >= close_ns) {
		close_ns += slot_ns;
		if (x->slots.slot_ns != slot_ns || now >= close_ns) /* new parameters, or more than a slot was slept through */
			close_ns = now - now % slot_ns + x->param[SLOTS_OFFSET] + length_ns;
		if (now >= close_ns)
			close_ns += slot_ns;
		x->slots.close_ns = close_ns;
		x->slots.slot_ns = slot_ns;
	}
	open_ns = close_ns - length_ns;
	x->slots.open = now >= open_ns;
	event_set(edge, x->slots.open ? close_ns : open_ns);
	x->flags &= ~EDGE_SPENT;
	if (x->param[SLOTS_FILL])
		return;
	if (x->slots.open) {
		x->replenishments++;
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, close_ns - now, now);
	} else {
		x->flags |= EDGE_SPENT;
		x->throttles++;
		port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, open_ns, now);
	}
}

static inline void slots_request(u32 edge, u32 why, u64 now)
{
	slots_find(edge, now);
	if (!(edge_at(edge)->flags & EDGE_SPENT))
		slots_order(edge);
}

static inline void slots_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
	slots_rest(edge);
}

static inline bool slots_before(u32 a, u32 b, u64 now)
{
	u32 x = edge_at(a)->slots.open, y = edge_at(b)->slots.open;
	return x > y || (x == y && a < b);
}

static inline u32 slots_pick(u32 node, u32 first, u32 running, u64 now)
{
	return slots_before(first, running, now) ? first : running;
}

static inline void slots_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		slots_order(edge);
	else if (why != TIERCE_SPENT)
		slots_rest(edge);
}

/* Its reserve begins or ends. */
TIERCE_FN int slots_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	order_remove(edge);
	slots_find(edge, now);
	if (x->state == TIERCE_READY && !(x->flags & EDGE_SPENT))
		slots_order(edge);
	return 0;
}

#define slots_init	     nothing_init
#define slots_grant	     nothing_grant
#define slots_charge	     nothing_charge
#define slots_until	     nothing_until
#define slots_depart nothing_depart
#define slots_arrive nothing_arrive
#define slots_ahead nothing_ahead
#define slots_clock nothing_clock
#define slots_first nothing_first
#define slots_lose nothing_lose
#define slots_announce	     nothing_announce
#define slots_deadline	     nothing_deadline
#define slots_tell nothing_tell
#define slots_check nothing_check
#define slots_check_node nothing_check_node

#endif
