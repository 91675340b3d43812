//! Jitters and overheads of schedules written by hand, whose numbers are worked out beside them.

use proptest::prelude::*;
use tierce_trace::measure::{remarks, rows, tables, to_json, Measure, Quantity};
use tierce_trace::{EdgeInfo, Event, Kind, NodeInfo, Source, TaskInfo, TraceHeader, Writer, SCHEDULER};

const WOKE: u32 = 0;
const BLOCKED: u32 = 3;

/// Node 1 is the root of CPU 0, node 2 that of CPU 1, node 3 is below that; tasks 5 and 6.
fn header(source: Source, root: &str) -> TraceHeader {
    let node = |id, name: &str, policy: &str| NodeInfo {
        id,
        name: name.into(),
        policy: policy.into(),
        ..Default::default()
    };
    let length_ns = Some(100_000).filter(|_| root == "slots");
    let edge = |id, parent, child, cpu| EdgeInfo { id, parent, child, cpu, length_ns, ..Default::default() };
    let task = |id, name: &str, period_ns, phase_ns| TaskInfo {
        id,
        name: name.into(),
        deadline_ns: Some(period_ns),
        period_ns: Some(period_ns),
        phase_ns: Some(phase_ns),
        ..Default::default()
    };
    TraceHeader {
        version: 1,
        source,
        plan: "plan".into(),
        cpus: 2,
        nodes: vec![node(1, "left", root), node(2, "right", root), node(3, "local", "edf")],
        tasks: vec![task(5, "a", 1_000_000, 0), task(6, "b", 2_000_000, 1_199_000)],
        edges: vec![
            edge(1, 0, 1, Some(0)),
            edge(2, 0, 2, Some(1)),
            edge(3, 1, 5, None),
            edge(4, 2, 5, None),
            edge(5, 2, 3, None),
            edge(6, 3, 6, None),
            edge(7, 1, 6, None),
        ],
        ..Default::default()
    }
}

type Record = (u64, Kind, u16, u32, u32, u64);

fn events(records: &[Record]) -> Vec<Event> {
    records
        .iter()
        .map(|&(now_ns, kind, cpu, a, b, value)| Event::new(now_ns, kind, cpu, a, b, value))
        .collect()
}

fn measured(header: &TraceHeader, epoch_ns: Option<u64>, records: &[Record]) -> Measure {
    let mut measure = Measure::new(header, epoch_ns);
    events(records).iter().for_each(|event| measure.event(event));
    measure.finish(0);
    measure
}

/// Largest, sum and number of values.
fn of(measure: &Measure, task: &str, quantity: Quantity) -> Option<(u64, u128, u64)> {
    let (_, series) = measure.tasks().find(|(name, _)| *name == task)?;
    let summary = series[quantity as usize].summary();
    (summary.count > 0).then_some((summary.max, summary.sum, summary.count))
}

/// A job and its request.
fn job(now_ns: u64, task: u32, number: u32) -> [Record; 2] {
    let deadline_ns = now_ns + 1_000_000;
    [(now_ns, Kind::JobRelease, 0, task, number, deadline_ns), (now_ns, Kind::Request, 0, task, WOKE, 0)]
}

/// From a decision until the task runs.
fn turn(decided_ns: u64, cpu: u16, task: u32, before: u32, runs_ns: u64) -> [Record; 2] {
    let decision = (decided_ns, Kind::Decision, cpu, task, 0, before.into());
    [decision, (runs_ns, Kind::Outside, cpu, task, 0, SCHEDULER)]
}

/// The job is done, and its task off the CPU.
fn done(now_ns: u64, left_ns: u64, cpu: u16, task: u32, number: u32) -> [Record; 3] {
    [
        (now_ns, Kind::JobComplete, cpu, task, number, 0),
        (left_ns, Kind::Release, cpu, task, BLOCKED, 0),
        (left_ns, Kind::Decision, cpu, 0, 0, task.into()),
    ]
}

