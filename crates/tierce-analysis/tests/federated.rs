//! Parallel tasks: worked sets, and random graphs played slot by slot on the CPUs that a task gets.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/seen.rs"]
mod seen;

use draw::Draw;
use seen::{rounds, Seen};
use tierce_analysis::federated::{assign, Parallel, Place};
use tierce_analysis::Task;

fn parallel(work: u64, span_ns: u64, period: u64) -> Parallel {
    Parallel { task: Task::new(work, period), span_ns }
}

/// The example at the head of the file, beside tasks that share a CPU.
#[test]
fn worked_sets() {
    let heavy = parallel(20, 6, 10);
    let place = |cpu, own, response_ns| Place { cpu, own, response_ns };
    assert_eq!(assign(&[heavy], 4).unwrap(), Ok(vec![place(0, 4, 10)])); // 9.5, rounded up
    assert_eq!(assign(&[heavy], 3).unwrap(), Err(0));
    let tasks = [parallel(3, 3, 6), heavy, parallel(2, 1, 4), parallel(1, 1, 4)];
    let places = assign(&tasks, 6).unwrap().unwrap();
    assert_eq!(places[1], place(0, 4, 10));
    assert_eq!([0, 2, 3].map(|index| (places[index].cpu, places[index].own)), [(4, 0), (4, 0), (5, 0)]);
    assert_eq!(assign(&tasks, 5).unwrap(), Err(3));
    // What fits on one CPU is not spread; a chain as long as the deadline leaves nothing for others.
    assert_eq!(assign(&[parallel(10, 1, 10)], 1).unwrap(), Ok(vec![place(0, 0, 10)]));
    assert_eq!(assign(&[parallel(11, 10, 10)], 64).unwrap(), Err(0));
    let late = Parallel { task: Task { jitter_ns: 2, ..heavy.task }, ..heavy };
    assert_eq!(assign(&[late], 7).unwrap(), Ok(vec![place(0, 7, 10)]));
    assert_eq!(assign(&[], 1).unwrap(), Ok(vec![]));
    let most = tierce_analysis::TIME_MAX_NS;
    assert_eq!(assign(&[parallel(most, 1, 2)], 1024).unwrap(), Err(0));
    for (task, rule) in [
        (parallel(2, 3, 10), "span_is_at_most_work"),
        (Parallel { task: Task { deadline_ns: 11, ..heavy.task }, ..heavy }, "deadlines_are_at_most_periods"),
        (Parallel { task: Task { blocking_ns: 1, ..heavy.task }, ..heavy }, "tasks_are_not_blocked"),
    ] {
        assert_eq!(assign(&[heavy, task], 8).unwrap_err().rule, rule);
    }
}

/// A graph: the work of each piece, and which earlier pieces it waits for.
type Graph = Vec<(u64, Vec<usize>)>;

fn span(graph: &Graph) -> u64 {
    let mut ends = Vec::<u64>::new();
    for (work, before) in graph {
        let from = before.iter().map(|piece| ends[*piece]).max().unwrap_or(0);
        ends.push(from + work);
    }
    ends.into_iter().max().unwrap_or(0)
}

/// How long a job takes on so many CPUs, which ready piece goes first being drawn.
fn played(draw: &mut Draw, graph: &Graph, cpus: usize) -> u64 {
    let less = draw.below(3) == 0;
    let mut left: Vec<_> = graph
        .iter()
        .map(|(work, _)| if less { 1 + draw.below(*work as usize) as u64 } else { *work })
        .collect();
    let mut slots = 0;
    while left.iter().any(|left| *left > 0) {
        let is_ready =
            |piece: &usize| left[*piece] > 0 && graph[*piece].1.iter().all(|before| left[*before] == 0);
        let mut ready: Vec<_> = (0..graph.len()).filter(is_ready).collect();
        for _ in 0..cpus.min(ready.len()) {
            let piece = ready.swap_remove(draw.below(ready.len()));
            left[piece] -= 1;
        }
        slots += 1;
    }
    slots
}

/// No job of a task with CPUs of its own takes longer than promised.
#[test]
fn graphs_on_their_own_cpus() {
    let rounds = rounds(3_000);
    let mut draw = Draw::new(91);
    let (mut spread, mut seen) = (0, Seen::default());
    for _ in 0..rounds {
        let graph: Graph = (0..3 + draw.below(12))
            .map(|piece| {
                let before = (0..piece).filter(|_| draw.below(4) == 0).collect();
                (1 + draw.below(6) as u64, before)
            })
            .collect();
        let (work, span) = (graph.iter().map(|piece| piece.0).sum::<u64>(), span(&graph));
        let deadline = span + draw.below((work - span + 2) as usize) as u64;
        let Ok(places) = assign(&[parallel(work, span, deadline)], 16).unwrap() else { continue };
        let cpus = places[0].own.max(1);
        spread += u64::from(cpus > 1);
        let longest = (0..6).map(|_| played(&mut draw, &graph, cpus)).max().unwrap();
        assert!(places[0].response_ns <= deadline);
        seen.add(longest, places[0].response_ns, || format!("{graph:?} on {cpus}"));
    }
    println!("{spread} graphs of {rounds} on several CPUs");
    assert!(seen.print("federated").equal() > 100 && spread * 3 > rounds);
}
