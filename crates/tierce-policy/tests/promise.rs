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

/// A child of `fair` with that weight, promised so much in each window, in ms.
fn sharing(weight: u64, promised_ms: u64, window_ms: u64) -> [u64; 6] {
    [weight, 0, 0, 0, promised_ms * MS, window_ms * MS]
}

#[test]
fn a_share_is_counted_in_windows() {
    for order in [0, 1, 2] {
        // quanta of 1 ms, in turn
        let (mut w, top) = World::one("fair", [MS, order]);
        let a = w.task(top, "a", sharing(100, 4, 10));
        let b = w.task(top, "b", [100]);
        w.run(3 * MS);
        w.wake_all(&[a, b]);
        w.run(34 * MS);
        // [3, 13), [13, 23), [23, 33): 5 ms each
        assert_eq!(counted(&w, a), (3, 0, [12, 15, 5]), "{order}");
        assert_eq!(counted(&w, b).0, 0, "{order}");
        // it sleeps in the window from 33 on, which is not counted
        w.sleep(a.task);
        w.run(100 * MS);
        w.wake(a.task);
        w.run(109 * MS);
        assert_eq!(counted(&w, a), (3, 0, [12, 15, 5]), "{order}");
        w.run(113 * MS);
        assert_eq!(counted(&w, a).0, 4, "{order}");
    }
}

#[test]
fn a_share_that_is_not_kept() {
    let (mut w, top) = World::one("fair", [MS, 0]);
    let a = w.task(top, "a", sharing(100, 4, 10));
    let b = w.task(top, "b", [100]);
    w.graph.trace(true);
    w.wake_all(&[a, b]);
    w.run(10 * MS);
    assert_eq!(counted(&w, a).0, 0); // a has run last until 9
                                     // five ms of [10, 20) are stolen: it has the ones that begin at 10, 12 and 19
    w.run(14 * MS);
    stolen(&mut w, 19, 5);
    w.run(22 * MS);
    assert_eq!(counted(&w, a), (2, 1, [8, 8, 3]));
    assert_eq!((promise(&w, a).missing_ns, promise(&w, a).why), (MS, STOLEN));
    let told = w.events("unkept");
    assert_eq!(told.iter().map(|e| (e.a, e.b, e.value)).collect::<Vec<_>>(), [(a.edge, STOLEN, MS)]);
    // of [20, 30) it has had one; b overruns until 41, and is ahead then
    assert_eq!(w.runs(0), "b");
    w.overrun(41 * MS);
    w.run(52 * MS);
    assert_eq!(counted(&w, a), (5, 3, [20, 18, 0]));
    assert_eq!((promise(&w, a).missing_ns, promise(&w, a).why), (8 * MS, OTHERS));
    let told = w.events("unkept");
    assert_eq!(told.iter().map(|e| (e.a, e.b, e.value)).collect::<Vec<_>>(), [(a.edge, OTHERS, 7 * MS)]);
}

/// Alone it is charged seldom, and has the CPU through whole windows.
#[test]
fn windows_that_pass_while_it_runs() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("fair", [MS, 0]);
    w.under(top, node, NONE);
    let urgent = w.task(top, "urgent", [1]);
    let a = w.task(node, "a", sharing(100, 4, 10));
    w.wake_all(&[urgent, a]);
    w.run(17 * MS);
    w.sleep(urgent.task);
    w.run(55 * MS);
    // [0, 10): nothing, [10, 20): 3, and three of 10 each
    assert_eq!(counted(&w, a), (5, 2, [20, 33, 0]));
    assert_eq!(promise(&w, a).missing_ns, 5 * MS);
    // what has run in [50, 60) until 55 belongs to that window
    w.wake(urgent.task);
    w.run(61 * MS);
    w.sleep(urgent.task);
    w.run(62 * MS);
    assert_eq!(counted(&w, a), (6, 2, [24, 38, 0]));
    // exactly at the end of a window nothing is lost
    w.run(70 * MS);
    w.run(80 * MS);
    w.run(81 * MS);
    assert_eq!(counted(&w, a), (8, 2, [32, 57, 0]));
}

#[test]
fn another_promise_begins_anew() {
    let (mut w, top) = World::one("fair", [MS, 0]);
    let a = w.task(top, "a", sharing(100, 4, 10));
    w.wake(a.task);
    w.run(15 * MS);
    w.graph.set(a.edge, sharing(200, 4, 10), w.now).unwrap(); // the promise is the same
    w.rest();
    w.run(21 * MS);
    assert_eq!(counted(&w, a), (2, 0, [8, 20, 10]));
    w.graph.set(a.edge, sharing(200, 2, 5), w.now).unwrap();
    w.rest();
    w.run(27 * MS);
    assert_eq!(counted(&w, a), (3, 0, [10, 25, 5]));
    assert_eq!(w.edge(a).params()[4..], [2 * MS, 5 * MS]);
    w.graph.set(a.edge, [200], w.now).unwrap();
    w.rest();
    w.run(99 * MS);
    assert_eq!(counted(&w, a).0, 3);
    assert!(w.graph.set(a.edge, sharing(200, 6, 5), w.now).is_err());
    assert_eq!(w.edge(a).params()[4..], [0, 0]);
}

