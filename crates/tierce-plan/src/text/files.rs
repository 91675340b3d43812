//! Where texts come from: files, or somebody who has read them.

use crate::text::source::Sources;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Bytes of one file.
const FILE_MAX: u64 = 64 << 20;

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

/// A file that is no text.
pub struct Unreadable {
    pub why: String,
    /// What could be read.
    pub before: String,
}

/// All of a file, if it is one of a sane size.
pub fn read_text(path: &Path) -> Result<String, Unreadable> {
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

/// `name` as the source with that index means it.
pub fn relative(sources: &Sources, from: u32, name: &str) -> PathBuf {
    let base = sources.0.get(from as usize).map(|source| Path::new(&source.name));
    base.and_then(Path::parent).unwrap_or(Path::new("")).join(name)
}
