/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A thread wakes, waits, is taken back, or can no longer use a CPU. */

SEC("struct_ops/select_cpu")
s32 BPF_PROG(tierce_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	u32 leaf, node, cpu = (u32)prev_cpu;
	if (!tasks_move() || p->nr_cpus_allowed == 1 || cpu >= TIERCE_CPUS)
		return prev_cpu; /* the CPU that decides for it takes it from there */
	leaf = leaf_known(p);
	if (WANTED(inherits) && !leaf) { /* who lends its place does not go to another CPU */
		struct thread *t = thread_of(p);
		leaf = t ? t->leaf : TIERCE_NONE;
	}
	node = SIDE.default_node;
	if (leaf) {
		if (!leaf_is_spread(leaf))
			return prev_cpu;
		node = edge_at(node_at(leaf)->first_parent)->parent;
	}
	return node_at(node)->family ? (s32)graph_place(node, cpu, cpus_of(p)) : prev_cpu;
}

/* Does it lead only to a CPU that was taken offline? */
static inline bool leaf_is_cut_off(u32 leaf)
{
	u32 domain;
	if (!WANTED(several_cpus))
		return false;
	domain = node_at(leaf)->domain;
	return domain < TIERCE_CPUS && cpu_is_gone(domain) && !leaf_is_spread(leaf);
}
/* A spread leaf follows its thread to the CPU where it waits. If that is offline, another CPU decides for it: one that has
 * left the graph for good also for threads that may not migrate (dispatch), else not. */
static inline void leaf_follows(u32 leaf, struct task_struct *p, u32 cpu, u64 now)
{
	u32 refuge;
	if (!tasks_move() || !leaf_is_spread(leaf))
		return;
	if (!cpu_at(cpu)->online && (cpu_is_gone(cpu) || !thread_is_bound(p))) {
		u32 replica = edge_at(node_at(leaf)->first_parent)->parent;
		refuge = graph_refuge(replica, cpus_of(p));
		if (refuge >= TIERCE_CPUS && cpu_is_gone(cpu))
			refuge = graph_refuge(replica, cpus_all());
		if (refuge < TIERCE_CPUS)
			cpu = refuge;
	}
	if (node_at(leaf)->domain != cpu)
		graph_home(leaf, cpu, now);
}
/* It waits: an idle CPU may take it. */
static inline void leaf_offered(u32 leaf)
{
	if (tasks_move() && any_idle())
		graph_offer(leaf);
}

/* Threads without a leaf, the pool or their user's share of it being used up, wait beside the graph: in a queue of the CPU on which
 * they woke. A CPU runs them while the graph leaves it idle, and takes them from other CPUs' queues then. Otherwise they get one
 * turn, until the tick, at most every BESIDE_EVERY_NS, so that they do not starve while the graph keeps the rest. */
#define BESIDE(cpu)	(1 + (u64)(cpu))
#define BESIDE_SLICE_NS 1000000
#define BESIDE_EVERY_NS 40000000

static inline bool pool_has_room(void)
{
	return (S.spare_nodes || S.fresh_node < TIERCE_NODES) && (S.spare_edges || S.fresh_edge < TIERCE_EDGES);
}
static inline void beside_waits(struct task_struct *p, struct thread *t, u32 cpu, u64 enq_flags)
{
	if (!t->beside) {
		__sync_fetch_and_add(&SIDE.overflows, 1);
		if (pool_has_room())
			__sync_fetch_and_add(&SIDE.crowded, 1);
	}
	t->beside = 1;
	if ((enq_flags & SCX_ENQ_LAST) || (thread_is_bound(p) && cpu_is_gone(cpu))) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, BESIDE_SLICE_NS, enq_flags);
		port_kick(cpu); /* the kernel has looked there already */
	} else {
		if (!cpu_at(cpu)->online)
			cpu = S.lowest;
		scx_bpf_dsq_insert(p, BESIDE(cpu), BESIDE_SLICE_NS, enq_flags);
		if (WANTED(several_cpus) && cpu_at(cpu)->task)
			cpu = graph_place(SIDE.default_node, cpu, cpus_of(p)); /* an idle one takes it */
		scx_bpf_kick_cpu((s32)cpu, SCX_KICK_IDLE);
	}
}
/* One thread of this CPU's queue; with `any`, the CPU being idle, else one of another's. */
TIERCE_FN int beside_comes(u32 cpu, u32 any, u64 now)
{
	u32 i, came = scx_bpf_dsq_move_to_local(BESIDE(cpu));
	for (i = ZERO; any && !came && i < cpus_here && i < TIERCE_CPUS && CAN_LOOP; i++)
		came = i != cpu && scx_bpf_dsq_nr_queued(BESIDE(i)) > 0 && scx_bpf_dsq_move_to_local(BESIDE(i));
	if (came)
		side_at(cpu)->beside_ns = now + BESIDE_EVERY_NS;
	return came;
}

