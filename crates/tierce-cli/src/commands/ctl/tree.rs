//! What is in force, as a tree for people.

use serde_json::Value;
use tierce_plan::show_time;
use tierce_policy::{policies, Param, ParamKind, PolicyRecord};
use tierce_trace::units;

/// The graph as a tree, a line per part, and whoever ran outside of it.
pub fn tree(graph: &Value, each_thread: bool) -> String {
    let elapsed_ns = number(graph, "elapsed_ns");
    let mut text = format!("{}, in force for {}\n\n", word(graph, "plan"), units::time(elapsed_ns));
    let mut tree = Tree { graph, each_thread, elapsed_ns, drawn: Vec::new(), rows: Vec::new() };
    tree.rows.push(
        ["", "", "cpu", "share", "dispatches", "throttled", "replenished", "switches", "migrations"]
            .map(String::from),
    );
    for cpu in list(graph, "cpus") {
        tree.cpu(cpu);
    }
    tree.write(&mut text);
    let outside = list(graph, "outside");
    if !outside.is_empty() {
        text += "\noutside the graph (not scheduled by the plan):\n";
    }
    for thread in outside {
        let (ran, share) = (number(thread, "ran_ns"), units::percent(number(thread, "ran_ns"), elapsed_ns));
        let who = format!("{} ({}, {})", word(thread, "comm"), thread["tid"], word(thread, "class"));
        text += &format!("  {who}: {}, {share} of a CPU\n", units::time(ran));
    }
    text
}

fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or(0)
}

fn word<'v>(of: &'v Value, key: &str) -> &'v str {
    of[key].as_str().unwrap_or("?")
}

fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    of[key].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// `budget 2ms, period 10ms`: what is not its preset.
fn params(of: &Value, records: &[Param]) -> Vec<String> {
    let value = |param: &Param| match param.is_time() {
        true => of["params"][format!("{}_ns", param.name)].as_u64().map(show_time),
        false => of["params"].get(param.name).map(|is| is.to_string().trim_matches('"').to_string()),
    };
    let one = |param: &Param| {
        let is = value(param)?;
        let preset = match param.kind {
            ParamKind::DurationOf(other) => value(&records[other]),
            _ => param.preset.map(|preset| param.show(preset, show_time)),
        };
        (preset.as_ref() != Some(&is)).then(|| format!("{} {is}", param.name))
    };
    records.iter().filter_map(one).collect()
}

fn policy(name: &str) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.name == name)
}

const COLUMNS: usize = 9;

struct Tree<'g> {
    graph: &'g Value,
    each_thread: bool,
    elapsed_ns: u64,
    drawn: Vec<&'g str>,
    rows: Vec<[String; COLUMNS]>,
}

/// What several tasks, or one, have below a node.
#[derive(Default)]
struct Sum {
    supply_ns: u64,
    grants: u64,
    throttles: u64,
    replenishments: u64,
    task: Option<(u64, u64)>,
}

impl Sum {
    fn add(&mut self, edge: &Value, task: Option<&Value>) {
        self.supply_ns += number(edge, "supply_ns");
        self.grants += number(edge, "grants");
        self.throttles += number(edge, "throttles");
        self.replenishments += number(edge, "replenishments");
        if let Some(task) = task {
            let (switches, migrations) = self.task.unwrap_or_default();
            self.task = Some((switches + number(task, "switches"), migrations + number(task, "migrations")));
        }
    }
}

impl<'g> Tree<'g> {
    fn line(&mut self, name: String, what: String, sum: &Sum) {
        let count = |count: u64| if count == 0 { "-".into() } else { count.to_string() };
        let (switches, migrations) =
            sum.task.map_or(("".into(), "".into()), |task| (count(task.0), count(task.1)));
        let (cpu, share) = (units::time(sum.supply_ns), units::percent(sum.supply_ns, self.elapsed_ns));
        let [grants, throttles, replenished] = [sum.grants, sum.throttles, sum.replenishments].map(count);
        self.rows.push([name, what, cpu, share, grants, throttles, replenished, switches, migrations]);
    }

