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

/* ---- state ------------------------------------------------------------------------------------------------------ */

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096); /* pages */
} arena SEC(".maps");

u32 tierce_zero;
unsigned long long port_nothing[1];

/* Constants of a run, set before loading. Weak, so that the compiler takes them for constant, but not for these. */
CONSTANT(u64, policies) = ~0ull;
CONSTANT(u64, parts) = ~0ull;
CONSTANT(u64, trace_kinds) = 0;
CONSTANT(u64, record_entries) = 0;
CONSTANT(u32, cpus_here) = 1;
CONSTANT(u64, several_cpus) = 0;
CONSTANT(u64, overheads_stolen) = 1;
CONSTANT(u64, throttle_at_user) = 0;
CONSTANT(u64, locks_fair) = 1;
CONSTANT(u64, count_contention) = 0;
#define WANTED(constant) KNOWN_BIT(constant, 0)

struct thread {	    /* of every thread, in its task storage */
	u32 leaf;   /* its task in the graph, 0: none, it runs outside */
	u32 next;   /* the task it becomes as soon as it is off the CPU, 0: none; or COMMAND_TO_DEFAULT */
	u32 lost;   /* it has not the place that the plan has for it: it left our class, or may not run there */
	u32 beside; /* no leaf was left for it; counted once */
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

struct slot { /* the thread of a leaf; set while it has one */
	struct task_struct __kptr *task;
	struct bpf_task_work work; /* until it goes back to user mode */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIERCE_NODES);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct timer {
	struct bpf_timer timer;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIERCE_CPUS);
	__type(key, u32);
	__type(value, struct timer);
} timers SEC(".maps");

struct { /* of struct tierce_event; its size is set when loaded */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

struct { /* of struct tierce_entry; its size is set when loaded */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} news SEC(".maps");

struct tierce_side ARENA tierce_side;
#define SIDE (*(struct tierce_side *)&tierce_side)

#define GUESSES 16384u /* a leaf each, by the number of its thread: who had that number last */
u32 ARENA tierce_guess[GUESSES];
#define guesses (*(u32(*)[GUESSES])&tierce_guess)

static inline struct tierce_leaf *leaf_at(u32 leaf)
{
	return &AT_FIXED(tierce_side, struct tierce_side, leaf, leaf);
}
static inline struct tierce_cpu_side *side_at(u32 cpu)
{
	return &AT_FIXED(tierce_side, struct tierce_side, cpu, cpu);
}

#include "../policy/graph.c"
#include "../policy/control.c"

_Static_assert(sizeof(((struct tierce_command *)0)->param) == TIERCE_NODE_PARAMS * sizeof(u64), "those of a node");
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
};

/* ---- the kernel's functions ------------------------------------------------------------------------------------- */

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
void scx_bpf_dispatch_cancel(void) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_local_irq_save(unsigned long *flags) __ksym;
void bpf_local_irq_restore(unsigned long *flags) __ksym;
int bpf_task_work_schedule_resume(struct task_struct *p, struct bpf_task_work *work, void *map__map,
				  bpf_task_work_callback_t callback) __ksym __weak;
extern struct pt_regs *__irq_regs __ksym __weak;

static inline u64 now_ns(void)
{
	return bpf_ktime_get_ns();
}
/* Where it runs, ran last, or is about to wait. */
static inline u32 cpu_of(const struct task_struct *p)
{
	return p->thread_info.cpu;
}
static inline struct thread *thread_of(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, 0, 0);
}
/* Its leaf, if that is known without a look into its storage: nearly always. */
static inline u32 *leaf_guess(struct task_struct *p)
{
	return &AT(guesses, (u32)p->pid % GUESSES);
}
static inline u32 leaf_known(struct task_struct *p)
{
	u32 leaf = *leaf_guess(p);
	return leaf_at(leaf)->pid == (u32)p->pid ? leaf : TIERCE_NONE;
}
/* A kernel thread that the kernel has bound to one CPU: part of its own work there, never scheduled by us. */
static inline bool thread_is_pinned(struct task_struct *p)
{
	return (p->flags & (PF_KTHREAD | PF_NO_SETAFFINITY)) == (PF_KTHREAD | PF_NO_SETAFFINITY) && p->nr_cpus_allowed == 1;
}
/* May it not migrate? A thread may not while one of these programs runs in it: that alone binds nobody. */
static inline bool thread_is_bound(struct task_struct *p)
{
	return WANTED(several_cpus) && p->migration_disabled > (p == bpf_get_current_task_btf());
}
static inline void slice_set(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}

/* ---- port: kicks, locks, records --------------------------------------------------------------------------------------- */

#define AWAY_NS	     2000000 /* a thread of a higher class that runs longer is not waited for */
#define FORGOTTEN_NS 1000000 /* a CPU that was asked to decide has done so long before */
#define LOCK_NS	     20000000000 /* nobody holds a lock this long, not even on a virtual CPU that stands still */
#define LOCK_ROUNDS  (8 << 20)
#define LOCK_TRIES   1000

static inline void port_kick(u32 cpu)
{
	if (!side_at(cpu)->blocking)
		scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
}

/*
 * A lock is `ticket` and `serving`. Fair: a ticket lock, first come, first served. On a virtual machine that order does harm:
 * the lock is handed to a CPU that the host has descheduled, and all others wait until that one runs again. There `ticket`
 * is a test-and-set lock: whoever runs takes it. The kernel chooses the same way for its own spinlocks.
 *
 * Not CAN_LOOP: its allowance ends after a quarter of a second, and a virtual CPU may stand still for longer. Once a lock
 * was lost nobody waits any more: the scheduler is on its way out.
 */
static inline bool lock_got(volatile u32 *ticket, volatile u32 *serving, u32 mine)
{
	if (WANTED(locks_fair))
		return *serving == mine;
	return !*ticket && !__sync_val_compare_and_swap(ticket, 0, 1);
}
static inline void lock_spin(volatile u32 *ticket, volatile u32 *serving, u32 mine)
{
	u64 began = now_ns();
	int round, tries;
	bpf_for(round, 0, LOCK_ROUNDS)
	{
		bpf_for(tries, 0, LOCK_TRIES) if (lock_got(ticket, serving, mine) || SIDE.lock_lost) return;
		if (now_ns() - began > LOCK_NS)
			break;
	}
	SIDE.lock_lost = 1;
	port_fail("a lock stayed taken");
}
TIERCE_FN int lock_wait(u32 domain, u32 mine)
{
	u64 since = WANTED(count_contention) ? now_ns() : 0;
	lock_spin(&domain_at(domain)->ticket, &domain_at(domain)->serving, mine);
	if (WANTED(count_contention)) {
		AT(SIDE.lock, domain).waited++;
		AT(SIDE.lock, domain).wait_ns += now_ns() - since;
	}
	return 0;
}
TIERCE_FN int lock_taken(u32 domain)
{
	struct tierce_lock_side *lock = &AT(SIDE.lock, domain);
	u32 cpu = bpf_get_smp_processor_id();
	lock->taken++;
	if (lock->last != cpu) {
		lock->last = cpu;
		lock->taken_over++;
	}
	lock->since_ns = now_ns();
	return 0;
}
/* Of a test-and-set lock `serving` stays 0: who finds that in `ticket` has it. */
static inline void port_lock(u32 domain)
{
	u32 *ticket = &domain_at(domain)->ticket;
	u32 mine = WANTED(locks_fair) ? __sync_fetch_and_add(ticket, 1) : __sync_lock_test_and_set(ticket, 1);
	if (*(volatile u32 *)&domain_at(domain)->serving != mine)
		lock_wait(domain, mine);
	asm volatile("" ::: "memory");
	if (WANTED(count_contention))
		lock_taken(domain);
}
static inline void port_unlock(u32 domain)
{
	/* Of the shared domain, which is the constant: others seldom wait for the lock of a CPU. */
	if (WANTED(count_contention) && __builtin_constant_p(domain))
		AT(SIDE.lock, domain).held_ns += now_ns() - AT(SIDE.lock, domain).since_ns;
	if (WANTED(locks_fair))
		__sync_fetch_and_add(&domain_at(domain)->serving, 1);
	else
		__sync_lock_test_and_set(&domain_at(domain)->ticket, 0);
}

/* A task in transit is there within a few instructions of the CPU that moves it. */
TIERCE_FN int home_wait(u32 task)
{
	volatile u32 *domain = &node_at(task)->domain;
	u64 began = now_ns();
	int round, tries;
	bpf_for(round, 0, LOCK_ROUNDS)
	{
		bpf_for(tries, 0, LOCK_TRIES) if (*domain != TIERCE_TRANSIT || SIDE.lock_lost) return 0;
		if (now_ns() - began > LOCK_NS)
			break;
	}
	SIDE.lock_lost = 1;
	port_fail("a task stayed in transit");
	return 0;
}
static inline void port_await(u32 task)
{
	home_wait(task);
}
static inline bool port_movable(u32 task)
{
	return leaf_at(task)->custody == CUSTODY_FREE;
}

