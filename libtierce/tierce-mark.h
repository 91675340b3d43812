/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * TIERCE_MARK(label, item): from here on this thread deals with the item of that number. A label has at most 8 bytes; it says what is
 * numbered, so that one thread may mark several things. `[chain.NAME] mark = "label"` of a plan measures by it (docs/chains.md).
 *
 * A mark is a static probe (USDT, provider `tierce`, name `mark`): one instruction that does nothing, and a note in the program about where
 * it is. So a program needs no library, and marks cost nothing while nobody listens. <sys/sdt.h> makes the same probe:
 * DTRACE_PROBE2(tierce, mark, label, item).
 */
#ifndef TIERCE_MARK_H
#define TIERCE_MARK_H

#include <stdint.h>

/* The note: length of name, of text, type 3; name; address of the probe, of a section that tells how far addresses have moved, of no
 * semaphore; provider, probe, and where its arguments are, 8 bytes each. */
#define TIERCE_MARK(label, item) \
	__asm__ volatile("990: nop\n" \
			 ".pushsection .note.stapsdt,\"\",%%note\n" \
			 ".balign 4\n" \
			 ".4byte 992f-991f, 994f-993f, 3\n" \
			 "991: .asciz \"stapsdt\"\n" \
			 "992: .balign 4\n" \
			 "993: .8byte 990b, _.stapsdt.base, 0\n" \
			 ".asciz \"tierce\", \"mark\", \"8@%0 8@%1\"\n" \
			 "994: .balign 4\n" \
			 ".popsection\n" \
			 ".ifndef _.stapsdt.base\n" \
			 ".pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n" \
			 ".hidden _.stapsdt.base\n" \
			 "_.stapsdt.base: .space 1\n" \
			 ".size _.stapsdt.base, 1\n" \
			 ".popsection\n" \
			 ".endif\n" \
			 : \
			 : "r"((const char *)(label)), "r"((uint64_t)(item)) \
			 : "memory")

#endif
