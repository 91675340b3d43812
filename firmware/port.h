/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The firmware port: the engine of policy/ (under its MIT licence) on one Cortex-M, in pools that fit there.
 *
 * Entries are called with interrupts masked, so locks are nothing. A kick makes the switch interrupt pending, which comes
 * when everything else is done. An invariant that fails ends in the safe state (kernel_fault).
 */
#ifndef TIERCE_PORT_H
#define TIERCE_PORT_H

#include "types.h"
#include "cpu.h"

#ifndef TIERCE_NODES
#define TIERCE_NODES 32u
#define TIERCE_EDGES 48u
#endif
#define TIERCE_ROWS 2u /* shared nodes: one CPU has none */
#define TIERCE_CPUS 1u
#define TIERCE_FAMILIES 1u /* nor spread ones */

#ifndef TIERCE_FN /* static in the kernel's unit, which has all of it */
#define TIERCE_FN
#endif
#define PORT_FLAT
#define PORT_ALIGNED __attribute__((aligned(256)))
#define PORT_ASIDE PORT_SHORT
#define PORT_APART __attribute__((noinline))
#define CAN_LOOP 1
#define PORT_YIELDS 1
#define PORT_QUIET  0
#define PORT_HAS_PART(name) 1
#define ZERO	 0u

/* The policies that plans use, a bit each, if the build says so (`tierce embed --policies`): others are left out. */
#ifdef TIERCE_POLICIES
#define PORT_HAS(policy)  ((TIERCE_POLICIES) >> (policy)&1)
#define PORT_NO_OTHER()	  __builtin_unreachable()
#define PORT_SHORT	  static inline __attribute__((always_inline))
#else
#define PORT_HAS(policy)  ((void)(policy), 1)
#define PORT_NO_OTHER()	  ((void)0)
#define PORT_SHORT	  static inline
#endif
#define PORT_USES(policy) PORT_HAS(policy)

struct tierce;
extern struct tierce kernel_graph;
#define S		 kernel_graph
/* Of what there is one, no index is computed. */
/* An element's address is hidden from the compiler, which would add up each field's offset from the state's begin. */
#define AT(array, index) \
	(*__extension__({ \
		__typeof__(&(array)[0]) at_ = &(array)[sizeof(array) == sizeof((array)[0]) ? 0 : (index)]; \
		if (sizeof(*at_) > 16 && sizeof(array) != sizeof(*at_)) \
			__asm__("" : "+r"(at_)); \
		at_; \
	}))

#define AT_STATE(array, index) AT(S.array, index)
#define HELD(pointer, field) ((pointer)->field)
#define STATE(field) (S.field)

#define port_lock(domain)	    ((void)(domain))
#define port_unlock(domain)	    ((void)(domain))
#define port_inbox_set(cpu, set)    ((void)(S.inbox[cpu].bits |= (set)))
#define port_inbox_take(cpu)	    port_take(&S.inbox[cpu].bits)
#define port_kick(cpu)		    ((void)(cpu), cpu_pend_switch())
#define port_fail(reason)	    kernel_fault(__FILE__, __LINE__, reason)
#define port_trace(kind, cpu, a, b, value, now) trace_write(kind, a, b, value, now)

#define port_await(task)			((void)(task))
#define port_movable(task)		0
#define port_bits_set(word, bits)	((void)(*(word) |= (bits)))
#define port_bits_clear(word, bits)	((void)(*(word) &= ~(bits)))
#define port_bits_claim(word, bits)	0
#define port_raise(word, was, value)	((void)(*(word) = (value)))

static inline u64 port_count(u64 *word, u64 change) /* nobody else is there */
{
	u64 was = *word;
	*word += change;
	return was;
}
static inline u64 port_take(u64 *bits)
{
	u64 taken = *bits;
	*bits = 0;
	return taken;
}

/* Every entry and control operation, to be decided again by another build; nothing without a recording. */
#ifdef RECORD_ENTRIES
void port_record(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained);
#else
#define port_record(op, a, b, value, now, result, drained) \
	((void)(op), (void)(a), (void)(b), (void)(value), (void)(now), (void)(result), (void)(drained))
#endif

/* One record of the event stream; nothing without a trace. */
#ifdef TRACE_RECORDS
void trace_write(u32 kind, u32 a, u32 b, u64 value, u64 now);
#else
static inline void trace_write(u32 kind, u32 a, u32 b, u64 value, u64 now)
{
	(void)kind, (void)a, (void)b, (void)value, (void)now;
}
#endif

#endif
