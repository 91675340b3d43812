//! Is what is promised kept, as policy/promise.h counts it?

mod common;

use common::{budget, Dice, Leaf, World, MS, NONE, US};
use tierce_policy::raw::Promise;
use tierce_policy::NEVER;

const OTHERS: u32 = 1;
const STOLEN: u32 = 2;
const AWAY: u32 = 3;

/// A reservation with such parameters below a task that can take the CPU from it.
fn below_urgent(params: [u64; 4]) -> (World, u32, Leaf) {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("reservation", params);
    w.under(top, node, NONE);
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    (w, node, urgent)
}

fn promise(w: &World, leaf: Leaf) -> Promise {
    w.edge(leaf).promise.clone()
}

/// Windows, those that were broken; ms: promised, received, the least.
fn counted(w: &World, leaf: Leaf) -> (u32, u32, [u64; 3]) {
    let p = promise(w, leaf);
    (p.windows, p.broken, [p.promised_ns, p.received_ns, p.least_ns].map(|ns| ns / MS))
}

/// The CPU takes `stolen_ms` of the time up to `to_ms` away.
fn stolen(w: &mut World, to_ms: u64, stolen_ms: u64) {
    w.now = to_ms * MS;
    w.graph.event(0, w.now, stolen_ms * MS);
    w.rest();
}

#[test]
fn what_is_kept() {
    for replenishment in ["hard", "soft", "total-bandwidth", "periodic", "sporadic", "polling"] {
        let number = ["hard", "soft", "total-bandwidth", "periodic", "sporadic", "polling"];
        let number = number.iter().position(|name| *name == replenishment).unwrap() as u64;
        let (mut w, top) = World::one("reservation", [0, number, 0, 0]);
        let a = w.task(top, "a", budget(2 * MS, 10 * MS));
        let b = w.task(top, "b", budget(7 * MS, 10 * MS));
        w.graph.trace(true);
        w.wake_all(&[a, b]);
        w.run(95 * MS);
        let (windows, broken, [promised, received, least]) = counted(&w, a);
        assert_eq!((broken, promised), (0, received), "{replenishment}");
        assert_eq!(least, 2, "{replenishment}");
        assert!(windows >= 9 && u64::from(windows) * 2 == promised, "{replenishment}: {windows} windows");
        assert!(w.supply(a.edge) >= received * MS, "{replenishment}");
        assert_eq!(w.events("unkept"), [], "{replenishment}");
    }
}

#[test]
fn who_sleeps_is_owed_nothing() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    assert_eq!(promise(&w, a).least_ns, NEVER);
    for k in 0..10 {
        w.wake(a.task);
        w.run(k * 10 * MS + MS); // half of its budget
        w.sleep(a.task);
        w.run((k + 1) * 10 * MS);
    }
    assert_eq!((promise(&w, a).windows, promise(&w, a).broken), (0, 0));
    // in its period it wakes again and uses the rest: it has slept
    w.wake(a.task);
    w.run(101 * MS);
    w.sleep(a.task);
    w.run(103 * MS);
    w.wake(a.task);
    w.run(109 * MS);
    assert!(w.spent(a.edge));
    assert_eq!(promise(&w, a).windows, 0);
    // from the next one on it wants the CPU all the time
    w.run(115 * MS);
    assert_eq!(counted(&w, a), (1, 0, [2, 2, 2]));
}

#[test]
fn what_is_stolen_is_missing() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(5 * MS, 10 * MS));
    w.graph.trace(true);
    w.wake(a.task);
    w.run(10 * MS);
    stolen(&mut w, 12, 1);
    stolen(&mut w, 19, 6);
    assert_eq!(counted(&w, a), (1, 0, [5, 5, 5])); // not yet
    stolen(&mut w, 22, 0);
    // in [10, 20) it had 3 ms: 1 + 1 + 1
    assert_eq!(counted(&w, a), (2, 1, [10, 8, 3]));
    assert_eq!((promise(&w, a).missing_ns, promise(&w, a).why), (2 * MS, STOLEN));
    let told = w.events("unkept");
    assert_eq!(told.iter().map(|e| (e.a, e.b, e.value)).collect::<Vec<_>>(), [(a.edge, STOLEN, 2 * MS)]);
}

#[test]
fn interference_that_is_charged_is_missing_too() {
    let (mut w, top) = World::one("reservation", [0, 0, 1, 0]);
    let a = w.task(top, "a", budget(5 * MS, 10 * MS));
    w.wake(a.task);
    stolen(&mut w, 3, 1);
    w.run(10 * MS);
    assert_eq!(counted(&w, a), (1, 1, [5, 4, 4]));
    assert_eq!((promise(&w, a).missing_ns, promise(&w, a).why), (MS, STOLEN));
}

