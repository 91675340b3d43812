//! What `tierce check` promises, the simulator gives: random hierarchies on one CPU, whose tasks that always want the CPU are
//! watched. Every window of their supply is held against every guarantee that is promised to them.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

mod common;

use common::{parse, seeds, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_guarantee::{whole, Exact, Guarantee, Kind as Type, Parameter, Supply};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::Kind;

impl Maker {
    fn budget(&mut self, share: u64) -> String {
        let period = self.between(4, 30);
        let budget = (period * self.between(1, share)).div_ceil(100).max(1);
        format!("budget = \"{budget}ms\", period = \"{period}ms\"")
    }

    /// A leaf: two of three always want the CPU.
    fn task(&mut self, under: &str) {
        let load = match self.between(0, 5) {
            0 => format!("{{ period = \"{}ms\", work = \"{}ms\" }}", self.between(5, 20), self.between(1, 4)),
            1 => format!(
                "{{ phases = [{{ run = \"{}ms\" }}, {{ sleep = \"{}ms\" }}] }}",
                self.between(1, 9),
                self.between(1, 9)
            ),
            _ => "\"busy\"".into(),
        };
        self.names += 1;
        let _ = writeln!(self.text, "[task.t{}]\n{under}\nload = {load}", self.names);
    }

    /// A node with children; `levels` more may follow.
    fn node(&mut self, under: &str, levels: u32) {
        self.names += 1;
        let name = format!("n{}", self.names);
        let policy = self.between(0, 4);
        let children = self.between(1, 4);
        let (policy, more) = match policy {
            0 => ("reservation", String::new()),
            1 => ("round-robin", format!("quantum = \"{}ms\"", self.between(1, 6))),
            2 => {
                let starvation = self.between(1, 40);
                let quantum = self.between(1, 6);
                ("time-sharing", format!("quantum = \"{quantum}ms\"\nstarvation = \"{starvation}ms\""))
            }
            3 => ("uniform", format!("period = \"{}ms\"", self.between(4, 30))),
            _ => ("fair", format!("quantum = \"{}ms\"", self.between(1, 6))),
        };
        let _ = writeln!(self.text, "[node.{name}]\npolicy = \"{policy}\"\n{more}\n{under}");
        for _ in 0..children {
            let edge = match policy {
                "reservation" => self.budget(100 / children),
                "uniform" => format!("share = 0.{:02}", self.between(1, 99 / children)),
                "fair" => format!("weight = {}", self.between(1, 9) * 10),
                "time-sharing" => {
                    format!("priority = {}, boost = {}", self.between(0, 4), self.between(0, 4))
                }
                _ => String::new(),
            };
            self.child(&format!("under.{name} = {{ {edge} }}"), levels);
        }
    }

    fn child(&mut self, under: &str, levels: u32) {
        if levels > 0 && self.between(0, 2) == 0 {
            self.node(under, levels - 1);
        } else {
            self.task(under);
        }
    }
}

/// A root of fixed priorities; below it reservations, some of whose children get the rest, too, and a fair rest.
fn plan(seed: u64) -> String {
    let mut maker = Maker::new(seed, "promises");
    if seed % 3 == 0 {
        maker.node("cpu = 0", 2);
        return maker.text;
    }
    maker.text += "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
                   [node.rt]\npolicy = \"reservation\"\nunder.top = { priority = 1 }\n\
                   [node.rest]\npolicy = \"fair\"\nunder.top = {}\n";
    let children = maker.between(1, 4);
    for _ in 0..children {
        let mut under = format!("under.rt = {{ {} }}", maker.budget(100 / children));
        if maker.between(0, 2) == 0 {
            under += "\nunder.rest = {}";
        }
        maker.child(&under, 2);
    }
    maker.task("under.rest = {}");
    maker.text
}

/// The supply of one task: begin and end of every time it runs, and sums before.
struct Pattern {
    runs: Vec<(u64, u64)>,
    sums: Vec<u64>,
}

impl Pattern {
    fn new(runs: Vec<(u64, u64)>) -> Self {
        let mut sums = vec![0];
        for (begin, end) in &runs {
            sums.push(sums[sums.len() - 1] + end - begin);
        }
        Self { runs, sums }
    }

    /// CPU time before `at`.
    fn before(&self, at: u64) -> u64 {
        let index = self.runs.partition_point(|(begin, _)| *begin < at);
        let over = index.checked_sub(1).map_or(0, |last| self.runs[last].1.saturating_sub(at));
        self.sums[index] - over
    }

    /// The least in a window of that length in [0, end]: one that begins where a run ends, or ends where one begins.
    fn least(&self, window: u64, end: u64) -> u64 {
        let begins = self.runs.iter().map(|run| run.1);
        let ends = self.runs.iter().filter_map(|run| run.0.checked_sub(window));
        let all = begins.chain(ends).chain([0, end - window]).filter(|begin| begin + window <= end);
        all.map(|begin| self.before(begin + window) - self.before(begin)).min().unwrap_or(0)
    }

    /// Windows of many lengths hold what the guarantee is sure to supply; hard ones no more than that per period from 0 on.
    fn keeps(&self, guarantee: &Guarantee, end: u64) -> Result<(), String> {
        let supply = Supply::of(guarantee);
        let step = match guarantee.amount_and_period() {
            Some((_, period)) => whole_ns(period),
            None => match guarantee.get(Parameter::Error) {
                Some(error) => whole_ns(&(error / guarantee.share() + whole(MS))),
                None => 50 * MS,
            },
        };
        for half in 1..=24 {
            let window = step * half / 2;
            if window > end {
                break;
            }
            let (has, wants) = (self.least(window, end), supply.at(&whole(window)));
            if whole(has) < wants {
                return Err(format!("{guarantee}: {has} ns in a window of {window} ns, promised {wants}"));
            }
        }
        let Some((amount, period)) =
            guarantee.amount_and_period().filter(|_| guarantee.kind() == Type::Resbh)
        else {
            return Ok(());
        };
        let (amount, period) = (whole_ns(amount), whole_ns(period));
        let each =
            (0..end / period).map(|index| self.before((index + 1) * period) - self.before(index * period));
        match each.enumerate().find(|(_, has)| *has != amount) {
            Some((index, has)) => Err(format!("{guarantee}: {has} ns in period {index}")),
            None => Ok(()),
        }
    }
}

fn whole_ns(time: &Exact) -> u64 {
    u64::try_from(time.ceil().to_integer()).unwrap()
}

const END: u64 = 3_000 * MS;

/// Hold every promise to a task that always wants the CPU against what it got; tell of each.
fn watch(
    seed: u64,
    text: &str,
    plan: &Plan,
    mut simulation: Simulation,
    tell: &mut dyn FnMut(&str, &Guarantee, &Pattern),
) {
    let header = simulation.header();
    let mut changes: Vec<Vec<(u64, u32)>> = vec![vec![(0, 0)]; plan.machine.cpus as usize];
    for event in simulation.take_events().iter().filter(|event| event.kind() == Some(Kind::Decision)) {
        let changes = &mut changes[usize::from(event.cpu)];
        changes.retain(|change| change.0 < event.now_ns); // the last one of an instant counts
        changes.push((event.now_ns, event.a));
    }
    changes.iter_mut().for_each(|changes| changes.push((END, 0)));
    let admission = plan.admit();
    for (task, verdict) in plan.tasks.iter().zip(&admission.tasks) {
        if task.load != Some(tierce_plan::Load::Busy) {
            continue;
        }
        let id = header.tasks.iter().find(|info| info.name == task.name).unwrap().id;
        let pairs = changes.iter().flat_map(|changes| changes.windows(2));
        let mut runs: Vec<_> =
            pairs.filter(|pair| pair[0].1 == id).map(|pair| (pair[0].0, pair[1].0)).collect();
        runs.sort_unstable();
        let pattern = Pattern::new(runs);
        for promise in verdict.promises.iter() {
            if let Err(broken) = pattern.keeps(&promise.guarantee, END) {
                panic!("seed {seed}, {}: {broken}\nsince {}\n{text}", task.name, promise.because);
            }
            tell(&task.name, &promise.guarantee, &pattern);
        }
    }
}

#[test]
fn what_is_promised_is_given() {
    let seeds = std::env::var("TIERCE_SEEDS").unwrap_or_else(|_| "0..150".into());
    let (from, to) = seeds.split_once("..").expect("FROM..TO");
    println!("TIERCE_SEEDS={seeds}");
    let mut held = std::collections::BTreeMap::new();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let text = plan(seed);
        let plan = Plan::parse(&text, "promises")
            .unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
        let admission = plan.admit();
        if !admission.holds {
            continue; // budgets that do not fit
        }
        let options = Options { seed, trace: true, ..Options::default() };
        let mut simulation = Simulation::new(&plan, options).unwrap();
        simulation.run_until(END).unwrap();
        watch(seed, &text, &plan, simulation, &mut |_, guarantee, _| {
            *held.entry(guarantee.kind().name()).or_insert(0) += 1;
        });
    }
    println!("{held:?}");
    if seeds == "0..150" {
        for kind in ["RESBH", "RESBS", "RESCS", "PSBE"] {
            assert!(held.get(kind).is_some_and(|count| *count >= 3), "{kind}: {held:?}");
        }
    }
}

