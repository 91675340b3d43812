//! Can this machine enforce a plan, and if not, what would help?
//!
//! Everything is read from files below a root folder, so that every finding can be tested on a tree made for it; what
//! the BPF object needs of the kernel is read from the object itself.
//!
//! The defect that some kernel builds have (Debian's 7.1 and 7.2): since 7.1 most functions of sched_ext take a hidden
//! argument `aux`, which the verifier supplies. The build turns each function that is marked as callable (tag `bpf_kfunc`)
//! into two, `scx_bpf_kick_cpu(cpu, flags)` for programs and `scx_bpf_kick_cpu_impl(cpu, flags, aux)` for the verifier.
//! In a defective build some have lost the mark: they stay `scx_bpf_kick_cpu(cpu, flags, aux)`, without a twin, and no
//! program that calls one can be loaded.

mod around;
mod check;
mod machine;

pub use check::{Check, State};
pub use machine::{cpu_list, Host};

use crate::btf::Btf;
use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol};
use std::fmt;

/// All checks of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// In the order of looking.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// Whether a plan can be enforced.
    pub fn ready(&self) -> bool {
        self.checks.iter().all(|check| check.state != State::Missing)
    }

    /// For programs: `version` 1, `ready`, `checks[]` with `check`, `state`, `found`, `help` (or null).
    pub fn to_json(&self) -> serde_json::Value {
        let check = |check: &Check| {
            serde_json::json!({
                "check": check.what, "state": check.state.name(), "found": check.found, "help": check.help,
            })
        };
        let checks: Vec<_> = self.checks.iter().map(check).collect();
        serde_json::json!({ "version": 1, "ready": self.ready(), "checks": checks })
    }

    fn of(&self, state: State) -> Vec<Check> {
        self.checks.iter().filter(|check| check.state == state).cloned().collect()
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for check in &self.checks {
            writeln!(f, "{check}")?;
        }
        match self.of(State::Missing).len() {
            0 => writeln!(f, "ready: `tierce run` can enforce a plan here"),
            1 => writeln!(f, "not ready: what ✗ marks keeps a plan from being enforced here"),
            count => writeln!(f, "not ready: {count} things, marked ✗, keep a plan from being enforced here"),
        }
    }
}

/// Why no plan can be enforced here: every check that came out [`State::Missing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(pub Vec<Check>);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this machine cannot enforce a plan:")?;
        self.0.iter().try_for_each(|check| write!(f, "\n{check}"))
    }
}

impl std::error::Error for Refusal {}

/// A check that came out [`State::Warning`].
pub type Warning = Check;

/// Before loading: what keeps a plan from being enforced on this machine, in the words of `tierce doctor`; else what
/// should be said.
pub fn refuse() -> Result<Vec<Warning>, Refusal> {
    let needs = match Needs::of_the_object() {
        Ok(needs) => needs,
        Err(error) => {
            return Err(Refusal(vec![Check::missing(FUNCTIONS, format!("{error:#}"), "build tierce anew")]))
        }
    };
    let diagnosis = Diagnosis { checks: kernel_side(&Host::here(), &needs) };
    match diagnosis.ready() {
        true => Ok(diagnosis.of(State::Warning)),
        false => Err(Refusal(diagnosis.of(State::Missing))),
    }
}

/// Look at everything.
pub fn examine(host: &Host, needs: &Needs) -> Diagnosis {
    let mut checks = kernel_side(host, needs);
    checks.extend(around::look(host));
    Diagnosis { checks }
}

/// A function of the kernel that the BPF object calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Number of its parameters.
    pub parameters: usize,
    /// The object can do without.
    pub optional: bool,
}

/// What the BPF object needs of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Functions that it calls, by name.
    pub functions: Vec<Function>,
    /// Operations of sched_ext that it has.
    pub operations: Vec<String>,
}

impl Needs {
    /// Those of the embedded BPF object.
    pub fn of_the_object() -> Result<Needs> {
        Needs::read(&crate::object::image()?).context("the embedded BPF object")
    }

