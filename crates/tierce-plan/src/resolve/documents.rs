//! From files to documents: a plan's text and what it includes.

use crate::any_cpu::{Placer, Standing};
use crate::faults::{Fault, Faults};
use crate::model::Plan;
use crate::resolve::Resolver;
use crate::source::{Source, Sources, Spot};
use crate::tree::{parse, Collector, Table, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Files a plan may include, itself not counted.
const INCLUDES_MAX: usize = 64;
/// Bytes of one file.
const FILE_MAX: u64 = 64 << 20;

/// What a plan does not say itself.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// CPUs of the machine. Where the plan says how many it speaks of (`[machine] cpus`), there are at least those.
    pub cpus: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpus: 1 }
    }
}

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

/// Where texts come from.
#[derive(Clone, Default)]
pub enum Files {
    /// The file system.
    #[default]
    Disk,
    /// Somebody has read them; there are no others.
    Given(Rc<HashMap<PathBuf, String>>),
}

impl Files {
    /// All of a text.
    pub fn read(&self, path: &Path) -> Result<String, String> {
        match self {
            Files::Disk => read_text(path).map_err(|error| error.why),
            Files::Given(texts) => {
                texts.get(path).cloned().ok_or_else(|| format!("{} was not sent along", path.display()))
            }
        }
    }
}

/// Resolve `text`; `name` is its path for messages and for files it names.
pub fn from_text(text: &str, name: &str, options: Options, placer: Placer) -> Result<Plan, Faults> {
    let mut reader = Reader::default();
    reader.document(name.to_string(), text.to_string());
    reader.resolve(options, &Standing::default(), placer)
}

/// A file that is no text.
struct Unreadable {
    why: String,
    /// What could be read.
    before: String,
}

/// All of a file, if it is one of a sane size.
fn read_text(path: &Path) -> Result<String, Unreadable> {
    use std::io::Read;
    let cannot = |why: &dyn std::fmt::Display, before: String| {
        let why = format!("cannot read {}: {why}", path.display());
        Unreadable { why, before }
    };
    let fails = |error: std::io::Error| cannot(&error, String::new());
    let file = std::fs::File::open(path).map_err(fails)?;
    if !file.metadata().map_err(fails)?.is_file() {
        return Err(cannot(&"not a regular file", String::new()));
    }
    let mut bytes = Vec::new();
    file.take(FILE_MAX + 1).read_to_end(&mut bytes).map_err(fails)?;
    if bytes.len() as u64 > FILE_MAX {
        return Err(cannot(&format!("larger than {} MiB", FILE_MAX >> 20), String::new()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let before = String::from_utf8_lossy(before).into_owned();
        let line = before.matches('\n').count() + 1;
        cannot(&format!("line {line} is not UTF-8"), before)
    })
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

/// `name` as the source with that index means it.
pub fn relative(sources: &Sources, from: u32, name: &str) -> PathBuf {
    let base = sources.0.get(from as usize).map(|source| Path::new(&source.name));
    base.and_then(Path::parent).unwrap_or(Path::new("")).join(name)
}
