//! Programs that were calibrated. Whoever starts one need not ask: it is recognised by its executable and the checksums of its profile
//! (`tierce calibrate`), and each of its threads that the profile names gets a request, in the name of its user.
//!
//! A thread of its own looks at profiles and processes, because files may be large or far away. It asks the manager's loop as those do who
//! call over the bus.

mod before;
pub mod profiles;

use super::machine::look;
use super::rates::Rates;
use super::way::Way;
use crate::commands::beside;
use crate::journal::{report, Level};
use anyhow::{ensure, Context, Result};
pub(super) use profiles::numbers;
use profiles::{stamp, Fit, Found, News, Profiles, Stamp, Sums};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tierce_calibrate::{of_machine, Importance, Layer, Machine, Profile, Routine, Store};
use tierce_manager::{Answer, Ask, Asker, Change, Mode, Signal, State, Which, Wish, Wrong};
use tierce_scx::routines::Routines;

/// The label of these requests.
pub const LABEL: &str = "profile";
/// Processes are looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// Profiles are looked at so often.
const PROFILES: Duration = Duration::from_secs(2);
/// Who was refused, and may not even wait, is asked for again after that.
const AGAIN: Duration = Duration::from_secs(10);
/// Of so many looks one is at all processes, whether any have begun since or not.
const ALL_EVERY: u64 = 10;
/// Longest calibration: it watches for 10 s, and reads the program's files.
const CALIBRATION_MAX: Duration = Duration::from_secs(60);
/// Executables that are watched because they have changed, until the manager ends.
const WATCHED_MAX: usize = 256;
/// Threads of a profile that rules hear of.
const THREADS_MAX: usize = 64;

/// `[programs]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Whether programs are recognised.
    pub recognise: bool,
    /// What happens to a program that is not as it was when it was calibrated.
    changed: Changed,
}

impl Default for Config {
    fn default() -> Self {
        Self { recognise: true, changed: Changed::Leave }
    }
}

/// What happens to a program that has changed.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Changed {
    /// Nothing is asked for.
    Leave,
    /// What its profile says is asked for all the same.
    Ask,
    /// It is watched (`tierce calibrate --pid`), and then asked for.
    Calibrate,
}

/// Look at programs from now on.
pub fn start(config: Config, rates: Rates, way: Way) -> Result<()> {
    let thread = std::thread::Builder::new().name("manager-programs".into());
    let watch = move || {
        let mut programs = Programs::new(config, rates, way, Path::new("/"));
        loop {
            programs.look();
            std::thread::sleep(LOOK);
        }
    };
    thread.spawn(watch).context("a thread that looks at programs")?;
    Ok(())
}

struct Programs {
    config: Config,
    rates: Rates,
    way: Way,
    root: PathBuf,
    profiles: Profiles,
    sums: Sums,
    routines: Routines,
    machine: Machine,
    looked: Option<Instant>,
    /// Processes that had begun at the last look, and whether some were new then: they may have become another program since.
    begun: Option<u64>,
    was_new: bool,
    looks: u64,
    /// See [`Programs::end_forgotten`].
    has_ended_forgotten: bool,
    processes: BTreeMap<u32, Process>,
    calibration: Option<Calibration>,
    /// Executables that were watched since they have changed.
    watched: BTreeSet<Stamp>,
}

/// A process of a program that has changed is watched.
struct Calibration {
    child: Child,
    begun: Instant,
    program: PathBuf,
    uid: u32,
}

/// A process whose program has a profile.
struct Process {
    began: u64,
    program: PathBuf,
    executable: Stamp,
    uid: u32,
    /// `None`: it has not been compared yet.
    fit: Option<Fit>,
    threads: BTreeMap<u32, Thread>,
    /// Where its threads began, of names that have several routines.
    begins: BTreeMap<u32, Begin>,
    /// Rules by which threads of it were refused: each is said once.
    refused: BTreeSet<String>,
}

/// A thread that was asked for.
struct Thread {
    began: u64,
    mode: Mode,
    became: Became,
}

/// Where a thread began.
struct Begin {
    began: u64,
    /// Turns since, in which it was not known: it is looked at more and more rarely.
    turns: u32,
    routine: Option<String>,
}

/// A thread that lives.
struct Live {
    tid: u32,
    began: u64,
    name: String,
    routine: Option<String>,
}

impl Live {
    fn entry<'a>(&self, profile: &'a Profile) -> Option<&'a tierce_calibrate::Thread> {
        profile.thread(&self.name, self.routine.as_deref())
    }
}

enum Became {
    /// It has this request.
    Asked(u64),
    /// It was refused. It may be asked for again after a time.
    Refused(Instant),
}

