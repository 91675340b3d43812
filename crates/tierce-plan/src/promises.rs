//! What every edge, node and task is promised, from the CPUs down (HLS 5.1.2): each node turns the guarantee that it
//! receives into those of its children, by the rules of its policy.
//!
//! - A CPU gives ALL to its root.
//! - `fixed-priority` passes what it gets to the one child of highest priority; others get what those above them leave, where that
//!   is bounded (`rest.rs`), or NULL.
//! - `reservation` gives RESBH budget period to each: on a whole CPU when its law holds (sums and windows), below anything
//!   else when the demand of its budgets fits what that is sure to supply.
//! - `fair` is start-time fair queuing: PSBE by the tight form of equation 5.2, as long as the number of its children is
//!   known; with warp only PS.
//! - `round-robin` on a whole CPU gives a quantum in every turn of all children.
//! - `edf` knows only what its children say they want, and promises them nothing.
//!
//! Where the machine has costs, what they take is left out of all of these (`overheads.rs`).
//!
//! Several parents on one CPU are a join. Nothing is promised yet of what several CPUs reach.

use crate::admission::NodeVerdict;
use crate::derivation::{Origin, Step};
use crate::exact::percent;
use crate::model::{Child, Edge, Plan, TaskSet};
use crate::overheads::Overheads;
use crate::policies::{self, PolicyRecord};
use crate::rest::{Taken, Takes};
use crate::structure::Shape;
use crate::units::show_time;
use tierce_analysis::{Demand, Edf, Supply, Task};
use tierce_guarantee::schedulers::{self, Joining, SfqBound};
use tierce_guarantee::{show, whole, Free, Guarantee, Kind, Parameter};

/// A guarantee, and why it holds.
#[derive(Clone, Debug)]
pub struct Promise {
    /// What is promised.
    pub guarantee: Guarantee,
    /// In words.
    pub because: String,
    /// What it follows from.
    pub origin: Origin,
    /// And how: from there to the guarantee; empty where it is the same.
    pub steps: Vec<Step>,
}

impl Promise {
    fn new(guarantee: Guarantee, because: impl Into<String>) -> Self {
        Self { guarantee, because: because.into(), origin: Origin::None, steps: Vec::new() }
    }

    /// With what it follows from, in one step.
    fn by(self, origin: Origin, from: &[&Guarantee], rule: &'static str, formula: &str) -> Self {
        let from = from.iter().map(|from| (*from).clone()).collect();
        let (to, because) = (self.guarantee.clone(), self.because.clone());
        let step = Step { from, to, rule, formula: formula.to_string(), because };
        Self { origin, steps: vec![step], ..self }
    }

    fn nothing(because: impl Into<String>) -> Vec<Self> {
        vec![Self::new(Guarantee::null(), because)]
    }
}

/// How something asked for was shown; or why not.
pub type Proof = Result<Shown, String>;

/// How something asked for was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// In words.
    pub words: String,
    /// What it follows from.
    pub origin: Origin,
    /// And how.
    pub steps: Vec<Step>,
}

/// Promises of a plan; each list has at least one, the strongest first.
#[derive(Clone, Debug)]
pub struct Promises {
    /// Through each edge.
    pub edges: Vec<Vec<Promise>>,
    /// To each node, from all its parents.
    pub nodes: Vec<Vec<Promise>>,
    /// To each task.
    pub tasks: Vec<Vec<Promise>>,
    /// Nodes whose budgets are not shown to arrive, and why.
    pub unfit: Vec<(usize, String)>,
}

