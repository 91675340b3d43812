//! A small machine around the engine: time, timers and kicks, nothing else. After every step it is at rest, and the
//! checker has looked at it.
#![allow(dead_code)]

use std::collections::BTreeMap;
use tierce_policy::raw::{Edge, EDGE_SPENT};
use tierce_policy::{policies, Cpus, Error, Event, Graph, Way, NEVER, TASK};

/// Nanoseconds of a microsecond and of a millisecond.
pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;

/// Parameters of nodes and edges that have none, or only presets of 0.
pub const NONE: [u64; 4] = [0; 4];

/// A policy's number.
pub fn number(policy: &str) -> u32 {
    policies().iter().find(|p| p.name == policy).unwrap_or_else(|| panic!("no policy {policy}")).number
}

/// Number of an event kind, from the list in policy/events.h.
pub fn event_kind(name: &str) -> u16 {
    let list = std::fs::read_to_string(repository("policy/events.h")).unwrap();
    let line = list.lines().find(|line| line.contains(&format!(", {name}, ")));
    let text = line.unwrap_or_else(|| panic!("no event {name}")).trim().trim_start_matches("E(");
    text.split(',').next().unwrap().parse().unwrap()
}

/// A file of the repository.
pub fn repository(path: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Budget, period and deadline = period, in ns.
pub fn budget(budget_ns: u64, period_ns: u64) -> [u64; 4] {
    [budget_ns, period_ns, period_ns, 0]
}

/// Weight and warp of a fair child.
pub fn weight(weight: u64, warp_ns: u64) -> [u64; 4] {
    [weight, warp_ns, 0, 0]
}

/// The same with a limit and the time without warp.
pub fn warped(of: u64, warp_ns: u64, limit_ns: u64, unwarp_ns: u64) -> [u64; 4] {
    [of, warp_ns, limit_ns, unwarp_ns]
}

/// A task and the edge it hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub task: u32,
    pub edge: u32,
}

pub struct World {
    pub graph: Graph,
    pub now: u64,
    /// Timers fire this much late, ns.
    pub late_ns: u64,
    names: BTreeMap<u32, String>,
    log: Vec<(u64, u32, u32)>,
    runs: Vec<u32>,
}

impl World {
    pub fn new(cpus: u32) -> World {
        let graph = Graph::new(cpus, 0).unwrap();
        World { graph, now: 0, late_ns: 0, names: BTreeMap::new(), log: vec![], runs: vec![0; cpus as usize] }
    }

    /// One CPU that runs a node with this policy.
    pub fn one(policy: &str, params: impl AsRef<[u64]>) -> (World, u32) {
        let mut world = World::new(1);
        let node = world.node(policy, params);
        world.graph.root(0, node, 0).unwrap();
        (world, node)
    }

    pub fn node(&mut self, policy: &str, params: impl AsRef<[u64]>) -> u32 {
        self.graph.node_new(number(policy), 0, Cpus::from(0), params).expect("a node")
    }

    pub fn under(&mut self, parent: u32, child: u32, params: impl AsRef<[u64]>) -> u32 {
        self.try_under(parent, child, params).unwrap()
    }

    pub fn try_under(&mut self, parent: u32, child: u32, params: impl AsRef<[u64]>) -> Result<u32, Error> {
        let edge = self.graph.attach(parent, child, params, 0, false, self.now);
        self.rest();
        edge
    }

    /// An edge that is enabled only while the child's other ones are spent.
    pub fn under_when_spent(&mut self, parent: u32, child: u32, params: [u64; 4]) -> u32 {
        let edge = self.graph.attach(parent, child, params, 0, true, self.now).unwrap();
        self.rest();
        edge
    }

    pub fn free_task(&mut self, name: &str) -> u32 {
        let task = self.graph.node_new(TASK, 0, Cpus::ALL, NONE).expect("a task");
        self.names.insert(task, name.into());
        task
    }

    pub fn task(&mut self, parent: u32, name: &str, params: impl AsRef<[u64]>) -> Leaf {
        let task = self.free_task(name);
        Leaf { task, edge: self.under(parent, task, params) }
    }

