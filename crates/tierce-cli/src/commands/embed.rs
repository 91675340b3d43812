//! `tierce embed`: a plan as a C table, for the firmware.

use super::time;
use anyhow::{bail, Result};
use std::fmt::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{show_time, Cpus, Load, Members, Plan, Work};
use tierce_policy::added::added;
use tierce_policy::{
    policies, Control, Graph, NodeParams, Param, ParamKind, Params, PolicyRecord, Refusal, Way,
};
use tierce_trace::{Source, TraceHeader};

/// Turn a plan into a C table for the firmware's kernel
///
/// Prints a C header: the control operations that build the plan's graph, its tasks with their periodic loads, and the header of
/// a trace. A plan that the board cannot hold is refused, with the value and the bound.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The plan: one CPU
    plan: PathBuf,
    /// Name of the C variable (`struct plan`)
    #[arg(long, default_value = "plan", value_parser = identifier)]
    name: String,
    /// Number of nodes and tasks that the board has room for (firmware/port.h)
    #[arg(long, value_name = "N", default_value_t = 31)]
    nodes: usize,
    /// Number of edges that the board has room for, the CPU's own included
    #[arg(long, value_name = "N", default_value_t = 47)]
    edges: usize,
    /// Shortest period, budget, deadline or quantum that the board's timer can serve
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = time::duration)]
    floor: u64,
    /// Print only the compiler flag that leaves all policies but the plan's out of the kernel, and, with policies of --policy-dir,
    /// the one that brings them in
    #[arg(long)]
    policies: bool,
}

const EXAMPLES: &str = "\
Examples:
  tierce embed examples/edf.toml > edf.h
  tierce embed --name desktop --floor 50us examples/edf.toml > desktop.h

Exit codes: 0 printed; 2 bad input, or more than the board can hold.";

fn identifier(text: &str) -> Result<String, String> {
    let good =
        |first: usize, c: char| c == '_' || c.is_ascii_alphabetic() || (first > 0 && c.is_ascii_digit());
    if !text.is_empty() && text.char_indices().all(|(index, c)| good(index, c)) {
        Ok(text.to_owned())
    } else {
        Err("not a name in C".to_owned())
    }
}

/// Does the control operations on a graph and writes each down.
struct Embedding<'g> {
    graph: &'g mut Graph,
    steps: String,
}

fn numbers(params: &[u64]) -> String {
    let used = params.iter().rposition(|&value| value != 0).map_or(0, |last| last + 1);
    let list: Vec<String> = params[..used.max(1)].iter().map(|value| format!("{value}u")).collect();
    list.join(", ")
}

impl Embedding<'_> {
    fn write(&mut self, step: std::fmt::Arguments<'_>) {
        writeln!(self.steps, "\t{{{step}}},").expect("a string takes everything");
    }
}

impl Control for Embedding<'_> {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal> {
        let id = self.graph.at(0).node_new(kind, concurrency, allowed, params)?;
        let name = policy(kind).map_or("TASK".to_owned(), |policy| policy.name.replace('-', "_"));
        let params = numbers(&params);
        self.write(format_args!(
            ".op = PLAN_NODE, .id = {id}, .kind = TIERCE_{name}, .flags = {concurrency}, .param = {{{params}}}"
        ));
        Ok(id)
    }
    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal> {
        let edge = self.graph.at(0).root(cpu, node)?;
        self.write(format_args!(".op = PLAN_ROOT, .id = {node}"));
        Ok(edge)
    }
    fn replica(&mut self, _: u32, _: u32) -> Result<(), Refusal> {
        Err(only_building())
    }
    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        let id = self.graph.at(0).edge_new(parent, child, rank, way)?;
        let flags = if way == Way::WhenSpent { "EDGE_WHEN_SPENT" } else { "0" };
        self.write(format_args!(
            ".op = PLAN_EDGE, .id = {id}, .parent = {parent}, .child = {child}, .rank = {rank}, .flags = {flags}"
        ));
        Ok(id)
    }
    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        self.graph.at(0).attach(edge, params)?;
        self.write(format_args!(".op = PLAN_ATTACH, .id = {edge}, .param = {{{}}}", numbers(&params)));
        Ok(())
    }
    fn node_set(&mut self, _: u32, _: NodeParams) -> Result<(), Refusal> {
        Err(only_building())
    }
    fn node_free(&mut self, _: u32) -> Result<(), Refusal> {
        Err(only_building())
    }
    fn set(&mut self, _: u32, _: Params) -> Result<(), Refusal> {
        Err(only_building())
    }
    fn detach(&mut self, _: u32) -> Result<(), Refusal> {
        Err(only_building())
    }
}

fn only_building() -> Refusal {
    Refusal::Call("a table only builds".to_owned())
}

/// A time that is shorter than the board can serve, in words.
fn too_short(what: &str, params: &[Param], values: &[u64], floor_ns: u64) -> Option<String> {
    let short = params.iter().zip(values).find(|(param, value)| {
        let time = matches!(param.kind, ParamKind::Time | ParamKind::DurationOf(_));
        let lasts = time && param.name != "warp" && param.name != "offset";
        lasts && **value != 0 && **value < floor_ns
    });
    short.map(|(param, value)| {
        let (value, floor) = (show_time(*value), show_time(floor_ns));
        format!("{what}: {} = {value} is below {floor}, what the board's timer can serve", param.name)
    })
}

