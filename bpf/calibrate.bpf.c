/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Watches threads for `tierce calibrate`: when each is woken, when it sleeps again, and how long it ran in between. It schedules
 * nothing, and is no part of the object that does (tierce.bpf.c).
 *
 * The loader names threads (calibrate_watch); whatever these start is watched, too, if they are named with `inherits`. A watched
 * thread has an entry in its task storage. Of each of its bursts, from a wake-up until it sleeps again, one record goes to the loader:
 * being preempted is no sleep. Example: woken at 0, runs [1, 3), preempted, runs [5, 6), sleeps: one record, woke 0, slept 6, ran 3 ms.
 *
 * Interrupts and softirqs while a watched thread is on the CPU are counted apart from its own time; without their tracepoints they are
 * part of it.
 */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define BPF_MAP_TYPE_PERCPU_ARRAY 6

char _license[] SEC("license") = "GPL";

enum record_kind {
	RECORD_BURST, /* it sleeps */
	RECORD_BEGUN, /* it was started by one that is watched */
	RECORD_EXEC,  /* its process has another program */
	RECORD_ENDED, /* it ends; what comes with it is its last burst */
};

struct record {
	u64 woke_ns; /* 0: not known, it was watched only later */
	u64 now_ns;
	u64 ran_ns;
	u64 interrupted_ns;
	u32 tid, process, kind, pad;
	char name[16];
};

struct watched {
	u64 woke_ns;	    /* begin of the burst; 0: not known */
	u64 since_ns;	    /* since when it is on a CPU; 0: not known, or it is not */
	u64 taken_ns;	    /* what interrupts had taken on that CPU by then */
	u64 ran_ns;	    /* in this burst until then */
	u64 interrupted_ns; /* likewise */
	u32 sleeps;
	u32 inherits;
};
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct watched);
} watched SEC(".maps");

struct cpu {
	u64 taken_ns;		/* by interrupts, while a watched thread was on it */
	u64 irq_ns, softirq_ns; /* since when one is served; 0: none */
	u64 softirq_taken_ns;
	u32 is_watched;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cpu);
} cpus SEC(".maps");

struct { /* of struct record */
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} records SEC(".maps");

u64 lost; /* records that had no room */

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

static inline struct watched *watched_of(struct task_struct *p)
{
	return bpf_task_storage_get(&watched, p, 0, 0);
}
static inline struct cpu *this_cpu(void)
{
	u32 first = 0;
	return bpf_map_lookup_elem(&cpus, &first);
}

