//! Joins, conditions, and what may change while everything runs.

mod common;

use common::{budget, number, weight, World, MS, NONE, US};
use tierce_policy::{Cpus, TASK};

fn priority(value: u64) -> [u64; 4] {
    [value, 0, 0, 0]
}

/// A CPU with `rt` (reservation, priority 1) above whatever else hangs under `top`.
fn top_and_rt() -> (World, u32, u32) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let rt = w.node("reservation", NONE);
    w.under(top, rt, priority(1));
    (w, top, rt)
}

#[test]
fn join_adds_what_each_parent_gives() {
    // two reservations of one task, each with its own clock
    let (mut w, _, rt) = top_and_rt();
    let a = w.free_task("a");
    let edges = [w.under(rt, a, budget(2 * MS, 10 * MS)), w.under(rt, a, budget(3 * MS, 15 * MS))];
    w.wake(a);
    w.run(30 * MS);
    assert_eq!(edges.map(|edge| w.supply(edge)), [6 * MS, 6 * MS]);
    assert_eq!(w.schedule(), "0 a, 5 idle, 10 a, 12 idle, 15 a, 18 idle, 20 a, 22 idle, 30 a");
    assert_eq!(w.graph.node(a).ran_ns, 12 * MS);
    // from one edge to the other is no switch
    assert_eq!(w.graph.node(a).switches, 5);
}

#[test]
fn join_with_the_rest_is_a_soft_reservation() {
    for hogs in [0, 1, 10] {
        let (mut w, top, rt) = top_and_rt();
        let rest = w.node("fair", [MS, 0, 0, 0]);
        w.under(top, rest, priority(0));
        let a = w.free_task("a");
        let sure = w.under(rt, a, budget(2 * MS, 10 * MS));
        let slack = w.under(rest, a, weight(100, 0));
        for i in 0..hogs {
            let hog = w.task(rest, &format!("hog{i}"), weight(100, 0));
            w.wake(hog.task);
        }
        w.wake(a);
        w.run(1100 * MS);
        assert_eq!(w.supply(sure), 220 * MS, "{hogs} hogs");
        let fair = 880 * MS / (hogs + 1);
        assert!(w.supply(slack).abs_diff(fair) <= 2 * MS, "{hogs} hogs: {}", w.supply(slack));
    }
}

/// A task with 2 ms in 10 (or as given), and a part in `ovr` (3 in 10) only while that is spent.
fn overrun(params: [u64; 4]) -> (World, u32, [u32; 2]) {
    let (mut w, _, rt) = top_and_rt();
    let ovr = w.node("edf", NONE);
    w.under(rt, ovr, budget(3 * MS, 10 * MS));
    let a = w.free_task("a");
    let edges = [w.under(rt, a, params), w.under_when_spent(ovr, a, NONE)];
    (w, a, edges)
}

#[test]
fn when_spent_opens_exactly_while_the_others_are_spent() {
    let (mut w, a, [own, ovr]) = overrun(budget(2 * MS, 10 * MS));
    w.wake(a);
    w.run(2 * MS - 1);
    assert_eq!((w.supply(own), w.supply(ovr)), (2 * MS - 1, 0));
    w.run(4 * MS);
    assert_eq!((w.supply(own), w.supply(ovr)), (2 * MS, 2 * MS));
    // asleep and awake again, its own budget is still spent
    w.sleep(a);
    w.run(5 * MS);
    w.wake(a);
    w.run(10 * MS);
    assert_eq!((w.supply(own), w.supply(ovr)), (2 * MS, 3 * MS));
    // replenished: the condition ends, and the overrun partition's new budget is not touched before it holds again
    w.run(12 * MS);
    assert_eq!((w.supply(own), w.supply(ovr)), (4 * MS, 3 * MS));
    w.run(20 * MS);
    assert_eq!((w.supply(own), w.supply(ovr)), (4 * MS, 6 * MS));
    assert_eq!(w.schedule(), "0 a, 4 idle, 5 a, 6 idle, 10 a, 15 idle, 20 a");
}

#[test]
fn when_spent_opens_for_one_that_wakes_spent() {
    // a deadline below the period: who wakes between the two has to wait for the period's end, so it is spent
    let (mut w, a, [own, ovr]) = overrun([2 * MS, 10 * MS, 4 * MS, 0]);
    w.wake(a);
    w.run(MS);
    w.sleep(a);
    w.run(5 * MS);
    w.wake(a);
    assert!(w.spent(own));
    w.run(10 * MS);
    assert_eq!((w.supply(own), w.supply(ovr)), (MS, 3 * MS));
    assert_eq!(w.schedule(), "0 a, 1 idle, 5 a, 8 idle, 10 a");
}

