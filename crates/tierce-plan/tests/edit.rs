//! Operations on a plan, as `tierce ctl` asks for them: what the text is afterwards, and what is refused by name.

use tierce_admission::PlanExt;
use tierce_plan::{Below, Edit, Keys, Options, Plan, Standing, Step, Thread};

const BASE: &str = r#"# A plan to change.
[node.top]
policy = "fixed-priority"
cpu = 0

[node.rt]                         # stays where it is
policy = "reservation"
under.top = { priority = 1 }

[node.rest]
policy = "fair"
default = true
each = { weight = "nice" }
under.rt = { budget = "1ms", period = "20ms" }   # sure
under.top = {}

[node.app]
policy = "fair"
under.rest = { weight = 50 }

[task.audio]
under.rt = { budget = "2ms", period = "10ms" }
match = { comm = "audio" }

[tasks.worker]
under.app = { weight = 10 }
match = { comm = "worker" }
"#;

fn base() -> Plan {
    Plan::parse(BASE, "plan.toml").unwrap()
}

fn keys(text: &str) -> Keys {
    let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

fn text(plan: &Plan) -> &str {
    &plan.sources.0[0].text
}

/// The lines that came and went, in the order of the texts.
fn difference(plan: &Plan) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (BASE.lines().collect(), text(plan).lines().collect());
    let gone =
        old.iter().filter(|line| !line.is_empty() && !new.contains(line)).map(|line| format!("- {line}"));
    let come =
        new.iter().filter(|line| !line.is_empty() && !old.contains(line)).map(|line| format!("+ {line}"));
    gone.chain(come).collect()
}

fn edited(edit: Edit) -> Plan {
    base().edited(&edit).unwrap_or_else(|faults| panic!("{faults}"))
}

fn refused(edit: Edit) -> String {
    let faults = base().edited(&edit).expect_err("it is refused").to_string();
    faults.lines().next().unwrap().to_string()
}

fn create(name: &str, policy: Option<&str>, under: &str, given: &str, who: &[&str]) -> Edit {
    let policy = policy.map(str::to_string);
    let who = who.iter().map(|keys| self::keys(keys)).collect();
    Edit::Create { name: name.into(), policy, under: under.into(), keys: keys(given), who, cpus: None }
}

fn set(name: &str, under: Option<&str>, given: &str) -> Edit {
    Edit::Set { name: name.into(), under: under.map(Into::into), keys: keys(given), who: Vec::new() }
}

fn destroy(name: &str, below: Below) -> Edit {
    Edit::Destroy { name: name.into(), below }
}

fn place(name: &str, from: Option<&str>, under: &str, given: &str) -> Edit {
    let (name, from, under) = (name.into(), from.map(Into::into), under.into());
    Edit::Move { name, tasks: false, from, under, keys: keys(given) }
}

fn thread(comm: &str, tid: u32, cgroup: &str) -> Thread {
    Thread { comm: comm.into(), tid, pid: tid, cgroup: cgroup.into(), ..Thread::default() }
}

/// The task or set that a thread belongs to.
fn entry<'p>(plan: &'p Plan, thread: &Thread) -> &'p str {
    plan.entry_of(thread).map_or("", |entry| plan.child_name(plan.entries[entry].target))
}

/// The operation as a step, if it is one.
fn step(plan: &Plan, edit: &Edit) -> Option<Step> {
    plan.step_beside(edit, &|| Standing::of(plan))
}

#[test]
fn a_node_comes_with_its_own_parameters_and_those_of_its_edge() {
    let plan = edited(create("web", Some("fair"), "rt", "quantum=1ms budget=2ms period=20ms", &[]));
    assert_eq!(
        difference(&plan),
        ["+ [node.web]", "+ quantum = \"1ms\"", "+ under.rt = { budget = \"2ms\", period = \"20ms\" }"]
    );
    assert!(text(&plan).contains("# stays where it is") && text(&plan).starts_with("# A plan to change.\n"));
}

