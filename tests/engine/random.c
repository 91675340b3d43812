/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Random testing of the engine: random machines, graphs, tasks and operations, the checker after every one of them.
 *
 *   random [-n OPERATIONS] [-s SEED] [-v] [-w] [-c] [-m]
 *
 * A machine has 1 to 4 (sometimes 17) CPUs and up to 128 nodes of random policies, many with several parents. The test
 * plays the port: CPUs that were kicked decide some operations later, what they ran is returned later still, tasks
 * block, wake, come, go, move, change parameters and affinity, CPUs go offline, time passes. A machine lives for some
 * thousand operations. Prints the seed; the same seed replays the same run. What breaks the engine is printed as the few
 * operations that suffice for it, where replaying them does (shrink.h). Half of the machines with several CPUs have spread
 * nodes, whose replicas are anywhere in the trees of their CPUs; of what the port does with them in several entries (a wake-up,
 * a move, a decision for nothing) the parts are apart: operations on other tasks and by other CPUs come in between. -w draws times of any size, up to days: most
 * of a run is then far from what plans are, and finds what they do not. -c draws whole milliseconds, so that much happens
 * at one time: a budget ends when another comes back and a third is asked for. -m: machines have 65 to 512 CPUs, whose sets
 * take several words.
 */
#define TIERCE_NODES 1024u /* small enough for states to be copied */
#define TIERCE_EDGES 2048u
#define TIERCE_ROWS  640u
#define TIERCE_CPUS  512u
#define TIERCE_FAMILIES 8u
#define TEST_LOCKS
#include "engine.h"
#include "roll.h"
#include "shrink.h"

#define TASKS 96
#define INNER 700
#define NESTED 3 /* operations in the middle of others */

static u64 now, operations, checked_at_rest, attached, refused, accepted, yields, by_error[64], verbose;
static u32 inner[INNER], inners, task[TASKS], tasks, cpus;
static struct bits kicked;				   /* CPUs whose decision is due */
static struct bits deciding;				   /* CPUs in the middle of one, as the port sees it */
static u32 nested;					   /* operations under way */
static u32 family[TIERCE_FAMILIES][TIERCE_CPUS], families; /* the replica of each CPU */
static bool held[TIERCE_NODES];				   /* tasks that an operation under way concerns */
static u64 placed, moved, pulled, pushed, offered, apart, joined, parted, beside;
static bool many;    /* -m: machines of more than 64 CPUs */
static bool wide;    /* -w: parameters, times and deadlines are anything that is allowed */
static u64 grid = 1; /* all times are multiples of it; -c: a millisecond */

static void __attribute__((noreturn)) fail(const char *what, const char *why)
{
	if (verbose)
		dump();
	printf("operation %llu, %s: %s (at %u)\n", (unsigned long long)operations, what, why, check_at);
	fflush(stdout);
	shrink(why);
	exit(1);
}

/* How many groups of CPUs come and go, and how often several have shared nodes side by side. */
static void groups_count(void)
{
	static u32 had;
	u32 cpu, groups = 0, sharing = 0;
	for (cpu = 0; cpu < cpus; cpu++) {
		groups += S.cpu[cpu].group == cpu;
		sharing += S.group[cpu].nodes != 0;
	}
	joined += groups < had;
	parted += groups > had && had;
	beside += sharing > 1;
	had = inners ? groups : 0;
}

/* Locks: an entry takes that of a CPU, then that of the CPU's group; or a shared one alone. Who joins groups, or brings a CPU, takes
 * those of all CPUs in their order. So CPUs of different groups never wait for each other. */
static bool locked[TIERCE_DOMAINS], checking; /* which looks without locks */
static u32 locked_cpus, locked_shared, last_cpu;
static const char *lock_fault;

static void test_lock(u32 domain)
{
	if (checking || domain == TIERCE_KNOWN)
		return;
	if (domain >= TIERCE_DOMAINS || locked[domain]) {
		lock_fault = "no lock, or one that it has, is taken";
		return;
	}
	locked[domain] = true;
	if (!is_shared(domain)) {
		if (locked_shared || (locked_cpus && (locked_cpus != domain || last_cpu + 1 != domain)))
			lock_fault = "CPUs are locked out of order";
		locked_cpus++;
		last_cpu = domain;
		return;
	}
	if (locked_cpus < S.cpus && (locked_shared || locked_cpus > 1 || (locked_cpus && domain != shared_of(last_cpu))))
		lock_fault = "a CPU waits for another group";
	locked_shared++;
}
static void test_unlock(u32 domain)
{
	if (checking || domain == TIERCE_KNOWN)
		return;
	if (domain >= TIERCE_DOMAINS || !locked[domain]) {
		lock_fault = "a lock is given back that nobody has";
		return;
	}
	locked[domain] = false;
	if (is_shared(domain))
		locked_shared--;
	else
		locked_cpus--;
}

