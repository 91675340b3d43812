//! Machines of more than 64 CPUs: sets of CPUs take several words, and everything else is as on small ones.

use tierce_policy::{policies, Cpus, Graph, Migration, Way, CPUS_MAX, TASK};

fn number(name: &str) -> u32 {
    policies().iter().find(|policy| policy.name == name).expect("a policy").number
}

fn begin(cpus: u32) -> Graph {
    Graph::recorded(cpus, 0).unwrap_or_else(|error| panic!("{cpus} CPUs: {error}"))
}

/// A spread fair node whose replicas are the CPUs' roots: they.
fn spread(graph: &mut Graph) -> Vec<u32> {
    let mut replicas: Vec<u32> = Vec::new();
    for cpu in 0..graph.cpus() {
        let node = graph.node_new(number("fair"), 0, Cpus::NONE, [3_000_000]).unwrap();
        graph.replica(node, *replicas.first().unwrap_or(&node)).unwrap();
        graph.root(cpu, node, 0).unwrap();
        replicas.push(node);
    }
    replicas
}

fn below(graph: &mut Graph, replica: u32, allowed: Cpus) -> u32 {
    let task = graph.node_new(TASK, 0, allowed, []).unwrap();
    graph.attach(replica, task, [100, 0, 0, 0], 0, Way::Spread, 0).unwrap();
    task
}

/// Every CPU that was asked to decides, as a port does it, until none is.
fn rest(graph: &mut Graph, now: u64) {
    for _ in 0..10_000 {
        let kicked = graph.take_kicks();
        let due: Vec<u32> =
            (0..graph.cpus()).filter(|cpu| kicked.has(*cpu) || graph.cpu(*cpu).kick_pending != 0).collect();
        if due.is_empty() {
            return graph.check(true).unwrap();
        }
        for cpu in due {
            graph.returned(cpu, now);
            let ran = graph.cpu(cpu).task;
            while graph.decide(cpu, now, 0) == 0 && graph.cpu(cpu).leaves == 0 && graph.pull(cpu, now) != 0 {}
            graph.returned(cpu, now);
            if ran != 0 && ran != graph.cpu(cpu).task && graph.is_spread(ran) {
                graph.offer(ran);
            }
        }
    }
    panic!("the CPUs kick each other for ever");
}

#[test]
fn as_many_as_the_build_has_and_no_more() {
    for cpus in [1, 64, 65, 500, CPUS_MAX] {
        assert_eq!(begin(cpus).cpus(), cpus);
    }
    for cpus in [0, CPUS_MAX + 1, u32::MAX] {
        assert_eq!(Graph::new(cpus, 0).err().map(|error| error.name()), Some("no_such_cpu"), "{cpus}");
    }
}

#[test]
fn a_task_is_only_where_it_may_be() {
    let mut graph = begin(200);
    let replicas = spread(&mut graph);
    let allowed: Cpus = [70, 130].iter().collect();
    let task = below(&mut graph, replicas[130], allowed);
    assert_eq!((graph.allowed(task), graph.reach(task)), (allowed, Cpus::only(130)));
    graph.wake(task, 0);
    rest(&mut graph, 0);
    assert_eq!(graph.cpu(130).task, task);
    // Its own CPU is busy: the other one that it may run on takes it.
    graph.release(task, 1_000);
    let other = below(&mut graph, replicas[130], Cpus::only(130));
    graph.wake(other, 1_000);
    rest(&mut graph, 1_000);
    graph.wake(task, 2_000);
    rest(&mut graph, 2_000);
    assert_eq!((graph.cpu(130).task, graph.cpu(70).task), (other, task));
    // Nowhere that the node has a replica: refused, and nothing has changed.
    let refused = graph.allow(task, Cpus::only(200), 3_000).unwrap_err();
    assert_eq!((refused.name(), graph.allowed(task)), ("cpu_not_allowed", allowed));
    graph.allow(task, Cpus::only(199), 3_000).unwrap();
    assert_eq!(graph.allowed(task), Cpus::only(199));
    let none = graph.node_new(TASK, 0, Cpus::only(300), []).unwrap();
    let refused = graph.attach(replicas[0], none, [100, 0, 0, 0], 0, Way::Spread, 0).unwrap_err();
    assert_eq!(refused.name(), "cpu_not_allowed");
}

