/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Trouble for a scheduler, on demand. Each prints nothing and exits 0 when what it did went well.
 *
 *   trouble busy NAME            a thread of that name that computes for ever
 *   trouble forks N W            N forks, W at a time, each child computes a little and exits
 *   trouble execs N              N forks with exec
 *   trouble threads N            N threads at once, each yields and sleeps a little
 *   trouble class N              a busy child goes to SCHED_FIFO and back N times
 *   trouble affinity N           a busy and a sleepy child are moved between CPUs N times
 *   trouble nice N               a busy child changes its nice value N times
 *   trouble cgroups N            a busy child is moved between two cgroups N times
 *   trouble kill N               N busy children are started and killed
 *   trouble stop N               a busy child is stopped and continued N times
 *   trouble clock PERIOD_US N    a periodic thread; N periods
 *   trouble crowd N              N threads at once, which stay
 *   trouble storm N              N threads for ever: a fifth each change their name, fork, wake each other, yield, move between CPUs
 *   trouble asks WORK_MS MS      asks for a time constraint of its own, waits for the answer, and computes for MS
 *   trouble others PID           all that the kernel refuses towards a process of another user
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what)
{
	fprintf(stderr, "trouble: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void compute(long n)
{
	for (volatile long i = 0; i < n; i++)
		;
}

static pid_t busy(void)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid)
		for (;;)
			compute(1000000);
	return pid;
}

static pid_t sleepy(void)
{
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	while (!pid) {
		compute(1000);
		usleep(500);
	}
	return pid;
}

static void end(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid");
}

static void forks(long n, long width)
{
	long alive = 0;
	for (long i = 0; i < n; i++) {
		if (alive == width && wait(NULL) > 0)
			alive--;
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			compute(2000);
			_exit(0);
		}
		alive++;
	}
	while (wait(NULL) > 0)
		;
}

static void execs(long n)
{
	for (long i = 0; i < n; i++) {
		int status;
		pid_t pid = fork();
		if (pid < 0)
			die("fork");
		if (!pid) {
			execl("/bin/true", "true", NULL);
			_exit(1);
		}
		if (waitpid(pid, &status, 0) != pid || status)
			die("exec of /bin/true");
	}
}

static void *thread(void *unused)
{
	(void)unused;
	for (int i = 0; i < 20; i++) {
		compute(1000);
		sched_yield();
		usleep(200);
	}
	return NULL;
}

static void threads(long n)
{
	pthread_t *list = calloc((size_t)n, sizeof *list);
	for (long i = 0; i < n; i++)
		if ((errno = pthread_create(&list[i], NULL, thread, NULL)))
			die("pthread_create");
	for (long i = 0; i < n; i++)
		pthread_join(list[i], NULL);
}

static void *stays(void *unused)
{
	(void)unused;
	for (;;)
		pause();
	return NULL;
}

static void crowd(long n)
{
	pthread_attr_t small;
	pthread_t id;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (long i = 0; i < n; i++)
		if ((errno = pthread_create(&id, &small, stays, NULL)))
			die("pthread_create");
	stays(NULL);
}

static void rename_oneself(long i)
{
	static const char *name[] = {"sure", "tierce", "tierce-manager", "nobody"};
	prctl(PR_SET_NAME, name[i % 4]);
	compute(1000);
}

static void fork_one(long i)
{
	int status;
	pid_t pid = fork();
	(void)i;
	if (!pid)
		_exit(0);
	if (pid > 0)
		waitpid(pid, &status, 0);
}

static sem_t turn[1000];
static long turns;

static void wake_another(long i)
{
	static _Thread_local long mine = -1;
	static long given;
	if (mine < 0)
		mine = __atomic_fetch_add(&given, 1, __ATOMIC_RELAXED) % turns;
	sem_post(&turn[(mine + i) % turns]);
	sem_post(&turn[(mine + 1) % turns]);
	sem_wait(&turn[mine]);
}

static void yield(long i)
{
	(void)i;
	sched_yield();
}

static void move_oneself(long i)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(i % 2, &set);
	if (i % 3)
		CPU_SET(1 - i % 2, &set);
	sched_setaffinity(0, sizeof set, &set);
	compute(1000);
}

static void (*const stormy[])(long) = {rename_oneself, fork_one, wake_another, yield, move_oneself};

static void *storms(void *what)
{
	for (long i = 0;; i++)
		stormy[(long)what](i);
	return NULL;
}

static void storm(long n)
{
	pthread_attr_t small;
	pthread_t id;
	long kind = 0;
	turns = n / 5 < 1000 ? n / 5 : 1000;
	for (long i = 0; i < turns; i++)
		sem_init(&turn[i], 0, 0);
	while (kind < 4 && !fork()) /* a process for each kind: to fork one of a thousand threads takes long */
		kind++;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 16384);
	for (long i = 1; i < n / 5; i++)
		if ((errno = pthread_create(&id, &small, storms, (void *)kind)))
			die("pthread_create");
	storms((void *)kind);
}

static void refused(long result, const char *what)
{
	if (result != -1 || (errno != EPERM && errno != EACCES)) {
		fprintf(stderr, "trouble: %s was not refused\n", what);
		exit(1);
	}
}

static void others(pid_t pid)
{
	struct sched_param none = {0};
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(0, &set);
	refused(kill(pid, SIGSTOP), "a signal");
	refused(ptrace(PTRACE_SEIZE, pid, 0, 0), "ptrace");
	refused(sched_setaffinity(pid, sizeof set, &set), "an affinity");
	refused(sched_setscheduler(pid, SCHED_IDLE, &none), "a scheduling class");
	refused(setpriority(PRIO_PROCESS, (id_t)pid, 19), "a nice value");
}

