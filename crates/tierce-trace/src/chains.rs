//! How long chains of tasks take, from the events of a schedule.
//!
//! A simulation says when each job was due, and who released it. In a live run a job lasts from a wake-up of its thread until that
//! blocks. The first one of a thread is none: it came to the plan with it. What a chain passes on is known there by who wakes whom, or, if
//! the plan names a mark for the chain, by the marks that programs write.

use crate::change::{PlanChange, Renumber, Seen};
use crate::event::{Event, Kind, NO_DEADLINE};
use crate::file::{Reader, TraceError};
use crate::header::{ChainInfo, Source, TaskInfo, TraceHeader};
use crate::passage::Passage;
use crate::report::ChainReport;
use std::collections::{HashMap, VecDeque};
use std::io::Read;

/// Takes events, measures chains.
#[derive(Debug, Clone)]
pub struct Chains {
    source: Source,
    epoch_ns: Option<u64>,
    follows: Follows,
    chains: Vec<Measured>,
    /// What is known of each task that has come, also of those in no chain.
    known: HashMap<u32, TaskInfo>,
    /// Tasks of chains, by id.
    tasks: HashMap<u32, Task>,
    lost: u64,
}

/// Which chains of a plan that changes are measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Follows {
    /// All that it has.
    All,
    /// The one of that name.
    One(String),
    /// Those that were there, whatever the plan says later.
    Nothing,
}

/// Chains that have ended and are kept, at most.
const ENDED_MAX: usize = 64;

#[derive(Debug, Clone)]
struct Measured {
    about: ChainInfo,
    passage: Passage,
    /// A change of the plan has taken it out, or has made another one of it.
    ended: bool,
}

impl Measured {
    fn new(about: ChainInfo, source: Source) -> Measured {
        let passage = Passage::new(&about, source);
        Measured { about, passage, ended: false }
    }
}

/// A task that is in chains.
#[derive(Debug, Clone)]
struct Task {
    info: TaskInfo,
    /// Chains, and its place there.
    places: Vec<(usize, usize)>,
    /// When jobs that have not begun were nominally released.
    waiting: VecDeque<u64>,
    /// A job has begun and is not done.
    runs: bool,
    /// When that was nominally released.
    nominal_ns: u64,
    /// How many jobs were done.
    done: u64,
}

impl Chains {
    /// Of these chains, in a schedule of this graph, and of those that the plan has after a change. `epoch_ns`: as for
    /// [`crate::Measure::new`].
    pub fn new(header: &TraceHeader, chains: Vec<ChainInfo>, epoch_ns: Option<u64>) -> Chains {
        let source = header.source;
        let chains = chains.into_iter().map(|about| Measured::new(about, source)).collect();
        let (known, tasks) = (HashMap::new(), HashMap::new());
        let mut all = Chains { source, epoch_ns, follows: Follows::All, chains, known, tasks, lost: 0 };
        all.come(&header.tasks);
        all
    }

    /// After a change of the plan only these are measured.
    #[must_use]
    pub fn following(self, follows: Follows) -> Chains {
        Chains { follows, ..self }
    }

    /// What the records of a file tell, up to its end or to what is wrong with it.
    pub fn read(&mut self, reader: &mut Reader<impl Read>) -> Option<TraceError> {
        let mut renumber = Renumber::new(reader.header());
        for event in reader {
            match event {
                Ok(event) => self.seen(&renumber.event(&event)),
                Err(error) => return Some(error),
            }
        }
        None
    }

    fn come(&mut self, tasks: &[TaskInfo]) {
        for info in tasks {
            self.known.insert(info.id, info.clone());
            let places = self.places(&info.name);
            if !places.is_empty() {
                self.tasks.insert(info.id, Task::new(info, places));
            }
        }
    }

