/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What FreeRTOS wants of a C library. */
#pragma once
#include <stddef.h>
void *memset(void *to, int byte, size_t length);
void *memcpy(void *to, const void *from, size_t length);
