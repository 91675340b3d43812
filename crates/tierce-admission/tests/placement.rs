//! `cpu = "any"`: where tasks go, and that the plan is then the one that names their CPUs.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../tierce-plan/tests/engine/mod.rs"]
mod engine;

use draw::Draw;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;
use tierce_admission::PlanExt;
use tierce_plan::{Change, Edge, Options, Plan, Source, Sources, Standing};

fn plan_on(text: &str, cpus: u32) -> Plan {
    Plan::parse_with(text, "plan.toml", Options { cpus }).unwrap_or_else(|faults| panic!("{faults}\n{text}"))
}

/// The plan of another text in place of this one.
fn changed(plan: &Plan, text: &str) -> Result<Plan, tierce_plan::Faults> {
    let options = Options { cpus: plan.machine.cpus };
    let sources = Sources(vec![Arc::new(Source::new("plan.toml", text))]);
    Plan::from_sources_after(&sources, options, &Standing::of(plan))
}

/// "audio 1, video 0": the CPU of each part that was placed.
fn placed(plan: &Plan) -> String {
    let edges = plan.edges.iter().filter(|edge| edge.placed);
    let word =
        |edge: &Edge| Some(format!("{} {}", plan.child_name(edge.child), plan.nodes[edge.parent].replica?));
    let mut words: Vec<_> = edges.filter_map(word).collect();
    words.dedup();
    words.join(", ")
}

fn edges(plan: &Plan) -> Vec<String> {
    let edge = |edge: &Edge| format!("{:?}", (edge.parent, edge.child, edge.params, edge.way()));
    plan.edges.iter().map(edge).collect()
}

/// The first line of what is wrong.
fn refused(text: &str, cpus: u32) -> String {
    let faults = Plan::parse_with(text, "plan.toml", Options { cpus }).unwrap_err();
    faults.to_string().lines().next().unwrap().to_string()
}

/// Reservations above a default node on every CPU, and these parts.
fn with(parts: &str) -> String {
    let nodes = r#"
        node.top = { policy = "fixed-priority", per_cpu = true }
        node.rt = { policy = "reservation", per_cpu = true, under.top = { priority = 1 } }
        node.rest = { policy = "fair", default = true, under.top = { priority = 0 } }
    "#;
    format!("{nodes}\n{parts}")
}

