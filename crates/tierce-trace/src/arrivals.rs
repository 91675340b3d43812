//! How close the jobs of each task come, and how much they work, from the events of a schedule.
//!
//! Two curves per task, each for 1, 2, … jobs in a row:
//!
//! - `separation_ns[k - 1]`: the least time from the release of a job to that of the k-th job after it (Richter 2005, minimum distance
//!   function δ).
//! - `work_ns[k - 1]`: the most CPU time of k jobs in a row (Maxiaguine, Künzli, Thiele 2004, upper workload curve γ).
//!
//! What a trace has not seen is in no curve. Work per event is proportional to the number of jobs in a row.

use crate::change::{PlanChange, Renumber, Seen};
use crate::event::{Event, Kind, ID_MAX};
use crate::file::{Reader, TraceError, CPUS_MAX};
use crate::header::{Source, TraceHeader};
use std::collections::VecDeque;
use std::io::Read;

/// The curves of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Curves {
    /// Jobs that were released.
    pub jobs: u64,
    /// Least distances, ascending; as many as jobs were seen in a row, and were asked for.
    pub separation_ns: Vec<u64>,
    /// Most work.
    pub work_ns: Vec<u64>,
}

impl Curves {
    fn merge(&mut self, other: &Curves) {
        self.jobs += other.jobs;
        merge(&mut self.separation_ns, &other.separation_ns, u64::min);
        merge(&mut self.work_ns, &other.work_ns, u64::max);
    }

    /// A list of separations for a plan: none is longer than what was seen, for any number of jobs. Distances at the end of the list are
    /// left out where shorter ones imply them, to 1 %.
    pub fn separations(&self) -> Vec<u64> {
        let seen = &self.separation_ns;
        let implied = |count: usize| (1..count).map(|part| seen[part - 1] + seen[count - part - 1]).max();
        let needs = |count: usize| {
            implied(count).is_none_or(|ns| u128::from(ns) * 100 < u128::from(seen[count - 1]) * 99)
        };
        let length = (1..=seen.len()).rev().find(|count| needs(*count)).unwrap_or(0);
        seen[..length].iter().map(|ns| ns - ns % grain(*ns)).collect()
    }

    /// Works in turn for a plan: any number of jobs in a row may request at least what was seen. Of the lists of every length it is the
    /// shortest that requests at most 5 % more than the best of them in as many jobs as were looked at.
    pub fn works(&self) -> Vec<u64> {
        // Over a gap more jobs in a row may have worked less.
        let highest = |most: &mut u64, ns: &u64| {
            *most = (*most).max(*ns);
            Some(*most)
        };
        let seen: Vec<u64> = self.work_ns.iter().scan(0, highest).collect();
        let lists: Vec<_> = (1..=seen.len()).map(|length| turns(&seen[..length])).collect();
        let all = |list: &[u64]| list.iter().cycle().take(seen.len()).map(|ns| u128::from(*ns)).sum::<u128>();
        let best = lists.iter().map(|list| all(list)).min().unwrap_or(0);
        lists.into_iter().find(|list| all(list) * 20 <= best * 21).unwrap_or_default()
    }
}

/// Works, the longest first, of which the first so many request at least `most`: by the least concave curve above all points.
fn turns(most: &[u64]) -> Vec<u64> {
    let mut list = Vec::new();
    let mut before = 0;
    while list.len() < most.len() {
        // From one corner of the curve to the next.
        let from = list.len();
        let slope = |to: usize| (most[to] - before).div_ceil((to - from + 1) as u64);
        let Some(to) = (from..most.len()).max_by_key(|to| (slope(*to), *to)) else { break };
        list.extend(std::iter::repeat_n(slope(to), to - from + 1));
        before = most[to];
    }
    list.iter_mut().for_each(|ns| *ns = ns.next_multiple_of(grain(*ns)));
    list
}

fn merge(into: &mut Vec<u64>, other: &[u64], of: fn(u64, u64) -> u64) {
    into.iter_mut().zip(other).for_each(|(one, other)| *one = of(*one, *other));
    into.extend_from_slice(&other[into.len().min(other.len())..]);
}

/// What the fourth digit counts.
fn grain(ns: u64) -> u64 {
    10u64.pow(ns.checked_ilog10().unwrap_or(0).saturating_sub(3))
}

