/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Control operations: make, change and remove nodes and edges, while everything runs. Each checks first and then acts in
 * code that cannot fail, so a refused call has changed nothing. Parameters travel through S.stage. Callers serialise
 * control operations among themselves; the domains concerned are locked here.
 *
 * A graph is built from the CPUs down: graph_root, then for each node all its parent edges before its first child. That
 * order alone excludes cycles, fixes levels and tells the domain of every node the moment it is attached.
 */
#include "service.h"

/* Are the staged parameters inside their ranges? */
static inline bool stage_within(u32 index, u64 least, u64 most)
{
	return AT(S.stage, index) >= least && AT(S.stage, index) <= most;
}
#define V(name, kind, least, most, preset, meaning) \
	if (!stage_within(i++, least, most)) \
		return false;
static inline bool stage_fits_node(u32 kind)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: np return i <= TIERCE_NODE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return kind == TIERCE_TASK && i == 0;
}
static inline bool stage_fits_edge(u32 kind)
{
	u32 i = 0;
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: ep return i <= TIERCE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return false;
}
#undef V

/* A choice of a node stays as it is while it has children. */
enum { STAYS_TIME, STAYS_COUNT = 0, STAYS_DURATION_OF = 0, STAYS_RATIO = 0, STAYS_CHOICE = 1 };
#define V(name, kind, least, most, preset, meaning) \
	if (STAYS_##kind && AT(S.stage, i) != (i < TIERCE_PARAMS ? n->param[i] : n->more[i - TIERCE_PARAMS])) \
		return false; \
	i++;
static inline bool stage_keeps_choices(u32 node)
{
	node_t *n = node_at(node);
	u32 i = 0;
	switch (n->kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: np return i <= TIERCE_NODE_PARAMS;
		TIERCE_POLICY_LIST(P, V)
#undef P
	}
	return false;
}
#undef V

static inline int policy_init(u32 node)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_init(node)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return error;
}
static inline int policy_attach(u32 edge, u64 now)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_attach(edge, now)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
	return error;
}
static inline int policy_set(u32 edge, u64 now)
{
	int error = TIERCE_OK;
#define CALL(prefix) error = prefix##_set(edge, now)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
	return error;
}
static inline void policy_detach(u32 edge)
{
#define CALL(prefix) prefix##_detach(edge)
	DISPATCH(parent_of(edge)->kind);
#undef CALL
}

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
static inline u32 cpus_lowest(u64 cpus)
{
	u32 bit;
	for (bit = ZERO; bit < TIERCE_CPUS && CAN_LOOP; bit++)
		if (cpus >> bit & 1)
			return bit;
	return TIERCE_CPUS;
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
	S.shared_until_ns = TIERCE_NEVER;
	for (cpu = ZERO; cpu < cpus && CAN_LOOP; cpu++) {
		cpu_at(cpu)->online = 1;
		cpu_at(cpu)->idle = 1;
		S.idle[0] |= 1ull << (cpu & 63);
		near_at(cpu)->core = 1ull << (cpu & 63);
		near_at(cpu)->cache = ~0ull;
		near_at(cpu)->memory = ~0ull;
		cpu_at(cpu)->charged_ns = now;
		cpu_at(cpu)->until_ns = TIERCE_NEVER;
		cpu_at(cpu)->armed_ns = TIERCE_NEVER;
	}
	port_record(TIERCE_OP_init, cpus, 0, 0, now, TIERCE_OK, 0);
	return TIERCE_OK;
}

