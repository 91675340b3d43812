//! A plan that is being written: parts in the order of the text, and the text.

use crate::text::LeftOut;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use tierce_plan::{show_time, Protocol};

/// A plan, and what of a file it does not have.
#[derive(Default)]
pub struct Draft {
    /// Comment lines at its head.
    pub head: Vec<String>,
    pub cpus: usize,
    pub switch_ns: u64,
    pub timer_ns: u64,
    pub migration_ns: u64,
    /// CPU, distance and length of each.
    pub interrupts: Vec<(usize, u64, u64)>,
    pub nodes: Vec<Node>,
    pub locks: Vec<Lock>,
    pub tasks: Vec<Task>,
    pub chains: Vec<Chain>,
    pub left_out: Vec<LeftOut>,
    taken: HashSet<String>,
    /// How often a name was taken with a number behind it.
    numbers: HashMap<String, usize>,
}

/// A scheduler.
pub struct Node {
    pub name: String,
    /// What the file calls it, where that is another name.
    pub comment: Option<String>,
    pub policy: &'static str,
    /// Lines of its table: key and value.
    pub lines: Vec<(String, String)>,
}

pub struct Lock {
    pub name: String,
    pub comment: Option<String>,
    pub protocol: Protocol,
    /// Where the file has it.
    pub line: usize,
}

/// When jobs come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Release {
    Periodic {
        period_ns: u64,
        phase_ns: u64,
        jitter_ns: u64,
    },
    Sporadic {
        separation_ns: u64,
        extra_ns: u64,
        phase_ns: u64,
    },
    /// Up to so many jobs at once, and no more in any window of that length.
    Burst {
        jobs: u64,
        interval_ns: u64,
    },
    Once {
        at_ns: u64,
    },
    /// When the task before it in its chains has ended one.
    Triggered,
    /// Never: the file does not say when.
    Never,
}

impl Release {
    /// The least distance of two jobs; of bursts, of the first of one and the first of the next.
    pub fn least_ns(&self) -> Option<u64> {
        match self {
            Self::Periodic { period_ns: least_ns, .. } | Self::Sporadic { separation_ns: least_ns, .. } => {
                Some(*least_ns)
            }
            Self::Burst { interval_ns, .. } => Some(*interval_ns),
            Self::Once { .. } | Self::Triggered | Self::Never => None,
        }
    }
}

/// A part of each job that holds a lock; `at_ns` counts from the begin of what is around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub lock: String,
    pub at_ns: u64,
    pub length_ns: u64,
    pub sections: Vec<Section>,
}

pub struct Task {
    pub name: String,
    /// Where the file has it.
    pub line: usize,
    pub comment: Option<String>,
    /// Name of its node.
    pub under: String,
    /// Parameters of its edge: key and value.
    pub edge: Vec<(&'static str, String)>,
    pub release: Release,
    pub least_work_ns: u64,
    pub work_ns: u64,
    /// `None`: its release, until the next one.
    pub deadline_ns: Option<u64>,
    /// It may be late.
    pub soft: bool,
    /// Its jobs are not preempted.
    pub whole: bool,
    pub sections: Vec<Section>,
}

pub struct Chain {
    pub name: String,
    pub comment: Option<String>,
    pub tasks: Vec<String>,
    /// By task.
    pub delays: Vec<(String, u64)>,
    /// What is asked of its response.
    pub within_ns: Option<u64>,
}

impl Draft {
    /// A name that plans can have, like `wanted` and unlike all others so far; and a comment if it is another one.
    pub fn name(&mut self, wanted: &str) -> (String, Option<String>) {
        const LONGEST: usize = 60;
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
        let mut name: String =
            wanted.chars().take(LONGEST).map(|letter| if plain(letter) { letter } else { '_' }).collect();
        if !name.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            name.insert(0, 'x');
        }
        if !self.taken.insert(name.clone()) {
            let number = self.numbers.entry(name.clone()).or_insert(1);
            let numbered = (*number + 1..).find(|next| {
                *number = *next;
                self.taken.insert(format!("{name}_{next}"))
            });
            name = format!("{name}_{}", numbered.unwrap_or_default());
        }
        let comment = (name != wanted).then(|| one_line(wanted));
        (name, comment)
    }

