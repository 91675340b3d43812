/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The context switch timer: one clock that never wraps and one absolute alarm, from a hardware counter of 16 or 32 bits.
 *
 * Everything is called with interrupts masked. The counter's wraps extend it to 64 bits: a wrap that is pending and not
 * yet serviced is counted by whoever reads the time. So the time is right as long as no second wrap comes before the first
 * one was serviced: interrupts may be masked for less than one period of the counter (docs/firmware.md lists them).
 *
 * The alarm goes off at the first tick at which the clock has reached the checkpoint, never before. A checkpoint that has
 * passed, also one that passes while it is being set, makes the interrupt pending at once.
 */
#ifndef TIERCE_TIMER_H
#define TIERCE_TIMER_H

#include "types.h"

#define TIMER_NEVER (~0ull)

/* Start the counter at 0 ns, no alarm. */
void timer_start(void);
/* Nanoseconds since then, rounded down. */
u64 timer_now(void);
/* Interrupt at `ns` or as soon as possible after it; replaces the checkpoint before. TIMER_NEVER: none. */
void timer_set(u64 ns);
/* The checkpoint that is set. */
u64 timer_next(void);
/* The timer's interrupt came, `now` was read since. True: the checkpoint has been reached; it is none from now on. */
bool timer_interrupt(u64 now);

/* Wraps serviced so far. */
u32 timer_wraps(void);

#endif
