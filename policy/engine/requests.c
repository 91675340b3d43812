/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Requests travel upwards: which edges are requested, which nodes could use a CPU. */

static inline bool node_is_able(u32 node)
{
	return node_at(node)->servable != 0;
}

static inline void work_push(u32 node)
{
	u32 domain = node_at(node)->domain, works = domain_at(domain)->works;
	if (works >= TIERCE_WORKS) {
		port_fail("graph: too many nodes change at once");
		return;
	}
	AT(domain_at(domain)->work, works) = node;
	domain_at(domain)->works = works + 1;
}

/* Is the edge below a shared node? */
static inline bool edge_is_inner(u32 edge)
{
	return edge_at(edge)->parent && is_shared(parent_of(edge)->domain);
}

/* Is the child of an edge with these flags told, not requested? */
static inline bool edge_is_head(u32 flags)
{
	return SHARES && (flags & EDGE_HEAD);
}

/* Does the parent count this edge among those that could use a CPU? */
static inline bool edge_is_servable(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_WAITING || (x->flags & (EDGE_SPENT | EDGE_SHUT | EDGE_LEFT)))
		return false;
	if (x->state == TIERCE_READY)
		return true;
	return edge_is_head(x->flags) ? x->told : node_is_able(x->child);
}

/* A child came or was ordered anew below a shared node that runs another one on a CPU: does that have to decide, or to set
 * its timer earlier? (In a CPU's own tree the comparison at the end of the entry finds out.) */
static inline bool running_yields(u32 node, u32 first, u32 running, u32 cpu, u64 now)
{
	return (first && policy_pick(node, first, running, now) != running) ||
	       policy_until(running, now) < cpu_at(cpu)->armed_ns;
}
static inline void inner_preempt(u32 node, u64 now)
{
	u32 running = node_at(node)->running;
	if (running && !(edge_at(running)->flags & EDGE_LEFT) &&
	    running_yields(node, node_at(node)->order, running, edge_at(running)->on_cpu, now))
		kick(edge_at(running)->on_cpu);
}
static inline void node_reordered(u32 node, u64 now)
{
	if (!SHARES)
		return;
	if (node_at(node)->row)
		work_push(node);
	else if (is_shared(node_at(node)->domain))
		inner_preempt(node, now);
}

/* After any change of an edge: keep the parent's count, and push the parent when its own ability may have changed. */
TIERCE_FN int edge_count(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	bool servable = edge_is_servable(edge);
	u32 parent = x->parent;
	if (servable == !!(x->flags & EDGE_COUNTED))
		return 0;
	x->flags ^= EDGE_COUNTED;
	if (!parent)
		return 0;
	if (servable) {
		if (!node_at(parent)->servable++)
			work_push(parent);
		else
			node_reordered(parent, now);
	} else if (!--node_at(parent)->servable) {
		work_push(parent);
	} else {
		node_reordered(parent, now);
	}
	return 0;
}

/* The node's earliest deadline may have changed: pass it upwards while somebody heeds it. */
TIERCE_FN int deadline_spread(u32 node, u64 deadline_ns, u64 now)
{
	u32 level;
	for (level = ZERO; level <= TIERCE_DEPTH && CAN_LOOP; level++) {
		u32 edge = node_at(node)->first_parent, up = TIERCE_NONE;
		node_at(node)->deadline_ns = deadline_ns;
		while (edge && CAN_LOOP) {
			edge_t *x = edge_at(edge);
			u32 parent = x->parent;
			/* a parent in another domain learns it with the next request */
			if (policy_heeds_deadlines(x->kind) && node_at(parent)->domain == node_at(node)->domain) {
				policy_announce(edge, deadline_ns, now);
				node_reordered(parent, now);
				if (!up)
					up = parent;
				else
					work_push(parent); /* settle_works goes on from there */
			}
			edge = x->next_parent;
		}
		if (!up)
			return 0;
		deadline_ns = policy_deadline(up, now);
		if (deadline_ns == node_at(up)->deadline_ns)
			return 0;
		node = up;
	}
	return 0;
}

/* After an edge of an edf node came, went or changed: does the node announce another deadline? */
static PORT_APART bool deadline_moves(u32 node, u64 now)
{
	u64 deadline_ns = policy_deadline(node, now);
	if (deadline_ns == node_at(node)->deadline_ns)
		return false;
	deadline_spread(node, deadline_ns, now);
	return true;
}
static inline bool deadline_follow(u32 edge, u64 now)
{
	return policy_heeds_deadlines(edge_at(edge)->kind) && deadline_moves(edge_at(edge)->parent, now);
}

/* The child can use a CPU through this edge, which therefore is requested. */
static inline void edge_request_here(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_WAITING && !(x->flags & EDGE_SHUT)) {
		x->state = TIERCE_READY;
		if (x->parent)
			edge_asks(edge, why, now);
	}
	edge_count(edge, now);
	deadline_follow(edge, now);
}

/* It no longer can. A granted edge stays granted until the CPU's decision leaves it. */
static inline void edge_release_here(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_READY) {
		if (x->parent)
			edge_leaves(edge, why, now);
		x->state = TIERCE_WAITING;
	}
	edge_count(edge, now);
	deadline_follow(edge, now);
}

/* The same as a call of its own; the two above save a frame where the verifier counts them. */
TIERCE_FN int edge_request(u32 edge, u32 why, u64 now)
{
	edge_request_here(edge, why, now);
	return 0;
}
TIERCE_FN int edge_release(u32 edge, u32 why, u64 now)
{
	edge_release_here(edge, why, now);
	return 0;
}
