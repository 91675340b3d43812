/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Records for the loader: events, recorded entries, names of threads. */

TIERCE_FN int trace_write(u64 head, u64 now, u32 a, u32 b, u64 value)
{
	struct tierce_event *event = bpf_ringbuf_reserve(&records, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&SIDE.lost, 1);
		return 0;
	}
	event->now_ns = now;
	event->kind = head;
	event->cpu = head >> 16;
	event->a = a;
	event->b = b;
	event->pad = 0;
	event->value = value;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static inline void record_write(u32 op, u32 a, u32 b, u64 value, u64 now, u64 result, u64 drained)
{
	struct tierce_entry *entry = bpf_ringbuf_reserve(&entries, sizeof *entry, 0);
	if (!entry) {
		__sync_fetch_and_add(&SIDE.lost_entries, 1);
		return;
	}
	entry->now_ns = now;
	entry->value = value;
	entry->result = result;
	entry->drained = drained;
	entry->op = op;
	entry->a = a;
	entry->b = b;
	entry->lost = (u32)SIDE.lost_entries;
	bpf_ringbuf_submit(entry, BPF_RB_NO_WAKEUP);
}

/* A leaf is another thread from now on. */
static inline void name_write(u32 leaf, struct task_struct *p, u64 now)
{
	struct tierce_event *event;
	if (!TRACES(TIERCE_EV_name))
		return;
	event = bpf_ringbuf_reserve(&records, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&SIDE.lost, 1);
		return;
	}
	event->now_ns = now;
	event->kind = TIERCE_EV_name;
	event->cpu = 0;
	event->a = leaf;
	bpf_probe_read_kernel(&event->b, 16, p->comm); /* b, pad, value */
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
}
