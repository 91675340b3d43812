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
	bool able = node_is_able(x->child), ordered = S.edge[edge].link[TIERCE_ORDER].rank != 0;
	if (x->state == TIERCE_GRANTED)
		HOLDS(path_granted, x->on_cpu < S.cpus && (edge_is_on_path(edge, x->on_cpu) || edge_is_left(edge)));
	if (!edge_is_ahead(edge))
		HOLDS(order_exact, ordered == (x->parent && x->state == TIERCE_READY && !(x->flags & EDGE_SPENT)));
	if (!(x->flags & EDGE_CROSSING) || !(S.inbox[x->cpu].bits >> x->bit & 1)) /* else its CPU has yet to look */
		HOLDS(servable_counted, edge_is_servable(edge) == !!(x->flags & EDGE_COUNTED));
	if (x->flags & EDGE_SPENT) {
		HOLDS(spent_has_event, S.edge[edge].link[TIERCE_EVENTS].rank != 0);
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

static bool reach_is_of_group(u32 node)
{
	u32 cpu;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (cpus_has(reach_of(node), cpu) && shared_of(cpu) != S.node[node].domain)
			return false;
	return true;
}

static u32 check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, counted = 0, ordered = 0, granted = 0, children = 0, heap, cpu, holds = 0, broken;
	if (n->kind != TIERCE_TASK) {
		for (edge = 1; edge < S.fresh_edge; edge++) {
			if (!is_child_of(edge, node))
				continue;
			counted += !!(S.edge[edge].flags & EDGE_COUNTED);
			children += !(S.edge[edge].flags & EDGE_SPREAD);
			ordered += S.edge[edge].link[TIERCE_ORDER].rank != 0;
			granted += S.edge[edge].state == TIERCE_GRANTED && !edge_is_left(edge);
		}
		HOLDS(servable_counted, counted == n->servable);
		HOLDS(family_tasks, children == n->children);
		heap = heap_count(n->order, TIERCE_ORDER);
		HOLDS(order_heap, heap != 0xffffffff);
		for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
			u32 more = heap_count(ROW(n->row, order, cpu), TIERCE_ORDER);
			HOLDS(order_heap, more != 0xffffffff);
			heap += more;
		}
		if (n->kind == TIERCE_fair)
			heap += heap_count(n->share.later, TIERCE_ORDER) + heap_count(n->share.ahead, TIERCE_ORDER);
		for (cpu = 0; n->kind == TIERCE_mixed_criticality && cpu < 3; cpu++)
			heap += heap_count(n->mixed.waiting[cpu], TIERCE_ORDER);
		HOLDS(order_exact, heap == ordered);
		if (!n->row)
			HOLDS(one_child_per_cpu, granted <= 1);
		broken = policy_check_node(node);
		if (broken)
			return broken;
	}
	for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
		u32 hold = ROW(n->row, hold, cpu), by = ROW(n->row, edge, cpu);
		holds += hold != TIERCE_HOLD_FREE;
		if (hold == TIERCE_HOLD_EDGE)
			HOLDS(hold_by_granted_edge, S.edge[by].child == node && S.edge[by].state == TIERCE_GRANTED &&
							S.edge[by].on_cpu == cpu && edge_is_on_path(by, cpu));
	}
	if (is_shared(n->domain))
		HOLDS(groups, reach_is_of_group(node));
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
	HOLDS(time_accounted, c->charged_ns - S.begin_ns == c->used_ns + c->idle_ns + c->stolen_ns);
	return TIERCE_HOLDS;
}

static u32 check_domains(void)
{
	u32 nodes[TIERCE_DOMAINS] = {0}, events[TIERCE_DOMAINS] = {0}, id, domain;
	for (id = 1; id < S.fresh_edge; id++)
		if (S.edge[id].child && S.edge[id].link[TIERCE_EVENTS].rank)
			events[parent_of(id)->domain]++;
	for (id = 1; id < S.fresh_node; id++)
		if (S.node[id].kind != TIERCE_FREE && S.node[id].domain < TIERCE_DOMAINS)
			nodes[S.node[id].domain]++;
	for (domain = 0; domain < TIERCE_DOMAINS; domain++) {
		u32 count = heap_count(S.domain[domain].events, TIERCE_EVENTS);
		check_at = domain;
		HOLDS(works_done, !S.domain[domain].works);
		HOLDS(order_heap, count != 0xffffffff);
		HOLDS(events_at_home, count == events[domain]);
		HOLDS(groups, !is_shared(domain) || group_at(domain)->nodes == nodes[domain]);
	}
	return TIERCE_HOLDS;
}

