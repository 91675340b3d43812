//! How long chains of tasks take, from the events of a schedule.
//!
//! A simulation says when each job was due, and who released it. In a live run a job lasts from a wake-up of its thread until that
//! blocks. The first one of a thread is none: it came to the plan with it.

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
    chains: Vec<(ChainInfo, Passage)>,
    /// Tasks of chains, by id.
    tasks: HashMap<u32, Task>,
    lost: u64,
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
    /// How many jobs were done.
    done: u64,
}

impl Chains {
    /// Of these chains, in a schedule of this graph. `epoch_ns`: as for [`crate::Measure::new`].
    pub fn new(header: &TraceHeader, chains: Vec<ChainInfo>, epoch_ns: Option<u64>) -> Chains {
        let source = header.source;
        let passages = chains.into_iter().map(|chain| {
            let passage = Passage::new(&chain, source);
            (chain, passage)
        });
        let mut all = Chains { source, epoch_ns, chains: passages.collect(), tasks: HashMap::new(), lost: 0 };
        all.come(&header.tasks);
        all
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
            let places = self.chains.iter().enumerate().flat_map(|(chain, (about, _))| {
                let links = about.links.iter().enumerate().filter(|(_, link)| link.task == info.name);
                links.map(move |(at, _)| (chain, at))
            });
            let places: Vec<_> = places.collect();
            if !places.is_empty() {
                let task =
                    Task { info: info.clone(), places, waiting: VecDeque::new(), runs: false, done: 0 };
                self.tasks.insert(info.id, task);
            }
        }
    }

    /// What [`Renumber`] makes of a record.
    pub fn seen(&mut self, seen: &Seen) {
        match seen {
            Seen::Event(event) => self.event(event),
            Seen::Change(PlanChange { tasks, .. }) => self.come(tasks),
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
                self.chains[*chain].1.woken(*at, nominal_ns, now_ns);
            }
        }
        task.waiting.push_back(nominal_ns);
    }

    fn begun(&mut self, id: u32, now_ns: u64) {
        let Some(task) = self.tasks.get_mut(&id) else { return };
        let Some(nominal_ns) = task.waiting.pop_front() else { return };
        task.runs = true;
        for (chain, at) in &task.places {
            self.chains[*chain].1.begun(*at, nominal_ns, now_ns);
        }
    }

    fn ended(&mut self, id: u32, now_ns: u64) {
        let Some(task) = self.tasks.get_mut(&id).filter(|task| task.runs) else { return };
        task.runs = false;
        task.done += 1;
        for (chain, at) in &task.places {
            self.chains[*chain].1.ended(*at, now_ns);
        }
    }

    /// The chains, with what was measured so far.
    pub fn all(&self) -> impl Iterator<Item = (&ChainInfo, &Passage)> {
        self.chains.iter().map(|(about, passage)| (about, passage))
    }

    /// The same as statistics say it.
    pub fn report(&self) -> Vec<ChainReport> {
        self.all().map(|(about, passage)| passage.report(&about.name)).collect()
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

impl Task {
    /// When the job that is released now should have been.
    fn due_ns(&self, epoch_ns: Option<u64>, now_ns: u64) -> u64 {
        let late_ns = epoch_ns.zip(self.info.period_ns).and_then(|(epoch_ns, period_ns)| {
            let first_ns = epoch_ns.checked_add(self.info.phase_ns.unwrap_or(0))?;
            now_ns.checked_sub(first_ns)?.checked_rem(period_ns)
        });
        now_ns - late_ns.unwrap_or(0)
    }
}
