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
//! - `hard`: no more than that: at most U·(L + T − Q), see `rest.rs`.
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

use crate::exact::{self, Share};
use crate::faults::Fault;
use crate::kept::{budgets_of_its_own, endless, wants};
use crate::laws::job;
use crate::model::{Child, Plan};
use crate::overheads::Overheads;
use crate::policies::{self, PolicyRecord};
use crate::structure::Shape;
use crate::units::show_time;
use tierce_analysis::{FixedPriority, Response, Supply, Task};
use tierce_guarantee::{ratio, whole, Guarantee, Kind};

/// Larger nodes are not tested: each pass is quadratic.
const SERVERS_MAX: usize = 256;

/// The engine keeps what is to come back in 32 bits.
const SPORADIC_PERIOD_MAX_NS: u64 = 4_000_000_000;

/// When a budget that was used comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comes {
    Hard,
    Soft,
    TotalBandwidth,
    Periodic,
    Sporadic,
    Polling,
}

/// How a node orders and replenishes budgets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub comes: Comes,
    /// Where the priority is among the parameters of an edge, if that is the order.
    pub priority: Option<usize>,
    /// What is stolen from a child is charged to it.
    pub wall: bool,
    /// Its budget grows by that.
    pub grows: bool,
}

impl Way {
    pub fn of(plan: &Plan, node: usize) -> Self {
        let usual = Self { comes: Comes::Hard, priority: None, wall: false, grows: false };
        let Some(policy) = policies::by_number(plan.nodes[node].policy) else { return usual };
        let chosen = |name| chosen(plan, policy, node, name);
        let comes = match chosen("replenishment").as_deref() {
            Some("soft") => Comes::Soft,
            Some("total-bandwidth") => Comes::TotalBandwidth,
            Some("periodic") => Comes::Periodic,
            Some("sporadic") => Comes::Sporadic,
            Some("polling") => Comes::Polling,
            _ => Comes::Hard,
        };
        let by_priority = chosen("order").as_deref() == Some("fixed-priority");
        let priority = policies::position(&policy.edge_params, "priority").filter(|_| by_priority);
        let wall = chosen("charge").as_deref() == Some("wall");
        let grows =
            policies::position(&policy.node_params, "gain").is_some_and(|at| plan.nodes[node].params[at] > 0);
        Self { comes, priority, wall, grows }
    }

    /// The same where nothing is stolen: of another CPU's interrupts this one knows nothing.
    pub fn undisturbed(self, plan: &Plan, shape: &Shape, node: usize) -> bool {
        let hits = |cpu: Option<u32>| cpu.is_none_or(|cpu| shape.reach[node] >> cpu & 1 == 1);
        !self.wall || !plan.machine.interrupts.iter().any(|one| hits(one.cpu))
    }

    /// A hard budget in the order of deadlines.
    pub fn is_usual(self) -> bool {
        self.comes == Comes::Hard && self.priority.is_none()
    }

    /// It comes back at once: nothing bounds what is taken.
    pub fn is_endless(self) -> bool {
        matches!(self.comes, Comes::Soft | Comes::TotalBandwidth)
    }

    /// Who wakes after its last period has ended begins one of its own.
    pub fn begins_with_a_wake_up(self) -> bool {
        matches!(self.comes, Comes::Hard | Comes::Soft | Comes::TotalBandwidth)
    }

    /// How much later than those of a periodic task its budgets may be used.
    pub fn jitter_ns(self, server: &Task, awake: bool) -> u64 {
        match self.comes {
            Comes::Hard | Comes::Periodic if !awake => server.period_ns.saturating_sub(server.work_ns),
            _ => 0,
        }
    }

    /// What a budget that arrives in time is sure to be worth to the child below the edge, and by which rule.
    pub fn guarantee(
        self,
        (plan, shape, overheads): (&Plan, &Shape, &Overheads),
        edge: usize,
        server: &Task,
    ) -> (Option<Guarantee>, &'static str, &'static str) {
        let (budget, period) = (whole(server.work_ns), whole(server.period_ns));
        let share = || ratio(server.work_ns, server.period_ns.max(1));
        let reservation = |kind| Guarantee::reservation(kind, budget.clone(), period.clone());
        let late = |most_ns: u64| Guarantee::psbe(share(), (share() * whole(most_ns)).ceil());
        let (work_ns, period_ns) = (server.work_ns, server.period_ns);
        let awake = awake(plan, shape, edge);
        match self.comes {
            Comes::Hard => {
                let rule = "constant bandwidth server, hard (HLS Table 5.1)";
                (reservation(Kind::Resbh), rule, "RESBH budget period")
            }
            Comes::Periodic => (reservation(Kind::Resbh), "deferrable server", "RESBH budget period"),
            Comes::Sporadic if awake => (reservation(Kind::Resbh), "sporadic server", "RESBH budget period"),
            Comes::Polling if awake => (reservation(Kind::Resbh), "polling server", "RESBH budget period"),
            Comes::Sporadic => (late(3 * period_ns), "sporadic server", "PSBE U 3·budget"),
            Comes::Polling => {
                (late(2 * period_ns - work_ns), "polling server", "PSBE U U·(2·period − budget)")
            }
            Comes::Soft | Comes::TotalBandwidth => {
                let rule = match self.comes {
                    Comes::Soft => "constant bandwidth server, soft (HLS Table 5.1)",
                    _ => "total bandwidth server (HLS Table 5.1)",
                };
                match in_step(plan, shape, overheads, edge, server) {
                    true => (reservation(Kind::Resbs), rule, "RESBS budget period"),
                    false => (Guarantee::ps(share()), rule, "PS U"),
                }
            }
        }
    }
}

