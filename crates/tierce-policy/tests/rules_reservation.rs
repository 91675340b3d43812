//! The numbered rules of policy/reservation.c.

mod common;

use common::{budget, Leaf, World, MS, NONE, US};
use tierce_policy::limits;

fn short(budget_ms: u64, deadline_ms: u64, period_ms: u64) -> [u64; 4] {
    [budget_ms * MS, period_ms * MS, deadline_ms * MS, 0]
}

fn deadline(w: &World, leaf: Leaf) -> u64 {
    w.edge(leaf).policy[1]
}

fn replenish(w: &World, leaf: Leaf) -> u64 {
    w.edge(leaf).policy[2]
}

#[test]
fn reservation_example() {
    for (wakes_at, remaining, due, expected) in [
        (13, 1, 20, "0 a, 2 idle, 10 a, 11 idle, 13 a, 14 idle, 20 a, 22 idle, 30 a, 32 idle"),
        (19, 2, 29, "0 a, 2 idle, 10 a, 11 idle, 19 a, 21 idle, 29 a, 31 idle"),
    ] {
        let (mut w, top) = World::one("reservation", NONE);
        let a = w.task(top, "a", budget(2 * MS, 10 * MS));
        w.wake(a.task);
        w.run(11 * MS);
        assert_eq!((w.remaining(a.edge), deadline(&w, a)), (MS as i64, 20 * MS));
        w.sleep(a.task);
        w.run(wakes_at * MS);
        w.wake(a.task);
        assert_eq!((w.remaining(a.edge), deadline(&w, a)), (remaining * MS as i64, due * MS));
        w.run(35 * MS);
        assert_eq!(w.schedule(), expected);
    }
}

#[test]
fn reservation_rule_1_earliest_server_deadline_runs() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(10 * MS, 20 * MS));
    let b = w.task(top, "b", budget(2 * MS, 5 * MS));
    w.wake_all(&[a, b]);
    w.run(20 * MS);
    // at 10 b's deadline is 15, before a's 20; at 15 both are due at 20: a, the lower id
    assert_eq!(w.schedule(), "0 b, 2 a, 5 b, 7 a, 10 b, 12 a, 16 b, 18 idle, 20 b");
}

#[test]
fn reservation_rule_2_spent_until_the_period_ends() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    assert_eq!(w.graph.until(0), 2 * MS); // to the nanosecond
    w.run(2 * MS);
    assert!(w.spent(a.edge));
    w.sleep(a.task);
    w.run(4 * MS);
    w.wake(a.task); // sleeping does not help
    w.run(10 * MS);
    assert_eq!(w.schedule(), "0 a, 2 idle, 10 a");
    assert_eq!(w.edge(a).throttles, 1);

    // with deadline < period, too
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", short(2, 4, 10));
    w.wake(a.task);
    w.run(22 * MS);
    assert_eq!(w.schedule(), "0 a, 2 idle, 10 a, 12 idle, 20 a, 22 idle");

    // less than the floor is spent, and carried over
    let (mut w, top) = World::one("reservation", NONE);
    w.graph.set_floor_ns(100 * US);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(2 * MS - 100 * US);
    assert!(w.spent(a.edge));
    w.run(10 * MS);
    assert_eq!(w.remaining(a.edge), (2 * MS + 100 * US) as i64);
    w.overrun(12 * MS - 100 * US);
    assert!(!w.spent(a.edge), "200 us are left");
}

#[test]
fn reservation_rule_3_replenished_at_the_end_of_the_period() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    for k in 1..=100 {
        w.run(k * 10 * MS);
        assert_eq!(
            (replenish(&w, a), deadline(&w, a), w.supply(a.edge)),
            ((k + 1) * 10 * MS, (k + 1) * 10 * MS, k * 2 * MS)
        );
    }
    // a timer that comes late within the period does not move the next one
    w.run(1002 * MS);
    w.overrun(1013 * MS);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (2 * MS as i64, 1020 * MS));
    // a clock gap over whole periods is not made up for: one budget, the period begins now
    w.run(1015 * MS);
    assert!(w.spent(a.edge));
    w.overrun(1057 * MS);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (2 * MS as i64, 1067 * MS));
}