/// Two or three CPUs with reservations, and a spread node below them: tasks that move, and on some CPUs one that stays, alone or
/// below a node of its own.
fn spread_plan(seed: u64) -> String {
    let mut maker = Maker::new(seed, "spread");
    let cpus = maker.between(2, 3);
    let policy = ["round-robin", "fair", "fixed-priority", "time-sharing"][maker.between(0, 3) as usize];
    let more = match policy {
        "fixed-priority" => String::new(),
        "time-sharing" => format!("quantum = \"{}ms\"\nstarvation = \"20ms\"", maker.between(1, 6)),
        _ => format!("quantum = \"{}ms\"", maker.between(1, 6)),
    };
    let _ = writeln!(
        maker.text,
        "machine.cpus = {cpus}\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
         [node.rt]\npolicy = \"reservation\"\nper_cpu = true\nunder.top = {{ priority = 1 }}\n\
         [node.rest]\npolicy = \"{policy}\"\n{more}\nspread = true\nunder.top = {{}}"
    );
    let edge = |maker: &mut Maker| match policy {
        "fair" => format!("weight = {}", maker.between(1, 9) * 10),
        "fixed-priority" => format!("priority = {}", maker.between(0, 9)),
        "time-sharing" => format!("priority = {}", maker.between(0, 4)),
        _ => String::new(),
    };
    for cpu in 0..cpus {
        if maker.between(0, 1) == 0 {
            let budget = maker.budget(70);
            maker.task(&format!("under.rt = {{ cpu = {cpu}, {budget} }}"));
        }
        let edge = edge(&mut maker);
        match maker.between(0, 3) {
            0 => maker.task(&format!("under.rest = {{ cpu = {cpu}, {edge} }}").replace(", }", " }")),
            1 => maker.task(&format!("affinity = [{cpu}]\nunder.rest = {{ {edge} }}")),
            2 => maker.node(&format!("under.rest = {{ cpu = {cpu}, {edge} }}").replace(", }", " }"), 0),
            _ => {}
        }
    }
    for _ in 0..maker.between(2, 6) {
        let edge = edge(&mut maker);
        maker.task(&format!("under.rest = {{ {edge} }}"));
    }
    maker.text
}

