//! Time constraints: what is accepted is met, in random plans that hold; and what a run says of them.

mod common;

use common::{parse, run, run_with, Maker, Run, MS};
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_sim::Options;
use tierce_trace::report::Constraints;
use tierce_trace::Kind;

fn of(run: &Run, task: &str) -> (u64, u64, u64) {
    let Constraints { asked, accepted, met } = run.task(task).constraints.unwrap();
    (asked, accepted, met)
}

#[test]
fn asked_accepted_and_met() {
    let plan = "[node.top]\npolicy = \"constraint\"\nquantum = \"1ms\"\nbudget = \"5ms\"\nperiod = \"10ms\"\ncpu = 0\n\
                [task.a]\nunder.top = {}\nload = { phases = [{ run = \"4ms\", within = \"19ms\" }, { timer = \"20ms\" }] }\n\
                [task.b]\nunder.top = {}\n\
                load = { phases = [{ run = \"3ms\", within = \"19ms\" }, { run = \"1ms\" }, { timer = \"20ms\" }] }\n\
                [task.c]\nunder.top = {}\nload = \"busy\"\n";
    let run = run(&parse(plan), 100 * MS, 1);
    // of 19 ms the node is sure of 5: b does not fit, and takes turns
    assert_eq!((of(&run, "a"), of(&run, "b")), ((5, 5, 5), (5, 0, 0)));
    assert_eq!(run.task("c").constraints, None);
    let told: Vec<_> = run.events.iter().filter(|event| event.now_ns < 20 * MS).collect();
    let told = told.iter().filter(|event| matches!(event.kind(), Some(Kind::Tell | Kind::Met)));
    let told: Vec<_> = told.map(|event| (event.now_ns / MS, event.kind().unwrap(), event.value)).collect();
    let no = told[1].2;
    assert_eq!(told, [(0, Kind::Tell, 0), (0, Kind::Tell, no), (4, Kind::Met, 19 * MS)]);
    assert_eq!(tierce_policy::Error(no as u32).name(), "constraint_not_feasible");
    // one whose node nobody is below
    let plan = "[node.top]\npolicy = \"round-robin\"\ncpu = 0\n[task.a]\nunder.top = {}\n\
                load = { phases = [{ run = \"1ms\", within = \"9ms\" }, { sleep = \"9ms\" }] }\n";
    assert_eq!(of(&common::run(&parse(plan), 100 * MS, 1), "a"), (10, 0, 0));
}

/// A load that asks, and within how long.
fn asks(maker: &mut Maker, period_us: u64) -> (String, u64) {
    let within_us = period_us * maker.between(1, 5);
    let most_us = maker.between(1, (within_us / 3).max(2));
    let sleep_us = maker.between(1, 3 * within_us);
    let phases =
        format!("{{ run = {{ min = \"1us\", max = \"{most_us}us\" }}, within = \"{within_us}us\" }}");
    let more = ["", ", { run = \"500us\" }"][maker.between(0, 1) as usize];
    (
        format!("{{ phases = [{phases}{more}, {{ sleep = {{ min = \"1us\", max = \"{sleep_us}us\" }} }}] }}"),
        within_us,
    )
}

/// Activities in a reservation that has what a priority leaves it, or in one inside of it; some tasks may ask a pool, too. Returns
/// within how long each task asks.
fn plan(seed: u64) -> (String, Vec<(String, u64)>) {
    let mut maker = Maker::new(seed, "constraints");
    let (mut tasks, mut left) = (Vec::new(), 95);
    maker.text += "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
                   [node.rt]\npolicy = \"reservation\"\nunder.top = { priority = 1 }\n\
                   [node.rest]\npolicy = \"fair\"\nunder.top = {}\n\
                   [task.other]\nunder.rest = {}\nload = \"busy\"\n";
    for activity in 0..maker.between(1, 3) {
        let (period_us, share) = (maker.between(8, 80) * 250, maker.between(10, 40).min(left / 2));
        left -= share;
        let budget = format!("budget = \"{}us\"", period_us * share / 100);
        let quantum_us = maker.between(1, 8) * 250;
        let name = format!("activity{activity}");
        let _ = writeln!(
            maker.text,
            "[node.{name}]\npolicy = \"constraint\"\nquantum = \"{quantum_us}us\"\n{budget}\nperiod = \"{period_us}us\"\n\
             under.rt = {{ {budget}, period = \"{period_us}us\" }}"
        );
        for at in 0..maker.between(1, 4) {
            let (load, within_us) = match maker.between(0, 3) {
                0 => ("\"busy\"".into(), 0),
                _ => asks(&mut maker, period_us),
            };
            let pool = if activity > 0 && maker.between(0, 1) == 0 { "under.activity0 = {}\n" } else { "" };
            let rest = if maker.between(0, 1) == 0 { "under.rest = {}\n" } else { "" };
            let _ =
                writeln!(maker.text, "[task.{name}-{at}]\nunder.{name} = {{}}\n{pool}{rest}load = {load}");
            if within_us > 0 {
                tasks.push((format!("{name}-{at}"), within_us * 1_000));
            }
        }
    }
    // siblings of the activities: jobs that come as they like, and one that always waits for its budget
    let period_us = maker.between(8, 80) * 250;
    let _ = writeln!(
        maker.text,
        "[task.sibling]\nunder.rt = {{ budget = \"{}us\", period = \"{period_us}us\" }}\n\
         load = {{ separation = \"{}us\", extra = \"{period_us}us\", work = \"{period_us}us\", soft = true }}",
        period_us * left / 100,
        period_us / 2 + 1
    );
    (maker.text, tasks)
}

#[test]
fn what_is_accepted_is_met() {
    const END_NS: u64 = 500 * MS;
    let (mut accepted, mut refused) = (0, 0);
    for seed in 1..=150 {
        let (text, tasks) = plan(seed);
        let plan = parse(&text);
        assert!(plan.admit().holds, "seed {seed}\n{text}\n{}", plan.admit().outline(&plan));
        let floor_ns = seed % 2 * 5_000; // up to which a reservation holds back what is left
        let run = run_with(&plan, END_NS, Options { seed, floor_ns, ..Options::default() });
        for (name, within_ns) in tasks {
            let Some(Constraints { asked, accepted: yes, met }) = run.task(&name).constraints else {
                continue;
            };
            let id = run.task(&name).id;
            let last =
                run.events.iter().rfind(|event| event.kind() == Some(Kind::Tell) && event.a == id).unwrap();
            let under_way = last.value == 0 && last.now_ns + within_ns >= END_NS;
            assert!(
                yes == met || (under_way && yes == met + 1),
                "seed {seed}: {name}: {asked} asked, {yes} accepted, {met} met\n{text}"
            );
            (accepted, refused) = (accepted + yes, refused + asked - yes);
        }
    }
    println!("{accepted} accepted, {refused} refused");
    assert!(accepted > 2000 && refused > 500);
}
