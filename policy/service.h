/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What policies and engine share: access to the arrays, the orders of ready edges, the events of a domain. */
#ifndef TIERCE_SERVICE_H
#define TIERCE_SERVICE_H

#include "tierce.h"
#include "events.h"

/* On a single CPU nothing is shared or spread, and the compiler leaves out what is for that; so does a port whose plans have none. */
#define SEVERAL_CPUS (TIERCE_CPUS > 1)
#define SHARES	     (SEVERAL_CPUS && PORT_HAS_PART(shared))
#define SPREADS (TIERCE_CPUS > 1 && PORT_HAS_PART(spread) && S.families)

typedef struct tierce_edge edge_t;
typedef struct tierce_node node_t;
typedef struct tierce_cpu cpu_t;
typedef struct tierce_row row_t;
typedef struct tierce_link link_t;
typedef struct tierce_domain domain_t;
typedef struct tierce_group group_t;

static inline edge_t *edge_at(u32 edge)
{
	return &AT_STATE(edge, edge);
}
static inline node_t *node_at(u32 node)
{
	return &AT_STATE(node, node);
}
static inline link_t *order_link(u32 edge)
{
	return &edge_at(edge)->link[TIERCE_ORDER];
}
/* Of the first of an order: nobody else is in it. */
static inline bool order_is_alone(u32 first)
{
	return !order_link(first)->left && !order_link(first)->right;
}
static inline link_t *event_link(u32 edge)
{
	return &edge_at(edge)->link[TIERCE_EVENTS];
}
static inline cpu_t *cpu_at(u32 cpu)
{
	return &AT_STATE(cpu, cpu);
}
static inline domain_t *domain_at(u32 domain)
{
	return &AT_STATE(domain, domain);
}
/* Is the domain that of a group? Nodes that nobody reaches and tasks in transit have none. */
static inline bool is_shared(u32 domain)
{
	return domain - TIERCE_CPUS < TIERCE_CPUS;
}
/* The group of a shared domain. */
static inline group_t *group_at(u32 domain)
{
	return &AT_STATE(group, domain - TIERCE_CPUS);
}
/* The shared domain of the group of a CPU, which is locked. */
static inline u32 shared_of(u32 cpu)
{
	return TIERCE_CPUS + cpu_at(cpu)->group;
}
static inline node_t *parent_of(u32 edge)
{
	return node_at(edge_at(edge)->parent);
}
/* The same of an edge whose domain is locked: the parent changes only while nobody has the edge. */
static inline u32 parent_held(const edge_t *x)
{
	return HELD(x, parent);
}

#include "cpus.h"

/* The part of a row in which this CPU is, and where in it. */
static inline row_t *row_at(u32 row, u32 cpu)
{
	return &AT_STATE(row, TIERCE_WORDS > 1 ? row + (cpu >> 6) * TIERCE_ROWS : row);
}
#define ROW_PLACE(cpu)	     (TIERCE_WORDS > 1 ? (cpu) & 63 : (cpu))
#define ROW(row, field, cpu) AT(row_at(row, cpu)->field, ROW_PLACE(cpu))

/* ---- orders ---- */

TIERCE_FN u32 order_put(u32 root, u32 x, u64 key);
TIERCE_FN u32 order_out(u32 root, u32 x);
TIERCE_FN u32 events_put(u32 root, u32 x, u64 at_ns);
TIERCE_FN u32 events_out(u32 root, u32 x);

static inline bool order_after(u32 first, u32 edge, u64 key)
{
	u64 least = order_link(first)->key;
	return least < key || (least == key && first < edge);
}

