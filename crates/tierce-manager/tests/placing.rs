//! The strategies of the rule `bin-packing` beside those of `tierce place`, which places all reservations at once.

mod common;
#[path = "../../../tests/draw.rs"]
mod draw;

use common::*;
use draw::Draw;
use serde_json::json;
use tierce_analysis::partition::{
    by_utilisation, fewest_switches, load, partition, switches, Fit, Partition,
};
use tierce_analysis::Task;

const CPUS: usize = 4;

/// Reservations of different periods, each of a whole percentage of a CPU.
fn drawn(draw: &mut Draw, count: usize, most: usize) -> Vec<Task> {
    let mut periods: Vec<u64> = (1..=80).collect();
    let one = |_| {
        let period_ns = periods.swap_remove(draw.below(periods.len())) * MS;
        Task::new(period_ns / 100 * (1 + draw.below(most) as u64), period_ns)
    };
    (0..count).map(one).collect()
}

/// What a CPU of the plan has room for, beside the 5 % of the default node.
fn holds(tasks: &[Task], members: &[usize]) -> bool {
    let whole = load(&Task::new(100, 100));
    members.iter().map(|index| load(&tasks[*index])).sum::<u128>() <= whole / 100 * 95
}

/// They ask in this order; the CPU of each.
fn by_rule(tasks: &[Task], order: &[usize], strategy: &str) -> Vec<usize> {
    let mut manager = manager(FOUR, &[rule("bin-packing", json!({ "strategy": strategy }))]);
    let mut cpu_of = vec![0; tasks.len()];
    for index in order {
        let Task { work_ns, period_ns, .. } = tasks[*index];
        let id = granted(&mut manager, 0, 100 + *index as u32, &[(&format!("{work_ns}ns/{period_ns}ns"), 0)]);
        cpu_of[*index] = manager.books().requests[&id].held.as_ref().unwrap().cpu.unwrap() as usize;
    }
    cpu_of
}

/// Who asks in the order in which `tierce place` looks at them gets what it answers.
#[test]
fn who_asks_in_the_order_of_tierce_place_gets_its_cpus() {
    let mut draw = Draw::new(71);
    for (strategy, fit) in
        [("first", Fit::First), ("best", Fit::Best), ("worst", Fit::Worst), ("mixed", Fit::Mixed)]
    {
        for _ in 0..4 {
            // Dealt out: what fits nowhere else than on the next CPU is no deal.
            let tasks = drawn(&mut draw, 12, if fit == Fit::Mixed { 25 } else { 40 });
            let mut order = by_utilisation(&tasks);
            if fit == Fit::Mixed {
                order.sort_by_key(|index| tasks[*index].period_ns);
            }
            let Partition::Fits(placed) = partition(&tasks, CPUS, fit, |members| holds(&tasks, members))
            else {
                continue;
            };
            assert_eq!(by_rule(&tasks, &order, strategy), placed, "{strategy}: {tasks:?}");
        }
    }
}

/// Each goes where it adds the fewest switches, as `tierce place` estimates them. `tierce place` moves others, too, and has fewer.
#[test]
fn each_goes_where_it_adds_the_fewest_switches() {
    let mut draw = Draw::new(72);
    let (mut of_rule, mut of_worst, mut of_place) = (0, 0, 0);
    for _ in 0..4 {
        let tasks = drawn(&mut draw, 12, 15);
        let levels: Vec<u32> = tasks.iter().map(|task| (task.period_ns / MS) as u32).collect();
        let order: Vec<usize> = (0..tasks.len()).collect();
        let cpu_of = by_rule(&tasks, &order, "switches");
        let on = |cpu_of: &[usize], cpu| -> Vec<usize> {
            (0..cpu_of.len()).filter(|index| cpu_of[*index] == cpu).collect()
        };
        for index in 0..tasks.len() {
            let before = &cpu_of[..index];
            let added = |cpu: usize| {
                let mut members = on(before, cpu);
                let had = switches(&tasks, &levels, &members);
                members.push(index);
                switches(&tasks, &levels, &members) - had
            };
            let least = (0..CPUS).map(added).min().unwrap();
            // The rule counts in whole millionths for each pair.
            assert!(
                added(cpu_of[index]) <= least + 2 * tasks.len() as u128,
                "{index} of {tasks:?}: {cpu_of:?}"
            );
        }
        let all = |cpu_of: &[usize]| -> u128 {
            (0..CPUS).map(|cpu| switches(&tasks, &levels, &on(cpu_of, cpu))).sum()
        };
        of_rule += all(&cpu_of);
        of_worst += all(&by_rule(&tasks, &order, "worst"));
        of_place += all(&fewest_switches(&tasks, &levels, CPUS, cpu_of, |members| holds(&tasks, members)));
    }
    println!("millionths of switches per second: {of_place} place, {of_rule} rule, {of_worst} worst");
    assert!(of_place <= of_rule && of_rule < of_worst);
}
