/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every interleaving of the engine on small machines.
 *
 *   model [-l] [-d] [-v] [-m STATES] [CONFIGURATION...]
 *     -l: list the configurations   -d: the deep ones, too   -v: dump the state of a counterexample   -m: states at most
 *
 * What is explored is the engine itself (policy/, compiled with tiny pools), not a model of it. From the initial state of
 * a configuration, breadth first, every step that a port or the world can take is tried in every state:
 *
 *   decide C     a kicked CPU decides. Entries hold their locks to their end, so an entry is one step.
 *   returned C   what the last decision left is off the CPU and in custody
 *   event C      a timer that is due fires; together with the two above: the internal steps
 *   again C      a decision nobody asked for
 *   late C       a decision, while another CPU fills its inbox just after it was drained: the one thing that others may
 *                change in the middle of an entry
 *   wake T, sleep T    a task asks for a CPU, or blocks (running: it is off the CPU at once; waiting: taken away)
 *   tick         time passes by one unit, where the configuration has time; else it stands still
 *   offline C, online C, outside C, inside C, narrow T, widen T    where the configuration has them
 *   urge T, calm T     the first task announces a deadline that is near, or none
 *   begin T, end T     a task asks for a time constraint, or needs it no more
 *
 * With spread nodes a port makes several entries of what happens once, each of which is a step of its own:
 *
 *   wake T = place, leave, enter, request, offer T      a task that wakes is placed on a CPU, moves there, wants it, is offered
 *   move T = leave, enter, offer T     its CPU went offline, or its affinity changed, while it waits
 *   decide C = decide, pull, arrive, decide, ... C; offer T     a CPU that decides for nothing looks for a task, which leaves its
 *                                      CPU, and enters this one, until it has something or finds none; what it ran is offered
 *   give C = give C, enter, offer T    tasks that wait are balanced
 *   exit T             a task ends, waiting or asleep
 *
 * Lost wake-up: a CPU that decides for nothing sets its idle bit, then looks (pull); a task that begins to wait does so
 * (request, enter), then looks for idle CPUs (offer). Every interleaving of the four is among the steps. A model of a port that
 * looks or offers first (MODEL_LOOKS_FIRST, MODEL_OFFERS_FIRST) has to lose wake-ups.
 *
 * A state is seen again when nothing that can influence the future differs: counters are left out, times count relative
 * to now, orders by their sequence (see canonical()).
 *
 * Checked in every state: the checker; from the paths alone, no task on two CPUs (leaving ones included) and no node on
 * more CPUs than its concurrency. At rest (no internal step is possible): the checker's rules for rest; a decision would
 * change nothing on any CPU; no CPU that holds no place of a shared node would pick it, were it asked, while there is
 * room (lost wake-up) or by a larger rank (inversion). So at rest min(limit, CPUs whose tree would pick it) CPUs run it.
 * And the graph of internal steps has no cycle: when the world stands still, rest is reached, whatever the order.
 *
 * A counterexample is printed as its list of steps, a shortest one.
 */
#define TEST_INBOX_TAKE model_inbox_take
#include "engine.h"
#include <time.h>

#define UNIT	    1000000ull /* a tick */
#define SLOT	    (3 * UNIT)
#define STARVATION  (3 * UNIT)
#define LONG_AGO    (4 * UNIT) /* more than STARVATION, and more quanta than a boost */
#define PERIOD	    (4 * UNIT)
#define FIRST	    1000000000ull
#define TASKS	    8
#define STATES_MOST 50000000u

enum step {
	DECIDE,
	RETURNED,
	EVENT,
	INTERNAL_END = EVENT, /* internal: they happen of their own accord */
	AGAIN,
	LATE,
	WAKE,
	SLEEP,
	TICK,
	OFFLINE,
	ONLINE,
	OUTSIDE,
	INSIDE,
	NARROW,
	WIDEN,
	URGE,
	CALM,
	BEGIN,
	END,
	PLACE,
	LEAVE,
	ENTER,
	REQUEST,
	OFFER,
	PULL,
	ARRIVE,
	GIVE,
	MOVE,
	EXIT,
	STEPS
};
static const char *const step_name[STEPS] = {"decide",	"returned", "event",  "again",	 "late",   "wake",   "sleep",
					     "tick",	"offline",  "online", "outside", "inside", "narrow", "widen",
					     "urge",	"calm",	    "begin",  "end",	 "place",  "leave",  "enter",
					     "request", "offer",    "pull",   "arrive",	 "give",   "move",   "exit"};

enum {
	TIMED = 1,
	QUIET = 2,
	HOTPLUG = 4,
	FOREIGN = 8,
	AFFINITY = 16,
	DEEP = 32,
	UNTIMELY = 64,
	DEADLINES = 128,
	MESSAGES = 256,
	SPREAD = 512,
	EXITS = 1024
};

static u64 now;
static u32 task[TASKS], tasks;
static char task_name[TASKS][16];
static u32 flags;
static bool inbox_is_late;

/* The port's side of the truth, kept in the state where control operations, of which there are none while exploring, stage
 * their parameters: what a CPU ran before its last decision and has not got rid of; that its timer fired and the decision
 * that will set it again is due; that time went on while something was due. */
struct ghost {
	u16 leaving;
	u8 fired, late;
	u8 kicked;	  /* a decision is due; with spread nodes, where not all kicks are told to the CPU's domain */
	u8 phase, pulled; /* in the middle of one: enum phase; the task in transit */
	u8 pad;
};
_Static_assert(sizeof(struct ghost) == sizeof(u64) && TIERCE_PARAMS >= TIERCE_CPUS, "a place for each CPU");
enum phase { PHASE_NONE, PHASE_LOOKS, PHASE_TAKES, PHASE_DECIDES };

/* Of a task below a spread node: which entry about it comes next, and the CPU concerned; whether it wants a CPU. */
struct task_ghost {
	u8 stage, to, wants, offers; /* offers: and no request before it */
};
enum stage { STAGE_NONE, STAGE_LEAVE, STAGE_ENTER, STAGE_REQUEST, STAGE_OFFER };
_Static_assert(sizeof(struct task_ghost) * TASKS <= sizeof(u64) * (TIERCE_NODE_PARAMS - TIERCE_PARAMS),
	       "a place for each task");

static struct ghost *ghost(u32 cpu)
{
	return (struct ghost *)&S.stage[cpu];
}

static struct task_ghost *task_ghost(u32 index)
{
	return (struct task_ghost *)&S.stage[TIERCE_PARAMS] + index;
}

static u64 model_inbox_take(u32 cpu)
{
	u64 bits = S.inbox[cpu].bits;
	if (inbox_is_late && bits) {
		kick(cpu); /* set, and then the kick: but only now */
		return 0;
	}
	S.inbox[cpu].bits = 0;
	return bits;
}

/* ---- building a configuration ----------------------------------------------------------------------------------- */

static void __attribute__((noreturn)) stop(const char *what)
{
	printf("model: %s\n", what);
	exit(2);
}

static u32 order; /* of fair nodes */

static u32 node(u32 kind, u32 concurrency)
{
	u32 id;
	memset(S.stage, 0, sizeof S.stage);
	if (kind == TIERCE_fair || kind == TIERCE_round_robin || kind == TIERCE_constraint)
		S.stage[0] = UNIT;
	if (kind == TIERCE_fair)
		S.stage[1] = order;
	if (kind == TIERCE_uniform)
		S.stage[0] = PERIOD;
	if (kind == TIERCE_constraint)
		S.stage[1] = S.stage[2] = PERIOD; /* the whole CPU */
	if (kind == TIERCE_slots)
		S.stage[0] = SLOT;
	if (kind == TIERCE_time_sharing) {
		S.stage[0] = UNIT;
		S.stage[1] = STARVATION;
		S.stage[2] = 1;
	}
	if (kind == TIERCE_i_plus_pi || kind == TIERCE_multiburst) {
		S.stage[1] = S.stage[2] = S.stage[3] = UNIT; /* every burst is a unit */
		S.stage[4] = S.stage[5] = S.stage[6] = 1 << 19;
	}
	id = graph_node_new(kind, concurrency, ~0ull);
	if (!id)
		stop("a node was refused");
	return id;
}

/* An edge with its policy's parameters: priority, boost; deadline; budget and period, offset and length in units; weight;
 * quarters of a CPU; halves of it and units; priority and, of who is critical, units at the worst. */
static u32 edge(u32 parent, u32 child, s32 rank, u32 first, u32 second, u32 edge_flags)
{
	u32 id = graph_edge_new(parent, child, rank, edge_flags);
	memset(S.stage, 0, sizeof S.stage);
	S.stage[0] = first;
	if (S.node[parent].kind == TIERCE_reservation) {
		S.stage[0] = first * UNIT;
		S.stage[1] = second * UNIT;
		S.stage[2] = second * UNIT;
	}
	if (S.node[parent].kind == TIERCE_slots) {
		S.stage[0] = first * UNIT;
		S.stage[1] = second * UNIT;
	}
	if (S.node[parent].kind == TIERCE_uniform)
		S.stage[0] = first << 18;
	if (S.node[parent].kind == TIERCE_briefly_blocked) {
		S.stage[0] = first << 19;
		S.stage[1] = second * UNIT;
	}
	if (S.node[parent].kind == TIERCE_multiburst || S.node[parent].kind == TIERCE_time_sharing)
		S.stage[1] = second;
	if (S.node[parent].kind == TIERCE_mixed_criticality) {
		S.stage[1] = UNIT;
		S.stage[2] = PERIOD;
		S.stage[3] = second * UNIT;
	}
	if (!id || graph_attach(id, now))
		stop("an edge was refused");
	return id;
}

static u32 task_new(const char *name, u64 allowed)
{
	u32 id;
	memset(S.stage, 0, sizeof S.stage);
	id = graph_node_new(TIERCE_TASK, 0, allowed);
	if (!id || tasks == TASKS)
		stop("a task was refused");
	snprintf(task_name[tasks], sizeof task_name[0], "%s", name);
	task[tasks++] = id;
	return id;
}

/* A root of fixed priorities for each CPU, and in it a task that closes what is below priority 9 while it is awake. */
static u32 root[TIERCE_CPUS];
static void roots(void)
{
	u32 cpu;
	char name[16];
	for (cpu = 0; cpu < S.cpus; cpu++) {
		root[cpu] = node(TIERCE_fixed_priority, 0);
		if (graph_root(cpu, root[cpu], now))
			stop("a root was refused");
		snprintf(name, sizeof name, "close%u", cpu);
		edge(root[cpu], task_new(name, ~0ull), 0, 9, 0, 0);
	}
}

static void workers(u32 parent, u32 count, u64 allowed)
{
	static const char *const name[] = {"a", "b", "c", "d"};
	u32 i;
	for (i = 0; i < count; i++)
		edge(parent, task_new(name[i], allowed), 0, 1, 0, 0);
}

/* One shared node with a crossing edge per CPU: ranks as digits, `count` tasks below, at most `limit` CPUs at once. */
static void shared(const char *ranks, u32 count, u32 limit, u32 kind)
{
	u32 n, cpu;
	roots();
	n = node(kind, limit);
	for (cpu = 0; cpu < S.cpus; cpu++)
		edge(root[cpu], n, ranks[cpu] - '0', 5, 0, 0);
	workers(n, count, ~0ull);
}

