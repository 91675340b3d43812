//! Every error of TIERCE_ERROR_LIST, provoked by name; a refused call has changed nothing.

mod common;

use common::{budget, number, repository, weight, World, MS, NONE, US};
use tierce_policy::{limits, policies, Cpus, Error, Graph, Migration, ParamKind, Way, TASK};

/// Errors without a test of their name, and why.
const ELSEWHERE: [(&str, &str); 10] = [
    ("no_such_policy", "node_new gives no node: `none_instead_of_an_id`"),
    ("out_of_nodes", "node_new gives no node: `none_instead_of_an_id`"),
    ("not_a_parent", "no operation takes a node and an edge of it"),
    ("deadline_needs_hard_budget", "below a reservation: its rule 11"),
    ("recharge_needs_deadlines", "below a reservation: its rule 11"),
    ("sporadic_period_too_long", "below a reservation: its rule 11"),
    ("utilisation_above_cap", "below a reservation: its rule 14"),
    ("feedback_needs_hard_wall_time", "below a reservation: its rule 13"),
    ("still_running", "asks for a decision, which is a change: `still_running_until_decided`"),
    ("part_is_left_out", "engine.rs: `a_machine_without_what_its_plans_do_not_need`"),
];

/// All that an operation could have changed: nodes, edges, what the CPUs run and are armed for.
fn state(graph: &Graph) -> Vec<String> {
    let mut all = vec![];
    for id in 1..=4096 {
        let (node, edge) = (graph.node(id), graph.edge(id));
        if node.kind != 0 {
            all.push(format!("{id} {node:?}"));
        }
        if edge.child != 0 {
            all.push(format!("{id} {edge:?}"));
        }
    }
    for cpu in 0..graph.cpus() {
        let c = graph.cpu(cpu);
        let path = &c.path[..c.path_length as usize];
        all.push(format!(
            "{:?}",
            (c.root_edge, c.online, path, c.task, c.crossings, c.crossing, c.until_ns, c.kick_pending)
        ));
    }
    all
}

/// Twice, so that what a refusal might have left behind shows.
fn refused<T>(w: &mut World, name: &str, mut operation: impl FnMut(&mut Graph) -> Result<T, Error>) {
    for _ in 0..2 {
        let before = state(&w.graph);
        let error = operation(&mut w.graph).err().unwrap_or_else(|| panic!("{name} was not refused"));
        assert_eq!(error.name(), name);
        assert!(error.to_string().starts_with(&format!("{name}: ")));
        w.graph.check(true).unwrap();
        let after = state(&w.graph);
        let changed = before.iter().zip(&after).find(|(before, after)| before != after);
        assert!(before == after, "{name} changed {changed:?}");
    }
}

/// A CPU with a reservation node and a child that runs, one that waits for its period, and one that sleeps.
fn busy() -> (World, u32, [common::Leaf; 3]) {
    let (mut w, top) = World::one("reservation", NONE);
    let [a, b, c] = ["a", "b", "c"].map(|name| w.task(top, name, budget(2 * MS, 10 * MS)));
    w.wake_all(&[a, b]);
    w.run(3 * MS);
    assert_eq!((w.runs(0), w.spent(a.edge)), ("b", true));
    (w, top, [a, b, c])
}

/// A CPU with a reservation node in the order of priorities, and a child that runs with 1 ms of 2 ms left.
fn by_priority() -> (World, common::Leaf) {
    let record = tierce_policy::policies().iter().find(|policy| policy.name == "reservation").unwrap();
    let mut params = [0; 8];
    params[0] = record.node_params[0].read("fixed-priority").unwrap();
    let (mut w, top) = World::one("reservation", params);
    let a = w.task(top, "a", budget(2 * MS, 10 * MS));
    w.wake(a.task);
    w.run(MS);
    (w, a)
}

/// Two CPUs with a fixed-priority root each.
fn two() -> (World, [u32; 2]) {
    let mut w = World::new(2);
    let roots = [0, 1].map(|cpu| {
        let root = w.node("fixed-priority", NONE);
        w.graph.root(cpu, root, 0).unwrap();
        root
    });
    (w, roots)
}

fn task(w: &mut World, allowed: u64) -> u32 {
    w.graph.node_new(TASK, 0, Cpus::from(allowed), NONE).unwrap()
}

#[test]
fn every_error_has_its_test() {
    let list = std::fs::read_to_string(repository("policy/errors.h")).unwrap();
    let own = include_str!("errors.rs");
    let mut found = 0;
    for number in 1.. {
        let name = Error(number).name();
        if name == "unknown_error" {
            break;
        }
        found += 1;
        let elsewhere = ELSEWHERE.iter().any(|(other, _)| *other == name);
        let tested = own.contains(&format!("#[test]\nfn {name}() {{"));
        assert!(elsewhere != tested, "{name}: a test of that name, or a line in ELSEWHERE");
    }
    assert_eq!(found, list.lines().filter(|line| line.starts_with("\tE(")).count());
}

