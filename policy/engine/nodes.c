/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Nodes: made, grouped as replicas of a spread node, freed. */

static inline bool node_exists(u32 node)
{
	return node && node < TIERCE_NODES && node_at(node)->kind != TIERCE_FREE;
}
static inline bool edge_exists(u32 edge)
{
	return edge && edge < TIERCE_EDGES && edge_at(edge)->child;
}
/* Of a replica: those below any of its spread node. */
static inline u32 node_children(u32 node)
{
	u32 family = node_at(node)->family;
	return node_at(node)->children + (SPREADS && family ? AT(S.family, family).tasks : 0);
}
static inline bool node_is_one_of_several(u32 node)
{
	u32 family = node_at(node)->family;
	return SPREADS && family && AT(S.family, family).replicas > 1;
}
/* What is near what, and which CPUs are allowed, before anybody has said so. */
static inline void sets_begin(u32 cpus)
{
	u32 cpu;
	set_fill(SET_STAGED, ~0ull);
	set_fill(SET_ALL, ~0ull);
	for (cpu = ZERO; cpu < cpus && CAN_LOOP; cpu++) {
		*set_word(SET_NEAR(cpu, NEAR_ONLY), cpu >> 6) = mask_of(cpu);
		*set_word(SET_NEAR(cpu, NEAR_CORE), cpu >> 6) = mask_of(cpu);
		set_fill(SET_NEAR(cpu, NEAR_CACHE), ~0ull);
		set_fill(SET_NEAR(cpu, NEAR_MEMORY), ~0ull);
	}
}

TIERCE_FN int graph_init(u32 cpus, u64 now)
{
	u32 cpu;
	if (!cpus || cpus > TIERCE_CPUS)
		return TIERCE_E_no_such_cpu;
	S.cpus = cpus;
	S.begin_ns = now;
	S.fresh_node = 1;
	S.fresh_edge = 1;
	S.fresh_row = 1;
	for (cpu = ZERO; cpu < cpus && CAN_LOOP; cpu++) {
		cpu_at(cpu)->online = 1;
		cpu_at(cpu)->idle = 1;
		*idle_word(cpu) |= mask_of(cpu);
		near_at(cpu)->core = mask_of(cpu);
		near_at(cpu)->cache = ~0ull;
		near_at(cpu)->memory = ~0ull;
		cpu_at(cpu)->group = cpu;
		cpu_at(cpu)->charged_ns = now;
		cpu_at(cpu)->until_ns = TIERCE_NEVER;
		cpu_at(cpu)->armed_ns = TIERCE_NEVER;
	}
	if (MANY)
		sets_begin(cpus);
	port_record(TIERCE_OP_init, cpus, 0, 0, now, TIERCE_OK, 0);
	return TIERCE_OK;
}

TIERCE_FN int graph_stage(u32 index, u64 value)
{
	if (MANY && index > TIERCE_NODE_PARAMS && index < TIERCE_NODE_PARAMS + TIERCE_WORDS)
		*set_word(SET_STAGED, index - TIERCE_NODE_PARAMS) = value;
	else if (index >= TIERCE_NODE_PARAMS)
		return TIERCE_E_parameter_out_of_range;
	else
		AT(S.stage, index) = value;
	port_record(TIERCE_OP_stage, index, 0, value, 0, TIERCE_OK, 0);
	return TIERCE_OK;
}

static inline void node_params_take(u32 node)
{
	u32 i;
	for (i = 0; i < TIERCE_PARAMS; i++)
		node_at(node)->param[i] = AT(S.stage, i);
	for (i = TIERCE_PARAMS; i < TIERCE_NODE_PARAMS; i++)
		node_at(node)->more[i - TIERCE_PARAMS] = AT(S.stage, i);
}

