//! Texts a plan was read from, and places in them.

use std::sync::Arc;

/// A piece of one of the texts: what a message points at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Index of the text in [`Sources`].
    pub source: u32,
    /// First byte.
    pub start: u32,
    /// Bytes.
    pub len: u32,
}

/// One text.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Path as the user would write it.
    pub name: String,
    /// All of it.
    pub text: String,
    /// First byte of each line.
    lines: Vec<usize>,
}

impl Source {
    /// A text and its path.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        Self { name: name.into(), text, lines }
    }
}

/// A place a person can go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the file.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// The texts of a plan: itself first, then what it names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources(pub Vec<Arc<Source>>);

impl Sources {
    /// File, line and column of a spot.
    pub fn place(&self, spot: Spot) -> Place {
        let Some(source) = self.0.get(spot.source as usize) else {
            return Place { file: "?".into(), line: 1, column: 1 };
        };
        let mut start = (spot.start as usize).min(source.text.len());
        while !source.text.is_char_boundary(start) {
            start -= 1;
        }
        let line = source.lines.partition_point(|first| *first <= start);
        let before = &source.text[source.lines[line - 1]..start];
        Place { file: source.name.clone(), line, column: before.chars().count() + 1 }
    }
}
