/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The graph engine: requests travel upwards, decisions downwards.
 *
 * Upwards. When a task becomes able to use a CPU, its parent edges are requested; a node that has gained its first
 * servable edge is able in turn, and so on to the root (settle_works). Where the child is shared by several CPUs (a
 * head), its parents are told instead: a bit in each CPU's inbox and a kick (head_settle).
 *
 * Downwards. walk() asks each policy from the root for its pick and ends at a task; commit() revokes what is no longer on
 * the path and grants what is new. Nothing else changes what a CPU runs.
 *
 * Every entry: lock, charge, inbox, due events, the operation, compare or decide, unlock. An entry that has locked the
 * shared domain keeps it until it ends.
 *
 * Heads (nodes and tasks with parents in several domains, roots of several CPUs) keep per CPU: nothing, an edge that
 * holds a place, or a place that is being left. A place is free again only when the port says that the task is off the
 * CPU (graph_returned), so nothing ever runs twice. One CPU at a time may claim a place by rank; the freed place is kept
 * for it. The protocol is explored exhaustively by the project's model tests.
 */
#include "service.h"
#include "defaults.h"
#include "heap.c"
#define TIERCE_POLICY_BODIES
#include "policies.h"

/* ---- dispatch: one switch per operation, generated from the list ------------------------------------------------ */

#define DISPATCH(number, prefix, call) \
	case number: call; break;

