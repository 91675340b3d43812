/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Smallest, largest and quantiles of many values. */

static int by_size(const void *a, const void *b)
{
	ns_t x = *(const ns_t *)a, y = *(const ns_t *)b;
	return (x > y) - (x < y);
}

/* "NAME_ns": {...}; sorts the values. */
static void print_spread(const char *name, ns_t *values, long n)
{
	double sum = 0;
	qsort(values, (size_t)n, sizeof *values, by_size);
	for (long i = 0; i < n; i++)
		sum += (double)values[i];
	printf("\"%s_ns\":{\"n\":%ld", name, n);
	if (n)
		printf(",\"min\":%" PRId64 ",\"p1\":%" PRId64 ",\"avg\":%.0f,\"p50\":%" PRId64 ",\"p99\":%" PRId64
		       ",\"max\":%" PRId64,
		       values[0], values[n / 100], sum / (double)n, values[n / 2], values[n - 1 - n / 100], values[n - 1]);
	printf("}");
}

static void *table(long n, size_t size)
{
	void *memory = calloc((size_t)n + 1, size);
	if (!memory)
		fail("no memory for %ld values", n);
	return memory;
}

/* --- service ---------------------------------------------------------------------------------------------------------
 */
