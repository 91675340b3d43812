/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * [run] locks = "inheritance": who has a lock runs in the place of who waits for it, as with `protocol = "inheritance"` in the simulator.
 * For the graph a thread that waits goes on wanting its CPU; when that decides for it, the holder runs there: at the waiter's place, on its
 * budget. Waits go through others: the holder may wait for a lock itself.
 *
 * That is so for threads that the plan names, if the CPU alone has waiter and holder in its tree. A wait whose holder is not known, sleeps,
 * or is elsewhere is an ordinary one: the waiter's leaf is released, for the rest of the wait.
 *
 * Who has a lock that is waited for: `held`, found by the lock. The holder of a futex says that it releases it (`passes`), and the waiter
 * that is woken meanwhile has it next. Whoever is woken for a lock of the kernel mostly gets it, too, and says so, or that it gave up. If the
 * next holder cannot run in the place of who waits, the wait is an ordinary one from then on.
 */

#define FUTEX_TID_MASK 0x3fffffffu /* as in the kernel's include/uapi/linux/futex.h */
#define LENDERS_MAX 8 /* threads of which each waits for the next */

static inline struct tierce_held *held_at(u32 i)
{
	return &AT(SIDE.held, i & (TIERCE_HELD - 1));
}
/* A lock of a program is told apart from those of others by its process. */
static inline u64 lock_key(u64 lock, u32 tgid)
{
	return (lock & 3) == TIERCE_LOCK_KERNEL ? lock : lock ^ (u64)tgid * 0x9e3779b97f4a7c15ull;
}
static inline u32 held_index(u64 key)
{
	return (u32)(key * 0x9e3779b97f4a7c15ull >> 32) & (TIERCE_HELD - 1);
}

/* A thread that the plan names and that waits with this CPU, which alone decides for it. */
static inline bool may_inherit(u32 leaf, u32 cpu)
{
	return leaf < TIERCE_NODES && node_at(leaf)->servable && node_at(leaf)->domain == cpu &&
	       leaf_at(leaf)->own != LEAF_DEFAULT && !leaf_is_spread(leaf);
}

/* The leaf whose thread runs if the CPU decides for this one; none: who it waits for cannot run there. */
TIERCE_FN u32 leaf_lends_to(u32 leaf, u32 cpu)
{
	struct tierce_held *held;
	u32 i, holder;
	for (i = ZERO; i < LENDERS_MAX && CAN_LOOP; i++) {
		if (!leaf_at(leaf)->held)
			return leaf;
		held = held_at(leaf_at(leaf)->held - 1);
		holder = held->holder;
		if (!holder || leaf_at(holder)->pid != held->pid || !may_inherit(holder, cpu))
			return TIERCE_NONE;
		leaf = holder;
	}
	return TIERCE_NONE; /* a deadlock, or as good as one */
}
static inline u32 leaf_runs(u32 leaf, u32 cpu)
{
	return WANTED(inherits) && leaf_at(leaf)->held ? leaf_lends_to(leaf, cpu) : leaf;
}

/* It no longer lends its place: it was woken, or nobody can take it. */
static inline void lends_no_more(u32 leaf)
{
	u32 i = leaf_at(leaf)->held ? __sync_lock_test_and_set(&leaf_at(leaf)->held, 0) : 0;
	if (i)
		__sync_fetch_and_add(&held_at(i - 1)->waiters, -1);
}
/* The same of one that still wants the CPU in the graph, and sleeps. */
static inline void leaf_sleeps(u32 leaf, u64 now)
{
	lends_no_more(leaf);
	if (node_at(leaf)->servable)
		graph_release(leaf, TIERCE_BLOCKED, now);
}

/* Its thread may have to go elsewhere: if it sleeps, it does so for the graph, too. */
static inline void lends_and_sleeps(u32 leaf, u64 now)
{
	if (leaf_at(leaf)->held)
		leaf_sleeps(leaf, now);
}

/* Who had the lock when the wait began still has it: it may have been passed on before the thread sleeps. */
static inline bool holder_is_known(struct thread *t)
{
	u32 owner = 0;
	if (!t->holder || t->holder >= TIERCE_NODES)
		return false;
	return !t->owner_at ||
	       (!bpf_probe_read_user(&owner, sizeof owner, (void *)t->owner_at) && !((owner ^ t->owner) & FUTEX_TID_MASK));
}
/* The thread falls asleep. Does it wait for a lock whose holder can take its place? */
static inline bool thread_lends(struct task_struct *p, u32 leaf, u32 cpu)
{
	struct thread *t = thread_of(p);
	struct tierce_held *held;
	u32 i, holder, waiters;
	if (!t || !t->waits || t->next || (p->__state & TASK_DEAD) || !holder_is_known(t))
		return false;
	holder = t->holder;
	if (holder == leaf || !may_inherit(leaf, cpu) || leaf_at(leaf)->moving == LEAF_UNSEEN || leaf_at(leaf)->held ||
	    !may_inherit(holder, cpu) || leaf_at(holder)->pid != t->holder_pid)
		return false;
	i = held_index(t->lock);
	held = held_at(i);
	waiters = held->waiters;
	if (waiters && held->lock != t->lock)
		return false; /* another lock has its place */
	if (__sync_val_compare_and_swap(&held->waiters, waiters, waiters + 1) != waiters)
		return false;
	held->lock = t->lock;
	held->holder = holder;
	held->pid = t->holder_pid;
	held->passes = 0;
	leaf_at(leaf)->held = i + 1;
	return true;
}

