/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * libtierce: lines of JSON over the manager's socket (docs/manager.md), and jobs as those of the crate tierce-job: release k is
 * at k periods since boot, it is slept for absolutely, and no job is left out. The connection watches, so each line that comes is an
 * answer or a notice.
 */
#define _GNU_SOURCE
#include "libtierce.h"
#include "tierce-mark.h"
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define USUAL "/run/tierce-manager.sock"
#define LINE_MAX_BYTES 65536
#define NOTICES_MAX 16
#define ANSWER_MS 60000 /* others may be asking */

struct tierce {
	int fd;
	uint64_t id;		 /* of the request; 0: none */
	struct tierce_mode mode; /* that it has; a period of 0: none */
	uint64_t wanted_ns;	 /* deadline of the jobs of what is asked for; 0: none */
	uint64_t deadline_ns;	 /* that of the mode that it has; 0: the next release */
	uint64_t period_ns, release_ns, jobs, misses;
	bool begun, done;
	char why[512];
	struct tierce_notice told[NOTICES_MAX];
	unsigned first, count;
	size_t length;
	char line[LINE_MAX_BYTES + 1];
};

static int fail(struct tierce *own, int error, const char *format, ...)
{
	va_list words;

	va_start(words, format);
	vsnprintf(own->why, sizeof own->why, format, words);
	va_end(words);
	errno = error;
	return -1;
}

static void set_period(struct tierce *own, uint64_t period_ns)
{
	if (own->period_ns != period_ns)
		own->begun = false;
	own->period_ns = period_ns;
}

/* JSON: as much as it takes to find a value. All of these return NULL for what is not there or not JSON. */

/* Past one value. */
static const char *skip(const char *at)
{
	bool in_text = false;
	int depth = 0;

	for (; *at; at++) {
		if (in_text) {
			if (*at == '\\' && at[1])
				at++;
			else if (*at == '"')
				in_text = false;
		} else if (*at == '"') {
			in_text = true;
		} else if (*at == '{' || *at == '[') {
			depth++;
		} else if (*at == '}' || *at == ']') {
			if (depth == 0)
				return at;
			depth--;
		} else if (*at == ',' && depth == 0) {
			return at;
		}
	}
	return depth == 0 && !in_text ? at : NULL;
}

/* The value of a key of the table that begins there. */
static const char *member(const char *at, const char *key)
{
	size_t length = strlen(key);

	if (!at || *at != '{')
		return NULL;
	while (*at == '{' || *at == ',') {
		const char *name = at + 1, *end = *name == '"' ? strchr(name + 1, '"') : NULL;

		if (!end || end[1] != ':')
			return NULL;
		if ((size_t)(end - name - 1) == length && !memcmp(name + 1, key, length))
			return end + 2;
		at = skip(end + 2);
		if (!at)
			return NULL;
	}
	return NULL;
}

/* A text, as far as there is room. Characters that are written in numbers become question marks. */
static void text(const char *at, char *to, size_t size)
{
	size_t length = 0;

	if (at && *at == '"') {
		for (at++; *at && *at != '"' && length + 1 < size; at++) {
			char byte = *at;

			if (byte == '\\' && at[1]) {
				byte = *++at;
				if (byte == 'u') {
					for (int digits = 0; digits < 4 && at[1] && at[1] != '"'; digits++)
						at++;
					byte = '?';
				} else if (byte == 'n' || byte == 't' || byte == 'r' || byte == 'b' || byte == 'f') {
					byte = ' ';
				}
			}
			to[length++] = byte;
		}
	}
	to[length] = 0;
}

static bool is(const char *at, const char *wanted)
{
	char found[32];

	text(at, found, sizeof found);
	return !strcmp(found, wanted);
}

