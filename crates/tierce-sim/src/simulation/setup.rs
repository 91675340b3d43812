//! A plan at time 0: its graph, its tasks asleep, its interrupts to come.

use super::chains::Chains;
use super::{Cpu, Interrupts, Options, Simulation, Task};
use crate::draw::Stream;
use crate::earliest::Earliest;
use crate::locks::{Locks, Script};
use crate::marks::Marks;
use crate::program::{Job, Program};
use crate::queue::Queue;
use crate::watch::Watch;
use tierce_plan::{Arrival, Child, Ids, Members, Plan, Refused, Topology};
use tierce_policy::{policies, Graph, NEVER};
use tierce_trace::{Kind, Source, Stats, TraceHeader};

impl Simulation {
    /// The plan at time 0, nobody running yet.
    pub fn new(plan: &Plan, options: Options) -> Result<Simulation, Refused> {
        let topology = plan.machine.topology();
        let (mut graph, ids) = graph_of(plan, &topology)?;
        graph.set_quiet(true);
        graph.set_floor_ns(options.floor_ns);
        let mut header = TraceHeader::of(plan, &ids, Source::Sim);
        header.seed = Some(options.seed);
        let stats = Stats::new(&header);
        let observed = stats.observed_kinds();
        if options.trace {
            graph.trace(true);
        } else {
            graph.trace_kinds(observed | 1 << Kind::Replenish as u64);
        }
        let mut queue = Queue::default();
        let tasks = tasks_of(plan, &options, &mut queue);
        let interrupts = interrupts_of(plan, options.seed, &mut queue);
        let watch = options.trace.then(|| Watch::new(tasks.iter().map(|task| task.program.arrivals())));
        Ok(Simulation {
            first_task: ids.tasks.first().copied().unwrap_or(u32::MAX),
            cpus: (0..plan.machine.cpus).map(|_| Cpu::idle()).collect(),
            cpus_next_ns: Earliest::new(plan.machine.cpus),
            touched: Marks::new(plan.machine.cpus),
            observes: observed != 0,
            spreads: plan.nodes.iter().any(|node| node.family.is_some()),
            kicked: Marks::new(plan.machine.cpus),
            costs: options.costs.unwrap_or(plan.machine.costs),
            topology,
            late_ns: options.late_ns,
            events: Vec::new(),
            check: options.check,
            now_ns: 0,
            instants: 0,
            graph,
            ids,
            tasks,
            interrupts,
            locks: Locks::of(plan),
            queue,
            chains: Chains::of(plan),
            header,
            stats,
            watch,
        })
    }
}

impl Cpu {
    fn idle() -> Cpu {
        Cpu {
            task: 0,
            worker: 0,
            from_ns: 0,
            end_ns: NEVER,
            until_ns: NEVER,
            interrupt_end_ns: NEVER,
            timer: false,
            switches: 0,
            returning: false,
            scheduling: false,
        }
    }
}

/// The plan's graph, on CPUs that know how near they are to each other.
fn graph_of(plan: &Plan, topology: &Topology) -> Result<(Graph, Ids), Refused> {
    let refused =
        |error: tierce_policy::Error| Refused { place: None, what: "machine".into(), why: error.into() };
    let mut graph = Graph::new(plan.machine.cpus, 0).map_err(refused)?;
    let ids = plan.build(&mut graph.at(0), Members::Played)?;
    for (cpu, near) in topology.near.iter().enumerate() {
        graph.near(cpu as u32, near.core, near.cache, near.memory).map_err(refused)?;
    }
    Ok((graph, ids))
}

/// Each task asleep; the queue says until when.
fn tasks_of(plan: &Plan, options: &Options, queue: &mut Queue) -> Vec<Task> {
    let mut tasks: Vec<Task> = (0..plan.tasks.len())
        .map(|index| {
            let (program, begin_ns) = Program::new(plan, index, options.seed);
            if begin_ns != NEVER {
                queue.push(begin_ns.saturating_add(options.late_ns), index as u32);
            }
            Task {
                program,
                left_ns: 0,
                job: Job { release_ns: 0, deadline_ns: NEVER },
                begun: 0,
                done: 0,
                constrained_ns: 0,
                started: true,
                announces: false,
                last_cpu: u32::MAX,
                script: Script::of(plan, index),
                waits: false,
            }
        })
        .collect();
    for edge in &plan.edges {
        if let Child::Task(task) = edge.child {
            tasks[task].announces |= heeds_deadlines(plan, edge.parent);
        }
    }
    tasks
}

/// The interrupts of each CPU; in the queue they follow the tasks.
fn interrupts_of(plan: &Plan, seed: u64, queue: &mut Queue) -> Vec<Interrupts> {
    let mut interrupts = Vec::new();
    for (number, source) in plan.machine.interrupts.iter().enumerate() {
        for cpu in (0..plan.machine.cpus).filter(|&cpu| source.cpu.is_none_or(|only| only == cpu)) {
            let mut draws = Stream::new(seed, "interrupt", (number as u64) << 32 | u64::from(cpu));
            let poisson = source.arrival == Arrival::Poisson;
            let wait_ns = if poisson { draws.exponential(source.every_ns) } else { source.phase_ns };
            let at_ns = plan.machine.epoch_ns.saturating_add(wait_ns);
            queue.push(at_ns, (plan.tasks.len() + interrupts.len()) as u32);
            let (every_ns, takes) = (source.every_ns, source.takes.clone());
            interrupts.push(Interrupts { cpu, every_ns, takes, at: 0, poisson, draws });
        }
    }
    interrupts
}

/// Do tasks below this node have to announce their deadlines?
fn heeds_deadlines(plan: &Plan, node: usize) -> bool {
    policies().iter().any(|policy| policy.number == plan.nodes[node].policy && policy.heeds_deadlines)
}
