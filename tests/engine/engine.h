/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the engine's tests share: the engine itself as one unit, the names of its invariants, its state in words. */
#ifndef TIERCE_TEST_ENGINE_H
#define TIERCE_TEST_ENGINE_H

#include "port.h"
_Thread_local struct tierce_native tierce_native;
#ifdef TEST_CAN_LOOP /* a test that counts the rounds of loops */
#undef CAN_LOOP
#define CAN_LOOP TEST_CAN_LOOP
#endif
#ifdef TEST_INBOX_TAKE /* a test that plays what may happen between two locks */
#undef port_inbox_take
#define port_inbox_take(cpu) TEST_INBOX_TAKE(cpu)
static u64 TEST_INBOX_TAKE(u32 cpu);
#endif
#ifdef TEST_LOCKS /* a test that looks which locks are taken */
#define port_lock(domain)   test_lock(domain)
#define port_unlock(domain) test_unlock(domain)
static void test_lock(u32 domain);
static void test_unlock(u32 domain);
#endif
#include "engine/graph.c"
#include "engine/control.c"
#include "engine/check.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A set of CPUs that is the test's own. */
struct bits {
	u64 word[TIERCE_WORDS];
};
static inline bool bits_have(const u64 *words, u32 cpu)
{
	return words[cpu >> 6] >> (cpu & 63) & 1;
}
static inline void bits_put(u64 *words, u32 cpu, bool in)
{
	words[cpu >> 6] = (words[cpu >> 6] & ~mask_of(cpu)) | (in ? mask_of(cpu) : 0);
}
static inline bool bits_any(const u64 *words)
{
	u32 word;
	for (word = 0; word < TIERCE_WORDS; word++)
		if (words[word])
			return true;
	return false;
}
/* Nobody has been kicked since the caller last looked. */
static inline void kicks_forget(void)
{
	memset(tierce_native.kicks, 0, sizeof tierce_native.kicks);
	tierce_native.kicked = 0;
}
/* May the task, which is below a spread node, be on this CPU? */
static inline bool may_be_on(u32 id, u32 cpu)
{
	return cpus_has(allowed_of(id), cpu) && cpus_has(family_cpus(parent_of(S.node[id].first_parent)->family), cpu);
}
static inline void bits_print(const char *what, const u64 *words)
{
	u32 word;
	printf("%s", what);
	for (word = S.cpus > 64 ? (S.cpus - 1) / 64 : 0; word; word--)
		printf("%llx:", (unsigned long long)words[word]);
	printf("%llx", (unsigned long long)words[0]);
}

static inline const char *invariant(u32 number)
{
	switch (number) {
#define TEXT(n, name, text) \
	case n: return #name ": " text;
		TIERCE_INVARIANT_LIST(TEXT)
	}
	return "?";
}

/* The whole state in words, for small machines. */
static inline void dump(void)
{
	u32 id, cpu, i;
	bits_print("idle ", S.idle);
	printf("\n");
	for (id = 1; id < S.families; id++) {
		printf("spread node %u: kind %u, %u tasks, clock %llu, replicas", id, S.family[id].kind, S.family[id].tasks,
		       (unsigned long long)S.family[id].clock);
		for (cpu = 0; cpu < S.cpus; cpu++)
			printf(" %u%s", S.family[id].replica[cpu],
			       S.family[id].replica[cpu] && !replica_is_open(S.family[id].replica[cpu]) ? " (closed)" : "");
		printf("\n");
	}
	for (cpu = 0; cpu < S.cpus; cpu++) {
		struct tierce_cpu *c = &S.cpu[cpu];
		printf("cpu %u: group %u online %u task %u kick %u outside %u inbox %llx path", cpu, c->group, c->online,
		       c->task, c->kick_pending, c->outside, (unsigned long long)S.inbox[cpu].bits);
		for (i = 0; i < c->path_length; i++)
			printf(" %u", c->path[i]);
		printf(" next");
		for (i = 0; i < c->next_length; i++)
			printf(" %u", c->next[i]);
		printf(" until %llu armed %llu asked %u left", (unsigned long long)c->until_ns, (unsigned long long)c->armed_ns,
		       c->asked);
		for (i = 0; i < c->leaves; i++)
			printf(" %u", c->leave[i]);
		printf("\n");
	}
	for (id = 1; id < S.fresh_node; id++) {
		struct tierce_node *n = &S.node[id];
		if (n->kind == TIERCE_FREE)
			continue;
		printf("node %u: kind %u domain %u order %u servable %u running %u", id, n->kind, n->domain, n->order,
		       n->servable, n->running);
		bits_print(" allowed ", MANY ? S.set[SET_ALLOWED(id)].word : &n->allowed);
		bits_print(" cpus ", MANY ? S.set[SET_REACH(id)].word : &n->cpus);
		if (n->row) {
			printf(" head: %u of %u holds, claim %u victim %u kept %u, per CPU (hold, edge, running, order)",
			       n->holds, n->concurrency, n->claim_edge, n->claim_victim, n->claim_kept);
			for (cpu = 0; cpu < S.cpus; cpu++)
				printf(" (%u %u %u %u)", ROW(n->row, hold, cpu), ROW(n->row, edge, cpu),
				       ROW(n->row, running, cpu), ROW(n->row, order, cpu));
		}
		printf("\n");
	}
	for (id = 1; id < S.fresh_edge; id++) {
		struct tierce_edge *x = &S.edge[id];
		if (x->child)
			printf("edge %u: %u -> %u cpu %u state %u flags %x on %u bit %u rank %d told %u in order %u\n", id,
			       x->parent, x->child, x->cpu, x->state, x->flags, x->on_cpu, x->bit, x->rank, x->told,
			       !!S.edge[id].link[TIERCE_ORDER].rank);
	}
}

#endif
