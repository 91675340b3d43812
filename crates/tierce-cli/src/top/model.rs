//! What is shown: a row for each edge of the plan, with what it received since the last snapshot and since the begin.

use serde::Serialize;
use std::collections::{BTreeSet, HashMap, VecDeque};
use tierce_trace::snapshot::{Counts, Cpu, EdgeCounts, Kind, Part, Running, Snapshot};

/// Version of a line of `--json`.
pub const VERSION: u32 = 1;

/// Shares that are remembered of each row.
pub const HISTORY_MAX: usize = 240;

/// A part below one of its parents.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    kind: Kind,
    name: String,
    parent: String,
    tid: Option<u32>,
}

/// What was counted.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Counted {
    /// What went through the edge.
    #[serde(flatten)]
    pub edge: EdgeCounts,
    /// What the threads of the part counted.
    #[serde(flatten)]
    pub threads: Counts,
}

/// A part below one of its parents, in one window.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The part.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The node above; `cpu0` above a root.
    pub parent: String,
    /// Nodes above it in the tree.
    pub depth: usize,
    /// Of a node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Of a pool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Its thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// CPUs that run it now.
    pub on: Vec<u32>,
    /// In the window.
    pub window: Counted,
    /// Since the begin.
    pub total: Counted,
}

impl Row {
    /// Who it is.
    pub fn key(&self) -> Key {
        Key { kind: self.kind, name: self.name.clone(), parent: self.parent.clone(), tid: self.tid }
    }

    /// The part of a CPU that its budget is; of a pool, that of all its threads.
    pub fn promised(&self) -> Option<f64> {
        let (budget, period) = (self.total.edge.budget_ns?, self.total.edge.period_ns?);
        let threads = f64::from(self.threads.unwrap_or(1));
        (period > 0).then(|| budget as f64 / period as f64 * threads)
    }

    /// The part of a CPU that it received in a window of this length.
    pub fn share(&self, window_ns: u64) -> f64 {
        self.window.edge.supply_ns as f64 / window_ns.max(1) as f64
    }

    /// Windows of the promise in which less was received.
    pub fn not_kept(&self) -> u64 {
        self.window.edge.promise.map_or(0, |promise| promise.not_kept)
    }
}

/// All rows of one window.
#[derive(Debug, Clone, Default, Serialize)]
pub struct View {
    /// [`VERSION`].
    pub version: u32,
    /// The plan.
    pub plan: String,
    /// Since the begin.
    pub elapsed_ns: u64,
    /// Length of the window, which ends now.
    pub window_ns: u64,
    /// Records lost since the begin.
    pub lost: u64,
    /// In the window.
    pub cpus: Vec<Cpu>,
    /// In the order of the tree.
    pub parts: Vec<Row>,
}

impl View {
    /// What has come from one snapshot to the next.
    pub fn between(before: &Snapshot, now: &Snapshot) -> View {
        let mut known: HashMap<(Kind, &str, Option<u32>, &str), Counted> = HashMap::new();
        for part in &before.parts {
            for (at, edge) in part.under.iter().enumerate() {
                // What threads count is the part's, shown with its first edge.
                let threads = if at == 0 { part.counts } else { Counts::default() };
                let counted = Counted { edge: edge.counts, threads };
                known.insert((part.kind, &part.name, tid_of_thread(part), &edge.parent), counted);
            }
        }
        let rows = Tree::of(now).rows.into_iter().map(|(depth, part, at)| {
            let edge = &part.under[at];
            let threads = if at == 0 { part.counts } else { Counts::default() };
            let total = Counted { edge: edge.counts, threads };
            let key = (part.kind, &part.name[..], tid_of_thread(part), &edge.parent[..]);
            let past = known.get(&key).copied().unwrap_or_default();
            let window =
                Counted { edge: total.edge.since(past.edge), threads: total.threads.since(past.threads) };
            let runs = |runs: &Running| match part.kind {
                Kind::Thread => runs.tid.is_some() && runs.tid == part.tid,
                kind => runs.kind == kind && runs.part == part.name,
            };
            let on = now.cpus.iter().filter(|cpu| cpu.runs.as_ref().is_some_and(runs)).map(|cpu| cpu.cpu);
            Row {
                name: part.name.clone(),
                kind: part.kind,
                parent: edge.parent.clone(),
                depth,
                policy: part.policy.clone(),
                threads: part.threads,
                tid: part.tid,
                on: on.collect(),
                window,
                total,
            }
        });
        let cpus = now.cpus.iter().map(|cpu| {
            let past = before.cpus.iter().find(|past| past.cpu == cpu.cpu).cloned().unwrap_or_default();
            Cpu {
                cpu: cpu.cpu,
                used_ns: cpu.used_ns.saturating_sub(past.used_ns),
                idle_ns: cpu.idle_ns.saturating_sub(past.idle_ns),
                stolen_ns: cpu.stolen_ns.saturating_sub(past.stolen_ns),
                runs: cpu.runs.clone(),
            }
        });
        View {
            version: VERSION,
            plan: now.plan.clone(),
            elapsed_ns: now.elapsed_ns,
            window_ns: now.elapsed_ns.saturating_sub(before.elapsed_ns),
            lost: now.lost,
            cpus: cpus.collect(),
            parts: rows.collect(),
        }
    }
}

