//! What a scenario is: a plan, a length, control operations at given times.
//!
//! The text up to the line `[scenario]` is a plan. What follows says how long it runs, and what is changed meanwhile:
//!
//! ```toml
//! [scenario]
//! for = "60ms"
//!
//! [[scenario.step]]
//! at = "20ms"
//! set = "rt/a"            # the edge from rt to a
//! budget = "3ms"
//! period = "10ms"
//! refused = "name"        # when that is what has to happen
//! ```
//!
//! Operations are `node`, `node_set`, `free`, `attach` (makes the edge, too), `set`, `detach` (`cpu1/top` is the edge
//! from a CPU to its root), `root`, `allow` (with `cpus`), `constrain` (a task, with `work` and `within`), `unconstrain`, `online`,
//! `offline`.

use anyhow::{bail, ensure, Context, Result};
use std::collections::HashMap;
use std::path::Path;
use tierce_admission::PlanExt;
use tierce_plan::{parse_time, Attach, Cpus, Plan};
use tierce_policy::{policies, Control, Param, ParamKind, Params, Refusal};
use toml::{Table, Value};

/// A scenario.
pub struct Script {
    pub name: String,
    pub plan: Plan,
    pub length_ns: u64,
    pub steps: Vec<Step>,
}

/// A control operation at a time.
pub struct Step {
    pub at_ns: u64,
    operation: String,
    target: String,
    params: Table,
    /// Name of the error that has to come, if one has to.
    pub refused: String,
}

impl Step {
    /// A CPU comes (true) or goes. Not done by [`Names::apply`]: the kernel takes its time.
    pub fn hotplug(&self) -> Option<(u32, bool)> {
        let online = ["offline", "online"].iter().position(|name| *name == self.operation)?;
        Some((self.target.parse().ok()?, online == 1))
    }
    pub fn describe(&self) -> String {
        format!("{} {}", self.operation, self.target)
    }
}

const OPERATIONS: [&str; 12] = [
    "node",
    "node_set",
    "free",
    "attach",
    "set",
    "detach",
    "root",
    "allow",
    "constrain",
    "unconstrain",
    "online",
    "offline",
];

impl Script {
    pub fn read(path: &Path) -> Result<Script> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let name = path.file_stem().and_then(|name| name.to_str()).context("a scenario has a name")?;
        Script::parse(name, &text, path).with_context(|| path.display().to_string())
    }

    fn parse(name: &str, text: &str, path: &Path) -> Result<Script> {
        let at = text.find("\n[scenario]").context("no line [scenario]")?;
        let plan = Plan::parse(&text[..at], &path.display().to_string())
            .map_err(|faults| anyhow::anyhow!("{}", faults.report()))?;
        let rest: Table = toml::from_str(&text[at..])?;
        let scenario = rest["scenario"].as_table().context("[scenario] is a table")?;
        let length_ns = time(scenario.get("for").context("no length: for = \"100ms\"")?)?;
        let steps = scenario.get("step").map_or(Ok(&[][..]), |steps| {
            steps.as_array().map(|steps| &steps[..]).context("steps are written [[scenario.step]]")
        })?;
        let steps: Vec<Step> = steps.iter().map(Step::parse).collect::<Result<_>>()?;
        ensure!(steps.is_sorted_by_key(|step| step.at_ns), "steps are in the order of time");
        Ok(Script { name: name.into(), plan, length_ns, steps })
    }
}

impl Step {
    fn parse(value: &Value) -> Result<Step> {
        let mut params = value.as_table().context("a step is a table")?.clone();
        let at_ns = time(&params.remove("at").context("a step has a time: at")?)?;
        let refused = params.remove("refused").map_or(Ok(String::new()), |name| text(&name))?;
        let operation = OPERATIONS.iter().find(|name| params.contains_key(**name));
        let operation = operation.with_context(|| format!("a step has one of {OPERATIONS:?}"))?.to_string();
        let target = match params.remove(&operation) {
            Some(Value::Integer(cpu)) => cpu.to_string(),
            Some(name) => text(&name)?,
            None => String::new(),
        };
        Ok(Step { at_ns, operation, target, params, refused })
    }
}

