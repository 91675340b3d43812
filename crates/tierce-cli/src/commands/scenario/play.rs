//! The playing side, inside a machine to throw away.

use super::script::{Machine, Names, Script};
use anyhow::{ensure, Context, Result};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Error as IoError, Read, Write};
use std::os::fd::FromRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tierce_plan::{Child, Cpus, Glob, Interrupt, MatchEntry, Matcher, Plan, Spot, Task};
use tierce_policy::{recording, Control, Refusal, NEVER};
use tierce_scx::doctor::Host;
use tierce_scx::kernel::{Kernel, Options};
use tierce_scx::live::{now_ns, Live};
use tierce_sim::{Next, Program};

/// From the first wake-up of the tasks, in which they move to their leaves, to time 0: longer than any budget lasts.
const LEAD_NS: u64 = 200_000_000;
/// Timeslots count from time 0 of the clock, in the simulator from the start: those of scenarios divide this.
const SLOT_NS: u64 = 100_000_000;
/// The player runs above everything it measures.
const PRIORITY: i32 = 50;
/// Where it runs.
pub const PLAYER_CPU: u32 = 0;
/// Between two tries of an operation that needs a decision first.
pub const AGAIN_NS: u64 = 20_000;
/// So does what plays the interrupts of the plan.
const ABOVE: i32 = 40;

/// What `play` says about a scenario, beside its recording.
#[derive(Serialize, Deserialize)]
pub struct Played {
    /// CLOCK_MONOTONIC at the scenario's time 0.
    pub start_ns: u64,
    /// What each step returned: nothing, or the name of a refusal.
    pub steps: Vec<String>,
}

/// Play all scenarios, one after the other.
pub fn play(out: &Path, files: &[PathBuf]) -> Result<()> {
    let scripts: Vec<Script> = files.iter().map(|file| Script::read(file)).collect::<Result<_>>()?;
    let cpus = Host::here().cpus().context("CPUs with holes")?;
    // The simulator's switches are paid by who comes in, too.
    // The locks of real machines, although scenarios are played on virtual ones: both kinds are to be run.
    let options =
        Options { cpus, record: true, overheads_stolen: false, locks_fair: true, ..Default::default() };
    let floor_ns = options.floor_ns;
    fine_turns(false);
    let mut kernel = Kernel::load(options)?;
    eprintln!("scenario: loaded at {} ms", now_ns() / 1_000_000);
    for script in &scripts {
        ensure!(script.plan.machine.cpus == cpus, "{}: not for {cpus} CPUs", script.name);
        let file = File::create(out.join(format!("{}.rec", script.name)))?;
        let mut recording = recording::Writer::new(BufWriter::new(file), floor_ns)?;
        let played;
        (played, kernel) = play_one(script, kernel, &mut recording).with_context(|| script.name.clone())?;
        recording.finish()?;
        serde_json::to_writer(File::create(out.join(format!("{}.json", script.name)))?, &played)?;
        eprintln!("scenario: {} played at {} ms", script.name, now_ns() / 1_000_000);
    }
    Ok(())
}

fn play_one<W: Write>(
    script: &Script,
    kernel: Kernel,
    recording: &mut recording::Writer<W>,
) -> Result<(Played, Kernel)> {
    let mut actors = Actors::start(&script.plan)?;
    let mut keep = |_: &[u8], entries: &[u8]| -> Result<()> {
        for chunk in entries.chunks_exact(48) {
            recording.write(&recording::from_bytes(chunk.try_into().context("an entry")?))?;
        }
        Ok(())
    };
    let mut live = Live::enforce(matched(script.plan.clone()), kernel)?;
    live.turn(&mut keep)?;
    let start_ns = (now_ns() + LEAD_NS).next_multiple_of(SLOT_NS);
    set_affinity(0, Cpus::only(PLAYER_CPU))?;
    set_realtime(PRIORITY)?;
    actors.begin_at(start_ns)?;
    sleep_until(start_ns - LEAD_NS / 4);
    fine_turns(true);
    for (index, &pid) in actors.pids.iter().take(script.plan.tasks.len()).enumerate() {
        let leaf = live.kernel().leaf((script.plan.nodes.len() + 1 + index) as u32);
        ensure!(leaf.pid == pid as u32, "task {} has thread {}", script.plan.tasks[index].name, leaf.pid);
    }
    let mut names = Names::of(&script.plan);
    let mut steps = Vec::new();
    for step in &script.steps {
        sleep_until(start_ns + step.at_ns);
        if let Some((cpu, online)) = step.hotplug() {
            let process = in_a_process(|| hotplug(cpu, online))?;
            while !process.ended()? {
                live.turn(&mut keep)?; // what waits there keeps a CPU from going
                sleep_until(now_ns() + 15_000_000);
            }
            continue;
        }
        let mut kernel =
            Enforced { live: &live, pids: &actors.pids, first: script.plan.nodes.len() as u32 + 1 };
        let mut said = names.apply(step, &mut kernel)?;
        for _ in 0..100 {
            if said != "still_running" {
                break;
            }
            sleep_until(now_ns() + AGAIN_NS); // the decision is made meanwhile
            said = names.apply(step, &mut kernel)?;
        }
        steps.push(said.to_string());
    }
    sleep_until(start_ns + script.length_ns);
    fine_turns(false);
    actors.end();
    set_realtime(0)?;
    if let Some(exit) = live.ended() {
        anyhow::bail!("the kernel ended it: {} {}", exit.reason, exit.message);
    }
    live.turn(&mut keep)?;
    live.stop();
    live.drain(&mut keep)?;
    ensure!(live.kernel().side().lost_entries == 0, "entries were lost");
    Ok((Played { start_ns, steps }, live.release()?))
}

