/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The core of the context switch timer, over the registers of TIMER_DEVICE, a header that gives
 *
 *   TIMER_BITS	     width of the counter, at most 32
 *   TIMER_HZ	     ticks per second
 *   TIMER_DOWN	     1: it counts down
 *   TIMER_ORIGIN    what the counter shows when the wrap flag is set
 *   TIMER_RELATIVE  1: the compare register takes ticks to go (one-shot), 0: what the counter will show
 *
 *   device_start()			  counter and wrap interrupt on, compare off
 *   device_count()			  the counter
 *   device_wrapped(), device_wrap_done()	  wrap flag: is it set; clear it
 *   device_compare(value), device_compare_off()  set compare and let it interrupt; it interrupts no more
 *   device_match_done()		  clear the match flag
 *   device_pend()			  make the interrupt pending
 *
 * This is the driver of Golchin's thesis (2017, Algorithms 1 to 5), with two differences. His interrupt handler looks at the
 * match before the wrap: with both pending, the match is compared with an epoch that is not advanced yet, cleared, and the
 * event is lost. Here the wrap comes first, and what decides is the 64-bit time, so that a flag too many or too early does
 * no harm. And a checkpoint beyond the next wrap keeps compare off until then, instead of interrupting once per period.
 */
#include "timer.h"
#include TIMER_DEVICE

#define MASK   (0xffffffffu >> (32 - TIMER_BITS))
#define SECOND 1000000000u
#define TICK_NS (SECOND / TIMER_HZ) /* where it is an integer */

static struct {
	u64 begin_ticks, begin_ns; /* of the period that the last serviced wrap began */
	u64 checkpoint_ns;
	u32 wraps;
} timer = {.checkpoint_ns = TIMER_NEVER};

static inline u32 device_elapsed(void)
{
	return (TIMER_DOWN ? TIMER_ORIGIN - device_count() : device_count() - TIMER_ORIGIN) & MASK;
}

/* The counter first, then the flag: without a wrap before the second, there was none before the first. With one, whatever
 * is read now belongs to the new period. */
static inline u64 ticks_now(void)
{
	u32 elapsed = device_elapsed();
	if (!device_wrapped())
		return timer.begin_ticks + elapsed;
	return timer.begin_ticks + MASK + 1ull + device_elapsed();
}

static inline u64 to_ns(u64 ticks)
{
	if (SECOND % TIMER_HZ == 0)
		return ticks * TICK_NS;
	return ticks / TIMER_HZ * SECOND + ticks % TIMER_HZ * SECOND / TIMER_HZ;
}

/* The least number of ticks that takes at least `ns`. Nearly always 32 bits will do, which spares a long division. */
static inline u64 to_ticks(u64 ns)
{
	if (SECOND % TIMER_HZ)
		return ns / SECOND * TIMER_HZ + (ns % SECOND * TIMER_HZ + SECOND - 1) / SECOND;
	if (ns <= 0xffffffffu - TICK_NS)
		return ((u32)ns + TICK_NS - 1) / TICK_NS;
	return (ns + TICK_NS - 1) / TICK_NS;
}

/* Compare is set first and the time looked at again afterwards: a checkpoint that passed in between is not waited for. What
 * counts down from now on cannot miss it. */
static void arm(u64 ticks)
{
	u64 now_ns = to_ns(ticks), more = TIMER_NEVER;
	if (timer.checkpoint_ns <= now_ns) {
		device_pend();
		return;
	}
	if (timer.checkpoint_ns != TIMER_NEVER)
		more = to_ticks(timer.checkpoint_ns - now_ns);
	if (more > MASK) {
		device_compare_off(); /* the next wrap looks again */
		device_match_done();
		return;
	}
	device_match_done();
	if (TIMER_RELATIVE)
		device_compare((u32)more);
	else
		device_compare((TIMER_DOWN ? TIMER_ORIGIN - (u32)(ticks + more) : TIMER_ORIGIN + (u32)(ticks + more)) & MASK);
	if (!TIMER_RELATIVE && timer.checkpoint_ns <= to_ns(ticks_now()))
		device_pend();
}

void timer_start(void)
{
	timer.begin_ticks = 0;
	timer.begin_ns = 0;
	timer.checkpoint_ns = TIMER_NEVER;
	timer.wraps = 0;
	device_start();
}

/* As ticks_now, at every switch: one product of 32 bits. */
u64 timer_now(void)
{
	u64 begin_ns = timer.begin_ns;
	u32 elapsed;
	if (SECOND % TIMER_HZ)
		return to_ns(ticks_now());
	elapsed = device_elapsed();
	if (device_wrapped()) {
		begin_ns += (MASK + 1ull) * TICK_NS;
		elapsed = device_elapsed();
	}
	return begin_ns + (u64)elapsed * TICK_NS;
}

void timer_set(u64 ns)
{
	timer.checkpoint_ns = ns;
	arm(ticks_now());
}

u64 timer_next(void)
{
	return timer.checkpoint_ns;
}

bool timer_interrupt(u64 now)
{
	if (device_wrapped()) {
		device_wrap_done();
		timer.begin_ticks += MASK + 1ull;
		timer.begin_ns = to_ns(timer.begin_ticks);
		timer.wraps++;
	}
	device_match_done();
	if (timer.checkpoint_ns == TIMER_NEVER)
		return false;
	if (timer.checkpoint_ns <= now) {
		timer.checkpoint_ns = TIMER_NEVER;
		device_compare_off();
		return true;
	}
	arm(ticks_now());
	return false;
}

u32 timer_wraps(void)
{
	return timer.wraps;
}