/// Two periodic tasks of a machine on one CPU, under EDF; each had a first job before.
fn edf() -> Vec<Record> {
    let mut list = Vec::new();
    list.extend(job(1_000_300, 5, 2)); // should be released at 1,000,000: 300
    list.extend(turn(1_000_500, 0, 5, 0, 1_000_900)); // ready since 1,000,300: 600
    list.extend(job(1_200_000, 6, 2)); // phase 1,199,000: 1000. It has to wait
    list.push((1_400_000, Kind::Stolen, 0, 5, 0, 700));
    list.extend(&done(1_500_000, 1_500_100, 0, 5, 2)[..2]);
    list.push((1_500_100, Kind::Stolen, 0, 5, 0, 50)); // of the job that is done: 750
    list.push((1_500_100, Kind::Decision, 0, 0, 0, 5));
    list.extend(turn(1_500_100, 0, 6, 0, 1_500_400)); // since 1,500,000: 400
    list.extend(job(2_000_200, 5, 3)); // 200
    list.extend(turn(2_000_250, 0, 5, 6, 2_000_650)); // outranks at 2,000,200: 450
    list.extend(done(2_300_000, 2_300_000, 0, 5, 3));
    list.extend(turn(2_300_000, 0, 6, 0, 2_300_200)); // goes on: 200
    list.extend(done(2_500_000, 2_500_000, 0, 6, 2));
    list
}

#[test]
fn jitters_under_edf() {
    let measure = measured(&header(Source::Run, "edf"), Some(0), &edf());
    assert_eq!(of(&measure, "a", Quantity::RelJ), Some((300, 500, 2)));
    assert_eq!(of(&measure, "b", Quantity::RelJ), Some((1_000, 1_000, 1)));
    assert_eq!(of(&measure, "a", Quantity::CtswJ), Some((600, 1_050, 2)));
    assert_eq!(of(&measure, "b", Quantity::CtswJ), Some((400, 600, 2)));
    assert_eq!(of(&measure, "a", Quantity::IntO), Some((750, 750, 2)));
    assert_eq!(of(&measure, "b", Quantity::IntO), Some((0, 0, 1)));
    for nothing in [Quantity::ResJ, Quantity::RelO] {
        assert_eq!((of(&measure, "a", nothing), of(&measure, "b", nothing)), (None, None));
    }

    let all = [measure];
    let rows = rows(&all);
    let row = |quantity: Quantity| {
        let (most, least) = rows[quantity as usize].worst.unwrap();
        (most.task.1, most.max_ns, most.avg_ns, least.task.1, least.max_ns, least.avg_ns)
    };
    assert_eq!(row(Quantity::RelJ), ("b", 1_000, 1_000, "a", 300, 250));
    assert_eq!(row(Quantity::CtswJ), ("a", 600, 525, "b", 400, 300));
    assert_eq!(row(Quantity::IntO), ("a", 750, 375, "b", 0, 0));
    let text = tables(&all, true);
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1], ["ResJ", "-", "-", "-", "-", "-"]);
    assert_eq!(lines[3], ["CtswJ", "600", "ns", "525", "ns", "400", "ns", "300", "ns", "4"]);
    assert_eq!(lines[5], ["tick", "-", "-", "-", "-", "-"]);
    assert!(text.contains("releases happen in interrupts"), "{text}");
    let json = to_json(&all);
    assert_eq!(json["rows"][1]["most"]["max_ns"], 1_000);
    assert_eq!(json["rows"][1]["histogram"].as_array().unwrap().len(), 3);
    assert_eq!(json["tasks"][1]["CtswJ"]["avg_ns"], 300);
    assert_eq!(json["tasks"][1]["ResJ"], serde_json::Value::Null);
}

