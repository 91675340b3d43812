//! Regions without preemption: worked examples, what holds beside them, and random plans, which never take longer than `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;

const US: u64 = 1_000;

/// Tasks below one node: name, its edge, its load.
fn below(node: &str, tasks: &[[&str; 3]]) -> Plan {
    let mut text = format!("[node.top]\n{node}\n");
    for [name, edge, load] in tasks {
        let _ = writeln!(text, "[task.{name}]\nunder.top = {{ {edge} }}\nload = {{ {load} }}");
    }
    parse(&text)
}

/// Longest responses in us.
fn longest(plan: &Plan, until_ns: u64) -> Vec<u64> {
    let report = report_of(plan, 1, until_ns);
    report.tasks.iter().map(|task| task.response_ns.as_ref().map_or(0, |seen| seen.max / US)).collect()
}

/// What check says, in ns.
fn bounds(plan: &Plan) -> Vec<Option<u64>> {
    plan.admit().tasks.iter().map(|task| task.response.and_then(|found| found.ns())).collect()
}

const BY_PRIORITY: &str = "policy = \"fixed-priority\"\ncpu = 0";
const BY_DEADLINE: &str = "policy = \"edf\"\ncpu = 0";

/// Low works from 0 on; high comes at 1 ms, for 1 ms.
fn two(node: &str, low: &str) -> Vec<u64> {
    let edge = |priority| if node == BY_PRIORITY { format!("priority = {priority}") } else { String::new() };
    let low = format!("period = \"40ms\", work = \"4ms\"{low}");
    let high = "period = \"10ms\", phase = \"1ms\", work = \"1ms\"";
    longest(&below(node, &[["high", &edge(2), high], ["low", &edge(1), &low]]), 11 * MS)
}

#[test]
fn who_is_in_a_region_goes_on() {
    for node in [BY_PRIORITY, BY_DEADLINE] {
        assert_eq!(two(node, ""), [1_000, 5_000]);
        assert_eq!(two(node, ", preemption = \"full\""), [1_000, 5_000]);
        assert_eq!(two(node, ", preemption = \"none\""), [4_000, 4_000]);
        assert_eq!(two(node, ", regions = [{ length = \"3ms\" }]"), [3_000, 5_000]);
        // A region that begins when the other one comes has not begun; one that ends then has ended.
        assert_eq!(two(node, ", regions = [{ at = \"1ms\", length = \"2ms\" }]"), [1_000, 5_000]);
        assert_eq!(two(node, ", regions = [{ length = \"1ms\" }]"), [1_000, 5_000]);
        // Between two regions jobs give way.
        let list = ", regions = [{ length = \"1500us\" }, { length = \"500us\" }, { at = \"3ms\", length = \"1ms\" }]";
        assert_eq!(two(node, list), [1_500, 5_000]);
    }
}

/// A floating region begins when the more urgent job comes: that waits for the whole of it, or for what is left of the job.
#[test]
fn a_floating_region_begins_when_it_hurts() {
    for node in [BY_PRIORITY, BY_DEADLINE] {
        assert_eq!(two(node, ", longest_region = \"2ms\""), [3_000, 5_000]);
        assert_eq!(two(node, ", longest_region = \"3ms\""), [4_000, 4_000]);
        assert_eq!(two(node, ", longest_region = \"4ms\""), [4_000, 4_000]);
    }
    // One that has begun for somebody holds for those who come then, and after it the job gives way to both; the next comes at 8 ms.
    let loads = [
        "8ms\", phase = \"2ms\", work = \"1ms",
        "8ms\", phase = \"1ms\", work = \"1ms",
        "40ms\", work = \"11ms",
    ];
    let [a, b, c] = loads.map(|load| format!("period = \"{load}\""));
    let c = format!("{c}, longest_region = \"2ms\"");
    let tasks = [["a", "priority = 3", &a], ["b", "priority = 2", &b], ["c", "priority = 1", &c[..]]];
    let plan = below(BY_PRIORITY, &tasks);
    // c to 3, a to 4, b to 5, c to 9 and, since b has come, to 11, a to 12, b to 13, c to 15 ms.
    assert_eq!(longest(&plan, 16 * MS), [2_000, 4_000, 15_000]);
    assert_eq!(bounds(&plan), [Some(3 * MS), Some(4 * MS), Some(15 * MS)]);
}

