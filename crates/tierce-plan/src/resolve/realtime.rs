//! What a plan makes of a thread's real-time class and priority.

use super::matching::Thread;
use crate::model::realtime::Class;
use crate::model::{Edge, Matcher, Plan, PARAMS};
use crate::policies;

/// Turns of SCHED_RR threads where the plan gives no quantum: the kernel's preset.
const ROUND_ROBIN_NS: u64 = 100_000_000;

impl Matcher {
    /// Whether the thread fits, and the match names its class.
    fn contains(&self, thread: &Thread) -> bool {
        self.class.is_some() && self.fits(thread)
    }
}

impl Plan {
    /// Whether a thread of a real-time class leaves that class for its place in this entry.
    pub fn contains(&self, entry: usize, thread: &Thread) -> bool {
        self.entries[entry].any.iter().any(|matcher| matcher.contains(thread))
    }

    /// The parameters of an edge of a set that leads to this thread.
    pub fn params_for(&self, edge: &Edge, thread: &Thread) -> [u64; PARAMS] {
        let mut params = edge.params;
        let Some(at) = edge.priority_of_thread else { return params };
        params[at] = thread.realtime.map_or(0, |realtime| realtime.priority.into());
        let records = policies::by_number(self.nodes[edge.parent].policy).map(|policy| &policy.edge_params);
        if let Some(quantum) = records.and_then(|records| policies::position(records, "quantum")) {
            params[quantum] = match thread.realtime.map(|realtime| realtime.class) {
                Some(Class::RoundRobin) if params[quantum] == 0 => ROUND_ROBIN_NS,
                Some(Class::Fifo) => 0,
                _ => params[quantum],
            };
        }
        params
    }
}

impl Edge {
    /// Whether these parameters may be those of a thread below such an edge.
    pub fn may_have(&self, params: &[u64; PARAMS]) -> bool {
        self.priority_of_thread.is_some() || *params == self.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::any_cpu::unplaced;
    use crate::model::realtime::{RealTime, PRIORITY_MIN};

    #[test]
    fn what_a_thread_gets_by_its_class() {
        for (given, quantum) in [("", ROUND_ROBIN_NS), (", quantum = \"5ms\"", 5_000_000)] {
            let text = format!(
                "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n[tasks.rt]\ncount = 1\n\
                 under.top = {{ priority = \"rt_priority\"{given} }}\nmatch = {{ class = \"realtime\" }}\n"
            );
            let plan = Plan::of_text(&text, "plan.toml", Default::default(), unplaced).unwrap();
            let edge = &plan.sets[0].under[0];
            let params = |class: Option<Class>| {
                let realtime = class.map(|class| RealTime { class, priority: 42 });
                plan.params_for(edge, &Thread { realtime, ..Default::default() })[..2].to_vec()
            };
            assert_eq!(params(Some(Class::Fifo)), [42, 0]);
            assert_eq!(params(Some(Class::RoundRobin)), [42, quantum]);
            assert_eq!(params(None)[0], 0);
            assert_eq!(plan.edges[0].params[0], PRIORITY_MIN, "a member that the plan counts");
        }
    }
}
