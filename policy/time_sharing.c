/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * time-sharing: the child of the highest level runs, those of one level take turns. Who sleeps rises, who computes sinks.
 *
 * Example, quantum 10 ms; a, b and c have priority 8 and boost 2, a and b always want the CPU. a runs [0, 10), b [10, 15). There
 * c wakes from a sleep: it rises to level 10 and runs at once. At 25 it has used a quantum and sinks to 9, at 35 to 8, where it
 * goes to the end: b runs the 5 ms that were left to it, then a, then c. Had c slept again at 18, it would rise the next time,
 * too; having used a quantum it comes back with the level that it left with.
 *
 * A level never sinks below the priority, as in Windows NT, which HLS follows: so priorities keep their meaning whatever the
 * children did before. A multilevel feedback queue, where who computes ends up at the bottom, is the case of equal priorities.
 *
 * Rules
 *   1. The highest level is picked. A child of a higher level takes the CPU at once from one of a lower level, on several CPUs
 *      from the lowest of those that run.
 *   2. In a level the oldest turn is picked. A running child keeps its turn until its quantum is used, then it goes to the end
 *      of its level; who lost the CPU without blocking goes on with the rest of its quantum, before the others of its level.
 *      Quanta of a child alone follow each other without a gap.
 *   3. A child begins at its priority, and is there again when that is set. A used quantum lowers its level by one, but not
 *      below its priority.
 *   4. A child that blocks before it has used a quantum since it woke rises to priority + boost when it wakes, if it is not
 *      there; so does a new one. Others wake with the level with which they left, and so does who only gave way (yield).
 *   5. A child that has wanted the CPU for `starvation` without using up a quantum is lifted above all levels until it has, then
 *      it is at its priority. Who was lifted first goes first.
 *   6. On several CPUs, of the children of one level one that ran on this CPU last goes before the first one, if its turn is at
 *      most `affinity` turns younger. Who uses up its quantum goes on in the same way.
 * Gives up: any promise of time but the one of rule 5; with affinity equal turns within a level. Who blocks just before its
 * quantum is used keeps its boost.
 * Conservation: the order holds exactly the READY edges, each has a turn of its own; no READY child is at a higher level than the
 * one that a CPU runs which it could use (HLS 9.3.1); priority <= level <= priority + boost, or lifted. With n children on a
 * whole CPU, each that wants it uses a quantum in every starvation + n * quantum.
 * Source: HLS 9.2.2, 9.3.1, 5.2.2.5; rules 3 to 5 as in Windows 2000, where rule 5 asks who has not run at all for 3 to 4 s.
 */

#ifndef TIERCE_POLICY_BODIES

#define POLICY_time_sharing(P, V) \
	P(10, time_sharing, "time-sharing", TIERCE_SPREADS, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 10000000, "turn of each child within its level") \
	  V("starvation", TIME, 0, TIERCE_PERIOD_MAX, 3000000000, \
	    "a child that waits this long without using up a quantum runs before all others until it has; 0: never") \
	  V("affinity", COUNT, 0, 1000, 0, "turns by which a child that last ran on this CPU may run ahead of its place in a level"), \
	  V("priority", COUNT, 0, 255, 8, "its initial and lowest level; larger runs first") \
	  V("boost", COUNT, 0, 255, 2, "levels above its priority when it wakes up, if it blocked within a quantum"))

struct levels_edge {
	u64 key;	/* level, whether its quantum is under way, turn */
	s64 quantum_ns; /* rest of it */
	u64 since_ns;	/* it wants the CPU and has used no quantum; when it left, while it does not */
	u32 used;	/* no boost at the next wake-up: it has used a quantum, or did not block */
};

#else
#include "check.h"

enum { SHARING_QUANTUM, SHARING_STARVATION, SHARING_AFFINITY }; /* node parameters */
enum { SHARING_PRIORITY, SHARING_BOOST };			/* edge parameters */

/* A key: level from above, 1 bit, turn. The bit: its quantum is not under way. Turns wrap after 4 years at 1 million a second. */
#define LEVEL_LIFTED 1023u
#define LEVEL_SHIFT  48
#define LEVEL_WAITS  (1ull << 47)

static inline u32 level_of(u64 key)
{
	return LEVEL_LIFTED - (u32)(key >> LEVEL_SHIFT);
}
static inline u64 level_key(u32 level, u64 turn)
{
	return (u64)(LEVEL_LIFTED - level) << LEVEL_SHIFT | LEVEL_WAITS | (turn & (LEVEL_WAITS - 1));
}

TIERCE_FN int time_sharing_init(u32 node)
{
	node_at(node)->near = node_at(node)->param[SHARING_AFFINITY];
	return TIERCE_OK;
}

TIERCE_FN int time_sharing_set(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	u32 level = (u32)AT(S.stage, SHARING_PRIORITY);
	x->param[SHARING_PRIORITY] = level;
	x->param[SHARING_BOOST] = AT(S.stage, SHARING_BOOST);
	if (level_of(x->levels.key) != LEVEL_LIFTED)
		x->levels.key = (u64)(LEVEL_LIFTED - level) << LEVEL_SHIFT | (x->levels.key & ((1ull << LEVEL_SHIFT) - 1));
	return TIERCE_OK;
}

