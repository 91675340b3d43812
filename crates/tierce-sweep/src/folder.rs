//! Where results are kept: `rows/chunk-000000.parquet` and so on, which are there as a whole or not at all, and the study beside them.

use crate::rows::{decode, encode, origin, Row};
use crate::seeds::identity;
use crate::study::Study;
use bytes::Bytes;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{rule}: {message}")]
pub struct Refused {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// In plain words.
    pub message: String,
}

/// The results of one study.
pub struct Folder {
    rows: PathBuf,
    identity: String,
}

impl Folder {
    /// Make or find it; `text` is the study's, kept beside its results.
    pub fn open(path: &Path, study: &Study, text: &str) -> Result<Self, Refused> {
        let folder = Self { rows: path.join("rows"), identity: identity(study) };
        fs::create_dir_all(&folder.rows).map_err(|error| unusable(&folder.rows, &error))?;
        // First: a folder of another study keeps its text.
        folder.refuse_others()?;
        let kept = path.join("study.toml");
        if fs::read_to_string(&kept).ok().as_deref() != Some(text) {
            write(&kept, text)?;
        }
        Ok(folder)
    }

    fn refuse_others(&self) -> Result<(), Refused> {
        let entries = fs::read_dir(&self.rows).map_err(|error| unusable(&self.rows, &error))?;
        for entry in entries.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            let found = File::open(&path).ok().and_then(|file| origin(file).ok());
            let Some((other, _)) = found.filter(|(other, _)| *other != self.identity) else { continue };
            let shown = |identity: &str| identity.get(..16).map_or("none".into(), str::to_string);
            return Err(Refused {
                rule: "folder_is_of_one_study",
                message: format!(
                    "{}: these rows are of study {}, this one is {}: another grid, seed, test or version; take another folder",
                    path.display(),
                    shown(&other),
                    shown(&self.identity)
                ),
            });
        }
        Ok(())
    }

    /// The study's, as 64 hexadecimal digits.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// A file of rows.
    pub fn path(&self, chunk: u64) -> PathBuf {
        self.rows.join(format!("chunk-{chunk:06}.parquet"))
    }

    /// Whether a chunk is there, with all of its rows. One that cannot be read is not.
    pub fn has(&self, study: &Study, chunk: u64) -> bool {
        let found = File::open(self.path(chunk)).ok().and_then(|file| origin(file).ok());
        found.is_some_and(|found| self.is_whole(study, chunk, &found))
    }

    fn is_whole(&self, study: &Study, chunk: u64, (origin, rows): &(String, u64)) -> bool {
        *origin == self.identity && *rows == study.rows_of(chunk)
    }

    /// Keep the rows of a chunk.
    pub fn keep(&self, study: &Study, chunk: u64, rows: &[Row]) -> Result<(), Refused> {
        let path = self.path(chunk);
        let bytes = encode(study, &self.identity, rows).map_err(|error| unusable(&path, &error))?;
        write_whole(&path, &bytes)
    }

    /// Keep a chunk that was done elsewhere: the bytes of its file.
    pub fn keep_file(&self, study: &Study, chunk: u64, bytes: &[u8]) -> Result<(), Refused> {
        let file = Bytes::copy_from_slice(bytes);
        let first = decode(study, file.clone()).ok().and_then(|rows| Some(rows.first()?.job(study)));
        let found = origin(file).ok().filter(|_| first == Some(study.jobs_of(chunk).start));
        if !found.is_some_and(|found| self.is_whole(study, chunk, &found)) {
            let message =
                format!("what was done elsewhere is not chunk {chunk} of this study: another version?");
            return Err(Refused { rule: "chunk_is_of_this_study", message });
        }
        self.tidy(chunk);
        write_whole(&self.path(chunk), bytes)
    }

    /// The rows of a chunk that is there.
    pub fn rows(&self, study: &Study, chunk: u64) -> Result<Vec<Row>, Refused> {
        let path = self.path(chunk);
        let file = File::open(&path).map_err(|error| unusable(&path, &error))?;
        decode(study, file).map_err(|error| unusable(&path, &error))
    }

    /// Remove what a killed run has left of a chunk that it had begun to write.
    pub fn tidy(&self, chunk: u64) {
        let begin = format!(".chunk-{chunk:06}.parquet.");
        for entry in fs::read_dir(&self.rows).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(&begin) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

fn unusable(path: &Path, why: &dyn std::fmt::Display) -> Refused {
    Refused { rule: "folder_must_be_usable", message: format!("{}: {why}", path.display()) }
}

/// What the next run writes again if this one is killed in between.
pub fn write(path: &Path, text: &str) -> Result<(), Refused> {
    fs::write(path, text).map_err(|error| unusable(path, &error))
}

/// As a whole or not at all, whenever this process or the machine ends.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), Refused> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(|error: std::io::Error| unusable(path, &error))
}
