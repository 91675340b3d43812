//! The numbered rules of policy/reservation.c.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

mod common;

use common::{budget, Leaf, World, MS, NONE, US};
use tierce_policy::{limits, policies};

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

/// Order and replenishment of a node.
fn kind(order: &str, replenishment: &str) -> [u64; 8] {
    let record = policies().iter().find(|policy| policy.name == "reservation").unwrap();
    let of = |at: usize, word: &str| record.node_params[at].read(word).unwrap();
    [of(0, order), of(1, replenishment), 0, 0, 0, 0, 0, 0]
}

/// Charge, gain and cap of a node with hard budgets by deadlines.
fn paid(charge: &str, gain: &str, cap: &str) -> [u64; 8] {
    let record = policies().iter().find(|policy| policy.name == "reservation").unwrap();
    let of = |at: usize, word: &str| record.node_params[at].read(word).unwrap();
    [0, 0, of(2, charge), of(3, gain), of(4, cap), 0, 0, 0]
}

/// Until `to` so much is stolen, and no timer fires.
fn steal(w: &mut World, to: u64, stolen_ns: u64) {
    w.now = to;
    w.graph.event(0, w.now, stolen_ns);
    w.rest();
}

/// Budget, period and priority.
fn ranked(budget_ms: u64, period_ms: u64, priority: u64) -> [u64; 4] {
    [budget_ms * MS, period_ms * MS, period_ms * MS, priority]
}

#[test]
fn reservation_rule_7_fixed_priority_picks_the_larger_priority() {
    for replenishment in ["hard", "periodic", "polling", "sporadic"] {
        let (mut w, top) = World::one("reservation", kind("fixed-priority", replenishment));
        let low = w.task(top, "low", ranked(5, 10, 1));
        let high = w.task(top, "high", ranked(4, 20, 2));
        let equal = w.task(top, "equal", ranked(1, 40, 1));
        w.wake_all(&[equal, low, high]);
        w.run(11 * MS);
        // high's deadline is the later one; low comes before its equal, which woke first, and again at 10
        assert_eq!(w.schedule(), "0 high, 4 low, 9 equal, 10 low", "{replenishment}");
    }
    // a new priority counts at once
    let (mut w, top) = World::one("reservation", kind("fixed-priority", "periodic"));
    let a = w.task(top, "a", ranked(5, 10, 1));
    let b = w.task(top, "b", ranked(5, 10, 2));
    w.wake_all(&[a, b]);
    w.run(MS);
    w.graph.set(a.edge, ranked(5, 10, 3), w.now).unwrap();
    w.rest();
    w.run(9 * MS);
    assert_eq!(w.schedule(), "0 b, 1 a, 6 b");
    // rule 5 with the period in place of the deadline: 3 of 4 ms fit in 8 of 10 ms, not in 7
    for (wakes_ms, remaining_ms) in [(2, 3), (3, 4)] {
        let (mut w, top) = World::one("reservation", kind("fixed-priority", "hard"));
        let a = w.task(top, "a", ranked(4, 10, 0));
        w.wake(a.task);
        w.run(MS);
        w.sleep(a.task);
        w.run(wakes_ms * MS);
        w.wake(a.task);
        assert_eq!(w.remaining(a.edge), remaining_ms * MS as i64, "{wakes_ms}");
    }
}

