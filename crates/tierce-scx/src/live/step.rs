//! Small operations on the plan in force: on its model and the graph, without its text ([`Step`]).
//!
//! The text is written when somebody wants it ([`Live::write`]). An operation that is no step, or that something refuses, is left to the
//! long way, by the text: nothing has changed then, and there are the messages.

use super::reading::READ_MAX;
use super::unwritten::Unwritten;
use super::{Bound, Live};
use crate::threads::{self, Proc};
use anyhow::Result;
use std::rc::Rc;
use tierce_admission::PlanExt;
use tierce_plan::{Change, Child, Cpus, Difference, Edge, Edit, Glimpse, Host, MatchEntry, Step, Transition};
use tierce_policy::{Control, NodeParams, Refusal, TASK};
use tierce_trace::{EdgeInfo, NodeInfo, PlanChange, TaskInfo};

/// Operations that may be unwritten: what writing them takes is bounded.
const UNWRITTEN_MAX: usize = 256;

/// Tries to take out an edge that is running.
const DETACH_TRIES: u32 = 1000;

impl Live {
    /// Do the operation, if it can be done so. `None`: nothing was done. An error is the end of this run.
    pub fn step(&mut self, edit: &Edit) -> Result<Option<Vec<Difference>>> {
        if self.unwritten.as_ref().is_some_and(|unwritten| unwritten.edits.len() >= UNWRITTEN_MAX) {
            return Ok(None);
        }
        let step = self.plan.step_beside(edit, &|| self.standing());
        let Some(step) = step.filter(|step| self.can_step(step)) else { return Ok(None) };
        let differences = step.differences(&self.plan);
        if self.unwritten.is_none() {
            self.unwritten = Some(Unwritten { written: self.plan.clone(), edits: Vec::new() });
        }
        let may_free = matches!(step, Step::Numbers { .. } | Step::Move { .. } | Step::Gone { .. });
        let done = match step {
            Step::Numbers { .. } => self.step_numbers(step),
            Step::Node { .. } => self.step_node(step),
            Step::Task { .. } => self.step_task(step)?,
            Step::Move { .. } => self.step_move(step)?,
            Step::Gone { child: Child::Task(_), .. } => self.step_gone_task(step)?,
            Step::Gone { .. } => self.step_gone_node(step),
        };
        if !done {
            return Ok(None);
        }
        if let Some(unwritten) = &mut self.unwritten {
            edit.add_to(&mut unwritten.edits);
        }
        if may_free {
            self.look_again()?;
        }
        Ok(Some(differences))
    }

    /// Who found no place may find one now. A user can have any number of these: they are looked at in turn, like news, and whoever
    /// asked for the change waits for a few of them only.
    pub(super) fn look_again(&mut self) -> Result<()> {
        std::mem::take(&mut self.homeless).into_iter().try_for_each(|tid| self.match_thread(tid))?;
        if std::mem::take(&mut self.forgotten) {
            self.waiting.look(Proc::default().ids());
        }
        self.waiting.look(self.left_out.keys().copied());
        self.hears_more = !self.hear(READ_MAX)?;
        Ok(())
    }

    /// Whether the text of the plan is not as the plan is.
    pub fn is_unwritten(&self) -> bool {
        self.unwritten.is_some()
    }

    /// Write what was done into the text. An error: it cannot be, which is a fault of ours; the plan in force goes on.
    pub fn write(&mut self) -> Result<(), String> {
        let Some(unwritten) = &self.unwritten else { return Ok(()) };
        let plan = unwritten.written.with_text(&unwritten.edits, &self.standing());
        let plan = plan.map_err(|faults| format!("what was changed cannot be written: {faults}"))?;
        let change = Change::between(&self.plan, &plan).ok().filter(|change| change.differences().is_empty());
        let change = change.ok_or("what was changed cannot be written: the text would mean another plan")?;
        let plan = Rc::new(plan);
        self.ids = Transition::new(self.plan.clone(), self.ids.clone(), plan.clone(), change).into_ids();
        self.plan = plan; // its entries have the order that they had
        self.unwritten = None;
        Ok(())
    }

    /// The kernel side has what it takes, this machine too, and the plan can be enforced with it.
    fn can_step(&self, step: &Step) -> bool {
        let options = self.kernel.options();
        let is_loaded = match step {
            Step::Node { node, .. } => options.policies >> node.policy & 1 == 1,
            // Which CPUs lead to a task has to fit the cgroups that it takes in.
            Step::Move { .. } => self.plan.matchers().all(|matcher| matcher.cgroup.is_none()),
            _ => true,
        };
        is_loaded && self.plan.is_runnable_after(step, options.cpus)
    }

