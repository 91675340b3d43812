/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Instructions from one FreeRTOS task to the next, on the board and with the settings of `scripts/firmware cost`: two tasks of
 * one priority that yield, or wake each other by notification and wait.
 */
#include "FreeRTOS.h"
#include "task.h"
#include "host.h"

#define ROUNDS 2000u

extern u32 link_data_from[], link_data[], link_data_end[], link_bss[], link_bss_end[], link_stack_end[];
void svc_entry(void);
void switch_entry(void);

static TaskHandle_t one, two;
static const char *way;
static u32 switches;

static u32 ticks(void) /* of 40 ns, up */
{
	return io_read(0x40028018);
}

void vPortSetupTimerInterrupt(void)
{
	/* no tick */
}

static void turn(TaskHandle_t other)
{
	if (way[0] == 'y') {
		taskYIELD();
	} else {
		xTaskNotifyGive(other);
		ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
	}
	switches++;
}
static void first(void *argument)
{
	u32 i, begin, before;
	u64 tenths;
	(void)argument;
	for (i = 0; i < 10; i++)
		turn(two);
	begin = ticks();
	before = switches;
	for (i = 0; i < ROUNDS; i++)
		turn(two);
	tenths = (u64)(ticks() - begin) * 40 * 10 / 1024 / (switches - before);
	host_put("  FreeRTOS ", way, ": ");
	host_number(tenths / 10);
	host_put(".", "", "");
	host_number(tenths % 10);
	host_put(" instructions\n", "", "");
	host_exit(switches - before < 2 * ROUNDS - 2);
}
static void second(void *argument)
{
	(void)argument;
	if (way[0] != 'y')
		ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
	for (;;)
		turn(one);
}

static void __attribute__((noreturn)) reset(void)
{
	static char line[256];
	u32 *from = link_data_from, *to;
	for (to = link_data; to < link_data_end;)
		*to++ = *from++;
	for (to = link_bss; to < link_bss_end;)
		*to++ = 0;
	io_write(CPU_CPACR, io_read(CPU_CPACR) | 0xfu << 20);
	host_arguments(line, sizeof line);
	for (way = line; *way && *way != ' '; way++)
		;
	way += *way == ' ';
	xTaskCreate(first, "one", 256, 0, 1, &one);
	xTaskCreate(second, "two", 256, 0, 1, &two);
	vTaskStartScheduler();
	host_exit(1);
}
static void fault(void)
{
	host_put("fault\n", "", "");
	host_exit(2);
}

__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    [0] = (void (*)(void))link_stack_end, [1] = reset, [2 ... 10] = fault, [11] = svc_entry, [14] = switch_entry,
};
