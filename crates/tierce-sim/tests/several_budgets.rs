//! Nodes with budgets on several CPUs (hyper containers): what `tierce check` promises of them, the simulator gives. Random plans on
//! two to four CPUs, with others that sleep and wake beside the budgets, whose periods begin anew then; cases that reach the
//! bound; and one in which two budgets give less than one of them alone.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{Maker, MS};
use std::collections::BTreeMap;
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_guarantee::{whole, Exact, Guarantee, Kind as Type, Parameter, Supply};
use tierce_plan::{Load, Plan};
use tierce_sim::{Options, Simulation};
use tierce_trace::{Kind, TraceHeader};

/// Steps of 100 us.
fn time(tenths: u64) -> String {
    format!("{}us", tenths * 100)
}

/// The text of a plan; `container` is the node in question.
fn plan(seed: u64) -> String {
    let mut maker = Maker::new(seed, "several budgets");
    let cpus = maker.between(2, 4);
    let by_priority = maker.between(0, 2) == 0;
    let replenishment = if by_priority && maker.between(0, 1) == 0 { "periodic" } else { "hard" };
    let order = if by_priority { "fixed-priority" } else { "edf" };
    let _ = writeln!(
        maker.text,
        "machine.cpus = {cpus}\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
         [node.rt]\npolicy = \"reservation\"\norder = \"{order}\"\nreplenishment = \"{replenishment}\"\n\
         per_cpu = true\nunder.top = {{ priority = 1 }}\n[node.rest]\npolicy = \"fair\"\nper_cpu = true\nspread = false\n\
         under.top = {{}}"
    );
    let mut edges = Vec::new();
    for cpu in 0..cpus {
        if maker.between(0, 3) == 0 {
            let (period, work) = (maker.between(50, 200), maker.between(1, 12));
            let (period, work, phase) = (time(period), time(work), time(maker.between(0, 50)));
            let _ = writeln!(
                maker.text,
                "[task.above{cpu}]\nunder.top = {{ cpu = {cpu}, priority = 2 }}\n\
                 load = {{ period = \"{period}\", work = \"{work}\", phase = \"{phase}\" }}"
            );
        }
        let period = maker.between(30, 200);
        let budget = maker.between(3, period * 2 / 5);
        let priority = maker.between(0, 2);
        let priority = if by_priority { format!(", priority = {priority}") } else { String::new() };
        edges.push(format!(
            "{{ cpu = {cpu}, budget = \"{}\", period = \"{}\"{priority} }}",
            time(budget),
            time(period)
        ));
        let others = maker.between(0, 2);
        for other in 0..others {
            let period = maker.between(20, 250);
            let budget = maker.between(2, period * 60 / 100 / others.max(2));
            let load = match maker.between(0, 3) {
                0 => "\"busy\"".to_string(),
                1 => format!(
                    "{{ period = \"{}\", work = \"{}\", phase = \"{}\" }}",
                    time(period),
                    time(budget),
                    time(maker.between(0, period))
                ),
                _ => format!(
                    "{{ phases = [{{ run = \"{}\" }}, {{ sleep = \"{}\" }}, {{ run = \"{}\" }}, {{ sleep = \"{}\" }}] }}",
                    time(maker.between(1, budget)),
                    time(maker.between(1, period)),
                    time(maker.between(1, 2 * budget)),
                    time(maker.between(1, 2 * period))
                ),
            };
            let priority = maker.between(0, 2);
            let priority = if by_priority { format!(", priority = {priority}") } else { String::new() };
            let _ = writeln!(
                maker.text,
                "[task.o{cpu}_{other}]\nunder.rt = {{ cpu = {cpu}, budget = \"{}\", period = \"{}\"{priority} }}\nload = {load}",
                time(budget),
                time(period)
            );
        }
    }
    let policy = ["fixed-priority", "edf", "fixed-priority", "fair"][maker.between(0, 3) as usize];
    let concurrency = if maker.between(0, 4) == 0 { maker.between(1, cpus) } else { 0 };
    let concurrency = if concurrency > 0 { format!("concurrency = {concurrency}\n") } else { String::new() };
    let edges = edges.join(", ");
    let _ =
        writeln!(maker.text, "[node.container]\npolicy = \"{policy}\"\n{concurrency}under.rt = [{edges}]");
    let tasks = if policy == "fair" { 1 } else { maker.between(1, 4) };
    for task in 0..tasks {
        let period = maker.between(150, 1_500);
        let work = maker.between(1, period / 20);
        let edge =
            if policy == "fixed-priority" { format!("priority = {}", 9 - task) } else { String::new() };
        let load = match maker.between(0, 5) {
            0 if policy != "edf" => "\"busy\"".to_string(),
            1 => format!(
                "{{ separation = \"{}\", extra = \"{}\", work = \"{}\", phase = \"{}\" }}",
                time(period),
                time(maker.between(1, 100)),
                time(work),
                time(maker.between(0, 200))
            ),
            2 => format!(
                "{{ period = \"{}\", work = \"{}\", jitter = \"{}\" }}",
                time(period),
                time(work),
                time(maker.between(1, 40))
            ),
            _ => format!(
                "{{ period = \"{}\", work = \"{}\", phase = \"{}\" }}",
                time(period),
                time(work),
                time(maker.between(0, 200))
            ),
        };
        let _ = writeln!(maker.text, "[task.t{task}]\nunder.container = {{ {edge} }}\nload = {load}");
    }
    if policy == "fixed-priority" && maker.between(0, 2) == 0 {
        let _ = writeln!(maker.text, "[task.low]\nunder.container = {{ priority = 0 }}\nload = \"busy\"");
    }
    for cpu in 0..cpus {
        let _ = writeln!(maker.text, "[task.hog{cpu}]\nunder.rest = {{ cpu = {cpu} }}\nload = \"busy\"");
    }
    maker.text
}

