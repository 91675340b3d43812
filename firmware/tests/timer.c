/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The timer driver against a model of its registers, over every interleaving of their accesses with ticks, wraps, matches
 * and interrupts that a small counter has. A scenario asks choose(n) wherever something may happen in n ways; it is played
 * again until every combination has been played. What breaks the driver's contract, a second wrap while the first is not
 * serviced, is left out by the model's own account of it.
 *
 * Compiled once for each device, with counters of 3 and 4 bits.
 */
#include "../timer.c"
#include "model.h"
#include <string.h>

/* ---- every combination ---- */

#define CHOICES 128
static u32 chosen[CHOICES], ways[CHOICES], choices;

static u32 choose(u32 n)
{
	if (choices == CHOICES)
		wrong("too many choices", choices, n);
	ways[choices] = n;
	return chosen[choices++];
}

static bool next_combination(void)
{
	while (choices && chosen[choices - 1] + 1 == ways[choices - 1])
		chosen[--choices] = 0;
	if (!choices)
		return false;
	chosen[choices - 1]++;
	choices = 0;
	return true;
}

static void __attribute__((noreturn)) wrong(const char *what, u64 a, u64 b)
{
	u32 i;
	printf("timer: %s (%llu, %llu) at tick %llu; choices", what, (unsigned long long)a, (unsigned long long)b,
	       (unsigned long long)model.ticks);
	for (i = 0; i < choices; i++)
		printf(" %u/%u", chosen[i], ways[i]);
	printf("\n");
	exit(1);
}

/* Ticks left that may pass between accesses, and how many have. */
static u32 allowance, passed;

static u32 before_access(void)
{
	u32 ticks = allowance ? choose(allowance + 1) : 0;
	allowance -= ticks;
	passed += ticks;
	return ticks;
}

static inline bool match_at_write(void)
{
	return allowance ? choose(2) : false;
}

/* ---- what has to hold ---- */

static u64 base; /* true time when the clock began: the model may tick while it is being started */

static u64 true_ns(void) /* a tick is a nanosecond here */
{
	return model.ticks + base;
}

static void start(void)
{
	memset(&model, 0, sizeof model);
	allowance = 0;
	passed = 0;
	model.top = MASK;
	timer_start();
	base = device_elapsed();
}

static u64 read_clock(void)
{
	u64 from = true_ns(), now = timer_now();
	if (!model.overrun && (now < from || now > true_ns()))
		wrong("the clock shows what it was at no time during the reading", now, true_ns());
	return now;
}

/* The interrupt handler. True: the alarm. */
static bool serve(void)
{
	bool due;
	u64 checkpoint = timer_next();
	model.pended = false;
	due = timer_interrupt(timer_now());
	if (due && true_ns() < checkpoint)
		wrong("alarm before its checkpoint", true_ns(), checkpoint);
	return due;
}

#define PERIOD (MASK + 1)

/* How many ticks may pass, spread in every way over all accesses: while interrupts are masked and the alarm is set, from the
 * first interrupt until its handler has ended, and from then on. */
struct allowances {
	u32 masked, first, later;
	bool twice; /* another alarm was set before */
};

/* Whatever phase the counter has, and with a wrap before, during or after: two readings, with interrupts masked. */
static void reading(struct allowances may)
{
	u32 phase = choose(2 * PERIOD);
	u64 first;
	while (phase--) {
		model_tick();
		if (model_line())
			serve();
	}
	allowance = may.masked;
	first = read_clock();
	if (read_clock() < first && !model.overrun)
		wrong("the clock went back", first, 0);
}

/* Set an alarm anywhere from the past to three periods ahead. It has to come once, not before its checkpoint, and after that
 * within the time that was let pass. */
static void alarm_once(struct allowances may)
{
	u32 phase = choose(PERIOD + 2), left, serves = 0;
	u64 checkpoint;
	bool done = false;
	while (phase--) {
		model_tick();
		if (model_line())
			serve();
	}
	checkpoint = true_ns() + choose(3 * PERIOD + 2);
	checkpoint -= checkpoint < 2 ? checkpoint : 2;
	allowance = may.masked;
	if (may.twice) {
		timer_set(choose(2) ? checkpoint + 4 : checkpoint - (checkpoint < 4 ? checkpoint : 4));
		read_clock();
	}
	timer_set(checkpoint);
	if (timer_next() != checkpoint)
		wrong("another checkpoint than the one set", timer_next(), checkpoint);
	model_pass(before_access());
	if (checkpoint < true_ns())
		checkpoint = true_ns();
	for (left = 6 * PERIOD; left && !model.overrun; left--) {
		if (!model_line()) {
			model_tick();
			continue;
		}
		if (serves < 2)
			allowance = serves ? may.later : may.first;
		serves++;
		model_pass(before_access());
		if (serve()) {
			if (done)
				wrong("the alarm came twice", checkpoint, 0);
			if (true_ns() > checkpoint + passed)
				wrong("the alarm came late", checkpoint, passed);
			done = true;
		}
	}
	if (!done && !model.overrun)
		wrong("the alarm never came", checkpoint, 0);
	if (!model.overrun && timer_next() != TIMER_NEVER)
		wrong("a checkpoint stayed", timer_next(), 0);
}

