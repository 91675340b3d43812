/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Tierce's scheduling core: types and contracts.
 *
 * A scheduler hierarchy is a graph. Nodes with a policy are schedulers, nodes without one are tasks, an edge is a
 * virtual processor (VP) from a parent to a child. The graph lives in flat arrays addressed by u32 ids, 0 is "none".
 * The same files are compiled into the simulator and into the kernel's BPF object; everything a target
 * provides is in its port header (struct-free: a handful of functions and limits, listed at the end of this file).
 *
 * Times are u64 nanoseconds of one clock; names end in _ns. Nothing here reads a clock: time is an argument.
 */
#ifndef TIERCE_H
#define TIERCE_H

#include "port.h" /* of the target; defines the fixed-width types, limits and hooks described below */
#include "policies.h"
#include "errors.h"

#define TIERCE_NONE	  0u
#define TIERCE_NEVER	  (~0ull)
#define TIERCE_PARAMS	  4			/* of an edge, of which there are many */
#define TIERCE_EDGE_PARAMS 6			/* the same, and what is promised to it (struct tierce_promise) */
#define TIERCE_NODE_PARAMS 8			/* of a node, and of the stage */
#define TIERCE_DEPTH	  8			/* nodes from CPU to task, root included */
#define TIERCE_PATH	  (TIERCE_DEPTH + 1)	/* edges of a path: the CPU's root edge, then one below each node */
#define TIERCE_CROSSINGS  64			/* crossing edges per CPU: one bit each in its inbox */
#define TIERCE_EVENTS_MAX 64			/* events handled by one entry */
#define TIERCE_WORKS	  60			/* nodes of a domain that change at a time */
#define TIERCE_CONSTRAINTS 8			/* active time constraints of a node */
#define SPREAD_BALANCE_NS 10000000		/* between two looks of a CPU whether its waiting tasks are better off elsewhere */
#define TIERCE_SEEN	  16			/* children of an order that are looked at where its first is not the answer */
#define TIERCE_YIELDED	  (1u << 31)		/* to graph_decide, beside the task: it gave way, it did not block */
#define TIERCE_TIME_MAX	  (1ull << 60)		/* about 36 years */
#define TIERCE_PERIOD_MAX 3600000000000ull	/* one hour: budgets, periods, quanta */

/* Domains: what one lock protects. 0 .. TIERCE_CPUS-1 are the CPUs' own trees. What several CPUs reach is in the shared domain of
 * their group, TIERCE_CPUS + its lowest CPU: CPUs that reach one shared node are of one group. Lock order: CPUs' domains in their
 * order, then a shared one. An entry keeps what it locked until it ends, so entries are serialisable and a recorded run can be
 * replayed in the order of their ends. */
#define TIERCE_KNOWN	(2 * TIERCE_CPUS) /* no domain: the lock of tierce.known, which is taken last */
#define TIERCE_DOMAINS	(TIERCE_KNOWN + 1)
#define TIERCE_NODOMAIN 0xffffffffu
#define TIERCE_TRANSIT	0xfffffffeu /* of a task between two replicas: in no order, in the custody of whoever moves it */

enum tierce_kind { TIERCE_FREE, TIERCE_TASK, TIERCE_POLICY_FIRST };
#define TIERCE_ENUM(number, prefix, name, flags, np, ep) TIERCE_##prefix = number,
enum tierce_policy { TIERCE_POLICY_LIST(TIERCE_ENUM, ) TIERCE_POLICIES_END };
#undef TIERCE_ENUM

/* Policy flags. */
#define TIERCE_HEEDS_DEADLINES 1u /* announce() matters to it */
#define TIERCE_SPREADS	       2u /* its nodes may be spread over CPUs: children move between them with what they are owed */
#define TIERCE_STANDS	       4u /* whom a child may replace is told by standing() */
#define TIERCE_BUDGETS	       8u /* its edges have budgets: one that is not spent is time that the child may use */

/* Why an edge is requested, released or revoked. */
enum tierce_why {
	TIERCE_WOKE,	  /* request: the child was blocked or had nothing; waking rules apply */
	TIERCE_RESTORED,  /* request: it never stopped wanting; keys stay as they were */
	TIERCE_MOVED,	  /* request/release/revoke: a control operation moved or changed it */
	TIERCE_BLOCKED,	  /* release/revoke: the child can use no CPU now */
	TIERCE_SPENT,	  /* revoke: the edge's budget is used up until it is replenished */
	TIERCE_NO_ROOM,	  /* release/revoke: the shared child runs elsewhere, its concurrency is used up */
	TIERCE_CLOSED,	  /* release/revoke: slot or round over, or the condition of a `when` edge ended */
	TIERCE_OUTRANKED, /* revoke: another edge was picked; the child still wants the CPU */
	TIERCE_GONE,	  /* release/revoke: the edge is being removed */
};

/* Why a task migrates to another replica of a spread node. */
enum tierce_migration {
	TIERCE_WAKE_UP,	 /* it wakes up: graph_place chose the CPU */
	TIERCE_PULL,	 /* a CPU that was idle takes it */
	TIERCE_BALANCE,	 /* the CPU where it waited gives it away */
	TIERCE_AFFINITY, /* the port found it on another CPU: affinity, a CPU that goes offline */
};

