//! The leaf that a thread gets.

use super::Live;
use crate::{dry_run, threads};
use anyhow::Result;
use tierce_admission::PlanExt;
use tierce_plan::{Child, Cpus, Edge, Thread};
use tierce_policy::{raw, Control, Params, TASK};

/// Why a thread has not the place of a task.
pub(super) fn taken(other: u32) -> String {
    format!("thread {other} has it: a task is one thread, a set takes all")
}

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
                && wanted.may_have(&has.params())
                && has.rank == wanted.rank
                && (has.flags & raw::EDGE_WHEN_SPENT != 0) == wanted.when_spent;
            if edge == 0 || !same {
                return false;
            }
            edge = has.next_parent;
        }
        edge == 0
    }

    /// The thread that has the leaf of a task, or will as soon as it is off the CPU.
    pub(super) fn holder(&self, leaf: u32) -> Option<u32> {
        let promised = self.bound.iter().find(|(_, bound)| bound.leaf == leaf).map(|(tid, _)| *tid);
        let mut known = [self.kernel.leaf(leaf).pid, promised.unwrap_or(0)].into_iter();
        known.find(|tid| *tid != 0 && threads::exists(*tid))
    }

    /// Whether the plan prefers the thread to who has the place: then that one goes to the default node. Among equals who has it keeps
    /// it.
    fn gives_way(&mut self, other: u32, thread: &Thread, entry: usize) -> Result<bool> {
        let Some(holder) = self.look(other).map(|live| live.thread) else { return Ok(true) };
        let fit = |thread| self.plan.fit(entry, thread);
        if fit(&holder).is_none_or(|its| fit(thread).is_none_or(|fit| fit >= its)) {
            return Ok(false);
        }
        self.bound.remove(&other);
        self.classes.give_back(other);
        self.kernel.bind(other, 0, false)?;
        let _ = threads::requeue(other);
        self.leave_out(&holder, entry, taken(thread.tid), true);
        Ok(true)
    }

    /// Give a thread the leaf that its entry says; why not, if it does not get one.
    pub(super) fn place(&mut self, live: &threads::Live, entry: usize) -> Result<Result<u32, String>> {
        let gone = Ok(Err(GONE.to_string()));
        let thread = &live.thread;
        match self.plan.entries[entry].target {
            Child::Task(task) => {
                let leaf = self.ids.tasks[task];
                if let Some(other) = self.holder(leaf).filter(|other| *other != thread.tid) {
                    if !self.gives_way(other, thread, entry)? {
                        return Ok(Err(taken(other)));
                    }
                }
                if !self.kernel.bind(thread.tid, leaf, false)? {
                    return gone;
                }
                Ok(Ok(leaf))
            }
            Child::Set(set) => {
                let leaf = match self.member(set, live)? {
                    Ok(leaf) => leaf,
                    Err(why) => return Ok(Err(why)),
                };
                self.kernel.follow_jobs(leaf, self.plan.job_deadline_ns(Child::Set(set)));
                if !self.kernel.bind(thread.tid, leaf, true)? {
                    self.abandon(leaf);
                    return gone;
                }
                Ok(Ok(leaf))
            }
            Child::Node(_) => Ok(Err("a node takes no threads".to_string())),
        }
    }

    /// A leaf with the edges of a set: of several ways that of which least is used, or the next one that admits it.
    fn member(&mut self, set: usize, live: &threads::Live) -> Result<Result<u32, String>> {
        let plan = self.plan.clone();
        let affinity = plan.sets[set].affinity.unwrap_or(Cpus::ALL);
        let below = |node: usize| {
            let (kernel, parent) = (&self.kernel, self.ids.nodes[node]);
            let edges = (1..kernel.edges_used()).map(|edge| kernel.edge(edge));
            edges.filter(move |edge| edge.parent == parent && edge.child != 0).map(|edge| edge.params())
        };
        let ways = dry_run::where_it_may_run(&plan, plan.ways(set, below), live.allowed);
        let mut refused = None;
        for under in ways {
            let leaf = match (&self.kernel).node_new(TASK, 1, affinity, Default::default()) {
                Ok(leaf) => leaf,
                Err(_) => return Ok(Err("the pool of nodes is used up".to_string())),
            };
            let mut why = None;
            for edge in under {
                why = self.attach(leaf, edge, plan.params_for(edge, &live.thread))?.err();
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

    fn attach(&mut self, leaf: u32, edge: &Edge, params: Params) -> Result<Result<u32, String>> {
        let parent = self.ids.nodes[edge.parent];
        let mut kernel = &self.kernel;
        let Ok(id) = kernel.edge_new(parent, leaf, edge.rank, edge.way()) else {
            return Ok(Err("the pool of edges is used up".to_string()));
        };
        if let Err(refusal) = kernel.attach(id, params) {
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
