/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* When a CPU has to be entered again, and whether it has to decide. */

/* When budget or quantum of what the CPU runs ends. */
TIERCE_FN u64 path_until(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u64 until = TIERCE_NEVER, at;
	u32 i;
	for (i = 1; !c->outside && i < TIERCE_PATH && i < c->path_length && CAN_LOOP; i++) {
		at = policy_until(AT(cpu_at(cpu)->path, i), now);
		until = at < until ? at : until;
	}
	return until;
}

/* When its waiting spread tasks are to be compared with other CPUs' (graph_balance). */
TIERCE_FN u64 balance_until(u32 cpu, u64 now)
{
	u64 at = cpu_at(cpu)->balance_ns;
	u32 family;
	for (family = ZERO + 1; family < S.families && CAN_LOOP; family++)
		if (replica_on(family, cpu) && replica_waits(replica_on(family, cpu)))
			return at > now ? at : now + SPREAD_BALANCE_NS;
	return TIERCE_NEVER;
}

/* When the CPU has to be entered again at the latest; `until`: what path_until says. */
static inline u64 cpu_until(u32 cpu, u64 until, u64 now)
{
	u32 event = domain_at(cpu)->events;
	u64 at;
	if (SPREADS) {
		at = balance_until(cpu, now);
		until = at < until ? at : until;
	}
	if (event && event_link(event)->key < until)
		until = event_link(event)->key;
	if (SHARES && cpu_at(cpu)->serves) {
		event = domain_at(cpu_at(cpu)->serves)->events;
		at = event ? event_link(event)->key : TIERCE_NEVER; /* never: the next one to come kicks this CPU */
		group_at(cpu_at(cpu)->serves)->until_ns = at;
		until = at < until ? at : until;
	}
	return until;
}

/* What the timer has to be set to: an earlier time stays, it only costs an entry that finds nothing to do. A quiet port
 * goes by until_ns. */
static inline void cpu_arm(u32 cpu, u64 until, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	c->until_ns = cpu_until(cpu, until, now);
	if (PORT_QUIET || c->until_ns < c->armed_ns || c->armed_ns <= now)
		c->armed_ns = c->until_ns;
}

/* The end of an entry that does not decide: kick if a decision would change something. `own`: called on the CPU itself,
 * which then arms its timer on its own. */
TIERCE_FN int cpu_compare(u32 cpu, u64 now, u32 own)
{
	cpu_t *c = cpu_at(cpu);
	bool same;
	if (PORT_QUIET) {
		kick(cpu);
		return 0;
	}
	if (own && c->armed_ns <= now)
		c->armed_ns = TIERCE_NEVER; /* it fired; a decision that is due sets it again */
	if (c->outside && own)
		cpu_arm(cpu, TIERCE_NEVER, now); /* its events, the shared ones perhaps, go on */
	if (c->outside || c->asked)
		return 0;
	walk(cpu, now);
	if (SHARES)
		cpu_settle(cpu, now); /* what heads had no use for */
	same = path_same(cpu);
	if (same && own)
		cpu_arm(cpu, path_until(cpu, now), now);
	else if (same)
		c->until_ns = cpu_until(cpu, path_until(cpu, now), now);
	if (!same || c->until_ns < c->armed_ns) {
		c->asked = 1;
		kick(cpu);
	}
	return 0;
}

/* What has changed is settled first. */
static inline void settle_and_compare(u32 cpu, u64 now, u32 own)
{
	cpu_settle(cpu, now);
	cpu_compare(cpu, now, own);
}