/* Parts of the engine that not every plan needs: a port may leave them out (PORT_HAS_PART). */
enum tierce_part {
	TIERCE_PART_shared,   /* nodes and tasks with parents on several CPUs */
	TIERCE_PART_spread,   /* spread nodes */
	TIERCE_PART_by_clock, /* fair nodes by eevdf, stride, lottery */
	TIERCE_PART_servers,  /* reservations other than hard ones by deadline that are charged for CPU time */
};

/* What a task may tell its parents, with parameters that are staged. */
enum tierce_message {
	TIERCE_CONSTRAINT_BEGIN = 1, /* so much work (0, ns) until an absolute deadline (1, ns): yes or no? */
	TIERCE_CONSTRAINT_END,	     /* it needs no more of that */
	TIERCE_SECTION_BEGIN, /* it is to have a lock with that ceiling (0, a priority), for so much CPU time at most (1, ns; 0: any): now? */
	TIERCE_SECTION_END, /* it has left that lock */
	TIERCE_SECTION_SKIP, /* it waits for the next budget, in which it is to have the lock: the rest of this one is given up */
};

/* Errors of control operations. */
#define TIERCE_ENUM(number, name, text) TIERCE_E_##name = number,
enum tierce_error { TIERCE_OK, TIERCE_ERROR_LIST(TIERCE_ENUM) };
#undef TIERCE_ENUM

/* ---- state ---------------------------------------------------------------------------------------------------- */

/* An edge is WAITING when its child can use no CPU through it, READY when the parent has been told that it can
 * (request), GRANTED while a CPU runs the child through it.
 *
 *                request                     grant
 *   WAITING ---------------------> READY --------------> GRANTED
 *      ^          release            |  ^     revoke(OUTRANKED)  |
 *      +-----------------------------+  +------------------------+
 *      +--------- revoke(BLOCKED, NO_ROOM, CLOSED, MOVED, GONE) -+
 */
enum tierce_edge_state { TIERCE_WAITING, TIERCE_READY, TIERCE_GRANTED };

#define EDGE_SPENT	 1u   /* budget used up, reserve over: never picked until its event */
#define EDGE_COUNTED	 2u   /* the parent counts it among its servable edges (engine) */
#define EDGE_CROSSING	 4u   /* parent in a CPU's domain, child in a shared one */
#define EDGE_HEAD	 8u   /* the child heads shared nodes: it has a row, and edges to it are told */
#define EDGE_WHEN_SPENT	 16u  /* enabled only while every unconditional parent edge of the child is spent */
#define EDGE_SHUT	 32u  /* a WHEN_SPENT edge that is not enabled now */
#define EDGE_ATTACHED	 64u  /* part of the graph */
#define EDGE_PLAIN	 128u /* in a CPU's own tree, to a child that has no other parent: most edges, and the short ways */
#define EDGE_LOCAL	 256u /* restricted affinity: waits in the order of its home CPU only */
#define EDGE_LEFT	 512u /* shared edge that its CPU has left but not returned yet: granted, but of no use to others */
#define EDGE_NEXT	 1024u /* on the path being decided (inside one entry only) */
#define EDGE_SPREAD	 4096u /* its child, a task, moves between the replicas of the spread node above it */
#define EDGE_VARIANT	 2048u /* its policy treats it in one of its rarer ways */
#define EDGE_PROMISED	 8192u /* a share, of which its parameters say what is promised in which time */

/* Whether a shared child asked to be requested through an edge (under the shared lock). RESTORE: told after a claim. */
enum tierce_told { TIERCE_UNTOLD, TIERCE_TOLD };

/* Membership in one heap; see engine/heap.c. An edge may be in two at a time. */
struct tierce_link {
	u64 key;
	u32 left, right, up, rank;
};
enum tierce_heap {
	TIERCE_ORDER,  /* the order of its parent, or another heap that the policy keeps beside it */
	TIERCE_EVENTS, /* the events of its domain */
	TIERCE_HEAPS
};

/* Why a promise was not kept. */
enum tierce_unkept {
	TIERCE_UNKEPT_OTHERS = 1, /* other threads of the plan had the CPU: more is promised than there is, or they overran */
	TIERCE_UNKEPT_STOLEN,	  /* interrupts, higher scheduling classes, a hypervisor took at least as much as is missing */
	TIERCE_UNKEPT_AWAY,	  /* its CPU was offline, or a higher scheduling class had it for long */
};

/* What kind of lock a task waits for. */
enum tierce_lock {
	TIERCE_LOCK_FUTEX,    /* of a program */
	TIERCE_LOCK_PI_FUTEX, /* of a program, whose holder inherits the priority of real-time threads */
	TIERCE_LOCK_KERNEL,   /* of the kernel, that its waiters sleep for */
	TIERCE_LOCK_PLAN,     /* of the plan, simulated */
};

