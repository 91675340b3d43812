//! What scheduling and interrupts cost in the simulator comes back out of its traces, to the nanosecond.

use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::measure::{Measure, Quantity};

const MS: u64 = 1_000_000;

fn measured(text: &str, options: Options, for_ns: u64) -> Measure {
    let plan = Plan::parse(text, "plan.toml").unwrap_or_else(|faults| panic!("{faults}"));
    let mut simulation = Simulation::new(&plan, Options { trace: true, check: true, ..options }).unwrap();
    simulation.run_until(for_ns).unwrap();
    let mut measure = Measure::new(&simulation.header(), None);
    let events = simulation.take_events();
    assert!(events.windows(2).all(|pair| pair[0].now_ns <= pair[1].now_ns), "in the order of time");
    events.iter().for_each(|event| measure.event(event));
    measure.finish(for_ns);
    measure
}

/// Smallest, largest, number of values and their sum.
fn of(measure: &Measure, task: &str, quantity: Quantity) -> (u64, u64, u64, u128) {
    let (_, series) = measure.tasks().find(|(name, _)| *name == task).unwrap();
    let summary = series[quantity as usize].summary();
    (summary.min, summary.max, summary.count, summary.sum)
}

const EDF: &str = r#"
    [machine]
    cpus = 1
    costs = { switch = "3us", timer = "1us", level = "500ns" }
    interrupts = [{ every = "7ms", takes = "20us", phase = "1500us" }]
    [node.top]
    policy = "edf"
    cpu = 0
    [task.a]
    under.top = {}
    load = { period = "10ms", work = "2ms" }
    [task.b]
    under.top = {}
    load = { period = "25ms", work = "5ms", phase = "6ms" }
"#;

/// a runs at 0, 10, ... and is preempted by nobody; b at 6, 31, 56, 81, ..., preempted by a at 10, 60, ... (25 k + 6 + 5 > 10 j).
#[test]
fn switches_and_interrupts() {
    let measure = measured(EDF, Options::default(), 1_000 * MS);
    assert_eq!(of(&measure, "a", Quantity::CtswJ), (3_500, 3_500, 100, 350_000));
    assert_eq!(of(&measure, "b", Quantity::CtswJ), (3_500, 3_500, 60, 210_000));
    // At 1.5, 8.5, ... ms: those that find a at work are 7 k + 1.5 in [0, 2.02] modulo 10, of 143.
    let hit = |task: &str| of(&measure, task, Quantity::IntO);
    let of_a = (0..143).filter(|k| (7_000 * k + 1_500) % 10_000 < 2_004).count() as u64;
    assert_eq!(hit("a"), (0, 20_000, 100, u128::from(of_a) * 20_000));
    assert_eq!((hit("b").0, hit("b").1, hit("b").2), (0, 20_000, 40));
    for task in ["a", "b"] {
        assert_eq!(of(&measure, task, Quantity::RelO).1, 0);
        assert_eq!(of(&measure, task, Quantity::RelJ).1, 0);
    }
}

/// Timers that go off late release jobs late.
#[test]
fn releases() {
    let measure = measured(EDF, Options { late_ns: 70_000, ..Options::default() }, 1_000 * MS);
    assert_eq!(of(&measure, "a", Quantity::RelJ), (70_000, 70_000, 100, 7_000_000));
    assert_eq!(of(&measure, "b", Quantity::RelJ), (70_000, 70_000, 40, 2_800_000));
    let text = EDF.replace("work = \"2ms\"", "work = \"2ms\", jitter = \"900us\"");
    let measure = measured(&text, Options::default(), 10_000 * MS);
    let (least, most, count, _) = of(&measure, "a", Quantity::RelJ);
    assert_eq!(count, 1_000);
    assert!(
        least < 20_000 && most > 880_000 && most <= 900_000,
        "drawn between 0 and 900 us: {least} to {most}"
    );
}

