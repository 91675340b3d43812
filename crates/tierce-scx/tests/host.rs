//! What is read of a machine, from folders that look like one.

use std::path::PathBuf;
use tierce_admission::{PlanExt, Reserved};
use tierce_plan::Cpus;
use tierce_scx::host::{check_cpusets, read, Found};

struct Machine(PathBuf);

impl Machine {
    fn new(name: &str) -> Self {
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("host-{name}"));
        let _ = std::fs::remove_dir_all(&root);
        let machine = Self(root);
        machine.write("sys/devices/system/cpu/online", "0-3\n");
        machine.write("proc/uptime", "1000.00 3000.00\n");
        machine.thread(1, "init", 0, 0, "f");
        machine
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A thread of that class that has used 2000 of 100,000 ticks.
    fn thread(&self, tid: u32, comm: &str, class: u32, flags: u64, cpus: &str) {
        let rest = "0 ".repeat(18);
        let stat =
            format!("{tid} ({comm}) S 1 1 1 0 -1 {flags} 0 0 0 0 1500 500 3 4 20 0 1 0 0 {rest}{class} 0\n");
        self.write(&format!("proc/{tid}/task/{tid}/stat"), &stat);
        self.write(&format!("proc/{tid}/task/{tid}/comm"), comm);
        let status =
            format!("Tgid:\t{tid}\nPPid:\t1\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCpus_allowed:\t{cpus}\n");
        self.write(&format!("proc/{tid}/task/{tid}/status"), &status);
    }

    fn read(&self) -> Found {
        read(&self.0).unwrap()
    }

