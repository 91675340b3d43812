/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef TIERCE_TRACE_H
#define TIERCE_TRACE_H

#include "plan.h"

/* Write what was traced so far to a file of the host, in the format of every target's traces. */
bool trace_save(const char *path, const struct plan *plan);
/* The engine's entries so far, to be replayed (`tierce sim --replay`). */
bool record_save(const char *path);

#endif
