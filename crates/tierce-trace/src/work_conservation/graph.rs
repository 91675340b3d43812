//! The graph as it is at the moment: who is below whom, and which tasks have the same CPUs.

use super::{at, Edge, Group, Thing, WorkConservation, DEPTH, NO_GROUP};
use crate::event::ID_MAX;
use crate::header::{EdgeInfo, NodeInfo, TaskInfo};
use tierce_policy::Cpus;

impl WorkConservation {
    pub(super) fn come(&mut self, nodes: &[NodeInfo], tasks: &[TaskInfo], edges: &[EdgeInfo]) {
        for node in nodes {
            let (family, concurrency) = (node.family.unwrap_or(0), node.concurrency.unwrap_or(0));
            *at(&mut self.things, node.id) =
                Thing { is_node: true, family, concurrency, ..Default::default() };
            self.spread |= family != 0;
            self.limited |= concurrency != 0;
        }
        for task in tasks {
            at(&mut self.things, task.id).affinity = task.affinity.map(Box::new);
        }
        for edge in edges {
            let EdgeInfo { cpu, when_spent, spread, .. } = *edge;
            let [id, parent, child] = [edge.id, edge.parent, edge.child].map(|id| id.min(ID_MAX));
            self.link(id, Edge { parent, child, cpu, when_spent, spread, ..Default::default() });
        }
        if !self.spread {
            return;
        }
        // Most of what comes are threads, and there may be thousands of others.
        let is_node = |id: u32| self.things.get(id as usize).is_some_and(|thing| thing.is_node);
        if nodes.is_empty() && !edges.iter().any(|edge| edge.cpu.is_some() || is_node(edge.child.min(ID_MAX)))
        {
            let below = edges.iter().map(|edge| edge.child.min(ID_MAX));
            return tasks.iter().map(|task| task.id.min(ID_MAX)).chain(below).for_each(|id| self.regroup(id));
        }
        self.families.clear();
        for id in 0..self.things.len() as u32 {
            let family = self.things[id as usize].family;
            let cpus = if family == 0 { Cpus::NONE } else { self.reach(id, false, 0) };
            if let Some(cpu) = cpus.lowest() {
                let of = self.families.entry(family).or_default();
                of.replicas.push((cpu, id));
                *at(&mut of.on, cpu) = id;
            }
        }
        (0..self.things.len() as u32).for_each(|id| self.regroup(id));
    }

    pub(super) fn link(&mut self, id: u32, edge: Edge) {
        self.unlink(id);
        at(&mut self.things, edge.child).above.push(id);
        *at(&mut self.edges, id) = edge;
        (self.epoch, self.changed) = (self.epoch + 1, true);
    }

    pub(super) fn unlink(&mut self, id: u32) {
        let edge = std::mem::take(at(&mut self.edges, id));
        if edge.granted {
            self.things[edge.child as usize].runs -= 1;
        }
        if let Some(child) = self.things.get_mut(edge.child as usize) {
            child.above.retain(|&other| other != id);
        }
        (self.epoch, self.changed) = (self.epoch + 1, true);
    }

    /// CPUs that reach it by edges above it: by all of them, or by those that are open now.
    pub(super) fn reach(&self, id: u32, open: bool, depth: u32) -> Cpus {
        let thing = &self.things[id as usize];
        if depth > DEPTH || (open && thing.concurrency != 0 && thing.runs >= thing.concurrency) {
            return Cpus::NONE;
        }
        let edges = thing.above.iter().map(|&edge| &self.edges[edge as usize]);
        edges.filter(|edge| !open || self.is_open(edge)).fold(Cpus::NONE, |cpus, edge| {
            cpus | match edge.cpu {
                Some(cpu) => Cpus::only(cpu),
                None if (edge.parent as usize) < self.things.len() => {
                    self.reach(edge.parent, open, depth + 1)
                }
                None => Cpus::NONE,
            }
        })
    }

    pub(super) fn is_open(&self, edge: &Edge) -> bool {
        let others =
            || self.things[edge.child as usize].above.iter().map(|&other| &self.edges[other as usize]);
        !edge.closed && (!edge.when_spent || others().all(|other| other.when_spent || other.closed))
    }

    /// Which group the task belongs to.
    pub(super) fn regroup(&mut self, id: u32) {
        let thing = &self.things[id as usize];
        if thing.is_node {
            return;
        }
        let affinity = thing.affinity.as_deref().copied().unwrap_or(Cpus::ALL);
        let spread = match thing.above[..] {
            [only] => Some(&self.edges[only as usize]).filter(|edge| edge.spread).map(|edge| edge.parent),
            _ => None,
        };
        let family = spread.and_then(|replica| self.families.get(&self.things.get(replica as usize)?.family));
        let cpus = match family {
            Some(family) => family.replicas.iter().map(|(cpu, _)| cpu).collect(),
            None => self.reach(id, false, 0),
        };
        let group = if !(cpus & affinity).are_several() {
            NO_GROUP
        } else {
            let place = family.and(spread).unwrap_or(id);
            let (groups, fresh) = (&mut self.groups, self.by_place.entry((place, affinity)));
            *fresh.or_insert_with(|| {
                groups.push(Group { place, affinity, waiting: 0, at: 0, target: Cpus::NONE, epoch: 0 });
                groups.len() as u32 - 1
            })
        };
        if affinity == Cpus::ALL {
            if let Some(replica) = family.and(spread) {
                self.things[replica as usize].group = group;
            }
        }
        self.enter_group(id, group);
    }

    pub(super) fn enter_group(&mut self, id: u32, group: u32) {
        if group != self.things[id as usize].group {
            self.counted(id, false);
            self.things[id as usize].group = group;
            self.look_at(id);
        }
    }
}
