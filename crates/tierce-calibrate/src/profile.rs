//! Profiles: what was found out about a program, as a text that people can read and change.

use crate::finding::{Arrival, Finding, Kind, Period};
use crate::identity::{Change, File, Machine, Program, Routine};
use crate::jobs::Work;
use crate::proposal::{propose, Importance, Margin, Reservation};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};
use tierce_plan::show_time;

/// Version of the text.
pub(crate) const VERSION: u32 = 1;

/// What was found out about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Which program, and its libraries.
    pub program: Program,
    /// Where it was measured.
    pub machine: Machine,
    /// How.
    pub calibration: Calibration,
    /// Its threads; those that are the same are one entry.
    pub threads: Vec<Thread>,
}

/// How a program was measured, and what was made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// For so long.
    pub watched_ns: u64,
    /// Bursts that are not known because they came too fast.
    pub lost: u64,
    /// How much its deadlines matter.
    pub importance: Importance,
    /// What budgets have beyond the work.
    pub margin: Margin,
}

/// Threads of one name, of the same kind, with the same periods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its name, by which it is recognised.
    pub name: String,
    /// Its start routine, if there are several of that name: it is recognised by that, too.
    pub routine: Option<Routine>,
    /// The name of its process.
    pub process: String,
    /// How many there are.
    pub count: u32,
    /// What they are.
    pub verdict: Verdict,
    /// How the wake-ups of one without a period come.
    pub arrival: Option<Arrival>,
    /// Wake-ups of all.
    pub wakeups: u64,
    /// CPU time that they used together, in 1/1000 of a CPU.
    pub load: u32,
    /// Time that they were ready and waited for a CPU, likewise: much of it says that the machine was not idle.
    pub waited: u32,
    /// Wake-ups that are releases or in step with them, in 1/1000 of all: how sure the periods are.
    pub explained: u32,
    /// The probability, in percent and rounded up, that chance explains the wake-ups as well.
    pub chance_percent: Option<u32>,
    /// Periods, that which explains most first.
    pub periods: Vec<Period>,
    /// CPU time of a burst, of one without a period.
    pub burst: Option<Work>,
    /// What is proposed for each.
    pub reservation: Option<Reservation>,
}

/// What a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It has releases at regular times.
    Periodic,
    /// No period explains its wake-ups.
    Aperiodic,
    /// Too few wake-ups to say anything.
    Rare,
    /// It computes and hardly ever sleeps.
    Busy,
}

impl Verdict {
    /// All.
    pub const ALL: [Verdict; 4] = [Verdict::Periodic, Verdict::Aperiodic, Verdict::Rare, Verdict::Busy];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Periodic => "periodic",
            Verdict::Aperiodic => "aperiodic",
            Verdict::Rare => "rare",
            Verdict::Busy => "busy",
        }
    }
}

/// One thread that was watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// Its start routine, if that is known.
    pub routine: Option<Routine>,
    /// The name of its process.
    pub process: String,
    /// What was found out.
    pub finding: Finding,
}

impl Profile {
    /// Of these threads, those that are the same together, with a reservation for each that is periodic.
    pub fn new(program: Program, machine: Machine, calibration: Calibration, seen: &[Seen]) -> Profile {
        Profile { program, machine, calibration, threads: Thread::all(calibration, seen) }
    }

    /// The same with other budgets.
    pub fn with(mut self, importance: Importance, margin: Margin) -> Profile {
        (self.calibration.importance, self.calibration.margin) = (importance, margin);
        for thread in &mut self.threads {
            thread.reservation = propose(&thread.periods, importance, margin);
        }
        self
    }

    /// What has changed since it was measured: then it has to be measured again.
    pub fn changes(&self, now: &Machine) -> Vec<Change> {
        self.program.changes().into_iter().chain(self.machine.changes(now)).collect()
    }

    /// Whether threads of this name are told apart by their routines.
    pub fn has_routines(&self, name: &str) -> bool {
        self.threads.iter().any(|thread| thread.name == name && thread.routine.is_some())
    }

    /// The entry for a thread of this name: that of its routine, or else the first one without a routine.
    pub fn thread(&self, name: &str, routine: Option<&str>) -> Option<&Thread> {
        let mut of_name = self.threads.iter().filter(|thread| thread.name == name);
        let own = of_name.clone().find(|thread| routine.is_some() && thread.place() == routine);
        own.or_else(|| of_name.find(|thread| thread.routine.is_none()))
    }

    /// Whether any thread has a period.
    pub fn has_period(&self) -> bool {
        self.threads.iter().any(|thread| !thread.periods.is_empty())
    }
}

