/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fixed-priority: the ready child with the largest priority runs, always.
 *
 * Example: audio has priority 2, backup 1. Backup runs while audio sleeps; the moment audio is requested it is picked,
 * backup waits at the head of its priority and goes on where it was.
 *
 * Rules
 *   1. A child of larger priority is picked before one of smaller priority, a running one included.
 *   2. Equal priorities: first requested, first served. A child runs until it blocks, unless it has a quantum.
 *   3. A child that lost the CPU without blocking keeps its place, ahead of all that came after it.
 *   4. A child that has used its quantum goes behind its equals, and has a new one. Who blocks gives up the rest.
 * Gives up: any promise to lower priorities; put a reservation below the higher ones when they must not starve others.
 * Conservation: the order holds exactly the READY edges; each has a turn of its own.
 * Source: HLS 5.3.1.1, Table 5.1; equals as in POSIX: without a quantum as under SCHED_FIFO, with one as under SCHED_RR.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_fixed_priority(P, V) \
	P(2, fixed_priority, "fixed-priority", TIERCE_SPREADS, , \
	  V("priority", COUNT, 0, 65535, 0, "larger runs first; equals run first come, first served") \
	  V("quantum", TIME, 0, TIERCE_PERIOD_MAX, 0, "after so long it goes behind its equals; 0: only when it blocks. At least 10 us"))

#else
#include "check.h"

enum { FIXED_PRIORITY_PRIORITY, FIXED_PRIORITY_QUANTUM }; /* edge parameters */

#define FIXED_PRIORITY_QUANTUM_MIN 10000 /* below that a CPU does little but switch */

#define TURN_BITS 48 /* requests before the count wraps: at 1 million a second, 8.9 years */

#define TURN_MASK ((1ull << TURN_BITS) - 1)

static inline u64 fixed_priority_turn(u32 edge, u64 turn)
{
	return (65535 - edge_at(edge)->param[FIXED_PRIORITY_PRIORITY]) << TURN_BITS | (turn & TURN_MASK);
}

/* 0: none. */
static inline u64 fixed_priority_quantum(edge_t *x)
{
	u64 quantum_ns = x->param[FIXED_PRIORITY_QUANTUM];
	return quantum_ns && quantum_ns < FIXED_PRIORITY_QUANTUM_MIN ? FIXED_PRIORITY_QUANTUM_MIN : quantum_ns;
}

TIERCE_FN int fixed_priority_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->param[FIXED_PRIORITY_PRIORITY] = AT(S.stage, FIXED_PRIORITY_PRIORITY);
	x->param[FIXED_PRIORITY_QUANTUM] = AT(S.stage, FIXED_PRIORITY_QUANTUM);
	x->queue.turn = fixed_priority_turn(edge, x->queue.turn);
	x->queue.quantum_ns = (s64)fixed_priority_quantum(x);
	return TIERCE_OK;
}

static inline void fixed_priority_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED) {
		x->queue.turn = fixed_priority_turn(edge, ++node_at(parent_held(x))->clock);
		x->queue.quantum_ns = (s64)fixed_priority_quantum(x);
	}
	order_insert(edge, x->queue.turn);
}

static inline void fixed_priority_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
}

static inline bool fixed_priority_before(u32 a, u32 b, u64 now)
{
	return edge_at(a)->queue.turn < edge_at(b)->queue.turn;
}

static inline u32 fixed_priority_pick(u32 node, u32 first, u32 running, u64 now)
{
	return edge_at(first)->queue.turn < edge_at(running)->queue.turn ? first : running;
}

static inline void fixed_priority_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->queue.turn);
}

static inline bool fixed_priority_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 quantum_ns = fixed_priority_quantum(x);
	if (!quantum_ns)
		return false;
	if (x->queue.quantum_ns > (s64)ran_ns) {
		x->queue.quantum_ns -= (s64)ran_ns;
		return false;
	}
	x->queue.quantum_ns = (s64)quantum_rest(quantum_ns, x->queue.quantum_ns, ran_ns);
	x->queue.turn = fixed_priority_turn(edge, ++node_at(x->parent)->clock);
	return false;
}

/* Also when nobody waits: then nobody who comes has to find out how much of the quantum is left. */
static inline u64 fixed_priority_until(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	return fixed_priority_quantum(x) ? now + (u64)x->queue.quantum_ns : TIERCE_NEVER;
}

/* Before all, if a child of lower priority has the other CPU. */
TIERCE_FN u64 fixed_priority_ahead(u32 edge, u32 to, u64 now)
{
	u32 running = node_at(to)->running;
	u64 turn = edge_at(edge)->queue.turn >> TURN_BITS, other = running ? edge_at(running)->queue.turn >> TURN_BITS : turn;
	return other > turn ? (other - turn) << 32 : fewer_ahead(edge, to, now);
}

#define fixed_priority_init	nothing_init
#define fixed_priority_attach	fixed_priority_set
#define fixed_priority_detach	nothing_detach
#define fixed_priority_grant	nothing_grant
#define fixed_priority_first nothing_first
#define fixed_priority_lose nothing_lose
#define fixed_priority_event	nothing_event
#define fixed_priority_announce nothing_announce
#define fixed_priority_deadline nothing_deadline
#define fixed_priority_depart nothing_depart
#define fixed_priority_arrive nothing_arrive
#define fixed_priority_clock nothing_clock
#define fixed_priority_tell nothing_tell
#define fixed_priority_check nothing_check
#define fixed_priority_check_node nothing_check_node

#endif