/* Whoever is first in an order now, and the second member of all, go without a call: nearly always it is one of these. */
PORT_SHORT void order_insert(u32 edge, u64 key)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(parent_held(x));
	link_t *link = &x->link[TIERCE_ORDER];
	u32 first = node->order;
	if (SHARES && (x->flags & EDGE_LOCAL)) {
		ROW(node->row, order, x->cpu) = order_put(ROW(node->row, order, x->cpu), edge, key);
	} else if (!first || !order_after(first, edge, key)) {
		link->key = key;
		link->left = first;
		link->right = 0;
		link->up = 0;
		link->rank = 1;
		if (first)
			order_link(first)->up = edge;
		node->order = edge;
	} else if (!order_link(first)->left) {
		link->key = key;
		link->left = 0;
		link->right = 0;
		link->up = first;
		link->rank = 1;
		order_link(first)->left = edge;
	} else {
		node->order = order_put(first, edge, key);
	}
}
/* The first one of the order that a node keeps itself. */
static inline void order_take(node_t *node, u32 edge)
{
	link_t *link = order_link(edge);
	if (!link->left) {
		link->rank = 0;
		node->order = 0;
	} else if (!link->right) {
		link->rank = 0;
		node->order = link->left;
		order_link(link->left)->up = 0;
	} else {
		node->order = order_out(edge, edge);
	}
}
static inline void order_remove(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *node = node_at(x->parent);
	link_t *link = &x->link[TIERCE_ORDER];
	if (node->order == edge && !link->left) {
		link->rank = 0;
		node->order = 0;
	} else if (!link->rank) {
		return;
	} else if (!SHARES || !(x->flags & EDGE_LOCAL)) {
		node->order = order_out(node->order, edge);
	} else {
		ROW(node->row, order, x->cpu) = order_out(ROW(node->row, order, x->cpu), edge);
	}
}

/* Do other children wait for the CPU that runs one? */
static inline bool node_contended(u32 node)
{
	u32 servable = node_at(node)->servable;
	return servable > 1 && (!(SHARES && node_at(node)->row) || servable > node_at(node)->holds);
}

/* ---- what runs, and for how long ---- */

/* What the port has found stolen since the CPU was charged last. For a replay it comes before the entry that asks first. */
static inline u64 taken_since(u32 cpu, u64 now)
{
	cpu_t *c = cpu_at(cpu);
	u64 untold_ns = c->taken_ns - c->told_ns;
	/* Asked once per entry, also if that was nothing: in an entry by another CPU it may grow meanwhile, and a replay knows one
	 * number for an entry, from its begin. */
	if (!c->told_now) {
		c->told_now = 1;
		c->told_ns += untold_ns;
		if (untold_ns)
			port_record(TIERCE_OP_taken, cpu, 0, untold_ns, now, 0, 0);
	}
	return c->told_ns - c->paid_ns;
}

/* How long a child of a shared node has run beyond what it is charged for. Of a CPU whose path leads through a shared node all
 * this changes under the shared lock only, but for what is stolen there: what others see of that meanwhile is an input. */
static inline u64 uncharged_shared_ns(u32 edge, u64 now)
{
	u32 cpu = edge_at(edge)->on_cpu;
	cpu_t *c = cpu_at(cpu);
	u64 elapsed = now - c->charged_ns, stolen;
	if ((edge_at(edge)->flags & EDGE_LEFT) || c->outside || now <= c->charged_ns)
		return 0;
	stolen = c->taken_ns - c->paid_ns;
	if (stolen)
		port_record(TIERCE_OP_seen, cpu, 0, stolen, now, 0, 0);
	return elapsed > stolen ? elapsed - stolen : 0;
}

/* How long the running child of a node that runs one at a time has run beyond what it is charged for. */
static inline u64 uncharged_ns(const node_t *node, u64 now)
{
	u32 cpu = node->domain;
	u64 elapsed, stolen;
	if (SHARES && is_shared(cpu))
		return uncharged_shared_ns(node->running, now);
	if (cpu_at(cpu)->outside || now <= cpu_at(cpu)->charged_ns)
		return 0;
	elapsed = now - cpu_at(cpu)->charged_ns;
	stolen = taken_since(cpu, now);
	return elapsed > stolen ? elapsed - stolen : 0;
}

/* The rest of the quantum that is under way, when a child that nobody waited for has run beyond `rest_ns` of an earlier one:
 * quanta follow each other without a gap, whenever somebody looks. */
