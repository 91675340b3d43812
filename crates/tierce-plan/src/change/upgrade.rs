//! Names that keys and policies have elsewhere, or had in earlier versions, replaced by those that they have now.

use crate::model::any_cpu::{Placer, Standing};
use crate::model::Options;
use crate::resolve::documents;
use crate::text::faults::Faults;
use crate::text::source::{Place, Source, Sources, Spot};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One name that was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renaming {
    /// Where it is in the text that was given.
    pub place: Place,
    /// As it is there.
    pub old: String,
    /// What stands there now.
    pub new: String,
}

/// A plan's texts with the names of now.
pub struct Upgraded {
    /// The texts: the plan itself first, then what it names, as in [`Plan::sources`](crate::Plan::sources). All but the names is as it was, comments and
    /// blanks, too.
    pub sources: Sources,
    /// What was replaced, in the order of the texts.
    pub renamings: Vec<Renaming>,
    /// What is still wrong.
    pub faults: Option<Faults>,
}

/// Replaces names in the texts of a plan that has these faults, as long as a fault says of one what it is called now (`Fault::fix`).
pub fn upgrade(faults: Faults, options: Options, placer: Placer) -> Upgraded {
    let given = faults.sources.clone();
    let mut texts: Vec<_> = given.0.iter().map(|source| Text { source, edits: BTreeMap::new() }).collect();
    let mut upgraded = Upgraded { sources: given.clone(), renamings: Vec::new(), faults: Some(faults) };
    loop {
        let mut changed = false;
        // From the end of each text, so that what is before keeps its place.
        for fault in upgraded.faults.iter().flat_map(|faults| faults.faults.iter().rev()) {
            if let (Some(fix), Some(text)) = (&fault.fix, texts.get_mut(fault.spot.source as usize)) {
                changed |= text.replace(fault.spot, fix);
            }
        }
        if !changed {
            upgraded.renamings = (0..).zip(&texts).flat_map(|(i, text)| text.renamings(&given, i)).collect();
            return upgraded;
        }
        upgraded.sources = Sources(texts.iter().map(|text| Arc::new(text.edited())).collect());
        let sources = &upgraded.sources;
        upgraded.faults = documents::from_sources(sources, options, &Standing::default(), placer).err();
    }
}

/// A text, and what is replaced in it: first byte, how many, by what.
struct Text<'s> {
    source: &'s Source,
    edits: BTreeMap<usize, (usize, String)>,
}

impl Text<'_> {
    fn edited(&self) -> Source {
        let mut text = self.source.text.clone();
        for (start, (len, new)) in self.edits.iter().rev() {
            text.replace_range(*start..start + len, new);
        }
        Source::new(self.source.name.clone(), text)
    }

    /// Replaces what is there in the edited text. What was replaced once stays.
    fn replace(&mut self, spot: Spot, new: &str) -> bool {
        let mut start = spot.start as usize;
        for (before, (old, by)) in &self.edits {
            if *before == start {
                return false;
            } else if *before < start {
                start = start + old - by.len();
            }
        }
        self.edits.insert(start, (spot.len as usize, new.into())).is_none()
    }

    fn renamings<'t>(&'t self, given: &'t Sources, source: u32) -> impl Iterator<Item = Renaming> + 't {
        self.edits.iter().map(move |(start, (len, new))| Renaming {
            place: given.place(Spot { source, start: *start as u32, len: *len as u32 }),
            old: self.source.text[*start..start + len].into(),
            new: new.clone(),
        })
    }
}
