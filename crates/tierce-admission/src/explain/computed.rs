//! Changes that mend a plan, as far as they can be said without a search: for sums that are too large, and the budgets from which
//! a need would follow.

use super::remedies::{Broken, Remedy};
use crate::laws::reservation::servers;
use crate::share::{self, ratio, Share};
use crate::verdict::{Admission, NodeVerdict};
use tierce_guarantee::{weakest, whole, Free, Guarantee, Parameter, Wanted};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Child, Edge, Plan, Shape};

/// Replicas of a node that are looked at for a child that does not fit.
const REPLICAS_MAX: usize = 64;

/// None where nothing can be computed.
pub(super) fn computed(plan: &Plan, shape: &Shape, admission: &Admission, broken: &Broken) -> Vec<Remedy> {
    let Some(edge) = broken.edge else { return Vec::new() };
    let about = &plan.edges[edge];
    let policy = policies::by_number(plan.nodes[about.parent].policy);
    let budgets = policy.and_then(|policy| Some((policy, policies::budget_and_period(policy)?)));
    let Some((policy, (budget, period))) = budgets else { return Vec::new() };
    let budget = Budget { plan, shape, admission, edge, about, policy, budget, period };
    match (broken.rule, &broken.need, &broken.excess.share) {
        (
            "budgets_must_fit_the_cpu" | "budgets_must_fit_the_cap" | "budgets_must_fit_the_supply",
            _,
            Some(excess),
        ) => budget.less_by(excess),
        (_, Some(need), _) if admission.nodes[about.parent].failures.is_empty() => {
            Guarantee::parse(need).map_or_else(|_| Vec::new(), |goal| budget.enough_for(&goal))
        }
        _ => Vec::new(),
    }
}

/// What is below an edge has no other parent, and nothing ties it to its CPU.
pub(super) fn moves_alone(plan: &Plan, shape: &Shape, edge: usize) -> bool {
    match plan.edges[edge].child {
        Child::Node(node) => shape.parents[node].len() == 1 && plan.nodes[node].replica.is_none(),
        Child::Task(_) if plan.edges[edge].spread => false, // it goes where it is served by itself
        Child::Task(task) => shape.task_parents[task].len() == 1 && plan.tasks[task].affinity.is_none(),
        Child::Set(_) => false,
    }
}

/// An edge with a budget in each period.
struct Budget<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    admission: &'a Admission,
    edge: usize,
    about: &'a Edge,
    policy: &'static PolicyRecord,
    /// Which of its parameters.
    budget: usize,
    /// Which of its parameters.
    period: usize,
}

impl Budget<'_> {
    fn budget_ns(&self) -> u64 {
        self.about.params[self.budget]
    }

    fn period_ns(&self) -> u64 {
        self.about.params[self.period]
    }

    fn share(&self) -> Share {
        ratio(self.budget_ns(), self.period_ns().max(1))
    }

    /// What a node, its parent or a replica of that, could give to others.
    fn room(&self, node: &NodeVerdict) -> Share {
        let cap = servers::cap(self.plan, self.about.parent).unwrap_or_else(share::one);
        let most = node.available.clone().unwrap_or_else(share::one).min(share::one()).min(cap);
        most - node.asked.clone().unwrap_or_else(share::zero)
    }

    /// A parameter with another value, if it may have that.
    fn with(&self, at: usize, to: Option<u64>) -> Option<Remedy> {
        let (from, param) = (self.about.params[at], &self.policy.edge_params[at]);
        let to = to.filter(|to| *to != from && (param.least..=param.most).contains(to))?;
        Some(Remedy::Parameter { edge: self.edge, at, from, to })
    }

    /// A smaller budget, a longer period, or another CPU.
    fn less_by(&self, excess: &Share) -> Vec<Remedy> {
        let mut found = Vec::new();
        let left = self.share() - excess;
        if left > share::zero() {
            let less = (&left * whole(self.period_ns())).floor().to_integer();
            found.extend(self.with(self.budget, u64::try_from(less).ok()));
            let longer = (whole(self.budget_ns()) / &left).ceil().to_integer();
            found.extend(self.with(self.period, u64::try_from(longer).ok()));
        }
        found.extend(self.elsewhere());
        found
    }

    /// A replica of the parent that has room.
    fn elsewhere(&self) -> Option<Remedy> {
        let parent = &self.plan.nodes[self.about.parent];
        if parent.replica.is_none() || !moves_alone(self.plan, self.shape, self.edge) {
            return None;
        }
        let nodes = self.plan.nodes.iter().zip(&self.admission.nodes).enumerate();
        let others = nodes
            .filter(|(_, (node, _))| node.base == parent.base && node.replica != parent.replica)
            .take(REPLICAS_MAX);
        let mut fits = others
            .filter(|(_, (_, verdict))| verdict.failures.is_empty() && self.room(verdict) >= self.share());
        fits.next().map(|(to, _)| Remedy::Parent { edge: self.edge, to })
    }

    /// A larger budget or a shorter period, from which the goal follows.
    fn enough_for(&self, goal: &Guarantee) -> Vec<Remedy> {
        let given = self.admission.edges[self.edge].promises.first().map(|promise| &promise.guarantee);
        let Some(given) = given.filter(|given| given.kind().is_reservation()) else { return Vec::new() };
        let (budget_ns, period_ns) = (self.budget_ns(), self.period_ns());
        let larger = self.solved(given, goal, Parameter::Amount);
        let larger = larger.filter(|larger| *larger > budget_ns && *larger <= period_ns);
        let shorter = self.solved(given, goal, Parameter::Period).filter(|shorter| *shorter < period_ns);
        self.with(self.budget, larger).into_iter().chain(self.with(self.period, shorter)).collect()
    }

    /// The budget or the period with which the goal follows from what is given, if the parent has room for that.
    fn solved(&self, given: &Guarantee, goal: &Guarantee, open: Parameter) -> Option<u64> {
        let (budget_ns, period_ns) = (self.budget_ns(), self.period_ns());
        let lost =
            whole(budget_ns) - given.amount_and_period().map_or(whole(0), |(amount, _)| amount.clone());
        let wanted = Wanted {
            kind: given.kind(),
            values: (given.kind().parameters().iter().zip(given.values()))
                .map(|(parameter, value)| Some(value.clone()).filter(|_| *parameter != open))
                .collect(),
        };
        let number = weakest(&wanted, goal, &Free::default()).ok()?.source.get(open)?.clone();
        let number = if open == Parameter::Amount { (number + lost).ceil() } else { number.floor() };
        let number = u64::try_from(number.to_integer()).ok()?;
        let (budget_ns, period_ns) =
            if open == Parameter::Amount { (number, period_ns) } else { (budget_ns, number) };
        let more = ratio(budget_ns, period_ns.max(1)) - self.share();
        (more <= self.room(&self.admission.nodes[self.about.parent])).then_some(number)
    }
}
