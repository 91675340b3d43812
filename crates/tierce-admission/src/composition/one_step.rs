//! Can a plan in force still be enforced after one step ([`Step`])? What [`runnable::check`](super::runnable::check) finds of the whole
//! plan, from what the step can change.
//!
//! A step changes one edge below one node, or two. Of what `check` asks, three things can be others then:
//!
//! - how long the edge's budget may be waited for: that is of the edge alone;
//! - how much there is of everything: a step is only made where there is room;
//! - whether the default node is sure of a share. It is reached by one way on each CPU. On that way only nodes by priority give less when
//!   others ask for more, and others ask for more only below the step's nodes, which are all on one CPU or two.
//!
//! Example: `top` (by priority) has `rt` before the default node. A budget of 2 ms in 10 ms more below `rt`, which has 4/10, makes it ask
//! for 6/10 of the CPU; 4/10 are left for the default node.
//!
//! Where the way is another one, or numbers get too long, the whole plan is looked at; and so it is before anything is refused.

use super::runnable;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::{Child, Edge, Plan, Step};

/// What `check` would say of the plan after the step, which before can be enforced.
pub fn allows(plan: &Plan, step: &Step, cpus: u32) -> bool {
    surely(plan, step).is_some() || {
        let mut after = plan.clone();
        after.take(step.clone());
        runnable::check(&after, cpus).is_ok()
    }
}

/// `None`: it is not that simple.
fn surely(plan: &Plan, step: &Step) -> Option<()> {
    if let Some(edge) = step.edge() {
        let wait_ns = runnable::longest_wait_ns(plan, edge);
        if wait_ns.is_some_and(|wait_ns| wait_ns >= plan.run.watchdog_ns) {
            return None;
        }
    }
    if let Step::Gone { .. } = step {
        return Some(()); // less is asked for, and nothing was above the default node
    }
    for parent in step.parents(plan).into_iter().flatten() {
        the_default_node_keeps_a_share(plan, step, parent)?;
    }
    Some(())
}

/// The CPU that reaches a node, and the edges on the way there, the lowest first. `None`: there are several, or it moves.
fn way(plan: &Plan, node: usize) -> Option<(u32, Vec<usize>)> {
    let (mut at, mut edges) = (node, Vec::new());
    while plan.nodes[at].roots.is_empty() {
        let mut above = plan.edges.iter().enumerate().filter(|(_, edge)| edge.child == Child::Node(at));
        let (index, edge) = above.next()?;
        let is_plain = !edge.spread && !edge.when_spent && above.next().is_none();
        if !is_plain
            || edges.len() > policies::limits().depth as usize
            || plan.nodes[edge.parent].family.is_some()
        {
            return None;
        }
        edges.push(index);
        at = edge.parent;
    }
    match plan.nodes[at].roots[..] {
        [cpu] => Some((cpu, edges)),
        _ => None,
    }
}

/// The same of a node that may have several parents: each of its ways.
fn ways(plan: &Plan, node: usize) -> Option<Vec<(u32, Vec<usize>)>> {
    if !plan.nodes[node].roots.is_empty() {
        return Some(vec![way(plan, node)?]);
    }
    let above = plan.edges.iter().enumerate().filter(|(_, edge)| edge.child == Child::Node(node));
    let each = above.map(|(index, edge)| {
        let is_plain = !edge.spread && !edge.when_spent && plan.nodes[edge.parent].family.is_none();
        let (cpu, mut edges) = way(plan, edge.parent).filter(|_| is_plain)?;
        edges.insert(0, index);
        Some((cpu, edges))
    });
    each.collect()
}

fn the_default_node_keeps_a_share(plan: &Plan, step: &Step, changed: usize) -> Option<()> {
    let (cpu, above) = way(plan, changed)?;
    let default = plan.default_node?;
    let there = match plan.nodes[default].family {
        Some(_) => runnable::replica_on(plan, plan.nodes[default].family, cpu)?,
        None => default,
    };
    match &ways(plan, there)?[..] {
        [(its_cpu, _)] if *its_cpu != cpu => Some(()),
        [(_, down)] => this_way_keeps_a_share(plan, step, (changed, &above), (there, down), true),
        // One of them is enough, and it is not known which one it was before.
        several if several.iter().all(|(its_cpu, _)| *its_cpu == cpu) => {
            let mut each = several
                .iter()
                .map(|(_, down)| this_way_keeps_a_share(plan, step, (changed, &above), (there, down), false));
            each.find_map(|keeps| keeps)
        }
        _ => None,
    }
}

/// `had`: this way gave it a share before.
fn this_way_keeps_a_share(
    plan: &Plan,
    step: &Step,
    (changed, above): (usize, &[usize]),
    (there, down): (usize, &[usize]),
    had: bool,
) -> Option<()> {
    let (cpu, _) = way(plan, changed)?;
    let moved = step.edge().is_some_and(|edge| down.iter().any(|at| plan.edges[*at].child == edge.child));
    if moved {
        return None; // the step is on the way itself
    }
    // Where the step's way comes to that of the default node.
    let on_the_way = |node: usize| node == there || down.iter().any(|at| plan.edges[*at].parent == node);
    let meets = std::iter::once(changed)
        .chain(above.iter().map(|at| plan.edges[*at].parent))
        .find(|node| on_the_way(*node))?;
    if meets == there {
        return Some(());
    }
    let mut below = down.iter().rev().map(|at| &plan.edges[*at]).skip_while(|edge| edge.parent != meets);
    if had && !below.any(|edge| matches!(law(plan, edge.parent), Some(Law::Priority(_)) | None)) {
        return Some(());
    }
    let left = plan.machine.left.get(cpu as usize).is_none().then_some(Part::ONE)?;
    let rate =
        down.iter().rev().try_fold(left, |supply, at| passed_on(plan, step, &plan.edges[*at], supply))?;
    (rate.over > 0).then_some(())
}