/// Without an epoch nobody knows when jobs should be released; without records of who comes in, decisions count.
#[test]
fn what_a_trace_does_not_tell_is_not_told() {
    let records: Vec<_> = edf().into_iter().filter(|record| record.1 != Kind::Outside).collect();
    let measure = measured(&header(Source::Run, "edf"), None, &records);
    assert_eq!(of(&measure, "a", Quantity::RelJ), None);
    assert_eq!(of(&measure, "a", Quantity::CtswJ), Some((200, 250, 2)));
    assert_eq!(of(&measure, "b", Quantity::CtswJ), Some((100, 100, 2)));
    let all = [measure];
    let remarks = remarks(&all).join("\n");
    for part in ["--epoch", "end with the decision", "tick", "RelO"] {
        assert!(remarks.contains(part), "{part}: {remarks}");
    }
}

/// A task split over both CPUs: [900, 1000) us of each ms on the left, [0, 100) on the right, where another fills.
#[test]
fn jitter_of_reserves() {
    let mut list = Vec::new();
    list.extend(job(400_000, 6, 1));
    list.push((400_000, Kind::Grant, 1, 5, 3, 0));
    list.push((400_000, Kind::Grant, 1, 6, 6, 0));
    list.extend(turn(400_000, 1, 6, 0, 400_100)); // no reserve begins: a switch, 100
    list.extend(job(500_000, 5, 1));
    list.push((500_000, Kind::Throttle, 0, 3, 5, 900_000));
    list.push((900_020, Kind::Replenish, 0, 3, 5, 99_980)); // the timer was 20 late
    list.push((900_020, Kind::Grant, 0, 3, 5, 0));
    list.extend(turn(900_020, 0, 5, 0, 900_150)); // since 900,000: 150
    list.push((1_000_030, Kind::Throttle, 0, 3, 5, 1_900_000)); // until then it is on the left
    list.push((1_000_030, Kind::Revoke, 0, 3, 4, 0));
    list.push((1_000_030, Kind::Decision, 0, 0, 0, 5));
    list.push((1_000_040, Kind::Replenish, 1, 4, 5, 99_960)); // the reserve has begun before
    list.push((1_000_040, Kind::Revoke, 1, 6, 0, 0));
    list.push((1_000_040, Kind::Revoke, 1, 5, 0, 0));
    list.push((1_000_040, Kind::Grant, 1, 4, 5, 0));
    list.extend(turn(1_000_040, 1, 5, 6, 1_005_000)); // since 1,000,000: 5000
    list.push((1_100_005, Kind::Throttle, 1, 4, 5, 2_000_000));
    list.push((1_100_005, Kind::Revoke, 1, 4, 4, 0));
    list.push((1_100_005, Kind::Grant, 1, 5, 3, 0));
    list.push((1_100_005, Kind::Grant, 1, 6, 6, 0));
    list.extend(turn(1_100_005, 1, 6, 5, 1_100_205)); // that reserve ended at 1,100,000: 205
    list.push((1_900_000, Kind::Replenish, 0, 3, 5, 100_000));
    list.push((1_900_000, Kind::Grant, 0, 3, 5, 0));
    list.extend(turn(1_900_000, 0, 5, 0, 1_900_060)); // 60
    list.extend(done(1_950_000, 1_950_000, 0, 5, 1));
    list.push((1_950_000, Kind::Revoke, 0, 3, 3, 0));
    list.extend(job(1_960_000, 5, 2)); // within its reserve: that has begun before
    list.push((1_960_000, Kind::Grant, 0, 3, 5, 0));
    list.extend(turn(1_960_000, 0, 5, 0, 1_960_070)); // a switch: 70
    list.push((1_980_000, Kind::Replenish, 0, 3, 5, 20_000)); // granted: nothing begins
    let measure = measured(&header(Source::Run, "slots"), None, &list);
    assert_eq!(of(&measure, "a", Quantity::ResJ), Some((5_000, 5_210, 3)));
    assert_eq!(of(&measure, "b", Quantity::ResJ), Some((205, 205, 1)));
    assert_eq!(of(&measure, "a", Quantity::CtswJ), Some((70, 70, 1)));
    assert_eq!(of(&measure, "b", Quantity::CtswJ), Some((100, 100, 1)));
}