fn text(value: &Value) -> Result<String> {
    Ok(value.as_str().with_context(|| format!("{value:?}: a text"))?.to_string())
}

fn time(value: &Value) -> Result<u64> {
    parse_time(value.as_str().with_context(|| format!("{value:?}: a time in quotes"))?)
        .map_err(|error| anyhow::anyhow!("{value:?}: {}", error.message()))
}

/// What operations are done to: a simulated graph or the kernel's.
pub trait Machine {
    fn control(&mut self) -> Box<dyn Control + '_>;
    /// The edge from a CPU to its root.
    fn root_edge(&self, cpu: u32) -> u32;
    fn allow(&mut self, task: u32, cpus: Cpus) -> Result<(), Refusal>;
    fn constrain(&mut self, task: u32, work_ns: u64, within_ns: u64) -> Result<(), Refusal>;
    fn unconstrain(&mut self, task: u32) -> Result<(), Refusal>;
}

/// Ids by name. Both machines number nodes and edges the same way, in the order of the plan.
pub struct Names {
    ids: HashMap<String, u32>,
    policies: HashMap<u32, u32>,
}

impl Names {
    pub fn of(plan: &Plan) -> Names {
        let nodes = plan.nodes.iter().map(|node| &node.name);
        let named = nodes.chain(plan.tasks.iter().map(|task| &task.name)).zip(1..);
        let mut ids: HashMap<String, u32> = named.map(|(name, id)| (name.clone(), id)).collect();
        for (edge, id) in plan.edges.iter().zip(1..) {
            ids.insert(format!("{}/{}", plan.nodes[edge.parent].name, plan.child_name(edge.child)), id);
        }
        let roots = plan.attach_order().into_iter().filter_map(|step| match step {
            Attach::Root { cpu, node } => Some(format!("cpu{cpu}/{}", plan.nodes[node].name)),
            Attach::Edge(_) => None,
        });
        ids.extend(roots.zip(plan.edges.len() as u32 + 1..));
        let policies = plan.nodes.iter().zip(1..).map(|(node, id)| (id, node.policy)).collect();
        Names { ids, policies }
    }

    pub fn id(&self, name: &str) -> Result<u32> {
        self.ids.get(name).copied().with_context(|| format!("there is no {name}"))
    }

    /// The name of a node or task, `-` for none.
    pub fn name(&self, id: u32) -> &str {
        let named = self.ids.iter().find(|(name, other)| **other == id && !name.contains('/'));
        named.map_or("-", |(name, _)| name)
    }

    /// Ids of the plan's tasks.
    pub fn is_task(&self, plan: &Plan, id: u32) -> bool {
        let first = plan.nodes.len() as u32 + 1;
        (first..first + plan.tasks.len() as u32).contains(&id)
    }

