//! The numbered rules of policy/constraint.c.

mod common;

use common::{budget, Dice, Leaf, World, MS, NONE};
use tierce_policy::{Cpus, Error, TASK};

/// A node with a quantum of 3 ms that is sure of so many ms in every 10, on a CPU of its own.
fn constraint(budget_ms: u64) -> (World, u32) {
    World::one("constraint", [3 * MS, budget_ms * MS, 10 * MS])
}

/// The same below a task that can take the CPU from it.
fn below_urgent(budget_ms: u64) -> (World, u32, Leaf) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("constraint", [3 * MS, budget_ms * MS, 10 * MS]);
    w.under(top, node, NONE);
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    (w, node, urgent)
}

/// Three that always want the CPU.
fn abc(w: &mut World, node: u32) -> [Leaf; 3] {
    let leaves = ["a", "b", "c"].map(|name| w.task(node, name, NONE));
    w.wake_all(&leaves);
    leaves
}

/// So much work until then, ms: "" for yes, else why not.
fn asks(w: &mut World, leaf: Leaf, work_ms: u64, deadline_ms: u64) -> &'static str {
    let answer = w.graph.constrain(leaf.task, work_ms * MS, deadline_ms * MS, w.now);
    w.rest();
    answer.map_or_else(Error::name, |()| "")
}

fn ends(w: &mut World, leaf: Leaf) -> &'static str {
    let answer = w.graph.unconstrain(leaf.task, w.now);
    w.rest();
    answer.map_or_else(Error::name, |()| "")
}

#[test]
fn constraint_example() {
    let (mut w, top) = constraint(4);
    let [a, b, c] = abc(&mut w, top);
    assert_eq!(asks(&mut w, a, 5, 36), "");
    assert_eq!(asks(&mut w, b, 8, 36), "constraint_not_feasible");
    assert_eq!(asks(&mut w, b, 3, 26), "");
    assert_eq!(asks(&mut w, c, 5, 50), "");
    w.run(24 * MS);
    assert_eq!(w.schedule(), "0 b, 3 a, 8 c, 13 b, 16 a, 19 c, 22 b");
}

#[test]
fn constraint_rule_1_earliest_deadline_before_turns() {
    let (mut w, top) = constraint(10);
    let [a, b, c] = abc(&mut w, top);
    w.run(MS);
    // from here on c, then b, then a with what is left of its turn
    assert_eq!((asks(&mut w, b, 2, 20), asks(&mut w, c, 2, 10)), ("", ""));
    w.run(9 * MS);
    assert_eq!(w.schedule(), "0 a, 1 c, 3 b, 5 a, 7 c");
    // equal deadlines: c, which runs, goes on; of those that wait the lower id is first
    assert_eq!((asks(&mut w, c, 1, 30), asks(&mut w, b, 1, 30), asks(&mut w, a, 1, 30)), ("", "", ""));
    w.run(13 * MS);
    assert_eq!(w.schedule(), "0 a, 1 c, 3 b, 5 a, 7 c, 10 a, 11 b, 12 c");
    // a newcomer does not shorten what is under way
    assert_eq!(asks(&mut w, a, 9, 40), "");
    w.sleep(b.task);
    w.wake(b.task);
    w.run(22 * MS);
    assert_eq!(w.runs(0), "c");
}

#[test]
fn constraint_rule_2_all_that_is_due_by_its_deadline_or_later() {
    let (mut w, top) = constraint(4);
    let [a, b, c] = abc(&mut w, top);
    // sure: 8 until 26, 12 until 36
    assert_eq!(asks(&mut w, a, 12, 36), "");
    assert_eq!(asks(&mut w, b, 1, 26), "constraint_not_feasible"); // fits until 26, but then a does not
    assert_eq!(asks(&mut w, b, 1, 36), "constraint_not_feasible");
    assert_eq!(asks(&mut w, b, 4, 46), "");
    assert_eq!(asks(&mut w, c, 1, 46), "constraint_not_feasible");
    assert_eq!(ends(&mut w, a), "");
    assert_eq!(asks(&mut w, c, 9, 26), "constraint_not_feasible");
    assert_eq!(asks(&mut w, c, 8, 26), "");
    // a nanosecond decides
    let (mut w, top) = constraint(4);
    let a = w.task(top, "a", NONE);
    w.wake(a.task);
    let mut fits = |deadline_ns| w.graph.constrain(a.task, MS, deadline_ns, 0).is_ok();
    assert!(!fits(13 * MS - 1) && fits(13 * MS));
}

