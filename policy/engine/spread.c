/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spread nodes: a node that has a replica in the tree of each of its CPUs, and tasks that move between the replicas.
 *
 * A task is below exactly one replica at a time, its home. A wake-up, a switch and a sleep on the home CPU touch the domain
 * of that CPU alone. A task moves in three cases only:
 *
 *   wake-up   graph_place chooses an idle CPU near the home, or the home itself.
 *   pull      a CPU that has nothing to run takes a task that waits elsewhere (graph_pull). Whoever leaves a task waiting on
 *             a busy CPU kicks an idle one for it (graph_offer). The idle CPU sets its bit before it looks for tasks, the
 *             other one lets the task wait before it looks for idle CPUs: one of them sees the other.
 *   push      some hundred times a second a CPU where tasks wait gives one to a CPU on which it is served earlier
 *             (graph_balance), as the policy judges (NAME_ahead).
 *
 * No entry locks two CPUs. A task leaves one replica under the lock of its CPU, is in transit, and enters the other one under
 * the lock of that CPU. Where a task goes is judged by what other CPUs have published, read without their locks; the move
 * itself is recorded, so a replay needs none of that.
 *
 * Virtual time. With start tags, eevdf and stride (fair) the replicas have one virtual time in common: a tag says how much CPU
 * time per weight a task has had, on whatever CPU. Where virtual time is an average (eevdf, stride), it waits until a task that
 * arrives behind has been served what it is owed, so that it stays the average of those that are there. A replica whose tasks
 * wait publishes its virtual time (family.clock). A replica that was empty begins there. What a task is ahead of or behind a
 * replica that it enters is limited (FAIR_DRIFT); what it is owed of a credit goes with it.
 *
 * Without virtual time tasks go to the CPU where fewer are. For a difference of one they go in turn, so that each has a CPU
 * alone at times. A CPU that runs a task of a lower priority or level comes first.
 */
#include "service.h"

#define SPREAD_LOOKS	  256	   /* links followed to find a task that may move */

static inline void policy_depart(u32 edge)
{
#define CALL(prefix) prefix##_depart(edge)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_arrive(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_arrive(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline u64 policy_ahead(u32 edge, u32 to, u64 now)
{
	u64 ahead = 0;
#define CALL(prefix) ahead = prefix##_ahead(edge, to, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return ahead;
}
static inline u64 policy_clock(u32 node, u64 now)
{
	u64 clock = 0;
#define CALL(prefix) clock = prefix##_clock(node, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return clock;
}

#include "engine/spread/placement.c"
#include "engine/spread/transit.c"
#include "engine/spread/pull.c"
#include "engine/spread/balance.c"
