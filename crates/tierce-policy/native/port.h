/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The native port: simulator, replay and tests. One state per thread at a time (tierce_use), no locks needed. */
#ifndef TIERCE_PORT_H
#define TIERCE_PORT_H

#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifndef TIERCE_NODES /* the model checker compiles with tiny pools */
#define TIERCE_NODES 65536u
#define TIERCE_EDGES 131072u
#define TIERCE_ROWS  1024u
#define TIERCE_FAMILIES 64u
#define TIERCE_CPUS  512u
#endif

#define TIERCE_FN
#define PORT_FLAT
#define PORT_ALIGNED
#define PORT_SHORT static inline
#define PORT_ASIDE PORT_SHORT
#define PORT_APART inline
#define CAN_LOOP 1
#define PORT_YIELDS 1
#define PORT_QUIET  S.quiet
#ifndef PORT_HAS /* tests leave out something */
#define PORT_HAS(policy) 1
#define PORT_HAS_PART(name) 1
#endif
#define PORT_USES(policy) 1
#define PORT_MANY	  (S.cpus > 64)
#define PORT_NO_OTHER()	  ((void)0)
#define ZERO	 0u

struct tierce;
struct tierce_entry { /* one recorded entry or control operation; see enum tierce_op */
	u64 now_ns, value, result, drained;
	u32 op, a, b, pad;
};
struct tierce_native { /* what the hooks act on; one per thread */
	struct tierce *state;
	const char *failed; /* first port_fail */
	u64 kicked;	    /* some CPUs were, since the caller last looked */
	void (*trace)(void *sink, u32 kind, u32 cpu, u32 a, u32 b, u64 value, u64 now);
	void *sink;
	u64 traced;    /* kinds of events that are wanted, a bit each; a bit needs `trace` */
	u64 replaying; /* inboxes give what the record says, not what is in them */
	u64 drain;     /* what the next entry takes from its inbox */
	void (*record)(void *sink, const struct tierce_entry *entry);
	void *record_sink;
	u64 kicks[(TIERCE_CPUS + 63) / 64]; /* they, a bit each */
};
extern _Thread_local struct tierce_native tierce_native;
#define S		 (*tierce_native.state)
#define AT(array, index) ((array)[index])
#define AT_STATE(array, index) ((S.array)[index])
#define HELD(pointer, field) ((pointer)->field)
#define STATE(field)		 (S.field)
#define HIDDEN(number)	       (number)

static inline void port_lock(u32 domain)
{
	(void)domain;
}
static inline void port_unlock(u32 domain)
{
	(void)domain;
}
#define port_inbox_set(cpu, set) ((void)(S.inbox[cpu].bits |= (set)))
static inline u64 port_take(u64 *bits)
{
	u64 taken = tierce_native.replaying ? tierce_native.drain & *bits : *bits;
	*bits &= ~taken;
	return taken;
}
#define port_inbox_take(cpu) port_take(&S.inbox[cpu].bits)
/* One thread: nothing is in transit when another entry comes. */
#define port_await(task) port_fail("an entry about a task in transit")
#define port_movable(task) 1
static inline void port_bits_set(u64 *word, u64 bits)
{
	*word |= bits;
}
static inline void port_bits_clear(u64 *word, u64 bits)
{
	*word &= ~bits;
}
static inline bool port_bits_claim(u64 *word, u64 bits)
{
	bool were = *word & bits;
	*word &= ~bits;
	return were;
}
#define port_raise(word, was, value) ((void)(*(word) == (was) ? *(word) = (value) : 0))
static inline u64 port_count(u64 *word, u64 change)
{
	u64 was = *word;
	*word += change;
	return was;
}
static inline void port_kick(u32 cpu)
{
	tierce_native.kicks[cpu >> 6] |= 1ull << (cpu & 63);
	tierce_native.kicked = 1;
}
static inline void port_trace(u32 kind, u32 cpu, u32 a, u32 b, u64 value, u64 now)
{
	if (__builtin_expect(tierce_native.traced >> kind & 1, 0))
		tierce_native.trace(tierce_native.sink, kind, cpu, a, b, value, now);
}
static inline void port_record(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained)
{
	if (__builtin_expect(tierce_native.record != 0, 0)) {
		struct tierce_entry entry = {now, value, result, drained, op, a, b, 0};
		tierce_native.record(tierce_native.record_sink, &entry);
	}
}
static inline void port_fail(const char *reason)
{
	if (!tierce_native.failed)
		tierce_native.failed = reason;
}
#endif
