/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * constraint: children take turns as below round-robin, except those with a time constraint: these go first, the earliest
 * deadline before others. A child asks for so much work until an absolute deadline and is told at once whether the node is sure
 * to have it, by what it is promised itself: `budget` in every `period`. A yes is never taken back.
 *
 * Example: budget 4 ms, period 10 ms; a, b and c always want the CPU. At 0 a asks for 5 ms until 36: in 36 ms the node is sure of
 * 12 at least (none in the first 12, when periods begin just so, then 4 of every 10). Yes; 7 are left. b asks for 8 until 36: no;
 * for 3 until 26, when 8 are sure: yes. c asks for 5 until 50: 16 are sure and 8 taken, yes. When the node has the CPU b runs
 * for 3 ms, a for 5, c for 5, and then all three in turns.
 *
 * Rules
 *   1. A child without a time constraint has its turns as in round-robin. A time constraint is a turn, too: its deadline is its
 *      place, before all others; the rest of its work is the quantum. Of equal deadlines the running one goes on, else the lower
 *      edge id goes first.
 *   2. A child that asks for `work` until d has it if for d, and for each later deadline of a time constraint, all work that is
 *      left and due by then, its own included, is no more than what the node is sure to receive until then.
 *   3. Sure until d: the least that `budget` in every `period` supplies in [begin, d], wherever the periods begin, less what the
 *      node has received since `begin`, less the port's timer floor for each node above. `begin` is when the first of the time
 *      constraints that follow each other without a gap was accepted; it is set to now when a later one fits only from there.
 *   4. A time constraint ends when its work is used up, when its deadline is over, when the child says so, or when the child
 *      blocks, yields or is detached. What it may want further has turns, from the end of the order. A child that asks while it sleeps
 *      is told whether it would have it if it woke up now. It has it when it wakes up, if that still fits then; until then, or until the
 *      deadline, its work counts for others who ask.
 *   5. Refused by name: more than 8 of a node, a second one of a child, a deadline that is over, and the end
 *      of one that is not there. Work and the time until the deadline are at most an hour.
 *   6. Only tasks of one CPU are heard, and not through edges with a condition: those would be shut without asking.
 *   7. New parameters of the node hold for what is asked from then on, and nothing before counts then: `begin` is now.
 *
 * Why a yes stays true. As long as a child with a time constraint wants the CPU so does the node, and such children have followed
 * each other since `begin`: of [begin, d] it gets what is sure, and what it has not received yet is to come. The earliest deadline
 * goes first, so all of that goes to what is due by d as long as any such work is left: what fits is done in time. Another is
 * accepted later only if everything due from its deadline on still fits with it; what is due before does not wait for it. From
 * any `begin` at which the node has begun to want the CPU without a gap up to now the bound is a true one, so it may be chosen anew.
 *
 * Gives up: promises to who asks for nothing. How late timers are is not known here: what the node's parents were overrun by
 * before `begin` comes off later; leave as much between what the node is promised and its `budget`.
 * Conservation: the order holds exactly the READY edges; work under time constraints comes off what was accepted, to the ns.
 * Source: Rialto (Jones, Rosu & Rosu 1997) as in HLS 6.2.4; the supply of a periodic resource: Shin & Lee 2003.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_constraint(P, V) \
	P(12, constraint, "constraint", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "turn of each child without a time constraint") \
	  V("budget", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "guaranteed supply of the node itself in every period") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "period of that supply"), )

#else
#include "check.h"

enum { CONSTRAINT_QUANTUM, CONSTRAINT_BUDGET, CONSTRAINT_PERIOD }; /* node parameters; the first is round-robin's */
enum { CONSTRAINT_WORK, CONSTRAINT_DEADLINE };			   /* staged with the message */

#define CONSTRAINT_TURNS (1ull << 63) /* turns without a time constraint, beyond all deadlines */

static inline int constraint_init(u32 node)
{
	node_at(node)->clock = CONSTRAINT_TURNS;
	return TIERCE_OK;
}

TIERCE_FN int constraint_attach(u32 edge, u64 now)
{
	edge_at(edge)->queue.turn = CONSTRAINT_TURNS;
	return round_robin_attach(edge, now);
}

static inline void constraint_detach(u32 edge)
{
	event_clear(edge);
}

static inline bool constraint_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (promise_is_late(x, now))
		promise_over(edge, ran_ns, 0, TIERCE_PERIOD_MAX, now);
	parent_of(edge)->constraints.received_ns += ran_ns;
	round_robin_charge(edge, ran_ns, now);
	if (x->promise.end_ns != TIERCE_NEVER && x->queue.turn >= CONSTRAINT_TURNS) /* its work is done */
		promise_over(edge, 0, 0, TIERCE_PERIOD_MAX, now);
	return false;
}

/* ---- what is accepted -------------------------------------------------------------------------------------------- */

/* Until when has this edge of the node's one? 0: it has none. */
static inline u64 constraint_until(u32 node, u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 until_ns = x->queue.turn;
	if (x->queue.asleep)
		until_ns = x->queue.due_ns;
	else if (x->state == TIERCE_WAITING || until_ns >= CONSTRAINT_TURNS)
		return 0;
	return x->parent == node && until_ns > now ? until_ns : 0;
}