#[test]
fn what_a_node_and_its_edge_both_have_both_get() {
    let plan = edited(create("player", Some("constraint"), "rt", "quantum=1ms budget=2ms period=20ms", &[]));
    let edge = "+ under.rt = { budget = \"2ms\", period = \"20ms\" }";
    let own = ["+ quantum = \"1ms\"", "+ budget = \"2ms\"", "+ period = \"20ms\""];
    let header = ["+ [node.player]", "+ policy = \"constraint\""];
    assert_eq!(difference(&plan), [&header[..], &own[..], &[edge]].concat());
    assert!(plan.admit().holds);
}

#[test]
fn a_node_of_a_cgroup_takes_what_is_in_it_and_below_before_other_matches() {
    let plan = edited(create(
        "web",
        Some("fair"),
        "rt",
        "budget=2ms period=20ms",
        &["cgroup=/sys/fs/cgroup/web.slice/"],
    ));
    for (cgroup, set) in [
        ("/web.slice", "web-threads"),
        ("web.slice/a/b", "web-threads"),
        ("web.slice2", "worker"),
        ("a/web.slice", "worker"),
    ] {
        assert_eq!(entry(&plan, &thread("worker", 7, cgroup)), set, "{cgroup}");
    }
    let again = plan.edited(&Edit::Set {
        name: "web".into(),
        under: None,
        keys: Keys::new(),
        who: vec![keys("cgroup=*/app-[ab].scope"), keys("comm=123 uid=7")],
    });
    let again = again.unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(entry(&again, &thread("worker", 7, "x/app-a.scope")), "web-threads");
    assert_eq!(entry(&again, &thread("worker", 7, "web.slice")), "worker");
    assert_eq!(entry(&again, &Thread { uid: 7, real_uid: 7, ..thread("123", 7, "") }), "web-threads");
    let gone = again.edited(&destroy("web", Below::Threads)).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(text(&gone), BASE);
}

#[test]
fn a_reservation_of_a_thread_comes_before_what_else_it_matches_and_leaves_nothing_behind() {
    let plan = edited(create("tid-7", None, "rt", "budget=3ms period=10ms", &["tid=7"]));
    assert_eq!(
        difference(&plan),
        ["+ [task.tid-7]", "+ under.rt = { budget = \"3ms\", period = \"10ms\" }", "+ match = { tid = 7 }"]
    );
    for (tid, name) in [(7, "tid-7"), (8, "audio")] {
        assert_eq!(entry(&plan, &thread("audio", tid, "")), name);
    }
    let more = create("both", None, "app", "weight=5", &["tid=8", "tid=9"]);
    let more = plan.edited(&more).unwrap_or_else(|faults| panic!("{faults}"));
    assert_eq!(more.sets.iter().map(|set| &set.name[..]).collect::<Vec<_>>(), ["both", "worker"]);
    assert_eq!(entry(&more, &thread("audio", 8, "")), "both");
    assert_eq!(entry(&more, &thread("audio", 7, "")), "tid-7");
    let back = more
        .edited(&destroy("both", Below::Nothing))
        .and_then(|plan| plan.edited(&destroy("tid-7", Below::Nothing)));
    assert_eq!(text(&back.unwrap()), BASE);
}

