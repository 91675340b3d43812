//! Is a set schedulable? The same verdicts as `tierce analyse`, without words, and response times only where they are wanted.

use crate::study::{Analysis, Policy};
use tierce_analysis::partition::{partition, Partition};
use tierce_analysis::{
    fifo, global, pfair, priorities, sections, Edf, FixedPriority, Response, Sections, Supply, Task,
};

/// What is found of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// It is shown that all deadlines are met.
    pub schedulable: bool,
    /// The largest response over deadline; `None` where it was not asked for, or a task has no bound.
    pub ratio: Option<f64>,
}

/// The analyses, with their memory: one for many sets.
#[derive(Default)]
pub struct Analyser {
    fixed: FixedPriority,
    edf: Edf,
}

impl Analyser {
    /// The verdict on a set.
    pub fn outcome(
        &mut self,
        asked: &Analysis,
        tasks: &[Task],
        cpus: u32,
    ) -> Result<Outcome, global::Unsupported> {
        match asked.partition {
            _ if cpus == 1 => Ok(self.on_one(asked, tasks)),
            None => anywhere(asked, tasks, cpus),
            Some(fit) => {
                let some = |members: &[usize]| members.iter().map(|index| tasks[*index]).collect::<Vec<_>>();
                let quick = Analysis { responses: false, ..asked.clone() };
                let holds = |members: &[usize]| self.on_one(&quick, &some(members)).schedulable;
                let Partition::Fits(cpu_of) = partition(tasks, cpus as usize, fit, holds) else {
                    return Ok(Outcome::default());
                };
                if !asked.responses {
                    return Ok(Outcome { schedulable: true, ratio: None });
                }
                let members = |cpu| (0..tasks.len()).filter(|task| cpu_of[*task] == cpu).collect::<Vec<_>>();
                let each: Vec<_> =
                    (0..cpus as usize).map(|cpu| self.on_one(asked, &some(&members(cpu)))).collect();
                let larger = |ratio: Option<f64>, other: &Outcome| Some(ratio?.max(other.ratio?));
                let ratio = each.iter().fold(Some(0.0), larger);
                Ok(Outcome { schedulable: each.iter().all(|outcome| outcome.schedulable), ratio })
            }
        }
    }

    fn on_one(&mut self, asked: &Analysis, tasks: &[Task]) -> Outcome {
        let supply = &asked.supply;
        match asked.policy {
            Policy::Fifo if asked.responses => by_responses(tasks, &fifo::responses(tasks, supply)),
            Policy::Fifo => Outcome { schedulable: fifo::schedulable(tasks, supply), ratio: None },
            _ if asked.whole_jobs => self.in_regions(asked, tasks),
            Policy::Edf => {
                let schedulable = self.edf.schedulable(tasks, supply);
                let responses = asked.responses.then(|| self.edf.responses(tasks, supply));
                Outcome { schedulable, ratio: responses.and_then(|responses| ratio(tasks, responses)) }
            }
            _ => {
                let order = match asked.policy {
                    Policy::Audsley => priorities::audsley(tasks, supply),
                    policy => Some(order(policy, tasks, 1)),
                };
                if order.is_none() && !asked.responses {
                    return Outcome::default();
                }
                let order = order.unwrap_or_else(|| priorities::deadline_monotonic(tasks));
                let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
                if asked.responses {
                    return by_responses(&ordered, self.fixed.responses(&ordered, supply));
                }
                Outcome { schedulable: self.fixed.schedulable(&ordered, supply), ratio: None }
            }
        }
    }

    /// Each job is one region without preemption.
    fn in_regions(&mut self, asked: &Analysis, tasks: &[Task]) -> Outcome {
        let supply: &Supply = &asked.supply;
        let region = |task: &Task| Sections { longest_ns: task.work_ns, last_ns: task.work_ns };
        let regions: Vec<_> = tasks.iter().map(region).collect();
        if asked.policy == Policy::Edf {
            if !asked.responses {
                let schedulable = self.edf.schedulable(&sections::blocked(tasks, &regions), supply);
                return Outcome { schedulable, ratio: None };
            }
            let (demand, responses) = sections::earliest_deadline(tasks, &regions, supply);
            let schedulable = demand == tierce_analysis::Demand::Met;
            return Outcome { schedulable, ratio: ratio(tasks, &responses) };
        }
        let order = match asked.policy {
            Policy::Audsley => sections::audsley(tasks, &regions, supply),
            policy => Some(order(policy, tasks, 1)),
        };
        let order = order.unwrap_or_else(|| priorities::deadline_monotonic(tasks));
        let found = sections::fixed_priority(tasks, &regions, &levels(&order), supply);
        let outcome = by_responses(tasks, &found);
        Outcome { ratio: outcome.ratio.filter(|_| asked.responses), ..outcome }
    }
}

/// Any CPU may run any task.
fn anywhere(asked: &Analysis, tasks: &[Task], cpus: u32) -> Result<Outcome, global::Unsupported> {
    let found = match asked.policy {
        Policy::Edf => global::earliest_deadline(tasks, cpus)?,
        Policy::Pd2 => pfair::pd2(tasks, cpus, asked.quantum_ns)?,
        policy => {
            let order = match policy {
                Policy::Audsley => {
                    global::audsley(tasks, cpus)?.unwrap_or_else(|| order(Policy::Dkc, tasks, cpus))
                }
                _ => order(policy, tasks, cpus),
            };
            global::fixed_priority(tasks, &levels(&order), cpus)?
        }
    };
    let response = |shown: &global::Shown| shown.response_ns.map_or(Response::TooLong, Response::Within);
    let responses: Vec<_> = found.tasks.iter().map(response).collect();
    let ratio = ratio(tasks, &responses).filter(|_| asked.responses);
    Ok(Outcome { schedulable: found.schedulable, ratio })
}

/// Tasks, the highest priority first.
pub fn order(policy: Policy, tasks: &[Task], cpus: u32) -> Vec<usize> {
    match policy {
        Policy::Rm => priorities::rate_monotonic(tasks),
        Policy::Dkc => global::d_minus_kc(tasks, cpus),
        _ => priorities::deadline_monotonic(tasks),
    }
}

/// Of each task the rank in that order.
pub fn levels(order: &[usize]) -> Vec<u32> {
    let mut levels = vec![0; order.len()];
    (0..).zip(order).for_each(|(level, index)| levels[*index] = level);
    levels
}

fn ratio(tasks: &[Task], responses: &[Response]) -> Option<f64> {
    let mut largest: f64 = 0.0;
    for (task, response) in tasks.iter().zip(responses) {
        largest = largest.max(response.ns()? as f64 / task.deadline_ns as f64);
    }
    Some(largest)
}

fn by_responses(tasks: &[Task], responses: &[Response]) -> Outcome {
    let met = |(task, response): (&Task, &Response)| response.meets(task.deadline_ns);
    Outcome { schedulable: tasks.iter().zip(responses).all(met), ratio: ratio(tasks, responses) }
}
