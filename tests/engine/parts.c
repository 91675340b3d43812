/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The engine's small parts against simple models.
 *
 *   parts [-n OPERATIONS] [-s SEED]
 *
 * Heaps: random inserts and removals on several heaps beside sorted arrays; after each, shape and order, the least
 * member, and the number of rounds of all loops: an insert takes at most 2 log2(n + 1) + 3, a removal at most
 * 5 log2(n + 1) + 5. Heaps that were built to be bad (ascending, descending, one long left spine) come among the random
 * ones. Arithmetic: product_exceeds and scale against 128-bit integers, with values at the edges of 32 and 64 bits.
 */
static unsigned long long rounds;
#define TEST_CAN_LOOP (++rounds, 1)
#include "engine.h"
#include "roll.h"

static void __attribute__((noreturn)) fail(const char *what, u64 a, u64 b)
{
	printf("parts: %s (%llu, %llu)\n", what, (unsigned long long)a, (unsigned long long)b);
	exit(1);
}

static u32 log2_up(u32 n) /* of n + 1, rounded up */
{
	u32 bits = 0;
	while ((1ull << bits) < (u64)n + 1)
		bits++;
	return bits;
}

/* ---- heaps ---- */

#define HEAPS	4
#define MEMBERS 4000
static u32 root[HEAPS], members[HEAPS];
static u32 member[HEAPS][MEMBERS + 1]; /* sorted by key, then id */
static u64 inserted, removed, worst_insert, worst_remove;

/* Through which link of its members a heap goes: both are tried. */
static u32 through(u32 heap)
{
	return heap % 2 ? TIERCE_EVENTS : TIERCE_ORDER;
}
static bool before(u32 heap, u32 a, u32 b)
{
	u64 x = S.edge[a].link[through(heap)].key, y = S.edge[b].link[through(heap)].key;
	return x < y || (x == y && a < b);
}
static u32 place(u32 heap, u32 x)
{
	u32 low = 0, high = members[heap];
	while (low < high) {
		u32 middle = (low + high) / 2;
		if (before(heap, member[heap][middle], x))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}
static void insert(u32 heap, u32 x, u64 key)
{
	u32 at;
	rounds = 0;
	root[heap] = heap_put(root[heap], x, key, through(heap));
	if (rounds > 2 * log2_up(members[heap]) + 3)
		fail("an insert took too many rounds: members, rounds", members[heap], rounds);
	worst_insert = rounds > worst_insert ? rounds : worst_insert;
	at = place(heap, x);
	memmove(member[heap] + at + 1, member[heap] + at, (members[heap] - at) * sizeof(u32));
	member[heap][at] = x;
	members[heap]++;
	inserted++;
}
static void take(u32 heap, u32 at)
{
	u32 x = member[heap][at];
	rounds = 0;
	root[heap] = heap_take(root[heap], x, through(heap));
	if (rounds > 5 * log2_up(members[heap]) + 5)
		fail("a removal took too many rounds: members, rounds", members[heap], rounds);
	worst_remove = rounds > worst_remove ? rounds : worst_remove;
	if (S.edge[x].link[through(heap)].rank)
		fail("what was removed is still in a heap: edge", x, 0);
	members[heap]--;
	memmove(member[heap] + at, member[heap] + at + 1, (members[heap] - at) * sizeof(u32));
	removed++;
}
static void check(u32 heap, bool all)
{
	u32 least = members[heap] ? member[heap][0] : 0;
	if (root[heap] != least)
		fail("the root is not the least member: root, least", root[heap], least);
	if (all && heap_count(root[heap], through(heap)) != members[heap])
		fail("not a leftist heap of its members: counted, members", heap_count(root[heap], through(heap)),
		     members[heap]);
	if (tierce_native.failed)
		fail(tierce_native.failed, 0, 0);
}
static void empty(u32 heap)
{
	while (members[heap]) {
		take(heap, 0);
		check(heap, members[heap] < 64);
	}
}

static void heaps(u64 operations)
{
	u64 done, i, keys = 2;
	u32 heap, x;
	for (i = 1; i <= MEMBERS; i++) { /* ascending, descending, equal keys; emptied in order */
		insert(0, (u32)i, i);
		insert(1, (u32)(MEMBERS + i), MEMBERS - i);
		insert(2, (u32)(3 * MEMBERS + 1 - i), 7);
	}
	for (heap = 0; heap < HEAPS; heap++) {
		check(heap, true);
		empty(heap);
	}
	for (done = 0; done < operations; done++) {
		if (done % 4096 == 0)
			keys = 1ull << (1 + below(62)); /* few different keys, or many */
		x = 1 + below(HEAPS * MEMBERS);
		heap = x % HEAPS;
		if (S.edge[x].link[through(heap)].rank)
			take(heap, place(heap, x));
		else if (members[heap] < MEMBERS)
			insert(heap, x, roll() % keys);
		if (below(8) == 0 && members[heap])
			take(heap, 0); /* what a scheduler does most */
		check(heap, done % 256 == 0);
	}
	for (heap = 0; heap < HEAPS; heap++)
		empty(heap);
}

/* ---- arithmetic ---- */

static u64 edgy(void)
{
	u64 value = roll() >> below(64);
	switch (below(6)) {
	case 0: return (1ull << below(64)) - below(2);
	case 1: return ~0ull >> below(64);
	case 2: return value & 0xffffffff00000000ull;
	case 3: return (u32)value;
	}
	return value;
}

static void arithmetic(u64 operations)
{
	u64 i, a, b, c, d, f;
	for (i = 0; i < operations; i++) {
		a = edgy();
		b = edgy();
		c = below(4) ? edgy() : a;
		d = below(4) ? edgy() : b;
		if (product_exceeds(a, b, c, d) != ((unsigned __int128)a * b > (unsigned __int128)c * d))
			fail("product_exceeds is not exact", a, b);
		a &= (1ull << 42) - 1;
		f = edgy() % ((1ull << 32) + 1);
		if (scale(a, f) != (u64)((unsigned __int128)a * f >> 32))
			fail("scale is not exact", a, f);
	}
}

int main(int argc, char **argv)
{
	u64 seed = 1, operations = 1000000;
	int i;
	for (i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-n") && i + 1 < argc)
			operations = strtoull(argv[++i], 0, 0);
		else if (!strcmp(argv[i], "-s") && i + 1 < argc)
			seed = strtoull(argv[++i], 0, 0);
		else
			return fprintf(stderr, "usage: parts [-n OPERATIONS] [-s SEED]\n"), 2;
	}
	printf("parts: seed %llu, %llu operations\n", (unsigned long long)seed, (unsigned long long)operations);
	fflush(stdout);
	random_state = seed;
	tierce_native.state = calloc(1, sizeof S);
	heaps(operations);
	arithmetic(operations);
	printf("parts: %llu inserted in at most %llu rounds, %llu removed in at most %llu; arithmetic exact\n",
	       (unsigned long long)inserted, (unsigned long long)worst_insert, (unsigned long long)removed,
	       (unsigned long long)worst_remove);
	return 0;
}
