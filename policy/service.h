/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What policies and engine share: access to the arrays, the orders of ready edges, the events of a domain. */
#ifndef TIERCE_SERVICE_H
#define TIERCE_SERVICE_H

#include "tierce.h"
#include "events.h"

typedef struct tierce_edge TIERCE_AS edge_t;
typedef struct tierce_node TIERCE_AS node_t;
typedef struct tierce_cpu TIERCE_AS cpu_t;
typedef struct tierce_row TIERCE_AS row_t;

static inline edge_t *edge_at(u32 edge)
{
	return &S.edge[edge];
}
static inline node_t *node_at(u32 node)
{
	return &S.node[node];
}
static inline node_t *parent_of(u32 edge)
{
	return &S.node[S.edge[edge].parent];
}

/* ---- orders ---- */

TIERCE_FN u32 heap_insert(u32 root, u32 x, u64 key);
TIERCE_FN u32 heap_remove(u32 root, u32 x);

static inline void order_insert(u32 edge, u64 key)
{
	node_t *node = parent_of(edge);
	if (S.edge[edge].flags & EDGE_LOCAL)
		S.row[node->row].order[S.edge[edge].cpu] = heap_insert(S.row[node->row].order[S.edge[edge].cpu], edge, key);
	else
		node->order = heap_insert(node->order, edge, key);
}
static inline void order_remove(u32 edge)
{
	node_t *node = parent_of(edge);
	if (!S.link[edge].rank)
		return;
	if (S.edge[edge].flags & EDGE_LOCAL)
		S.row[node->row].order[S.edge[edge].cpu] = heap_remove(S.row[node->row].order[S.edge[edge].cpu], edge);
	else
		node->order = heap_remove(node->order, edge);
}

/* Do other children wait for the CPU that runs one? */
static inline bool node_contended(u32 node)
{
	return S.node[node].servable > (S.node[node].row ? S.node[node].holds : 1);
}

/* ---- events ---- */

static inline void event_clear(u32 edge)
{
	u32 link = TIERCE_EDGES + edge, domain = parent_of(edge)->domain;
	if (S.link[link].rank)
		S.domain[domain].events = heap_remove(S.domain[domain].events, link);
}
static inline void event_set(u32 edge, u64 at_ns)
{
	u32 link = TIERCE_EDGES + edge, domain = parent_of(edge)->domain;
	event_clear(edge);
	S.domain[domain].events = heap_insert(S.domain[domain].events, link, at_ns);
}

/* ---- arithmetic ---- */

/* a * b > c * d, exactly, without 128-bit types. */
TIERCE_FN int product_exceeds(u64 a, u64 b, u64 c, u64 d)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 cl = (u32)c, ch = c >> 32, dl = (u32)d, dh = d >> 32;
	u64 m = (al * bl >> 32) + (u32)(ah * bl) + (u32)(al * bh);
	u64 n = (cl * dl >> 32) + (u32)(ch * dl) + (u32)(cl * dh);
	u64 high_ab = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (m >> 32);
	u64 high_cd = ch * dh + (ch * dl >> 32) + (cl * dh >> 32) + (n >> 32);
	u64 low_ab = m << 32 | (u32)(al * bl), low_cd = n << 32 | (u32)(cl * dl);
	return high_ab > high_cd || (high_ab == high_cd && low_ab > low_cd);
}

/* a * fraction / 2^32, rounded down, for a below 2^42 and a fraction of at most 2^32. */
static inline u64 scale(u64 a, u64 fraction)
{
	return (a >> 32) * fraction + ((a & 0xffffffff) * fraction >> 32);
}

#endif