    pub fn edge(&self, leaf: Leaf) -> &Edge {
        self.graph.edge(leaf.edge)
    }

    pub fn supply(&self, edge: u32) -> u64 {
        self.graph.edge(edge).supply_ns
    }

    /// Budget left, ns.
    pub fn remaining(&self, edge: u32) -> i64 {
        self.graph.edge(edge).policy[0] as i64
    }

    pub fn spent(&self, edge: u32) -> bool {
        self.graph.edge(edge).flags & EDGE_SPENT != 0
    }

    pub fn runs(&self, cpu: u32) -> &str {
        self.names.get(&self.graph.cpu(cpu).task).map_or("idle", |name| name)
    }

    /// A spread node with this policy as root of every CPU.
    pub fn spread(cpus: u32, policy: &str, params: impl AsRef<[u64]>) -> (World, Vec<u32>) {
        let mut world = World::new(cpus);
        let mut replicas = vec![];
        for cpu in 0..cpus {
            let node = world.node(policy, params.as_ref());
            world.graph.replica(node, *replicas.first().unwrap_or(&node)).unwrap();
            world.graph.root(cpu, node, 0).unwrap();
            replicas.push(node);
        }
        (world, replicas)
    }

    /// A task that moves between the replicas of a spread node, first below this one.
    pub fn spread_task(&mut self, replica: u32, allowed: u64, params: [u64; 4]) -> Leaf {
        let task = self.graph.node_new(TASK, 0, Cpus::from(allowed), NONE).expect("a task");
        let edge = self.graph.attach(replica, task, params, 0, Way::Spread, self.now).unwrap();
        self.rest();
        Leaf { task, edge }
    }

    pub fn wake(&mut self, task: u32) {
        self.graph.wake(task, self.now);
        self.rest();
    }

    /// Wake several in one instant, one after the other, before anything is decided.
    pub fn wake_all(&mut self, leaves: &[Leaf]) {
        for leaf in leaves {
            self.graph.request(leaf.task, self.now);
        }
        self.rest();
    }

    pub fn sleep(&mut self, task: u32) {
        self.graph.release(task, self.now);
        self.rest();
    }

    pub fn yields(&mut self, task: u32) {
        self.graph.yields(task, self.now);
        self.rest();
    }

    pub fn announce(&mut self, task: u32, deadline_ns: u64) {
        self.graph.announce(task, deadline_ns, self.now);
        self.rest();
    }

    /// Handle every kick, until none is pending.
    pub fn rest(&mut self) {
        let cpus = self.graph.cpus();
        let mut kicked = self.graph.take_kicks();
        for _ in 0..10_000 {
            kicked |= self.graph.take_kicks();
            let pending = |&cpu: &u32| kicked.has(cpu) || self.graph.cpu(cpu).kick_pending != 0;
            let Some(cpu) = (0..cpus).find(pending) else {
                self.note();
                return self.graph.check(true).unwrap();
            };
            kicked.remove(cpu);
            self.decide(cpu);
        }
        panic!("the CPUs kick each other for ever at {}", self.now);
    }

    /// One CPU decides, and does what a port does for tasks that move.
    fn decide(&mut self, cpu: u32) {
        let ran = self.graph.cpu(cpu).task;
        let mut task = self.graph.decide(cpu, self.now, 0);
        while task == 0 && self.graph.cpu(cpu).leaves == 0 && self.graph.pull(cpu, self.now) != 0 {
            task = self.graph.decide(cpu, self.now, 0);
        }
        if task != 0 {
            self.graph.balance(cpu, self.now);
        }
        self.graph.returned(cpu, self.now);
        if ran != 0 && ran != task && self.graph.is_spread(ran) {
            self.graph.offer(ran);
        }
    }

    fn note(&mut self) {
        for cpu in 0..self.graph.cpus() {
            let task = self.graph.cpu(cpu).task;
            if std::mem::replace(&mut self.runs[cpu as usize], task) != task {
                if self.log.last().is_some_and(|&(at, on, _)| at == self.now && on == cpu) {
                    self.log.pop();
                }
                self.log.push((self.now, cpu, task));
            }
        }
    }

