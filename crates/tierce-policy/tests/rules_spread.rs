//! Spread nodes: what tasks that move between the CPUs of a node receive, by policy.
//!
//! Rules
//!   1. Tasks of equal weight that always want a CPU receive equal CPU time, whatever their number.
//!   2. Tasks of different weights receive CPU time by weight, but none more than one CPU.
//!   3. A task that moves does not gain by it.
//!   4. What a task is ahead or behind when it arrives on a CPU is limited.
//!   5. Nobody starves, whatever the others' patterns of sleeping and waking.
//!   6. Of fixed priorities the largest run, on any CPU.
//!   7. fair, with a credit: a task that moves keeps what it is owed.

mod common;

use common::{Dice, Leaf, World, MS, US};
use tierce_policy::{Cpus, NEVER};

/// Values of `order` of a fair node.
const START_TAG: u64 = 0;
const EEVDF: u64 = 1;
const STRIDE: u64 = 2;

/// Policies that share by weight, with node parameters.
const BY_WEIGHT: [(&str, [u64; 4]); 3] =
    [("fair", [3 * MS, START_TAG, 0, 0]), ("fair", [3 * MS, EEVDF, 0, 0]), ("fair", [3 * MS, STRIDE, 0, 0])];
const WITH_CREDIT: (&str, [u64; 4]) = ("fair", [3 * MS, START_TAG, 0, 12 * MS]);
/// Policies that share equally among equals.
const IN_TURN: [(&str, [u64; 4]); 2] =
    [("round-robin", [3 * MS, 0, 0, 0]), ("time-sharing", [10 * MS, 0, 0, 0])];

/// Parameters of an edge with this weight, where the policy has one.
fn edge(policy: &str, weight: u64) -> [u64; 4] {
    match policy {
        "fair" => [weight, 0, 0, 0],
        "time-sharing" => [8, 2, 0, 0],
        _ => [0; 4],
    }
}

/// What tasks of these weights that always want a CPU should receive of `cpus` CPUs, in 1/1000 of a CPU: by weight, none more
/// than one.
fn ideal(cpus: u64, weights: &[u64]) -> Vec<u64> {
    let mut full = vec![false; weights.len()];
    loop {
        let left = cpus.saturating_sub(full.iter().filter(|full| **full).count() as u64);
        let sum: u64 = weights.iter().zip(&full).filter(|(_, full)| !**full).map(|(weight, _)| weight).sum();
        let over = (0..weights.len()).find(|&i| !full[i] && weights[i] * left >= sum);
        match over {
            Some(i) if sum > 0 => full[i] = true,
            _ => {
                let share = |i: usize| if full[i] { 1000 } else { 1000 * left * weights[i] / sum };
                return (0..weights.len()).map(share).collect();
            }
        }
    }
}

/// What tasks that always want a CPU receive in 10 s, in 1/1000 of a CPU, and how often they moved.
fn received(cpus: u32, (policy, params): (&str, [u64; 4]), weights: &[u64]) -> (Vec<u64>, u32) {
    let (mut world, replicas) = World::spread(cpus, policy, params);
    let hogs: Vec<Leaf> = weights
        .iter()
        .map(|weight| world.spread_task(replicas[0], u64::MAX, edge(policy, *weight)))
        .collect();
    for hog in &hogs {
        world.wake(hog.task);
    }
    world.run(10_000 * MS);
    let moves = hogs.iter().map(|hog| world.graph.node(hog.task).migrations).sum();
    (hogs.iter().map(|hog| world.supply(hog.edge) / (10 * MS)).collect(), moves)
}

/// Does each receive what it should, up to this many parts of 100 of it?
fn received_as_ideal(cpus: u32, of: (&str, [u64; 4]), weights: &[u64], within: u64) -> bool {
    let (got, moves) = received(cpus, of, weights);
    let want = ideal(cpus.into(), weights);
    println!("{} {:?}, {cpus} CPUs, weights {weights:?}: {got:?} of {want:?}, {moves} moves", of.0, of.1);
    got.iter().zip(&want).all(|(got, want)| got.abs_diff(*want) * 100 <= *want * within)
}

#[test]
fn rule_1_equal_tasks_receive_equal_time() {
    let mut ok = true;
    for of in BY_WEIGHT.into_iter().chain(IN_TURN) {
        // Turns are compared, not CPU time: who comes to a CPU may get a turn more or less there than who goes.
        let within = if of.0 == "round-robin" { 11 } else { 2 };
        for (cpus, count) in [(2, 2), (2, 3), (2, 5), (4, 5), (4, 6), (4, 7), (4, 11), (3, 4)] {
            ok &= received_as_ideal(cpus, of, &vec![100; count], within);
        }
    }
    assert!(ok);
}

