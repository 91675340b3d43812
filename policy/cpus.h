/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Sets of CPUs. On a machine of up to 64 CPUs a set is one word, a bit for each CPU, and is handed around as that. A larger
 * machine has its sets in an array, and hands their numbers around. A cpus_t is the one or the other, by MANY; where a port
 * has no more than 64 CPUs, nothing but the word is compiled.
 */
#ifndef TIERCE_CPUS_H
#define TIERCE_CPUS_H

#if TIERCE_CPUS > 64
#define MANY   PORT_MANY
#define SET_FN TIERCE_FN
#else
#define MANY   0
#define SET_FN static inline
#undef HIDDEN
#define HIDDEN(number) (number)
#endif

typedef u64 cpus_t;

/* Numbers of sets, for larger machines. The staged one is where task 0's would be, all CPUs where node 0's would be. */
enum { NEAR_CORE, NEAR_CACHE, NEAR_MEMORY, NEAR_ONLY, NEAR_UNTRIED, NEAR_PORT };
#define SET_ALLOWED(task)    (task)
#define SET_REACH(node)	     (TIERCE_NODES + (node))
#define SET_FAMILY(family)   (2 * TIERCE_NODES + (family))
#define SET_NEAR(cpu, which) (2 * TIERCE_NODES + TIERCE_FAMILIES + TIERCE_NEARS * (cpu) + (which))
#define SET_STAGED	     SET_ALLOWED(0)
#define SET_ALL		     SET_REACH(0)

static inline u64 mask_of(u32 cpu)
{
	return 1ull << (cpu & 63);
}
static inline u32 cpus_words(void)
{
	return MANY ? (S.cpus + 63) >> 6 : 1;
}
/* On larger machines only. */
static inline u64 *set_word(cpus_t set, u32 word)
{
	return &AT(AT_STATE(set, HIDDEN(set)).word, HIDDEN(word));
}

static inline cpus_t allowed_of(u32 task)
{
	return MANY ? SET_ALLOWED(task) : node_at(task)->allowed;
}
static inline cpus_t reach_of(u32 node)
{
	return MANY ? SET_REACH(node) : node_at(node)->cpus;
}
static inline cpus_t family_cpus(u32 family)
{
	return MANY ? SET_FAMILY(family) : AT(S.family, family).cpus;
}
static inline cpus_t cpus_all(void)
{
	return MANY ? SET_ALL : ~0ull;
}
static inline cpus_t cpus_only(u32 cpu)
{
	return MANY ? SET_NEAR(cpu, NEAR_ONLY) : 1ull << cpu;
}

static inline bool cpus_has(cpus_t cpus, u32 cpu)
{
	return MANY ? *set_word(cpus, HIDDEN(cpu) >> 6) >> (HIDDEN(cpu) & 63) & 1 : cpus >> (cpu & 63) & 1;
}

SET_FN int sets_meet(u64 a, u64 b)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		if (*set_word(a, word) & *set_word(b, word))
			return 1;
	return 0;
}
static inline bool cpus_meet(cpus_t a, cpus_t b)
{
	return MANY ? sets_meet(a, b) : (a & b) != 0;
}
/* Is all of `a` in `b`? */
SET_FN int set_within(u64 a, u64 b)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		if (*set_word(a, word) & ~*set_word(b, word))
			return 0;
	return 1;
}
static inline bool cpus_within(cpus_t a, cpus_t b)
{
	return MANY ? set_within(a, b) : (a & b) == a;
}
/* Has the set a CPU of the machine beside this one? */
SET_FN int set_has_other(u64 set, u32 cpu)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		if (*set_word(set, word) & ~(word == cpu >> 6 ? mask_of(cpu) : 0))
			return 1;
	return 0;
}
static inline bool cpus_have_other(cpus_t cpus, u32 cpu)
{
	return MANY ? set_has_other(cpus, cpu) : (cpus & ~mask_of(cpu)) != 0;
}

/* The first one that is in both, TIERCE_CPUS: there is none. */
SET_FN u32 sets_lowest(u64 a, u64 b)
{
	u32 cpu;
	for (cpu = ZERO; cpu < S.cpus && CAN_LOOP; cpu++)
		if (*set_word(a, cpu >> 6) & *set_word(b, cpu >> 6) & mask_of(cpu))
			return cpu;
	return TIERCE_CPUS;
}
static inline u32 cpus_lowest(cpus_t a, cpus_t b)
{
	u32 bit;
	if (MANY)
		return sets_lowest(a, b);
	for (bit = ZERO; bit < S.cpus && CAN_LOOP; bit++)
		if ((a & b) >> bit & 1)
			return bit;
	return TIERCE_CPUS;
}

/* ---- changes; of larger machines' sets by number ---- */

SET_FN int set_fill(u64 set, u64 bits)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		*set_word(set, word) = bits;
	return 0;
}
SET_FN int set_copy(u64 to, u64 from)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		*set_word(to, word) = *set_word(from, word);
	return 0;
}
SET_FN int set_unite(u64 to, u64 from)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		*set_word(to, word) |= *set_word(from, word);
	return 0;
}

/* Of a control operation: what was staged of the CPUs from 64 on, and these bits for the others. */
static inline cpus_t cpus_staged(u64 bits)
{
	if (!MANY)
		return bits;
	*set_word(SET_STAGED, 0) = bits;
	return SET_STAGED;
}
/* What the operation was given. */
static inline u64 cpus_first(cpus_t cpus)
{
	return MANY ? *set_word(cpus, 0) : cpus;
}
static inline void allowed_set(u32 task, cpus_t cpus)
{
	if (MANY)
		set_copy(SET_ALLOWED(task), cpus);
	else
		node_at(HIDDEN(task))->allowed = cpus;
}
static inline void reach_clear(u32 node)
{
	if (MANY)
		set_fill(SET_REACH(node), 0);
	else
		node_at(node)->cpus = 0;
}
static inline void reach_add(u32 node, cpus_t cpus)
{
	if (MANY)
		set_unite(SET_REACH(node), cpus);
	else
		node_at(node)->cpus |= cpus;
}
static inline void reach_only(u32 node, u32 cpu)
{
	if (MANY)
		set_copy(SET_REACH(node), cpus_only(cpu));
	else
		node_at(node)->cpus = mask_of(cpu);
}
static inline void family_add(u32 family, u32 cpu)
{
	if (MANY)
		*set_word(SET_FAMILY(family), cpu >> 6) |= mask_of(cpu);
	else
		AT(S.family, family).cpus |= 1ull << cpu;
}
static inline void family_remove(u32 family, u32 cpu)
{
	if (MANY)
		*set_word(SET_FAMILY(family), cpu >> 6) &= ~mask_of(cpu);
	else
		AT(S.family, family).cpus &= ~(1ull << cpu);
}

/* ---- who is idle ---- */

static inline u64 *idle_word(u32 cpu)
{
	return MANY ? &AT(S.idle, cpu >> 6) : &S.idle[0];
}
static inline bool is_idle(u32 cpu)
{
	return *idle_word(cpu) & mask_of(cpu);
}
SET_FN int some_are_idle(void)
{
	u32 word;
	for (word = ZERO; word < cpus_words() && CAN_LOOP; word++)
		if (AT(S.idle, word))
			return 1;
	return 0;
}
static inline bool any_idle(void)
{
	return MANY ? some_are_idle() : S.idle[0] != 0;
}
static inline void idle_set(u32 cpu)
{
	port_bits_set(idle_word(cpu), mask_of(cpu));
}
static inline void idle_clear(u32 cpu)
{
	port_bits_clear(idle_word(cpu), mask_of(cpu));
}

#endif