static inline void policy_request(u32 edge, u32 why, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_request(edge, why, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline void policy_release(u32 edge, u32 why, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_release(edge, why, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline u32 policy_pick(u32 node, u32 first, u32 running, u64 now)
{
	u32 edge = TIERCE_NONE;
	switch (S.node[node].kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, edge = prefix##_pick(node, first, running, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return edge;
}
static inline bool policy_before(u32 a, u32 b, u64 now)
{
	bool before = false;
	switch (parent_of(a)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, before = prefix##_before(a, b, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return before;
}
static inline void policy_grant(u32 edge, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_grant(edge, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline void policy_revoke(u32 edge, u32 why, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_revoke(edge, why, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline void policy_charge(u32 edge, u64 ran_ns, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_charge(edge, ran_ns, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline u64 policy_until(u32 edge, u64 now)
{
	u64 until = TIERCE_NEVER;
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, until = prefix##_until(edge, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return until;
}
static inline void policy_event(u32 edge, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_event(edge, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline void policy_announce(u32 edge, u64 deadline_ns, u64 now)
{
	switch (parent_of(edge)->kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, prefix##_announce(edge, deadline_ns, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
}
static inline u64 policy_deadline(u32 node, u64 now)
{
	u64 deadline = TIERCE_NEVER;
	switch (S.node[node].kind) {
#define P(number, prefix, name, flags, np, ep) DISPATCH(number, prefix, deadline = prefix##_deadline(node, now))
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return deadline;
}
static inline u32 policy_flags(u32 kind)
{
	switch (kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: return flags;
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return 0;
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

static inline void shared_lock(u32 cpu)
{
	if (!S.cpu[cpu].shares) {
		port_lock(TIERCE_SHARED);
		S.cpu[cpu].shares = 1;
	}
}

static inline void kick(u32 cpu)
{
	S.cpu[cpu].kick_pending = 1;
	port_kick(cpu);
}

/* Shared events are served by one CPU; when its timer is too late for the first of them, it decides again. */
static inline void shared_unlock(void)
{
	u32 link = S.domain[TIERCE_SHARED].events;
	if (link && S.link[link].key < S.shared_until_ns) {
		S.shared_until_ns = S.link[link].key;
		kick(S.shared_timer);
	}
	port_unlock(TIERCE_SHARED);
}

static inline void unlock(u32 cpu)
{
	if (S.cpu[cpu].shares) {
		S.cpu[cpu].shares = 0;
		shared_unlock();
	}
	port_unlock(cpu);
}

/* ---- upwards: who could use a CPU ------------------------------------------------------------------------------- */

static inline bool node_is_able(u32 node)
{
	return S.node[node].servable != 0;
}

static inline void work_push(u32 node)
{
	u32 domain = S.node[node].domain, works = S.domain[domain].works;
	if (works >= 60) {
		port_fail("graph: more than 60 nodes change at once");
		return;
	}
	S.domain[domain].work[works] = node;
	S.domain[domain].works = works + 1;
}

/* Does the parent count this edge among those that could use a CPU? */
static inline bool edge_is_servable(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_WAITING || (x->flags & (EDGE_SPENT | EDGE_SHUT | EDGE_LEFT)))
		return false;
	if (x->state == TIERCE_READY)
		return true;
	return x->flags & EDGE_HEAD ? x->told : node_is_able(x->child);
}

/* A child came or was ordered anew below a shared node that runs another one on a CPU: does that have to decide, or to set
 * its timer earlier? (In a CPU's own tree the comparison at the end of the entry finds out.) */
static inline bool running_yields(u32 node, u32 first, u32 running, u32 cpu, u64 now)
{
	return (first && policy_pick(node, first, running, now) != running) || policy_until(running, now) < S.cpu[cpu].armed_ns;
}
static inline void inner_preempt(u32 node, u64 now)
{
	u32 running = S.node[node].running;
	if (running && !(S.edge[running].flags & EDGE_LEFT) &&
	    running_yields(node, S.node[node].order, running, S.edge[running].on_cpu, now))
		kick(S.edge[running].on_cpu);
}
static inline void node_reordered(u32 node, u64 now)
{
	if (S.node[node].row)
		work_push(node);
	else if (S.node[node].domain == TIERCE_SHARED)
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
		if (!S.node[parent].servable++)
			work_push(parent);
		else
			node_reordered(parent, now);
	} else if (!--S.node[parent].servable) {
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
		u32 edge = S.node[node].first_parent, up = TIERCE_NONE;
		S.node[node].deadline_ns = deadline_ns;
		while (edge && CAN_LOOP) {
			edge_t *x = edge_at(edge);
			u32 parent = x->parent;
			/* a parent in another domain learns it with the next request */
			if (parent && S.node[parent].heeds && S.node[parent].domain == S.node[node].domain) {
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
		if (deadline_ns == S.node[up].deadline_ns)
			return 0;
		node = up;
	}
	return 0;
}

/* After an edge of an edf node came, went or changed. */
static inline void deadline_follow(u32 edge, u64 now)
{
	u32 parent = S.edge[edge].parent;
	if (parent && S.node[parent].heeds) {
		u64 deadline_ns = policy_deadline(parent, now);
		if (deadline_ns != S.node[parent].deadline_ns)
			deadline_spread(parent, deadline_ns, now);
	}
}

/* The child can use a CPU through this edge, which therefore is requested. */
static inline void edge_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_WAITING && !(x->flags & EDGE_SHUT)) {
		x->state = TIERCE_READY;
		if (x->parent)
			policy_request(edge, why, now);
	}
	edge_count(edge, now);
	deadline_follow(edge, now);
}

/* It no longer can. A granted edge stays granted until the CPU's decision leaves it. */
static inline void edge_release(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_READY) {
		if (x->parent)
			policy_release(edge, why, now);
		x->state = TIERCE_WAITING;
	}
	edge_count(edge, now);
	deadline_follow(edge, now);
}

/* Does the CPU hold a place of this head that nobody claims? */
static inline bool head_keeps(u32 head, u32 cpu)
{
	node_t *node = node_at(head);
	if (S.row[node->row].hold[cpu] != TIERCE_HOLD_EDGE)
		return false;
	return !(node->claim_edge && !node->claim_kept && node->claim_victim == cpu);
}

/* Places left for `cpu` (TIERCE_CPUS: for anybody). */
static inline s32 head_room(u32 head, u32 cpu)
{
	node_t *node = node_at(head);
	u32 limit = node->concurrency < node->servable ? node->concurrency : node->servable;
	s32 room = (s32)limit - (s32)node->holds;
	if (node->claim_kept && S.edge[node->claim_edge].cpu != cpu)
		return 0; /* the claimant goes first: the child it came for must not be taken instead of the place */
	return room;
}

/* First READY child that `cpu` may run. */
static inline u32 node_first(u32 node, u32 cpu, u64 now)
{
	u32 row = S.node[node].row, first = S.node[node].order, local;
	if (!row)
		return first;
	local = S.row[row].order[cpu];
	if (!first || !local)
		return first | local;
	return policy_before(local, first, now) ? local : first;
}

static inline bool head_has_child(u32 head, u32 cpu)
{
	if (S.node[head].kind == TIERCE_TASK)
		return S.node[head].servable && !S.node[head].holds && (S.node[head].allowed >> cpu & 1);
	return S.node[head].order || S.row[S.node[head].row].order[cpu];
}

/* The CPU with the lowest rank among those that hold a place, TIERCE_CPUS if none. */
static inline u32 head_lowest(u32 head)
{
	u32 row = S.node[head].row, lowest = TIERCE_CPUS, cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		if (S.row[row].hold[cpu] != TIERCE_HOLD_EDGE)
			continue;
		if (lowest == TIERCE_CPUS || S.edge[S.row[row].edge[cpu]].rank < S.edge[S.row[row].edge[lowest]].rank)
			lowest = cpu;
	}
	return lowest;
}

static inline bool head_outranks(u32 head, u32 edge, u32 cpu)
{
	u32 lowest, running;
	if (S.node[head].claim_edge || head_room(head, cpu) > 0 || !S.node[head].servable)
		return false;
	if (S.node[head].kind == TIERCE_TASK && !(S.node[head].allowed >> cpu & 1))
		return false;
	lowest = head_lowest(head);
	if (lowest == TIERCE_CPUS || lowest == cpu || S.edge[edge].rank <= S.edge[S.row[S.node[head].row].edge[lowest]].rank)
		return false;
	/* the place is of use only with a child that may run here: one that waits, or the one that runs there */
	running = S.row[S.node[head].row].running[lowest];
	return S.node[head].kind == TIERCE_TASK || head_has_child(head, cpu) ||
	       (running && !(S.edge[running].flags & EDGE_LOCAL));
}

/* Would a CPU that is offered to this untold parent edge be put to use? */
static inline bool head_wins(u32 head, u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(head);
	u32 cpu = x->cpu;
	if (x->flags & EDGE_CROSSING) {
		if (!S.cpu[cpu].online)
			return false;
		/* with several edges on one CPU: a place won by rank is not lost again to an edge of lower rank beside it */
		if (head_keeps(head, cpu))
			return x->rank >= S.edge[S.row[node->row].edge[cpu]].rank;
		if (node->claim_kept && node->claim_edge != edge && S.edge[node->claim_edge].cpu == cpu)
			return false;
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return true;
		return head_outranks(head, edge, cpu);
	}
	/* the parent is a shared node itself: any of its CPUs may come */
	return head_room(head, TIERCE_CPUS) > 0 && S.node[head].servable;
}

/* After every change to a head: tell each parent edge that would win now. Under the shared lock. Returns how many CPUs
 * were told and have yet to look. */
TIERCE_FN u32 head_settle(u32 head, u64 now)
{
	u32 edge = S.node[head].first_parent, asked = ZERO;
	while (edge && CAN_LOOP) {
		edge_t *x = edge_at(edge);
		if ((x->flags & (EDGE_ATTACHED | EDGE_SHUT)) == EDGE_ATTACHED && !x->told && head_wins(head, edge)) {
			x->told = TIERCE_TOLD;
			if (x->flags & EDGE_CROSSING) {
				port_inbox_set(x->cpu, 1ull << x->bit);
				kick(x->cpu);
			} else {
				edge_request(edge, TIERCE_WOKE, now);
			}
		}
		if ((x->flags & EDGE_CROSSING) && (S.inbox[x->cpu].bits >> x->bit & 1))
			asked++;
		edge = x->next_parent;
	}
	return asked;
}

/* The CPU gives its place back. */
TIERCE_FN int head_free(u32 head, u32 cpu, u64 now)
{
	node_t *node = node_at(head);
	if (S.row[node->row].hold[cpu] == TIERCE_HOLD_FREE)
		return 0;
	S.row[node->row].hold[cpu] = TIERCE_HOLD_FREE;
	node->holds--;
	if (node->claim_edge && !node->claim_kept && node->claim_victim == cpu) {
		u32 claimant = node->claim_edge;
		if (head_room(head, S.edge[claimant].cpu) > 0) {
			node->claim_kept = 1;
			S.edge[claimant].told = TIERCE_TOLD;
			S.edge[claimant].restore = 1;
			port_inbox_set(S.edge[claimant].cpu, 1ull << S.edge[claimant].bit);
			kick(S.edge[claimant].cpu);
		} else {
			node->claim_edge = TIERCE_NONE;
			S.cpu[S.edge[claimant].cpu].claims--; /* counted under the shared lock */
		}
	}
	work_push(head);
	return 0;
}

/* A shared child has come and nobody is asked to take it: the CPU whose running child it outranks most decides again. */
static inline void head_preempt(u32 head, u64 now)
{
	u32 row = S.node[head].row, first = S.node[head].order, victim = TIERCE_CPUS, cpu, running;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		running = S.row[row].running[cpu];
		if (!running || S.row[row].hold[cpu] != TIERCE_HOLD_EDGE)
			continue;
		if (running_yields(head, S.row[row].order[cpu], running, cpu, now))
			kick(cpu);
		if (!first || policy_pick(head, first, running, now) == running)
			continue;
		if (victim == TIERCE_CPUS || policy_before(S.row[row].running[victim], running, now))
			victim = cpu;
	}
	if (victim != TIERCE_CPUS)
		kick(victim);
}

#define CLIMBED_TO_TOP 0xffffffff

/* Carry a changed ability upwards while there is one way up; a node with several parents is left to settle_works.
 * Returns the node at which it ended because its ability did not change, CLIMBED_TO_TOP, or 0. */
static inline u32 climb(u32 node, u64 now)
{
	u32 level;
	for (level = ZERO; level < TIERCE_PATH && CAN_LOOP; level++) {
		node_t *n = node_at(node);
		u32 able = n->servable != 0, edge = n->first_parent;
		edge_t *x = edge_at(edge);
		if (!edge || n->row || n->conditional || x->next_parent) {
			work_push(node);
			return 0;
		}
		if (able == n->able)
			return 0;
		n->able = able;
		if (able && x->state == TIERCE_WAITING && !(x->flags & EDGE_SHUT)) {
			x->state = TIERCE_READY;
			if (x->parent)
				policy_request(edge, TIERCE_WOKE, now);
		} else if (!able && x->state == TIERCE_READY) {
			if (x->parent)
				policy_release(edge, TIERCE_BLOCKED, now);
			x->state = TIERCE_WAITING;
		}
		able = edge_is_servable(edge);
		if (able == !!(x->flags & EDGE_COUNTED))
			return 0;
		x->flags ^= EDGE_COUNTED;
		deadline_follow(edge, now);
		node = x->parent;
		if (!node)
			return CLIMBED_TO_TOP;
		if (able ? S.node[node].servable++ : --S.node[node].servable) {
			node_reordered(node, now);
			return node;
		}
	}
	return 0;
}

TIERCE_FN int edges_condition(u32 node, u64 now);

/* Carry changed abilities upwards until nothing changes. The domain of the nodes pushed is locked. */
TIERCE_FN int settle_works(u32 domain, u64 now)
{
	while (S.domain[domain].works && CAN_LOOP) {
		u32 node = S.domain[domain].work[--S.domain[domain].works], edge;
		node_t *n = node_at(node);
		bool able = node_is_able(node);
		if (n->heeds && n->deadline_ns != policy_deadline(node, now))
			deadline_spread(node, policy_deadline(node, now), now);
		if (n->row) { /* a head tells, it does not request */
			n->able = able;
			if (!head_settle(node, now) && able && n->kind != TIERCE_TASK)
				head_preempt(node, now);
			for (edge = n->first_parent; edge && !able && CAN_LOOP; edge = S.edge[edge].next_parent) {
				if (S.edge[edge].flags & EDGE_CROSSING)
					continue; /* its CPU finds out when it picks the edge */
				S.edge[edge].told = TIERCE_UNTOLD;
				edge_release(edge, TIERCE_BLOCKED, now);
			}
			continue;
		}
		if (able == n->able)
			continue;
		edge = n->first_parent;
		if (edge && !n->conditional && !S.edge[edge].next_parent) {
			climb(node, now);
			continue;
		}
		n->able = able;
		for (; edge && CAN_LOOP; edge = S.edge[edge].next_parent) {
			if (!(S.edge[edge].flags & EDGE_ATTACHED))
				continue;
			if (able)
				edge_request(edge, TIERCE_WOKE, now);
			else
				edge_release(edge, TIERCE_BLOCKED, now);
		}
		if (able && n->conditional) /* a request may have found its budget spent */
			edges_condition(node, now);
	}
	if (S.domain[domain].works)
		port_fail("graph: changes did not settle");
	return 0;
}

/* `when = "spent"` edges of a node follow its unconditional ones. */
TIERCE_FN int edges_condition(u32 node, u64 now)
{
	u32 edge, spent = 1;
	for (edge = S.node[node].first_parent; edge && CAN_LOOP; edge = S.edge[edge].next_parent)
		if (!(S.edge[edge].flags & (EDGE_WHEN_SPENT | EDGE_SPENT)))
			spent = 0;
	for (edge = S.node[node].first_parent; edge && CAN_LOOP; edge = S.edge[edge].next_parent) {
		if (!(S.edge[edge].flags & EDGE_WHEN_SPENT))
			continue;
		if (spent) {
			S.edge[edge].flags &= ~EDGE_SHUT;
			if (S.node[node].able)
				edge_request(edge, TIERCE_WOKE, now);
		} else {
			S.edge[edge].flags |= EDGE_SHUT;
			edge_release(edge, TIERCE_CLOSED, now);
		}
	}
	return 0;
}

/* After a policy may have set or cleared EDGE_SPENT. */
static inline void edge_spent_changed(u32 edge, u64 now)
{
	edge_count(edge, now);
	deadline_follow(edge, now);
	if (S.node[S.edge[edge].child].conditional)
		edges_condition(S.edge[edge].child, now);
}

/* ---- charging --------------------------------------------------------------------------------------------------- */

/* What the CPU runs, if it is below a shared node, is read and changed under the shared lock only. */
static inline void path_lock(u32 cpu)
{
	u32 i;
	for (i = ZERO; i < TIERCE_PATH && i < S.cpu[cpu].path_length && !S.cpu[cpu].shares && CAN_LOOP; i++)
		if (S.edge[S.cpu[cpu].path[i]].flags & EDGE_HEAD)
			shared_lock(cpu);
}

/* What the port has found stolen since it was asked last. For a replay it comes before the entry that it belongs to. */
static inline u64 taken_since(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u64 taken_ns = c->taken_ns - c->told_ns;
	if (taken_ns) {
		c->told_ns += taken_ns;
		port_record(TIERCE_OP_taken, cpu, 0, taken_ns, now, 0, 0);
	}
	return taken_ns;
}

TIERCE_FN int path_charge(u32 cpu, u64 now, u64 stolen_ns)
{
	cpu_t *c = &S.cpu[cpu];
	u64 elapsed = now - c->charged_ns, ran;
	u32 i, length = c->path_length;
	path_lock(cpu);
	if (!elapsed)
		return 0;
	stolen_ns += taken_since(cpu, now);
	if (c->outside || stolen_ns > elapsed)
		stolen_ns = elapsed;
	ran = elapsed - stolen_ns;
	c->charged_ns = now;
	c->stolen_ns += stolen_ns;
	if (stolen_ns)
		port_trace(TIERCE_EV_stolen, cpu, c->task, 0, stolen_ns, now);
	if (!length) {
		c->idle_ns += ran;
		return 0;
	}
	c->used_ns += ran;
	if (!ran)
		return 0;
	if (c->task)
		S.node[c->task].ran_ns += ran;
	for (i = ZERO; i < TIERCE_PATH && i < length && CAN_LOOP; i++) {
		u32 edge = S.cpu[cpu].path[i];
		edge_t *x = edge_at(edge);
		u32 spent = x->flags & EDGE_SPENT;
		x->supply_ns += ran;
		if (!x->parent)
			continue;
		policy_charge(edge, ran, now);
		if ((x->flags & EDGE_SPENT) != spent) {
			edge_spent_changed(edge, now);
			c->until_ns = 0; /* as here and below: compare as a whole */
		}
	}
	if (i < length)
		port_fail("graph: charge did not reach the task");
	return 0;
}

/* ---- entries: what all have in common --------------------------------------------------------------------------- */

/* At most 64 due events of a domain. */
TIERCE_FN int events_due(u32 domain, u64 now)
{
	u32 done = ZERO;
	while (done < TIERCE_EVENTS_MAX && CAN_LOOP) {
		u32 link = S.domain[domain].events, edge = link - TIERCE_EDGES;
		if (!link || S.link[link].key > now)
			break;
		S.domain[domain].events = heap_remove(link, link);
		policy_event(edge, now);
		edge_spent_changed(edge, now);
		done++;
	}
	if (done)
		settle_works(domain, now);
	return (int)done;
}

/* Only for a decision, which a full inbox always has coming: so that it knows which heads it was asked for and declines. */
static inline void inbox_drain(u32 cpu, u64 now)
{
	u64 bits = S.inbox[cpu].bits ? port_inbox_take(cpu) : 0;
	u32 bit;
	S.cpu[cpu].drained = bits;
	if (!bits)
		return;
	shared_lock(cpu); /* what the heads announce is read below */
	for (bit = ZERO; bits && bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		u32 edge = S.cpu[cpu].crossing[bit];
		if (!(bits >> bit & 1) || !edge || !S.edge[edge].told) /* meanwhile it may have been told off */
			continue;
		edge_request(edge, S.edge[edge].restore ? TIERCE_RESTORED : TIERCE_WOKE, now);
		S.edge[edge].restore = 0;
	}
	settle_works(cpu, now);
}

/* Settle everything the operation changed. */
static inline void cpu_settle(u32 cpu, u64 now)
{
	if (S.domain[cpu].works)
		settle_works(cpu, now);
	if (S.cpu[cpu].shares && S.domain[TIERCE_SHARED].works)
		settle_works(TIERCE_SHARED, now);
}

/* Bring the locked domain of a CPU to `now`; returns the time that counts. */
static inline u64 cpu_advance(u32 cpu, u64 now, u64 stolen_ns)
{
	cpu_t *c = &S.cpu[cpu];
	c->entries++;
	if (now < c->charged_ns)
		now = c->charged_ns;
	if (now != c->charged_ns) {
		path_charge(cpu, now, stolen_ns);
		cpu_settle(cpu, now);
	}
	c->drained = 0;
	if (S.domain[cpu].events && S.link[S.domain[cpu].events].key <= now) {
		c->events += (u64)events_due(cpu, now);
		c->until_ns = 0;
	}
	if (cpu == S.shared_timer && S.fresh_row > 1) {
		shared_lock(cpu);
		c->events += (u64)events_due(TIERCE_SHARED, now);
	}
	return now;
}

TIERCE_FN u64 cpu_enter(u32 cpu, u64 now, u64 stolen_ns)
{
	port_lock(cpu);
	return cpu_advance(cpu, now, stolen_ns);
}

/* ---- downwards: the walk ---------------------------------------------------------------------------------------- */

/* The head has no use for this CPU now: told off, released in the tree above. */
static inline void head_drop(u32 edge, u64 now)
{
	S.edge[edge].told = TIERCE_UNTOLD;
	edge_release(edge, TIERCE_NO_ROOM, now);
}

/* The edge granted by `node` on `cpu`, if it may go on running. */
static inline u32 node_running(u32 node, u32 cpu)
{
	u32 row = S.node[node].row, running = row ? S.row[row].running[cpu] : S.node[node].running;
	return running && (S.edge[running].flags & EDGE_COUNTED) && S.edge[running].on_cpu == cpu ? running : TIERCE_NONE;
}

/* May `cpu` go on into the head it reached over `edge`? Otherwise the edge was dropped, and the walk begins again. */
TIERCE_FN int head_enter(u32 edge, u32 cpu, u64 now)
{
	u32 head = S.edge[edge].child;
	node_t *node = node_at(head);
	u32 row = node->row, hold = S.row[row].hold[cpu], victim;
	if (hold == TIERCE_HOLD_EDGE) {
		if (head_keeps(head, cpu) &&
		    (node->kind == TIERCE_TASK ? node->servable : node_running(head, cpu) || head_has_child(head, cpu)))
			return 1;
	} else if (hold == TIERCE_HOLD_FREE) {
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return 1;
		if ((S.edge[edge].flags & EDGE_CROSSING) && head_outranks(head, edge, cpu)) {
			victim = head_lowest(head);
			node->claim_edge = edge;
			node->claim_victim = victim;
			node->claim_kept = 0;
			S.cpu[cpu].claims++;
			kick(victim);
		}
	}
	head_drop(edge, now);
	return 0;
}

/* One try; 0: a shared head had no use for an edge on the way, which was dropped. */
TIERCE_FN int walk_once(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u32 length, edge = c->root_edge, node;
	c->next_length = 0;
	if (!c->online || !edge || !edge_is_servable(edge))
		return 1;
	for (length = ZERO; length < TIERCE_PATH && CAN_LOOP; length++) {
		if (S.edge[edge].flags & EDGE_HEAD) {
			shared_lock(cpu);
			if (!head_enter(edge, cpu, now))
				return 0;
		}
		S.cpu[cpu].next[length] = edge;
		node = S.edge[edge].child;
		if (S.node[node].kind == TIERCE_TASK) {
			c->next_length = length + 1;
			return 1;
		}
		edge = policy_pick(node, node_first(node, cpu, now), node_running(node, cpu), now);
		if (!edge) {
			port_fail("graph: an able node picked nothing");
			return 1;
		}
	}
	port_fail("graph: path longer than the depth allows");
	return 1;
}

/* Fill cpu.next with the path that the policies pick now; 0 length: idle. Leaves the tree as it is, except that edges
 * which shared heads have no use for are dropped. */
TIERCE_FN int walk(u32 cpu, u64 now)
{
	u32 tries;
	for (tries = ZERO; tries <= TIERCE_CROSSINGS + TIERCE_PATH && CAN_LOOP; tries++) {
		if (walk_once(cpu, now))
			return 0;
		cpu_settle(cpu, now);
	}
	port_fail("graph: crossing edges refused for ever");
	S.cpu[cpu].next_length = 0;
	return 0;
}

static inline bool path_same(u32 cpu)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i;
	if (c->path_length != c->next_length)
		return false;
	for (i = c->path_length; i > 0 && CAN_LOOP; i--)
		if (S.cpu[cpu].path[i - 1] != S.cpu[cpu].next[i - 1])
			return false;
	return true;
}

/* A granted edge loses the CPU: back into the order if the child still wants it and may have it, else out. */
TIERCE_FN int edge_revoke(u32 edge, u32 forced, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 why = TIERCE_OUTRANKED, parent = x->parent, row;
	if (!node_is_able(x->child)) {
		why = TIERCE_BLOCKED;
		x->told = TIERCE_UNTOLD;
	} else if ((x->flags & EDGE_HEAD) && !x->told) {
		why = TIERCE_NO_ROOM;
	} else if (x->flags & EDGE_SHUT) {
		why = TIERCE_CLOSED;
	} else if (x->flags & EDGE_SPENT) {
		why = TIERCE_SPENT;
	}
	if (forced)
		why = forced;
	port_trace(TIERCE_EV_revoke, x->on_cpu, edge, why, 0, now);
	x->state = why == TIERCE_OUTRANKED || why == TIERCE_SPENT ? TIERCE_READY : TIERCE_WAITING;
	if (parent) {
		row = S.node[parent].row; /* the node may run another child by now */
		if (row && S.row[row].running[x->on_cpu] == edge)
			S.row[row].running[x->on_cpu] = TIERCE_NONE;
		if (S.node[parent].running == edge)
			S.node[parent].running = TIERCE_NONE;
		policy_revoke(edge, why, now);
	}
	return 0;
}

static inline void edge_grant(u32 edge, u32 cpu, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 parent = x->parent, row;
	port_trace(TIERCE_EV_grant, cpu, edge, x->child, 0, now);
	x->state = TIERCE_GRANTED;
	x->on_cpu = cpu;
	x->grants++;
	if (!parent)
		return;
	order_remove(edge);
	row = S.node[parent].row;
	if (row) {
		S.row[row].running[cpu] = edge;
		if (S.node[parent].order)
			work_push(parent); /* another child is first now: it may outrank what runs elsewhere */
	} else {
		S.node[parent].running = edge;
	}
	policy_grant(edge, now);
}

/* Take the path in cpu.next: revoke what is not on it, bottom up, then grant what is new, top down. */
TIERCE_FN int commit(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i, edge, head, task, taken, same, before = c->task;

	for (same = ZERO; same < TIERCE_PATH && same < c->next_length && same < c->path_length && CAN_LOOP; same++)
		if (S.cpu[cpu].path[same] != S.cpu[cpu].next[same])
			break;
	for (i = same; i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++)
		S.edge[S.cpu[cpu].next[i]].flags |= EDGE_NEXT;
	for (i = c->path_length; i > same && i <= TIERCE_PATH && CAN_LOOP; i--) {
		edge = S.cpu[cpu].path[i - 1];
		if (S.edge[edge].flags & EDGE_NEXT)
			continue;
		head = S.edge[edge].flags & EDGE_HEAD ? S.edge[edge].child : TIERCE_NONE;
		if (head) {
			shared_lock(cpu);
			if (S.row[S.node[head].row].hold[cpu] == TIERCE_HOLD_EDGE && S.row[S.node[head].row].edge[cpu] == edge)
				S.row[S.node[head].row].hold[cpu] = TIERCE_HOLD_LEAVING;
		}
		if (head || (S.edge[edge].parent && S.node[S.edge[edge].parent].domain == TIERCE_SHARED)) {
			if (c->leaves < TIERCE_PATH)
				S.cpu[cpu].leave[c->leaves++] = edge;
			else
				port_fail("graph: left before the last path was returned");
		}
		if (S.edge[edge].parent && S.node[S.edge[edge].parent].domain == TIERCE_SHARED) {
			/* granted until it is returned, but charged no more: the trace is told now */
			S.edge[edge].flags |= EDGE_LEFT;
			port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_OUTRANKED, 0, now);
			edge_count(edge, now);
		} else {
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
	}
	for (i = same; i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++) {
		edge = S.cpu[cpu].next[i];
		S.edge[edge].flags &= ~EDGE_NEXT;
		S.cpu[cpu].path[i] = edge;
		if (S.edge[edge].state != TIERCE_GRANTED)
			edge_grant(edge, cpu, now);
		if (S.edge[edge].flags & EDGE_HEAD) {
			node_t *node;
			row_t *row;
			head = S.edge[edge].child;
			node = node_at(head);
			row = &S.row[node->row];
			taken = row->hold[cpu] == TIERCE_HOLD_FREE;
			node->holds += taken;
			row->hold[cpu] = TIERCE_HOLD_EDGE;
			if (taken || row->edge[cpu] != edge || node->claim_edge == edge) {
				row->edge[cpu] = edge;
				if (node->claim_edge == edge) {
					node->claim_edge = TIERCE_NONE;
					node->claim_kept = 0;
					c->claims--;
				}
				work_push(head);
			}
		}
	}
	c->path_length = c->next_length;
	task = c->path_length ? S.edge[S.cpu[cpu].path[c->path_length - 1]].child : TIERCE_NONE;
	c->task = task;
	if (task != before) {
		port_trace(TIERCE_EV_decision, cpu, task, task ? S.cpu[cpu].path[c->path_length - 1] : 0, before, now);
		if (task) {
			S.node[task].switches++;
			if (S.node[task].last_cpu != cpu && S.node[task].last_cpu != TIERCE_CPUS)
				S.node[task].migrations++;
			S.node[task].last_cpu = cpu;
			S.node[task].on_cpu = cpu;
		}
	}
	return 0;
}

/* The CPU was told of heads that its decision did not take: whom else do their children outrank? */
static inline void told_declined(u32 cpu)
{
	u32 bit, edge;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		edge = S.cpu[cpu].crossing[bit];
		if ((S.cpu[cpu].drained >> bit & 1) && edge &&
		    S.row[S.node[S.edge[edge].child].row].hold[cpu] != TIERCE_HOLD_EDGE)
			work_push(S.edge[edge].child);
	}
}

/* A place that was kept for this CPU and that its decision did not take is given up. */
static inline void claims_drop(u32 cpu, u64 now)
{
	u32 bit, edge, head;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && S.cpu[cpu].claims && CAN_LOOP; bit++) {
		edge = S.cpu[cpu].crossing[bit];
		if (!edge)
			continue;
		shared_lock(cpu);
		head = S.edge[edge].child;
		if (S.node[head].claim_edge != edge || !S.node[head].claim_kept)
			continue;
		S.node[head].claim_edge = TIERCE_NONE;
		S.node[head].claim_kept = 0;
		S.cpu[cpu].claims--;
		work_push(head);
	}
}

/* When the CPU has to be entered again at the latest. */
TIERCE_FN u64 cpu_until(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u64 until = TIERCE_NEVER, at;
	u32 link = S.domain[cpu].events, i;
	if (link)
		until = S.link[link].key;
	if (cpu == S.shared_timer) {
		link = S.domain[TIERCE_SHARED].events;
		at = link ? S.link[link].key : TIERCE_NEVER; /* never: the next one to come kicks this CPU */
		S.shared_until_ns = at;
		until = at < until ? at : until;
	}
	for (i = 1; !c->outside && i < TIERCE_PATH && i < c->path_length && CAN_LOOP; i++) {
		at = policy_until(S.cpu[cpu].path[i], now);
		until = at < until ? at : until;
	}
	return until;
}

/* What the timer has to be set to: an earlier time stays, it only costs an entry that finds nothing to do. A quiet port
 * goes by until_ns. */
static inline void cpu_arm(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	c->until_ns = cpu_until(cpu, now);
	if (S.quiet || c->until_ns < c->armed_ns || c->armed_ns <= now)
		c->armed_ns = c->until_ns;
}

/* The end of an entry that does not decide: kick if a decision would change something. `own`: called on the CPU itself,
 * which then arms its timer on its own. */
TIERCE_FN int cpu_compare(u32 cpu, u64 now, u32 own)
{
	cpu_t *c = &S.cpu[cpu];
	bool same;
	cpu_settle(cpu, now);
	if (S.quiet) {
		kick(cpu);
		return 0;
	}
	if (own && c->armed_ns <= now)
		c->armed_ns = TIERCE_NEVER; /* it fired; a decision that is due sets it again */
	if (c->outside && own)
		cpu_arm(cpu, now); /* its events, the shared ones perhaps, go on */
	if (c->outside || c->asked)
		return 0;
	walk(cpu, now);
	cpu_settle(cpu, now);
	same = path_same(cpu);
	if (same && own)
		cpu_arm(cpu, now);
	else if (same)
		c->until_ns = cpu_until(cpu, now);
	if (!same || c->until_ns < c->armed_ns) {
		c->asked = 1;
		kick(cpu);
	}
	return 0;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

TIERCE_FN u32 graph_decide(u32 cpu, u64 now, u64 stolen_ns)
{
	cpu_t *c;
	u64 at = now;
	u32 task;
	if (cpu >= S.cpus)
		return TIERCE_NONE;
	c = &S.cpu[cpu];
	port_lock(cpu);
	c->kick_pending = 0; /* before the inbox is drained: whoever fills it from now on kicks again */
	c->asked = 0;
	now = cpu_advance(cpu, now, stolen_ns);
	inbox_drain(cpu, now);
	cpu_settle(cpu, now);
	c->decisions++;
	if (c->leaves)
		port_fail("graph: decided before what ran was returned");
	walk(cpu, now);
	cpu_settle(cpu, now);
	if (!path_same(cpu))
		commit(cpu, now);
	cpu_settle(cpu, now);
	if (c->drained)
		told_declined(cpu);
	if (c->claims)
		claims_drop(cpu, now);
	cpu_settle(cpu, now);
	cpu_arm(cpu, now);
	task = c->task;
	port_record(TIERCE_OP_decide, cpu, task, stolen_ns, at, c->until_ns, c->drained);
	unlock(cpu);
	return task;
}

TIERCE_FN int graph_event(u32 cpu, u64 now, u64 stolen_ns)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, stolen_ns);
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_event, cpu, 0, stolen_ns, at, S.cpu[cpu].until_ns, S.cpu[cpu].drained);
	unlock(cpu);
	return TIERCE_OK;
}

TIERCE_FN int graph_outside(u32 cpu, u32 begins, u64 now)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, 0);
	S.cpu[cpu].outside = begins;
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_outside, cpu, begins, 0, at, 0, S.cpu[cpu].drained);
	unlock(cpu);
	return TIERCE_OK;
}

/* The edges that the CPU has left are free for others. */
TIERCE_FN int edges_return(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i, edge;
	for (i = ZERO; i < c->leaves && i < TIERCE_PATH && CAN_LOOP; i++) { /* bottom up, as they were left */
		edge = S.cpu[cpu].leave[i];
		if (S.edge[edge].parent && S.node[S.edge[edge].parent].domain == TIERCE_SHARED &&
		    S.edge[edge].state == TIERCE_GRANTED && S.edge[edge].on_cpu == cpu) {
			S.edge[edge].flags &= ~EDGE_LEFT;
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
		if (S.edge[edge].flags & EDGE_HEAD) {
			u32 head = S.edge[edge].child;
			if (S.row[S.node[head].row].hold[cpu] == TIERCE_HOLD_LEAVING)
				head_free(head, cpu, now);
		}
		/* what is freed above has to know that the child below can be had again: a claim is judged by it */
		if (S.domain[TIERCE_SHARED].works)
			settle_works(TIERCE_SHARED, now);
	}
	c->leaves = 0;
	return 0;
}

TIERCE_FN int graph_returned(u32 cpu, u64 now)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	if (!S.cpu[cpu].leaves)
		return TIERCE_OK;
	now = cpu_enter(cpu, now, 0);
	shared_lock(cpu);
	edges_return(cpu, now);
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_returned, cpu, 0, 0, at, 0, S.cpu[cpu].drained);
	unlock(cpu);
	return TIERCE_OK;
}

/* The CPU whose domain an operation on the task concerns: the one that runs it, or has it in its tree; TIERCE_CPUS: only
 * the shared domain. A task of the shared domain comes and goes under the shared lock, so it is looked at twice. */
static inline u32 task_cpu(u32 task)
{
	u32 domain = S.node[task].domain, cpu = S.node[task].on_cpu;
	if (domain < TIERCE_CPUS)
		return domain;
	return cpu < S.cpus && S.cpu[cpu].task == task ? cpu : TIERCE_CPUS;
}

static inline bool task_exists(u32 task)
{
	return task && task < TIERCE_NODES && S.node[task].kind == TIERCE_TASK && S.node[task].domain != TIERCE_NODOMAIN;
}

TIERCE_FN u32 task_lock(u32 task)
{
	u32 tries, cpu = TIERCE_CPUS;
	for (tries = ZERO; tries < 64 && CAN_LOOP; tries++) {
		cpu = task_cpu(task);
		if (cpu < TIERCE_CPUS)
			port_lock(cpu);
		if (S.node[task].domain == TIERCE_SHARED) {
			if (cpu < TIERCE_CPUS)
				shared_lock(cpu);
			else
				port_lock(TIERCE_SHARED);
		}
		if (cpu == task_cpu(task))
			return cpu;
		if (cpu < TIERCE_CPUS)
			unlock(cpu);
		else
			shared_unlock();
	}
	port_fail("graph: a task would not stay where it is");
	return TIERCE_CPUS + 1;
}

/* A request that ended its climb at `stop` can change this CPU's decision only there: ask that one node, when nothing
 * else has happened since the last decision or comparison. Otherwise compare as a whole. */
static inline void request_compare(u32 cpu, u32 stop, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u32 running;
	if (S.quiet || c->asked || c->outside || c->shares || S.domain[cpu].works || !stop || now >= c->until_ns ||
	    now >= c->armed_ns || (stop != CLIMBED_TO_TOP && S.node[stop].heeds)) {
		cpu_compare(cpu, now, 0);
		return;
	}
	if (stop != CLIMBED_TO_TOP) {
		running = S.node[stop].running;
		if (!running)
			return;
		if (policy_pick(stop, S.node[stop].order, running, now) == running && policy_until(running, now) >= c->armed_ns)
			return;
	}
	c->asked = 1;
	kick(cpu);
}

/* The end of an operation on a task. */
static inline int task_settle(u32 cpu, u64 now)
{
	if (cpu < TIERCE_CPUS)
		return cpu_compare(cpu, now, 0);
	return settle_works(TIERCE_SHARED, now);
}
/* Unlock what task_lock locked, after recording. */
#define TASK_END(op, a, b, value) \
	do { \
		port_record(op, a, b, value, at, 0, cpu < TIERCE_CPUS ? S.cpu[cpu].drained : 0); \
		if (cpu < TIERCE_CPUS) \
			unlock(cpu); \
		else \
			shared_unlock(); \
		return TIERCE_OK; \
	} while (0)

TIERCE_FN int graph_request(u32 task, u32 why, u64 now)
{
	node_t *n;
	u64 at = now;
	u32 cpu, stop = 0;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	n = node_at(task);
	cpu = task_lock(task);
	if (cpu > TIERCE_CPUS)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, now, 0);
	port_trace(TIERCE_EV_request, cpu, task, why, 0, now);
	if (!n->servable) {
		n->servable = 1;
		stop = climb(task, now);
		if (S.domain[n->domain].works)
			settle_works(n->domain, now);
	}
	if (cpu < TIERCE_CPUS)
		request_compare(cpu, stop, now);
	else if (S.domain[TIERCE_SHARED].works)
		settle_works(TIERCE_SHARED, now);
	TASK_END(TIERCE_OP_request, task, why, 0);
}

/* The running task is off the CPU: its path is cut where a node still has something to run. */
TIERCE_FN int path_cut(u32 cpu, u64 now)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i, edge;
	for (i = c->path_length; i > 0 && i <= TIERCE_PATH && CAN_LOOP; i--) {
		edge_t *x = edge_at(S.cpu[cpu].path[i - 1]);
		node_t *child = node_at(x->child);
		edge = S.cpu[cpu].path[i - 1];
		if (child->servable)
			break;
		if (x->flags & EDGE_HEAD)
			x->told = TIERCE_UNTOLD;
		edge_revoke(edge, TIERCE_BLOCKED, now);
		if (x->flags & EDGE_COUNTED) {
			x->flags &= ~EDGE_COUNTED;
			if (x->parent)
				S.node[x->parent].servable--;
		}
		if (child->row || child->conditional || x->next_parent || child->first_parent != edge)
			work_push(x->child); /* its other parents have to know */
		else
			child->able = 0;
		deadline_follow(edge, now);
		if (x->flags & EDGE_HEAD)
			head_free(x->child, cpu, now);
		c->path_length = i - 1;
	}
	return 0;
}

TIERCE_FN int graph_release(u32 task, u32 why, u64 now)
{
	node_t *n;
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	n = node_at(task);
	cpu = task_lock(task);
	if (cpu > TIERCE_CPUS)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, now, 0);
	port_trace(TIERCE_EV_release, cpu, task, why, 0, now);
	if (n->servable) {
		n->servable = 0;
		if (cpu < TIERCE_CPUS && S.cpu[cpu].task == task) {
			S.cpu[cpu].task = TIERCE_NONE;
			n->on_cpu = TIERCE_CPUS;
			path_cut(cpu, now);
			port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, 0, task, now);
			cpu_settle(cpu, now);
			S.cpu[cpu].asked = 1; /* its CPU has to decide in any case */
			kick(cpu);
		} else {
			climb(task, now);
			if (S.domain[n->domain].works)
				settle_works(n->domain, now);
		}
	}
	task_settle(cpu, now);
	TASK_END(TIERCE_OP_release, task, why, 0);
}

TIERCE_FN int graph_announce(u32 task, u64 deadline_ns, u64 now)
{
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu > TIERCE_CPUS)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, now, 0);
	if (S.node[task].deadline_ns != deadline_ns)
		deadline_spread(task, deadline_ns, now);
	task_settle(cpu, now);
	TASK_END(TIERCE_OP_announce, task, 0, deadline_ns);
}
