//! The text of a plan to which steps were taken on its model: all of them are written at once, and what one did and another undid is
//! left out.

#![allow(clippy::result_large_err)] // one per text

use super::edit::Edit;
use super::editor::Editor;
use crate::model::any_cpu::{Placed, Placer, Standing, Unit};
use crate::model::{Options, Plan};
use crate::resolve::documents;
use crate::text::faults::{Fault, Faults};
use crate::text::source::Source;
use std::collections::BTreeMap;
use std::sync::Arc;

impl Plan {
    /// This plan, whose text is as it is, with operations written into the text that were taken as steps ([`Plan::step`]) on the
    /// model since.
    pub fn written(&self, edits: &[Edit], standing: &Standing, placer: Placer) -> Result<Plan, Faults> {
        let mut model = self.clone();
        let mut documents = BTreeMap::new();
        for edit in edits {
            let mut editor = Editor { plan: &model, documents };
            editor.edit(edit).map_err(|fault| Faults::new(vec![fault], self.sources.clone()))?;
            documents = editor.documents;
            if model.entries.is_empty() {
                // What is written next may have to come before it, so it has to have its place.
                for document in documents.values_mut() {
                    *document = document.to_string().parse().unwrap_or_default();
                }
            }
            if let Some(step) = model.step(edit, &|| standing.clone(), as_it_stands) {
                model.take(step);
            }
        }
        let mut sources = self.sources.clone();
        for (at, document) in documents {
            let name = sources.0[at].name.clone();
            sources.0[at] = Arc::new(Source::new(name, document.to_string()));
        }
        documents::from_sources(&sources, Options { cpus: self.machine.cpus }, standing, placer)
    }
}

/// Where it is, or will be.
fn as_it_stands(_: Plan, units: &[Unit], standing: &Standing) -> Result<Placed, Vec<Fault>> {
    let of = |unit: &Unit| standing.placed.get(&unit.name).copied().unwrap_or(unit.cpus[0]);
    Ok(units.iter().map(|unit| (unit.name.clone(), of(unit))).collect())
}

impl Edit {
    /// Add an operation to a list of those that are not written yet. What an earlier one of the list did and this one undoes
    /// is left out.
    pub fn add_to(&self, list: &mut Vec<Edit>) {
        match self {
            Edit::Destroy { name, .. } => {
                let made = |edit: &Edit| matches!(edit, Edit::Create { name: made, .. } if made == name);
                if let Some(at) = list.iter().rposition(made) {
                    let stays = |edit: &Edit| matches!(edit, Edit::Enclose { .. }) && edit.name() == name;
                    let is_needed = |edit: &Edit| edit.name() != name && edit.speaks_of(name) || stays(edit);
                    if !list[at..].iter().any(is_needed) {
                        let mut place = 0..;
                        list.retain(|edit| place.next() < Some(at) || edit.name() != name);
                        return;
                    }
                }
            }
            Edit::Set { name, under, keys, .. } => {
                let last = list.iter_mut().rev().find(|edit| edit.name() == name);
                if let Some(Edit::Set { under: before, keys: old, .. }) = last {
                    if before == under {
                        for (key, value) in keys {
                            old.retain(|(other, _)| other != key);
                            old.push((key.clone(), value.clone()));
                        }
                        return;
                    }
                }
            }
            _ => {}
        }
        list.push(self.clone());
    }

    /// Of what it is about.
    fn name(&self) -> &str {
        match self {
            Edit::Create { name, .. }
            | Edit::Destroy { name, .. }
            | Edit::Set { name, .. }
            | Edit::Move { name, .. }
            | Edit::Link { name, .. }
            | Edit::Enclose { name }
            | Edit::Default { name, .. } => name,
        }
    }

    /// It names this as what is above.
    fn speaks_of(&self, other: &str) -> bool {
        match self {
            Edit::Create { under, .. } | Edit::Link { under, .. } => under == other,
            Edit::Set { under, .. } => under.as_deref() == Some(other),
            Edit::Move { from, under, .. } => under == other || from.as_deref() == Some(other),
            Edit::Destroy { .. } | Edit::Enclose { .. } | Edit::Default { .. } => false,
        }
    }
}