/* Control operations are made one after the other. Order: run queue, this, domains. */
TIERCE_FN int control_lock(void)
{
	u32 mine = WANTED(locks_fair) ? __sync_fetch_and_add(&SIDE.ticket, 1) : 0;
	lock_spin(&SIDE.ticket, &SIDE.serving, mine);
	return 0;
}
TIERCE_FN int control_unlock(void)
{
	if (WANTED(locks_fair))
		__sync_fetch_and_add(&SIDE.serving, 1);
	else
		__sync_lock_test_and_set(&SIDE.ticket, 0);
	return 0;
}

TIERCE_FN int trace_write(u64 head, u64 now, u32 a, u32 b, u64 value)
{
	struct tierce_event *event = bpf_ringbuf_reserve(&records, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&SIDE.lost, 1);
		return 0;
	}
	event->now_ns = now;
	event->kind = head;
	event->cpu = head >> 16;
	event->a = a;
	event->b = b;
	event->pad = 0;
	event->value = value;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static inline void record_write(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained)
{
	struct tierce_entry *entry = bpf_ringbuf_reserve(&entries, sizeof *entry, 0);
	if (!entry) {
		__sync_fetch_and_add(&SIDE.lost_entries, 1);
		return;
	}
	entry->now_ns = now;
	entry->value = value;
	entry->result = result;
	entry->drained = drained;
	entry->op = op;
	entry->a = a;
	entry->b = b;
	entry->lost = (u32)SIDE.lost_entries;
	bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
}

/* A leaf is another thread from now on. */
static inline void name_write(u32 leaf, struct task_struct *p, u64 now)
{
	struct tierce_event *event;
	if (!TRACES(TIERCE_EV_name))
		return;
	event = bpf_ringbuf_reserve(&records, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&SIDE.lost, 1);
		return;
	}
	event->now_ns = now;
	event->kind = TIERCE_EV_name;
	event->cpu = 0;
	event->a = leaf;
	bpf_probe_read_kernel(&event->b, 16, p->comm); /* b, pad, value */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}

/* ---- jobs: from a wake-up to the next voluntary block ----------------------------------------------------------- */

static inline void job_begin(u32 leaf, u64 now)
{
	u64 relative = leaf_at(leaf)->deadline_ns, deadline = TIERCE_NEVER;
	if (!relative)
		return;
	if (relative != TIERCE_NEVER)
		deadline = now + relative;
	if (relative != TIERCE_NEVER || TRACES(TIERCE_EV_job_complete)) /* else nobody asks when it ends */
		leaf_at(leaf)->woke_ns = now;
	leaf_at(leaf)->job++;
	port_trace(TIERCE_EV_job_release, node_at(leaf)->last_cpu, leaf, leaf_at(leaf)->job, deadline, now);
	if (deadline != TIERCE_NEVER && policy_heeds_deadlines(edge_at(node_at(leaf)->first_parent)->kind))
		graph_announce(leaf, deadline, now);
}
static inline void job_end(u32 leaf, u64 now)
{
	u64 relative = leaf_at(leaf)->deadline_ns, woke = leaf_at(leaf)->woke_ns;
	u32 job = leaf_at(leaf)->job;
	if (!woke)
		return;
	leaf_at(leaf)->woke_ns = 0;
	if (relative != TIERCE_NEVER && now > woke + relative) {
		leaf_at(leaf)->misses++;
		port_trace(TIERCE_EV_miss, node_at(leaf)->last_cpu, leaf, job, woke + relative, now);
	}
	port_trace(TIERCE_EV_job_complete, node_at(leaf)->last_cpu, leaf, job, now - woke, now);
}

/* ---- news for the loader, which knows what matches -------------------------------------------------------------- */

static inline struct tierce_news *news_of(u32 kind, u32 id)
{
	struct tierce_news *item = bpf_ringbuf_reserve(&news, sizeof *item, 0);
	if (!item) {
		__sync_fetch_and_add(&SIDE.missed, 1);
		return 0;
	}
	item->kind = kind;
	item->id = id;
	return item;
}
static inline int tell(u32 kind, u32 id)
{
	struct tierce_news *item = news_of(kind, id);
	if (item)
		bpf_ringbuf_submit(item, 0);
	return 0;
}
static inline int tell_thread(u32 kind, struct task_struct *p)
{
	struct tierce_news *item = news_of(kind, p->pid);
	if (item) {
		item->pid = p->tgid;
		item->is_kthread = (p->flags & PF_KTHREAD) != 0;
		__builtin_memcpy(item->comm, p->comm, sizeof item->comm);
		bpf_ringbuf_submit(item, 0);
	}
	return 0;
}

/* ---- leaves of threads ------------------------------------------------------------------------------------------ */

static inline u64 cpus_of(const struct cpumask *mask)
{
	return mask->bits[0];
}

/* What the edge of a thread of that priority below the default node has for its i-th parameter. */
static inline u64 default_param(u32 i, u32 static_prio)
{
	u32 nice = static_prio - 100;
	if (i == SIDE.default_nice && nice < 40)
		return AT(SIDE.nice_weight, nice);
	return AT(SIDE.default_param, i & (TIERCE_PARAMS - 1));
}

/* Several CPUs, and a spread node: tasks move. */
static inline bool tasks_move(void)
{
	return WANTED(several_cpus) && S.families;
}
/* The default node where a thread on that CPU begins. */
static inline u32 default_on(u32 cpu)
{
	u32 node = SIDE.default_node, family = node_at(node)->family, replica;
	if (!tasks_move() || !family || cpu >= TIERCE_CPUS)
		return node;
	replica = replica_on(family, cpu);
	return replica ? replica : node;
}

/* A leaf below the default node, 0 when the pool is used up or none of `cpus` can be reached. */
static inline u32 leaf_new(u64 cpus, u32 cpu, u32 static_prio, u64 now)
{
	u32 leaf, edge, i, parent = default_on(cpu);
	control_lock();
	for (i = 0; i < TIERCE_NODE_PARAMS; i++)
		graph_stage(i, 0);
	leaf = graph_node_new(TIERCE_TASK, 1, cpus);
	if (leaf) {
		edge = graph_edge_new(parent, leaf, 0, node_at(parent)->family ? EDGE_SPREAD : 0);
		for (i = 0; i < TIERCE_PARAMS; i++)
			graph_stage(i, default_param(i, static_prio));
		if (!edge || graph_attach(edge, now)) {
			if (edge)
				graph_detach(edge, now);
			graph_node_free(leaf);
			leaf = TIERCE_NONE;
		}
	}
	if (leaf) {
		leaf_at(leaf)->own = LEAF_DEFAULT;
		leaf_at(leaf)->deadline_ns = SIDE.default_jobs;
		port_trace(TIERCE_EV_attach, 0, edge, leaf, parent, now);
	}
	control_unlock();
	return leaf;
}

#define LIKE_PARENTS 8 /* edges of a leaf that another can have as well */

/* A leaf with edges like those of another one, 0 if it cannot have them. */
static inline u32 leaf_like(u32 like, u64 now)
{
	u32 edge, leaf, copy = TIERCE_NONE, i, n;
	control_lock();
	edge = node_at(like)->first_parent;
	for (i = 0; i < TIERCE_NODE_PARAMS; i++)
		graph_stage(i, 0);
	leaf = edge ? graph_node_new(TIERCE_TASK, 1, node_at(like)->allowed) : TIERCE_NONE;
	if (leaf) {
		leaf_at(leaf)->own = LEAF_MEMBER;
		leaf_at(leaf)->deadline_ns = leaf_at(like)->deadline_ns;
	}
	for (n = ZERO; leaf && edge && n < LIKE_PARENTS && CAN_LOOP; n++) {
		for (i = 0; i < TIERCE_PARAMS; i++)
			graph_stage(i, edge_at(edge)->param[i]);
		copy = graph_edge_new(edge_at(edge)->parent, leaf, edge_at(edge)->rank,
				      edge_at(edge)->flags & (EDGE_WHEN_SPENT | EDGE_SPREAD));
		if (!copy || graph_attach(copy, now))
			break;
		port_trace(TIERCE_EV_attach, 0, copy, leaf, edge_at(edge)->parent, now);
		edge = edge_at(edge)->next_parent;
		copy = TIERCE_NONE;
	}
	if (leaf && edge) { /* not all of them: the loader takes it apart */
		if (copy)
			graph_detach(copy, now);
		leaf_at(leaf)->dead = 1;
		__sync_fetch_and_add(&SIDE.dead, 1);
		leaf = TIERCE_NONE;
	}
	control_unlock();
	return leaf;
}

/* Give a released leaf back. One that is part of the plan stays. Call with control locked. */
static inline u32 leaf_free_locked(u32 leaf, u64 now)
{
	u32 edge, error = 0;
	edge = node_at(leaf)->first_parent;
	if (edge) {
		error = graph_detach(edge, now);
		if (!error)
			port_trace(TIERCE_EV_detach, 0, edge, leaf, 0, now);
	}
	if (!error)
		error = graph_node_free(leaf); /* refused while there are more parents */
	if (error) {
		leaf_at(leaf)->dead = 1;
		__sync_fetch_and_add(&SIDE.dead, 1);
	} else {
		leaf_at(leaf)->own = LEAF_PLAN;
		leaf_at(leaf)->dead = 0;
	}
	return error;
}
static inline void leaf_free(u32 leaf, u64 now)
{
	if (leaf_at(leaf)->own == LEAF_PLAN)
		return;
	control_lock();
	leaf_free_locked(leaf, now);
	control_unlock();
}