#[test]
fn reservation_rule_8_recharged_at_once_with_a_later_deadline() {
    for replenishment in ["soft", "total-bandwidth"] {
        let (mut w, top) = World::one("reservation", kind("edf", replenishment));
        let a = w.task(top, "a", budget(2 * MS, 10 * MS));
        let b = w.task(top, "b", budget(6 * MS, 12 * MS));
        w.wake(a.task);
        w.run(7 * MS); // alone: never throttled, three budgets used and half of the fourth
        assert_eq!((w.remaining(a.edge), deadline(&w, a)), (MS as i64, 40 * MS), "{replenishment}");
        w.wake(b.task);
        w.run(40 * MS); // b until its deadline, 19, 31, then 43, is behind a's 40
        assert_eq!(w.schedule(), "0 a, 7 b, 19 a, 20 b, 26 a, 28 b, 34 a, 36 b", "{replenishment}");
        assert_eq!((w.edge(a).throttles, w.edge(b).throttles), (0, 0));
    }
    // a late timer: as many budgets as it takes, and a debt of one at most
    let (mut w, top) = World::one("reservation", kind("edf", "soft"));
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(3 * MS);
    assert_eq!((w.remaining(a.edge), deadline(&w, a)), (MS as i64, 20 * MS));
    w.overrun(20 * MS);
    assert_eq!((w.remaining(a.edge), w.edge(a).forgiven_ns), (2 * MS as i64, 14 * MS));
    assert_eq!(deadline(&w, a), 40 * MS);
    // who wakes: soft keeps what fits (1 ms in 5 of 10 ms), total bandwidth begins anew behind its last deadline
    for (replenishment, remaining_ms, due_ms) in [("soft", 1, 10), ("total-bandwidth", 2, 20)] {
        let (mut w, top) = World::one("reservation", kind("edf", replenishment));
        let a = w.task(top, "a", budget(2 * MS, 10 * MS));
        w.wake(a.task);
        w.run(MS);
        w.sleep(a.task);
        w.run(5 * MS);
        w.wake(a.task);
        let found = (w.remaining(a.edge), deadline(&w, a));
        assert_eq!(found, (remaining_ms * MS as i64, due_ms * MS), "{replenishment}");
        w.sleep(a.task);
        w.run(50 * MS);
        w.wake(a.task);
        assert_eq!((w.remaining(a.edge), deadline(&w, a)), (2 * MS as i64, 60 * MS), "{replenishment}");
    }
}

#[test]
fn reservation_rule_9_a_grid_of_periods() {
    // kept while it sleeps, until the period ends: 2 at the end of one period and 2 more at once
    let (mut w, top) = World::one("reservation", kind("edf", "periodic"));
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.run(3 * MS);
    w.wake(a.task); // the grid: 3, 13, 23, …
    w.sleep(a.task);
    w.run(11 * MS);
    w.wake(a.task);
    w.run(24 * MS);
    assert_eq!(w.schedule(), "3 idle, 11 a, 15 idle, 23 a");
    // what is left at the end of a period is lost; after a whole period asleep the grid begins anew
    w.sleep(a.task);
    w.run(42 * MS);
    w.wake(a.task);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (2 * MS as i64, 43 * MS));
    w.sleep(a.task);
    w.run(64 * MS);
    w.wake(a.task);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (2 * MS as i64, 74 * MS));
    // debt comes off the next budget, whether it is wanted or not
    w.overrun(67 * MS);
    assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (-(MS as i64), true));
    w.sleep(a.task);
    w.run(75 * MS);
    w.wake(a.task);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (MS as i64, 84 * MS));
    w.overrun(78 * MS);
    w.sleep(a.task);
    w.run(95 * MS);
    w.wake(a.task);
    assert_eq!((w.remaining(a.edge), replenish(&w, a)), (2 * MS as i64, 105 * MS));
    // a period that ends while it runs renews its budget and its deadline
    let (mut w, top) = World::one("reservation", kind("edf", "periodic"));
    let a = w.task(top, "a", budget(5 * MS, 10 * MS));
    w.wake(a.task);
    w.run(MS);
    w.sleep(a.task);
    w.run(8 * MS);
    w.wake(a.task);
    w.run(11 * MS);
    assert_eq!((w.remaining(a.edge), deadline(&w, a)), (4 * MS as i64, 20 * MS));

    // polling: lost as soon as it has nothing to run
    let (mut w, top) = World::one("reservation", kind("edf", "polling"));
    let a = w.task(top, "a", budget(4 * MS, 10 * MS));
    w.wake(a.task);
    w.run(MS);
    w.sleep(a.task);
    w.run(2 * MS);
    w.wake(a.task);
    assert_eq!((w.spent(a.edge), w.edge(a).forgiven_ns), (true, 3 * MS));
    w.run(12 * MS);
    w.sleep(a.task);
    w.run(30 * MS);
    w.wake(a.task); // after a whole period asleep
    w.run(35 * MS);
    w.sleep(a.task);
    w.run(45 * MS);
    w.wake(a.task); // within the next period
    w.run(55 * MS);
    assert_eq!(w.schedule(), "0 a, 1 idle, 10 a, 12 idle, 30 a, 34 idle, 50 a, 54 idle");
}

