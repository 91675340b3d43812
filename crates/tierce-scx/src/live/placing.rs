//! The leaf that a thread gets.

use super::Live;
use crate::{dry_run, threads};
use anyhow::Result;
use tierce_admission::PlanExt;
use tierce_plan::{Child, Cpus, Edge};
use tierce_policy::{raw, Control, TASK};

/// Why a thread that is dead has no place: nobody wants to know.
pub(super) const GONE: &str = "it is gone";

impl Live {
    /// The edges of this set that the leaf has, if it has them.
    pub(crate) fn way_of(&self, leaf: u32, target: Child) -> Option<&[Edge]> {
        let Child::Set(set) = target else { return None };
        self.plan.sets[set].ways().find(|way| self.has_edges(leaf, way))
    }

    fn has_edges(&self, leaf: u32, under: &[Edge]) -> bool {
        let mut edge = self.kernel.node(leaf).first_parent;
        for wanted in under {
            let has = self.kernel.edge(edge);
            let (parent, family) = (self.ids.nodes[wanted.parent], |node| self.kernel.node(node).family);
            let moved =
                wanted.spread && has.flags & raw::EDGE_SPREAD != 0 && family(has.parent) == family(parent);
            let same = (has.parent == parent || moved)
                && has.param == wanted.params
                && has.rank == wanted.rank
                && (has.flags & raw::EDGE_WHEN_SPENT != 0) == wanted.when_spent;
            if edge == 0 || !same {
                return false;
            }
            edge = has.next_parent;
        }
        edge == 0
    }

    /// Give a thread the leaf that its entry says; why not, if it does not get one.
    pub(super) fn place(&mut self, live: &threads::Live, entry: usize) -> Result<Result<u32, String>> {
        let gone = Ok(Err(GONE.to_string()));
        let thread = &live.thread;
        match self.plan.entries[entry].target {
            Child::Task(task) => {
                let leaf = self.ids.tasks[task];
                let holder = self.kernel.leaf(leaf).pid;
                let promised = self.bound.iter().find(|(_, bound)| bound.leaf == leaf).map(|(tid, _)| *tid);
                let taken = [holder, promised.unwrap_or(0)]
                    .into_iter()
                    .find(|tid| *tid != 0 && threads::look(*tid).is_some());
                if let Some(other) = taken.filter(|other| *other != thread.tid) {
                    return Ok(Err(format!("thread {other} has it: a task is one thread, a set takes all")));
                }
                self.bound.retain(|_, bound| bound.leaf != leaf);
                if !self.kernel.bind(thread.tid, leaf, false)? {
                    return gone;
                }
                Ok(Ok(leaf))
            }
            Child::Set(set) => {
                let leaf = match self.member(set, live.allowed)? {
                    Ok(leaf) => leaf,
                    Err(why) => return Ok(Err(why)),
                };
                self.kernel.follow_jobs(leaf, self.plan.job_deadline_ns(Child::Set(set)));
                if !self.kernel.bind(thread.tid, leaf, true)? {
                    self.abandon(leaf);
                    return gone;
                }
                self.bound.retain(|_, bound| bound.leaf != leaf); // of a thread that is gone
                Ok(Ok(leaf))
            }
            Child::Node(_) => Ok(Err("a node takes no threads".to_string())),
        }
    }

    /// A leaf with the edges of a set: of several ways that of which least is used, or the next one that admits it.
    fn member(&mut self, set: usize, allowed: Cpus) -> Result<Result<u32, String>> {
        let plan = self.plan.clone();
        let affinity = plan.sets[set].affinity.unwrap_or(Cpus::ALL);
        let below = |node: usize| {
            let (kernel, parent) = (&self.kernel, self.ids.nodes[node]);
            let edges = (1..kernel.edges_used()).map(|edge| kernel.edge(edge));
            edges.filter(move |edge| edge.parent == parent && edge.child != 0).map(|edge| edge.param)
        };
        let ways = dry_run::where_it_may_run(&plan, plan.ways(set, below), allowed);
        let mut refused = None;
        for under in ways {
            let leaf = match (&self.kernel).node_new(TASK, 1, affinity, Default::default()) {
                Ok(leaf) => leaf,
                Err(_) => return Ok(Err("the pool of nodes is used up".to_string())),
            };
            let mut why = None;
            for edge in under {
                why = self.attach(leaf, edge)?.err();
                if why.is_some() {
                    break;
                }
            }
            match why {
                None => return Ok(Ok(leaf)),
                Some(why) => drop(refused.get_or_insert(why)),
            }
            self.abandon(leaf);
        }
        Ok(Err(refused.unwrap_or_default()))
    }

    fn attach(&mut self, leaf: u32, edge: &tierce_plan::Edge) -> Result<Result<u32, String>> {
        let parent = self.ids.nodes[edge.parent];
        let mut kernel = &self.kernel;
        let Ok(id) = kernel.edge_new(parent, leaf, edge.rank, edge.way()) else {
            return Ok(Err("the pool of edges is used up".to_string()));
        };
        if let Err(refusal) = kernel.attach(id, edge.params) {
            let _ = kernel.detach(id);
            let parent = &self.plan.nodes[edge.parent];
            let name = if edge.spread { &parent.base } else { &parent.name };
            return Ok(Err(format!("below {name}: {refusal}")));
        }
        Ok(Ok(id))
    }

    pub(crate) fn abandon(&mut self, leaf: u32) {
        let mut kernel = &self.kernel;
        for _ in 0..64 {
            let edge = kernel.node(leaf).first_parent;
            if edge == 0 || kernel.detach(edge).is_err() {
                break;
            }
        }
        let _ = kernel.node_free(leaf);
    }
}
