//! From the text of a study to a [`Study`], or to all of its faults.

use crate::decimal::Decimal;
use crate::rows::{columns, is_number, reserved};
use crate::study::{
    Analysis, Drawn, Figure, Kind as TestKind, Measure, Method, Parameter, Point, Policy, Simulation, Study,
    Template, Test, Under,
};
use std::path::Path;
use std::sync::Arc;
use tierce_admission::PlanExt as _;
use tierce_analysis::generate::{shares, Draw};
use tierce_analysis::partition::Fit;
use tierce_analysis::Supply;
use tierce_guarantee::Guarantee;
use tierce_plan::reading::{listed, parse, wrong_kind, Collector, Fields, Kind, Table, Value};
use tierce_plan::{closest, parse_time, Fault, Faults, Plan, Source, Sources};

/// Values of one axis.
const VALUES_MAX: u64 = 10_000;
/// Points of the grid.
const POINTS_MAX: u64 = 1_000_000;
/// Sets at a point, and of a chunk.
const SETS_MAX: i64 = 1_000_000_000;
/// Sets in a file, unless it is said; simulations take longer, and what is not in a file is lost with a kill.
const CHUNK: u32 = 500;
const CHUNK_SIMULATED: u32 = 20;

const FITS: [(&str, Fit); 6] = [
    ("first", Fit::First),
    ("best", Fit::Best),
    ("worst", Fit::Worst),
    ("next", Fit::Next),
    ("period", Fit::Period),
    ("mixed", Fit::Mixed),
];

/// A study of its text; `name` is its path, for messages and for the plans that it names.
pub fn read(text: &str, name: &str) -> Result<Study, Faults> {
    let sources = Sources(vec![Arc::new(Source::new(name, text))]);
    let table = parse(text, 0).map_err(|faults| Faults::new(faults, sources.clone()))?;
    let mut reader = Reader { collector: Collector::default(), name };
    let study = reader.study(&table);
    match study.filter(|_| reader.collector.faults.is_empty()) {
        Some(study) => Ok(study),
        None => Err(Faults::new(reader.collector.faults, sources)),
    }
}

struct Reader<'t> {
    collector: Collector,
    name: &'t str,
}

