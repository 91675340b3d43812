//! Tables and figures of chapter 10 of Regehr's thesis (HLS, 2001), of what the guest of ./run said.

#[path = "../figures.rs"]
mod figures;

use anyhow::Result;
use figures::{axis, chart, folders, number, said, Said};
use std::fs;
use std::path::Path;
use tierce_figure::{Figure, Look, Shape};

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let said = said(&run.join("said.json"))?;
    operations(&said);
    switches(&said, &run, &folder)?;
    depths(&said, &folder)?;
    working_sets(&said, &folder)?;
    events(&said);
    isolation(&said);
    frames(&said);
    Ok(())
}

/// Table 10.1.
fn operations(said: &Said) {
    println!("Table 10.1: operations (us), of a null system call; the same by a request to who has loaded the plan");
    let null = number(&said["control"]["a null system call"]);
    for of in ["control", "socket"] {
        for (name, ns) in said[of].as_object().into_iter().flatten() {
            println!("  {of} {name:30} {:10.1} {:10.1}", number(ns) / 1e3, number(ns) / null);
        }
    }
}

/// Table 10.2 and figure 10.1: from one process to the next.
fn switches(said: &Said, run: &Path, folder: &Path) -> Result<()> {
    println!("Table 10.2: from one of ten processes to the next (us): median, least, 99 %, most, how many");
    let turns = || {
        let all = said.iter().filter_map(|(name, got)| Some((name.strip_prefix("turns-")?, got)));
        all.filter(|(name, _)| !name.ends_with("-end"))
    };
    let fast = turns().any(|(_, got)| number(&got["switch_ns"]["p50"]) < FROM_NS);
    let from_ns = if fast { 0.0 } else { FROM_NS };
    let mut curves = Vec::new();
    for (name, got) in turns() {
        let gap = &got["switch_ns"];
        let us = |key: &str| number(&gap[key]) / 1e3;
        println!(
            "  {name:14} {:7.2} {:7.2} {:7.2} {:8.2} {:6}",
            us("p50"),
            us("min"),
            us("p99"),
            us("max"),
            gap["n"]
        );
        let text = fs::read_to_string(run.join(format!("out/turns-{name}.csv")))?;
        let all: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
        let mut counts = vec![0.0; BINS];
        for ns in &all {
            if let Some(count) = counts.get_mut(((ns - from_ns) / BIN_NS).floor() as usize) {
                *count += if *ns < from_ns { 0.0 } else { 100.0 / all.len() as f64 };
            }
        }
        curves.push((name.to_string(), counts));
    }
    let most = curves.iter().flat_map(|curve| curve.1.iter().copied()).fold(0.0, f64::max);
    let lines = curves
        .iter()
        .enumerate()
        .map(|(at, (name, counts))| {
            let some = |share: &f64| *share > 0.0;
            let first = counts.iter().position(some).map_or(0, |bin| bin.saturating_sub(1));
            let last = counts.iter().rposition(some).map_or(BINS, |bin| (bin + 2).min(BINS));
            let points = (first..last).zip(&counts[first..last]).flat_map(|(bin, share)| {
                let edge = |bin: usize| (from_ns + bin as f64 * BIN_NS) / 1e3;
                [[edge(bin), *share], [edge(bin + 1), *share]]
            });
            (name.clone(), look(at), points.collect())
        })
        .collect();
    let x = axis(("µs", from_ns / 1e3, (from_ns + BIN_NS * BINS as f64) / 1e3, 1.0));
    let y = axis(("", 0.0, (most / 10.0).ceil() * 10.0, 10.0));
    let title = "Time from one process to the next, % of all switches in bins of 0.1 µs";
    Figure::new(title, chart(320.0, x, y, lines, false)).write(&folder.join("hls-switches.png"))
}

/// The first is what the others are compared with.
fn look(at: usize) -> Look {
    at.checked_sub(1).map_or(Look::Reference, Look::Number)
}

/// Where the picture begins: in the virtual machine nothing is faster. On a faster one it begins with 0.
const FROM_NS: f64 = 12_000.0;
const BIN_NS: f64 = 100.0;
const BINS: usize = 110;