static u32 check_group(u32 cpu)
{
	u32 group = S.cpu[cpu].group, server = group;
	struct tierce_group *shared = &S.group[group];
	while (server < S.cpus && !(S.cpu[server].group == group && S.cpu[server].online))
		server++;
	server = server < S.cpus ? server : group;
	HOLDS(groups, group <= cpu && S.cpu[group].group == group && (shared->nodes || group == cpu));
	HOLDS(groups, !shared->nodes || shared->timer == server);
	HOLDS(groups, S.cpu[cpu].serves == (shared->nodes && cpu == server ? TIERCE_CPUS + group : 0));
	return TIERCE_HOLDS;
}

/* Is the node reached from the CPU of its domain alone? */
static bool reach_is_only(u32 node)
{
	return cpus_has(reach_of(node), S.node[node].domain) && !cpus_have_other(reach_of(node), S.node[node].domain);
}

/* A task below a spread node. */
static u32 check_spread(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(x->child), *replica = parent_of(edge);
	HOLDS(home_replica, n->kind == TIERCE_TASK && n->first_parent == edge && !x->next_parent && !n->row && replica->family);
	HOLDS(home_replica, x->flags & EDGE_PLAIN);
	if (n->domain == TIERCE_TRANSIT) {
		HOLDS(transit_clean, x->state == TIERCE_WAITING && !(x->flags & EDGE_COUNTED) && !n->servable);
		HOLDS(transit_clean, !S.edge[edge].link[TIERCE_ORDER].rank && !S.edge[edge].link[TIERCE_EVENTS].rank);
		HOLDS(transit_clean, n->on_cpu >= S.cpus || S.cpu[n->on_cpu].task != x->child);
		return TIERCE_HOLDS;
	}
	HOLDS(home_replica, n->domain < S.cpus && replica->domain == n->domain && reach_is_only(x->child));
	HOLDS(home_replica, replica_on(replica->family, n->domain) == x->parent && x->on_cpu == n->domain && !x->restore);
	return TIERCE_HOLDS;
}

/* A spread node. */
static u32 check_family(u32 family)
{
	struct tierce_family *f = &S.family[family];
	u32 id, cpu, replicas = 0, tasks = 0;
	for (id = 1; id < S.fresh_node; id++) {
		node_t *n = node_at(id);
		if (n->kind == TIERCE_FREE || n->family != family)
			continue;
		replicas++;
		HOLDS(family_table, n->kind == f->kind && !n->row);
		if (n->domain == TIERCE_NODOMAIN)
			continue;
		HOLDS(family_table, n->domain < S.cpus && reach_is_only(id) && f->replica[n->domain] == id);
	}
	for (cpu = 0; cpu < S.cpus; cpu++) {
		id = f->replica[cpu];
		HOLDS(family_table, !!id == cpus_has(family_cpus(family), cpu));
		if (!id)
			continue;
		HOLDS(family_table, S.node[id].kind == f->kind && S.node[id].family == family && S.node[id].domain == cpu);
	}
	for (id = 1; id < S.fresh_edge; id++)
		if (S.edge[id].child && S.edge[id].parent &&
		    (S.edge[id].flags & (EDGE_SPREAD | EDGE_ATTACHED)) == (EDGE_SPREAD | EDGE_ATTACHED))
			tasks += parent_of(id)->family == family;
	HOLDS(family_table, replicas == f->replicas && !f->kind == !f->replicas);
	HOLDS(family_tasks, tasks == f->tasks);
	return TIERCE_HOLDS;
}

/* Who else could be told that this CPU is idle? Its bit is set after each decision for nothing, and cleared by whoever asks it to
 * decide: between the two it has a kick pending, or a task is on its way to it. */
