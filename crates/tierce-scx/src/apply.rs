//! A new plan for a running one: tried on a copy of the graph, then done.

use crate::chains::bounded;
use crate::host::{self, HostRefusal};
use crate::kernel::Kernel;
use crate::live::{now_ns, Live};
use crate::reload::{Hears, Reloaded};
use crate::threads;
use crate::trial::Trial;
use anyhow::{bail, Result};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tierce_plan::{
    policies, Change, Child, Cpus, Difference, Fixed, Host, Ids, Leaving, Plan, Refused, Transition,
};
use tierce_policy::{Control, NodeParams, Params, Part, Refusal, Way, TASK};
use tierce_trace::{Event, Kind, PlanChange, Source, TraceHeader};

/// How long threads may take to leave what goes, and CPUs to decide.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks, half a millisecond apart at least, after which a leaf without a thread is taken for an orphan.
const ORPHAN_LOOKS: u32 = 40;

/// `enum tierce_own`.
const OWN_DEFAULT: u16 = 1;
const OWN_MEMBER: u16 = 2;

/// Why a new plan is not in force. The old one is, as before.
#[derive(Clone, Debug, thiserror::Error)]
pub enum NotApplied {
    /// It differs in what cannot change.
    #[error("{}", .0.iter().map(Fixed::to_string).collect::<Vec<_>>().join("; "))]
    Fixed(Vec<Fixed>),
    /// The engine refuses a step.
    #[error("{0}")]
    Refused(#[from] Refused),
    /// This machine cannot have it.
    #[error("{0}")]
    Host(#[from] HostRefusal),
    /// No kernel object that has what it needs could take over.
    #[error("no kernel object with what the new plan needs could take over: {0}")]
    Reload(String),
}

/// A new plan is in force.
#[derive(Clone, Debug)]
pub struct Applied {
    /// What has changed.
    pub differences: Vec<Difference>,
    /// Another kernel object has taken over before.
    pub reloaded: Option<Reloaded>,
}

impl NotApplied {
    /// Its name, in snake_case.
    pub fn rule(&self) -> &'static str {
        match self {
            NotApplied::Fixed(fixed) => fixed.first().map_or("not_applied", |fixed| fixed.rule),
            NotApplied::Refused(Refused { why: Refusal::Engine(error), .. }) => error.name(),
            NotApplied::Refused(_) => "not_applied",
            NotApplied::Host(why) => why.rule,
            NotApplied::Reload(_) => "object_is_not_replaced",
        }
    }
}

/// Why a kernel object that lacks this cannot have the plan, unless another one takes over.
fn refuse_missing(missing: &[&str]) -> Option<Fixed> {
    let lacks = (!missing.is_empty()).then(|| missing.join(", "))?;
    Some(Fixed {
        rule: "policy_is_not_loaded",
        message: format!(
            "the kernel object was loaded without {lacks}: `--reload` has another one take over, with a short gap; \
             `[run] policies`, or `tierce run --policies all`, keeps room from the start"
        ),
    })
}

impl Live {
    /// What a new plan would change, tried on a copy of the graph; nothing is touched. `reload`: another kernel object may be loaded.
    pub fn try_apply(&self, new: &Rc<Plan>, reload: bool) -> Result<Result<Change, NotApplied>> {
        match self.change_to(new, reload) {
            Ok(change) => self.try_change(new, change),
            Err(why) => Ok(Err(why)),
        }
    }

    /// What the kernel object was loaded without and this plan needs.
    pub fn not_loaded(&self, new: &Plan) -> Vec<&'static str> {
        let options = self.kernel().options();
        let parts = new.parts() & !options.parts;
        let mut missing = policies::names(new.policies() & !options.policies);
        missing.extend(Part::ALL.iter().filter(|part| parts & part.bit() != 0).map(|part| part.text()));
        missing
    }

    /// What differs, if that can change on this machine.
    fn change_to(&self, new: &Plan, reload: bool) -> Result<Change, NotApplied> {
        let change = Change::between(self.plan(), new).map_err(NotApplied::Fixed)?;
        if let Some(refused) = refuse_missing(&self.not_loaded(new)).filter(|_| !reload) {
            return Err(NotApplied::Fixed(vec![refused]));
        }
        host::check_cpusets(new, Path::new("/"))?;
        Ok(change)
    }

