/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Control operations: make, change and remove nodes and edges, while everything runs. Each checks first and then acts in
 * code that cannot fail, so a refused call has changed nothing. Parameters travel through S.stage. Callers serialise
 * control operations among themselves; the domains concerned are locked here.
 *
 * A graph is built from the CPUs down: graph_root, then for each node all its parent edges before its first child. That
 * order alone excludes cycles, fixes levels and tells the domain of every node the moment it is attached.
 */
#include "service.h"
#include "engine/stage.c"
#include "engine/nodes.c"
#include "engine/groups.c"
#include "engine/edges.c"

/* The domain of an edge's parent. A spread task moves: its home is locked at once. */
#define CONTROL_LOCKED (1u << 30)
static inline u32 control_domain(u32 edge)
{
	if (!SEVERAL_CPUS || !(edge_at(edge)->flags & EDGE_SPREAD) || !(edge_at(edge)->flags & EDGE_ATTACHED))
		return edge_domain(edge);
	return task_lock(edge_at(edge)->child) | CONTROL_LOCKED;
}

/* Locks the CPU of a domain, of a shared one the CPU that serves its events; with `all`, all others, too. */
TIERCE_FN u32 control_lock_cpu(u32 domain, u32 all)
{
	u32 cpu, tries;
	if (domain & CONTROL_LOCKED)
		return domain & ~CONTROL_LOCKED;
	if (all) {
		cpus_lock();
		return server_of(domain);
	}
	if (domain < TIERCE_CPUS) {
		port_lock(domain);
		return domain;
	}
	for (tries = ZERO; tries < 64 && CAN_LOOP; tries++) {
		cpu = server_of(domain);
		port_lock(cpu);
		if (cpu == server_of(domain))
			return cpu; /* from here on it is the same: another needs the locks of all CPUs */
		port_unlock(cpu);
	}
	port_fail("graph: who serves the shared events changes all the time");
	return 0;
}
/* What an edge between this CPU's domain and the shared one may touch is locked, and brought to `now`. */
static inline u64 control_enter(u32 cpu, u64 now)
{
	now = cpu_advance(cpu, 0, now, 0);
	shared_lock(cpu);
	return now;
}
static inline void control_leave(u32 cpu, bool all, u64 now, u32 op, u32 a, u32 b, u64 value, u64 at, int error)
{
	if (!error)
		looks_again(cpu);
	settle_and_compare(cpu, now, 0);
	port_trace(TIERCE_EV_control, cpu, op, a, (u64)error, now);
	port_record(op, a, b, value, at, (u64)error, cpu_at(cpu)->drained);
	shared_release(cpu);
	if (all)
		cpus_unlock();
	else
		cpu_unlock(cpu);
}

TIERCE_FN int graph_attach(u32 edge, u64 now)
{
	u64 at = now;
	u32 cpu;
	bool joins;
	int error;
	if (!edge_exists(edge) || !edge_at(edge)->parent)
		return TIERCE_E_no_such_edge;
	if (edge_at(edge)->flags & EDGE_ATTACHED)
		return TIERCE_E_already_attached;
	if (edge_domain(edge) == TIERCE_NODOMAIN)
		return TIERCE_E_parent_unattached;
	joins = edge_joins_groups(edge);
	cpu = control_lock_cpu(edge_domain(edge), joins);
	now = control_enter(cpu, now);
	error = edge_link(edge, now);
	control_leave(cpu, joins, now, TIERCE_OP_attach, edge, 0, 0, at, error);
	return error;
}

TIERCE_FN int graph_root(u32 cpu, u32 node, u64 now)
{
	u64 at = now;
	u32 edge;
	bool joins;
	int error;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	if (!node_exists(node))
		return TIERCE_E_no_such_node;
	if (cpu_at(cpu)->root_edge)
		return TIERCE_E_cpu_has_root;
	edge = edge_take(TIERCE_NONE, node, 0, 0);
	if (!edge)
		return TIERCE_E_out_of_edges;
	edge_at(edge)->cpu = cpu;
	joins = edge_joins_groups(edge);
	now = control_enter(control_lock_cpu(cpu, joins), now);
	error = edge_link(edge, now);
	if (error)
		edge_give_back(edge);
	else
		cpu_at(cpu)->root_edge = edge;
	control_leave(cpu, joins, now, TIERCE_OP_root, cpu, node, 0, at, error);
	return error;
}

/* An edge, of a domain that is locked, takes the staged parameters. */
TIERCE_FN int edge_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 was = x->state, order = was == TIERCE_READY ? order_link(edge)->rank : 0;
	int error;
	if (order)
		edge_leaves(edge, TIERCE_MOVED, now);
	error = policy_set(edge, now);
	if (order) {
		edge_asks(edge, TIERCE_RESTORED, now);
		edge_spent_changed(edge, now);
	}
	node_reordered(x->parent, now);
	if (was != TIERCE_WAITING)
		deadline_follow(edge, now);
	return error;
}