static void after(const char *what)
{
	u32 broken, cpu;
	bool rest;
	operations++;
	for (cpu = 0; cpu < TIERCE_WORDS; cpu++)
		kicked.word[cpu] |= tierce_native.kicks[cpu];
	kicks_forget();
	if (verbose) {
		printf("%llu %s at %llu", (unsigned long long)operations, what, (unsigned long long)now);
		bits_print(" idle ", S.idle);
		bits_print(" kicked ", kicked.word);
		printf("\n");
	}
	if (tierce_native.failed)
		fail(what, tierce_native.failed);
	if (!lock_fault && (locked_cpus || locked_shared))
		lock_fault = "a lock is kept";
	if (lock_fault)
		fail(what, lock_fault);
	rest = !bits_any(kicked.word) && !nested;
	for (cpu = 0; cpu < cpus; cpu++)
		rest = rest && !S.cpu[cpu].leaves;
	checked_at_rest += rest;
	groups_count();
	checking = true;
	broken = graph_check(rest);
	checking = false;
	if (broken)
		fail(what, invariant(broken));
}

/* A parameter that nothing else is known of: half of the time its preset, or one between its bounds, small ones as often as
 * large ones; times of at most 10 ms, which is what happens here between two operations, unless they are to be of any size. */
static u64 any_value(u64 least, u64 most, u64 preset)
{
	u64 value = (u64)below(0xffffffff) << 32;
	u32 small = below(64);
	value |= below(0xffffffff);
	if (preset != REQUIRED && preset <= most && below(2))
		return preset;
	value >>= small;
	return most - least == ~0ull ? value : least + value % (most - least + 1);
}

/* The next time that may be drawn. */
static u64 on_grid(u64 ns)
{
	u64 beyond = ns % grid;
	return beyond && ns < ~0ull - grid ? ns + grid - beyond : ns;
}

#define V(name, kind, least, most, preset, meaning) \
	S.stage[i++] = any_value(least, ANY_##kind && most > 10000000 && !wide ? 10000000 : most, preset);
enum { ANY_TIME = 1, ANY_DURATION_OF = 1, ANY_COUNT = 0, ANY_RATIO = 0, ANY_CHOICE = 0 };
static void stage_any(u32 kind, bool of_node)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: \
		if (of_node) { \
			np \
		} else { \
			ep \
		} \
		break;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
}
#undef V

/* What is staged for this policy, its times on the grid. Who is larger than another stays it. */
#define V(name, kind, least, most, preset, meaning) \
	if (ANY_##kind && on_grid(S.stage[i]) <= (most)) \
		S.stage[i] = on_grid(S.stage[i]); \
	i++;
static void stage_on_grid(u32 kind, bool of_node)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: \
		if (of_node) { \
			np \
		} else { \
			ep \
		} \
		break;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
}
#undef V

static void draw_edge(u32 kind)
{
	u64 period = 20000 + below(10000000);
	memset(S.stage, 0, sizeof S.stage);
	if (wide && below(2)) {
		stage_any(kind, false);
		return;
	}
	switch (kind) {
	case TIERCE_fixed_priority: S.stage[0] = below(4); break;
	case TIERCE_edf: S.stage[0] = below(2) ? below(10000000) : 0; break;
	case TIERCE_reservation:
		S.stage[0] = period / (2 + below(20));
		S.stage[1] = period;
		S.stage[2] = below(4) ? period : period - below((u32)(period / 3));
		S.stage[3] = below(4);
		break;
	case TIERCE_fair:
		S.stage[0] = 1 + below(1000);
		S.stage[1] = below(4) ? 0 : below(5000000);
		S.stage[2] = S.stage[1] && below(2) ? 1 + below(5000000) : 0;
		S.stage[3] = S.stage[2] && below(2) ? 1 + below(10000000) : 0;
		if (below(3))
			break;
		S.stage[5] = 20000 + below(10000000); /* promised, and in what time */
		S.stage[4] = S.stage[5] / (1 + below(20));
		break;
	case TIERCE_time_sharing:
		S.stage[0] = below(4);
		S.stage[1] = below(4);
		break;
	case TIERCE_multiburst: S.stage[1] = below(3); /* fall through */
	case TIERCE_i_plus_pi: S.stage[0] = 1 + below(below(2) ? 10 : 10000); break;
	case TIERCE_slots:
		S.stage[0] = below(8000);
		S.stage[1] = 1000 + below(4000);
		S.stage[2] = below(2);
		break;
	case TIERCE_mixed_criticality:
		S.stage[0] = below(4);
		S.stage[1] = 1000 + below((u32)(period / 3));
		S.stage[2] = period;
		S.stage[3] = below(2) ? 0 : S.stage[1] + below((u32)(period - S.stage[1]));
		break;
	default: stage_any(kind, false);
	}
}

