//! Servers to CPUs, each on one: a server is a budget in each period, and each CPU schedules its servers by fixed priorities or by
//! earliest deadline. A placement holds if every server gets its budget within its deadline, by the exact test.
//!
//! ```
//! use tierce_analysis::placement::{Order, Question, Strategy};
//! let servers = tierce_analysis::parse("name,work,period\na,2ms,5ms\nb,4ms,10ms\nc,3ms,5ms").unwrap();
//! let asked = Question::new(servers, 2, Strategy::Period, Order::FixedPriority).unwrap();
//! assert_eq!(asked.place().unwrap().cpu_of, [0, 1, 0]);
//! ```

use crate::partition::{fewest_switches, partition, switches, Fit, Partition};
use crate::question::{refuse, Named, Refused};
use crate::{priorities, Edf, Entry, FixedPriority, Response, Supply, Task};
use tierce_guarantee::show_ns;

/// Which CPU a server goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the list below says what each is")]
pub enum Strategy {
    First,
    Best,
    Worst,
    Period,
    Mixed,
    Switches,
}

impl Named for Strategy {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (
            Self::First,
            "first",
            "The lowest CPU on which all servers are schedulable, by decreasing utilisation",
        ),
        (Self::Best, "best", "The fullest CPU, by decreasing utilisation"),
        (Self::Worst, "worst", "The emptiest CPU, by decreasing utilisation"),
        (Self::Period, "period", "By period, so that the periods on one CPU are as similar as possible"),
        (Self::Mixed, "mixed", "By period, dealt out: each CPU gets periods of all lengths"),
        (
            Self::Switches,
            "switches",
            "The best of the others by switches, then improved step by step while switches become fewer",
        ),
    ];
}

impl Strategy {
    /// `None`: switches.
    fn fit(self) -> Option<Fit> {
        match self {
            Self::First => Some(Fit::First),
            Self::Best => Some(Fit::Best),
            Self::Worst => Some(Fit::Worst),
            Self::Period => Some(Fit::Period),
            Self::Mixed => Some(Fit::Mixed),
            Self::Switches => None,
        }
    }
}

/// How a CPU schedules its servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the list below says what each is")]
pub enum Order {
    FixedPriority,
    Edf,
}

impl Named for Order {
    const ALL: &'static [(Self, &'static str, &'static str)] = &[
        (Self::FixedPriority, "fixed-priority", "The larger priority"),
        (Self::Edf, "edf", "The earlier deadline"),
    ];
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// The servers; their work is the budget.
    pub entries: Vec<Entry>,
    /// Of each server its numbers.
    pub tasks: Vec<Task>,
    /// Of each server: the smaller, the higher its priority.
    pub levels: Vec<u32>,
    /// How many.
    pub cpus: u32,
    /// Which CPU a server goes to.
    pub strategy: Strategy,
    /// How a CPU schedules its servers.
    pub order: Order,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Of each server.
    pub cpu_of: Vec<usize>,
    /// Of each server; `None` with EDF.
    pub responses: Vec<Option<Response>>,
}

impl Question {
    /// `entries` are valid, as those of a table are. Refused: what no server is.
    pub fn new(entries: Vec<Entry>, cpus: u32, strategy: Strategy, order: Order) -> Result<Self, Refused> {
        let given = entries.iter().filter(|entry| entry.priority.is_some()).count();
        if given != 0 && given != entries.len() {
            let all = entries.len();
            refuse!(
                "priorities_are_complete",
                "{given} of {all} servers have a priority; give all of them one, or none"
            );
        }
        for Entry { name, task, .. } in &entries {
            let Task { work_ns, period_ns, deadline_ns, jitter_ns, blocking_ns } = *task;
            if work_ns > deadline_ns || deadline_ns > period_ns {
                let [budget, deadline, period] = [work_ns, deadline_ns, period_ns].map(show_ns);
                refuse!("budget_within_deadline_within_period", "{name} has {budget}, {deadline}, {period}");
            }
            if jitter_ns > 0 || blocking_ns > 0 {
                refuse!("servers_have_no_jitter", "{name} has a jitter or a blocking time, bound 0");
            }
        }
        let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
        let levels = levels(&entries, &tasks);
        Ok(Self { entries, tasks, levels, cpus, strategy, order })
    }