    fn cpu(&mut self, cpu: &'g Value) {
        let share = |ns: u64| units::percent(ns, self.elapsed_ns);
        let by = &cpu["stolen_by"];
        let what = format!(
            "used {}, idle {}, interference {} (interrupts {}, threads {})",
            share(number(cpu, "used_ns")),
            share(number(cpu, "idle_ns")),
            share(number(cpu, "stolen_ns")),
            share(number(by, "interrupts_ns")),
            share(number(by, "threads_ns"))
        );
        let mut title: [String; COLUMNS] = Default::default();
        title[0] = format!("CPU {}: {what}", cpu["cpu"]);
        self.rows.push(title);
        let nodes = list(self.graph, "nodes");
        if let Some(root) = nodes.iter().find(|node| node["name"] == cpu["root"]) {
            let parent = format!("cpu{}", cpu["cpu"]);
            self.node("", "└─ ", "   ", root, &parent);
        }
    }

    fn node(&mut self, above: &str, branch: &str, below: &str, node: &'g Value, parent: &str) {
        let name = word(node, "name");
        let mut what = vec![word(node, "policy").to_string()];
        let mut sum = Sum::default();
        for edge in list(node, "under").iter().filter(|edge| edge["parent"] == parent) {
            what.extend(params(edge, self.below(parent)));
            sum.add(edge, None);
        }
        let seen = self.drawn.contains(&name);
        if seen {
            what.push("see above".into());
        } else {
            what.extend(params(node, policy(word(node, "policy")).map_or(&[], |policy| &policy.node_params)));
            what.extend((node["default"] == true).then(|| "default".to_string()));
        }
        self.line(format!("{above}{branch}{name}"), what.join(", "), &sum);
        if seen {
            return;
        }
        self.drawn.push(name);
        let above = format!("{above}{below}");
        let is_below = |part: &&Value| list(part, "under").iter().any(|edge| edge["parent"] == name);
        let nodes: Vec<&Value> = list(self.graph, "nodes").iter().filter(is_below).collect();
        let leaves = self.leaves(name);
        let count = nodes.len() + leaves.len();
        for (at, child) in nodes.into_iter().enumerate() {
            let (branch, below) = if at + 1 == count { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.node(&above, branch, below, child, name);
        }
        let last = leaves.len();
        for (at, (name, what, sum)) in leaves.into_iter().enumerate() {
            let branch = if at + 1 == last { "└─ " } else { "├─ " };
            self.line(format!("{above}{branch}{name}"), what, &sum);
        }
    }

    /// Parameters of edges below a node.
    fn below(&self, node: &str) -> &'static [Param] {
        let node = list(self.graph, "nodes").iter().find(|other| other["name"] == node);
        node.and_then(|node| policy(word(node, "policy"))).map_or(&[], |policy| &policy.edge_params)
    }

