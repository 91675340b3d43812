//! The numbered rules of policy/i_plus_pi.c.

mod common;

use common::{Rounds, MS, US};

/// Set point 6 ms, bursts of 0.2 to 20 ms, all children of kind 0.
fn i_plus_pi(children: &[(&str, u64, u64)]) -> Rounds {
    Rounds::new("i-plus-pi", [6000, 2000, 200, 20_000], children)
}

fn abc() -> Rounds {
    i_plus_pi(&[("a", 100, 0), ("b", 100, 0), ("c", 100, 0)])
}

/// b_i of a child, ns.
fn burst(r: &Rounds, child: usize) -> u64 {
    r.world.edge(r.leaves[child]).policy[2]
}

#[test]
fn i_plus_pi_example() {
    let mut r = abc();
    r.wake(&[0, 1, 2]).run(12_000 - 1);
    r.world.overrun(13 * MS);
    assert_eq!(r.world.schedule(), "0 a, 2 b, 4 c, 6 a, 8 b, 10 c, 13 a");
    // 7 ms and a correction of -0.9: parts of 2.033 ms, a quarter of what is missing to each
    r.run(17_500);
    assert_eq!(r.state().correction_ns / US as i64, -900);
    assert_eq!([0, 1, 2].map(|child| burst(&r, child) / US), [2008, 2008, 1758]);
    r.sleep(2).run(18_001);
    // the pool has changed: 3 ms for each of two
    r.run(30_000);
    assert_eq!((burst(&r, 0), burst(&r, 1)), (3 * MS, 3 * MS));
}

#[test]
fn i_plus_pi_rule_1_one_burst_for_each_in_the_order_of_the_round_before() {
    let mut r = i_plus_pi(&[("a", 100, 0), ("b", 200, 0), ("c", 300, 0)]);
    r.wake(&[1, 0, 2]).run(12_000);
    assert_eq!(r.world.schedule(), "0 b, 2 a, 3 c, 6 b, 8 a, 9 c, 12 b");

    // limits: no burst is shorter, none longer
    let mut r = Rounds::new("i-plus-pi", [6000, 2000, 1000, 3000], &[("a", 1, 0), ("b", 1000, 0)]);
    r.wake(&[0, 1]).run(8000);
    assert_eq!(r.world.schedule(), "0 a, 1 b, 4 a, 5 b, 8 a");
}

#[test]
fn i_plus_pi_rule_2_who_blocks_gives_up_its_rest() {
    let mut r = abc();
    r.wake(&[0, 1, 2]).run(500).sleep(0).run(1000).wake(&[0]).run(5000);
    // b and c, and a comes with the next round
    r.run(10_501);
    assert_eq!(r.world.schedule(), "0 a, 0.5 b, 2.5 c, 4.5 a, 6.5 b, 8.5 c, 10.5 a");

    // nobody wants the CPU: that is now
    let mut r = abc();
    r.wake(&[0]).run(1000).sleep(0).run(1500).wake(&[1, 0]).run(7501);
    assert_eq!(r.world.schedule(), "0 a, 1 idle, 1.5 b, 4.5 a, 7.5 b");
}

#[test]
fn i_plus_pi_rule_3_a_changed_pool_begins_anew() {
    // an overrun, and while it would be paid for, one goes, one comes, one changes
    for change in 0..4 {
        let mut r = abc();
        r.wake(&[0, 1, 2]).run(1999);
        r.world.overrun(4 * MS);
        r.run(4500);
        let expected = match change {
            0 => {
                r.sleep(2);
                [3 * MS, 3 * MS, 0]
            }
            1 => {
                r.sleep(1).wake(&[1]);
                [2 * MS; 3]
            }
            2 => {
                let leaf = r.leaves[0];
                r.world.graph.set(leaf.edge, [400, 0, 0, 0], r.world.now).unwrap();
                r.world.rest();
                [4 * MS, MS, MS]
            }
            _ => {
                let slower = [12 * MS, 2 * MS, 200 * US, 20 * MS, 262_144, 943_718, 922_747, 0];
                r.world.graph.node_set(r.node, slower, r.world.now).unwrap();
                r.world.rest();
                [4 * MS; 3]
            }
        };
        let round = r.world.graph.node(r.node).clock;
        while r.world.graph.node(r.node).clock == round {
            let next = r.world.now / US + 100;
            r.run(next);
        }
        assert_eq!((r.state().correction_ns, r.state().error_ns), (0, 0), "{change}");
        let next = r.world.now / US + r.state().set_ns / US - 200;
        r.run(next);
        let bursts = [0, 1, 2].map(|child| if expected[child] == 0 { 0 } else { burst(&r, child) });
        assert_eq!(bursts, expected, "{change}");
    }
}

#[test]
fn i_plus_pi_rule_4_no_correction_grows_while_all_are_full() {
    let mut r = Rounds::new("i-plus-pi", [9000, 2000, 200, 4000], &[("a", 100, 0), ("b", 100, 0)]);
    r.wake(&[0, 1]);
    for round in 1..50 {
        r.run(8000 * round + 1);
        assert_eq!(r.state().correction_ns, 0, "{round}");
    }
    // where one is not full it grows until the other has what is missing
    let mut r = Rounds::new("i-plus-pi", [9000, 2000, 200, 4000], &[("a", 300, 0), ("b", 100, 0)]);
    r.wake(&[0, 1]).run(1_000_000);
    assert!(r.state().correction_ns > MS as i64);
    assert_eq!(burst(&r, 0), 4 * MS);
}

#[test]
fn i_plus_pi_rule_5_a_lost_cpu_costs_no_burst() {
    let mut r = abc();
    r.wake(&[0, 1, 2]).run(3000);
    r.world.wake(r.urgent.task);
    r.run(5000);
    r.world.sleep(r.urgent.task);
    r.run(8001);
    assert_eq!(r.world.schedule(), "0 a, 2 b, 3 urgent, 5 b, 6 c, 8 a");

    // alone: no timer; rounds of 6 ms from 0 on, and who comes waits for the rest of the one under way
    let mut r = abc();
    r.wake(&[0]);
    assert_eq!(r.world.graph.until(0), tierce_policy::NEVER);
    r.run(6_004_000).wake(&[1]).run(6_009_001);
    assert_eq!(r.world.schedule(), "0 a, 6006 b, 6009 a");
}
