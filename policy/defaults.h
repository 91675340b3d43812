/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Operations that do nothing, for policies without a use for them: `#define fair_event nothing_event`. They are macros,
 * so a switch over the policies costs nothing where a policy has nothing to do. */
#ifndef TIERCE_DEFAULTS_H
#define TIERCE_DEFAULTS_H

#define nothing_init(node)		       TIERCE_OK
#define nothing_detach(edge)		       ((void)0)
#define nothing_first(node, first, cpu, now)   first
#define nothing_grant(edge, now)	       ((void)0)
#define nothing_charge(edge, ran_ns, now)      false
#define nothing_lose(edge, stolen_ns)	       false
#define nothing_until(edge, now)	       TIERCE_NEVER
#define nothing_event(edge, now)	       ((void)0)
#define nothing_announce(edge, deadline, now)  ((void)0)
#define nothing_deadline(node, now)	       TIERCE_NEVER
#define nothing_check(edge, rest)	       TIERCE_HOLDS
#define nothing_check_node(node)	       TIERCE_HOLDS
#define nothing_depart(edge)		       ((void)0)
#define nothing_arrive(edge, now)	       ((void)0)
#define nothing_ahead(edge, to, now)	       0
#define nothing_clock(node, now)	       0
#define nothing_tell(edge, kind, now)	       TIERCE_E_not_understood

#endif
