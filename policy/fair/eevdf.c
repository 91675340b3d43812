/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * fair with order = "eevdf": earliest eligible virtual deadline first; and with order = "stride" or "lottery", where everybody
 * is eligible, and first by tag.
 *
 * Virtual time advances by the CPU time of the node / the weight of those that share it, and each child's start tag by its
 * own CPU time / weight, both exactly: what a division leaves over is kept. Tag and clock tell what a child is owed:
 * lag = (clock - tag) * weight.
 *
 * `order` has who is eligible, by virtual deadline, `later` who is not yet, by start tag. If nobody is eligible, the first
 * of `later` waits in `order` instead, so that there is always one to be picked. `ahead` has who sleeps with a tag that the
 * clock has not reached: its weight counts until then, or it would leave its debt to the others. A child is in one heap at
 * a time. At most EEVDF_MOVES children change heaps in one operation; each has had a quantum since it did last.
 *
 * stride: all are in `order`, nobody sleeps in `ahead`. Who sleeps has in its tag, counted from FAIR_BEGIN, what that was
 * beyond the clock. lottery: tags and clock do not advance with time, but from one drawing to the next (lottery.c).
 */
#ifndef TIERCE_EEVDF_H
#define TIERCE_EEVDF_H

#include "service.h"

#define EEVDF_UNIT  10 /* tags count 2^-10 ns per unit of weight */
#define EEVDF_MOVES 64

#include "fair/lottery.c"

/* Not by start tags. */
static inline bool is_by_clock(const node_t *n)
{
	return PORT_HAS_PART(by_clock) && n->param[FAIR_ORDER] - FAIR_EEVDF <= FAIR_LOTTERY - FAIR_EEVDF;
}
static inline bool is_eevdf(const node_t *n)
{
	return n->param[FAIR_ORDER] == FAIR_EEVDF;
}
static inline bool is_stride(const node_t *n)
{
	return n->param[FAIR_ORDER] == FAIR_STRIDE;
}
static inline bool is_lottery(const node_t *n)
{
	return n->param[FAIR_ORDER] == FAIR_LOTTERY;
}

static inline bool eevdf_is_eligible(u32 edge, u64 clock)
{
	return edge_at(edge)->fair.quantum_ns > 0 || edge_at(edge)->fair.tag <= clock || !is_eevdf(parent_of(edge));
}

/* A quantum in virtual time of this edge. */
static inline u64 eevdf_stride(u32 edge)
{
	return (parent_of(edge)->param[FAIR_QUANTUM] << EEVDF_UNIT) / edge_at(edge)->fair.counted;
}

/* Of the quantum that is under way, or of the next one. */
static inline u64 eevdf_deadline(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (!is_eevdf(parent_of(edge)))
		return x->fair.tag;
	return x->fair.quantum_ns > 0 ? x->fair.begin : x->fair.tag + eevdf_stride(edge);
}

static inline bool eevdf_earlier(u32 a, u32 b, u64 clock)
{
	bool eligible = eevdf_is_eligible(a, clock);
	u64 x, y;
	if (eligible != eevdf_is_eligible(b, clock))
		return eligible;
	x = eligible ? eevdf_deadline(a) : edge_at(a)->fair.tag;
	y = eligible ? eevdf_deadline(b) : edge_at(b)->fair.tag;
	return x < y || (x == y && a < b);
}

/* Out of whichever heap it is in. */
static inline void eevdf_unlink(u32 edge)
{
	node_t *n = parent_of(edge);
	bool later = n->share.later == edge, ahead = n->share.ahead == edge;
	u32 rest;
	if (!order_link(edge)->rank)
		return;
	rest = heap_take(later || ahead ? edge : n->order, edge, TIERCE_ORDER);
	if (later)
		n->share.later = rest;
	else if (ahead)
		n->share.ahead = rest;
	else
		n->order = rest;
}

/* It shares the node's time no longer. */
static inline void eevdf_uncount(u32 edge)
{
	parent_of(edge)->share.weight -= edge_at(edge)->fair.counted;
	edge_at(edge)->fair.counted = 0;
}

/* The first of those that sleep ahead is so no more. */
static inline void eevdf_forget(node_t *n)
{
	u32 edge = n->share.ahead;
	n->share.ahead = order_out(edge, edge);
	eevdf_uncount(edge);
}

