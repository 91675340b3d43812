/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The checker: what holds after every operation, and what holds at rest. Each broken rule has its number and a name, so
 * that a failure says which. It looks at everything and may take long: for tests and debugging, on native builds.
 * It does not check time (that supply keeps its promises): the policies' conservation laws are tested from the events.
 */
#include "service.h"

#define TIERCE_INVARIANT_LIST(I) \
	I(1, one_task_per_cpu, "a CPU's path ends in the task it runs") \
	I(2, one_cpu_per_task, "no task is on the path of two CPUs") \
	I(3, path_granted, "every edge on a path is GRANTED to that CPU, every granted one is on a path or being left") \
	I(4, path_connected, "each edge of a path begins where the one above ends") \
	I(5, one_child_per_cpu, "a granted node has granted exactly one child per CPU") \
	I(6, holds_counted, "a head's holds are its CPUs that hold or leave a place, at most its concurrency") \
	I(7, hold_by_granted_edge, "a CPU holds a place by one granted edge that leads to the head") \
	I(8, told_known, "a told edge is READY, GRANTED or in its CPU's inbox") \
	I(9, inbox_kicked, "a CPU with a bit in its inbox has a kick pending") \
	I(10, spent_not_picked, "a SPENT edge is granted only while a kick is pending") \
	I(11, order_exact, "an order holds exactly the READY edges that are not spent") \
	I(12, order_heap, "every heap is a leftist heap in key order") \
	I(13, servable_counted, "a node counts its servable edges") \
	I(14, able_told, "no edge is READY under a parent that was not told, none WAITING below an able child without reason") \
	I(15, time_accounted, "elapsed = used + idle + stolen on every CPU") \
	I(16, works_done, "no change is left to carry upwards") \
	I(17, claim_at_rest, "at rest there is no claim") \
	I(18, work_conserving, "at rest every parent edge of a shared node that has room and a child for it is told") \
	I(19, rank_at_rest, "at rest an edge that outranks one that holds a place is told") \
	I(20, spent_has_event, "a SPENT edge waits for an event") \
	I(21, sums, "the shares of a reservation or uniform node add up to its sum") \
	I(22, busy_at_rest, "at rest no CPU idles whose root could use it") \
	I(23, decided_at_rest, "at rest another decision would change nothing") \
	I(24, rounds_counted, "a node with rounds counts the children that want the CPU, and their importance") \
	I(25, highest_level_runs, "no child of a time-sharing node waits while one of a lower level has a CPU that it could use") \
	I(26, shares_counted, "a fair node not by start tags has the weight of the children that want the CPU or are ahead") \
	I(27, eligible, "an eevdf node's order has who is eligible, or the first one to be so alone") \
	I(28, budget_kept, \
	  "what is left of a budget is at most one and the floor, what is owed at most one; its share is that of what it is now, " \
	  "which feedback keeps between what was asked for and the period, and what grows within the cap") \
	I(29, claims_kept, "the deadlines that a uniform node keeps for a child are in order, and what is left until them within bounds")
#define TIERCE_ENUM(number, name, text) TIERCE_I_##name = number,
enum tierce_invariant { TIERCE_HOLDS, TIERCE_INVARIANT_LIST(TIERCE_ENUM) };
#undef TIERCE_ENUM

static _Thread_local u32 check_at; /* the CPU, edge or node looked at last */

#define HOLDS(name, condition) \
	do { \
		if (!(condition)) \
			return TIERCE_I_##name; \
	} while (0)

/* Members of a heap, or 0xffffffff when it is none. Preorder without a stack: down left, else right, else up. */
static u32 heap_count(u32 root)
{
	u32 x = root, count = 0, from;
	if (!root)
		return 0;
	if (S.link[root].up)
		return 0xffffffff;
	for (;;) {
		u32 left = S.link[x].left, right = S.link[x].right;
		count++;
		if (count > 2 * TIERCE_EDGES || S.link[x].rank != S.link[right].rank + 1 ||
		    S.link[left].rank < S.link[right].rank)
			return 0xffffffff;
		if ((left && (S.link[left].up != x || link_before(left, x))) ||
		    (right && (S.link[right].up != x || link_before(right, x))))
			return 0xffffffff;
		if (left) {
			x = left;
			continue;
		}
		/* a leftist node without a left child has no right one */
		for (;;) {
			from = x;
			x = S.link[x].up;
			if (!x || from == root)
				return count;
			if (S.link[x].left == from && S.link[x].right) {
				x = S.link[x].right;
				break;
			}
			if (x == root && S.link[x].right == from)
				return count;
		}
	}
}