TIERCE_FN int graph_stage(u32 index, u64 value)
{
	if (index >= TIERCE_NODE_PARAMS)
		return TIERCE_E_parameter_out_of_range;
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
	n->able = 0;
	n->row = 0;
	n->concurrency = concurrency;
	n->holds = 0;
	n->claim_edge = TIERCE_NONE;
	n->claim_victim = 0;
	n->claim_kept = 0;
	n->conditional = 0;
	n->ranked = 0;
	n->family = 0;
	n->cpus = 0;
	n->allowed = allowed;
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
			port_bits_set(&S.idle[0], 1ull << (cpu & 63));
		else
			port_bits_clear(&S.idle[0], 1ull << (cpu & 63));
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

static inline u32 edge_take(u32 parent, u32 child, s32 rank, u32 flags)
{
	u32 id, i;
	edge_t *x;
	if (S.spare_edges)
		id = AT(S.spare_edge, --S.spare_edges);
	else if (S.fresh_edge < TIERCE_EDGES)
		id = S.fresh_edge++;
	else
		return TIERCE_NONE;
	x = edge_at(id);
	x->parent = parent;
	x->child = child;
	x->kind = parent ? node_at(parent)->kind : TIERCE_FREE;
	x->next_parent = TIERCE_NONE;
	x->cpu = TIERCE_CPUS;
	x->state = TIERCE_WAITING;
	x->flags = flags & EDGE_WHEN_SPENT ? EDGE_WHEN_SPENT | EDGE_SHUT : SEVERAL_CPUS ? flags & EDGE_SPREAD : 0;
	x->on_cpu = TIERCE_CPUS;
	x->bit = 0;
	x->rank = rank;
	x->told = TIERCE_UNTOLD;
	x->restore = 0;
	x->throttles = 0;
	x->replenishments = 0;
	x->grants = 0;
	x->variant = 0;
	x->supply_ns = 0;
	x->forgiven_ns = 0;
	for (i = 0; i < TIERCE_PARAMS; i++)
		x->param[i] = 0;
	x->fair.tag = 0; /* the union's words, whatever the policy */
	x->fair.inverse = 0;
	x->fair.fraction = 0;
	x->fair.lead = 0;
	x->fair.begin = 0;
	x->fair.quantum_ns = 0;
	return id;
}

static inline void edge_give_back(u32 edge)
{
	edge_at(edge)->child = TIERCE_NONE;
	edge_at(edge)->flags = 0;
	AT(S.spare_edge, S.spare_edges++) = edge;
}

TIERCE_FN u32 graph_edge_new(u32 parent, u32 child, s32 rank, u32 flags)
{
	u32 edge;
	if (!node_exists(parent) || !node_exists(child) || node_at(parent)->kind == TIERCE_TASK || parent == child)
		return TIERCE_NONE;
	edge = edge_take(parent, child, rank, flags);
	port_record(TIERCE_OP_edge_new, parent, child, (u32)rank | (u64)flags << 32, 0, edge, 0);
	return edge;
}

/* A free bit in the CPU's inbox, TIERCE_CROSSINGS if none. */
static inline u32 crossing_spare(u32 cpu)
{
	u32 bit;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++)
		if (!AT(cpu_at(cpu)->crossing, bit))
			return bit;
	return TIERCE_CROSSINGS;
}

/* The edge's child is a head: it is told, over the inbox when the parent is in a CPU's own tree. */
static inline void edge_to_head(u32 edge, u32 cpu)
{
	edge_t *x = edge_at(edge);
	x->flags |= EDGE_HEAD;
	if (cpu < TIERCE_CPUS && !(x->flags & EDGE_CROSSING)) {
		x->flags |= EDGE_CROSSING;
		x->cpu = cpu;
		x->bit = crossing_spare(cpu);
		AT(cpu_at(cpu)->crossing, x->bit) = edge;
		cpu_at(cpu)->crossings++;
	}
}

static inline u32 edge_domain(u32 edge) /* of the parent; the CPU of a root edge */
{
	return edge_at(edge)->parent ? parent_of(edge)->domain : edge_at(edge)->cpu;
}

/* After a node has got, lost or changed a parent: which of the edges to it are plain? */
static inline void edges_plain(u32 child)
{
	node_t *n = node_at(child);
	u32 edge = n->first_parent;
	bool plain = edge && !n->row && !n->conditional && !edge_at(edge)->next_parent && n->domain != TIERCE_SHARED;
	for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		edge_at(edge)->flags &= ~EDGE_PLAIN;
		if (!plain)
			continue;
		edge_at(edge)->flags |= EDGE_PLAIN;
		edge_at(edge)->on_cpu = n->domain;
	}
}

