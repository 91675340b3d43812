/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text, files and the end of a run, over semihosting. */
#ifndef TIERCE_HOST_H
#define TIERCE_HOST_H

#include "cpu.h"

void host_put(const char *a, const char *b, const char *c);
void host_number(u64 number);
void host_hex(u32 number);
/* What came after the program's name on the command line, at most `size` - 1 characters. */
void host_arguments(char *text, u32 size);
/* A file of the host; the handle, or -1. */
s32 host_create(const char *path);
bool host_write(s32 file, const void *bytes, u32 length);
void __attribute__((noreturn)) host_exit(u32 status);

#endif