TIERCE_FN int graph_set(u32 edge, u64 now)
{
	u64 at = now;
	edge_t *x = edge_at(edge);
	u32 cpu;
	int error;
	if (!edge_exists(edge) || !x->parent || !(x->flags & EDGE_ATTACHED))
		return TIERCE_E_no_such_edge;
	if (!stage_fits_edge(parent_of(edge)->kind))
		return TIERCE_E_parameter_out_of_range;
	cpu = control_lock_cpu(control_domain(edge), false);
	now = control_enter(cpu, now);
	error = edge_set(edge, now);
	control_leave(cpu, false, now, TIERCE_OP_set, edge, 0, 0, at, error);
	return error;
}

TIERCE_FN int graph_node_set(u32 node, u64 now)
{
	u64 at = now;
	u32 cpu;
	if (!node_exists(node) || node_at(node)->kind == TIERCE_TASK)
		return TIERCE_E_no_such_node;
	if (!stage_fits_node(node_at(node)->kind))
		return TIERCE_E_parameter_out_of_range;
	if ((node_children(node) || node_is_one_of_several(node)) && !stage_keeps_choices(node))
		return TIERCE_E_still_in_use;
	if (node_at(node)->domain == TIERCE_NODOMAIN) { /* nobody runs it yet */
		node_params_take(node);
		port_record(TIERCE_OP_node_set, node, 0, 0, now, TIERCE_OK, 0);
		return TIERCE_OK;
	}
	cpu = control_lock_cpu(node_at(node)->domain, false);
	now = control_enter(cpu, now);
	node_params_take(node);
	node_reordered(node, now);
	control_leave(cpu, false, now, TIERCE_OP_node_set, node, 0, 0, at, TIERCE_OK);
	return TIERCE_OK;
}

/* Take a WAITING or READY edge out. */
static inline void edge_unlink(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 child = x->child, other = node_at(child)->first_parent;
	edge_release(edge, TIERCE_GONE, now);
	if (x->parent) {
		policy_detach(edge);
		if (x->flags & EDGE_SPREAD)
			AT(S.family, parent_of(edge)->family).tasks--;
		else
			node_at(x->parent)->children--;
	} else {
		cpu_at(x->cpu)->root_edge = TIERCE_NONE;
	}
	if (other == edge)
		node_at(child)->first_parent = x->next_parent;
	while (other && other != edge && CAN_LOOP) {
		if (edge_at(other)->next_parent == edge)
			edge_at(other)->next_parent = x->next_parent;
		other = edge_at(other)->next_parent;
	}
	if (x->flags & EDGE_CROSSING) {
		AT(cpu_at(x->cpu)->crossing, x->bit) = TIERCE_NONE;
		cpu_at(x->cpu)->crossings--;
		if (node_at(child)->claim_edge == edge) {
			node_at(child)->claim_edge = TIERCE_NONE;
			node_at(child)->claim_kept = 0;
			cpu_at(x->cpu)->claims--;
		}
	}
	if (!node_at(child)->first_parent) { /* it is on its own again, and may be attached elsewhere */
		if (node_at(child)->row) {
			AT(S.spare_row, S.spare_rows++) = node_at(child)->row;
			node_at(child)->row = 0;
		}
		if (node_at(child)->family) {
			AT(AT(S.family, node_at(child)->family).replica, node_at(child)->domain) = TIERCE_NONE;
			family_remove(node_at(child)->family, node_at(child)->domain);
		}
		node_moves(child, TIERCE_NODOMAIN);
		reach_clear(child);
		node_at(child)->level = 0;
		node_at(child)->conditional = 0;
		node_at(child)->ranked = 0;
	} else if (node_at(child)->conditional) {
		work_push(child);
	}
	edges_plain(child);
	edge_give_back(edge);
}

/* The edge, of a domain that is locked, is taken out. One on a path is left by the next decision: it has to be tried again. */
TIERCE_FN int edge_detach(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state != TIERCE_GRANTED && !((x->flags & EDGE_CROSSING) && cpu_at(x->cpu)->leaves)) {
		edge_unlink(edge, now);
		return TIERCE_OK;
	}
	x->flags |= EDGE_SHUT;
	x->told = TIERCE_UNTOLD;
	edge_release(edge, TIERCE_GONE, now);
	kick(x->state == TIERCE_GRANTED ? x->on_cpu : x->cpu);
	return TIERCE_E_still_running;
}

TIERCE_FN int graph_detach(u32 edge, u64 now)
{
	u64 at = now;
	edge_t *x = edge_at(edge);
	u32 cpu, child;
	bool parts;
	int error = TIERCE_OK;
	if (!edge_exists(edge))
		return TIERCE_E_no_such_edge;
	if (!(x->flags & EDGE_ATTACHED)) {
		edge_give_back(edge);
		port_record(TIERCE_OP_detach, edge, 0, 0, at, TIERCE_OK, 0);
		return TIERCE_OK;
	}
	child = x->child;
	if (node_at(child)->first_parent == edge && !x->next_parent && node_children(child))
		return TIERCE_E_still_in_use;
	parts = edge_parts_group(edge);
	cpu = control_lock_cpu(control_domain(edge), parts);
	now = control_enter(cpu, now);
	error = edge_detach(edge, now);
	control_leave(cpu, parts, now, TIERCE_OP_detach, edge, 0, 0, at, error);
	return error;
}