/* A place in the node's list: the edge's last one, or one whose time constraint is over; TIERCE_CONSTRAINTS: none. */
TIERCE_FN u32 constraint_place(u32 node, u32 edge, u64 now)
{
	u32 i, other, place = TIERCE_CONSTRAINTS;
	for (i = ZERO; i < TIERCE_CONSTRAINTS && CAN_LOOP; i++) {
		other = AT(node_at(node)->constraints.edge, i);
		if (other == edge || (place == TIERCE_CONSTRAINTS && !constraint_until(node, other, now)))
			place = i;
		if (other == edge)
			break;
	}
	return place;
}

/* Work that is left and due by then. */
TIERCE_FN u64 constraints_due(u32 node, u64 by_ns, u64 now)
{
	u64 due_ns = 0, until_ns;
	u32 i, edge;
	for (i = ZERO; i < TIERCE_CONSTRAINTS && CAN_LOOP; i++) {
		edge = AT(node_at(node)->constraints.edge, i);
		until_ns = constraint_until(node, edge, now);
		if (until_ns && until_ns <= by_ns)
			due_ns +=
			    edge_at(edge)->queue.asleep ? edge_at(edge)->queue.work_ns : (u64)edge_at(edge)->queue.quantum_ns;
	}
	return due_ns;
}

/* Does a child with one want the CPU? */
TIERCE_FN int constraints_awake(u32 node, u64 now)
{
	u32 i, edge, awake = 0;
	for (i = ZERO; i < TIERCE_CONSTRAINTS && CAN_LOOP; i++) {
		edge = AT(node_at(node)->constraints.edge, i);
		awake |= !edge_at(edge)->queue.asleep && constraint_until(node, edge, now);
	}
	return awake != 0;
}

/* The least that the node's budget supplies in a window of that length: it may come at the very begin of the period before, and
 * at the very end of each one from there on. */
static inline u64 constraint_supply(node_t *n, u64 window_ns)
{
	u64 period_ns = n->param[CONSTRAINT_PERIOD], budget_ns = n->param[CONSTRAINT_BUDGET], idle_ns, within_ns;
	if (budget_ns >= period_ns)
		return window_ns;
	idle_ns = period_ns - budget_ns;
	if (window_ns <= idle_ns)
		return 0;
	window_ns -= idle_ns;
	within_ns = window_ns % period_ns;
	return window_ns / period_ns * budget_ns + (within_ns > idle_ns ? within_ns - idle_ns : 0);
}

/* Is the node, which has received so much since `begin_ns`, sure to do all in time, with what this edge asks for? */
TIERCE_FN int constraints_fit(u32 asks, u64 begin_ns, u64 received_ns, u64 now)
{
	u32 node = edge_at(asks)->parent, i, edge;
	node_t *n = node_at(node);
	u64 deadline_ns = edge_at(asks)->queue.due_ns, by_ns = deadline_ns;
	u64 used_ns = edge_at(asks)->queue.work_ns + received_ns + (n->level - 1) * S.floor_ns;
	for (i = ZERO; i <= TIERCE_CONSTRAINTS && CAN_LOOP; i++) {
		if (by_ns >= deadline_ns &&
		    constraints_due(node, by_ns, now) + used_ns > constraint_supply(n, by_ns - begin_ns))
			return false;
		edge = i < TIERCE_CONSTRAINTS ? AT(n->constraints.edge, i) : TIERCE_NONE;
		by_ns = constraint_until(node, edge, now);
	}
	return true;
}

/* Has there been somebody since `begin`, and as much promised all the time? */
static inline bool constraints_go_on(u32 node, u64 now)
{
	node_t *n = node_at(node);
	return constraints_awake(node, now) && n->constraints.budget_ns == n->param[CONSTRAINT_BUDGET] &&
	       n->constraints.period_ns == n->param[CONSTRAINT_PERIOD];
}

/* It has another turn from here on. */
TIERCE_FN int constraint_turn(u32 edge, u64 turn, u64 quantum_ns)
{
	edge_t *x = edge_at(edge);
	u32 ordered = order_link(edge)->rank;
	if (ordered)
		order_remove(edge);
	x->queue.turn = turn;
	x->queue.quantum_ns = (s64)quantum_ns;
	if (ordered)
		order_insert(edge, turn);
	return 0;
}

static inline void constraint_end(u32 edge)
{
	node_t *n = parent_of(edge);
	constraint_turn(edge, ++n->clock, n->param[CONSTRAINT_QUANTUM]);
}

/* Would it have what it asks for? 0: yes; 1: yes, if what is sure is counted from now on; else the error, negative. */
static inline int constraint_answer(u32 edge, u64 now)
{
	u32 node = edge_at(edge)->parent;
	if (constraint_place(node, edge, now) >= TIERCE_CONSTRAINTS)
		return -TIERCE_E_too_many_constraints;
	if (constraints_go_on(node, now) &&
	    constraints_fit(edge, node_at(node)->constraints.begin_ns,
			    node_at(node)->constraints.received_ns + uncharged_ns(node_at(node), now), now))
		return 0;
	return constraints_fit(edge, now, 0, now) ? 1 : -TIERCE_E_constraint_not_feasible;
}

