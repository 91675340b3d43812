//! Which CPUs are near each other: `[machine] topology`.

use std::fmt::Write;
use tierce_policy::Cpus;

/// What is near one CPU: sets of CPUs, the CPU itself among them. Each set is part of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Near {
    /// They share its core (SMT siblings).
    pub core: Cpus,
    /// They share its last-level cache.
    pub cache: Cpus,
    /// They share its NUMA node.
    pub memory: Cpus,
}

/// How far a task migrates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// To an SMT sibling.
    Smt,
    /// To another core with the same last-level cache.
    Cache,
    /// To another cache of the same NUMA node.
    Node,
    /// To another NUMA node.
    Other,
}

/// Of each CPU what is near it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// By CPU.
    pub near: Vec<Near>,
}

impl Topology {
    /// All CPUs share a cache and a node, none a core.
    pub fn flat(cpus: u32) -> Topology {
        let all = Cpus::upto(cpus);
        let near = (0..cpus).map(|cpu| Near { core: Cpus::only(cpu), cache: all, memory: all });
        Topology { near: near.collect() }
    }

    /// Of one CPU.
    pub fn near(&self, cpu: u32) -> Near {
        self.near[cpu as usize]
    }

    /// Between two CPUs.
    pub fn distance(&self, from: u32, to: u32) -> Distance {
        let near = self.near(from);
        let shares = |set: Cpus| set.has(to);
        match () {
            () if shares(near.core) => Distance::Smt,
            () if shares(near.cache) => Distance::Cache,
            () if shares(near.memory) => Distance::Node,
            () => Distance::Other,
        }
    }

    /// Between the two CPUs that are farthest apart.
    pub fn widest(&self) -> Distance {
        let cpus = 0..self.near.len() as u32;
        let from = |from| cpus.clone().filter(move |&to| to != from).map(move |to| self.distance(from, to));
        cpus.clone().flat_map(from).max().unwrap_or(Distance::Smt)
    }

    /// As it is written in a plan, `{ smt = 2, cache = 8, node = 32 }`. What is flat is left out.
    pub fn to_toml(&self) -> String {
        let cpus = self.near.len() as u32;
        let flat = Topology::flat(cpus);
        let mut keys = Vec::new();
        for (key, set) in LEVELS {
            if self.near.iter().map(set).ne(flat.near.iter().map(set)) {
                keys.push(format!("{key} = {}", self.level(set)));
            }
        }
        if keys.is_empty() {
            "{}".into()
        } else {
            format!("{{ {} }}", keys.join(", "))
        }
    }

    /// How many consecutive CPUs make a group, or else the groups.
    fn level(&self, set: fn(&Near) -> Cpus) -> String {
        let size = set(&self.near[0]).count();
        if groups_of(size, self.near.len() as u32).iter().copied().eq(self.near.iter().map(set)) {
            return size.to_string();
        }
        let (mut text, mut written) = (String::new(), Cpus::NONE);
        for near in &self.near {
            let group = set(near) & !written; // a machine may contradict itself: who is first in the text counts
            written |= group;
            if !group.is_empty() {
                let members: Vec<_> = group.iter().map(|cpu| cpu.to_string()).collect();
                let _ = write!(text, "{}[{}]", if text.is_empty() { "" } else { ", " }, members.join(", "));
            }
        }
        format!("[{text}]")
    }
}

/// The keys of `[machine] topology`, the nearest first.
pub(crate) const LEVELS: [(&str, fn(&Near) -> Cpus); 3] =
    [("smt", |near| near.core), ("cache", |near| near.cache), ("node", |near| near.memory)];

/// The group of each CPU when so many consecutive ones make one.
pub(crate) fn groups_of(size: u32, cpus: u32) -> Vec<Cpus> {
    let group = |first: u32| Cpus::upto(cpus.min(first.saturating_add(size))) & !Cpus::upto(first);
    (0..cpus).map(|cpu| group(cpu - cpu % size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let near = |cpu: u32| Near {
            core: groups_of(2, 8)[cpu as usize],
            cache: groups_of(4, 8)[cpu as usize],
            memory: Cpus::upto(8),
        };
        let topology = Topology { near: (0..8).map(near).collect() };
        let to = |cpu| topology.distance(1, cpu);
        assert_eq!([0, 2, 4].map(to), [Distance::Smt, Distance::Cache, Distance::Node]);
        assert_eq!(topology.widest(), Distance::Node);
        assert_eq!(topology.to_toml(), "{ smt = 2, cache = 4 }");
        assert_eq!(Topology::flat(512).widest(), Distance::Cache);
        assert_eq!(Topology::flat(1).widest(), Distance::Smt);
        assert_eq!(Topology::flat(512).near(511).cache, Cpus::ALL);
    }

    #[test]
    fn groups_that_are_not_consecutive_are_listed() {
        let mut topology = Topology::flat(4);
        for cpu in 0..4 {
            topology.near[cpu].core = Cpus::from(0b101 << (cpu % 2));
        }
        assert_eq!(topology.to_toml(), "{ smt = [[0, 2], [1, 3]] }");
        assert_eq!(Topology::flat(4).to_toml(), "{}");
        assert_eq!(groups_of(4, 6), [15, 15, 15, 15, 48, 48].map(Cpus::from));
        assert_eq!(groups_of(512, 512)[511], Cpus::ALL);
    }
}