/// Beside tasks that move between CPUs, too. Shares without a bound are held on average.
#[test]
fn what_is_promised_beside_tasks_that_move_is_given() {
    let seeds = std::env::var("TIERCE_SEEDS").unwrap_or_else(|_| "0..120".into());
    let (from, to) = seeds.split_once("..").expect("FROM..TO");
    println!("TIERCE_SEEDS={seeds}");
    let (mut held, mut moves) = (std::collections::BTreeMap::new(), 0);
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let text = spread_plan(seed);
        let plan = Plan::parse(&text, "promises")
            .unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
        if !plan.admit().holds {
            continue;
        }
        let options = Options { seed, trace: true, check: seed % 8 == 0, ..Options::default() };
        let mut simulation = Simulation::new(&plan, options).unwrap();
        simulation.run_until(END).unwrap();
        moves += simulation.report().tasks.iter().map(|task| task.migrations).sum::<u64>();
        watch(seed, &text, &plan, simulation, &mut |name, guarantee, pattern| {
            *held.entry(guarantee.kind().name()).or_insert(0) += 1;
            if guarantee.kind() == Type::Ps {
                let (has, wants) = (pattern.before(END), guarantee.share() * whole(END));
                assert!(whole(has + 100 * MS) >= wants, "seed {seed}, {name}: {guarantee}: {has} ns\n{text}");
            }
        });
    }
    println!("{held:?}, {moves} moves");
    if seeds == "0..120" {
        assert!(moves > 200, "{moves}");
        for kind in ["RESBH", "RESCS", "PS", "PSBE", "NULL"] {
            assert!(held.get(kind).is_some_and(|count| *count >= 3), "{kind}: {held:?}");
        }
    }
}