#[test]
fn no_such_node() {
    let (mut w, top, _) = busy();
    for nobody in [0, 99, limits().nodes, limits().nodes + 1, u32::MAX] {
        let now = w.now;
        refused(&mut w, "no_such_node", |g| g.attach(nobody, top, NONE, 0, false, now));
        refused(&mut w, "no_such_node", |g| g.attach(top, nobody, NONE, 0, false, now));
        refused(&mut w, "no_such_node", |g| g.node_set(nobody, NONE, now));
        refused(&mut w, "no_such_node", |g| g.node_free(nobody));
        refused(&mut w, "no_such_node", |g| g.allow(nobody, Cpus::from(1), now));
        refused(&mut w, "no_such_node", |g| g.constrain(nobody, MS, 9 * MS, now));
    }
    refused(&mut w, "no_such_node", |g| g.allow(top, Cpus::from(1), 3 * MS)); // a node is no task
    let task = w.free_task("a task is no node");
    refused(&mut w, "no_such_node", |g| g.node_set(task, NONE, 3 * MS));
    refused(&mut w, "no_such_node", |g| g.allow(task, Cpus::from(1), 3 * MS)); // nor is it part of the graph
    let mut empty = World::new(1);
    refused(&mut empty, "no_such_node", |g| g.root(0, 1, 0));
}

#[test]
fn no_such_edge() {
    let (mut w, top, [_, b, _]) = busy();
    let now = w.now;
    for nobody in [0, 99, limits().edges, limits().edges + 1, u32::MAX] {
        refused(&mut w, "no_such_edge", |g| g.edge_attach(nobody, NONE, now));
        refused(&mut w, "no_such_edge", |g| g.set(nobody, budget(MS, 10 * MS), now));
        refused(&mut w, "no_such_edge", |g| g.detach(nobody, now));
    }
    let root = w.graph.cpu(0).root_edge;
    refused(&mut w, "no_such_edge", |g| g.set(root, NONE, now)); // a root edge has no parameters
    refused(&mut w, "no_such_edge", |g| g.edge_attach(root, NONE, now));
    let task = w.free_task("t");
    let loose = w.graph.edge_new(top, task, 0, false).unwrap();
    refused(&mut w, "no_such_edge", |g| g.set(loose, budget(MS, 10 * MS), now));
    assert_eq!(w.runs(0), "b");
    assert_eq!(w.edge(b).param[0], 2 * MS);
}

#[test]
fn none_instead_of_an_id() {
    let mut graph = Graph::new(1, 0).unwrap();
    for kind in [0, 7, 100, u32::MAX] {
        assert_eq!(graph.node_new(kind, 0, Cpus::from(1), NONE), None, "no such policy");
    }
    for _ in 0..limits().nodes {
        graph.node_new(TASK, 0, Cpus::from(1), NONE).expect("as many as the limit says");
    }
    assert_eq!(graph.node_new(TASK, 0, Cpus::from(1), NONE), None, "the pool is used up");
    graph.node_free(17).unwrap();
    assert_eq!(graph.node_new(TASK, 0, Cpus::from(1), NONE), Some(17), "what is given back is used again");
}

#[test]
fn out_of_edges() {
    let mut w = World::new(1);
    let [top, child] = [0, 1].map(|_| w.node("fixed-priority", NONE));
    for _ in 0..limits().edges {
        w.graph.edge_new(top, child, 0, false).expect("as many as the limit says");
    }
    refused(&mut w, "out_of_edges", |g| g.root(0, top, 0));
    refused(&mut w, "out_of_edges", |g| g.attach(top, child, NONE, 0, false, 0));
    w.graph.detach(5, 0).unwrap();
    w.graph.root(0, top, 0).unwrap();
    assert_eq!(w.graph.cpu(0).root_edge, 5);
}

#[test]
fn too_deep() {
    let (mut w, mut above) = World::one("fixed-priority", NONE);
    for _ in 1..limits().depth {
        let node = w.node("fixed-priority", NONE);
        w.under(above, node, NONE);
        above = node;
    }
    w.task(above, "the last level is for tasks", NONE);
    let node = w.node("fixed-priority", NONE);
    refused(&mut w, "too_deep", |g| g.attach(above, node, NONE, 0, false, 0));
}

/// A value for each parameter that its policy accepts.
fn inside<const N: usize>(params: &[tierce_policy::Param]) -> [u64; N] {
    let mut values = [0; N];
    for (i, param) in params.iter().enumerate() {
        values[i] = match param.kind {
            ParamKind::DurationOf(other) => values[other],
            _ => param.preset.unwrap_or(param.least.max(MS)),
        };
    }
    values
}

#[test]
fn parameter_out_of_range() {
    for policy in policies() {
        let (of_node, of_edge): ([u64; 8], [u64; 6]) =
            (inside(&policy.node_params), inside(&policy.edge_params));
        let (mut w, top) = World::one(policy.name, of_node);
        let a = w.task(top, "a", of_edge);
        let b = w.free_task("b");
        w.wake(a.task);
        for (i, param) in policy.edge_params.iter().enumerate() {
            for value in [param.least.wrapping_sub(1), param.most + 1] {
                let mut wrong = of_edge;
                wrong[i] = value;
                refused(&mut w, "parameter_out_of_range", |g| g.set(a.edge, wrong, 0));
                refused(&mut w, "parameter_out_of_range", |g| g.attach(top, b, wrong, 0, false, 0));
            }
        }
        for (i, param) in policy.node_params.iter().enumerate() {
            for value in [param.least.wrapping_sub(1), param.most + 1] {
                let mut wrong = of_node;
                wrong[i] = value;
                refused(&mut w, "parameter_out_of_range", |g| g.node_set(top, wrong, 0));
                assert_eq!(w.graph.node_new(policy.number, 0, Cpus::from(1), wrong), None);
            }
        }
    }
}

