/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel around the engine. What runs is decided in one place, the switch interrupt (PendSV, the lowest priority): by
 * graph_decide, at the end of whatever made it pending: a kick of the engine, the timer, a thread that blocks.
 *
 * A thread that blocks or yields is not released in the graph at once, but by the decision that follows: `left`. If it is woken
 * before that, it never was blocked. Everything here runs with interrupts masked.
 */
#define TIERCE_FN static __attribute__((unused))
#include "kernel.h"
#include "tierce.h"
#include "events.h"
#include "timer.c"
#include "engine.c"

struct tierce kernel_graph;

enum { AWAKE, SLEEPS, WAITS, ENDED };

#define FRAME_WORDS   17 /* what the switch and the processor take off a new thread's stack */
#define IDLE_BYTES    512
#define GUARD_BYTES   32u
#define FLOOR_NS 10000u /* a budget with less left is spent, the rest carried over: about the way to the next thread */
#ifndef LEAD_NS
#define LEAD_NS 13000u /* a sleeper's alarm comes that early: the least way from there until it runs */
#endif
#define SHORT_NS (2 * LEAD_NS) /* shorter sleeps are waited for: a switch there and back takes longer */

THREAD(idle, IDLE_BYTES);
static struct thread boot; /* the context in which main ran; nothing goes back there */

static struct {
	struct thread *current;		 /* whose context runs: of the task decided for, or of who holds what that one wants */
	struct thread *of[TIERCE_NODES]; /* of no task: idle */
	struct thread *made[TIERCE_NODES]; /* before kernel_run */
	struct thread *sleepers;	   /* by time */
	u64 entered_ns;			   /* since when an interrupt keeps a thread from running */
	u32 entered;			   /* it does */
	u32 way_out_ns;			   /* from a decision until what was decided for runs: a little more than usual */
	u32 unmeasured;			   /* decisions until that is measured again */
	u32 left;			   /* task that the next decision releases; TIERCE_YIELDED: its turn ends */
	u32 makes, parked;
	u32 timer_interrupts, wakes_idle;
	bool runs;
} kernel = {.current = &boot};

/* ---- decisions ---- */

/* Who can make progress for a thread: itself, or at the end of the chain of holders of what it wants. */
static struct thread *runner_of(struct thread *thread)
{
	u32 links;
	for (links = 0; links < TIERCE_NODES && thread->wants && thread->wants->holder; links++)
		thread = thread->wants->holder;
	return thread;
}

/* The task decided for waits for somebody. */
static struct thread __attribute__((noinline)) * decide_again(u32 task, u64 begin_ns)
{
	u32 tries;
	for (tries = 0; task && tries < TIERCE_NODES; tries++) {
		struct thread *thread = kernel.of[task], *runner = runner_of(thread);
		if (runner->asleep == AWAKE)
			return runner;
		thread->parked = true; /* until the holder is awake */
		kernel.parked++;
		task = graph_decide(0, task, begin_ns, 0);
	}
	KERNEL_REQUIRE(!task, "more threads wait for sleepers than there are");
	return &idle;
}

/* Decided for the moment at which it will run: what the kernel takes until then is stolen, so that a budget buys the time in
 * which a thread really runs, and the timer for its end counts from there. */
static inline struct thread *decide(u64 now)
{
	u64 begin_ns = now + kernel.way_out_ns, stolen_ns = kernel.way_out_ns;
	u32 task, left = kernel.left;
	if (kernel.entered)
		stolen_ns += now - kernel.entered_ns;
	kernel.entered = false;
	kernel.left = TIERCE_NONE;
	task = graph_decide(0, left, begin_ns, stolen_ns); /* on one CPU nothing has to be returned */
	return kernel.of[task]->wants ? decide_again(task, begin_ns) : kernel.of[task];
}

/* The timer goes to the first sleeper or to when the graph wants to be entered again. */
static void set_timer(void)
{
	u64 at = S.cpu[0].armed_ns;
	if (kernel.sleepers && kernel.sleepers->wake_ns < at)
		at = kernel.sleepers->wake_ns;
	if (at != timer_next())
		timer_set(at);
}

/* The way from a decision until what was decided for runs: a switch in 7 looks at the clock once more. */
static void measure(u64 begin_ns)
{
	u32 took_ns = (u32)(timer_now() - begin_ns);
	kernel.unmeasured = 7;
	if (took_ns > kernel.way_out_ns) {
		S.cpu[0].taken_ns += took_ns - kernel.way_out_ns;
		kernel.way_out_ns = took_ns;
	} else {
		kernel.way_out_ns -= (kernel.way_out_ns - took_ns) / 4;
	}
}

