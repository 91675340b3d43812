/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Leaves of threads: given, taken, freed. */

/* A larger machine has a set of the kernel's as one of ours, in this CPU's for that: interrupts are off. It comes with its address
 * in it: a verifier takes no pointer to the kernel's memory for a number, but from memory. */
static inline u64 set_mine(void)
{
	return SET_NEAR(bpf_get_smp_processor_id(), NEAR_PORT);
}
SET_FN u64 set_read(void)
{
	u64 set = set_mine(), bits = *set_word(set, 0), read = 0;
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++) {
		bpf_probe_read_kernel(&read, sizeof read, (void *)(bits + word * sizeof read));
		*set_word(set, word) = read;
	}
	return set;
}
/* Where the thread may run. */
static inline cpus_t cpus_of(const struct task_struct *p)
{
	u64 volatile *first;
	if (!MANY)
		return p->cpus_ptr->bits[0];
	first = set_word(set_mine(), 0);
	*first = (u64)p->cpus_ptr;
	return set_read();
}
static inline bool thread_fits(const struct task_struct *p, u32 cpu)
{
	return MANY ? bpf_cpumask_test_cpu(cpu, p->cpus_ptr) : p->cpus_ptr->bits[0] >> cpu & 1;
}
/* What a control operation is given of a set; the rest of it is staged. Call with control locked. */
static inline u64 cpus_stage(cpus_t cpus)
{
	u32 word;
	if (!MANY)
		return cpus;
	for (word = ZERO + 1; word < cpus_words() && CAN_LOOP; word++)
		graph_stage(TIERCE_NODE_PARAMS + word, *set_word(cpus, word));
	return *set_word(cpus, 0);
}
/* The thread of the task may run on these CPUs from now on. */
static inline int leaf_allow(u32 leaf, cpus_t cpus, u64 now)
{
	int error;
	if (!MANY)
		return graph_allow(leaf, cpus, now);
	control_lock();
	error = graph_allow(leaf, cpus_stage(cpus), now);
	control_unlock();
	return error;
}

/* What the edge of a thread of that priority below the default node has for its i-th parameter. */
static inline u64 default_param(u32 i, u32 static_prio)
{
	u32 nice = static_prio - 100;
	if (i == SIDE.default_nice && nice < 40)
		return AT(SIDE.nice_weight, nice);
	return AT(SIDE.default_param, i & (TIERCE_PARAMS - 1));
}

/* Several CPUs, and a spread node: tasks move. */
static inline bool tasks_move(void)
{
	return WANTED(several_cpus) && S.families;
}
/* The default node where a thread on that CPU begins. */
static inline u32 default_on(u32 cpu)
{
	u32 node = SIDE.default_node, family = node_at(node)->family, replica;
	if (!tasks_move() || !family || cpu >= TIERCE_CPUS)
		return node;
	replica = replica_on(family, cpu);
	return replica ? replica : node;
}

/* A leaf below the default node, 0 when the pool is used up or none of `cpus` can be reached. */
static inline u32 leaf_new(cpus_t cpus, u32 cpu, u32 static_prio, u64 now)
{
	u32 leaf, edge, i, parent = default_on(cpu);
	control_lock();
	for (i = 0; i < TIERCE_NODE_PARAMS; i++)
		graph_stage(i, 0);
	leaf = graph_node_new(TIERCE_TASK, 1, cpus_stage(cpus));
	if (leaf) {
		edge = graph_edge_new(parent, leaf, 0, node_at(parent)->family ? EDGE_SPREAD : 0);
		for (i = 0; i < TIERCE_PARAMS; i++)
			graph_stage(i, default_param(i, static_prio));
		if (!edge || graph_attach(edge, now)) {
			if (edge)
				graph_detach(edge, now);
			graph_node_free(leaf);
			leaf = TIERCE_NONE;
		}
	}
	if (leaf) {
		leaf_at(leaf)->own = LEAF_DEFAULT;
		leaf_at(leaf)->deadline_ns = SIDE.default_jobs;
		port_trace(TIERCE_EV_attach, 0, edge, leaf, parent, now);
	}
	control_unlock();
	return leaf;
}

#define LIKE_PARENTS 8 /* edges of a leaf that another can have as well */

/* A leaf with edges like those of another one, 0 if it cannot have them. */
static inline u32 leaf_like(u32 like, u64 now)
{
	u32 edge, leaf, copy = TIERCE_NONE, i, n;
	control_lock();
	edge = node_at(like)->first_parent;
	for (i = 0; i < TIERCE_NODE_PARAMS; i++)
		graph_stage(i, 0);
	leaf = edge ? graph_node_new(TIERCE_TASK, 1, cpus_stage(allowed_of(like))) : TIERCE_NONE;
	if (leaf) {
		leaf_at(leaf)->own = LEAF_MEMBER;
		leaf_at(leaf)->deadline_ns = leaf_at(like)->deadline_ns;
	}
	for (n = ZERO; leaf && edge && n < LIKE_PARENTS && CAN_LOOP; n++) {
		for (i = 0; i < TIERCE_PARAMS; i++)
			graph_stage(i, edge_at(edge)->param[i]);
		promise_stage(edge);
		copy = graph_edge_new(edge_at(edge)->parent, leaf, edge_at(edge)->rank,
				      edge_at(edge)->flags & (EDGE_WHEN_SPENT | EDGE_SPREAD));
		if (!copy || graph_attach(copy, now))
			break;
		port_trace(TIERCE_EV_attach, 0, copy, leaf, edge_at(edge)->parent, now);
		edge = edge_at(edge)->next_parent;
		copy = TIERCE_NONE;
	}
	if (leaf && edge) { /* not all of them: the loader takes it apart */
		if (copy)
			graph_detach(copy, now);
		leaf_at(leaf)->dead = 1;
		__sync_fetch_and_add(&SIDE.dead, 1);
		leaf = TIERCE_NONE;
	}
	control_unlock();
	return leaf;
}

