//! Random sets: sums, ranges, distributions, what cannot be drawn; and the text form of ReTAS.

use tierce_analysis::generate::{shares, tasks, Draw, Periods, Shares};
use tierce_analysis::{retas, utilisation, Task};
use tierce_guarantee::{ratio, Exact};

const MS: u64 = 1_000_000;
const PERIODS: Periods = Periods::Uniform(5 * MS, 50 * MS);

fn exact(share: f64) -> Exact {
    ratio((share * 1e9).round() as u64, 1_000_000_000)
}

/// The largest distance of what was drawn from a distribution, times the root of how many: above 1.95 for one seed in a thousand
/// (Kolmogorov).
fn distance(mut drawn: Vec<f64>, below: impl Fn(f64) -> f64) -> f64 {
    drawn.sort_by(f64::total_cmp);
    let count = drawn.len() as f64;
    let apart = |(at, value): (usize, &f64)| {
        let expected = below(*value);
        (expected - at as f64 / count).abs().max((expected - (at + 1) as f64 / count).abs())
    };
    drawn.iter().enumerate().map(apart).fold(0.0, f64::max) * count.sqrt()
}

/// The same of two samples of equal size.
fn apart(mut one: Vec<f64>, mut two: Vec<f64>) -> f64 {
    one.sort_by(f64::total_cmp);
    two.sort_by(f64::total_cmp);
    let count = one.len() as f64;
    let share = |value: &f64| two.partition_point(|other| other <= value) as f64 / count;
    let gaps = one.iter().enumerate().map(|(at, value)| ((at + 1) as f64 / count - share(value)).abs());
    gaps.fold(0.0, f64::max) * (count / 2.0).sqrt()
}

#[test]
fn sums_and_ranges() {
    println!("seeds 1 to 40");
    for seed in 1..=40 {
        let draw = &mut Draw::new(seed);
        let fixed = |tasks, sum, each| Shares::RandFixedSum { tasks, sum, each };
        for (kind, least, most, each) in [
            (Shares::UntilInRange { each: (0.1, 1.0), sum: (3.52, 3.54) }, 3.52, 3.54, (0.1, 1.0)),
            (Shares::UntilInRange { each: (0.1, 0.12), sum: (21.12, 21.24) }, 21.12, 21.24, (0.1, 0.12)),
            (Shares::UUniFastDiscard { tasks: 12, sum: 3.5 }, 3.5, 3.5, (0.0, 1.0)),
            (fixed(5, 3.5, (0.1, 0.9)), 3.5, 3.5, (0.1, 0.9)),
            (fixed(28, 3.53, (0.1, 0.15)), 3.53, 3.53, (0.1, 0.15)),
            (fixed(191, 21.2, (0.05, 0.4)), 21.2, 21.2, (0.05, 0.4)),
            (fixed(3, 3.0, (0.0, 1.0)), 3.0, 3.0, (0.0, 1.0)),
            (fixed(1, 0.4, (0.0, 1.0)), 0.4, 0.4, (0.0, 1.0)),
        ] {
            for periods in [PERIODS, Periods::LogUniform(MS, 1000 * MS), Periods::Uniform(100, 100)] {
                let set = tasks(&kind, &periods, draw).unwrap();
                let rounding: Exact = set.iter().map(|task| ratio(1, task.period_ns)).sum();
                let (sum, dust) = (utilisation(&set), ratio(1, 100_000_000));
                let (low, high) = (exact(least) - &rounding - &dust, exact(most) + rounding + dust);
                assert!(low <= sum && sum <= high, "seed {seed}, {kind:?}, {periods:?}: {sum}");
                let (Periods::Uniform(shortest, longest) | Periods::LogUniform(shortest, longest)) = periods;
                for task in &set {
                    assert!(shortest <= task.period_ns && task.period_ns <= longest);
                    assert!(
                        task.deadline_ns == task.period_ns
                            && 1 <= task.work_ns
                            && task.work_ns <= task.period_ns
                    );
                    let period = task.period_ns as f64;
                    let share = task.work_ns as f64 / period;
                    assert!(
                        each.0 - 1.0 / period <= share && share <= each.1 + 1.0 / period,
                        "{task:?} {kind:?}"
                    );
                }
            }
        }
    }
}

