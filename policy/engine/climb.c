/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Changed abilities travel upwards until nothing changes: along a single way (climb), or from a list of nodes (settle_works). */

#define CLIMBED_TO_TOP 0xffffffff

/* Carry a changed ability upwards while there is one way up; a node with several parents is left to settle_works.
 * Returns the node at which it ended because its ability did not change, CLIMBED_TO_TOP, or 0. */
TIERCE_FN u32 climb(u32 node, u64 now)
{
	node_t *n = node_at(node);
	u32 level;
	for (level = ZERO; level < TIERCE_PATH && CAN_LOOP; level++) {
		u32 able = n->servable, edge = n->first_parent, flags;
		edge_t *x = edge_at(edge);
		flags = x->flags;
		if (!edge || (!(flags & EDGE_PLAIN) && (n->row || n->conditional || x->next_parent))) {
			work_push(node);
			return 0;
		}
		node = x->parent;
		if (able) {
			if (x->state == TIERCE_WAITING && !(flags & EDGE_SHUT)) {
				x->state = TIERCE_READY;
				edge_asks(edge, TIERCE_WOKE, now);
				flags = x->flags; /* it may be found spent */
			}
			if (x->state == TIERCE_WAITING || (flags & (EDGE_SPENT | EDGE_SHUT | EDGE_LEFT | EDGE_COUNTED)))
				return 0;
			x->flags = flags | EDGE_COUNTED;
		} else {
			if (x->state == TIERCE_READY) {
				edge_leaves(edge, TIERCE_BLOCKED, now);
				x->state = TIERCE_WAITING;
			}
			if (!(flags & EDGE_COUNTED))
				return 0;
			x->flags = flags & ~EDGE_COUNTED;
		}
		if (!node)
			return CLIMBED_TO_TOP;
		n = node_at(node);
		deadline_follow(edge, now);
		if (able ? n->servable++ : --n->servable) {
			if (!(flags & EDGE_PLAIN))
				node_reordered(node, now);
			return node;
		}
	}
	return 0;
}

TIERCE_FN int edge_revoke(u32 edge, u32 forced, u64 now);

/* The same for a request, as far up as the way is plain; where it is not, the node from which to climb on. */
#define CLIMB_ON (1u << 30)
TIERCE_FN u32 climb_plainly(u32 node, u64 now)
{
	node_t *n = node_at(node);
	while (CAN_LOOP) { /* a counted loop is verified anew at each level */
		u32 edge = n->first_parent, flags;
		edge_t *x = edge_at(edge);
		if ((x->flags & (EDGE_PLAIN | EDGE_SHUT | EDGE_COUNTED)) != EDGE_PLAIN || x->state != TIERCE_WAITING)
			return x->child | CLIMB_ON;
		n = node_at(parent_held(x));
		x->state = TIERCE_READY;
		if (!parent_held(x)) {
			x->flags |= EDGE_COUNTED;
			return CLIMBED_TO_TOP;
		}
		policy_request(edge, TIERCE_WOKE, now);
		flags = x->flags;
		if (flags & EDGE_SPENT)
			return 0;
		x->flags = flags | EDGE_COUNTED;
		deadline_follow(edge, now);
		if (n->servable++)
			return x->parent;
	}
	return 0;
}

/* `when = "spent"` edges of a node follow its unconditional ones. */
static inline void edges_condition(u32 node, u64 now)
{
	u32 edge, spent = 1;
	for (edge = node_at(node)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent)
		if (!(edge_at(edge)->flags & (EDGE_WHEN_SPENT | EDGE_SPENT)))
			spent = 0;
	for (edge = node_at(node)->first_parent; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		if (!(edge_at(edge)->flags & EDGE_WHEN_SPENT))
			continue;
		if (spent) {
			edge_at(edge)->flags &= ~EDGE_SHUT;
			if (node_is_able(node))
				edge_request_here(edge, TIERCE_WOKE, now);
		} else {
			edge_at(edge)->flags |= EDGE_SHUT;
			edge_release_here(edge, TIERCE_CLOSED, now);
		}
	}
}

/* Carry changed abilities upwards until nothing changes. The domain of the nodes pushed is locked. */
TIERCE_FN int settle_works(u32 domain, u64 now)
{
	while (domain_at(domain)->works && CAN_LOOP) {
		u32 node = AT(domain_at(domain)->work, --domain_at(domain)->works), edge;
		node_t *n = node_at(node);
		bool able = node_is_able(node), head;
		u32 asked = 0;
		if (policy_heeds_deadlines(n->kind) && n->deadline_ns != policy_deadline(node, now))
			deadline_spread(node, policy_deadline(node, now), now);
		head = SHARES && n->row;
		if (head)
			asked = head_settle(node);
		edge = head && !(asked & HEAD_INNER) ? TIERCE_NONE : n->first_parent;
		for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
			u32 flags = edge_at(edge)->flags;
			if (!(flags & EDGE_ATTACHED) || (head && flags & EDGE_CROSSING))
				continue; /* the CPU of a crossing edge finds out when it picks the edge */
			if (head && able && !edge_at(edge)->told)
				continue; /* a head tells, it does not request */
			if (able) {
				edge_request_here(edge, TIERCE_WOKE, now);
				continue;
			}
			if (head)
				edge_at(edge)->told = TIERCE_UNTOLD;
			edge_release_here(edge, TIERCE_BLOCKED, now);
		}
		if (head && able && !(asked & ~HEAD_INNER) && n->kind != TIERCE_TASK)
			head_preempt(node, now);
		if (!head && n->conditional) /* a request may have found its budget spent */
			edges_condition(node, now);
	}
	if (domain_at(domain)->works)
		port_fail("graph: changes did not settle");
	return 0;
}

/* After a policy may have set or cleared EDGE_SPENT. Edges that are open while it is set follow when the entry settles. */
static inline void edge_spent_changed(u32 edge, u64 now)
{
	edge_count(edge, now);
	deadline_follow(edge, now);
	if (node_at(edge_at(edge)->child)->conditional)
		work_push(edge_at(edge)->child);
}
