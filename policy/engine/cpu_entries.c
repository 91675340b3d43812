/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Entries of a CPU: it decides, another scheduling class takes it or returns it, the task that it left is off it. */

/* The locked CPU's task can no longer use it. */
static inline u64 task_blocks(u32 cpu, u32 task, u32 why, u64 now)
{
	port_trace(TIERCE_EV_release, cpu, task, why, 0, now);
	return cpu_advance(cpu, 1, now, 0);
}

/* The task at the end of the locked CPU's path gives way: the edge to it, which is not spent, goes to where its policy has one
 * that comes. Does that concern the nodes above? */
DISPATCHER bool turn_ends(u32 cpu, u32 edge, edge_t *x, node_t *n, u64 now)
{
	port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_OUTRANKED, 0, now);
	port_trace(TIERCE_EV_request, cpu, x->child, TIERCE_WOKE, 0, now);
	n->running = TIERCE_NONE;
	x->state = TIERCE_READY;
	policy_return(edge, now);
	if (x->flags & EDGE_SPENT) {
		edge_spent(edge, cpu, now);
		return true;
	}
	return deadline_follow(edge, now);
}

/* The path without it. */
static inline void turn_leaves(u32 cpu, u32 task, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, 0, task, now);
	c->path_length--;
	c->task = TIERCE_NONE;
	node_at(task)->on_cpu = TIERCE_CPUS;
	cpu_settle(cpu, now);
}

TIERCE_FN int task_yields(u32 cpu, u32 task, u64 now)
{
	u32 edge = AT(cpu_at(cpu)->path, cpu_at(cpu)->path_length - 1);
	if (edge_at(edge)->flags & EDGE_SPENT) {
		edge_revoke(edge, TIERCE_SPENT, now);
		port_trace(TIERCE_EV_request, cpu, task, TIERCE_WOKE, 0, now);
	} else {
		turn_ends(cpu, edge, edge_at(edge), parent_of(edge), now);
	}
	turn_leaves(cpu, task, now);
	return 0;
}

/* May it give way like that? */
static inline bool yields_plainly(u32 cpu, u32 task)
{
	cpu_t *c = cpu_at(cpu);
	u32 length = c->path_length;
	if (!task || c->task != task || c->outside || !c->online || length < 2 || length > TIERCE_PATH)
		return false;
	return edge_at(AT(cpu_at(cpu)->path, length - 1))->flags & EDGE_PLAIN;
}

/* Charged by turn_passes, which stops here: graph_decide counts as taken what was stolen. `ended`: so has the turn. */
static PORT_APART u32 turn_stops(u32 cpu, u32 ended, u32 stolen_ns, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	c->told_ns += stolen_ns;
	c->paid_ns += stolen_ns;
	if (ended) {
		port_record(TIERCE_OP_yield, c->task, 0, 0, now, 0, 0);
		turn_leaves(cpu, c->task, now);
	} else {
		cpu_settle(cpu, now);
	}
	return TIERCE_NONE;
}

/* A yield as it nearly always is: nothing else is due, the nodes above go on, the turn passes to a sibling or comes back.
 * Charge, give way and decide in one; returns the task. 0: it is not so; by then the path may be charged, and left. */
