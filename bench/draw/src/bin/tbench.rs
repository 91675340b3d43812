//! Experiment B of Sun's thesis (OXC 2012), of what the guest of ../oxc/tbench said.
//!
//! usage: tbench FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES

use anyhow::Result;
use bench_draw::{number, said, Chart, Said, COLOURS};
use std::path::Path;

const SHARES: [u32; 6] = [5, 10, 20, 40, 60, 80];
const WAYS: [(&str, &str); 5] = [
    ("cpu.max-20ms", "cpu.max, 20 ms"),
    ("deadline-20ms", "deadline, 20 ms"),
    ("deadline-1ms", "deadline, 1 ms"),
    ("tierce-20ms", "Tierce, 20 ms"),
    ("tierce-1ms", "Tierce, 1 ms"),
];

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(run), Some(folder)) = (args.next(), args.next()) else {
        anyhow::bail!("usage: tbench FOLDER_OF_THE_RUN FOLDER_OF_THE_PICTURES")
    };
    let said = said(&Path::new(&run).join("said.json"))?;
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
    let of = |(way, name): (&str, &str), colour: usize| {
        let points =
            SHARES.map(|share| (f64::from(share), 100.0 * rate(&said, &format!("{way}-{share}")) / all));
        (name.to_string(), COLOURS[colour], points.to_vec())
    };
    Chart {
        title: "Throughput of two connections (% of what they have alone, under EEVDF)",
        x: ("reserved of each CPU (%)", 0.0, 100.0, 20.0),
        y: ("", 0.0, 100.0, 20.0),
        lines: WAYS.iter().zip(0..).map(|(way, colour)| of(*way, colour)).collect(),
        dots: true,
    }
    .draw(260.0, &Path::new(&folder).join("oxc-tbench.png"))
}

/// Of both connections.
fn rate(said: &Said, name: &str) -> f64 {
    said.get(name).and_then(|got| got.as_array()).map_or(f64::NAN, |both| both.iter().map(number).sum())
}
