/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A task as ExSched's paper has it (Figure 6), with the calls of exsched.h: NR_JOBS jobs of 1 ms in 10 ms. Prints JSON. */
#include "exsched.h"
#include <stdio.h>

#define NR_JOBS 50

int main(void)
{
	if (rt_enter() || rt_set_wcet(2000000) || rt_set_period(10000000) || rt_set_priority(10) || rt_run(0)) {
		printf("{\"why\":\"%s\"}\n", tierce_why(rt_task.own));
		return 1;
	}
	for (int i = 0; i < NR_JOBS; i++) {
		for (volatile int work = 0; work < 100000; work = work + 1)
			;
		rt_wait_for_period();
	}
	printf("{\"jobs\":%llu,\"misses\":%llu}\n", (unsigned long long)tierce_jobs(rt_task.own),
	       (unsigned long long)tierce_misses(rt_task.own));
	return rt_exit();
}
