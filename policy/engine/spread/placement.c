/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Wake-up placement: an idle CPU near the home of a task, or the home; and offers to idle CPUs. */

/* Can what is below the node be run, as far as budgets above it tell? */
static inline bool replica_is_open(u32 node)
{
	u32 level, edge = TIERCE_NONE;
	for (level = ZERO; level < TIERCE_DEPTH && CAN_LOOP; level++) {
		for (edge = node_at(node)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent)
			if (!(edge_at(edge)->flags & (EDGE_SPENT | EDGE_SHUT)))
				break;
		if (!edge)
			return false;
		node = edge_at(edge)->parent;
		if (!node)
			return true;
	}
	return false;
}

/* The CPU has nothing to run and is about to decide: it runs what waits there, or offers it (spread_passes). */
static inline bool cpu_is_coming(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	return !c->task && c->kick_pending && !c->outside && c->online;
}

/* Does the CPU take a task of that spread node, now that it has nothing to run? */
static inline bool cpu_takes(u32 family, u32 cpu)
{
	u32 replica = replica_on(family, cpu);
	return replica && cpu_at(cpu)->online && !cpu_at(cpu)->outside && replica_is_open(replica);
}

/* An idle CPU that takes a task of that spread node is claimed: no other waker finds it. */
TIERCE_FN int cpu_claim(u32 family, u32 cpu)
{
	return cpu_takes(family, cpu) && port_bits_claim(idle_word(cpu), mask_of(cpu));
}

/* One of these CPUs, which are idle, for a task of that spread node; claimed. TIERCE_CPUS: none. */
static inline u32 idle_claim(u32 family, u64 cpus)
{
	u32 cpu;
	for (cpu = ZERO; cpus && cpu < S.cpus && CAN_LOOP; cpu++) {
		if (!(cpus & mask_of(cpu)))
			continue;
		cpus &= ~mask_of(cpu);
		if (cpu_claim(family, cpu))
			return cpu;
	}
	return TIERCE_CPUS;
}

/* Of the idle CPUs the nearest to `home`: itself, one that shares its last-level cache (on a core that is idle, if there is
 * one), its NUMA node, any. */
TIERCE_FN u32 idle_near(u32 family, u32 home, u64 allowed)
{
	u64 idle = S.idle[0] & allowed, cores = 0;
	struct tierce_near *near = near_at(home);
	u32 cpu, found;
	if (!idle)
		return TIERCE_CPUS;
	found = idle_claim(family, idle & mask_of(home));
	if (found == TIERCE_CPUS && near->core & ~mask_of(home)) {
		for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++)
			if (idle & near->cache & mask_of(cpu) && !(near_at(cpu)->core & ~S.idle[0]))
				cores |= mask_of(cpu);
		found = idle_claim(family, cores);
	}
	if (found == TIERCE_CPUS)
		found = idle_claim(family, idle & near->cache);
	if (found == TIERCE_CPUS)
		found = idle_claim(family, idle & near->memory);
	if (found == TIERCE_CPUS)
		found = idle_claim(family, idle);
	return found;
}

/* The same on larger machines. */

/* Does somebody run on a CPU that shares a core with this one? */
SET_FN int core_is_busy(u32 cpu)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		if (*set_word(SET_NEAR(cpu, NEAR_CORE), word) & ~AT(S.idle, word))
			return 1;
	return 0;
}

/* One of the idle CPUs that are in both sets and, with `cores`, on a core that is idle as a whole. */
static inline u32 set_claim(u32 family, u64 allowed, u64 near, u32 but, bool cores)
{
	u32 cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		u32 word = cpu >> 6;
		if (!(AT(S.idle, word) & *set_word(allowed, word) & *set_word(near, word))) {
			cpu |= 63;
			continue;
		}
		if (cpu == but || !is_idle(cpu) || !cpus_has(allowed, cpu) || !cpus_has(near, cpu))
			continue;
		if (!(cores && core_is_busy(cpu)) && cpu_claim(family, cpu))
			return cpu;
	}
	return TIERCE_CPUS;
}

/* `but_home`: not `home` itself. */
SET_FN u32 set_idle_near(u32 family, u32 home, u64 allowed, u32 but_home)
{
	u32 but = but_home ? home : TIERCE_CPUS, found = TIERCE_CPUS;
	if (!some_are_idle())
		return TIERCE_CPUS;
	if (!but_home && is_idle(home) && cpus_has(allowed, home) && cpu_claim(family, home))
		return home;
	if (set_has_other(SET_NEAR(home, NEAR_CORE), home))
		found = set_claim(family, allowed, SET_NEAR(home, NEAR_CACHE), but, true);
	if (found == TIERCE_CPUS)
		found = set_claim(family, allowed, SET_NEAR(home, NEAR_CACHE), but, false);
	if (found == TIERCE_CPUS)
		found = set_claim(family, allowed, SET_NEAR(home, NEAR_MEMORY), but, false);
	if (found == TIERCE_CPUS)
		found = set_claim(family, allowed, SET_ALL, but, false);
	return found;
}

