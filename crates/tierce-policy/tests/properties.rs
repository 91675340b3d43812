//! What the policies promise of time, in random histories: timers that are late, interrupts, sleepers, changed budgets.
//! Each history prints its seed.

mod common;

use common::{budget, event_kind, number, weight, Dice, MS, NONE, US};
use tierce_policy::raw::{Edge, EDGE_SPENT};
use tierce_policy::{Graph, TASK};

/// A graph that is driven at random times. What the property looks at is called after every entry.
struct Life {
    graph: Graph,
    dice: Dice,
    now: u64,
    /// Timers fire up to this much late, ns.
    late_ns: u64,
    stolen_ns: Vec<u64>,
}

impl Life {
    fn new(cpus: u32, seed: u64) -> Life {
        Life {
            graph: Graph::new(cpus, 0).unwrap(),
            dice: Dice::new(seed),
            now: 0,
            late_ns: 0,
            stolen_ns: vec![0; cpus as usize],
        }
    }

    fn node(&mut self, policy: &str, params: [u64; 4]) -> u32 {
        self.graph.node_new(number(policy), 0, 0, params).unwrap()
    }

    fn task(&mut self, parent: u32, params: [u64; 4]) -> (u32, u32) {
        let task = self.graph.node_new(TASK, 0, u64::MAX, NONE).unwrap();
        (task, self.graph.attach(parent, task, params, 0, false, self.now).unwrap())
    }

    /// Handle every kick.
    fn rest(&mut self, look: &mut impl FnMut(&mut Graph)) {
        for _ in 0..10_000 {
            let pending = |&cpu: &u32| self.graph.cpu(cpu).kick_pending != 0;
            let Some(cpu) = (0..self.graph.cpus()).find(pending) else {
                return self.graph.check(true).unwrap();
            };
            self.graph.decide(cpu, self.now, 0);
            look(&mut self.graph);
            self.graph.returned(cpu, self.now);
            look(&mut self.graph);
        }
        panic!("the CPUs kick each other for ever at {}", self.now);
    }

    /// One entry on a CPU, in which interrupts took part of the time up to `stolen` parts of 100.
    fn event(&mut self, cpu: u32, stolen: u64, look: &mut impl FnMut(&mut Graph)) {
        let elapsed = self.now - self.graph.cpu(cpu).charged_ns;
        let taken = elapsed * self.dice.below(stolen + 1) / 100;
        self.graph.event(cpu, self.now, taken);
        self.stolen_ns[cpu as usize] += taken;
        look(&mut self.graph);
        self.rest(look);
    }

    /// Time passes until `to`; timers fire, each late by a draw.
    fn pass(&mut self, to: u64, stolen: u64, look: &mut impl FnMut(&mut Graph)) {
        loop {
            let armed = |cpu: &u32| self.graph.cpu(*cpu).armed_ns;
            let first = (0..self.graph.cpus()).min_by_key(armed).unwrap();
            let late = self.dice.below(self.late_ns + 1);
            let at = armed(&first).saturating_add(late);
            if at > to {
                break;
            }
            self.now = self.now.max(at);
            self.event(first, stolen, look);
        }
        self.now = to;
        for cpu in 0..self.graph.cpus() {
            self.event(cpu, stolen, look);
        }
    }
}

fn nothing(_: &mut Graph) {}

/// A reservation node below a priority that takes the CPU at random; its servers' tasks sleep and wake.
struct Servers {
    life: Life,
    urgent: u32,
    leaves: Vec<(u32, u32)>,
    floor_ns: u64,
}

fn servers(seed: u64, floor_us: u64, late_us: u64) -> Servers {
    let mut life = Life::new(1, seed);
    life.late_ns = late_us * US;
    life.graph.set_floor_ns(floor_us * US);
    life.graph.trace(true);
    let top = life.node("fixed-priority", NONE);
    let rt = life.node("reservation", NONE);
    life.graph.root(0, top, 0).unwrap();
    life.graph.attach(top, rt, NONE, 0, false, 0).unwrap();
    let mut leaves = vec![];
    for _ in 0..life.dice.within(1, 6) {
        let period = life.dice.within(5, 40) * MS;
        let most = life.dice.within(2, 40) * period / 100;
        let deadline = life.dice.within(most, period);
        let deadline = if life.dice.below(2) == 0 { period } else { deadline };
        let task = life.graph.node_new(TASK, 0, u64::MAX, NONE).unwrap();
        let params = [most, period, deadline, 0];
        match life.graph.attach(rt, task, params, 0, false, 0) {
            Ok(edge) => leaves.push((task, edge)),
            Err(error) => assert_eq!(error.name(), "utilisation_above_one"),
        }
    }
    let (urgent, _) = life.task(top, [1, 0, 0, 0]);
    Servers { life, urgent, leaves, floor_ns: floor_us * US }
}

