//! Scenarios as data: a plan in one line or in TOML, and the schedule it gives as text.
//!
//! Every run checks the engine's invariants after every instant, that the events alone give the same statistics as the
//! simulator's own, and that a second run gives the same events.
#![allow(dead_code)]

#[path = "../../../../tests/seen.rs"]
pub mod seen;

use expect_test::Expect;
use std::fmt::Write;
use tierce_admission::{Admission, Deadlines, PlanExt, TaskVerdict};
use tierce_plan::{Plan, Task};
use tierce_sim::{Options, Simulation, Stream};
use tierce_trace::report::{NodeReport, TaskReport};
use tierce_trace::{Event, Kind, Report, Stats, TraceHeader};

pub const MS: u64 = 1_000_000;

/// What a plan does until then; every instant is checked.
pub fn report_of(plan: &Plan, seed: u64, until_ns: u64) -> Report {
    let mut simulation = Simulation::new(plan, Options { seed, check: true, ..Options::default() }).unwrap();
    simulation.run_until(until_ns).unwrap();
    simulation.report()
}

/// Plays a random plan three times: no response is longer than check says, and no deadline that it shows is missed. `seen` hears the
/// longest response of each task that has a bound, and the bound. How many tasks met deadlines that are shown.
pub fn within_bounds(
    plan: &Plan,
    verdict: &Admission,
    seed: u64,
    mut seen: impl FnMut(&Task, &TaskVerdict, u64, u64),
) -> u64 {
    let (text, mut met) = (&plan.sources.0[0].text, 0);
    for round in 0..3 {
        let report = report_of(plan, seed ^ round << 32, 400 * MS);
        for (task, verdict) in plan.tasks.iter().zip(&verdict.tasks) {
            let played = report.tasks.iter().find(|played| played.name == task.name).unwrap();
            let shown = verdict.deadlines == Deadlines::Met;
            met += u64::from(shown);
            assert!(!shown || played.misses == 0, "seed {seed}: {} misses\n{text}", task.name);
            let bound = verdict.response.and_then(|response| response.ns());
            let longest = played.response_ns.as_ref().map(|response| response.max);
            let (Some(bound), Some(longest)) = (bound, longest) else { continue };
            assert!(longest <= bound, "seed {seed}: {} {longest} > {bound}\n{text}", task.name);
            seen(task, verdict, longest, bound);
        }
    }
    met
}

/// Of random plans: `TIERCE_SEEDS=FROM..TO` in the environment, or the usual ones.
pub fn seeds() -> std::ops::Range<u64> {
    let seeds = std::env::var("TIERCE_SEEDS").ok();
    let seeds = seeds.as_deref().and_then(|range| range.split_once(".."));
    seeds.map_or(0..300, |(from, to)| from.parse().unwrap()..to.parse().unwrap())
}

/// Writes the text of a random plan.
pub struct Maker {
    pub draws: Stream,
    pub text: String,
    /// Names given so far.
    pub names: u64,
    /// Another parent that some children have.
    pub second: String,
    /// Some budgets have one that is there only while they are spent.
    pub overrun: bool,
}

