/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Entries about a task: it is requested, released, yields, has a deadline, sends a message. */

/* The CPU whose domain an operation on the task concerns: the one that runs it, or has it in its tree; TIERCE_CPUS: only
 * a shared domain. A task of a shared domain comes and goes under its lock, so it is looked at twice. */
static inline u32 task_cpu(u32 task)
{
	u32 domain = node_at(task)->domain, cpu = node_at(task)->on_cpu;
	if (domain < TIERCE_CPUS)
		return domain;
	return cpu < S.cpus && cpu_at(cpu)->task == task ? cpu : TIERCE_CPUS;
}

/* What task_lock has locked: a CPU, with the shared domain of its group if the task is there, or that alone. Is it a CPU? What nobody
 * shares is always in the domain of one. */
#define ON_CPU(cpu) (!SHARES || (cpu) < TIERCE_CPUS)
static inline void task_unlock(u32 cpu)
{
	if (ON_CPU(cpu))
		unlock(cpu);
	else
		shared_unlock(cpu);
}

static inline bool task_exists(u32 task)
{
	return task && task < TIERCE_NODES && node_at(task)->kind == TIERCE_TASK && node_at(task)->domain != TIERCE_NODOMAIN;
}

TIERCE_FN u32 task_lock_shared(u32 task)
{
	u32 tries, cpu, domain;
	for (tries = ZERO; tries < 64 && CAN_LOOP; tries++) {
		if (SEVERAL_CPUS && node_at(task)->domain == TIERCE_TRANSIT)
			port_await(task);
		cpu = task_cpu(task);
		if (cpu < TIERCE_CPUS)
			port_lock(cpu);
		domain = node_at(task)->domain;
		if (cpu < TIERCE_CPUS) {
			if (is_shared(domain))
				shared_lock(cpu);
			if (cpu == task_cpu(task))
				return cpu;
			unlock(cpu);
		} else if (is_shared(domain)) {
			port_lock(domain);
			if (cpu == task_cpu(task) && node_at(task)->domain == domain)
				return domain;
			shared_unlock(domain);
		}
	}
	port_fail("graph: a task would not stay where it is");
	return TIERCE_NODOMAIN;
}
static inline u32 task_lock(u32 task)
{
	u32 cpu = node_at(task)->domain;
	if (cpu < TIERCE_CPUS) { /* nearly always, and it stays there unless it was just attached */
		port_lock(cpu);
		if (node_at(task)->domain == cpu)
			return cpu;
		port_unlock(cpu);
	}
	return task_lock_shared(task);
}

static inline void whole_compare(u32 cpu, u64 now)
{
	if (now != cpu_at(cpu)->charged_ns && !PORT_QUIET && !cpu_at(cpu)->asked) {
		if (cpu_at(cpu)->outside > 1)
			overrun_charge(cpu, now, 0);
		path_charge(cpu, now, 0);
	}
	settle_and_compare(cpu, now, 0);
}

/* A request that ended its climb at `stop` can change this CPU's decision only there: ask that one node, when nothing
 * else has happened since the last decision or comparison. Otherwise compare as a whole. */
static inline void request_compare(u32 cpu, cpu_t *c, u32 stop, u64 now)
{
	if (PORT_QUIET || c->asked || c->outside || (SHARES && (c->shares || domain_at(cpu)->works)) || !stop ||
	    now >= c->until_ns || now >= c->armed_ns || (SPREADS && c->armed_ns > now + SPREAD_BALANCE_NS)) {
		whole_compare(cpu, now); /* or it has to look whether tasks that wait are better off elsewhere */
		return;
	}
	if (stop != CLIMBED_TO_TOP) {
		node_t *n = node_at(stop);
		if (policy_heeds_deadlines(n->kind)) {
			whole_compare(cpu, now);
			return;
		}
		if (!n->running)
			return;
		if ((!n->order || policy_pick(stop, n->order, n->running, now) == n->running) &&
		    policy_until(n->running, c->charged_ns) >= c->armed_ns)
			return;
	}
	c->asked = 1;
	kick(cpu);
}

/* The end of an operation on a task. */
static inline void task_settle(u32 cpu, u64 now)
{
	if (cpu < TIERCE_CPUS)
		settle_and_compare(cpu, now, 0);
	else
		settle_works(cpu, now);
}
/* Its answer, recorded before what task_lock locked is unlocked. */
#define TASK_ANSWER(op, a, b, value, error) \
	do { \
		port_record(op, a, b, value, at, error, ON_CPU(cpu) ? cpu_at(cpu)->drained : 0); \
		task_unlock(cpu); \
		return error; \
	} while (0)
#define TASK_END(op, a, b, value) TASK_ANSWER(op, a, b, value, TIERCE_OK)

