/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Errors of control operations, all named. 0 is success. Nothing has changed when one is returned. */
#ifndef TIERCE_ERRORS_H
#define TIERCE_ERRORS_H

#define TIERCE_ERROR_LIST(E) \
	E(1, no_such_node, "no such node or task") \
	E(2, no_such_edge, "no such edge") \
	E(3, no_such_policy, "no such policy") \
	E(4, out_of_nodes, "the node pool is used up") \
	E(5, out_of_edges, "the edge pool is used up") \
	E(6, too_deep, "more than 8 nodes from CPU to task") \
	E(7, parameter_out_of_range, "a parameter is outside its range") \
	E(8, deadline_beyond_period, "the deadline is longer than the period") \
	E(9, budget_beyond_deadline, "the budget is larger than the deadline") \
	E(10, utilisation_above_one, "the budgets of the node's children add up to more than one CPU") \
	E(11, still_in_use, "the node still has children or parents: it cannot go, nor change what it has chosen by name") \
	E(12, parents_after_children, "every parent of a node is attached before its first child") \
	E(13, parent_unattached, "the parent is not connected to a CPU") \
	E(14, task_cannot_be_parent, "a task has no children") \
	E(15, too_many_crossings, "more than 63 edges lead from one CPU into shared nodes") \
	E(16, cpu_has_root, "the CPU has a root already") \
	E(17, cpu_not_allowed, "the task may not run on any CPU of its parent") \
	E(18, affinity_below_inner_node, "a task that may not run on all CPUs sits below an inner shared node") \
	E(19, not_a_parent, "the edge does not belong to that node") \
	E(20, no_such_cpu, "no such CPU") \
	E(21, cycle, "an edge may not lead back to its own ancestor") \
	E(22, condition_across_cpus, "`when = spent` needs all parents of its child on one CPU") \
	E(23, still_running, "it is running; a decision has been asked for, try again after it") \
	E(24, out_of_rows, "the pool of shared nodes is used up") \
	E(25, already_attached, "the edge is attached already") \
	E(26, ranks_above_inner_head, "a node or task with several parents below shared nodes that CPUs compete for by rank") \
	E(27, several_cpus_in_order, "several CPUs reach a node that does not order by start tags") \
	E(28, warp_needs_start_tags, "a warp below a node that does not order by start tags") \
	E(29, deadline_needs_hard_budget, "a deadline below the period needs the replenishment `hard`") \
	E(30, recharge_needs_deadlines, "what recharges at once needs the order of deadlines") \
	E(31, sporadic_period_too_long, "the period of a sporadic budget is above 4 s") \
	E(32, utilisation_above_cap, "the budgets of the node's children add up to more than its cap") \
	E(33, feedback_needs_hard_wall_time, \
	  "a gain needs the charge `wall`, the replenishment `hard` and deadlines that are the periods") \
	E(34, limit_needs_warp, "a warp limit without a warp") \
	E(35, unwarp_needs_limit, "a time without warp, but no warp limit") \
	E(36, not_understood, "no parent policy supports time constraints") \
	E(37, constraint_not_feasible, "the node is not guaranteed so much until the deadline, beside what it has granted") \
	E(38, constraint_in_the_past, "the deadline of the time constraint is over") \
	E(39, too_many_constraints, "8 time constraints of the node's children are active") \
	E(40, constraint_already, "the task has a time constraint there") \
	E(41, no_constraint, "the task has no time constraint") \
	E(42, part_is_left_out, "it needs a part of the engine that this port or object was made without") \
	E(43, message_needs_one_cpu, "several CPUs reach the task, and none of them can answer for all") \
	E(44, policy_cannot_spread, "children of a node of this policy cannot move between replicas") \
	E(45, not_a_replica, "the node is not a replica of a spread node") \
	E(46, out_of_families, "the pool of spread nodes is used up") \
	E(47, replica_needs_one_cpu, "a replica of a spread node is in the tree of one CPU, and alone there") \
	E(48, spread_task_has_one_parent, "a task that moves between replicas has no other parent") \
	E(49, no_replica_there, "the spread node has no replica on that CPU, or the task is there already") \
	E(50, replicas_differ, "all replicas of a spread node choose the same by name") \
	E(51, budget_beyond_period, "the work of a child is more than its period") \
	E(52, work_hi_below_work, "the worst that a critical child needs is less than its usual work") \
	E(53, section_needs_budget_by_priority, \
	  "no budget with the order `fixed-priority` and the replenishment `hard` or `periodic` is above the task, which has the CPU") \
	E(54, section_beyond_budget, "what is left of the budget is less than the section takes") \
	E(55, section_already, "a task below the budget has a lock already") \
	E(56, no_section, "no task below the budget has a lock") \
	E(57, promise_beyond_its_period, "more is promised to the edge than the period of the promise is long")

#endif