/* Is there a way through another shared node? That has one order for all its CPUs: one that finds nothing in this node takes
 * it out for all. */
TIERCE_FN u32 node_is_inner(u32 node)
{
	u32 edge;
	for (edge = node_at(node)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent)
		if (edge_at(edge)->parent && parent_of(edge)->domain == TIERCE_SHARED)
			return 1;
	return 0;
}

/* Where CPUs compete for a node by rank: it has no more ways to it, or what is below it has not. */
#define RANKED_HERE  1u
#define RANKED_BELOW 2u

/* With one more edge to it: two ways down to a node whose ranks disagree would take it from each other for ever. */
TIERCE_FN u32 node_ranked(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(x->child);
	bool inner = edge_domain(edge) == TIERCE_SHARED, shared;
	u32 ranked = n->ranked | (inner && parent_of(edge)->ranked ? RANKED_HERE : 0), other;
	for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent) {
		shared = edge_domain(other) == TIERCE_SHARED;
		if (edge_at(other)->rank == x->rank || (shared && inner))
			continue;
		ranked |= shared == inner ? RANKED_HERE : RANKED_BELOW; /* or a claim from who came through a shared node */
	}
	return ranked;
}

/* Put the edge (root edges: with cpu set) into the graph. Staged parameters are those of the parent's policy. */
TIERCE_FN int edge_link(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 child = x->child, parent = x->parent, domain = edge_domain(edge), other, last = TIERCE_NONE, level, local = 0;
	node_t *n = node_at(child);
	u64 cpus = parent ? node_at(parent)->cpus : 1ull << x->cpu;
	u32 ranked = node_ranked(edge);
	bool head;
	int error = TIERCE_OK;

	if (domain == TIERCE_NODOMAIN)
		return TIERCE_E_parent_unattached;
	if (n->children || (n->family && n->first_parent && node_children(child)) || (n->kind != TIERCE_TASK && n->servable))
		return TIERCE_E_parents_after_children;
	level = parent ? node_at(parent)->level + 1 : 1;
	if (level > TIERCE_DEPTH + (n->kind == TIERCE_TASK))
		return TIERCE_E_too_deep;
	/* several domains, or several parents in the shared one, or a root of several CPUs: a head */
	head = n->domain != TIERCE_NODOMAIN && (n->domain != domain || domain == TIERCE_SHARED);
	if (n->family && (head || domain >= TIERCE_CPUS || (replica_on(n->family, domain) && n->domain != domain)))
		return TIERCE_E_replica_needs_one_cpu;
	if (n->first_parent && ((x->flags | edge_at(n->first_parent)->flags) & EDGE_SPREAD))
		return TIERCE_E_spread_task_has_one_parent;
	if ((x->flags & EDGE_SPREAD) && (n->kind != TIERCE_TASK || !parent || !node_at(parent)->family))
		return TIERCE_E_not_a_replica;
	if (head && (n->conditional || (x->flags & EDGE_WHEN_SPENT)))
		return TIERCE_E_condition_across_cpus;
	if (head && ranked & RANKED_HERE && (domain == TIERCE_SHARED || node_is_inner(child)))
		return TIERCE_E_ranks_above_inner_head;
	if (head && !n->row) {
		if (!PORT_HAS_PART(shared))
			return TIERCE_E_part_is_left_out;
		if (n->servable)
			return TIERCE_E_still_in_use;
		if (!S.spare_rows && S.fresh_row >= TIERCE_ROWS)
			return TIERCE_E_out_of_rows;
		for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent)
			if (edge_domain(other) < TIERCE_CPUS && cpu_at(edge_domain(other))->crossings >= TIERCE_CROSSINGS - 1)
				return TIERCE_E_too_many_crossings;
	}
	if (head && domain < TIERCE_CPUS && cpu_at(domain)->crossings >= TIERCE_CROSSINGS)
		return TIERCE_E_too_many_crossings;
	if (n->kind == TIERCE_TASK) {
		if (!(n->allowed & (x->flags & EDGE_SPREAD ? AT(S.family, node_at(parent)->family).cpus : cpus)))
			return TIERCE_E_cpu_not_allowed;
		if (domain == TIERCE_SHARED && (n->allowed & cpus) != cpus) {
			if (node_is_inner(parent))
				return TIERCE_E_affinity_below_inner_node;
			local = EDGE_LOCAL;
		}
	}
	if (parent) {
		if (!stage_fits_edge(node_at(parent)->kind))
			return TIERCE_E_parameter_out_of_range;
		error = policy_attach(edge, now);
		if (error)
			return error;
		if (x->flags & EDGE_SPREAD)
			AT(S.family, node_at(parent)->family).tasks++;
		else
			node_at(parent)->children++;
		x->cpu = local ? cpus_lowest(n->allowed & cpus) : domain; /* TIERCE_SHARED is TIERCE_CPUS: nobody's */
	}
	/* nothing below can fail */
	for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent)
		last = other;
	if (last)
		edge_at(last)->next_parent = edge;
	else
		n->first_parent = edge;
	x->flags |= EDGE_ATTACHED | local;
	if (x->flags & EDGE_WHEN_SPENT)
		n->conditional = 1;
	if (level > n->level)
		n->level = level;
	n->cpus |= cpus;
	n->ranked = ranked;
	if (head && !n->row) {
		u32 row = S.spare_rows ? AT(S.spare_row, --S.spare_rows) : S.fresh_row++, cpu;
		for (cpu = ZERO; cpu < TIERCE_CPUS && CAN_LOOP; cpu++) {
			AT(row_at(row)->order, cpu) = 0;
			AT(row_at(row)->running, cpu) = TIERCE_NONE;
			AT(row_at(row)->hold, cpu) = TIERCE_HOLD_FREE;
			AT(row_at(row)->edge, cpu) = TIERCE_NONE;
		}
		n->row = row;
		if (n->kind == TIERCE_TASK || n->concurrency == 0)
			n->concurrency = n->kind == TIERCE_TASK ? 1 : TIERCE_CPUS;
		for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent)
			edge_to_head(other, edge_domain(other));
		n->domain = TIERCE_SHARED;
	} else if (n->row) {
		edge_to_head(edge, domain);
	} else {
		n->domain = domain;
		if (n->family) {
			AT(AT(S.family, n->family).replica, domain) = child;
			AT(S.family, n->family).cpus |= 1ull << domain;
		}
	}
	edges_plain(child);
	if (n->row)
		work_push(child); /* an able one tells its new parent */
	else if (node_is_able(child) && !(x->flags & EDGE_WHEN_SPENT))
		edge_request(edge, TIERCE_WOKE, now);
	if (n->conditional)
		edges_condition(child, now);
	deadline_follow(edge, now);
	return TIERCE_OK;
}