    fn try_change(&self, new: &Rc<Plan>, change: Change) -> Result<Result<Change, NotApplied>> {
        let (mut trial, ids) = Trial::new(self.plan())?;
        for (target, leaf) in self.targets() {
            if let Child::Set(set) = target {
                let way = self.way_of(leaf, target).unwrap_or(&self.plan().sets[set].under);
                let _ = trial.member(self.plan(), &ids, set, way, self.kernel().allowed(leaf));
            }
        }
        for leaf in self.leaves(OWN_DEFAULT) {
            let _ = trial.unmatched(self.kernel().allowed(leaf));
        }
        let mut transition = Transition::new(self.plan().clone(), ids, new.clone(), change.clone());
        Ok(transition.run(&mut trial).map(|()| change).map_err(NotApplied::from))
    }

    /// Put a new plan into force, all or nothing. `reload`: if the kernel object lacks something, another one takes over first. An
    /// error: neither plan could be made whole, which is the end of this run.
    pub fn apply(
        &mut self,
        new: Rc<Plan>,
        reload: Option<&mut Hears>,
    ) -> Result<Result<Applied, NotApplied>> {
        let lacks = !self.not_loaded(&new).is_empty();
        let change = match self.change_to(&new, reload.is_some()) {
            Ok(change) if lacks || change.needs_a_trial(self.plan(), &new) => {
                self.try_change(&new, change)?
            }
            other => other,
        };
        let change = match change {
            Ok(change) => change,
            Err(why) => return Ok(Err(why)),
        };
        let mut reloaded = None;
        if let Some(hears) = reload.filter(|_| lacks) {
            match self.reload(self.options_for(&new), hears)? {
                Ok(done) => reloaded = Some(done),
                Err(why) => return Ok(Err(NotApplied::Reload(why))),
            }
        }
        let change = self.change(new, change)?;
        Ok(change.map(|differences| Applied { differences, reloaded }))
    }

    /// Another plan may have other chains, and the same ones may take longer.
    fn take_chains(&mut self, new: &Plan) {
        if !self.plan().chains.is_empty() || !new.chains.is_empty() {
            self.say(&PlanChange { chains: Some(bounded(new)), ..Default::default() });
        }
    }

    /// From the plan in force to this one, which the kernel object has room for.
    fn change(&mut self, new: Rc<Plan>, change: Change) -> Result<Result<Vec<Difference>, NotApplied>> {
        let differences = change.differences().to_vec();
        let mut transition = Transition::new(self.plan().clone(), self.ids().clone(), new.clone(), change);
        let result = transition.run(self);
        match result {
            Ok(()) => {
                let ids = transition.into_ids();
                self.take_chains(&new);
                self.take_plan(new, ids)?;
            }
            Err(refused) => {
                let mut back = transition.reversed();
                if let Err(again) = back.run(self) {
                    bail!("a change of the plan was refused ({refused}) and could not be undone: {again}");
                }
                let old = self.plan().clone();
                self.take_plan(old, back.into_ids())?;
                return Ok(Err(refused.into()));
            }
        }
        Ok(Ok(differences))
    }

    /// Leaves of live threads of this owner.
    fn leaves(&self, own: u16) -> Vec<u32> {
        let kernel = self.kernel();
        let is = |id: &u32| kernel.node(*id).kind == TASK && kernel.leaf(*id).own == own;
        (1..kernel.nodes_used()).filter(is).collect()
    }

    /// Nodes above a leaf.
    fn parents(&self, leaf: u32) -> impl Iterator<Item = u32> + '_ {
        let kernel = self.kernel();
        let edges = std::iter::successors(Some(kernel.node(leaf).first_parent), |edge| {
            Some(kernel.edge(*edge).next_parent)
        });
        edges.take_while(|edge| *edge != 0).take(64).map(|edge| kernel.edge(edge).parent)
    }

    /// Try until it is so.
    pub(crate) fn until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut Live) -> Result<bool>,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        loop {
            if done(self).map_err(call)? {
                return Ok(());
            }
            self.collect().map_err(call)?;
            if begun.elapsed() > PATIENCE {
                return Err(Refusal::Call(format!("{what} after {} s", PATIENCE.as_secs())));
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }

    pub(crate) fn say(&mut self, change: &PlanChange) {
        // After what has happened to other bearers of these ids.
        self.tell(self.here(), &change.to_events(now_ns()).unwrap_or_default());
    }

    fn resized(&mut self, at: u64, edge: u32, params: Params) {
        let about = self.kernel().edge(edge);
        let kind = self.kernel().node(about.parent).kind;
        let policy = tierce_policy::policies().iter().find(|policy| policy.number == kind);
        let budget =
            policy.and_then(|policy| policy.edge_params.iter().position(|param| param.name == "budget"));
        if let Some(budget) = budget {
            self.tell(at, &[Event::new(now_ns(), Kind::Resize, 0, edge, about.child, params[budget])]);
        }
    }
}

