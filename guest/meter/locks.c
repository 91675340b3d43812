/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* locks: periodic threads of one process, some of which have mutexes in parts of each job. */

#include <pthread.h>

enum { LOCKS_MAX = 4, SECTIONS_MAX = 4 };

struct lock_step { /* after `at` of work a job takes this mutex, or gives it back */
	ns_t at;
	int lock;
	bool takes;
};
static struct lock_thread {
	const char *name;
	ns_t period, phase, work;
	struct lock_step steps[2 * SECTIONS_MAX]; /* in order */
	int steps_n;
	ns_t longest_response, longest_wait, start;
	long jobs;
} lock_threads[LINKS_MAX];
static int lock_threads_n;
static pthread_mutex_t lock_mutexes[LOCKS_MAX];

/* Where several are at one place: give back first, in the opposite order. */
static void add_step(struct lock_thread *thread, struct lock_step step)
{
	int i = thread->steps_n++;
	for (; i > 0 && (step.takes ? thread->steps[i - 1].at > step.at : thread->steps[i - 1].at >= step.at); i--)
		thread->steps[i] = thread->steps[i - 1];
	thread->steps[i] = step;
}
/* AT, and LENGTH or LENGTH:LOCK */
static void take_section(struct lock_thread *thread, const char *at, const char *length)
{
	const char *rest;
	ns_t from = parse_time(at, NULL), to = from + parse_time(length, &rest);
	int lock = *rest ? (int)parse_number(rest + 1, 0, LOCKS_MAX - 1) : 0;
	if (thread->steps_n == 2 * SECTIONS_MAX)
		fail("--thread %s: more than %d sections", thread->name, SECTIONS_MAX);
	if (to == from || to > thread->work)
		fail("--thread %s: expected AT and LENGTH within WORK", thread->name);
	add_step(thread, (struct lock_step){from, lock, true});
	add_step(thread, (struct lock_step){to, lock, false});
}

/* NAME,PERIOD,PHASE,WORK and any number of sections */
static void take_thread(char *text)
{
	char *parts[4 + 2 * SECTIONS_MAX + 1] = {0};
	int n = 0, most = sizeof parts / sizeof *parts;
	if (lock_threads_n == LINKS_MAX)
		fail("more than %d threads", LINKS_MAX);
	for (char *part = strtok(text, ","); part && n < most; part = strtok(NULL, ","))
		parts[n++] = part;
	if (n < 4 || n == most || n % 2)
		fail("--thread: expected NAME,PERIOD,PHASE,WORK and at most %d times AT,LENGTH", SECTIONS_MAX);
	struct lock_thread *thread = &lock_threads[lock_threads_n++];
	*thread = (struct lock_thread){.name = parts[0],
				       .period = parse_time(parts[1], NULL),
				       .phase = parse_time(parts[2], NULL),
				       .work = parse_time(parts[3], NULL)};
	if (!thread->period)
		fail("--thread %s: its period must not be 0", thread->name);
	for (int i = 4; i < n; i += 2)
		take_section(thread, parts[i], parts[i + 1]);
}

static void work_for(ns_t length)
{
	ns_t until = cpu_time() + length;
	while (cpu_time() < until)
		work_unit();
}

static void lock_take(struct lock_thread *thread, int lock)
{
	ns_t asked = now();
	pthread_mutex_lock(&lock_mutexes[lock]);
	ns_t waited = now() - asked;
	if (waited > thread->longest_wait)
		thread->longest_wait = waited;
}

static void *lock_jobs(void *data)
{
	struct lock_thread *thread = data;
	ns_t due = thread->start + thread->phase, end = thread->start + set.time;
	set_name(thread->name);
	for (; due < end; due += thread->period, thread->jobs++) {
		ns_t done = 0;
		sleep_until(due);
		for (int i = 0; i < thread->steps_n; i++) {
			struct lock_step *step = &thread->steps[i];
			work_for(step->at - done);
			done = step->at;
			if (step->takes)
				lock_take(thread, step->lock);
			else
				pthread_mutex_unlock(&lock_mutexes[step->lock]);
		}
		work_for(thread->work - done);
		if (now() - due > thread->longest_response)
			thread->longest_response = now() - due;
	}
	return NULL;
}

static void locks(void)
{
	pthread_t threads[LINKS_MAX];
	pthread_mutexattr_t how;
	bool inherits = set.by && !strcmp(set.by, "inherit");
	if (!lock_threads_n)
		fail("locks: expected --thread once or more");
	pthread_mutexattr_init(&how);
	if (pthread_mutexattr_setprotocol(&how, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE))
		fail("locks: no such mutex");
	for (int i = 0; i < LOCKS_MAX; i++)
		if (pthread_mutex_init(&lock_mutexes[i], &how))
			fail("locks: no such mutex");
	settle(0, "locks");
	ns_t start = start_time(lock_threads_n);
	for (int i = 0; i < lock_threads_n; i++) {
		lock_threads[i].start = start;
		if (pthread_create(&threads[i], NULL, lock_jobs, &lock_threads[i]))
			fail("locks: no thread");
	}
	for (int i = 0; i < lock_threads_n; i++)
		pthread_join(threads[i], NULL);
	printf("{\"mode\":\"locks\"");
	for (int i = 0; i < lock_threads_n; i++)
		printf(",\"%s\":{\"jobs\":%ld,\"longest_response_ns\":%" PRId64 ",\"longest_wait_ns\":%" PRId64 "}",
		       lock_threads[i].name, lock_threads[i].jobs, lock_threads[i].longest_response,
		       lock_threads[i].longest_wait);
	printf("}\n");
}
