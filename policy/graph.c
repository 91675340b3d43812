/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The graph engine: requests travel upwards, decisions downwards.
 *
 * Upwards. When a task becomes able to use a CPU, its parent edges are requested; a node that has gained its first
 * servable edge is able in turn, and so on to the root (settle_works). Where the child is shared by several CPUs (a
 * head), its parents are told instead: a bit in each CPU's inbox and a kick (head_settle).
 *
 * Downwards. walk() asks each policy from the root for its pick and ends at a task; commit() revokes what is no longer on
 * the path and grants what is new. Nothing else changes what a CPU runs. When what ran has blocked, and nothing above it
 * is shared, descend() does both in one.
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

#define SHARED_ROWS (SHARES && S.fresh_row > 1) /* and there is a shared node */

/* ---- dispatch: one chain per operation, generated from the list -------------------------------------------------- */

/* CALL(prefix) for the policy of that number. A port that knows which policies its plans use has the others left out: a chain, so
 * that with them go their comparisons. */
#define DISPATCH_CASE(number, prefix, name, flags, np, ep) \
	if (PORT_USES(number) && kind_ == (number)) { \
		CALL(prefix); \
		break; \
	}
#define DISPATCH(kind) \
	do { \
		u32 kind_ = (kind); \
		TIERCE_POLICY_LIST(DISPATCH_CASE, ) \
		PORT_NO_OTHER(); \
	} while (0)

/* What every switch asks each policy on the way: most have less to do than a call costs. */
#define DISPATCHER static inline __attribute__((always_inline))

