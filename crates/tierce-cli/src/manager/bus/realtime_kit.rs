//! `org.freedesktop.RealtimeKit1`: audio programs, games and browsers call it for threads of theirs. They get a reservation in place of
//! SCHED_RR, and need no change.
//!
//! Who may ask for what, and the errors, are RealtimeKit's: a thread is one of the caller's user and of the process that calls (or is named);
//! the process has limited the time for which a real-time thread may run without a wait (RLIMIT_RTTIME); priorities have bounds. Which
//! priority is asked for decides nothing but what the request is worth to rules.

use super::caller::{Caller, Callers};
use super::sums::Sums;
use crate::manager::access::Action;
use crate::manager::machine::look;
use crate::manager::way::Way;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tierce_calibrate::Store;
use tierce_manager::{Answer, Ask, Asker, List, Mode, State, ThreadInfo, Which, Wish, Wrong};
use tierce_scx::routines::Routines;
use zbus::message::Header;
use zbus::{fdo, interface};

pub const NAME: &str = "org.freedesktop.RealtimeKit1";
pub const PATH: &str = "/org/freedesktop/RealtimeKit1";

/// The label of these requests.
const LABEL: &str = "realtimekit";
/// Threads whose nice value has been changed and is remembered, of one person and of all.
const NICE_EACH: usize = 128;
const NICE_MAX: usize = 1024;

/// `[realtimekit]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Config {
    /// Answer to that name.
    pub enabled: bool,
    /// What a thread gets that has no profile.
    modes: Vec<Mode>,
    /// Whether profiles (`tierce calibrate`) are looked for.
    profiles: bool,
    max_realtime_priority: i32,
    min_nice_level: i32,
    rttime_usec_max: i64,
}

impl Default for Config {
    /// Numbers as RealtimeKit has them.
    fn default() -> Self {
        Self {
            enabled: true,
            modes: Mode::budget(2_000_000, 10_000_000, 0).into_iter().collect(),
            profiles: true,
            max_realtime_priority: 20,
            min_nice_level: -15,
            rttime_usec_max: 200_000,
        }
    }
}

/// Threads with another nice value, when each began, and for which person it counts.
type Nice = BTreeMap<u32, (u64, u32)>;

pub struct RealtimeKit1<E> {
    callers: Arc<Callers>,
    way: Way,
    config: Config,
    exit: E,
    nice: Mutex<Nice>,
    routines: Mutex<Routines>,
    sums: Sums,
}

/// A thread that is asked for.
struct Wanted {
    caller: Caller,
    pid: u32,
    tid: u32,
    info: ThreadInfo,
}

