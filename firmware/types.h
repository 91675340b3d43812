/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fixed-width types, and the one way to a device's registers. */
#ifndef TIERCE_TYPES_H
#define TIERCE_TYPES_H

#include <stdbool.h>
#include <stdint.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

#ifdef TIMER_MODEL /* tests on the host: registers of a model, and time may pass before every access */
u32 io_read(u32 address);
void io_write(u32 address, u32 value);
#else
static inline u32 io_read(u32 address)
{
	return *(volatile u32 *)address;
}
static inline void io_write(u32 address, u32 value)
{
	*(volatile u32 *)address = value;
}
#endif

#endif
