/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cyclic, frames: a thread with jobs, and how late they are. */

static void cyclic(void)
{
	long n = set.count < 0 ? set.time / set.interval : set.count, missed = 0;
	ns_t *late = table(n, sizeof *late);
	pid_t children[CHILDREN_MAX];
	add_hogs(children);
	settle(0, set.names[0] ? set.names[0] : "cyclic");
	ns_t due = start_time(1);
	for (long i = 0; i < n; i++) {
		sleep_until(due);
		late[i] = now() - due;
		ns_t over = late[i] / set.interval; /* whole intervals slept through */
		missed += over;
		due += (over + 1) * set.interval;
	}
	end_hogs(children);
	printf("{\"mode\":\"cyclic\",\"interval_ns\":%" PRId64 ",\"missed\":%ld,", set.interval, missed);
	print_spread("late", late, n);
	printf("}\n");
}

/* --- frames ----------------------------------------------------------------------------------------------------------
 */

static void frames(void)
{
	double unit = unit_ns();
	long units = (long)((double)set.work / unit + 0.5), n = 0, late = 0, misses = 0;
	long room = set.time / (set.work ? set.work : 1) + 2;
	ns_t *gaps = table(room, sizeof *gaps);
	if (units < 1)
		fail("--work: less than one unit of %.0f ns", unit);
	settle(0, set.names[0] ? set.names[0] : "frames");
	ns_t start = start_time(1), last = start, end = start + set.time;
	sleep_until(start);
	/* A frame may be begun in time and ended past the end: it is not counted, but the gap up to the end is. */
	while (n < room) {
		for (long i = 0; i < units; i++)
			work_unit();
		ns_t done = now(), gap = (done < end ? done : end) - last;
		late += gap > set.limit;
		misses += gap / set.limit;
		if (done >= end)
			break;
		gaps[n++] = gap;
		last = done;
	}
	printf("{\"mode\":\"frames\",\"work_ns\":%" PRId64 ",\"limit_ns\":%" PRId64 ",\"unit_ns\":%.2f,\"wall_ns\":%" PRId64
	       ",\"frames\":%ld,\"frames_per_s\":%.3f,\"late\":%ld,\"misses\":%ld,",
	       set.work, set.limit, unit, set.time, n, (double)n * SECOND / (double)set.time, late, misses);
	print_spread("gap", gaps, n);
	printf("}\n");
}

/* --- forkstorm -------------------------------------------------------------------------------------------------------
 */