/// Threads may have one name; any other part keeps its numbers when its thread changes.
fn tid_of_thread(part: &Part) -> Option<u32> {
    part.tid.filter(|_| part.kind == Kind::Thread)
}

/// Parts in the order of the tree: depth, part, which of its edges.
struct Tree<'s> {
    children: HashMap<&'s str, Vec<(&'s Part, usize)>>,
    rows: Vec<(usize, &'s Part, usize)>,
    drawn: BTreeSet<&'s str>,
}

impl<'s> Tree<'s> {
    fn of(snapshot: &'s Snapshot) -> Tree<'s> {
        let mut children: HashMap<&str, Vec<(&Part, usize)>> = HashMap::new();
        for part in &snapshot.parts {
            for (at, edge) in part.under.iter().enumerate() {
                children.entry(&edge.parent).or_default().push((part, at));
            }
        }
        let mut tree = Tree { children, rows: Vec::new(), drawn: BTreeSet::new() };
        for cpu in &snapshot.cpus {
            tree.below(&format!("cpu{}", cpu.cpu), 0);
        }
        // What moves between the replicas of a spread node is below all of them.
        let families: Vec<&str> = snapshot.parts.iter().filter_map(|part| part.family.as_deref()).collect();
        for family in families {
            if tree.drawn.insert(family) {
                tree.below(family, 0);
            }
        }
        tree
    }

    fn below(&mut self, parent: &str, depth: usize) {
        for (part, at) in self.children.get(parent).cloned().unwrap_or_default() {
            self.rows.push((depth, part, at));
            if part.kind == Kind::Node && self.drawn.insert(&part.name) {
                self.below(&part.name, depth + 1);
            }
        }
    }
}

/// How rows are ordered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// As the tree is.
    #[default]
    Tree,
    /// Who received most.
    Share,
    /// Whose promise was broken most often.
    NotKept,
    /// Who was throttled most often.
    Throttled,
    /// Who missed most deadlines.
    Missed,
    /// By name.
    Name,
}

impl Sort {
    const ALL: [Sort; 6] =
        [Sort::Tree, Sort::Share, Sort::NotKept, Sort::Throttled, Sort::Missed, Sort::Name];

    /// For the screen.
    pub fn name(self) -> &'static str {
        ["tree", "share", "not kept", "throttled", "missed", "name"][self as usize]
    }

    fn next(self) -> Sort {
        Sort::ALL[(self as usize + 1) % Sort::ALL.len()]
    }
}

/// Keys that mean something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    /// A letter, a digit, a sign.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Esc,
    /// Backspace.
    Back,
    /// So many rows down, or up if negative.
    Move(i32),
}