static inline void slot_put(u32 leaf, struct task_struct *p)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &leaf);
	struct task_struct *task = bpf_task_acquire(p);
	if (!task)
		return;
	if (slot)
		task = bpf_kptr_xchg(&slot->task, task);
	if (task)
		bpf_task_release(task);
}
static inline void slot_clear(u32 leaf)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &leaf);
	struct task_struct *task = slot ? bpf_kptr_xchg(&slot->task, 0) : 0;
	if (task)
		bpf_task_release(task);
}

static inline void leaf_empty(u32 leaf)
{
	slot_clear(leaf);
	leaf_at(leaf)->custody = CUSTODY_NONE;
	leaf_at(leaf)->pid = 0;
}

/* Under the thread's run queue lock, the thread not queued. */
static inline void thread_leave(struct task_struct *p, struct thread *t, u64 now)
{
	u32 leaf = t->leaf;
	t->leaf = TIERCE_NONE;
	if (!leaf)
		return;
	leaf_empty(leaf);
	leaf_free(leaf, now);
}
/* It dies. */
static inline void thread_end(struct task_struct *p, struct thread *t, u64 now)
{
	u32 next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
	thread_leave(p, t, now);
	if (next && next < TIERCE_NODES)
		leaf_free(next, now);
}
static inline void thread_takes(struct task_struct *p, struct thread *t, u32 leaf)
{
	t->leaf = leaf;
	if (!leaf)
		return;
	leaf_at(leaf)->pid = p->pid;
	*leaf_guess(p) = leaf;
	leaf_at(leaf)->woke_ns = 0;
	leaf_at(leaf)->moving = 1;
	leaf_at(leaf)->overrun = OVERRUN_NONE;
	if (leaf_at(leaf)->own != LEAF_PLAN) {
		leaf_at(leaf)->job = 0;
		leaf_at(leaf)->misses = 0;
	}
	slot_put(leaf, p);
	if (leaf_at(leaf)->own != LEAF_PLAN)
		name_write(leaf, p, now_ns());
}
/* The plan has a place for it that it cannot have: the loader tells the user why. */
static inline void thread_is_lost(struct task_struct *p, struct thread *t, u32 error)
{
	__sync_fetch_and_add(&SIDE.displaced, 1);
	t->lost = 1;
	tell(NEWS_LOST | error << 8, p->pid);
}
/* To a leaf of the default node. */
static inline void thread_join(struct task_struct *p, struct thread *t, u64 cpus, u64 now)
{
	thread_takes(p, t, leaf_new(cpus, cpu_of(p), p->static_prio, now));
}
/* Take the leaf that was asked for meanwhile, if the thread may run where that leads. */
static inline void thread_move(struct task_struct *p, struct thread *t, u64 now)
{
	u64 cpus = cpus_of(p->cpus_ptr);
	u32 next, error;
	leaf_at(t->leaf)->moving = 0; /* before it is looked at: who sets it from now on says so again */
	next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
	if (!next)
		return;
	if (next == COMMAND_TO_DEFAULT) {
		thread_leave(p, t, now);
		thread_join(p, t, cpus, now);
		return;
	}
	error = leaf_at(next)->pid ? TIERCE_OK : graph_allow(next, cpus, now);
	if (error || leaf_at(next)->pid) {
		thread_is_lost(p, t, error);
		leaf_free(next, now);
		return;
	}
	thread_leave(p, t, now);
	thread_takes(p, t, next);
}

/* ---- timers: the CPU's own, armed by itself only ---------------------------------------------------------------- */

/* While a decision is pending nothing is armed but a look whether it was forgotten: the decision arms the timer. What
 * ends the running thread's time, not an event, is `later_ns` later: so long until it runs. */