static inline void policy_request(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_request(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_release(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_release(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
DISPATCHER u32 policy_pick(u32 node, u32 first, u32 running, u64 now)
{
	u32 edge = TIERCE_NONE;
#define CALL(prefix) edge = prefix##_pick(node, first, running, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return edge;
}
static inline bool policy_before(u32 a, u32 b, u64 now)
{
	bool before = false;
#define CALL(prefix) before = prefix##_before(a, b, now)
	DISPATCH(edge_at(a)->kind);
#undef CALL
	return before;
}
static inline void policy_grant(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_grant(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_revoke(u32 edge, u32 why, u64 now)
{
#define CALL(prefix) prefix##_revoke(edge, why, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
/* Revoke and request: its turn is over, and it wants the next one. */
DISPATCHER void policy_return(u32 edge, u64 now)
{
#define CALL(prefix) (prefix##_revoke(edge, TIERCE_BLOCKED, now), prefix##_request(edge, TIERCE_WOKE, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
/* Charge, then revoke: it has blocked. */
DISPATCHER bool policy_leave(u32 edge, u64 ran_ns, u64 now)
{
	bool spent = false;
#define CALL(prefix) (spent = prefix##_charge(edge, ran_ns, now), prefix##_revoke(edge, TIERCE_BLOCKED, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return spent;
}
DISPATCHER bool policy_charge(u32 edge, u64 ran_ns, u64 now)
{
	bool spent = false;
#define CALL(prefix) spent = prefix##_charge(edge, ran_ns, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return spent;
}
static inline bool policy_lose(u32 edge, u64 stolen_ns)
{
	bool pays = false;
#define CALL(prefix) pays = prefix##_lose(edge, stolen_ns)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return pays;
}
/* Grant, then until. */
DISPATCHER u64 policy_begin(u32 edge, u64 now)
{
	u64 until = TIERCE_NEVER;
#define CALL(prefix) (prefix##_grant(edge, now), until = prefix##_until(edge, now))
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return until;
}
DISPATCHER u64 policy_until(u32 edge, u64 now)
{
	u64 until = TIERCE_NEVER;
#define CALL(prefix) until = prefix##_until(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return until;
}
static inline void policy_event(u32 edge, u64 now)
{
#define CALL(prefix) prefix##_event(edge, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline void policy_announce(u32 edge, u64 deadline_ns, u64 now)
{
#define CALL(prefix) prefix##_announce(edge, deadline_ns, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
}
static inline u64 policy_deadline(u32 node, u64 now)
{
	u64 deadline = TIERCE_NEVER;
#define CALL(prefix) deadline = prefix##_deadline(node, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return deadline;
}
static inline int policy_tell(u32 edge, u32 kind, u64 now)
{
	int error = TIERCE_E_not_understood;
#define CALL(prefix) error = prefix##_tell(edge, kind, now)
	DISPATCH(edge_at(edge)->kind);
#undef CALL
	return error;
}
/* Does announce() matter to it? May its nodes be spread? */
#define P(number, prefix, name, flags, np, ep) \
	if (((flags)&FLAG) && PORT_USES(number) && kind == (number)) \
		return true;
#define FLAG TIERCE_HEEDS_DEADLINES
static inline bool policy_heeds_deadlines(u32 kind)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef FLAG
#define FLAG TIERCE_SPREADS
static inline bool policy_spreads(u32 kind)
{
	TIERCE_POLICY_LIST(P, )
	return false;
}
#undef FLAG
#undef P

/* Where it is not done at every switch: one call for all policies, which a verifier looks at once. */
TIERCE_FN int edge_asks(u32 edge, u32 why, u64 now)
{
	policy_request(edge, why, now);
	return 0;
}
TIERCE_FN int edge_leaves(u32 edge, u32 why, u64 now)
{
	policy_release(edge, why, now);
	return 0;
}

/* Which of the children that wait a CPU takes, where several come to the node. */
TIERCE_FN u32 node_takes(u32 node, u32 first, u32 cpu, u64 now)
{
	u32 edge = first;
#define CALL(prefix) edge = prefix##_first(node, first, cpu, now)
	DISPATCH(node_at(node)->kind);
#undef CALL
	return edge;
}

TIERCE_FN int edge_owes(u32 edge, u64 ran_ns, u64 now)
{
	return policy_charge(edge, ran_ns, now);
}

/* ---- locks ------------------------------------------------------------------------------------------------------ */

TIERCE_FN int shared_take(u32 cpu)
{
	port_lock(TIERCE_SHARED);
	cpu_at(cpu)->shares = 1;
	return 0;
}
static inline void shared_lock(u32 cpu)
{
	if (SHARES && !cpu_at(cpu)->shares)
		shared_take(cpu);
}

/* How many tasks wait below a replica; without its lock a guess. */
static inline u32 replica_waits(u32 node)
{
	u32 servable = node_at(node)->servable;
	return servable && node_at(node)->running ? servable - 1 : servable;
}

/* After each decision: is the CPU idle? Its own flag first, others' cache line only when that changes. */
static inline void idle_tell(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	bool idle;
	if (!SPREADS)
		return;
	idle = !c->task && !c->outside && c->online;
	if (!idle && !c->idle)
		return;
	c->idle = idle;
	if (idle && !(S.idle[0] >> (cpu & 63) & 1))
		port_bits_set(&S.idle[0], 1ull << (cpu & 63));
	else if (!idle)
		port_bits_clear(&S.idle[0], 1ull << (cpu & 63));
}

TIERCE_FN int spread_passes(u32 cpu);

static inline void kick(u32 cpu)
{
	cpu_at(cpu)->kick_pending = 1;
	port_kick(cpu);
}

/* Shared events are served by one CPU; when its timer is too late for the first of them, it decides again. */
TIERCE_FN int shared_unlock(void)
{
	u32 link = domain_at(TIERCE_SHARED)->events;
	if (link && link_at(link)->key < S.shared_until_ns) {
		S.shared_until_ns = link_at(link)->key;
		kick(S.shared_timer);
	}
	port_unlock(TIERCE_SHARED);
	return 0;
}

/* An entry ends. */
static inline void cpu_unlock(u32 cpu)
{
	cpu_at(cpu)->told_now = 0;
	port_unlock(cpu);
}
static inline void unlock(u32 cpu)
{
	if (SHARES && cpu_at(cpu)->shares) {
		cpu_at(cpu)->shares = 0;
		shared_unlock();
	}
	cpu_unlock(cpu);
}

/* ---- upwards: who could use a CPU ------------------------------------------------------------------------------- */

static inline bool node_is_able(u32 node)
{
	return node_at(node)->servable != 0;
}

static inline void work_push(u32 node)
{
	u32 domain = node_at(node)->domain, works = domain_at(domain)->works;
	if (works >= 60) {
		port_fail("graph: more than 60 nodes change at once");
		return;
	}
	AT(domain_at(domain)->work, works) = node;
	domain_at(domain)->works = works + 1;
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
	else if (node_at(node)->domain == TIERCE_SHARED)
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

/* Does the CPU hold a place of this head that nobody claims? */
static inline bool head_keeps(u32 head, u32 cpu)
{
	node_t *node = node_at(head);
	if (AT(row_at(node->row)->hold, cpu) != TIERCE_HOLD_EDGE)
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
	local = AT(row_at(row)->order, cpu);
	if (!first || !local)
		first |= local;
	else if (policy_before(local, first, now))
		first = local;
	return SHARES && first ? node_takes(node, first, cpu, now) : first;
}

static inline bool head_has_child(u32 head, u32 cpu)
{
	if (node_at(head)->kind == TIERCE_TASK)
		return node_at(head)->servable && !node_at(head)->holds && (node_at(head)->allowed >> cpu & 1);
	return node_at(head)->order || AT(row_at(node_at(head)->row)->order, cpu);
}

/* The CPU with the lowest rank among those that hold a place, TIERCE_CPUS if none. */
static inline u32 head_lowest(u32 head)
{
	u32 row = node_at(head)->row, lowest = TIERCE_CPUS, cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		if (AT(row_at(row)->hold, cpu) != TIERCE_HOLD_EDGE)
			continue;
		if (lowest == TIERCE_CPUS ||
		    edge_at(AT(row_at(row)->edge, cpu))->rank < edge_at(AT(row_at(row)->edge, lowest))->rank)
			lowest = cpu;
	}
	return lowest;
}

static inline bool head_outranks(u32 head, u32 edge, u32 cpu)
{
	u32 lowest, running;
	if (node_at(head)->claim_edge || head_room(head, cpu) > 0 || !node_at(head)->servable)
		return false;
	if (node_at(head)->kind == TIERCE_TASK && !(node_at(head)->allowed >> cpu & 1))
		return false;
	lowest = head_lowest(head);
	if (lowest == TIERCE_CPUS || lowest == cpu ||
	    edge_at(edge)->rank <= edge_at(AT(row_at(node_at(head)->row)->edge, lowest))->rank)
		return false;
	/* the place is of use only with a child that may run here: one that waits, or the one that runs there */
	running = AT(row_at(node_at(head)->row)->running, lowest);
	return node_at(head)->kind == TIERCE_TASK || head_has_child(head, cpu) ||
	       (running && !(edge_at(running)->flags & EDGE_LOCAL));
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
			return x->rank >= edge_at(AT(row_at(node->row)->edge, cpu))->rank;
		if (node->claim_kept && node->claim_edge != edge && edge_at(node->claim_edge)->cpu == cpu)
			return false;
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return true;
		return head_outranks(head, edge, cpu);
	}
	/* the parent is a shared node itself: any of its CPUs may come */
	return head_room(head, TIERCE_CPUS) > 0 && node_at(head)->servable;
}

/* After every change to a head: tell each parent edge that would win now. Under the shared lock. Returns how many CPUs
 * were told and have yet to look. */
TIERCE_FN u32 head_settle(u32 head, u64 now)
{
	u32 edge = node_at(head)->first_parent, asked = ZERO;
	while (edge && CAN_LOOP) {
		edge_t *x = edge_at(edge);
		if ((x->flags & (EDGE_ATTACHED | EDGE_SHUT)) == EDGE_ATTACHED && !x->told && head_wins(head, edge)) {
			x->told = TIERCE_TOLD;
			if (x->flags & EDGE_CROSSING) {
				port_inbox_set(x->cpu, 1ull << x->bit);
				kick(x->cpu);
			} else {
				edge_request_here(edge, TIERCE_WOKE, now);
			}
		}
		if ((x->flags & EDGE_CROSSING) && (AT(S.inbox, x->cpu).bits >> x->bit & 1))
			asked++;
		edge = x->next_parent;
	}
	return asked;
}

/* The CPU gives its place back. */
TIERCE_FN int head_free(u32 head, u32 cpu, u64 now)
{
	node_t *node = node_at(head);
	if (AT(row_at(node->row)->hold, cpu) == TIERCE_HOLD_FREE)
		return 0;
	AT(row_at(node->row)->hold, cpu) = TIERCE_HOLD_FREE;
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
	u32 row = node_at(head)->row, first = node_at(head)->order, victim = TIERCE_CPUS, cpu, running, local;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		running = AT(row_at(row)->running, cpu);
		if (!running || AT(row_at(row)->hold, cpu) != TIERCE_HOLD_EDGE)
			continue;
		local = AT(row_at(row)->order, cpu);
		if (running_yields(head, local, running, cpu, now))
			kick(cpu);
		if (!first || policy_pick(head, first, running, now) == running)
			continue;
		if (local && policy_before(local, first, now))
			continue; /* it would look at that one only */
		if (victim == TIERCE_CPUS || policy_before(AT(row_at(row)->running, victim), running, now))
			victim = cpu;
	}
	if (victim != TIERCE_CPUS)
		kick(victim);
	return 0;
}

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
		if (able == n->able)
			return 0;
		n->able = able;
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
	u32 level;
	for (level = 0; level < TIERCE_PATH; level++) {
		u32 edge = n->first_parent, flags;
		edge_t *x = edge_at(edge);
		if ((x->flags & (EDGE_PLAIN | EDGE_SHUT | EDGE_COUNTED)) != EDGE_PLAIN || x->state != TIERCE_WAITING)
			return node | CLIMB_ON;
		n->able = 1;
		node = x->parent;
		n = node_at(node);
		x->state = TIERCE_READY;
		if (!node) {
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
			return node;
	}
	return 0;
}

TIERCE_FN int edges_condition(u32 node, u64 now);

/* Carry changed abilities upwards until nothing changes. The domain of the nodes pushed is locked. */
TIERCE_FN int settle_works(u32 domain, u64 now)
{
	while (domain_at(domain)->works && CAN_LOOP) {
		u32 node = AT(domain_at(domain)->work, --domain_at(domain)->works), edge;
		node_t *n = node_at(node);
		bool able = node_is_able(node);
		if (policy_heeds_deadlines(n->kind) && n->deadline_ns != policy_deadline(node, now))
			deadline_spread(node, policy_deadline(node, now), now);
		if (SHARES && n->row) { /* a head tells, it does not request */
			n->able = able;
			if (!head_settle(node, now) && able && n->kind != TIERCE_TASK)
				head_preempt(node, now);
			for (edge = n->first_parent; edge && !able && CAN_LOOP; edge = edge_at(edge)->next_parent) {
				if (edge_at(edge)->flags & EDGE_CROSSING)
					continue; /* its CPU finds out when it picks the edge */
				edge_at(edge)->told = TIERCE_UNTOLD;
				edge_release(edge, TIERCE_BLOCKED, now);
			}
			continue;
		}
		edge = n->first_parent;
		if (able != !!n->able && edge && !n->conditional && !edge_at(edge)->next_parent) {
			climb(node, now);
			continue;
		}
		/* Without a change, too: an event of such an edge may have found it otherwise meanwhile. */
		n->able = able;
		for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
			if (!(edge_at(edge)->flags & EDGE_ATTACHED))
				continue;
			if (able)
				edge_request(edge, TIERCE_WOKE, now);
			else
				edge_release(edge, TIERCE_BLOCKED, now);
		}
		if (able && n->conditional) /* a request may have found its budget spent */
			edges_condition(node, now);
	}
	if (domain_at(domain)->works)
		port_fail("graph: changes did not settle");
	return 0;
}

/* `when = "spent"` edges of a node follow its unconditional ones. */
TIERCE_FN int edges_condition(u32 node, u64 now)
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
			if (node_at(node)->able)
				edge_request_here(edge, TIERCE_WOKE, now);
		} else {
			edge_at(edge)->flags |= EDGE_SHUT;
			edge_release_here(edge, TIERCE_CLOSED, now);
		}
	}
	return 0;
}

/* After a policy may have set or cleared EDGE_SPENT. */
static inline void edge_spent_changed(u32 edge, u64 now)
{
	edge_count(edge, now);
	deadline_follow(edge, now);
	if (node_at(edge_at(edge)->child)->conditional)
		edges_condition(edge_at(edge)->child, now);
}

/* ---- charging --------------------------------------------------------------------------------------------------- */

/* What the CPU runs, if it is below a shared node, is read and changed under the shared lock only. */
static inline void path_lock(u32 cpu)
{
	u32 i;
	for (i = ZERO; i < TIERCE_PATH && i < cpu_at(cpu)->path_length && !cpu_at(cpu)->shares && CAN_LOOP; i++)
		if (edge_is_head(edge_at(AT(cpu_at(cpu)->path, i))->flags))
			shared_lock(cpu);
}

/* The path ends above this edge, whose child has nothing left to run. */
TIERCE_FN int edge_cut(u32 edge, u32 cpu, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *child = node_at(x->child);
	if (edge_is_head(x->flags))
		x->told = TIERCE_UNTOLD;
	edge_revoke(edge, TIERCE_BLOCKED, now);
	if (x->flags & EDGE_COUNTED) {
		x->flags &= ~EDGE_COUNTED;
		if (x->parent)
			node_at(x->parent)->servable--;
	}
	if (child->row || child->conditional || x->next_parent || child->first_parent != edge)
		work_push(x->child); /* its other parents have to know */
	else
		child->able = 0;
	deadline_follow(edge, now);
	if (edge_is_head(x->flags))
		head_free(x->child, cpu, now);
	return 0;
}

/* A task of this CPU's own tree ran out of turn: the edges above it that are spent, and so in no order, owe the time. */
TIERCE_FN int overrun_charge(u32 cpu, u32 task, u64 ran_ns, u64 now)
{
	u32 level, edge = node_at(task)->first_parent;
	if (node_at(task)->kind != TIERCE_TASK || node_at(task)->domain != cpu)
		return 0;
	node_at(task)->ran_ns += ran_ns;
	for (level = ZERO; edge && level < TIERCE_PATH && CAN_LOOP; level++) {
		if (edge_at(edge)->flags & EDGE_SPENT)
			edge_owes(edge, ran_ns, now);
		edge = node_at(edge_at(edge)->parent)->first_parent;
	}
	return 0;
}

static PORT_APART void edge_spent(u32 edge, u32 cpu, u64 now)
{
	edge_spent_changed(edge, now);
	cpu_at(cpu)->until_ns = 0; /* the end of the entry compares as a whole */
}

DISPATCHER void edge_charge(u32 edge, u32 cpu, u64 ran, u64 now)
{
	edge_at(edge)->supply_ns += ran;
	if (policy_charge(edge, ran, now))
		edge_spent(edge, cpu, now);
}

/* What ran has blocked in the very moment of the last charge. */
TIERCE_FN int path_cut(u32 cpu, u64 now)
{
	u32 i;
	for (i = ZERO; i < TIERCE_PATH && cpu_at(cpu)->path_length && CAN_LOOP; i++) {
		u32 edge = AT(cpu_at(cpu)->path, cpu_at(cpu)->path_length - 1);
		if (node_is_able(edge_at(edge)->child))
			break;
		cpu_at(cpu)->path_length--;
		edge_cut(edge, cpu, now);
	}
	return 0;
}

/* So much was stolen while the path had the CPU: does one of its edges pay for it, with the charge that follows? */
TIERCE_FN int path_loses(u32 cpu, u64 stolen_ns)
{
	u32 i, pay = ZERO;
	for (i = 1; i < TIERCE_PATH && i < cpu_at(cpu)->path_length; i++)
		pay += policy_lose(AT(cpu_at(cpu)->path, i), stolen_ns);
	return pay != 0;
}

/* The CPU's own time, and what its task received. Returns what its path has to pay; `lost`: and for what was stolen. */
static inline u64 cpu_charge(u32 cpu, u64 now, u64 stolen_ns, bool *lost)
{
	cpu_t *c = cpu_at(cpu);
	u64 elapsed = now - c->charged_ns;
	stolen_ns += taken_since(cpu, now);
	*lost = false;
	c->paid_ns = c->told_ns;
	if (c->outside || stolen_ns > elapsed) {
		if (c->outside > 1 && c->outside <= TIERCE_NODES && stolen_ns < elapsed)
			overrun_charge(cpu, c->outside - 1, elapsed - stolen_ns, now);
		stolen_ns = elapsed;
	}
	c->charged_ns = now;
	if (stolen_ns) {
		c->stolen_ns += stolen_ns;
		elapsed -= stolen_ns;
		port_trace(TIERCE_EV_stolen, cpu, c->task, 0, stolen_ns, now);
		*lost = PORT_HAS_PART(servers) && S.loses && path_loses(cpu, stolen_ns);
	}
	if (!c->path_length) {
		c->idle_ns += elapsed;
		return 0;
	}
	c->used_ns += elapsed;
	if (c->task)
		node_at(c->task)->ran_ns += elapsed;
	return elapsed;
}

/* The edges of a path, `length` of them left, pay for what its task has received; a root edge has no policy. */
static inline void edges_charge(u32 cpu, u32 length, u64 ran, u64 now)
{
	u32 i; /* upwards: verifiers follow it */
	if (!length || length > TIERCE_PATH)
		return;
	for (i = 1; i < TIERCE_PATH && i < length; i++)
		edge_charge(AT(cpu_at(cpu)->path, length - i), cpu, ran, now);
	edge_at(AT(cpu_at(cpu)->path, 0))->supply_ns += ran;
}

/* Everything up to `now` is accounted for, bottom up. */
TIERCE_FN int path_charge(u32 cpu, u64 now, u64 stolen_ns)
{
	u64 ran;
	bool lost;
	if (SHARED_ROWS)
		path_lock(cpu);
	if (now == cpu_at(cpu)->charged_ns)
		return 0;
	ran = cpu_charge(cpu, now, stolen_ns, &lost);
	if (ran || lost)
		edges_charge(cpu, cpu_at(cpu)->path_length, ran, now);
	return 0;
}

/* The same when what ran has blocked: its path is cut where a node still has something to run. */
TIERCE_FN int path_charge_and_cut(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	node_t *child;
	u64 ran;
	u32 length = c->path_length;
	bool lost;
	if (SHARED_ROWS)
		path_lock(cpu);
	ran = cpu_charge(cpu, now, 0, &lost);
	if (!ran && !lost)
		return path_cut(cpu, now);
	if (length > TIERCE_PATH) {
		port_fail("graph: path longer than the depth allows");
		return 0;
	}
	child = node_at(edge_at(AT(cpu_at(cpu)->path, length - 1))->child);
	for (; length && !child->servable; length--) {
		u32 edge = AT(cpu_at(cpu)->path, length - 1);
		edge_t *x = edge_at(edge);
		node_t *n = node_at(x->parent);
		if ((x->flags & EDGE_PLAIN) && x->parent) {
			x->supply_ns += ran;
			if (policy_leave(edge, ran, now))
				c->until_ns = 0; /* as edge_spent has it; the edge is counted no more in any case */
			port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_BLOCKED, 0, now);
			x->state = TIERCE_WAITING;
			n->running = TIERCE_NONE;
			if (x->flags & EDGE_COUNTED) {
				x->flags &= ~EDGE_COUNTED;
				n->servable--;
			}
			child->able = 0;
			deadline_follow(edge, now);
		} else {
			if (x->parent)
				edge_charge(edge, cpu, ran, now);
			else
				x->supply_ns += ran;
			c->path_length = length - 1;
			edge_cut(edge, cpu, now);
		}
		child = n;
	}
	c->path_length = length;
	edges_charge(cpu, length, ran, now);
	return 0;
}

/* ---- entries: what all have in common --------------------------------------------------------------------------- */

/* It runs, and has to be left. */
static inline bool edge_is_spent_on_cpu(u32 edge)
{
	return edge_at(edge)->state == TIERCE_GRANTED && (edge_at(edge)->flags & (EDGE_SPENT | EDGE_LEFT)) == EDGE_SPENT;
}

/* At most 64 due events of a domain. */
TIERCE_FN int events_due(u32 domain, u64 now)
{
	u32 done = ZERO;
	while (done < TIERCE_EVENTS_MAX && CAN_LOOP) {
		u32 link = domain_at(domain)->events, edge = link - TIERCE_EDGES;
		if (!link || link_at(link)->key > now)
			break;
		domain_at(domain)->events = heap_remove(link, link);
		policy_event(edge, now);
		edge_spent_changed(edge, now);
		if (SHARES && domain == TIERCE_SHARED) { /* it may concern other CPUs */
			if (edge_is_spent_on_cpu(edge))
				kick(edge_at(edge)->on_cpu);
			node_reordered(edge_at(edge)->parent, now);
			settle_works(domain, now);
		}
		done++;
	}
	if (done)
		settle_works(domain, now);
	return (int)done;
}

/* Only for a decision, which a full inbox always has coming: so that it knows which heads it was asked for and declines. */
static inline void inbox_drain(u32 cpu, u64 now)
{
	u64 bits = AT(S.inbox, cpu).bits ? port_inbox_take(cpu) : 0;
	u32 bit;
	cpu_at(cpu)->drained = bits;
	if (!bits)
		return;
	shared_lock(cpu); /* what the heads announce is read below */
	for (bit = ZERO; bits && bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		u32 edge = AT(cpu_at(cpu)->crossing, bit);
		if (!(bits >> bit & 1) || !edge || !edge_at(edge)->told) /* meanwhile it may have been told off */
			continue;
		edge_request(edge, edge_at(edge)->restore ? TIERCE_RESTORED : TIERCE_WOKE, now);
		edge_at(edge)->restore = 0;
	}
	settle_works(cpu, now);
}

/* Settle everything the operation changed. */
static inline void cpu_settle(u32 cpu, u64 now)
{
	if (domain_at(cpu)->works)
		settle_works(cpu, now);
	if (SHARES && cpu_at(cpu)->shares && domain_at(TIERCE_SHARED)->works)
		settle_works(TIERCE_SHARED, now);
}

/* The CPU, if idle, may serve a spread node now that it could not when it decided: it decides again, and looks for tasks. */
static inline void looks_again(u32 cpu)
{
	if (SPREADS && cpu_at(cpu)->idle)
		kick(cpu);
}

/* Bring the locked domain of a CPU to `now`; returns the time that counts. `blocks`: what it runs no longer can, its path
 * is cut. */
static inline u64 cpu_advance(u32 cpu, u32 blocks, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u32 task = c->task;
	if (now < c->charged_ns)
		now = c->charged_ns;
	if (blocks) {
		if (SHARED_ROWS)
			path_lock(cpu);
		node_at(task)->servable = 0;
		node_at(task)->on_cpu = TIERCE_CPUS;
	}
	if (blocks) {
		path_charge_and_cut(cpu, now);
		c->task = TIERCE_NONE;
		port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, 0, task, now);
		cpu_settle(cpu, now);
	} else if (now != c->charged_ns) {
		path_charge(cpu, now, stolen_ns);
		cpu_settle(cpu, now);
	}
	if (SHARES)
		c->drained = 0;
	if (domain_at(cpu)->events && link_at(domain_at(cpu)->events)->key <= now) {
		c->events += (u64)events_due(cpu, now);
		c->until_ns = 0;
		looks_again(cpu);
	}
	if (SHARED_ROWS && cpu == S.shared_timer) {
		shared_lock(cpu);
		c->events += (u64)events_due(TIERCE_SHARED, now);
	}
	return now;
}

TIERCE_FN u64 cpu_enter(u32 cpu, u64 now, u64 stolen_ns)
{
	port_lock(cpu);
	return cpu_advance(cpu, 0, now, stolen_ns);
}

/* ---- downwards: the walk ---------------------------------------------------------------------------------------- */

/* The head has no use for this CPU now: told off, released in the tree above. */
static inline void head_drop(u32 edge, u64 now)
{
	edge_at(edge)->told = TIERCE_UNTOLD;
	edge_release_here(edge, TIERCE_NO_ROOM, now);
}

/* The edge granted by `node` on `cpu`, if it may go on running. */
static inline u32 node_running(u32 node, u32 cpu)
{
	u32 row = node_at(node)->row, running = row ? AT(row_at(row)->running, cpu) : node_at(node)->running;
	return running && (edge_at(running)->flags & EDGE_COUNTED) && edge_at(running)->on_cpu == cpu ? running : TIERCE_NONE;
}

/* May `cpu` go on into the head it reached over `edge`? Otherwise the edge was dropped, and the walk begins again. */
TIERCE_FN int head_enter(u32 edge, u32 cpu, u64 now)
{
	u32 head = edge_at(edge)->child;
	node_t *node = node_at(head);
	u32 row = node->row, hold = AT(row_at(row)->hold, cpu), victim;
	if (hold == TIERCE_HOLD_EDGE) {
		if (head_keeps(head, cpu) &&
		    (node->kind == TIERCE_TASK ? node->servable : node_running(head, cpu) || head_has_child(head, cpu)))
			return 1;
	} else if (hold == TIERCE_HOLD_FREE) {
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return 1;
		if ((edge_at(edge)->flags & EDGE_CROSSING) && head_outranks(head, edge, cpu)) {
			victim = head_lowest(head);
			node->claim_edge = edge;
			node->claim_victim = victim;
			node->claim_kept = 0;
			cpu_at(cpu)->claims++;
			kick(victim);
		}
	}
	head_drop(edge, now);
	return 0;
}

/* One try; 0: a shared head had no use for an edge on the way, which was dropped. */
TIERCE_FN int walk_once(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 length, edge = c->root_edge, node, first, flags;
	node_t *n;
	c->next_length = 0;
	if (!c->online || !edge || !edge_is_servable(edge))
		return 1;
	for (length = ZERO; length < TIERCE_PATH && CAN_LOOP; length++) {
		flags = edge_at(edge)->flags;
		if (edge_is_head(flags)) {
			shared_lock(cpu);
			if (!head_enter(edge, cpu, now))
				return 0;
		}
		AT(cpu_at(cpu)->next, length) = edge;
		node = edge_at(edge)->child;
		n = node_at(node);
		if (n->kind == TIERCE_TASK) {
			c->next_length = length + 1;
			return 1;
		}
		if (flags & EDGE_PLAIN) {
			first = n->order;
			edge = n->running;
			if (!(edge_at(edge)->flags & EDGE_COUNTED))
				edge = TIERCE_NONE;
		} else {
			first = node_first(node, cpu, now);
			edge = node_running(node, cpu);
		}
		if (first && edge)
			edge = policy_pick(node, first, edge, now);
		else
			edge |= first;
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
	cpu_at(cpu)->next_length = 0;
	return 0;
}

static inline bool path_same(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	u32 i = c->path_length;
	if (i != c->next_length)
		return false;
	/* the last edges first: paths that differ anywhere end at different tasks, or reach one in different ways */
	for (; i > 0 && CAN_LOOP; i--)
		if (AT(cpu_at(cpu)->path, i - 1) != AT(cpu_at(cpu)->next, i - 1))
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
	} else if (edge_is_head(x->flags) && !x->told) {
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
		row = SHARES ? node_at(parent)->row : 0; /* the node may run another child by now */
		if (row && AT(row_at(row)->running, x->on_cpu) == edge)
			AT(row_at(row)->running, x->on_cpu) = TIERCE_NONE;
		if (node_at(parent)->running == edge)
			node_at(parent)->running = TIERCE_NONE;
		policy_revoke(edge, why, now);
	}
	return 0;
}

static inline void edge_grant(u32 edge, u32 cpu, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 parent = x->parent, row;
	node_t *n = node_at(parent);
	port_trace(TIERCE_EV_grant, cpu, edge, x->child, 0, now);
	x->state = TIERCE_GRANTED;
	x->on_cpu = cpu;
	x->grants++;
	if (!parent)
		return;
	order_remove(edge);
	row = SHARES ? n->row : 0;
	if (row) {
		AT(row_at(row)->running, cpu) = edge;
		if (n->order)
			work_push(parent); /* another child is first now: it may outrank what runs elsewhere */
	} else {
		n->running = edge;
	}
	policy_grant(edge, now);
}

static inline void task_runs(u32 cpu, u32 task, node_t *n, u32 edge, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	port_trace(TIERCE_EV_decision, cpu, task, edge, c->task, now);
	c->task = task;
	n->switches++;
	if (SEVERAL_CPUS && n->last_cpu != cpu && n->last_cpu != TIERCE_CPUS)
		n->migrations++;
	n->last_cpu = cpu;
	n->on_cpu = cpu;
}
static inline void task_set(u32 cpu, u32 task, u32 edge, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	if (task == c->task)
		return;
	if (task) {
		task_runs(cpu, task, node_at(task), edge, now);
	} else {
		port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, edge, c->task, now);
		c->task = TIERCE_NONE;
	}
}

