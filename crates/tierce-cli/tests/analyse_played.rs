//! `tierce analyse FILE.toml` against `tierce sim`: random tasks on given CPUs with locks and chains; nothing takes longer than its bound.
//! `TIERCE_SEEDS=FROM..TO` plays other ones.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

const PROTOCOLS: [&str; 8] =
    ["", "inheritance", "immediate-ceiling", "ceiling", "msrp", "mrsp", "mpcp", "fmlp+"];

/// A task; times in quarters of a ms.
struct Drawn {
    cpu: usize,
    period: usize,
    least: usize,
    most: usize,
    jitter: usize,
    phase: usize,
    /// Lock and length.
    sections: Vec<(usize, usize)>,
    /// What releases it, and how much later.
    after: Option<(usize, usize)>,
}

struct System {
    cpus: usize,
    protocol: &'static str,
    tasks: Vec<Drawn>,
}

impl System {
    fn draw(draw: &mut Draw) -> Self {
        const PERIODS: [usize; 7] = [32, 40, 48, 64, 80, 120, 160];
        let (cpus, count) = (1 + draw.below(3), 3 + draw.below(5));
        let protocol = PROTOCOLS[draw.below(PROTOCOLS.len())];
        let suspends = matches!(protocol, "mpcp" | "fmlp+");
        let heads = 1 + draw.below(count - 1);
        let mut tasks: Vec<Drawn> = Vec::new();
        for at in 0..count {
            let after = (at >= heads && !suspends).then(|| (draw.below(at), 4 * draw.below(3)));
            let period = after.map_or(PERIODS[draw.below(7)], |(before, _)| tasks[before].period);
            let most = 1 + draw.below(period * cpus.min(2) * 3 / (2 * count));
            let mut task = Drawn {
                cpu: draw.below(cpus),
                period,
                least: most,
                most,
                jitter: if after.is_none() && draw.below(3) == 0 { 4 * draw.below(4) } else { 0 },
                phase: draw.below(period),
                sections: Vec::new(),
                after,
            };
            if !protocol.is_empty() && draw.below(3) > 0 {
                let between = matches!(protocol, "msrp" | "mrsp" | "mpcp" | "fmlp+");
                let lock = draw.below(2) + if between { 0 } else { 2 * task.cpu };
                let length = 1 + draw.below(most);
                task.sections.push((lock, length));
                task.sections.extend((most > length).then(|| (lock, most - length)));
            } else {
                task.least = 1 + draw.below(most);
            }
            tasks.push(task);
        }
        Self { cpus, protocol, tasks }
    }

    /// Locks and chains, which both texts have.
    fn common(&self) -> String {
        let mut text = String::new();
        let mut locks: Vec<_> =
            self.tasks.iter().flat_map(|task| &task.sections).map(|section| section.0).collect();
        locks.sort_unstable();
        locks.dedup();
        for lock in locks {
            let _ = writeln!(text, "[lock.l{lock}]\nprotocol = \"{}\"", self.protocol);
        }
        for end in 0..self.tasks.len() {
            let (mut way, mut delays) = (vec![end], Vec::new());
            while let Some((before, delay)) = self.tasks[way[0]].after {
                delays.push(format!("t{} = {}", way[0], ms(delay)));
                way.insert(0, before);
            }
            if way.len() == 1 && end > 0 && self.tasks[end - 1].after.is_none() {
                way.insert(0, end - 1); // sampled
            }
            if way.len() > 1 {
                let names: Vec<_> = way.iter().map(|task| format!("\"t{task}\"")).collect();
                let (names, delays) = (names.join(", "), delays.join(", "));
                let _ = writeln!(text, "[chain.c{end}]\ntasks = [{names}]\ndelay = {{ {delays} }}");
            }
        }
        text
    }

