//! A plan that becomes another: what differs, in words; what is refused, by name; and the way there and back, on the
//! native engine, with threads that run meanwhile.

use std::rc::Rc;
use tierce_admission::PlanExt;
use tierce_plan::{
    Change, Cpus, Host, Ids, Leaving, Members, Options, Plan, Refused, Source, Sources, Standing, Transition,
};
use tierce_policy::{Control, Graph, NodeParams, Params, Refusal, Way, TASK};
use tierce_scx::trial::Trial;

const BASE: &str = r#"
    [node.top]
    policy = "fixed-priority"
    per_cpu = true
    [node.rt]
    policy = "reservation"
    under.top = { cpu = 0, priority = 1 }
    [node.app]
    policy = "fair"
    quantum = "1ms"
    under.rt = { budget = "2ms", period = "20ms" }
    [node.rest]
    policy = "fair"
    default = true
    each = { weight = 100 }
    under.top = {}
    [task.audio]
    under.rt = { budget = "2ms", period = "10ms" }
    match = { comm = "audio" }
    load = { period = "10ms", work = "1ms" }
    [task.tool]
    under.app = { weight = 50 }
    match = { comm = "tool" }
    [tasks.worker]
    under.app = { weight = 10 }
    match = { comm = "worker" }
"#;

fn plan(text: &str) -> Rc<Plan> {
    Rc::new(
        Plan::parse_with(text, "plan.toml", Options { cpus: 2 }).unwrap_or_else(|faults| panic!("{faults}")),
    )
}

/// Threads that run: 0 of a plan's task, set or default node by its name, on a graph whose CPUs decide.
struct Machine {
    graph: Graph,
    now_ns: u64,
    /// Set (empty: the default node), leaf.
    leaves: Vec<(String, u32)>,
    default: (u32, Params),
    /// Operations until one is refused.
    left: usize,
    /// No time passes.
    stands: bool,
}

impl Machine {
    fn new(plan: &Plan, left: usize) -> (Machine, Ids) {
        let mut graph = Graph::new(plan.machine.cpus, 0).unwrap();
        let ids = plan.build(&mut graph.at(0), Members::Live).unwrap();
        let default = (ids.nodes[plan.default_node.unwrap()], plan.default_params().0);
        let mut machine =
            Machine { graph, now_ns: 0, leaves: Vec::new(), default, left: usize::MAX, stands: false };
        for set in &plan.sets {
            for _ in 0..2 {
                let under: Vec<_> =
                    set.under.iter().map(|edge| (ids.nodes[edge.parent], edge.params, edge.way())).collect();
                machine.leaf(&set.name, &under);
            }
        }
        for _ in 0..3 {
            machine.default_leaf();
        }
        for &task in ids.tasks.iter().filter(|id| **id != 0) {
            machine.graph.wake(task, 0);
        }
        machine.run();
        machine.left = left;
        (machine, ids)
    }

    fn default_leaf(&mut self) {
        let (node, params) = self.default;
        let way = if self.graph.node(node).family == 0 { Way::Plain } else { Way::Spread };
        self.leaf("", &[(node, params, way)]);
    }

    fn leaf(&mut self, set: &str, under: &[(u32, Params, Way)]) {
        let leaf = self.graph.node_new(TASK, 1, Cpus::ALL, [0; 4]).unwrap();
        for &(parent, params, way) in under {
            if self.graph.attach(parent, leaf, params, 0, way, self.now_ns).is_err() {
                self.take_out(leaf); // no room: it is beside the graph
                return;
            }
        }
        self.graph.wake(leaf, self.now_ns);
        self.leaves.push((set.to_string(), leaf));
    }