/* A spread node with a replica on each CPU, below a root or as the root, and tasks that begin on CPU 0. */
static void spread(u32 kind, u32 count, bool as_root, u64 last_allowed)
{
	static const char *const name[] = {"a", "b", "c", "d"};
	u32 cpu, i, replica, first = 0, t, e;
	if (!as_root)
		roots();
	for (cpu = 0; cpu < S.cpus; cpu++) {
		replica = node(kind, 0);
		first = first ? first : replica;
		if (graph_replica(replica, first) || (as_root && graph_root(cpu, replica, now)))
			stop("a replica was refused");
		if (!as_root)
			edge(root[cpu], replica, 0, 5, 0, 0);
	}
	for (i = 0; i < count; i++) {
		t = task_new(name[i], i + 1 == count ? last_allowed : ~0ull);
		e = graph_edge_new(first, t, 0, EDGE_SPREAD);
		memset(S.stage, 0, sizeof S.stage);
		S.stage[0] = 1;
		if (!e || graph_attach(e, now))
			stop("a task of a spread node was refused");
	}
}

#define FIFO TIERCE_fixed_priority
#define RR   TIERCE_round_robin

/* A task with several parents on several CPUs is itself the shared node. */
static void lone(const char *ranks)
{
	u32 cpu, t;
	roots();
	t = task_new("a", ~0ull);
	for (cpu = 0; cpu < S.cpus; cpu++)
		edge(root[cpu], t, ranks[cpu] - '0', 5, 0, 0);
}

/* One root for all CPUs. */
static void one_root(u32 count, u32 limit)
{
	u32 cpu, n = node(RR, limit);
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (graph_root(cpu, n, now))
			stop("a root was refused");
	workers(n, count, ~0ull);
}

/* A soft reservation: task a has an edge of its own on CPU 0 and one in the default node that both CPUs share. */
static void soft(u32 own, s32 rank)
{
	u32 d, t;
	roots();
	d = node(RR, 0);
	edge(root[0], d, 0, 1, 0, 0);
	edge(root[1], d, 0, 1, 0, 0);
	t = task_new("a", ~0ull);
	edge(root[0], t, rank, own, 0, 0);
	edge(d, t, 0, 0, 0, 0);
	edge(d, task_new("b", ~0ull), 0, 0, 0, 0);
}

/* The same with a reservation that is really spent. */
static void soft_timed(void)
{
	u32 d, t, r;
	roots();
	d = node(RR, 0);
	r = node(TIERCE_reservation, 0);
	edge(root[0], r, 0, 5, 0, 0);
	edge(root[0], d, 0, 1, 0, 0);
	edge(root[1], d, 0, 1, 0, 0);
	t = task_new("a", ~0ull);
	edge(r, t, 0, 1, 2, 0);
	edge(d, t, 0, 0, 0, 0);
}

/* Two edges of one shared node on CPU 0, above and below a task there, and one on CPU 1. */
static void twice(s32 high, s32 low, s32 other, u32 count, u32 limit)
{
	u32 n;
	roots();
	n = node(FIFO, limit);
	edge(root[0], n, high, 10, 0, 0);
	edge(root[0], n, low, 5, 0, 0);
	edge(root[1], n, other, 5, 0, 0);
	workers(n, count, ~0ull);
}

/* Tasks that may not run everywhere. */
static void affinity(u64 a, u64 b, u64 c, const char *ranks, u32 limit)
{
	u32 n, cpu;
	roots();
	n = node(FIFO, limit);
	for (cpu = 0; cpu < S.cpus; cpu++)
		edge(root[cpu], n, ranks[cpu] - '0', 5, 0, 0);
	edge(n, task_new("a", a), 0, 1, 0, 0);
	edge(n, task_new("b", b), 0, 2, 0, 0);
	if (c)
		edge(n, task_new("c", c), 0, 3, 0, 0);
}

/* A shared node below a shared node. */
static void nested(const char *ranks, u32 limit, u32 inner_limit)
{
	u32 n, m;
	roots();
	n = node(FIFO, limit);
	edge(root[0], n, ranks[0] - '0', 5, 0, 0);
	edge(root[1], n, ranks[1] - '0', 5, 0, 0);
	m = node(RR, inner_limit);
	edge(n, m, 0, 2, 0, 0);
	edge(n, task_new("a", ~0ull), 0, 1, 0, 0);
	edge(m, task_new("b", ~0ull), 0, 0, 0, 0);
}

/* A shared node below a shared node and, directly, below a CPU. */
static void both_ways(const char *ranks, u32 limit, u32 direct, s32 direct_rank)
{
	u32 n, m;
	roots();
	n = node(FIFO, limit);
	edge(root[0], n, ranks[0] - '0', 5, 0, 0);
	edge(root[1], n, ranks[1] - '0', 5, 0, 0);
	m = node(RR, 0);
	edge(n, m, 0, 1, 0, 0);
	edge(root[1], m, direct_rank, direct, 0, 0);
	edge(m, task_new("a", ~0ull), 0, 0, 0, 0);
}

/* Two shared nodes with a task that both serve. */
static void diamond(void)
{
	u32 n, m, t;
	roots();
	n = node(RR, 0);
	m = node(RR, 0);
	edge(root[0], n, 0, 5, 0, 0);
	edge(root[1], n, 0, 5, 0, 0);
	edge(root[0], m, 0, 3, 0, 0);
	edge(root[1], m, 0, 7, 0, 0);
	t = task_new("a", ~0ull);
	edge(n, t, 0, 0, 0, 0);
	edge(m, t, 0, 0, 0, 0);
	edge(n, task_new("b", ~0ull), 0, 0, 0, 0);
}

/* One CPU, one domain: a task served by a reservation, and by the rest only while that one is spent. */
static void when_spent(bool node_between)
{
	u32 r, top, t, n;
	roots();
	r = node(TIERCE_reservation, 0);
	edge(root[0], r, 0, 5, 0, 0);
	top = node(RR, 0);
	edge(root[0], top, 0, 1, 0, 0);
	edge(top, task_new("b", ~0ull), 0, 0, 0, 0);
	if (node_between) {
		n = node(FIFO, 0);
		edge(r, n, 0, 1, 3, 0);
		edge(top, n, 0, 0, 0, EDGE_WHEN_SPENT);
		workers(n, 2, ~0ull);
	} else {
		t = task_new("a", ~0ull);
		edge(r, t, 0, 1, 3, 0);
		edge(top, t, 0, 0, 0, EDGE_WHEN_SPENT);
	}
}

/* One CPU, one domain: a task with two reservations and a rest. */
static void join(void)
{
	u32 r, t;
	roots();
	r = node(TIERCE_reservation, 0);
	edge(root[0], r, 0, 5, 0, 0);
	t = task_new("a", ~0ull);
	edge(r, t, 0, 1, 2, 0);
	edge(r, t, 0, 1, 3, 0);
	edge(root[0], t, 0, 1, 0, 0);
}

/* One CPU: two budgets that come back in one of the rarer ways, by priority or by deadline, below somebody else. */
static void servers(u32 order, u32 kind)
{
	u32 r;
	roots();
	memset(S.stage, 0, sizeof S.stage);
	S.stage[0] = order;
	S.stage[1] = kind;
	r = graph_node_new(TIERCE_reservation, 0, ~0ull);
	if (!r)
		stop("a node was refused");
	edge(root[0], r, 0, 5, 0, 0);
	edge(r, task_new("a", ~0ull), 0, 1, 3, 0);
	edge(r, task_new("b", ~0ull), 0, 2, 4, 0);
}

/* A hyper container: a node with a reservation on each of two CPUs. */
static void hyper(u32 count, u32 limit, s32 rank)
{
	u32 n, cpu, r;
	roots();
	n = node(FIFO, limit);
	for (cpu = 0; cpu < 2; cpu++) {
		r = node(TIERCE_reservation, 0);
		edge(root[cpu], r, 0, 5, 0, 0);
		edge(r, n, cpu ? rank : 0, 1, 2 + cpu, 0);
	}
	workers(n, count, ~0ull);
}

/* Reservations inside a shared node: its events are served by one CPU. */
static void shared_reservations(void)
{
	u32 r;
	roots();
	r = node(TIERCE_reservation, 0);
	edge(root[0], r, 0, 5, 0, 0);
	edge(root[1], r, 0, 5, 0, 0);
	edge(r, task_new("a", ~0ull), 0, 1, 2, 0);
	edge(r, task_new("b", ~0ull), 0, 1, 3, 0);
}

/* Two groups that have joined: CPUs 1 and 2, who share reservations, one of them spent by then, and CPU 0, by a task. */
static void groups(void)
{
	u32 cpu, r, a, b;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		root[cpu] = node(FIFO, 0);
		if (graph_root(cpu, root[cpu], now))
			stop("a root was refused");
	}
	r = node(TIERCE_reservation, 0);
	edge(root[1], r, 0, 5, 0, 0);
	edge(root[2], r, 0, 5, 0, 0);
	a = task_new("a", ~0ull);
	edge(r, a, 0, 1, 2, 0);
	graph_request(a, TIERCE_WOKE, now);
	graph_decide(1, 0, now, 0);
	now += UNIT;
	graph_decide(1, 0, now, 0);
	graph_returned(1, now);
	b = task_new("b", ~0ull);
	edge(root[0], b, 0, 1, 0, 0);
	edge(root[1], b, 0, 1, 0, 0);
	if (!event_link(S.node[a].first_parent)->rank || shared_of(0) != shared_of(2))
		stop("the groups have not joined");
}

/* A node split over two CPUs: the end of each slot on the first, the begin of it on the second. On the first one who would
 * take all the rest of the slot, on both one of lower priority. */
static void split(u32 count)
{
	u32 n, cpu, slots[2];
	roots();
	n = node(FIFO, 1);
	for (cpu = 0; cpu < 2; cpu++) {
		slots[cpu] = node(TIERCE_slots, 0);
		edge(root[cpu], slots[cpu], 0, 5, 0, 0);
		edge(slots[cpu], n, 0, cpu ? 0 : 2, 1, 0);
	}
	workers(n, count, ~0ull);
	edge(slots[0], task_new("local", ~0ull), 0, 0, 2, 0);
}

/* A fair node on one CPU that does not order by start tags, of equal weights. */
static void ordered(u32 by)
{
	u32 n;
	roots();
	order = by;
	n = node(TIERCE_fair, 0);
	edge(root[0], n, 0, 5, 0, 0);
	workers(n, 2, ~0ull);
}

/* One root for all CPUs whose children have a second parameter, too. */
static void small(u32 kind, u32 first, u32 second)
{
	u32 cpu, n = node(kind, 0);
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (graph_root(cpu, n, now))
			stop("a root was refused");
	edge(n, task_new("a", ~0ull), 0, first, second, 0);
	edge(n, task_new("b", ~0ull), 0, first, second, 0);
}

/* Rounds on one CPU, a child of each kind of wake. */
static void rounds(u32 kind)
{
	u32 n;
	roots();
	n = node(kind, 0);
	edge(root[0], n, 0, 5, 0, 0);
	edge(n, task_new("a", ~0ull), 0, 1, 0, 0);
	edge(n, task_new("b", ~0ull), 0, 1, kind == TIERCE_multiburst, 0);
	edge(n, task_new("c", ~0ull), 0, 1, 2 * (kind == TIERCE_multiburst), 0);
}