/// Every task takes the thread of its name.
fn matched(mut plan: Plan) -> Plan {
    for (index, task) in plan.tasks.iter().enumerate() {
        let comm = Glob::new(&task.name).ok();
        let any = [Matcher { comm, ..Default::default() }].into();
        plan.entries.push(MatchEntry {
            target: Child::Task(index),
            any,
            copy: None,
            trusts_names: true,
            spot: Spot::default(),
        });
    }
    plan
}

/// The plan in the kernel, and who plays its tasks.
struct Enforced<'a> {
    live: &'a Live,
    pids: &'a [i32],
    first: u32,
}

impl Machine for Enforced<'_> {
    fn control(&mut self) -> Box<dyn Control + '_> {
        Box::new(self.live.kernel())
    }
    fn root_edge(&self, cpu: u32) -> u32 {
        self.live.kernel().cpu(cpu).root_edge
    }
    /// The kernel tells the scheduler of it.
    fn allow(&mut self, task: u32, cpus: Cpus) -> Result<(), Refusal> {
        let pid = self.pids[(task - self.first) as usize];
        set_affinity(pid, cpus).map_err(|error| Refusal::Call(format!("{error:#}")))
    }
    fn constrain(&mut self, task: u32, work_ns: u64, within_ns: u64) -> Result<(), Refusal> {
        self.live.kernel().constrain(task, work_ns, within_ns)
    }
    fn unconstrain(&mut self, task: u32) -> Result<(), Refusal> {
        self.live.kernel().unconstrain(task)
    }
}

fn set_affinity(pid: i32, cpus: Cpus) -> Result<()> {
    // SAFETY: the mask is as long as is said.
    let code = unsafe { libc::sched_setaffinity(pid, size_of::<Cpus>(), cpus.words().as_ptr().cast()) };
    ensure!(code == 0, "affinity: {}", IoError::last_os_error());
    Ok(())
}

/// A process that does one thing.
struct Process(i32);

fn in_a_process(work: impl FnOnce() -> Result<()>) -> Result<Process> {
    // SAFETY: this process has one thread, so the child can go on with everything.
    match unsafe { libc::fork() } {
        -1 => anyhow::bail!("fork: {}", IoError::last_os_error()),
        0 => {
            let done = work();
            if let Err(why) = &done {
                eprintln!("scenario: {why:#}");
            }
            // SAFETY: no arguments but the code; what the parent has open stays as it is.
            unsafe { libc::_exit(done.is_err().into()) }
        }
        pid => Ok(Process(pid)),
    }
}

impl Process {
    fn ended(&self) -> Result<bool> {
        let mut status = 0;
        // SAFETY: a child of ours.
        match unsafe { libc::waitpid(self.0, &mut status, libc::WNOHANG) } {
            0 => Ok(false),
            _ => {
                ensure!(status == 0, "a process ended with status {status}");
                Ok(true)
            }
        }
    }
}

fn hotplug(cpu: u32, online: bool) -> Result<()> {
    set_realtime(0)?;
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/online");
    let wanted = if online { "1" } else { "0" };
    if std::fs::read_to_string(&path)?.trim() != wanted {
        std::fs::write(&path, wanted)?;
    }
    Ok(())
}

fn set_realtime(priority: i32) -> Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    let policy = if priority > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    // SAFETY: a valid parameter; 0 is the caller.
    let code = unsafe { libc::sched_setscheduler(0, policy, &param) };
    ensure!(code == 0, "scheduling class: {}", IoError::last_os_error());
    Ok(())
}

/// Turns of virtual CPUs are short, or as long as a tick, which is easier for the host (guest/init.c).
fn fine_turns(fine: bool) {
    if Path::new("/etc/tierce/turns").exists() {
        // SAFETY: numbers.
        unsafe { libc::kill(1, if fine { libc::SIGUSR2 } else { libc::SIGUSR1 }) };
    }
}