    fn refused(&self) -> &'static str {
        read(&self.0).unwrap_err().rule
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const KERNEL_THREAD: u64 = 0x0020_0000;

#[test]
fn nothing_stands_above_a_quiet_machine() {
    let found = Machine::new("quiet").read();
    assert_eq!(found.above.online, [0, 1, 2, 3]);
    assert!(found.above.deadline.is_empty() && found.above.unbounded.is_empty());
    assert!(found.notes[0].contains("/sys/kernel/debug/sched is not there"), "{:?}", found.notes);
}

#[test]
fn deadline_threads_are_read_with_their_numbers() {
    let machine = Machine::new("deadline");
    machine.thread(77, "control", 6, 0, "2");
    assert_eq!(machine.refused(), "deadline_thread_must_be_readable");
    machine.write("proc/77/sched", "control (77, #threads: 1)\n---\npolicy    :   6\ndl.runtime     :    2000000\ndl.deadline    :   10000000\n");
    let expected = Reserved {
        name: "control (77)".into(),
        cpus: Cpus::from(2),
        runtime_ns: 2_000_000,
        period_ns: 10_000_000,
    };
    assert_eq!(machine.read().above.deadline, [expected]);
    machine.write("proc/77/sched", "dl.runtime : 0\ndl.deadline : x\n");
    assert_eq!(machine.refused(), "deadline_thread_must_be_readable");
}

#[test]
fn real_time_threads_count_and_those_of_the_kernel_are_told() {
    let machine = Machine::new("real-time");
    machine.thread(12, "migration/0", 1, KERNEL_THREAD, "1");
    machine.thread(13, "irq/9", 1, KERNEL_THREAD, "f");
    machine.thread(80, "jackd", 1, 0, "f");
    machine.thread(81, "spin", 2, 0, "8");
    machine.write("sys/kernel/realtime", "1\n");
    let found = machine.read();
    assert_eq!(
        found.above.unbounded,
        [("jackd (80)".into(), Cpus::upto(4)), ("spin (81)".into(), Cpus::only(3))]
    );
    let said = found.notes.join("\n");
    assert!(
        said.contains("jackd (80) is SCHED_FIFO, 2.00 % of a CPU so far: it may take everything"),
        "{said}"
    );
    assert!(
        said.contains("2 kernel threads of SCHED_FIFO, interrupts among them (PREEMPT_RT) took 4.00 %"),
        "{said}"
    );
}

#[test]
fn servers_and_knobs_are_read() {
    let machine = Machine::new("servers");
    for (file, number) in [
        ("ext_server/cpu0/runtime", "50000000"),
        ("ext_server/cpu0/period", "1000000000"),
        ("ext_server/cpu1/runtime", "0"),
        ("ext_server/cpu1/period", "1000000000"),
        ("fair_server/cpu0/runtime", "50000000"),
        ("fair_server/cpu0/period", "1000000000"),
    ] {
        machine.write(&format!("sys/kernel/debug/sched/{file}"), number);
    }
    machine.write("sys/devices/system/cpu/nohz_full", "2-3\n");
    machine.write("sys/devices/system/cpu/isolated", "3\n");
    machine.write("proc/self/cgroup", "0::/user.slice/job\n");
    machine.write("sys/fs/cgroup/user.slice/cpu.max", "50000 100000\n");
    machine.write("sys/fs/cgroup/user.slice/job/cpu.max", "max 100000\n");
    machine.write("sys/fs/cgroup/user.slice/job/cpuset.cpus", "0-1\n");
    let found = machine.read();
    assert_eq!(found.above.ext_servers, [(0, 50_000_000, 1_000_000_000)]);
    let said = found.notes.join("\n");
    for expected in [
        "fair server: 50ms in 1s",
        "CPUs [2, 3] run without a tick (nohz_full)",
        "CPUs [3] are isolated",
        "cpu.max of /user.slice is 50000 100000: sched_ext does not heed it",
        "cpuset.cpus of /user.slice/job is 0-1",
    ] {
        assert!(said.contains(expected), "{expected}:\n{said}");
    }
    assert!(!said.contains("is not there"), "{said}");
}

#[test]
fn what_cannot_be_read_is_refused() {
    let machine = Machine::new("unreadable");
    for text in ["", "x", "0-", "99999999-1"] {
        machine.write("sys/devices/system/cpu/online", text);
        assert_eq!(machine.refused(), "online_cpus_must_be_known", "{text:?}");
    }
    machine.write("sys/devices/system/cpu/online", "0");
    std::fs::remove_dir_all(machine.0.join("proc")).unwrap();
    assert_eq!(machine.refused(), "threads_must_be_readable");
}

#[test]
fn this_machine_can_be_read() {
    let found = read(std::path::Path::new("/")).unwrap();
    assert!(!found.above.online.is_empty());
    found.above.online.iter().for_each(|cpu| println!("{}", found.above.left(*cpu).because));
}

/// A container, the CPUs of its cgroup, and those that lead to its node.
#[test]
fn a_cgroup_needs_a_cpu_that_leads_to_its_node() {
    let plan = |entry: &str| {
        let text = format!(
            "[machine]\ncpus = 2\n[node.top]\npolicy = \"fair\"\nper_cpu = true\n[node.web]\npolicy = \"fair\"\n\
             under.top = {{ cpu = 0 }}\n[node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = {{}}\n{entry}"
        );
        tierce_plan::Plan::parse(&text, "web.toml").unwrap_or_else(|why| panic!("{why}"))
    };
    let set = "[tasks.shop]\nunder.web = {}\nmatch = [{ cgroup = \"web\" }, { cgroup = \"web/**\" }]\n";
    let pinned = "[task.shop]\nunder.rest = {}\naffinity = [0]\nmatch = { cgroup = \"web\" }\n";
    for (name, entry) in [("set", set), ("task", pinned)] {
        let (machine, plan) = (Machine::new(&format!("cpuset-{name}")), plan(entry));
        check_cpusets(&plan, &machine.0).unwrap(); // there is no such cgroup
        for (cpus, fits) in [("0-1", true), ("0", true), ("", true), ("1", false), ("1,600-700", false)] {
            machine.write("sys/fs/cgroup/web/cpuset.cpus.effective", &format!("{cpus}\n"));
            let result = check_cpusets(&plan, &machine.0);
            assert_eq!(result.is_ok(), fits, "{name}, {cpus}: {result:?}");
            if let Err(why) = result {
                assert_eq!(why.rule, "cpuset_must_meet_the_node");
                let says = "`shop` takes in the cgroup `web`, which may run on CPU 1 only (cpuset.cpus), and what leads to \
                            `shop` is CPU 0";
                assert!(why.message.contains(says), "{why}");
            }
        }
    }
}
