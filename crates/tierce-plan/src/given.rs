//! What each policy makes of what its node is promised: a list of promises per edge.
//!
//! - `fixed-priority` passes what it gets to the one child of highest priority; others get what those above them leave, where that
//!   is bounded (`rest.rs`), or NULL.
//! - `reservation` gives RESBH budget period to each: on a whole CPU when its law holds (sums and windows), below anything
//!   else when the demand of its budgets fits what that is sure to supply.
//! - `fair` is start-time fair queuing: PSBE by the tight form of equation 5.2, as long as the number of its children is
//!   known; with warp only PS. With `order = "eevdf"` it is PSBE by a bound that knows nothing of that number; other orders
//!   give PS, as in Table 5.1.
//! - `round-robin` on a whole CPU gives a quantum in every turn of all children.
//! - `time-sharing` on a whole CPU gives a quantum to who has used none for `starvation`, after the others in that state.
//! - `slots` on a whole CPU gives each its reserve, always at the same place of the slot.
//! - `i-plus-pi` and `multiburst` share out rounds of no bounded length, and promise nothing.
//! - `uniform` gives a slower processor to the deadlines that a child announces: `slower`.
//! - `briefly-blocked` is for time that others leave, and promises nothing; nor does any policy that is not named here.
//! - `edf` knows only what its children say they want, and promises them nothing.
//! - `constraint` promises nothing for long; it needs what it counts on itself.
//!
//! Where children move between the replicas of a spread node, `fair` gives PS, and `time-sharing` nothing.
//!
//! Of several CPUs: `on_several`.

use crate::admission::NodeVerdict;
use crate::derivation::{Origin, Step};
use crate::exact::percent;
use crate::model::{Child, Edge, Plan};
use crate::overheads::Overheads;
use crate::policies::{self, PolicyRecord};
use crate::promises::{crowd, is_live, of_crowd, some_move, Promise};
use crate::reserves::Reserve;
use crate::rest::{Taken, Takes};
use crate::servers::{self, awake, Comes, Way};
use crate::structure::Shape;
use crate::units::show_time;
use tierce_analysis::{Demand, Edf, Supply, Task};
use tierce_guarantee::schedulers::{self, SfqBound};
use tierce_guarantee::{whole, Guarantee, Kind, Parameter};

/// Below the root of several whole CPUs, to tasks that may run on all of them: budgets, or by priority a CPU each to as many
/// of the highest as there are CPUs.
pub fn on_several(
    plan: &Plan,
    shape: &Shape,
    index: usize,
    policy: &PolicyRecord,
    verdict: &NodeVerdict,
    overheads: &Overheads,
) -> Vec<Vec<Promise>> {
    let (node, edges) = (&plan.nodes[index], &shape.children[index]);
    let mut given = vec![Promise::nothing(format!("several CPUs reach `{}`", node.name)); edges.len()];
    let whole_cpus = node.roots.len() > 1 && shape.parents[index].is_empty() && plan.machine.left.is_empty();
    if !whole_cpus || node.concurrency == 1 || !overheads.is_none() {
        return given;
    }
    let reach = shape.reach[index];
    let free = |edge: &usize| match plan.edges[*edge].child {
        Child::Task(task) => {
            let anywhere = plan.tasks[task].affinity.is_none_or(|affinity| affinity & reach == reach);
            anywhere && shape.task_parents[task].len() == 1
        }
        _ => false,
    };
    if let Some(budget) = policies::budget_and_period(policy) {
        let way = Way::of(plan, index);
        let sure = way.is_usual() && way.undisturbed(plan, shape, index);
        if verdict.failures.is_empty() && edges.iter().all(free) && sure {
            budgets_on_several(plan, index, edges, policy, budget, &mut given);
        }
    } else if let Some(at) = policies::priority(policy) {
        highest_on_several(plan, index, edges, at, free, &mut given);
    }
    given
}

/// Servers that need no more than one CPU together meet their deadlines on two or more (Goossens, Funk & Baruah 2003; Baruah,
/// Goossens & Lipari 2002), where these are the ends of their periods.
fn budgets_on_several(
    plan: &Plan,
    index: usize,
    edges: &[usize],
    policy: &PolicyRecord,
    (budget, period): (usize, usize),
    given: &mut [Vec<Promise>],
) {
    let node = &plan.nodes[index];
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let early = |edge: &usize| plan.edges[*edge].params[deadline] < plan.edges[*edge].params[period];
    if edges.iter().any(early) {
        return;
    }
    for (edge, given) in edges.iter().zip(given) {
        let params = &plan.edges[*edge].params;
        let numbers = vec![whole(params[budget]), whole(params[period])];
        let Some(guarantee) = Guarantee::new(Kind::Resbh, numbers) else { continue };
        let because = format!("admitted by `{}`, which has several whole CPUs", node.name);
        let rule = "constant bandwidth servers on several CPUs (Baruah, Goossens & Lipari 2002)";
        *given = vec![Promise::new(guarantee, because).by(Origin::Cpu(node.roots[0]), &[], rule, "")];
    }
}

