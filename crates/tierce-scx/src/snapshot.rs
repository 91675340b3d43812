//! What each part of the plan in force has received up to now.

use crate::graph::policy;
use crate::kernel::Leaf;
use crate::live::{now_ns, Live};
use crate::moment::Moment;
use crate::threads;
use std::borrow::Cow;
use std::collections::HashMap;
use tierce_policy::{raw, TASK};
use tierce_trace::promise::Promise;
use tierce_trace::snapshot::{Counts, Cpu, Edge, EdgeCounts, Kind, Part, Running, OTHERS, VERSION};
use tierce_trace::tally::Thread;
use tierce_trace::{Snapshot, Tally};

/// `enum tierce_own`: part of the plan, of the default node.
const OWN_PLAN: u16 = 0;
const OWN_DEFAULT: u16 = 1;

/// A node of the plan.
struct Node<'a> {
    name: &'a str,
    /// The name of all replicas of a spread node.
    family: Option<&'a str>,
    /// Where edges below it have their budget and their period.
    budget: Option<usize>,
    period: Option<usize>,
}

/// The graph of one moment, and what its parts are called.
struct Named<'a> {
    live: &'a Live,
    moment: Moment,
    nodes: HashMap<u32, Node<'a>>,
    tasks: HashMap<u32, &'a str>,
    /// The set of each thread that is in one.
    members: HashMap<u32, &'a str>,
}

impl<'a> Named<'a> {
    fn of(live: &'a Live, old: Moment) -> Named<'a> {
        let (plan, ids) = (live.plan(), live.ids());
        let node = |node: &'a tierce_plan::Node| {
            let params = policy(node.policy).map_or(&[][..], |record| &record.edge_params);
            let place = |name: &str| params.iter().position(|param| param.name == name);
            let family = node.family.map(|_| &node.base[..]);
            Node { name: &node.name, family, budget: place("budget"), period: place("period") }
        };
        let nodes = plan.nodes.iter().zip(&ids.nodes);
        let tasks = plan.tasks.iter().zip(&ids.tasks).filter(|(_, id)| **id != 0);
        Named {
            live,
            moment: old.renewed(live.kernel(), now_ns()),
            nodes: nodes.map(|(one, id)| (*id, node(one))).collect(),
            tasks: tasks.map(|(task, id)| (*id, &task.name[..])).collect(),
            members: live.bound().into_iter().collect(),
        }
    }

    /// The parent of an edge, and what the edge has counted. A spread node has the name of all its replicas where the child moves between them.
    fn edge(&self, edge: &raw::Edge) -> (Cow<'a, str>, EdgeCounts) {
        let node = self.nodes.get(&edge.parent);
        let param = |at: Option<usize>| edge.param.get(at?).copied();
        let counts = EdgeCounts {
            budget_ns: node.and_then(|node| param(node.budget)),
            period_ns: node.and_then(|node| param(node.period)),
            supply_ns: edge.supply_ns,
            throttles: edge.throttles.into(),
            replenishments: edge.replenishments.into(),
            promise: Promise::of(edge, self.moment.now_ns),
        };
        let parent = match node {
            Some(Node { family: Some(family), .. }) if edge.flags & raw::EDGE_SPREAD != 0 => {
                Cow::Borrowed(*family)
            }
            Some(node) => Cow::Borrowed(node.name),
            None => format!("cpu{}", edge.cpu).into(),
        };
        (parent, counts)
    }

    fn under(&self, id: u32) -> Vec<Edge> {
        let edges = self.moment.edges_above(id);
        let edges = edges.map(|(_, edge)| self.edge(edge));
        edges.map(|(parent, counts)| Edge { parent: parent.into_owned(), counts }).collect()
    }

    fn counts(&self, id: u32, leaf: &Leaf) -> Counts {
        let node = self.moment.node(id);
        let has_deadline = leaf.deadline_ns != 0 && leaf.deadline_ns != u64::MAX;
        Counts {
            switches: node.switches.into(),
            migrations: node.migrations.into(),
            jobs: if leaf.deadline_ns == 0 { 0 } else { leaf.job.into() },
            misses: if has_deadline { leaf.misses.into() } else { 0 },
        }
    }

