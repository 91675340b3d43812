//! Every worked number of the papers about guarantees.

use tierce_guarantee::schedulers::{self, Joining, SfqBound};
use tierce_guarantee::{
    best, convert, derive, ratio, show, weakest, whole, Exact, Free, Guarantee, Kind, Supply, Wanted,
};

const MS: u64 = 1_000_000;

fn g(text: &str) -> Guarantee {
    Guarantee::parse(text).unwrap_or_else(|faults| panic!("{text}: {faults}"))
}

fn ms(time: u64) -> Exact {
    whole(time * MS)
}

fn converted(source: &str, wanted: &str) -> String {
    let derivation = derive(&g(source), &Wanted::parse(wanted).unwrap(), &Free::default());
    derivation.unwrap_or_else(|refusal| panic!("{source} to {wanted}: {refusal}")).result().to_string()
}

fn solved(source: &str, goal: &str) -> String {
    let derivation = weakest(&Wanted::parse(source).unwrap(), &g(goal), &Free::default());
    derivation.unwrap_or_else(|refusal| panic!("{source} for {goal}: {refusal}")).source.to_string()
}

#[test]
fn theorems() {
    assert_eq!(converted("RESBS 3ms 8ms", "RESCS"), "RESCS 3ms 13ms"); // 5.2
    assert_eq!(converted("RESCS 10ms 20ms", "PSBE"), "PSBE 1/2 5ms"); // 5.4
    assert_eq!(converted("RESBS 10ms 20ms", "PSBE"), "PSBE 1/2 10ms"); // 5.5
    assert_eq!(converted("RESNH 10ms 20ms", "PS"), "PS 1/2"); // 5.6
    assert_eq!(converted("PSBE 0.25 75ms", "RESCS ? 400ms"), "RESCS 25ms 400ms"); // 5.7
    let free = Free { period: Some(ms(400)), ..Free::default() };
    let derivation = convert(&g("PSBE 0.25 75ms"), Kind::Rescs, &free).unwrap();
    assert_eq!(derivation.result(), &g("RESCS 25ms 400ms"));
    let free = Free { stretch: Some(ms(5)), ..Free::default() };
    let derivation = convert(&g("RESBS 3ms 8ms"), Kind::Rescs, &free).unwrap();
    assert_eq!(derivation.result(), &g("RESCS 3ms 18ms"));
}

#[test]
fn the_amount_of_theorem_5_7_is_0_at_its_bound() {
    let free = Free { period: Some(ms(300)), ..Free::default() };
    assert!(convert(&g("PSBE 1/4 75ms"), Kind::Rescs, &free).is_err());
}

#[test]
fn theorem_5_3_and_its_exception() {
    let refusal = convert(&g("RESBS 3ms 8ms"), Kind::Resch, &Free::default()).unwrap_err();
    assert_eq!(refusal.rule, "Theorem 5.3");
    assert_eq!(converted("RESBS 8ms 8ms", "RESCH"), "RESCH 8ms 8ms");
    assert_eq!(converted("RESBS 8ms 8ms", "ALL"), "ALL");
    assert_eq!(converted("ALL", "RESBH 5ms 5ms"), "RESBH 5ms 5ms");
    assert!(convert(&g("ALL"), Kind::Resbh, &Free::default()).is_err());
}

/// 5.3.3.1: SFQ with a quantum of 10 ms below RESCS 10 20, six threads.
#[test]
fn start_time_fair_queuing() {
    let weights: Vec<_> =
        [(5, 10), (1, 10), (1, 10), (1, 10), (1, 10), (1, 10)].map(|(a, b)| ratio(a, b)).into();
    let paper = schedulers::sfq(&g("RESCS 10ms 20ms"), &ms(10), &weights, SfqBound::Paper).unwrap();
    let names: Vec<_> = paper.guarantees.iter().map(Guarantee::to_string).collect();
    assert_eq!(names[0], "PSBE 1/4 75ms");
    assert!(names[1..].iter().all(|name| name == "PSBE 1/20 23ms"), "{names:?}");
    assert_eq!(converted(&names[0], "RESCS ? 400ms"), "RESCS 25ms 400ms");
    let rules: Vec<_> = paper.derivation(0).steps.iter().map(|step| step.rule).collect();
    assert_eq!(rules, ["Theorem 5.4", "equation 5.2"]);
    let tight = schedulers::sfq(&g("PSBE 1/2 5ms"), &ms(10), &weights, SfqBound::Tight).unwrap();
    assert_eq!(tight.guarantees[0], g("PSBE 1/4 42.5ms"));
}

/// "To bring the level of pessimism down to 10 % the period would have to be 3000 ms": 0.9 of the share then arrives.
#[test]
fn pessimism_of_start_time_fair_queuing() {
    let amount = |period| Supply::of(&g("PSBE 1/4 75ms")).at(&ms(period)) / ms(period);
    assert_eq!(amount(400), ratio(1, 16)); // 6.25 %
    assert_eq!(amount(3000), ratio(9, 40)); // 22.5 %, which is 25 % less 10 %
    assert!(amount(2999) < ratio(9, 40));
}

