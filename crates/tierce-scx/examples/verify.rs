//! Load the object in every way that leaves the verifier other code, and say what it looked at: a line for each program, ordered by
//! what it cost. A way's name, or several, as arguments: these alone; or files of plans: for each of them. Exits with 1 if one is
//! refused.
use anyhow::{anyhow, ensure, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;
use tierce_plan::Plan;
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
        ("cpus-user", Options { cpus: 2, trace_kinds: STATS, throttle_at_user: true, ..plain.clone() }),
    ];
    let (plans, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|name| name.ends_with(".toml"));
    for way in &wanted {
        ensure!(ways.iter().any(|(name, _)| name == way), "no way is called {way}");
    }
    let made_for = plans.iter().map(|file| {
        let plan = Plan::load(Path::new(file)).map_err(|faults| anyhow!("{faults}"))?;
        let options = Options {
            cpus: plan.machine.cpus,
            policies: plan.policies(),
            parts: plan.parts(),
            trace_kinds: STATS,
            ..plain.clone()
        };
        Ok((file.as_str(), options))
    });
    let made_for: Vec<_> = made_for.collect::<Result<_>>()?;
    let mut code = ExitCode::SUCCESS;
    let all = ways.iter().filter(|_| plans.is_empty()).map(|(name, options)| (*name, options.clone()));
    for (name, options) in all.chain(made_for) {
        if plans.is_empty() && !wanted.is_empty() && !wanted.iter().any(|way| way == name) {
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
