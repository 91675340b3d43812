//! From the text of a study to a [`Study`], or to all of its faults.

mod analyse;
mod figure;
mod generate;
mod simulate;
mod values;

use crate::rows::reserved;
use crate::study::{Drawn, Parameter, Point, Study};
use std::sync::Arc;
use tierce_plan::reading::{listed, parse, Collector, Fields, Kind, Table, Value};
use tierce_plan::{Fault, Faults, Source, Sources};
use values::{Reader, POINTS_MAX};

/// Sets at a point, and of a chunk.
const SETS_MAX: i64 = 1_000_000_000;
/// Sets in a file, unless it is said; simulations take longer, and what is not in a file is lost with a kill.
const CHUNK: u32 = 500;
const CHUNK_SIMULATED: u32 = 20;

/// A study of its text; `name` is its path, for messages and for the plans that it names.
pub fn read(text: &str, name: &str) -> Result<Study, Faults> {
    read_with(text, name, &[])
}

/// The same from what another process has read: `files` are its [`Study::files`]. No file is read, unless none is given.
pub fn read_with(text: &str, name: &str, files: &[Arc<Source>]) -> Result<Study, Faults> {
    let sources = Sources(vec![Arc::new(Source::new(name, text))]);
    let table = parse(text, 0).map_err(|faults| Faults::new(faults, sources.clone()))?;
    let mut reader = Reader { collector: Collector::default(), name, given: files, files: Vec::new() };
    let study = reader.study(&table);
    match study.filter(|_| reader.collector.faults.is_empty()) {
        Some(study) => Ok(study),
        None => Err(Faults::new(reader.collector.faults, sources)),
    }
}

impl Reader<'_> {
    pub fn study(&mut self, table: &Table) -> Option<Study> {
        let mut fields = Fields::new("the study", table);
        let mut study = Study {
            seed: 1,
            sets: 1,
            chunk: 0,
            parameters: Vec::new(),
            points: Vec::new(),
            tests: Vec::new(),
            figures: Vec::new(),
            files: Vec::new(),
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
        study.files = std::mem::take(&mut self.files);
        Some(study)
    }

    /// All combinations.
    pub fn grid(
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

    pub fn parameters(&mut self, value: &Value) -> Option<Vec<(String, Vec<Parameter>)>> {
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
}
