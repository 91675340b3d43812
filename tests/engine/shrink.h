/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few operations of many that break the engine: all that happened to a machine is recorded, and when something is broken,
 * replayed with one part after the other left out, for as long as the same breaks.
 *
 * With spread nodes, a port makes several entries of what happens once: a task that wakes is placed, moved, requested, offered. What
 * it did is noted beside the entries. They are replayed as they were; if that does not break, what was noted is, whole, in the order
 * in which it began: then a CPU that is idle looks for tasks as it did, and what it should have found is found.
 *
 * Nodes and edges go by the numbers they had: who was made by an operation that is left out does not exist, and what is said
 * of it is left out, too.
 */
#ifndef TIERCE_TEST_SHRINK_H
#define TIERCE_TEST_SHRINK_H

#define SHRINK_MOST   65536u
#define SHRINK_ROUNDS 300u /* decisions of every CPU at one time, after which they kick each other for ever */

static const char *const shrink_for_ever = "the CPUs kick each other for ever";

/* What a port does. */
enum shrink_port { PORT_NONE, PORT_WAKE, PORT_DECIDE, PORT_EVENT, PORT_MOVE, PORT_ALLOW, PORT_ONLINE };
static const char *const shrink_port_name[] = {"", "wake", "decide", "event", "move", "allow", "online"};

struct shrink_operation {
	struct tierce_entry entry;
	u64 stage[TIERCE_NODE_PARAMS];
	struct tierce_set staged;
	u32 port;  /* noted, not an entry; then the entry has its arguments */
	u32 inner; /* an entry of what is noted */
};
static struct shrink_operation shrink_recorded[SHRINK_MOST], shrink_tried[SHRINK_MOST];
static u32 shrink_count, shrink_node[TIERCE_NODES], shrink_edge[TIERCE_EDGES];
static bool shrink_lacks; /* more happened than there is room for */
static u64 shrink_floor_ns;
static u32 shrink_quiet;
static struct tierce_near shrink_near[TIERCE_CPUS];
static struct tierce_set shrink_sets[TIERCE_NEARS * TIERCE_CPUS];
static u32 shrink_inner;  /* something noted is under way */
static bool shrink_whole; /* what is noted is replayed, not its entries */

static void shrink_take(void *sink, const struct tierce_entry *entry)
{
	if (entry->op == TIERCE_OP_init) {
		shrink_count = 0;
		shrink_lacks = false;
	}
	if (shrink_count == SHRINK_MOST) {
		shrink_lacks = true;
		return;
	}
	shrink_recorded[shrink_count].entry = *entry;
	shrink_recorded[shrink_count].port = PORT_NONE;
	shrink_recorded[shrink_count].inner = shrink_inner;
	shrink_recorded[shrink_count].staged = S.set[0];
	memcpy(shrink_recorded[shrink_count++].stage, S.stage, sizeof S.stage);
}

/* What the port has set of the machine, which is not recorded. */
static void shrink_machine(void)
{
	shrink_floor_ns = S.floor_ns;
	shrink_quiet = S.quiet;
	memcpy(shrink_near, S.near, sizeof shrink_near);
	if (MANY)
		memcpy(shrink_sets, &S.set[SET_NEAR(0, 0)], sizeof shrink_sets);
}

static void shrink_note(u32 port, u32 a, u32 b, u64 value, u64 now)
{
	struct tierce_entry entry = {.now_ns = now, .value = value, .a = a, .b = b};
	u32 at = shrink_count;
	shrink_take(NULL, &entry);
	if (shrink_count > at)
		shrink_recorded[at].port = port;
}

/* Operations of a task or node, and of an edge, by its number. */
#define SHRINK_OF_NODE \
	(1u << TIERCE_OP_request | 1u << TIERCE_OP_release | 1u << TIERCE_OP_announce | 1u << TIERCE_OP_node_set | \
	 1u << TIERCE_OP_node_free | 1u << TIERCE_OP_allow | 1u << TIERCE_OP_yield | 1u << TIERCE_OP_tell | \
	 1u << TIERCE_OP_replica | 1u << TIERCE_OP_leave | 1u << TIERCE_OP_enter)
#define SHRINK_OF_EDGE (1u << TIERCE_OP_attach | 1u << TIERCE_OP_set | 1u << TIERCE_OP_detach)