impl<E: Fn() + Send + Sync + 'static> RealtimeKit1<E> {
    pub fn new(callers: Arc<Callers>, way: Way, config: Config, exit: E) -> Self {
        Self {
            callers,
            way,
            config,
            exit,
            nice: Mutex::default(),
            routines: Mutex::default(),
            sums: Sums::default(),
        }
    }

    /// A thread of the caller's user, in that process or the caller's.
    fn wanted(
        &self,
        header: &Header,
        process: Option<u64>,
        thread: u64,
        action: Action,
    ) -> fdo::Result<Wanted> {
        let caller = self.callers.of(header).map_err(denied)?;
        let process = process.or(caller.pid.map(u64::from));
        let number = |number: u64| u32::try_from(number).ok().filter(|number| *number > 0);
        let gone = || fdo::Error::Failed("No such file or directory".into());
        let pid = process.and_then(number).ok_or_else(gone)?;
        let tid = if thread == 0 { pid } else { number(thread).ok_or_else(gone)? };
        if !Path::new(&format!("/proc/{pid}/task/{tid}")).exists() {
            return Err(gone());
        }
        let info = look(tid).ok_or_else(gone)?;
        if !caller.asker.is_system() && info.uid != Some(caller.asker.uid) {
            return Err(fdo::Error::AccessDenied(format!("thread {tid} is another user's")));
        }
        self.callers.check(&caller, action).map_err(denied)?;
        Ok(Wanted { caller, pid, tid, info })
    }

    fn real_time(
        &self,
        header: &Header,
        process: Option<u64>,
        thread: u64,
        priority: u32,
    ) -> fdo::Result<()> {
        let (least, most) = (1, self.config.max_realtime_priority);
        let priority = i32::try_from(priority).ok().filter(|it| (least..=99).contains(it));
        let priority = priority.ok_or_else(|| fdo::Error::Failed("Invalid argument".into()))?;
        if priority > most {
            return Err(fdo::Error::AccessDenied(format!("priority {priority}, bound {most}")));
        }
        let wanted = self.wanted(header, process, thread, Action::RealTime)?;
        let limits = fs::read_to_string(format!("/proc/{}/limits", wanted.pid)).unwrap_or_default();
        if rttime(&limits).is_none_or(|us| us > self.config.rttime_usec_max) {
            let bound = self.config.rttime_usec_max;
            return Err(fdo::Error::AccessDenied(format!("RLIMIT_RTTIME has to be at most {bound} us")));
        }
        let profile = match self.config.profiles {
            true => {
                let mut routines = self.routines.lock().unwrap_or_else(PoisonError::into_inner);
                let Wanted { ref caller, pid, tid, .. } = wanted;
                profile(
                    &Store::of_user(Path::new("/"), wanted.info.uid.unwrap_or_default()),
                    (&mut *routines, &self.sums),
                    caller.person,
                    pid,
                    tid,
                )
            }
            false => None,
        };
        let has_profile = profile.is_some();
        let mut modes = profile.map_or_else(|| self.config.modes.clone(), |mode| vec![mode]);
        modes.iter_mut().for_each(|mode| mode.value += i64::from(priority));
        let mut wish = Wish { thread: Some(wanted.tid), modes, label: Some(LABEL.into()), ..Wish::default() };
        wish.about.insert("priority".into(), priority.into());
        wish.about.insert("process".into(), wanted.pid.into());
        wish.about.insert("profile".into(), has_profile.into());
        // Root asks for what is its owner's.
        wish.owner = wanted.info.uid.filter(|uid| *uid != 0).map(tierce_manager::Principal::User);
        match self.way.ask(&wanted.caller.asker, Ask::Request(Box::new(wish))) {
            Ok(Answer { state: State::Refused, reason, .. }) => {
                Err(fdo::Error::AccessDenied(reason.map(|why| why.to_string()).unwrap_or_default()))
            }
            Ok(_) => Ok(()),
            // Whoever asks again has what he asks for.
            Err(wrong) if wrong.rule == "thread_must_have_no_request" => {
                let of = |answer: Answer| answer.requests.into_iter().any(|it| it.thread == Some(wanted.tid));
                match self.way.ask(&wanted.caller.asker, Ask::List(List {})).map(of) {
                    Ok(true) => Ok(()),
                    _ => Err(denied(wrong)),
                }
            }
            Err(wrong) => Err(denied(wrong)),
        }
    }

    fn high(&self, header: &Header, process: Option<u64>, thread: u64, nice: i32) -> fdo::Result<()> {
        if !(-20..20).contains(&nice) {
            return Err(fdo::Error::Failed("Invalid argument".into()));
        }
        let least = self.config.min_nice_level;
        if nice < least {
            return Err(fdo::Error::AccessDenied(format!("nice level {nice}, bound {least}")));
        }
        let wanted = self.wanted(header, process, thread, Action::HighPriority)?;
        // It counts as a request: a user has so many per second.
        self.way.ask(&wanted.caller.asker, Ask::List(List {})).map_err(denied)?;
        let mut all = self.nice.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|tid, (began, _)| look(*tid).is_some_and(|info| info.began == *began));
        let person = wanted.caller.person;
        if !has_room(&all, person) {
            let message =
                format!("{NICE_EACH} threads of one person, {NICE_MAX} in all have a high priority");
            return Err(fdo::Error::AccessDenied(message));
        }
        set_nice(wanted.tid, nice).map_err(|error| fdo::Error::Failed(error.to_string()))?;
        if look(wanted.tid) != Some(wanted.info) {
            let _ = set_nice(wanted.tid, 0); // it was not this thread
            return Err(fdo::Error::AccessDenied("the thread has changed".into()));
        }
        all.insert(wanted.tid, (wanted.info.began, person));
        Ok(())
    }

    fn root(&self, header: &Header) -> fdo::Result<()> {
        match self.callers.of(header).map_err(denied)?.asker.is_system() {
            true => Ok(()),
            false => Err(fdo::Error::AccessDenied("only root does that".into())),
        }
    }

    fn reset(&self) -> fdo::Result<()> {
        let all = self.way.ask(&Asker::SYSTEM, Ask::List(List {})).map_err(denied)?;
        for request in all.requests.iter().filter(|it| it.label.as_deref() == Some(LABEL)) {
            self.way.ask(&Asker::SYSTEM, Ask::Cancel(Which { id: request.id })).map_err(denied)?;
        }
        let all = std::mem::take(&mut *self.nice.lock().unwrap_or_else(PoisonError::into_inner));
        for (tid, (began, _)) in all {
            if look(tid).is_some_and(|info| info.began == began) {
                let _ = set_nice(tid, 0); // it may end
            }
        }
        Ok(())
    }
}