static void draw_node(u32 kind)
{
	memset(S.stage, 0, sizeof S.stage);
	if (wide && below(2)) {
		stage_any(kind, true);
		return;
	}
	switch (kind) {
	case TIERCE_reservation:
		S.stage[0] = below(2);
		S.stage[1] = below(2) ? below(6) : 0;
		S.stage[2] = below(2);
		S.stage[3] = below(2) ? 0 : below(1048577);
		S.stage[4] = below(2) ? 0 : 300000 + below(748577);
		if (S.stage[3] && below(4)) /* what goes with it */
			S.stage[1] = 0, S.stage[2] = 1;
		break;
	case TIERCE_fair: S.stage[1] = below(2) ? 0 : below(5); /* fall through */
	case TIERCE_round_robin:
	case TIERCE_slots: S.stage[0] = 10000 + below(5000000); break;
	case TIERCE_constraint:
		S.stage[0] = 10000 + below(5000000);
		S.stage[2] = 20000 + below(10000000);
		S.stage[1] = below(2) ? S.stage[2] : 10000 + below((u32)S.stage[2]);
		break;
	case TIERCE_time_sharing:
		S.stage[0] = 10000 + below(5000000);
		S.stage[1] = below(2) ? 0 : below(20000000);
		S.stage[2] = below(2) ? 0 : below(8);
		break;
	case TIERCE_i_plus_pi:
		S.stage[4] = 10486 + below(1038090 - 10486);
		S.stage[5] = 10486 + below(below(8) ? 4000000 : 33554432 - 10486);
		S.stage[6] = 10486 + below(1038090 - 10486); /* fall through */
	case TIERCE_multiburst:
		S.stage[0] = below(2) ? 0 : below(10000000);
		S.stage[1] = 10000 + below(below(8) ? 5000000 : 2000000000);
		S.stage[2] = 10000 + below(1000000);
		S.stage[3] = 10000 + below(below(8) ? 20000000 : 2000000000); /* it may be below the least */
		if (!below(8)) {
			S.stage[0] = 60000000000ull;
			S.stage[1] = S.stage[3] = 10000000000ull;
		}
		break;
	default: stage_any(kind, true);
	}
}

static void stage_edge(u32 kind)
{
	draw_edge(kind);
	stage_on_grid(kind, false);
}

static void stage_node(u32 kind)
{
	draw_node(kind);
	stage_on_grid(kind, true);
	if (kind == TIERCE_fair && !PORT_HAS_PART(by_clock) && S.stage[FAIR_ORDER] - FAIR_EEVDF <= FAIR_LOTTERY - FAIR_EEVDF)
		S.stage[FAIR_ORDER] = FAIR_START_TAG;
}

static u32 new_edge(u32 parent, u32 child, u32 flags)
{
	u32 edge = graph_edge_new(parent, child, (s32)below(3), flags);
	int error;
	if (!edge)
		return 0;
	stage_edge(S.node[parent].kind);
	error = graph_attach(edge, now);
	by_error[error & 63]++;
	if (error) {
		refused++;
		if (graph_detach(edge, now))
			fail("attach", "a refused edge could not be given back");
		return 0;
	}
	attached++;
	return edge;
}

static bool is_spread(u32 id)
{
	return S.edge[S.node[id].first_parent].flags & EDGE_SPREAD;
}
static bool in_transit(u32 id)
{
	return S.node[id].domain == TIERCE_TRANSIT;
}

/* Some task that no operation under way concerns, 0: there is none. */
static u32 any_task(void)
{
	u32 tries, id;
	for (tries = 0; tasks && tries < 8; tries++) {
		id = task[below(tasks)];
		if (!held[id])
			return id;
	}
	return 0;
}

static void new_parent(u32 id)
{
	u32 parent = inner[below(inners)];
	new_edge(parent, id, below(8) ? 0 : EDGE_WHEN_SPENT);
}

static u32 node_any(u32 kind)
{
	stage_node(kind);
	return graph_node_new(kind, below(3) ? 0 : 1 + below(cpus), ~0ull);
}

/* Any policy; half of the time one of the user's, if there are any. */
static u32 kind_any(void)
{
	if (TIERCE_ADDED_FIRST < TIERCE_POLICIES_END && below(2))
		return TIERCE_ADDED_FIRST + below(TIERCE_POLICIES_END - TIERCE_ADDED_FIRST);
	return TIERCE_POLICY_FIRST + below(TIERCE_POLICIES_END - TIERCE_POLICY_FIRST);
}

