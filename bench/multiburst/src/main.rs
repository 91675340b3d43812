//! The simulations of Golchin 2017 (Multiburst) with the policies themselves.
//!
//! Section 4.1: threads 1 and 2 always want the CPU, thread 3 works 10 ms and sleeps 20 ms; rounds of 3 ms, equal shares, from round
//! 51 on 20, 40 and 40 %. Figures 3.8 and 3.9: four tasks of equal shares, of which the third works some instructions and sleeps; it
//! must have the CPU within 1 ms of waking up.
//!
//! usage: bench-multiburst FOLDER

use anyhow::{ensure, Context, Result};
use std::path::Path;
use tierce_admission::PlanExt;
use tierce_figure::{Axis, Block, Figure, Legend, Look, Panel, Point, Shape};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Event, Kind};

const MS: u64 = 1_000_000;

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).context("usage: bench-multiburst FOLDER")?;
    let folder = Path::new(&folder);
    let rounds = section_4_1()?;
    drawn_rounds(&rounds).write(&folder.join("multiburst-rounds.png"))?;
    drawn_bursts(&rounds).write(&folder.join("multiburst-bursts.png"))?;
    let shown: Vec<_> = EXAMPLES.iter().map(example).collect::<Result<_>>()?;
    drawn_example(&shown).write(&folder.join("multiburst-example.png"))
}

fn simulation(text: &str, trace: bool) -> Result<Simulation> {
    let plan = match Plan::parse(text, "plan") {
        Ok(plan) => plan,
        Err(faults) => anyhow::bail!("{faults}"),
    };
    Ok(Simulation::new(&plan, Options { seed: 1, trace, ..Options::default() })?)
}

// ---- section 4.1 -----------------------------------------------------------------------------------------------------

const ROUNDS: usize = 100;
const SET_POINT_NS: u64 = 3 * MS;

/// What a round was.
#[derive(Default, Clone)]
struct Round {
    length_ns: u64,
    correction_ns: i64,
    /// Of each thread: what it was given, and what it used.
    desired_ns: [u64; 3],
    actual_ns: [u64; 3],
    /// Thread 3 woke up in it.
    woke: bool,
}