static inline void arm(u32 cpu, u64 now, u64 later_ns)
{
	struct timer *t;
	u64 at = cpu_at(cpu)->armed_ns;
	u32 event = domain_at(cpu)->events;
	if (later_ns && at != TIERCE_NEVER && !(PORT_HAS_PART(shared) && at == S.shared_until_ns) &&
	    !(event && link_at(event)->key == at))
		at += later_ns;
	if (at <= now)
		at = cpu_at(cpu)->asked && !cpu_at(cpu)->outside ? now + FORGOTTEN_NS : TIERCE_NEVER;
	if (WANTED(several_cpus) && side_at(cpu)->away_at_ns && side_at(cpu)->away_at_ns < at)
		at = side_at(cpu)->away_at_ns;
	if (WANTED(throttle_at_user) && at > now + FORGOTTEN_NS &&
	    (cpu_at(cpu)->outside ? cpu_at(cpu)->outside > 1 : side_at(cpu)->overrun))
		at = now + FORGOTTEN_NS; /* it may have used up what it may overrun */
	if (at == side_at(cpu)->timer_ns || at == TIERCE_NEVER)
		return;
	t = bpf_map_lookup_elem(&timers, &cpu);
	if (!t)
		return;
	side_at(cpu)->timer_ns = at;
	side_at(cpu)->arms++;
	bpf_timer_start(&t->timer, at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* Has the last decision left this leaf by a shared edge, while its thread is still on the CPU? */
static inline bool cpu_has_left(u32 cpu, u32 leaf)
{
	return PORT_HAS_PART(shared) && side_at(cpu)->left == leaf;
}

/* Offline, not only away. The only CPU never goes. */
static inline bool cpu_is_gone(u32 cpu)
{
	return WANTED(several_cpus) && !cpu_at(cpu)->online && !side_at(cpu)->away;
}
/* A CPU that a higher class keeps for long is away: what waited for it there goes elsewhere if it can. */
static inline void cpu_goes(u32 cpu, u64 now)
{
	side_at(cpu)->away_at_ns = 0;
	side_at(cpu)->away = CPU_AWAY;
	side_at(cpu)->aways++;
	side_at(cpu)->left = TIERCE_NONE;
	graph_returned(cpu, now);
	graph_online(cpu, 0, now);
	graph_decide(cpu, 0, now, 0);
	graph_returned(cpu, now);
	if (tasks_move())
		graph_evacuate(cpu, now);
}
static inline void cpu_comes(u32 cpu, u64 now)
{
	u32 away = side_at(cpu)->away;
	if (!WANTED(several_cpus))
		return;
	side_at(cpu)->away_at_ns = 0;
	if (!away)
		return;
	if (away == CPU_GOES)
		cpu_goes(cpu, now);
	else
		graph_online(cpu, 1, now);
	side_at(cpu)->away = 0;
	if (away != CPU_AWAY)
		tell(NEWS_CPU, cpu);
}

/* Between two objects the graph stands still: who could use a CPU still can, what runs is stolen time. The second object's first
 * decision on a CPU ends that. The loader leaves a mark in interrupted_ns, so that no other decision looks for it. */
static inline void cpu_freezes(u32 cpu, u64 now)
{
	side_at(cpu)->frozen = 1;
	graph_outside(cpu, 1, now);
}
static inline void cpu_thaws(u32 cpu, u64 now)
{
	side_at(cpu)->frozen = 0;
	side_at(cpu)->thawed_ns = now;
	side_at(cpu)->blocking = 1;
	graph_returned(cpu, now);
	graph_outside(cpu, 0, now);
	side_at(cpu)->blocking = 0;
}

/* Interrupts, and what the kernel does at their end (softirqs), are stolen time. One that ends in a decision lasts until
 * then: what is between is the way into the scheduler. Not for long, though: a thread that cannot be preempted runs on. */
#define WAY_IN_NS 20000

static inline void average(u64 *average_ns, u64 took_ns)
{
	if (took_ns > WAY_IN_NS)
		took_ns = WAY_IN_NS;
	*average_ns = *average_ns ? *average_ns - *average_ns / 8 + took_ns / 8 : took_ns;
}
static inline void softirq_count(u32 cpu, u64 now)
{
	struct tierce_cpu_side *side = side_at(cpu);
	u64 nested_ns = cpu_at(cpu)->taken_ns - side->softirq_taken_ns; /* interrupts meanwhile */
	if (now > side->softirq_ns + nested_ns)
		cpu_at(cpu)->taken_ns += now - side->softirq_ns - nested_ns;
	side->softirq_ns = now;
	side->softirq_taken_ns = cpu_at(cpu)->taken_ns;
}
static inline void interrupted_until(u32 cpu, u64 now)
{
	u64 since = side_at(cpu)->interrupted_ns;
	if (since && now < since + WAY_IN_NS)
		cpu_at(cpu)->taken_ns += now - since;
	side_at(cpu)->interrupted_ns = 0;
}
/* Was the CPU in user mode when the interrupt came that is being served? (Not known to softirqs any more.) */
static inline bool user_interrupted(void)
{
	struct pt_regs **regs;
	if (!bpf_ksym_exists(&__irq_regs))
		return false;
	regs = bpf_this_cpu_ptr(&__irq_regs);
	return *regs && regs_are_users(*regs);
}

SEC("raw_tp")
int tierce_irq_begins(void *unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (cpu >= TIERCE_CPUS || !SIDE.ready)
		return 0;
	side_at(cpu)->irq_ns = now_ns();
	if (WANTED(throttle_at_user))
		side_at(cpu)->from_user = user_interrupted();
	return 0;
}
SEC("raw_tp")
int tierce_irq_ends(void *unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	u64 now;
	if (cpu >= TIERCE_CPUS || !side_at(cpu)->irq_ns)
		return 0;
	now = now_ns();
	cpu_at(cpu)->taken_ns += now - side_at(cpu)->irq_ns;
	side_at(cpu)->irq_ns = 0;
	side_at(cpu)->interrupted_ns = cpu_at(cpu)->asked | side_at(cpu)->frozen ? now : 0;
	return 0;
}
SEC("raw_tp")
int tierce_softirq_begins(void *unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (cpu < TIERCE_CPUS && SIDE.ready) {
		side_at(cpu)->softirq_taken_ns = cpu_at(cpu)->taken_ns;
		side_at(cpu)->softirq_ns = now_ns();
	}
	return 0;
}
SEC("raw_tp")
int tierce_softirq_ends(void *unused)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (cpu >= TIERCE_CPUS || !side_at(cpu)->softirq_ns)
		return 0;
	softirq_count(cpu, now_ns());
	if (side_at(cpu)->fired_ns) {
		average(&side_at(cpu)->way_out_ns, side_at(cpu)->softirq_ns - side_at(cpu)->fired_ns);
		side_at(cpu)->fired_ns = 0;
	}
	side_at(cpu)->interrupted_ns = cpu_at(cpu)->asked | side_at(cpu)->frozen ? side_at(cpu)->softirq_ns : 0;
	side_at(cpu)->softirq_ns = 0;
	return 0;
}

/* From the decision for a thread until it runs: the scheduler's own time, stolen too. The average of every 16th. */
static inline void switch_count(u32 cpu)
{
	if (!(side_at(cpu)->switches++ & 15))
		average(&side_at(cpu)->switch_ns, now_ns() - side_at(cpu)->decided_ns);
	cpu_at(cpu)->taken_ns += side_at(cpu)->switch_ns;
	side_at(cpu)->decided_ns = 0;
}

/* ---- overruns: `throttle = "user"` ------------------------------------------------------------------------------- */

/* A thread whose budget ends while it is in the kernel may hold locks there. It runs on, in debt, until it goes back to user
 * mode, or for OVERRUN_MAX_NS; meanwhile the CPU does not decide, as if it could not be preempted. One that wakes there without
 * a budget does the same, at once: for the graph its CPU runs it outside, out of turn. */
#define OVERRUN_MAX_NS 2000000

/* In the thread itself, when it goes back to user mode: it holds no lock there. */
static int overrun_ends(struct bpf_map *map, void *key, void *value)
{
	u32 leaf = *(u32 *)key, cpu;
	unsigned long flags;
	if (leaf >= TIERCE_NODES || leaf_at(leaf)->pid != (u32)bpf_get_current_pid_tgid())
		return 0;
	bpf_local_irq_save(&flags);
	cpu = bpf_get_smp_processor_id();
	leaf_at(leaf)->overrun = OVERRUN_NONE;
	if (cpu < TIERCE_CPUS && (side_at(cpu)->overrun || cpu_at(cpu)->outside == 1 + leaf)) {
		leaf_at(leaf)->overrun = OVERRUN_ENDS;
		port_kick(cpu);
	}
	bpf_local_irq_restore(&flags);
	return 0;
}

/* It has no budget: may it run on? */
static inline bool overrun_allowed(u32 leaf, struct task_struct *p)
{
	struct slot *slot;
	if (leaf_at(leaf)->overrun == OVERRUN_NONE) {
		slot = bpf_map_lookup_elem(&slots, &leaf);
		if (!slot || (p->flags & PF_KTHREAD) || !bpf_ksym_exists(bpf_task_work_schedule_resume) ||
		    bpf_task_work_schedule_resume(p, &slot->work, &slots, overrun_ends))
			return false;
		leaf_at(leaf)->overrun = OVERRUN_RUNS;
		leaf_at(leaf)->overrun_ns = node_at(leaf)->ran_ns;
	}
	return leaf_at(leaf)->overrun == OVERRUN_RUNS && node_at(leaf)->ran_ns - leaf_at(leaf)->overrun_ns <= OVERRUN_MAX_NS;
}

/* And no other way opens then. */
static inline bool path_is_spent(u32 cpu)
{
	u32 i, edge;
	for (i = ZERO; i < TIERCE_PATH && i < cpu_at(cpu)->path_length && CAN_LOOP; i++) {
		edge = AT(cpu_at(cpu)->path, i);
		if ((edge_at(edge)->flags & EDGE_SPENT) && !node_at(edge_at(edge)->child)->conditional)
			return true;
	}
	return false;
}
/* Of the CPU's own tree and without another way up. */
static inline bool leaf_is_spent(u32 leaf, u32 cpu)
{
	u32 level, edge = node_at(leaf)->first_parent;
	if (node_at(leaf)->domain != cpu)
		return false;
	for (level = ZERO; level < TIERCE_PATH && edge && !edge_at(edge)->next_parent && CAN_LOOP; level++) {
		if (edge_at(edge)->flags & EDGE_SPENT)
			return true;
		edge = node_at(edge_at(edge)->parent)->first_parent;
	}
	return false;
}
/* Let it run now, beside the graph's decision? */
static inline bool leaf_overruns(u32 leaf, u32 cpu, struct task_struct *p, bool wakes)
{
	if (leaf_at(leaf)->overrun == OVERRUN_ENDS)
		leaf_at(leaf)->overrun = OVERRUN_NONE;
	if (!(wakes || leaf_at(leaf)->overrun) || !leaf_is_spent(leaf, cpu) || !overrun_allowed(leaf, p))
		return false;
	side_at(cpu)->overruns += wakes;
	return true;
}

/* Does what runs on this CPU go on without a decision? */
static inline bool cpu_overruns(u32 cpu, u32 leaf, struct task_struct *p, u64 now)
{
	struct tierce_cpu_side *side = side_at(cpu);
	u64 until_ns = cpu_at(cpu)->until_ns;
	bool goes_on = false;
	if (leaf_at(leaf)->overrun == OVERRUN_ENDS) {
		leaf_at(leaf)->overrun = OVERRUN_NONE;
	} else if (cpu_at(cpu)->outside == 1 + leaf || (cpu_at(cpu)->task == leaf && !cpu_at(cpu)->outside)) {
		bool beside = cpu_at(cpu)->outside;
		if (beside || side->overrun || (until_ns && now >= until_ns)) { /* what it has used by now */
			side->blocking = 1;
			graph_event(cpu, now, 0);
			side->blocking = 0;
		}
		goes_on = (beside ? leaf_is_spent(leaf, cpu) : path_is_spent(cpu)) && overrun_allowed(leaf, p);
		side->overruns += goes_on && !beside && !side->overrun;
	}
	side->overrun = goes_on;
	return goes_on;
}

static int timer_fired(void *map, u32 *key, struct timer *timer)
{
	unsigned long flags;
	u32 cpu = *key;
	u64 now;
	if (cpu >= TIERCE_CPUS || !SIDE.ready)
		return 0;
	side_at(cpu)->timer_ns = TIERCE_NEVER;
	if (cpu_is_gone(cpu)) /* its timer has come to another CPU */
		return 0;
	bpf_local_irq_save(&flags);
	now = now_ns();
	if (side_at(cpu)->softirq_ns) {
		softirq_count(cpu, now);
		side_at(cpu)->fired_ns = now;
	}
	side_at(cpu)->fires++;
	if (WANTED(several_cpus) && side_at(cpu)->away_at_ns && side_at(cpu)->away_at_ns <= now && !side_at(cpu)->away) {
		cpu_goes(cpu, now);
	} else if (cpu_at(cpu)->asked && !cpu_at(cpu)->outside) {
		side_at(cpu)->forgotten++;
		port_kick(cpu);
	} else {
		graph_event(cpu, now, 0);
		if (tasks_move() && now >= cpu_at(cpu)->balance_ns)
			graph_balance(cpu, now);
		if (WANTED(throttle_at_user) && cpu_at(cpu)->outside > 1)
			port_kick(cpu);
	}
	if (WANTED(throttle_at_user) && side_at(cpu)->from_user && cpu_at(cpu)->asked && cpu_at(cpu)->task &&
	    !cpu_at(cpu)->outside)
		leaf_at(cpu_at(cpu)->task)->overrun = OVERRUN_ENDS; /* the decision comes before it is back in the kernel */
	arm(cpu, now, side_at(cpu)->way_out_ns);
	bpf_local_irq_restore(&flags);
	return 0;
}

/* ---- operations of the scheduler -------------------------------------------------------------------------------- */

static inline bool leaf_is_spread(u32 leaf)
{
	return edge_at(node_at(leaf)->first_parent)->flags & EDGE_SPREAD;
}

SEC("struct_ops/select_cpu")
s32 BPF_PROG(tierce_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	u32 leaf, node, cpu = (u32)prev_cpu;
	if (!tasks_move() || p->nr_cpus_allowed == 1 || cpu >= TIERCE_CPUS)
		return prev_cpu; /* the CPU that decides for it takes it from there */
	leaf = leaf_known(p);
	node = SIDE.default_node;
	if (leaf) {
		if (!leaf_is_spread(leaf))
			return prev_cpu;
		node = edge_at(node_at(leaf)->first_parent)->parent;
	}
	return node_at(node)->family ? (s32)graph_place(node, cpu, cpus_of(p->cpus_ptr)) : prev_cpu;
}

/* Does it lead only to a CPU that was taken offline? */
static inline bool leaf_is_cut_off(u32 leaf)
{
	u32 domain;
	if (!WANTED(several_cpus))
		return false;
	domain = node_at(leaf)->domain;
	return domain < TIERCE_CPUS && cpu_is_gone(domain) && !leaf_is_spread(leaf);
}
/* A spread leaf follows its thread to the CPU where it waits. If that is offline, another CPU decides for it: one that has
 * left the graph for good also for threads that may not migrate (dispatch), else not. */
static inline void leaf_follows(u32 leaf, struct task_struct *p, u32 cpu, u64 now)
{
	u32 refuge;
	if (!tasks_move() || !leaf_is_spread(leaf))
		return;
	if (!cpu_at(cpu)->online && (cpu_is_gone(cpu) || !thread_is_bound(p))) {
		u32 replica = edge_at(node_at(leaf)->first_parent)->parent;
		refuge = graph_refuge(replica, cpus_of(p->cpus_ptr));
		if (refuge >= TIERCE_CPUS && cpu_is_gone(cpu))
			refuge = graph_refuge(replica, ~0ull);
		if (refuge < TIERCE_CPUS)
			cpu = refuge;
	}
	if (node_at(leaf)->domain != cpu)
		graph_home(leaf, cpu, now);
}
/* It waits: an idle CPU may take it. */
static inline void leaf_offered(u32 leaf)
{
	if (tasks_move() && S.idle[0])
		graph_offer(leaf);
}

/* Threads without a leaf, the pool being used up, wait beside the graph: in a queue of the CPU on which they woke. A CPU runs
 * them while the graph leaves it idle, and takes them from other CPUs' queues then. Otherwise they get one turn, until the tick,
 * at most every BESIDE_EVERY_NS, so that they do not starve while the graph keeps the rest. */
#define BESIDE(cpu)	(1 + (u64)(cpu))
#define BESIDE_SLICE_NS 1000000
#define BESIDE_EVERY_NS 40000000

static inline bool pool_has_room(void)
{
	return (S.spare_nodes || S.fresh_node < TIERCE_NODES) && (S.spare_edges || S.fresh_edge < TIERCE_EDGES);
}
static inline void beside_waits(struct task_struct *p, struct thread *t, u32 cpu, u64 enq_flags)
{
	if (!t->beside)
		__sync_fetch_and_add(&SIDE.overflows, 1);
	t->beside = 1;
	if ((enq_flags & SCX_ENQ_LAST) || (thread_is_bound(p) && cpu_is_gone(cpu))) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, BESIDE_SLICE_NS, enq_flags);
		port_kick(cpu); /* the kernel has looked there already */
	} else {
		if (!cpu_at(cpu)->online)
			cpu = S.shared_timer;
		scx_bpf_dsq_insert(p, BESIDE(cpu), BESIDE_SLICE_NS, enq_flags);
		if (WANTED(several_cpus) && cpu_at(cpu)->task)
			cpu = graph_place(SIDE.default_node, cpu, cpus_of(p->cpus_ptr)); /* an idle one takes it */
		scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
	}
}
/* One thread of this CPU's queue; with `any`, the CPU being idle, else one of another's. */
TIERCE_FN int beside_comes(u32 cpu, u32 any, u64 now)
{
	u32 i, came = scx_bpf_dsq_move_to_local(BESIDE(cpu));
	for (i = ZERO; any && !came && i < cpus_here && i < TIERCE_CPUS && CAN_LOOP; i++)
		came = i != cpu && scx_bpf_dsq_nr_queued(BESIDE(i)) > 0 && scx_bpf_dsq_move_to_local(BESIDE(i));
	if (came)
		side_at(cpu)->beside_ns = now + BESIDE_EVERY_NS;
	return came;
}

