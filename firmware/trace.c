/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The event stream and the recording: kept in memory while it runs, so that writing costs no time that counts; what does not fit is lost. */
#include "tierce.h"
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

#ifdef RECORD_ENTRIES
/* In the layout of every target's recordings. */
static struct entry {
	u64 now_ns, value, result, drained;
	u32 op, a, b, lost;
} entries[RECORD_ENTRIES];
static u32 recorded, unrecorded;

void port_record(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained)
{
	if (recorded == RECORD_ENTRIES - 1)
		entries[recorded] = (struct entry){.now_ns = now, .op = op, .lost = ++unrecorded};
	else
		entries[recorded++] = (struct entry){now, value, result, drained, op, a, b, 0};
}

bool record_save(const char *path)
{
	static const u8 magic[8] = "TIERCER\1";
	u64 head[2] = {S.floor_ns, 0};
	s32 file = host_create(path);
	return file != -1 && host_write(file, magic, sizeof magic) && host_write(file, head, sizeof head) &&
	       host_write(file, entries, (recorded + !!unrecorded) * sizeof *entries);
}
#endif
