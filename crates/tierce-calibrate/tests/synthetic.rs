//! What is found in threads that are made up, by seed: every period within bounds, and none where there is none.

use tierce_analysis::generate::Draw;
use tierce_calibrate::{analyse, Arrival, Burst, Chance, Finding, Kind, Period, Watched};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// The tests' seed: `TIERCE_SEED`, else the same each time.
fn seed() -> u64 {
    let seed =
        std::env::var("TIERCE_SEED").map_or(20_261, |text| text.parse().expect("TIERCE_SEED is a number"));
    println!("TIERCE_SEED={seed}");
    seed
}

/// A thread that does jobs one after the other, each as soon as it is released and the one before is complete.
#[derive(Default)]
struct Made {
    /// When each is released, and how long it works.
    jobs: Vec<(u64, u64)>,
}

impl Made {
    fn periodic(
        mut self,
        draw: &mut Draw,
        period: u64,
        phase: u64,
        jitter: u64,
        work: (u64, u64),
        until: u64,
    ) -> Made {
        let mut nominal = phase + jitter;
        while nominal + jitter < until {
            let release = draw.between(nominal - jitter, nominal + jitter);
            self.jobs.push((release, draw.between(work.0, work.1)));
            nominal += period;
        }
        self
    }

    /// A part of its jobs, in percent, does not happen.
    fn missing(mut self, draw: &mut Draw, percent: u64) -> Made {
        self.jobs.retain(|_| draw.between(0, 99) >= percent);
        self
    }

    fn watched(mut self, until: u64) -> Watched {
        self.jobs.sort_unstable();
        let mut bursts: Vec<Burst> = Vec::new();
        for (release, work) in self.jobs {
            match bursts.last_mut() {
                Some(last) if release <= last.slept_ns => {
                    last.ran_ns += work;
                    last.slept_ns += work;
                }
                _ => bursts.push(burst(release, work)),
            }
        }
        of(bursts, until)
    }
}

fn burst(woke_ns: u64, ran_ns: u64) -> Burst {
    Burst { woke_ns, slept_ns: woke_ns + ran_ns, ran_ns, interrupted_ns: 0 }
}

fn of(bursts: Vec<Burst>, to_ns: u64) -> Watched {
    let ran_ns = bursts.iter().map(|burst| burst.ran_ns).sum();
    Watched { bursts, from_ns: 0, to_ns, ran_ns }
}

/// A Poisson process: exponential intervals, by the logarithm of a uniform number.
fn poisson(draw: &mut Draw, mean: u64, until: u64, work: u64) -> Vec<(u64, u64)> {
    let (mut now, mut jobs) = (0, Vec::new());
    loop {
        let uniform = (draw.between(1, 1 << 40)) as f64 / (1u64 << 40) as f64;
        now += 1 + (-uniform.ln() * mean as f64) as u64;
        if now >= until {
            return jobs;
        }
        jobs.push((now, work));
    }
}

fn found(watched: &Watched) -> Finding {
    // What chance explains is computed once.
    thread_local!(static CHANCE: std::cell::RefCell<Chance> = Chance::new(7).into());
    CHANCE.with_borrow_mut(|chance| analyse(watched, chance))
}

fn periods(finding: &Finding) -> &[Period] {
    match &finding.kind {
        Kind::Periodic { periods, .. } => periods,
        other => panic!("not periodic: {other:?}"),
    }
}

fn explained(finding: &Finding) -> u32 {
    match finding.kind {
        Kind::Periodic { explained, .. } => explained,
        _ => 0,
    }
}

/// Within so many parts per million.
fn near(value: u64, expected: u64, ppm: u64) {
    let off = u128::from(value.abs_diff(expected)) * 1_000_000;
    assert!(off <= u128::from(expected) * u128::from(ppm), "{value}, expected {expected} within {ppm} ppm");
}

#[test]
fn one_period_is_found_to_the_microsecond() {
    let mut draw = Draw::new(seed());
    for period in [MS, 4 * MS, 10 * MS, 16_666_667, 20_833_333, 33_333_333, 40 * MS, 250 * MS] {
        let until = (200 * period).max(2 * S);
        let work = (period / 10, period / 5);
        let made = Made::default().periodic(&mut draw, period, 17 * US, 20 * US, work, until);
        let finding = found(&made.watched(until));
        let [one] = periods(&finding) else { panic!("{period}: {finding:?}") };
        near(one.period_ns, period, 100);
        assert!(one.is_absolute && one.kept >= 990 && one.jitter_max_ns <= 45 * US, "{period}: {one:?}");
        assert!(explained(&finding) >= 990 && one.chance_percent == 1, "{finding:?}");
        assert!(one.work.max_ns <= work.1 && one.work.median_ns >= work.0 && one.overruns == 0, "{one:?}");
        near(one.work.jobs, until / period, 20_000);
    }
}

