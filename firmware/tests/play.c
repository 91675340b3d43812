/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Plays the loads of a plan that `tierce embed` has turned into PLAN_FILE, and writes the trace and the recording: what a
 * board decides is compared with what the simulator decides. The command line ends in PATH=MILLISECONDS; PATH.trace, PATH.rec.
 */
#include "kernel.h"
#include "host.h"
#include "trace.h"
#include PLAN_FILE

#define THREADS	    16
#define STACK_BYTES 1024

static struct thread threads[THREADS];
static u8 stacks[THREADS][STACK_BYTES] __attribute__((aligned(32)));
static char line[256];
static const char *path;

enum { DEVICE_CONTROL = 0x40000000, DEVICE_VALUE = 0x40000004, DEVICE_RELOAD = 0x40000008 };

void board_safe(void)
{
}

static const char *with(char *end, const char *suffix, const char *whole)
{
	while ((*end++ = *suffix++))
		;
	return whole;
}

/* The end has come, whatever runs. */
void board_interrupt(u32 irq)
{
	static char name[260];
	u32 length = 0;
	(void)irq;
	for (; path[length]; length++)
		name[length] = path[length];
	bool saved = trace_save(with(name + length, ".trace", name), &plan);
	host_exit(!saved || !record_save(with(name + length, ".rec", name)));
}

/* 64 ns a round: 4 instructions of 16 ns. */
static void work(u32 rounds)
{
	if (rounds)
		__asm__ volatile("1: nop\n\tnop\n\tsubs %0, #1\n\tbne 1b" : "+r"(rounds)::"cc");
}

static void play(void *argument)
{
	const struct plan_task *task = argument;
	while (task->busy)
		work(1000);
	for (;;) {
		work((u32)(task->work_ns / 64));
		thread_next_job();
	}
}

int main(void)
{
	u32 i, ms = 0, at = 0;
	char *text;
	host_arguments(line, sizeof line);
	for (text = line; *text; text++)
		if (*text == ' ')
			at = (u32)(text - line) + 1;
	path = line + at;
	for (text = line + at; *text && *text != '='; text++)
		;
	KERNEL_REQUIRE(*text == '=', "play: PATH=MILLISECONDS");
	*text++ = 0;
	while (*text >= '0' && *text <= '9')
		ms = ms * 10 + (u32)(*text++ - '0');
	KERNEL_REQUIRE(plan.tasks <= THREADS, "play: more tasks than threads");
	for (i = 0; i < plan.tasks; i++) {
		if (!plan.task[i].busy && !plan.task[i].period_ns)
			continue;
		threads[i].stack = (u32 *)stacks[i];
		threads[i].stack_end = (u32 *)(stacks[i] + STACK_BYTES);
		thread_make(&threads[i], plan.task[i].name, play, (void *)&plan.task[i]);
		if (!plan.task[i].busy)
			thread_periodic(&threads[i], plan.task[i].phase_ns, plan.task[i].period_ns, plan.task[i].deadline_ns);
	}
	io_write(0xe000e100, 1 << 8);
	io_write(DEVICE_RELOAD, ms * 25000);
	io_write(DEVICE_VALUE, ms * 25000);
	io_write(DEVICE_CONTROL, 1 << 3 | 1);
	kernel_run(&plan);
}
