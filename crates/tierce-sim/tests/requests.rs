//! Works in turn and bursts: worked examples, and random plans, in which no response is longer than `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_plan::Plan;

fn bounds(plan: &Plan) -> Vec<Option<u64>> {
    plan.admit().tasks.iter().map(|task| task.response.and_then(|found| found.ns())).collect()
}

fn longest(plan: &Plan, until_ns: u64) -> Vec<u64> {
    let report = report_of(plan, 1, until_ns);
    report.tasks.iter().map(|task| task.response_ns.as_ref().map_or(0, |response| response.max)).collect()
}

const EXAMPLE: &str = include_str!("../../../examples/bursts.toml");

/// The numbers of the page.
#[test]
fn the_example() {
    let plan = parse(EXAMPLE);
    let verdict = plan.admit();
    assert!(verdict.holds, "{}", verdict.faults(&plan));
    let bounds = bounds(&plan);
    let seen = longest(&plan, 2_000 * MS);
    for (at, (name, bound, longest)) in
        [("alarms", 3_500, 2_500), ("video", 13_500, 12_500), ("control", 30_000, 29_000)]
            .into_iter()
            .enumerate()
    {
        assert_eq!(plan.tasks[at].name, name);
        assert_eq!((bounds[at], seen[at]), (Some(bound * 1_000), longest * 1_000), "{name}");
    }
    // As if each job were as long as the longest, and each as close as two may be.
    let text = EXAMPLE.replace("[\"7ms\", \"1ms\", \"2ms\", \"1ms\"]", "\"7ms\"");
    assert_ne!(text, EXAMPLE);
    assert!(!parse(&text).admit().holds);
    let bursts = "[\"1ms\", \"2ms\", \"50ms\"], work = \"1.5ms\", deadline = \"5ms\"";
    let text = EXAMPLE.replace(bursts, "\"1ms\", work = \"1.5ms\"");
    assert_ne!(text, EXAMPLE);
    assert!(!parse(&text).admit().holds);
}

/// Releases are as close as the list says, and no closer.
#[test]
fn bursts_are_played() {
    let plan = parse(
        "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n[task.a]\nunder.top = { priority = 1 }\n\
         load = { separation = [\"1ms\", \"4ms\", \"20ms\"], work = \"500us\", phase = \"3ms\" }",
    );
    let report = report_of(&plan, 1, 104 * MS);
    // 3, 4, 7, 23, 24, 27, 43, …
    assert_eq!(report.tasks[0].jobs, 16);
    let text = "[node.top]\npolicy = \"edf\"\ncpu = 0\n[task.a]\nunder.top = {}\n\
                load = { separation = [\"1ms\", \"4ms\", \"20ms\"], work = \"1ms\", deadline = \"20ms\" }";
    let verdict = parse(text).admit();
    assert!(verdict.holds && verdict.tasks[0].asked.as_ref().unwrap().to_string() == "3/20");
}

impl Maker {
    /// In us: works in turn, distances.
    fn lists(&mut self, load: u64) -> (Vec<u64>, Vec<u64>) {
        let mut distances = vec![self.between(1, 24) * 250];
        if self.between(0, 1) == 0 {
            for _ in 0..self.between(1, 3) {
                distances.push(distances[distances.len() - 1] + self.between(0, 30) * 250);
            }
            *distances.last_mut().unwrap() += 4_000;
        }
        let jobs = distances.len() as u64;
        let each = distances[distances.len() - 1] / jobs * load / 100;
        let works = match self.between(0, 3) {
            0 => vec![each.max(50)],
            _ => (0..self.between(2, 5)).map(|_| (each * self.between(10, 200) / 100).max(50)).collect(),
        };
        (works, distances)
    }

    fn requests(&mut self, load: u64) -> String {
        let (works, distances) = self.lists(load);
        let list = |list: &[u64]| {
            let list: Vec<_> = list.iter().map(|us| format!("\"{us}us\"")).collect();
            format!("[{}]", list.join(", "))
        };
        let phase = format!("{}us", self.between(0, 10) * 100);
        let last = distances[distances.len() - 1];
        let deadline = self.between(last / 2, last).max(50);
        let works = list(&works);
        let rest = format!("work = {works}, phase = \"{phase}\", deadline = \"{deadline}us\"");
        if distances.len() > 1 {
            let extra = if self.between(0, 2) == 0 { ", extra = \"700us\"" } else { "" };
            return format!("{{ separation = {}{extra}, {rest} }}", list(&distances));
        }
        let jitter = self.between(0, 1) * self.between(0, last - 1);
        format!("{{ period = \"{last}us\", jitter = \"{jitter}us\", {rest} }}")
    }

    fn differing(&mut self, deadlines: bool) -> Plan {
        let budget = self.between(0, 2) == 0;
        let place = if budget {
            self.text += "[node.top]\npolicy = \"reservation\"\ncpu = 0\n";
            let load = self.requests(25);
            let _ = writeln!(
                self.text,
                "[task.alone]\nunder.top = {{ budget = \"1500us\", period = \"4ms\" }}\nload = {load}"
            );
            "under.top = { budget = \"3ms\", period = \"5ms\" }"
        } else {
            self.text += "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n";
            let load = self.requests(30);
            let _ = writeln!(
                self.text,
                "[node.low]\npolicy = \"edf\"\nunder.top = {{ priority = 1 }}\n[task.below]\nunder.low = {{}}\nload = {load}"
            );
            "under.top = { priority = 2 }"
        };
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let _ = writeln!(self.text, "[node.set]\npolicy = \"{policy}\"\n{place}");
        let tasks = self.between(1, 4);
        for task in 0..tasks {
            let share = self.between(20, 90) / (tasks + u64::from(budget));
            let load = self.requests(share);
            let priority = if self.between(0, 5) == 0 { 3 } else { 9 - task };
            let edge = if deadlines { String::new() } else { format!("priority = {priority}") };
            let _ = writeln!(self.text, "[task.t{task}]\nunder.set = {{ {edge} }}\nload = {load}");
        }
        parse(&self.text)
    }
}

#[test]
fn nothing_takes_longer_than_check_says() {
    let kinds = ["priorities", "deadlines", "beside and below"];
    let (mut seen_of, mut met) = ([Seen::default(); 3], 0);
    for seed in seeds() {
        let deadlines = seed % 2 == 1;
        let plan = Maker::new(seed, "requests").differing(deadlines);
        let verdict = plan.admit();
        met += within_bounds(&plan, &verdict, seed, |task, _, longest, bound| {
            let kind = if task.name.starts_with('t') { usize::from(deadlines) } else { 2 };
            seen_of[kind].add(longest, bound, || task.name.clone());
        });
    }
    for ((kind, seen), near) in kinds.iter().zip(&seen_of).zip([20, 20, 5]) {
        assert!(seen.print(kind).near() > near, "{kind}");
    }
    println!("{met} tasks met the deadlines that check shows");
    assert!(met > 300, "{met}");
}
