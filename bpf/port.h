/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The kernel port: the engine inside a BPF program. State is one arena; ids are not checked by the hardware or the
 * verifier there (a wild one reads 0 and writes nowhere), so control operations check them.
 *
 * Limits are smaller than elsewhere: a machine has fewer threads than a simulated plan may have tasks, and what is in the
 * arena is memory of the kernel, about 12 MB, and 3 to 6 MB more on a machine with more than 64 CPUs. Threads beyond the pool share
 * one queue outside the graph.
 *
 * Locks are spinlocks in the arena, taken with interrupts off: operations of the scheduler run under a run queue's
 * lock, timers and control programs switch interrupts off themselves. They are ticket locks, on virtual machines
 * test-and-set locks (locks_fair). A lock that stays taken for long, or a loop that
 * spends the allowance the kernel gives to loops (may_goto), ends in scx_bpf_error: the machine goes back to its default
 * scheduler, the reason is shown.
 */
#ifndef TIERCE_PORT_H
#define TIERCE_PORT_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>

#define TIERCE_NODES 16384u
#define TIERCE_EDGES 24576u
#define TIERCE_ROWS  512u
#define TIERCE_CPUS  512u
#define TIERCE_FAMILIES 64u

/* weak: never inlined or specialised across calls, so the verifier looks at each function once, arguments unknown */
#define TIERCE_FN __attribute__((noinline, weak))
/* not inlined either, but looked at with the arguments of each call: pointers to threads are passed so */
#define OWN_FRAME static __attribute__((noinline))
/* the rest is inlined: at most 8 frames, and a frame costs more than it saves */
#define inline inline __attribute__((always_inline))
#define PORT_FLAT static inline
#define PORT_ALIGNED
#define PORT_SHORT static inline
#define PORT_ASIDE TIERCE_FN
#define PORT_APART inline
#define ARENA __attribute__((address_space(1)))

struct tierce;
extern struct tierce ARENA tierce_state;
#define S (*(struct tierce *)&tierce_state)
/* 6.18's verifier wants the pointer on the left of an addition, and both look at less when it is a pointer by then. */
#define AT(array, index) \
	(*({ \
		__typeof__(&(array)[0]) element = (array); \
		asm("%0 += %1" : "+r"(element) : "r"((u64)(index) * sizeof *element)); \
		element; \
	}))

/* The same of an array in a variable: its address is a constant, to which a compiler would add the array's offset each time. */
#define AT_FIXED(variable, type, array, index) \
	(*({ \
		__typeof__(&((type *)0)->array[0]) element; \
		asm("%0 = " #variable " + %2 ll\n" \
		    "%0 = addr_space_cast(%0, 0, 1)\n" \
		    "%0 += %1" \
		    : "=&r"(element) \
		    : "r"((u64)(index) * sizeof *element), "i"(__builtin_offsetof(type, array))); \
		element; \
	}))
#define AT_STATE(array, index) AT_FIXED(tierce_state, struct tierce, array, index)
#define HIDDEN(number) \
	({ \
		u64 hidden = (number); \
		asm volatile("" : "+r"(hidden)); \
		hidden; \
	})
/* A field of the state, found where it is read: a compiler would find its address before a loop and keep it on the stack. */
#define STATE(field) \
	(*({ \
		__typeof__(&((struct tierce *)0)->field) place; \
		asm volatile("%0 = tierce_state + %1 ll\n" \
			     "%0 = addr_space_cast(%0, 0, 1)\n" \
			     : "=r"(place) \
			     : "i"(__builtin_offsetof(struct tierce, field))); \
		place; \
	}))

/* A field that does not change while its domain is locked, of 32 bits: read once, whatever is written meanwhile. */
#define HELD(pointer, field) \
	({ \
		u64 value; \
		asm("%0 = *(u32 *)(%1 + %2)" \
		    : "=r"(value) \
		    : "r"(pointer), "i"(__builtin_offsetof(__typeof__(*(pointer)), field))); \
		__builtin_assume(value <= 0xffffffff); \
		(u32)value; \
	})

extern u32 tierce_zero; /* always 0; the verifier does not know */
#define ZERO	    tierce_zero
#define PORT_YIELDS 0 /* nobody yields, and the call stack has no room for it */
#define PORT_QUIET  0
/* Is a bit set in a constant that the loader knows? It takes out the test, and what is jumped over. The compiler must not see the
 * value, or it would keep it in a register or on the stack. */
