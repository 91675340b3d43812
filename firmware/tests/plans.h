/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plans of the board tests. */
#ifndef TIERCE_TEST_PLANS_H
#define TIERCE_TEST_PLANS_H

#include "tierce.h"
#include "plan.h"

#define MS 1000000ull
#define US 1000ull

#define PLAN(name_, header_) \
	static const struct plan name_ = {name_##_steps, name_##_tasks, sizeof name_##_steps / sizeof *name_##_steps, \
					  sizeof name_##_tasks / sizeof *name_##_tasks, header_}

/* Fixed priorities: low, middle, high. */
static const struct plan_step priorities_steps[] = {
    PLAN_NODE(1, TIERCE_fixed_priority),
    PLAN_TASK(2),
    PLAN_TASK(3),
    PLAN_TASK(4),
    PLAN_TASK(5),
    PLAN_EDGE(1, 1, 2, 0, 0),
    PLAN_EDGE(2, 1, 3, 0, 0),
    PLAN_EDGE(3, 1, 4, 0, 0),
    PLAN_EDGE(4, 1, 5, 0, 0),
    PLAN_ROOT(1),
    PLAN_ATTACH(1, 1),
    PLAN_ATTACH(2, 2),
    PLAN_ATTACH(3, 3),
    PLAN_ATTACH(4, 4),
};
static const struct plan_task priorities_tasks[] = {
    {.name = "low", .id = 2}, {.name = "middle", .id = 3}, {.name = "high", .id = 4}, {.name = "watch", .id = 5}};
PLAN(priorities, "{}");

/* Two equals, one above them. */
static const struct plan_step equals_steps[] = {
    PLAN_NODE(1, TIERCE_fixed_priority),
    PLAN_TASK(2),
    PLAN_TASK(3),
    PLAN_TASK(4),
    PLAN_EDGE(1, 1, 2, 0, 0),
    PLAN_EDGE(2, 1, 3, 0, 0),
    PLAN_EDGE(3, 1, 4, 0, 0),
    PLAN_ROOT(1),
    PLAN_ATTACH(1, 1),
    PLAN_ATTACH(2, 1),
    PLAN_ATTACH(3, 2),
};
static const struct plan_task equals_tasks[] = {{.name = "a", .id = 2}, {.name = "b", .id = 3}, {.name = "watch", .id = 4}};
PLAN(equals, "{}");

static const struct plan_step turns_steps[] = {
    PLAN_NODE(1, TIERCE_fixed_priority),
    PLAN_NODE(2, TIERCE_round_robin, 1 * MS),
    PLAN_TASK(3),
    PLAN_TASK(4),
    PLAN_TASK(5),
    PLAN_EDGE(1, 1, 2, 0, 0),
    PLAN_EDGE(2, 2, 3, 0, 0),
    PLAN_EDGE(3, 2, 4, 0, 0),
    PLAN_EDGE(4, 1, 5, 0, 0),
    PLAN_ROOT(1),
    PLAN_ATTACH(1, 0),
    PLAN_ATTACH(2),
    PLAN_ATTACH(3),
    PLAN_ATTACH(4, 1),
};
static const struct plan_task turns_tasks[] = {{.name = "a", .id = 3}, {.name = "b", .id = 4}, {.name = "watch", .id = 5}};
PLAN(turns, "{}");

/* 2 ms of every 10 for one task, in front of two that share the rest 1 : 3. */
static const struct plan_step budget_steps[] = {
    PLAN_NODE(1, TIERCE_fixed_priority),
    PLAN_NODE(2, TIERCE_reservation),
    PLAN_NODE(3, TIERCE_fair, 1 * MS),
    PLAN_TASK(4),
    PLAN_TASK(5),
    PLAN_TASK(6),
    PLAN_TASK(7),
    PLAN_EDGE(1, 1, 2, 0, 0),
    PLAN_EDGE(2, 1, 3, 0, 0),
    PLAN_EDGE(3, 2, 4, 0, 0),
    PLAN_EDGE(4, 3, 5, 0, 0),
    PLAN_EDGE(5, 3, 6, 0, 0),
    PLAN_EDGE(6, 1, 7, 0, 0),
    PLAN_ROOT(1),
    PLAN_ATTACH(1, 2),
    PLAN_ATTACH(2, 1),
    PLAN_ATTACH(3, 2 * MS, 10 * MS, 10 * MS),
    PLAN_ATTACH(4, 100, 0),
    PLAN_ATTACH(5, 300, 0),
    PLAN_ATTACH(6, 3),
};
static const struct plan_task budget_tasks[] = {
    {.name = "reserved", .id = 4}, {.name = "one", .id = 5}, {.name = "three", .id = 6}, {.name = "watch", .id = 7}};
PLAN(budget, "{\"version\":1,\"source\":\"run\",\"plan\":\"budget\",\"seed\":0,\"cpus\":1,\"start_ns\":0,\"clock\":\"board\","
	     "\"nodes\":[{\"id\":1,\"name\":\"top\",\"policy\":\"fixed-priority\",\"level\":0},"
	     "{\"id\":2,\"name\":\"rt\",\"policy\":\"reservation\",\"level\":1},"
	     "{\"id\":3,\"name\":\"rest\",\"policy\":\"fair\",\"level\":1}],"
	     "\"tasks\":[{\"id\":4,\"name\":\"reserved\"},{\"id\":5,\"name\":\"one\"},{\"id\":6,\"name\":\"three\"},"
	     "{\"id\":7,\"name\":\"watch\"}],"
	     "\"edges\":[{\"id\":1,\"parent\":1,\"child\":2,\"parent_name\":\"top\",\"child_name\":\"rt\",\"priority\":2},"
	     "{\"id\":2,\"parent\":1,\"child\":3,\"parent_name\":\"top\",\"child_name\":\"rest\",\"priority\":1},"
	     "{\"id\":3,\"parent\":2,\"child\":4,\"parent_name\":\"rt\",\"child_name\":\"reserved\",\"budget_ns\":2000000,"
	     "\"period_ns\":10000000,\"deadline_ns\":10000000},"
	     "{\"id\":4,\"parent\":3,\"child\":5,\"parent_name\":\"rest\",\"child_name\":\"one\",\"weight\":100},"
	     "{\"id\":5,\"parent\":3,\"child\":6,\"parent_name\":\"rest\",\"child_name\":\"three\",\"weight\":300},"
	     "{\"id\":6,\"parent\":1,\"child\":7,\"parent_name\":\"top\",\"child_name\":\"watch\",\"priority\":3},"
	     "{\"id\":7,\"parent\":0,\"child\":1,\"parent_name\":\"\",\"child_name\":\"top\",\"cpu\":0}]}");

/* More than the engine admits: 6 + 5 of every 10 ms. */
static const struct plan_step refused_steps[] = {
    PLAN_NODE(1, TIERCE_reservation),
    PLAN_TASK(2),
    PLAN_TASK(3),
    PLAN_EDGE(1, 1, 2, 0, 0),
    PLAN_EDGE(2, 1, 3, 0, 0),
    PLAN_ROOT(1),
    PLAN_ATTACH(1, 6 * MS, 10 * MS, 10 * MS),
    PLAN_ATTACH(2, 5 * MS, 10 * MS, 10 * MS),
};
static const struct plan_task refused_tasks[] = {{.name = "a", .id = 2}, {.name = "b", .id = 3}};
PLAN(refused, "{}");

#endif
