//! Where a plan breaks first, and the search for the smallest change of one thing that would make it hold.

use super::remedies::{Broken, Problem, Remedy};
use crate::laws::reservation::servers;
use crate::share::{self, ratio};
use crate::verdict::{Admission, Excess, Failure, NodeVerdict};
use tierce_guarantee::{show, weakest, whole, Free, Guarantee, Kind, Parameter, Wanted};
use tierce_plan::policies::{self, ParamKind};
use tierce_plan::Shape;
use tierce_plan::{Child, Plan};

/// Plans with more edges are not searched: each change tried is a whole admission.
pub const EDGES_MAX: usize = 32;

/// For how many problems changes are tried.
const PROBLEMS_MAX: usize = 4;

/// Replicas of a node that are looked at for a child that does not fit.
const REPLICAS_MAX: usize = 64;

/// Values tried between what a parameter is and what it may be at most.
const STEPS: i128 = 8;

impl Admission {
    /// What does not hold, from the CPUs down: the first is where the plan breaks first.
    pub fn broken(&self, plan: &Plan) -> Vec<Broken> {
        let shape = Shape::new(plan);
        let mut broken = self.explained(plan, &shape);
        let (now, edges) = (problems(self), plan.edges.len());
        for (at, one) in broken.iter_mut().enumerate() {
            one.untried = if edges > EDGES_MAX {
                Some(format!("the plan has {edges} edges, more than {EDGES_MAX}"))
            } else if at >= PROBLEMS_MAX {
                Some(format!("others that come first fail, too, and changes are tried for {PROBLEMS_MAX}"))
            } else {
                None
            };
            let computed = computed(plan, &shape, self, one);
            one.remedies = match &one.untried {
                Some(_) => computed,
                None => remedies(plan, &shape, &now, &one.problem, &computed),
            };
        }
        broken
    }

    /// The same without remedies, which take far longer.
    pub(crate) fn explained(&self, plan: &Plan, shape: &Shape) -> Vec<Broken> {
        if self.holds {
            return Vec::new();
        }
        let mut broken = Vec::new();
        for index in &shape.order {
            let (node, verdict) = (&plan.nodes[*index], &self.nodes[*index]);
            for failure in &verdict.failures {
                broken.push(failed(&node.name, failure, Problem::Law(*index, failure.rule)));
            }
            let above = &shape.parents[*index];
            for (at, (need, proof)) in node.needs.iter().zip(&verdict.needs).enumerate() {
                let promised = verdict.promises.first().map(|promise| &promise.guarantee);
                if proof.is_err() {
                    let problem = Problem::NodeNeed(*index, at);
                    broken.push(unshown(&node.name, &need.text, promised, above.first(), problem));
                }
            }
        }
        for (index, (task, verdict)) in plan.tasks.iter().zip(&self.tasks).enumerate() {
            let above = &shape.task_parents[index];
            for failure in &verdict.failures {
                broken.push(failed(&task.name, failure, Problem::Deadline(index)));
            }
            for (at, (need, proof)) in task.needs.iter().zip(&verdict.needs).enumerate() {
                let promised = verdict.promises.first().map(|promise| &promise.guarantee);
                if proof.is_err() {
                    let problem = Problem::TaskNeed(index, at);
                    broken.push(unshown(&task.name, &need.text, promised, above.first(), problem));
                }
            }
        }
        for one in &mut broken {
            one.explanation = one.paragraph(plan, shape, self);
        }
        broken
    }
}

impl Broken {
    /// Whether a plan changed like that holds where this one does not, and nothing else breaks.
    pub fn is_mended_by(&self, plan: &Plan, remedy: &Remedy) -> bool {
        mends(&remedy.apply(plan), &problems(&Admission::of(plan)), &self.problem)
    }
}

/// A law that fails, or a deadline that is not shown to be met.
fn failed(name: &str, failure: &Failure, problem: Problem) -> Broken {
    let (edge, excess) = (failure.excess.edge, failure.excess.clone());
    Broken {
        name: name.to_string(),
        rule: failure.rule,
        need: None,
        edge,
        excess,
        remedies: Vec::new(),
        untried: None,
        explanation: String::new(),
        problem,
    }
}

