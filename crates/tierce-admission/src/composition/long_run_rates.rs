//! Long-run rates: what everything gets when all others ask for as much as they may. It is a
//! necessary condition below the root, and the whole truth at a root.

use crate::bounds::adjacent_reserves;
use crate::bounds::max_min_shares::{self, Claims};
use crate::demand::jobs::{asks_whatever_it_gets, endless, BudgetParams};
use crate::demand::locks::Locks;
use crate::demand::uncounted_threads::{live_sets, of_crowd};
use crate::laws;
use crate::laws::policy::Rated;
use crate::laws::reservation::servers;
use crate::share::{self, ratio, Share};
use std::collections::BTreeMap;
use tierce_plan::policies;
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::policies::slots::Reserve;
use tierce_plan::policies::PolicyRecord;
use tierce_plan::Cpus;
use tierce_plan::Shape;
use tierce_plan::{Child, Plan};

/// Whose word is taken for how much a task asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// The loads of the plan.
    Loads,
    /// Nobody's: a live thread may ask for everything.
    Nobody,
    /// Nobody's, and any number of threads match each set that has a `match`.
    NobodyAnyNumber,
}

/// Long-run rates.
pub struct Rates {
    /// Through each edge; on the one CPU of its parent, or on all together when the parent is shared.
    pub edge: Vec<Option<Share>>,
    /// Of nodes, from all their CPUs together.
    node: Vec<Option<Share>>,
    asks: Asks,
}

impl Rates {
    /// From the CPUs down.
    pub fn new(plan: &Plan, shape: &Shape, trust: Trust) -> Self {
        let asks = Asks::new(plan, shape, trust);
        let (edge, node) = (vec![None; plan.edges.len()], vec![None; plan.nodes.len()]);
        let mut rates = Self { edge, node, asks };
        for level in levels(plan, shape) {
            for node in &level {
                rates.node[*node] = rates.node(plan, shape, *node);
            }
            for node in &level {
                match plan.nodes[*node].family {
                    None => rates.pass_on(plan, shape, *node),
                    Some(first) if first == *node => rates.spread(plan, shape, first),
                    Some(_) => {}
                }
            }
        }
        rates
    }

    fn pass_on(&mut self, plan: &Plan, shape: &Shape, node: usize) {
        let Some(supply) = self.node[node].clone() else { return };
        self.asks.pass_on(plan, node, &shape.children[node], &supply, &mut self.edge);
        // An edge is one virtual processor, however many CPUs its parent has.
        for edge in &shape.children[node] {
            let rate = self.edge[*edge].take();
            self.edge[*edge] = rate.map(|rate| rate.min(share::one()));
        }
    }

    /// Of a spread node, by the index of its first replica: what stays on a CPU gets its rate there, with all that may come; what
    /// moves gets what the replicas have together. By weights both are shared out as if all moved at once to where they
    /// get most.
    fn spread(&mut self, plan: &Plan, shape: &Shape, first: usize) {
        let replicas =
            || (first..plan.nodes.len()).take_while(|node| plan.nodes[*node].family == Some(first));
        let mut moving: Vec<usize> = replicas().flat_map(|node| &shape.children[node]).copied().collect();
        moving.retain(|edge| shape.moves(plan, *edge));
        moving.sort_unstable();
        moving.dedup();
        let supplies: Option<Vec<_>> =
            replicas().map(|node| Some((plan.nodes[node].replica?, self.node[node].clone()?))).collect();
        replicas().for_each(|node| self.pass_on(plan, shape, node));
        moving.iter().for_each(|edge| self.edge[*edge] = None);
        let Some(supplies) = supplies else { return };
        let Some(policy) = policies::by_number(plan.nodes[first].policy) else { return };
        let laws = laws::of(policy);
        let weight = |edge: usize| laws.weight(plan, &plan.edges[edge]);
        let mut all: Vec<usize> = replicas().flat_map(|node| &shape.children[node]).copied().collect();
        all.sort_unstable();
        all.dedup();
        if all.iter().all(|edge| weight(*edge).is_some()) {
            let mut places: BTreeMap<usize, Cpus> = BTreeMap::new();
            for node in replicas() {
                let cpu = plan.nodes[node].replica.map_or(Cpus::NONE, Cpus::only);
                shape.children[node].iter().for_each(|edge| *places.entry(*edge).or_default() |= cpu);
            }
            let mut claims = Claims::new();
            for (edge, cpus) in places {
                let weight = weight(edge).unwrap_or(1);
                claims.entry((cpus, weight)).or_default().push(edge);
            }
            for (edge, rate) in max_min_shares::shares(&supplies, claims) {
                self.edge[edge] = rate;
            }
            return;
        }
        // By priority: what moves competes for all CPUs, with all that may be on any of them.
        let mut rates = vec![None; plan.edges.len()];
        let supply = supplies.iter().fold(share::zero(), |sum, (_, supply)| sum + supply);
        self.asks.pass_on(plan, first, &all, &supply, &mut rates);
        for edge in moving {
            self.edge[edge] = rates[edge].take().map(|rate| rate.min(share::one()));
        }
    }