#[test]
fn parameters_are_of_the_node_or_of_an_edge_above_it() {
    assert_eq!(
        difference(&edited(set("audio", None, "budget=3ms deadline=8ms"))),
        [
            "- under.rt = { budget = \"2ms\", period = \"10ms\" }",
            "+ under.rt = { budget = \"3ms\", period = \"10ms\", deadline = \"8ms\" }"
        ]
    );
    assert_eq!(
        difference(&edited(set("app", None, "quantum=1ms weight=60 warp=2ms"))).len(),
        3,
        "its own quantum, one edge"
    );
    let warped = difference(&edited(set("app", None, "warp=2ms warp_limit=1ms unwarp=5ms")));
    assert!(
        warped.iter().any(|line| line.ends_with("warp = \"2ms\", warp_limit = \"1ms\", unwarp = \"5ms\" }")),
        "{warped:?}"
    );
    let plan = edited(set("rest", Some("rt"), "budget=2ms"));
    assert_eq!(
        difference(&plan),
        [
            "- under.rt = { budget = \"1ms\", period = \"20ms\" }   # sure",
            "+ under.rt = { budget = \"2ms\", period = \"20ms\" }   # sure"
        ]
    );
    assert_eq!(
        refused(set("rest", None, "budget=2ms")),
        "plan.toml:10:7: edge_must_be_clear: `rest` has several parents: 2, bound 1 (hint: --under, one of `rt`, `top`)"
    );
    assert_eq!(
        refused(set("audio", Some("app"), "weight=2")),
        "plan.toml:21:7: edge_must_exist: `audio` is not below that: app, bound `rt`"
    );
    assert!(refused(set("top", None, "priority=2")).contains("edge_must_exist"));
    assert_eq!(
        refused(set("audoi", None, "budget=2ms")),
        "plan.toml:1:1: name_must_exist: no node, task or set has this name: audoi (hint: did you mean `audio`?)"
    );
    assert!(refused(set("audio", None, "weight=2"))
        .contains("key_must_exist: `under.rt` of task `audio` has no key `weight`"));
    assert!(refused(set("audio", None, "budget=11ms")).contains("budget_must_not_exceed_period"));
    assert!(refused(set("audio", None, "budget=11")).contains("time_needs_a_unit"));
    assert!(refused(set("app", None, "weight=0")).contains("parameter_within_range"));
}

#[test]
fn of_a_list_of_edges_the_cpu_says_which() {
    let text = r#"
        [node.rt]
        policy = "reservation"
        per_cpu = true
        [task.split]
        under.rt = [{ cpu = 0, budget = "1ms", period = "10ms" }, { cpu = 1, budget = "1ms", period = "10ms" }]
    "#;
    let plan = Plan::parse_with(text, "split.toml", Options { cpus: 2 }).unwrap();
    let budgets = |plan: &Plan| plan.edges.iter().map(|edge| edge.params[0]).collect::<Vec<_>>();
    let new = plan.edited(&set("split", None, "cpu=1 budget=2ms")).unwrap();
    assert_eq!(budgets(&new), [1_000_000, 2_000_000]);
    for given in ["budget=2ms", "cpu=2 budget=2ms"] {
        let faults = plan.edited(&set("split", None, given)).unwrap_err().to_string();
        assert!(faults.contains("edge_must_be_clear: `split` has several edges from `rt`"), "{faults}");
    }
}

/// One edge that stands for one from each CPU: the other CPUs keep theirs.
#[test]
fn of_an_edge_from_every_cpu_one_is_changed() {
    let text = r#"
        [node.rt]
        policy = "reservation"
        per_cpu = true
        [node.box]
        policy = "fair"
        under.rt = { budget = "1ms", period = "10ms" }
        [task.wide]
        under.rt = { budget = "1ms", period = "20ms" }
    "#;
    let plan = Plan::parse_with(text, "box.toml", Options { cpus: 2 }).unwrap();
    let budgets = |plan: &Plan| plan.edges.iter().map(|edge| edge.params[0] / 1000).collect::<Vec<_>>();
    assert_eq!(budgets(&plan), [1000, 1000, 1000, 1000]);
    let one = plan.edited(&set("box", None, "cpu=1 budget=2ms")).unwrap();
    assert_eq!(budgets(&one), [1000, 2000, 1000, 1000]);
    let list = "under.rt = [{ cpu = 0, budget = \"1ms\", period = \"10ms\" }, { cpu = 1, budget = \"2ms\", period = \"10ms\" }]";
    assert!(self::text(&one).contains(list), "{}", self::text(&one));
    assert_eq!(
        budgets(&one.edited(&set("box", None, "cpu=0 budget=3ms")).unwrap()),
        [3000, 2000, 1000, 1000]
    );
    assert_eq!(
        budgets(&plan.edited(&set("wide", None, "cpu=0 budget=5ms")).unwrap()),
        [1000, 1000, 5000, 1000]
    );
    assert_eq!(budgets(&plan.edited(&set("box", None, "cpu=0")).unwrap()), [1000; 4]);
    assert_eq!(budgets(&plan.edited(&set("box", None, "budget=2ms")).unwrap()), [2000, 2000, 1000, 1000]);
    let faults = plan.edited(&set("box", None, "cpu=2 budget=2ms")).unwrap_err().to_string();
    assert!(faults.contains("edge_must_be_clear: `box` has several edges from `rt`"), "{faults}");
}

