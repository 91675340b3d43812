//! What `tierce check` promises where scheduling costs something, the simulator gives with the same costs: random plans on one
//! CPU. No task whose longest response is within its deadline misses one, and what always wants the CPU makes at least the
//! progress that it is promised, in every window.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{Maker, MS};
use std::fmt::Write;
use tierce_admission::PlanExt;
use tierce_guarantee::{whole, Guarantee, Kind as Type, Parameter, Supply};
use tierce_plan::{Costs, Plan};
use tierce_sim::{Options, Simulation};
use tierce_trace::Kind;

/// How finely progress is seen.
const GRAIN_NS: u64 = 10_000;
const END_NS: u64 = 250 * MS;

impl Maker {
    fn name(&mut self, kind: &str) -> String {
        self.names += 1;
        format!("{kind}{}", self.names)
    }

    fn us(&mut self, least: u64, most: u64) -> String {
        format!("{}us", self.between(least, most))
    }

    /// Always wants the CPU, and tells how far it has come.
    fn hungry(&mut self, under: &str) {
        let name = self.name("hungry");
        let _ = writeln!(
            self.text,
            "[task.{name}]\n{under}\nload = {{ phases = [{{ run = \"{GRAIN_NS}ns\" }}] }}"
        );
    }

    /// Jobs of about `share` per cent.
    fn jobs(&mut self, under: &str, share: u64) {
        let name = self.name("jobs");
        let period = self.between(1_000, 20_000);
        let work = (period * self.between(share / 2 + 1, share + 1) / 100).max(2);
        let kind = if self.between(0, 3) == 0 { "separation" } else { "period" };
        let extra = match kind {
            "separation" => format!("extra = \"{}us\"", self.between(0, period)),
            _ => format!("jitter = \"{}us\"", self.between(0, 3).saturating_sub(2) * period / 4),
        };
        let deadline = period - self.between(0, 2).saturating_sub(1) * period / 4;
        let phase = self.between(0, period);
        let _ = writeln!(
            self.text,
            "[task.{name}]\n{under}\nload = {{ {kind} = \"{period}us\", work = {{ min = \"1us\", max = \"{work}us\" }}, \
             deadline = \"{deadline}us\", phase = \"{phase}us\", {extra} }}"
        );
        if self.between(0, 1) == 0 {
            // always as long as it may be
            self.text = self
                .text
                .replace(&format!("{{ min = \"1us\", max = \"{work}us\" }}"), &format!("\"{work}us\""));
        }
    }

    fn sleeper(&mut self, under: &str) {
        let name = self.name("sleeper");
        let (run, sleep) = (self.us(200, 3_000), self.us(500, 9_000));
        let _ = writeln!(
            self.text,
            "[task.{name}]\n{under}\nload = {{ phases = [{{ run = \"{run}\" }}, {{ sleep = \"{sleep}\" }}] }}"
        );
    }

    /// Nothing but jobs, whose works leave little room for costs.
    fn full(&mut self) {
        let policy = ["fixed-priority", "edf"][self.between(0, 1) as usize];
        let _ = writeln!(self.text, "[node.top]\npolicy = \"{policy}\"\ncpu = 0");
        let (count, room) = (self.between(2, 5), self.between(70, 99));
        let mut periods: Vec<_> = (0..count).map(|_| self.between(400, 3_000)).collect();
        periods.sort_unstable();
        for (index, period) in periods.into_iter().enumerate() {
            let (name, work) = (self.name("jobs"), period * room / count / 100);
            let edge = if policy == "edf" { String::new() } else { format!("priority = {}", 9 - index) };
            let phase = self.between(0, period);
            let _ = writeln!(
                self.text,
                "[task.{name}]\nunder.top = {{ {edge} }}\n\
                 load = {{ period = \"{period}us\", work = \"{work}us\", phase = \"{phase}us\" }}"
            );
        }
    }