/* Levels on one CPU: one that rises when it wakes, above and then beside one that is lifted when it starves. */
static void levels(void)
{
	u32 n;
	roots();
	n = node(TIERCE_time_sharing, 0);
	edge(root[0], n, 0, 5, 0, 0);
	edge(n, task_new("a", ~0ull), 0, 1, 1, 0);
	edge(n, task_new("b", ~0ull), 0, 0, 1, 0);
}

/* Usual children and a critical one, each with a unit in every period, the critical one at the worst with three. */
static void critical(u32 priority, u32 usual)
{
	u32 n;
	roots();
	n = node(TIERCE_mixed_criticality, 0);
	edge(root[0], n, 0, 5, 0, 0);
	edge(n, task_new("critical", ~0ull), 0, priority, 3, 0);
	edge(n, task_new("a", ~0ull), 0, 2, 0, 0);
	if (usual > 1)
		edge(n, task_new("b", ~0ull), 0, 1, 0, 0);
}

#define CONFIGURATIONS(C) \
	C(two_equal_1_1, 2, "2 CPUs, ranks 1 1, 1 task, limit 1", shared("11", 1, 1, FIFO), 0) \
	C(two_ranked_1_1, 2, "2 CPUs, ranks 1 2, 1 task, limit 1", shared("12", 1, 1, FIFO), 0) \
	C(two_ranked_2_1, 2, "2 CPUs, ranks 1 2, 2 tasks, limit 1", shared("12", 2, 1, FIFO), 0) \
	C(two_equal_2_2, 2, "2 CPUs, ranks 1 1, 2 tasks, limit 2", shared("11", 2, 2, FIFO), 0) \
	C(two_ranked_2_2, 2, "2 CPUs, ranks 1 2, 2 tasks, limit 2", shared("12", 2, 2, FIFO), 0) \
	C(three_ranked_1_1, 3, "3 CPUs, ranks 1 2 3, 1 task, limit 1", shared("123", 1, 1, FIFO), 0) \
	C(three_mixed_1_1, 3, "3 CPUs, ranks 1 1 2, 1 task, limit 1", shared("112", 1, 1, FIFO), 0) \
	C(three_equal_2_2, 3, "3 CPUs, ranks 1 1 1, 2 tasks, limit 2", shared("111", 2, 2, FIFO), DEEP) \
	C(three_ranked_2_2, 3, "3 CPUs, ranks 1 2 3, 2 tasks, limit 2", shared("123", 2, 2, FIFO), DEEP) \
	C(three_mixed_2_1, 3, "3 CPUs, ranks 1 2 2, 2 tasks, limit 1", shared("122", 2, 1, FIFO), DEEP) \
	C(four_ranked_1_1, 4, "4 CPUs, ranks 1 2 3 4, 1 task, limit 1", shared("1234", 1, 1, FIFO), DEEP) \
	C(two_fair_3_2, 2, "2 CPUs, fair node, 3 tasks, limit 2", shared("11", 3, 2, TIERCE_fair), DEEP) \
	C(two_fair_2_2, 2, "2 CPUs, fair node, 2 tasks, limit 2", shared("11", 2, 2, TIERCE_fair), 0) \
	C(two_edf_2_1, 2, "2 CPUs, ranks 2 1, edf node, 2 tasks, limit 1", shared("21", 2, 1, TIERCE_edf), 0) \
	C(two_quiet_2_1, 2, "the port decides of its own accord: ranks 1 2, 2 tasks, limit 1", shared("12", 2, 1, FIFO), QUIET) \
	C(two_quiet_2_2, 2, "the port decides of its own accord: ranks 1 1, 2 tasks, limit 2", shared("11", 2, 2, FIFO), QUIET) \
	C(lone_equal, 3, "a task with 3 parents on 3 CPUs", lone("111"), 0) \
	C(lone_ranked, 3, "a task with 3 parents on 3 CPUs, ranks 1 2 3", lone("123"), 0) \
	C(root_2_2, 2, "one root for 2 CPUs, 2 tasks", one_root(2, 0), 0) \
	C(root_2_3, 2, "one root for 2 CPUs, 3 tasks", one_root(3, 0), 0) \
	C(root_3_3, 3, "one root for 3 CPUs, 3 tasks", one_root(3, 0), 0) \
	C(root_3_3_2, 3, "one root for 3 CPUs, 3 tasks, limit 2", one_root(3, 2), 0) \
	C(soft_above, 2, "a task's own edge on CPU 0 above, its second in the shared default node", soft(5, 0), 0) \
	C(soft_above_ranked, 2, "the same, the own edge outranks", soft(5, 1), 0) \
	C(soft_below, 2, "the own edge below the default node", soft(1, 0), 0) \
	C(soft_timed, 2, "a reservation that is spent, and the shared default node", soft_timed(), TIMED) \
	C(twice_equal, 2, "two edges of one node on CPU 0, one on CPU 1", twice(1, 1, 1, 2, 1), 0) \
	C(twice_ranked, 2, "two edges of one node on CPU 0, ranks 3 1, one on CPU 1, rank 2", twice(3, 1, 2, 2, 1), 0) \
	C(twice_inverted, 2, "the same, the CPU prefers the one of lower rank: 1 3, rank 2", twice(1, 3, 2, 2, 1), 0) \
	C(twice_both, 2, "two edges of one node on CPU 0, one on CPU 1, limit 2", twice(1, 1, 1, 2, 2), 0) \
	C(affinity_split, 2, "2 CPUs, tasks for CPU 0, CPU 1", affinity(1, 2, 0, "11", 2), 0) \
	C(affinity_mixed, 2, "2 CPUs, tasks for CPU 0, CPU 1, both", affinity(1, 2, 3, "11", 2), 0) \
	C(affinity_limit, 2, "2 CPUs, tasks for CPU 0, CPU 1, both, limit 1, ranks 1 2", affinity(1, 2, 3, "12", 1), 0) \
	C(affinity_three, 3, "3 CPUs, tasks for CPUs 0 1, CPUs 1 2", affinity(3, 6, 0, "111", 2), DEEP) \
	C(affinity_change, 2, "2 CPUs, affinities that change", affinity(3, 3, 0, "11", 2), AFFINITY) \
	C(nested_2_2, 2, "a shared node below a shared node", nested("11", 2, 0), 0) \
	C(nested_1_1, 2, "a shared node below a shared node, limit 1", nested("11", 1, 0), 0) \
	C(nested_ranked, 2, "a shared node below a shared node, ranks 0 1, limit 1", nested("01", 1, 0), 0) \
	C(both_ways_above, 2, "a shared node below a shared node, and above it on CPU 1", both_ways("00", 1, 7, 0), 0) \
	C(both_ways_below, 2, "a shared node below a shared node, and below it on CPU 1 by a larger rank", both_ways("00", 1, 3, 1), 0) \
	C(diamond, 2, "a task below two shared nodes", diamond(), DEEP) \
	C(hotplug_2_2, 2, "2 CPUs that come and go, 2 tasks, limit 2", shared("11", 2, 2, FIFO), HOTPLUG) \
	C(hotplug_2_1, 2, "2 CPUs that come and go, ranks 1 2, 2 tasks, limit 1", shared("12", 2, 1, FIFO), HOTPLUG) \
	C(foreign_2_1, 2, "2 CPUs that run other things at times, ranks 1 2, 2 tasks, limit 1", shared("12", 2, 1, FIFO), FOREIGN) \
	C(when_spent_task, 1, "1 CPU: a task's second edge while the first is spent", when_spent(false), TIMED) \
	C(when_spent_node, 1, "1 CPU: a node's second edge while the first is spent", when_spent(true), TIMED) \
	C(join, 1, "1 CPU: a task with two reservations and a rest", join(), TIMED) \
	C(join_late, 1, "the same with timers one unit late", join(), TIMED | UNTIMELY) \
	C(servers_periodic, 1, "1 CPU: two periodic budgets by priority", servers(1, RESERVATION_PERIODIC), TIMED) \
	C(servers_polling, 1, "1 CPU: two polling budgets by deadline", servers(0, RESERVATION_POLLING), TIMED) \
	C(servers_sporadic, 1, "1 CPU: two sporadic budgets by priority", servers(1, RESERVATION_SPORADIC), TIMED) \
	C(servers_late, 1, "1 CPU: two periodic budgets by deadline, timers one unit late", servers(0, RESERVATION_PERIODIC), TIMED | UNTIMELY) \
	C(hyper_1, 2, "a node with a reservation on each of 2 CPUs, 1 task", hyper(1, 1, 0), TIMED) \
	C(hyper_ranked, 2, "the same, the second outranks, 2 tasks, limit 1", hyper(2, 1, 1), TIMED | DEEP) \
	C(hyper_2, 2, "a node with a reservation on each of 2 CPUs, 2 tasks", hyper(2, 2, 0), TIMED | DEEP) \
	C(shared_reservations, 2, "reservations inside a shared node", shared_reservations(), TIMED | DEEP) \
	C(groups, 3, "reservations of 2 CPUs, joined to a third by a task", groups(), TIMED) \
	C(split_1, 2, "a node with a reserve in the slots of each of 2 CPUs, 1 task", split(1), TIMED) \
	C(split_late, 2, "the same with timers one unit late", split(1), TIMED | UNTIMELY) \
	C(split_2, 2, "the same with 2 tasks", split(2), TIMED) \
	C(rounds_multiburst, 1, "1 CPU: multiburst, 3 tasks that wake in 3 ways", rounds(TIERCE_multiburst), TIMED) \
	C(rounds_i_plus_pi, 1, "1 CPU: i-plus-pi, 3 tasks", rounds(TIERCE_i_plus_pi), TIMED | DEEP) \
	C(two_multiburst_2_2, 2, "2 CPUs, multiburst node, 2 tasks, limit 2", shared("11", 2, 2, TIERCE_multiburst), 0) \
	C(two_multiburst_3_1, 2, "2 CPUs, ranks 1 2, multiburst node, 3 tasks, limit 1", shared("12", 3, 1, TIERCE_multiburst), DEEP) \
	C(two_i_plus_pi_2_2, 2, "2 CPUs, i-plus-pi node, 2 tasks, limit 2", shared("11", 2, 2, TIERCE_i_plus_pi), DEEP) \
	C(levels, 1, "1 CPU: time-sharing, 2 tasks of 2 priorities", levels(), TIMED) \
	C(levels_late, 1, "the same with timers one unit late", levels(), TIMED | UNTIMELY | DEEP) \
	C(two_levels_2_2, 2, "2 CPUs, time-sharing node, 2 tasks, limit 2", shared("11", 2, 2, TIERCE_time_sharing), 0) \
	C(two_levels_3_2, 2, "2 CPUs, time-sharing node, 3 tasks, limit 2", shared("11", 3, 2, TIERCE_time_sharing), DEEP) \
	C(criticality, 1, "1 CPU: mixed-criticality, a critical task and one of higher priority", critical(1, 1), TIMED) \
	C(criticality_late, 1, "the same with timers one unit late", critical(1, 1), TIMED | UNTIMELY) \
	C(criticality_3, 1, "1 CPU: mixed-criticality, a critical task and 2 of lower priority", critical(3, 2), TIMED | DEEP) \
	C(eligible, 1, "1 CPU: fair in the order of earliest eligible deadlines, 2 tasks", ordered(FAIR_EEVDF), TIMED) \
	C(strides, 1, "1 CPU: fair by strides, 2 tasks", ordered(FAIR_STRIDE), TIMED) \
	C(strides_late, 1, "the same with timers one unit late", ordered(FAIR_STRIDE), TIMED | UNTIMELY) \
	C(drawings, 1, "1 CPU: fair by drawings, 2 tasks", ordered(FAIR_LOTTERY), TIMED) \
	C(uniform, 1, "1 CPU: uniform, 2 tasks of half a CPU, one that announces deadlines", small(TIERCE_uniform, 2, 0), TIMED | DEADLINES) \
	C(two_uniform, 2, "2 CPUs: uniform, 2 tasks of half a CPU", small(TIERCE_uniform, 2, 0), TIMED) \
	C(constraints, 1, "1 CPU: constraint, 2 tasks that ask for two units within three", small(TIERCE_constraint, 0, 0), TIMED | MESSAGES) \
	C(briefly_blocked, 1, "1 CPU: briefly-blocked, 2 tasks of half a CPU, at most 2 units", small(TIERCE_briefly_blocked, 1, 2), TIMED) \
	C(two_briefly_blocked, 2, "the same on 2 CPUs", small(TIERCE_briefly_blocked, 1, 2), TIMED) \
	C(spread_below, 2, "2 CPUs, a spread node below their roots, 2 tasks", spread(FIFO, 2, false, ~0ull), SPREAD | DEEP) \
	C(spread_2_2, 2, "2 CPUs, a spread node as their root, 2 tasks", spread(FIFO, 2, true, ~0ull), SPREAD | EXITS) \
	C(spread_2_3, 2, "2 CPUs, a spread node as their root, 3 tasks", spread(FIFO, 3, true, ~0ull), SPREAD) \
	C(spread_3_2, 3, "3 CPUs, a spread node as their root, 2 tasks", spread(FIFO, 2, true, ~0ull), SPREAD) \
	C(spread_3_3, 3, "3 CPUs, a spread node as their root, 3 tasks", spread(FIFO, 3, true, ~0ull), SPREAD | DEEP) \
	C(spread_bound, 3, "3 CPUs, a spread node as their root, 3 tasks, one for CPUs 0 and 1", spread(FIFO, 3, true, 3), SPREAD | DEEP) \
	C(spread_affinity, 2, "2 CPUs, a spread node as their root, 2 tasks whose affinities change", \
	  spread(FIFO, 2, true, ~0ull), SPREAD | AFFINITY) \
	C(spread_hotplug, 2, "2 CPUs that come and go, a spread node as their root, 2 tasks", spread(FIFO, 2, true, ~0ull), \
	  SPREAD | HOTPLUG | DEEP) \
	C(spread_foreign, 2, "2 CPUs that run other things at times, a spread node as their root, 2 tasks", \
	  spread(FIFO, 2, true, ~0ull), SPREAD | FOREIGN | DEEP) \
	C(shared_foreign, 2, "the same on CPUs that run other things at times", shared_reservations(), TIMED | FOREIGN | DEEP)