#[test]
fn reservation_rule_10_what_was_used_comes_back_a_period_later() {
    let (mut w, top) = World::one("reservation", kind("edf", "sporadic"));
    let a = w.task(top, "a", budget(5 * MS, 20 * MS));
    for (from, to) in [(0, 1), (4, 6), (9, 12)] {
        w.run(from * MS);
        w.wake(a.task);
        w.run(to * MS);
        if !w.spent(a.edge) {
            w.sleep(a.task);
        }
    }
    assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (0, true));
    w.run(60 * MS); // 1 ms at 20, 2 at 24, 2 (that it had left) at 29, and each again 20 later
    let expected = "0 a, 1 idle, 4 a, 6 idle, 9 a, 11 idle, 20 a, 21 idle, 24 a, 26 idle, 29 a, 31 idle, \
                    40 a, 41 idle, 44 a, 46 idle, 49 a, 51 idle, 60 a";
    assert_eq!(w.schedule(), expected);

    // a fourth amount: the closest two come together, at the later time
    for (uses, back) in [
        ([0, 10, 13, 20], [(39, 4), (40, 5), (59, 5), (60, 8)]),
        ([0, 3, 20, 29], [(42, 4), (43, 6), (68, 6), (69, 8)]),
    ] {
        let (mut w, top) = World::one("reservation", kind("edf", "sporadic"));
        let a = w.task(top, "a", budget(8 * MS, 40 * MS));
        for from in uses {
            w.run(from * MS);
            w.wake(a.task);
            w.run((from + 1) * MS);
            w.sleep(a.task);
        }
        for (at, remaining) in [(31, 4)].into_iter().chain(back) {
            w.run(at * MS);
            w.wake(a.task);
            assert_eq!(w.remaining(a.edge), remaining * MS as i64, "{uses:?} at {at}");
            w.sleep(a.task);
        }
    }
    // an overrun comes back a stretch later; debt is capped
    let (mut w, top) = World::one("reservation", kind("edf", "sporadic"));
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.overrun(3 * MS);
    w.run(21 * MS);
    assert_eq!(w.schedule(), "0 a, 3 idle, 10 a, 11 idle, 20 a");
    w.overrun(29 * MS);
    assert_eq!((w.remaining(a.edge), w.edge(a).forgiven_ns), (-(2 * MS as i64), 5 * MS));
    // a new budget: what is to come back comes at the last of the times
    let (mut w, top) = World::one("reservation", kind("edf", "sporadic"));
    let a = w.task(top, "a", budget(4 * MS, 20 * MS));
    w.wake(a.task);
    w.run(MS);
    w.sleep(a.task);
    w.run(5 * MS);
    w.wake(a.task);
    w.run(6 * MS);
    w.graph.set(a.edge, budget(3 * MS, 20 * MS), w.now).unwrap();
    w.rest();
    w.run(30 * MS);
    assert_eq!(w.schedule(), "0 a, 1 idle, 5 a, 8 idle, 25 a, 28 idle");
}

#[test]
fn reservation_rule_11_deadlines_below_periods_are_hard() {
    for (order, replenishment, params, name) in [
        ("edf", "soft", short(2, 8, 10), "deadline_needs_hard_budget"),
        ("edf", "periodic", short(2, 8, 10), "deadline_needs_hard_budget"),
        ("fixed-priority", "soft", budget(2 * MS, 10 * MS), "recharge_needs_deadlines"),
        ("fixed-priority", "total-bandwidth", budget(2 * MS, 10 * MS), "recharge_needs_deadlines"),
        ("edf", "sporadic", budget(2 * MS, 4_000 * MS + 1), "sporadic_period_too_long"),
    ] {
        let (mut w, top) = World::one("reservation", kind(order, replenishment));
        let task = w.free_task("a");
        assert_eq!(w.try_under(top, task, params).unwrap_err().name(), name, "{order} {replenishment}");
        assert_eq!((w.graph.node(top).children, w.graph.node(top).sum), (0, 0));
    }
    for (order, replenishment, params) in [
        ("fixed-priority", "hard", short(2, 8, 10)),
        ("edf", "sporadic", budget(2 * MS, 4_000 * MS)),
        ("fixed-priority", "sporadic", budget(2 * MS, 10 * MS)),
    ] {
        let (mut w, top) = World::one("reservation", kind(order, replenishment));
        let task = w.free_task("a");
        w.try_under(top, task, params).unwrap();
    }
}

