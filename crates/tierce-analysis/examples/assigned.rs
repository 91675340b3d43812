//! Ways to assign tasks to CPUs beside each other: of random sets with deadlines equal to periods, in percent, how many each assigns.
//!
//! usage: assigned [SETS of each utilisation, default 1000] [SEED, default 2001]

use tierce_analysis::generate::{tasks, Draw, Periods, Shares};
use tierce_analysis::partition::{partition, Fit, Partition};
use tierce_analysis::split::{self, Algorithm, Costs, Question};
use tierce_analysis::{global, utilisation, zero_laxity, Task};
use tierce_guarantee::whole;

const CPUS: u32 = 4;

fn in_slots(tasks: &[Task], algorithm: Algorithm) -> bool {
    let costs = Costs::default();
    let question = Question { algorithm, cpus: CPUS, delta: 4, costs, piece_min_ns: 1, rest_ns: 0 };
    split::assign(tasks, &question).is_ok()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let (sets, seed) = (arguments.next().unwrap_or(1_000), arguments.next().unwrap_or(2001));
    let mut draw = Draw::new(seed);
    println!("seed {seed}, {sets} sets of 10 tasks on {CPUS} CPUs each\n| utilisation | global EDF | first fit | `nps-f` | `s-ekg` | `c=d` |");
    for percent in [80, 85, 90, 92, 94, 96, 98] {
        let mut counts = [0; 5];
        for _ in 0..sets {
            let sum = f64::from(percent * CPUS) / 100.0;
            let shares = Shares::UUniFastDiscard { tasks: 10, sum };
            let set = tasks(&shares, &Periods::LogUniform(1_000_000, 100_000_000), &mut draw);
            let set = set.expect("there are such sets");
            let fits = |members: &[usize]| {
                let members: Vec<_> = members.iter().map(|index| set[*index]).collect();
                utilisation(&members) <= whole(1)
            };
            let found = [
                global::earliest_deadline(&set, CPUS).expect("it is supported").schedulable,
                matches!(partition(&set, CPUS as usize, Fit::First, fits), Partition::Fits(_)),
                in_slots(&set, Algorithm::NpsF),
                in_slots(&set, Algorithm::SEkg),
                zero_laxity::assign(&set, CPUS).expect("it is supported").is_ok(),
            ];
            counts.iter_mut().zip(found).for_each(|(count, found)| *count += u64::from(found));
        }
        let cells: Vec<_> =
            counts.iter().map(|count| format!("{:.1} %", *count as f64 * 100.0 / sets as f64)).collect();
        println!("| {percent} % | {} |", cells.join(" | "));
    }
}
