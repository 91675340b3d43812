//! Jobs directly below a node that is the root of several whole CPUs: sufficient tests of global scheduling (`tierce_analysis::global`).
//!
//! What they show holds for every phase. They know of no costs, no affinity, and no node or task that has CPUs from elsewhere,
//! too. Below budgets on several CPUs other tests are used (`several_budgets.rs`): the multiprocessor periodic resource takes for
//! granted that each CPU's budget is there whenever it is due, but a budget that was not wanted for a moment, since the only
//! ready task ran on another CPU, may begin a new period then (rule 5 of policy/reservation.c) and come later.

use crate::bounds::adjacent_reserves::task_at_once;
use crate::bounds::response::{Bound, Refusal};
use crate::composition::several_budgets::{self, Promised};
use crate::demand::jobs::{comes_last, job};
use crate::demand::overheads::Overheads;
use crate::share::percent;
use tierce_analysis::global::{earliest_deadline, fixed_priority, Shown};
use tierce_analysis::several_budgets::{Budgets, Others};
use tierce_analysis::{tardiness, utilisation, Response, Task};
use tierce_plan::policies;
use tierce_plan::Shape;
use tierce_plan::{show_time, Child, Load, Plan};

/// Larger sets are not tested: each pass over a set is quadratic.
const TASKS_MAX: usize = 64;

const BY_PRIORITY: &str =
    "response times under global fixed priorities (Bertogna & Cirinei 2007; Guan et al. 2009)";
const BY_DEADLINE: &str =
    "global earliest deadline first: densities (Goossens, Funk & Baruah 2003), windows (Baruah 2007), response times \
     (Bertogna & Cirinei 2007)";

const LATE: &str = "deadline and tardiness under global earliest deadline first (Devi & Anderson 2005; Erickson, Devi & Baruah 2010; \
     Erickson, Guan & Baruah 2010)";

const BUDGETS_BY_PRIORITY: &str =
    "response times under global fixed priorities inside budgets on several CPUs that may be idle";
const BUDGETS_BY_DEADLINE: &str =
    "response times under global earliest deadline first inside budgets on several CPUs that may be idle";

/// What a node runs on.
enum Cpus {
    Whole(u32),
    /// And what they are, in words.
    Parts(Budgets, String),
}

/// A node that several CPUs run.
pub struct Several<'a> {
    pub plan: &'a Plan,
    pub shape: &'a Shape,
    pub overheads: &'a Overheads<'a>,
    pub promises: Promised<'a>,
    pub index: usize,
}