#[test]
fn deadline_beyond_period() {
    refused_parameters("deadline_beyond_period", [2 * MS, 10 * MS, 10 * MS + 1, 0]);
}

#[test]
fn budget_beyond_deadline() {
    refused_parameters("budget_beyond_deadline", [2 * MS, 10 * MS, 2 * MS - 1, 0]);
}

#[test]
fn utilisation_above_one() {
    refused_parameters("utilisation_above_one", budget(9 * MS, 10 * MS));
}

/// Of a running, a throttled, a sleeping and a new child.
fn refused_parameters(name: &str, params: [u64; 4]) {
    let (mut w, top, leaves) = busy();
    let now = w.now;
    for leaf in leaves {
        refused(&mut w, name, |g| g.set(leaf.edge, params, now));
    }
    let more = w.free_task("more");
    refused(&mut w, name, |g| g.attach(top, more, params, 0, false, now));
    let loose = w.graph.edge_new(top, more, 0, false).unwrap();
    refused(&mut w, name, |g| g.edge_attach(loose, params, now));
    w.run(100 * MS);
    assert_eq!(leaves.map(|leaf| w.supply(leaf.edge)), [20 * MS, 20 * MS, 0]);
}

#[test]
fn still_in_use() {
    let (mut w, top) = World::one("fixed-priority", NONE);
    let inner = w.node("fixed-priority", NONE);
    let edge = w.under(top, inner, NONE);
    let a = w.task(inner, "a", NONE);
    refused(&mut w, "still_in_use", |g| g.node_free(top));
    refused(&mut w, "still_in_use", |g| g.node_free(inner));
    refused(&mut w, "still_in_use", |g| g.node_free(a.task));
    refused(&mut w, "still_in_use", |g| g.detach(edge, 0)); // its last parent
    let root = w.graph.cpu(0).root_edge;
    refused(&mut w, "still_in_use", |g| g.detach(root, 0));
    // from below it goes
    w.graph.detach(a.edge, 0).unwrap();
    w.graph.detach(edge, 0).unwrap();
    for node in [a.task, inner] {
        w.graph.node_free(node).unwrap();
    }
    // a task that wants a CPU does not become a shared one
    let (mut w, [one, other]) = two();
    let a = w.task(one, "a", NONE);
    w.wake(a.task);
    refused(&mut w, "still_in_use", |g| g.attach(other, a.task, NONE, 0, false, 0));
    w.sleep(a.task);
    w.under(other, a.task, NONE);
    // a node's choice stays while it has children
    let (mut w, top) = World::one("fair", [MS, 0, 0, 0]);
    w.graph.node_set(top, [MS, 1, 0, 0], 0).unwrap();
    let a = w.task(top, "a", weight(100, 0));
    refused(&mut w, "still_in_use", |g| g.node_set(top, [MS, 0, 0, 0], 0));
    w.graph.node_set(top, [2 * MS, 1, 0, 0], 0).unwrap();
    w.graph.detach(a.edge, 0).unwrap();
    w.graph.node_set(top, [MS, 0, 0, 0], 0).unwrap();
}

#[test]
fn parents_after_children() {
    let (mut w, [one, other]) = two();
    let inner = w.node("fair", [MS, 0, 0, 0]);
    w.under(one, inner, NONE);
    w.task(inner, "a", weight(100, 0));
    refused(&mut w, "parents_after_children", |g| g.attach(other, inner, NONE, 0, false, 0));
    refused(&mut w, "parents_after_children", |g| g.attach(one, inner, NONE, 0, false, 0));
    // which is also why no edge can close a ring
    refused(&mut w, "parents_after_children", |g| g.attach(inner, one, weight(100, 0), 0, false, 0));
}

#[test]
fn parent_unattached() {
    let mut w = World::new(1);
    let top = w.node("fixed-priority", NONE);
    let task = w.free_task("a");
    refused(&mut w, "parent_unattached", |g| g.attach(top, task, NONE, 0, false, 0));
    let loose = w.graph.edge_new(top, task, 0, false).unwrap();
    refused(&mut w, "parent_unattached", |g| g.edge_attach(loose, NONE, 0));
    w.graph.root(0, top, 0).unwrap();
    w.graph.edge_attach(loose, NONE, 0).unwrap();
}

#[test]
fn task_cannot_be_parent() {
    let (mut w, _, [a, b, _]) = busy();
    refused(&mut w, "task_cannot_be_parent", |g| g.attach(a.task, b.task, NONE, 0, false, 3 * MS));
    assert_eq!(w.graph.edge_new(a.task, b.task, 0, false), None);
}

