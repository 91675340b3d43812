/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Functions of the kernel, and small questions about its structures. */

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
void scx_bpf_dispatch_cancel(void) __ksym;
u32 scx_bpf_reenqueue_local(void) __ksym;
bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice) __ksym __weak;
const struct cpumask *scx_bpf_get_online_cpumask(void) __ksym;
void scx_bpf_put_cpumask(const struct cpumask *mask) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
struct task_struct *bpf_task_from_vpid(s32 pid) __ksym __weak; /* by its number in the namespace of who runs */
void bpf_rcu_read_lock(void) __ksym;
void bpf_rcu_read_unlock(void) __ksym;
void bpf_arena_free_pages(void *map, void ARENA *pages, u32 count) __ksym __weak;
void bpf_task_release(struct task_struct *p) __ksym;
void bpf_local_irq_save(unsigned long *flags) __ksym;
void bpf_local_irq_restore(unsigned long *flags) __ksym;
int bpf_task_work_schedule_resume(struct task_struct *p, struct bpf_task_work *work, void *map__map,
				  bpf_task_work_callback_t callback) __ksym __weak;
extern struct pt_regs *__irq_regs __ksym __weak;

static inline u64 now_ns(void)
{
	return bpf_ktime_get_ns();
}
/* Where it runs, ran last, or is about to wait. */
static inline u32 cpu_of(const struct task_struct *p)
{
	return p->thread_info.cpu;
}
static inline struct thread *thread_of(struct task_struct *p)
{
	return bpf_task_storage_get(&threads, p, 0, 0);
}
/* Its leaf, if that is known without a look into its storage: nearly always. */
static inline u32 *leaf_guess(struct task_struct *p)
{
	return &AT(guesses, (u32)p->pid % GUESSES);
}
static inline u32 leaf_known(struct task_struct *p)
{
	u32 leaf = *leaf_guess(p);
	return leaf_at(leaf)->pid == (u32)p->pid ? leaf : TIERCE_NONE;
}
static inline bool leaf_is_spread(u32 leaf)
{
	return edge_at(node_at(leaf)->first_parent)->flags & EDGE_SPREAD;
}
/* A kernel thread that the kernel has bound to one CPU: part of its own work there, never scheduled by us. */
static inline bool thread_is_pinned(struct task_struct *p)
{
	return (p->flags & (PF_KTHREAD | PF_NO_SETAFFINITY)) == (PF_KTHREAD | PF_NO_SETAFFINITY) && p->nr_cpus_allowed == 1;
}
/* May it not migrate? A thread may not while one of these programs runs in it: that alone binds nobody. */
static inline bool thread_is_bound(struct task_struct *p)
{
	return WANTED(several_cpus) && p->migration_disabled > (p == bpf_get_current_task_btf());
}
static inline void slice_set(struct task_struct *p, u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice))
		scx_bpf_task_set_slice(p, slice);
	else
		p->scx.slice = slice;
}