static bool edge_is_left(u32 edge)
{
	cpu_t *c = &S.cpu[S.edge[edge].on_cpu];
	u32 i;
	for (i = 0; i < c->leaves; i++)
		if (c->leave[i] == edge)
			return true;
	return false;
}

static bool edge_is_on_path(u32 edge, u32 cpu)
{
	u32 i;
	for (i = 0; i < S.cpu[cpu].path_length; i++)
		if (S.cpu[cpu].path[i] == edge)
			return true;
	return false;
}

/* It sleeps ahead of its share. */
static bool edge_is_ahead(u32 edge)
{
	edge_t *x = edge_at(edge);
	return x->kind == TIERCE_fair && x->state == TIERCE_WAITING && x->fair.counted &&
	       parent_of(edge)->param[FAIR_ORDER] == FAIR_EEVDF;
}

static u32 check_edge(u32 edge)
{
	edge_t *x = edge_at(edge);
	bool able = node_is_able(x->child), ordered = S.link[edge].rank != 0;
	if (x->state == TIERCE_GRANTED)
		HOLDS(path_granted, x->on_cpu < S.cpus && (edge_is_on_path(edge, x->on_cpu) || edge_is_left(edge)));
	if (!edge_is_ahead(edge))
		HOLDS(order_exact, ordered == (x->parent && x->state == TIERCE_READY && !(x->flags & EDGE_SPENT)));
	if (!(x->flags & EDGE_CROSSING) || !(S.inbox[x->cpu].bits >> x->bit & 1)) /* else its CPU has yet to look */
		HOLDS(servable_counted, edge_is_servable(edge) == !!(x->flags & EDGE_COUNTED));
	if (x->flags & EDGE_SPENT) {
		HOLDS(spent_has_event, S.link[TIERCE_EDGES + edge].rank != 0);
		if (x->state == TIERCE_GRANTED && !edge_is_left(edge))
			HOLDS(spent_not_picked, S.cpu[x->on_cpu].kick_pending || S.cpu[x->on_cpu].outside);
	}
	if (x->flags & EDGE_HEAD) {
		u32 cpu = x->cpu;
		if (x->told && (x->flags & EDGE_CROSSING))
			HOLDS(told_known, x->state != TIERCE_WAITING || (S.inbox[cpu].bits >> x->bit & 1));
		if (x->told && !(x->flags & EDGE_CROSSING))
			HOLDS(told_known, x->state != TIERCE_WAITING);
		if (!x->told)
			HOLDS(able_told, x->state != TIERCE_READY);
	} else {
		if (x->state == TIERCE_READY)
			HOLDS(able_told, able);
		if (x->state == TIERCE_WAITING)
			HOLDS(able_told, !able || (x->flags & EDGE_SHUT));
	}
	return TIERCE_HOLDS;
}

static u32 check_budget(u32 edge)
{
	edge_t *x = edge_at(edge);
	s64 budget_ns = (s64)x->param[RESERVATION_BUDGET];
	if (x->kind != TIERCE_reservation)
		return TIERCE_HOLDS;
	HOLDS(budget_kept, x->reservation.share == reservation_share((u64)budget_ns, x->param[RESERVATION_PERIOD]));
	HOLDS(budget_kept,
	      x->reservation.remaining_ns <= budget_ns + (s64)S.floor_ns && x->reservation.remaining_ns >= -budget_ns);
	if (!(x->variant & RESERVATION_FED))
		return TIERCE_HOLDS;
	HOLDS(budget_kept, x->reservation.asked_ns <= (u64)budget_ns && (u64)budget_ns <= x->param[RESERVATION_PERIOD]);
	HOLDS(budget_kept, !(x->flags & EDGE_SPENT) || x->reservation.remaining_ns <= (s64)S.floor_ns);
	return TIERCE_HOLDS;
}

static u32 check_claims(u32 edge)
{
	edge_t *x = edge_at(edge);
	u32 i, later = 0;
	if (x->kind != TIERCE_uniform)
		return TIERCE_HOLDS;
	HOLDS(claims_kept, x->uniform.left_ns <= (s64)UNIFORM_AHEAD && x->uniform.left_ns >= -2 * (s64)UNIFORM_AHEAD);
	for (i = 0; i < UNIFORM_KEPT; i++) {
		u64 kept = x->uniform.kept[i];
		HOLDS(claims_kept, !i || (s64)x->uniform.kept[i - 1] < (s64)kept || kept == UNIFORM_NONE);
		later += kept_is_later(kept);
		HOLDS(claims_kept, later || kept_ticks(kept) >> 63);
	}
	return TIERCE_HOLDS;
}