    fn read(image: &[u8]) -> Result<Needs> {
        let file = object::File::parse(image)?;
        let section = file.section_by_name(".BTF").context("no section .BTF")?;
        let btf = Btf::parse(section.data()?).map_err(anyhow::Error::msg)?;
        let optional = |name: &str| {
            let symbol = file.symbols().find(|symbol| symbol.is_undefined() && symbol.name() == Ok(name));
            symbol.is_some_and(|symbol| symbol.is_weak())
        };
        let mut functions: Vec<Function> = btf
            .externs()
            .iter()
            .map(|name| Function {
                name: name.clone(),
                parameters: btf.parameters(name).map_or(0, <[String]>::len),
                optional: optional(name),
            })
            .collect();
        functions.sort_by(|a, b| a.name.cmp(&b.name));
        let operations = btf.operations().unwrap_or_default().to_vec();
        Ok(Needs { functions, operations })
    }
}

const FUNCTIONS: &str = "kernel functions";

/// Series that plans were enforced on.
const TRIED: [(u32, u32); 2] = [(6, 18), (7, 0)];

const OTHER_KERNEL: &str = "boot a kernel 6.18 or 7.0 with CONFIG_SCHED_CLASS_EXT=y, CONFIG_BPF_JIT=y and CONFIG_DEBUG_INFO_BTF=y \
                            (Debian's are); or try the plan on a throw-away machine: tierce vm -- tierce run PLAN";

fn kernel_side(host: &Host, needs: &Needs) -> Vec<Check> {
    let mut checks = vec![kernel(host), sched_ext(host), scheduler(host)];
    checks.extend(types(host, needs));
    checks.extend([
        preemption(host),
        timers(host),
        jit(host),
        tracing(host),
        rights(host),
        bpf(host),
        bpffs(host),
        memory(host),
    ]);
    checks.extend([huge_pages(host), compaction(host), cpus(host), isolation(host)]);
    checks
}

fn kernel(host: &Host) -> Check {
    let release = host.release();
    match host.version() {
        Some(version) if TRIED.contains(&version) => Check::found("kernel", release),
        _ => Check::new(
            "kernel",
            State::Warning,
            format!("{release}; plans were enforced on 6.18 and 7.0 so far"),
        ),
    }
}

fn sched_ext(host: &Host) -> Check {
    const WHAT: &str = "sched_ext";
    if host.exists("/sys/kernel/sched_ext") {
        return Check::found(WHAT, "part of this kernel");
    }
    let old = host.version().is_some_and(|version| version < (6, 12));
    let found = match (host.config(), host.option("CONFIG_SCHED_CLASS_EXT")) {
        _ if old => "not part of this kernel: it came with 6.12".to_string(),
        (Some((path, _)), Some(true)) => {
            let found = format!("no /sys/kernel/sched_ext, though {path} has CONFIG_SCHED_CLASS_EXT=y");
            return Check::missing(WHAT, found, "mount sysfs on /sys; in a container, run tierce outside");
        }
        (Some((path, _)), _) => {
            format!("this kernel was built without it: {path} has no CONFIG_SCHED_CLASS_EXT=y")
        }
        _ => "no /sys/kernel/sched_ext; this kernel was probably built without it".to_string(),
    };
    Check::missing(WHAT, found, OTHER_KERNEL)
}

/// Where the kernel names the scheduler that is attached.
fn attached_ops() -> String {
    ["/sys/kernel/sched_ext", "root", "ops"].join("/")
}

fn scheduler(host: &Host) -> Check {
    const WHAT: &str = "other scheduler";
    let state = host.text("/sys/kernel/sched_ext/state").unwrap_or_else(|| "disabled".into());
    let name = host.text(&attached_ops()).filter(|name| !name.is_empty());
    match (state.as_str(), name) {
        ("disabled", _) => Check::found(WHAT, "none attached"),
        (_, Some(name)) if name == "tierce" => {
            Check::missing(WHAT, "a plan is in force already", "end that `tierce run` first")
        }
        (state, name) => {
            let name = name.unwrap_or_else(|| "one".into());
            let help = "end it first; it may be a service: systemctl stop scx, scx_loader or scxctl stop";
            Check::missing(WHAT, format!("{name} is attached (state: {state})"), help)
        }
    }
}