    /// Tasks, sets and threads directly below a node: name, parameters, numbers.
    fn leaves(&self, node: &str) -> Vec<(String, String, Sum)> {
        let (mut leaves, records) = (Vec::new(), self.below(node));
        let edges = |part: &'g Value| list(part, "under").iter().filter(move |edge| edge["parent"] == node);
        let all = list(self.graph, "tasks");
        let single = |task: &'g Value, name: &str| {
            let mut sum = Sum::default();
            edges(task).for_each(|edge| sum.add(edge, Some(task)));
            let mut what: Vec<String> = edges(task).flat_map(|edge| params(edge, records)).collect();
            what.extend(
                task["misses"].as_u64().map(|misses| format!("{} jobs, {misses} missed", task["jobs"])),
            );
            let who = match (task["comm"].as_str(), task["tid"].as_u64()) {
                (Some(comm), Some(tid)) if comm == name => format!("{name} ({tid})"),
                (Some(comm), Some(tid)) => format!("{name} ({tid} {comm})"),
                _ => format!("{name} (no thread)"),
            };
            (who, what.join(", "), sum)
        };
        for task in all.iter().filter(|task| task["name"].is_string() && edges(task).next().is_some()) {
            leaves.push(single(task, word(task, "name")));
        }
        let sets = list(self.graph, "sets").iter().filter(|set| edges(set).next().is_some());
        let mut group = |set: &Value, title: &str, what: Vec<String>| {
            let of = |task: &&'g Value| {
                task["name"].is_null() && task["set"] == *set && edges(task).next().is_some()
            };
            let members: Vec<&'g Value> = all.iter().filter(of).collect();
            if self.each_thread && !members.is_empty() {
                leaves.extend(
                    members
                        .iter()
                        .map(|task| single(task, if title.is_empty() { word(task, "comm") } else { title })),
                );
                return;
            }
            let mut sum = Sum { task: Some((0, 0)), ..Sum::default() };
            members.iter().for_each(|task| edges(task).for_each(|edge| sum.add(edge, Some(task))));
            let s = if members.len() == 1 { "" } else { "s" };
            let threads = format!("{} thread{s}", members.len());
            if !title.is_empty() {
                leaves.push((format!("{title}: {threads}"), what.join(", "), sum));
            } else if !members.is_empty() {
                leaves.push((threads, String::new(), sum));
            }
        };
        for set in sets {
            group(
                &set["name"],
                word(set, "name"),
                edges(set).flat_map(|edge| params(edge, records)).collect(),
            );
        }
        group(&Value::Null, "", Vec::new());
        leaves
    }

    fn write(&self, text: &mut String) {
        let is_title = |row: &&[String; COLUMNS]| row[2..].iter().all(String::is_empty);
        let width = |column: usize| {
            self.rows
                .iter()
                .filter(|row| !is_title(row))
                .map(|row| row[column].chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..COLUMNS).map(width).collect();
        for row in &self.rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let pad = " ".repeat(widths[column].saturating_sub(cell.chars().count()));
                let end = if column + 1 < COLUMNS { "  " } else { "" };
                line += &if column < 2 { format!("{cell}{pad}{end}") } else { format!("{pad}{cell}{end}") };
            }
            *text += line.trim_end();
            text.push('\n');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edge(parent: &str, params: Value) -> Value {
        json!({ "parent": parent, "params": params, "supply_ns": 250_000_000, "grants": 4, "throttles": 3, "replenishments": 2 })
    }

    #[test]
    fn a_tree_of_what_is_in_force() {
        let thread = |set: Value, tid: u32| {
            let under = [edge("rest", json!({ "weight": 100, "warp_ns": 0 }))];
            json!({ "name": null, "set": set, "tid": tid, "comm": "make", "switches": 5, "migrations": 1, "misses": null, "under": under })
        };
        let budget = json!({ "budget_ns": 2_000_000, "period_ns": 10_000_000, "deadline_ns": 10_000_000 });
        let graph = json!({
            "plan": "p.toml",
            "elapsed_ns": 1_000_000_000u64,
            "cpus": (0..2).map(|cpu| json!({ "cpu": cpu, "root": "top", "used_ns": 500_000_000, "idle_ns": 400_000_000,
                "stolen_ns": 100_000_000, "stolen_by": { "interrupts_ns": 90_000_000, "threads_ns": 10_000_000 } })).collect::<Vec<_>>(),
            "outside": [{ "tid": 15, "comm": "irq/9", "class": "SCHED_FIFO", "ran_ns": 10_000_000 }],
            "nodes": [
                { "name": "top", "policy": "reservation", "params": {}, "default": false, "under": [edge("cpu0", json!({})), edge("cpu1", json!({}))] },
                { "name": "rest", "policy": "fair", "params": { "quantum_ns": 1_000_000 }, "default": true, "under": [edge("top", budget.clone())] },
            ],
            "sets": [{ "name": "build", "under": [{ "parent": "rest", "params": { "weight": 50, "warp_ns": 0 } }] }],
            "tasks": [
                { "name": "audio", "set": null, "tid": 7, "comm": "audio", "jobs": 9, "misses": 1, "switches": 5, "migrations": 0, "under": [edge("top", budget)] },
                thread(json!("build"), 8), thread(json!("build"), 9), thread(Value::Null, 10),
            ],
        });
        let text = tree(&graph, false);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "CPU 0: used 50.00 %, idle 40.00 %, interference 10.00 % (interrupts 9.00 %, threads 1.00 %)",
            "└─ top reservation 250 ms 25.00 % 4 3 2",
            "├─ rest fair, budget 2ms, period 10ms, quantum 1ms, default 250 ms 25.00 % 4 3 2",
            "│ ├─ build: 2 threads weight 50 500 ms 50.00 % 8 6 4 10 2",
            "│ └─ 1 thread 250 ms 25.00 % 4 3 2 5 1",
            "└─ audio (7) budget 2ms, period 10ms, 9 jobs, 1 missed 250 ms 25.00 % 4 3 2 5 -",
            "└─ top reservation, see above 250 ms 25.00 % 4 3 2",
            "irq/9 (15, SCHED_FIFO): 10 ms, 1.00 % of a CPU",
        ] {
            assert!(lines.iter().any(|other| other == line), "{line}\n{text}");
        }
        assert!(tree(&graph, true).contains("build (8 make)"));
    }
}
