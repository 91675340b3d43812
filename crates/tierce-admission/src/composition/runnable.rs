//! What a plan must have besides to be enforced on a live machine.

use crate::composition::long_run_rates::{Rates, Trust};
use crate::share::zero;
use tierce_plan::policies::{self, KERNEL};
use tierce_plan::show_time;
use tierce_plan::Cpus;
use tierce_plan::Spot;
use tierce_plan::{several, Shape};
use tierce_plan::{Child, Edge, OtherCpus, Plan};
use tierce_plan::{Fault, Faults};

/// Whether the plan can be enforced on a machine whose online CPUs are 0 to `cpus - 1`:
///
/// - every CPU has a root, and no root is on a CPU that is not there;
/// - exactly one default node takes in the threads that match nothing; it can give them parameters, and reaches
///   every CPU with a share that the tasks of the plan cannot take away, however long they run (threads that sets match
///   beside these are not counted: [`may_starve`]);
/// - no budget keeps a runnable thread waiting until the kernel's watchdog gives up;
/// - what is matched fits the pools of the kernel build.
pub fn check(plan: &Plan, cpus: u32) -> Result<(), Faults> {
    let shape = Shape::new(plan);
    let mut faults = Vec::new();
    roots_for(plan, cpus, &mut faults);
    default_for(plan, cpus, &shape, &mut faults);
    watchdog(plan, &mut faults);
    pools(plan, cpus, &shape, &mut faults);
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Faults::new(faults, plan.sources.clone()))
    }
}

/// Tasks and sets that others may keep from running altogether when they misbehave: no refusal, since the plan may
/// trust them, but the kernel's watchdog ends a scheduler that keeps a runnable thread waiting for long.
pub fn may_starve(plan: &Plan) -> Vec<Fault> {
    let shape = Shape::new(plan);
    let rates = Rates::new(plan, &shape, Trust::Nobody);
    let mut faults: Vec<Fault> = Vec::new();
    for (index, task) in plan.tasks.iter().enumerate() {
        let rate = rates.total(plan, &shape, &shape.task_parents[index], 1);
        let first = task.set.is_none_or(|set| plan.sets[set].members.start == index);
        if first && rate.is_some_and(|rate| rate <= zero()) {
            let name = plan.item_name(Child::Task(index));
            let message = format!("`{name}` may never run if what comes before it never stops");
            let hint = format!("put `{name}` below a reservation, or put what comes before it below one");
            faults.push(Fault::new("task_may_starve", task.spot, message).hint(hint));
        }
    }
    faults.extend(default_may_starve(plan, &shape));
    faults
}

/// The default node, if enough threads that match sets of the plan can keep it from running on one of its CPUs.
fn default_may_starve(plan: &Plan, shape: &Shape) -> Option<Fault> {
    let index = plan.default_node?;
    let rates = Rates::new(plan, shape, Trust::NobodyAnyNumber);
    let cpus = shape.reach[index].iter();
    cpus.chain(replicas(plan, plan.nodes[index].family)).find_map(|cpu| {
        let node = match plan.nodes[index].family {
            Some(_) => replica_on(plan, plan.nodes[index].family, cpu)?,
            None => index,
        };
        let edge = share_on(plan, cpu, node, shape, &rates).err()??;
        let (base, parent) = (&plan.nodes[index].base, &plan.nodes[edge.parent].name);
        let message = format!(
            "the default node `{base}` may never run on CPU {cpu}: in `{parent}` threads that match sets of the plan may \
             take everything; the loader is below it, too"
        );
        let hint = "a reservation for it, or a `cap` for the reservation that the sets are below";
        Some(Fault::new("default_node_may_starve", edge.spot, message).hint(hint))
    })
}

/// The CPUs of a spread node.
fn replicas(plan: &Plan, family: Option<usize>) -> impl Iterator<Item = u32> + '_ {
    let same = move |node: &&tierce_plan::Node| family.is_some() && node.family == family;
    plan.nodes.iter().filter(same).filter_map(|node| node.replica)
}