/* The clock has moved: who has become eligible comes into the order, who was ahead is so no more. */
static inline int eevdf_ripen(u32 node)
{
	node_t *n = node_at(node);
	u32 edge, i;
	for (i = ZERO; i < EEVDF_MOVES && n->share.ahead && CAN_LOOP; i++) {
		if (edge_at(n->share.ahead)->fair.tag > n->clock)
			break;
		eevdf_forget(n);
	}
	for (i = ZERO; i < EEVDF_MOVES && n->share.later && CAN_LOOP; i++) {
		edge = n->share.later;
		if (edge_at(edge)->fair.tag > n->clock && n->order)
			break;
		n->share.later = order_out(edge, edge);
		n->order = order_put(n->order, edge, eevdf_deadline(edge));
	}
	return 0;
}

/* It is the only one in the order. */
static inline void eevdf_alone(node_t *n, u32 edge)
{
	n->order = heap_put(0, edge, eevdf_deadline(edge), TIERCE_ORDER);
}

/* The order is not empty if anybody waits. */
TIERCE_FN int eevdf_fill(u32 node)
{
	node_t *n = node_at(node);
	u32 edge = n->share.later;
	if (n->order || !edge)
		return 0;
	n->share.later = heap_take(edge, edge, TIERCE_ORDER);
	eevdf_alone(n, edge);
	return 0;
}

/* A child waits. One that is not eligible is in the order only when it is alone there, and the first of its kind. */
TIERCE_FN int eevdf_wait(u32 edge)
{
	node_t *n = parent_of(edge);
	u32 first = n->order;
	bool later = first && !eevdf_is_eligible(edge, n->clock);
	if (!first) {
		eevdf_alone(n, edge);
		return 0;
	}
	if (!eevdf_is_eligible(first, n->clock) && eevdf_earlier(edge, first, n->clock)) {
		eevdf_alone(n, edge);
		edge = first;
		later = true;
	}
	if (later)
		n->share.later = heap_put(n->share.later, edge, edge_at(edge)->fair.tag, TIERCE_ORDER);
	else
		n->order = heap_put(n->order, edge, eevdf_deadline(edge), TIERCE_ORDER);
	return 0;
}

/* The node's CPU has gone to one of its children for that long. One that sleeps ahead counts until virtual time reaches its tag,
 * which may be within that time: virtual time is the same however often is charged. */
TIERCE_FN int eevdf_advance(u32 node, u64 ran_ns)
{
	node_t *n = node_at(node);
	u64 sum = (ran_ns << EEVDF_UNIT) + n->share.fraction, tag;
	u32 i;
	for (i = ZERO; i < EEVDF_MOVES && n->share.ahead && n->share.weight && CAN_LOOP; i++) {
		tag = edge_at(n->share.ahead)->fair.tag;
		if (tag > n->clock) {
			if (tag - n->clock > sum / n->share.weight)
				break;
			sum -= (tag - n->clock) * n->share.weight;
			n->clock = tag;
		}
		eevdf_forget(n);
	}
	if (!n->share.weight)
		return 0;
	n->clock += sum / n->share.weight;
	n->share.fraction = sum % n->share.weight;
	return 0;
}

/* Virtual time is at least that: nobody was eligible before; lottery: this one won. */
static inline void eevdf_reaches(node_t *n, u64 tag)
{
	if (n->clock >= tag || is_stride(n))
		return;
	n->clock = tag;
	n->share.fraction = 0;
}

/* A quantum begins. */
static inline void eevdf_begin(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	eevdf_reaches(n, x->fair.tag);
	x->fair.begin = eevdf_deadline(edge);
	x->fair.quantum_ns = (s64)n->param[FAIR_QUANTUM];
}

static inline bool eevdf_is_behind(u32 edge)
{
	u32 first = parent_of(edge)->order;
	return first && eevdf_earlier(first, edge, parent_of(edge)->clock);
}

TIERCE_FN u32 eevdf_pick(u32 node, u32 first, u32 running)
{
	return eevdf_earlier(first, running, node_at(node)->clock) ? first : running;
}

/* A child alone has run beyond its quantum: `rest_ns` are left of the one that is under way, and it has that tag. */
static inline void eevdf_goes_on(u32 edge, u64 tag, u64 rest_ns)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	x->fair.begin = tag + (rest_ns << EEVDF_UNIT) / x->fair.counted;
	x->fair.quantum_ns = (s64)rest_ns;
	eevdf_reaches(n, x->fair.begin - eevdf_stride(edge));
}

/* Of what has run, by how much tag and clock advance. */
static inline u64 eevdf_counts(const node_t *n, u64 ran_ns)
{
	return is_lottery(n) ? 0 : ran_ns;
}

