//! Plans, random operations on them, and what a plan means: for tests. Taken in by `#[path]`, beside a `draw`.

use super::draw::Draw;
use crate::{policies, Below, Child, Edit, Fault, Keys, Matcher, Options, Placed, Plan, Standing, Unit};
use std::path::PathBuf;

/// Each on its lowest CPU, whether it fits there or not.
pub fn lowest(_: Plan, units: &[Unit], _: &Standing) -> Result<Placed, Vec<Fault>> {
    Ok(units.iter().map(|unit| (unit.name.clone(), unit.cpus[0])).collect())
}

/// A plan of one CPU to which much can be done, and forms of texts.
const FORMS: &str = r#"
defaults.reservation = { deadline = "9ms", period = "10ms" }
defaults.fair = { weight = 7 }
[node.top]
policy = "fixed-priority"
cpu = 0
[node.rt]
policy = "reservation"
under.top = { priority = 2 }
[node.rest]
policy = "fair"
default = true
under.top = { priority = 0 }
each = { weight = 10 }
[node.soft]
policy = "reservation"
replenishment = "soft"
under.top = { priority = 1 }
[task.x]
under.rt = { budget = "1ms", period = "10ms" }
[task.a]
under.rt = { budget = "1ms", period = "20ms", deadline = "20ms" }
match = { comm = "a" }
[task.b.under.rest]
weight = 3
[task.c]
under.rt = { budget = "1ms", soft = "rest" }
[task.d]
under.rest = [{ weight = 2 }]
[tasks.e]
under.rest = {}
match = { comm = "e*" }
"#;

/// A plan of several CPUs, where most of it has room on each.
const SEVERAL: &str = r#"
[node.top]
policy = "fixed-priority"
per_cpu = true
[node.rt]
policy = "reservation"
per_cpu = true
under.top = { priority = 2 }
[node.rest]
policy = "fair"
default = true
under.top = { priority = 0 }
[node.edf]
policy = "edf"
per_cpu = true
under.top = { priority = 1 }
[task.a]
under.rt = { cpu = 0, budget = "1ms", period = "20ms" }
match = { comm = "a" }
[task.b]
under.rt = { cpu = "any", budget = "2ms", period = "10ms" }
match = { comm = "b" }
[node.c]
policy = "fair"
under.rt = { cpu = "any", budget = "1ms", period = "10ms" }
[tasks.d]
under.c = { weight = 5 }
match = { comm = "d*" }
"#;