TIERCE_FN int time_sharing_attach(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->levels.key = level_key(0, 0);
	x->levels.quantum_ns = 0;
	x->levels.since_ns = now;
	x->levels.used = 0;
	return time_sharing_set(edge, now);
}

TIERCE_FN int time_sharing_detach(u32 edge)
{
	event_clear(edge);
	return 0;
}

/* It wants the CPU: look again when that has been so for too long. One event at a time, which may come too early. */
static inline void time_sharing_waits(u32 edge)
{
	u64 starvation_ns = parent_of(edge)->param[SHARING_STARVATION];
	if (starvation_ns && !event_is_set(edge))
		event_set(edge, edge_at(edge)->levels.since_ns + starvation_ns);
}

/* It has run for at least the rest of its quantum. */
static inline void time_sharing_uses(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u64 quantum_ns = node->param[SHARING_QUANTUM], over_ns = ran_ns - (u64)x->levels.quantum_ns;
	u64 level = level_of(x->levels.key), sunk = x->param[SHARING_PRIORITY], quanta = 1 + over_ns / quantum_ns;
	if (level != LEVEL_LIFTED && level > sunk + quanta)
		sunk = level - quanta;
	over_ns = node_contended(x->parent) ? 0 : over_ns % quantum_ns; /* alone: of the one under way */
	x->levels.key = level_key((u32)sunk, ++node->clock);
	x->levels.quantum_ns = (s64)(quantum_ns - over_ns);
	x->levels.since_ns = now - over_ns;
	x->levels.used = 1;
	node->near = node->param[SHARING_AFFINITY];
}
TIERCE_FN int time_sharing_used(u32 edge, u64 ran_ns, u64 now)
{
	time_sharing_uses(edge, ran_ns, now);
	if (node_contended(edge_at(edge)->parent))
		time_sharing_waits(edge);
	return 0;
}

TIERCE_FN int time_sharing_woke(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	u32 level = level_of(x->levels.key), most = (u32)(x->param[SHARING_PRIORITY] + x->param[SHARING_BOOST]);
	if (node->running && !node_contended(x->parent)) { /* nobody looked when the quanta of one alone ended */
		edge_t *running = edge_at(node->running);
		u64 ran_ns = uncharged_ns(parent_of(edge), now);
		if (ran_ns && running->levels.quantum_ns <= (s64)ran_ns) {
			time_sharing_uses(node->running, ran_ns, now);
			running->levels.quantum_ns += (s64)ran_ns; /* which the charge takes off */
		}
	}
	if (!x->levels.used && now > x->levels.since_ns && level < most)
		level = most;
	x->levels.key = level_key(level, ++node->clock);
	x->levels.quantum_ns = 0;
	x->levels.since_ns = now;
	x->levels.used = 0;
	return 0;
}

static inline void time_sharing_request(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_MOVED)
		edge_at(edge)->levels.used = 1; /* it did not sleep: no boost */
	if (why != TIERCE_RESTORED)
		time_sharing_woke(edge, now);
	order_insert(edge, edge_at(edge)->levels.key);
	time_sharing_waits(edge);
}

/* It wants the CPU no more. */
static inline void time_sharing_left(u32 edge, u32 why, u64 now)
{
	edge_t *x = edge_at(edge);
	if (why != TIERCE_BLOCKED)
		x->levels.used = 1;
	if (level_of(x->levels.key) == LEVEL_LIFTED)
		x->levels.key = level_key((u32)x->param[SHARING_PRIORITY], x->levels.key);
	x->levels.since_ns = now;
}

static inline void time_sharing_release(u32 edge, u32 why, u64 now)
{
	order_remove(edge);
	if (why != TIERCE_MOVED)
		time_sharing_left(edge, why, now);
}

static inline bool time_sharing_before(u32 a, u32 b, u64 now)
{
	return edge_at(a)->levels.key < edge_at(b)->levels.key;
}

/* Rule 6: the least of the order's members near `first` that ran on this CPU last, or `first`: of the members nearest to the top,
 * in 32 steps from link to link. */
TIERCE_FN u32 time_sharing_near(u32 node, u32 first, u32 cpu)
{
	u64 most = order_link(first)->key + node_at(node)->near;
	u32 x = node_at(node)->order, from = TIERCE_NONE, found = TIERCE_NONE, step, next;
	if (edge_at(first)->on_cpu == cpu)
		return first;
	for (step = ZERO; x && step < 32 && CAN_LOOP; step++) {
		next = TIERCE_NONE;
		if (!from && order_link(x)->key <= most) {
			if (edge_at(x)->on_cpu == cpu && (!found || link_before(x, found, TIERCE_ORDER)))
				found = x;
			next = order_link(x)->left;
		} else if (from && from == order_link(x)->left) {
			next = order_link(x)->right;
		}
		from = next ? TIERCE_NONE : x;
		x = next ? next : order_link(x)->up;
	}
	return found ? found : first;
}

