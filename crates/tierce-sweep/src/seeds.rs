//! Seeds, and the identity of a study: both are SHA-256 of a text.

use crate::study::{Drawn, Study};
use sha2::{Digest, Sha256};

/// Of what rows mean and how they follow from a study. Whoever changes that counts on.
const FORMAT: u32 = 1;

/// The seed of a set: the first eight bytes, the highest first, of the SHA-256 of
///
/// ```text
/// seed=1 method=emberson cpus=1 tasks=20 utilisation=0.5..0.5 shares=0..1 periods=1000000..1000000000 set=17
/// ```
///
/// with times in ns, `tasks=any` with `paper`; without `[generate]` of `seed=1 set=17`. So sets at a point stay as they are when the
/// grid gets more points, a test is added or more sets are wanted, and all tests and all parameters of plans see the same sets.
pub fn seed(base: u64, drawn: Option<&Drawn>, set: u32) -> u64 {
    let place = drawn.map_or(String::new(), |drawn| {
        let Drawn { method, cpus, tasks, utilisation, shares, periods_ns } = drawn;
        let tasks = tasks.map_or("any".into(), |tasks| tasks.to_string());
        format!(
            "method={} cpus={cpus} tasks={tasks} utilisation={}..{} shares={}..{} periods={}..{} ",
            method.name(),
            utilisation.0,
            utilisation.1,
            shares.0,
            shares.1,
            periods_ns.0,
            periods_ns.1
        )
    });
    let hash = Sha256::digest(format!("seed={base} {place}set={set}"));
    hash.iter().take(8).fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

/// What the rows of a study follow from, as 64 hexadecimal digits: all but its figures, and which version of this program it was.
pub fn identity(study: &Study) -> String {
    let Study { seed, sets, chunk, parameters, points, tests, figures: _, files: _ } = study;
    let version = env!("CARGO_PKG_VERSION");
    let text = format!("{FORMAT} {version} {seed} {sets} {chunk} {parameters:?} {points:?} {tests:?}");
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}