/// The kernel's tick has 4 ms; a timer of a program rarely is a multiple of it, but may be close.
#[test]
fn periods_near_multiples_of_the_tick() {
    let mut draw = Draw::new(seed());
    for period in [3_999 * US, 4_001 * US, 7_990 * US, 8_010 * US, 12_001 * US, 11_999 * US] {
        // Woken by the tick: up to 4 ms late, or on time.
        for late in [5 * US, period / 10] {
            let until = 5 * S;
            let made = Made::default().periodic(&mut draw, period, 0, late, (period / 8, period / 8), until);
            let finding = found(&made.watched(until));
            let [one] = periods(&finding) else { panic!("{period}, {late}: {finding:?}") };
            near(one.period_ns, period, 500);
        }
    }
}

#[test]
fn jitter_of_ten_percent_and_more() {
    let mut draw = Draw::new(seed());
    for (percent, ppm) in [(1, 100), (5, 500), (10, 1_000), (15, 2_000)] {
        for period in [5 * MS, 10 * MS, 33_333_333] {
            let until = 10 * S;
            let work = (period / 5, period / 4);
            let made =
                Made::default().periodic(&mut draw, period, 3 * MS, period * percent / 100, work, until);
            let finding = found(&made.watched(until));
            let [one] = periods(&finding) else { panic!("{percent} %, {period}: {finding:?}") };
            near(one.period_ns, period, ppm);
            assert!(one.kept >= 900, "{percent} %: {one:?}");
            near(one.work.p99_ns, work.0 + (work.1 - work.0) * 99 / 100, 20_000);
        }
    }
}

#[test]
fn missed_jobs_do_not_matter() {
    let mut draw = Draw::new(seed());
    for percent in [5, 20, 35] {
        for jitter in [30 * US, 500 * US] {
            let until = 10 * S;
            let made = Made::default().periodic(&mut draw, 10 * MS, 0, jitter, (2 * MS, 3 * MS), until);
            let finding = found(&made.missing(&mut draw, percent).watched(until));
            let [one] = periods(&finding) else { panic!("{percent} %: {finding:?}") };
            near(one.period_ns, 10 * MS, 500);
            let kept = 1000 - percent as u32 * 10;
            assert!(one.kept.abs_diff(kept) < 60, "{percent} %: {one:?}");
        }
    }
}

/// A job that waits for a lock or for input wakes again within itself.
#[test]
fn wakeups_within_a_job_belong_to_it() {
    let mut draw = Draw::new(seed());
    for (pieces, jitter) in [(2, 20 * US), (3, 20 * US), (2, MS), (5, 100 * US)] {
        let (mut bursts, until) = (Vec::new(), 10 * S);
        for k in 0..until / (10 * MS) {
            let mut now = draw.between(k * 10 * MS, k * 10 * MS + jitter);
            for _ in 0..pieces {
                let ran = draw.between(300 * US, 500 * US);
                bursts.push(burst(now, ran));
                now += ran + draw.between(20 * US, 200 * US);
            }
        }
        let finding = found(&of(bursts, until));
        let [one] = periods(&finding) else { panic!("{pieces} pieces, {jitter}: {finding:?}") };
        near(one.period_ns, 10 * MS, 500);
        near(one.work.median_ns, pieces * 400 * US, 40_000);
        assert!(one.work.max_ns <= pieces * 500 * US, "{pieces} pieces: {one:?}");
        near(one.resumed, one.work.jobs * (pieces - 1), 20_000);
    }
}

/// Only some jobs wait.
#[test]
fn a_job_in_three_is_interrupted_by_a_wait() {
    let mut draw = Draw::new(seed());
    let (mut bursts, until) = (Vec::new(), 10 * S);
    for k in 0..until / (20 * MS) {
        let (now, work) = (draw.between(k * 20 * MS, k * 20 * MS + 50 * US), draw.between(4 * MS, 5 * MS));
        if draw.between(0, 2) == 0 {
            let first = draw.between(MS, 3 * MS);
            bursts.extend([burst(now, first), burst(now + first + 300 * US, work - first)]);
        } else {
            bursts.push(burst(now, work));
        }
    }
    let finding = found(&of(bursts, until));
    let [one] = periods(&finding) else { panic!("{finding:?}") };
    near(one.period_ns, 20 * MS, 100);
    assert!(one.work.jobs >= 498 && one.work.max_ns <= 5 * MS, "{one:?}");
    near(one.work.median_ns, 4_500 * US, 20_000);
}