    /// Do the step; the name of the refusal, or nothing. `still_running`: it has to be tried again after a decision.
    pub fn apply(&mut self, step: &Step, machine: &mut dyn Machine) -> Result<&'static str> {
        self.operate(step, machine).with_context(|| step.describe())
    }

    fn operate(&mut self, step: &Step, machine: &mut dyn Machine) -> Result<&'static str> {
        let target = &step.target;
        let done = match &*step.operation {
            "node" => self.node_new(step, machine)?,
            "node_set" => {
                let id = self.id(target)?;
                let policy = self.policies.get(&id).context("a node")?;
                let record = policies().iter().find(|record| record.number == *policy).context("a policy")?;
                let params = params(&record.node_params, &step.params)?;
                machine.control().node_set(id, params)
            }
            "free" => machine.control().node_free(self.id(target)?),
            "attach" => self.attach(step, machine)?,
            "set" => {
                let (edge, params) = (self.id(target)?, self.edge_params(target, &step.params)?);
                machine.control().set(edge, params)
            }
            "detach" => {
                let edge = match target.strip_prefix("cpu").and_then(|rest| rest.split_once('/')) {
                    Some((cpu, _)) => machine.root_edge(cpu.parse()?),
                    None => self.id(target)?,
                };
                machine.control().detach(edge)
            }
            "root" => {
                let cpu = step.params.get("cpu").and_then(Value::as_integer).context("a root has a cpu")?;
                let node = self.id(target)?;
                machine.control().root(cpu as u32, node).map(|_| ())
            }
            "allow" => {
                let cpus = step.params.get("cpus").and_then(Value::as_array).context("cpus = [0, …]")?;
                let cpus =
                    cpus.iter().filter_map(Value::as_integer).filter_map(|cpu| u32::try_from(cpu).ok());
                machine.allow(self.id(target)?, cpus.collect())
            }
            "constrain" => {
                let of = |name: &str| time(step.params.get(name).with_context(|| format!("no {name}"))?);
                machine.constrain(self.id(target)?, of("work")?, of("within")?)
            }
            "unconstrain" => machine.unconstrain(self.id(target)?),
            other => bail!("no operation {other}"),
        };
        match done {
            Ok(()) => Ok(""),
            Err(Refusal::Engine(error)) => Ok(error.name()),
            Err(other) => Err(other.into()),
        }
    }

    fn node_new(&mut self, step: &Step, machine: &mut dyn Machine) -> Result<Result<(), Refusal>> {
        let policy = text(step.params.get("policy").context("a node has a policy")?)?;
        let record = policies().iter().find(|record| record.name == policy);
        let record = record.with_context(|| format!("no policy {policy}"))?;
        let params = params(&record.node_params, &step.params)?;
        let id = machine.control().node_new(record.number, 0, Cpus::ALL, params)?;
        self.ids.insert(step.target.clone(), id);
        self.policies.insert(id, record.number);
        Ok(Ok(()))
    }

    fn attach(&mut self, step: &Step, machine: &mut dyn Machine) -> Result<Result<(), Refusal>> {
        let (parent, child) = self.ends(&step.target)?;
        let rank = step.params.get("rank").and_then(Value::as_integer).unwrap_or(0);
        let spent = step.params.get("when").is_some();
        let edge = machine.control().edge_new(parent, child, rank as i32, spent.into())?;
        self.ids.insert(step.target.clone(), edge);
        let params = self.edge_params(&step.target, &step.params)?;
        Ok(machine.control().attach(edge, params))
    }

    fn ends(&self, edge: &str) -> Result<(u32, u32)> {
        let (parent, child) = edge.split_once('/').context("an edge is PARENT/CHILD")?;
        Ok((self.id(parent)?, self.id(child)?))
    }

    fn edge_params(&self, edge: &str, given: &Table) -> Result<Params> {
        let policy = self.policies.get(&self.ends(edge)?.0).context("the parent is a node")?;
        let record = policies().iter().find(|record| record.number == *policy).context("a policy")?;
        params(&record.edge_params, given)
    }
}

fn params<const N: usize>(known: &[Param], given: &Table) -> Result<[u64; N]> {
    let mut list = [0; N];
    for (i, param) in known.iter().enumerate() {
        list[i] = match (given.get(param.name), &param.kind) {
            (Some(Value::String(text)), ParamKind::Ratio | ParamKind::Choice) => {
                param.read(text).with_context(|| format!("{}: {text}", param.name))?
            }
            (Some(value @ Value::String(_)), _) => time(value)?,
            (Some(value), _) => {
                u64::try_from(value.as_integer().context("a number")?).context("not negative")?
            }
            (None, ParamKind::DurationOf(other)) => list[*other],
            (None, _) => param.preset.with_context(|| format!("no {}", param.name))?,
        };
    }
    Ok(list)
}