/* A policy whose nodes may be spread. */
static u32 kind_spreads(void)
{
	u32 kind;
	do
		kind = kind_any();
	while (!policy_spreads(kind));
	return kind;
}

/* A node becomes a replica of the last spread node. */
static bool replica_new(u32 cpu, u32 id)
{
	u32 first = 0, other;
	int error;
	for (other = 0; other < cpus && !first; other++)
		first = family[families - 1][other];
	error = graph_replica(id, first ? first : id);
	by_error[error & 63]++;
	if (error && error != TIERCE_E_replicas_differ)
		fail("machine", "a replica was refused");
	if (!error)
		family[families - 1][cpu] = id;
	return !error;
}

static void family_new_staged(u32 kind)
{
	families++;
	memset(family[families - 1], 0, sizeof family[0]);
	stage_node(kind);
}

/* A spread node with a replica in the trees of most CPUs. */
static void family_any(void)
{
	u32 kind = kind_spreads(), cpu, tries, id;
	u64 same[TIERCE_NODE_PARAMS];
	family_new_staged(kind);
	memcpy(same, S.stage, sizeof same);
	for (cpu = 0; cpu < cpus && inners < INNER; cpu++) {
		if (!below(8))
			continue;
		memcpy(S.stage, same, sizeof same); /* of all replicas, as in a plan, or not */
		id = below(8) ? graph_node_new(kind, 0, ~0ull) : node_any(kind);
		if (!id)
			fail("machine", "a node was refused");
		if (!replica_new(cpu, id)) {
			graph_node_free(id);
			continue;
		}
		for (tries = 0; tries < 20 && !S.node[id].first_parent; tries++) {
			u32 parent = inner[below(inners)];
			if (S.node[parent].domain == cpu)
				new_edge(parent, id, below(8) ? 0 : EDGE_WHEN_SPENT);
		}
		if (S.node[id].first_parent) {
			inner[inners++] = id;
		} else {
			graph_node_free(id);
			family[families - 1][cpu] = 0;
		}
		after("replica");
	}
}

static void machine_new(void)
{
	u32 i, cpu, roots, parents, spread, kind;
	memset(tierce_native.state, 0, sizeof S);
	kicks_forget();
	cpus = many ? (below(4) ? 65 + below(16) : 65 + below(448)) : below(20) ? 1 + below(4) : 17;
	inners = 0;
	tasks = 0;
	memset(&kicked, 0, sizeof kicked);
	families = 0;
	now = on_grid(roll() % 1000000000);
	graph_init(cpus, now);
	S.floor_ns = below(2) || grid > 1 ? 0 : below(30000);
	S.quiet = !below(4);
	spread = cpus > 1 && below(2) && PORT_HAS_PART(spread) ? 1 + below(3) : 0;
	roots = spread || !PORT_HAS_PART(shared) ? cpus : 1 + below(cpus);
	for (cpu = 0; cpu < cpus; cpu++) { /* CPUs are near each other in pairs */
		u64 pair = 3ull << (cpu & 62);
		bool core = below(2), cache = below(2);
		for (i = 0; i < cpus_words(); i++)
			graph_near(cpu, i, core && i == cpu >> 6 ? pair : 0,
				   !cache	   ? ~0ull
				   : i == cpu >> 6 ? pair
						   : 0,
				   !many || i == cpu >> 6 || !(cpu & 1) ? ~0ull : 0);
	}
	shrink_machine();
	kind = kind_spreads();
	if (spread && !below(2)) { /* the roots are one */
		family_new_staged(kind);
		for (i = 0; i < roots; i++) {
			inner[inners] = graph_node_new(kind, 0, ~0ull);
			replica_new(i, inner[inners++]);
		}
	}
	for (i = inners; i < roots; i++)
		inner[inners++] = node_any(kind_any());
	for (cpu = 0; cpu < cpus; cpu++) {
		u32 root = cpu < roots ? cpu : below(roots);
		if (graph_root(cpu, inner[root], now))
			fail("machine", "a root was refused");
		after("root");
	}
	for (i = below(below(2) || spread ? 6 : (roots < 63 ? 63 - roots : 20)); i > 0; i--) {
		u32 id = node_any(kind_any());
		if (!id)
			fail("machine", "a node was refused");
		for (parents = below(4) ? 1 : 1 + below(3); parents > 0; parents--)
			new_parent(id);
		if (S.node[id].first_parent)
			inner[inners++] = id;
		else
			graph_node_free(id);
		after("node");
	}
	for (i = 0; i < spread; i++)
		family_any();
}

