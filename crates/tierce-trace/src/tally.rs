//! Sums over threads that come and go: they never go back.
//!
//! What a thread has counted goes with it, so a sum over the threads there are would shrink whenever one ends. A tally adds what each
//! thread has counted since the last snapshot. What a thread received between the last snapshot and its end is not known of the thread,
//! but of the node above: it is what went through the node and through none of its children. It counts for the pool below that
//! node; if there are several, for the one with the most threads.

use crate::promise::Promise;
use crate::snapshot::{Counts, Edge, EdgeCounts, Kind, Part, OTHERS};
use std::collections::{BTreeMap, HashMap};

/// A thread of a pool.
pub struct Thread<'a> {
    /// Its leaf.
    pub leaf: u32,
    /// Another number if the leaf belongs to another thread now.
    pub who: u64,
    /// Its set; `None`: it matches nothing.
    pub set: Option<&'a str>,
    /// What it has counted.
    pub counts: Counts,
}

#[derive(Debug, Clone, Copy)]
struct Seen<T> {
    round: u64,
    who: u64,
    last: T,
}

/// What went through a node and none of its children, up to now, and the part of it that is given to a pool.
#[derive(Debug, Clone, Copy, Default)]
struct Balance {
    left_ns: i64,
    given_ns: i64,
}

/// The sums, and what is needed to go on with them.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    round: u64,
    threads: HashMap<u32, Seen<Counts>>,
    /// By leaf and edge.
    edges: HashMap<(u32, u32), Seen<EdgeCounts>>,
    /// Sets by name; other threads by the node above them.
    pools: BTreeMap<(Kind, String), Part>,
    now: Now,
    /// What each child had received from each parent.
    received: HashMap<(Kind, String, String), u64>,
    balances: HashMap<String, Balance>,
}

/// The thread that is being told of.
#[derive(Debug, Clone, Default)]
struct Now {
    set: Option<String>,
    counts: Counts,
    who: u64,
    told: bool,
}

/// What is new; everything, if it is less than before: then it is counted anew.
fn grown(now: u64, before: u64) -> u64 {
    now.checked_sub(before).unwrap_or(now)
}

impl Counts {
    /// What has come since.
    pub fn since(self, before: Counts) -> Counts {
        Counts {
            switches: grown(self.switches, before.switches),
            migrations: grown(self.migrations, before.migrations),
            jobs: grown(self.jobs, before.jobs),
            misses: grown(self.misses, before.misses),
        }
    }

    /// Add.
    pub fn add(&mut self, more: Counts) {
        self.switches += more.switches;
        self.migrations += more.migrations;
        self.jobs += more.jobs;
        self.misses += more.misses;
    }
}

impl EdgeCounts {
    /// What has come since; the promise, too.
    pub fn since(self, before: EdgeCounts) -> EdgeCounts {
        // An edge that has received less than before is another one.
        let before = if self.supply_ns < before.supply_ns { EdgeCounts::default() } else { before };
        EdgeCounts {
            supply_ns: self.supply_ns - before.supply_ns,
            throttles: grown(self.throttles, before.throttles),
            replenishments: grown(self.replenishments, before.replenishments),
            promise: self.promise.map(|promise| promise.since(before.promise)),
            ..self
        }
    }

    /// Add; budget and period are those of `more`.
    pub fn add(&mut self, more: EdgeCounts) {
        *self = EdgeCounts {
            budget_ns: more.budget_ns,
            period_ns: more.period_ns,
            supply_ns: self.supply_ns + more.supply_ns,
            throttles: self.throttles + more.throttles,
            replenishments: self.replenishments + more.replenishments,
            promise: match (self.promise, more.promise) {
                (Some(one), Some(other)) => Some(one.and(other)),
                (one, other) => one.or(other),
            },
        };
    }
}

impl Promise {
    /// What has come since; the least stays the least of all.
    pub fn since(self, before: Option<Promise>) -> Promise {
        let Some(before) = before else { return self };
        Promise {
            windows: grown(self.windows, before.windows),
            promised_ns: grown(self.promised_ns, before.promised_ns),
            received_ns: grown(self.received_ns, before.received_ns),
            not_kept: grown(self.not_kept, before.not_kept),
            missing_ns: grown(self.missing_ns, before.missing_ns),
            ..self
        }
    }

