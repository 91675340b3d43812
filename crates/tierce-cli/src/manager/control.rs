//! The plan in force behind the control socket of `tierce run`.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_manager::{InForce, Received, Unmatched, Wrong, PREFIX};
use tierce_plan::{Edit, Options, Plan, Source, Sources, Standing};
use tierce_scx::socket::{Connection, Served};
use tierce_trace::promise::Promise;
use tierce_trace::Snapshot;

/// So old the plan may be that decisions are based on: the loader has the last word.
const FRESH: Duration = Duration::from_millis(50);

/// The way there.
pub struct Control {
    path: PathBuf,
    connection: Option<Connection>,
    cpus: u32,
    seen: Option<Seen>,
    seen_at: Option<Instant>,
}

struct Seen {
    revision: u64,
    plan: Rc<Plan>,
}

/// The plan in force: only the revision, if it is the one that was seen.
#[derive(Default, Deserialize)]
struct Answer {
    revision: u64,
    #[serde(default)]
    sources: Vec<Text>,
    #[serde(default)]
    placed: BTreeMap<String, u32>,
}

/// What a change is answered with.
#[derive(Default, Deserialize)]
struct Applied {
    revision: u64,
    #[serde(default)]
    placed: BTreeMap<String, u32>,
    #[serde(default)]
    limited: bool,
}

#[derive(Default, Deserialize)]
struct Text {
    name: String,
    text: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    cpus: u32,
    #[serde(default)]
    promises: Vec<Promised>,
}

#[derive(Default, Deserialize)]
struct Promised {
    name: String,
    tid: Option<u32>,
    #[serde(default)]
    parent: String,
    #[serde(default)]
    supply_ns: u64,
    promise: Option<Promise>,
}

#[derive(Default, Deserialize)]
struct Ended {
    last: u64,
    threads: Vec<Unmatched>,
}

impl Control {
    pub fn new(path: PathBuf) -> Self {
        Self { path, connection: None, cpus: 0, seen: None, seen_at: None }
    }

    fn asked<A: for<'de> Deserialize<'de> + Default>(
        &mut self,
        request: &impl Serialize,
    ) -> Result<A, Wrong> {
        let away = |error: anyhow::Error| Wrong::new("plan_must_be_in_force", format!("{error:#}"));
        if self.connection.is_none() {
            let mut connection = Connection::open(&self.path).map_err(away)?;
            let request = json!({ "request": "status", "names_begin": PREFIX });
            let status: Served<Status> = connection.ask(&request).map_err(away)?;
            self.cpus = status.map_err(|(rule, message)| Wrong::new(rule, message))?.cpus;
            (self.connection, self.seen_at) = (Some(connection), None);
        }
        let asked = self.connection.as_mut().map(|connection| connection.ask(request));
        match asked {
            Some(Ok(answer)) => answer.map_err(|(rule, message)| Wrong::new(rule, message)),
            Some(Err(error)) => {
                self.connection = None;
                Err(away(error))
            }
            None => Err(Wrong::new("plan_must_be_in_force", "nobody can be asked")),
        }
    }

    /// What each part with such a name has received so far, and each node above it.
    pub fn snapshot(&mut self, names_begin: &str) -> Result<Snapshot, Wrong> {
        self.asked(&json!({ "request": "snapshot", "names_begin": names_begin }))
    }

    /// Threads that no longer match parts to which something was promised, after the one of this number; and the last number.
    pub fn unmatched(&mut self, after: u64) -> Result<(u64, Vec<Unmatched>), Wrong> {
        let answer: Ended = self.asked(&json!({ "request": "match_ended", "after": after }))?;
        Ok((answer.last, answer.threads))
    }

    fn resolved(&self, answer: &Answer) -> Result<Plan, Wrong> {
        let source = |it: &Text| Arc::new(Source::new(it.name.clone(), it.text.clone()));
        let sources = Sources(answer.sources.iter().map(source).collect());
        let placed = answer.placed.iter().map(|(name, cpu)| (name.clone(), *cpu)).collect();
        let mut standing = Standing::default();
        standing.placed = placed;
        Plan::from_sources_after(&sources, Options { cpus: self.cpus }, &standing)
            .map_err(|faults| Wrong::new("plan_has_faults", faults.to_string()))
    }
}

impl InForce for Control {
    fn plan(&mut self) -> Result<Rc<Plan>, Wrong> {
        let is_fresh = self.seen_at.is_some_and(|at| at.elapsed() < FRESH);
        if let Some(seen) = self.seen.as_ref().filter(|_| is_fresh) {
            return Ok(seen.plan.clone());
        }
        let seen = self.seen.as_ref().map(|seen| seen.revision);
        let answer: Answer = self.asked(&json!({ "request": "plan", "unless": seen }))?;
        self.seen_at = Some(Instant::now());
        if let Some(seen) = self.seen.as_ref().filter(|seen| seen.revision == answer.revision) {
            return Ok(seen.plan.clone());
        }
        let plan = Rc::new(self.resolved(&answer)?);
        self.seen = Some(Seen { revision: answer.revision, plan: plan.clone() });
        Ok(plan)
    }

    fn apply(&mut self, edits: &[Edit], after: Option<&Rc<Plan>>) -> Result<(), Wrong> {
        self.seen_at = None;
        let applied: Applied = self.asked(&json!({ "request": "edits", "edits": edits }))?;
        let seen = self.seen.take();
        // One more than it was: nobody else has changed it. And everything is on the CPU that was expected, or may be.
        let is_after = seen.is_some_and(|seen| seen.revision + 1 == applied.revision) && !applied.limited;
        let is_placed = |plan: &&Rc<Plan>| {
            let placed = plan.placed();
            placed.len() == applied.placed.len()
                && placed.iter().all(|(name, cpu)| applied.placed.get(*name) == Some(cpu))
        };
        if let Some(plan) = after.filter(|_| is_after).filter(is_placed) {
            self.seen = Some(Seen { revision: applied.revision, plan: plan.clone() });
            self.seen_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Replicas of a node, and threads of a set, count together.
    fn received(&mut self, names_begin: &str) -> Result<BTreeMap<(String, String), Received>, Wrong> {
        let request = json!({ "request": "status", "names_begin": names_begin, "all_edges": true });
        let status: Status = self.asked(&request)?;
        let base = |name: &str| name.split('@').next().unwrap_or(name).to_string();
        let mut all: BTreeMap<_, Received> = BTreeMap::new();
        for row in status.promises {
            let sum = all.entry((base(&row.name), base(&row.parent))).or_default();
            sum.cpu_ns += row.supply_ns;
            sum.threads += u64::from(row.tid.is_some());
            sum.windows += row.promise.map_or(0, |promise| promise.windows);
            sum.not_kept += row.promise.map_or(0, |promise| promise.not_kept);
        }
        Ok(all)
    }
}
