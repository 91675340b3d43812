/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fair with order = "lottery": what is drawn.
 *
 * A child that begins to wait for a drawing gets the tag clock + E * quantum / weight, E exponentially distributed with mean
 * 1; the least tag wins, and the clock moves on to it. Of such variables each is the least with a chance proportional to its
 * weight, and what is left of the others then is as if drawn anew (they have no memory). So one number per child and
 * quantum does what a drawing among all of them would do.
 */
#ifndef TIERCE_LOTTERY_H
#define TIERCE_LOTTERY_H

#include "service.h"

#define LOTTERY_LN2	2977044472ull /* 2^32 ln 2 */
#define LOTTERY_SEED_AT 48	      /* in the state, above how many numbers there were */

/* 2^32 ln(1 + x / 2^32) for x below 2^32: off by less than 2.2e-7, in parts of 1. */
static inline u64 lottery_log(u64 x)
{
	u64 sum = 46233254;
	sum = 236846903 - (sum * x >> 32);
	sum = 578422839 - (sum * x >> 32);
	sum = 970224670 - (sum * x >> 32);
	sum = 1409789566 - (sum * x >> 32);
	sum = 2145214987 - (sum * x >> 32);
	sum = 4294886286 - (sum * x >> 32);
	return sum * x >> 32;
}

/* The next number of the node's sequence: splitmix64, which counts, from 0 on when the seed is a new one. */
static inline u64 lottery_number(node_t *n)
{
	u64 z;
	if (n->tail >> LOTTERY_SEED_AT != n->param[FAIR_SEED])
		n->tail = n->param[FAIR_SEED] << LOTTERY_SEED_AT;
	z = ++n->tail * 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

/* 2^32 E, from E = -ln(u) with u = (1 + x) / 2^(1 + zeros): x from the upper half of a number, zeros those before the first one
 * in its lower half, at most 31. */
static inline u64 lottery_exponential(node_t *n)
{
	u64 number = lottery_number(n), lower = number & 0xffffffff, zeros = 1;
	u32 step;
	for (step = 16; step; step >>= 1) {
		if (lower >> (32 - step))
			continue;
		lower <<= step;
		zeros += step;
	}
	return zeros * LOTTERY_LN2 - lottery_log(number >> 32);
}

/* What it used of the quantum within which it stopped wanting the CPU; else all. */
static inline u64 lottery_used_ns(u32 edge)
{
	u64 quantum_ns = parent_of(edge)->param[FAIR_QUANTUM];
	s64 rest_ns = edge_at(edge)->fair.quantum_ns;
	if (rest_ns <= 0)
		return quantum_ns;
	return (u64)rest_ns < quantum_ns ? quantum_ns - (u64)rest_ns : 1;
}

/* It waits for a drawing and has used as much of its last quantum. */
TIERCE_FN int lottery_draw(u32 edge, u64 used_ns)
{
	node_t *n = parent_of(edge);
	u64 drawn = lottery_exponential(n);
	u64 random_ns = (drawn >> 32) * used_ns + scale(used_ns, drawn & 0xffffffff);
	edge_at(edge)->fair.tag = n->clock + 1 + (random_ns << EEVDF_UNIT) / edge_at(edge)->param[FAIR_WEIGHT];
	return 0;
}

#endif