    /// Reservations, some of whose children get the rest, too.
    fn joined(&mut self) {
        self.text +=
            "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n[node.rt]\npolicy = \"reservation\"\n\
                      under.top = { priority = 2 }\n[node.rest]\npolicy = \"fair\"\nquantum = \"2ms\"\n\
                      under.top = { priority = 0 }\n";
        let children = self.between(1, 4);
        for _ in 0..children {
            let period = self.between(2_000, 20_000);
            let budget = (period * self.between(30, 90) / 100 / children).max(150);
            let soft = ["under.rest = { weight = 2 }", "under.top = { priority = 1 }", ""]
                [self.between(0, 2) as usize];
            let under = format!("under.rt = {{ budget = \"{budget}us\", period = \"{period}us\" }}\n{soft}");
            match self.between(0, 3) {
                0 => self.sleeper(&under),
                1 => self.node(&under, 30, 0),
                _ => self.hungry(&under),
            }
        }
        self.sleeper("under.rest = {}");
        self.hungry("under.rest = {}");
    }

    /// Jobs, and less urgent children whose policy often sets a timer.
    fn timers(&mut self) {
        let timer = self.us(1, 6);
        let by_priority = self.between(0, 1) == 0;
        let policy = if by_priority { "fixed-priority" } else { "edf" };
        let _ = writeln!(
            self.text,
            "[machine]\ncosts = {{ switch = \"1us\", timer = \"{timer}\" }}\n[node.top]\npolicy = \"{policy}\"\ncpu = 0"
        );
        let under = |priority: u64| match by_priority {
            true => format!("under.top = {{ priority = {priority} }}"),
            false => "under.top = {}".to_string(),
        };
        if by_priority && self.between(0, 1) == 0 {
            let budget = self.us(200, 3_000);
            let _ = writeln!(self.text, "[node.rt]\npolicy = \"reservation\"\n{}", under(9));
            self.hungry(&format!("under.rt = {{ budget = \"{budget}\", period = \"10ms\" }}"));
        }
        for priority in 0..self.between(1, 2) {
            let share = self.between(5, 40);
            self.jobs(&under(5 + priority), share);
        }
        let policy = ["mixed-criticality", "time-sharing", "uniform", "fair", "slots", "reservation"]
            [self.between(0, 5) as usize];
        let more = match policy {
            "time-sharing" => format!("quantum = \"1ms\"\nstarvation = \"{}\"", self.us(300, 3_000)),
            "uniform" => format!("period = \"{}\"", self.us(300, 3_000)),
            "fair" => "quantum = \"100us\"".into(),
            "slots" => "slot = \"1ms\"".into(),
            "reservation" => {
                format!(
                    "replenishment = \"{}\"",
                    ["hard", "periodic", "sporadic", "polling"][self.between(0, 3) as usize]
                )
            }
            _ => String::new(),
        };
        let _ = writeln!(self.text, "[node.low]\npolicy = \"{policy}\"\n{more}\n{}", under(1));
        for child in 0..self.between(2, 10) {
            let period = self.us(300, 2_000);
            let edge = match policy {
                "mixed-criticality" => format!("work = \"50us\", period = \"{period}\""),
                "uniform" => "share = 0.05".to_string(),
                "fair" => format!("warp = \"1ms\", warp_limit = \"50us\", unwarp = \"{period}\""),
                "slots" => format!("offset = \"{}us\", length = \"60us\"", 100 * child),
                "reservation" => format!("budget = \"20us\", period = \"{period}\""),
                _ => String::new(),
            };
            let (name, run, sleep) = (self.name("often"), self.us(20, 80), self.us(100, 500));
            let load = match self.between(0, 1) {
                0 => "\"busy\"".to_string(),
                _ => format!("{{ phases = [{{ run = \"{run}\" }}, {{ sleep = \"{sleep}\" }}] }}"),
            };
            let _ = writeln!(self.text, "[task.{name}]\nunder.low = {{ {edge} }}\nload = {load}");
        }
    }