/// Operations are on the text: of a spread node, all replicas.
#[test]
fn a_spread_node_is_edited_as_one() {
    let text = r#"
        [node.top]
        policy = "fixed-priority"
        cpu = 0
        [node.rest]
        policy = "fair"
        default = true
        under.top = {}
        [node.app]
        policy = "fair"
        under.rest = { weight = 50 }
        [task.tool]
        under.app = { weight = 10 }
    "#;
    let plan = Plan::parse_with(text, "spread.toml", Options { cpus: 2 }).unwrap();
    let names = |plan: &Plan| plan.nodes.iter().map(|node| node.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&plan), ["top", "rest@0", "rest@1", "app@0", "app@1"]);
    let weights = |plan: &Plan| plan.edges.iter().map(|edge| edge.params[0]).collect::<Vec<_>>();
    assert_eq!(weights(&plan), [0, 50, 50, 10]);
    assert_eq!(weights(&plan.edited(&set("app", None, "weight=70")).unwrap()), [0, 70, 70, 10]);
    assert_eq!(weights(&plan.edited(&set("tool", None, "weight=7")).unwrap()), [0, 50, 50, 7]);
    let pinned = plan.edited(&set("tool", None, "cpu=1")).unwrap();
    assert_eq!((pinned.edges[3].parent, pinned.edges[3].spread), (4, false));
    let shared = plan.edited(&set("app", None, "spread=false")).unwrap();
    assert_eq!(names(&shared), ["top", "rest@0", "rest@1", "app"]);
    let moved = plan.edited(&place("tool", None, "rest", "")).unwrap();
    assert_eq!((moved.nodes[moved.edges[3].parent].base.as_str(), moved.edges[3].spread), ("rest", true));
}

#[test]
fn what_goes_has_nothing_below_it_or_takes_it_along() {
    assert_eq!(
        refused(destroy("app", Below::Nothing)),
        "plan.toml:17:7: node_must_be_empty: there is more below `app`: `worker`, bound nothing (hint: tierce ctl destroy \
         --all takes that out, too; tierce ctl move puts it elsewhere)"
    );
    assert!(refused(destroy("rest", Below::Threads))
        .contains("node_must_be_empty: there is more below `rest`: `app`"));
    let plan = edited(destroy("app", Below::Threads));
    assert_eq!((plan.nodes.len(), plan.sets.len()), (3, 0));
    assert_eq!(plan.tasks.len(), 1);
    // What has another parent stays below that.
    let plan = edited(destroy("rt", Below::All));
    assert_eq!(plan.nodes.iter().map(|node| &node.name[..]).collect::<Vec<_>>(), ["top", "rest", "app"]);
    assert!(plan.tasks.is_empty());
}

#[test]
fn another_place_keeps_the_parameters_where_the_policy_is_the_same() {
    let plan = edited(place("worker", None, "rest", ""));
    assert_eq!(difference(&plan), ["- under.app = { weight = 10 }", "+ under.rest = { weight = 10 }"]);
    let plan = edited(place("audio", None, "app", ""));
    assert_eq!(difference(&plan)[1], "+ under.app = {}");
    assert!(refused(place("rest", Some("top"), "app", "")).contains("no_cycles"));
}