/* A set of CPUs for the next operation: what it has of the first 64; the rest is staged. */
enum some_cpus { ALL_CPUS, ONE_CPU, CPU_AND_OTHERS };
static u64 cpus_some(enum some_cpus which, u32 cpu)
{
	u64 first = 0;
	u32 word;
	for (word = 0; word < cpus_words(); word++) {
		u64 own = word == cpu >> 6 ? mask_of(cpu) : 0;
		u64 bits = which == ALL_CPUS ? ~0ull : which == ONE_CPU ? own : roll() | own;
		if (word)
			graph_stage(TIERCE_NODE_PARAMS + word, bits);
		else
			first = bits;
	}
	return first;
}

static void task_new(void)
{
	u32 id, parents, parent;
	u32 cpu = below(cpus);
	u64 allowed;
	enum some_cpus which;
	if (tasks == TASKS)
		return;
	which = below(4) ? ALL_CPUS : CPU_AND_OTHERS;
	allowed = cpus_some(which, cpu);
	memset(S.stage, 0, sizeof S.stage);
	if (families && below(4))
		allowed = cpus_some(ALL_CPUS, cpu);
	id = graph_node_new(TIERCE_TASK, 0, allowed);
	parent = families ? family[below(families)][below(cpus)] : below(20) ? 0 : inner[below(inners)];
	if (parent && below(6))
		new_edge(parent, id, EDGE_SPREAD);
	for (parents = S.node[id].first_parent ? !below(8) : below(3) ? 1 : 1 + below(3); parents > 0; parents--)
		new_parent(id);
	held[id] = false;
	if (S.node[id].first_parent)
		task[tasks++] = id;
	else
		graph_node_free(id);
	after("task comes");
}

static bool is_left(u32 id) /* decided away, but still on its CPU as far as the port said */
{
	u32 cpu, i;
	for (cpu = 0; cpu < cpus; cpu++)
		for (i = 0; i < S.cpu[cpu].leaves; i++)
			if (S.edge[S.cpu[cpu].leave[i]].child == id)
				return true;
	return false;
}

static bool is_current(u32 id)
{
	u32 cpu;
	for (cpu = 0; cpu < cpus; cpu++)
		if (S.cpu[cpu].task == id)
			return true;
	return false;
}

static void task_gone(u32 index)
{
	u32 id = task[index], edge, next;
	if (is_left(id) || held[id])
		return;
	graph_release(id, TIERCE_GONE, now);
	after("task ends");
	for (edge = S.node[id].first_parent; edge; edge = next) {
		next = S.edge[edge].next_parent;
		if (graph_detach(edge, now))
			return; /* still running on the way: try another time */
		after("detach");
	}
	if (graph_node_free(id))
		fail("task ends", "it was not freed");
	task[index] = task[--tasks];
	after("task gone");
}

/* A yield with its decision in one entry is the same as two. */
static void yields_twice(u32 cpu, u32 left, u64 stolen_ns)
{
	struct tierce *one = tierce_native.state, *two = malloc(sizeof *two);
	struct bits before = kicked;
	memcpy(two, one, sizeof *two);
	tierce_native.state = two;
	tierce_native.record = NULL;
	S.cpu[cpu].taken_ns += stolen_ns;
	graph_yield(left ^ TIERCE_YIELDED, now);
	graph_decide(cpu, TIERCE_NONE, now, 0);
	tierce_native.state = one;
	tierce_native.record = shrink_take;
	kicked = before;
	graph_decide(cpu, left, now, stolen_ns);
	if (S.cpu[cpu].task != two->cpu[cpu].task || S.cpu[cpu].until_ns != two->cpu[cpu].until_ns ||
	    S.cpu[cpu].used_ns != two->cpu[cpu].used_ns || S.cpu[cpu].path_length != two->cpu[cpu].path_length ||
	    memcmp(S.cpu[cpu].path, two->cpu[cpu].path, S.cpu[cpu].path_length * sizeof(u32)) ||
	    memcmp(S.edge, two->edge, S.fresh_edge * sizeof *S.edge))
		fail("yield", "the short way is not the long one");
	free(two);
	yields++;
}

/* ---- spread nodes, as ports do it ---- */

static void step(void);

/* Between two entries that the port makes one after the other. */
static void between(void)
{
	u32 count = nested < NESTED && !below(3) ? below(4) : 0, inner_of = shrink_inner;
	nested++;
	apart += count;
	shrink_inner = 0;
	for (; count; count--)
		step();
	shrink_inner = inner_of;
	nested--;
}

/* What began to wait on a busy CPU, for all of which others have to look. */
static void offer(u32 id)
{
	graph_offer(id);
	offered++;
	after("offer");
}

static void enter(u32 id, u32 cpu)
{
	held[id] = true;
	nested++;
	after("leave");
	between();
	graph_enter(id, cpu, TIERCE_AFFINITY, now);
	nested--;
	if (in_transit(id))
		fail("enter", "a task did not arrive");
	held[id] = false;
	after("enter");
}