/// CPU time before any moment: begins of straight pieces, what there was until then, CPUs from then on.
struct Pattern(Vec<(u64, u64, u64)>);

impl Pattern {
    /// Of whatever runs in these stretches.
    fn new(runs: &[(u64, u64)]) -> Self {
        let mut steps: BTreeMap<u64, i64> = BTreeMap::from([(0, 0)]);
        for (begin, end) in runs {
            *steps.entry(*begin).or_default() += 1;
            *steps.entry(*end).or_default() -= 1;
        }
        let (mut pieces, mut cpus, mut sum, mut before) = (Vec::new(), 0, 0, 0);
        for (at, step) in steps {
            sum += cpus as u64 * (at - before);
            cpus += step;
            before = at;
            pieces.push((at, sum, cpus as u64));
        }
        Self(pieces)
    }

    fn before(&self, at: u64) -> u64 {
        let (begin, sum, cpus) = self.0[self.0.partition_point(|piece| piece.0 <= at) - 1];
        sum + cpus * (at - begin)
    }

    /// The least in a window of that length in [0, end].
    fn least(&self, window: u64, end: u64) -> u64 {
        let turns = self.0.iter().flat_map(|piece| [Some(piece.0), piece.0.checked_sub(window)]);
        let begins = turns.flatten().chain([end - window]).filter(|begin| begin + window <= end);
        begins.map(|begin| self.before(begin + window) - self.before(begin)).min().unwrap_or(0)
    }

    /// Windows of many lengths hold what a PSBE is sure to supply. Returns the most of what is allowed to be missing that was,
    /// in per cent.
    fn keeps(&self, guarantee: &Guarantee, end: u64) -> Result<u64, String> {
        let (share, error) = (guarantee.share(), guarantee.get(Parameter::Error).expect("PSBE").clone());
        let gap = whole_ns(&(&error / &share + whole(1)));
        let mut worst = 0;
        for tenth in (5..=20).chain([25, 30, 40, 60, 80, 120, 200]) {
            let window = gap * tenth / 10;
            if window > end {
                break;
            }
            let (has, wants) = (self.least(window, end), Supply::of(guarantee).at(&whole(window)));
            if whole(has) < wants {
                return Err(format!("{guarantee}: {has} ns in a window of {window} ns, promised {wants}"));
            }
            let missing = &share * whole(window) - whole(has);
            if missing > whole(0) {
                worst = worst.max(whole_ns(&(missing * whole(100) / (&error + whole(1)))));
            }
        }
        Ok(worst)
    }
}

fn whole_ns(time: &Exact) -> u64 {
    u64::try_from(time.ceil().to_integer()).unwrap()
}