impl Servers {
    fn history(&mut self, steps: u32, stolen: u64, look: &mut impl FnMut(&mut Graph)) {
        for _ in 0..steps {
            let life = &mut self.life;
            let (task, _) = self.leaves[life.dice.below(self.leaves.len() as u64) as usize];
            match life.dice.below(8) {
                0 => life.graph.request(self.urgent, life.now),
                1 | 2 => life.graph.release(self.urgent, life.now),
                3 | 4 => life.graph.release(task, life.now),
                _ => life.graph.request(task, life.now),
            }
            look(&mut life.graph);
            life.rest(look);
            let to = life.now + life.dice.within(1, 6_000) * US;
            life.pass(to, stolen, look);
        }
    }
}

#[test]
fn reservation_supply_stays_within_budget_floor_and_lateness() {
    let replenish = event_kind("replenish");
    for (seed, floor_us, late_us, stolen) in
        [(1, 0, 0, 0), (2, 5, 0, 0), (3, 0, 80, 0), (4, 5, 80, 0), (5, 20, 500, 50), (6, 0, 3_000, 0)]
    {
        for seed in seed * 100..seed * 100 + 5 {
            let mut servers = servers(seed, floor_us, late_us);
            let mut begun = std::collections::BTreeMap::new();
            let (floor_ns, late_ns) = (servers.floor_ns, servers.life.late_ns);
            let mut periods = 0;
            servers.history(400, stolen, &mut |graph| {
                for event in graph.take_events() {
                    if event.kind == replenish {
                        let edge = graph.edge(event.a);
                        let supply = edge.supply_ns - begun.insert(event.a, edge.supply_ns).unwrap_or(0);
                        let most = edge.param[0] + floor_ns + late_ns;
                        assert!(supply <= most, "edge {}: {supply} of {most} at {}", event.a, event.now_ns);
                        periods += 1;
                    }
                }
            });
            assert!(periods > 20, "{periods} periods are too few to say anything");
        }
    }
}

#[test]
fn reservation_does_not_drift() {
    for (seed, floor_us, late_us) in [(11, 0, 0), (12, 5, 0), (13, 5, 100), (14, 0, 1000)] {
        let mut servers = servers(seed, floor_us, late_us);
        let leaves = servers.leaves.clone();
        for &(task, _) in &leaves {
            servers.life.graph.request(task, 0);
        }
        servers.life.rest(&mut nothing);
        let to = 20_000 * MS;
        servers.life.pass(to, 0, &mut nothing);
        for (_, edge) in leaves {
            let edge = servers.life.graph.edge(edge);
            let (supply, of, period) = (edge.supply_ns, edge.param[0], edge.param[1]);
            assert!(supply <= (to / period + 1) * of + servers.floor_ns + servers.life.late_ns);
            // two periods' worth of slack: the one under way, and one that debt or a late timer has moved
            assert!(supply + 2 * of + servers.floor_ns >= to / period * of, "{supply} in {to}: {edge:?}");
        }
    }
}

/// What the rules of policy/reservation.c say of one server's budget, step by step.
#[derive(Clone, Copy, Default)]
struct Account {
    supply_ns: u64,
    spent: bool,
    remaining_ns: i64,
    replenished_ns: i64,
    charged_ns: i64,
    forgiven_ns: i64,
    dropped_ns: i64,
}

impl Account {
    /// Take what is above `most` away.
    fn cut(&mut self, most: i64) {
        let beyond = (self.remaining_ns - most).max(0);
        self.dropped_ns += beyond;
        self.remaining_ns -= beyond;
    }
    fn forgive(&mut self, debt_max_ns: i64) {
        let beyond = (-debt_max_ns - self.remaining_ns).max(0);
        self.forgiven_ns += beyond;
        self.remaining_ns += beyond;
    }
}

