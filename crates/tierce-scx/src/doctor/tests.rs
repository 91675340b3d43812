//! Every finding, on a tree of files made for it.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use super::*;
use crate::btf::make;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A machine that is ready, to be changed.
struct Machine {
    root: PathBuf,
    bpf_error: Option<i32>,
}

const STATUS: &str = "Name:\ttierce\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n";

impl Machine {
    fn ready() -> Machine {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("tierce-doctor-{}-{number}", std::process::id()));
        let _ = std::fs::remove_dir_all(&root);
        let machine = Machine { root, bpf_error: None };
        for (path, text) in [
            ("/proc/sys/kernel/osrelease", "7.0.13+deb13-amd64\n"),
            ("/proc/version", "Linux version 7.0.13 (gcc) #1 SMP PREEMPT_DYNAMIC Debian\n"),
            ("/proc/timer_list", "cpu: 0\n  .hres_active    : 1\n"),
            ("/proc/sys/net/core/bpf_jit_enable", "1\n"),
            ("/proc/sys/kernel/ftrace_enabled", "1\n"),
            ("/proc/self/status", STATUS),
            ("/proc/self/uid_map", "         0          0 4294967295\n"),
            ("/proc/self/mounts", "bpf /sys/fs/bpf bpf rw 0 0\n"),
            ("/proc/meminfo", "MemTotal: 900000 kB\nMemAvailable:     800000 kB\n"),
            ("/proc/cmdline", "quiet\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/proc/sys/vm/compaction_proactiveness", "0\n"),
            ("/sys/kernel/sched_ext/state", "disabled\n"),
            ("/sys/kernel/security/lockdown", "[none] integrity confidentiality\n"),
            ("/sys/devices/system/cpu/online", "0-3\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/sys/devices/system/cpu/nohz_full", "(null)\n"),
        ] {
            machine.write(path, text);
        }
        machine.types(&[("scx_bpf_kick", &["cpu", "flags"]), ("scx_bpf_insert", &["p"])]);
        machine
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path.trim_start_matches('/'));
        let _ = std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path));
    }

    fn types(&self, functions: &[(&str, &[&str])]) {
        self.write(
            "/sys/kernel/btf/vmlinux",
            make(functions, &[("sched_ext_ops", &["enqueue", "dispatch", "name"])]),
        );
    }

    fn config(&self, text: &str) {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), Default::default());
        packer.write_all(text.as_bytes()).unwrap();
        self.write("/proc/config.gz", packer.finish().unwrap());
    }

    fn thread(&self, tid: u32, comm: &str, class: u32, nice: i32) {
        let zeros = "0 ".repeat(18);
        self.write(
            &format!("/proc/{tid}/task/{tid}/stat"),
            format!("{tid} ({comm}) S 1 1 1 0 -1 0 0 0 0 0 1 2 3 4 20 {nice} 1 0 55 {zeros}{class} 0\n"),
        );
        let status =
            format!("Tgid:\t{tid}\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCpus_allowed:\tf\n");
        self.write(&format!("/proc/{tid}/task/{tid}/status"), status);
        self.write(&format!("/proc/{tid}/task/{tid}/comm"), comm);
    }

    fn examine(&self) -> Diagnosis {
        examine(&Host::at(&self.root, self.bpf_error), &needs())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}

fn needs() -> Needs {
    let function = |name: &str, parameters, optional| Function { name: name.into(), parameters, optional };
    Needs {
        functions: vec![
            function("scx_bpf_insert", 1, false),
            function("scx_bpf_kick", 2, false),
            function("scx_bpf_slice", 2, true),
        ],
        operations: vec!["enqueue".into(), "dispatch".into()],
    }
}

#[test]
fn a_machine_that_is_ready() {
    let machine = Machine::ready();
    let diagnosis = machine.examine();
    assert!(diagnosis.ready(), "{diagnosis}");
    assert_eq!(diagnosis.of(State::Warning), []);
    assert!(diagnosis.to_string().ends_with("ready: `tierce run` can enforce a plan here\n"));
    let json = diagnosis.to_json();
    assert_eq!((&json["version"], &json["ready"]), (&1.into(), &true.into()));
    assert_eq!(json["checks"][0]["check"], "kernel");
    assert_eq!(json["checks"][0]["state"], "found");
}