#[test]
fn places_that_are_none_are_refused() {
    assert!(refused(place("worker", None, "app", ""))
        .contains("place_must_be_another: `worker` is below `app` already"));
    assert!(refused(place("worker", Some("rt"), "rest", "")).contains("edge_must_exist"));
    assert!(refused(place("top", None, "rest", "")).contains("edge_must_exist: `top` is what a CPU runs"));
    assert!(refused(place("worker", None, "nowhere", "")).contains("parent_must_exist"));
    let tasks = |name: &str| Edit::Move {
        name: name.into(),
        tasks: true,
        from: None,
        under: "rest".into(),
        keys: Keys::new(),
    };
    assert!(refused(tasks("top")).contains("tasks_must_exist: `top` has no tasks"));
    assert!(refused(tasks("audio")).contains("part_must_be_a_node: `audio` is no node"));
    assert_eq!(difference(&edited(tasks("app"))).len(), 2);
}

#[test]
fn another_default_node_and_what_its_threads_have() {
    let default = |name: &str, given: &str| Edit::Default { name: name.into(), keys: keys(given) };
    let plan = edited(default("app", ""));
    assert_eq!(plan.nodes[plan.default_node.unwrap()].name, "app");
    assert_eq!(plan.each.as_ref().unwrap().nice, Some(0), "as before: the policy is the same");
    let plan = edited(default("app", "weight=7"));
    assert_eq!(plan.each.unwrap().params[0], 7);
    assert!(
        refused(default("rt", "weight=7")).contains("parameter_must_be_given: `budget` of `each` is missing")
    );
    let plan = edited(default("rt", "budget=1ms period=1s"));
    assert_eq!(plan.each.unwrap().params[..2], [1_000_000, 1_000_000_000]);
    assert!(refused(default("worker", "")).contains("part_must_be_a_node"));
}

#[test]
fn names_and_matches_that_cannot_be() {
    let fair = |name: &str, who: &[&str]| create(name, Some("fair"), "rest", "", who);
    assert_eq!(
        refused(fair("worker", &[])),
        "plan.toml:25:8: name_is_unique: the name `worker` is taken: nodes, tasks, sets and chains share their names"
    );
    assert!(refused(fair("9", &[])).contains("name_must_be_plain"));
    assert!(refused(create("x", Some("fare"), "rest", "", &[])).contains("policy_must_exist"));
    assert!(refused(fair("x", &["cgruop=a"])).contains("key_must_exist"));
    assert!(refused(fair("x", &["comm=[a"])).contains("pattern_must_be_a_glob"));
    let inline = format!(
        "task.first = {{ under.rest = {{}}, match = {{ comm = \"x\" }} }}\n{}",
        BASE.replace("[task.audio]", "[tasks.audio]")
    );
    let plan = Plan::parse(&inline, "inline.toml").unwrap();
    let faults = plan.edited(&create("tid-7", None, "rt", "budget=1ms period=10ms", &["tid=7"])).unwrap_err();
    assert!(faults.to_string().contains("match_must_come_first"), "{faults}");
    assert!(plan.edited(&set("first", None, "weight=3")).is_ok());
}

#[test]
fn parts_of_an_included_file_are_changed_there() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("edit");
    std::fs::create_dir_all(&folder).unwrap();
    let (main, included) = (folder.join("main.toml"), folder.join("tasks.toml"));
    let (nodes, tasks) = BASE.split_once("[task.audio]").unwrap();
    std::fs::write(&main, format!("include = \"tasks.toml\"\n{nodes}")).unwrap();
    std::fs::write(&included, format!("[task.audio]{tasks}")).unwrap();
    let plan = Plan::load(&main).unwrap();
    let new = plan.edited(&set("audio", None, "budget=3ms")).unwrap();
    assert_eq!(new.sources.0[0], plan.sources.0[0]);
    assert!(new.sources.0[1].text.contains("budget = \"3ms\""));
    let new = new.edited(&create("tid-7", None, "rt", "budget=1ms period=10ms", &["tid=7"])).unwrap();
    assert_eq!(entry(&new, &thread("audio", 7, "")), "tid-7");
    let new = new.edited(&create("web", Some("fair"), "rest", "", &[])).unwrap();
    assert!(new.sources.0[0].text.contains("[node.web]"));
}