#[test]
fn reservation_accounts_add_up() {
    let kind = |name| event_kind(name);
    let (throttle, replenish, charge, forgive) =
        (kind("throttle"), kind("replenish"), kind("budget"), kind("forgive"));
    for (seed, floor_us, late_us, stolen) in
        [(21, 0, 0, 0), (22, 10, 300, 20), (23, 0, 20_000, 0), (24, 50, 9_000, 90)]
    {
        for seed in seed * 100..seed * 100 + 5 {
            let mut servers = servers(seed, floor_us, late_us);
            let floor = servers.floor_ns as i64;
            let mut accounts = vec![Account::default(); 16];
            let edges: Vec<u32> = servers.leaves.iter().map(|&(_, edge)| edge).collect();
            let mut look = |graph: &mut Graph| {
                for event in graph.take_events() {
                    let Some(account) = accounts.get_mut(event.a as usize) else { continue };
                    if !edges.contains(&event.a)
                        || ![throttle, replenish, charge, forgive].contains(&event.kind)
                    {
                        continue;
                    }
                    let edge = graph.edge(event.a);
                    let of = edge.param[0] as i64;
                    if event.kind == charge {
                        let ran = (edge.supply_ns - account.supply_ns) as i64;
                        account.supply_ns = edge.supply_ns;
                        account.charged_ns += ran;
                        account.remaining_ns -= ran;
                        account.forgive(of);
                        assert_eq!(account.remaining_ns, event.value as i64, "charged at {}", event.now_ns);
                    } else if event.kind == throttle {
                        account.spent = true;
                    } else if event.kind == replenish {
                        account.cut(if account.spent { floor } else { 0 });
                        account.remaining_ns += of;
                        account.replenished_ns += of;
                        assert_eq!(
                            account.remaining_ns, event.value as i64,
                            "replenished at {}",
                            event.now_ns
                        );
                        account.spent &= account.remaining_ns <= floor;
                    } else if edge.supply_ns == account.supply_ns
                        && account.remaining_ns > edge.policy[0] as i64
                    {
                        account.cut(edge.policy[0] as i64); // by the waking rule
                    }
                }
                for &id in &edges {
                    let (edge, account) = (graph.edge(id), &accounts[id as usize]);
                    let (remaining, of) = (edge.policy[0] as i64, edge.param[0] as i64);
                    assert_eq!(account.remaining_ns, remaining, "edge {id}");
                    assert_eq!(account.spent, edge.flags & EDGE_SPENT != 0);
                    assert!((-of..=of + floor).contains(&remaining), "{remaining} of {of}");
                    let sum = account.replenished_ns + account.forgiven_ns
                        - account.dropped_ns
                        - account.charged_ns;
                    assert_eq!(sum, remaining);
                    assert!(edge.forgiven_ns as i64 >= account.forgiven_ns);
                }
            };
            servers.history(400, stolen, &mut look);
        }
    }
}

#[test]
fn fair_lag_stays_within_its_bound() {
    for seed in 300..330 {
        let mut life = Life::new(1, seed);
        life.late_ns = [0, 0, 700 * US][seed as usize % 3];
        let quantum = life.dice.within(1, 40) * 100 * US;
        let top = life.node("fixed-priority", NONE);
        let fair = life.node("fair", [quantum, 0, 0, 0]);
        life.graph.root(0, top, 0).unwrap();
        life.graph.attach(top, fair, NONE, 0, false, 0).unwrap();
        let child = |life: &mut Life| {
            let of =
                if life.dice.below(3) == 0 { life.dice.within(1, 10_000) } else { life.dice.within(1, 100) };
            let (task, edge) = life.task(fair, weight(of, 0));
            (task, edge, of)
        };
        let busy: Vec<_> = (0..life.dice.within(2, 5)).map(|_| child(&mut life)).collect();
        let sleepers: Vec<_> = (0..life.dice.below(4)).map(|_| child(&mut life)).collect();
        let (urgent, _) = life.task(top, [1, 0, 0, 0]);
        for &(task, ..) in &busy {
            life.graph.request(task, 0);
        }
        let late = life.late_ns;
        let mut look = |graph: &mut Graph| {
            for (i, &(_, a, of_a)) in busy.iter().enumerate() {
                for &(_, b, of_b) in &busy[..i] {
                    let (a, b) = (graph.edge(a).supply_ns, graph.edge(b).supply_ns);
                    // both sides times both weights
                    let lag = (a * of_b).abs_diff(b * of_a);
                    let bound = (quantum + late) * (of_a + of_b);
                    // the inverse of a weight is off by less than 2.4e-6, and each charge by 2^-10 ns per weight
                    let inexact = (a * of_b).max(b * of_a) / 400_000 + of_a * of_b;
                    assert!(lag <= bound + inexact, "{a} for {of_a}, {b} for {of_b}, quantum {quantum}");
                }
            }
        };
        life.rest(&mut look);
        for _ in 0..400 {
            match life.dice.below(6) {
                0 => life.graph.request(urgent, life.now),
                1 => life.graph.release(urgent, life.now),
                roll if !sleepers.is_empty() => {
                    let (task, ..) = sleepers[life.dice.below(sleepers.len() as u64) as usize];
                    if roll < 4 {
                        life.graph.request(task, life.now)
                    } else {
                        life.graph.release(task, life.now)
                    }
                }
                _ => {}
            }
            look(&mut life.graph);
            life.rest(&mut look);
            let to = life.now + life.dice.within(1, 9_000) * US;
            life.pass(to, 20, &mut look);
        }
        let ran: u64 = busy.iter().map(|&(_, edge, _)| life.graph.edge(edge).supply_ns).sum();
        assert!(ran > 100 * MS, "{ran} ns say nothing");
    }
}

