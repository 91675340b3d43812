//! Intervals in which a CPU idles while a task that may run there waits elsewhere, found in written traces.

use tierce_policy::Cpus;
use tierce_trace::{EdgeInfo, Event, Kind, NodeInfo, Source, Stats, TaskInfo, TraceHeader};

const BALANCED: u64 = 2 << 1 | 1;

/// Three CPUs, `rest` spread over them (replicas 11 to 13 below the edges 11 to 13, roots 1 to 3), tasks 21 and 22 on CPU 0.
fn header() -> TraceHeader {
    let node = |id, name: &str, family| NodeInfo { id, name: name.into(), family, ..Default::default() };
    let edge = |id, parent, child, cpu| EdgeInfo { id, parent, child, cpu, ..Default::default() };
    let mut nodes: Vec<_> = (0..3).map(|cpu| node(1 + cpu, "top", None)).collect();
    nodes.extend((0..3).map(|cpu| node(11 + cpu, &format!("rest@{cpu}"), Some(11))));
    let mut edges: Vec<_> = (0..3).map(|cpu| edge(1 + cpu, 0, 1 + cpu, Some(cpu))).collect();
    edges.extend((0..3).map(|cpu| edge(11 + cpu, 1 + cpu, 11 + cpu, None)));
    edges.extend((0..2).map(|task| EdgeInfo { spread: true, ..edge(21 + task, 11, 21 + task, None) }));
    let tasks = (21..23).map(|id| TaskInfo { id, name: format!("t{id}"), ..Default::default() }).collect();
    TraceHeader { cpus: 3, source: Source::Sim, nodes, tasks, edges, ..Default::default() }
}

/// Both want the CPU from 0 on, 21 runs on CPU 0; then these events, until 100.
fn play(header: &TraceHeader, events: &[(u64, Kind, u16, u32, u32, u64)]) -> Stats {
    let mut stats = Stats::new(header);
    let begin =
        [(0, Kind::Request, 0, 21, 0, 0), (0, Kind::Request, 0, 22, 0, 0), (0, Kind::Decision, 0, 21, 21, 0)];
    for &(now_ns, kind, cpu, a, b, value) in begin.iter().chain(events) {
        stats.event(&Event::new(now_ns, kind, cpu, a, b, value));
    }
    stats.finish(100);
    stats
}

/// Total, intervals, longest, and per CPU.
fn found(stats: &Stats) -> (u64, u64, u64, [u64; 3]) {
    let found = stats.work_conservation();
    let longest = found.longest().map_or(0, |gap| gap.length_ns);
    (found.total_ns(), found.intervals(), longest, [0, 1, 2].map(|cpu| found.cpu_ns(cpu)))
}

#[test]
fn one_waiting_task_counts_one_idle_cpu() {
    let stats = play(&header(), &[(30, Kind::Migrate, 1, 22, 0, 3), (31, Kind::Decision, 1, 22, 22, 0)]);
    // From 30 on it waits on CPU 1 itself, but CPU 2 could run it.
    assert_eq!(found(&stats), (31, 2, 30, [0, 30, 1]));
    let report = stats.report();
    let gap = report.idle_while_waiting.unwrap().longest.unwrap();
    assert_eq!((gap.cpu, gap.at_ns, gap.length_ns, gap.waited.as_str()), (1, 0, 30, "rest@0"));
    assert_eq!(report.moves.unwrap().pull, 1);
    assert_eq!(report.tasks[1].moves.unwrap().pull, 1);
    assert_eq!(report.tasks[0].moves, None);
}

#[test]
fn who_was_taken_off_its_cpu_waits_again() {
    let stats = play(
        &header(),
        &[
            (10, Kind::Release, 0, 22, 3, 0),
            (40, Kind::Request, 0, 22, 0, 0),
            (50, Kind::Decision, 0, 22, 22, 21),
        ],
    );
    assert_eq!(found(&stats), (70, 2, 60, [0, 70, 0]), "21 waits from 50 on, without a request");
}

#[test]
fn sleeping_and_home_do_not_count() {
    let asleep = play(&header(), &[(0, Kind::Release, 0, 22, 3, 0)]);
    assert_eq!(found(&asleep), (0, 0, 0, [0; 3]));
    let mut two = header();
    two.cpus = 2;
    // CPU 0 goes idle at 60 while its own task waits: CPU 1 is busy, so nobody else could help.
    let home = play(
        &two,
        &[
            (0, Kind::Migrate, 1, 21, 0, 3),
            (0, Kind::Decision, 0, 0, 0, 21),
            (0, Kind::Decision, 1, 21, 21, 0),
        ],
    );
    assert_eq!(found(&home).0, 0);
}

#[test]
fn each_waiting_task_counts_an_idle_cpu_of_its_own() {
    let stats = play(&header(), &[(20, Kind::Decision, 0, 0, 0, 21), (50, Kind::Decision, 0, 21, 21, 0)]);
    assert_eq!(found(&stats), (130, 2, 100, [0, 100, 30]));
}