/* A time such as "1.5ms", in ns; 0: it is none. */
static uint64_t time_ns(const char *at)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};
	char words[32], *end;
	uint64_t whole, part = 0, of = 1;

	text(at, words, sizeof words);
	whole = strtoull(words, &end, 10);
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9' && of < 1000000000; end++) {
			part = part * 10 + (uint64_t)(*end - '0');
			of *= 10;
		}
	for (unsigned at_unit = 0; at_unit < sizeof units / sizeof *units; at_unit++)
		if (!strcmp(end, units[at_unit].name) && whole < UINT64_MAX / 1000000000)
			return whole * units[at_unit].ns + part * units[at_unit].ns / of;
	return 0;
}

/* A mode of the manager, if it is a budget and a period: the thread has it, and jobs have its period. */
static void take_mode(struct tierce *own, const char *at)
{
	const char *value = member(at, "value");
	struct tierce_mode mode = {time_ns(member(at, "budget")), time_ns(member(at, "period")), 0};

	if (!mode.budget_ns || !mode.period_ns)
		return;
	mode.value = value ? strtoll(value, NULL, 10) : 0;
	own->mode = mode;
	own->deadline_ns = time_ns(member(at, "deadline"));
	set_period(own, mode.period_ns);
}

/* Lines of the manager. */

static int hung_up(struct tierce *own)
{
	return fail(own, ECONNRESET, "manager_must_run: the manager has hung up");
}

/* The next line, into own->line; the one before is dropped. 1: it is there; 0: not within that time. */
static int line(struct tierce *own, int timeout_ms, size_t *taken)
{
	for (;;) {
		char *end = memchr(own->line, '\n', own->length);
		struct pollfd ready = {.fd = own->fd, .events = POLLIN};
		ssize_t got;

		if (end) {
			*end = 0;
			*taken = (size_t)(end - own->line) + 1;
			return 1;
		}
		if (own->length == LINE_MAX_BYTES)
			return fail(own, EMSGSIZE, "answer_too_long: more than %d bytes", LINE_MAX_BYTES);
		got = poll(&ready, 1, timeout_ms);
		if (got == 0)
			return 0;
		if (got < 0 && errno == EINTR)
			continue;
		got = read(own->fd, own->line + own->length, LINE_MAX_BYTES - own->length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return hung_up(own);
		own->length += (size_t)got;
	}
}

static void drop_line(struct tierce *own, size_t taken)
{
	memmove(own->line, own->line + taken, own->length - taken);
	own->length -= taken;
}

/* If the line is a notice, it is kept if it is about this thread's request. */
static bool keep_notice(struct tierce *own)
{
	const char *event = member(own->line, "event"), *id, *within;
	struct tierce_notice *notice;

	if (!event)
		return false;
	id = member(event, "id");
	if (!own->id || !id || strtoull(id, NULL, 10) != own->id)
		return true;
	if (own->count == NOTICES_MAX) { /* the oldest goes */
		own->first = (own->first + 1) % NOTICES_MAX;
		own->count--;
	}
	notice = &own->told[(own->first + own->count++) % NOTICES_MAX];
	text(member(event, "what"), notice->what, sizeof notice->what);
	text(member(event, "text"), notice->text, sizeof notice->text);
	within = member(event, "within_ms");
	notice->within_ms = within ? strtoll(within, NULL, 10) : -1;
	if (!strcmp(notice->what, "ended") || !strcmp(notice->what, "revoked"))
		own->mode.period_ns = 0;
	if (!strcmp(notice->what, "ended"))
		own->id = 0;
	take_mode(own, member(event, "mode"));
	return true;
}

/* What is answered to a request. 0: granted or done; 1: pending; -1: refused, or wrong. */
static int answered(struct tierce *own)
{
	const char *answer = member(own->line, "answer"), *reason, *state;
	char rule[96], message[384];

	reason = answer ? member(answer, "reason") : member(own->line, "error");
	text(member(reason, "rule"), rule, sizeof rule);
	text(member(reason, "message"), message, sizeof message);
	if (!answer)
		return fail(own, EACCES, "%s: %s", rule, message);
	state = member(answer, "state");
	if (is(state, "refused"))
		return fail(own, EBUSY, "%s: %s", rule, message);
	if (member(answer, "about")) {
		const char *id = member(member(answer, "about"), "id");

		own->id = id ? strtoull(id, NULL, 10) : 0;
		own->mode.period_ns = 0;
		take_mode(own, member(member(member(answer, "about"), "granted"), "mode"));
	}
	return is(state, "pending");
}

static int ask(struct tierce *own, const char *request)
{
	size_t sent = 0, length = strlen(request), taken;
	int result;

	while (sent < length) {
		ssize_t now = send(own->fd, request + sent, length - sent, MSG_NOSIGNAL);

		if (now < 0 && errno != EINTR)
			return hung_up(own);
		sent += now > 0 ? (size_t)now : 0;
	}
	for (;;) {
		int there = line(own, ANSWER_MS, &taken);
		bool is_notice;

		if (there <= 0)
			return there < 0 ? there : fail(own, ETIMEDOUT, "manager_must_answer: not within %d ms", ANSWER_MS);
		is_notice = keep_notice(own);
		result = is_notice ? 0 : answered(own);
		drop_line(own, taken);
		if (!is_notice)
			return result;
	}
}

struct tierce *tierce_open(const char *path)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct tierce *own;
	int error;

	path = path ? path : USUAL;
	if (strlen(path) >= sizeof at.sun_path) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	strcpy(at.sun_path, path);
	own = calloc(1, sizeof *own);
	if (!own)
		return NULL;
	own->done = true;
	own->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* What has happened before is no news. */
	if (own->fd >= 0 && !connect(own->fd, (struct sockaddr *)&at, sizeof at) &&
	    ask(own, "{\"version\":1,\"request\":\"watch\",\"after\":9223372036854775807}\n") >= 0)
		return own;
	error = errno;
	tierce_close(own);
	errno = error;
	return NULL;
}