impl Promises {
    /// From the CPUs down. Nodes whose law fails promise nothing.
    pub fn new(plan: &Plan, shape: &Shape, verdicts: &[NodeVerdict], overheads: &Overheads) -> Self {
        let none = || Promise::nothing("no CPU leads to it");
        let mut promises = Self {
            edges: vec![none(); plan.edges.len()],
            nodes: vec![none(); plan.nodes.len()],
            tasks: vec![none(); plan.tasks.len()],
            unfit: Vec::new(),
        };
        let takes = Takes::new(plan, shape);
        for index in &shape.order {
            let node = &plan.nodes[*index];
            promises.nodes[*index] = if shape.shared(*index) {
                Promise::nothing(format!("several CPUs reach `{}`", node.name))
            } else if let Some(cpu) = node.roots.first() {
                let runs = format!("`{}` is what CPU {cpu} runs", node.name);
                let (promise, rule) = match plan.machine.left.get(*cpu as usize) {
                    None => (Promise::new(Guarantee::all(), runs), "root"),
                    Some(left) => {
                        let because = format!("{runs}; {}", left.because);
                        (Promise::new(left.guarantee.clone(), because), "what the machine leaves")
                    }
                };
                vec![promise.by(Origin::Cpu(*cpu), &[], rule, "")]
            } else {
                promises.joined(plan, &shape.parents[*index])
            };
            promises.pass_on(plan, shape, *index, &verdicts[*index], (overheads, &takes));
        }
        for task in 0..plan.tasks.len() {
            promises.tasks[task] = if shape.task_reach(plan, task).count_ones() > 1 {
                Promise::nothing(format!("several CPUs reach `{}`", plan.tasks[task].name))
            } else {
                promises.joined(plan, &shape.task_parents[task])
            };
        }
        promises
    }

    /// What comes through several edges from one CPU.
    fn joined(&self, plan: &Plan, above: &[usize]) -> Vec<Promise> {
        match above {
            [] => return Promise::nothing("it has no parent"),
            [only] => return (0..self.edges[*only].len()).map(|at| self.through(*only, at)).collect(),
            _ => {}
        }
        let (conditional, plain): (Vec<_>, Vec<_>) =
            above.iter().copied().partition(|edge| plan.edges[*edge].when_spent);
        let parents: Vec<_> = plain.iter().map(|edge| self.edges[*edge][0].guarantee.clone()).collect();
        // Parents that promise more than a CPU together: then each alone.
        let apart = Joining { several_cpus: true, ..Joining::default() };
        let joined =
            schedulers::join(&parents, Joining::default()).or_else(|_| schedulers::join(&parents, apart));
        let joined = joined.unwrap_or_default();
        // The first of these are the parents', in order.
        let of = |(place, joined): (usize, schedulers::Joined)| match plain.get(place) {
            Some(edge) if parents[place] == joined.guarantee => self.through(*edge, 0),
            Some(edge) => {
                let because = format!("{}; soft, since it has other parents", self.edges[*edge][0].because);
                let origin = Origin::Edges(vec![(*edge, 0)]);
                Promise::new(joined.guarantee, because).by(origin, &[&parents[place]], "join", "soft")
            }
            None => {
                let origin = Origin::Edges(plain.iter().map(|edge| (*edge, 0)).collect());
                let from: Vec<_> = parents.iter().collect();
                let because = format!("its parents together, {}", joined.rule);
                Promise::new(joined.guarantee, because).by(origin, &from, "join", joined.rule)
            }
        };
        let mut found: Vec<_> = joined.into_iter().enumerate().map(of).collect();
        if let ([overrun], Some(first)) = (conditional.as_slice(), found.first().cloned()) {
            found.extend(self.with_overrun(plan, &first, *overrun));
        }
        // Each alone, with what else is known of it.
        let others =
            plain.iter().flat_map(|edge| (1..self.edges[*edge].len()).map(|at| self.through(*edge, at)));
        found.extend(others.filter(|promise| !promise.guarantee.kind().is_hard()));
        if found.iter().any(|promise| promise.guarantee.kind() != Kind::Null) {
            found.retain(|promise| promise.guarantee.kind() != Kind::Null);
        }
        if found.is_empty() {
            return Promise::nothing("all its edges are conditional");
        }
        found.sort_by_key(|promise| std::cmp::Reverse(strength(&promise.guarantee)));
        found
    }

    /// What comes through an edge.
    fn through(&self, edge: usize, at: usize) -> Promise {
        let Promise { guarantee, because, .. } = self.edges[edge][at].clone();
        Promise { origin: Origin::Edges(vec![(edge, at)]), ..Promise::new(guarantee, because) }
    }

