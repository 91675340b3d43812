/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Spread nodes: a node that has a replica in the tree of each of its CPUs, and tasks that move between the replicas.
 *
 * A task is below exactly one replica at a time, its home. A wake-up, a switch and a sleep on the home CPU touch the domain
 * of that CPU alone. A task moves in three cases only:
 *
 *   wake-up   graph_place chooses an idle CPU near the home, or the home itself.
 *   pull      a CPU that has nothing to run takes a task that waits elsewhere (graph_pull). Whoever leaves a task waiting on
 *             a busy CPU kicks an idle one for it (graph_offer). The idle CPU sets its bit before it looks for tasks, the
 *             other one lets the task wait before it looks for idle CPUs: one of them sees the other.
 *   push      some hundred times a second a CPU where tasks wait gives one to a CPU on which it is served earlier
 *             (graph_balance), as the policy judges (NAME_ahead).
 *
 * No entry locks two CPUs. A task leaves one replica under the lock of its CPU, is in transit, and enters the other one under
 * the lock of that CPU. Where a task goes is judged by what other CPUs have published, read without their locks; the move
 * itself is recorded, so a replay needs none of that.
 *
 * Virtual time. With start tags, eevdf and stride (fair) the replicas have one virtual time in common: a tag says how much CPU
 * time per weight a task has had, on whatever CPU. Where virtual time is an average (eevdf, stride), it waits until a task that
 * arrives behind has been served what it is owed, so that it stays the average of those that are there. A replica whose tasks
 * wait publishes its virtual time (family.clock). A replica that was empty begins there. What a task is ahead of or behind a
 * replica that it enters is limited (FAIR_DRIFT).
 *
 * Without virtual time tasks go to the CPU where fewer are. For a difference of one they go in turn, so that each has a CPU
 * alone at times. A CPU that runs a task of a lower priority or level comes first.
 */
#include "service.h"

#define SPREAD_LOOKS	  256	   /* links followed to find a task that may move */

static inline void policy_depart(u32 edge)
{
#define CALL(prefix) prefix##_depart(edge)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_arrive(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_arrive(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline u64 policy_ahead(u32 edge, u32 to, u64 now)
{
	u64 ahead = 0;
#define CALL(prefix) ahead = prefix##_ahead(edge, to, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return ahead;
}
static inline u64 policy_clock(u32 node, u64 now)
{
	u64 clock = 0;
#define CALL(prefix) clock = prefix##_clock(node, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return clock;
}

/* ---- what CPUs see of each other -------------------------------------------------------------------------------- */

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

/* Under the lock of the CPU. Tasks that began to wait while it was about to decide were not offered: those that it does not run
 * are offered now. So is the task for which it was claimed, if it runs another one. */
TIERCE_FN int spread_passes(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	u32 family, task = c->offered;
	if (c->task && task) {
		c->offered = TIERCE_NONE;
		if (task < TIERCE_NODES && task != c->task)
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

/* ---- moves ------------------------------------------------------------------------------------------------------ */

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

/* How many tasks wait on CPU `from`, which is busy with something else, for which `cpu` has a replica that is open. */
TIERCE_FN u32 cpu_waits(u32 from, u32 cpu)
{
	u32 family, waits = ZERO;
	if (cpu_is_coming(from))
		return 0;
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++) {
		u32 replica = replica_on(family, from), here = replica ? replica_waits(replica) : 0;
		if (here && cpu_takes(family, cpu)) /* asked last: it walks up a tree */
			waits += here;
	}
	return waits;
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

/* A task that waits on `from` and may run on `cpu` leaves for there. */
static inline u32 pull_leaves(u32 from, u32 cpu, u64 now)
{
	u32 family, edge, task = TIERCE_NONE;
	port_lock(from);
	for (family = ZERO + 1; !task && family < S.families && CAN_LOOP; family++) {
		if (!replica_on(family, from) || !cpu_takes(family, cpu))
			continue;
		edge = spread_first(replica_on(family, from), cpu);
		if (edge && !task_departs(edge_at(edge)->child, from, cpu, now))
			task = edge_at(edge)->child;
	}
	cpu_settle(from, now);
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

/* A replica without tasks, below a replica of another spread node that its CPU serves at this moment: a task that comes has a
 * share there. (Below anything else nobody can tell whether it would be served at all.) */
static inline bool replica_has_place(u32 replica)
{
	u32 above = edge_at(node_at(replica)->first_parent)->parent;
	return node_at(above)->family && node_at(above)->running;
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

/* The task, which is in transit then, and 2^32 * the CPU to which it is given. */
TIERCE_FN u64 push_leaves(u32 cpu, u64 now)
{
	u32 family;
	if (!S.families || now < cpu_at(cpu)->balance_ns)
		return TIERCE_NONE;
	port_lock(cpu); /* timers are set by it: a replay has to know */
	cpu_at(cpu)->balance_ns = now + SPREAD_BALANCE_NS;
	port_record(TIERCE_OP_balance, cpu, 0, now + SPREAD_BALANCE_NS, now, 0, 0);
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
	u32 family, edge, to, task;
	for (family = ZERO + 1; family < S.families && !cpu_at(cpu)->online && CAN_LOOP; family++) {
		u32 replica = replica_on(family, cpu);
		if (!replica || !replica_waits(replica))
			continue;
		task = TIERCE_NONE;
		to = TIERCE_CPUS;
		port_lock(cpu);
		edge = spread_first(replica, TIERCE_CPUS);
		if (edge)
			to = graph_refuge(replica, allowed_of(edge_at(edge)->child));
		if (to < TIERCE_CPUS && !task_departs(edge_at(edge)->child, cpu, to, now))
			task = edge_at(edge)->child;
		cpu_settle(cpu, now);
		unlock(cpu);
		if (task)
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