/* The domain of an edge's parent. A spread task moves: its home is locked at once. */
#define CONTROL_LOCKED (1u << 30)
static inline u32 control_domain(u32 edge)
{
	if (!SEVERAL_CPUS || !(edge_at(edge)->flags & EDGE_SPREAD) || !(edge_at(edge)->flags & EDGE_ATTACHED))
		return edge_domain(edge);
	return task_lock(edge_at(edge)->child) | CONTROL_LOCKED;
}

/* Lock what an edge between `domain` and the shared one may touch, and bring it to `now`. */
static inline u64 control_enter(u32 domain, u64 now)
{
	u32 cpu = domain, tries;
	if (domain & CONTROL_LOCKED)
		cpu = domain & ~CONTROL_LOCKED;
	for (tries = 0; tries < 64 && !(domain & CONTROL_LOCKED); tries++) {
		if (domain >= TIERCE_CPUS)
			cpu = S.shared_timer;
		port_lock(cpu);
		if (domain < TIERCE_CPUS || cpu == S.shared_timer)
			break; /* from here on it is the same: another needs the locks of all CPUs */
		port_unlock(cpu);
	}
	if (tries == 64)
		port_fail("graph: who serves the shared events changes all the time");
	now = cpu_advance(cpu, 0, now, 0);
	shared_lock(cpu);
	return now;
}
static inline void control_leave(u32 domain, u64 now, u32 op, u32 a, u32 b, u64 value, u64 at, int error)
{
	u32 cpu = domain & CONTROL_LOCKED ? domain & ~CONTROL_LOCKED : domain < TIERCE_CPUS ? domain : S.shared_timer;
	if (!error)
		looks_again(cpu);
	cpu_compare(cpu, now, 0);
	port_trace(TIERCE_EV_control, cpu, op, a, (u64)error, now);
	port_record(op, a, b, value, at, (u64)error, cpu_at(cpu)->drained);
	unlock(cpu);
}