impl Programs {
    fn new(config: Config, rates: Rates, way: Way, root: &Path) -> Self {
        Self {
            config,
            rates,
            way,
            root: root.into(),
            profiles: Profiles::at(root),
            sums: Sums::default(),
            routines: Routines::default(),
            machine: of_machine(Path::new("/")),
            looked: None,
            begun: None,
            was_new: false,
            looks: 0,
            has_ended_forgotten: false,
            processes: BTreeMap::new(),
            calibration: None,
            watched: BTreeSet::new(),
        }
    }

    fn look(&mut self) {
        self.sums.next_turn();
        if self.looked.is_none_or(|at| at.elapsed() >= PROFILES) {
            self.looked = Some(Instant::now());
            self.profiles.look().into_iter().for_each(|news| self.hear(news));
        }
        let begun = begun();
        let is_new = begun != self.begun;
        // One that has begun long ago may become another program.
        let is_due = is_new || self.was_new || self.looks % ALL_EVERY == 0;
        (self.begun, self.was_new, self.looks) = (begun, is_new, self.looks + 1);
        if is_due && !self.profiles.is_empty() {
            self.find();
        }
        self.end_others();
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            if self.compare(pid) && self.ask_for(pid).is_err() {
                break; // no plan is in force: nobody can be asked for now
            }
        }
        self.end_forgotten();
        self.see_to_calibration();
    }

    /// A profile has changed: rules hear of it, and its processes are compared again.
    fn hear(&mut self, news: News) {
        let program = match news {
            News::Wrong(why) => return report(Level::Warn, "profile_unreadable", &why, &[]),
            News::Gone(program) => program,
            News::Profile(user, found) => {
                let signal = Signal { event: "calibrated".into(), data: data(user, &found) };
                // Rules that fail are reported by the manager; without a plan in force there is nobody to hear.
                let _ = self.way.ask(&Asker::SYSTEM, Ask::Signal(signal));
                found.profile.program.executable.path.clone()
            }
        };
        self.begun = None; // processes that run already may be of this program
        for process in self.processes.values_mut().filter(|process| process.program == program) {
            process.fit = None;
        }
    }

    /// Processes that run a program with a profile.
    fn find(&mut self) {
        for pid in numbers("/proc") {
            let executable = PathBuf::from(format!("/proc/{pid}/exe"));
            let Ok(program) = fs::read_link(&executable) else { continue };
            if !self.profiles.knows(&program) {
                continue;
            }
            let (Some(info), Ok(executable)) = (look(pid), stamp(&executable)) else { continue };
            let Some(uid) = info.uid else { continue }; // it is about to become another user's
            let known = self.processes.get(&pid);
            if known.is_some_and(|known| known.began == info.began && known.executable == executable) {
                continue;
            }
            // In another mount namespace a path may lead to another file.
            if !stamp(&program).is_ok_and(|own| own == executable) {
                continue;
            }
            let process = Process {
                began: info.began,
                program,
                executable,
                uid,
                fit: None,
                threads: BTreeMap::new(),
                begins: BTreeMap::new(),
                refused: BTreeSet::new(),
            };
            if let Some(before) = self.processes.insert(pid, process) {
                self.end(before);
            }
        }
    }

    /// Processes that have ended or run another program now.
    fn end_others(&mut self) {
        let runs = |pid: u32, process: &Process| {
            // The same file, also if another one has been installed at its path.
            let executable = stamp(Path::new(&format!("/proc/{pid}/exe")));
            executable.is_ok_and(|now| now[..2] == process.executable[..2])
                && look(pid).is_some_and(|info| info.began == process.began)
        };
        let others = self.processes.iter().filter(|(pid, process)| !runs(**pid, process));
        let others: Vec<u32> = others.map(|(pid, _)| *pid).collect();
        for pid in others {
            if let Some(process) = self.processes.remove(&pid) {
                self.end(process);
            }
        }
    }

    /// Its threads keep nothing: those that live run another program.
    fn end(&self, process: Process) {
        process.threads.into_values().for_each(|thread| self.cancel(&thread));
    }

    fn cancel(&self, thread: &Thread) {
        if let Became::Asked(id) = thread.became {
            // The manager may have ended it together with its thread.
            let _ = self.way.ask(&Asker::SYSTEM, Ask::Cancel(Which { id }));
        }
    }

    /// Whether it is to be asked for.
    fn compare(&mut self, pid: u32) -> bool {
        let Some(process) = self.processes.get_mut(&pid) else { return false };
        let found = self.profiles.of(&process.program, process.uid);
        if process.fit.is_none() || process.fit == Some(Fit::Later) {
            let Some(found) = &found else {
                let threads = std::mem::take(&mut process.threads);
                threads.values().for_each(|thread| self.cancel(thread));
                return false;
            };
            let fit = self.sums.fit(&found.profile, &self.machine, process.uid);
            if let Fit::Changed(what) = &fit {
                tell_changed(pid, process, what, self.config.changed);
            }
            process.fit = Some(fit);
        }
        match process.fit {
            Some(Fit::Same) => true,
            Some(Fit::Changed(_)) => self.config.changed == Changed::Ask,
            _ => false,
        }
    }

    /// Its threads that the profile names. An error: no plan is in force.
    fn ask_for(&mut self, pid: u32) -> Result<(), Wrong> {
        let Some(mut process) = self.processes.remove(&pid) else { return Ok(()) };
        let done = self.ask_for_threads(pid, &mut process);
        self.processes.insert(pid, process);
        done
    }

    fn ask_for_threads(&mut self, pid: u32, process: &mut Process) -> Result<(), Wrong> {
        let Some(found) = self.profiles.of(&process.program, process.uid) else { return Ok(()) };
        let threads = self.threads(pid, process, &found.profile);
        let mut before = std::mem::take(&mut process.threads);
        for live in threads {
            let known = before.remove(&live.tid).filter(|known| known.began == live.began);
            let Some(mode) = live.entry(&found.profile).and_then(|entry| mode(&found.profile, entry)) else {
                known.iter().for_each(|known| self.cancel(known)); // it has another name now
                continue;
            };
            let asked = match known {
                Some(Thread { became: Became::Asked(id), mode: has, .. }) => {
                    if has != mode {
                        self.change(id, &live, process, &mode);
                    }
                    Ok(Some((Became::Asked(id), mode)))
                }
                Some(Thread { became: Became::Refused(at), mode: has, .. })
                    if has == mode && at.elapsed() < AGAIN =>
                {
                    Ok(Some((Became::Refused(at), mode)))
                }
                _ if self.rates.may_ask(self.rates.people.person(process.uid)).is_err() => Ok(None),
                _ => self.ask(&live, process, &found, mode).map(Some),
            };
            match asked {
                Ok(Some((became, mode))) => {
                    process.threads.insert(live.tid, Thread { began: live.began, mode, became });
                }
                Ok(None) => {} // that person has asked for so much that it is another look's turn
                Err(wrong) => {
                    process.threads.append(&mut before);
                    return Err(wrong);
                }
            }
        }
        Ok(())
    }

    /// The profile says something else now.
    fn change(&self, id: u64, live: &Live, process: &Process, mode: &Mode) {
        let change = Ask::Change(Change { id, modes: vec![mode.clone()] });
        let said = match self.way.ask(&Asker::SYSTEM, change) {
            Ok(answer) if answer.state == State::Refused => said(&answer).1,
            Ok(_) => return,
            Err(wrong) => wrong.to_string(),
        };
        self.report(live, process, &format!("request {id} stays as it was: {mode}: {said}"));
    }

    fn report(&self, live: &Live, process: &Process, said: &str) {
        let program = process.program.display().to_string();
        let message =
            format!("{program}: thread {} ({}) of user {}: {said}", live.tid, live.name, process.uid);
        report(Level::Info, "program_recognised", &message, &[("program", (&*program).into())]);
    }

    /// The threads of a process, with their routines where the profile tells threads of their names apart by them.
    fn threads(&mut self, pid: u32, process: &mut Process, profile: &Profile) -> Vec<Live> {
        let mut threads = Vec::new();
        for tid in numbers(format!("/proc/{pid}/task")) {
            let Some(info) = look(tid).filter(|info| info.uid == Some(process.uid)) else { continue };
            let Ok(name) = fs::read_to_string(format!("/proc/{pid}/task/{tid}/comm")) else { continue };
            threads.push(Live { tid, began: info.began, name: name.trim_end().into(), routine: None });
        }
        let (mut before, mut due) = (std::mem::take(&mut process.begins), Vec::new());
        for live in threads.iter().filter(|live| profile.has_routines(&live.name)) {
            let known = before.remove(&live.tid).filter(|known| known.began == live.began);
            let mut begin = known.unwrap_or(Begin { began: live.began, turns: 0, routine: None });
            begin.turns = begin.turns.saturating_add(1);
            if begin.routine.is_none() && begin.turns.is_power_of_two() {
                due.push(live.tid);
            }
            process.begins.insert(live.tid, begin);
        }
        if !due.is_empty() {
            let listed: Vec<PathBuf> =
                profile.program.libraries.iter().map(|file| file.path.clone()).collect();
            let person = self.rates.people.person(process.uid);
            let found = self.routines.of(person, pid, &due, move |path| listed.iter().any(|own| own == path));
            for (tid, routine) in due.iter().zip(found) {
                if let Some(begin) = process.begins.get_mut(tid) {
                    begin.routine = routine.map(|routine| routine.to_string());
                }
            }
        }
        for live in &mut threads {
            live.routine = process.begins.get(&live.tid).and_then(|begin| begin.routine.clone());
        }
        threads
    }

    /// In the name of its user, who may ask for no other threads than his own: what becomes of it, and which mode it has then.
    fn ask(
        &self,
        live: &Live,
        process: &mut Process,
        found: &Found,
        mode: Mode,
    ) -> Result<(Became, Mode), Wrong> {
        let (tid, name) = (live.tid, &*live.name);
        let mut wish = Wish {
            thread: Some(tid),
            modes: vec![mode.clone()],
            wait: true,
            label: Some(LABEL.into()),
            ..Wish::default()
        };
        let importance = found.profile.calibration.importance.name();
        for (key, value) in [
            ("profile", found.layer.name().into()),
            ("importance", importance.into()),
            ("program", process.program.to_string_lossy().into_owned()),
            ("name", name.to_string()),
        ] {
            wish.about.insert(key.into(), Value::String(value));
        }
        let routine = live.entry(&found.profile).and_then(|entry| entry.routine.as_ref());
        if let Some(Routine { place, .. }) = routine {
            wish.about.insert("routine".into(), Value::String(place.clone()));
        }
        let refused = |process: &mut Process, wrong: &Wrong| {
            if process.refused.insert(wrong.rule.clone()) {
                self.report(live, process, &format!("{mode}: {wrong}"));
            }
            Became::Refused(Instant::now())
        };
        let became = match self.way.ask(&Asker::user(process.uid), Ask::Request(Box::new(wish))) {
            Ok(Answer { state: State::Refused, reason: Some(wrong), .. }) => refused(process, &wrong),
            Ok(answer) => {
                let (became, said) = said(&answer);
                self.report(live, process, &format!("{mode}: {said}"));
                became
            }
            Err(wrong) if wrong.rule == "plan_must_be_in_force" => return Err(wrong),
            Err(wrong) if wrong.rule == "thread_must_have_no_request" => match self.request_of(tid) {
                Some((id, has)) => return Ok((Became::Asked(id), has)),
                None => refused(process, &wrong),
            },
            Err(wrong) => refused(process, &wrong),
        };
        Ok((became, mode))
    }

    /// One program at a time is watched. What is found holds for the user whose process it was: others may use the program in other ways.
    fn see_to_calibration(&mut self) {
        if let Some(running) = &mut self.calibration {
            let ended = running.child.try_wait();
            if matches!(ended, Ok(None)) && running.begun.elapsed() < CALIBRATION_MAX {
                return;
            }
            let _ = running.child.kill(); // it may have ended
            let _ = running.child.wait();
            if let Some(Calibration { program, uid, .. }) = self.calibration.take() {
                if let Err(error) = self.keep(&program, uid) {
                    not_calibrated(&program, &error);
                }
            }
            self.looked = None;
            return;
        }
        if self.config.changed != Changed::Calibrate || self.watched.len() >= WATCHED_MAX {
            return;
        }
        let is_due = |process: &&Process| {
            matches!(process.fit, Some(Fit::Changed(_))) && !self.watched.contains(&process.executable)
        };
        let Some((pid, process)) = self.processes.iter().find(|(_, process)| is_due(process)) else { return };
        self.watched.insert(process.executable);
        let (program, uid) = (process.program.clone(), process.uid);
        let before = self.profiles.of(&program, uid).map(|found| found.profile.calibration);
        match before.map_or(Ok(None), |before| calibrate(*pid, &self.root, before).map(Some)) {
            Ok(Some(child)) => {
                self.calibration = Some(Calibration { child, begun: Instant::now(), program, uid });
            }
            Ok(None) => {} // the profile is gone
            Err(error) => not_calibrated(&program, &error),
        }
    }

    /// A new profile for the user, if the program has a period.
    fn keep(&self, program: &Path, uid: u32) -> Result<()> {
        let file = self.root.join(CALIBRATED);
        let text = fs::read_to_string(&file).context("no profile was written")?;
        fs::remove_file(&file)?;
        let profile: Profile = text.parse()?;
        ensure!(profile.program.executable.path == program, "another program was watched");
        ensure!(profile.has_period(), "no thread has a period");
        match uid {
            0 => Store::at(&self.root, None).keep(Layer::Machine, &profile)?,
            uid => Store::of_user(&self.root, uid).keep(Layer::User, &profile)?,
        };
        Ok(())
    }
}