fn highest_on_several(
    plan: &Plan,
    index: usize,
    edges: &[usize],
    at: usize,
    free: impl Fn(&usize) -> bool,
    given: &mut [Vec<Promise>],
) {
    let node = &plan.nodes[index];
    let most = if node.concurrency > 0 { node.concurrency as usize } else { usize::MAX };
    let cpus = node.roots.len().min(most);
    let priority = |place: &usize| plan.edges[edges[*place]].params[at];
    let crowd = of_crowd(plan, index, edges, at);
    let mut order: Vec<_> = (0..edges.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(priority(place)));
    let mut taken = 0;
    for equals in order.chunk_by(|a, b| priority(a) == priority(b)) {
        taken += equals.len();
        let crowded = crowd.is_some_and(|crowd| crowd >= priority(&equals[0]));
        if crowded || taken > cpus || !equals.iter().all(|place| free(&edges[*place])) {
            return;
        }
        for place in equals {
            let because = format!(
                "no more than {cpus} have its priority or a higher one in `{}`, which has {cpus} CPUs",
                node.name
            );
            let promise = Promise::new(Guarantee::all(), because);
            let rule = "highest priorities on several CPUs";
            given[*place] = vec![promise.by(Origin::Cpu(node.roots[0]), &[], rule, "")];
        }
    }
}

/// A node that one CPU reaches, and what it is promised.
pub struct Node<'a> {
    pub plan: &'a Plan,
    pub index: usize,
    /// To its children.
    pub edges: &'a [usize],
    pub received: &'a [Promise],
    pub overheads: &'a Overheads<'a>,
    /// 1 where its policy has none.
    pub quantum_ns: u64,
}

impl Node<'_> {
    fn name(&self) -> &str {
        &self.plan.nodes[self.index].name
    }

    /// To none of its children.
    fn gives_nothing(&self, because: String) -> Vec<Vec<Promise>> {
        vec![Promise::nothing(because); self.edges.len()]
    }
}

pub fn by_priority(node: &Node, shape: &Shape, takes: &Takes, at: usize) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, .. } = *node;
    let name = node.name();
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let crowd = of_crowd(plan, index, edges, at);
    let mut order: Vec<_> = (0..edges.len()).collect();
    order.sort_by_key(|place| std::cmp::Reverse(priority(&edges[*place])));
    let mut given = vec![Vec::new(); edges.len()];
    let mut above = Some(Taken::nothing()); // what those of higher priority take, where that is bounded
    let mut first = true;
    for equals in order.chunk_by(|a, b| priority(&edges[*a]) == priority(&edges[*b])) {
        above = above.filter(|_| crowd.is_none_or(|crowd| crowd < priority(&edges[equals[0]])));
        for place in equals {
            let edge = edges[*place];
            given[*place] = match &above {
                Some(_) if first && equals.len() == 1 => highest(name, edge, received, overheads),
                Some(above) if !first && equals.len() == 1 && overheads.is_none() => {
                    rest(name, above, received)
                }
                _ => {
                    let who = if first { "others of the same" } else { "those of higher" };
                    Promise::nothing(format!("in `{name}` {who} priority may take everything"))
                }
            };
        }
        for place in equals {
            let own = takes.edge(plan, shape, edges[*place]);
            above = above.and_then(|above| Some(above.and(&own?)));
        }
        first = false;
    }
    given
}

/// The child of highest priority gets what its node gets.
fn highest(name: &str, edge: usize, received: &[Promise], overheads: &Overheads) -> Vec<Promise> {
    let toll = match known(overheads.is_none(), || overheads.beside(edge)) {
        Ok(toll) => toll,
        Err(unknown) => return Promise::nothing(unknown),
    };
    let pass = |(place, promise): (usize, &Promise)| {
        let because = format!("{}; highest priority below `{name}`", promise.because);
        let guarantee = match &toll {
            Some(toll) => toll.of(&promise.guarantee)?,
            None => promise.guarantee.clone(),
        };
        let (origin, formula) = (Origin::Promise(place), toll.as_ref().map_or("", |_| LESS_COSTS));
        let from = [&promise.guarantee];
        Some(Promise::new(guarantee, because).by(origin, &from, "highest priority", formula))
    };
    let passed: Vec<_> = received.iter().enumerate().filter_map(pass).collect();
    if passed.is_empty() {
        return Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}"));
    }
    passed
}