/* A checkpoint that was taken back brings nothing; far ahead, nothing but wraps interrupts. */
static void alarm_far(struct allowances may)
{
	u32 phase = choose(PERIOD + 2), wraps = 0, left;
	bool never = choose(2);
	while (phase--) {
		model_tick();
		if (model_line())
			serve();
	}
	allowance = may.masked;
	if (choose(2))
		timer_set(true_ns() + 3);
	timer_set(never ? TIMER_NEVER : true_ns() + 20 * PERIOD);
	allowance = 0;
	model.pended = false;
	for (left = 4 * PERIOD; left && !model.overrun; left--) {
		model_tick();
		if (model_line()) {
			if (!model.wrap)
				wrong("an interrupt that is no wrap", model.match, model.pended);
			if (serve())
				wrong("an alarm that nobody wants", 0, 0);
			wraps++;
		}
	}
	if (!model.overrun && wraps > 5)
		wrong("more interrupts than wraps", wraps, 0);
}

static void all(const char *name, void (*scenario)(struct allowances), struct allowances may)
{
	u64 runs = 0, kept = 0;
	memset(chosen, 0, sizeof chosen);
	choices = 0;
	do {
		start();
		scenario(may);
		runs++;
		kept += !model.overrun;
	} while (next_combination());
	if (!kept)
		wrong("nothing was tried", runs, kept);
	printf("  %-36s %9llu interleavings, %llu within the contract\n", name, (unsigned long long)runs,
	       (unsigned long long)kept);
	fflush(stdout);
}

/* ---- the published order of the handler ---- */
#if !TIMER_DOWN && TIMER_BITS == 4

/* Match first, against an epoch that the pending wrap has not advanced yet (Algorithm 5). */
static bool published_interrupt(u64 *epoch, u64 checkpoint)
{
	bool due = false;
	if (model.match) {
		device_match_done();
		due = *epoch == (checkpoint & ~(u64)MASK);
	}
	if (device_wrapped()) {
		device_wrap_done();
		*epoch += PERIOD;
	}
	return due;
}

/* Counter of 4 bits, checkpoint 18, interrupts masked from 10 to 20: the event is lost for good in the published order, and
 * comes at 20 in ours. */
static void published_order(void)
{
	u64 epoch = 0, at = 0;
	u32 left;
	start();
	timer_set(18);
	model_pass((u32)(10 - true_ns()));
	device_compare(18 & MASK); /* it has compare on all the time */
	model_pass((u32)(20 - true_ns()));
	for (left = 8 * PERIOD; left; left--, model_tick())
		if (model_line() && published_interrupt(&epoch, 18))
			wrong("the published order is said to lose this event", true_ns(), 18);
	if (epoch < 8 * PERIOD)
		wrong("the published order was not played", epoch, 0);

	start();
	timer_set(18);
	model_pass((u32)(20 - true_ns()));
	for (left = 8 * PERIOD; left && !at; left--, model_tick())
		if (model_line() && serve())
			at = true_ns();
	if (at != 20)
		wrong("the repaired order has to bring the event at 20", at, 20);
	printf("  %-28s loses checkpoint 18 at 20; repaired it comes at 20\n", "published order");
}
#endif

int main(void)
{
	printf("%s, %u bits\n", TIMER_DEVICE, TIMER_BITS);
	u32 most = TIMER_BITS == 3 ? PERIOD - 1 : 5; /* of 16 ticks that is not every spread, but every single race */
	all("reading the clock", reading, (struct allowances){.masked = PERIOD + (TIMER_BITS == 3 ? 4 : 0)});
	all("alarm set while time passes", alarm_once, (struct allowances){.masked = most});
	all("first interrupt late", alarm_once, (struct allowances){.first = most});
	all("alarm and all interrupts late", alarm_once, (struct allowances){.masked = 1, .first = 1, .later = 1});
	all("an alarm in place of another", alarm_once, (struct allowances){.masked = 3, .twice = true});
	all("no alarm", alarm_far, (struct allowances){.masked = 4});
#if !TIMER_DOWN && TIMER_BITS == 4
	published_order();
#endif
	return 0;
}