    /// RESPS: a reservation, and a partition that it may use while it is spent.
    fn with_overrun(&self, plan: &Plan, usual: &Promise, overrun: usize) -> Option<Promise> {
        let partition = plan.edges[overrun].parent;
        let (amount, period) = usual.guarantee.amount_and_period()?;
        let (size, _) = self.nodes[partition][0].guarantee.amount_and_period()?;
        let numbers = vec![amount.clone(), period.clone(), size.clone().min(period.clone())];
        let because = format!("{}; `{}` while that is spent", usual.because, plan.nodes[partition].name);
        let mut promise = Promise::new(Guarantee::new(Kind::Resps, numbers)?, because);
        promise = promise.by(
            usual.origin.clone(),
            &[&usual.guarantee],
            "overrun partition (HLS 6.2.2)",
            "RESPS x y z",
        );
        promise.steps.splice(0..0, usual.steps.iter().cloned());
        Some(promise)
    }

    fn pass_on(
        &mut self,
        plan: &Plan,
        shape: &Shape,
        index: usize,
        verdict: &NodeVerdict,
        (overheads, takes): (&Overheads, &Takes),
    ) {
        let node = &plan.nodes[index];
        let Some(policy) = policies::by_number(node.policy) else { return };
        let edges = &shape.children[index];
        let received = self.nodes[index].clone();
        let name = &node.name;
        let position = |parameter| policies::position(&policy.edge_params, parameter);
        let given = if shape.shared(index) {
            vec![Promise::nothing(format!("several CPUs reach `{name}`")); edges.len()]
        } else if let Some(budgets) = policies::budget_and_period(policy) {
            match reserved(plan, edges, policy, budgets, index, &received, verdict, overheads) {
                Ok(given) => given,
                Err(why) => {
                    let because = format!("`{name}`: {why}");
                    self.unfit.push((index, why));
                    vec![Promise::nothing(because); edges.len()]
                }
            }
        } else if let Some(weight) = position("weight") {
            shared_by_weight(
                plan,
                edges,
                weight,
                position("warp"),
                quantum(policy, &node.params),
                index,
                &received,
                overheads,
            )
        } else if let Some(priority) = position("priority") {
            by_priority(plan, shape, index, priority, &received, (overheads, takes))
        } else if policy.edge_params.is_empty() {
            in_turns(plan, edges, quantum(policy, &node.params), index, &received, overheads)
        } else {
            let because = format!("`{name}` orders by deadlines: each child may have to wait for the others");
            vec![Promise::nothing(because); edges.len()]
        };
        for (edge, given) in edges.iter().zip(given) {
            self.edges[*edge] = if plan.edges[*edge].when_spent {
                Promise::nothing("this edge is there only while others are spent")
            } else {
                given
            };
        }
    }

    /// Whether what is promised in `promises`, by `above`, includes what is needed.
    pub fn prove(&self, promises: &[Promise], above: &[usize], need: &str) -> Proof {
        let goal = Guarantee::parse(need).map_err(|faults| faults.to_string())?;
        let mut first = None;
        let useful = |promise: &Promise| promise.guarantee.kind() != Kind::Null || goal.kind() == Kind::Null;
        for (place, promise) in promises.iter().enumerate().filter(|(_, promise)| useful(promise)) {
            match show(&promise.guarantee, &goal, &Free::default()) {
                Ok(derivation) => {
                    let steps =
                        derivation.steps.iter().map(|step| format!("; {} by {}", step.to, rule(step.rule)));
                    let words =
                        format!("{}, {}{}", promise.guarantee, promise.because, steps.collect::<String>());
                    let steps = derivation.steps.into_iter().map(Step::from).collect();
                    return Ok(Shown { words, origin: Origin::Promise(place), steps });
                }
                Err(refusal) => drop(first.get_or_insert(refusal)),
            }
        }
        if let (Some(window), true) =
            (goal.get(Parameter::Period), above.len() > 1 && promises[0].guarantee.kind() != Kind::Null)
        {
            let parents: Vec<_> = above.iter().map(|edge| self.edges[*edge][0].guarantee.clone()).collect();
            let together = schedulers::joined_supply(&parents, window);
            if let Some((together, Ok(derivation))) =
                together.map(|together| (together.clone(), show(&together, &goal, &Free::default())))
            {
                let words = format!("its {} parents supply it together, whatever their phases", above.len());
                let rule = "sum of supply functions";
                let formula = "RESCS Σ sbf(y) y".to_string();
                let sum = Step { from: parents, to: together, rule, formula, because: words.clone() };
                let steps = [sum].into_iter().chain(derivation.steps.into_iter().map(Step::from)).collect();
                let origin = Origin::Edges(above.iter().map(|edge| (*edge, 0)).collect());
                return Ok(Shown { words, origin, steps });
            }
        }
        if promises.iter().all(|promise| promise.guarantee.kind() == Kind::Null) {
            return Err(format!("nothing is promised to it: {}", promises[0].because));
        }
        Err(first.map_or("nothing is promised to it".into(), |refusal| refusal.to_string()))
    }
}

