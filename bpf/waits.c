/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Who waits for whose lock: TIERCE_EV_lock_wait and _lock_end, of threads that the plan names. Left out by the loader unless that is
 * wanted, or holders inherit (inherit.c).
 *
 * A lock of a program is a futex. The kernel knows who has it only if its holder inherits priorities (PI): its word is the number of that
 * thread. Of others the C libraries write it down: musl in the word, unless the mutex is of the plain kind, with the bit for waiters
 * (without it the word is what pthread_join waits for), glibc two words behind it (__owner of pthread_mutex_t). Such a number counts if
 * there is a thread of it, in the same process unless the futex is shared. A wait for anything else (a condition, a semaphore, a lock whose
 * holder is written down nowhere) is none for a lock here.
 *
 * A lock of the kernel is one that its waiters sleep for: a mutex, a read-write semaphore, an rt_mutex. They say who has them.
 */

/* As in the kernel's include/trace/events/lock.h */
#define LCB_F_SPIN  1u
#define LCB_F_READ  2u
#define LCB_F_WRITE 4u
#define LCB_F_RT    8u
#define LCB_F_PERCPU 16u
#define LCB_F_MUTEX 32u
/* As in the kernel's include/uapi/linux/futex.h and kernel/futex/futex.h; FUTEX_TID_MASK: inherit.c */
#define FUTEX_WAITERS  0x80000000u
#define FLAGS_SHARED   1u
/* The lowest bits of the word of a glibc mutex: others wait for it. What is above them is a priority ceiling. */
#define GLIBC_LOCK   3u
#define GLIBC_WAITED 2u
/* Of a mutex and a semaphore the lowest bits of the holder's address say something else: the first one of a semaphore that readers have it. */
#define HOLDER_BITS 7ull
#define READERS	    1ull

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct counter {
	s64 counter;
};
struct mutex {
	struct counter owner;
};
struct rw_semaphore {
	struct counter owner;
};
struct rt_mutex_base {
	struct task_struct *owner;
};
#pragma clang attribute pop

/* The thread's own part, if the plan names it and it does not wait yet. */
static inline struct thread *waiter(struct task_struct *p)
{
	struct thread *t;
	if (!SIDE.ready)
		return 0;
	t = thread_of(p);
	return t && t->leaf && t->leaf < TIERCE_NODES && !t->waits && leaf_at(t->leaf)->own != LEAF_DEFAULT ? t : 0;
}
/* Thread `p` has it, if there is one, which is released; `like`: and it is of the same process. */
static inline bool waits_for(struct thread *t, struct task_struct *p, struct task_struct *like, u64 lock, u32 *owner_at,
			     u32 owner)
{
	u32 leaf = TIERCE_NONE, pid, tgid = bpf_get_current_pid_tgid() >> 32;
	struct thread *its;
	bool is_it, is_own;
	if (!p)
		return false;
	is_own = (u32)p->tgid == tgid;
	is_it = !like || p->tgid == like->tgid;
	pid = (u32)p->pid;
	its = thread_of(p);
	if (its)
		leaf = its->leaf;
	bpf_task_release(p);
	if (!is_it)
		return false;
	if (WANTED(inherits)) { /* locks that processes share have another address in each */
		t->lock = lock_key(lock, tgid);
		t->holder = is_own || (lock & 3) == TIERCE_LOCK_KERNEL ? leaf : TIERCE_NONE;
		t->holder_pid = pid;
		t->owner_at = (u64)owner_at;
		t->owner = owner;
	}
	t->waits = 1 + (lock & 3);
	port_trace(TIERCE_EV_lock_wait, bpf_get_smp_processor_id(), t->leaf, leaf, lock, now_ns());
	return true;
}
/* By the number that its program knows it by: in a container that is another one. */
static inline struct task_struct *holder_by(u32 word)
{
	s32 number = (s32)(word & FUTEX_TID_MASK);
	if (bpf_ksym_exists(bpf_task_from_vpid))
		return bpf_task_from_vpid(number);
	return bpf_task_from_pid(number);
}
static inline void waits_no_longer(struct task_struct *p, int error)
{
	struct thread *t = thread_of(p);
	if (!t || !t->waits)
		return;
	if (WANTED(inherits) && error)
		lock_given_up(t->lock, t->leaf, t->waits == 1 + TIERCE_LOCK_KERNEL);
	else if (WANTED(inherits) && t->waits == 1 + TIERCE_LOCK_PI_FUTEX)
		lock_got_by(t->lock, t->leaf, (u32)p->pid);
	t->waits = 0;
	port_trace(TIERCE_EV_lock_end, bpf_get_smp_processor_id(), t->leaf, error ? 1 : 0, 0, now_ns());
}

