/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one list of policies: a record and an include each.
 *
 * A line is a record: number, C prefix, name in plans, flags, node parameters, edge parameters. The dispatch switches
 * of the engine, the plan parser, the JSON Schema, the control commands and the help are generated from it.
 *
 *   P(number, prefix, name, flags, node_parameters, edge_parameters)
 *   V(name, kind, least, most, preset, meaning)       one parameter; an edge has at most TIERCE_PARAMS of them, a node
 *                                                     TIERCE_NODE_PARAMS
 *
 * kind: TIME (ns), COUNT (integer), DURATION_OF (a TIME whose preset is the value of an earlier parameter: `preset` is
 * its index), RATIO (a decimal of at most six places, in units of 2^-20), CHOICE (one of the names that `meaning` begins
 * with, by number: "one, other: what for"). A preset of REQUIRED means the plan has to give it. Parameters are numbered from 0 in the order written;
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
	P(4, reservation, "reservation", 0, \
	  V("order", CHOICE, 0, 1, 0, "edf, fixed-priority: whose budget is used first") \
	  V("replenishment", CHOICE, 0, 5, 0, \
	    "hard, soft, total-bandwidth, periodic, sporadic, polling: when a budget that was used comes back") \
	  V("charge", CHOICE, 0, 1, 0, "own, wall: whether a child pays for what is stolen while it has the CPU") \
	  V("gain", RATIO, 0, 1048576, 0, "how much of what was stolen of a budget the next one is larger by; 0: no feedback") \
	  V("cap", RATIO, 0, 1048576, 0, "share of a CPU that the budgets may add up to; 0: all of it"), \
	  V("budget", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "CPU time in every period, hard") \
	  V("period", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "from replenishment to replenishment") \
	  V("deadline", DURATION_OF, 1000, TIERCE_PERIOD_MAX, 1, "the budget arrives within this; at most the period") \
	  V("priority", COUNT, 0, 65535, 0, "in the order fixed-priority: larger first, equals by the order of the plan")) \
	P(5, fair, "fair", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "a child keeps the CPU this long before another is chosen") \
	  V("order", CHOICE, 0, 3, 0, "start-tag, eevdf, stride, lottery: which child is next") \
	  V("seed", COUNT, 0, 65535, 0, "of the drawings of the order lottery"), \
	  V("weight", COUNT, 1, 10000, 100, "share of the node's time relative to its siblings") \
	  V("warp", TIME, 0, TIERCE_PERIOD_MAX, 0, "own CPU time by which the child may run ahead of its share after a wake-up")) \
	P(6, round_robin, "round-robin", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 3000000, "turn of each child"), ) \
	P(7, slots, "slots", 0, V("slot", TIME, 10000, TIERCE_PERIOD_MAX, REQUIRED, "length of the timeslot"), \
	  V("offset", TIME, 0, TIERCE_PERIOD_MAX, 0, "begin of the child's reserve in each slot") \
	  V("length", TIME, 1000, TIERCE_PERIOD_MAX, REQUIRED, "of its reserve, which ends within the slot") \
	  V("fill", COUNT, 0, 1, 0, "1: runs outside of its reserve, too, when the owner of the current one wants no CPU")) \
	P(8, i_plus_pi, "i-plus-pi", 0, TIERCE_ROUNDS(V) \
	  V("inner_gain", RATIO, 10486, 1038090, 262144, "K_I: how much of what a child's last burst was off comes into the next") \
	  V("outer_gain", RATIO, 10486, 33554432, 943718, "K_R: how much of what the last round was off comes into the next") \
	  V("outer_zero", RATIO, 10486, 1038090, 922747, "Z_R: how much of that is taken back a round later"), \
	  V("importance", COUNT, 1, 10000, 100, "share of the round relative to the siblings that want the CPU")) \
	P(9, multiburst, "multiburst", 0, TIERCE_ROUNDS(V), \
	  V("importance", COUNT, 1, 10000, 100, "share of the round relative to the siblings that want the CPU") \
	  V("wake", CHOICE, 0, 2, 2, "immediate, after-burst, end-of-round: when it runs after a wake-up")) \
	P(10, time_sharing, "time-sharing", 0, \
	  V("quantum", TIME, 10000, TIERCE_PERIOD_MAX, 10000000, "turn of each child within its level") \
	  V("starvation", TIME, 0, TIERCE_PERIOD_MAX, 3000000000, \
	    "who has wanted the CPU for so long without using up a quantum goes before all until it has; 0: never") \
	  V("affinity", COUNT, 0, 1000, 0, "turns that who ran on this CPU last may go ahead of its place in a level"), \
	  V("priority", COUNT, 0, 255, 8, "the level at which it begins, and below which it does not sink; larger runs first") \
	  V("boost", COUNT, 0, 255, 2, "levels above its priority at which it wakes, if it blocked within a quantum")) \
	P(11, uniform, "uniform", TIERCE_HEEDS_DEADLINES, \
	  V("period", TIME, 10000, 4000000000, 10000000, "from deadline to deadline of a child that announces none"), \
	  V("share", RATIO, 1, 1048576, REQUIRED, "of a CPU, between any two deadlines that the child announces"))

/* What both regulators of rounds have. */
#define TIERCE_ROUNDS(V) \
	V("round", TIME, 0, 60000000000, 0, "set point of the round; 0: `burst` times the children that want the CPU") \
	V("burst", TIME, 10000, 10000000000, 4000000, "nominal burst of a child") \
	V("least_burst", TIME, 10000, 10000000000, 200000, "no burst is shorter") \
	V("largest_burst", TIME, 10000, 10000000000, 20000000, "no burst is longer")

#endif

#ifdef TIERCE_POLICY_BODIES /* the engine (graph.c) takes the policies' operations in here */
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
#endif