#[test]
fn two_periods_in_one_thread() {
    let mut draw = Draw::new(seed());
    for (fast, slow, jitter) in [
        (10 * MS, 33_333_333, 20 * US),
        (10 * MS, 25 * MS, 20 * US),
        (5 * MS, 16_666_667, 300 * US),
        (20 * MS, 23 * MS, 20 * US),
    ] {
        let until = 20 * S;
        let made = Made::default().periodic(&mut draw, fast, 0, jitter, (fast / 20, fast / 20), until);
        let made = made.periodic(&mut draw, slow, 3 * MS + 17 * US, jitter, (slow / 10, slow / 10), until);
        let finding = found(&made.watched(until));
        let mut all = periods(&finding).to_vec();
        all.sort_by_key(|period| period.period_ns);
        let [one, two] = &all[..] else { panic!("{fast}, {slow}: {finding:?}") };
        near(one.period_ns, fast, 500);
        near(two.period_ns, slow, 500);
        near(one.work.median_ns, fast / 20, 10_000);
        near(two.work.median_ns, slow / 10, 10_000);
    }
}

/// A thread that sleeps for a time, instead of until a time: what it computes shifts the next release.
#[test]
fn releases_after_a_sleep() {
    let mut draw = Draw::new(seed());
    let (mut bursts, mut now, until) = (Vec::new(), 0, 20 * S);
    while now < until {
        let work = draw.between(1_800 * US, 2_200 * US);
        bursts.push(burst(now, work));
        now += work + 8 * MS + draw.between(50 * US, 150 * US);
    }
    let finding = found(&of(bursts, until));
    let [one] = periods(&finding) else { panic!("{finding:?}") };
    near(one.period_ns, 10_100 * US, 5_000);
    assert!(one.kept >= 950, "{one:?}");
}

/// First one period, then another.
#[test]
fn a_change_of_mode() {
    let mut draw = Draw::new(seed());
    let made = Made::default().periodic(&mut draw, 10 * MS, 0, 20 * US, (MS, MS), 8 * S);
    let mut late = Made::default().periodic(&mut draw, 40 * MS, 0, 20 * US, (6 * MS, 6 * MS), 10 * S);
    late.jobs.iter_mut().for_each(|job| job.0 += 8 * S + 3 * MS);
    let both = Made { jobs: [made.jobs, late.jobs].concat() };
    let finding = found(&both.watched(18 * S));
    let list = periods(&finding);
    let at = |period: u64| {
        list.iter()
            .find(|one| one.period_ns.abs_diff(period) < period / 100)
            .unwrap_or_else(|| panic!("{period}: {list:?}"))
    };
    assert!(at(10 * MS).last_ns < 8_100 * MS && at(40 * MS).first_ns > 7_900 * MS, "{list:?}");
    assert_eq!((at(10 * MS).work.max_ns, at(40 * MS).work.max_ns), (MS, 6 * MS));
}

/// A player that is paused, and goes on.
#[test]
fn a_pause_is_no_other_period() {
    let mut draw = Draw::new(seed());
    for jitter in [20 * US, MS] {
        let mut made = Made::default().periodic(&mut draw, 10 * MS, 0, jitter, (MS, 2 * MS), 12 * S);
        made.jobs.retain(|(release, _)| !(5 * S..8 * S).contains(release));
        let finding = found(&made.watched(12 * S));
        let [one] = periods(&finding) else { panic!("{jitter}: {finding:?}") };
        near(one.period_ns, 10 * MS, 200);
        near(one.work.jobs, 900, 20_000);
    }
}

/// A job that takes longer than a period delays the next one, which then begins without a wake-up.
#[test]
fn an_overrun_is_two_jobs() {
    let mut made = Made::default();
    for k in 0..500 {
        made.jobs.push((k * 10 * MS, if k % 50 == 7 { 13 * MS } else { 2 * MS }));
    }
    let finding = found(&made.watched(5 * S));
    let [one] = periods(&finding) else { panic!("{finding:?}") };
    near(one.period_ns, 10 * MS, 10);
    assert_eq!((one.overruns, one.work.median_ns), (10, 2 * MS));
    assert_eq!((one.work.jobs, one.work.max_ns), (500, 7_500 * US));
}

