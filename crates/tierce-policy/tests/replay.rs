//! A recorded run, replayed on a fresh graph, gives every result again; a changed one is found.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use tierce_policy::{policies, Cpus, Graph, Way, TASK};

fn number(name: &str) -> u32 {
    policies().iter().find(|p| p.name == name).expect("policy").number
}

/// Two CPUs, a reservation on each, one shared fair node, one that takes time constraints, tasks in all of them; some seconds of a busy life.
fn recorded(seed: u64) -> Vec<tierce_policy::raw::Entry> {
    let mut state = seed;
    let mut roll = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let mut graph = Graph::recorded(2, 0).unwrap();
    let mut tasks = vec![];
    let shared = graph.node_new(number("fair"), 0, Cpus::from(0), [3_000_000, 0, 0, 0]).unwrap();
    let mut parents = vec![];
    for cpu in 0..2 {
        let top = graph.node_new(number("fixed-priority"), 0, Cpus::from(0), [0; 4]).unwrap();
        let rt = graph.node_new(number("reservation"), 0, Cpus::from(0), [0; 4]).unwrap();
        graph.root(cpu, top, 0).unwrap();
        graph.attach(top, rt, [1, 0, 0, 0], 0, false, 0).unwrap();
        parents.push((top, rt));
    }
    for &(top, _) in &parents {
        graph.attach(top, shared, [0; 4], 0, false, 0).unwrap();
    }
    for &(_, rt) in &parents {
        for _ in 0..3 {
            let task = graph.node_new(TASK, 0, Cpus::ALL, [0; 4]).unwrap();
            graph
                .attach(rt, task, [1_000_000 + roll(1_000_000), 10_000_000, 10_000_000, 0], 0, false, 0)
                .unwrap();
            tasks.push(task);
        }
    }
    let activity = graph
        .node_new(number("constraint"), 0, Cpus::from(0), [1_000_000, 3_000_000, 10_000_000, 0])
        .unwrap();
    graph.attach(parents[0].1, activity, [3_000_000, 10_000_000, 10_000_000, 0], 0, false, 0).unwrap();
    for _ in 0..3 {
        let task = graph.node_new(TASK, 0, Cpus::ALL, [0; 4]).unwrap();
        graph.attach(activity, task, [0; 4], 0, false, 0).unwrap();
        tasks.push(task);
    }
    for i in 0..8 {
        let task =
            graph.node_new(TASK, 0, if i < 2 { Cpus::from(1 << i) } else { Cpus::ALL }, [0; 4]).unwrap();
        graph.attach(shared, task, [1 + roll(200), 0, 0, 0], 0, false, 0).unwrap();
        tasks.push(task);
    }
    let mut now = 0;
    for _ in 0..20_000 {
        now += roll(400_000);
        let task = tasks[roll(tasks.len() as u64) as usize];
        match roll(6) {
            5 if roll(4) == 0 => _ = graph.unconstrain(task, now),
            5 => _ = graph.constrain(task, 1 + roll(3_000_000), now + roll(50_000_000), now),
            4 => graph.yields(task, now),
            0 => graph.request(task, now),
            1 if (0..2).any(|cpu| graph.cpu(cpu).task == task) => graph.release(task, now),
            2 => graph.event(roll(2) as u32, now, roll(100)),
            _ => graph.taken(roll(2) as u32, roll(2_000)),
        }
        for cpu in 0..2 {
            if graph.cpu(cpu).kick_pending != 0 && roll(2) == 0 {
                graph.returned(cpu, now);
                graph.decide(cpu, now, 0);
            }
        }
        graph.check(false).unwrap();
    }
    graph.take_entries()
}

#[test]
fn every_result_comes_again() {
    for seed in [1, 2, 3] {
        println!("seed {seed}");
        let entries = recorded(seed);
        let mut graph = Graph::new(2, 0).unwrap();
        for (i, entry) in entries.iter().enumerate() {
            graph.replay(entry).unwrap_or_else(|difference| panic!("entry {i}: {difference:?}"));
        }
        assert!(
            entries.iter().filter(|e| e.op == 5 && e.b != 0).count() > 1000,
            "decisions that run something"
        );
        let told = |kind| entries.iter().filter(|e| e.op == 22 && e.b == kind && e.result == 0).count();
        assert!(told(1) > 20 && told(2) > 5, "time constraints begin and end");
        assert!(
            entries.iter().filter(|e| e.op == 23).count() > 100,
            "what is stolen on another CPU is looked at"
        );
    }
}

/// What the port finds stolen between entries is charged around once, by the next entry, whichever that is.
#[test]
fn what_was_taken_is_stolen() {
    let mut graph = Graph::new(1, 0).unwrap();
    let rt = graph.node_new(number("reservation"), 0, Cpus::from(0), [0; 4]).unwrap();
    graph.root(0, rt, 0).unwrap();
    let task = graph.node_new(TASK, 0, Cpus::from(1), [0; 4]).unwrap();
    let edge = graph.attach(rt, task, [2_000, 10_000, 10_000, 0], 0, false, 0).unwrap();
    graph.request(task, 0);
    assert_eq!(graph.decide(0, 0, 0), task);
    graph.taken(0, 300);
    graph.event(0, 1_000, 0);
    assert_eq!((graph.edge(edge).supply_ns, graph.cpu(0).stolen_ns, graph.until(0)), (700, 300, 2_300));
    graph.taken(0, 50);
    graph.release(task, 1_500);
    assert_eq!((graph.edge(edge).supply_ns, graph.cpu(0).stolen_ns), (1_150, 350));
    // Idle time can be taken, too; never more than passes.
    graph.taken(0, 9_000);
    graph.decide(0, 2_000, 0);
    let cpu = graph.cpu(0);
    assert_eq!((cpu.used_ns, cpu.idle_ns, cpu.stolen_ns), (1_150, 0, 850));
    graph.taken(1, 5); // no such CPU
}

