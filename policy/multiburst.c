/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * multiburst: rounds of bursts, of which a child may take several in a round. One regulator keeps the rounds at their set
 * point; who wakes in a round gets a part of what is left of it, as soon as it asks for.
 *
 * Example, set point 6 ms, a, b, c of equal importance, c after-burst: rounds of c, a, b with 2 ms each. c sleeps after 1 ms:
 * the round took 5 ms. The next is to take 5 + 2 * 1 ms: a and b get 3.5 ms each, and of the one after that 3. There, 1 ms into
 * a's burst, c wakes. 5 ms are left, of which c gets a third, 1.667; what is left to a and b shrinks by as much, to 1.333 and 2.
 * So a ends, c runs, b runs, and the round takes 6 ms.
 *
 * With a_i the importance of child i relative to all that wanted the CPU when the round began, T the set point, t(k) the length
 * of round k, e(k) = T - t(k):
 *	c(k) = c(k-1) + 2 e(k-1) - e(k-2)
 *	b_i(k) = a_i (t(k-1) + c(k)), within least_burst and largest_burst
 * Both poles of the loop are 0: what disturbed one round is made up for in the next and forgotten in the one after that.
 *
 * What is left of the bursts of a round shrinks for all when one wakes: `scale` of the node is the product of these factors, in
 * 2^-28; a child's rest is brought to it when its burst begins, goes on, or somebody looks at it.
 *
 * Rules
 *   1. In each round every child that wanted the CPU when it began has a burst, in the order of the round before. A round
 *      ends when no child that wants the CPU has anything left of its burst, and when none wants it.
 *   2. Who blocks keeps what is left of its burst until the round ends.
 *   3. Who wakes without a burst in the round under way gets its part of what is left of the set point, and what is left to
 *      the others shrinks by as much, at most to least_burst. Who has used its burst waits for the next round.
 *   4. Where a waking child goes in the order is up to its `wake`: immediate, it runs at once and who ran is next;
 *      after-burst, it is next when the burst under way ends; end-of-round, it runs after all others. Those of one kind run
 *      in the order in which they came, each for its burst; the first kind goes before the second.
 *   5. After a round in which a child woke, came or went, or parameters changed, the next is to last as long as the set point,
 *      and c is what is missing to it.
 *   6. c does not grow while every burst is at its upper limit.
 *   7. A child that lost the CPU without blocking keeps its turn and the rest of its burst. Rounds of a child alone follow each
 *      other without a gap.
 * Gives up: proportions over time for those who sleep: only who wants the CPU has shares; latency, of who waits behind wakers.
 * Conservation: the length of a round is the sum of what the children used in it. The order holds exactly the READY edges.
 * Source: Golchin 2017 (Miosix), Algorithms 7 and 8, equation 3.7. Shares are of the children that want the CPU and not of all,
 * so c is 0 at rest whoever sleeps; rule 5 in place of a next round as long as the last one, which with a waker in every round
 * nothing would keep at the set point.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_multiburst(P, V) \
	P(9, multiburst, "multiburst", 0, TIERCE_ROUNDS(V), \
	  V("importance", COUNT, 1, 10000, 100, "share of the round relative to the siblings that want the CPU") \
	  V("wake", CHOICE, 0, 2, 2, "immediate, after-burst, end-of-round: when it runs after a wake-up"))

#else
#include "rounds.h"

enum { MULTIBURST_WAKE = ROUND_IMPORTANCE + 1 }; /* edge parameter */
enum { WAKE_AT_ONCE, WAKE_AFTER_BURST, WAKE_END_OF_ROUND };

TIERCE_FN int multiburst_init(u32 node)
{
	node_at(node)->clock = 1;
	return TIERCE_OK;
}

TIERCE_FN int multiburst_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u32 active = x->burst.active;
	burst_goes(n, x);
	x->param[ROUND_IMPORTANCE] = AT(S.stage, ROUND_IMPORTANCE);
	x->param[MULTIBURST_WAKE] = AT(S.stage, MULTIBURST_WAKE);
	if (active)
		burst_comes(n, x);
	n->rounds.changed |= ROUND_CHANGED;
	return TIERCE_OK;
}
#define multiburst_attach multiburst_set

TIERCE_FN int multiburst_detach(u32 edge)
{
	parent_of(edge)->rounds.changed |= ROUND_CHANGED;
	return 0;
}

/* The regulator. */
static inline void multiburst_round(node_t *n)
{
	s64 length_ns = within(0, n->rounds.used_ns, ROUND_LONGEST);
	s64 error_ns = (s64)n->rounds.set_ns - length_ns;
	u64 set_ns = round_set_point(n);
	if (n->rounds.changed || set_ns != n->rounds.set_ns) {
		error_ns = (s64)set_ns - length_ns;
		n->rounds.correction_ns = error_ns;
	} else {
		n->rounds.correction_ns =
		    round_correction(n, n->rounds.correction_ns + 2 * error_ns - n->rounds.error_ns, length_ns);
	}
	n->rounds.error_ns = error_ns;
	round_next(n, length_ns + n->rounds.correction_ns, set_ns);
}