#[test]
fn reservation_rule_12_who_pays_for_stolen_time() {
    // 500 us are stolen in [0, 2): caught up with by 4.5, or lost
    for (charge, remaining_us, supply_us, ends) in [("own", 2_500, 4_000, "4.5"), ("wall", 2_000, 3_500, "4")]
    {
        let (mut w, top) = World::one("reservation", paid(charge, "0", "0"));
        let a = w.task(top, "a", budget(4 * MS, 20 * MS));
        w.wake(a.task);
        steal(&mut w, 2 * MS, 500 * US);
        assert_eq!(w.remaining(a.edge), (remaining_us * US) as i64, "{charge}");
        w.run(20 * MS);
        assert_eq!(w.schedule(), format!("0 a, {ends} idle, 20 a"));
        assert_eq!(w.supply(a.edge), supply_us * US);
        // time of other classes is stolen, too; a budget can be lost as a whole, and more of it is debt
        w.graph.outside(0, true, w.now);
        w.now = 25 * MS;
        w.graph.outside(0, false, w.now);
        w.rest();
        let lost = charge == "wall";
        let left = if lost { -(MS as i64) } else { 4 * MS as i64 };
        assert_eq!((w.remaining(a.edge), w.spent(a.edge), w.runs(0) == "a"), (left, lost, !lost));
        w.run(40 * MS);
        assert_eq!(w.remaining(a.edge), if lost { 3 } else { 4 } * MS as i64);
    }
    // whoever does not have the CPU loses nothing
    let (mut w, top) = World::one("reservation", paid("wall", "0", "0"));
    let a = w.task(top, "a", budget(4 * MS, 20 * MS));
    let b = w.task(top, "b", budget(4 * MS, 40 * MS));
    w.wake_all(&[a, b]);
    steal(&mut w, 2 * MS, MS);
    assert_eq!((w.remaining(a.edge), w.remaining(b.edge)), (2 * MS as i64, 4 * MS as i64));
    // every way of replenishment, and at every level of the path
    for replenishment in ["hard", "soft", "total-bandwidth", "periodic", "sporadic", "polling"] {
        let (mut w, top) = World::one("reservation", NONE);
        let mut params = kind("edf", replenishment);
        params[2] = 1;
        let inner = w.node("reservation", params);
        let outer = w.under(top, inner, budget(8 * MS, 20 * MS));
        let a = w.task(inner, "a", budget(4 * MS, 20 * MS));
        w.wake(a.task);
        steal(&mut w, 2 * MS, MS);
        let found = (w.remaining(outer), w.remaining(a.edge));
        assert_eq!(found, (7 * MS as i64, 2 * MS as i64), "{replenishment}");
        // it blocks in the moment when what is left is stolen
        steal(&mut w, 3 * MS, 0);
        w.now = 5 * MS;
        w.graph.taken(0, 2 * MS);
        w.sleep(a.task);
        w.wake(a.task);
        let soft = ["soft", "total-bandwidth"].contains(&replenishment);
        assert_eq!(w.spent(a.edge), !soft, "{replenishment}");
    }
}