#[test]
fn the_nearest_idle_cpu_takes_it() {
    let mut graph = begin(256);
    for cpu in 0..256 {
        let group = |size: u32| (0..256).filter(|other| other / size == cpu / size).collect::<Cpus>();
        graph.near(cpu, group(2), group(100), group(150)).unwrap();
    }
    let replicas = spread(&mut graph);
    rest(&mut graph, 0); // all of them have said that they are idle
    let mut found = Vec::new();
    for _ in 0..4 {
        let task = below(&mut graph, replicas[99], Cpus::ALL & !Cpus::upto(96));
        graph.wake(task, 0);
        rest(&mut graph, 0);
        found.push((0..256).find(|cpu| graph.cpu(*cpu).task == task).unwrap());
    }
    // Itself; a core of its cache that is idle; the sibling; then the memory that is near.
    assert_eq!(found, [99, 96, 97, 98]);
    let task = below(&mut graph, replicas[99], Cpus::ALL & !Cpus::upto(96));
    graph.wake(task, 0);
    rest(&mut graph, 0);
    assert_eq!((0..256).find(|cpu| graph.cpu(*cpu).task == task), Some(100));
}

#[test]
fn a_shared_node_has_all_cpus() {
    let mut graph = begin(130);
    let node = graph.node_new(number("fair"), 0, Cpus::NONE, [3_000_000]).unwrap();
    for cpu in 0..130 {
        graph.root(cpu, node, 0).unwrap();
    }
    assert_eq!(graph.reach(node), Cpus::upto(130));
    let allowed = [None, Some(Cpus::only(129)), Some(Cpus::only(64)), Some(Cpus::only(63))];
    let tasks = allowed.map(|allowed| {
        let task = graph.node_new(TASK, 0, allowed.unwrap_or(Cpus::ALL), []).unwrap();
        graph.attach(node, task, [100, 0, 0, 0], 0, false, 0).unwrap();
        graph.request(task, 0);
        task
    });
    rest(&mut graph, 0);
    assert_eq!([129, 64, 63].map(|cpu| graph.cpu(cpu).task), [tasks[1], tasks[2], tasks[3]]);
    assert!((0..130).any(|cpu| graph.cpu(cpu).task == tasks[0]));
    graph.release(tasks[1], 1_000);
    graph.allow(tasks[1], Cpus::only(128), 1_000).unwrap();
    graph.request(tasks[1], 1_000);
    rest(&mut graph, 1_000);
    assert_eq!((graph.cpu(128).task, graph.cpu(129).task), (tasks[1], 0));
}

/// What happened on 300 CPUs happens again, bit for bit.
#[test]
fn a_recording_is_replayed() {
    let mut state = 7u64;
    println!("seed {state}");
    let mut roll = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let mut graph = begin(300);
    let replicas = spread(&mut graph);
    let tasks: Vec<u32> = (0..200)
        .map(|_| {
            let home = roll(300) as u32;
            let allowed = if roll(2) == 0 { Cpus::ALL } else { Cpus::only(home).with(roll(300) as u32) };
            below(&mut graph, replicas[home as usize], allowed)
        })
        .collect();
    let mut now = 0;
    for _ in 0..4_000 {
        now += roll(300_000);
        let task = tasks[roll(200) as usize];
        let home = graph.node(task).domain;
        match roll(8) {
            0..4 if graph.node(task).servable == 0 => graph.wake(task, now),
            0..5 => {
                graph.release(task, now);
                rest(&mut graph, now);
            }
            5 => {
                let _ = graph.allow(task, Cpus::only(home).with(roll(300) as u32), now);
                graph.offer(task);
            }
            6 if graph.leave(task, roll(300) as u32, now).is_ok() => {
                graph.enter(task, home, Migration::Affinity, now).unwrap();
                graph.offer(task);
            }
            _ => graph.event(roll(300) as u32, now, 0),
        }
        if roll(4) == 0 {
            rest(&mut graph, now);
        }
    }
    let entries = graph.take_entries();
    let mut again = Graph::new(300, 0).unwrap();
    for (index, entry) in entries.iter().enumerate() {
        again.replay(entry).unwrap_or_else(|difference| panic!("entry {index}: {difference:?}"));
    }
    assert!(tasks.iter().all(|task| again.allowed(*task) == graph.allowed(*task)));
    assert!(entries.iter().filter(|entry| entry.op == 18).count() > 100, "sets of CPUs were changed");
    // Another set is another recording.
    let at = entries.iter().rposition(|entry| entry.op == 9 && entry.a > 8).expect("a word of a set");
    let mut again = Graph::new(300, 0).unwrap();
    entries.iter().enumerate().for_each(|(index, entry)| {
        let value = if index == at { !entry.value } else { entry.value };
        let _ = again.replay(&tierce_policy::raw::Entry { value, ..*entry });
    });
    assert!(tasks.iter().any(|task| again.allowed(*task) != graph.allowed(*task)));
}