/* The leaf of a thread that comes to wait with us: the one it has, unless it was given another or cannot run there. */
static inline u32 leaf_settle(struct task_struct *p, u64 now)
{
	struct thread *t = thread_of(p);
	u32 leaf, cpu = cpu_of(p);
	if (!t)
		return TIERCE_NONE;
	leaf = t->leaf;
	if (leaf && cpu < TIERCE_CPUS && side_at(cpu)->frozen && node_at(leaf)->servable && node_at(leaf)->domain != cpu &&
	    leaf_is_spread(leaf)) /* the default scheduler has moved it, and where it ran it may still be granted */
		graph_release(leaf, TIERCE_MOVED, now);
	if (t->next && !(leaf && node_at(leaf)->servable))
		thread_move(p, t, now);
	leaf = t->leaf;
	if (leaf && !t->next) {
		leaf_at(leaf)->moving = 0;
		if (*(volatile u32 *)&t->next)
			leaf_at(leaf)->moving = 1;
	}
	if (leaf && leaf_is_cut_off(leaf)) {
		if (node_at(leaf)->servable)
			graph_release(leaf, TIERCE_MOVED, now);
		__sync_fetch_and_add(&SIDE.displaced, 1);
		thread_leave(p, t, now);
		leaf = TIERCE_NONE;
	}
	if (!leaf && pool_has_room()) {
		thread_join(p, t, cpus_of(p->cpus_ptr), now);
		leaf = t->leaf;
	}
	if (leaf)
		*leaf_guess(p) = leaf;
	return leaf;
}

/* Its affinity has changed while it ran here: the kernel moves it as soon as the CPU lets go of it. */
static inline bool thread_leaves(struct task_struct *p, u32 cpu)
{
	return !(cpus_of(p->cpus_ptr) >> cpu & 1) && !thread_is_bound(p);
}

SEC("struct_ops/enqueue")
void BPF_PROG(tierce_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpu = cpu_of(p), leaf, runs;
	struct thread *t;
	u64 now;

	if (thread_is_pinned(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		if (enq_flags & SCX_ENQ_LAST) /* the kernel has looked there already */
			port_kick(cpu);
		return;
	}
	if (cpu >= TIERCE_CPUS)
		return;
	now = now_ns();
	leaf = leaf_known(p);
	if (!leaf || leaf_at(leaf)->moving || leaf_is_cut_off(leaf))
		leaf = leaf_settle(p, now);
	if (!leaf) {
		t = thread_of(p);
		if (t)
			beside_waits(p, t, cpu, enq_flags);
		return;
	}
	leaf_follows(leaf, p, cpu, now);
	leaf_at(leaf)->custody = thread_is_bound(p) ? CUSTODY_BOUND : CUSTODY_FREE;
	if (cpu_has_left(cpu, leaf)) {
		side_at(cpu)->left = TIERCE_NONE;
		graph_returned(cpu, now);
	}
	if (!node_at(leaf)->servable) {
		if (leaf_is_spread(leaf) && thread_leaves(p, cpu))
			return; /* it is requested where the kernel puts it next: this CPU would decide for what it cannot run */
		if (enq_flags & SCX_ENQ_WAKEUP)
			job_begin(leaf, now);
		/* For a wake-up the kernel itself asks a CPU that runs its idle thread for a decision, before it unlocks the run queue. */
		side_at(cpu)->blocking = (enq_flags & SCX_ENQ_WAKEUP) && side_at(cpu)->idle && node_at(leaf)->domain == cpu;
		graph_request(leaf, TIERCE_WOKE, now);
		side_at(cpu)->blocking = 0;
		if (WANTED(throttle_at_user) && leaf_overruns(leaf, cpu, p, enq_flags & SCX_ENQ_WAKEUP)) {
			leaf_at(leaf)->custody = CUSTODY_NONE;
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		} else {
			leaf_offered(leaf);
		}
		return;
	}
	if (WANTED(throttle_at_user) && leaf_overruns(leaf, cpu, p, false)) {
		leaf_at(leaf)->custody = CUSTODY_NONE;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD);
		return;
	}
	leaf_offered(leaf);
	runs = node_at(leaf)->on_cpu; /* decided for before it was in custody? */
	if (runs < S.cpus && cpu_at(runs)->task == leaf && (runs != cpu || side_at(cpu)->awaits == leaf))
		port_kick(runs);
}

SEC("struct_ops/dequeue")
void BPF_PROG(tierce_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct thread *t = thread_of(p);
	if (t)
		leaf_at(t->leaf)->custody = CUSTODY_NONE;
}