#[test]
fn set_of_a_running_reservation_keeps_its_period() {
    let (mut w, _, rt) = top_and_rt();
    let a = w.task(rt, "a", budget(4 * MS, 10 * MS));
    w.wake(a.task);
    w.run(MS);
    // larger: from the next period on; the period's end stays
    w.graph.set(a.edge, budget(8 * MS, 20 * MS), w.now).unwrap();
    w.rest();
    assert_eq!((w.remaining(a.edge), w.edge(a).policy[1..3].to_vec()), (3 * MS as i64, vec![10 * MS; 2]));
    w.run(30 * MS);
    assert_eq!(w.schedule(), "0 a, 4 idle, 10 a, 18 idle, 30 a");
    // smaller: what is left is cut to it at once
    w.run(31 * MS);
    w.graph.set(a.edge, budget(2 * MS, 5 * MS), w.now).unwrap();
    w.rest();
    assert_eq!((w.remaining(a.edge), w.graph.until(0)), (2 * MS as i64, 33 * MS));
    w.run(60 * MS);
    assert_eq!(w.schedule(), "0 a, 4 idle, 10 a, 18 idle, 30 a, 33 idle, 50 a, 52 idle, 55 a, 57 idle, 60 a");
    // throttled: it waits for the end of the period it is in
    w.run(63 * MS);
    w.graph.set(a.edge, budget(MS, MS), w.now).unwrap();
    w.rest();
    w.run(64 * MS);
    assert_eq!(w.runs(0), "idle");
    w.run(70 * MS);
    assert_eq!(w.graph.node(a.task).ran_ns, (4 + 8 + 3 + 2 + 2 + 2 + 5) * MS);
}

#[test]
fn set_reorders_a_waiting_child_and_a_running_one() {
    let (mut w, top) = World::one("fair", [MS, 0, 0, 0]);
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, weight(100, 0)));
    w.wake_all(&[a, b]);
    w.run(100 * MS);
    w.graph.set(b.edge, weight(300, 0), w.now).unwrap();
    w.rest();
    w.run(500 * MS);
    assert!(w.supply(b.edge).abs_diff((50 + 300) * MS) <= MS, "{}", w.supply(b.edge));
}

#[test]
fn detach_of_a_running_edge_moves_the_task_to_its_other_parent() {
    let (mut w, top, rt) = top_and_rt();
    let a = w.free_task("a");
    let sure = w.under(rt, a, budget(2 * MS, 10 * MS));
    let rest = w.under(top, a, priority(0));
    w.wake(a);
    w.run(MS);
    assert_eq!(w.graph.detach(sure, w.now).unwrap_err().name(), "still_running");
    w.rest();
    assert_eq!((w.runs(0), w.graph.cpu(0).path[1]), ("a", rest));
    w.graph.detach(sure, w.now).unwrap();
    w.rest();
    w.run(10 * MS);
    assert_eq!((w.supply(rest), w.schedule().as_str()), (9 * MS, "0 a"));
    assert_eq!(w.graph.node(rt).sum, 0);
}

/// A shared fair root of two CPUs.
fn shared() -> (World, u32) {
    let mut w = World::new(2);
    let root = w.node("fair", [MS, 0, 0, 0]);
    for cpu in 0..2 {
        w.graph.root(cpu, root, 0).unwrap();
    }
    (w, root)
}

#[test]
fn offline_cpu_leaves_its_work_to_the_others() {
    let (mut w, root) = shared();
    let leaves = ["a", "b", "c"].map(|name| w.task(root, name, weight(100, 0)));
    w.wake_all(&leaves);
    w.run(30 * MS);
    let ran = |w: &World| leaves.map(|leaf| w.supply(leaf.edge));
    assert!(ran(&w).iter().all(|ran| ran.abs_diff(20 * MS) <= 2 * MS), "{:?}", ran(&w));
    w.graph.online(1, false, w.now).unwrap();
    w.rest();
    assert_eq!(w.runs(1), "idle");
    w.run(60 * MS);
    assert!(ran(&w).iter().all(|ran| ran.abs_diff(30 * MS) <= 2 * MS), "{:?}", ran(&w));
    assert_eq!((w.graph.cpu(1).used_ns, w.graph.cpu(1).idle_ns), (30 * MS, 30 * MS));
    // the one that serves the shared events can go, too
    w.graph.online(1, true, w.now).unwrap();
    w.rest();
    w.graph.online(0, false, w.now).unwrap();
    w.rest();
    w.run(90 * MS);
    assert!(ran(&w).iter().all(|ran| ran.abs_diff(40 * MS) <= 2 * MS), "{:?}", ran(&w));
    assert_eq!((w.graph.cpu(0).idle_ns, w.graph.cpu(1).idle_ns), (30 * MS, 30 * MS));
}

