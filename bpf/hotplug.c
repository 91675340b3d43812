/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU is taken by a higher class, goes offline, comes back. */

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
	tell_cpu(cpu);
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
	tell_cpu(cpu);
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
/* CPUs came and went between two objects, of which neither was told. None does while operations are attached. */
static inline void cpus_found(void)
{
	const struct cpumask *mask;
	unsigned long flags;
	u32 cpu;
	if (!WANTED(several_cpus))
		return;
	mask = scx_bpf_get_online_cpumask();
	bpf_local_irq_save(&flags);
	for (cpu = ZERO; cpu < cpus_here && cpu < TIERCE_CPUS && CAN_LOOP; cpu++) {
		u32 online = bpf_cpumask_test_cpu(cpu, mask);
		side_at(cpu)->going = 0;
		if (online && side_at(cpu)->away == CPU_AWAY)
			continue; /* its next decision ends that */
		side_at(cpu)->away = 0;
		if (cpu_at(cpu)->online != online)
			graph_online(cpu, online, now_ns());
	}
	bpf_local_irq_restore(&flags);
	scx_bpf_put_cpumask(mask);
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
