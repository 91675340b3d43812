/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * briefly-blocked: a second chance. Who blocks builds up credit, a part of the time in which it was blocked, and may use that
 * when it is back. Below a node that holds reservations this gives slack to those that could not use theirs.
 *
 * Example: credit 0.5, most 10 ms. a runs elsewhere until 4, is blocked until 10 and comes back with 3 ms of credit: here it may
 * run for 3 ms, and no more until it has blocked again. b was blocked for 100 ms: it comes back with 10, the most.
 *
 * Rules
 *   1. A child that stops wanting the CPU and wants it again has its credit larger by `credit` * the time between, up to `most`.
 *      One that has never wanted it before has none.
 *   2. Running here uses up credit. At 0 (or when no more than the port's timer floor is left, which is kept) the edge is SPENT
 *      until the child has blocked and comes back with more than that. Running elsewhere uses up nothing.
 *   3. Children with credit run in the order in which they came back, each for as long as it has any.
 *   4. An overrun is debt, which comes off what is built up next; it is no larger than `most`.
 * Gives up: promises. It is for time that others leave.
 * Conservation: supply = credit built up - credit left; over any time supply <= credit * time blocked + most + lateness.
 * Source: Jones, Rosu & Rosu 1997 (Rialto), as in HLS 6.2.4.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_briefly_blocked(P, V) \
	P(13, briefly_blocked, "briefly-blocked", 0, , \
	  V("credit", RATIO, 1, 1048576, REQUIRED, "credit earned per time that the child was blocked") \
	  V("most", TIME, 10000, TIERCE_PERIOD_MAX, 10000000, "largest credit"))

struct briefly_blocked_edge {
	u64 turn;	/* position in the order of wake-ups */
	s64 credit_ns;	/* below 0: debt */
	u64 blocked_ns; /* since when; TIERCE_NEVER while it is not */
};

#else
#include "check.h"

enum { BRIEFLY_CREDIT, BRIEFLY_MOST }; /* edge parameters */

TIERCE_FN int briefly_blocked_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 most_ns = (s64)AT(S.stage, BRIEFLY_MOST);
	x->param[BRIEFLY_CREDIT] = AT(S.stage, BRIEFLY_CREDIT);
	x->param[BRIEFLY_MOST] = (u64)most_ns;
	if (x->brief.credit_ns > most_ns)
		x->brief.credit_ns = most_ns;
	if (x->brief.credit_ns < -most_ns)
		x->brief.credit_ns = -most_ns;
	return TIERCE_OK;
}

TIERCE_FN int briefly_blocked_attach(u32 edge, u64 now)
{
	edge_at(edge)->brief.turn = 0;
	edge_at(edge)->brief.credit_ns = 0;
	edge_at(edge)->brief.blocked_ns = TIERCE_NEVER;
	return briefly_blocked_set(edge, now);
}

static inline bool brief_has(edge_t *x)
{
	return x->brief.credit_ns > (s64)S.floor_ns;
}

/* It is back, with what it has built up. It calls nothing: there is no frame left for that. */
TIERCE_FN int brief_earn(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 slept_ns = now - x->brief.blocked_ns, most_ns = x->param[BRIEFLY_MOST], gain_ns;
	if (x->brief.blocked_ns <= now) {
		if (slept_ns >> 42) /* longer than any credit takes to build up, or as good as */
			slept_ns = (1ull << 42) - 1;
		gain_ns = scale(slept_ns, x->param[BRIEFLY_CREDIT] << 12);
		x->brief.credit_ns += (s64)gain_ns;
		if (x->brief.credit_ns > (s64)most_ns)
			x->brief.credit_ns = (s64)most_ns;
	}
	x->brief.blocked_ns = TIERCE_NEVER;
	x->brief.turn = ++parent_of(edge)->clock;
	return 0;
}

/* Nothing brings credit but its next wake-up. */
static inline void brief_spend(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->flags |= EDGE_SPENT;
	x->throttles++;
	event_set(edge, TIERCE_NEVER);
	port_trace(TIERCE_EV_throttle, x->cpu, edge, x->child, TIERCE_NEVER, now);
}

static inline void briefly_blocked_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED)
		brief_earn(edge, now);
	if (!brief_has(x)) {
		brief_spend(edge, now);
		return;
	}
	if (why != TIERCE_RESTORED) {
		x->replenishments++;
		port_trace(TIERCE_EV_replenish, x->cpu, edge, x->child, (u64)x->brief.credit_ns, now);
	}
	x->flags &= ~EDGE_SPENT;
	event_clear(edge);
	order_insert(edge, x->brief.turn);
}

static inline void briefly_blocked_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
	if (why == TIERCE_BLOCKED)
		edge_at(edge)->brief.blocked_ns = now;
}

static inline void briefly_blocked_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->brief.turn);
	if (why == TIERCE_BLOCKED)
		edge_at(edge)->brief.blocked_ns = now;
}

static inline bool briefly_blocked_before(u32 a, u32 b, u64 now)
{
	return edge_at(a)->brief.turn < edge_at(b)->brief.turn;
}

static inline u32 briefly_blocked_pick(u32 node, u32 first, u32 running, u64 now)
{
	return briefly_blocked_before(first, running, now) ? first : running;
}

/* Nothing usable is left. */
TIERCE_FN int brief_end(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	s64 debt_max = -(s64)x->param[BRIEFLY_MOST];
	if (x->brief.credit_ns < debt_max) {
		x->forgiven_ns += (u64)(debt_max - x->brief.credit_ns);
		x->brief.credit_ns = debt_max;
	}
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->brief.credit_ns, now);
	if (x->flags & EDGE_SPENT)
		return false;
	brief_spend(edge, now);
	return true;
}
static inline bool briefly_blocked_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	x->brief.credit_ns -= (s64)ran_ns;
	if (!brief_has(x))
		return brief_end(edge, now);
	port_trace(TIERCE_EV_budget, x->cpu, edge, x->child, (u64)x->brief.credit_ns, now);
	return false;
}

static inline u64 briefly_blocked_until(u32 edge, u64 now)
{
	s64 credit_ns = edge_at(edge)->brief.credit_ns;
	return credit_ns > 0 ? now + (u64)credit_ns : now;
}

TIERCE_FN int briefly_blocked_detach(u32 edge)
{
	event_clear(edge);
	return 0;
}

static inline u32 briefly_blocked_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	s64 most_ns = (s64)x->param[BRIEFLY_MOST];
	HOLDS(credit_kept, x->brief.credit_ns <= most_ns && x->brief.credit_ns >= -most_ns);
	return TIERCE_HOLDS;
}

#define briefly_blocked_init	   nothing_init
#define briefly_blocked_grant	   nothing_grant
#define briefly_blocked_depart nothing_depart
#define briefly_blocked_arrive nothing_arrive
#define briefly_blocked_ahead nothing_ahead
#define briefly_blocked_clock nothing_clock
#define briefly_blocked_first nothing_first
#define briefly_blocked_lose	   nothing_lose
#define briefly_blocked_event	   nothing_event
#define briefly_blocked_announce   nothing_announce
#define briefly_blocked_deadline   nothing_deadline
#define briefly_blocked_tell	   nothing_tell
#define briefly_blocked_check_node nothing_check_node

#endif
