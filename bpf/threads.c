/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A thread enters or leaves our class, may run elsewhere, has another weight. */

SEC("struct_ops/set_cpumask")
void BPF_PROG(tierce_set_cpumask, struct task_struct *p, const struct cpumask *mask)
{
	struct thread *t = thread_of(p);
	cpus_t cpus;
	u32 error;
	u64 now;
	if (!t || !t->leaf)
		return;
	now = now_ns();
	if (WANTED(inherits))
		lends_and_sleeps(t->leaf, now);
	cpus = cpus_of(p);
	error = leaf_allow(t->leaf, cpus, now);
	if (error && !node_at(t->leaf)->servable) {
		if (leaf_at(t->leaf)->own != LEAF_DEFAULT)
			thread_is_lost(p, t, error);
		thread_leave(p, t, now);
		thread_join(p, t, cpus, now);
	} else if (t->lost) { /* perhaps it may now */
		t->lost = 0;
		tell_thread(NEWS_BACK, p);
	}
}

SEC("struct_ops.s/init_task")
s32 BPF_PROG(tierce_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct thread *t = bpf_task_storage_get(&threads, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	unsigned long flags;
	if (!t)
		return -ENOMEM;
	if (t->leaf && leaf_at(t->leaf)->pid != (u32)p->pid) /* another thread has it since this object was told of it */
		t->leaf = TIERCE_NONE;
	t->lost = p->prio < MAX_RT_PRIO;
	if (t->lost && t->leaf && node_at(t->leaf)->servable) { /* it left our class between two objects, as the loader does */
		bpf_local_irq_save(&flags);
		if (WANTED(inherits))
			lends_no_more(t->leaf);
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
		leaf_at(t->leaf)->moving = 1; /* no longer unseen */
	if (WANTED(inherits) && t && t->leaf)
		lends_no_more(t->leaf);
	/* It fell asleep between two objects. */
	if (t && t->leaf && !p->on_rq && node_at(t->leaf)->servable) {
		now = now_ns();
		job_end(t->leaf, now);
		graph_release(t->leaf, TIERCE_BLOCKED, now);
	}
	if (!t || !t->lost || thread_is_pinned(p))
		return;
	t->lost = 0;
	tell_thread(NEWS_BACK, p);
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
	u32 leaf = __sync_lock_test_and_set(&t->leaf, TIERCE_NONE), next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
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
	if (WANTED(inherits))
		lends_and_sleeps(t->leaf, now_ns());
	/* It keeps its leaf until it comes back or dies. While frozen it was not released when it was dequeued. */
	if (SIDE.ready == READY_KEEPS || cpu_is_frozen(cpu)) {
		if (t->leaf && node_at(t->leaf)->servable)
			graph_release(t->leaf, TIERCE_MOVED, now_ns());
		return;
	}
	if (thread_drop(t)) {
		t->lost = 1;
		tell_thread_as(NEWS_THREAD, p, SCHED_FIFO, 0); /* or another higher one: p->policy is still the old one */
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
	if (WANTED(inherits) && t && t->next)
		lends_and_sleeps(t->leaf, now_ns());
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
	promise_stage(edge);
	graph_set(edge, now);
	control_unlock();
}