    /// A node of one of the policies, with children; `share` per cent are to be used.
    fn node(&mut self, under: &str, share: u64, levels: u32) {
        let name = self.name("node");
        let children = self.between(1, 4);
        let policy =
            ["fixed-priority", "edf", "reservation", "fair", "round-robin"][self.between(0, 4) as usize];
        let quantum = if matches!(policy, "fair" | "round-robin") {
            format!("quantum = \"{}\"", self.us(1_000, 5_000))
        } else {
            String::new()
        };
        let _ = writeln!(self.text, "[node.{name}]\npolicy = \"{policy}\"\n{quantum}\n{under}");
        for child in 0..children {
            let edge = match policy {
                "fixed-priority" => format!("priority = {}", 50 - child),
                "reservation" => {
                    let period = self.between(2_000, 20_000);
                    let budget = (period * share / children * self.between(5, 10) / 1_000).max(100);
                    format!("budget = \"{budget}us\", period = \"{period}us\"")
                }
                "fair" => format!("weight = {}", self.between(1, 5)),
                _ => String::new(),
            };
            let under = format!("under.{name} = {{ {edge} }}");
            let part = share / children;
            match (policy, self.between(0, 3)) {
                ("edf", _) | ("fixed-priority", 0..=2) => self.jobs(&under, part),
                (_, 0) if levels > 0 => self.node(&under, part, levels - 1),
                ("reservation", 1) if levels > 0 => self.node(&under, part / 2, levels - 1),
                (_, 1) => self.sleeper(&under),
                _ => self.hungry(&under),
            }
        }
        if policy == "fixed-priority" && self.between(0, 1) == 0 {
            let under = format!("under.{name} = {{ priority = 1 }}");
            match levels {
                0 => self.hungry(&under),
                _ => self.node(&under, 100 - share.min(80), levels - 1),
            }
        }
    }
}

fn plan(seed: u64) -> String {
    let mut maker = Maker::new(seed, "costs");
    if seed % 4 == 3 {
        maker.timers();
        return maker.text;
    }
    let [switch, timer, level, migration] = [40, 30, 8, 20].map(|most| maker.us(0, most));
    let _ = writeln!(
        maker.text,
        "[machine]\ncosts = {{ switch = \"{switch}\", timer = \"{timer}\", level = \"{level}\", migration = \"{migration}\" }}"
    );
    if seed % 3 == 0 {
        maker.full();
        return maker.text;
    }
    if seed % 5 == 1 {
        maker.joined();
        return maker.text;
    }
    let share = maker.between(40, 100);
    maker.node("cpu = 0", share, 2);
    maker.text
}

/// When each grain of progress was done.
struct Progress(Vec<u64>);