#[derive(Debug, Clone, Default)]
struct Task {
    name: String,
    curves: Curves,
    /// The last ones, as many as are to be in a row.
    released_ns: VecDeque<u64>,
    worked_ns: VecDeque<u64>,
    /// It has run so long, up to now, and up to the end of the job before.
    ran_ns: u64,
    ran_before_ns: u64,
    /// Its job is done; what its CPU still has to tell of it may come.
    closing: bool,
}

impl Task {
    fn called(name: &str) -> Task {
        Task { name: name.into(), ..Task::default() }
    }

    fn released(&mut self, now_ns: u64, most: usize) {
        self.curves.jobs += 1;
        let distances = self.released_ns.iter().rev().map(|before_ns| now_ns.saturating_sub(*before_ns));
        merge(&mut self.curves.separation_ns, &distances.collect::<Vec<_>>(), u64::min);
        last(&mut self.released_ns, now_ns, most);
    }

    /// All is known of the job that is done.
    fn close(&mut self, most: usize) {
        if !std::mem::take(&mut self.closing) {
            return;
        }
        last(&mut self.worked_ns, self.ran_ns.saturating_sub(self.ran_before_ns), most);
        self.ran_before_ns = self.ran_ns;
        let sums = self.worked_ns.iter().rev().scan(0u64, |sum, ns| {
            *sum = sum.saturating_add(*ns);
            Some(*sum)
        });
        merge(&mut self.curves.work_ns, &sums.collect::<Vec<_>>(), u64::max);
    }

    /// Jobs are missing from here on: no others are in a row with those before.
    fn forget(&mut self) {
        self.released_ns.clear();
        self.worked_ns.clear();
        (self.closing, self.ran_before_ns) = (false, self.ran_ns);
    }
}

fn last(list: &mut VecDeque<u64>, value: u64, most: usize) {
    if list.len() == most {
        list.pop_front();
    }
    list.push_back(value);
}

#[derive(Debug, Clone, Copy, Default)]
struct Cpu {
    task: u32,
    charged_ns: u64,
}

/// Takes events, gives curves.
#[derive(Debug, Clone, Default)]
pub struct Arrivals {
    most: usize,
    source: Source,
    tasks: Vec<Task>,
    cpus: Vec<Cpu>,
    /// Of threads that are gone.
    former: Vec<Task>,
    lost: u64,
}

fn at(tasks: &mut Vec<Task>, id: u32) -> &mut Task {
    let id = id.min(ID_MAX) as usize;
    if id >= tasks.len() {
        tasks.resize_with(id + 1, Task::default);
    }
    &mut tasks[id]
}

impl Arrivals {
    /// Of a schedule of this graph, for at most `most` jobs in a row.
    pub fn new(header: &TraceHeader, most: usize) -> Arrivals {
        let cpu = Cpu { task: 0, charged_ns: header.start_ns };
        let cpus = vec![cpu; header.cpus.min(CPUS_MAX) as usize];
        let mut arrivals = Arrivals { most, source: header.source, cpus, ..Arrivals::default() };
        arrivals.change(&PlanChange { tasks: header.tasks.clone(), ..PlanChange::default() });
        arrivals
    }

    /// All that a file has, up to its end or to what is wrong with it.
    pub fn read(reader: &mut Reader<impl Read>, most: usize) -> (Arrivals, Option<TraceError>) {
        let mut arrivals = Arrivals::new(reader.header(), most);
        let mut renumber = Renumber::new(reader.header());
        let mut fault = None;
        for event in reader {
            match event {
                Ok(event) => arrivals.seen(renumber.event(&event)),
                Err(error) => fault = Some(error),
            }
        }
        (arrivals, fault)
    }

    /// What [`Renumber`] makes of a record.
    pub fn seen(&mut self, seen: Seen) {
        match seen {
            Seen::Event(event) => self.event(&event),
            Seen::Change(change) => self.change(&change),
            Seen::Nothing => {}
        }
    }

    fn change(&mut self, change: &PlanChange) {
        change.tasks.iter().for_each(|task| self.comes(task.id, &task.name));
    }

    /// The id belongs to another thread from now on.
    fn comes(&mut self, id: u32, name: &str) {
        let mut before = std::mem::replace(at(&mut self.tasks, id), Task::called(name));
        before.close(self.most);
        if before.curves.jobs > 0 {
            self.former.push(before);
        }
    }

