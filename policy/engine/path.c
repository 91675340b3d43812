/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Decisions travel downwards: walk the policies' picks, then take the new path. */

/* The head has no use for this CPU now: told off, released in the tree above. */
static inline void head_drop(u32 edge, u64 now)
{
	edge_at(edge)->told = TIERCE_UNTOLD;
	edge_release_here(edge, TIERCE_NO_ROOM, now);
}

/* The edge granted by `node` on `cpu`, if it may go on running. */
static inline u32 node_running(u32 node, u32 cpu)
{
	u32 row = node_at(node)->row, running = row ? ROW(row, running, cpu) : node_at(node)->running;
	return running && (edge_at(running)->flags & EDGE_COUNTED) && edge_at(running)->on_cpu == cpu ? running : TIERCE_NONE;
}

/* May `cpu` go on into the head it reached over `edge`? Otherwise the edge was dropped, and the walk begins again. */
TIERCE_FN int head_enter(u32 edge, u32 cpu, u64 now)
{
	u32 head = edge_at(edge)->child;
	node_t *node = node_at(head);
	u32 row = node->row, hold = ROW(row, hold, cpu), victim;
	if (hold == TIERCE_HOLD_EDGE) {
		if (head_keeps(head, cpu) &&
		    (node->kind == TIERCE_TASK ? node->servable : node_running(head, cpu) || head_has_child(head, cpu)))
			return 1;
	} else if (hold == TIERCE_HOLD_FREE) {
		if (head_room(head, cpu) > 0 && head_has_child(head, cpu))
			return 1;
		victim = edge_at(edge)->flags & EDGE_CROSSING ? head_victim(head, edge, cpu) : TIERCE_CPUS;
		if (victim != TIERCE_CPUS) {
			node->claim_edge = edge;
			node->claim_victim = victim;
			node->claim_kept = 0;
			cpu_at(cpu)->claims++;
			kick(victim);
		}
	}
	head_drop(edge, now);
	return 0;
}

/* One try; 0: a shared head had no use for an edge on the way, which was dropped. */
TIERCE_FN int walk_once(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 length, edge = c->root_edge, node, first, flags;
	node_t *n;
	c->next_length = 0;
	if (!c->online || !edge || !edge_is_servable(edge))
		return 1;
	for (length = ZERO; length < TIERCE_PATH && CAN_LOOP; length++) {
		flags = edge_at(edge)->flags;
		if (edge_is_head(flags)) {
			shared_lock(cpu);
			if (!head_enter(edge, cpu, now))
				return 0;
		}
		AT(cpu_at(cpu)->next, length) = edge;
		node = edge_at(edge)->child;
		n = node_at(node);
		if (n->kind == TIERCE_TASK) {
			c->next_length = length + 1;
			return 1;
		}
		if (flags & EDGE_PLAIN) {
			first = n->order;
			edge = n->running;
			if (!(edge_at(edge)->flags & EDGE_COUNTED))
				edge = TIERCE_NONE;
		} else {
			first = node_first(node, cpu, now);
			edge = node_running(node, cpu);
		}
		if (first && edge)
			edge = policy_pick(node, first, edge, now);
		else
			edge |= first;
		if (!edge) {
			port_fail("graph: an able node picked nothing");
			return 1;
		}
	}
	port_fail("graph: path longer than the depth allows");
	return 1;
}

/* Fill cpu.next with the path that the policies pick now; 0 length: idle. Leaves the tree as it is, except that edges
 * which shared heads have no use for are dropped. */
static inline void walk(u32 cpu, u64 now)
{
	u32 tries;
	for (tries = ZERO; !walk_once(cpu, now) && SHARES && CAN_LOOP; tries++) {
		if (tries > TIERCE_CROSSINGS + TIERCE_PATH) {
			port_fail("graph: crossing edges refused for ever");
			cpu_at(cpu)->next_length = 0;
			break;
		}
		cpu_settle(cpu, now);
	}
}

static inline bool path_same(u32 cpu)
{
	cpu_t *c = cpu_at(cpu);
	u32 i = c->path_length;
	if (i != c->next_length)
		return false;
	/* the last edges first: paths that differ anywhere end at different tasks, or reach one in different ways */
	for (; i > 0 && CAN_LOOP; i--)
		if (AT(cpu_at(cpu)->path, i - 1) != AT(cpu_at(cpu)->next, i - 1))
			return false;
	return true;
}

