//! `cpu = "any"`: which replica of a `per_cpu` node each task, member of a set or node goes to.
//!
//! A task is placed where the law of the node above still holds with it: the test that `tierce check` makes of that node, budgets
//! with a fixed CPU included. Larger ones come first, and each goes to the CPU of which least is used (worst fit by decreasing
//! utilisation): so every CPU keeps room for what is not reserved, and for what is reserved later. If one then fits nowhere, the
//! fullest CPU where it fits is tried first instead (best fit), which leaves larger gaps. Neither finds every placement there is:
//! bin packing is hard, and a plan may name CPUs itself.
//!
//! Example: 60 %, 50 %, 40 % and 30 % on two CPUs. Worst fit: 60 % to CPU 0, 50 % and 40 % to CPU 1, 30 % to CPU 0.
//!
//! What was placed before stays on its CPU if it fits there. It moves only if otherwise not all would fit.
//!
//! What is "least used" depends on the policy above: sums of budget/period, of shares, of weights, or else of work/period of the
//! loads, where a task without a bound counts as a whole CPU. Only budgets, shares and deadlines can be refused.

use crate::composition::admission::law;
use crate::composition::long_run_rates::{Rates, Trust};
use crate::demand::budget_locks::BudgetLocks;
use crate::demand::jobs::{job, BudgetParams};
use crate::demand::overheads::Overheads;
use crate::laws::reservation::servers;
use crate::laws::uniform;
use crate::share::{self, percent, percent_given, Share};
use crate::verdict::NodeVerdict;
use std::collections::{BTreeMap, HashMap};
use tierce_analysis::partition::{self, by_utilisation, Fit, Start, Stuck};
use tierce_analysis::{Supply, Task};
use tierce_plan::policies::reservation::ServerRules;
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::show_time;
use tierce_plan::Fault;
use tierce_plan::{cpus, Shape};
use tierce_plan::{Child, Edge, Placed, Plan, Standing, Unit, PARAMS};

/// CPUs of which a message says what is left.
const LEFT_MAX: usize = 8;

/// A CPU for each of the units of a plan, whose edges are in it as if each were on its lowest CPU; or those that fit nowhere.
/// `standing`: what is there before.
pub fn place(mut plan: Plan, units: &[Unit], standing: &Standing) -> Result<Placed, Vec<Fault>> {
    let (before, staying, threads) = standing.in_plan(&plan);
    plan.edges.extend(threads);
    let plan = &plan;
    let stays = |unit: &Unit| {
        let cpu = staying.get(&unit.name).filter(|cpu| unit.cpus.contains(cpu));
        Unit { cpus: cpu.map_or_else(|| unit.cpus.clone(), |cpu| vec![*cpu]), ..unit.clone() }
    };
    let units: &[Unit] = &units.iter().map(stays).collect::<Vec<_>>();
    let shape = Shape::new(plan);
    let overheads = Overheads::new(plan, &shape);
    let mut placing = Placing::new(plan, (&shape, &overheads), units);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for unit in 0..units.len() {
        groups.entry(placing.family(placing.main(unit))).or_default().push(unit);
    }
    let mut faults = Vec::new();
    for group in groups.into_values() {
        faults.extend(placing.group(&group, &before));
    }
    match faults.is_empty() {
        true => Ok(placing.placed),
        false => Err(faults),
    }
}

struct Placing<'p> {
    plan: &'p Plan,
    shape: &'p Shape,
    overheads: &'p Overheads<'p>,
    rates: Rates,
    units: &'p [Unit],
    /// Of each unit: its edges with `cpu = "any"`, indices into [`Plan::edges`].
    edges: Vec<Vec<usize>>,
    /// Replicas by name and CPU.
    replicas: HashMap<(&'p str, u32), usize>,
    /// Below each node: edges that stay where they are, and those that have been placed.
    settled: Vec<Vec<usize>>,
    placed: Placed,
}