TIERCE_FN int graph_request(u32 task, u32 why, u64 now)
{
	node_t *n;
	cpu_t *c;
	u64 at = now;
	u32 cpu, stop = 0;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	n = node_at(task);
	cpu = task_lock(task);
	if (cpu == TIERCE_NODOMAIN)
		return TIERCE_E_no_such_node;
	c = cpu_at(ON_CPU(cpu) ? cpu : 0);
	if (ON_CPU(cpu) && (!SHARES || cpu == n->domain) && now < c->until_ns) {
		if (SHARES)
			c->drained = 0;
		if (now < c->charged_ns)
			now = c->charged_ns;
	} else if (ON_CPU(cpu)) {
		now = cpu_advance(cpu, 0, now, 0);
	}
	port_trace(TIERCE_EV_request, cpu, task, why, 0, now);
	if (!n->servable) {
		u32 domain = SHARES ? n->domain : cpu;
		n->servable = 1;
		stop = climb_plainly(task, now);
		if (stop != CLIMBED_TO_TOP && (stop & CLIMB_ON)) {
			stop = climb(stop & ~CLIMB_ON, now);
			domain_settle(domain, now);
		} else if (deadlines_matter()) {
			domain_settle(domain, now);
		}
	}
	if (ON_CPU(cpu))
		request_compare(cpu, c, stop, now);
	else if (domain_at(cpu)->works)
		settle_works(cpu, now);
	TASK_END(TIERCE_OP_request, task, why, 0);
}

TIERCE_FN int graph_release(u32 task, u32 why, u64 now)
{
	node_t *n;
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	n = node_at(task);
	cpu = task_lock(task);
	if (cpu == TIERCE_NODOMAIN)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS && cpu_at(cpu)->task == task && n->servable) {
		task_blocks(cpu, task, why, now);
		cpu_at(cpu)->asked = 1; /* its CPU has to decide in any case */
		kick(cpu);
		TASK_END(TIERCE_OP_release, task, why, 0);
	}
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, 0, now, 0);
	port_trace(TIERCE_EV_release, cpu, task, why, 0, now);
	if (n->servable) {
		n->servable = 0;
		climb(task, now);
		domain_settle(n->domain, now);
	}
	task_settle(cpu, now);
	TASK_END(TIERCE_OP_release, task, why, 0);
}

TIERCE_FN int graph_announce(u32 task, u64 deadline_ns, u64 now)
{
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu == TIERCE_NODOMAIN)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, 0, now, 0);
	if (node_at(task)->deadline_ns != deadline_ns)
		deadline_spread(task, deadline_ns, now);
	task_settle(cpu, now);
	TASK_END(TIERCE_OP_announce, task, 0, deadline_ns);
}

TIERCE_FN int graph_yield(u32 task, u64 now)
{
	u64 at = now;
	u32 cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu == TIERCE_NODOMAIN)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS && yields_plainly(cpu, task)) {
		now = cpu_advance(cpu, 0, now, 0);
		task_yields(cpu, task, now);
		cpu_at(cpu)->asked = 1;
		kick(cpu);
		TASK_END(TIERCE_OP_yield, task, 0, 0);
	}
	task_unlock(cpu);
	graph_release(task, TIERCE_BLOCKED, now);
	return graph_request(task, TIERCE_WOKE, now);
}

/* The budget above it that knows of its locks: the first that does, from one first parent to the next. */
static inline int budget_hears(u32 task, u32 cpu, u32 kind, u64 now)
{
	u32 edge = node_at(task)->first_parent, level;
	int error = TIERCE_E_section_needs_budget_by_priority;
	for (level = ZERO; edge && error == TIERCE_E_section_needs_budget_by_priority && level < TIERCE_PATH && CAN_LOOP;
	     level++) {
		error = edge_at(edge)->state == TIERCE_WAITING ? error : policy_tell(edge, kind, now);
		if (error == TIERCE_E_not_understood)
			error = TIERCE_E_section_needs_budget_by_priority;
		if (!error && kind != TIERCE_SECTION_BEGIN)
			edge_charge(edge, cpu, 0, now); /* it may be spent */
		edge = node_at(edge_at(edge)->parent)->first_parent;
	}
	return error;
}

/* What its parents say to it. */
static inline int parents_hear(u32 task, u32 cpu, u32 kind, u64 now)
{
	u32 edge = node_at(task)->first_parent;
	int error = TIERCE_E_not_understood, said;
	if (kind >= TIERCE_SECTION_BEGIN)
		return budget_hears(task, cpu, kind, now);
	for (; edge && CAN_LOOP; edge = edge_at(edge)->next_parent) {
		if (edge_at(edge)->flags & EDGE_WHEN_SPENT)
			continue;
		said = policy_tell(edge, kind, now);
		if (!said)
			return TIERCE_OK;
		if (error == TIERCE_E_not_understood)
			error = said;
	}
	return error;
}

TIERCE_FN int graph_tell(u32 task, u32 kind, u64 now)
{
	u64 at = now;
	u32 cpu;
	int error = TIERCE_E_message_needs_one_cpu;
	if (!task_exists(task))
		return TIERCE_E_no_such_node;
	cpu = task_lock(task);
	if (cpu == TIERCE_NODOMAIN)
		return TIERCE_E_no_such_node;
	if (cpu < TIERCE_CPUS)
		now = cpu_advance(cpu, 0, now, 0);
	if (node_at(task)->domain == cpu && cpu < TIERCE_CPUS)
		error = parents_hear(task, cpu, kind, now);
	port_trace(TIERCE_EV_tell, cpu, task, kind, (u64)error, now);
	task_settle(cpu, now);
	TASK_ANSWER(TIERCE_OP_tell, task, kind, 0, error);
}
