/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TIM2 of the STM32: F1 (TIMER_BITS 16), F2 and F4 (32). Counts up to ARR or down from it, compares for equality. Tested against a model of
 * the registers, compiled for the chips; it has not run on silicon.
 */
#ifndef TIERCE_TIMER_DEVICE_H
#define TIERCE_TIMER_DEVICE_H

#ifndef TIMER_BITS
#define TIMER_BITS 32
#endif
#ifndef TIMER_INPUT_HZ
#define TIMER_INPUT_HZ 84000000u
#endif
#ifndef TIMER_DIVIDE
#define TIMER_DIVIDE 1u
#endif
#ifndef TIMER_HZ
#define TIMER_HZ (TIMER_INPUT_HZ / TIMER_DIVIDE)
#endif
#ifndef STM32_CLOCKS /* RCC_APB1ENR: F2, F4; F1 has it at 0x4002101c */
#define STM32_CLOCKS 0x40023840
#endif
#ifndef TIMER_DOWN
#define TIMER_DOWN 0
#endif
#define TIMER_MASK     (0xffffffffu >> (32 - TIMER_BITS))
#define TIMER_ORIGIN   (TIMER_DOWN ? TIMER_MASK : 0u) /* counting down, the flag is set when it is loaded again */
#define TIMER_RELATIVE 0
#define TIMER_IRQ      28u

enum {
	TIM2_CONTROL = 0x40000000,    /* CR1 */
	TIM2_INTERRUPTS = 0x4000000c, /* DIER */
	TIM2_FLAGS = 0x40000010,      /* SR: a bit is cleared by writing 0, 1 leaves it */
	TIM2_GENERATE = 0x40000014,   /* EGR */
	TIM2_COUNT = 0x40000024,      /* CNT */
	TIM2_PRESCALE = 0x40000028,   /* PSC */
	TIM2_RELOAD = 0x4000002c,     /* ARR */
	TIM2_COMPARE = 0x40000034,    /* CCR1 */

	TIM2_ENABLE = 1 << 0,
	TIM2_OVERFLOW_ONLY = 1 << 2,
	TIM2_MODE = TIM2_OVERFLOW_ONLY | TIMER_DOWN << 4,
	TIM2_UPDATE = 1 << 0,
	TIM2_MATCH = 1 << 1,

	NVIC_ENABLE = 0xe000e100,
	NVIC_PEND = 0xe000e200,
};

static inline void device_start(void)
{
	io_write(STM32_CLOCKS, io_read(STM32_CLOCKS) | 1);
	io_write(TIM2_CONTROL, TIM2_MODE);
	io_write(TIM2_PRESCALE, TIMER_DIVIDE - 1);
	io_write(TIM2_RELOAD, TIMER_MASK);
	io_write(TIM2_GENERATE, TIM2_UPDATE); /* takes the prescaler over, counter to its begin */
	io_write(TIM2_FLAGS, 0);
	io_write(TIM2_INTERRUPTS, TIM2_UPDATE);
	io_write(TIM2_CONTROL, TIM2_MODE | TIM2_ENABLE);
	io_write(NVIC_ENABLE, 1u << TIMER_IRQ);
}
static inline u32 device_count(void)
{
	return io_read(TIM2_COUNT);
}
static inline bool device_wrapped(void)
{
	return io_read(TIM2_FLAGS) & TIM2_UPDATE;
}
static inline void device_wrap_done(void)
{
	io_write(TIM2_FLAGS, ~(u32)TIM2_UPDATE);
}
static inline void device_compare_off(void)
{
	io_write(TIM2_INTERRUPTS, TIM2_UPDATE);
}
static inline void device_compare(u32 count)
{
	io_write(TIM2_COMPARE, count);
	io_write(TIM2_INTERRUPTS, TIM2_UPDATE | TIM2_MATCH);
}
static inline void device_match_done(void)
{
	io_write(TIM2_FLAGS, ~(u32)TIM2_MATCH);
}
static inline void device_pend(void)
{
	io_write(NVIC_PEND, 1u << TIMER_IRQ);
}

#endif
