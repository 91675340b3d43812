//! `[task.N]` and `[tasks.N]`.

use super::csv::{self, Row, CSV_FAULTS_MAX};
use super::edges::Ways;
use super::matching;
use super::names::{cpu_list, Item};
use super::state::{Below, Resolver};
use crate::model::*;
use crate::policies;
use crate::text::faults::Fault;
use crate::text::files::relative;
use crate::text::source::Source;
use crate::text::tree::{Collector, Fields, Key, Value};
use std::sync::Arc;
use tierce_policy::Cpus;

/// How many members a set has, and whether each has values of its own.
enum Members {
    Alike(usize),
    Rows(Vec<Row>),
}

/// What tasks and sets have in common, not yet looked into.
struct Leaf<'v> {
    load: Option<&'v Value>,
    needs: Vec<Need>,
    affinity: Option<Cpus>,
    job_deadline_ns: Option<u64>,
    under: Option<&'v Value>,
    matches: Option<&'v Value>,
    trusts_names: bool,
}

impl Resolver {
    pub(super) fn task(&mut self, item: &Item) {
        let owner = format!("task `{}`", item.key.text);
        let mut fields = Fields::new(&owner, item.table);
        let leaf = self.leaf(&owner, &mut fields);
        let Leaf { load, needs, affinity, job_deadline_ns, under, matches, trusts_names } = leaf;
        let child = Child::Task(self.plan.tasks.len());
        if under.is_none() && fields.is_misspelt("under") {
            self.broken.push(child);
        }
        fields.finish(&mut self.collector);
        let given = load.is_some();
        let load = load.and_then(|value| self.load(&owner, value));
        if given && load.is_none() {
            self.unread.push(self.plan.tasks.len());
        }
        let (name, spot) = (item.key.text.clone(), item.key.spot);
        self.plan.tasks.push(Task { name, set: None, load, affinity, job_deadline_ns, needs, spot });
        if let Some(value) = under {
            self.under(&owner, &item.key.text, value, &Below::leaf(&[(child, None)], affinity));
        }
        self.entry(&owner, child, matches, (trusts_names, None));
    }