    /// Of the servers on one CPU, as they are listed.
    fn responses(&self, members: &[usize]) -> Vec<Response> {
        let mut order: Vec<_> = (0..members.len()).collect();
        order.sort_by_key(|at| self.levels[members[*at]]);
        let tasks: Vec<_> = order.iter().map(|at| self.tasks[members[*at]]).collect();
        let levels: Vec<_> = order.iter().map(|at| self.levels[members[*at]]).collect();
        let mut fixed = FixedPriority::new();
        let mut responses = vec![Response::Unbounded; members.len()];
        let found = fixed.responses_by_level(&tasks, &levels, &Supply::WHOLE);
        order.iter().zip(found).for_each(|(at, response)| responses[*at] = *response);
        responses
    }

    fn holds(&self, members: &[usize]) -> bool {
        match self.order {
            Order::FixedPriority => {
                let responses = self.responses(members);
                let deadlines = members.iter().map(|index| self.tasks[*index].deadline_ns);
                deadlines.zip(responses).all(|(deadline_ns, response)| response.meets(deadline_ns))
            }
            Order::Edf => {
                let tasks: Vec<_> = members.iter().map(|index| self.tasks[*index]).collect();
                Edf::new().schedulable_quickly(&tasks, &Supply::WHOLE)
            }
        }
    }

    /// The servers on a CPU.
    pub fn on(&self, cpu_of: &[usize], cpu: usize) -> Vec<usize> {
        (0..cpu_of.len()).filter(|index| cpu_of[*index] == cpu).collect()
    }

    /// How often servers begin or go on, an estimate for arbitrary phases: millionths per second, on all CPUs.
    pub fn switches(&self, cpu_of: &[usize]) -> u128 {
        (0..self.cpus as usize).map(|cpu| self.switches_on(cpu_of, cpu)).sum()
    }

    /// The same on one CPU.
    pub fn switches_on(&self, cpu_of: &[usize], cpu: usize) -> u128 {
        switches(&self.tasks, &self.levels, &self.on(cpu_of, cpu))
    }

    /// The placement, or the server that fits nowhere.
    pub fn place(&self) -> Result<Placement, usize> {
        let cpus = self.cpus as usize;
        let by = |fit| match partition(&self.tasks, cpus, fit, |members| self.holds(members)) {
            Partition::Fits(cpu_of) => Ok(cpu_of),
            Partition::Fails(index) => Err(index),
        };
        let cpu_of = match self.strategy.fit() {
            Some(fit) => by(fit)?,
            None => {
                let fits = Strategy::ALL.iter().filter_map(|(strategy, ..)| strategy.fit());
                let all: Vec<_> = fits.map(by).collect();
                let least = all.iter().flatten().min_by_key(|cpu_of| self.switches(cpu_of)).cloned();
                let start = match least {
                    Some(start) => start,
                    None => return Err(all.into_iter().find_map(Result::err).unwrap_or(0)),
                };
                fewest_switches(&self.tasks, &self.levels, cpus, start, |members| self.holds(members))
            }
        };
        let mut responses = vec![None; cpu_of.len()];
        if self.order == Order::FixedPriority {
            for cpu in 0..cpus {
                let members = self.on(&cpu_of, cpu);
                let found = self.responses(&members);
                members.iter().zip(found).for_each(|(index, found)| responses[*index] = Some(found));
            }
        }
        Ok(Placement { cpu_of, responses })
    }

    /// Why there is no placement: the rule, and the server of that index in words.
    pub fn refusal(&self, index: usize) -> Refused {
        let Entry { name, task, .. } = &self.entries[index];
        let (budget, period) = (show_ns(task.work_ns), show_ns(task.period_ns));
        let message = format!(
            "{name} ({budget} per {period}) fits on none of the {} CPUs, after the servers that were placed before it.",
            self.cpus
        );
        Refused { rule: "server_fits_nowhere", message }
    }
}

/// As given, equals together; without priorities the shorter period first.
fn levels(entries: &[Entry], tasks: &[Task]) -> Vec<u32> {
    let mut levels = vec![0; tasks.len()];
    if entries.iter().any(|entry| entry.priority.is_some()) {
        let mut all: Vec<_> = entries.iter().map(|entry| std::cmp::Reverse(entry.priority)).collect();
        all.sort();
        all.dedup();
        for (level, entry) in levels.iter_mut().zip(entries) {
            let rank = all.partition_point(|other| other.0 > entry.priority);
            *level = u32::try_from(rank).unwrap_or(u32::MAX);
        }
    } else {
        (0..).zip(priorities::rate_monotonic(tasks)).for_each(|(rank, index)| levels[index] = rank);
    }
    levels
}
