/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Is what an edge is promised kept? Counted here, at every target, so that no lost record and no reader that comes late changes it.
 *
 * A window is a period of the edge's policy: so much is owed (a budget, the work of a time constraint) until its end, as long as the
 * child wants the CPU all the time. Who sleeps in a window is owed nothing in it, and it is not counted. A window is over as soon as
 * what is owed was received, which keeps the promise, or at its end, which breaks it, if more than the port's timer floor is missing.
 * Received is CPU time that went through the edge. Nothing is entered for the end of a window: the next charge finds out.
 *
 * Of a share, the parameters say what is promised in which time (TIERCE_PROMISED). Windows of that length follow each other from where
 * the child begins to want the CPU; each is counted whole, with all that was received in it, which may be more than is promised.
 */
#ifndef TIERCE_PROMISE_H
#define TIERCE_PROMISE_H

/* Nothing is owed until the next window begins. */
static inline void promise_ends(edge_t *x)
{
	x->promise.end_ns = TIERCE_NEVER;
}

/* What the CPU of an edge in its own tree had taken from it; of others nobody knows. */
static inline u64 promise_stolen_ns(edge_t *x)
{
	return x->flags & EDGE_PLAIN ? cpu_at(x->on_cpu)->stolen_ns : 0;
}

/* A window begins, and the child wants the CPU. Some periods begin at each wake-up, so this does little. */
static inline void promise_begins(edge_t *x, s64 owed_ns, u64 end_ns)
{
	x->promise.end_ns = end_ns;
	x->promise.owed_ns = owed_ns;
	x->promise.base_ns = x->supply_ns;
	x->promise.stolen_ns = promise_stolen_ns(x);
}

/* A window is over, and so much was received in it. Is anything missing? */
static inline u64 promise_counts(edge_t *x, u64 received_ns)
{
	struct tierce_promise *p = &x->promise;
	u64 missing_ns = 0;
	p->windows++;
	p->promised_ns += (u64)p->owed_ns;
	p->received_ns += received_ns;
	if (received_ns < p->least_ns)
		p->least_ns = received_ns;
	if (received_ns + STATE(floor_ns) < (u64)p->owed_ns) {
		missing_ns = (u64)p->owed_ns - received_ns;
		p->broken++;
		p->missing_ns += missing_ns;
	}
	return missing_ns;
}

/* Why? Its CPU was away, as much as is missing was stolen there, or others had it. */
static inline u32 promise_why(edge_t *x, u64 period_ns, u64 missing_ns)
{
	if (!(x->flags & EDGE_PLAIN))
		return TIERCE_UNKEPT_OTHERS;
	if (!cpu_at(x->on_cpu)->online || cpu_at(x->on_cpu)->back_ns + period_ns > x->promise.end_ns)
		return TIERCE_UNKEPT_AWAY;
	return promise_stolen_ns(x) - x->promise.stolen_ns >= missing_ns ? TIERCE_UNKEPT_STOLEN : TIERCE_UNKEPT_OTHERS;
}

/* The window under way is over: by now it has received what it has, or its end has passed, before or while its child ran the last
 * `ran_ns`. Of whole windows that passed before that, it has received nothing. At most so much was promised. */
TIERCE_FN int promise_over(u32 edge, u64 ran_ns, u64 period_ns, u64 most_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 received_ns = x->supply_ns - x->promise.base_ns, late_ns = 0, missing_ns, after_ns, more;
	if (x->promise.owed_ns > (s64)most_ns)
		x->promise.owed_ns = (s64)most_ns;
	if (x->promise.owed_ns <= (s64)STATE(floor_ns)) { /* debt has eaten it up */
		promise_ends(x);
		return 0;
	}
	if (now > x->promise.end_ns)
		late_ns = now - x->promise.end_ns;
	after_ns = ran_ns < late_ns ? ran_ns : late_ns;
	missing_ns = promise_counts(x, received_ns > after_ns ? received_ns - after_ns : 0);
	more = period_ns ? (late_ns - after_ns) / period_ns : 0;
	if (more) {
		x->promise.windows += (u32)more;
		x->promise.broken += (u32)more;
		more *= (u64)x->promise.owed_ns;
		x->promise.promised_ns += more;
		x->promise.missing_ns += more;
		x->promise.least_ns = 0;
		missing_ns += more;
	}
	if (missing_ns) {
		x->promise.why = promise_why(x, period_ns, missing_ns);
		port_trace(TIERCE_EV_unkept, x->cpu, edge, x->promise.why, missing_ns, now);
	}
	promise_ends(x);
	return 0;
}

