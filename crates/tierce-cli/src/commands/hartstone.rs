//! `tierce hartstone`: Hartstone's periodic harmonic tasks under one scheduler after another.

mod figures;
mod pools;
mod results;
mod settings;
mod tables;

use anyhow::{bail, ensure, Context, Result};
use pools::{stages, EXPERIMENTS, STAGES_NS, STEPS_MAX};
use results::{Counts, Run, Scheduler};
use serde_json::{json, Value};
pub use settings::Args;
use settings::{chosen, Experiment};
use std::path::PathBuf;
use std::process::ExitCode;
use tables::tables;
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};

/// Version of the JSON that this command writes.
const VERSION: u32 = 1;

/// Plays plans, and writes them.
struct Player<'a> {
    args: &'a Args,
}

impl Player<'_> {
    fn simulation(&self, text: &str, name: &str) -> Result<Simulation> {
        if let Some(folder) = &self.args.plans {
            let path = folder.join(name);
            std::fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        let plan = match Plan::parse(text, name) {
            Ok(plan) => plan,
            Err(faults) => bail!("settings_make_a_plan: {}", faults.to_string().trim_end()),
        };
        let verdict = plan.admit().faults(&plan).to_string();
        Simulation::new(&plan, Options::default())
            .with_context(|| format!("settings_make_a_plan: {}", verdict.trim_end()))
    }

    fn step(&self, experiment: u32, step: u32, scheduler: Scheduler) -> Result<Counts> {
        let text = self.args.settings.step_plan(experiment, step, scheduler);
        let name = format!("experiment-{experiment}-step-{step}-{}.toml", scheduler.name());
        let mut simulation = self.simulation(&text, &name)?;
        simulation.run_until(self.args.step_ns)?;
        Ok(Counts::of(&simulation))
    }

    fn steps(&self, experiment: u32, scheduler: Scheduler) -> Result<Run> {
        let mut steps = Vec::new();
        for step in 0..=STEPS_MAX {
            let counts = self.step(experiment, step, scheduler)?;
            let missed = counts.misses > 0;
            steps.push((step, counts));
            if missed {
                break;
            }
        }
        Ok(Run { experiment, scheduler, extended: false, steps })
    }

    fn extended(&self, experiment: u32, scheduler: Scheduler) -> Result<Run> {
        let text = self.args.settings.extended_plan(experiment, scheduler);
        let mut simulation =
            self.simulation(&text, &format!("extended-{experiment}-{}.toml", scheduler.name()))?;
        let (mut steps, mut before) = (Vec::new(), Counts::default());
        for (step, until_ns) in stages(experiment).into_iter().zip(STAGES_NS) {
            simulation.run_until(until_ns)?;
            let counts = Counts::of(&simulation);
            steps.push((step, counts.since(&before)));
            before = counts;
        }
        Ok(Run { experiment, scheduler, extended: true, steps })
    }
}

/// What a board has printed: of each line of JSON that tells of a step, its counts. Other lines are its own business.
fn read_results(files: &[PathBuf]) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for path in files {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        for (number, line) in text.lines().enumerate() {
            let Ok(value) = serde_json::from_str::<Value>(line.trim()) else { continue };
            if value.get("experiment").is_none() {
                continue;
            }
            let at = || format!("{}:{}", path.display(), number + 1);
            take_result(&mut runs, &value)
                .map_err(|what| anyhow::anyhow!("result_must_be_a_step: {}: {what}", at()))?;
        }
    }
    ensure!(!runs.is_empty(), "results_have_a_step: no line of JSON that tells of a step");
    let key = |run: &Run| {
        (run.extended, run.experiment, Scheduler::ALL.iter().position(|one| *one == run.scheduler))
    };
    runs.sort_by_key(key);
    runs.iter_mut().for_each(|run| run.steps.sort_by_key(|step| step.0));
    Ok(runs)
}

fn take_result(runs: &mut Vec<Run>, value: &Value) -> Result<(), String> {
    let number = |name: &str| value[name].as_u64().ok_or_else(|| format!("`{name}` is missing"));
    let experiment = number("experiment")? as u32;
    if !EXPERIMENTS.contains(&experiment) {
        return Err(format!("experiment {experiment}, bound 1 to 4"));
    }
    let scheduler = value["scheduler"].as_str().and_then(Scheduler::named).ok_or("no such `scheduler`")?;
    let extended = value["extended"].as_bool().unwrap_or(false);
    let step = number("step")?;
    if step > STEPS_MAX.into() {
        return Err(format!("step {step}, bound {STEPS_MAX}"));
    }
    let counts = Counts {
        ns: number("ns")?,
        jobs: value["jobs"].as_u64().unwrap_or(0),
        misses: number("misses")?,
        switches: number("switches")?,
        tasks: Vec::new(),
    };
    let known =
        |run: &&mut Run| (run.experiment, run.scheduler, run.extended) == (experiment, scheduler, extended);
    let step = (step as u32, counts);
    match runs.iter_mut().find(known) {
        Some(run) => run.steps.push(step),
        None => runs.push(Run { experiment, scheduler, extended, steps: vec![step] }),
    }
    Ok(())
}

/// Run `tierce hartstone`.
pub fn run(args: Args) -> Result<ExitCode> {
    for folder in [&args.plans, &args.plot].into_iter().flatten() {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    }
    let runs = if args.results.is_empty() { simulate(&args)? } else { read_results(&args.results)? };
    if args.json {
        let settings = if args.results.is_empty() { args.settings.in_json(&args) } else { Value::Null };
        let runs: Vec<_> = runs.iter().map(Run::in_json).collect();
        let value = json!({ "version": VERSION, "settings": settings, "runs": runs });
        println!("{}", serde_json::to_string_pretty(&value)?);
    } else {
        print!("{}", tables(&runs, &args));
    }
    if let Some(folder) = &args.plot {
        figures::write(&runs, folder, &args.format)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn simulate(args: &Args) -> Result<Vec<Run>> {
    let experiments: Vec<u32> = match args.experiment {
        Experiment::All => EXPERIMENTS.to_vec(),
        one => vec![one as u32 + 1],
    };
    let chosen: Vec<_> = args.scheduler.iter().flat_map(|one| chosen(*one)).collect();
    let player = Player { args };
    let mut runs = Vec::new();
    for experiment in experiments {
        for scheduler in Scheduler::ALL.into_iter().filter(|one| chosen.contains(one)) {
            let played = if args.extended {
                player.extended(experiment, scheduler)
            } else {
                player.steps(experiment, scheduler)
            };
            runs.push(played?);
        }
    }
    Ok(runs)
}