/* It has that; or from its wake-up on, if it sleeps. */
TIERCE_FN int constraint_takes(u32 edge, u32 anew, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(x->parent);
	AT(n->constraints.edge, constraint_place(x->parent, edge, now) & (TIERCE_CONSTRAINTS - 1)) = edge;
	if (x->state == TIERCE_WAITING) {
		x->queue.asleep = 1;
		return 0;
	}
	if (anew) {
		n->constraints.begin_ns = now;
		n->constraints.received_ns = 0;
		n->constraints.budget_ns = n->param[CONSTRAINT_BUDGET];
		n->constraints.period_ns = n->param[CONSTRAINT_PERIOD];
	}
	promise_begins(x, (s64)x->queue.work_ns, x->queue.due_ns);
	event_set(edge, x->queue.due_ns);
	return 0;
}

static inline int constraint_begin(u32 edge, u64 now)
{
	u64 work_ns = AT(S.stage, CONSTRAINT_WORK), deadline_ns = AT(S.stage, CONSTRAINT_DEADLINE);
	edge_t *x = edge_at(edge);
	int fits;
	if (constraint_until(x->parent, edge, now))
		return TIERCE_E_constraint_already;
	if (deadline_ns <= now)
		return TIERCE_E_constraint_in_the_past;
	if (!work_ns || work_ns > TIERCE_PERIOD_MAX || deadline_ns - now > TIERCE_PERIOD_MAX)
		return TIERCE_E_parameter_out_of_range;
	x->queue.asleep = 0;
	x->queue.work_ns = work_ns;
	x->queue.due_ns = deadline_ns;
	fits = constraint_answer(edge, now);
	if (fits < 0) {
		x->queue.work_ns = 0;
		x->queue.due_ns = 0;
		return -fits;
	}
	constraint_takes(edge, (u32)fits, now);
	if (x->state != TIERCE_WAITING)
		constraint_turn(edge, deadline_ns, work_ns);
	return TIERCE_OK;
}

TIERCE_FN int constraint_tell(u32 edge, u32 kind, u64 now)
{
	if (kind == TIERCE_CONSTRAINT_BEGIN)
		return constraint_begin(edge, now);
	if (kind != TIERCE_CONSTRAINT_END)
		return TIERCE_E_not_understood;
	if (!constraint_until(edge_at(edge)->parent, edge, now))
		return TIERCE_E_no_constraint;
	promise_ends(edge_at(edge));
	if (edge_at(edge)->queue.asleep)
		edge_at(edge)->queue.asleep = 0;
	else
		constraint_end(edge);
	return TIERCE_OK;
}

/* Its deadline is over. One that ended earlier has left its event behind. */
static inline void constraint_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->state == TIERCE_WAITING || x->queue.turn > now)
		return;
	if (x->promise.end_ns <= now)
		promise_over(edge, 0, 0, TIERCE_PERIOD_MAX, now);
	constraint_end(edge);
}

/* Who has slept has no time constraint any more, but one that it asked for while it slept, if that still fits. */
static inline void constraint_request(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_RESTORED) {
		promise_ends(x);
		round_robin_joins(edge, now);
	}
	if (x->queue.asleep) {
		int fits = -1;
		x->queue.asleep = 0;
		if (x->queue.due_ns > now)
			fits = constraint_answer(edge, now);
		if (fits >= 0) {
			constraint_takes(edge, (u32)fits, now);
			x->queue.turn = x->queue.due_ns;
			x->queue.quantum_ns = (s64)x->queue.work_ns;
		}
	}
	order_insert(edge, x->queue.turn);
}

#define constraint_release  round_robin_release
#define constraint_pick	    round_robin_pick
#define constraint_before   round_robin_before
#define constraint_grant    round_robin_grant
#define constraint_revoke   round_robin_revoke
#define constraint_until    round_robin_until
#define constraint_set(edge, now) TIERCE_OK /* no parameters */
#define constraint_depart nothing_depart
#define constraint_arrive nothing_arrive
#define constraint_ahead nothing_ahead
#define constraint_clock nothing_clock
#define constraint_first nothing_first
#define constraint_lose	    nothing_lose
#define constraint_announce nothing_announce
#define constraint_deadline nothing_deadline
#define constraint_check_node nothing_check_node

static inline u32 constraint_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge);
	u32 i, places = 0;
	if (x->state == TIERCE_WAITING || x->queue.turn >= CONSTRAINT_TURNS)
		return TIERCE_HOLDS;
	for (i = 0; i < TIERCE_CONSTRAINTS; i++)
		places += parent_of(edge)->constraints.edge[i] == edge;
	HOLDS(constraints_listed, places == 1 && x->queue.quantum_ns > 0 && x->queue.quantum_ns <= (s64)TIERCE_PERIOD_MAX);
	HOLDS(constraints_listed, event_link(edge)->rank && event_link(edge)->key == x->queue.turn);
	return TIERCE_HOLDS;
}

#endif