#[test]
fn constraint_rule_3_what_is_sure() {
    let (mut w, top) = constraint(4);
    let [a, b, _] = abc(&mut w, top);
    // after 3 ms of 16 the node has 9 of the 12 before it that it is sure of until 36
    assert_eq!(asks(&mut w, a, 12, 36), "");
    w.run(3 * MS);
    assert_eq!(asks(&mut w, b, 4, 46), "");
    assert_eq!((ends(&mut w, a), ends(&mut w, b)), ("", ""));
    assert_eq!(asks(&mut w, a, 12, 36), "constraint_not_feasible"); // anew at 3: 9 until 36
    assert_eq!(asks(&mut w, a, 9, 36), "");
    // what it received in between was not sure, and is not held against it: from 20 on 8 are sure until 46
    w.run(20 * MS);
    assert_eq!(asks(&mut w, b, 9, 46), "constraint_not_feasible");
    assert_eq!(asks(&mut w, b, 8, 46), "");

    // with a time constraint that stays, the node received far more than was sure: a later one counts from now
    let (mut w, node, urgent) = below_urgent(4);
    let [a, b, c] = abc(&mut w, node);
    assert_eq!(asks(&mut w, a, 30, 100), "");
    w.run(20 * MS);
    assert_eq!(asks(&mut w, b, 9, 46), "constraint_not_feasible");
    assert_eq!(asks(&mut w, b, 8, 46), "");
    // and the next from there: nothing of the 12 that were sure until 56 is received by 32, where only 6 would be
    w.wake(urgent.task);
    w.run(32 * MS);
    assert_eq!(asks(&mut w, c, 5, 56), "constraint_not_feasible");
    assert_eq!(asks(&mut w, c, 4, 56), "");

    // a node above holds back up to a floor
    let sure_ns = |floor_ns| {
        let mut w = World::new(1);
        let (top, node) = (w.node("reservation", NONE), w.node("constraint", [3 * MS, 4 * MS, 10 * MS]));
        w.graph.set_floor_ns(floor_ns);
        w.graph.root(0, top, 0).unwrap();
        w.under(top, node, budget(4 * MS, 10 * MS));
        let a = w.task(node, "a", NONE);
        w.wake(a.task);
        (1..=10_000)
            .rev()
            .map(|part| part * 500)
            .find(|&ns| w.graph.constrain(a.task, ns, 16 * MS, 0).is_ok())
    };
    assert_eq!((sure_ns(0), sure_ns(2_000)), (Some(4 * MS), Some(4 * MS - 2_000)));
}

#[test]
fn constraint_rule_4_four_ends() {
    let (mut w, top) = constraint(10);
    let [_, b, c] = abc(&mut w, top);
    // work used up: to the end of the order
    assert_eq!(asks(&mut w, b, 2, 20), "");
    w.run(2 * MS);
    assert_eq!((ends(&mut w, b), w.runs(0)), ("no_constraint", "a"));
    // the child says so
    assert_eq!(asks(&mut w, b, 5, 20), "");
    w.run(3 * MS);
    assert_eq!(w.runs(0), "b");
    assert_eq!((ends(&mut w, b), w.runs(0)), ("", "a"));
    assert_eq!(ends(&mut w, b), "no_constraint");
    // it yields
    assert_eq!(asks(&mut w, b, 5, 20), "");
    w.yields(b.task);
    assert_eq!((ends(&mut w, b), w.runs(0)), ("no_constraint", "a"));
    // it blocks, and is back
    assert_eq!(asks(&mut w, b, 5, 20), "");
    w.sleep(b.task);
    assert_eq!(ends(&mut w, b), "no_constraint");
    w.wake(b.task);
    assert_eq!((ends(&mut w, b), w.runs(0)), ("no_constraint", "a"));
    // detached, which forgets its event
    assert_eq!(asks(&mut w, c, 5, 20), "");
    let _ = w.graph.detach(c.edge, w.now);
    w.rest();
    let _ = w.graph.detach(c.edge, w.now);
    w.rest();
    assert_eq!(w.runs(0), "a");

    // the deadline is over: the node did not get what it said to be sure of
    let (mut w, node, urgent) = below_urgent(10);
    let [a, b, _] = abc(&mut w, node);
    assert_eq!(asks(&mut w, b, 9, 10), "");
    w.run(2 * MS);
    w.wake(urgent.task);
    w.run(12 * MS);
    assert_eq!(ends(&mut w, b), "no_constraint");
    w.sleep(urgent.task);
    w.run(14 * MS);
    assert_eq!(w.schedule(), "0 b, 2 urgent, 12 a");
    // one that runs over its deadline loses the CPU then
    assert_eq!(asks(&mut w, b, 6, 20), "");
    w.run(15 * MS);
    w.graph.outside(0, true, w.now);
    w.run(18 * MS);
    w.graph.outside(0, false, w.now);
    w.rest();
    w.run(20 * MS);
    assert_eq!((w.runs(0), w.supply(b.edge)), ("a", 5 * MS));
    // an event of one that is over ends no other
    assert_eq!(asks(&mut w, a, 1, 24), "");
    w.run(22 * MS);
    assert_eq!(asks(&mut w, a, 5, 40), "");
    w.run(27 * MS);
    assert_eq!((ends(&mut w, a), w.runs(0)), ("no_constraint", "c"));
}

