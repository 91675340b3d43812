//! Long work shows progress on a terminal, and Ctrl-C ends it with what there is by then.

mod common;

use common::{ctrl_c, wait_until};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const TIERCE: &str = env!("CARGO_BIN_EXE_tierce");

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name)
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ended");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn start(arguments: &[&str]) -> Child {
    let piped = || Stdio::piped();
    Command::new(TIERCE).args(arguments).stdin(piped()).stdout(piped()).stderr(piped()).spawn().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn tierce(arguments: &[&str]) -> Output {
    Command::new(TIERCE).args(arguments).output().unwrap()
}

/// A terminal: what the program writes to, and what is seen.
fn terminal() -> (Stdio, File) {
    let (mut seen, mut written) = (0, 0);
    let size = libc::winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let none = std::ptr::null_mut();
    // SAFETY: the numbers and the size live until the call has ended.
    let status = unsafe { libc::openpty(&mut seen, &mut written, none, std::ptr::null(), &size) };
    assert_eq!(status, 0, "no terminal can be had");
    // SAFETY: both are open, and nobody else has them.
    unsafe { (Stdio::from_raw_fd(written), File::from_raw_fd(seen)) }
}

/// All that a terminal shows until a text is there.
fn seen_until(terminal: &mut File, wanted: &str) -> String {
    let (mut all, mut part) = (String::new(), [0; 4096]);
    while !all.contains(wanted) {
        let read = terminal.read(&mut part).unwrap_or_else(|error| panic!("{error}: {all:?}"));
        assert!(read > 0, "{all:?}");
        all += &text(&part[..read]);
    }
    all
}

#[test]
fn a_simulation_ends_with_the_results_until_there() {
    let (plan, trace) = (example("desktop.toml"), scratch("early.trace"));
    let (plan, file) = (plan.to_str().unwrap(), trace.to_str().unwrap());
    let _ = std::fs::remove_file(&trace);
    let child = start(&["sim", plan, "--for", "1000000s", "--trace", file, "--json"]);
    wait_until("a trace", || std::fs::metadata(&trace).is_ok_and(|data| data.len() > 100_000));
    ctrl_c(&child);
    let output = child.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ended early: all results are of the first"), "{said}");
    assert!(!said.contains('['), "a pipe has no bar: {said}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let released = report["tasks"][0]["released"].as_u64().unwrap();
    assert!(released > 0, "{report}");
    let stats = tierce(&["trace", "stats", "--json", file]);
    assert!(stats.status.success(), "{}", text(&stats.stderr));
    let again: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(again["tasks"][0]["released"], released);
    assert_eq!(again["length_ns"], report["length_ns"]);
}

/// Before it was done. A busy machine may bring the signal too late, but not three times.
fn ended_early(run: impl FnMut(usize) -> Output) -> Output {
    let is_early = |output: &Output| text(&output.stdout).contains("Ended early: ");
    (0..3).map(run).find(is_early).expect("Ctrl-C ends it")
}

/// Starts an analysis on a terminal, and presses Ctrl-C as soon as it shows how far it is.
fn ended_analysis(policy: &str, table: &str, tasks: usize) -> serde_json::Value {
    let output = ended_early(|_| ended_on_a_terminal(policy, table, tasks));
    assert_eq!(output.status.code(), Some(1));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let remarks = answer["remarks"].as_array().unwrap();
    let remark = remarks[0].as_str().unwrap();
    assert!(remarks.len() == 1 && remark.starts_with("Ended early: the response times of "), "{remarks:?}");
    let unknown = answer["tasks"].as_array().unwrap().iter().filter(|task| task["wcrt_ns"].is_null()).count();
    assert!(unknown > 0 && remark.contains(&format!(" {unknown} tasks")), "{unknown}: {remark}");
    answer
}

fn ended_on_a_terminal(policy: &str, table: &str, tasks: usize) -> Output {
    let (writes, mut seen) = terminal();
    let child = Command::new(TIERCE)
        .args(["analyse", "--policy", policy, "--json", table])
        .stdout(Stdio::piped())
        .stderr(writes)
        .spawn()
        .unwrap();
    let bar = seen_until(&mut seen, &format!("of {tasks} tasks"));
    assert!(bar.contains('['), "{bar:?}");
    ctrl_c(&child);
    child.wait_with_output().unwrap()
}

#[test]
fn an_analysis_shows_how_far_it_is_and_ends_with_the_responses_that_are_known() {
    let table = scratch("many.csv");
    let table = table.to_str().unwrap();
    let gen =
        ["gen", "--method", "emberson", "--tasks", "1000", "--utilisation", "0.97", "--periods", "1ms..1s"];
    let made = tierce(&[&gen[..], &["-o", table]].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    let answer = ended_analysis("edf", table, 1000);
    assert_eq!((answer["schedulable"].as_bool(), answer["exact"].as_bool()), (Some(true), Some(true)));
}

/// 22 % of a CPU.
#[test]
fn so_does_one_of_100_000_tasks() {
    let table = scratch("very-many.csv");
    let rows = (0..100_000u64).map(|i| format!("t{i},50,{}\n", 10_000_000 + i * 900));
    std::fs::write(&table, format!("name,work,period\n{}", rows.collect::<String>())).unwrap();
    for (policy, shown) in [("edf", true), ("dm", false), ("audsley", false)] {
        let answer = ended_analysis(policy, table.to_str().unwrap(), 100_000);
        assert_eq!(
            (answer["schedulable"].as_bool(), answer["exact"].as_bool()),
            (Some(shown), Some(shown)),
            "{policy}"
        );
    }
}

fn is_analysing(child: &Child) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let name = |thread: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(thread.ok()?.path().join("comm")).ok()
    };
    threads.filter_map(name).any(|name| name == "work\n")
}