fn roots_for(plan: &Plan, cpus: u32, faults: &mut Vec<Fault>) {
    let mut rooted = Cpus::NONE;
    for node in &plan.nodes {
        for cpu in &node.roots {
            rooted.add(*cpu);
            if *cpu >= cpus {
                let message = format!("`{}` is the root of CPU {cpu}, which is not online", node.name);
                let fault = Fault::new("root_cpu_must_be_online", node.spot, message).value(cpu);
                faults.push(fault.bound(format!("0 to {}", cpus.saturating_sub(1))));
            }
        }
    }
    let missing = Cpus::upto(cpus.min(KERNEL.cpus)) & !rooted;
    let missing: Vec<_> = missing.iter().map(|cpu| cpu.to_string()).collect();
    let default = plan.default_node.filter(|_| plan.run.other_cpus == OtherCpus::Default);
    if let (false, Some(default)) = (missing.is_empty(), default) {
        let node = &plan.nodes[default];
        let message =
            format!("CPU {} runs the default node, and `{}` is not spread", missing.join(", "), node.base);
        let hint = "let it be spread: a policy that can, no `spread = false`, `concurrency`, `rank` or several `cpus`, no \
                    parent that several CPUs share; or a root for each CPU: `per_cpu = true`, `cpus = \"all\"`";
        let fault = Fault::new("other_cpus_need_a_spread_default", node.spot, message);
        faults.push(fault.value(missing.len()).hint(hint));
    } else if !missing.is_empty() {
        let spot =
            plan.nodes.iter().find(|node| !node.roots.is_empty()).map_or(Spot::default(), |node| node.spot);
        let message = format!("no root runs on CPU {}", missing.join(", "));
        let hint =
            "a live plan rules every online CPU: `per_cpu = true` for a root each, `cpus = \"all\"` for one \
                    shared root; leave `[machine] cpus` out to take what the machine has";
        faults.push(Fault::new("every_cpu_needs_a_root", spot, message).hint(hint));
    }
}

fn default_for(plan: &Plan, cpus: u32, shape: &Shape, faults: &mut Vec<Fault>) {
    let Some(index) = plan.default_node else {
        let message = "no node is the default: threads that match nothing would have no place";
        // One that takes any number of threads: the last of them is usually for the rest.
        let takes_all = |node: &&tierce_plan::Node| {
            policies::by_number(node.policy)
                .is_some_and(|policy| policy.spreads && policies::priority(policy).is_none())
        };
        let fault = |spot| Fault::new("default_node_must_exist", spot, message);
        faults.push(match plan.nodes.iter().rev().find(takes_all) {
            Some(node) => fault(node.spot).hint(format!("`{}` could be it: default = true", node.base)),
            None => fault(Spot::default()).hint("default = true in one node, usually a `fair` one"),
        });
        return;
    };
    let node = &plan.nodes[index];
    if node.replica.is_some() && node.family.is_none() {
        let message =
            format!("the default node `{}` is `per_cpu`: which replica should take a thread?", node.base);
        let hint = "`spread = true` instead: threads move between its replicas";
        faults.push(Fault::new("default_node_is_one", node.spot, message).hint(hint));
        return;
    }
    if plan.each.is_none() {
        let policy = policies::by_number(node.policy);
        let required = policy.map(|policy| policy.edge_params.iter().filter(|param| param.required()));
        let names: Vec<_> = required.into_iter().flatten().map(|param| param.name).collect();
        if !names.is_empty() {
            let message = format!("threads in the default node `{}` need {}", node.name, names.join(" and "));
            let fault = Fault::new("each_must_be_given", node.spot, message);
            faults.push(fault.hint(format!("each = {{ {} = … }}", names.join(" = …, "))));
        }
    }
    // Walk up per CPU: on each, at least one parent must pass on a share.
    let rates = Rates::new(plan, shape, Trust::Nobody);
    for cpu in 0..cpus.min(KERNEL.cpus) {
        if !plan.nodes.iter().any(|node| node.roots.contains(&cpu)) {
            continue; // reported already
        }
        let there = match node.family {
            Some(_) => replica_on(plan, node.family, cpu),
            None => Some(index),
        };
        if let Err(obstacle) = there.map_or(Err(None), |node| share_on(plan, cpu, node, shape, &rates)) {
            let hint = "a reservation gives it a share whatever others do: \
                        under.RESERVATION = { budget = \"1ms\", period = \"20ms\" }";
            let (spot, why) = match obstacle {
                Some(edge) => {
                    let parent = &plan.nodes[edge.parent].name;
                    let child = plan.child_name(edge.child);
                    (edge.spot, format!("in `{parent}` others may leave nothing for `{child}`"))
                }
                None => (node.spot, "no edge leads there".to_string()),
            };
            let message = format!("the default node `{}` has no sure share of CPU {cpu}: {why}", node.base);
            faults.push(Fault::new("default_node_needs_a_share", spot, message).hint(hint));
        }
    }
}

pub(super) fn replica_on(plan: &Plan, family: Option<usize>, cpu: u32) -> Option<usize> {
    plan.nodes.iter().position(|node| node.family == family && node.replica == Some(cpu))
}

