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
 *   chain      processes that pass something on, one --link each: how old it is when it has come through
 *   locks      periodic threads of one process, one --thread each, with mutexes: longest responses and waits
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
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "port.h"
#include "profile.h"
#include "symbols.h"

#include "meter/basics.c"
#include "meter/work.c"
#include "meter/processes.c"
#include "meter/spread.c"
#include "meter/supply.c"
#include "meter/turns.c"
#include "meter/switches.c"
#include "meter/jobs.c"
#include "meter/storms.c"
#include "meter/chain.c"
#include "meter/locks.c"

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
    {"service", service}, {"hogs", hogs},	{"spin", spin},		  {"pingpong", pingpong},
    {"cyclic", cyclic},	  {"frames", frames},	{"forkstorm", forkstorm}, {"dirlock", dirlock},
    {"turns", turns},	  {"profile", profile}, {"chain", chain},	  {"locks", locks},
};

static const char usage[] =
    "usage: meter MODE [options]      MODE: service hogs spin pingpong cyclic frames forkstorm turns dirlock\n"
    "                                       chain locks profile\n"
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
    "  --apart T         hogs: between the start of one and of the next (0)\n"
    "  --period T        service: period (10ms); --budget T: expected in each, adds how many are near and the drift\n"
    "  --gap T           service: a longer step of the clock is time without the CPU (20us)\n"
    "  --segments FILE   service: write every stretch on the CPU as CSV; turns: every measured time\n"
    "  --by M            pingpong: pipe eventfd futex yield\n"
    "  --interval T      cyclic, dirlock: between wake-ups (1ms)\n"
    "  --work T --limit T   frames: CPU time of one (9900us), longest gap that is no miss (33400us)\n"
    "  --parallel N      forkstorm: alive at a time (16)\n"
    "  --role R --dir D  dirlock: wait or hold, in folder D; profile: begin or end\n"
    "  --link L          chain: NAME,PERIOD,LEAST,MOST or, if the process before it wakes it, NAME,after[:TIME],LEAST,MOST;\n"
    "                    a job needs LEAST to MOST of CPU time; --mark LABEL: each job marks the number of what it deals with\n"
    "  --thread T        locks: NAME,PERIOD,PHASE,WORK, then AT,LENGTH or AT,LENGTH:LOCK for each section: a job has mutex "
    "LOCK,\n"
    "                    0 to 3, from AT on, for LENGTH of work; --by inherit: mutexes that inherit priorities\n"
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

static void take_cpus(char *text)
{
	const char *first, *second = NULL;
	split(text, &first, &second);
	set.cpus[0] = (int)parse_number(first, 0, 1023);
	set.cpus[1] = second ? (int)parse_number(second, 0, 1023) : -1;
}

static void take_group(char *text)
{
	if (set.groups_n == GROUPS_MAX)
		fail("more than %d groups", GROUPS_MAX);
	set.groups[set.groups_n++] = text;
}

static void take_names(char *text)
{
	split(text, &set.names[0], &set.names[1]);
}

/* What an option sets: one of these. */
static const struct {
	const char *name;
	const char **text;
	ns_t *time;
	long *number, least, most;
	bool *flag;
	void (*take)(char *text);
} settings[] = {
    {"policy", .text = &set.policy},
    {"hog-policy", .text = &set.hog_policy},
    {"cpu", .take = take_cpus},
    {"group", .take = take_group},
    {"name", .take = take_names},
    {"start", .time = &set.start},
    {"time", .time = &set.time},
    {"hogs", .number = &set.hogs, .least = 0, .most = CHILDREN_MAX},
    {"count", .number = &set.count, .least = 1, .most = 10000000},
    {"period", .time = &set.period},
    {"budget", .time = &set.budget},
    {"gap", .time = &set.gap},
    {"segments", .text = &set.segments},
    {"by", .text = &set.by},
    {"interval", .time = &set.interval},
    {"work", .time = &set.work},
    {"limit", .time = &set.limit},
    {"parallel", .number = &set.parallel, .least = 1, .most = CHILDREN_MAX},
    {"role", .text = &set.role},
    {"dir", .text = &set.dir},
    {"memory", .number = &set.memory, .least = 64, .most = 1 << 30},
    {"apart", .time = &set.apart},
    {"link", .take = take_link},
    {"mark", .text = &set.mark},
    {"thread", .take = take_thread},
    {"profile", .flag = &set.profile},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static void apply_setting(int at, char *text)
{
	if (settings[at].text)
		*settings[at].text = text;
	else if (settings[at].time)
		*settings[at].time = positive_time(text);
	else if (settings[at].number)
		*settings[at].number = parse_number(text, settings[at].least, settings[at].most);
	else if (settings[at].flag)
		*settings[at].flag = true;
	else
		settings[at].take(text);
}

static void parse_options(int argc, char **argv)
{
	enum { FIRST = 256 }; /* above all characters: '?' is no option */
	struct option options[SETTINGS + 1] = {0};
	for (int at = 0; at < SETTINGS; at++)
		options[at] = (struct option){settings[at].name, !settings[at].flag, NULL, FIRST + at};
	int found;
	while ((found = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (found < FIRST) {
			fputs(usage, stderr);
			exit(2);
		}
		apply_setting(found - FIRST, optarg);
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