/// Where a calibration writes what it has found.
const CALIBRATED: &str = "var/lib/tierce/calibrated.toml";

fn not_calibrated(program: &Path, why: &anyhow::Error) {
    let message = format!("{}: it could not be calibrated: {why:#}", program.display());
    report(Level::Warn, "program_not_calibrated", &message, &[]);
}

/// What has become of a request, and in words.
fn said(answer: &Answer) -> (Became, String) {
    let why = answer.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    match (answer.state, &answer.about) {
        (State::Granted, Some(about)) => {
            (Became::Asked(about.id), format!("granted as request {}", about.id))
        }
        (State::Pending, Some(about)) => {
            (Became::Asked(about.id), format!("request {} waits{why}", about.id))
        }
        _ => (Became::Refused(Instant::now()), format!("refused{why}")),
    }
}

/// What an entry of the profile asks for.
fn mode(profile: &Profile, entry: &tierce_calibrate::Thread) -> Option<Mode> {
    let own = entry.reservation?;
    let value = match profile.calibration.importance {
        Importance::Low => 0,
        Importance::Normal => 1,
        Importance::High => 2,
    };
    Mode::measured(own.budget_ns, own.period_ns, value).ok()
}

/// What rules get with `calibrated`. The names in it are what somebody has chosen.
fn data(user: Option<u32>, found: &Found) -> Value {
    let threads = found.profile.threads.iter().filter_map(|thread| {
        let own = thread.reservation?;
        let routine = thread.routine.as_ref().map(|routine| &routine.place);
        let (budget_us, period_us) = (own.budget_ns / 1000, own.period_ns / 1000);
        Some(json!({ "name": thread.name, "routine": routine, "budget_us": budget_us, "period_us": period_us }))
    });
    json!({
        "program": found.profile.program.executable.path.to_string_lossy(),
        "layer": found.layer.name(),
        "user": user,
        "threads": threads.take(THREADS_MAX).collect::<Vec<_>>(),
    })
}