impl Maker {
    pub fn new(seed: u64, what: &str) -> Maker {
        let draws = Stream::new(seed, what, 0);
        Maker { draws, text: String::new(), names: 0, second: String::new(), overrun: false }
    }

    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        self.draws.between(least, most)
    }

    /// So many locks for tasks below one node by deadlines or priorities, of one protocol.
    pub fn locks(&mut self, deadlines: bool, locks: u64) {
        let protocols: &[&str] = if deadlines {
            &["inheritance", "srp"]
        } else {
            &["inheritance", "ceiling", "immediate-ceiling"]
        };
        let protocol = protocols[self.between(0, protocols.len() as u64 - 1) as usize];
        for lock in 0..locks {
            let _ = writeln!(self.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
    }

    /// Sections within `length` us of work; a lock only after those of lower numbers.
    pub fn sections(&mut self, length: u64, held: u64, locks: u64) -> String {
        let (mut list, mut at) = (Vec::new(), 0);
        while at + 50 < length && list.len() < 3 && held < locks {
            let from = self.between(at, length - 50) / 50 * 50;
            let own = self.between(50, length - from) / 50 * 50;
            let lock = self.between(held, locks - 1);
            let inner =
                if self.between(0, 1) == 0 { self.sections(own, lock + 1, locks) } else { String::new() };
            list.push(format!("{{ lock = \"l{lock}\", at = \"{from}us\", length = \"{own}us\"{inner} }}"));
            at = from + own;
        }
        if list.is_empty() {
            String::new()
        } else {
            format!(", sections = [{}]", list.join(", "))
        }
    }

    /// ", regions = […]" within the least work of a job, in us; half of the lists end with it.
    pub fn regions(&mut self, least: u64, whole: bool) -> String {
        if whole {
            return ", preemption = \"none\"".into();
        }
        let (mut list, mut at) = (Vec::new(), 0);
        while at + 50 < least && list.len() < 3 {
            let from = self.between(at, least - 50) / 50 * 50;
            let own =
                if self.between(0, 2) == 0 { least - from } else { self.between(50, least - from) / 50 * 50 };
            list.push(format!("{{ at = \"{from}us\", length = \"{own}us\" }}"));
            at = from + own;
        }
        if list.is_empty() {
            return String::new();
        }
        format!(", regions = [{}]", list.join(", "))
    }

    /// ", longest_region = …" of jobs that work for up to so many us.
    pub fn floating(&mut self, most: u64) -> String {
        format!(", longest_region = \"{}us\"", self.between(1, most))
    }
}

impl Maker {
    /// Tasks on up to four CPUs, `load` times what fits, with locks between CPUs of one of these protocols.
    pub fn between_cpus(&mut self, protocols: &[&str], load: u64) -> Plan {
        let (cpus, locks) = (self.between(2, 4), self.between(1, 3));
        let protocol = protocols[self.between(0, protocols.len() as u64 - 1) as usize];
        for lock in 0..locks {
            let _ = writeln!(self.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
        let _ = writeln!(self.text, "[machine]\ncpus = {cpus}");
        let mut number = 0;
        for cpu in 0..cpus {
            let _ = writeln!(self.text, "[node.n{cpu}]\npolicy = \"fixed-priority\"\ncpu = {cpu}");
            let tasks = self.between(1, 4);
            // Only who is suspended has a priority among those of other CPUs.
            let first = if ["mpcp", "fmlp+"].contains(&protocol) { 9 + self.between(0, 3) } else { 9 };
            for task in 0..tasks {
                let period = self.between(4, 60) * 500;
                let work = (period * load * self.between(10, 60) / 100 / (tasks + 1) / 50 * 50).max(100);
                let sections = self.apart(work, locks);
                let phase = self.between(0, 40) * 50;
                let priority = if self.between(0, 5) == 0 { 3 } else { first - task };
                let release = self.release(period);
                let _ = writeln!(
                    self.text,
                    "[task.t{number}]\nunder.n{cpu} = {{ priority = {priority} }}\n\
                     load = {{ {release}, work = \"{work}us\", phase = \"{phase}us\"{sections} }}"
                );
                number += 1;
            }
        }
        parse(&self.text)
    }

    /// When jobs come, so many us apart.
    pub fn release(&mut self, period: u64) -> String {
        match self.between(0, 3) {
            0 => format!("separation = \"{period}us\", extra = \"500us\""),
            1 => format!("period = \"{period}us\", jitter = \"{}us\"", period / 4),
            _ => format!("period = \"{period}us\""),
        }
    }

    /// Sections one after the other, short ones mostly.
    fn apart(&mut self, work: u64, locks: u64) -> String {
        let (mut list, mut at) = (Vec::new(), 0);
        while at + 50 <= work && list.len() < 3 && self.between(0, 3) > 0 {
            let from = self.between(at, work - 50) / 50 * 50;
            let most = if self.between(0, 2) == 0 { work - from } else { (work - from).min(400) };
            let own = self.between(50, most) / 50 * 50;
            let lock = self.between(0, locks - 1);
            list.push(format!("{{ lock = \"l{lock}\", at = \"{from}us\", length = \"{own}us\" }}"));
            at = from + own;
        }
        if list.is_empty() {
            return String::new();
        }
        format!(", sections = [{}]", list.join(", "))
    }
}

/// More work than time: jobs of all CPUs go on being done.
pub fn everybody_goes_on(plan: &Plan, report: &Report, seed: u64) {
    let last = |node: usize| {
        let of = |task: usize| {
            plan.edges.iter().any(|edge| edge.parent == node && edge.child == tierce_plan::Child::Task(task))
        };
        (0..plan.tasks.len()).filter(|task| of(*task)).map(|task| report.tasks[task].jobs).sum::<u64>()
    };
    assert!((0..plan.nodes.len()).all(|node| last(node) > 3), "seed {seed}: {}", report.tables());
}

/// `cpus 1; edf; A 2/10; B 3/15 phase 1; H busy; 20`: machine, policy of the root (and its quantum), tasks, and for how
/// long. Plain numbers are milliseconds. A task has work/period or `busy`, then `deadline`, `phase`, and the parameters
/// of its edge: `priority`, `weight`, `warp`, `budget` (budget/period).
fn expand(line: &str) -> (String, u64) {
    let mut parts: Vec<_> = line.split(';').map(str::trim).collect();
    let for_ms = parts.pop().and_then(|last| last.parse().ok()).expect("it ends with a time");
    let cpus = parts[0].strip_prefix("cpus ").expect("it begins with cpus");
    let (policy, quantum) = parts[1].split_once(' ').unwrap_or((parts[1], ""));
    let mut text = format!("machine.cpus = {cpus}\n[node.top]\npolicy = \"{policy}\"\ncpus = \"all\"\n");
    if let Some(quantum) = quantum.strip_prefix("quantum ") {
        text += &format!("quantum = \"{quantum}ms\"\n");
    }
    for part in &parts[2..] {
        let mut words = part.split_whitespace();
        let (name, load) = (words.next().expect("a name"), words.next().expect("a load"));
        let (mut edge, mut fields) = (Vec::new(), Vec::new());
        while let (Some(word), Some(value)) = (words.next(), words.next()) {
            match word {
                "deadline" | "phase" => fields.push(format!("{word} = \"{value}ms\"")),
                "warp" => edge.push(format!("{word} = \"{value}ms\"")),
                "budget" => {
                    let (budget, period) = value.split_once('/').expect("budget/period");
                    edge.push(format!("budget = \"{budget}ms\", period = \"{period}ms\""));
                }
                _ => edge.push(format!("{word} = {value}")),
            }
        }
        let load = match load.split_once('/') {
            None => "\"busy\"".to_string(),
            Some((work, period)) => {
                fields.insert(0, format!("work = \"{work}ms\", period = \"{period}ms\""));
                format!("{{ {} }}", fields.join(", "))
            }
        };
        text += &format!("[task.{name}]\nunder.top = {{ {} }}\nload = {load}\n", edge.join(", "));
    }
    (text, for_ms)
}

pub fn parse(text: &str) -> Plan {
    Plan::parse(text, "scenario").unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()))
}

/// What a run gave.
pub struct Run {
    pub header: TraceHeader,
    pub events: Vec<Event>,
    pub closing: Vec<Event>,
    pub report: Report,
}

impl Run {
    pub fn task(&self, name: &str) -> &TaskReport {
        self.report.tasks.iter().find(|task| task.name == name).unwrap_or_else(|| panic!("no task {name}"))
    }
    pub fn node(&self, name: &str) -> &NodeReport {
        self.report.nodes.iter().find(|node| node.name == name).unwrap_or_else(|| panic!("no node {name}"))
    }
    pub fn misses(&self) -> u64 {
        self.report.tasks.iter().map(|task| task.misses).sum()
    }
}

fn once(plan: &Plan, for_ns: u64, options: Options) -> Run {
    let mut simulation = Simulation::new(plan, options).unwrap_or_else(|error| panic!("{error}"));
    simulation.run_until(for_ns).unwrap_or_else(|broken| panic!("{broken}"));
    let (header, report) = (simulation.header(), simulation.report());
    Run { header, events: simulation.take_events(), closing: simulation.closing_events(), report }
}

/// Simulate, with everything checked.
pub fn run(plan: &Plan, for_ns: u64, seed: u64) -> Run {
    run_with(plan, for_ns, Options { seed, ..Options::default() })
}

/// The same with options.
pub fn run_with(plan: &Plan, for_ns: u64, options: Options) -> Run {
    let traced = Options { trace: true, check: true, ..options };
    let run = once(plan, for_ns, traced.clone());
    assert!(run.events.is_sorted_by_key(|event| event.now_ns), "events are in the order of time");
    let mut stats = Stats::new(&run.header);
    run.events.iter().chain(&run.closing).for_each(|event| stats.event(event));
    stats.finish(for_ns);
    assert_eq!(stats.unusable, 0);
    same(&stats.report(), &told_by_events(&run.report), "from events and counted");
    promises_are_told(&run);
    let plain = once(plan, for_ns, Options { trace: false, check: false, ..traced.clone() });
    assert!(plain.events.is_empty());
    same(&plain.report, &run.report, "without and with a trace");
    assert_eq!(plain.report.chains, run.report.chains, "without and with a trace");
    assert_eq!(once(plan, for_ns, traced).events, run.events, "the same again");
    run
}

/// No event tells of what was promised.
fn told_by_events(report: &Report) -> Report {
    let mut report = report.clone();
    let nodes = report.nodes.iter_mut().flat_map(|node| &mut node.under);
    let tasks = report.tasks.iter_mut().flat_map(|task| &mut task.under);
    nodes.chain(tasks).for_each(|edge| edge.promise = None);
    report
}

/// What is missing of promises is what events say, and what waits at the end.
fn promises_are_told(run: &Run) {
    let edges = run.report.nodes.iter().flat_map(|node| &node.under);
    for edge in edges.chain(run.report.tasks.iter().flat_map(|task| &task.under)) {
        let of = |event: &&Event| event.kind() == Some(Kind::Unkept) && event.a == edge.edge;
        let told: u64 = run.events.iter().filter(of).map(|event| event.value).sum();
        let missing_ns = edge.promise.map_or(0, |promise| promise.missing_ns);
        assert!(told <= missing_ns, "{}: {told} of {missing_ns} ns", edge.parent);
        if let Some(promise) = edge.promise {
            assert!(promise.received_ns <= edge.cpu_ns && promise.not_kept <= promise.windows, "{promise:?}");
        }
    }
}

/// Decisions and grants that change nothing are counted differently by engine and events, which know of no chains; all else has to
/// agree.
fn same(left: &Report, right: &Report, what: &str) {
    let comparable = |report: &Report| {
        let mut report = report.clone();
        report.cpus.iter_mut().for_each(|cpu| cpu.switches = 0);
        report.chains.clear();
        report
    };
    assert_eq!(comparable(left), comparable(right), "{what}");
}

fn ms(ns: u64) -> String {
    let text = format!("{}.{:06}", ns / MS, ns % MS);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// Who runs from when on, one line per CPU; then misses.
pub fn schedule(run: &Run) -> String {
    let name = |id: u32| if id == 0 { "idle" } else { run.header.name(id).unwrap_or("?") };
    let mut lines = Vec::new();
    for cpu in 0..run.header.cpus {
        let mut changes: Vec<(u64, u32)> = vec![(0, 0)];
        for event in &run.events {
            if event.kind() == Some(Kind::Decision) && u32::from(event.cpu) == cpu {
                changes.retain(|change| change.0 < event.now_ns); // the last one of an instant counts
                changes.push((event.now_ns, event.a));
            }
        }
        changes.dedup_by_key(|change| change.1);
        let changes: Vec<_> = changes.iter().map(|&(at, id)| format!("{} {}", ms(at), name(id))).collect();
        lines.push(changes.join(", "));
    }
    let misses = run.events.iter().filter(|event| event.kind() == Some(Kind::Miss));
    let misses: Vec<_> = misses.map(|event| format!("{} {}", ms(event.now_ns), name(event.a))).collect();
    if !misses.is_empty() {
        lines.push(format!("misses: {}", misses.join(", ")));
    }
    lines.join("\n")
}

/// One line, one schedule.
pub fn check(line: &str, expect: Expect) {
    let (text, for_ms) = expand(line);
    expect.assert_eq(&schedule(&run(&parse(&text), for_ms * MS, 1)));
}

/// The same for a plan in TOML.
pub fn check_plan(text: &str, for_ms: u64, expect: Expect) {
    expect.assert_eq(&schedule(&run(&parse(text), for_ms * MS, 1)));
}

/// Nodes `left` and `right`, each with a CPU, and locks `net` and `own`.
pub fn two_cpus(protocol: &str, machine: &str, tasks: &str) -> Plan {
    parse(&format!(
        r#"
        machine.cpus = 2
        {machine}
        [lock.net]
        protocol = "{protocol}"
        [lock.own]
        protocol = "{protocol}"
        [node.left]
        policy = "fixed-priority"
        cpu = 0
        [node.right]
        policy = "fixed-priority"
        cpu = 1
        {tasks}"#
    ))
}

/// The logger has the lock from 0.5 ms on, the sender wants it at 1 ms. On the CPU of each there is somebody more urgent, who does not use
/// it.
pub const NET: &str = r#"
    [task.control]
    under.left = { priority = 2 }
    load = { period = "20ms", phase = "1500us", work = "1ms" }
    [task.sender]
    under.left = { priority = 1 }
    load = { period = "40ms", work = "5ms", sections = [{ lock = "net", at = "1ms", length = "2ms" }] }
    [task.urgent]
    under.right = { priority = 2 }
    load = { period = "40ms", phase = "1ms", work = "3ms" }
    [task.logger]
    under.right = { priority = 1 }
    load = { period = "40ms", phase = "500us", work = "6ms", sections = [{ lock = "net", length = "4ms" }] }
"#;
