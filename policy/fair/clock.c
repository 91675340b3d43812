/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* fair: the virtual time of a node; below shared nodes the child that has had least of what it is owed. */

/* The tag of an edge when it will have run for that long. */
static inline u64 fair_tag(u32 edge, u64 inverse, u64 ran_ns)
{
	return edge_at(edge)->fair.tag + fair_virtual(inverse, ran_ns, edge_at(edge)->fair.fraction, false);
}
/* The virtual time of a node whose running child has that tag. */
static inline u64 fair_clock_with(node_t *node, u64 tag)
{
	u64 least = node->order && edge_at(node->order)->fair.tag < tag ? edge_at(node->order)->fair.tag : tag;
	return least > node->clock ? least : node->clock;
}

/* The smallest tag of the children that several CPUs run, as if all of them were charged now. */
TIERCE_FN u64 fair_least_tag(u32 row, u64 now)
{
	u64 least = TIERCE_NEVER, tag, ran_ns;
	u32 cpu, running;
	for (cpu = ZERO; cpu < STATE(cpus) && CAN_LOOP; cpu++) {
		running = ROW(row, running, cpu);
		if (!running)
			continue;
		ran_ns = uncharged_shared_ns(running, now);
		tag = fair_tag(running, fair_inverse(running), ran_ns);
		if (tag < least)
			least = tag;
	}
	return least;
}
/* The virtual time of their node then. Children that may run on some CPUs only do not hold it back while they wait. */
static inline u64 fair_clock_now(u32 node, u64 now)
{
	node_t *n = node_at(node);
	u64 least = fair_least_tag(n->row, now);
	if (n->order && edge_at(n->order)->fair.tag < least)
		least = edge_at(n->order)->fair.tag;
	if (least == TIERCE_NEVER)
		least = n->servable ? 0 : n->tail;
	return least > n->clock ? least : n->clock;
}

static inline bool fair_earlier(u32 a, u32 b)
{
	u64 x = fair_key(a), y = fair_key(b);
	return x < y || (x == y && a < b);
}

/* What it has had beyond what it was owed, when virtual time is `clock`: 2^-14 ns; all beyond 34 s per unit of weight are alike. */
static inline s64 fair_surplus(u32 edge, u64 clock)
{
	s64 ahead = (s64)(edge_at(edge)->fair.tag - clock), most = 1ll << 45;
	ahead = ahead > most ? most : ahead < -most ? -most : ahead;
	return ahead * (s64)(fair_weight(edge) >> 12);
}
static inline bool fair_has_less(u32 a, u32 b, u64 clock)
{
	s64 x = fair_surplus(a, clock), y = fair_surplus(b, clock);
	return x < y || (x == y && fair_earlier(a, b));
}

/* Of the first children that wait and that the CPU may run, the one with the least surplus. Who is at virtual time has none, nor has
 * anybody less. */
TIERCE_FN u32 fair_seek(u32 node, u32 cpu, u64 clock)
{
	u32 order = node_at(node)->order, local = ROW(node_at(node)->row, order, cpu);
	u32 found = order ? order : local, known = ZERO + !!order, seen, i;
	AT(S.known, 0) = order;
	AT(S.known, known) = local;
	known += !!local;
	for (seen = ZERO; seen < TIERCE_SEEN && known && fair_surplus(found, clock) > 0 && CAN_LOOP; seen++) {
		u32 at = ZERO, x;
		for (i = ZERO; i < known && CAN_LOOP; i++)
			if (link_before(AT(S.known, i), AT(S.known, at), TIERCE_ORDER))
				at = i;
		x = AT(S.known, at);
		if (fair_has_less(x, found, clock))
			found = x;
		AT(S.known, at) = order_link(x)->left;
		if (!order_link(x)->left)
			AT(S.known, at) = AT(S.known, --known);
		else if (order_link(x)->right)
			AT(S.known, known++) = order_link(x)->right;
	}
	return found;
}
static inline u32 fair_choose(u32 node, u32 cpu, u64 clock)
{
	u32 found;
	port_lock(TIERCE_KNOWN);
	found = fair_seek(node, cpu, clock);
	port_unlock(TIERCE_KNOWN);
	return found;
}
static inline u32 fair_first(u32 node, u32 first, u32 cpu, u64 now)
{
	u32 running = ROW(node_at(node)->row, running, cpu);
	if (!fair_is_surplus(node_at(node)) || (running && edge_at(running)->fair.quantum_ns > 0))
		return first;
	return fair_choose(node, cpu, fair_clock_now(node, now));
}