#[test]
fn others_have_the_cpu() {
    for kind in [0, 3, 4] {
        let (mut w, node, urgent) = below_urgent([0, kind, 0, 0]);
        let a = w.task(node, "a", budget(2 * MS, 10 * MS));
        w.wake(a.task);
        w.run(11 * MS);
        assert_eq!(counted(&w, a), (1, 0, [2, 2, 2]), "{kind}");
        w.wake(urgent.task);
        w.run(45 * MS);
        w.sleep(urgent.task);
        w.run(46 * MS);
        // of [10, 20) it had 1 ms, of [20, 30) and [30, 40) nothing
        let (windows, broken, [promised, received, least]) = counted(&w, a);
        assert_eq!((windows, broken, promised, received, least), (4, 3, 8, 3, 0), "{kind}");
        assert_eq!(promise(&w, a).why, OTHERS, "{kind}");
        assert_eq!(promise(&w, a).missing_ns, 5 * MS, "{kind}");
    }
}

#[test]
fn the_cpu_was_away() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.run(11 * MS);
    w.graph.online(0, false, w.now).unwrap();
    w.rest();
    w.run(25 * MS);
    w.graph.online(0, true, w.now).unwrap();
    w.rest();
    w.run(27 * MS);
    assert_eq!(counted(&w, a), (2, 1, [4, 3, 1]));
    assert_eq!(promise(&w, a).why, AWAY);
}

#[test]
fn an_overrun_is_nobodys_broken_promise_but_that_of_others() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(5 * MS, 10 * MS));
    let b = w.task(top, "b", budget(5 * MS, 10 * MS));
    w.wake_all(&[a, b]);
    w.overrun(9 * MS); // a runs on for 4 ms
    w.run(21 * MS);
    // a pays from its next budget: of its 1 ms nothing is missing
    assert_eq!((promise(&w, a).broken, promise(&w, b).broken), (0, 1));
    assert_eq!(promise(&w, b).why, OTHERS);
}

#[test]
fn time_constraints_are_promises() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("constraint", [3 * MS, 4 * MS, 10 * MS]);
    w.under(top, node, NONE);
    let urgent = w.task(top, "urgent", [1, 0, 0, 0]);
    let a = w.task(node, "a", NONE);
    let b = w.task(node, "b", NONE);
    w.wake_all(&[a, b]);
    w.graph.constrain(a.task, 5 * MS, 36 * MS, w.now).unwrap();
    w.rest();
    w.run(20 * MS);
    assert_eq!(counted(&w, a), (1, 0, [5, 5, 5]));
    // it is not sure of what it was promised itself
    w.graph.constrain(a.task, 5 * MS, 60 * MS, w.now).unwrap();
    w.rest();
    w.run(22 * MS);
    w.wake(urgent.task);
    w.run(70 * MS);
    assert_eq!(counted(&w, a), (2, 1, [10, 7, 2]));
    assert_eq!(promise(&w, a).why, OTHERS);
    // who ends it, or sleeps, is owed nothing
    w.sleep(urgent.task);
    w.graph.constrain(a.task, MS, 100 * MS, w.now).unwrap();
    w.graph.unconstrain(a.task, w.now).unwrap();
    w.graph.constrain(b.task, MS, 100 * MS, w.now).unwrap();
    w.sleep(b.task);
    w.run(200 * MS);
    assert_eq!((counted(&w, a).0, counted(&w, b).0), (2, 0));
}

/// A budget that somebody always wants, against what its supply was at the end of each period.
#[test]
fn as_counted_from_outside() {
    let mut dice = Dice::new(26);
    let mut broken = 0;
    for round in 0..200 {
        let (mut w, node, urgent) = below_urgent([0; 4]);
        let floor_ns = dice.below(3) * US;
        w.graph.set_floor_ns(floor_ns);
        let a = w.task(node, "a", budget(dice.within(1, 5) * MS, 10 * MS));
        w.wake(a.task);
        let mut runs = false;
        for _ in 0..30 {
            let to = w.now + dice.within(1, 9_000) * US;
            w.run(to);
            if runs {
                w.sleep(urgent.task);
            } else {
                w.wake(urgent.task);
            }
            runs = !runs;
            let p = promise(&w, a);
            // each window keeps its promise, or what is missing was counted
            assert!(
                p.promised_ns <= p.received_ns + p.missing_ns + u64::from(p.windows) * floor_ns,
                "round {round}"
            );
            assert!(p.received_ns <= w.supply(a.edge), "round {round}");
            assert!(p.broken <= p.windows && (p.broken == 0) == (p.missing_ns == 0), "round {round}");
            assert!(p.windows == 0 || p.least_ns <= p.received_ns / u64::from(p.windows), "round {round}");
        }
        broken += promise(&w, a).broken;
    }
    assert!(broken > 100, "{broken}");
}