    /// Time passes, and whoever was asked to decides.
    fn run(&mut self) {
        self.now_ns += 100_000;
        for _ in 0..64 {
            let kicks = self.graph.take_kicks();
            for cpu in 0..self.graph.cpus() {
                if kicks.has(cpu) || self.graph.until(cpu) <= self.now_ns {
                    let task = self.graph.decide(cpu, self.now_ns, 0);
                    self.graph.returned(cpu, self.now_ns);
                    let left = self.graph.cpu(cpu).leaves > 0;
                    if task == 0 && !left && self.graph.pull(cpu, self.now_ns) != 0 {
                        self.graph.decide(cpu, self.now_ns, 0);
                        self.graph.returned(cpu, self.now_ns);
                    } else if task != 0 {
                        self.graph.balance(cpu, self.now_ns);
                    }
                }
            }
            if kicks.is_empty() {
                break;
            }
        }
        self.graph.check(false).unwrap();
    }

    fn step(&mut self) -> Result<(), Refusal> {
        if !self.stands {
            self.run();
        }
        self.left -= 1;
        if self.left == 0 {
            self.left = usize::MAX;
            return Err(Refusal::Call("refused for once".into()));
        }
        Ok(())
    }

    fn take_out(&mut self, leaf: u32) {
        self.graph.release(leaf, self.now_ns);
        for _ in 0..64 {
            self.run();
            match self.graph.node(leaf).first_parent {
                0 => return self.graph.node_free(leaf).unwrap(),
                edge => _ = self.graph.detach(edge, self.now_ns),
            }
        }
        panic!("leaf {leaf} would not go");
    }
}

impl Control for Machine {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        params: NodeParams,
    ) -> Result<u32, Refusal> {
        self.step()?;
        let id = self.graph.at(self.now_ns).node_new(kind, concurrency, allowed, params)?;
        if kind == TASK {
            self.leaves.push(("task".into(), id));
        }
        Ok(id)
    }
    fn node_set(&mut self, node: u32, params: NodeParams) -> Result<(), Refusal> {
        self.step()?;
        self.graph.at(self.now_ns).node_set(node, params)
    }
    fn node_free(&mut self, node: u32) -> Result<(), Refusal> {
        self.step()?;
        self.leaves.retain(|(_, leaf)| *leaf != node);
        self.graph.at(self.now_ns).node_free(node)
    }
    fn root(&mut self, _cpu: u32, _node: u32) -> Result<u32, Refusal> {
        panic!("roots stay");
    }
    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal> {
        self.step()?;
        self.graph.at(self.now_ns).replica(node, first)
    }
    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        self.step()?;
        self.graph.at(self.now_ns).edge_new(parent, child, rank, way)
    }
    fn attach(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        self.step()?;
        self.graph.at(self.now_ns).attach(edge, params)
    }
    fn set(&mut self, edge: u32, params: Params) -> Result<(), Refusal> {
        self.step()?;
        Control::set(&mut self.graph.at(self.now_ns), edge, params)
    }
    fn detach(&mut self, edge: u32) -> Result<(), Refusal> {
        self.step()?;
        Control::detach(&mut self.graph.at(self.now_ns), edge)
    }
}

impl Host for Machine {
    fn control(&mut self) -> &mut dyn Control {
        self
    }

    fn appear(&mut self, _plan: &Plan, _ids: &Ids, _before: &Ids) -> Result<(), Refusal> {
        self.step()
    }
    fn vanish(&mut self, _ids: &[u32]) -> Result<(), Refusal> {
        self.step()
    }
    fn set_default(&mut self, node: u32, params: Params, _nice: Option<usize>) -> Result<(), Refusal> {
        self.step()?;
        self.default = (node, params);
        Ok(())
    }
    fn set_members(&mut self, set: &str, number: usize, params: Params) -> Result<(), Refusal> {
        for leaf in
            self.leaves.iter().filter(|(name, _)| name == set).map(|(_, leaf)| *leaf).collect::<Vec<_>>()
        {
            let mut edge = self.graph.node(leaf).first_parent;
            (0..number).for_each(|_| edge = self.graph.edge(edge).next_parent);
            Control::set(self, edge, params)?;
        }
        Ok(())
    }
    fn evacuate(&mut self, leaving: &Leaving) -> Result<(), Refusal> {
        self.step()?;
        for &(_, task) in &leaving.tasks {
            self.graph.release(task, self.now_ns);
        }
        let goes = |(set, _): &(String, u32)| {
            leaving.sets.contains(&&set[..]) || (set.is_empty() && leaving.default)
        };
        let go: Vec<_> = self.leaves.iter().filter(|leaf| goes(leaf)).map(|(_, leaf)| *leaf).collect();
        for leaf in go {
            self.step()?;
            self.take_out(leaf);
            self.leaves.retain(|(_, other)| *other != leaf);
            self.default_leaf();
        }
        Ok(())
    }
    fn wait(&mut self) -> Result<(), Refusal> {
        self.run();
        Ok(())
    }
}

