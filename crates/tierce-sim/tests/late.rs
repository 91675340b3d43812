//! Soft tasks below a node by deadlines that several CPUs run, which may be late: no response is longer than check says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::PlanExt;

/// Three of 2 in 3 on two CPUs.
const THREE: &str = "machine.cpus = 2\n[node.all]\npolicy = \"edf\"\ncpus = [0, 1]\n\
                     [task.a]\nunder.all = {}\nload = { period = \"3ms\", work = \"2ms\", soft = true }\n\
                     [task.b]\nunder.all = {}\nload = { period = \"3ms\", work = \"2ms\", soft = true }\n\
                     [task.c]\nunder.all = {}\nload = { period = \"3ms\", work = \"2ms\", soft = true }\n";

fn bounds(text: &str) -> Vec<Option<u64>> {
    parse(text).admit().tasks.iter().map(|task| task.response.and_then(|response| response.ns())).collect()
}

#[test]
fn a_bound_on_late_jobs() {
    assert_eq!(bounds(THREE), [Some(5 * MS); 3]);
    // A task that has to be in time has no such bound, others beside it do.
    let hard = THREE.replacen(", soft = true", "", 1);
    assert_eq!(bounds(&hard), [None, Some(5 * MS), Some(5 * MS)]);
    assert!(!parse(&hard).admit().holds);
    // More than two CPUs do; a deadline of the edge, which counts from a wake-up; jobs that one timer makes.
    for (from, to) in [
        ("work = \"2ms\", soft = true }\n[task.b]", "work = \"2001us\", soft = true }\n[task.b]"),
        ("[task.a]\nunder.all = {}", "[task.a]\nunder.all = { deadline = \"3ms\" }"),
        (
            "load = { period = \"3ms\", work = \"2ms\", soft = true }\n[task.b]",
            "load = { phases = [{ run = \"2ms\" }, { timer = \"3ms\" }], deadline = \"3ms\", soft = true }\n[task.b]",
        ),
    ] {
        let text = THREE.replacen(from, to, 1);
        assert_ne!(text, THREE);
        assert_eq!(bounds(&text), [None; 3], "{to}");
    }
}

#[test]
fn no_job_is_later_than_check_says() {
    let (mut near, mut late, mut plans) = (Seen::default(), 0, 0);
    for seed in seeds() {
        let mut maker = Maker::new(seed, "late");
        let cpus = maker.between(2, 4);
        let (tasks, full) = (cpus + maker.between(1, 4), maker.between(85, 100));
        let list: Vec<_> = (0..cpus).map(|cpu| cpu.to_string()).collect();
        let _ = writeln!(
            maker.text,
            "machine.cpus = {cpus}\n[node.all]\npolicy = \"edf\"\ncpus = [{}]",
            list.join(", ")
        );
        let mut left = cpus * full * 1000;
        for task in 0..tasks {
            let period = [4, 5, 6, 8, 10, 12, 15, 20][maker.between(0, 7) as usize] * 1000;
            let share = maker.between(20, 100) * 1000;
            let share = share.min(left);
            left -= share;
            let work = period * share / 100_000;
            if work < 50 {
                break;
            }
            let least = if maker.between(0, 2) == 0 { maker.between(work / 2, work) } else { work };
            let work = format!("work = {{ min = \"{least}us\", max = \"{work}us\" }}");
            let deadline = if maker.between(0, 2) == 0 { maker.between(period / 2, period) } else { period };
            let soft = if maker.between(0, 5) == 0 { "" } else { ", soft = true" };
            let phase = maker.between(0, 20) * 500;
            let rest = format!("{work}, deadline = \"{deadline}us\", phase = \"{phase}us\"{soft}");
            let load = match maker.between(0, 5) {
                0 => format!("separation = \"{period}us\", extra = \"{}us\", {rest}", maker.between(0, 3000)),
                1 => format!(
                    "period = \"{period}us\", jitter = \"{}us\", {rest}",
                    maker.between(0, deadline / 2)
                ),
                _ => format!("period = \"{period}us\", {rest}"),
            };
            let _ = writeln!(maker.text, "[task.t{task}]\nunder.all = {{}}\nload = {{ {load} }}");
        }
        // One that has no deadline comes after all of them.
        if maker.between(0, 1) == 0 {
            let _ = writeln!(maker.text, "[task.rest]\nunder.all = {{}}\nload = \"busy\"");
        }
        let plan = parse(&maker.text);
        let verdict = plan.admit();
        let mut some = false;
        within_bounds(&plan, &verdict, seed, |task, verdict, longest, bound| {
            if verdict.test.is_some_and(|test| test.contains("tardiness")) {
                let deadline = task.load.as_ref().and_then(tierce_plan::Load::deadline_ns);
                some = true;
                near.add(longest, bound, || format!("seed {seed}: {}", task.name));
                late += u64::from(Some(longest) > deadline);
            }
        });
        plans += u64::from(some);
    }
    println!("{plans} plans with bounds by tardiness, {late} late");
    assert!(near.print("soft tasks").all() > 500 && late > 50, "{near:?} {late}");
}