/* What an edge is promised, and whether it was kept (promise.h). */
struct tierce_promise {
	u64 end_ns;		      /* of the window under way; never: nothing is owed now */
	s64 owed_ns;		      /* by then; what is no more than the floor is no promise */
	u64 base_ns;		      /* of the edge's supply, when it began */
	u64 stolen_ns;		      /* of the CPU, when it began */
	u64 promised_ns, received_ns; /* of the windows that are counted */
	u64 missing_ns;		      /* in those that were broken */
	u64 least_ns;		      /* received in one of them; never: there was none */
	u32 windows, broken;
	u32 why;       /* the last one was broken, enum tierce_unkept */
	u32 window_ns; /* EDGE_PROMISED: how long one is */
};

struct tierce_edge {
	u32 flags, state;  /* first, so that their addresses take no register of their own */
	u32 parent, child; /* node ids; parent is TIERCE_NONE for a root edge */
	u32 kind;	   /* the parent's: whose policy's edge it is; TIERCE_FREE for a root edge */
	u32 next_parent;   /* next edge with the same child */
	u32 cpu;	   /* root and crossing edges: the CPU whose tree holds it; else the home CPU or TIERCE_CPUS */
	u32 on_cpu;	   /* GRANTED or PLAIN: its CPU; else the last one */
	u32 bit;	   /* crossing edges: bit in the CPU's inbox */
	s32 rank;
	u32 told;    /* enum tierce_told; edges to heads only */
	u32 restore; /* it was dropped for a claim: its next request is RESTORED */
	u32 throttles, replenishments, grants;
	u32 variant; /* its policy's: in which way, where EDGE_VARIANT is set */
	u64 param[TIERCE_PARAMS];
	struct tierce_link link[TIERCE_HEAPS];
	u64 supply_ns;	 /* CPU time that went through this edge */
	u64 forgiven_ns; /* debt beyond the cap that was written off, or budget cut by the waking rule */
	struct tierce_promise promise;
	union {
		struct reservation_edge reservation;
		struct fair_edge fair;
		struct edf_edge edf;
		struct {
			u64 turn; /* position in the order of requests; constraint: or a deadline */
			s64 quantum_ns;
			u64 work_ns, due_ns; /* constraint: as it was asked for */
			u32 asleep;	     /* constraint: and that while it slept */
		} queue;
		struct slots_edge slots;
		struct {
			u64 turn;  /* round and place in it */
			u64 round; /* for which the burst is */
			u64 burst_ns;
			s64 left_ns; /* of the burst; below 0: overrun */
			u32 scale;   /* of the node when left_ns was found */
			u32 active;  /* it wants the CPU, and its node counts it */
		} burst;
		struct levels_edge levels;
		struct uniform_edge uniform;
		struct briefly_blocked_edge brief;
		struct mixed_criticality_edge mixed;
		TIERCE_ADDED_EDGES
	};
};

struct tierce_node {
	u32 kind; /* enum tierce_kind, or a policy's number */
	u32 domain;
	u32 first_parent; /* list of parent edges, in the order of the plan */
	u32 children;	  /* attached child edges */
	u32 order;	  /* heap of READY edges that are not spent */
	u32 servable;	  /* child edges that could use a CPU now (READY or GRANTED, not spent, child able) */
	u32 running;	  /* GRANTED child edge; heads have one per CPU in their row instead */
	u32 level;	  /* nodes above, at most */
	u32 row;	  /* heads of shared nodes: index of their per-CPU row, else 0 */
	u32 concurrency;  /* heads: CPUs that may run it at once; as asked for until attached, 0: all its CPUs */
	u32 holds;	  /* heads: CPUs that hold a place, leaving ones included */
	u32 claim_edge, claim_victim, claim_kept; /* heads: the one claim; edge 0: none; CPU; place kept for it */
	u32 conditional;			  /* has a parent edge with EDGE_WHEN_SPENT */
	u64 cpus;				  /* CPUs that can reach it; up to 64, see cpus.h */
	u64 allowed;				  /* tasks: CPUs it may run on; the same */
	u64 param[TIERCE_PARAMS];
	u64 sum;				    /* reservation, uniform: shares of its children in 2^-32 */
	u64 clock;				    /* fair: virtual time; with turns: how many so far */
	u64 tail;				    /* fair: largest tag ever reached; lottery: state of the generator;
						     * tasks: when it came to the CPU of its replica */
	u64 deadline_ns;			    /* announced: tasks by their job, edf nodes by their first child */
	u64 ran_ns;				    /* tasks: CPU time received */
	u32 switches, migrations, last_cpu, on_cpu; /* tasks; on_cpu is TIERCE_CPUS while off */
	u32 ranked;				    /* CPUs compete for it, or for a shared node above it, by different ranks */
	u32 family;				    /* replicas: the spread node that they are of, else 0 */
	u64 more[TIERCE_NODE_PARAMS - TIERCE_PARAMS]; /* parameters from the fifth on */
	union {
		struct {
			s64 used_ns;	   /* of this round, by all children */
			s64 target_ns;	   /* what the bursts of this round share out */
			s64 correction_ns; /* the regulator's output */
			s64 error_ns;	   /* set point - length, of the round before */
			u64 set_ns;	   /* set point of this round */
			u32 weight;	   /* sum of importance of the children that want the CPU */
			u32 active;	   /* how many they are */
			u32 shares;	   /* both when this round began */
			u32 members;
			u32 full;	/* bursts of this round at the upper limit */
			u32 scale;	/* multiburst: what is left of bursts since children woke in this round */
			u32 here, next; /* places given away in this round, in the next one */
			u32 changed;	/* what happened in this round that the next has to know: ROUND_CHANGED, ROUND_OVER */
			u32 fresh;	/* this one did */
		} rounds;		/* i-plus-pi, multiburst; the round's number is `clock` */
		struct {
			u64 begin_ns;		      /* since then some child with a time constraint has wanted the CPU */
			u64 received_ns;	      /* by the node, since then */
			u64 budget_ns, period_ns;     /* what it has counted on since then */
			u32 edge[TIERCE_CONSTRAINTS]; /* whose time constraints may be active */
		} constraints;
		struct {
			u32 waiting[3]; /* heaps of READY children that are not in its order, enum mixed_heap */
			u32 urgent;	/* critical children that want the CPU and are not behind */
			u32 critical;	/* 1: critical mode */
			u32 epoch;	/* how many of these there were */
		} mixed;		/* mixed-criticality */
		TIERCE_ADDED_NODES
	};
	u64 near; /* affinity: what a child may be behind the first of the order to be taken by its last CPU */
	struct {
		u64 weight; /* of the children that want the CPU or are ahead; by start tags only with surplus on several CPUs */
		union {
			u64 fraction; /* low bits of `clock`, carried over */
			u64 worth;    /* surplus: for so much weight there is a CPU, 2^-16 */
		};
		u64 met_ns; /* beyond what the running child is charged for: `clock` has it already */
		u32 later;  /* heap of READY edges that are not eligible yet */
		u32 ahead;  /* heap of WAITING edges whose tag `clock` has not reached */
	} share;	    /* fair, not by start tags alone */
};