/* A rest as it is at this scale, given as it was at that one. */
static inline s64 multiburst_scaled(node_t *n, s64 rest_ns, u32 scale, u32 was)
{
	s64 least_ns = (s64)n->param[ROUND_LEAST], scaled_ns;
	if (rest_ns <= 0 || scale == was || !was)
		return rest_ns;
	scaled_ns = (s64)((u64)rest_ns * scale / was);
	return scaled_ns > least_ns ? scaled_ns : rest_ns < least_ns ? rest_ns : least_ns;
}

static inline void multiburst_rescale(node_t *n, edge_t *x)
{
	x->burst.left_ns = multiburst_scaled(n, x->burst.left_ns, n->rounds.scale, x->burst.scale);
	x->burst.scale = n->rounds.scale;
}

/* Its burst in this round, or the rest of it as it is now. */
static inline void multiburst_burst(node_t *n, edge_t *x)
{
	if (x->burst.round != n->clock) {
		s64 part_ns = round_part(n->rounds.target_ns, x->param[ROUND_IMPORTANCE], n->rounds.shares);
		s64 burst_ns = burst_within(n, part_ns);
		n->rounds.full += burst_ns == (s64)n->param[ROUND_LARGEST];
		burst_begin(n, x, burst_ns);
		x->burst.scale = ROUND_UNSCALED;
	}
	if (x->burst.scale != n->rounds.scale)
		multiburst_rescale(n, x);
}

/* Its turn has come; if it is one of the next round, that begins. */
TIERCE_FN int multiburst_begin(u32 edge)
{
	node_t *n = parent_of(edge);
	if (turn_round(edge_at(edge)->burst.turn) > n->clock)
		multiburst_round(n);
	multiburst_burst(n, edge_at(edge));
	return 0;
}

static inline void multiburst_grant(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	if (x->burst.round != n->clock || x->burst.scale != n->rounds.scale || turn_round(x->burst.turn) > n->clock)
		multiburst_begin(edge);
	turn_begins(x);
}

/* It wakes without a burst in a round of which `left_ns` are left to all. */
static inline void multiburst_joins(node_t *n, edge_t *x, s64 left_ns, u64 ran_ns)
{
	u64 importance = x->param[ROUND_IMPORTANCE];
	u32 others = n->rounds.weight, all = others + (u32)importance, scale;
	if (left_ns > 0) {
		scale = (u32)((u64)n->rounds.scale * others / all);
		n->rounds.scale = scale ? scale : 1;
		if (n->running && edge_at(n->running)->burst.round == n->clock) {
			edge_t *running = edge_at(n->running);
			running->burst.left_ns -= (s64)ran_ns;
			multiburst_rescale(n, running);
			running->burst.left_ns += (s64)ran_ns; /* which the charge takes off */
		}
	}
	burst_begin(n, x, burst_within(n, left_ns > 0 ? round_part(left_ns, importance, all) : 0));
}

TIERCE_FN int multiburst_woke(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u32 wake = (u32)x->param[MULTIBURST_WAKE], class = wake == WAKE_AT_ONCE	      ? ROUND_AT_ONCE
							   : wake == WAKE_AFTER_BURST ? ROUND_AFTER_BURST
										      : ROUND_IN_ORDER;
	u64 ran_ns = n->running ? uncharged_ns(n, now) : 0;
	bool here;
	if (!n->rounds.active)
		n->rounds.changed |= ROUND_OVER;
	here = !(n->rounds.changed & ROUND_OVER);
	if (n->running)
		burst_meets(n->running, ran_ns);
	if (here && x->burst.round == n->clock) {
		multiburst_burst(n, x);
		here = x->burst.left_ns > 0;
	} else if (here) {
		multiburst_joins(n, x, (s64)n->rounds.set_ns - n->rounds.used_ns - (s64)ran_ns, ran_ns);
	}
	x->burst.turn = turn_last(n, n->clock + !here, class);
	n->rounds.changed |= ROUND_CHANGED;
	return 0;
}

static inline void multiburst_request(u32 edge, u32 why, u64 now)
{
	if (why != TIERCE_RESTORED)
		multiburst_woke(edge, now);
	burst_comes(parent_of(edge), edge_at(edge));
	order_insert(edge, edge_at(edge)->burst.turn);
}

static inline void multiburst_release(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	order_remove(edge);
	if (turn_round(x->burst.turn) == parent_of(edge)->clock)
		multiburst_burst(parent_of(edge), x); /* it had one in this round, and keeps it */
	burst_goes(parent_of(edge), x);
}

static inline void multiburst_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED)
		order_insert(edge, edge_at(edge)->burst.turn);
	else
		burst_goes(parent_of(edge), edge_at(edge));
}

static inline bool multiburst_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	if (burst_forsaken(n, x))
		multiburst_begin(edge);
	if (burst_charge(n, x, ran_ns))
		burst_end(edge);
	return false;
}

#define multiburst_pick(node, first, running, now) turn_pick(first, running)
#define multiburst_before(a, b, now)		   turn_before(a, b)
#define multiburst_until			   burst_until
#define multiburst_depart nothing_depart
#define multiburst_arrive nothing_arrive
#define multiburst_ahead nothing_ahead
#define multiburst_clock nothing_clock
#define multiburst_first nothing_first
#define multiburst_lose nothing_lose
#define multiburst_event			   nothing_event
#define multiburst_announce			   nothing_announce
#define multiburst_deadline			   nothing_deadline
#define multiburst_tell nothing_tell
#define multiburst_check nothing_check
#define multiburst_check_node rounds_check_node

#endif