/// A need that does not follow: which theorem refuses, and what is missing in the window that it speaks of.
fn unshown(
    name: &str,
    need: &str,
    promised: Option<&Guarantee>,
    above: Option<&usize>,
    problem: Problem,
) -> Broken {
    let mut excess =
        Excess { edge: above.copied(), test: "nothing is promised".into(), ns: None, share: None };
    if let (Ok(goal), Some(promised)) = (Guarantee::parse(need), promised) {
        if promised.kind() != Kind::Null {
            if let Err(refusal) = show(promised, &goal, &Free::default()) {
                excess.test = format!("{promised} is no {} ({})", goal, refusal.rule);
            }
        }
        if let Some((amount, period)) = goal.amount_and_period() {
            let missing = amount - tierce_guarantee::Supply::of(promised).at(period);
            let ns = u64::try_from(missing.ceil().to_integer()).ok().filter(|ns| *ns > 0);
            (excess.ns, excess.share) = (ns, ns.map(|_| missing / period));
        } else if let Some(share) = goal.get(Parameter::Share) {
            let missing = share - promised.share();
            if missing > crate::share::zero() {
                excess.share = Some(missing);
            } else if let (Some(error), Some(least)) =
                (goal.get(Parameter::Error), tierce_guarantee::Supply::of(promised).error_for(share))
            {
                excess.ns = u64::try_from((least - error).ceil().to_integer()).ok().filter(|ns| *ns > 0);
            }
        }
    }
    let (name, need) = (name.to_string(), Some(need.to_string()));
    Broken {
        name,
        rule: "needs_must_follow",
        need,
        edge: excess.edge,
        excess,
        remedies: Vec::new(),
        untried: None,
        explanation: String::new(),
        problem,
    }
}

fn problems(admission: &Admission) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, node) in admission.nodes.iter().enumerate() {
        found.extend(node.failures.iter().map(|failure| Problem::Law(index, failure.rule)));
        let needs = node.needs.iter().enumerate().filter(|(_, proof)| proof.is_err());
        found.extend(needs.map(|(at, _)| Problem::NodeNeed(index, at)));
    }
    for (index, task) in admission.tasks.iter().enumerate() {
        let needs = task.needs.iter().enumerate().filter(|(_, proof)| proof.is_err());
        found.extend(needs.map(|(at, _)| Problem::TaskNeed(index, at)));
        found.extend(task.failures.iter().map(|_| Problem::Deadline(index)));
    }
    found
}

fn mends(changed: &Plan, before: &[Problem], problem: &Problem) -> bool {
    let after = problems(&Admission::of(changed));
    // A law that fails by another rule is still broken.
    let same = |other: &Problem| match (problem, other) {
        (Problem::Law(node, _), Problem::Law(other, _)) => node == other,
        _ => problem == other,
    };
    after.iter().all(|problem| before.contains(problem) && !same(problem))
}