#[test]
fn cycle() {
    let (mut w, top, _) = busy();
    refused(&mut w, "cycle", |g| g.attach(top, top, budget(MS, 10 * MS), 0, false, 3 * MS));
    assert_eq!(w.graph.edge_new(top, top, 0, false), None);
}

#[test]
fn too_many_crossings() {
    let (mut w, [one, other]) = two();
    for _ in 0..limits().crossings {
        let shared = task(&mut w, u64::MAX);
        w.under(one, shared, NONE);
        w.under(other, shared, NONE);
    }
    let shared = task(&mut w, u64::MAX);
    w.under(one, shared, NONE);
    refused(&mut w, "too_many_crossings", |g| g.attach(other, shared, NONE, 0, false, 0));
}

#[test]
fn cpu_has_root() {
    let (mut w, [one, _]) = two();
    let more = w.node("edf", NONE);
    refused(&mut w, "cpu_has_root", |g| g.root(1, more, 0));
    refused(&mut w, "cpu_has_root", |g| g.root(1, one, 0));
}

#[test]
fn cpu_not_allowed() {
    let (mut w, [one, other]) = two();
    let only_1 = task(&mut w, 0b10);
    refused(&mut w, "cpu_not_allowed", |g| g.attach(one, only_1, NONE, 0, false, 0));
    w.under(other, only_1, NONE);
    refused(&mut w, "cpu_not_allowed", |g| g.allow(only_1, Cpus::from(0b01), 0));
    refused(&mut w, "cpu_not_allowed", |g| g.allow(only_1, Cpus::from(0), 0));
    // a shared task must be able to use each of its parents
    let shared = task(&mut w, 0b11);
    w.under(one, shared, NONE);
    w.under(other, shared, NONE);
    refused(&mut w, "cpu_not_allowed", |g| g.allow(shared, Cpus::from(0b10), 0));
    // below a shared root, some CPU of it
    let (mut w, root) = shared_root();
    let a = w.task(root, "a", NONE);
    refused(&mut w, "cpu_not_allowed", |g| g.allow(a.task, Cpus::from(0b100), 0));
    let nowhere = task(&mut w, 0b100);
    refused(&mut w, "cpu_not_allowed", |g| g.attach(root, nowhere, NONE, 0, false, 0));
}

fn shared_root() -> (World, u32) {
    let mut w = World::new(2);
    let root = w.node("fixed-priority", NONE);
    w.graph.root(0, root, 0).unwrap();
    w.graph.root(1, root, 0).unwrap();
    (w, root)
}

#[test]
fn affinity_below_inner_node() {
    let (mut w, root) = shared_root();
    let inner = w.node("fixed-priority", NONE);
    w.under(root, inner, NONE);
    let only_0 = task(&mut w, 0b01);
    refused(&mut w, "affinity_below_inner_node", |g| g.attach(inner, only_0, NONE, 0, false, 0));
    w.under(root, only_0, NONE); // directly below the shared root it can be
    let a = w.task(inner, "a", NONE);
    w.wake(a.task);
    refused(&mut w, "affinity_below_inner_node", |g| g.allow(a.task, Cpus::from(0b10), 0));
    // a way of its own beside that does not help: the order above is still one for all CPUs
    let (mut w, [one, other]) = two();
    let shared = w.node("fixed-priority", NONE);
    w.under(one, shared, NONE);
    w.under(other, shared, NONE);
    let both = w.node("fixed-priority", NONE);
    w.under(shared, both, NONE);
    w.under(other, both, NONE);
    let only_0 = task(&mut w, 0b01);
    refused(&mut w, "affinity_below_inner_node", |g| g.attach(both, only_0, NONE, 0, false, 0));
    let a = w.task(both, "a", NONE);
    refused(&mut w, "affinity_below_inner_node", |g| g.allow(a.task, Cpus::from(0b10), 0));
}

#[test]
fn no_such_cpu() {
    for cpus in [0, limits().cpus + 1, u32::MAX] {
        assert_eq!(Graph::new(cpus, 0).err().unwrap().name(), "no_such_cpu");
    }
    let (mut w, _) = two();
    let more = w.node("edf", NONE);
    for cpu in [2, 63, 64, u32::MAX] {
        refused(&mut w, "no_such_cpu", |g| g.root(cpu, more, 0));
        refused(&mut w, "no_such_cpu", |g| g.online(cpu, false, 0));
    }
}

#[test]
fn condition_across_cpus() {
    let (mut w, [one, other]) = two();
    let a = task(&mut w, u64::MAX);
    w.under(one, a, NONE);
    refused(&mut w, "condition_across_cpus", |g| g.attach(other, a, NONE, 0, true, 0));
    // nor the other way round
    w.under_when_spent(one, a, NONE);
    refused(&mut w, "condition_across_cpus", |g| g.attach(other, a, NONE, 0, false, 0));
}