#[interface(name = "org.freedesktop.RealtimeKit1", spawn = false)]
impl<E: Fn() + Send + Sync + 'static> RealtimeKit1<E> {
    fn make_thread_realtime(
        &self,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.real_time(&header, None, thread, priority)
    }

    #[zbus(name = "MakeThreadRealtimeWithPID")]
    fn make_thread_realtime_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: u32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.real_time(&header, Some(process), thread, priority)
    }

    fn make_thread_high_priority(
        &self,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.high(&header, None, thread, priority)
    }

    #[zbus(name = "MakeThreadHighPriorityWithPID")]
    fn make_thread_high_priority_with_pid(
        &self,
        process: u64,
        thread: u64,
        priority: i32,
        #[zbus(header)] header: Header<'_>,
    ) -> fdo::Result<()> {
        self.high(&header, Some(process), thread, priority)
    }

    fn reset_known(&self, #[zbus(header)] header: Header<'_>) -> fdo::Result<()> {
        self.root(&header)?;
        self.reset()
    }

    /// Real-time threads that others have made are no business of the manager's.
    fn reset_all(&self, #[zbus(header)] header: Header<'_>) -> fdo::Result<()> {
        self.root(&header)?;
        self.reset()
    }

    fn exit(&self, #[zbus(header)] header: Header<'_>) -> fdo::Result<()> {
        self.root(&header)?;
        (self.exit)();
        Ok(())
    }

    #[zbus(property(emits_changed_signal = "const"), name = "RTTimeUSecMax")]
    fn rttime_usec_max(&self) -> i64 {
        self.config.rttime_usec_max
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn max_realtime_priority(&self) -> i32 {
        self.config.max_realtime_priority
    }

    #[zbus(property(emits_changed_signal = "const"))]
    fn min_nice_level(&self) -> i32 {
        self.config.min_nice_level
    }
}

/// Whoever is refused is denied access, as by RealtimeKit; where nobody could grant anything, the call failed.
pub fn denied(wrong: Wrong) -> fdo::Error {
    match &wrong.rule[..] {
        "plan_must_be_in_force" | "manager_must_run" | "thread_must_be_there" => {
            fdo::Error::Failed(wrong.to_string())
        }
        _ => fdo::Error::AccessDenied(wrong.to_string()),
    }
}

/// The hard limit of `Max realtime timeout`, in us.
fn rttime(limits: &str) -> Option<i64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max realtime timeout"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// What `tierce calibrate` has found for the thread, if its program is still the same.
fn profile(
    store: &Store,
    (routines, sums): (&mut Routines, &Sums),
    person: u32,
    pid: u32,
    tid: u32,
) -> Option<Mode> {
    let process = format!("/proc/{pid}");
    let program = fs::read_link(format!("{process}/exe")).ok()?;
    let name = fs::read_to_string(format!("{process}/task/{tid}/comm")).ok()?;
    let profile = store.find(&program).ok()??.profile;
    let name = name.trim_end();
    let routine = match profile.has_routines(name) {
        true => {
            let listed: Vec<PathBuf> =
                profile.program.libraries.iter().map(|file| file.path.clone()).collect();
            let may_read = move |path: &Path| listed.iter().any(|own| own == path);
            routines.of(person, pid, &[tid], may_read).pop().flatten()
        }
        false => None,
    };
    let own = profile.thread(name, routine.map(|routine| routine.to_string()).as_deref())?.reservation?;
    let same = sums.of(person, format!("{process}/exe").into())? == profile.program.executable.sha256;
    same.then(|| Mode::measured(own.budget_ns, own.period_ns, 0).ok()).flatten()
}