/// Baruah's floating regions by deadlines: the demand of a window has the longest region of who is due later.
#[test]
fn floating_regions_by_deadline() {
    let judged = |region: &str| {
        let long = format!("period = \"20ms\", work = \"8ms\", longest_region = \"{region}\"");
        let short = "period = \"10ms\", deadline = \"4ms\", phase = \"1ms\", work = \"2ms\"";
        let plan = below(BY_DEADLINE, &[["short", "", short], ["long", "", &long]]);
        (plan.admit().holds, longest(&plan, 20 * MS)[0])
    };
    assert_eq!(judged("2ms"), (true, 4_000));
    assert_eq!(judged("2001us"), (false, 4_001));
}

/// Davis, Burns, Bril & Lukkien 2007: three messages on a CAN bus. The second job of the last takes longest, 3.5 ms; the first only 3 ms.
#[test]
fn messages_on_a_bus() {
    let load = |period, deadline, phase| {
        format!("period = \"{period}us\", deadline = \"{deadline}us\", work = \"1ms\", phase = \"{phase}ns\", preemption = \"none\"")
    };
    let plan = |phase| {
        let loads = [load(2500, 2500, phase), load(3500, 3250, phase), load(3500, 3250, 0)];
        let [a, b, c] = &loads;
        below(BY_PRIORITY, &[["a", "priority = 3", a], ["b", "priority = 2", b], ["c", "priority = 1", c]])
    };
    assert_eq!(bounds(&plan(0)), [Some(2 * MS - 1), Some(3 * MS - 1), Some(3_500_000)]);
    assert_eq!(longest(&plan(0), 7 * MS + 1)[2], 3_500);
    // They come 1 ns after a job of the last has begun.
    assert_eq!(longest(&plan(1), 3 * MS + 1)[..2], [1_999, 2_999]);
}

/// The first of docs/regions.md.
const TWO: &str = r#"
    [node.top]
    policy = "fixed-priority"
    cpu = 0
    [task.control]
    under.top = { priority = 2 }
    load = { period = "5ms", deadline = "4ms", work = "2ms" }
    [task.filter]
    under.top = { priority = 1 }
    load = { period = "7ms", work = "4ms", regions = [{ at = "2ms", length = "2ms" }] }
    "#;

/// The deadlines hold neither with full preemption nor with none.
#[test]
fn a_last_region_helps() {
    let regions = ", regions = [{ at = \"2ms\", length = \"2ms\" }]";
    let judged = |text: &str| {
        let plan = parse(text);
        let misses =
            report_of(&plan, 1, 350 * MS).tasks.iter().map(|task| task.misses > 0).collect::<Vec<_>>();
        (bounds(&plan), plan.admit().holds, misses)
    };
    assert_eq!(judged(TWO), (vec![Some(4 * MS - 1), Some(7 * MS)], true, vec![false, false]));
    let (full, none) = (TWO.replace(regions, ""), TWO.replace(regions, ", preemption = \"none\""));
    assert_eq!(judged(&full), (vec![Some(2 * MS), Some(8 * MS)], false, vec![false, true]));
    assert_eq!(judged(&none), (vec![Some(6 * MS - 1), Some(6 * MS)], false, vec![true, false]));
    // The same inside a reservation.
    let example = include_str!("../../../examples/regions.toml");
    assert_eq!(judged(example), (vec![Some(4_399_999), Some(6_800_000)], true, vec![false, false]));
    assert_eq!(judged(&example.replace(regions, "")).2, [false, true]);
    assert_eq!(judged(&example.replace(regions, ", preemption = \"none\"")).2, [true, false]);
}

