/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What kernel side and loader share: commands of the syscall program `control`, and the arena's second half. The Rust
 * side mirrors these structs (crates/tierce-scx/src/shared.rs). */
#ifndef TIERCE_CONTROL_H
#define TIERCE_CONTROL_H

/* Numbers below 64: a graph operation of enum tierce_op, its arguments in a, b, value, its parameters in param. */
#define COMMAND_LEAF	64 /* thread `pid` becomes task `a` as soon as it is off the CPU; `b`: made for it, goes with it. \
			    * `a` 0: it goes to the default node */
#define COMMAND_DEFAULT 65 /* node `a` is the default node, `param` for its threads' edges, but param[b] follows nice */
#define COMMAND_REAP	66 /* task `a` is of a dead thread and could not be freed when it died: try again. `b`: or it was made \
			    * for a thread that died before it took it */

#define COMMAND_NEAR	67 /* param: the CPUs, from 64 * `b` on, that share a core, a last-level cache, a NUMA node with CPU `a` */

/* Another object takes over (crates/tierce-scx/src/reload.rs). */
#define COMMAND_FREEZE 68 /* of the first one, which keeps leaves: from here on all time is stolen */
#define COMMAND_ADOPT  69 /* of the second one: task `a` is thread `pid`, 0: it has none */
#define COMMAND_BURY   70 /* task `a` was thread `pid`: if that died unseen, the task goes, or is nobody's */

#define COMMAND_KEEP   71 /* of the first one: a thread that leaves our class keeps its leaf from here on; `a` 0: no longer */

#define COMMAND_FREE   72 /* nobody needs the `a` pages of the arena from `value` on */

#define COMMAND_NO_THREAD 1000 /* result: there is no such thread, or it is not ours */
#define COMMAND_NO_ROOM	  1001 /* its user has as many leaves as are left */
#define TIERCE_USERS	  32768u /* slots of users (users.c) */
#define COMMAND_NO_NICE	  0xffffffffu
#define COMMAND_TO_DEFAULT 0xffffffffu /* instead of a thread's next leaf: any below the default node */

#define ARENA_MARK 0x54494552434521ull

enum tierce_news_kind {
	NEWS_THREAD = 1, /* it may match something else now, or has left our class; from bit 8 on: the leaf it begins with */
	NEWS_EXEC,
	NEWS_NAME,
	NEWS_CPU,    /* one came or went */
	NEWS_BACK,   /* a thread that was lost may have its place again */
	NEWS_LOST,   /* a thread may not run where its place is; from bit 8 on: the engine's error, 0: it was taken */
	NEWS_PROCESS /* all threads of the process may match something else now */
};
struct tierce_news {
	u32 kind, id;
	/* Of a thread, as it is now: most threads match nothing, and that need not be looked up. */
	u32 pid, is_kthread;
	char comm[16];
	u32 policy; /* SCHED_… */
	u32 from;   /* if it is new: the thread that has started it */
	u32 user;   /* who answers for it */
	u32 leaf;   /* its leaf, if that counts further changes; else 0 */
};

struct tierce_command {
	u32 op, a, b, pid;
	u64 value, param[8];
	u64 cpus[7]; /* of a set whose first word is `value`, the further ones, on machines with more than 64 CPUs */
	u64 result;  /* error or id */
};

struct tierce_entry { /* a recorded entry or control operation, as in the native port */
	u64 now_ns, value, result, drained;
	u32 op, a, b, lost; /* lost: entries before this one that did not fit */
};

#define READY_KEEPS 2u /* in `ready`: attached, and a thread that leaves our class keeps its leaf */
#define LEAF_UNSEEN 2u /* in `moving`: of a thread that this object has not seen yet; another one had it */

/* Does its thread wait with us, and may it go to another CPU? */
enum tierce_custody { CUSTODY_NONE, CUSTODY_FREE, CUSTODY_BOUND };
enum tierce_own { LEAF_PLAN, LEAF_DEFAULT, LEAF_MEMBER }; /* plan: stays; the others go with their thread */
/* Of a thread. Runs: on, without a budget, since it is in the kernel. Ends: it goes back to user mode. */
enum tierce_overrun { OVERRUN_NONE, OVERRUN_RUNS, OVERRUN_ENDS };
struct tierce_leaf {
	u32 custody;	 /* enum tierce_custody. Set: enqueue. Cleared: dispatch, dequeue, quiescent */
	u32 pid;	 /* its thread, 0: none */
	u16 own;	 /* enum tierce_own */
	u16 user;	 /* whose share of the leaves it is of, from 1 on; 0: nobody's */
	u32 dead;	 /* to be freed by the loader */
	u64 deadline_ns; /* of its jobs, relative to the wake-up; never: none, 0: its jobs are not followed */
	u64 woke_ns;	 /* begin of its current job, 0: none */
	u32 job;	 /* number of its current job */
	u32 misses;	 /* jobs that ended after their deadline */
	u32 moving;	 /* its thread may have been given another leaf: look */
	u32 overrun;	 /* enum tierce_overrun */
	u64 overrun_ns;	 /* what it had run when that began */
	u32 held; /* its thread sleeps, and who has the lock it waits for runs in its place: 1 + where that is in `held`; 0: not so */
	u32 told; /* changes of its thread since the loader has looked at it; it was told of the first one */
};