/// What those of higher priority leave of what their node gets.
fn rest(name: &str, above: &Taken, received: &[Promise]) -> Vec<Promise> {
    let of = |(place, promise): (usize, &Promise)| {
        let guarantee = above.leaves(&promise.guarantee)?;
        let because = format!(
            "{}; those of higher priority below `{name}` take {} of a CPU at most, by their budgets and loads",
            promise.because,
            percent(&above.rate)
        );
        let formula = if guarantee.kind() == Kind::Ps {
            "PS (s − ΣU)"
        } else {
            "PSBE (s − ΣU) (δ + Σ C·(1 − U))"
        };
        let from = [&promise.guarantee];
        Some(Promise::new(guarantee, because).by(Origin::Promise(place), &from, BOUNDED_ABOVE, formula))
    };
    let left: Vec<_> = received.iter().enumerate().filter_map(of).collect();
    if left.is_empty() && received[0].guarantee.kind() == Kind::Null {
        return Promise::nothing(format!("nothing is promised to `{name}`: {}", received[0].because));
    }
    if left.is_empty() {
        return Promise::nothing(format!(
            "those of higher priority below `{name}` may take all that it gets"
        ));
    }
    left
}

/// The rule of what those of higher priority leave.
pub const BOUNDED_ABOVE: &str = "bounded higher priorities";

/// A formula.
const LESS_COSTS: &str = "less switches and timers";

/// Why nothing is left.
const COSTS_TAKE_ALL: &str = "switches and timers may take all of it";

/// The costs to be taken off, where there are any; or why they are not known.
fn known<T>(none: bool, costs: impl FnOnce() -> Result<T, String>) -> Result<Option<T>, String> {
    if none {
        return Ok(None);
    }
    costs().map(Some).map_err(|unknown| format!("how often others come between is not known: {unknown}"))
}

pub fn reserved(
    node: &Node,
    shape: &Shape,
    policy: &PolicyRecord,
    (budget, period): (usize, usize),
    verdict: &NodeVerdict,
) -> Result<Vec<Vec<Promise>>, String> {
    let Node { plan, index, edges, received, overheads, .. } = *node;
    let name = node.name();
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    if !verdict.failures.is_empty() {
        return Ok(node.gives_nothing(format!("the budgets of `{name}` do not fit")));
    }
    let way = Way::of(plan, index);
    if !way.undisturbed(plan, shape, index) {
        return Ok(
            node.gives_nothing(format!("`{name}` charges by wall time, and interrupts come off its budgets"))
        );
    }
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    // Each budget may be overrun by a switch, and one of somebody with a later deadline be under way.
    let blocking_ns = overheads.switch_ns(index).saturating_mul(edges.len() as u64 + 1);
    let waits = |edge: &usize| Task {
        blocking_ns: if overheads.is_none() { 0 } else { blocking_ns },
        ..server(&plan.edges[*edge], budget, period, deadline)
    };
    if way.priority.is_none() && way.comes == Comes::Periodic && edges.len() > 1 {
        if let Some(sleeper) = edges.iter().find(|edge| !awake(plan, shape, **edge)) {
            return Err(format!(
                "`{}` keeps its budget while it sleeps, and may use it just before its deadline",
                plan.child_name(plan.edges[*sleeper].child)
            ));
        }
    }
    let mut arrive: Vec<Option<u64>> = vec![None; edges.len()];
    let (place, admitted) = if let Some(at) = way.priority {
        let servers: Vec<_> = edges.iter().map(waits).collect();
        let (place, found) = in_time(plan, shape, (edges, at, way), &servers, received)?;
        arrive = found.into_iter().map(Some).collect();
        (place, format!("admitted by `{name}` by response times"))
    } else if let Some(place) = whole_cpu {
        (place, format!("admitted by `{name}`, which has a whole CPU"))
    } else {
        let servers: Vec<_> = edges.iter().map(waits).collect();
        let place = fits(&servers, received)?;
        (place, format!("admitted by `{name}` inside its {}", received[place].guarantee))
    };
    let from = [&received[place].guarantee];
    let each = edges.iter().zip(&arrive).map(|(edge, arrives)| {
        let params = &plan.edges[*edge].params;
        let (budget_ns, period_ns) = (params[budget], params[period]);
        let admitted = match arrives {
            Some(ns) => format!("{admitted}: its budget arrives within {}", show_time(*ns)),
            None => admitted.clone(),
        };
        let about = (plan, shape, overheads);
        let (guarantee, rule, formula) = way.guarantee(about, *edge, &Task::new(budget_ns, period_ns));
        let by = |promise: Promise, formula: &str| promise.by(Origin::Promise(place), &from, rule, formula);
        let toll = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(toll) => toll,
            Err(unknown) => return Promise::nothing(unknown),
        };
        let Some(toll) = toll else {
            return match guarantee {
                Some(guarantee) => vec![by(Promise::new(guarantee, admitted), formula)],
                None => Promise::nothing(format!("`{name}` gives a budget above its period")),
            };
        };
        if guarantee.is_none_or(|guarantee| guarantee.amount_and_period().is_none()) {
            return Promise::nothing(format!("`{name}`: what switches take of it is not known"));
        }
        // What was overrun before, and the first switch of the period.
        let lost_ns = overheads.switch_ns(index).saturating_mul(2).saturating_add(toll.within(period_ns));
        let left_ns = budget_ns.saturating_sub(lost_ns);
        match Guarantee::reservation(Kind::Resbs, whole(left_ns), whole(period_ns)) {
            Some(guarantee) => {
                let because = format!("{admitted}; switches and timers may take {}", show_time(lost_ns));
                vec![by(Promise::new(guarantee, because), "RESBS (budget − costs) period")]
            }
            None => Promise::nothing(format!(
                "`{name}`: {COSTS_TAKE_ALL}: {} of {}",
                show_time(lost_ns),
                show_time(budget_ns)
            )),
        }
    });
    Ok(each.collect())
}