/* Of the switch interrupt: the context of what ran is saved at `sp`; returns that of what is to run. */
u32 *kernel_switch(u32 *sp)
{
	struct thread *from = kernel.current, *to;
	u64 now = timer_now();
	KERNEL_REQUIRE((u8 *)sp >= (u8 *)from->stack + GUARD_BYTES, "stack overflow");
	from->sp = sp;
	to = decide(now);
#ifdef KERNEL_CHECK
	KERNEL_REQUIRE(!graph_check(0), "the engine's invariants");
#endif
	set_timer();
	if (to != from) {
		kernel.current = to;
		to->switches++;
		cpu_guard(to->stack);
	}
	if (!--kernel.unmeasured)
		measure(now);
	return to->sp;
}

/* ---- blocking and waking ---- */

/* The current thread can go no further: it is left as soon as interrupts are unmasked. */
static void block(u32 why)
{
	struct thread *thread = kernel.current;
	KERNEL_REQUIRE(!cpu_in_interrupt() && thread->task, "only a thread can block");
	thread->asleep = why;
	if (S.cpu[0].task == thread->task)
		kernel.left = thread->task;
	else /* it runs in the place of another */
		graph_release(thread->task, TIERCE_BLOCKED, timer_now());
	cpu_pend_switch();
}

static void unpark(struct thread *holder, u64 now)
{
	u32 task;
	for (task = 0; task < TIERCE_NODES; task++) {
		struct thread *thread = kernel.of[task];
		if (!thread || !thread->parked || runner_of(thread) != holder)
			continue;
		thread->parked = false;
		kernel.parked--;
		graph_request(task, TIERCE_WOKE, now);
	}
}

static void wake(struct thread *thread, u64 now)
{
	thread->asleep = AWAKE;
	if (kernel.left == thread->task)
		kernel.left = TIERCE_NONE;
	else if (!thread->parked)
		graph_request(thread->task, TIERCE_WOKE, now);
	if (kernel.parked)
		unpark(thread, now);
}

static void job_begins(struct thread *thread, u64 now)
{
	thread->job_waits = false;
	if (thread->announces)
		graph_announce(thread->task, thread->deadline_ns, now);
	port_trace(TIERCE_EV_job_release, 0, thread->task, (u32)thread->job, thread->deadline_ns, now);
}

/* What is between them is stolen from whoever runs. If a switch is pending, the decision counts it. */
void kernel_interrupt_begin(void)
{
	u32 mask = cpu_mask();
	if (!kernel.entered)
		kernel.entered_ns = timer_now();
	kernel.entered = true;
	cpu_unmask(mask);
}
void kernel_interrupt_end(void)
{
	u32 mask = cpu_mask();
	if (!cpu_switch_pending() && kernel.entered) {
		S.cpu[0].taken_ns += timer_now() - kernel.entered_ns;
		kernel.entered = false;
	}
	cpu_unmask(mask);
}

/* The timer's interrupt. */
void kernel_timer(void)
{
	u32 mask = cpu_mask();
	u64 now = timer_now();
	bool first = !kernel.entered; /* otherwise it interrupts another one, or a switch is pending */
	if (first)
		kernel.entered_ns = now;
	kernel.entered = true;
	kernel.timer_interrupts++;
	if (timer_interrupt(now)) {
		while (kernel.sleepers && kernel.sleepers->wake_ns <= now) {
			struct thread *thread = kernel.sleepers;
			kernel.sleepers = thread->sleeping;
			if (thread->job_waits)
				job_begins(thread, now);
			wake(thread, now);
		}
		if (S.cpu[0].armed_ns <= now)
			cpu_pend_switch();
		if (!cpu_switch_pending()) /* otherwise it is set after the decision */
			set_timer();
	}
	if (first && !cpu_switch_pending())
		kernel_interrupt_end();
	cpu_unmask(mask);
}

/* ---- what threads call ---- */

u64 kernel_now(void)
{
	u32 mask = cpu_mask();
	u64 now = timer_now();
	cpu_unmask(mask);
	return now;
}

static void sleepers_add(struct thread *thread, u64 ns)
{
	struct thread **at;
	thread->wake_ns = ns;
	for (at = &kernel.sleepers; *at && (*at)->wake_ns <= ns; at = &(*at)->sleeping)
		;
	thread->sleeping = *at;
	*at = thread;
}

/* Longer than SHORT_NS. */
static void sleep_until(struct thread *thread, u64 ns)
{
	sleepers_add(thread, ns - LEAD_NS);
	block(SLEEPS);
}