/* Take the path in cpu.next: revoke what is not on it, bottom up, then grant what is new, top down. */
TIERCE_FN int commit(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 i, edge, head, taken, same;

	for (same = ZERO; same < TIERCE_PATH && same < c->next_length && same < c->path_length && CAN_LOOP; same++)
		if (AT(cpu_at(cpu)->path, same) != AT(cpu_at(cpu)->next, same))
			break;
	for (i = same; c->path_length > same && i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++)
		edge_at(AT(cpu_at(cpu)->next, i))->flags |= EDGE_NEXT;
	for (i = c->path_length; i > same && i <= TIERCE_PATH && CAN_LOOP; i--) {
		edge = AT(cpu_at(cpu)->path, i - 1);
		if (edge_at(edge)->flags & EDGE_NEXT)
			continue;
		if (edge_at(edge)->flags & EDGE_PLAIN) {
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
			continue;
		}
		head = edge_is_head(edge_at(edge)->flags) ? edge_at(edge)->child : TIERCE_NONE;
		if (head) {
			shared_lock(cpu);
			if (AT(row_at(node_at(head)->row)->hold, cpu) == TIERCE_HOLD_EDGE &&
			    AT(row_at(node_at(head)->row)->edge, cpu) == edge)
				AT(row_at(node_at(head)->row)->hold, cpu) = TIERCE_HOLD_LEAVING;
		}
		if (head || (edge_at(edge)->parent && node_at(edge_at(edge)->parent)->domain == TIERCE_SHARED)) {
			if (c->leaves < TIERCE_PATH)
				AT(cpu_at(cpu)->leave, c->leaves++) = edge;
			else
				port_fail("graph: left before the last path was returned");
		}
		if (edge_at(edge)->parent && node_at(edge_at(edge)->parent)->domain == TIERCE_SHARED) {
			/* granted until it is returned, but charged no more: the trace is told now */
			edge_at(edge)->flags |= EDGE_LEFT;
			port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_OUTRANKED, 0, now);
			edge_count(edge, now);
		} else {
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
	}
	for (i = same; i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++) {
		edge = AT(cpu_at(cpu)->next, i);
		edge_at(edge)->flags &= ~EDGE_NEXT;
		AT(cpu_at(cpu)->path, i) = edge;
		if (edge_at(edge)->state != TIERCE_GRANTED)
			edge_grant(edge, cpu, now);
		if (edge_is_head(edge_at(edge)->flags)) {
			node_t *node;
			row_t *row;
			head = edge_at(edge)->child;
			node = node_at(head);
			row = row_at(node->row);
			taken = AT(row->hold, cpu) == TIERCE_HOLD_FREE;
			node->holds += taken;
			AT(row->hold, cpu) = TIERCE_HOLD_EDGE;
			if (taken || AT(row->edge, cpu) != edge || node->claim_edge == edge) {
				AT(row->edge, cpu) = edge;
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
	edge = c->path_length ? AT(cpu_at(cpu)->path, c->path_length - 1) : TIERCE_NONE;
	task_set(cpu, edge ? edge_at(edge)->child : TIERCE_NONE, edge, now);
	return 0;
}

/* A plain edge comes onto the path. */
static inline void edge_enter(u32 edge, u32 cpu, u32 length, u64 now)
{
	edge_t *x = edge_at(edge);
	port_trace(TIERCE_EV_grant, cpu, edge, x->child, 0, now);
	x->state = TIERCE_GRANTED;
	x->grants++;
	AT(cpu_at(cpu)->path, length) = edge;
}

/* walk, commit and path_until in one for a CPU whose task has blocked, as far down as the way is plain: what is still
 * granted stays if its nodes pick it again, below that nothing is. 0: walk and commit have to see. */
PORT_SHORT int descend(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 length, edge = c->root_edge, node, first;
	u64 until = TIERCE_NEVER, at;
	edge_t *x;
	node_t *n;
	if (!c->online || !edge || !edge_is_servable(edge))
		return 0;
	if (!c->path_length) {
		if (!(edge_at(edge)->flags & EDGE_PLAIN) || node_at(edge_at(edge)->child)->kind == TIERCE_TASK)
			return 0;
		edge_enter(edge, cpu, 0, now);
		c->path_length = 1;
	}
	node = edge_at(edge)->child;
	for (length = 1; length < TIERCE_PATH && length < c->path_length; length++) {
		edge = AT(cpu_at(cpu)->path, length);
		first = node_at(node)->order;
		if (!(edge_at(edge)->flags & EDGE_COUNTED) || (first && policy_pick(node, first, edge, now) != edge))
			return 0;
		at = policy_until(edge, now);
		until = at < until ? at : until;
		node = edge_at(edge)->child;
	}
	n = node_at(node);
	for (; length < TIERCE_PATH; length++) {
		edge = n->order;
		if (!edge)
			break;
		x = edge_at(edge);
		if (!(x->flags & EDGE_PLAIN))
			break;
		edge_enter(edge, cpu, length, now);
		order_take(n, edge);
		n->running = edge;
		at = policy_begin(edge, now);
		until = at < until ? at : until;
		node = x->child;
		n = node_at(node);
		if (n->kind == TIERCE_TASK) {
			task_set(cpu, node, edge, now);
			c->path_length = length + 1;
			c->until_ns = until;
			return 1;
		}
	}
	c->path_length = length;
	return 0;
}

/* The CPU was told of heads; whatever it took, it looks no more: whom else do children that still wait outrank? */
static inline void told_declined(u32 cpu)
{
	u32 bit, edge;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		edge = AT(cpu_at(cpu)->crossing, bit);
		if ((cpu_at(cpu)->drained >> bit & 1) && edge)
			work_push(edge_at(edge)->child);
	}
}

/* A place that was kept for this CPU and that its decision did not take is given up. */
static inline void claims_drop(u32 cpu, u64 now)
{
	u32 bit, edge, head;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && cpu_at(cpu)->claims && CAN_LOOP; bit++) {
		edge = AT(cpu_at(cpu)->crossing, bit);
		if (!edge)
			continue;
		shared_lock(cpu);
		head = edge_at(edge)->child;
		if (node_at(head)->claim_edge != edge || !node_at(head)->claim_kept)
			continue;
		node_at(head)->claim_edge = TIERCE_NONE;
		node_at(head)->claim_kept = 0;
		cpu_at(cpu)->claims--;
		work_push(head);
	}
}

/* When budget or quantum of what the CPU runs ends. */
TIERCE_FN u64 path_until(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u64 until = TIERCE_NEVER, at;
	u32 i;
	for (i = 1; !c->outside && i < TIERCE_PATH && i < c->path_length && CAN_LOOP; i++) {
		at = policy_until(AT(cpu_at(cpu)->path, i), now);
		until = at < until ? at : until;
	}
	return until;
}

/* When its waiting spread tasks are to be compared with other CPUs' (graph_balance). */
TIERCE_FN u64 balance_until(u32 cpu, u64 now)
{
	u64 at = cpu_at(cpu)->balance_ns;
	u32 family;
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++)
		if (replica_on(family, cpu) && replica_waits(replica_on(family, cpu)))
			return at > now ? at : now + SPREAD_BALANCE_NS;
	return TIERCE_NEVER;
}