#[test]
fn still_running_until_decided() {
    let (mut w, top, [a, b, _]) = busy();
    let error = w.graph.detach(b.edge, w.now).unwrap_err();
    assert_eq!(error.name(), "still_running");
    assert_eq!(w.graph.edge(b.edge).child, b.task, "it is still there");
    w.rest(); // the decision it has asked for
    assert_eq!(w.runs(0), "idle");
    w.graph.detach(b.edge, w.now).unwrap();
    w.rest();
    assert_eq!((w.graph.edge(b.edge).child, w.graph.node(top).children), (0, 2));
    // a throttled one is not running
    w.graph.detach(a.edge, w.now).unwrap();
    w.rest();
    w.run(100 * MS);
    // both can come back elsewhere, with all of the CPU to share
    for task in [a.task, b.task] {
        w.try_under(top, task, budget(4 * MS, 10 * MS)).unwrap();
    }
    w.run(200 * MS);
    assert_eq!([a, b].map(|leaf| w.graph.node(leaf.task).ran_ns), [42 * MS, 41 * MS]);
}

#[test]
fn out_of_rows() {
    let mut w = World::new(64);
    let roots: Vec<_> = (0..64)
        .map(|cpu| {
            let root = w.graph.node_new(number("fixed-priority"), 0, Cpus::from(0), NONE).unwrap();
            w.graph.root(cpu, root, 0).unwrap();
            root
        })
        .collect();
    let mut shared = vec![];
    for i in 0..limits().heads {
        let cpu = 2 * (i as usize % 32);
        let a = task(&mut w, u64::MAX);
        shared.push([cpu, cpu + 1].map(|cpu| w.graph.attach(roots[cpu], a, NONE, 0, false, 0).unwrap()));
    }
    let one_more = task(&mut w, u64::MAX);
    w.under(roots[0], one_more, NONE);
    refused(&mut w, "out_of_rows", |g| g.attach(roots[1], one_more, NONE, 0, false, 0));
    // a place that is given back can be had
    for edge in shared[5] {
        w.graph.detach(edge, 0).unwrap();
    }
    w.under(roots[1], one_more, NONE);
}

#[test]
fn already_attached() {
    let (mut w, _, [a, b, c]) = busy();
    for leaf in [a, b, c] {
        refused(&mut w, "already_attached", |g| g.edge_attach(leaf.edge, budget(US, MS), 3 * MS));
    }
}

#[test]
fn ranks_above_inner_head() {
    let (mut w, [one, other]) = two();
    let ranked = w.node("fixed-priority", NONE);
    w.graph.attach(one, ranked, NONE, 0, false, 0).unwrap();
    w.graph.attach(other, ranked, NONE, 1, false, 0).unwrap();
    let a = task(&mut w, u64::MAX);
    w.under(ranked, a, NONE); // one way down from it: fine
    refused(&mut w, "ranks_above_inner_head", |g| g.attach(ranked, a, NONE, 0, false, 0));
    refused(&mut w, "ranks_above_inner_head", |g| g.attach(one, a, NONE, 0, false, 0));
    // a reservation of its own beside an equally shared node: fine with one rank, not with two
    let equal = w.node("fixed-priority", NONE);
    w.under(one, equal, NONE);
    w.under(other, equal, NONE);
    let b = task(&mut w, u64::MAX);
    w.graph.attach(one, b, NONE, 1, false, 0).unwrap();
    w.under(equal, b, NONE);
    refused(&mut w, "ranks_above_inner_head", |g| g.attach(other, b, NONE, 2, false, 0));
    w.graph.attach(other, b, NONE, 1, false, 0).unwrap();
    // nor may two ways down to a node disagree if one of them is shared and there are more ways to who is below it
    let both = w.node("fixed-priority", NONE);
    w.under(equal, both, NONE);
    w.graph.attach(other, both, NONE, 1, false, 0).unwrap();
    let c = task(&mut w, u64::MAX);
    w.under(both, c, NONE);
    refused(&mut w, "ranks_above_inner_head", |g| g.attach(one, c, NONE, 0, false, 0));
}

#[test]
fn several_cpus_in_order() {
    for order in 1..=3 {
        let (mut w, roots) = two();
        let node = w.node("fair", [MS, order, 0, 0]);
        for root in roots {
            w.graph.attach(root, node, NONE, 0, false, 0).unwrap();
        }
        let a = task(&mut w, u64::MAX);
        refused(&mut w, "several_cpus_in_order", |g| g.attach(node, a, weight(100, 0), 0, false, 0));
    }
    let (mut w, roots) = two();
    let node = w.node("mixed-criticality", NONE);
    for root in roots {
        w.graph.attach(root, node, NONE, 0, false, 0).unwrap();
    }
    let a = task(&mut w, u64::MAX);
    refused(&mut w, "several_cpus_in_order", |g| g.attach(node, a, mixed(1, 9, 0), 0, false, 0));
}

/// Priority 1; work, period and worst in ms.
fn mixed(work: u64, period: u64, worst: u64) -> [u64; 4] {
    [1, work * MS, period * MS, worst * MS]
}

#[test]
fn budget_beyond_period() {
    let (mut w, top) = World::one("mixed-criticality", NONE);
    let a = task(&mut w, u64::MAX);
    refused(&mut w, "budget_beyond_period", |g| g.attach(top, a, mixed(3, 2, 0), 0, false, 0));
    let a = w.task(top, "a", mixed(2, 3, 3));
    refused(&mut w, "budget_beyond_period", |g| g.set(a.edge, mixed(2, 3, 4), 0));
}

