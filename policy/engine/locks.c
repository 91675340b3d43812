/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Locks of the domains, kicks, and what a CPU publishes about itself. */

TIERCE_FN int shared_take(u32 cpu)
{
	u32 domain = shared_of(cpu);
	port_lock(domain);
	cpu_at(cpu)->shares = domain;
	return 0;
}
static inline void shared_lock(u32 cpu)
{
	if (SHARES && !cpu_at(cpu)->shares)
		shared_take(cpu);
}

/* How many tasks wait below a replica; without its lock a guess. */
static inline u32 replica_waits(u32 node)
{
	u32 servable = node_at(node)->servable;
	return servable && node_at(node)->running ? servable - 1 : servable;
}

/* After each decision: is the CPU idle? Its own flag first, others' cache line only when that changes. */
static inline void idle_tell(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	bool idle;
	if (!SPREADS)
		return;
	idle = !c->task && !c->outside && c->online;
	if (!idle && !c->idle)
		return;
	c->idle = idle;
	if (idle && !is_idle(cpu))
		idle_set(cpu);
	else if (!idle)
		idle_clear(cpu);
}

TIERCE_FN int spread_passes(u32 cpu);

static inline void kick(u32 cpu)
{
	cpu_at(cpu)->kick_pending = 1;
	port_kick(cpu);
}

/* The events of a shared domain are served by one CPU; when its timer is too late for the first of them, it decides again. */
TIERCE_FN int shared_unlock(u32 domain)
{
	u32 event = domain_at(domain)->events;
	if (event && event_link(event)->key < group_at(domain)->until_ns) {
		group_at(domain)->until_ns = event_link(event)->key;
		kick(group_at(domain)->timer);
	}
	port_unlock(domain);
	return 0;
}

/* An entry ends. */
static inline void cpu_unlock(u32 cpu)
{
	cpu_at(cpu)->told_now = 0;
	port_unlock(cpu);
}
static inline void shared_release(u32 cpu)
{
	u32 domain = SHARES ? cpu_at(cpu)->shares : 0;
	if (!domain)
		return;
	cpu_at(cpu)->shares = 0;
	shared_unlock(domain);
}
static inline void unlock(u32 cpu)
{
	shared_release(cpu);
	cpu_unlock(cpu);
}
