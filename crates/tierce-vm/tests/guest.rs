//! Real boots, so as few as possible: each test is one machine and checks many things in it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tierce_vm::{Copy, End, Event, KernelSpec, Mode, Vm};

const METER: &str = concat!(env!("OUT_DIR"), "/meter");

/// A folder of the test's own, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("tierce-vm-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    fn file(&self, name: &str, content: &str) -> Copy {
        let from = self.0.join(name);
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::fs::write(&from, content).unwrap();
        Copy { from, to: name.into() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What has to be true in a guest, as shell conditions; each that is not is printed.
const CONDITIONS: &str = r#"
[ "$(id -u)" = 0 ]
[ "$PWD" = /guest ]
[ "$GREETING" = "good  day" ]
[ "$(ulimit -l)" = unlimited ]
[ "$(nproc)" = 1 ]
[ -d /sys/kernel/sched_ext ]
[ -f /sys/kernel/btf/vmlinux ]
[ -f /sys/fs/cgroup/cgroup.controllers ]
[ -f /sys/kernel/tracing/trace ]
[ -f /sys/kernel/debug/sched/features ]
[ "$(stat -f -c %t /sys/fs/bpf)" = cafe4a11 ]
[ -c /dev/ptmx ]
ping -c 1 -W 2 127.0.0.1 >/dev/null
[ "$(cat folder/deep/file)" = "down here" ]
[ "$(readlink folder/link)" = deep/file ]
[ "$(cat /etc/moved)" = moved ]
[ "$(./script)" = "runs" ]
bash -c true
[ "$(echo x | tee /dev/fd/1)" = "x
x" ]
"#;

#[test]
fn a_command_its_output_and_its_files() {
    let here = Scratch::new("command");
    let script = here.file("script", "#!/bin/sh\necho runs\n");
    std::fs::set_permissions(&script.from, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    here.file("folder/deep/file", "down here\n");
    std::os::unix::fs::symlink("deep/file", here.0.join("folder/link")).unwrap();
    let conditions: String =
        CONDITIONS.trim().split("\n[").enumerate().fold(String::new(), |all, (i, condition)| {
            let condition = if i == 0 { condition.to_string() } else { format!("[{condition}") };
            all + &condition + &format!("\n[ $? = 0 ] || echo 'condition {i} does not hold'\n")
        });
    let vm = Vm {
        mode: Mode::Multi,
        copies: vec![
            script,
            Copy { from: here.0.join("folder"), to: "folder".into() },
            Copy { to: "/etc/moved".into(), ..here.file("to-move", "moved\n") },
            here.file("conditions", &conditions),
        ],
        programs: vec!["bash".into()],
        environment: vec![("GREETING".into(), "good  day".into())],
        ..Vm::default()
    };
    let command = "sh conditions; echo 'to stderr' >&2
        for mode in 'spin --time 20ms' 'hogs --time 20ms' 'pingpong --count 5' 'pingpong --by eventfd --count 5' \
            'pingpong --by futex --count 5' 'cyclic --count 5' 'frames --time 100ms' 'forkstorm --count 20' \
            'dirlock --time 20ms' 'dirlock --role hold --time 20ms' \
            'service --time 50ms --policy deadline:2ms:10ms --budget 2ms --hogs 1'
        do meter $mode >>/out/meter.jsonl || echo \"meter $mode failed\"; done
        head -c 3000000 /dev/urandom >/out/big; mkdir -p /out/sub; sha256sum </out/big | cut -d' ' -f1 >/out/sub/sum
        (sleep 1000; echo late) & exit 242";
    let mut outcome = vm.run_captured(&[command]).unwrap();
    assert_eq!(String::from_utf8_lossy(&outcome.stdout), "");
    assert_eq!(String::from_utf8_lossy(&outcome.stderr), "to stderr\n");
    assert_eq!((outcome.end, outcome.code()), (End::Exit(242), 242));
    assert!(outcome.boot > Duration::ZERO && outcome.total > outcome.boot);

    let meter = outcome.file("meter.jsonl").unwrap().expect("meter.jsonl came back");
    let results: Vec<serde_json::Value> =
        String::from_utf8(meter).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(results.len(), 11);
    assert!(results.iter().all(|one| one["mode"].is_string()));
    assert_eq!(results[7]["birth_ns"]["n"], 20);

    assert!(outcome.file("no such file").unwrap().is_none());
    assert_eq!(outcome.unpack(&here.0.join("out")).unwrap(), 3);
    let sum = Command::new("sha256sum").arg(here.0.join("out/big")).output().unwrap().stdout;
    let expected = std::fs::read(here.0.join("out/sub/sum")).unwrap();
    assert_eq!(sum[..64], expected[..64], "three megabytes came back as they were");
}

#[test]
fn a_panic_is_told_from_a_failure() {
    let vm = Vm { mode: Mode::Multi, ..Vm::default() };
    let outcome = vm.run_captured(&["echo before; echo c >/proc/sysrq-trigger"]).unwrap();
    assert_eq!((outcome.end, outcome.code()), (End::Died, 125));
    assert_eq!(outcome.stdout, b"before\n");
    let words = outcome.last_words(2);
    assert!(words.contains("Kernel panic - not syncing: sysrq triggered crash"), "{words}");
    assert_eq!(words.lines().count(), 2);
}

#[test]
fn a_limit_ends_it() {
    let vm = Vm { mode: Mode::Multi, limit: Duration::from_secs(1), ..Vm::default() };
    let begin = Instant::now();
    let outcome = vm.run_captured(&["sleep", "1000"]).unwrap();
    assert_eq!((outcome.end, outcome.code()), (End::Limit, 124));
    assert!(begin.elapsed() < Duration::from_secs(60));
}

#[test]
fn instruction_counting_repeats_itself() {
    let script = "uname -r
        meter pingpong --count 200 --cpu 0
        meter hogs --count 1 --cpu 1 --time 100ms --start 4s & meter hogs --count 1 --cpu 0 --time 100ms --start 4s; wait
        meter service --time 100ms --policy deadline:2ms:10ms --hogs 2
        cat /proc/interrupts; date";
    let vm = Vm { cpus: 2, mode: Mode::Deterministic { shift: 1 }, ..Vm::default() };
    let run = || {
        let outcome = vm.run_captured(&[script]).unwrap();
        assert_eq!(outcome.end, End::Exit(0), "{}", outcome.last_words(20));
        String::from_utf8(outcome.stdout).unwrap()
    };
    let (first, second) = (run(), run());
    assert_eq!(first, second);
    // Both CPUs get on: with turns as long as a tick, one of two hogs may do several times the work of the other.
    let work: Vec<u64> = first
        .lines()
        .filter(|line| line.contains("\"hogs\""))
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["units_sum"].as_u64().unwrap())
        .collect();
    assert!(work.len() == 2 && work[0] > 0 && work[0] < 2 * work[1] && work[1] < 2 * work[0], "{work:?}");
}

#[test]
fn what_cannot_start_is_told() {
    let here = Scratch::new("start");
    let no_kernel = here.file("vmlinux", "this is no kernel");
    let vm = Vm { mode: Mode::Multi, kernel: KernelSpec::File(no_kernel.from), ..Vm::default() };
    let error = format!("{:#}", vm.run_captured(&["true"]).unwrap_err());
    assert!(error.contains("QEMU could not start the guest"), "{error}");
}

/// The parent to be killed is this very test again, which then finds the mark in its environment.
#[test]
fn qemu_does_not_outlive_a_killed_parent() {
    const MARK: &str = "TIERCE_TEST_MARK";
    if let Some(mark) = std::env::var_os(MARK) {
        let vm = Vm { mode: Mode::Multi, ..Vm::default() };
        let _ = vm.run(&["sleep 1000"], &mut |event| {
            if let Event::Booting(_) = event {
                std::fs::write(&mark, "").unwrap();
            }
        });
        return;
    }
    let here = Scratch::new("killed");
    let mark = here.0.join("mark");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "qemu_does_not_outlive_a_killed_parent"])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    wait_until("the machine boots", || mark.exists());
    let qemu = children(victim.id()).pop().expect("QEMU is a child");
    assert!(alive(qemu));
    victim.kill().unwrap();
    victim.wait().unwrap();
    wait_until("QEMU is gone", || !alive(qemu));
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}: not after two minutes");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let lists =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
    lists.flat_map(|list| list.split_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// Neither gone nor a zombie that nobody has waited for yet.
fn alive(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(['Z', 'X']))
}

