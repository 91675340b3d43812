//! Load the object in every way that leaves the verifier other code, and say what it looked at: a line for each program, ordered by
//! what it cost. A way's name, or several, as arguments: these alone. Exits with 1 if one is refused.
use anyhow::{ensure, Result};
use std::process::ExitCode;
use std::time::Instant;
use tierce_scx::kernel::{Kernel, Options, COUNTS, EVERYTHING, MEASURED, STATS};

fn main() -> Result<ExitCode> {
    let plain = Options::default();
    let ways = [
        ("plain", plain.clone()),
        ("counts", Options { trace_kinds: COUNTS, ..plain.clone() }),
        ("stats", Options { trace_kinds: STATS, ..plain.clone() }),
        ("measure", Options { trace_kinds: STATS | MEASURED, ..plain.clone() }),
        ("trace", Options { trace_kinds: EVERYTHING, ..plain.clone() }),
        ("record", Options { trace_kinds: STATS, record: true, ..plain.clone() }),
        ("play", Options { record: true, overheads_stolen: false, ..plain.clone() }),
        ("all", Options { trace_kinds: EVERYTHING, record: true, ..plain.clone() }),
        ("exercise", Options { exercise: true, ..plain.clone() }),
        ("user", Options { trace_kinds: STATS, throttle_at_user: true, ..plain.clone() }),
        // On one CPU what is for several is not looked at.
        ("cpus", Options { cpus: 2, ..plain.clone() }),
        ("cpus-stats", Options { cpus: 2, trace_kinds: STATS, ..plain.clone() }),
        ("cpus-all", Options { cpus: 2, trace_kinds: EVERYTHING, record: true, ..plain.clone() }),
        ("cpus-user", Options { cpus: 2, trace_kinds: STATS, throttle_at_user: true, ..plain }),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for way in &wanted {
        ensure!(ways.iter().any(|(name, _)| name == way), "no way is called {way}");
    }
    let mut code = ExitCode::SUCCESS;
    for (name, options) in ways {
        if !wanted.is_empty() && !wanted.iter().any(|way| way == name) {
            continue;
        }
        let begun = Instant::now();
        let kernel = match Kernel::load(options) {
            Ok(kernel) => kernel,
            Err(why) => {
                println!("{name} refused: {why:#}");
                code = ExitCode::FAILURE;
                continue;
            }
        };
        let took = begun.elapsed();
        let mut programs = kernel.programs();
        programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        println!("{name} loaded in {took:?}");
        for (program, count) in programs {
            println!("{name} {program} {count}");
        }
    }
    Ok(code)
}