void tierce_close(struct tierce *own)
{
	if (own && own->fd >= 0)
		close(own->fd);
	free(own);
}

/* Ask for one of these modes; the period is that of the mode that it gets, or else of the most valuable. */
static int ask_modes(struct tierce *own, const char *what, const struct tierce_mode *modes, unsigned count)
{
	char request[128 + 192 * TIERCE_MODES_MAX], deadline[48] = "";
	const struct tierce_mode *best = modes;
	int length, result;

	if (count == 0 || count > TIERCE_MODES_MAX)
		return fail(own, EINVAL, "modes_must_be_few: %u modes, from 1 to %d", count, TIERCE_MODES_MAX);
	if (own->wanted_ns)
		snprintf(deadline, sizeof deadline, "\"deadline\":\"%lluns\",", (unsigned long long)own->wanted_ns);
	length = snprintf(request, sizeof request, "{\"version\":1,%s,\"modes\":[", what);
	for (const struct tierce_mode *mode = modes; mode < modes + count; mode++) {
		length += snprintf(request + length, sizeof request - (size_t)length,
				   "%s{\"budget\":\"%lluns\",\"period\":\"%lluns\",%s\"value\":%lld}", mode == modes ? "" : ",",
				   (unsigned long long)mode->budget_ns, (unsigned long long)mode->period_ns, deadline,
				   (long long)mode->value);
		best = mode->value > best->value ? mode : best;
	}
	snprintf(request + length, sizeof request - (size_t)length, "]}\n");
	result = ask(own, request);
	if (result >= 0 && !own->mode.period_ns) {
		own->deadline_ns = own->wanted_ns;
		set_period(own, best->period_ns);
	}
	return result;
}

int tierce_reserve_modes(struct tierce *own, const struct tierce_mode *modes, unsigned count, int flags)
{
	char what[96];

	if (own->id)
		return fail(own, EEXIST, "thread_must_have_no_request: it has request %llu", (unsigned long long)own->id);
	snprintf(what, sizeof what, "\"request\":\"request\",\"thread\":%ld,\"wait\":%s", syscall(SYS_gettid),
		 flags & TIERCE_PENDING ? "true" : "false");
	return ask_modes(own, what, modes, count);
}