enum configuration {
#define C(name, cpus, text, build, f) CONFIGURATION_##name,
	CONFIGURATIONS(C)
#undef C
	    CONFIGURATIONS_END
};
static const char *const configuration_name[] = {
#define C(name, cpus, text, build, f) #name,
    CONFIGURATIONS(C)
#undef C
};
static const char *const configuration_text[] = {
#define C(name, cpus, text, build, f) text,
    CONFIGURATIONS(C)
#undef C
};
static const u32 configuration_flags[] = {
#define C(name, cpus, text, build, f) f,
    CONFIGURATIONS(C)
#undef C
};

static void configuration_build(u32 configuration)
{
	memset(tierce_native.state, 0, sizeof S);
	kicks_forget();
	tasks = 0;
	order = FAIR_START_TAG;
	now = FIRST;
	flags = configuration_flags[configuration];
	switch (configuration) {
#define C(name, cpus, text, build, f) \
	case CONFIGURATION_##name: \
		graph_init(cpus, now); \
		build; \
		break;
		CONFIGURATIONS(C)
#undef C
	}
	S.quiet = !!(flags & QUIET);
	memset(S.stage, 0, sizeof S.stage);
	if (flags & SPREAD) /* CPUs have decided for nothing, and looked */
		for (u32 cpu = 0; cpu < S.cpus; cpu++)
			graph_decide(cpu, 0, now, 0);
	kicks_forget();
}

/* ---- what a state is -------------------------------------------------------------------------------------------- */

/* Of what was drawn only the order counts: the world draws few numbers. */
static void drawings_few(u32 node)
{
	u64 tag[TIERCE_EDGES] = {0}, clock = S.node[node].clock;
	u32 i, j;
	for (i = 1; i < S.fresh_edge; i++)
		tag[i] = S.edge[i].parent == node && S.edge[i].fair.counted ? S.edge[i].fair.tag : 0;
	for (i = 1; i < S.fresh_edge; i++) {
		u64 before = 0;
		for (j = 1; j < S.fresh_edge; j++)
			before += tag[j] > clock && tag[j] <= tag[i];
		if (before)
			S.edge[i].fair.tag = clock + before * (UNIT << EEVDF_UNIT);
		if (before && order_link(i)->rank)
			order_link(i)->key = S.edge[i].fair.tag;
	}
	S.node[node].tail &= 1;
}

/* What has no influence on anything but statistics, or is left over from an earlier entry. */
static void tidy(void)
{
	u32 i, cpu, used;
	for (i = 1; i < S.fresh_edge; i++) {
		struct tierce_edge *x = &S.edge[i];
		x->throttles = x->replenishments = x->grants = 0;
		x->supply_ns = x->forgiven_ns = 0;
		memset(&x->promise, 0, sizeof x->promise);
		x->promise.end_ns = TIERCE_NEVER;
		if (x->state != TIERCE_GRANTED && !(x->flags & EDGE_PLAIN) && !S.node[x->parent].near)
			x->on_cpu = TIERCE_CPUS;
	}
	for (i = 1; i < S.fresh_node; i++) {
		struct tierce_node *n = &S.node[i];
		n->ran_ns = 0;
		if (n->kind == TIERCE_fair && is_lottery(n))
			drawings_few(i);
		n->switches = n->migrations = 0;
		if (n->kind == TIERCE_TASK)
			n->tail = 0;
		n->last_cpu = TIERCE_CPUS;
		if (n->on_cpu >= S.cpus || S.cpu[n->on_cpu].task != i)
			n->on_cpu = TIERCE_CPUS;
		if (!n->claim_edge)
			n->claim_victim = 0;
	}
	for (i = 1; i < S.fresh_row; i++)
		for (cpu = 0; cpu < S.cpus; cpu++)
			if (S.row[i].hold[cpu] == TIERCE_HOLD_FREE)
				S.row[i].edge[cpu] = 0;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		struct tierce_cpu *c = &S.cpu[cpu];
		memset(c->next, 0, sizeof c->next);
		c->next_length = 0;
		for (used = c->path_length; used < TIERCE_PATH; used++)
			c->path[used] = 0;
		for (used = c->leaves; used < TIERCE_PATH; used++)
			c->leave[used] = 0;
		c->used_ns = c->idle_ns = c->stolen_ns = c->decisions = c->events = c->drained = 0;
		c->pulls = c->pushes = c->balance_ns = c->ran = 0;
		c->back_ns = 0;
		if (c->offered && (S.node[c->offered].kind != TIERCE_TASK || S.node[c->offered].domain == cpu ||
				   S.edge[S.node[c->offered].first_parent].state != TIERCE_READY))
			c->offered = 0; /* it is of no use to anybody */
		S.begin_ns = 0;
		c->idle_ns = c->charged_ns; /* time accounting stays true */
	}
	for (i = 0; i < TIERCE_DOMAINS; i++)
		memset(S.domain[i].work, 0, sizeof S.domain[i].work);
	memset(S.known, 0, sizeof S.known);
}

/* Members of a heap, in order. */
static u32 heap_list(u32 root, u32 heap, u32 *list)
{
	u32 count = 0, i, j, x;
	list[count++] = root;
	if (!root)
		return 0;
	for (i = 0; i < count; i++) {
		if (S.edge[list[i]].link[heap].left)
			list[count++] = S.edge[list[i]].link[heap].left;
		if (S.edge[list[i]].link[heap].right)
			list[count++] = S.edge[list[i]].link[heap].right;
	}
	for (i = 1; i < count; i++)
		for (j = i; j > 0 && link_before(list[j], list[j - 1], heap); j--) {
			x = list[j];
			list[j] = list[j - 1];
			list[j - 1] = x;
		}
	return count;
}

static u64 relative(u64 at)
{
	return at == TIERCE_NEVER ? at : at - now;
}

/* Replace a value by its rank among those of the parent's edges. */
static u64 among(u32 parent, u64 value, const u64 *values)
{
	u64 rank = 0;
	u32 i;
	for (i = 1; i < S.fresh_edge; i++)
		rank += S.edge[i].parent == parent && values[i] < value;
	return rank;
}

static bool on_a_grid(const struct tierce_edge *x)
{
	u32 kind = x->variant & RESERVATION_KIND_MASK;
	return kind == RESERVATION_PERIODIC || kind == RESERVATION_POLLING;
}

static struct tierce form;

/* Rounds count from the current one. Every burst is a unit, so what is left of one does not shrink: scales do not matter. */
static void canonical_burst(u32 edge, const u64 *value)
{
	struct tierce_edge *x = &S.edge[edge], *y = &form.edge[edge];
	u64 clock = S.node[x->parent].clock, turn = value[edge], past = clock - x->burst.round;
	u64 ahead = turn >> 22 > clock ? 2 : turn >> 22 == clock;
	y->burst.turn = turn ? ahead << 32 | (turn >> 20 & 3) << 16 | among(x->parent, turn, value) : 0;
	y->burst.round = past < 2 ? past : 2;
	if (past && x->state == TIERCE_WAITING && (past > 1 || S.node[x->parent].kind == TIERCE_multiburst)) {
		y->burst.burst_ns = 0;
		y->burst.left_ns = 0;
	}
	y->burst.scale = 0;
}

/* Virtual times count from that of the node; who does not count has none, or (stride) what it keeps while it sleeps. */
static void canonical_share(u32 edge)
{
	struct tierce_edge *x = &S.edge[edge], *y = &form.edge[edge];
	struct tierce_node *n = &S.node[x->parent];
	u64 clock = n->clock;
	bool live = x->state != TIERCE_WAITING;
	if (is_stride(n) && !live)
		clock = FAIR_BEGIN;
	y->fair.tag = x->fair.counted || x->fair.tag > clock || is_stride(n) ? x->fair.tag - clock : 0;
	y->fair.fraction = y->fair.tag ? x->fair.fraction : 0;
	y->fair.begin = live && x->fair.quantum_ns > 0 && is_eevdf(n) ? x->fair.begin - clock : 0;
	y->fair.quantum_ns = live || is_lottery(n) ? x->fair.quantum_ns : 0;
}

/* Of a deadline that is over its place and how late it is, up to a period; of who sleeps only what it owes then. What a
 * deadline that is kept is worth is told by its claim beyond what a slower processor has done until now. */