/* How many tasks of the spread node want this CPU, without its lock a guess; more than any number: it has no replica or is
 * offline. */
static inline u32 cpu_load(u32 family, u32 cpu)
{
	u32 replica = replica_on(family, cpu);
	return replica && cpu_at(cpu)->online ? node_at(replica)->servable : ~0u;
}

TIERCE_FN u32 graph_refuge(u32 node, u64 allowed)
{
	u32 family = node < TIERCE_NODES ? node_at(node)->family : 0, cpu, least = ~0u, found = TIERCE_CPUS;
	if (!family)
		return TIERCE_CPUS;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		u32 load = cpus_has(allowed, cpu) ? cpu_load(family, cpu) : ~0u;
		if (load < least) {
			least = load;
			found = cpu;
		}
	}
	return found;
}

TIERCE_FN u32 graph_place(u32 node, u32 home, u64 allowed)
{
	u32 cpu = TIERCE_CPUS;
	if (!node || node >= TIERCE_NODES || home >= S.cpus)
		return home;
	if (MANY)
		cpu = set_idle_near(node_at(node)->family, home, allowed, 0);
	else if (S.idle[0])
		cpu = idle_near(node_at(node)->family, home, allowed);
	if (cpu >= TIERCE_CPUS && !cpu_at(home)->online)
		cpu = graph_refuge(node, allowed);
	return cpu < TIERCE_CPUS ? cpu : home;
}

TIERCE_FN int graph_offer(u32 task)
{
	u32 home = node_at(task)->domain, edge = node_at(task)->first_parent, cpu;
	if (home >= S.cpus || !(edge_at(edge)->flags & EDGE_SPREAD))
		return 0;
	if (cpu_is_coming(home))
		return 0;
	if (cpu_at(home)->idle && !is_idle(home))
		port_kick(home); /* claimed for this task, it could not take it: it tells anew that it is idle */
	if (!any_idle() || edge_at(edge)->state != TIERCE_READY)
		return 0;
	if (MANY)
		cpu = set_idle_near(parent_of(edge)->family, home, SET_ALLOWED(task), 1);
	else
		cpu = idle_near(parent_of(edge)->family, home, node_at(task)->allowed & ~mask_of(home));
	if (cpu < TIERCE_CPUS) {
		cpu_at(cpu)->offered = task;
		port_kick(cpu);
	}
	return 0;
}

/* Each task of a heap of edges that wait is offered, as long as there are idle CPUs. */
TIERCE_FN int heap_offers(u32 x)
{
	u32 from = TIERCE_NONE, step, next;
	for (step = ZERO; x && any_idle() && step < SPREAD_LOOKS && CAN_LOOP; step++) {
		next = TIERCE_NONE;
		if (!from) {
			graph_offer(edge_at(x)->child);
			next = order_link(x)->left;
		} else if (from == order_link(x)->left) {
			next = order_link(x)->right;
		}
		from = next ? TIERCE_NONE : x;
		x = next ? next : order_link(x)->up;
	}
	return 0;
}

/* Is the CPU idle, and takes the task if that still waits? */
static inline bool cpu_awaits(u32 cpu, u32 task)
{
	u32 edge = node_at(task)->first_parent;
	return !cpu_at(cpu)->task && edge_at(edge)->flags & EDGE_SPREAD && cpu_takes(parent_of(edge)->family, cpu);
}

/* Under the lock of the CPU. Tasks that began to wait while it was about to decide were not offered: those that it does not run
 * are offered now. So is the task for which it was claimed, if it runs another one, or a budget above it has ended meanwhile. */
TIERCE_FN int spread_passes(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	u32 family, task = c->offered;
	if (task && task < TIERCE_NODES && !cpu_awaits(cpu, task)) {
		c->offered = TIERCE_NONE;
		if (task != c->task)
			graph_offer(task);
	}
	for (family = ZERO + 1; family < S.families && any_idle() && CAN_LOOP; family++) {
		u32 replica = replica_on(family, cpu);
		if (replica && replica_waits(replica)) {
			heap_offers(node_at(replica)->order);
			heap_offers(node_at(replica)->share.later);
		}
	}
	return 0;
}

TIERCE_FN int graph_near(u32 cpu, u32 word, u64 core, u64 cache, u64 memory)
{
	if (cpu >= S.cpus || word >= cpus_words())
		return TIERCE_E_no_such_cpu;
	if (MANY) {
		u64 own = word == cpu >> 6 ? mask_of(cpu) : 0;
		*set_word(SET_NEAR(cpu, NEAR_CORE), word) = core | own;
		*set_word(SET_NEAR(cpu, NEAR_CACHE), word) = cache | own;
		*set_word(SET_NEAR(cpu, NEAR_MEMORY), word) = memory | own;
		return TIERCE_OK;
	}
	near_at(cpu)->core = core | mask_of(cpu);
	near_at(cpu)->cache = cache | mask_of(cpu);
	near_at(cpu)->memory = memory | mask_of(cpu);
	return TIERCE_OK;
}