/* Away: the graph counts it as offline. Goes, stays: it will do so, or no longer, when it switches threads next. */
enum cpu_away { CPU_AWAY = 1, CPU_GOES, CPU_STAYS };
/* Why a CPU is not kicked: its thread is about to sleep or it wakes from idle; or an entry of its own is under way, and decides. */
enum cpu_blocking { DECISION_COMES = 1, DECIDES_ITSELF };
struct tierce_cpu_side { /* written by its CPU only */
	u64 timer_ns;	 /* what the timer is set to, or never: no later than due_ns */
	u64 due_ns;	 /* when the CPU has to be entered, or never */
	u32 left;	 /* leaf whose thread has yet to come off the CPU, see graph_returned */
	u32 strays;	 /* a thread that was not decided for ran, and a decision was asked for */
	u64 dispatches, keeps, misses, arms, fires;
	u64 early;	/* timers that fired when nothing was due yet */
	u64 wakes;	/* threads that came in at once when a thread woke them */
	u64 forgotten;	/* kicks that led to no decision and were repeated */
	u64 away_at_ns; /* a thread of a higher class runs; if it still does then, the CPU is away. 0: none does */
	u32 away;	/* enum cpu_away; 0: it is not */
	u32 going;	/* on its way out, and the kernel still asks it */
	u64 aways;
	u64 irq_ns;	/* an interrupt is under way since then, 0: none */
	u64 softirq_ns; /* the same of a softirq: what it took up to then is counted */
	u64 softirq_taken_ns;
	u64 interrupted_ns; /* end of the last one, if a decision was asked for by then, else 0 */
	u64 decided_ns;	    /* when another thread was decided for that has not come in yet, else 0 */
	u64 switch_ns;	    /* how long that takes, on average */
	u32 switches;
	u32 awaits; /* leaf that was decided for and is not yet in custody, 0: none */
	u64 fired_ns;
	u64 way_out_ns;
	u32 blocking;  /* enum cpu_blocking: it is not kicked */
	u32 from_user; /* the last interrupt came in user mode */
	u64 beside_ns; /* from then on threads without a leaf have a turn */
	u32 overrun;   /* its thread runs on without a budget, up to user mode */
	u32 overruns;  /* how often that was so */
	u32 blocked;   /* leaf whose thread goes to sleep, still to be released; 0: none */
	u32 idle;      /* the kernel's idle thread runs */
	u32 frozen;    /* between two objects: what it does is stolen time, until the second one decides for the first time */
	u64 kicks; /* decisions that it was kicked for, and those of them after which it goes on with what it did; if count_contention */
	u64 vain_kicks;
	u64 thawed_ns; /* when that was, 0: not yet */
};

#define TIERCE_HELD 1024u
struct tierce_held { /* a lock that threads wait for who lend their place to its holder */
	u64 lock;
	u32 holder, pid; /* leaf and number of who has it; 0: nobody, or not known */
	u32 waiters;
	u32 passes;		/* its holder is releasing it: who is woken for it has it next */
	u32 before, before_pid; /* of a lock of the kernel: who had it before its holder was woken for it */
};

struct tierce_lock_side { /* of a domain, written by who holds its lock; if count_contention */
	u64 taken;
	u64 taken_over; /* another CPU had it before */
	u64 waited;	/* it was not free */
	u64 wait_ns;
	u64 held_ns, since_ns; /* of a shared domain */
	u32 last, pad;
};

struct tierce_side {
	struct tierce_leaf leaf[TIERCE_NODES];
	struct tierce_cpu_side cpu[TIERCE_CPUS];
	struct tierce_lock_side lock[2 * TIERCE_CPUS + 1]; /* of each domain, and TIERCE_KNOWN */
	struct tierce_held held[TIERCE_HELD];
	u64 nice_weight[40];	 /* of nice -20 to 19; set by the loader */
	u64 users[TIERCE_USERS]; /* a user's number from bit 32 on, how many leaves its threads have */
	u32 users_seed, pad;	 /* where a user's slots are; 0: not begun */
	u32 ticket, serving;	 /* lock of control operations */
	u32 ready;		 /* attached; or READY_KEEPS */
	u32 default_node;
	u64 default_param[4];
	u32 default_nice; /* parameter that follows nice, or COMMAND_NO_NICE */
	u32 lock_lost;
	u64 default_jobs; /* deadline_ns of its leaves */
	u64 lost;	  /* records */
	u64 overflows;	  /* threads that found no leaf */
	u64 displaced;	  /* threads that lost their place by a change of affinity */
	u64 dead;	  /* leaves marked so, ever */
	u64 missed;	  /* news that did not fit */
	u64 lost_entries;
	u64 crowded; /* of the threads that found no leaf: their user has as many as are left */
};

struct tierce_exit {
	s64 code;
	u32 kind, pad;
	char reason[128], message[1024];
};

struct tierce_layout { /* where things are in the arena, from the beginning of struct tierce and struct tierce_side */
	u32 nodes, node_size, edges, edge_size, node_at, edge_at, cpu_at, cpu_size;
	u32 fresh_node_at, fresh_edge_at, spare_nodes_at, spare_edges_at, side_cpu_at, side_cpu_size, side_lock_at,
	    nice_weight_at, side_rest_at, side_size, state_size, domain_at, domain_size, row_at, set_at;
};

#endif
