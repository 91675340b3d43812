//! Load the object and say what the verifier examined: a line for each program, ordered by what it cost. Exits with 1 if it is refused.
//!
//!     verify                              in every way that leaves the verifier other code
//!     verify stats cpus-all               in these
//!     verify [CPUS] FILE.toml...          made for these plans
//!     verify [CPUS] random:COUNT:SEED     with random sets of policies and parts of the engine
//!     verify [CPUS] set:POLICIES:PARTS    with this set, in hexadecimal digits, as a line for a random one names it
use anyhow::{anyhow, Context, Result};
use std::path::Path;
use std::process::ExitCode;
use tierce_admission::PlanExt;
use tierce_plan::{Plan, ThrottleAt};
use tierce_scx::kernel::{Kernel, Loaded, Options, COUNTS, EVERYTHING, MEASURED, STATS};

fn main() -> Result<ExitCode> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let cpus: u32 = match words.first().and_then(|word| word.parse().ok()) {
        Some(cpus) => {
            words.remove(0);
            cpus
        }
        None => 1,
    };
    let mut list: Vec<(String, Options)> = Vec::new();
    for word in &words {
        if word.ends_with(".toml") {
            list.push((word.clone(), for_plan(Path::new(word), cpus)?));
        } else if let Some((count, seed)) = word.strip_prefix("random:").and_then(|rest| rest.split_once(':'))
        {
            list.extend(random(count.parse()?, seed.parse()?, cpus));
        } else if let Some((policies, parts)) =
            word.strip_prefix("set:").and_then(|rest| rest.split_once(':'))
        {
            list.push(set(u64::from_str_radix(policies, 16)?, u64::from_str_radix(parts, 16)?, cpus));
        } else {
            let way = ways().into_iter().find(|(name, _)| name == word);
            let (_, options) = way.with_context(|| format!("no way is called {word}"))?;
            list.push((word.clone(), options));
        }
    }
    if words.is_empty() {
        list.extend(ways().into_iter().map(|(name, options)| (name.to_string(), options)));
    }
    let mut code = ExitCode::SUCCESS;
    for (index, (name, options)) in list.iter().enumerate() {
        if let Some((same, _)) = list[..index].iter().find(|(_, earlier)| earlier == options) {
            println!("{name} is loaded as {same} is");
        } else if let Err(why) = examine(name, options.clone()) {
            println!("{name} refused: {why:#}");
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// All ways that leave the verifier other code.
fn ways() -> [(&'static str, Options); 16] {
    let plain = Options::default();
    [
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
        ("inherits", Options { trace_kinds: STATS, inherits: true, ..plain.clone() }),
        // On one CPU what is for several is not looked at.
        ("cpus", Options { cpus: 2, ..plain.clone() }),
        ("cpus-stats", Options { cpus: 2, trace_kinds: STATS, ..plain.clone() }),
        ("cpus-all", Options { cpus: 2, trace_kinds: EVERYTHING, record: true, ..plain.clone() }),
        ("cpus-user", Options { cpus: 2, trace_kinds: STATS, throttle_at_user: true, ..plain.clone() }),
        ("cpus-inherits", Options { cpus: 2, trace_kinds: STATS, inherits: true, ..plain.clone() }),
    ]
}

fn for_plan(path: &Path, cpus: u32) -> Result<Options> {
    let host = tierce_plan::Options { cpus };
    let plan = Plan::load_with(path, host).map_err(|faults| anyhow!("{faults}"))?;
    Ok(Options {
        cpus: plan.machine.cpus,
        policies: plan.policies(),
        parts: plan.parts(),
        trace_kinds: STATS,
        throttle_at_user: plan.run.throttle == ThrottleAt::User,
        inherits: plan.run.inherits,
        ..Options::default()
    })
}

/// So many sets of policies and parts of the engine.
fn random(count: u32, mut seed: u64, cpus: u32) -> impl Iterator<Item = (String, Options)> {
    let mut next = move || {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        seed >> 32
    };
    (0..count).map(move |_| set(next() & next() & next() & next(), next() & 15, cpus))
}

fn set(policies: u64, parts: u64, cpus: u32) -> (String, Options) {
    let options = Options { cpus, policies, parts, trace_kinds: STATS, ..Options::default() };
    (format!("set:{policies:x}:{parts:x}"), options)
}

fn examine(name: &str, options: Options) -> Result<()> {
    let kernel = Kernel::load(options)?;
    let Loaded { took, pruned, refusals, .. } = kernel.loaded();
    let mut programs = kernel.programs();
    programs.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let whole = if pruned { "" } else { ", the whole object" };
    let again = if refusals > 0 { format!(", refused {refusals} times before") } else { String::new() };
    println!("{name} loaded in {took:?}{whole}{again}");
    for (program, count) in programs {
        println!("{name} {program} {count}");
    }
    Ok(())
}