SEC("struct_ops/quiescent")
void BPF_PROG(tierce_quiescent, struct task_struct *p, u64 deq_flags)
{
	u32 cpu = cpu_of(p), leaf;
	struct thread *t;
	bool sleeps;
	u64 now;
	if (cpu >= TIERCE_CPUS)
		return;
	leaf = cpu_at(cpu)->task;
	if (!leaf || leaf_at(leaf)->pid != (u32)p->pid) { /* not what runs there */
		t = thread_of(p);
		leaf = t ? t->leaf : TIERCE_NONE;
		if (!leaf)
			return;
	}
	leaf_at(leaf)->custody = CUSTODY_NONE;
	sleeps = deq_flags & SCX_DEQ_SLEEP;
	if (sleeps && cpu_at(cpu)->task == leaf && node_at(leaf)->domain == cpu && !cpu_has_left(cpu, leaf) &&
	    !leaf_at(leaf)->moving && !side_at(cpu)->frozen && !(p->__state & TASK_DEAD)) {
		if (leaf_at(leaf)->woke_ns)
			job_end(leaf, now_ns());
		side_at(cpu)->blocked = leaf; /* the decision that follows at once releases it */
		return;
	}
	if (!sleeps && side_at(cpu)->frozen)
		return;
	now = now_ns();
	if (cpu_has_left(cpu, leaf)) {
		side_at(cpu)->left = TIERCE_NONE;
		graph_returned(cpu, now);
	}
	if (sleeps)
		job_end(leaf, now);
	if (node_at(leaf)->servable) {
		side_at(cpu)->blocking = cpu_at(cpu)->task == leaf && sleeps;
		graph_release(leaf, sleeps ? TIERCE_BLOCKED : TIERCE_MOVED, now);
		side_at(cpu)->blocking = 0;
	}
	if (sleeps && (p->__state & TASK_DEAD)) {
		t = thread_of(p);
		if (t)
			thread_end(p, t, now);
	} else if (leaf_at(leaf)->moving) {
		t = thread_of(p);
		if (t)
			thread_move(p, t, now);
	}
}

TIERCE_FN int kick_counts(u32 cpu, int vain)
{
	side_at(cpu)->kicks++;
	side_at(cpu)->vain_kicks += vain;
	return 0;
}

SEC("struct_ops/dispatch")
void BPF_PROG(tierce_dispatch, s32 on, struct task_struct *prev)
{
	struct thread *t;
	u32 cpu = on, leaf, was = TIERCE_NONE, blocked, kicked, waits_on, key;
	struct task_struct *task;
	struct slot *slot;
	bool fits, leaving = false;
	u64 now;

	if (cpu >= TIERCE_CPUS || (PORT_HAS_PART(shared) && side_at(cpu)->left) || cpu_is_gone(cpu))
		return;
	now = now_ns();
	if (side_at(cpu)->interrupted_ns) {
		if (side_at(cpu)->frozen)
			cpu_thaws(cpu, now);
		interrupted_until(cpu, now);
	}
	if (WANTED(several_cpus) && side_at(cpu)->away) {
		cpu_comes(cpu, now);
		if (cpu_is_gone(cpu))
			return;
	}
	side_at(cpu)->dispatches++;
	side_at(cpu)->strays = 0;
	side_at(cpu)->awaits = TIERCE_NONE;
	if (SIDE.overflows && now >= side_at(cpu)->beside_ns && beside_comes(cpu, 0, now))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		t = thread_of(prev);
		was = t ? t->leaf : TIERCE_NONE;
		if (WANTED(throttle_at_user) && was && cpu_overruns(cpu, was, prev, now)) {
			slice_set(prev, SCX_SLICE_INF);
			arm(cpu, now, 0);
			return;
		}
	}
	if (WANTED(throttle_at_user))
		side_at(cpu)->overrun = 0;
	blocked = side_at(cpu)->blocked;
	side_at(cpu)->blocked = TIERCE_NONE;
	kicked = WANTED(count_contention) ? cpu_at(cpu)->kick_pending : 0;
	leaf = graph_decide(cpu, blocked, now, 0);
	if (!leaf && tasks_move() && !cpu_at(cpu)->leaves && graph_pull(cpu, now))
		leaf = graph_decide(cpu, 0, now, 0);
	if (WANTED(count_contention) && kicked)
		kick_counts(cpu, leaf == was);
	if (PORT_HAS_PART(shared) && cpu_at(cpu)->leaves) {
		if (was && was != leaf)
			side_at(cpu)->left = was;
		else
			graph_returned(cpu, now);
	}
	side_at(cpu)->decided_ns = leaf && leaf != was ? now : 0;
	arm(cpu, now, leaf != was ? side_at(cpu)->switch_ns : 0);
	if (!leaf) {
		if (SIDE.overflows)
			beside_comes(cpu, 1, now);
		return;
	}
	if (leaf == was) {
		slice_set(prev, SCX_SLICE_INF);
		if (cpu_at(cpu)->outside && !side_at(cpu)->frozen)
			graph_outside(cpu, 0, now);
		side_at(cpu)->keeps++;
		return;
	}
	if (!leaf_at(leaf)->custody) {
		if (leaf >= TIERCE_NODES)
			port_fail("a task that does not exist was decided for");
		side_at(cpu)->misses++;
		if (leaf_at(leaf)->moving == LEAF_UNSEEN) { /* its thread died between two objects: nobody comes */
			graph_release(leaf, TIERCE_BLOCKED, now);
			port_kick(cpu);
			return;
		}
		side_at(cpu)->awaits = leaf;
		return;
	}
	key = leaf; /* the leaf itself need not be in memory */
	slot = bpf_map_lookup_elem(&slots, &key);
	if (!slot)
		return;
	task = slot->task;
	if (task) {
		scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
		if (!WANTED(several_cpus)) {
			leaf_at(leaf)->custody = CUSTODY_NONE;
			return;
		}
		/* Looked at after the insertion, which the kernel ignores if the thread is queued anew from here on. One that
		 * is just going off another CPU may look fit and then not be (programs that run there keep it from
		 * migrating, and the kernel ends a scheduler that tries): wait for it. */
		waits_on = cpu_of(task);
		fits = waits_on == cpu;
		leaving = !fits && task->on_cpu;
		if (!fits && !leaving)
			fits = !task->migration_disabled && (cpus_of(task->cpus_ptr) >> cpu & 1);
		if (fits) {
			leaf_at(leaf)->custody = CUSTODY_NONE;
			/* A CPU that goes offline does so when nothing is queued there any more. It has to look itself. */
			if (waits_on < TIERCE_CPUS && !cpu_at(waits_on)->online)
				port_kick(waits_on);
		} else {
			side_at(cpu)->misses++;
			scx_bpf_dispatch_cancel();
			/* It cannot leave a CPU that no longer asks: let it go on there. */
			if (task->migration_disabled && waits_on < TIERCE_CPUS && cpu_is_gone(waits_on)) {
				leaf_at(leaf)->custody = CUSTODY_NONE;
				scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL_ON | waits_on, BESIDE_SLICE_NS, 0);
			}
		}
	}
	if (leaving)
		port_kick(cpu);
}

SEC("struct_ops/tick")
void BPF_PROG(tierce_tick, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (SIDE.overflows && cpu < TIERCE_CPUS && !cpu_at(cpu)->outside && now_ns() >= side_at(cpu)->beside_ns &&
	    scx_bpf_dsq_nr_queued(BESIDE(cpu)) > 0)
		slice_set(p, 0);
}

#define OUTSIDE_SCHEDULER 3 /* value of its record: the scheduler has had the CPU, `a` is a task and runs from here on */

/* Does the thread come in that the graph has decided for, with nothing else to be looked at? Nearly always. */
static inline bool switch_is_plain(u32 cpu, struct task_struct *next)
{
	u32 task = cpu_at(cpu)->task, pid = (u32)next->pid;
	if (!pid || !task || leaf_at(task)->pid != pid || next->prio < MAX_RT_PRIO)
		return false;
	if (cpu_at(cpu)->outside || side_at(cpu)->blocked || side_at(cpu)->idle)
		return false;
	if (WANTED(several_cpus) && (cpu_is_gone(cpu) || side_at(cpu)->away_at_ns || side_at(cpu)->away))
		return false;
	return true;
}
/* It runs from here on. */
static inline void switch_done(u32 cpu)
{
	if (!side_at(cpu)->decided_ns)
		return;
	if (TRACES(TIERCE_EV_outside))
		port_trace(TIERCE_EV_outside, cpu, cpu_at(cpu)->task, 0, OUTSIDE_SCHEDULER, now_ns());
	if (KNOWN_BIT(overheads_stolen, 0))
		switch_count(cpu);
}