static bool shrink_waits(u32 id)
{
	u32 edge = S.node[id].first_parent;
	return S.edge[edge].flags & EDGE_SPREAD && S.edge[edge].state == TIERCE_READY;
}

static void shrink_decides(u32 cpu, u32 left, u64 stolen_ns, u64 now)
{
	u32 ran = S.cpu[cpu].task, tries;
	if (S.cpu[cpu].leaves)
		graph_returned(cpu, now);
	bits_put(tierce_native.kicks, cpu, false);
	graph_decide(cpu, left, now, stolen_ns);
	for (tries = 0; tries < 4 && !S.cpu[cpu].task && !S.cpu[cpu].leaves && graph_pull(cpu, now); tries++) {
		bits_put(tierce_native.kicks, cpu, false);
		graph_decide(cpu, TIERCE_NONE, now, 0);
	}
	if (S.cpu[cpu].task && now >= S.cpu[cpu].balance_ns)
		graph_balance(cpu, now);
	if (ran && ran != S.cpu[cpu].task && shrink_waits(ran))
		graph_offer(ran);
}

/* The CPU of a spread task, or another one where it may be, that is online. */
static u32 shrink_may(u32 id, u32 wanted)
{
	u32 cpu;
	if (wanted >= S.cpus || (S.cpu[wanted].online && may_be_on(id, wanted)))
		return wanted;
	for (cpu = 0; cpu < S.cpus; cpu++)
		if (S.cpu[cpu].online && may_be_on(id, cpu))
			return cpu;
	return wanted;
}

static void shrink_moves(u32 id, u32 cpu, u64 now)
{
	if (!graph_home(id, cpu, now) && shrink_waits(id))
		graph_offer(id);
}

static void shrink_plays(const struct shrink_operation *operation)
{
	const struct tierce_entry *e = &operation->entry;
	u32 id = shrink_node[e->a % TIERCE_NODES], node, home = S.node[id].domain;
	u64 now = e->now_ns;
	bool spread = S.edge[S.node[id].first_parent].flags & EDGE_SPREAD;
	switch ((enum shrink_port)operation->port) {
	case PORT_NONE: break;
	case PORT_WAKE:
		if (id && spread && !S.node[id].servable) {
			node = shrink_may(id, graph_place(S.edge[S.node[id].first_parent].parent, home, allowed_of(id)));
			if (node != home)
				graph_home(id, node, now);
		}
		if (id)
			graph_request(id, TIERCE_WOKE, now);
		if (id && spread)
			graph_offer(id);
		break;
	case PORT_DECIDE:
		node = shrink_node[e->b & (TIERCE_NODES - 1)];
		shrink_decides(e->a, node ? node | (e->b & TIERCE_YIELDED) : 0, e->value, now);
		break;
	case PORT_EVENT:
		graph_event(e->a, now, e->value);
		if (now >= S.cpu[e->a].balance_ns)
			graph_balance(e->a, now);
		break;
	case PORT_MOVE:
		if (id)
			shrink_moves(id, e->b, now);
		break;
	case PORT_ALLOW:
		if (!id || graph_allow(id, e->value, now) || !spread)
			break;
		shrink_moves(id, shrink_may(id, home), now);
		if (shrink_waits(id))
			graph_offer(id);
		break;
	case PORT_ONLINE:
		graph_online(e->a, e->b, now);
		if (!S.families || e->b)
			break;
		shrink_decides(e->a, 0, 0, now);
		for (node = 1; node < S.fresh_node; node++)
			if (S.node[node].kind == TIERCE_TASK && S.node[node].domain == e->a && S.cpu[e->a].task != node &&
			    S.edge[S.node[node].first_parent].flags & EDGE_SPREAD)
				shrink_moves(node, shrink_may(node, e->a), now);
		break;
	}
}

