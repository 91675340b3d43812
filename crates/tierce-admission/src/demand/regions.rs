//! How long tasks wait for regions without preemption of others directly below the same node, and what their own last ones are worth
//! ([`tierce_analysis::sections`]).
//!
//! A region of a less urgent task began at the latest 1 ns before a job came, so the job waits for the rest of it; once only, since no
//! less urgent one runs before the job ends. By deadlines that is each other task whose deadline may be the later one. A
//! budget above that ends within a region is part of the supply, which the analysis goes by: the region goes on when there is supply again.
//!
//! A floating region may begin at the very time at which a job comes, after at least 1 ns of its own job (Baruah 2005; Bertogna & Baruah, "Limited
//! preemption EDF scheduling of sporadic task systems", IEEE Transactions on Industrial Informatics 6, 2010; for fixed priorities Yao, Buttazzo &
//! Bertogna, RTCSA 2009). So the job waits for all of it, which is as if it were 1 ns longer and had begun 1 ns before. Nobody's own job ends
//! earlier by one, since it need not be there.
//!
//! A job with a preemption threshold is a region for those of no higher priority than that ([`tierce_analysis::thresholds`]). There is at
//! most one less urgent job that is in a region or has begun and does not give way to a certain task: a second one would have had to preempt the
//! first, and so would be as urgent as that task, or more.
//!
//! Nothing is said where jobs suspend themselves, since less urgent ones may begin regions meanwhile; where a task has other parents, too,
//! since it comes from there at any time; nor with costs.

use crate::demand::jobs::job_and_suspension;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tierce_analysis::Sections;
use tierce_plan::{policies, show_time, Load, Phase, Plan, Preemption, Region, Shape, Work};

/// What regions are to a task.
#[derive(Clone, Copy, Debug, Default)]
pub struct Kept {
    /// The longest one that it may have to wait for.
    pub by: Option<Blocker>,
    /// Its own.
    pub own: Sections,
    /// Its preemption threshold, and for how long its jobs work.
    pub threshold: Option<(u64, u64)>,
}

/// Whom a job may find in a region.
#[derive(Clone, Copy, Debug)]
pub struct Blocker {
    /// Whose region it is.
    pub task: usize,
    /// How long a job waits for it, at most.
    pub most_ns: u64,
    /// Which.
    pub keeps: Keeps,
}

/// When jobs do not give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// In a region at a known place.
    Region(Region),
    /// In a floating region of that length.
    Floating(u64),
    /// Once begun, to no higher priority than that.
    Threshold {
        /// That priority.
        priority: u64,
        /// The longest job.
        work_ns: u64,
    },
}

impl Kept {
    /// It waits for nobody, and its own jobs always give way.
    pub fn concerns_nothing(&self) -> bool {
        self.by.is_none() && self.own == Sections::default() && self.threshold.is_none()
    }

    /// How long a job waits, at most.
    pub fn most_ns(&self) -> u64 {
        self.by.map_or(0, |by| by.most_ns)
    }
}

impl Blocker {
    /// "`low`, which does not give way for 1ms of its work, from 500us on".
    pub fn words(&self, plan: &Plan) -> String {
        let name = &plan.tasks[self.task].name;
        match self.keeps {
            Keeps::Region(Region { at_ns, length_ns }) => {
                let from = if at_ns > 0 { format!(", from {} on", show_time(at_ns)) } else { String::new() };
                format!("`{name}`, which does not give way for {} of its work{from}", show_time(length_ns))
            }
            Keeps::Threshold { priority, work_ns } => {
                let work = show_time(work_ns);
                format!("`{name}`, which works for up to {work} and, once begun, gives way only to priorities above {priority}")
            }
            Keeps::Floating(length_ns) => {
                format!(
                    "`{name}`, which does not give way for up to {} of its work, at any place",
                    show_time(length_ns)
                )
            }
        }
    }
}

/// Of each of `tasks`, which are all that are directly below a node; or why nothing is known.
pub fn below(plan: &Plan, shape: &Shape, node: usize, tasks: &[usize]) -> Result<Vec<Kept>, String> {
    let load = |task: &usize| plan.tasks[*task].load.as_ref();
    let name = |task: &usize| &plan.tasks[*task].name;
    if plan.machine.costs != Default::default() {
        return Err("how `[machine] costs` add to regions without preemption is not known".into());
    }
    if let Some(task) = tasks.iter().find(|task| shape.task_parents[**task].len() > 1) {
        return Err(format!("`{}` has other parents, too, and comes from there within regions", name(task)));
    }
    let suspends = |task: &&usize| matches!(load(task), Some(Load::Phases(load)) if load.phases.iter().any(|phase| matches!(phase, Phase::Suspend(_))));
    if let Some(task) = tasks.iter().find(suspends) {
        return Err(format!("`{}` suspends itself: others may begin regions meanwhile", name(task)));
    }
    let policy = policies::by_number(plan.nodes[node].policy);
    let deadlines = policy.is_some_and(|policy| policy.name == "edf");
    let urgency = |task: &usize| plan.urgency(shape, *task).unwrap_or(u64::MAX);
    let own_deadline = |task: &usize| load(task).and_then(Load::deadline_ns);
    let differs = |task: &&usize| own_deadline(task).is_some_and(|own_ns| own_ns != urgency(task));
    if let Some(task) = tasks.iter().find(differs).filter(|_| deadlines) {
        return Err(format!("the deadline of `{}` is not that of the edge above it", name(task)));
    }
    let mut jobs: Vec<_> = tasks.iter().map(|task| Jobs::of(plan, *task, urgency(task))).collect();
    if !deadlines {
        jobs.iter_mut().for_each(|jobs| jobs.jitter_ns = 0);
    }
    Ok(blocked(&jobs))
}

