//! `[generate]`: how sets are drawn.

use super::values::{Reader, POINTS_MAX};
use crate::decimal::Decimal;
use crate::study::{Drawn, Method};
use tierce_analysis::generate::{shares, Draw};
use tierce_plan::reading::{Fields, Value};
use tierce_plan::Fault;

/// The values of each key.
struct Axes {
    methods: Vec<Method>,
    cpus: Vec<u32>,
    /// None: it is not said how many tasks a set has.
    counts: Vec<u32>,
    periods: Vec<(u64, u64)>,
    shares: Vec<(Decimal, Decimal)>,
    utilisations: Vec<(Decimal, Decimal)>,
}

impl Axes {
    /// What does not go together: rule and words.
    fn refused(&self) -> Option<(&'static str, &'static str)> {
        let by_paper = self.methods.contains(&Method::Paper);
        let ranges = self.utilisations.iter().any(|(least, most)| least != most);
        if by_paper && !self.counts.is_empty() {
            let message = "`paper` draws as many tasks as it needs; leave `tasks` out";
            Some(("tasks_are_as_many_as_needed", message))
        } else if self.counts.is_empty() && (!by_paper || self.methods.len() > 1) {
            Some(("tasks_are_some", "`tasks` is missing: how many a set has"))
        } else if !by_paper && ranges {
            Some(("sum_is_one", "only `paper` takes ranges of `utilisation`; give numbers"))
        } else {
            None
        }
    }

    fn points(&self) -> u64 {
        let Self { methods, cpus, counts, periods, shares, utilisations } = self;
        let counts = counts.len().max(1);
        let lengths = [methods.len(), cpus.len(), counts, periods.len(), shares.len(), utilisations.len()];
        lengths.iter().fold(1, |points: u64, length| points.saturating_mul(*length as u64))
    }

    fn combinations(&self) -> Vec<Drawn> {
        let counts = match &self.counts[..] {
            [] => vec![None],
            counts => counts.iter().copied().map(Some).collect(),
        };
        let mut drawn = vec![];
        for &method in &self.methods {
            for &cpus in &self.cpus {
                for &tasks in &counts {
                    for &periods_ns in &self.periods {
                        for &shares in &self.shares {
                            for &utilisation in &self.utilisations {
                                drawn.push(Drawn { method, cpus, tasks, utilisation, shares, periods_ns });
                            }
                        }
                    }
                }
            }
        }
        drawn
    }
}

impl Reader<'_> {
    pub fn generate(&mut self, value: &Value) -> Option<Vec<Drawn>> {
        let table = self.collector.table("`generate`", value)?;
        let mut fields = Fields::new("`generate`", table);
        let given =
            ["method", "cpus", "tasks", "periods", "shares", "utilisation"].map(|name| fields.take(name));
        let [method, cpus, tasks, periods, shares, utilisation] = given;
        fields.finish(&mut self.collector);
        for (name, given) in [("method", method), ("periods", periods), ("utilisation", utilisation)] {
            if given.is_none() {
                self.fault("sets_need_their_numbers", value, format!("`generate` lacks `{name}`"));
            }
        }
        let whole = |most| {
            move |reader: &mut Self, what: &str, value: &Value| {
                reader.collector.whole(what, value, 1, most).map(|number| number as u32)
            }
        };
        let names = |reader: &mut Self, what: &str, value: &Value| reader.choice(what, value, &Method::ALL);
        let methods = method.and_then(|value| self.values("`method`", value, names));
        let cpus = cpus.map_or(Some(vec![1]), |value| self.values("`cpus`", value, whole(1024)));
        let counts = tasks.map(|value| self.values("`tasks`", value, whole(1024)));
        let times = |reader: &mut Self, what: &str, value: &Value| reader.times(what, value);
        let periods = periods.and_then(|value| self.values("`periods`", value, times));
        let one = Decimal(1_000_000_000);
        let shares = shares.map_or(Some(vec![(Decimal(0), one)]), |value| self.numbers("`shares`", value));
        let utilisations = utilisation.and_then(|value| self.numbers("`utilisation`", value));
        let (methods, cpus, periods, shares) = (methods?, cpus?, periods?, shares?);
        let (counts, utilisations) = (counts.map_or(Some(Vec::new()), |counts| counts)?, utilisations?);
        let axes = Axes { methods, cpus, counts, periods, shares, utilisations };
        let refused = axes.refused();
        if let Some((rule, message)) = refused {
            self.fault(rule, value, message);
            return None;
        }
        if axes.points() > POINTS_MAX {
            let fault = Fault::new("grid_must_fit", value.spot, "the grid has too many points");
            self.collector.add(fault.value(axes.points()).bound(POINTS_MAX));
            return None;
        }
        let drawn = axes.combinations();
        self.can_be_drawn(value, &drawn).then_some(drawn)
    }

    /// A set is drawn at each point: what none can have is refused before any work is done.
    pub fn can_be_drawn(&mut self, value: &Value, all: &[Drawn]) -> bool {
        for drawn in all {
            let Err(refusal) = shares(&drawn.shares(), &mut Draw::new(1)) else { continue };
            let of = |(least, most): (Decimal, Decimal)| format!("{least}..{most}");
            let tasks = drawn.tasks.map_or(String::new(), |tasks| format!("{tasks} tasks, "));
            let message = format!(
                "no set can be drawn with {tasks}{} CPUs, `utilisation` {}, `shares` {}",
                drawn.cpus,
                of(drawn.utilisation),
                of(drawn.shares)
            );
            self.collector.add(Fault::new(refusal.rule, value.spot, message).bound(refusal.message));
            return false;
        }
        true
    }
}