/// The graph is that of the plan: every part is there with its parameters, and nothing else is.
fn assert_is(machine: &Machine, plan: &Plan, ids: &Ids) {
    let graph = &machine.graph;
    graph.node(1); // in bounds
    for (node, &id) in plan.nodes.iter().zip(&ids.nodes) {
        let is = graph.node(id);
        assert_eq!((is.kind, is.params()), (node.policy, node.params), "{}", node.name);
        assert_ne!(is.cpus, 0, "{} is attached", node.name);
    }
    let mut count = 0;
    for (edge, &id) in plan.edges.iter().zip(&ids.edges).filter(|(_, id)| **id != 0) {
        let is = graph.edge(id);
        let name = format!("{} > {}", plan.nodes[edge.parent].name, plan.child_name(edge.child));
        let home = |parent: u32| if edge.spread { graph.node(parent).family } else { parent };
        let begin = home(ids.nodes[edge.parent]);
        assert_eq!((home(is.parent), is.child), (begin, ids.of(edge.child)), "{name}");
        assert_eq!((is.params(), is.rank), (edge.params, edge.rank), "{name}");
        count += 1;
    }
    for id in 1..200 {
        let known = ids.nodes.contains(&id) || ids.tasks.contains(&id);
        let leaf = machine.leaves.iter().any(|(_, leaf)| *leaf == id);
        assert!(graph.node(id).kind == 0 || known || leaf, "node {id} is nobody's");
    }
    let leaves = machine.leaves.iter().filter(|(_, leaf)| !ids.tasks.contains(leaf));
    count += leaves.map(|(_, leaf)| parents(graph, *leaf)).sum::<usize>();
    let there = (1..400).filter(|id| graph.edge(*id).child != 0 && graph.edge(*id).parent != 0).count();
    assert_eq!(there, count, "edges");
    assert_eq!(machine.default.0, ids.nodes[plan.default_node.unwrap()]);
    assert_eq!(machine.default.1, plan.default_params().0);
    for (set, leaf) in machine.leaves.iter().filter(|(set, _)| set.is_empty()) {
        let edge = graph.edge(graph.node(*leaf).first_parent);
        let spread = graph.node(machine.default.0).family;
        let is_default =
            edge.parent == machine.default.0 || (spread != 0 && graph.node(edge.parent).family == spread);
        assert_eq!((is_default, edge.params()), (true, machine.default.1), "default leaf {leaf}{set}");
    }
}

fn parents(graph: &Graph, leaf: u32) -> usize {
    let mut edge = graph.node(leaf).first_parent;
    let mut count = 0;
    while edge != 0 {
        edge = graph.edge(edge).next_parent;
        count += 1;
    }
    count
}