/// Who blocks while it waits for the answer has what it asked for when it wakes up.
#[test]
fn constraint_rule_4_asked_for_while_asleep() {
    let (mut w, top) = constraint(4);
    let [a, b, c] = abc(&mut w, top);
    w.run(MS);
    w.sleep(a.task);
    assert_eq!(asks(&mut w, a, 40, 36), "constraint_not_feasible");
    assert_eq!((asks(&mut w, a, 5, 40), asks(&mut w, a, 1, 50)), ("", "constraint_already"));
    // it counts for others, who are sure of 12 until 37
    assert_eq!((asks(&mut w, b, 8, 40), asks(&mut w, b, 2, 45)), ("constraint_not_feasible", ""));
    w.run(2 * MS);
    w.wake(a.task);
    assert_eq!((w.graph.edge(a.edge).policy[0], w.runs(0)), (40 * MS, "a"));
    w.run(20 * MS);
    assert_eq!(w.edge(a).promise.promised_ns, 5 * MS);
    assert_eq!((w.edge(a).promise.windows, w.edge(a).promise.broken), (1, 0));
    assert_eq!(ends(&mut w, a), "no_constraint");

    // it wakes too late for it: it has turns, and the place is free
    w.sleep(a.task);
    assert_eq!(asks(&mut w, a, 4, 40), "");
    w.run(35 * MS);
    w.wake(a.task);
    assert_eq!(ends(&mut w, a), "no_constraint");
    assert_eq!(asks(&mut w, c, 4, 70), "");
    w.run(60 * MS);

    // it never wakes: until its deadline it counts, then no more
    w.sleep(a.task);
    assert_eq!(asks(&mut w, a, 8, 90), "");
    assert_eq!(asks(&mut w, b, 8, 90), "constraint_not_feasible");
    w.run(91 * MS);
    assert_eq!(asks(&mut w, b, 8, 121), "");
    w.wake(a.task);
    assert_eq!(ends(&mut w, a), "no_constraint");

    // and it may end it before it wakes
    let (mut w, top) = constraint(4);
    let [a, ..] = abc(&mut w, top);
    w.sleep(a.task);
    assert_eq!((asks(&mut w, a, 1, 40), ends(&mut w, a), ends(&mut w, a)), ("", "", "no_constraint"));
    w.wake(a.task);
    assert_eq!(ends(&mut w, a), "no_constraint");
}

#[test]
fn constraint_rule_5_refusals() {
    let (mut w, top) = constraint(10);
    let leaves: Vec<_> = (0..10).map(|at| w.task(top, &format!("t{at}"), NONE)).collect();
    w.wake_all(&leaves[..9]);
    w.run(5 * MS);
    assert_eq!((asks(&mut w, leaves[9], 1, 50), ends(&mut w, leaves[9])), ("", ""));
    assert_eq!(ends(&mut w, leaves[9]), "no_constraint");
    for leaf in &leaves[1..9] {
        assert_eq!(asks(&mut w, *leaf, 1, 50), "");
    }
    assert_eq!(asks(&mut w, leaves[0], 1, 50), "too_many_constraints");
    assert_eq!(asks(&mut w, leaves[1], 1, 50), "constraint_already");
    assert_eq!(ends(&mut w, leaves[8]), "");
    for (work_ns, deadline_ns, why) in [
        (MS, 5 * MS, "constraint_in_the_past"),
        (MS, 4 * MS, "constraint_in_the_past"),
        (MS, 0, "constraint_in_the_past"),
        (0, 50 * MS, "parameter_out_of_range"),
        (3_600_000 * MS + 1, 50 * MS, "parameter_out_of_range"),
        (u64::MAX, 50 * MS, "parameter_out_of_range"),
        (MS, 3_600_005 * MS + 1, "parameter_out_of_range"),
        (MS, u64::MAX, "parameter_out_of_range"),
        (2 * MS, 6 * MS, "constraint_not_feasible"),
    ] {
        let error = w.graph.constrain(leaves[0].task, work_ns, deadline_ns, w.now).unwrap_err();
        assert_eq!(error.name(), why, "{work_ns} until {deadline_ns}");
    }
    assert_eq!(asks(&mut w, leaves[0], 1, 3_600_005), "");
    // a place is free again when another's deadline is over
    w.sleep(leaves[1].task);
    assert_eq!(asks(&mut w, leaves[8], 1, 60), "");
    // other policies understand nothing
    let (mut w, top) = World::one("round-robin", [MS]);
    let a = w.task(top, "a", NONE);
    w.wake(a.task);
    assert_eq!((asks(&mut w, a, 1, 10), ends(&mut w, a)), ("not_understood", "not_understood"));
}