/// The state of the screen.
#[derive(Debug, Clone, Default)]
pub struct Model {
    last: Snapshot,
    /// What is shown.
    pub view: View,
    history: HashMap<Key, VecDeque<f64>>,
    /// Order of rows.
    pub sort: Sort,
    /// Rows that have this in their name.
    pub filter: String,
    /// The filter is being typed.
    pub typing: bool,
    /// Row that is marked, of those shown.
    pub selected: usize,
    /// The history of the marked row is shown.
    pub detail: bool,
    /// The keys are shown.
    pub help: bool,
    /// Nothing new is taken.
    pub paused: bool,
    /// Threads are shown one by one.
    pub threads: bool,
    /// There is nothing more.
    pub ended: bool,
    /// The user wants to leave.
    pub quit: bool,
}

impl Model {
    /// The next snapshot.
    pub fn take(&mut self, snapshot: Snapshot) {
        let marked = self.rows().get(self.selected).map(|row| row.key());
        self.view = View::between(&self.last, &snapshot);
        self.last = snapshot;
        let mut history = std::mem::take(&mut self.history);
        for row in &self.view.parts {
            let mut shares = history.remove(&row.key()).unwrap_or_default();
            if shares.len() == HISTORY_MAX {
                shares.pop_front();
            }
            shares.push_back(row.share(self.view.window_ns));
            self.history.insert(row.key(), shares);
        }
        self.mark(marked);
    }

    fn mark(&mut self, marked: Option<Key>) {
        let rows = self.rows();
        let at = marked.and_then(|key| rows.iter().position(|row| row.key() == key));
        let last = rows.len().saturating_sub(1);
        self.selected = at.unwrap_or(self.selected).min(last);
    }

    /// The rows that are shown, in their order.
    pub fn rows(&self) -> Vec<&Row> {
        let wanted = |row: &&Row| {
            (self.threads || row.kind != Kind::Thread)
                && (self.filter.is_empty() || row.name.contains(&self.filter))
        };
        let mut rows: Vec<&Row> = self.view.parts.iter().filter(wanted).collect();
        let most = |of: fn(&Row) -> u64| move |row: &&Row| std::cmp::Reverse(of(row));
        match self.sort {
            Sort::Tree => {}
            Sort::Share => rows.sort_by_key(most(|row| row.window.edge.supply_ns)),
            Sort::NotKept => rows.sort_by_key(most(Row::not_kept)),
            Sort::Throttled => rows.sort_by_key(most(|row| row.window.edge.throttles)),
            Sort::Missed => rows.sort_by_key(most(|row| row.window.threads.misses)),
            Sort::Name => rows.sort_by_key(|row| row.name.clone()),
        }
        rows
    }

    /// The row that is marked, and its shares up to now.
    pub fn marked(&self) -> Option<(&Row, Vec<f64>)> {
        let row = self.rows().get(self.selected).copied()?;
        let shares = self.history.get(&row.key());
        Some((row, shares.into_iter().flatten().copied().collect()))
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Press) {
        let marked = self.rows().get(self.selected).map(|row| row.key());
        if self.typing {
            match key {
                Press::Char(c) => self.filter.push(c),
                Press::Back => _ = self.filter.pop(),
                Press::Enter => self.typing = false,
                Press::Esc => (self.typing, self.filter) = (false, String::new()),
                Press::Move(_) => {}
            }
            return self.mark(marked);
        }
        match key {
            Press::Char('q') => self.quit = true,
            Press::Char('?') => self.help = !self.help,
            Press::Char(' ') => self.paused = !self.paused,
            Press::Char('s') => self.sort = self.sort.next(),
            Press::Char('t') => self.threads = !self.threads,
            Press::Char('/') => (self.typing, self.filter) = (true, String::new()),
            Press::Enter => self.detail = !self.detail,
            Press::Esc if self.help => self.help = false,
            Press::Esc if self.detail => self.detail = false,
            Press::Esc => self.filter.clear(),
            Press::Char('j') => return self.step(1),
            Press::Char('k') => return self.step(-1),
            Press::Move(by) => return self.step(by),
            Press::Char(_) | Press::Back => {}
        }
        self.mark(marked);
    }

    fn step(&mut self, by: i32) {
        let last = self.rows().len().saturating_sub(1);
        self.selected = self.selected.saturating_add_signed(by as isize).min(last);
    }
}