enum tierce_hold { TIERCE_HOLD_FREE, TIERCE_HOLD_EDGE, TIERCE_HOLD_LEAVING };

/* Of a shared node: what it keeps per CPU, for up to 64 of them. A larger machine has TIERCE_ROWS for each 64 of its CPUs. */
#define TIERCE_ROW_CPUS (TIERCE_CPUS < 64 ? TIERCE_CPUS : 64u)
struct tierce_row {
	u32 order[TIERCE_ROW_CPUS];   /* children that may not run everywhere, in the order of one allowed CPU */
	u32 running[TIERCE_ROW_CPUS]; /* granted child edge */
	u32 hold[TIERCE_ROW_CPUS];    /* heads: enum tierce_hold */
	u32 edge[TIERCE_ROW_CPUS];    /* heads: parent edge that holds, valid unless free */
};

struct tierce_cpu {
	u32 root_edge, online;
	u32 path[TIERCE_PATH], path_length; /* granted edges, root edge first */
	u32 next[TIERCE_PATH], next_length; /* the path pick would take (inside one entry only) */
	u32 task;			    /* what runs, TIERCE_NONE when idle */
	u32 leave[TIERCE_PATH], leaves;	    /* shared edges left by the last decision, until graph_returned */
	u32 kick_pending;		    /* a decision is due; set by anybody */
	u32 asked;			    /* the same, asked for by an entry of this CPU's domain: no need to compare again */
	u32 outside;			    /* it runs something beside its decision: time is stolen. 1 + task: this one */
	u32 shares;			    /* the shared domain that this entry holds, too; 0: none */
	u32 crossings, claims;		    /* crossing edges; claims made and not yet settled */
	u32 group;			    /* its lowest CPU; this one, unless shared nodes join it to others */
	u32 serves;			    /* the shared domain whose events it serves; 0: none */
	u64 drained;			    /* inbox bits taken by the last entry */
	u64 charged_ns;			    /* everything before is accounted for */
	u64 until_ns;			    /* when the next entry is due at the latest */
	u64 armed_ns;			    /* what the timer is to be set to: lazily, it may stay earlier than until_ns */
	u64 used_ns, idle_ns, stolen_ns;    /* elapsed = used + idle + stolen */
	u64 taken_ns, told_ns, paid_ns;	    /* stolen as the port has found, ever; recorded of it; charged around of that */
	u64 decisions, events;
	u32 idle;	   /* it has told so */
	u32 offered;	   /* the task for which it was claimed and kicked last, until it runs one */
	u32 ran;	   /* task before the decision under way */
	u32 told_now;	   /* this entry has asked what was taken */
	u64 balance_ns;	   /* when its waiting spread tasks are compared with other CPUs' next */
	u64 pulls, pushes; /* tasks that it has taken from other CPUs, given to them */
	u64 back_ns;	   /* when it came online last */
	u32 crossing[TIERCE_CROSSINGS];
};