fn tell_changed(pid: u32, process: &Process, what: &str, policy: Changed) {
    let program = process.program.display().to_string();
    let then = match policy {
        Changed::Leave => {
            format!("nothing is asked for it; `tierce calibrate --under-plan --pid {pid}` measures it again")
        }
        Changed::Ask => "what its profile says is asked for all the same".into(),
        Changed::Calibrate => "it is calibrated again".into(),
    };
    let message =
        format!("{program} (process {pid}) is not as it was when it was calibrated: {what:.512}; {then}");
    report(Level::Warn, "program_changed", &message, &[("program", (&*program).into())]);
}

/// Watch a process that runs, and none of those that it starts, as it was watched before.
fn calibrate(pid: u32, root: &Path, before: tierce_calibrate::Calibration) -> Result<Child> {
    let (program, out) = (beside::program("tierce")?, root.join(CALIBRATED));
    let _ = fs::remove_file(&out); // of one that was ended
    let mut command = Command::new(&program);
    command.args(["calibrate", "--under-plan", "--alone", "--json", "--pid", &pid.to_string(), "--out"]);
    command.arg(&out).args(["--importance", before.importance.name()]);
    command.args(["--margin", &format!("{}%", before.margin.0)]);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().map_err(|why| beside::refused(&program, why))
}

