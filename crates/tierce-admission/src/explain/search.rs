//! Where a plan breaks first, and the search for the smallest change of one thing that would make it hold.

use super::computed::{computed, moves_alone};
use super::remedies::{Broken, Problem, Remedy};
use super::waits::shorter;
use crate::verdict::{Admission, Excess, Failure};
use tierce_guarantee::{show, Free, Guarantee, Kind, Parameter};
use tierce_plan::policies::{self, ParamKind};
use tierce_plan::Shape;
use tierce_plan::{Child, Plan, Preemption};

/// Plans with more edges are not searched: each change tried is a whole admission.
pub const EDGES_MAX: usize = 32;

/// For how many problems changes are tried.
const PROBLEMS_MAX: usize = 4;

/// Values tried between what a parameter is and what it may be at most.
const STEPS: i128 = 8;

impl Admission {
    /// What does not hold, from the CPUs down: the first is where the plan breaks first.
    pub fn broken(&self, plan: &Plan) -> Vec<Broken> {
        let shape = Shape::new(plan);
        let mut broken = self.explained(plan, &shape);
        let (now, edges) = (problems(self), plan.edges.len());
        let alone = broken.len() == 1;
        for (at, one) in broken.iter_mut().enumerate() {
            one.alone = alone;
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
                None => {
                    let (before, problem, guesses, found) = (&now, &one.problem, &computed, Vec::new());
                    Search { plan, shape: &shape, admission: self, before, problem, guesses, found }
                        .remedies()
                }
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
        for (index, (chain, verdict)) in plan.chains.iter().zip(&self.chains).enumerate() {
            for (at, failure) in verdict.failures.iter().enumerate() {
                let Some(failure) = failure else { continue };
                let need = Some(chain.needs[at].text.clone());
                broken.push(Broken { need, ..failed(&chain.name, failure, Problem::Chain(index, at)) });
            }
        }
        for one in &mut broken {
            one.explanation = one.paragraph(plan, shape, self);
        }
        broken
    }
}

impl Broken {
    /// Whether a plan changed by something that mends this holds as a whole.
    pub(super) fn whole_plan_holds(&self, plan: &Plan, remedy: &Remedy) -> bool {
        self.alone || Admission::of(&remedy.apply(plan)).holds
    }

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
        alone: false,
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
        Excess { edge: above.copied(), test: "it has no guarantee".into(), ns: None, share: None };
    if let (Ok(goal), Some(promised)) = (Guarantee::parse(need), promised) {
        if promised.kind() != Kind::Null {
            if let Err(refusal) = show(promised, &goal, &Free::default()) {
                excess.test = format!("{promised} does not imply {} ({})", goal, refusal.rule);
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
        alone: false,
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
    for (index, chain) in admission.chains.iter().enumerate() {
        let failures = chain.failures.iter().enumerate().filter(|(_, failure)| failure.is_some());
        found.extend(failures.map(|(at, _)| Problem::Chain(index, at)));
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

/// The search for changes of one thing that mend a problem.
struct Search<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    /// What is known of the plan.
    admission: &'a Admission,
    /// All that is broken.
    before: &'a [Problem],
    problem: &'a Problem,
    /// What was computed; it is tried first.
    guesses: &'a [Remedy],
    found: Vec<Remedy>,
}

impl Search<'_> {
    /// For each edge that matters the smallest change of each kind: more from above; what is below a broken law may ask for
    /// less, or go elsewhere.
    fn remedies(mut self) -> Vec<Remedy> {
        let shape = self.shape;
        let of_chain: Vec<_>;
        let (parents, children): (&[usize], &[usize]) = match self.problem {
            Problem::Law(node, _) => (&shape.parents[*node], &shape.children[*node]),
            Problem::NodeNeed(node, _) => (&shape.parents[*node], &[]),
            Problem::TaskNeed(task, _) | Problem::Deadline(task) => (&shape.task_parents[*task], &[]),
            Problem::Chain(chain, _) => {
                let links = self.plan.chains[*chain].links.iter();
                of_chain = links.flat_map(|link| shape.task_parents[link.task].iter().copied()).collect();
                (&of_chain, &[])
            }
        };
        if let Problem::Chain(chain, _) = self.problem {
            for link in &self.plan.chains[*chain].links {
                shape.task_parents[link.task]
                    .first()
                    .into_iter()
                    .for_each(|edge| self.less_work(link.task, *edge));
            }
        }
        if let (Problem::Deadline(task), [edge, ..]) = (self.problem, parents) {
            self.less_work(*task, *edge);
        }
        self.less_waiting(&self.concerned(children));
        for edge in children {
            self.less_below(*edge);
        }
        for edge in self.all_above(parents) {
            self.more_from_above(edge);
        }
        self.found
    }

    /// The edges up to the CPUs, the nearest first.
    fn all_above(&self, parents: &[usize]) -> Vec<usize> {
        let mut above = parents.to_vec();
        let mut at = 0;
        while at < above.len() {
            above.extend(self.shape.parents[self.plan.edges[above[at]].parent].iter().copied());
            at += 1;
            above.truncate(EDGES_MAX);
        }
        above
    }

    fn less_work(&mut self, task: usize, edge: usize) {
        let Some(mut load) = self.plan.tasks[task].load.clone() else { return };
        let sections_ns = load.sections().last().map_or(1, |section| section.at_ns + section.length_ns);
        let least_ns = match load.preemption() {
            Preemption::Regions(regions) => {
                regions.last().map_or(1, |region| region.at_ns + region.length_ns).max(sections_ns)
            }
            Preemption::Floating(length_ns) => *length_ns,
            Preemption::Full | Preemption::None | Preemption::Threshold(_) => sections_ns,
        };
        if let Some(from) = load.work_mut().map(|work| work.max_ns()) {
            self.nearest(from, least_ns, &|to| Remedy::Work { edge, from, to });
        }
    }

    /// Those whose jobs are late, or may be.
    fn concerned(&self, children: &[usize]) -> Vec<usize> {
        match self.problem {
            Problem::Deadline(task) => vec![*task],
            Problem::Chain(chain, _) => self.plan.chains[*chain].links.iter().map(|link| link.task).collect(),
            Problem::Law(..) => {
                let child = |edge: &usize| match self.plan.edges[*edge].child {
                    Child::Task(task) => Some(task),
                    Child::Node(_) | Child::Set(_) => None,
                };
                children.iter().filter_map(child).collect()
            }
            Problem::NodeNeed(..) | Problem::TaskNeed(..) => Vec::new(),
        }
    }

    /// Less of what tasks wait for, and thresholds with which they wait for fewer.
    fn less_waiting(&mut self, tasks: &[usize]) {
        let mut all = Vec::new();
        for task in tasks {
            for one in shorter(self.plan, self.shape, &self.admission.tasks[*task], *task) {
                if !all.contains(&one) {
                    all.push(one);
                }
            }
        }
        for one in all {
            self.nearest(one.from, one.toward, &|to| one.with(to));
        }
    }

    fn less_below(&mut self, edge: usize) {
        let about = &self.plan.edges[edge];
        let Some(policy) = policies::by_number(self.plan.nodes[about.parent].policy) else { return };
        let Some((budget, period)) = policies::budget_and_period(policy) else { return };
        self.parameter(edge, budget, policy.edge_params[budget].least);
        let longer = about.params[period].saturating_mul(64);
        self.parameter(edge, period, longer.min(policy.edge_params[period].most));
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        if about.params[deadline] < about.params[period] {
            self.parameter(edge, deadline, about.params[period]);
        }
        self.elsewhere(edge);
    }

    fn more_from_above(&mut self, edge: usize) {
        let about = &self.plan.edges[edge];
        let Some(policy) = policies::by_number(self.plan.nodes[about.parent].policy) else { return };
        for (at, param) in policy.edge_params.iter().enumerate() {
            if param.kind == ParamKind::Count {
                let threshold = match about.child {
                    Child::Task(task) if param.name == "priority" => self.plan.tasks[task].threshold(),
                    _ => None,
                };
                self.parameter(edge, at, threshold.unwrap_or(param.most)); // a weight, a priority
            }
        }
        let Some((budget, period)) = policies::budget_and_period(policy) else { return };
        let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
        let (budget_ns, period_ns, deadline_ns) =
            (about.params[budget], about.params[period], about.params[deadline]);
        self.parameter(edge, budget, deadline_ns);
        if deadline_ns == period_ns {
            self.parameter(edge, period, budget_ns);
        }
        if deadline != period && matches!(self.problem, Problem::Deadline(_)) {
            self.parameter(edge, deadline, budget_ns);
        }
    }

    /// The same parent on another CPU.
    fn elsewhere(&mut self, edge: usize) {
        let plan = self.plan;
        let from = &plan.nodes[plan.edges[edge].parent];
        if !moves_alone(plan, self.shape, edge) || from.replica.is_none() {
            return;
        }
        let nodes = plan.nodes.iter().enumerate();
        let others = nodes.filter(|(_, node)| node.base == from.base && node.replica != from.replica);
        let mut moves = others.map(|(to, _)| Remedy::Parent { edge, to });
        self.found.extend(moves.find(|remedy| self.mends(remedy)));
    }

    fn parameter(&mut self, edge: usize, at: usize, toward: u64) {
        let from = self.plan.edges[edge].params[at];
        self.nearest(from, toward, &|to| Remedy::Parameter { edge, at, from, to });
    }

    fn mends(&self, remedy: &Remedy) -> bool {
        mends(&remedy.apply(self.plan), self.before, self.problem)
    }

    /// The value nearest to `from`, on the way to `toward`, with which the plan holds.
    fn nearest(&mut self, from: u64, toward: u64, remedy: &dyn Fn(u64) -> Remedy) {
        let holds = |to| self.mends(&remedy(to));
        let guess = self.guesses.iter().find_map(|guess| match *guess {
            Remedy::Parameter { to, .. } if *guess == remedy(to) => Some(to),
            _ => None,
        });
        let less = |to: u64| if to > from { to - 1 } else { to + 1 };
        if let Some(guess) = guess.filter(|guess| holds(*guess) && !holds(less(*guess))) {
            return self.found.push(remedy(guess));
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
        self.found.push(remedy(good));
    }
}