/// On several CPUs, where it is not known how far it is.
#[test]
fn so_do_those_on_several_cpus() {
    let table = scratch("several.csv");
    let rows = (0..100_000u64).map(|i| format!("t{i},50,{}\n", 10_000_000 + i * 900));
    std::fs::write(&table, format!("name,work,period\n{}", rows.collect::<String>())).unwrap();
    for (policy, more, remark) in [
        ("edf", None, "tasks had not been shown to meet their deadlines."),
        ("dm", None, "tasks had not been shown to meet their deadlines."),
        ("audsley", None, "tasks had not been shown to meet their deadlines."),
        ("edf", Some("worst"), "not every task had been placed on a CPU."),
    ] {
        let mut words = vec!["analyse", "--cpus", "2", "--policy", policy, "--json", table.to_str().unwrap()];
        words.extend(more.into_iter().flat_map(|fit| ["--partition", fit]));
        let output = ended_early(|_| {
            let child = start(&words);
            wait_until("a thread that analyses", || is_analysing(&child));
            std::thread::sleep(Duration::from_millis(300));
            ctrl_c(&child);
            child.wait_with_output().unwrap()
        });
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.as_str()), (Some(1), ""), "{words:?}");
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let remarks = answer["remarks"].as_array().unwrap();
        let found = remarks[0].as_str().unwrap();
        assert!(remarks.len() == 1 && found.starts_with("Ended early: "), "{remarks:?}");
        assert!(found.ends_with(remark), "{words:?}: {found}");
        assert_eq!(answer["exact"], false);
    }
}

/// A page is being written, and nobody reads more of it: what the command says when it is ended.
fn ended_page(page: &Path, arguments: &[&str]) -> Output {
    let _ = std::fs::remove_file(page);
    assert!(Command::new("mkfifo").arg(page).status().unwrap().success());
    let child = start(arguments);
    let mut read = [0; 100];
    let mut reader = File::open(page).unwrap();
    reader.read_exact(&mut read).unwrap();
    assert!(read.starts_with(b"<!"), "{}", text(&read));
    // SAFETY: the pipe is open.
    let holds = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_GETPIPE_SZ) };
    wait_until("a program that waits for a reader", || unread(&reader) > holds / 2 && sleeps(&child));
    ctrl_c(&child);
    child.wait_with_output().unwrap()
}

#[test]
fn a_timeline_that_is_ended_is_not_written() {
    let (plan, trace, pipe) = (example("edf.toml"), scratch("shown.trace"), scratch("page.html"));
    let [plan, trace, page] = [&plan, &trace, &pipe].map(|path| path.to_str().unwrap());
    assert!(tierce(&["sim", plan, "--for", "5s", "--trace", trace]).status.success());
    let output = ended_page(&pipe, &["timeline", trace, "--html", page]);
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(1), ""), "{said}");
    assert_eq!(said, format!("tierce timeline: ended early; {page} is not written\n"));
}

#[test]
fn nor_is_the_page_of_a_simulation_whose_results_are_shown() {
    let (plan, pipe) = (example("edf.toml"), scratch("simulated.html"));
    let [plan, page] = [&plan, &pipe].map(|path| path.to_str().unwrap());
    let output = ended_page(&pipe, &["sim", plan, "--for", "5s", "--json", "--html", page]);
    let said = text(&output.stderr);
    assert_eq!(said, format!("tierce sim: ended early; {page} is not written\n"));
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["tasks"][0]["released"].as_u64().unwrap() > 100, "{report}");
}

/// Bytes that are still in the pipe.
fn unread(pipe: &impl AsRawFd) -> libc::c_int {
    let mut bytes = 0;
    // SAFETY: the pipe is open, and the number lives until the call has ended.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &mut bytes) }, 0);
    bytes
}

/// Its first thread waits for something.
fn sleeps(child: &Child) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S'))
}

#[test]
fn who_reads_a_pipe_that_goes_on_ends_with_what_it_has() {
    let (plan, trace) = (example("edf.toml"), scratch("piped.trace"));
    let (plan, file) = (plan.to_str().unwrap(), trace.to_str().unwrap());
    assert!(tierce(&["sim", plan, "--for", "1s", "--trace", file]).status.success());
    let bytes = std::fs::read(&trace).unwrap();
    let mut child = start(&["measure", "--json", "-"]);
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&bytes[..bytes.len() - 5]).unwrap();
    wait_until("a program that has read all and waits for more", || unread(&pipe) == 0 && sleeps(&child));
    ctrl_c(&child);
    let output = child.wait_with_output().unwrap();
    drop(pipe);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("ended early: only the records that were read by then are used"), "{said}");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found.is_object() || found.is_array(), "{found}");
}