/// Equals do not take turns within a region.
#[test]
fn turns_wait_for_the_end_of_a_region() {
    let equals = |regions: &str| {
        let edge = "priority = 1, quantum = \"1ms\"";
        let load = format!("period = \"40ms\", work = \"4ms\"{regions}");
        longest(&below(BY_PRIORITY, &[["a", edge, &load], ["b", edge, &load]]), 39 * MS)
    };
    assert_eq!(equals(""), [7_000, 8_000]);
    assert_eq!(equals(", preemption = \"none\""), [4_000, 8_000]);
}

const BESIDE: &str = r#"
    [node.budgets]
    policy = "reservation"
    cpu = 0
    [node.top]
    policy = "fixed-priority"
    under.budgets = { budget = "2ms", period = "10ms" }
    [node.other]
    policy = "fair"
    under.top = { priority = 3 }
    [task.between]
    under.other = {}
    load = { period = "100ms", phase = "11ms", work = "1ms" }
    [task.high]
    under.top = { priority = 2 }
    load = { period = "50ms", phase = "12ms", work = "500us" }
    [task.low]
    under.top = { priority = 1 }
    load = { period = "100ms", work = "4ms", preemption = "none" }
    "#;

/// A budget that ends within a region ends, and so does what another node has; the region goes on before the other tasks of the node.
#[test]
fn a_region_does_not_hold_what_is_above() {
    // Low works from 0 to 2 ms and 10 to 11 ms; then a task of another node for 1 ms, until the budget ends; low goes on from 20 to 21 ms.
    assert_eq!(longest(&parse(BESIDE), 49 * MS), [1_000, 9_500, 21_000]);
}

/// Only a priority above the threshold preempts a job that has begun.
#[test]
fn thresholds_hold_from_the_first_ns_on() {
    let plan = |threshold: &str, phase: &str| {
        let low = format!("period = \"40ms\", work = \"4ms\"{threshold}");
        let [middle, high] =
            ["1ms", "2ms"].map(|work| format!("period = \"20ms\", phase = \"{phase}\", work = \"{work}\""));
        let tasks = [
            ["high", "priority = 5", &high],
            ["middle", "priority = 3", &middle[..]],
            ["low", "priority = 1", &low],
        ];
        longest(&below(BY_PRIORITY, &tasks), 19 * MS)
    };
    assert_eq!(plan("", "1ms"), [2_000, 3_000, 7_000]);
    assert_eq!(plan(", threshold = 1", "1ms"), [2_000, 3_000, 7_000]);
    assert_eq!(plan(", threshold = 2", "1ms"), [2_000, 3_000, 7_000]);
    for threshold in [3, 4] {
        assert_eq!(plan(&format!(", threshold = {threshold}"), "1ms"), [2_000, 6_000, 6_000]);
    }
    assert_eq!(plan(", threshold = 5", "1ms"), [5_000, 6_000, 4_000]);
    assert_eq!(plan(", threshold = 65535", "1ms"), [5_000, 6_000, 4_000]);
    // A job that has not done 1 ns has not begun.
    assert_eq!(plan(", threshold = 5", "0ms"), [2_000, 3_000, 7_000]);
    assert_eq!(plan(", threshold = 5", "1ns"), [5_999, 6_999, 4_000]);
}

/// Equals do not take turns against a threshold, nor does one begin that another one holds back.
#[test]
fn turns_wait_for_a_threshold() {
    let equals = |a: &str, b: &str| {
        let edge = "priority = 1, quantum = \"1ms\"";
        let load = |threshold| format!("period = \"40ms\", work = \"4ms\"{threshold}");
        longest(&below(BY_PRIORITY, &[["a", edge, &load(a)], ["b", edge, &load(b)]]), 39 * MS)
    };
    assert_eq!(equals("", ""), [7_000, 8_000]);
    assert_eq!(equals(", threshold = 1", ", threshold = 1"), [4_000, 8_000]);
    assert_eq!(equals("", ", threshold = 1"), [8_000, 5_000]);
}

