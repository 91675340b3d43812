/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Edges: made, and linked into the graph, which tells the domain and the level of the child. */

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
	x->promise.end_ns = TIERCE_NEVER;
	x->promise.owed_ns = 0;
	x->promise.base_ns = 0;
	x->promise.stolen_ns = 0;
	x->promise.promised_ns = 0;
	x->promise.received_ns = 0;
	x->promise.missing_ns = 0;
	x->promise.least_ns = TIERCE_NEVER;
	x->promise.windows = 0;
	x->promise.broken = 0;
	x->promise.why = 0;
	x->promise.window_ns = 0;
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

/* The CPUs that it leads to. */
static inline cpus_t edge_reach(u32 edge)
{
	return edge_at(edge)->parent ? reach_of(edge_at(edge)->parent) : cpus_only(edge_at(edge)->cpu);
}

/* After a node has got, lost or changed a parent: which of the edges to it are plain? */
static inline void edges_plain(u32 child)
{
	node_t *n = node_at(child);
	u32 edge = n->first_parent;
	bool plain = edge && !n->row && !n->conditional && !edge_at(edge)->next_parent && !is_shared(n->domain);
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
		if (edge_is_inner(edge))
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
	bool inner = edge_is_inner(edge), shared;
	u32 ranked = n->ranked | (inner && parent_of(edge)->ranked ? RANKED_HERE : 0), other;
	for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent) {
		shared = edge_is_inner(other);
		if (edge_at(other)->rank == x->rank || (shared && inner))
			continue;
		ranked |= shared == inner ? RANKED_HERE : RANKED_BELOW; /* or a claim from who came through a shared node */
	}
	return ranked;
}

/* A row for a node that is shared from now on. */
TIERCE_FN u32 row_new(void)
{
	u32 row = S.spare_rows ? AT(S.spare_row, --S.spare_rows) : S.fresh_row++, cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		ROW(row, order, cpu) = 0;
		ROW(row, running, cpu) = TIERCE_NONE;
		ROW(row, hold, cpu) = TIERCE_HOLD_FREE;
		ROW(row, edge, cpu) = TIERCE_NONE;
	}
	return row;
}

/* Put the edge (root edges: with cpu set) into the graph. Staged parameters are those of the parent's policy. */
TIERCE_FN int edge_link(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 child = x->child, parent = x->parent, domain = edge_domain(edge), other, last = TIERCE_NONE, level, local = 0;
	node_t *n = node_at(child);
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
	/* several domains, or several parents in a shared one, or a root of several CPUs: a head */
	head = n->domain != TIERCE_NODOMAIN && (n->domain != domain || is_shared(domain));
	if (n->family && (head || domain >= TIERCE_CPUS || (replica_on(n->family, domain) && n->domain != domain)))
		return TIERCE_E_replica_needs_one_cpu;
	if (n->first_parent && ((x->flags | edge_at(n->first_parent)->flags) & EDGE_SPREAD))
		return TIERCE_E_spread_task_has_one_parent;
	if ((x->flags & EDGE_SPREAD) && (n->kind != TIERCE_TASK || !parent || !node_at(parent)->family))
		return TIERCE_E_not_a_replica;
	if (head && (n->conditional || (x->flags & EDGE_WHEN_SPENT)))
		return TIERCE_E_condition_across_cpus;
	if (head && ranked & RANKED_HERE && (is_shared(domain) || node_is_inner(child)))
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
		if (!cpus_meet(allowed_of(child),
			       x->flags & EDGE_SPREAD ? family_cpus(node_at(parent)->family) : edge_reach(edge)))
			return TIERCE_E_cpu_not_allowed;
		if (is_shared(domain) && !cpus_within(edge_reach(edge), allowed_of(child))) {
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
		x->cpu = local ? cpus_lowest(allowed_of(child), edge_reach(edge)) : is_shared(domain) ? TIERCE_CPUS : domain;
	}
	/* nothing below can fail */
	if (edge_joins_groups(edge))
		groups_join(edge);
	domain = edge_domain(edge);
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
	reach_add(child, edge_reach(edge));
	n->ranked = ranked;
	if (head && !n->row) {
		n->row = row_new();
		if (n->kind == TIERCE_TASK || n->concurrency == 0)
			n->concurrency = n->kind == TIERCE_TASK ? 1 : TIERCE_CPUS;
		for (other = n->first_parent; other && CAN_LOOP; other = edge_at(other)->next_parent)
			edge_to_head(other, edge_domain(other));
		node_moves(child, shared_by(domain));
	} else if (n->row) {
		edge_to_head(edge, domain);
	} else {
		node_moves(child, domain);
		if (n->family) {
			AT(AT(S.family, n->family).replica, domain) = child;
			family_add(n->family, domain);
		}
	}
	edges_plain(child);
	if (n->row || n->conditional || node_is_able(child))
		work_push(child); /* an able one requests its new edge, or tells it; conditional edges may open or close */
	deadline_follow(edge, now);
	return TIERCE_OK;
}
