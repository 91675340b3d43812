/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the engine asks of a port (port.h): kicks and locks. */

#define AWAY_NS	     2000000 /* a thread of a higher class that runs longer is not waited for */
#define FORGOTTEN_NS 1000000 /* a CPU that was asked to decide has done so long before */
#define LOCK_NS	     20000000000 /* nobody holds a lock this long, not even on a virtual CPU that stands still */
#define LOCK_ROUNDS  (8 << 20)
#define LOCK_TRIES   1000

static inline void port_kick(u32 cpu)
{
	if (!__sync_val_compare_and_swap(&side_at(cpu)->blocking, 0, 0)) /* read after what was asked of it is written */
		scx_bpf_kick_cpu((s32)cpu, SCX_KICK_PREEMPT);
}

/*
 * A lock is `ticket` and `serving`. Fair: a ticket lock, first come, first served. On a virtual machine that order does harm:
 * the lock is handed to a CPU that the host has descheduled, and all others wait until that one runs again. There `ticket`
 * is a test-and-set lock: whoever runs takes it. The kernel chooses the same way for its own spinlocks.
 *
 * Not CAN_LOOP: its allowance ends after a quarter of a second, and a virtual CPU may stand still for longer. Once a lock
 * was lost nobody waits any more: the scheduler is on its way out.
 */
static inline bool lock_got(volatile u32 *ticket, volatile u32 *serving, u32 mine)
{
	if (WANTED(locks_fair))
		return *serving == mine;
	return !*ticket && !__sync_val_compare_and_swap(ticket, 0, 1);
}
static inline void lock_spin(volatile u32 *ticket, volatile u32 *serving, u32 mine)
{
	u64 began = now_ns();
	int round, tries;
	bpf_for(round, 0, LOCK_ROUNDS)
	{
		bpf_for(tries, 0, LOCK_TRIES) if (lock_got(ticket, serving, mine) || SIDE.lock_lost) return;
		if (now_ns() - began > LOCK_NS)
			break;
	}
	SIDE.lock_lost = 1;
	port_fail("a lock stayed taken");
}
TIERCE_FN int lock_wait(u32 domain, u32 mine)
{
	u64 since = WANTED(count_contention) ? now_ns() : 0;
	lock_spin(&domain_at(domain)->ticket, &domain_at(domain)->serving, mine);
	if (WANTED(count_contention)) {
		AT(SIDE.lock, domain).waited++;
		AT(SIDE.lock, domain).wait_ns += now_ns() - since;
	}
	return 0;
}
TIERCE_FN int lock_taken(u32 domain)
{
	struct tierce_lock_side *lock = &AT(SIDE.lock, domain);
	u32 cpu = bpf_get_smp_processor_id();
	lock->taken++;
	if (lock->last != cpu) {
		lock->last = cpu;
		lock->taken_over++;
	}
	lock->since_ns = now_ns();
	return 0;
}
/* Of a test-and-set lock `serving` stays 0: who finds that in `ticket` has it. */
static inline void port_lock(u32 domain)
{
	u32 *ticket = &domain_at(domain)->ticket;
	u32 mine = WANTED(locks_fair) ? __sync_fetch_and_add(ticket, 1) : __sync_lock_test_and_set(ticket, 1);
	if (*(volatile u32 *)&domain_at(domain)->serving != mine)
		lock_wait(domain, mine);
	asm volatile("" ::: "memory");
	if (WANTED(count_contention))
		lock_taken(domain);
}
static inline void port_unlock(u32 domain)
{
	/* Of a shared domain: others seldom wait for the lock of a CPU. */
	if (WANTED(count_contention) && is_shared(domain))
		AT(SIDE.lock, domain).held_ns += now_ns() - AT(SIDE.lock, domain).since_ns;
	if (WANTED(locks_fair))
		__sync_fetch_and_add(&domain_at(domain)->serving, 1);
	else
		__sync_lock_test_and_set(&domain_at(domain)->ticket, 0);
}

/* A task in transit is there within a few instructions of the CPU that moves it. */
TIERCE_FN int home_wait(u32 task)
{
	volatile u32 *domain = &node_at(task)->domain;
	u64 began = now_ns();
	int round, tries;
	bpf_for(round, 0, LOCK_ROUNDS)
	{
		bpf_for(tries, 0, LOCK_TRIES) if (*domain != TIERCE_TRANSIT || SIDE.lock_lost) return 0;
		if (now_ns() - began > LOCK_NS)
			break;
	}
	SIDE.lock_lost = 1;
	port_fail("a task stayed in transit");
	return 0;
}
static inline void port_await(u32 task)
{
	home_wait(task);
}
static inline bool port_movable(u32 task)
{
	return leaf_at(task)->custody == CUSTODY_FREE;
}

/* Control operations are made one after the other. Order: run queue, this, domains. */
TIERCE_FN int control_lock(void)
{
	u32 mine = WANTED(locks_fair) ? __sync_fetch_and_add(&SIDE.ticket, 1) : 0;
	lock_spin(&SIDE.ticket, &SIDE.serving, mine);
	return 0;
}
TIERCE_FN int control_unlock(void)
{
	if (WANTED(locks_fair))
		__sync_fetch_and_add(&SIDE.serving, 1);
	else
		__sync_lock_test_and_set(&SIDE.ticket, 0);
	return 0;
}