int tierce_change_modes(struct tierce *own, const struct tierce_mode *modes, unsigned count)
{
	char what[96];

	if (!own->id)
		return fail(own, ENOENT, "request_must_exist: nothing was asked for");
	snprintf(what, sizeof what, "\"request\":\"change\",\"id\":%llu", (unsigned long long)own->id);
	return ask_modes(own, what, modes, count);
}

int tierce_reserve(struct tierce *own, uint64_t budget_ns, uint64_t period_ns, int64_t value, int flags)
{
	struct tierce_mode mode = {budget_ns, period_ns, value};

	return tierce_reserve_modes(own, &mode, 1, flags);
}

int tierce_change(struct tierce *own, uint64_t budget_ns, uint64_t period_ns, int64_t value)
{
	struct tierce_mode mode = {budget_ns, period_ns, value};

	return tierce_change_modes(own, &mode, 1);
}

void tierce_deadline(struct tierce *own, uint64_t deadline_ns)
{
	own->wanted_ns = deadline_ns;
}

int tierce_granted(const struct tierce *own, struct tierce_mode *mode)
{
	*mode = own->mode;
	return own->mode.period_ns != 0;
}

int tierce_cancel(struct tierce *own)
{
	char request[96];
	int result;

	if (!own->id)
		return fail(own, ENOENT, "request_must_exist: nothing was asked for");
	snprintf(request, sizeof request, "{\"version\":1,\"request\":\"cancel\",\"id\":%llu}\n", (unsigned long long)own->id);
	result = ask(own, request);
	if (result >= 0)
		own->id = own->mode.period_ns = 0;
	return result;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int tierce_done(struct tierce *own)
{
	bool missed;

	if (own->done)
		return 0;
	own->done = true;
	own->jobs++;
	missed = now_ns() > own->release_ns + (own->deadline_ns ? own->deadline_ns : own->period_ns);
	own->misses += missed;
	return missed;
}

int tierce_wait(struct tierce *own)
{
	struct timespec at;
	int missed;

	if (!own->period_ns)
		return fail(own, EINVAL, "period_must_be_known: tierce_reserve comes first");
	missed = tierce_done(own);
	if (own->begun) {
		own->release_ns += own->period_ns;
	} else {
		prctl(PR_SET_TIMERSLACK, 1UL); /* or the kernel may wake it 50 us late */
		own->release_ns = (now_ns() / own->period_ns + 1) * own->period_ns;
		own->begun = true;
	}
	at.tv_sec = (time_t)(own->release_ns / 1000000000u);
	at.tv_nsec = (long)(own->release_ns % 1000000000u);
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	own->done = false;
	return missed;
}

uint64_t tierce_jobs(const struct tierce *own)
{
	return own->jobs;
}

uint64_t tierce_misses(const struct tierce *own)
{
	return own->misses;
}

int tierce_told(struct tierce *own, struct tierce_notice *notice, int timeout_ms)
{
	uint64_t until_ns = now_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * 1000000u;

	while (own->count == 0) {
		uint64_t now = now_ns();
		int left_ms = timeout_ms < 0 ? -1 : now >= until_ns ? 0 : (int)((until_ns - now + 999999u) / 1000000u);
		size_t taken;
		int there = line(own, left_ms, &taken);

		if (there <= 0)
			return there;
		keep_notice(own);
		drop_line(own, taken);
	}
	*notice = own->told[own->first];
	own->first = (own->first + 1) % NOTICES_MAX;
	own->count--;
	return 1;
}

int tierce_fd(const struct tierce *own)
{
	return own->fd;
}

const char *tierce_why(const struct tierce *own)
{
	return own ? own->why : "no manager answers";
}

void tierce_mark(const char *label, uint64_t item)
{
	(void)*(const volatile char *)label; /* the kernel reads it only if it is in memory */
	TIERCE_MARK(label, item);
}