    fn texts(&self) -> [String; 2] {
        let (mut set, mut plan) =
            (self.common(), format!("[machine]\ncpus = {}\n{}", self.cpus, self.common()));
        for cpu in 0..self.cpus {
            let _ = writeln!(plan, "[node.n{cpu}]\npolicy = \"fixed-priority\"\ncpu = {cpu}");
        }
        for (at, task) in self.tasks.iter().enumerate() {
            let priority = 1 + (at * 5 + 3) % 11; // in no order
            let sections: Vec<_> = task
                .sections
                .iter()
                .map(|(lock, length)| format!("{{ lock = \"l{lock}\", length = {} }}", ms(*length)))
                .collect();
            let sections = match sections.is_empty() {
                true => String::new(),
                false => format!("sections = [{}]", sections.join(", ")),
            };
            let work = format!("work = {{ min = {}, max = {} }}", ms(task.least), ms(task.most));
            let own = format!("period = {}\njitter = {}\n", ms(task.period), ms(task.jitter));
            let own = if task.after.is_none() { own } else { String::new() };
            let _ = writeln!(
                set,
                "[task.t{at}]\ncpu = {}\npriority = {priority}\n{work}\n{own}{sections}",
                task.cpu
            );
            let mut load = vec![work];
            load.extend(own.lines().map(String::from));
            if task.after.is_none() {
                load.extend([format!("phase = {}", ms(task.phase)), "soft = true".into()]);
            }
            load.extend((!sections.is_empty()).then_some(sections));
            let (cpu, load) = (task.cpu, load.join(", "));
            let _ = writeln!(
                plan,
                "[task.t{at}]\nunder.n{cpu} = {{ priority = {priority} }}\nload = {{ {load} }}"
            );
        }
        [set, plan]
    }
}

fn ms(quarters: usize) -> String {
    format!("\"{}us\"", quarters * 250)
}

/// The JSON of a command on a text.
fn json(arguments: &[&str], name: &str, text: &str) -> serde_json::Value {
    let path: PathBuf =
        std::env::temp_dir().join(format!("tierce-played-{}-{name}.toml", std::process::id()));
    std::fs::write(&path, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_tierce")).args(arguments).arg("--json").arg(&path).output();
    let output = output.unwrap();
    std::fs::remove_file(path).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}\n{text}"))
}

#[test]
fn nothing_takes_longer_than_its_bound() {
    let seeds = std::env::var("TIERCE_SEEDS").ok().and_then(|text| {
        let (from, to) = text.split_once("..")?;
        Some(from.parse().ok()?..to.parse().ok()?)
    });
    let (mut bounds, mut near) = ([0; PROTOCOLS.len()], 0);
    for seed in seeds.clone().unwrap_or(0..100u64) {
        let system = System::draw(&mut Draw::new(seed));
        let [set, plan] = system.texts();
        let found = json(&["analyse", "--policy", "fp"], "set", &set);
        let seen = json(&["sim", "--for", "3s", "--seed", &seed.to_string()], "plan", &plan);
        let protocol = PROTOCOLS.iter().position(|name| *name == system.protocol).unwrap();
        let mut see = |what: &str, seen: &serde_json::Value, bound: &serde_json::Value| {
            let (Some(seen), Some(bound)) = (seen["max"].as_u64(), bound.as_u64()) else { return };
            assert!(seen <= bound, "seed {seed}: {what} took {seen}, bound {bound}\n{set}\n{plan}");
            bounds[protocol] += 1;
            near += u32::from(seen * 10 >= bound * 9);
        };
        let of = |list: &serde_json::Value, name: &serde_json::Value| {
            let found = list.as_array().and_then(|list| list.iter().find(|item| item["name"] == *name));
            found.cloned().unwrap_or_default()
        };
        // What is triggered has a response of its own in a simulation; chains have it.
        for (task, drawn) in found["tasks"].as_array().unwrap().iter().zip(&system.tasks) {
            if drawn.after.is_none() {
                see("a task", &of(&seen["tasks"], &task["name"])["response_ns"], &task["wcrt_ns"]);
            }
        }
        for chain in found["chains"].as_array().unwrap() {
            for latency in ["response_ns", "reaction_ns", "age_ns"] {
                see(latency, &of(&seen["chains"], &chain["name"])[latency], &chain[latency]);
            }
        }
    }
    println!("bounds by protocol {bounds:?}, {near} nearly reached");
    if seeds.is_none() {
        assert!(bounds.iter().all(|count| *count > 10) && near > 50, "{bounds:?} {near}");
    }
}
