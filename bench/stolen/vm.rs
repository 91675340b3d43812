//! Figures 11.3 and 11.4 of Regehr's thesis (HLS, 2001) in Linux, of what the guests of ../stolen/vm said.

#[path = "../figures.rs"]
mod figures;

use anyhow::{Context, Result};
use figures::{axis, chart, folders, number};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tierce_figure::{Figure, Look};

const WAYS: [(&str, &str); 3] = [("rez", "Rez"), ("rez-c", "Rez-C"), ("rez-fb", "Rez-FB")];
/// A deadline is missed by more than 1 % of 4 ms.
const LEAST_NS: u64 = 3_960_000;
/// Of records, as docs/events.md has them.
const DECISION: u16 = 1;
const REPLENISH: u16 = 7;
const STOLEN: u16 = 13;

fn main() -> Result<()> {
    let (run, folder) = folders()?;
    for (thief, who) in [("thread", "a thread of a higher class"), ("network", "the network")] {
        let out = run.join(thief).join("out");
        println!("\n{who}");
        let trace = Trace::read(&out.join("trace"))?;
        misses(&out, &trace, who, &folder.join(format!("stolen-linux-{thief}.png")))?;
        let seen = thief == "thread"; // on one CPU
        burst(&out, &trace, who, seen, &folder.join(format!("stolen-linux-{thief}-burst.png")))?;
    }
    Ok(())
}

/// Of a period of 20 ms: when it begins, in ms, and in ns the budget, what is stolen of it, what the task is given, and what it has
/// itself seen of the CPU.
struct Period {
    at_ms: f64,
    budget_ns: u64,
    stolen_ns: u64,
    given_ns: u64,
    seen_ns: u64,
}

/// Figure 11.3.
fn misses(out: &Path, trace: &Trace, who: &str, picture: &Path) -> Result<()> {
    let text = fs::read_to_string(out.join("points.json"))?;
    let points: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let mut lines = Vec::new();
    for (number_of_line, (line, name)) in [("idle", "Rez, idle")].iter().chain(&WAYS).enumerate() {
        let mine = || points.iter().filter(|point| point["line"] == *line);
        let sum = |key: &str| mine().map(|point| number(&point[key])).sum::<f64>();
        let of_cpu = |key: &str| 100.0 * sum(key) / sum("elapsed_ns");
        let mut missed = Vec::new();
        for point in mine() {
            let way = point["way"].as_str().context("a way")?;
            let segments = out.join(format!("{line}-{}.csv", point["over"]));
            let periods = trace.periods(way, &segments)?;
            let late = periods.iter().filter(|period| period.given_ns < LEAST_NS).count();
            missed.push([number(&point["over"]), 100.0 * late as f64 / periods.len() as f64]);
        }
        println!(
            "{name:10} stolen by interrupts {:.1} % of CPU 0, by threads {:.1} %; missed:{}",
            of_cpu("interrupts_ns"),
            of_cpu("threads_ns"),
            missed.iter().map(|[over, share]| format!("  {over} %: {share:.0} %")).collect::<String>()
        );
        if let Some(look) = number_of_line.checked_sub(1) {
            lines.push((name.to_string(), Look::Number(look), missed));
        }
    }
    let (x, y) = (axis(("reserved beyond 4 ms (%)", 0.0, 28.0, 4.0)), axis(("", 0.0, 100.0, 20.0)));
    let title = format!("Deadlines missed (%), in Linux: {who} steals");
    Figure::new(title, chart(200.0, x, y, lines, true)).write(picture)
}

