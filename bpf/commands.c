/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Control operations, as the loader calls them. */

static inline u64 command_leaf(struct tierce_command *c)
{
	struct task_struct *p = bpf_task_from_pid((s32)c->pid);
	struct thread *t;
	u64 result = COMMAND_NO_THREAD;
	unsigned long flags;
	u32 before;
	if (!p)
		return COMMAND_NO_THREAD;
	t = thread_of(p);
	if (t && (!c->a || (c->a < TIERCE_NODES && node_at(c->a)->kind == TIERCE_TASK))) {
		bpf_local_irq_save(&flags);
		if (c->a && c->b && !t->leaf && !user_has_room(user_of(p))) {
			bpf_local_irq_restore(&flags);
			bpf_task_release(p);
			return COMMAND_NO_ROOM;
		}
		if (c->a)
			leaf_at(c->a)->own = c->b ? LEAF_MEMBER : LEAF_PLAN;
		before = __sync_lock_test_and_set(&t->next, c->a ? c->a : COMMAND_TO_DEFAULT);
		if (before && before < TIERCE_NODES)
			leaf_free(before, now_ns());
		leaf_at(t->leaf)->moving = 1;
		/* if it dies, who is first takes that back: its end, or this */
		if ((p->flags & PF_EXITING) && c->a && c->b && __sync_val_compare_and_swap(&t->next, c->a, TIERCE_NONE) == c->a)
			leaf_at(c->a)->own = LEAF_PLAN;
		else
			result = 0;
		bpf_local_irq_restore(&flags);
	}
	bpf_task_release(p);
	return result;
}

static inline u64 command_free(struct tierce_command *c)
{
	if (bpf_ksym_exists(bpf_arena_free_pages))
		bpf_arena_free_pages(&arena, (void ARENA *)c->value, c->a);
	return 0;
}

/* Does the edge still lead to this leaf of a member of a set? Its thread may have died, and both have been given again. */
static inline bool edge_is_members(u32 edge, u32 leaf)
{
	return edge < TIERCE_EDGES && leaf < TIERCE_NODES && edge_at(edge)->child == leaf && leaf_at(leaf)->own == LEAF_MEMBER;
}

SEC("syscall")
int control(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = now_ns(), result = TIERCE_E_no_such_node;
	u32 i, child;

	switch (c->op) {
	case COMMAND_LEAF: c->result = command_leaf(c); return 0;
	case COMMAND_ADOPT: c->result = command_adopt(c); return 0;
	case COMMAND_BURY: c->result = command_bury(c); return 0;
	case COMMAND_FREE: c->result = command_free(c); return 0;
	}
	bpf_local_irq_save(&flags);
	control_lock();
	for (i = 0; i < TIERCE_NODE_PARAMS && c->op != TIERCE_OP_init; i++)
		graph_stage(i, c->param[i]);
	if (MANY && c->op == TIERCE_OP_node_new)
		for (i = 1; i < TIERCE_WORDS; i++)
			graph_stage(TIERCE_NODE_PARAMS + i, c->cpus[i - 1]);
	switch (c->op) {
	case TIERCE_OP_init:
		result = graph_init(c->a, now);
		S.floor_ns = c->value;
		break;
	case TIERCE_OP_node_new: result = graph_node_new(c->a, c->b, c->value); break;
	case TIERCE_OP_node_set: result = graph_node_set(c->a, now); break;
	case TIERCE_OP_node_free: result = graph_node_free(c->a); break;
	case TIERCE_OP_edge_new: result = graph_edge_new(c->a, c->b, (s32)c->value, c->value >> 32); break;
	case TIERCE_OP_attach:
		result = graph_attach(c->a, now);
		if (!result && SIDE.ready && c->a < TIERCE_EDGES)
			port_trace(TIERCE_EV_attach, 0, c->a, edge_at(c->a)->child, edge_at(c->a)->parent, now);
		break;
	case TIERCE_OP_set:
		if (!c->b || edge_is_members(c->a, c->b))
			result = graph_set(c->a, now);
		break;
	case TIERCE_OP_detach:
		child = c->a < TIERCE_EDGES ? edge_at(c->a)->child : TIERCE_NONE;
		result = graph_detach(c->a, now);
		if (!result && SIDE.ready)
			port_trace(TIERCE_EV_detach, 0, c->a, child, 0, now);
		break;
	case TIERCE_OP_root: result = graph_root(c->a, c->b, now); break;
	case TIERCE_OP_tell: /* the deadline is given from now on */
		graph_stage(1, now + c->param[1]);
		result = graph_tell(c->a, c->b, now);
		break;
	case TIERCE_OP_replica: result = graph_replica(c->a, c->b); break;
	case COMMAND_NEAR: result = graph_near(c->a, c->b, c->param[0], c->param[1], c->param[2]); break;
	case COMMAND_DEFAULT:
		SIDE.default_node = c->a;
		for (i = 0; i < TIERCE_PARAMS; i++)
			AT(SIDE.default_param, i) = c->param[i];
		SIDE.default_nice = c->b;
		result = 0;
		break;
	case COMMAND_KEEP:
		SIDE.ready = c->a ? READY_KEEPS : 1;
		result = 0;
		break;
	case COMMAND_FREEZE:
		SIDE.ready = 0;
		for (i = ZERO; i < cpus_here && i < TIERCE_CPUS && CAN_LOOP; i++) {
			side_at(i)->frozen = 1;
			graph_outside(i, 1, now);
		}
		result = 0;
		break;
	case COMMAND_REAP:
		if (c->a < TIERCE_NODES && (leaf_at(c->a)->dead || (c->b && !leaf_at(c->a)->pid)))
			result = leaf_free_locked(c->a, now);
		break;
	}
	control_unlock();
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}

/* Entries on the caller's clock (`value`), for tests of the loaded engine: nothing may be attached. */
SEC("syscall")
int exercise(struct tierce_command *c)
{
	unsigned long flags;
	u64 now = c->value, result = 0;
	if (SIDE.ready)
		return 0;
	bpf_local_irq_save(&flags);
	switch (c->op) {
	case TIERCE_OP_request: result = graph_request(c->a, c->b, now); break;
	case TIERCE_OP_release: result = graph_release(c->a, c->b, now); break;
	case TIERCE_OP_announce: result = graph_announce(c->a, c->param[0], now); break;
	case TIERCE_OP_decide: result = graph_decide(c->a, 0, now, 0); break;
	case TIERCE_OP_event: result = graph_event(c->a, now, 0); break;
	case TIERCE_OP_returned: result = graph_returned(c->a, now); break;
	case TIERCE_OP_outside: result = graph_outside(c->a, c->b, now); break;
	}
	bpf_local_irq_restore(&flags);
	c->result = result;
	return 0;
}