    /// Of a node, as it was found on the way down.
    pub fn of_node(&self, plan: &Plan, shape: &Shape, node: usize) -> Option<Share> {
        self.node[node].clone().or_else(|| self.node(plan, shape, node))
    }

    /// Of a node: what its CPUs or parents give it together.
    pub fn node(&self, plan: &Plan, shape: &Shape, node: usize) -> Option<Share> {
        let about = &plan.nodes[node];
        let most = if about.concurrency > 0 { about.concurrency } else { shape.reach[node].count() };
        if !about.roots.is_empty() {
            let left = |cpu: &u32| match plan.machine.left.get(*cpu as usize) {
                Some(left) => left.guarantee.share(),
                None => share::one(),
            };
            let sum = about.roots.iter().map(left).fold(share::zero(), |sum, share| sum + share);
            return Some(sum.min(ratio(u64::from(most.max(1)), 1)));
        }
        self.total(plan, shape, &shape.parents[node], most)
    }

    /// A child of these edges gets no more than that in the long run while all others ask for as much as they may.
    pub fn are_limits(&self, plan: &Plan, shape: &Shape, above: &[usize]) -> bool {
        let [edge] = above else { return false };
        let node = plan.edges[*edge].parent;
        let about = &plan.nodes[node];
        let one_cpu = about.family.is_none() && !shape.shared(node) && !plan.edges[*edge].when_spent;
        let Some(policy) = policies::by_number(about.policy).filter(|_| one_cpu) else { return false };
        let supplied = match &about.roots[..] {
            [] => self.are_limits(plan, shape, &shape.parents[node]),
            [cpu] => plan.machine.left.get(*cpu as usize).is_none(),
            _ => false,
        };
        let Some(supply) = self.node[node].as_ref().filter(|_| supplied) else { return false };
        let rated = |rated: &Rated| laws::of(policy).is_limited_to_its_rate(rated, *edge);
        self.asks.rated(plan, policy, node, &shape.children[node], supply, rated)
    }

    /// The sum over several edges, of which at most `most` CPUs can serve at once; not known when none is. Edges from
    /// the same CPU add up: they are never served at the same time. Those from several CPUs add up only if they may
    /// be served at the same time.
    pub fn total(&self, plan: &Plan, shape: &Shape, above: &[usize], most: u32) -> Option<Share> {
        if let [only] = above {
            let rate = self.edge[*only].as_ref().filter(|_| !plan.edges[*only].when_spent)?;
            return Some(rate.clone().min(ratio(u64::from(most.max(1)), 1)));
        }
        if adjacent_reserves::together(plan, shape, above, most).is_some() {
            let rates = above.iter().map(|edge| self.edge[*edge].clone()).collect::<Option<Vec<_>>>()?;
            return rates.into_iter().reduce(|sum, rate| sum + rate);
        }
        let mut by_cpus: Vec<(Cpus, Share)> = Vec::new();
        for edge in above.iter().filter(|edge| !plan.edges[**edge].when_spent) {
            let Some(rate) = &self.edge[*edge] else { continue };
            let cpus = shape.reach[plan.edges[*edge].parent];
            match by_cpus.iter_mut().find(|(other, _)| *other == cpus) {
                Some((_, sum)) => *sum += rate,
                None => by_cpus.push((cpus, rate.clone())),
            }
        }
        by_cpus.sort_by(|a, b| b.1.cmp(&a.1));
        let most = most.max(1);
        by_cpus
            .into_iter()
            .map(|(_, rate)| rate)
            .take(most as usize)
            .reduce(|sum, rate| sum + rate)
            .map(|sum| sum.min(ratio(u64::from(most), 1)))
    }
}

/// Nodes by their distance from the CPUs, replicas of a spread node together.
fn levels(plan: &Plan, shape: &Shape) -> Vec<Vec<usize>> {
    let mut level = vec![0; plan.nodes.len()];
    let is_plain = plan.nodes.iter().all(|node| node.family.is_none()); // then one pass is enough: parents come first
    for _ in 0..=plan.nodes.len() {
        let before = level.clone();
        for node in &shape.order {
            let above = shape.parents[*node].iter().map(|edge| level[plan.edges[*edge].parent] + 1);
            level[*node] = above.max().unwrap_or(0).max(level[*node]);
            if let Some(first) = plan.nodes[*node].family {
                level[first] = level[first].max(level[*node]);
            }
        }
        for node in &shape.order {
            level[*node] = plan.nodes[*node].family.map_or(level[*node], |first| level[first]);
        }
        if is_plain || level == before {
            break;
        }
    }
    let mut levels = vec![Vec::new(); level.iter().max().map_or(0, |most| most + 1)];
    shape.order.iter().for_each(|node| levels[level[*node]].push(*node));
    levels
}

/// The most that each node and task may ask for in the long run, and whether it does when its jobs are the longest and come as often as they
/// may: of one that has several parents nobody knows where.
struct Asks {
    node: Vec<(Share, bool)>,
    task: Vec<(Share, bool)>,
    trust: Trust,
}

