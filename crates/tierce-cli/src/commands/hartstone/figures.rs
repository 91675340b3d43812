//! Pictures of results, shaped like figures 4.3 to 4.8 of Golchin 2017.

use super::pools;
use super::results::{Run, Scheduler};
use crate::picture::{Anchor, Colour, Part, Picture, Text};
use anyhow::{Context, Result};
use std::path::Path;

const INK: Colour = [40, 40, 40];
const GRID: Colour = [215, 215, 215];
const LEFT: f32 = 62.0;
const TOP: f32 = 48.0;
const HIGH: f32 = 230.0;

fn colour(scheduler: Scheduler) -> Colour {
    match scheduler {
        Scheduler::RoundRobin => [150, 150, 150],
        Scheduler::Priority => [106, 153, 78],
        Scheduler::Edf => [55, 114, 176],
        Scheduler::IPlusPi => [221, 150, 60],
        Scheduler::Multiburst => [183, 58, 72],
    }
}

fn text(at: (f32, f32), size: f32, anchor: Anchor, words: impl Into<String>) -> Part {
    Part::Text(Text { at, size, anchor, colour: INK, turned: false, words: words.into() })
}

fn area(left: f32, top: f32, right: f32, bottom: f32, colour: Colour) -> Part {
    Part::Area { points: vec![(left, top), (right, top), (right, bottom), (left, bottom)], colour }
}

/// A step of an axis with at most eight of them below `most`: 1, 2 or 5 and zeros.
fn grid(most: f64) -> f64 {
    let mut step = 1.0;
    for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
        if step * 8.0 >= most {
            break;
        }
        step *= factor;
    }
    step
}

/// Groups of bars: the words below each group, and its values.
struct Bars<'a> {
    title: &'a str,
    groups: Vec<(String, Vec<(Scheduler, f64)>)>,
}

impl Bars<'_> {
    fn most(&self) -> f64 {
        let values = self.groups.iter().flat_map(|group| &group.1).map(|bar| bar.1);
        values.fold(1.0, f64::max)
    }

    fn draw(&self, left: f32, width: f32, parts: &mut Vec<Part>) {
        let (most, bottom) = (self.most() * 1.06, TOP + HIGH);
        let y = |value: f64| bottom - (value / most) as f32 * HIGH;
        parts.push(text((left, TOP - 16.0), 13.0, Anchor::Start, self.title));
        let (step, mut at) = (grid(most), 0.0);
        while at <= most {
            let line = vec![(left, y(at)), (left + width, y(at))];
            parts.push(Part::Line { points: line, width: 1.0, colour: GRID, dashed: false });
            parts.push(text((left - 6.0, y(at) + 4.0), 11.0, Anchor::End, format!("{at}")));
            at += step;
        }
        let group = width / self.groups.len().max(1) as f32;
        for (number, (words, bars)) in self.groups.iter().enumerate() {
            let begin = left + number as f32 * group + group * 0.06;
            let bar = group * 0.88 / bars.len().max(1) as f32;
            for (at, (scheduler, value)) in bars.iter().enumerate() {
                let from = begin + at as f32 * bar;
                parts.push(area(from + 1.5, y(*value), from + bar - 1.5, bottom, colour(*scheduler)));
                let words = format!("{value:.0}");
                parts.push(text((from + bar / 2.0, y(*value) - 4.0), 10.0, Anchor::Middle, words));
            }
            let middle = left + (number as f32 + 0.5) * group;
            parts.push(text((middle, bottom + 18.0), 12.0, Anchor::Middle, words.clone()));
        }
        let line = vec![(left, bottom), (left + width, bottom)];
        parts.push(Part::Line { points: line, width: 1.0, colour: INK, dashed: false });
    }
}

fn picture(width: f32, bars: &[(f32, f32, Bars)], schedulers: &[Scheduler]) -> Picture {
    let mut parts = Vec::new();
    for (left, wide, one) in bars {
        one.draw(*left, *wide, &mut parts);
    }
    let (mut x, y) = (LEFT, TOP + HIGH + 46.0);
    for scheduler in schedulers {
        parts.push(area(x, y - 10.0, x + 12.0, y + 2.0, colour(*scheduler)));
        parts.push(text((x + 18.0, y), 12.0, Anchor::Start, scheduler.shown()));
        x += 118.0;
    }
    Picture { width, height: y + 18.0, parts }
}

/// All that the runs have, as PNG.
pub fn write(runs: &[Run], folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot write {}", folder.display()))?;
    let schedulers: Vec<_> =
        Scheduler::ALL.into_iter().filter(|one| runs.iter().any(|run| run.scheduler == *one)).collect();
    let named = |value: f64, run: &Run| (run.scheduler, value);
    for experiment in pools::EXPERIMENTS {
        let of: Vec<_> = runs.iter().filter(|run| !run.extended && run.experiment == experiment).collect();
        if of.is_empty() {
            continue;
        }
        let passed = of.iter().map(|run| named(run.iterations().unwrap_or(0).into(), run)).collect();
        let switches = of.iter().map(|run| named(run.switches_per_second(), run)).collect();
        let words = format!("test {experiment}");
        let first = Bars { title: "Iterations without a miss", groups: vec![(words.clone(), passed)] };
        let second = Bars { title: "Context switches per second", groups: vec![(words, switches)] };
        let parts = [(LEFT, 250.0, first), (LEFT + 330.0, 250.0, second)];
        let path = folder.join(format!("hartstone-test-{experiment}.png"));
        picture(LEFT + 330.0 + 250.0 + 16.0, &parts, &schedulers).write(&path)?;
    }
    type Value = fn(&Run) -> f64;
    let extended: [(&str, &str, Value); 2] = [
        ("misses", "Deadlines missed in 120 s", |run| run.misses() as f64),
        ("switches", "Context switches per second", Run::switches_per_second),
    ];
    for (name, title, value) in extended {
        let group = |experiment: u32| {
            let of = runs.iter().filter(|run| run.extended && run.experiment == experiment);
            let bars: Vec<_> = of.map(|run| named(value(run), run)).collect();
            (!bars.is_empty()).then(|| (format!("test {experiment}"), bars))
        };
        let groups: Vec<_> = pools::EXPERIMENTS.into_iter().filter_map(group).collect();
        if !groups.is_empty() {
            let path = folder.join(format!("hartstone-extended-{name}.png"));
            let wide = 205.0 * groups.len() as f32;
            picture((LEFT + wide + 16.0).max(660.0), &[(LEFT, wide, Bars { title, groups })], &schedulers)
                .write(&path)?;
        }
    }
    Ok(())
}
