/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Leftist heaps of edges, linked through one of their links each: every order and every queue of events.
 *
 * A heap is the id of its root, 0 when empty; `heap` (enum tierce_heap) says which link of an edge it goes through. There
 * is no capacity to reserve: the links belong to the members. rank is the length of the shortest way down to a missing
 * child; the right child never has the larger one, so right spines have at most log2(n + 1) links, and insert and remove
 * are O(log n) at worst, not on average. rank 0 = in no heap. Members are ordered by key, equal keys by id: the same order
 * on every target.
 *
 * Example: inserting keys 5, 3, 4 gives root 3 with left child 5 and right child 4; removing 3 merges 5 into 4.
 */
#include "tierce.h"

static inline link_t *link_at(u32 edge, u32 heap)
{
	return &AT(edge_at(edge)->link, heap);
}

static inline bool link_before(u32 a, u32 b, u32 heap)
{
	u64 ka = link_at(a, heap)->key, kb = link_at(b, heap)->key;
	return ka < kb || (ka == kb && a < b);
}

/* Restore "left has the larger rank" at x; true when x's own rank changed. */
static inline bool link_settle(u32 x, u32 heap)
{
	u32 left = link_at(x, heap)->left, right = link_at(x, heap)->right, rank;
	if (link_at(left, heap)->rank < link_at(right, heap)->rank) {
		link_at(x, heap)->left = right;
		link_at(x, heap)->right = left;
		right = left;
	}
	rank = link_at(right, heap)->rank + 1;
	if (link_at(x, heap)->rank == rank)
		return false;
	link_at(x, heap)->rank = rank;
	return true;
}

static inline u32 heap_merge(u32 a, u32 b, u32 heap)
{
	u32 root, spare;
	if (!a || !b) {
		root = a ? a : b;
		if (root)
			link_at(root, heap)->up = 0;
		return root;
	}
	if (link_before(b, a, heap)) {
		spare = a;
		a = b;
		b = spare;
	}
	root = a;
	link_at(root, heap)->up = 0;
	while (b && CAN_LOOP) { /* walk down both right spines, at most 2 log2(n + 1) steps */
		u32 right = link_at(a, heap)->right;
		if (!right || link_before(b, right, heap)) {
			link_at(a, heap)->right = b;
			link_at(b, heap)->up = a;
			a = b;
			b = right;
		} else {
			a = right;
		}
	}
	if (b)
		port_fail("heap: merge did not end");
	while (CAN_LOOP) { /* and back up the merged spine */
		link_settle(a, heap);
		if (a == root)
			break;
		a = link_at(a, heap)->up;
	}
	return root;
}

/* Put x, a member of no heap, into `root`; returns the new root. In place: see order_put. */
static inline u32 heap_put(u32 root, u32 x, u64 key, u32 heap)
{
	link_at(x, heap)->key = key;
	link_at(x, heap)->left = 0;
	link_at(x, heap)->right = 0;
	link_at(x, heap)->rank = 1;
	return heap_merge(root, x, heap);
}

/* Take x, a member of `root`, out; returns the new root. In place: see order_out. */
static inline u32 heap_take(u32 root, u32 x, u32 heap)
{
	u32 up = link_at(x, heap)->up, rest = heap_merge(link_at(x, heap)->left, link_at(x, heap)->right, heap);
	link_at(x, heap)->rank = 0;
	link_at(x, heap)->up = 0;
	if (!up)
		return rest;
	if (link_at(up, heap)->left == x)
		link_at(up, heap)->left = rest;
	else
		link_at(up, heap)->right = rest;
	if (rest)
		link_at(rest, heap)->up = up;
	while (up && CAN_LOOP) { /* ranks shrink upwards until one does not: at most log2(n + 1) steps */
		if (!link_settle(up, heap))
			break;
		up = link_at(up, heap)->up;
	}
	return root;
}

/* The same as calls; the two above save a frame where a verifier counts them. */
TIERCE_FN u32 order_put(u32 root, u32 x, u64 key)
{
	return heap_put(root, x, key, TIERCE_ORDER);
}
TIERCE_FN u32 order_out(u32 root, u32 x)
{
	return heap_take(root, x, TIERCE_ORDER);
}
TIERCE_FN u32 events_put(u32 root, u32 x, u64 at_ns)
{
	return heap_put(root, x, at_ns, TIERCE_EVENTS);
}
TIERCE_FN u32 events_out(u32 root, u32 x)
{
	return heap_take(root, x, TIERCE_EVENTS);
}
TIERCE_FN u32 events_meet(u32 root, u32 other)
{
	return heap_merge(root, other, TIERCE_EVENTS);
}
