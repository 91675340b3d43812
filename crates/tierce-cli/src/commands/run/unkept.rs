//! Broken promises, missed deadlines and lost records: an entry of the journal, or a line on standard error, for each part that has more of
//! them than at the last look.

use crate::journal::{self, Level};
use log::kv::Value;
use std::time::{Duration, Instant};
use tierce_scx::live::Live;
use tierce_trace::snapshot::Snapshot;
use tierce_trace::{Violated, Violation, Violations};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(10);

/// Told one by one at a look: there may be thousands of parts.
const NAMED_MAX: usize = 50;

pub struct Unkept {
    looked: Instant,
    violations: Violations,
    lost: u64,
}

impl Unkept {
    pub fn new(begun: Instant) -> Self {
        Self { looked: begun, violations: Violations::default(), lost: 0 }
    }

    /// Now and then.
    pub fn look(&mut self, live: &mut Live) {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
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
        let list = self.violations.since(now);
        list.iter().take(NAMED_MAX).for_each(|violation| tell(&now.plan, violation, report));
        if let Some(more) = list.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
            let message = format!("{more} more broken promises or missed deadlines (tierce status --watch)");
            report("promise_not_kept", &message, &[("plan", (&*now.plan).into())]);
        }
    }
}

fn tell(plan: &str, violation: &Violation, report: &mut dyn FnMut(&str, &str, &[(&str, Value<'_>)])) {
    let message = violation.to_string();
    let mut fields: Vec<(&str, Value<'_>)> =
        vec![("plan", plan.into()), ("part", (&*violation.part).into()), ("why", violation.why().into())];
    match &violation.what {
        Violated::Promise { parent, windows, missing_ns, .. } => fields.extend([
            ("parent", (&**parent).into()),
            ("promises_not_kept", (*windows).into()),
            ("promise_missing_ns", (*missing_ns).into()),
        ]),
        Violated::Deadline { misses, .. } => fields.push(("missed_deadlines", (*misses).into())),
    }
    report(violation.event(), &message, &fields);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierce_trace::promise::{Promise, Unkept as Why};
    use tierce_trace::snapshot::{Counts, Edge, EdgeCounts, Kind, Part};

    fn audio(name: &str, not_kept: u64, missing_ns: u64, misses: u64) -> Part {
        let why = Some(Why::Stolen);
        let (windows, promised_ns, received_ns, least_ns) = (9, 9, 8, None);
        let promise = Promise { windows, promised_ns, received_ns, least_ns, not_kept, missing_ns, why };
        let counts = EdgeCounts { promise: Some(promise), ..EdgeCounts::default() };
        let under = vec![Edge { parent: "rt".into(), counts }];
        let counts = Counts { misses, ..Counts::default() };
        Part { name: name.into(), kind: Kind::Task, counts, under, ..Part::default() }
    }

    fn told(unkept: &mut Unkept, lost: u64, parts: Vec<Part>) -> Vec<String> {
        let now = Snapshot { plan: "p.toml".into(), lost, parts, ..Snapshot::default() };
        let mut list = Vec::new();
        unkept.take(&now, &mut |event, message, fields| {
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            list.push(format!("{event}: {message} ({})", fields.join(" ")));
        });
        list
    }

    #[test]
    fn what_is_new_is_told_once() {
        let mut unkept = Unkept::new(Instant::now());
        assert_eq!(told(&mut unkept, 0, vec![audio("audio", 0, 0, 0)]), [""; 0]);
        assert_eq!(
            told(&mut unkept, 3, vec![audio("audio", 2, 1_500_000, 1)]),
            [
                "records_lost: 3 records were lost: statistics and trace have gaps (plan=p.toml lost_records=3)",
                "promise_not_kept: audio below rt: less than promised in 2 periods, 1.5 ms missing: stolen (plan=p.toml \
                 part=audio why=stolen parent=rt promises_not_kept=2 promise_missing_ns=1500000)",
                "deadline_missed: audio: 1 job missed the deadline: promise not kept: stolen (plan=p.toml part=audio \
                 why=promise not kept missed_deadlines=1)",
            ]
        );
        assert_eq!(told(&mut unkept, 3, vec![audio("audio", 2, 1_500_000, 1)]), [""; 0]);
    }

    #[test]
    fn of_very_many_the_first_are_told() {
        let parts = (0..NAMED_MAX + 2).map(|number| audio(&format!("part-{number}"), 0, 0, 1)).collect();
        let list = told(&mut Unkept::new(Instant::now()), 0, parts);
        assert_eq!(list.len(), NAMED_MAX + 1);
        assert!(list[NAMED_MAX].contains("2 more broken promises or missed deadlines"), "{list:?}");
    }
}