impl Several<'_> {
    /// Bounds by the task's index; why there are no others.
    pub fn test(&self, crowd: impl Fn(usize) -> Option<u64>) -> (Vec<(usize, Bound)>, Option<Refusal>) {
        let (plan, node) = (self.plan, &self.plan.nodes[self.index]);
        let Some(policy) = policies::by_number(node.policy) else { return Default::default() };
        let most = if node.concurrency > 0 { node.concurrency } else { u32::MAX };
        let cpus = (node.roots.len() as u32).min(most);
        let place = |name| policies::position(&policy.edge_params, name);
        let (priority, deadline) =
            (policies::priority(policy), place("deadline").filter(|_| policy.heeds_deadlines));
        if priority.or(deadline).is_none() || policy.added {
            return Default::default(); // promises at most shares
        }
        let refused = |why: &str| Refusal { why: why.into(), test: "tests of several CPUs", share: None };
        if !self.overheads.is_none() {
            return (Vec::new(), Some(refused("tests of several CPUs know of no costs")));
        }
        let above = &self.shape.parents[self.index];
        let cpus = if node.roots.is_empty() && above.len() > 1 {
            let about = (node.concurrency, self.overheads);
            match several_budgets::of(self.promises, plan, self.shape, above, about) {
                Ok(budgets) => Cpus::Parts(
                    budgets,
                    format!("budgets of {}", several_budgets::listed(plan, self.shape, above)),
                ),
                Err(why) => return (Vec::new(), Some(refused(&why))),
            }
        } else if cpus < 2 || !plan.machine.left.is_empty() {
            let why =
                "no test is known for a part of what several CPUs run, or for what others leave of them";
            return (Vec::new(), Some(refused(why)));
        } else {
            Cpus::Whole(cpus)
        };
        match priority {
            Some(at) => self.by_priority(at, crowd(at), &cpus),
            None => self.by_deadline(deadline, deadline.and_then(crowd), &cpus),
        }
    }

    /// The task below an edge and its jobs, if that is all that it may be.
    fn task(&self, edge: usize, own_ns: u64) -> Option<(usize, Task)> {
        let Child::Task(task) = self.plan.edges[edge].child else { return None };
        let about = &self.plan.tasks[task];
        let reach = self.shape.reach[self.index];
        let anywhere = about.affinity.is_none_or(|affinity| reach.are_within(affinity));
        let single = self.shape.task_parents[task].len() == 1;
        let mut job = one_by_one(about.load.as_ref()?, own_ns).filter(|_| anywhere && single)?;
        job.deadline_ns = job.deadline_ns.min(job.period_ns);
        Some((task, job))
    }

    fn by_priority(
        &self,
        at: usize,
        crowd: Option<u64>,
        cpus: &Cpus,
    ) -> (Vec<(usize, Bound)>, Option<Refusal>) {
        let priority = |edge: &usize| self.plan.edges[*edge].params[at];
        let mut order = self.shape.children[self.index].clone();
        order.retain(|edge| !self.is_idle(*edge));
        order.sort_by_key(|edge| std::cmp::Reverse(priority(edge)));
        let (mut tasks, mut levels) = (Vec::new(), Vec::new());
        let why = match cpus {
            Cpus::Whole(cpus) => {
                format!("no test shows it in time beside those of higher priority on {cpus} CPUs")
            }
            Cpus::Parts(_, parts) => {
                format!("{parts} are not proved to be enough beside those of higher priority")
            }
        };
        let mut unbounded = None;
        let mut below = if crowd.is_some() { Others::Below } else { Others::Known };
        for (level, equals) in order.chunk_by(|a, b| priority(a) == priority(b)).enumerate() {
            let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
            let found = equals.iter().map(|edge| self.task(*edge, 0)).collect::<Option<Vec<_>>>();
            let Some(found) = found.filter(|found| !crowded && tasks.len() + found.len() <= TASKS_MAX) else {
                unbounded = Some(format!(
                    "the demand of those of priority {} and above is not bounded, or they are too many",
                    priority(&equals[0])
                ));
                below = Others::Below;
                break;
            };
            levels.extend(found.iter().map(|_| level as u32));
            tasks.extend(found);
        }
        let set: Vec<_> = tasks.iter().map(|(_, job)| *job).collect();
        let (found, test) = match cpus {
            Cpus::Whole(cpus) => {
                let found = fixed_priority(&set, &levels, *cpus).map(|found| found.tasks);
                let each = |found: Vec<_>| found.into_iter().map(response).collect();
                (found.map_or_else(|_| Vec::new(), each), BY_PRIORITY)
            }
            Cpus::Parts(budgets, _) => {
                (budgets.fixed_priority(&set, &levels, below).unwrap_or_default(), BUDGETS_BY_PRIORITY)
            }
        };
        let why = unbounded.filter(|_| found.iter().all(Option::is_some)).unwrap_or(why);
        (bounds(&tasks, found, test), Some(Refusal { why, test, share: None }))
    }

    fn by_deadline(
        &self,
        at: Option<usize>,
        crowd: Option<u64>,
        cpus: &Cpus,
    ) -> (Vec<(usize, Bound)>, Option<Refusal>) {
        let own_ns = |edge: usize| at.map_or(0, |at| self.plan.edges[edge].params[at]);
        let edges = self.shape.children[self.index].iter().copied();
        let last = |edge: &usize| comes_last(self.plan, &self.plan.edges[*edge], own_ns(*edge));
        let some_last = crowd.is_some() || edges.clone().any(|edge| last(&edge) && !self.is_idle(edge));
        let edges = edges.filter(|edge| !last(edge));
        let test = if matches!(cpus, Cpus::Whole(_)) { BY_DEADLINE } else { BUDGETS_BY_DEADLINE };
        let refused = |why: String, share| Refusal { why, test, share };
        let tasks: Option<Vec<_>> = edges
            .map(|edge| {
                let announced = |task: usize| self.plan.tasks[task].load.as_ref().and_then(Load::deadline_ns);
                self.task(edge, own_ns(edge)).filter(|(task, job)| {
                    announced(*task).is_none_or(|announced| announced == job.deadline_ns)
                })
            })
            .collect();
        let tasks =
            tasks.filter(|tasks| tasks.len() <= TASKS_MAX && crowd.is_none_or(|deadline| deadline == 0));
        let Some(tasks) = tasks else {
            return (Vec::new(), Some(refused(self.no_bounded_deadlines(), None)));
        };
        let set: Vec<_> = tasks.iter().map(|(_, job)| *job).collect();
        let cpus = match cpus {
            Cpus::Whole(cpus) => *cpus,
            Cpus::Parts(budgets, parts) => {
                let below = if some_last { Others::Below } else { Others::Known };
                let found = budgets.earliest_deadline(&set, below).unwrap_or_default();
                let why = format!("{parts} are not proved to be enough beside the others");
                return (bounds(&tasks, found, test), Some(refused(why, None)));
            }
        };
        let Ok(found) = earliest_deadline(&set, cpus) else { return Default::default() };
        let dense =
            |task: &Task| Task::new(task.work_ns, task.deadline_ns.saturating_sub(task.jitter_ns).max(1));
        let dense: Vec<_> = set.iter().map(dense).collect();
        let each = dense.iter().map(|task| utilisation(&[*task]));
        let most = each.max().unwrap_or_else(crate::share::zero);
        let sum = utilisation(&dense);
        let room = crate::share::ratio(cpus.into(), 1) - crate::share::ratio(u64::from(cpus) - 1, 1) * most;
        let why = format!(
            "no test shows {} tasks in time on {cpus} CPUs; work/deadline adds up to {}, {} would be enough",
            tasks.len(),
            percent(&sum),
            percent(&room)
        );
        let excess = Some(sum - room).filter(|excess| *excess > crate::share::zero());
        let found = found.tasks.into_iter().map(response).collect();
        let mut found = bounds(&tasks, found, test);
        found.extend(self.late(at, &tasks, &found, cpus));
        (found, Some(refused(why, excess)))
    }

    /// Of those that may be late and have no bound yet: when they are done, however late. `known`: bounds that there are; `at`: where edges have
    /// deadlines.
    fn late(
        &self,
        at: Option<usize>,
        tasks: &[(usize, Task)],
        known: &[(usize, Bound)],
        cpus: u32,
    ) -> Vec<(usize, Bound)> {
        let load = |task: usize| self.plan.tasks[task].load.as_ref();
        // A late job has the deadline that counts from its own nominal release, though it begins later. One of an edge would count from
        // a wake-up.
        let own =
            |(task, _): &(usize, Task)| matches!(load(*task), Some(Load::Periodic(_) | Load::Sporadic(_)));
        let of_edges =
            |edge: &usize| at.is_some_and(|at| self.plan.edges[*edge].params[at] > 0 && !self.is_idle(*edge));
        if !tasks.iter().all(own) || self.shape.children[self.index].iter().any(of_edges) {
            return Vec::new();
        }
        let set: Vec<_> = tasks.iter().map(|(_, job)| *job).collect();
        let within = |((task, job), late): (&(usize, Task), Option<u64>)| {
            let open = !known.iter().any(|(known, _)| known == task);
            let response = Response::Within(job.deadline_ns.checked_add(late?)?);
            let soft = load(*task).is_some_and(Load::is_soft);
            (soft && open).then_some((*task, Bound { response, test: LATE, exact: false }))
        };
        tasks.iter().zip(tardiness(&set, cpus)).filter_map(within).collect()
    }

    /// Why deadlines of the children are not tested.
    fn no_bounded_deadlines(&self) -> String {
        let beyond = |edge: &usize| {
            let Child::Task(task) = self.plan.edges[*edge].child else { return None };
            let about = &self.plan.tasks[task];
            let job = one_by_one(about.load.as_ref()?, 0)?;
            (job.deadline_ns > job.period_ns).then_some((about, job))
        };
        match self.shape.children[self.index].iter().find_map(beyond) {
            Some((about, job)) => format!(
                "tests of several CPUs that go by deadlines know of none beyond periods, and that of `{}` is {}, of a period of {}",
                about.name,
                show_time(job.deadline_ns),
                show_time(job.period_ns)
            ),
            None => "its node has children whose deadlines are not those of bounded jobs, or too many".into(),
        }
    }

    fn is_idle(&self, edge: usize) -> bool {
        matches!(self.plan.edges[edge].child, Child::Task(task) if self.plan.tasks[task].load.is_none())
    }
}