    fn leaf<'v>(&mut self, owner: &str, fields: &mut Fields<'v>) -> Leaf<'v> {
        let load = fields.take("load");
        let needs = self.needs(fields);
        let what = format!("`affinity` of {owner}");
        let affinity = fields.take("affinity").and_then(|value| {
            let cpus = cpu_list(&what, value, self.plan.machine.named, &mut self.collector);
            (!cpus.is_empty()).then(|| cpus.into_iter().collect())
        });
        let (under, matches) = (fields.take("under"), fields.take("match"));
        let trusts_names = matching::trust(owner, fields, &mut self.collector);
        let job_deadline_ns = fields.duration("job_deadline", &mut self.collector);
        Leaf { load, needs, affinity, job_deadline_ns, under, matches, trusts_names }
    }

    fn load(&mut self, owner: &str, value: &Value) -> Option<Load> {
        let Self { files, collector, plan, .. } = self;
        let (sources, locks) = (&mut plan.sources, &plan.locks);
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
        crate::resolve::load::read(owner, value, locks, collector, &mut read)
    }

    fn entry(
        &mut self,
        owner: &str,
        target: Child,
        matches: Option<&Value>,
        (trusts_names, copy): (bool, Option<Copied>),
    ) {
        let Some(value) = matches else { return };
        let any = matching::read(owner, value, &mut self.collector).into();
        self.plan.entries.push(MatchEntry { target, any, trusts_names, copy, spot: value.spot });
    }

    pub(super) fn set(&mut self, item: &Item) {
        let owner = format!("set `{}`", item.key.text);
        let mut fields = Fields::new(&owner, item.table);
        let (count, csv) = (fields.key("count"), fields.key("csv"));
        let leaf = self.leaf(&owner, &mut fields);
        fields.finish(&mut self.collector);
        let members = self.members(&owner, count, csv, &leaf);
        let Leaf { load, needs, affinity, job_deadline_ns, under, matches, trusts_names } = leaf;
        // The set itself: what a member looks like that no row describes.
        let load = load.and_then(|value| self.load(&owner, value));
        let child = Child::Set(self.plan.sets.len());
        let by_rows = matches!(members, Members::Rows(_));
        let ways = match under.filter(|_| !by_rows || matches.is_some()) {
            Some(value) => self.ways(&owner, value, &Below::leaf(&[(child, None)], affinity)),
            None => Ways::default(),
        };
        let (name, spot, first) = (item.key.text.clone(), item.key.spot, self.plan.tasks.len());
        let (under, elsewhere) = (ways.first(), Vec::new());
        let mut set = TaskSet {
            name,
            members: first..first,
            elsewhere,
            under,
            load,
            affinity,
            job_deadline_ns,
            needs,
            spot,
        };
        match members {
            Members::Alike(count) => self.alike(&owner, &set, count, &ways),
            Members::Rows(rows) => self.by_rows(&owner, &set, &rows),
        }
        set.members.end = self.plan.tasks.len();
        set.elsewhere = ways.others();
        self.plan.sets.push(set);
        self.entry(&owner, child, matches, (trusts_names, item.copy));
    }

    /// As many as `count` says, a row of `csv` each, or one that does what `load` says.
    fn members(
        &mut self,
        owner: &str,
        count: Option<&(Key, Value)>,
        csv: Option<&(Key, Value)>,
        leaf: &Leaf,
    ) -> Members {
        if let (Some((first, _)), Some((second, _))) = (count, csv) {
            let message = format!("{owner} has `count` and `csv`");
            self.collector
                .add(Fault::new("count_or_csv", second.spot, message).other(first.spot, "this or that"));
        }
        match (count, csv) {
            (Some((_, value)), _) => {
                let most = i64::from(policies::limits().nodes);
                let count = self.collector.whole(&format!("`count` of {owner}"), value, 0, most);
                Members::Alike(count.unwrap_or(0) as usize)
            }
            (None, Some((_, value))) => {
                self.csv(owner, value, leaf.load, leaf.under).map_or(Members::Alike(0), Members::Rows)
            }
            (None, None) => Members::Alike(usize::from(leaf.load.is_some())),
        }
    }

    fn alike(&mut self, owner: &str, set: &TaskSet, count: usize, ways: &Ways) {
        let room = (policies::limits().edges as usize).saturating_sub(self.plan.edges.len());
        let edges = count.saturating_mul(set.under.len());
        if edges > room {
            let message = format!("{owner} has more edges than there can be");
            self.collector.add(Fault::new("too_many_edges", set.spot, message).value(edges).bound(room));
            return;
        }
        for index in 0..count {
            let (name, child) = self.member(set, index, set.load.clone());
            for edge in self.choose(&name, child, ways) {
                let edge = Edge { child, ..edge };
                let parent = self.begun.at(&self.plan, &edge, set.affinity);
                self.plan.edges.push(Edge { parent, ..edge });
            }
        }
        if self.broken.contains(&Child::Set(self.plan.sets.len())) {
            self.broken.extend((set.members.start..self.plan.tasks.len()).map(Child::Task));
        }
    }

    fn by_rows(&mut self, owner: &str, set: &TaskSet, rows: &[Row]) {
        let faults = self.collector.faults.len();
        for (index, row) in rows.iter().enumerate() {
            if self.collector.faults.len() > faults + CSV_FAULTS_MAX {
                break;
            }
            let owner = format!("row {} of {owner}", index + 1);
            let load = row.load.as_ref().and_then(|value| self.load(&owner, value));
            let (name, child) = self.member(set, index, load);
            if let Some(under) = &row.under {
                self.under(&owner, &name, under, &Below::leaf(&[(child, None)], set.affinity));
            }
        }
    }

    /// A task of a set that comes next in the plan: its name, and what edges lead to.
    fn member(&mut self, set: &TaskSet, index: usize, load: Option<Load>) -> (String, Child) {
        let (name, child) = (format!("{}[{index}]", set.name), Child::Task(self.plan.tasks.len()));
        self.plan.tasks.push(Task {
            name: name.clone(),
            set: Some(self.plan.sets.len()),
            load,
            affinity: set.affinity,
            job_deadline_ns: None,
            needs: set.needs.clone(),
            spot: set.spot,
        });
        (name, child)
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