/// Three tasks of Wang & Saksena 1999: 20 in 70 due within 50, 20 in 80, 35 in 200 due within 100. Neither full preemption nor none meets all
/// deadlines, thresholds do. (`check` counts a region from 1 ns after its begin, where continuous time counts all of it.)
#[test]
fn thresholds_help() {
    // `late`: so many of the first come 1 ns after the others.
    let plan = |[a, b, c]: [&str; 3], late: usize| {
        let phase = |task| if task < late { ", phase = \"1ns\"" } else { "" };
        let loads = [
            format!("period = \"70ms\", deadline = \"50ms\", work = \"20ms\"{a}{}", phase(0)),
            format!("period = \"80ms\", work = \"20ms\"{b}{}", phase(1)),
            format!("period = \"200ms\", deadline = \"100ms\", work = \"35ms\"{c}"),
        ];
        let [a, b, c] = &loads;
        below(BY_PRIORITY, &[["t1", "priority = 3", a], ["t2", "priority = 2", b], ["t3", "priority = 1", c]])
    };
    let judged = |how| (bounds(&plan(how, 0)), plan(how, 0).admit().holds);
    let exactly = |list: [u64; 3]| list.map(Some).to_vec();
    assert_eq!(judged([""; 3]), (exactly([20 * MS, 40 * MS, 115 * MS]), false));
    let none = ", preemption = \"none\"";
    assert_eq!(judged([none; 3]), (exactly([55 * MS - 1, 75 * MS - 1, 75 * MS]), false));
    let thresholds = [", threshold = 3", ", threshold = 3", ", threshold = 2"];
    assert_eq!(judged(thresholds), (exactly([40 * MS - 1, 75 * MS - 1, 95 * MS]), true));
    // Each of these is seen: where all come together, and where the first or the first two come 1 ns after a less urgent one has begun.
    assert_eq!(longest(&plan(thresholds, 0), 200 * MS)[2], 95_000);
    assert_eq!(longest(&plan(thresholds, 1), 69 * MS)[0], 39_999);
    assert_eq!(longest(&plan(thresholds, 2), 79 * MS)[1], 74_999);
    assert_eq!(longest(&plan([""; 3], 0), 199 * MS)[2], 115_000);
}

/// A job that was preempted keeps its threshold, also while a budget above has ended.
#[test]
fn thresholds_hold_while_a_job_waits() {
    let plan = parse(
        r#"
        [node.budgets]
        policy = "reservation"
        cpu = 0
        [node.top]
        policy = "fixed-priority"
        under.budgets = { budget = "2ms", period = "10ms" }
        [task.high]
        under.top = { priority = 4 }
        load = { period = "100ms", phase = "1ms", work = "500us" }
        [task.middle]
        under.top = { priority = 2 }
        load = { period = "100ms", phase = "1ms", work = "1ms" }
        [task.low]
        under.top = { priority = 1 }
        load = { period = "100ms", work = "4ms", threshold = 3 }
        "#,
    );
    // Low works from 0 to 1 ms, high to 1.5 ms, low to 2, 10 to 12 and 20 to 20.5 ms, then middle.
    assert_eq!(longest(&plan, 99 * MS), [500, 20_500, 20_500]);
}

#[test]
fn check_says_whose_threshold_is_in_the_way() {
    let plan = parse(&TWO.replace("regions = [{ at = \"2ms\", length = \"2ms\" }]", "threshold = 2"));
    let verdict = plan.admit();
    let text = verdict.explain(&plan, "control").unwrap();
    let line = "  threshold it waits up to 3.999999ms for `filter`, which works for up to 4ms and, once begun, gives way only to priorities above 2\n";
    assert!(text.contains(line), "{text}");
    let text = verdict.explain(&plan, "filter").unwrap();
    assert!(
        text.contains("  threshold its own jobs, once begun, give way only to priorities above 2\n"),
        "{text}"
    );
    let json = verdict.to_json(&plan);
    let blocking = &json["tasks"][0]["blocking"];
    assert_eq!(blocking["most_ns"], 4 * MS - 1);
    assert_eq!(blocking["region"]["task"], "filter");
    assert_eq!(blocking["region"]["threshold"], 2);
    assert_eq!(blocking["region"]["length_ns"], 4 * MS);
    assert!(json["tasks"][1].get("blocking").is_none(), "{json}");
    // `control` misses its deadline of 4 ms by that wait.
    let why = verdict.faults(&plan).to_string();
    assert!(
        why.contains("Of it up to 3.999999ms is the wait for `filter`, which works for up to 4ms"),
        "{why}"
    );
}

