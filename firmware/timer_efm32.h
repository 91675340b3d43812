/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TIMER3 of the EFM32GG, a counter of 16 bits. Counts up to TOP, channel 0 compares for equality. Tested against a model of
 * the registers, compiled for the chip; it has not run on silicon.
 */
#ifndef TIERCE_TIMER_DEVICE_H
#define TIERCE_TIMER_DEVICE_H

#ifndef TIMER_BITS
#define TIMER_BITS 16
#endif
#ifndef TIMER_PRESCALE /* a power of two, at most 10 */
#define TIMER_PRESCALE 0
#endif
#ifndef TIMER_HZ
#define TIMER_HZ (48000000u >> TIMER_PRESCALE)
#endif
#define TIMER_DOWN     0
#define TIMER_ORIGIN   0u
#define TIMER_RELATIVE 0
#define TIMER_IRQ      14u

enum {
	CMU_CLOCKS = 0x400c8044,     /* HFPERCLKEN0 */
	TIMER3_CONTROL = 0x40010c00, /* CTRL */
	TIMER3_COMMAND = 0x40010c04, /* CMD */
	TIMER3_ENABLE = 0x40010c0c,  /* IEN */
	TIMER3_FLAGS = 0x40010c10,   /* IF */
	TIMER3_CLEAR = 0x40010c18,   /* IFC */
	TIMER3_TOP = 0x40010c1c,
	TIMER3_COUNT = 0x40010c24,   /* CNT */
	TIMER3_CHANNEL = 0x40010c30, /* CC0_CTRL */
	TIMER3_COMPARE = 0x40010c34, /* CC0_CCV */

	TIMER3_CLOCK = 1 << 8,
	TIMER3_DIVIDE = TIMER_PRESCALE << 24,
	TIMER3_RUN = 1 << 0,
	TIMER3_OUTPUT_COMPARE = 2,
	TIMER3_OVERFLOW = 1 << 0,
	TIMER3_MATCH = 1 << 4,

	NVIC_ENABLE = 0xe000e100,
	NVIC_PEND = 0xe000e200,
};

static inline void device_start(void)
{
	io_write(CMU_CLOCKS, io_read(CMU_CLOCKS) | TIMER3_CLOCK);
	io_write(TIMER3_CONTROL, TIMER3_DIVIDE);
	io_write(TIMER3_TOP, 0xffffffffu >> (32 - TIMER_BITS));
	io_write(TIMER3_COUNT, 0);
	io_write(TIMER3_CHANNEL, TIMER3_OUTPUT_COMPARE);
	io_write(TIMER3_CLEAR, TIMER3_OVERFLOW | TIMER3_MATCH);
	io_write(TIMER3_ENABLE, TIMER3_OVERFLOW);
	io_write(TIMER3_COMMAND, TIMER3_RUN);
	io_write(NVIC_ENABLE, 1u << TIMER_IRQ);
}
static inline u32 device_count(void)
{
	return io_read(TIMER3_COUNT);
}
static inline bool device_wrapped(void)
{
	return io_read(TIMER3_FLAGS) & TIMER3_OVERFLOW;
}
static inline void device_wrap_done(void)
{
	io_write(TIMER3_CLEAR, TIMER3_OVERFLOW);
}
static inline void device_compare_off(void)
{
	io_write(TIMER3_ENABLE, TIMER3_OVERFLOW);
}
static inline void device_compare(u32 count)
{
	io_write(TIMER3_COMPARE, count);
	io_write(TIMER3_ENABLE, TIMER3_OVERFLOW | TIMER3_MATCH);
}
static inline void device_match_done(void)
{
	io_write(TIMER3_CLEAR, TIMER3_MATCH);
}
static inline void device_pend(void)
{
	io_write(NVIC_PEND, 1u << TIMER_IRQ);
}

#endif
