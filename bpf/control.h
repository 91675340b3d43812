/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What kernel side and loader share: commands of the syscall program `control`, and the arena's second half. The Rust
 * side mirrors these structs (crates/tierce-scx/src/shared.rs). */
#ifndef TIERCE_CONTROL_H
#define TIERCE_CONTROL_H

/* Numbers below 64: a graph operation of enum tierce_op, its arguments in a, b, value, its parameters in param. */
#define COMMAND_LEAF	64 /* the thread `pid` becomes the task `a` as soon as it is off the CPU */
#define COMMAND_DEFAULT 65 /* node `a` is the default node, `param` the parameters of its threads' edges */

#define COMMAND_NO_THREAD 1000 /* result: there is no such thread, or it is not ours */

#define OVERFLOW_SLICE_NS 1000000

struct tierce_command {
	u32 op, a, b, pid;
	u64 value, param[4];
	u64 result; /* error or id */
};

struct tierce_entry { /* a recorded entry or control operation, as in the native port */
	u64 now_ns, value, result, drained;
	u32 op, a, b, pad;
};

struct tierce_leaf { /* of the graph's task with the same id */
	u32 custody; /* its thread waits with us. Set: enqueue. Cleared: dispatch, dequeue, quiescent */
	u32 pid;     /* its thread, 0: none */
	u32 own;     /* made for one thread, goes with it; else part of the plan */
	u32 dead;    /* to be freed by the loader */
};

struct tierce_cpu_side { /* written by its CPU only */
	u64 timer_ns;		/* what the timer is set to, or never */
	u32 left;		/* leaf whose thread has yet to come off the CPU, see graph_returned */
	u32 strays;		/* a thread that was not decided for ran, and a decision was asked for */
	u64 dispatches, keeps, misses, arms, fires;
	u64 pad[9];
};

struct tierce_side {
	struct tierce_leaf leaf[TIERCE_NODES];
	struct tierce_cpu_side cpu[TIERCE_CPUS];
	u32 ticket, serving; /* lock of control operations */
	u32 ready;	     /* attached */
	u32 default_node;
	u64 default_param[4];
	u64 lost;      /* records */
	u64 overflows; /* threads that found no leaf */
	u64 displaced; /* threads that lost their place by a change of affinity */
	u64 dead;      /* leaves marked so, ever */
};

struct tierce_exit {
	s64 code;
	u32 kind, pad;
	char reason[128], message[1024];
};

#endif