fn response(shown: Shown) -> Option<u64> {
    shown.response_ns
}

fn bounds(tasks: &[(usize, Task)], found: Vec<Option<u64>>, test: &'static str) -> Vec<(usize, Bound)> {
    let each = tasks.iter().zip(found);
    let bound = |ns| Bound { response: Response::Within(ns), test, exact: false };
    each.filter_map(|((task, _), response)| Some((*task, bound(response?)))).collect()
}

/// A task that has a budget on each of several CPUs for itself.
pub fn alone(
    plan: &Plan,
    shape: &Shape,
    promises: Promised,
    overheads: &Overheads,
    task: usize,
) -> Option<Bound> {
    if shape.task_parents[task].len() < 2 || !task_at_once(plan, shape, task) {
        return None;
    }
    let mut job = one_by_one(plan.tasks[task].load.as_ref()?, 0)?;
    job.deadline_ns = job.deadline_ns.min(job.period_ns);
    let budgets = several_budgets::alone(promises, plan, shape, task, overheads).ok()?;
    let ns = budgets.fixed_priority(&[job], &[0], Others::Known).ok()?[0]?;
    Some(Bound { response: Response::Within(ns), test: BUDGETS_BY_PRIORITY, exact: false })
}

/// The jobs of a load of which each comes after the one before it was due; triggered ones may come at once.
fn one_by_one(load: &Load, deadline_ns: u64) -> Option<Task> {
    job(load, deadline_ns).filter(|_| !matches!(load, Load::Triggered(_)))
}