static void canonical_uniform(u32 edge, const u64 *value)
{
	struct tierce_edge *x = &S.edge[edge], *y = &form.edge[edge];
	u64 deadline = x->uniform.deadline_ns, late = now - deadline, begin = uniform_work(x, now), tick, i;
	s64 claim = (s64)(uniform_claim(x) - begin);
	bool live = x->state != TIERCE_WAITING, over = deadline < now;
	y->variant = x->variant & UNIFORM_WAITS ? 2 : x->variant == (u32)now;
	y->uniform.deadline_ns = !over	? deadline - now + 100 * UNIT
				 : live ? (late < PERIOD ? late : PERIOD) << 8 | among(x->parent, value[edge], value)
					: 0;
	if (over && !live)
		y->uniform.left_ns = claim > 0 ? claim : 0;
	for (i = 0; i < UNIFORM_KEPT; i++) {
		u64 kept = x->uniform.kept[i];
		tick = (deadline >> UNIFORM_TICK) + kept_ticks(kept);
		claim = (s64)(kept_claim(x, kept, tick) - begin);
		y->uniform.kept[i] = 0;
		if (kept == UNIFORM_NONE || (tick << UNIFORM_TICK <= now && over && !live && claim <= 0))
			continue;
		tick <<= UNIFORM_TICK;
		y->uniform.kept[i] = ((tick > now ? tick - now : 0) << 32 | 1) + (u64)(claim > 0 ? claim : 0);
	}
}

/* Of a period that is over nothing matters. Who is behind because of critical mode is told by the number of these. */
static void canonical_mixed(u32 edge, const u64 *value)
{
	struct tierce_edge *x = &S.edge[edge], *y = &form.edge[edge];
	bool live = x->state != TIERCE_WAITING, over = !live && mixed_is_over(x, now);
	y->mixed.turn = among(x->parent, value[edge], value);
	y->mixed.begin_ns = over ? 0 : now - x->mixed.begin_ns + 1;
	y->mixed.used_ns = over || x->mixed.used_up ? 0 : x->mixed.used_ns;
	y->mixed.used_up = over ? 0 : x->mixed.used_up;
	y->mixed.epoch = !over && !mixed_is_critical(x) && x->mixed.epoch != S.node[x->parent].mixed.epoch;
	y->mixed.heap = 0;
}

/* Who asked for something has his deadline, others have turns. */
static u64 canonical_constraint(const struct tierce_edge *x)
{
	u64 turn = x->queue.turn;
	return x->state == TIERCE_WAITING || turn >= CONSTRAINT_TURNS ? 0 : turn > now ? (turn - now) << 8 : 1 << 8;
}

/* The state as far as it matters from here on, into `form`. Orders become sequences of members, turns their rank, times
 * relative to now. Deadlines in the past matter only by their order among each other. */
static void canonical(void)
{
	u32 list[TIERCE_EDGES], i, j, count, root, cpu, domain;
	u64 value[TIERCE_EDGES] = {0};
	form = S;
	for (i = 1; i < S.fresh_edge; i++)
		memset(form.edge[i].link, 0, sizeof form.edge[i].link);
	/* every heap: x.up = its predecessor in the sequence; roots are named by the holders of the heap */
	for (i = 1; i < S.fresh_node; i++) {
		for (cpu = 0; cpu <= S.cpus; cpu++) {
			root = cpu < S.cpus ? (S.node[i].row ? S.row[S.node[i].row].order[cpu] : 0) : S.node[i].order;
			count = heap_list(root, TIERCE_ORDER, list);
			for (j = 0; j < count; j++) {
				form.edge[list[j]].link[TIERCE_ORDER].rank = 1 + cpu;
				form.edge[list[j]].link[TIERCE_ORDER].up = j ? list[j - 1] : 0;
			}
		}
		for (cpu = 0; cpu < 3 && S.node[i].kind == TIERCE_mixed_criticality; cpu++) {
			count = heap_list(S.node[i].mixed.waiting[cpu], TIERCE_ORDER, list);
			for (j = 0; j < count; j++) {
				form.edge[list[j]].link[TIERCE_ORDER].rank = 1 + TIERCE_CPUS + cpu;
				form.edge[list[j]].link[TIERCE_ORDER].up = j ? list[j - 1] : 0;
			}
			form.node[i].mixed.waiting[cpu] = 0;
		}
		for (cpu = 0; cpu < 2; cpu++) {
			count = heap_list(cpu ? S.node[i].share.ahead : S.node[i].share.later, TIERCE_ORDER, list);
			for (j = 0; j < count; j++) {
				form.edge[list[j]].link[TIERCE_ORDER].rank = 1 + TIERCE_CPUS + cpu;
				form.edge[list[j]].link[TIERCE_ORDER].up = j ? list[j - 1] : 0;
			}
		}
	}
	for (domain = 0; domain < TIERCE_DOMAINS; domain++) {
		count = heap_list(S.domain[domain].events, TIERCE_EVENTS, list);
		for (j = 0; j < count; j++) {
			form.edge[list[j]].link[TIERCE_EVENTS].rank = 1;
			form.edge[list[j]].link[TIERCE_EVENTS].key = relative(event_link(list[j])->key);
		}
	}
	for (i = 1; i < S.fresh_edge; i++) {
		struct tierce_edge *x = &S.edge[i];
		bool live = x->state != TIERCE_WAITING || x->restore || S.node[x->child].claim_edge == i;
		value[i] = 0;
		switch (x->parent ? S.node[x->parent].kind : 0) {
		case TIERCE_fixed_priority:
		case TIERCE_constraint:
		case TIERCE_round_robin: value[i] = live ? x->queue.turn : 0; break;
		case TIERCE_briefly_blocked: value[i] = live ? x->brief.turn : 0; break;
		case TIERCE_mixed_criticality: value[i] = live ? x->mixed.turn : 0; break;
		case TIERCE_uniform: value[i] = x->uniform.deadline_ns < now && live ? x->uniform.deadline_ns : 0; break;
		case TIERCE_time_sharing: value[i] = live ? x->levels.key & (LEVEL_WAITS - 1) : 0; break;
		case TIERCE_i_plus_pi:
		case TIERCE_multiburst: value[i] = live ? x->burst.turn : 0; break;
		case TIERCE_reservation:
			value[i] = x->reservation.deadline_ns < now && live ? x->reservation.deadline_ns : 0;
			break;
		}
	}
	for (i = 1; i < S.fresh_edge; i++) {
		struct tierce_edge *x = &S.edge[i], *y = &form.edge[i];
		bool live = x->state != TIERCE_WAITING;
		u64 long_ago = live ? LONG_AGO : 1; /* of who sleeps: whether any time has passed */
		switch (x->parent ? S.node[x->parent].kind : 0) {
		case TIERCE_fixed_priority:
		case TIERCE_round_robin: y->queue.turn = among(x->parent, value[i], value); break;
		case TIERCE_constraint:
			y->queue.turn = canonical_constraint(x) | among(x->parent, value[i], value);
			if (!live)
				y->queue.quantum_ns = 0;
			/* What was asked for matters while the task sleeps on it, until then. */
			y->queue.asleep = x->queue.asleep && x->queue.due_ns > now;
			y->queue.due_ns = y->queue.asleep ? x->queue.due_ns - now : 0;
			if (!y->queue.asleep)
				y->queue.work_ns = 0;
			break;
		case TIERCE_briefly_blocked:
			y->brief.turn = among(x->parent, value[i], value);
			if (x->brief.blocked_ns != TIERCE_NEVER) /* until its credit has come from the least to the most */
				y->brief.blocked_ns =
				    now - x->brief.blocked_ns < 8 * UNIT ? now - x->brief.blocked_ns : 8 * UNIT;
			break;
		case TIERCE_uniform: canonical_uniform(i, value); break;
		case TIERCE_mixed_criticality: canonical_mixed(i, value); break;
		case TIERCE_reservation:
			y->reservation.deadline_ns = x->reservation.deadline_ns >= now ? x->reservation.deadline_ns - now + 100
										       : among(x->parent, value[i], value);
			y->reservation.replenish_ns = x->reservation.replenish_ns > now ? x->reservation.replenish_ns - now : 0;
			if (x->reservation.replenish_ns && x->reservation.replenish_ns <= now && on_a_grid(x)) {
				u64 late = now - x->reservation.replenish_ns, period = x->param[RESERVATION_PERIOD];
				y->reservation.replenish_ns = 2 * period + (late < period ? late : period);
			}
			break;
		case TIERCE_time_sharing:
			y->levels.key = x->levels.key >> (live ? 47 : 48) << 32 | among(x->parent, value[i], value);
			y->levels.since_ns = now - x->levels.since_ns < long_ago ? now - x->levels.since_ns : long_ago;
			if (!live)
				y->levels.quantum_ns = 0;
			break;
		case TIERCE_i_plus_pi:
		case TIERCE_multiburst: canonical_burst(i, value); break;
		case TIERCE_slots:
			y->slots.close_ns = x->slots.close_ns > now ? x->slots.close_ns - now : 0;
			y->slots.open = x->state != TIERCE_WAITING && x->slots.open;
			y->slots.slot_ns = 0; /* always the same */
			form.begin_ns = now % SLOT;
			break;
		case TIERCE_fair:
			if (is_by_clock(&S.node[x->parent]))
				canonical_share(i);
			break;
		case TIERCE_edf: y->edf.deadline_ns = x->state == TIERCE_WAITING ? 0 : relative(x->edf.deadline_ns); break;
		}
	}
	for (i = 1; i < S.fresh_node; i++) {
		if (S.node[i].kind == TIERCE_fixed_priority || S.node[i].kind == TIERCE_round_robin ||
		    S.node[i].kind == TIERCE_time_sharing || S.node[i].kind == TIERCE_briefly_blocked ||
		    S.node[i].kind == TIERCE_constraint || S.node[i].kind == TIERCE_mixed_criticality)
			form.node[i].clock = 0;
		if (S.node[i].kind == TIERCE_mixed_criticality)
			form.node[i].mixed.epoch = 0;
		if (S.node[i].kind == TIERCE_constraint) { /* the whole CPU: only what it has not received counts */
			form.node[i].constraints.received_ns += S.node[i].constraints.begin_ns - now;
			form.node[i].constraints.begin_ns = 0;
			if (!constraints_awake(i, now))
				form.node[i].constraints.received_ns = 0;
		}
		if (S.node[i].kind == TIERCE_fair && is_by_clock(&S.node[i]))
			form.node[i].clock = form.node[i].share.later = form.node[i].share.ahead = 0;
		if (S.node[i].kind == TIERCE_i_plus_pi || S.node[i].kind == TIERCE_multiburst)
			form.node[i].clock = form.node[i].rounds.here = form.node[i].rounds.next = form.node[i].rounds.scale =
			    0;
		form.node[i].deadline_ns =
		    S.node[i].deadline_ns <= now && flags & DEADLINES ? 0 : relative(S.node[i].deadline_ns);
	}
	for (cpu = 0; cpu < S.cpus; cpu++) {
		struct tierce_cpu *c = &form.cpu[cpu];
		u64 lag_most = 0; /* how much of the time that was not charged yet matters: a quantum; a budget ends in time */
		for (i = 1; i < c->path_length; i++) {
			u32 kind = S.node[S.edge[c->path[i]].parent].kind;
			if (kind == TIERCE_reservation || kind == TIERCE_uniform || kind == TIERCE_briefly_blocked ||
			    kind == TIERCE_mixed_criticality)
				lag_most = TIERCE_NEVER;
			else if (kind == TIERCE_constraint)
				lag_most = 4 * UNIT;
			else if (kind == TIERCE_i_plus_pi || kind == TIERCE_multiburst)
				lag_most = 2 * UNIT;
			else if (kind == TIERCE_time_sharing && lag_most < LONG_AGO)
				lag_most = LONG_AGO; /* from the largest boost to the priority */
			else if (kind == TIERCE_fair && is_by_clock(&S.node[S.edge[c->path[i]].parent]))
				lag_most = 2 * UNIT;
			else if (kind == TIERCE_round_robin && lag_most < UNIT)
				lag_most = UNIT;
		}
		c->charged_ns = now - c->charged_ns < lag_most ? now - c->charged_ns : lag_most;
		c->idle_ns = 0;
		c->until_ns = c->until_ns <= now ? 0 : relative(c->until_ns);
		c->armed_ns = c->armed_ns <= now ? 0 : relative(c->armed_ns);
	}
	/* events are late by less than this, so none comes before a time that far back */
	for (domain = 0; domain < TIERCE_CPUS; domain++) {
		u64 until_ns = S.group[domain].until_ns;
		form.group[domain].until_ns = until_ns != TIERCE_NEVER && until_ns + 8 * UNIT < now ? 0 : relative(until_ns);
	}
}

