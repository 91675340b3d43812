/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* News for the loader, which knows what a thread matches. */

/* Who answers for a thread: its user. In user namespaces a user has many numbers; there it is who made the outermost of them, unless
 * that is root. */
#define NAMESPACES 33 /* of which one can lie inside another */
static inline u32 user_of(const struct task_struct *p)
{
	const struct cred *cred = BPF_CORE_READ(p, real_cred);
	const struct user_namespace *inner = BPF_CORE_READ(cred, user_ns);
	u32 i, owner, level = BPF_CORE_READ(inner, level);
	for (i = ZERO; level > 1 && i < NAMESPACES && CAN_LOOP; i++) {
		inner = BPF_CORE_READ(inner, parent);
		level--;
	}
	owner = level ? BPF_CORE_READ(inner, owner.val) : 0;
	return owner ? owner : BPF_CORE_READ(cred, uid.val);
}

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
static inline int tell_thread_as(u32 kind, struct task_struct *p, u32 policy, u32 from)
{
	struct tierce_news *item = news_of(kind, p->pid);
	if (item) {
		item->user = user_of(p);
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