static inline void tell(struct task_struct *p, enum record_kind kind, const struct watched *w, u64 now)
{
	struct record *record = bpf_ringbuf_reserve(&records, sizeof *record, 0);
	if (!record) {
		__sync_fetch_and_add(&lost, 1);
		return;
	}
	record->woke_ns = w->woke_ns;
	record->now_ns = now;
	record->ran_ns = w->ran_ns;
	record->interrupted_ns = w->interrupted_ns;
	record->tid = p->pid;
	record->process = p->tgid;
	record->kind = kind;
	record->pad = 0;
	bpf_probe_read_kernel(record->name, sizeof record->name, p->comm);
	bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

static inline void leaves(struct task_struct *p, struct watched *w, const struct cpu *cpu, u32 state, u64 now)
{
	if (w->since_ns) {
		u64 interrupted_ns = cpu->taken_ns - w->taken_ns;
		w->ran_ns += now - w->since_ns - interrupted_ns;
		w->interrupted_ns += interrupted_ns;
		w->since_ns = 0;
	}
	if (state) {
		tell(p, state & TASK_DEAD ? RECORD_ENDED : RECORD_BURST, w, now);
		w->sleeps = 1;
	}
}
SEC("tp_btf/sched_switch")
int BPF_PROG(calibrate_switch, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int prev_state)
{
	struct cpu *cpu = this_cpu();
	struct watched *w;
	u64 now;
	if (!cpu)
		return 0;
	now = bpf_ktime_get_ns();
	w = watched_of(prev);
	if (w)
		leaves(prev, w, cpu, preempt ? 0 : prev_state, now);
	w = watched_of(next);
	cpu->is_watched = 0;
	if (w) {
		w->since_ns = now;
		w->taken_ns = cpu->taken_ns;
		cpu->is_watched = 1;
	}
	return 0;
}

static inline int woken(struct task_struct *p)
{
	struct watched *w = watched_of(p);
	if (!w || !w->sleeps) /* woken before it slept */
		return 0;
	w->woke_ns = bpf_ktime_get_ns();
	w->ran_ns = 0;
	w->interrupted_ns = 0;
	w->sleeps = 0;
	return 0;
}
SEC("tp_btf/sched_wakeup")
int BPF_PROG(calibrate_wakeup, struct task_struct *p)
{
	return woken(p);
}
SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(calibrate_wakeup_new, struct task_struct *p)
{
	return woken(p);
}

SEC("tp_btf/task_newtask")
int BPF_PROG(calibrate_begin, struct task_struct *p, u64 clone_flags)
{
	struct watched *parent = watched_of(bpf_get_current_task_btf()), *w;
	if (!parent || !parent->inherits)
		return 0;
	w = bpf_task_storage_get(&watched, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!w) {
		__sync_fetch_and_add(&lost, 1);
		return 0;
	}
	w->sleeps = 1;
	w->inherits = 1;
	tell(p, RECORD_BEGUN, w, bpf_ktime_get_ns());
	return 0;
}
SEC("tp_btf/sched_process_exec")
int BPF_PROG(calibrate_exec, struct task_struct *p)
{
	struct watched *w = watched_of(p);
	if (w)
		tell(p, RECORD_EXEC, w, bpf_ktime_get_ns());
	return 0;
}

SEC("raw_tp")
int calibrate_irq_begins(void *unused)
{
	struct cpu *cpu = this_cpu();
	if (cpu && cpu->is_watched)
		cpu->irq_ns = bpf_ktime_get_ns();
	return 0;
}
SEC("raw_tp")
int calibrate_irq_ends(void *unused)
{
	struct cpu *cpu = this_cpu();
	if (cpu && cpu->irq_ns) {
		cpu->taken_ns += bpf_ktime_get_ns() - cpu->irq_ns;
		cpu->irq_ns = 0;
	}
	return 0;
}
SEC("raw_tp")
int calibrate_softirq_begins(void *unused)
{
	struct cpu *cpu = this_cpu();
	if (cpu && cpu->is_watched) {
		cpu->softirq_taken_ns = cpu->taken_ns;
		cpu->softirq_ns = bpf_ktime_get_ns();
	}
	return 0;
}
SEC("raw_tp")
int calibrate_softirq_ends(void *unused)
{
	struct cpu *cpu = this_cpu();
	u64 nested_ns, took_ns;
	if (!cpu || !cpu->softirq_ns)
		return 0;
	nested_ns = cpu->taken_ns - cpu->softirq_taken_ns; /* interrupts meanwhile */
	took_ns = bpf_ktime_get_ns() - cpu->softirq_ns;
	if (took_ns > nested_ns)
		cpu->taken_ns += took_ns - nested_ns;
	cpu->softirq_ns = 0;
	return 0;
}

struct watch { /* what calibrate_watch is called with */
	u32 tid, inherits;
	s32 error; /* 0, or which: ESRCH 3, ENOMEM 12 */
	u32 known; /* it was watched before */
};
SEC("syscall")
int calibrate_watch(struct watch *watch)
{
	struct task_struct *p = bpf_task_from_pid(watch->tid);
	struct watched *w;
	watch->error = 3;
	watch->known = 0;
	if (!p)
		return 0;
	w = watched_of(p);
	watch->known = !!w;
	if (!w)
		w = bpf_task_storage_get(&watched, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (w)
		w->inherits = watch->inherits;
	watch->error = w ? 0 : ENOMEM;
	bpf_task_release(p);
	return 0;
}
