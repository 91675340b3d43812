/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* A CPU asks what to run; who comes in at a context switch. */

SEC("struct_ops/dispatch")
void BPF_PROG(tierce_dispatch, s32 on, struct task_struct *prev)
{
	struct thread *t;
	u32 cpu = on, leaf, runs, was = TIERCE_NONE, blocked, kicked, waits_on, key;
	struct task_struct *task;
	struct slot *slot;
	bool fits, leaving = false;
	u64 now;

	if (cpu >= TIERCE_CPUS || (PORT_HAS_PART(shared) && side_at(cpu)->left) || cpu_is_gone(cpu))
		return;
	now = now_ns();
	if (side_at(cpu)->interrupted_ns) {
		if (cpu_is_frozen(cpu))
			cpu_thaws(cpu, now);
		interrupted_until(cpu, now);
	}
	if (WANTED(several_cpus) && side_at(cpu)->away) {
		cpu_comes(cpu, now);
		if (cpu_is_gone(cpu))
			return;
	}
	side_at(cpu)->dispatches++;
	side_at(cpu)->strays = 0;
	side_at(cpu)->awaits = TIERCE_NONE;
	if (SIDE.overflows && now >= side_at(cpu)->beside_ns && beside_comes(cpu, 0, now))
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		t = thread_of(prev);
		was = t ? t->leaf : TIERCE_NONE;
		if (WANTED(throttle_at_user) && was && cpu_overruns(cpu, was, prev, now)) {
			slice_set(prev, SCX_SLICE_INF);
			arm(cpu, now, 0);
			return;
		}
	}
	if (WANTED(throttle_at_user))
		side_at(cpu)->overrun = 0;
	blocked = side_at(cpu)->blocked;
	side_at(cpu)->blocked = TIERCE_NONE;
	if (WANTED(inherits) && !blocked && cpu_at(cpu)->task && !leaf_runs(cpu_at(cpu)->task, cpu)) {
		blocked = cpu_at(cpu)->task; /* who ran in its place sleeps */
		lends_no_more(blocked);
	}
	kicked = WANTED(count_contention) ? cpu_at(cpu)->kick_pending : 0;
	leaf = graph_decide(cpu, blocked, now, 0);
	if (!leaf && tasks_move() && !cpu_at(cpu)->leaves && graph_pull(cpu, now))
		leaf = graph_decide(cpu, 0, now, 0);
	runs = leaf_runs(leaf, cpu);
	if (WANTED(count_contention) && kicked)
		kick_counts(cpu, runs == was);
	if (PORT_HAS_PART(shared) && cpu_at(cpu)->leaves) {
		if (was && was != runs)
			side_at(cpu)->left = was;
		else
			graph_returned(cpu, now);
	}
	if (leaf && !runs) {
		leaf_sleeps(leaf, now);
		port_kick(cpu);
		return;
	}
	side_at(cpu)->decided_ns = leaf && runs != was ? now : 0;
	arm(cpu, now, runs != was ? side_at(cpu)->switch_ns : 0);
	if (!leaf) {
		if (SIDE.overflows)
			beside_comes(cpu, 1, now);
		return;
	}
	if (runs == was) {
		slice_set(prev, SCX_SLICE_INF);
		if (cpu_at(cpu)->outside && !cpu_is_frozen(cpu))
			cpu_outside(cpu, 0, now);
		side_at(cpu)->keeps++;
		return;
	}
	if (!leaf_at(runs)->custody) {
		if (leaf >= TIERCE_NODES)
			port_fail("a task that does not exist was decided for");
		side_at(cpu)->misses++;
		if (leaf_at(leaf)->moving == LEAF_UNSEEN) { /* its thread died between two objects */
			leaf_sleeps(leaf, now);
			port_kick(cpu);
			return;
		}
		side_at(cpu)->awaits = leaf;
		return;
	}
	key = runs; /* the leaf itself need not be in memory */
	slot = bpf_map_lookup_elem(&slots, &key);
	if (!slot)
		return;
	task = slot->task;
	if (task) {
		scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
		if (!WANTED(several_cpus)) {
			leaf_at(runs)->custody = CUSTODY_NONE;
			return;
		}
		/* Looked at after the insertion, which the kernel ignores if the thread is queued anew from here on. One that
		 * is just going off another CPU may look fit and then not be (programs that run there keep it from
		 * migrating, and the kernel ends a scheduler that tries): wait for it. */
		waits_on = cpu_of(task);
		fits = waits_on == cpu;
		leaving = !fits && task->on_cpu;
		if (!fits && !leaving)
			fits = !task->migration_disabled && thread_fits(task, cpu);
		if (fits) {
			leaf_at(runs)->custody = CUSTODY_NONE;
			/* A CPU that goes offline does so when nothing is queued there any more. It has to look itself. */
			if (waits_on < TIERCE_CPUS && !cpu_at(waits_on)->online)
				port_kick(waits_on);
		} else {
			side_at(cpu)->misses++;
			scx_bpf_dispatch_cancel();
			/* It cannot leave a CPU that no longer asks: let it go on there. */
			if (task->migration_disabled && waits_on < TIERCE_CPUS && cpu_is_gone(waits_on)) {
				leaf_at(runs)->custody = CUSTODY_NONE;
				scx_bpf_dsq_insert(task, SCX_DSQ_LOCAL_ON | waits_on, BESIDE_SLICE_NS, 0);
			}
		}
	}
	if (leaving)
		port_kick(cpu);
}