#[test]
fn reservation_rule_13_a_budget_follows_what_was_stolen() {
    // R = 4, G = 0.5, a child that always wants the CPU: 1 ms stolen of each budget, later nothing
    let (mut w, top) = World::one("reservation", paid("wall", "0.5", "0"));
    let a = w.task(top, "a", budget(4 * MS, 20 * MS));
    w.wake(a.task);
    let mut expected = vec![];
    let (mut c, mut received) = (4_000_000, 0);
    for period in 0..45u64 {
        let begins = period * 20 * MS;
        assert_eq!(w.remaining(a.edge), c, "C in period {period}");
        let stolen = if period < 15 { MS } else { 0 };
        steal(&mut w, begins + 500 * US, 0);
        steal(&mut w, begins + 500 * US + stolen, stolen);
        w.run(begins + 20 * MS);
        let got = (w.supply(a.edge) - received) as i64;
        received = w.supply(a.edge);
        assert_eq!(got, c - stolen as i64, "P in period {period}");
        // C + G (R - P), rounded towards where it would come to rest
        let correction = 4_000_000 - got;
        c += if correction > 0 { (correction + 1) / 2 } else { (correction - 1) / 2 };
        expected.push(c);
    }
    assert_eq!(
        (expected[0], expected[1], expected[14], expected[44]),
        (4_500_000, 4_750_000, 4_999_970, 4_000_000)
    );
    // others and the cap leave 5 ms of the period; nothing winds up meanwhile
    for (cap, other) in [("0", 15), ("0.9", 13)] {
        let (mut w, top) = World::one("reservation", paid("wall", "1", cap));
        let a = w.task(top, "a", budget(4 * MS, 20 * MS));
        let b = w.task(top, "b", budget(other * MS, 20 * MS));
        w.wake(a.task);
        for period in 0..5u64 {
            steal(&mut w, period * 20 * MS + 2 * MS, 2 * MS);
            w.run((period + 1) * 20 * MS);
            assert!(
                (5 * MS - 20..=5 * MS).contains(&(w.remaining(a.edge) as u64)),
                "{}",
                w.remaining(a.edge)
            );
        }
        let task = w.free_task("more");
        let name = if cap == "0" { "utilisation_above_one" } else { "utilisation_above_cap" };
        assert_eq!(w.try_under(top, task, budget(MS, 100 * MS)).unwrap_err().name(), name);
        w.run(120 * MS);
        assert_eq!(w.remaining(a.edge), 4 * MS as i64);
        w.try_under(top, task, budget(MS, 100 * MS)).unwrap();
        assert_eq!(w.supply(b.edge), 0);
    }
    // who did not want it all was not cheated: C stays, and goes back when nothing is stolen any more
    let (mut w, top) = World::one("reservation", paid("wall", "1", "0"));
    let a = w.task(top, "a", budget(4 * MS, 20 * MS));
    for (period, stolen_us, amount_us) in
        [(0, 0, 4_000), (1, 0, 4_000), (2, 600, 4_000), (3, 0, 4_600), (4, 0, 4_000)]
    {
        w.run(period * 30 * MS);
        w.wake(a.task);
        assert_eq!(w.remaining(a.edge), (amount_us * US) as i64, "{period}");
        steal(&mut w, period * 30 * MS + MS, stolen_us * US);
        w.sleep(a.task);
    }
    // a budget that is set anew begins with itself; debt of a larger one is no more than one of the smaller
    let (mut w, top) = World::one("reservation", paid("wall", "1", "0"));
    let a = w.task(top, "a", budget(4 * MS, 20 * MS));
    w.wake(a.task);
    steal(&mut w, 4 * MS, 3_500 * US);
    w.run(20 * MS);
    assert_eq!(w.remaining(a.edge), (7_500 * US) as i64);
    w.overrun(35 * MS);
    assert_eq!((w.remaining(a.edge), w.edge(a).forgiven_ns), (-(7_500 * US as i64), 0));
    w.run(40 * MS);
    assert_eq!((w.remaining(a.edge), w.spent(a.edge), w.edge(a).forgiven_ns), (0, true, 3_500 * US));
    w.graph.set(a.edge, budget(5 * MS, 20 * MS), w.now).unwrap();
    w.rest();
    w.run(60 * MS);
    assert_eq!(w.remaining(a.edge), 5 * MS as i64);
    // one that waits for the end of its period with something left (rule 5) has no more than who has used it up
    let (mut w, top) = World::one("reservation", paid("wall", "0", "0"));
    let a = w.task(top, "a", short(4, 8, 20));
    w.wake(a.task);
    w.run(MS);
    w.sleep(a.task);
    w.run(9 * MS);
    w.wake(a.task);
    assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (3 * MS as i64, true));
    w.graph.node_set(top, paid("wall", "0.5", "0"), w.now).unwrap();
    w.graph.set(a.edge, budget(4 * MS, 20 * MS), w.now).unwrap();
    w.rest();
    assert_eq!((w.remaining(a.edge), w.spent(a.edge), w.edge(a).forgiven_ns), (0, true, 3 * MS));
    w.run(20 * MS);
    assert_eq!(w.remaining(a.edge), 4 * MS as i64);
    // what it does not go with
    let mut soft = paid("wall", "0.5", "0");
    soft[1] = 1;
    for (params, edge) in [
        (paid("own", "0.5", "0"), budget(2 * MS, 10 * MS)),
        (soft, budget(2 * MS, 10 * MS)),
        (paid("wall", "0.5", "0"), short(2, 8, 10)),
    ] {
        let (mut w, top) = World::one("reservation", params);
        let task = w.free_task("a");
        assert_eq!(w.try_under(top, task, edge).unwrap_err().name(), "feedback_needs_hard_wall_time");
        assert_eq!((w.graph.node(top).children, w.graph.node(top).sum), (0, 0));
    }
}