#[test]
fn throttled_replicas_and_affinity() {
    let throttled = play(
        &header(),
        &[
            (0, Kind::Throttle, 1, 12, 12, 70),
            (0, Kind::Throttle, 2, 13, 13, 90),
            (70, Kind::Replenish, 1, 12, 12, (-5i64) as u64),
            (80, Kind::Replenish, 1, 12, 12, 10),
        ],
    );
    assert_eq!(found(&throttled), (20, 1, 20, [0, 20, 0]), "what is in debt stays throttled");
    let granted = play(&header(), &[(0, Kind::Throttle, 1, 12, 12, 70), (30, Kind::Grant, 1, 12, 12, 0)]);
    assert_eq!(found(&granted).3, [0, 70, 30], "CPU 2 until CPU 1 can");
    let mut bound = header();
    bound.tasks[1].affinity = Some(Cpus::from(0b101));
    assert_eq!(found(&play(&bound, &[])).3, [0, 0, 100]);
    bound.tasks[1].affinity = Some(Cpus::from(0b001));
    assert_eq!(found(&play(&bound, &[])).3, [0, 0, 0]);
}

#[test]
fn shared_tasks_wait_nowhere_but_not_below_a_full_node() {
    let mut shared = header();
    // 22 moves below a node of its own that all CPUs share.
    let node = NodeInfo { id: 14, name: "shared".into(), concurrency: Some(1), ..Default::default() };
    shared.nodes.push(node);
    let above = |id, parent| EdgeInfo { id, parent, child: 14, ..Default::default() };
    shared.edges.extend([above(31, 1), above(32, 2)]);
    shared.edges[7] = EdgeInfo { id: 22, parent: 14, child: 22, ..Default::default() };
    assert_eq!(found(&play(&shared, &[])), (100, 1, 100, [0, 100, 0]));
    let full = play(&shared, &[(0, Kind::Grant, 0, 31, 14, 0), (60, Kind::Revoke, 0, 31, 7, 0)]);
    assert_eq!(found(&full), (40, 1, 40, [0, 40, 0]));
}

#[test]
fn stolen_time_and_threads_outside_are_not_idle() {
    let stolen = play(
        &header(),
        &[
            (30, Kind::Migrate, 2, 22, 0, 3),
            (30, Kind::Decision, 2, 22, 22, 0),
            (40, Kind::Stolen, 1, 0, 0, 25),
        ],
    );
    assert_eq!(found(&stolen), (5, 1, 5, [0, 5, 0]), "it was serving interrupts until 25");
    let outside = play(
        &header(),
        &[
            (10, Kind::Outside, 1, 99, 1, 0),
            (10, Kind::Outside, 2, 99, 1, 1),
            (90, Kind::Outside, 1, 99, 0, 0),
        ],
    );
    assert_eq!(found(&outside), (20, 2, 10, [0, 20, 0]));
}

#[test]
fn a_report_does_not_end_what_goes_on() {
    let mut stats = play(&header(), &[]);
    assert_eq!(found(&stats), (100, 1, 100, [0, 100, 0]));
    stats.event(&Event::new(150, Kind::Release, 0, 22, 3, 0));
    stats.finish(200);
    assert_eq!(found(&stats), (150, 1, 150, [0, 150, 0]));
}

#[test]
fn threads_come_and_go() {
    let stats = play(
        &header(),
        &[
            (0, Kind::Release, 0, 22, 3, 0),
            (10, Kind::Name, 0, 23, u32::from_le_bytes(*b"late"), 0),
            (10, Kind::Attach, 0, 23, 23, 11),
            (20, Kind::Request, 0, 23, 0, 0),
            (50, Kind::Migrate, 1, 23, 0, BALANCED),
            (60, Kind::Detach, 1, 23, 23, 0),
        ],
    );
    assert_eq!(found(&stats), (40, 2, 30, [0, 30, 10]));
    assert_eq!(stats.report().moves.unwrap().balance, 1);
}

#[test]
fn without_spread_nodes_nothing_is_said() {
    let mut plain = header();
    plain.nodes.iter_mut().for_each(|node| node.family = None);
    plain.edges.iter_mut().for_each(|edge| edge.spread = false);
    let report = play(&plain, &[]).report();
    assert_eq!(
        (report.idle_while_waiting, report.moves, report.cpus[0].idle_while_waiting_ns),
        (None, None, None)
    );
}

#[test]
fn what_people_read() {
    let text = play(&header(), &[]).report().tables();
    let last = text.lines().last().unwrap();
    assert_eq!(
        last,
        "idle while waiting: CPUs idled for 100 ns in all while a task that may run there waited elsewhere, in 1 interval; \
         the longest, 100 ns, on cpu1 at 0 ns, while one waited in rest@0"
    );
    let none = play(&header(), &[(0, Kind::Release, 0, 22, 3, 0)]).report().tables();
    assert!(
        none.ends_with("work-conserving: no CPU idled while a task that may run there waited elsewhere\n")
    );
}