/* When the CPU has to be entered again at the latest; `until`: what path_until says. */
static inline u64 cpu_until(u32 cpu, u64 until, u64 now)
{
	u32 link = domain_at(cpu)->events;
	u64 at;
	if (SPREADS) {
		at = balance_until(cpu, now);
		until = at < until ? at : until;
	}
	if (link && link_at(link)->key < until)
		until = link_at(link)->key;
	if (SHARED_ROWS && cpu == S.shared_timer) {
		link = domain_at(TIERCE_SHARED)->events;
		at = link ? link_at(link)->key : TIERCE_NEVER; /* never: the next one to come kicks this CPU */
		S.shared_until_ns = at;
		until = at < until ? at : until;
	}
	return until;
}

/* What the timer has to be set to: an earlier time stays, it only costs an entry that finds nothing to do. A quiet port
 * goes by until_ns. */
static inline void cpu_arm(u32 cpu, u64 until, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	c->until_ns = cpu_until(cpu, until, now);
	if (PORT_QUIET || c->until_ns < c->armed_ns || c->armed_ns <= now)
		c->armed_ns = c->until_ns;
}

/* The end of an entry that does not decide: kick if a decision would change something. `own`: called on the CPU itself,
 * which then arms its timer on its own. */
TIERCE_FN int cpu_compare(u32 cpu, u64 now, u32 own)
{
	cpu_t *c = cpu_at(cpu);
	bool same;
	cpu_settle(cpu, now);
	if (PORT_QUIET) {
		kick(cpu);
		return 0;
	}
	if (own && c->armed_ns <= now)
		c->armed_ns = TIERCE_NEVER; /* it fired; a decision that is due sets it again */
	if (c->outside && own)
		cpu_arm(cpu, TIERCE_NEVER, now); /* its events, the shared ones perhaps, go on */
	if (c->outside || c->asked)
		return 0;
	walk(cpu, now);
	cpu_settle(cpu, now);
	same = path_same(cpu);
	if (same && own)
		cpu_arm(cpu, path_until(cpu, now), now);
	else if (same)
		c->until_ns = cpu_until(cpu, path_until(cpu, now), now);
	if (!same || c->until_ns < c->armed_ns) {
		c->asked = 1;
		kick(cpu);
	}
	return 0;
}