/* ---- the set of states ------------------------------------------------------------------------------------------- */

struct seen {
	u64 hash[2];
	u32 from;
	u16 step;
};
static struct seen *seen;
static u32 *slot, slots, states;
static struct {
	u32 from, to;
	u16 step;
} *internal;
static u32 internals, internals_room;

/* Most words of a state are zero, and most are those of the initial one: BLOCK words at a time are passed over. */
#define WORDS ((u32)(sizeof(struct tierce) / 8))
#define BLOCK 8u
_Static_assert(sizeof(struct tierce) % 8 == 0, "compared and hashed in words");

static bool is_zero(const u64 *w)
{
	return !(w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]);
}

static bool is_same(const u64 *v, const u64 *w)
{
	return !((v[0] ^ w[0]) | (v[1] ^ w[1]) | (v[2] ^ w[2]) | (v[3] ^ w[3]) | (v[4] ^ w[4]) | (v[5] ^ w[5]) | (v[6] ^ w[6]) |
		 (v[7] ^ w[7]));
}

static void hash(u64 h[2])
{
	const u64 *word = (const u64 *)&form;
	u32 i;
	u64 a = 0x9e3779b97f4a7c15ull, b = 0xc2b2ae3d27d4eb4full;
	for (i = 0; i < WORDS; i++) {
		if (i % BLOCK == 0 && i + BLOCK <= WORDS && is_zero(word + i)) {
			i += BLOCK - 1;
			continue;
		}
		if (!word[i])
			continue;
		a = (a ^ word[i] ^ (u64)i << 48) * 0xff51afd7ed558ccdull;
		a ^= a >> 32;
		b = (b + word[i] + i) * 0xc4ceb9fe1a85ec53ull;
		b ^= b >> 29;
	}
	h[0] = a ^ b >> 7;
	h[1] = b ^ a << 9;
}

static void slots_grow(void)
{
	u32 i, at;
	free(slot);
	slots = slots ? 2 * slots : 1u << 16;
	slot = calloc(slots, sizeof *slot);
	seen = realloc(seen, (slots / 2 + 1) * sizeof *seen);
	if (!slot || !seen)
		stop("out of memory");
	for (i = 1; i <= states; i++) {
		for (at = (u32)seen[i].hash[0] & (slots - 1); slot[at]; at = (at + 1) & (slots - 1))
			;
		slot[at] = i;
	}
}

/* The number of the state in S; 0 is none. `*fresh`: it was not known. */
static u32 state_find(u32 from, u16 step, bool *fresh)
{
	u64 h[2];
	u32 at;
	canonical();
	hash(h);
	for (at = (u32)h[0] & (slots - 1); slot[at]; at = (at + 1) & (slots - 1))
		if (seen[slot[at]].hash[0] == h[0] && seen[slot[at]].hash[1] == h[1]) {
			*fresh = false;
			return slot[at];
		}
	*fresh = true;
	slot[at] = ++states;
	seen[states] = (struct seen){{h[0], h[1]}, from, step};
	if (states >= slots / 2)
		slots_grow();
	return states;
}

/* States still to be expanded, as differences from the initial one: (word, value) pairs. */
struct queue {
	u64 *word;
	u64 length, room;
};
static struct queue layer, next_layer;
static struct tierce initial;

static void queue_put(struct queue *q, u64 word)
{
	if (q->length == q->room) {
		q->room = q->room ? 2 * q->room : 1 << 16;
		q->word = realloc(q->word, q->room * sizeof *q->word);
		if (!q->word)
			stop("out of memory");
	}
	q->word[q->length++] = word;
}

static void state_put(struct queue *q, u32 id)
{
	const u64 *a = (const u64 *)tierce_native.state, *b = (const u64 *)&initial;
	u64 i, begin;
	queue_put(q, id);
	queue_put(q, now);
	begin = q->length;
	queue_put(q, 0);
	for (i = 0; i < WORDS; i++) {
		if (i % BLOCK == 0 && i + BLOCK <= WORDS && is_same(a + i, b + i)) {
			i += BLOCK - 1;
			continue;
		}
		if (a[i] == b[i])
			continue;
		queue_put(q, i);
		queue_put(q, a[i]);
	}
	q->word[begin] = (q->length - begin - 1) / 2;
}

static u32 state_take(const struct queue *q, u64 *at)
{
	u64 *a = (u64 *)tierce_native.state, count, i;
	u32 id = (u32)q->word[(*at)++];
	now = q->word[(*at)++];
	memcpy(a, &initial, sizeof initial);
	count = q->word[(*at)++];
	for (i = 0; i < count; i++, *at += 2)
		a[q->word[*at]] = q->word[*at + 1];
	return id;
}

/* ---- counterexamples --------------------------------------------------------------------------------------------- */

static bool verbose;

static void step_print(u16 step)
{
	u32 kind = step >> 8, on = step & 255;
	if (kind == TICK)
		printf(" tick;");
	else if (kind == WAKE || kind == SLEEP || (kind >= NARROW && kind != PULL && kind != ARRIVE && kind != GIVE))
		printf(" %s %s;", step_name[kind], task_name[on]);
	else
		printf(" %s %u;", step_name[kind], on);
}

static void trace_print(u32 id)
{
	u16 *steps;
	u32 count = 0, i;
	for (i = id; seen[i].from; i = seen[i].from)
		count++;
	steps = malloc((count + 1) * sizeof *steps);
	for (i = id, count = 0; seen[i].from; i = seen[i].from)
		steps[count++] = seen[i].step;
	printf("  %u steps:", count);
	while (count)
		step_print(steps[--count]);
	printf("\n");
	free(steps);
}

/* ---- what is checked ---------------------------------------------------------------------------------------------- */

static bool timer_due(u32 cpu)
{
	return (flags & TIMED) && S.cpu[cpu].armed_ns <= now && !ghost(cpu)->fired;
}

static bool exists(u32 index)
{
	return task_exists(task[index]);
}
static bool is_spread(u32 index)
{
	return exists(index) && S.edge[S.node[task[index]].first_parent].flags & EDGE_SPREAD;
}
static bool is_run(u32 index)
{
	u32 cpu;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (S.cpu[cpu].task == task[index])
			return true;
	return false;
}

/* Where a task of a spread node may be, `wanted` if it may be there; TIERCE_CPUS: nowhere. */
static u32 may_be(u32 index, u32 wanted)
{
	u64 may = S.node[task[index]].allowed;
	u32 cpu;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (!S.cpu[cpu].online)
			may &= ~mask_of(cpu);
	may &= (1ull << S.cpus) - 1;
	return !may ? TIERCE_CPUS : may >> wanted & 1 ? wanted : cpus_lowest(may, may);
}

/* It waits where it may not be (no longer): the port moves it. */
static bool must_move(u32 index)
{
	u32 domain = S.node[task[index]].domain;
	if (!is_spread(index) || task_ghost(index)->stage || domain == TIERCE_TRANSIT || !S.node[task[index]].servable ||
	    is_run(index))
		return false;
	return may_be(index, domain) != domain && may_be(index, domain) < TIERCE_CPUS;
}

static bool at_rest(void)
{
	u32 cpu, i;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (S.cpu[cpu].kick_pending || S.cpu[cpu].leaves || timer_due(cpu) || ghost(cpu)->kicked || ghost(cpu)->phase)
			return false;
	for (i = 0; i < tasks; i++)
		if (task_ghost(i)->stage || must_move(i))
			return false;
	return true;
}

/* Nobody is forgotten: who wants a CPU is below a replica, and can be run. */
static const char *check_wants(void)
{
	u32 i;
	for (i = 0; i < tasks; i++) {
		struct tierce_node *n = &S.node[task[i]];
		if (is_spread(i) && n->domain != TIERCE_TRANSIT && n->servable != task_ghost(i)->wants)
			return "a task of a spread node was forgotten";
	}
	return 0;
}

/* From the paths and what is leaving alone. */
static const char *check_paths(void)
{
	u32 id, cpu, i;
	for (id = 1; id < S.fresh_node; id++) {
		u32 on = 0, most = S.node[id].kind == TIERCE_TASK ? 1 : S.node[id].row ? S.node[id].concurrency : TIERCE_CPUS;
		for (cpu = 0; cpu < S.cpus; cpu++) {
			bool here = S.cpu[cpu].task == id;
			for (i = 0; i < S.cpu[cpu].path_length; i++)
				here |= S.edge[S.cpu[cpu].path[i]].child == id;
			for (i = 0; ghost(cpu)->leaving && i < S.cpu[cpu].leaves; i++)
				here |= S.edge[S.cpu[cpu].leave[i]].child == id;
			on += here;
			if (here && S.node[id].kind == TIERCE_TASK && !(flags & AFFINITY) && !(S.node[id].allowed >> cpu & 1))
				return "a task runs where it may not";
		}
		if (on > most)
			return S.node[id].kind == TIERCE_TASK ? "a task is on two CPUs"
							      : "a node is on more CPUs than its limit";
	}
	return 0;
}

/* Would the policies of this CPU pick the edge, were it requested? */
static bool would_pick(u32 cpu, u32 wanted)
{
	static struct tierce saved;
	u32 e, depth;
	bool would = false;
	saved = S;
	if (S.edge[wanted].state == TIERCE_WAITING) {
		edge_request(wanted, TIERCE_WOKE, now);
		settle_works(cpu, now);
	}
	e = S.cpu[cpu].root_edge;
	for (depth = 0; e && depth < TIERCE_PATH; depth++) {
		u32 child = S.edge[e].child;
		would = e == wanted;
		if (would || S.node[child].kind == TIERCE_TASK)
			break;
		e = policy_pick(child, node_first(child, cpu, now), node_running(child, cpu), now);
	}
	S = saved;
	return would;
}

/* What an edge is sure to get by which time, if its node has the CPU to itself. */
static s64 promised(u32 edge, u64 *by_ns)
{
	struct tierce_edge *x = &S.edge[edge];
	u64 used = S.node[x->parent].running == edge ? now - S.cpu[S.node[x->parent].domain].charged_ns : 0;
	bool asks = x->kind == TIERCE_constraint && x->queue.turn < CONSTRAINT_TURNS;
	*by_ns = asks ? x->queue.turn : x->uniform.deadline_ns;
	if (x->state == TIERCE_WAITING || x->flags & EDGE_SPENT || (x->kind != TIERCE_uniform && !asks))
		return 0;
	return (asks ? x->queue.quantum_ns : x->uniform.left_ns) - (s64)used;
}