fn rule(name: &str) -> String {
    if name == "trivial" {
        "its definition".into()
    } else {
        name.to_string()
    }
}

/// Which of several promises is named first.
fn strength(guarantee: &Guarantee) -> u32 {
    match guarantee.kind() {
        _ if guarantee.is_whole_cpu() => 5,
        Kind::Psbe => 3,
        Kind::Ps | Kind::Resu => 2,
        Kind::Null => 1,
        _ => 4,
    }
}

fn quantum(policy: &PolicyRecord, params: &[u64; crate::model::PARAMS]) -> u64 {
    policies::position(&policy.node_params, "quantum").map_or(1, |at| params[at])
}

/// Why nobody knows how many children there will be.
fn crowd(plan: &Plan, node: usize) -> Option<String> {
    let name = &plan.nodes[node].name;
    if plan.nodes[node].default {
        return Some(format!("any number of threads may come to the default node `{name}`"));
    }
    let set = live_sets(plan, node).next();
    set.map(|(set, _)| format!("any number of threads may match the set `{}` below `{name}`", set.name))
}

/// Sets below a node that any number of threads may match, each with an edge of a new member; they may have no members yet.
pub fn live_sets(plan: &Plan, node: usize) -> impl Iterator<Item = (&TaskSet, &Edge)> {
    let matches = |set: usize| plan.entries.iter().any(|entry| entry.target == Child::Set(set));
    let below =
        plan.sets.iter().enumerate().flat_map(|(at, set)| set.under.iter().map(move |edge| (at, set, edge)));
    below.filter(move |(at, _, edge)| edge.parent == node && matches(*at)).map(|(_, set, edge)| (set, edge))
}

/// It leads to a member of a set that any number of threads may match.
pub fn is_live(plan: &Plan, edge: usize) -> bool {
    let Child::Task(task) = plan.edges[edge].child else { return false };
    let Some(set) = plan.tasks[task].set else { return false };
    plan.entries.iter().any(|entry| entry.target == Child::Set(set))
}

/// The largest value of an edge parameter of those of whom there may be any number; `None`: there are none.
pub fn of_crowd(plan: &Plan, node: usize, edges: &[usize], at: usize) -> Option<u64> {
    let unmatched = plan.nodes[node].default.then(|| plan.each.as_ref().map_or(0, |each| each.params[at]));
    let live = edges.iter().filter(|edge| is_live(plan, **edge)).map(|edge| plan.edges[*edge].params[at]);
    let new = live_sets(plan, node).map(|(_, edge)| edge.params[at]);
    live.chain(unmatched).chain(new).max()
}

