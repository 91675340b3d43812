/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marks between which `tierce vm --profile` counts: two no-operations that no compiler emits. Any program of the guest
 * may execute them, in user mode or in the kernel; on any other machine they do nothing. guest/profile.c knows them. */
#ifndef GUEST_PROFILE_H
#define GUEST_PROFILE_H

#define PROFILE_BEGIN 0x54524342
#define PROFILE_END 0x54524345

/* An 8-byte NOP with a displacement: 0f 1f 84 00 and the number. */
#define PROFILE_MARK_(number) __asm__ volatile("nopl " #number "(%%rax,%%rax,1)" ::: "memory")
#define PROFILE_MARK(number) PROFILE_MARK_(number)

#endif
