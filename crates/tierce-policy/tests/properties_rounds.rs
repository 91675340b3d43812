//! What holds of rounds whatever the children do: numbers stay in their ranges, rounds are the sum of what was used, a
//! disturbance is gone two rounds later, and who wakes waits no longer than its kind of wake says.

mod common;

use common::{Dice, Rounds, MS, US};
use tierce_policy::policies;

const KINDS: [&str; 3] = ["immediate", "after-burst", "end-of-round"];

/// Values over the whole range of a parameter, its ends more often than others.
fn any(dice: &mut Dice, least: u64, most: u64) -> u64 {
    match dice.below(4) {
        0 => least,
        1 => most,
        2 => least + (dice.below(1 << 30) * (1 << 10)) % (most - least + 1),
        _ => least + dice.below(1000).min(most - least),
    }
}

#[test]
fn no_number_leaves_its_range() {
    let mut dice = Dice::new(8);
    for round in 0..30 {
        let policy = if round % 2 == 0 { "multiburst" } else { "i-plus-pi" };
        let record = policies().iter().find(|record| record.name == policy).unwrap();
        let names = ["a", "b", "c", "d", "e"];
        let children: Vec<_> =
            names.iter().map(|name| (*name, any(&mut dice, 1, 10_000), dice.below(3))).collect();
        let mut r = Rounds::new(policy, [0, 4000, 200, 20_000], &children);
        for _ in 0..300 {
            let child = dice.below(5) as usize;
            match dice.below(8) {
                0 | 1 => drop(r.wake(&[child])),
                2 => drop(r.sleep(child)),
                3 => {
                    let mut params = [0; 8];
                    for (value, param) in params.iter_mut().zip(&record.node_params) {
                        *value = any(&mut dice, param.least, param.most);
                    }
                    r.world.graph.node_set(r.node, params, r.world.now).unwrap();
                    r.world.rest();
                }
                4 => {
                    let params = [any(&mut dice, 1, 10_000), 0, 0, 0];
                    r.world.graph.set(r.leaves[child].edge, params, r.world.now).unwrap();
                    r.world.rest();
                }
                5 => {
                    // timers that do not come for up to days
                    let most = [MS, 1000 * MS, 1 << 40, 1 << 50][dice.below(4) as usize];
                    let to = r.world.now + any(&mut dice, 1, most);
                    r.world.overrun(to);
                }
                _ => {
                    for _ in 0..8 {
                        let armed = r.world.graph.until(0);
                        let to = armed.min(r.world.now + (1 << 34));
                        r.world.run(to);
                    }
                }
            }
            let limits = r.world.graph.node(r.node).params();
            let state = r.state();
            assert!(
                state.used_ns.unsigned_abs() <= 1 << 48 && (0..=1 << 48).contains(&state.target_ns),
                "{state:?}"
            );
            assert!(state.correction_ns.abs() <= 1 << 50 && state.error_ns.abs() <= 1 << 50, "{state:?}");
            assert!((1..=1 << 28).contains(&state.scale) || state.scale == 0, "{state:?}");
            for leaf in &r.leaves {
                let [_, _, burst, left, ..] = r.world.edge(*leaf).policy;
                assert!(
                    burst <= 10_000_000_000 && (left as i64).abs() <= 1 << 50,
                    "{limits:?}: {burst} {left}"
                );
            }
        }
    }
}

#[test]
fn a_round_is_what_its_children_used() {
    let mut dice = Dice::new(9);
    for case in 0..100 {
        let policy = if case % 2 == 0 { "multiburst" } else { "i-plus-pi" };
        let set_us = dice.within(2000, 20_000);
        let children =
            [("a", dice.within(1, 500), 2), ("b", dice.within(1, 500), 2), ("c", 100, dice.below(3))];
        let mut r = Rounds::new(policy, [set_us, 4000, 200, 20_000], &children);
        r.wake(&[0, 1]); // always busy
        let sum = |r: &Rounds| r.leaves.iter().map(|leaf| r.world.supply(leaf.edge)).sum::<u64>();
        let (mut round, mut begin, mut seen) = (r.world.graph.node(r.node).clock, 0, 0);
        for step in 0..400 {
            match (step % 2, dice.below(3)) {
                (0, 0) => drop(r.wake(&[2])),
                (0, 1) => drop(r.sleep(2)),
                (0, _) => {}
                _ => {
                    // to the next timer or less far, so that no round goes by unseen
                    let to = r.world.graph.until(0).min(r.world.now + dice.within(1, 3000) * US);
                    r.world.run(to);
                }
            }
            let clock = r.world.graph.node(r.node).clock;
            if clock != round {
                assert_eq!(clock, round + 1);
                (round, begin, seen) = (clock, sum(&r), seen + 1);
            }
            assert_eq!(r.state().used_ns as u64, sum(&r) - begin, "case {case}, round {round}");
        }
        assert!(seen > 10, "{seen} rounds");
    }
}

