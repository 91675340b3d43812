/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Marks that programs write, as records of the plan in force: TIERCE_EV_mark.
 *
 * A mark is a static probe (USDT) `tierce:mark` with two arguments, a label and a number: "from here on this thread deals with that
 * item". The loader attaches this program to the probes of the files that the plan names. It is an object of its own, since most plans
 * have none; records and threads are those of the object that schedules (tierce.bpf.c), whose maps the loader hands over.
 */
#include "kernel.h"
#define BPF_MAP_TYPE_HASH 1
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#undef PT_REGS_IP
#define PT_REGS_IP(regs) 0 /* probes are told apart by a cookie: every kernel with sched_ext has them */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wsign-compare"
#include <bpf/usdt.bpf.h>
#pragma clang diagnostic pop
#include "events.h"
#include "thread.h"

char _license[] SEC("license") = "GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096); /* as that of the other object, once it is handed over */
} records SEC(".maps");

u64 lost;	/* marks that found no room */
u64 unlabelled; /* marks whose label could not be read */

SEC("usdt")
int BPF_USDT(tierce_mark, const char *label, u64 item)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	char text[9] = {}; /* with its end */
	struct tierce_event *event;
	if (!t || !t->leaf)
		return 0;
	if (bpf_probe_read_user_str(text, sizeof text, label) < 2) {
		__sync_fetch_and_add(&unlabelled, 1);
		return 0;
	}
	event = bpf_ringbuf_reserve(&records, sizeof *event, 0);
	if (!event) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	event->now_ns = bpf_ktime_get_ns();
	event->kind = TIERCE_EV_mark;
	event->cpu = bpf_get_smp_processor_id();
	event->a = t->leaf;
	__builtin_memcpy(&event->b, text, 8); /* and pad */
	event->value = item;
	bpf_ringbuf_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}
