//! Counters that never go back: a part that is removed and comes again goes on where it was.

use std::collections::BTreeMap;
use tierce_trace::snapshot::{Counts, EdgeCounts, Kind, Part};
use tierce_trace::Snapshot;

/// Parts that are gone, and whose sums are remembered.
const GONE_MAX: usize = 4096;

/// A part below one of its parents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub kind: Kind,
    pub name: String,
    pub parent: String,
    /// Of a thread that has series of its own.
    pub tid: Option<u32>,
}

/// What has been counted since the plan, with all its changes, is in force.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    pub edge: EdgeCounts,
    /// What threads count is counted with the first edge of a part.
    pub threads: Option<Counts>,
    /// Threads of a pool.
    pub pooled: Option<u32>,
    last: EdgeCounts,
    last_threads: Counts,
    /// The observation in which it was there last.
    seen: u64,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// What was observed last.
    pub now: Snapshot,
    sums: BTreeMap<Key, Sum>,
    observations: u64,
    /// Threads that have series of their own.
    pub threads_max: usize,
}

impl Totals {
    /// So many threads have series of their own.
    pub fn new(threads_max: usize) -> Totals {
        Totals { threads_max, ..Totals::default() }
    }

    /// Take in what has been counted up to now.
    pub fn observe(&mut self, now: Snapshot) {
        self.observations += 1;
        now.parts.iter().for_each(|part| self.add(part));
        self.now = now;
        let observations = self.observations;
        let is_gone = move |sum: &Sum| sum.seen < observations;
        self.sums.retain(|key, sum| key.kind != Kind::Thread || !is_gone(sum));
        for sum in self.sums.values_mut().filter(|sum| is_gone(sum)) {
            (sum.last, sum.last_threads) = Default::default(); // should it come again, it counts from 0
        }
        let mut gone: Vec<u64> = self.sums.values().filter(|sum| is_gone(sum)).map(|sum| sum.seen).collect();
        if gone.len() > GONE_MAX {
            gone.sort_unstable();
            let oldest = gone[gone.len() - GONE_MAX];
            self.sums.retain(|_, sum| sum.seen >= oldest);
        }
    }

    fn add(&mut self, part: &Part) {
        for (at, edge) in part.under.iter().enumerate() {
            let key = Key {
                kind: part.kind,
                name: part.name.clone(),
                parent: edge.parent.clone(),
                tid: part.tid.filter(|_| part.kind == Kind::Thread),
            };
            let sum = self.sums.entry(key).or_default();
            sum.edge.add(edge.counts.since(sum.last));
            (sum.last, sum.seen, sum.pooled) = (edge.counts, self.observations, part.threads);
            sum.threads = (at == 0 && part.kind != Kind::Node).then(|| {
                let mut threads = sum.threads.unwrap_or_default();
                threads.add(part.counts.since(sum.last_threads));
                sum.last_threads = part.counts;
                threads
            });
        }
    }

    /// Of the parts that are there.
    pub fn sums(&self) -> impl Iterator<Item = (&Key, &Sum)> {
        self.sums.iter().filter(|(_, sum)| sum.seen == self.observations)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_trace::snapshot::Edge;

    fn seen(supply_ns: u64, misses: u64) -> Snapshot {
        let counts = EdgeCounts { supply_ns, throttles: supply_ns / 10, ..EdgeCounts::default() };
        let audio = Part {
            name: "audio".into(),
            kind: Kind::Task,
            counts: Counts { misses, ..Counts::default() },
            under: vec![Edge { parent: "rt".into(), counts }],
            ..Part::default()
        };
        Snapshot { parts: vec![audio], ..Snapshot::default() }
    }

    fn audio(totals: &Totals) -> Option<(u64, u64, u64)> {
        let (_, sum) = totals.sums().next()?;
        Some((sum.edge.supply_ns, sum.edge.throttles, sum.threads.unwrap().misses))
    }

    #[test]
    fn a_part_that_comes_again_goes_on() {
        let mut totals = Totals::new(0);
        totals.observe(seen(100, 3));
        totals.observe(seen(150, 4));
        assert_eq!(audio(&totals), Some((150, 15, 4)));
        totals.observe(Snapshot::default());
        assert_eq!(audio(&totals), None);
        totals.observe(seen(20, 1));
        assert_eq!(audio(&totals), Some((170, 17, 5)));
        // Replaced by another of this name between two looks.
        totals.observe(seen(10, 0));
        assert_eq!(audio(&totals), Some((180, 18, 5)));
    }

    #[test]
    fn what_is_gone_is_not_remembered_without_end() {
        let mut totals = Totals::new(0);
        for number in 0..2 * GONE_MAX {
            let mut one = seen(1, 0);
            one.parts[0].name = number.to_string();
            totals.observe(one);
        }
        assert!(totals.sums.len() <= GONE_MAX + 1, "{}", totals.sums.len());
    }
}
