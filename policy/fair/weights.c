/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* fair: what a weight is worth in virtual time; below shared nodes nobody counts for more than a CPU. */

static inline u64 fair_key(u32 edge)
{
	return edge_at(edge)->fair.tag - edge_at(edge)->fair.lead;
}

/* ns of service in virtual time of this edge: at most 2^42 ns at once. */
static inline u64 fair_virtual(u64 inverse, u64 ns, u64 fraction, bool rest)
{
	u64 sum = (ns & 0xffffffff) * inverse + fraction;
	if (rest)
		return sum & ((1ull << FAIR_SHIFT) - 1);
	return ((ns >> 32) * inverse << (32 - FAIR_SHIFT)) + (sum >> FAIR_SHIFT);
}

static inline bool fair_is_several(const node_t *node)
{
	return TIERCE_CPUS > 1 && PORT_HAS_PART(shared) && node->row;
}
static inline bool fair_is_surplus(const node_t *node)
{
	return fair_is_several(node) && node->param[FAIR_ORDER] == FAIR_SURPLUS;
}

/* A child of that weight begins to want the CPU, or (minus its weight) no longer does. */
static inline void fair_counts(u32 node, u64 weight)
{
	if (fair_is_surplus(node_at(node)))
		node_at(node)->share.weight += weight;
}

/* Its weight as far as it counts, 2^-16: not beyond what a CPU is worth. */
static inline u64 fair_weight(u32 edge)
{
	u64 weight = edge_at(edge)->param[FAIR_WEIGHT] << FAIR_WORTH, worth = parent_of(edge)->share.worth;
	return worth && weight > worth ? worth : weight;
}
/* 2^32 / that. */
static inline u64 fair_inverse(u32 edge)
{
	edge_t *x = edge_at(edge);
	u64 worth = parent_of(edge)->share.worth;
	if (parent_of(edge)->param[FAIR_ORDER] != FAIR_SURPLUS || !worth || x->param[FAIR_WEIGHT] << FAIR_WORTH <= worth)
		return x->fair.inverse;
	return (1ull << (32 + FAIR_WORTH)) / worth;
}

/* What a CPU is worth: who has more than that has a CPU, and what is left of all weights is for the CPUs that are left. One step
 * nearer to that per charge: from below it leads above, from there down. */
static inline void fair_appraise(u32 node)
{
	node_t *n = node_at(node);
	u64 rest = n->share.weight;
	u32 cpu, cpus = ZERO;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++) {
		u32 running = ROW(n->row, running, cpu);
		u64 weight = edge_at(running)->param[FAIR_WEIGHT];
		if (running && weight << FAIR_WORTH > n->share.worth)
			rest -= weight;
		else if (running)
			cpus++;
	}
	n->share.worth = cpus ? (rest << FAIR_WORTH) / cpus : n->share.weight << FAIR_WORTH;
}

TIERCE_FN int fair_init(u32 node)
{
	u64 order = node_at(node)->param[FAIR_ORDER];
	if (order != FAIR_START_TAG && order != FAIR_SURPLUS && !PORT_HAS_PART(by_clock))
		return TIERCE_E_part_is_left_out;
	node_at(node)->clock = FAIR_BEGIN;
	node_at(node)->tail = FAIR_BEGIN;
	return TIERCE_OK;
}