/// A budget that comes back is a reserve that begins, but others may still be before it.
#[test]
fn jitter_of_budgets() {
    let mut list = Vec::new();
    list.extend(job(1_000, 5, 1));
    list.push((1_000, Kind::Grant, 0, 3, 5, 0));
    list.push((1_000, Kind::Decision, 0, 5, 3, 0));
    list.push((3_000, Kind::Throttle, 0, 3, 5, 10_000));
    list.push((3_000, Kind::Revoke, 0, 3, 4, 0));
    list.extend(job(3_000, 6, 1));
    list.push((3_100, Kind::Decision, 0, 6, 7, 5)); // since 3,000: a switch at a reserve's end comes later than a request
    list.push((10_020, Kind::Replenish, 0, 3, 5, 2_000)); // and waits for the other
    list.extend(done(12_000, 12_000, 0, 6, 1));
    list.push((12_000, Kind::Grant, 0, 3, 5, 0));
    list.push((12_040, Kind::Decision, 0, 5, 3, 0)); // since 12,000
    list.push((14_000, Kind::Throttle, 0, 3, 5, 20_000));
    list.push((14_000, Kind::Revoke, 0, 3, 4, 0));
    list.push((14_000, Kind::Decision, 0, 0, 0, 5));
    list.push((20_030, Kind::Replenish, 0, 3, 5, 2_000));
    list.push((20_030, Kind::Grant, 0, 3, 5, 0));
    list.push((20_030, Kind::Decision, 0, 5, 3, 0)); // since 20,000
    let measure = measured(&header(Source::Sim, "reservation"), None, &list);
    assert_eq!(of(&measure, "a", Quantity::ResJ), Some((30, 30, 1)));
    assert_eq!(of(&measure, "a", Quantity::CtswJ), Some((40, 40, 2)));
    assert_eq!(of(&measure, "b", Quantity::ResJ), Some((100, 100, 1)));
}

/// A turn that is over has no cause that a trace tells; a decision that changes nothing takes of the job that runs.
#[test]
fn turns_and_decisions_for_nothing() {
    let mut list = Vec::new();
    list.extend(job(1_000, 5, 1));
    list.extend(job(1_000, 6, 1));
    list.push((1_000, Kind::Decision, 0, 5, 3, 0));
    list.push((2_000, Kind::Decision, 0, 6, 7, 5));
    list.push((2_000, Kind::Outside, 0, 6, 1, SCHEDULER));
    list.push((2_050, Kind::Outside, 0, 6, 0, SCHEDULER)); // counts from the decision: 50
    list.push((2_500, Kind::Outside, 0, 6, 1, SCHEDULER));
    list.push((2_530, Kind::Stolen, 0, 6, 0, 10));
    list.push((2_540, Kind::Outside, 0, 6, 0, SCHEDULER)); // 40, of which an interrupt took 10
    list.push((2_700, Kind::Outside, 0, 6, 1, SCHEDULER));
    list.push((2_705, Kind::Outside, 0, 6, 0, SCHEDULER)); // 5
    list.extend(done(3_000, 3_000, 0, 6, 1));
    list.push((3_000, Kind::Decision, 0, 5, 3, 0));
    list.push((3_000, Kind::Decision, 0, 6, 7, 5)); // for no time: nothing starts
    let measure = measured(&header(Source::Sim, "fair"), None, &list);
    assert_eq!(of(&measure, "b", Quantity::CtswJ), Some((50, 50, 2)));
    assert_eq!(of(&measure, "a", Quantity::CtswJ), Some((0, 0, 1)));
    assert_eq!(of(&measure, "b", Quantity::RelO), Some((35, 35, 1)));
    assert_eq!(of(&measure, "b", Quantity::IntO), Some((10, 10, 1)));
}