struct tierce_inbox { /* alone on its cache line: set by others without our lock */
	u64 bits;
	u64 pullers; /* CPUs that are about to take a task from it, and those that were turned away (pull.c) */
	u64 pad[6];
};

/* A spread node: one replica on each of its CPUs. */
struct tierce_family {
	u32 replica[TIERCE_CPUS]; /* node, 0: none on that CPU */
	u32 kind;		  /* policy of all of them; 0: free */
	u32 replicas, tasks;	  /* how many; tasks attached below any of them */
	u64 cpus;		  /* of the replicas, a bit each; up to 64, see cpus.h */
	u64 clock;		  /* virtual time of a replica where tasks wait, the largest so far; see engine/spread.c */
};

/* Which CPUs are near a CPU, itself among them; a bit each, for up to 64. */
struct tierce_near {
	u64 core, cache, memory; /* share a core (SMT), a last-level cache, a NUMA node */
};

/* A set of CPUs of a machine with more than 64; see cpus.h. */
#define TIERCE_WORDS ((TIERCE_CPUS + 63) / 64)
#define TIERCE_NEARS 6 /* sets of each CPU */
#define TIERCE_SETS  (TIERCE_CPUS > 64 ? 2 * TIERCE_NODES + TIERCE_FAMILIES + TIERCE_NEARS * TIERCE_CPUS : 1)
struct tierce_set {
	u64 word[TIERCE_WORDS];
};

struct tierce_domain {
	u32 ticket, serving; /* lock */
	u32 events;	     /* heap of edges by the time of their next event */
	u32 works;
	u32 work[TIERCE_WORKS]; /* nodes whose ability to use a CPU changed (inside one entry only) */
};

/* CPUs that reach shared nodes together. Of a CPU that does so with no other, nothing is used. */
struct tierce_group {
	u32 nodes;    /* nodes and tasks in its domain */
	u32 timer;    /* CPU that serves the events of its domain: the lowest online one of the group */
	u64 until_ns; /* when it will */
	u64 pad[6];
};

struct tierce {
	struct tierce_inbox inbox[TIERCE_CPUS];
	struct tierce_cpu cpu[TIERCE_CPUS]; /* what every entry looks at is near the beginning */
	struct tierce_domain domain[TIERCE_DOMAINS];
	struct tierce_group group[TIERCE_CPUS]; /* by its lowest CPU; under the lock of its domain */
	u32 cpus;
	u32 lowest;   /* CPU that is online */
	u32 loses;    /* an edge has come that pays for what is stolen (and may be gone) */
	u32 quiet;    /* the port decides after every batch of its own accord: entries do not compare, they kick */
	u64 begin_ns; /* of graph_init: accounting starts here */
	u64 floor_ns; /* shortest timer worth arming */
	struct tierce_edge edge[TIERCE_EDGES] PORT_ALIGNED;
	struct tierce_node node[TIERCE_NODES];
	struct tierce_family family[TIERCE_FAMILIES]; /* 0: none */
	struct tierce_near near[TIERCE_CPUS];
	u64 idle
	    [8]; /* CPUs with nothing to run, a bit each; alone on its cache line, changed without a lock: 512 CPUs at most */
	u32 families; /* used so far, 0 among them; 0: no node is spread */
	u32 pad;
	u64 stage[TIERCE_NODE_PARAMS]; /* parameters of the control operation under way */
	u32 known[TIERCE_SEEN + 2];    /* while an order is looked through: who comes next */
	u32 spare_node[TIERCE_NODES], spare_edge[TIERCE_EDGES], spare_row[TIERCE_ROWS]; /* given back */
	u32 spare_nodes, spare_edges, spare_rows;
	u32 fresh_node, fresh_edge, fresh_row; /* never used: these and all above */
	/* A machine of up to 64 CPUs has the first TIERCE_ROWS of these, and touches nothing behind them. */
	struct tierce_row row[TIERCE_ROWS * TIERCE_WORDS];
	struct tierce_set set[TIERCE_SETS];
};

/* ---- the engine's entries (engine/) ----------------------------------------------------------------------------- */

/* Reset a zeroed state for `cpus` CPUs, all online. */
TIERCE_FN int graph_init(u32 cpus, u64 now);

/* Every entry below: lock, charge the running path, handle due events (at most 64; if more are due until_ns is in the
 * past), the operation, unlock. A decision takes the inbox, too. A request charges and handles events only if something is
 * due on its CPU by then. Operations on a CPU's tree end with a comparison: when a decision there would change what it
 * runs, or its timer has to be set earlier than armed_ns, the CPU is kicked (port_kick).
 * In `quiet` states the comparison is left out and every touched CPU is kicked.
 *
 * `stolen_ns` of an entry is the part of the time since the CPU's last entry that interrupts took. A port that finds out
 * between entries adds to tierce.cpu[cpu].taken_ns instead, on that CPU only: the next charge passes it. Time between
 * graph_outside(cpu, 1) and graph_outside(cpu, 0) is stolen as a whole. A `now` before the CPU's last charge counts as
 * that charge. */

