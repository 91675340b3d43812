//! Results as tables.

use super::pools::{self, load, pool, stages, EXPERIMENTS};
use super::results::{Counts, Run};
use super::settings::Args;
use std::fmt::Write as _;
use tierce_admission::percent;

pub fn tables(runs: &[Run], args: &Args) -> String {
    let mut text = String::new();
    if args.results.is_empty() {
        let _ = writeln!(text, "{}", args.settings.in_words());
    }
    for extended in [false, true] {
        for experiment in EXPERIMENTS {
            let of: Vec<_> =
                runs.iter().filter(|run| run.extended == extended && run.experiment == experiment).collect();
            match of[..] {
                [] => {}
                _ if extended => extended_table(&mut text, experiment, &of, args),
                _ => table(&mut text, experiment, &of, args),
            }
        }
    }
    text
}

fn table(text: &mut String, experiment: u32, runs: &[&Run], args: &Args) {
    let _ = writeln!(text, "\nExperiment {experiment}: {}\n", pools::title(experiment));
    let _ = writeln!(text, "  scheduler      iterations   load   first miss  misses there  switches/s");
    let share = |step: u32| percent(&load(&pool(experiment, step)));
    for run in runs {
        let passed = if run.missed_in_the_baseline() { None } else { run.iterations() };
        let missed = run.steps.iter().find(|step| step.1.misses > 0);
        let _ = writeln!(
            text,
            "  {:<13}  {:>10}  {:>7}  {:>9}  {:>12}  {:>10.0}",
            run.scheduler.name(),
            passed.map_or("none".into(), |passed| passed.to_string()),
            passed.map_or(String::new(), share),
            missed.map_or("none".into(), |step| share(step.0)),
            missed.map_or(0, |step| step.1.misses),
            run.switches_per_second()
        );
    }
    if args.steps {
        for run in runs {
            let _ =
                writeln!(text, "\n  {}\n  step     load    jobs  misses  switches/s", run.scheduler.name());
            for (step, counts) in &run.steps {
                let per_second = counts.switches as f64 * 1e9 / counts.ns.max(1) as f64;
                let _ = writeln!(
                    text,
                    "  {step:>4}  {:>7}  {:>6}  {:>6}  {per_second:>10.0}",
                    share(*step),
                    counts.jobs,
                    counts.misses
                );
            }
        }
    }
}

fn extended_table(text: &mut String, experiment: u32, runs: &[&Run], args: &Args) {
    let loads = stages(experiment).map(|step| percent(&load(&pool(experiment, step))));
    let [first, second, third] = loads;
    let _ = writeln!(
        text,
        "\nExtended, experiment {experiment}: {first} of the CPU until 30 s, {second} until 45 s, {third} until 120 s\n"
    );
    let _ = writeln!(text, "  scheduler      misses  before    in  after the overload   jobs  switches/s");
    for run in runs {
        let parts = match &run.steps[..] {
            [a, b, c] => [a, b, c].map(|part| part.1.misses.to_string()),
            _ => Default::default(),
        };
        let jobs: u64 = run.steps.iter().map(|step| step.1.jobs).sum();
        let [before, within, after] = parts;
        let _ = writeln!(
            text,
            "  {:<13}  {:>6}  {before:>6}  {within:>4}  {after:>18}  {jobs:>5}  {:>10.0}",
            run.scheduler.name(),
            run.misses(),
            run.switches_per_second()
        );
    }
    if args.steps {
        for run in runs {
            let missed = |counts: &Counts| {
                let tasks: Vec<_> =
                    counts.tasks.iter().map(|(name, misses)| format!("{name} {misses}")).collect();
                tasks.join(", ")
            };
            let _ = writeln!(text, "\n  {}: misses of each task", run.scheduler.name());
            for (step, counts) in &run.steps {
                let _ = writeln!(text, "  step {step:>2}: {}", missed(counts));
            }
        }
    }
}