SEC("fentry/futex_wait")
int BPF_PROG(tierce_futex_wait, u32 *place, unsigned int flags, u32 value)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread *t = waiter(p);
	u64 lock = (u64)place | TIERCE_LOCK_FUTEX;
	u32 word = 0, owner = 0;
	if (!t || bpf_probe_read_user(&word, sizeof word, place) || word != value)
		return 0; /* it will not wait */
	if (word & FUTEX_WAITERS && waits_for(t, holder_by(word), p, lock, place, word))
		return 0;
	if ((word & GLIBC_LOCK) == GLIBC_WAITED && !bpf_probe_read_user(&owner, sizeof owner, place + 2))
		waits_for(t, holder_by(owner), flags & FLAGS_SHARED ? 0 : p, lock, place + 2, owner);
	return 0;
}
SEC("fexit/futex_wait")
int BPF_PROG(tierce_futex_waited, u32 *place, unsigned int flags, u32 value, s64 *until, u32 set, int error)
{
	waits_no_longer(bpf_get_current_task_btf(), error);
	return 0;
}
SEC("fentry/futex_lock_pi")
int BPF_PROG(tierce_futex_lock, u32 *place)
{
	struct thread *t = waiter(bpf_get_current_task_btf());
	u32 word = 0;
	if (t && !bpf_probe_read_user(&word, sizeof word, place))
		waits_for(t, holder_by(word), 0, (u64)place | TIERCE_LOCK_PI_FUTEX, place, word);
	return 0;
}
SEC("fexit/futex_lock_pi")
int BPF_PROG(tierce_futex_locked, u32 *place, unsigned int flags, s64 *until, int try, int error)
{
	waits_no_longer(bpf_get_current_task_btf(), error);
	return 0;
}

static inline u64 kernel_key(void *lock)
{
	return ((u64)lock & ~3ull) | TIERCE_LOCK_KERNEL;
}
/* Who has a lock of the kernel, by the thread's address; 0: nobody knows. */
static inline u64 holder_of(void *lock, u32 flags)
{
	u64 owner;
	if (flags & LCB_F_MUTEX)
		return (u64)BPF_CORE_READ((struct mutex *)lock, owner.counter) & ~HOLDER_BITS;
	if (flags & LCB_F_SPIN)
		return 0;
	if (flags & LCB_F_RT)
		return (u64)BPF_CORE_READ((struct rt_mutex_base *)lock, owner) & ~1ull;
	if ((flags & LCB_F_PERCPU) || !(flags & (LCB_F_READ | LCB_F_WRITE)))
		return 0;
	owner = BPF_CORE_READ((struct rw_semaphore *)lock, owner.counter);
	return owner & READERS ? 0 : owner & ~HOLDER_BITS; /* of several readers it names the last one, who may have left it */
}
SEC("tp_btf/contention_begin")
int BPF_PROG(tierce_contention_begins, void *lock, unsigned int flags)
{
	u64 holder, key = kernel_key(lock);
	struct thread *t;
	if (!flags || ((flags & LCB_F_SPIN) && !(flags & LCB_F_MUTEX)))
		return 0;
	t = thread_of(bpf_get_current_task_btf());
	if (t) {
		t->wants = key;
		t->reads = flags & LCB_F_READ;
	}
	t = waiter(bpf_get_current_task_btf());
	holder = t ? holder_of(lock, flags) : 0;
	if (holder)
		waits_for(t, bpf_task_from_pid(BPF_CORE_READ((struct task_struct *)holder, pid)), 0, key, 0, 0);
	return 0;
}
SEC("tp_btf/contention_end")
int BPF_PROG(tierce_contention_ends, void *lock, int error)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct thread *t = thread_of(p);
	u64 key = kernel_key(lock);
	if (!t || t->wants != key) /* a spinlock, within a wait for another lock */
		return 0;
	t->wants = 0;
	if (WANTED(inherits) && !error && SIDE.ready)
		lock_got_by(key, t->reads ? TIERCE_NONE : t->leaf, (u32)p->pid);
	/* A PI futex is one of these, too; its wait ends with the call. */
	if (t->waits == 1 + TIERCE_LOCK_KERNEL)
		waits_no_longer(p, error);
	return 0;
}