#[test]
fn offline_cpu_keeps_its_own_tree_for_later() {
    let mut w = World::new(2);
    let roots = [0, 1].map(|cpu| {
        let root = w.node("reservation", NONE);
        w.graph.root(cpu, root, 0).unwrap();
        root
    });
    let [a, b] = [0, 1].map(|cpu| w.task(roots[cpu], ["a", "b"][cpu], budget(5 * MS, 10 * MS)));
    let both = w.free_task("both");
    let edges = roots.map(|root| w.under(root, both, budget(2 * MS, 10 * MS)));
    w.wake(both);
    w.wake_all(&[a, b]);
    w.run(10 * MS);
    w.graph.online(0, false, w.now).unwrap();
    w.rest();
    w.run(30 * MS);
    assert_eq!([a, b].map(|leaf| w.supply(leaf.edge)), [5 * MS, 15 * MS]);
    assert_eq!(w.supply(edges[1]), 6 * MS, "the other parent goes on");
    let before = w.supply(edges[0]);
    w.graph.online(0, true, w.now).unwrap();
    w.rest();
    // a still has the budget of the period it could not use; the periods that went by are not made up for
    w.run(50 * MS);
    assert_eq!([a, b].map(|leaf| w.supply(leaf.edge)), [20 * MS, 25 * MS]);
    assert!(w.supply(edges[0]) - before <= 6 * MS);
}

#[test]
fn affinity_changes_while_others_run() {
    let (mut w, root) = shared();
    let leaves = ["a", "b", "c", "d"].map(|name| w.task(root, name, weight(100, 0)));
    w.wake_all(&leaves);
    w.run(10 * MS);
    // all of them to CPU 1; whoever runs is off its CPU before its affinity changes
    for leaf in leaves {
        let runs = (0..2).any(|cpu| w.graph.cpu(cpu).task == leaf.task);
        if runs {
            w.sleep(leaf.task);
        }
        w.graph.allow(leaf.task, Cpus::from(0b10), w.now).unwrap();
        w.rest();
        if runs {
            w.wake(leaf.task);
        }
    }
    assert_eq!(w.runs(0), "idle");
    w.run(50 * MS);
    assert_eq!((w.graph.cpu(0).idle_ns, w.graph.cpu(1).idle_ns), (40 * MS, 0));
    for leaf in leaves {
        assert!(w.supply(leaf.edge).abs_diff(15 * MS) <= 2 * MS, "{}", w.supply(leaf.edge));
    }
    // and everywhere again: those that wait are taken by CPU 0
    for leaf in leaves {
        w.graph.allow(leaf.task, Cpus::ALL, w.now).unwrap();
        w.rest();
    }
    assert_ne!(w.runs(0), "idle");
    w.run(70 * MS);
    assert_eq!(w.graph.cpu(0).idle_ns, 40 * MS);
    // a task that comes with an affinity never runs elsewhere
    let only_0 = w.graph.node_new(TASK, 0, Cpus::from(0b01), NONE).unwrap();
    let edge = w.under(root, only_0, weight(100, 0));
    w.wake(only_0);
    while w.now < 120 * MS {
        w.run(w.now + 100 * US);
        assert_ne!(w.graph.cpu(1).task, only_0);
    }
    assert!(w.supply(edge).abs_diff(20 * MS) <= 2 * MS, "{}", w.supply(edge));
}