/* ---- entries ---------------------------------------------------------------------------------------------------- */

/* The locked CPU's task can no longer use it. */
static inline u64 task_blocks(u32 cpu, u32 task, u32 why, u64 now)
{
	port_trace(TIERCE_EV_release, cpu, task, why, 0, now);
	return cpu_advance(cpu, 1, now, 0);
}

/* The task at the end of the locked CPU's path gives way: the edge to it, which is not spent, goes to where its policy has one
 * that comes. Does that concern the nodes above? */
DISPATCHER bool turn_ends(u32 cpu, u32 edge, edge_t *x, node_t *n, u64 now)
{
	port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_OUTRANKED, 0, now);
	port_trace(TIERCE_EV_request, cpu, x->child, TIERCE_WOKE, 0, now);
	n->running = TIERCE_NONE;
	x->state = TIERCE_READY;
	policy_return(edge, now);
	if (x->flags & EDGE_SPENT) {
		edge_spent(edge, cpu, now);
		return true;
	}
	return deadline_follow(edge, now);
}

/* The path without it. */
static inline void turn_leaves(u32 cpu, u32 task, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, 0, task, now);
	c->path_length--;
	c->task = TIERCE_NONE;
	node_at(task)->on_cpu = TIERCE_CPUS;
	cpu_settle(cpu, now);
}