#[test]
fn work_hi_below_work() {
    let (mut w, top) = World::one("mixed-criticality", NONE);
    let a = task(&mut w, u64::MAX);
    refused(&mut w, "work_hi_below_work", |g| g.attach(top, a, mixed(3, 9, 2), 0, false, 0));
    let a = w.task(top, "a", mixed(3, 9, 3));
    refused(&mut w, "work_hi_below_work", |g| g.set(a.edge, mixed(4, 9, 3), 0));
}

#[test]
fn promise_beyond_its_period() {
    let (mut w, top) = World::one("fair", [MS]);
    let a = task(&mut w, u64::MAX);
    let promised = |ns, within_ns| [100, 0, 0, 0, ns, within_ns];
    refused(&mut w, "promise_beyond_its_period", |g| g.attach(top, a, promised(MS, 0), 0, false, 0));
    let a = w.task(top, "a", promised(MS, MS));
    refused(&mut w, "promise_beyond_its_period", |g| g.set(a.edge, promised(MS + 1, MS), 0));
}

#[test]
fn warp_needs_start_tags() {
    for order in 1..=4 {
        let (mut w, top) = World::one("fair", [MS, order, 0, 0]);
        let a = task(&mut w, u64::MAX);
        refused(&mut w, "warp_needs_start_tags", |g| g.attach(top, a, weight(100, MS), 0, false, 0));
        let a = w.task(top, "a", weight(100, 0));
        refused(&mut w, "warp_needs_start_tags", |g| g.set(a.edge, weight(100, MS), 0));
    }
}

#[test]
fn limit_needs_warp() {
    let (mut w, top) = World::one("fair", [MS, 0, 0, 0]);
    let a = task(&mut w, u64::MAX);
    refused(&mut w, "limit_needs_warp", |g| g.attach(top, a, [100, 0, MS, 0], 0, false, 0));
    let a = w.task(top, "a", [100, MS, MS, 0]);
    refused(&mut w, "limit_needs_warp", |g| g.set(a.edge, [100, 0, MS, MS], 0));
}

#[test]
fn unwarp_needs_limit() {
    let (mut w, top) = World::one("fair", [MS, 0, 0, 0]);
    let a = task(&mut w, u64::MAX);
    refused(&mut w, "unwarp_needs_limit", |g| g.attach(top, a, [100, MS, 0, 1], 0, false, 0));
    let a = w.task(top, "a", [100, MS, MS, MS]);
    refused(&mut w, "unwarp_needs_limit", |g| g.set(a.edge, [100, MS, 0, MS], 0));
}

/// A node that is sure of 4 ms in every 10, and two children that want the CPU.
fn constraint() -> (World, u32, [common::Leaf; 2]) {
    let (mut w, top) = World::one("constraint", [3 * MS, 4 * MS, 10 * MS]);
    let leaves = ["a", "b"].map(|name| w.task(top, name, NONE));
    w.wake_all(&leaves);
    w.run(2 * MS);
    (w, top, leaves)
}

#[test]
fn not_understood() {
    let (mut w, _, [a, ..]) = busy();
    let now = w.now;
    refused(&mut w, "not_understood", |g| g.constrain(a.task, MS, 50 * MS, now));
    refused(&mut w, "not_understood", |g| g.unconstrain(a.task, now));
}

#[test]
fn constraint_not_feasible() {
    let (mut w, _, [a, b]) = constraint();
    refused(&mut w, "constraint_not_feasible", |g| g.constrain(b.task, 8 * MS + 1, 28 * MS, 2 * MS));
    w.graph.constrain(a.task, 8 * MS, 28 * MS, 2 * MS).unwrap();
    w.rest();
    refused(&mut w, "constraint_not_feasible", |g| g.constrain(b.task, 1, 28 * MS, 2 * MS));
    refused(&mut w, "constraint_not_feasible", |g| g.constrain(b.task, 1, 20 * MS, 2 * MS));
}

#[test]
fn constraint_in_the_past() {
    let (mut w, _, [a, _]) = constraint();
    for deadline_ns in [0, MS, 2 * MS] {
        refused(&mut w, "constraint_in_the_past", |g| g.constrain(a.task, MS, deadline_ns, 2 * MS));
    }
}

#[test]
fn too_many_constraints() {
    let (mut w, top, [a, b]) = constraint();
    let more: Vec<_> = (0..7).map(|_| w.task(top, "more", NONE)).collect();
    w.wake_all(&more);
    for leaf in more.iter().chain([&a]) {
        w.graph.constrain(leaf.task, 1, 90 * MS, 2 * MS).unwrap();
    }
    w.rest();
    refused(&mut w, "too_many_constraints", |g| g.constrain(b.task, 1, 90 * MS, 2 * MS));
}

