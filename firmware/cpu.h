/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The processor: Cortex-M3 and M4F (ARMv7-M). Interrupt mask, switch interrupt, memory protection, the way to a debugger. */
#ifndef TIERCE_CPU_H
#define TIERCE_CPU_H

#include "types.h"

enum {
	CPU_ICSR = 0xe000ed04, /* interrupt control and state */
	CPU_PEND_SWITCH = 1 << 28,
	CPU_CCR = 0xe000ed14,
	CPU_SHPR2 = 0xe000ed1c,
	CPU_SHPR3 = 0xe000ed20, /* priorities of system handlers */
	CPU_SHCSR = 0xe000ed24, /* enables memory, bus and usage faults */
	CPU_CFSR = 0xe000ed28,	/* what a fault was */
	CPU_HFSR = 0xe000ed2c,
	CPU_MMFAR = 0xe000ed34,
	CPU_CPACR = 0xe000ed88,		/* access to the FPU */
	CPU_NVIC_PRIORITY = 0xe000e400, /* a byte per interrupt */
	MPU_TYPE = 0xe000ed90,
	MPU_CONTROL = 0xe000ed94,
	MPU_REGION = 0xe000ed9c, /* base address, with the region's number */
	MPU_SIZE = 0xe000eda0,
};

/* Interrupts masked from here to cpu_unmask(what this gave). */
static inline u32 cpu_mask(void)
{
	u32 before;
	__asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(before)::"memory");
	return before;
}
/* The switch interrupt, if it is pending, comes here. */
static inline void cpu_unmask(u32 before)
{
	__asm__ volatile("msr primask, %0\n\tisb" ::"r"(before) : "memory");
}
static inline void cpu_pend_switch(void)
{
	io_write(CPU_ICSR, CPU_PEND_SWITCH);
}
static inline bool cpu_switch_pending(void)
{
	return io_read(CPU_ICSR) & CPU_PEND_SWITCH;
}
static inline bool cpu_in_interrupt(void)
{
	u32 number;
	__asm__ volatile("mrs %0, ipsr" : "=r"(number));
	return number != 0;
}
static inline void cpu_wait_for_interrupt(void)
{
	__asm__ volatile("dsb\n\twfi" ::: "memory");
}

/* Exceptions, FPU, memory protection: once, before anything else. */
void cpu_init(void);
/* From main's context to that of the first decision. */
void __attribute__((noreturn)) cpu_start(void);
/* The 32 bytes at `address` are not to be touched; instead of those before. */
static inline void cpu_guard(const void *address)
{
	io_write(MPU_REGION, (u32)(uintptr_t)address | 1 << 4);
}

/* ---- semihosting: a debugger, or QEMU, does what is asked for ---- */

static inline u32 host_call(u32 operation, const void *arguments)
{
	register u32 r0 __asm__("r0") = operation;
	register const void *r1 __asm__("r1") = arguments;
	__asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
	return r0;
}

/* ---- the safe state ---- */

/* Interrupts off, outputs off (board_safe), what happened and where is reported; never comes back. */
void __attribute__((noreturn, cold)) kernel_fault(const char *file, u32 line, const char *reason);
/* The board's own part of it: whatever must not stay on. */
void board_safe(void);

#endif