/// The jobs below the edge end within budgets of their own.
fn in_step(plan: &Plan, shape: &Shape, overheads: &Overheads, edge: usize, server: &Task) -> bool {
    let about = &plan.edges[edge];
    let Child::Task(task) = about.child else { return false };
    let single = shape.task_parents[task].len() == 1;
    let job = plan.tasks[task].load.as_ref().filter(|_| single).and_then(|load| job(load, 0));
    job.is_some_and(|job| budgets_of_its_own(&overheads.job(about.parent, job), server).is_some())
}

/// What is below the edge wants the CPU from its first wake-up on, as far as loads say.
pub fn awake(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    let about = &plan.edges[edge];
    match about.child {
        _ if about.when_spent => false,
        Child::Task(task) => {
            let load = plan.tasks[task].load.as_ref().filter(|_| shape.task_parents[task].len() == 1);
            load.is_some_and(endless)
        }
        Child::Node(node) if !shape.shared(node) => {
            shape.children[node].iter().any(|below| wants(plan, shape, *below, true))
        }
        Child::Node(_) | Child::Set(_) => false,
    }
}

/// How long after the begin of its period each budget is there at the latest; or why one is not shown to be in time. `servers`:
/// of the edges, with what they have to wait for as blocking.
pub fn by_priority(
    plan: &Plan,
    shape: &Shape,
    (edges, at, way): (&[usize], usize, Way),
    servers: &[Task],
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
        let jitter = |other: usize| way.jitter_ns(&servers[other], awake[other]);
        let mut set: Vec<_> =
            others.map(|other| Task { jitter_ns: jitter(other), blocking_ns: 0, ..servers[other] }).collect();
        // What a hard server that was served late has left over.
        let left_ns = if way.comes == Comes::Hard && !awake[place] { own.work_ns } else { 0 };
        set.push(Task { blocking_ns: own.blocking_ns.saturating_add(left_ns), ..*own });
        let name = plan.child_name(plan.edges[edges[place]].child);
        match analysis.last_response(&set, supply) {
            Response::Within(ns) if ns <= own.deadline_ns => found.push(ns),
            Response::Within(ns) => {
                return Err(format!(
                    "the budget of `{name}` may be there only {} after its period begins, later than {}",
                    show_time(ns),
                    show_time(own.deadline_ns)
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

/// A parameter of a node as plans have it.
fn chosen(plan: &Plan, policy: &PolicyRecord, node: usize, name: &str) -> Option<String> {
    let at = policies::position(&policy.node_params, name)?;
    Some(policy.node_params[at].show(plan.nodes[node].params[at], show_time))
}

/// What the budgets of a node may add up to, as far as its `cap` says.
pub fn cap(plan: &Plan, node: usize) -> Option<Share> {
    let policy = policies::by_number(plan.nodes[node].policy)?;
    let text = chosen(plan, policy, node, "cap")?;
    let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
    let millionths = format!("{whole}{decimals:0<6}").parse().ok()?;
    Some(ratio(millionths, 1_000_000)).filter(|cap| *cap > exact::zero())
}

/// Ways that parameters of edges do not go with.
pub fn faults(plan: &Plan, faults: &mut Vec<Fault>) {
    let sets = plan.sets.iter().flat_map(|set| &set.under);
    for edge in plan.edges.iter().chain(sets) {
        let way = Way::of(plan, edge.parent);
        let special = |_: &&PolicyRecord| !way.is_usual() || way.grows;
        let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy).filter(special) else {
            continue;
        };
        let Some((_, period)) = policies::budget_and_period(policy) else { continue };
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        let (deadline_ns, period_ns) = (edge.params[deadline], edge.params[period]);
        let (name, child) = (&plan.nodes[edge.parent].name, plan.child_name(edge.child));
        let fault = |rule, message| Fault::new(rule, edge.spot, message);
        if way.comes != Comes::Hard && deadline_ns < period_ns {
            let message = format!("`{child}` has a deadline below its period, and `{name}` no hard budgets");
            let fault = fault("deadline_needs_hard_budget", message).value(show_time(deadline_ns));
            faults.push(
                fault.bound(show_time(period_ns)).hint("replenishment = \"hard\" there, or no deadline"),
            );
        }
        if way.grows && (way.comes != Comes::Hard || !way.wall || deadline_ns < period_ns) {
            let message = format!("`{name}` has a gain, which needs hard budgets by wall time");
            let (value, bound) = match (way.comes, way.wall) {
                (Comes::Hard, true) => (show_time(deadline_ns), show_time(period_ns)),
                (Comes::Hard, false) => ("own".into(), "wall".into()),
                _ => (chosen(plan, policy, edge.parent, "replenishment").unwrap_or_default(), "hard".into()),
            };
            let hint =
                "charge = \"wall\", replenishment = \"hard\" and no deadlines below periods, or no gain";
            let fault = fault("feedback_needs_hard_wall_time", message).value(value).bound(bound);
            faults.push(fault.hint(hint));
        }
        if way.is_endless() && way.priority.is_some() {
            let message =
                format!("budgets of `{name}` come back at once, which only deadlines could hold back");
            let hint = "order = \"edf\" there, or another replenishment";
            faults.push(
                fault("recharge_needs_deadlines", message).value("fixed-priority").bound("edf").hint(hint),
            );
        }
        if way.comes == Comes::Sporadic && period_ns > SPORADIC_PERIOD_MAX_NS {
            let message = format!("the period of `{child}` is longer than a sporadic budget's can be");
            let fault = fault("sporadic_period_within_limit", message).value(show_time(period_ns));
            faults.push(fault.bound(show_time(SPORADIC_PERIOD_MAX_NS)));
        }
    }
}