/* A task below shared nodes may run on these CPUs from now on: its edges are in the order of all CPUs, or in those of some. */
TIERCE_FN int edges_allow(u32 task, u64 now)
{
	cpus_t cpus = allowed_of(task);
	u32 edge;
	for (edge = node_at(task)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		edge_t *x = edge_at(edge);
		cpus_t reach;
		bool ordered = order_link(edge)->rank != 0;
		if (!edge_is_inner(edge))
			continue;
		reach = reach_of(x->parent);
		if (ordered)
			edge_leaves(edge, TIERCE_MOVED, now);
		x->flags &= ~EDGE_LOCAL;
		x->cpu = TIERCE_CPUS;
		if (!cpus_within(reach, cpus)) {
			x->flags |= EDGE_LOCAL;
			x->cpu = cpus_lowest(cpus, reach);
		}
		if (ordered) {
			edge_asks(edge, TIERCE_RESTORED, now);
			edge_spent_changed(edge, now); /* a reserve may have ended meanwhile */
		}
		work_push(x->parent);
		if (x->state == TIERCE_GRANTED && !cpus_has(cpus, x->on_cpu))
			kick(x->on_cpu);
	}
	return 0;
}

/* May the task, which is not spread, be bound to these CPUs? */
PORT_ASIDE int allow_error(u32 task, cpus_t cpus)
{
	u32 edge, domain = node_at(task)->domain;
	if (domain < TIERCE_CPUS && !cpus_has(cpus, domain))
		return TIERCE_E_cpu_not_allowed;
	if (is_shared(domain) && !cpus_meet(cpus, reach_of(task)))
		return TIERCE_E_cpu_not_allowed;
	for (edge = node_at(task)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		cpus_t reach = edge_at(edge)->parent ? reach_of(edge_at(edge)->parent) : cpus_all();
		if ((edge_at(edge)->flags & EDGE_CROSSING) && !cpus_has(cpus, edge_at(edge)->cpu))
			return TIERCE_E_cpu_not_allowed;
		if (!cpus_meet(cpus, reach))
			return TIERCE_E_cpu_not_allowed;
		if (edge_is_inner(edge) && !cpus_within(reach, cpus) && node_is_inner(edge_at(edge)->parent))
			return TIERCE_E_affinity_below_inner_node;
	}
	return TIERCE_OK;
}

TIERCE_FN int graph_allow(u32 task, u64 bits, u64 now)
{
	u64 at = now;
	node_t *n = node_at(task);
	u32 domain, first, cpu;
	cpus_t cpus;
	int error;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpus = cpus_staged(bits);
	first = n->first_parent;
	if (SEVERAL_CPUS && first && (edge_at(first)->flags & EDGE_SPREAD)) {
		if (!cpus_meet(cpus, family_cpus(parent_of(first)->family)))
			return TIERCE_E_cpu_not_allowed;
		domain = control_domain(first); /* where it is, the port sees: it is not moved here */
	} else {
		error = allow_error(task, cpus);
		if (error)
			return error;
		domain = n->domain;
	}
	cpu = control_lock_cpu(domain, false);
	now = control_enter(cpu, now);
	allowed_set(task, cpus);
	if (is_shared(node_at(task)->domain))
		edges_allow(task, now);
	control_leave(cpu, false, now, TIERCE_OP_allow, task, 0, cpus_first(cpus), at, TIERCE_OK);
	return TIERCE_OK;
}

/* All CPUs are locked, so that every entry knows whether its CPU serves the events of its group. */
TIERCE_FN int graph_online(u32 cpu, u32 online, u64 now)
{
	u32 lowest, bit;
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	cpus_lock();
	now = control_enter(cpu, now);
	cpu_at(cpu)->online = online;
	if (online)
		cpu_at(cpu)->back_ns = now;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++)
		if (AT(cpu_at(cpu)->crossing, bit))
			work_push(edge_at(AT(cpu_at(cpu)->crossing, bit))->child);
	for (lowest = ZERO; lowest + 1 < S.cpus && CAN_LOOP; lowest++)
		if (cpu_at(lowest)->online)
			break;
	S.lowest = lowest;
	if (SHARES && group_at(shared_of(cpu))->nodes)
		group_serve(shared_of(cpu));
	cpu_settle(cpu, now);
	kick(cpu);
	port_record(TIERCE_OP_online, cpu, online, 0, at, TIERCE_OK, cpu_at(cpu)->drained);
	shared_release(cpu);
	cpus_unlock();
	return TIERCE_OK;
}
