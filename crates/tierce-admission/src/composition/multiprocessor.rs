//! Jobs directly below a node that is the root of several whole CPUs: sufficient tests of global scheduling (`tierce_analysis::global`).
//!
//! What they show holds for every phase. They know of no costs, no affinity, and no node or task that has CPUs from elsewhere,
//! too. Below budgets on several CPUs nothing is tested: the multiprocessor periodic resource takes for granted that each
//! CPU's budget is there whenever it is due, but a budget that was not wanted for a moment, since the only ready task ran on
//! another CPU, may begin a new period then (rule 5 of policy/reservation.c) and come later.

use crate::bounds::response::{Bound, Refusal};
use crate::demand::jobs::{comes_last, job};
use crate::demand::overheads::Overheads;
use crate::share::percent;
use tierce_analysis::global::{earliest_deadline, fixed_priority, Verdict};
use tierce_analysis::{utilisation, Response, Task};
use tierce_plan::policies;
use tierce_plan::Shape;
use tierce_plan::{Child, Load, Plan};

/// Larger sets are not tested: each pass over a set is quadratic.
const TASKS_MAX: usize = 64;

const BY_PRIORITY: &str =
    "response times under global fixed priorities (Bertogna & Cirinei 2007; Guan et al. 2009)";
const BY_DEADLINE: &str =
    "global earliest deadline first: densities (Goossens, Funk & Baruah 2003), windows (Baruah 2007), response times \
     (Bertogna & Cirinei 2007)";

/// A node that several CPUs run.
pub struct Several<'a> {
    pub plan: &'a Plan,
    pub shape: &'a Shape,
    pub overheads: &'a Overheads<'a>,
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
        if priority.or(deadline).is_none() {
            return Default::default(); // promises at most shares
        }
        let refused = |why: &str| Refusal { why: why.into(), test: "tests of several CPUs", share: None };
        if cpus < 2 || !plan.machine.left.is_empty() {
            let why =
                "no test is known for what shares budgets of several CPUs, or what others leave of them";
            return (Vec::new(), Some(refused(why)));
        }
        if !self.overheads.is_none() {
            return (Vec::new(), Some(refused("tests of several CPUs know of no costs")));
        }
        match priority {
            Some(at) => self.by_priority(at, crowd(at), cpus),
            None => self.by_deadline(deadline, deadline.and_then(crowd), cpus),
        }
    }

    /// The task below an edge and its jobs, if that is all that it may be.
    fn task(&self, edge: usize, own_ns: u64) -> Option<(usize, Task)> {
        let Child::Task(task) = self.plan.edges[edge].child else { return None };
        let about = &self.plan.tasks[task];
        let reach = self.shape.reach[self.index];
        let anywhere = about.affinity.is_none_or(|affinity| affinity & reach == reach);
        let single = self.shape.task_parents[task].len() == 1;
        let mut job = job(about.load.as_ref()?, own_ns).filter(|_| anywhere && single)?;
        job.deadline_ns = job.deadline_ns.min(job.period_ns);
        Some((task, job))
    }

    fn by_priority(
        &self,
        at: usize,
        crowd: Option<u64>,
        cpus: u32,
    ) -> (Vec<(usize, Bound)>, Option<Refusal>) {
        let priority = |edge: &usize| self.plan.edges[*edge].params[at];
        let mut order = self.shape.children[self.index].clone();
        order.retain(|edge| !self.is_idle(*edge));
        order.sort_by_key(|edge| std::cmp::Reverse(priority(edge)));
        let (mut tasks, mut levels) = (Vec::new(), Vec::new());
        let mut why = format!("no test shows it in time beside those of higher priority on {cpus} CPUs");
        for (level, equals) in order.chunk_by(|a, b| priority(a) == priority(b)).enumerate() {
            let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
            let found = equals.iter().map(|edge| self.task(*edge, 0)).collect::<Option<Vec<_>>>();
            let Some(found) = found.filter(|found| !crowded && tasks.len() + found.len() <= TASKS_MAX) else {
                why = format!(
                    "how much those of priority {} and above ask for is not bounded, or they are too many",
                    priority(&equals[0])
                );
                break;
            };
            levels.extend(found.iter().map(|_| level as u32));
            tasks.extend(found);
        }
        let set: Vec<_> = tasks.iter().map(|(_, job)| *job).collect();
        let found = fixed_priority(&set, &levels, cpus);
        let refusal = Refusal { why, test: BY_PRIORITY, share: None };
        (found.map_or_else(|_| Vec::new(), |found| bounds(&tasks, found, BY_PRIORITY)), Some(refusal))
    }

    fn by_deadline(
        &self,
        at: Option<usize>,
        crowd: Option<u64>,
        cpus: u32,
    ) -> (Vec<(usize, Bound)>, Option<Refusal>) {
        let own_ns = |edge: usize| at.map_or(0, |at| self.plan.edges[edge].params[at]);
        let edges = self.shape.children[self.index].iter().copied();
        let edges = edges.filter(|edge| !comes_last(self.plan, &self.plan.edges[*edge], own_ns(*edge)));
        let refused = |why: String, share| Refusal { why, test: BY_DEADLINE, share };
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
            let why = "its node has children whose deadlines are not those of bounded jobs, or too many";
            return (Vec::new(), Some(refused(why.into(), None)));
        };
        let set: Vec<_> = tasks.iter().map(|(_, job)| *job).collect();
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
        (bounds(&tasks, found, BY_DEADLINE), Some(refused(why, excess)))
    }

    fn is_idle(&self, edge: usize) -> bool {
        matches!(self.plan.edges[edge].child, Child::Task(task) if self.plan.tasks[task].load.is_none())
    }
}

fn bounds(tasks: &[(usize, Task)], found: Verdict, test: &'static str) -> Vec<(usize, Bound)> {
    let each = tasks.iter().zip(found.tasks);
    let bound = |ns| Bound { response: Response::Within(ns), test, exact: false };
    each.filter_map(|((task, _), shown)| Some((*task, bound(shown.response_ns?)))).collect()
}