TIERCE_FN int task_yields(u32 cpu, u32 task, u64 now)
{
	u32 edge = AT(cpu_at(cpu)->path, cpu_at(cpu)->path_length - 1);
	if (edge_at(edge)->flags & EDGE_SPENT) {
		edge_revoke(edge, TIERCE_SPENT, now);
		port_trace(TIERCE_EV_request, cpu, task, TIERCE_WOKE, 0, now);
	} else {
		turn_ends(cpu, edge, edge_at(edge), parent_of(edge), now);
	}
	turn_leaves(cpu, task, now);
	return 0;
}

/* May it give way like that? */
static inline bool yields_plainly(u32 cpu, u32 task)
{
	cpu_t *c = cpu_at(cpu);
	u32 length = c->path_length;
	if (!task || c->task != task || c->outside || !c->online || length < 2 || length > TIERCE_PATH)
		return false;
	return edge_at(AT(cpu_at(cpu)->path, length - 1))->flags & EDGE_PLAIN;
}

/* Charged by turn_passes, which stops here: graph_decide counts as taken what was stolen. `ended`: so has the turn. */
static PORT_APART u32 turn_stops(u32 cpu, u32 ended, u32 stolen_ns, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	c->told_ns += stolen_ns;
	c->paid_ns += stolen_ns;
	if (ended) {
		port_record(TIERCE_OP_yield, c->task, 0, 0, now, 0, 0);
		turn_leaves(cpu, c->task, now);
	} else {
		cpu_settle(cpu, now);
	}
	return TIERCE_NONE;
}

/* A yield as it nearly always is: nothing else is due, the nodes above go on, the turn passes to a sibling or comes back.
 * Charge, give way and decide in one; returns the task. 0: it is not so; by then the path may be charged, and left. */