/// Figure 10.3.
fn depths(said: &Said, folder: &Path) -> Result<()> {
    let mut points = Vec::new();
    println!("Figure 10.3: a switch between two branches (us)");
    for depth in 1..=8 {
        let us = number(&said[&format!("depth-{depth}")]["ns_per_switch"]) / 1e3;
        println!("  depth {depth} {us:7.2}");
        points.push([f64::from(depth), us]);
    }
    let n = points.len() as f64;
    let (sx, sy) = points.iter().fold((0.0, 0.0), |sum, point| (sum.0 + point[0], sum.1 + point[1]));
    let sxy: f64 = points.iter().map(|[x, y]| (x - sx / n) * (y - sy / n)).sum();
    let sxx: f64 = points.iter().map(|[x, _]| (x - sx / n).powi(2)).sum();
    let slope = sxy / sxx;
    println!("  {:.0} ns per level (best fit)", slope * 1e3);
    let fit = |x: f64| [x, sy / n + slope * (x - sx / n)];
    let most = points.iter().map(|point| point[1]).fold(0.0, f64::max);
    let measured = chart(
        280.0,
        axis(("levels of schedulers", 0.0, 9.0, 1.0)),
        axis(("", 0.0, (most / 5.0).ceil() * 5.0, 5.0)),
        vec![("measured".into(), Look::Number(0), points.clone())],
        true,
    );
    let fitted = Shape::Plain(vec![fit(0.0), fit(9.0)]);
    let panel = measured.with(format!("{:.0} ns per level", slope * 1e3), Look::Reference, fitted);
    Figure::new("A switch between two branches, pipe included (µs)", panel)
        .write(&folder.join("hls-depth.png"))
}

/// Figure 10.4 by equation 10.1: what a switch takes from the work of ten processes.
fn working_sets(said: &Said, folder: &Path) -> Result<()> {
    println!("Figure 10.4: working set (KB), us per switch: EEVDF, fair; switches of ten in 2 s");
    let mut lines = Vec::new();
    for (name, look) in [("EEVDF", Look::Reference), ("fair", Look::Number(0))] {
        let of = |kb: u32, n: u32, key: &str| number(&said[&format!("work-{name}-{kb}-{n}")][key]);
        let mut points = Vec::new();
        for kb in [0, 64, 128, 256, 384, 512, 768, 1024] {
            let (one, ten) = (of(kb, 1, "units_sum"), of(kb, 10, "units_sum"));
            let switches = of(kb, 10, "switches");
            let us = of(kb, 10, "wall_ns") / 1e3 * (one - ten) / (one * switches);
            println!("  {name:6} {kb:5} {us:8.2} {switches:6}");
            points.push([f64::from(kb), us]);
        }
        lines.push((name.to_string(), look, points));
    }
    let most = lines.iter().flat_map(|line| line.2.iter().map(|point| point[1])).fold(0.0, f64::max);
    let x = axis(("KB that each process goes through", 0.0, 1024.0, 128.0));
    let y = axis(("", 0.0, (most / 5.0).ceil() * 5.0, 5.0));
    Figure::new("Work lost per switch (µs)", chart(240.0, x, y, lines, true))
        .write(&folder.join("hls-working-set.png"))
}

/// Table 10.3's tickless counterpart.
fn events(said: &Said) {
    let work = |hertz: u32| {
        let tries = (1..=3).map(|of| number(&said[&format!("events-{hertz}-{of}")]["units_per_s"]));
        tries.fold(0.0, f64::max)
    };
    println!("Table 10.3: timers per second, slowdown (%) against none, cost of one (us)");
    for hertz in [64, 128, 256, 512, 1024, 2048, 4096, 8192] {
        let lost = 1.0 - work(hertz) / work(0);
        println!("  {hertz:5} {:6.2} {:6.2}", lost * 100.0, lost * 1e6 / f64::from(hertz));
    }
}

/// Table 10.4.
fn isolation(said: &Said) {
    for (title, name) in
        [("without isolation (1 level)", "alone"), ("with isolation (2 levels)", "principal")]
    {
        println!("Table 10.4, {title}: processes of principal 2, % of 1, % of 2");
        for n in [1, 4, 16, 64, 256] {
            let got = &said[&format!("{name}-{n}")];
            let (one, many) = (number(&got[0]["units"]), number(&got[1]["units_sum"]));
            println!("  {n:4} {:6.2} {:6.2}", 100.0 * one / (one + many), 100.0 * many / (one + many));
        }
    }
}

/// Table 10.5.
fn frames(said: &Said) {
    println!("Table 10.5: others, renderer, frames per second, misses, late frames, others' CPU (%), longest gap (ms)");
    for n in [0, 1, 10] {
        for app in ["hard", "soft", "high", "default", "low"] {
            let Some(got) = said.get(&format!("frames-{app}-{n}")) else { continue };
            let (own, others) = (&got[0], &got[1]);
            println!(
                "  {n:2} {app:8} {:6.2} {:5} {:5} {:6.2} {:7.2}",
                number(&own["frames_per_s"]),
                own["misses"],
                own["late"],
                100.0 * number(&others["kernel_cpu_ns"]) / number(&own["wall_ns"]),
                number(&own["gap_ns"]["max"]) / 1e6
            );
        }
    }
}
