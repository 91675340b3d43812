//! MAST's text: `Section (Field => value, …);`, with comments from `--` to the end of the line.

use super::tree::{Group, Section, Value};
use crate::text::{short, Refusal, Text, Word};
use std::fmt::Write as _;

/// Groups within groups.
const DEPTH_MAX: usize = 16;

struct Parser<'a> {
    text: &'a Text,
    all: &'a str,
    at: usize,
}

/// The sections of a text.
pub fn parse(text: &Text) -> Result<Vec<Section>, Refusal> {
    let all = text.all();
    // Editors of some systems begin files with a mark.
    let at = if all.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut parser = Parser { text, all, at };
    let mut sections = Vec::new();
    while parser.next().is_some() {
        let kind = parser.word("a section, for example `Operation`")?;
        parser.expect('(')?;
        let fields = parser.fields(1)?;
        parser.expect(')')?;
        parser.expect(';')?;
        sections.push(Section { kind: kind.text.to_ascii_lowercase(), group: Group { at: kind, fields } });
    }
    Ok(sections)
}

impl Parser<'_> {
    /// The next letter that means something; `at` is where it stands.
    fn next(&mut self) -> Option<char> {
        loop {
            let rest = self.all[self.at..].trim_start();
            self.at = self.all.len() - rest.len();
            if !rest.starts_with("--") {
                return rest.chars().next();
            }
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    fn expected(&mut self, wanted: &str) -> Refusal {
        let found = self.next();
        let end = self.at + found.map_or(0, char::len_utf8);
        let fault = self.text.fault("mast_syntax", self.at..end, format!("here must be {wanted}"));
        fault.value(found.map_or("the end of the file".into(), String::from))
    }

    fn takes(&mut self, letter: char) -> bool {
        let there = self.next() == Some(letter);
        self.at += if there { letter.len_utf8() } else { 0 };
        there
    }

    fn expect(&mut self, letter: char) -> Result<(), Refusal> {
        if self.takes(letter) {
            return Ok(());
        }
        Err(self.expected(&format!("`{letter}`")))
    }

    fn word(&mut self, wanted: &str) -> Result<Word, Refusal> {
        if self.takes('"') {
            let begin = self.at;
            let Some(length) = self.all[begin..].find(['"', '\n']) else {
                return Err(self.expected("a second `\"`"));
            };
            self.at = begin + length;
            let text = self.all[begin..self.at].to_string();
            self.expect('"')?;
            return Ok(Word { text, at: begin..begin + length });
        }
        let begin = match self.next() {
            Some(_) => self.at,
            None => return Err(self.expected(wanted)),
        };
        let rest = &self.all[begin..];
        let end = rest.find(|letter: char| letter.is_whitespace() || "(),;=\"".contains(letter));
        let mut length = end.unwrap_or(rest.len());
        if let Some(comment) = rest[..length].find("--") {
            length = comment;
        }
        if length == 0 {
            return Err(self.expected(wanted));
        }
        self.at += length;
        Ok(Word { text: rest[..length].to_string(), at: begin..begin + length })
    }

    /// `Field => value, …`
    fn fields(&mut self, depth: usize) -> Result<Vec<(Word, Value)>, Refusal> {
        let mut fields = Vec::new();
        loop {
            let key = self.word("a field, for example `Name => value`")?;
            fields.push((key, self.after_arrow(depth)?));
            if !self.takes(',') {
                return Ok(fields);
            }
        }
    }

    fn after_arrow(&mut self, depth: usize) -> Result<Value, Refusal> {
        self.next();
        if !self.all[self.at..].starts_with("=>") {
            return Err(self.expected("`=>`"));
        }
        self.at += 2;
        self.value(depth)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Refusal> {
        if !self.takes('(') {
            return Ok(Value::Word(self.word("a value")?));
        }
        if depth >= DEPTH_MAX {
            let fault =
                self.text.fault("elements_must_be_few", self.at..self.at, "a group is too far within others");
            return Err(fault.bound(format!("{DEPTH_MAX} levels")));
        }
        let value = match self.next() {
            Some(')') => Value::List(Vec::new()),
            Some('(') => {
                let mut groups = Vec::new();
                loop {
                    self.expect('(')?;
                    let at = Word { text: "a group".into(), at: self.at - 1..self.at };
                    groups.push(Group { at, fields: self.fields(depth + 1)? });
                    self.expect(')')?;
                    if !self.takes(',') {
                        break Value::Groups(groups);
                    }
                }
            }
            _ => self.words_or_group(depth)?,
        };
        self.expect(')')?;
        Ok(value)
    }

    /// `a, b` or `Type => a, …`
    fn words_or_group(&mut self, depth: usize) -> Result<Value, Refusal> {
        let first = self.word("a value")?;
        self.next();
        if self.all[self.at..].starts_with("=>") {
            let at = Word { text: "a group".into(), at: first.at.clone() };
            let mut fields = vec![(first, self.after_arrow(depth + 1)?)];
            if self.takes(',') {
                fields.extend(self.fields(depth + 1)?);
            }
            return Ok(Value::Groups(vec![Group { at, fields }]));
        }
        let mut words = vec![first];
        while self.takes(',') {
            words.push(self.word("a value")?);
        }
        Ok(Value::List(words))
    }
}

/// Sections as a text.
pub fn show(sections: &[Section]) -> String {
    let mut text = String::new();
    for Section { kind, group } in sections {
        let _ = write!(text, "\n{} (\n", title(kind));
        show_fields(&mut text, group, 1);
        text += ");\n";
    }
    text
}

fn show_fields(text: &mut String, group: &Group, depth: usize) {
    for (number, (key, value)) in group.fields.iter().enumerate() {
        let indent = "   ".repeat(depth);
        let _ = write!(text, "{indent}{} => ", title(&key.text));
        match value {
            Value::Word(word) => *text += &shown(key, word),
            Value::List(words) => {
                let words: Vec<_> = words.iter().map(|word| word.text.clone()).collect();
                let _ = write!(text, "({})", words.join(", "));
            }
            Value::Groups(groups) => {
                // One group stands alone, unless it is one of a list that has only one.
                let several =
                    groups.len() != 1 || key.text.ends_with('s') && !key.text.ends_with("parameters");
                let several = several && key.text != "timing_requirements";
                *text += if several { "(\n" } else { "" };
                for (number, group) in groups.iter().enumerate() {
                    let indent = "   ".repeat(depth + usize::from(several));
                    let _ = writeln!(text, "{}(", if several { &indent[..] } else { "" });
                    show_fields(text, group, depth + 1 + usize::from(several));
                    let _ = write!(text, "{indent})");
                    *text += if number + 1 < groups.len() { ",\n" } else { "" };
                }
                *text += if several { ")" } else { "" };
            }
        }
        *text += if number + 1 < group.fields.len() { ",\n" } else { "\n" };
    }
}

/// Types are written like sections; names and numbers as they are.
fn shown(key: &Word, word: &Word) -> String {
    if key.text == "type" {
        title(&word.text)
    } else {
        word.text.clone()
    }
}

/// `simple_operation` as MAST writes it: `Simple_Operation`.
pub fn title(text: &str) -> String {
    let word = |word: &str| match word {
        "edf" | "srp" | "isr" | "fp" => word.to_ascii_uppercase(),
        _ => {
            let mut letters = word.chars();
            letters
                .next()
                .map_or(String::new(), |first| first.to_ascii_uppercase().to_string() + letters.as_str())
        }
    };
    text.split('_').map(word).collect::<Vec<_>>().join("_")
}

/// A word as messages show it.
pub fn quoted(word: &Word) -> String {
    format!("`{}`", short(&word.text))
}
