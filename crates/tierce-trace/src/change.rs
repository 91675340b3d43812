//! Plans that change during a recording.
//!
//! A [`PlanChange`] says which nodes, tasks and edges come and go, and which chains there are; it travels as JSON in [`Kind::Change`] records. Since
//! ids are given again (a new node may get the id of a thread that is gone), a reader gives everything a plan names a
//! number of its own: [`Renumber`]. After it, what the header names is the same thing from the begin of the recording to
//! its end, new things are in the header too, and the records of changes are gone.

use crate::event::{Event, Kind, HEADER_BYTES_MAX, ID_MAX, SCHEDULER};
use crate::header::{ChainInfo, EdgeInfo, NodeInfo, TaskInfo, TraceHeader};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};

/// Numbers for what appears: above every id of the kernel's pools.
const FRESH: u32 = 1 << 15;

/// Bytes of the text in one record.
const PART: usize = 16;

/// What comes and goes at one instant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct PlanChange {
    /// Nodes that come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeInfo>,
    /// Tasks that come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<TaskInfo>,
    /// Edges that come.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<EdgeInfo>,
    /// Nodes and tasks that are gone. Edges go by [`Kind::Detach`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gone: Vec<u32>,
    /// The chains from here on, all of them; `None`: as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chains: Option<Vec<ChainInfo>>,
}

impl PlanChange {
    /// As records. `None`: there is nothing to say, or more than a header may hold.
    pub fn to_events(&self, now_ns: u64) -> Option<Vec<Event>> {
        let text = serde_json::to_vec(self).ok().filter(|_| *self != PlanChange::default())?;
        let length = u32::try_from(text.len()).ok().filter(|&length| length <= HEADER_BYTES_MAX)?;
        let parts = text.chunks(PART).zip((0..length).step_by(PART));
        Some(
            parts
                .map(|(part, before)| Event::with_text(now_ns, Kind::Change, length - before, part))
                .collect(),
        )
    }

    /// Add to a header what comes, and mark in it what is gone.
    pub fn amend(&self, header: &mut TraceHeader) {
        header.nodes.extend_from_slice(&self.nodes);
        header.tasks.extend_from_slice(&self.tasks);
        header.edges.extend_from_slice(&self.edges);
        if let Some(chains) = &self.chains {
            header.chains.clone_from(chains);
        }
        for id in &self.gone {
            header.nodes.iter_mut().filter(|node| node.id == *id).for_each(|node| node.gone = true);
            header.tasks.iter_mut().filter(|task| task.id == *id).for_each(|task| task.gone = true);
        }
    }
}

/// What a record means after renumbering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// A record.
    Event(Event),
    /// The plan is another one from here on.
    Change(PlanChange),
    /// Nothing by itself.
    Nothing,
}

/// Follows records in the order of time and gives all that the plan names a number of its own.
#[derive(Debug, Clone, Default)]
pub struct Renumber {
    /// Nodes and tasks, edges: the number of an id, where it is another.
    things: HashMap<u32, u32>,
    edges: HashMap<u32, u32>,
    /// Numbers of edges that the header names.
    named: HashSet<u32>,
    given: u32,
    text: Vec<u8>,
    left: u32,
}

impl Renumber {
    /// For a recording that begins with this header.
    pub fn new(header: &TraceHeader) -> Renumber {
        let named = header.edges.iter().map(|edge| edge.id).collect();
        Renumber { named, ..Default::default() }
    }

    fn fresh(&mut self) -> u32 {
        self.given += 1;
        (FRESH + self.given).min(ID_MAX)
    }

    /// The number of a node or task.
    pub fn thing(&self, id: u32) -> u32 {
        self.things.get(&id).copied().unwrap_or(id)
    }

    /// The number of an edge.
    pub fn edge(&self, id: u32) -> u32 {
        self.edges.get(&id).copied().unwrap_or(id)
    }