/* What is left of a sleep: nothing, unless it was short or the way back shorter than usual. */
static void wait_until(u64 ns)
{
	while (kernel_now() < ns)
		;
}

void thread_sleep_until(u64 ns)
{
	u32 mask = cpu_mask();
	if (ns > timer_now() + SHORT_NS)
		sleep_until(kernel.current, ns);
	cpu_unmask(mask);
	wait_until(ns);
}

void thread_wait(void)
{
	struct thread *thread = kernel.current;
	u32 mask = cpu_mask();
	if (thread->woken)
		thread->woken = false;
	else
		block(WAITS);
	cpu_unmask(mask); /* it is left here, and goes on when it is woken */
}

void thread_wake(struct thread *thread)
{
	u32 mask = cpu_mask();
	if (thread->asleep == WAITS)
		wake(thread, timer_now());
	else
		thread->woken = true;
	cpu_unmask(mask);
}

void thread_yield(void)
{
	struct thread *thread = kernel.current;
	u32 mask = cpu_mask();
	if (thread->plain && S.cpu[0].task == thread->task) {
		kernel.left = TIERCE_YIELDED | thread->task;
		cpu_pend_switch();
	} else {
		graph_yield(thread->task, timer_now());
	}
	cpu_unmask(mask);
}

void thread_deadline(u64 ns)
{
	u32 mask = cpu_mask();
	graph_announce(kernel.current->task, ns, timer_now());
	cpu_unmask(mask);
}

/* The next job begins at job_ns. */
static void job_next(struct thread *thread)
{
	thread->job++;
	thread->deadline_ns = thread->relative_ns ? thread->job_ns + thread->relative_ns : TIMER_NEVER;
}

u64 thread_next_job(void)
{
	struct thread *thread = kernel.current;
	KERNEL_REQUIRE(thread->period_ns, "only a periodic thread has jobs");
	return thread_next_job_at(thread->job_ns + thread->period_ns, thread->period_ns, thread->relative_ns);
}

u64 thread_next_job_at(u64 begin_ns, u64 period_ns, u64 deadline_ns)
{
	struct thread *thread = kernel.current;
	u32 mask = cpu_mask();
	u64 now = timer_now();
	port_trace(TIERCE_EV_job_complete, 0, thread->task, (u32)thread->job, now - thread->job_ns, now);
	if (thread->deadline_ns < now)
		port_trace(TIERCE_EV_miss, 0, thread->task, (u32)thread->job, thread->deadline_ns, now);
	thread_periodic(thread, begin_ns, period_ns, deadline_ns);
	job_next(thread);
	thread->job_waits = begin_ns > now + SHORT_NS;
	if (thread->job_waits)
		sleep_until(thread, begin_ns);
	else
		job_begins(thread, now);
	cpu_unmask(mask);
	wait_until(begin_ns);
	return begin_ns;
}

struct thread *thread_current(void)
{
	return kernel.current;
}

/* ---- mutexes ---- */

void mutex_lock(struct mutex *mutex)
{
	struct thread *thread = kernel.current, *holder;
	u32 mask = cpu_mask();
	while (mutex->holder) {
		for (holder = mutex->holder; holder; holder = holder->wants ? holder->wants->holder : 0)
			KERNEL_REQUIRE(holder != thread, "a thread would wait for itself");
		thread->wants = mutex;
		cpu_pend_switch();
		cpu_unmask(mask); /* the holder runs in our place */
		cpu_mask();
	}
	thread->wants = 0;
	mutex->holder = thread;
	cpu_unmask(mask);
}

void mutex_unlock(struct mutex *mutex)
{
	u32 mask = cpu_mask();
	KERNEL_REQUIRE(mutex->holder == kernel.current, "a mutex is given back by who holds it");
	mutex->holder = 0;
	if (S.cpu[0].task != kernel.current->task)
		cpu_pend_switch(); /* in whose place this ran */
	cpu_unmask(mask);
}

/* ---- begin ---- */

static void __attribute__((noreturn)) thread_end(void)
{
	cpu_mask();
	KERNEL_REQUIRE(!kernel.current->wants, "a thread has ended that waits");
	block(ENDED);
	cpu_unmask(0);
	kernel_fault(__FILE__, __LINE__, "a thread that has ended runs");
}

static void idle_run(void *argument)
{
	(void)argument;
	for (;;) {
		cpu_wait_for_interrupt();
		kernel.wakes_idle++;
	}
}

