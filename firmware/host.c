/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "host.h"

enum { HOST_OPEN = 0x01, HOST_PUT = 0x04, HOST_WRITE = 0x05, HOST_ARGUMENTS = 0x15, HOST_EXIT = 0x20 };

void host_put(const char *a, const char *b, const char *c)
{
	host_call(HOST_PUT, a);
	host_call(HOST_PUT, b);
	host_call(HOST_PUT, c);
}

static void digits(u64 number, u32 base, u32 least)
{
	char text[21];
	u32 at = sizeof text - 1;
	text[at] = 0;
	do {
		text[--at] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number || at > sizeof text - 1 - least);
	host_call(HOST_PUT, text + at);
}

void host_number(u64 number)
{
	digits(number, 10, 1);
}

void host_hex(u32 number)
{
	digits(number, 16, 8);
}

static u32 length_of(const char *text)
{
	u32 length = 0;
	while (text[length])
		length++;
	return length;
}

void host_arguments(char *text, u32 size)
{
	struct {
		char *text;
		u32 size;
	} arguments = {text, size};
	text[0] = 0;
	if (host_call(HOST_ARGUMENTS, &arguments))
		text[0] = 0;
}

s32 host_create(const char *path)
{
	struct {
		const char *path;
		u32 mode, length;
	} arguments = {path, 5, length_of(path)}; /* "wb" */
	return (s32)host_call(HOST_OPEN, &arguments);
}

bool host_write(s32 file, const void *bytes, u32 length)
{
	struct {
		s32 file;
		const void *bytes;
		u32 length;
	} arguments = {file, bytes, length};
	return host_call(HOST_WRITE, &arguments) == 0; /* bytes not written */
}

void host_exit(u32 status)
{
	struct {
		u32 reason, status;
	} arguments = {0x20026, status};
	for (;;) {
		host_call(HOST_EXIT, &arguments);
		cpu_wait_for_interrupt(); /* nobody listens */
	}
}

/* The compiler calls these where it likes. */
void *memset(void *to, int byte, unsigned length)
{
	u8 *at = to;
	while (length--)
		*at++ = (u8)byte;
	return to;
}

void *memcpy(void *to, const void *from, unsigned length)
{
	u8 *at = to;
	const u8 *source = from;
	while (length--)
		*at++ = *source++;
	return to;
}
