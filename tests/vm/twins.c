/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two threads of one name and one period that do different things: `light` works 1 ms in every 20 ms, `heavy` 4 ms. */
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000L
#define PERIOD_NS (20 * MS)

static void work(long ns)
{
	struct timespec now;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	end = now.tv_sec * 1000 * MS + now.tv_nsec + ns;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while (now.tv_sec * 1000 * MS + now.tv_nsec < end);
}

static void every_period(long work_ns)
{
	struct timespec next;

	clock_gettime(CLOCK_MONOTONIC, &next);
	for (;;) {
		work(work_ns);
		next.tv_nsec += PERIOD_NS;
		if (next.tv_nsec >= 1000 * MS) {
			next.tv_nsec -= 1000 * MS;
			next.tv_sec++;
		}
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static void *light(void *nothing)
{
	every_period(1 * MS);
	return nothing;
}

static void *heavy(void *nothing)
{
	every_period(4 * MS);
	return nothing;
}

int main(void)
{
	void *(*routines[])(void *) = {light, heavy};
	pthread_t threads[2];
	int i;

	for (i = 0; i < 2; i++) {
		/* The argument is a function, too: it is not taken for the routine. */
		if (pthread_create(&threads[i], NULL, routines[i], (void *)main))
			return 1;
		pthread_setname_np(threads[i], "worker");
	}
	for (;;)
		pause();
}