fn sleep_until(at_ns: u64) {
    let at =
        libc::timespec { tv_sec: (at_ns / 1_000_000_000) as i64, tv_nsec: (at_ns % 1_000_000_000) as i64 };
    // SAFETY: a valid time; nothing is written for absolute ones.
    unsafe {
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

// ---- actors: processes that follow the loads of the plan -----------------------------------------------------------

struct Actors {
    pids: Vec<i32>,
    /// What they read their time 0 from.
    pipe: Option<File>,
    read: File,
}

impl Actors {
    /// One for each task of the plan; they wait to be told when to begin.
    fn start(plan: &Plan) -> Result<Actors> {
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors, which are ours then.
        let (read, write) = unsafe {
            ensure!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) == 0, "{}", IoError::last_os_error());
            (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1]))
        };
        let mut actors = Actors { pids: Vec::new(), pipe: Some(write), read };
        for index in 0..plan.tasks.len() + plan.machine.interrupts.len() {
            // SAFETY: this process has one thread, so the child can go on with everything.
            match unsafe { libc::fork() } {
                -1 => anyhow::bail!("fork: {}", IoError::last_os_error()),
                0 => {
                    actors.pipe = None;
                    match plan.tasks.get(index) {
                        Some(task) => act(task, Program::new(plan, index, 1), &mut actors.read),
                        None => {
                            interrupt(&plan.machine.interrupts[index - plan.tasks.len()], &mut actors.read)
                        }
                    }
                }
                pid => actors.pids.push(pid),
            }
        }
        std::thread::sleep(Duration::from_millis(20)); // until they all wait
        Ok(actors)
    }

    fn begin_at(&mut self, start_ns: u64) -> Result<()> {
        let mut pipe = self.pipe.take().context("begun already")?;
        let times: Vec<u8> = self.pids.iter().flat_map(|_| start_ns.to_ne_bytes()).collect();
        pipe.write_all(&times)?; // less than a pipe takes in one piece
        Ok(())
    }

    fn end(&mut self) {
        for &pid in &self.pids {
            // SAFETY: children of ours that nobody has waited for.
            unsafe {
                libc::kill(pid, libc::SIGKILL);
                libc::waitpid(pid, std::ptr::null_mut(), 0);
            }
        }
        self.pids.clear();
    }
}

impl Drop for Actors {
    fn drop(&mut self) {
        self.end();
    }
}

fn cpu_ns() -> u64 {
    // SAFETY: an all-zero timespec is valid, and the call fills it.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Use the CPU until its own CPU time is `until_ns`. Between two looks at that, a system call, it goes by the clock.
fn spin_until(until_ns: u64) {
    loop {
        let used_ns = cpu_ns();
        if used_ns >= until_ns {
            return;
        }
        let look_ns = now_ns().saturating_add(until_ns - used_ns);
        while now_ns() < look_ns {}
    }
}

/// Wait for the time 0 that everybody is told.
fn prepare(name: &str, read: &mut File) -> u64 {
    let name: Vec<u8> = name.bytes().chain([0]).collect();
    // SAFETY: a NUL-terminated name, numbers.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::prctl(libc::PR_SET_TIMERSLACK, 1);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
    spin_until(cpu_ns() + 100_000);
    sleep_until(now_ns() + 1_000);
    let mut start = [0; 8];
    match read.read_exact(&mut start) {
        Ok(()) => u64::from_ne_bytes(start),
        Err(_) => wait_for_the_end(),
    }
}

fn wait_for_the_end() -> ! {
    loop {
        // SAFETY: no arguments; a signal ends the process.
        unsafe { libc::pause() };
    }
}

/// A task's life, once rehearsed in short: then whatever it touches is in memory, and its own.
fn act(task: &Task, (program, begin_ns): (Program, u64), read: &mut File) -> ! {
    let free = set_affinity(0, task.affinity.unwrap_or(Cpus::ALL));
    perform(program.clone(), now_ns(), Some(8));
    let start_ns = prepare(&task.name, read);
    if begin_ns != NEVER && free.is_ok() {
        sleep_until(start_ns + begin_ns);
        perform(program.clone(), start_ns, None);
    }
    wait_for_the_end();
}

/// Follow the program. What it is to use counts from the begin, so its system calls are part of the work it has.
fn perform(mut program: Program, start_ns: u64, rehearsal: Option<u32>) {
    let mut owed_ns = cpu_ns();
    for _ in 0..rehearsal.unwrap_or(u32::MAX) {
        match program.step(now_ns().saturating_sub(start_ns)).next {
            Next::Run { work_ns, .. } => {
                owed_ns = owed_ns.saturating_add(if rehearsal.is_some() { 1_000 } else { work_ns });
                spin_until(owed_ns);
            }
            Next::Wait(at_ns) => {
                sleep_until(if rehearsal.is_some() { now_ns() } else { start_ns.saturating_add(at_ns) });
            }
            Next::End => return,
        }
    }
}

/// A thread above the plan takes what the simulator's interrupts take.
fn interrupt(source: &Interrupt, read: &mut File) -> ! {
    let start_ns = prepare("above", read);
    let takes_ns = source.takes.max_ns();
    let cpus = Cpus::only(source.cpu.unwrap_or(0));
    if set_affinity(0, cpus).and_then(|()| set_realtime(ABOVE)).is_err() {
        wait_for_the_end();
    }
    let (mut at_ns, mut owed_ns) = (start_ns + source.phase_ns, cpu_ns());
    loop {
        sleep_until(at_ns);
        owed_ns += takes_ns;
        spin_until(owed_ns);
        at_ns += source.every_ns;
    }
}
