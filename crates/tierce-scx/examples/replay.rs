//! Replay a recording of `tierce run --record` natively, with the checker after every entry: where does it break?
use anyhow::{bail, Context, Result};
use tierce_policy::{recording, Graph};

fn main() -> Result<()> {
    let path = std::env::args().nth(1).context("usage: replay FILE [entries to show at the end]")?;
    let show: usize = std::env::args().nth(2).map_or(Ok(5), |text| text.parse())?;
    let bytes = std::fs::read(&path)?;
    let floor_ns = u64::from_le_bytes(bytes[8..16].try_into()?);
    let mut entries: Vec<_> = bytes[24..]
        .chunks_exact(48)
        .map(|chunk| recording::from_bytes(chunk.try_into().expect("48 bytes")))
        .collect();
    entries.drain(..entries.iter().position(|entry| entry.op == 1).unwrap_or(0));
    let first = entries.first().context("an empty recording")?;
    let mut graph = Graph::new(first.a, first.now_ns)?;
    graph.set_floor_ns(floor_ns);
    for (at, entry) in entries.iter().enumerate().skip(1) {
        let result = graph.replay(entry).map_err(|difference| format!("{difference:?}"));
        // With several CPUs the recording has the order of the locks, and the inboxes are set outside of them.
        let checked = |()| match graph.check(false) {
            Err(broken) if first.a == 1 || !format!("{broken:?}").contains("inbox_kicked") => {
                Err(format!("{broken:?}"))
            }
            _ => Ok(()),
        };
        let broken = result.and_then(checked);
        if let Err(why) = broken {
            for entry in &entries[at.saturating_sub(show)..=at] {
                println!("{entry:?}");
            }
            bail!("entry {at}: {why}\n{}", graph.describe(entry.a.min(first.a - 1)));
        }
    }
    println!(
        "{} entries, {} decisions: identical, every invariant holds",
        entries.len(),
        entries.iter().filter(|entry| entry.op == 5).count()
    );
    for cpu in 0..first.a {
        println!("{}", graph.describe(cpu));
    }
    Ok(())
}