/// Another priority may help, but none above the threshold.
#[test]
fn no_remedy_is_above_a_threshold() {
    let priorities = |threshold: &str| {
        let low = format!("period = \"10ms\", deadline = \"3ms\", work = \"2ms\"{threshold}");
        let high = "period = \"20ms\", work = \"2ms\"";
        let plan = below(BY_PRIORITY, &[["high", "priority = 2", high], ["low", "priority = 1", &low]]);
        let verdict = plan.admit();
        let said = verdict.explain(&plan, "low").unwrap() + &verdict.to_json(&plan).to_string();
        said.contains("\"parameter\":\"priority\"")
    };
    assert!(priorities(""));
    assert!(priorities(", threshold = 3"));
    assert!(!priorities(", threshold = 1"));
}

#[test]
fn check_says_who_is_in_the_way() {
    let plan = parse(TWO);
    let verdict = plan.admit();
    let text = verdict.explain(&plan, "control").unwrap();
    let line = "  regions   it waits up to 1.999999ms for `filter`, which does not give way for 2ms of its work, from 2ms on\n";
    assert!(text.contains(line), "{text}");
    let text = verdict.explain(&plan, "filter").unwrap();
    assert!(text.contains("  regions   its own jobs do not give way for their last 2ms\n"), "{text}");
    let json = verdict.to_json(&plan);
    let blocking = &json["tasks"][0]["blocking"];
    assert_eq!(blocking["most_ns"], 2 * MS - 1);
    assert_eq!(blocking["region"]["task"], "filter");
    assert_eq!(blocking["region"]["at_ns"], 2 * MS);
    assert_eq!(blocking["region"]["length_ns"], 2 * MS);
    assert!(json["tasks"][1].get("blocking").is_none(), "{json}");
    // A floating one.
    let plan =
        parse(&TWO.replace("regions = [{ at = \"2ms\", length = \"2ms\" }]", "longest_region = \"2ms\""));
    let verdict = plan.admit();
    let text = verdict.explain(&plan, "control").unwrap();
    let line = "  regions   it waits up to 2ms for `filter`, which does not give way for up to 2ms of its work, at any place\n";
    assert!(text.contains(line), "{text}");
    assert!(!verdict.explain(&plan, "filter").unwrap().contains("  regions "));
    let json = verdict.to_json(&plan);
    let region = &json["tasks"][0]["blocking"]["region"];
    assert!(region["at_ns"].is_null() && region["length_ns"] == 2 * MS, "{region}");
    // A deadline that the region makes too short, by priority and by deadline.
    let late = |node: &str, edge: &str| {
        let load = "period = \"20ms\", work = \"8ms\", preemption = \"none\"";
        let high = "period = \"10ms\", deadline = \"4ms\", work = \"1ms\"";
        let plan = below(node, &[["high", edge, high], ["low", &edge.replace('2', "1"), load]]);
        let verdict = plan.admit();
        assert!(!verdict.holds);
        verdict.faults(&plan).to_string()
    };
    let why = late(BY_PRIORITY, "priority = 2");
    let said = "Of it up to 7.999999ms is the wait for `low`, which does not give way for 8ms of its work";
    assert!(why.contains(said), "{why}");
    let why = late(BY_DEADLINE, "");
    assert!(why.contains("deadlines_must_fit_every_window"), "{why}");
}

/// What is less urgent than all that is bounded may be in a region, too.
#[test]
fn regions_below_what_is_not_bounded_count() {
    let high = ["high", "priority = 3", "period = \"10ms\", work = \"1ms\""];
    let tasks = [high, ["low", "priority = 1", "period = \"40ms\", work = \"4ms\", preemption = \"none\""]];
    let text = below(BY_PRIORITY, &tasks).sources.0[0].text.clone();
    let plan = parse(&format!("{text}[task.busy]\nunder.top = {{ priority = 2 }}\nload = \"busy\"\n"));
    assert_eq!(bounds(&plan), [Some(5 * MS - 1), None, None]);
}

