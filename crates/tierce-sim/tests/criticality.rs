//! Mixed criticality: worked examples, and random plans, in which no critical job takes longer than `tierce check` says, and no other one
//! as long as critical mode does not begin.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;

const US: u64 = 1_000;

const EXAMPLE: &str = include_str!("../../../examples/mixed-criticality.toml");

/// What check says of each task, in us.
fn bounds(plan: &Plan) -> Vec<Option<u64>> {
    plan.admit()
        .tasks
        .iter()
        .map(|task| task.response.and_then(|found| found.ns()).map(|ns| ns / US))
        .collect()
}

/// The tasks of the example with a whole CPU.
fn alone(policy: &str) -> String {
    let (_, tasks) = EXAMPLE.split_once("[task.brake]").unwrap();
    format!("[node.car]\npolicy = \"{policy}\"\ncpu = 0\n[task.brake]{tasks}")
}

/// With C, T and C′ as in the example: `steer` usually 3 + 2·2 + 2·5 = 17, at the worst 7 + 3·4 + 2·5 = 29.
#[test]
fn bounds_by_hand() {
    assert_eq!(bounds(&parse(&alone("mixed-criticality"))), [4_000, 7_000, 29_000, 36_000].map(Some));
}

#[test]
fn the_example_holds() {
    let plan = parse(EXAMPLE);
    let verdict = plan.admit();
    assert!(verdict.holds);
    let warnings: Vec<_> = verdict.warnings(&plan).into_iter().map(|warning| warning.message).collect();
    let said = |words: &str| warnings.iter().any(|warning| warning.contains(words));
    assert!(said("the deadlines of `camera`, `log` in `car` hold while no critical child works longer than its `work`, and `brake` may"), "{warnings:?}");
    let report = report_of(&plan, 1, 2_000 * MS);
    let [modes] = &report.critical_modes[..] else { panic!("{:?}", report.critical_modes) };
    assert!(modes.count > 20 && modes.longest_ns < 12 * MS && !modes.now, "{modes:?}");
    assert!(modes.begun_by.iter().all(|(task, times)| ["brake", "steer"].contains(&&task[..]) && *times > 1));
    let misses: Vec<_> = report.tasks.iter().map(|task| task.misses).collect();
    assert_eq!(misses, [0, 0, 0, 0]);
    // As usual: nothing depends on the mode.
    let usual = EXAMPLE
        .replace("\"4ms\", \"2ms\"]", "\"2ms\", \"2ms\"]")
        .replace("\"7ms\", \"3ms\"", "\"3ms\", \"3ms\"");
    let plan = parse(&usual);
    assert!(plan.admit().warnings(&plan).is_empty());
    assert!(report_of(&plan, 1, 2_000 * MS).critical_modes.is_empty());
}

/// A child that is not critical may come when a critical job has used exactly its work and is not done: it is before that job once more.
#[test]
fn critical_mode_begins_one_ns_beyond_the_work() {
    let plan = parse(
        r#"
        [node.top]
        policy = "mixed-criticality"
        cpu = 0
        [task.lo]
        under.top = { priority = 2, work = "1ms", period = "3ms" }
        load = { period = "3ms", work = "1ms" }
        [task.hi]
        under.top = { priority = 1, work = "2ms", period = "10ms", work_hi = "3ms" }
        load = { period = "10ms", work = "3ms" }
        "#,
    );
    // lo, 2 ms of hi, lo, and the last one of hi. The bound is 3 + ⌈(L + 2)/3⌉·1, as lo may carry its budget over.
    assert_eq!(bounds(&plan), [Some(1_000), Some(6_000)]);
    let report = report_of(&plan, 1, 9 * MS);
    assert_eq!(report.tasks[1].response_ns.as_ref().unwrap().max, 5 * MS);
}

/// All that may be needed at the worst, by any job, does not fit: by priorities alone `log` is late.
#[test]
fn priorities_alone_do_not_do() {
    let lines = alone("fixed-priority");
    let lines = lines.lines().map(|line| match (line.split_once(", work"), line.split_once("work = [")) {
        (Some((priority, _)), _) if line.starts_with("under") => format!("{priority} }}"),
        (_, Some((begin, works))) => {
            let (works, end) = works.split_once(']').unwrap();
            format!("{begin}work = {}{end}", works.split(", ").max().unwrap())
        }
        _ => line.to_string(),
    });
    let plan = parse(&lines.collect::<Vec<_>>().join("\n"));
    assert!(!plan.admit().holds);
    // 7 + 3·4 + 2·5 ms
    assert_eq!(bounds(&plan)[2..], [Some(29_000), Some(110_000)]);
}

