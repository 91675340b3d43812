/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one list of policies: a record and an include each.
 *
 * A line is a record: number, C prefix, name in plans, flags, node parameters, edge parameters. The dispatch switches
 * of the engine, the plan parser, the JSON Schema, the control commands and the help are generated from it.
 *
 *   P(number, prefix, name, flags, node_parameters, edge_parameters)
 *   V(name, kind, least, most, preset, meaning)       one parameter; a node or edge has at most TIERCE_PARAMS of them
 *
 * kind: TIME (ns), COUNT (integer), DURATION_OF (a TIME whose preset is the value of an earlier parameter: `preset` is
 * its index). A preset of REQUIRED means the plan has to give it. Parameters are numbered from 0 in the order written;
 * the policy's file names the numbers.
 */
#ifndef TIERCE_POLICIES_H
#define TIERCE_POLICIES_H

#define TIERCE_POLICY_LIST(P, V) \
	P(2, fixed_priority, "fixed-priority", 0, , \
	  V("priority", COUNT, 0, 65535, 0, "larger runs first; equals run first come, first served")) \
	P(3, edf, "edf", TIERCE_HEEDS_DEADLINES, , \
	  V("deadline", TIME, 0, TIERCE_TIME_MAX, 0, \
	    "relative to each release; 0: the deadlines the child announces, last when it announces none")) \
	P(4, reservation, "reservation", 0, , \
	  V("budget", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "CPU time in every period, hard") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "from replenishment to replenishment") \
	  V("deadline", DURATION_OF, 1000, TIERCE_PERIOD_MAX, 1, "the budget arrives within this; at most the period")) \
	P(5, fair, "fair", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "a child keeps the CPU this long before another is chosen"), \
	  V("weight", COUNT, 1, 10000, 100, "share of the node's time relative to its siblings") \
	  V("warp", TIME, 0, TIERCE_PERIOD_MAX, 0, "own CPU time by which the child may run ahead of its share after a wake-up")) \
	P(6, round_robin, "round-robin", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "turn of each child"), ) \
	P(7, slots, "slots", 0, V("slot", TIME, 10000, TIERCE_PERIOD_MAX, REQUIRED, "length of the timeslot"), \
	  V("offset", TIME, 0, TIERCE_PERIOD_MAX, 0, "begin of the child's reserve in each slot") \
	  V("length", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "of its reserve, which ends within the slot") \
	  V("fill", COUNT, 0, 1, 0, "1: runs outside of its reserve, too, when the owner of the current one wants no CPU"))

#endif

#ifdef TIERCE_POLICY_BODIES /* the engine (graph.c) takes the policies' operations in here */
#include "fixed_priority.c"
#include "edf.c"
#include "reservation.c"
#include "fair.c"
#include "round_robin.c"
#include "slots.c"
#endif
