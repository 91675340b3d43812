/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Another object takes over (crates/tierce-scx/src/reload.rs). */

/* Between two objects the graph stands still: who could use the CPU still can, what runs is stolen time. The second object's first
 * decision ends that. The loader leaves a mark in interrupted_ns, so that no other decision looks for it. */
static inline bool cpu_is_frozen(u32 cpu)
{
	return side_at(cpu)->frozen;
}
static inline void cpu_outside(u32 cpu, u32 outside, u64 now)
{
	graph_outside(cpu, outside, now);
	if (outside != 1 && cpu_is_frozen(cpu)) /* by another CPU, meanwhile */
		graph_outside(cpu, 1, now);
}
static inline void cpu_thaws(u32 cpu, u64 now)
{
	if (!SIDE.ready) /* the first object decides on until it is detached */
		return;
	side_at(cpu)->frozen = 0;
	side_at(cpu)->thawed_ns = now;
	side_at(cpu)->blocking = DECISION_COMES;
	graph_returned(cpu, now);
	graph_outside(cpu, 0, now);
	side_at(cpu)->blocking = 0;
}

/* The loader tells the second object which leaf a thread has. */
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
/* The leaf has this thread no more if that died between two objects, when nobody was told. Its number is no sign: a thread that is
 * about to die loses that first, and may have to wait for a CPU before it is dead. */
static inline u64 command_bury(struct tierce_command *c)
{
	u32 leaf = c->a;
	struct slot *slot = leaf < TIERCE_NODES ? bpf_map_lookup_elem(&slots, &leaf) : 0;
	struct task_struct *p;
	struct thread *t;
	bool dead = true; /* this object was never told of it */
	unsigned long flags;
	u64 now;
	if (!slot || leaf >= TIERCE_NODES)
		return 0;
	bpf_rcu_read_lock();
	p = slot->task;
	if (p && (u32)p->pid == c->pid) {
		dead = (p->__state & TASK_DEAD) && !p->on_cpu; /* nobody calls us for it any more, but to free it */
		t = dead ? thread_of(p) : 0;
		if (t)
			dead = __sync_val_compare_and_swap(&t->leaf, leaf, TIERCE_NONE) == leaf;
	}
	bpf_rcu_read_unlock();
	if (!dead)
		return 0;
	bpf_local_irq_save(&flags);
	if (leaf_at(leaf)->pid == c->pid) {
		now = now_ns();
		if (node_at(leaf)->servable)
			graph_release(leaf, TIERCE_BLOCKED, now);
		leaf_empty(leaf);
		leaf_free(leaf, now);
	}
	bpf_local_irq_restore(&flags);
	return 0;
}