    /// The model and the ids take the step.
    fn took(&mut self, step: Step, child: u32, edge: u32) {
        self.ids.take(&step, child, edge);
        Rc::make_mut(&mut self.plan).take(step);
        self.revision += 1;
    }

    fn step_numbers(&mut self, step: Step) -> bool {
        let Step::Numbers { edge, to, .. } = &step else { return false };
        let (id, child, is_same) =
            (self.ids.edges[*edge], to.child, self.plan.edges[*edge].params == to.params);
        if id == 0 || !is_same && Control::set(self, id, to.params).is_err() {
            return false;
        }
        self.took(step, 0, 0);
        if let Child::Task(task) = child {
            self.kernel.follow_jobs(self.ids.tasks[task], self.plan.job_deadline_ns(child));
        }
        true
    }

    fn step_node(&mut self, step: Step) -> bool {
        let Step::Node { node, edge } = &step else { return false };
        let level = self.plan.depth(edge.parent).unwrap_or(0) as u32;
        let what = (node.policy, 0, Cpus::ALL, node.params);
        let info =
            |id| PlanChange { nodes: vec![NodeInfo::of(node, id, level, None)], ..PlanChange::default() };
        let Some((id, above)) = self.made(what, edge, &node.name, info) else { return false };
        self.took(step, id, above);
        true
    }

    fn step_task(&mut self, step: Step) -> Result<bool> {
        let Step::Task { task, edge, tid, .. } = &step else { return Ok(false) };
        let tid = *tid;
        let info = |id| PlanChange { tasks: vec![TaskInfo::of(task, id)], ..PlanChange::default() };
        let allowed = task.affinity.unwrap_or(Cpus::ALL);
        let made = self.made((TASK, 1, allowed, NodeParams::default()), edge, &task.name, info);
        let Some((leaf, above)) = made else { return Ok(false) };
        self.took(step, leaf, above);
        self.bound.values_mut().for_each(|bound| bound.entry += 1);
        self.left_out.values_mut().for_each(|out| out.entry += 1);
        let deadline_ns = self.plan.job_deadline_ns(self.plan.entries[0].target);
        self.kernel.follow_jobs(leaf, deadline_ns);
        self.binds(tid, leaf, 0)?;
        Ok(true)
    }

    /// The thread of a task gets another leaf, below the other node, before it loses this one.
    fn step_move(&mut self, step: Step) -> Result<bool> {
        let Step::Move { edge, to } = &step else { return Ok(false) };
        let Child::Task(task) = to.child else { return Ok(false) };
        let (old, old_edge) = (self.ids.tasks[task], self.ids.edges[*edge]);
        let Some(tid) = self.its_thread(old) else { return Ok(false) };
        let about = self.plan.tasks[task].clone();
        let info = |id| PlanChange { tasks: vec![TaskInfo::of(&about, id)], ..PlanChange::default() };
        let made = self.made((TASK, 1, Cpus::ALL, NodeParams::default()), to, &about.name, info);
        let Some((leaf, above)) = made else { return Ok(false) };
        let child = to.child;
        if let Some((tid, entry)) = tid {
            self.binds(tid, leaf, entry)?;
            if self.is_left(old).is_err() {
                self.binds(tid, old, entry)?;
                let back = self.is_left(leaf).and_then(|()| self.unmade(leaf, above));
                return back
                    .map(|()| false)
                    .map_err(|why| anyhow::anyhow!("a move could not be undone: {why}"));
            }
        }
        if let Err(why) = self.unmade(old, old_edge) {
            anyhow::bail!("a task that has moved could not be taken out: {why}");
        }
        self.took(step, leaf, above);
        self.kernel.follow_jobs(leaf, self.plan.job_deadline_ns(child));
        Ok(true)
    }

    /// Its thread goes where else it matches, the default node in between.
    fn step_gone_task(&mut self, step: Step) -> Result<bool> {
        let Step::Gone { child: Child::Task(task), edge } = step else { return Ok(false) };
        let (leaf, id) = (self.ids.tasks[task], self.ids.edges[edge]);
        let Some(its) = self.its_thread(leaf) else { return Ok(false) };
        if let Some((tid, _)) = its {
            self.bound.remove(&tid);
            self.kernel.bind(tid, 0, false)?;
            let _ = threads::requeue(tid);
        }
        if self.is_left(leaf).and_then(|()| self.unmade(leaf, id)).is_err() {
            self.homeless.extend(its.map(|(tid, _)| tid)); // the long way looks for its place again
            return Ok(false);
        }
        if let Some(entry) = self.plan.entries.iter().position(|entry| entry.target == Child::Task(task)) {
            self.bound.values_mut().for_each(|bound| bound.entry -= usize::from(bound.entry > entry));
            let homeless = &mut self.homeless;
            self.left_out.retain(|tid, out| {
                let waited = out.entry == entry;
                homeless.extend(waited.then_some(*tid));
                out.entry -= usize::from(out.entry > entry);
                !waited
            });
        }
        self.took(step, 0, 0);
        match its {
            Some((tid, _)) if self.may_match_else(tid) => self.match_thread(tid)?,
            _ => {}
        }
        Ok(true)
    }