/// Figure 11.4. What a task has seen means nothing where a CPU stands still while another has its turn.
fn burst(out: &Path, trace: &Trace, who: &str, seen: bool, picture: &Path) -> Result<()> {
    let mut ways: Vec<Vec<Period>> = Vec::new();
    for (way, name) in WAYS {
        let periods = trace.periods(way, &out.join(format!("burst-{way}.csv")))?;
        let settled = || periods.iter().filter(|period| (1500.0..1900.0).contains(&period.at_ms));
        let average = |value: fn(&Period) -> u64| {
            settled().map(|period| value(period) as f64 / 1e6).sum::<f64>() / settled().count() as f64
        };
        let stolen_from = periods.iter().filter(|period| (1000.0..2000.0).contains(&period.at_ms));
        println!(
            "{name:10} from 1500 to 1900 ms: {:.2} ms stolen of a period's budget of {:.2} ms, {:.2} ms given, {:.2} ms seen; \
             missed from 1000 to 2000 ms: {}",
            average(|period| period.stolen_ns),
            average(|period| period.budget_ns),
            average(|period| period.given_ns),
            average(|period| period.seen_ns),
            stolen_from.filter(|period| period.given_ns < LEAST_NS).count()
        );
        ways.push(periods);
    }
    let title = format!("Stolen in each period (% of 4 ms), in Linux, in the second second by {who}");
    let panel = |title: &str, (least, most, step), value: fn(&Period) -> f64| {
        let of = |((_, name), periods): (&(&str, &str), &Vec<Period>)| {
            (name.to_string(), periods.iter().map(|period| [period.at_ms, value(period)]).collect())
        };
        let lines = WAYS.iter().zip(&ways).map(of).zip(0..);
        let lines = lines.map(|((name, points), look)| (name, Look::Number(look), points)).collect();
        let (x, y) = (axis(("", 0.0, 3000.0, 500.0)), axis(("", least, most, step)));
        chart(120.0, x, y, lines, false).titled(title)
    };
    let ms = (3.0, 5.0, 0.5);
    let mut panels = vec![
        panel(&title, (0.0, 40.0, 10.0), |period| period.stolen_ns as f64 / 4e4),
        panel("C: the budget of each period (ms)", ms, |period| period.budget_ns as f64 / 1e6),
        panel("P: what the task is given of it (ms)", ms, |period| period.given_ns as f64 / 1e6),
        panel("What the task sees of it (ms)", ms, |period| period.seen_ns as f64 / 1e6),
    ];
    panels.truncate(if seen { 4 } else { 3 });
    if let Some(last) = panels.last_mut() {
        last.x.label = "ms".into();
    }
    Figure::stack("", panels).write(picture)
}

/// A trace file, of which docs/events.md says what is in it.
struct Trace {
    tasks: BTreeMap<String, u32>,
    records: Vec<Record>,
}

struct Record {
    now_ns: u64,
    kind: u16,
    cpu: u16,
    a: u32,
    b: u32,
    value: u64,
}

impl Trace {
    fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        let length = bytes.get(8..12).context("no header")?;
        let length = 12 + u32::from_le_bytes(length.try_into()?) as usize;
        let header: Value = serde_json::from_slice(bytes.get(12..length).context("no header")?)?;
        let tasks = header["tasks"].as_array().into_iter().flatten();
        let tasks =
            tasks.filter_map(|task| Some((task["name"].as_str()?.into(), task["id"].as_u64()? as u32)));
        let records = bytes[length..].chunks_exact(32).map(|record| {
            let short = |at: usize| u16::from_le_bytes(record[at..at + 2].try_into().unwrap());
            let word = |at: usize| u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
            let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
            Record {
                now_ns: long(0),
                kind: short(8),
                cpu: short(10),
                a: word(12),
                b: word(16),
                value: long(24),
            }
        });
        let mut records: Vec<_> = records.collect();
        records.sort_by_key(|record| record.now_ns);
        Ok(Self { tasks: tasks.collect(), records })
    }

    /// The whole periods of the task of that way while it went through `segments`, the stretches between the gaps of its own clock.
    fn periods(&self, way: &str, segments: &Path) -> Result<Vec<Period>> {
        let task = self.tasks[&format!("for-{way}")];
        let text = fs::read_to_string(segments).with_context(|| segments.display().to_string())?;
        let mut seen: Vec<(u64, u64)> = Vec::new();
        for line in text.lines().skip(1) {
            let (from, to) = line.split_once(',').context("two times")?;
            seen.push((from.parse()?, to.parse()?));
        }
        let (begin, end) =
            seen.first().zip(seen.last()).map(|(first, last)| (first.0, last.1)).context("never ran")?;
        let mine = self.records.iter().filter(|record| (begin..end).contains(&record.now_ns));
        let (mut begins, mut stolen, mut given, mut since) = (Vec::new(), Vec::new(), Vec::new(), None);
        for record in mine {
            match record.kind {
                REPLENISH if record.b == task => begins.push((record.now_ns, record.value)),
                STOLEN if record.a == task => stolen.push((record.now_ns, record.value)),
                DECISION if record.cpu == 0 => {
                    given.extend(since.take().map(|from| (from, record.now_ns)));
                    since = (record.a == task).then_some(record.now_ns);
                }
                _ => {}
            }
        }
        let of_period = |&[(from, budget_ns), (to, _)]: &[(u64, u64); 2]| {
            let within = |stretches: &[(u64, u64)]| -> u64 {
                stretches.iter().map(|&(a, b)| b.min(to).saturating_sub(a.max(from))).sum()
            };
            let stolen = stolen.iter().filter(|(at, _)| (from..to).contains(at));
            let stolen_ns = stolen.map(|(_, ns)| ns).sum();
            Period {
                at_ms: (from - begin) as f64 / 1e6,
                budget_ns,
                stolen_ns,
                given_ns: within(&given).saturating_sub(stolen_ns),
                seen_ns: within(&seen),
            }
        };
        Ok(begins.windows(2).map(|pair| of_period(&[pair[0], pair[1]])).collect())
    }
}
