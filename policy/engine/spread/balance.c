/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Tasks that wait are given to CPUs that serve them earlier; those of an offline CPU to any. */

/* Of a replica without tasks, would one that comes have time there? If its CPU serves a replica of another spread node above it at this
 * moment, and if it has a budget that is not spent. (Below anything else nobody can tell whether it would be served at all.) */
TIERCE_FN int replica_has_place(u32 replica)
{
	u32 edge = node_at(replica)->first_parent, above = edge_at(edge)->parent;
	if (node_at(above)->family && node_at(above)->running)
		return 1;
	for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		above = edge_at(edge)->parent;
		if (!(edge_at(edge)->flags & (EDGE_SPENT | EDGE_SHUT)) && policy_gives_budgets(node_at(above)->kind) &&
		    replica_is_open(above))
			return 1;
	}
	return 0;
}

/* By how much the waiting child would be better off on another CPU. */
TIERCE_FN u64 cpu_ahead(u32 edge, u32 cpu, u64 now)
{
	u32 replica = replica_on(parent_of(edge)->family, cpu);
	if (!replica || !cpu_at(cpu)->online || cpu_at(cpu)->outside)
		return 0;
	if (!node_at(replica)->servable)
		return parent_of(edge)->servable > 1 && replica_has_place(replica);
	return policy_ahead(edge, replica, now);
}

/* The CPU to which the waiting child would best be given, TIERCE_CPUS: it is well where it is. */
TIERCE_FN u32 spread_better(u32 edge, u32 cpu, u64 now)
{
	u32 step, other = cpu, found = TIERCE_CPUS;
	cpus_t allowed = allowed_of(edge_at(edge)->child);
	u64 most = 0, ahead;
	for (step = ZERO + 1; step < S.cpus && CAN_LOOP; step++) { /* of equals the next one: so tasks go around */
		other = other + 1 < S.cpus ? other + 1 : 0;
		if (!cpus_has(allowed, other))
			continue;
		ahead = cpu_ahead(edge, other, now);
		if (ahead > most) {
			most = ahead;
			found = other;
		}
	}
	return found;
}

/* One task of that spread node that waits on `cpu` goes where it is better off: returns the task, in transit. */
static inline u64 spread_give(u32 family, u32 cpu, u64 now)
{
	u32 replica = replica_on(family, cpu), edge, to = TIERCE_CPUS, task = TIERCE_NONE;
	u64 clock, was;
	port_lock(cpu);
	clock = policy_clock(replica, now);
	was = AT(S.family, family).clock;
	if (clock > was)
		port_raise(&AT(S.family, family).clock, was, clock);
	edge = spread_first(replica, TIERCE_CPUS);
	if (edge)
		to = spread_better(edge, cpu, now);
	if (to < TIERCE_CPUS)
		task = edge_at(edge)->child;
	if (task && task_departs(task, cpu, to, now))
		task = TIERCE_NONE;
	cpu_settle(cpu, now);
	unlock(cpu);
	return task ? (u64)to << 32 | task : 0;
}

/* When to look again. Where a spread node is below another one, each time at another moment, up to 2 ms earlier: a budget with the
 * same period would otherwise be running on the other CPU at each look (replica_has_place). */
static inline u64 balance_next(u32 cpu, u64 now)
{
	u32 family, replica;
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++) {
		replica = replica_on(family, cpu);
		if (replica && replica_waits(replica) && node_at(edge_at(node_at(replica)->first_parent)->parent)->family)
			return now + SPREAD_BALANCE_NS - (now * 0x9e3779b97f4a7c15 >> 43);
	}
	return now + SPREAD_BALANCE_NS;
}

/* The task, which is in transit then, and 2^32 * the CPU to which it is given. */
TIERCE_FN u64 push_leaves(u32 cpu, u64 now)
{
	u32 family;
	u64 next;
	if (!S.families || now < cpu_at(cpu)->balance_ns)
		return TIERCE_NONE;
	port_lock(cpu); /* timers are set by it: a replay has to know */
	next = balance_next(cpu, now);
	cpu_at(cpu)->balance_ns = next;
	port_record(TIERCE_OP_balance, cpu, 0, next, now, 0, 0);
	port_unlock(cpu);
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++) {
		u32 replica = replica_on(family, cpu);
		u64 moved;
		if (!replica || !replica_waits(replica))
			continue;
		moved = spread_give(family, cpu, now);
		if (!moved)
			continue;
		cpu_at(cpu)->pushes++;
		return moved;
	}
	return TIERCE_NONE;
}

/* One task that waits on `cpu`, which is offline, as push_leaves returns it. */
TIERCE_FN u64 refugee_leaves(u32 cpu, u64 now)
{
	u32 family, to, task;
	for (family = ZERO + 1; family < S.families && !cpu_at(cpu)->online && CAN_LOOP; family++) {
		u32 replica = replica_on(family, cpu);
		if (!replica || !replica_waits(replica))
			continue;
		port_lock(cpu);
		task = edge_at(spread_first(replica, TIERCE_CPUS))->child; /* of no edge: none */
		to = task ? graph_refuge(replica, allowed_of(task)) : TIERCE_CPUS;
		if (to < TIERCE_CPUS && task_departs(task, cpu, to, now))
			to = TIERCE_CPUS;
		cpu_settle(cpu, now);
		unlock(cpu);
		if (to < TIERCE_CPUS)
			return (u64)to << 32 | task;
	}
	return TIERCE_NONE;
}

PORT_FLAT u32 graph_evacuate(u32 cpu, u64 now)
{
	u32 count;
	for (count = ZERO; count < TIERCE_NODES && CAN_LOOP; count++) {
		u64 moved = refugee_leaves(cpu, now);
		if (!moved)
			break;
		graph_enter((u32)moved, (u32)(moved >> 32), TIERCE_AFFINITY, now);
		graph_offer((u32)moved);
	}
	return count;
}

PORT_FLAT u32 graph_balance(u32 cpu, u64 now)
{
	u64 moved = push_leaves(cpu, now);
	if (moved) {
		graph_enter((u32)moved, (u32)(moved >> 32), TIERCE_BALANCE, now);
		graph_offer((u32)moved); /* who looked for tasks meanwhile has not seen it */
	}
	return (u32)moved;
}
