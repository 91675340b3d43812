/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU's timer has fired. */

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
