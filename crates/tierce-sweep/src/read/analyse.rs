//! `[[analyse]]`: tests of schedulability, with the rules that `tierce analyse` has for its options.

use super::values::Reader;
use crate::study::{Analysis, Kind as TestKind, Test};
use tierce_analysis::partition::Fit;
use tierce_analysis::question::{Given, Named as _, Options, Policy, Preemption, Supplied};
use tierce_analysis::Supply;
use tierce_guarantee::Guarantee;
use tierce_plan::reading::{Fields, Value};
use tierce_plan::{parse_time, Fault};

/// Those that generated sets can have.
const POLICIES: [Policy; 8] = [
    Policy::Fp,
    Policy::Rm,
    Policy::Dm,
    Policy::Dkc,
    Policy::Audsley,
    Policy::Edf,
    Policy::Fifo,
    Policy::Pd2,
];

/// Each of these with each of the values, whose words are added to its name.
fn combined<T>(
    variants: &[(String, Options)],
    values: &[(String, T)],
    set: impl Fn(&mut Options, &T),
) -> Vec<(String, Options)> {
    let with = |(name, asked): &(String, Options), (words, value): &(String, T)| {
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
        for (words, options) in variants {
            let options = Options { quantum, ..options };
            if self.can_be_asked(value, &options, cpus) {
                let asked = TestKind::Analyse(Analysis { options, responses });
                self.add_test(value, name.clone().unwrap_or(words), asked, tests);
            }
        }
        Some(())
    }

    /// All combinations of values of the keys that may have several, each with its name.
    fn variants(&mut self, given: [Option<&Value>; 4]) -> Option<Vec<(String, Options)>> {
        let [policy, partition, preemption, supply] = given;
        let names = POLICIES.map(|policy| (policy.name(), policy));
        let policies =
            self.values("`policy`", policy?, |reader, what, value| reader.choice(what, value, &names))?;
        let first = |policy: Policy| {
            (policy.name().to_string(), Options { policy: Some(policy), ..Options::default() })
        };
        let mut variants: Vec<_> = policies.into_iter().map(first).collect();
        if let Some(value) = partition {
            let names: Vec<_> = Fit::ALL.iter().map(|(fit, name, _)| (*name, *fit)).collect();
            let fits =
                self.values("`partition`", value, |reader, what, value| reader.choice(what, value, &names))?;
            let fits: Vec<_> =
                fits.into_iter().map(|fit| (format!(", partition {}", fit.name()), fit)).collect();
            variants = combined(&variants, &fits, |asked, fit| asked.partition = Some(*fit));
        }
        if let Some(value) = preemption {
            let names = [
                ("full", (None, "")),
                ("none", (Some(Preemption::None), ", not preempted")),
                ("thresholds", (Some(Preemption::Thresholds), ", with thresholds")),
            ];
            let modes =
                self.values("`preemption`", value, |reader, what, value| reader.choice(what, value, &names))?;
            let modes: Vec<_> = modes.into_iter().map(|(mode, words)| (words.to_string(), mode)).collect();
            variants = combined(&variants, &modes, |asked, mode| asked.preemption = *mode);
        }
        if let Some(value) = supply {
            let supplies =
                self.values("`supply`", value, |reader, what, value| reader.supply(what, value))?;
            variants = combined(&variants, &supplies, |asked, supply| asked.supply = Some(supply.clone()));
        }
        Some(variants)
    }

    /// The rules that `tierce analyse` has for its options.
    pub fn can_be_asked(&mut self, place: &Value, asked: &Options, cpus: &[u32]) -> bool {
        let several = cpus.iter().any(|cpus| *cpus > 1);
        let global = several && asked.partition.is_none();
        let is_pd2 = asked.policy == Some(Policy::Pd2);
        let (plain, quantum) = (asked.supply.is_none(), asked.quantum.is_some());
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
        } else if global && asked.policy == Some(Policy::Fifo) {
            ("fifo_is_of_one_cpu", "`fifo` on several CPUs needs a `partition`")
        } else if global && asked.preemption.is_some() {
            (
                "jobs_are_preempted_anywhere",
                "the global tests need full preemption; those with a `partition` do not",
            )
        } else if asked.preemption == Some(Preemption::Thresholds)
            && !matches!(asked.policy, Some(Policy::Fp | Policy::Rm | Policy::Dm))
        {
            ("thresholds_need_priorities", "`preemption = \"thresholds\"` is for `fp`, `rm` and `dm`")
        } else {
            return true;
        };
        self.fault(rule, place, message);
        false
    }

    /// `"1.5ms/6ms"`, `"1.5ms/6ms/4ms"` or a guarantee.
    pub fn supply(&mut self, what: &str, value: &Value) -> Option<(String, Given)> {
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
        let given = |supply| Given { text: text.to_string(), supply: Supplied::Each(supply) };
        found.map(|supply| (format!(", supply {text}"), given(supply)))
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
