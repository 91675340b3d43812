/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The engine and all policies as one unit. */
#include "port.h"
#include "graph.c"
#include "control.c"
#ifdef KERNEL_CHECK /* tests: the invariants, after every decision */
#include "check.c"
#endif