static void shrink_play(const struct shrink_operation *operation)
{
	const struct tierce_entry *e = &operation->entry;
	u32 a = e->a, b = e->b;
	u64 now = e->now_ns;
	if (operation->port || (operation->inner && shrink_whole)) {
		if (shrink_whole)
			shrink_plays(operation);
		return;
	}
	if (1u << e->op & SHRINK_OF_NODE)
		a = shrink_node[a % TIERCE_NODES];
	if (1u << e->op & SHRINK_OF_EDGE)
		a = shrink_edge[a % TIERCE_EDGES];
	if (!a && 1u << e->op & (SHRINK_OF_NODE | SHRINK_OF_EDGE))
		return;
	if (1u << e->op & SHRINK_OF_NODE && S.node[a].domain == TIERCE_TRANSIT && e->op != TIERCE_OP_enter)
		return; /* nobody may ask: where it arrived was left out */
	if (1u << e->op & SHRINK_OF_EDGE && S.node[S.edge[a].child].domain == TIERCE_TRANSIT)
		return;
	memcpy(S.stage, operation->stage, sizeof S.stage);
	if (MANY)
		S.set[SET_STAGED] = operation->staged;
	switch (e->op) {
	case TIERCE_OP_init:
		graph_init(a, now);
		S.floor_ns = shrink_floor_ns;
		S.quiet = shrink_quiet;
		memcpy(S.near, shrink_near, sizeof S.near);
		if (MANY)
			memcpy(&S.set[SET_NEAR(0, 0)], shrink_sets, sizeof shrink_sets);
		break;
	case TIERCE_OP_request: graph_request(a, b, now); break;
	case TIERCE_OP_release: graph_release(a, b, now); break;
	case TIERCE_OP_announce: graph_announce(a, e->value, now); break;
	case TIERCE_OP_decide:
		if (S.cpu[a].leaves)
			graph_returned(a, now);
		bits_put(tierce_native.kicks, a, false);
		graph_decide(a, 0, now, e->value);
		break;
	case TIERCE_OP_event: graph_event(a, now, e->value); break;
	case TIERCE_OP_returned: graph_returned(a, now); break;
	case TIERCE_OP_outside: graph_outside(a, b, now); break;
	case TIERCE_OP_node_new: shrink_node[e->result % TIERCE_NODES] = graph_node_new(a, b, e->value); break;
	case TIERCE_OP_node_set: graph_node_set(a, now); break;
	case TIERCE_OP_node_free:
		if (!graph_node_free(a)) /* its number may be another's */
			shrink_node[e->a % TIERCE_NODES] = 0;
		break;
	case TIERCE_OP_edge_new:
		shrink_edge[e->result % TIERCE_EDGES] = graph_edge_new(
		    shrink_node[a % TIERCE_NODES], shrink_node[b % TIERCE_NODES], (s32)e->value, (u32)(e->value >> 32));
		break;
	case TIERCE_OP_attach: graph_attach(a, now); break;
	case TIERCE_OP_set: graph_set(a, now); break;
	case TIERCE_OP_detach:
		if (!graph_detach(a, now))
			shrink_edge[e->a % TIERCE_EDGES] = 0;
		break;
	case TIERCE_OP_root: graph_root(a, shrink_node[b % TIERCE_NODES], now); break;
	case TIERCE_OP_allow: graph_allow(a, e->value, now); break;
	case TIERCE_OP_online: graph_online(a, b, now); break;
	case TIERCE_OP_taken: S.cpu[a].taken_ns += e->value; break;
	case TIERCE_OP_yield: graph_yield(a, now); break;
	case TIERCE_OP_tell: graph_tell(a, b, now); break;
	case TIERCE_OP_replica: graph_replica(a, shrink_node[b % TIERCE_NODES]); break;
	case TIERCE_OP_leave: graph_leave(a, b, now); break;
	case TIERCE_OP_enter: graph_enter(a, b, TIERCE_AFFINITY, now); break;
	}
}

static const char *shrink_check(void)
{
	u32 cpu, broken;
	bool rest = !bits_any(tierce_native.kicks);
	if (tierce_native.failed)
		return tierce_native.failed;
	for (cpu = 0; cpu < S.cpus; cpu++)
		rest = rest && !S.cpu[cpu].leaves;
	broken = graph_check(rest);
	if (!shrink_whole && (broken == TIERCE_I_spread_conserving || broken == TIERCE_I_idle_at_rest))
		return NULL; /* who claims idle CPUs is not recorded */
	return broken ? invariant(broken) : NULL;
}