#[test]
fn a_loaded_thread_is_not_given_half_its_period() {
    let mut draw = Draw::new(seed());
    for share in [70, 90] {
        let work = 10 * MS * share / 100;
        let made = Made::default().periodic(&mut draw, 10 * MS, 0, 10 * US, (work - MS / 10, work), 10 * S);
        let finding = found(&made.watched(10 * S));
        let [one] = periods(&finding) else { panic!("{finding:?}") };
        near(one.period_ns, 10 * MS, 100);
    }
}

#[test]
fn poisson_processes_are_named_as_such() {
    let mut draw = Draw::new(seed());
    let rounds =
        std::env::var("TIERCE_ROUNDS").map_or(8, |text| text.parse().expect("TIERCE_ROUNDS is a number"));
    let mut wrong = 0;
    for (mean, wakeups) in [(2 * MS, 1_000), (10 * MS, 400), (50 * MS, 100), (50 * MS, 30)] {
        for _ in 0..rounds {
            let made = Made { jobs: poisson(&mut draw, mean, wakeups * mean, mean / 10) };
            let finding = found(&made.watched(wakeups * mean));
            match finding.kind {
                Kind::Aperiodic { arrival, .. } => {
                    assert!(arrival == Arrival::Random || wakeups < 1_000, "{arrival:?}")
                }
                _ => wrong += 1,
            }
        }
    }
    println!("{wrong} of {} are called periodic", 4 * rounds);
    assert!(wrong * 50 <= 4 * rounds, "{wrong} of {} are called periodic", 4 * rounds);
}

/// Clusters at random times, regular within themselves.
#[test]
fn clusters_are_not_periodic() {
    let mut draw = Draw::new(seed());
    for (size, distance) in [(4, 2 * MS), (8, MS), (20, 500 * US)] {
        let mut jobs = Vec::new();
        for (begin, _) in poisson(&mut draw, 150 * MS, 20 * S, 1) {
            jobs.extend((0..size).map(|at| (begin + at * distance, 50 * US)));
        }
        let finding = found(&Made { jobs }.watched(20 * S));
        let Kind::Aperiodic { arrival, .. } = finding.kind else { panic!("{size}: {finding:?}") };
        assert_eq!(arrival, Arrival::Clustered);
    }
}

/// Intervals that are uniform in a wide range have a mean, and no period.
#[test]
fn a_mean_is_no_period() {
    let mut draw = Draw::new(seed());
    for _ in 0..5 {
        let (mut now, mut jobs) = (0, Vec::new());
        while now < 10 * S {
            now += draw.between(2 * MS, 18 * MS);
            jobs.push((now, 500 * US));
        }
        let finding = found(&Made { jobs }.watched(10 * S));
        assert!(matches!(finding.kind, Kind::Aperiodic { arrival: Arrival::Even, .. }), "{finding:?}");
    }
}

#[test]
fn what_cannot_be_told() {
    assert_eq!(found(&Watched { to_ns: S, ..Watched::default() }).kind, Kind::Rare);
    assert_eq!(found(&Watched { to_ns: S, ran_ns: S, ..Watched::default() }).kind, Kind::Busy);
    let few = (0..5).map(|k| burst(k * 10 * MS, MS)).collect();
    assert_eq!(found(&of(few, S)).kind, Kind::Rare);
    let at_once = (0..50).map(|_| burst(MS, 0)).collect();
    assert!(!matches!(found(&of(at_once, S)).kind, Kind::Periodic { .. }));
}

#[test]
fn many_wakeups_take_no_time() {
    let mut draw = Draw::new(seed());
    let made = Made::default().periodic(&mut draw, 500 * US, 0, 20 * US, (50 * US, 60 * US), 50 * S);
    let made = made.periodic(&mut draw, 7_130 * US, 200 * US, 20 * US, (MS, MS), 50 * S);
    let finding = found(&made.watched(50 * S));
    let mut all: Vec<u64> = periods(&finding).iter().map(|period| period.period_ns).collect();
    all.sort_unstable();
    assert_eq!(all.len(), 2, "{all:?}");
    near(all[0], 500 * US, 50);
    near(all[1], 7_130 * US, 50);
}

#[test]
fn the_same_seed_gives_the_same_finding() {
    let made = |seed| {
        let mut draw = Draw::new(seed);
        Made::default().periodic(&mut draw, 10 * MS, 0, MS, (MS, 2 * MS), 3 * S).watched(3 * S)
    };
    assert_eq!(found(&made(5)), found(&made(5)));
}
