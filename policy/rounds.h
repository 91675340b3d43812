/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What i-plus-pi and multiburst share: rounds. In each of them every child that wants the CPU has a burst, its part of what
 * the round is to last; a regulator, run once when a round begins, sees to it that rounds last as long as their set point.
 *
 * The order is by turns: the round in which the child has a burst, a class, a place in order of arrival. When the burst is
 * used the turn is in the next round. So a round ends of itself: when the first turn is one of the next.
 *
 * Nothing loops over the children. What a round gives to each is left with the node (`target_ns` for all, `shares`, whether
 * it begins anew), and a child's burst is found when it is needed first. Two 64-bit divisions per child and round at most.
 *
 * Ranges, all in signed 64 bits: an importance is below 2^14, a sum of them below 2^31, a burst below 2^34 ns; a round is
 * cut at 2^48 ns, its error at 2^36 ns, an overrun at 2^40 ns, a gain of 2^25 in units of 2^-20.
 */
#ifndef TIERCE_ROUNDS_H
#define TIERCE_ROUNDS_H

#include "check.h"

enum { ROUND_SET, ROUND_BURST, ROUND_LEAST, ROUND_LARGEST }; /* node parameters */
enum { ROUND_IMPORTANCE };				     /* edge parameter */

#define ROUND_LONGEST  (1ll << 48)
#define ROUND_FAR_OFF  (1ll << 36)
#define ROUND_OVERRUN  (1ll << 40)
#define ROUND_UNSCALED (1u << 28)
#define ROUND_CHANGED  1u /* the next round begins anew */
#define ROUND_OVER     2u /* nobody wanted the CPU any more: this one has ended */

/* A turn: round, class, place. Beyond the last place the lower edge id goes first. */
#define ROUND_PLACES 0xfffffu
enum { ROUND_AT_ONCE, ROUND_UNDER_WAY, ROUND_AFTER_BURST, ROUND_IN_ORDER };

static inline s64 within(s64 least, s64 x, s64 most)
{
	return x < least ? least : x > most ? most : x;
}

static inline u64 turn_round(u64 turn)
{
	return turn >> 22;
}

/* The last place of that class in that round, which is this one or the next. */
static inline u64 turn_last(node_t *n, u64 round, u32 class)
{
	u32 *places = round == n->clock ? &n->rounds.here : &n->rounds.next;
	u32 place = *places;
	if (place < ROUND_PLACES)
		*places = place + 1;
	return round << 22 | (u64) class << 20 | place;
}

static inline s64 burst_within(node_t *n, s64 burst_ns)
{
	return within((s64)n->param[ROUND_LEAST], burst_ns, (s64)n->param[ROUND_LARGEST]);
}

/* A part of a time: `importance` of `sum`. */
static inline s64 round_part(s64 ns, u64 importance, u32 sum)
{
	return sum ? (s64)((u64)ns * importance / sum) : ns;
}

static inline u64 round_set_point(node_t *n)
{
	u64 set_ns = n->param[ROUND_SET];
	if (!set_ns)
		set_ns = n->param[ROUND_BURST] * n->rounds.active;
	return set_ns > ROUND_LONGEST ? ROUND_LONGEST : set_ns;
}

/* b_c as the regulator wants it: it does not grow while nobody can have more, takes no more than a round was long, and gives
 * no more than all can have. */
static inline s64 round_correction(node_t *n, s64 wanted_ns, s64 length_ns)
{
	if (wanted_ns > n->rounds.correction_ns && n->rounds.members && n->rounds.full >= n->rounds.members)
		wanted_ns = n->rounds.correction_ns;
	return within(-length_ns, wanted_ns, (s64)(n->param[ROUND_LARGEST] * n->rounds.active));
}

/* The next round, when the regulator has read what it needs of the last one. */
static inline void round_next(node_t *n, s64 target_ns, u64 set_ns)
{
	n->clock++;
	n->rounds.target_ns = within(0, target_ns, ROUND_LONGEST);
	n->rounds.set_ns = set_ns;
	n->rounds.shares = n->rounds.weight;
	n->rounds.members = n->rounds.active;
	n->rounds.used_ns = 0;
	n->rounds.full = 0;
	n->rounds.scale = ROUND_UNSCALED;
	n->rounds.here = n->rounds.next;
	n->rounds.next = 0;
	n->rounds.changed = 0;
}

/* The edge has this burst in this round. */
static inline void burst_begin(node_t *n, edge_t *x, s64 burst_ns)
{
	x->burst.round = n->clock;
	x->burst.burst_ns = (u64)burst_ns;
	x->burst.left_ns = burst_ns;
	x->burst.scale = n->rounds.scale;
}

