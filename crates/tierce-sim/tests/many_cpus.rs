//! Machines of more than 64 CPUs are simulated as small ones are.

mod common;

use common::{parse, run, MS};
use tierce_admission::PlanExt;
use tierce_plan::Plan;

/// 512 CPUs: a budget and a job on each, two busy tasks for each that move.
#[test]
fn five_hundred_and_twelve_cpus() {
    let text = "[machine]\ncpus = 512\ntopology = { smt = 2, cache = 16, node = 128 }\n\
        [node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
        [node.rt]\npolicy = \"reservation\"\nper_cpu = true\nunder.top = { priority = 1 }\n\
        [task.first]\nunder.rt = { cpu = 0, budget = \"2ms\", period = \"10ms\" }\nload = \"busy\"\n\
        [task.last]\nunder.rt = { cpu = 511, budget = \"3ms\", period = \"10ms\" }\nload = \"busy\"\n\
        [node.rest]\npolicy = \"fair\"\nspread = true\nunder.top = {}\n\
        [tasks.move]\ncount = 1022\nunder.rest = {}\nload = \"busy\"\n\
        [tasks.stay]\ncount = 2\naffinity = [300]\nunder.rest = {}\nload = \"busy\"\n\
        [tasks.pair]\ncount = 2\naffinity = [63, 64]\nunder.rest = {}\nload = { period = \"20ms\", work = \"1ms\" }\n";
    let run = run(&parse(text), 60 * MS, 1);
    let share = |task: &str| run.task(task).cpu_ns as f64 / run.report.elapsed_ns as f64;
    assert_eq!((share("first"), share("last")), (0.2, 0.3));
    assert!(run.report.cpus.iter().all(|cpu| cpu.idle_ns == 0));
    assert_eq!(run.report.cpus.len(), 512);
    let stay = share("stay[0]") + share("stay[1]");
    assert!(stay > 0.5, "CPU 300 is theirs, and a third one's at most: {stay}");
    assert_eq!(run.task("pair[0]").jobs, 3);
}

/// Beyond that a plan is refused, by name.
#[test]
fn more_are_refused_by_name() {
    let said = |text: &str| Plan::parse(text, "plan.toml").unwrap_err().to_string();
    let why = said("[machine]\ncpus = 513\n");
    assert!(why.contains("513") && why.contains("1 to 512"), "{why}");
    let beyond = "[machine]\ncpus = 512\n[node.top]\npolicy = \"fair\"\ncpu = 512\n";
    let why = said(beyond);
    assert!(why.contains("cpu_must_exist") && why.contains("0 to 511"), "{why}");
}