    /// Where a task is in chains.
    fn places(&self, name: &str) -> Vec<(usize, usize)> {
        let chains = self.chains.iter().enumerate().filter(|(_, chain)| !chain.ended);
        let places = chains.flat_map(|(chain, Measured { about, .. })| {
            let links = about.links.iter().enumerate().filter(|(_, link)| link.task == name);
            links.map(move |(at, _)| (chain, at))
        });
        places.collect()
    }

    /// The plan has these from now on. One that differs in anything begins anew, and what was measured before is kept beside it.
    fn change(&mut self, chains: &[ChainInfo]) {
        for measured in &mut self.chains {
            measured.ended |= !chains.contains(&measured.about);
        }
        for about in chains {
            let follows = match &self.follows {
                Follows::All => true,
                Follows::One(name) => *name == about.name,
                Follows::Nothing => false,
            };
            let goes_on = self.chains.iter().any(|known| !known.ended && known.about == *about);
            if follows && !goes_on {
                self.chains.push(Measured::new(about.clone(), self.source));
            }
        }
        let mut forgotten = self.chains.iter().filter(|chain| chain.ended).count().saturating_sub(ENDED_MAX);
        self.chains.retain(|chain| {
            let keep = !chain.ended || forgotten == 0;
            forgotten -= usize::from(!keep);
            keep
        });
        for (id, info) in &self.known {
            let places = self.places(&info.name);
            match self.tasks.get_mut(id) {
                Some(task) => task.places = places,
                None if places.is_empty() => {}
                None => {
                    self.tasks.insert(*id, Task::new(info, places));
                }
            }
        }
    }

    /// What [`Renumber`] makes of a record.
    pub fn seen(&mut self, seen: &Seen) {
        match seen {
            Seen::Event(event) => self.event(event),
            Seen::Change(PlanChange { tasks, gone, chains, .. }) => {
                self.come(tasks);
                gone.iter().for_each(|id| {
                    self.known.remove(id);
                });
                if let Some(chains) = chains.as_ref().filter(|_| self.follows != Follows::Nothing) {
                    self.change(chains);
                }
            }
            Seen::Nothing => {}
        }
    }

    fn event(&mut self, event: &Event) {
        let Event { now_ns, a, b, value, .. } = *event;
        match event.kind() {
            Some(Kind::JobRelease) => self.released(a, b, value, now_ns),
            Some(Kind::JobStart) => self.begun(a, now_ns),
            // The kernel does not tell when a job begins: with the first decision for its thread.
            Some(Kind::Decision) if self.source == Source::Run => self.begun(a, now_ns),
            Some(Kind::JobComplete) => self.ended(a, now_ns),
            Some(Kind::Mark) => self.marked(event),
            Some(Kind::Lost) => self.lost = self.lost.saturating_add(value),
            _ => {}
        }
    }

    fn released(&mut self, id: u32, number: u32, deadline_ns: u64, now_ns: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let nominal_ns = match (self.source, task.info.deadline_ns) {
            (Source::Sim, Some(relative_ns)) if deadline_ns != NO_DEADLINE => {
                deadline_ns.saturating_sub(relative_ns)
            }
            (Source::Sim, _) => now_ns,
            (Source::Run, _) => task.due_ns(self.epoch_ns, now_ns),
        };
        if self.source == Source::Run {
            task.waiting.clear();
            task.runs = false;
            if number <= 1 {
                return;
            }
            for (chain, at) in &task.places {
                self.chains[*chain].passage.woken(*at, nominal_ns, now_ns);
            }
        }
        task.waiting.push_back(nominal_ns);
    }

    fn begun(&mut self, id: u32, now_ns: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some(nominal_ns) = task.waiting.pop_front() else { return };
        (task.runs, task.nominal_ns) = (true, nominal_ns);
        for (chain, at) in &task.places {
            self.chains[*chain].passage.begun(*at, nominal_ns, now_ns);
        }
    }

