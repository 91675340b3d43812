/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Charging: the running path pays for what its task has received. */

/* What the CPU runs, if it is below a shared node, is read and changed under the shared lock only. */
static inline void path_lock(u32 cpu)
{
	u32 i;
	if (!SHARES || !cpu_at(cpu)->crossings)
		return;
	for (i = ZERO; i < TIERCE_PATH && i < cpu_at(cpu)->path_length && !cpu_at(cpu)->shares && CAN_LOOP; i++)
		if (edge_is_head(edge_at(AT(cpu_at(cpu)->path, i))->flags))
			shared_lock(cpu);
}

/* The path ends above this edge, whose child has nothing left to run. */
static inline int edge_cut(u32 edge, u32 cpu, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *child = node_at(x->child);
	if (edge_is_head(x->flags))
		x->told = TIERCE_UNTOLD;
	edge_revoke(edge, TIERCE_BLOCKED, now);
	if (x->flags & EDGE_COUNTED) {
		x->flags &= ~EDGE_COUNTED;
		if (x->parent)
			node_at(x->parent)->servable--;
	}
	if (child->row || child->conditional || x->next_parent || child->first_parent != edge)
		work_push(x->child); /* its other parents have to know */
	deadline_follow(edge, now);
	if (edge_is_head(x->flags))
		head_free(x->child, cpu, now);
	return 0;
}

/* A task of this CPU's own tree has run out of turn since the last charge, which the port has said by `outside`: the edges
 * above it that are spent, and so in no order, owe the time. */
TIERCE_FN int overrun_charge(u32 cpu, u64 now, u64 stolen_ns)
{
	cpu_t *c = cpu_at(cpu);
	u32 level, task = c->outside - 1, edge;
	u64 ran_ns = now - c->charged_ns;
	if (!ran_ns || !task || task >= TIERCE_NODES)
		return 0;
	stolen_ns += taken_since(cpu, now);
	if (stolen_ns >= ran_ns || node_at(task)->kind != TIERCE_TASK || node_at(task)->domain != cpu)
		return 0;
	ran_ns -= stolen_ns;
	node_at(task)->ran_ns += ran_ns;
	edge = node_at(task)->first_parent;
	for (level = ZERO; edge && level < TIERCE_PATH && CAN_LOOP; level++) {
		if (edge_at(edge)->flags & EDGE_SPENT)
			edge_owes(edge, ran_ns, now);
		edge = node_at(edge_at(edge)->parent)->first_parent;
	}
	return 0;
}

static PORT_APART void edge_spent(u32 edge, u32 cpu, u64 now)
{
	edge_spent_changed(edge, now);
	cpu_at(cpu)->until_ns = 0; /* the end of the entry compares as a whole */
}

DISPATCHER void edge_charge(u32 edge, u32 cpu, u64 ran, u64 now)
{
	edge_at(edge)->supply_ns += ran;
	if (policy_charge(edge, ran, now))
		edge_spent(edge, cpu, now);
}

/* What ran has blocked in the very moment of the last charge. */
TIERCE_FN int path_cut(u32 cpu, u64 now)
{
	u32 i;
	for (i = ZERO; i < TIERCE_PATH && cpu_at(cpu)->path_length && CAN_LOOP; i++) {
		u32 edge = AT(cpu_at(cpu)->path, cpu_at(cpu)->path_length - 1);
		if (node_is_able(edge_at(edge)->child))
			break;
		cpu_at(cpu)->path_length--;
		edge_cut(edge, cpu, now);
	}
	return 0;
}

/* So much was stolen while the path had the CPU: does one of its edges pay for it, with the charge that follows? */
TIERCE_FN int path_loses(u32 cpu, u64 stolen_ns)
{
	u32 i, pay = ZERO;
	for (i = 1; i < TIERCE_PATH && i < cpu_at(cpu)->path_length; i++)
		pay += policy_lose(AT(cpu_at(cpu)->path, i), stolen_ns);
	return pay != 0;
}