static u32 check_shares(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, order = n->order, later = heap_count(n->share.later), ahead = heap_count(n->share.ahead);
	u64 weight = 0;
	for (edge = 1; edge < S.fresh_edge; edge++) {
		edge_t *x = edge_at(edge);
		if (x->parent != node || !x->child || !(x->flags & EDGE_ATTACHED))
			continue;
		weight += x->fair.counted;
		HOLDS(shares_counted, x->fair.counted == (x->state != TIERCE_WAITING || link_at(edge)->rank ? x->param[0] : 0));
		if (edge_is_ahead(edge))
			ahead--;
		else if (x->state == TIERCE_READY && link_at(edge)->rank && edge != order && !eevdf_is_eligible(edge, n->clock))
			later--;
	}
	HOLDS(shares_counted, weight == n->share.weight && !ahead);
	HOLDS(order_heap, n->order || !n->share.later);
	HOLDS(eligible, !later || (later <= TIERCE_EDGES && order && eevdf_is_eligible(order, n->clock)));
	return TIERCE_HOLDS;
}

static u32 check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, counted = 0, ordered = 0, granted = 0, heap, cpu, holds = 0, active = 0, weight = 0;
	bool rounds = n->kind == TIERCE_i_plus_pi || n->kind == TIERCE_multiburst;
	u64 sum = 0;
	if (n->kind != TIERCE_TASK) {
		for (edge = 1; edge < S.fresh_edge; edge++) {
			if (S.edge[edge].parent != node || !S.edge[edge].child || !(S.edge[edge].flags & EDGE_ATTACHED))
				continue;
			counted += !!(S.edge[edge].flags & EDGE_COUNTED);
			ordered += S.link[edge].rank != 0;
			granted += S.edge[edge].state == TIERCE_GRANTED && !edge_is_left(edge);
			if (n->kind == TIERCE_reservation)
				sum += S.edge[edge].reservation.share;
			if (n->kind == TIERCE_uniform)
				sum += S.edge[edge].param[UNIFORM_RATE];
			if (rounds && S.edge[edge].state != TIERCE_WAITING) {
				active++;
				weight += (u32)S.edge[edge].param[0];
				HOLDS(rounds_counted, S.edge[edge].burst.active);
			}
		}
		HOLDS(servable_counted, counted == n->servable);
		HOLDS(sums, sum == n->sum && sum <= SHARE_ONE);
		HOLDS(rounds_counted, active == n->rounds.active && weight == n->rounds.weight);
		heap = heap_count(n->order);
		HOLDS(order_heap, heap != 0xffffffff);
		for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
			u32 more = heap_count(S.row[n->row].order[cpu]);
			HOLDS(order_heap, more != 0xffffffff);
			heap += more;
		}
		if (n->kind == TIERCE_fair && n->param[FAIR_ORDER] != FAIR_START_TAG) {
			u32 broken = check_shares(node);
			if (broken)
				return broken;
			heap += heap_count(n->share.later) + heap_count(n->share.ahead);
		}
		HOLDS(order_exact, heap == ordered);
		if (!n->row)
			HOLDS(one_child_per_cpu, granted <= 1);
	}
	for (cpu = 0; n->row && cpu < S.cpus; cpu++) {
		u32 hold = S.row[n->row].hold[cpu], by = S.row[n->row].edge[cpu];
		holds += hold != TIERCE_HOLD_FREE;
		if (hold == TIERCE_HOLD_EDGE)
			HOLDS(hold_by_granted_edge, S.edge[by].child == node && S.edge[by].state == TIERCE_GRANTED &&
							S.edge[by].on_cpu == cpu && edge_is_on_path(by, cpu));
	}
	if (n->row) {
		HOLDS(holds_counted, holds == n->holds);
		HOLDS(holds_counted, holds <= n->concurrency);
	}
	return TIERCE_HOLDS;
}

/* Is a CPU that could run this READY edge given to one of a lower level, and nobody about to decide anew? */
static u32 check_level(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge), *y;
	u32 other;
	if (!x->parent || parent_of(edge)->kind != TIERCE_time_sharing || x->state != TIERCE_READY)
		return TIERCE_HOLDS;
	for (other = 1; other < S.fresh_edge; other++) {
		y = edge_at(other);
		if (y->parent != x->parent || !y->child || y->state != TIERCE_GRANTED || (y->flags & EDGE_LEFT))
			continue;
		if (S.cpu[y->on_cpu].kick_pending || S.cpu[y->on_cpu].outside || !S.cpu[y->on_cpu].online)
			continue;
		if ((x->flags & EDGE_LOCAL) && x->cpu != y->on_cpu)
			continue;
		if (rest || !parent_of(edge)->row) /* CPUs of a shared node decide one after the other */
			HOLDS(highest_level_runs, level_of(x->levels.key) <= level_of(y->levels.key));
	}
	return TIERCE_HOLDS;
}

