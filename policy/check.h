/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the checker (engine/check.c) and the policies' part of it (NAME_check) share: the invariants, each with its number and name.
 * Only native builds call any of it.
 */
#ifndef TIERCE_CHECK_H
#define TIERCE_CHECK_H

#include "service.h"

#define TIERCE_INVARIANT_LIST(I) \
	I(1, one_task_per_cpu, "a CPU's path ends in the task it runs") \
	I(2, one_cpu_per_task, "no task is on the path of two CPUs") \
	I(3, path_granted, "every edge on a path is GRANTED to that CPU, every granted one is on a path or being left") \
	I(4, path_connected, "each edge of a path begins where the one above ends") \
	I(5, one_child_per_cpu, "a granted node has granted exactly one child per CPU") \
	I(6, holds_counted, "a head's holds are its CPUs that hold or leave a place, at most its concurrency") \
	I(7, hold_by_granted_edge, "a CPU holds a place by one granted edge that leads to the head") \
	I(8, told_known, "a told edge is READY, GRANTED or in its CPU's inbox") \
	I(9, inbox_kicked, "a CPU with a bit in its inbox has a kick pending") \
	I(10, spent_not_picked, "a SPENT edge is granted only while a kick is pending") \
	I(11, order_exact, "an order holds exactly the READY edges that are not spent") \
	I(12, order_heap, "every heap is a leftist heap in key order") \
	I(13, servable_counted, "a node counts its servable edges") \
	I(14, able_told, "no edge is READY under a parent that was not told, none WAITING below an able child without reason") \
	I(15, time_accounted, "elapsed = used + idle + stolen on every CPU") \
	I(16, works_done, "no change is left to carry upwards") \
	I(17, claim_at_rest, "at rest there is no claim") \
	I(18, work_conserving, "at rest every parent edge of a shared node that has room and a child for it is told") \
	I(19, rank_at_rest, "at rest an edge that outranks one that holds a place is told") \
	I(20, spent_has_event, "a SPENT edge waits for an event") \
	I(21, sums, "the shares of a reservation or uniform node add up to its sum") \
	I(22, busy_at_rest, "at rest no CPU idles whose root could use it") \
	I(23, decided_at_rest, "at rest another decision would change nothing") \
	I(24, rounds_counted, "a node with rounds counts the children that want the CPU, and their importance") \
	I(25, highest_level_runs, "no child of a time-sharing node waits while one of a lower level has a CPU that it could use") \
	I(26, shares_counted, \
	  "a fair node not by start tags, or by surplus on several CPUs, has the weight of the children that want the CPU or are ahead") \
	I(27, eligible, "an eevdf node's order has who is eligible, or the first one to be so alone") \
	I(28, budget_kept, \
	  "what is left of a budget is at most one and the floor, what is owed at most one; its share is that of what it is now, " \
	  "which feedback keeps between what was asked for and the period, and what grows within the cap") \
	I(29, claims_kept, "the deadlines that a uniform node keeps for a child are in order, and what is left until them within bounds") \
	I(30, warp_kept, "a child of a fair node has its warp unless its limit is used up; an event waits only then") \
	I(31, constraints_listed, "a time constraint has work left, an event at its deadline, and one place in the list of its node") \
	I(32, credit_kept, "what a briefly blocked child has is at most its most, what it owes, too") \
	I(33, family_table, \
	  "the table of a spread node has one replica per CPU, in the tree of that CPU; its mask and counts agree with the replicas") \
	I(34, family_tasks, "a spread node counts the tasks below its replicas, a node counts its other children") \
	I(35, home_replica, "a task below a spread node is below the replica on its CPU, which alone can reach it") \
	I(36, transit_clean, "a task in transit is WAITING, not counted, in no order and without an event, and cannot use a CPU") \
	I(37, idle_told, "a CPU whose idle bit is set is idle, or has a kick pending") \
	I(38, idle_at_rest, "at rest the idle bit of every idle CPU is set") \
	I(39, spread_conserving, \
	  "at rest no CPU that serves a spread node idles while a task of that node that may run there waits on another CPU") \
	I(40, groups, \
	  "the CPUs that reach a shared node are of the group whose shared domain it is in; a group is named by its lowest CPU, has " \
	  "several CPUs only while it has shared nodes, which it counts, and their events are served by its lowest online CPU") \
	I(41, events_at_home, "the events of a domain are all those of edges below its nodes") \
	I(42, mixed_order, "a mixed-criticality node has the first of all children that wait in its order, and no other") \
	I(43, criticals_counted, \
	  "a mixed-criticality node counts its critical children that want the CPU and are not behind, and is in critical mode only " \
	  "while there is one") \
	I(44, periods_kept, "a mixed-criticality child that wants the CPU has a period and an event at its end, no other has an event") \
	TIERCE_ADDED_INVARIANTS(I)
#define TIERCE_ENUM(number, name, text) TIERCE_I_##name = number,
enum tierce_invariant { TIERCE_HOLDS, TIERCE_INVARIANT_LIST(TIERCE_ENUM) };
#undef TIERCE_ENUM

#define HOLDS(name, condition) \
	do { \
		if (!(condition)) \
			return TIERCE_I_##name; \
	} while (0)

/* Members of a heap, or 0xffffffff when it is none. Preorder without a stack: down left, else right, else up. */
static inline u32 heap_count(u32 root, u32 heap)
{
	u32 x = root, count = 0, from;
	if (!root)
		return 0;
	if (S.edge[root].link[heap].up)
		return 0xffffffff;
	for (;;) {
		u32 left = S.edge[x].link[heap].left, right = S.edge[x].link[heap].right;
		count++;
		if (count > TIERCE_EDGES || S.edge[x].link[heap].rank != S.edge[right].link[heap].rank + 1 ||
		    S.edge[left].link[heap].rank < S.edge[right].link[heap].rank)
			return 0xffffffff;
		if ((left && (S.edge[left].link[heap].up != x || link_before(left, x, heap))) ||
		    (right && (S.edge[right].link[heap].up != x || link_before(right, x, heap))))
			return 0xffffffff;
		if (left) {
			x = left;
			continue;
		}
		/* a leftist node without a left child has no right one */
		for (;;) {
			from = x;
			x = S.edge[x].link[heap].up;
			if (!x || from == root)
				return count;
			if (S.edge[x].link[heap].left == from && S.edge[x].link[heap].right) {
				x = S.edge[x].link[heap].right;
				break;
			}
			if (x == root && S.edge[x].link[heap].right == from)
				return count;
		}
	}
}

/* Of an attached edge: is it a child of the node? */
static inline bool is_child_of(u32 edge, u32 node)
{
	return S.edge[edge].parent == node && S.edge[edge].child && (S.edge[edge].flags & EDGE_ATTACHED);
}

#endif