    /// Take in one event.
    pub fn event(&mut self, event: &Event) {
        let Some(kind) = event.kind() else { return };
        if event.fault(self.cpus.len() as u32).is_some() {
            return;
        }
        let Event { now_ns, cpu, a, b, value, .. } = *event;
        match kind {
            Kind::Decision => {
                self.charge(usize::from(cpu), now_ns, 0);
                let before = std::mem::replace(&mut self.cpus[usize::from(cpu)].task, a);
                at(&mut self.tasks, before).close(self.most);
            }
            Kind::Stolen => self.charge(usize::from(cpu), now_ns, value),
            // A thread that comes was not released.
            Kind::JobRelease if self.source == Source::Sim || b > 1 => {
                at(&mut self.tasks, a).released(now_ns, self.most);
            }
            Kind::JobComplete => {
                for cpu in 0..self.cpus.len() {
                    if self.cpus[cpu].task == a {
                        self.charge(cpu, now_ns, 0);
                    }
                }
                let task = at(&mut self.tasks, a);
                task.close(self.most);
                task.closing = true;
            }
            Kind::JobStart => at(&mut self.tasks, a).close(self.most),
            Kind::Name => self.comes(a, &event.text()),
            Kind::Lost => {
                self.lost = self.lost.saturating_add(value);
                self.tasks.iter_mut().for_each(Task::forget);
            }
            _ => {}
        }
    }

    /// What runs there has run up to now, but for what was stolen from it. Some of that may have been counted as run already.
    fn charge(&mut self, cpu: usize, now_ns: u64, stolen_ns: u64) {
        let Cpu { task, charged_ns } = &mut self.cpus[cpu];
        let elapsed_ns = now_ns.saturating_sub(*charged_ns);
        *charged_ns = now_ns.max(*charged_ns);
        if *task != 0 {
            let ran_ns = &mut at(&mut self.tasks, *task).ran_ns;
            *ran_ns = ran_ns.saturating_add(elapsed_ns).saturating_sub(stolen_ns);
        }
    }

