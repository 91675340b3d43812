/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cortex-M: reset, vectors, the switch, faults. */
#include "kernel.h"
#include "host.h"
#include "timer.h"
#include TIMER_DEVICE

#define VECTORS (16 + 64)

extern u32 link_data_from[], link_data[], link_data_end[], link_bss[], link_bss_end[], link_stack_end[];
u32 *kernel_switch(u32 *sp);
void kernel_timer(void);
int main(void);

static void __attribute__((noreturn)) reset(void)
{
	u32 *from = link_data_from, *to;
	for (to = link_data; to < link_data_end;)
		*to++ = *from++;
	for (to = link_bss; to < link_bss_end;)
		*to++ = 0;
	cpu_init();
	host_exit((u32)main());
}

void cpu_init(void)
{
	io_write(CPU_SHPR3, 0xffu << 16); /* the switch comes last */
	io_write(CPU_NVIC_PRIORITY + (TIMER_IRQ & ~3u), 0x80u << 8 * (TIMER_IRQ & 3));
	io_write(CPU_CCR, io_read(CPU_CCR) | 1 << 9 | 1 << 4); /* stacks aligned to 8; division by zero is a fault */
	io_write(CPU_SHCSR, io_read(CPU_SHCSR) | 7u << 16);    /* faults have their own exceptions */
#ifdef __ARM_FP
	io_write(CPU_CPACR, io_read(CPU_CPACR) | 0xfu << 20); /* FPU on; its state is saved lazily, as after reset */
#endif
	io_write(MPU_REGION, 1 << 4);
	io_write(MPU_SIZE, 1u << 28 | 4 << 1 | 1); /* 32 bytes, no access */
	__asm__ volatile("dsb\n\tisb");
}

/* Saved below what the processor saves itself: r4 to r11 and the exception's return code, which says whether s16 to s31
 * have to be saved, too: only if the thread has used the FPU. */
static void __attribute__((naked)) switch_entry(void)
{
	__asm__ volatile("mrs r0, psp\n\t"
#ifdef __ARM_FP
			 "tst lr, #0x10\n\t"
			 "it eq\n\t"
			 "vstmdbeq r0!, {s16-s31}\n\t"
#endif
			 "stmdb r0!, {r4-r11, lr}\n\t"
			 "cpsid i\n\t"
			 "bl kernel_switch\n\t"
			 "cpsie i\n\t"
			 "ldmia r0!, {r4-r11, lr}\n\t"
#ifdef __ARM_FP
			 "tst lr, #0x10\n\t"
			 "it eq\n\t"
			 "vldmiaeq r0!, {s16-s31}\n\t"
#endif
			 "msr psp, r0\n\t"
			 "bx lr");
}

/* Main's own stack becomes that of interrupts; the switch saves this context to a place that is never read. */
void cpu_start(void)
{
	static u32 last[64] __attribute__((aligned(8)));
	io_write(MPU_CONTROL, 1 << 2 | 1); /* the usual map, with the guard in it */
	__asm__ volatile("msr psp, %0\n\t"
			 "mov r0, #2\n\t"
			 "msr control, r0\n\t"
			 "isb\n\t"
			 "cpsie i\n\t"
			 "isb" ::"r"(last + 64)
			 : "r0", "memory");
	kernel_fault(__FILE__, __LINE__, "the context of main runs again");
}

/* ---- what must not happen ---- */

static void __attribute__((noreturn)) safe_state(void)
{
	board_safe();
	host_exit(70);
}

void kernel_fault(const char *file, u32 line, const char *reason)
{
	cpu_mask();
	io_write(MPU_CONTROL, 0);
	host_put("fault: ", file, ":");
	host_number(line);
	host_put(": ", reason, "");
	if (thread_current()->name)
		host_put(" (thread ", thread_current()->name, ")");
	host_put("\n", "", "");
	safe_state();
}

void __attribute__((noreturn, used)) cpu_fault(const u32 *frame)
{
	u32 number, what = io_read(CPU_CFSR), address = io_read(CPU_MMFAR), guard = (u32)(uintptr_t)thread_current()->stack;
	bool overflow = (what & 1 << 4) || ((what & 1 << 7) && address - guard < 32);
	__asm__ volatile("mrs %0, ipsr" : "=r"(number));
	cpu_mask();
	io_write(MPU_CONTROL, 0); /* the frame may lie in the guard */
	host_put("fault: ", "", "");
	if (overflow)
		host_put("stack overflow", "", "");
	else
		host_put("exception ", "", ""), host_number(number), host_put(", status 0x", "", ""), host_hex(what);
	if (thread_current()->name)
		host_put(" (thread ", thread_current()->name, ")");
	if (!(what & (1 << 4 | 1 << 12))) { /* otherwise the processor could not save its state */
		host_put(" at pc 0x", "", "");
		host_hex(frame[6]);
	}
	host_put("\n", "", "");
	safe_state();
}

static void __attribute__((naked)) fault_entry(void)
{
	__asm__ volatile("tst lr, #4\n\t"
			 "ite eq\n\t"
			 "mrseq r0, msp\n\t"
			 "mrsne r0, psp\n\t"
			 "b cpu_fault");
}

static void unexpected(void)
{
	kernel_fault(__FILE__, __LINE__, "an exception that nobody handles");
}

/* Interrupts of devices other than the timer. */
void __attribute__((weak)) board_interrupt(u32 irq)
{
	(void)irq;
	kernel_fault(__FILE__, __LINE__, "an interrupt that nobody handles");
}

static void irq_entry(void)
{
	u32 number;
	__asm__ volatile("mrs %0, ipsr" : "=r"(number));
	kernel_interrupt_begin();
	board_interrupt(number - 16);
	kernel_interrupt_end();
}

__attribute__((section(".vectors"), used)) static void (*const vectors[VECTORS])(void) = {
    [0] = (void (*)(void))link_stack_end,
    [1] = reset,
    [2 ... 6] = fault_entry,
    [7 ... 13] = unexpected,
    [14] = switch_entry,
    [15] = unexpected,
    [16 ... 15 + TIMER_IRQ] = irq_entry,
    [16 + TIMER_IRQ] = kernel_timer,
    [17 + TIMER_IRQ... VECTORS - 1] = irq_entry,
};