impl<'p> Placing<'p> {
    fn new(plan: &'p Plan, (shape, overheads): (&'p Shape, &'p Overheads<'p>), units: &'p [Unit]) -> Self {
        let fixed = |edge: &usize| !plan.edges[*edge].placed;
        let settled =
            shape.children.iter().map(|edges| edges.iter().copied().filter(fixed).collect()).collect();
        let unit_of: HashMap<Child, usize> =
            units.iter().enumerate().map(|(at, unit)| (unit.child, at)).collect();
        let mut edges = vec![Vec::new(); units.len()];
        for (index, edge) in plan.edges.iter().enumerate().filter(|(_, edge)| edge.placed) {
            edges[unit_of[&edge.child]].push(index);
        }
        let nodes = plan.nodes.iter().enumerate();
        let replicas =
            nodes.filter_map(|(index, node)| Some(((node.base.as_str(), node.replica?), index))).collect();
        Self {
            plan,
            shape,
            overheads,
            rates: Rates::new(plan, shape, Trust::Loads),
            units,
            edges,
            replicas,
            settled,
            placed: Placed::new(),
        }
    }

    /// The edge that says how much a unit asks for: the first of its edges that can be refused.
    fn main(&self, unit: usize) -> usize {
        let edges = &self.edges[unit];
        let bounded = |edge: &&usize| {
            let policy = self.policy(self.plan.edges[**edge].parent);
            policy
                .is_some_and(|policy| BudgetParams::of(policy).is_some() || policies::share(policy).is_some())
        };
        *edges.iter().find(bounded).unwrap_or(&edges[0])
    }

    /// The first replica of the parent of an edge.
    fn family(&self, edge: usize) -> usize {
        let base = &self.plan.nodes[self.plan.edges[edge].parent].base;
        self.plan.nodes.iter().position(|node| node.base == *base).unwrap_or(0)
    }

    fn policy(&self, node: usize) -> Option<&'static PolicyRecord> {
        policies::by_number(self.plan.nodes[node].policy)
    }

    /// The replica on that CPU of the parent of an edge.
    fn replica(&self, edge: usize, cpu: u32) -> Option<usize> {
        let base = self.plan.nodes[self.plan.edges[edge].parent].base.as_str();
        self.replicas.get(&(base, cpu)).copied()
    }

    /// Place the units that ask the same node; or say for which of them there is no room.
    fn group(&mut self, group: &[usize], before: &Placed) -> Option<Fault> {
        let mut all: Vec<u32> = group.iter().flat_map(|unit| self.units[*unit].cpus.clone()).collect();
        all.sort_unstable();
        all.dedup();
        let tasks: Vec<_> = group.iter().map(|unit| self.measure(self.main(*unit))).collect();
        let main = self.main(group[0]);
        let load = |cpu: &u32| {
            let there = self.replica(main, *cpu).map_or(&[][..], |node| &self.settled[node]);
            there.iter().map(|edge| partition::load(&self.measure(*edge))).sum()
        };
        let preferred = group.iter().map(|unit| {
            let cpu = before.get(&self.units[*unit].name)?;
            all.iter().position(|other| other == cpu)
        });
        let start = Start { load: all.iter().map(load).collect(), preferred: preferred.collect() };
        let order = by_utilisation(&tasks);
        let (stay, new): (Vec<_>, Vec<_>) = order.iter().partition(|task| start.preferred[**task].is_some());
        let stay_first = [stay, new].concat();
        let fits = |cpu: usize, members: &[usize]| {
            let members: Vec<_> = members.iter().map(|member| group[*member]).collect();
            self.holds(&members, all[cpu])
        };
        // Said is what has no room as long as what is there stays.
        let mut stuck = None;
        for order in [&stay_first, &order] {
            let worst = partition::place(&tasks, order, Fit::Worst, start.clone(), fits);
            match worst.or_else(|_| partition::place(&tasks, order, Fit::Best, start.clone(), fits)) {
                Ok(cpu_of) => {
                    group.iter().zip(cpu_of).for_each(|(unit, cpu)| self.settle(*unit, all[cpu]));
                    return None;
                }
                Err(found) => drop(stuck.get_or_insert(found)),
            }
        }
        let Stuck { task, members } = stuck?;
        let there = |(cpu, members): (&u32, &Vec<usize>)| {
            (*cpu, members.iter().map(|member| group[*member]).collect::<Vec<_>>())
        };
        let there: Vec<_> = all.iter().zip(&members).map(there).collect();
        Some(self.no_room(group[task], &there))
    }

    fn settle(&mut self, unit: usize, cpu: u32) {
        self.placed.insert(self.units[unit].name.clone(), cpu);
        for edge in self.edges[unit].clone() {
            if let Some(node) = self.replica(edge, cpu) {
                self.settled[node].push(edge);
                self.settled[node].sort_unstable();
            }
        }
    }

    /// How much of a CPU the child of an edge asks for, compared with its siblings.
    fn measure(&self, edge: usize) -> Task {
        let edge = &self.plan.edges[edge];
        if let Some(asked) = asked_by(self.plan, edge) {
            return asked;
        }
        let load = match edge.child {
            Child::Task(task) => self.plan.tasks[task].load.as_ref(),
            Child::Node(_) | Child::Set(_) => None,
        };
        let job = load.and_then(|load| job(load, 0));
        job.map_or(Task::new(1, 1), |job| Task::new(job.work_ns, job.period_ns))
    }

    /// Whether these units may be on that CPU, and the laws of the nodes above hold there with them.
    fn holds(&self, members: &[usize], cpu: u32) -> bool {
        let mut added: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for unit in members {
            if !self.units[*unit].cpus.contains(&cpu) {
                return false;
            }
            for edge in &self.edges[*unit] {
                added.entry(self.replica(*edge, cpu).unwrap_or(usize::MAX)).or_default().push(*edge);
            }
        }
        added.iter().all(|(node, edges)| self.refusal(*node, &self.children(*node, edges)).is_none())
    }

    /// The edges below a node if these are, too.
    fn children(&self, node: usize, more: &[usize]) -> Vec<(usize, &Edge)> {
        let mut all: Vec<_> = self.settled.get(node).into_iter().flatten().chain(more).copied().collect();
        all.sort_unstable();
        all.into_iter().map(|edge| (edge, &self.plan.edges[edge])).collect()
    }

    fn verdict(&self, node: usize, children: &[(usize, &Edge)]) -> NodeVerdict {
        let mut verdict = NodeVerdict::new(self.rates.node(self.plan, self.shape, node));
        if let Some(policy) = self.policy(node) {
            law(self.plan, policy, children, (node, self.shape, self.overheads), &mut verdict);
        }
        verdict
    }

    /// Why the law of a node does not hold with these edges. Budgets that are served by priority have to be in time, too, as far as a
    /// whole CPU goes.
    fn refusal(&self, node: usize, children: &[(usize, &Edge)]) -> Option<String> {
        if let Some(failure) = self.verdict(node, children).failures.first() {
            return Some(failure.message.trim_end_matches('.').to_string());
        }
        let way = ServerRules::of(self.plan, node);
        let (at, priority) = self.policy(node).and_then(BudgetParams::of).zip(way.priority)?;
        let edges: Vec<_> = children.iter().map(|(index, _)| *index).collect();
        let blocking_ns = self.overheads.switch_ns(node).saturating_mul(edges.len() as u64 + 1);
        let demand = |(_, edge): &(usize, &Edge)| Task { blocking_ns, ..at.demand(edge) };
        let budgets: Vec<_> = children.iter().map(demand).collect();
        let above = (&edges[..], priority, way);
        // Nobody moves to a node whose budgets know of locks.
        let locks = vec![BudgetLocks::default(); budgets.len()];
        servers::by_priority(self.plan, self.shape, above, (&budgets, &locks), &Supply::WHOLE).err()
    }

    // ---- what there is no room for ---------------------------------------------------------------------------------

    /// A unit that fits on no CPU beside these others.
    fn no_room(&self, unit: usize, there: &[(u32, Vec<usize>)]) -> Fault {
        let Unit { name, cpus: may, .. } = &self.units[unit];
        let main = self.main(unit);
        let edge = &self.plan.edges[main];
        let parent = &self.plan.nodes[edge.parent].base;
        let asked = self.measure(main);
        let asked = share::ratio(asked.work_ns, asked.period_ns);
        let on = there.iter().filter(|(cpu, _)| may.contains(cpu));
        let mut left: Vec<(Share, u32)> =
            on.filter_map(|(cpu, others)| Some((self.left(main, *cpu, others)?, *cpu))).collect();
        left.sort_by(|a, b| b.0.cmp(&a.0));
        let mut message = format!("no CPU has room for `{name}` below `{parent}`");
        // Where the sum would fit it is something else.
        let other = left.first().filter(|(left, _)| *left >= asked).and_then(|(_, cpu)| {
            let (_, others) = there.iter().find(|(other, _)| other == cpu)?;
            let (node, children) = self.with(main, unit, *cpu, others)?;
            self.refusal(node, &children)
        });
        let in_time = other.is_none();
        other.into_iter().for_each(|why| message += &format!(" ({why})"));
        let alike = left.chunk_by(|a, b| a.0 == b.0).take(LEFT_MAX);
        let words = alike.map(|equals| {
            let here = equals.iter().map(|(_, cpu)| *cpu).collect();
            format!("{}: {} left", cpus(here), percent_given(&equals[0].0))
        });
        let fault = Fault::new("cpu_must_have_room", edge.spot, message).value(percent(&asked));
        let fault = fault.bound(words.collect::<Vec<_>>().join("; "));
        let most = left.first().filter(|(left, _)| in_time && *left > share::zero());
        match (self.largest(unit, there), most) {
            (Some((cpu, budget_ns)), _) => fault.hint(format!(
                "budget = \"{}\" would fit on CPU {cpu}; or a longer period, or less for others",
                show_time(budget_ns)
            )),
            (None, Some((left, cpu))) => {
                fault.hint(format!("{} would fit on CPU {cpu}; or less for others", percent_given(left)))
            }
            (None, None) => fault.hint("less for others, or more CPUs"),
        }
    }

    /// What the law of the parent of an edge leaves on that CPU beside these units.
    fn left(&self, edge: usize, cpu: u32, others: &[usize]) -> Option<Share> {
        let node = self.replica(edge, cpu)?;
        let above = |edge: &usize| self.replica(*edge, cpu) == Some(node);
        let more: Vec<_> = others.iter().flat_map(|unit| &self.edges[*unit]).copied().filter(above).collect();
        let verdict = self.verdict(node, &self.children(node, &more));
        let most =
            servers::cap(self.plan, node).into_iter().chain(verdict.available).fold(share::one(), Share::min);
        Some((most - verdict.asked.unwrap_or_else(share::zero)).max(share::zero()))
    }

    /// The parent of the edge on that CPU, and what is below it with that unit and these others.
    fn with(
        &self,
        edge: usize,
        unit: usize,
        cpu: u32,
        others: &[usize],
    ) -> Option<(usize, Vec<(usize, &Edge)>)> {
        let node = self.replica(edge, cpu).filter(|_| self.units[unit].cpus.contains(&cpu))?;
        let all = others.iter().chain([&unit]).flat_map(|unit| &self.edges[*unit]).copied();
        let more: Vec<_> = all.filter(|edge| self.replica(*edge, cpu) == Some(node)).collect();
        Some((node, self.children(node, &more)))
    }

    /// The CPU on which the unit could have the largest budget, and that budget; if there is one.
    fn largest(&self, unit: usize, there: &[(u32, Vec<usize>)]) -> Option<(u32, u64)> {
        let main = self.main(unit);
        let at = self.policy(self.plan.edges[main].parent).and_then(BudgetParams::of)?;
        let of = |(cpu, others): &(u32, Vec<usize>)| {
            let (node, children) = self.with(main, unit, *cpu, others)?;
            let fits = |budget_ns: u64| {
                let mut own = self.plan.edges[main].clone();
                at.set_budget(&mut own, budget_ns);
                let child = |(edge, about)| if edge == main { (edge, &own) } else { (edge, about) };
                let children: Vec<_> = children.iter().copied().map(child).collect();
                self.refusal(node, &children).is_none()
            };
            let (mut good, mut bad) = (at.least_ns, at.budget(&self.plan.edges[main]));
            if !fits(good) {
                return None;
            }
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                *(if fits(middle) { &mut good } else { &mut bad }) = middle;
            }
            Some((*cpu, good))
        };
        there.iter().filter_map(of).max_by_key(|(cpu, budget_ns)| (*budget_ns, std::cmp::Reverse(*cpu)))
    }
}