impl Control for Live {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal> {
        kernel(self).node_new(kind, concurrency, allowed, params)
    }
    fn node_set(&mut self, node: u32, params: NodeParams) -> Result<(), Refusal> {
        kernel(self).node_set(node, params)
    }
    fn node_free(&mut self, node: u32) -> Result<(), Refusal> {
        kernel(self).node_free(node)
    }
    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal> {
        kernel(self).root(cpu, node)
    }
    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal> {
        kernel(self).replica(node, first)
    }
    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        kernel(self).edge_new(parent, child, rank, way)
    }
    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        Control::attach(&mut kernel(self), edge, params)
    }
    fn set(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        let before = self.here();
        kernel(self).set(edge, params)?;
        self.resized(before, edge, params);
        Ok(())
    }
    fn detach(&mut self, edge: u32) -> Result<(), Refusal> {
        Control::detach(&mut kernel(self), edge)
    }
}

fn kernel(live: &Live) -> &Kernel {
    live.kernel()
}

fn call(error: anyhow::Error) -> Refusal {
    Refusal::Call(format!("{error:#}"))
}

impl Host for Live {
    fn control(&mut self) -> &mut dyn Control {
        self
    }

    fn appear(&mut self, plan: &Plan, ids: &Ids, before: &Ids) -> Result<(), Refusal> {
        if (&ids.nodes, &ids.tasks, &ids.edges) == (&before.nodes, &before.tasks, &before.edges) {
            return Ok(());
        }
        let TraceHeader { mut nodes, mut tasks, mut edges, .. } = TraceHeader::of(plan, ids, Source::Run);
        let things: HashSet<u32> = before.nodes.iter().chain(&before.tasks).copied().collect();
        nodes.retain(|node| !things.contains(&node.id));
        tasks.retain(|task| !things.contains(&task.id));
        edges.retain(|edge| edge.cpu.is_none() && !before.edges.contains(&edge.id));
        self.say(&PlanChange { nodes, tasks, edges, ..Default::default() });
        Ok(())
    }

    fn vanish(&mut self, ids: &[u32]) -> Result<(), Refusal> {
        if ids.is_empty() {
            return Ok(());
        }
        self.say(&PlanChange { gone: ids.to_vec(), ..Default::default() });
        Ok(())
    }

    fn set_default(&mut self, node: u32, params: Params, nice: Option<usize>) -> Result<(), Refusal> {
        let set = self.kernel().set_default(node, params, nice);
        set.map_err(call)
    }

    fn set_members(&mut self, set: &str, number: usize, params: Params) -> Result<(), Refusal> {
        let before = self.here();
        for (target, leaf) in self.targets() {
            if self.plan().child_name(target) != set {
                continue;
            }
            let mut edge = self.kernel().node(leaf).first_parent;
            for _ in 0..number {
                edge = self.kernel().edge(edge).next_parent;
            }
            match self.kernel().set_member(edge, leaf, params) {
                Ok(()) => self.resized(before, edge, params),
                Err(_) if self.kernel().leaf(leaf).own != OWN_MEMBER => {} // its thread is gone
                Err(why) => return Err(why),
            }
        }
        Ok(())
    }

    /// Threads of what goes, and those of the default node if that is another. Whoever cannot be made to move at once (it
    /// is in the kernel's hands) does at its next block: that is waited for, for a while. The loader comes last: the new
    /// default node may not be served as long as somebody is in the old one.
    fn evacuate(&mut self, leaving: &Leaving) -> Result<(), Refusal> {
        if leaving.is_empty() {
            return Ok(());
        }
        // SAFETY: no arguments.
        let me = unsafe { libc::gettid() } as u32;
        let goes =
            |name: &str| leaving.sets.contains(&name) || leaving.tasks.iter().any(|(task, _)| *task == name);
        let go = self.bound_to(goes);
        let left: HashSet<u32> = go.iter().filter_map(|tid| self.leaf_of(*tid)).collect();
        for tid in go.into_iter().filter(|tid| *tid != me) {
            self.send_to_default(tid).map_err(call)?;
        }
        if leaving.default {
            for leaf in self.leaves(OWN_DEFAULT) {
                if self.kernel().leaf(leaf).pid != me {
                    self.place_by_default(leaf).map_err(call)?;
                }
            }
        }
        let (mut i_moved, mut seen) = (false, HashMap::<u32, u32>::new());
        self.until("threads have not left what goes", |live| {
            let members = live.members_in(leaving, &left);
            let stay: Vec<u32> =
                live.threads_in(leaving).into_iter().chain(members.iter().copied()).collect();
            let threads: Vec<u32> =
                stay.iter().map(|leaf| live.kernel().leaf(*leaf).pid).filter(|tid| *tid != 0).collect();
            for &tid in threads.iter().filter(|tid| **tid != me) {
                live.send_to_default(tid)?;
            }
            // A leaf that nobody has for long was made for a thread that died before it took it.
            for leaf in members.into_iter().filter(|leaf| live.kernel().leaf(*leaf).pid == 0) {
                let times = seen.entry(leaf).or_default();
                *times += 1;
                if *times > ORPHAN_LOOKS {
                    live.kernel().reap(leaf, true)?;
                }
            }
            if !i_moved && threads.iter().all(|tid| *tid == me) {
                i_moved = true;
                if live.bound_to(goes).contains(&me) || leaving.default && live.leaf_of(me).is_none() {
                    live.send_to_default(me)?;
                    return Ok(false);
                }
            }
            Ok(stay.is_empty())
        })
    }

