/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU arms its own timer; it goes when a higher class keeps it or when it is offline, and comes back. */

/* When the CPU has to be entered. While a decision is pending that is a look whether it was forgotten: the decision knows when else.
 * What ends the running thread's time, not an event, is `later_ns` later: so long until it runs. */
static inline u64 timer_due(u32 cpu, u64 now, u64 later_ns)
{
	u64 at = cpu_at(cpu)->armed_ns;
	u32 event = domain_at(cpu)->events;
	if (later_ns && at != TIERCE_NEVER &&
	    !(SHARES && cpu_at(cpu)->serves && at == group_at(cpu_at(cpu)->serves)->until_ns) &&
	    !(event && event_link(event)->key == at))
		at += later_ns;
	if (at <= now)
		at = cpu_at(cpu)->asked && !cpu_at(cpu)->outside ? now + FORGOTTEN_NS : TIERCE_NEVER;
	if (WANTED(several_cpus) && side_at(cpu)->away_at_ns && side_at(cpu)->away_at_ns < at)
		at = side_at(cpu)->away_at_ns;
	if (WANTED(throttle_at_user) && at > now + FORGOTTEN_NS &&
	    (cpu_at(cpu)->outside ? cpu_at(cpu)->outside > 1 : side_at(cpu)->overrun))
		at = now + FORGOTTEN_NS; /* it may have used up what it may overrun */
	return at;
}
static inline void timer_set(u32 cpu, u64 at)
{
	u32 key = cpu; /* the CPU itself need not be in memory */
	struct timer *t = bpf_map_lookup_elem(&timers, &key);
	if (t)
		bpf_timer_start(&t->timer, at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}
/* A timer that is set to an earlier time stays as it is: when it fires it is set anew. To set one costs an interrupt (irq_work), since
 * interrupts are off here; so one is set per quantum or budget, not per switch. */
static inline void arm(u32 cpu, u64 now, u64 later_ns)
{
	u64 at = timer_due(cpu, now, later_ns);
	side_at(cpu)->due_ns = at;
	if (at >= side_at(cpu)->timer_ns && now < side_at(cpu)->timer_ns)
		return;
	if (at == TIERCE_NEVER)
		return;
	side_at(cpu)->timer_ns = at;
	side_at(cpu)->arms++;
	timer_set(cpu, at);
}

/* Has the last decision left this leaf by a shared edge, while its thread is still on the CPU? */
static inline bool cpu_has_left(u32 cpu, u32 leaf)
{
	return PORT_HAS_PART(shared) && side_at(cpu)->left == leaf;
}

/* Offline, not only away. The only CPU never goes. */
static inline bool cpu_is_gone(u32 cpu)
{
	return WANTED(several_cpus) && !cpu_at(cpu)->online && !side_at(cpu)->away;
}
/* A CPU that a higher class keeps for long is away: what waited for it there goes elsewhere if it can. */
static inline void cpu_goes(u32 cpu, u64 now)
{
	side_at(cpu)->away_at_ns = 0;
	side_at(cpu)->away = CPU_AWAY;
	side_at(cpu)->aways++;
	side_at(cpu)->left = TIERCE_NONE;
	graph_returned(cpu, now);
	graph_online(cpu, 0, now);
	graph_decide(cpu, 0, now, 0);
	graph_returned(cpu, now);
	if (tasks_move())
		graph_evacuate(cpu, now);
}
static inline void cpu_comes(u32 cpu, u64 now)
{
	u32 away = side_at(cpu)->away;
	if (!WANTED(several_cpus))
		return;
	side_at(cpu)->away_at_ns = 0;
	if (!away)
		return;
	if (away == CPU_GOES)
		cpu_goes(cpu, now);
	else
		graph_online(cpu, 1, now);
	side_at(cpu)->away = 0;
	if (away != CPU_AWAY)
		tell_cpu(cpu);
}