/* A task became able to use a CPU / no longer is: from any CPU; a running task is released where it runs. */
TIERCE_FN int graph_request(u32 task, u32 why, u64 now);
TIERCE_FN int graph_release(u32 task, u32 why, u64 now);
/* The absolute deadline of the task's current job; TIERCE_NEVER for none. */
TIERCE_FN int graph_announce(u32 task, u64 deadline_ns, u64 now);
/* The task's turn ends: its parent has it requested anew, as if it had blocked for no time; nodes above go on, if it runs in
 * a CPU's own tree and has no other parent. */
TIERCE_FN int graph_yield(u32 task, u64 now);
/* The task tells its parents something (enum tierce_message), with staged parameters, in the order of the plan until one says
 * yes: 0; else what the first one said that understood it. Callers serialise it as control operations. */
TIERCE_FN int graph_tell(u32 task, u32 kind, u64 now);
/* Decide what `cpu` runs from `now` on; returns the task or TIERCE_NONE. The port then switches, sets its timer to
 * tierce.cpu[cpu].armed_ns if that differs from what it is set to, and calls graph_returned once the old task, if it
 * changed, is off the CPU, before the next decision there. `left`: what ran has blocked; if it was this task, it is
 * released first, as by graph_release. TIERCE_YIELDED | task: it gives way, if it runs in a CPU's own tree and has no other
 * parent. */
TIERCE_FN u32 graph_decide(u32 cpu, u32 left, u64 now, u64 stolen_ns);
/* Only charge and handle events, on `cpu` itself: its timer fired, or time was stolen. Kicks the CPU if its decision
 * would change, otherwise updates armed_ns. */
TIERCE_FN int graph_event(u32 cpu, u64 now, u64 stolen_ns);
/* What ran on `cpu` before its last decision is off the CPU and in the port's custody, or blocked. */
TIERCE_FN int graph_returned(u32 cpu, u64 now);
/* `cpu` begins (1) or ends (0) to run something outside the graph. 1 + task: it is this task, out of turn; the time is stolen
 * from the others and comes off the budgets that are spent above it, if the task is of the CPU's own tree. */
TIERCE_FN int graph_outside(u32 cpu, u32 begins, u64 now);

/* ---- control operations (engine/control.c) ---------------------------------------------------------------------------- */

/* Parameters are staged first (graph_stage), then used by the next call. All return an error or 0 unless said. An argument that is
 * a set of CPUs has a bit for each of the first 64; of further ones, 64 at a time, bits are staged as `index`
 * TIERCE_NODE_PARAMS + 1, + 2 and so on. Before that, and from then on, they are what was staged last: all, to begin with. */
TIERCE_FN int graph_stage(u32 index, u64 value);
TIERCE_FN u32 graph_node_new(u32 kind, u32 concurrency, u64 allowed);	  /* id, or 0; node parameters staged */
TIERCE_FN u32 graph_edge_new(u32 parent, u32 child, s32 rank, u32 flags); /* id, or 0; EDGE_WHEN_SPENT or 0 */
TIERCE_FN int graph_attach(u32 edge, u64 now);	 /* edge parameters staged; admission; parents before children */
TIERCE_FN int graph_set(u32 edge, u64 now);	 /* new parameters staged; all or nothing */
TIERCE_FN int graph_detach(u32 edge, u64 now);	 /* takes it out and frees it; the child keeps its other parents;
						      * still_running: it was shut, try again after the decision */
TIERCE_FN int graph_node_set(u32 node, u64 now); /* new node parameters staged */
TIERCE_FN int graph_node_free(u32 node);
TIERCE_FN int graph_root(u32 cpu, u32 node, u64 now);	/* `node` becomes what `cpu` runs */
TIERCE_FN int graph_allow(u32 task, u64 bits, u64 now); /* affinity of a waiting or ready task */
TIERCE_FN int graph_online(u32 cpu, u32 online, u64 now);
/* A node without children becomes a replica of the spread node whose first replica is `first` (itself: of a new one). */
TIERCE_FN int graph_replica(u32 node, u32 first);

/* ---- spread nodes (engine/spread.c) ---------------------------------------------------------------------------- */

/* What runs near what: sets of CPUs that share a core, a last-level cache, a NUMA node with `cpu`; of the CPUs from 64 * word on.
 * For ports, before use. */
TIERCE_FN int graph_near(u32 cpu, u32 word, u64 core, u64 cache, u64 memory);
/* A task below a spread node moves in two entries, each under the lock of one CPU: it leaves its replica, READY or asleep
 * but not running, for CPU `to`, and then enters the one on `cpu`. In between, entries about it wait (port_await). */
TIERCE_FN int graph_leave(u32 task, u32 to, u64 now);
TIERCE_FN int graph_enter(u32 task, u32 cpu, u32 why, u64 now); /* why: enum tierce_migration */
/* Both, for a task that is to be on `cpu`: a wake-up if it sleeps. */
PORT_FLAT int graph_home(u32 task, u32 cpu, u64 now);
/* The CPU on which a task that wakes should wait: `home` (where it ran last) if idle, else an idle one near it, else `home`.
 * An idle one is claimed. `node`: a replica of its spread node; `allowed`: CPUs on which it may run, a cpus_t (cpus.h). */