/// How much of a CPU, or of the weights, the parameters of an edge ask for; `None`: they do not say.
fn asked_by(plan: &Plan, edge: &Edge) -> Option<Task> {
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    let param = |name| policies::position(&policy.edge_params, name).map(|at| edge.params[at]);
    if let Some(at) = BudgetParams::of(policy) {
        return Some(Task::new(at.budget(edge), at.period(edge)));
    }
    if let Some(millionths) = uniform::millionths(plan, edge) {
        return Some(Task::new(millionths, 1_000_000));
    }
    param("weight").or(param("importance")).map(|weight| Task::new(weight, 1))
}

/// The edges that a new member of a set may have: one way, or with `cpu = "any"` one for each CPU, beginning with that of which
/// least is used. `below`: parameters of all edges below a node, an index into [`Plan::nodes`].
pub fn ways<I>(plan: &Plan, set: usize, below: impl Fn(usize) -> I) -> Vec<&[Edge]>
where
    I: Iterator<Item = [u64; PARAMS]>,
{
    let mut ways: Vec<_> = plan.sets[set].ways().collect();
    if ways.len() < 2 {
        return ways;
    }
    let used = |way: &&[Edge]| -> u128 {
        let placed = || way.iter().filter(|edge| edge.placed);
        let Some(edge) = placed().find(|edge| asked_by(plan, edge).is_some()).or(placed().next()) else {
            return 0;
        };
        let asked = |params| asked_by(plan, &Edge { params, ..edge.clone() }).unwrap_or(Task::new(1, 1));
        below(edge.parent).map(asked).map(|task| partition::load(&task)).sum()
    };
    ways.sort_by_cached_key(used);
    ways
}

