//! Deadlines beyond periods, so that several jobs of a task may be pending: examples, and random plans, in which no response is longer
//! than `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, run, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;
use tierce_trace::Kind;

/// Lehoczky 1990: the first job of the second task takes 114, the third one 118.
fn lehoczky(policy: &str, deadline: &str) -> Plan {
    let edge = |priority: u32| match policy {
        "edf" => String::new(),
        _ => format!("priority = {priority}"),
    };
    parse(&format!(
        "[node.top]\npolicy = \"{policy}\"\ncpu = 0\n\
         [task.first]\nunder.top = {{ {} }}\nload = {{ period = \"70ms\", work = \"26ms\" }}\n\
         [task.second]\nunder.top = {{ {} }}\nload = {{ period = \"100ms\", work = \"62ms\", deadline = \"{deadline}\" }}\n",
        edge(2),
        edge(1)
    ))
}

fn milliseconds(plan: &Plan) -> (Vec<Option<u64>>, Vec<u64>) {
    let bounds = plan.admit().tasks.into_iter().map(|task| task.response?.ns().map(|ns| ns / MS)).collect();
    let report = report_of(plan, 1, 1_400 * MS);
    (bounds, report.tasks.iter().map(|task| task.response_ns.as_ref().unwrap().max / MS).collect())
}

#[test]
fn not_the_first_job_takes_longest() {
    let plan = lehoczky("fixed-priority", "118ms");
    assert!(plan.admit().holds);
    assert_eq!(milliseconds(&plan), (vec![Some(26), Some(118)], vec![26, 118]));
    let run = run(&plan, 1_400 * MS, 1);
    assert_eq!(run.misses(), 0);
    let id = run.task("second").id;
    let responses =
        run.events.iter().filter(|event| event.kind() == Some(Kind::JobComplete) && event.a == id);
    let responses: Vec<_> = responses.map(|event| event.value / MS).take(7).collect();
    assert_eq!(responses, [114, 102, 116, 104, 118, 106, 94]);
    // By its own deadline each of those is late that takes longer, and no other one.
    let plan = lehoczky("fixed-priority", "115ms");
    assert_eq!(plan.admit().tasks[1].deadlines, Deadlines::MayMiss);
    assert_eq!(report_of(&plan, 1, 700 * MS).tasks[1].misses, 2);
}

/// The thread has the deadline of the job that it works on, also of one that begins without a wake-up.
#[test]
fn the_deadline_is_that_of_the_job_in_work() {
    // At 5 the first job of `a`, due at 8, is done, and its second one, due at 12, has been there since 4: `b` is due at 10.
    common::check_plan(
        "[node.top]\npolicy = \"edf\"\ncpu = 0\n\
         [task.a]\nunder.top = {}\nload = { period = \"4ms\", work = \"3ms\", deadline = \"8ms\" }\n\
         [task.b]\nunder.top = {}\nload = { period = \"40ms\", work = \"2ms\", phase = \"3ms\", deadline = \"7ms\" }\n\
         [task.c]\nunder.top = {}\nload = { period = \"40ms\", work = \"2ms\", deadline = \"5ms\" }\n",
        12,
        expect_test::expect!["0 c, 2 a, 5 b, 7 a"],
    );
    let plan = lehoczky("edf", "118ms");
    assert!(plan.admit().holds);
    let (bounds, seen) = milliseconds(&plan);
    assert!(bounds.iter().zip(&seen).all(|(bound, seen)| bound.unwrap() >= *seen), "{bounds:?} {seen:?}");
}

/// What a random task has beside its period.
#[derive(Clone, Copy, PartialEq)]
enum With {
    Nothing,
    Sections,
    Regions,
    Threshold,
    Lists,
}

impl Maker {
    /// In us: most jobs are due after the next one has come.
    fn due(&mut self, period: u64) -> u64 {
        match self.between(0, 4) {
            0 => self.between(period / 2, period),
            _ => self.between(period + 1, 4 * period),
        }
    }

    fn late_load(&mut self, share: u64, with: With, jitter: bool, locks: u64) -> String {
        let period = self.between(4, 40) * 250;
        let work = (period * share / 100).clamp(20, period);
        let deadline = self.due(period);
        let phase = if self.between(0, 1) == 0 { 0 } else { self.between(0, 40) * 50 };
        let mut load = match self.between(0, 4) {
            0 => format!("separation = \"{period}us\", extra = \"300us\""),
            1 if jitter => format!("period = \"{period}us\", jitter = \"{}us\"", self.between(0, period - 1)),
            _ => format!("period = \"{period}us\""),
        };
        load += &match (with, self.between(0, 2)) {
            (With::Lists, 0) => {
                format!(", work = [\"{}us\", \"{}us\"]", (work * 3 / 2).min(period), work / 2 + 1)
            }
            _ => format!(", work = \"{work}us\""),
        };
        let _ = write!(load, ", deadline = \"{deadline}us\", phase = \"{phase}us\"");
        if self.between(0, 2) > 0 {
            load += &match with {
                With::Sections => self.sections(work, 0, locks),
                With::Regions => {
                    let whole = self.between(0, 2) == 0;
                    self.regions(work, whole)
                }
                With::Threshold => ", threshold = 8".into(),
                With::Nothing | With::Lists => String::new(),
            };
        }
        load
    }