/// Stretches in which tasks with these ids run.
fn runs(simulation: &mut Simulation, cpus: u32, end: u64) -> (TraceHeader, Vec<(u32, u64, u64)>) {
    let header = simulation.header();
    let mut changes: Vec<Vec<(u64, u32)>> = vec![vec![(0, 0)]; cpus as usize];
    for event in simulation.take_events().iter().filter(|event| event.kind() == Some(Kind::Decision)) {
        let changes = &mut changes[usize::from(event.cpu)];
        changes.retain(|change| change.0 < event.now_ns); // the last one of an instant counts
        changes.push((event.now_ns, event.a));
    }
    changes.iter_mut().for_each(|changes| changes.push((end, 0)));
    let pairs = changes.iter().flat_map(|changes| changes.windows(2));
    let runs = pairs.map(|pair| (pair[0].1, pair[0].0, pair[1].0)).filter(|run| run.0 != 0);
    (header, runs.collect())
}

const END: u64 = 3_000 * MS;

#[derive(Debug, Default)]
struct Held {
    plans: u32,
    met: u32,
    responses: u32,
    near: u32,
    shares: u32,
    nodes: u32,
    /// Of a PSBE's error, in per cent.
    worst: u64,
}

fn play(seed: u64, text: &str, held: &mut Held) {
    let plan = Plan::parse(text, "several budgets")
        .unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
    let admission = plan.admit();
    let laws = admission.nodes.iter().all(|node| node.failures.is_empty());
    if !laws {
        return; // budgets that do not fit
    }
    held.plans += 1;
    let options = Options { seed, trace: true, ..Options::default() };
    let mut simulation = Simulation::new(&plan, options).unwrap();
    simulation.run_until(END).unwrap();
    let report = simulation.report();
    let (header, runs) = runs(&mut simulation, plan.machine.cpus, END);
    let of = |name: &str| {
        let id = header.tasks.iter().find(|info| info.name == name).unwrap().id;
        runs.iter().filter(move |run| run.0 == id).map(|run| (run.1, run.2))
    };
    let container = plan.nodes.iter().position(|node| node.name == "container").unwrap();
    let inside: Vec<_> = (plan.edges.iter().filter(|edge| edge.parent == container))
        .map(|edge| plan.child_name(edge.child).to_string())
        .collect();
    let check = |name: &str, guarantee: &Guarantee, pattern: &Pattern| {
        pattern.keeps(guarantee, END).unwrap_or_else(|broken| panic!("seed {seed}, {name}: {broken}\n{text}"))
    };
    for (task, verdict) in plan.tasks.iter().zip(&admission.tasks) {
        if !inside.contains(&task.name) {
            continue;
        }
        let played = report.tasks.iter().find(|played| played.name == task.name).unwrap();
        if verdict.deadlines == Deadlines::Met {
            held.met += 1;
            assert_eq!(played.misses, 0, "seed {seed}: {} misses\n{text}", task.name);
        }
        let response = verdict.response.and_then(|response| response.ns());
        if let (Some(bound), Some(played)) = (response, &played.response_ns) {
            held.responses += 1;
            assert!(played.max <= bound, "seed {seed}: {} takes {} > {bound}\n{text}", task.name, played.max);
            held.near += u32::from(played.max * 10 >= bound * 9);
        }
        if task.load == Some(Load::Busy) {
            let pattern = Pattern::new(&of(&task.name).collect::<Vec<_>>());
            let sure = verdict.promises.iter().filter(|promise| promise.guarantee.kind() == Type::Psbe);
            for promise in sure {
                held.shares += 1;
                held.worst = held.worst.max(check(&task.name, &promise.guarantee, &pattern));
            }
        }
    }
    let busy = |task: &tierce_plan::Task| task.load == Some(Load::Busy) && inside.contains(&task.name);
    if plan.tasks.iter().any(busy) {
        let all: Vec<_> = inside.iter().flat_map(|name| of(name)).collect();
        let pattern = Pattern::new(&all);
        let promises = &admission.nodes[container].promises;
        for promise in promises.iter().filter(|promise| promise.guarantee.kind() == Type::Psbe) {
            held.nodes += 1;
            held.worst = held.worst.max(check("container", &promise.guarantee, &pattern));
        }
    }
}

