//! The numbered rules of policy/fixed_priority.c.

mod common;

use common::{World, MS, NONE};

fn priority(value: u64) -> [u64; 4] {
    [value, 0, 0, 0]
}

#[test]
fn fixed_priority_example() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let backup = w.task(top, "backup", priority(1));
    let logger = w.task(top, "logger", priority(1));
    let audio = w.task(top, "audio", priority(2));
    w.wake(backup.task);
    w.run(MS);
    w.wake(logger.task);
    w.run(2 * MS);
    w.wake(audio.task);
    w.run(3 * MS);
    w.sleep(audio.task);
    w.run(6 * MS);
    w.sleep(backup.task);
    w.run(8 * MS);
    w.sleep(logger.task);
    assert_eq!(w.schedule(), "0 backup, 2 audio, 3 backup, 6 logger, 8 idle");
    assert_eq!([5, 2, 1].map(|ms| ms * MS), [backup, logger, audio].map(|leaf| w.supply(leaf.edge)));
}

#[test]
fn fixed_priority_rule_1_larger_priority_runs() {
    // whatever the order of their requests, and the range to its ends
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let (mut w, top) = World::one("fixed-priority", NONE);
        let leaves =
            [("low", 0), ("middle", 1), ("high", 65535)].map(|(name, p)| w.task(top, name, priority(p)));
        w.wake_all(&order.map(|i| leaves[i]));
        for name in ["high", "middle", "low"] {
            assert_eq!(w.runs(0), name, "{order:?}");
            w.run(w.now + MS);
            w.sleep(w.graph.cpu(0).task);
        }
    }
    // a running child, too: preempted by one that comes, and by one that is raised above it
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b] = [("a", 5), ("b", 6)].map(|(name, p)| w.task(top, name, priority(p)));
    w.wake(a.task);
    w.run(MS);
    w.wake(b.task);
    w.run(2 * MS);
    w.graph.set(a.edge, priority(7), w.now).unwrap();
    w.rest();
    w.run(3 * MS);
    w.graph.set(a.edge, priority(4), w.now).unwrap();
    w.rest();
    assert_eq!(w.schedule(), "0 a, 1 b, 2 a, 3 b");
}

#[test]
fn fixed_priority_rule_2_equals_first_requested_first() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, priority(3)));
    for (at, leaf) in [(0, b), (1, c), (2, a)] {
        w.run(at * MS);
        w.wake(leaf.task);
    }
    w.run(100 * MS); // no quantum
    assert_eq!(w.schedule(), "0 b");
    w.sleep(b.task);
    w.wake(b.task); // behind all others now
    for task in [c, a, b] {
        w.run(w.now + MS);
        w.sleep(task.task);
    }
    assert_eq!(w.schedule(), "0 b, 100 c, 101 a, 102 b, 103 idle");
}

#[test]
fn fixed_priority_rule_3_outranked_keeps_its_place() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, priority(1)));
    let high = w.task(top, "high", priority(2));
    w.wake_all(&[a, b]);
    for at in [1, 3, 5] {
        w.run(at * MS);
        w.wake(high.task);
        w.run((at + 1) * MS);
        w.sleep(high.task);
    }
    w.run(10 * MS);
    w.sleep(a.task);
    assert_eq!(w.schedule(), "0 a, 1 high, 2 a, 3 high, 4 a, 5 high, 6 a, 10 b");
    // nor does one that waits lose it when its priority is set
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, priority(1)));
    w.wake_all(&[a, b, c]);
    w.graph.set(b.edge, priority(0), w.now).unwrap();
    w.graph.set(b.edge, priority(1), w.now).unwrap();
    w.rest();
    w.sleep(a.task);
    assert_eq!((w.runs(0), w.graph.node(c.task).ran_ns), ("b", 0));
}

#[test]
fn fixed_priority_rule_4_a_used_quantum_is_followed_by_those_of_equals() {
    let quantum = |priority: u64, ms: u64| [priority, ms * MS, 0, 0];
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, quantum(1, 3)));
    let endless = w.task(top, "endless", priority(1));
    let high = w.task(top, "high", quantum(2, 1));
    let low = w.task(top, "low", quantum(0, 1));
    w.wake_all(&[a, b, low]);
    w.run(7 * MS); // 1 ms of the second quantum of a
    w.wake(high.task);
    w.run(9 * MS); // its own ends without equals
    w.sleep(high.task);
    w.run(13 * MS); // 2 ms of b
    w.sleep(b.task);
    w.wake(b.task); // gives up the rest, and is behind a
    w.run(18 * MS);
    w.sleep(b.task);
    w.run(19 * MS);
    assert_eq!(w.schedule(), "0 a, 3 b, 6 a, 7 high, 9 a, 11 b, 13 a, 16 b, 18 a");
    // one without a quantum keeps the CPU once it has it
    w.wake(endless.task);
    w.run(100 * MS);
    assert!(w.schedule().ends_with("18 a, 21 endless"), "{}", w.schedule());
    // a quantum that is too short counts as 10 us
    let (mut w, top) = World::one("fixed-priority", NONE);
    let [a, b] = ["a", "b"].map(|name| w.task(top, name, [1, 1, 0, 0]));
    w.wake_all(&[a, b]);
    w.run(MS);
    assert_eq!([a, b].map(|leaf| w.supply(leaf.edge)), [MS / 2; 2]);
    assert_eq!(w.schedule().matches("a").count(), 51, "the last turn has just begun");
}
