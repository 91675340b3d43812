/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kernel on a board: one program, the case to run comes from the host's command line. A case ends the run itself, with
 * 0 if all held; a watching thread ends it when something that has to happen does not. scripts/firmware runs them.
 */
#include "kernel.h"
#include "host.h"
#include "trace.h"
#include "plans.h"
#include TIMER_DEVICE

static void __attribute__((noreturn)) failed(const char *what, u64 a, u64 b)
{
	host_put("FAILED: ", what, " (");
	host_number(a);
	host_put(", ", "", "");
	host_number(b);
	host_put(")\n", "", "");
	host_exit(1);
}

#define HOLDS(condition, a, b) \
	do { \
		if (!(condition)) \
			failed(#condition, a, b); \
	} while (0)

static void say(const char *what, u64 number, const char *unit)
{
	host_put("  ", what, " ");
	host_number(number);
	host_put(" ", unit, "\n");
}

static void __attribute__((noreturn)) passed(void)
{
	host_exit(0);
}

void board_safe(void)
{
	host_put("safe state\n", "", "");
}

/* 4 instructions a round. */
static void work(u32 rounds)
{
	if (rounds)
		__asm__ volatile("1: nop\n\tnop\n\tsubs %0, #1\n\tbne 1b" : "+r"(rounds)::"cc");
}

/* What the way through the kernel may cost: a wake-up with its decision and switch, and a few of them. */
#ifdef KERNEL_CHECK
#define LATE_NS (100 * US)
#else
#define LATE_NS ((TIMER_BITS > 16 ? 10 : 15) * US) /* wraps take some, too, and so do longer ticks */
#endif
#define FEW_NS (20 * LATE_NS)

THREAD(one, 2048);
THREAD(two, 2048);
THREAD(three, 2048);
THREAD(watch, 1024);

static void watch_run(void *argument)
{
	thread_sleep_until((u64)(uintptr_t)argument * MS);
	failed("it has ended by now", kernel_now(), 0);
}

/* ---- two threads alternate ---- */

static u32 order[64], ordered, counted[3];

static void ping(void *argument)
{
	struct thread *other = argument;
	u32 i;
	if (thread_current() == &two)
		thread_wait();
	for (i = 0; i < 20; i++) {
		order[ordered++] = thread_current() == &one ? 1 : 2;
		thread_wake(other);
		thread_wait();
	}
	if (thread_current() != &one)
		return;
	for (i = 0; i < ordered; i++)
		HOLDS(order[i] == 1 + i % 2, i, order[i]);
	HOLDS(ordered == 40, ordered, 0);
	passed();
}
static void alternate(void)
{
	thread_make(&one, "a", ping, &two);
	thread_make(&two, "b", ping, &one);
	thread_make(&watch, "watch", watch_run, (void *)1000);
	kernel_run(&equals);
}

static void yields(void *argument)
{
	u32 i;
	for (i = 0; i < 30; i++) {
		order[ordered++] = (u32)(uintptr_t)argument;
		thread_yield();
	}
	if (ordered < 60)
		return;
	for (i = 0; i < 60; i++)
		HOLDS(order[i] == 1 + i % 2, i, order[i]);
	passed();
}
static void yield(void)
{
	thread_make(&one, "a", yields, (void *)1);
	thread_make(&two, "b", yields, (void *)2);
	thread_make(&watch, "watch", watch_run, (void *)1000);
	kernel_run(&equals);
}

/* Round robin, quantum 1 ms: in 200 ms each runs 100, in turns of 1 ms. */
static void count(void *argument)
{
	volatile u32 *at = &counted[(u32)(uintptr_t)argument];
	for (;;) { /* 1 us */
		work(15);
		++*at;
	}
}
static void turns_watch(void *argument)
{
	(void)argument;
	thread_sleep_until(200 * MS);
	say("turns of 1 ms in 200 ms:", one.switches + two.switches, "switches");
	HOLDS(one.switches + two.switches >= 180 && one.switches + two.switches <= 201, one.switches, two.switches);
	HOLDS(counted[0] * 100ull > counted[1] * 98ull && counted[1] * 100ull > counted[0] * 98ull, counted[0], counted[1]);
	passed();
}
static void round_robin(void)
{
	thread_make(&one, "a", count, (void *)0);
	thread_make(&two, "b", count, (void *)1);
	thread_make(&watch, "watch", turns_watch, 0);
	kernel_run(&turns);
}

/* ---- sleeping: never early, and how late ---- */

static u64 latest_ns, earliest_ns;

static void late(u64 at_ns)
{
	u64 now = kernel_now();
	HOLDS(now >= at_ns, now, at_ns);
	if (now - at_ns > latest_ns)
		latest_ns = now - at_ns;
	if (now - at_ns < earliest_ns)
		earliest_ns = now - at_ns;
}
static void say_late(const char *what, u64 most_ns)
{
	host_put("  ", what, ": ");
	host_number(earliest_ns);
	host_put(" to ", "", "");
	host_number(latest_ns);
	host_put(" ns late\n", "", "");
	HOLDS(latest_ns < most_ns, latest_ns, most_ns);
	latest_ns = 0;
	earliest_ns = ~0ull;
}
static void sleeper(void *argument)
{
	u64 at = kernel_now();
	u32 i;
	(void)argument;
	earliest_ns = ~0ull;
	for (i = 0; i < 1000; i++) {
		at += 300 * US + i * 977;
		thread_sleep_until(at);
		late(at);
	}
	say_late("from idle", LATE_NS);
	thread_wake(&two);
	at = kernel_now();
	for (i = 0; i < 1000; i++) {
		at += 300 * US + i * 977;
		thread_sleep_until(at);
		late(at);
	}
	say_late("preempting another", LATE_NS);
	for (i = 0; i < 3000; i++) { /* it passes while it is being set, before, after */
		at = kernel_now() + i * 20;
		thread_sleep_until(at);
		late(at);
	}
	say_late("near", LATE_NS);
	for (i = 0; i < 100; i++)
		thread_sleep_until(kernel_now() - (kernel_now() ? 1 : 0));
	passed();
}
static void waits_then_works(void *argument)
{
	(void)argument;
	thread_wait();
	for (;;)
		;
}
static void sleeping(void)
{
	thread_make(&one, "high", sleeper, 0);
	thread_make(&two, "low", waits_then_works, 0);
	thread_make(&watch, "watch", watch_run, (void *)60000);
	kernel_run(&priorities);
}

/* ---- idle: nothing but wraps interrupts ---- */

static void idler(void *argument)
{
	struct kernel_counts before, after;
	u64 at = kernel_now() + 1 * MS, ticks = 600 * 1000 * MS / (TIMER_PRESCALE ? 640 : 40);
	u32 wraps = (u32)(ticks >> TIMER_BITS), interrupts;
	(void)argument;
	thread_sleep_until(at);
	before = kernel_counts();
	thread_sleep_until(at + 600 * 1000 * MS);
	after = kernel_counts();
	interrupts = after.wakes_idle - before.wakes_idle;
	say("10 minutes idle:", after.wraps - before.wraps, "wraps of the counter");
	say("                ", interrupts, "interrupts, the last one wakes the sleeper");
	HOLDS(after.wraps - before.wraps == wraps || after.wraps - before.wraps == wraps + 1, after.wraps, before.wraps);
	HOLDS(interrupts + 1 >= after.wraps - before.wraps, interrupts, 0); /* the last wakes idle only after this thread */
	HOLDS(interrupts <= after.wraps - before.wraps + 1, interrupts, after.wraps - before.wraps);
	HOLDS(after.timer_interrupts - before.timer_interrupts <= after.wraps - before.wraps + 1, after.timer_interrupts,
	      before.timer_interrupts);
	late(at + 600 * 1000 * MS);
	passed();
}
static void idle_test(void)
{
	thread_make(&one, "high", idler, 0);
	kernel_run(&priorities);
}

/* The clock beside another one of the board, over many wraps. */
static void clocks(void *argument)
{
	u64 begin, last = 0, now;
	u32 i, reference;
	(void)argument;
	begin = kernel_now();
	reference = io_read(0x40028018);
	for (i = 0; i < 20000; i++) {
		u32 ticks;
		now = kernel_now();
		ticks = io_read(0x40028018) - reference;
		HOLDS(now >= last, now, last);
		HOLDS(now - begin <= ticks * 40ull + 1 * US && now - begin + 2 * US > ticks * 40ull, now - begin,
		      ticks * 40ull);
		last = now;
		if (i % 64 == 0)
			work(i);
	}
	say("the clock agrees with another one over", (now - begin) / MS, "ms");
	passed();
}
static void clock_test(void)
{
	thread_make(&one, "high", clocks, 0);
	kernel_run(&priorities);
}

/* ---- interrupts wake threads, at every moment ---- */

enum { DEVICE_CONTROL = 0x40000000, DEVICE_VALUE = 0x40000004, DEVICE_RELOAD = 0x40000008, DEVICE_CLEAR = 0x4000000c };
static u32 device_interrupts;

void board_interrupt(u32 irq)
{
	HOLDS(irq == 8, irq, 0);
	io_write(DEVICE_CONTROL, 0);
	io_write(DEVICE_CLEAR, 1);
	device_interrupts++;
	thread_wake(&one);
}
static void wakes(void *argument)
{
	u32 ticks, round;
	(void)argument;
	io_write(0xe000e100, 1 << 8);
	for (round = 0; round < 20; round++)
		for (ticks = 1; ticks < 300; ticks++) {
			u32 before = device_interrupts;
			io_write(DEVICE_RELOAD, ticks);
			io_write(DEVICE_VALUE, ticks);
			io_write(DEVICE_CONTROL, 1 << 3 | 1);
			work(round);
			thread_wait();
			HOLDS(device_interrupts == before + 1, device_interrupts, before);
		}
	say("woken from an interrupt", device_interrupts, "times");
	passed();
}
static void wake_test(void)
{
	thread_make(&one, "middle", wakes, 0);
	thread_make(&watch, "watch", watch_run, (void *)2000);
	kernel_run(&priorities);
}

/* ---- reservations and weights ---- */

static void budget_watch(void *argument)
{
	u64 sum = 0, ran[3];
	u32 i;
	thread_sleep_until(1000 * MS);
	for (i = 0; i < 3; i++)
		sum += ran[i] = S.node[4 + i].ran_ns;
	say("reserved 2 ms of 10, in 1 s:", ran[0] / US, "us");
	say("weight 100 of the rest:     ", ran[1] / US, "us");
	say("weight 300 of the rest:     ", ran[2] / US, "us");
	HOLDS(ran[0] > 199900 * US && ran[0] < 200100 * US, ran[0], 0);
	/* a budget buys time in which the thread really runs: its rounds take 65 instructions */
	say("                            ", counted[0] * 65ull * 16 / 1000, "us of its own work");
	HOLDS(counted[0] * 65ull * 16 > 199000 * US && counted[0] * 65ull * 16 < 201000 * US, counted[0], 0);
	say("taken by the kernel:        ", S.cpu[0].stolen_ns / US, "us");
	say("                         in ", kernel_counts().decisions, "decisions");
	HOLDS(sum + S.cpu[0].stolen_ns > 999800 * US && S.cpu[0].stolen_ns < 100 * MS, sum, S.cpu[0].stolen_ns);
	HOLDS(ran[2] > 295 * ran[1] / 100 && ran[2] < 305 * ran[1] / 100, ran[1], ran[2]);
#ifdef TRACE_RECORDS
	if (argument)
		HOLDS(trace_save(argument, &budget), 0, 0);
#else
	(void)argument;
#endif
	passed();
}
static void budget_test(const char *path)
{
	thread_make(&one, "reserved", count, (void *)0);
	thread_make(&two, "one", count, (void *)1);
	thread_make(&three, "three", count, (void *)2);
	thread_make(&watch, "watch", budget_watch, (void *)path);
	kernel_run(&budget);
}

/* ---- mutexes ---- */

static struct mutex mutex, outer;
static u64 got_ns, middle_ns;
static bool inherits = true;

/* low holds it for 5 ms of work, high wants it at 1 ms, middle works from 2 to 22 ms. With inheritance high has it when
 * low's 5 ms are done; without it would wait for middle, too. */
static void low_holds(void *argument)
{
	(void)argument;
	if (inherits)
		mutex_lock(&mutex);
	work(5 * 62500 / 4); /* 5 ms at 62.5 instructions per us */
	if (inherits)
		mutex_unlock(&mutex);
	else
		thread_wake(&three);
	work(10 * 62500 / 4); /* for itself, so after the others */
	for (;;)
		thread_wait();
}
static void middle_works(void *argument)
{
	(void)argument;
	thread_sleep_until(2 * MS);
	work(20 * 62500 / 4);
	middle_ns = kernel_now();
	HOLDS(got_ns || !inherits, 0, middle_ns);
	thread_wait();
}
static void high_wants(void *argument)
{
	(void)argument;
	thread_sleep_until(1 * MS);
	if (inherits)
		mutex_lock(&mutex);
	else
		thread_wait();
	got_ns = kernel_now();
	say(inherits ? "with inheritance high has it after" : "without it has waited", got_ns / US, "us");
	if (!inherits) {
		HOLDS(got_ns > 25 * MS, got_ns, 0);
		passed();
	}
	HOLDS(got_ns > 5 * MS && got_ns < 5 * MS + FEW_NS, got_ns, 0);
	HOLDS(S.node[2].ran_ns < 1200 * US, S.node[2].ran_ns, 0); /* low's work after 1 ms was charged to high */
	mutex_unlock(&mutex);
	thread_sleep_until(30 * MS);
	HOLDS(middle_ns > got_ns, middle_ns, got_ns);
	passed();
}
static void inherit_test(void)
{
	thread_make(&one, "low", low_holds, 0);
	thread_make(&two, "middle", middle_works, 0);
	thread_make(&three, "high", high_wants, 0);
	thread_make(&watch, "watch", watch_run, (void *)100);
	kernel_run(&priorities);
}
static void invert_test(void)
{
	inherits = false;
	inherit_test();
}

/* A chain: low holds `mutex` and sleeps until 5 ms; middle holds `outer` and wants `mutex`; high wants `outer`. */
static void chain_low(void *argument)
{
	(void)argument;
	mutex_lock(&mutex);
	thread_sleep_until(5 * MS);
	order[ordered++] = 1;
	work(1000);
	mutex_unlock(&mutex);
	work(10 * 62500 / 4);
	thread_wait();
}
static void chain_middle(void *argument)
{
	(void)argument;
	thread_sleep_until(1 * MS);
	mutex_lock(&outer);
	mutex_lock(&mutex);
	order[ordered++] = 2;
	mutex_unlock(&mutex);
	mutex_unlock(&outer);
	thread_wait();
}
static void chain_high(void *argument)
{
	(void)argument;
	thread_sleep_until(2 * MS);
	mutex_lock(&outer);
	order[ordered++] = 3;
	HOLDS(kernel_now() > 5 * MS && kernel_now() < 5 * MS + FEW_NS, kernel_now(), 0);
	mutex_unlock(&outer);
	HOLDS(ordered == 3 && order[0] == 1 && order[1] == 2 && order[2] == 3, order[0], order[1]);
	say("a chain of two holders, one asleep: high has it at", kernel_now() / US, "us");
	passed();
}
static void chain_test(void)
{
	thread_make(&one, "low", chain_low, 0);
	thread_make(&two, "middle", chain_middle, 0);
	thread_make(&three, "high", chain_high, 0);
	thread_make(&watch, "watch", watch_run, (void *)100);
	kernel_run(&priorities);
}

static void circle_one(void *argument)
{
	(void)argument;
	mutex_lock(&mutex);
	thread_sleep_until(2 * MS);
	mutex_lock(&outer);
}
static void circle_two(void *argument)
{
	(void)argument;
	thread_sleep_until(1 * MS);
	mutex_lock(&outer);
	mutex_lock(&mutex);
}
static void circle_test(void)
{
	thread_make(&one, "low", circle_one, 0);
	thread_make(&two, "middle", circle_two, 0);
	thread_make(&watch, "watch", watch_run, (void *)100);
	kernel_run(&priorities);
}

/* ---- periodic threads ---- */

static void periodic(void *argument)
{
	u64 period_ns = (u64)(uintptr_t)argument * US, begin_ns = 1 * MS;
	u32 i;
	for (i = 0; i < 1000; i++) {
		HOLDS(kernel_now() >= begin_ns && kernel_now() < begin_ns + period_ns, kernel_now(), begin_ns);
		work((u32)(uintptr_t)argument * 62 / 4 / 4); /* a quarter of the processor */
		begin_ns += period_ns;
		HOLDS(thread_next_job() == begin_ns, begin_ns, kernel_now());
	}
	if (thread_current() != &one)
		return;
	say("1000 jobs of 3 ms beside jobs of 1 ms, the last one ended at", kernel_now() / US, "us");
	passed();
}
static void periodic_test(void)
{
	thread_make(&one, "low", periodic, (void *)3000);
	thread_make(&two, "middle", periodic, (void *)1000);
	thread_make(&watch, "watch", watch_run, (void *)10000);
	thread_periodic(&one, 1 * MS, 3 * MS, 3 * MS);
	thread_periodic(&two, 1 * MS, 1 * MS, 1 * MS);
	kernel_run(&priorities);
}

/* ---- FPU ---- */

static u32 sums[2], floats_done;

/* Twelve variables that live in registers all the time. */
static u32 __attribute__((noinline)) floats(float from)
{
	float a = from, b = from + 1, c = from + 2, d = from + 3, e = from + 4, f = from + 5;
	float g = from + 6, h = from + 7, i = from + 8, j = from + 9, k = from + 10, l = from + 11;
	for (u32 round = 0; round < 60000; round++) {
		a = a * 0.5f + l, b = b * 0.25f + a, c = c * 0.5f + b, d = d * 0.125f + c, e = e * 0.5f + d, f = f * 0.25f + e;
		g = g * 0.5f + f, h = h * 0.25f + g, i = i * 0.5f + h, j = j * 0.125f + i, k = k * 0.25f + j;
		l = l * 0.0078125f - k * 0.001f;
	}
	union {
		float number;
		u32 bits;
	} sum = {a + b + c + d + e + f + g + h + i + j + k + l};
	return sum.bits;
}
static void floats_run(void *argument)
{
	u32 which = (u32)(uintptr_t)argument;
	sums[which] = floats(which ? 1.5f : 3.25f);
	floats_done++;
}
static void floats_watch(void *argument)
{
	u32 *expected = argument, rounds = 0;
	float own = 1;
	u64 at = kernel_now();
	while (floats_done < 2) {
		at += 97 * US + rounds % 50 * 1013;
		thread_sleep_until(at);
		own = own * 1.0009765625f;
		if (own > 1000)
			own = 1;
		rounds++;
		HOLDS(rounds < 100000, rounds, 0);
	}
	say("switches between threads that use floating point:", one.switches + two.switches, "");
	HOLDS(one.switches + two.switches > 500, one.switches, two.switches);
	HOLDS(sums[0] == expected[0] && sums[1] == expected[1] && own > 1, sums[0], sums[1]);
	passed();
}
static void fpu_test(void)
{
	static u32 expected[2];
	expected[0] = floats(3.25f);
	expected[1] = floats(1.5f);
	thread_make(&one, "a", floats_run, (void *)0);
	thread_make(&two, "b", floats_run, (void *)1);
	thread_make(&watch, "watch", floats_watch, expected);
	kernel_run(&turns);
}

/* ---- faults ---- */

static u32 __attribute__((noinline)) deeper(u32 levels)
{
	volatile u32 here[8];
	here[0] = levels;
	return levels ? deeper(levels - 1) + here[0] : 0;
}
static void too_deep(void *argument)
{
	(void)argument;
	say("not reached:", deeper(1000), "");
}
static void overflow_test(void)
{
	thread_make(&one, "low", too_deep, 0);
	kernel_run(&priorities);
}
static void stray(void *argument)
{
	(void)argument;
	io_write(0x90000000, 1); /* nothing is there */
	__asm__ volatile("dsb");
	failed("a stray write went by", 0, 0);
}
static void stray_test(void)
{
	thread_make(&one, "low", stray, 0);
	kernel_run(&priorities);
}
static void unlocks(void *argument)
{
	(void)argument;
	mutex_unlock(&mutex);
}
static void unlock_test(void)
{
	thread_make(&one, "low", unlocks, 0);
	kernel_run(&priorities);
}
static void refused_test(void)
{
	kernel_run(&refused);
}
static void nobody_test(void)
{
	thread_make(&one, "somebody else", count, 0);
	kernel_run(&priorities);
}

/* ---- what a switch costs: run with 1024 ns for each instruction ---- */

#define ROUNDS 2000u
static void __attribute__((noreturn)) costs(u64 begin, u32 switches, const char *what)
{
	u64 instructions = (kernel_now() - begin) * 10 / 1024 / switches;
	host_put("  ", what, ": ");
	host_number(instructions / 10);
	host_put(".", "", "");
	host_number(instructions % 10);
	host_put(" instructions\n", "", "");
	passed();
}
static u32 others;
static void yields_cost(void *argument)
{
	u64 begin = kernel_now(), own;
	u32 i, before, others_before;
	if (!argument)
		for (;; others++) {
			work(20);
			thread_yield();
		}
	for (i = 0; i < ROUNDS; i++)
		work(20);
	own = kernel_now() - begin; /* of the loop itself: what a thread does before it yields again */
	begin = kernel_now();
	before = kernel_counts().switches;
	others_before = others;
	for (i = 0; i < ROUNDS; i++) {
		work(20);
		thread_yield();
	}
	HOLDS(kernel_counts().switches - before >= ROUNDS / 4, kernel_counts().switches, before); /* fair: not at each */
	i += others - others_before;
	costs(begin + own * i / ROUNDS, i, argument);
}
static void wakes_cost(void *argument)
{
	u64 begin;
	u32 i, before;
	if (!argument)
		for (;;) {
			thread_wake(&one);
			thread_wait();
		}
	thread_wait();
	begin = kernel_now();
	before = kernel_counts().switches;
	for (i = 0; i < ROUNDS; i++) {
		thread_wake(&two);
		thread_wait();
	}
	HOLDS(kernel_counts().switches - before >= 2 * ROUNDS - 2, kernel_counts().switches, before);
	costs(begin, 2 * ROUNDS, argument);
}

/* A register of the FPU is in use, so all of them are saved at a switch. */
static void floats_cost(void *argument)
{
#ifdef __ARM_FP
	__asm__ volatile("vmov.f32 s0, #1.0" ::: "s0");
#endif
	yields_cost(argument);
}

/* It sleeps and preempts the other. */
static void late_cost(void *argument)
{
	const char *name = argument;
	u64 at = kernel_now();
	u32 i;
	for (i = 0; name && i < 200; i++) {
		at += 300 * US + i * 977;
		thread_sleep_until(at);
		late(at);
	}
	if (name) {
		for (i = 0; name[i + 1]; i++)
			;
		say_late(name, LATE_NS + (u64)(name[i] - '1') * 4 * US);
		passed();
	}
	for (;;)
		;
}

enum shape { YIELDS, WAKES, FLOATS, LATE };

/* Two tasks below `depth` nodes of one policy: both below the last one, whose turns alternate, or, to be woken, with nothing
 * in common but the first. */
static struct plan_step chain_steps[32];
static const struct plan_task chain_tasks[] = {{.name = "a", .id = 8}, {.name = "b", .id = 9}};

static void chain_of(u8 kind, u32 depth, const char *name, enum shape shape)
{
	static void (*const runs[])(void *) = {yields_cost, wakes_cost, floats_cost, late_cost};
	const bool apart = shape == WAKES || shape == LATE;
	const u64 param = kind == TIERCE_fair ? 100 : kind == TIERCE_reservation ? 1000000 * MS : 1;
	struct plan plan = {chain_steps, chain_tasks, 0, 2, "{}"};
	struct plan_step *step = chain_steps;
	u32 i, side, edge = 0;
	for (i = 1; i <= 7; i++)
		*step++ = (struct plan_step)PLAN_NODE(i, kind, kind == TIERCE_fair ? 3600000 * MS : 0);
	*step++ = (struct plan_step)PLAN_TASK(8);
	*step++ = (struct plan_step)PLAN_TASK(9);
	for (i = 1; i <= depth; i++) /* nodes of a side: 2, 4, 6 or 3, 5, 7 */
		for (side = 0; side < 2; side++) {
			u32 own = apart ? side : 0, child = i == depth ? 8 + side : 2 * i + own;
			if (apart || i == depth || !side)
				*step++ = (struct plan_step)PLAN_EDGE(++edge, i == 1 ? 1 : 2 * (i - 1) + own, child, 0, 0);
		}
	*step++ = (struct plan_step)PLAN_ROOT(1);
	for (i = 1; i <= edge; i++)
		*step++ = (struct plan_step)PLAN_ATTACH(i, param + (shape == LATE ? i & 1 : 0),
							kind == TIERCE_reservation ? 2100000 * MS : 0,
							kind == TIERCE_reservation ? 2100000 * MS : 0);
	plan.steps = (u32)(step - chain_steps);
	thread_make(&one, "a", runs[shape], (void *)name);
	thread_make(&two, "b", runs[shape], 0);
	kernel_run(&plan);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
    {"alternate", alternate},
    {"yield", yield},
    {"round-robin", round_robin},
    {"sleep", sleeping},
    {"idle", idle_test},
    {"clock", clock_test},
    {"wake", wake_test},
    {"inherit", inherit_test},
    {"invert", invert_test},
    {"chain", chain_test},
    {"circle", circle_test},
    {"periodic", periodic_test},
    {"fpu", fpu_test},
    {"overflow", overflow_test},
    {"stray", stray_test},
    {"unlock", unlock_test},
    {"refused", refused_test},
    {"nobody", nobody_test},
};

/* The last word of the command line; `argument`: what follows an equals sign in it. */
static const char *last_word(char *text, const char **argument)
{
	char *word = text;
	*argument = 0;
	for (; *text; text++) {
		if (*text == ' ') {
			word = text + 1;
			*argument = 0;
		} else if (*text == '=' && !*argument) {
			*argument = text + 1;
			*text = 0;
		}
	}
	return word;
}

int main(void)
{
	static char text[256];
	const char *argument, *word;
	u32 i, at;
	host_arguments(text, sizeof text);
	word = last_word(text, &argument);
	for (i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (at = 0; word[at] && word[at] == cases[i].name[at]; at++)
			;
		if (word[at] == cases[i].name[at])
			cases[i].run();
	}
	if (word[0] == 'b')
		budget_test(argument);
	/* yield-POLICY-DEPTH, wake-POLICY-DEPTH, float-POLICY-DEPTH, late-POLICY-DEPTH */
	for (i = 0; i < 10; i++) {
		static const char *const names[] = {"yield-fixed-priority-", "yield-fair-", "yield-reservation-",
						    "wake-fixed-priority-",  "wake-fair-",  "wake-reservation-",
						    "float-fixed-priority-", "float-fair-", "float-reservation-",
						    "late-fixed-priority-"};
		static const u8 kinds[] = {TIERCE_fixed_priority, TIERCE_fair, TIERCE_reservation};
		for (at = 0; word[at] && word[at] == names[i][at]; at++)
			;
		if (!names[i][at] && word[at] >= '1' && word[at] <= '4')
			chain_of(kinds[i % 3], (u32)(word[at] - '0'), word, (enum shape)(i / 3));
	}
	host_put("no such case: ", word, "\n");
	return 2;
}