/// What BTF says, in one or several checks.
fn types(host: &Host, needs: &Needs) -> Vec<Check> {
    const WHAT: &str = "type information";
    const PATH: &str = "/sys/kernel/btf/vmlinux";
    let bytes = match std::fs::read(host.path(PATH)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let found = format!("no {PATH}: this kernel was built without CONFIG_DEBUG_INFO_BTF=y");
            return vec![Check::missing(WHAT, found, OTHER_KERNEL)];
        }
        Err(error) => {
            return vec![Check::missing(WHAT, format!("{PATH}: {error}"), "make it readable: it is 0444")]
        }
    };
    let btf = match Btf::parse(&bytes) {
        Ok(btf) => btf,
        Err(error) => return vec![Check::missing(WHAT, format!("{PATH} {error}"), OTHER_KERNEL)],
    };
    let mut checks = vec![Check::found(WHAT, PATH)];
    // Without sched_ext there is nothing to say about its parts.
    if let Some(operations) = btf.operations() {
        let lacking: Vec<&str> =
            needs.operations.iter().filter(|name| !operations.contains(name)).map(String::as_str).collect();
        if !lacking.is_empty() {
            let found = format!("this kernel's sched_ext has no {}", list(&lacking));
            checks.push(Check::missing("operations", found, OTHER_KERNEL));
        }
        checks.push(functions(&btf, needs));
    }
    checks
}

fn functions(btf: &Btf, needs: &Needs) -> Check {
    let (mut absent, mut defective, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for function in needs.functions.iter().filter(|function| !function.optional) {
        let name = function.name.as_str();
        match btf.parameters(name) {
            None => absent.push(name),
            Some(_) if is_defective(btf, name) => defective.push(name),
            Some(parameters) if parameters.len() != function.parameters => changed.push(name),
            Some(_) => {}
        }
    }
    if !defective.is_empty() {
        let all = btf.functions().filter(|name| is_defective(btf, name)).count();
        let (are, their) = if defective.len() == 1 { ("is", "its") } else { ("are", "their") };
        let found = format!(
            "{} {are} defective: {their} type information has lost the mark `bpf_kfunc` and so keeps the hidden argument \
             `aux`; the kernel refuses every program with a call ({all} functions of sched_ext are so)",
            list(&defective)
        );
        let help = "a fault of this kernel's build, known of Debian's 7.1 and 7.2; Debian's 6.18 and 7.0 are sound: boot one, or \
                    try the plan on a throw-away machine: tierce vm -- tierce run PLAN";
        return Check::missing(FUNCTIONS, found, help);
    }
    if !absent.is_empty() {
        return Check::missing(FUNCTIONS, format!("this kernel lacks {}", list(&absent)), OTHER_KERNEL);
    }
    if !changed.is_empty() {
        let found = format!("other parameters than tierce was built for: {}", list(&changed));
        return Check::missing(FUNCTIONS, found, "a tierce as new as this kernel, or a kernel 6.18 or 7.0");
    }
    Check::found(
        FUNCTIONS,
        format!("all {} there and sound", needs.functions.iter().filter(|f| !f.optional).count()),
    )
}

/// A function of sched_ext for programs that has kept its hidden argument: see the top of this file.
fn is_defective(btf: &Btf, name: &str) -> bool {
    let ours = name.starts_with("scx_bpf_") || name.starts_with("bpf_iter_scx_");
    let keeps =
        btf.parameters(name).is_some_and(|parameters| parameters.last().is_some_and(|last| last == "aux"));
    let twin = || btf.parameters(&format!("{name}_impl")).is_some();
    ours && keeps && !name.ends_with("_impl") && !btf.may_be_called(name) && !twin()
}

fn preemption(host: &Host) -> Check {
    const WHAT: &str = "preemption";
    let version = host.text("/proc/version").unwrap_or_default();
    if version.contains("PREEMPT_RT") || host.number("/sys/kernel/realtime") == Some(1) {
        let found = "PREEMPT_RT: its verifier refuses BPF timers, which end budgets";
        return Check::missing(
            WHAT,
            found,
            "boot a kernel without PREEMPT_RT (on Debian, one without `-rt` in its name)",
        );
    }
    Check::found(WHAT, "not PREEMPT_RT")
}

fn timers(host: &Host) -> Check {
    const WHAT: &str = "timers";
    const HELP: &str = "budgets would end with the tick; boot without highres=off, on a kernel with CONFIG_HIGH_RES_TIMERS=y";
    let list = host.text("/proc/timer_list").unwrap_or_default();
    let active: Vec<&str> = list
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".hres_active")?.trim().strip_prefix(':').map(str::trim))
        .collect();
    if active.iter().any(|active| *active != "1") {
        return Check::missing(WHAT, "high-resolution timers are not active", HELP);
    }
    if !active.is_empty() {
        return Check::found(WHAT, "high-resolution");
    }
    match host.option("CONFIG_HIGH_RES_TIMERS") {
        Some(true) => {
            Check::found(WHAT, "high-resolution timers are built in; root can see whether they are active")
        }
        Some(false) => Check::missing(WHAT, "this kernel was built without high-resolution timers", HELP),
        None => Check::new(WHAT, State::Warning, "not known whether high-resolution timers are active")
            .help("run as root"),
    }
}