/* A child that nobody waits for has used its burst and `beyond_ns` more: rounds follow each other without a gap. */
static inline void round_alone(node_t *n, edge_t *x, u64 beyond_ns)
{
	u64 set_ns = round_set_point(n);
	s64 burst_ns;
	round_next(n, (s64)set_ns, set_ns);
	n->rounds.correction_ns = 0;
	n->rounds.error_ns = 0;
	n->rounds.fresh = 1;
	burst_ns = burst_within(n, round_part((s64)set_ns, x->param[ROUND_IMPORTANCE], n->rounds.shares));
	burst_begin(n, x, burst_ns);
	n->rounds.used_ns = (s64)(beyond_ns % (u64)burst_ns);
	x->burst.left_ns = burst_ns - n->rounds.used_ns;
	x->burst.turn = turn_last(n, n->clock, ROUND_UNDER_WAY);
}

/* It ran. Returns whether its burst is over. */
static inline bool burst_charge(node_t *n, edge_t *x, u64 ran_ns)
{
	s64 used_ns = n->rounds.used_ns + (s64)ran_ns, left_ns = x->burst.left_ns - (s64)ran_ns;
	n->rounds.used_ns = used_ns < ROUND_LONGEST ? used_ns : ROUND_LONGEST;
	x->burst.left_ns = left_ns > -ROUND_OVERRUN ? left_ns : -ROUND_OVERRUN;
	return x->burst.left_ns <= 0;
}

/* Its burst is over: if others wait its turn comes in the next round, unless it has one by now. */
TIERCE_FN int burst_end(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(x->parent);
	if (!node_contended(x->parent))
		round_alone(n, x, (u64)-x->burst.left_ns);
	else if (turn_round(x->burst.turn) <= x->burst.round)
		x->burst.turn = turn_last(n, n->clock + (x->burst.round == n->clock), ROUND_IN_ORDER);
	return 0;
}

/* Another child comes while this one has run for `ran_ns` since it was charged: if nobody waited for it, it is where it would
 * be if it were charged now. */
static inline void burst_meets(u32 edge, u64 ran_ns)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(x->parent);
	if (node_contended(x->parent) || x->burst.left_ns > (s64)ran_ns)
		return;
	round_alone(n, x, ran_ns - (u64)x->burst.left_ns);
	x->burst.left_ns += (s64)ran_ns; /* which the charge takes off */
	n->rounds.used_ns -= (s64)ran_ns;
}

/* Whoever was to replace it did not for as long as a burst: it begins its next one. */
static inline bool burst_forsaken(node_t *n, edge_t *x)
{
	return x->burst.left_ns <= -(s64)n->param[ROUND_BURST] && node_contended(x->parent);
}

static inline void burst_comes(node_t *n, edge_t *x)
{
	if (x->burst.active)
		return;
	x->burst.active = 1;
	n->rounds.active++;
	n->rounds.weight += (u32)x->param[ROUND_IMPORTANCE];
}
static inline void burst_goes(node_t *n, edge_t *x)
{
	if (!x->burst.active)
		return;
	x->burst.active = 0;
	n->rounds.active--;
	n->rounds.weight -= (u32)x->param[ROUND_IMPORTANCE];
}

static inline bool turn_before(u32 a, u32 b)
{
	u64 x = edge_at(a)->burst.turn, y = edge_at(b)->burst.turn;
	return x < y || (x == y && a < b);
}

static inline u32 turn_pick(u32 first, u32 running)
{
	return turn_before(first, running) ? first : running;
}

/* A turn that was in order is under way now, and stays before those who come. */
static inline void turn_begins(edge_t *x)
{
	if (x->burst.turn >> 20 & 3)
		x->burst.turn = (x->burst.turn & ~(3ull << 20)) | ROUND_UNDER_WAY << 20;
}

/* Until the burst is over. One that is, of somebody who is not replaced, is looked at again a burst later. */
static inline u64 burst_until(u32 edge, u64 now)
{
	s64 left_ns = edge_at(edge)->burst.left_ns;
	if (!node_contended(edge_at(edge)->parent))
		return TIERCE_NEVER;
	return now + (left_ns > 0 ? (u64)left_ns : parent_of(edge)->param[ROUND_BURST]);
}

static inline u32 rounds_check_node(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, active = 0, weight = 0;
	for (edge = 1; edge < S.fresh_edge; edge++) {
		edge_t *x = edge_at(edge);
		if (!is_child_of(edge, node) || x->state == TIERCE_WAITING)
			continue;
		active++;
		weight += (u32)x->param[ROUND_IMPORTANCE];
		HOLDS(rounds_counted, x->burst.active);
	}
	HOLDS(rounds_counted, active == n->rounds.active && weight == n->rounds.weight);
	return TIERCE_HOLDS;
}

#endif