impl Maker {
    /// Children of a part, which has a slower processor; some announce no deadlines.
    fn part(&mut self, name: &str, share: u64) {
        let _ =
            writeln!(self.text, "[node.{name}]\npolicy = \"edf\"\nunder.cpu = {{ share = 0.{share:02} }}");
        let children = self.between(1, 3);
        for _ in 0..children {
            self.names += 1;
            let period = self.between(4, 40);
            let work = (period * share * self.between(40, 100) / 100 / children * 10).max(1);
            let (deadline, phase) = (self.between(period * 3 / 4, period), self.between(0, period));
            let _ = writeln!(
                self.text,
                "[task.t{}]\nunder.{name} = {{}}\n\
                 load = {{ period = \"{period}ms\", work = \"{work}us\", deadline = \"{deadline}ms\", phase = \"{phase}ms\" }}",
                self.names
            );
        }
        if self.between(0, 1) == 0 {
            self.names += 1;
            let load = ["\"busy\"", "{ phases = [{ run = \"9ms\" }, { sleep = \"7ms\" }] }"]
                [self.between(0, 1) as usize];
            let _ = writeln!(self.text, "[task.t{}]\nunder.{name} = {{}}\nload = {load}", self.names);
        }
    }
}

/// Deadlines are met on slower processors, where all below announce theirs.
#[test]
fn deadlines_below_shares_are_met() {
    println!("TIERCE_SEEDS={:?}", seeds());
    let mut met = 0;
    for seed in seeds() {
        let mut maker = Maker::new(seed, "shares");
        maker.text += "[node.cpu]\npolicy = \"uniform\"\ncpu = 0\n";
        let share = maker.between(10, 80);
        maker.part("a", share);
        maker.part("b", 99 - share);
        let plan = parse(&maker.text);
        met += within_bounds(&plan, &plan.admit(), seed, |_, _, _, _| ());
    }
    println!("{met} tasks met their deadlines");
    assert!(std::env::var("TIERCE_SEEDS").is_ok() || met > 300, "{met}");
}

/// A share that is no binary fraction, used to its end.
#[test]
fn a_whole_share_is_enough() {
    for (shares, works) in [(["0.3", "0.7"], ["6ms", "4900us"]), (["0.3", "0.3"], ["6ms", "2100us"])] {
        let task = |at: usize, period: &str| {
            format!(
                "[task.t{at}]\nunder.cpu = {{ share = {} }}\nload = {{ period = \"{period}\", work = \"{}\" }}\n",
                shares[at], works[at]
            )
        };
        let plan = parse(&format!(
            "[node.cpu]\npolicy = \"uniform\"\ncpu = 0\n{}{}",
            task(0, "20ms"),
            task(1, "7ms")
        ));
        let verdict = plan.admit();
        assert!(verdict.holds, "{}", verdict.faults(&plan));
        within_bounds(&plan, &verdict, 1, |_, _, _, _| ());
    }
}