fn jit(host: &Host) -> Check {
    const WHAT: &str = "BPF compiler";
    const PATH: &str = "/proc/sys/net/core/bpf_jit_enable";
    match (host.number(PATH), host.option("CONFIG_BPF_JIT")) {
        (Some(0), _) => Check::missing(
            WHAT,
            "switched off (net.core.bpf_jit_enable = 0)",
            "sysctl net.core.bpf_jit_enable=1",
        ),
        (Some(_), _) => Check::found(WHAT, "on"),
        (None, Some(false)) => {
            Check::missing(WHAT, "this kernel was built without CONFIG_BPF_JIT=y", OTHER_KERNEL)
        }
        (None, _) => Check::found(WHAT, "not seen to be off"),
    }
}

/// A program of ours hangs on the function that changes a thread's name.
fn tracing(host: &Host) -> Check {
    const WHAT: &str = "function tracing";
    let option = "CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS";
    match (host.number("/proc/sys/kernel/ftrace_enabled"), host.option(option)) {
        (Some(0), _) => {
            let found =
                "switched off (kernel.ftrace_enabled = 0): a thread that changes its name keeps its place";
            Check::new(WHAT, State::Warning, found).help("sysctl kernel.ftrace_enabled=1")
        }
        (Some(_), _) => Check::found(WHAT, "on"),
        (None, Some(false)) => {
            Check::missing(WHAT, format!("this kernel was built without {option}=y"), OTHER_KERNEL)
        }
        (None, _) => Check::found(WHAT, "not seen to be off"),
    }
}

const CAP_SYS_PTRACE: u64 = 1 << 19;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_SYS_NICE: u64 = 1 << 23;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

