//! Why a thread no longer fits a match, and whether it loses a promise by that.

use super::matching::Thread;
use crate::model::{Child, Edge, Matcher, Plan};
use crate::policies;

/// Nodes above each other that are looked at.
const LEVELS_MAX: usize = 64;

impl Matcher {
    /// What of the thread does not fit, by the names of the keys: `its cgroup is "system.slice/other"`. Empty: all fits.
    pub fn misfits(&self, thread: &Thread) -> Vec<String> {
        let none = Matcher::default;
        let text = |text: &str| format!("{text:?}");
        let both = |one: u32, other: u32| match one == other {
            true => one.to_string(),
            false => format!("{one} (real: {other})"),
        };
        let cgroup = thread.cgroup.trim_start_matches('/');
        let owner = thread.exe_owner.map_or("unknown".into(), |uid| uid.to_string());
        let checksum = thread.checksum.map_or("unknown".into(), |checksum| text(&checksum.to_string()));
        let class = thread.realtime.map_or("no real-time class".into(), |is| is.to_string());
        let leader = (thread.pid == thread.tid).to_string();
        let keys = [
            ("comm", Matcher { comm: self.comm.clone(), ..none() }, text(&thread.comm)),
            ("pcomm", Matcher { pcomm: self.pcomm.clone(), ..none() }, text(&thread.pcomm)),
            ("exe", Matcher { exe: self.exe.clone(), ..none() }, text(&thread.exe)),
            ("exe_owner", Matcher { exe_owner: self.exe_owner, ..none() }, owner),
            ("checksum", Matcher { checksum: self.checksum, ..none() }, checksum),
            ("cgroup", Matcher { cgroup: self.cgroup.clone(), ..none() }, text(cgroup)),
            ("unit", Matcher { unit: self.unit.clone(), ..none() }, text(thread.unit().unwrap_or(""))),
            (
                "system_unit",
                Matcher { system_unit: self.system_unit.clone(), ..none() },
                text(thread.system_unit().unwrap_or("")),
            ),
            ("uid", Matcher { uid: self.uid.clone(), ..none() }, both(thread.uid, thread.real_uid)),
            ("gid", Matcher { gid: self.gid.clone(), ..none() }, both(thread.gid, thread.real_gid)),
            ("pid", Matcher { pid: self.pid, ..none() }, thread.pid.to_string()),
            ("tid", Matcher { tid: self.tid, ..none() }, thread.tid.to_string()),
            ("ppid", Matcher { ppid: self.ppid, ..none() }, thread.ppid.to_string()),
            ("nice", Matcher { nice: self.nice.clone(), ..none() }, thread.nice.to_string()),
            ("class", Matcher { class: self.class, ..none() }, class),
            ("is_kthread", Matcher { is_kthread: self.is_kthread, ..none() }, thread.is_kthread.to_string()),
            ("is_group_leader", Matcher { is_group_leader: self.is_group_leader, ..none() }, leader),
        ];
        let misfits = keys.into_iter().filter(|(_, matcher, _)| !matcher.fits(thread));
        misfits.map(|(key, _, is)| format!("its {key} is {is}")).collect()
    }
}

impl Plan {
    /// Whether something is promised to a task, set or node: it has a budget, or a node above it has one that is not also above the default
    /// node's threads.
    pub fn is_promised(&self, child: Child) -> bool {
        let default = self.default_node.map(|node| &self.nodes[node].base);
        let mut level = vec![child];
        for _ in 0..LEVELS_MAX {
            let edges: Vec<&Edge> = level.iter().flat_map(|child| self.edges_to(*child)).collect();
            if edges.iter().any(|edge| self.has_budget(edge)) {
                return true;
            }
            let parents = edges.iter().filter(|edge| Some(&self.nodes[edge.parent].base) != default);
            level = parents.map(|edge| Child::Node(edge.parent)).collect();
            level.dedup();
        }
        false
    }

    fn edges_to(&self, child: Child) -> Vec<&Edge> {
        match child {
            Child::Set(set) => self.sets[set].ways().flatten().collect(),
            _ => self.edges.iter().filter(|edge| edge.child == child).collect(),
        }
    }

    fn has_budget(&self, edge: &Edge) -> bool {
        let policy = policies::by_number(self.nodes[edge.parent].policy);
        policy.and_then(policies::budget_and_period).is_some_and(|(budget, _)| edge.params[budget] > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::any_cpu::unplaced;
    use crate::Glob;

    #[test]
    fn what_does_not_fit_is_named() {
        let glob = |text: &str| Some(Glob::new(text).unwrap());
        let thread = Thread {
            comm: "web-1".into(),
            cgroup: "/system.slice/other.service".into(),
            uid: 0,
            real_uid: 1000,
            tid: 7,
            pid: 5,
            ..Thread::default()
        };
        for (matcher, expected) in [
            (Matcher { comm: glob("web*"), ..Matcher::default() }, &[][..]),
            (
                Matcher { comm: glob("web*"), cgroup: glob("web/**"), ..Matcher::default() },
                &["its cgroup is \"system.slice/other.service\""],
            ),
            (
                Matcher { unit: glob("web.service"), comm: glob("db"), ..Matcher::default() },
                &["its comm is \"web-1\"", "its unit is \"other.service\""],
            ),
            (
                Matcher { system_unit: glob("web.service"), ..Matcher::default() },
                &["its system_unit is \"other.service\""],
            ),
            (Matcher { uid: Some(0..=0), ..Matcher::default() }, &["its uid is 0 (real: 1000)"]),
            (
                Matcher { is_group_leader: Some(true), nice: Some(1..=2), ..Matcher::default() },
                &["its nice is 0", "its is_group_leader is false"],
            ),
        ] {
            assert_eq!(matcher.misfits(&thread), expected, "{matcher}");
            assert_eq!(matcher.fits(&thread), expected.is_empty());
        }
    }

    #[test]
    fn what_is_promised() {
        let text = r#"
            [node.rt]
            policy = "reservation"
            cpu = 0
            [node.rest]
            policy = "fair"
            default = true
            under.rt = { budget = "5ms", period = "10ms" }
            [node.below-rest]
            policy = "fair"
            under.rest = {}
            [node.web]
            policy = "fair"
            under.rt = { budget = "1ms", period = "10ms" }
            [tasks.of-web]
            under.web = {}
            match = { comm = "a" }
            [task.own]
            under.rt = { budget = "1ms", period = "10ms" }
            match = { comm = "b" }
            [tasks.ordinary]
            under.below-rest = {}
            match = { comm = "c" }
        "#;
        let plan = Plan::of_text(text, "misfit.toml", Default::default(), unplaced).unwrap();
        let promised =
            plan.entries.iter().map(|entry| (plan.child_name(entry.target), plan.is_promised(entry.target)));
        let mut promised: Vec<_> = promised.collect();
        promised.sort_unstable();
        assert_eq!(promised, [("of-web", true), ("ordinary", false), ("own", true)]);
    }
}
