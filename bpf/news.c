/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* News for the loader, which knows what a thread matches. */

static inline struct tierce_news *news_of(u32 kind, u32 id)
{
	struct tierce_news *item = bpf_ringbuf_reserve(&news, sizeof *item, 0);
	if (!item) {
		__sync_fetch_and_add(&SIDE.missed, 1);
		return 0;
	}
	item->kind = kind;
	item->id = id;
	return item;
}
/* A CPU came or went. */
static inline void tell_cpu(u32 cpu)
{
	struct tierce_news *item = news_of(NEWS_CPU, cpu);
	if (item)
		bpf_ringbuf_submit(item, BPF_RB_NO_WAKEUP);
}
OWN_FRAME bool tell_thread_of(u32 kind, struct task_struct *p, u32 policy, u32 from, u32 leaf)
{
	struct tierce_news *item = news_of(kind, p->pid);
	if (item) {
		item->leaf = leaf;
		item->user = user_of(p);
		item->pid = p->tgid;
		item->is_kthread = (p->flags & PF_KTHREAD) != 0;
		__builtin_memcpy(item->comm, p->comm, sizeof item->comm);
		item->policy = policy;
		item->from = from;
		bpf_ringbuf_submit(item, BPF_RB_NO_WAKEUP);
	}
	return item;
}
static inline int tell_thread_as(u32 kind, struct task_struct *p, u32 policy, u32 from)
{
	tell_thread_of(kind, p, policy, from, TIERCE_NONE);
	return 0;
}
static inline int tell_thread(u32 kind, struct task_struct *p)
{
	return tell_thread_as(kind, p, p->policy, 0);
}
/* Something that can change again and again: the loader is told once, until it looks at the thread. So no thread
 * with a leaf fills the ring. */
static inline int tell_change(u32 kind, struct task_struct *p)
{
	struct thread *t = thread_of(p);
	u32 leaf = t ? t->leaf : TIERCE_NONE;
	if (leaf && __sync_fetch_and_add(&leaf_at(leaf)->told, 1))
		return 0;
	if (!tell_thread_of(kind, p, p->policy, 0, leaf) && leaf)
		leaf_at(leaf)->told = 0;
	return 0;
}
