/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* pingpong: two processes in turn. */

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