static PORT_APART u32 turn_passes(u32 cpu, u32 task, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u32 last = c->path_length - 1, event = domain_at(cpu)->events, edge, next, ran, i;
	u64 elapsed = now - c->charged_ns, until = TIERCE_NEVER, at;
	bool stays = true;
	edge_t *x, *y;
	node_t *n, *m;

	if (c->task != task || last - 1 >= TIERCE_PATH - 1 || c->asked | c->kick_pending | c->outside)
		return TIERCE_NONE;
	if (SHARES && c->claims | c->serves)
		return TIERCE_NONE;
	if ((elapsed | stolen_ns) >> 32 || (u32)elapsed <= (u32)stolen_ns || c->taken_ns != c->paid_ns)
		return TIERCE_NONE;
	edge = AT(cpu_at(cpu)->path, last);
	x = edge_at(edge);
	if ((x->flags & (EDGE_PLAIN | EDGE_SPENT)) != EDGE_PLAIN || (event && event_link(event)->key <= now))
		return TIERCE_NONE;

	ran = (u32)elapsed - (u32)stolen_ns;
	if (stolen_ns) {
		port_record(TIERCE_OP_taken, cpu, 0, stolen_ns, now, 0, 0);
		port_trace(TIERCE_EV_stolen, cpu, task, 0, stolen_ns, now);
		if (PORT_HAS_PART(servers) && S.loses)
			path_loses(cpu, (u32)stolen_ns);
	}
	c->charged_ns = now;
	c->stolen_ns += (u32)stolen_ns;
	c->used_ns += ran;
	node_at(task)->ran_ns += ran;
	edge_at(AT(cpu_at(cpu)->path, 0))->supply_ns += ran;
	edge_charge(edge, cpu, ran, now);
	for (i = last - 1; i; i--) {
		u32 above = AT(cpu_at(cpu)->path, i), first;
		edge_t *z = edge_at(above);
		edge_charge(above, cpu, ran, now);
		first = node_at(z->parent)->order;
		if (!(z->flags & EDGE_COUNTED) || (first && policy_pick(z->parent, first, above, now) != above))
			stays = false;
		at = policy_until(above, now);
		until = at < until ? at : until;
	}
	if (!stays || x->flags & EDGE_SPENT)
		return turn_stops(cpu, TIERCE_NONE, (u32)stolen_ns, now);

	n = node_at(x->parent);
	stays = !turn_ends(cpu, edge, x, n, now);
	next = n->order;
	y = edge_at(next);
	m = node_at(y->child);
	if (!stays || !(y->flags & EDGE_PLAIN) || m->kind != TIERCE_TASK)
		return turn_stops(cpu, edge, (u32)stolen_ns, now);
	port_record(TIERCE_OP_yield, task, 0, 0, now, 0, 0);
	order_take(n, next);
	edge_enter(next, cpu, last, now);
	n->running = next;
	at = policy_begin(next, now);
	cpu_arm(cpu, at < until ? at : until, now);
	if (next != edge) {
		node_at(task)->on_cpu = TIERCE_CPUS;
		task = y->child;
		task_runs(cpu, task, m, next, now);
	}
	c->decisions++;
	port_record(TIERCE_OP_decide, cpu, task, 0, now, c->until_ns, 0);
	unlock(cpu);
	return task;
}

/* Any other decision, of a CPU that is locked: to its end. */
static PORT_APART u32 decide_anew(u32 cpu, u32 left, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u64 at = now;
	u32 task;
	if (SPREADS)
		c->ran = c->task;
	if (stolen_ns && left) { /* of what has left */
		c->taken_ns += stolen_ns;
		stolen_ns = 0;
	}
	if (left && left == c->task) {
		now = task_blocks(cpu, left, TIERCE_BLOCKED, now);
		port_record(TIERCE_OP_release, left, TIERCE_BLOCKED, 0, at, 0, 0);
	} else {
		now = cpu_advance(cpu, 0, now, stolen_ns);
		if (PORT_YIELDS && left & TIERCE_YIELDED && yields_plainly(cpu, left ^ TIERCE_YIELDED)) {
			task_yields(cpu, left ^ TIERCE_YIELDED, now);
			port_record(TIERCE_OP_yield, left ^ TIERCE_YIELDED, 0, 0, at, 0, 0);
			now = cpu_advance(cpu, 0, now, 0); /* events that are due by that */
		}
	}
	c->asked = 0;
	c->kick_pending = 0; /* before the inbox is drained: whoever fills it from now on kicks again */
	if (SHARES) {
		inbox_drain(cpu, now);
		cpu_settle(cpu, now);
	}
	c->decisions++;
	if (SHARES && c->leaves)
		port_fail("graph: decided before what ran was returned");
	if (c->task || c->outside || (SHARES && (c->drained || c->claims)) || !descend(cpu, now)) {
		walk(cpu, now);
		cpu_settle(cpu, now);
		if (!path_same(cpu))
			commit(cpu, now);
		cpu_settle(cpu, now);
		if (SHARES && c->drained)
			told_declined(cpu);
		if (SHARES && c->claims)
			claims_drop(cpu, now);
		cpu_settle(cpu, now);
		c->until_ns = path_until(cpu, now);
	}
	cpu_arm(cpu, c->until_ns, now);
	idle_tell(cpu);
	task = c->task;
	if (SPREADS && (!c->ran || !task || c->offered) && any_idle())
		spread_passes(cpu);
	port_record(TIERCE_OP_decide, cpu, task, stolen_ns, at, c->until_ns, c->drained);
	unlock(cpu);
	return task;
}

