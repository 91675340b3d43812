//! Experiment B of Sun's thesis (OXC 2012), of what the guest of ../oxc/tbench said.

#[path = "../figures.rs"]
mod figures;

use anyhow::Result;
use figures::{axis, chart, folders, number, said, Said};
use tierce_figure::{Figure, Look};

const SHARES: [u32; 6] = [5, 10, 20, 40, 60, 80];
const WAYS: [(&str, &str); 7] = [
    ("cpu.max-20ms", "cpu.max, 20 ms"),
    ("deadline-20ms", "deadline, 20 ms"),
    ("deadline-1ms", "deadline, 1 ms"),
    ("tierce-20ms", "Tierce, 20 ms"),
    ("tierce-1ms", "Tierce, 1 ms"),
    ("tierce-rr-20ms", "Tierce, SCHED_RR, 20 ms"),
    ("tierce-rr-1ms", "Tierce, SCHED_RR, 1 ms"),
];

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    let said = said(&run.join("said.json"))?;
    let all = rate(&said, "EEVDF-100");
    println!(
        "All of two CPUs under EEVDF: {all:.1} MB/s; below a plan: {:.1}",
        rate(&said, "tierce-all-100")
    );
    println!("reserved{}", WAYS.map(|(_, name)| format!("{name:>24}")).concat());
    for share in SHARES {
        let rates = WAYS.map(|(way, _)| rate(&said, &format!("{way}-{share}")));
        let cells = rates.map(|rate| format!("{rate:14.2} {:7.1} %", 100.0 * rate / all));
        println!("{share:6} %{}", cells.concat());
    }
    let of = |(way, name): (&str, &str), look: Look| {
        let points =
            SHARES.map(|share| [f64::from(share), 100.0 * rate(&said, &format!("{way}-{share}")) / all]);
        (name.to_string(), look, points.to_vec())
    };
    let looks = [Look::Reference].into_iter().chain((0..).map(Look::Number));
    let lines = WAYS.iter().zip(looks).map(|(way, look)| of(*way, look)).collect();
    let x = axis(("reserved of each CPU (%)", 0.0, 100.0, 20.0));
    let title = "Throughput of two connections (% of what they have alone, under EEVDF)";
    Figure::new(title, chart(260.0, x, axis(("", 0.0, 100.0, 20.0)), lines, true))
        .write(&folder.join("oxc-tbench.png"))
}

/// Of both connections.
fn rate(said: &Said, name: &str) -> f64 {
    said.get(name).and_then(|got| got.as_array()).map_or(f64::NAN, |both| both.iter().map(number).sum())
}
