/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * shortest-first: the ready child whose job has least work left runs.
 *
 * Example: a's job takes 8 ms and begins at 0, b's takes 2 ms and comes at 3. a has 5 ms left by then, so b runs from 3 to 5, and a
 * from 5 to 10. A third one of 5 ms that comes at 6, when a has 4 left, waits until 10.
 *
 * Rules
 *   1. The child with least work left is picked. One that comes with as much as the running child has left waits.
 *   2. A child that wakes up has its `work` before it. One that lost the CPU without blocking keeps what is left.
 *   3. A child that goes on when its work is done has begun another job: it has its `work` before it again.
 * Gives up: any bound. A child with much work waits for as long as others with less keep coming.
 * Conservation: the order holds exactly the READY edges, keyed by what is left of their work, which is never 0.
 * Source: shortest remaining processing time, Schrage 1968: no other order has a smaller mean response time.
 */

#ifndef TIERCE_POLICY_BODIES

/* Number, name in C, name in plans, flags; then parameters of nodes (none) and of edges. Who gives no `work` has most. */
#define POLICY_shortest_first(P, V) \
	P(NUMBER_shortest_first, shortest_first, "shortest-first", 0, , \
	  V("work", TIME, 1000, TIERCE_PERIOD_MAX, TIERCE_PERIOD_MAX, "CPU time of a job of the child"))

/* What the engine keeps for each edge. */
struct shortest_first_edge {
	u64 left_ns; /* of the job's work */
};

/* What the checker looks at after every operation of a test. */
#define INVARIANTS_shortest_first(I) \
	I(100 * NUMBER_shortest_first, work_is_left, "a child has some of its work left, and no more than all")

#else
#include "check.h"

enum { SHORTEST_FIRST_WORK }; /* edge parameter */

TIERCE_FN int shortest_first_set(u32 edge, u64 now)
{
	u64 work_ns = AT(S.stage, SHORTEST_FIRST_WORK);
	edge_at(edge)->param[SHORTEST_FIRST_WORK] = work_ns;
	edge_at(edge)->shortest_first.left_ns = work_ns;
	return TIERCE_OK;
}

static inline void shortest_first_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED)
		x->shortest_first.left_ns = x->param[SHORTEST_FIRST_WORK];
	order_insert(edge, x->shortest_first.left_ns);
}

static inline void shortest_first_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
}

static inline bool shortest_first_before(u32 a, u32 b, u64 now)
{
	return edge_at(a)->shortest_first.left_ns < edge_at(b)->shortest_first.left_ns;
}

/* What the running child has used since it was charged is not looked at here: at worst its CPU decides once more, which charges
 * it, and stays with it. */
static inline u32 shortest_first_pick(u32 node, u32 first, u32 running, u64 now)
{
	return shortest_first_before(first, running, now) ? first : running;
}

static inline void shortest_first_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->shortest_first.left_ns);
}

static inline bool shortest_first_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 left_ns = x->shortest_first.left_ns, work_ns = x->param[SHORTEST_FIRST_WORK];
	x->shortest_first.left_ns = ran_ns < left_ns ? left_ns - ran_ns : work_ns - (ran_ns - left_ns) % work_ns;
	return false;
}

/* When its job should be done: the next one may be longer than that of somebody who waits. */
static inline u64 shortest_first_until(u32 edge, u64 now)
{
	return now + edge_at(edge)->shortest_first.left_ns;
}

static inline u32 shortest_first_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	HOLDS(work_is_left, x->shortest_first.left_ns && x->shortest_first.left_ns <= x->param[SHORTEST_FIRST_WORK]);
	return TIERCE_HOLDS;
}

#define shortest_first_attach	  shortest_first_set
#define shortest_first_init	  nothing_init
#define shortest_first_detach	  nothing_detach
#define shortest_first_first	  nothing_first
#define shortest_first_grant	  nothing_grant
#define shortest_first_lose	  nothing_lose
#define shortest_first_event	  nothing_event
#define shortest_first_announce	  nothing_announce
#define shortest_first_deadline	  nothing_deadline
#define shortest_first_tell	  nothing_tell
#define shortest_first_depart	  nothing_depart
#define shortest_first_arrive	  nothing_arrive
#define shortest_first_ahead	  nothing_ahead
#define shortest_first_clock	  nothing_clock
#define shortest_first_check_node nothing_check_node

#endif
