/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What all modes are given, how they fail, clocks, marks of a profile, numbers of the command line. */

typedef int64_t ns_t;

enum { US = 1000, MS = 1000000, SECOND = 1000000000 };
enum { GROUPS_MAX = 64, CHILDREN_MAX = 4096, SEGMENTS_MAX = 1 << 20, WORK_STEPS = 1000 };

static struct {
	const char *policy, *hog_policy, *by, *role, *dir, *names[2], *segments, *mark;
	const char *groups[GROUPS_MAX];
	int groups_n, cpus[2];
	long hogs, count, parallel, memory;
	ns_t time, period, budget, interval, work, limit, gap, start, pause, apart;
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