#[test]
fn rule_2_tasks_receive_time_by_weight() {
    let mut ok = true;
    for of in BY_WEIGHT {
        for (cpus, weights) in [
            (4, &[100, 200, 300][..]),
            (2, &[100, 200, 300]),
            (2, &[100, 100, 200]),
            (2, &[100, 200, 300, 400]),
            (4, &[100, 200, 300, 100, 200, 300]),
            (2, &[1000, 100, 100]),
            (2, &[50, 60, 70, 80, 90]),
            (3, &[100, 200, 300, 400, 500, 600, 700]),
        ] {
            let within = if weights.len() > 6 { 5 } else { 2 };
            ok &= received_as_ideal(cpus, of, weights, within);
        }
    }
    assert!(ok);
}

/// Whatever the port does with a task, it is not served more than its weight is worth: here it is moved back and forth,
/// waiting or asleep, as often as possible, among tasks that stay.
#[test]
fn rule_3_a_task_that_moves_does_not_gain() {
    for of in BY_WEIGHT.into_iter().chain([WITH_CREDIT]) {
        for seed in 1..=3 {
            let mut dice = Dice::new(seed);
            let (mut world, replicas) = World::spread(2, of.0, of.1);
            // Two bound tasks on each CPU, and one that goes to and fro.
            let bound: Vec<Leaf> =
                (0..4).map(|i| world.spread_task(replicas[i % 2], 1 << (i % 2), edge(of.0, 100))).collect();
            let mover = world.spread_task(replicas[0], NEVER, edge(of.0, 100));
            for leaf in bound.iter().chain([&mover]) {
                world.wake(leaf.task);
            }
            while world.now < 10_000 * MS {
                let to = world.now + dice.within(100, 5_000) * US;
                world.run(to);
                if dice.below(4) == 0 {
                    world.sleep(mover.task);
                    let to = world.now + dice.within(1, 50) * US;
                    world.run(to);
                    world.wake(mover.task);
                }
                let other = 1 - world.graph.node(mover.task).domain;
                if world.graph.home(mover.task, other, world.now).is_ok() {
                    world.graph.offer(mover.task);
                }
                world.rest();
            }
            let got: Vec<u64> = bound.iter().map(|leaf| world.supply(leaf.edge) / (10 * MS)).collect();
            let moved = world.supply(mover.edge) / (10 * MS);
            println!("{of:?}: {got:?}, the mover {moved}");
            assert!(moved <= 410, "of 5 tasks on 2 CPUs it has 400 at most");
            assert!(got.iter().all(|got| *got >= 390), "nobody pays for it");
        }
    }
}

/// A task that was away for long comes back without a claim; one that served alone for long is not kept waiting for it.
#[test]
fn rule_4_what_a_task_brings_along_is_limited() {
    for of in BY_WEIGHT {
        let (mut world, replicas) = World::spread(2, of.0, of.1);
        let stays = world.spread_task(replicas[0], 1, edge(of.0, 100));
        let alone = world.spread_task(replicas[1], 2, edge(of.0, 100));
        let comes = world.spread_task(replicas[1], NEVER, edge(of.0, 100));
        world.wake(stays.task);
        world.wake(alone.task);
        world.run(5_000 * MS);
        // `comes` has slept for 5 s.
        world.graph.home(comes.task, 0, world.now).unwrap();
        world.graph.request(comes.task, world.now);
        world.graph.allow(comes.task, Cpus::from(1), world.now).unwrap();
        world.rest();
        let (begin, before) = (world.now, world.supply(stays.edge));
        world.run(begin + 1_000 * MS);
        let (late, new) = (world.supply(stays.edge) - before, world.supply(comes.edge));
        println!("{of:?}: who stays has {late} ns of the second, who came {new} ns");
        assert!(late.abs_diff(new) <= 60 * MS, "at most what FAIR_DRIFT quanta are worth");
    }
}