TIERCE_FN int graph_attach(u32 edge, u64 now)
{
	u64 at = now;
	u32 domain;
	int error;
	if (!edge_exists(edge) || !edge_at(edge)->parent)
		return TIERCE_E_no_such_edge;
	if (edge_at(edge)->flags & EDGE_ATTACHED)
		return TIERCE_E_already_attached;
	domain = edge_domain(edge);
	if (domain == TIERCE_NODOMAIN)
		return TIERCE_E_parent_unattached;
	now = control_enter(domain, now);
	error = edge_link(edge, now);
	control_leave(domain, now, TIERCE_OP_attach, edge, 0, 0, at, error);
	return error;
}

TIERCE_FN int graph_root(u32 cpu, u32 node, u64 now)
{
	u64 at = now;
	u32 edge;
	int error;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	if (!node_exists(node))
		return TIERCE_E_no_such_node;
	if (cpu_at(cpu)->root_edge)
		return TIERCE_E_cpu_has_root;
	edge = edge_take(TIERCE_NONE, node, 0, 0);
	if (!edge)
		return TIERCE_E_out_of_edges;
	edge_at(edge)->cpu = cpu;
	now = control_enter(cpu, now);
	error = edge_link(edge, now);
	if (error)
		edge_give_back(edge);
	else
		cpu_at(cpu)->root_edge = edge;
	control_leave(cpu, now, TIERCE_OP_root, cpu, node, 0, at, error);
	return error;
}

TIERCE_FN int graph_set(u32 edge, u64 now)
{
	u64 at = now;
	edge_t *x = edge_at(edge);
	u32 domain, was, order;
	int error;
	if (!edge_exists(edge) || !x->parent || !(x->flags & EDGE_ATTACHED))
		return TIERCE_E_no_such_edge;
	if (!stage_fits_edge(parent_of(edge)->kind))
		return TIERCE_E_parameter_out_of_range;
	domain = control_domain(edge);
	now = control_enter(domain, now);
	was = x->state;
	order = was == TIERCE_READY ? link_at(edge)->rank : 0;
	if (order)
		edge_leaves(edge, TIERCE_MOVED, now);
	error = policy_set(edge, now);
	if (order) {
		edge_asks(edge, TIERCE_RESTORED, now);
		edge_spent_changed(edge, now);
	}
	node_reordered(x->parent, now);
	if (was != TIERCE_WAITING)
		deadline_follow(edge, now);
	control_leave(domain, now, TIERCE_OP_set, edge, 0, 0, at, error);
	return error;
}

TIERCE_FN int graph_node_set(u32 node, u64 now)
{
	u64 at = now;
	u32 domain;
	if (!node_exists(node) || node_at(node)->kind == TIERCE_TASK)
		return TIERCE_E_no_such_node;
	if (!stage_fits_node(node_at(node)->kind))
		return TIERCE_E_parameter_out_of_range;
	if ((node_children(node) || node_is_one_of_several(node)) && !stage_keeps_choices(node))
		return TIERCE_E_still_in_use;
	domain = node_at(node)->domain;
	if (domain == TIERCE_NODOMAIN) { /* nobody runs it yet */
		node_params_take(node);
		port_record(TIERCE_OP_node_set, node, 0, 0, now, TIERCE_OK, 0);
		return TIERCE_OK;
	}
	now = control_enter(domain, now);
	node_params_take(node);
	node_reordered(node, now);
	control_leave(domain, now, TIERCE_OP_node_set, node, 0, 0, at, TIERCE_OK);
	return TIERCE_OK;
}