/* The leaf of a thread that comes to wait with us: the one it has, unless it was given another or cannot run there. */
static inline u32 leaf_settle(struct task_struct *p, u64 now)
{
	struct thread *t = thread_of(p);
	u32 leaf;
	if (!t)
		return TIERCE_NONE;
	leaf = t->leaf;
	if (t->next && !(leaf && node_at(leaf)->servable))
		thread_move(p, t, now);
	leaf = t->leaf;
	if (leaf && leaf_is_cut_off(leaf)) {
		if (node_at(leaf)->servable)
			graph_release(leaf, TIERCE_MOVED, now);
		__sync_fetch_and_add(&SIDE.displaced, 1);
		thread_leave(p, t, now);
		leaf = TIERCE_NONE;
	}
	if (!leaf && pool_has_room() && user_has_room(user_of(p))) {
		thread_join(p, t, cpus_of(p), now);
		leaf = t->leaf;
	}
	if (leaf)
		*leaf_guess(p) = leaf;
	return leaf;
}

/* Its affinity has changed while it ran here: the kernel moves it as soon as the CPU lets go of it. */
static inline bool thread_leaves(struct task_struct *p, u32 cpu)
{
	return !thread_fits(p, cpu) && !thread_is_bound(p);
}

/* Could a thread that wakes come in without a kick? If a thread of its CPU wakes it. An interrupt is charged when it ends: what it wakes
 * waits for that. A decision that leaves shared edges waits until the thread is off the CPU. */
static inline bool wakes_here(u32 cpu)
{
	struct tierce_cpu_side *side = side_at(cpu);
	if (bpf_get_smp_processor_id() != cpu)
		return false;
	if (side->irq_ns || side->softirq_ns || side->decided_ns || side->blocked || cpu_is_frozen(cpu) || side->away ||
	    SIDE.overflows)
		return false;
	if (WANTED(throttle_at_user) || cpu_at(cpu)->outside || (PORT_HAS_PART(shared) && cpu_at(cpu)->crossings))
		return false;
	return true;
}
TIERCE_FN int wake_decided(u32 cpu, u64 now)
{
	struct tierce_cpu_side *side = side_at(cpu);
	side->awaits = TIERCE_NONE;
	side->strays = 0;
	side->decided_ns = now;
	side->wakes++;
	arm(cpu, now, side->switch_ns);
	return 0;
}
/* It is requested, and the CPU has to decide anew: if for this thread, it comes in at once. A kick would be an interrupt (irq_work) and
 * one entry more. The thread that ran until now comes to wait with us as usual. */
static inline bool wakes_first(struct task_struct *p, u32 cpu, u32 leaf, u64 now)
{
	if (graph_decide(cpu, 0, now, 0) != leaf)
		return false;
	leaf_at(leaf)->custody = CUSTODY_NONE;
	wake_decided(cpu, now);
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, SCX_ENQ_WAKEUP | SCX_ENQ_PREEMPT);
	return true;
}

