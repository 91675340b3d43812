//! Random plans of every shape: invariants after every instant, laws of time and of reservations.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

mod common;

use common::MS;
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation, Stream};
use tierce_trace::Stats;

const POLICIES: [&str; 5] = ["fixed-priority", "edf", "reservation", "fair", "round-robin"];

struct Maker {
    draws: Stream,
    text: String,
    /// Name and policy of each node so far.
    nodes: Vec<(String, usize)>,
    /// A child's edges may wait for its other budgets.
    budgets: bool,
}

impl Maker {
    fn chance(&mut self, percent: u64) -> bool {
        self.draws.between(1, 100) <= percent
    }

    fn edge(&mut self, parent: usize, cpus: u64) -> String {
        let (name, policy) = self.nodes[parent].clone();
        let mut params = match POLICIES[policy] {
            "fixed-priority" => format!("priority = {}", self.draws.between(0, 3)),
            "edf" if self.chance(30) => format!("deadline = \"{}ms\"", self.draws.between(1, 20)),
            "edf" => String::new(),
            "reservation" => {
                self.budgets = true;
                let period = self.draws.between(2000, 20_000);
                let budget = self.draws.between(100, period / 4);
                let deadline = self.draws.between(budget.max(period / 2), period);
                format!("budget = \"{budget}us\", period = \"{period}us\", deadline = \"{deadline}us\"")
            }
            "fair" if self.chance(20) => format!("warp = \"{}ms\"", self.draws.between(1, 9)),
            "fair" => format!("weight = {}", self.draws.between(1, 300)),
            _ => String::new(),
        };
        let comma = |params: &str| if params.is_empty() { "" } else { ", " };
        if cpus > 1 && self.chance(20) {
            params += &format!("{}rank = {}", comma(&params), self.draws.between(0, 2));
        }
        if self.budgets && POLICIES[policy] != "reservation" && self.chance(15) {
            params += &format!("{}when = \"spent\"", comma(&params));
        }
        format!("under.{name} = {{ {params} }}\n")
    }