fn by_priority(
    plan: &Plan,
    shape: &Shape,
    node: usize,
    at: usize,
    received: &[Promise],
    (overheads, takes): (&Overheads, &Takes),
) -> Vec<Vec<Promise>> {
    let (name, edges) = (&plan.nodes[node].name, &shape.children[node]);
    let priority = |edge: &usize| plan.edges[*edge].params[at];
    let crowd = of_crowd(plan, node, edges, at);
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
        Some(Promise::new(guarantee, because).by(
            Origin::Promise(place),
            &from,
            "bounded higher priorities",
            formula,
        ))
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

#[allow(clippy::too_many_arguments)]
fn reserved(
    plan: &Plan,
    edges: &[usize],
    policy: &PolicyRecord,
    (budget, period): (usize, usize),
    index: usize,
    received: &[Promise],
    verdict: &NodeVerdict,
    overheads: &Overheads,
) -> Result<Vec<Vec<Promise>>, String> {
    let name = &plan.nodes[index].name;
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let all = |because: String| vec![Promise::nothing(because); edges.len()];
    if !verdict.failures.is_empty() {
        return Ok(all(format!("the budgets of `{name}` do not fit")));
    }
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let (place, admitted) = if let Some(place) = whole_cpu {
        (place, format!("admitted by `{name}`, which has a whole CPU"))
    } else {
        // Each budget may be overrun by a switch, and one of somebody with a later deadline be under way.
        let blocking_ns = overheads.switch_ns(index).saturating_mul(edges.len() as u64 + 1);
        let server = |edge: &usize| Task {
            blocking_ns: if overheads.is_none() { 0 } else { blocking_ns },
            ..server(&plan.edges[*edge], budget, period, deadline)
        };
        let servers: Vec<_> = edges.iter().map(server).collect();
        let place = fits(&servers, received)?;
        (place, format!("admitted by `{name}` inside its {}", received[place].guarantee))
    };
    let from = [&received[place].guarantee];
    let by = |promise: Promise, formula: &str| {
        promise.by(Origin::Promise(place), &from, "constant bandwidth server, hard (HLS Table 5.1)", formula)
    };
    let each = edges.iter().map(|edge| {
        let params = &plan.edges[*edge].params;
        let (budget_ns, period_ns) = (params[budget], params[period]);
        let toll = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(toll) => toll,
            Err(unknown) => return Promise::nothing(unknown),
        };
        let Some(toll) = toll else {
            return match Guarantee::reservation(Kind::Resbh, whole(budget_ns), whole(period_ns)) {
                Some(guarantee) => {
                    vec![by(Promise::new(guarantee, admitted.clone()), "RESBH budget period")]
                }
                None => Promise::nothing(format!("`{name}` gives a budget above its period")),
            };
        };
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

#[allow(clippy::too_many_arguments)]
fn shared_by_weight(
    plan: &Plan,
    edges: &[usize],
    weight: usize,
    warp: Option<usize>,
    quantum_ns: u64,
    index: usize,
    received: &[Promise],
    overheads: &Overheads,
) -> Vec<Vec<Promise>> {
    let name = &plan.nodes[index].name;
    let all = |because: String| vec![Promise::nothing(because); edges.len()];
    if let Some(crowd) = crowd(plan, index) {
        return all(crowd);
    }
    let weights: Vec<_> = edges.iter().map(|edge| whole(plan.edges[*edge].params[weight])).collect();
    let warped = warp.is_some_and(|warp| edges.iter().any(|edge| plan.edges[*edge].params[warp] > 0));
    // With warp the error is not bounded; what is left is the share.
    let supply = received.iter().enumerate().find_map(|(place, promise)| {
        let supply = if warped {
            Guarantee::ps(promise.guarantee.share())
        } else {
            Some(promise.guarantee.clone()).filter(|guarantee| guarantee.kind() != Kind::Null)
        };
        Some((place, supply?))
    });
    let Some((place, supply)) = supply else {
        return all(format!("nothing is promised to `{name}`: {}", received[0].because));
    };
    let switch_ns = overheads.switch_ns(index);
    if !overheads.is_none() && (warped || switch_ns >= quantum_ns) {
        return all(format!(
            "`{name}`: what switches cost is not bounded with warp, nor with a quantum as short as a switch"
        ));
    }
    // A quantum that ends within a switch lasts as much longer.
    let longest = whole(quantum_ns.saturating_add(switch_ns));
    match schedulers::sfq(&supply, &longest, &weights, SfqBound::Tight) {
        Ok(children) => {
            let with = if warped { " (with warp the error is not bounded)" } else { "" };
            let because = format!("`{name}` shares {supply} by {}{with}", children.rule);
            let from_supply: Vec<_> = if supply == received[place].guarantee {
                Vec::new()
            } else {
                let (from, to) = (vec![received[place].guarantee.clone()], supply.clone());
                let because = "with warp the error is not bounded".to_string();
                vec![Step { from, to, rule: "warp", formula: "PS s".into(), because }]
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
        Err(refusal) => all(format!("`{name}`: {refusal}")),
    }
}

fn in_turns(
    plan: &Plan,
    edges: &[usize],
    quantum_ns: u64,
    index: usize,
    received: &[Promise],
    overheads: &Overheads,
) -> Vec<Vec<Promise>> {
    let name = &plan.nodes[index].name;
    let children = edges.len() as u64;
    let all = |because: String| vec![Promise::nothing(because); edges.len()];
    if let Some(crowd) = crowd(plan, index) {
        return all(crowd);
    }
    let whole_cpu = received.iter().position(|promise| promise.guarantee.is_whole_cpu());
    let Some(place) = whole_cpu else {
        return all(format!("`{name}` has no whole CPU: its turns may be of any length"));
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