#[test]
fn meter_refuses_what_it_cannot_do() {
    for (arguments, expected) in [
        ("", "usage: meter MODE"),
        ("jump", "\"jump\": not a mode"),
        ("spin 5", "\"5\": not an option"),
        ("spin --frobnicate", "usage: meter MODE"),
        ("spin --time 5", "time \"5\": expected a whole number with ns, us, ms or s"),
        ("spin --time 0s", "time \"0s\": must not be 0"),
        ("spin --time -5s", "expected a whole number"),
        ("spin --time 99999999999s", "expected a whole number"),
        ("spin --start 1ns", "--start: that was"),
        ("spin --policy best", "policy \"best\": expected other[:SLICE]"),
        ("spin --policy nice:30", "\"30\": expected a number from -20 to 19"),
        ("spin --policy fifo", "policy \"fifo\": expected"),
        ("spin --policy deadline:5ms", "expected deadline:RUNTIME:PERIOD"),
        ("spin --policy deadline:5ms:2ms", "policy deadline:5ms:2ms: Invalid argument"),
        ("spin --cpu 1000", "CPU 1000: Invalid argument"),
        ("spin --cpu x", "\"x\": expected a number from 0 to 1023"),
        ("spin --group /no/such", "/no/such/cgroup.procs: No such file"),
        ("hogs --count 5000", "--count 5000: at most 4096 processes"),
        ("turns --count 5000", "--count 5000: at most 4096 processes"),
        ("spin --memory 1", "\"1\": expected a number from 64"),
        ("turns --time 10ms --segments /no/such/file", "/no/such/file: No such file"),
        ("hogs --count 0", "\"0\": expected a number from 1"),
        ("pingpong --by post", "--by post: expected pipe, eventfd, futex or yield"),
        ("dirlock --role lose", "--role lose: expected wait or hold"),
        ("dirlock --dir /no/such/dir", "/no/such/dir: No such file"),
        ("frames --work 1ns", "--work: less than one unit"),
        ("chain --link a,5ms,1ms", "--link: expected NAME,PERIOD,LEAST,MOST or"),
        ("chain --link a,0ms,1ms,1ms", "--link a: its period must not be 0"),
        ("chain --link a,5ms,2ms,1ms", "--link a: works 2000000 to 1000000 ns"),
        ("chain --link a,5ms,1ms,1ms", "chain: expected --link twice or more"),
        ("chain --link a,after,1ms,1ms --link b,5ms,1ms,1ms", "the first with a period"),
        ("locks --thread a,5ms,0ms", "expected NAME,PERIOD,PHASE,WORK and at most 4 times AT,LENGTH"),
        ("locks --thread a,5ms,0ms,2ms,1ms", "and at most 4 times AT,LENGTH"),
        ("locks --thread a,0ms,0ms,2ms", "--thread a: its period must not be 0"),
        ("locks --thread a,5ms,0ms,2ms,1ms,2ms", "--thread a: expected AT and LENGTH within WORK"),
        ("locks --thread a,5ms,0ms,2ms,1ms,0ms", "--thread a: expected AT and LENGTH within WORK"),
        ("locks --thread a,5ms,0ms,2ms,1ms,1ms:4", "\"4\": expected a number from 0 to 3"),
        ("service --time 10ms --segments /no/such/file", "/no/such/file: No such file"),
    ] {
        let out = Command::new(Path::new(METER)).args(arguments.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains(expected), "meter {arguments}: {said}");
        assert_eq!((out.status.code(), out.stdout.len()), (Some(2), 0), "meter {arguments}");
    }
}
