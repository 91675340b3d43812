//! Broken promises and lost records, for the journal: an entry for each part that has more of them than at the last look.

use crate::journal::{self, Level};
use log::kv::Value;
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tierce_scx::live::Live;
use tierce_trace::snapshot::{Edge, Part, Snapshot};
use tierce_trace::units;

/// Between two looks.
const LOOK: Duration = Duration::from_secs(10);

/// Nothing where standard error is not the journal.
pub struct Unkept {
    looked: Option<Instant>,
    counted: HashMap<(String, String), Counted>,
    lost: u64,
}

/// What an edge had counted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Counted {
    not_kept: u64,
    missing_ns: u64,
    misses: u64,
}

impl Unkept {
    pub fn new(begun: Instant) -> Self {
        let looked = journal::is_connected().then_some(begun);
        Self { looked, counted: HashMap::new(), lost: 0 }
    }

    /// Now and then.
    pub fn look(&mut self, live: &mut Live) {
        if self.looked.is_some_and(|looked| looked.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            let snapshot = live.snapshot(0);
            self.take(&snapshot, &mut |event, message, fields| {
                journal::report(Level::Warn, event, message, fields);
            });
        }
    }

    fn take(&mut self, now: &Snapshot, report: &mut dyn FnMut(&str, &str, &[(&str, Value<'_>)])) {
        if now.lost > self.lost {
            let lost = now.lost - self.lost;
            let message = format!("{lost} records were lost: statistics and trace have gaps");
            report("records_lost", &message, &[("plan", (&*now.plan).into()), ("lost_records", lost.into())]);
        }
        self.lost = now.lost;
        // Parts that are gone are forgotten: a manager makes new ones for ever.
        let mut known = std::mem::take(&mut self.counted);
        let parts = now.parts.iter();
        for (part, at, edge) in
            parts.flat_map(|part| (0..).zip(&part.under).map(move |(at, edge)| (part, at, edge)))
        {
            let (not_kept, missing_ns) =
                edge.counts.promise.map_or((0, 0), |it| (it.not_kept, it.missing_ns));
            // Jobs are those of the part, and count once.
            let misses = if at == 0 { part.counts.misses } else { 0 };
            let counted = Counted { not_kept, missing_ns, misses };
            let key = (part.name.clone(), edge.parent.clone());
            let before = known.remove(&key).unwrap_or_default();
            self.counted.insert(key, counted);
            // A part that has come again counts from 0.
            let before = if before.not_kept > counted.not_kept { Counted::default() } else { before };
            tell(now, part, edge, before, counted, report);
        }
    }
}

fn tell(
    now: &Snapshot,
    part: &Part,
    edge: &Edge,
    before: Counted,
    counted: Counted,
    report: &mut dyn FnMut(&str, &str, &[(&str, Value<'_>)]),
) {
    let (name, parent) = (&part.name, &edge.parent);
    let place = [("plan", &*now.plan), ("part", name), ("parent", parent)]
        .map(|(key, text)| (key, Value::from(text)));
    let not_kept = counted.not_kept - before.not_kept;
    if not_kept > 0 {
        let missing_ns = counted.missing_ns.saturating_sub(before.missing_ns);
        let missing = units::time(missing_ns);
        let s = if not_kept == 1 { "" } else { "s" };
        let message =
            format!("{name} below {parent}: less than promised in {not_kept} period{s}, {missing} missing");
        let numbers = [("promises_not_kept", not_kept.into()), ("promise_missing_ns", missing_ns.into())];
        report("promise_not_kept", &message, &[&place[..], &numbers].concat());
    }
    let misses = counted.misses.saturating_sub(before.misses);
    if misses > 0 {
        let s = if misses == 1 { "" } else { "s" };
        let message = format!("{name}: {misses} job{s} missed the deadline");
        report("deadline_missed", &message, &[&place[..], &[("missed_deadlines", misses.into())]].concat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_trace::promise::Promise;
    use tierce_trace::snapshot::{Counts, EdgeCounts};

    fn snapshot(lost: u64, not_kept: u64, missing_ns: u64, misses: u64) -> Snapshot {
        let promise = Some(Promise {
            windows: 9,
            promised_ns: 9,
            received_ns: 8,
            least_ns: None,
            not_kept,
            missing_ns,
            why: None,
        });
        let counts = EdgeCounts { promise, ..EdgeCounts::default() };
        let under = ["one", "two"].map(|parent| Edge { parent: parent.into(), counts }).to_vec();
        let counts = Counts { misses, ..Counts::default() };
        let audio = Part { name: "audio".into(), counts, under, ..Part::default() };
        Snapshot { plan: "p.toml".into(), lost, parts: vec![audio], ..Snapshot::default() }
    }

    #[test]
    fn what_is_new_is_told_once() {
        let mut unkept = Unkept::new(Instant::now());
        let mut told = |now: Snapshot| {
            let mut list = Vec::new();
            unkept.take(&now, &mut |event, message, fields| {
                let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                list.push(format!("{event}: {message} ({})", fields.join(" ")));
            });
            list
        };
        assert_eq!(told(snapshot(0, 0, 0, 0)), Vec::<String>::new());
        assert_eq!(
            told(snapshot(3, 2, 1_500_000, 1)),
            [
                "records_lost: 3 records were lost: statistics and trace have gaps (plan=p.toml lost_records=3)",
                "promise_not_kept: audio below one: less than promised in 2 periods, 1.5 ms missing (plan=p.toml part=audio \
                 parent=one promises_not_kept=2 promise_missing_ns=1500000)",
                "deadline_missed: audio: 1 job missed the deadline (plan=p.toml part=audio parent=one missed_deadlines=1)",
                "promise_not_kept: audio below two: less than promised in 2 periods, 1.5 ms missing (plan=p.toml part=audio \
                 parent=two promises_not_kept=2 promise_missing_ns=1500000)",
            ]
        );
        assert_eq!(told(snapshot(3, 2, 1_500_000, 1)), Vec::<String>::new());
        // Taken out of the plan, and back.
        assert_eq!(told(snapshot(3, 1, 1_000, 1)).len(), 3);
        told(Snapshot::default());
        assert!(unkept.counted.is_empty(), "what is gone is forgotten");
    }
}
