//! Chains: what check bounds, the simulator keeps, in random plans of several CPUs with tasks that trigger each other, read what others
//! wrote, and stand below priorities, budgets and deadlines, or priorities alone; also where they have locks or regions without preemption. And what is measured from a trace is what the
//! simulator has measured itself.
//!
//! TIERCE_SEEDS=FROM..TO plays others than the usual ones.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{parse, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::{Load, Plan};
use tierce_sim::{Options, Simulation, Stream};
use tierce_trace::{ChainReport, Chains, Seen, Spread};

const END_NS: u64 = 400 * MS;
const RUNS: u64 = 3;

/// Nodes of each CPU: priorities, budgets, deadlines.
const NODES: u64 = 3;

/// Locks of the tasks directly below one node, in most plans.
const LOCKS: u64 = 2;

/// Of the locks there.
fn protocols(node: u64) -> &'static [&'static str] {
    match node {
        0 => &["inheritance", "inheritance", "ceiling", "immediate-ceiling", "none"],
        1 => &["inheritance"],
        _ => &["inheritance", "srp"],
    }
}

/// What tasks of chains have besides.
#[derive(Clone, Copy, PartialEq)]
enum With {
    Nothing,
    Locks,
    Regions,
    /// And directly below roots with fixed priorities, of which there are few.
    Priorities,
}

