//! From one plan in force to another, by control operations that can be taken back.

use crate::build::{Ids, Members, Refused};
use crate::change::difference::{pairs, Change};
use crate::model::{Attach, Edge, Plan, PARAMS};
use crate::policies::{self};
use std::rc::Rc;
use tierce_policy::{Control, Refusal};

/// Threads that have to be in the default node before a step goes on.
#[derive(Clone, Debug, Default)]
pub struct Leaving<'p> {
    /// Of these tasks: name, id.
    pub tasks: Vec<(&'p str, u32)>,
    /// Of these sets.
    pub sets: Vec<&'p str>,
    /// Ids of nodes that go: nobody may be left below them.
    pub nodes: Vec<u32>,
    /// Those that are there have to be placed anew: it is another node, or the parameters are others.
    pub default: bool,
}

impl Leaving<'_> {
    /// Everybody stays.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty() && self.sets.is_empty() && self.nodes.is_empty() && !self.default
    }
}

/// A graph that has threads.
pub trait Host: Control {
    /// The graph alone.
    fn control(&mut self) -> &mut dyn Control;
    /// These parts are in the graph from now on, those in `before` were.
    fn appear(&mut self, plan: &Plan, ids: &Ids, before: &Ids) -> Result<(), Refusal>;
    /// These nodes and tasks have no edges any more and are freed next.
    fn vanish(&mut self, ids: &[u32]) -> Result<(), Refusal>;
    /// Threads that match nothing go below this node from now on.
    fn set_default(&mut self, node: u32, params: [u64; PARAMS], nice: Option<usize>) -> Result<(), Refusal>;
    /// The edge of this number of every member of a set has new parameters.
    fn set_members(&mut self, set: &str, number: usize, params: [u64; PARAMS]) -> Result<(), Refusal>;
    /// These threads go to the default node. When this returns, nobody is left where they were.
    fn evacuate(&mut self, leaving: &Leaving) -> Result<(), Refusal>;
    /// Let the CPUs decide, then try again; refused when that took too long.
    fn wait(&mut self) -> Result<(), Refusal>;
}

/// A change on its way.
#[derive(Clone, Debug)]
pub struct Transition {
    from: Rc<Plan>,
    from_ids: Ids,
    to: Rc<Plan>,
    to_ids: Ids,
    change: Change,
}

impl Transition {
    /// From a plan in force, whose parts have these ids.
    pub fn new(old: Rc<Plan>, ids: Ids, new: Rc<Plan>, change: Change) -> Transition {
        let mut to_ids = Ids::none(&new);
        pairs(&change.nodes).for_each(|(at, is)| to_ids.nodes[is] = ids.nodes[at]);
        pairs(&change.tasks).for_each(|(at, is)| to_ids.tasks[is] = ids.tasks[at]);
        for (at, is) in pairs(&change.edges) {
            (to_ids.edges[is], to_ids.attached[is]) = (ids.edges[at], ids.attached[at]);
        }
        let roots = ids.roots.iter().filter_map(|&(cpu, node, edge)| Some((cpu, change.nodes[node]?, edge)));
        to_ids.roots = roots.collect();
        Transition { from: old, from_ids: ids, to: new, to_ids, change }
    }

    /// The ids of the plan in force after [`Transition::run`].
    pub fn into_ids(self) -> Ids {
        self.to_ids
    }

    /// The way back, from wherever this one ended.
    pub fn reversed(self) -> Transition {
        let Transition { from, from_ids, to, to_ids, change } = self;
        let turn = |map: &[Option<usize>], length: usize| {
            let mut turned = vec![None; length];
            pairs(map).for_each(|(old, new)| turned[new] = Some(old));
            turned
        };
        let change = Change {
            nodes: turn(&change.nodes, to.nodes.len()),
            tasks: turn(&change.tasks, to.tasks.len()),
            sets: turn(&change.sets, to.sets.len()),
            edges: turn(&change.edges, to.edges.len()),
            default: change.default,
            differences: Vec::new(),
        };
        Transition { from: to, from_ids: to_ids, to: from, to_ids: from_ids, change }
    }

    /// Take every step; steps that are taken already do nothing.
    pub fn run(&mut self, host: &mut dyn Host) -> Result<(), Refused> {
        let to = self.to.clone();
        let all = |what: &str, why| Refused { place: None, what: what.to_string(), why };
        let before = self.to_ids.clone();
        to.make(host.control(), &mut self.to_ids, Members::Live)?;
        host.appear(&to, &self.to_ids, &before).map_err(|why| all("the trace", why))?;
        self.set(host, Less)?;
        let default =
            to.default_node.ok_or_else(|| all("plan", Refusal::Call("there is no default node".into())))?;
        let way = to.edges_above(default);
        to.attach(host.control(), &mut self.to_ids, &|edge| way.contains(&edge))?;
        if self.change.default {
            let (params, nice) = to.default_params();
            let set = host.set_default(self.to_ids.nodes[default], params, nice);
            set.map_err(|why| all("default node", why))?;
        }
        let from = self.from.clone();
        host.evacuate(&self.leaving(&from)).map_err(|why| all("threads", why))?;
        self.take_out(host)?;
        to.attach(host.control(), &mut self.to_ids, &|_| true)?;
        self.set(host, Other)?;
        for (at, is) in
            pairs(&self.change.nodes).filter(|(at, is)| from.nodes[*at].params != to.nodes[*is].params)
        {
            let set = host.node_set(self.from_ids.nodes[at], to.nodes[is].params);
            set.map_err(|why| all(&format!("node {}", to.nodes[is].name), why))?;
        }
        Ok(())
    }