/* A granted edge loses the CPU: back into the order if the child still wants it and may have it, else out. */
TIERCE_FN int edge_revoke(u32 edge, u32 forced, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 why = TIERCE_OUTRANKED, parent = x->parent, row;
	if (!node_is_able(x->child)) {
		why = TIERCE_BLOCKED;
		x->told = TIERCE_UNTOLD;
	} else if (edge_is_head(x->flags) && !x->told) {
		why = TIERCE_NO_ROOM;
	} else if (x->flags & EDGE_SHUT) {
		why = TIERCE_CLOSED;
	} else if (x->flags & EDGE_SPENT) {
		why = TIERCE_SPENT;
	}
	if (forced)
		why = forced;
	port_trace(TIERCE_EV_revoke, x->on_cpu, edge, why, 0, now);
	x->state = why == TIERCE_OUTRANKED || why == TIERCE_SPENT ? TIERCE_READY : TIERCE_WAITING;
	if (parent) {
		row = SHARES ? node_at(parent)->row : 0; /* the node may run another child by now */
		if (row && ROW(row, running, x->on_cpu) == edge)
			ROW(row, running, x->on_cpu) = TIERCE_NONE;
		if (node_at(parent)->running == edge)
			node_at(parent)->running = TIERCE_NONE;
		policy_revoke(edge, why, now);
	}
	return 0;
}

static inline void edge_grant(u32 edge, u32 cpu, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 parent = x->parent, row;
	node_t *n = node_at(parent);
	port_trace(TIERCE_EV_grant, cpu, edge, x->child, 0, now);
	x->state = TIERCE_GRANTED;
	x->on_cpu = cpu;
	x->grants++;
	if (!parent)
		return;
	order_remove(edge);
	row = SHARES ? n->row : 0;
	if (row) {
		ROW(row, running, cpu) = edge;
		if (n->order)
			work_push(parent); /* another child is first now: it may outrank what runs elsewhere */
	} else {
		n->running = edge;
	}
	policy_grant(edge, now);
}

static inline void task_runs(u32 cpu, u32 task, node_t *n, u32 edge, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	port_trace(TIERCE_EV_decision, cpu, task, edge, c->task, now);
	c->task = task;
	n->switches++;
	if (SEVERAL_CPUS && n->last_cpu != cpu && n->last_cpu != TIERCE_CPUS)
		n->migrations++;
	n->last_cpu = cpu;
	n->on_cpu = cpu;
}
static inline void task_set(u32 cpu, u32 task, u32 edge, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	if (task == c->task)
		return;
	if (task) {
		task_runs(cpu, task, node_at(task), edge, now);
	} else {
		port_trace(TIERCE_EV_decision, cpu, TIERCE_NONE, edge, c->task, now);
		c->task = TIERCE_NONE;
	}
}

/* Take the path in cpu.next: revoke what is not on it, bottom up, then grant what is new, top down. */
TIERCE_FN int commit(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 i, edge, head, taken, same;

	for (same = ZERO; same < TIERCE_PATH && same < c->next_length && same < c->path_length && CAN_LOOP; same++)
		if (AT(cpu_at(cpu)->path, same) != AT(cpu_at(cpu)->next, same))
			break;
	for (i = same; c->path_length > same && i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++)
		edge_at(AT(cpu_at(cpu)->next, i))->flags |= EDGE_NEXT;
	for (i = c->path_length; i > same && i <= TIERCE_PATH && CAN_LOOP; i--) {
		edge = AT(cpu_at(cpu)->path, i - 1);
		if (edge_at(edge)->flags & EDGE_NEXT)
			continue;
		if (edge_at(edge)->flags & EDGE_PLAIN) {
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
			continue;
		}
		head = edge_is_head(edge_at(edge)->flags) ? edge_at(edge)->child : TIERCE_NONE;
		if (head) {
			shared_lock(cpu);
			if (ROW(node_at(head)->row, hold, cpu) == TIERCE_HOLD_EDGE &&
			    ROW(node_at(head)->row, edge, cpu) == edge)
				ROW(node_at(head)->row, hold, cpu) = TIERCE_HOLD_LEAVING;
		}
		if (head || edge_is_inner(edge)) {
			if (c->leaves < TIERCE_PATH)
				AT(cpu_at(cpu)->leave, c->leaves++) = edge;
			else
				port_fail("graph: left before the last path was returned");
		}
		if (edge_is_inner(edge)) {
			/* granted until it is returned, but charged no more: the trace is told now */
			edge_at(edge)->flags |= EDGE_LEFT;
			port_trace(TIERCE_EV_revoke, cpu, edge, TIERCE_OUTRANKED, 0, now);
			edge_count(edge, now);
		} else {
			edge_revoke(edge, 0, now);
			edge_count(edge, now);
			deadline_follow(edge, now);
		}
	}
	for (i = same; i < TIERCE_PATH && i < c->next_length && CAN_LOOP; i++) {
		edge = AT(cpu_at(cpu)->next, i);
		edge_at(edge)->flags &= ~EDGE_NEXT;
		AT(cpu_at(cpu)->path, i) = edge;
		if (edge_at(edge)->state != TIERCE_GRANTED)
			edge_grant(edge, cpu, now);
		if (edge_is_head(edge_at(edge)->flags)) {
			node_t *node;
			row_t *row;
			u32 at;
			head = edge_at(edge)->child;
			node = node_at(head);
			row = row_at(node->row, cpu);
			at = ROW_PLACE(cpu);
			taken = AT(row->hold, at) == TIERCE_HOLD_FREE;
			node->holds += taken;
			AT(row->hold, at) = TIERCE_HOLD_EDGE;
			if (taken || AT(row->edge, at) != edge || node->claim_edge == edge) {
				AT(row->edge, at) = edge;
				if (node->claim_edge == edge) {
					node->claim_edge = TIERCE_NONE;
					node->claim_kept = 0;
					c->claims--;
				}
				work_push(head);
			}
		}
	}
	c->path_length = c->next_length;
	edge = c->path_length ? AT(cpu_at(cpu)->path, c->path_length - 1) : TIERCE_NONE;
	task_set(cpu, edge ? edge_at(edge)->child : TIERCE_NONE, edge, now);
	return 0;
}