#[test]
fn constraint_already() {
    let (mut w, _, [a, _]) = constraint();
    w.graph.constrain(a.task, MS, 90 * MS, 2 * MS).unwrap();
    w.rest();
    refused(&mut w, "constraint_already", |g| g.constrain(a.task, MS, 90 * MS, 2 * MS));
}

#[test]
fn no_constraint() {
    let (mut w, _, [a, _]) = constraint();
    refused(&mut w, "no_constraint", |g| g.unconstrain(a.task, 2 * MS));
}

#[test]
fn message_needs_one_cpu() {
    let (mut w, roots) = two();
    let a = task(&mut w, u64::MAX);
    for root in roots {
        w.under(root, a, NONE);
    }
    w.wake(a);
    refused(&mut w, "message_needs_one_cpu", |g| g.constrain(a, MS, 90 * MS, 0));
    refused(&mut w, "message_needs_one_cpu", |g| g.unconstrain(a, 0));
}

/// A node of its own on a CPU, and a spread node with a replica below each root of `two`.
fn spread() -> (World, [u32; 2], [u32; 2]) {
    let (mut w, roots) = two();
    let replicas = roots.map(|_| w.node("round-robin", [MS, 0, 0, 0]));
    for (root, replica) in roots.into_iter().zip(replicas) {
        w.graph.replica(replica, replicas[0]).unwrap();
        w.under(root, replica, NONE);
    }
    (w, roots, replicas)
}

#[test]
fn policy_cannot_spread() {
    let mut w = World::new(2);
    for policy in policies() {
        let params: [u64; 8] = inside(&policy.node_params);
        let node = w.node(policy.name, params);
        if policy.spreads {
            w.graph.replica(node, node).unwrap();
        } else {
            refused(&mut w, "policy_cannot_spread", |g| g.replica(node, node));
        }
    }
    let spread = |name: &str| policies().iter().any(|policy| policy.name == name && policy.spreads);
    assert!(spread("fair") && !spread("reservation"));
}

#[test]
fn not_a_replica() {
    let (mut w, roots, replicas) = spread();
    let plain = w.node("round-robin", [MS, 0, 0, 0]);
    let other = w.node("fair", [MS, 0, 0, 0]);
    let a = w.free_task("a");
    for first in [plain, a, roots[0]] {
        refused(&mut w, "not_a_replica", |g| g.replica(other, first));
    }
    refused(&mut w, "not_a_replica", |g| g.replica(other, replicas[0])); // of another policy
    let (more, first) = (w.node("round-robin", [MS, 0, 0, 0]), replicas[0]);
    w.graph.replica(more, first).unwrap();
    refused(&mut w, "not_a_replica", |g| g.replica(more, first)); // it is one already
    refused(&mut w, "not_a_replica", |g| g.replica(more, more));
    // what moves is a task, below a replica
    refused(&mut w, "not_a_replica", |g| g.attach(roots[0], a, NONE, 0, Way::Spread, 0));
    refused(&mut w, "not_a_replica", |g| g.attach(replicas[0], plain, NONE, 0, Way::Spread, 0));
    w.graph.attach(replicas[0], a, NONE, 0, Way::Spread, 0).unwrap();
}

#[test]
fn out_of_families() {
    let mut w = World::new(2);
    let firsts: Vec<_> = (0..limits().families)
        .map(|_| {
            let node = w.node("fixed-priority", NONE);
            w.graph.replica(node, node).unwrap();
            node
        })
        .collect();
    let more = w.node("fixed-priority", NONE);
    refused(&mut w, "out_of_families", |g| g.replica(more, more));
    // a spread node ends with its last replica, and then there is room
    let second = w.node("fixed-priority", NONE);
    w.graph.replica(second, firsts[5]).unwrap();
    w.graph.node_free(firsts[5]).unwrap();
    refused(&mut w, "out_of_families", |g| g.replica(more, more));
    w.graph.node_free(second).unwrap();
    w.graph.replica(more, more).unwrap();
}

#[test]
fn replica_needs_one_cpu() {
    let (mut w, roots, replicas) = spread();
    refused(&mut w, "replica_needs_one_cpu", |g| g.attach(roots[1], replicas[0], NONE, 0, false, 0));
    // two of one spread node on a CPU
    let third = w.node("round-robin", [MS, 0, 0, 0]);
    w.graph.replica(third, replicas[0]).unwrap();
    refused(&mut w, "replica_needs_one_cpu", |g| g.attach(roots[0], third, NONE, 0, false, 0));
    // below what two CPUs share
    let shared = w.node("fixed-priority", NONE);
    for root in roots {
        w.under(root, shared, NONE);
    }
    refused(&mut w, "replica_needs_one_cpu", |g| g.attach(shared, third, NONE, 0, false, 0));
    // it may be a root, of one CPU
    let mut w = World::new(2);
    let root = w.node("round-robin", [MS, 0, 0, 0]);
    w.graph.replica(root, root).unwrap();
    w.graph.root(0, root, 0).unwrap();
    refused(&mut w, "replica_needs_one_cpu", |g| g.root(1, root, 0));
    let other = w.node("round-robin", [MS, 0, 0, 0]);
    w.graph.replica(other, root).unwrap();
    w.graph.root(1, other, 0).unwrap();
}

