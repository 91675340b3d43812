/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU's timer has fired. */

/* With interrupts on, where that costs least. An interrupt that comes between sets it, too, and perhaps to an earlier time. */
static inline void timer_again(u32 cpu)
{
	u64 at = side_at(cpu)->timer_ns;
	if (at == TIERCE_NEVER)
		return;
	timer_set(cpu, at);
	if (*(volatile u64 *)&side_at(cpu)->timer_ns != at)
		timer_set(cpu, side_at(cpu)->timer_ns);
}
static int timer_fired(void *map, u32 *key, struct timer *timer)
{
	unsigned long flags;
	u32 cpu = *key;
	u64 now;
	if (cpu >= TIERCE_CPUS || !SIDE.ready)
		return 0;
	if (cpu_is_gone(cpu)) { /* its timer has come to another CPU */
		side_at(cpu)->timer_ns = TIERCE_NEVER;
		return 0;
	}
	bpf_local_irq_save(&flags);
	now = now_ns();
	if (now < side_at(cpu)->due_ns) {
		side_at(cpu)->early++;
		side_at(cpu)->timer_ns = side_at(cpu)->due_ns;
		bpf_local_irq_restore(&flags);
		timer_again(cpu);
		return 0;
	}
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
	side_at(cpu)->due_ns = timer_due(cpu, now, side_at(cpu)->way_out_ns);
	side_at(cpu)->timer_ns = side_at(cpu)->due_ns;
	bpf_local_irq_restore(&flags);
	timer_again(cpu);
	return 0;
}