/// The same seed, the same set, everywhere.
#[test]
fn draws_are_pinned() {
    let set = |kind, periods, seed| {
        let set = tasks(&kind, &periods, &mut Draw::new(seed)).unwrap();
        set.iter().map(|task| (task.work_ns, task.period_ns)).collect::<Vec<_>>()
    };
    let log = Periods::LogUniform(MS, 1000 * MS);
    assert_eq!(set(Shares::UUniFastDiscard { tasks: 3, sum: 1.5 }, PERIODS, 7), UUNIFAST);
    assert_eq!(set(Shares::RandFixedSum { tasks: 3, sum: 1.5, each: (0.1, 0.9) }, log, 7), FIXED);
    assert_eq!(set(Shares::UntilInRange { each: (0.1, 1.0), sum: (1.7, 1.8) }, PERIODS, 7), PAPER);
}
const UUNIFAST: [(u64, u64); 3] = [(1146663, 45534231), (17476169, 31231863), (23210771, 25359885)];
const FIXED: [(u64, u64); 3] = [(7433800, 31189963), (15288785, 38092805), (50319888, 58490803)];
const PAPER: [(u64, u64); 4] =
    [(5600286, 11041623), (7655123, 23591363), (5034486, 9660197), (19049729, 48194334)];

/// One part of a vector that is uniform over all with the sum 1: P(X > x) = (1 − x)^(n − 1).
#[test]
fn marginals_of_the_simplex() {
    for (seed, n) in [(11, 2), (2, 5), (3, 20)] {
        let below = |x: f64| 1.0 - (1.0 - x).max(0.0).powi(n as i32 - 1);
        for kind in [
            Shares::UUniFastDiscard { tasks: n, sum: 1.0 },
            Shares::RandFixedSum { tasks: n, sum: 1.0, each: (0.0, 1.0) },
        ] {
            let draw = &mut Draw::new(seed);
            for part in [0, n - 1] {
                let drawn = (0..8_000).map(|_| shares(&kind, draw).unwrap()[part]).collect();
                let found = distance(drawn, below);
                assert!(found < 1.95, "seed {seed}, {kind:?}: {found}");
            }
        }
    }
    // Equal parts would be found out, and so would those of another n.
    assert!(distance(vec![0.2; 8_000], |x| 1.0 - (1.0 - x).powi(4)) > 50.0);
    let draw = &mut Draw::new(2);
    let five = (0..8_000).map(|_| shares(&Shares::UUniFastDiscard { tasks: 5, sum: 1.0 }, draw).unwrap()[0]);
    assert!(distance(five.collect(), |x| 1.0 - (1.0 - x).powi(3)) > 5.0);
}

/// Above 1 the two ways, a choice of simplices and throwing away, draw the same: single parts, largest and smallest ones.
#[test]
fn fixed_sums_agree_with_discarding() {
    for (seed, tasks, sum) in [(4, 3, 1.5), (5, 4, 2.2), (6, 6, 2.7)] {
        let drawn = |kind: Shares, seed| {
            let draw = &mut Draw::new(seed);
            (0..8_000).map(|_| shares(&kind, draw).unwrap()).collect::<Vec<_>>()
        };
        let one = drawn(Shares::UUniFastDiscard { tasks, sum }, seed);
        let two = drawn(Shares::RandFixedSum { tasks, sum, each: (0.0, 1.0) }, seed + 100);
        let looks: [fn(&Vec<f64>) -> f64; 3] = [
            |set| set[0],
            |set| set.iter().copied().fold(0.0, f64::max),
            |set| set.iter().copied().fold(1.0, f64::min),
        ];
        for (which, look) in looks.into_iter().enumerate() {
            let found = apart(one.iter().map(look).collect(), two.iter().map(look).collect());
            assert!(found < 1.95, "seed {seed}, {tasks} tasks of {sum}, {which}: {found}");
        }
        // What is left of 1 has the other sum.
        let other =
            drawn(Shares::RandFixedSum { tasks, sum: tasks as f64 - sum, each: (0.0, 1.0) }, seed + 200);
        let mirrored = other.iter().map(|set| 1.0 - set[0]).collect();
        let found = apart(two.iter().map(|set| set[0]).collect(), mirrored);
        assert!(found < 1.95, "seed {seed}, mirrored: {found}");
        let wrong = drawn(Shares::UUniFastDiscard { tasks, sum: sum * 0.9 }, seed);
        assert!(apart(wrong.iter().map(looks[1]).collect(), two.iter().map(looks[1]).collect()) > 5.0);
    }
}