    /// Records that are missing. Windows of jobs with such a gap are in no curve.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The name and the curves of each task that had two jobs in a row, in the order in which they came. Threads of one name are one.
    pub fn tasks(&self) -> Vec<(String, Curves)> {
        let mut list: Vec<(String, Curves)> = Vec::new();
        for task in self.former.iter().chain(&self.tasks) {
            let mut task = task.clone();
            task.close(self.most);
            match list.iter_mut().find(|(name, _)| *name == task.name) {
                Some((_, curves)) => curves.merge(&task.curves),
                None => list.push((task.name, task.curves)),
            }
        }
        list.retain(|(_, curves)| !curves.separation_ns.is_empty());
        list
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn curves(separation_ns: &[u64], work_ns: &[u64]) -> Curves {
        Curves { jobs: 10, separation_ns: separation_ns.to_vec(), work_ns: work_ns.to_vec() }
    }

    #[test]
    fn a_plan_gets_what_says_something() {
        // Every 10 ms: one number. Bursts of three: as many as it takes.
        assert_eq!(curves(&[10, 20, 30, 40], &[4, 8, 12]).separations(), [10]);
        assert_eq!(curves(&[1, 2, 50, 51, 52, 100], &[]).separations(), [1, 2, 50]);
        assert_eq!(curves(&[9_994, 19_990, 29_985], &[]).separations(), [9_994], "a jitter of less than 1 %");
        // Rounded to what is still true.
        assert_eq!(curves(&[12_345_678, 99_999_999], &[]).separations(), [12_340_000, 99_990_000]);
        assert_eq!(curves(&[9, 1_000_003], &[]).separations(), [9, 1_000_000]);
        // One long picture, three short ones, in whatever order.
        assert_eq!(curves(&[], &[70, 80, 100, 110, 180, 190, 210, 220]).works(), [70, 15, 15, 10]);
        assert_eq!(curves(&[], &[7, 8, 15]).works(), [7, 1]);
        assert_eq!(curves(&[], &[100, 199, 297]).works(), [100]);
        assert_eq!(curves(&[], &[7, 6]).works(), [7, 0], "one job before a gap, two after it");
        assert_eq!(curves(&[], &[]).works(), [0; 0]);
    }

    fn event(kind: Kind, now_ns: u64, a: u32, b: u32, value: u64) -> Event {
        Event::new(now_ns, kind, 0, a, b, value)
    }

    fn header(source: Source) -> TraceHeader {
        let task = |id, name: &str| crate::TaskInfo { id, name: name.into(), ..crate::TaskInfo::default() };
        TraceHeader { source, cpus: 1, tasks: vec![task(1, "one"), task(2, "two")], ..TraceHeader::default() }
    }

    #[test]
    fn jobs_are_seen_in_a_row_and_not_over_a_gap() {
        let mut arrivals = Arrivals::new(&header(Source::Sim), 2);
        let job = |arrivals: &mut Arrivals, number, from, work, stolen: u64| {
            for event in [
                event(Kind::JobRelease, from, 1, number, 0),
                event(Kind::Decision, from, 1, 0, 0),
                event(Kind::JobComplete, from + work, 1, number, 0),
                event(Kind::Stolen, from + work + 1, 1, 0, stolen + 1),
                event(Kind::Decision, from + work + 1, 0, 0, 0),
            ] {
                arrivals.event(&event);
            }
        };
        job(&mut arrivals, 1, 100, 10, 3);
        job(&mut arrivals, 2, 150, 20, 0);
        job(&mut arrivals, 3, 300, 6, 0);
        assert_eq!(
            arrivals.tasks(),
            [("one".to_string(), Curves { jobs: 3, ..curves(&[50, 200], &[20, 27]) })]
        );
        arrivals.event(&event(Kind::Lost, 310, 0, 0, 7));
        job(&mut arrivals, 9, 311, 19, 0);
        job(&mut arrivals, 10, 351, 19, 0);
        let tasks = arrivals.tasks();
        assert_eq!(
            (tasks[0].1.clone(), arrivals.lost()),
            (Curves { jobs: 5, ..curves(&[40, 200], &[20, 38]) }, 7)
        );
        // Another thread of that name, on another CPU's id: the worst of both.
        arrivals.event(&Event::naming(400, 0, 2, "one"));
        for at in [400, 405] {
            arrivals.event(&event(Kind::JobRelease, at, 2, 1, 0));
        }
        assert_eq!(arrivals.tasks()[0].1.separation_ns, [5, 200]);
    }

    #[test]
    fn a_thread_that_comes_is_not_released() {
        let mut arrivals = Arrivals::new(&header(Source::Run), 4);
        for (number, at) in [(1, 7), (2, 10), (3, 30)] {
            arrivals.event(&event(Kind::JobRelease, at, 1, number, 0));
        }
        assert_eq!(arrivals.tasks()[0].1, Curves { jobs: 2, ..curves(&[20], &[]) });
    }

    proptest! {
        /// What is proposed bounds what was seen, for any number of jobs: a list of separations goes on by itself, works take turns.
        #[test]
        fn what_is_proposed_bounds_what_was_seen(
            gaps in proptest::collection::vec(1u64..100_000_000, 2..40),
            works in proptest::collection::vec(0u64..10_000_000, 2..40),
            most in 1usize..9,
        ) {
            let mut task = Task::called("it");
            let mut releases = vec![0];
            gaps.iter().for_each(|gap| releases.push(releases.last().unwrap() + gap));
            releases.iter().for_each(|at| task.released(*at, most));
            for work in &works {
                (task.closing, task.ran_ns) = (true, task.ran_ns + work);
                task.close(most);
            }
            let separations = task.curves.separations();
            let length = separations.len();
            let least = |count: usize| {
                let rest = count % length;
                (count / length) as u64 * separations[length - 1] + if rest == 0 { 0 } else { separations[rest - 1] }
            };
            for from in 0..releases.len() {
                for to in from + 1..releases.len() {
                    prop_assert!(releases[to] - releases[from] >= least(to - from));
                }
            }
            let turns = task.curves.works();
            for from in 0..works.len() {
                for to in from + 1..=works.len() {
                    let most: u64 = turns.iter().cycle().take(to - from).sum();
                    prop_assert!(works[from..to].iter().sum::<u64>() <= most);
                }
            }
        }
    }
}
