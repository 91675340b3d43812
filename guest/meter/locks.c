/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* locks: periodic threads of one process, some of which have a mutex in a part of each job. */

#include <pthread.h>

static struct lock_thread {
	const char *name;
	ns_t period, phase, work, at, length; /* in each job, from `at` on, it has the mutex for `length` of work */
	ns_t longest_response, longest_wait, start;
	long jobs;
} lock_threads[LINKS_MAX];
static int lock_threads_n;
static pthread_mutex_t lock_mutex;

/* NAME,PERIOD,PHASE,WORK or NAME,PERIOD,PHASE,WORK,AT,LENGTH */
static void take_thread(char *text)
{
	char *parts[6] = {0};
	int n = 0;
	if (lock_threads_n == LINKS_MAX)
		fail("more than %d threads", LINKS_MAX);
	for (char *part = strtok(text, ","); part && n < 6; part = strtok(NULL, ","))
		parts[n++] = part;
	if (n != 4 && n != 6)
		fail("--thread: expected NAME,PERIOD,PHASE,WORK or NAME,PERIOD,PHASE,WORK,AT,LENGTH");
	struct lock_thread *thread = &lock_threads[lock_threads_n++];
	*thread = (struct lock_thread){.name = parts[0],
				       .period = parse_time(parts[1], NULL),
				       .phase = parse_time(parts[2], NULL),
				       .work = parse_time(parts[3], NULL)};
	if (n == 6) {
		thread->at = parse_time(parts[4], NULL);
		thread->length = parse_time(parts[5], NULL);
	}
	if (!thread->period || thread->at + thread->length > thread->work)
		fail("--thread %s: expected a period, and AT and LENGTH within WORK", thread->name);
}

static void work_for(ns_t length)
{
	ns_t until = cpu_time() + length;
	while (cpu_time() < until)
		work_unit();
}

static void *lock_jobs(void *data)
{
	struct lock_thread *thread = data;
	ns_t due = thread->start + thread->phase, end = thread->start + set.time;
	set_name(thread->name);
	for (; due < end; due += thread->period, thread->jobs++) {
		sleep_until(due);
		work_for(thread->at);
		if (thread->length) {
			ns_t asked = now();
			pthread_mutex_lock(&lock_mutex);
			ns_t waited = now() - asked;
			if (waited > thread->longest_wait)
				thread->longest_wait = waited;
			work_for(thread->length);
			pthread_mutex_unlock(&lock_mutex);
		}
		work_for(thread->work - thread->at - thread->length);
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
	if (pthread_mutexattr_setprotocol(&how, inherits ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE) ||
	    pthread_mutex_init(&lock_mutex, &how))
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