    fn step_gone_node(&mut self, step: Step) -> bool {
        let Step::Gone { child: Child::Node(node), edge } = step else { return false };
        let (id, above) = (self.ids.nodes[node], self.ids.edges[edge]);
        if self.unmade(id, above).is_err() {
            return false;
        }
        self.took(step, 0, 0);
        true
    }

    /// A node or task, told and attached: its id and that of its edge.
    fn made(
        &mut self,
        (kind, concurrency, allowed, params): (u32, u32, Cpus, NodeParams),
        edge: &Edge,
        name: &str,
        info: impl FnOnce(u32) -> PlanChange,
    ) -> Option<(u32, u32)> {
        let parent = self.ids.nodes[edge.parent];
        let id = Control::node_new(self, kind, concurrency, allowed, params).ok()?;
        let Ok(above) = Control::edge_new(self, parent, id, edge.rank, edge.way()) else {
            let _ = Control::node_free(self, id);
            return None;
        };
        let ends = ((&self.plan.nodes[edge.parent], parent), (name, id));
        let info = PlanChange { edges: vec![EdgeInfo::of(edge, above, ends.0, ends.1)], ..info(id) };
        self.say(&info);
        if Control::attach(self, above, edge.params).is_err() {
            let _ = self.unmade(id, above);
            return None;
        }
        Some((id, above))
    }

    /// Take out a node or task that has nothing below it, and this edge above.
    fn unmade(&mut self, id: u32, above: u32) -> Result<(), Refusal> {
        let mut detached = Control::detach(self, above);
        for _ in 0..DETACH_TRIES {
            if !detached.as_ref().is_err_and(Refusal::is_still_running) {
                break;
            }
            Host::wait(self)?;
            detached = Control::detach(self, above);
        }
        detached?;
        Host::vanish(self, &[id])?;
        Control::node_free(self, id)
    }

    /// The thread becomes this task of the plan as soon as it is off the CPU. One that is gone does not.
    fn binds(&mut self, tid: u32, leaf: u32, entry: usize) -> Result<()> {
        self.bound.remove(&tid);
        if self.kernel.bind(tid, leaf, false)? {
            let about = self.kernel.leaf(leaf);
            let before = (about.job, about.misses);
            self.has_leaf_now(tid, Bound { entry, by: 0, leaf, before });
            let _ = threads::requeue(tid);
        }
        Ok(())
    }

    /// The thread that has a leaf, and its entry; `Some(None)`: nobody has it. `None`: not who was bound to it, or the loader.
    fn its_thread(&self, leaf: u32) -> Option<Option<(u32, usize)>> {
        // SAFETY: no arguments.
        let me = unsafe { libc::gettid() } as u32;
        let holder = self.kernel.leaf(leaf).pid;
        let bound = self.bound.iter().find(|(_, bound)| bound.leaf == leaf);
        match (holder, bound) {
            (0, None) => Some(None),
            // Thought to be lost, it has its place still, if the plan names that thread.
            (tid, None) if tid != me => {
                let task = self.ids.tasks.iter().position(|id| *id == leaf)?;
                let is_named = |entry: &MatchEntry| {
                    entry.target == Child::Task(task) && entry.tids().is_some_and(|tids| tids.contains(&tid))
                };
                self.plan.entries.iter().position(is_named).map(|at| Some((tid, at)))
            }
            (_, Some((tid, bound))) if [0, *tid].contains(&holder) && *tid != me => {
                Some(Some((*tid, bound.entry)))
            }
            _ => None,
        }
    }

    /// When this returns well, nobody has the leaf any more.
    fn is_left(&mut self, leaf: u32) -> Result<(), Refusal> {
        self.until("a thread has not left what goes", |live| Ok(live.kernel.leaf(leaf).pid == 0))
    }

    /// Whether a thread may match something, by its name alone if that tells.
    fn may_match_else(&self, tid: u32) -> bool {
        let by_name =
            |matcher: &tierce_plan::Matcher| matcher.pid.is_none() && matcher.is_group_leader.is_none();
        if !self.plan.matchers().all(by_name) {
            return true;
        }
        let Some(comm) = threads::name(tid) else { return false };
        self.plan.may_match(&Glimpse { comm: Some(&comm), tid, ..Glimpse::default() })
            || self.plan.matchers().any(|matcher| matcher.is_kthread == Some(true))
    }
}