#[test]
fn a_disturbance_is_gone_two_rounds_later() {
    let mut dice = Dice::new(10);
    for case in 0..200 {
        let set_us = dice.within(6000, 30_000);
        let children: Vec<_> = ["a", "b", "c"].iter().map(|name| (*name, dice.within(100, 300), 2)).collect();
        let mut r = Rounds::new("multiburst", [set_us, 4000, 20, 1_000_000], &children);
        r.wake(&[0, 1, 2]).run(3 * set_us + 1);
        // one burst cannot be ended in time
        let late_ns = dice.within(1, set_us * US / 3);
        let end = r.world.graph.until(0);
        r.world.overrun(end + late_ns);
        let mut lengths = vec![];
        let (mut round, mut last) = (r.world.graph.node(r.node).clock, 0);
        while lengths.len() < 6 {
            let to = r.world.graph.until(0);
            last = last.max(r.state().used_ns + (to - r.world.now) as i64);
            r.world.run(to);
            if r.world.graph.node(r.node).clock != round {
                lengths.push(last - (set_us * US) as i64);
                (round, last) = (round + 1, 0);
            }
        }
        let late = late_ns as i64;
        let near = |off: i64, expected: i64| (off - expected).abs() <= 20;
        // too long, too short by as much, and then right
        let all =
            near(lengths[0], late) && near(lengths[1], -late) && lengths[2..].iter().all(|off| near(*off, 0));
        assert!(all, "case {case}: {late_ns} late, rounds off by {lengths:?}");
    }
}

/// Table 3.1, on random loads: a few busy children and some that wake for less than a burst, all of one kind.
#[test]
fn delays_after_a_wake_up_are_bounded_by_the_kind_of_wake() {
    let mut dice = Dice::new(11);
    for kind in 0..3_u64 {
        let mut measured = 0;
        for case in 0..60 {
            let (busy, wakers) = (dice.within(1, 4) as usize, dice.within(1, 3) as usize);
            let set_us = dice.within(3000, 12_000);
            let names = ["a", "b", "c", "d", "e", "f", "g"];
            let all: Vec<_> = (0..busy + wakers)
                .map(|at| (names[at], dice.within(50, 200), if at < busy { 2 } else { kind }))
                .collect();
            let largest_us = 3000;
            let mut r = Rounds::new("multiburst", [set_us, 4000, 100, largest_us], &all);
            r.wake(&(0..busy).collect::<Vec<_>>());
            let mut woke: Vec<Option<(u64, usize, bool)>> = vec![None; wakers];
            for _ in 0..150 {
                let next = r.world.now + dice.within(1, 900) * US;
                // on the way, look who runs after each timer
                while r.world.now < next {
                    let to = r.world.graph.until(0).min(next);
                    r.world.run(to);
                    settle(&mut r, busy, &mut woke, (kind, largest_us, set_us, &mut measured, case));
                }
                let one = dice.below(wakers as u64) as usize;
                if woke[one].is_none() {
                    let edge = r.world.edge(r.leaves[busy + one]);
                    let fresh =
                        edge.policy[1] != r.world.graph.node(r.node).clock || edge.policy[3] as i64 > 0;
                    let before = woke.iter().filter(|waker| waker.is_some()).count();
                    woke[one] = Some((r.world.now, before, fresh));
                    r.wake(&[busy + one]);
                    settle(&mut r, busy, &mut woke, (kind, largest_us, set_us, &mut measured, case));
                }
            }
        }
        assert!(measured > 500, "{}: {measured} wake-ups", KINDS[kind as usize]);
    }
}

/// A waker that runs has waited no longer than it may; it sleeps again after 50 us.
fn settle(
    r: &mut Rounds,
    busy: usize,
    woke: &mut [Option<(u64, usize, bool)>],
    (kind, largest_us, set_us, measured, case): (u64, u64, u64, &mut u64, u32),
) {
    while let Some(one) = (0..woke.len()).find(|at| r.world.graph.cpu(0).task == r.leaves[busy + at].task) {
        let Some((at, before, fresh)) = woke[one].take() else { break };
        let delay = r.world.now - at;
        // those before it run for at most 50 us each, then sleep
        let most = match kind {
            0 => before as u64 * 50 * US,
            1 => largest_us * US + before as u64 * 50 * US,
            // bursts may be lengthened to the least one
            _ => set_us * US + (busy + woke.len()) as u64 * 100 * US,
        };
        if fresh {
            assert!(delay <= most, "{}, case {case}: waited {delay}, at most {most}", KINDS[kind as usize]);
            *measured += 1;
        }
        let to = r.world.now + 50 * US;
        r.world.run(to);
        if r.world.graph.cpu(0).task == r.leaves[busy + one].task {
            r.sleep(one + busy);
        } else {
            r.world.sleep(r.leaves[busy + one].task);
        }
    }
}
