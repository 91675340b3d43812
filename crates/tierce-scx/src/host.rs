//! What stands above sched_ext on a machine, read from files below a root folder: `/` for this one.
//!
//! Kernel threads of SCHED_FIFO (migration, watchdogs, threaded interrupts) are on every machine. They have no bound that
//! could be read, and are told with the time they took since they began, but not subtracted.

use crate::doctor::cpu_list;
use crate::dry_run::cpus;
use crate::threads::{Class, Live, Proc};
use crate::trial::Trial;
use std::path::Path;
use tierce_admission::{Above, Reserved};
use tierce_plan::{show_time, Child, Cpus, Plan};

/// Ticks per second in /proc/TID/stat (USER_HZ).
const TICKS: u64 = 100;

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What is subtracted.
    pub above: Above,
    /// What is not, in words.
    pub notes: Vec<String>,
}

/// Why this machine cannot have a plan, or be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {message}")]
pub struct HostRefusal {
    /// The rule it breaks.
    pub rule: &'static str,
    /// In plain words.
    pub message: String,
}

fn refuse<T>(rule: &'static str, message: String) -> Result<T, HostRefusal> {
    Err(HostRefusal { rule, message })
}

/// Look at the machine whose files lie below `root`.
pub fn read(root: &Path) -> Result<Found, HostRefusal> {
    let host = Host { root };
    let Some(online) = host.cpus(ONLINE) else {
        return refuse("online_cpus_must_be_known", format!("{ONLINE} is no list of CPUs"));
    };
    let mut found = Found { above: Above { online, ..Above::default() }, notes: Vec::new() };
    host.threads(&mut found)?;
    host.servers(&mut found);
    for (path, what) in [
        ("/sys/devices/system/cpu/nohz_full", "run without a tick (nohz_full)"),
        ("/sys/devices/system/cpu/isolated", "are isolated (isolcpus): only threads put there run there"),
    ] {
        found.notes.extend(host.cpus(path).map(|list| format!("CPUs {list:?} {what}")));
    }
    found.notes.extend(host.own_cgroups());
    Ok(found)
}

const ONLINE: &str = "/sys/devices/system/cpu/online";
const SERVERS: &str = "/sys/kernel/debug/sched";

/// A machine by its files.
struct Host<'a> {
    root: &'a Path,
}

impl Host<'_> {
    fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.root.join(path.trim_start_matches('/'))).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_string())
    }

    fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    fn cpus(&self, path: &str) -> Option<Vec<u32>> {
        self.text(path).and_then(|list| cpu_list(&list)).filter(|list| !list.is_empty())
    }

    /// Threads of higher scheduling classes.
    fn threads(&self, found: &mut Found) -> Result<(), HostRefusal> {
        let threads = Proc::at(self.root.join("proc")).all();
        if threads.is_empty() {
            return refuse(
                "threads_must_be_readable",
                "/proc shows no thread: is it mounted, without hidepid?".into(),
            );
        }
        let uptime_s = self.text("/proc/uptime").and_then(|text| text.split('.').next()?.parse().ok());
        let uptime_s = uptime_s.unwrap_or(0);
        let mut kernel = (0, 0u64);
        for live in &threads {
            let name = format!("{} ({})", live.thread.comm, live.thread.tid);
            match live.class {
                Class::Deadline => found.above.deadline.push(reserved(self.root, live, name)?),
                Class::Fifo | Class::RoundRobin if live.thread.is_kthread => {
                    kernel = (kernel.0 + 1, kernel.1 + self.load(live, uptime_s).unwrap_or(0));
                }
                Class::Fifo | Class::RoundRobin => {
                    let took = self.load(live, uptime_s);
                    let took =
                        took.map_or(String::new(), |ppm| format!(", {} of a CPU so far", percent(ppm)));
                    found
                        .notes
                        .push(format!("{name} is {}{took}: it may take everything", live.class.name()));
                    found.above.unbounded.push((name, live.allowed));
                }
                _ => {}
            }
        }
        if kernel.0 > 0 {
            let realtime = self.number("/sys/kernel/realtime") == Some(1);
            let irqs = if realtime { ", interrupts among them (PREEMPT_RT)" } else { "" };
            let part = percent(kernel.1);
            found.notes.push(format!(
                "{} kernel threads of SCHED_FIFO{irqs} took {part} of a CPU so far: not subtracted",
                kernel.0
            ));
        }
        Ok(())
    }

    fn load(&self, live: &Live, uptime_s: u64) -> Option<u64> {
        let tid = live.thread.tid;
        let stat = self.text(&format!("/proc/{tid}/task/{tid}/stat"));
        load(&stat.or_else(|| self.text(&format!("/proc/{tid}/stat")))?, uptime_s)
    }

    /// What the kernel keeps for threads of lower scheduling classes.
    fn servers(&self, found: &mut Found) {
        for (place, cpu) in found.above.online.iter().enumerate() {
            let server = |kind: &str| {
                let of = |name: &str| self.number(&format!("{SERVERS}/{kind}_server/cpu{cpu}/{name}"));
                Some((of("runtime")?, of("period")?))
                    .filter(|(runtime, period)| *runtime > 0 && runtime <= period)
            };
            found.above.ext_servers.extend(server("ext").map(|(runtime, period)| (*cpu, runtime, period)));
            if let (Some((runtime, period)), true) = (server("fair"), place == 0) {
                let (runtime, period) = (show_time(runtime), show_time(period));
                found.notes.push(format!("fair server: {runtime} in {period} for threads outside of sched_ext; a plan takes in all of them"));
            }
        }
        if !self.root.join(SERVERS.trim_start_matches('/')).exists() {
            found.notes.push(format!(
                "{SERVERS} is not there (root only, debugfs): what the kernel keeps for sched_ext is not known"
            ));
        }
    }

    /// Limits of the cgroup of this process, and of those above it.
    fn own_cgroups(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let own = self
            .text("/proc/self/cgroup")
            .and_then(|text| Some(text.lines().find_map(|line| line.strip_prefix("0::"))?.to_string()));
        let mut group = own.unwrap_or_default();
        while group.len() > 1 {
            let of = |file: &str| {
                self.text(&format!("/sys/fs/cgroup{group}/{file}")).filter(|text| !text.is_empty())
            };
            let limit = of("cpu.max").filter(|max| !max.starts_with("max"));
            notes.extend(limit.map(|max| format!("cpu.max of {group} is {max}: sched_ext does not heed it")));
            let cpus = of("cpuset.cpus");
            notes
                .extend(cpus.map(|cpus| format!("cpuset.cpus of {group} is {cpus}: its threads stay there")));
            group.truncate(group.rfind('/').unwrap_or(0));
        }
        notes
    }
}

