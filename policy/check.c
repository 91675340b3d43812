/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The checker: what holds after every operation, and what holds at rest. Each broken rule has its number and a name, so
 * that a failure says which. It looks at everything and may take long: for tests and debugging, on native builds.
 * It does not check time (that supply keeps its promises): the policies' conservation laws are tested from the events.
 */
#include "check.h"

static _Thread_local u32 check_at; /* the CPU, edge or node looked at last */

static u32 policy_check(u32 edge, u32 rest)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: return prefix##_check(edge, rest);
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return TIERCE_HOLDS;
}

static u32 policy_check_node(u32 node)
{
	switch (node_at(node)->kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: return prefix##_check_node(node);
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return TIERCE_HOLDS;
}

static bool edge_is_left(u32 edge)
{
	cpu_t *c = &S.cpu[S.edge[edge].on_cpu];
	u32 i;
	for (i = 0; i < c->leaves; i++)
		if (c->leave[i] == edge)
			return true;
	return false;
}

static bool edge_is_on_path(u32 edge, u32 cpu)
{
	u32 i;
	for (i = 0; i < S.cpu[cpu].path_length; i++)
		if (S.cpu[cpu].path[i] == edge)
			return true;
	return false;
}

static u32 check_edge(u32 edge)
{
	edge_t *x = edge_at(edge);
	bool able = node_is_able(x->child), ordered = S.link[edge].rank != 0;
	if (x->state == TIERCE_GRANTED)
		HOLDS(path_granted, x->on_cpu < S.cpus && (edge_is_on_path(edge, x->on_cpu) || edge_is_left(edge)));
	if (!edge_is_ahead(edge))
		HOLDS(order_exact, ordered == (x->parent && x->state == TIERCE_READY && !(x->flags & EDGE_SPENT)));
	if (!(x->flags & EDGE_CROSSING) || !(S.inbox[x->cpu].bits >> x->bit & 1)) /* else its CPU has yet to look */
		HOLDS(servable_counted, edge_is_servable(edge) == !!(x->flags & EDGE_COUNTED));
	if (x->flags & EDGE_SPENT) {
		HOLDS(spent_has_event, S.link[TIERCE_EDGES + edge].rank != 0);
		if (x->state == TIERCE_GRANTED && !edge_is_left(edge))
			HOLDS(spent_not_picked, S.cpu[x->on_cpu].kick_pending || S.cpu[x->on_cpu].outside);
	}
	if (x->flags & EDGE_HEAD) {
		u32 cpu = x->cpu;
		if (x->told && (x->flags & EDGE_CROSSING))
			HOLDS(told_known, x->state != TIERCE_WAITING || (S.inbox[cpu].bits >> x->bit & 1));
		if (x->told && !(x->flags & EDGE_CROSSING))
			HOLDS(told_known, x->state != TIERCE_WAITING);
		if (!x->told)
			HOLDS(able_told, x->state != TIERCE_READY);
	} else {
		if (x->state == TIERCE_READY)
			HOLDS(able_told, able);
		if (x->state == TIERCE_WAITING)
			HOLDS(able_told, !able || (x->flags & EDGE_SHUT));
	}
	return TIERCE_HOLDS;
}

static u32 check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, counted = 0, ordered = 0, granted = 0, heap, cpu, holds = 0, broken;
	if (n->kind != TIERCE_TASK) {
		for (edge = 1; edge < S.fresh_edge; edge++) {
			if (!is_child_of(edge, node))
				continue;
			counted += !!(S.edge[edge].flags & EDGE_COUNTED);
			ordered += S.link[edge].rank != 0;
			granted += S.edge[edge].state == TIERCE_GRANTED && !edge_is_left(edge);
		}
		HOLDS(servable_counted, counted == n->servable);
		heap = heap_count(n->order);
		HOLDS(order_heap, heap != 0xffffffff);
		for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
			u32 more = heap_count(S.row[n->row].order[cpu]);
			HOLDS(order_heap, more != 0xffffffff);
			heap += more;
		}
		if (n->kind == TIERCE_fair)
			heap += heap_count(n->share.later) + heap_count(n->share.ahead);
		HOLDS(order_exact, heap == ordered);
		if (!n->row)
			HOLDS(one_child_per_cpu, granted <= 1);
		broken = policy_check_node(node);
		if (broken)
			return broken;
	}
	for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
		u32 hold = S.row[n->row].hold[cpu], by = S.row[n->row].edge[cpu];
		holds += hold != TIERCE_HOLD_FREE;
		if (hold == TIERCE_HOLD_EDGE)
			HOLDS(hold_by_granted_edge, S.edge[by].child == node && S.edge[by].state == TIERCE_GRANTED &&
							S.edge[by].on_cpu == cpu && edge_is_on_path(by, cpu));
	}
	if (n->row) {
		HOLDS(holds_counted, holds == n->holds);
		HOLDS(holds_counted, holds <= n->concurrency);
	}
	return TIERCE_HOLDS;
}

