/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* meter: measures, from the inside, what a scheduler gives to programs.
 *
 *   meter MODE [options]        prints one line of JSON; times in ns unless the name says otherwise
 *
 *   service    one thread that never stops: CPU time in each period, seen in the gaps of its own clock
 *   hogs       --count busy processes: the work each got done
 *   spin       one busy process: work per second, CPU time of the kernel's clock beside it
 *   pingpong   two processes in turn over a --by pipe, eventfd, futex or yield: time per switch
 *   cyclic     one thread that wakes every --interval: how late it is
 *   frames     a renderer: frames of --work CPU time, back to back; a gap over --limit is a miss
 *   forkstorm  --count short processes, at most --parallel at a time: failures, slowest birth
 *   turns      --count busy processes that read the clock: the time in which none of them had the CPU, at each change of turns
 *   dirlock    --role hold: creates and removes files in a folder for as long as it runs, so that it is often throttled
 *              inside the folder's lock; --role wait: does so once per --interval, and reports the longest it took
 *   profile    --role begin, --role end: what lies between is what `tierce vm --profile` counts. With --profile other modes
 *              mark what they measure: pingpong its rounds, the others all they do.
 *
 * Several processes are in step: they set themselves up, then all start at one moment. With --start T that is when
 * CLOCK_MONOTONIC (time since boot) shows T, so that separate runs of meter can measure the same stretch of time.
 *
 * Times are an integer with ns, us, ms or s. A unit of work is 1,000 dependent multiply-adds, about 4,000 instructions,
 * or with --memory as many changes of numbers in a table of that size, a cache line apart.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "port.h"
#include "profile.h"
#include "symbols.h"

typedef int64_t ns_t;

enum { US = 1000, MS = 1000000, SECOND = 1000000000 };
enum { GROUPS_MAX = 64, CHILDREN_MAX = 4096, SEGMENTS_MAX = 1 << 20, WORK_STEPS = 1000 };

static struct {
	const char *policy, *hog_policy, *by, *role, *dir, *names[2], *segments;
	const char *groups[GROUPS_MAX];
	int groups_n, cpus[2], hogs;
	long count, parallel, memory;
	ns_t time, period, budget, interval, work, limit, gap, start, pause;
	bool profile;
} set = {
    .by = "pipe",
    .dir = "/tmp/dirlock",
    .cpus = {-1, -1},
    .count = -1,
    .parallel = 16,
    .time = SECOND,
    .period = 10 * MS,
    .interval = MS,
    .work = 9900 * US,
    .limit = 33400 * US,
    .gap = 20 * US,
};

static void __attribute__((noreturn, format(printf, 1, 2))) fail(const char *format, ...)
{
	va_list list;
	va_start(list, format);
	fputs("meter: ", stderr);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	exit(2);
}

/* --- clocks ------------------------------------------------------------------------------------------------------ */

static ns_t read_clock(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (ns_t)t.tv_sec * SECOND + t.tv_nsec;
}

static ns_t now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