#[test]
fn periods() {
    let drawn = |periods, seed| -> Vec<f64> {
        let kind = Shares::UUniFastDiscard { tasks: 1000, sum: 10.0 };
        let draw = &mut Draw::new(seed);
        let sets = (0..20).flat_map(|_| tasks(&kind, &periods, draw).unwrap());
        sets.map(|task| task.period_ns as f64 / MS as f64).collect()
    };
    let uniform = distance(drawn(PERIODS, 8), |ms| (ms - 5.0) / 45.0);
    assert!(uniform < 1.95, "{uniform}");
    let log = distance(drawn(Periods::LogUniform(MS, 1000 * MS), 9), |ms| ms.ln() / 1000f64.ln());
    assert!(log < 1.95, "{log}");
    assert!(distance(drawn(Periods::LogUniform(MS, 1000 * MS), 9), |ms| (ms - 1.0) / 999.0) > 50.0);
}

#[test]
fn refusals() {
    let rule = |kind, periods| tasks(&kind, &periods, &mut Draw::new(1)).unwrap_err().rule;
    let some = Shares::UUniFastDiscard { tasks: 4, sum: 1.0 };
    for periods in [Periods::Uniform(0, 5), Periods::LogUniform(6, 5), Periods::Uniform(1, u64::MAX)] {
        assert_eq!(rule(some, periods), "periods_are_a_range");
    }
    let fixed = |tasks, sum, each| Shares::RandFixedSum { tasks, sum, each };
    let until = |each, sum| Shares::UntilInRange { each, sum };
    for (kind, wanted) in [
        (Shares::UUniFastDiscard { tasks: 0, sum: 1.0 }, "tasks_are_some"),
        (fixed(1025, 1.0, (0.0, 1.0)), "tasks_are_some"),
        (until((1e-9, 1e-8), (0.5, 0.6)), "tasks_are_some"),
        (fixed(4, 1.0, (0.5, 0.4)), "shares_are_a_range"),
        (fixed(4, 1.0, (0.0, 1.1)), "shares_are_a_range"),
        (fixed(4, 1.0, (f64::NAN, 1.0)), "shares_are_a_range"),
        (until((0.0, 0.0), (1.0, 2.0)), "shares_are_a_range"),
        (until((0.1, 1.0), (2.0, 1.0)), "sum_is_a_range"),
        (until((0.1, 1.0), (f64::NAN, 1.0)), "sum_is_a_range"),
        (fixed(4, -1.0, (0.0, 1.0)), "sum_is_a_range"),
        (fixed(4, f64::INFINITY, (0.0, 1.0)), "sum_is_a_range"),
        (fixed(4, 1.0, (0.3, 1.0)), "sum_is_in_reach"),
        (fixed(4, 3.7, (0.0, 0.9)), "sum_is_in_reach"),
        (Shares::UUniFastDiscard { tasks: 3, sum: 3.5 }, "sum_is_in_reach"),
        (Shares::UUniFastDiscard { tasks: 400, sum: 399.0 }, "shares_are_at_most_1"),
        (until((0.4, 0.5), (0.2, 0.3)), "sum_is_hit"),
    ] {
        assert_eq!(rule(kind, PERIODS), wanted, "{kind:?}");
    }
}

