//! XML: elements and attributes with their places.

use crate::text::{short, Refusal, Text, Word};
use roxmltree::{Document, Node, ParsingOptions};

/// Elements and texts that a file may have.
const NODES_MAX: u32 = 1_000_000;
/// How deep elements may be within others. The parser calls itself for each level.
const DEPTH_MAX: usize = 64;
/// Attributes of one element.
const ATTRIBUTES_MAX: usize = 256;

/// An element.
#[derive(Clone, Copy)]
pub struct Element<'a> {
    node: Node<'a, 'a>,
    text: &'a Text,
}

/// The tree of a text.
pub fn parse(text: &Text) -> Result<Document<'_>, Refusal> {
    if let Some(at) = too_much(text.all()) {
        let message = "an element is too far within others, or has too many attributes";
        let fault = text.fault("elements_must_be_few", at..at, message);
        return Err(fault.bound(format!("{DEPTH_MAX} levels, {ATTRIBUTES_MAX} attributes")));
    }
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    Document::parse_with_options(text.all(), options).map_err(|error| {
        let place = error.pos();
        let lines = text.all().split_inclusive('\n');
        let begin: usize = lines.take((place.row as usize).saturating_sub(1)).map(str::len).sum();
        let line = text.all().get(begin..).unwrap_or("");
        let column =
            line.char_indices().nth((place.col as usize).saturating_sub(1)).map_or(line.len(), |(at, _)| at);
        let at = begin + column;
        // The parser says the place once more.
        let words = error.to_string();
        let words = words.rsplit_once(" at ").map_or(&words[..], |(words, _)| words);
        let hint = "the file is no well-formed XML: mend it there, or export it anew";
        text.fault("xml_syntax", at..at, short(words)).hint(hint)
    })
}

/// Where elements are too deep, or one has too many attributes: the parser compares each of these with all others.
fn too_much(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0usize);
    while let Some(next) = text.get(at..).and_then(|rest| rest.find('<')) {
        let begin = at + next;
        let behind =
            |end: &str| text[begin..].find(end).map_or(text.len(), |found| begin + found + end.len());
        let other = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">"), ("</", ">")];
        if let Some((opens, ends)) = other.iter().find(|(opens, _)| text[begin..].starts_with(opens)) {
            depth = depth.saturating_sub(usize::from(*opens == "</"));
            at = behind(ends);
            continue;
        }
        let (mut quote, mut attributes) = (None, 0);
        at = begin + 1;
        while at < bytes.len() && (quote.is_some() || bytes[at] != b'>') {
            match (bytes[at], quote) {
                (b'"' | b'\'', None) => quote = Some(bytes[at]),
                (byte, Some(open)) if byte == open => quote = None,
                (b'=', None) => attributes += 1,
                _ => {}
            }
            at += 1;
        }
        depth += usize::from(bytes[at - 1] != b'/');
        if depth > DEPTH_MAX || attributes > ATTRIBUTES_MAX {
            return Some(begin);
        }
    }
    None
}

impl<'a> Element<'a> {
    /// The element around all others.
    pub fn root(document: &'a Document<'a>, text: &'a Text) -> Self {
        Self { node: document.root_element(), text }
    }

    /// Without the prefix of its namespace.
    pub fn name(self) -> &'a str {
        self.node.tag_name().name()
    }

    /// The element itself: its name, and where it begins.
    pub fn word(self) -> Word {
        let start = self.node.range().start;
        let end = self.text.all()[start..].find(['>', '\n']).map_or(self.text.all().len(), |end| start + end);
        Word { text: self.name().to_string(), at: start..end }
    }

    /// An attribute.
    pub fn get(self, key: &str) -> Option<Word> {
        let attribute = self.node.attributes().find(|attribute| attribute.name() == key)?;
        Some(Word { text: attribute.value().to_string(), at: attribute.range_value() })
    }

    /// An attribute that must be there.
    pub fn need(self, key: &str) -> Result<Word, Refusal> {
        self.get(key).ok_or_else(|| {
            let message = format!("`{}` has no attribute `{key}`", short(self.name()));
            self.text.fault("attribute_must_be_given", self.word().at, message)
        })
    }

    /// All attributes: names and values.
    pub fn attributes(self) -> impl Iterator<Item = (Word, Word)> + 'a {
        self.node.attributes().map(|attribute| {
            let key = Word { text: attribute.name().to_string(), at: attribute.range_qname() };
            (key, Word { text: attribute.value().to_string(), at: attribute.range_value() })
        })
    }

    /// Elements directly within.
    pub fn children(self) -> impl Iterator<Item = Element<'a>> {
        self.node.children().filter(Node::is_element).map(move |node| Element { node, text: self.text })
    }

    /// Of these those with a name.
    pub fn named(self, name: &'a str) -> impl Iterator<Item = Element<'a>> {
        self.children().filter(move |child| child.name() == name)
    }

    /// The first of these, which must be there.
    pub fn child(self, name: &'a str) -> Result<Element<'a>, Refusal> {
        self.named(name).next().ok_or_else(|| {
            let message = format!("`{}` has no element `{name}`", short(self.name()));
            self.text.fault("element_must_be_given", self.word().at, message)
        })
    }

    /// The text within.
    pub fn content(self) -> Word {
        Word { text: self.node.text().unwrap_or("").to_string(), at: self.word().at }
    }
}

/// Names divided by blanks; each has the place of all.
pub fn words(all: &Word) -> Vec<Word> {
    all.text.split_whitespace().map(|word| Word { text: word.to_string(), at: all.at.clone() }).collect()
}

/// A text as the value of an attribute.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            _ => safe.push(letter),
        }
    }
    safe
}