/// For each edge that matters the smallest change of each kind.
fn remedies(
    plan: &Plan,
    shape: &Shape,
    before: &[Problem],
    problem: &Problem,
    guesses: &[Remedy],
) -> Vec<Remedy> {
    let mut found = Vec::new();
    let parents: &[usize] = match problem {
        Problem::Law(node, _) | Problem::NodeNeed(node, _) => &shape.parents[*node],
        Problem::TaskNeed(task, _) | Problem::Deadline(task) => &shape.task_parents[*task],
    };
    // More from above; what is below a broken law may ask for less, or go elsewhere.
    let mut above = parents.to_vec();
    let mut at = 0;
    while at < above.len() {
        above.extend(shape.parents[plan.edges[above[at]].parent].iter().copied());
        at += 1;
        above.truncate(EDGES_MAX);
    }
    let children: &[usize] = match problem {
        Problem::Law(node, _) => &shape.children[*node],
        _ => &[],
    };
    let search = |from: u64, toward: u64, remedy: &dyn Fn(u64) -> Remedy, found: &mut Vec<Remedy>| {
        let holds = |to| mends(&remedy(to).apply(plan), before, problem);
        // What was computed is tried first.
        let guess = guesses.iter().find_map(|guess| match *guess {
            Remedy::Parameter { to, .. } if *guess == remedy(to) => Some(to),
            _ => None,
        });
        let less = |to: u64| if to > from { to - 1 } else { to + 1 };
        if let Some(guess) = guess.filter(|guess| holds(*guess) && !holds(less(*guess))) {
            return found.push(remedy(guess));
        }
        // What holds with some value may not with one further away: some are tried, and the search goes back from there.
        let (begin, end) = (i128::from(from), i128::from(toward));
        let on_the_way = |step: i128| (begin + (end - begin) * step / STEPS) as u64;
        let Some(step) = (1..=STEPS).find(|step| holds(on_the_way(*step))) else { return };
        let (mut bad, mut good) = (on_the_way(step - 1), on_the_way(step));
        while bad.abs_diff(good) > 1 {
            let middle = bad.min(good) + bad.abs_diff(good) / 2;
            *(if holds(middle) { &mut good } else { &mut bad }) = middle;
        }
        found.push(remedy(good));
    };
    let parameter = |edge: usize, at: usize, toward: u64, found: &mut Vec<Remedy>| {
        let from = plan.edges[edge].params[at];
        search(from, toward, &|to| Remedy::Parameter { edge, at, from, to }, found);
    };
    if let (Problem::Deadline(task), [edge, ..]) = (problem, parents) {
        let work = plan.tasks[*task].load.clone().and_then(|mut load| Some(load.work_mut()?.max_ns()));
        if let Some(from) = work {
            search(from, 1, &|to| Remedy::Work { edge: *edge, from, to }, &mut found);
        }
    }
    for (edge, more) in
        children.iter().map(|edge| (*edge, false)).chain(above.iter().map(|edge| (*edge, true)))
    {
        let about = &plan.edges[edge];
        let Some(policy) = policies::by_number(plan.nodes[about.parent].policy) else { continue };
        let counts =
            policy.edge_params.iter().enumerate().filter(|(_, param)| param.kind == ParamKind::Count);
        for (at, param) in counts.filter(|_| more) {
            parameter(edge, at, param.most, &mut found); // a weight, a priority
        }
        let Some((budget, period)) = policies::budget_and_period(policy) else { continue };
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        let (budget_ns, period_ns, deadline_ns) =
            (about.params[budget], about.params[period], about.params[deadline]);
        if more {
            parameter(edge, budget, deadline_ns, &mut found);
            if deadline_ns == period_ns {
                parameter(edge, period, budget_ns, &mut found);
            }
            if deadline != period && matches!(problem, Problem::Deadline(_)) {
                parameter(edge, deadline, budget_ns, &mut found);
            }
        } else {
            parameter(edge, budget, policy.edge_params[budget].least, &mut found);
            parameter(
                edge,
                period,
                period_ns.saturating_mul(64).min(policy.edge_params[period].most),
                &mut found,
            );
            elsewhere(plan, shape, edge, before, problem, &mut found);
        }
    }
    found
}