#define KNOWN_BIT(constant, bit) \
	({ \
		__label__ set; \
		bool is = true; \
		u64 known; \
		asm volatile goto("%0 = " #constant " ll\n" \
				  "%0 = *(u64 *)(%0 + 0)\n" \
				  "if %0 & %1 goto %l[set]" \
				  : "=r"(known) \
				  : "i"(1u << (bit)) \
				  : \
				  : set); \
		is = false; \
	set: \
		is; \
	})
#define PORT_USES(policy)    KNOWN_BIT(policies, policy)
#define PORT_NO_OTHER()	    ((void)0)
#define PORT_HAS_PART(name) KNOWN_BIT(parts, TIERCE_PART_##name)
#define PORT_MANY	    KNOWN_BIT(many_cpus, 0)
#define PORT_HAS(policy) (policies >> (policy)&1)

#define CAN_LOOP \
	({ \
		__label__ spent, done; \
		bool more = true; \
		asm volatile goto("may_goto %l[spent]" : : : : spent); \
		goto done; \
	spent: \
		more = false; \
		port_fail("a loop spent the allowance the kernel gives to loops"); \
	done:; \
		more; \
	})

void scx_bpf_error_bstr(char *fmt, unsigned long long *data, u32 data__sz) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;

extern unsigned long long port_nothing[1];
#define port_fail(reason) \
	do { \
		static char text[] = reason; \
		scx_bpf_error_bstr(text, port_nothing, 0); \
	} while (0)

static inline void port_lock(u32 domain);
static inline void port_unlock(u32 domain);

#define port_inbox_set(cpu, set) ((void)__sync_fetch_and_or(&AT(S.inbox, cpu).bits, set))
#define port_inbox_take(cpu)	 __sync_lock_test_and_set(&AT(S.inbox, cpu).bits, 0)

static inline void port_kick(u32 cpu);
static inline void port_await(u32 task);
static inline bool port_movable(u32 task);

#define port_bits_set(word, bits)   ((void)__sync_fetch_and_or(word, bits))
#define port_bits_clear(word, bits) ((void)__sync_fetch_and_and(word, ~(u64)(bits)))
/* An arena has no atomic AND that tells what was there. Who loses twice against others looks for another CPU. */
#define port_bits_claim(word, bits) (bits_claimed(word, bits) || bits_claimed(word, bits))
static inline bool bits_claimed(u64 *word, u64 bits)
{
	u64 was = *(volatile u64 *)word;
	return (was & bits) && __sync_val_compare_and_swap(word, was, was & ~bits) == was;
}
#define port_count(word, change)     __sync_fetch_and_add(word, (u64)(change))
#define port_raise(word, was, value) ((void)__sync_val_compare_and_swap(word, was, value))

/* Sets of kinds that are wanted, a bit each; constants when the object is loaded, so that what nobody wants is not even
 * compiled by the kernel. Records go to one ring buffer: entries are recorded before their locks are given back, so the
 * order of the ring is an order in which they happened. */
#define CONSTANT(type, name) const type name __attribute__((weak))
extern CONSTANT(u64, policies); /* by their numbers */
extern CONSTANT(u64, parts);	/* enum tierce_part */
extern CONSTANT(u64, many_cpus);
extern CONSTANT(u64, trace_kinds);
extern CONSTANT(u64, record_entries);
#define TRACES(kind) KNOWN_BIT(trace_kinds, kind)
TIERCE_FN int trace_write(u64 head, u64 now, u32 a, u32 b, u64 value);
/* The CPU is hidden from the compiler, which would make the head before a loop and keep it. */
#define port_trace(kind, cpu, a, b, value, now) \
	do { \
		if (TRACES(kind)) { \
			u64 on = (cpu); \
			asm volatile("" : "+r"(on)); \
			trace_write((u64)(kind) | on << 16, now, a, b, value); \
		} \
	} while (0)

#define port_record(op, a, b, value, now, result, drained) \
	do { \
		if (KNOWN_BIT(record_entries, 0)) \
			record_write(op, a, b, value, now, (u64)(result), drained); \
	} while (0)
static inline void record_write(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained);

#endif