impl Progress {
    /// In no window is less done than promised, but for the grain under way at its begin and at its end.
    fn keeps(&self, guarantee: &Guarantee) -> Result<(), String> {
        let supply = Supply::of(guarantee);
        let step = match guarantee.amount_and_period() {
            Some((_, period)) => period.clone(),
            None => match guarantee.get(Parameter::Error) {
                Some(error) => error / guarantee.share() + whole(MS),
                None => whole(20 * MS),
            },
        };
        let step = u64::try_from(step.ceil().to_integer()).unwrap();
        let sum = |at: u64| self.0.partition_point(|done| *done <= at) as u64 * GRAIN_NS;
        for half in [1, 2, 3, 4, 6, 9] {
            let window = step * half / 2;
            let wants = u64::try_from(supply.at(&whole(window)).ceil().to_integer()).unwrap();
            // The worst windows begin at the end of a grain.
            for begin in self.0.iter().filter(|begin| **begin + window <= END_NS) {
                let most = sum(begin + window) - sum(*begin) + GRAIN_NS;
                if most < wants {
                    return Err(format!("{guarantee}: less than {most} ns in {window} ns from {begin} on"));
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Count {
    plans: u64,
    tasks_shown: u64,
    jobs: u64,
    promises: std::collections::BTreeMap<&'static str, u64>,
    /// Tasks that miss, and would have been accepted if costs were left out.
    only_costs: u64,
}

#[test]
fn what_is_promised_with_costs_is_given_with_costs() {
    let seeds = std::env::var("TIERCE_SEEDS").unwrap_or_else(|_| "0..120".into());
    let (from, to) = seeds.split_once("..").expect("FROM..TO");
    println!("TIERCE_SEEDS={seeds}");
    let mut count = Count::default();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let text = plan(seed);
        let plan =
            Plan::parse(&text, "costs").unwrap_or_else(|faults| panic!("{}\n{text}", faults.report_plain()));
        let admission = plan.admit();
        let mut free = plan.clone();
        free.machine.costs = Costs::default();
        let without = free.admit();
        let options = Options { seed, trace: true, check: seed % 8 == 0, ..Options::default() };
        let Ok(mut simulation) = Simulation::new(&plan, options) else { continue };
        simulation.run_until(END_NS).unwrap();
        let report = simulation.report();
        count.plans += 1;
        let header = simulation.header();
        let events = simulation.take_events();
        for (index, task) in plan.tasks.iter().enumerate() {
            let verdict = &admission.tasks[index];
            let found = report.tasks.iter().find(|found| found.name == task.name).unwrap();
            let meets = |verdict: &tierce_admission::TaskVerdict| {
                verdict.deadlines == tierce_admission::Deadlines::Met
            };
            if meets(verdict) {
                assert_eq!(found.misses, 0, "seed {seed}, {}: {verdict:?}\n{text}", task.name);
                if let (Some(spread), Some(most)) =
                    (&found.response_ns, verdict.response.and_then(|response| response.ns()))
                {
                    assert!(
                        spread.max <= most,
                        "seed {seed}, {}: {} > {most}\n{text}",
                        task.name,
                        spread.max
                    );
                }
                count.tasks_shown += 1;
                count.jobs += found.jobs;
            }
            // Those whose node meets all deadlines by its law.
            let parent =
                plan.edges.iter().find(|edge| edge.child == tierce_plan::Child::Task(index)).unwrap().parent;
            let (node, above) = (&admission.nodes[parent], &admission.nodes[parent].promises[0].guarantee);
            if node.law.is_some_and(|law| law.name().contains("of deadlines"))
                && above.kind() != Type::Null
                && node.failures.is_empty()
                && node.open.is_empty()
            {
                assert_eq!(found.misses, 0, "seed {seed}, {}: by the law of its node\n{text}", task.name);
            }
            count.only_costs += u64::from(found.misses > 0 && meets(&without.tasks[index]));
            if !task.name.starts_with("hungry") {
                continue;
            }
            let id = header.tasks.iter().find(|info| info.name == task.name).unwrap().id;
            let done =
                |event: &&tierce_trace::Event| event.kind() == Some(Kind::JobComplete) && event.a == id;
            let progress = Progress(events.iter().filter(done).map(|event| event.now_ns).collect());
            for promise in verdict.promises.iter() {
                if let Err(broken) = progress.keeps(&promise.guarantee) {
                    panic!("seed {seed}, {}: {broken}\nsince {}\n{text}", task.name, promise.because);
                }
                *count.promises.entry(promise.guarantee.kind().name()).or_default() += 1;
            }
        }
    }
    println!("{count:?}");
    if seeds == "0..120" {
        assert!(count.tasks_shown > 60 && count.jobs > 1_000 && count.only_costs > 5, "{count:?}");
        for kind in ["RESBS", "RESCS", "PSBE"] {
            assert!(count.promises.get(kind).is_some_and(|count| *count >= 5), "{kind}: {count:?}");
        }
    }
}

/// A timer ends each turn of a task with a quantum, also where it has no equals.
#[test]
fn turns_with_nobody_cost_their_timers() {
    let plan = common::parse(
        r#"
        machine.costs = { timer = "2us" }
        [node.n]
        policy = "fixed-priority"
        cpu = 0
        [task.turns]
        under.n = { priority = 5, quantum = "100us" }
        load = { period = "10ms", work = "5ms" }
        [task.low]
        under.n = { priority = 4 }
        load = { period = "10ms", work = "1ms" }
        "#,
    );
    let verdict = plan.admit();
    let report = common::report_of(&plan, 1, 100 * MS);
    for (seen, verdict) in report.tasks.iter().zip(&verdict.tasks) {
        let longest = seen.response_ns.as_ref().unwrap().max;
        let bound = verdict.response.and_then(|response| response.ns()).unwrap();
        assert!(longest > 5_090_000 && longest <= bound, "{}: {longest}, bound {bound}", seen.name);
    }
}