impl Reader<'_> {
    fn fault(&mut self, rule: &'static str, value: &Value, message: impl Into<String>) {
        self.collector.add(Fault::new(rule, value.spot, message));
    }

    fn study(&mut self, table: &Table) -> Option<Study> {
        let mut fields = Fields::new("the study", table);
        let mut study = Study {
            seed: 1,
            sets: 1,
            chunk: 0,
            parameters: Vec::new(),
            points: Vec::new(),
            tests: Vec::new(),
            figures: Vec::new(),
        };
        let whole = Value { spot: Default::default(), kind: Kind::Table(Table::default()) };
        let head = fields.take("study").unwrap_or(&whole);
        if let Some(table) = self.collector.table("`study`", head) {
            let mut fields = Fields::new("`study`", table);
            let seed = fields.whole("seed", 0, i64::MAX, &mut self.collector);
            let sets = fields.whole("sets", 1, SETS_MAX, &mut self.collector);
            let chunk = fields.whole("chunk", 1, SETS_MAX, &mut self.collector);
            (study.seed, study.sets) = (seed.unwrap_or(1) as u64, sets.unwrap_or(1) as u32);
            study.chunk = chunk.unwrap_or(0) as u32;
            fields.finish(&mut self.collector);
        }
        let generate = fields.take("generate");
        let parameters = fields.take("parameters");
        let (analyses, simulations) = (fields.take("analyse"), fields.take("simulate"));
        let figures = fields.take("figure");
        fields.finish(&mut self.collector);

        let drawn = generate.map(|generate| self.generate(generate));
        let axes = parameters.map_or(Some(Vec::new()), |parameters| self.parameters(parameters));
        let (drawn, axes) = (drawn.unwrap_or(Some(Vec::new()))?, axes?);
        let cpus: Vec<u32> = drawn.iter().map(|drawn| drawn.cpus).collect();
        for entry in analyses.map_or(&[][..], |value| self.tables("analyse", value)) {
            if generate.is_none() {
                self.fault("sets_must_be_drawn", entry, "an analysis needs sets: [generate]");
            }
            self.analyse(entry, &cpus, &mut study.tests);
        }
        for entry in simulations.map_or(&[][..], |value| self.tables("simulate", value)) {
            self.simulate(entry, &cpus, &axes, &mut study.tests);
        }
        if analyses.or(simulations).is_none() {
            self.fault("study_needs_a_test", head, "there is nothing to do: [[analyse]] or [[simulate]]");
        }
        self.grid(&mut study, generate.unwrap_or(head), drawn, axes);
        if study.chunk == 0 {
            study.chunk = if simulations.is_some() { CHUNK_SIMULATED } else { CHUNK };
        }
        for entry in figures.map_or(&[][..], |value| self.tables("figure", value)) {
            self.figure(entry, &mut study);
        }
        Some(study)
    }

    /// All combinations.
    fn grid(
        &mut self,
        study: &mut Study,
        place: &Value,
        drawn: Vec<Drawn>,
        axes: Vec<(String, Vec<Parameter>)>,
    ) {
        let lengths = axes.iter().map(|(_, values)| values.len() as u64).chain([drawn.len().max(1) as u64]);
        let count = lengths.fold(1u64, u64::saturating_mul);
        if count > POINTS_MAX {
            self.collector.add(
                Fault::new("grid_must_fit", place.spot, "the grid has too many points")
                    .value(count)
                    .bound(POINTS_MAX),
            );
            return;
        }
        let drawn: Vec<_> = if drawn.is_empty() { vec![None] } else { drawn.into_iter().map(Some).collect() };
        study.points = drawn.into_iter().map(|drawn| Point { drawn, parameters: Vec::new() }).collect();
        for (name, values) in axes {
            study.parameters.push(name);
            let with = |point: &Point, value: &Parameter| {
                let parameters = point.parameters.iter().chain([value]).cloned().collect();
                Point { parameters, ..point.clone() }
            };
            let points =
                study.points.iter().flat_map(|point| values.iter().map(move |value| with(point, value)));
            study.points = points.collect();
        }
    }

    /// A list of tables: `[[NAME]]`.
    fn tables<'v>(&mut self, what: &str, value: &'v Value) -> &'v [Value] {
        match &value.kind {
            Kind::List(list) => list,
            _ => {
                let fault = wrong_kind(&format!("`{what}`"), value, "a list of tables");
                self.collector.add(fault.hint(format!("write [[{what}]]")));
                &[]
            }
        }
    }

    /// The value or values of a key, each once.
    fn values<T: PartialEq>(
        &mut self,
        what: &str,
        value: &Value,
        mut one: impl FnMut(&mut Self, &str, &Value) -> Option<T>,
    ) -> Option<Vec<T>> {
        let list = self.collector.one_or_more(value);
        if list.is_empty() {
            self.fault("list_must_not_be_empty", value, format!("{what} has no value"));
            return None;
        }
        let mut found: Vec<T> = Vec::new();
        for item in list {
            let new = one(self, what, item)?;
            if found.contains(&new) {
                self.fault("values_must_differ", item, format!("{what} has this value twice"));
                return None;
            }
            found.push(new);
        }
        Some(found)
    }

    /// One of some names.
    fn choice<T: Copy>(&mut self, what: &str, value: &Value, names: &[(&'static str, T)]) -> Option<T> {
        let text = self.collector.text(what, value)?;
        let found = names.iter().find(|(name, _)| *name == text);
        if found.is_none() {
            let all: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            let near = closest(text, all.iter().copied());
            let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
            let fault = Fault::new("choice_must_exist", value.spot, format!("{what} has no such value"));
            self.collector
                .add(fault.value(format!("\"{text}\"")).hint(format!("{hint}there are {}", listed(&all))));
        }
        found.map(|(_, value)| *value)
    }

    fn decimal(&mut self, what: &str, value: &Value) -> Option<Decimal> {
        let text = match &value.kind {
            Kind::Float(text) | Kind::Text(text) => text.clone(),
            Kind::Whole(Some(number)) => number.to_string(),
            _ => {
                self.collector.add(wrong_kind(what, value, "a number such as 0.8"));
                return None;
            }
        };
        let decimal = Decimal::parse(&text);
        if decimal.is_none() {
            let fault = Fault::new("number_must_be_decimal", value.spot, format!("{what} is no such number"));
            self.collector
                .add(fault.value(text).bound("0 or more, nine digits after the point, no exponent"));
        }
        decimal
    }

    /// Numbers: one, a list, or `{ from = 0.05, to = 1, step = 0.05 }`; each may be a range `"0.8..0.9"`.
    fn numbers(&mut self, what: &str, value: &Value) -> Option<Vec<(Decimal, Decimal)>> {
        let Kind::Table(table) = &value.kind else {
            return self.values(what, value, |reader, what, value| reader.range(what, value));
        };
        let steps = self.steps(what, value, table)?;
        Some(steps.into_iter().map(|number| (number, number)).collect())
    }

    fn steps(&mut self, what: &str, value: &Value, table: &Table) -> Option<Vec<Decimal>> {
        let mut fields = Fields::new(what, table);
        let keys = ["from", "to", "step"].map(|name| (name, fields.take(name)));
        fields.finish(&mut self.collector);
        let mut numbers = [Decimal(0); 3];
        for ((name, given), number) in keys.into_iter().zip(&mut numbers) {
            let Some(given) = given else {
                self.fault("steps_need_their_numbers", value, format!("{what} lacks `{name}`"));
                return None;
            };
            *number = self.decimal(&format!("`{name}` of {what}"), given)?;
        }
        let [Decimal(from), Decimal(to), Decimal(step)] = numbers;
        if step == 0 || from > to || (to - from) / step >= VALUES_MAX {
            let message = format!("{what} steps from `from` up to `to`, both included");
            let fault = Fault::new("steps_must_be_some", value.spot, message);
            let [from, to, step] = numbers;
            self.collector.add(
                fault.value(format!("{from} to {to} by {step}")).bound(format!("1 to {VALUES_MAX} values")),
            );
            return None;
        }
        Some((0..=(to - from) / step).map(|at| Decimal(from + at * step)).collect())
    }

    /// `0.8`, or `"0.8..0.9"`.
    fn range(&mut self, what: &str, value: &Value) -> Option<(Decimal, Decimal)> {
        if let Kind::Text(text) = &value.kind {
            if let Some((least, most)) = text.split_once("..") {
                let ends =
                    Decimal::parse(least).zip(Decimal::parse(most)).filter(|(least, most)| least <= most);
                if ends.is_none() {
                    let fault = Fault::new("range_must_be_one", value.spot, format!("{what} is no range"));
                    self.collector.add(fault.value(format!("\"{text}\"")).hint("for example \"0.1..0.5\""));
                }
                return ends;
            }
        }
        self.decimal(what, value).map(|number| (number, number))
    }

    /// `"5ms..50ms"`.
    fn times(&mut self, what: &str, value: &Value) -> Option<(u64, u64)> {
        let text = self.collector.text(what, value)?;
        let (shortest, longest) = text.split_once("..").unwrap_or((text, text));
        let ends = parse_time(shortest).and_then(|shortest| Ok((shortest, parse_time(longest)?)));
        match ends {
            Ok((shortest, longest)) if 0 < shortest && shortest <= longest => {
                return Some((shortest, longest))
            }
            Ok(_) => {
                let fault =
                    Fault::new("periods_are_a_range", value.spot, format!("{what} is no range of times"));
                self.collector.add(fault.value(format!("\"{text}\"")).bound("0 < shortest <= longest"));
            }
            Err(error) => {
                let fault = Fault::new(error.rule(), value.spot, format!("{what}: {}", error.message()));
                self.collector.add(fault.value(format!("\"{text}\"")).hint("for example \"5ms..50ms\""));
            }
        }
        None
    }

    fn generate(&mut self, value: &Value) -> Option<Vec<Drawn>> {
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
        let by_paper = methods.contains(&Method::Paper);
        if by_paper && tasks.is_some() {
            let message = "`paper` draws as many tasks as it needs; leave `tasks` out";
            self.fault("tasks_are_as_many_as_needed", tasks.unwrap_or(value), message);
            return None;
        }
        if tasks.is_none() && (!by_paper || methods.len() > 1) {
            self.fault("tasks_are_some", value, "`tasks` is missing: how many a set has");
            return None;
        }
        if !by_paper && utilisations.iter().any(|(least, most)| least != most) {
            let message = "only `paper` takes ranges of `utilisation`; give numbers";
            self.fault("sum_is_one", utilisation.unwrap_or(value), message);
            return None;
        }
        let counts: Vec<_> =
            if counts.is_empty() { vec![None] } else { counts.into_iter().map(Some).collect() };
        let lengths =
            [methods.len(), cpus.len(), counts.len(), periods.len(), shares.len(), utilisations.len()];
        let points = lengths.iter().fold(1u64, |points, length| points.saturating_mul(*length as u64));
        if points > POINTS_MAX {
            let fault = Fault::new("grid_must_fit", value.spot, "the grid has too many points");
            self.collector.add(fault.value(points).bound(POINTS_MAX));
            return None;
        }
        let mut drawn = vec![];
        for &method in &methods {
            for &cpus in &cpus {
                for &tasks in &counts {
                    for &periods_ns in &periods {
                        for &shares in &shares {
                            for &utilisation in &utilisations {
                                drawn.push(Drawn { method, cpus, tasks, utilisation, shares, periods_ns });
                            }
                        }
                    }
                }
            }
        }
        self.can_be_drawn(value, &drawn).then_some(drawn)
    }

    /// A set is drawn at each point: what none can have is refused before any work is done.
    fn can_be_drawn(&mut self, value: &Value, all: &[Drawn]) -> bool {
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

    fn parameters(&mut self, value: &Value) -> Option<Vec<(String, Vec<Parameter>)>> {
        let table = self.collector.table("`parameters`", value)?;
        let mut axes = Vec::new();
        for (key, value) in &table.entries {
            let what = format!("`{}`", key.text);
            let is_name = key.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !is_name || reserved().any(|name| name == key.text) {
                let message = format!("{what} cannot be the name of a parameter");
                let taken: Vec<_> = reserved().collect();
                let fault = Fault::new("parameter_needs_a_name", key.spot, message);
                self.collector.add(
                    fault
                        .bound("letters, digits and _; not a column of its own")
                        .hint(format!("taken are {}", listed(&taken))),
                );
                continue;
            }
            let one = |reader: &mut Self, what: &str, value: &Value| match &value.kind {
                Kind::Text(text) => Some(Parameter::Text(text.clone())),
                _ => reader.decimal(what, value).map(Parameter::Number),
            };
            let values = match &value.kind {
                Kind::Table(table) => {
                    self.steps(&what, value, table)?.into_iter().map(Parameter::Number).collect()
                }
                _ => self.values(&what, value, one)?,
            };
            axes.push((key.text.clone(), values));
        }
        Some(axes)
    }

    fn add_test(&mut self, place: &Value, name: String, kind: TestKind, tests: &mut Vec<Test>) {
        if tests.iter().any(|test| test.name == name) {
            let message = format!("a second test `{name}`");
            let fault = Fault::new("name_is_unique", place.spot, message);
            self.collector.add(fault.hint("give one of them another `name`"));
        } else {
            tests.push(Test { name, kind });
        }
    }

    fn analyse(&mut self, value: &Value, cpus: &[u32], tests: &mut Vec<Test>) -> Option<()> {
        let table = self.collector.table("`analyse`", value)?;
        let mut fields = Fields::new("`analyse`", table);
        let name = fields.text("name", &mut self.collector).map(str::to_string);
        let policy = fields.take("policy");
        let (supply, partition, preemption) =
            (fields.take("supply"), fields.take("partition"), fields.take("preemption"));
        let quantum = fields.key("quantum");
        let quantum_ns = quantum.and_then(|(_, value)| self.collector.duration("`quantum`", value));
        let responses = fields.bool("responses", &mut self.collector).unwrap_or(false);
        fields.finish(&mut self.collector);
        let Some(policy) = policy else {
            self.fault("policy_must_be_given", value, "`policy` is missing: by which the sets are scheduled");
            return None;
        };
        let named = |reader: &mut Self, what: &str, value: &Value| {
            let text = reader.collector.text(what, value)?.to_string();
            Some((text, reader.choice(what, value, &Policy::ALL)?))
        };
        let policies = self.values("`policy`", policy, named)?;
        let supplies = match supply {
            None => vec![(None, Supply::WHOLE)],
            Some(value) => {
                self.values("`supply`", value, |reader, what, value| reader.supply(what, value))?
            }
        };
        let fits: Vec<Option<&str>> = match partition {
            None => vec![None],
            Some(value) => {
                let names = FITS.map(|(name, _)| (name, name));
                let fit = |reader: &mut Self, what: &str, value: &Value| reader.choice(what, value, &names);
                self.values("`partition`", value, fit)?.into_iter().map(Some).collect()
            }
        };
        let modes: Vec<bool> = match preemption {
            None => vec![false],
            Some(value) => self.values("`preemption`", value, |reader, what, value| {
                reader.choice(what, value, &[("full", false), ("none", true)])
            })?,
        };
        let several = policies.len() * supplies.len() * fits.len() * modes.len() > 1;
        if several && name.is_some() {
            let message = "`name` is for one test; with lists each is named by its values";
            self.fault("name_is_of_one_test", value, message);
            return None;
        }
        for (policy_name, policy) in &policies {
            for (supply_name, supply) in &supplies {
                for fit in &fits {
                    for whole_jobs in &modes {
                        let mut words = policy_name.clone();
                        fit.iter().for_each(|fit| words += &format!(", partition {fit}"));
                        words += if *whole_jobs { ", not preempted" } else { "" };
                        supply_name.iter().for_each(|supply| words += &format!(", supply {supply}"));
                        let partition = fit.and_then(|fit| FITS.iter().find(|(name, _)| *name == fit));
                        let asked = Analysis {
                            policy: *policy,
                            supply: *supply,
                            partition: partition.map(|(_, fit)| *fit),
                            whole_jobs: *whole_jobs,
                            quantum_ns: quantum_ns.unwrap_or(1),
                            responses,
                        };
                        if self.can_be_asked(value, &asked, quantum.is_some(), cpus) {
                            let name = name.clone().unwrap_or(words);
                            self.add_test(value, name, TestKind::Analyse(asked), tests);
                        }
                    }
                }
            }
        }
        Some(())
    }

    /// The rules that `tierce analyse` has for its options.
    fn can_be_asked(&mut self, place: &Value, asked: &Analysis, quantum: bool, cpus: &[u32]) -> bool {
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
    fn supply(&mut self, what: &str, value: &Value) -> Option<(Option<String>, Supply)> {
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
        found.map(|supply| (Some(text.to_string()), supply))
    }

    fn simulate(
        &mut self,
        value: &Value,
        cpus: &[u32],
        axes: &[(String, Vec<Parameter>)],
        tests: &mut Vec<Test>,
    ) -> Option<()> {
        let table = self.collector.table("`simulate`", value)?;
        let mut fields = Fields::new("`simulate`", table);
        let name = fields.text("name", &mut self.collector).map(str::to_string);
        let (policy, plan) = (fields.take("policy"), fields.take("plan"));
        let under = fields.take("under");
        let for_ns = fields.duration("for", &mut self.collector);
        let has_time = for_ns.is_some() || fields.is_misspelt("for");
        fields.finish(&mut self.collector);
        if !has_time && !table.entries.iter().any(|(key, _)| key.text == "for") {
            self.fault("time_must_be_given", value, "`for` is missing: how long is simulated");
        }
        let for_ns = for_ns?;
        match (policy, plan) {
            (Some(policy), None) => {
                if cpus.is_empty() || cpus.iter().any(|cpus| *cpus > 1) {
                    let message =
                        "`policy` schedules sets of [generate] on one CPU; for others give a `plan`";
                    self.fault("policy_is_for_sets_of_one_cpu", policy, message);
                    return None;
                }
                let names = [("edf", "edf"), ("rm", "rm"), ("dm", "dm")];
                let one = |reader: &mut Self, what: &str, value: &Value| reader.choice(what, value, &names);
                let policies = self.values("`policy`", policy, one)?;
                if policies.len() > 1 && name.is_some() {
                    let message = "`name` is for one test; with lists each is named by its values";
                    self.fault("name_is_of_one_test", value, message);
                    return None;
                }
                for policy in policies {
                    let plan = if policy == "edf" { Template::Edf } else { Template::FixedPriority };
                    let kind = TestKind::Simulate(Simulation { plan, for_ns });
                    let name = name.clone().unwrap_or_else(|| format!("{policy}, simulated"));
                    self.add_test(value, name, kind, tests);
                }
            }
            (None, Some(plan)) => {
                if let Some(under) = under.filter(|_| cpus.is_empty()) {
                    self.fault("under_needs_sets", under, "a set is put below that node: [generate]");
                    return None;
                }
                let template = self.template(plan, under, axes)?;
                let file = self.collector.text("`plan`", plan)?.to_string();
                let kind = TestKind::Simulate(Simulation { plan: template, for_ns });
                self.add_test(value, name.unwrap_or(file), kind, tests);
            }
            _ => {
                let message = "a simulation has either a `policy`, for the set alone, or a `plan`";
                self.fault("policy_or_plan", value, message);
            }
        }
        Some(())
    }

    /// A plan with the first values of all parameters is read: its faults are those of the study.
    fn template(
        &mut self,
        value: &Value,
        under: Option<&Value>,
        axes: &[(String, Vec<Parameter>)],
    ) -> Option<Template> {
        let file = self.collector.text("`plan`", value)?;
        let path = Path::new(self.name).parent().unwrap_or(Path::new("")).join(file);
        let name = path.display().to_string();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                self.fault("file_must_be_readable", value, format!("cannot read {name}: {error}"));
                return None;
            }
        };
        let first = axes.iter().fold(text.clone(), |text, (parameter, values)| {
            text.replace(&format!("${{{parameter}}}"), &values[0].to_string())
        });
        let plan = match Plan::parse(&first, &name) {
            Ok(plan) => plan,
            Err(faults) => {
                let fault = Fault::new("plan_must_be_right", value.spot, format!("{name} has faults"));
                self.collector.add(fault.hint(faults.to_string()));
                return None;
            }
        };
        let under = match under {
            None => None,
            Some(value) => {
                let node = self.collector.text("`under`", value)?;
                let Some(found) = plan.nodes.iter().find(|found| found.name == node) else {
                    let names: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
                    let fault =
                        Fault::new("node_must_exist", value.spot, format!("{name} has no node `{node}`"));
                    self.collector.add(fault.hint(format!("it has {}", listed(&names))));
                    return None;
                };
                Some(Under {
                    node: node.to_string(),
                    by_priority: tierce_policy::policies()
                        .iter()
                        .any(|policy| policy.number == found.policy && policy.name == "fixed-priority"),
                })
            }
        };
        Some(Template::Text { text, name, under })
    }

    fn figure(&mut self, value: &Value, study: &mut Study) -> Option<()> {
        let table = self.collector.table("`figure`", value)?;
        let mut fields = Fields::new("`figure`", table);
        let file = fields.take("file");
        let [title, x_label, y_label] = ["title", "x_label", "y_label"]
            .map(|name| fields.text(name, &mut self.collector).map(str::to_string));
        let [x, y, line] = ["x", "y", "line"].map(|name| fields.take(name));
        let quantile = fields.take("quantile");
        let only = fields.take("where");
        fields.finish(&mut self.collector);
        let file = self.file_name(value, file);
        let all: Vec<String> = columns(study).into_iter().map(String::from).collect();
        let names: Vec<_> = all.iter().map(String::as_str).collect();
        let x_place = x.unwrap_or(value);
        let x = self.column("`x`", value, x, &names, "utilisation");
        let line = self.column("`line`", value, line, &names, "test");
        if x.as_ref().is_some_and(|x| !is_number(study, x)) {
            self.fault("x_is_a_number", x_place, "`x` is a column of numbers");
        }
        let measures = [("schedulable", Measure::Schedulable), ("ratio", Measure::Mean)];
        let y = y.map_or(Some(Measure::Schedulable), |value| self.choice("`y`", value, &measures));
        let part = match quantile {
            None => None,
            Some(value) => {
                let part = self.decimal("`quantile`", value)?;
                if y == Some(Measure::Schedulable) || !(1..=1_000_000_000).contains(&part.0) {
                    let message = "`quantile` is a part of the values of `y = \"ratio\"`";
                    let fault = Fault::new("quantile_is_a_part", value.spot, message);
                    self.collector.add(fault.value(part).bound("above 0, at most 1"));
                    return None;
                }
                Some(part)
            }
        };
        let only = only.map_or(Some(Vec::new()), |value| self.only(value, &names));
        let (file, x, line, y, only) = (file?, x?, line?, y?, only?);
        if study.figures.iter().any(|figure| figure.file == file) {
            self.fault("name_is_unique", value, format!("a second figure `{file}`"));
        }
        let label = match (y, part) {
            (Measure::Schedulable, _) => "schedulable sets".to_string(),
            (_, None) => "mean of longest response / deadline".to_string(),
            (_, Some(part)) => format!("{part} quantile of longest response / deadline"),
        };
        study.figures.push(Figure {
            file,
            title,
            x_label: x_label.unwrap_or_else(|| x.replace('_', " ")),
            x,
            y: part.map_or(y, |part| Measure::Quantile(part.to_f64())),
            y_label: y_label.unwrap_or(label),
            line,
            only,
        });
        Some(())
    }

    /// `NAME` of `NAME.svg`.
    fn file_name(&mut self, place: &Value, value: Option<&Value>) -> Option<String> {
        let Some(value) = value else {
            self.fault("file_must_be_given", place, "`file` is missing: \"NAME.svg\"");
            return None;
        };
        let text = self.collector.text("`file`", value)?;
        let name = text.strip_suffix(".svg").filter(|name| !name.is_empty() && !name.contains(['/', '\\']));
        if name.is_none() {
            let fault =
                Fault::new("figure_is_svg", value.spot, "`file` is a name that ends in .svg, in the folder");
            self.collector.add(fault.value(format!("\"{text}\"")));
        }
        name.map(String::from)
    }

    /// One of the columns.
    fn column(
        &mut self,
        what: &str,
        place: &Value,
        value: Option<&Value>,
        names: &[&str],
        preset: &str,
    ) -> Option<String> {
        let text = value.map_or(Some(preset), |value| self.collector.text(what, value))?;
        let value = value.unwrap_or(place);
        if names.contains(&text) {
            return Some(text.to_string());
        }
        let near = closest(text, names.iter().copied());
        let hint = near.map_or(String::new(), |near| format!("did you mean `{near}`? "));
        let fault = Fault::new("column_must_exist", value.spot, format!("{what} is no column"));
        self.collector
            .add(fault.value(format!("\"{text}\"")).hint(format!("{hint}there are {}", listed(names))));
        None
    }

    /// `{ COLUMN = VALUE or [VALUE, …] }`.
    fn only(&mut self, value: &Value, names: &[&str]) -> Option<Vec<(String, Vec<String>)>> {
        let table = self.collector.table("`where`", value)?;
        let mut only = Vec::new();
        for (key, value) in &table.entries {
            let column = Value { spot: key.spot, kind: Kind::Text(key.text.clone()) };
            let column = self.column("this", &column, Some(&column), names, "")?;
            let one = |reader: &mut Self, what: &str, value: &Value| match &value.kind {
                Kind::Text(text) => Some(text.clone()),
                Kind::Bool(yes) => Some(yes.to_string()),
                _ => reader.decimal(what, value).map(|number| number.to_string()),
            };
            only.push((column, self.values(&format!("`{}`", key.text), value, one)?));
        }
        Some(only)
    }
}