/// `task.NAME` for each line "NAME CPU BUDGET [more]", in ms of 10.
fn tasks(lines: &[&str]) -> String {
    let task = |line: &&str| {
        let (name, rest) = line.split_once(' ').unwrap();
        let (cpu, rest) = rest.split_once(' ').unwrap();
        let (budget, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let cpu = if cpu == "any" { "\"any\"" } else { cpu };
        format!("[task.{name}]\nunder.rt = {{ cpu = {cpu}, budget = \"{budget}ms\", period = \"10ms\" }}\n{more}\n")
    };
    with(&lines.iter().map(task).collect::<String>())
}

#[test]
fn six_tasks_share_two_cpus() {
    let six = "tasks.six = { count = 6, under.rt = { cpu = \"any\", budget = \"2ms\", period = \"10ms\" } }";
    let plan = plan_on(&with(six), 2);
    assert_eq!(placed(&plan), "six[0] 0, six[1] 1, six[2] 0, six[3] 1, six[4] 0, six[5] 1");
    assert!(plan.admit().holds);
    engine::build(&plan).unwrap();
    let (outline, json) = (plan.admit().outline(&plan), plan.admit().to_json(&plan));
    for line in ["│  └─ six[0, 2, 4]", "placed on CPU 0: six[0, 2, 4]\nplaced on CPU 1: six[1, 3, 5]\n"]
    {
        assert!(outline.contains(line), "{line}\n{outline}");
    }
    let edge = json["edges"].as_array().unwrap().iter().find(|edge| edge["child"] == "six[1]").unwrap();
    assert_eq!((&edge["parent"], &edge["placed"]), (&"rt@1".into(), &1.into()));
    assert_eq!(placed(&plan_on(&with(six), 8)), "six[0] 0, six[1] 1, six[2] 2, six[3] 3, six[4] 4, six[5] 5");
    let line = refused(&with(six), 1);
    assert!(line.contains("no CPU has room for `six[5]` below `rt`: 20 %, bound CPU 0: 0 % left"), "{line}");
}

#[test]
fn tasks_go_where_there_is_room() {
    for (lines, cpus, expected) in [
        // Larger ones first, each to the CPU of which least is used.
        (&["a any 3", "b any 4", "c any 5", "d any 6"][..], 2, "a 0, b 1, c 1, d 0"),
        (&["a any 2", "b any 2", "c any 2"], 4, "a 0, b 1, c 2"),
        // What has a CPU is counted, wherever it stands in the text.
        (&["a any 2", "fixed 0 3"], 2, "a 1"),
        (&["a any 5", "b any 5", "fixed 1 6"], 2, "a 0, b 0"),
        // Where a task may run counts.
        (&["a any 2 affinity = [1]", "b any 3"], 2, "a 1, b 0"),
        (&["a any 6 affinity = [1]", "b any 7"], 2, "a 1, b 0"),
        // The fullest CPU first where the emptiest first does not do.
        (&["a any 6", "b any 5", "c any 4", "d any 3", "e any 2"], 2, "a 0, b 1, c 0, d 1, e 1"),
    ] {
        assert_eq!(placed(&plan_on(&tasks(lines), cpus)), expected, "{lines:?}");
    }
    // There is a way (5 + 3 + 2 and 4 + 2 + 2 + 2), but neither finds it.
    let hard = ["a any 5", "b any 4", "c any 3", "d any 2", "e any 2", "f any 2", "g any 2"];
    assert!(refused(&tasks(&hard), 2).contains("no CPU has room for `g`"));
}

/// Below other policies, as far as they refuse: shares, deadlines. Else by weight or work.
#[test]
fn each_policy_has_its_measure() {
    let plan = |policy: &str, edges: [&str; 4], loads: [&str; 4]| {
        let rest = match policy {
            "uniform" => "share = 0.1",
            "briefly-blocked" => "credit = 0.1",
            "mixed-criticality" => "work = \"1ms\", period = \"1s\"",
            _ => "",
        };
        let mut text = format!(
            "node.top = {{ policy = \"{policy}\", per_cpu = true }}\n\
             node.rest = {{ policy = \"fair\", default = true, under.top = {{ {rest} }} }}\n"
        );
        for (name, (edge, load)) in ["a", "b", "c", "d"].iter().zip(edges.iter().zip(loads)) {
            let _ =
                writeln!(text, "task.{name} = {{ under.top = {{ cpu = \"any\"{edge} }}, load = {load} }}");
        }
        Plan::parse_with(&text, "plan.toml", Options { cpus: 2 })
    };
    let busy = ["\"busy\""; 4];
    let job = |ms: [u32; 4]| ms.map(|ms| format!("{{ period = \"10ms\", work = \"{ms}ms\" }}"));
    let shares = [", share = 0.5", ", share = 0.4", ", share = 0.4", ", share = 0.3"];
    assert_eq!(placed(&plan("uniform", shares, busy).unwrap()), "a 0, b 1, c 1, d 0");
    let shares = [", share = 0.7", ", share = 0.7", ", share = 0.3", ", share = 0.1"];
    let faults = plan("uniform", shares, busy).unwrap_err().to_string();
    assert!(
        faults.contains("room for `c` below `top`: 30 %, bound CPU 0, 1: 20 % left (hint: 20 % would"),
        "{faults}"
    );
    let works = job([6, 5, 4, 3]);
    let works = works.each_ref().map(String::as_str);
    for policy in
        ["edf", "fixed-priority", "round-robin", "time-sharing", "briefly-blocked", "mixed-criticality"]
    {
        let edge = match policy {
            "briefly-blocked" => ", credit = 0.5",
            "mixed-criticality" => ", work = \"6ms\", period = \"10ms\"",
            _ => "",
        };
        assert_eq!(placed(&plan(policy, [edge; 4], works).unwrap()), "a 0, b 1, c 1, d 0", "{policy}");
    }
    let works = job([6, 6, 5, 1]);
    let faults = plan("edf", [""; 4], works.each_ref().map(String::as_str)).unwrap_err().to_string();
    assert!(faults.contains("room for `c` below `top`: 50 %, bound CPU 0, 1: 40 % left"), "{faults}");
    for weight in ["weight", "importance"] {
        let edges = [40, 30, 20, 20].map(|number| format!(", {weight} = {number}"));
        let policy = if weight == "weight" { "fair" } else { "multiburst" };
        let plan = plan(policy, edges.each_ref().map(String::as_str), busy).unwrap();
        assert_eq!(placed(&plan), "a 0, b 1, c 1, d 0", "{policy}");
    }
}

/// A table of members that names the CPUs is the same plan.
#[test]
fn members_are_placed_as_if_a_table_named_their_cpus() {
    let set = |members: &str, cpu: &str| {
        let edge = "budget = \"2ms\", period = \"10ms\", soft = \"rest\"";
        with(&format!("tasks.six = {{ {members}, under.rt = {{ {cpu}{edge} }}, load = \"busy\" }}"))
    };
    let plan = plan_on(&set("count = 6", "cpu = \"any\", "), 2);
    let sources = [
        ("plan.toml", set("csv = \"six.csv\"", "")),
        ("six.csv", "under.rt.cpu\n0\n1\n0\n1\n0\n1\n".to_string()),
    ];
    let sources = sources.map(|(name, text)| Arc::new(Source::new(name, text)));
    let named = Plan::from_sources(&Sources(sources.to_vec()), Options { cpus: 2 });
    let named = named.unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(edges(&plan), edges(&named));
    assert_eq!(format!("{:?}", plan.admit()), format!("{:?}", named.admit()));
}

/// Other edges of what is placed are those that it has on that CPU.
#[test]
fn what_is_placed_has_all_its_edges_there() {
    let plan = plan_on(
        &with(
            r#"
            task.first.under.rt = { cpu = 0, budget = "5ms", period = "10ms" }
            [task.video]
            under.rt = { cpu = "any", budget = "4ms", period = "10ms", soft = "rest" }
            [task.both]
            under.rt = { cpu = "any", budget = "4ms", period = "10ms" }
            under.top = { cpu = "any", priority = 0 }
            [node.player]
            policy = "fair"
            under.rt = { cpu = "any", budget = "1ms", period = "10ms" }
            [tasks.threads]
            count = 3
            under.player = {}
        "#,
        ),
        2,
    );
    assert_eq!(placed(&plan), "video 1, both 1, player 0");
    let above = |name: &str| {
        let edges = plan.edges.iter().filter(|edge| plan.child_name(edge.child) == name);
        edges.map(|edge| plan.nodes[edge.parent].name.as_str()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!([above("video"), above("both"), above("player")], ["rt@1 rest@1", "rt@1 top@1", "rt@0"]);
    assert!(plan.admit().holds, "{}", plan.admit().outline(&plan));
    engine::build(&plan).unwrap();
}

/// A set of threads that come later may be on each of these CPUs.
#[test]
fn a_live_set_is_known_on_every_cpu() {
    let text = with(
        r#"
        [tasks.players]
        under.rt = { cpu = "any", budget = "4ms", period = "10ms", soft = "rest" }
        affinity = [0, 2]
        match = { comm = "player*" }
    "#,
    );
    let plan = plan_on(&text, 4);
    let parents =
        |edges: &[Edge]| edges.iter().map(|edge| plan.nodes[edge.parent].name.clone()).collect::<Vec<_>>();
    let set = &plan.sets[0];
    assert_eq!(parents(&set.under), ["rt@0", "rest@0"]);
    assert_eq!(set.elsewhere.iter().map(|way| parents(way)).collect::<Vec<_>>(), [["rt@2", "rest@2"]]);
    let outline = plan.admit().outline(&plan);
    assert!(outline.contains("placed when its threads come: players\n"), "{outline}");
    // Any number of them may come to each of the two, and to no other.
    let promised = |name: &str| {
        let node = plan.nodes.iter().position(|node| node.name == name).unwrap();
        plan.admit().nodes[node].promises[0].guarantee.to_string()
    };
    assert_eq!(
        ["rest@0", "rest@1", "rest@2", "rest@3"].map(promised),
        ["NULL", "PSBE 1 0ns", "NULL", "PSBE 1 0ns"]
    );
}

#[test]
fn what_was_placed_stays_if_it_can() {
    let before = plan_on(&tasks(&["a any 3", "b any 2"]), 2);
    assert_eq!(placed(&before), "a 0, b 1");
    for (lines, expected) in [
        // By itself the larger one would be first.
        (&["a any 3", "b any 4"][..], "a 0, b 1"),
        (&["c any 8", "a any 3", "b any 2"], "c 1, a 0, b 1"),
        (&["b any 2"], "b 1"),
        (&["a any 3", "b any 2", "c any 6"], "a 0, b 1, c 1"),
        // One moves, since else `c` would have no room.
        (&["a any 3", "b any 2", "c any 9"], "a 0, b 0, c 1"),
        (&["a any 3", "b any 2", "fixed 1 9"], "a 0, b 0"),
        // It may no longer be where it was.
        (&["a any 3 affinity = [1]", "b any 2"], "a 1, b 1"),
    ] {
        let after = changed(&before, &tasks(lines)).unwrap_or_else(|faults| panic!("{faults}"));
        assert_eq!(placed(&after), expected, "{lines:?}");
    }
}

/// `tierce apply` replaces a task that moves, and nothing else.
#[test]
fn only_what_moves_is_replaced() {
    let before = plan_on(&tasks(&["a any 3", "b any 2"]), 2);
    for (lines, differences) in [
        (&["a any 3", "b any 2", "c any 6"][..], &["+ task c: below rt@1 (budget 6ms, period 10ms)"][..]),
        (
            &["a any 3", "b any 2", "fixed 1 9"],
            &[
                "> task b: below rt@1 (budget 2ms, period 10ms) -> below rt@0 (budget 2ms, period 10ms)",
                "+ task fixed: below rt@1 (budget 9ms, period 10ms)",
            ],
        ),
    ] {
        let after = changed(&before, &tasks(lines)).unwrap_or_else(|faults| panic!("{faults}"));
        let change = Change::between(&before, &after).unwrap();
        let words: Vec<_> = change.differences().iter().map(|difference| difference.to_string()).collect();
        assert_eq!(words, differences, "{lines:?}");
    }
}

/// A set that names its CPU is another one: its threads may be elsewhere.
#[test]
fn a_live_set_that_no_longer_goes_anywhere_is_replaced() {
    let set = |cpu: &str| {
        let text = format!("[tasks.s]\nunder.rt = {{ cpu = {cpu}, budget = \"6ms\", period = \"10ms\" }}\nmatch.comm = \"s\"");
        plan_on(&with(&text), 2)
    };
    let differences = |old: &str, new: &str| {
        let change = Change::between(&set(old), &set(new)).unwrap();
        change.differences().iter().map(|difference| difference.to_string()).collect::<Vec<_>>()
    };
    assert!(differences("\"any\"", "\"any\"").is_empty());
    let to_one =
        "> set s: below rt@0 (budget 6ms, period 10ms), cpu any -> below rt@0 (budget 6ms, period 10ms)";
    assert_eq!(differences("\"any\"", "0"), [to_one]);
    let to_any =
        "> set s: below rt@0 (budget 6ms, period 10ms) -> below rt@0 (budget 6ms, period 10ms), cpu any";
    assert_eq!(differences("0", "\"any\""), [to_any]);
}

/// Threads that are members of a set in force take room, though no plan counts them.
#[test]
fn threads_of_sets_are_counted() {
    let set = "[tasks.players]\nunder.rt = { cpu = \"any\", budget = \"6ms\", period = \"10ms\" }\nmatch = { comm = \"p\" }\n";
    let before = plan_on(&with(set), 2);
    let mut standing = Standing::of(&before);
    let after = |standing: &Standing| {
        let text = with(&format!(
            "{set}[task.a]\nunder.rt = {{ cpu = \"any\", budget = \"5ms\", period = \"10ms\" }}"
        ));
        let sources = Sources(vec![Arc::new(Source::new("plan.toml", text))]);
        Plan::from_sources_after(&sources, Options { cpus: 2 }, standing)
    };
    assert_eq!(placed(&after(&standing).unwrap()), "a 0");
    standing.member(&before, 0, &before.sets[0].under);
    assert_eq!(placed(&after(&standing).unwrap()), "a 1");
    standing.member(&before, 0, &before.sets[0].elsewhere[0]);
    let faults = after(&standing).unwrap_err().to_string();
    assert!(
        faults.contains("no CPU has room for `a` below `rt`: 50 %, bound CPU 0, 1: 40 % left"),
        "{faults}"
    );
}

/// As many threads as the plan counts are counted once.
#[test]
fn members_stand_for_threads() {
    let set = "tasks.players = { count = 3, under.rt = { cpu = \"any\", budget = \"3ms\", period = \"10ms\" }, match.comm = \"p\" }\n";
    let before = plan_on(&with(set), 2);
    assert_eq!(placed(&before), "players[0] 0, players[1] 1, players[2] 0");
    let text =
        with(&format!("{set}task.a.under.rt = {{ cpu = \"any\", budget = \"6ms\", period = \"10ms\" }}"));
    let sources = Sources(vec![Arc::new(Source::new("plan.toml", text))]);
    let mut standing = Standing::of(&before);
    (0..3).for_each(|_| standing.member(&before, 0, &before.sets[0].elsewhere[0]));
    let after = Plan::from_sources_after(&sources, Options { cpus: 2 }, &standing).unwrap();
    assert_eq!(placed(&after), "players[0] 1, players[1] 1, players[2] 1, a 0");

    // They do not move for others: one on CPU 0 and two on CPU 1 leave 70 % and 40 %.
    let text =
        with(&format!("{set}task.a.under.rt = {{ cpu = \"any\", budget = \"8ms\", period = \"10ms\" }}"));
    let sources = Sources(vec![Arc::new(Source::new("plan.toml", text))]);
    let mut standing = Standing::of(&before);
    standing.member(&before, 0, &before.sets[0].under);
    (0..2).for_each(|_| standing.member(&before, 0, &before.sets[0].elsewhere[0]));
    let faults = Plan::from_sources_after(&sources, Options { cpus: 2 }, &standing).unwrap_err().to_string();
    assert!(faults.contains("no CPU has room for `a` below `rt`: 80 %"), "{faults}");
}

// ---- random plans -------------------------------------------------------------------------------------------------------

/// Something below the node `rt`.
#[derive(Clone)]
struct Part {
    name: String,
    /// `None`: any.
    cpu: Option<u32>,
    affinity: Option<u32>,
    /// How much of 1000 it asks for, and what its edge says.
    share: u64,
    edge: String,
    load: String,
    is_node: bool,
}

impl Part {
    fn text(&self, cpu: Option<u32>) -> String {
        let Part { name, edge, load, .. } = self;
        let cpu = cpu.map_or("\"any\"".into(), |cpu| cpu.to_string());
        let mut text = match self.is_node {
            true => format!("[node.{name}]\npolicy = \"fair\"\n"),
            false => format!("[task.{name}]\nload = {load}\n"),
        };
        if let Some(cpu) = self.affinity {
            let _ = writeln!(text, "affinity = [{cpu}]");
        }
        text + &format!("under.rt = {{ cpu = {cpu}, {edge} }}\n")
    }
}

/// What is below `rt`, and its node.
struct Random {
    cpus: u32,
    costs: &'static str,
    node: String,
    parts: Vec<Part>,
}

impl Random {
    fn new(draw: &mut Draw) -> Random {
        let cpus = 1 + draw.below(4) as u32;
        let kind = draw.below(6);
        let costs = match draw.below(3) {
            0 => "switch = \"30us\", timer = \"5us\", level = \"2us\", migration = \"10us\"",
            _ => "",
        };
        let node = match kind {
            0 => "policy = \"uniform\"",
            1 => "policy = \"edf\"",
            2 => "policy = \"reservation\", cap = 0.8",
            3 => "policy = \"reservation\", order = \"fixed-priority\", replenishment = \"periodic\"",
            _ => "policy = \"reservation\"",
        };
        let count = 2 + draw.below(3 * cpus as usize + 2);
        let part = |at: usize, draw: &mut Draw| {
            let period = [10, 20, 40, 50][draw.below(4)];
            let budget = 1 + draw.below(period * 6 / 10) as u64;
            let period = period as u64;
            let deadline = match draw.below(3) {
                0 if [4, 5].contains(&kind) => budget + draw.below((period - budget) as usize + 1) as u64,
                _ => period,
            };
            let edge = match kind {
                0 => format!("share = \"0.{:03}\"", 1000 * budget / period),
                1 => String::new(),
                3 => {
                    format!("budget = \"{budget}ms\", period = \"{period}ms\", priority = {}", draw.below(5))
                }
                _ => format!("budget = \"{budget}ms\", period = \"{period}ms\", deadline = \"{deadline}ms\""),
            };
            let load = match draw.below(3) {
                0 if kind != 1 => "\"busy\"".to_string(),
                _ => format!("{{ period = \"{period}ms\", work = \"{budget}ms\" }}"),
            };
            let is_node = kind != 1 && draw.below(6) == 0;
            let affinity = (!is_node && draw.below(6) == 0).then(|| draw.below(cpus as usize) as u32);
            let fixed = draw.below(5) == 0;
            let cpu = fixed.then(|| affinity.unwrap_or(draw.below(cpus as usize) as u32));
            let (edge, name) = (edge.trim_end_matches(", ").to_string(), format!("p{at}"));
            Part { name, cpu, affinity, share: 1000 * budget / period, edge, load, is_node }
        };
        Random { cpus, costs, node: node.into(), parts: (0..count).map(|at| part(at, draw)).collect() }
    }

    /// With these of the parts: all as the plan has them, or on these CPUs.
    fn text(&self, parts: &[(usize, Option<u32>)]) -> String {
        let Random { cpus, costs, node, .. } = self;
        let mut text = format!(
            "machine = {{ cpus = {cpus}, costs = {{ {costs} }} }}\nnode.top = {{ policy = \"fixed-priority\", per_cpu = true }}\n\
             node.rt = {{ {node}, per_cpu = true, under.top = {{ priority = 1 }} }}\n\
             node.rest = {{ policy = \"fair\", default = true, under.top = {{ priority = 0 }} }}\n"
        );
        parts.iter().for_each(|(part, cpu)| text += &self.parts[*part].text(*cpu));
        text
    }

    /// Whether the law of `rt` on a CPU holds by `tierce check`, with these parts on these CPUs.
    fn holds(&self, there: &BTreeMap<usize, u32>, cpu: u32) -> bool {
        let parts: Vec<_> = there.iter().map(|(part, cpu)| (*part, Some(*cpu))).collect();
        let plan = plan_on(&self.text(&parts), self.cpus);
        let rt = plan.nodes.iter().position(|node| node.name == format!("rt@{cpu}")).unwrap();
        plan.admit().nodes[rt].failures.is_empty()
    }

    /// The same strategy, with whole plans that name the CPUs and `tierce check`: the CPU of each part, or the one for which there
    /// is no room when the others are there.
    fn greedy(&self, fullest_first: bool) -> Result<BTreeMap<usize, u32>, usize> {
        let fixed = self.parts.iter().enumerate().filter_map(|(at, part)| Some((at, part.cpu?)));
        let mut there: BTreeMap<usize, u32> = fixed.collect();
        let mut order: Vec<_> = (0..self.parts.len()).filter(|at| self.parts[*at].cpu.is_none()).collect();
        order.sort_by_key(|at| std::cmp::Reverse(self.parts[*at].share));
        for at in order {
            let used = |cpu: &u32| {
                let on = there.iter().filter(|(_, on)| *on == cpu);
                on.map(|(part, _)| self.parts[*part].share as i64).sum::<i64>()
            };
            let mut cpus: Vec<_> = (0..self.cpus).collect();
            cpus.sort_by_key(|cpu| if fullest_first { -used(cpu) } else { used(cpu) });
            let found = cpus.into_iter().find(|cpu| {
                let mut with = there.clone();
                with.insert(at, *cpu);
                self.parts[at].affinity.is_none_or(|affinity| affinity == *cpu) && self.holds(&with, *cpu)
            });
            there.insert(at, found.ok_or(at)?);
        }
        Ok(there)
    }
}

/// Every placement is what the strategy finds with whole plans and `tierce check`, so one that is refused has a part that fits
/// on no CPU beside those that were placed before it. And check says of the placed plan what it says of the one that names the CPUs.
#[test]
fn a_placed_plan_is_the_one_that_names_its_cpus() {
    let mut draw = Draw::new(31);
    let (mut fits, mut fails) = (0, 0);
    for _ in 0..150 {
        let random = Random::new(&mut draw);
        let all: Vec<_> = random.parts.iter().enumerate().map(|(at, part)| (at, part.cpu)).collect();
        let text = random.text(&all);
        let plan = Plan::parse_with(&text, "plan.toml", Options { cpus: random.cpus });
        let expected = random.greedy(false).or_else(|_| random.greedy(true));
        match (plan, expected) {
            (Ok(plan), Ok(there)) => {
                let named: Vec<_> = there.into_iter().map(|(part, cpu)| (part, Some(cpu))).collect();
                let named = plan_on(&random.text(&named), random.cpus);
                assert_eq!(edges(&plan), edges(&named), "{text}");
                assert_eq!(format!("{:?}", plan.admit()), format!("{:?}", named.admit()), "{text}");
                if plan.admit().holds {
                    engine::build(&plan).unwrap_or_else(|error| panic!("{error}\n{text}"));
                }
                fits += usize::from(placed(&plan).contains(','));
            }
            (Err(faults), Err(part)) => {
                let line = faults.to_string();
                let name = &random.parts[part].name;
                assert!(line.contains(&format!("no CPU has room for `{name}` below `rt`")), "{line}\n{text}");
                fails += 1;
            }
            (Ok(plan), Err(part)) => panic!("{part} has no room: {}\n{text}", placed(&plan)),
            (Err(faults), Ok(there)) => panic!("{faults}\n{there:?}\n{text}"),
        }
    }
    println!("{fits} placed, {fails} refused");
    assert!(fits > 30 && fails > 30, "{fits} {fails}");
}

/// Parts come and go: if those that stay leave room for the others where they are, none of them moves, and nothing is refused.
#[test]
fn what_stays_moves_only_for_others() {
    let mut draw = Draw::new(32);
    let (mut stayed, mut moved, mut refused) = (0, 0, 0);
    for _ in 0..400 {
        let random = Random::new(&mut draw);
        let mut some = || -> Vec<usize> { (0..random.parts.len()).filter(|_| draw.below(4) > 0).collect() };
        let (first, second) = (some(), some());
        let text = |parts: &[usize]| {
            let all: Vec<_> = parts.iter().map(|part| (*part, random.parts[*part].cpu)).collect();
            random.text(&all)
        };
        let options = Options { cpus: random.cpus };
        let Ok(before) = Plan::parse_with(&text(&first), "plan.toml", options) else { continue };
        let were: BTreeMap<String, u32> =
            before.placed().into_iter().map(|(name, cpu)| (name.to_string(), cpu)).collect();
        // The second plan, with what was there before where it was.
        let mut stay = Random { node: random.node.clone(), parts: Vec::new(), ..random };
        for part in &second {
            let mut part = random.parts[*part].clone();
            part.cpu = part.cpu.or(were.get(&part.name).copied());
            stay.parts.push(part);
        }
        let holds = |there: &BTreeMap<usize, u32>| (0..stay.cpus).all(|cpu| stay.holds(there, cpu));
        let expected = stay.greedy(false).or_else(|_| stay.greedy(true)).ok().filter(holds);
        let after = changed(&before, &text(&second));
        match (after, expected) {
            (Ok(after), Some(there)) => {
                for (name, cpu) in after.placed() {
                    let part = stay.parts.iter().position(|part| part.name == name).unwrap();
                    assert_eq!(there[&part], cpu, "{name}\n{}\n{}", text(&first), text(&second));
                }
                stayed += 1;
            }
            (Ok(after), None) => {
                let is = |(name, cpu): &(&str, u32)| were.get(*name).is_some_and(|was| was != cpu);
                moved += usize::from(after.placed().iter().any(is));
            }
            (Err(faults), Some(_)) => panic!("{faults}\n{}\n{}", text(&first), text(&second)),
            (Err(faults), None) => {
                assert!(faults.to_string().contains("cpu_must_have_room"), "{faults}");
                refused += 1;
            }
        }
    }
    println!("{stayed} as they were, {moved} with a move, {refused} refused");
    assert!(stayed > 50 && moved > 0 && refused > 0, "{stayed} {moved} {refused}");
}
