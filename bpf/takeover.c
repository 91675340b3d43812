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