    /// Both together.
    pub fn and(self, other: Promise) -> Promise {
        Promise {
            windows: self.windows + other.windows,
            promised_ns: self.promised_ns.saturating_add(other.promised_ns),
            received_ns: self.received_ns.saturating_add(other.received_ns),
            least_ns: [self.least_ns, other.least_ns].into_iter().flatten().min(),
            not_kept: self.not_kept + other.not_kept,
            missing_ns: self.missing_ns.saturating_add(other.missing_ns),
            why: other.why.or(self.why),
        }
    }
}

impl Tally {
    /// Another snapshot begins.
    pub fn begin(&mut self) {
        self.round += 1;
        self.pools.values_mut().for_each(|pool| pool.threads = Some(0));
    }

    /// A set is there, whether or not it has threads.
    pub fn set(&mut self, name: &str) {
        self.pool(Kind::Set, name);
    }

    fn pool(&mut self, kind: Kind, key: &str) -> &mut Part {
        let name = if kind == Kind::Others { OTHERS } else { key };
        let fresh = || Part { name: name.into(), kind, threads: Some(0), ..Part::default() };
        self.pools.entry((kind, key.to_string())).or_insert_with(fresh)
    }

    /// A thread, whose edges are told next.
    pub fn thread(&mut self, thread: &Thread) {
        let round = self.round;
        let seen = self.threads.entry(thread.leaf).or_insert(Seen {
            round,
            who: thread.who,
            last: Counts::default(),
        });
        let before = if seen.who == thread.who { seen.last } else { Counts::default() };
        *seen = Seen { round, who: thread.who, last: thread.counts };
        if self.now.set.as_deref() != thread.set {
            self.now.set = thread.set.map(str::to_string);
        }
        (self.now.counts, self.now.who, self.now.told) = (thread.counts.since(before), thread.who, false);
    }

    /// An edge of the thread that was told of last.
    pub fn edge(&mut self, leaf: u32, edge: u32, parent: &str, counts: EdgeCounts) {
        let (round, who) = (self.round, self.now.who);
        let seen = self.edges.entry((leaf, edge)).or_insert(Seen { round, who, last: EdgeCounts::default() });
        let before = if seen.who == who { seen.last } else { EdgeCounts::default() };
        *seen = Seen { round, who, last: counts };
        let first = !std::mem::replace(&mut self.now.told, true);
        let of_thread = self.now.counts;
        let (kind, key) = match self.now.set.take() {
            Some(set) => (Kind::Set, set),
            None => (Kind::Others, parent.to_string()),
        };
        let pool = self.pool(kind, &key);
        if first {
            pool.counts.add(of_thread);
            pool.threads = pool.threads.map(|threads| threads + 1);
        }
        let more = counts.since(before);
        match pool.under.iter_mut().find(|edge| edge.parent == parent) {
            Some(edge) => edge.counts.add(more),
            None => pool.under.push(Edge { parent: parent.to_string(), counts: more }),
        }
        self.now.set = (kind == Kind::Set).then_some(key);
    }

    /// The snapshot ends: pools come after the parts that have names.
    pub fn end(&mut self, parts: &mut Vec<Part>) {
        let round = self.round;
        self.threads.retain(|_, seen| seen.round == round);
        self.edges.retain(|_, seen| seen.round == round);
        self.settle(parts);
        // A pool stays as long as its sums may be wanted: a set that is there, others that were.
        parts.extend(self.pools.values().cloned());
    }

    /// Sets that the plan does not have any more.
    pub fn keep_sets(&mut self, wanted: impl Fn(&str) -> bool) {
        self.pools.retain(|(kind, name), _| *kind != Kind::Set || wanted(name));
    }