SEC("struct_ops/enqueue")
void BPF_PROG(tierce_enqueue, struct task_struct *p, u64 enq_flags)
{
	u32 cpu = cpu_of(p), leaf, runs;
	struct thread *t;
	u64 now;

	if (thread_is_pinned(p)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		if (enq_flags & SCX_ENQ_LAST) /* the kernel has looked there already */
			port_kick(cpu);
		return;
	}
	if (cpu >= TIERCE_CPUS)
		return;
	if (WANTED(inherits)) {
		thread_wakes(p, enq_flags);
		cpu = cpu_of(p); /* read anew, it takes less stack */
	}
	leaf = leaf_known(p);
	now = now_ns();
	if (!leaf || leaf_at(leaf)->moving || leaf_is_cut_off(leaf))
		leaf = leaf_settle(p, now);
	if (!leaf) {
		t = thread_of(p);
		if (t)
			beside_waits(p, t, cpu, enq_flags);
		return;
	}
	leaf_follows(leaf, p, cpu, now);
	leaf_at(leaf)->custody = thread_is_bound(p) ? CUSTODY_BOUND : CUSTODY_FREE;
	if (cpu_has_left(cpu, leaf)) {
		side_at(cpu)->left = TIERCE_NONE;
		graph_returned(cpu, now);
	}
	if (!node_at(leaf)->servable) {
		if (leaf_is_spread(leaf) && thread_leaves(p, cpu))
			return; /* it is requested where the kernel puts it next: this CPU would decide for what it cannot run */
		if ((enq_flags & SCX_ENQ_WAKEUP) && !waits_for_lock(p))
			job_begin(leaf, now);
		/* For a wake-up the kernel itself asks a CPU that runs its idle thread for a decision, before it unlocks the run queue. */
		if ((enq_flags & SCX_ENQ_WAKEUP) && node_at(leaf)->domain == cpu)
			side_at(cpu)->blocking = side_at(cpu)->idle ? DECISION_COMES : wakes_here(cpu) ? DECIDES_ITSELF : 0;
		graph_request(leaf, TIERCE_WOKE, now);
		/* Whoever has asked for a decision and is not seen here has seen that it is not blocked, and kicks. */
		if (__sync_lock_test_and_set(&side_at(cpu)->blocking, 0) == DECIDES_ITSELF && cpu_at(cpu)->kick_pending) {
			if (wakes_first(p, cpu, leaf, now))
				return;
			port_kick(cpu);
		}
		if (WANTED(throttle_at_user) && leaf_overruns(leaf, cpu, p, enq_flags & SCX_ENQ_WAKEUP)) {
			leaf_at(leaf)->custody = CUSTODY_NONE;
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD | SCX_ENQ_PREEMPT);
		} else {
			leaf_offered(leaf);
		}
		return;
	}
	if (WANTED(throttle_at_user) && leaf_overruns(leaf, cpu, p, false)) {
		leaf_at(leaf)->custody = CUSTODY_NONE;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags | SCX_ENQ_HEAD);
		return;
	}
	leaf_offered(leaf);
	runs = node_at(leaf)->on_cpu; /* decided for before it was in custody? */
	if (runs < S.cpus && cpu_at(runs)->task == leaf && (runs != cpu || side_at(cpu)->awaits == leaf))
		port_kick(runs);
	else if (WANTED(inherits))
		leaf_comes(leaf, enq_flags & SCX_ENQ_WAKEUP);
}

SEC("struct_ops/dequeue")
void BPF_PROG(tierce_dequeue, struct task_struct *p, u64 deq_flags)
{
	struct thread *t = thread_of(p);
	if (t)
		leaf_at(t->leaf)->custody = CUSTODY_NONE;
}

SEC("struct_ops/quiescent")
void BPF_PROG(tierce_quiescent, struct task_struct *p, u64 deq_flags)
{
	u32 cpu = cpu_of(p), leaf;
	struct thread *t;
	bool sleeps;
	u64 now;
	if (cpu >= TIERCE_CPUS)
		return;
	leaf = cpu_at(cpu)->task;
	if (!leaf || leaf_at(leaf)->pid != (u32)p->pid) { /* not what runs there */
		t = thread_of(p);
		leaf = t ? t->leaf : TIERCE_NONE;
		if (!leaf)
			return;
	}
	leaf_at(leaf)->custody = CUSTODY_NONE;
	sleeps = deq_flags & SCX_DEQ_SLEEP;
	if (WANTED(inherits) && sleeps && !cpu_is_frozen(cpu) && thread_lends(p, leaf, cpu))
		return;
	if (sleeps && cpu_at(cpu)->task == leaf && node_at(leaf)->domain == cpu && !cpu_has_left(cpu, leaf) &&
	    !leaf_at(leaf)->moving && !cpu_is_frozen(cpu) && !(p->__state & TASK_DEAD)) {
		if (leaf_at(leaf)->woke_ns && !waits_for_lock(p))
			job_end(leaf, now_ns());
		side_at(cpu)->blocked = leaf; /* the decision that follows at once releases it */
		return;
	}
	if (!sleeps && cpu_is_frozen(cpu))
		return;
	now = now_ns();
	if (cpu_has_left(cpu, leaf)) {
		side_at(cpu)->left = TIERCE_NONE;
		graph_returned(cpu, now);
	}
	if (sleeps && !waits_for_lock(p))
		job_end(leaf, now);
	if (node_at(leaf)->servable) {
		side_at(cpu)->blocking = cpu_at(cpu)->task == leaf && sleeps;
		graph_release(leaf, sleeps ? TIERCE_BLOCKED : TIERCE_MOVED, now);
		side_at(cpu)->blocking = 0;
	}
	if (sleeps && (p->__state & TASK_DEAD)) {
		t = thread_of(p);
		if (t)
			thread_end(p, t, now);
	} else if (leaf_at(leaf)->moving) {
		t = thread_of(p);
		if (t)
			thread_move(p, t, now);
	}
}

TIERCE_FN int kick_counts(u32 cpu, int vain)
{
	side_at(cpu)->kicks++;
	side_at(cpu)->vain_kicks += vain;
	return 0;
}