/* Its own quantum is over, and others wait: 1. */
TIERCE_FN int eevdf_charges(u32 edge, u64 ran_ns)
{
	edge_t *x = edge_at(edge);
	u32 node = x->parent;
	node_t *n = node_at(node);
	u64 counts_ns = eevdf_counts(n, ran_ns), sum = (counts_ns << EEVDF_UNIT) + x->fair.fraction;
	u64 met_ns = n->share.met_ns < counts_ns ? n->share.met_ns : counts_ns;
	int over = 0;
	if (x->fair.quantum_ns <= 0 && !eevdf_is_behind(edge))
		eevdf_begin(edge);
	x->fair.tag += sum / x->fair.counted;
	x->fair.fraction = sum % x->fair.counted;
	n->share.met_ns -= met_ns;
	eevdf_advance(node, counts_ns - met_ns);
	if (x->fair.quantum_ns > (s64)ran_ns) {
		x->fair.quantum_ns -= (s64)ran_ns;
	} else if (node_contended(node)) {
		over = x->fair.quantum_ns > 0;
		x->fair.quantum_ns = 0;
	} else {
		eevdf_goes_on(edge, x->fair.tag, quantum_rest(n->param[FAIR_QUANTUM], x->fair.quantum_ns, ran_ns));
	}
	eevdf_ripen(node);
	return over;
}
static inline void eevdf_charge(u32 edge, u64 ran_ns)
{
	if (eevdf_charges(edge, ran_ns) && is_lottery(parent_of(edge)))
		lottery_draw(edge, parent_of(edge)->param[FAIR_QUANTUM]);
}

/* Another child comes while one runs that has done so for `ran_ns` since it was charged: virtual time is as if it were
 * charged now, and the charge will leave that out. Here by how much virtual time has to advance first, */
TIERCE_FN u64 eevdf_meets(u32 running, u64 ran_ns)
{
	edge_t *x = edge_at(running);
	node_t *n = parent_of(running);
	u64 counts_ns = eevdf_counts(n, ran_ns), more_ns = counts_ns - n->share.met_ns;
	if (x->fair.quantum_ns <= 0 && !eevdf_is_behind(running))
		eevdf_begin(running);
	n->share.met_ns = counts_ns;
	return more_ns;
}
/* and then the quantum of one that was alone. */
TIERCE_FN int eevdf_met(u32 running, u64 ran_ns)
{
	edge_t *x = edge_at(running);
	node_t *n = parent_of(running);
	u64 tag, rest_ns;
	if (x->fair.quantum_ns > (s64)ran_ns || node_contended(x->parent))
		return 0;
	tag = x->fair.tag + ((eevdf_counts(n, ran_ns) << EEVDF_UNIT) + x->fair.fraction) / x->fair.counted;
	rest_ns = quantum_rest(n->param[FAIR_QUANTUM], x->fair.quantum_ns, ran_ns);
	eevdf_goes_on(running, tag, rest_ns);
	x->fair.quantum_ns += (s64)ran_ns; /* which the charge takes off */
	return 0;
}
/* Calls in a row rather than in each other: a verifier adds up frames. */
static inline void eevdf_meet(u32 node, u64 now)
{
	u32 running = node_at(node)->running;
	u64 ran_ns = running ? uncharged_ns(node_at(node), now) : 0;
	if (ran_ns <= node_at(node)->share.met_ns)
		return;
	eevdf_advance(node, eevdf_meets(running, ran_ns));
	eevdf_met(running, ran_ns);
}

/* Nobody counts: virtual time goes on where that of the other replicas is. */
static inline void eevdf_clock_comes(node_t *n, u64 now)
{
	if (!n->share.weight && !is_lottery(n))
		n->clock = family_clock(n, n->clock, now);
}

/* A child comes that is behind virtual time by `lag`, or goes that is ahead of it (-lag): the others are not ahead by that. Virtual
 * time waits until so much has been served; where it is the other way around, it advances by the time that is returned. */
TIERCE_FN u64 eevdf_owes(u32 edge, s64 lag)
{
	node_t *n = parent_of(edge);
	u64 weight = edge_at(edge)->param[0], owed_ns = ((u64)(lag < 0 ? -lag : lag) * weight) >> EEVDF_UNIT, met_ns;
	if (!n->share.weight || is_lottery(n))
		return 0;
	if (lag >= 0) {
		n->share.met_ns += owed_ns;
		return 0;
	}
	met_ns = n->share.met_ns < owed_ns ? n->share.met_ns : owed_ns;
	n->share.met_ns -= met_ns;
	return owed_ns - met_ns;
}
static inline void eevdf_goes(u32 edge, s64 lag)
{
	u64 ran_ns = eevdf_owes(edge, lag);
	if (!ran_ns)
		return;
	eevdf_advance(edge_at(edge)->parent, ran_ns);
	eevdf_ripen(edge_at(edge)->parent);
}