/// A child without a load that the plan knows may use what is left of its budget just before the next one.
#[test]
fn a_budget_may_be_carried_over() {
    let plan = |load: &str| {
        parse(&format!(
            "[node.top]\npolicy = \"mixed-criticality\"\ncpu = 0\n[task.other]\nunder.top = {{ priority = 2, work = \"2ms\", period = \"10ms\" }}\n\
             {load}\n[task.own]\nunder.top = {{ priority = 1, work = \"3ms\", period = \"20ms\" }}\nload = {{ period = \"20ms\", work = \"3ms\", phase = \"8001us\" }}\n"
        ))
    };
    assert_eq!(bounds(&plan("load = { period = \"10ms\", work = \"2ms\" }"))[1], Some(5_000));
    // 3 + ⌈(R + 8)/10⌉·2
    assert_eq!(bounds(&plan("load = { period = \"9ms\", work = \"2ms\" }"))[1], Some(7_000));
    assert_eq!(bounds(&plan("match = { comm = \"x\", uid = 0 }"))[1], Some(7_000));
    // That happens: it uses 1 us at 0, the rest until 10 and 2 ms from there on.
    let bursts =
        "load = { phases = [{ run = \"1us\" }, { sleep = \"8ms\" }, { run = \"20ms\" }], repeat = 1 }";
    let report = report_of(&plan(bursts), 1, 19 * MS);
    let own = report.tasks.iter().find(|task| task.name == "own").unwrap();
    assert_eq!(own.response_ns.as_ref().unwrap().max / US, 3_000 + 1_999 + 2_000);
}

/// Why nothing is known of the deadlines below a node.
#[test]
fn where_check_says_nothing() {
    let why = |machine: &str, edge: &str, load: &str, other: &str| {
        let plan = parse(&format!(
            "{machine}\n[node.root]\npolicy = \"fixed-priority\"\ncpu = 0\n[node.top]\npolicy = \"mixed-criticality\"\nunder.root = {{ priority = 2 }}\n\
             [task.a]\nunder.top = {{ priority = 1, {edge} }}\n{load}\n{other}\n"
        ));
        let verdict = plan.admit();
        assert!(!verdict.holds, "{machine} {edge} {load} {other}");
        assert_eq!(verdict.tasks[0].deadlines, Deadlines::NotShown);
        verdict.faults(&plan).to_string()
    };
    let (edge, load) = ("work = \"2ms\", period = \"10ms\"", "load = { period = \"10ms\", work = \"2ms\" }");
    let found = why("machine.costs = { switch = \"1us\" }", edge, load, "");
    assert!(found.contains("with `[machine] costs` `top` bounds no response times"), "{found}");
    let found = why("", edge, load, "[tasks.b]\nunder.top = { priority = 1, work = \"1ms\", period = \"9ms\" }\nmatch = { comm = \"b\", uid = 0 }");
    assert!(
        found.contains("any number of threads may match the set `b` below `top`, and come before it"),
        "{found}"
    );
    let found = why("", edge, "load = { period = \"9ms\", work = \"2ms\" }", "");
    assert!(found.contains("its jobs come up to every 9ms, and a period of its budget is 10ms"), "{found}");
    let found = why("", edge, "load = { period = \"10ms\", jitter = \"1ms\", work = \"2ms\" }", "");
    assert!(found.contains("its jobs come up to every 9ms"), "{found}");
    let found = why("", edge, "load = { period = \"10ms\", work = \"3ms\" }", "");
    assert!(
        found.contains("a job works for up to 3ms, of which only 2ms come before the work of others"),
        "{found}"
    );
    let other = "[task.b]\nunder.top = { priority = 2, work = \"9ms\", period = \"10ms\" }\nload = { period = \"10ms\", work = \"9ms\" }";
    let found = why("", edge, load, other);
    assert!(
        found.contains("a job of `a` may not be done in `top` when the period of its budget ends"),
        "{found}"
    );
    let suspends = "load = { phases = [{ run = \"1ms\" }, { suspend = \"1ms\" }, { run = \"1ms\" }, { timer = \"30ms\" }], deadline = \"30ms\" }";
    let found = why("", edge, suspends, "");
    assert!(found.contains("suspends itself"), "{found}");
}

