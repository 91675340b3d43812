//! Tables 1 and 3, figure 7 of Åsberg, Nolte & Kato 2013 (ExSched), of what the simulator and the guest of ./run said.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{axis, chart, folders, number, said, Said};
use serde_json::Value;
use std::path::Path;
use tierce_figure::{Figure, Look};

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    println!("tierce place: switches to servers per second, estimated");
    for strategy in ["period", "mixed", "switches"] {
        let placed = json(&run, &format!("placed-{strategy}"))?;
        println!("  {strategy:10} {:6.1}", number(&placed["micro_switches_per_second"]) / 1e6);
    }
    let said = said(&run.join("said.json"))?;
    println!("\nTables 1 and 3, in 4 s       simulated                  in the machine");
    println!("                             to servers switches       overhead, us switches us per switch");
    for (title, list) in [
        ("categorized by period", &["categorized-0", "categorized-1"][..]),
        ("mixed", &["mixed-0", "mixed-1"]),
        ("release test, one CPU", &["equal-10"]),
        ("release test, two CPUs", &["equal-5", "equal-5"]),
        ("preemption test, one CPU", &["unequal-2"]),
        ("preemption test, two CPUs", &["unequal-of-0", "unequal-of-1"]),
    ] {
        println!("  {title:26} {}", Counted::of(&run, &said, list)?.text());
    }
    println!("\nFigure 7, in 2 s: servers; the same, on one CPU | on two");
    let (mut one, mut two) = (Vec::new(), Vec::new());
    for n in 2..=10 {
        let name = format!("random-{n}");
        let alone = Counted::of(&run, &said, &[&name])?;
        let split = Counted::of(&run, &said, &[&format!("{name}-of-0"), &format!("{name}-of-1")])?;
        println!("  {n:2} {} | {}", alone.text(), split.text());
        one.push([f64::from(n), alone.lost_us / 1e3]);
        two.push([f64::from(n), split.lost_us / 1e3]);
    }
    let most = one.iter().chain(&two).map(|point| point[1]).fold(0.0, f64::max);
    let lines = vec![
        ("one CPU (hsf-fp)".into(), Look::Number(0), one),
        ("two CPUs (partitioned)".into(), Look::Number(1), two),
    ];
    let y = axis(("", 0.0, (most / 2.0).ceil() * 2.0, 2.0));
    Figure::new(
        "CPU time taken by scheduling in 2 s (ms)",
        chart(260.0, axis(("servers", 1.0, 11.0, 1.0)), y, lines, true),
    )
    .write(&folder.join("exsched-servers.png"))
}

fn json(run: &Path, name: &str) -> Result<Value> {
    let text = std::fs::read_to_string(run.join(format!("{name}.json"))).with_context(|| name.to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// Of some CPUs together.
#[derive(Default)]
struct Counted {
    /// Simulated: how often a server began or went on, how often anything did.
    to_servers: f64,
    all: f64,
    /// In the machine: what is done less than without servers, as CPU time.
    lost_us: f64,
    switches: f64,
}

impl Counted {
    fn of(run: &Path, said: &Said, list: &[&str]) -> Result<Self> {
        let mut counted = Self::default();
        let per_s = number(&said["none"][0]["units_per_s"]);
        for name in list {
            let sim = json(run, &format!("sim-server-{name}"))?;
            let tasks = sim["tasks"].as_array().into_iter().flatten();
            let servers = tasks.filter(|task| task["name"] != "busy");
            counted.to_servers += servers.map(|task| number(&task["switches"])).sum::<f64>();
            counted.all += number(&sim["cpus"][0]["switches"]);
            let [rest, servers] = [0, 1].map(|at| &said[&format!("server-{name}")][at]);
            let done = number(&rest["units"]) + number(&servers["units_sum"]);
            counted.lost_us += (number(&rest["wall_ns"]) / 1e9 - done / per_s) * 1e6;
            counted.switches += number(&rest["switches"]) + number(&servers["switches"]);
        }
        Ok(counted)
    }

    fn text(&self) -> String {
        let Self { to_servers, all, lost_us, switches } = self;
        format!("{to_servers:6} {all:6} {lost_us:8.0} {switches:6} {:6.1}", lost_us / switches)
    }
}