/// Four CPUs that run a spread node, some hundred thousand entries: tasks wake, sleep, are pulled and given away, change their
/// weight and their affinity, come and go; CPUs go offline.
fn recorded_spread(seed: u64, policy: &str, params: [u64; 4], steps: u32) -> Vec<tierce_policy::raw::Entry> {
    let mut state = seed;
    let mut roll = |bound: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % bound
    };
    let weight = |roll: &mut dyn FnMut(u64) -> u64| match policy {
        "fair" => [1 + roll(300), 0, 0, 0],
        "time-sharing" => [roll(4), roll(4), 0, 0],
        _ => [0; 4],
    };
    let mut graph = Graph::recorded(4, 0).unwrap();
    let mut replicas = vec![];
    for cpu in 0..4 {
        let replica = graph.node_new(number(policy), 0, Cpus::from(0), params).unwrap();
        graph.replica(replica, *replicas.first().unwrap_or(&replica)).unwrap();
        graph.root(cpu, replica, 0).unwrap();
        replicas.push(replica);
    }
    let mut tasks: Vec<u32> = vec![];
    let mut now = 0;
    for _ in 0..steps {
        now += roll(300_000);
        let cpu = roll(4) as u32;
        let at = roll(tasks.len().max(1) as u64) as usize;
        let runs = |graph: &Graph, task| (0..4).any(|cpu| graph.cpu(cpu).task == task);
        match (roll(20), tasks.get(at).copied()) {
            (0, _) if tasks.len() < 12 => {
                let task = graph.node_new(TASK, 0, Cpus::ALL, [0; 4]).unwrap();
                let weight = weight(&mut roll);
                graph.attach(replicas[cpu as usize], task, weight, 0, Way::Spread, now).unwrap();
                tasks.push(task);
            }
            (1, Some(task)) if roll(4) == 0 && !runs(&graph, task) => {
                graph.release(task, now);
                graph.detach(graph.node(task).first_parent, now).unwrap();
                graph.node_free(task).unwrap();
                tasks.swap_remove(at);
            }
            (2, Some(task)) => {
                let weight = weight(&mut roll);
                graph.set(graph.node(task).first_parent, weight, now).unwrap();
            }
            (3, Some(task)) => _ = graph.allow(task, Cpus::from(1 << cpu | roll(16)), now),
            (4, Some(task)) => _ = graph.home(task, cpu, now),
            (5, _) if roll(8) == 0 => {
                let online = graph.cpu(cpu).online != 0;
                graph.online(cpu, !online, now).unwrap();
            }
            (6..=8, Some(task)) if runs(&graph, task) => graph.release(task, now),
            (9..=13, Some(task)) if graph.node(task).servable == 0 => graph.wake(task, now),
            (14, _) => graph.taken(cpu, roll(2_000)),
            _ => {
                graph.event(cpu, now, roll(100));
                graph.balance(cpu, now);
            }
        }
        let mut kicked = graph.take_kicks();
        for cpu in 0..4 {
            if (kicked.has(cpu) || graph.cpu(cpu).kick_pending != 0) && roll(4) != 0 {
                let mut task = graph.decide(cpu, now, 0);
                while task == 0 && graph.pull(cpu, now) != 0 {
                    task = graph.decide(cpu, now, 0);
                }
            }
            kicked.remove(cpu);
        }
    }
    graph.check(false).unwrap();
    graph.take_entries()
}

#[test]
fn moves_between_replicas_come_again() {
    // TIERCE_STEPS=2000000: a million decisions.
    let steps = std::env::var("TIERCE_STEPS").map_or(220_000, |steps| steps.parse().expect("a number"));
    let mut decisions = 0;
    for (seed, (policy, params)) in [
        ("fair", [3_000_000, 0, 0, 0]),
        ("fair", [3_000_000, 1, 0, 0]),
        ("fair", [3_000_000, 2, 0, 0]),
        ("fair", [3_000_000, 3, 7, 0]),
        ("round-robin", [3_000_000, 0, 0, 0]),
        ("time-sharing", [10_000_000, 100_000_000, 0, 0]),
        ("fixed-priority", [0; 4]),
    ]
    .into_iter()
    .enumerate()
    {
        println!("seed {}, {policy} {params:?}", seed + 1);
        let entries = recorded_spread(seed as u64 + 1, policy, params, steps);
        let mut graph = Graph::new(4, 0).unwrap();
        for (i, entry) in entries.iter().enumerate() {
            graph.replay(entry).unwrap_or_else(|difference| panic!("entry {i}: {difference:?}"));
        }
        let of = |op: u32| entries.iter().filter(|e| e.op == op).count();
        println!("{} decisions, {} moves, {} met", of(5), of(26), of(27));
        decisions += of(5);
        assert!(of(26) > 1000 && of(19) > 100, "tasks move, CPUs come and go");
        assert!(policy != "fair" || params[1] == 3 || of(27) > 100, "the virtual time of others is met");
    }
    assert!(decisions > steps as usize / 3, "{decisions} decisions");
}

#[test]
fn a_changed_recording_is_found() {
    let mut entries = recorded(1);
    let at = entries.iter().rposition(|e| e.op == 5 && e.b != 0).unwrap();
    entries[at].b += 1;
    let mut graph = Graph::new(2, 0).unwrap();
    let first = entries.iter().position(|entry| graph.replay(entry).is_err());
    assert_eq!(first, Some(at));
}