static void class(long n)
{
	pid_t pid = busy();
	struct sched_param fifo = {.sched_priority = 1}, other = {0};
	for (long i = 0; i < n; i++) {
		if (sched_setscheduler(pid, SCHED_FIFO, &fifo))
			die("SCHED_FIFO");
		usleep(300);
		if (sched_setscheduler(pid, SCHED_OTHER, &other))
			die("SCHED_OTHER");
		usleep(300);
	}
	end(pid);
}

static void affinity(long n)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t pid[2] = {busy(), sleepy()};
	for (long i = 0; i < n; i++) {
		cpu_set_t set;
		CPU_ZERO(&set);
		for (long cpu = 0; cpu < cpus; cpu++)
			if (i % (cpus + 1) == cpus || i % (cpus + 1) == cpu)
				CPU_SET(cpu, &set);
		for (int j = 0; j < 2; j++)
			if (sched_setaffinity(pid[j], sizeof set, &set))
				die("sched_setaffinity");
		usleep(200);
	}
	end(pid[0]);
	end(pid[1]);
}

static void renice(long n)
{
	pid_t pid = busy();
	for (long i = 0; i < n; i++) {
		if (setpriority(PRIO_PROCESS, (id_t)pid, (int)(i % 40) - 20))
			die("setpriority");
		usleep(100);
	}
	end(pid);
}

static void move(const char *group, pid_t pid)
{
	char path[100];
	snprintf(path, sizeof path, "/sys/fs/cgroup/%s/cgroup.procs", group);
	FILE *file = fopen(path, "we");
	if (!file || fprintf(file, "%d\n", pid) < 0 || fclose(file))
		die(path);
}

static void cgroups(long n)
{
	FILE *control = fopen("/sys/fs/cgroup/cgroup.subtree_control", "we");
	if (!control || fprintf(control, "+cpu\n") < 0 || fclose(control))
		die("cgroup.subtree_control");
	if ((mkdir("/sys/fs/cgroup/a", 0755) || mkdir("/sys/fs/cgroup/b", 0755)) && errno != EEXIST)
		die("mkdir");
	pid_t pid = busy();
	for (long i = 0; i < n; i++) {
		move(i % 2 ? "a" : "b", pid);
		usleep(200);
	}
	end(pid);
}

static void kills(long n)
{
	for (long i = 0; i < n; i++) {
		pid_t pid = busy();
		usleep(i % 3 * 1000);
		end(pid);
	}
}

static void stops(long n)
{
	pid_t pid = busy();
	for (long i = 0; i < n; i++) {
		kill(pid, SIGSTOP);
		usleep(200);
		kill(pid, SIGCONT);
		usleep(200);
	}
	end(pid);
}

static void clock_beat(long period_us, long n)
{
	struct timespec next;
	clock_gettime(CLOCK_MONOTONIC, &next);
	for (long i = 0; i < n; i++) {
		next.tv_nsec += period_us * 1000;
		while (next.tv_nsec >= 1000000000) {
			next.tv_nsec -= 1000000000;
			next.tv_sec++;
		}
		compute(10000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
}

static void asks(long work_ms, long ms)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX, .sun_path = "/run/tierce.sock"};
	char text[256];
	struct pollfd there = {.fd = socket(AF_UNIX, SOCK_STREAM, 0), .events = POLLIN};
	struct timespec begun, now;
	ssize_t length;
	prctl(PR_SET_NAME, "asker");
	sleep(1); /* it is found by its name */
	if (connect(there.fd, (struct sockaddr *)&to, sizeof to))
		die("connect");
	length =
	    snprintf(text, sizeof text,
		     "{\"version\":1,\"request\":\"constrain\",\"tid\":%d,\"work_ns\":%ld000000,\"within_ns\":1000000000}\n",
		     (int)getpid(), work_ms);
	if (write(there.fd, text, (size_t)length) != length || poll(&there, 1, 10000) != 1)
		die("asks");
	clock_gettime(CLOCK_MONOTONIC, &begun);
	do {
		compute(1000);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - begun.tv_sec) * 1000 + (now.tv_nsec - begun.tv_nsec) / 1000000 < ms);
	length = read(there.fd, text, sizeof text - 1);
	if (length <= 0 || !memmem(text, (size_t)length, "\"ok\":true", 9))
		die("refused");
}

int main(int count, char **word)
{
	const char *what = count > 1 ? word[1] : "";
	long n = count > 2 ? atol(word[2]) : 0;
	if (!strcmp(what, "busy") && count > 2) {
		prctl(PR_SET_NAME, word[2]);
		for (;;)
			compute(1000000);
	}
	if (!strcmp(what, "forks"))
		forks(n, count > 3 ? atol(word[3]) : 8);
	else if (!strcmp(what, "execs"))
		execs(n);
	else if (!strcmp(what, "threads"))
		threads(n);
	else if (!strcmp(what, "crowd"))
		crowd(n);
	else if (!strcmp(what, "storm"))
		storm(n);
	else if (!strcmp(what, "asks"))
		asks(n, count > 3 ? atol(word[3]) : 100);
	else if (!strcmp(what, "others"))
		others((pid_t)n);
	else if (!strcmp(what, "class"))
		class(n);
	else if (!strcmp(what, "affinity"))
		affinity(n);
	else if (!strcmp(what, "nice"))
		renice(n);
	else if (!strcmp(what, "cgroups"))
		cgroups(n);
	else if (!strcmp(what, "kill"))
		kills(n);
	else if (!strcmp(what, "stop"))
		stops(n);
	else if (!strcmp(what, "clock"))
		clock_beat(n, count > 3 ? atol(word[3]) : 100);
	else
		return 2;
	return 0;
}
