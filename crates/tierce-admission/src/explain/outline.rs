//! The plan as a tree for people, with the verdict beside every part.

use crate::composition::long_run_rates::{Rates, Trust};
use crate::composition::placement::{placement, ranges};
use crate::demand::uncounted_threads::{live_sets, with_busy_threads};
use crate::explain::chains;
use crate::explain::words::{count, wrapped};
use crate::share::{percent, percent_given, percents, Share};
use crate::verdict::{Admission, Deadlines, NodeVerdict, Promise, TaskVerdict};
use std::collections::HashSet;
use std::fmt::Write;
use tierce_guarantee::Kind;
use tierce_plan::policies::{self, Param, ParamKind};
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Child, Edge, Plan, TaskSet};

impl Admission {
    /// A tree with ticks and crosses, then every failure in plain words with the smallest change that fixes it.
    pub fn outline(&self, plan: &Plan) -> String {
        let shape = Shape::new(plan);
        let mut outline = Outline {
            plan,
            shape: &shape,
            admission: self,
            drawn: vec![false; plan.nodes.len()],
            tasks_drawn: HashSet::new(),
            uncounted: Uncounted::of(plan, &shape),
            rows: Vec::new(),
        };
        outline.cpus();
        outline.spread();
        outline.chains();
        let mut text = format!(
            "{}: {}, {} on {}\n\n",
            plan.name,
            count(plan.nodes.len(), "node"),
            count(plan.tasks.len(), "task"),
            count(plan.machine.cpus as usize, "CPU")
        );
        outline.write(&mut text);
        outline.uncounted_threads(&mut text);
        if let Some(placement) = placement(plan) {
            let _ = write!(text, "\n{placement}");
        }
        self.findings(plan, &shape, &mut text);
        text
    }
}

/// Of a part whose guarantee is NULL.
const NOTHING: &str = "receives no guarantee";

/// ", receives RESBH 2ms 10ms".
fn guarantee(promises: &[Promise]) -> String {
    match promises.first().map(|promise| &promise.guarantee) {
        Some(guarantee) if guarantee.kind() != Kind::Null => format!(", receives {}", guarantee.noted()),
        _ => format!(", {NOTHING}"),
    }
}

struct Outline<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    admission: &'a Admission,
    drawn: Vec<bool>,
    /// Below the CPU that is being drawn.
    tasks_drawn: HashSet<usize>,
    uncounted: Uncounted,
    /// Tree and name, what it is, what was found.
    rows: Vec<[String; 3]>,
}

