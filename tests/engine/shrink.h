/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The few operations of many that break the engine: all that happened to a machine is recorded, and when something is broken,
 * replayed with one part after the other left out, for as long as the same breaks.
 *
 * Nodes and edges go by the numbers they had: who was made by an operation that is left out does not exist, and what is said
 * of it is left out, too.
 */
#ifndef TIERCE_TEST_SHRINK_H
#define TIERCE_TEST_SHRINK_H

#define SHRINK_MOST   65536u
#define SHRINK_ROUNDS 300u /* decisions of every CPU at one time, after which they kick each other for ever */

static const char *const shrink_for_ever = "the CPUs kick each other for ever";

struct shrink_operation {
	struct tierce_entry entry;
	u64 stage[TIERCE_NODE_PARAMS];
};
static struct shrink_operation shrink_recorded[SHRINK_MOST], shrink_tried[SHRINK_MOST];
static u32 shrink_count, shrink_node[TIERCE_NODES], shrink_edge[TIERCE_EDGES];
static bool shrink_lacks; /* more happened than there is room for */

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
	memcpy(shrink_recorded[shrink_count++].stage, S.stage, sizeof S.stage);
}

/* Operations of a task or node, and of an edge, by its number. */
#define SHRINK_OF_NODE \
	(1u << TIERCE_OP_request | 1u << TIERCE_OP_release | 1u << TIERCE_OP_announce | 1u << TIERCE_OP_node_set | \
	 1u << TIERCE_OP_node_free | 1u << TIERCE_OP_allow | 1u << TIERCE_OP_yield | 1u << TIERCE_OP_tell)
#define SHRINK_OF_EDGE (1u << TIERCE_OP_attach | 1u << TIERCE_OP_set | 1u << TIERCE_OP_detach)

static void shrink_play(const struct shrink_operation *operation)
{
	const struct tierce_entry *e = &operation->entry;
	u32 a = e->a, b = e->b;
	u64 now = e->now_ns;
	if (1u << e->op & SHRINK_OF_NODE)
		a = shrink_node[a % TIERCE_NODES];
	if (1u << e->op & SHRINK_OF_EDGE)
		a = shrink_edge[a % TIERCE_EDGES];
	if (!a && 1u << e->op & (SHRINK_OF_NODE | SHRINK_OF_EDGE))
		return;
	memcpy(S.stage, operation->stage, sizeof S.stage);
	switch (e->op) {
	case TIERCE_OP_init: graph_init(a, now); break;
	case TIERCE_OP_request: graph_request(a, b, now); break;
	case TIERCE_OP_release: graph_release(a, b, now); break;
	case TIERCE_OP_announce: graph_announce(a, e->value, now); break;
	case TIERCE_OP_decide:
		if (S.cpu[a].leaves)
			graph_returned(a, now);
		tierce_native.kicks &= ~(1ull << a);
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
	}
}

static const char *shrink_check(void)
{
	u32 cpu, broken;
	bool rest = !tierce_native.kicks;
	if (tierce_native.failed)
		return tierce_native.failed;
	for (cpu = 0; cpu < S.cpus; cpu++)
		rest = rest && !S.cpu[cpu].leaves;
	broken = graph_check(rest);
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
			busy = busy || S.cpu[cpu].leaves || tierce_native.kicks >> cpu & 1;
			if (S.cpu[cpu].leaves)
				graph_returned(cpu, now);
			if (tierce_native.kicks >> cpu & 1) {
				tierce_native.kicks &= ~(1ull << cpu);
				graph_decide(cpu, 0, now, 0);
			}
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
	tierce_native.kicks = 0;
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
		printf("%12llu  %s %u %u %llu", (unsigned long long)e->now_ns, names[e->op], e->a, e->b,
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
