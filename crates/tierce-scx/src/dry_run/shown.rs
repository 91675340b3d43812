//! A dry run for programs and people.

use super::{DryRun, Refused, Shown};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;

impl DryRun {
    /// For programs: `version` 1, `entries[]` (`name`, `kind`, `place`, `bound[]`, `refused[]`), `default_node`, `default[]`,
    /// `overflow[]`, `above[]`, `pinned[]`, `placed[]` (`name`, `cpu`: what the plan chose for tasks and nodes). Threads have `tid`, `pid`, `comm`, `by` (which keys and values of the plan they match), `class` if that is a real-time one, `cpu` where the plan chose one (`cpu = "any"`), and
    /// `why` where they are refused.
    pub fn to_json(&self) -> serde_json::Value {
        let shown = |thread: &Shown| {
            let mut value = json!({ "tid": thread.tid, "pid": thread.pid, "comm": thread.comm });
            if !thread.by.is_empty() {
                value["by"] = thread.by.clone().into();
            }
            if let Some(class) = thread.class {
                value["class"] = class.to_string().into();
            }
            if let Some(cpu) = thread.cpu {
                value["cpu"] = cpu.into();
            }
            value
        };
        let threads = |list: &[Shown]| list.iter().map(shown).collect::<Vec<_>>();
        let refused = |list: &[Refused]| {
            let one = |refused: &Refused| {
                let mut thread = shown(&refused.thread);
                thread["why"] = refused.why.clone().into();
                thread
            };
            list.iter().map(one).collect::<Vec<_>>()
        };
        let entries: Vec<_> = self
            .entries
            .iter()
            .map(|entry| {
                json!({
                    "name": entry.name, "kind": if entry.set { "set" } else { "task" }, "place": entry.place,
                    "bound": threads(&entry.bound), "refused": refused(&entry.refused),
                })
            })
            .collect();
        let placed: Vec<_> =
            self.placed.iter().map(|(name, cpu)| json!({ "name": name, "cpu": cpu })).collect();
        json!({
            "version": 1, "entries": entries, "default_node": self.default_node, "default": threads(&self.default),
            "placed": placed, "overflow": refused(&self.overflow), "above": threads(&self.above), "pinned": threads(&self.pinned),
        })
    }
}

/// A table: threads of one name on one line.
impl fmt::Display for DryRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            let cpu = self.placed.iter().find(|(name, _)| *name == entry.name);
            let cpu = cpu.map_or(String::new(), |(_, cpu)| format!(", placed on CPU {cpu}"));
            writeln!(f, "{} {}  ({}){cpu}", if entry.set { "set" } else { "task" }, entry.name, entry.place)?;
            if entry.bound.is_empty() && entry.refused.is_empty() {
                writeln!(f, "  – no thread matches now")?;
            }
            for alike in by_cpu(&entry.bound) {
                let cpu = alike[0].cpu.filter(|_| entry.set);
                let cpu = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
                for ((comm, by), threads) in by_name(&alike) {
                    writeln!(f, "  ✓ {comm}  {threads}{cpu}  {by}")?;
                }
            }
            let mut reasons: BTreeMap<&str, Vec<Shown>> = BTreeMap::new();
            for refused in &entry.refused {
                reasons.entry(&refused.why).or_default().push(refused.thread.clone());
            }
            for (why, threads) in reasons {
                for ((comm, by), threads) in by_name(&threads) {
                    writeln!(f, "  ✗ {comm}  {threads}  {by}: {why}")?;
                }
            }
        }
        let others =
            self.placed.iter().filter(|(name, _)| self.entries.iter().all(|entry| entry.name != *name));
        for (name, cpu) in others {
            writeln!(f, "{name}, placed on CPU {cpu}")?;
        }
        writeln!(f, "default node {}: {}", self.default_node, count(self.default.len()))?;
        if !self.overflow.is_empty() {
            let why = &self.overflow[0].why;
            writeln!(f, "! {} in one queue outside the graph: {why}", count(self.overflow.len()))?;
        }
        if !self.above.is_empty() {
            let names: Vec<_> = by_name(&self.above)
                .into_iter()
                .map(|((comm, _), threads)| format!("{comm} {threads}"))
                .collect();
            writeln!(f, "in higher scheduling classes: {}", names.join(", "))?;
        }
        if !self.pinned.is_empty() {
            writeln!(
                f,
                "not scheduled by Tierce: {} of one CPU",
                count(self.pinned.len()).replace("thread", "kernel thread")
            )?;
        }
        Ok(())
    }
}

fn count(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

/// Threads for which the same CPU was chosen, or none.
fn by_cpu(threads: &[Shown]) -> Vec<Vec<Shown>> {
    let mut groups: BTreeMap<Option<u32>, Vec<Shown>> = BTreeMap::new();
    threads.iter().for_each(|thread| groups.entry(thread.cpu).or_default().push(thread.clone()));
    groups.into_values().collect()
}

/// By name, what they match and their real-time class: `(811)`, or `×12 (900, 901, 902, …)`.
fn by_name(threads: &[Shown]) -> Vec<((&str, String), String)> {
    let mut names: Vec<((&str, String), Vec<u32>)> = Vec::new();
    for thread in threads {
        let class = thread.class.filter(|_| !thread.by.is_empty());
        let class = class.map_or(String::new(), |class| format!(" ({class})"));
        let name = (&*thread.comm, format!("{}{class}", thread.by));
        match names.iter_mut().find(|(other, _)| *other == name) {
            Some((_, tids)) => tids.push(thread.tid),
            None => names.push((name, vec![thread.tid])),
        }
    }
    names
        .into_iter()
        .map(|(name, tids)| {
            let first: Vec<_> = tids.iter().take(3).map(u32::to_string).collect();
            let text = match tids.len() {
                1 => format!("({})", first[0]),
                2 | 3 => format!("×{} ({})", tids.len(), first.join(", ")),
                count => format!("×{count} ({}, …)", first.join(", ")),
            };
            (name, text)
        })
        .collect()
}