/* Who comes in: the task of the graph, somebody else, or nobody (idle)? */
SEC("tp_btf/sched_switch")
int BPF_PROG(tierce_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id(), outside = 0, stray = 0, above = 0, task;
	struct thread *t;
	u64 now;
	if (cpu >= TIERCE_CPUS || !SIDE.ready)
		return 0;
	if (switch_is_plain(cpu, next)) {
		switch_done(cpu);
		if (cpu_at(cpu)->kick_pending)
			port_kick(cpu); /* the kick found somebody it could not preempt */
		return 0;
	}
	if (side_at(cpu)->idle != !next->pid)
		side_at(cpu)->idle = !next->pid;
	if (side_at(cpu)->frozen)
		return 0;
	task = side_at(cpu)->blocked;
	if (task) { /* and nobody was asked for a decision: somebody waited in the CPU's queue, or is in a class above */
		side_at(cpu)->blocked = TIERCE_NONE;
		side_at(cpu)->blocking = 1;
		graph_release(task, TIERCE_BLOCKED, now_ns());
		side_at(cpu)->blocking = 0;
	}
	/* A CPU on its way out or in is left alone: kicks and timers are queued on the CPU itself, and would stay there. But
	 * whoever uses up its slice alone is queued there by the kernel, which then looks at the queue no more. */
	if (cpu_is_gone(cpu)) {
		if (!next->pid && prev->pid && (preempt || !prev->__state))
			port_kick(cpu);
		return 0;
	}
	if (next->pid) {
		above = next->prio < MAX_RT_PRIO;
		if (above || thread_is_pinned(next)) {
			outside = 1;
		} else {
			task = cpu_at(cpu)->task;
			stray = !task || leaf_at(task)->pid != (u32)next->pid;
			outside = stray;
			if (WANTED(throttle_at_user) && stray) {
				t = thread_of(next);
				if (t && leaf_at(t->leaf)->overrun == OVERRUN_RUNS && node_at(t->leaf)->domain == cpu) {
					stray = 0;
					outside = 1 + t->leaf;
				}
			}
			if (!outside)
				switch_done(cpu);
		}
	}
	if (outside != cpu_at(cpu)->outside ||
	    (WANTED(several_cpus) && !above && (side_at(cpu)->away_at_ns || side_at(cpu)->away))) {
		now = now_ns();
		if (above && WANTED(several_cpus) && cpu_at(cpu)->task)
			side_at(cpu)->away_at_ns = now + AWAY_NS;
		else if (!above)
			cpu_comes(cpu, now); /* or goes */
		if (cpu_is_gone(cpu))
			return 0;
		if (outside != cpu_at(cpu)->outside)
			graph_outside(cpu, outside, now);
		arm(cpu, now, 0);
	}
	if (stray && !side_at(cpu)->strays) { /* ask for a decision, once, if it is not outside for good */
		t = thread_of(next);
		if (t && t->leaf) {
			side_at(cpu)->strays = 1;
			port_kick(cpu);
		}
	} else if (!outside && cpu_at(cpu)->kick_pending) {
		port_kick(cpu);
	}
	return 0;
}

