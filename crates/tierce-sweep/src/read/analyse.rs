//! `[[analyse]]`: tests of schedulability, with the rules that `tierce analyse` has for its options.

use super::values::Reader;
use crate::study::{Analysis, Kind as TestKind, Policy, Test};
use tierce_analysis::partition::Fit;
use tierce_analysis::Supply;
use tierce_guarantee::Guarantee;
use tierce_plan::reading::{Fields, Value};
use tierce_plan::{parse_time, Fault};

const FITS: [(&str, Fit); 6] = [
    ("first", Fit::First),
    ("best", Fit::Best),
    ("worst", Fit::Worst),
    ("next", Fit::Next),
    ("period", Fit::Period),
    ("mixed", Fit::Mixed),
];

/// Each of these with each of the values, whose words are added to its name.
fn combined<T>(
    variants: &[(String, Analysis)],
    values: &[(String, T)],
    set: impl Fn(&mut Analysis, &T),
) -> Vec<(String, Analysis)> {
    let with = |(name, asked): &(String, Analysis), (words, value): &(String, T)| {
        let mut asked = asked.clone();
        set(&mut asked, value);
        (format!("{name}{words}"), asked)
    };
    variants.iter().flat_map(|variant| values.iter().map(move |value| with(variant, value))).collect()
}

impl Reader<'_> {
    pub fn analyse(&mut self, value: &Value, cpus: &[u32], tests: &mut Vec<Test>) -> Option<()> {
        let table = self.collector.table("`analyse`", value)?;
        let mut fields = Fields::new("`analyse`", table);
        let name = fields.text("name", &mut self.collector).map(str::to_string);
        let given = ["policy", "partition", "preemption", "supply"].map(|name| fields.take(name));
        let quantum = fields.duration("quantum", &mut self.collector);
        let responses = fields.bool("responses", &mut self.collector).unwrap_or(false);
        fields.finish(&mut self.collector);
        if given[0].is_none() {
            self.fault("policy_must_be_given", value, "`policy` is missing: by which the sets are scheduled");
        }
        let variants = self.variants(given)?;
        if variants.len() > 1 && name.is_some() {
            let message = "`name` is for one test; with lists each is named by its values";
            self.fault("name_is_of_one_test", value, message);
            return None;
        }
        for (words, asked) in variants {
            let asked = Analysis { quantum_ns: quantum.unwrap_or(1), responses, ..asked };
            if self.can_be_asked(value, &asked, quantum.is_some(), cpus) {
                self.add_test(value, name.clone().unwrap_or(words), TestKind::Analyse(asked), tests);
            }
        }
        Some(())
    }

    /// All combinations of values of the keys that may have several, each with its name.
    fn variants(&mut self, given: [Option<&Value>; 4]) -> Option<Vec<(String, Analysis)>> {
        let [policy, partition, preemption, supply] = given;
        let policies = self.values("`policy`", policy?, |reader, what, value| {
            Some((reader.collector.text(what, value)?.to_string(), reader.choice(what, value, &Policy::ALL)?))
        })?;
        let first = |(name, policy): (String, Policy)| {
            let (supply, partition, whole_jobs) = (Supply::WHOLE, None, false);
            let asked = Analysis { policy, supply, partition, whole_jobs, quantum_ns: 1, responses: false };
            (name, asked)
        };
        let mut variants: Vec<_> = policies.into_iter().map(first).collect();
        if let Some(value) = partition {
            let names = FITS.map(|(name, _)| (name, name));
            let fits =
                self.values("`partition`", value, |reader, what, value| reader.choice(what, value, &names))?;
            let fits = FITS.iter().filter(|(name, _)| fits.contains(name));
            let fits: Vec<_> = fits.map(|(name, fit)| (format!(", partition {name}"), *fit)).collect();
            variants = combined(&variants, &fits, |asked, fit| asked.partition = Some(*fit));
        }
        if let Some(value) = preemption {
            let names = [("full", (false, "")), ("none", (true, ", not preempted"))];
            let modes =
                self.values("`preemption`", value, |reader, what, value| reader.choice(what, value, &names))?;
            let modes: Vec<_> = modes.into_iter().map(|(mode, words)| (words.to_string(), mode)).collect();
            variants = combined(&variants, &modes, |asked, mode| asked.whole_jobs = *mode);
        }
        if let Some(value) = supply {
            let supplies =
                self.values("`supply`", value, |reader, what, value| reader.supply(what, value))?;
            variants = combined(&variants, &supplies, |asked, supply| asked.supply = *supply);
        }
        Some(variants)
    }

    /// The rules that `tierce analyse` has for its options.
    pub fn can_be_asked(&mut self, place: &Value, asked: &Analysis, quantum: bool, cpus: &[u32]) -> bool {
        let several = cpus.iter().any(|cpus| *cpus > 1);
        let global = several && asked.partition.is_none();
        let is_pd2 = asked.policy == Policy::Pd2;
        let plain = asked.supply == Supply::WHOLE;
        let (rule, message) = if is_pd2 && (cpus.contains(&1) || asked.partition.is_some() || !plain) {
            (
                "pd2_is_for_several_cpus",
                "`pd2` needs `cpus` of at least 2, and has no `partition` and no `supply`",
            )
        } else if is_pd2 && !quantum {
            ("quantum_must_be_given", "`pd2` needs a `quantum`")
        } else if quantum && !is_pd2 {
            ("quantum_is_of_pd2", "`quantum` is for `pd2` only")
        } else if global && !plain {
            ("supply_is_of_one_cpu", "several CPUs with a `supply` each need a `partition`")
        } else if global && asked.policy == Policy::Fifo {
            ("fifo_is_of_one_cpu", "`fifo` on several CPUs needs a `partition`")
        } else if global && asked.whole_jobs {
            (
                "jobs_are_preempted_anywhere",
                "the global tests need full preemption; those with a `partition` do not",
            )
        } else {
            return true;
        };
        self.fault(rule, place, message);
        false
    }

    /// `"1.5ms/6ms"`, `"1.5ms/6ms/4ms"` or a guarantee.
    pub fn supply(&mut self, what: &str, value: &Value) -> Option<(String, Supply)> {
        let text = self.collector.text(what, value)?;
        let found = if text.trim_start().starts_with(|first: char| first.is_ascii_digit()) {
            let times: Vec<_> = text.split('/').map(parse_time).collect::<Result<_, _>>().unwrap_or_default();
            match times[..] {
                [budget, period] => Supply::periodic(budget, period),
                [budget, period, deadline] => Supply::edp(budget, period, deadline),
                _ => None,
            }
        } else {
            Guarantee::parse(text).ok().and_then(|guarantee| Supply::of(&guarantee))
        };
        if found.is_none() {
            let fault = Fault::new("supply_must_fit", value.spot, format!("{what} is no supply of CPU time"));
            let bound = "BUDGET/PERIOD[/DEADLINE] with 0 < budget <= deadline <= period, or a guarantee";
            self.collector.add(fault.value(format!("\"{text}\"")).bound(bound));
        }
        found.map(|supply| (format!(", supply {text}"), supply))
    }

    pub fn add_test(&mut self, place: &Value, name: String, kind: TestKind, tests: &mut Vec<Test>) {
        if tests.iter().any(|test| test.name == name) {
            let message = format!("a second test `{name}`");
            let fault = Fault::new("name_is_unique", place.spot, message);
            self.collector.add(fault.hint("give one of them another `name`"));
        } else {
            tests.push(Test { name, kind });
        }
    }
}
