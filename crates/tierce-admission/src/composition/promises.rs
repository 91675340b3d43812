//! What every edge, node and task is promised, from the CPUs down (HLS 5.1.2): each node turns the guarantee that it
//! receives into those of its children, by the rules of its policy.
//!
//! A CPU gives ALL to its root; what each policy gives is in `laws/`.
//!
//! Where the machine has costs, what they take is left out of all promises (`overheads.rs`).
//!
//! A replica of a spread node is promised what leads to it on its CPU, as any node; all tasks that may come to it count as its
//! children. A task that moves between replicas is promised nothing.
//!
//! Several parents on one CPU are a join. Of what several CPUs reach little is promised yet: what is
//! directly below their common root, what has reserves on them that are never open at once, and what has a budget on each of them
//! (`several_budgets.rs`).

use crate::bounds::adjacent_reserves::{at_once, of_task, task_at_once, together};
use crate::composition::asked::Asked;
use crate::composition::interference::Interference;
use crate::composition::several_budgets::{self, Promised};
use crate::demand::overheads::Overheads;
use crate::laws;
use crate::laws::node::Node;
use crate::laws::several_cpus::on_several;
use crate::verdict::{Given, NodeVerdict, Origin, Promise, Proof, Shown, Step};
use tierce_guarantee::schedulers::{self, Joining};
use tierce_guarantee::{show, whole, Free, Guarantee, Kind, Parameter};
use tierce_plan::policies::{self, PolicyRecord};
use tierce_plan::Shape;
use tierce_plan::{Edge, Plan};

/// Promises of a plan; each list has at least one, the strongest first. Where nobody asks it may be empty.
#[derive(Clone, Debug)]
pub struct Promises {
    /// Through each edge.
    pub edges: Vec<Given>,
    /// To each node, from all its parents.
    pub nodes: Vec<Given>,
    /// To each task.
    pub tasks: Vec<Given>,
    /// Nodes whose budgets are not shown to arrive, and why.
    pub unfit: Vec<(usize, String)>,
}

impl Promises {
    /// From the CPUs down. Nodes whose law fails promise nothing.
    pub fn new(
        plan: &Plan,
        shape: &Shape,
        verdicts: &[NodeVerdict],
        overheads: &Overheads,
        asked: &Asked,
    ) -> Self {
        let none = Promise::nothing("no CPU leads to it");
        let mut promises = Self {
            edges: vec![none.clone(); plan.edges.len()],
            nodes: vec![none.clone(); plan.nodes.len()],
            tasks: vec![none; plan.tasks.len()],
            unfit: Vec::new(),
        };
        let taken = Interference::of(plan, shape);
        let unasked = |promises: &mut Given| *promises = Given::default();
        for index in &shape.order {
            let node = &plan.nodes[*index];
            if !asked.node(*index) {
                unasked(&mut promises.nodes[*index]);
                shape.children[*index].iter().for_each(|edge| unasked(&mut promises.edges[*edge]));
                continue;
            }
            let found = if at_once(plan, shape, *index) {
                several_budgets::to_node(promises.known(), plan, shape, *index, overheads)
            } else if let Some(together) = together(plan, shape, &shape.parents[*index], node.concurrency) {
                promises.apart(&shape.parents[*index], together, overheads)
            } else if let Some(cpu) = node.roots.first() {
                let runs = format!("`{}` is what CPU {cpu} runs", node.name);
                let (promise, rule) = match plan.machine.left.get(*cpu as usize) {
                    None => (Promise::new(Guarantee::all(), runs), "root"),
                    Some(left) => {
                        let because = format!("{runs}; {}", left.because);
                        (Promise::new(left.guarantee.clone(), because), "what the machine leaves")
                    }
                };
                [promise.by(Origin::Cpu(*cpu), &[], rule, "")].into()
            } else {
                promises.joined(plan, &shape.parents[*index])
            };
            promises.nodes[*index] = found;
            promises.pass_on(plan, shape, *index, &verdicts[*index], (overheads, asked, &taken));
        }
        for task in 0..plan.tasks.len() {
            let above = &shape.task_parents[task];
            if above.iter().any(|edge| promises.edges[*edge].is_empty()) {
                unasked(&mut promises.tasks[task]);
                continue;
            }
            if let ([only], false) = (&above[..], asked.task(task)) {
                promises.tasks[task] = promises.edges[*only].clone();
                continue;
            }
            let found = if let Some(together) = of_task(plan, shape, task) {
                promises.apart(above, together, overheads)
            } else if above.iter().any(|edge| shape.moves(plan, *edge)) {
                moving(plan, &plan.edges[above[0]])
            } else if above.len() > 1 && task_at_once(plan, shape, task) {
                several_budgets::to_task(promises.known(), plan, shape, task, overheads)
            } else {
                promises.joined(plan, above)
            };
            promises.tasks[task] = found;
        }
        promises
    }

