//! Known phases: what check says of a plan is what happens in it.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;

const TWO: &str = "[node.cpu]\npolicy = \"edf\"\ncpu = 0\n\
                   [task.a]\nunder.cpu = {}\nload = { period = \"4ms\", work = \"2ms\", deadline = \"2ms\" }\n\
                   [task.b]\nunder.cpu = {}\nload = { period = \"4ms\", work = \"2ms\", deadline = \"2ms\", phase = \"2ms\" }\n";

fn known(plan: &str) -> Plan {
    parse(&format!("machine.phases = \"known\"\n{plan}"))
}

/// Two jobs that would be late if they came at once, and never do.
#[test]
fn jobs_that_never_meet() {
    assert!(!parse(TWO).admit().holds);
    for plan in [TWO.to_string(), TWO.replace("edf", "fixed-priority").replace("{}", "{ priority = 1 }")] {
        let plan = known(&plan);
        let verdict = plan.admit();
        assert!(verdict.holds, "{}", verdict.faults(&plan));
        assert!(verdict.tasks.iter().all(|task| task.response.and_then(|found| found.ns()) == Some(2 * MS)));
    }
    // In step, one of both is late, and that is no bound but what happens.
    let plan = known(&TWO.replace("phase = \"2ms\"", "phase = \"1ms\""));
    let verdict = plan.admit();
    assert!(
        verdict.tasks.iter().any(|task| task.deadlines == Deadlines::MayMiss),
        "{}",
        verdict.faults(&plan)
    );
}

/// Jitter, sporadic jobs, budgets: then phases say nothing, and the bounds are those of any phase.
#[test]
fn where_phases_say_nothing() {
    for (from, to) in [
        ("deadline = \"2ms\", phase", "deadline = \"2ms\", jitter = \"1us\", phase"),
        ("period = \"4ms\", work = \"2ms\", deadline = \"2ms\", phase", "separation = \"4ms\", work = \"2ms\", deadline = \"2ms\", phase"),
        ("[node.cpu]", "machine.costs.switch = \"1us\"\n[node.cpu]"),
        ("cpu = 0", "under.all = { budget = \"3.9ms\", period = \"4ms\" }\n[node.all]\npolicy = \"reservation\"\ncpu = 0"),
    ] {
        let text = TWO.replace(from, to);
        assert_ne!(text, TWO);
        assert_eq!(known(&text).admit().holds, parse(&text).admit().holds, "{to}");
        assert!(!known(&text).admit().holds, "{to}");
    }
}

/// Equals with a quantum take turns, and after a late job the next one goes on in its place: neither is what would be played.
#[test]
fn where_equals_are_not_served_in_the_order_of_their_jobs() {
    let plan = |edges: [&str; 3], loads: [&str; 3]| {
        let tasks = edges.iter().zip(loads).enumerate().map(|(number, (edge, load))| {
            format!("[task.t{number}]\nunder.cpu = {{ {edge} }}\nload = {{ {load} }}\n")
        });
        known(&format!("[node.cpu]\npolicy = \"fixed-priority\"\ncpu = 0\n{}", tasks.collect::<String>()))
    };
    let turns = plan(
        ["priority = 1, quantum = \"1ms\""; 3],
        [
            "period = \"20ms\", work = \"5ms\", deadline = \"6ms\"",
            "period = \"20ms\", work = \"5ms\", phase = \"2ms\", deadline = \"10ms\"",
            "period = \"20ms\", work = \"5ms\", phase = \"11ms\", deadline = \"10ms\"",
        ],
    );
    let late = plan(
        ["priority = 2", "priority = 1", "priority = 1"],
        [
            "period = \"40ms\", work = \"12ms\"",
            "period = \"10ms\", work = \"4ms\", soft = true",
            "period = \"40ms\", work = \"4ms\", phase = \"1ms\", deadline = \"20ms\"",
        ],
    );
    for plan in [turns, late] {
        let verdict = plan.admit();
        assert!(!verdict.holds, "{}", verdict.faults(&plan));
        within_bounds(&plan, &verdict, 1, |_, _, _, _| ());
    }
    // The same deadlines: who of both goes first is not looked at, so nothing is said to be missed.
    let plan = known(
        &TWO.replace("\"2ms\", deadline = \"2ms\"", "\"3ms\", deadline = \"5ms\"")
            .replace("4ms", "10ms")
            .replace(", phase = \"2ms\"", ""),
    );
    assert_ne!(plan.admit().tasks[0].deadlines, Deadlines::MayMiss);
}

impl Maker {
    fn strictly_periodic(&mut self, policy: &str) -> Plan {
        self.text = format!("machine.phases = \"known\"\n[node.cpu]\npolicy = \"{policy}\"\ncpu = 0\n");
        let tasks = self.between(2, 5);
        for task in 0..tasks {
            let period = [2, 4, 5, 8, 10, 20][self.between(0, 5) as usize] * 1000;
            let work = (period * self.between(20, 130) / 100 / tasks).max(100);
            let deadline = self.between(work.min(period), period);
            let phase = self.between(0, 40) * 500;
            let edge = if policy == "edf" { String::new() } else { format!("priority = {}", 9 - task) };
            let _ = writeln!(
                self.text,
                "[task.t{task}]\nunder.cpu = {{ {edge} }}\n\
                 load = {{ period = \"{period}us\", work = \"{work}us\", deadline = \"{deadline}us\", phase = \"{phase}us\" }}"
            );
        }
        parse(&self.text)
    }
}

/// By priorities the longest response is what check says, to the nanosecond; by deadlines too, where no two are equal.
#[test]
fn check_says_what_happens() {
    let (mut seen_of, mut helped) = ([Seen::default(); 2], 0);
    for seed in seeds() {
        let by_deadline = seed as usize % 2;
        let policy = ["fixed-priority", "edf"][by_deadline];
        let plan = Maker::new(seed, "phases").strictly_periodic(policy);
        let text = &plan.sources.0[0].text;
        let any = parse(&text.replace("\"known\"", "\"any\"")).admit();
        let verdict = plan.admit();
        let report = report_of(&plan, seed, 200 * MS);
        helped += u32::from(verdict.holds && !any.holds);
        for (task, verdict) in plan.tasks.iter().zip(&verdict.tasks) {
            let seen = report.tasks.iter().find(|seen| seen.name == task.name).unwrap();
            if verdict.deadlines == Deadlines::Met {
                assert_eq!(seen.misses, 0, "seed {seed}: {}\n{text}", task.name);
            }
            let bound = verdict.response.and_then(|response| response.ns());
            let longest = seen.response_ns.as_ref().map(|response| response.max);
            let (Some(bound), Some(longest)) = (bound, longest) else { continue };
            if policy == "fixed-priority" {
                assert_eq!(longest, bound, "seed {seed}: {}\n{text}", task.name);
            }
            seen_of[by_deadline].add(longest, bound, || format!("seed {seed}: {}\n{text}", task.name));
        }
    }
    println!("{helped} plans that hold only at their phases");
    let equal = seen_of[0].print("known phases, priorities").equal();
    let equal = equal + seen_of[1].print("known phases, deadlines").equal();
    assert!(equal > 400 && helped > 10, "{equal} {helped}");
}
