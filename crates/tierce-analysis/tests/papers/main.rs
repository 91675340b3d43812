//! Worked numbers of the papers about schedulability, and of other programs for it.

mod locks;
mod one_cpu;
mod several_cpus;

use tierce_analysis::{priorities, server, utilisation, Demand, Edf, FixedPriority, Response, Supply, Task};
use tierce_guarantee::whole;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn responses_us(tasks: &[Task], supply: &Supply) -> Vec<u64> {
    let mut analysis = FixedPriority::new();
    analysis.responses(tasks, supply).iter().map(|response| response.ns().unwrap() / US).collect()
}

fn set(list: &[(u64, u64)]) -> Vec<Task> {
    list.iter().map(|(work, period)| Task::new(work * MS, period * MS)).collect()
}

fn periodic_us(budget: u64, period: u64) -> Supply {
    Supply::periodic(budget * US, period * US).unwrap()
}

/// The smallest budget with which the set meets its deadlines, in whole us, rounded up.
fn smallest_budget_us(tasks: &[Task], period_us: u64) -> u64 {
    let mut analysis = FixedPriority::new();
    let budget = server::smallest_budget(period_us * US, |supply| analysis.schedulable(tasks, supply));
    budget.unwrap().div_ceil(US)
}

/// HLS Figure 6.1.
#[test]
fn an_application_in_1100us_of_5ms() {
    let tasks = set(&[(1, 10), (1, 20), (5, 100)]);
    assert_eq!(responses_us(&tasks, &periodic_us(1_100, 5_000)), [8_800, 18_600, 98_000]);
    assert_eq!(smallest_budget_us(&tasks, 5_000), 1_053); // rounded up from 1052.63
}

fn media_player() -> Vec<Task> {
    set(&[(1, 10), (2, 45), (4, 100), (3, 100), (7, 500), (25, 2000)])
}

/// HLS Table 6.1 and Figure 6.2: feasible in 1.5/6, and without any slack.
#[test]
fn media_player_in_1500us_of_6ms() {
    let found = responses_us(&media_player(), &periodic_us(1_500, 6_000));
    assert_eq!(found, [10_000, 27_500, 64_500, 87_500, 292_500, 1_384_500]);
    assert!(!FixedPriority::new()
        .schedulable(&media_player(), &Supply::periodic(1_500 * US - 1, 6 * MS).unwrap()));
}

#[test]
fn media_player_frontier() {
    for (period, budget) in [
        (1_000, 242),
        (2_000, 484),
        (3_000, 726),
        (4_000, 1_000),
        (5_000, 1_211),
        (5_500, 1_334),
        (5_750, 1_392),
        (6_000, 1_500),
        (6_250, 1_750),
        (7_000, 2_500),
    ] {
        assert_eq!(smallest_budget_us(&media_player(), period), budget, "period {period} us");
    }
}

/// The knee of Figure 6.2 is at 6 ms; bandwidth along the frontier is not monotone.
#[test]
fn media_player_knee() {
    let periods: Vec<_> = (1..=40).map(|quarter| quarter * 250 * US).collect();
    let (tasks, mut analysis) = (media_player(), FixedPriority::new());
    let frontier =
        server::frontier(&tasks, &periods, 5 * US, |supply| analysis.schedulable(&tasks, supply)).unwrap();
    let at = |period: u64| frontier.servers.iter().find(|server| server.period_ns == period * US).unwrap();
    assert_eq!(frontier.servers[frontier.knee.unwrap()], *at(6_000));
    assert_eq!(at(6_000).budget_ns, 1_500 * US);
    assert!(at(4_000).bandwidth() > at(5_000).bandwidth());
    assert_eq!(frontier.servers[frontier.best].period_ns, 5_750 * US);
    // The exact budget is the smallest: one ns less and a deadline is missed.
    for server in &frontier.servers {
        let supply = |budget| Supply::periodic(budget, server.period_ns).unwrap();
        assert!(analysis.schedulable(&tasks, &supply(server.budget_ns)));
        assert!(!analysis.schedulable(&tasks, &supply(server.budget_ns - 1)));
    }
}

