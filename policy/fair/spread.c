/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* fair: a child goes to another replica of its spread node, and whether it would be served earlier there. */

/* A child goes to another replica. It keeps its tag, since replicas have one virtual time. Where that is less, others that are owed
 * their credit would come before it: a child that is owed at least half of its credit is owed as much there. */
TIERCE_FN int fair_depart(u32 edge)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	event_clear(edge);
	if (!is_by_clock(n)) {
		x->fair.begin = n->clock > x->fair.tag ? n->clock - x->fair.tag : 0;
		return 0;
	}
	eevdf_unlink(edge);
	eevdf_uncount(edge);
	if (is_stride(n)) /* it sleeps: its tag counts from FAIR_BEGIN */
		x->fair.tag += n->clock - FAIR_BEGIN;
	if (x->restore)
		eevdf_goes(edge, -(s64)(n->clock - x->fair.tag));
	return 0;
}

#define FAIR_DRIFT 8 /* quanta of its own CPU time by which a child that comes may be ahead of virtual time or behind it */

TIERCE_FN int fair_arrive(u32 edge, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = parent_of(edge);
	u64 drift, credit, owed;
	x->fair.quantum_ns = 0;
	if (is_by_clock(n)) {
		eevdf_meet(x->parent, now);
		eevdf_clock_comes(n, now);
		drift = FAIR_DRIFT * (n->param[FAIR_QUANTUM] << EEVDF_UNIT) / x->param[FAIR_WEIGHT];
		if (is_lottery(n))
			return 0;
		if (x->fair.tag > n->clock + drift)
			x->fair.tag = n->clock + drift;
		if (x->fair.tag + drift < n->clock)
			x->fair.tag = n->clock - drift;
		if (x->restore)
			eevdf_goes(edge, (s64)(n->clock - x->fair.tag));
		if (is_stride(n))
			x->fair.tag -= n->clock - FAIR_BEGIN;
		return 0;
	}
	fair_clock_comes(x, now);
	drift = fair_virtual(x->fair.inverse, FAIR_DRIFT * n->param[FAIR_QUANTUM], 0, false);
	if (x->fair.tag > n->clock + drift && n->servable)
		x->fair.tag = n->clock + drift;
	if (x->fair.tag + drift < n->clock)
		x->fair.tag = n->clock - drift;
	credit = fair_virtual(x->fair.inverse, n->param[FAIR_CREDIT], 0, false);
	owed = x->fair.begin < credit ? x->fair.begin : credit;
	if (owed && owed >= credit / 2 && x->fair.tag > n->clock - owed)
		x->fair.tag = n->clock - owed;
	return 0;
}

static inline u64 eevdf_ahead(u32 edge, const node_t *to, u64 ran_ns)
{
	u64 weight = to->share.weight, met_ns = to->share.met_ns, clock = to->clock;
	if (weight && ran_ns > met_ns)
		clock += ((ran_ns - met_ns) << EEVDF_UNIT) / weight;
	return clock > edge_at(edge)->fair.tag + 2 * eevdf_stride(edge) ? clock - edge_at(edge)->fair.tag : 0;
}

/* By how much the tag is behind the virtual time of the other replica, as if that were charged now, if by more than two quanta
 * of its own CPU time. */
TIERCE_FN u64 fair_ahead(u32 edge, u32 to, u64 now)
{
	edge_t *x = edge_at(edge);
	node_t *n = node_at(to);
	u32 running = n->running, first = n->order, cpu = n->domain;
	u64 least, ran_ns, charged_ns;
	if (is_by_clock(n) && is_lottery(n))
		return turn_ahead(edge, to, now);
	if (cpu >= TIERCE_CPUS)
		return 0;
	charged_ns = cpu_at(cpu)->charged_ns;
	ran_ns = running && now > charged_ns ? now - charged_ns : 0;
	if (ran_ns > TIERCE_PERIOD_MAX)
		ran_ns = TIERCE_PERIOD_MAX;
	if (is_by_clock(n))
		return eevdf_ahead(edge, n, ran_ns);
	least = TIERCE_NEVER;
	if (running)
		least = edge_at(running)->fair.tag + fair_virtual(edge_at(running)->fair.inverse, ran_ns, 0, false);
	if (first && edge_at(first)->fair.tag < least)
		least = edge_at(first)->fair.tag;
	if (least < n->clock || least == TIERCE_NEVER)
		least = n->clock;
	if (least <= x->fair.tag + fair_virtual(x->fair.inverse, 2 * n->param[FAIR_QUANTUM], 0, false))
		return 0;
	return least - x->fair.tag;
}

static inline u64 fair_clock(u32 node, u64 now)
{
	return is_by_clock(node_at(node)) && is_lottery(node_at(node)) ? 0 : node_at(node)->clock;
}