    fn leaving<'p>(&self, from: &'p Plan) -> Leaving<'p> {
        let tasks = from.tasks.iter().zip(&self.from_ids.tasks).zip(&self.change.tasks);
        let sets = from.sets.iter().zip(&self.change.sets);
        let nodes = self.from_ids.nodes.iter().zip(&self.change.nodes);
        Leaving {
            tasks: tasks
                .filter(|((_, id), kept)| **id != 0 && kept.is_none())
                .map(|((task, id), _)| (&task.name[..], *id))
                .collect(),
            sets: sets.filter(|(_, kept)| kept.is_none()).map(|(set, _)| &set.name[..]).collect(),
            nodes: nodes.filter(|(id, kept)| **id != 0 && kept.is_none()).map(|(id, _)| *id).collect(),
            default: self.change.default,
        }
    }

    /// New parameters of edges that stay: those that ask for less first.
    fn set(&self, host: &mut dyn Host, which: Ask) -> Result<(), Refused> {
        let (from, to) = (&self.from, &self.to);
        let wanted = |old: &Edge, new: &Edge| old.params != new.params && ask(from, old, new) == which;
        for (at, is) in pairs(&self.change.edges).filter(|(at, _)| self.from_ids.edges[*at] != 0) {
            if wanted(&from.edges[at], &to.edges[is]) {
                let set = Control::set(host, self.from_ids.edges[at], to.edges[is].params);
                set.map_err(|why| to.refused(&to.edges[is], why))?;
            }
        }
        for (at, is) in pairs(&self.change.sets) {
            let under = from.sets[at].under.iter().zip(&to.sets[is].under).enumerate();
            for (number, (_, edge)) in under.filter(|(_, (old, new))| wanted(old, new)) {
                let set = host.set_members(&to.sets[is].name, number, edge.params);
                set.map_err(|why| to.refused(edge, why))?;
            }
        }
        Ok(())
    }

    /// What goes, children before parents.
    fn take_out(&mut self, host: &mut dyn Host) -> Result<(), Refused> {
        let (from, ids, change) = (&self.from, &mut self.from_ids, &self.change);
        for step in from.attach_order().into_iter().rev() {
            let Attach::Edge(edge) = step else { continue };
            if change.edges[edge].is_some() || ids.edges[edge] == 0 {
                continue;
            }
            let refused = |why| from.refused(&from.edges[edge], why);
            let mut result = host.detach(ids.edges[edge]);
            for _ in 0..DETACH_TRIES {
                if !result.as_ref().is_err_and(Refusal::is_still_running) {
                    break;
                }
                ids.attached[edge] = false; // shut already: it cannot stay
                host.wait().map_err(refused)?;
                result = host.detach(ids.edges[edge]);
            }
            result.map_err(refused)?;
            (ids.edges[edge], ids.attached[edge]) = (0, false);
        }
        let nodes = ids.nodes.iter_mut().zip(&change.nodes).zip(from.nodes.iter().map(|node| &node.name));
        let tasks = ids.tasks.iter_mut().zip(&change.tasks).zip(from.tasks.iter().map(|task| &task.name));
        let gone: Vec<_> = nodes.chain(tasks).filter(|((id, kept), _)| **id != 0 && kept.is_none()).collect();
        let list: Vec<u32> = gone.iter().map(|((id, _), _)| **id).collect();
        host.vanish(&list).map_err(|why| Refused { place: None, what: "the trace".into(), why })?;
        for ((id, _), name) in gone {
            host.node_free(*id).map_err(|why| Refused { place: None, what: name.clone(), why })?;
            *id = 0;
        }
        Ok(())
    }
}

/// What new parameters ask of the parent, compared with the old ones.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    /// A smaller share of a CPU, or the same.
    Less,
    /// A larger share, or it is not about shares.
    Other,
}
use Ask::{Less, Other};

/// An edge that is running is out after the next decision of its CPU.
const DETACH_TRIES: u32 = 1000;

fn ask(plan: &Plan, old: &Edge, new: &Edge) -> Ask {
    let policy = policies::by_number(plan.nodes[old.parent].policy);
    let Some((budget, period)) = policy.and_then(policies::budget_and_period) else { return Other };
    let part = |edge: &Edge, other: &Edge| u128::from(edge.params[budget]) * u128::from(other.params[period]);
    if part(new, old) <= part(old, new) {
        Less
    } else {
        Other
    }
}
