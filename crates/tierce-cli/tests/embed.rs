//! `tierce embed`: what it refuses, and that a board decides what the simulator decides.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use std::fmt::Write;
use std::fs::{self, File};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tierce_admission::PlanExt;
use tierce_plan::{Costs, Plan};
use tierce_policy::recording;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Event, Kind, Trace};

/// A folder that is removed again.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tierce-embed-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
    fn embed(&self, text: &str, arguments: &[&str]) -> Output {
        let path = self.0.join("plan.toml");
        fs::write(&path, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
        command.arg("embed").args(arguments).arg(&path).output().unwrap()
    }
}

impl Folder {
    /// All plans in it on an emulated board.
    fn play(&self, ms: u64) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/firmware");
        let played = Command::new(script).arg("play").arg(&self.0).arg(ms.to_string()).output().unwrap();
        let said = [played.stdout, played.stderr].concat();
        assert!(played.status.success(), "{}", String::from_utf8_lossy(&said));
    }
    fn decided(&self, name: &str, end_ns: u64) -> Vec<(u64, u32)> {
        let file = File::open(self.0.join(format!("{name}.trace"))).unwrap();
        let (trace, fault) = Trace::read(BufReader::new(file)).unwrap();
        assert!(fault.is_none(), "{fault:?}");
        decisions(&trace.events, end_ns)
    }
    /// What the board has recorded, decided again by the engine that simulates: the first entry that comes to something else
    /// is a fault that says both results and the state here. How many decisions were the same.
    fn replayed(&self, name: &str) -> u64 {
        let file = File::open(self.0.join(format!("{name}.rec"))).unwrap();
        match recording::replay(BufReader::new(file), |_| ()) {
            Ok(same) => same.decisions,
            Err(fault) => panic!("{name}: {fault}"),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const SMALL: &str = "[machine]\ncpus = 1\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
    [task.a]\nunder.top = { priority = 1 }\nload = { period = \"10ms\", work = \"1ms\" }\n";

#[test]
fn what_a_board_cannot_hold_is_refused() {
    let folder = Folder::new("refused");
    let refused = |text: &str, arguments: &[&str], reason: &str| {
        let output = folder.embed(text, arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason), "{said}\nlacks: {reason}");
        assert!(output.stdout.is_empty());
    };
    refused(&SMALL.replace("cpus = 1", "cpus = 2"), &[], "machine: 2 CPUs, the board has 1");
    refused(SMALL, &["--nodes", "1"], "2 nodes and tasks, the board holds 1");
    refused(SMALL, &["--edges", "1"], "2 edges with the CPU's own, the board holds 1");
    refused(
        SMALL,
        &["--floor", "11ms"],
        "task a: period 10ms is below 11ms, what the board's timer can serve",
    );
    let turns =
        SMALL.replace("fixed-priority\"", "round-robin\"\nquantum = \"50us\"").replace("priority = 1", "");
    refused(&turns, &[], "node top: quantum = 50us is below 100us");
    let budget = SMALL
        .replace("fixed-priority", "reservation")
        .replace("priority = 1", "budget = \"90us\", period = \"1ms\"");
    refused(&budget, &[], "edge from top to a: budget = 90us is below 100us");
    refused(SMALL, &["--name", "1st"], "not a name in C");
    refused("nonsense", &[], "the plan has faults");
}

/// The board preempts whoever it is, which is said.
#[test]
fn regions_without_preemption_are_not_for_a_board() {
    let folder = Folder::new("regions");
    let said = |text: &str| {
        let output = folder.embed(text, &[]);
        assert!(output.status.success() && !output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(said(SMALL), "");
    let said = said(&SMALL.replace("work = \"1ms\"", "work = \"1ms\", preemption = \"none\""));
    assert!(said.contains("jobs of `a` give way at any time here: only `tierce sim` plays"), "{said}");
}

/// A plan whose jobs work so much longer: about what the way through a kernel adds to each.
type Text = Box<dyn Fn(u64) -> String>;

/// Five tasks or less, utilisation 0.5 to 0.9, under one of these: rate-monotonic, EDF, or a reservation for the first task
/// above EDF for the rest.
fn random_plan(draw: &mut Draw, shape: usize) -> Text {
    let tasks = 2 + draw.below(4) as u64;
    let load = 500 + draw.below(400) as u64;
    let periods: Vec<u64> = (0..tasks).map(|_| 4_000 + 100 * draw.below(400) as u64).collect();
    let phases: Vec<u64> = periods.iter().map(|period| draw.below(*period as usize) as u64).collect();
    let busy = draw.below(2) == 0;
    Box::new(move |more_us| {
        let mut text = String::from("[machine]\ncpus = 1\n");
        text += match shape {
            0 => "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n",
            1 => "[node.top]\npolicy = \"edf\"\ncpu = 0\n",
            _ => {
                "[node.first]\npolicy = \"fixed-priority\"\ncpu = 0\n\
                  [node.rt]\npolicy = \"reservation\"\nunder.first = { priority = 2 }\n\
                  [node.top]\npolicy = \"edf\"\nunder.first = { priority = 1 }\n"
            }
        };
        for (index, (period, phase)) in periods.iter().zip(&phases).enumerate() {
            let work = period * load / 1000 / tasks;
            let under = match shape {
                0 => format!("under.top = {{ priority = {} }}", 60_000 - period),
                2 if index == 0 => {
                    format!(
                        "under.rt = {{ budget = \"{}us\", period = \"{}us\" }}",
                        work * 2 / 3,
                        period * 3 / 5
                    )
                }
                _ => "under.top = {}".to_owned(),
            };
            let work = work + more_us;
            writeln!(
                text,
                "[task.t{index}]\n{under}\nload = {{ period = \"{period}us\", work = \"{work}us\", phase = \"{phase}us\", soft = true }}"
            )
            .unwrap();
        }
        if busy && shape == 0 {
            text += "[task.rest]\nunder.top = { priority = 0 }\nload = \"busy\"\n";
        }
        text
    })
}

/// Who ran from when on; what was decided twice in one instant counts once.
fn decisions(events: &[Event], end_ns: u64) -> Vec<(u64, u32)> {
    let mut list: Vec<(u64, u32)> = Vec::new();
    for event in events.iter().filter(|event| event.kind == Kind::Decision as u16 && event.now_ns < end_ns) {
        if list.last().is_some_and(|last| last.0 == event.now_ns) {
            list.pop();
        }
        if list.last().is_none_or(|last| last.1 != event.a) {
            list.push((event.now_ns, event.a));
        }
    }
    list
}

fn simulated(text: &str, end_ns: u64, switch_ns: u64) -> Vec<(u64, u32)> {
    let plan = Plan::parse(text, "plan").unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
    let costs = Costs { switch_ns, ..Costs::default() };
    let mut simulation =
        Simulation::new(&plan, Options { trace: true, costs: Some(costs), ..Options::default() }).unwrap();
    simulation.run_until(end_ns).unwrap();
    decisions(&simulation.take_events(), end_ns)
}

fn who(list: &[(u64, u32)]) -> Vec<u32> {
    list.iter().map(|decision| decision.1).collect()
}

const PLAYED_MS: u64 = 300;
const PLAYED_NS: u64 = PLAYED_MS * 1_000_000;
const COMPARED_NS: u64 = PLAYED_NS - 20_000_000;
const PLANS: usize = 26;

/// Hartstone's five tasks, and random plans in which the order of decisions does not hang on the tens of microseconds that a board takes to carry one
/// out: none comes right after another, and it is the same when every job works so much longer and
/// every switch takes so long. Each is played on an emulated
/// board.
#[test]
fn a_board_decides_what_the_simulator_decides() {
    let folder = Folder::new("board");
    let mut draw = Draw::new(4);
    let embed = |index: usize, text: &str| {
        let output = folder.embed(text, &[]);
        assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
        fs::write(folder.0.join(format!("p{index:02}.h")), output.stdout).unwrap();
    };
    let mut expected = Vec::new();
    for (index, (policy, node, edge)) in POLICIES[..2].iter().enumerate() {
        let text = tasks(policy, node, edge, &harmonic(0));
        embed(index, &text);
        expected.push((text.clone(), simulated(&text, COMPARED_NS, 0)));
    }
    let mut drawn = 0;
    while expected.len() < PLANS {
        drawn += 1;
        assert!(drawn < 20_000, "hardly any plan has a certain order: {} of {drawn}", expected.len());
        let text = random_plan(&mut draw, expected.len() % 3);
        let exact = simulated(&text(0), COMPARED_NS, 0);
        let order = who(&exact);
        let certain = |more_us: u64, switch_us: u64| {
            who(&simulated(&text(more_us), PLAYED_NS, switch_us * 1000)).starts_with(&order)
        };
        let apart = exact.windows(2).all(|pair| pair[1].0 - pair[0].0 > 100_000);
        let long = [20, 40, 60, 90, 120, 180, 250, 350, 450];
        let costly = [15, 30, 45, 60, 80];
        if apart
            && exact.len() > 20
            && long.into_iter().all(|more_us| certain(more_us, 0))
            && costly.into_iter().all(|switch_us| certain(0, switch_us) && certain(40, switch_us))
        {
            embed(expected.len(), &text(0));
            expected.push((text(0), exact));
        }
    }
    folder.play(PLAYED_MS);
    let (mut compared, mut apart_ns) = (0, 0);
    for (index, (text, exact)) in expected.iter().enumerate() {
        let board = folder.decided(&format!("p{index:02}"), PLAYED_NS);
        folder.replayed(&format!("p{index:02}"));
        assert!(board.len() >= exact.len(), "plan {index}: {} and {}\n{text}", exact.len(), board.len());
        if let Some(at) = (0..exact.len()).find(|&at| exact[at].1 != board[at].1) {
            let some =
                |list: &[(u64, u32)]| format!("{:?}", &list[at.saturating_sub(5)..list.len().min(at + 5)]);
            let (exact, board) = (some(exact), some(&board));
            panic!("plan {index}, decision {at}\n  simulated {exact}\n  board     {board}\n{text}");
        }
        let pairs = exact.iter().zip(&board);
        apart_ns = apart_ns.max(pairs.map(|(simulated, board)| simulated.0.abs_diff(board.0)).max().unwrap());
        compared += exact.len();
    }
    println!("{PLANS} plans of {drawn} drawn, {compared} decisions equal, at most {apart_ns} ns apart");
    assert!(apart_ns < 2_000_000, "{apart_ns}");
}

/// Hartstone's five tasks at 40 % and in overload, random sets of tasks, each under every policy: which order comes out may
/// hang on the microseconds that the board takes, so the board's are given to the simulator's engine, entry by entry.
#[test]
fn the_board_s_moments_lead_to_the_same_decisions() {
    let folder = Folder::new("moments");
    let mut draw = Draw::new(5);
    let mut random = || -> Vec<(u64, u64)> {
        let tasks = 2 + draw.below(4) as u64;
        let mut task = || {
            let period = 4_000 + 100 * draw.below(400) as u64;
            (period, period * (200 + draw.below(900) as u64) / 1000 / tasks)
        };
        (0..tasks).map(|_| task()).collect()
    };
    let sets = [harmonic(0), harmonic(10), random(), random(), random(), random()];
    let mut names = Vec::new();
    for (policy, node, edge) in POLICIES {
        for (index, set) in sets.iter().enumerate() {
            let text = tasks(policy, node, edge, set);
            let output = folder.embed(&text, &[]);
            assert!(output.status.success(), "{}\n{text}", String::from_utf8_lossy(&output.stderr));
            names.push(format!("{policy}-{index}"));
            fs::write(folder.0.join(format!("{policy}-{index}.h")), output.stdout).unwrap();
        }
    }
    folder.play(1000);
    let same: Vec<u64> = names.iter().map(|name| folder.replayed(name)).collect();
    println!("{} plans, {} decisions equal", same.len(), same.iter().sum::<u64>());
    assert!(same.iter().all(|&decisions| decisions > 30), "{same:?}");
}

/// Hartstone's five: periods and work in us, so many kilo-whets more each.
fn harmonic(more: u64) -> Vec<(u64, u64)> {
    (0..5).map(|task| (500_000 >> task, 1250 * ((32 >> task) + more))).collect()
}

/// Periodic tasks below one node.
fn tasks(policy: &str, node: &str, edge: &str, set: &[(u64, u64)]) -> String {
    let mut text = format!("[machine]\ncpus = 1\n[node.top]\npolicy = \"{policy}\"\ncpu = 0\n{node}\n");
    for (task, (period, work)) in set.iter().enumerate() {
        let edge = edge.replace("{n}", &(task + 1).to_string()).replace("{ms}", &(2 * task).to_string());
        writeln!(
            text,
            "[task.t{task}]\nunder.top = {{ {edge} }}\nload = {{ period = \"{period}us\", work = \"{work}us\", soft = true }}"
        )
        .unwrap();
    }
    text
}

/// Name, what the node has, what the edge to the n-th task has.
const POLICIES: [(&str, &str, &str); 11] = [
    ("fixed-priority", "", "priority = {n}"),
    ("edf", "", ""),
    ("round-robin", "quantum = \"1ms\"", ""),
    ("reservation", "", "budget = \"1ms\", period = \"{n}0ms\""),
    ("fair", "quantum = \"1ms\"", "weight = {n}00"),
    ("slots", "slot = \"10ms\"", "offset = \"{ms}ms\", length = \"1900us\", fill = 1"),
    ("i-plus-pi", "burst = \"3ms\"", "importance = {n}"),
    ("multiburst", "burst = \"3ms\"", "importance = {n}, wake = \"immediate\""),
    ("time-sharing", "quantum = \"1ms\"", "priority = {n}"),
    ("uniform", "period = \"20ms\"", "share = 0.0{n}"),
    ("constraint", "quantum = \"1ms\"\nbudget = \"10ms\"\nperiod = \"10ms\"", ""),
];
