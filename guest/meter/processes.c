/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Processes: their class, CPU, cgroup and name; all of them start at one moment; hogs beside them. */

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