/* A plain edge comes onto the path. */
static inline void edge_enter(u32 edge, u32 cpu, u32 length, u64 now)
{
	edge_t *x = edge_at(edge);
	port_trace(TIERCE_EV_grant, cpu, edge, x->child, 0, now);
	x->state = TIERCE_GRANTED;
	x->grants++;
	AT(cpu_at(cpu)->path, length) = edge;
}

/* walk, commit and path_until in one for a CPU whose task has blocked, as far down as the way is plain: what is still
 * granted stays if its nodes pick it again, below that nothing is. 0: walk and commit have to see. */
PORT_ASIDE int descend(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u32 length, edge = c->root_edge, node, first;
	u64 until = TIERCE_NEVER, at;
	edge_t *x;
	node_t *n;
	if (!c->online)
		return 0;
	if (!c->path_length) {
		if (!edge || !edge_is_servable(edge))
			return 0;
		if (!(edge_at(edge)->flags & EDGE_PLAIN) || node_at(edge_at(edge)->child)->kind == TIERCE_TASK)
			return 0;
		edge_enter(edge, cpu, 0, now);
		c->path_length = 1;
	}
	node = edge_at(edge)->child;
	for (length = 1; length < TIERCE_PATH && length < c->path_length; length++) {
		edge = AT(cpu_at(cpu)->path, length);
		first = node_at(node)->order;
		if (!(edge_at(edge)->flags & EDGE_COUNTED) || (first && policy_pick(node, first, edge, now) != edge))
			return 0;
		at = policy_until(edge, now);
		until = at < until ? at : until;
		node = edge_at(edge)->child;
	}
	n = node_at(node);
	for (; length < TIERCE_PATH; length++) {
		edge = n->order;
		if (!edge)
			break;
		x = edge_at(edge);
		if (!(x->flags & EDGE_PLAIN))
			break;
		edge_enter(edge, cpu, length, now);
		n->running = edge;
		order_take(n, edge);
		at = policy_begin(edge, now);
		until = at < until ? at : until;
		node = x->child;
		n = node_at(node);
		if (n->kind == TIERCE_TASK) {
			task_runs(cpu, node, n, AT(cpu_at(cpu)->path, length), now);
			c->path_length = length + 1;
			c->until_ns = until;
			return 1;
		}
	}
	c->path_length = length;
	return 0;
}

/* The CPU was told of heads; whatever it took, it looks no more: whom else do children that still wait outrank? */
static inline void told_declined(u32 cpu)
{
	u32 bit, edge;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && CAN_LOOP; bit++) {
		edge = AT(cpu_at(cpu)->crossing, bit);
		if ((cpu_at(cpu)->drained >> bit & 1) && edge)
			work_push(edge_at(edge)->child);
	}
}

/* A place that was kept for this CPU and that its decision did not take is given up. */
static inline void claims_drop(u32 cpu, u64 now)
{
	u32 bit, edge, head;
	for (bit = ZERO; bit < TIERCE_CROSSINGS && cpu_at(cpu)->claims && CAN_LOOP; bit++) {
		edge = AT(cpu_at(cpu)->crossing, bit);
		if (!edge)
			continue;
		shared_lock(cpu);
		head = edge_at(edge)->child;
		if (node_at(head)->claim_edge != edge || !node_at(head)->claim_kept)
			continue;
		node_at(head)->claim_edge = TIERCE_NONE;
		node_at(head)->claim_kept = 0;
		cpu_at(cpu)->claims--;
		work_push(head);
	}
}