/* It is to be on that CPU. */
static bool move(u32 id, u32 cpu)
{
	int error = graph_leave(id, cpu, now);
	by_error[error & 63]++;
	if (!error)
		enter(id, cpu);
	moved += !error;
	return !error;
}

/* Where the task may be, online: `wanted`, or another CPU; TIERCE_CPUS: nowhere. */
static u32 fallback(u32 id, u32 wanted)
{
	u32 cpu;
	if (wanted < cpus && S.cpu[wanted].online && may_be_on(id, wanted))
		return wanted;
	for (cpu = 0; cpu < cpus; cpu++)
		if (S.cpu[cpu].online && may_be_on(id, cpu))
			return cpu;
	return TIERCE_CPUS;
}

/* It is noted, and what follows belongs to it. */
static void begin(u32 port, u32 a, u32 b, u64 value)
{
	if (!shrink_inner)
		shrink_note(port, a, b, value, now);
	shrink_inner++;
}
static void end(void)
{
	shrink_inner--;
}

static void wakes(u32 id)
{
	u32 home = S.node[id].domain, cpu;
	if (!is_spread(id) || S.node[id].servable) {
		graph_request(id, TIERCE_WOKE, now);
		after("request");
		return;
	}
	held[id] = true;
	nested++;
	cpu = graph_place(S.edge[S.node[id].first_parent].parent, home, allowed_of(id));
	placed += cpu != home;
	after("place");
	between();
	cpu = fallback(id, cpu);
	if (cpu < TIERCE_CPUS && cpu != home)
		move(id, cpu);
	held[id] = true;
	graph_request(id, TIERCE_WOKE, now);
	after("request");
	between();
	nested--;
	held[id] = false;
	offer(id);
}

static void wake(u32 id)
{
	begin(PORT_WAKE, id, 0, 0);
	wakes(id);
	end();
}

/* A CPU that has nothing to run takes what waits elsewhere. Did it? */
static bool pull(u32 cpu)
{
	u32 id = pull_finds(cpu, now);
	if (!id)
		return false;
	pulled++;
	enter(id, cpu);
	return true;
}

static void balance(u32 cpu)
{
	u64 given = push_leaves(cpu, now);
	if (!given)
		return;
	pushed++;
	enter((u32)given, (u32)(given >> 32));
	offer((u32)given);
}

/* After a decision in place of `ran`. */
static void decided(u32 cpu, u32 ran)
{
	u32 tries;
	if (!S.families)
		return;
	bits_put(deciding.word, cpu, true);
	nested++;
	after("decided");
	for (tries = 0; tries < 4 && !S.cpu[cpu].task && !S.cpu[cpu].leaves; tries++) {
		between();
		if (!pull(cpu))
			break;
		bits_put(kicked.word, cpu, false);
		graph_decide(cpu, TIERCE_NONE, now, 0);
		after("decide again");
	}
	if (tries == 4)
		bits_put(kicked.word, cpu, true);
	if (S.cpu[cpu].task && now >= S.cpu[cpu].balance_ns)
		balance(cpu);
	bits_put(deciding.word, cpu, false);
	if (ran && ran != S.cpu[cpu].task && !held[ran] && S.node[ran].kind == TIERCE_TASK && is_spread(ran) &&
	    S.node[ran].servable) {
		between();
		if (!held[ran])
			offer(ran);
	}
	nested--;
	after("all decided");
}

static void decide(u32 cpu, u32 blocked)
{
	u64 stolen_ns = on_grid(below(8) ? 0 : below(below(4) ? 1000 : 3000000));
	u32 ran = S.cpu[cpu].task;
	begin(PORT_DECIDE, cpu, blocked, stolen_ns);
	if (S.cpu[cpu].leaves) {
		graph_returned(cpu, now);
		after("returned");
	}
	bits_put(kicked.word, cpu, false);
	if (blocked & TIERCE_YIELDED && yields_plainly(cpu, blocked ^ TIERCE_YIELDED) && !S.cpu[cpu].leaves && !below(4))
		yields_twice(cpu, blocked, stolen_ns);
	else
		graph_decide(cpu, blocked, now, stolen_ns);
	nested++;
	after("decide");
	nested--;
	decided(cpu, ran);
	end();
}

static void rest(void)
{
	u32 round, cpu;
	for (round = 0; round < 2000; round++) {
		bool busy = false;
		for (cpu = 0; cpu < cpus; cpu++) {
			if (S.cpu[cpu].leaves) {
				graph_returned(cpu, now);
				after("returned");
				busy = true;
			}
			if (bits_have(kicked.word, cpu)) {
				decide(cpu, TIERCE_NONE);
				busy = true;
			}
		}
		if (!busy)
			return;
	}
	fail("rest", shrink_for_ever);
}