#[test]
fn every_nanosecond_is_used_idle_or_stolen() {
    for seed in 400..420 {
        let mut life = Life::new(2, seed);
        life.late_ns = 200 * US;
        // a tree of its own on each CPU, and a shared node below both
        let tops = [0, 1].map(|cpu| {
            let top = life.node("fixed-priority", NONE);
            life.graph.root(cpu, top, 0).unwrap();
            top
        });
        let rts = tops.map(|top| {
            let rt = life.node("reservation", NONE);
            life.graph.attach(top, rt, [1, 0, 0, 0], 0, false, 0).unwrap();
            rt
        });
        let shared = life.node("fair", [MS, 0, 0, 0]);
        for top in tops {
            life.graph.attach(top, shared, NONE, 0, false, 0).unwrap();
        }
        let mut tasks = vec![];
        for rt in rts {
            for _ in 0..2 {
                let of = budget(life.dice.within(1, 4) * MS, 10 * MS);
                tasks.push(life.task(rt, of).0);
            }
        }
        for _ in 0..3 {
            let of = weight(life.dice.within(1, 200), 0);
            tasks.push(life.task(shared, of).0);
        }
        life.rest(&mut nothing);
        let mut outside = [false; 2];
        let mut outside_ns = [0; 2];
        for _ in 0..500 {
            let begun = life.now;
            let task = tasks[life.dice.below(tasks.len() as u64) as usize];
            let cpu = life.dice.below(2) as usize;
            match life.dice.below(8) {
                0 => {
                    outside[cpu] = !outside[cpu];
                    life.graph.outside(cpu as u32, outside[cpu], life.now);
                }
                1 | 2 => life.graph.release(task, life.now),
                _ => life.graph.request(task, life.now),
            }
            life.rest(&mut nothing);
            let to = life.now + life.dice.within(1, 5_000) * US;
            // interrupts are only counted apart while no other class runs: that time is stolen as a whole
            let stolen = if outside == [false; 2] { 40 } else { 0 };
            life.pass(to, stolen, &mut nothing);
            for cpu in 0..2 {
                outside_ns[cpu] += if outside[cpu] { to - begun } else { 0 };
            }
        }
        let mut used = 0;
        for cpu in 0..2 {
            let c = life.graph.cpu(cpu);
            assert_eq!(c.used_ns + c.idle_ns + c.stolen_ns, life.now);
            assert_eq!(c.used_ns, life.graph.edge(c.root_edge).supply_ns);
            assert_eq!(c.stolen_ns, life.stolen_ns[cpu as usize] + outside_ns[cpu as usize]);
            used += c.used_ns;
        }
        // every level of every path is charged
        let tasks_ran: u64 = tasks.iter().map(|&task| life.graph.node(task).ran_ns).sum();
        assert_eq!(tasks_ran, used);
        let live: Vec<_> =
            (1..200).map(|id| life.graph.edge(id).clone()).filter(|edge| edge.child != 0).collect();
        for node in tops.into_iter().chain(rts).chain([shared]) {
            let supply = |of: &dyn Fn(&Edge) -> bool| {
                live.iter().filter(|edge| of(edge)).map(|e| e.supply_ns).sum::<u64>()
            };
            assert_eq!(
                supply(&|edge| edge.child == node),
                supply(&|edge| edge.parent == node),
                "node {node}"
            );
        }
    }
}
