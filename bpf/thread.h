/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What is known of every thread of the machine: in its task storage, which objects share. */
#ifndef TIERCE_THREAD_H
#define TIERCE_THREAD_H

struct thread {
	u32 leaf;		/* its task in the graph, 0: none, it runs outside */
	u32 next;		/* the task it becomes as soon as it is off the CPU, 0: none; or COMMAND_TO_DEFAULT */
	u32 lost;		/* it has not the place that the plan has for it: it left our class, or may not run there */
	u32 beside;		/* no leaf was left for it, or for its user; counted once */
	u32 class;		/* its policy and real-time priority, as the loader was told last */
	u32 waits;		/* for a lock: 1 + what kind (enum tierce_lock); 0: it does not, or nobody wants to know */
	u32 holder, holder_pid; /* while it waits: leaf and number of who has the lock, as far as known; 0: not */
	u64 lock;		/* which one */
	u64 owner_at;		/* of a futex: where its program has written down who has it */
	u32 owner;		/* and what was there */
	u32 reads;		/* others may have the lock `wants` with it */
	u64 wants;		/* a lock of the kernel that it waits for, whoever has it; 0: none */
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads SEC(".maps");

#endif