/// HLS 6.1: a ghost task of period y, work y − x and jitter x above all is the same as a reservation x/y.
#[test]
fn ghost_task() {
    let ghost = Task { jitter_ns: 1_500 * US, ..Task::new(4_500 * US, 6 * MS) };
    let mut tasks = vec![ghost];
    tasks.extend(media_player());
    let found = responses_us(&tasks, &Supply::WHOLE);
    assert_eq!(found[1..], [10_000, 27_500, 64_500, 87_500, 292_500, 1_384_500]);
}

/// ExSched's Tables 2 and 3, in jiffies: sixteen servers, each with the priority of its number, on two cores. The last two of
/// the categorised core 0 take all of their periods, so any overhead makes them late.
#[test]
fn exsched_servers_on_two_cores() {
    let servers: Vec<_> = [6, 7, 8, 9, 10, 11, 14, 18].map(|period| Task::new(1, period)).into();
    let servers: Vec<_> = servers.into_iter().chain([Task::new(15, 125); 8]).collect();
    let responses = |tasks: &[Task]| -> Vec<u64> {
        let mut analysis = FixedPriority::new();
        analysis.responses(tasks, &Supply::WHOLE).iter().map(|response| response.ns().unwrap()).collect()
    };
    let per_mille = |tasks: &[Task]| (utilisation(tasks) * whole(1000)).round().to_integer().to_string();
    let (first, second) = servers.split_at(8);
    assert_eq!(responses(first), [1, 2, 3, 4, 5, 6, 14, 18]);
    assert_eq!(responses(second), [15, 30, 45, 60, 75, 90, 105, 120]);
    assert_eq!([first, second].map(per_mille), ["864", "960"]);
    let mixed = |from: usize| servers.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
    assert_eq!([mixed(0), mixed(1)].map(|tasks| per_mille(&tasks)), ["943", "880"]);
    assert!([mixed(0), mixed(1)].iter().all(|tasks| FixedPriority::new().schedulable(tasks, &Supply::WHOLE)));
}

/// Jobs that come before the last is done: Lehoczky's example. 26/70 above 62/100 has its longest response, 118, in the
/// fifth of seven jobs.
#[test]
fn deadlines_beyond_periods() {
    let tasks = [Task::new(26, 70), Task { deadline_ns: 120, ..Task::new(62, 100) }];
    let mut analysis = FixedPriority::new();
    assert_eq!(analysis.responses(&tasks, &Supply::WHOLE), [Response::Within(26), Response::Within(118)]);
    assert!(analysis.schedulable(&tasks, &Supply::WHOLE));
}

/// The example at the head of the file about fixed priorities.
#[test]
fn three_tasks() {
    let tasks = set(&[(1, 4), (2, 6), (3, 12)]);
    assert_eq!(responses_us(&tasks, &Supply::WHOLE), [1_000, 3_000, 10_000]);
}

/// The example at the head of the file about EDF; with one more of each a window of 23 is asked for 24.
#[test]
fn demand() {
    let task = |work, deadline, period| Task { deadline_ns: deadline, ..Task::new(work, period) };
    let mut edf = Edf::new();
    assert_eq!(edf.demand(&[task(2, 3, 6), task(3, 7, 8)], &Supply::WHOLE), Demand::Met);
    assert_eq!(
        edf.demand(&[task(3, 3, 6), task(4, 7, 8)], &Supply::WHOLE),
        Demand::Exceeds { window_ns: 23, due_ns: 24 }
    );
    assert_eq!(edf.demand(&[task(4, 6, 6), task(3, 8, 8)], &Supply::WHOLE), Demand::Overload);
    assert_eq!(edf.demand(&[task(3, 6, 6), task(4, 8, 8)], &Supply::WHOLE), Demand::Met);
}