#[test]
fn reservation_rule_14_no_more_than_the_cap() {
    let (mut w, top) = World::one("reservation", paid("own", "0", "0.85"));
    let a = w.task(top, "a", budget(8 * MS, 10 * MS));
    let more = w.free_task("more");
    let refused = |w: &mut World, ns, name: &str| {
        assert_eq!(w.try_under(top, more, budget(ns, 10 * MS)).unwrap_err().name(), name);
    };
    refused(&mut w, 501 * US, "utilisation_above_cap");
    refused(&mut w, 2_001 * US, "utilisation_above_one");
    let b = w.task(top, "b", budget(500 * US, 10 * MS)); // exactly
                                                         // a lower one turns nobody out: who is there can become smaller, not larger
    w.graph.node_set(top, paid("own", "0", "0.5"), w.now).unwrap();
    let set = |w: &mut World, edge, us| {
        w.graph.set(edge, budget(us * US, 10 * MS), w.now).map_err(|error| error.name())
    };
    assert_eq!(set(&mut w, b.edge, 501), Err("utilisation_above_cap"));
    assert_eq!(set(&mut w, b.edge, 500), Ok(()));
    assert_eq!(set(&mut w, a.edge, 5_000), Ok(()));
    assert_eq!(set(&mut w, a.edge, 4_500), Ok(()));
    assert_eq!(set(&mut w, b.edge, 501), Err("utilisation_above_cap"));
    // none
    w.graph.node_set(top, paid("own", "0", "0"), w.now).unwrap();
    assert_eq!(set(&mut w, b.edge, 5_500), Ok(()));
    assert_eq!(set(&mut w, b.edge, 5_501), Err("utilisation_above_one"));
}

#[test]
fn reservation_ways_of_one_sleeper() {
    for (replenishment, expected) in [
        ("hard", "0 a, 1 idle, 5 a, 6 idle, 10 a, 12 idle"),
        ("soft", "0 a, 1 idle, 5 a, 12 idle"),
        ("total-bandwidth", "0 a, 1 idle, 5 a, 12 idle"),
        ("periodic", "0 a, 1 idle, 5 a, 6 idle, 10 a, 12 idle"),
        ("polling", "0 a, 1 idle, 10 a, 12 idle"),
        ("sporadic", "0 a, 1 idle, 5 a, 6 idle, 10 a, 11 idle"),
    ] {
        let (mut w, top) = World::one("reservation", kind("edf", replenishment));
        let a = w.task(top, "a", budget(2 * MS, 10 * MS));
        w.wake(a.task);
        w.run(MS);
        w.sleep(a.task);
        w.run(5 * MS);
        w.wake(a.task);
        w.run(12 * MS);
        w.sleep(a.task);
        w.run(30 * MS);
        assert_eq!(w.schedule(), expected, "{replenishment}");
    }
}

/// Hard or periodic budgets by priority, and a child with 2 ms in 10 that runs.
fn alone(replenishment: &str) -> (World, u32, Leaf) {
    let (mut w, top) = World::one("reservation", kind("fixed-priority", replenishment));
    let a = w.task(top, "a", ranked(2, 10, 1));
    w.wake(a.task);
    (w, top, a)
}

/// It has a lock with that ceiling from now on.
fn has_lock(w: &mut World, leaf: Leaf, ceiling: u64) {
    w.graph.begin_section(leaf.task, ceiling, 0, w.now).unwrap();
    w.rest();
}

/// It has left it.
fn leaves_lock(w: &mut World, leaf: Leaf) {
    w.graph.end_section(leaf.task, w.now).unwrap();
    w.rest();
}

