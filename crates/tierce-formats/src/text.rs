//! The text of a file of another tool: its words with their places, and what is wrong with them.

use crate::decimal::{Decimal, Round};
use std::ops::Range;
use std::sync::Arc;
use tierce_plan::{Fault, Faults, Source, Sources, Spot};

/// A larger file is refused: the largest public examples have some hundred KB.
const BYTES_MAX: usize = 16 << 20;

/// A piece of the text, and where it stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Without quotes and references.
    pub text: String,
    /// In bytes.
    pub at: Range<usize>,
}

/// What of a file a plan does not have, or of a plan a file does not.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LeftOut {
    /// Line of the text that was read.
    pub line: usize,
    /// What.
    pub what: String,
    /// Why, and what is there instead.
    pub why: String,
}

/// What is wrong with a file.
pub struct Refusal(Box<Fault>);

impl Refusal {
    /// With the value that is wrong.
    pub fn value(self, value: impl ToString) -> Self {
        Self(Box::new(self.0.value(value)))
    }

    /// With what is allowed.
    pub fn bound(self, bound: impl ToString) -> Self {
        Self(Box::new(self.0.bound(bound)))
    }

    /// With what would help.
    pub fn hint(self, hint: impl ToString) -> Self {
        Self(Box::new(self.0.hint(hint)))
    }
}

/// A whole file.
pub struct Text {
    sources: Sources,
    /// Where lines end: files may be one long line, of which a place counts the letters.
    ends: Vec<usize>,
}

impl Text {
    /// `name` is its path for messages.
    pub fn new(name: &str, text: &str) -> Result<Self, Faults> {
        // A file that is refused for its size is not kept.
        let size = text.len();
        let kept = if size > BYTES_MAX { "" } else { text };
        let ends = kept.match_indices('\n').map(|(at, _)| at).collect();
        let text = Self { sources: Sources(vec![Arc::new(Source::new(name, kept))]), ends };
        if size > BYTES_MAX {
            let fault = text.fault("file_must_not_be_larger", 0..0, "the file is too large");
            return Err(text.faults(fault.value(size).bound(format!("{BYTES_MAX} bytes"))));
        }
        Ok(text)
    }

    /// All of it.
    pub fn all(&self) -> &str {
        &self.sources.0[0].text
    }

    /// As the user would write it.
    pub fn name(&self) -> &str {
        &self.sources.0[0].name
    }

    /// Line of a byte, from 1.
    pub fn line(&self, at: &Range<usize>) -> usize {
        self.ends.partition_point(|end| *end < at.start) + 1
    }

    /// Something wrong with that part.
    pub fn fault(&self, rule: &'static str, at: Range<usize>, message: impl Into<String>) -> Refusal {
        Refusal(Box::new(Fault::new(rule, spot(&at), message)))
    }

    /// With the text, for messages.
    pub fn faults(&self, refusal: Refusal) -> Faults {
        Faults::new(vec![*refusal.0], self.sources.clone())
    }

    /// Something that the plan does not have.
    pub fn left_out(&self, at: &Range<usize>, what: impl Into<String>, why: impl Into<String>) -> LeftOut {
        LeftOut { line: self.line(at), what: what.into(), why: why.into() }
    }

    /// A number of 0 or more.
    pub fn number(&self, word: &Word) -> Result<Decimal, Refusal> {
        Decimal::parse(&word.text).ok_or_else(|| {
            let message = "this is no decimal number of 0 or more, or it has more than 24 digits";
            self.fault("number_must_be_decimal", word.at.clone(), message).value(short(&word.text))
        })
    }

    /// A number of `units`, as a whole number: ns, or cycles.
    pub fn amount(&self, word: &Word, unit: Decimal, round: Round) -> Result<u64, Refusal> {
        let amount = self.number(word)?.times(unit).and_then(|amount| amount.whole(round));
        amount.ok_or_else(|| {
            self.fault("time_must_fit", word.at.clone(), "a time this long cannot be represented")
                .value(short(&word.text))
        })
    }

    /// The same, and not 0.
    pub fn some(&self, word: &Word, unit: Decimal, round: Round) -> Result<u64, Refusal> {
        match self.amount(word, unit, round)? {
            0 => Err(self
                .fault("time_must_not_be_zero", word.at.clone(), "this time must not be zero")
                .value(short(&word.text))),
            ns => Ok(ns),
        }
    }

    /// A whole number of 0 or more.
    pub fn whole(&self, word: &Word) -> Result<u64, Refusal> {
        // SimSo's own files have whole numbers with a fraction of zero.
        let number = self.number(word)?;
        number.whole(Round::Down).filter(|whole| number.whole(Round::Up) == Some(*whole)).ok_or_else(|| {
            self.fault("number_must_be_whole", word.at.clone(), "this is no whole number")
                .value(short(&word.text))
        })
    }
}

fn spot(at: &Range<usize>) -> Spot {
    let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
    Spot { source: 0, start: number(at.start), len: number(at.len()) }
}

/// A value as messages show it.
pub fn short(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_string(),
    }
}