    /// Take in a record.
    pub fn event(&mut self, event: &Event) -> Seen {
        let kind = event.kind();
        if kind == Some(Kind::Change) {
            return self.part(event).map_or(Seen::Nothing, Seen::Change);
        }
        if self.given == 0 && kind != Some(Kind::Detach) {
            return Seen::Event(*event);
        }
        let Event { a, b, value, .. } = *event;
        Seen::Event(match kind {
            Some(Kind::Outside) if value == SCHEDULER => Event { a: self.thing(a), ..*event },
            None | Some(Kind::Change | Kind::Lost | Kind::Outside | Kind::Control) => *event,
            Some(Kind::Decision) => {
                Event { a: self.thing(a), b: self.edge(b), value: self.thing(value as u32).into(), ..*event }
            }
            Some(
                Kind::Request
                | Kind::Release
                | Kind::JobRelease
                | Kind::JobStart
                | Kind::JobComplete
                | Kind::Miss
                | Kind::Stolen
                | Kind::Name
                | Kind::Tell
                | Kind::Migrate
                | Kind::Met
                | Kind::LockEnd
                | Kind::Mark,
            ) => Event { a: self.thing(a), ..*event },
            Some(Kind::LockWait) => Event { a: self.thing(a), b: self.thing(b), ..*event },
            Some(Kind::Mode) => Event { a: self.thing(a), value: self.edge(value as u32).into(), ..*event },
            Some(Kind::Revoke | Kind::Unkept) => Event { a: self.edge(a), ..*event },
            Some(
                Kind::Grant | Kind::Throttle | Kind::Replenish | Kind::Budget | Kind::Forgive | Kind::Resize,
            ) => Event { a: self.edge(a), b: self.thing(b), ..*event },
            Some(Kind::Attach) if self.named.contains(&self.edge(a)) => return Seen::Nothing,
            Some(Kind::Attach) => {
                let parent = self.thing(value as u32).into();
                Event { a: self.edge(a), b: self.thing(b), value: parent, ..*event }
            }
            // The header's edges keep what they have counted; the id may be another's from here on.
            Some(Kind::Detach) if self.named.contains(&self.edge(a)) => {
                let edge = self.edge(a);
                let fresh = self.fresh();
                self.edges.insert(a, fresh);
                Event { a: edge, b: GONE, kind: Kind::Revoke as u16, ..*event }
            }
            Some(Kind::Detach) => Event { a: self.edge(a), b: self.thing(b), ..*event },
        })
    }

    /// A part of a change; the change, if it is the last one. Parts that do not fit together (some were lost) say nothing.
    fn part(&mut self, event: &Event) -> Option<PlanChange> {
        if self.left != event.a || self.text.is_empty() {
            self.text.clear();
            self.left = event.a;
        }
        let take = self.left.min(PART as u32);
        self.text.extend_from_slice(&event.bytes()[..take as usize]);
        self.left -= take;
        if self.left > 0 {
            return None;
        }
        let change = serde_json::from_slice(&std::mem::take(&mut self.text)).ok()?;
        self.renumber(change)
    }

    fn renumber(&mut self, mut change: PlanChange) -> Option<PlanChange> {
        let nodes = change.nodes.iter().map(|node| node.id);
        let families = change.nodes.iter().filter_map(|node| node.family);
        let things = nodes.chain(change.tasks.iter().map(|task| task.id)).chain(change.gone.iter().copied());
        let things = things.chain(families);
        let edges = change.edges.iter().flat_map(|edge| [edge.id, edge.parent, edge.child]);
        if things.chain(edges).any(|id| id > ID_MAX) {
            return None;
        }
        let mut gone = Vec::new();
        for id in change.gone {
            gone.push(self.thing(id));
            let fresh = self.fresh();
            self.things.insert(id, fresh);
        }
        change.gone = gone;
        let come = change.nodes.iter_mut().map(|node| &mut node.id);
        for id in come.chain(change.tasks.iter_mut().map(|task| &mut task.id)) {
            let fresh = self.fresh();
            self.things.insert(*id, fresh);
            *id = fresh;
        }
        for family in change.nodes.iter_mut().filter_map(|node| node.family.as_mut()) {
            *family = self.thing(*family);
        }
        for edge in &mut change.edges {
            let fresh = self.fresh();
            self.edges.insert(edge.id, fresh);
            self.named.insert(fresh);
            (edge.id, edge.parent, edge.child) = (fresh, self.thing(edge.parent), self.thing(edge.child));
        }
        Some(change)
    }
}

