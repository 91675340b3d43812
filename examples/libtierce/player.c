/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that asks for what it needs: nearly the whole CPU, or, if that does not fit, 2 ms in every 10 ms; later it does with 1.5 ms. It does
 * JOBS jobs of 1 ms, and then waits for what it is told. Prints JSON. Usage: player [JOBS [SOCKET]]. Build: cc -I libtierce player.c libtierce/libtierce.c
 */
#include <libtierce.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void work(long ns)
{
	struct timespec begun, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begun.tv_sec) * 1000000000L + now.tv_nsec - begun.tv_nsec < ns);
}

/* The budget that it has. */
static unsigned long long granted_us(const struct tierce *own)
{
	struct tierce_mode mode;

	return tierce_granted(own, &mode) ? mode.budget_ns / 1000 : 0;
}

int main(int count, char **words)
{
	static const struct tierce_mode wishes[] = {{9800000, 10000000, 3}, {2000000, 10000000, 1}};
	uint64_t jobs = count > 1 ? strtoull(words[1], NULL, 10) : 100;
	struct tierce *own = tierce_open(count > 2 ? words[2] : NULL);
	struct tierce_notice notice = {0};

	if (!own || tierce_reserve_modes(own, wishes, 2, 0) < 0) {
		printf("{\"why\":\"%s\"}\n", tierce_why(own));
		tierce_close(own);
		return 1;
	}
	while (tierce_jobs(own) < jobs && tierce_wait(own) >= 0)
		work(1000000);
	printf("{\"jobs\":%llu,\"misses\":%llu,", (unsigned long long)tierce_jobs(own), (unsigned long long)tierce_misses(own));
	printf("\"granted_us\":%llu,", granted_us(own));
	/* Twice as much as there is: refused, and it keeps what it has. Less is granted. */
	printf("\"more\":%d,", tierce_change(own, 20000000, 10000000, 1));
	printf("\"less\":%d,", tierce_change(own, 1500000, 10000000, 1));
	fflush(stdout);
	printf("\"told\":%d,\"what\":\"", tierce_told(own, &notice, 20000));
	printf("%s\",\"text\":\"%s\",\"left_us\":%llu,", notice.what, notice.text, granted_us(own));
	printf("\"cancel\":%d}\n", tierce_cancel(own)); /* it is over: -1 */
	tierce_close(own);
	return 0;
}