/// A reservation below a node that every CPU has: on one CPU where there is room, and where the thread may run.
#[test]
fn a_reservation_is_placed_on_one_cpu() {
    let base = r#"
[node.top]
policy = "fixed-priority"
per_cpu = true

[node.rt]
policy = "reservation"
per_cpu = true
under.top = { priority = 1 }

[node.rest]
policy = "fair"
default = true
under.top = { priority = 0 }

[task.fixed]
under.rt = { cpu = 0, budget = "5ms", period = "10ms" }
"#;
    let options = Options { cpus: 2 };
    let plan = Plan::parse_with(base, "plan.toml", options).unwrap();
    let reserve = |who: &str, policy: Option<&str>, given: &str, cpus: &[u32]| {
        let name = who.replace('=', "-");
        let mut edit = create(&name, policy, "rt", given, &[who]);
        if let Edit::Create { cpus: places, .. } = &mut edit {
            *places = Some(cpus.to_vec());
        }
        edit
    };
    let edit = |plan: &Plan, edit: Edit| plan.edited(&edit).unwrap_or_else(|faults| panic!("{faults}"));
    let one = edit(&plan, reserve("tid=7", None, "budget=2ms period=10ms", &[]));
    assert_eq!(one.placed(), [("tid-7", 1)]);
    assert!(text(&one).contains("under.rt = { budget = \"2ms\", period = \"10ms\", cpu = \"any\" }"));
    let two = edit(&one, reserve("tid=8", None, "budget=2ms period=10ms", &[0]));
    assert_eq!(two.placed(), [("tid-8", 0), ("tid-7", 1)]);
    assert!(text(&two).contains("affinity = [0]\n"), "{}", text(&two));
    let three = edit(&two, reserve("comm=web", Some("fair"), "budget=6ms period=10ms", &[]));
    assert_eq!(three.placed(), [("comm-web", 1), ("tid-8", 0), ("tid-7", 1)]);
    let four = edit(&three, set("tid-8", None, "budget=3ms"));
    assert_eq!(four.placed(), three.placed(), "a larger budget where it is");
    // What is not said to be placed, or names its CPU, is as it was.
    let named = edit(&plan, reserve("tid=7", None, "cpu=0 budget=2ms period=10ms", &[]));
    assert!(named.placed().is_empty() && text(&named).contains("{ cpu = 0, "));
    let everywhere = edit(&plan, create("all", None, "rt", "budget=2ms period=10ms", &["tid=7"]));
    assert_eq!(everywhere.edges.iter().filter(|edge| everywhere.child_name(edge.child) == "all").count(), 2);
    let rest = create("x", None, "rest", "weight=5", &["tid=7"]);
    assert!(text(&edit(&plan, rest)).contains("under.rest = { weight = 5 }"));
    // 20 % and 60 % of CPU 1, 50 % and 30 % of CPU 0.
    let refused =
        four.edited(&reserve("tid=9", None, "budget=3ms period=10ms", &[])).unwrap_err().to_string();
    assert!(
        refused.contains("no CPU has room for `tid-9` below `rt`: 30 %, bound CPU 0, 1: 20 % left"),
        "{refused}"
    );
}

/// A second parent, and budgets on further CPUs.
#[test]
fn an_edge_more() {
    let link = |name: &str, under: &str, given: &str| Edit::Link {
        name: name.into(),
        under: under.into(),
        keys: keys(given),
    };
    let plan = edited(link("app", "rt", "budget=1ms period=50ms"));
    assert_eq!(difference(&plan), ["+ under.rt = { budget = \"1ms\", period = \"50ms\" }"],);
    assert!(refused(link("app", "nowhere", "")).contains("name_must_exist"));
    assert!(refused(link("top", "rt", "")).contains("edge_must_exist"), "{}", refused(link("top", "rt", "")));
    assert!(refused(link("app", "audio", "")).contains("part_must_be_a_node"));
    let twice = edited(link("audio", "rt", "budget=1ms period=50ms"));
    let list = "[{ budget = \"2ms\", period = \"10ms\" }, { budget = \"1ms\", period = \"50ms\" }]";
    assert!(text(&twice).contains(&format!("under.rt = {list}")), "{}", text(&twice));
    assert!(step(&base(), &link("app", "rt", "budget=1ms period=50ms")).is_none());
}