/// What has `cpu = "any"`, a line for each CPU where something is: "placed on CPU 0: video, worker[0..2]". `None`: nothing has.
pub fn placement(plan: &Plan) -> Option<String> {
    // By CPU and name, the indices of members.
    let mut on: BTreeMap<u32, Vec<(&str, Vec<u32>)>> = BTreeMap::new();
    for (name, cpu) in plan.placed() {
        let (name, index) = match name.trim_end_matches(']').split_once('[') {
            Some((set, index)) => (set, index.parse().ok()),
            None => (name, None),
        };
        let there = on.entry(cpu).or_default();
        match there.last_mut().filter(|(last, _)| *last == name) {
            Some((_, members)) => members.extend(index),
            None => there.push((name, index.into_iter().collect())),
        }
    }
    let word = |(name, members): &(&str, Vec<u32>)| match members.is_empty() {
        true => name.to_string(),
        false => format!("{name}[{}]", ranges(members)),
    };
    let words = |parts: &[(&str, Vec<u32>)]| parts.iter().map(word).collect::<Vec<_>>().join(", ");
    let line = |(cpu, parts): (&u32, &Vec<_>)| format!("placed on CPU {cpu}: {}\n", words(parts));
    let matched = plan.entries.iter().filter_map(|entry| match entry.target {
        Child::Set(set) => Some(&plan.sets[set]),
        _ => None,
    });
    let live = matched.filter(|set| set.under.iter().any(|edge| edge.placed));
    let live: Vec<_> = live.map(|set| set.name.as_str()).collect();
    let mut text: String = on.iter().map(line).collect();
    if !live.is_empty() {
        text += &format!("placed when its threads come: {}\n", live.join(", "));
    }
    Some(text).filter(|text| !text.is_empty())
}

/// "0..3, 5".
pub fn ranges(cpus: &[u32]) -> String {
    let runs = cpus.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}..{last}"),
        _ => run[0].to_string(),
    });
    runs.collect::<Vec<_>>().join(", ")
}