fn rights(host: &Host) -> Check {
    const WHAT: &str = "rights";
    let Some(held) = host.status("CapEff:").and_then(|text| u64::from_str_radix(&text, 16).ok()) else {
        return Check::missing(WHAT, "not known: /proc/self/status has no CapEff", "mount proc on /proc");
    };
    let has = |capability: u64| held & capability != 0;
    if !has(CAP_SYS_ADMIN) {
        let lacking: Vec<&str> = [(CAP_BPF, "CAP_BPF"), (CAP_PERFMON, "CAP_PERFMON")]
            .into_iter()
            .filter(|(capability, _)| !has(*capability))
            .map(|(_, name)| name)
            .collect();
        if !lacking.is_empty() {
            let found = format!("this process has no {}", lacking.join(" and no "));
            return Check::missing(WHAT, found, "run as root: sudo tierce …");
        }
    }
    // In a user namespace of its own, root is not root of the machine.
    let map = host.text("/proc/self/uid_map").unwrap_or_default();
    if !map.is_empty() && map.split_whitespace().collect::<Vec<_>>() != ["0", "0", "4294967295"] {
        let found = "this process is in a user namespace: its rights are not those of the machine";
        return Check::missing(WHAT, found, "run as root of the machine, outside of the container");
    }
    let lacking: Vec<&str> = [
        (CAP_SYS_NICE, "CAP_SYS_NICE (threads move to their entries only when they next block)"),
        (CAP_SYS_PTRACE, "CAP_SYS_PTRACE (`match = { exe = … }` sees no programs of other users)"),
    ]
    .into_iter()
    .filter(|(capability, _)| !has(*capability))
    .map(|(_, name)| name)
    .collect();
    match lacking.is_empty() {
        true => Check::found(WHAT, "enough"),
        false => {
            Check::new(WHAT, State::Warning, format!("this process has no {}", lacking.join(" and no ")))
                .help("run as root: sudo tierce …")
        }
    }
}

fn bpf(host: &Host) -> Check {
    const WHAT: &str = "BPF";
    let lockdown = host.text("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        let found = "the kernel is locked down (confidentiality): BPF programs may not read its memory";
        return Check::missing(
            WHAT,
            found,
            "boot without lockdown=confidentiality; lockdown=integrity is fine",
        );
    }
    let Some(error) = host.bpf_error else { return Check::found(WHAT, "the system call works") };
    let text = std::io::Error::from_raw_os_error(error);
    match error {
        libc::ENOSYS => {
            Check::missing(WHAT, "this kernel was built without CONFIG_BPF_SYSCALL=y", OTHER_KERNEL)
        }
        libc::EPERM if host.status("Seccomp:").is_some_and(|mode| mode != "0") => {
            let found = "a seccomp filter forbids the system call bpf (containers have one)";
            Check::missing(WHAT, found, "run outside of the container, or allow bpf in its filter")
        }
        libc::EPERM | libc::EACCES => {
            let unprivileged = host.number("/proc/sys/kernel/unprivileged_bpf_disabled").unwrap_or(0);
            let why = match unprivileged {
                0 => String::new(),
                value => format!(" (kernel.unprivileged_bpf_disabled = {value}: only for root)"),
            };
            Check::missing(
                WHAT,
                format!("the system call bpf is forbidden: {text}{why}"),
                "run as root: sudo tierce …",
            )
        }
        libc::ENOMEM => Check::missing(
            WHAT,
            format!("the system call bpf fails: {text}"),
            "more memory, or a larger limit of it",
        ),
        _ => Check::missing(WHAT, format!("the system call bpf fails: {text}"), OTHER_KERNEL),
    }
}

/// Nothing is pinned: what a plan has in the kernel goes with the process that put it there.
fn bpffs(host: &Host) -> Check {
    let mounts = host.text("/proc/self/mounts").unwrap_or_default();
    let there = mounts.lines().any(|line| line.split_whitespace().nth(2) == Some("bpf"));
    let state = if there { "mounted" } else { "not mounted" };
    Check::found("BPF file system", format!("{state}; not needed, nothing is left there"))
}