static PORT_APART u32 turn_passes(u32 cpu, u32 task, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u32 last = c->path_length - 1, link = domain_at(cpu)->events, edge, next, ran, i;
	u64 elapsed = now - c->charged_ns, until = TIERCE_NEVER, at;
	bool stays = true;
	edge_t *x, *y;
	node_t *n, *m;

	if (c->task != task || last - 1 >= TIERCE_PATH - 1 || c->asked | c->kick_pending | c->outside)
		return TIERCE_NONE;
	if (SHARES && (c->claims || (cpu == S.shared_timer && SHARED_ROWS)))
		return TIERCE_NONE;
	if ((elapsed | stolen_ns) >> 32 || (u32)elapsed <= (u32)stolen_ns || c->taken_ns != c->paid_ns)
		return TIERCE_NONE;
	edge = AT(cpu_at(cpu)->path, last);
	x = edge_at(edge);
	if ((x->flags & (EDGE_PLAIN | EDGE_SPENT)) != EDGE_PLAIN || (link && link_at(link)->key <= now))
		return TIERCE_NONE;

	ran = (u32)elapsed - (u32)stolen_ns;
	if (stolen_ns) {
		port_record(TIERCE_OP_taken, cpu, 0, stolen_ns, now, 0, 0);
		port_trace(TIERCE_EV_stolen, cpu, task, 0, stolen_ns, now);
		if (PORT_HAS_PART(servers) && S.loses)
			path_loses(cpu, (u32)stolen_ns);
	}
	c->charged_ns = now;
	c->stolen_ns += (u32)stolen_ns;
	c->used_ns += ran;
	node_at(task)->ran_ns += ran;
	edge_at(AT(cpu_at(cpu)->path, 0))->supply_ns += ran;
	edge_charge(edge, cpu, ran, now);
	for (i = last - 1; i; i--) {
		u32 above = AT(cpu_at(cpu)->path, i), first;
		edge_t *z = edge_at(above);
		edge_charge(above, cpu, ran, now);
		first = node_at(z->parent)->order;
		if (!(z->flags & EDGE_COUNTED) || (first && policy_pick(z->parent, first, above, now) != above))
			stays = false;
		at = policy_until(above, now);
		until = at < until ? at : until;
	}
	if (!stays || x->flags & EDGE_SPENT)
		return turn_stops(cpu, TIERCE_NONE, (u32)stolen_ns, now);

	n = node_at(x->parent);
	stays = !turn_ends(cpu, edge, x, n, now);
	next = n->order;
	y = edge_at(next);
	m = node_at(y->child);
	if (!stays || !(y->flags & EDGE_PLAIN) || m->kind != TIERCE_TASK)
		return turn_stops(cpu, edge, (u32)stolen_ns, now);
	port_record(TIERCE_OP_yield, task, 0, 0, now, 0, 0);
	order_take(n, next);
	edge_enter(next, cpu, last, now);
	n->running = next;
	at = policy_begin(next, now);
	cpu_arm(cpu, at < until ? at : until, now);
	if (next != edge) {
		node_at(task)->on_cpu = TIERCE_CPUS;
		task = y->child;
		task_runs(cpu, task, m, next, now);
	}
	c->decisions++;
	port_record(TIERCE_OP_decide, cpu, task, 0, now, c->until_ns, 0);
	unlock(cpu);
	return task;
}

/* Any other decision, of a CPU that is locked: to its end. */
static PORT_APART u32 decide_anew(u32 cpu, u32 left, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u64 at = now;
	u32 task;
	if (SPREADS)
		c->ran = c->task;
	if (stolen_ns && left) { /* of what has left */
		c->taken_ns += stolen_ns;
		stolen_ns = 0;
	}
	if (left && left == c->task) {
		now = task_blocks(cpu, left, TIERCE_BLOCKED, now);
		port_record(TIERCE_OP_release, left, TIERCE_BLOCKED, 0, at, 0, 0);
	} else {
		now = cpu_advance(cpu, 0, now, stolen_ns);
		if (PORT_YIELDS && left & TIERCE_YIELDED && yields_plainly(cpu, left ^ TIERCE_YIELDED)) {
			task_yields(cpu, left ^ TIERCE_YIELDED, now);
			port_record(TIERCE_OP_yield, left ^ TIERCE_YIELDED, 0, 0, at, 0, 0);
			now = cpu_advance(cpu, 0, now, 0); /* events that are due by that */
		}
	}
	c->asked = 0;
	c->kick_pending = 0; /* before the inbox is drained: whoever fills it from now on kicks again */
	if (SHARES) {
		inbox_drain(cpu, now);
		cpu_settle(cpu, now);
	}
	c->decisions++;
	if (SHARES && c->leaves)
		port_fail("graph: decided before what ran was returned");
	if (c->task || c->outside || (SHARES && (c->drained || c->claims)) || !descend(cpu, now)) {
		walk(cpu, now);
		cpu_settle(cpu, now);
		if (!path_same(cpu))
			commit(cpu, now);
		cpu_settle(cpu, now);
		if (SHARES && c->drained)
			told_declined(cpu);
		if (SHARES && c->claims)
			claims_drop(cpu, now);
		cpu_settle(cpu, now);
		c->until_ns = path_until(cpu, now);
	}
	cpu_arm(cpu, c->until_ns, now);
	idle_tell(cpu);
	task = c->task;
	if (SPREADS && (!c->ran || !task || c->offered) && S.idle[0])
		spread_passes(cpu);
	port_record(TIERCE_OP_decide, cpu, task, stolen_ns, at, c->until_ns, c->drained);
	unlock(cpu);
	return task;
}

TIERCE_FN u32 graph_decide(u32 cpu, u32 left, u64 now, u64 stolen_ns)
{
	u32 task;
	if (cpu >= (SEVERAL_CPUS ? S.cpus : 1))
		return TIERCE_NONE;
	port_lock(cpu);
	if (PORT_YIELDS && left & TIERCE_YIELDED) {
		task = turn_passes(cpu, left ^ TIERCE_YIELDED, now, stolen_ns);
		if (task)
			return task;
	}
	return decide_anew(cpu, left, now, stolen_ns);
}

TIERCE_FN int graph_event(u32 cpu, u64 now, u64 stolen_ns)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, stolen_ns);
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_event, cpu, 0, stolen_ns, at, cpu_at(cpu)->until_ns, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}

TIERCE_FN int graph_outside(u32 cpu, u32 begins, u64 now)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, 0);
	if (SHARED_ROWS)
		path_lock(cpu); /* others look, see uncharged_shared_ns */
	cpu_at(cpu)->outside = begins;
	idle_tell(cpu);
	if (SPREADS && begins && S.idle[0])
		spread_passes(cpu);
	looks_again(cpu);
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_outside, cpu, begins, 0, at, 0, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}