/// Whether the node is sure to get something on that CPU; else the edge at which that ends, if there is one.
fn share_on<'p>(
    plan: &'p Plan,
    cpu: u32,
    node: usize,
    shape: &Shape,
    rates: &Rates,
) -> Result<(), Option<&'p Edge>> {
    // An unknown rate is not held against the plan: the policy may well be fair.
    let passes = |index: usize| rates.edge[index].as_ref().is_none_or(|rate| *rate > zero());
    let here = |index: &&usize| {
        let edge = &plan.edges[**index];
        !edge.when_spent && shape.reach[edge.parent].has(cpu)
    };
    let mut sure = vec![false; plan.nodes.len()];
    for node in &shape.order {
        let above = |index: &usize| passes(*index) && sure[plan.edges[*index].parent];
        sure[*node] =
            plan.nodes[*node].roots.contains(&cpu) || shape.parents[*node].iter().filter(here).any(above);
    }
    let mut at = node;
    while !sure[at] {
        let Some(first) = shape.parents[at].iter().find(here) else { return Err(None) };
        if !passes(*first) {
            return Err(Some(&plan.edges[*first]));
        }
        at = plan.edges[*first].parent;
    }
    if sure[node] {
        Ok(())
    } else {
        Err(None)
    }
}

/// How long a budget is waited for, if the edge gives one. A thread that has used its budget early in one period may get the next
/// late: (T - Q) + (D - Q); debt, at most one budget, costs a period more.
pub(super) fn longest_wait_ns(plan: &Plan, edge: &Edge) -> Option<u64> {
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    let (budget, period) = policies::budget_and_period(policy)?;
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let [budget, period, deadline] = [budget, period, deadline].map(|at| edge.params[at]);
    Some(period.saturating_sub(budget) + deadline.saturating_sub(budget) + period)
}

fn watchdog(plan: &Plan, faults: &mut Vec<Fault>) {
    let mut seen = Vec::new();
    for edge in &plan.edges {
        let Some(wait) = longest_wait_ns(plan, edge) else { continue };
        if wait >= plan.run.watchdog_ns && !seen.contains(&edge.spot) {
            seen.push(edge.spot);
            let name = plan.item_name(edge.child);
            let message =
                format!("`{name}` could wait so long for its budget that the kernel's watchdog gives up");
            let hint = shorter_period(plan, edge, wait);
            let fault = Fault::new("wait_must_stay_under_the_watchdog", edge.spot, message);
            faults.push(fault.value(show_time(wait)).bound(show_time(plan.run.watchdog_ns)).hint(hint));
        }
    }
}

/// The longest wait in numbers, and a period with which it is short enough.
fn shorter_period(plan: &Plan, edge: &Edge, wait_ns: u64) -> String {
    let policy = policies::by_number(plan.nodes[edge.parent].policy);
    let Some((policy, (budget, period))) =
        policy.and_then(|policy| Some((policy, policies::budget_and_period(policy)?)))
    else {
        return String::new();
    };
    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
    let [budget, period, deadline] = [budget, period, deadline].map(|at| edge.params[at]);
    // All three shrink alike; whole milliseconds, a little less than fits.
    let least =
        |ns: u64| (u128::from(ns) * u128::from(plan.run.watchdog_ns) / u128::from(wait_ns.max(1))) as u64;
    let rounded = |ns: u64| least(ns).saturating_sub(1) / 1_000_000 * 1_000_000;
    let sum =
        [period.saturating_sub(budget), deadline.saturating_sub(budget), period].map(show_time).join(" + ");
    let fits = match (rounded(budget), rounded(period)) {
        (0, _) | (_, 0) => String::new(),
        (budget, period) => format!(": budget {} in {} fits", show_time(budget), show_time(period)),
    };
    format!(
        "(period - budget) + (deadline - budget) + period is {sum}; shorter periods with the same share wait less{fits}"
    )
}

/// What the kernel build can hold. Nodes and single tasks are made before the first thread is matched; sets grow as
/// threads come.
fn pools(plan: &Plan, cpus: u32, shape: &Shape, faults: &mut Vec<Fault>) {
    let single = |task: &usize| plan.tasks[*task].set.is_none();
    let tasks: Vec<usize> = (0..plan.tasks.len()).filter(single).collect();
    let alone = |child: Child| !matches!(child, Child::Task(task) if !single(&task));
    let roots: usize = plan.nodes.iter().map(|node| node.roots.len()).sum();
    let edges = plan.edges.iter().filter(|edge| alone(edge.child)).count() + roots;
    let heads = (0..plan.nodes.len()).filter(|node| several(shape.reach[*node], shape.parents[*node].len()));
    let shared = |task: &&usize| several(shape.task_reach(plan, **task), shape.task_parents[**task].len());
    let heads = heads.count() + tasks.iter().filter(shared).count();
    for (rule, what, count, most) in [
        ("too_many_nodes", "nodes and tasks", plan.nodes.len() + tasks.len(), KERNEL.nodes),
        ("too_many_edges", "edges", edges, KERNEL.edges),
        ("too_many_shared", "nodes and tasks with parents on several CPUs", heads, KERNEL.heads),
        ("too_many_cpus", "CPUs", cpus as usize, KERNEL.cpus),
    ] {
        if count > most as usize {
            let message = format!("there are more {what} than the kernel build can hold");
            faults.push(Fault::new(rule, Spot::default(), message).value(count).bound(most));
        }
    }
}