static inline u32 time_sharing_first(u32 node, u32 first, u32 cpu, u64 now)
{
	return node_at(node)->near ? time_sharing_near(node, first, cpu) : first;
}

static inline u32 time_sharing_pick(u32 node, u32 first, u32 running, u64 now)
{
	u64 a = edge_at(first)->levels.key, b = edge_at(running)->levels.key;
	if ((a ^ b) >> LEVEL_SHIFT)
		return a < b ? first : running;
	return (b & LEVEL_WAITS) && a + node_at(node)->near < b ? first : running;
}

static inline void time_sharing_grant(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	x->levels.key &= ~LEVEL_WAITS;
	if (x->levels.quantum_ns <= 0)
		x->levels.quantum_ns = (s64)parent_of(edge)->param[SHARING_QUANTUM];
}

static inline void time_sharing_revoke(u32 edge, u32 why, u64 now)
{
	if (why == TIERCE_OUTRANKED) {
		order_insert(edge, edge_at(edge)->levels.key);
		time_sharing_waits(edge);
	} else {
		time_sharing_left(edge, why, now);
	}
}

/* It ran after its quantum was used: because nobody else was picked, or only until the CPU had decided anew? */
TIERCE_FN int time_sharing_goes_on(u32 edge, u64 now)
{
	u32 node = edge_at(edge)->parent, row = node_at(node)->row, first = node_at(node)->order;
	u32 local = row ? ROW(row, order, edge_at(edge)->on_cpu) : TIERCE_NONE;
	if ((!first || time_sharing_pick(node, first, edge, now) == edge) &&
	    (!local || time_sharing_pick(node, local, edge, now) == edge))
		edge_at(edge)->levels.key &= ~LEVEL_WAITS;
	return 0;
}

static inline bool time_sharing_charge(u32 edge, u64 ran_ns, u64 now)
{
	edge_t *x = edge_at(edge);
	if (x->levels.key & LEVEL_WAITS)
		time_sharing_goes_on(edge, now);
	if (x->levels.quantum_ns > (s64)ran_ns)
		x->levels.quantum_ns -= (s64)ran_ns;
	else
		time_sharing_used(edge, ran_ns, now);
	return false;
}

static inline u64 time_sharing_until(u32 edge, u64 now)
{
	return node_contended(edge_at(edge)->parent) ? now + (u64)edge_at(edge)->levels.quantum_ns : TIERCE_NEVER;
}

/* Has it wanted the CPU for too long? Who runs and has nobody waiting is looked at again when that ends. */
TIERCE_FN int time_sharing_event(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *node = parent_of(edge);
	bool waits = x->state == TIERCE_READY || (x->state == TIERCE_GRANTED && node_contended(x->parent));
	if (!waits || !node->param[SHARING_STARVATION] || level_of(x->levels.key) == LEVEL_LIFTED)
		return 0;
	if (x->levels.since_ns + node->param[SHARING_STARVATION] > now) {
		time_sharing_waits(edge);
	} else if (x->state == TIERCE_READY) {
		order_remove(edge);
		x->levels.key = level_key(LEVEL_LIFTED, ++node->clock);
		order_insert(edge, x->levels.key);
	} else {
		x->levels.key &= LEVEL_WAITS - 1;
	}
	return 0;
}

/* Before all, if a child of a lower level has the other CPU. */
TIERCE_FN u64 time_sharing_ahead(u32 edge, u32 to, u64 now)
{
	u32 running = node_at(to)->running, level = level_of(edge_at(edge)->levels.key);
	u32 other = running ? level_of(edge_at(running)->levels.key) : level;
	return level > other ? (u64)(level - other) << 32 : turn_ahead(edge, to, now);
}

#define time_sharing_lose nothing_lose
#define time_sharing_announce nothing_announce
#define time_sharing_deadline nothing_deadline
#define time_sharing_depart time_sharing_detach
#define time_sharing_arrive nothing_arrive
#define time_sharing_clock nothing_clock
#define time_sharing_tell nothing_tell

/* Is a CPU that could run this READY edge given to one of a lower level, and nobody about to decide anew? */
static inline u32 time_sharing_check(u32 edge, u32 rest)
{
	edge_t *x = edge_at(edge), *y;
	u32 other;
	if (x->state != TIERCE_READY)
		return TIERCE_HOLDS;
	for (other = 1; other < S.fresh_edge; other++) {
		y = edge_at(other);
		if (y->parent != x->parent || !y->child || y->state != TIERCE_GRANTED || (y->flags & EDGE_LEFT))
			continue;
		if (S.cpu[y->on_cpu].kick_pending || S.cpu[y->on_cpu].outside || !S.cpu[y->on_cpu].online)
			continue;
		if ((x->flags & EDGE_LOCAL) && x->cpu != y->on_cpu)
			continue;
		if (rest || !parent_of(edge)->row) /* CPUs of a shared node decide one after the other */
			HOLDS(highest_level_runs, level_of(x->levels.key) <= level_of(y->levels.key));
	}
	return TIERCE_HOLDS;
}
#define time_sharing_check_node nothing_check_node

#endif
