/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A compiled-in plan: the control operations that make its graph, in order, with the ids that they give. The same sequence
 * makes the same graph on every target. `tierce embed` makes one from a plan's text.
 */
#ifndef TIERCE_PLAN_H
#define TIERCE_PLAN_H

#include "tierce.h"

enum plan_op { PLAN_NODE, PLAN_EDGE, PLAN_ROOT, PLAN_ATTACH };

struct plan_step {
	u8 op;
	u8 kind;		       /* node: policy, or TIERCE_TASK */
	u16 id;			       /* node, edge: the id it gets; attach: the edge; root: the node */
	u16 parent, child;	       /* edge */
	s32 rank;		       /* edge */
	u32 flags;		       /* edge: EDGE_WHEN_SPENT or 0; node: concurrency */
	u64 param[TIERCE_NODE_PARAMS]; /* node, attach */
};

struct plan_task {
	const char *name;
	u16 id;	   /* of its node */
	bool busy; /* load, for who plays it: it always wants the CPU; or a job every period */
	u64 period_ns, work_ns, deadline_ns, phase_ns;
};

struct plan {
	const struct plan_step *step;
	const struct plan_task *task;
	u32 steps, tasks;
	const char *header; /* of a trace: JSON as in docs/events.md */
};

#define PLAN_NODE(id_, kind_, ...) {.op = PLAN_NODE, .id = id_, .kind = kind_, .flags = 1, .param = {__VA_ARGS__}}
#define PLAN_TASK(id_)		   {.op = PLAN_NODE, .id = id_, .kind = TIERCE_TASK, .flags = 1}
#define PLAN_EDGE(id_, parent_, child_, rank_, flags_) \
	{.op = PLAN_EDGE, .id = id_, .parent = parent_, .child = child_, .rank = rank_, .flags = flags_}
#define PLAN_ROOT(node_)	   {.op = PLAN_ROOT, .id = node_}
#define PLAN_ATTACH(edge_, ...)	   {.op = PLAN_ATTACH, .id = edge_, .param = {__VA_ARGS__}}

#endif
