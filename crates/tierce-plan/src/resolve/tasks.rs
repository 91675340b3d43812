//! `[task.N]` and `[tasks.N]`.

use super::csv::{self, Row, CSV_FAULTS_MAX};
use super::edges::Ways;
use super::names::{cpu_list, Item};
use super::state::{Below, Resolver};
use crate::model::*;
use crate::policies;
use crate::text::faults::Fault;
use crate::text::files::relative;
use crate::text::source::Source;
use crate::text::tree::{Collector, Fields, Value};
use std::sync::Arc;
use tierce_policy::Cpus;

/// How many members a set has, and whether each has values of its own.
enum Members {
    Alike(usize),
    Rows(Vec<Row>),
}

impl Resolver {
    pub(super) fn task(&mut self, item: &Item) {
        let owner = format!("task `{}`", item.key.text);
        let mut fields = Fields::new(&owner, item.table);
        let (load, needs, affinity, under, matches) = self.leaf(&owner, &mut fields);
        fields.finish(&mut self.collector);
        let child = Child::Task(self.plan.tasks.len());
        let load = load.and_then(|value| self.load(&owner, value));
        let (name, spot) = (item.key.text.clone(), item.key.spot);
        self.plan.tasks.push(Task { name, set: None, load, affinity, needs, spot });
        if let Some(value) = under {
            self.under(&owner, &item.key.text, value, &Below::leaf(&[(child, None)], affinity));
        }
        self.entry(&owner, child, matches);
    }

