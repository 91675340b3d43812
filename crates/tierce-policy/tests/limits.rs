//! What the pages promise of sizes: a thousand servers, ten thousand fair children, full pools. The checker looks at
//! everything, so it looks now and then only.

mod common;

use common::{budget, number, weight, World, MS, NONE, US};
use tierce_policy::{limits, Cpus, Graph, TASK};

/// One CPU, one node, `count` busy children: their edges. Runs without the checker until it is asked for.
fn wide(policy: &str, node: [u64; 4], count: u32, params: impl Fn(u32) -> [u64; 4]) -> (Graph, Vec<u32>) {
    let mut graph = Graph::new(1, 0).unwrap();
    let top = graph.node_new(number(policy), 0, Cpus::from(0), node).unwrap();
    graph.root(0, top, 0).unwrap();
    let mut edges = vec![];
    for i in 0..count {
        let task = graph.node_new(TASK, 0, Cpus::from(1), NONE).unwrap();
        edges.push(graph.attach(top, task, params(i), 0, false, 0).unwrap());
        graph.request(task, 0);
    }
    (graph, edges)
}

/// Every timer on time until `to`; the number of decisions.
fn play(graph: &mut Graph, to: u64) -> u64 {
    let before = graph.cpu(0).decisions;
    let mut now = graph.cpu(0).charged_ns;
    loop {
        if graph.cpu(0).kick_pending == 0 {
            if graph.cpu(0).armed_ns > to {
                break;
            }
            now = now.max(graph.cpu(0).armed_ns);
            graph.event(0, now, 0);
        } else {
            graph.decide(0, now, 0);
            graph.returned(0, now);
        }
    }
    graph.event(0, to, 0);
    graph.cpu(0).decisions - before
}

#[test]
fn a_thousand_servers() {
    // 1,000 servers of 1/1000 each, in three groups of periods: all of the CPU, in every period
    let period = |i: u32| [20, 40, 80][i as usize % 3] * MS;
    let (mut graph, edges) = wide("reservation", NONE, 1000, |i| budget(period(i) / 1000, period(i)));
    graph.check(false).unwrap();
    for k in 1..=10 {
        play(&mut graph, k * 80 * MS);
        graph.decide(0, k * 80 * MS, 0);
        graph.returned(0, k * 80 * MS);
        graph.check(true).unwrap();
        for &edge in &edges {
            assert_eq!(graph.edge(edge).supply_ns, k * 80 * US, "edge {edge} after {} ms", k * 80);
        }
    }
    let cpu = graph.cpu(0);
    assert_eq!((cpu.used_ns, cpu.idle_ns), (800 * MS, 0));
}

#[test]
fn ten_thousand_fair_children() {
    // weights 1 to 100, so that the least gets 1 in 505,000
    let (mut graph, edges) = wide("fair", [10 * US, 0, 0, 0], 10_000, |i| weight(u64::from(i % 100) + 1, 0));
    graph.check(false).unwrap();
    let to = 10_100 * MS;
    play(&mut graph, to);
    graph.decide(0, to, 0);
    graph.returned(0, to);
    graph.check(true).unwrap();
    // virtual time has come to 10,100 ms / 505,000 = 20 us: each child within a quantum of 20 us times its weight
    for (i, &edge) in edges.iter().enumerate() {
        let fair = 20 * US * (i as u64 % 100 + 1);
        let supply = graph.edge(edge).supply_ns;
        assert!(supply.abs_diff(fair) <= 10 * US + 1, "child {i}: {supply} of {fair}");
    }
    let total: u64 = edges.iter().map(|&edge| graph.edge(edge).supply_ns).sum();
    assert_eq!(total, to);
}

#[test]
fn pools_are_used_to_the_last_and_come_back() {
    let mut graph = Graph::new(1, 0).unwrap();
    let top = graph.node_new(number("fixed-priority"), 0, Cpus::from(0), NONE).unwrap();
    graph.root(0, top, 0).unwrap();
    let mut made = vec![];
    while let Some(task) = graph.node_new(TASK, 0, Cpus::from(1), NONE) {
        made.push((task, graph.attach(top, task, NONE, 0, false, 0).unwrap()));
        graph.request(task, 0);
    }
    assert_eq!(made.len() as u32, limits().nodes - 1);
    assert_ne!(graph.decide(0, 0, 0), 0);
    let last = made.last().unwrap().0;
    for &(task, _) in &made[..made.len() - 1] {
        graph.release(task, 0);
    }
    assert_eq!(graph.decide(0, 0, 0), last);
    graph.release(last, 0);
    graph.decide(0, 0, 0);
    for (task, edge) in made {
        graph.detach(edge, 0).unwrap();
        graph.node_free(task).unwrap();
    }
    graph.decide(0, 0, 0);
    graph.check(true).unwrap();
    assert_eq!(graph.node(top).children, 0);
}

#[test]
fn eight_levels_of_every_policy() {
    let policies = ["fixed-priority", "reservation", "fair", "edf"];
    let params = |policy: &str| match policy {
        "fair" => weight(100, 0),
        "reservation" => budget(8 * MS, 10 * MS),
        _ => NONE,
    };
    let node = |policy: &str| if policy == "fair" { [MS, 0, 0, 0] } else { NONE };
    let (mut w, mut above) = World::one(policies[0], node(policies[0]));
    for level in 1..8 {
        let policy = policies[level % 4];
        let inner = w.node(policy, node(policy));
        w.under(above, inner, params(policies[(level - 1) % 4]));
        above = inner;
    }
    let a = w.task(above, "a", NONE);
    w.wake(a.task);
    assert_eq!(w.graph.cpu(0).path_length, 9);
    w.run(100 * MS);
    assert_eq!(w.supply(a.edge), 80 * MS); // what the reservations leave
}
