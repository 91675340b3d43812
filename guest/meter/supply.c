/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* service: one thread that never stops, and what it gets in each period. */

/* A stretch on the CPU. */
struct segment {
	ns_t from, to;
	ns_t charged; /* what the kernel had charged the thread by `from` */
};

/* What the thread ran in each whole period of the grid that begins at `origin`; how many periods. */
static long seen_per_period(const struct segment *segments, long n, ns_t origin, ns_t *into)
{
	long periods = 0, at = 0;
	for (ns_t from = origin, to; (to = from + set.period) <= segments[n - 1].to; from = to) {
		into[periods] = 0;
		while (at < n && segments[at].to <= from)
			at++;
		for (long i = at; i < n && segments[i].from < to; i++) {
			ns_t a = segments[i].from > from ? segments[i].from : from;
			ns_t b = segments[i].to < to ? segments[i].to : to;
			into[periods] += b - a;
		}
		periods++;
	}
	return periods;
}

/* The same as the kernel charged it, the switches included. Its count is read when the thread comes back after a gap,
 * so a boundary within a gap is exact, and one within a stretch counts from the stretch's begin by the clock. */
static long charged_per_period(const struct segment *segments, long n, ns_t origin, ns_t *into)
{
	long periods = -1, at = 0;
	ns_t before = 0;
	for (ns_t when = origin; when <= segments[n - 1].to; when += set.period) {
		while (at < n - 1 && segments[at].to <= when)
			at++;
		ns_t since = when > segments[at].from ? when - segments[at].from : 0, charged = segments[at].charged + since;
		if (periods >= 0)
			into[periods] = charged - before;
		before = charged;
		periods++;
	}
	return periods > 0 ? periods : 0;
}

/* Where periods begin is the scheduler's secret. A replenished thread soon runs, so the grid goes through a point a
 * little before one of the moments where it came back: the one for which the service is the most even. */
static ns_t find_origin(const struct segment *segments, long n, ns_t *scratch)
{
	enum { CANDIDATES = 64 };
	ns_t first = segments[0].from - set.gap, best = first, best_spread = INT64_MAX;
	for (long i = 0; i < n && i < CANDIDATES; i++) {
		ns_t origin = first + (segments[i].from - segments[0].from) % set.period, min = INT64_MAX, max = 0;
		long periods = seen_per_period(segments, n, origin, scratch);
		for (long k = 0; k < periods; k++) {
			min = scratch[k] < min ? scratch[k] : min;
			max = scratch[k] > max ? scratch[k] : max;
		}
		if (periods && max - min < best_spread) {
			best_spread = max - min;
			best = origin;
		}
	}
	return best;
}

static void write_segments(const struct segment *segments, long n)
{
	FILE *file = fopen(set.segments, "we");
	if (!file)
		fail("%s: %s", set.segments, strerror(errno));
	fprintf(file, "from_ns,to_ns\n");
	for (long i = 0; i < n; i++)
		fprintf(file, "%" PRId64 ",%" PRId64 "\n", segments[i].from, segments[i].to);
	if (fclose(file))
		fail("%s: %s", set.segments, strerror(errno));
}

/* How near to the budget: sorts the values. */
static void print_service(const char *name, ns_t *values, long periods)
{
	long near_5us = 0, near_20us = 0;
	ns_t drift = 0, drift_min = 0, drift_max = 0;
	for (long i = 0; i < periods; i++) {
		ns_t off = values[i] - set.budget;
		near_5us += llabs(off) <= 5 * US;
		near_20us += llabs(off) <= 20 * US;
		drift += off;
		drift_min = drift < drift_min ? drift : drift_min;
		drift_max = drift > drift_max ? drift : drift_max;
	}
	if (set.budget)
		printf("\"%s_within_5us\":%ld,\"%s_within_20us\":%ld,\"%s_drift_ns\":{\"min\":%" PRId64 ",\"max\":%" PRId64
		       "},",
		       name, near_5us, name, near_20us, name, drift_min, drift_max);
	print_spread(name, values, periods);
}

static void service(void)
{
	struct segment *segments = shared(SEGMENTS_MAX * sizeof *segments);
	pid_t hogs[CHILDREN_MAX];
	long n = 0;
	add_hogs(hogs);
	settle(0, set.names[0] ? set.names[0] : "service");
	sleep_until(start_time(1));

	/* Nothing but reading the clock: a step of more than --gap is time without the CPU, anything shorter an
	 * interrupt. */
	ns_t begin = now(), end = begin + set.time, last = begin;
	segments[0] = (struct segment){.from = begin, .charged = cpu_time()};
	for (ns_t t = begin; t < end; last = t) {
		t = now();
		if (t - last <= set.gap)
			continue;
		if (n == SEGMENTS_MAX - 1)
			fail("more than %d gaps of over %" PRId64 " ns: measure a shorter --time", SEGMENTS_MAX, set.gap);
		segments[n++].to = last;
		segments[n] = (struct segment){.from = t, .charged = cpu_time()};
	}
	segments[n++].to = last;
	ns_t charged = cpu_time() - segments[0].charged, ran = 0, longest_gap = 0, wall = last - begin;
	end_hogs(hogs);

	for (long i = 0; i < n; i++) {
		ran += segments[i].to - segments[i].from;
		ns_t gap = i ? segments[i].from - segments[i - 1].to : 0;
		longest_gap = gap > longest_gap ? gap : longest_gap;
	}
	if (set.segments)
		write_segments(segments, n);
	ns_t *values = table(wall / set.period + 2, sizeof *values);
	ns_t origin = find_origin(segments, n, values);
	printf("{\"mode\":\"service\",\"wall_ns\":%" PRId64 ",\"ran_ns\":%" PRId64 ",\"kernel_cpu_ns\":%" PRId64
	       ",\"share\":%.6f,\"gaps\":%ld,\"longest_gap_ns\":%" PRId64 ",\"origin_ns\":%" PRId64 ",\"period_ns\":%" PRId64
	       ",\"budget_ns\":%" PRId64 ",",
	       wall, ran, charged, (double)ran / (double)wall, n - 1, longest_gap, origin, set.period, set.budget);
	print_service("seen", values, seen_per_period(segments, n, origin, values));
	printf(",");
	print_service("charged", values, charged_per_period(segments, n, origin, values));
	printf("}\n");
}

/* --- hogs, spin ------------------------------------------------------------------------------------------------------
 */