/// What a node has it shares with containers inside of it.
#[test]
fn a_node_is_enclosed() {
    let enclose = |name: &str| Edit::Enclose { name: name.into() };
    let rest = edited(enclose("rest"));
    let under = |plan: &Plan, name: &str| -> Vec<String> {
        let edges = plan.edges.iter().filter(|edge| plan.child_name(edge.child) == name);
        edges.map(|edge| format!("{} {:?}", plan.nodes[edge.parent].name, &edge.params[..2])).collect()
    };
    assert_eq!(under(&rest, "rest-budget"), ["rt [1000000, 20000000]"]);
    assert_eq!(under(&rest, "rest-inner"), ["rest-budget [1, 0]"]);
    assert_eq!(under(&rest, "rest"), ["top [0, 0]", "rest-budget [0, 0]"], "its other parent stays");
    assert_eq!(text(&rest.edited(&enclose("rest")).unwrap()), text(&rest), "once is enough");
    // A node with a header for its edge, another budget on each CPU, and a replica on each CPU.
    let hyper = r#"
[node.top]
policy = "reservation"
per_cpu = true
[node.a]
policy = "fair"
default = true
[node.a.under.top]
budget = "9ms"
period = "10ms"
[node.b]
policy = "fair"
under.top = [{ cpu = 0, budget = "1ms", period = "10ms" }, { cpu = 2, budget = "1ms", period = "20ms" }]
[node.c]
policy = "edf"
per_cpu = [0, 1]
under.top = { budget = "0.5ms", period = "50ms" }
"#;
    let hyper = Plan::parse_with(hyper, "plan.toml", Options { cpus: 3 }).unwrap();
    let all = ["a", "b", "c"].into_iter().fold(hyper, |plan, name| {
        plan.edited(&enclose(name)).unwrap_or_else(|faults| panic!("{name}: {faults}"))
    });
    let replicas = |name: &str| -> Vec<u32> {
        all.nodes.iter().filter(|node| node.base == name).filter_map(|node| node.replica).collect()
    };
    assert_eq!(replicas("a-budget"), [0, 1, 2]);
    assert_eq!((replicas("b-budget"), replicas("b-inner")), (vec![0, 2], vec![0, 2]));
    assert_eq!((replicas("c-budget"), replicas("c")), (vec![0, 1], vec![0, 1]));
    assert_eq!(under(&all, "b-budget@2"), ["top@2 [1000000, 20000000]"]);
    assert_eq!(under(&all, "b"), ["b-budget@0 [0, 0]", "b-budget@2 [0, 0]"]);
    for (name, rule) in [
        ("top", "edge_must_exist"),
        ("rt", "outer_node_needs_one_budget"),
        ("app", "outer_node_needs_one_budget"),
        ("audio", "part_must_be_a_node"),
        ("nobody", "name_must_exist"),
    ] {
        assert!(refused(enclose(name)).contains(rule), "{name}: {}", refused(enclose(name)));
    }
}

/// Of operations that are remembered, one that is undone is forgotten; not so where what it has left behind stays.
#[test]
fn what_is_undone_is_forgotten() {
    let made = create("web", Some("fair"), "rt", "budget=1ms period=50ms", &[]);
    let (enclosed, gone) = (Edit::Enclose { name: "web".into() }, destroy("web", Below::All));
    let remembered = |edits: &[&Edit]| {
        edits.iter().fold(Vec::new(), |mut list, edit| {
            edit.add_to(&mut list);
            list
        })
    };
    assert!(remembered(&[&made, &gone]).is_empty());
    let list = remembered(&[&made, &enclosed, &gone]);
    assert_eq!(list, [made, enclosed, gone]);
    let plan = list.iter().fold(base(), |plan, edit| plan.edited(edit).unwrap());
    assert!(plan.nodes.iter().any(|node| node.name == "web-inner"), "{}", text(&plan));
}