/// Opsahl's and Audsley's point: with deadlines above periods or jitter, no simple order is optimal, but one is found.
#[test]
fn audsley_finds_an_order_where_deadline_monotonic_does_not() {
    let jittery = Task { deadline_ns: 8, jitter_ns: 5, ..Task::new(2, 20) };
    let short = Task { deadline_ns: 7, ..Task::new(3, 20) };
    let tasks = [short, jittery];
    let deadline_monotonic: Vec<_> =
        priorities::deadline_monotonic(&tasks).iter().map(|index| tasks[*index]).collect();
    assert!(!FixedPriority::new().schedulable(&deadline_monotonic, &Supply::WHOLE));
    let order = priorities::audsley(&tasks, &Supply::WHOLE).unwrap();
    assert_eq!(order, [1, 0]);
    let ordered: Vec<_> = order.iter().map(|index| tasks[*index]).collect();
    assert!(FixedPriority::new().schedulable(&ordered, &Supply::WHOLE));
    assert_eq!(priorities::rate_monotonic(&tasks), [0, 1]);
}

#[test]
fn what_has_no_bound() {
    let mut analysis = FixedPriority::new();
    let tasks = [Task::new(1, 2), Task::new(2, 3), Task::new(1, 100)];
    let unbounded = Response::Unbounded;
    assert_eq!(analysis.responses(&tasks, &Supply::WHOLE), [Response::Within(1), unbounded, unbounded]);
    let full = [Task::new(1, 2), Task::new(1, 3), Task::new(1, 6)];
    assert_eq!(analysis.responses(&full, &Supply::WHOLE)[2], Response::Within(6));
    let late = [Task::new(1, 2), Task::new(1, 3), Task { jitter_ns: 1, ..Task::new(1, 6) }];
    assert_eq!(analysis.responses(&late, &Supply::WHOLE)[2], Response::Within(7));
    assert_eq!(analysis.responses(&[Task::new(0, 5)], &Supply::WHOLE), [unbounded]);
    let half = Supply::periodic(1, 2).unwrap();
    assert_eq!(analysis.responses(&[Task::new(1, 2)], &half), [Response::Within(3)]);
    let mut edf = Edf::new();
    assert_eq!(edf.responses(&tasks, &Supply::WHOLE), [unbounded; 3]);
    // A full CPU whose periods have no common multiple in reach.
    let apart = [1_000_000_007, 998_244_353, 1_000_000_009].map(|period| Task::new(period / 3, period));
    let filled = Task { deadline_ns: 1 << 59, ..Task::new(1, 1_000_003) };
    assert!(matches!(
        edf.demand(&[apart[0], apart[1], apart[2], filled], &Supply::WHOLE),
        Demand::Met | Demand::Overload
    ));
}

/// Alone in a supply: what the general analysis says, and an upper bound where that would take long.
#[test]
fn a_task_alone_takes_what_the_general_analysis_says() {
    let supplies = [Supply::WHOLE, Supply::periodic(3, 8).unwrap(), Supply::edp(2, 6, 4).unwrap()];
    let line = Supply::of(&tierce_guarantee::Guarantee::parse("PSBE 2/5 3ns").unwrap()).unwrap();
    for supply in supplies.into_iter().chain([line]) {
        for (work, period, jitter) in
            [(1, 10, 0), (3, 9, 2), (7, 20, 30), (9, 40, 3), (1, 3, 0), (50, 200, 0)]
        {
            let task = Task { jitter_ns: jitter, blocking_ns: work / 3, ..Task::new(work, period) };
            let general = FixedPriority::new().responses(&[task], &supply)[0];
            let alone = supply.response_alone(&task);
            let over = u128::from(work) * u128::from(supply_rate(&supply).1)
                > u128::from(period) * u128::from(supply_rate(&supply).0);
            assert_eq!(alone == Response::Unbounded, over, "{task:?} {supply:?}");
            if let (Some(general), Some(alone)) = (general.ns(), alone.ns()) {
                assert_eq!(alone, general, "{task:?} {supply:?}");
            }
        }
    }
    // As much as there is, for ever: never done for good, but each takes as long as the first.
    let supply = Supply::periodic(3, 8).unwrap();
    assert_eq!(supply.response_alone(&Task::new(3, 8)), Response::Within(10 + 3));
}

fn supply_rate(supply: &Supply) -> (u64, u64) {
    match supply {
        Supply::Whole(_) => (1, 1),
        Supply::Chunks(chunks) => (chunks.budget_ns, chunks.period_ns),
        Supply::Linear(linear) => linear.share,
    }
}
