//! Sums over threads that come and go: they never go back.
//!
//! What a thread has counted goes with it, so a sum over the threads there are would shrink whenever one ends. A tally adds what each
//! thread has counted since the last snapshot. What a thread received between the last snapshot and its end is not known of the thread,
//! but of the node above: it is what went through the node and through none of its children. It counts for the pool below that
//! node; if there are several, for the one with the most threads.

use crate::promise::Promise;
use crate::snapshot::{Counts, Edge, EdgeCounts, Kind, Part, OTHERS};
use std::borrow::Cow;
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

/// An edge of a thread, by its number, below the node of that name, with what it has counted.
pub type Told<'a> = (u32, Cow<'a, str>, EdgeCounts);

/// What a thread had counted when it was told of last.
#[derive(Debug, Clone, Default)]
struct Seen {
    round: u64,
    who: u64,
    last: Counts,
    edges: Vec<(u32, EdgeCounts)>,
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
    /// By leaf; of a leaf that nobody has, `round` is 0.
    threads: Vec<Seen>,
    sets: BTreeMap<String, Part>,
    /// Threads of no set, by the node above them.
    others: BTreeMap<String, Part>,
    /// What each child had received from each parent.
    received: HashMap<(Kind, String, String), u64>,
    balances: HashMap<String, Balance>,
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

/// The pool of that name.
fn pool<'a>(pools: &'a mut BTreeMap<String, Part>, kind: Kind, key: &str) -> &'a mut Part {
    if !pools.contains_key(key) {
        let name = if kind == Kind::Others { OTHERS } else { key };
        pools.insert(key.into(), Part { name: name.into(), kind, threads: Some(0), ..Part::default() });
    }
    pools.get_mut(key).expect("it was inserted")
}

impl Tally {
    /// Another snapshot begins.
    pub fn begin(&mut self) {
        self.round += 1;
        self.pools_mut().for_each(|pool| pool.threads = Some(0));
    }

    /// A set is there, whether or not it has threads.
    pub fn set(&mut self, name: &str) {
        pool(&mut self.sets, Kind::Set, name);
    }

    fn pools(&self) -> impl Iterator<Item = &Part> {
        self.sets.values().chain(self.others.values())
    }

    fn pools_mut(&mut self) -> impl Iterator<Item = &mut Part> {
        self.sets.values_mut().chain(self.others.values_mut())
    }

