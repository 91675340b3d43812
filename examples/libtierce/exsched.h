/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The calls by which a task of ExSched (Asberg et al., 2012) uses its scheduler, on top of libtierce. There, periods and priorities were
 * for a kernel module; here, budget and period are asked of the manager, and the priority is what the request is worth. Times are in ns.
 * One task for each process. All return 0, or -1.
 */
#ifndef EXSCHED_H
#define EXSCHED_H

#include <libtierce.h>
#include <stddef.h>

static struct {
	struct tierce *own;
	uint64_t wcet_ns, period_ns;
	int64_t priority;
} rt_task;

static int rt_enter(void)
{
	rt_task.own = tierce_open(NULL);
	return rt_task.own ? 0 : -1;
}

static int rt_set_wcet(uint64_t ns)
{
	rt_task.wcet_ns = ns;
	return 0;
}

static int rt_set_period(uint64_t ns)
{
	rt_task.period_ns = ns;
	return 0;
}

static int rt_set_priority(int priority)
{
	rt_task.priority = priority;
	return 0;
}

/* The first job begins at the first release. */
static int rt_run(uint64_t timeout_ns)
{
	(void)timeout_ns;
	if (tierce_reserve(rt_task.own, rt_task.wcet_ns, rt_task.period_ns, rt_task.priority, 0) != 0)
		return -1;
	return tierce_wait(rt_task.own) < 0 ? -1 : 0;
}

/* The job is done. */
static int rt_wait_for_period(void)
{
	return tierce_wait(rt_task.own) < 0 ? -1 : 0;
}

static int rt_exit(void)
{
	int result = tierce_cancel(rt_task.own);

	tierce_close(rt_task.own);
	rt_task.own = NULL;
	return result;
}

#endif
