/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* fair: children that run ahead of their share: by a warp, its limit, or by what they were owed when they woke. */

/* A child with a warp limit (EDGE_VARIANT) has in `variant` what is left of it, in ns; without its warp that is 0. Then its
 * event brings it back, if it has one. */
static inline bool fair_is_unwarped(const edge_t *x)
{
	return (x->flags & EDGE_VARIANT) && !x->variant;
}

/* It woke, was owed CPU time, and has not slept since. `variant` is what is left of that, in ns. */
static inline bool fair_is_owed(const edge_t *x)
{
	return (x->flags & EDGE_VARIANT) && !x->param[FAIR_WARP_LIMIT];
}

/* The warp is now of that length in virtual time; where the quantum began moves with it. */
static inline void fair_lead(edge_t *x, u64 lead)
{
	x->fair.begin += x->fair.lead - lead;
	x->fair.lead = lead;
}
static inline void fair_warp(edge_t *x)
{
	fair_lead(x, fair_is_unwarped(x) ? 0 : fair_virtual(x->fair.inverse, x->param[FAIR_WARP], 0, false));
}

/* What it was owed when it woke is over. */
static inline void fair_credit_ends(edge_t *x)
{
	if (!fair_is_owed(x))
		return;
	x->flags &= ~EDGE_VARIANT;
	x->variant = 0;
	fair_lead(x, 0);
}

/* No quantum goes beyond what is left of the limit. */
static inline void fair_quantum_fits(edge_t *x)
{
	if (x->fair.quantum_ns > (s64)x->variant)
		x->fair.quantum_ns = (s64)x->variant;
}

/* It may run with its warp for as long as its limit says, unless it has to wait for that. */
static inline int fair_warp_begins(u32 edge)
{
	edge_t *x = edge_at(edge);
	if (event_is_set(edge))
		return 0;
	x->variant = (u32)x->param[FAIR_WARP_LIMIT];
	fair_warp(x);
	fair_quantum_fits(x);
	return 0;
}

/* A new limit counts anew, but not for who is without its warp. */
static inline void fair_limit_set(u32 edge, u64 limit_ns, u64 unwarp_ns)
{
	edge_t *x = edge_at(edge);
	bool anew = limit_ns != x->param[FAIR_WARP_LIMIT] && !(limit_ns && fair_is_unwarped(x));
	x->param[FAIR_WARP_LIMIT] = limit_ns;
	x->param[FAIR_UNWARP] = unwarp_ns;
	x->flags &= ~EDGE_VARIANT;
	if (limit_ns)
		x->flags |= EDGE_VARIANT;
	else
		event_clear(edge);
	if (anew)
		x->variant = (u32)limit_ns;
	if (x->variant)
		fair_quantum_fits(x);
}
