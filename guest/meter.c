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

#include "meter/basics.c"
#include "meter/work.c"
#include "meter/processes.c"
#include "meter/spread.c"
#include "meter/supply.c"
#include "meter/turns.c"
#include "meter/switches.c"
#include "meter/jobs.c"
#include "meter/storms.c"

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
    "  --apart T         hogs: between the start of one and of the next (0)\n"
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
		APART,
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
	    {"apart", 1, 0, APART},
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
		case APART: set.apart = positive_time(optarg); break;
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
