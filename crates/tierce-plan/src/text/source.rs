//! Texts a plan was read from, and places in them.

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
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
    /// It has carriage returns.
    returns: bool,
}

impl Source {
    /// A text and its path.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let text = text.into();
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = [0].into_iter().chain(ends.map(|(at, _)| at + 1)).collect();
        let returns = text.contains('\r');
        Self { name: name.into(), text, lines, returns }
    }
}

impl SourceCode for Source {
    /// As of the whole text, but only the lines around it are looked at: a plan may be long, and have many faults.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let line = self.lines.partition_point(|first| *first <= span.offset());
        // Where carriage returns end lines, too, numbers of lines are not those here.
        let skipped = if self.returns { 0 } else { line.saturating_sub(before + 2) };
        let begin = self.lines[skipped];
        let near = SourceSpan::new((span.offset() - begin).into(), span.len());
        let found = self.text[begin..].read_span(&near, before, after)?;
        let shown = SourceSpan::new((found.span().offset() + begin).into(), found.span().len());
        let (line, lines) = (found.line() + skipped, found.line_count() + skipped);
        let name = self.name.clone();
        Ok(Box::new(MietteSpanContents::new_named(name, found.data(), shown, line, found.column(), lines)))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_is_that_of_the_whole_text() {
        for text in ["", "a", "\n", "one\n\n\ntwo µ\nthree\nfour\n\nfive", "a\r\n\nb\rc\r\nd\n\n\r\n\ne\nf\n"]
        {
            let (source, whole) = (Source::new("plan", text), miette::NamedSource::new("plan", text));
            for (start, len) in
                (0..=text.len()).flat_map(|start| (0..=text.len() - start).map(move |len| (start, len)))
            {
                for (before, after) in (0..4).flat_map(|before| (0..4).map(move |after| (before, after))) {
                    let span = SourceSpan::new(start.into(), len);
                    let seen = |source: &dyn SourceCode| {
                        let found = source.read_span(&span, before, after).ok()?;
                        let place = (found.line(), found.column(), found.line_count());
                        Some((found.data().to_vec(), *found.span(), place, found.name().map(str::to_string)))
                    };
                    assert_eq!(seen(&source), seen(&whole), "{text:?} {span:?} {before} {after}");
                }
            }
        }
    }
}
