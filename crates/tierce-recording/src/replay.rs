//! A proposed plan in the simulator, with what the threads of the recording did: each burst is a job that is released when the thread woke
//! up, and works as long as it did.
//!
//! The simulated machine has no costs and no interrupts: what these took is part of the recorded work.

use crate::proposal::{is_planned, Proposal};
use crate::threads::{Thread, Threads};
use std::collections::HashMap;
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_calibrate::Burst;
use tierce_plan::{nice_weight, Faults, Load, Plan, Refused, Stage, StageJobs, Stages, Work};
use tierce_sim::{Options, Simulation, Violation};
use tierce_trace::{Histogram, Kind};

/// More threads without a reservation are left out of the simulation, those with the least CPU time.
const OTHERS_MAX: usize = 500;

/// Simulated at once: the events of so much time are in memory.
const STEP_NS: u64 = 20_000_000;

/// Why a proposal cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum Impossible {
    /// The plan has faults: for example there is no room on the CPUs.
    #[error("{0}")]
    Faults(Faults),
    /// The simulator refuses it.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// A bug of ours.
    #[error("a bug of tierce: {0}")]
    Violation(#[from] Violation),
}

/// What a thread had, and what it would have.
#[derive(Clone, Debug)]
pub struct Compared {
    /// Which thread, in [`Threads::all`].
    pub thread: usize,
    /// Its task in the plan.
    pub task: String,
    /// The deadline of its jobs, if it has a reservation.
    pub deadline_ns: Option<u64>,
    /// In the recording, and in the simulation.
    pub had: Times,
    /// In the simulation.
    pub gets: Times,
}

/// How a thread was served.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Jobs that are complete.
    pub jobs: u64,
    /// Of them, those that took longer than the deadline.
    pub late: u64,
    /// From waking up to running.
    pub latency_ns: Histogram,
    /// From waking up to sleeping again.
    pub response_ns: Histogram,
}

impl Compared {
    /// The plan meets what the recording met: not more jobs are late. Of threads without a reservation nothing is promised.
    pub fn is_met(&self) -> bool {
        self.deadline_ns.is_none() || self.gets.late <= self.had.late
    }
}

/// A plan that was simulated with the recorded jobs.
pub struct Replayed {
    /// Every guarantee of the plan holds.
    pub holds: bool,
    /// What does not, for people.
    pub faults: String,
    /// What each thread had and gets, those with a reservation first.
    pub compared: Vec<Compared>,
    /// Threads that were left out, and their CPU time.
    pub left_out: (usize, u64),
}

impl Replayed {
    /// Every guarantee holds, and the plan meets what the recording met.
    pub fn is_met(&self) -> bool {
        self.holds && self.compared.iter().all(Compared::is_met)
    }
}

/// Check the proposal, and simulate it with what the threads did.
pub fn replay(threads: &Threads, proposal: &Proposal) -> Result<Replayed, Impossible> {
    let plan = Plan::parse(&proposal.text, "the proposed plan").map_err(Impossible::Faults)?;
    let admission = plan.admit();
    let faults = admission.faults(&plan).to_string();
    let (text, others, left_out) = with_others(threads, proposal);
    let mut plan = Plan::parse(&text, "the proposed plan, with all threads").map_err(Impossible::Faults)?;
    let mut of_task: HashMap<usize, Player> = HashMap::new();
    for planned in &proposal.planned {
        let same = (0..threads.all.len()).filter(|index| {
            proposal.findings[*index].is_some() && threads.all[*index].comm.text() == planned.thread
        });
        // Threads without a period that have the name of one with a period are members of its set, too.
        let members = members(&plan, &planned.name);
        for (task, index) in members.into_iter().zip(same) {
            of_task
                .insert(task, Player::new(index, &threads.all[index], Some(planned.reservation.period_ns)));
        }
    }
    for (task, other) in
        plan.tasks.iter().enumerate().filter_map(|(at, task)| Some((at, others.get(&task.name)?)))
    {
        of_task.insert(task, Player::new(*other, &threads.all[*other], None));
    }
    for (at, task) in plan.tasks.iter_mut().enumerate() {
        task.load = of_task.get(&at).map(|player| player.load(threads.from_ns));
    }
    play(&plan, threads, &mut of_task)?;
    let mut compared: Vec<Compared> = of_task
        .into_iter()
        .map(|(task, player)| player.compared(threads, plan.tasks[task].name.clone()))
        .collect();
    compared.sort_by_key(|one| (one.deadline_ns.is_none(), one.thread));
    Ok(Replayed { holds: admission.holds, faults, compared, left_out })
}

