/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The native build: all of policy/ as one unit, the list of policies as data, and what Rust needs to know of layouts. */
#include "port.h"
_Thread_local struct tierce_native tierce_native;
#include "engine/graph.c"
#include "engine/control.c"
#include "engine/check.c"
#include <stddef.h>

struct tierce_native *tierce_hooks(void)
{
	return &tierce_native;
}

/* ---- the list of policies ---- */
enum { TIME, COUNT, DURATION_OF, RATIO, CHOICE };
struct tierce_param {
	const char *name, *meaning;
	u64 least, most, preset;
	u32 kind, of_node; /* of_node: a node's parameter, else an edge's */
};
struct tierce_record {
	const char *name;
	u32 number, flags, params, added;
	struct tierce_param param[TIERCE_NODE_PARAMS + TIERCE_EDGE_PARAMS];
};
#define V(name, kind, least, most, preset, meaning) {name, meaning, least, most, preset, kind, 1},
#define NODE_PARAMS(number, prefix, name, flags, np, ep) static const struct tierce_param prefix##_node[] = {np{0}};
TIERCE_POLICY_LIST(NODE_PARAMS, V)
#undef V
#define V(name, kind, least, most, preset, meaning) {name, meaning, least, most, preset, kind, 0},
#define EDGE_PARAMS(number, prefix, name, flags, np, ep) static const struct tierce_param prefix##_edge[] = {ep{0}};
TIERCE_POLICY_LIST(EDGE_PARAMS, V)
#undef V

static void take(struct tierce_record *record, const struct tierce_param *param)
{
	for (; param->name; param++)
		record->param[record->params++] = *param;
}

/* The record of the i-th policy of the list; 0 past the end. */
int tierce_policy_record(u32 index, struct tierce_record *record)
{
	u32 i = 0;
#define RECORD(policy, prefix, text, flag, np, ep) \
	if (i++ == index) { \
		*record = (struct tierce_record){.name = text, .number = policy, .flags = flag}; \
		record->added = policy >= TIERCE_ADDED_FIRST; \
		take(record, prefix##_node); \
		take(record, prefix##_edge); \
		return 1; \
	}
	TIERCE_POLICY_LIST(RECORD, )
	return 0;
}

const char *tierce_error_text(u32 error, u32 want_name)
{
	switch (error) {
#define TEXT(number, name, text) \
	case number: return want_name ? #name : text;
		TIERCE_ERROR_LIST(TEXT)
	}
	return 0;
}

/* Of a recording: the virtual time of a spread node that the next entry finds. */
void tierce_met(u32 family, u64 clock)
{
	if (family < TIERCE_FAMILIES)
		S.family[family].clock = clock;
}

/* Where a task below a spread node should wait when it wakes: see graph_place. */
u32 tierce_place(u32 task)
{
	node_t *n = node_at(task);
	return graph_place(edge_at(n->first_parent)->parent, n->domain, allowed_of(task));
}

/* The name of an entry or control operation; 0: no such number. */
const char *tierce_op_name(u32 op)
{
	switch (op) {
#define NAME(number, name, a, b, value, result) \
	case number: return #name;
		TIERCE_OP_LIST(NAME)
#undef NAME
	}
	return 0;
}

const char *tierce_invariant_text(u32 invariant, u32 want_name)
{
	switch (invariant) {
		TIERCE_INVARIANT_LIST(TEXT)
	}
	return 0;
}

/* ---- layouts: sizes and offsets that the Rust side checks ---- */
u64 tierce_layout(u32 what)
{
	switch (what) {
	case 0: return sizeof(struct tierce);
	case 1: return sizeof(struct tierce_node);
	case 2: return sizeof(struct tierce_edge);
	case 3: return sizeof(struct tierce_cpu);
	case 4: return offsetof(struct tierce, node);
	case 5: return offsetof(struct tierce, edge);
	case 6: return offsetof(struct tierce, cpu);
	case 7: return offsetof(struct tierce, cpus);
	case 8: return offsetof(struct tierce_edge, supply_ns);
	case 9: return offsetof(struct tierce_edge, reservation);
	case 10: return offsetof(struct tierce_node, ran_ns);
	case 11: return offsetof(struct tierce_cpu, until_ns);
	case 12: return offsetof(struct tierce_cpu, decisions);
	case 13: return TIERCE_NODES;
	case 14: return TIERCE_EDGES;
	case 15: return TIERCE_ROWS;
	case 16: return TIERCE_CPUS;
	case 17: return offsetof(struct tierce, quiet);
	case 18: return offsetof(struct tierce, floor_ns);
	case 19: return offsetof(struct tierce_node, more);
	case 20: return TIERCE_FAMILIES;
	case 21: return offsetof(struct tierce, set);
	}
	return 0;
}