SEC("struct_ops/tick")
void BPF_PROG(tierce_tick, struct task_struct *p)
{
	u32 cpu = bpf_get_smp_processor_id();
	if (SIDE.overflows && cpu < TIERCE_CPUS && !cpu_at(cpu)->outside && now_ns() >= side_at(cpu)->beside_ns &&
	    scx_bpf_dsq_nr_queued(BESIDE(cpu)) > 0)
		slice_set(p, 0);
}

#define OUTSIDE_SCHEDULER 3 /* value of its record: the scheduler has had the CPU, `a` is a task and runs from here on */

/* Does the thread come in that the graph has decided for, with nothing else to be looked at? Nearly always. */
static inline bool switch_is_plain(u32 cpu, struct task_struct *next)
{
	u32 task = cpu_at(cpu)->task, pid = (u32)next->pid;
	if (!pid || !task || leaf_at(leaf_runs(task, cpu))->pid != pid || next->prio < MAX_RT_PRIO)
		return false;
	if (cpu_at(cpu)->outside || side_at(cpu)->blocked || side_at(cpu)->idle)
		return false;
	if (WANTED(several_cpus) && (cpu_is_gone(cpu) || side_at(cpu)->away_at_ns || side_at(cpu)->away))
		return false;
	return true;
}
/* It runs from here on. */
static inline void switch_done(u32 cpu)
{
	if (!side_at(cpu)->decided_ns)
		return;
	if (TRACES(TIERCE_EV_outside))
		port_trace(TIERCE_EV_outside, cpu, cpu_at(cpu)->task, 0, OUTSIDE_SCHEDULER, now_ns());
	if (KNOWN_BIT(overheads_stolen, 0))
		switch_count(cpu);
}

/* Who comes in: the task of the graph, somebody else, or nobody (idle)? */
SEC("tp_btf/sched_switch")
int BPF_PROG(tierce_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	u32 cpu = bpf_get_smp_processor_id(), outside = 0, stray = 0, above = 0, task;
	struct thread *t;
	u64 now;
	if (cpu >= TIERCE_CPUS || !SIDE.ready)
		return 0;
	if (switch_is_plain(cpu, next)) {
		switch_done(cpu);
		if (cpu_at(cpu)->kick_pending)
			port_kick(cpu); /* the kick found somebody it could not preempt */
		return 0;
	}
	if (side_at(cpu)->idle != !next->pid)
		side_at(cpu)->idle = !next->pid;
	if (cpu_is_frozen(cpu))
		return 0;
	task = side_at(cpu)->blocked;
	if (task) { /* and nobody was asked for a decision: somebody waited in the CPU's queue, or is in a class above */
		side_at(cpu)->blocked = TIERCE_NONE;
		side_at(cpu)->blocking = DECISION_COMES;
		graph_release(task, TIERCE_BLOCKED, now_ns());
		side_at(cpu)->blocking = 0;
	}
	/* A CPU on its way out or in is left alone: kicks and timers are queued on the CPU itself, and would stay there. But
	 * whoever uses up its slice alone is queued there by the kernel, which then looks at the queue no more. */
	if (cpu_is_gone(cpu)) {
		if (!next->pid && prev->pid && (preempt || !prev->__state))
			port_kick(cpu);
		return 0;
	}
	if (next->pid) {
		above = next->prio < MAX_RT_PRIO;
		if (above || thread_is_pinned(next)) {
			outside = 1;
		} else {
			task = cpu_at(cpu)->task;
			stray = !task || leaf_at(leaf_runs(task, cpu))->pid != (u32)next->pid;
			outside = stray;
			if (WANTED(throttle_at_user) && stray) {
				t = thread_of(next);
				if (t && leaf_at(t->leaf)->overrun == OVERRUN_RUNS && node_at(t->leaf)->domain == cpu) {
					stray = 0;
					outside = 1 + t->leaf;
				}
			}
			if (!outside)
				switch_done(cpu);
		}
	}
	if (outside != cpu_at(cpu)->outside ||
	    (WANTED(several_cpus) && !above && (side_at(cpu)->away_at_ns || side_at(cpu)->away))) {
		now = now_ns();
		if (above && WANTED(several_cpus) && cpu_at(cpu)->task)
			side_at(cpu)->away_at_ns = now + AWAY_NS;
		else if (!above)
			cpu_comes(cpu, now); /* or goes */
		if (cpu_is_gone(cpu))
			return 0;
		if (outside != cpu_at(cpu)->outside)
			cpu_outside(cpu, outside, now);
		arm(cpu, now, 0);
	}
	if (stray && !side_at(cpu)->strays) { /* ask for a decision, once, if it is not outside for good */
		t = thread_of(next);
		if (t && t->leaf) {
			side_at(cpu)->strays = 1;
			port_kick(cpu);
		}
	} else if (!outside && cpu_at(cpu)->kick_pending) {
		port_kick(cpu);
	}
	return 0;
}