static inline u64 quantum_rest(u64 quantum_ns, s64 rest_ns, u64 ran_ns)
{
	return quantum_ns - (u64)((s64)ran_ns - rest_ns) % quantum_ns;
}

#include "promise.h"

/* ---- spread nodes ---- */

static inline u32 replica_on(u32 family, u32 cpu)
{
	return AT(AT(S.family, family).replica, cpu);
}
static inline struct tierce_near *near_at(u32 cpu)
{
	return &AT(S.near, cpu);
}

/* NAME_ahead where there is no virtual time: by how many fewer children want the other CPU. */
static inline u64 fewer_ahead(u32 edge, u32 to, u64 now)
{
	u32 here = parent_of(edge)->servable, there = node_at(to)->servable;
	return here > there + 1 ? here - there : 0;
}
/* The same in turn: by one, who has been here longer than the child that runs goes. So each of three children of two CPUs is in
 * turn the one that has a CPU alone. */
static inline u64 turn_ahead(u32 edge, u32 to, u64 now)
{
	u32 here = parent_of(edge)->servable, there = node_at(to)->servable, running = parent_of(edge)->running;
	if (here != there + 1 || !running)
		return fewer_ahead(edge, to, now);
	return node_at(edge_at(edge)->child)->tail <= node_at(edge_at(running)->child)->tail;
}

/* The virtual time at which a replica that was empty goes on: its own, or that of the others if it is later. */
static inline u64 family_clock(const node_t *node, u64 clock, u64 now)
{
	u64 met = SPREADS && node->family ? AT(S.family, node->family).clock : 0;
	if (met <= clock)
		return clock;
	port_record(TIERCE_OP_met, node->family, 0, met, now, 0, 0);
	return met;
}

/* ---- events ---- */

static inline bool event_is_set(u32 edge)
{
	return event_link(edge)->rank != 0;
}
static inline void event_clear(u32 edge)
{
	u32 domain = parent_of(edge)->domain;
	if (event_is_set(edge))
		domain_at(domain)->events = events_out(domain_at(domain)->events, edge);
}
static inline void event_set(u32 edge, u64 at_ns)
{
	u32 domain = parent_of(edge)->domain;
	event_clear(edge);
	domain_at(domain)->events = events_put(domain_at(domain)->events, edge, at_ns);
	if (domain < TIERCE_CPUS && at_ns < cpu_at(domain)->until_ns)
		cpu_at(domain)->until_ns = 0; /* the end of the entry compares as a whole */
}

/* ---- arithmetic ---- */

/* a * b > c * d, exactly, without 128-bit types. */
static inline bool wide_product_exceeds(u64 a, u64 b, u64 c, u64 d)
{
	u64 al = (u32)a, ah = a >> 32, bl = (u32)b, bh = b >> 32;
	u64 cl = (u32)c, ch = c >> 32, dl = (u32)d, dh = d >> 32;
	u64 m = (al * bl >> 32) + (u32)(ah * bl) + (u32)(al * bh);
	u64 n = (cl * dl >> 32) + (u32)(ch * dl) + (u32)(cl * dh);
	u64 high_ab = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (m >> 32);
	u64 high_cd = ch * dh + (ch * dl >> 32) + (cl * dh >> 32) + (n >> 32);
	u64 low_ab = m << 32 | (u32)(al * bl), low_cd = n << 32 | (u32)(cl * dl);
	return high_ab > high_cd || (high_ab == high_cd && low_ab > low_cd);
}
TIERCE_FN int long_product_exceeds(u64 a, u64 b, u64 c, u64 d)
{
	return wide_product_exceeds(a, b, c, d);
}

static inline bool product_exceeds(u64 a, u64 b, u64 c, u64 d)
{
	return (a | b | c | d) >> 32 ? long_product_exceeds(a, b, c, d) : a * b > c * d;
}

#define SHARE_ONE (1ull << 32) /* a whole CPU */

/* a * fraction / 2^32, rounded down, for a below 2^42 and a fraction of at most 2^32. */
static inline u64 scale(u64 a, u64 fraction)
{
	return (a >> 32) * fraction + ((a & 0xffffffff) * fraction >> 32);
}

#endif