/* The CPU's own time. Returns what its path, of that length, has to pay; `lost`: and for what was stolen. */
static inline u64 cpu_charge(u32 cpu, u64 length, u64 now, u64 stolen_ns, bool *lost)
{
	cpu_t *c = cpu_at(cpu);
	u64 elapsed = now - c->charged_ns;
	stolen_ns += taken_since(cpu, now);
	*lost = false;
	c->paid_ns = c->told_ns;
	if (c->outside || stolen_ns > elapsed)
		stolen_ns = elapsed;
	c->charged_ns = now;
	if (stolen_ns) {
		c->stolen_ns += stolen_ns;
		elapsed -= stolen_ns;
		port_trace(TIERCE_EV_stolen, cpu, c->task, 0, stolen_ns, now);
		*lost = PORT_HAS_PART(servers) && S.loses && path_loses(cpu, stolen_ns);
	}
	if (!length) {
		c->idle_ns += elapsed;
		return 0;
	}
	c->used_ns += elapsed;
	return elapsed;
}

/* The edges of a path, `length` of them left, pay for what its task has received; a root edge has no policy. */
static inline void edges_charge(u32 cpu, u32 length, u64 ran, u64 now)
{
	u32 i; /* upwards: verifiers follow it */
	if (!length || length > TIERCE_PATH)
		return;
	for (i = 1; i < TIERCE_PATH && i < length; i++)
		edge_charge(AT(cpu_at(cpu)->path, length - i), cpu, ran, now);
	edge_at(AT(cpu_at(cpu)->path, 0))->supply_ns += ran;
}

/* Everything up to `now` is accounted for, bottom up. */
TIERCE_FN int path_charge(u32 cpu, u64 now, u64 stolen_ns)
{
	u64 ran;
	bool lost;
	path_lock(cpu);
	if (now == cpu_at(cpu)->charged_ns)
		return 0;
	ran = cpu_charge(cpu, cpu_at(cpu)->path_length, now, stolen_ns, &lost);
	if (!ran && !lost)
		return 0;
	if (cpu_at(cpu)->task)
		node_at(cpu_at(cpu)->task)->ran_ns += ran;
	edges_charge(cpu, cpu_at(cpu)->path_length, ran, now);
	return 0;
}

TIERCE_FN int edge_charge_and_cut(u32 edge, u32 cpu, u64 ran, u64 now)
{
	edge_at(edge)->supply_ns += ran;
	if (edge_at(edge)->parent && policy_charge(edge, ran, now))
		edge_spent(edge, cpu, now);
	return edge_cut(edge, cpu, now);
}

/* The same when what ran has blocked: its path is cut where a node still has something to run. */
TIERCE_FN int path_charge_and_cut(u32 cpu, u64 now)
{
	node_t *child;
	u64 ran, length = cpu_at(cpu)->path_length;
	bool lost;
	path_lock(cpu);
	ran = cpu_charge(cpu, length, now, 0, &lost);
	if (!ran && !(PORT_HAS_PART(servers) && lost))
		return path_cut(cpu, now);
	if (!length || length > TIERCE_PATH) {
		port_fail("graph: path longer than the depth allows");
		return 0;
	}
	child = node_at(edge_at(AT(cpu_at(cpu)->path, length - 1))->child); /* the task */
	child->ran_ns += ran;
	for (; length > 1 && !child->servable; length--) {
		u32 edge = AT(cpu_at(cpu)->path, length - 1);
		edge_t *x = edge_at(edge);
		node_t *n = node_at(parent_held(x));
		__asm__("" : "+r"(ran)); /* what policies make of it is not computed before the loop, and kept on the stack */
		if (x->flags & EDGE_PLAIN) {
			x->supply_ns += ran;
			if (policy_leave(edge, ran, now))
				cpu_at(cpu)->until_ns = 0; /* as edge_spent has it; the edge is counted no more in any case */
			port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_BLOCKED, 0, now);
			x->state = TIERCE_WAITING;
			n->running = TIERCE_NONE;
			if (x->flags & EDGE_COUNTED) {
				x->flags &= ~EDGE_COUNTED;
				n->servable--;
			}
			deadline_follow(edge, now);
		} else {
			cpu_at(cpu)->path_length = (u32)length - 1;
			edge_charge_and_cut(edge, cpu, ran, now);
		}
		child = n;
	}
	__asm__("" : "+r"(length)); /* how the loop ended is not carried along in it */
	cpu_at(cpu)->path_length = (u32)length;
	if (length == 1 && !child->servable) {
		cpu_at(cpu)->path_length = 0;
		return edge_charge_and_cut(AT(cpu_at(cpu)->path, 0), cpu, ran, now);
	}
	edges_charge(cpu, (u32)length, ran, now);
	return 0;
}
