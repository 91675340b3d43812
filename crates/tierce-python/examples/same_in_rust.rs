//! What bench/python measures, without Python: seconds of a simulation, microseconds of an analysis; the best of some rounds.
//!
//! same_in_rust PLAN.toml TASKS.csv ROUNDS

use std::time::Instant;
use tierce_admission::PlanExt as _;
use tierce_analysis::question::{Options, Policy, Question};
use tierce_plan::Plan;
use tierce_sim::Simulation;

const SECOND_NS: u64 = 1_000_000_000;
/// So few at once that something else on this machine does not get in between each time.
const CALLS: u32 = 100;

fn best(rounds: u32, mut one: impl FnMut()) -> f64 {
    let seconds = (0..rounds).map(|_| {
        let began = Instant::now();
        one();
        began.elapsed().as_secs_f64()
    });
    seconds.fold(f64::INFINITY, f64::min)
}

fn main() {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, plan, tasks, rounds] = &arguments[..] else { panic!("same_in_rust PLAN.toml TASKS.csv ROUNDS") };
    let rounds = rounds.parse().expect("a number of rounds");
    let plan = Plan::load(plan).expect("a plan");
    let entries = tierce_analysis::parse(&std::fs::read_to_string(tasks).expect("a file")).expect("a table");
    let simulation = best(rounds, || {
        let options = tierce_sim::Options { seed: 1, ..Default::default() };
        let mut simulation = Simulation::new(&plan, options).expect("it can be played");
        simulation.run_until(SECOND_NS).expect("the engine keeps its rules");
        std::hint::black_box(simulation.report());
    });
    let options = Options { policy: Some(Policy::Edf), ..Options::default() };
    let analyses = best(100 * rounds, || {
        for _ in 0..CALLS {
            let asked = Question::new(entries.clone(), &options).expect("a question");
            std::hint::black_box(asked.answer().expect("an answer"));
        }
    });
    println!("{simulation:.9} {:.9}", analyses / f64::from(CALLS) * 1e6);
}