type Change = Box<dyn Fn(&mut Machine)>;

fn write(path: &'static str, text: &'static str) -> Change {
    Box::new(move |machine| machine.write(path, text))
}

fn remove(path: &'static str) -> Change {
    Box::new(move |machine| machine.remove(path))
}

fn types(functions: &'static [(&'static str, &'static [&'static str])]) -> Change {
    Box::new(move |machine| machine.types(functions))
}

fn old(release: &'static str, config: &'static str) -> Change {
    Box::new(move |machine| {
        machine.remove("/sys/kernel/sched_ext");
        machine.write("/proc/sys/kernel/osrelease", release);
        if !config.is_empty() {
            machine.write(&format!("/boot/config-{release}"), config);
        }
    })
}

fn bpf_fails(error: i32, status: &'static str) -> Change {
    Box::new(move |machine| {
        machine.bpf_error = Some(error);
        if !status.is_empty() {
            machine.write("/proc/self/status", status);
        }
    })
}

#[test]
fn every_refusal() {
    let cases: Vec<(&str, Change, &str, &str)> = vec![
        ("sched_ext", old("6.1.0", ""), "not part of this kernel: it came with 6.12", "boot a kernel 6.18 or 7.0"),
        (
            "sched_ext",
            old("6.18.2", "# CONFIG_SCHED_CLASS_EXT is not set\n"),
            "this kernel was built without it: /boot/config-6.18.2 has no CONFIG_SCHED_CLASS_EXT=y",
            "tierce vm -- tierce run PLAN",
        ),
        (
            "sched_ext",
            old("6.18.2", "CONFIG_SCHED_CLASS_EXT=y\n"),
            "no /sys/kernel/sched_ext, though /boot/config-6.18.2 has CONFIG_SCHED_CLASS_EXT=y",
            "mount sysfs",
        ),
        ("sched_ext", old("6.18.2", ""), "probably built without it", "boot a kernel"),
        (
            "other scheduler",
            Box::new(|machine| {
                machine.write("/sys/kernel/sched_ext/state", "enabled\n");
                machine.write(&attached_ops(), "lavd_1.0\n");
            }),
            "lavd_1.0 is attached (state: enabled)",
            "end it first",
        ),
        ("other scheduler", write("/sys/kernel/sched_ext/state", "enabling\n"), "one is attached (state: enabling)", "end"),
        (
            "other scheduler",
            Box::new(|machine| {
                machine.write("/sys/kernel/sched_ext/state", "enabled\n");
                machine.write(&attached_ops(), "tierce\n");
            }),
            "a plan is in force already",
            "end that `tierce run` first",
        ),
        ("type information", remove("/sys/kernel/btf/vmlinux"), "built without CONFIG_DEBUG_INFO_BTF=y", "boot a kernel"),
        ("type information", write("/sys/kernel/btf/vmlinux", "no BTF at all"), "does not begin like BTF", "boot a kernel"),
        (
            "operations",
            Box::new(|machine| {
                let functions: &[(&str, &[&str])] = &[("scx_bpf_kick", &["cpu", "flags"]), ("scx_bpf_insert", &["p"])];
                machine.write("/sys/kernel/btf/vmlinux", make(functions, &[("sched_ext_ops", &["enqueue"])]));
            }),
            "this kernel's sched_ext has no `dispatch`",
            "boot a kernel",
        ),
        ("kernel functions", types(&[("scx_bpf_insert", &["p"])]), "this kernel lacks `scx_bpf_kick`", "boot a kernel"),
        (
            "kernel functions",
            types(&[("scx_bpf_kick", &["cpu", "flags", "aux"]), ("scx_bpf_insert", &["p"]), ("scx_bpf_other", &["aux"]), ("scx_bpf_slice", &["p", "n"])]),
            "`scx_bpf_kick` is defective: its type information has lost the mark `bpf_kfunc` and so keeps the hidden argument \
             `aux`; the kernel refuses every program with a call (2 functions of sched_ext are so)",
            "Debian's 7.1 and 7.2",
        ),
        (
            "kernel functions",
            types(&[("scx_bpf_kick", &["cpu", "flags", "aux"]), ("scx_bpf_insert", &["p", "aux"])]),
            "`scx_bpf_insert` and `scx_bpf_kick` are defective: their",
            "tierce vm",
        ),
        (
            "kernel functions",
            types(&[("scx_bpf_kick", &["cpu"]), ("scx_bpf_insert", &["p"])]),
            "other parameters than tierce was built for: `scx_bpf_kick`",
            "a tierce as new as this kernel",
        ),
        ("preemption", write("/proc/version", "Linux 7.0 #1 SMP PREEMPT_RT Debian\n"), "PREEMPT_RT: its verifier", "-rt"),
        ("preemption", write("/sys/kernel/realtime", "1\n"), "PREEMPT_RT", "boot a kernel without"),
        (
            "timers",
            write("/proc/timer_list", "  .hres_active    : 1\n  .hres_active    : 0\n"),
            "high-resolution timers are not active",
            "highres=off",
        ),
        (
            "timers",
            Box::new(|machine| {
                machine.remove("/proc/timer_list");
                machine.config("CONFIG_BPF_JIT=y\n");
            }),
            "built without high-resolution timers",
            "CONFIG_HIGH_RES_TIMERS=y",
        ),
        ("BPF compiler", write("/proc/sys/net/core/bpf_jit_enable", "0\n"), "switched off", "net.core.bpf_jit_enable=1"),
        (
            "BPF compiler",
            Box::new(|machine| {
                machine.remove("/proc/sys/net/core/bpf_jit_enable");
                machine.config("CONFIG_HIGH_RES_TIMERS=y\n");
            }),
            "built without CONFIG_BPF_JIT=y",
            "boot a kernel",
        ),
        (
            "function tracing",
            Box::new(|machine| {
                machine.remove("/proc/sys/kernel/ftrace_enabled");
                machine.config("CONFIG_SCHED_CLASS_EXT=y\n");
            }),
            "built without CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y",
            "boot a kernel",
        ),
        ("rights", write("/proc/self/status", "CapEff:\t0000000000000000\n"), "no CAP_BPF and no CAP_PERFMON", "root"),
        ("rights", write("/proc/self/status", "CapEff:\t0000008000000000\n"), "no CAP_PERFMON", "root"),
        ("rights", write("/proc/self/status", "Name:\tx\n"), "not known", "mount proc"),
        ("rights", write("/proc/self/uid_map", "0 1000 1\n"), "in a user namespace", "outside of the container"),
        ("BPF", write("/sys/kernel/security/lockdown", "none integrity [confidentiality]\n"), "locked down", "lockdown"),
        ("BPF", bpf_fails(libc::ENOSYS, ""), "without CONFIG_BPF_SYSCALL=y", "boot a kernel"),
        ("BPF", bpf_fails(libc::EPERM, ""), "the system call bpf is forbidden: Operation not permitted", "root"),
        (
            "BPF",
            Box::new(|machine| {
                machine.bpf_error = Some(libc::EPERM);
                machine.write("/proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
            }),
            "(kernel.unprivileged_bpf_disabled = 2: only for root)",
            "root",
        ),
        (
            "BPF",
            bpf_fails(libc::EPERM, "CapEff:\t000001ffffffffff\nSeccomp:\t2\n"),
            "a seccomp filter forbids",
            "container",
        ),
        ("BPF", bpf_fails(libc::ENOMEM, ""), "Cannot allocate memory", "more memory"),
        ("BPF", bpf_fails(libc::EINVAL, ""), "the system call bpf fails: Invalid argument", "boot a kernel"),
        ("CPUs", write("/sys/devices/system/cpu/online", "0-599\n"), "600 online, up to number 599", "maxcpus=512"),
        ("CPUs", write("/sys/devices/system/cpu/online", "0,2-3\n"), "CPU 1 is offline", "cpu1/online"),
        (
            "isolated CPUs",
            Box::new(|machine| {
                machine.write("/sys/devices/system/cpu/isolated", "2-3\n");
                machine.write("/proc/cmdline", "quiet isolcpus=2-3\n");
            }),
            "CPUs 2-3 (isolcpus)",
            "boot without isolcpus",
        ),
    ];
    for (what, change, found, help) in cases {
        let mut machine = Machine::ready();
        change(&mut machine);
        let diagnosis = machine.examine();
        let missing = diagnosis.of(State::Missing);
        assert_eq!(missing.len(), 1, "{what}, {found}:\n{diagnosis}");
        assert_eq!(missing[0].what, what);
        assert!(missing[0].found.contains(found), "{found}:\n{diagnosis}");
        assert!(missing[0].help.as_deref().unwrap_or_default().contains(help), "{help}:\n{diagnosis}");
        assert!(!diagnosis.ready() && diagnosis.to_string().contains("not ready: what ✗ marks"));
        let refusal = Refusal(missing).to_string();
        assert!(refusal.starts_with("this machine cannot enforce a plan:\n✗ "), "{refusal}");
    }
}

#[test]
fn every_warning() {
    let cases: Vec<(&str, Change, &str)> = vec![
        (
            "kernel",
            write("/proc/sys/kernel/osrelease", "8.3.0\n"),
            "8.3.0; plans were enforced on 6.18 and 7.0 so far",
        ),
        ("timers", remove("/proc/timer_list"), "not known whether high-resolution timers are active"),
        (
            "rights",
            write("/proc/self/status", "CapEff:\t0000000000200000\n"),
            "no CAP_SYS_NICE (threads move to their entries only when they next block) and no CAP_SYS_PTRACE",
        ),
        (
            "function tracing",
            write("/proc/sys/kernel/ftrace_enabled", "0\n"),
            "a thread that changes its name keeps its place",
        ),
        ("memory", write("/proc/meminfo", "MemAvailable:     50000 kB\n"), "48 MB available"),
        ("CPUs", remove("/sys/devices/system/cpu/online"), "not known which are online"),
    ];
    for (what, change, found) in cases {
        let mut machine = Machine::ready();
        change(&mut machine);
        let diagnosis = machine.examine();
        assert!(diagnosis.ready(), "{what}:\n{diagnosis}");
        let warnings = diagnosis.of(State::Warning);
        assert_eq!(warnings.len(), 1, "{what}:\n{diagnosis}");
        assert!(warnings[0].what == what && warnings[0].found.contains(found), "{found}:\n{diagnosis}");
    }
}

#[test]
fn what_is_fine_though_it_looks_odd() {
    let machine = Machine::ready();
    machine.types(&[
        ("scx_bpf_kick", &["cpu", "flags"]),
        ("scx_bpf_kick_impl", &["cpu", "flags", "aux"]),
        ("scx_bpf_insert", &["p"]),
        ("scx_bpf_slice", &["p", "slice", "aux"]), // optional, and defective
    ]);
    machine.write("/proc/self/status", "CapEff:\t000000c000880000\n"); // not all of root's, but enough
    machine.remove("/proc/self/mounts");
    let diagnosis = machine.examine();
    assert!(diagnosis.ready() && diagnosis.of(State::Warning).is_empty(), "{diagnosis}");
    machine.remove("/proc/timer_list");
    machine.config("CONFIG_HIGH_RES_TIMERS=y\nCONFIG_BPF_JIT=y\n");
    let diagnosis = machine.examine();
    assert!(diagnosis.ready() && diagnosis.of(State::Warning).is_empty(), "{diagnosis}");
}

#[test]
fn what_is_around() {
    let machine = Machine::ready();
    machine.thread(11, "irq/9", 1, 0);
    machine.thread(12, "pipewire", 2, -11);
    machine.thread(13, "batch", 3, 0);
    machine.thread(14, "miner", 5, 19);
    machine.write("/sys/kernel/debug/sched/ext_server/cpu0/runtime", "50000000\n");
    machine.write("/sys/kernel/debug/sched/ext_server/cpu0/period", "1000000000\n");
    machine.write("/sys/fs/cgroup/a/cpu.weight", "100\n");
    machine.write("/sys/fs/cgroup/a/b/cpu.weight", "300\n");
    machine.write("/sys/fs/cgroup/a/cpu.max", "max 100000\n");
    machine.write("/sys/fs/cgroup/c/cpu.max", "50000 100000\n");
    machine.write("/sys/fs/cgroup/c/cpu.uclamp.max", "max\n");
    machine.write("/sys/fs/cgroup/c/cpu.uclamp.min", "10.00\n");
    machine.write("/sys/devices/system/cpu/nohz_full", "3\n");
    machine.write("/proc/sys/kernel/sched_autogroup_enabled", "1\n");
    machine.write("/sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
    machine.write("/proc/sys/vm/compaction_proactiveness", "20\n");
    machine.write("/proc/sys/kernel/sched_util_clamp_min", "200\n");
    let diagnosis = machine.examine();
    let text = diagnosis.to_string();
    for expected in [
        "run first, which is stolen time: irq/9 (11, FIFO), pipewire (12, RR)",
        "50ms in 1s",
        "cpu.weight, set in a/b",
        "cpu.max, set in c",
        "cpu.uclamp.min, set in c",
        "SCHED_BATCH, of batch (13)",
        "SCHED_IDLE, of miner (14)",
        "nice, of pipewire (12), miner (14); unless",
        "autogroup",
        "uclamp (kernel.sched_util_clamp_min)",
        "CPUs 3 have no tick",
        "a task may wait for khugepaged",
        "a task may wait for kcompactd",
        "sysctl vm.compaction_proactiveness=0",
        "waiting for 30 s",
    ] {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert!(diagnosis.ready() && !text.contains("cpu.uclamp.max") && !text.contains("a, "), "{text}");

    let quiet = Machine::ready();
    quiet.write("/sys/devices/system/cpu/isolated", "2\n");
    let text = quiet.examine().to_string();
    for expected in
        ["no thread of SCHED_FIFO", "not known: /sys/kernel/debug/sched", "CPUs 2, by cpuset partitions"]
    {
        assert!(text.contains(expected), "{expected}:\n{text}");
    }
    assert!(!text.contains("ignored"), "{text}");
    quiet.write("/sys/kernel/debug/sched/features", "");
    assert!(quiet.examine().to_string().contains("no ext_server"));
}

#[test]
fn how_many_cpus() {
    let machine = Machine::ready();
    let host = Host::at(&machine.root, None);
    assert_eq!(host.cpus(), Some(4));
    for text in ["0,2-3\n", "1\n", "\n", "x\n"] {
        machine.write("/sys/devices/system/cpu/online", text);
        assert_eq!(host.cpus(), None, "{text}");
    }
}

#[test]
fn lists_of_cpus_and_names() {
    for (text, expected) in [
        ("0-2,5", Some(vec![0, 1, 2, 5])),
        ("7", Some(vec![7])),
        ("", Some(vec![])),
        ("0-x", None),
        ("0-99999999", None),
    ] {
        assert_eq!(cpu_list(text), expected, "{text}");
    }
    assert_eq!(list(&["a"]), "`a`");
    assert_eq!(list(&["a", "b", "c"]), "`a`, `b` and `c`");
}

#[test]
fn what_the_object_needs() {
    let needs = Needs::of_the_object().unwrap();
    let function = |name: &str| needs.functions.iter().find(|function| function.name == name).cloned();
    let kick = function("scx_bpf_kick_cpu").expect("it kicks CPUs");
    assert_eq!((kick.parameters, kick.optional), (2, false));
    assert!(function("scx_bpf_task_set_slice").is_some_and(|function| function.optional));
    assert!(needs.operations.iter().any(|name| name == "dispatch"));
    assert!(Needs::read(b"nothing").is_err());
}

#[test]
fn this_machine() {
    assert!(Path::new("/proc/self").exists());
    let diagnosis = examine(&Host::here(), &Needs::of_the_object().unwrap());
    assert_eq!(diagnosis.ready(), refuse().is_ok(), "{diagnosis}");
}
