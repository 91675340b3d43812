/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Groups: CPUs that reach shared nodes together, and one shared domain for each. Two groups join when an edge makes a node that both
 * reach. A group comes apart when its last shared node has gone; as long as it has one, it stays as it is, even if no node is reached
 * from all of its CPUs any more. Both are done by control operations, while all CPUs are locked: an entry finds its CPU's group under
 * the lock of the CPU.
 */

#define CPUS_LOCKED (MANY || TIERCE_CPUS < 64 ? TIERCE_CPUS : 64)
/* Not CAN_LOOP in these two: what is locked is unlocked. */
TIERCE_FN int cpus_lock(void)
{
	u32 cpu, most = CPUS_LOCKED;
	for (cpu = 0; cpu < most; cpu++)
		if (cpu < S.cpus)
			port_lock(cpu);
	return 0;
}
TIERCE_FN int cpus_unlock(void)
{
	u32 cpu, most = CPUS_LOCKED;
	for (cpu = 0; cpu < most; cpu++)
		if (cpu < S.cpus)
			cpu_unlock(cpu);
	return 0;
}

static inline u32 edge_domain(u32 edge) /* of the parent; the CPU of a root edge */
{
	return edge_at(edge)->parent ? parent_of(edge)->domain : edge_at(edge)->cpu;
}
/* The shared domain of the group to which a domain belongs. */
static inline u32 shared_by(u32 domain)
{
	return domain < TIERCE_CPUS ? shared_of(domain) : domain;
}
/* The CPU that control operations lock for a domain. */
static inline u32 server_of(u32 domain)
{
	return domain < TIERCE_CPUS ? domain : group_at(domain)->timer;
}

/* With this edge, is its child reached from two groups? */
static inline bool edge_joins_groups(u32 edge)
{
	u32 domain = edge_domain(edge), other = node_at(edge_at(edge)->child)->domain;
	return SHARES && domain < TIERCE_DOMAINS && other < TIERCE_DOMAINS && shared_by(domain) != shared_by(other);
}
/* Without it, has its child's group no shared node? */
static inline bool edge_parts_group(u32 edge)
{
	node_t *n = node_at(edge_at(edge)->child);
	return SHARES && is_shared(n->domain) && group_at(n->domain)->nodes == 1 && n->first_parent == edge &&
	       !edge_at(edge)->next_parent;
}

/* Which CPU serves the events of a shared domain, which is locked, too. */
TIERCE_FN int group_serve(u32 domain)
{
	group_t *group = group_at(domain);
	u32 cpu;
	group->timer = domain - TIERCE_CPUS;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		if (shared_of(cpu) != domain)
			continue;
		cpu_at(cpu)->serves = 0;
		if (cpu_at(cpu)->online && !cpu_at(group->timer)->online)
			group->timer = cpu;
	}
	cpu_at(group->timer)->serves = domain;
	group->until_ns = TIERCE_NEVER; /* kicks it */
	return 0;
}

/* Two groups become one, as the edge is attached. The entry holds the shared domain of the parent's group, and from then on that of
 * both. */
TIERCE_FN int groups_join(u32 edge)
{
	u32 domain = edge_domain(edge), one = shared_by(domain), other = shared_by(node_at(edge_at(edge)->child)->domain);
	u32 into = one < other ? one : other, from = one ^ other ^ into, cpu = server_of(domain), i;
	group_t *gone = group_at(from);
	port_lock(other);
	group_at(into)->nodes += gone->nodes;
	for (i = ZERO + 1; gone->nodes && i < S.fresh_node && CAN_LOOP; i++) {
		if (node_at(i)->domain == from) {
			node_at(i)->domain = into;
			gone->nodes--;
		}
	}
	domain_at(into)->events = events_meet(domain_at(into)->events, domain_at(from)->events);
	domain_at(from)->events = 0;
	for (i = ZERO; i < S.cpus && CAN_LOOP; i++)
		if (shared_of(i) == from)
			cpu_at(i)->group = into - TIERCE_CPUS;
	group_serve(into);
	cpu_at(cpu)->shares = into;
	port_unlock(from);
	return 0;
}

/* The last node has left a shared domain: each CPU of its group is one of its own again. */
TIERCE_FN int group_parts(u32 domain)
{
	u32 cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		if (shared_of(cpu) != domain)
			continue;
		cpu_at(cpu)->group = cpu;
		cpu_at(cpu)->serves = 0;
	}
	return 0;
}

/* A node comes into a domain, from another one or from none. */
static inline void node_moves(u32 node, u32 domain)
{
	u32 was = node_at(node)->domain;
	if (SHARES && is_shared(domain))
		group_at(domain)->nodes++;
	node_at(node)->domain = domain;
	if (SHARES && is_shared(was) && !--group_at(was)->nodes)
		group_parts(was);
}