/// From one plan to the other with threads running, and with a refusal at each step in turn, which leads back.
fn there_and_back(old: &Rc<Plan>, new: &Rc<Plan>) -> usize {
    let change = Change::between(old, new).unwrap();
    for left in 1..2000 {
        let (mut machine, ids) = Machine::new(old, left);
        let mut transition = Transition::new(old.clone(), ids, new.clone(), change.clone());
        match transition.run(&mut machine) {
            Ok(()) => {
                let ids = transition.into_ids();
                assert_is(&machine, new, &ids);
                for _ in 0..200 {
                    machine.run();
                }
                return left;
            }
            Err(Refused { why: Refusal::Call(why), .. }) if why == "refused for once" => {
                let mut back = transition.reversed();
                back.run(&mut machine).unwrap();
                assert_is(&machine, old, &back.into_ids());
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("it never ends");
}

fn differences(old: &Plan, new: &Plan) -> Vec<String> {
    Change::between(old, new).unwrap().differences().iter().map(|change| change.to_string()).collect()
}

/// Each kind of change: what is written instead of what, and what that is called.
const CHANGES: &[(&str, &str, &[&str])] = &[
    ("weight = 50", "weight = 50", &[]),
    ("work = \"1ms\"", "work = \"2ms\"", &[]), // only the simulator's business
    (
        "budget = \"2ms\", period = \"10ms\"",
        "budget = \"3ms\", period = \"10ms\"",
        &["~ edge from rt to audio: budget 2ms -> 3ms"],
    ),
    (
        "budget = \"2ms\", period = \"20ms\"",
        "budget = \"1ms\", period = \"30ms\"",
        &["~ edge from rt to app: budget 2ms -> 1ms, period 20ms -> 30ms, deadline 20ms -> 30ms"],
    ),
    ("weight = 50", "weight = 60", &["~ edge from app to tool: weight 50 -> 60"]),
    ("weight = 10 ", "weight = 20 ", &["~ edge from app to worker: weight 10 -> 20"]),
    ("quantum = \"1ms\"", "quantum = \"2ms\"", &["~ node app: quantum 1ms -> 2ms"]),
    ("each = { weight = 100 }", "each = { weight = 70 }", &["~ each thread of the default node: weight 100 -> 70"]),
    (
        "each = { weight = 100 }",
        "each = { weight = \"nice\" }",
        &["~ each thread of the default node: the weight follows nice"],
    ),
    ("comm = \"audio\"", "comm = \"sound\"", &["~ match of audio"]),
    ("match = { comm = \"audio\" }\n", "", &["~ match of audio: gone"]),
    (
        "load = { period = \"10ms\"",
        "load = { deadline = \"8ms\", period = \"10ms\"",
        &["~ task audio: deadline of its jobs 10ms -> 8ms"],
    ),
    (
        "[task.tool]",
        "[node.batch]\npolicy = \"fair\"\nunder.rest = { weight = 20 }\n[tasks.job]\nunder.batch = {}\n\
         match = { comm = \"job\" }\n[task.tool]",
        &["+ node batch: fair, below rest (weight 20)", "+ set job: below batch"],
    ),
    ("[tasks.worker]\n    under.app", "[tasks.other]\n    under.app", &["- set worker", "+ set other: below app (weight 10)"]),
    ("[task.tool]", "[task.hammer]", &["- task tool", "+ task hammer: below app (weight 50)"]),
    (
        "under.app = { weight = 50 }",
        "under.rest = {}",
        &["> task tool: below app (weight 50) -> below rest"],
    ),
    (
        "under.app = { weight = 50 }",
        "under = { app = { weight = 50 }, rest = {} }",
        &["> task tool: below app (weight 50) -> below app (weight 50), below rest"],
    ),
    (
        "under.app = { weight = 10 }",
        "under.rest = { weight = 10 }",
        &["> set worker: below app (weight 10) -> below rest (weight 10)"],
    ),
    (
        "[tasks.worker]",
        "[tasks.worker]\naffinity = [0]",
        &["> set worker: below app (weight 10) -> below app (weight 10), on CPU 0"],
    ),
    (
        "policy = \"fair\"\n    quantum = \"1ms\"\n    under.rt = { budget = \"2ms\", period = \"20ms\" }",
        "policy = \"round-robin\"\n    under.rt = { budget = \"2ms\", period = \"20ms\" }",
        &[
            "> node app: fair, below rt (budget 2ms, period 20ms) -> round-robin, below rt (budget 2ms, period 20ms)",
            "> task tool: below app (weight 50) -> below app",
            "> set worker: below app (weight 10) -> below app",
        ],
    ),
    (
        "under.rt = { budget = \"2ms\", period = \"20ms\" }",
        "under.rest = {}",
        &[
            "> node app: fair, below rt (budget 2ms, period 20ms) -> fair, below rest",
            "> task tool: with what is above it",
            "> set worker: with what is above it",
        ],
    ),
    (
        "under.rt = { budget = \"2ms\", period = \"20ms\" }",
        "under.rt = { budget = \"2ms\", period = \"20ms\" }\n    [node.spare]\n    policy = \"edf\"\n    \
         under.app = {}\n    [task.deep]\n    under.spare = {}",
        &["+ node spare: edf, below app", "+ task deep: below spare"],
    ),
    (
        "[node.rest]\n    policy = \"fair\"\n    default = true\n    each = { weight = 100 }\n",
        "[node.other]\n    policy = \"round-robin\"\n    default = true\n",
        &[
            "- node rest",
            "+ node other: round-robin, below top",
            "~ default node: rest -> other",
        ],
    ),
    (
        "policy = \"fair\"\n    default = true\n    each = { weight = 100 }\n    under.top = {}",
        "policy = \"round-robin\"\n    default = true\n    under.top = {}",
        &[
            "> node rest: fair, below top -> round-robin, below top",
        ],
    ),
    // One node that both CPUs share instead of a spread one, and one without the task that stays.
    (
        "default = true\n    each = { weight = 100 }",
        "default = true\n    spread = false\n    each = { weight = 100 }",
        &["> node rest: fair, below top -> fair, below top@0, below top@1"],
    ),
    (
        "[task.tool]\n    under.app = { weight = 50 }",
        "[tasks.job]\n    count = 3\n    under.rest = {}\n    [task.first]\n    under.rest = {}\n    [task.tool]\n    \
         under.rest = { weight = 50 }",
        &[
            "> task tool: below app (weight 50) -> below rest (weight 50)",
            "+ task first: below rest",
            "+ set job: below rest",
        ],
    ),
    (
        "under.top = { cpu = 0, priority = 1 }",
        "under.top = { priority = 1 }",
        &[
            "> node rt: reservation, below top@0 (priority 1) -> reservation, below top@0 (priority 1), below top@1 \
             (priority 1)",
            "> node app: with what is above it",
            "> task audio: with what is above it",
            "> task tool: with what is above it",
            "> set worker: with what is above it",
        ],
    ),
];

#[test]
fn every_kind_of_change_and_the_way_there_and_back() {
    let old = plan(BASE);
    for (was, is, expected) in CHANGES {
        assert!(BASE.contains(was), "{was}");
        let text = BASE.replacen(was, is, 1);
        let text = match is.contains("policy = \"round-robin\"\n    under.rt") {
            true => text.replace("weight = 50", "").replace("weight = 10 ", ""), // it has no weights
            false => text,
        };
        let new = plan(&text);
        assert_eq!(differences(&old, &new), *expected, "{was} -> {is}");
        there_and_back(&old, &new);
        there_and_back(&new, &old);
    }
}

#[test]
fn what_cannot_change_is_refused_by_name() {
    let old = plan(BASE);
    for (was, is, expected) in [
        ("[node.rt]", "[machine]\ncpus = 4\n[node.rt]", "cpus_cannot_change: the machine has 2 CPUs, not 4"),
        (
            "[node.rt]",
            "[machine]\ntopology = { smt = 2 }\n[node.rt]",
            "topology_cannot_change: [machine] topology is not given, not { smt = 2 }",
        ),
        (
            "[node.rt]",
            "[run]\nwatchdog = \"20s\"\n[node.rt]",
            "watchdog_cannot_change: [run] watchdog is 30s, not 20s",
        ),
        (
            "[node.rt]",
            "[run]\nthrottle = \"user\"\n[node.rt]",
            "throttle_cannot_change: [run] throttle is anywhere, not user",
        ),
        (
            "[node.rt]",
            "[run]\nlocks = \"inheritance\"\n[node.rt]",
            "inheritance_cannot_change: [run] locks is \"none\", not \"inheritance\"",
        ),
        (
            "[node.rt]",
            "[run]\nmarks = \"/bin/camera\"\n[node.rt]",
            "marks_cannot_change: [run] marks is [], not [\"/bin/camera\"]",
        ),
        (
            "policy = \"fixed-priority\"",
            "policy = \"round-robin\"",
            "root_cannot_change: `top@0` (fixed-priority) is what CPU 0 runs, and stays that",
        ),
        ("[node.top]", "[node.bottom]", "root_cannot_change: `bottom@0` cannot become the root of a CPU"),
    ] {
        let mut text = BASE.replacen(was, is, 1);
        if is.contains("round-robin") {
            text = text.replace(", priority = 1", "");
        }
        if is.contains("bottom") {
            text = text.replace("under.top", "under.bottom");
        }
        let new = Plan::parse_with(&text, "plan.toml", Options { cpus: 2 })
            .unwrap_or_else(|faults| panic!("{faults}"));
        let fixed: Vec<_> =
            Change::between(&old, &new).unwrap_err().iter().map(|fixed| fixed.to_string()).collect();
        assert!(fixed.iter().any(|fixed| fixed == expected), "{fixed:?}");
    }
}

/// What the engine has no room for is refused on a copy, by the engine's own name, with the threads that count.
#[test]
fn what_the_engine_refuses_is_refused_before_anything_changes() {
    let old = plan(BASE);
    for (was, is, members, expected) in [
        (
            "budget = \"2ms\", period = \"10ms\"",
            "budget = \"9500us\", period = \"10ms\"",
            0,
            "edge from rt to audio: utilisation_above_one",
        ),
        // Six threads of 1 ms in 10 ms fit beside the budgets there are, ten would not.
        ("under.app = { weight = 10 }", "under.rt = { budget = \"1ms\", period = \"10ms\" }", 6, ""),
        ("budget = \"2ms\", period = \"20ms\"", "budget = \"2ms\", period = \"20ms\", rank = 1", 0, ""),
    ] {
        let new = plan(&BASE.replacen(was, is, 1));
        let change = Change::between(&old, &new).unwrap();
        let (mut trial, ids) = Trial::new(&old).unwrap();
        for _ in 0..members {
            trial.member(&old, &ids, 0, &old.sets[0].under, Cpus::ALL).unwrap();
        }
        trial.unmatched(Cpus::ALL).unwrap();
        let result = Transition::new(old.clone(), ids, new, change).run(&mut trial);
        match result {
            Ok(()) => assert_eq!(expected, "", "{is}"),
            Err(refused) => {
                assert!(!expected.is_empty() && refused.to_string().contains(expected), "{is}: {refused}")
            }
        }
        trial.graph.check(true).unwrap();
    }
    // Members that are there keep their places: a budget beside them that does not fit is refused.
    let old = plan(&BASE.replacen(
        "under.app = { weight = 10 }",
        "under.rt = { budget = \"1ms\", period = \"10ms\" }",
        1,
    ));
    let new = plan(&BASE.replacen(
        "under.app = { weight = 10 }",
        "under.rt = { budget = \"2ms\", period = \"10ms\" }",
        1,
    ));
    let change = Change::between(&old, &new).unwrap();
    for (members, fits) in [(3, true), (4, false)] {
        let (mut trial, ids) = Trial::new(&old).unwrap();
        for _ in 0..members {
            trial.member(&old, &ids, 0, &old.sets[0].under, Cpus::ALL).unwrap();
        }
        let result = Transition::new(old.clone(), ids, new.clone(), change.clone()).run(&mut trial);
        assert_eq!(result.is_ok(), fits, "{members} members: {result:?}");
        assert!(fits || result.unwrap_err().to_string().contains("utilisation_above_one"));
    }
}

const NEW: &str = "[task.new]\nunder.rt = { budget = \"9ms\", period = \"10ms\" }\n[task.audio]";

/// Only what is done in several steps, some of which may be refused when others are done, is tried on a copy first.
#[test]
fn what_may_be_refused_halfway_needs_a_trial() {
    let old = plan(BASE);
    let audio = "budget = \"2ms\", period = \"10ms\"";
    for (what, changes, needs) in [
        ("nothing", &[][..], false),
        ("a match", &[("comm = \"audio\"", "comm = \"sound\"")], false),
        ("an edge", &[(audio, "budget = \"3ms\", period = \"10ms\"")], false),
        ("a node", &[("quantum = \"1ms\"", "quantum = \"2ms\"")], false),
        (
            "two edges",
            &[(audio, "budget = \"3ms\", period = \"10ms\""), ("weight = 50", "weight = 60")],
            true,
        ),
        (
            "a node and an edge",
            &[("quantum = \"1ms\"", "quantum = \"2ms\""), ("weight = 50", "weight = 60")],
            true,
        ),
        ("edges of members", &[("weight = 10 ", "weight = 20 ")], true),
        ("each thread", &[("each = { weight = 100 }", "each = { weight = 70 }")], true),
        ("a task comes", &[("[task.audio]", NEW)], false),
        ("a task comes, an edge changes", &[("[task.audio]", NEW), ("weight = 50", "weight = 60")], true),
        ("a task goes, another comes", &[("[task.audio]", "[task.sound]")], true),
        ("a task goes elsewhere", &[("under.app = { weight = 50 }", "under.rest = {}")], true),
    ] {
        let text = changes.iter().fold(BASE.to_string(), |text, (was, is)| text.replacen(was, is, 1));
        let new = plan(&text);
        assert_eq!(Change::between(&old, &new).unwrap().needs_a_trial(&old, &new), needs, "{what}");
    }
    let new = plan(&BASE.replacen("[task.audio]", NEW, 1));
    let goes = Change::between(&new, &old).unwrap();
    assert!(!goes.needs_a_trial(&new, &old), "what goes is never refused");
}

/// Without a trial, too, what is refused leaves no trace in what is there.
#[test]
fn what_is_refused_in_one_step_leaves_no_trace() {
    let old = plan(BASE);
    let more = "[node.more]\npolicy = \"fair\"\nunder.rt = { budget = \"1ms\", period = \"10ms\" }\nunder.rest = {}\n";
    for (was, is) in [
        ("budget = \"2ms\", period = \"10ms\"", "budget = \"9500us\", period = \"10ms\"".to_string()),
        ("[task.audio]", NEW.to_string()),
        ("[task.audio]", format!("{more}{NEW}")),
    ] {
        let new = plan(&BASE.replacen(was, &is, 1));
        let change = Change::between(&old, &new).unwrap();
        assert!(!change.needs_a_trial(&old, &new));
        let (mut machine, ids) = Machine::new(&old, usize::MAX);
        let shown = |graph: &Graph, ids: &Ids| -> Vec<String> {
            let nodes = ids.nodes.iter().chain(&ids.tasks).map(|id| format!("{:?}", graph.node(*id)));
            // New parameters end the window in which it is counted whether a promise is kept.
            let edges = ids.edges.iter().map(|id| {
                let edge = format!("{:?}", graph.edge(*id));
                let (before, promise) = edge.split_once("promise: ").unwrap();
                format!("{before}{}", promise.split_once('}').unwrap().1)
            });
            nodes.chain(edges).collect()
        };
        machine.stands = true;
        let before = shown(&machine.graph, &ids);
        let mut transition = Transition::new(old.clone(), ids, new, change);
        let refused = transition.run(&mut machine).unwrap_err().to_string();
        assert!(refused.contains("utilisation_above_one"), "{refused}");
        let mut back = transition.reversed();
        back.run(&mut machine).unwrap();
        let ids = back.into_ids();
        assert_is(&machine, &old, &ids);
        assert_eq!(shown(&machine.graph, &ids), before, "{is}");
    }
}

/// A task that was placed makes room for another one, and comes back when that goes; threads of a set stay where they are.
#[test]
fn what_was_placed_moves_for_others_and_back() {
    let text = |parts: &[(&str, u32)]| {
        let mut text = r#"
            node.top = { policy = "fixed-priority", per_cpu = true }
            node.rt = { policy = "reservation", per_cpu = true, under.top = { priority = 1 } }
            node.rest = { policy = "fair", default = true, under.top = { priority = 0 } }
            tasks.set = { under.rt = { cpu = "any", budget = "1ms", period = "10ms", soft = "rest" }, match.comm = "set" }
        "#
        .to_string();
        for (name, budget) in parts {
            text += &format!(
                "task.{name} = {{ under.rt = {{ cpu = \"any\", budget = \"{budget}ms\", period = \"10ms\" }}, match.comm = \"{name}\" }}\n"
            );
        }
        text
    };
    let old = plan(&text(&[("a", 3), ("b", 2)]));
    let source = Source::new("plan.toml", text(&[("a", 3), ("b", 2), ("c", 8)]));
    let sources = Sources(vec![source.into()]);
    let options = Options { cpus: 2 };
    // With a thread of the set 30 % of each CPU are used: one of the two tasks has to move.
    let mut standing = Standing::of(&old);
    let way = &old.sets[0].elsewhere[0];
    standing.member(&old, 0, way);
    let new = Plan::from_sources_after(&sources, options, &standing).unwrap();
    assert_eq!((old.placed(), new.placed()), (vec![("a", 0), ("b", 1)], vec![("a", 1), ("b", 1), ("c", 0)]));
    let new = Rc::new(new);
    assert!(there_and_back(&old, &new) > 5);
    assert!(there_and_back(&new, &old) > 5);
    for (from, to) in [(&old, &new), (&new, &old)] {
        let change = Change::between(from, to).unwrap();
        assert!(change.differences().iter().any(|one| one.to_string().starts_with("> task a")));
        let (mut trial, ids) = Trial::new(from).unwrap();
        trial.member(from, &ids, 0, way, Cpus::ALL).unwrap();
        Transition::new(from.clone(), ids, to.clone(), change).run(&mut trial).unwrap();
        trial.graph.check(true).unwrap();
    }
}

/// Random plans of a few names each: any becomes any other.
#[test]
fn any_plan_becomes_any_other() {
    let mut seed = 1u64;
    let mut draw = |below: u64| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) % below
    };
    let mut random = || {
        let mut text = String::from("[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n");
        let mut nodes = vec![("top".to_string(), 0)];
        let edge = |policy: u64, draw: &mut dyn FnMut(u64) -> u64| match policy {
            0 => format!("priority = {}", draw(3)),
            1 => format!("budget = \"{}us\", period = \"{}ms\"", 100 + draw(400), 10 + draw(10)),
            2 => format!("weight = {}", 1 + draw(200)),
            _ => String::new(),
        };
        let policies = ["fixed-priority", "reservation", "fair", "round-robin", "edf"];
        for name in ["a", "b", "c", "d", "e"] {
            if draw(4) == 0 {
                continue;
            }
            let policy = draw(5);
            text += &format!("[node.{name}]\npolicy = \"{}\"\n", policies[policy as usize]);
            let first = draw(nodes.len() as u64) as usize;
            let second = draw(nodes.len() as u64) as usize;
            for parent in if first != second && draw(3) == 0 { vec![first, second] } else { vec![first] } {
                let (parent, kind) = nodes[parent].clone();
                text += &format!("under.{parent} = {{ {} }}\n", edge(kind, &mut draw));
            }
            nodes.push((name.to_string(), policy));
        }
        let default = ["rest", "other"][draw(2) as usize];
        text += &format!("[node.{default}]\npolicy = \"fair\"\ndefault = true\n");
        text += &format!("each = {{ weight = {} }}\nunder.top = {{}}\n", 100 + draw(2));
        for (kind, name) in [("task", "t"), ("task", "u"), ("tasks", "v"), ("tasks", "w")] {
            if draw(4) == 0 {
                continue;
            }
            let (parent, policy) = nodes[draw(nodes.len() as u64) as usize].clone();
            text += &format!("[{kind}.{name}]\nunder.{parent} = {{ {} }}\n", edge(policy, &mut draw));
            text += &format!("match = {{ comm = \"{name}\" }}\n");
        }
        Plan::parse_with(&text, "plan.toml", Options { cpus: 2 }).ok().map(Rc::new)
    };
    let mut plans = Vec::new();
    while plans.len() < 24 {
        plans.extend(random().filter(|plan| {
            let mut graph = Graph::new(2, 0).unwrap();
            plan.build(&mut graph.at(0), Members::Live).is_ok()
        }));
    }
    let mut steps = 0;
    for pair in plans.windows(2) {
        steps += there_and_back(&pair[0], &pair[1]);
    }
    println!("{steps} steps, each refused once");
}
