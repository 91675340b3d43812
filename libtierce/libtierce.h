/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread asks Tierce's resource manager for CPU time, does a job in each period, and is told what happens to its
 * guarantee. See libtierce(3). One `struct tierce` belongs to one thread.
 *
 *	struct tierce *own = tierce_open(NULL);
 *	if (!own || tierce_reserve(own, 2000000, 10000000, 0, 0) < 0)
 *		errx(1, "%s", tierce_why(own));
 *	while (tierce_wait(own) >= 0)
 *		job();
 */
#ifndef LIBTIERCE_H
#define LIBTIERCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tierce;

/* tierce_reserve: if it cannot be granted now, it may be later; tierce_told says when. */
#define TIERCE_PENDING 1

struct tierce_notice {
	/* granted, changed, will_end, stays, revoked, ended, promise_not_kept, deadline_missed, match_ended */
	char what[32];
	char text[256];	   /* the reason, for people */
	int64_t within_ms; /* will_end: until then a smaller wish may save it; otherwise -1 */
};

/* One of several wishes: the manager chooses the most valuable that fits. */
struct tierce_mode {
	uint64_t budget_ns, period_ns;
	int64_t value;
};
#define TIERCE_MODES_MAX 8

/* A connection to the manager at `path`, NULL: the usual place. NULL: nobody answers; see errno. */
struct tierce *tierce_open(const char *path);
/* The guarantee stays with the thread until that ends; tierce_cancel ends it before. NULL is allowed. */
void tierce_close(struct tierce *own);

/* Ask for `budget_ns` in every `period_ns` for the calling thread. 0: granted; 1: pending; -1: not, see tierce_why. */
int tierce_reserve(struct tierce *own, uint64_t budget_ns, uint64_t period_ns, int64_t value, int flags);
/* Another wish. Less is always granted: no larger share, no shorter period, no higher value. */
int tierce_change(struct tierce *own, uint64_t budget_ns, uint64_t period_ns, int64_t value);
/* The same with several modes. Jobs have the period of the one that it has. */
int tierce_reserve_modes(struct tierce *own, const struct tierce_mode *modes, unsigned count, int flags);
int tierce_change_modes(struct tierce *own, const struct tierce_mode *modes, unsigned count);
/*
 * What is asked for from here on has this deadline for each of its jobs; 0: none. The kernel side then counts jobs, from a wake-up to the
 * next sleep, that take longer, and the notice deadline_missed says so. tierce_done goes by it, too, from the release.
 */
void tierce_deadline(struct tierce *own, uint64_t deadline_ns);
/* The mode that it has, as far as the thread has been told. 1: this one; 0: none. */
int tierce_granted(const struct tierce *own, struct tierce_mode *mode);
/* End the guarantee. */
int tierce_cancel(struct tierce *own);

/* The job is done. 1: it has missed its deadline, which is the next release, or that of tierce_deadline; 0: it has not. */
int tierce_done(struct tierce *own);
/* The job is done, if that was not said before; sleep until the next release. Returns as tierce_done; -1: there is no period. */
int tierce_wait(struct tierce *own);
/* Jobs that are done, and how many of them have missed their deadline. */
uint64_t tierce_jobs(const struct tierce *own);
uint64_t tierce_misses(const struct tierce *own);

/* What the thread is told, within that time (-1: for ever). 1: a notice; 0: none; -1: the manager has hung up. */
int tierce_told(struct tierce *own, struct tierce_notice *notice, int timeout_ms);
/* From here on the calling thread deals with that item: see tierce-mark.h, which programs in C need no library for. */
void tierce_mark(const char *label, uint64_t item);

/* Readable when there may be a notice, for poll. */
int tierce_fd(const struct tierce *own);
/* Why the last call has returned -1: a rule and a sentence. Never NULL. */
const char *tierce_why(const struct tierce *own);

#ifdef __cplusplus
}
#endif

#endif
