//! What a plan must have besides to be enforced on a live machine.

use crate::exact::zero;
use crate::faults::{Fault, Faults};
use crate::model::{Child, Edge, Node, OtherCpus, Plan};
use crate::orders::order;
use crate::policies::{self, KERNEL};
use crate::rates::{Rates, Trust};
use crate::source::Spot;
use crate::structure::Shape;
use crate::units::show_time;
use tierce_policy::Part;

/// As in the structure's rules: does it get its CPUs from several places?
fn several(reach: u64, parents: usize) -> bool {
    reach.count_ones() > 1 && parents != 1
}

impl Plan {
    /// Whether the plan can be enforced on a machine whose online CPUs are 0 to `cpus - 1`:
    ///
    /// - every CPU has a root, and no root is on a CPU that is not there;
    /// - exactly one default node takes in the threads that match nothing; it can give them parameters, and reaches
    ///   every CPU with a share that nothing can take away;
    /// - no budget keeps a runnable thread waiting until the kernel's watchdog gives up;
    /// - what is matched fits the pools of the kernel build.
    pub fn check_runnable(&self, cpus: u32) -> Result<(), Faults> {
        let shape = Shape::new(self);
        let mut faults = Vec::new();
        self.roots_for(cpus, &mut faults);
        self.default_for(cpus, &shape, &mut faults);
        self.watchdog(&mut faults);
        self.pools(cpus, &shape, &mut faults);
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Faults::new(faults, self.sources.clone()))
        }
    }

    /// Tasks and sets that others may keep from running altogether when they misbehave: no refusal, since the plan may
    /// trust them, but the kernel's watchdog ends a scheduler that keeps a runnable thread waiting for long.
    pub fn may_starve(&self) -> Vec<Fault> {
        let shape = Shape::new(self);
        let rates = Rates::new(self, &shape, Trust::Nobody);
        let mut faults: Vec<Fault> = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            let rate = rates.total(self, &shape, &shape.task_parents[index], 1);
            let first = task.set.is_none_or(|set| self.sets[set].members.start == index);
            if first && rate.is_some_and(|rate| rate <= zero()) {
                let name = task.set.map_or(&task.name, |set| &self.sets[set].name);
                let message = format!("`{name}` may never run if what is above it never stops");
                let hint = "a reservation below which it stands, or a bounded one for what is above it";
                faults.push(Fault::new("task_may_starve", task.spot, message).hint(hint));
            }
        }
        faults
    }

    fn roots_for(&self, cpus: u32, faults: &mut Vec<Fault>) {
        let mut rooted = 0u64;
        for node in &self.nodes {
            for cpu in &node.roots {
                rooted |= 1 << cpu;
                if *cpu >= cpus {
                    let message = format!("`{}` is the root of CPU {cpu}, which is not online", node.name);
                    let fault = Fault::new("root_cpu_must_be_online", node.spot, message).value(cpu);
                    faults.push(fault.bound(format!("0 to {}", cpus.saturating_sub(1))));
                }
            }
        }
        let missing: Vec<_> =
            (0..cpus.min(64)).filter(|cpu| rooted & 1 << cpu == 0).map(|cpu| cpu.to_string()).collect();
        let default = self.default_node.filter(|_| self.run.other_cpus == OtherCpus::Default);
        if let (false, Some(default)) = (missing.is_empty(), default) {
            let node = &self.nodes[default];
            let message = format!(
                "CPU {} runs the default node, and `{}` is not spread",
                missing.join(", "),
                node.base
            );
            let hint = "let it be spread: a policy that can, no `spread = false`, `concurrency`, `rank` or several `cpus`, no \
                        parent that several CPUs share; or a root for each CPU: `per_cpu = true`, `cpus = \"all\"`";
            let fault = Fault::new("other_cpus_need_a_spread_default", node.spot, message);
            faults.push(fault.value(missing.len()).hint(hint));
        } else if !missing.is_empty() {
            let spot = self
                .nodes
                .iter()
                .find(|node| !node.roots.is_empty())
                .map_or(Spot::default(), |node| node.spot);
            let message = format!("no root runs on CPU {}", missing.join(", "));
            let hint = "a live plan rules every online CPU: `per_cpu = true` for a root each, `cpus = \"all\"` for one \
                        shared root; leave `[machine] cpus` out to take what the machine has";
            faults.push(Fault::new("every_cpu_needs_a_root", spot, message).hint(hint));
        }
    }

    fn default_for(&self, cpus: u32, shape: &Shape, faults: &mut Vec<Fault>) {
        let Some(index) = self.default_node else {
            let message = "no node is the default: threads that match nothing would have no place";
            let fault = Fault::new("default_node_must_exist", Spot::default(), message);
            faults.push(fault.hint("default = true in one node, usually a `fair` one"));
            return;
        };
        let node = &self.nodes[index];
        if node.replica.is_some() && node.family.is_none() {
            let message =
                format!("the default node `{}` is `per_cpu`: which replica should take a thread?", node.base);
            let hint = "`spread = true` instead: threads move between its replicas";
            faults.push(Fault::new("default_node_is_one", node.spot, message).hint(hint));
            return;
        }
        if self.each.is_none() {
            let policy = policies::by_number(node.policy);
            let required = policy.map(|policy| policy.edge_params.iter().filter(|param| param.required()));
            let names: Vec<_> = required.into_iter().flatten().map(|param| param.name).collect();
            if !names.is_empty() {
                let message =
                    format!("threads in the default node `{}` need {}", node.name, names.join(" and "));
                let fault = Fault::new("each_must_be_given", node.spot, message);
                faults.push(fault.hint(format!("each = {{ {} = … }}", names.join(" = …, "))));
            }
        }
        // Walk up per CPU: on each, at least one parent must pass on a share.
        let rates = Rates::new(self, shape, Trust::Nobody);
        for cpu in 0..cpus.min(64) {
            if !self.nodes.iter().any(|node| node.roots.contains(&cpu)) {
                continue; // reported already
            }
            let there = match node.family {
                Some(_) => self.replica_on(node.family, cpu),
                None => Some(index),
            };
            if let Err(obstacle) = there.map_or(Err(None), |node| self.share_on(cpu, node, shape, &rates)) {
                let hint = "a reservation gives it a share whatever others do: \
                            under.RESERVATION = { budget = \"1ms\", period = \"20ms\" }";
                let (spot, why) = match obstacle {
                    Some(edge) => {
                        let parent = &self.nodes[edge.parent].name;
                        let child = self.child_name(edge.child);
                        (edge.spot, format!("in `{parent}` others may leave nothing for `{child}`"))
                    }
                    None => (node.spot, "no edge leads there".to_string()),
                };
                let message =
                    format!("the default node `{}` has no sure share of CPU {cpu}: {why}", node.base);
                faults.push(Fault::new("default_node_needs_a_share", spot, message).hint(hint));
            }
        }
    }

    fn replica_on(&self, family: Option<usize>, cpu: u32) -> Option<usize> {
        self.nodes.iter().position(|node| node.family == family && node.replica == Some(cpu))
    }

    /// Whether the node is sure to get something on that CPU; else the edge at which that ends, if there is one.
    fn share_on(&self, cpu: u32, node: usize, shape: &Shape, rates: &Rates) -> Result<(), Option<&Edge>> {
        // An unknown rate is not held against the plan: the policy may well be fair.
        let passes = |index: usize| rates.edge[index].as_ref().is_none_or(|rate| *rate > zero());
        let here = |index: &&usize| {
            let edge = &self.edges[**index];
            !edge.when_spent && shape.reach[edge.parent] & 1 << cpu != 0
        };
        let mut sure = vec![false; self.nodes.len()];
        for node in &shape.order {
            let above = |index: &usize| passes(*index) && sure[self.edges[*index].parent];
            sure[*node] =
                self.nodes[*node].roots.contains(&cpu) || shape.parents[*node].iter().filter(here).any(above);
        }
        let mut at = node;
        while !sure[at] {
            let Some(first) = shape.parents[at].iter().find(here) else { return Err(None) };
            if !passes(*first) {
                return Err(Some(&self.edges[*first]));
            }
            at = self.edges[*first].parent;
        }
        if sure[node] {
            Ok(())
        } else {
            Err(None)
        }
    }

    /// A thread that has used its budget early in one period may get the next late: (T - Q) + (D - Q); debt, at most
    /// one budget, costs a period more.
    fn watchdog(&self, faults: &mut Vec<Fault>) {
        let mut seen = Vec::new();
        for edge in &self.edges {
            let policy = policies::by_number(self.nodes[edge.parent].policy);
            let Some((policy, (budget, period))) =
                policy.and_then(|p| Some((p, policies::budget_and_period(p)?)))
            else {
                continue;
            };
            let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
            let [budget, period, deadline] = [budget, period, deadline].map(|at| edge.params[at]);
            let wait = period.saturating_sub(budget) + deadline.saturating_sub(budget) + period;
            if wait >= self.run.watchdog_ns && !seen.contains(&edge.spot) {
                seen.push(edge.spot);
                let name = match edge.child {
                    Child::Task(task) => {
                        self.tasks[task].set.map_or(&self.tasks[task].name, |set| &self.sets[set].name)
                    }
                    child => self.child_name(child),
                };
                let message =
                    format!("`{name}` could wait so long for its budget that the kernel's watchdog gives up");
                let hint = "a shorter period with the same share: (period - budget) + (deadline - budget) + period for \
                            debt is the longest wait";
                let fault = Fault::new("wait_must_stay_under_the_watchdog", edge.spot, message);
                faults.push(fault.value(show_time(wait)).bound(show_time(self.run.watchdog_ns)).hint(hint));
            }
        }
    }

    /// The parts of the engine that it needs, a bit each ([`tierce_policy::Part`]). What `[run] policies` names has all of them.
    pub fn parts(&self) -> u64 {
        let shape = Shape::new(self);
        let shared = (0..self.nodes.len()).any(|node| several(shape.reach[node], shape.parents[node].len()))
            || (0..self.tasks.len())
                .any(|task| several(shape.task_reach(self, task), shape.task_parents[task].len()))
            || self.sets.iter().any(|set| set.under.len() > 1);
        let chosen = |node: &Node, name: &str| {
            let policy = policies::by_number(node.policy);
            let at = policy.and_then(|policy| policies::position(&policy.node_params, name));
            at.map_or(0, |at| node.params[at])
        };
        let is = |node: &Node, name: &str| policies::by_name(name).is_some_and(|it| it.number == node.policy);
        let by_clock = |node: usize| matches!(order(self, node), "eevdf" | "stride" | "lottery");
        let rare = |node: &Node| {
            is(node, "reservation")
                && ["order", "replenishment", "charge", "gain"].iter().any(|name| chosen(node, name) > 0)
        };
        let needed = [
            (Part::Shared, shared),
            (Part::Spread, self.nodes.iter().any(|node| node.family.is_some())),
            (Part::ByClock, (0..self.nodes.len()).any(by_clock)),
            (Part::Servers, self.nodes.iter().any(rare)),
        ];
        let room = self.run.policies != 0;
        needed.into_iter().filter(|(_, is)| room || *is).fold(0, |mask, (part, _)| mask | part.bit())
    }

    /// What the kernel build can hold. Nodes and single tasks are made before the first thread is matched; sets grow as
    /// threads come.
    fn pools(&self, cpus: u32, shape: &Shape, faults: &mut Vec<Fault>) {
        let single = |task: &usize| self.tasks[*task].set.is_none();
        let tasks: Vec<usize> = (0..self.tasks.len()).filter(single).collect();
        let alone = |child: Child| !matches!(child, Child::Task(task) if !single(&task));
        let roots: usize = self.nodes.iter().map(|node| node.roots.len()).sum();
        let edges = self.edges.iter().filter(|edge| alone(edge.child)).count() + roots;
        let heads =
            (0..self.nodes.len()).filter(|node| several(shape.reach[*node], shape.parents[*node].len()));
        let shared =
            |task: &&usize| several(shape.task_reach(self, **task), shape.task_parents[**task].len());
        let heads = heads.count() + tasks.iter().filter(shared).count();
        for (rule, what, count, most) in [
            ("too_many_nodes", "nodes and tasks", self.nodes.len() + tasks.len(), KERNEL.nodes),
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
}
