/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What may change the match of a thread is told to the loader: it is new, has another program, name, class or cgroup. */

/* Who comes from a member of a set is one, too, before anybody has looked: nearly always it matches the same. */
SEC("tp_btf/task_newtask")
int BPF_PROG(tierce_newtask, struct task_struct *p, u64 clone_flags)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct thread *from = thread_of(parent), *t = thread_of(p);
	u32 like = from ? from->leaf : TIERCE_NONE, leaf = TIERCE_NONE;
	unsigned long flags;
	if (t && like && leaf_at(like)->own == LEAF_MEMBER && !from->next && p->cgroups == parent->cgroups && SIDE.ready &&
	    pool_has_room() && user_has_room(user_of(p))) {
		bpf_local_irq_save(&flags);
		leaf = leaf_like(like, now_ns());
		if (leaf && __sync_val_compare_and_swap(&t->next, TIERCE_NONE, leaf)) { /* the loader has seen it already */
			leaf_drop(leaf);
			leaf = TIERCE_NONE;
		}
		bpf_local_irq_restore(&flags);
	}
	return tell_thread_as(NEWS_THREAD | leaf << 8, p, p->policy, parent->pid);
}
SEC("tp_btf/sched_process_exec")
int BPF_PROG(tierce_exec, struct task_struct *p)
{
	return tell_change(NEWS_EXEC, p);
}
/* When it has its new name: the tracepoint of that comes before. */
SEC("fexit/__set_task_comm")
int BPF_PROG(tierce_rename, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	if (t && t->leaf && leaf_at(t->leaf)->own != LEAF_PLAN)
		name_write(t->leaf, p, now_ns());
	return tell_change(NEWS_NAME, p);
}

/* Somebody has set its class or its real-time priority; what the loader does to have a thread pass through here changes neither. */
SEC("fexit/__sched_setscheduler")
int BPF_PROG(tierce_class, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	u32 class = p->policy << 8 | p->rt_priority;
	if (!t || t->class == class)
		return 0;
	t->class = class;
	return tell_change(NEWS_THREAD, p);
}

/* After it has moved; a whole process, if it is one. */
SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(tierce_cgroup, struct cgroup *group, const char *path, struct task_struct *p, bool process)
{
	return process ? tell_thread(NEWS_PROCESS, p) : tell_change(NEWS_THREAD, p);
}
