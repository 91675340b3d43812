//! The numbered rules of policy/edf.c.

mod common;

use common::{World, MS, NONE};
use tierce_policy::NEVER;

fn relative(ms: u64) -> [u64; 4] {
    [ms * MS, 0, 0, 0]
}

/// A job: the deadline first, then the request, as a release does it.
fn job(w: &mut World, task: u32, due_ms: u64) {
    w.graph.announce(task, due_ms * MS, w.now);
    w.wake(task);
}

#[test]
fn edf_example() {
    let (mut w, top) = World::one("edf", NONE);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, NONE));
    job(&mut w, a.task, 10);
    w.run(2 * MS);
    job(&mut w, b.task, 7);
    w.run(3 * MS);
    job(&mut w, c.task, 10);
    for (at, leaf) in [(5, b), (8, a), (10, c)] {
        w.run(at * MS);
        w.sleep(leaf.task);
    }
    assert_eq!(w.schedule(), "0 a, 2 b, 5 a, 8 c, 10 idle");
    assert_eq!([a, b, c].map(|leaf| w.supply(leaf.edge)), [5 * MS, 3 * MS, 2 * MS]);
}

#[test]
fn edf_rule_1_earliest_deadline_runs() {
    let (mut w, top) = World::one("edf", NONE);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, NONE));
    job(&mut w, b.task, 20);
    w.run(MS);
    job(&mut w, c.task, 20); // equal, a higher id: waits
    w.run(2 * MS);
    job(&mut w, a.task, 20); // equal, a lower id: runs
    w.run(3 * MS);
    assert_eq!(w.schedule(), "0 b, 2 a");
    w.sleep(a.task);
    job(&mut w, a.task, 21); // later than both
    w.run(4 * MS);
    w.sleep(b.task);
    w.run(5 * MS);
    w.sleep(c.task);
    assert_eq!(w.schedule(), "0 b, 2 a, 3 b, 4 c, 5 a");
}

#[test]
fn edf_rule_2_announced_or_relative_deadline() {
    // announced; request + the edge's deadline; last when there is neither
    let (mut w, top) = World::one("edf", NONE);
    let never = w.task(top, "never", NONE);
    let relative_20 = w.task(top, "relative", relative(20));
    let announced = w.task(top, "announced", relative(1)); // what it announces wins over its edge
    w.wake(never.task);
    w.run(5 * MS);
    w.wake(relative_20.task); // due at 25
    w.run(6 * MS);
    job(&mut w, announced.task, 24);
    assert_eq!(w.edge(announced).policy[0], 24 * MS);
    assert_eq!(w.edge(relative_20).policy[0], 25 * MS);
    assert_eq!(w.edge(never).policy[0], NEVER);
    w.run(7 * MS);
    w.sleep(announced.task);
    w.run(8 * MS);
    w.sleep(relative_20.task);
    assert_eq!(w.schedule(), "0 never, 5 relative, 6 announced, 7 relative, 8 never");

    // an edf node below an edf node announces the earliest of its children, the running one included
    let (mut w, top) = World::one("edf", NONE);
    let inner = w.node("edf", NONE);
    let edge = w.under(top, inner, NONE);
    let [x, y] = ["x", "y"].map(|name| w.task(inner, name, NONE));
    let other = w.task(top, "other", NONE);
    job(&mut w, x.task, 30);
    job(&mut w, other.task, 20);
    assert_eq!((w.runs(0), w.graph.edge(edge).policy[0]), ("other", 30 * MS));
    w.run(MS);
    job(&mut w, y.task, 10);
    assert_eq!((w.runs(0), w.graph.edge(edge).policy[0]), ("y", 10 * MS));
    w.run(2 * MS);
    w.sleep(y.task);
    assert_eq!((w.runs(0), w.graph.edge(edge).policy[0]), ("other", 30 * MS));
}

#[test]
fn edf_rule_2_who_is_being_left_counts() {
    // a node that two CPUs serve, and each has somebody of its own beside it
    let mut w = World::new(2);
    let tops = [0, 1].map(|cpu| {
        let top = w.node("edf", NONE);
        w.graph.root(cpu, top, 0).unwrap();
        top
    });
    let shared = w.node("edf", NONE);
    for top in tops {
        w.under(top, shared, NONE);
    }
    let [x, later] = ["x", "later"].map(|name| w.task(shared, name, NONE));
    let [zero, one] = [(tops[0], "zero"), (tops[1], "one")].map(|(top, name)| w.task(top, name, NONE));
    job(&mut w, one.task, 10);
    job(&mut w, x.task, 30);
    assert_eq!([w.runs(0), w.runs(1)], ["x", "one"]);
    // CPU 0 leaves x for another, and has not come back from it yet: x wants a CPU all the same, by 30 ms, whoever else
    // comes meanwhile
    w.run(MS);
    w.graph.announce(zero.task, 20 * MS, w.now);
    w.graph.request(zero.task, w.now);
    w.graph.decide(0, w.now, 0);
    assert_eq!(w.graph.cpu(0).task, zero.task);
    let announces_ms = |w: &World| w.graph.node(shared).deadline_ns / MS;
    assert_eq!(announces_ms(&w), 30);
    w.graph.announce(later.task, 50 * MS, w.now);
    w.graph.request(later.task, w.now);
    assert_eq!(announces_ms(&w), 30);
    w.graph.returned(0, w.now);
    w.rest();
    assert_eq!((w.runs(0), announces_ms(&w)), ("zero", 30));
    w.sleep(one.task);
    assert_eq!([w.runs(0), w.runs(1)], ["zero", "x"]);
}

#[test]
fn edf_rule_3_announcement_moves_a_waiting_child() {
    let (mut w, top) = World::one("edf", NONE);
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, NONE));
    job(&mut w, a.task, 10);
    job(&mut w, b.task, 20);
    w.run(MS);
    w.announce(b.task, 5 * MS); // the waiting one gets ahead
    w.run(2 * MS);
    w.announce(b.task, 11 * MS); // the running one falls behind
    w.run(3 * MS);
    w.announce(a.task, NEVER); // takes its deadline back
    assert_eq!(w.schedule(), "0 a, 1 b, 2 a, 3 b");
    // among those that wait, too
    let [d, e] = ["d", "e"].map(|name| w.task(top, name, NONE));
    job(&mut w, d.task, 30);
    job(&mut w, e.task, 40);
    w.announce(e.task, 20 * MS);
    w.sleep(b.task);
    assert_eq!(w.runs(0), "e");
    // a child with a deadline on its edge that takes its announcement back keeps the deadline it has
    let c = w.task(top, "c", relative(50));
    job(&mut w, c.task, 4);
    w.announce(c.task, NEVER);
    assert_eq!((w.edge(c).policy[0], w.runs(0)), (4 * MS, "c"));
}