#[test]
fn spread_task_has_one_parent() {
    let (mut w, roots, replicas) = spread();
    let mover = w.spread_task(replicas[0], u64::MAX, NONE);
    for parent in [roots[0], roots[1], replicas[0], replicas[1]] {
        refused(&mut w, "spread_task_has_one_parent", |g| g.attach(parent, mover.task, NONE, 0, false, 0));
    }
    for replica in replicas {
        let spread = |g: &mut Graph| g.attach(replica, mover.task, NONE, 0, Way::Spread, 0);
        refused(&mut w, "spread_task_has_one_parent", spread);
    }
    // nor the other way round
    let stays = w.task(roots[0], "stays", NONE);
    for replica in replicas {
        let spread = |g: &mut Graph| g.attach(replica, stays.task, NONE, 0, Way::Spread, 0);
        refused(&mut w, "spread_task_has_one_parent", spread);
    }
    // which is a question of parents, not of tasks
    w.graph.detach(stays.edge, 0).unwrap();
    w.graph.attach(replicas[1], stays.task, NONE, 0, Way::Spread, 0).unwrap();
}

#[test]
fn no_replica_there() {
    // three CPUs, of which the spread node has the first two
    let mut w = World::new(3);
    let replicas = [0, 1].map(|_| w.node("round-robin", [MS, 0, 0, 0]));
    for (cpu, replica) in replicas.into_iter().enumerate() {
        w.graph.replica(replica, replicas[0]).unwrap();
        w.graph.root(cpu as u32, replica, 0).unwrap();
    }
    let root = w.node("fixed-priority", NONE);
    w.graph.root(2, root, 0).unwrap();
    let mover = w.spread_task(replicas[0], u64::MAX, NONE);
    let stays = w.task(root, "stays", NONE);
    let loose = w.free_task("loose");
    for cpu in [0, 2, 3, 64, u32::MAX] {
        refused(&mut w, "no_replica_there", |g| g.leave(mover.task, cpu, 0)); // it is on 0 already
        refused(&mut w, "no_replica_there", |g| g.home(mover.task, cpu, 0));
    }
    for cpu in 0..3 {
        refused(&mut w, "no_replica_there", |g| g.leave(stays.task, cpu, 0));
        refused(&mut w, "no_replica_there", |g| g.home(stays.task, cpu, 0));
        refused(&mut w, "no_such_node", |g| g.leave(loose, cpu, 0)); // it is below nothing
    }
    // on its way it cannot go where there is none
    w.graph.leave(mover.task, 1, 0).unwrap();
    refused(&mut w, "no_replica_there", |g| g.enter(mover.task, 2, Migration::Affinity, 0));
    w.graph.enter(mover.task, 1, Migration::Affinity, 0).unwrap();
    assert_eq!(w.graph.edge(mover.edge).parent, replicas[1]);
    refused(&mut w, "no_such_node", |g| g.enter(mover.task, 0, Migration::Affinity, 0));
    // nobody is on the way
}

#[test]
fn replicas_differ() {
    let mut w = World::new(2);
    let first = w.node("fair", [MS, 0, 0, 0]);
    w.graph.replica(first, first).unwrap();
    for order in 1..=4 {
        let other = w.node("fair", [MS, order, 0, 0]);
        refused(&mut w, "replicas_differ", |g| g.replica(other, first));
        // what it is not for a name may differ; the name stays from then on
        w.graph.node_set(other, [2 * MS, 0, 0, 0], 0).unwrap();
        w.graph.replica(other, first).unwrap();
        refused(&mut w, "still_in_use", |g| g.node_set(other, [2 * MS, order, 0, 0], 0));
        w.graph.node_set(other, [3 * MS, 0, 0, 0], 0).unwrap();
    }
}

#[test]
fn section_needs_budget_by_priority() {
    let (mut w, _, [_, b, c]) = busy();
    let (now, name) = (w.now, "section_needs_budget_by_priority");
    for leaf in [b, c] {
        refused(&mut w, name, |g| g.begin_section(leaf.task, 1, 0, now));
        refused(&mut w, name, |g| g.end_section(leaf.task, now));
        refused(&mut w, name, |g| g.skip_to_next_budget(leaf.task, now));
    }
    let (mut w, a) = by_priority();
    w.sleep(a.task);
    refused(&mut w, name, |g| g.begin_section(a.task, 1, 0, MS));
}

#[test]
fn section_beyond_budget() {
    let (mut w, a) = by_priority();
    refused(&mut w, "section_beyond_budget", |g| g.begin_section(a.task, 1, MS + 1, MS));
    w.graph.begin_section(a.task, 1, MS, MS).unwrap();
}

#[test]
fn section_already() {
    let (mut w, a) = by_priority();
    w.graph.begin_section(a.task, 1, 0, MS).unwrap();
    refused(&mut w, "section_already", |g| g.begin_section(a.task, 1, 0, MS));
    refused(&mut w, "section_already", |g| g.skip_to_next_budget(a.task, MS));
}

#[test]
fn no_section() {
    let (mut w, a) = by_priority();
    refused(&mut w, "no_section", |g| g.end_section(a.task, MS));
}