/* It wants the CPU. */
TIERCE_FN int eevdf_count(u32 edge, u32 why)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	eevdf_unlink(edge); /* it was ahead */
	if (why != TIERCE_RESTORED || !x->fair.counted)
		x->fair.quantum_ns = 0;
	if (x->fair.counted)
		return 0;
	x->fair.counted = x->param[FAIR_WEIGHT];
	n->share.weight += x->fair.counted;
	if (is_stride(n)) {
		x->fair.tag += n->clock - FAIR_BEGIN;
	} else if (x->fair.tag < n->clock && why != TIERCE_MOVED) {
		x->fair.tag = n->clock;
		x->fair.fraction = 0;
	}
	return 0;
}

static inline void eevdf_request(u32 edge, u32 why, u64 now)
{
	eevdf_meet(edge_at(edge)->parent, now);
	eevdf_clock_comes(parent_of(edge), now);
	if (is_lottery(parent_of(edge)) && (why != TIERCE_RESTORED || !edge_at(edge)->fair.counted))
		lottery_draw(edge, lottery_used_ns(edge));
	eevdf_count(edge, why);
	eevdf_wait(edge);
}

/* A new child comes as one that has just had a quantum. */
static inline void stride_new(u32 edge)
{
	edge_t *x = edge_at(edge);
	x->fair.tag = FAIR_BEGIN + (parent_of(edge)->param[FAIR_QUANTUM] << EEVDF_UNIT) / x->param[FAIR_WEIGHT];
}

/* What a child that sleeps is beyond the clock, or behind it: at most a quantum. What it gives up moves the clock, or the others
 * would be ahead by that for ever. */
static inline void stride_keep(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u64 clock = n->clock, most = eevdf_stride(edge), others = n->share.weight - x->fair.counted;
	if (x->fair.tag > clock + most)
		x->fair.tag = clock + most;
	if (x->fair.tag < clock - most) {
		if (others)
			n->clock += (clock - most - x->fair.tag) / others * x->fair.counted;
		x->fair.tag = clock - most;
	}
	x->fair.tag -= clock - FAIR_BEGIN;
}

/* A child has lost the CPU or wants none any more; one that is moved does so again at once. */
TIERCE_FN int eevdf_leaves(u32 edge, u32 why)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	eevdf_unlink(edge);
	if (why == TIERCE_OUTRANKED || why == TIERCE_MOVED)
		return 0;
	if (is_stride(n) && (x->flags & EDGE_SPREAD) && x->restore)
		x->fair.tag -= n->clock - FAIR_BEGIN; /* it goes to another replica, with all that it is owed */
	else if (is_stride(n))
		stride_keep(edge);
	if (x->fair.tag > n->clock && is_eevdf(n))
		n->share.ahead = heap_put(n->share.ahead, edge, x->fair.tag, TIERCE_ORDER);
	else
		eevdf_uncount(edge);
	return 0;
}
static inline void eevdf_leave(u32 edge, u32 why)
{
	eevdf_leaves(edge, why);
	if (why == TIERCE_OUTRANKED)
		eevdf_wait(edge);
	else
		eevdf_fill(edge_at(edge)->parent);
}

/* The engine took it out of the order: it may have been the last one there. */
TIERCE_FN int eevdf_grant(u32 edge)
{
	if (edge_at(edge)->fair.quantum_ns <= 0)
		eevdf_begin(edge);
	return eevdf_ripen(edge_at(edge)->parent);
}

/* A new weight: what the child is owed stays the same. */
TIERCE_FN int eevdf_weigh(u32 edge, u64 was, u64 weight)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u64 clock = x->fair.counted ? n->clock : FAIR_BEGIN, deadline = eevdf_deadline(edge);
	bool ahead = order_link(edge)->rank != 0;
	if (ahead)
		eevdf_unlink(edge);
	if (x->fair.counted) {
		n->share.weight += weight - was;
		x->fair.counted = weight;
	}
	deadline = deadline > x->fair.tag ? deadline - x->fair.tag : 0;
	if (x->fair.tag > clock)
		x->fair.tag = clock + (x->fair.tag - clock) * was / weight;
	else
		x->fair.tag = clock - (clock - x->fair.tag) * was / weight;
	x->fair.begin = x->fair.tag + deadline * was / weight;
	x->fair.fraction = 0;
	if (ahead)
		n->share.ahead = heap_put(n->share.ahead, edge, x->fair.tag, TIERCE_ORDER);
	return 0;
}

#endif
