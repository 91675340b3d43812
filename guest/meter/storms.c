/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* forkstorm, dirlock: processes that come and go, files that come and go. */

static void forkstorm(void)
{
	long n = set.count < 0 ? 10000 : set.count, alive = 0, failed = 0, unclean = 0;
	ns_t *born = shared((size_t)n * sizeof *born), *asked = table(n, sizeof *asked);
	pid_t children[CHILDREN_MAX];
	add_hogs(children);
	settle(0, set.names[0] ? set.names[0] : "forkstorm");
	ns_t begin = start_time(1);
	sleep_until(begin);
	for (long i = 0; i < n || alive;) {
		if (i < n && alive < set.parallel) {
			asked[i] = now();
			pid_t pid = fork();
			if (!pid) {
				born[i] = now() - asked[i];
				_exit(0);
			}
			failed += pid < 0;
			alive += pid > 0;
			i++;
			continue;
		}
		int status;
		if (waitpid(-1, &status, 0) < 0)
			fail("forkstorm: wait: %s", strerror(errno));
		unclean += status != 0;
		alive--;
	}
	ns_t wall = now() - begin;
	end_hogs(children);
	printf("{\"mode\":\"forkstorm\",\"n\":%ld,\"failed\":%ld,\"unclean\":%ld,\"wall_ns\":%" PRId64 ",", n, failed, unclean,
	       wall);
	print_spread("birth", born, n);
	printf("}\n");
}

/* --- dirlock ---------------------------------------------------------------------------------------------------------
 */

static void touch_and_remove(const char *path)
{
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || close(fd) || unlink(path))
		fail("%s: %s", path, strerror(errno));
}

static void dirlock(void)
{
	bool wait = !set.role || !strcmp(set.role, "wait");
	char path[4096];
	if (!wait && strcmp(set.role, "hold"))
		fail("--role %s: expected wait or hold", set.role);
	if (mkdir(set.dir, 0700) && errno != EEXIST)
		fail("%s: %s", set.dir, strerror(errno));
	snprintf(path, sizeof path, "%s/%d", set.dir, getpid());
	settle(0, set.names[0] ? set.names[0] : wait ? "lockwait" : "lockhold");
	ns_t due = start_time(1), end = due + set.time;
	long n = 0, room = set.time / set.interval + 1;
	ns_t *took = wait ? table(room, sizeof *took) : NULL;
	sleep_until(due);
	while (now() < end && (!wait || n < room)) {
		ns_t before = now();
		touch_and_remove(path);
		if (wait) {
			took[n] = now() - before;
			due += set.interval * (1 + took[n] / set.interval);
			sleep_until(due);
		}
		n++;
	}
	printf("{\"mode\":\"dirlock\",\"role\":\"%s\",\"n\":%ld,\"wall_ns\":%" PRId64, set.role, n, set.time);
	if (wait) {
		printf(",");
		print_spread("took", took, n);
	}
	printf("}\n");
}

/* --- command line ----------------------------------------------------------------------------------------------------
 */
