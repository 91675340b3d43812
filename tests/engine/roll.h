/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers: splitmix64, the same everywhere. */
#ifndef TIERCE_TEST_ROLL_H
#define TIERCE_TEST_ROLL_H

static u64 random_state;
static u64 roll(void) /* splitmix64 */
{
	u64 z = random_state += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}
static u32 below(u32 bound)
{
	return (u32)(roll() % bound);
}

#endif