/* The child has run: is the end of its window behind it? */
static inline bool promise_is_late(const edge_t *x, u64 now)
{
	return __builtin_expect(now > x->promise.end_ns, 0);
}

/* ---- shares ------------------------------------------------------------------------------------------------------ */

#define PROMISED_NS    AT(S.stage, TIERCE_PARAMS) /* as staged */
#define PROMISED_IN_NS AT(S.stage, TIERCE_PARAMS + 1)

/* Whoever sets the other parameters: what is promised to that edge is staged, too. */
static inline void promise_stage(u32 edge)
{
	bool promised = edge_at(edge)->flags & EDGE_PROMISED;
	graph_stage(TIERCE_PARAMS, promised ? (u64)edge_at(edge)->promise.owed_ns : 0);
	graph_stage(TIERCE_PARAMS + 1, promised ? edge_at(edge)->promise.window_ns : 0);
}

static inline bool share_promise_is_wrong(void)
{
	return PROMISED_NS > PROMISED_IN_NS;
}

/* The child begins to want the CPU. */
static inline void share_promise_begins(edge_t *x, u64 now)
{
	if (x->flags & EDGE_PROMISED)
		promise_begins(x, x->promise.owed_ns, now + x->promise.window_ns);
}

/* The edge takes the staged promise. If it is another one, the window under way is not counted. */
static inline void share_promise_set(edge_t *x, u64 now)
{
	bool same = (u64)x->promise.owed_ns == PROMISED_NS && x->promise.window_ns == PROMISED_IN_NS;
	x->promise.owed_ns = (s64)PROMISED_NS;
	x->promise.window_ns = (u32)PROMISED_IN_NS;
	x->flags &= ~EDGE_PROMISED;
	if (PROMISED_NS)
		x->flags |= EDGE_PROMISED;
	if (same)
		return;
	promise_ends(x);
	if (x->state != TIERCE_WAITING)
		share_promise_begins(x, now);
}

/* The end of a window is behind the child, which has run last from `begin` to `now`. */
TIERCE_FN int share_promise_over(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	u64 window_ns = x->promise.window_ns, end_ns = x->promise.end_ns, owed_ns = (u64)x->promise.owed_ns, begin_ns, whole;
	if (!window_ns)
		return 0;
	begin_ns = now - ran_ns > end_ns ? now - ran_ns : end_ns;
	promise_over(edge, ran_ns, window_ns, owed_ns, now); /* and those that passed before it ran */
	end_ns += ((begin_ns - end_ns) / window_ns + 1) * window_ns;
	if (now > end_ns) { /* it ran to the end of its window, and in others all the time */
		promise_begins(x, (s64)owed_ns, end_ns);
		x->promise.base_ns -= now - begin_ns;
		promise_over(edge, ran_ns, window_ns, owed_ns, now);
		whole = (now - end_ns - 1) / window_ns;
		x->promise.windows += (u32)whole;
		x->promise.promised_ns += whole * owed_ns;
		x->promise.received_ns += whole * window_ns;
		end_ns += (whole + 1) * window_ns;
		begin_ns = end_ns - window_ns;
	}
	promise_begins(x, (s64)owed_ns, end_ns);
	x->promise.base_ns -= now - begin_ns;
	return 0;
}

/* The child has run. */
static inline void share_promise_charge(u32 edge, u64 ran_ns, u64 now)
{
	if (promise_is_late(edge_at(edge), now) && (edge_at(edge)->flags & EDGE_PROMISED))
		share_promise_over(edge, ran_ns, now);
}

#endif