#[test]
fn constraint_rule_6_who_is_heard() {
    // the first parent that says yes has it; without one the first that understands says why
    let mut w = World::new(1);
    let top = w.node("fixed-priority", NONE);
    let other = w.node("round-robin", [MS]);
    let [first, second] = [2, 6].map(|ms| w.node("constraint", [3 * MS, ms * MS, 10 * MS]));
    w.graph.root(0, top, 0).unwrap();
    for node in [other, first, second] {
        w.under(top, node, NONE);
    }
    let a = w.free_task("a");
    let edges = [other, first, second].map(|node| w.under(node, a, NONE));
    let a = Leaf { task: a, edge: edges[1] };
    w.wake(a.task);
    let deadlines = |w: &World| edges.map(|edge| w.graph.edge(edge).policy[0]).map(|turn| turn / MS);
    assert_eq!(asks(&mut w, a, 40, 20), "constraint_not_feasible");
    assert_eq!(asks(&mut w, a, 3, 20), "");
    assert_eq!(deadlines(&w)[2], 20);
    assert_eq!(asks(&mut w, a, 1, 31), "");
    assert_eq!(deadlines(&w)[1..], [31, 20]);
    assert_eq!((ends(&mut w, a), ends(&mut w, a), ends(&mut w, a)), ("", "", "no_constraint"));

    // not through an edge with a condition
    let (mut w, top) = World::one("constraint", [3 * MS, 10 * MS, 10 * MS]);
    let a = w.free_task("a");
    let edge = w.under_when_spent(top, a, NONE);
    w.wake(a);
    assert_eq!(w.runs(0), "a");
    assert_eq!(asks(&mut w, Leaf { task: a, edge }, 1, 20), "not_understood");

    // nor a task of several CPUs, whoever is between
    for heads in [true, false] {
        let mut w = World::new(2);
        let nodes = [0, 1].map(|_| w.node("constraint", [3 * MS, 10 * MS, 10 * MS]));
        for cpu in 0..2 {
            w.graph.root(cpu, nodes[if heads { 0 } else { cpu as usize }], 0).unwrap();
        }
        let a = w.free_task("a");
        let edge = w.under(nodes[0], a, NONE);
        if !heads {
            w.under(nodes[1], a, NONE);
        }
        w.wake(a);
        let a = Leaf { task: a, edge };
        assert_eq!(asks(&mut w, a, 1, 20), "message_needs_one_cpu");
        assert_eq!(ends(&mut w, a), "message_needs_one_cpu");
    }
    // and nodes are none
    let (mut w, top) = constraint(10);
    assert_eq!(w.graph.constrain(top, MS, 9 * MS, 0).unwrap_err().name(), "no_such_node");
    let task = w.graph.node_new(TASK, 0, Cpus::ALL, NONE).unwrap();
    assert_eq!(w.graph.constrain(task, MS, 9 * MS, 0).unwrap_err().name(), "no_such_node");
}

