/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Leftist heaps, linked through S.link[]: every order and every queue of events.
 *
 * A heap is the id of its root, 0 when empty. There is no capacity to reserve: the links belong to the members. rank is
 * the length of the shortest way down to a missing child; the right child never has the larger one, so right spines
 * have at most log2(n + 1) links, and insert and remove are O(log n) at worst, not on average. rank 0 = in no heap.
 * Members are ordered by key, equal keys by id: the same order on every target.
 *
 * Example: inserting keys 5, 3, 4 gives root 3 with left child 5 and right child 4; removing 3 merges 5 into 4.
 */
#include "tierce.h"

static inline bool link_before(u32 a, u32 b)
{
	u64 ka = S.link[a].key, kb = S.link[b].key;
	return ka < kb || (ka == kb && a < b);
}

/* Restore "left has the larger rank" at x; true when x's own rank changed. */
static inline bool link_settle(u32 x)
{
	u32 left = S.link[x].left, right = S.link[x].right, rank;
	if (S.link[left].rank < S.link[right].rank) {
		S.link[x].left = right;
		S.link[x].right = left;
		right = left;
	}
	rank = S.link[right].rank + 1;
	if (S.link[x].rank == rank)
		return false;
	S.link[x].rank = rank;
	return true;
}

static inline u32 heap_merge(u32 a, u32 b)
{
	u32 root, spare;
	if (!a || !b) {
		root = a ? a : b;
		if (root)
			S.link[root].up = 0;
		return root;
	}
	if (link_before(b, a)) {
		spare = a;
		a = b;
		b = spare;
	}
	root = a;
	S.link[root].up = 0;
	while (b && CAN_LOOP) { /* walk down both right spines, at most 2 log2(n + 1) steps */
		u32 right = S.link[a].right;
		if (!right || link_before(b, right)) {
			S.link[a].right = b;
			S.link[b].up = a;
			a = b;
			b = right;
		} else {
			a = right;
		}
	}
	if (b)
		port_fail("heap: merge did not end");
	while (CAN_LOOP) { /* and back up the merged spine */
		link_settle(a);
		if (a == root)
			break;
		a = S.link[a].up;
	}
	return root;
}

/* Put x, a member of no heap, into `root`; returns the new root. */
TIERCE_FN u32 heap_insert(u32 root, u32 x, u64 key)
{
	S.link[x].key = key;
	S.link[x].left = 0;
	S.link[x].right = 0;
	S.link[x].rank = 1;
	return heap_merge(root, x);
}

/* Take x, a member of `root`, out; returns the new root. */
TIERCE_FN u32 heap_remove(u32 root, u32 x)
{
	u32 up = S.link[x].up, rest = heap_merge(S.link[x].left, S.link[x].right);
	S.link[x].rank = 0;
	S.link[x].up = 0;
	if (!up)
		return rest;
	if (S.link[up].left == x)
		S.link[up].left = rest;
	else
		S.link[up].right = rest;
	if (rest)
		S.link[rest].up = up;
	while (up && CAN_LOOP) { /* ranks shrink upwards until one does not: at most log2(n + 1) steps */
		if (!link_settle(up))
			break;
		up = S.link[up].up;
	}
	return root;
}

static inline bool heap_has(u32 x)
{
	return S.link[x].rank != 0;
}
