//! The hierarchies of Regehr's thesis (HLS, 2001), Figures 6.3, 6.4, 6.5, 7.1, 7.2 and 7.3: what check derives of examples/hls-*.toml,
//! and what the simulator gives.

use tierce_admission::{Admission, PlanExt, Share};
use tierce_guarantee::schedulers::{sfq, SfqBound};
use tierce_guarantee::{whole, Guarantee};
use tierce_plan::{Child, Plan};
use tierce_sim::{Options, Simulation};
use tierce_trace::report::{Constraints, TaskReport};
use tierce_trace::Report;

const MS: u64 = 1_000_000;

struct Figure {
    plan: Plan,
    admission: Admission,
    report: Report,
}

impl Figure {
    fn new(name: &str, for_ms: u64) -> Self {
        Self::without(name, "\n\n", for_ms)
    }

    /// Without the lines that have this in them.
    fn without(name: &str, part: &str, for_ms: u64) -> Self {
        let path = format!("{}/../../examples/hls-{name}.toml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.contains(part)).collect();
        let plan = Plan::parse(&lines.join("\n"), &path)
            .unwrap_or_else(|faults| panic!("{}", faults.report_plain()));
        let admission = plan.admit();
        assert!(admission.holds, "{}", admission.outline(&plan));
        let mut simulation = Simulation::new(&plan, Options { check: true, ..Options::default() }).unwrap();
        simulation.run_until(for_ms * MS).unwrap();
        Self { report: simulation.report(), plan, admission }
    }

    /// What a part is promised.
    fn promised(&self, name: &str) -> Vec<String> {
        let node = self.plan.nodes.iter().position(|node| node.name == name);
        let task = self.plan.tasks.iter().position(|task| task.name == name);
        let promises = match (node, task) {
            (Some(node), _) => &self.admission.nodes[node].promises,
            (_, Some(task)) => &self.admission.tasks[task].promises,
            _ => panic!("no {name}"),
        };
        promises.iter().map(|promise| promise.guarantee.to_string()).collect()
    }

    fn first(&self, name: &str) -> String {
        self.promised(name).remove(0)
    }

    /// The rate at which a node is supplied, in per cent of a CPU.
    fn rate(&self, name: &str) -> u64 {
        let node = self.plan.nodes.iter().position(|node| node.name == name).unwrap();
        let share = self.admission.nodes[node].available.clone().unwrap() * Share::from_integer(100.into());
        u64::try_from(share.to_integer()).unwrap()
    }

    /// What the tasks below these names got in the simulator, in per cent of a CPU.
    fn got(&self, begin: &str, for_ms: u64) -> u64 {
        let tasks = self.report.tasks.iter().filter(|task| task.name.starts_with(begin));
        tasks.map(|task| task.cpu_ns).sum::<u64>() / (for_ms * MS / 100)
    }

    fn task(&self, name: &str) -> &TaskReport {
        self.report.tasks.iter().find(|task| task.name == name).unwrap()
    }

    fn misses(&self) -> u64 {
        self.report.tasks.iter().map(|task| task.misses).sum()
    }
}

#[test]
fn figure_6_3_hard_and_soft_reservations() {
    let figure = Figure::new("6.3", 1000);
    assert_eq!(figure.promised("t1"), ["RESBH 2ms 10ms"]);
    // Theorem 5.2 and the needs: more may come, so it is soft.
    assert_eq!(figure.first("t2"), "RESBS 3ms 20ms");
    assert_eq!(figure.first("t3"), "RESBS 10ms 50ms");
    assert_eq!(figure.first("ts"), "RESBS 5ms 20ms");
    assert_eq!(figure.promised("t4"), ["NULL"]);
    assert_eq!(figure.got("t1", 1000), 20); // hard
    assert!(figure.got("t2", 1000) > 30 && figure.misses() == 0); // soft
}

#[test]
fn figure_6_4_probabilistic_reservations() {
    let figure = Figure::new("6.4", 3300);
    assert_eq!(figure.promised("t1"), ["RESBH 2ms 10ms"]);
    for decoder in ["t2", "t3"] {
        // 5 of 33 at least, 15 of 33 at most
        let promised = figure.promised(decoder);
        assert!(promised.contains(&"RESPS 5ms 33ms 10ms".to_string()), "{promised:?}");
        assert!(promised.contains(&"RESBS 5ms 33ms".to_string()), "{promised:?}");
    }
    assert_eq!(figure.promised("t4"), ["NULL"]);
    assert_eq!(figure.misses(), 0); // they never overrun together
}

/// 6.2.4: reservations and time constraints, then who was briefly blocked, then all in turns.
#[test]
fn figure_6_5_rialto() {
    let figure = Figure::new("6.5", 5000);
    for (activity, promised) in
        [("ac1", "RESBH 3ms 10ms"), ("ac2", "RESBH 4ms 20ms"), ("pool", "RESBH 3ms 15ms")]
    {
        assert_eq!(figure.promised(activity), [promised]);
    }
    for thread in ["t1", "t2", "t3", "t4", "t5"] {
        assert!(figure.promised(thread).iter().all(|promise| promise == "NULL"));
        // only time constraints
    }
    for thread in ["t1", "t3"] {
        let Constraints { asked, accepted, met } = figure.task(thread).constraints.unwrap();
        assert!(asked > 50 && accepted == asked && met + 1 >= asked, "{thread}");
        // one may be under way
    }
    // what the activity of t3 could not promise, the pool could
    let alone = Figure::without("6.5", "under.pool", 5000);
    assert_eq!(alone.task("t3").constraints.unwrap().accepted, 0);
    // the second chance: t3 is done sooner, though all had their turns
    let average_ns = |figure: &Figure| figure.task("t3").response_ns.unwrap().avg;
    let without = Figure::without("6.5", "under.bb", 5000);
    assert!(average_ns(&figure) + 3_000_000 < average_ns(&without));
    assert!(figure.got("t5", 5000) >= 20);
}

#[test]
fn figure_7_1_virtual_web_servers() {
    let figure = Figure::new("7.1", 4000);
    let rates = [("ps2", 40), ("ps3", 20), ("ps4", 20), ("ps5", 160), ("ps6", 20), ("ps7", 140)];
    for (node, rate) in rates {
        assert_eq!(figure.rate(node), rate, "{node}");
    }
    // PS 1.0 and 0.6 for PS5, 1.0 and 0.4 for PS7.
    let through = |child: &str| -> Vec<_> {
        let edges = figure.plan.edges.iter().zip(&figure.admission.edges);
        let to = |edge: &tierce_plan::Edge| match edge.child {
            Child::Node(node) => figure.plan.nodes[node].name == child,
            _ => false,
        };
        edges
            .filter(|(edge, _)| to(edge))
            .map(|(_, verdict)| verdict.available.clone().unwrap().to_string())
            .collect()
    };
    assert_eq!(
        (through("ps5"), through("ps7")),
        (["1", "3/5"].map(String::from).into(), ["1", "2/5"].map(String::from).into())
    );
    let got = [("shop", 20), ("forum", 20), ("mail", 20), ("search", 140)];
    for (tasks, share) in got {
        assert_eq!(figure.got(tasks, 4000), share, "{tasks}");
    }
}

/// An edge is one virtual processor: nobody gets more than a CPU through it, whatever its weight.
#[test]
fn an_edge_gives_one_cpu_at_most() {
    let text = "[machine]\ncpus = 2\n[node.top]\npolicy = \"fair\"\ncpus = \"all\"\n\
                [node.a]\npolicy = \"fair\"\nunder.top = { weight = 90 }\n[tasks.x]\ncount = 3\nunder.a = {}\nload = \"busy\"\n\
                [task.b]\nunder.top = { weight = 10 }\nload = \"busy\"\n";
    let plan = Plan::parse(text, "two").unwrap();
    let admission = plan.admit();
    assert_eq!(admission.nodes[1].available, Some(Share::from_integer(1.into())));
    let mut simulation = Simulation::new(&plan, Options::default()).unwrap();
    simulation.run_until(900 * MS).unwrap();
    let got: Vec<_> = simulation.report().tasks.iter().map(|task| task.cpu_ns / MS).collect();
    assert_eq!(got, [300, 300, 300, 900]);
}

#[test]
fn figure_7_2_a_home_computer() {
    let figure = Figure::new("7.2", 1000);
    assert_eq!(figure.promised("t1"), ["RESBH 1ms 10ms"]);
    assert_eq!(figure.first("rm"), "RESBS 1.5ms 5ms");
    assert_eq!(figure.first("sfq"), "RESBS 10ms 20ms");
    // The thesis: PSBE 0.3 35ms. Sound and tight: 20 ms.
    let supply = Guarantee::parse("RESBS 10ms 20ms").unwrap();
    let children = |bound| {
        let weights = [60, 20, 20].map(whole);
        let children = sfq(&supply, &whole(5 * MS), &weights, bound).unwrap();
        children.guarantees.iter().map(|guarantee| guarantee.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(children(SfqBound::Paper), ["PSBE 3/10 35ms", "PSBE 1/10 15ms", "PSBE 1/10 15ms"]);
    assert_eq!(children(SfqBound::Tight), ["PSBE 3/10 20ms", "PSBE 1/10 10ms", "PSBE 1/10 10ms"]);
    let named = ["ts1", "t7", "t8"].map(|name| figure.first(name));
    assert_eq!(named, ["PSBE 3/10 20ms", "PSBE 1/10 10ms", "PSBE 1/10 10ms"]);
    let ts1 = figure.plan.nodes.iter().position(|node| node.name == "ts1").unwrap();
    assert!(figure.admission.nodes[ts1].needs[0].is_ok()); // PSBE 0.3 35ms
                                                           // 90 % of RES are reserved.
    let res = figure.plan.nodes.iter().position(|node| node.name == "res").unwrap();
    assert_eq!(figure.admission.nodes[res].asked, Some(Share::new(9.into(), 10.into())));
    // The application's threads in 1.5 ms of 5.
    let responses: Vec<_> =
        figure.admission.tasks[1..3].iter().map(|task| task.response.unwrap().ns()).collect();
    assert_eq!(responses, [Some(13_500_000), Some(38_000_000)]);
    assert_eq!(figure.misses(), 0);
}

/// The tenth of RES that is left: a larger request is rejected.
#[test]
fn figure_7_2_rejects_more_than_a_tenth() {
    let path = format!("{}/../../examples/hls-7.2.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let with = |budget: &str| {
        let more = format!("[task.t9]\nunder.res = {{ budget = \"{budget}\", period = \"10ms\" }}\n");
        Plan::parse(&(text.clone() + &more), "more").unwrap().admit().holds
    };
    assert!(with("1ms") && !with("1.001ms"));
}

#[test]
fn figure_7_3_a_terminal_server() {
    let figure = Figure::new("7.3", 3300);
    assert_eq!(figure.first("ps"), "RESBS 60ms 100ms");
    for user in ["ts1", "ts2"] {
        assert_eq!(figure.first(user), "PSBE 3/10 44ms"); // 30 % of a processor
    }
    assert_eq!(figure.first("t4"), "NULL"); // table 5.1
    assert_eq!(figure.promised("t3"), ["RESBH 40ms 100ms"]);
    for video in ["t1", "t2"] {
        let promised = figure.promised(video);
        assert!(promised.contains(&"RESPS 5ms 33ms 8ms".to_string()), "{promised:?}");
    }
    assert_eq!((figure.got("t6", 3300), figure.misses()), (50, 0));
}
