/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work: a loop whose length is known, or changes of numbers in memory. */

static volatile uint64_t sink;

enum { LINE = 64 / sizeof(uint64_t) };
static uint64_t *numbers, numbers_at;

/* Round and round through the table of --memory. */
static void change_numbers(void)
{
	uint64_t n = (uint64_t)set.memory / sizeof *numbers, at = numbers_at;
	for (int i = 0; i < WORK_STEPS; i++) {
		numbers[at] = numbers[at] * 3 + 1;
		at = at + LINE < n ? at + LINE : 0;
	}
	numbers_at = at;
}

static void work_unit(void)
{
	uint64_t x = sink;
	if (numbers) {
		change_numbers();
		return;
	}
	for (int i = 0; i < WORK_STEPS; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(x)); /* one step at a time: no unrolling into something else */
	}
	sink = x;
}

/* Time of one unit with nobody in between: the shortest of many short stretches. Right even on a busy CPU. */
static double unit_ns(void)
{
	enum { STRETCHES = 100, UNITS = 16 };
	ns_t best = INT64_MAX;
	for (int i = 0; i < STRETCHES; i++) {
		ns_t before = now();
		for (int k = 0; k < UNITS; k++)
			work_unit();
		ns_t took = now() - before;
		if (took < best)
			best = took;
	}
	return (double)best / UNITS;
}

/* --- being scheduled -----------------------------------------------------------------------------------------------
 */