/* A task asks for a time constraint, or ends the one it may have. */
static void tell(u32 id)
{
	u32 kind = below(4) ? TIERCE_CONSTRAINT_BEGIN : TIERCE_CONSTRAINT_END;
	int error;
	S.stage[0] = on_grid(below(8) ? below(3000000) : roll());
	S.stage[1] = on_grid(below(8) ? now + below(50000000) : roll());
	error = graph_tell(id, kind, now);
	by_error[error & 63]++;
	accepted += kind == TIERCE_CONSTRAINT_BEGIN && !error;
	after("tell");
}

/* Tasks of a CPU that goes offline are moved, as far as they may be elsewhere. */
static void online(u32 cpu)
{
	u32 i, id, to;
	begin(PORT_ONLINE, cpu, !S.cpu[cpu].online, 0);
	graph_online(cpu, !S.cpu[cpu].online, now);
	nested++;
	after("online");
	if (S.families && !S.cpu[cpu].online) {
		decide(cpu, TIERCE_NONE);
		for (i = 0; i < tasks; i++) {
			id = task[i];
			if (held[id] || !is_spread(id) || S.node[id].domain != cpu || is_current(id))
				continue;
			to = fallback(id, cpu);
			if (to < TIERCE_CPUS && move(id, to) && S.node[id].servable && !held[id])
				offer(id);
		}
	}
	nested--;
	after("moved");
	end();
}

/* New affinity; who waits where it may not is moved. */
static void allow(u32 id, u64 mask)
{
	u32 to;
	int error;
	begin(PORT_ALLOW, id, 0, mask);
	error = graph_allow(id, mask, now);
	by_error[error & 63]++;
	nested++;
	after("allow");
	if (!error && is_spread(id)) {
		to = fallback(id, S.node[id].domain);
		if (to < TIERCE_CPUS && to != S.node[id].domain)
			move(id, to);
		if (S.node[id].servable && !held[id])
			offer(id);
	}
	nested--;
	after("allowed");
	end();
}

/* What brings tasks of spread nodes to other CPUs: they wake and sleep, and CPUs decide. */
static void spread_step(u32 cpu)
{
	u32 id = any_task(), runs = S.cpu[cpu].task;
	switch (below(6)) {
	case 0:
		if (!tasks || below(tasks) < 3 * cpus)
			task_new();
		break;
	case 1:
	case 2:
		if (id)
			wake(id);
		break;
	case 3:
		if (runs && !held[runs] && !S.cpu[cpu].leaves)
			decide(cpu, runs);
		break;
	case 4:
		if (bits_have(kicked.word, cpu))
			decide(cpu, TIERCE_NONE);
		break;
	case 5:
		if (!nested)
			rest();
		now = on_grid(now + below(3000000));
		break;
	}
}