impl Maker {
    /// A load of jobs that keep to the budget; some critical ones do not keep to what they usually need.
    fn keeps(&mut self, [work, period, work_hi]: [u64; 3], rare: bool) -> String {
        let jitter = if self.between(0, 3) == 0 { period / 8 } else { 0 };
        let apart = period + jitter + self.between(0, 1) * self.between(0, 500);
        let most = match (work_hi, rare) {
            (0, _) | (_, false) => format!("\"{work}us\""),
            _ => {
                let times = self.between(1, 6) as usize;
                let usual = vec![format!("\"{work}us\""); times].join(", ");
                format!("[{usual}, \"{}us\"]", self.between(work, work_hi))
            }
        };
        match self.between(0, 4) {
            0 if jitter == 0 => format!("separation = \"{apart}us\", extra = \"700us\", work = {most}"),
            1 if work_hi == 0 => format!(
                "period = \"{apart}us\", jitter = \"{jitter}us\", work = {{ min = \"{}us\", max = \"{work}us\" }}",
                work / 2
            ),
            _ => format!("period = \"{apart}us\", jitter = \"{jitter}us\", work = {most}"),
        }
    }

    fn mixed(&mut self, rare: bool) -> Plan {
        let place = if self.between(0, 3) == 0 {
            self.text += "[node.top]\npolicy = \"reservation\"\ncpu = 0\n";
            self.text += "[task.hog]\nunder.top = { budget = \"1ms\", period = \"4ms\" }\nload = \"busy\"\n";
            "under.top = { budget = \"3500us\", period = \"5ms\" }"
        } else {
            "cpu = 0"
        };
        let _ = writeln!(self.text, "[node.set]\npolicy = \"mixed-criticality\"\n{place}");
        let tasks = self.between(2, 6);
        for task in 0..tasks {
            let period = self.between(4, 60) * 500;
            let work = (period * self.between(20, 100) / 100 / (tasks + 1) / 50 * 50).max(100);
            let critical = self.between(0, 1) == 1;
            let most = if critical { (work * self.between(10, 30) / 10).min(period) } else { 0 };
            let priority = if self.between(0, 5) == 0 { 3 } else { 9 - task };
            let phase = self.between(0, 8) * 50_000 + self.between(0, 1);
            let load = match self.between(0, 9) {
                0 if !critical || rare => "\"busy\"".to_string(),
                1 if !critical || rare => {
                    format!(
                        "{{ phases = [{{ run = \"{}us\" }}, {{ sleep = \"{}us\" }}] }}",
                        work / 3 + 1,
                        period / 5
                    )
                }
                2 if !critical => {
                    format!("{{ period = \"{period}us\", work = \"{}us\", phase = \"{phase}ns\" }}", work * 2)
                }
                _ => format!("{{ {}, phase = \"{phase}ns\" }}", self.keeps([work, period, most], rare)),
            };
            let work_hi = if critical { format!(", work_hi = \"{most}us\"") } else { String::new() };
            let edge =
                format!("priority = {priority}, work = \"{work}us\", period = \"{period}us\"{work_hi}");
            let _ = writeln!(self.text, "[task.t{task}]\nunder.set = {{ {edge} }}\nload = {load}");
        }
        parse(&self.text)
    }
}

#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut seen_of, mut modes, mut late) = ([Seen::default(); 3], 0, 0);
    for seed in seeds() {
        let rare = seed % 3 > 0;
        let plan = Maker::new(seed, "mixed criticality").mixed(rare);
        let verdict = plan.admit();
        for round in 0..3 {
            let report = report_of(&plan, seed ^ round << 32, 400 * MS);
            let begun = report.critical_modes.iter().map(|modes| modes.count).sum::<u64>();
            modes += begun;
            for (task, verdict) in plan.tasks.iter().zip(&verdict.tasks) {
                let text = &plan.sources.0[0].text;
                let Some(bound) = verdict.response.and_then(|response| response.ns()) else { continue };
                let seen = report.tasks.iter().find(|seen| seen.name == task.name).unwrap();
                let Some(longest) = seen.response_ns.as_ref().map(|response| response.max) else { continue };
                let edge = plan.edges.iter().find(|edge| plan.child_name(edge.child) == task.name).unwrap();
                let critical = plan.nodes[edge.parent].name == "set" && edge.params[3] > 0;
                if !critical && begun > 0 {
                    late += u64::from(longest > bound);
                    continue;
                }
                let of = if !rare { 0 } else { 1 + usize::from(critical) };
                seen_of[of].add(longest, bound, || format!("seed {seed}: {}\n{text}", task.name));
            }
        }
    }
    println!(
        "{modes} critical modes; {late} responses of others that were longer than their bound in usual mode"
    );
    assert!(modes > 100 && late > 0, "{modes} {late}");
    let kinds = ["critical mode cannot begin", "it did not begin, not critical", "critical tasks"];
    for (kind, seen) in kinds.iter().zip(&seen_of) {
        assert!(seen.print(kind).equal() > 0, "{kind}");
    }
}