TIERCE_FN u32 graph_place(u32 node, u32 home, u64 allowed);
/* Of the CPUs `allowed` the online one where fewest tasks of that spread node want to run, TIERCE_CPUS: there is none. */
TIERCE_FN u32 graph_refuge(u32 node, u64 allowed);
/* `cpu` went offline: the tasks that wait there and may move go to other CPUs. Returns how many. */
PORT_FLAT u32 graph_evacuate(u32 cpu, u64 now);
/* A task waits on a busy CPU: an idle one that could take it is claimed and kicked. For each task that begins to wait, after the
 * entry; tasks that wait on a CPU that does not decide for them are offered by its decision. */
TIERCE_FN int graph_offer(u32 task);
/* `cpu` has decided for nothing: it takes a task that waits elsewhere. Returns the task, or TIERCE_NONE. It decides again then,
 * and looks again if that is for nothing. */
PORT_FLAT u32 graph_pull(u32 cpu, u64 now);
/* If it is time: `cpu`, where tasks wait, gives one to a CPU on which it is served earlier. Returns the task. */
PORT_FLAT u32 graph_balance(u32 cpu, u64 now);

/* ---- record and replay ------------------------------------------------------------------------------------------ */

/* Every entry and control operation ends with port_record(op, a, b, value, now, result, drained) while it still holds its
 * locks. Calling the same operations with the same arguments in the recorded order on another build gives the same
 * results, bit for bit. `drained`: what the entry took from its CPU's inbox, which others set unlocked. `seen`: what it found
 * stolen on another CPU. `met`: the virtual time of a spread node that it found beyond that of its replica. */
#define TIERCE_OP_LIST(O) \
	O(1, init, "cpus", "", "", "") \
	O(2, request, "task", "why", "", "") \
	O(3, release, "task", "why", "", "") \
	O(4, announce, "task", "", "deadline_ns", "") \
	O(5, decide, "cpu", "task decided for (result)", "stolen_ns", "until_ns") \
	O(6, event, "cpu", "", "stolen_ns", "until_ns") \
	O(7, returned, "cpu", "", "", "") \
	O(8, outside, "cpu", "begins", "", "") \
	O(9, stage, "index", "", "value", "") \
	O(10, node_new, "kind", "concurrency", "allowed", "node") \
	O(11, node_set, "node", "", "", "error") \
	O(12, node_free, "node", "", "", "error") \
	O(13, edge_new, "parent", "child", "rank, flags << 32", "edge") \
	O(14, attach, "edge", "", "", "error") \
	O(15, set, "edge", "", "", "error") \
	O(16, detach, "edge", "", "", "error") \
	O(17, root, "cpu", "node", "", "error") \
	O(18, allow, "task", "", "cpus", "error") \
	O(19, online, "cpu", "online", "", "error") \
	O(20, taken, "cpu", "", "stolen_ns", "") \
	O(21, yield, "task", "", "", "") \
	O(22, tell, "task", "kind", "", "error") \
	O(23, seen, "cpu", "", "stolen_ns", "") \
	O(24, replica, "node", "first", "", "error") \
	O(25, leave, "task", "cpu", "", "error") \
	O(26, enter, "task", "cpu", "why", "error") \
	O(27, met, "spread node", "", "clock", "") \
	O(28, balance, "cpu", "", "next_ns", "")
#define TIERCE_ENUM(number, name, a, b, value, result) TIERCE_OP_##name = number,
enum tierce_op { TIERCE_OP_LIST(TIERCE_ENUM) };
#undef TIERCE_ENUM

/* ---- the checker (engine/check.c) ------------------------------------------------------------------------------ */

/* First broken invariant (a number documented in check.h) or 0; every node, edge, order and CPU is looked at.
 * `rest`: also what holds only when no kick is pending and nobody is leaving. */
TIERCE_FN u32 graph_check(u32 rest);

