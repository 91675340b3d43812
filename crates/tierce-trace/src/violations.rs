//! Promises that were not kept and deadlines that were missed between two snapshots, and why.
//!
//! A deadline can be missed although everything promised was received: the job needed more than its budget, an *overrun*. Which of the
//! two it was follows from what the edges on the way up have counted meanwhile.

use crate::promise::Unkept;
use crate::snapshot::{Edge, EdgeCounts, Kind, Part, Snapshot};
use crate::units;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Nodes above a part that are looked at, one above the other.
const LEVELS_MAX: usize = 64;

/// Something that a part was to have, and has not had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Name of the task, set or node.
    pub part: String,
    /// What it was.
    pub what: Violated,
}

/// A promise or a deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violated {
    /// It wanted the CPU all the time, and received less than was promised.
    Promise {
        /// By which node.
        parent: String,
        /// In so many periods.
        windows: u64,
        /// So much was missing in them.
        missing_ns: u64,
        /// In the last of them. `None`: it still waits for the CPU.
        why: Option<Unkept>,
    },
    /// Jobs ended after their deadline.
    Deadline {
        /// So many.
        misses: u64,
        /// Why.
        why: Missed,
    },
}

/// Why deadlines were missed. Of several misses between two snapshots that were missed for different reasons, the first of these.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missed {
    /// A promise was not kept meanwhile.
    PromiseNotKept {
        /// To which part: this one, or a node above it.
        of: String,
        /// In the last period.
        why: Option<Unkept>,
    },
    /// Every promise was kept, and the budget was used up: the jobs needed more.
    Overrun {
        /// Whose budget: of this part, or of a node above it.
        of: String,
    },
    /// Every promise was kept, and the budget was not used up: the deadline is shorter than the budget's period, or the job waited for
    /// something else than the CPU.
    BudgetLeft,
    /// Neither the part nor a node above it has a budget.
    NoBudget,
}

/// Why a promise was not kept, in words.
pub fn unkept(why: Option<Unkept>) -> &'static str {
    why.map_or("it still waits for the CPU", Unkept::name)
}

impl Missed {
    /// A word for each.
    pub fn name(&self) -> &'static str {
        match self {
            Missed::PromiseNotKept { .. } => "promise not kept",
            Missed::Overrun { .. } => "overrun",
            Missed::BudgetLeft => "budget left",
            Missed::NoBudget => "no budget",
        }
    }
}

impl Violation {
    /// The event's name: for rules, notices and the journal.
    pub fn event(&self) -> &'static str {
        match self.what {
            Violated::Promise { .. } => "promise_not_kept",
            Violated::Deadline { .. } => "deadline_missed",
        }
    }

    /// Why, in a word or a few.
    pub fn why(&self) -> &'static str {
        match &self.what {
            Violated::Promise { why, .. } => unkept(*why),
            Violated::Deadline { why, .. } => why.name(),
        }
    }
}

fn several(count: u64) -> &'static str {
    if count == 1 {
        ""
    } else {
        "s"
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = &self.part;
        match &self.what {
            Violated::Promise { parent, windows, missing_ns, why } => {
                let (s, missing, why) = (several(*windows), units::time(*missing_ns), unkept(*why));
                write!(f, "{part} below {parent}: less than promised in {windows} period{s}, {missing} missing: {why}")
            }
            Violated::Deadline { misses, why } => {
                write!(f, "{part}: {misses} job{} missed the deadline: {}", several(*misses), why.name())?;
                match why {
                    Missed::PromiseNotKept { of, why } if of == part => write!(f, ": {}", unkept(*why)),
                    Missed::PromiseNotKept { of, why } => write!(f, " to {of}: {}", unkept(*why)),
                    Missed::Overrun { of } if of == part => f.write_str(": it had all of its budget"),
                    Missed::Overrun { of } => write!(f, ": {of} had all of its budget"),
                    Missed::BudgetLeft => f.write_str(": it did not use up its budget"),
                    Missed::NoBudget => Ok(()),
                }
            }
        }
    }
}

/// What was counted at the last look.
#[derive(Debug, Default)]
pub struct Violations(HashMap<(Kind, String), Part>);

impl Violations {
    /// What has come since the last look; at the first one, since the begin of the run. Parts that have come since then count from 0.
    pub fn since(&mut self, now: &Snapshot) -> Vec<Violation> {
        let parts = now.parts.iter().filter(|part| part.kind != Kind::Thread);
        let grown: Vec<Part> = parts.clone().map(|part| self.grown(part)).collect();
        let above = Above::of(&grown);
        let mut list = Vec::new();
        for part in &grown {
            list.extend(part.under.iter().filter_map(|edge| promise(part, edge)));
            if part.counts.misses > 0 {
                let what = Violated::Deadline { misses: part.counts.misses, why: above.missed(part) };
                list.push(Violation { part: part.name.clone(), what });
            }
        }
        // Parts that are gone are forgotten: a manager makes new ones for ever.
        self.0 = parts.map(|part| ((part.kind, part.name.clone()), part.clone())).collect();
        list
    }