impl Outline<'_> {
    /// Each CPU with its tree. Those that differ in nothing but the CPU's number are drawn once.
    fn cpus(&mut self) {
        let mut trees: Vec<(Vec<u32>, Vec<[String; 3]>)> = Vec::new();
        for cpu in 0..self.plan.machine.cpus {
            self.cpu(cpu);
            let own = format!("@{cpu}");
            let mut rows = std::mem::take(&mut self.rows);
            for row in &mut rows[1..] {
                if let Some(tree) = row[0].strip_suffix(&own) {
                    row[0] = format!("{tree}@");
                }
            }
            match trees
                .iter_mut()
                .find(|(_, tree)| tree[1..] == rows[1..] && rows[1..].iter().any(is_replica))
            {
                Some((cpus, _)) => cpus.push(cpu),
                None => trees.push((vec![cpu], rows)),
            }
        }
        for (cpus, rows) in trees {
            let cpus = ranges(&cpus);
            for mut row in rows {
                if is_replica(&row) {
                    row[0] += &cpus;
                } else if row[0].starts_with("CPU ") {
                    row[0] = format!("CPU {cpus}");
                }
                self.rows.push(row);
            }
        }
    }

    fn chains(&mut self) {
        for (chain, verdict) in self.plan.chains.iter().zip(&self.admission.chains) {
            self.rows.extend(chains::rows(self.plan, chain, verdict));
        }
    }

    /// Tasks that move between the replicas of spread nodes.
    fn spread(&mut self) {
        let (plan, shape) = (self.plan, self.shape);
        let firsts = (0..plan.nodes.len()).filter(|node| plan.nodes[*node].family == Some(*node));
        let moving = |first: usize| {
            let edges = plan.edges.iter().enumerate();
            let edges =
                edges.filter(|(_, edge)| edge.spread && plan.nodes[edge.parent].family == Some(first));
            let edges = edges.map(|(index, _)| index).filter(|edge| shape.moves(plan, *edge));
            (first, edges.collect::<Vec<_>>())
        };
        let families: Vec<_> = firsts.map(moving).collect();
        for (first, edges) in families {
            let sets: Vec<_> = unnumbered(plan, first).filter(|(_, edge)| edge.spread).collect();
            if edges.is_empty() && sets.is_empty() {
                continue;
            }
            let replicas = plan.nodes.iter().filter(|node| node.family == Some(first));
            let cpus: Vec<_> = replicas.filter_map(|node| node.replica).collect();
            let title = format!("{}, spread over CPU {}", plan.nodes[first].base, ranges(&cpus));
            self.rows.push([title, String::new(), String::new()]);
            self.leaves(&edges, &sets);
        }
    }

    fn leaves(&mut self, edges: &[usize], sets: &[(&TaskSet, &Edge)]) {
        let groups = self.groups(edges);
        for (at, group) in groups.iter().enumerate() {
            let branch = if at + 1 == groups.len() + sets.len() { "└─ " } else { "├─ " };
            if let Child::Task(task) = self.plan.edges[group[0]].child {
                self.task(branch, group, task);
            }
        }
        self.sets("", sets);
    }

    /// Sets of threads that come in a live run: of these the plan has no members.
    fn sets(&mut self, above: &str, sets: &[(&TaskSet, &Edge)]) {
        for (at, (set, edge)) in sets.iter().enumerate() {
            let branch = if at + 1 == sets.len() { "└─ " } else { "├─ " };
            let what = self.edge(edge).into_iter().chain(["any number of threads".into()]);
            let name = format!("{above}{branch}{}[*]", set.name);
            self.rows.push([name, what.collect::<Vec<_>>().join(", "), String::new()]);
        }
    }

    /// Members of one set are one line.
    fn groups<'e>(&self, edges: &'e [usize]) -> Vec<&'e [usize]> {
        let set = |edge: &usize| match self.plan.edges[*edge].child {
            Child::Task(task) => self.plan.tasks[task].set,
            _ => None,
        };
        edges.chunk_by(|a, b| set(a).is_some() && set(a) == set(b)).collect()
    }

    fn cpu(&mut self, cpu: u32) {
        self.rows.push([format!("CPU {cpu}"), String::new(), String::new()]);
        self.tasks_drawn.clear();
        let root = self.plan.nodes.iter().position(|node| node.roots.contains(&cpu));
        match root {
            Some(root) => self.node("", "└─ ", "   ", root, None),
            None => self.rows.push(["└─ nothing".into(), String::new(), String::new()]),
        }
    }

    fn node(&mut self, above: &str, branch: &str, below: &str, index: usize, edge: Option<&Edge>) {
        let node = &self.plan.nodes[index];
        let policy = policies::by_number(node.policy);
        let seen = std::mem::replace(&mut self.drawn[index], true);
        let mut what = vec![policy.map_or("?", |policy| policy.name).to_string()];
        if !seen {
            what.extend(policy.and_then(|policy| params(&policy.node_params, &node.params)));
            if node.concurrency > 0 {
                what.push(format!("concurrency {}", node.concurrency));
            }
            if node.default {
                what.push("default".into());
            }
        }
        what.extend(edge.and_then(|edge| self.edge(edge)));
        let found = if seen {
            "see above".into()
        } else {
            node_found(&self.admission.nodes[index], node.roots.len(), self.uncounted.nodes[index])
        };
        self.rows.push([format!("{above}{branch}{}", node.name), what.join(", "), found]);
        if seen {
            return;
        }
        let plan = self.plan;
        let mut edges = self.shape.children[index].clone();
        edges.retain(|edge| !self.shape.moves(plan, *edge)); // these are drawn apart
        let groups = self.groups(&edges);
        let above = format!("{above}{below}");
        let sets: Vec<_> = unnumbered(plan, index).filter(|(_, edge)| !edge.spread).collect();
        for (at, group) in groups.iter().enumerate() {
            let last = at + 1 == groups.len() + sets.len();
            let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let edge = &plan.edges[group[0]];
            match edge.child {
                Child::Node(node) => self.node(&above, branch, below, node, Some(edge)),
                Child::Task(task) => self.task(&format!("{above}{branch}"), group, task),
                Child::Set(_) => {}
            }
        }
        self.sets(&above, &sets);
    }

    fn task(&mut self, start: &str, group: &[usize], task: usize) {
        let plan = self.plan;
        let edge = &plan.edges[group[0]];
        let mut name = plan.tasks[task].name.clone();
        if let (Some(set), true) = (plan.tasks[task].set.map(|set| &plan.sets[set]), group.len() > 1) {
            let index = |edge: &usize| match plan.edges[*edge].child {
                Child::Task(task) => Some((task - set.members.start) as u32),
                _ => None,
            };
            let mut members: Vec<_> = group.iter().filter_map(index).collect();
            members.dedup();
            name = format!("{}[{}]", set.name, ranges(&members));
        }
        let alike = group.iter().all(|other| plan.edges[*other].params == edge.params);
        let what = if alike { self.edge(edge).unwrap_or_default() } else { "each its own".into() };
        let tasks = group.iter().filter_map(|edge| match plan.edges[*edge].child {
            Child::Task(task) => Some(task),
            _ => None,
        });
        let due = tasks.clone().filter_map(|task| plan.tasks[task].load.as_ref()?.deadline_ns());
        let due = match (due.clone().min(), due.max()) {
            (Some(least), Some(most)) if least == most => show_time(least),
            (Some(least), Some(most)) => format!("{} to {}", show_time(least), show_time(most)),
            _ => String::new(),
        };
        if tasks.clone().all(|task| self.tasks_drawn.contains(&task)) {
            return self.rows.push([format!("{start}{name}"), what, "see above".into()]);
        }
        self.tasks_drawn.extend(tasks.clone());
        let at_most = tasks.clone().any(|task| self.uncounted.tasks[task]);
        let verdicts: Vec<_> = tasks.map(|task| &self.admission.tasks[task]).collect();
        let mut found = task_found(&verdicts, &due, at_most);
        if verdicts
            .iter()
            .all(|verdict| verdict.failures.is_empty() && verdict.deadlines.is_open() && !verdict.soft)
        {
            let parents = group.iter().map(|edge| plan.edges[*edge].parent);
            let mut failing = parents.filter(|node| !self.admission.nodes[*node].failures.is_empty());
            if let Some(node) = failing.next() {
                let _ = write!(found, ", see `{}`", plan.nodes[node].name);
            }
        }
        self.rows.push([format!("{start}{name}"), what, found]);
    }

    /// "budget 2ms, period 10ms (20 %), rank 1".
    fn edge(&self, edge: &Edge) -> Option<String> {
        let policy = policies::by_number(self.plan.nodes[edge.parent].policy)?;
        let mut words: Vec<_> = params(&policy.edge_params, &edge.params).into_iter().collect();
        if let Some((budget, period)) = policies::budget_and_period(policy) {
            let share = crate::share::ratio(edge.params[budget], edge.params[period].max(1));
            if let Some(last) = words.last_mut() {
                let above = match edge.child {
                    Child::Node(node) => {
                        self.shape.parents[node].iter().map(|at| &self.plan.edges[*at]).collect()
                    }
                    Child::Task(task) => {
                        self.shape.task_parents[task].iter().map(|at| &self.plan.edges[*at]).collect()
                    }
                    Child::Set(set) => self.plan.sets[set].under.iter().collect::<Vec<_>>(),
                };
                let base = |edge: &Edge| &self.plan.nodes[edge.parent].base;
                let alike = |other: &&&Edge| base(other) == base(edge) && other.params == edge.params;
                let _ = match above.iter().filter(alike).count() {
                    0 | 1 => write!(last, " ({})", percent(&share)),
                    cpus => write!(last, " ({} on each of {cpus} CPUs)", percent(&share)),
                };
            }
        }
        if edge.rank != 0 {
            words.push(format!("rank {}", edge.rank));
        }
        if edge.when_spent {
            words.push("when spent".into());
        }
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// What ≤ means in the tree.
    fn uncounted_threads(&self, text: &mut String) {
        if !self.rows.iter().any(|row| row[2].contains("available ≤")) {
            return;
        }
        let plan = self.plan;
        let matched = plan.entries.iter().filter_map(|entry| match entry.target {
            Child::Set(set) => Some(format!("`{}`", plan.sets[set].name)),
            _ => None,
        });
        let names: Vec<_> = matched.collect();
        let who = match (names.is_empty(), plan.default_node) {
            (true, _) => "match nothing".into(),
            (false, None) => format!("match {}", names.join(", ")),
            (false, Some(_)) => format!("match {}, or nothing", names.join(", ")),
        };
        let note = format!(
            "≤: an upper bound. Any number of threads may come that {who}; the plan does not count them."
        );
        let _ = writeln!(text, "{}", wrapped(&note).trim_start());
    }

    fn write(&self, text: &mut String) {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let (first, second) = (width(0), width(1));
        for [tree, what, found] in &self.rows {
            let pad = |text: &str, width: usize| " ".repeat(width - text.chars().count());
            let line = format!("{tree}{}  {what}{}  {found}", pad(tree, first), pad(what, second));
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
}

/// Parts from which threads may take time that the plan does not count: those that match a set, or nothing. What is available to
/// these parts is a bound from above.
struct Uncounted {
    nodes: Vec<bool>,
    tasks: Vec<bool>,
}

impl Uncounted {
    fn of(plan: &Plan, shape: &Shape) -> Self {
        let (nodes, tasks) = (plan.nodes.len(), plan.tasks.len());
        let Some(busy) = with_busy_threads(plan) else {
            return Self { nodes: vec![false; nodes], tasks: vec![false; tasks] };
        };
        let busy_shape = Shape::new(&busy);
        let counted = Rates::new(plan, shape, Trust::Loads);
        let all = Rates::new(&busy, &busy_shape, Trust::Loads);
        let node = |at: usize| counted.node(plan, shape, at) != all.node(&busy, &busy_shape, at);
        let task = |at: usize| {
            let above = &shape.task_parents[at];
            counted.total(plan, shape, above, 1) != all.total(&busy, &busy_shape, above, 1)
        };
        Self { nodes: (0..nodes).map(node).collect(), tasks: (0..tasks).map(task).collect() }
    }
}

/// Sets below a node of which the plan has no members, and any number of threads may come.
fn unnumbered(plan: &Plan, node: usize) -> impl Iterator<Item = (&TaskSet, &Edge)> {
    live_sets(plan, node).filter(|(set, _)| set.members.is_empty())
}

/// The row of a replica, without its CPU.
fn is_replica(row: &[String; 3]) -> bool {
    row[0].ends_with('@')
}

/// What says something: not its preset, or a number without which the line would say nothing.
fn params(records: &[Param], values: &[u64]) -> Option<String> {
    let said = |(at, param): &(usize, &Param)| match param.kind {
        ParamKind::DurationOf(other) => values[*at] != values[other],
        // Beside a budget a priority counts only where it is the order, beside an order a seed where it draws.
        ParamKind::Count => {
            let beside = ["budget", "order"].iter().any(|name| policies::position(records, name).is_some());
            !beside || param.preset != Some(values[*at])
        }
        _ => param.preset != Some(values[*at]),
    };
    let word = |(at, param): (usize, &Param)| format!("{} {}", param.name, param.show(values[at], show_time));
    let words: Vec<_> = records.iter().enumerate().take(values.len()).filter(said).map(word).collect();
    (!words.is_empty()).then(|| words.join(", "))
}

/// `roots`: of how many CPUs it is the root; no type of guarantee says what several give together.
/// `at_most`: what is available is a bound from above.
fn node_found(verdict: &NodeVerdict, roots: usize, at_most: bool) -> String {
    let promised = match guarantee(&verdict.promises) {
        none if roots > 1 && none.ends_with(NOTHING) => format!(", receives {roots} CPUs"),
        promised => promised,
    };
    match verdict.law {
        None => {
            let available = verdict.available.as_ref().map_or("?".into(), percent_given);
            format!("  available {}{available}{promised}", if at_most { "≤ " } else { "" })
        }
        Some(_) => {
            let tick = if verdict.failures.is_empty() { "✓" } else { "✗" };
            let (asked, limit) = match (&verdict.asked, verdict.limit.as_ref().or(verdict.available.as_ref()))
            {
                (Some(asked), Some(limit)) => percents(asked, limit),
                (asked, _) => (asked.as_ref().map_or("?".into(), percent), "?".into()),
            };
            format!("{tick} demand {asked} of {limit}{promised}")
        }
    }
}

/// `due`: their deadlines in words; `at_most`: what is available is a bound from above.
fn task_found(verdicts: &[&TaskVerdict], due: &str, at_most: bool) -> String {
    let range = |of: fn(&TaskVerdict) -> &Option<Share>| {
        let shares: Option<Vec<_>> = verdicts.iter().map(|verdict| of(verdict).as_ref()).collect();
        let shares = shares.unwrap_or_default();
        Some((shares.iter().min().copied()?, shares.iter().max().copied()?))
    };
    let shown = |(least, most): (&Share, &Share), percent: fn(&Share) -> String| match percent(least) {
        least if least == percent(most) => least,
        least => format!("{least} to {}", percent(most)),
    };
    let (demand, available) = (range(|verdict| &verdict.asked), range(|verdict| &verdict.available));
    let (demand, available) = match (demand, available) {
        (Some((demand, most)), Some((available, least))) if demand == most && available == least => {
            let (demand, available) = percents(demand, available);
            (Some(demand), Some(available))
        }
        (demand, available) => {
            (demand.map(|range| shown(range, percent)), available.map(|range| shown(range, percent_given)))
        }
    };
    let mut words = Vec::new();
    words.extend(demand.map(|demand| format!("demand {demand}")));
    let at_most = if at_most { "≤ " } else { "" };
    words.extend(available.map(|available| format!("available {at_most}{available}")));
    let responses: Option<Vec<_>> =
        verdicts.iter().map(|verdict| verdict.response.and_then(tierce_analysis::Response::ns)).collect();
    let timed = responses.is_some();
    let due = if due.is_empty() { String::new() } else { format!(", deadline {due}") };
    words.extend(
        responses
            .and_then(|all| all.into_iter().max())
            .map(|ns| format!("response ≤ {}{due}", show_time(ns))),
    );
    let promises = verdicts.iter().map(|verdict| guarantee(&verdict.promises)).collect::<Vec<_>>();
    let alike = promises.windows(2).all(|pair| pair[0] == pair[1]);
    // A shown response is a promise, too.
    let says = |promised: &&String| alike && !(timed && promised.ends_with(NOTHING));
    let promised = promises.first().filter(says).cloned().unwrap_or_default();
    let open = |verdict: &&TaskVerdict| verdict.deadlines.is_open();
    let failed =
        |verdict: &&TaskVerdict| open(verdict) && !verdict.soft || verdict.needs.iter().any(Result::is_err);
    let mark = if verdicts.iter().any(failed) {
        "✗"
    } else if verdicts.iter().any(open) {
        "!"
    } else if verdicts.iter().any(|verdict| !verdict.needs.is_empty() || verdict.deadlines == Deadlines::Met)
    {
        "✓"
    } else {
        " "
    };
    let found = words.join(", ") + &promised;
    format!("{mark} {}", found.trim_start_matches(", "))
}
