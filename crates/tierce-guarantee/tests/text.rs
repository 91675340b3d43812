//! Texts of guarantees: what is shown parses to the same, every fault is reported with its place, nothing panics.

use proptest::prelude::*;
use tierce_guarantee::{ratio, whole, Guarantee, Kind, Wanted};

#[test]
fn forms() {
    for (text, shown) in [
        ("ALL", "ALL"),
        ("RESU 0.5", "RESU 1/2"),
        ("RESBH 2ms 10ms", "RESBH 2ms 10ms"),
        ("RESBS 2000us 0.01s", "RESBS 2ms 10ms"),
        ("RESCH 1µs 1ms", "RESCH 1us 1ms"),
        ("  RESCS\t40/3ms   20ms ", "RESCS 40/3ms 20ms"),
        ("RESPS 5ms 33ms 10ms", "RESPS 5ms 33ms 10ms"),
        ("RESNH 1_000ns 1min", "RESNH 1us 60s"),
        ("RESSH 1ms 2ms 0ns", "RESSH 1ms 2ms 0ns"),
        ("PSBE 3/6 12.5ms", "PSBE 1/2 12.5ms"),
        ("PS 1", "PS 1"),
        ("NULL", "NULL"),
    ] {
        let guarantee = Guarantee::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults}"));
        assert_eq!(guarantee.to_string(), shown);
        assert_eq!(Guarantee::parse(shown), Ok(guarantee));
    }
}

/// One row per refusal: text, columns and rules of all its faults.
#[test]
fn refusals() {
    for (text, faults) in [
        ("", &[(1, "guarantee_must_be_known")][..]),
        ("RESXX 1ms 2ms", &[(1, "guarantee_must_be_known")]),
        ("resbs 1ms 2ms", &[(1, "guarantee_must_be_known")]),
        ("RESBS 1ms", &[(7, "guarantee_must_have_its_numbers")]),
        ("RESBS", &[(1, "guarantee_must_have_its_numbers")]),
        ("RESBS 1ms 2ms 3ms", &[(15, "guarantee_must_have_its_numbers")]),
        (
            "RESBS 1 ms 2 ms",
            &[
                (7, "time_needs_a_unit"),
                (9, "number_must_be_a_number"),
                (12, "guarantee_must_have_its_numbers"),
            ],
        ),
        ("ALL 1", &[(5, "guarantee_must_have_its_numbers")]),
        ("RESBS 1 2ms", &[(7, "time_needs_a_unit")]),
        ("RESBS 1h 2ms", &[(7, "unit_must_exist")]),
        ("RESBS x 2", &[(7, "number_must_be_a_number"), (9, "time_needs_a_unit")]),
        ("RESBS -1ms 2ms", &[(7, "number_must_not_be_negative")]),
        ("RESBS 0ms 2ms", &[(7, "guarantee_numbers_are_positive")]),
        ("RESBS 0ms 0ms", &[(7, "guarantee_numbers_are_positive"), (11, "guarantee_numbers_are_positive")]),
        ("RESBS 3ms 2ms", &[(7, "amount_must_not_exceed_period")]),
        ("RESPS 1ms 2ms 3ms", &[(15, "overrun_must_not_exceed_period")]),
        ("PSBE 1.5 5ms", &[(6, "share_must_not_exceed_1")]),
        ("PSBE 5ms 0.5", &[(6, "share_has_no_unit"), (10, "time_needs_a_unit")]),
        ("PS 50%", &[(4, "share_must_be_a_fraction")]),
        ("PS 1/0", &[(4, "number_must_not_divide_by_0")]),
        ("PS 0", &[(4, "guarantee_numbers_are_positive")]),
        ("PS 1e-3", &[(4, "number_must_be_a_number")]),
        ("PS .5", &[(4, "number_must_be_a_number")]),
        ("RESBS 1ms 99999999999999s", &[(11, "time_must_fit")]),
        ("PS 0.00000000000000000000000000000000000000000001", &[(4, "number_must_fit")]),
    ] {
        let found = Guarantee::parse(text).expect_err(text).0;
        let found: Vec<_> = found.iter().map(|fault| (fault.column, fault.rule)).collect();
        assert_eq!(found, faults, "{text}");
    }
}

#[test]
fn a_fault_says_value_bound_and_help() {
    let faults = Guarantee::parse("RESBS 3ms 2ms").unwrap_err();
    let text = "column 7: amount_must_not_exceed_period: more CPU time than the period has (\"3ms\"; allowed: at most 2ms)";
    assert_eq!(faults.to_string(), text);
    assert!(Guarantee::parse("Psbe 1/2 5ms").unwrap_err().to_string().ends_with("did you mean PSBE?"));
    assert!(Guarantee::parse("RESBS 1 ms 2 ms").unwrap_err().to_string().contains("without a blank"));
}

#[test]
fn open_numbers() {
    let wanted = Wanted::parse("RESCS ? 33ms").unwrap();
    assert_eq!((wanted.open(), wanted.full(), wanted.to_string()), (1, None, "RESCS ? 33ms".into()));
    assert_eq!(Wanted::parse("PSBE").unwrap(), Wanted::any(Kind::Psbe));
    assert!(Guarantee::parse("RESCS ? 33ms").is_err());
}

#[test]
fn what_is_built_keeps_its_bounds() {
    assert_eq!(Guarantee::psbe(ratio(3, 2), whole(1)), None);
    assert_eq!(Guarantee::reservation(Kind::Resbs, whole(2), whole(1)), None);
    assert_eq!(Guarantee::reservation(Kind::Psbe, whole(1), whole(2)), None);
    assert_eq!(Guarantee::new(Kind::Ps, vec![]), None);
}

proptest! {
    #[test]
    fn what_is_shown_parses_to_the_same(kind in 0usize..12, a in 1u64..1 << 59, b in 1u64..1 << 59, c in 1u64..999) {
        let kind = Kind::ALL[kind];
        let (less, more) = (ratio(a.min(b), c), ratio(a.max(b), c));
        let values = match kind.parameters().len() {
            0 => vec![],
            1 => vec![less / more],
            2 if kind == Kind::Psbe => vec![ratio(c, 1000), less],
            2 => vec![less, more],
            _ => vec![less.clone(), more, less],
        };
        let guarantee = Guarantee::new(kind, values).unwrap();
        let text = guarantee.to_string();
        if text.split_whitespace().all(|word| word.len() <= 40) {
            prop_assert_eq!(Guarantee::parse(&text), Ok(guarantee));
        }
    }

    #[test]
    fn nothing_panics(text in "\\PC*", words in prop::collection::vec("(RES[BCPNS][HS]|PSBE|PS|\\?|[0-9./_-]{0,8}(ms|s|µs)?|\\PC)", 0..6)) {
        for text in [text, words.join(" ")] {
            if let Ok(wanted) = Wanted::parse(&text) {
                prop_assert_eq!(Wanted::parse(&wanted.to_string()), Ok(wanted));
            }
        }
    }
}
