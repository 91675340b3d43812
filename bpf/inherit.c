/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * [run] inherit: who has a lock runs in the place of who waits for it, as with `protocol = "inheritance"` in the simulator. For the graph
 * a thread that waits goes on wanting its CPU; when that decides for it, the holder runs there: at the waiter's place, on its budget.
 * Waits go through others: the holder may wait for a lock itself.
 *
 * That is so for threads that the plan names, if the CPU alone has waiter and holder in its tree. A wait whose holder is not known, sleeps,
 * or is elsewhere is an ordinary one: the waiter's leaf is released, for the rest of the wait.
 *
 * Who has a lock that is waited for: `held`, found by the lock. A release leaves it without a holder, and the waiter that is woken then
 * is the next one; whoever is known to have got it (a lock of the kernel, a PI futex) is the holder.
 */

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
		if (!holder || leaf_at(holder)->pid != held->pid || !node_at(holder)->servable ||
		    node_at(holder)->domain != cpu)
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
	u32 i = leaf_at(leaf)->held;
	if (!i)
		return;
	leaf_at(leaf)->held = 0;
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

static inline bool may_lend(u32 leaf, u32 cpu)
{
	struct tierce_leaf *its = leaf_at(leaf);
	return node_at(leaf)->servable && node_at(leaf)->domain == cpu && its->own != LEAF_DEFAULT &&
	       its->moving != LEAF_UNSEEN && !its->held && !(edge_at(node_at(leaf)->first_parent)->flags & EDGE_SPREAD);
}
/* The thread falls asleep. Does it wait for a lock whose holder can take its place? */
static inline bool thread_lends(struct task_struct *p, u32 leaf, u32 cpu)
{
	struct thread *t = thread_of(p);
	struct tierce_held *held;
	u32 i, holder;
	if (!t || !t->waits || t->next || !t->holder || t->holder >= TIERCE_NODES || (p->__state & TASK_DEAD))
		return false;
	holder = t->holder;
	if (holder == leaf || !may_lend(leaf, cpu) || leaf_at(holder)->pid != t->holder_pid || !node_at(holder)->servable ||
	    node_at(holder)->domain != cpu || leaf_at(holder)->own == LEAF_DEFAULT)
		return false;
	i = held_index(t->lock);
	held = held_at(i);
	if (held->waiters && held->lock != t->lock)
		return false; /* another lock has its place */
	held->lock = t->lock;
	held->holder = holder;
	held->pid = t->holder_pid;
	__sync_fetch_and_add(&held->waiters, 1);
	leaf_at(leaf)->held = i + 1;
	return true;
}
/* It wakes. Did it lend its place? If the lock was released, it is the one that gets it. */
static inline bool thread_wakes(struct task_struct *p, u32 leaf)
{
	struct thread *t = thread_of(p);
	struct tierce_held *held;
	bool lent = leaf_at(leaf)->held;
	if (t && t->waits) {
		held = held_at(held_index(t->lock));
		if (held->waiters && held->lock == t->lock && !held->holder) {
			held->holder = leaf;
			held->pid = (u32)p->pid;
		}
		t->holder = TIERCE_NONE; /* who has it if it sleeps again is not known */
	}
	lends_no_more(leaf);
	return lent;
}
/* Has the CPU decided for a task whose place this thread takes, before the thread waited with us? */
static inline bool is_awaited(u32 leaf)
{
	u32 cpu = node_at(leaf)->domain, awaits = cpu < TIERCE_CPUS ? side_at(cpu)->awaits : TIERCE_NONE;
	return awaits && awaits != leaf && leaf_runs(awaits, cpu) == leaf;
}

/* The lock is released, or this thread has got it. */
static inline void lock_passes(u64 key, u32 leaf, u32 pid)
{
	struct tierce_held *held = held_at(held_index(key));
	if (!held->waiters || held->lock != key)
		return;
	held->holder = leaf;
	held->pid = pid;
}
static inline void lock_passes_to(u64 key, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	lock_passes(key, t ? t->leaf : TIERCE_NONE, (u32)p->pid);
}

SEC("fentry/futex_wake")
int BPF_PROG(tierce_futex_wakes, u32 *place)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (SIDE.ready)
		lock_passes(lock_key((u64)place | TIERCE_LOCK_FUTEX, tgid), TIERCE_NONE, 0);
	return 0;
}
SEC("fentry/futex_unlock_pi")
int BPF_PROG(tierce_futex_unlocks, u32 *place)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	if (SIDE.ready)
		lock_passes(lock_key((u64)place | TIERCE_LOCK_PI_FUTEX, tgid), TIERCE_NONE, 0);
	return 0;
}