fn thread(seen: &Seen, calibration: Calibration) -> Thread {
    let finding = &seen.finding;
    let per_mille = |ns: u64| (u128::from(ns) * 1000 / u128::from(calibration.watched_ns.max(1))) as u32;
    let mut thread = Thread {
        name: seen.name.clone(),
        routine: None,
        process: seen.process.clone(),
        count: 1,
        verdict: Verdict::Rare,
        arrival: None,
        wakeups: finding.wakeups,
        load: per_mille(finding.ran_ns),
        waited: per_mille(finding.waited_ns),
        explained: 0,
        chance_percent: None,
        periods: Vec::new(),
        burst: None,
        reservation: None,
    };
    match &finding.kind {
        Kind::Rare => {}
        Kind::Busy => thread.verdict = Verdict::Busy,
        Kind::Periodic { periods, explained } => {
            thread.verdict = Verdict::Periodic;
            (thread.periods, thread.explained) = (periods.clone(), *explained);
            thread.chance_percent = periods.iter().map(|period| period.chance_percent).max();
        }
        Kind::Aperiodic { arrival, chance_percent, work } => {
            thread.verdict = Verdict::Aperiodic;
            (thread.arrival, thread.chance_percent) = (Some(*arrival), *chance_percent);
            thread.burst = Some(*work);
        }
    }
    thread
}

impl Thread {
    /// Those that are the same are one, with a reservation for each that is periodic. Routines are noted for names that have several of them:
    /// otherwise the name says as much.
    pub fn all(calibration: Calibration, seen: &[Seen]) -> Vec<Thread> {
        let mut places = BTreeMap::<&str, BTreeSet<&str>>::new();
        for one in seen {
            let place = one.routine.as_ref().map(|routine| &*routine.place);
            places.entry(&one.name).or_default().extend(place);
        }
        let mut threads: Vec<Thread> = Vec::new();
        for one in seen {
            let mut new = thread(one, calibration);
            if places.get(&*one.name).is_some_and(|places| places.len() > 1) {
                new.routine.clone_from(&one.routine);
            }
            match threads.iter_mut().find(|thread| thread.is_like(&new)) {
                Some(thread) => thread.join(new),
                None => threads.push(new),
            }
        }
        for thread in &mut threads {
            thread.reservation = propose(&thread.periods, calibration.importance, calibration.margin);
        }
        threads
    }

    fn place(&self) -> Option<&str> {
        self.routine.as_ref().map(|routine| &*routine.place)
    }

    /// Of one name, routine, kind, and, within 1 %, with the same periods.
    fn is_like(&self, other: &Thread) -> bool {
        let near = |(a, b): (&Period, &Period)| a.period_ns.abs_diff(b.period_ns) <= a.period_ns / 100;
        (&self.name, &self.process, self.verdict) == (&other.name, &other.process, other.verdict)
            && self.place() == other.place()
            && self.periods.len() == other.periods.len()
            && self.periods.iter().zip(&other.periods).all(near)
    }

    /// One more: what holds for all of them is the worst of each.
    fn join(&mut self, other: Thread) {
        self.count += 1;
        let all = self.wakeups + other.wakeups;
        let weighed = u64::from(self.explained) * self.wakeups + u64::from(other.explained) * other.wakeups;
        self.explained = weighed.checked_div(all).unwrap_or(0) as u32;
        self.wakeups = all;
        self.load += other.load;
        self.waited += other.waited;
        self.chance_percent = self.chance_percent.max(other.chance_percent);
        for (one, other) in self.periods.iter_mut().zip(other.periods) {
            one.period_ns = one.period_ns.min(other.period_ns);
            one.is_absolute &= other.is_absolute;
            one.jitter_p99_ns = one.jitter_p99_ns.max(other.jitter_p99_ns);
            one.jitter_max_ns = one.jitter_max_ns.max(other.jitter_max_ns);
            one.kept = one.kept.min(other.kept);
            one.chance_percent = one.chance_percent.max(other.chance_percent);
            one.work = worst(one.work, other.work);
            one.overruns += other.overruns;
            one.resumed += other.resumed;
            one.first_ns = one.first_ns.min(other.first_ns);
            one.last_ns = one.last_ns.max(other.last_ns);
        }
        self.burst = self.burst.zip(other.burst).map(|(one, other)| worst(one, other));
    }
}

fn worst(one: Work, other: Work) -> Work {
    Work {
        jobs: one.jobs + other.jobs,
        median_ns: one.median_ns.max(other.median_ns),
        p90_ns: one.p90_ns.max(other.p90_ns),
        p99_ns: one.p99_ns.max(other.p99_ns),
        max_ns: one.max_ns.max(other.max_ns),
    }
}