/* Give a released leaf back. One that is part of the plan stays. Call with control locked. */
static inline u32 leaf_free_locked(u32 leaf, u64 now)
{
	u32 edge, error = 0;
	edge = node_at(leaf)->first_parent;
	if (edge) {
		error = graph_detach(edge, now);
		if (!error)
			port_trace(TIERCE_EV_detach, 0, edge, leaf, 0, now);
	}
	if (!error)
		error = graph_node_free(leaf); /* refused while there are more parents */
	if (error) {
		leaf_at(leaf)->dead = 1;
		__sync_fetch_and_add(&SIDE.dead, 1);
	} else {
		leaf_at(leaf)->own = LEAF_PLAN;
		leaf_at(leaf)->dead = 0;
	}
	return error;
}
static inline void leaf_free(u32 leaf, u64 now)
{
	if (leaf_at(leaf)->own == LEAF_PLAN)
		return;
	control_lock();
	leaf_free_locked(leaf, now);
	control_unlock();
}

static inline void slot_put(u32 leaf, struct task_struct *p)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &leaf);
	struct task_struct *task = bpf_task_acquire(p);
	if (!task)
		return;
	if (slot)
		task = bpf_kptr_xchg(&slot->task, task);
	if (task)
		bpf_task_release(task);
}
static inline void slot_clear(u32 leaf)
{
	struct slot *slot = bpf_map_lookup_elem(&slots, &leaf);
	struct task_struct *task = slot ? bpf_kptr_xchg(&slot->task, 0) : 0;
	if (task)
		bpf_task_release(task);
}

static inline void leaf_empty(u32 leaf)
{
	u32 user = leaf_at(leaf)->user;
	if (WANTED(inherits))
		lends_no_more(leaf);
	slot_clear(leaf);
	if (user)
		user_loses(user);
	leaf_at(leaf)->user = 0;
	leaf_at(leaf)->custody = CUSTODY_NONE;
	leaf_at(leaf)->pid = 0;
}

/* Under the thread's run queue lock, the thread not queued. */
static inline void thread_leave(struct task_struct *p, struct thread *t, u64 now)
{
	u32 leaf = t->leaf;
	t->leaf = TIERCE_NONE;
	if (!leaf)
		return;
	leaf_empty(leaf);
	leaf_free(leaf, now);
}
/* It dies. */
static inline void thread_end(struct task_struct *p, struct thread *t, u64 now)
{
	u32 next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
	thread_leave(p, t, now);
	if (next && next < TIERCE_NODES)
		leaf_free(next, now);
}
static inline void thread_takes(struct task_struct *p, struct thread *t, u32 leaf)
{
	u32 user;
	t->leaf = leaf;
	if (!leaf)
		return;
	leaf_at(leaf)->pid = p->pid;
	*leaf_guess(p) = leaf;
	leaf_at(leaf)->woke_ns = 0;
	leaf_at(leaf)->moving = 1;
	leaf_at(leaf)->overrun = OVERRUN_NONE;
	leaf_at(leaf)->told = 0;
	if (leaf_at(leaf)->own != LEAF_PLAN) {
		leaf_at(leaf)->job = 0;
		leaf_at(leaf)->misses = 0;
		user = user_of(p);
		leaf_at(leaf)->user = user ? user_gets(user) : 0;
	}
	slot_put(leaf, p);
	if (leaf_at(leaf)->own != LEAF_PLAN)
		name_write(leaf, p, now_ns());
}
/* The plan has a place for it that it cannot have: the loader tells the user why. */
static inline void thread_is_lost(struct task_struct *p, struct thread *t, u32 error)
{
	__sync_fetch_and_add(&SIDE.displaced, 1);
	t->lost = 1;
	tell_thread(NEWS_LOST | error << 8, p);
}
/* To a leaf of the default node. */
static inline void thread_join(struct task_struct *p, struct thread *t, cpus_t cpus, u64 now)
{
	thread_takes(p, t, leaf_new(cpus, cpu_of(p), p->static_prio, now));
}
/* Take the leaf that was asked for meanwhile, if the thread may run where that leads. */
static inline void thread_move(struct task_struct *p, struct thread *t, u64 now)
{
	u32 next, error;
	cpus_t cpus;
	leaf_at(t->leaf)->moving = 0; /* before it is looked at: who sets it from now on says so again */
	next = __sync_lock_test_and_set(&t->next, TIERCE_NONE);
	if (!next)
		return;
	cpus = cpus_of(p);
	if (next == COMMAND_TO_DEFAULT) {
		thread_leave(p, t, now);
		thread_join(p, t, cpus, now);
		return;
	}
	error = leaf_at(next)->pid ? TIERCE_OK : leaf_allow(next, cpus, now);
	if (error || leaf_at(next)->pid) {
		thread_is_lost(p, t, error);
		leaf_free(next, now);
		return;
	}
	thread_leave(p, t, now);
	thread_takes(p, t, next);
}
