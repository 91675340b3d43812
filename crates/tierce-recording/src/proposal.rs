//! A plan for the threads of a recording: periodic ones get a reservation, all others share what is left.

use crate::threads::{Thread, Threads};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use tierce_calibrate::{
    analyse, plan_of, Calibration, Chance, Finding, Importance, Margin, Planned, Seen, Watching,
};
use tierce_plan::{show_time, Glob};

/// What the plan is to be like.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// How much deadlines matter.
    pub importance: Importance,
    /// What budgets have beyond the work, instead of that of the importance.
    pub margin: Option<Margin>,
    /// Only threads with such names get a reservation; with none, all.
    pub names: Vec<Glob>,
    /// Seed of the Poisson processes with which wake-ups are compared.
    pub seed: u64,
}

/// A plan, and what it is made of.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The plan.
    pub text: String,
    /// What it has for threads of which name.
    pub planned: Vec<Planned>,
    /// What was found out of each thread; `None`: it was not looked at.
    pub findings: Vec<Option<Finding>>,
}

/// Whether a plan could have it: the kernel's own migration threads are above all others.
pub fn is_planned(thread: &Thread) -> bool {
    !thread.comm.text().starts_with("migration/")
}

/// Propose a plan. `about` says what was recorded.
pub fn propose(threads: &Threads, cpus: u32, about: &str, wishes: &Wishes) -> Proposal {
    let wanted = |thread: &Thread| {
        let name = thread.comm.text();
        is_planned(thread) && (wishes.names.is_empty() || wishes.names.iter().any(|glob| glob.matches(&name)))
    };
    let findings = find(threads, wishes.seed, wanted);
    let calibration = Calibration {
        watched_ns: threads.to_ns - threads.from_ns,
        lost: threads.lost,
        importance: wishes.importance,
        margin: wishes.margin.unwrap_or(wishes.importance.into()),
    };
    let seen = threads.all.iter().zip(&findings).filter_map(|(thread, finding)| {
        let finding = finding.clone()?;
        Some(Seen { name: thread.comm.text(), routine: None, process: String::new(), finding })
    });
    let mut all = tierce_calibrate::Thread::all(calibration, &seen.collect::<Vec<_>>());
    // A plan needs no word on every thread that hardly ran: those with a period, and the most demanding others.
    let mut others: Vec<u32> =
        all.iter().filter(|one| one.reservation.is_none()).map(|one| one.load).collect();
    others.sort_unstable_by(|one, other| other.cmp(one));
    let least = others.get(OTHERS_TOLD).copied().unwrap_or(0);
    all.retain(|one| one.reservation.is_some() || one.load > least);
    let watching = Watching {
        about: vec![format!("{about}, {} long.", show_time(calibration.watched_ns))],
        calibration,
        executable: None,
        overruns_go_on: true,
        threads: &all,
    };
    let (mut text, planned) = plan_of("tierce design plan", &[watching], cpus);
    if !planned.is_empty() {
        text += TRUST;
    }
    Proposal { text, planned, findings }
}

/// How many threads without a period have a comment.
const OTHERS_TOLD: usize = 8;

const TRUST: &str = "
# The recording does not say which programs the threads are of: any thread of these names matches (docs/security.md).
[run]
trust = \"names\"
";

/// What each thread is, on all CPUs.
fn find(threads: &Threads, seed: u64, wanted: impl Fn(&Thread) -> bool + Sync) -> Vec<Option<Finding>> {
    let found = Mutex::new(vec![None; threads.all.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut chance = Chance::new(seed);
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(thread) = threads.all.get(index) else { break };
            if wanted(thread) {
                let finding = analyse(&thread.watched, &mut chance);
                found.lock().unwrap_or_else(|broken| broken.into_inner())[index] = Some(finding);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    found.into_inner().unwrap_or_else(|broken| broken.into_inner())
}