    /// Tasks below a node `set` by this policy, `load` per cent in all.
    fn late_tasks(&mut self, deadlines: bool, load: u64, with: With) {
        let locks = if with == With::Sections { self.between(1, 3) } else { 0 };
        self.locks(deadlines, locks);
        let tasks = self.between(2, 5);
        let parts: Vec<_> = (0..tasks).map(|_| self.between(1, 10)).collect();
        let all: u64 = parts.iter().sum();
        for (at, part) in parts.iter().enumerate() {
            let jitter = locks == 0 || !deadlines;
            let load = self.late_load(load * part / all, with, jitter, locks);
            let equal = self.between(0, 7) == 0;
            let priority = if equal { 5 } else { 2 + at as u64 };
            let edge = if deadlines { String::new() } else { format!("priority = {priority}") };
            let _ = writeln!(self.text, "[task.t{at}]\nunder.set = {{ {edge} }}\nload = {{ {load} }}");
        }
    }

    fn late(&mut self, shape: Shape) -> Plan {
        let drawn = self.between(0, 1) == 0;
        let deadlines = shape == Shape::Deadlines || (shape != Shape::Priorities && drawn);
        let with = match (shape, self.between(0, 2)) {
            (Shape::Lists, _) => With::Lists,
            (Shape::Waits, 0) if !deadlines => With::Threshold,
            (Shape::Waits, 0 | 1) => With::Sections,
            (Shape::Waits, _) => With::Regions,
            _ => With::Nothing,
        };
        match shape {
            Shape::Phases => self.text += "machine.phases = \"known\"\n",
            Shape::Priorities | Shape::Deadlines if self.between(0, 5) == 0 => {
                self.text += "machine.costs = { switch = \"10us\", timer = \"5us\" }\n";
            }
            _ => {}
        }
        match shape {
            Shape::Budgets => self.late_below_budgets(deadlines),
            Shape::Shares => self.late_below_shares(),
            _ => {
                let policy = if deadlines { "edf" } else { "fixed-priority" };
                let _ = writeln!(self.text, "[node.set]\npolicy = \"{policy}\"\ncpu = 0");
                let load = self.between(65, 100);
                self.late_tasks(deadlines, load, with);
            }
        }
        parse(&self.text)
    }

    fn late_below_budgets(&mut self, deadlines: bool) {
        let way = ["hard", "hard", "periodic", "polling"][self.between(0, 3) as usize];
        let policy = if deadlines { "edf" } else { "fixed-priority" };
        let _ = writeln!(
            self.text,
            "[node.top]\npolicy = \"reservation\"\nreplenishment = \"{way}\"\ncpu = 0\n\
             [node.set]\npolicy = \"{policy}\"\nunder.top = {{ budget = \"3ms\", period = \"5ms\" }}"
        );
        let load = self.between(25, 58);
        self.late_tasks(deadlines, load, With::Nothing);
        let share = self.between(20, 38);
        let alone = self.late_load(share, With::Nothing, true, 0);
        let _ = writeln!(
            self.text,
            "[task.alone]\nunder.top = {{ budget = \"1600us\", period = \"4ms\" }}\nload = {{ {alone} }}"
        );
    }

    fn late_below_shares(&mut self) {
        self.text += "[node.top]\npolicy = \"uniform\"\ncpu = 0\n\
                      [node.set]\npolicy = \"edf\"\nunder.top = { share = 0.6 }\n";
        for at in 0..self.between(1, 2) {
            let load = self.late_load(28, With::Nothing, true, 0);
            let _ = writeln!(self.text, "[task.t{at}]\nunder.set = {{}}\nload = {{ {load} }}");
        }
        let share = self.between(30, 40);
        let alone = self.late_load(share, With::Nothing, true, 0);
        let _ = writeln!(self.text, "[task.alone]\nunder.top = {{ share = 0.4 }}\nload = {{ {alone} }}");
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Priorities,
    Deadlines,
    Budgets,
    Waits,
    Lists,
    Phases,
    Shares,
}

const SHAPES: [Shape; 7] = [
    Shape::Priorities,
    Shape::Deadlines,
    Shape::Budgets,
    Shape::Waits,
    Shape::Lists,
    Shape::Phases,
    Shape::Shares,
];

/// How long the longest response of each task was, in tenths of its bound.
#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut seen_of, mut late, mut shown_late) = ([Seen::default(); 7], [0u64; 7], [0u64; 7]);
    let mut met = 0;
    for seed in seeds() {
        let at = (seed % 7) as usize;
        let plan = Maker::new(seed, "late").late(SHAPES[at]);
        let verdict = plan.admit();
        met += within_bounds(&plan, &verdict, seed, |task, verdict, longest, bound| {
            seen_of[at].add(longest, bound, || format!("seed {seed}: {}", task.name));
            let period_ns = task.load.as_ref().and_then(|load| load.shortest_period_ns()).unwrap();
            late[at] += u64::from(longest > period_ns);
            shown_late[at] += u64::from(bound > period_ns && verdict.deadlines == Deadlines::Met);
        });
    }
    for (at, shape) in SHAPES.iter().enumerate() {
        seen_of[at].print(&format!("{shape:?}"));
        println!("{} beyond their periods, {} in time by bounds beyond these", late[at], shown_late[at]);
    }
    // Below budgets and shares the least supply is rare.
    for (at, near) in [20, 20, 1, 20, 20, 20, 0].into_iter().enumerate() {
        let seen = &seen_of[at];
        assert!(seen.near() >= near && shown_late[at] > 10, "{:?}: {seen:?}", SHAPES[at]);
    }
    println!("{met} tasks met the deadlines that check shows");
    assert!(met > 300 && late.iter().sum::<u64>() > 100, "{met} {late:?}");
}
