/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * round-robin: ready children take turns of one quantum.
 *
 * Example, quantum 3 ms: a, b, c run 3 ms each, again and again. When the node loses the CPU 1 ms into b's turn, b goes
 * on with its remaining 2 ms when the node is back. A child that blocks gives up the rest; it comes back at the end.
 *
 * Rules
 *   1. The child with the oldest turn is picked; a running child keeps its turn until its quantum is used.
 *   2. A used quantum puts the child at the end, if others wait. Quanta of a child alone follow each other without a gap: a
 *      newcomer waits for the rest of the one under way.
 *   3. A child that lost the CPU without blocking keeps its turn and the rest of its quantum.
 * Gives up: proportional shares of children that block, and latency: n - 1 quanta pass before a newcomer runs.
 * Conservation: the order holds exactly the READY edges; each has a turn of its own.
 * Source: HLS 5.3.1.6 (time sharing), Table 5.1.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_round_robin(P, V) \
	P(6, round_robin, "round-robin", TIERCE_SPREADS, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "turn of each child"), )

#else
#include "check.h"

enum { ROUND_ROBIN_QUANTUM }; /* node parameter */

TIERCE_FN int round_robin_attach(u32 edge, u64 now)
{
	edge_at(edge)->queue.quantum_ns = 0;
	return TIERCE_OK;
}

/* A child alone has used its quantum: another turn is under way. */
static inline void round_robin_next(edge_t *x, u64 ran_ns)
{
	node_t *node = node_at(x->parent);
	x->queue.quantum_ns = (s64)quantum_rest(node->param[ROUND_ROBIN_QUANTUM], x->queue.quantum_ns, ran_ns);
	x->queue.turn = ++node->clock;
}

/* It has a turn after all others. */
static inline void round_robin_joins(u32 edge, u64 now)
{
	u32 running = parent_of(edge)->running;
	if (running && !node_contended(edge_at(edge)->parent)) {
		u64 ran_ns = uncharged_ns(parent_of(edge), now);
		if (ran_ns && edge_at(running)->queue.quantum_ns <= (s64)ran_ns) {
			round_robin_next(edge_at(running), ran_ns);
			edge_at(running)->queue.quantum_ns += (s64)ran_ns; /* which the charge takes off */
		}
	}
	edge_at(edge)->queue.turn = ++parent_of(edge)->clock;
	edge_at(edge)->queue.quantum_ns = 0;
}

static inline void round_robin_request(u32 edge, u32 why, u64 now)
{
	if (why != TIERCE_RESTORED)
		round_robin_joins(edge, now);
	order_insert(edge, edge_at(edge)->queue.turn);
}

static inline void round_robin_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
}

static inline bool round_robin_before(u32 a, u32 b, u64 now)
{
	return edge_at(a)->queue.turn < edge_at(b)->queue.turn;
}

static inline u32 round_robin_pick(u32 node, u32 first, u32 running, u64 now)
{
	return edge_at(first)->queue.turn < edge_at(running)->queue.turn ? first : running;
}

static inline void round_robin_grant(u32 edge, u64 now)
{
	if (edge_at(edge)->queue.quantum_ns <= 0)
		edge_at(edge)->queue.quantum_ns = (s64)parent_of(edge)->param[ROUND_ROBIN_QUANTUM];
}

static inline void round_robin_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->queue.turn);
}

static inline bool round_robin_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->queue.quantum_ns > (s64)ran_ns) {
		x->queue.quantum_ns -= (s64)ran_ns;
	} else if (node_contended(x->parent)) {
		x->queue.quantum_ns = (s64)parent_of(edge)->param[ROUND_ROBIN_QUANTUM];
		x->queue.turn = ++parent_of(edge)->clock;
	} else {
		round_robin_next(x, ran_ns);
	}
	return false;
}

static inline u64 round_robin_until(u32 edge, u64 now)
{
	return node_contended(edge_at(edge)->parent) ? now + (u64)edge_at(edge)->queue.quantum_ns : TIERCE_NEVER;
}

#define round_robin_init     nothing_init
#define round_robin_set(edge, now) TIERCE_OK /* no parameters; a turn under way goes on */
#define round_robin_detach   nothing_detach
#define round_robin_first nothing_first
#define round_robin_lose nothing_lose
#define round_robin_event    nothing_event
#define round_robin_announce nothing_announce
#define round_robin_deadline nothing_deadline
#define round_robin_depart nothing_depart
#define round_robin_arrive nothing_arrive
#define round_robin_ahead turn_ahead
#define round_robin_clock nothing_clock
#define round_robin_tell nothing_tell
#define round_robin_check nothing_check
#define round_robin_check_node nothing_check_node

#endif