static u32 check_cpu(u32 cpu)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i, other;
	for (i = 0; i < c->path_length; i++) {
		u32 edge = c->path[i];
		HOLDS(path_granted, S.edge[edge].state == TIERCE_GRANTED && S.edge[edge].on_cpu == cpu);
		if (i)
			HOLDS(path_connected, S.edge[edge].parent == S.edge[c->path[i - 1]].child);
		else
			HOLDS(path_connected, edge == c->root_edge);
	}
	if (c->task) {
		HOLDS(one_task_per_cpu, c->path_length && S.edge[c->path[c->path_length - 1]].child == c->task);
		for (other = 0; other < S.cpus; other++)
			HOLDS(one_cpu_per_task, other == cpu || S.cpu[other].task != c->task);
	} else {
		HOLDS(one_task_per_cpu, !c->path_length || c->kick_pending || !S.quiet);
	}
	if (S.inbox[cpu].bits)
		HOLDS(inbox_kicked, c->kick_pending);
	HOLDS(works_done, !S.domain[cpu].works);
	HOLDS(order_heap, heap_count(S.domain[cpu].events) != 0xffffffff);
	HOLDS(time_accounted, c->charged_ns - S.begin_ns == c->used_ns + c->idle_ns + c->stolen_ns);
	return TIERCE_HOLDS;
}

/* At rest: no kick pending, nobody leaving. */
static u32 check_rest(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, cpu, room;
	if (!n->row)
		return TIERCE_HOLDS;
	HOLDS(claim_at_rest, !n->claim_edge);
	room = head_room(node, TIERCE_CPUS) > 0;
	for (edge = n->first_parent; edge; edge = S.edge[edge].next_parent) {
		if ((S.edge[edge].flags & (EDGE_CROSSING | EDGE_SHUT)) != EDGE_CROSSING)
			continue;
		cpu = S.edge[edge].cpu;
		if (S.row[n->row].hold[cpu] != TIERCE_HOLD_FREE || !S.cpu[cpu].online || S.cpu[cpu].outside)
			continue;
		if (n->kind == TIERCE_TASK && !(n->allowed >> cpu & 1))
			continue;
		if (room && head_has_child(node, cpu))
			HOLDS(work_conserving, S.edge[edge].told);
		if (!room)
			HOLDS(rank_at_rest, S.edge[edge].told || !head_outranks(node, edge, cpu));
	}
	return TIERCE_HOLDS;
}

TIERCE_FN u32 graph_check(u32 rest)
{
	u32 id, broken, cpu;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		u32 root = S.cpu[cpu].root_edge;
		check_at = cpu;
		broken = check_cpu(cpu);
		if (broken)
			return broken;
		if (rest && root && S.cpu[cpu].online && !S.cpu[cpu].outside) {
			HOLDS(busy_at_rest, S.cpu[cpu].task || !edge_is_servable(root));
			walk(cpu, S.cpu[cpu].charged_ns);
			S.cpu[cpu].shares = 0;
			HOLDS(decided_at_rest, path_same(cpu));
		}
	}
	HOLDS(works_done, !S.domain[TIERCE_SHARED].works);
	for (id = 1; id < S.fresh_edge; id++) {
		if (!S.edge[id].child || !(S.edge[id].flags & EDGE_ATTACHED))
			continue;
		check_at = id;
		broken = check_edge(id);
		if (!broken && S.edge[id].parent)
			broken = policy_check(id, rest);
		if (broken)
			return broken;
	}
	for (id = 1; id < S.fresh_node; id++) {
		if (S.node[id].kind == TIERCE_FREE || S.node[id].domain == TIERCE_NODOMAIN)
			continue;
		check_at = id;
		broken = check_node(id);
		if (!broken && rest)
			broken = check_rest(id);
		if (broken)
			return broken;
	}
	return TIERCE_HOLDS;
}