/// The object's state, about 20 MB, belongs to the process; since 5.11 the limit of locked memory does not count.
fn memory(host: &Host) -> Check {
    const WHAT: &str = "memory";
    const LEAST_MB: u64 = 64;
    let text = host.text("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_mb =
        line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map(|kb| kb / 1024);
    match available_mb {
        Some(mb) if mb < LEAST_MB => Check::new(
            WHAT,
            State::Warning,
            format!("{mb} MB available; a plan needs about 20 MB in the kernel"),
        ),
        Some(mb) => {
            Check::found(WHAT, format!("{mb} MB available; the limit of locked memory does not count"))
        }
        None => Check::found(WHAT, "not known"),
    }
}

/// khugepaged copies a process's pages into huge ones, and who touches that memory meanwhile sleeps until it is done; as a
/// thread of the default node it may take long.
fn huge_pages(host: &Host) -> Check {
    const WHAT: &str = "huge pages";
    let modes = host.text("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    if modes.contains("[always]") {
        let found =
            "of their own accord, in every process: a task may wait for khugepaged, which has no budget";
        return Check::new(WHAT, State::Note, found)
            .help("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled");
    }
    Check::found(WHAT, "only where a program asks for them, or none")
}

/// kcompactd moves pages so that free ones are side by side. Who touches a page meanwhile sleeps until it is done, as beside khugepaged.
fn compaction(host: &Host) -> Check {
    const WHAT: &str = "compaction";
    match host.number("/proc/sys/vm/compaction_proactiveness") {
        None | Some(0) => Check::found(WHAT, "pages are moved only where memory is short"),
        Some(_) => Check::new(
            WHAT,
            State::Note,
            "pages are moved of the kernel's own accord: a task may wait for kcompactd, which has no budget",
        )
        .help("sysctl vm.compaction_proactiveness=0"),
    }
}

/// Most CPUs of the kernel build.
const CPUS: u32 = tierce_policy::KERNEL.cpus;

fn cpus(host: &Host) -> Check {
    const WHAT: &str = "CPUs";
    let online = host.text("/sys/devices/system/cpu/online").and_then(|text| cpu_list(&text));
    let Some(online) = online else { return Check::new(WHAT, State::Warning, "not known which are online") };
    let count = online.len() as u32;
    if count > CPUS || online.last().is_some_and(|last| *last >= CPUS) {
        let found = format!(
            "{count} online, up to number {}; a plan rules at most {CPUS}",
            online.last().unwrap_or(&0)
        );
        return Check::missing(WHAT, found, format!("boot with maxcpus={CPUS}, or set CPUs offline"));
    }
    if let Some(hole) = online.iter().zip(0..).find(|(cpu, index)| *cpu != index).map(|(_, index)| index) {
        let found = format!("CPU {hole} is offline; a plan rules CPUs 0 to n - 1");
        let help = format!("set it online: echo 1 > /sys/devices/system/cpu/cpu{hole}/online");
        return Check::missing(WHAT, found, help);
    }
    Check::found(WHAT, format!("{count} online, at most {CPUS}"))
}

fn isolation(host: &Host) -> Check {
    const WHAT: &str = "isolated CPUs";
    let list = |name: &str| {
        let text = host.text(&format!("/sys/devices/system/cpu/{name}")).unwrap_or_default();
        (!text.is_empty() && text != "(null)").then_some(text)
    };
    let isolated = host.text("/proc/cmdline").unwrap_or_default();
    let booted = isolated.split_whitespace().any(|word| word.starts_with("isolcpus="));
    match (list("isolated"), list("nohz_full")) {
        (Some(cpus), _) if booted => {
            let found = format!("CPUs {cpus} (isolcpus): sched_ext refuses to work beside them");
            Check::missing(
                WHAT,
                found,
                "boot without isolcpus; give those CPUs a root of their own in the plan instead",
            )
        }
        (Some(cpus), _) => {
            let found = format!("CPUs {cpus}, by cpuset partitions; a plan rules them too");
            Check::new(WHAT, State::Note, found)
        }
        (None, Some(cpus)) => {
            let found = format!("none; CPUs {cpus} have no tick while one thread runs (nohz_full)");
            Check::new(WHAT, State::Note, found)
        }
        (None, None) => Check::found(WHAT, "none"),
    }
}

/// `a`, `b` and `c`.
fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, front)) => format!("{} and {last}", front.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests;
