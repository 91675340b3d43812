/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * i-plus-pi: rounds of bursts under two nested control loops. An integral regulator per child steers the CPU time that it uses
 * in a round to its share of it (I), one of the node steers the length of the rounds to their set point (PI).
 *
 * Example, set point 6 ms, a, b, c of equal importance: each round gives 2 ms to each. c's interrupts are off for 1 ms at the
 * end of its burst: it used 3 ms, the round took 7. The next correction is 0.9 * -1 ms, so the round's parts are (7 - 0.9)/3 =
 * 2.03 ms, and the bursts move by a quarter of what is missing: a and b to 2.008 ms, c to 1.758 ms. c sleeps: the pool has
 * changed, the next round begins anew with 3 ms for a and b.
 *
 * With a_i the importance of child i relative to all that want the CPU, T the set point, t_i(k) what it used in round k, t(k)
 * their sum, e(k) = T - t(k):
 *	c(k) = c(k-1) + K_R e(k-1) - K_R Z_R e(k-2)
 *	b_i(k) = b_i(k-1) + K_I (a_i (t(k-1) + c(k)) - t_i(k-1)), within least_burst and largest_burst
 *
 * Rules
 *   1. In each round every child that wanted the CPU when it began has one burst, in the order of the round before.
 *   2. Who blocks gives up the rest of its burst. Who wakes has a burst in the next round; when nobody wants the CPU, that is
 *      now.
 *   3. When children come, go, block or wake, or parameters change, the next round begins anew: c = 0, b_i = a_i T. The shares
 *      of those who block go to the others.
 *   4. c does not grow while every burst is at its upper limit.
 *   5. A child that lost the CPU without blocking keeps its turn and the rest of its burst. Rounds of a child alone follow each
 *      other without a gap: who comes waits for the rest of the burst under way.
 * Gives up: latency, up to two rounds for one who sleeps briefly; proportions, while a burst is at a limit.
 * Conservation: the length of a round is the sum of what the children used in it. The order holds exactly the READY edges.
 * Source: Golchin 2017 (Miosix), Algorithm 6, equations 3.3 to 3.6, with the set point of the inner loop that yields (3.6).
 * Gains for which the outer loop is unstable are for the plan to refuse; here every value within its range is safe.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_i_plus_pi(P, V) \
	P(8, i_plus_pi, "i-plus-pi", 0, TIERCE_ROUNDS(V) \
	  V("inner_gain", RATIO, 10486, 1038090, 262144, "K_I: gain of the error of a child's last burst") \
	  V("outer_gain", RATIO, 10486, 33554432, 943718, "K_R: gain of the error of the last round") \
	  V("outer_zero", RATIO, 10486, 1038090, 922747, "Z_R: part of that which is taken back a round later"), \
	  V("importance", COUNT, 1, 10000, 100, "share of the round relative to the siblings that want the CPU"))

#else
#include "rounds.h"

enum { I_PLUS_PI_INNER, I_PLUS_PI_OUTER, I_PLUS_PI_ZERO }; /* node parameters from the fifth on */

#define GAIN_SHIFT 20

TIERCE_FN int i_plus_pi_init(u32 node)
{
	node_at(node)->clock = 1;
	return TIERCE_OK;
}

TIERCE_FN int i_plus_pi_begin(u32 edge);

TIERCE_FN int i_plus_pi_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u32 active = x->burst.active;
	if (x->burst.round != n->clock && turn_round(x->burst.turn) == n->clock)
		i_plus_pi_begin(edge); /* in this round it has what it had */
	burst_goes(n, x);
	x->param[ROUND_IMPORTANCE] = AT(S.stage, ROUND_IMPORTANCE);
	if (active)
		burst_comes(n, x);
	n->rounds.changed |= ROUND_CHANGED;
	return TIERCE_OK;
}
#define i_plus_pi_attach i_plus_pi_set

TIERCE_FN int i_plus_pi_detach(u32 edge)
{
	parent_of(edge)->rounds.changed |= ROUND_CHANGED;
	return 0;
}