TIERCE_FN u32 graph_node_new(u32 kind, u32 concurrency, u64 allowed)
{
	u32 id;
	node_t *n;
	if (!stage_fits_node(kind) || (kind != TIERCE_TASK && !PORT_HAS(kind)))
		return TIERCE_NONE;
	if (S.spare_nodes)
		id = AT(S.spare_node, --S.spare_nodes);
	else if (S.fresh_node < TIERCE_NODES)
		id = S.fresh_node++;
	else
		return TIERCE_NONE;
	n = node_at(id);
	n->kind = kind;
	n->domain = TIERCE_NODOMAIN;
	n->first_parent = TIERCE_NONE;
	n->children = 0;
	n->order = 0;
	n->servable = 0;
	n->running = TIERCE_NONE;
	n->level = 0;
	n->row = 0;
	n->concurrency = concurrency;
	n->holds = 0;
	n->claim_edge = TIERCE_NONE;
	n->claim_victim = 0;
	n->claim_kept = 0;
	n->conditional = 0;
	n->ranked = 0;
	n->family = 0;
	reach_clear(id);
	allowed_set(id, cpus_staged(allowed));
	node_params_take(id);
	n->rounds.used_ns = 0; /* the union's words, whatever the policy */
	n->rounds.target_ns = 0;
	n->rounds.correction_ns = 0;
	n->rounds.error_ns = 0;
	n->rounds.set_ns = 0;
	n->rounds.weight = 0;
	n->rounds.active = 0;
	n->rounds.shares = 0;
	n->rounds.members = 0;
	n->rounds.full = 0;
	n->rounds.scale = 0;
	n->rounds.here = 0;
	n->rounds.next = 0;
	n->rounds.changed = 0;
	n->rounds.fresh = 0;
	n->near = 0;
	n->share.weight = 0;
	n->share.fraction = 0;
	n->share.met_ns = 0;
	n->share.later = 0;
	n->share.ahead = 0;
	n->sum = 0;
	n->clock = 0;
	n->tail = 0;
	n->deadline_ns = TIERCE_NEVER;
	n->ran_ns = 0;
	n->switches = 0;
	n->migrations = 0;
	n->last_cpu = TIERCE_CPUS;
	n->on_cpu = TIERCE_CPUS;
	if (policy_init(id)) {
		n->kind = TIERCE_FREE;
		AT(S.spare_node, S.spare_nodes++) = id;
		return TIERCE_NONE;
	}
	port_record(TIERCE_OP_node_new, kind, concurrency, allowed, 0, id, 0);
	return id;
}

/* The replica is of its spread node no longer. */
static inline void family_leave(u32 node)
{
	u32 family = node_at(node)->family;
	if (!family)
		return;
	node_at(node)->family = 0;
	if (!--AT(S.family, family).replicas)
		AT(S.family, family).kind = TIERCE_FREE;
}

/* A spread node without replicas, 0 if there is no room. */
static inline u32 family_new(u32 kind)
{
	u32 family, cpu;
	for (family = ZERO + 1; family < TIERCE_FAMILIES && CAN_LOOP; family++)
		if (!AT(S.family, family).kind)
			break;
	if (family >= TIERCE_FAMILIES)
		return 0;
	AT(S.family, family).kind = kind;
	AT(S.family, family).clock = 0;
	/* without spread nodes nobody has told who is idle */
	for (cpu = ZERO; !S.families && cpu < S.cpus && CAN_LOOP; cpu++) {
		cpu_at(cpu)->idle = !cpu_at(cpu)->task && cpu_at(cpu)->online && !cpu_at(cpu)->outside;
		if (cpu_at(cpu)->idle)
			idle_set(cpu);
		else
			idle_clear(cpu);
	}
	if (S.families <= family)
		S.families = family + 1;
	return family;
}

/* Have two nodes of one policy chosen the same by name? */
#define V(name, kind, least, most, preset, meaning) \
	if (STAYS_##kind && (i < TIERCE_PARAMS ? a->param[i] != b->param[i] : a->more[i - TIERCE_PARAMS] != b->more[i - TIERCE_PARAMS])) \
		return false; \
	i++;
static inline bool nodes_choose_alike(const node_t *a, const node_t *b)
{
	u32 i = 0;
	switch (a->kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: np return i <= TIERCE_NODE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return false;
}
#undef V

TIERCE_FN int graph_replica(u32 node, u32 first)
{
	node_t *n = node_at(node);
	u32 family;
	if (!node_exists(node) || !node_exists(first) || n->kind == TIERCE_TASK)
		return TIERCE_E_no_such_node;
	if (!policy_spreads(n->kind) || TIERCE_FAMILIES <= 1)
		return TIERCE_E_policy_cannot_spread;
	if (!PORT_HAS_PART(spread))
		return TIERCE_E_part_is_left_out;
	if (n->children || n->first_parent)
		return TIERCE_E_still_in_use;
	if (n->family || (first != node && (!node_at(first)->family || node_at(first)->kind != n->kind)))
		return TIERCE_E_not_a_replica;
	if (!nodes_choose_alike(n, node_at(first)))
		return TIERCE_E_replicas_differ;
	family = first == node ? family_new(n->kind) : node_at(first)->family;
	if (!family)
		return TIERCE_E_out_of_families;
	n->family = family;
	AT(S.family, family).replicas++;
	port_record(TIERCE_OP_replica, node, first, 0, 0, TIERCE_OK, 0);
	return TIERCE_OK;
}

TIERCE_FN int graph_node_free(u32 node)
{
	if (!node_exists(node))
		return TIERCE_E_no_such_node;
	if (node_at(node)->first_parent || node_at(node)->children)
		return TIERCE_E_still_in_use;
	family_leave(node);
	node_at(node)->kind = TIERCE_FREE;
	AT(S.spare_node, S.spare_nodes++) = node;
	port_record(TIERCE_OP_node_free, node, 0, 0, 0, TIERCE_OK, 0);
	return TIERCE_OK;
}
