/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The one event stream. Every target emits these records; everything that draws, counts or judges reads only them.
 * A file is: 8 bytes "TIERCE\0\1", u32 length of a JSON header, the header, then records of 32 bytes, little endian.
 */
#ifndef TIERCE_EVENTS_H
#define TIERCE_EVENTS_H

/*   E(number, name, a, b, value) */
#define TIERCE_EVENT_LIST(E) \
	E(1, decision, "task now running, 0: idle", "edge it runs through", "task that ran before") \
	E(2, request, "task", "why (enum tierce_why)", "0") \
	E(3, release, "task", "why", "0") \
	E(4, grant, "edge", "child", "0") \
	E(5, revoke, "edge", "why", "0") \
	E(6, throttle, "edge", "child", "replenished at (ns)") \
	E(7, replenish, "edge", "child", "budget now remaining (ns)") \
	E(8, budget, "edge", "child", "budget remaining (ns, signed), sampled when charged") \
	E(9, job_release, "task", "job number", "absolute deadline (ns), 2^64-1: none") \
	E(10, job_start, "task", "job number", "0") \
	E(11, job_complete, "task", "job number", "response time (ns)") \
	E(12, miss, "task", "job number", "absolute deadline (ns)") \
	E(13, stolen, "task current meanwhile", "0", "time taken from the CPU since its last entry (ns)") \
	E(14, lost, "0", "0", "records lost before this one") \
	E(15, forgive, "edge", "child", "debt or budget written off (ns)") \
	E(16, outside, "thread id", "1: begins, 0: ends", "0: per-CPU kernel thread, 1: overflow, 2: other class, 3: it runs from here on") \
	E(17, control, "operation", "node or edge", "error, 0: done") \
	E(18, name, "task: from here on another thread", "b, pad, value: 16 bytes of its name", "") \
	E(19, attach, "edge", "child", "parent, 0: the CPU of this record") \
	E(20, detach, "edge", "child", "0") \
	E(21, change, "bytes of a plan change from here on", "b, pad, value: 16 of them", "") \
	E(22, resize, "edge", "child", "budget from its next replenishment on (ns)") \
	E(23, tell, "task", "message (enum tierce_message)", "error, 0: yes") \
	E(24, met, "task", "0", "deadline of the time constraint whose work is done (ns)") \
	E(25, migrate, "task, now below the replica on this CPU", "CPU that it leaves", "bit 0: 1 it waits, 0 it sleeps; from bit 1 on: reason (enum tierce_migration)") \
	E(26, unkept, "edge", "why (enum tierce_unkept)", "missing of what was promised (ns)") \
	E(27, lock_wait, "task: it waits for a lock from here on", "task that has it, 0: a thread outside the graph", "bits 0 and 1: kind (enum tierce_lock); the rest: address, in a simulation 4 * number") \
	E(28, lock_end, "task", "0: it has the lock, 1: not", "0") \
	E(29, mode, "mixed-criticality node", "1: critical mode begins, 0: it ends", "edge of the child that used more than its work, or left") \
	E(30, mark, "task: it deals with an item from here on", "b, pad: 8 bytes of a label", "number of the item")

#define TIERCE_ENUM(number, name, a, b, value) TIERCE_EV_##name = number,
enum tierce_event_kind { TIERCE_EVENT_LIST(TIERCE_ENUM) };
#undef TIERCE_ENUM

struct tierce_event {
	u64 now_ns;
	u16 kind, cpu;
	u32 a, b, pad;
	u64 value;
};
#endif