/* The edges that the CPU has left are free for others. */
TIERCE_FN int edges_return(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 i, edge;
	for (i = ZERO; i < c->leaves && i < TIERCE_PATH && CAN_LOOP; i++) { /* bottom up, as they were left */
		edge = AT(cpu_at(cpu)->leave, i);
		if (edge_at(edge)->parent && node_at(edge_at(edge)->parent)->domain == TIERCE_SHARED &&
		    edge_at(edge)->state == TIERCE_GRANTED && edge_at(edge)->on_cpu == cpu) {
			edge_at(edge)->flags &= ~EDGE_LEFT;
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
		if (edge_is_head(edge_at(edge)->flags)) {
			u32 head = edge_at(edge)->child;
			if (AT(row_at(node_at(head)->row)->hold, cpu) == TIERCE_HOLD_LEAVING)
				head_free(head, cpu, now);
		}
		/* what is freed above has to know that the child below can be had again: a claim is judged by it */
		if (domain_at(TIERCE_SHARED)->works)
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
	if (!cpu_at(cpu)->leaves)
		return TIERCE_OK;
	now = cpu_enter(cpu, now, 0);
	shared_lock(cpu);
	edges_return(cpu, now);
	looks_again(cpu);
	cpu_compare(cpu, now, 1);
	port_record(TIERCE_OP_returned, cpu, 0, 0, at, 0, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}

/* The CPU whose domain an operation on the task concerns: the one that runs it, or has it in its tree; TIERCE_CPUS: only
 * the shared domain. A task of the shared domain comes and goes under the shared lock, so it is looked at twice. */
static inline u32 task_cpu(u32 task)
{
	u32 domain = node_at(task)->domain, cpu = node_at(task)->on_cpu;
	if (domain < TIERCE_CPUS)
		return domain;
	return cpu < S.cpus && cpu_at(cpu)->task == task ? cpu : TIERCE_CPUS;
}

/* Has task_lock locked a CPU? What nobody shares is always in the domain of one. */
#define ON_CPU(cpu) (!SHARES || (cpu) < TIERCE_CPUS)

static inline bool task_exists(u32 task)
{
	return task && task < TIERCE_NODES && node_at(task)->kind == TIERCE_TASK && node_at(task)->domain != TIERCE_NODOMAIN;
}

TIERCE_FN u32 task_lock_shared(u32 task)
{
	u32 tries, cpu;
	bool shared;
	for (tries = ZERO; tries < 64 && CAN_LOOP; tries++) {
		if (SEVERAL_CPUS && node_at(task)->domain == TIERCE_TRANSIT)
			port_await(task);
		cpu = task_cpu(task);
		if (cpu < TIERCE_CPUS)
			port_lock(cpu);
		shared = node_at(task)->domain == TIERCE_SHARED;
		if (shared && cpu < TIERCE_CPUS)
			shared_lock(cpu);
		else if (shared)
			port_lock(TIERCE_SHARED);
		if (cpu == task_cpu(task) && (shared || cpu < TIERCE_CPUS))
			return cpu;
		if (cpu < TIERCE_CPUS)
			unlock(cpu);
		else if (shared)
			shared_unlock();
	}
	port_fail("graph: a task would not stay where it is");
	return TIERCE_CPUS + 1;
}
static inline u32 task_lock(u32 task)
{
	u32 cpu = node_at(task)->domain;
	if (cpu < TIERCE_CPUS) { /* nearly always, and it stays there unless it was just attached */
		port_lock(cpu);
		if (node_at(task)->domain == cpu)
			return cpu;
		port_unlock(cpu);
	}
	return task_lock_shared(task);
}

static inline void whole_compare(u32 cpu, u64 now)
{
	if (now != cpu_at(cpu)->charged_ns && !PORT_QUIET && !cpu_at(cpu)->asked)
		path_charge(cpu, now, 0);
	cpu_compare(cpu, now, 0);
}

/* A request that ended its climb at `stop` can change this CPU's decision only there: ask that one node, when nothing
 * else has happened since the last decision or comparison. Otherwise compare as a whole. */
static inline void request_compare(u32 cpu, u32 stop, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	if (PORT_QUIET || c->asked || c->outside || (SHARES && (c->shares || domain_at(cpu)->works)) || !stop ||
	    now >= c->until_ns || now >= c->armed_ns || (SPREADS && c->armed_ns > now + SPREAD_BALANCE_NS)) {
		whole_compare(cpu, now); /* or it has to look whether tasks that wait are better off elsewhere */
		return;
	}
	if (stop != CLIMBED_TO_TOP) {
		node_t *n = node_at(stop);
		if (policy_heeds_deadlines(n->kind)) {
			whole_compare(cpu, now);
			return;
		}
		if (!n->running)
			return;
		if ((!n->order || policy_pick(stop, n->order, n->running, now) == n->running) &&
		    policy_until(n->running, c->charged_ns) >= c->armed_ns)
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
#define TASK_ANSWER(op, a, b, value, error) \
	do { \
		port_record(op, a, b, value, at, error, ON_CPU(cpu) ? cpu_at(cpu)->drained : 0); \
		if (ON_CPU(cpu)) \
			unlock(cpu); \
		else \
			shared_unlock(); \
		return error; \
	} while (0)
#define TASK_END(op, a, b, value) TASK_ANSWER(op, a, b, value, TIERCE_OK)

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
	if (ON_CPU(cpu) && cpu == n->domain && now < cpu_at(cpu)->until_ns) {
		if (SHARES)
			cpu_at(cpu)->drained = 0;
		if (now < cpu_at(cpu)->charged_ns)
			now = cpu_at(cpu)->charged_ns;
	} else if (ON_CPU(cpu)) {
		now = cpu_advance(cpu, 0, now, 0);
	}
	port_trace(TIERCE_EV_request, cpu, task, why, 0, now);
	if (!n->servable) {
		u32 domain = SHARES ? n->domain : cpu;
		n->servable = 1;
		stop = climb_plainly(task, now);
		if (stop != CLIMBED_TO_TOP && (stop & CLIMB_ON))
			stop = climb(stop & ~CLIMB_ON, now);
		if (domain_at(domain)->works)
			settle_works(domain, now);
	}
	if (ON_CPU(cpu))
		request_compare(cpu, stop, now);
	else if (domain_at(TIERCE_SHARED)->works)
		settle_works(TIERCE_SHARED, now);
	TASK_END(TIERCE_OP_request, task, why, 0);
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
	if (cpu < TIERCE_CPUS && cpu_at(cpu)->task == task && n->servable) {
		task_blocks(cpu, task, why, now);
		cpu_at(cpu)->asked = 1; /* its CPU has to decide in any case */
		kick(cpu);
		TASK_END(TIERCE_OP_release, task, why, 0);
	}
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, 0, now, 0);
	port_trace(TIERCE_EV_release, cpu, task, why, 0, now);
	if (n->servable) {
		n->servable = 0;
		climb(task, now);
		if (domain_at(n->domain)->works)
			settle_works(n->domain, now);
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
		now = cpu_advance(cpu, 0, now, 0);
	if (node_at(task)->deadline_ns != deadline_ns)
		deadline_spread(task, deadline_ns, now);
	task_settle(cpu, now);
	TASK_END(TIERCE_OP_announce, task, 0, deadline_ns);
}

TIERCE_FN int graph_yield(u32 task, u64 now)
{
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu > TIERCE_CPUS)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS && yields_plainly(cpu, task)) {
		now = cpu_advance(cpu, 0, now, 0);
		task_yields(cpu, task, now);
		cpu_at(cpu)->asked = 1;
		kick(cpu);
		TASK_END(TIERCE_OP_yield, task, 0, 0);
	}
	if (cpu < TIERCE_CPUS)
		unlock(cpu);
	else
		shared_unlock();
	graph_release(task, TIERCE_BLOCKED, now);
	return graph_request(task, TIERCE_WOKE, now);
}

/* What its parents say to it. */
static inline int parents_hear(u32 task, u32 kind, u64 now)
{
	u32 edge = node_at(task)->first_parent;
	int error = TIERCE_E_not_understood, said;
	for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		if (edge_at(edge)->flags & EDGE_WHEN_SPENT)
			continue;
		said = policy_tell(edge, kind, now);
		if (!said)
			return TIERCE_OK;
		if (error == TIERCE_E_not_understood)
			error = said;
	}
	return error;
}

TIERCE_FN int graph_tell(u32 task, u32 kind, u64 now)
{
	u64 at = now;
	u32 cpu;
	int error = TIERCE_E_message_needs_one_cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu > TIERCE_CPUS)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, 0, now, 0);
	if (node_at(task)->domain == cpu && cpu < TIERCE_CPUS)
		error = parents_hear(task, kind, now);
	port_trace(TIERCE_EV_tell, cpu, task, kind, (u64)error, now);
	task_settle(cpu, now);
	TASK_ANSWER(TIERCE_OP_tell, task, kind, 0, error);
}

#include "spread.c"
