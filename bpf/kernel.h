/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the kernel side uses of the kernel: a few fields of a few types and the functions called, by name. libbpf finds
 * the true offsets and prototypes in the running kernel's BTF (CO-RE), so this file is not tied to one version, and
 * nothing of a kernel is needed to build. What a kernel may lack is __weak and tested with bpf_ksym_exists.
 */
#ifndef TIERCE_KERNEL_H
#define TIERCE_KERNEL_H

typedef unsigned char __u8, u8;
typedef unsigned short __u16, u16, __be16, __sum16;
typedef unsigned int __u32, u32, __be32, __wsum;
typedef unsigned long long __u64, u64, __be64;
typedef signed char __s8, s8;
typedef short __s16, s16;
typedef int __s32, s32;
typedef long long __s64, s64;
typedef _Bool bool;
#define true  1
#define false 0

#define BPF_MAP_TYPE_ARRAY	  2
#define BPF_MAP_TYPE_RINGBUF	  27
#define BPF_MAP_TYPE_TASK_STORAGE 29
#define BPF_MAP_TYPE_ARENA	  33

#define BPF_F_NO_PREALLOC	   1
#define BPF_F_MMAPABLE		   (1u << 10)
#define BPF_LOCAL_STORAGE_GET_F_CREATE 1
#define BPF_RB_NO_WAKEUP	   1
#define BPF_F_TIMER_ABS		   1
#define BPF_F_TIMER_CPU_PIN	   2
#define CLOCK_MONOTONIC		   1

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {
	unsigned long bits[1]; /* longer in most kernels */
};
struct sched_ext_entity {
	u32 flags;
	u64 slice;
};
struct thread_info {
	u32 cpu;
};
typedef struct {
	u32 val;
} kuid_t;
struct user_namespace {
	struct user_namespace *parent;
	int level;
	kuid_t owner;
};
struct cred {
	kuid_t uid;
	struct user_namespace *user_ns;
};
struct task_struct {
	struct thread_info thread_info;
	unsigned int flags, __state, policy, rt_priority;
	int on_cpu, on_rq, pid, tgid, prio, static_prio, nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
	char comm[16];
	struct css_set *cgroups;
	const struct cred *real_cred;
};
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long cs;
};
#define regs_are_users(regs) (BPF_CORE_READ(regs, cs) & 3)
#elif defined(__TARGET_ARCH_arm64)
struct pt_regs {
	u64 pstate;
};
#define regs_are_users(regs) (!(BPF_CORE_READ(regs, pstate) & 15))
#else
struct pt_regs {
	unsigned long status;
};
#define regs_are_users(regs) (!(BPF_CORE_READ(regs, status) & 0x100))
#endif
struct bpf_map {
	u32 max_entries;
};
struct scx_init_task_args {
	bool fork;
};
struct scx_exit_task_args {
	bool cancelled;
};
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};
#pragma clang attribute pop

/* Of the operations only the members in use: libbpf matches them by name. */
typedef void operation(void);
struct sched_ext_ops {
	operation *select_cpu, *enqueue, *dequeue, *dispatch, *quiescent, *set_cpumask, *set_weight, *tick, *init_task,
	    *exit_task, *enable, *disable, *cpu_release, *cpu_online, *cpu_offline, *init, *exit;
	u32 dispatch_max_batch;
	u64 flags;
	u32 timeout_ms, exit_dump_len;
	char name[128];
};

struct bpf_timer {
	__u64 __opaque[2];
} __attribute__((aligned(8)));

struct bpf_task_work {
	__u64 __opaque;
} __attribute__((aligned(8)));
typedef int (*bpf_task_work_callback_t)(struct bpf_map *map, void *key, void *value);

struct bpf_iter_num {
	__u64 __opaque[1];
} __attribute__((aligned(8)));
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __attribute__((weak, section(".ksyms")));
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __attribute__((weak, section(".ksyms")));
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __attribute__((weak, section(".ksyms")));

/* The kernel's interface: numbers of enums that have not changed since sched_ext appeared in 6.12. */
#define SCX_DSQ_LOCAL		       0x8000000000000002ull
#define SCX_DSQ_LOCAL_ON	       0xc000000000000000ull
#define SCX_SLICE_INF		       (~0ull)
#define SCX_ENQ_WAKEUP		       1ull
#define SCX_ENQ_HEAD		       (1ull << 16)
#define SCX_ENQ_PREEMPT		       (1ull << 32)
#define SCX_ENQ_LAST		       (1ull << 41)
#define SCX_DEQ_SLEEP		       1ull
#define SCX_KICK_IDLE		       1ull
#define SCX_KICK_PREEMPT	       2ull
#define SCX_TASK_QUEUED		       1u
#define SCX_OPS_ENQ_LAST	       2ull
#define SCX_OPS_ENQ_EXITING	       4ull
#define SCX_OPS_ENQ_MIGRATION_DISABLED 16ull
#define PF_EXITING		       0x00000004u
#define PF_KTHREAD		       0x00200000u
#define PF_NO_SETAFFINITY	       0x04000000u
#define SCHED_FIFO		       1u
#define TASK_DEAD		       0x80u
#define MAX_RT_PRIO		       100
#define ENOENT			       2
#define ENOMEM			       12
#define EBUSY			       16
#define EINVAL			       22

#endif