    fn edges(&mut self, most: u64, cpus: u64) {
        let mut parents: Vec<usize> = Vec::new();
        for _ in 0..self.draws.between(1, most) {
            let parent = self.draws.between(0, self.nodes.len() as u64 - 1) as usize;
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        self.budgets = false;
        for parent in parents {
            let edge = self.edge(parent, cpus);
            self.text += &edge;
        }
    }

    fn node(&mut self, name: String) -> usize {
        let policy = self.draws.between(0, POLICIES.len() as u64 - 1) as usize;
        writeln!(self.text, "[node.{name}]\npolicy = \"{}\"", POLICIES[policy]).unwrap();
        if policy >= 3 {
            writeln!(self.text, "quantum = \"{}us\"", self.draws.between(500, 6000)).unwrap();
        }
        self.nodes.push((name, policy));
        policy
    }

    fn load(&mut self) -> String {
        let ms = |draws: &mut Stream, least: u64, most: u64| {
            format!("\"{}us\"", draws.between(least * 1000, most * 1000))
        };
        let draws = &mut self.draws;
        match draws.between(0, 4) {
            0 => "\"busy\"".into(),
            1 => format!(
                "{{ period = {}, work = {{ min = \"300us\", max = {} }}, jitter = \"2ms\" }}",
                ms(draws, 5, 30),
                ms(draws, 1, 5)
            ),
            2 => {
                format!("{{ period = \"{}ms\", work = \"{}ms\" }}", draws.between(4, 20), draws.between(1, 3))
            }
            3 => format!(
                "{{ separation = {}, extra = {}, work = \"2ms\" }}",
                ms(draws, 3, 20),
                ms(draws, 1, 9)
            ),
            _ => format!(
                "{{ phases = [{{ run = {} }}, {{ suspend = {} }}, {{ run = {} }}, {{ sleep = {} }}] }}",
                ms(draws, 1, 5),
                ms(draws, 1, 5),
                ms(draws, 1, 5),
                ms(draws, 1, 20)
            ),
        }
    }
}

fn plan_text(seed: u64) -> String {
    let mut maker =
        Maker { draws: Stream::new(seed, "plan", 0), text: String::new(), nodes: Vec::new(), budgets: false };
    let cpus = maker.draws.between(1, 4);
    writeln!(maker.text, "[machine]\ncpus = {cpus}").unwrap();
    if maker.chance(40) {
        maker.text +=
            "costs = { switch = \"20us\", timer = \"5us\", migration = \"30us\", level = \"3us\" }\n";
    }
    if maker.chance(30) {
        maker.text += "interrupts = [{ every = \"2ms\", takes = { min = \"10us\", max = \"300us\" }, arrival = \"poisson\" }]\n";
    }
    if maker.chance(25) {
        maker.node("top".into());
        maker.text += "cpus = \"all\"\n";
    } else {
        for cpu in 0..cpus {
            maker.node(format!("top{cpu}"));
            writeln!(maker.text, "cpu = {cpu}").unwrap();
        }
    }
    for index in 0..maker.draws.between(0, 6) {
        // the parents are chosen among the nodes before it
        let name = format!("n{index}");
        let mut policies = std::mem::take(&mut maker.nodes);
        maker.node(name);
        let own = maker.nodes.pop().unwrap();
        maker.nodes.append(&mut policies);
        maker.edges(3, cpus);
        if cpus > 1 && maker.chance(20) {
            maker.text += "concurrency = 1\n";
        }
        maker.nodes.push(own);
    }
    for index in 0..maker.draws.between(1, 8) {
        writeln!(maker.text, "[task.t{index}]").unwrap();
        maker.edges(2, cpus);
        let load = maker.load();
        writeln!(maker.text, "load = {load}").unwrap();
        if cpus > 1 && maker.chance(15) {
            writeln!(maker.text, "affinity = [{}]", maker.draws.between(0, cpus - 1)).unwrap();
        }
    }
    maker.text
}

/// Whether the plan was admitted.
fn play(seed: u64) -> bool {
    const FOR_NS: u64 = 150 * MS;
    let text = plan_text(seed);
    let Ok(plan) = Plan::parse(&text, "random") else { return false };
    let options = Options { seed, trace: true, check: true, ..Options::default() };
    let Ok(mut simulation) = Simulation::new(&plan, options) else { return false };
    let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| simulation.run_until(FOR_NS)));
    match played {
        Ok(Ok(())) => {}
        Ok(Err(broken)) => panic!("seed {seed}: {broken}\n{text}"),
        Err(_) => panic!("seed {seed}: see above\n{text}"),
    }
    let report = simulation.report();
    for cpu in &report.cpus {
        assert_eq!(cpu.used_ns + cpu.idle_ns + cpu.stolen_ns, FOR_NS, "seed {seed}\n{text}");
    }
    let used: u64 = report.cpus.iter().map(|cpu| cpu.used_ns).sum();
    assert_eq!(report.tasks.iter().map(|task| task.cpu_ns).sum::<u64>(), used, "seed {seed}\n{text}");
    for task in &report.tasks {
        let sum: u64 = task.under.iter().map(|edge| edge.cpu_ns).sum();
        assert_eq!(sum, task.cpu_ns, "{}, seed {seed}\n{text}", task.name);
    }
    // Budgets are exact but for what one decision may be late: costs and interrupts.
    let exact = !text.contains("costs") && !text.contains("interrupts");
    let edges = report
        .tasks
        .iter()
        .flat_map(|task| &task.under)
        .chain(report.nodes.iter().flat_map(|node| &node.under));
    for edge in edges {
        if let (Some(budget), Some(supply)) = (edge.budget_ns, edge.supply_ns) {
            let late = if exact { 0 } else { 2 * MS };
            assert!(
                supply.max <= budget + late,
                "edge {}: {} of {budget}, seed {seed}\n{text}",
                edge.edge,
                supply.max
            );
        }
    }
    let mut stats = Stats::new(&simulation.header());
    let events = simulation.take_events();
    events.iter().chain(&simulation.closing_events()).for_each(|event| stats.event(event));
    stats.finish(FOR_NS);
    let comparable = |report: &tierce_trace::Report| {
        let under =
            report.tasks.iter().map(|task| &task.under).chain(report.nodes.iter().map(|node| &node.under));
        let edges: Vec<_> =
            under.flatten().map(|edge| (edge.edge, edge.cpu_ns, edge.throttles, edge.supply_ns)).collect();
        let tasks: Vec<_> =
            report.tasks.iter().map(|task| (task.cpu_ns, task.jobs, task.misses, task.switches)).collect();
        (tasks, edges)
    };
    assert_eq!(comparable(&stats.report()), comparable(&report), "seed {seed}\n{text}");
    true
}

#[test]
fn random_plans() {
    let given = std::env::var("TIERCE_SEEDS").ok();
    let (from, to) = match given.as_deref().and_then(|given| given.split_once("..")) {
        Some((from, to)) => (from.parse().expect("a number"), to.parse().expect("a number")),
        None => (0, 2000),
    };
    let admitted = (from..to).filter(|&seed| play(seed)).count() as u64;
    println!("seeds {from}..{to}: {admitted} plans admitted");
    assert!(admitted * 3 >= to - from, "only {admitted} plans were admitted");
}
