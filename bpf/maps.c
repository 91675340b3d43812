/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Maps, and constants that the loader sets before the object is loaded. */
#include "thread.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192); /* pages */
} arena SEC(".maps");

u32 tierce_zero;
unsigned long long port_nothing[1];

/* Constants of a run, set before loading. Weak, so that the compiler takes them for constant, but not for these. */
CONSTANT(u64, policies) = ~0ull;
CONSTANT(u64, parts) = ~0ull;
CONSTANT(u64, trace_kinds) = 0;
CONSTANT(u64, record_entries) = 0;
CONSTANT(u32, cpus_here) = 1;
CONSTANT(u64, several_cpus) = 0;
CONSTANT(u64, many_cpus) = 0; /* more than 64 */
CONSTANT(u64, overheads_stolen) = 1;
CONSTANT(u64, throttle_at_user) = 0;
CONSTANT(u64, locks_fair) = 1;
CONSTANT(u64, count_contention) = 0;
CONSTANT(u64, watch_locks) = 0;
CONSTANT(u64, inherits) = 0;
#define WANTED(constant) KNOWN_BIT(constant, 0)

struct slot { /* the thread of a leaf; set while it has one */
	struct task_struct __kptr *task;
	struct bpf_task_work work; /* until it goes back to user mode */
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIERCE_NODES);
	__type(key, u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct timer {
	struct bpf_timer timer;
};
struct { /* of each CPU; its size is set when loaded */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TIERCE_CPUS);
	__type(key, u32);
	__type(value, struct timer);
} timers SEC(".maps");

struct { /* of struct tierce_event; its size is set when loaded */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} records SEC(".maps");

struct { /* of struct tierce_entry; its size is set when loaded */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} entries SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} news SEC(".maps");

struct tierce_side ARENA tierce_side;
#define SIDE (*(struct tierce_side *)&tierce_side)

#define GUESSES 16384u /* a leaf each, by the number of its thread: who had that number last */
u32 ARENA tierce_guess[GUESSES];
#define guesses (*(u32(*)[GUESSES])&tierce_guess)

static inline struct tierce_leaf *leaf_at(u32 leaf)
{
	return &AT_FIXED(tierce_side, struct tierce_side, leaf, leaf);
}
static inline struct tierce_cpu_side *side_at(u32 cpu)
{
	return &AT_FIXED(tierce_side, struct tierce_side, cpu, cpu);
}
