//! One set: drawn, and everything done with it.

use crate::analysis::outcome;
use crate::rows::Row;
use crate::seeds::seed;
use crate::simulation::play;
use crate::study::{Kind, Study};
use tierce_analysis::generate::{tasks, Draw};

/// The rows of a set, one per test; or what went wrong, with the place.
pub fn rows_of(study: &Study, job: u64, rows: &mut Vec<Row>) -> Result<(), String> {
    let (place, set) = (job / u64::from(study.sets), (job % u64::from(study.sets)) as u32);
    let point = &study.points[place as usize];
    let seed = seed(study.seed, point.drawn.as_ref(), set);
    let at = |what: String| format!("point {place}, set {set}, seed {seed}: {what}");
    let (drawn, cpus) = match &point.drawn {
        None => (Vec::new(), 1),
        Some(drawn) => {
            let set = tasks(&drawn.shares(), &drawn.periods(), &mut Draw::new(seed));
            (set.map_err(|refusal| at(format!("{}: {}", refusal.rule, refusal.message)))?, drawn.cpus)
        }
    };
    let parameters: Vec<_> = study.parameters.iter().map(String::as_str).zip(&point.parameters).collect();
    for (test, number) in study.tests.iter().zip(0..) {
        let mut row =
            Row { point: place as u32, set, seed, tasks: drawn.len() as u32, test: number, ..Row::default() };
        match &test.kind {
            Kind::Analyse(asked) => {
                let found = outcome(asked, &drawn, cpus);
                let found = found.map_err(|fault| at(format!("{}: {}", test.name, fault.rule)))?;
                (row.schedulable, row.ratio) = (found.schedulable, found.ratio);
            }
            Kind::Simulate(asked) => {
                let found = play(asked, &drawn, &parameters, seed);
                let found = found.map_err(|why| at(format!("{}: {why}", test.name)))?;
                (row.schedulable, row.ratio) = (found.misses == 0, found.ratio);
                (row.jobs, row.misses) = (Some(found.jobs), Some(found.misses));
            }
        }
        rows.push(row);
    }
    Ok(())
}
