//! Tables 5.1 and 5.2 of HLS, as printed.

use tierce_guarantee::schedulers::{by_name, Conversion, Provides, SCHEDULERS};
use tierce_guarantee::{cell, convert, converted, follows, show, whole, Cell, Free, Guarantee, Kind};

/// Rows and columns in the order of [`Kind::ALL`]; a number is that of the theorem.
const TABLE_5_2: [&str; 12] = [
    "t t f t f t t f f t t t",
    "f t f f f f f f f f t t",
    "f f t t 5.3 5.2 t f f 5.5 5.6 t",
    "f f f t 5.3 5.2 t f f 5.5 5.6 t",
    "f f t t t t t f f 5.4 5.6 t",
    "f f f t f t t f f 5.4 5.6 t",
    "f f f t 5.3 5.2 t f f 5.5 5.6 t",
    "f f t t t t t t f 5.4 5.6 t",
    "f f t t t t t t t 5.4 5.6 t",
    "f f f 5.7 f 5.7 t f f t t t",
    "f f f f f f f f f f t t",
    "f f f f f f f f f f f t",
];

/// The one cell in which we differ (docs/guarantees.md): a child that has periods names their ends as deadlines.
const FEASIBLE_HERE: (Kind, Kind) = (Kind::Resu, Kind::Resbs);

#[test]
fn table_5_2() {
    for (from, row) in Kind::ALL.into_iter().zip(TABLE_5_2) {
        let row: Vec<_> = row.split(' ').collect();
        assert_eq!(row.len(), 12);
        for (to, printed) in Kind::ALL.into_iter().zip(row) {
            let (feasible, rule) = match cell(from, to) {
                Cell::Feasible { rule, formula, because, .. } => {
                    assert!(formula.starts_with(to.name()) && !because.is_empty());
                    (true, rule)
                }
                Cell::Infeasible(refusal) => {
                    assert!(refusal.reason.len() > 20);
                    (false, refusal.rule)
                }
            };
            let as_printed = !matches!(printed, "f" | "5.3");
            assert_eq!(feasible, as_printed || (from, to) == FEASIBLE_HERE, "{from} to {to}");
            assert!(!as_printed || (from, to) != FEASIBLE_HERE);
            // The paper calls the cell of PSBE and RESPS trivial; it is Theorem 5.7 with z = 0.
            if printed.starts_with('5') {
                assert_eq!(rule, format!("Theorem {printed}"), "{from} to {to}");
            } else {
                assert!(
                    !rule.starts_with("Theorem") || (from, to) == (Kind::Psbe, Kind::Resps),
                    "{from} to {to}"
                );
            }
        }
    }
}

/// What a cell says exists, with its formula's numbers; what it refuses does not.
#[test]
fn cells_and_conversions_agree() {
    for from in Kind::ALL {
        let numbers = ["2ms", "10ms", "1ms"].iter().take(from.parameters().len());
        let shares = ["1/4", "5ms"].iter().take(from.parameters().len());
        let numbers: Vec<_> =
            if from.is_reservation() { numbers.copied().collect() } else { shares.copied().collect() };
        let source = Guarantee::parse(&format!("{from} {}", numbers.join(" "))).unwrap();
        for to in Kind::ALL {
            let derived = convert(&source, to, &Free::default());
            assert_eq!(derived.is_ok(), matches!(cell(from, to), Cell::Feasible { .. }), "{from} to {to}");
            let Ok(derivation) = derived else { continue };
            assert_eq!(derivation.result().kind(), to);
            assert!(derivation.steps.len() == usize::from(from != to));
            let expected = match (from, to) {
                _ if from == to => source.to_string(),
                (_, Kind::Null) => "NULL".into(),
                (Kind::All, Kind::Resps) => "RESPS 10ms 10ms 0ns".into(),
                (Kind::All, Kind::Psbe) => "PSBE 1 0ns".into(),
                (Kind::All, to) if to.is_reservation() => format!("{to} 10ms 10ms"),
                (Kind::All, to) => format!("{to} 1"),
                (Kind::Resu, Kind::Resbs) => "RESBS 2.5ms 10ms".into(),
                (Kind::Psbe, Kind::Resps) => "RESPS 5ms 40ms 0ns".into(), // y = 2δ/s when nobody says
                (Kind::Psbe, to) if to.is_reservation() => format!("{to} 5ms 40ms"),
                (from, Kind::Ps) if from.is_reservation() => "PS 1/5".into(),
                (_, Kind::Ps) => "PS 1/4".into(),
                (from, Kind::Psbe) if from.is_basic() => "PSBE 1/5 3.2ms".into(),
                (_, Kind::Psbe) => "PSBE 1/5 1.6ms".into(),
                (from, Kind::Rescs) if from.is_basic() => "RESCS 2ms 18ms".into(),
                (_, Kind::Resps) => "RESPS 2ms 10ms 0ns".into(),
                _ => format!("{to} 2ms 10ms"),
            };
            assert_eq!(derivation.result().to_string(), expected, "{from} to {to}");
        }
    }
}

