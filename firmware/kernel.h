/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A small tickless kernel. Each thread is a task of a plan; the graph engine decides which one runs, a timer that is set to
 * the next moment anything can change brings the decision about. There is no tick.
 *
 * Called from threads, unless it says otherwise. Times are nanoseconds since kernel_run.
 */
#ifndef TIERCE_KERNEL_H
#define TIERCE_KERNEL_H

#include "types.h"
#include "cpu.h"
#include "plan.h"

struct mutex;

struct thread {
	u32 *sp; /* first: the switch knows */
	u32 *stack, *stack_end;
	const char *name;	      /* of its task in the plan */
	u32 task;		      /* its id */
	u64 wake_ns;		      /* while it sleeps: when its alarm comes */
	struct thread *sleeping;      /* the next one to wake */
	struct mutex *wants;	      /* it stands in line for this */
	u32 asleep;		      /* 0, or why it can use no CPU */
	bool parked;		      /* it could not, since who holds what it wants is asleep */
	bool woken;		      /* a wake-up it has not waited for yet */
	bool announces;		      /* a node above it heeds deadlines */
	bool plain;		      /* its task has one parent */
	bool job_waits;		      /* its job begins when it wakes */
	u64 job, job_ns, deadline_ns; /* of a periodic one: number, begin and absolute deadline of the current job */
	u64 period_ns, relative_ns;
	u32 switches;
};

/* A thread and its stack. The 32 bytes at its end are the guard that a thread must not touch. */
#define THREAD(name_, bytes) \
	static u8 name_##_stack[((bytes) + 63) / 32 * 32] __attribute__((aligned(32))); \
	static struct thread name_ = {.stack = (u32 *)name_##_stack, \
				      .stack_end = (u32 *)(name_##_stack + sizeof name_##_stack)}

/* Before kernel_run: `thread` is the plan's task of that name; it runs `run(argument)`, and no more once that ends. */
void thread_make(struct thread *thread, const char *task, void (*run)(void *argument), void *argument);
/* And it is periodic: it begins with its first job at `first_ns`, a job every `period_ns`, each to be done `deadline_ns` after
 * its begin; 0: no deadline. */
void thread_periodic(struct thread *thread, u64 first_ns, u64 period_ns, u64 deadline_ns);
/* Make the plan's graph, let the threads begin. */
void __attribute__((noreturn)) kernel_run(const struct plan *plan);

u64 kernel_now(void); /* from anywhere */

/* Blocked until `ns`; not at all if that has passed. If it is so near that a switch there and back takes longer, or its way back was
 * shorter than usual, it waits for the rest itself. */
void thread_sleep_until(u64 ns);
/* Blocked until somebody wakes it; not at all if somebody did since it waited last. */
void thread_wait(void);
/* From anywhere, interrupts included. */
void thread_wake(struct thread *thread);
/* Behind its equals. */
void thread_yield(void);
/* What it does now has to be done by then; TIMER_NEVER: no deadline. */
void thread_deadline(u64 ns);
/* The job is done; returns when the next one begins: its begin. For periodic threads. */
u64 thread_next_job(void);
/* The same, and the next job begins at `begin_ns`; from then on period and deadline are these. */
u64 thread_next_job_at(u64 begin_ns, u64 period_ns, u64 deadline_ns);
struct thread *thread_current(void);

/*
 * A mutex that passes on whatever its waiters have. Who waits for it stays in the graph as a task that could run, and when
 * the graph decides for it, the holder runs in its place: with its priority, deadline, budget, and at its expense. That is
 * priority inheritance for any policy, through any chain of holders. A thread that would wait for itself is a fault.
 */
struct mutex {
	struct thread *holder;
};
void mutex_lock(struct mutex *mutex);
void mutex_unlock(struct mutex *mutex);

/* What has happened so far. */
struct kernel_counts {
	u32 switches, decisions, timer_interrupts, wraps, wakes_idle; /* wakes_idle: interrupts that ended waiting */
};
struct kernel_counts kernel_counts(void);

/* Around every interrupt (cpu.c): its time is stolen. */
void kernel_interrupt_begin(void);
void kernel_interrupt_end(void);

#define KERNEL_REQUIRE(condition, reason) \
	do { \
		if (!(condition)) \
			kernel_fault(__FILE__, __LINE__, reason); \
	} while (0)

#endif
