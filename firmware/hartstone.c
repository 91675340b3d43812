/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Hartstone, series PH (Weideman and Kamenoff 1992; table 4.1 of Golchin's thesis): one step of an experiment, or an
 * extended one of 120 s. The command line ends in EXPERIMENT STEP SECONDS SCHEDULER; STEP x: extended. The result is a line
 * of JSON; the plan is made here and built by the engine as every plan.
 *
 * A kilo-whet is 1.25 ms of computing, here 78,125 instructions of 16 ns. A late job runs on, no job is left out; a miss is
 * a job not done at its deadline, which is the end of its period.
 */
#include "kernel.h"
#include "host.h"
#include "tierce.h"

#define MS	    1000000ull
#define BASE	    5u
#define EXTRA	    12u
#define TASKS	    (BASE + EXTRA)
#define STAGES	    3u
#define STACK_BYTES 512

enum { DEVICE_CONTROL = 0x40000000, DEVICE_VALUE = 0x40000004, DEVICE_RELOAD = 0x40000008 };

struct stage {
	u64 until_ns, period_ns; /* no jobs: 0 */
	u32 kilo_whets;
};

static struct task {
	struct thread thread;
	struct stage stage[STAGES];
	u64 job_ns; /* begin of the first job that is not done */
	u32 jobs, misses;
} tasks[TASKS];

static u8 stacks[TASKS][STACK_BYTES] __attribute__((aligned(32)));
static const char *const names[TASKS] = {"t1",	"t2",  "t3",  "t4",  "t5",  "t6",  "t7",  "t8", "t9",
					 "t10", "t11", "t12", "t13", "t14", "t15", "t16", "t17"};
static const char *scheduler, *experiment_name, *step_name;
static u64 end_ns;
static u32 stages;

void board_safe(void)
{
}

/* 78,125 instructions for each: 3125 rounds of 25. */
static void __attribute__((naked, noinline)) burn(u32 kilo_whets)
{
	(void)kilo_whets;
	__asm__ volatile("1: movw r1, #3124\n\t"
			 "2: .rept 23\n\t"
			 "nop\n\t"
			 ".endr\n\t"
			 "subs r1, #1\n\t"
			 "bne 2b\n\t"
			 ".rept 22\n\t"
			 "nop\n\t"
			 ".endr\n\t"
			 "subs r0, #1\n\t"
			 "bne 1b\n\t"
			 "bx lr");
}

/* ---- what a step demands: only here do experiments differ ---- */

/* Frequencies in hundredths of Hertz. */
static struct stage demand(u32 experiment, u32 step, u32 task, u64 until_ns)
{
	u32 base = task < BASE ? task : 2; /* more tasks are as the third */
	u32 frequency = 200u << base, kilo_whets = 32u >> base;
	bool there = task < BASE || (experiment == 4 && task < BASE + step);
	if (experiment == 1 && task == 4)
		frequency += 800 * step;
	if (experiment == 2)
		frequency = frequency / 10 * (10 + step);
	if (experiment == 3)
		kilo_whets += step;
	return (struct stage){until_ns, there ? (100000000000ull + frequency - 1) / frequency : 0, kilo_whets};
}

/* ---- jobs ---- */

static struct stage *stage_at(struct task *task, u64 ns)
{
	u32 i = 0;
	while (i + 1 < stages && ns >= task->stage[i].until_ns)
		i++;
	return &task->stage[i];
}

static void runs(void *argument)
{
	struct task *task = argument;
	struct thread *thread = &task->thread;
	for (;;) {
		struct stage *stage = stage_at(task, task->job_ns);
		u64 next_ns = task->job_ns + stage->period_ns;
		u32 mask;
		burn(stage->kilo_whets);
		mask = cpu_mask();
		if (next_ns > stage->until_ns)
			next_ns = stage->until_ns; /* the next stage begins with a job */
		task->job_ns = next_ns;
		task->jobs++;
		task->misses += kernel_now() > thread->deadline_ns;
		cpu_unmask(mask);
		stage = stage_at(task, next_ns);
		if (!stage->period_ns || next_ns >= end_ns)
			thread_wait(); /* for ever */
		thread_next_job_at(next_ns, stage->period_ns, stage->period_ns);
	}
}

static void say(const char *name, u64 number)
{
	host_put(",\"", name, "\":");
	host_number(number);
}

/* The end has come, whatever runs. Jobs that are not done are missed if their deadline has passed. */
void board_interrupt(u32 irq)
{
	u64 jobs = 0, misses = 0, switches = 0;
	u32 i;
	(void)irq;
	for (i = 0; i < TASKS; i++) {
		struct task *task = &tasks[i];
		u64 job_ns = task->job_ns;
		if (!task->thread.period_ns)
			continue;
		jobs += task->jobs;
		misses += task->misses;
		switches += task->thread.switches;
		while (job_ns < end_ns) { /* its job and those that wait behind it */
			struct stage *stage = stage_at(task, job_ns);
			if (!stage->period_ns)
				break;
			misses += job_ns + stage->period_ns <= end_ns;
			job_ns += stage->period_ns;
			if (job_ns > stage->until_ns)
				job_ns = stage->until_ns;
		}
	}
	host_put("{\"experiment\":", experiment_name, ",\"scheduler\":\"");
	host_put(scheduler, "\",\"step\":", step_name);
	host_put(stages > 1 ? ",\"extended\":true" : ",\"extended\":false", "", "");
	say("misses", misses);
	say("jobs", jobs);
	say("switches", switches);
	say("ns", end_ns);
	host_put("}\n", "", "");
	host_exit(0);
}

/* ---- the plan: one node above the tasks ---- */

static bool same_text(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

/* Parameters of the node and of the edge to a task. */
static u8 policy_of(const char *name, u64 *node)
{
	if (same_text(name, "round-robin")) {
		node[0] = 1 * MS;
		return TIERCE_round_robin;
	}
	if (same_text(name, "fixed-priority"))
		return TIERCE_fixed_priority;
	if (same_text(name, "edf"))
		return TIERCE_edf;
	node[1] = 3 * MS; /* nominal burst; its round is as long as the active tasks' */
	node[2] = MS / 10;
	node[3] = 20 * MS;
	if (same_text(name, "multiburst"))
		return TIERCE_multiburst;
	node[4] = 262144; /* gains 0.25 and 0.9, zero 0.88 in 2^-20 */
	node[5] = 943718;
	node[6] = 922747;
	if (same_text(name, "i-plus-pi"))
		return TIERCE_i_plus_pi;
	return TIERCE_FREE;
}
static void edge_params(u8 policy, u32 task, u64 *edge)
{
	static const u16 importance[BASE] = {2, 20, 156, 1250, 10000};
	static const u8 wake[BASE] = {2, 2, 1, 1, 0}; /* end of round, after the current burst, immediately */
	u32 as = task < BASE ? task : 2;
	if (policy == TIERCE_fixed_priority)
		edge[0] = as + 1; /* rate-monotonic */
	if (policy == TIERCE_i_plus_pi || policy == TIERCE_multiburst)
		edge[0] = importance[as];
	if (policy == TIERCE_multiburst)
		edge[1] = wake[as];
}

static void __attribute__((noreturn)) make_plan(u32 count)
{
	static struct plan_step steps[3 * TASKS + 2];
	static struct plan_task list[TASKS];
	static const struct plan plan_of = {steps, list, 0, 0, "{}"};
	struct plan plan = plan_of;
	struct plan_step *step = steps;
	u32 i;
	*step = (struct plan_step)PLAN_NODE(1, 0);
	step->kind = policy_of(scheduler, step->param);
	KERNEL_REQUIRE(step->kind, "no such scheduler");
	step++;
	for (i = 0; i < count; i++) {
		*step++ = (struct plan_step)PLAN_TASK(2 + i);
		list[i] = (struct plan_task){.name = names[i], .id = (u16)(2 + i)};
	}
	for (i = 0; i < count; i++)
		*step++ = (struct plan_step)PLAN_EDGE(1 + i, 1, 2 + i, 0, 0);
	*step++ = (struct plan_step)PLAN_ROOT(1);
	for (i = 0; i < count; i++) {
		*step = (struct plan_step)PLAN_ATTACH(1 + i);
		edge_params(steps[0].kind, i, step->param);
		step++;
	}
	plan.steps = (u32)(step - steps);
	plan.tasks = count;
	kernel_run(&plan);
}

static u32 number_of(const char *text)
{
	u32 number = 0;
	while (*text >= '0' && *text <= '9')
		number = number * 10 + (u32)(*text++ - '0');
	return number;
}

/* Where the last words of the command line begin; ends each. */
static void last_words(char *text, const char **word, u32 count)
{
	u32 length = 0;
	while (text[length])
		length++;
	while (count && length) {
		if (text[--length] == ' ') {
			word[--count] = text + length + 1;
			text[length] = 0;
		}
	}
	KERNEL_REQUIRE(!count, "hartstone: EXPERIMENT STEP SECONDS SCHEDULER");
}

int main(void)
{
	static const u32 low[] = {4, 2, 1, 1}, high[] = {40, 20, 10, 10}; /* 48 % and 120 % */
	static char line[256];
	const char *word[4];
	u32 i, s, count = 0, experiment, step[STAGES];
	u64 until_ns[STAGES];
	host_arguments(line, sizeof line);
	last_words(line, word, 4);
	experiment_name = word[0];
	experiment = number_of(word[0]);
	KERNEL_REQUIRE(experiment >= 1 && experiment <= 4, "hartstone: experiments are 1 to 4");
	step_name = word[1];
	scheduler = word[3];
	end_ns = number_of(word[2]) * 1000 * MS;
	stages = 1;
	step[0] = number_of(step_name);
	until_ns[0] = end_ns;
	if (step_name[0] == 'x') { /* a quarter of the time, an eighth overloaded */
		step[0] = step[2] = low[experiment - 1];
		step[1] = high[experiment - 1];
		until_ns[0] = end_ns / 4;
		until_ns[1] = end_ns / 8 * 3;
		until_ns[2] = end_ns;
		stages = 3;
		step_name = experiment == 1 ? "40" : experiment == 2 ? "20" : "10";
	}
	KERNEL_REQUIRE(end_ns && end_ns <= 171000 * MS, "hartstone: up to 171 seconds");
	KERNEL_REQUIRE(experiment != 4 || step[0] <= EXTRA, "hartstone: no more tasks fit");
	for (i = 0; i < TASKS; i++) {
		struct task *task = &tasks[i];
		struct stage *first = 0;
		for (s = 0; s < stages; s++) {
			task->stage[s] = demand(experiment, step[s], i, until_ns[s]);
			if (!first && task->stage[s].period_ns) {
				first = &task->stage[s];
				task->job_ns = s ? until_ns[s - 1] : 0;
			}
		}
		if (!first)
			break;
		task->thread.stack = (u32 *)stacks[i];
		task->thread.stack_end = (u32 *)(stacks[i] + STACK_BYTES);
		thread_make(&task->thread, names[i], runs, task);
		thread_periodic(&task->thread, task->job_ns, first->period_ns, first->period_ns);
		count++;
	}
	io_write(0xe000e100, 1 << 8);
	io_write(DEVICE_RELOAD, (u32)(end_ns / 40));
	io_write(DEVICE_VALUE, (u32)(end_ns / 40));
	io_write(DEVICE_CONTROL, 1 << 3 | 1);
	make_plan(count);
}