#[test]
fn table_5_1() {
    let rows = [
        ("fixed-priority", "any -> (any, NULL+)"),
        ("join", ""),
        ("limit", "RESBS -> RESBH"),
        ("ps", "PS -> PS+, PSBE -> PSBE+, RESU -> PSBE+, RESCH -> PSBE+"),
        ("rez", "ALL -> RESBH+, RESU -> RESBH+"),
        ("time-sharing", "NULL -> NULL+"),
        ("bss-i", "ALL -> RESU+, RESU -> RESU+"),
        ("bvt", "PS -> PS+, RESU -> PS+, RESCH -> PS+"),
        ("cbs", "ALL -> RESBH+, RESU -> RESBH+"),
        ("eevdf", "ALL -> PSBE+, RESU -> PSBE+"),
        ("linux", "NULL -> NULL+"),
        ("lottery", "PS -> PS+, RESU -> PS+, RESCH -> PS+"),
        ("resource-kernel", "ALL -> (RESBS+, RESBH+), RESU -> (RESBS+, RESBH+)"),
        ("rialto", "ALL -> RESCS+, RESU -> RESCS+"),
        ("sfq", "PS -> PS+, PSBE -> PSBE+, RESU -> PSBE+, RESCH -> PSBE+"),
        ("sfs", "PS+ -> PS+, RESU+ -> PS+, RESCH+ -> PS+"),
        ("smart", "NULL -> NULL+"),
        ("spring", "ALL -> RESBH+, RESU -> RESBH+"),
        ("stride", "PS -> PS+, RESU -> PS+, RESCH -> PS+"),
        ("tbs", "ALL -> RESBS+, RESU -> RESBS+"), // the second is printed as RESBH: a slip
        ("windows-2000", "NULL -> NULL+"),
    ];
    let found: Vec<_> = SCHEDULERS
        .iter()
        .map(|scheduler| {
            let conversions: Vec<_> = scheduler.conversions.iter().map(Conversion::to_string).collect();
            (scheduler.name(), conversions.join(", "))
        })
        .collect();
    assert_eq!(found, rows.map(|(name, row)| (name, row.to_string())));
    assert_eq!(by_name("pshed").map(|row| row.name()), Some("bss-i"));
    assert!(by_name("cfs").is_none());
}

fn accepted(scheduler: &str, supply: &str, quantum_ms: Option<u64>) -> Vec<String> {
    let supply = Guarantee::parse(supply).unwrap();
    let quantum = quantum_ms.map(|quantum| whole(quantum * 1_000_000));
    match by_name(scheduler).unwrap().accept(&supply, quantum.as_ref()) {
        Ok(accepted) => accepted.iter().map(|accepted| accepted.conversion.to_string()).collect(),
        Err(refusals) => refusals.iter().map(|refusal| format!("refused: {}", refusal.rule)).collect(),
    }
}

/// What can be converted into an acceptable guarantee is acceptable; Theorem 5.1 has a condition.
#[test]
fn what_schedulers_accept() {
    assert_eq!(
        accepted("rez", "RESBH 5ms 10ms", None),
        ["refused: not every instant", "refused: deadlines of the child"]
    );
    assert_eq!(accepted("rez", "ALL", None), ["ALL -> RESBH+", "RESU -> RESBH+"]);
    assert_eq!(accepted("sfq", "RESBH 5ms 10ms", None), ["PS -> PS+", "PSBE -> PSBE+"]);
    assert_eq!(accepted("bvt", "RESCH 5ms 10ms", Some(10)), ["PS -> PS+", "RESCH -> PS+"]);
    assert_eq!(accepted("bvt", "RESCH 5ms 10ms", Some(20)), ["PS -> PS+"]);
    assert_eq!(accepted("sfq", "RESNH 5ms 10ms", Some(10)), ["PS -> PS+", "PSBE -> PSBE+", "RESCH -> PSBE+"]);
    assert_eq!(accepted("time-sharing", "PS 1/2", None), ["NULL -> NULL+"]);
    assert_eq!(accepted("fixed-priority", "PS 1/2", None), ["any -> (any, NULL+)"]);
    let refused = accepted("lottery", "NULL", Some(10));
    assert_eq!(refused.len(), 3);
    assert!(matches!(by_name("fixed-priority").unwrap().conversions[0].provides, Provides::Itself));
}

/// Whether it follows, with and without the steps.
#[test]
fn what_follows_is_what_is_shown() {
    let kinds = ["RESBH", "RESBS", "RESCH", "RESCS", "RESNH"];
    let of_kind = |kind: &'static str| {
        [(1, 2), (2, 4), (3, 4), (4, 4), (2, 8)].into_iter().map(move |(x, y)| format!("{kind} {x}ms {y}ms"))
    };
    let others =
        ["ALL", "NULL", "PS 1/2", "PS 1/4", "PSBE 1/2 1ms", "PSBE 1/2 4ms", "RESU 1/2", "RESPS 1ms 4ms 1ms"];
    let texts = kinds.into_iter().flat_map(of_kind).chain(others.map(String::from));
    let all: Vec<Guarantee> = texts.map(|text| Guarantee::parse(&text).expect(&text)).collect();
    for source in &all {
        for goal in &all {
            let shown = show(source, goal, &Free::default()).is_ok();
            assert_eq!(follows(source, goal), shown, "{source}: {goal}");
            let found = convert(source, goal.kind(), &Free::default()).ok();
            let found = found.map(|found| found.result().clone());
            assert_eq!(converted(source, goal.kind()), found, "{source}: {}", goal.kind());
        }
    }
}