#[test]
fn reservation_rule_4_overrun_is_debt_and_debt_is_capped() {
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(2 * MS + 50 * US);
    assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (-50 * US as i64, true));
    w.run(10 * MS);
    assert_eq!(w.remaining(a.edge), (1950 * US) as i64);
    w.run(20 * MS);
    assert_eq!(w.supply(a.edge), 4 * MS); // no drift
                                          // debt of more than a budget: written off, and the child waits two periods, not more
    w.overrun(25 * MS);
    assert_eq!((w.remaining(a.edge), w.edge(a).forgiven_ns), (-(2 * MS as i64), MS));
    w.run(45 * MS);
    assert_eq!(w.schedule(), "0 a, 2.05 idle, 10 a, 11.95 idle, 20 a, 25 idle, 40 a, 42 idle");
    // the cap counts for a budget that is made smaller, too
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(5 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(9 * MS);
    assert_eq!(w.remaining(a.edge), -(4 * MS as i64));
    w.graph.set(a.edge, budget(MS, 10 * MS), w.now).unwrap();
    w.rest();
    w.run(40 * MS);
    assert_eq!(w.schedule(), "0 a, 9 idle, 20 a, 21 idle, 30 a, 31 idle, 40 a");
}

#[test]
fn reservation_rule_5_a_waking_child_keeps_or_begins() {
    // deadline = period: budget 4, period 10, runs 1 ms, wakes at t with 3 left: keeps up to t = 2.5
    for (wakes_us, remaining, due_us) in [(2_500, 3, 10_000), (2_501, 4, 12_501), (12_000, 4, 22_000)] {
        let (mut w, top) = World::one("reservation", NONE);
        let a = w.task(top, "a", budget(4 * MS, 10 * MS));
        w.wake(a.task);
        w.run(MS);
        w.sleep(a.task);
        w.run(wakes_us * US);
        w.wake(a.task);
        assert_eq!(
            (w.remaining(a.edge), deadline(&w, a)),
            (remaining * MS as i64, due_us * US),
            "{wakes_us}"
        );
    }
    // deadline < period: 4 within 8 of 20; 3 left at 1
    for (wakes_ms, remaining_us, spent) in [
        (2, 3_000, false),  // fits: 6 * 4/8 = 3
        (4, 2_000, false),  // cut to 4 * 4/8 = 2
        (8, 3_000, true),   // past the deadline: waits for the end of the period
        (19, 3_000, true),  //
        (20, 4_000, false), // the period is over
    ] {
        let (mut w, top) = World::one("reservation", NONE);
        let a = w.task(top, "a", short(4, 8, 20));
        w.wake(a.task);
        w.run(MS);
        w.sleep(a.task);
        w.run(wakes_ms * MS);
        w.wake(a.task);
        assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (remaining_us * US as i64, spent), "{wakes_ms}");
        w.run(20 * MS);
        assert!(!w.spent(a.edge));
        assert_eq!((w.remaining(a.edge), w.runs(0)), (4 * MS as i64, "a"));
    }
    // in debt it waits, whenever it wakes
    let (mut w, top) = World::one("reservation", NONE);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(3 * MS);
    w.sleep(a.task);
    w.run(4 * MS);
    w.wake(a.task);
    w.run(13 * MS);
    assert_eq!(w.schedule(), "0 a, 3 idle, 10 a, 11 idle");
}

#[test]
fn reservation_rule_6_admission() {
    let (mut w, top) = World::one("reservation", NONE);
    let mut refuse = |params, name| {
        let task = w.free_task(name);
        assert_eq!(w.try_under(top, task, params).unwrap_err().name(), name);
        assert_eq!((w.graph.node(top).children, w.graph.node(top).sum), (0, 0));
    };
    refuse(short(2, 11, 10), "deadline_beyond_period");
    refuse(short(6, 5, 10), "budget_beyond_deadline");
    // exactly one CPU fits, in thirds, too; a little more does not
    let third = [1, 2, 3].map(|_| w.free_task("third"));
    for task in third {
        w.try_under(top, task, budget(5 * MS, 15 * MS)).unwrap();
    }
    let more = w.free_task("more");
    assert_eq!(w.try_under(top, more, budget(US, MS)).unwrap_err().name(), "utilisation_above_one");
    let edge = w.graph.node(third[0]).first_parent;
    assert_eq!(
        w.graph.set(edge, budget(5_100 * US, 15 * MS), 0).unwrap_err().name(),
        "utilisation_above_one"
    );
    // what one gives back another can have
    w.graph.set(edge, budget(4 * MS, 15 * MS), 0).unwrap();
    w.try_under(top, more, budget(MS, 15 * MS)).unwrap();
    assert!(limits().nodes > 1000);
}