/// Beside a firm child no operation makes another of its priority, neither on the text nor, without one, on the model.
#[test]
fn a_firm_child_stays_the_last() {
    let firm = BASE.replace("under.top = {}", "under.top = { priority = 1 }").replace(
        "under.rt = { budget = \"2ms\", period = \"10ms\" }",
        "under.rt = { budget = \"2ms\", period = \"10ms\", firm = \"top\" }",
    );
    let firm = Plan::parse(&firm, "plan.toml").unwrap_or_else(|faults| panic!("{faults}"));
    for edit in [create("new", Some("fair"), "top", "", &[]), create("new", None, "top", "", &["tid=7"])] {
        let faults = firm.edited(&edit).expect_err("equals run first come, first served").to_string();
        assert!(faults.contains("firm_needs_the_lowest_priority"), "{faults}");
        assert!(step(&firm, &edit).is_none());
    }
    let above = create("new", Some("fair"), "top", "priority=1", &[]);
    assert!(firm.edited(&above).is_ok());
}

/// A priority above the threshold is refused by the text; without one the operation is not a step, whatever it is.
#[test]
fn no_priority_comes_above_a_threshold() {
    let plan = |threshold: &str| {
        let load = format!("load = {{ period = \"10ms\", work = \"1ms\"{threshold} }}");
        let text = format!("{BASE}[task.job]\nunder.top = {{ priority = 2 }}\n{load}\n");
        Plan::parse(&text, "plan.toml").unwrap_or_else(|faults| panic!("{faults}"))
    };
    let (below, above) = (set("job", None, "priority=3"), set("job", None, "priority=4"));
    assert!(step(&plan(""), &below).is_some());
    let plan = plan(", threshold = 3");
    assert!(step(&plan, &below).is_none() && step(&plan, &above).is_none());
    assert!(plan.edited(&below).is_ok());
    let faults = plan.edited(&above).expect_err("3 is below 4").to_string();
    assert!(faults.contains("threshold_not_below_priority"), "{faults}");
}

const COPIES: &str = r#"[node.top]
policy = "fair"
cpu = 0
default = true

[node.user]                       # one for each
policy = "fair"
for_each = "uid"
most = 2
under.top = { weight = 100 }

[tasks.session]
under.user = { weight = 10 }
match = { uid = { min = 1000, max = 59999 } }
"#;

#[test]
fn what_there_are_copies_of_is_changed_as_one() {
    let base = Plan::parse(COPIES, "plan.toml").unwrap();
    let weights = |plan: &Plan| plan.edges.iter().map(|edge| edge.params[0]).collect::<Vec<_>>();
    assert_eq!(weights(&base), [100, 100]);
    let heavier = base.edited(&set("user", None, "weight=200")).unwrap();
    assert_eq!(weights(&heavier), [200, 200]);
    assert_eq!(text(&heavier), COPIES.replace("weight = 100", "weight = 200"), "and nothing else");
    let sessions = base.edited(&set("session", None, "weight=20")).unwrap();
    assert!(sessions.sets.iter().all(|set| set.under[0].params[0] == 20));
    let more = base.edited(&create("other", Some("fair"), "top", "weight=7", &["comm=x"])).unwrap();
    assert_eq!(entry(&more, &thread("x", 7, "")), "other-threads", "before the match of the copies");
    let gone = base.edited(&destroy("user", Below::All)).unwrap();
    assert_eq!((gone.nodes.len(), gone.sets.len(), gone.for_each.len()), (1, 0, 0));
}

#[test]
fn one_copy_alone_is_not_in_the_text() {
    let base = Plan::parse(COPIES, "plan.toml").unwrap();
    for edit in [
        set("user#0", None, "weight=200"),
        set("session#1", None, "weight=2"),
        destroy("user#1", Below::All),
        place("session#0", None, "top", ""),
    ] {
        let faults = base.edited(&edit).expect_err("it is refused").to_string();
        assert!(faults.contains("name_must_exist"), "{faults}");
    }
    let faults = base.edited(&create("one", None, "user", "", &["tid=7"])).expect_err("a task").to_string();
    assert!(faults.contains("for_each_takes_sets"), "{faults}");
}
