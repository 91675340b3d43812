//! Budgets that are kept over a sleep.
//!
//! A server that wakes with budget left may keep it until its deadline, as much of it as fits: (d − now)·Q/D (rule 5 of
//! policy/reservation.c). What is due in a window of L is then not Q from D on, but up to L·Q/D: at the begin of the window it wakes,
//! with as much left. For D = T that adds up to no more than L·Q/T, which the sum of utilisations covers. With D < T the demand of
//! every window has to be tested against what is left when each server that may keep a budget takes its density Q/D:
//!
//! ```text
//! Σ over those that never keep any (⌊(L − Dⱼ)/Tⱼ⌋ + 1)·Qⱼ ≤ L·(1 − Σ over the others Qᵢ/Dᵢ)
//! ```
//!
//! Example: 5 ms within 8 of 10 ms for jobs of 4.9 ms, beside 5 ms within 10 of 20 ms for a task that sleeps. The windows of both
//! budgets fit: 10 ms in 10. But if the second wakes 5 ms before its deadline it may use 2.5 ms of them.

use crate::bounds::smallest_reduction::MENDED_MAX;
use crate::demand::jobs::{budgets_of_its_own, endless, job, wants};
use crate::demand::overheads::Overheads;
use crate::share::{percent, ratio, Share};
use crate::verdict::{Excess, Failure, Mend};
use tierce_analysis::{Demand, Edf, Supply, Task};
use tierce_guarantee::{whole, Guarantee};
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Child, Load, Plan};

/// Whether what is below an edge with a budget may wake up with some of it left.
pub fn keeps(plan: &Plan, shape: &Shape, overheads: &Overheads, edge: usize, server: &Task) -> bool {
    let about = &plan.edges[edge];
    match about.child {
        // To the server what is not there, or runs on another CPU, is asleep.
        _ if about.when_spent => true,
        Child::Task(task) if shape.task_reach(plan, task).are_several() => true,
        Child::Node(_) => !sleepless(plan, shape, edge),
        Child::Set(_) => false,
        Child::Task(task) => match &plan.tasks[task].load {
            None | Some(Load::Busy) => false,
            Some(load) => match job(load, 0).map(|job| overheads.job(about.parent, job)) {
                Some(job) => budgets_of_its_own(&job, server).is_none(),
                None => !endless(load),
            },
        },
    }
}

/// What is below the edge always wants the CPU, or never, as far as loads say.
fn sleepless(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    let always = |edge: &usize| wants(plan, shape, *edge, true);
    let never = |edge: &usize| wants(plan, shape, *edge, false);
    let Child::Node(node) = plan.edges[edge].child else { return false };
    shape.children[node].iter().any(always) || shape.children[node].iter().all(never)
}

/// Why the budgets of a node on a whole CPU, some with deadlines below their periods, do not fit if some may be kept.
pub fn failure(servers: &[(usize, Task)], keeps: &[bool], least_ns: u64) -> Option<Failure> {
    let (taken, steps) = split(servers, keeps);
    if fits(&taken, &steps) {
        return None;
    }
    let left = whole(1) - &taken;
    let supply = Guarantee::psbe(left.clone(), whole(0)).and_then(|left| Supply::of(&left));
    let window = supply.and_then(|supply| Edf::new().shortest_excess(&steps, &supply));
    let rule = "kept_budgets_must_fit";
    let edge = servers.iter().zip(keeps).find(|(_, keeps)| **keeps).map(|((edge, _), _)| *edge);
    let test = "the processor demand of every window, beside budgets that are kept over a sleep".to_string();
    let mend = mend(servers, keeps, least_ns);
    let Some((window_ns, due_ns)) = window else {
        let message = format!(
            "Budgets that may be kept over a sleep can be due at {} of a CPU (the sum of budget/deadline).",
            percent(&taken)
        );
        let share = Some(-left).filter(|excess| *excess > whole(0));
        let excess = Excess { edge, test, ns: None, share };
        return Some(Failure { rule, message, value: percent(&taken), bound: "100 %".into(), mend, excess });
    };
    let sure = left * whole(window_ns);
    let ns = u64::try_from((whole(due_ns) - &sure).ceil().to_integer()).ok();
    let (value, bound) = (show_time(due_ns), tierce_guarantee::show_time(&sure));
    let message = format!(
        "Within {} {value} are due, and budgets that are kept over a sleep may take {} of that time.",
        show_time(window_ns),
        percent(&taken)
    );
    Some(Failure { rule, message, value, bound, mend, excess: Excess { edge, test, ns, share: None } })
}

/// The densities of those that may keep budgets, and the others.
fn split(servers: &[(usize, Task)], keeps: &[bool]) -> (Share, Vec<Task>) {
    let both = || servers.iter().zip(keeps).map(|((_, server), keeps)| (server, *keeps));
    let density = |server: &Task| ratio(server.work_ns, server.deadline_ns.max(1));
    let taken = both().filter(|(_, keeps)| *keeps).map(|(server, _)| density(server));
    let taken = taken.fold(whole(0), |sum, one| crate::share::add(&sum, &one));
    (taken, both().filter(|(_, keeps)| !keeps).map(|(server, _)| *server).collect())
}

fn fits(taken: &Share, others: &[Task]) -> bool {
    let supply = Guarantee::psbe(whole(1) - taken, whole(0)).and_then(|left| Supply::of(&left));
    match supply {
        Some(supply) => Edf::new().demand(others, &supply) == Demand::Met,
        None => others.is_empty() && *taken <= whole(1),
    }
}

/// The reduction of one budget that takes least; for nodes of a readable size.
fn mend(servers: &[(usize, Task)], keeps: &[bool], least_ns: u64) -> Option<Mend> {
    let with = |at: usize, work_ns: u64| {
        let mut servers = servers.to_vec();
        servers[at].1.work_ns = work_ns;
        let (taken, others) = split(&servers, keeps);
        fits(&taken, &others)
    };
    let of = |(at, (edge, server)): (usize, &(usize, Task))| {
        let (mut good, mut bad) = (least_ns, server.work_ns);
        if good >= bad || !with(at, good) {
            return None;
        }
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            *(if with(at, middle) { &mut good } else { &mut bad }) = middle;
        }
        Some(Mend { edge: *edge, parameter: "budget", from_ns: server.work_ns, to_ns: good })
    };
    let all = servers.iter().enumerate().filter(|_| servers.len() <= MENDED_MAX);
    all.filter_map(of).min_by_key(|mend| (mend.from_ns - mend.to_ns, mend.edge))
}
