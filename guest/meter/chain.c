/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* chain: processes through which something passes, as from a camera to what is done about its frames.
 *
 * The first process has frames, one each period. Each passes on the number of the last frame that it knows of: to a process with a
 * period of its own in memory, to another one by a pipe, or by a timer that goes off some time later, as a message from another machine
 * would. The last process tells how old frames are at the end of its jobs. All end a second after --time. With --mark each process marks
 * the frame that it deals with.
 */
#include "../../libtierce/tierce-mark.h"

enum { LINKS_MAX = 16, VALUES_MAX = 100000 };

static struct chain_link {
	const char *name;
	ns_t period, after, least, most; /* no period: the one before wakes it */
	int hears, says;		 /* ends of its pipe, or both its timer */
} chain_links[LINKS_MAX];
static int chain_links_n;

static struct {
	volatile int64_t written[LINKS_MAX]; /* number of the last frame that each has told of, from 1 */
	ns_t ages[VALUES_MAX], responses[VALUES_MAX];
	long ages_n, responses_n;
} *chain_seen;

/* NAME,PERIOD,LEAST,MOST or NAME,after:TIME,LEAST,MOST or NAME,after,LEAST,MOST */
static void take_link(char *text)
{
	char *parts[4];
	if (chain_links_n == LINKS_MAX)
		fail("more than %d links", LINKS_MAX);
	for (int i = 0; i < 4; i++)
		if (!(parts[i] = strtok(i ? NULL : text, ",")))
			fail("--link: expected NAME,PERIOD,LEAST,MOST or NAME,after[:TIME],LEAST,MOST");
	struct chain_link *link = &chain_links[chain_links_n++];
	*link = (struct chain_link){.name = parts[0], .least = parse_time(parts[2], NULL), .most = parse_time(parts[3], NULL)};
	if (!strncmp(parts[1], "after:", 6))
		link->after = parse_time(parts[1] + 6, NULL);
	else if (strcmp(parts[1], "after") && !(link->period = parse_time(parts[1], NULL)))
		fail("--link %s: its period must not be 0", link->name);
	if (link->most < link->least)
		fail("--link %s: works %" PRId64 " to %" PRId64 " ns", link->name, link->least, link->most);
}

/* Wakes the one behind, who has no period. */
static void chain_wake(struct chain_link *next, int64_t frame)
{
	struct itimerspec in = {.it_value = {next->after / SECOND, next->after % SECOND}};
	bool failed =
	    next->after ? timerfd_settime(next->says, 0, &in, NULL) : write(next->says, &frame, sizeof frame) != sizeof frame;
	if (failed)
		fail("chain: %s: %s", next->name, strerror(errno));
}

/* The last one is done with a job: the age of what it knows, and how long each frame since the last one took. */
static void chain_tell(int64_t frame, int64_t told, ns_t start)
{
	ns_t done = now(), period = chain_links[0].period;
	if (chain_seen->ages_n < VALUES_MAX)
		chain_seen->ages[chain_seen->ages_n++] = done - start - (frame - 1) * period;
	for (; told < frame && chain_seen->responses_n < VALUES_MAX; told++)
		chain_seen->responses[chain_seen->responses_n++] = done - start - told * period;
}

static void chain_jobs(int me, ns_t start)
{
	struct chain_link *link = &chain_links[me], *next = me + 1 < chain_links_n ? link + 1 : NULL;
	ns_t due = start, end = start + set.time;
	uint64_t draws = (uint64_t)me + 1;
	int64_t frame = 0, told = 0;
	for (;;) {
		if (link->period) {
			if (due >= end)
				return;
			sleep_until(due);
			due += link->period;
			frame = me ? chain_seen->written[me - 1] : frame + 1;
		} else {
			int64_t message;
			if (read(link->hears, &message, sizeof message) != sizeof message)
				fail("chain: %s: %s", link->name, strerror(errno));
			frame = link->after ? chain_seen->written[me - 1] : message;
		}
		if (set.mark && frame)
			TIERCE_MARK(set.mark, frame);
		draws = draws * 6364136223846793005u + 1442695040888963407u;
		ns_t until = cpu_time() + link->least + (ns_t)((draws >> 33) % ((uint64_t)(link->most - link->least) + 1));
		while (cpu_time() < until)
			work_unit();
		chain_seen->written[me] = frame;
		if (next && !next->period)
			chain_wake(next, frame);
		if (!next && frame) {
			chain_tell(frame, told, start);
			told = frame;
		}
	}
}

static void chain(void)
{
	pid_t children[LINKS_MAX];
	if (chain_links_n < 2 || !chain_links[0].period)
		fail("chain: expected --link twice or more, the first with a period");
	chain_seen = shared(sizeof *chain_seen);
	for (int i = 0; i < chain_links_n; i++) {
		int ends[2] = {-1, -1};
		bool failed = chain_links[i].after ? (ends[0] = ends[1] = timerfd_create(CLOCK_MONOTONIC, 0)) < 0
						   : !chain_links[i].period && pipe(ends);
		if (failed)
			fail("chain: %s", strerror(errno));
		chain_links[i].hears = ends[0];
		chain_links[i].says = ends[1];
	}
	ns_t start = start_time(chain_links_n);
	for (int i = 0; i < chain_links_n; i++) {
		if ((children[i] = spawn()))
			continue;
		settle(i, chain_links[i].name);
		sleep_until(start);
		chain_jobs(i, start);
		exit(0);
	}
	for (int i = 0; i < chain_links_n; i++)
		if (chain_links[i].period)
			wait_all(&children[i], 1);
	/* Who is killed wakes once more: whoever records jobs may end before that. */
	sleep_until(start + set.time + SECOND);
	for (int i = 0; i < chain_links_n; i++) {
		if (chain_links[i].period)
			continue;
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	printf("{\"mode\":\"chain\",");
	print_spread("response", chain_seen->responses, chain_seen->responses_n);
	printf(",");
	print_spread("age", chain_seen->ages, chain_seen->ages_n);
	printf("}\n");
}