/* The outer loop. */
static inline void i_plus_pi_round(node_t *n)
{
	s64 length_ns = within(0, n->rounds.used_ns, ROUND_LONGEST), zero, target_ns;
	s64 error_ns = within(-ROUND_FAR_OFF, (s64)n->rounds.set_ns - length_ns, ROUND_FAR_OFF);
	u64 set_ns = round_set_point(n);
	n->rounds.fresh = n->rounds.changed || set_ns != n->rounds.set_ns;
	if (n->rounds.fresh) {
		n->rounds.correction_ns = 0;
		n->rounds.error_ns = 0;
		target_ns = (s64)set_ns;
	} else {
		zero = n->rounds.error_ns * (s64)n->more[I_PLUS_PI_ZERO] >> GAIN_SHIFT;
		zero = (error_ns - zero) * (s64)n->more[I_PLUS_PI_OUTER] >> GAIN_SHIFT;
		n->rounds.correction_ns = round_correction(n, n->rounds.correction_ns + zero, length_ns);
		n->rounds.error_ns = error_ns;
		target_ns = length_ns + n->rounds.correction_ns;
	}
	round_next(n, target_ns, set_ns);
}

/* Its turn has come; if it is one of the next round, that begins. */
TIERCE_FN int i_plus_pi_begin(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	s64 part_ns, burst_ns, used_ns;
	if (turn_round(x->burst.turn) > n->clock)
		i_plus_pi_round(n);
	part_ns = round_part(n->rounds.target_ns, x->param[ROUND_IMPORTANCE], n->rounds.shares);
	if (!n->rounds.fresh && x->burst.round + 1 == n->clock) {
		used_ns = (s64)x->burst.burst_ns - x->burst.left_ns;
		part_ns = within(-ROUND_OVERRUN, part_ns - used_ns, ROUND_OVERRUN);
		part_ns = (s64)x->burst.burst_ns + (part_ns * (s64)n->more[I_PLUS_PI_INNER] >> GAIN_SHIFT);
	}
	burst_ns = burst_within(n, part_ns);
	n->rounds.full += burst_ns == (s64)n->param[ROUND_LARGEST];
	burst_begin(n, x, burst_ns);
	return 0;
}

static inline void i_plus_pi_grant(u32 edge, u64 now)
{
	if (edge_at(edge)->burst.round != parent_of(edge)->clock ||
	    turn_round(edge_at(edge)->burst.turn) > parent_of(edge)->clock)
		i_plus_pi_begin(edge);
	turn_begins(edge_at(edge));
}

TIERCE_FN int i_plus_pi_woke(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	if (n->running)
		burst_meets(n->running, uncharged_ns(n, now));
	x->burst.turn = turn_last(n, n->clock + 1, ROUND_IN_ORDER);
	n->rounds.changed |= ROUND_CHANGED;
	return 0;
}

static inline void i_plus_pi_request(u32 edge, u32 why, u64 now)
{
	if (why != TIERCE_RESTORED)
		i_plus_pi_woke(edge, now);
	burst_comes(parent_of(edge), edge_at(edge));
	order_insert(edge, edge_at(edge)->burst.turn);
}

static inline void i_plus_pi_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
	burst_goes(parent_of(edge), edge_at(edge));
	parent_of(edge)->rounds.changed |= ROUND_CHANGED;
}

static inline void i_plus_pi_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED) {
		order_insert(edge, edge_at(edge)->burst.turn);
		return;
	}
	burst_goes(parent_of(edge), edge_at(edge));
	parent_of(edge)->rounds.changed |= ROUND_CHANGED;
}

static inline bool i_plus_pi_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	if (burst_forsaken(n, x))
		i_plus_pi_begin(edge);
	if (burst_charge(n, x, ran_ns))
		burst_end(edge);
	return false;
}

#define i_plus_pi_pick(node, first, running, now) turn_pick(first, running)
#define i_plus_pi_before(a, b, now)		  turn_before(a, b)
#define i_plus_pi_until				  burst_until
#define i_plus_pi_depart nothing_depart
#define i_plus_pi_arrive nothing_arrive
#define i_plus_pi_ahead nothing_ahead
#define i_plus_pi_clock nothing_clock
#define i_plus_pi_first nothing_first
#define i_plus_pi_lose nothing_lose
#define i_plus_pi_event				  nothing_event
#define i_plus_pi_announce			  nothing_announce
#define i_plus_pi_deadline			  nothing_deadline
#define i_plus_pi_tell nothing_tell
#define i_plus_pi_check nothing_check
#define i_plus_pi_check_node rounds_check_node

#endif