/// A child of `uniform` that announces nothing: its share of each period, less a nanosecond.
#[test]
fn a_share_until_a_deadline() {
    const HALF: u64 = 1 << 19;
    let (mut w, top) = World::one("fixed-priority", NONE);
    let node = w.node("uniform", [10 * MS]);
    w.under(top, node, NONE);
    let urgent = w.task(top, "urgent", [1]);
    let a = w.task(node, "a", [HALF]);
    w.wake(a.task);
    w.run(30 * MS);
    assert_eq!((promise(&w, a).windows, promise(&w, a).broken), (3, 0));
    assert_eq!((promise(&w, a).promised_ns, promise(&w, a).received_ns), (15 * MS - 3, 15 * MS));
    w.run(32 * MS);
    w.wake(urgent.task);
    w.run(65 * MS);
    w.sleep(urgent.task);
    w.run(66 * MS);
    // of [30, 40) it had 2 ms, of [40, 50) and [50, 60) nothing
    let p = promise(&w, a);
    assert_eq!((p.windows, p.broken, p.why, p.least_ns), (6, 3, OTHERS, 0));
    assert_eq!(p.missing_ns, 13 * MS - 3);
    // who sleeps is owed nothing
    w.sleep(a.task);
    w.run(200 * MS);
    assert_eq!(promise(&w, a).windows, 6);
}

#[test]
fn a_share_until_the_deadline_that_it_announces() {
    const HALF: u64 = 1 << 19;
    let (mut w, top) = World::one("uniform", [10 * MS]);
    let a = w.task(top, "a", [HALF]);
    w.graph.announce(a.task, 8 * MS, w.now);
    w.wake(a.task);
    w.run(5 * MS);
    // half of 8 ms
    assert_eq!((promise(&w, a).windows, promise(&w, a).promised_ns), (1, 4 * MS - 1));
    // none of the two ms until 12
    w.announce(a.task, 12 * MS);
    stolen(&mut w, 13, 8);
    w.run(14 * MS);
    let p = promise(&w, a);
    assert_eq!((p.windows, p.broken, p.missing_ns, p.why), (2, 1, 2 * MS - 1, STOLEN));
}

/// Windows of a share that somebody always wants, against a timeline kept outside: every ns of every window.
#[test]
fn shares_as_counted_from_outside() {
    let mut dice = Dice::new(8);
    let mut broken = 0;
    for round in 0..200 {
        let (mut w, top) = World::one("fixed-priority", NONE);
        let node = w.node("fair", [MS, dice.below(4)]);
        w.under(top, node, NONE);
        let urgent = w.task(top, "urgent", [1]);
        let (owed_ms, window_ms) = (dice.within(1, 4), dice.within(5, 20));
        let a = w.task(node, "a", sharing(100, owed_ms, window_ms));
        let b = w.task(node, "b", [dice.within(1, 200)]);
        w.wake_all(&[a, b]);
        let (mut had, mut runs) = (vec![], false);
        let (mut next, mut before) = (dice.within(1, 9), 0);
        for ms in 0..150 {
            if ms == next {
                if runs {
                    w.sleep(urgent.task)
                } else {
                    w.wake(urgent.task)
                }
                (runs, next) = (!runs, ms + dice.within(1, 15));
            }
            if dice.below(10) == 0 {
                w.overrun((ms + 1) * MS);
            } else {
                w.run((ms + 1) * MS);
            }
            had.push(w.supply(a.edge) - before);
            before = w.supply(a.edge);
        }
        // until it has run after the last of them
        let p = promise(&w, a);
        let all: Vec<u64> = had.chunks_exact(window_ms as usize).map(|each| each.iter().sum()).collect();
        let all = &all[..p.windows as usize];
        let missing = |each: &u64| (owed_ms * MS).saturating_sub(*each);
        assert_eq!(p.received_ns, all.iter().sum::<u64>(), "round {round}");
        assert_eq!(p.broken as usize, all.iter().filter(|each| missing(each) > 0).count(), "round {round}");
        assert_eq!(p.missing_ns, all.iter().map(missing).sum::<u64>(), "round {round}");
        assert_eq!(p.promised_ns, all.len() as u64 * owed_ms * MS, "round {round}");
        assert_eq!(p.least_ns, all.iter().copied().min().unwrap_or(NEVER), "round {round}");
        let over = had.iter().rposition(|ms| *ms > 0).map_or(0, |ms| ms as u64 / window_ms);
        assert_eq!(u64::from(p.windows), over, "round {round}");
        broken += p.broken;
    }
    assert!(broken > 100, "{broken}");
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
