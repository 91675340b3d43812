/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Jobs of threads: from a wake-up to the next voluntary block. A job that waits for a lock goes on, where that is known. */

static inline bool waits_for_lock(struct task_struct *p)
{
	struct thread *t = WANTED(watch_locks) ? thread_of(p) : 0;
	return t && t->waits;
}

static inline void job_begin(u32 leaf, u64 now)
{
	u64 relative = leaf_at(leaf)->deadline_ns, deadline = TIERCE_NEVER;
	if (!relative)
		return;
	if (relative != TIERCE_NEVER)
		deadline = now + relative;
	if (relative != TIERCE_NEVER || TRACES(TIERCE_EV_job_complete)) /* else nobody asks when it ends */
		leaf_at(leaf)->woke_ns = now;
	leaf_at(leaf)->job++;
	port_trace(TIERCE_EV_job_release, node_at(leaf)->last_cpu, leaf, leaf_at(leaf)->job, deadline, now);
	if (deadline != TIERCE_NEVER && policy_heeds_deadlines(edge_at(node_at(leaf)->first_parent)->kind))
		graph_announce(leaf, deadline, now);
}
static inline void job_end(u32 leaf, u64 now)
{
	u64 relative = leaf_at(leaf)->deadline_ns, woke = leaf_at(leaf)->woke_ns;
	u32 job = leaf_at(leaf)->job;
	if (!woke)
		return;
	leaf_at(leaf)->woke_ns = 0;
	if (relative != TIERCE_NEVER && now > woke + relative) {
		leaf_at(leaf)->misses++;
		port_trace(TIERCE_EV_miss, node_at(leaf)->last_cpu, leaf, job, woke + relative, now);
	}
	port_trace(TIERCE_EV_job_complete, node_at(leaf)->last_cpu, leaf, job, now - woke, now);
}