    /// Give to pools what threads received that have ended.
    fn settle(&mut self, named: &[Part]) {
        let mut received = HashMap::with_capacity(self.received.len());
        let mut left: BTreeMap<String, i64> = BTreeMap::new();
        let above = |part: &Part| part.family.clone().unwrap_or_else(|| part.name.clone());
        for part in named.iter().chain(self.pools.values()) {
            for edge in &part.under {
                // The pools of others have one name.
                let key = (part.kind, part.name.clone(), edge.parent.clone());
                let before = self.received.get(&key).copied().unwrap_or(0);
                let more = grown(edge.counts.supply_ns, before) as i64;
                received.insert(key, edge.counts.supply_ns);
                *left.entry(edge.parent.clone()).or_default() -= more;
                if part.kind == Kind::Node {
                    *left.entry(above(part)).or_default() += more;
                }
            }
        }
        for (parent, key) in self.largest() {
            let balance = self.balances.entry(parent.clone()).or_default();
            balance.left_ns += left.get(&parent).copied().unwrap_or(0);
            let more = (balance.left_ns - balance.given_ns).max(0);
            balance.given_ns += more;
            let pool = self.pools.get_mut(&key);
            let edge = pool.and_then(|pool| pool.under.iter_mut().find(|edge| edge.parent == parent));
            if let Some(edge) = edge {
                edge.counts.supply_ns += more as u64;
                let known = (key.0, if key.0 == Kind::Others { OTHERS.into() } else { key.1 }, parent);
                *received.entry(known).or_default() += more as u64;
            }
        }
        self.received = received;
    }

    /// Below each node, the pool with the most threads.
    fn largest(&self) -> BTreeMap<String, (Kind, String)> {
        let mut largest: BTreeMap<String, ((Kind, String), u32)> = BTreeMap::new();
        for (key, pool) in &self.pools {
            for edge in &pool.under {
                let threads = pool.threads.unwrap_or(0);
                let most = largest.entry(edge.parent.clone()).or_insert_with(|| (key.clone(), threads));
                if threads > most.1 {
                    *most = (key.clone(), threads);
                }
            }
        }
        largest.into_iter().map(|(parent, (key, _))| (parent, key)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "rest";

    /// A node that has given so much, and its threads: leaf, who, what each has received.
    fn sum_of(tally: &mut Tally, node_ns: u64, threads: &[(u32, u64, u64)]) -> (u64, u64, Option<u32>) {
        let edge = |supply_ns| EdgeCounts { supply_ns, ..EdgeCounts::default() };
        let under = vec![Edge { parent: "cpu0".into(), counts: edge(node_ns) }];
        let mut parts = vec![Part { name: NODE.into(), under, ..Part::default() }];
        tally.begin();
        for &(leaf, who, ns) in threads {
            let counts = Counts { misses: ns / 10, ..Counts::default() };
            tally.thread(&Thread { leaf, who, set: None, counts });
            tally.edge(leaf, leaf, NODE, edge(ns));
        }
        tally.end(&mut parts);
        let pool = parts.iter().find(|part| part.kind == Kind::Others).unwrap();
        (pool.supply_ns(), pool.counts.misses, pool.threads)
    }

    #[test]
    fn what_threads_that_ended_received_stays() {
        let mut tally = Tally::default();
        assert_eq!(sum_of(&mut tally, 30, &[(1, 100, 10), (2, 101, 20)]), (30, 3, Some(2)));
        // One ends after 15 more, its leaf is another's; and one came and went between two looks.
        assert_eq!(sum_of(&mut tally, 90, &[(1, 100, 20), (2, 102, 30)]), (90, 7, Some(2)));
        assert_eq!(sum_of(&mut tally, 90, &[]), (90, 7, Some(0)));
        // The node is read before its thread is charged, then after: the sum neither goes back nor runs away.
        for round in 0..100 {
            let at = 100 + 10 * round;
            assert_eq!(sum_of(&mut tally, at, &[(3, 103, at - 90 + 5)]).0, at + 5);
            assert_eq!(sum_of(&mut tally, at + 10, &[(3, 103, at - 90 + 10)]).0, at + 10);
        }
    }
}
