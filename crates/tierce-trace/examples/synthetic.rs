//! Writes two traces of one made-up schedule, to look at timelines without a simulator: `synthetic DIR [MS]`.

#[allow(dead_code)]
#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::{env, fs::File, io, path::Path};
use tierce_trace::{Source, Writer};

fn main() -> io::Result<()> {
    let directory = env::args().nth(1).unwrap_or_else(|| ".".into());
    let ms: u64 = env::args().nth(2).and_then(|ms| ms.parse().ok()).unwrap_or(500);
    for (name, seed, stolen, source) in [("sim", 1, false, Source::Sim), ("run", 1, true, Source::Run)] {
        let options = synthetic::Options { seed, end_ns: ms * 1_000_000, stolen, source };
        let (trace, _) = synthetic::generate(&options);
        let path = Path::new(&directory).join(format!("{name}.trace"));
        let mut writer = Writer::new(File::create(&path)?, &trace.header)?;
        trace.events.iter().try_for_each(|event| writer.write(event))?;
        writer.finish()?;
        println!("{}: {} events", path.display(), trace.events.len());
    }
    Ok(())
}
