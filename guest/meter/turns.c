/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* hogs, spin, turns: busy processes, and what each of them gets. */

struct hog {
	uint64_t units;
	ns_t kernel_cpu;
	long switches;
};

static void be_hog(struct hog *result, ns_t start)
{
	struct rusage before, after;
	sleep_until(start);
	getrusage(RUSAGE_SELF, &before);
	ns_t cpu = cpu_time(), end = start + set.time;
	while (now() < end) {
		work_unit();
		result->units++;
	}
	getrusage(RUSAGE_SELF, &after);
	result->kernel_cpu = cpu_time() - cpu;
	result->switches = after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw;
}

static void hogs(void)
{
	static pid_t children[CHILDREN_MAX];
	long n = set.count < 0 ? 2 : set.count, switches = 0;
	struct hog *results = shared((size_t)n * sizeof *results);
	ns_t start = start_time(n), kernel_cpu = 0;
	uint64_t units = 0, least = UINT64_MAX, most = 0;
	for (long i = 0; i < n; i++) {
		char name[16];
		if ((children[i] = spawn()))
			continue;
		snprintf(name, sizeof name, n > 1 ? "%.11s%ld" : "%.15s", set.names[0] ? set.names[0] : "hog", i);
		settle((int)i, name);
		be_hog(&results[i], start + i * set.apart);
		_exit(0);
	}
	wait_all(children, n);
	printf("{\"mode\":\"hogs\",\"n\":%ld,\"wall_ns\":%" PRId64 ",\"units\":[", n, set.time);
	for (long i = 0; i < n; i++) {
		uint64_t one = results[i].units;
		printf("%s%" PRIu64, i ? "," : "", one);
		units += one;
		least = one < least ? one : least;
		most = one > most ? one : most;
		kernel_cpu += results[i].kernel_cpu;
		switches += results[i].switches;
	}
	printf("],\"units_sum\":%" PRIu64 ",\"units_min\":%" PRIu64 ",\"units_max\":%" PRIu64
	       ",\"units_per_s\":%.1f,\"kernel_cpu_ns\":%" PRId64 ",\"switches\":%ld}\n",
	       units, least, most, (double)units * SECOND / (double)set.time, kernel_cpu, switches);
}

static void spin(void)
{
	struct hog result = {0};
	settle(0, set.names[0] ? set.names[0] : "spin");
	be_hog(&result, start_time(1));
	printf("{\"mode\":\"spin\",\"wall_ns\":%" PRId64 ",\"units\":%" PRIu64
	       ",\"units_per_s\":%.1f,\"kernel_cpu_ns\":%" PRId64 ",\"switches\":%ld}\n",
	       set.time, result.units, (double)result.units * SECOND / (double)set.time, result.kernel_cpu, result.switches);
}

/* --- turns -----------------------------------------------------------------------------------------------------------
 */

/* What the processes of one CPU know of each other: whose turn it is, and when each was there last. */
struct turns {
	long n, who;
	ns_t last[CHILDREN_MAX];
	ns_t gaps[];
};

static void take_turns(struct turns *turns, long room, long me, ns_t end)
{
	ns_t at;
	while ((at = now()) < end) {
		long who = turns->who;
		if (who != me) {
			ns_t gap = who < 0 ? -1 : at - turns->last[who];
			turns->who = me;
			/* Below 0: it lost the CPU after it had looked at the clock. */
			if (gap >= 0 && turns->n < room)
				turns->gaps[turns->n++] = gap;
		}
		turns->last[me] = at;
	}
}

static void turns(void)
{
	static pid_t children[CHILDREN_MAX];
	long n = set.count < 0 ? 10 : set.count, room = 1 << 17;
	struct turns *common = shared(sizeof *common + (size_t)room * sizeof *common->gaps);
	ns_t start = start_time(n);
	common->who = -1;
	for (long i = 0; i < n; i++) {
		char name[16];
		if ((children[i] = spawn()))
			continue;
		snprintf(name, sizeof name, "%.11s%ld", set.names[0] ? set.names[0] : "turn", i);
		settle((int)i, name);
		sleep_until(start);
		take_turns(common, room, i, start + set.time);
		_exit(0);
	}
	wait_all(children, n);
	if (set.segments) {
		FILE *file = fopen(set.segments, "w");
		if (!file)
			fail("%s: %s", set.segments, strerror(errno));
		for (long i = 0; i < common->n; i++)
			fprintf(file, "%" PRId64 "\n", common->gaps[i]);
		if (fclose(file))
			fail("%s: %s", set.segments, strerror(errno));
	}
	printf("{\"mode\":\"turns\",\"n\":%ld,\"wall_ns\":%" PRId64 ",", n, set.time);
	print_spread("switch", common->gaps, common->n);
	printf("}\n");
}

/* --- pingpong --------------------------------------------------------------------------------------------------------
 */
