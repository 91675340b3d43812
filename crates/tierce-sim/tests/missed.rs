//! A deadline that can be missed for want of time is missed: random hierarchies on one CPU that ask for too much, some of whose children ask
//! for less than they might get. And who always wants the CPU gets what is said to be available.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

mod common;

use common::{parse, report_of, seeds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_guarantee::{ratio, Exact};
use tierce_plan::{Costs, Load};

/// Long enough for a hundredth of a CPU to add up to more than any deadline.
const END: u64 = 12_000 * MS;

impl Maker {
    fn node(&mut self, under: &str, levels: u32) {
        self.names += 1;
        let name = format!("n{}", self.names);
        let policy =
            ["fixed-priority", "edf", "reservation", "round-robin", "fair"][self.between(0, 4) as usize];
        let more = match policy {
            "round-robin" => "quantum = \"1ms\"\n",
            "fair" => [
                "quantum = \"1ms\"\n",
                "quantum = \"1ms\"\norder = \"stride\"\n",
                "quantum = \"1ms\"\norder = \"eevdf\"\n",
            ][self.between(0, 2) as usize],
            _ => "",
        };
        let _ = writeln!(self.text, "[node.{name}]\npolicy = \"{policy}\"\n{more}{under}");
        if matches!(policy, "edf" | "round-robin" | "fair") {
            self.second = format!("under.{name} = {{}}");
        }
        let children = self.between(1, 4);
        for _ in 0..children {
            let edge = match policy {
                "fixed-priority" => format!("priority = {}", self.between(0, 3)),
                "reservation" => {
                    let period = self.between(4, 20);
                    let budget = (period * self.between(20, 100) / 100 / children).max(1);
                    format!("budget = \"{budget}ms\", period = \"{}ms\"", period.max(budget * children))
                }
                "fair" => format!("weight = {}", self.between(1, 9)),
                _ => String::new(),
            };
            let under = format!("under.{name} = {{ {edge} }}");
            if levels > 0 && self.between(0, 2) == 0 {
                self.node(&under, levels - 1);
            } else {
                self.task(&under);
            }
        }
    }

    fn task(&mut self, under: &str) {
        self.names += 1;
        let (place, _) = self.second.split_once(' ').unwrap_or_default();
        let joins = !place.is_empty() && !under.starts_with(&format!("{place} ")) && self.between(0, 5) == 0;
        let under = if joins { format!("{under}\n{}", self.second) } else { under.to_string() };
        let period = self.between(4, 20) * 1000;
        let work = period * self.between(5, 70) / 100;
        let load = match self.between(0, 6) {
            0 => "\"busy\"".to_string(),
            1 => format!("{{ phases = [{{ run = \"{work}us\" }}, {{ sleep = \"{}us\" }}], deadline = \"{period}us\" }}", period - work),
            2 => format!("{{ phases = [{{ run = \"{work}us\" }}, {{ timer = \"{period}us\" }}], deadline = \"{period}us\" }}"),
            3 => format!("{{ period = \"{period}us\", work = [\"{work}us\", \"{}us\"] }}", work / 2),
            4 => format!("{{ period = \"{period}us\", work = \"{work}us\", deadline = \"{}us\" }}", period * 9 / 10),
            _ => format!("{{ period = \"{period}us\", work = \"{work}us\" }}"),
        };
        let _ = writeln!(self.text, "[task.t{}]\n{under}\nload = {load}", self.names);
    }
}

#[test]
fn what_lacks_time_is_late() {
    println!("TIERCE_SEEDS={:?}", seeds());
    let hundredth = ratio(1, 100);
    let (mut late, mut unsure, mut busy) = (0, 0, 0);
    for seed in seeds() {
        let mut maker = Maker::new(seed, "missed");
        if seed % 4 == 3 {
            maker.text += "[machine]\ncosts = { switch = \"20us\", timer = \"5us\" }\n";
        }
        maker.node("cpu = 0", 2);
        let text = maker.text;
        let plan = parse(&text);
        let verdict = plan.admit();
        let report = report_of(&plan, seed, END);
        let budgets_fit = verdict
            .nodes
            .iter()
            .all(|node| node.failures.iter().all(|failure| !failure.rule.starts_with("budgets")));
        for (task, verdict) in plan.tasks.iter().zip(&verdict.tasks) {
            let played = report.tasks.iter().find(|played| played.name == task.name).unwrap();
            let Some(available) = &verdict.available else { continue };
            // What others pay for their switches does not count as what they ask for.
            let is_free = plan.machine.costs == Costs::default();
            if matches!(task.load, Some(Load::Busy)) && budgets_fit && is_free {
                let received = ratio(played.cpu_ns, END);
                assert!(
                    received > available - &hundredth,
                    "seed {seed}: {} gets {received} of {available}\n{text}",
                    task.name
                );
                busy += 1;
            }
            let lacks = |asked: &&Exact| *asked > &(available + &hundredth);
            if verdict.asked.as_ref().filter(lacks).is_none() {
                continue;
            }
            assert!(verdict.deadlines.is_open(), "seed {seed}: {}\n{text}", task.name);
            if verdict.deadlines == Deadlines::MayMiss {
                assert!(played.misses > 0, "seed {seed}: {} is never late\n{text}", task.name);
                late += 1;
            } else {
                unsure += 1;
            }
        }
    }
    println!("{late} are late, {unsure} may be, {busy} are always busy");
    if seeds() == (0..300) {
        assert!(late > 100 && busy > 30, "{late} {busy}");
    }
}
