/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The graph engine: requests travel upwards, decisions downwards.
 *
 * Upwards. When a task becomes able to use a CPU, its parent edges are requested; a node that has gained its first
 * servable edge is able in turn, and so on to the root (settle_works). Where the child is shared by several CPUs (a
 * head), its parents are told instead: a bit in each CPU's inbox and a kick (head_settle).
 *
 * Downwards. walk() asks each policy from the root for its pick and ends at a task; commit() revokes what is no longer on
 * the path and grants what is new. Nothing else changes what a CPU runs. When what ran has blocked, and nothing above it
 * is shared, descend() does both in one.
 *
 * Every entry is one call, from lock to unlock; it brings its CPU to `now` first (cpu_advance: charge, due events, settle). A
 * request does so only if something is due on its CPU by then (until_ns). Then: the operation, settle, compare; only a
 * decision takes the inbox, and decides. Settling is carrying changed abilities up to the parents until nothing changes
 * (settle_works). An entry that has locked the shared domain of its group keeps it until it ends.
 *
 * Heads (nodes and tasks with parents in several domains, roots of several CPUs) keep per CPU: nothing, an edge that
 * holds a place, or a place that is being left. A place is free again only when the port says that the task is off the
 * CPU (graph_returned), so nothing ever runs twice. One CPU at a time may claim a place by rank; the freed place is kept
 * for it. The protocol is explored exhaustively by the project's model tests.
 */
#include "service.h"
#include "defaults.h"
#include "engine/heap.c"
#define TIERCE_POLICY_BODIES
#include "policies.h"

#include "engine/dispatch.c"
#include "engine/locks.c"
#include "engine/requests.c"
#include "engine/heads.c"
#include "engine/climb.c"
#include "engine/charge.c"
#include "engine/enter.c"
#include "engine/path.c"
#include "engine/until.c"
#include "engine/cpu_entries.c"
#include "engine/task_entries.c"
#include "engine/spread.c"