/// Who is in a region runs in place of a more urgent task: those between the two notice, those outside of the node do not.
#[test]
fn what_is_left_beside_a_region() {
    let plan = parse(
        r#"
        [node.root]
        policy = "fixed-priority"
        cpu = 0
        [node.top]
        policy = "fixed-priority"
        under.root = { priority = 2 }
        [node.rest]
        policy = "fair"
        under.root = { priority = 1 }
        [task.high]
        under.top = { priority = 3 }
        load = { period = "10ms", work = "1ms" }
        [task.middle]
        under.top = { priority = 2 }
        load = { period = "20ms", work = "1ms" }
        [task.low]
        under.top = { priority = 1 }
        load = { period = "40ms", work = "4ms", preemption = "none" }
        "#,
    );
    let verdict = plan.admit();
    let share = |promises: &[tierce_admission::Promise]| promises[0].guarantee.share().to_string();
    assert_eq!(share(&verdict.tasks[1].promises), "1/2");
    assert_eq!(share(&verdict.nodes[2].promises), "3/4");
}

/// Why nothing is known of the deadlines below a node.
#[test]
fn where_check_says_nothing() {
    let why = |machine: &str, policy: &str, edge: &str, other: &str| {
        let edge = |priority: u32| match policy {
            "edf" => edge.to_string(),
            _ => format!("priority = {priority}"),
        };
        let plan = parse(&format!(
            "{machine}\n[node.root]\npolicy = \"fixed-priority\"\ncpu = 0\n[node.top]\npolicy = \"{policy}\"\nunder.root = {{ priority = 2 }}\n\
             [task.a]\nunder.top = {{ {} }}\nload = {{ period = \"10ms\", work = \"2ms\", preemption = \"none\" }}\n\
             [task.b]\nunder.top = {{ {} }}\n{other}\n",
            edge(1),
            edge(2)
        ));
        let verdict = plan.admit();
        assert!(!verdict.holds);
        assert_eq!(verdict.tasks[0].deadlines, Deadlines::NotShown);
        verdict.faults(&plan).to_string()
    };
    let plain = "load = { period = \"30ms\", work = \"1ms\" }";
    let found = why("machine.costs = { switch = \"1us\" }", "fixed-priority", "", plain);
    assert!(found.contains("how `[machine] costs` add to regions"), "{found}");
    let found = why("", "fixed-priority", "", &format!("under.root = {{ priority = 1 }}\n{plain}"));
    assert!(found.contains("`b` has other parents, too, and comes from there within regions"), "{found}");
    let suspends = "load = { phases = [{ run = \"1ms\" }, { suspend = \"1ms\" }, { run = \"1ms\" }, { timer = \"30ms\" }], deadline = \"30ms\" }";
    let found = why("", "fixed-priority", "", suspends);
    assert!(found.contains("`b` suspends itself: others may begin regions meanwhile"), "{found}");
    let found = why("", "edf", "deadline = \"9ms\"", plain);
    assert!(found.contains("the deadline of `a` is not that of the edge above it"), "{found}");
}

/// What a random plan has.
#[derive(Clone, Copy, PartialEq)]
enum Regions {
    Whole,
    Some,
    Floating,
    Thresholds,
    Mixed,
}

impl Maker {
    /// When jobs do not give way, as text.
    fn keeps(&mut self, regions: Regions, [least, work, priority]: [u64; 3]) -> String {
        match regions {
            Regions::Whole => self.regions(least, true),
            Regions::Some => self.regions(least, false),
            Regions::Floating => self.floating(work),
            Regions::Thresholds | Regions::Mixed => format!(", threshold = {}", self.between(priority, 10)),
        }
    }

    /// One of the kinds of a mixed plan.
    fn one_of(&mut self, regions: Regions) -> Regions {
        match regions {
            Regions::Mixed => [Regions::Whole, Regions::Some, Regions::Floating, Regions::Thresholds]
                [self.between(0, 3) as usize],
            regions => regions,
        }
    }

