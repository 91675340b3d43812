//! Each policy by itself: who runs from when on.

mod common;

use common::check;
use expect_test::expect;

#[test]
fn edf() {
    check("cpus 1; edf; A 2/10; B 3/15; 20", expect!["0 A, 2 B, 5 idle, 10 A, 12 idle, 15 B, 18 idle"]);
    // an earlier deadline preempts, a later one does not
    check("cpus 1; edf; A 5/20; B 2/7 phase 2; 14", expect!["0 A, 2 B, 4 A, 7 idle, 9 B, 11 idle"]);
    check("cpus 1; edf; A 5/10; B 2/7 phase 4; 14", expect!["0 A, 5 B, 7 idle, 10 A, 11 B, 13 A"]);
    // equal deadlines: the first in the text, which preempts
    check("cpus 1; edf; A 4/10; B 4/10; 10", expect!["0 A, 4 B, 8 idle"]);
    check("cpus 1; edf; A 2/5 phase 5; B 8/10; 12", expect!["0 B, 5 A, 7 B, 10 A"]);
    // deadline before period
    check("cpus 1; edf; A 4/10; B 2/20 deadline 3 phase 1; 10", expect!["0 A, 1 B, 3 A, 6 idle"]);
    // utilisation 1 with nothing to spare
    check("cpus 1; edf; A 2/4; B 4/8; 16", expect!["0 A, 2 B, 4 A, 6 B, 8 A, 10 B, 12 A, 14 B"]);
    // too much work: jobs wait in their task, misses are told at the deadline
    check(
        "cpus 1; edf; A 3/4; B 2/4; 20",
        expect![[r#"
        0 A, 3 B, 5 A, 8 B, 10 A, 13 B, 15 A, 18 B
        misses: 4 B, 8 B, 12 A, 12 B, 16 A, 16 B"#]],
    );
}

#[test]
fn fixed_priority() {
    check(
        "cpus 1; fixed-priority; A 2/5 priority 2; B 4/10 priority 1; 20",
        expect!["0 A, 2 B, 5 A, 7 B, 8 idle, 10 A, 12 B, 15 A, 17 B, 18 idle"],
    );
    // equal priorities: first come, first served; no preemption
    check("cpus 1; fixed-priority; A 3/10 phase 1; B 3/10; 10", expect!["0 B, 3 A, 6 idle"]);
    // a preempted child goes on before those that came after it
    check(
        "cpus 1; fixed-priority; A 4/20 priority 1; B 4/20 phase 1 priority 1; C 2/20 phase 2 priority 2; 20",
        expect!["0 A, 2 C, 4 A, 6 B, 10 idle"],
    );
    // the lower one starves
    check(
        "cpus 1; fixed-priority; A 5/5 priority 2; B 1/5 priority 1; 12",
        expect![[r#"
        0 A
        misses: 5 B, 10 B"#]],
    );
}

#[test]
fn round_robin() {
    check(
        "cpus 1; round-robin quantum 5; A busy; B busy; C busy; 40",
        expect!["0 A, 5 B, 10 C, 15 A, 20 B, 25 C, 30 A, 35 B"],
    );
    // blocking gives the rest of a turn away, waking queues at the end
    check(
        "cpus 1; round-robin quantum 4; A busy; B 1/10; C busy; 24",
        expect!["0 A, 4 B, 5 C, 9 A, 13 C, 17 B, 18 A, 22 C"],
    );
    // alone: no turns
    check("cpus 1; round-robin quantum 4; A busy; 40", expect!["0 A"]);
}

#[test]
fn fair() {
    check(
        "cpus 1; fair quantum 3; A busy weight 100; B busy weight 200; 27",
        expect!["0 A, 3 B, 9 A, 12 B, 18 A, 21 B"],
    );
    // who sleeps earns no credit
    check(
        "cpus 1; fair quantum 2; A busy; B busy; C 10/30 phase 9; 30",
        expect!["0 A, 2 B, 4 A, 6 B, 8 A, 10 B, 12 C, 14 A, 16 B, 18 C, 20 A, 22 B, 24 C, 26 A, 28 B"],
    );
    // warp lets a waking child in at once
    check(
        "cpus 1; fair quantum 10; A busy; B 1/10 phase 5 warp 6; 30",
        expect!["0 A, 5 B, 6 A, 15 B, 16 A, 25 B, 26 A"],
    );
    check("cpus 1; fair quantum 10; A busy; B 1/10 phase 5; 30", expect!["0 A, 10 B, 11 A, 21 B, 22 A"]);
}

#[test]
fn reservation() {
    check(
        "cpus 1; reservation; A busy budget 2/10; 30",
        expect!["0 A, 2 idle, 10 A, 12 idle, 20 A, 22 idle"],
    );
    check("cpus 1; reservation; A busy budget 2/10; B busy budget 3/15; 45", expect!["0 A, 2 B, 5 idle, 10 A, 12 idle, 15 B, 18 idle, 20 A, 22 idle, 30 A, 32 B, 35 idle, 40 A, 42 idle"]);
    // EDF between servers
    check("cpus 1; reservation; A busy budget 10/20; B busy budget 2/5; 40", expect!["0 B, 2 A, 5 B, 7 A, 10 B, 12 A, 16 B, 18 idle, 20 B, 22 A, 25 B, 27 A, 30 B, 32 A, 36 B, 38 idle"]);
    // more work than budget: throttled, the job goes on in the next period
    check(
        "cpus 1; reservation; A 3/20 budget 2/10; 40",
        expect!["0 A, 2 idle, 10 A, 11 idle, 20 A, 22 idle, 30 A, 31 idle"],
    );
    // after the end of its period a child that wakes begins a new one
    check(
        "cpus 1; reservation; A 1/13 budget 2/10; 30",
        expect!["0 A, 1 idle, 13 A, 14 idle, 26 A, 27 idle"],
    );
    check("cpus 1; reservation; A 1/19 budget 2/10; B busy budget 2/10; 60", expect!["0 A, 1 B, 3 idle, 10 B, 12 idle, 19 A, 20 B, 22 idle, 30 B, 32 idle, 38 A, 39 idle, 40 B, 42 idle, 50 B, 52 idle, 57 A, 58 idle"]);
    // all of the CPU
    check(
        "cpus 1; reservation; A busy budget 5/10; B busy budget 10/20; 40",
        expect!["0 A, 5 B, 10 A, 15 B, 20 A, 25 B, 30 A, 35 B"],
    );
}