    /// To nodes and through edges; while they are found, only what is above the next node is there.
    pub fn known(&self) -> Promised<'_> {
        Promised { nodes: &self.nodes, edges: &self.edges }
    }

    /// What comes through several edges from one CPU.
    fn joined(&self, plan: &Plan, above: &[usize]) -> Given {
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
                let because = format!("{}; soft, because it has other parents", self.edges[*edge][0].because);
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
        found.into()
    }

    /// What comes through reserves on several CPUs that are never open at once.
    fn apart(&self, above: &[usize], (slot_ns, sum_ns): (u64, u64), overheads: &Overheads) -> Given {
        let each = || above.iter().map(|edge| &self.edges[*edge][0]);
        if let Some(missing) = each().find(|promise| promise.guarantee.kind() == Kind::Null) {
            return Promise::nothing(missing.because.clone());
        }
        if !overheads.is_none() {
            return Promise::nothing("what it costs to move from reserve to reserve is not known");
        }
        let Some(guarantee) = Guarantee::new(Kind::Rescs, vec![whole(sum_ns), whole(slot_ns)]) else {
            return Promise::nothing("its reserves are longer than the slot");
        };
        let because = "its reserves on several CPUs are never open at once";
        let from: Vec<_> = each().map(|promise| &promise.guarantee).collect();
        let origin = Origin::Edges(above.iter().map(|edge| (*edge, 0)).collect());
        let promise = Promise::new(guarantee, because);
        [promise.by(origin, &from, "reserves that lie apart", "RESCS Σlength slot")].into()
    }

    /// What comes through an edge.
    fn through(&self, edge: usize, at: usize) -> Promise {
        let Promise { guarantee, because, .. } = &self.edges[edge][at];
        let origin = Origin::Edges(vec![(edge, at)]);
        Promise { origin, ..Promise::new(guarantee.clone(), because.clone()) }
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
        (overheads, asked, taken): (&Overheads, &Asked, &Interference),
    ) {
        let Some(policy) = policies::by_number(plan.nodes[index].policy) else { return };
        let (name, edges) = (&plan.nodes[index].name, &shape.children[index]);
        let (received, quantum_ns) = (self.nodes[index].clone(), quantum(policy, &plan.nodes[index].params));
        let (asked, taken) = (|edge| asked.below(plan, edge), |edge| taken.through(edge));
        let node = Node {
            plan,
            shape,
            policy,
            index,
            edges,
            received: &received,
            overheads,
            quantum_ns,
            asked: &asked,
            taken: &taken,
            offsets: &[],
        };
        let given = if at_once(plan, shape, index) {
            let given = several_budgets::to_children(self.known(), plan, shape, index, overheads);
            let given = given.unwrap_or_else(|| on_several(plan, shape, index, policy, verdict, overheads));
            let missing = given.iter().find(|given| given[0].guarantee.kind() == Kind::Null);
            let missing = missing.filter(|_| verdict.failures.is_empty()); // else it is said already
            if let (Some(_), Some(missing)) = (policies::budget_and_period(policy), missing) {
                self.unfit.push((index, missing[0].because.to_string()));
            }
            given
        } else {
            match laws::of(policy).supply(&node, verdict) {
                Ok(given) => given,
                Err(why) => {
                    let because = format!("`{name}`: {why}");
                    self.unfit.push((index, why));
                    vec![Promise::nothing(because); edges.len()]
                }
            }
        };
        for (edge, given) in edges.iter().zip(given) {
            let given = if plan.edges[*edge].when_spent {
                Promise::nothing("this edge is there only while others are spent")
            } else if shape.moves(plan, *edge) {
                moving(plan, &plan.edges[*edge])
            } else {
                given
            };
            self.edges[*edge] = given;
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
        let adds_up = above.len() > 1
            && promises[0].guarantee.kind() != Kind::Null
            && !several_budgets::is_of_several(&promises[0]);
        if let (Some(window), true) = (goal.get(Parameter::Period), adds_up) {
            let parents: Vec<_> = above.iter().map(|edge| self.edges[*edge][0].guarantee.clone()).collect();
            let together = schedulers::joined_supply(&parents, window);
            if let Some((together, Ok(derivation))) =
                together.map(|together| (together.clone(), show(&together, &goal, &Free::default())))
            {
                let words = format!("its {} parents supply it together, whatever their phases", above.len());
                let rule = "sum of supply functions";
                let (formula, because) = ("RESCS Σ sbf(y) y".into(), words.as_str().into());
                let sum = Step { from: parents, to: together, rule, formula, because };
                let steps = [sum].into_iter().chain(derivation.steps.into_iter().map(Step::from)).collect();
                let origin = Origin::Edges(above.iter().map(|edge| (*edge, 0)).collect());
                return Ok(Shown { words, origin, steps });
            }
        }
        if promises.iter().all(|promise| promise.guarantee.kind() == Kind::Null) {
            return Err(format!("it has no guarantee: {}", promises[0].because));
        }
        Err(first.map_or("it has no guarantee".into(), |refusal| refusal.to_string()))
    }
}

fn rule(name: &str) -> String {
    if name == "trivial" {
        "its definition".into()
    } else {
        name.to_string()
    }
}

/// To a task that moves between the replicas of a spread node.
fn moving(plan: &Plan, edge: &Edge) -> Given {
    let (name, parent) = (plan.child_name(edge.child), &plan.nodes[edge.parent].base);
    Promise::nothing(format!("`{name}` moves between the CPUs of the spread node `{parent}`: best effort"))
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

fn quantum(policy: &PolicyRecord, params: &[u64]) -> u64 {
    policies::position(&policy.node_params, "quantum").map_or(1, |at| params[at])
}
