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
#include "engine/graph.c"
#include "engine/control.c"
#include "engine/check.c"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
	printf("idle %llx\n", (unsigned long long)S.idle[0]);
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
		printf("cpu %u: online %u task %u kick %u outside %u inbox %llx path", cpu, c->online, c->task, c->kick_pending,
		       c->outside, (unsigned long long)S.inbox[cpu].bits);
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
		printf("node %u: kind %u domain %u order %u servable %u running %u able %u allowed %llx cpus %llx", id, n->kind,
		       n->domain, n->order, n->servable, n->running, n->able, (unsigned long long)n->allowed,
		       (unsigned long long)n->cpus);
		if (n->row) {
			printf(" head: %u of %u holds, claim %u victim %u kept %u, per CPU (hold, edge, running, order)",
			       n->holds, n->concurrency, n->claim_edge, n->claim_victim, n->claim_kept);
			for (cpu = 0; cpu < S.cpus; cpu++)
				printf(" (%u %u %u %u)", S.row[n->row].hold[cpu], S.row[n->row].edge[cpu],
				       S.row[n->row].running[cpu], S.row[n->row].order[cpu]);
		}
		printf("\n");
	}
	for (id = 1; id < S.fresh_edge; id++) {
		struct tierce_edge *x = &S.edge[id];
		if (x->child)
			printf("edge %u: %u -> %u cpu %u state %u flags %x on %u bit %u rank %d told %u in order %u\n", id,
			       x->parent, x->child, x->cpu, x->state, x->flags, x->on_cpu, x->bit, x->rank, x->told,
			       !!S.link[id].rank);
	}
}

#endif
