/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * edf: the ready child with the earliest absolute deadline runs.
 *
 * Example: at 0 a job due at 10 runs; at 2 a job due at 7 is released and takes the CPU; at 3 one due at 10 arrives and
 * waits: equal deadlines go to the lower edge id, and a later deadline never preempts.
 *
 * Rules
 *   1. The earliest deadline is picked, the running child included; equal deadlines: the lower edge id.
 *   2. A child's deadline is the one it announces (a task's current job, or the earliest among the children of an edf
 *      node); a child that announces none gets request time + the edge's deadline, or comes last when that is 0.
 *   3. A new announcement moves a waiting child at once.
 * Gives up: any promise under overload; nothing is bounded, so one runaway job delays all with later deadlines.
 * Conservation: the order holds exactly the READY edges, keyed by their deadlines.
 * Source: Liu & Layland 1973; HLS 5.3.1; a node that passes its earliest deadline upwards as in HLS 4.3.1.2.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_edf(P, V) \
	P(3, edf, "edf", TIERCE_HEEDS_DEADLINES, , \
	  V("deadline", TIME, 0, TIERCE_TIME_MAX, 0, \
	    "deadline relative to each release; 0: use the deadlines that the child announces; one that announces none runs after all others"))

struct edf_edge {
	u64 deadline_ns; /* absolute, TIERCE_NEVER when none */
};

#else
#include "check.h"

enum { EDF_DEADLINE }; /* edge parameter */

TIERCE_FN int edf_set(u32 edge, u64 now)
{
	edge_at(edge)->param[EDF_DEADLINE] = AT(S.stage, EDF_DEADLINE);
	return TIERCE_OK;
}

TIERCE_FN int edf_attach(u32 edge, u64 now)
{
	edge_at(edge)->edf.deadline_ns = TIERCE_NEVER;
	return edf_set(edge, now);
}

static inline void edf_request(u32 edge, u32 why, u64 now)
{
	u64 announced = node_at(edge_at(edge)->child)->deadline_ns, relative = edge_at(edge)->param[EDF_DEADLINE];
	if (announced != TIERCE_NEVER)
		edge_at(edge)->edf.deadline_ns = announced;
	else if (why != TIERCE_RESTORED)
		edge_at(edge)->edf.deadline_ns = relative ? now + relative : TIERCE_NEVER;
	order_insert(edge, edge_at(edge)->edf.deadline_ns);
}

static inline void edf_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
}

static inline bool edf_earlier(u32 a, u32 b)
{
	u64 x = edge_at(a)->edf.deadline_ns, y = edge_at(b)->edf.deadline_ns;
	return x < y || (x == y && a < b);
}
static inline bool edf_before(u32 a, u32 b, u64 now)
{
	return edf_earlier(a, b);
}

static inline u32 edf_pick(u32 node, u32 first, u32 running, u64 now)
{
	return edf_earlier(first, running) ? first : running;
}

static inline void edf_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->edf.deadline_ns);
}

static inline int edf_announce(u32 edge, u64 deadline_ns, u64 now)
{
	if (deadline_ns == TIERCE_NEVER && edge_at(edge)->param[EDF_DEADLINE])
		return 0;
	edge_at(edge)->edf.deadline_ns = deadline_ns;
	if (order_link(edge)->rank) {
		order_remove(edge);
		order_insert(edge, deadline_ns);
	}
	return 0;
}

static inline u64 edf_least(u64 least, u32 edge)
{
	return edge && edge_at(edge)->edf.deadline_ns < least ? edge_at(edge)->edf.deadline_ns : least;
}

/* Who was left by its CPU and is not back yet wants one all the same. */
static inline bool edf_counts(edge_t *x)
{
	return (x->flags & EDGE_COUNTED) || ((x->flags & (EDGE_LEFT | EDGE_SPENT)) == EDGE_LEFT && node_at(x->child)->servable);
}

TIERCE_FN u64 edf_deadline(u32 node, u64 now)
{
	u32 row = node_at(node)->row, running = node_at(node)->running, cpu;
	u64 least = edf_least(TIERCE_NEVER, node_at(node)->order);
	if (edf_counts(edge_at(running)))
		least = edf_least(least, running);
	for (cpu = ZERO; row && cpu < S.cpus && CAN_LOOP; cpu++) { /* a shared node runs one per CPU */
		running = ROW(row, running, cpu);
		least = edf_least(least, ROW(row, order, cpu));
		if (edf_counts(edge_at(running)))
			least = edf_least(least, running);
	}
	return least;
}

#define edf_init   nothing_init
#define edf_detach nothing_detach
#define edf_grant  nothing_grant
#define edf_charge nothing_charge
#define edf_until  nothing_until
#define edf_depart nothing_depart
#define edf_arrive nothing_arrive
#define edf_ahead nothing_ahead
#define edf_clock nothing_clock
#define edf_first nothing_first
#define edf_lose nothing_lose
#define edf_event  nothing_event
#define edf_tell nothing_tell
#define edf_check nothing_check
#define edf_check_node nothing_check_node

#endif