static u32 check_cpu(u32 cpu)
{
	cpu_t *c = &S.cpu[cpu];
	u32 i, other;
	for (i = 0; i < c->path_length; i++) {
		u32 edge = c->path[i];
		HOLDS(path_granted, S.edge[edge].state == TIERCE_GRANTED && S.edge[edge].on_cpu == cpu);
		if (i)
			HOLDS(path_connected, S.edge[edge].parent == S.edge[c->path[i - 1]].child);
		else
			HOLDS(path_connected, edge == c->root_edge);
	}
	if (c->task) {
		HOLDS(one_task_per_cpu, c->path_length && S.edge[c->path[c->path_length - 1]].child == c->task);
		for (other = 0; other < S.cpus; other++)
			HOLDS(one_cpu_per_task, other == cpu || S.cpu[other].task != c->task);
	} else {
		HOLDS(one_task_per_cpu, !c->path_length || c->kick_pending || !S.quiet);
	}
	if (S.inbox[cpu].bits)
		HOLDS(inbox_kicked, c->kick_pending);
	HOLDS(works_done, !S.domain[cpu].works);
	HOLDS(order_heap, heap_count(S.domain[cpu].events) != 0xffffffff);
	HOLDS(time_accounted, c->charged_ns - S.begin_ns == c->used_ns + c->idle_ns + c->stolen_ns);
	return TIERCE_HOLDS;
}

/* At rest: no kick pending, nobody leaving. */
static u32 check_rest(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, cpu, room;
	if (!n->row)
		return TIERCE_HOLDS;
	HOLDS(claim_at_rest, !n->claim_edge);
	room = head_room(node, TIERCE_CPUS) > 0;
	for (edge = n->first_parent; edge; edge = S.edge[edge].next_parent) {
		if ((S.edge[edge].flags & (EDGE_CROSSING | EDGE_SHUT)) != EDGE_CROSSING)
			continue;
		cpu = S.edge[edge].cpu;
		if (S.row[n->row].hold[cpu] != TIERCE_HOLD_FREE || !S.cpu[cpu].online || S.cpu[cpu].outside)
			continue;
		if (n->kind == TIERCE_TASK && !(n->allowed >> cpu & 1))
			continue;
		if (room && head_has_child(node, cpu))
			HOLDS(work_conserving, S.edge[edge].told);
		if (!room)
			HOLDS(rank_at_rest, S.edge[edge].told || !head_outranks(node, edge, cpu));
	}
	return TIERCE_HOLDS;
}

TIERCE_FN u32 graph_check(u32 rest)
{
	u32 id, broken, cpu;
	for (cpu = 0; cpu < S.cpus; cpu++) {
		u32 root = S.cpu[cpu].root_edge;
		check_at = cpu;
		broken = check_cpu(cpu);
		if (broken)
			return broken;
		if (rest && root && S.cpu[cpu].online && !S.cpu[cpu].outside) {
			HOLDS(busy_at_rest, S.cpu[cpu].task || !edge_is_servable(root));
			walk(cpu, S.cpu[cpu].charged_ns);
			S.cpu[cpu].shares = 0;
			HOLDS(decided_at_rest, path_same(cpu));
		}
	}
	HOLDS(works_done, !S.domain[TIERCE_SHARED].works);
	for (id = 1; id < S.fresh_edge; id++) {
		if (!S.edge[id].child || !(S.edge[id].flags & EDGE_ATTACHED))
			continue;
		check_at = id;
		broken = check_edge(id);
		if (!broken)
			broken = check_budget(id);
		if (!broken)
			broken = check_claims(id);
		if (!broken)
			broken = check_level(id, rest);
		if (broken)
			return broken;
	}
	for (id = 1; id < S.fresh_node; id++) {
		if (S.node[id].kind == TIERCE_FREE || S.node[id].domain == TIERCE_NODOMAIN)
			continue;
		check_at = id;
		broken = check_node(id);
		if (!broken && rest)
			broken = check_rest(id);
		if (broken)
			return broken;
	}
	return TIERCE_HOLDS;
}
