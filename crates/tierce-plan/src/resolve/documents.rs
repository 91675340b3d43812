//! From files to documents: a plan's text and what it includes.

use crate::model::any_cpu::{Placer, Standing};
use crate::model::{Options, Plan};
use crate::resolve::Resolver;
use crate::text::faults::{Fault, Faults};
use crate::text::files::{read_text, relative, Files, Unreadable};
use crate::text::source::{Source, Sources, Spot};
use crate::text::tree::{parse, Collector, Table, Value};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Files a plan may include, itself not counted.
const INCLUDES_MAX: usize = 64;
/// Read and resolve the plan at `path`.
pub fn load(path: &Path, options: Options, placer: Placer) -> Result<Plan, Faults> {
    let mut reader = Reader::default();
    let name = path.display().to_string();
    match read_text(path) {
        Ok(text) => reader.document(name, text),
        Err(Unreadable { why, before }) => {
            let spot = Spot { source: 0, start: before.len() as u32, len: 0 };
            reader.sources.0.push(Arc::new(Source::new(name, before)));
            reader.collector.add(Fault::new("file_must_be_readable", spot, why));
            reader.incomplete = true;
        }
    }
    reader.resolve(options, &Standing::default(), placer)
}

/// Resolve texts that were read before: the plan itself first, then those that it names. `standing`: what is in
/// force.
pub fn from_sources(
    given: &Sources,
    options: Options,
    standing: &Standing,
    placer: Placer,
) -> Result<Plan, Faults> {
    let texts = given.0.iter().map(|source| (PathBuf::from(&source.name), source.text.clone()));
    let mut reader = Reader { files: Files::Given(Rc::new(texts.collect())), ..Default::default() };
    if let Some(first) = given.0.first() {
        reader.document(first.name.clone(), first.text.clone());
    }
    reader.resolve(options, standing, placer)
}

/// Resolve `text`; `name` is its path for messages and for files it names.
pub fn from_text(text: &str, name: &str, options: Options, placer: Placer) -> Result<Plan, Faults> {
    let mut reader = Reader::default();
    reader.document(name.to_string(), text.to_string());
    reader.resolve(options, &Standing::default(), placer)
}

/// The documents, in the order in which they count: what a file includes comes before it.
#[derive(Default)]
struct Reader {
    files: Files,
    sources: Sources,
    collector: Collector,
    documents: Vec<Table>,
    included: Vec<PathBuf>,
    /// A text is missing: what the others say about it would be faults that are none.
    incomplete: bool,
}

impl Reader {
    fn document(&mut self, name: String, text: String) {
        let source = self.sources.0.len() as u32;
        self.included.push(std::fs::canonicalize(&name).unwrap_or_else(|_| PathBuf::from(&name)));
        let table = parse(&text, source);
        self.sources.0.push(Arc::new(Source::new(name, text)));
        match table {
            Ok(table) => {
                if let Some((_, include)) = table.entries.iter().find(|(key, _)| key.text == "include") {
                    self.include(include, source);
                }
                self.documents.push(table);
            }
            Err(faults) => {
                self.collector.faults.extend(faults);
                self.incomplete = true;
            }
        }
    }

    fn include(&mut self, value: &Value, from: u32) {
        for value in self.collector.one_or_more(value) {
            let Some(name) = self.collector.text("`include`", value) else { continue };
            let path = relative(&self.sources, from, name);
            if self.included.len() > INCLUDES_MAX {
                let fault = Fault::new("includes_must_be_few", value.spot, "too many files are included");
                self.incomplete = true;
                return self.collector.add(fault.bound(INCLUDES_MAX));
            }
            let canonical = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
            if self.included.contains(&canonical) {
                let fault =
                    Fault::new("file_is_included_once", value.spot, "this file is part of the plan already");
                self.collector.add(fault.value(name));
                continue;
            }
            match self.files.read(&path) {
                Ok(text) => self.document(path.display().to_string(), text),
                Err(error) => {
                    let hint = "paths are relative to the file that names them";
                    self.collector.add(Fault::new("file_must_be_readable", value.spot, error).hint(hint));
                    self.incomplete = true;
                }
            }
        }
    }

    fn resolve(self, options: Options, standing: &Standing, placer: Placer) -> Result<Plan, Faults> {
        let Self { files, sources, collector, documents, incomplete, .. } = self;
        if incomplete {
            return Err(Faults::new(collector.faults, sources));
        }
        let (plan, faults) =
            Resolver::run(files, sources, collector, options, &documents, (standing, placer));
        if faults.is_empty() {
            Ok(plan)
        } else {
            Err(Faults::new(faults, plan.sources))
        }
    }
}