/// `enum tierce_why`.
const GONE: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::{Trace, Writer};
    use crate::stats::Stats;
    use proptest::prelude::*;

    fn edge(id: u32, parent: u32, child: u32, budget_ns: u64) -> EdgeInfo {
        EdgeInfo { id, parent, child, budget_ns: Some(budget_ns), ..Default::default() }
    }

    fn header() -> TraceHeader {
        let node = |id, name: &str| NodeInfo { id, name: name.into(), ..Default::default() };
        TraceHeader {
            cpus: 1,
            nodes: vec![node(1, "top"), node(2, "old")],
            edges: vec![EdgeInfo { cpu: Some(0), ..edge(1, 0, 1, 0) }, edge(2, 1, 2, 100)],
            ..Default::default()
        }
    }

    /// `old` (node 2, edge 2) runs thread 5 for 30; then it goes, `new` gets both ids and runs it for 50; then that goes
    /// too, and the ids are a thread's.
    fn events() -> Vec<Event> {
        let mut list = Vec::new();
        let event = |now_ns, kind, a, b, value| Event::new(now_ns, kind, 0, a, b, value);
        let run = |list: &mut Vec<Event>, from, to, edge, leaf_edge, child| {
            list.push(event(from, Kind::Grant, 1, 1, 0));
            list.push(event(from, Kind::Grant, edge, child, 0));
            list.push(event(from, Kind::Grant, leaf_edge, 5, 0));
            list.push(event(from, Kind::Decision, 5, leaf_edge, 0));
            list.push(event(to, Kind::Revoke, leaf_edge, 0, 0));
            list.push(event(to, Kind::Revoke, edge, 0, 0));
            list.push(event(to, Kind::Revoke, 1, 0, 0));
            list.push(event(to, Kind::Decision, 0, 0, 5));
        };
        list.push(Event::naming(0, 0, 5, "thread"));
        list.push(event(0, Kind::Attach, 7, 5, 2));
        run(&mut list, 0, 30, 2, 7, 2);
        list.push(event(40, Kind::Detach, 7, 5, 0));
        list.push(event(40, Kind::Detach, 2, 2, 0));
        list.extend(PlanChange { gone: vec![2], ..Default::default() }.to_events(40).unwrap());
        let come = PlanChange {
            nodes: vec![NodeInfo { id: 2, name: "new".into(), policy: "fair".into(), ..Default::default() }],
            edges: vec![edge(2, 1, 2, 70)],
            ..Default::default()
        };
        list.extend(come.to_events(41).unwrap());
        list.push(event(42, Kind::Attach, 2, 2, 1));
        list.push(event(42, Kind::Attach, 7, 5, 2));
        run(&mut list, 50, 100, 2, 7, 2);
        list.push(event(100, Kind::Detach, 7, 5, 0));
        list.push(event(100, Kind::Detach, 2, 2, 0));
        list.extend(PlanChange { gone: vec![2], ..Default::default() }.to_events(100).unwrap());
        list.push(Event::naming(101, 0, 2, "late"));
        list.push(event(101, Kind::Attach, 2, 2, 1));
        list.push(event(110, Kind::Grant, 2, 2, 0));
        list.push(event(110, Kind::Decision, 2, 2, 0));
        list.push(event(120, Kind::Decision, 0, 0, 2));
        list
    }

    #[test]
    fn everything_counts_for_what_it_was_at_that_time() {
        let mut writer = Writer::new(Vec::new(), &header()).unwrap();
        events().iter().for_each(|event| writer.write(event).unwrap());
        let (trace, fault) = Trace::read(&writer.finish().unwrap()[..]).unwrap();
        assert!(fault.is_none());
        assert!(trace.events.iter().all(|event| event.kind() != Some(Kind::Change)));
        let mut stats = Stats::new(&trace.header);
        trace.events.iter().for_each(|event| stats.event(event));
        stats.finish(120);
        let report = stats.report();
        let nodes: Vec<_> = report
            .nodes
            .iter()
            .map(|node| (node.name.as_str(), node.gone, node.cpu_ns, node.under[0].budget_ns))
            .collect();
        assert_eq!(
            nodes,
            [("top", false, 80, Some(0)), ("old", true, 30, Some(100)), ("new", true, 50, Some(70))]
        );
        let tasks: Vec<_> = report.tasks.iter().map(|task| (task.name.as_str(), task.cpu_ns)).collect();
        assert_eq!(tasks, [("thread", 80), ("late", 10)]);
        // Live, the same from the same records as they come.
        let (mut renumber, mut live) = (Renumber::new(&header()), Stats::new(&header()));
        for event in events() {
            match renumber.event(&event) {
                Seen::Event(event) => live.event(&event),
                Seen::Change(change) => live.change(&change),
                Seen::Nothing => {}
            }
        }
        live.finish(120);
        assert_eq!(live.report(), report);
    }

    #[test]
    fn parts_that_are_missing_say_nothing() {
        let change = PlanChange { gone: (1..20).collect(), ..Default::default() };
        let parts = change.to_events(0).unwrap();
        assert!(parts.len() > 3);
        for lost in 0..parts.len() {
            let mut renumber = Renumber::new(&header());
            let kept = parts.iter().enumerate().filter(|(at, _)| *at != lost);
            assert!(kept.map(|(_, part)| renumber.event(part)).all(|seen| seen == Seen::Nothing), "{lost}");
            let again: Vec<_> = parts.iter().map(|part| renumber.event(part)).collect();
            assert!(matches!(again.last(), Some(Seen::Change(_))), "{lost}");
        }
        assert_eq!(PlanChange::default().to_events(0), None);
        let wild = PlanChange { gone: vec![u32::MAX], ..Default::default() };
        let mut renumber = Renumber::new(&header());
        assert!(wild.to_events(0).unwrap().iter().all(|part| renumber.event(part) == Seen::Nothing));
    }

    proptest! {
        #[test]
        fn no_records_make_it_panic(fields in prop::collection::vec((1u16..24, any::<u32>(), any::<u32>(), any::<u64>()), 0..60)) {
            let mut renumber = Renumber::new(&header());
            for (kind, a, b, value) in fields {
                renumber.event(&Event { now_ns: 0, kind, cpu: 0, a, b, pad: 0, value });
            }
        }
    }
}