/// What counts of the jobs of a task.
struct Jobs {
    task: usize,
    /// Less is more urgent.
    urgency: u64,
    /// How much later than their deadlines say others may be, and yet block them.
    jitter_ns: u64,
    longest: Option<Blocker>,
    last_ns: u64,
    threshold: Option<Threshold>,
}

/// Of a task with a preemption threshold.
#[derive(Clone, Copy)]
struct Threshold {
    /// The most urgent to which it does not give way.
    urgency: u64,
    blocker: Blocker,
    priority: u64,
    work_ns: u64,
}

impl Jobs {
    fn of(plan: &Plan, task: usize, urgency: u64) -> Self {
        let Some(load) = &plan.tasks[task].load else {
            return Self { task, urgency, jitter_ns: 0, longest: None, last_ns: 0, threshold: None };
        };
        let jitter_ns = job_and_suspension(load, 0).map_or(0, |(job, _)| job.jitter_ns);
        let longest = match *load.preemption() {
            // Its job has had 1 ns before it.
            Preemption::Floating(length_ns) => {
                let work_ns = load.work().map_or(u64::MAX, Work::max_ns);
                let most_ns = length_ns.min(work_ns.saturating_sub(1));
                Some(Blocker { task, most_ns, keeps: Keeps::Floating(length_ns) })
            }
            _ => load.regions().into_iter().max_by_key(|region| region.length_ns).map(|region| {
                let most_ns = region.length_ns.saturating_sub(1);
                Blocker { task, most_ns, keeps: Keeps::Region(region) }
            }),
        };
        let threshold = plan.tasks[task].threshold().map(|priority| {
            let work_ns = load.work().map_or(u64::MAX, Work::max_ns);
            let keeps = Keeps::Threshold { priority, work_ns };
            let blocker = Blocker { task, most_ns: work_ns.saturating_sub(1), keeps };
            Threshold { urgency: (u64::MAX - priority).min(urgency), blocker, priority, work_ns }
        });
        Self { task, urgency, jitter_ns, longest, last_ns: load.last_region_ns(), threshold }
    }
}

/// Of each the longest region of another one that is less urgent, or may be.
fn blocked(jobs: &[Jobs]) -> Vec<Kept> {
    let mut blockers: Vec<_> = jobs.iter().filter_map(|jobs| Some((jobs.urgency, jobs.longest?))).collect();
    blockers.sort_by_key(|(urgency, _)| Reverse(*urgency));
    // Of the first so many the longest two: one of them may be a task's own.
    let mut longest: Vec<[Option<Blocker>; 2]> = vec![[None; 2]];
    for (_, blocker) in &blockers {
        let [first, second] = longest[longest.len() - 1];
        let longer = |than: Option<Blocker>| than.is_none_or(|than| blocker.most_ns > than.most_ns);
        longest.push(match *blocker {
            blocker if longer(first) => [Some(blocker), first],
            blocker if longer(second) => [first, Some(blocker)],
            _ => [first, second],
        });
    }
    let begun = begun(jobs);
    let of = |(at, jobs): (usize, &Jobs)| {
        let later = |(urgency, _): &(u64, Blocker)| urgency.saturating_add(jobs.jitter_ns) > jobs.urgency;
        let two = longest[blockers.partition_point(later)];
        let by = two.into_iter().flatten().find(|by| by.task != jobs.task);
        let by = by.into_iter().chain(begun[at]).max_by_key(|by| by.most_ns);
        let longest_ns = jobs.longest.map_or(0, |longest| longest.most_ns + 1);
        let threshold = jobs.threshold.map(|own| (own.priority, own.work_ns));
        Kept { by, own: Sections { longest_ns, last_ns: jobs.last_ns }, threshold }
    };
    jobs.iter().enumerate().map(of).collect()
}

/// Of each the longest less urgent one whose threshold it does not exceed.
fn begun(jobs: &[Jobs]) -> Vec<Option<Blocker>> {
    let mut order: Vec<_> = (0..jobs.len()).collect();
    order.sort_by_key(|at| Reverse(jobs[*at].urgency));
    let mut found = vec![None; jobs.len()];
    let mut heap = BinaryHeap::new(); // of those that are less urgent, the longest first
    for equals in order.chunk_by(|a, b| jobs[*a].urgency == jobs[*b].urgency) {
        let urgency = jobs[equals[0]].urgency;
        let threshold = |at: usize| jobs[at].threshold.filter(|threshold| threshold.urgency <= urgency);
        // Who gives way to these does so to all that follow.
        while heap.peek().is_some_and(|(_, at)| threshold(*at).is_none()) {
            heap.pop();
        }
        let longest = heap.peek().and_then(|(_, at)| threshold(*at)).map(|threshold| threshold.blocker);
        for at in equals {
            found[*at] = longest;
            heap.extend(jobs[*at].threshold.map(|threshold| (threshold.blocker.most_ns, *at)));
        }
    }
    found
}
