/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A timer and an interrupt controller made of variables: what the drivers' registers do, tick by tick. Before every access
 * to a register time passes, as much as before_access() says.
 *
 * MODEL_STM32, MODEL_EFM32: a counter that wraps at ARR or TOP, equality compare. MODEL_MPS2: two counters, down to 0.
 */
#ifndef TIERCE_TIMER_MODEL_H
#define TIERCE_TIMER_MODEL_H

#include <stdio.h>
#include <stdlib.h>

static struct {
	u64 ticks; /* true time: ticks since the counter was started */
	u32 count, top, compare, enabled, running, alarm, alarm_running;
	bool wrap, match, pended;
	bool overrun; /* a second wrap while the first was pending: nobody can know of it */
} model;

static u32 before_access(void);		 /* ticks */
static inline bool match_at_write(void); /* does compare, set to what the counter shows, match at once? */

static void __attribute__((noreturn)) wrong(const char *what, u64 a, u64 b);

static void wrap(void)
{
	model.overrun |= model.wrap;
	model.wrap = true;
}

static void model_tick(void)
{
	if (!model.running)
		return;
	model.ticks++;
#ifdef MODEL_MPS2
	model.count = (model.count - 1) & (0xffffffffu >> (32 - TIMER_BITS));
	if (!model.count)
		wrap();
	if (model.alarm_running && !--model.alarm) {
		model.alarm_running = 0;
		model.match = true;
	}
#else
	if (TIMER_DOWN ? model.count == 0 : model.count == model.top) {
		model.count = TIMER_DOWN ? model.top : 0;
		wrap();
	} else {
		model.count += TIMER_DOWN ? -1u : 1;
	}
	model.match |= model.count == model.compare;
#endif
}

static void model_pass(u32 ticks)
{
	while (ticks--)
		model_tick();
}

/* Is the interrupt pending? */
static bool model_line(void)
{
#if defined MODEL_STM32
	return model.pended || (model.wrap && (model.enabled & TIM2_UPDATE)) || (model.match && (model.enabled & TIM2_MATCH));
#elif defined MODEL_EFM32
	return model.pended || (model.wrap && (model.enabled & TIMER3_OVERFLOW)) ||
	       (model.match && (model.enabled & TIMER3_MATCH));
#else
	return model.pended || model.wrap || model.match;
#endif
}

u32 io_read(u32 address)
{
	model_pass(before_access());
	switch (address) {
#if defined MODEL_STM32
	case TIM2_COUNT: return model.count;
	case TIM2_FLAGS: return (model.wrap ? TIM2_UPDATE : 0) | (model.match ? TIM2_MATCH : 0);
	case STM32_CLOCKS: return 0;
#elif defined MODEL_EFM32
	case TIMER3_COUNT: return model.count;
	case TIMER3_FLAGS: return (model.wrap ? TIMER3_OVERFLOW : 0) | (model.match ? TIMER3_MATCH : 0);
	case CMU_CLOCKS: return 0;
#else
	case DUAL_CLOCK + DUAL_VALUE: return model.count;
	case DUAL_CLOCK + DUAL_FLAG: return model.wrap;
#endif
	}
	wrong("read of a register that the model lacks", address, 0);
}

#ifndef MODEL_MPS2
static void set_compare(u32 value)
{
	if (value > model.top)
		wrong("compare beyond the counter", value, model.top);
	model.compare = value;
	model.match |= value == model.count && match_at_write();
}
#endif

void io_write(u32 address, u32 value)
{
	model_pass(before_access());
	switch (address) {
	case NVIC_ENABLE: return;
	case NVIC_PEND: model.pended = true; return;
#if defined MODEL_STM32
	case STM32_CLOCKS:
	case TIM2_PRESCALE: return;
	case TIM2_CONTROL: model.running = value & TIM2_ENABLE; return;
	case TIM2_RELOAD: model.top = value; return;
	case TIM2_GENERATE: model.count = TIMER_DOWN ? model.top : 0; return;
	case TIM2_INTERRUPTS: model.enabled = value; return;
	case TIM2_COMPARE: set_compare(value); return;
	case TIM2_FLAGS:
		model.wrap &= value & TIM2_UPDATE;
		model.match = model.match && (value & TIM2_MATCH);
		return;
#elif defined MODEL_EFM32
	case CMU_CLOCKS:
	case TIMER3_CONTROL:
	case TIMER3_CHANNEL: return;
	case TIMER3_TOP: model.top = value; return;
	case TIMER3_COUNT: model.count = value; return;
	case TIMER3_ENABLE: model.enabled = value; return;
	case TIMER3_COMMAND: model.running = value & TIMER3_RUN; return;
	case TIMER3_COMPARE: set_compare(value); return;
	case TIMER3_CLEAR:
		model.wrap = model.wrap && !(value & TIMER3_OVERFLOW);
		model.match = model.match && !(value & TIMER3_MATCH);
		return;
#else
	case DUAL_CLOCK + DUAL_LOAD: model.count = value; return;
	case DUAL_CLOCK + DUAL_CONTROL: model.running = value & DUAL_ENABLE; return;
	case DUAL_CLOCK + DUAL_CLEAR: model.wrap = false; return;
	case DUAL_ALARM + DUAL_LOAD: model.alarm = value; return;
	case DUAL_ALARM + DUAL_CONTROL: model.alarm_running = (value & DUAL_ENABLE) && model.alarm; return;
	case DUAL_ALARM + DUAL_CLEAR: model.match = false; return;
#endif
	}
	wrong("write of a register that the model lacks", address, value);
}

#endif