/// Whether a cgroup is there; yes, where cgroups of version 2 are not at the usual place. `root`: of the file system.
pub(crate) fn is_cgroup(path: &str, root: &Path) -> bool {
    let all = root.join("sys/fs/cgroup");
    !all.join("cgroup.procs").exists() || all.join(path).is_dir()
}

/// Whether who is in a cgroup that the plan names may run where its entry is: its `cpuset` has a CPU that leads there. Cgroups
/// that are not there (yet), and patterns with wildcards, are not looked at.
pub fn check_cpusets(plan: &Plan, root: &Path) -> Result<(), HostRefusal> {
    let mut trial = None;
    for entry in &plan.entries {
        let paths = entry.any.iter().filter_map(|matcher| matcher.cgroup.as_ref());
        for path in paths.map(|glob| glob.as_str().trim_start_matches('/').trim_end_matches("/**")) {
            let file = root.join("sys/fs/cgroup").join(path).join("cpuset.cpus.effective");
            let list = std::fs::read_to_string(file).ok().and_then(|text| cpu_list(text.trim()));
            let Some(list) = list.filter(|list| !list.is_empty()) else { continue };
            let its: Cpus = list.iter().collect();
            let Some((trial, ids)) = trial.get_or_insert_with(|| Trial::new(plan).ok()) else {
                return Ok(());
            };
            let of = |node: u32| trial.graph.reach(node);
            let (leads, affinity) = match entry.target {
                Child::Task(task) => (of(ids.tasks[task]), plan.tasks[task].affinity),
                Child::Set(set) => {
                    let set = &plan.sets[set];
                    let above = set.ways().flatten().map(|edge| of(ids.nodes[edge.parent]));
                    (above.fold(Cpus::NONE, |cpus, more| cpus | more), set.affinity)
                }
                Child::Node(_) => continue,
            };
            let reach = leads & affinity.unwrap_or(Cpus::ALL);
            if !its.meet(reach) {
                let name = plan.child_name(entry.target);
                let (its, ours) = (cpus(its), cpus(reach));
                return refuse(
                    "cpuset_must_meet_the_node",
                    format!(
                        "{}: `{name}` takes in the cgroup `{path}`, which may run on {its} only (cpuset.cpus), \
                         and what leads to `{name}` is {ours}",
                        plan.sources.place(entry.spot)
                    ),
                );
            }
        }
    }
    Ok(())
}

/// A deadline thread: the kernel tells runtime and deadline (in /proc/TID/sched), which is at most the period.
fn reserved(root: &Path, live: &Live, name: String) -> Result<Reserved, HostRefusal> {
    let path = format!("proc/{}/sched", live.thread.tid);
    let text = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
    let number = |key: &str| {
        let line = text.lines().find(|line| line.split([' ', ':']).next() == Some(key))?;
        line.rsplit(':').next()?.trim().parse::<u64>().ok().filter(|number| *number > 0)
    };
    match (number("dl.runtime"), number("dl.deadline")) {
        (Some(runtime_ns), Some(period_ns)) => {
            Ok(Reserved { name, cpus: live.allowed, runtime_ns, period_ns })
        }
        _ => refuse(
            "deadline_thread_must_be_readable",
            format!("/{path} does not say what {name} has reserved"),
        ),
    }
}

/// Parts per million of a CPU that a thread took since it began.
fn load(stat: &str, uptime_s: u64) -> Option<u64> {
    let fields: Vec<_> = stat.rsplit(')').next()?.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let (used, began) = (number(11)?.checked_add(number(12)?)?, number(19)?);
    let lived = uptime_s.checked_mul(TICKS)?.checked_sub(began).filter(|ticks| *ticks > 0)?;
    used.checked_mul(1_000_000)?.checked_div(lived)
}

fn percent(ppm: u64) -> String {
    format!("{}.{:02} %", ppm / 10_000, ppm / 100 % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_a_cgroup_is_there() {
        let root = std::env::temp_dir().join(format!("tierce-cgroups-{}", std::process::id()));
        let all = root.join("sys/fs/cgroup");
        std::fs::create_dir_all(all.join("shop/a")).unwrap();
        assert!(is_cgroup("shop/b", &root), "version 1: nobody knows");
        std::fs::write(all.join("cgroup.procs"), "").unwrap();
        assert_eq!(["shop", "shop/a", "shop/b"].map(|path| is_cgroup(path, &root)), [true, true, false]);
        std::fs::remove_dir_all(&root).unwrap();
    }
}
