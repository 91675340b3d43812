/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Overruns with `throttle = "user"`: a budget that ends within a system call is over when the call is. */

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
			side->blocking = DECISION_COMES;
			graph_event(cpu, now, 0);
			side->blocking = 0;
		}
		goes_on = (beside ? leaf_is_spent(leaf, cpu) : path_is_spent(cpu)) && overrun_allowed(leaf, p);
		side->overruns += goes_on && !beside && !side->overrun;
	}
	side->overrun = goes_on;
	return goes_on;
}
