//! Figures of results, shaped like figures 4.3 to 4.8 of Golchin 2017.

use super::pools;
use super::results::{Run, Scheduler};
use crate::commands::picture;
use anyhow::{Context, Result};
use std::path::Path;
use tierce_figure::{Axis, Block, Figure, Legend, Look, Panel, Shape};

/// Round robin is what the others are compared with.
fn look(scheduler: Scheduler) -> Look {
    match scheduler {
        Scheduler::RoundRobin => Look::Reference,
        Scheduler::Edf => Look::Number(0),
        Scheduler::Multiburst => Look::Number(1),
        Scheduler::Priority => Look::Number(2),
        Scheduler::IPlusPi => Look::Number(4),
    }
}

/// A scheduler's value in each group of bars, if it has one there.
type Values<'a> = &'a dyn Fn(Scheduler, usize) -> Option<f64>;

/// Groups of bars, a bar for each scheduler.
fn bars(title: &str, groups: &[String], schedulers: &[Scheduler], values: Values) -> Panel {
    let wide = 0.88 / schedulers.len().max(1) as f64;
    let mut most = 1.0f64;
    let mut all = Vec::new();
    for (at, scheduler) in schedulers.iter().enumerate() {
        let mut blocks = Vec::new();
        for group in 0..groups.len() {
            let Some(value) = values(*scheduler, group) else { continue };
            most = most.max(value);
            let begin = group as f64 + 0.06 + at as f64 * wide;
            let x = [begin + wide * 0.04, begin + wide * 0.96];
            blocks.push(Block { above: format!("{value:.0}"), ..Block::new(x, [0.0, value]) });
        }
        all.push((scheduler, Shape::Boxes(blocks)));
    }
    let panel = Panel::new(230.0, Axis::columns(groups), Axis::new("", 0.0, most * 1.08)).titled(title);
    all.into_iter()
        .fold(panel, |panel, (scheduler, shape)| panel.with(scheduler.shown(), look(*scheduler), shape))
}

/// All that the runs have.
pub fn write(runs: &[Run], folder: &Path, format: &str) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    for (name, figure) in figures(runs) {
        picture::write(&figure, &folder.join(format!("hartstone-{name}.{format}")))?;
    }
    Ok(())
}

/// With their names.
fn figures(runs: &[Run]) -> Vec<(String, Figure)> {
    let schedulers: Vec<_> =
        Scheduler::ALL.into_iter().filter(|one| runs.iter().any(|run| run.scheduler == *one)).collect();
    let mut figures = Vec::new();
    for experiment in pools::EXPERIMENTS {
        let of = |scheduler| {
            let mut mine = runs.iter().filter(|run| !run.extended && run.experiment == experiment);
            mine.find(|run| run.scheduler == scheduler)
        };
        if !schedulers.iter().any(|scheduler| of(*scheduler).is_some()) {
            continue;
        }
        let group = [format!("test {experiment}")];
        let passed = |scheduler, _| Some(of(scheduler)?.iterations().unwrap_or(0).into());
        let switches = |scheduler, _| of(scheduler).map(Run::switches_per_second);
        let mut figure = Figure::new("", bars("Iterations without a miss", &group, &schedulers, &passed));
        figure.rows[0].push(bars("Context switches per second", &group, &schedulers, &switches));
        figures.push((format!("test-{experiment}"), figure.legend(Legend::Below)));
    }
    type Value = fn(&Run) -> f64;
    let extended: [(&str, &str, Value); 2] = [
        ("misses", "Deadlines missed in 120 s", |run| run.misses() as f64),
        ("switches", "Context switches per second", Run::switches_per_second),
    ];
    let of = |experiment| runs.iter().filter(move |run| run.extended && run.experiment == experiment);
    let shown: Vec<u32> =
        pools::EXPERIMENTS.into_iter().filter(|experiment| of(*experiment).next().is_some()).collect();
    for (name, title, value) in extended.into_iter().filter(|_| !shown.is_empty()) {
        let groups: Vec<_> = shown.iter().map(|experiment| format!("test {experiment}")).collect();
        let values =
            |scheduler, group: usize| of(shown[group]).find(|run| run.scheduler == scheduler).map(value);
        let figure = Figure::new("", bars(title, &groups, &schedulers, &values));
        let wide = (76.0 + 205.0 * groups.len() as f64).max(660.0);
        figures.push((format!("extended-{name}"), figure.wide(wide).legend(Legend::Below)));
    }
    figures
}