const HEAD: &str = "\
# Profile of a program, written by `tierce calibrate` (docs/calibrate.md). Budgets may be changed by hand; `tierce calibrate` writes a
# new file in the place of this one. A changed copy in a stronger layer stays: vendor, system, machine, user is the strongest.
#   explained, kept: in 1/1000.  load, waited: in 1/1000 of a CPU.  chance_percent: that a Poisson process looks as periodic, 1 at least.
#   work: CPU time of a job, of which 50, 90, 99 and 100 % of the jobs need no more.
#   routine: where a thread begins, if threads of its name begin in several places: by name and routine it is recognised.
";

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let file = |f: &mut fmt::Formatter, file: &File| {
            let path = quoted(&file.path.to_string_lossy());
            writeln!(f, "path = {path}\nsha256 = {}", quoted(&file.sha256))
        };
        writeln!(f, "{HEAD}\nversion = {VERSION}\n\n[program]")?;
        file(f, &self.program.executable)?;
        for library in &self.program.libraries {
            f.write_str("\n[[library]]\n")?;
            file(f, library)?;
        }
        let [kernel, cpu, frequency] =
            [&self.machine.kernel, &self.machine.cpu, &self.machine.frequency].map(|text| quoted(text));
        writeln!(f, "\n[machine]\nkernel = {kernel}\ncpu = {cpu}\nfrequency = {frequency}")?;
        let Calibration { watched_ns, lost, importance, margin } = self.calibration;
        writeln!(f, "\n[calibration]\nwatched = {}\nlost = {lost}", time(watched_ns))?;
        writeln!(f, "importance = {}\nmargin_percent = {}", quoted(importance.name()), margin.0)?;
        self.threads.iter().try_for_each(|thread| write_thread(f, thread))
    }
}

fn write_thread(f: &mut fmt::Formatter, thread: &Thread) -> fmt::Result {
    let (name, process) = (quoted(&thread.name), quoted(&thread.process));
    writeln!(f, "\n[[thread]]\nname = {name}\nprocess = {process}\ncount = {}", thread.count)?;
    if let Some(routine) = &thread.routine {
        writeln!(f, "routine = {}", quoted(&routine.place))?;
        if let Some(function) = &routine.function {
            writeln!(f, "function = {}", quoted(function))?;
        }
    }
    writeln!(f, "verdict = {}", quoted(thread.verdict.name()))?;
    if let Some(arrival) = thread.arrival {
        writeln!(f, "arrival = {}", quoted(arrival.name()))?;
    }
    writeln!(f, "wakeups = {}\nload = {}\nwaited = {}", thread.wakeups, thread.load, thread.waited)?;
    writeln!(f, "explained = {}", thread.explained)?;
    if let Some(percent) = thread.chance_percent {
        writeln!(f, "chance_percent = {percent}")?;
    }
    if let Some(burst) = thread.burst {
        writeln!(f, "burst = {}", work(burst))?;
    }
    if let Some(Reservation { budget_ns, period_ns }) = thread.reservation {
        let [budget, period] = [budget_ns, period_ns].map(time);
        writeln!(f, "reservation = {{ budget = {budget}, period = {period}, deadline = {period} }}")?;
    }
    for period in &thread.periods {
        let clock = if period.is_absolute { "timer" } else { "sleep" };
        writeln!(f, "\n[[thread.period]]\nperiod = {}\nclock = {}", time(period.period_ns), quoted(clock))?;
        let [p99, max, first, last] =
            [period.jitter_p99_ns, period.jitter_max_ns, period.first_ns, period.last_ns].map(time);
        writeln!(f, "jitter = {{ p99 = {p99}, max = {max} }}")?;
        writeln!(f, "kept = {}\nchance_percent = {}", period.kept, period.chance_percent)?;
        writeln!(f, "work = {}", work(period.work))?;
        writeln!(f, "overruns = {}\nresumed = {}", period.overruns, period.resumed)?;
        writeln!(f, "releases = {{ first = {first}, last = {last} }}")?;
    }
    Ok(())
}

fn time(ns: u64) -> String {
    quoted(&show_time(ns))
}

fn work(work: Work) -> String {
    let [median, p90, p99, max] = [work.median_ns, work.p90_ns, work.p99_ns, work.max_ns].map(time);
    format!("{{ jobs = {}, median = {median}, p90 = {p90}, p99 = {p99}, max = {max} }}", work.jobs)
}

/// A TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => _ = write!(quoted, "\\u{:04x}", c as u32),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