    fn with_regions(&mut self, deadlines: bool, regions: Regions) -> Plan {
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let place = if self.between(0, 3) == 0 {
            self.text += "[node.top]\npolicy = \"reservation\"\ncpu = 0\n";
            self.text +=
                "[task.other]\nunder.top = { budget = \"1ms\", period = \"4ms\" }\nload = \"busy\"\n";
            "under.top = { budget = \"3500us\", period = \"5ms\" }"
        } else {
            "cpu = 0"
        };
        let _ = writeln!(self.text, "[node.set]\npolicy = \"{policy}\"\n{place}");
        if self.between(0, 2) == 0 && !deadlines {
            // It preempts regions, what is less urgent has no bound, and it has what the others leave.
            let priority = self.between(3, 9);
            let _ = writeln!(
                self.text,
                "[node.beside]\npolicy = \"fair\"\nunder.set = {{ priority = {priority} }}\n[task.inside]\nunder.beside = {{}}\n\
                 load = {{ period = \"15ms\", work = \"500us\" }}"
            );
        }
        let tasks = self.between(2, 5);
        // Of some plans all come together, or 1 ns after the others.
        let apart = self.between(0, 1);
        for task in 0..tasks {
            let period = self.between(4, 60) * 500;
            let work = (period * self.between(20, 100) / 100 / (tasks + 1) / 50 * 50).max(100);
            let deadline = if self.between(0, 2) == 0 { self.between(period / 2, period) } else { period };
            let least = if self.between(0, 3) == 0 { (work / 2).max(50) / 50 * 50 } else { work };
            let kept = self.between(0, 4) > 0;
            let priority = if self.between(0, 5) == 0 { 3 } else { 9 - task };
            let regions = self.one_of(regions);
            let own = if kept { self.keeps(regions, [least, work, priority]) } else { String::new() };
            let phase = self.between(0, 8) * apart * 50_000 + self.between(0, 1);
            let edge = match deadlines {
                true => String::new(),
                false if self.between(0, 3) == 0 => format!("priority = {priority}, quantum = \"300us\""),
                false => format!("priority = {priority}"),
            };
            let release = match self.between(0, 3) {
                0 => format!("separation = \"{period}us\", extra = \"500us\""),
                1 => format!("period = \"{period}us\", jitter = \"{}us\"", period / 4),
                _ => format!("period = \"{period}us\""),
            };
            let work = match least == work {
                true => format!("\"{work}us\""),
                false => format!("{{ min = \"{least}us\", max = \"{work}us\" }}"),
            };
            let load =
                format!("{release}, work = {work}, deadline = \"{deadline}us\", phase = \"{phase}ns\"{own}");
            let _ = writeln!(self.text, "[task.t{task}]\nunder.set = {{ {edge} }}\nload = {{ {load} }}");
        }
        parse(&self.text)
    }
}

#[test]
fn nothing_takes_longer_than_check_says() {
    const KINDS: usize = 8;
    let kinds: [_; KINDS] = [
        ("priorities, whole jobs", false, Regions::Whole),
        ("priorities, regions", false, Regions::Some),
        ("deadlines, whole jobs", true, Regions::Whole),
        ("deadlines, regions", true, Regions::Some),
        ("priorities, floating regions", false, Regions::Floating),
        ("deadlines, floating regions", true, Regions::Floating),
        ("priorities, thresholds", false, Regions::Thresholds),
        ("priorities, all of these", false, Regions::Mixed),
    ];
    let (mut seen_of, mut met, mut inside) = ([Seen::default(); KINDS], 0, 0);
    for seed in seeds() {
        let kind = seed as usize % KINDS;
        let (_, deadlines, regions) = kinds[kind];
        let plan = Maker::new(seed, "regions").with_regions(deadlines, regions);
        let verdict = plan.admit();
        met += within_bounds(&plan, &verdict, seed, |task, verdict, longest, bound| {
            inside += u64::from(task.name == "inside");
            if verdict.kept.is_some() {
                seen_of[kind].add(longest, bound, || task.name.clone());
            }
        });
    }
    for ((kind, ..), seen) in kinds.iter().zip(&seen_of) {
        assert!(seen.print(kind).near() > 20, "{kind}");
    }
    assert!(met > 500 && inside > 20, "{met} {inside}");
}
