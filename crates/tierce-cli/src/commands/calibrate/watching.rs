//! Watching: a program that is run for it, or threads that run already.

use anyhow::{bail, ensure, Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use tierce_calibrate::{mapped_files, Burst, Watched};
use tierce_job::{Clock, Monotonic};
use tierce_scx::routines::{Routine, Routines};
use tierce_scx::threads;
use tierce_scx::watch::{Happened, Record, Watcher};

/// What is watched.
pub enum Of {
    /// A program, run for it.
    Program {
        program: String,
        arguments: Vec<String>,
        /// Its standard output goes to standard error.
        quiet: bool,
    },
    /// A process and those that it has started.
    Process(u32),
    /// One thread.
    Thread(u32),
}

/// A thread that was watched.
pub struct Thread {
    pub tid: u32,
    pub process: u32,
    pub name: String,
    /// Its start routine, if that is known.
    pub routine: Option<Routine>,
    /// Turns in which it was not known.
    turns: u32,
    pub watched: Watched,
    /// CPU time that it had had before.
    ran_before_ns: u64,
    has_ended: bool,
}

/// The program of a process.
pub struct Program {
    pub path: PathBuf,
    /// The name of the process.
    pub name: String,
    /// Files that it has had code mapped from.
    pub mapped: BTreeSet<PathBuf>,
}

/// What was seen.
pub struct Watching {
    pub threads: Vec<Thread>,
    /// By process.
    pub programs: BTreeMap<u32, Program>,
    pub lost: u64,
    pub tells_interrupts: bool,
    /// How the program ended, if not well.
    pub ended: Option<String>,
    routines: Routines,
    from_ns: u64,
    to_ns: u64,
}

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn stop(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// How often records are read.
const EVERY: Duration = Duration::from_millis(50);

/// How often programs are looked at: they may load further libraries.
const LOOKS: Duration = Duration::from_secs(1);

/// How long a program may take to end when it is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(3);

const SCHEDULER: &str = "/sys/kernel/sched_ext/state";

/// Watch until it ends, Ctrl-C, or for that long. `under_plan`: a plan may be in force.
pub fn watch(of: &Of, duration: Option<Duration>, under_plan: bool) -> Result<Watching> {
    let state = std::fs::read_to_string(SCHEDULER).unwrap_or_default();
    ensure!(
        under_plan || matches!(state.trim(), "" | "disabled"),
        "no_plan_may_be_in_force: {SCHEDULER}: {}, bound disabled: a thread would run when the plan lets it; end `tierce run` first, or use --under-plan",
        state.trim()
    );
    let mut watcher = Watcher::load().context(
        "bpf_must_be_allowed: threads are watched by BPF programs: run as root, on a kernel with /sys/kernel/btf/vmlinux",
    )?;
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores to an atomic.
        unsafe { libc::signal(signal, stop as *const () as libc::sighandler_t) };
    }
    let mut seen = Watching {
        threads: Vec::new(),
        programs: BTreeMap::new(),
        lost: 0,
        tells_interrupts: watcher.tells_interrupts,
        ended: None,
        routines: Routines::default(),
        from_ns: Monotonic.now_ns(),
        to_ns: 0,
    };
    let mut child = begin(of, &watcher, &mut seen)?;
    read_on(&mut watcher, &mut seen, child.as_mut(), duration)?;
    seen.look_at_programs();
    watcher.records()?.iter().for_each(|record| seen.add(record));
    seen.lost = watcher.lost()?;
    drop(watcher);
    seen.end();
    if let Some(child) = child {
        seen.ended = end(child)?;
    }
    Ok(seen)
}

/// Read what happens until it is over.
fn read_on(
    watcher: &mut Watcher,
    seen: &mut Watching,
    mut child: Option<&mut Child>,
    duration: Option<Duration>,
) -> Result<()> {
    let (begun, mut looked) = (Instant::now(), None::<Instant>);
    let shown = std::io::stderr().is_terminal();
    loop {
        thread::sleep(duration.map_or(EVERY, |duration| duration.saturating_sub(begun.elapsed()).min(EVERY)));
        let mut is_new = false;
        for record in watcher.records()? {
            is_new |= record.happened() == Happened::Executed;
            seen.add(&record);
        }
        if is_new || looked.is_none_or(|at| at.elapsed() >= LOOKS) {
            seen.look_at_programs();
            looked = Some(Instant::now());
        }
        seen.look_at_routines();
        if shown {
            eprint!("\r\x1b[Ktierce: {}; Ctrl-C ends it", seen.so_far(begun.elapsed()));
        }
        if let Some(child) = &mut child {
            child.try_wait()?; // else it stays in the way as a zombie
        }
        let is_over = duration.is_some_and(|duration| begun.elapsed() >= duration);
        if is_over || STOP.load(Ordering::Relaxed) || seen.threads.iter().all(|thread| thread.has_ended) {
            break;
        }
    }
    if shown {
        eprint!("\r\x1b[K");
    }
    Ok(())
}

/// Begin to watch; the program that is run for it.
fn begin(of: &Of, watcher: &Watcher, seen: &mut Watching) -> Result<Option<Child>> {
    match of {
        Of::Program { program, arguments, quiet } => {
            let mut command = Command::new(program);
            command.args(arguments);
            if *quiet {
                command.stdout(Stdio::from(std::io::stderr()));
            }
            // Whatever this thread starts is watched, from its first instruction on.
            // SAFETY: no arguments, cannot fail.
            let own = unsafe { libc::gettid() } as u32;
            watcher.watch(own, true)?;
            let child = command.spawn();
            watcher.watch(own, false)?;
            let child = child.with_context(|| format!("program_must_start: {program}"))?;
            seen.know(child.id(), child.id());
            Ok(Some(child))
        }
        Of::Process(pid) => {
            ensure!(
                threads::of(*pid).contains(pid),
                "process_must_exist: --pid {pid}: there is no such process"
            );
            // Until nothing new is found: they start others meanwhile.
            let mut new = true;
            while std::mem::take(&mut new) {
                for process in tree(*pid) {
                    for tid in threads::of(process) {
                        if watcher.watch(tid, true)? == Some(true) {
                            seen.know(tid, process);
                            new = true;
                        }
                    }
                }
            }
            Ok(None)
        }
        Of::Thread(tid) => {
            let Some(live) = threads::look(*tid) else {
                bail!("thread_must_exist: --tid {tid}: there is no such thread")
            };
            watcher.watch(*tid, false)?;
            seen.know(*tid, live.pid);
            Ok(None)
        }
    }
}

/// A process and its descendants.
fn tree(pid: u32) -> BTreeSet<u32> {
    let all: Vec<_> = threads::all().into_iter().filter_map(threads::look).collect();
    let mut tree = BTreeSet::from([pid]);
    loop {
        let more: Vec<u32> = all
            .iter()
            .filter(|thread| tree.contains(&thread.ppid) && !tree.contains(&thread.pid))
            .map(|thread| thread.pid)
            .collect();
        if more.is_empty() {
            return tree;
        }
        tree.extend(more);
    }
}

/// How the program ended, if not well; it is ended, if it has not.
fn end(mut child: Child) -> Result<Option<String>> {
    if let Some(status) = child.try_wait()? {
        return Ok((!status.success() && status.signal() != Some(libc::SIGINT)).then(|| status.to_string()));
    }
    // SAFETY: a child of ours that has not been waited for, so the number is its own.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > ENDS_WITHIN {
            child.kill()?;
            child.wait()?;
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

impl Watching {
    /// For how long.
    pub fn duration(&self) -> Duration {
        Duration::from_nanos(self.to_ns - self.from_ns)
    }

    fn so_far(&self, after: Duration) -> String {
        let wakeups: usize = self.threads.iter().map(|thread| thread.watched.bursts.len()).sum();
        let tenths = after.as_millis() / 100;
        format!("{}.{} s: {} threads, {wakeups} wake-ups", tenths / 10, tenths % 10, self.threads.len())
    }

    /// A thread is watched from now on.
    fn know(&mut self, tid: u32, process: u32) {
        let ran_before_ns = threads::ran_ns(tid).unwrap_or(0);
        self.begun(tid, process, threads::name(tid).unwrap_or_default(), Monotonic.now_ns(), ran_before_ns);
    }

    fn begun(&mut self, tid: u32, process: u32, name: String, from_ns: u64, ran_before_ns: u64) {
        if self.alive(tid).is_none() {
            let watched = Watched { from_ns, ..Watched::default() };
            let (routine, turns, has_ended) = (None, 0, false);
            self.threads.push(Thread {
                tid,
                process,
                name,
                routine,
                turns,
                watched,
                ran_before_ns,
                has_ended,
            });
        }
    }

    fn alive(&mut self, tid: u32) -> Option<&mut Thread> {
        // A number may be taken again; the last one that had it is the one.
        self.threads.iter_mut().rev().find(|thread| thread.tid == tid && !thread.has_ended)
    }

    fn add(&mut self, record: &Record) {
        if record.process == std::process::id() {
            return;
        }
        match record.happened() {
            Happened::Begun => self.begun(record.tid, record.process, record.name(), record.now_ns, 0),
            Happened::Executed => {
                let of_process = self.threads.iter_mut().filter(|thread| thread.process == record.process);
                for thread in of_process {
                    thread.watched = Watched { from_ns: record.now_ns, ..Watched::default() };
                    thread.name = record.name();
                    (thread.routine, thread.turns) = (None, 0);
                }
                self.programs.remove(&record.process);
            }
            happened => {
                let Some(thread) = self.alive(record.tid) else { return };
                let Record { woke_ns, now_ns: slept_ns, ran_ns, interrupted_ns, .. } = *record;
                thread.watched.ran_ns += ran_ns;
                thread.watched.to_ns = slept_ns;
                thread.has_ended = happened == Happened::Ended;
                if thread.name != record.name() {
                    thread.name = record.name();
                }
                if woke_ns >= thread.watched.from_ns {
                    thread.watched.bursts.push(Burst { woke_ns, slept_ns, ran_ns, interrupted_ns });
                }
            }
        }
    }

    /// The programs of all processes that are there.
    fn look_at_programs(&mut self) {
        let processes: BTreeSet<u32> =
            self.threads.iter().filter(|thread| !thread.has_ended).map(|thread| thread.process).collect();
        for pid in processes {
            let at = |name: &str| format!("/proc/{pid}/{name}");
            let Ok(path) = std::fs::read_link(at("exe")) else { continue };
            let maps = std::fs::read_to_string(at("maps")).unwrap_or_default();
            // In another mount namespace the path may lead to another file.
            let (Ok(own), Ok(there)) = (std::fs::metadata(at("exe")), std::fs::metadata(&path)) else {
                continue;
            };
            let is_there = (own.dev(), own.ino()) == (there.dev(), there.ino());
            let Some(name) = threads::name(pid).filter(|_| is_there) else { continue };
            let before = self.programs.remove(&pid).filter(|before| before.path == path);
            let mut mapped = before.map_or(BTreeSet::new(), |before| before.mapped);
            // Not what only this user has loaded into it: he could change it, and with it what is known of the program.
            let is_its = |file: &PathBuf| {
                std::fs::metadata(file).is_ok_and(|about| about.uid() == 0 || about.uid() == own.uid())
            };
            mapped.extend(mapped_files(&maps).filter(is_its));
            self.programs.insert(pid, Program { path, name, mapped });
        }
    }

    /// Start routines that are not known yet: a thread has to run first. It is looked at more and more rarely.
    fn look_at_routines(&mut self) {
        let mut unknown = BTreeMap::<u32, Vec<&mut Thread>>::new();
        for thread in self.threads.iter_mut().filter(|it| !it.has_ended && it.routine.is_none()) {
            thread.turns += 1;
            if thread.turns.is_power_of_two() {
                unknown.entry(thread.process).or_default().push(thread);
            }
        }
        for (process, threads) in unknown {
            let tids: Vec<u32> = threads.iter().map(|thread| thread.tid).collect();
            let found = self.routines.of(0, process, &tids, |_| true);
            for (thread, routine) in threads.into_iter().zip(found) {
                thread.routine = routine;
            }
        }
    }

    /// Watching is over.
    fn end(&mut self) {
        self.to_ns = Monotonic.now_ns();
        for thread in self.threads.iter_mut().filter(|thread| !thread.has_ended) {
            thread.watched.to_ns = self.to_ns;
            // Part of that is of a burst that has not ended.
            let ran_ns =
                threads::ran_ns(thread.tid).map(|ran_ns| ran_ns.saturating_sub(thread.ran_before_ns));
            thread.watched.ran_ns = thread.watched.ran_ns.max(ran_ns.unwrap_or(0));
        }
    }
}