fn section_4_1() -> Result<Vec<Round>> {
    let text = "
        [node.cpu0]
        policy = \"multiburst\"
        cpu = 0
        round = \"3ms\"
        burst = \"1ms\"
        [task.t1]
        under.cpu0 = { importance = 100, wake = \"immediate\" }
        load = \"busy\"
        [task.t2]
        under.cpu0 = { importance = 100, wake = \"immediate\" }
        load = \"busy\"
        [task.t3]
        under.cpu0 = { importance = 100, wake = \"immediate\" }
        load = { phases = [{ run = \"10ms\" }, { sleep = \"20ms\" }] }";
    let rounds = rounds(&mut simulation(text, true)?)?;
    print(&rounds);
    Ok(rounds)
}

/// As many as are shown. From round 51 on the threads have other shares.
fn rounds(sim: &mut Simulation) -> Result<Vec<Round>> {
    let ids = sim.ids().clone();
    let (mut rounds, mut current) = (Vec::new(), Round::default());
    let mut clock = sim.graph().node(ids.nodes[0]).clock;
    let (mut before, mut shared) = ([0; 3], false);
    let mut events = Vec::new();
    while rounds.len() <= ROUNDS {
        ensure!(sim.step()?, "the simulation ended");
        events.extend(sim.take_events());
        let woke = |event: &Event| event.kind == Kind::Request as u16 && event.a == ids.tasks[2];
        let woken = events.drain(..).any(|event| woke(&event) && sim.now_ns() > 0);
        let node = sim.graph().node(ids.nodes[0]);
        let used = |task: usize| sim.graph().node(ids.tasks[task]).ran_ns;
        if node.clock != clock {
            ensure!(node.clock == clock + 1, "a round was passed over");
            clock = node.clock;
            for task in 0..3 {
                current.actual_ns[task] = used(task) - before[task];
                before[task] = used(task);
            }
            current.length_ns = current.actual_ns.iter().sum();
            let next = Round { correction_ns: node.rounds.correction_ns, ..Round::default() };
            rounds.push(std::mem::replace(&mut current, next));
        }
        // In round 50, when threads 1 and 2 have their bursts: round 51 is the first with the new shares.
        if rounds.len() == 50 && !shared && current.desired_ns[..2].iter().all(|ns| *ns > 0) {
            shared = true;
            sim.control(|graph, now| {
                for (edge, share) in ids.edges.iter().zip([100, 200, 200]) {
                    graph.set(*edge, [share, 0, 0, 0], now).expect("importance within its range");
                }
            })?;
        }
        current.woke |= woken;
        for task in 0..3 {
            let [_, round, burst_ns, ..] = sim.graph().edge(ids.edges[task]).policy;
            if round == clock && current.desired_ns[task] == 0 {
                current.desired_ns[task] = burst_ns;
            }
        }
    }
    rounds.remove(0);
    Ok(rounds)
}

fn print(rounds: &[Round]) {
    println!("Section 4.1: round, its length, the correction, bursts given and used (us)");
    for (at, round) in rounds.iter().enumerate() {
        let us = |ns: [u64; 3]| ns.map(|ns| format!("{:4}", ns / 1000)).join(" ");
        println!(
            "{:3}  {:5} {:6}   {}   {}{}",
            at + 1,
            round.length_ns / 1000,
            round.correction_ns / 1000,
            us(round.desired_ns),
            us(round.actual_ns),
            if round.woke { "   thread 3 wakes" } else { "" }
        );
    }
    let woken: Vec<_> =
        rounds.iter().enumerate().filter(|(_, round)| round.woke).map(|(at, _)| at + 1).collect();
    let off = |round: &&Round| round.length_ns.abs_diff(SET_POINT_NS) > 1000;
    let off = rounds.iter().filter(off).count();
    println!("thread 3 wakes up in rounds {woken:?}; {off} of {ROUNDS} rounds are more than 1 us off 3 ms\n");
}

/// One value for each round, as steps; times in ns.
fn steps(values: impl Iterator<Item = i64>) -> Shape {
    let step = |(round, ns): (u32, i64)| -> [Point; 2] {
        let (from, ms) = (f64::from(round), ns as f64 / MS as f64);
        [[from, ms], [from + 1.0, ms]]
    };
    Shape::Plain((0..).zip(values).flat_map(step).collect())
}

fn panel(title: &str, height: f64, (least, most, every): (f64, f64, f64)) -> Panel {
    let x = Axis::every("", 0.0, ROUNDS as f64, 10.0);
    Panel::new(height, x, Axis::every("ms", least, most, every)).titled(title)
}

/// Below each other, with the name of what they have in common.
fn stacked(mut panels: Vec<Panel>) -> Figure {
    if let Some(last) = panels.last_mut() {
        last.x.label = "round".into();
    }
    Figure::stack("", panels)
}

fn drawn_rounds(rounds: &[Round]) -> Figure {
    let lengths = steps(rounds.iter().map(|round| round.length_ns as i64));
    let corrections = steps(rounds.iter().map(|round| round.correction_ns));
    stacked(vec![
        panel("Round duration", 150.0, (0.0, 5.0, 1.0)).with("", Look::Number(0), lengths),
        panel("Burst correction", 150.0, (-2.0, 3.0, 1.0)).with("", Look::Number(0), corrections),
    ])
}

fn drawn_bursts(rounds: &[Round]) -> Figure {
    let titles = ["Thread 1", "Thread 2", "Thread 3, 10 ms of work and 20 ms of sleep"];
    let of = |task: usize| {
        let desired = steps(rounds.iter().map(|round| round.desired_ns[task] as i64));
        let actual = steps(rounds.iter().map(|round| round.actual_ns[task] as i64));
        panel(titles[task], 110.0, (0.0, 3.0, 0.5)).with("actual", Look::Number(0), actual).with(
            "desired",
            Look::Number(1),
            desired,
        )
    };
    stacked((0..3).map(of).collect())
}

// ---- figures 3.8 and 3.9 ---------------------------------------------------------------------------------------------

/// Policy, burst, and when the third task runs after it wakes.
struct Example {
    title: &'static str,
    policy: &'static str,
    burst_us: u64,
    edge: &'static str,
}

const EXAMPLES: [Example; 3] = [
    Example { title: "I+PI, bursts of 1 ms", policy: "i-plus-pi", burst_us: 1000, edge: "importance = 100" },
    Example {
        title: "I+PI, bursts of 200 µs", policy: "i-plus-pi", burst_us: 200, edge: "importance = 100"
    },
    Example {
        title: "Multiburst, bursts of 1 ms, after-burst",
        policy: "multiburst",
        burst_us: 1000,
        edge: "importance = 100, wake = \"after-burst\"",
    },
];

const WORK_NS: u64 = 10_000;
const LENGTH_NS: u64 = 100_000 * MS;

struct Shown {
    title: String,
    /// Task, from, until.
    runs: Vec<(usize, u64, u64)>,
    /// When the third wakes.
    wakes: Vec<u64>,
}

/// How often the CPU switches, and how long the third waits: it sleeps between 1 and 20 ms, so that it wakes at any point of a round.
fn example(of: &Example) -> Result<Shown> {
    let Example { title, policy, burst_us, edge } = of;
    let mut plan = format!(
        "[node.cpu0]\npolicy = \"{policy}\"\ncpu = 0\nround = \"0ns\"\nburst = \"{burst_us}us\"\nleast_burst = \"10us\"\n\
         largest_burst = \"{}us\"\n",
        10 * burst_us
    );
    for task in 1..=4 {
        let load = match task {
            3 => "{ phases = [{ run = \"10us\" }, { sleep = { min = \"1ms\", max = \"20ms\" } }], deadline = \"1010us\", soft = true }",
            _ => "\"busy\"",
        };
        plan += &format!("[task.t{task}]\nunder.cpu0 = {{ {edge} }}\nload = {load}\n");
    }
    let mut sim = simulation(&plan, false)?;
    sim.run_until(LENGTH_NS)?;
    let report = sim.report();
    let third = &report.tasks[2];
    let waits = third.response_ns.as_ref().context("the third task had no job")?;
    println!(
        "{title}: {:.0} switches per second, of {:.0} wake-ups; the third task waits {:.0} us on average, at most {:.0} us; {} of {} times \
         longer than 1 ms",
        report.cpus[0].switches as f64 * 1e9 / LENGTH_NS as f64,
        third.jobs as f64 * 1e9 / LENGTH_NS as f64,
        (waits.avg - WORK_NS) as f64 / 1e3,
        (waits.max - WORK_NS) as f64 / 1e3,
        third.misses,
        third.jobs
    );
    let mut sim = simulation(&plan, true)?;
    let ids = sim.ids().tasks.clone();
    sim.run_until(SHOWN_NS.1)?;
    let (mut runs, mut wakes) = (Vec::new(), Vec::new());
    let mut running: Option<(usize, u64)> = None;
    for event in sim.take_events() {
        if event.kind == Kind::Decision as u16 {
            if let Some((task, from)) = running.take() {
                runs.push((task, from, event.now_ns));
            }
            running = ids.iter().position(|id| *id == event.a).map(|task| (task, event.now_ns));
        }
        if event.kind == Kind::Request as u16 && event.a == ids[2] && event.now_ns > 0 {
            wakes.push(event.now_ns);
        }
    }
    runs.extend(running.map(|(task, from)| (task, from, SHOWN_NS.1)));
    Ok(Shown { title: (*title).to_string(), runs, wakes })
}

/// The part that is drawn.
const SHOWN_NS: (u64, u64) = (0, 24 * MS);

fn drawn_example(all: &[Shown]) -> Figure {
    let ms = |ns: u64| ns.clamp(SHOWN_NS.0, SHOWN_NS.1) as f64 / MS as f64;
    let of = |shown: &Shown| {
        let x = Axis::every("ms", ms(SHOWN_NS.0), ms(SHOWN_NS.1), 2.0);
        let mut panel =
            Panel::new(72.0, x, Axis::rows((1..=4).map(|task| format!("task {task}")))).titled(&shown.title);
        for task in 0..4 {
            let row = f64::from(task);
            let mine = shown.runs.iter().filter(|run| run.0 == task as usize && run.2 > SHOWN_NS.0);
            let blocks = mine.map(|run| Block::new([ms(run.1), ms(run.2)], [row + 0.1, row + 0.9]));
            panel = panel.with("", Look::Number(0), Shape::Boxes(blocks.collect()));
        }
        let wakes = shown.wakes.iter().filter(|at| (SHOWN_NS.0..SHOWN_NS.1).contains(at));
        panel.with("task 3 wakes up", Look::Number(1), Shape::Rules(wakes.map(|at| ms(*at)).collect()))
    };
    Figure::stack("", all.iter().map(of).collect()).legend(Legend::Below)
}