SEC("struct_ops/set_cpumask")
void BPF_PROG(tierce_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct thread *t = thread_of(p);
	u32 error;
	u64 now;
	if (!t || !t->leaf)
		return;
	now = now_ns();
	/* It changed between two objects: else a thread is not queued now, or just not to migrate for a while. */
	if (cpu_of(p) < TIERCE_CPUS && side_at(cpu_of(p))->frozen && !leaf_at(t->leaf)->custody && node_at(t->leaf)->servable &&
	    node_at(t->leaf)->allowed != cpus_of(mask))
		graph_release(t->leaf, TIERCE_MOVED, now);
	error = graph_allow(t->leaf, cpus_of(mask), now);
	if (error && !node_at(t->leaf)->servable) {
		if (leaf_at(t->leaf)->own != LEAF_DEFAULT)
			thread_is_lost(p, t, error);
		thread_leave(p, t, now);
		thread_join(p, t, cpus_of(mask), now);
	} else if (t->lost) { /* perhaps it may now */
		t->lost = 0;
		tell(NEWS_BACK, p->pid);
	}
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(tierce_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	unsigned long flags;
	if (!t)
		return -ENOMEM;
	t->lost = p->prio < MAX_RT_PRIO;
	if (t->lost && t->leaf && node_at(t->leaf)->servable) { /* it left our class between two objects, as the loader does */
		bpf_local_irq_save(&flags);
		graph_release(t->leaf, TIERCE_MOVED, now_ns());
		bpf_local_irq_restore(&flags);
	}
	return 0;
}
SEC("struct_ops/enable")
void BPF_PROG(tierce_enable, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	u64 now;
	if (t && t->leaf)
		leaf_at(t->leaf)->moving = 1;			       /* it is there, all others are not */
	if (t && t->leaf && !p->on_rq && node_at(t->leaf)->servable) { /* it fell asleep between two objects */
		now = now_ns();
		job_end(t->leaf, now);
		graph_release(t->leaf, TIERCE_BLOCKED, now);
	}
	if (!t || !t->lost || thread_is_pinned(p))
		return;
	t->lost = 0;
	tell(NEWS_BACK, p->pid);
}
/* Not in a hurry: the loader frees what the verifier need not look at here. */
static inline void leaf_drop(u32 leaf)
{
	if (!leaf || leaf >= TIERCE_NODES || leaf_at(leaf)->own == LEAF_PLAN)
		return;
	leaf_at(leaf)->dead = 1;
	__sync_fetch_and_add(&SIDE.dead, 1);
}
static inline bool thread_drop(struct thread *t)
{
	u32 leaf = t->leaf, next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
	t->leaf = TIERCE_NONE;
	if (leaf)
		leaf_empty(leaf);
	leaf_drop(leaf);
	leaf_drop(next);
	return leaf || next;
}
SEC("struct_ops/disable")
void BPF_PROG(tierce_disable, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	u32 cpu = cpu_of(p);
	if (!t || !SIDE.ready || cpu >= TIERCE_CPUS) /* not ready: another object has its leaf from now on */
		return;
	if (side_at(cpu)
		->frozen) { /* it was not released when it was dequeued; it keeps its leaf until it comes back or dies */
		if (t->leaf && node_at(t->leaf)->servable)
			graph_release(t->leaf, TIERCE_MOVED, now_ns());
		return;
	}
	if (thread_drop(t)) {
		t->lost = 1;
		tell_thread(NEWS_THREAD, p);
	}
}
/* A thread of a higher class has no leaf, but may have been given one that it never took. */
SEC("struct_ops/exit_task")
void BPF_PROG(tierce_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct thread *t = thread_of(p);
	if (t && SIDE.ready)
		thread_drop(t);
}
/* Nice changed, or just its slice: the loader does that to have a thread pass through here. */
SEC("struct_ops/set_weight")
void BPF_PROG(tierce_set_weight, struct task_struct *p, u32 weight)
{
	struct thread *t = thread_of(p);
	u32 edge, nice = SIDE.default_nice, i;
	u64 now;
	if (t && t->next && !(t->leaf && node_at(t->leaf)->servable))
		thread_move(p, t, now_ns()); /* it sleeps, and the loader wants it to move now */
	if (!t || !t->leaf || nice >= TIERCE_PARAMS || leaf_at(t->leaf)->own != LEAF_DEFAULT)
		return;
	edge = node_at(t->leaf)->first_parent;
	if (edge_at(edge)->param[nice] == default_param(nice, p->static_prio))
		return;
	now = now_ns();
	control_lock();
	for (i = 0; i < TIERCE_PARAMS; i++)
		graph_stage(i, default_param(i, p->static_prio));
	graph_set(edge, now);
	control_unlock();
}

/* A higher class takes the CPU: what waits in its local queue, or was running, comes back to us (enqueue). */
SEC("struct_ops/cpu_release")
void BPF_PROG(tierce_cpu_release, s32 cpu, void *args)
{
	scx_bpf_reenqueue_local();
}

/* What waits on a CPU that goes offline keeps it from going: the loader has every thread queued anew, elsewhere. */
SEC("struct_ops/cpu_online")
void BPF_PROG(tierce_cpu_online, s32 cpu)
{
	unsigned long flags;
	bpf_local_irq_save(&flags);
	if ((u32)cpu < TIERCE_CPUS) {
		graph_online(cpu, 1, now_ns());
		side_at(cpu)->going = side_at(cpu)->away = 0;
	}
	bpf_local_irq_restore(&flags);
	tell(NEWS_CPU, cpu);
}
SEC("struct_ops/cpu_offline")
void BPF_PROG(tierce_cpu_offline, s32 cpu)
{
	unsigned long flags;
	bpf_local_irq_save(&flags);
	if ((u32)cpu < TIERCE_CPUS) { /* it runs a thread of the kernel now, and will not be asked for a decision again */
		cpu_goes(cpu, now_ns());
		side_at(cpu)->going = side_at(cpu)->away = 0;
	}
	bpf_local_irq_restore(&flags);
	tell(NEWS_CPU, cpu);
}
/* A CPU is told of the first of its steps out before its queue is closed. Between that and cpu_offline the kernel waits for
 * readers of RCU, who must not wait for this CPU: it leaves the graph when the thread that does the steps waits. */
SEC("tp_btf/cpuhp_enter")
int BPF_PROG(tierce_cpu_steps, u32 cpu, int target, int step)
{
	if (cpu != bpf_get_smp_processor_id() || target >= step || cpu >= TIERCE_CPUS || !SIDE.ready || cpu_is_gone(cpu))
		return 0;
	if (!side_at(cpu)->going && thread_is_pinned(bpf_get_current_task_btf())) /* that does */
		side_at(cpu)->going = 1, side_at(cpu)->away = CPU_GOES;
	return 0;
}
/* It does not go after all. */
SEC("tp_btf/cpuhp_exit")
int BPF_PROG(tierce_cpu_stays, u32 cpu, int state, int step, int error)
{
	if (!error || cpu >= TIERCE_CPUS || !side_at(cpu)->going)
		return 0;
	side_at(cpu)->going = 0;
	side_at(cpu)->away = cpu_at(cpu)->online ? 0 : CPU_STAYS;
	return 0;
}

SEC("struct_ops.s/init")
s32 BPF_PROG(tierce_init)
{
	u32 cpu;
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

/* Who comes from a member of a set is one, too, before anybody has looked: nearly always it matches the same. */
SEC("tp_btf/task_newtask")
int BPF_PROG(tierce_newtask, struct task_struct *p, u64 clone_flags)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct thread *from = thread_of(parent), *t = thread_of(p);
	u32 like = from ? from->leaf : TIERCE_NONE, leaf = TIERCE_NONE;
	unsigned long flags;
	if (t && like && leaf_at(like)->own == LEAF_MEMBER && !from->next && p->cgroups == parent->cgroups && SIDE.ready &&
	    pool_has_room()) {
		bpf_local_irq_save(&flags);
		leaf = leaf_like(like, now_ns());
		if (leaf && __sync_val_compare_and_swap(&t->next, TIERCE_NONE, leaf)) { /* the loader has seen it already */
			leaf_drop(leaf);
			leaf = TIERCE_NONE;
		}
		bpf_local_irq_restore(&flags);
	}
	return tell_thread(NEWS_THREAD | leaf << 8, p);
}
SEC("tp_btf/sched_process_exec")
int BPF_PROG(tierce_exec, struct task_struct *p)
{
	return tell_thread(NEWS_EXEC, p);
}
/* When it has its new name: the tracepoint of that comes before. */
SEC("fexit/__set_task_comm")
int BPF_PROG(tierce_rename, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	if (t && t->leaf && leaf_at(t->leaf)->own != LEAF_PLAN)
		name_write(t->leaf, p, now_ns());
	return tell_thread(NEWS_NAME, p);
}

/* After it has moved; a whole process, if it is one. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(tierce_cgroup, struct cgroup *group, const char *path, struct task_struct *p, bool process)
{
	return process ? tell(NEWS_PROCESS, p->tgid) : tell_thread(NEWS_THREAD, p);
}

/* ---- control ---------------------------------------------------------------------------------------------------- */

static inline u64 command_leaf(struct tierce_command *c)
{
	struct task_struct *p = bpf_task_from_pid((s32)c->pid);
	struct thread *t;
	u64 result = COMMAND_NO_THREAD;
	unsigned long flags;
	u32 before;
	if (!p)
		return COMMAND_NO_THREAD;
	t = thread_of(p);
	if (t && (!c->a || (c->a < TIERCE_NODES && node_at(c->a)->kind == TIERCE_TASK))) {
		bpf_local_irq_save(&flags);
		if (c->a)
			leaf_at(c->a)->own = c->b ? LEAF_MEMBER : LEAF_PLAN;
		before = __sync_lock_test_and_set(&t->next, c->a ? c->a : COMMAND_TO_DEFAULT);
		if (before && before < TIERCE_NODES)
			leaf_free(before, now_ns());
		leaf_at(t->leaf)->moving = 1;
		/* if it dies, who is first takes that back: its end, or this */
		if ((p->flags & PF_EXITING) && c->a && c->b && __sync_val_compare_and_swap(&t->next, c->a, TIERCE_NONE) == c->a)
			leaf_at(c->a)->own = LEAF_PLAN;
		else
			result = 0;
		bpf_local_irq_restore(&flags);
	}
	bpf_task_release(p);
	return result;
}

static inline u64 command_adopt(struct tierce_command *c)
{
	struct task_struct *p = bpf_task_from_pid((s32)c->pid);
	struct thread *t;
	if (!p)
		return COMMAND_NO_THREAD;
	t = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (t && c->a < TIERCE_NODES) {
		t->leaf = c->a;
		t->next = TIERCE_NONE;
		if (c->a) {
			slot_put(c->a, p);
			*leaf_guess(p) = c->a;
		}
	}
	bpf_task_release(p);
	return t ? 0 : COMMAND_NO_THREAD;
}
static inline u64 command_bury(struct tierce_command *c)
{
	struct task_struct *p = bpf_task_from_pid((s32)c->pid);
	struct thread *t;
	bool dead = !p;
	unsigned long flags;
	u64 now;
	if (p) {
		dead = (p->__state & TASK_DEAD) && !p->on_cpu; /* nobody calls us for it any more, but to free it */
		t = thread_of(p);
		if (dead && t)
			t->leaf = TIERCE_NONE;
		bpf_task_release(p);
	}
	if (!dead || c->a >= TIERCE_NODES)
		return 0;
	bpf_local_irq_save(&flags);
	if (leaf_at(c->a)->pid == c->pid) {
		now = now_ns();
		if (node_at(c->a)->servable)
			graph_release(c->a, TIERCE_BLOCKED, now);
		leaf_empty(c->a);
		leaf_free(c->a, now);
	}
	bpf_local_irq_restore(&flags);
	return 0;
}

/* Does the edge still lead to this leaf of a member of a set? Its thread may have died, and both have been given again. */
static inline bool edge_is_members(u32 edge, u32 leaf)
{
	return edge < TIERCE_EDGES && leaf < TIERCE_NODES && edge_at(edge)->child == leaf && leaf_at(leaf)->own == LEAF_MEMBER;
}

SEC("syscall")
int control(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = now_ns(), result = TIERCE_E_no_such_node;
	u32 i, child;

	switch (c->op) {
	case COMMAND_LEAF: c->result = command_leaf(c); return 0;
	case COMMAND_ADOPT: c->result = command_adopt(c); return 0;
	case COMMAND_BURY: c->result = command_bury(c); return 0;
	}
	bpf_local_irq_save(&flags);
	control_lock();
	for (i = 0; i < TIERCE_NODE_PARAMS && c->op != TIERCE_OP_init; i++)
		graph_stage(i, c->param[i]);
	switch (c->op) {
	case TIERCE_OP_init:
		result = graph_init(c->a, now);
		S.floor_ns = c->value;
		break;
	case TIERCE_OP_node_new: result = graph_node_new(c->a, c->b, c->value); break;
	case TIERCE_OP_node_set: result = graph_node_set(c->a, now); break;
	case TIERCE_OP_node_free: result = graph_node_free(c->a); break;
	case TIERCE_OP_edge_new: result = graph_edge_new(c->a, c->b, (s32)c->value, c->value >> 32); break;
	case TIERCE_OP_attach:
		result = graph_attach(c->a, now);
		if (!result && SIDE.ready && c->a < TIERCE_EDGES)
			port_trace(TIERCE_EV_attach, 0, c->a, edge_at(c->a)->child, edge_at(c->a)->parent, now);
		break;
	case TIERCE_OP_set:
		if (!c->b || edge_is_members(c->a, c->b))
			result = graph_set(c->a, now);
		break;
	case TIERCE_OP_detach:
		child = c->a < TIERCE_EDGES ? edge_at(c->a)->child : TIERCE_NONE;
		result = graph_detach(c->a, now);
		if (!result && SIDE.ready)
			port_trace(TIERCE_EV_detach, 0, c->a, child, 0, now);
		break;
	case TIERCE_OP_root: result = graph_root(c->a, c->b, now); break;
	case TIERCE_OP_tell: /* the deadline is given from now on */
		graph_stage(1, now + c->param[1]);
		result = graph_tell(c->a, c->b, now);
		break;
	case TIERCE_OP_replica: result = graph_replica(c->a, c->b); break;
	case COMMAND_NEAR: result = graph_near(c->a, c->param[0], c->param[1], c->param[2]); break;
	case COMMAND_DEFAULT:
		SIDE.default_node = c->a;
		for (i = 0; i < TIERCE_PARAMS; i++)
			AT(SIDE.default_param, i) = c->param[i];
		SIDE.default_nice = c->b;
		result = 0;
		break;
	case COMMAND_FREEZE:
		SIDE.ready = 0;
		for (i = ZERO; i < cpus_here && i < TIERCE_CPUS && CAN_LOOP; i++)
			cpu_freezes(i, now);
		result = 0;
		break;
	case COMMAND_REAP:
		if (c->a < TIERCE_NODES && (leaf_at(c->a)->dead || (c->b && !leaf_at(c->a)->pid)))
			result = leaf_free_locked(c->a, now);
		break;
	}
	control_unlock();
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}

/* Entries on the caller's clock (`value`), for tests of the loaded engine: nothing may be attached. */
SEC("syscall")
int exercise(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = c->value, result = 0;
	if (SIDE.ready)
		return 0;
	bpf_local_irq_save(&flags);
	switch (c->op) {
	case TIERCE_OP_request: result = graph_request(c->a, c->b, now); break;
	case TIERCE_OP_release: result = graph_release(c->a, c->b, now); break;
	case TIERCE_OP_announce: result = graph_announce(c->a, c->param[0], now); break;
	case TIERCE_OP_decide: result = graph_decide(c->a, 0, now, 0); break;
	case TIERCE_OP_event: result = graph_event(c->a, now, 0); break;
	case TIERCE_OP_returned: result = graph_returned(c->a, now); break;
	case TIERCE_OP_outside: result = graph_outside(c->a, c->b, now); break;
	}
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}