fn server(edge: &Edge, budget: usize, period: usize, deadline: usize) -> Task {
    let deadline_ns = edge.params[deadline];
    Task { deadline_ns, ..Task::new(edge.params[budget], edge.params[period]) }
}

/// The same by priority, and when each budget arrives.
fn in_time(
    plan: &Plan,
    shape: &Shape,
    (edges, at, way): (&[usize], usize, Way),
    servers: &[Task],
    received: &[Promise],
) -> Result<(usize, Vec<u64>), String> {
    let mut first = None;
    for (place, promise) in received.iter().enumerate() {
        let Some(supply) = Supply::of(&promise.guarantee) else { continue };
        match servers::by_priority(plan, shape, (edges, at, way), servers, &supply) {
            Ok(found) => return Ok((place, found)),
            Err(why) => first.get_or_insert(why),
        };
    }
    Err(first.unwrap_or_else(|| format!("nothing is promised to it: {}", received[0].because)))
}

/// Which of the promises has the supply in which all budgets arrive by their deadlines.
fn fits(servers: &[Task], received: &[Promise]) -> Result<usize, String> {
    let mut edf = Edf::new();
    let mut first = None;
    for (place, promise) in received.iter().enumerate() {
        let Some(supply) = Supply::of(&promise.guarantee) else { continue };
        let why = match edf.demand(servers, &supply) {
            Demand::Met => return Ok(place),
            Demand::Exceeds { window_ns, due_ns } => format!(
                "within {} budgets of {} may be due, more than {} is sure to give",
                show_time(window_ns),
                show_time(due_ns),
                promise.guarantee
            ),
            Demand::Overload => format!("its budgets are more than {} in the long run", promise.guarantee),
            Demand::TooLong => format!("its budgets are too close to {} to be tested", promise.guarantee),
        };
        first.get_or_insert(why);
    }
    Err(first.unwrap_or_else(|| format!("nothing is promised to it: {}", received[0].because)))
}

