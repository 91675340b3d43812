/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel side of Tierce: the graph engine with all policies, and what connects it to sched_ext.
 *
 * A thread of the machine is a task (leaf) of the graph. Its life, all under the lock of its run queue:
 *
 *   (newtask)  one that a member of a set starts is given a leaf like its parent's; the loader looks whether it matches
 *   enqueue    it waits with us: it gets a leaf below the default node if it has none (thread_join); custody; its leaf is
 *              requested
 *   dispatch   a CPU asks what to run: graph_decide; the thread goes from custody to the CPU's local queue
 *   dequeue    the kernel takes it back (affinity, class, ...): custody ends
 *   quiescent  it can no longer use a CPU: its leaf is released, that of the running thread by the decision that follows
 *              (cpu_side.blocked); a dead one gives its leaf back
 *   disable    it leaves our class (to a real-time one): the loader gives the leaf back
 *
 * Custody: a thread that was enqueued and not yet dispatched or dequeued. Only such a thread is inserted anywhere, so a
 * thread that still runs elsewhere is never dispatched twice. leaf[].custody says so; slots[] holds the reference.
 *
 * Who runs is known from the tracepoint of the context switch: whatever is not the task that the graph has decided for
 * (real-time and deadline threads, per-CPU kernel threads, threads without a leaf) runs outside the graph and is stolen
 * time. Slices are infinite; a CPU decides again when its timer, or another CPU, kicks it.
 *
 * Left: a decision may leave a shared edge while the thread is still on the CPU. cpu_side.left names its leaf until its
 * enqueue (or quiescent) calls graph_returned; until then the CPU does not decide again.
 */
#include "port.h"
#include "control.h"
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

char _license[] SEC("license") = "GPL";

#include "maps.c"
#include "engine/graph.c"
#include "engine/control.c"

_Static_assert(sizeof(((struct tierce_command *)0)->param) == TIERCE_NODE_PARAMS * sizeof(u64), "those of a node");
_Static_assert(sizeof(((struct tierce_command *)0)->cpus) == (TIERCE_WORDS - 1) * sizeof(u64), "a set but its first word");
_Static_assert(sizeof(((struct tierce_side *)0)->default_param) == TIERCE_PARAMS * sizeof(u64), "those of an edge");

struct tierce ARENA tierce_state;

u64 ARENA arena_mark = ARENA_MARK; /* the loader finds the arena's data by it */

struct tierce_exit exit_info;

const volatile struct tierce_layout layout = {
    TIERCE_NODES,
    sizeof(struct tierce_node),
    TIERCE_EDGES,
    sizeof(struct tierce_edge),
    __builtin_offsetof(struct tierce, node),
    __builtin_offsetof(struct tierce, edge),
    __builtin_offsetof(struct tierce, cpu),
    sizeof(struct tierce_cpu),
    __builtin_offsetof(struct tierce, fresh_node),
    __builtin_offsetof(struct tierce, fresh_edge),
    __builtin_offsetof(struct tierce, spare_nodes),
    __builtin_offsetof(struct tierce, spare_edges),
    __builtin_offsetof(struct tierce_side, cpu),
    sizeof(struct tierce_cpu_side),
    __builtin_offsetof(struct tierce_side, lock),
    __builtin_offsetof(struct tierce_side, nice_weight),
    __builtin_offsetof(struct tierce_side, ticket),
    sizeof(struct tierce_side),
    sizeof(struct tierce),
    __builtin_offsetof(struct tierce, domain),
    sizeof(struct tierce_domain),
    __builtin_offsetof(struct tierce, row),
    __builtin_offsetof(struct tierce, set),
};

#include "kernel_calls.c"
#include "locks.c"
#include "records.c"
#include "jobs.c"
#include "users.c"
#include "news.c"
#include "inherit.c"
#include "leaves.c"
#include "cpus.c"
#include "takeover.c"
#include "stolen.c"
#include "overruns.c"
#include "timer.c"
#include "queue.c"
#include "dispatch.c"
#include "threads.c"
#include "hotplug.c"
#include "waits.c"

SEC("struct_ops.s/init")
s32 BPF_PROG(tierce_init)
{
	u32 cpu;
	if (!SIDE.users_seed)
		SIDE.users_seed = bpf_get_prandom_u32() | 1;
	for (cpu = ZERO; cpu < cpus_here && cpu < TIERCE_CPUS && CAN_LOOP; cpu++) {
		u32 id = cpu;
		struct timer *t;
		long error;
		if (scx_bpf_create_dsq(BESIDE(cpu), -1))
			return -ENOMEM;
		t = bpf_map_lookup_elem(&timers, &id);
		if (!t)
			return -EINVAL;
		error = bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC); /* -EBUSY: when attached before */
		if ((error && error != -EBUSY) || bpf_timer_set_callback(&t->timer, timer_fired))
			return -EINVAL;
		side_at(id)->timer_ns = TIERCE_NEVER;
	}
	cpus_found();
	SIDE.ready = 1;
	return 0;
}
SEC("struct_ops/exit")
void BPF_PROG(tierce_exit, struct scx_exit_info *info)
{
	u32 cpu;
	SIDE.ready = 0;
	for (cpu = ZERO; cpu < cpus_here && cpu < TIERCE_CPUS && CAN_LOOP; cpu++) {
		u32 id = cpu;
		struct timer *t = bpf_map_lookup_elem(&timers, &id);
		if (t)
			bpf_timer_cancel(&t->timer);
	}
	exit_info.code = info->exit_code;
	bpf_probe_read_kernel_str(exit_info.reason, sizeof exit_info.reason, info->reason);
	bpf_probe_read_kernel_str(exit_info.message, sizeof exit_info.message, info->msg);
	exit_info.kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops tierce_ops = {
    .select_cpu = (void *)tierce_select_cpu,
    .enqueue = (void *)tierce_enqueue,
    .dequeue = (void *)tierce_dequeue,
    .quiescent = (void *)tierce_quiescent,
    .dispatch = (void *)tierce_dispatch,
    .set_weight = (void *)tierce_set_weight,
    .set_cpumask = (void *)tierce_set_cpumask,
    .tick = (void *)tierce_tick,
    .init_task = (void *)tierce_init_task,
    .exit_task = (void *)tierce_exit_task,
    .enable = (void *)tierce_enable,
    .disable = (void *)tierce_disable,
    .cpu_release = (void *)tierce_cpu_release,
    .cpu_online = (void *)tierce_cpu_online,
    .cpu_offline = (void *)tierce_cpu_offline,
    .init = (void *)tierce_init,
    .exit = (void *)tierce_exit,
    .flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
    .timeout_ms = 10000,
    .name = "tierce",
};

#include "matching.c"
#include "commands.c"