impl Asks {
    fn new(plan: &Plan, shape: &Shape, trust: Trust) -> Self {
        let locks = Locks::of(plan, shape);
        let task = |index: usize| {
            let (most, does) = match (&plan.tasks[index].load, trust) {
                (Some(load), Trust::Loads) => match locks.utilisation(plan, index) {
                    Some(share) => (share, asks_whatever_it_gets(load)),
                    None => (share::one(), endless(load)),
                },
                (None, Trust::Loads) => (share::zero(), true),
                (_, Trust::Nobody | Trust::NobodyAnyNumber) => (share::one(), true),
            };
            (most, does && shape.task_parents[index].len() <= 1)
        };
        let mut asks = Self {
            node: vec![(share::zero(), true); plan.nodes.len()],
            task: (0..plan.tasks.len()).map(task).collect(),
            trust,
        };
        for node in shape.order.iter().rev() {
            let most = ratio(u64::from(shape.reach[*node].count()), 1);
            let budget = policies::by_number(plan.nodes[*node].policy).and_then(BudgetParams::of);
            let edges = shape.children[*node].iter().map(|edge| &plan.edges[*edge]);
            let open = trust == Trust::NobodyAnyNumber && live_sets(plan, *node).next().is_some();
            let sum = match budget {
                // Budgets are admitted up to the cap; some are replenished at once.
                Some(_) if trust == Trust::NobodyAnyNumber && ServerRules::of(plan, *node).is_endless() => {
                    most.clone()
                }
                Some(_) if open => servers::cap(plan, *node).unwrap_or_else(|| most.clone()),
                None if open => most.clone(),
                Some(at) => share::sum(edges.map(|edge| (at.budget(edge), at.period(edge)))),
                // Who takes in threads that match nothing may have any number of them.
                None if plan.nodes[*node].default && trust != Trust::Loads => most.clone(),
                None => edges.fold(share::zero(), |sum, edge| {
                    let most = Reserve::of(plan, edge).filter(|reserve| !reserve.fills);
                    let ask = asks.child(edge.child);
                    share::add(
                        &sum,
                        &most.map_or(ask.clone(), |most| ask.min(ratio(most.length_ns, most.slot_ns))),
                    )
                }),
            };
            asks.node[*node] = (sum.min(most), asks.does(plan, shape, *node));
        }
        asks
    }

    /// What is below a node does ask for so much: its children do, and none is kept from it.
    fn does(&self, plan: &Plan, shape: &Shape, node: usize) -> bool {
        let Some(policy) = policies::by_number(plan.nodes[node].policy) else { return false };
        let budget = BudgetParams::of(policy).filter(|_| ServerRules::of(plan, node).is_usual());
        !shape.shared(node)
            && shape.parents[node].len() <= 1
            && shape.children[node].iter().map(|edge| &plan.edges[*edge]).all(|edge| {
                let does = self.of(edge.child).is_none_or(|(_, does)| *does);
                let rate = budget.as_ref().map(|at| ratio(at.budget(edge), at.period(edge)));
                let uses_up = rate.is_some_and(|rate| self.child(edge.child) >= rate);
                does && !edge.when_spent && (uses_up || laws::of(policy).conserves_work())
            })
    }

    /// `None`: of a set, whose threads may ask for everything, and do.
    fn of(&self, child: Child) -> Option<&(Share, bool)> {
        match child {
            Child::Node(node) => Some(&self.node[node]),
            Child::Task(task) => Some(&self.task[task]),
            Child::Set(_) => None,
        }
    }

    fn child(&self, child: Child) -> Share {
        self.of(child).map_or_else(share::one, |(ask, _)| ask.clone())
    }

    /// As the laws of the policy see the node.
    fn rated<T>(
        &self,
        plan: &Plan,
        policy: &'static PolicyRecord,
        node: usize,
        edges: &[usize],
        supply: &Share,
        find: impl FnOnce(&Rated) -> T,
    ) -> T {
        let ask = |edge: usize| self.child(plan.edges[edge].child);
        let asks = |edge: usize| self.of(plan.edges[edge].child).is_none_or(|(_, does)| *does);
        find(&Rated { plan, policy, node, edges, supply, ask: &ask, asks: &asks })
    }

    /// What a node, itself supplied with `supply`, is sure to pass on through each of its edges.
    fn pass_on(
        &self,
        plan: &Plan,
        node: usize,
        edges: &[usize],
        supply: &Share,
        rates: &mut [Option<Share>],
    ) {
        let Some(policy) = policies::by_number(plan.nodes[node].policy) else { return };
        self.rated(plan, policy, node, edges, supply, |rated| laws::of(policy).rates(rated, rates));
        if self.trust == Trust::NobodyAnyNumber && live_sets(plan, node).next().is_some() {
            let priority = policies::priority(policy);
            let largest = priority.and_then(|at| of_crowd(plan, node, edges, at));
            let after = |edge: usize| match (priority, largest) {
                (Some(at), Some(largest)) => plan.edges[edge].params[at] <= largest,
                _ => policies::by_deadline(policy),
            };
            edges.iter().filter(|edge| after(**edge)).for_each(|edge| rates[*edge] = Some(share::zero()));
        }
    }
}