/* A context as the switch would have saved it. */
static void frame_make(struct thread *thread, void (*run)(void *), void *argument)
{
	u32 i, *sp = thread->stack_end - FRAME_WORDS; /* the switch takes 9 of them, the processor the aligned rest */
	for (i = 0; i < FRAME_WORDS; i++)
		sp[i] = 0;
	sp[8] = 0xfffffffd; /* to a thread, its own stack, no FPU state */
	sp[9] = (u32)(uintptr_t)argument;
	sp[14] = (u32)(uintptr_t)thread_end;
	sp[15] = (u32)(uintptr_t)run;
	sp[16] = 1 << 24;
	thread->sp = sp;
}

void thread_make(struct thread *thread, const char *task, void (*run)(void *), void *argument)
{
	KERNEL_REQUIRE(!kernel.runs && kernel.makes < TIERCE_NODES, "threads are made before the kernel runs");
	thread->name = task;
	kernel.made[kernel.makes++] = thread;
	frame_make(thread, run, argument);
}

/* Does the node above an edge look at its children's deadlines? */
static bool heeds_deadlines(u32 edge)
{
	switch (S.edge[edge].kind) {
#define P(number, prefix, name, flags, np, ep) \
	case number: return (flags) & TIERCE_HEEDS_DEADLINES;
		TIERCE_POLICY_LIST(P, )
#undef P
	}
	return false;
}

static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

void thread_periodic(struct thread *thread, u64 first_ns, u64 period_ns, u64 deadline_ns)
{
	thread->job_ns = first_ns;
	thread->period_ns = period_ns;
	thread->relative_ns = deadline_ns;
}

static void plan_build(const struct plan *plan)
{
	u32 i, p;
	for (i = 0; i < plan->steps; i++) {
		const struct plan_step *step = &plan->step[i];
		for (p = 0; p < TIERCE_NODE_PARAMS; p++)
			graph_stage(p, step->param[p]);
		switch (step->op) {
		case PLAN_NODE:
			KERNEL_REQUIRE(step->kind == TIERCE_TASK || PORT_HAS(step->kind), "plan: a policy was left out");
			KERNEL_REQUIRE(graph_node_new(step->kind, step->flags, ~0ull) == step->id, "plan: a node is refused");
			break;
		case PLAN_EDGE:
			KERNEL_REQUIRE(graph_edge_new(step->parent, step->child, step->rank, step->flags) == step->id,
				       "plan: an edge is refused");
			break;
		case PLAN_ROOT: KERNEL_REQUIRE(!graph_root(0, step->id, 0), "plan: the root is refused"); break;
		case PLAN_ATTACH: KERNEL_REQUIRE(!graph_attach(step->id, 0), "plan: an edge is not admitted"); break;
		}
	}
}

void kernel_run(const struct plan *plan)
{
	u32 i, n, edge;
	cpu_mask();
	KERNEL_REQUIRE(!graph_init(1, 0), "engine");
	S.floor_ns = FLOOR_NS;
	plan_build(plan);
	frame_make(&idle, idle_run, 0);
	idle.name = "idle";
	kernel.of[TIERCE_NONE] = &idle;
	kernel.unmeasured = 1;
	for (n = 0; n < kernel.makes; n++) {
		struct thread *thread = kernel.made[n];
		for (i = 0; i < plan->tasks; i++)
			if (same_text(plan->task[i].name, thread->name))
				thread->task = plan->task[i].id;
		KERNEL_REQUIRE(thread->task && !kernel.of[thread->task], "plan: no such task, or it has a thread");
		kernel.of[thread->task] = thread;
		thread->plain = S.edge[S.node[thread->task].first_parent].flags & EDGE_PLAIN;
		for (edge = S.node[thread->task].first_parent; edge; edge = S.edge[edge].next_parent)
			thread->announces |= heeds_deadlines(edge);
	}
	timer_start();
	for (n = 0; n < kernel.makes; n++) {
		struct thread *thread = kernel.made[n];
		if (thread->period_ns)
			job_next(thread);
		if (thread->period_ns && thread->job_ns) {
			thread->asleep = SLEEPS;
			thread->job_waits = true;
			sleepers_add(thread, thread->job_ns);
			continue;
		}
		if (thread->period_ns)
			job_begins(thread, 0);
		graph_request(thread->task, TIERCE_WOKE, 0);
	}
	kernel.runs = true;
	cpu_pend_switch();
	cpu_start();
}

struct kernel_counts kernel_counts(void)
{
	u32 i, mask = cpu_mask();
	struct kernel_counts counts = {idle.switches, (u32)S.cpu[0].decisions, kernel.timer_interrupts, timer_wraps(),
				       kernel.wakes_idle};
	for (i = 0; i < kernel.makes; i++)
		counts.switches += kernel.made[i]->switches;
	cpu_unmask(mask);
	return counts;
}