TIERCE_FN u32 graph_decide(u32 cpu, u32 left, u64 now, u64 stolen_ns)
{
	u32 task;
	if (cpu >= (SEVERAL_CPUS ? S.cpus : 1))
		return TIERCE_NONE;
	port_lock(cpu);
	if (PORT_YIELDS && left & TIERCE_YIELDED) {
		task = turn_passes(cpu, left ^ TIERCE_YIELDED, now, stolen_ns);
		if (task)
			return task;
	}
	return decide_anew(cpu, left, now, stolen_ns);
}

TIERCE_FN int graph_event(u32 cpu, u64 now, u64 stolen_ns)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, stolen_ns);
	settle_and_compare(cpu, now, 1);
	port_record(TIERCE_OP_event, cpu, 0, stolen_ns, at, cpu_at(cpu)->until_ns, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}

TIERCE_FN int graph_outside(u32 cpu, u32 begins, u64 now)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	now = cpu_enter(cpu, now, 0);
	path_lock(cpu); /* others look, see uncharged_shared_ns */
	cpu_at(cpu)->outside = begins;
	idle_tell(cpu);
	if (SPREADS && begins && any_idle())
		spread_passes(cpu);
	looks_again(cpu);
	settle_and_compare(cpu, now, 1);
	port_record(TIERCE_OP_outside, cpu, begins, 0, at, 0, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}

/* The edges that the CPU has left are free for others. */
TIERCE_FN int edges_return(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 i, edge;
	for (i = ZERO; i < c->leaves && i < TIERCE_PATH && CAN_LOOP; i++) { /* bottom up, as they were left */
		edge = AT(cpu_at(cpu)->leave, i);
		if (edge_is_inner(edge) && edge_at(edge)->state == TIERCE_GRANTED && edge_at(edge)->on_cpu == cpu) {
			edge_at(edge)->flags &= ~EDGE_LEFT;
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
		if (edge_is_head(edge_at(edge)->flags)) {
			u32 head = edge_at(edge)->child;
			if (ROW(node_at(head)->row, hold, cpu) == TIERCE_HOLD_LEAVING)
				head_free(head, cpu, now);
		}
		/* what is freed above has to know that the child below can be had again: a claim is judged by it */
		if (domain_at(c->shares)->works)
			settle_works(c->shares, now);
	}
	c->leaves = 0;
	return 0;
}

TIERCE_FN int graph_returned(u32 cpu, u64 now)
{
	u64 at = now;
	if (cpu >= S.cpus)
		return TIERCE_E_no_such_cpu;
	if (!SHARES || !cpu_at(cpu)->leaves)
		return TIERCE_OK;
	now = cpu_enter(cpu, now, 0);
	shared_lock(cpu);
	edges_return(cpu, now);
	looks_again(cpu);
	settle_and_compare(cpu, now, 1);
	port_record(TIERCE_OP_returned, cpu, 0, 0, at, 0, cpu_at(cpu)->drained);
	unlock(cpu);
	return TIERCE_OK;
}