static void step(void)
{
	u32 cpu = below(cpus), index;
	u64 stolen_ns;
	int error;
	if (bits_have(deciding.word, cpu))
		return;
	if (families && below(2)) {
		spread_step(cpu);
		return;
	}
	switch (below(16)) {
	case 0: task_new(); break;
	case 1:
		if (tasks && !below(3))
			task_gone(below(tasks));
		break;
	case 2:
	case 3:
	case 4:
		index = any_task();
		if (index)
			wake(index);
		break;
	case 5:
	case 6:
		index = below(4) ? 0 : S.cpu[cpu].task;
		if (index && !is_left(index) && !held[index]) {
			graph_yield(index, now);
			after("yield");
			break;
		}
		index = any_task();
		if (index && !(is_left(index) && !is_current(index))) {
			graph_release(index, TIERCE_BLOCKED, now);
			after("release");
		}
		break;
	case 7:
	case 8:
		if (!below(500))
			now += roll() % (1ull << 42);
		if (wide && !below(16))
			now += any_value(0, (1ull << 42) - 1, REQUIRED);
		now = on_grid(now + (below(4) ? below(100000) : roll() % 20000000));
		break;
	case 9:
		if (S.cpu[cpu].until_ns > now && S.cpu[cpu].until_ns < now + 1000000000)
			now = S.cpu[cpu].until_ns;
		stolen_ns = on_grid(below(8) ? 0 : below(below(4) ? 1000 : 3000000));
		begin(PORT_EVENT, cpu, 0, stolen_ns);
		graph_event(cpu, now, stolen_ns);
		after("event");
		if (S.families && now >= S.cpu[cpu].balance_ns)
			balance(cpu);
		end();
		break;
	case 10:
		if (bits_any(kicked.word))
			while (!bits_have(kicked.word, cpu))
				cpu = (cpu + 1) % cpus;
		if (bits_have(deciding.word, cpu))
			break;
		if (held[S.cpu[cpu].task]) {
			decide(cpu, TIERCE_NONE);
			break;
		}
		decide(cpu, below(2) ? S.cpu[cpu].task | (below(2) ? TIERCE_YIELDED : 0) : TIERCE_NONE);
		break;
	case 11:
		if (S.cpu[cpu].leaves) {
			graph_returned(cpu, now);
			after("returned");
		} else if (any_task()) {
			tell(any_task());
		}
		break;
	case 12:
		if (!nested)
			rest();
		break;
	case 13:
		index = 1 + below(S.fresh_edge - 1);
		if (in_transit(S.edge[index].child))
			break;
		if (S.edge[index].child && S.edge[index].parent) {
			stage_edge(S.node[S.edge[index].parent].kind);
			by_error[graph_set(index, now) & 63]++;
			after("set");
		} else if (inners && below(2)) {
			index = inner[below(inners)];
			stage_node(S.node[index].kind);
			error = graph_node_set(index, now);
			by_error[error & 63]++;
			if (error && error != TIERCE_E_still_in_use) /* another choice */
				fail("node set", "parameters in their range were refused");
			after("node set");
		} else if (any_task()) {
			u32 id = any_task();
			u64 ahead_ns = wide && below(2) ? any_value(0, TIERCE_TIME_MAX, REQUIRED) : below(10000000);
			graph_announce(id, below(4) ? on_grid(now + ahead_ns) : TIERCE_NEVER, now);
			after("announce");
		}
		break;
	case 14:
		index = any_task();
		if (index && below(2)) {
			if (is_spread(index) && !below(2)) {
				u32 to = below(cpus + 1);
				begin(PORT_MOVE, index, to, 0);
				nested++;
				if (move(index, to) && S.node[index].servable && !held[index])
					offer(index);
				nested--;
				after("moved");
				end();
			} else {
				allow(index, cpus_some(below(2) ? ALL_CPUS : below(2) ? ONE_CPU : CPU_AND_OTHERS, cpu));
			}
		} else {
			u32 begins = !S.cpu[cpu].outside && !below(4);
			if (begins && !below(2)) /* out of turn, or nonsense */
				begins += below(S.fresh_node + 1);
			graph_outside(cpu, begins, now);
			after("outside");
		}
		break;
	case 15:
		if (!below(8)) {
			online(cpu);
		}
		break;
	}
}

int main(int argc, char **argv)
{
	u64 seed = 1, wanted = 1000000, machines = 0, life, i;
	for (i = 1; i < (u64)argc; i++) {
		if (!strcmp(argv[i], "-v"))
			verbose = 1;
		else if (!strcmp(argv[i], "-w"))
			wide = true;
		else if (!strcmp(argv[i], "-m"))
			many = true;
		else if (!strcmp(argv[i], "-c"))
			grid = 1000000;
		else if (!strcmp(argv[i], "-n") && i + 1 < (u64)argc)
			wanted = strtoull(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-s") && i + 1 < (u64)argc)
			seed = strtoull(argv[++i], 0, 0);
		else
			return fprintf(stderr, "usage: random [-n OPERATIONS] [-s SEED] [-v] [-w] [-c] [-m]\n"), 2;
	}
	printf("random: seed %llu, %llu operations\n", (unsigned long long)seed, (unsigned long long)wanted);
	fflush(stdout);
	random_state = seed;
	tierce_native.state = calloc(1, sizeof S);
	tierce_native.record = shrink_take;
	while (operations < wanted) {
		machine_new();
		machines++;
		for (life = operations + 500 + below(5000); operations < life && operations < wanted;)
			step();
	}
	if (!PORT_HAS_PART(shared) && wanted > 10000 && !by_error[TIERCE_E_part_is_left_out])
		fail("end", "nothing was refused of what is left out");
	printf("random: %llu operations on %llu machines, %llu edges attached, %llu refused, %llu checks at rest, %llu yields "
	       "twice, %llu time constraints, %llu placed, %llu moves, %llu pulled, %llu given, %llu offered, %llu apart, %llu "
	       "times groups joined, %llu parted, %llu with several: no invariant broken\n",
	       (unsigned long long)operations, (unsigned long long)machines, (unsigned long long)attached,
	       (unsigned long long)refused, (unsigned long long)checked_at_rest, (unsigned long long)yields,
	       (unsigned long long)accepted, (unsigned long long)placed, (unsigned long long)moved, (unsigned long long)pulled,
	       (unsigned long long)pushed, (unsigned long long)offered, (unsigned long long)apart, (unsigned long long)joined,
	       (unsigned long long)parted, (unsigned long long)beside);
	return 0;
}
