/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Heads, nodes with parents in several domains: who holds a place, which CPUs are told of a child that waits. */

/* Does the CPU hold a place of this head that nobody claims? */
static inline bool head_keeps(u32 head, u32 cpu)
{
	node_t *node = node_at(head);
	if (ROW(node->row, hold, cpu) != TIERCE_HOLD_EDGE)
		return false;
	return !(node->claim_edge && !node->claim_kept && node->claim_victim == cpu);
}

/* Places left for `cpu` (TIERCE_CPUS: for anybody). */
static inline s32 head_room(u32 head, u32 cpu)
{
	node_t *node = node_at(head);
	u32 limit = node->concurrency < node->servable ? node->concurrency : node->servable;
	s32 room = (s32)limit - (s32)node->holds;
	if (node->claim_kept && edge_at(node->claim_edge)->cpu != cpu)
		return 0; /* the claimant goes first: the child it came for must not be taken instead of the place */
	return room;
}

/* First READY child that `cpu` may run. */
static inline u32 node_first(u32 node, u32 cpu, u64 now)
{
	u32 row = node_at(node)->row, first = node_at(node)->order, local;
	if (!row)
		return first;
	local = ROW(row, order, cpu);
	if (!first || !local)
		first |= local;
	else if (policy_before(local, first, now))
		first = local;
	return SHARES && first ? node_takes(node, first, cpu, now) : first;
}

static inline bool head_has_child(u32 head, u32 cpu)
{
	if (node_at(head)->kind == TIERCE_TASK)
		return node_at(head)->servable && !node_at(head)->holds && cpus_has(allowed_of(head), cpu);
	return node_at(head)->order || ROW(node_at(head)->row, order, cpu);
}

/* The CPU with the lowest rank among those that hold a place, TIERCE_CPUS if none. */
static inline u32 head_lowest(u32 head)
{
	u32 row = node_at(head)->row, lowest = TIERCE_CPUS, cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		if (ROW(row, hold, cpu) != TIERCE_HOLD_EDGE)
			continue;
		if (lowest == TIERCE_CPUS || edge_at(ROW(row, edge, cpu))->rank < edge_at(ROW(row, edge, lowest))->rank)
			lowest = cpu;
	}
	return lowest;
}

/* The CPU whose place the edge may claim for `cpu`, TIERCE_CPUS if none. */
PORT_ASIDE u32 head_victim(u32 head, u32 edge, u32 cpu)
{
	u32 lowest, running;
	if (!node_at(head)->ranked) /* by no edge of another rank */
		return TIERCE_CPUS;
	if (node_at(head)->claim_edge || head_room(head, cpu) > 0 || !node_at(head)->servable)
		return TIERCE_CPUS;
	if (node_at(head)->kind == TIERCE_TASK && !cpus_has(allowed_of(head), cpu))
		return TIERCE_CPUS;
	lowest = head_lowest(head);
	if (lowest == TIERCE_CPUS || lowest == cpu ||
	    edge_at(edge)->rank <= edge_at(ROW(node_at(head)->row, edge, lowest))->rank)
		return TIERCE_CPUS;
	/* the place is of use only with a child that may run here: one that waits, or the one that runs there */
	running = ROW(node_at(head)->row, running, lowest);
	if (node_at(head)->kind != TIERCE_TASK && !head_has_child(head, cpu) &&
	    !(running && !(edge_at(running)->flags & EDGE_LOCAL)))
		return TIERCE_CPUS;
	return lowest;
}

/* Would a CPU that is offered to this untold parent edge be put to use? */
static inline bool head_wins(u32 head, u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(head);
	u32 cpu = x->cpu;
	if (x->flags & EDGE_CROSSING) {
		if (!cpu_at(cpu)->online)
			return false;
		/* with several edges on one CPU: a place won by rank is not lost again to an edge of lower rank beside it */
		if (head_keeps(head, cpu))
			return x->rank >= edge_at(ROW(node->row, edge, cpu))->rank;
		if (node->claim_kept && node->claim_edge != edge && edge_at(node->claim_edge)->cpu == cpu)
			return false;
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return true;
		return head_victim(head, edge, cpu) != TIERCE_CPUS;
	}
	/* the parent is a shared node itself: any of its CPUs may come */
	return head_room(head, TIERCE_CPUS) > 0 && node_at(head)->servable;
}

/* After every change to a head: tell each parent edge that would win now; those of inner nodes are requested by the caller. Under
 * the shared lock. Returns how many CPUs were told and have yet to look, and HEAD_INNER if there are edges of inner nodes. */
#define HEAD_INNER (1u << 31)
TIERCE_FN u32 head_settle(u32 head)
{
	u32 edge = node_at(head)->first_parent, asked = ZERO;
	while (edge && CAN_LOOP) {
		edge_t *x = edge_at(edge);
		if ((x->flags & (EDGE_ATTACHED | EDGE_SHUT)) == EDGE_ATTACHED && !x->told && head_wins(head, edge)) {
			x->told = TIERCE_TOLD;
			if (x->flags & EDGE_CROSSING) {
				port_inbox_set(x->cpu, 1ull << x->bit);
				kick(x->cpu);
			}
		}
		if (!(x->flags & EDGE_CROSSING))
			asked |= HEAD_INNER;
		else if (AT(S.inbox, x->cpu).bits >> x->bit & 1)
			asked++;
		edge = x->next_parent;
	}
	return asked;
}

/* The CPU gives its place back. */
TIERCE_FN int head_free(u32 head, u32 cpu, u64 now)
{
	node_t *node = node_at(head);
	if (ROW(node->row, hold, cpu) == TIERCE_HOLD_FREE)
		return 0;
	ROW(node->row, hold, cpu) = TIERCE_HOLD_FREE;
	node->holds--;
	if (node->claim_edge && !node->claim_kept && node->claim_victim == cpu) {
		u32 claimant = node->claim_edge;
		if (head_room(head, edge_at(claimant)->cpu) > 0) {
			node->claim_kept = 1;
			edge_at(claimant)->told = TIERCE_TOLD;
			edge_at(claimant)->restore = 1;
			port_inbox_set(edge_at(claimant)->cpu, 1ull << edge_at(claimant)->bit);
			kick(edge_at(claimant)->cpu);
		} else {
			node->claim_edge = TIERCE_NONE;
			cpu_at(edge_at(claimant)->cpu)->claims--; /* counted under the shared lock */
		}
	}
	work_push(head);
	return 0;
}

/* A shared child has come and nobody is asked to take it: the CPU whose running child it outranks most decides again. */
TIERCE_FN int head_preempt(u32 head, u64 now)
{
	u32 row = node_at(head)->row, first = node_at(head)->order, victim = TIERCE_CPUS, next, cpu, running, local;
	for (next = ZERO; next < STATE(cpus) && CAN_LOOP; next++) {
		cpu = HIDDEN(next);
		running = ROW(row, running, cpu);
		if (!running || ROW(row, hold, cpu) != TIERCE_HOLD_EDGE)
			continue;
		local = ROW(row, order, cpu);
		if (running_yields(head, local, running, cpu, now))
			kick(cpu);
		if (!first || policy_pick(head, first, running, now) == running)
			continue;
		if (local && policy_before(local, first, now))
			continue; /* it would look at that one only */
		if (victim == TIERCE_CPUS || policy_before(ROW(row, running, victim), running, now))
			victim = cpu;
	}
	if (victim != TIERCE_CPUS)
		kick(victim);
	return 0;
}
