//! Critical modes of `mixed-criticality` nodes: how often, for how long, and which children began them.

use crate::event::{Event, Kind, ID_MAX};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All critical modes of one node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CriticalModes {
    /// The node.
    pub node: String,
    /// How often its critical mode began.
    pub count: u64,
    /// How long it was in critical mode, added up (ns).
    pub total_ns: u64,
    /// The longest time (ns).
    pub longest_ns: u64,
    /// Which children used more than their work, and how often; the most frequent first.
    pub begun_by: Vec<(String, u64)>,
    /// It is in critical mode now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub now: bool,
}

#[derive(Debug, Clone, Default)]
struct OfNode {
    count: u64,
    total_ns: u64,
    longest_ns: u64,
    begun_by: BTreeMap<u32, u64>,
    since_ns: Option<u64>,
}

impl OfNode {
    fn end(&mut self, now_ns: u64) {
        if let Some(since_ns) = self.since_ns.take() {
            let lasted_ns = now_ns.saturating_sub(since_ns);
            self.total_ns += lasted_ns;
            self.longest_ns = self.longest_ns.max(lasted_ns);
        }
    }
}

/// Critical modes, from events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Modes(BTreeMap<u32, OfNode>);

impl Modes {
    /// Kinds of events that say something here.
    pub const KINDS: u64 = 1 << Kind::Mode as u16;

    /// Take in an event; `child` is the child of an edge.
    #[inline]
    pub fn event(&mut self, event: &Event, child: impl Fn(u32) -> u32) {
        if event.kind() != Some(Kind::Mode) || event.a > ID_MAX {
            return;
        }
        let node = self.0.entry(event.a).or_default();
        node.end(event.now_ns); // one whose end was lost ends here
        if event.b == 1 {
            node.count += 1;
            node.since_ns = Some(event.now_ns);
            let by = child(u32::try_from(event.value).unwrap_or(0));
            *node.begun_by.entry(by).or_default() += 1;
        }
    }

    /// Nobody will tell how critical modes end that are under way.
    pub fn are_forgotten(&mut self) {
        self.0.values_mut().for_each(|node| node.since_ns = None);
    }

    /// All up to this time, in the order of nodes.
    pub fn found(&self, now_ns: u64, name: impl Fn(u32) -> String) -> Vec<CriticalModes> {
        let of = |(id, node): (&u32, &OfNode)| {
            let mut node = node.clone();
            let now = node.since_ns.is_some();
            node.end(now_ns);
            let mut begun_by: Vec<_> =
                node.begun_by.iter().map(|(child, times)| (name(*child), *times)).collect();
            begun_by.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
            let OfNode { count, total_ns, longest_ns, .. } = node;
            CriticalModes { node: name(*id), count, total_ns, longest_ns, begun_by, now }
        };
        self.0.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_counted_and_measured() {
        let mut modes = Modes::default();
        let mut tell = |now_ns, begins: u32, edge: u64| {
            let (kind, a) = (Kind::Mode as u16, 3);
            modes.event(&Event { now_ns, kind, a, b: begins, value: edge, ..Event::default() }, |edge| {
                edge + 10
            });
        };
        tell(5, 1, 1);
        tell(9, 0, 1);
        tell(20, 1, 2);
        tell(21, 0, 2);
        tell(30, 1, 2); // its end is lost
        tell(40, 1, 2);
        let found = modes.found(42, |id| id.to_string());
        let begun_by = vec![("12".to_string(), 3), ("11".to_string(), 1)];
        let expected =
            CriticalModes { node: "3".into(), count: 4, total_ns: 17, longest_ns: 10, begun_by, now: true };
        assert_eq!(found, [expected]);
        modes.are_forgotten();
        assert_eq!(modes.found(100, |id| id.to_string())[0].total_ns, 15);
    }
}