/// 5.3.3.2: EEVDF for 5 ms / 33 ms.
#[test]
fn earliest_eligible_virtual_deadline_first() {
    assert_eq!(solved("PSBE ? 10ms", "RESCS 5ms 33ms"), "PSBE 5/11 10ms"); // 15/33 = 0.4545…
    assert_eq!(solved("PSBE 1/6 ?", "RESCS 5ms 33ms"), "PSBE 1/6 0.5ms".replace("0.5ms", "500us"));
    let children = schedulers::eevdf(&Guarantee::all(), &ms(10), &[ratio(15, 33)]).unwrap();
    assert_eq!(children.guarantees, [g("PSBE 15/33 10ms")]);
    assert_eq!(converted("PSBE 15/33 10ms", "RESCS ? 33ms"), "RESCS 5ms 33ms");
    // in every window, and below less than a CPU
    let weights = [ratio(15, 33), ratio(18, 33)];
    let in_windows = |supply: Guarantee| schedulers::eevdf_by_weight(&supply, &ms(11), &weights).unwrap();
    assert_eq!(in_windows(Guarantee::all()).guarantees[0], g("PSBE 15/33 17ms"));
    let below = in_windows(g("RESBS 11ms 22ms"));
    assert_eq!(below.accepted.result(), &g("PSBE 0.5 11ms"));
    assert_eq!(below.guarantees[0], g("PSBE 15/66 22ms"));
}

/// Figure 7.2: SFQ with a quantum of 5 ms below RESBS 10 20, weights 0.6 and two others.
#[test]
fn home_computer() {
    let weights = [ratio(6, 10), ratio(2, 10), ratio(2, 10)];
    let sfq =
        |quantum| schedulers::sfq(&g("RESBS 10ms 20ms"), &ms(quantum), &weights, SfqBound::Paper).unwrap();
    assert_eq!(sfq(5).accepted.result(), &g("PSBE 0.5 10ms"));
    assert_eq!(sfq(5).guarantees[0], g("PSBE 0.3 35ms"));
    assert_eq!(sfq(10).guarantees[0], g("PSBE 0.3 58ms"));
    // "A maximum starvation period of roughly 100 ms": 35/0.3 = 116.7 ms.
    let gap = Supply::of(&g("PSBE 0.3 35ms")).longest_gap().unwrap();
    assert_eq!(gap, ratio(350 * MS, 3));
}

/// 5.3.1: RESBS 10 20 below RESU 0.5 is a quarter of the CPU.
#[test]
fn reservations_in_the_time_of_a_slower_processor() {
    let real = schedulers::of_slower(&ratio(1, 2), &g("RESBS 10ms 20ms")).unwrap();
    assert_eq!((real.share(), real), (ratio(1, 4), g("RESBS 5ms 20ms")));
}

/// 5.3.1.2: RESBS 2 30 and RESBS 3 30 are 5 30 only in phase; a window of 30 may otherwise hold 2.
#[test]
fn joins() {
    let parents = [g("RESBH 2ms 30ms"), g("RESBS 3ms 30ms")];
    let all = |how| -> Vec<String> {
        let joined = schedulers::join(&parents, how).unwrap();
        joined.iter().map(|joined| joined.guarantee.to_string()).collect()
    };
    let apart = ["RESBS 2ms 30ms", "RESBS 3ms 30ms", "PS 1/6", "PSBE 1/6 137/15ms"];
    assert_eq!(all(Joining::default()), apart);
    let in_phase = Joining { in_phase: true, ..Joining::default() };
    assert_eq!(all(in_phase).last().unwrap(), "RESBS 5ms 30ms");
    let cpus = Joining { several_cpus: true, in_phase: true };
    assert_eq!(all(cpus), ["RESBS 2ms 30ms", "RESBS 3ms 30ms"]);
    assert_eq!(schedulers::joined_supply(&parents, &ms(58)), Some(g("RESCS 5ms 58ms")));
    let continuous = [g("RESCH 2ms 30ms"), g("RESNH 3ms 30ms"), Guarantee::null()];
    let joined = schedulers::join(&continuous, Joining::default()).unwrap();
    assert!(joined.iter().any(|joined| joined.guarantee == g("RESCS 5ms 30ms")));
    let refusal = schedulers::join(&[g("PS 0.6"), g("PS 0.5")], Joining::default()).unwrap_err();
    assert_eq!(refusal.rule, "more than one CPU");
}

/// The paper's sum fails by hand: forty periods from 0 and forty from 15, the amount now at the begin, now at the end.
/// Whatever the phase, some window of 30 is short of 5, and one holds only 2.
#[test]
fn the_sum_of_basic_reservations_out_of_phase_fails() {
    let early = |period: u64| period.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 63 == 0;
    let gives = |t: u64, amount: u64, salt: u64| {
        let (period, at) = (t / 30, t % 30);
        if early(period + salt) {
            at < amount
        } else {
            at >= 30 - amount
        }
    };
    let window = |begin: u64| (begin..begin + 30).filter(|t| gives(*t, 2, 0) || gives(*t + 15, 3, 7)).count();
    assert!((0..30).all(|phase| (0..39).any(|period| window(phase + 30 * period) < 5)));
    assert_eq!((0..39).map(|period| window(30 * period)).min(), Some(2));
}