    /// A thread and its edges. What it has counted beside what it received counts with its first edge.
    pub fn thread<'a>(&mut self, thread: &Thread, edges: impl Iterator<Item = Told<'a>>) {
        let leaf = thread.leaf as usize;
        if self.threads.len() <= leaf {
            self.threads.resize_with(leaf + 1, Seen::default);
        }
        let seen = &mut self.threads[leaf];
        if seen.who != thread.who || seen.round == 0 {
            *seen = Seen { who: thread.who, ..Seen::default() };
        }
        seen.round = self.round;
        let mut counts = Some(thread.counts.since(std::mem::replace(&mut seen.last, thread.counts)));
        let mut told = 0;
        for (edge, parent, now) in edges {
            let before = match seen.edges[told..].iter().position(|(one, _)| *one == edge) {
                Some(at) => {
                    seen.edges.swap(told, told + at);
                    seen.edges[told].1
                }
                None => {
                    seen.edges.insert(told, (edge, EdgeCounts::default()));
                    EdgeCounts::default()
                }
            };
            seen.edges[told].1 = now;
            told += 1;
            let pool = match thread.set {
                Some(set) => pool(&mut self.sets, Kind::Set, set),
                None => pool(&mut self.others, Kind::Others, &parent),
            };
            if let Some(counts) = counts.take() {
                pool.counts.add(counts);
                pool.threads = pool.threads.map(|threads| threads + 1);
            }
            match pool.under.iter_mut().find(|edge| edge.parent == parent) {
                // A thread that sleeps counts nothing.
                Some(_) if now == before => {}
                Some(edge) => edge.counts.add(now.since(before)),
                None => pool.under.push(Edge { parent: parent.into_owned(), counts: now.since(before) }),
            }
        }
        seen.edges.truncate(told);
    }

    /// The snapshot ends: pools come after the parts that have names.
    pub fn end(&mut self, parts: &mut Vec<Part>) {
        let round = self.round;
        let is_gone = |seen: &&mut Seen| seen.round != 0 && seen.round != round;
        self.threads.iter_mut().filter(is_gone).for_each(|seen| *seen = Seen::default());
        self.settle(parts);
        // A pool stays as long as its sums may be wanted: a set that is there, others that were.
        parts.extend(self.pools().cloned());
    }

    /// Sets that the plan does not have any more.
    pub fn keep_sets(&mut self, wanted: impl Fn(&str) -> bool) {
        self.sets.retain(|name, _| wanted(name));
    }

    /// Give to pools what threads received that have ended.
    fn settle(&mut self, named: &[Part]) {
        let mut received = HashMap::with_capacity(self.received.len());
        let mut left: BTreeMap<String, i64> = BTreeMap::new();
        // Of a spread node the replicas are one: threads move between them, nodes below each of them do not.
        let above = |part: &Part| part.family.clone().unwrap_or_else(|| part.name.clone());
        let families = named.iter().filter_map(|part| Some((&part.name[..], part.family.as_ref()?)));
        let families: HashMap<&str, &String> = families.collect();
        for part in named.iter().chain(self.pools()) {
            for edge in &part.under {
                // The pools of others have one name.
                let key = (part.kind, part.name.clone(), edge.parent.clone());
                let before = self.received.get(&key).copied().unwrap_or(0);
                let more = grown(edge.counts.supply_ns, before) as i64;
                received.insert(key, edge.counts.supply_ns);
                let parent = families.get(&edge.parent[..]).map_or(&edge.parent, |family| *family);
                *left.entry(parent.clone()).or_default() -= more;
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
            let pools = if key.0 == Kind::Set { &mut self.sets } else { &mut self.others };
            let pool = pools.get_mut(&key.1);
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
        for (key, pool) in self.sets.iter().chain(&self.others) {
            for edge in &pool.under {
                let threads = pool.threads.unwrap_or(0);
                let this = || ((pool.kind, key.clone()), threads);
                let most = largest.entry(edge.parent.clone()).or_insert_with(this);
                if threads > most.1 {
                    *most = this();
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
            let told = [(leaf, NODE.into(), edge(ns))];
            tally.thread(&Thread { leaf, who, set: None, counts }, told.into_iter());
        }
        tally.end(&mut parts);
        let pool = parts.iter().find(|part| part.kind == Kind::Others).unwrap();
        (pool.supply_ns(), pool.counts.misses, pool.threads)
    }

    #[test]
    fn a_node_below_a_replica_is_no_thread_that_ended() {
        let edge = |parent: &str, supply_ns| {
            let counts = EdgeCounts { supply_ns, ..EdgeCounts::default() };
            vec![Edge { parent: parent.into(), counts }]
        };
        let replica = |cpu: u32, ns| Part {
            name: format!("rest@{cpu}"),
            family: Some("rest".into()),
            under: edge(&format!("cpu{cpu}"), ns),
            ..Part::default()
        };
        let mut tally = Tally::default();
        for round in 1..4 {
            let build = Part { name: "build@0".into(), under: edge("rest@0", 60 * round), ..Part::default() };
            let mut parts = vec![replica(0, 100 * round), replica(1, 100 * round), build];
            tally.begin();
            let told = [(1, "rest".into(), EdgeCounts { supply_ns: 140 * round, ..EdgeCounts::default() })];
            tally.thread(&Thread { leaf: 1, who: 1, set: None, counts: Counts::default() }, told.into_iter());
            tally.end(&mut parts);
            assert_eq!(parts[3].supply_ns(), 140 * round);
        }
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