/// What can be said without a search: the sums that are too large, and the budgets from which a need would follow.
fn computed(plan: &Plan, shape: &Shape, admission: &Admission, broken: &Broken) -> Vec<Remedy> {
    let Some(edge) = broken.edge else { return Vec::new() };
    let about = &plan.edges[edge];
    let parent = &admission.nodes[about.parent];
    let policy = policies::by_number(plan.nodes[about.parent].policy);
    let Some((policy, (budget, period))) =
        policy.and_then(|policy| Some((policy, policies::budget_and_period(policy)?)))
    else {
        return Vec::new();
    };
    let (budget_ns, period_ns) = (about.params[budget], about.params[period]);
    let share = |budget_ns, period_ns: u64| ratio(budget_ns, period_ns.max(1));
    let now = share(budget_ns, period_ns);
    let room = |node: &NodeVerdict| {
        let cap = servers::cap(plan, about.parent).unwrap_or_else(share::one);
        let most = node.supply.clone().unwrap_or_else(share::one).min(share::one()).min(cap);
        most - node.asked.clone().unwrap_or_else(share::zero)
    };
    let mut found = Vec::new();
    let mut to = |at: usize, to: Option<u64>| {
        let (from, param) = (about.params[at], &policy.edge_params[at]);
        let to = to.filter(|to| *to != from && (param.least..=param.most).contains(to));
        found.extend(to.map(|to| Remedy::Parameter { edge, at, from, to }));
    };
    match (broken.rule, &broken.need, &broken.excess.share) {
        (
            "budgets_must_fit_the_cpu" | "budgets_must_fit_the_cap" | "budgets_must_fit_the_supply",
            _,
            Some(excess),
        ) => {
            let left = &now - excess;
            if left > share::zero() {
                to(budget, u64::try_from((&left * whole(period_ns)).floor().to_integer()).ok());
                to(period, u64::try_from((whole(budget_ns) / &left).ceil().to_integer()).ok());
            }
            let same = &plan.nodes[about.parent];
            let others = plan.nodes.iter().zip(&admission.nodes).enumerate().filter(|(_, (node, _))| {
                same.replica.is_some() && node.base == same.base && node.replica != same.replica
            });
            let mut others = others.take(if moves_alone(plan, shape, edge) { REPLICAS_MAX } else { 0 });
            let fits = others.find(|(_, (_, verdict))| verdict.failures.is_empty() && room(verdict) >= now);
            found.extend(fits.map(|(to, _)| Remedy::Parent { edge, to }));
        }
        (_, Some(need), _) if parent.failures.is_empty() => {
            let Ok(goal) = Guarantee::parse(need) else { return found };
            let given = admission.edges[edge].promises.first().map(|promise| &promise.guarantee);
            let Some(given) = given.filter(|given| given.kind().is_reservation()) else { return found };
            let lost =
                whole(budget_ns) - given.amount_and_period().map_or(whole(0), |(amount, _)| amount.clone());
            let solved = |open: Parameter, at: usize| {
                let wanted = Wanted {
                    kind: given.kind(),
                    values: (given.kind().parameters().iter().zip(given.values()))
                        .map(|(parameter, value)| Some(value.clone()).filter(|_| *parameter != open))
                        .collect(),
                };
                let number = weakest(&wanted, &goal, &Free::default()).ok()?.source.get(open)?.clone();
                let number = if open == Parameter::Amount { (number + &lost).ceil() } else { number.floor() };
                let number = u64::try_from(number.to_integer()).ok()?;
                let (budget_ns, period_ns) =
                    if at == budget { (number, period_ns) } else { (budget_ns, number) };
                (share(budget_ns, period_ns) - &now <= room(parent)).then_some(number)
            };
            let (amount, shorter) = (solved(Parameter::Amount, budget), solved(Parameter::Period, period));
            to(budget, amount.filter(|amount| *amount > budget_ns && *amount <= period_ns));
            to(period, shorter.filter(|shorter| *shorter < period_ns));
        }
        _ => {}
    }
    found
}

/// What is below an edge has no other parent, and nothing ties it to its CPU.
fn moves_alone(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    match plan.edges[edge].child {
        Child::Node(node) => shape.parents[node].len() == 1 && plan.nodes[node].replica.is_none(),
        Child::Task(_) if plan.edges[edge].spread => false, // it goes where it is served by itself
        Child::Task(task) => shape.task_parents[task].len() == 1 && plan.tasks[task].affinity.is_none(),
        Child::Set(_) => false,
    }
}

/// The same parent on another CPU.
fn elsewhere(
    plan: &Plan,
    shape: &Shape,
    edge: usize,
    before: &[Problem],
    problem: &Problem,
    found: &mut Vec<Remedy>,
) {
    let about = &plan.edges[edge];
    let from = &plan.nodes[about.parent];
    if !moves_alone(plan, shape, edge) || from.replica.is_none() {
        return;
    }
    let others = plan
        .nodes
        .iter()
        .enumerate()
        .filter(|(_, node)| node.base == from.base && node.replica != from.replica);
    let mut moves = others.map(|(to, _)| Remedy::Parent { edge, to });
    found.extend(moves.find(|remedy| mends(&remedy.apply(plan), before, problem)));
}
