/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU that has nothing to run takes a task that waits elsewhere. */

/* How many tasks wait on CPU `from`, which is busy with something else, for which `cpu` has a replica that is open. */
PORT_ASIDE u32 cpu_waits(u32 from, u32 cpu)
{
	u32 family, waits = ZERO;
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++) {
		u32 replica = replica_on(family, from), here = replica ? replica_waits(replica) : 0;
		if (here && cpu_takes(family, cpu)) /* asked last: it walks up a tree */
			waits += here;
	}
	return waits && cpu_is_coming(from) ? 0 : waits;
}

/* Of these CPUs the one where most tasks wait that `cpu` could take, TIERCE_CPUS: none do. */
TIERCE_FN u32 cpu_fullest(u32 cpu, u64 cpus)
{
	u32 from, most = ZERO, found = TIERCE_CPUS;
	for (from = ZERO; from < S.cpus && CAN_LOOP; from++) {
		u32 waits = cpus & mask_of(from) && from != cpu ? cpu_waits(from, cpu) : 0;
		if (waits > most) {
			most = waits;
			found = from;
		}
	}
	return found;
}

/* The same, near CPUs first, none twice. */
TIERCE_FN u32 pull_source(u32 cpu, u64 cpus)
{
	u64 cache = near_at(cpu)->cache, memory = near_at(cpu)->memory | cache;
	u32 from = cpu_fullest(cpu, cpus & cache);
	if (from >= TIERCE_CPUS && cpus & memory & ~cache)
		from = cpu_fullest(cpu, cpus & memory & ~cache);
	if (from >= TIERCE_CPUS && cpus & ~memory)
		from = cpu_fullest(cpu, cpus & ~memory);
	return from;
}

/* How far one CPU is from another: 0: they share the last-level cache, 1: the NUMA node, 2: neither. */
static inline u32 cpu_distance(u32 cpu, u32 other)
{
	return cpus_has(SET_NEAR(cpu, NEAR_CACHE), other) ? 0 : cpus_has(SET_NEAR(cpu, NEAR_MEMORY), other) ? 1 : 2;
}

/* The same on larger machines: of the CPUs so far away that have not been tried, see pull_finds. */
SET_FN u32 set_fullest(u32 cpu, u32 distance)
{
	u32 from, most = ZERO, found = TIERCE_CPUS;
	for (from = ZERO; from < S.cpus && CAN_LOOP; from++) {
		u32 waits;
		if (from == cpu || cpu_distance(cpu, from) != distance || !cpus_has(SET_NEAR(cpu, NEAR_UNTRIED), from))
			continue;
		waits = cpu_waits(from, cpu);
		if (waits > most) {
			most = waits;
			found = from;
		}
	}
	return found;
}
SET_FN u32 set_source(u32 cpu, u32 tries)
{
	u32 found;
	if (!tries)
		set_fill(SET_NEAR(cpu, NEAR_UNTRIED), ~0ull);
	found = set_fullest(cpu, 0);
	if (found >= TIERCE_CPUS)
		found = set_fullest(cpu, 1);
	if (found >= TIERCE_CPUS)
		found = set_fullest(cpu, 2);
	if (found < TIERCE_CPUS)
		*set_word(SET_NEAR(cpu, NEAR_UNTRIED), found >> 6) &= ~mask_of(found);
	return found;
}

/* On a large machine many CPUs may be idle when one task begins to wait: no more than can have a task queue for the lock, and a
 * few, since one may find only tasks that it may not run. The others are turned away: the last one in the queue offers what still
 * waits when it leaves (puller_leaves). */
#define PULLERS_MORE 2
#define TURNED_AWAY  (1ull << 32) /* in `pullers`, for each; how many queue is in the lower half */

static inline bool puller_comes(u32 from, u32 cpu)
{
	u64 *pullers = &AT(S.inbox, from).pullers;
	if ((u32)port_count(pullers, 1) < cpu_waits(from, cpu) + PULLERS_MORE)
		return true;
	if ((u32)port_count(pullers, TURNED_AWAY - 1) > 1)
		return false;
	port_count(pullers, 1); /* nobody is left who would offer it */
	return true;
}

/* Under the lock of `from`. */
static inline void puller_leaves(u32 from)
{
	u64 *pullers = &AT(S.inbox, from).pullers;
	u64 others = port_count(pullers, -1) - 1;
	if ((u32)others || !others)
		return;
	port_count(pullers, -others);
	spread_passes(from);
}

/* A task that waits on `from` and may run on `cpu` leaves for there. */
static inline u32 pull_leaves(u32 from, u32 cpu, u64 now)
{
	u32 family, edge, task = TIERCE_NONE;
	if (!puller_comes(from, cpu))
		return TIERCE_NONE;
	port_lock(from);
	for (family = ZERO + 1; !task && family < S.families && CAN_LOOP; family++) {
		if (!replica_on(family, from) || !cpu_takes(family, cpu))
			continue;
		edge = spread_first(replica_on(family, from), cpu);
		if (edge && !task_departs(edge_at(edge)->child, from, cpu, now))
			task = edge_at(edge)->child;
	}
	cpu_settle(from, now);
	puller_leaves(from);
	unlock(from);
	return task;
}

/* The task, which is in transit then. */
TIERCE_FN u32 pull_finds(u32 cpu, u64 now)
{
	u32 tries, from, task;
	u64 left = ~0ull; /* CPUs not tried yet: all that wait there may be bound to it */
	for (tries = ZERO; tries < S.cpus && CAN_LOOP; tries++) {
		from = MANY ? set_source(cpu, tries) : pull_source(cpu, left);
		if (from >= TIERCE_CPUS)
			break;
		left &= ~mask_of(from);
		task = pull_leaves(from, cpu, now);
		if (task)
			return task;
	}
	return TIERCE_NONE;
}

PORT_FLAT u32 graph_pull(u32 cpu, u64 now)
{
	u32 task = pull_finds(cpu, now);
	if (!task)
		return TIERCE_NONE;
	cpu_at(cpu)->pulls++;
	graph_enter(task, cpu, TIERCE_PULL, now);
	return task;
}