static u32 check_idle(u32 cpu, u32 rest)
{
	cpu_t *c = &S.cpu[cpu];
	bool idle = !c->task && c->online && !c->outside;
	if (!SPREADS)
		return TIERCE_HOLDS;
	if (is_idle(cpu))
		HOLDS(idle_told, c->idle && (idle || c->kick_pending));
	HOLDS(idle_told, !c->task || !c->idle);
	if (rest)
		HOLDS(idle_at_rest, !idle || is_idle(cpu));
	return TIERCE_HOLDS;
}

/* Would a task below the replica of an idle CPU be run? Where a budget above it waits for a request, only that tells: it may be
 * found spent, or replenished by then. Of such a replica nothing is said. */
static bool replica_serves(u32 node)
{
	while (node) {
		u32 edge = S.node[node].first_parent, kind = S.edge[edge].kind;
		if (S.edge[edge].next_parent || (S.edge[edge].flags & (EDGE_SPENT | EDGE_SHUT)))
			return false;
		if (kind == TIERCE_reservation || kind == TIERCE_slots || kind == TIERCE_uniform ||
		    kind == TIERCE_briefly_blocked)
			return false;
		node = S.edge[edge].parent;
	}
	return true;
}

/* At rest, which for spread nodes says more: every CPU that decided for nothing has looked for tasks that wait elsewhere
 * (graph_pull), and every task that began to wait on a busy CPU has been offered (graph_offer). */
static u32 check_spread_rest(u32 edge)
{
	edge_t *x = edge_at(edge);
	u32 family = parent_of(edge)->family, cpu;
	if (x->state != TIERCE_READY || !port_movable(x->child))
		return TIERCE_HOLDS;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (cpus_has(allowed_of(x->child), cpu) && cpus_has(family_cpus(family), cpu) && cpu != S.node[x->child].domain)
			HOLDS(spread_conserving, S.cpu[cpu].task || S.cpu[cpu].outside || !S.cpu[cpu].online ||
						     !replica_serves(replica_on(family, cpu)));
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
		if (ROW(n->row, hold, cpu) != TIERCE_HOLD_FREE || !S.cpu[cpu].online || S.cpu[cpu].outside)
			continue;
		if (n->kind == TIERCE_TASK && !cpus_has(allowed_of(node), cpu))
			continue;
		if (room && head_has_child(node, cpu))
			HOLDS(work_conserving, S.edge[edge].told);
		if (!room)
			HOLDS(rank_at_rest, S.edge[edge].told || head_victim(node, edge, cpu) == TIERCE_CPUS);
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
		if (!broken)
			broken = check_idle(cpu, rest);
		if (!broken)
			broken = check_group(cpu);
		if (broken)
			return broken;
		if (rest && root && S.cpu[cpu].online && !S.cpu[cpu].outside) {
			HOLDS(busy_at_rest, S.cpu[cpu].task || !edge_is_servable(root));
			walk(cpu, S.cpu[cpu].charged_ns);
			S.cpu[cpu].shares = 0;
			HOLDS(decided_at_rest, path_same(cpu));
		}
	}
	broken = check_domains();
	if (broken)
		return broken;
	for (id = 1; id < S.fresh_edge; id++) {
		if (!S.edge[id].child || !(S.edge[id].flags & EDGE_ATTACHED))
			continue;
		check_at = id;
		broken = check_edge(id);
		if (!broken && S.edge[id].parent)
			broken = policy_check(id, rest);
		if (!broken && (S.edge[id].flags & EDGE_SPREAD))
			broken = check_spread(id);
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
	for (id = 1; id < S.families; id++) {
		check_at = id;
		broken = check_family(id);
		if (broken)
			return broken;
	}
	for (id = 1; rest && S.families && id < S.fresh_edge; id++) {
		if (!S.edge[id].child || (S.edge[id].flags & (EDGE_SPREAD | EDGE_ATTACHED)) != (EDGE_SPREAD | EDGE_ATTACHED))
			continue;
		check_at = id;
		broken = check_spread_rest(id);
		if (broken)
			return broken;
	}
	return TIERCE_HOLDS;
}