    fn wait(&mut self) -> Result<(), Refusal> {
        let now = self.kernel().decisions();
        self.until("no CPU has decided", |live| Ok(live.kernel().decisions() != now))
    }
}

impl Live {
    /// Leaves of tasks that go and have a thread, and of unmatched threads that are not below the default node.
    fn threads_in(&self, leaving: &Leaving) -> Vec<u32> {
        let kernel = self.kernel();
        let tasks = leaving.tasks.iter().map(|(_, leaf)| *leaf);
        let mut leaves: Vec<u32> = tasks.filter(|leaf| kernel.leaf(*leaf).pid != 0).collect();
        if leaving.default {
            let default = kernel.side().default_node;
            // Below a spread node it may be at any replica.
            let family = kernel.node(default).family;
            let is_default =
                |parent: u32| parent == default || (family != 0 && kernel.node(parent).family == family);
            let elsewhere = |leaf: &u32| self.parents(*leaf).any(|parent| !is_default(parent));
            leaves.extend(self.leaves(OWN_DEFAULT).iter().filter(|leaf| elsewhere(leaf)));
        }
        leaves
    }

    /// Leaves of members that are in what goes, or were when it began to go.
    fn members_in(&self, leaving: &Leaving, were: &HashSet<u32>) -> Vec<u32> {
        let below = |leaf: &u32| self.parents(*leaf).any(|parent| leaving.nodes.contains(&parent));
        self.leaves(OWN_MEMBER).into_iter().filter(|leaf| were.contains(leaf) || below(leaf)).collect()
    }

    /// A thread goes to the default node: now if it can be made to pass through the scheduler, else at its next block.
    fn send_to_default(&mut self, tid: u32) -> Result<()> {
        self.forget(tid);
        self.kernel().bind(tid, 0, false)?;
        let _ = threads::requeue(tid);
        Ok(())
    }

    /// The thread of a leaf of the default node gets another one there. One that is on its way to a task just goes on.
    fn place_by_default(&mut self, leaf: u32) -> Result<()> {
        let tid = self.kernel().leaf(leaf).pid;
        if tid != 0 && self.leaf_of(tid).is_none() {
            self.kernel().bind(tid, 0, false)?;
        }
        if tid != 0 {
            let _ = threads::requeue(tid);
        }
        Ok(())
    }

    /// The plan in force is this one: who matched may match something else now.
    fn take_plan(&mut self, plan: Rc<Plan>, ids: Ids) -> Result<()> {
        let entries: HashMap<String, usize> = plan
            .entries
            .iter()
            .enumerate()
            .map(|(at, entry)| (plan.child_name(entry.target).to_string(), at))
            .collect();
        for (task, &id) in ids.tasks.iter().enumerate().filter(|(_, id)| **id != 0) {
            self.kernel().follow_jobs(id, plan.job_deadline_ns(Child::Task(task)));
        }
        let old = self.plan().clone();
        let orphans = self.replace(plan, ids, &entries);
        for tid in orphans {
            self.send_to_default(tid)?;
        }
        for (target, leaf) in self.targets() {
            if let Child::Set(_) = target {
                self.kernel().follow_jobs(leaf, self.plan().job_deadline_ns(target));
            }
        }
        self.match_again(&old)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert!(refuse_missing(&[]).is_none());
        let refused = refuse_missing(&["edf", "round-robin"]).unwrap();
        assert_eq!(refused.rule, "policy_is_not_loaded");
        assert!(refused.message.contains("without edf, round-robin: `--reload`"), "{}", refused.message);
    }
}