#[test]
fn what_is_promised_is_given() {
    let seeds = std::env::var("TIERCE_SEEDS").unwrap_or_else(|_| "0..200".into());
    let (from, to) = seeds.split_once("..").expect("FROM..TO");
    println!("TIERCE_SEEDS={seeds}");
    let mut held = Held::default();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        play(seed, &plan(seed), &mut held);
    }
    println!("{held:?}");
    if seeds == "0..200" {
        assert!(held.met > 150 && held.responses > 150 && held.shares > 40 && held.nodes > 100, "{held:?}");
    }
}

/// CPU time of `j` from when it comes, and what is promised to it, held against all windows.
fn supply_of_j(text: &str, end: u64) -> (u64, Vec<String>) {
    let plan = Plan::parse(text, "two budgets").unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
    let mut simulation =
        Simulation::new(&plan, Options { trace: true, check: true, ..Options::default() }).unwrap();
    simulation.run_until(end).unwrap();
    let task = simulation.report().tasks.into_iter().find(|task| task.name == "j").unwrap();
    let admission = plan.admit();
    assert!(admission.nodes.iter().all(|node| node.failures.is_empty()));
    let (header, runs) = runs(&mut simulation, plan.machine.cpus, end);
    let id = header.tasks.iter().find(|info| info.name == "j").unwrap().id;
    let begin = plan.tasks.iter().find(|task| task.name == "j").unwrap();
    let Some(Load::Phases(load)) = &begin.load else { panic!("it has phases") };
    let shifted =
        runs.iter().filter(|run| run.0 == id).map(|run| (run.1 - load.phase_ns, run.2 - load.phase_ns));
    let pattern = Pattern::new(&shifted.collect::<Vec<_>>());
    let promises =
        &admission.tasks.iter().zip(&plan.tasks).find(|(_, task)| task.name == "j").unwrap().0.promises;
    for promise in promises.iter().filter(|promise| promise.guarantee.kind() == Type::Psbe) {
        pattern.keeps(&promise.guarantee, end - load.phase_ns).unwrap();
    }
    (task.cpu_ns, promises.iter().map(|promise| promise.guarantee.to_string()).collect())
}

/// Two budgets may be worth less than one of them: why no sum of supply functions is promised. `j` alone wants the CPU. In
/// each 18 ms `a` keeps its budget on CPU 0 away until 26 ms, and it comes for it when `j` has just begun on CPU 1; so the node has
/// nothing for CPU 0 at that moment. Then `c` takes CPU 1 for 10 us: the budget on CPU 0 is wanted again, in a new period, which lasts
/// until 36.1 ms, used up at 28.1 ms. Until then CPU 1 has gone by in the same way, and `b` has it.
#[test]
fn two_budgets_may_be_less_than_one() {
    let text = |second: &str| {
        format!(
            r#"
            machine.cpus = 2
            node.rt = {{ policy = "reservation", per_cpu = true }}
            [task.a]
            under.rt = {{ cpu = 0, budget = "8ms", period = "10ms" }}
            load = {{ period = "18ms", work = "8ms" }}
            [task.b]
            under.rt = {{ cpu = 1, budget = "15.9ms", period = "18ms" }}
            load = {{ period = "18ms", work = "15.9ms", phase = "10ms" }}
            [task.c]
            under.rt = {{ cpu = 1, budget = "10us", period = "1.8ms" }}
            load = {{ period = "18ms", work = "10us", phase = "8.1ms" }}
            [node.container]
            policy = "fixed-priority"
            under.rt = [{{ cpu = 0, budget = "2ms", period = "10ms" }}{second}]
            [task.j]
            under.container = {{}}
            load = {{ phases = [{{ run = "50min" }}], phase = "18.05ms" }}
            "#
        )
    };
    let (begin, periods) = (18 * MS, 100);
    let (one, alone) = supply_of_j(&text(""), begin + periods * 18 * MS);
    let (two, both) =
        supply_of_j(&text(", { cpu = 1, budget = \"2ms\", period = \"18ms\" }"), begin + periods * 18 * MS);
    println!("{one} ns of one budget, {alone:?}; {two} of two, {both:?}");
    assert_eq!(alone, ["RESBH 2ms 10ms"]);
    assert!(one >= 18 * periods / 10 * 2 * MS - 2 * MS, "{one}");
    assert!(two <= 2_200_000 * (periods + 1) && two >= 2_000_000 * (periods - 1), "{two}");
    assert_eq!(both, ["PSBE 23/495 3.82999ms", "PSBE 1/25 2.24ms", "PSBE 1/81 2.19221ms"]);
}