    /// Let time pass until `to`, with every timer on time (or `late_ns` late).
    pub fn run(&mut self, to: u64) {
        let mut still = 0;
        loop {
            let armed = |cpu: u32| self.graph.cpu(cpu).armed_ns;
            let first = (0..self.graph.cpus()).min_by_key(|&cpu| armed(cpu)).unwrap();
            let at = armed(first);
            if at == NEVER || at.saturating_add(self.late_ns) > to {
                break;
            }
            still = if at + self.late_ns > self.now { 0 } else { still + 1 };
            assert!(still < 1000, "a timer in the past, again and again, at {}", self.now);
            self.now = self.now.max(at + self.late_ns);
            self.graph.event(first, self.now, 0);
            self.graph.balance(first, self.now);
            self.rest();
        }
        self.now = self.now.max(to);
        self.charge();
    }

    /// Let time pass until `to` while no timer fires: what runs overruns.
    pub fn overrun(&mut self, to: u64) {
        self.now = self.now.max(to);
        self.charge();
    }

    fn charge(&mut self) {
        for cpu in 0..self.graph.cpus() {
            self.graph.event(cpu, self.now, 0);
        }
        self.rest();
    }

    pub fn events(&mut self, kind: &str) -> Vec<Event> {
        let kind = event_kind(kind);
        self.graph.take_events().into_iter().filter(|event| event.kind == kind).collect()
    }

    /// Who ran from when on, in ms, on a machine of one CPU: "0 a, 2 idle"; a turn of nobody else is no new entry.
    pub fn schedule(&self) -> String {
        let of = |&(at, _, task): &(u64, u32, u32)| {
            format!("{} {}", at as f64 / MS as f64, self.names.get(&task).map_or("idle", |name| name))
        };
        self.log.iter().map(of).collect::<Vec<_>>().join(", ")
    }
}

/// A generator of small numbers: the same seed, the same numbers everywhere.
pub struct Dice(u64);

impl Dice {
    /// Prints the seed, so that a failure can be repeated.
    pub fn new(seed: u64) -> Dice {
        println!("seed {seed}");
        Dice(seed)
    }
    /// From 0 to `bound` - 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }
}

/// A node of rounds on one CPU, below a priority that can take it away.
pub struct Rounds {
    pub world: World,
    pub node: u32,
    pub leaves: Vec<Leaf>,
    pub urgent: Leaf,
}

impl Rounds {
    /// Set point, nominal, least and largest burst (us); children with importance and, for multiburst, kind of wake.
    pub fn new(policy: &str, limits_us: [u64; 4], children: &[(&str, u64, u64)]) -> Rounds {
        let (mut world, top) = World::one("fixed-priority", NONE);
        let [set, burst, least, largest] = limits_us.map(|us| us * US);
        // K_I 0.25, K_R 0.9, Z_R 0.88
        let node = world.node(policy, [set, burst, least, largest, 262_144, 943_718, 922_747, 0]);
        world.under(top, node, NONE);
        let wake = |kind: &u64| if policy == "multiburst" { *kind } else { 0 };
        let leaf = |(name, importance, kind): &(&str, u64, u64)| {
            world.task(node, name, [*importance, wake(kind), 0, 0])
        };
        let leaves = children.iter().map(leaf).collect();
        let urgent = world.task(top, "urgent", [1, 0, 0, 0]);
        Rounds { world, node, leaves, urgent }
    }

    /// Goes on to this time, us.
    pub fn run(&mut self, to_us: u64) -> &mut Self {
        self.world.run(to_us * US);
        self
    }

    pub fn wake(&mut self, children: &[usize]) -> &mut Self {
        let leaves: Vec<_> = children.iter().map(|at| self.leaves[*at]).collect();
        self.world.wake_all(&leaves);
        self
    }

    pub fn sleep(&mut self, child: usize) -> &mut Self {
        self.world.sleep(self.leaves[child].task);
        self
    }

    pub fn state(&self) -> &tierce_policy::raw::Rounds {
        &self.world.graph.node(self.node).rounds
    }
}