    fn marked(&mut self, event: &Event) {
        let Some(task) = self.tasks.get(&event.a) else { return };
        let nominal_ns = task.runs.then_some(task.nominal_ns);
        let label = event.label();
        for (chain, at) in &task.places {
            let Measured { about, passage, .. } = &mut self.chains[*chain];
            if about.mark.as_deref() == Some(&*label) {
                passage.marked(*at, event.value, nominal_ns, event.now_ns);
            }
        }
    }

    fn ended(&mut self, id: u32, now_ns: u64) {
        let Some(task) = self.tasks.get_mut(&id).filter(|task| task.runs) else { return };
        task.runs = false;
        task.done += 1;
        for (chain, at) in &task.places {
            self.chains[*chain].passage.ended(*at, now_ns);
        }
    }

    /// The chains, with what was measured so far.
    pub fn all(&self) -> impl Iterator<Item = (&ChainInfo, &Passage)> {
        self.chains.iter().map(|chain| (&chain.about, &chain.passage))
    }

    /// Of each of [`Chains::all`], whether a change of the plan has ended it.
    pub fn which_ended(&self) -> impl Iterator<Item = bool> + '_ {
        self.chains.iter().map(|chain| chain.ended)
    }

    /// The same as statistics say it.
    pub fn report(&self) -> Vec<ChainReport> {
        let report =
            |chain: &Measured| ChainReport { ended: chain.ended, ..chain.passage.report(&chain.about.name) };
        self.chains.iter().map(report).collect()
    }

    /// What could not be measured, and why: sentences.
    pub fn remarks(&self) -> Vec<String> {
        let mut list = Vec::new();
        for (about, passage) in self.all() {
            let jobs = |name: &str| {
                let of = self.tasks.values().filter(|task| task.info.name == name);
                of.map(|task| task.done).sum::<u64>()
            };
            let idle = about.links.iter().map(|link| &link.task).filter(|name| jobs(name) == 0);
            let idle: Vec<_> = idle.map(|name| format!("`{name}`")).collect();
            if !idle.is_empty() {
                list.push(format!("{}: the trace has no job of {}", about.name, idle.join(", ")));
            } else if let Some(remark) = of_marks(about, passage) {
                list.push(remark);
            } else if passage.times()[0].summary().count == 0 {
                list.push(format!("{}: nothing has come through to the last task", about.name));
            }
        }
        if self.lost > 0 {
            let lost = self.lost;
            list.push(format!("{lost} records were lost: without them a time may be missing, or too long"));
        }
        list
    }
}

/// What is missing of the marks of a chain, if anything.
fn of_marks(about: &ChainInfo, passage: &Passage) -> Option<String> {
    let ((marks, strange), label) = (passage.marks()?, about.mark.as_deref()?);
    let [first, last] = [about.links.first()?, about.links.last()?].map(|link| &link.task);
    let silent = |marks: Option<&u64>| marks == Some(&0);
    match (silent(marks.first()), silent(marks.last())) {
        (true, _) => Some(format!("{}: `{first}` has written no mark `{label}`", about.name)),
        (_, true) => Some(format!("{}: `{last}` has written no mark `{label}`", about.name)),
        _ if strange > 0 => Some(format!(
            "{}: {strange} marks `{label}` of `{last}` have a number that `{first}` has not marked before",
            about.name
        )),
        _ => None,
    }
}

impl Task {
    fn new(info: &TaskInfo, places: Vec<(usize, usize)>) -> Task {
        Task { info: info.clone(), places, waiting: VecDeque::new(), runs: false, nominal_ns: 0, done: 0 }
    }

    /// When the job that is released now should have been.
    fn due_ns(&self, epoch_ns: Option<u64>, now_ns: u64) -> u64 {
        let late_ns = epoch_ns.zip(self.info.period_ns).and_then(|(epoch_ns, period_ns)| {
            let first_ns = epoch_ns.checked_add(self.info.phase_ns.unwrap_or(0))?;
            now_ns.checked_sub(first_ns)?.checked_rem(period_ns)
        });
        now_ns - late_ns.unwrap_or(0)
    }
}