/// What is promised is reached: a budget that others of the node have used up just before, and whoever else comes first.
#[test]
fn the_bound_is_reached() {
    let example = |text: &str, task: &str, end: u64| {
        let plan = Plan::parse(text, "bound").unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
        let mut simulation = Simulation::new(&plan, Options { check: true, ..Options::default() }).unwrap();
        simulation.run_until(end).unwrap();
        let played = simulation.report().tasks.into_iter().find(|played| played.name == task).unwrap();
        let at = plan.tasks.iter().position(|about| about.name == task).unwrap();
        let bound = plan.admit().tasks[at].response.and_then(|response| response.ns());
        (played.response_ns.unwrap().max, bound.unwrap())
    };
    // The numbers of examples/hyper.toml. Both budgets are used up when `urgent` comes, and it waits for 480 ms.
    let hyper = r#"
        machine.cpus = 2
        node.rt = { policy = "reservation", per_cpu = true }
        [node.container]
        policy = "fixed-priority"
        under.rt = [{ cpu = 0, budget = "100ms", period = "1s" }, { cpu = 1, budget = "20ms", period = "500ms" }]
        [task.urgent]
        under.container = { priority = 2 }
        load = { period = "1s", work = "10ms", phase = "520ms" }
        [tasks.batch]
        count = 2
        under.container = { priority = 1 }
        load = "busy"
        "#;
    assert_eq!(example(hyper, "urgent", 3_000 * MS), (490 * MS, 490 * MS));
    // Besides, others on both CPUs: 2 ms in 40 ms that come before the budgets.
    let beside = r#"
        machine.cpus = 2
        node.rt = { policy = "reservation", per_cpu = true, order = "fixed-priority" }
        [task.o]
        under.rt = { cpu = 0, budget = "2ms", period = "40ms", priority = 2 }
        load = { period = "40ms", work = "2ms", phase = "20ms" }
        [task.p]
        under.rt = { cpu = 1, budget = "2ms", period = "40ms", priority = 2 }
        load = { period = "40ms", work = "2ms", phase = "20ms" }
        [node.container]
        policy = "fixed-priority"
        under.rt = [{ cpu = 0, budget = "5ms", period = "20ms" }, { cpu = 1, budget = "5ms", period = "20ms" }]
        [task.urgent]
        under.container = { priority = 2 }
        load = { period = "80ms", work = "1ms", phase = "5ms" }
        [tasks.batch]
        count = 2
        under.container = { priority = 1 }
        load = "busy"
        "#;
    let (played, bound) = example(beside, "urgent", 800 * MS);
    println!("{played} of {bound} ns");
    assert!(played <= bound && played * 10 >= bound * 9, "{played} {bound}");
}

/// A job that uses up its budget moves the deadline of a total bandwidth server on, and the next one, which comes before that, once more:
/// nothing is promised then.
#[test]
fn used_up_total_bandwidths_are_late() {
    let found = |replenishment: &str, work: &str| {
        let plan = common::parse(&format!(
            r#"
            [node.n]
            policy = "reservation"
            replenishment = "{replenishment}"
            cpu = 0
            [task.a]
            under.n = {{ budget = "4ms", period = "10ms" }}
            load = {{ period = "10ms", work = "{work}" }}
            [task.b]
            under.n = {{ budget = "6ms", period = "10ms" }}
            load = {{ phases = [{{ run = "100ms" }}, {{ sleep = "100ms" }}] }}
            "#
        ));
        let report = common::report_of(&plan, 1, 1_000 * common::MS);
        (plan.admit().tasks[0].response.is_some(), report.tasks[0].misses > 0)
    };
    assert_eq!(found("total-bandwidth", "4ms"), (false, true));
    assert_eq!(found("total-bandwidth", "3999us"), (true, false));
    assert_eq!(found("soft", "4ms"), (true, false));
}