    /// What tasks and sets have in common, not yet looked into.
    #[allow(clippy::type_complexity)]
    fn leaf<'v>(
        &mut self,
        owner: &str,
        fields: &mut Fields<'v>,
    ) -> (Option<&'v Value>, Vec<Need>, Option<Cpus>, Option<&'v Value>, Option<&'v Value>) {
        let load = fields.take("load");
        let needs = self.needs(fields);
        let what = format!("`affinity` of {owner}");
        let affinity = fields.take("affinity").and_then(|value| {
            let cpus = cpu_list(&what, value, self.plan.machine.named, &mut self.collector);
            (!cpus.is_empty()).then(|| cpus.into_iter().collect())
        });
        (load, needs, affinity, fields.take("under"), fields.take("match"))
    }

    fn load(&mut self, owner: &str, value: &Value) -> Option<Load> {
        let Self { files, collector, plan, .. } = self;
        let sources = &mut plan.sources;
        let from = value.spot.source;
        let mut read = |collector: &mut Collector, at: &Value, name: &str| {
            let path = relative(sources, from, name);
            match files.read(&path) {
                Ok(text) => {
                    let name = path.display().to_string();
                    sources.0.push(Arc::new(Source::new(name, &text)));
                    Some(text)
                }
                Err(error) => {
                    let hint = "paths are relative to the file that names them";
                    collector.add(Fault::new("file_must_be_readable", at.spot, error).hint(hint));
                    None
                }
            }
        };
        crate::resolve::load::read(owner, value, collector, &mut read)
    }

    fn entry(&mut self, owner: &str, target: Child, matches: Option<&Value>) {
        let Some(value) = matches else { return };
        let any = crate::resolve::matching::read(owner, value, &mut self.collector);
        self.plan.entries.push(MatchEntry { target, any, spot: value.spot });
    }

    pub(super) fn set(&mut self, item: &Item) {
        let name = &item.key.text;
        let owner = format!("set `{name}`");
        let mut fields = Fields::new(&owner, item.table);
        let count = fields.key("count");
        let csv = fields.key("csv");
        let (load, needs, affinity, under, matches) = self.leaf(&owner, &mut fields);
        fields.finish(&mut self.collector);
        if let (Some((first, _)), Some((second, _))) = (count, csv) {
            let message = format!("{owner} has `count` and `csv`");
            self.collector
                .add(Fault::new("count_or_csv", second.spot, message).other(first.spot, "this or that"));
        }
        let most = policies::limits().nodes;
        let members = match (count, csv) {
            (Some((_, value)), _) => {
                let count = self.collector.whole(&format!("`count` of {owner}"), value, 0, i64::from(most));
                Members::Alike(count.unwrap_or(0) as usize)
            }
            (None, Some((_, value))) => {
                self.csv(&owner, value, load, under).map_or(Members::Alike(0), Members::Rows)
            }
            (None, None) => Members::Alike(usize::from(load.is_some())),
        };
        let set_index = self.plan.sets.len();
        let first_task = self.plan.tasks.len();
        // The set itself: what a member looks like that no row describes.
        let common_load = load.and_then(|value| self.load(&owner, value));
        let child = Child::Set(set_index);
        let by_rows = matches!(members, Members::Rows(_));
        let ways = match under.filter(|_| !by_rows || matches.is_some()) {
            Some(value) => self.ways(&owner, value, &Below::leaf(&[(child, None)], affinity)),
            None => Ways::default(),
        };
        let template = ways.first();
        let spot = item.key.spot;
        let member = |plan: &mut Plan, index: usize, load: Option<Load>| {
            let (name, needs) = (format!("{name}[{index}]"), needs.clone());
            plan.tasks.push(Task { name, set: Some(set_index), load, affinity, needs, spot });
        };
        match members {
            Members::Alike(count) => {
                let room = (policies::limits().edges as usize).saturating_sub(self.plan.edges.len());
                if count.saturating_mul(template.len()) > room {
                    let fault = Fault::new(
                        "too_many_edges",
                        spot,
                        format!("{owner} has more edges than there can be"),
                    );
                    self.collector.add(fault.value(count.saturating_mul(template.len())).bound(room));
                } else {
                    for index in 0..count {
                        let child = Child::Task(self.plan.tasks.len());
                        member(&mut self.plan, index, common_load.clone());
                        let name = format!("{name}[{index}]");
                        for edge in self.choose(&name, child, &ways) {
                            let edge = Edge { child, ..edge.clone() };
                            let parent = self.begun.at(&self.plan, &edge, affinity);
                            self.plan.edges.push(Edge { parent, ..edge });
                        }
                    }
                    if self.broken.contains(&child) {
                        self.broken.extend((first_task..self.plan.tasks.len()).map(Child::Task));
                    }
                }
            }
            Members::Rows(rows) => {
                let faults = self.collector.faults.len();
                for (index, row) in rows.iter().enumerate() {
                    if self.collector.faults.len() > faults + CSV_FAULTS_MAX {
                        break;
                    }
                    let owner = format!("row {} of {owner}", index + 1);
                    let child = Child::Task(self.plan.tasks.len());
                    let load = row.load.as_ref().and_then(|value| self.load(&owner, value));
                    member(&mut self.plan, index, load);
                    if let Some(under) = &row.under {
                        let name = format!("{name}[{index}]");
                        self.under(&owner, &name, under, &Below::leaf(&[(child, None)], affinity));
                    }
                }
            }
        }
        self.plan.sets.push(TaskSet {
            name: name.clone(),
            members: first_task..self.plan.tasks.len(),
            elsewhere: ways.others(),
            under: template,
            load: common_load,
            affinity,
            needs,
            spot,
        });
        self.entry(&owner, child, matches);
    }

    /// The rows of a table of tasks: each is the set's `load` and `under` with some keys replaced.
    fn csv(
        &mut self,
        owner: &str,
        value: &Value,
        load: Option<&Value>,
        under: Option<&Value>,
    ) -> Option<Vec<Row>> {
        let name = self.collector.text(&format!("`csv` of {owner}"), value)?;
        let path = relative(&self.plan.sources, value.spot.source, name);
        let text = match self.files.read(&path) {
            Ok(text) => text,
            Err(error) => {
                let hint = "paths are relative to the file that names them";
                self.collector.add(Fault::new("file_must_be_readable", value.spot, error).hint(hint));
                return None;
            }
        };
        let source = self.plan.sources.0.len() as u32;
        self.plan.sources.0.push(Arc::new(Source::new(path.display().to_string(), &text)));
        let base = Row { load: load.cloned(), under: under.cloned() };
        csv::rows(&text, source, value, &base, &mut self.collector)
    }
}
