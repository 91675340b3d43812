/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
#include "port.h"
#include "control.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192); /* pages */
} arena SEC(".maps");

u32 tierce_zero;
unsigned long long port_nothing[1];
const volatile u64 trace_kinds = 0;
const volatile u32 record_entries = 0;
char _license[] SEC("license") = "GPL";

void bpf_local_irq_save(unsigned long *flags) __ksym;
void bpf_local_irq_restore(unsigned long *flags) __ksym;

static inline void record_write(u64 *entry)
{
}
TIERCE_FN int trace_write(u64 head, u64 now, u32 a, u32 b, u64 value)
{
	return 0;
}

#include "../policy/graph.c"
#include "../policy/control.c"
struct tierce TIERCE_AS tierce_state;

TIERCE_FN int port_lock(u32 domain)
{
	u32 mine = __sync_fetch_and_add(&S.domain[domain].ticket, 1), tries;
	volatile u32 TIERCE_AS *serving = &S.domain[domain].serving;
	for (tries = ZERO; tries < 1u << 26 && CAN_LOOP; tries++)
		if (*serving == mine)
			return 0;
	port_fail("a lock stayed taken");
	return 0;
}
TIERCE_FN int port_unlock(u32 domain)
{
	__sync_fetch_and_add(&S.domain[domain].serving, 1);
	return 0;
}

SEC("syscall")
int control(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = c->value, result = 0;
	u32 i;
	bpf_local_irq_save(&flags);
	switch (c->op) {
	case TIERCE_OP_init: result = graph_init(c->a, now); break;
	case TIERCE_OP_node_new: 
		for (i = 0; i < 4; i++)
			graph_stage(i, c->param[i]);
		result = graph_node_new(c->a, c->b, c->value); break;
	case TIERCE_OP_edge_new: result = graph_edge_new(c->a, c->b, (s32)c->value, c->value >> 32); break;
	case TIERCE_OP_attach:
		for (i = 0; i < 4; i++)
			graph_stage(i, c->param[i]);
		result = graph_attach(c->a, now); break;
	case TIERCE_OP_set:
		for (i = 0; i < 4; i++)
			graph_stage(i, c->param[i]);
		result = graph_set(c->a, now); break;
	case TIERCE_OP_detach: result = graph_detach(c->a, now); break;
	case TIERCE_OP_root: result = graph_root(c->a, c->b, now); break;
	case TIERCE_OP_node_free: result = graph_node_free(c->a); break;
	case TIERCE_OP_node_set: result = graph_node_set(c->a, now); break;
	case TIERCE_OP_allow: result = graph_allow(c->a, c->value, now); break;
	case TIERCE_OP_online: result = graph_online(c->a, c->b, now); break;
	}
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}
SEC("syscall")
int exercise(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = c->value, result = 0;
	bpf_local_irq_save(&flags);
	switch (c->op) {
	case TIERCE_OP_request: result = graph_request(c->a, c->b, now); break;
	case TIERCE_OP_release: result = graph_release(c->a, c->b, now); break;
	case TIERCE_OP_decide: result = graph_decide(c->a, now, 0); break;
	case TIERCE_OP_event: result = graph_event(c->a, now, 0); break;
	case TIERCE_OP_returned: result = graph_returned(c->a, now); break;
	case TIERCE_OP_outside: result = graph_outside(c->a, c->b, now); break;
	case TIERCE_OP_announce: result = graph_announce(c->a, c->param[0], now); break;
	}
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}