/// `order`; and whether some of its children move between CPUs.
pub fn shared_by_weight(
    node: &Node,
    weight: usize,
    warp: Option<usize>,
    (order, some_move): (&str, bool),
) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, quantum_ns } = *node;
    let name = node.name();
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let weights: Vec<_> = edges.iter().map(|edge| whole(plan.edges[*edge].params[weight])).collect();
    let warped = warp.is_some_and(|warp| edges.iter().any(|edge| plan.edges[*edge].params[warp] > 0));
    let credited = crate::orders::credit(plan, index) > 0;
    // What is left where the error is not bounded is the share.
    let unbounded = match order {
        "lottery" => Some(("lottery", "drawings have no bounded error")),
        "stride" => Some(("stride", "with strides the error is not bounded")),
        _ if warped => Some(("warp", "with warp the error is not bounded")),
        _ if credited => Some(("credit", "with a credit for who slept the error is not bounded")),
        // Who comes brings along what it is owed.
        _ => some_move.then_some(("spread", "with children that move between CPUs the error is not bounded")),
    };
    let supply = received.iter().enumerate().find_map(|(place, promise)| {
        let supply = if unbounded.is_some() {
            Guarantee::ps(promise.guarantee.share())
        } else {
            Some(promise.guarantee.clone()).filter(|guarantee| guarantee.kind() != Kind::Null)
        };
        Some((place, supply?))
    });
    let Some((place, supply)) = supply else {
        return node.gives_nothing(format!("nothing is promised to `{name}`: {}", received[0].because));
    };
    let switch_ns = overheads.switch_ns(index);
    if !overheads.is_none() && (warped || credited || switch_ns >= quantum_ns) {
        return node.gives_nothing(format!(
            "`{name}`: what switches cost is not bounded with warp or credit, nor with a quantum as short as a switch"
        ));
    }
    // A quantum that ends within a switch lasts as much longer; with deadlines all of those before it may.
    let eligible = order == "eevdf";
    let late_ns = switch_ns.saturating_mul(if eligible { edges.len() as u64 } else { 1 });
    let longest = whole(quantum_ns.saturating_add(late_ns));
    let children = match eligible {
        true => schedulers::eevdf_by_weight(&supply, &longest, &weights),
        false => schedulers::sfq(&supply, &longest, &weights, SfqBound::Tight),
    };
    match children {
        Ok(children) => {
            let with = unbounded.map(|(_, why)| format!(" ({why})")).unwrap_or_default();
            let because = format!("`{name}` shares {supply} by {}{with}", children.rule);
            let from_supply: Vec<_> = match unbounded {
                Some((rule, why)) if supply != received[place].guarantee => {
                    let (from, to) = (vec![received[place].guarantee.clone()], supply.clone());
                    vec![Step { from, to, rule, formula: "PS s".into(), because: why.into() }]
                }
                _ => Vec::new(),
            };
            let each = children.guarantees.iter().enumerate().zip(edges).map(|((child, guarantee), edge)| {
                let guarantee = guarantee.clone();
                let steps = children.derivation(child).steps.into_iter().map(Step::from);
                let steps: Vec<_> = from_supply.iter().cloned().chain(steps).collect();
                let origin = Origin::Promise(place);
                let toll = match known(overheads.is_none(), || overheads.outside(*edge)) {
                    Ok(None) => {
                        let promise = Promise::new(guarantee, because.clone());
                        return vec![Promise { origin, steps, ..promise }];
                    }
                    Ok(Some(toll)) => toll,
                    Err(unknown) => return Promise::nothing(unknown),
                };
                // One switch per quantum, whole or not.
                let kept = whole(1) - tierce_guarantee::ratio(switch_ns, quantum_ns);
                let left = match guarantee.get(Parameter::Error) {
                    Some(error) => {
                        let error = error * &kept + whole(switch_ns) * whole(2);
                        Guarantee::psbe(guarantee.share() * kept, error)
                    }
                    None => Guarantee::ps(guarantee.share() * kept),
                };
                let because = format!("{because}, less switches and timers");
                let left = left.and_then(|left| toll.of(&left));
                let Some(left) = left else {
                    return Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}"));
                };
                let mut promise = Promise::new(left, because).by(origin, &[&guarantee], "costs", LESS_COSTS);
                promise.steps.splice(0..0, steps);
                vec![promise]
            });
            each.collect()
        }
        Err(refusal) => node.gives_nothing(format!("`{name}`: {refusal}")),
    }
}