/* Take a WAITING or READY edge out. */
static inline void edge_unlink(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 child = x->child, other = node_at(child)->first_parent;
	edge_release(edge, TIERCE_GONE, now);
	if (x->parent) {
		policy_detach(edge);
		if (x->flags & EDGE_SPREAD)
			AT(S.family, parent_of(edge)->family).tasks--;
		else
			node_at(x->parent)->children--;
	} else {
		cpu_at(x->cpu)->root_edge = TIERCE_NONE;
	}
	if (other == edge)
		node_at(child)->first_parent = x->next_parent;
	while (other && other != edge && CAN_LOOP) {
		if (edge_at(other)->next_parent == edge)
			edge_at(other)->next_parent = x->next_parent;
		other = edge_at(other)->next_parent;
	}
	if (x->flags & EDGE_CROSSING) {
		AT(cpu_at(x->cpu)->crossing, x->bit) = TIERCE_NONE;
		cpu_at(x->cpu)->crossings--;
		if (node_at(child)->claim_edge == edge) {
			node_at(child)->claim_edge = TIERCE_NONE;
			node_at(child)->claim_kept = 0;
			cpu_at(x->cpu)->claims--;
		}
	}
	if (!node_at(child)->first_parent) { /* it is on its own again, and may be attached elsewhere */
		if (node_at(child)->row) {
			AT(S.spare_row, S.spare_rows++) = node_at(child)->row;
			node_at(child)->row = 0;
		}
		if (node_at(child)->family) {
			AT(AT(S.family, node_at(child)->family).replica, node_at(child)->domain) = TIERCE_NONE;
			AT(S.family, node_at(child)->family).cpus &= ~(1ull << node_at(child)->domain);
		}
		node_at(child)->domain = TIERCE_NODOMAIN;
		node_at(child)->cpus = 0;
		node_at(child)->level = 0;
		node_at(child)->able = 0;
		node_at(child)->conditional = 0;
		node_at(child)->ranked = 0;
	} else if (node_at(child)->conditional) {
		edges_condition(child, now);
	}
	edges_plain(child);
	edge_give_back(edge);
}

TIERCE_FN int graph_detach(u32 edge, u64 now)
{
	u64 at = now;
	edge_t *x = edge_at(edge);
	u32 domain, child;
	int error = TIERCE_OK;
	if (!edge_exists(edge))
		return TIERCE_E_no_such_edge;
	if (!(x->flags & EDGE_ATTACHED)) {
		edge_give_back(edge);
		port_record(TIERCE_OP_detach, edge, 0, 0, at, TIERCE_OK, 0);
		return TIERCE_OK;
	}
	child = x->child;
	if (node_at(child)->first_parent == edge && !x->next_parent && node_children(child))
		return TIERCE_E_still_in_use;
	domain = control_domain(edge);
	now = control_enter(domain, now);
	if (x->state == TIERCE_GRANTED || ((x->flags & EDGE_CROSSING) && cpu_at(x->cpu)->leaves)) {
		x->flags |= EDGE_SHUT; /* the next decision leaves it */
		x->told = TIERCE_UNTOLD;
		edge_release(edge, TIERCE_GONE, now);
		kick(x->state == TIERCE_GRANTED ? x->on_cpu : x->cpu);
		error = TIERCE_E_still_running;
	} else {
		edge_unlink(edge, now);
	}
	control_leave(domain, now, TIERCE_OP_detach, edge, 0, 0, at, error);
	return error;
}