    /// Jobs that are not preempted are so only beside others that hold no locks, and where they are a series.
    pub fn keep_whole(&mut self) {
        let with_locks: HashSet<String> = self
            .tasks
            .iter()
            .filter(|task| !task.sections.is_empty())
            .map(|task| task.under.clone())
            .collect();
        for task in self.tasks.iter_mut().filter(|task| task.whole) {
            let why = match task.release {
                _ if with_locks.contains(&task.under) => {
                    "beside locks it is preempted here: bounds lack the blocking by it"
                }
                Release::Once { .. } => "a single job is preempted here: bounds lack the blocking by it",
                Release::Periodic { .. } | Release::Sporadic { .. } | Release::Triggered => continue,
                Release::Burst { .. } => {
                    "jobs that come in bursts are preempted here: bounds lack the blocking by one"
                }
                Release::Never => "it has no jobs",
            };
            task.whole = false;
            let what = format!("`{}` without preemption", task.name);
            self.left_out.push(LeftOut { line: task.line, what, why: why.into() });
        }
    }

    /// The text of the plan.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.head {
            let _ = writeln!(text, "{}", format!("# {}", one_line(line)).trim_end());
        }
        if !self.left_out.is_empty() {
            text += "#\n# Left out:\n";
            for LeftOut { line, what, why } in &self.left_out {
                let _ = writeln!(text, "#   line {line}: {}: {}", one_line(what), one_line(why));
            }
        }
        let _ = write!(text, "\n[machine]\ncpus = {}\n", self.cpus.max(1));
        let costs = [("switch", self.switch_ns), ("timer", self.timer_ns), ("migration", self.migration_ns)];
        let costs: Vec<_> = costs.iter().filter(|(_, ns)| *ns > 0).map(|(key, ns)| time(key, *ns)).collect();
        if !costs.is_empty() {
            let _ = writeln!(text, "costs = {{ {} }}", costs.join(", "));
        }
        let each = |(cpu, every, takes): &(usize, u64, u64)| {
            format!("{{ cpu = {cpu}, {}, {} }}", time("every", *every), time("takes", *takes))
        };
        if !self.interrupts.is_empty() {
            let all: Vec<_> = self.interrupts.iter().map(each).collect();
            let _ = writeln!(text, "interrupts = [{}]", all.join(", "));
        }
        self.nodes.iter().for_each(|node| node.write(&mut text));
        self.locks.iter().for_each(|lock| lock.write(&mut text));
        self.tasks.iter().for_each(|task| task.write(&mut text));
        self.chains.iter().for_each(|chain| chain.write(&mut text));
        text
    }
}

/// The head of a table.
fn table(text: &mut String, kind: &str, name: &str, comment: Option<&String>) {
    let comment = comment.map(|comment| format!(" # {comment}")).unwrap_or_default();
    let _ = writeln!(text, "\n[{kind}.{name}]{comment}");
}

impl Node {
    fn write(&self, text: &mut String) {
        table(text, "node", &self.name, self.comment.as_ref());
        let _ = writeln!(text, "policy = \"{}\"", self.policy);
        for (key, value) in &self.lines {
            let _ = writeln!(text, "{key} = {value}");
        }
    }
}

impl Lock {
    fn write(&self, text: &mut String) {
        table(text, "lock", &self.name, self.comment.as_ref());
        let _ = writeln!(text, "protocol = \"{}\"", self.protocol.name());
    }
}

