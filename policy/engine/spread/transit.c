/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A task leaves the replica of its home, is in transit, and enters another one. */

/* The first task of a heap of edges that wait that may go to CPU `to` (TIERCE_CPUS: elsewhere), in its order from the top. */
TIERCE_FN u32 heap_first(u32 x, u32 to)
{
	u32 from = TIERCE_NONE, step, next;
	for (step = ZERO; x && step < SPREAD_LOOKS && CAN_LOOP; step++) {
		next = TIERCE_NONE;
		if (!from) {
			cpus_t allowed = allowed_of(edge_at(x)->child);
			bool may = to < TIERCE_CPUS ? cpus_has(allowed, to) : cpus_have_other(allowed, parent_of(x)->domain);
			if (may && (edge_at(x)->flags & EDGE_SPREAD) && port_movable(edge_at(x)->child))
				return x;
			next = order_link(x)->left;
		} else if (from == order_link(x)->left) {
			next = order_link(x)->right;
		}
		from = next ? TIERCE_NONE : x;
		x = next ? next : order_link(x)->up;
	}
	return TIERCE_NONE;
}

/* The same of all that wait below the replica: fair nodes by eligible deadlines have two heaps. */
TIERCE_FN u32 spread_first(u32 node, u32 to)
{
	u32 edge = heap_first(node_at(node)->order, to);
	return edge ? edge : heap_first(node_at(node)->share.later, to);
}

/* A child that waited has left, and the climb from there ended at `stop`: the next one may outrank what runs, where a warp
 * decides. */
TIERCE_FN int first_changed(u32 cpu, u32 stop, u64 now)
{
	node_t *n;
	if (stop == CLIMBED_TO_TOP)
		return 0;
	n = node_at(stop);
	if (!stop || domain_at(cpu)->works ||
	    (n->running && n->order && policy_pick(stop, n->order, n->running, now) != n->running))
		kick(cpu);
	return 0;
}

TIERCE_FN int edge_departs(u32 edge)
{
	policy_depart(edge);
	return 0;
}

/* Under the lock of `cpu`, its home: it goes into transit, for CPU `to`. */
TIERCE_FN int task_departs(u32 task, u32 cpu, u32 to, u64 now)
{
	node_t *n = node_at(task);
	u32 edge = n->first_parent;
	edge_t *x = edge_at(edge);
	int error = TIERCE_OK;
	cpu_at(cpu)->drained = 0;
	if (now < cpu_at(cpu)->charged_ns)
		now = cpu_at(cpu)->charged_ns;
	if (!(x->flags & EDGE_SPREAD) || to >= S.cpus || to == cpu || !replica_on(parent_of(edge)->family, to)) {
		error = TIERCE_E_no_replica_there;
	} else if (x->state == TIERCE_GRANTED) {
		error = TIERCE_E_still_running;
	} else {
		x->restore = n->servable;
		if (n->servable) {
			n->servable = 0;
			first_changed(cpu, climb(task, now), now);
		}
		edge_departs(edge);
		n->domain = TIERCE_TRANSIT;
	}
	port_record(TIERCE_OP_leave, task, to, 0, now, error, 0);
	return error;
}

TIERCE_FN int graph_leave(u32 task, u32 to, u64 now)
{
	u32 cpu;
	int error;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu >= TIERCE_CPUS) {
		if (is_shared(cpu))
			shared_unlock(cpu);
		return TIERCE_E_no_replica_there;
	}
	error = task_departs(task, cpu, to, now);
	cpu_settle(cpu, now);
	unlock(cpu);
	return error;
}

TIERCE_FN int graph_enter(u32 task, u32 cpu, u32 why, u64 now)
{
	node_t *n = node_at(task);
	u32 edge, replica;
	u64 at = now;
	edge_t *x;
	if (!task_exists(task) || n->domain != TIERCE_TRANSIT || cpu >= S.cpus)
		return TIERCE_E_no_such_node;
	edge = n->first_parent;
	x = edge_at(edge);
	replica = replica_on(parent_of(edge)->family, cpu);
	if (!replica)
		return TIERCE_E_no_replica_there;
	port_lock(cpu);
	cpu_at(cpu)->drained = 0;
	if (now < cpu_at(cpu)->charged_ns)
		now = cpu_at(cpu)->charged_ns;
	port_trace(TIERCE_EV_migrate, cpu, task, parent_of(edge)->domain, (u64)why << 1 | x->restore, now);
	x->parent = replica;
	x->on_cpu = cpu;
	reach_only(task, cpu);
	n->tail = now;
	policy_arrive(edge, now);
	n->domain = cpu;
	if (x->restore) {
		x->restore = 0;
		n->servable = 1;
		edge_request(edge, TIERCE_MOVED, now);
		whole_compare(cpu, now);
	}
	port_record(TIERCE_OP_enter, task, cpu, why, at, TIERCE_OK, 0);
	unlock(cpu);
	return TIERCE_OK;
}

PORT_FLAT int graph_home(u32 task, u32 cpu, u64 now)
{
	int error = graph_leave(task, cpu, now);
	if (error)
		return error;
	return graph_enter(task, cpu, edge_at(node_at(task)->first_parent)->restore ? TIERCE_AFFINITY : TIERCE_WAKE_UP, now);
}
