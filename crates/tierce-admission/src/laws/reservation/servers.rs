//! The ways in which budgets are ordered, come back and are charged (policy/reservation.c, rules 7 to 14), and what each is sure
//! to bring.
//!
//! **By priority** a budget arrives at the latest when the equation of response times has its solution, with the budgets of
//! larger or equal priority as tasks. How much such a server takes of a window of L that begins when it does not want the CPU:
//!
//! - `polling`: what periodic tasks take, ⌈L/T⌉·Q: it uses a budget from the begin of the period on, or not at all.
//! - `sporadic`: the same. Each ns of its budget is there at most once in T, counted from when it was wanted.
//! - `periodic`: ⌈(L + T − Q)/T⌉·Q. It may wake Q before the end of its period and use two budgets at once: as with a jitter
//!   of T − Q. One whose child always wants the CPU has no jitter.
//! - `hard`: no more than that: at most U·(L + T − Q), see `leftover_supply.rs`.
//!
//! Its own budget: let b ≤ g be the last time before the begin of its period g at which nothing of higher priority wants the CPU. From
//! b on those above take what they may take, and Q is done within R of g, with supply(R) = Q + what they take of R. A hard
//! server that was served late may besides have a budget left from before: it counts as blocking. For R ≤ T and a child that
//! wakes at any time that is RESBS Q T: of x before the end of the period it gets at least x − (R − Q), what is left of its budget being
//! at least Q − (T − x).
//!
//! **Polling** a child may sleep past the begin of a period and wait for the next: first T, then as before. That is Q per T after
//! 2T − Q: PSBE U, U·(2T − Q). **Sporadic**: each ns of a budget is back within T of the wake-up, or where amounts are put
//! together within 2T, is served within T, and is back T after it was. Of L it is there ⌊(L − 2T)/T⌋ times at least:
//! PSBE U, 3·Q. A child that always wants the CPU uses whole budgets only: RESBH Q T.
//!
//! **Recharged at once** a child may run ahead, and then wait until the others have caught up: in the long run its share, PS U. A task whose jobs
//! end within budgets of their own never runs ahead: RESBS Q T.
//!
//! **By deadlines** periodic budgets that are kept hurt others: one that wakes shortly before the end of its period has the
//! earliest deadline and a whole budget. So they are shown only for children that always want the CPU, or a child alone.
//!
//! **By wall time** interrupts come off the budgets that they meet. Where the plan has interrupts nothing is sure of such a
//! budget; with a gain it may grow, and nothing bounds what it takes from those of lower priority.

use crate::demand::budget_locks::BudgetLocks;
use crate::demand::jobs::{awake, budgets_when, job};
use crate::demand::overheads::Overheads;
use crate::share::{self, Share};
use tierce_analysis::{FixedPriority, Response, Supply, Task};
use tierce_guarantee::{ratio, whole, Guarantee, Kind};
use tierce_plan::policies;
use tierce_plan::policies::reservation::{self, Replenishment, ServerRules};
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Child, Plan};

/// Larger nodes are not tested: each pass is quadratic.
const SERVERS_MAX: usize = 256;

/// How much later than those of a periodic task its budgets may be used.
pub fn jitter_ns(way: ServerRules, server: &Task, awake: bool) -> u64 {
    match way.replenishment {
        Replenishment::Hard | Replenishment::Periodic if !awake => {
            server.period_ns.saturating_sub(server.work_ns)
        }
        _ => 0,
    }
}

