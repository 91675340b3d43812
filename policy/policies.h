/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one list of policies: a record and an include each.
 *
 * A policy is one file. It begins with its record: number, C prefix, name in plans, flags, node parameters, edge parameters.
 * The dispatch switches of the engine, the plan parser, the JSON Schema, the control commands and the help are generated
 * from the records.
 *
 *   P(number, prefix, name, flags, node_parameters, edge_parameters)
 *   V(name, kind, least, most, preset, meaning)       one parameter; an edge has at most TIERCE_PARAMS of them, or
 *                                                     these and TIERCE_PROMISED; a node TIERCE_NODE_PARAMS
 *
 * kind: TIME (ns), COUNT (integer), DURATION_OF (a TIME whose preset is the value of an earlier parameter: `preset` is
 * its index), RATIO (a decimal of at most six places, in units of 2^-20), CHOICE (one of the names that `meaning` begins
 * with, by number: "one, other: what for"). A preset of REQUIRED means the plan has to give it. Parameters are numbered
 * from 0 in the order written; the policy's file names the numbers.
 */
#ifndef TIERCE_POLICIES_H
#define TIERCE_POLICIES_H

#define REQUIRED (~0ull)

#define TIERCE_POLICY_LIST(P, V) \
	POLICY_fixed_priority(P, V) \
	POLICY_edf(P, V) \
	POLICY_reservation(P, V) \
	POLICY_fair(P, V) \
	POLICY_round_robin(P, V) \
	POLICY_slots(P, V) \
	POLICY_i_plus_pi(P, V) \
	POLICY_multiburst(P, V) \
	POLICY_time_sharing(P, V) \
	POLICY_uniform(P, V) \
	POLICY_constraint(P, V) \
	POLICY_briefly_blocked(P, V) \
	POLICY_mixed_criticality(P, V) \
	TIERCE_ADDED_POLICIES(P, V)

/* What is promised to an edge that has a share, its last parameters: kept with the windows that are counted (promise.h). */
#define TIERCE_PROMISED(V) \
	V("promised", TIME, 0, 4000000000, 0, "CPU time that is promised in each `promise_period`, to be counted; 0: nothing is") \
	V("promise_period", TIME, 0, 4000000000, 0, "time in which as much as `promised` is received by a child that always wants the CPU")

/* What both regulators of rounds have. */
#define TIERCE_ROUNDS(V) \
	V("round", TIME, 0, 60000000000, 0, "set point of the round; 0: `burst` times the children that want the CPU") \
	V("burst", TIME, 10000, 10000000000, 4000000, "nominal burst of a child") \
	V("least_burst", TIME, 10000, 10000000000, 200000, "no burst is shorter") \
	V("largest_burst", TIME, 10000, 10000000000, 20000000, "no burst is longer")
#endif

/* Here for the records and for what a policy keeps per edge, in engine/graph.c for their operations (TIERCE_POLICY_BODIES). */
#include "fixed_priority.c"
#include "edf.c"
#include "reservation.c"
#include "fair.c"
#include "round_robin.c"
#include "slots.c"
#include "i_plus_pi.c"
#include "multiburst.c"
#include "time_sharing.c"
#include "uniform.c"
#include "constraint.c"
#include "briefly_blocked.c"
#include "mixed_criticality.c"

/* Policies of a folder of the user's: a header that `tierce --policy-dir` generates (crates/tierce-policy/src/added.rs) names and
 * includes them. */
#ifdef TIERCE_ADDED
#include TIERCE_ADDED
#else
#define TIERCE_ADDED_FIRST (~0u) /* the number of the first of them */
#define TIERCE_ADDED_POLICIES(P, V)
#define TIERCE_ADDED_EDGES
#define TIERCE_ADDED_NODES
#define TIERCE_ADDED_INVARIANTS(I)
#endif
