//! No verdict of the analysis is contradicted by the simulator: 6,000 random sets, a third of them on several CPUs. The benchmark
//! plays 100,000. And what a partition by period is good for.

#[allow(dead_code)]
#[path = "../examples/verdicts.rs"]
mod verdicts;

use tierce_admission::PlanExt;
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::{FixedPriority, Supply, Task};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};

/// TIERCE_SEED plays others than the usual ones.
#[test]
fn no_verdict_is_contradicted() {
    let seed = std::env::var("TIERCE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(2001);
    println!("TIERCE_SEED={seed}");
    println!("{}", verdicts::play(6_000, seed, 100, |_| ()));
}

/// ExSched's Tables 2 and 3: sixteen servers on two CPUs for 4 s, by period and mixed. The paper measured 1.417 times the cost.
#[test]
fn servers_by_period_switch_less() {
    let short = [6, 7, 8, 9, 10, 11, 14, 18].map(|period| Task::new(1, period));
    let servers: Vec<_> = short.into_iter().chain([Task::new(15, 125); 8]).collect();
    let mut analysis = FixedPriority::new();
    let holds = |members: &[usize]| {
        let tasks: Vec<_> = members.iter().map(|index| servers[*index]).collect();
        analysis.schedulable(&tasks, &Supply::WHOLE)
    };
    let Partition::Fits(by_period) = partition(&servers, 2, Fit::Period, holds) else { panic!("they fit") };
    let mixed: Vec<_> = (0..servers.len()).map(|index| index % 2).collect();
    let [by_period, mixed] = [by_period, mixed].map(|cpus| {
        let mut text =
            "machine.cpus = 2\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n".to_string();
        for (index, (server, cpu)) in servers.iter().zip(cpus).enumerate() {
            let (work, period, priority) = (4 * server.work_ns, 4 * server.period_ns, servers.len() - index);
            text += &format!(
                "[task.s{index}]\nunder.top = {{ cpu = {cpu}, priority = {priority} }}\n\
                 load = {{ period = \"{period}ms\", work = \"{work}ms\" }}\n"
            );
        }
        let plan = Plan::parse(&text, "servers").unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
        let mut simulation = Simulation::new(&plan, Options::default()).expect("it fits");
        simulation.run_until(4_000_000_000).expect("no invariant is broken");
        let report = simulation.report();
        assert!(report.tasks.iter().all(|task| task.misses == 0));
        report.tasks.iter().map(|task| task.switches).sum::<u64>()
    });
    println!("{by_period} switches by period, {mixed} mixed");
    assert!(mixed * 10 > by_period * 14, "{mixed} against {by_period}");
}