#[test]
fn who_yields_goes_behind_its_equals_alone() {
    // equals of a priority, and of a round: the next one; the nodes above go on
    for policy in ["fixed-priority", "round-robin"] {
        let (mut w, top, rt) = top_and_rt();
        let node = w.node(policy, if policy == "round-robin" { [20 * MS, 0, 0, 0] } else { NONE });
        let above = w.under(rt, node, budget(9 * MS, 10 * MS));
        let leaves: Vec<_> = ["a", "b", "c"].map(|name| w.task(node, name, NONE)).into();
        let rest = w.task(top, "rest", priority(0));
        w.wake_all(&leaves);
        w.wake(rest.task);
        for at in 1..5 {
            w.run(at * MS);
            let who = leaves.iter().find(|leaf| leaf.task == w.graph.cpu(0).task).unwrap();
            w.yields(who.task);
        }
        assert_eq!(w.schedule(), "0 a, 1 b, 2 c, 3 a, 4 b", "{policy}");
        assert_eq!((w.supply(above), w.graph.edge(above).grants), (4 * MS, 1), "{policy}");
        // who does not run has nothing to give
        w.yields(leaves[0].task);
        w.yields(rest.task);
        assert_eq!(w.schedule(), "0 a, 1 b, 2 c, 3 a, 4 b", "{policy}");
    }
    // nobody is its equal: it goes on
    let (mut w, top) = World::one("fixed-priority", NONE);
    let high = w.task(top, "high", priority(1));
    let low = w.task(top, "low", priority(0));
    w.wake_all(&[low, high]);
    w.run(MS);
    w.yields(high.task);
    assert_eq!(w.schedule(), "0 high");
    // its budget counts on: a yield is no way to a new one
    let (mut w, _, rt) = top_and_rt();
    let a = w.task(rt, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    for at in 1..20 {
        w.run(at * MS / 2);
        w.yields(a.task);
    }
    w.run(12 * MS);
    assert_eq!(w.schedule(), "0 a, 2 idle, 10 a, 12 idle");
    // with several parents, and on several CPUs, it is a release and a request
    let mut w = World::new(2);
    let shared = w.node("round-robin", [20 * MS, 0, 0, 0]);
    for cpu in 0..2 {
        w.graph.root(cpu, shared, 0).unwrap();
    }
    let leaves: Vec<_> = ["a", "b", "c"].map(|name| w.task(shared, name, NONE)).into();
    w.wake_all(&leaves);
    w.run(MS);
    assert_eq!([w.runs(0), w.runs(1)], ["a", "b"]);
    w.yields(leaves[0].task);
    assert_eq!([w.runs(0), w.runs(1)], ["c", "b"]);
}

#[test]
fn parameters_of_a_node_count_at_once() {
    for cpus in [1, 2] {
        let mut w = World::new(cpus);
        let node = w.node("fair", [3 * MS, 0, 0, 0]);
        (0..cpus).for_each(|cpu| w.graph.root(cpu, node, 0).unwrap());
        let heavy: Vec<_> = (0..cpus).map(|i| w.task(node, &format!("{i}"), weight(10_000, 0))).collect();
        let light = w.task(node, "light", weight(1, 0));
        w.wake_all(&heavy);
        w.wake(light.task);
        // the light one has had its quantum, and waits for long; what runs has used its own, and goes on
        w.run(12 * MS);
        assert_eq!(w.edge(light).state, 1);
        let armed = |w: &World| (0..cpus).map(|cpu| w.graph.cpu(cpu).armed_ns).max().unwrap();
        assert_eq!(armed(&w), 15 * MS);
        w.graph.node_set(node, [MS, 0, 0, 0], w.now).unwrap();
        w.rest();
        assert_eq!(armed(&w), 13 * MS);
    }
}

/// An edge may be found able by an event, and its child not when all settles, with the child as able as before: counted anew.
/// Found by random operations in whole milliseconds, where slots open, budgets come back and turns end at one time.
#[test]
fn an_edge_that_an_event_finds_otherwise_is_counted_anew() {
    let (mut w, root) = World::one("constraint", [5 * MS, 6 * MS, 6 * MS]);
    let outer = w.node("slots", [4 * MS]);
    let server = w.node("reservation", [1, 0, 1, 0, 677_505]);
    let rounds = w.node("multiburst", [0, 4 * MS, MS, 6 * MS]);
    let slots = w.node("slots", [2 * MS]);
    let first = w.graph.node_new(number("edf"), 1, Cpus::ALL, NONE).unwrap();
    let second = w.node("uniform", [10 * MS]);
    let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| w.free_task(name));
    let g = &mut w.graph;
    let at = 431 * MS;
    g.attach(root, outer, NONE, 0, false, at).unwrap();
    g.attach(outer, server, [MS, MS, 0, 0], 0, false, at).unwrap();
    g.attach(server, rounds, [MS, 5 * MS, 5 * MS, 3], 0, false, at).unwrap();
    g.attach(outer, slots, [MS, MS, 1, 0], 1, false, at).unwrap();
    g.attach(slots, first, [MS, MS, 0, 0], 0, false, at).unwrap();
    g.attach(slots, second, [MS, MS, 1, 0], 2, false, at).unwrap();
    g.node_set(slots, [MS], 477_920 * MS).unwrap();
    g.attach(first, a, NONE, 0, false, 478_024 * MS).unwrap();
    g.attach(second, b, [11_241, 0, 0, 0], 2, false, 478_039 * MS).unwrap();
    g.request(a, 478_392 * MS);
    g.attach(rounds, c, [2_627, 2, 0, 0], 1, true, 478_427 * MS).unwrap();
    g.request(b, 478_474 * MS + 1_460);
    g.decide(0, 478_478 * MS, 0);
    let _ = g.constrain(c, 2 * MS, 478_525 * MS, 478_479 * MS);
    g.attach(rounds, d, [8, 1, 0, 0], 1, false, 478_487 * MS).unwrap();
    g.check(false).unwrap();
}
