/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The event stream: kept in memory while it runs, so that writing costs no time that counts; what does not fit is lost. */
#include "port.h"
#include "events.h"
#include "host.h"
#include "trace.h"

static struct tierce_event records[TRACE_RECORDS];
static u32 count, lost;

void trace_write(u32 kind, u32 a, u32 b, u64 value, u64 now)
{
	if (count == TRACE_RECORDS - 1) {
		struct tierce_event *last = &records[count];
		lost++;
		*last = (struct tierce_event){.now_ns = now, .kind = TIERCE_EV_lost, .value = lost};
		return;
	}
	records[count++] = (struct tierce_event){.now_ns = now, .kind = (u16)kind, .a = a, .b = b, .value = value};
}

bool trace_save(const char *path, const struct plan *plan)
{
	static const u8 magic[8] = "TIERCE\0\1";
	u32 length = 0;
	s32 file = host_create(path);
	while (plan->header[length])
		length++;
	return file != -1 && host_write(file, magic, sizeof magic) && host_write(file, &length, sizeof length) &&
	       host_write(file, plan->header, length) && host_write(file, records, (count + !!lost) * sizeof *records);
}
