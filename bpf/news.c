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
static inline int tell(u32 kind, u32 id)
{
	struct tierce_news *item = news_of(kind, id);
	if (item)
		bpf_ringbuf_submit(item, BPF_RB_NO_WAKEUP);
	return 0;
}
static inline int tell_thread_as(u32 kind, struct task_struct *p, u32 policy, u32 from)
{
	struct tierce_news *item = news_of(kind, p->pid);
	if (item) {
		item->pid = p->tgid;
		item->is_kthread = (p->flags & PF_KTHREAD) != 0;
		__builtin_memcpy(item->comm, p->comm, sizeof item->comm);
		item->policy = policy;
		item->from = from;
		bpf_ringbuf_submit(item, BPF_RB_NO_WAKEUP);
	}
	return 0;
}
static inline int tell_thread(u32 kind, struct task_struct *p)
{
	return tell_thread_as(kind, p, p->policy, 0);
}