static const char *check_promises(void)
{
	u32 cpu, node, e, other;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		node = S.edge[S.cpu[cpu].root_edge].child;
		for (e = 1; e < S.fresh_edge && !S.node[node].row; e++) {
			u64 by_ns, other_ns;
			s64 due_ns = 0, left_ns;
			if (S.edge[e].parent != node || promised(e, &by_ns) <= 0)
				continue;
			for (other = 1; other < S.fresh_edge; other++) {
				left_ns = S.edge[other].parent == node ? promised(other, &other_ns) : 0;
				due_ns += left_ns > 0 && other_ns <= by_ns ? left_ns : 0;
			}
			if (due_ns > (s64)(by_ns - now) + (s64)UNIT / 2) /* deadlines and ticks do not meet */
				return "more is promised by a deadline than there is time";
		}
	}
	return 0;
}

/* By strides nobody is far from virtual time, four quanta of his at most, whoever comes and goes. */
static const char *check_strides(void)
{
	u32 e;
	for (e = 1; e < S.fresh_edge; e++) {
		struct tierce_edge *x = &S.edge[e];
		if (x->kind == TIERCE_fair && is_stride(parent_of(e)) && x->state != TIERCE_WAITING &&
		    x->fair.tag - parent_of(e)->clock + 4 * eevdf_stride(e) > 8 * eevdf_stride(e))
			return "a child by strides is far from virtual time";
	}
	return 0;
}

/* In critical mode nobody who is not critical counts, whenever a period of his begins; and it has begun when a critical child has used
 * more than its work, unless that is behind. */
static const char *check_criticality(void)
{
	u32 e;
	for (e = 1; e < S.fresh_edge; e++) {
		struct tierce_edge *x = &S.edge[e];
		if (x->kind != TIERCE_mixed_criticality || x->state == TIERCE_WAITING)
			continue;
		if (!mixed_is_critical(x) && parent_of(e)->mixed.critical && !mixed_is_behind(e))
			return "in critical mode a child that is not critical is not behind";
		if (x->mixed.used_ns > mixed_most(x) && !x->mixed.used_up)
			return "a child that has used what it may in a period is not behind";
	}
	return 0;
}

static const char *check_conserving(void)
{
	static struct tierce saved;
	u32 head, e, cpu;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		bool same;
		if (S.cpu[cpu].outside) {
			if (S.cpu[cpu].serves && S.domain[S.cpu[cpu].serves].events &&
			    event_link(S.domain[S.cpu[cpu].serves].events)->key < S.cpu[cpu].armed_ns)
				return "at rest the timer of shared events is set too late";
			continue;
		}
		saved = S;
		if (cpu_until(cpu, path_until(cpu, S.cpu[cpu].charged_ns), now) < S.cpu[cpu].armed_ns)
			return "at rest a timer is set too late";
		S = saved;
		walk(cpu, now);
		cpu_settle(cpu, now);
		same = path_same(cpu);
		S = saved;
		if (!same)
			return "a decision at rest would change what a CPU runs";
	}
	for (head = 1; head < S.fresh_node; head++) {
		if (!S.node[head].row)
			continue;
		for (e = S.node[head].first_parent; e; e = S.edge[e].next_parent) {
			cpu = S.edge[e].cpu;
			if (S.edge[e].flags & EDGE_SHUT)
				continue;
			if (!(S.edge[e].flags & EDGE_CROSSING)) {
				if (!S.edge[e].told && head_room(head, TIERCE_CPUS) > 0 && S.node[head].servable)
					return "lost wake-up: a shared parent was not told";
				continue;
			}
			if (!S.cpu[cpu].online || S.cpu[cpu].outside || S.row[S.node[head].row].hold[cpu] != TIERCE_HOLD_FREE)
				continue;
			if (head_room(head, cpu) > 0 && head_has_child(head, cpu) && would_pick(cpu, e))
				return "lost wake-up: a CPU would run a shared node that has room";
			if (head_victim(head, e, cpu) != TIERCE_CPUS && would_pick(cpu, e))
				return "rank inverted at rest";
		}
	}
	return 0;
}

/* ---- exploring ---------------------------------------------------------------------------------------------------- */

static const char *broken_text;
static u32 broken_at, transitions, rests;

static bool in_transit(u32 index)
{
	return S.node[task[index]].domain == TIERCE_TRANSIT;
}
/* The port is in the middle of something with it. */
static bool in_hand(u32 index)
{
	return task_ghost(index)->stage || in_transit(index);
}

static bool step_possible(u32 kind, u32 on)
{
	struct tierce_cpu *c = &S.cpu[on];
	u32 cpu;
	switch ((enum step)kind) {
	case DECIDE:
		if (on < S.cpus && ghost(on)->phase)
			return ghost(on)->phase == PHASE_DECIDES;
		return on < S.cpus && (c->kick_pending || ghost(on)->kicked) && !c->leaves;
	case RETURNED: return on < S.cpus && c->leaves;
	case EVENT: return on < S.cpus && timer_due(on);
	case AGAIN: return on < S.cpus && !c->kick_pending && !c->leaves && !(flags & SPREAD);
	case LATE: return on < S.cpus && S.inbox[on].bits && !c->leaves;
	case WAKE: return on < tasks && !S.node[task[on]].servable && exists(on) && !is_spread(on);
	case SLEEP:
		if (on < tasks && (!exists(on) || (is_spread(on) && (task_ghost(on)->stage || !is_run(on)))))
			return false;
		for (cpu = 0; on < tasks && cpu < S.cpus; cpu++)
			if (ghost(cpu)->leaving == task[on])
				return false; /* decided away and still on its way: it can neither run nor block */
		return on < tasks && S.node[task[on]].servable;
	case TICK: return (flags & TIMED) && !on && (at_rest() || ((flags & UNTIMELY) && !ghost(0)->late));
	case OFFLINE: return (flags & HOTPLUG) && on < S.cpus && c->online;
	case ONLINE: return (flags & HOTPLUG) && on < S.cpus && !c->online;
	case OUTSIDE: return (flags & FOREIGN) && on < S.cpus && !c->outside;
	case INSIDE: return (flags & FOREIGN) && on < S.cpus && c->outside;
	case NARROW:
		return (flags & AFFINITY) && on < tasks && S.node[task[on]].allowed != 1 &&
		       (is_shared(S.node[task[on]].domain) || (is_spread(on) && !in_hand(on)));
	case WIDEN:
		return (flags & AFFINITY) && on < tasks && S.node[task[on]].allowed == 1 &&
		       (is_shared(S.node[task[on]].domain) || (is_spread(on) && !in_hand(on)));
	case URGE: return (flags & DEADLINES) && !on && S.node[task[on]].deadline_ns == TIERCE_NEVER;
	case CALM: return (flags & DEADLINES) && !on && S.node[task[on]].deadline_ns != TIERCE_NEVER;
	case BEGIN: return (flags & MESSAGES) && on < tasks && S.node[task[on]].servable;
	case END: return (flags & MESSAGES) && on < tasks && S.node[task[on]].servable;
	case PLACE: return on < tasks && is_spread(on) && !S.node[task[on]].servable && !in_hand(on);
	case LEAVE: return on < tasks && task_ghost(on)->stage == STAGE_LEAVE && !in_transit(on);
	case ENTER: return on < tasks && task_ghost(on)->stage == STAGE_ENTER;
	case REQUEST: return on < tasks && task_ghost(on)->stage == STAGE_REQUEST && !in_transit(on);
	case OFFER: return on < tasks && task_ghost(on)->stage == STAGE_OFFER && !in_transit(on);
	case PULL: return on < S.cpus && ghost(on)->phase == PHASE_LOOKS;
	case ARRIVE: return on < S.cpus && ghost(on)->phase == PHASE_TAKES;
	case GIVE: return (flags & SPREAD) && on < S.cpus && !ghost(on)->phase && c->task;
	case MOVE: return on < tasks && must_move(on) && !in_hand(on);
	case EXIT: return (flags & EXITS) && on < tasks && is_spread(on) && !in_hand(on) && !is_run(on);
	case STEPS: break;
	}
	return false;
}

/* Kicks of the last step, of which not all are told to the CPU's domain. */
static void kicks_take(void)
{
	u32 cpu;
	for (cpu = 0; (flags & SPREAD) && cpu < S.cpus; cpu++)
		if (bits_have(tierce_native.kicks, cpu))
			ghost(cpu)->kicked = 1;
	kicks_forget();
}

static u32 index_of(u32 id)
{
	u32 i;
	for (i = 0; i < tasks; i++)
		if (task[i] == id)
			return i;
	stop("no such task");
}

/* A decision, of a port that knows of spread nodes. */
static void decide_spread(u32 cpu)
{
	struct ghost *g = ghost(cpu);
	u32 ran = S.cpu[cpu].task, index;
	bool again = g->phase == PHASE_DECIDES;
	g->phase = PHASE_NONE;
#ifdef MODEL_LOOKS_FIRST
	if (!again && !ran) {
		g->phase = PHASE_LOOKS;
		return;
	}
#endif
	g->kicked = 0;
	graph_decide(cpu, 0, now, 0);
#ifndef MODEL_LOOKS_FIRST
	(void)again;
	if (!S.cpu[cpu].task && !S.cpu[cpu].leaves)
		g->phase = PHASE_LOOKS;
#endif
	if (!ran || ran == S.cpu[cpu].task || !S.node[ran].servable)
		return;
	index = index_of(ran);
	if (is_spread(index) && !task_ghost(index)->stage) {
		task_ghost(index)->stage = STAGE_OFFER;
		task_ghost(index)->offers = 1;
	}
}

/* The next entry about a task of a spread node. */
static void task_goes_on(u32 index, u32 kind)
{
	struct task_ghost *t = task_ghost(index);
	u32 id = task[index], home = S.node[id].domain, to;
	u64 given;
	switch (kind) {
	case PLACE:
		to = may_be(index, graph_place(S.edge[S.node[id].first_parent].parent, home, S.node[id].allowed));
		t->offers = 0;
		t->to = (u8)(to < TIERCE_CPUS ? to : home);
		t->stage = t->to == home ? STAGE_REQUEST : STAGE_LEAVE;
		break;
	case MOVE:
		t->offers = 1;
		t->to = (u8)may_be(index, home);
		t->stage = STAGE_LEAVE;
		break;
	case LEAVE: t->stage = graph_leave(id, t->to, now) ? (t->offers ? STAGE_OFFER : STAGE_REQUEST) : STAGE_ENTER; break;
	case ENTER:
		graph_enter(id, t->to, t->offers ? TIERCE_AFFINITY : TIERCE_WAKE_UP, now);
		t->stage = t->offers ? STAGE_OFFER : STAGE_REQUEST;
#ifdef MODEL_OFFERS_FIRST
		if (!t->offers)
			graph_offer(id);
#endif
		break;
	case REQUEST:
#ifdef MODEL_OFFERS_FIRST
		graph_offer(id);
#endif
		graph_request(id, TIERCE_WOKE, now);
		t->wants = 1;
		t->stage = STAGE_OFFER;
		break;
	case OFFER:
#ifdef MODEL_OFFERS_FIRST
		if (t->offers)
#endif
			graph_offer(id);
		*t = (struct task_ghost){.wants = t->wants};
		break;
	case GIVE:
		given = push_leaves(index, now);
		if (!given)
			break;
		t = task_ghost(index_of((u32)given));
		t->to = (u8)(given >> 32);
		t->stage = STAGE_ENTER;
		t->offers = 1;
		break;
	case EXIT:
		graph_release(id, TIERCE_GONE, now);
		if (graph_detach(S.node[id].first_parent, now) || graph_node_free(id))
			stop("a task could not end");
		t->wants = 0;
		break;
	}
}