/// Up to three tasks with periods, others that follow them, and chains through both.
fn plan(seed: u64, with: With) -> String {
    let mut maker = Maker::new(
        seed,
        match with {
            With::Nothing => "chains",
            With::Locks => "locks and chains",
            With::Regions => "regions and chains",
            With::Priorities => "priorities and chains",
        },
    );
    let locks = with == With::Locks;
    let cpus = maker.between(1, 3);
    let _ = writeln!(
        maker.text,
        "machine.cpus = {cpus}\n[node.top]\npolicy = \"fixed-priority\"\nper_cpu = true\n\
         [node.rt]\npolicy = \"reservation\"\nper_cpu = true\nunder.top = {{ priority = 50 }}\n\
         [node.due]\npolicy = \"edf\"\nper_cpu = true\nunder.top = {{ priority = 20 }}"
    );
    // In some plans also with tasks elsewhere on the CPU: their holders run in place of each other.
    let anywhere = locks && maker.between(0, 4) == 0;
    for node in 0..if locks { cpus * NODES } else { 0 } {
        let protocols = if anywhere { &["inheritance"] } else { protocols(node % NODES) };
        let protocol = protocols[maker.between(0, protocols.len() as u64 - 1) as usize];
        for lock in node * LOCKS..(node + 1) * LOCKS {
            let _ = writeln!(maker.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
    }
    let (heads, others) = (maker.between(1, 3), maker.between(1, 5));
    let mut periods = Vec::new();
    // For each task what releases it, with the delay; none of those with periods.
    let mut before: Vec<Vec<(u64, u64)>> = Vec::new();
    let mut head_of: Vec<u64> = Vec::new();
    for task in 0..heads + others {
        let head = if task < heads {
            periods.push(maker.between(8, 80) * 250);
            before.push(Vec::new());
            task
        } else {
            let first = maker.between(0, task - 1);
            let delay = |maker: &mut Maker| if maker.between(0, 2) == 0 { maker.between(1, 3000) } else { 0 };
            let mut all = vec![(first, delay(&mut maker))];
            let second = maker.between(0, task - 1);
            if second != first
                && head_of[second as usize] == head_of[first as usize]
                && maker.between(0, 1) == 0
            {
                all.push((second, delay(&mut maker)));
            }
            before.push(all);
            head_of[first as usize]
        };
        head_of.push(head);
        let period = periods[head as usize];
        let work = (period * maker.between(2, 25) / 100).max(50);
        let least = maker.between(work / 4, work);
        let cpu = maker.between(0, cpus - 1);
        let (mut place, mut node, mut priority) = (maker.between(0, 5), 0, 0);
        if with == With::Priorities {
            place = 6;
        }
        let under = match place {
            0 if locks => {
                // Of each budget one job, perhaps with what it pays for others.
                node = 1;
                let budget_period = period * maker.between(40, 100) / 100;
                let budget = (work * maker.between(100, 400) / 100).clamp(10, budget_period / 2);
                format!(
                    "under.rt = {{ cpu = {cpu}, budget = \"{budget}us\", period = \"{budget_period}us\" }}"
                )
            }
            0 => {
                let budget_period = period / maker.between(1, 3);
                let budget = (work * maker.between(100, 300) / 100 * budget_period / period)
                    .clamp(10, budget_period / 2);
                format!(
                    "under.rt = {{ cpu = {cpu}, budget = \"{budget}us\", period = \"{budget_period}us\" }}"
                )
            }
            1 => {
                node = 2;
                let own = if task < heads { String::new() } else { format!(", deadline = \"{period}us\"") };
                format!("under.due = {{ cpu = {cpu}{own} }}")
            }
            6 => {
                // Above the other nodes, whose budgets are not those of tasks.
                priority = maker.between(51, 57);
                let quantum = if maker.between(0, 9) == 0 { ", quantum = \"300us\"" } else { "" };
                format!("under.top = {{ cpu = {cpu}, priority = {priority}{quantum} }}")
            }
            _ => {
                priority = maker.between(1, 100);
                format!("under.top = {{ cpu = {cpu}, priority = {priority} }}")
            }
        };
        let node = if anywhere { maker.between(0, NODES - 1) } else { node };
        let first = (cpu * NODES + node) * LOCKS;
        let sections = if locks && maker.between(0, 3) > 0 {
            maker.sections(least, first, first + LOCKS)
        } else if with == With::Regions && node != 1 && place != 0 && maker.between(0, 3) > 0 {
            match maker.between(0, 3) {
                0 => maker.regions(least, true),
                1 => maker.floating(work),
                2 if place > 1 => format!(", threshold = {}", maker.between(priority, 100)),
                _ => maker.regions(least, false),
            }
        } else {
            String::new()
        };
        let work = format!("work = {{ min = \"{least}us\", max = \"{work}us\" }}{sections}");
        // Offsets need punctual heads, or those that are periodic at least.
        let kind = maker.between(0, 3);
        let kind = if with == With::Priorities { kind + maker.between(0, 3) } else { kind };
        let load = match kind {
            _ if task >= heads => format!("{{ {work} }}"),
            0 => format!(
                "{{ separation = \"{period}us\", extra = \"{}us\", {work} }}",
                maker.between(0, period)
            ),
            1 => format!(
                "{{ period = \"{period}us\", jitter = \"{}us\", {work} }}",
                maker.between(0, period - 1)
            ),
            _ => format!("{{ period = \"{period}us\", {work} }}"),
        };
        let _ = writeln!(maker.text, "[task.t{task}]\n{under}\nload = {load}");
    }
    chains(&mut maker, heads, &before);
    maker.text
}

/// A chain for each pair that triggers, so that all are known, and some longer ones.
fn chains(maker: &mut Maker, heads: u64, before: &[Vec<(u64, u64)>]) {
    let path = |maker: &mut Maker, to: u64| {
        let (mut links, mut at) = (Vec::new(), to);
        while let [_, ..] = &before[at as usize][..] {
            let (from, delay) =
                before[at as usize][maker.between(0, before[at as usize].len() as u64 - 1) as usize];
            links.insert(0, (at, delay));
            at = from;
        }
        links.insert(0, (at, 0));
        links
    };
    let mut all = Vec::new();
    for (to, triggers) in before.iter().enumerate() {
        for (from, delay) in triggers {
            let mut links = path(maker, *from);
            links.push((to as u64, *delay));
            all.push(links);
        }
    }
    for _ in 0..3 {
        let begin = maker.between(0, before.len() as u64 - 1);
        let mut links = path(maker, begin);
        for _ in 0..2 {
            // Another one with a period reads what comes out, and passes it on.
            let end = maker.between(0, before.len() as u64 - 1);
            let mut more = path(maker, end);
            if more.iter().all(|(task, _)| links.iter().all(|(other, _)| other != task)) && more[0].0 < heads
            {
                more[0].1 = if maker.between(0, 1) == 0 { maker.between(1, 3000) } else { 0 };
                links.extend(more);
            }
        }
        all.push(links);
    }
    for (number, links) in all.iter().filter(|links| links.len() > 1).enumerate() {
        let tasks: Vec<_> = links.iter().map(|(task, _)| format!("\"t{task}\"")).collect();
        let delays: Vec<_> =
            links.iter().skip(1).map(|(task, delay)| format!("t{task} = \"{delay}us\"")).collect();
        let _ = writeln!(
            maker.text,
            "[chain.c{number}]\ntasks = [{}]\ndelay = {{ {} }}",
            tasks.join(", "),
            delays.join(", ")
        );
    }
}

fn shifted(plan: &Plan, seed: u64) -> Plan {
    let mut plan = plan.clone();
    let mut draws = Stream::new(seed, "phases", 0);
    for load in plan.tasks.iter_mut().filter_map(|task| task.load.as_mut()) {
        let phase_ns = draws.between(0, 20_000) * 1_000;
        match load {
            Load::Periodic(load) => load.phase_ns = phase_ns,
            Load::Sporadic(load) => load.phase_ns = phase_ns,
            _ => {}
        }
    }
    plan
}

/// Where both are there.
#[track_caller]
fn see(near: &mut common::seen::Seen, seen: Option<Spread>, bound: Option<u64>, about: &dyn Fn() -> String) {
    if let (Some(seen), Some(bound)) = (seen, bound) {
        near.add(seen.max, bound, about);
    }
}

#[test]
fn nothing_takes_longer_than_its_bound() {
    attack(With::Nothing);
}

#[test]
fn nor_where_tasks_of_chains_have_locks() {
    attack(With::Locks);
}

#[test]
fn nor_where_their_jobs_do_not_give_way() {
    attack(With::Regions);
}

#[test]
fn nor_below_priorities_alone() {
    attack(With::Priorities);
}

fn attack(with: With) {
    let seeds = std::env::var("TIERCE_SEEDS").unwrap_or_else(|_| "0..400".into());
    let (from, to) = seeds.split_once("..").expect("FROM..TO");
    println!("TIERCE_SEEDS={seeds}");
    let [mut tasks, mut responses, mut reactions, mut ages] = [common::seen::Seen::default(); 4];
    let (mut waits, mut blocked, mut kept) = (0, 0, 0);
    // Of tasks that offsets bound.
    let mut offsets = common::seen::Seen::default();
    for seed in from.parse().unwrap()..to.parse().unwrap() {
        let text = plan(seed, with);
        let first = parse(&text);
        let admission = first.admit();
        for run in 0..RUNS {
            let plan = if run == 0 { first.clone() } else { shifted(&first, seed * RUNS + run) };
            let (seed_of_run, traced) = (seed * RUNS + run, run == 1);
            let options = Options { seed: seed_of_run, check: traced, trace: traced, ..Options::default() };
            let Ok(mut simulation) = Simulation::new(&plan, options) else { break }; // budgets above a CPU
            simulation.run_until(END_NS).unwrap();
            let report = simulation.report();
            if traced {
                let mut measured = Chains::new(&simulation.header(), simulation.header().chains, None);
                simulation.events_mut().iter().for_each(|event| measured.seen(&Seen::Event(*event)));
                assert_eq!(measured.report(), report.chains, "seed {seed}, run {run}\n{text}");
            }
            for (found, verdict) in report.tasks.iter().zip(&admission.tasks) {
                let about = || format!("seed {seed}, run {run}, {}\n{text}", found.name);
                assert!(found.misses == 0 || verdict.deadlines != Deadlines::Met, "missed; {}", about());
                let bound_ns = verdict.response.and_then(|response| response.ns());
                see(&mut tasks, found.response_ns, bound_ns, &about);
                let by_offsets = verdict.test.is_some_and(|test| test.contains("with offsets"));
                see(&mut offsets, found.response_ns, bound_ns.filter(|_| by_offsets), &about);
                waits += found.lock_waits.map_or(0, |waits| waits.count);
                let blocking = verdict.blocking.as_ref().filter(|_| bound_ns.is_some());
                blocked += u64::from(blocking.is_some_and(|blocking| blocking.most_ns > Some(0)));
                kept += u64::from(verdict.kept.is_some_and(|kept| kept.most_ns() > 0));
            }
            for (found, verdict) in report.chains.iter().zip(&admission.chains) {
                let ChainReport { name, response_ns, reaction_ns, age_ns, .. } = found;
                let about = || format!("seed {seed}, run {run}, {name}: {found:?} {verdict:?}\n{text}");
                let bounds = verdict.bounds;
                assert!(age_ns.is_none_or(|age| age.min >= bounds.least_ns), "{}", about());
                see(&mut responses, *response_ns, bounds.response_ns, &about);
                see(&mut reactions, *reaction_ns, bounds.reaction_ns, &about);
                see(&mut ages, *age_ns, bounds.age_ns, &about);
            }
        }
    }
    println!("{waits} waits, {blocked} with blocking, {kept} wait for regions");
    let seen = [("tasks", tasks), ("responses", responses), ("reactions", reactions), ("ages", ages)];
    seen.iter().for_each(|(name, seen)| _ = seen.print(name));
    offsets.print("tasks, by offsets");
    if seeds == "0..400" {
        assert!(with != With::Locks || waits > 1_000 && blocked > 300, "{waits} {blocked}");
        assert!(with != With::Regions || kept > 500, "{kept}");
        assert!(with != With::Priorities || offsets.all() > 500 && offsets.near() > 50, "{offsets:?}");
        assert!(seen.iter().all(|(_, seen)| seen.all() > 500 && seen.near() > 20), "{seen:?}");
    }
}

/// A triggered task has the jobs of what releases it, in their order, also where they come faster than it is done with them.
#[test]
fn jobs_are_passed_on_one_by_one() {
    let plan = parse(
        r#"
        machine.cpus = 2
        [node.top]
        policy = "fixed-priority"
        per_cpu = true
        [task.head]
        under.top = { cpu = 0 }
        load = { period = "10ms", work = "1ms" }
        [task.left]
        under.top = { cpu = 1, priority = 2 }
        load = { work = "2ms" }
        [task.right]
        under.top = { cpu = 0 }
        load = { work = ["1ms", "12ms"] }
        [task.join]
        under.top = { cpu = 1, priority = 1 }
        load = { work = "1ms" }
        [chain.to-left]
        tasks = ["head", "left", "join"]
        delay = { join = "3ms" }
        [chain.to-right]
        tasks = ["head", "right", "join"]
        "#,
    );
    let mut simulation =
        Simulation::new(&plan, Options { check: true, trace: true, ..Options::default() }).unwrap();
    simulation.run_until(100 * MS).unwrap();
    let report = simulation.report();
    let jobs: Vec<_> = report.tasks.iter().map(|task| task.jobs).collect();
    assert_eq!(jobs, [10, 10, 9, 9]); // the last of the right one takes until 103
    let spread = |chain: usize| {
        let spread = report.chains[chain].response_ns.unwrap();
        (spread.min / MS, spread.max / MS)
    };
    // The first: head until 1, left until 3, which counts from 6 on, right until 2. The second, from 10 on: right from 11 until 23.
    assert_eq!(report.chains[0].name, "to-left");
    assert_eq!((spread(0), spread(1)), ((7, 14), (7, 14)));
    assert_eq!(report.chains[1].age_ns, report.chains[1].response_ns);
}
