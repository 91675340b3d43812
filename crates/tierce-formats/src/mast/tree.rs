//! What both notations of MAST have: sections of fields, which are words, lists of words, or groups of fields.

use crate::text::{short, Refusal, Text, Word};

/// `Operation (Type => Simple, …);`, `<mast_mdl:Simple_Operation …>`.
pub struct Section {
    /// In lower case, as of all names of MAST's own: `operation`.
    pub kind: String,
    pub group: Group,
}

/// Fields, in the order of the text.
#[derive(Default)]
pub struct Group {
    /// Where it begins.
    pub at: Word,
    pub fields: Vec<(Word, Value)>,
}

pub enum Value {
    Word(Word),
    List(Vec<Word>),
    Groups(Vec<Group>),
}

/// Groups of the sections of one kind.
pub fn of_kind<'s>(sections: &'s [Section], kind: &'static str) -> impl Iterator<Item = &'s Group> {
    sections.iter().filter(move |section| section.kind == kind).map(|section| &section.group)
}

impl Group {
    /// With its type, as both notations have it.
    pub fn new(at: Word, kind: &str) -> Self {
        let mut group = Self { at, fields: Vec::new() };
        group.put("type", kind);
        group
    }

    /// One more field.
    pub fn put(&mut self, key: &str, value: impl Into<String>) {
        let key = Word { text: key.into(), at: self.at.at.clone() };
        let word = Word { text: value.into(), at: self.at.at.clone() };
        self.fields.push((key, Value::Word(word)));
    }

    /// One more field of several words.
    pub fn list(&mut self, key: &str, words: Vec<String>) {
        let at = self.at.at.clone();
        let list = words.into_iter().map(|text| Word { text, at: at.clone() }).collect();
        self.fields.push((Word { text: key.into(), at }, Value::List(list)));
    }

    /// One more field of groups.
    pub fn groups(&mut self, key: &str, groups: Vec<Group>) {
        self.fields.push((Word { text: key.into(), at: self.at.at.clone() }, Value::Groups(groups)));
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.fields.iter().find(|(found, _)| found.text.eq_ignore_ascii_case(key)).map(|(_, value)| value)
    }

    /// A field that is one word.
    pub fn get(&self, key: &str) -> Option<&Word> {
        match self.value(key)? {
            Value::Word(word) => Some(word),
            // `(a)` is a list of one word.
            Value::List(words) if words.len() == 1 => words.first(),
            Value::List(_) | Value::Groups(_) => None,
        }
    }

    /// The same, which must be there.
    pub fn need(&self, key: &str, text: &Text) -> Result<&Word, Refusal> {
        self.get(key).ok_or_else(|| {
            let message = format!("`{}` has no `{key}`", short(&self.at.text));
            text.fault("field_must_be_given", self.at.at.clone(), message)
        })
    }

    /// A field that is a list of words.
    pub fn words(&self, key: &str) -> &[Word] {
        match self.value(key) {
            Some(Value::List(words)) => words,
            Some(Value::Word(word)) => std::slice::from_ref(word),
            Some(Value::Groups(_)) | None => &[],
        }
    }

    /// A field that is groups, or one.
    pub fn parts(&self, key: &str) -> &[Group] {
        match self.value(key) {
            Some(Value::Groups(groups)) => groups,
            Some(Value::Word(_) | Value::List(_)) | None => &[],
        }
    }

    /// Its type, in lower case.
    pub fn kind(&self) -> String {
        self.get("type").map_or(String::new(), |word| word.text.to_ascii_lowercase())
    }
}