#[test]
fn reservation_rule_15_locks_below_a_budget() {
    for replenishment in ["hard", "periodic"] {
        // 1 ms more than its budget, which comes off the next one
        let (mut w, _, a) = alone(replenishment);
        w.run(MS);
        has_lock(&mut w, a, 1);
        w.run(3 * MS);
        assert_eq!((w.remaining(a.edge), w.spent(a.edge)), (-(MS as i64), false));
        leaves_lock(&mut w, a);
        assert!(w.spent(a.edge));
        w.run(30 * MS);
        assert_eq!(w.schedule(), "0 a, 3 idle, 10 a, 11 idle, 20 a, 22 idle, 30 a", "{replenishment}");

        // no more than a whole budget
        let (mut w, _, a) = alone(replenishment);
        w.run(MS);
        has_lock(&mut w, a, 1);
        w.run(30 * MS);
        assert_eq!(w.schedule(), "0 a, 4 idle, 20 a, 22 idle, 30 a", "{replenishment}");
        assert_eq!(w.graph.end_section(a.task, w.now).unwrap_err().name(), "no_section");

        // the ceiling is above b, and goes before the equal c; d is above that
        let (mut w, top) = World::one("reservation", kind("fixed-priority", replenishment));
        let c = w.task(top, "c", ranked(1, 40, 3));
        let a = w.task(top, "a", ranked(9, 40, 1));
        let b = w.task(top, "b", ranked(1, 40, 2));
        let d = w.task(top, "d", ranked(1, 40, 4));
        w.wake(a.task);
        w.run(MS);
        has_lock(&mut w, a, 3);
        w.run(2 * MS);
        w.wake_all(&[b, c]);
        w.run(3 * MS);
        w.wake(d.task);
        w.run(5 * MS);
        leaves_lock(&mut w, a);
        w.run(12 * MS);
        assert_eq!(w.schedule(), "0 a, 3 d, 4 a, 5 c, 6 b, 7 a, 12 idle", "{replenishment}");

        // what is left is given up where it is too little
        let (mut w, _, a) = alone(replenishment);
        w.run(MS);
        let begin = |w: &mut World| w.graph.begin_section(a.task, 1, MS + 1, w.now).map_err(|e| e.name());
        assert_eq!(begin(&mut w), Err("section_beyond_budget"));
        w.graph.skip_to_next_budget(a.task, w.now).unwrap();
        w.rest();
        assert_eq!((w.spent(a.edge), w.edge(a).forgiven_ns), (true, MS));
        w.run(10 * MS);
        assert_eq!(begin(&mut w), Ok(()));
        w.run(11 * MS + 1);
        leaves_lock(&mut w, a);
        w.run(20 * MS);
        assert_eq!(w.schedule(), "0 a, 1 idle, 10 a, 12 idle, 20 a", "{replenishment}");

        // a lock stays when the budget is set, also while somebody else runs
        let (mut w, top, a) = alone(replenishment);
        let b = w.task(top, "b", ranked(1, 40, 2));
        w.run(MS);
        has_lock(&mut w, a, 1);
        w.run(2 * MS + 500 * US);
        w.wake(b.task);
        w.run(3 * MS);
        assert_eq!((w.runs(0), w.remaining(a.edge)), ("b", -(500 * US as i64)));
        w.graph.set(a.edge, ranked(2, 20, 1), w.now).unwrap();
        w.rest();
        w.run(4 * MS);
        leaves_lock(&mut w, a);
        w.run(12 * MS);
        assert_eq!(w.schedule(), "0 a, 2.5 b, 3.5 a, 4 idle, 10 a, 11 idle", "{replenishment}");

        // who sleeps has left its lock
        let (mut w, _, a) = alone(replenishment);
        w.run(20 * MS);
        w.run(21 * MS);
        assert_eq!(w.graph.begin_section(a.task, 1, 0, w.now), Ok(()));
        w.sleep(a.task);
        w.wake(a.task);
        w.run(30 * MS);
        assert_eq!(w.schedule(), "0 a, 2 idle, 10 a, 12 idle, 20 a, 21 a, 22 idle, 30 a");
    }
}

/// The task is below a node that is below the budget, and leaves its lock while that waits.
#[test]
fn a_lock_further_below_a_budget() {
    let (mut w, top) = World::one("reservation", kind("fixed-priority", "hard"));
    let inner = w.node("fixed-priority", NONE);
    let outer = w.under(top, inner, ranked(2, 10, 1));
    let a = w.task(inner, "a", NONE);
    let b = w.task(top, "b", ranked(3, 20, 2));
    w.wake(a.task);
    w.run(MS);
    has_lock(&mut w, a, 1);
    w.run(2 * MS + 500 * US);
    w.wake(b.task);
    w.run(3 * MS);
    assert_eq!((w.runs(0), w.remaining(outer)), ("b", -(500 * US as i64)));
    leaves_lock(&mut w, a);
    assert!(w.spent(outer));
    w.run(20 * MS);
    assert_eq!(w.schedule(), "0 a, 2.5 b, 5.5 idle, 10 a, 11.5 idle, 20 a");
}
