//! Jobs that suspend themselves, in random plans by priorities and by deadlines, with and without costs: no response is longer than
//! `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, seeds, seen::Seen, within_bounds, Maker};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;

impl Maker {
    fn suspending(&mut self, deadlines: bool, costs: bool) -> Plan {
        if costs {
            self.text += "machine.costs = { switch = \"7us\", timer = \"3us\", level = \"1us\" }\n";
        }
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let _ = writeln!(self.text, "[node.top]\npolicy = \"{policy}\"\ncpu = 0");
        let tasks = self.between(2, 5);
        for task in 0..tasks {
            let period = self.between(4, 60) * 250;
            let work = (period * self.between(20, 100) / 100 / (tasks + 1)).max(100);
            let deadline = self.between(period * 2 / 3, period);
            let phase = self.between(0, 8) * 50;
            let priority = if self.between(0, 6) == 0 { 3 } else { 9 - task };
            let edge = if deadlines { String::new() } else { format!("priority = {priority}") };
            let pause = self.between(1, period / 4);
            let range = |least: u64, most: u64| format!("{{ min = \"{least}us\", max = \"{most}us\" }}");
            let load = match self.between(0, 3) {
                0 => format!("period = \"{period}us\", work = {}", range(work / 2, work)),
                1 => format!(
                    "phases = [{{ run = \"{}us\" }}, {{ suspend = {} }}, {{ run = \"{}us\" }}, {{ suspend = \"{}us\" }}, {{ run = \"{}us\" }}, {{ timer = \"{period}us\" }}]",
                    work / 3 + 1, range(pause / 3 + 1, pause), work / 3 + 1, pause / 3 + 1, work / 3 + 1
                ),
                _ => format!(
                    "phases = [{{ run = {} }}, {{ suspend = {} }}, {{ run = \"{}us\" }}, {{ timer = \"{period}us\" }}]",
                    range(work / 3, work / 2 + 1), range(pause / 2 + 1, pause), work / 2 + 1
                ),
            };
            let _ = writeln!(
                self.text,
                "[task.t{task}]\nunder.top = {{ {edge} }}\nload = {{ {load}, deadline = \"{deadline}us\", phase = \"{phase}us\" }}"
            );
        }
        parse(&self.text)
    }
}

#[test]
fn nothing_takes_longer_than_check_says() {
    let kinds = ["priorities", "deadlines", "priorities and costs", "deadlines and costs"];
    let (mut seen_of, mut met) = ([Seen::default(); 4], 0);
    for seed in seeds() {
        let kind = seed as usize % 4;
        let plan = Maker::new(seed, "suspension").suspending(kind % 2 == 1, kind > 1);
        let verdict = plan.admit();
        let suspends = plan.sources.0[0].text.contains("suspend");
        let shown = within_bounds(&plan, &verdict, seed, |task, _, longest, bound| {
            if suspends {
                seen_of[kind].add(longest, bound, || task.name.clone());
            }
        });
        met += if suspends { shown } else { 0 };
    }
    for (kind, seen) in kinds.iter().zip(&seen_of) {
        assert!(seen.print(kind).all() > 300 && seen.near() > 5, "{kind}");
    }
    println!("{met} tasks met the deadlines that check shows");
    assert!(met > 300, "{met}");
}

/// A deadline that only the edge gives counts from each wake-up: after a late job it is still the old one, after a suspension a new one.
#[test]
fn deadlines_that_count_from_wake_ups() {
    let plan = |tasks: [&str; 3]| {
        let [a, b, c] = tasks;
        parse(&format!(
            "[node.cpu]\npolicy = \"edf\"\ncpu = 0\n[task.a]\n{a}\n[task.b]\n{b}\n[task.c]\n{c}\n"
        ))
    };
    let late = |deadline: &str| {
        plan([
            "under.cpu = {}\nload = { period = \"100ms\", work = \"8ms\", deadline = \"8ms\" }",
            &format!("under.cpu = {{ deadline = \"{deadline}\" }}\nload = {{ phases = [{{ run = \"6ms\" }}, {{ timer = \"10ms\" }}] }}"),
            "under.cpu = {}\nload = { period = \"100ms\", work = \"6ms\", deadline = \"21ms\" }",
        ])
    };
    let suspends = plan([
        "under.cpu = { deadline = \"10ms\" }\nload = { phases = [{ run = \"1ms\" }, { suspend = \"500us\" }, { run = \"500us\" }, \
         { suspend = \"500us\" }, { run = \"1500us\" }, { timer = \"100ms\" }] }",
        "under.cpu = {}\nload = { period = \"5ms\", work = \"3ms\" }",
        "under.cpu = {}\nload = { separation = \"12ms\", extra = \"1ms\", work = \"2ms\", phase = \"2ms\" }",
    ]);
    for plan in [late("20ms"), late("10ms"), suspends] {
        let verdict = plan.admit();
        within_bounds(&plan, &verdict, 1, |_, _, _, _| ());
    }
    assert_ne!(late("20ms").admit().tasks[2].deadlines, Deadlines::Met);
}