pub fn in_turns(node: &Node) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, quantum_ns } = *node;
    let name = node.name();
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let children = edges.len() as u64;
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let Some(place) = whole_cpu else {
        return node.gives_nothing(format!("`{name}` has no whole CPU: its turns may be of any length"));
    };
    let switch_ns = overheads.switch_ns(index);
    let turn_ns = quantum_ns.saturating_add(switch_ns).saturating_mul(children);
    let because = format!("`{name}` gives each of {children} a quantum in turn");
    let each = edges.iter().map(|edge| {
        let (because, lost_ns) = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(None) => (because.clone(), 0),
            // A window may hold the begins of two turns.
            Ok(Some(toll)) => {
                let lost_ns = switch_ns.saturating_mul(2).saturating_add(toll.within(turn_ns));
                (format!("{because}; switches and timers may take {}", show_time(lost_ns)), lost_ns)
            }
            Err(unknown) => return Promise::nothing(unknown),
        };
        let left = whole(quantum_ns.saturating_sub(lost_ns));
        Guarantee::reservation(Kind::Rescs, left, whole(turn_ns)).map_or_else(
            || Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}")),
            |guarantee| {
                let (from, formula) = ([&received[place].guarantee], "RESCS quantum n·quantum");
                let promise = Promise::new(guarantee, because);
                vec![promise.by(Origin::Promise(place), &from, "round robin", formula)]
            },
        )
    });
    each.collect()
}

/// Levels that move: what is sure is a quantum from time to time, to who always wants it.
pub fn by_levels(node: &Node, shape: &Shape, starvation: Option<usize>) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, quantum_ns } = *node;
    let name = node.name();
    if some_move(plan, shape, index) {
        return node.gives_nothing(format!(
            "how often others come to `{name}` that have waited for long is not known"
        ));
    }
    let starvation_ns = starvation.map_or(0, |at| plan.nodes[index].params[at]);
    if starvation_ns == 0 {
        return node.gives_nothing(format!("`{name}` lets the highest level run, however long it does"));
    }
    if let Some(crowd) = crowd(plan, index) {
        return node.gives_nothing(crowd);
    }
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let Some(place) = whole_cpu.filter(|_| overheads.is_none()) else {
        return node.gives_nothing(format!(
            "`{name}` has no whole CPU without costs: how long it lets others starve is not known"
        ));
    };
    // Between the ends of two quanta; a window may begin when all but a moment of the first has been used.
    let between_ns = starvation_ns.saturating_add(quantum_ns.saturating_mul(edges.len() as u64));
    let window_ns = between_ns.saturating_mul(2).saturating_sub(quantum_ns);
    let each = Guarantee::reservation(Kind::Rescs, whole(quantum_ns), whole(window_ns)).map_or_else(
        || Promise::nothing(format!("`{name}`: its windows are too long")),
        |guarantee| {
            let because = format!(
                "`{name}` lifts above all others who has used no quantum for {}; {} children",
                show_time(starvation_ns),
                edges.len()
            );
            let formula = "RESCS quantum (2·starvation + (2n − 1)·quantum)";
            let from = [&received[place].guarantee];
            let promise = Promise::new(guarantee, because);
            vec![promise.by(Origin::Promise(place), &from, "starvation", formula)]
        },
    );
    vec![each; edges.len()]
}

pub fn in_reserves(node: &Node) -> Vec<Vec<Promise>> {
    let Node { plan, index, edges, received, overheads, .. } = *node;
    let name = node.name();
    let Some(place) = received.iter().position(|promise| promise.guarantee.is_whole_cpu()) else {
        return node.gives_nothing(format!("`{name}` has no whole CPU: it may not have one in a reserve"));
    };
    let switch_ns = overheads.switch_ns(index);
    let each = edges.iter().map(|edge| {
        let Some(reserve) = Reserve::of(plan, &plan.edges[*edge]).filter(|_| !is_live(plan, *edge)) else {
            return Promise::nothing(format!("any number of threads may share a reserve of `{name}`"));
        };
        let Reserve { slot_ns, length_ns, fills, .. } = reserve;
        let because = format!("`{name}` keeps {} of each slot for it", show_time(length_ns));
        let (because, lost_ns) = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(None) => (because, 0),
            // A window of a slot may hold the begin of two reserves.
            Ok(Some(toll)) => {
                let lost_ns = switch_ns.saturating_mul(2).saturating_add(toll.within(slot_ns));
                (format!("{because}; switches and timers may take {}", show_time(lost_ns)), lost_ns)
            }
            Err(unknown) => return Promise::nothing(unknown),
        };
        let (kind, formula) = match fills || lost_ns > 0 {
            true => (Kind::Rescs, "RESCS length slot"),
            false => (Kind::Resnh, "RESNH length slot"),
        };
        let left = whole(length_ns.saturating_sub(lost_ns));
        Guarantee::new(kind, vec![left, whole(slot_ns)]).map_or_else(
            || Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}")),
            |guarantee| {
                let from = [&received[place].guarantee];
                let promise = Promise::new(guarantee, because);
                vec![promise.by(Origin::Promise(place), &from, "reserve in a timeslot", formula)]
            },
        )
    });
    each.collect()
}