#[test]
fn files_and_those_that_are_cut_off() {
    let header = header(Source::Run, "edf");
    let mut writer = Writer::new(Vec::new(), &header).unwrap();
    events(&edf()).iter().for_each(|event| writer.write(event).unwrap());
    let bytes = writer.finish().unwrap();
    let (whole, fault) = Measure::read(&bytes[..], Some(0)).unwrap();
    assert!(fault.is_none());
    assert_eq!(of(&whole, "a", Quantity::CtswJ), Some((600, 1_050, 2)));
    let (part, fault) = Measure::read(&bytes[..bytes.len() - 200], Some(0)).unwrap();
    assert!(fault.unwrap().to_string().contains("inside a record"));
    assert_eq!(of(&part, "a", Quantity::CtswJ), Some((600, 1_050, 2)));
    assert_eq!(of(&part, "b", Quantity::CtswJ), Some((400, 400, 1)), "the rest is missing");
    assert!(Measure::read(&b"nothing"[..], None).is_err());
}

/// A thread wakes when it comes, and now and then for something else than a release.
#[test]
fn not_every_wake_up_is_a_release() {
    let mut list = Vec::new();
    for (number, at_ns) in [(1, 700_000), (2, 800_000), (3, 1_000_300), (4, 1_400_000), (5, 2_000_100)] {
        list.extend(job(at_ns, 5, number));
        list.extend(turn(at_ns + 10, 0, 5, 0, at_ns + 20));
        list.extend(done(at_ns + 50, at_ns + 50, 0, 5, number));
    }
    let measure = measured(&header(Source::Run, "edf"), Some(0), &list);
    assert_eq!(of(&measure, "a", Quantity::RelJ), Some((300, 400, 2)));
}

/// An id that goes to another thread begins anew; what it measured stays under its name.
#[test]
fn threads_that_are_gone_are_kept() {
    let mut measure = Measure::new(&header(Source::Run, "edf"), None);
    let round = |measure: &mut Measure, at_ns: u64, name: &str| {
        measure.event(&Event::naming(at_ns, 0, 9, name));
        events(&job(at_ns, 9, 1)).iter().for_each(|event| measure.event(event));
        events(&turn(at_ns + 10, 0, 9, 0, at_ns + 20)).iter().for_each(|event| measure.event(event));
        events(&done(at_ns + 50, at_ns + 50, 0, 9, 1)).iter().for_each(|event| measure.event(event));
    };
    for (at_ns, name) in [(1_000, "one"), (2_000, "two"), (3_000, "one"), (4_000, "three")] {
        round(&mut measure, at_ns, name);
    }
    measure.event(&Event::new(9_000, Kind::Lost, 0, 0, 0, 3));
    measure.finish(0);
    assert_eq!(of(&measure, "one", Quantity::CtswJ), Some((20, 40, 2)));
    assert_eq!(of(&measure, "two", Quantity::CtswJ), Some((20, 20, 1)));
    assert_eq!(of(&measure, "three", Quantity::CtswJ), Some((20, 20, 1)));
    assert!(remarks(&[measure]).iter().any(|remark| remark.starts_with("3 records were lost")));
}

proptest! {
    /// Whatever records say, nothing panics.
    #[test]
    fn any_records(records in prop::collection::vec(
        (0u64..4, 0u16..26, 0u16..3, 0u32..10, 0u32..4, prop_oneof![Just(u64::MAX), 0u64..50, Just(3)]), 0..200,
    ), live in any::<bool>(), epoch in prop_oneof![Just(None), Just(Some(u64::MAX)), (0u64..100).prop_map(Some)]) {
        let source = if live { Source::Run } else { Source::Sim };
        let mut measure = Measure::new(&header(source, "slots"), epoch);
        let mut now_ns = 0;
        for (later, kind, cpu, a, b, value) in records {
            now_ns += later;
            measure.event(&Event { now_ns, kind, cpu, a, b, pad: 0, value });
        }
        measure.finish(u64::MAX);
        to_json(&[measure]);
    }
}