static void cpu_goes_on(u32 cpu, u32 kind)
{
	struct ghost *g = ghost(cpu);
	u32 id;
	if (kind == ARRIVE) {
		graph_enter(g->pulled, cpu, TIERCE_PULL, now);
		g->pulled = 0;
		g->phase = PHASE_DECIDES;
		return;
	}
	id = pull_finds(cpu, now);
	g->pulled = (u8)id;
	g->phase = id ? PHASE_TAKES : PHASE_NONE;
#ifdef MODEL_LOOKS_FIRST
	if (!id)
		g->phase = PHASE_DECIDES;
#endif
}

static void decide(u32 cpu)
{
	u32 before = S.cpu[cpu].task;
	if (flags & SPREAD) {
		decide_spread(cpu);
		return;
	}
	ghost(cpu)->fired = 0;
	if (graph_decide(cpu, 0, now, 0) != before && S.cpu[cpu].leaves)
		ghost(cpu)->leaving = (u16)before;
}

static void constraint_ask(u32 id)
{
	struct ghost kept[TIERCE_CPUS];
	memcpy(kept, S.stage, sizeof kept);
	S.stage[CONSTRAINT_WORK] = 2 * UNIT;
	S.stage[CONSTRAINT_DEADLINE] = now + 3 * UNIT;
	graph_tell(id, TIERCE_CONSTRAINT_BEGIN, now);
	memcpy(S.stage, kept, sizeof kept);
}

static void step_take(u32 kind, u32 on)
{
	switch ((enum step)kind) {
	case DECIDE:
	case AGAIN: decide(on); break;
	case LATE:
		inbox_is_late = true;
		decide(on);
		inbox_is_late = false;
		break;
	case RETURNED:
		graph_returned(on, now);
		ghost(on)->leaving = 0;
		break;
	case EVENT:
		graph_event(on, now, 0);
		ghost(on)->fired = S.cpu[on].armed_ns <= now && (S.cpu[on].kick_pending || S.cpu[on].outside);
		break;
	case WAKE: graph_request(task[on], TIERCE_WOKE, now); break;
	case SLEEP:
		graph_release(task[on], TIERCE_BLOCKED, now);
		task_ghost(on)->wants = 0;
		break;
	case TICK:
		ghost(0)->late = !at_rest();
		now += UNIT;
		break;
	case OFFLINE: graph_online(on, 0, now); break;
	case ONLINE: graph_online(on, 1, now); break;
	case OUTSIDE: graph_outside(on, 1, now); break;
	case INSIDE: graph_outside(on, 0, now); break;
	case NARROW: graph_allow(task[on], 1, now); break;
	case WIDEN:
		graph_allow(task[on], ~0ull, now);
		if (is_spread(on) && S.node[task[on]].servable && !is_run(on)) { /* it is enqueued anew */
			task_ghost(on)->stage = STAGE_OFFER;
			task_ghost(on)->offers = 1;
		}
		break;
	case URGE: graph_announce(task[on], now + PERIOD / 2, now); break;
	case CALM: graph_announce(task[on], TIERCE_NEVER, now); break;
	case BEGIN: constraint_ask(task[on]); break;
	case END: graph_tell(task[on], TIERCE_CONSTRAINT_END, now); break;
	case PLACE:
	case LEAVE:
	case ENTER:
	case REQUEST:
	case OFFER:
	case GIVE:
	case MOVE:
	case EXIT: task_goes_on(on, kind); break;
	case PULL:
	case ARRIVE: cpu_goes_on(on, kind); break;
	case STEPS: break;
	}
}

static bool state_check(u32 id)
{
	u32 number;
	bool rest = at_rest();
	broken_text = tierce_native.failed;
	if (!broken_text)
		broken_text = check_paths();
	if (!broken_text) {
		number = graph_check(rest);
		if (number)
			broken_text = invariant(number);
	}
	if (!broken_text && (flags & SPREAD))
		broken_text = check_wants();
	if (!broken_text)
		broken_text = check_strides();
	if (!broken_text)
		broken_text = check_criticality();
	if (!broken_text && rest)
		broken_text = check_promises();
	if (!broken_text && rest)
		broken_text = check_conserving();
	rests += rest;
	broken_at = id;
	return !broken_text;
}

static void internal_add(u32 from, u32 to, u16 step)
{
	if (internals == internals_room) {
		internals_room = internals_room ? 2 * internals_room : 1 << 16;
		internal = realloc(internal, internals_room * sizeof *internal);
		if (!internal)
			stop("out of memory");
	}
	internal[internals].from = from;
	internal[internals].to = to;
	internal[internals++].step = step;
}

static void cycle_print(const u32 *out, u32 begin)
{
	u32 at = begin, i;
	printf("  again and again:");
	do {
		for (i = 0; i < internals; i++)
			if (internal[i].from == at && out[internal[i].to])
				break;
		step_print(internal[i].step);
		at = internal[i].to;
	} while (at != begin);
	printf("\n");
}

/* Take away states from which only finished ones are reached, again and again: what is left lies on or before a cycle. */
static bool internal_ends(void)
{
	u32 *out = calloc(states + 1, sizeof *out), *first = calloc(states + 2, sizeof *first), *into, *done, count = 0, i, j;
	bool ends;
	into = malloc((internals + 1) * sizeof *into);
	done = malloc((states + 1) * sizeof *done);
	if (!out || !first || !into || !done)
		stop("out of memory");
	for (i = 0; i < internals; i++) {
		out[internal[i].from]++;
		first[internal[i].to]++;
	}
	for (i = 1; i <= states + 1; i++)
		first[i] += first[i - 1];
	for (i = 0; i < internals; i++)
		into[--first[internal[i].to]] = internal[i].from;
	for (i = 1; i <= states; i++)
		if (!out[i])
			done[count++] = i;
	for (i = 0; i < count; i++)
		for (j = first[done[i]]; j < first[done[i] + 1]; j++)
			if (!--out[into[j]])
				done[count++] = into[j];
	ends = count == states;
	for (i = 1; !ends && i <= states; i++)
		if (out[i]) {
			broken_text = "livelock: internal steps go on for ever";
			broken_at = i;
			break;
		}
	if (!ends) { /* follow states that never end until one comes twice */
		u32 *visited = calloc(states + 1, sizeof *visited), at = broken_at, turn;
		for (turn = 1; !visited[at]; turn++) {
			visited[at] = turn;
			for (i = 0; i < internals; i++)
				if (internal[i].from == at && out[internal[i].to])
					break;
			at = internal[i].to;
		}
		broken_at = at;
		cycle_print(out, at);
		free(visited);
	}
	free(out);
	free(first);
	free(into);
	free(done);
	return ends;
}

/* The state at the end of a trace, again. */
static void state_replay(u32 configuration, u32 id)
{
	u16 steps[4096];
	u32 count = 0;
	for (; seen[id].from && count < 4096; id = seen[id].from)
		steps[count++] = seen[id].step;
	configuration_build(configuration);
	tidy();
	while (count) {
		count--;
		step_take(steps[count] >> 8, steps[count] & 255);
		kicks_take();
		tidy();
	}
}

static bool explore(u32 configuration, u32 most)
{
	clock_t begin = clock();
	bool fresh, ok = true;
	u64 at;
	u32 id, to, kind, on, width;
	double seconds;

	states = transitions = rests = internals = 0;
	slots = 0;
	slots_grow();
	layer.length = next_layer.length = 0;
	configuration_build(configuration);
	tidy();
	initial = S;
	id = state_find(0, 0, &fresh);
	ok = state_check(id);
	state_put(&next_layer, id);
	width = S.cpus > tasks ? S.cpus : tasks;
	while (ok && next_layer.length) {
		struct queue swap = layer;
		layer = next_layer;
		next_layer = swap;
		next_layer.length = 0;
		for (at = 0; ok && at < layer.length;) {
			static struct tierce expanded;
			u64 then;
			id = state_take(&layer, &at);
			expanded = S;
			then = now;
			for (kind = 0; ok && kind < STEPS; kind++)
				for (on = 0; ok && on < width; on++) {
					if (!step_possible(kind, on))
						continue;
					tierce_native.failed = 0;
					step_take(kind, on);
					kicks_take();
					tidy();
					transitions++;
					to = state_find(id, (u16)(kind << 8 | on), &fresh);
					if (kind <= INTERNAL_END || (kind >= LEAVE && kind <= ARRIVE) || kind == MOVE)
						internal_add(id, to, (u16)(kind << 8 | on));
					if (tierce_native.failed || fresh)
						ok = state_check(to);
					if (ok && fresh)
						state_put(&next_layer, to);
					S = expanded;
					now = then;
				}
			if (states > most) {
				printf("%-20s more than %u states\n", configuration_name[configuration], most);
				return false;
			}
		}
	}
	if (ok)
		ok = internal_ends();
	seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
	printf("%-20s %8u states %9u steps %7u at rest %6.1f s  %s: %s\n", configuration_name[configuration], states,
	       transitions, rests, seconds, configuration_text[configuration], ok ? "holds" : broken_text);
	if (!ok) {
		trace_print(broken_at);
		if (verbose) {
			state_replay(configuration, broken_at);
			dump();
		}
	}
	fflush(stdout);
	return ok;
}

int main(int argc, char **argv)
{
	static struct tierce state;
	bool deep = false, named = false, ok = true;
	u32 most = STATES_MOST, configuration;
	int i;
	tierce_native.state = &state;
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-d"))
			deep = true;
		else if (!strcmp(argv[i], "-v"))
			verbose = true;
		else if (!strcmp(argv[i], "-m") && i + 1 < argc)
			most = (u32)strtoul(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-l")) {
			for (configuration = 0; configuration < CONFIGURATIONS_END; configuration++)
				printf("%-20s %s%s\n", configuration_name[configuration], configuration_text[configuration],
				       configuration_flags[configuration] & DEEP ? " (deep)" : "");
			return 0;
		} else {
			for (configuration = 0; configuration < CONFIGURATIONS_END; configuration++)
				if (!strcmp(argv[i], configuration_name[configuration]))
					break;
			if (configuration == CONFIGURATIONS_END) {
				fprintf(stderr, "usage: model [-l] [-d] [-v] [-m STATES] [CONFIGURATION...]; no \"%s\"\n",
					argv[i]);
				return 2;
			}
			named = true;
			ok &= explore(configuration, most);
		}
	}
	for (configuration = 0; !named && configuration < CONFIGURATIONS_END; configuration++)
		if (deep || !(configuration_flags[configuration] & DEEP))
			ok &= explore(configuration, most);
	if (!named)
		printf("model: %s\n", ok ? "every configuration holds" : "broken");
	return !ok;
}