    fn set_of(&self, leaf: &Leaf) -> Option<&'a str> {
        match leaf.own {
            OWN_DEFAULT => None,
            _ => self.members.get(&leaf.pid).copied(),
        }
    }

    /// Nodes, then tasks, as the plan has them.
    fn planned(&self) -> Vec<Part> {
        let (plan, ids) = (self.live.plan(), self.live.ids());
        let nodes = plan.nodes.iter().zip(&ids.nodes).map(|(node, &id)| Part {
            name: node.name.clone(),
            policy: policy(node.policy).map(|record| record.name.to_string()),
            family: node.family.map(|_| node.base.clone()),
            under: self.under(id),
            ..Part::default()
        });
        let tasks = plan.tasks.iter().zip(&ids.tasks).filter(|(_, id)| **id != 0).map(|(task, &id)| {
            let leaf = self.live.kernel().leaf(id);
            Part {
                name: task.name.clone(),
                kind: Kind::Task,
                tid: Some(leaf.pid).filter(|tid| *tid != 0),
                counts: self.counts(id, &leaf),
                under: self.under(id),
                ..Part::default()
            }
        });
        nodes.chain(tasks).collect()
    }

    /// Tell the tally of all other threads; the first ones are returned one by one.
    fn threads(&self, most: usize, tally: &mut Tally) -> Vec<Part> {
        let mut listed = Vec::new();
        for id in (1..self.moment.nodes_len()).filter(|id| self.moment.node(*id).kind == TASK) {
            let leaf = self.live.kernel().leaf(id);
            if leaf.own == OWN_PLAN || leaf.pid == 0 {
                continue;
            }
            let (set, counts) = (self.set_of(&leaf), self.counts(id, &leaf));
            let edges = self.moment.edges_above(id);
            let edges = edges.map(|(number, edge)| {
                let (parent, counts) = self.edge(edge);
                (number, parent, counts)
            });
            tally.thread(&Thread { leaf: id, who: leaf.pid.into(), set, counts }, edges);
            if listed.len() < most {
                listed.push(Part {
                    name: threads::name(leaf.pid).unwrap_or_else(|| "?".into()),
                    kind: Kind::Thread,
                    set: set.map(str::to_string),
                    tid: Some(leaf.pid),
                    counts,
                    under: self.under(id),
                    ..Part::default()
                });
            }
        }
        listed
    }

    fn runs(&self, task: u32) -> Option<Running> {
        let leaf = self.live.kernel().leaf(Some(task).filter(|task| *task != 0)?);
        let (part, kind) = match (self.tasks.get(&task), self.set_of(&leaf)) {
            (Some(name), _) => (*name, Kind::Task),
            (None, Some(set)) => (set, Kind::Set),
            (None, None) => (OTHERS, Kind::Others),
        };
        let tid = Some(leaf.pid).filter(|tid| *tid != 0);
        Some(Running { part: part.to_string(), kind, tid, comm: tid.and_then(threads::name) })
    }
}

impl Live {
    /// All parts; so many threads that have no name in the plan are listed one by one, too.
    pub fn snapshot(&mut self, threads_max: usize) -> Snapshot {
        let mut tally = std::mem::take(&mut self.tally);
        let old = std::mem::take(&mut self.moment);
        let named = Named::of(self, old);
        let mut parts = named.planned();
        let sets = &self.plan().sets;
        tally.begin();
        tally.keep_sets(|name| sets.iter().any(|set| set.name == name));
        sets.iter().for_each(|set| tally.set(&set.name));
        let mut listed = named.threads(threads_max, &mut tally);
        tally.end(&mut parts);
        parts.append(&mut listed);
        let cpus = (0..).zip(&named.moment.cpus).map(|(cpu, state)| Cpu {
            cpu,
            used_ns: state.used_ns,
            idle_ns: state.idle_ns,
            stolen_ns: state.stolen_ns,
            runs: named.runs(state.task),
        });
        let snapshot = Snapshot {
            version: VERSION,
            plan: self.plan().name.clone(),
            elapsed_ns: named.moment.now_ns.saturating_sub(self.start_ns()),
            lost: self.lost(),
            cpus: cpus.collect(),
            parts,
        };
        (self.tally, self.moment) = (tally, named.moment);
        snapshot
    }
}