static ns_t cpu_time(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

static void sleep_until(ns_t when)
{
	struct timespec t = {when / SECOND, when % SECOND};
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* --- profile ----------------------------------------------------------------------------------------------------- */

static void profile_begin(void)
{
	PROFILE_MARK(PROFILE_BEGIN);
}

static void profile_end(void)
{
	PROFILE_MARK(PROFILE_END);
}

/* Without it the addresses of a profile have no names. Where nobody profiles, the port is not there. */
static void profile_symbols(void)
{
	int port = port_find("tierce.symbols");
	if (port >= 0)
		symbols_write(port);
}

static void profile(void)
{
	if (set.role && !strcmp(set.role, "begin")) {
		profile_begin();
		return;
	}
	if (!set.role || strcmp(set.role, "end"))
		fail("profile: expected --role begin or --role end");
	profile_end();
	profile_symbols();
}

/* --- work -------------------------------------------------------------------------------------------------------- */

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

static ns_t parse_time(const char *text, const char **rest)
{
	static const struct {
		const char *name;
		ns_t ns;
	} units[] = {{"ns", 1}, {"us", US}, {"ms", MS}, {"s", SECOND}};
	char *end;
	long long number = strtoll(text, &end, 10);
	for (size_t i = 0; end > text && number >= 0 && i < sizeof units / sizeof *units; i++) {
		size_t length = strlen(units[i].name);
		bool ends = !strncmp(end, units[i].name, length) && (!end[length] || (rest && end[length] == ':'));
		if (ends && number <= INT64_MAX / units[i].ns) {
			if (rest)
				*rest = end + length;
			return number * units[i].ns;
		}
	}
	fail("time \"%s\": expected a whole number with ns, us, ms or s", text);
}

static long parse_number(const char *text, long min, long max)
{
	char *end;
	errno = 0;
	long number = strtol(text, &end, 10);
	if (end == text || *end || errno || number < min || number > max)
		fail("\"%s\": expected a number from %ld to %ld", text, min, max);
	return number;
}

/* The kernel's sched_attr, under a name of our own: newer C libraries define one too. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/* other[:SLICE] | nice:N | batch | idle | fifo:N | rr:N | deadline:RUNTIME:PERIOD | ext */
static void set_policy(const char *text)
{
	enum { OTHER, FIFO, RR, BATCH, IDLE = 5, DEADLINE, EXT };
	struct attributes a = {.size = sizeof a};
	const char *value = text ? strchr(text, ':') : NULL;
	size_t length = value ? (size_t)(value++ - text) : text ? strlen(text) : 0;
	if (!text)
		return;
#define IS(name) (length == strlen(name) && !strncmp(text, name, length))
	if (IS("other"))
		a.policy = OTHER, a.runtime = value ? (uint64_t)parse_time(value, NULL) : 0;
	else if (IS("nice") && value)
		a.policy = OTHER, a.nice = (int32_t)parse_number(value, -20, 19);
	else if (IS("batch") && !value)
		a.policy = BATCH;
	else if (IS("idle") && !value)
		a.policy = IDLE;
	else if (IS("fifo") && value)
		a.policy = FIFO, a.priority = (uint32_t)parse_number(value, 1, 99);
	else if (IS("rr") && value)
		a.policy = RR, a.priority = (uint32_t)parse_number(value, 1, 99);
	else if (IS("ext") && !value)
		a.policy = EXT;
	else if (IS("deadline") && value) {
		const char *rest = NULL;
		a.policy = DEADLINE;
		a.runtime = (uint64_t)parse_time(value, &rest);
		if (*rest != ':')
			fail("policy \"%s\": expected deadline:RUNTIME:PERIOD", text);
		a.deadline = a.period = (uint64_t)parse_time(rest + 1, NULL);
	} else
		fail("policy \"%s\": expected other[:SLICE], nice:N, batch, idle, fifo:N, rr:N, "
		     "deadline:RUNTIME:PERIOD, ext",
		     text);
#undef IS
	if (syscall(SYS_sched_setattr, 0, &a, 0))
		fail("policy %s: %s", text, strerror(errno));
}

static void set_cpu(int cpu)
{
	cpu_set_t cpus;
	if (cpu < 0)
		return;
	CPU_ZERO(&cpus);
	CPU_SET((unsigned)cpu, &cpus);
	if (sched_setaffinity(0, sizeof cpus, &cpus))
		fail("CPU %d: %s", cpu, strerror(errno));
}

static void join_group(int which)
{
	char path[4096];
	if (!set.groups_n)
		return;
	snprintf(path, sizeof path, "%s/cgroup.procs", set.groups[which % set.groups_n]);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "0", 1) != 1)
		fail("%s: %s", path, strerror(errno));
	close(fd);
}

/* The name that `ps` and a plan's matchers see. */
static void set_name(const char *name)
{
	prctl(PR_SET_NAME, name);
}

/* Become process `which` of the measurement: name, group, CPU, memory in place, policy last. */
static void settle(int which, const char *name)
{
	set_name(name);
	join_group(which);
	/* The kernel does not let a deadline task be pinned. */
	bool deadline = set.policy && !strncmp(set.policy, "deadline", 8);
	if (!deadline)
		set_cpu(which && set.cpus[1] >= 0 ? set.cpus[1] : set.cpus[0]);
	if (set.memory && !(numbers = calloc(1, (size_t)set.memory)))
		fail("--memory: %s", strerror(errno));
	mlockall(MCL_CURRENT);
	set_policy(set.policy);
}