/// What the board cannot hold.
fn refusals(plan: &Plan, args: &Args) -> Vec<String> {
    let mut found = Vec::new();
    let (nodes, edges) = (plan.nodes.len() + plan.tasks.len(), plan.edges.len() + plan.machine.cpus as usize);
    if plan.machine.cpus != 1 {
        found.push(format!("machine: {} CPUs, the board has 1", plan.machine.cpus));
    }
    if nodes > args.nodes {
        found.push(format!("{nodes} nodes and tasks, the board holds {}", args.nodes));
    }
    if edges > args.edges {
        found.push(format!("{edges} edges with the CPU's own, the board holds {}", args.edges));
    }
    for node in &plan.nodes {
        let params = policy(node.policy).map_or(&[][..], |policy| &policy.node_params);
        found.extend(too_short(&format!("node {}", node.name), params, &node.params, args.floor));
    }
    for edge in &plan.edges {
        let parent = &plan.nodes[edge.parent];
        let params = policy(parent.policy).map_or(&[][..], |policy| &policy.edge_params);
        let what = format!("edge from {} to {}", parent.name, plan.child_name(edge.child));
        found.extend(too_short(&what, params, &edge.params, args.floor));
    }
    for task in &plan.tasks {
        if let Some(Load::Periodic(load)) = &task.load {
            if load.period_ns < args.floor {
                let (period, floor) = (show_time(load.period_ns), show_time(args.floor));
                let name = &task.name;
                found.push(format!(
                    "task {name}: period {period} is below {floor}, what the board's timer can serve"
                ));
            }
        }
    }
    found
}

fn policy(number: u32) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.number == number)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', byte as char]),
            b' '..=b'~' => quoted.push(byte as char),
            _ => write!(quoted, "\\{byte:03o}").expect("a string takes everything"),
        }
    }
    quoted.push('"');
    quoted
}

/// Loads that the firmware can play by itself: periodic ones of constant work, and those that always want the CPU.
fn load_of(load: Option<&Load>) -> String {
    match load {
        Some(Load::Busy) => ", .busy = 1".to_owned(),
        Some(Load::Periodic(load)) if load.jitter_ns == 0 => match load.work {
            Work::Constant(work_ns) => format!(
                ", .period_ns = {}u, .work_ns = {work_ns}u, .deadline_ns = {}u, .phase_ns = {}u",
                load.period_ns, load.deadline_ns, load.phase_ns
            ),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Run `tierce embed`.
pub fn run(args: Args) -> Result<ExitCode> {
    let plan = match Plan::load(&args.plan) {
        Ok(plan) => plan,
        Err(faults) => {
            eprint!("{}", faults.report());
            bail!("{}: the plan has faults", args.plan.display());
        }
    };
    let found = refusals(&plan, &args);
    if !found.is_empty() {
        for refusal in &found {
            eprintln!("{}: {refusal}", args.plan.display());
        }
        bail!("{}: more than the board can hold", args.plan.display());
    }
    for line in plan.is_so_only_in_simulation() {
        eprintln!("tierce: {line}");
    }
    let mut graph = Graph::new(1, 0)?;
    let mut embedding = Embedding { graph: &mut graph, steps: String::new() };
    let ids = plan.build(&mut embedding, Members::Played).inspect_err(|_| {
        eprint!("{}", plan.admit().faults(&plan).report());
    })?;
    let steps = embedding.steps;
    let set = plan.nodes.iter().fold(0u32, |set, node| set | 1 << node.policy);
    let added =
        added().filter(|_| plan.nodes.iter().any(|node| policy(node.policy).is_some_and(|it| it.added)));
    if args.policies {
        println!("-DTIERCE_POLICIES={set:#x}");
        if let Some(added) = added {
            println!("-DTIERCE_ADDED='\"{}\"'", added.header()?.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let needs = match added {
        Some(_) => "#ifndef TIERCE_ADDED\n#error the plan uses policies of a folder: see tierce embed --policies\n#endif\n",
        None => "",
    };
    let mut header = TraceHeader::of(&plan, &ids, Source::Run);
    "board".clone_into(&mut header.clock);
    let name = &args.name;
    let guard = format!("TIERCE_PLAN_{}_H", name.to_uppercase());
    let mut tasks = String::new();
    for (task, id) in plan.tasks.iter().zip(&ids.tasks) {
        let load = load_of(task.load.as_ref());
        writeln!(tasks, "\t{{.name = {}, .id = {id}{load}}},", quoted(&task.name))?;
    }
    let (nodes, edges) = (plan.nodes.len() + plan.tasks.len(), plan.edges.len() + 1);
    print!(
        "/* Made by tierce embed. */\n#ifndef {guard}\n#define {guard}\n\n{needs}#include \"tierce.h\"\n#include \"plan.h\"\n\n\
         _Static_assert(TIERCE_NODES > {nodes} && TIERCE_EDGES > {edges}, \"the plan needs larger pools\");\n\
         #ifdef TIERCE_POLICIES\n_Static_assert(((TIERCE_POLICIES) & {set:#x}u) == {set:#x}u, \"the plan uses a policy that was left out\");\n#endif\n\n\
         static const struct plan_step {name}_steps[] = {{\n{steps}}};\n\n\
         static const struct plan_task {name}_tasks[] = {{\n{tasks}}};\n\n\
         static const struct plan {name} = {{\n\t.step = {name}_steps,\n\t.steps = sizeof {name}_steps / sizeof *{name}_steps,\n\
         \t.task = {name}_tasks,\n\t.tasks = {},\n\t.header = {},\n}};\n\n#endif\n",
        plan.tasks.len(),
        quoted(&serde_json::to_string(&header)?),
    );
    Ok(ExitCode::SUCCESS)
}