TIERCE_FN int graph_allow(u32 task, u64 cpus, u64 now)
{
	u64 at = now;
	node_t *n = node_at(task);
	u32 edge, domain;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	if (SEVERAL_CPUS && n->first_parent && (edge_at(n->first_parent)->flags & EDGE_SPREAD)) {
		if (!(cpus & AT(S.family, parent_of(n->first_parent)->family).cpus))
			return TIERCE_E_cpu_not_allowed;
		domain = control_domain(n->first_parent); /* where it is, the port sees: it is not moved here */
		now = control_enter(domain, now);
		n->allowed = cpus;
		control_leave(domain, now, TIERCE_OP_allow, task, 0, cpus, at, TIERCE_OK);
		return TIERCE_OK;
	}
	domain = n->domain;
	if (domain < TIERCE_CPUS && !(cpus >> domain & 1))
		return TIERCE_E_cpu_not_allowed;
	if (domain == TIERCE_SHARED && !(cpus & n->cpus))
		return TIERCE_E_cpu_not_allowed;
	for (edge = n->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		u64 reach = edge_at(edge)->parent ? parent_of(edge)->cpus : ~0ull;
		if ((edge_at(edge)->flags & EDGE_CROSSING) && !(cpus >> edge_at(edge)->cpu & 1))
			return TIERCE_E_cpu_not_allowed;
		if (!(cpus & reach))
			return TIERCE_E_cpu_not_allowed;
		if (edge_at(edge)->parent && parent_of(edge)->domain == TIERCE_SHARED && (cpus & reach) != reach &&
		    node_is_inner(edge_at(edge)->parent))
			return TIERCE_E_affinity_below_inner_node;
	}
	now = control_enter(domain, now);
	n->allowed = cpus;
	for (edge = n->first_parent; edge && domain == TIERCE_SHARED && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		edge_t *x = edge_at(edge);
		u64 reach;
		bool ordered = link_at(edge)->rank != 0;
		if (!x->parent || parent_of(edge)->domain != TIERCE_SHARED)
			continue;
		reach = parent_of(edge)->cpus;
		if (ordered)
			edge_leaves(edge, TIERCE_MOVED, now);
		x->flags &= ~EDGE_LOCAL;
		x->cpu = TIERCE_CPUS;
		if ((cpus & reach) != reach) {
			x->flags |= EDGE_LOCAL;
			x->cpu = cpus_lowest(cpus & reach);
		}
		if (ordered) {
			edge_asks(edge, TIERCE_RESTORED, now);
			edge_spent_changed(edge, now); /* a reserve may have ended meanwhile */
		}
		work_push(x->parent);
		if (x->state == TIERCE_GRANTED && !(cpus >> x->on_cpu & 1))
			kick(x->on_cpu);
	}
	control_leave(domain, now, TIERCE_OP_allow, task, 0, cpus, at, TIERCE_OK);
	return TIERCE_OK;
}

/* All CPUs are locked, so that every entry knows which of them serves the shared events. */
TIERCE_FN int graph_online(u32 cpu, u32 online, u64 now)
{
	u32 lowest, bit, other;
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	for (other = 0; other < TIERCE_CPUS; other++) /* not CAN_LOOP here and below: what is locked is unlocked */
		if (other < S.cpus)
			port_lock(other);
	now = cpu_advance(cpu, 0, now, 0);
	shared_lock(cpu);
	cpu_at(cpu)->online = online;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++)
		if (AT(cpu_at(cpu)->crossing, bit))
			work_push(edge_at(AT(cpu_at(cpu)->crossing, bit))->child);
	for (lowest = ZERO; lowest + 1 < S.cpus && CAN_LOOP; lowest++)
		if (cpu_at(lowest)->online)
			break;
	S.shared_timer = lowest;
	S.shared_until_ns = TIERCE_NEVER; /* kicks the one that serves them now */
	cpu_settle(cpu, now);
	kick(cpu);
	port_record(TIERCE_OP_online, cpu, online, 0, at, TIERCE_OK, cpu_at(cpu)->drained);
	cpu_at(cpu)->shares = 0;
	shared_unlock();
	for (other = 0; other < TIERCE_CPUS; other++)
		if (other < S.cpus)
			cpu_unlock(other);
	return TIERCE_OK;
}