/// One more thread of that person. Root has as many as there are.
fn has_room(all: &Nice, person: u32) -> bool {
    let theirs = all.values().filter(|(_, of)| *of == person).count();
    all.len() < NICE_MAX && (theirs < NICE_EACH || person == 0)
}

/// The default node's order, where its plan has `weight = "nice"`. Not for threads and processes that it starts.
fn set_nice(tid: u32, nice: i32) -> std::io::Result<()> {
    let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameters outlive the call; the other takes numbers.
    let done = unsafe {
        libc::sched_setscheduler(tid as libc::pid_t, policy, &parameters) == 0
            && libc::setpriority(libc::PRIO_PROCESS, tid, nice) == 0
    };
    done.then_some(()).ok_or_else(std::io::Error::last_os_error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::twins::Twins;

    #[test]
    fn the_limit_of_time_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max nice priority         0                    0                    \n\
            Max realtime timeout      100000               200000               us        \n";
        assert_eq!(rttime(limits), Some(200_000));
        assert_eq!(rttime("Max realtime timeout      unlimited            unlimited            us"), None);
        assert_eq!(rttime(""), None);
    }

    #[test]
    fn a_profile_is_found_by_name_and_routine() {
        let folder = tempfile::tempdir().unwrap();
        let twins = Twins::start(&folder.path().canonicalize().unwrap().join("twins"));
        let (store, mut known) = (Store::at(folder.path(), None), twins.profile());
        let budgets = |known: &tierce_calibrate::Profile| {
            store.keep(tierce_calibrate::Layer::Machine, known).unwrap();
            [twins.light.0, twins.heavy.0, twins.pid()].map(|tid| {
                let known = (&mut Routines::default(), &Sums::default());
                profile(&store, known, 0, twins.pid(), tid).map(|mode| mode.to_string())
            })
        };
        let of = |text: &str| Some(text.to_string());
        assert_eq!(budgets(&known), [of("2ms in 20ms"), of("5ms in 20ms"), None]);
        known.threads[0].routine = None;
        known.threads.swap(0, 1);
        assert_eq!(budgets(&known), [of("2ms in 20ms"), of("5ms in 20ms"), None]);
        known.threads.remove(1);
        assert_eq!(budgets(&known), [None, of("5ms in 20ms"), None]);
        known.program.executable.sha256.clear();
        assert_eq!(budgets(&known), [None, None, None]);
    }

    #[test]
    fn one_person_leaves_high_priorities_for_others() {
        let mut all = Nice::new();
        let give = |all: &mut Nice, person: u32| {
            let has_room = has_room(all, person);
            all.extend(has_room.then_some((all.len() as u32, (1, person))));
            has_room
        };
        assert_eq!((0..NICE_MAX).filter(|_| give(&mut all, 1001)).count(), NICE_EACH);
        assert!(give(&mut all, 1002));
        assert_eq!((0..NICE_MAX).filter(|_| give(&mut all, 0)).count(), NICE_MAX - NICE_EACH - 1);
        assert!(!give(&mut all, 1003));
    }

    #[test]
    fn numbers_are_those_of_realtimekit_unless_configured() {
        let config: Config = toml::from_str("").unwrap();
        assert_eq!(
            (config.max_realtime_priority, config.min_nice_level, config.rttime_usec_max),
            (20, -15, 200_000)
        );
        assert!(config.enabled && config.modes == [Mode::parse("2ms/10ms", 0).unwrap()]);
        let config: Config =
            toml::from_str("modes = [{ budget = \"1ms\", period = \"5ms\" }]\nmin-nice-level = -5").unwrap();
        assert!(config.min_nice_level == -5 && config.modes == [Mode::parse("1ms/5ms", 0).unwrap()]);
        assert!(toml::from_str::<Config>("priority = 1").is_err());
    }
}
