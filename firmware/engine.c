/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The engine and all policies, for the kernel's unit: what it calls is inlined there, and the one CPU is a constant. */
#include "port.h"
#include "engine/graph.c"
#include "engine/control.c"
#include "engine/check.c"
