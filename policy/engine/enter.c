/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The steps that entries have in common: charge, due events; the inbox, for decisions. */

/* It runs, and has to be left. */
static inline bool edge_is_spent_on_cpu(u32 edge)
{
	return edge_at(edge)->state == TIERCE_GRANTED && (edge_at(edge)->flags & (EDGE_SPENT | EDGE_LEFT)) == EDGE_SPENT;
}

/* At most 64 due events of a domain, fewer if many nodes change; the caller settles what they have changed. */
TIERCE_FN int events_due(u32 domain, u64 now)
{
	u32 done = ZERO;
	while (done < TIERCE_EVENTS_MAX && domain_at(domain)->works <= TIERCE_WORKS / 2 && CAN_LOOP) {
		u32 edge = domain_at(domain)->events;
		if (!edge || event_link(edge)->key > now)
			break;
		domain_at(domain)->events = events_out(edge, edge);
		policy_event(edge, now);
		edge_spent_changed(edge, now);
		if (SHARES && is_shared(domain)) { /* it may concern other CPUs */
			if (edge_is_spent_on_cpu(edge))
				kick(edge_at(edge)->on_cpu);
			node_reordered(edge_at(edge)->parent, now);
			settle_works(domain, now);
		}
		done++;
	}
	return (int)done;
}

/* Only for a decision, which a full inbox always has coming: so that it knows which heads it was asked for and declines. */
static inline void inbox_drain(u32 cpu, u64 now)
{
	u64 bits = AT(S.inbox, cpu).bits ? port_inbox_take(cpu) : 0;
	u32 bit;
	cpu_at(cpu)->drained = bits;
	if (!bits)
		return;
	shared_lock(cpu); /* what the heads announce is read below */
	for (bit = ZERO; bits && bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		u32 edge = AT(cpu_at(cpu)->crossing, bit);
		if (!(bits >> bit & 1) || !edge || !edge_at(edge)->told) /* meanwhile it may have been told off */
			continue;
		edge_request(edge, edge_at(edge)->restore ? TIERCE_RESTORED : TIERCE_WOKE, now);
		edge_at(edge)->restore = 0;
	}
	settle_works(cpu, now);
}

/* Settle everything the operation changed. */
static inline void domain_settle(u32 domain, u64 now)
{
	if (domain_at(domain)->works)
		settle_works(domain, now);
}
static inline void cpu_settle(u32 cpu, u64 now)
{
	domain_settle(cpu, now);
	if (SHARES && cpu_at(cpu)->shares)
		domain_settle(cpu_at(cpu)->shares, now);
}

/* The CPU, if idle, may serve a spread node now that it could not when it decided: it decides again, and looks for tasks. */
static inline void looks_again(u32 cpu)
{
	if (SPREADS && cpu_at(cpu)->idle)
		kick(cpu);
}

/* Bring the locked domain of a CPU to `now`; returns the time that counts. `blocks`: what it runs no longer can, its path
 * is cut. */
static inline u64 cpu_advance(u32 cpu, u32 blocks, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u32 task = c->task;
	if (now < c->charged_ns)
		now = c->charged_ns;
	if (c->outside > 1)
		overrun_charge(cpu, now, stolen_ns);
	if (blocks) {
		path_lock(cpu);
		node_at(task)->servable = 0;
		node_at(task)->on_cpu = TIERCE_CPUS;
	}
	if (blocks) {
		path_charge_and_cut(cpu, now);
		c->task = TIERCE_NONE;
		port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, 0, task, now);
		cpu_settle(cpu, now);
	} else if (now != c->charged_ns) {
		path_charge(cpu, now, stolen_ns);
		cpu_settle(cpu, now);
	}
	if (SHARES)
		c->drained = 0;
	if (domain_at(cpu)->events && event_link(domain_at(cpu)->events)->key <= now) {
		c->events += (u64)events_due(cpu, now);
		cpu_settle(cpu, now);
		c->until_ns = 0;
		looks_again(cpu);
	}
	if (SHARES && c->serves) {
		shared_lock(cpu);
		c->events += (u64)events_due(c->serves, now);
		cpu_settle(cpu, now);
	}
	return now;
}

static inline u64 cpu_enter(u32 cpu, u64 now, u64 stolen_ns)
{
	port_lock(cpu);
	return cpu_advance(cpu, 0, now, stolen_ns);
}