/// What a budget that arrives in time is sure to be worth to the child below the edge, and by which rule.
pub fn guarantee(
    way: ServerRules,
    (plan, shape, overheads): (&Plan, &Shape, &Overheads),
    edge: usize,
    server: &Task,
) -> (Option<Guarantee>, &'static str, &'static str) {
    let share = || ratio(server.work_ns, server.period_ns.max(1));
    let reservation = |kind| Guarantee::reservation(kind, whole(server.work_ns), whole(server.period_ns));
    let late = |most_ns: u64| Guarantee::psbe(share(), (share() * whole(most_ns)).ceil());
    let (work_ns, period_ns) = (server.work_ns, server.period_ns);
    let awake = || awake(plan, shape, edge);
    match way.replenishment {
        Replenishment::Hard => {
            let rule = "constant bandwidth server, hard (HLS Table 5.1)";
            (reservation(Kind::Resbh), rule, "RESBH budget period")
        }
        Replenishment::Periodic => (reservation(Kind::Resbh), "deferrable server", "RESBH budget period"),
        Replenishment::Sporadic if awake() => {
            (reservation(Kind::Resbh), "sporadic server", "RESBH budget period")
        }
        Replenishment::Polling if awake() => {
            (reservation(Kind::Resbh), "polling server", "RESBH budget period")
        }
        Replenishment::Sporadic => (late(3 * period_ns), "sporadic server", "PSBE U 3·budget"),
        Replenishment::Polling => {
            (late(2 * period_ns - work_ns), "polling server", "PSBE U U·(2·period − budget)")
        }
        Replenishment::Soft | Replenishment::TotalBandwidth => {
            let rule = match way.replenishment {
                Replenishment::Soft => "constant bandwidth server, soft (HLS Table 5.1)",
                _ => "total bandwidth server (HLS Table 5.1)",
            };
            match in_step(way, (plan, shape, overheads), edge, server) {
                true => (reservation(Kind::Resbs), rule, "RESBS budget period"),
                false => (Guarantee::ps(share()), rule, "PS U"),
            }
        }
    }
}

/// The jobs below the edge end within budgets of their own.
fn in_step(
    way: ServerRules,
    (plan, shape, overheads): (&Plan, &Shape, &Overheads),
    edge: usize,
    server: &Task,
) -> bool {
    let about = &plan.edges[edge];
    let Child::Task(task) = about.child else { return false };
    let single = shape.task_parents[task].len() == 1;
    let job = plan.tasks[task].load.as_ref().filter(|_| single).and_then(|load| job(load, 0));
    let job = job.map(|job| overheads.job(about.parent, job));
    job.is_some_and(|job| budgets_when(way.replenishment, &job, server).is_some())
}

/// How long after the begin of its period each budget is there at the latest; or why one is not shown to be in time. `servers`:
/// of the edges, with what they have to wait for as blocking.
pub fn by_priority(
    plan: &Plan,
    shape: &Shape,
    (edges, at, way): (&[usize], usize, ServerRules),
    (servers, locks): (&[Task], &[BudgetLocks]),
    supply: &Supply,
) -> Result<Vec<u64>, String> {
    if edges.len() > SERVERS_MAX {
        return Err(format!(
            "it has {} budgets, and {SERVERS_MAX} are the most that are tested",
            edges.len()
        ));
    }
    let awake: Vec<_> = edges.iter().map(|edge| awake(plan, shape, *edge)).collect();
    let priority = |place: usize| plan.edges[edges[place]].params[at];
    let mut analysis = FixedPriority::new();
    let mut found = Vec::new();
    for (place, own) in servers.iter().enumerate() {
        let others = (0..edges.len()).filter(|other| *other != place && priority(*other) >= priority(place));
        let jitter = |other: usize| jitter_ns(way, &servers[other], awake[other]);
        let mut set: Vec<_> =
            others.map(|other| Task { jitter_ns: jitter(other), blocking_ns: 0, ..servers[other] }).collect();
        // What a hard server that was served late has left over.
        let left_ns = if way.replenishment == Replenishment::Hard && !awake[place] { own.work_ns } else { 0 };
        set.push(Task { blocking_ns: own.blocking_ns.saturating_add(left_ns), ..*own });
        let name = plan.child_name(plan.edges[edges[place]].child);
        match analysis.last_response(&set, supply) {
            Response::Within(ns) if ns <= own.deadline_ns => found.push(ns),
            Response::Within(ns) => {
                return Err(format!(
                    "the budget of `{name}` may be there only {} after its period begins, later than {}{}",
                    show_time(ns),
                    show_time(own.deadline_ns),
                    locks[place].words(plan)
                ))
            }
            Response::Unbounded | Response::TooLong => {
                return Err(format!(
                    "those of larger or equal priority may keep the budget of `{name}` from coming"
                ))
            }
        }
    }
    Ok(found)
}

/// What the budgets of a node may add up to, as far as its `cap` says.
pub fn cap(plan: &Plan, node: usize) -> Option<Share> {
    let policy = policies::by_number(plan.nodes[node].policy)?;
    let at = policies::position(&policy.node_params, "cap")?;
    if plan.nodes[node].params[at] == 0 {
        return None;
    }
    let text = reservation::chosen(plan, policy, node, "cap")?;
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let millionths = format!("{whole}{decimals:0<6}").parse().ok()?;
    Some(ratio(millionths, 1_000_000)).filter(|cap| *cap > share::zero())
}