/* Do they come to rest at one time, when CPU `first` begins? */
static bool shrink_rests(u64 now, u32 first)
{
	u32 round, i;
	for (round = 0; round < SHRINK_ROUNDS; round++) {
		bool busy = false;
		for (i = 0; i < S.cpus; i++) {
			u32 cpu = (first + i) % S.cpus;
			busy = busy || S.cpu[cpu].leaves || bits_have(tierce_native.kicks, cpu);
			if (S.cpu[cpu].leaves)
				graph_returned(cpu, now);
			if (bits_have(tierce_native.kicks, cpu))
				shrink_decides(cpu, 0, 0, now);
		}
		if (!busy)
			return true;
	}
	return false;
}

/* Does it break like that by these operations? Then how many of them it takes, else 0. */
static u32 shrink_breaks(const struct shrink_operation *list, u32 count, const char *why, u32 first)
{
	u64 now = 0;
	u32 i;
	memset(tierce_native.state, 0, sizeof S);
	memset(shrink_node, 0, sizeof shrink_node);
	memset(shrink_edge, 0, sizeof shrink_edge);
	kicks_forget();
	tierce_native.failed = NULL;
	for (i = 0; i < count; i++) {
		const char *broken;
		shrink_play(&list[i]);
		if (list[i].entry.now_ns > now)
			now = list[i].entry.now_ns;
		broken = shrink_check();
		if (broken)
			return strcmp(broken, why) ? 0 : i + 1;
	}
	return !strcmp(why, shrink_for_ever) && S.cpus && !shrink_rests(now, first) ? count : 0;
}
static u32 shrink_breaks_somehow(const struct shrink_operation *list, u32 count, const char *why)
{
	u32 first, broken = 0;
	for (first = 0; first < 4 && !broken; first++)
		broken = shrink_breaks(list, count, why, first);
	return broken;
}

/* Print the fewest operations found that break it like that. */
static void shrink(const char *why)
{
#define NAME(number, name, a, b, value, result) [number] = #name,
	static const char *const names[] = {TIERCE_OP_LIST(NAME)};
#undef NAME
	u32 count, part, at, i, left;
	tierce_native.record = NULL;
	count = shrink_lacks ? 0 : shrink_breaks_somehow(shrink_recorded, shrink_count, why);
	shrink_whole = !count;
	if (!count && !shrink_lacks)
		count = shrink_breaks_somehow(shrink_recorded, shrink_count, why);
	for (i = at = 0; i < count; i++) /* without what is not replayed */
		if (shrink_recorded[i].port ? shrink_whole : !(shrink_whole && shrink_recorded[i].inner))
			shrink_recorded[at++] = shrink_recorded[i];
	count = at;
	if (!count) {
		printf("(replayed, it does not break)\n");
		return;
	}
	for (part = count / 2; part; part /= 2) {
		for (at = 0; at < count;) {
			u32 end = at + part < count ? at + part : count, rest = count - end;
			memcpy(shrink_tried, shrink_recorded, at * sizeof *shrink_tried);
			memcpy(shrink_tried + at, shrink_recorded + end, rest * sizeof *shrink_tried);
			left = shrink_breaks_somehow(shrink_tried, at + rest, why);
			if (left) {
				memcpy(shrink_recorded, shrink_tried, left * sizeof *shrink_tried);
				count = left;
			} else {
				at = end;
			}
		}
	}
	printf("%u operations suffice:\n", count);
	for (i = 0; i < count; i++) {
		const struct tierce_entry *e = &shrink_recorded[i].entry;
		printf("%12llu  %s %u %u %llu", (unsigned long long)e->now_ns,
		       shrink_recorded[i].port ? shrink_port_name[shrink_recorded[i].port] : names[e->op], e->a, e->b,
		       (unsigned long long)e->value);
		if (e->op == TIERCE_OP_node_new || e->op == TIERCE_OP_edge_new)
			printf(" = %llu", (unsigned long long)e->result);
		if (e->op == TIERCE_OP_node_new || e->op == TIERCE_OP_node_set || 1u << e->op & SHRINK_OF_EDGE ||
		    e->op == TIERCE_OP_tell)
			for (at = 0; at < TIERCE_NODE_PARAMS; at++)
				printf("%s%llu", at ? " " : "  with ", (unsigned long long)shrink_recorded[i].stage[at]);
		printf("\n");
	}
}
#endif