/// A budget that comes back every 10 ms is a reserve that begins: its timer, a switch, and two levels.
#[test]
fn budgets() {
    let text = r#"
        [machine]
        cpus = 1
        costs = { switch = "3us", timer = "1us", level = "500ns" }
        [node.top]
        policy = "fixed-priority"
        cpu = 0
        [node.rt]
        policy = "reservation"
        under.top = { priority = 1 }
        [task.long]
        under.rt = { budget = "2ms", period = "10ms" }
        load = { period = "100ms", work = "11ms" }
        [task.rest]
        under.top = { priority = 0 }
        load = { period = "100ms", work = "80ms" }
    "#;
    let measure = measured(text, Options::default(), 1_000 * MS);
    // Each job of 11 ms needs six budgets: it begins with a switch, and with five replenishments.
    assert_eq!(of(&measure, "long", Quantity::CtswJ), (4_000, 4_000, 10, 40_000));
    assert_eq!(of(&measure, "long", Quantity::ResJ), (5_000, 5_000, 50, 250_000));
    // The rest goes on where a budget ends (five times), and once where the job is done.
    assert_eq!(of(&measure, "rest", Quantity::ResJ), (4_500, 4_500, 50, 225_000));
    assert_eq!(of(&measure, "rest", Quantity::CtswJ), (3_500, 3_500, 10, 35_000));
}

#[test]
fn without_costs_there_is_none() {
    let text = EDF.replace("costs = ", "# ");
    let measure = measured(&text, Options::default(), 1_000 * MS);
    for task in ["a", "b"] {
        // A decision waits for the end of an interrupt: none begins when a job does.
        assert_eq!(of(&measure, task, Quantity::CtswJ).1, 0);
        assert!(of(&measure, task, Quantity::CtswJ).2 >= 40);
    }
}

/// Slots of 1.25 ms; a task that is split over two CPUs, [1, 1.25) on the first and [0, 0.2) on the second, and two that fill.
#[test]
fn reserves() {
    let text = r#"
        [machine]
        cpus = 2
        costs = { switch = "3us", timer = "1us", migration = "2us", level = "500ns" }
        [node.left]
        policy = "slots"
        cpu = 0
        slot = "1.25ms"
        [node.right]
        policy = "slots"
        cpu = 1
        slot = "1.25ms"
        [node.fill-left]
        policy = "edf"
        under.left = { offset = "0ns", length = "1ms", fill = 1 }
        [node.fill-right]
        policy = "edf"
        under.right = { offset = "200us", length = "1.05ms", fill = 1 }
        [task.split]
        under.left = { offset = "1ms", length = "250us" }
        under.right = { offset = "0ns", length = "200us" }
        load = { period = "10ms", work = "2.4ms" }
        [task.l]
        under.fill-left = {}
        load = { period = "100ms", work = "90ms" }
        [task.r]
        under.fill-right = {}
        load = { period = "100ms", work = "90ms" }
    "#;
    let measure = measured(text, Options::default(), 50 * MS);
    let (_, series) = measure.tasks().find(|(name, _)| *name == "split").unwrap();
    let values: Vec<_> = series[Quantity::ResJ as usize].buckets().collect();
    let counts: Vec<_> = values.iter().map(|bucket| bucket.2).collect();
    assert_eq!(counts, [1, 34, 25], "{values:?}");
    // The first: a switch and a level. On the left six times per job, on the right as a job is released: a timer and a
    // migration, too. On the right where the left has to let go: as long as that takes (a timer, a switch to who fills
    // there, two levels), then a switch, a migration and a level.
    let sum = 3_500 + 34 * 6_500 + 25 * (5_000 + 5_500);
    assert_eq!(of(&measure, "split", Quantity::ResJ), (3_500, 10_500, 60, sum));
    assert_eq!(of(&measure, "split", Quantity::RelJ), (0, 0, 5, 0));
    // Who fills goes on at the end of each reserve, and on the left where a job ends within one.
    assert_eq!(of(&measure, "l", Quantity::ResJ), (5_000, 5_000, 25, 125_000));
    assert_eq!(of(&measure, "l", Quantity::CtswJ), (4_000, 4_000, 6, 24_000));
    assert_eq!(of(&measure, "r", Quantity::ResJ), (5_000, 5_000, 30, 150_000));
    // Timers that leave a job where it is take of it.
    let measure = measured(&text.replace("90ms", "30ms"), Options::default(), 100 * MS);
    let (least, most, jobs, sum) = of(&measure, "r", Quantity::RelO);
    assert!(least > 0 && most < 100_000 && jobs == 1 && sum % 1_000 == 0, "{least} to {most}");
}