/// Plans of the repository, for machines of one CPU and of two, and some more.
pub fn plans() -> Vec<Plan> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in ["examples", "tests/plans", "tests/vm"] {
        files.extend(std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    files.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    files.sort();
    let read = |file: &PathBuf| {
        let cpus = [1, 2].into_iter();
        cpus.filter_map(|cpus| Plan::read(file, Options { cpus }, lowest).ok()).collect::<Vec<_>>()
    };
    let mut plans: Vec<Plan> = files.iter().flat_map(read).collect();
    assert!(plans.len() > 60, "{}", plans.len());
    for _ in 0..20 {
        plans.push(Plan::of_text(FORMS, "forms.toml", Options { cpus: 1 }, lowest).unwrap());
        plans.push(Plan::of_text(SEVERAL, "several.toml", Options { cpus: 4 }, lowest).unwrap());
    }
    plans
}

/// The name that the text has for it.
fn name(plan: &Plan, child: Child) -> String {
    match child {
        Child::Node(node) => plan.nodes[node].base.clone(),
        Child::Task(task) => {
            let set = plan.tasks[task].set;
            set.map_or(plan.tasks[task].name.clone(), |set| plan.sets[set].name.clone())
        }
        Child::Set(set) => plan.sets[set].name.clone(),
    }
}

/// Keys for an edge below a node of that policy, or for such a node; now and then strange ones.
fn keys(policy: u32, of_node: bool, draw: &mut Draw) -> Keys {
    let policy = policies::by_number(policy).unwrap();
    let params = if of_node { &policy.node_params } else { &policy.edge_params };
    let mut keys = Keys::new();
    for param in params {
        if draw.below(3) == 0 && (param.preset.is_some() || draw.below(4) == 0) {
            continue;
        }
        let text = match draw.below(24) {
            0 => ["", "nice", "true", "\"", "1e3", "5ms", "0.25"][draw.below(7)].to_string(),
            _ if param.is_time() => {
                format!("{}ms", 1 + draw.below(4) * if param.name == "budget" { 1 } else { 10 })
            }
            _ if !param.choices.is_empty() => param.choices[draw.below(param.choices.len())].to_string(),
            _ => draw.below(100).to_string(),
        };
        keys.push((param.name.to_string(), text));
    }
    if draw.below(20) == 0 {
        let strange = ["rank", "cpu", "when", "soft", "nonsense", "concurrency"];
        keys.push((strange[draw.below(strange.len())].to_string(), draw.below(3).to_string()));
    }
    keys
}

/// Of CPUs where something may be placed.
fn cpus(draw: &mut Draw) -> Option<Vec<u32>> {
    let lists = [&[][..], &[], &[], &[0], &[1], &[1, 2], &[0, 1, 2, 3]];
    (draw.below(4) > 0).then(|| lists[draw.below(lists.len())].to_vec())
}

/// One that can often be done.
pub fn edit(plan: &Plan, draw: &mut Draw) -> Edit {
    let edges: Vec<_> = plan.edges.iter().chain(plan.sets.iter().flat_map(|set| &set.under)).collect();
    if edges.is_empty() {
        return Edit::Destroy { name: "nobody".into(), below: Below::Nothing };
    }
    let edge = edges[draw.below(edges.len())];
    let some = |draw: &mut Draw| plan.nodes[draw.below(plan.nodes.len())].clone();
    let parent = &plan.nodes[edge.parent];
    let new = format!("new-{}", draw.below(6));
    // Of the jobs of a task; now and then of what has none.
    let jobs = |draw: &mut Draw| {
        let text = ["2ms", "7 ms", "none", "0ms", "3"][draw.below(5)];
        (draw.below(4) == 0).then(|| ("job_deadline".to_string(), text.to_string()))
    };
    match draw.below(12) {
        0..=1 => {
            let above = some(draw);
            let kind = policies::policies()[draw.below(policies::policies().len())].number;
            let kind =
                if draw.below(2) == 0 { plan.nodes[draw.below(plan.nodes.len())].policy } else { kind };
            let own: Keys = if draw.below(3) == 0 { keys(kind, true, draw) } else { Keys::new() };
            let keys = keys(above.policy, false, draw).into_iter().chain(own).collect();
            let policy = policies::by_number(kind).map(|policy| policy.name.to_string());
            let cpus = cpus(draw);
            Edit::Create { name: new, policy, under: above.base, keys, who: Vec::new(), cpus }
        }
        2..=4 => {
            let (above, tid) = (some(draw), draw.below(99).to_string());
            let keys = keys(above.policy, false, draw).into_iter().chain(jobs(draw)).collect();
            let key = if draw.below(9) == 0 { "pid" } else { "tid" };
            let cpus = cpus(draw);
            let who = vec![vec![(key.to_string(), tid)]];
            Edit::Create { name: new, policy: None, under: above.base, keys, who, cpus }
        }
        5 => {
            let name = if draw.below(2) == 0 { new } else { name(plan, edge.child) };
            Edit::Destroy { name, below: [Below::Nothing, Below::Threads, Below::All][draw.below(3)] }
        }
        6..=8 => {
            let to = some(draw);
            let alike = to.policy == parent.policy && draw.below(2) == 0;
            let keys = if alike { Keys::new() } else { keys(to.policy, false, draw) };
            let from = (draw.below(3) == 0).then(|| parent.base.clone());
            Edit::Move {
                name: name(plan, edge.child),
                tasks: draw.below(20) == 0,
                from,
                under: to.base,
                keys,
            }
        }
        _ => {
            let mut keys = keys(parent.policy, draw.below(20) == 0, draw);
            keys.retain(|_| draw.below(2) == 0);
            keys.extend(jobs(draw));
            let under = (draw.below(3) == 0).then(|| parent.base.clone());
            Edit::Set { name: name(plan, edge.child), under, keys, who: Vec::new() }
        }
    }
}

/// All that a plan says, part by part, without the places in its text and the order of what has none.
pub fn meaning(plan: &Plan) -> Vec<String> {
    let node = |node: usize| &plan.nodes[node].name;
    let needs = |needs: &[crate::Need]| needs.iter().map(|need| need.text.clone()).collect::<Vec<_>>();
    let edge = |edge: &crate::Edge| {
        let is = (edge.rank, edge.when_spent, edge.spread, edge.placed, edge.given);
        format!("edge {} {} {:?} {is:?}", node(edge.parent), plan.child_name(edge.child), edge.params)
    };
    let nodes = plan.nodes.iter().map(|about| {
        let family = about.family.map(node);
        let is = (about.replica, family, about.policy, about.params, about.concurrency, &about.roots);
        format!("node {} {} {is:?} {} {:?}", about.name, about.base, about.default, needs(&about.needs))
    });
    let tasks = plan.tasks.iter().map(|task| {
        let set = task.set.map(|set| &plan.sets[set].name);
        let is = (&task.load, task.affinity, task.job_deadline_ns);
        format!("task {} {set:?} {is:?} {:?}", task.name, needs(&task.needs))
    });
    let sets = plan.sets.iter().map(|set| {
        let edges: Vec<String> = set.ways().flatten().map(edge).collect();
        let members: Vec<&str> = set.members.clone().map(|task| &plan.tasks[task].name[..]).collect();
        let is = (set.affinity, set.job_deadline_ns);
        format!("set {} {members:?} {edges:?} {is:?} {:?}", set.name, needs(&set.needs))
    });
    let mut all: Vec<String> = nodes.chain(tasks).chain(sets).chain(plan.edges.iter().map(edge)).collect();
    all.sort();
    let entry = |entry: &crate::MatchEntry| {
        let any: &[Matcher] = &entry.any;
        format!("entry {} {any:?}", plan.child_name(entry.target))
    };
    all.extend(plan.entries.iter().map(entry)); // the first that fits counts
    all.push(format!("default {:?} {:?}", plan.default_node.map(node), plan.default_params()));
    all.push(format!("{} {:?} {:?}", plan.machine.cpus, plan.run, plan.machine.topology));
    all
}