static inline struct tierce_held *held_by_others(u64 key)
{
	struct tierce_held *held = held_at(held_index(key));
	return held->waiters && held->lock == key ? held : 0;
}
/* Whoever had it before no longer runs in the place of others. */
static inline void lock_goes_to(struct tierce_held *held, u32 leaf, u32 pid)
{
	u32 was = held->holder, cpu = was ? node_at(was)->domain : TIERCE_CPUS;
	held->passes = 0;
	held->holder = leaf;
	held->pid = pid;
	if (was != leaf && cpu < TIERCE_CPUS && cpu_at(cpu)->task && leaf_at(cpu_at(cpu)->task)->held)
		port_kick(cpu);
}
/* A thread, perhaps of a leaf, is woken for a lock of the kernel. Mostly it gets it. */
TIERCE_FN int kernel_lock_passes(u64 key, u32 leaf, u32 pid)
{
	struct tierce_held *held = held_by_others(key);
	if (!held)
		return 0;
	if (held->holder != leaf) {
		held->before = held->holder;
		held->before_pid = held->pid;
	}
	lock_goes_to(held, leaf, pid);
	return 0;
}
/* The thread of the leaf wakes, and no longer lends its place. If the futex that it waits for is passed on, it is the one that gets it. */
TIERCE_FN int leaf_wakes(u32 leaf, u64 key)
{
	struct tierce_held *held = held_by_others(key);
	if (held && held->passes)
		lock_goes_to(held, leaf, leaf_at(leaf)->pid);
	lends_no_more(leaf);
	return 0;
}
static inline void thread_wakes(struct task_struct *p, u64 enq_flags)
{
	struct thread *t = thread_of(p);
	if (!t || !((enq_flags & SCX_ENQ_WAKEUP) || leaf_at(t->leaf)->held))
		return;
	t->holder = TIERCE_NONE; /* who has the lock if it sleeps again is not known */
	if (t->wants)
		kernel_lock_passes(t->wants, t->reads ? TIERCE_NONE : t->leaf, (u32)p->pid);
	leaf_wakes(t->leaf, t->waits ? t->lock : 0);
}
/* The thread of the leaf waits with us. Is it the one that runs for what its CPU has decided before? */
TIERCE_FN int leaf_comes(u32 leaf, u32 woke)
{
	u32 cpu = node_at(leaf)->domain, task;
	if (cpu >= TIERCE_CPUS || !(woke || side_at(cpu)->awaits))
		return 0;
	task = cpu_at(cpu)->task;
	if (task && leaf_runs(task, cpu) == leaf)
		port_kick(cpu);
	return 0;
}

/* A thread has got the lock, which others wait for. */
static inline void lock_got_by(u64 key, u32 leaf, u32 pid)
{
	struct tierce_held *held = held_by_others(key);
	if (held)
		lock_goes_to(held, leaf, pid);
}
/* It was woken for the lock, and goes away without it. A lock of the kernel was not released then: it would have got it. */
static inline void lock_given_up(u64 key, u32 leaf, bool in_kernel)
{
	struct tierce_held *held = held_by_others(key);
	if (held && held->holder == leaf)
		lock_goes_to(held, in_kernel ? held->before : TIERCE_NONE, in_kernel ? held->before_pid : 0);
}

/* A program releases a lock. Who is woken for it gets it: mostly one of those that lend their place (leaf_wakes), else somebody who is not
 * known here. Then nobody has it that is known. */
static inline void lock_passes(u64 key)
{
	struct tierce_held *held = held_by_others(key);
	if (held)
		held->passes = 1;
}
static inline void lock_passed(u64 key, bool woke)
{
	struct tierce_held *held = held_by_others(key);
	if (!held || !held->passes)
		return;
	held->passes = 0;
	if (woke)
		lock_goes_to(held, TIERCE_NONE, 0);
}
static inline u64 lock_here(u32 *place, u32 kind)
{
	return lock_key((u64)place | kind, bpf_get_current_pid_tgid() >> 32);
}

SEC("fentry/futex_wake")
int BPF_PROG(tierce_futex_wakes, u32 *place)
{
	if (SIDE.ready)
		lock_passes(lock_here(place, TIERCE_LOCK_FUTEX));
	return 0;
}
SEC("fexit/futex_wake")
int BPF_PROG(tierce_futex_woke, u32 *place, unsigned int flags, int most, u32 set, int woken)
{
	if (SIDE.ready)
		lock_passed(lock_here(place, TIERCE_LOCK_FUTEX), woken > 0);
	return 0;
}
SEC("fentry/futex_unlock_pi")
int BPF_PROG(tierce_futex_unlocks, u32 *place)
{
	if (SIDE.ready)
		lock_passes(lock_here(place, TIERCE_LOCK_PI_FUTEX));
	return 0;
}
SEC("fexit/futex_unlock_pi")
int BPF_PROG(tierce_futex_unlocked, u32 *place, unsigned int flags, int error)
{
	if (SIDE.ready)
		lock_passed(lock_here(place, TIERCE_LOCK_PI_FUTEX), !error);
	return 0;
}