#[test]
fn constraint_rule_7_new_parameters_of_the_node() {
    let (mut w, top) = constraint(4);
    let [a, b, _] = abc(&mut w, top);
    assert_eq!(asks(&mut w, a, 12, 36), "");
    w.graph.node_set(top, [MS, 8 * MS, 10 * MS], 0).unwrap();
    assert_eq!(asks(&mut w, b, 15, 36), "constraint_not_feasible"); // of 26
    assert_eq!(asks(&mut w, b, 14, 36), "");
    w.graph.node_set(top, [MS, MS, 10 * MS], 0).unwrap();
    w.run(36 * MS);
    assert_eq!((w.supply(a.edge) >= 12 * MS, w.supply(b.edge) >= 14 * MS), (true, true));
    assert_eq!(asks(&mut w, a, 2, 63), "constraint_not_feasible");
    assert_eq!(asks(&mut w, a, 1, 63), "");
    // more than there is counts as all
    w.graph.node_set(top, [MS, 20 * MS, 10 * MS], 0).unwrap();
    assert_eq!(asks(&mut w, b, 26, 63), "");

    // what was not promised before is not missing: 9 in 10 from 30 on, not from 0
    let (mut w, node, urgent) = below_urgent(1);
    let [a, b, _] = abc(&mut w, node);
    assert_eq!(asks(&mut w, a, 1, 100), "");
    w.wake(urgent.task);
    w.run(30 * MS);
    w.graph.node_set(node, [MS, 9 * MS, 10 * MS], 30 * MS).unwrap();
    assert_eq!(asks(&mut w, b, 18, 50), "constraint_not_feasible");
    assert_eq!(asks(&mut w, b, 17, 50), "");
}

/// Below a reservation that keeps its promise, whatever its siblings do, no time constraint that was accepted is missed; and
/// what is refused would have been missed somewhere.
#[test]
fn constraint_accepted_is_met() {
    let (mut accepted, mut refused, mut late_if_all) = (0, 0, 0);
    for (seed, all) in (1..=60).flat_map(|seed| [(seed, false), (seed, true)]) {
        let (yes, no, late) = play(seed, all);
        if all {
            late_if_all += late;
        } else {
            assert_eq!(late, 0, "seed {seed}");
            (accepted, refused) = (accepted + yes, refused + no);
        }
    }
    println!("{accepted} accepted, {refused} refused; {late_if_all} late if all were accepted");
    assert!(accepted > 500 && refused > 500 && late_if_all > 100);
}

/// Accepted, refused, late. `all`: the node believes to have a whole CPU.
fn play(seed: u64, all: bool) -> (u64, u64, u64) {
    let mut dice = Dice::new(seed);
    let mut w = World::new(1);
    let top = w.node("reservation", NONE);
    w.graph.root(0, top, 0).unwrap();
    let period_ns = dice.within(4, 20) * MS;
    let budget_ns = period_ns * dice.within(2, 8) / 10;
    let sure_ns = if all { period_ns } else { budget_ns };
    let node = w.node("constraint", [dice.within(1, 4) * MS, sure_ns, period_ns]);
    w.under(top, node, budget(budget_ns, period_ns));
    let other_ns = dice.within(3, 30) * MS;
    let rest_ns = other_ns * (period_ns - budget_ns) / period_ns - 1;
    let sibling = w.task(top, "sibling", budget(rest_ns, other_ns));
    let leaves: Vec<_> = (0..4).map(|at| w.task(node, &format!("t{at}"), NONE)).collect();
    // of each: deadline, and what it has to have received by then
    let mut due: Vec<Option<(u64, u64)>> = vec![None; leaves.len()];
    let (mut yes, mut no, mut late) = (0, 0, 0);
    for _ in 0..400 {
        let step_ns = dice.below(4 * MS);
        let to = w.now + step_ns;
        while let Some((at, deadline_ns, need_ns)) = (0..leaves.len())
            .filter_map(|at| due[at].map(|(deadline_ns, need_ns)| (at, deadline_ns, need_ns)))
            .filter(|due| due.1 <= to)
            .min_by_key(|due| due.1)
        {
            w.run(deadline_ns.max(w.now));
            late += u64::from(w.supply(leaves[at].edge) < need_ns);
            due[at] = None;
        }
        w.run(to);
        let at = dice.below(leaves.len() as u64) as usize;
        let leaf = leaves[at];
        match dice.below(8) {
            0 => w.sleep(sibling.task),
            1 | 2 => w.wake(sibling.task),
            3 if due[at].is_none() => w.sleep(leaf.task),
            _ => {
                w.wake(leaf.task);
                let (work_ns, within_ns) = (dice.within(1, 3 * MS), dice.within(1, 5) * period_ns);
                let deadline_ns = w.now + dice.within(1, within_ns);
                let answer = w.graph.constrain(leaf.task, work_ns, deadline_ns, w.now);
                w.rest();
                match answer.map_err(Error::name) {
                    Ok(()) => {
                        yes += 1;
                        // the one before was done early
                        late += due[at].map_or(0, |(_, need_ns)| u64::from(w.supply(leaf.edge) < need_ns));
                        due[at] = Some((deadline_ns, w.supply(leaf.edge) + work_ns));
                    }
                    Err("constraint_not_feasible") => no += 1,
                    Err(why) => assert_eq!(why, "constraint_already"),
                }
            }
        }
    }
    (yes, no, late)
}