/// Listing 15, with the offsets of the text and of the example; and back.
#[test]
fn the_form_of_retas() {
    let text = "1,2049267,2049267,15989152,15989152,15989152,2500000000,2500000000,\n\
                2,4696466,4696466,20601285,20601285,20601285,2500000000,2500000000,\n\
                5,1369002,1369002,6049432,6049432,6049432,5000000000,5000000000,\n";
    assert!(
        retas::is_retas(text)
            && retas::is_retas("\u{feff}# a set\n\n 7 , 1")
            && !retas::is_retas("name,work\n1,1")
    );
    let rows = retas::parse(text).unwrap();
    assert_eq!(retas::write(&rows), text);
    let entry = rows[2].entry();
    assert_eq!((&entry.name[..], entry.offset_ns), ("t5", 5_000_000_000));
    assert_eq!(entry.task, Task::new(1_369_002, 6_049_432));
    let one = "\u{feff}# a set\n\n 3, 1,2, 10,20, 15, 0,7\n";
    let row = retas::parse(one).unwrap()[0];
    assert_eq!(row.entry().task, Task { deadline_ns: 15, ..Task::new(2, 10) });
    assert_eq!(retas::write(&[row]), "3,1,2,10,20,15,0,7,\n");
    let drawn = retas::Row::new(4, &Task::new(3000, 10_000), 1_000_000_000, 1.5);
    assert_eq!(retas::write(&[drawn]), "4,2000,3000,10000,15000,10000,1000000000,1500000000,\n");
    assert_eq!(retas::parse(&retas::write(&[drawn])).unwrap(), [drawn]);
    for factor in [1.0, 0.5, f64::NAN, -1.0] {
        assert_eq!(retas::Row::new(1, &Task::new(3, 10), 5, factor).work_ns, (3, 3));
    }
    let far = retas::Row::new(1, &Task::new(3, 10), 5, f64::INFINITY);
    assert_eq!((far.work_ns, far.period_ns), ((1, 3), (10, 1 << 60)));
}

#[test]
fn refusals_of_the_form_of_retas() {
    for (text, faults) in [
        ("", &[(1, 1, "table_needs_tasks")][..]),
        ("1,1,1,9,9,9,0", &[(1, 1, "lines_have_eight_columns")]),
        ("1,1,1,9,9,9,0,0,0", &[(1, 1, "lines_have_eight_columns")]),
        ("1,1,1,9,9,9,0,0,,", &[(1, 1, "lines_have_eight_columns")]),
        ("1,1,1,9,9,9,0,0,\n1,1,1,9,9,9,0,0,", &[(2, 1, "names_are_unique")]),
        ("1,0,1,9,9,9,0,0,", &[(1, 3, "time_must_be_positive")]),
        ("1,1,1ms,9,9,-9,0,0,", &[(1, 5, "number_must_be_whole"), (1, 13, "number_must_be_whole")]),
        ("1,1,1,9,1152921504606846977,9,0,0,", &[(1, 9, "time_must_fit")]),
        ("1,1,1,9,99999999999999999999999,9,0,0,", &[(1, 9, "time_must_fit")]),
        ("1, 2,1,9,8,9,4,3,", &[(1, 4, "min_must_not_exceed_max")]),
        ("1,1,1,9,8,9,0,0,", &[(1, 7, "min_must_not_exceed_max")]),
        ("1,1,1,9,9,9,,0,", &[(1, 13, "number_must_be_whole")]),
    ] {
        let found = retas::parse(text).unwrap_err();
        let found: Vec<_> = found.iter().map(|fault| (fault.line, fault.column, fault.rule)).collect();
        assert_eq!(found, faults, "{text}");
    }
    let fault = &retas::parse("1,0,1,9,9,9,0,0,").unwrap_err()[0];
    let words = "1:3: time_must_be_positive: min_exec_time is a whole number, bound 1 to 1152921504606846976 ns (\"0\")";
    assert_eq!(fault.to_string(), words);
}

#[test]
fn no_text_of_retas_panics() {
    let mut state = 1u64;
    for _ in 0..20_000 {
        let text: String = std::iter::from_fn(|| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let words =
                ["1", "2", "99999999999999999999", ",", ",", ",", "\n", "-", "µ", "\u{feff}", "#", " ", "\""];
            (state >> 59 != 0).then(|| words[(state >> 33) as usize % words.len()])
        })
        .collect();
        if let Ok(rows) = retas::parse(&text) {
            assert_eq!(retas::parse(&retas::write(&rows)).unwrap(), rows);
        }
        let _ = (retas::is_retas(&text), retas::parse(&format!("1,1,1,2,2,2,0,0,\n{text}")));
    }
}