/* ---- contract of a policy -------------------------------------------------------------------------------------- */
/*
 * A policy NAME defines these functions; the engine calls them through a switch generated from policies.h. It sees
 * its own node, its edges and the time it is given. It never follows ids to other nodes, never loops without a bound.
 *
 *   int  NAME_attach(edge, now)        admission of an edge with staged parameters; sets them; refuse by error
 *   int  NAME_set(edge, now)           the same for an edge that is attached and WAITING
 *   void NAME_detach(edge)             leave nothing behind
 *   void NAME_request(edge, why, now)  WAITING -> READY: into the order, unless spent
 *   void NAME_release(edge, why, now)  READY -> WAITING: out of the order
 *   u32  NAME_first(node, first, cpu, now)
 *                                      of a node that several CPUs reach: which of the READY edges that `cpu` may run it takes;
 *                                      `first` is the first of the order
 *   u32  NAME_pick(node, first, running, now)
 *                                      pure: which of `first` (the first READY edge this CPU may run) and `running`
 *                                      (this CPU's granted edge) should have the CPU
 *   void NAME_grant(edge, now)         READY -> GRANTED: the engine took it out of the order
 *   void NAME_revoke(edge, why, now)   GRANTED -> READY (OUTRANKED: into the order) or off
 *   bool NAME_charge(edge, ran, now)   it ran: spend, advance, renew a quantum; true: it has set EDGE_SPENT
 *   bool NAME_lose(edge, stolen)       as much was stolen while it had the CPU; true: it pays for that with the charge that
 *                                      comes next, if only of 0
 *   u64  NAME_until(edge, now)         when budget or quantum of this running edge ends, or never
 *   bool NAME_before(a, b, now)        strict order of two edges
 *   void NAME_event(edge, now)         its event is due (it was taken out of the heap): replenish; idempotent
 *   void NAME_announce(edge, deadline_ns, now)   a child's deadline changed
 *   u64  NAME_deadline(node, now)      what the node announces itself
 *   int  NAME_tell(edge, kind, now)    its child, a task, sends a message (enum tierce_message) with staged parameters: yes, or the
 *                                      error that says why not; an edge with a condition never does
 *   int  NAME_init(node)               check and take staged node parameters
 *   u32  NAME_check(edge, rest)        its part of the checker: the first broken invariant (check.h) or 0
 *   u32  NAME_check_node(node)
 *
 * With TIERCE_SPREADS also:
 *   void NAME_depart(edge)             WAITING: leave nothing behind, as detach, but keep what the child is owed
 *   void NAME_arrive(edge, now)        WAITING: below another replica; a request with TIERCE_MOVED or WOKE may follow
 *   u64  NAME_ahead(edge, to, now)     of a READY edge: by how much it would be better off below the replica `to` of a busy CPU,
 *                                      0: it would not. `to` is not locked: a guess
 *   u64  NAME_clock(node, now)         virtual time that replicas have in common, 0: none
 *
 * Services: order_insert/order_remove (heap of READY edges, per CPU where affinity asks for it), event_set/event_clear.
 */

/* ---- what a port provides (port.h of the target) --------------------------------------------------------------- */
/*
 *   u8 u16 u32 u64 s32 s64 bool      fixed-width types
 *   TIERCE_NODES _EDGES _ROWS _CPUS  limits, ids included 0
 *   TIERCE_FN                        linkage of a function that crosses files
 *   PORT_FLAT                        linkage of an entry made of two: part of its caller, where frames are few
 *   STATE(field)                     a field of the engine's state that is no array, where an address kept for long costs
 *   HELD(pointer, field)             a field that does not change while its domain is locked, where stores hide that from a compiler
 *   PORT_SHORT                       linkage of a function whose short ways should not be calls
 *   PORT_ASIDE                       as PORT_SHORT, unless the port has little stack: then the function is called
 *   PORT_MANY                        the machine has more than 64 CPUs; of ports with a higher limit only, as is
 *   HIDDEN(number)                   the number, of which a compiler with few registers must not make anything in advance
 *   PORT_HAS(policy)                 0: no plan of the port has that policy, so that its code is left out
 *   PORT_HAS_PART(name)              0: no plan of the port needs that part of the engine (enum tierce_part)
 *   PORT_USES(policy)                PORT_HAS in each case of a dispatch
 *   PORT_NO_OTHER()                  the end of a dispatch: nothing, or says that nobody comes there
 *   PORT_APART                       attribute of a static function that is kept out of its caller where registers are few
 *   PORT_ALIGNED                     attribute of the first large array, where offsets are cheaper to add when they are round
 *   S                                the state: an lvalue of struct tierce
 *   AT(array, index)                 an element of an array in the state, as a verifier wants it addressed
 *   AT_STATE(array, index)           the same of one of the state's own arrays, by its name
 *   ZERO                             0, hidden from a verifier that would follow every value of a counter
 *   CAN_LOOP                         1, or the target's loop guard; ends a loop when its allowance is used up
 *   PORT_YIELDS                      1: graph_decide is told of yields
 *   PORT_QUIET                       tierce.quiet, or 0 if that is never set
 *   port_lock(domain), port_unlock(domain)
 *   port_inbox_set(cpu, bits), port_inbox_take(cpu)      atomic or / exchange with 0
 *   TIERCE_FAMILIES                  limit of spread nodes, one more than there may be
 *   port_await(task)                 wait until a task in transit has entered; in a port of one thread there is none
 *   port_movable(task)               1: the port could give a task that waits to another CPU now
 *   port_bits_set(word, bits), port_bits_clear(word, bits)   atomic
 *   port_bits_claim(word, bits)      the same as clear; 1: they were set, and nobody else has claimed them
 *   port_raise(word, was, value)     atomic: value if it still is `was`
 *   port_count(word, change)         atomic: adds to it, returns what it was
 *   port_kick(cpu)                   make `cpu` call graph_decide soon
 *   port_trace(kind, cpu, a, b, value, now)              see events.h; may be empty
 *   port_record(op, a, b, value, now, result, drained)   see enum tierce_op; may be empty
 *   port_fail(reason)                our bug: stop here (simulator), leave the machine to its default (kernel)
 */
#endif