impl Task {
    fn write(&self, text: &mut String) {
        table(text, "task", &self.name, self.comment.as_ref());
        let edge: Vec<_> = self.edge.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let edge = if edge.is_empty() { "{}".into() } else { format!("{{ {} }}", edge.join(", ")) };
        let _ = writeln!(text, "under.{} = {edge}", self.under);
        let mut keys = Vec::new();
        match self.release {
            Release::Periodic { period_ns, phase_ns, jitter_ns } => {
                keys.push(time("period", period_ns));
                keys.push(self.work("work"));
                keys.extend(self.deadline());
                keys.extend((phase_ns > 0).then(|| time("phase", phase_ns)));
                keys.extend((jitter_ns > 0).then(|| time("jitter", jitter_ns)));
            }
            Release::Sporadic { separation_ns, extra_ns, phase_ns } => {
                keys.push(time("separation", separation_ns));
                keys.extend((extra_ns > 0).then(|| time("extra", extra_ns)));
                keys.push(self.work("work"));
                keys.extend(self.deadline());
                keys.extend((phase_ns > 0).then(|| time("phase", phase_ns)));
            }
            Release::Burst { jobs, interval_ns } => {
                let mut times = vec!["\"1ns\"".to_string(); usize::try_from(jobs).unwrap_or(1).max(1) - 1];
                times.push(format!("\"{}\"", show_time(interval_ns)));
                keys.push(format!("separation = [{}]", times.join(", ")));
                keys.push(self.work("work"));
                keys.extend(self.deadline());
            }
            Release::Once { at_ns } => {
                keys.push(format!("phases = [{{ {} }}]", self.work("run")));
                keys.push("repeat = 1".into());
                keys.extend(self.deadline());
                keys.extend((at_ns > 0).then(|| time("phase", at_ns)));
            }
            Release::Triggered => keys.push(self.work("work")),
            Release::Never => return,
        }
        if self.soft {
            keys.push("soft = true".into());
        }
        if self.whole {
            keys.push("preemption = \"none\"".into());
        }
        if self.sections.is_empty() {
            let _ = writeln!(text, "load = {{ {} }}", keys.join(", "));
        } else {
            let all: Vec<_> = self.sections.iter().map(Section::show).collect();
            let _ =
                writeln!(text, "load = {{ {}, sections = [\n  {},\n] }}", keys.join(", "), all.join(",\n  "));
        }
    }

    fn work(&self, key: &str) -> String {
        if self.least_work_ns < self.work_ns {
            format!("{key} = {{ {}, {} }}", time("min", self.least_work_ns), time("max", self.work_ns))
        } else {
            time(key, self.work_ns)
        }
    }

    fn deadline(&self) -> Option<String> {
        let differs = self.deadline_ns.filter(|ns| self.release.least_ns() != Some(*ns));
        differs.map(|ns| time("deadline", ns))
    }
}

impl Section {
    fn show(&self) -> String {
        let within: Vec<_> = self.sections.iter().map(Section::show).collect();
        let within =
            if within.is_empty() { String::new() } else { format!(", sections = [{}]", within.join(", ")) };
        let (at, length) = (time("at", self.at_ns), time("length", self.length_ns));
        format!("{{ lock = \"{}\", {at}, {length}{within} }}", self.lock)
    }
}

impl Chain {
    fn write(&self, text: &mut String) {
        table(text, "chain", &self.name, self.comment.as_ref());
        let tasks: Vec<_> = self.tasks.iter().map(|task| format!("\"{task}\"")).collect();
        let _ = writeln!(text, "tasks = [{}]", tasks.join(", "));
        if !self.delays.is_empty() {
            let delays: Vec<_> = self.delays.iter().map(|(task, ns)| time(task, *ns)).collect();
            let _ = writeln!(text, "delay = {{ {} }}", delays.join(", "));
        }
        if let Some(ns) = self.within_ns {
            let _ = writeln!(text, "needs = \"within {}\"", show_time(ns));
        }
    }
}

fn time(key: &str, ns: u64) -> String {
    format!("{key} = \"{}\"", show_time(ns))
}

/// A text of a file as part of a comment.
pub fn one_line(text: &str) -> String {
    const LONGEST: usize = 200;
    text.chars().take(LONGEST).map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}