#[test]
fn limits() {
    let derivation = schedulers::limit(&g("RESBS 3ms 8ms")).unwrap();
    assert_eq!(derivation.result(), &g("RESBH 3ms 8ms"));
    let derivation = schedulers::limit(&g("RESCS 3ms 8ms")).unwrap();
    assert_eq!((derivation.steps.len(), derivation.result()), (2, &g("RESBH 3ms 8ms")));
    assert!(schedulers::limit(&g("PS 1/2")).is_err());
}

/// Figure 6.2: a basic reservation of 1.5 / 6 has a gap of 9.
#[test]
fn gaps() {
    assert_eq!(Supply::of(&g("RESBS 1.5ms 6ms")).longest_gap(), Some(ms(9)));
    assert_eq!(Supply::of(&g("RESCS 3ms 8ms")).longest_gap(), Some(ms(5)));
}

/// What Theorem 5.2 leaves out: every window, and whole numbers of periods.
#[test]
fn more_than_theorem_5_2() {
    assert_eq!(converted("RESBS 10ms 20ms", "RESCS ? 30ms"), "RESCS 10ms 30ms");
    assert_eq!(converted("RESBS 10ms 20ms", "RESCS ? 25ms"), "RESCS 5ms 25ms");
    assert_eq!(converted("RESBS 10ms 20ms", "RESCS ? 50ms"), "RESCS 20ms 50ms");
    assert_eq!(converted("RESBS 10ms 20ms", "RESBS ? 60ms"), "RESBS 30ms 60ms");
    assert_eq!(converted("RESBS 10ms 20ms", "RESBS 15ms ?"), "RESBS 15ms 40ms"); // supply alone: 45 ms
    assert_eq!(converted("RESBS 10ms 20ms", "RESCS 15ms ?"), "RESCS 15ms 45ms");
    let derivation = best(&g("RESBS 10ms 20ms"), &Wanted::parse("RESCS ? 50ms").unwrap(), &Free::default());
    assert_eq!(derivation.unwrap().steps[0].rule, "worst-case supply");
}

/// A uniformly slower processor promises nothing before deadlines are named; a reservation's periods name them.
#[test]
fn uniformly_slower_processors() {
    assert_eq!(converted("RESU 1/4", "RESBS ? 20ms"), "RESBS 5ms 20ms");
    let refusal = convert(&g("RESU 1/4"), Kind::Rescs, &Free::default()).unwrap_err();
    assert_eq!(refusal.rule, "deadlines of the child");
    let free = Free { deadlines: Some(ms(20)), ..Free::default() };
    let derivation = convert(&g("RESU 1/4"), Kind::Rescs, &free).unwrap();
    assert_eq!(derivation.result(), &g("RESCS 5ms 35ms"));
    assert_eq!(derivation.steps.len(), 2);
    let wanted = Wanted::parse("RESCS ? 35ms").unwrap();
    assert_eq!(best(&g("RESU 1/4"), &wanted, &free).unwrap().result(), &g("RESCS 5ms 35ms"));
    assert!(show(&g("RESU 1/4"), &g("RESCS 6ms 35ms"), &free).is_err());
}

#[test]
fn smallest_sources() {
    for (source, goal, found) in [
        ("RESBS ? 10ms", "RESCS 5ms 33ms", "RESBS 2.5ms 10ms"),
        ("RESBS ? 5ms", "RESCS 1ms 10ms", "RESBS 1ms 5ms"),
        ("RESCS ? 10ms", "RESCS 5ms 33ms", "RESCS 5/3ms 10ms"),
        ("RESBS 5ms ?", "RESCS 5ms 33ms", "RESBS 5ms 19ms"), // 2y − x = 33
        ("RESBS 5ms ?", "RESBS 10ms 33ms", "RESBS 5ms 16.5ms"),
        ("RESBS ? 20ms", "PSBE 1/4 7.5ms", "RESBS 5ms 20ms"),
        ("RESBS 5ms ?", "PSBE 1/4 7.5ms", "RESBS 5ms 20ms"),
        ("RESCS ? 20ms", "PSBE 1/4 7.5ms", "RESCS 5ms 20ms"),
        ("RESBS 2ms ?", "PS 1/5", "RESBS 2ms 10ms"),
        ("PSBE ? 10ms", "PSBE 1/4 5ms", "PSBE 1/2 10ms"),
        ("PSBE 1/2 ?", "PSBE 1/4 5ms", "PSBE 1/2 10ms"),
        ("PS ?", "PS 1/3", "PS 1/3"),
        ("RESU ?", "RESBS 5ms 20ms", "RESU 1/4"),
        ("RESNH ? 20ms", "RESBH 5ms 20ms", "RESNH 5ms 20ms"),
    ] {
        assert_eq!(solved(source, goal), found, "{source} for {goal}");
    }
}