/// Processes and threads that have begun since boot.
fn begun() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("processes "))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::profiles::FILE_MAX;
    use super::*;
    use crate::manager::people::People;
    use crate::manager::twins::{entry, Twins};
    use crate::manager::way::way;
    use std::io::Write;
    use std::os::unix::process::CommandExt;
    use std::sync::{Arc, Mutex};
    use tierce_calibrate::{of_program, Calibration, Layer, Margin, Reservation, Store};
    use tierce_manager::{List, Principal, Shown};

    const MS: u64 = 1_000_000;

    /// A folder with a shell as its program, and what the loop of a manager was asked.
    struct Scene {
        folder: PathBuf,
        programs: Programs,
        asked: Arc<Mutex<Vec<Ask>>>,
        /// The requests that there are.
        listed: Arc<Mutex<Vec<Shown>>>,
    }

    impl Scene {
        fn new(name: &str, changed: Changed) -> Self {
            let folder = std::env::temp_dir().join(format!("tierce-programs-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&folder);
            fs::create_dir_all(folder.join("etc")).unwrap();
            let folder = folder.canonicalize().unwrap();
            fs::copy("/bin/sh", folder.join("player")).unwrap();
            let (way, asks) = way().unwrap();
            let asked = Arc::new(Mutex::new(Vec::new()));
            let heard = asked.clone();
            let listed = Arc::new(Mutex::new(Vec::new()));
            let shown = listed.clone();
            std::thread::spawn(move || loop {
                std::thread::sleep(Duration::from_millis(1));
                let Some(one) = asks.next() else { continue };
                let mut all = heard.lock().unwrap();
                all.push(one.ask.clone());
                let mut answer = answer(&one.ask, all.len() as u64);
                if matches!(one.ask, Ask::List(_)) {
                    answer.requests = shown.lock().unwrap().clone();
                }
                drop(all);
                one.answer(Ok(answer));
            });
            let config = Config { recognise: true, changed };
            let mut programs = Programs::new(config, Rates::new(People::of(&folder)), way, &folder);
            programs.has_ended_forgotten = true; // there was no manager before
            Self { folder, programs, asked, listed }
        }

        fn program(&self) -> PathBuf {
            self.folder.join("player")
        }

        /// It waits for a line, and then becomes `cat`.
        fn run(&self) -> Child {
            // SAFETY: no arguments.
            self.run_as(unsafe { libc::geteuid() })
        }

        fn run_as(&self, uid: u32) -> Child {
            let mut command = Command::new(self.program());
            command.uid(uid);
            command.args(["-c", "read x; exec cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
            let child = command.spawn().unwrap();
            let name = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&name).unwrap().trim() != "player" {
                std::thread::sleep(Duration::from_millis(1));
            }
            child
        }

        fn keep(&self, store: &Store, layer: Layer, budget_ns: u64) -> PathBuf {
            store.keep(layer, &profile(&self.program(), budget_ns)).unwrap()
        }

        /// What was asked since, after a look at everything.
        fn look(&mut self) -> Vec<Ask> {
            self.asked.lock().unwrap().clear();
            (self.programs.looked, self.programs.begun) = (None, None);
            self.programs.look();
            self.asked.lock().unwrap().clone()
        }
    }

    impl Drop for Scene {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }

    fn profile(program: &Path, budget_ns: u64) -> Profile {
        let calibration =
            Calibration { watched_ns: 1000 * MS, lost: 0, importance: Importance::High, margin: Margin(20) };
        let thread = entry("player", None, Reservation { budget_ns, period_ns: 10 * MS });
        Profile {
            program: of_program(program, &BTreeSet::new()).unwrap(),
            machine: of_machine(Path::new("/")),
            calibration,
            threads: vec![thread],
        }
    }

    fn shown(id: u64, thread: Option<u32>, label: Option<&str>) -> Shown {
        Shown {
            id,
            state: State::Granted,
            owner: Principal::System,
            label: label.map(str::to_string),
            thread,
            matches: Vec::new(),
            modes: Vec::new(),
            granted: None,
            reason: None,
            ending: None,
            divided: Vec::new(),
        }
    }

    fn answer(ask: &Ask, id: u64) -> Answer {
        let mut answer =
            Answer::new(if matches!(ask, Ask::Request(_)) { State::Granted } else { State::Done });
        if let Ask::Request(wish) = ask {
            let about = shown(id, wish.thread, wish.label.as_deref());
            answer.about = Some(Shown { modes: wish.modes.clone(), ..about });
        }
        answer
    }

    fn mode_of(budget_ms: u64) -> Mode {
        Mode::budget(budget_ms * MS, 10 * MS, 2).unwrap()
    }

    #[test]
    fn a_program_that_starts_is_asked_for() {
        let mut scene = Scene::new("starts", Changed::Leave);
        let store = Store::at(&scene.folder, None);
        let mut child = scene.run();
        assert_eq!(scene.look(), [], "nobody has calibrated it");
        scene.keep(&store, Layer::System, 2 * MS);
        let asked = scene.look();
        let [Ask::Signal(signal), Ask::Request(wish)] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!(
            (&signal.event[..], &signal.data["threads"][0]["budget_us"]),
            ("calibrated", &json!(2000))
        );
        assert_eq!((wish.thread, &wish.modes[..], wish.wait), (Some(child.id()), &[mode_of(2)][..], true));
        assert_eq!((&wish.about["profile"], &wish.about["importance"]), (&json!("system"), &json!("high")));
        assert_eq!(scene.look(), [], "once is enough");
        // Calibrated again: a stronger layer, and other numbers.
        scene.keep(&store, Layer::Machine, 3 * MS);
        let asked = scene.look();
        let [Ask::Signal(_), Ask::Change(change)] = &asked[..] else { panic!("{asked:?}") };
        assert_eq!((change.id, &change.modes[..]), (2, &[mode_of(3)][..]));
        // It becomes another program, which has no profile.
        child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        while fs::read_to_string(format!("/proc/{}/comm", child.id())).unwrap().trim() != "cat" {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(scene.look(), [Ask::Cancel(Which { id: 2 })]);
        drop(child.stdin.take());
        child.wait().unwrap();
        // The profile goes while another one runs.
        let mut child = scene.run();
        assert!(matches!(&scene.look()[..], [Ask::Request(_)]));
        // An update of the program takes nothing from the one that runs.
        fs::remove_file(scene.program()).unwrap();
        fs::copy("/bin/sh", scene.program()).unwrap();
        assert_eq!(scene.look(), []);
        for layer in [Layer::Machine, Layer::System] {
            fs::remove_file(store.file(layer, &scene.program()).unwrap()).unwrap();
        }
        assert_eq!(scene.look(), [Ask::Cancel(Which { id: 1 })]);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_was_asked_for_by_a_profile_that_is_gone_ends_when_the_manager_begins() {
        let mut scene = Scene::new("forgotten", Changed::Leave);
        let (mut child, own) = (scene.run(), Some(std::process::id()));
        let of_child = shown(7, Some(child.id()), Some(LABEL));
        let gone = shown(9, Some(u32::MAX >> 1), Some(LABEL)); // the manager sees to that
        *scene.listed.lock().unwrap() =
            vec![of_child, shown(8, own, None), gone, shown(10, None, Some(LABEL))];
        scene.programs.has_ended_forgotten = false;
        assert_eq!(scene.look(), [Ask::List(List {}), Ask::Cancel(Which { id: 7 })]);
        assert_eq!(scene.look(), [], "once");
        // An update of the program, while no manager was there, takes nothing from the one that runs.
        scene.keep(&Store::at(&scene.folder, None), Layer::System, 2 * MS);
        fs::remove_file(scene.program()).unwrap();
        fs::copy("/bin/sh", scene.program()).unwrap();
        scene.programs.has_ended_forgotten = false;
        let asked = scene.look();
        assert!(asked.contains(&Ask::List(List {})));
        assert!(!asked.iter().any(|ask| matches!(ask, Ask::Cancel(_))), "{asked:?}");
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn threads_of_one_name_get_what_their_routines_need() {
        let mut scene = Scene::new("twins", Changed::Leave);
        let store = Store::at(&scene.folder, None);
        let twins = Twins::start(&scene.folder.join("twins"));
        let mut profile = twins.profile();
        store.keep(Layer::System, &profile).unwrap();
        let of = |budget_ms| vec![Mode::budget(budget_ms * MS, 20 * MS, 0).unwrap()];
        let requests = |asked: &[Ask]| {
            let of_thread = |ask: &Ask| match ask {
                Ask::Request(wish) => {
                    Some((wish.thread.unwrap(), wish.modes.clone(), wish.about.get("routine").cloned()))
                }
                _ => None,
            };
            let mut all: Vec<_> = asked.iter().filter_map(of_thread).collect();
            all.sort_by_key(|(tid, ..)| *tid);
            all
        };
        let own = |(tid, place): &(u32, String), budget_ms| (*tid, of(budget_ms), Some(json!(place)));
        let mut expected = [own(&twins.light, 2), own(&twins.heavy, 5)];
        expected.sort_by_key(|(tid, ..)| *tid);
        let asked = scene.look();
        assert_eq!(requests(&asked), expected);
        let Ask::Signal(signal) = &asked[0] else { panic!("{asked:?}") };
        assert_eq!(signal.data["threads"][1]["routine"], json!(twins.heavy.1));
        assert_eq!(scene.look(), [], "once is enough");
        // One entry holds for all others of the name, one for the heavy one alone.
        profile.threads[0].routine = None;
        store.keep(Layer::Machine, &profile).unwrap();
        assert!(matches!(&scene.look()[..], [Ask::Signal(_)]), "each has the same as before");
        // The light one is in no entry: it keeps nothing.
        profile.threads.remove(0);
        store.keep(Layer::Machine, &profile).unwrap();
        assert!(matches!(&scene.look()[..], [Ask::Signal(_), Ask::Cancel(_)]));
        // A C library that the profile does not list is not read: nobody's routine is known.
        drop(twins);
        let twins = Twins::start(&scene.folder.join("twins"));
        let mut profile = twins.profile();
        profile.program.libraries.clear();
        store.keep(Layer::Machine, &profile).unwrap();
        assert_eq!(requests(&scene.look()), []);
        profile.threads[0].routine = None;
        store.keep(Layer::Machine, &profile).unwrap();
        let both = requests(&scene.look());
        assert!(both.len() == 2 && both.iter().all(|it| it.1 == of(2) && it.2.is_none()), "{both:?}");
    }

    #[test]
    fn a_program_that_has_changed_is_left_or_asked_for() {
        for changed in [Changed::Leave, Changed::Ask] {
            let mut scene = Scene::new("changed", changed);
            scene.keep(&Store::at(&scene.folder, None), Layer::System, 2 * MS);
            let mut text = fs::read(scene.program()).unwrap();
            text.push(0); // what comes after the sections of an executable does nothing
            fs::remove_file(scene.program()).unwrap();
            fs::write(scene.program(), text).unwrap();
            fs::set_permissions(scene.program(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .unwrap();
            let mut child = scene.run();
            let asked = scene.look();
            let is_asked = asked.iter().any(|ask| matches!(ask, Ask::Request(_)));
            assert_eq!(is_asked, changed == Changed::Ask, "{asked:?}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Twenty at once, as for his own requests; the rest of them one after the other.
    #[test]
    fn programs_of_a_user_have_his_rate() {
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } == 0 {
            let mut scene = Scene::new("rate", Changed::Leave);
            scene.keep(&Store::at(&scene.folder, None), Layer::System, 2 * MS);
            scene.look();
            // As many processes of one user, who is nobody with a name.
            let mut children: Vec<Child> = (0..30).map(|_| scene.run_as(61_184)).collect();
            let requests = |asked: &[Ask]| asked.iter().filter(|ask| matches!(ask, Ask::Request(_))).count();
            let begun = std::time::Instant::now();
            let first = requests(&scene.look());
            let more = 1 + begun.elapsed().as_millis() as usize / 100; // ten per second
            assert!((20..=20 + more).contains(&first), "{first}");
            let mut all = first;
            while all < children.len() {
                std::thread::sleep(Duration::from_millis(100));
                all += requests(&scene.look());
            }
            assert_eq!(all, children.len());
            children.iter_mut().for_each(|child| child.kill().unwrap());
            children.iter_mut().for_each(|child| _ = child.wait().unwrap());
        }
    }

    #[test]
    fn what_is_kept_for_a_user_holds_for_his_processes_alone() {
        let folder = Scene::new("users", Changed::Leave);
        // SAFETY: no arguments.
        let own = unsafe { libc::geteuid() };
        let store = Store::of_user(&folder.folder, own);
        folder.keep(&store, Layer::User, 4 * MS);
        let file = folder.keep(&store, Layer::Machine, 5 * MS);
        let mut profiles = Profiles::at(&folder.folder);
        assert_eq!(profiles.look().len(), 2);
        let budget = |profiles: &Profiles, uid: u32| {
            let found = profiles.of(&folder.program(), uid).unwrap();
            found.profile.threads[0].reservation.unwrap().budget_ns
        };
        assert_eq!((budget(&profiles, own), budget(&profiles, own + 1)), (4 * MS, 5 * MS));
        assert!(profiles.look().is_empty(), "nothing has changed");
        // Pipes and files without an end hold nobody up.
        let pipe = std::ffi::CString::new(file.with_file_name("pipe.toml").to_str().unwrap()).unwrap();
        // SAFETY: the path ends with 0.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        std::os::unix::fs::symlink("/dev/zero", file.with_file_name("zero.toml")).unwrap();
        std::os::unix::fs::symlink("/", file.with_file_name("all")).unwrap();
        let news = profiles.look();
        let wrong = |one: &News| matches!(one, News::Wrong(why) if why.contains("not a regular file"));
        assert!(news.len() == 2 && news.iter().all(wrong));
    }

    #[test]
    fn one_user_has_so_much_read_and_others_their_turn() {
        let scene = Scene::new("turns", Changed::Leave);
        let big = scene.folder.join("big");
        let file = fs::File::create(&big).unwrap();
        file.set_len(70 << 20).unwrap();
        let profile = profile(&scene.program(), MS);
        let mut of_big = profile.clone();
        of_big.program.libraries = vec![tierce_calibrate::File { path: big, sha256: String::new() }];
        let machine = of_machine(Path::new("/"));
        let mut sums = Sums::default();
        assert!(matches!(sums.fit(&of_big, &machine, 7), Fit::Changed(_)));
        file.set_len(71 << 20).unwrap(); // another one
        let mut other = Sums::default();
        assert!(matches!(other.fit(&of_big, &machine, 7), Fit::Changed(_)));
        fs::write(scene.folder.join("player"), "abc").unwrap();
        let changed = tierce_calibrate::File::read(&scene.program()).unwrap();
        let mut third = profile.clone();
        third.program.executable = changed;
        assert_eq!(other.fit(&third, &machine, 7), Fit::Later, "71 MiB were read for user 7");
        assert_eq!(other.fit(&third, &machine, 8), Fit::Same);
        other.next_turn();
        assert_eq!(other.fit(&third, &machine, 7), Fit::Same);
        file.set_len(FILE_MAX + 1).unwrap();
        let Fit::Changed(why) = other.fit(&of_big, &machine, 7) else { panic!() };
        assert!(why.contains("bytes, bound 268435456"), "{why}");
    }
}