    /// A part with what it has counted since the last look.
    fn grown(&self, part: &Part) -> Part {
        let mut grown = part.clone();
        let Some(before) = self.0.get(&(part.kind, part.name.clone())) else { return grown };
        grown.counts = part.counts.since(before.counts);
        for edge in &mut grown.under {
            let before = before.under.iter().find(|before| before.parent == edge.parent);
            edge.counts = edge.counts.since(before.map_or_else(EdgeCounts::default, |edge| edge.counts));
        }
        grown
    }
}

fn promise(part: &Part, Edge { parent, counts }: &Edge) -> Option<Violation> {
    let promise = counts.promise.filter(|promise| promise.not_kept > 0)?;
    let (windows, missing_ns, why) = (promise.not_kept, promise.missing_ns, promise.why);
    let what = Violated::Promise { parent: parent.clone(), windows, missing_ns, why };
    Some(Violation { part: part.name.clone(), what })
}

/// Nodes by the names that edges below them have for their parent: a spread node also by that of all its replicas.
struct Above<'a>(HashMap<&'a str, Vec<&'a Part>>);

impl<'a> Above<'a> {
    fn of(parts: &'a [Part]) -> Above<'a> {
        let mut above: HashMap<&str, Vec<&Part>> = HashMap::new();
        for node in parts.iter().filter(|part| part.kind == Kind::Node) {
            for name in [Some(&node.name), node.family.as_ref()].into_iter().flatten() {
                above.entry(name).or_default().push(node);
            }
        }
        Above(above)
    }

    /// The part and all nodes above it, the nearest first.
    fn path(&self, part: &'a Part) -> Vec<&'a Part> {
        let (mut path, mut level) = (vec![part], vec![part]);
        let mut seen: HashSet<&str> = HashSet::new();
        for _ in 0..LEVELS_MAX {
            let parents = level.iter().flat_map(|part| &part.under).filter(|edge| seen.insert(&edge.parent));
            level = parents.filter_map(|edge| self.0.get(&*edge.parent)).flatten().copied().collect();
            path.extend(&level);
        }
        path
    }

    /// Why a part has missed deadlines, from what its edges and those above have counted meanwhile.
    fn missed(&self, part: &'a Part) -> Missed {
        let path = self.path(part);
        let edges = || path.iter().flat_map(|part| part.under.iter().map(|edge| (&part.name, edge.counts)));
        let broken =
            edges().find_map(|(of, counts)| Some((of, counts.promise.filter(|it| it.not_kept > 0)?)));
        if let Some((of, promise)) = broken {
            return Missed::PromiseNotKept { of: of.clone(), why: promise.why };
        }
        if let Some((of, _)) = edges().find(|(_, counts)| counts.budget_ns.is_some() && counts.throttles > 0)
        {
            return Missed::Overrun { of: of.clone() };
        }
        match edges().any(|(_, counts)| counts.budget_ns.is_some()) {
            true => Missed::BudgetLeft,
            false => Missed::NoBudget,
        }
    }
}

impl Snapshot {
    /// Only parts with such names, and the nodes above them.
    pub fn keep_named(&mut self, names_begin: &str) {
        let above = Above::of(&self.parts);
        let named = self.parts.iter().filter(|part| part.name.starts_with(names_begin));
        let kept: HashSet<(Kind, String)> =
            named.flat_map(|part| above.path(part)).map(|part| (part.kind, part.name.clone())).collect();
        self.parts.retain(|part| kept.contains(&(part.kind, part.name.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::promise::Promise;
    use crate::snapshot::Counts;

    const MS: u64 = 1_000_000;

    fn edge(
        parent: &str,
        budget_ns: Option<u64>,
        throttles: u64,
        not_kept: u64,
        why: Option<Unkept>,
    ) -> Edge {
        let (windows, missing_ns) = (9, not_kept * MS);
        let promise =
            Promise { windows, promised_ns: 9, received_ns: 8, least_ns: None, not_kept, missing_ns, why };
        let promise = budget_ns.map(|_| promise);
        Edge {
            parent: parent.into(),
            counts: EdgeCounts { budget_ns, throttles, promise, ..EdgeCounts::default() },
        }
    }

    fn node(name: &str, under: Vec<Edge>) -> Part {
        Part { name: name.into(), under, ..Part::default() }
    }

    fn task(name: &str, misses: u64, under: Vec<Edge>) -> Part {
        let counts = Counts { misses, ..Counts::default() };
        Part { name: name.into(), kind: Kind::Task, counts, under, ..Part::default() }
    }

    fn snapshot(parts: Vec<Part>) -> Snapshot {
        Snapshot { parts, ..Snapshot::default() }
    }

    fn told(violations: &mut Violations, parts: Vec<Part>) -> Vec<String> {
        violations.since(&snapshot(parts)).iter().map(Violation::to_string).collect()
    }

    /// Each reason, and that each is told once.
    #[test]
    fn why_a_deadline_was_missed() {
        let root = || node("rt@0", vec![edge("cpu0", None, 0, 0, None)]);
        let web = |throttles, not_kept| {
            let under = vec![edge("rt@0", Some(5 * MS), throttles, not_kept, Some(Unkept::CpuAway))];
            node("web", under)
        };
        let budget = Some(2 * MS);
        let own = |throttles, not_kept, why| vec![edge("rt@0", budget, throttles, not_kept, why)];
        let inner = || vec![edge("web", None, 0, 0, None)];
        for (parts, expected) in [
            (
                vec![task("a", 3, own(7, 0, None))],
                "a: 3 jobs missed the deadline: overrun: it had all of its budget",
            ),
            (
                vec![task("a", 1, own(7, 2, Some(Unkept::Stolen)))],
                "a: 1 job missed the deadline: promise not kept: stolen",
            ),
            (
                vec![task("a", 1, own(0, 2, None))],
                "a: 1 job missed the deadline: promise not kept: it still waits for the CPU",
            ),
            (
                vec![task("a", 1, own(0, 0, None))],
                "a: 1 job missed the deadline: budget left: it did not use up its budget",
            ),
            (
                vec![task("a", 1, vec![edge("rt@0", None, 0, 0, None)])],
                "a: 1 job missed the deadline: no budget",
            ),
            (
                vec![web(4, 0), task("a", 1, inner())],
                "a: 1 job missed the deadline: overrun: web had all of its budget",
            ),
            (
                vec![web(4, 1), task("a", 1, inner())],
                "a: 1 job missed the deadline: promise not kept to web: the CPU was away",
            ),
            (
                vec![web(0, 0), task("a", 1, inner())],
                "a: 1 job missed the deadline: budget left: it did not use up its budget",
            ),
        ] {
            let parts = || std::iter::once(root()).chain(parts.clone()).collect();
            let mut violations = Violations::default();
            let list = told(&mut violations, parts());
            assert_eq!(list.iter().filter(|text| text.contains("deadline")).collect::<Vec<_>>(), [expected]);
            assert!(told(&mut violations, parts()).is_empty(), "{expected}");
        }
    }

    #[test]
    fn only_what_has_come_since_counts() {
        let mut violations = Violations::default();
        let budget = Some(2 * MS);
        let now = |misses, throttles, not_kept, why| {
            vec![task("a", misses, vec![edge("rt", budget, throttles, not_kept, why)])]
        };
        let first = told(&mut violations, now(0, 5, 2, Some(Unkept::Stolen)));
        assert_eq!(first, ["a below rt: less than promised in 2 periods, 2 ms missing: stolen"]);
        // The promise was broken before; in this interval it was kept.
        let then = told(&mut violations, now(2, 6, 2, Some(Unkept::Stolen)));
        assert_eq!(then, ["a: 2 jobs missed the deadline: overrun: it had all of its budget"]);
        let then = told(&mut violations, now(2, 6, 3, Some(Unkept::Others)));
        assert_eq!(then, ["a below rt: less than promised in 1 period, 1 ms missing: others had the CPU"]);
        // Taken out of the plan, and back: it counts from 0.
        assert!(told(&mut violations, Vec::new()).is_empty());
        assert!(violations.0.is_empty(), "what is gone is forgotten");
        assert_eq!(told(&mut violations, now(1, 1, 1, None)).len(), 2);
        assert_eq!(told(&mut violations, now(1, 1, 0, None)), [""; 0]);
    }

    #[test]
    fn parts_with_such_names_and_what_is_above_them() {
        let spread =
            Part { family: Some("rest".into()), ..node("rest@1", vec![edge("top@1", None, 0, 0, None)]) };
        let mut snapshot = snapshot(vec![
            node("top@0", vec![edge("cpu0", None, 0, 0, None)]),
            node("top@1", vec![edge("cpu1", None, 0, 0, None)]),
            node("rt@0", vec![edge("top@0", None, 0, 0, None)]),
            spread,
            node("grant-2", vec![edge("rt@0", Some(MS), 0, 0, None)]),
            task("grant-2-a", 0, vec![edge("grant-2", None, 0, 0, None)]),
            task("other", 0, vec![edge("rest", None, 0, 0, None)]),
        ]);
        let names = |snapshot: &Snapshot| snapshot.parts.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        let mut all = snapshot.clone();
        all.keep_named("");
        assert_eq!(names(&all), names(&snapshot));
        let mut other = snapshot.clone();
        other.keep_named("oth");
        assert_eq!(names(&other), ["top@1", "rest@1", "other"]);
        snapshot.keep_named("grant-");
        assert_eq!(names(&snapshot), ["top@0", "rt@0", "grant-2", "grant-2-a"]);
        snapshot.keep_named("none");
        assert!(snapshot.parts.is_empty());
    }
}