/// Tasks that compute for a while and sleep for a while, beside those that always want a CPU, in random patterns. Each receives
/// what is left of its share, in every second.
#[test]
fn rule_5_nobody_starves() {
    for of in BY_WEIGHT.into_iter().chain(IN_TURN) {
        for seed in 1..=4 {
            let mut dice = Dice::new(seed);
            let cpus = dice.within(2, 4) as u32;
            let (mut world, replicas) = World::spread(cpus, of.0, of.1);
            let count = cpus as u64 + dice.within(1, 6);
            let leaf = |world: &mut World| world.spread_task(replicas[0], NEVER, edge(of.0, 100));
            let hogs: Vec<Leaf> = (0..count).map(|_| leaf(&mut world)).collect();
            let sleepers: Vec<Leaf> = (0..dice.within(1, 8)).map(|_| leaf(&mut world)).collect();
            for hog in &hogs {
                world.wake(hog.task);
            }
            let all = count + sleepers.len() as u64;
            let least = 1_000 * u64::from(cpus) / all / 2;
            for second in 1..=5 {
                let before: Vec<u64> = hogs.iter().map(|hog| world.supply(hog.edge)).collect();
                while world.now < second * 1_000 * MS {
                    let sleeper = sleepers[dice.below(sleepers.len() as u64) as usize].task;
                    if world.graph.node(sleeper).servable == 0 {
                        world.wake(sleeper);
                    } else if (0..cpus).any(|cpu| world.graph.cpu(cpu).task == sleeper) {
                        world.sleep(sleeper);
                    }
                    let to = world.now + dice.within(50, 4_000) * US;
                    world.run(to);
                }
                for (hog, before) in hogs.iter().zip(before) {
                    let got = (world.supply(hog.edge) - before) / MS;
                    assert!(
                        got >= least,
                        "{of:?}, seed {seed}, {cpus} CPUs, second {second}: {got} ms of {least}"
                    );
                }
            }
        }
    }
}

#[test]
fn rule_6_the_largest_priorities_run() {
    for seed in 1..=10 {
        let mut dice = Dice::new(seed);
        let cpus = dice.within(2, 4) as u32;
        let (mut world, replicas) = World::spread(cpus, "fixed-priority", [0; 4]);
        let tasks: Vec<(Leaf, u64)> = (0..10)
            .map(|i| {
                let priority = 10 + (i * 7) % 10;
                (
                    world.spread_task(replicas[i as usize % cpus as usize], NEVER, [priority, 0, 0, 0]),
                    priority,
                )
            })
            .collect();
        for _ in 0..60 {
            let (leaf, _) = tasks[dice.below(10) as usize];
            if world.graph.node(leaf.task).servable == 0 {
                world.wake(leaf.task);
            } else {
                world.sleep(leaf.task);
            }
            // Each CPU where tasks wait looks every 10 ms whether one is better off elsewhere.
            let to = world.now + 100 * MS;
            world.run(to);
            let mut wanted: Vec<u64> = tasks
                .iter()
                .filter(|(leaf, _)| world.graph.node(leaf.task).servable != 0)
                .map(|(_, priority)| *priority)
                .collect();
            wanted.sort_unstable_by(|a, b| b.cmp(a));
            wanted.truncate(cpus as usize);
            let mut run: Vec<u64> = (0..cpus)
                .filter_map(|cpu| tasks.iter().find(|(leaf, _)| leaf.task == world.graph.cpu(cpu).task))
                .map(|(_, priority)| *priority)
                .collect();
            run.sort_unstable_by(|a, b| b.cmp(a));
            assert_eq!(run, wanted, "at {}", world.now);
        }
    }
}

/// A task that uses little is served within a quantum when it wakes, also after it has moved to a CPU where virtual time is
/// behind, and where others are owed their credit, too.
#[test]
fn rule_7_a_task_keeps_its_credit_when_it_moves() {
    let (mut world, replicas) = World::spread(2, WITH_CREDIT.0, WITH_CREDIT.1);
    let hogs = [(0, 1), (1, 2), (1, 2), (1, 2)]
        .map(|(cpu, allowed)| world.spread_task(replicas[cpu], allowed, edge("fair", 100)));
    let light = world.spread_task(replicas[0], 3, edge("fair", 100));
    world.wake_all(&hogs);
    let mut longest = 0;
    for turn in 0..200 {
        if turn == 100 {
            world.graph.home(light.task, 1, world.now).unwrap();
            world.graph.allow(light.task, Cpus::from(2), world.now).unwrap();
            world.rest();
        }
        let (begin, before) = (world.now, world.supply(light.edge));
        world.wake(light.task);
        while world.supply(light.edge) < before + 50 * US {
            world.run(world.now + 50 * US);
            assert!(world.now < begin + 1_000 * MS, "turn {turn}: it is not served");
        }
        longest = longest.max(world.now - begin);
        world.sleep(light.task);
        world.run(begin.max(world.now) + 10 * MS);
    }
    println!("it was served after at most {longest} ns");
    assert!(longest <= 4 * MS);
}