/// How a node shares out what it has.
enum Law {
    /// By budgets, whatever it has.
    Budget,
    /// By weights.
    Weight(usize),
    /// What those of larger priority leave; equals wait for each other.
    Priority(usize),
}

fn policy(plan: &Plan, node: usize) -> Option<&'static PolicyRecord> {
    policies::by_number(plan.nodes[node].policy)
}

/// `None`: otherwise.
fn law(plan: &Plan, node: usize) -> Option<Law> {
    let policy = policy(plan, node)?;
    match policy.name {
        "reservation" => Some(Law::Budget),
        "fair" => policies::position(&policy.edge_params, "weight").map(Law::Weight),
        "fixed-priority" => policies::priority(policy).map(Law::Priority),
        _ => None,
    }
}

/// What comes through an edge of a node that has `supply`; nothing, if that is not more than nothing.
fn passed_on(plan: &Plan, step: &Step, edge: &Edge, supply: Part) -> Option<Part> {
    let rate = match law(plan, edge.parent)? {
        Law::Budget => budget(plan, edge)?,
        Law::Weight(at) => {
            let all =
                step.below(plan, edge.parent).try_fold(0u64, |sum, edge| sum.checked_add(edge.params[at]))?;
            supply.times(Part::new(edge.params[at].into(), all.max(1).into()))?
        }
        Law::Priority(at) => {
            let own = edge.params[at];
            let others = step
                .below(plan, edge.parent)
                .filter(|other| other.child != edge.child && other.params[at] >= own);
            let asked = others
                .map(|other| ask(plan, step, other.child, 0))
                .try_fold(Part::ZERO, |sum, ask| sum.plus(ask?))?;
            supply.minus(asked)?
        }
    };
    (rate.over > 0).then(|| rate.min(Part::ONE))
}

/// The most that something asks of its CPU.
fn ask(plan: &Plan, step: &Step, child: Child, level: u32) -> Option<Part> {
    let Child::Node(node) = child else { return Some(Part::ONE) };
    let is_new = node >= plan.nodes.len();
    if is_new {
        return Some(Part::ZERO); // nothing is below it yet
    }
    if plan.nodes[node].default {
        return Some(Part::ONE);
    }
    if level > policies::limits().depth || plan.nodes[node].family.is_some() {
        return None;
    }
    let by_budgets = policies::budget_and_period(policy(plan, node)?).is_some();
    if policies::position(&policy(plan, node)?.edge_params, "offset").is_some() {
        return None; // reserves bound what is asked for
    }
    let sum = step.below(plan, node).try_fold(Part::ZERO, |sum, edge| {
        if sum == Part::ONE {
            return Some(sum);
        }
        let ask = if by_budgets { budget(plan, edge) } else { ask(plan, step, edge.child, level + 1) };
        Some(sum.plus(ask?)?.min(Part::ONE))
    });
    sum
}

fn budget(plan: &Plan, edge: &Edge) -> Option<Part> {
    let (budget, period) = policies::budget_and_period(policy(plan, edge.parent)?)?;
    Some(Part::new(edge.params[budget].into(), edge.params[period].max(1).into()))
}

/// A part of a CPU; whatever would be longer than 128 bits is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    over: u128,
    under: u128,
}

impl Part {
    const ZERO: Part = Part { over: 0, under: 1 };
    const ONE: Part = Part { over: 1, under: 1 };

    fn new(over: u128, under: u128) -> Part {
        let common = greatest_common_divisor(over, under);
        Part { over: over / common, under: under / common }
    }

    fn plus(self, other: Part) -> Option<Part> {
        let common = greatest_common_divisor(self.under, other.under);
        let (mine, its) = (other.under / common, self.under / common);
        let over = self.over.checked_mul(mine)?.checked_add(other.over.checked_mul(its)?)?;
        Some(Part::new(over, self.under.checked_mul(mine)?))
    }

    /// Not below nothing.
    fn minus(self, other: Part) -> Option<Part> {
        let common = greatest_common_divisor(self.under, other.under);
        let (mine, its) = (other.under / common, self.under / common);
        let over = self.over.checked_mul(mine)?.saturating_sub(other.over.checked_mul(its)?);
        Some(Part::new(over, self.under.checked_mul(mine)?))
    }

    fn times(self, other: Part) -> Option<Part> {
        Some(Part::new(self.over.checked_mul(other.over)?, self.under.checked_mul(other.under)?))
    }

    fn min(self, other: Part) -> Part {
        match (self.over.checked_mul(other.under), other.over.checked_mul(self.under)) {
            (Some(mine), Some(its)) if mine <= its => self,
            _ => other,
        }
    }
}

/// Of a number and one that is not 0; most numbers of plans fit 64 bits, where this is much faster.
fn greatest_common_divisor(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        if let (Ok(mut small), Ok(mut other)) = (u64::try_from(a), u64::try_from(b)) {
            while other != 0 {
                (small, other) = (other, small % other);
            }
            return u128::from(small).max(1);
        }
        (a, b) = (b, a % b);
    }
    a.max(1)
}