/// The plan, with a task for every thread that has none, and which those are.
fn with_others(threads: &Threads, proposal: &Proposal) -> (String, HashMap<String, usize>, (usize, u64)) {
    let planned =
        |thread: &Thread| proposal.planned.iter().any(|planned| planned.thread == thread.comm.text());
    let mut others: Vec<usize> = (0..threads.all.len())
        .filter(|index| {
            let thread = &threads.all[*index];
            let reserved = proposal.findings[*index].is_some() && planned(thread);
            is_planned(thread) && !reserved && thread.watched.ran_ns > 0
        })
        .collect();
    others.sort_by_key(|index| std::cmp::Reverse(threads.all[*index].watched.ran_ns));
    let left = others.split_off(others.len().min(OTHERS_MAX));
    let left_ns = left.iter().map(|index| threads.all[*index].watched.ran_ns).sum();
    let (mut text, mut by_name) = (proposal.text.clone(), HashMap::new());
    for index in others {
        let thread = &threads.all[index];
        let name = format!("recorded-{index}");
        // Real-time threads of the recording without a period are before all others of the default node.
        let weight = if thread.prio < 100 { nice_weight(-20) } else { nice_weight(thread.prio - 120) };
        let _ = writeln!(text, "\n[task.{name}]\nunder.rest = {{ weight = {weight} }}");
        by_name.insert(name, index);
    }
    (text, by_name, (left.len(), left_ns))
}

/// The tasks of that name: a task, or the members of a set.
fn members(plan: &Plan, name: &str) -> Vec<usize> {
    if let Some(set) = plan.sets.iter().find(|set| set.name == name) {
        return set.members.clone().collect();
    }
    plan.tasks.iter().position(|task| task.name == name).into_iter().collect()
}

/// A thread that is played.
struct Player {
    thread: usize,
    deadline_ns: Option<u64>,
    /// Its bursts, in the order of time, and which of them are whole.
    bursts: Vec<(Burst, bool)>,
    gets: Times,
}

impl Player {
    fn new(index: usize, thread: &Thread, deadline_ns: Option<u64>) -> Player {
        let whole = thread.watched.bursts.iter().map(|burst| (*burst, true));
        let mut bursts: Vec<_> = whole.chain(thread.parts.iter().map(|burst| (*burst, false))).collect();
        bursts.sort_by_key(|(burst, _)| burst.woke_ns);
        // Two bursts from one time on are one job.
        bursts.dedup_by(|next, before| {
            let same = next.0.woke_ns == before.0.woke_ns;
            if same {
                before.0.ran_ns += next.0.ran_ns;
                before.1 &= next.1;
            }
            same
        });
        Player { thread: index, deadline_ns, bursts, gets: Times::default() }
    }

    /// A stage for each burst, with one job.
    fn load(&self, from_ns: u64) -> Load {
        let stages = self.bursts.iter().map(|(burst, _)| Stage {
            from_ns: burst.woke_ns - from_ns,
            jobs: Some(StageJobs {
                // No second one comes before the next stage.
                period_ns: u64::MAX - 1,
                work: Work::Constant(burst.ran_ns.max(1)),
                deadline_ns: u64::MAX - 1,
            }),
        });
        Load::Stages(Stages { stages: stages.collect(), soft: true })
    }

    fn compared(self, threads: &Threads, task: String) -> Compared {
        let thread = &threads.all[self.thread];
        let bursts = &thread.watched.bursts;
        let is_late = |burst: &&Burst| self.deadline_ns.is_some_and(|ns| burst.slept_ns - burst.woke_ns > ns);
        let had = Times {
            jobs: bursts.len() as u64,
            late: bursts.iter().filter(is_late).count() as u64,
            latency_ns: thread.latency_ns.clone(),
            response_ns: thread.response_ns.clone(),
        };
        Compared { thread: self.thread, task, deadline_ns: self.deadline_ns, had, gets: self.gets }
    }
}

/// Simulate, as long as the recording is.
fn play(plan: &Plan, threads: &Threads, of_task: &mut HashMap<usize, Player>) -> Result<(), Impossible> {
    let mut simulation = Simulation::new(plan, Options { trace: true, ..Options::default() })?;
    let ids: HashMap<u32, usize> = simulation.ids().tasks.iter().copied().zip(0..).collect();
    let end_ns = threads.to_ns - threads.from_ns + 1;
    let mut now_ns = 0;
    while now_ns < end_ns {
        now_ns = (now_ns + STEP_NS).min(end_ns).max(simulation.next_ns().min(end_ns));
        simulation.run_until(now_ns)?;
        for event in simulation.events_mut().drain(..) {
            let Some(kind @ (Kind::JobStart | Kind::JobComplete)) = event.kind() else { continue };
            let Some(player) = ids.get(&event.a).and_then(|task| of_task.get_mut(task)) else { continue };
            let job = player.bursts.get((event.b as usize).wrapping_sub(1));
            let Some((burst, true)) = job else { continue };
            if kind == Kind::JobStart {
                let released_ns = burst.woke_ns - threads.from_ns;
                player.gets.latency_ns.record(event.now_ns.saturating_sub(released_ns));
            } else {
                player.gets.jobs += 1;
                player.gets.late += u64::from(player.deadline_ns.is_some_and(|ns| event.value > ns));
                player.gets.response_ns.record(event.value);
            }
        }
    }
    Ok(())
}
