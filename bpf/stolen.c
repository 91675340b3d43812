/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Stolen time: interrupts, softirqs, and the scheduler's own time. */

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
	side_at(cpu)->interrupted_ns = cpu_at(cpu)->asked || cpu_is_frozen(cpu) ? now : 0;
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
	side_at(cpu)->interrupted_ns = cpu_at(cpu)->asked || cpu_is_frozen(cpu) ? side_at(cpu)->softirq_ns : 0;
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
