/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Timer of the MPS2 boards: the dual timer of Arm's CMSDK. Module 1 counts down without end and is the clock, module 2
 * counts down once and is the alarm. The flag of module 1 is set when it reaches 0, not when it goes on from there, so a
 * period begins with 0. TIMER_PRESCALE 0, 1: a tick is 1 or 16 cycles of 25 MHz, 40 or 640 ns.
 */
#ifndef TIERCE_TIMER_DEVICE_H
#define TIERCE_TIMER_DEVICE_H

#ifndef TIMER_BITS
#define TIMER_BITS 32
#endif
#ifndef TIMER_PRESCALE
#define TIMER_PRESCALE 0
#endif
#ifndef TIMER_HZ
#define TIMER_HZ (25000000u >> 4 * TIMER_PRESCALE)
#endif
#define TIMER_DOWN     1
#define TIMER_ORIGIN   0u
#define TIMER_RELATIVE 1
#define TIMER_IRQ      10u

enum {
	DUAL_CLOCK = 0x40002000,
	DUAL_ALARM = 0x40002020,
	DUAL_LOAD = 0x00,
	DUAL_VALUE = 0x04,
	DUAL_CONTROL = 0x08,
	DUAL_CLEAR = 0x0c,
	DUAL_FLAG = 0x10,

	DUAL_ONE_SHOT = 1 << 0,
	DUAL_SIZE = (TIMER_BITS > 16) << 1,
	DUAL_PRESCALE = TIMER_PRESCALE << 2,
	DUAL_INTERRUPT = 1 << 5,
	DUAL_ENABLE = 1 << 7,
	DUAL_MODE = DUAL_SIZE | DUAL_PRESCALE | DUAL_INTERRUPT,

	NVIC_ENABLE = 0xe000e100,
	NVIC_PEND = 0xe000e200,
};

static inline void device_start(void)
{
	io_write(DUAL_CLOCK + DUAL_CONTROL, DUAL_MODE);
	io_write(DUAL_ALARM + DUAL_CONTROL, DUAL_MODE | DUAL_ONE_SHOT);
	io_write(DUAL_CLOCK + DUAL_LOAD, 0xffffffffu >> (32 - TIMER_BITS));
	io_write(DUAL_CLOCK + DUAL_CONTROL, DUAL_MODE | DUAL_ENABLE);
	io_write(NVIC_ENABLE, 1u << TIMER_IRQ);
}
static inline u32 device_count(void)
{
	return io_read(DUAL_CLOCK + DUAL_VALUE);
}
static inline bool device_wrapped(void)
{
	return io_read(DUAL_CLOCK + DUAL_FLAG) & 1;
}
static inline void device_wrap_done(void)
{
	io_write(DUAL_CLOCK + DUAL_CLEAR, 1);
}
static inline void device_compare_off(void)
{
	io_write(DUAL_ALARM + DUAL_CONTROL, DUAL_MODE | DUAL_ONE_SHOT);
}
static inline void device_compare(u32 ticks)
{
	device_compare_off();
	io_write(DUAL_ALARM + DUAL_LOAD, ticks);
	io_write(DUAL_ALARM + DUAL_CONTROL, DUAL_MODE | DUAL_ONE_SHOT | DUAL_ENABLE);
}
static inline void device_match_done(void)
{
	io_write(DUAL_ALARM + DUAL_CLEAR, 1);
}
static inline void device_pend(void)
{
	io_write(NVIC_PEND, 1u << TIMER_IRQ);
}

#endif
