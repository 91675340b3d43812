//! Writes two traces of one made-up schedule and the page of each and of both, to look at timelines without a
//! simulator: `synthetic DIR [MS]`.

#[allow(dead_code)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::{env, fs::File, io, path::Path};
use tierce_trace::{html, Source, Writer};

fn main() -> io::Result<()> {
    let directory = env::args().nth(1).unwrap_or_else(|| ".".into());
    let ms: u64 = env::args().nth(2).and_then(|ms| ms.parse().ok()).unwrap_or(500);
    let mut traces = Vec::new();
    for (name, stolen, source) in [("sim", false, Source::Sim), ("run", true, Source::Run)] {
        let options = synthetic::Options { seed: 1, end_ns: ms * 1_000_000, stolen, source };
        let (trace, _) = synthetic::generate(&options);
        let path = Path::new(&directory).join(name);
        let mut writer = Writer::new(File::create(path.with_extension("trace"))?, &trace.header)?;
        trace.events.iter().try_for_each(|event| writer.write(event))?;
        writer.finish()?;
        html::write(&[&trace], File::create(path.with_extension("html"))?)?;
        println!("{}: {} events", path.display(), trace.events.len());
        traces.push(trace);
    }
    html::write(&traces.iter().collect::<Vec<_>>(), File::create(Path::new(&directory).join("both.html"))?)
}