/* --- several processes ---------------------------------------------------------------------------------------------
 */

static void *shared(size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		fail("%zu bytes of shared memory: %s", size, strerror(errno));
	return memory;
}

static pid_t spawn(void)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		fail("fork: %s", strerror(errno));
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void wait_all(pid_t *children, long n)
{
	for (long i = 0; i < n; i++) {
		int status;
		if (waitpid(children[i], &status, 0) < 0 || status)
			fail("process %ld of the measurement failed (status %d)", i, status);
	}
}

/* When all shall start: as told, else as soon as `n` processes can be ready. */
static ns_t start_time(long n)
{
	ns_t soon = now() + 50 * MS + n * 5 * MS;
	if (set.start && set.start < now())
		fail("--start: that was %" PRId64 " ns ago", now() - set.start);
	return set.start ? set.start : soon;
}

/* Busy processes beside a measurement, ended when it ends. */
static void add_hogs(pid_t *pids)
{
	for (int i = 0; i < set.hogs; i++) {
		char name[16];
		if ((pids[i] = spawn()))
			continue;
		snprintf(name, sizeof name, "hog%d", i);
		set_name(name);
		set_cpu(set.cpus[0]);
		set_policy(set.hog_policy);
		for (;;)
			work_unit();
	}
}

static void end_hogs(pid_t *pids)
{
	for (int i = 0; i < set.hogs; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* --- statistics ------------------------------------------------------------------------------------------------------
 */

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
		be_hog(&results[i], start);
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

/* One player's end of the medium. */
struct player {
	int me, hear, say;
	uint32_t *turn;
};

static void play_pipe(struct player *p)
{
	uint64_t ball = 1;
	if (p->me == 0 && write(p->say, &ball, sizeof ball) != sizeof ball)
		fail("pingpong: %s", strerror(errno));
	if (read(p->hear, &ball, sizeof ball) != sizeof ball)
		fail("pingpong: %s", strerror(errno));
	if (p->me == 1 && write(p->say, &ball, sizeof ball) != sizeof ball)
		fail("pingpong: %s", strerror(errno));
}

static void play_futex(struct player *p)
{
	uint32_t mine = (uint32_t)p->me;
	while (__atomic_load_n(p->turn, __ATOMIC_ACQUIRE) != mine)
		syscall(SYS_futex, p->turn, FUTEX_WAIT, !mine, NULL, NULL, 0);
	__atomic_store_n(p->turn, !mine, __ATOMIC_RELEASE);
	syscall(SYS_futex, p->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void play_yield(struct player *p)
{
	(void)p;
	sched_yield();
}

static void pingpong(void)
{
	static const struct {
		const char *name;
		void (*round)(struct player *);
	} media[] = {
	    {"pipe", play_pipe},
	    {"eventfd", play_pipe},
	    {"futex", play_futex},
	    {"yield", play_yield},
	};
	void (*round)(struct player *) = NULL;
	for (size_t i = 0; i < sizeof media / sizeof *media; i++)
		if (!strcmp(set.by, media[i].name))
			round = media[i].round;
	if (!round)
		fail("--by %s: expected pipe, eventfd, futex or yield", set.by);
	struct {
		uint32_t turn;
		ns_t took[2];
		long switches[2][2];
	} *common = shared(sizeof *common);
	int ends[2][2]; /* [direction][read, write] */
	for (int i = 0; i < 2; i++) {
		bool failed = strcmp(set.by, "eventfd") ? pipe(ends[i]) : (ends[i][0] = ends[i][1] = eventfd(0, 0)) < 0;
		if (failed)
			fail("%s: %s", set.by, strerror(errno));
	}
	long rounds = set.count < 0 ? 2000 : set.count;
	ns_t start = start_time(2);
	pid_t children[2];
	for (int me = 0; me < 2; me++) {
		if ((children[me] = spawn()))
			continue;
		struct player player = {me, ends[!me][0], ends[me][1], &common->turn};
		struct rusage before, after;
		settle(me, set.names[me] ? set.names[me] : me ? "pong" : "ping");
		sleep_until(start);
		round(&player); /* the first round is for meeting */
		getrusage(RUSAGE_SELF, &before);
		if (set.profile && me == 0)
			profile_begin();
		ns_t begin = now();
		for (long i = 0; i < rounds; i++)
			round(&player);
		common->took[me] = now() - begin;
		if (set.profile && me == 0)
			profile_end();
		getrusage(RUSAGE_SELF, &after);
		common->switches[me][0] = after.ru_nvcsw - before.ru_nvcsw;
		common->switches[me][1] = after.ru_nivcsw - before.ru_nivcsw;
		_exit(0);
	}
	wait_all(children, 2);
	printf("{\"mode\":\"pingpong\",\"by\":\"%s\",\"rounds\":%ld,\"wall_ns\":%" PRId64
	       ",\"ns_per_switch\":%.1f,\"voluntary\":%ld,\"preempted\":%ld}\n",
	       set.by, rounds, common->took[0], (double)common->took[0] / (2.0 * (double)rounds),
	       common->switches[0][0] + common->switches[1][0], common->switches[0][1] + common->switches[1][1]);
}

/* --- cyclic ----------------------------------------------------------------------------------------------------------
 */

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

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
    {"service", service}, {"hogs", hogs},	    {"spin", spin},	  {"pingpong", pingpong}, {"cyclic", cyclic},
    {"frames", frames},	  {"forkstorm", forkstorm}, {"dirlock", dirlock}, {"turns", turns},	  {"profile", profile},
};

static const char usage[] =
    "usage: meter MODE [options]      MODE: service hogs spin pingpong cyclic frames forkstorm turns dirlock\n"
    "                                       profile\n"
    "  --policy P        other[:SLICE] nice:N batch idle fifo:N rr:N deadline:RUNTIME:PERIOD ext\n"
    "  --cpu N[,M]       pin to CPU N (the second of two processes to M)\n"
    "  --group DIR       cgroup folder to join; repeated, the k-th process joins the k-th\n"
    "  --name A[,B]      process names (comm), 15 characters; several hogs get a number behind\n"
    "  --start T         begin when the time since boot is T\n"
    "  --time T          how long to measure (1s)\n"
    "  --hogs N          busy processes beside it, on the same CPU (service, cyclic, forkstorm); --hog-policy P\n"
    "  --count N         hogs, turns: processes (2, 10); pingpong: rounds (2000); cyclic: samples; forkstorm: processes "
    "(10000)\n"
    "  --memory N        hogs, spin: bytes of a table that the work goes through, from 64 on\n"
    "  --period T        service: period (10ms); --budget T: expected in each, adds how many are near and the drift\n"
    "  --gap T           service: a longer step of the clock is time without the CPU (20us)\n"
    "  --segments FILE   service: write every stretch on the CPU as CSV; turns: every measured time\n"
    "  --by M            pingpong: pipe eventfd futex yield\n"
    "  --interval T      cyclic, dirlock: between wake-ups (1ms)\n"
    "  --work T --limit T   frames: CPU time of one (9900us), longest gap that is no miss (33400us)\n"
    "  --parallel N      forkstorm: alive at a time (16)\n"
    "  --role R --dir D  dirlock: wait or hold, in folder D; profile: begin or end\n"
    "  --profile         mark what is measured for tierce vm --profile\n";

static void split(char *text, const char **first, const char **second)
{
	char *comma = strchr(text, ',');
	*first = text;
	if (comma) {
		*comma = 0;
		*second = comma + 1;
	}
}

static ns_t positive_time(const char *text)
{
	ns_t value = parse_time(text, NULL);
	if (value == 0)
		fail("time \"%s\": must not be 0", text);
	return value;
}

static void parse_options(int argc, char **argv)
{
	enum {
		POLICY = 1,
		HOG_POLICY,
		CPU,
		GROUP,
		NAME,
		START,
		TIME,
		HOGS,
		COUNT,
		PERIOD,
		BUDGET,
		GAP,
		SEGMENTS,
		BY,
		INTERVAL,
		WORK,
		LIMIT,
		PARALLEL,
		ROLE,
		DIR,
		MEMORY,
		PROFILE,
	};
	static const struct option options[] = {
	    {"policy", 1, 0, POLICY},
	    {"hog-policy", 1, 0, HOG_POLICY},
	    {"cpu", 1, 0, CPU},
	    {"group", 1, 0, GROUP},
	    {"name", 1, 0, NAME},
	    {"start", 1, 0, START},
	    {"time", 1, 0, TIME},
	    {"hogs", 1, 0, HOGS},
	    {"count", 1, 0, COUNT},
	    {"period", 1, 0, PERIOD},
	    {"budget", 1, 0, BUDGET},
	    {"gap", 1, 0, GAP},
	    {"segments", 1, 0, SEGMENTS},
	    {"by", 1, 0, BY},
	    {"interval", 1, 0, INTERVAL},
	    {"work", 1, 0, WORK},
	    {"limit", 1, 0, LIMIT},
	    {"parallel", 1, 0, PARALLEL},
	    {"role", 1, 0, ROLE},
	    {"dir", 1, 0, DIR},
	    {"memory", 1, 0, MEMORY},
	    {"profile", 0, 0, PROFILE},
	    {0, 0, 0, 0},
	};
	const char *first, *second = NULL;
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case POLICY: set.policy = optarg; break;
		case HOG_POLICY: set.hog_policy = optarg; break;
		case CPU:
			split(optarg, &first, &second);
			set.cpus[0] = (int)parse_number(first, 0, 1023);
			set.cpus[1] = second ? (int)parse_number(second, 0, 1023) : -1;
			break;
		case GROUP:
			if (set.groups_n == GROUPS_MAX)
				fail("more than %d groups", GROUPS_MAX);
			set.groups[set.groups_n++] = optarg;
			break;
		case NAME: split(optarg, &set.names[0], &set.names[1]); break;
		case START: set.start = positive_time(optarg); break;
		case TIME: set.time = positive_time(optarg); break;
		case HOGS: set.hogs = (int)parse_number(optarg, 0, CHILDREN_MAX); break;
		case COUNT: set.count = parse_number(optarg, 1, 10000000); break;
		case PERIOD: set.period = positive_time(optarg); break;
		case BUDGET: set.budget = positive_time(optarg); break;
		case GAP: set.gap = positive_time(optarg); break;
		case SEGMENTS: set.segments = optarg; break;
		case BY: set.by = optarg; break;
		case INTERVAL: set.interval = positive_time(optarg); break;
		case WORK: set.work = positive_time(optarg); break;
		case LIMIT: set.limit = positive_time(optarg); break;
		case PARALLEL: set.parallel = parse_number(optarg, 1, CHILDREN_MAX); break;
		case ROLE: set.role = optarg; break;
		case DIR: set.dir = optarg; break;
		case MEMORY: set.memory = parse_number(optarg, 64, 1 << 30); break;
		case PROFILE: set.profile = true; break;
		default: fputs(usage, stderr); exit(2);
		}
	}
	if (optind != argc)
		fail("\"%s\": not an option", argv[optind]);
}

int main(int argc, char **argv)
{
	if (argc < 2 || !strcmp(argv[1], "--help")) {
		fputs(usage, argc < 2 ? stderr : stdout);
		return argc < 2 ? 2 : 0;
	}
	parse_options(argc - 1, argv + 1);
	if ((!strcmp(argv[1], "hogs") || !strcmp(argv[1], "turns")) && set.count > CHILDREN_MAX)
		fail("--count %ld: at most %d processes", set.count, CHILDREN_MAX);
	prctl(PR_SET_TIMERSLACK, 1); /* the default, 50 us, would be in every latency */
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		if (!strcmp(argv[1], modes[i].name)) {
			bool around = set.profile && modes[i].run != pingpong;
			if (around)
				profile_begin();
			modes[i].run();
			if (around)
				profile_end();
			if (set.profile)
				profile_symbols();
			return 0;
		}
	}
	fail("\"%s\": not a mode; meter --help lists them", argv[1]);
}
