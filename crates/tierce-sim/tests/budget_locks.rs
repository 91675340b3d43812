//! Locks that the budgets above their users know of: one plan by hand with each protocol, and random plans, which never take longer than
//! `tierce check` says.
//!
//! TIERCE_SEEDS=FROM..TO plays other plans than the usual ones.

mod common;

use common::{parse, report_of, seeds, seen::Seen, within_bounds, Maker, MS};
use std::fmt::Write;
use tierce_admission::{Deadlines, PlanExt};
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};

const PROTOCOLS: [&str; 2] = ["hsrp", "sirap"];

/// `low` is to have the lock after 1.5 ms of its 2, for 1 ms; `high` comes at 2 ms and wants it; `urgent` at 2.2 ms, without a lock.
fn three(protocol: &str, replenishment: &str) -> Plan {
    parse(&format!(
        r#"
        [lock.bus]
        protocol = "{protocol}"
        [node.top]
        policy = "reservation"
        order = "fixed-priority"
        replenishment = "{replenishment}"
        cpu = 0
        [task.urgent]
        under.top = {{ budget = "300us", period = "5ms", priority = 3 }}
        load = {{ period = "40ms", phase = "2200us", work = "300us" }}
        [task.high]
        under.top = {{ budget = "1ms", period = "5ms", priority = 2 }}
        load = {{ period = "40ms", phase = "2ms", work = "1ms", sections = [{{ lock = "bus", at = "200us", length = "500us" }}] }}
        [task.low]
        under.top = {{ budget = "2ms", period = "10ms", priority = 1 }}
        load = {{ period = "40ms", work = "4ms", sections = [{{ lock = "bus", at = "1500us", length = "1ms" }}] }}
        "#
    ))
}

/// Longest responses in us.
fn played(plan: &Plan) -> Vec<u64> {
    let report = report_of(plan, 1, 40 * MS);
    report.tasks.iter().map(|task| task.response_ns.as_ref().unwrap().max / 1000).collect()
}

#[test]
fn a_budget_that_ends_within_a_section() {
    for replenishment in ["hard", "periodic"] {
        // `low` has the lock from 1.5 to 2.8 ms, 0.3 of that `urgent` runs; 0.5 ms are missing of its budget from 10 ms on, and 1.5 are enough.
        assert_eq!(played(&three("hsrp", replenishment)), [300, 1_800, 11_500], "{replenishment}");
        // `low` gives up the last 0.5 ms, and has the lock from 10 to 11 ms.
        assert_eq!(played(&three("sirap", replenishment)), [300, 1_300, 20_500], "{replenishment}");
    }
}

#[test]
fn check_says_what_sections_are_to_budgets() {
    let tell = |protocol: &str| {
        let plan = three(protocol, "hard");
        let verdict = plan.admit();
        assert!(verdict.nodes.iter().all(|node| node.failures.is_empty()), "{}", verdict.faults(&plan));
        let promises = verdict.explain(&plan, "low").unwrap();
        let bounds: Vec<_> = verdict
            .tasks
            .iter()
            .map(|task| task.response.and_then(|found| found.ns()).unwrap() / 1000)
            .collect();
        (promises, bounds)
    };
    // Each job of `urgent` and of `high` has a budget of its own: 0.3 and 1 ms, as much that may be left from before, and of `high` 1 ms of `low` and 0.6
    // of `urgent`. `low` has 1 ms of its budget for sure in each period: its job is done in the fourth, in which the budget is there within 8.4 ms.
    let (promises, bounds) = tell("hsrp");
    assert_eq!(bounds, [600, 3_600, 38_400]);
    assert!(promises.contains("RESBS 1ms 10ms") && promises.contains("PSBE 1/5 4.2ms"), "{promises}");
    let (promises, bounds) = tell("sirap");
    assert_eq!(bounds, [600, 3_600, 37_900]);
    assert!(promises.contains("RESBS 1ms 10ms") && promises.contains("PSBE 1/10 1.8ms"), "{promises}");
}

/// One budget for two tasks: the less urgent one has the lock when the other one comes, and is not preempted.
#[test]
fn tasks_of_one_budget_wait_for_each_other() {
    for protocol in PROTOCOLS {
        let plan = parse(&format!(
            r#"
            [lock.bus]
            protocol = "{protocol}"
            [node.top]
            policy = "reservation"
            order = "fixed-priority"
            replenishment = "periodic"
            cpu = 0
            [node.set]
            policy = "fixed-priority"
            under.top = {{ budget = "4ms", period = "10ms", priority = 1 }}
            [task.first]
            under.set = {{ priority = 2 }}
            load = {{ period = "40ms", phase = "1ms", work = "1ms" }}
            [task.second]
            under.set = {{ priority = 1 }}
            load = {{ period = "40ms", work = "3ms", sections = [{{ lock = "bus", at = "500us", length = "1500us" }}] }}
            [task.other]
            under.top = {{ budget = "1ms", period = "10ms", priority = 2 }}
            load = {{ period = "40ms", phase = "9ms", work = "1ms", sections = [{{ lock = "bus", length = "500us" }}] }}
            "#
        ));
        assert_eq!(played(&plan), [2_000, 4_000, 1_000], "{protocol}");
        let verdict = plan.admit();
        let first = verdict.tasks[0].blocking.as_ref().unwrap();
        assert_eq!((first.most_ns, first.held[0].task), (Some(1_500_000), 1), "{protocol}");
        assert!(verdict.holds, "{}", verdict.faults(&plan));
    }
}

/// A lock within another one: the outer section is what counts.
#[test]
fn sections_within_each_other() {
    let plan = |protocol: &str| {
        let text =
            format!("[lock.log]\nprotocol = \"{protocol}\"\n{}", three(protocol, "hard").sources.0[0].text);
        let inner = "at = \"1500us\", length = \"1ms\", sections = [{ lock = \"log\", at = \"300us\", length = \"400us\" }]";
        parse(&text.replace("at = \"1500us\", length = \"1ms\"", inner))
    };
    for protocol in PROTOCOLS {
        assert_eq!(played(&plan(protocol)), played(&three(protocol, "hard")), "{protocol}");
    }
}

/// Why nothing is known.
#[test]
fn where_check_says_nothing() {
    let why = |text: &str| {
        let plan = parse(text);
        let verdict = plan.admit();
        assert_eq!(verdict.tasks[2].deadlines, Deadlines::NotShown);
        verdict.faults(&plan).to_string()
    };
    let text = three("hsrp", "hard").sources.0[0].text.clone();
    let found = why(&format!("[machine]\ncosts = {{ switch = \"1us\" }}\n{text}"));
    assert!(
        found.contains("how `[machine] costs` add to what a budget is overrun by is not known"),
        "{found}"
    );
    // Who has a lock with inheritance may run in place of another one, which has to be known.
    let mixed = format!(
        "[lock.m]\nprotocol = \"inheritance\"\n{}\n[node.set]\npolicy = \"fixed-priority\"\nunder.top = {{ budget = \"2ms\", period = \"10ms\", priority = 1 }}\n\
         [task.first]\nunder.set = {{ priority = 2 }}\nload = {{ period = \"40ms\", work = \"1ms\", sections = [{{ lock = \"m\", length = \"1ms\" }}] }}",
        text.replace("under.top = { budget = \"2ms\", period = \"10ms\", priority = 1 }", "under.set = { priority = 1 }")
    );
    let found = why(&mixed);
    assert!(found.contains("there is lock `m` with protocol \"inheritance\""), "{found}");
    // `high` cannot have its budget within 1.2 ms, as `low` may have the lock for 1 ms.
    let late = text
        .replace("period = \"5ms\", priority = 2", "period = \"5ms\", deadline = \"1200us\", priority = 2");
    let found = why(&late);
    assert!(
        found.contains("the budget of `high` may be there only")
            && found.contains("for 1ms `low` may have lock `bus`"),
        "{found}"
    );
}

impl Maker {
    /// Budgets in the order of priorities, for one task or for several, `load` times what fits.
    fn known_to_budgets(&mut self, load: u64) -> Plan {
        let locks = self.between(1, 3);
        for lock in 0..locks {
            let protocol = PROTOCOLS[self.between(0, 1) as usize];
            let _ = writeln!(self.text, "[lock.l{lock}]\nprotocol = \"{protocol}\"");
        }
        let place = if self.between(0, 2) == 0 {
            self.text += "[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
                          [task.first]\nunder.top = { priority = 9 }\nload = { period = \"2ms\", work = \"300us\" }\n\
                          [task.last]\nunder.top = { priority = 1 }\nload = { period = \"50ms\", work = \"1ms\" }\n";
            "under.top = { priority = 5 }"
        } else {
            "cpu = 0"
        };
        let replenishment = ["hard", "periodic"][self.between(0, 1) as usize];
        let _ = writeln!(
            self.text,
            "[node.all]\npolicy = \"reservation\"\norder = \"fixed-priority\"\nreplenishment = \"{replenishment}\"\n{place}"
        );
        let (servers, mut number) = (self.between(2, 4), 0);
        for server in 0..servers {
            let period = self.between(4, 40) * 500;
            let budget = (period * self.between(40, 85) / 100 / servers / 50 * 50).max(200);
            let priority = if self.between(0, 4) == 0 { 3 } else { 9 - server };
            let under =
                format!("{{ budget = \"{budget}us\", period = \"{period}us\", priority = {priority} }}");
            let tasks = self.between(0, 3);
            if tasks > 0 {
                let _ =
                    writeln!(self.text, "[node.n{server}]\npolicy = \"fixed-priority\"\nunder.all = {under}");
            }
            for task in 0..tasks.max(1) {
                let under = match tasks {
                    0 => format!("under.all = {under}"),
                    _ => format!("under.n{server} = {{ priority = {} }}", 5 - task),
                };
                let times = self.between(2, 12);
                let (period, most) =
                    (period * times, (budget * times * load * 2 / 3 / tasks.max(1)).max(100));
                let work = self.between(most / 3, most).max(100) / 50 * 50;
                let sections =
                    if self.between(0, 3) == 0 { String::new() } else { self.short(work, budget, locks) };
                let phase = self.between(0, 60) * 50;
                let release = self.release(period);
                let _ = writeln!(
                    self.text,
                    "[task.t{number}]\n{under}\nload = {{ {release}, work = \"{work}us\", phase = \"{phase}us\"{sections} }}"
                );
                number += 1;
            }
        }
        parse(&self.text)
    }

    /// Sections of one lock, no longer than a third of the budget.
    fn short(&mut self, work: u64, budget: u64, locks: u64) -> String {
        let (mut list, mut at) = (Vec::new(), 0);
        let (lock, longest) = (self.between(0, locks - 1), (budget / 3 / 50 * 50).max(50));
        while at + 50 <= work && list.len() < 4 && self.between(0, 4) > 0 {
            let from = self.between(at, work - 50) / 50 * 50;
            let own = self.between(50, longest.min(work - from)) / 50 * 50;
            list.push(format!("{{ lock = \"l{lock}\", at = \"{from}us\", length = \"{own}us\" }}"));
            at = from + own;
        }
        if list.is_empty() {
            return String::new();
        }
        format!(", sections = [{}]", list.join(", "))
    }
}

#[test]
fn nothing_takes_longer_than_check_says() {
    let (mut near, mut met, mut overrun, mut forgiven) = (Seen::default(), 0, 0, 0);
    for seed in seeds() {
        let plan = Maker::new(seed, "budget locks").known_to_budgets(1);
        if Simulation::new(&plan, Options::default()).is_err() {
            continue; // budgets above a CPU
        }
        let verdict = plan.admit();
        let locked: Vec<_> = plan
            .tasks
            .iter()
            .map(|task| task.load.as_ref().is_some_and(|load| !load.sections().is_empty()))
            .collect();
        met += within_bounds(&plan, &verdict, seed, |task, _, longest, bound| {
            let at = plan.tasks.iter().position(|other| other.name == task.name).unwrap();
            if locked[at] {
                near.add(longest, bound, || task.name.clone());
            }
        });
        let (more, less) = overruns(&plan, seed);
        overrun += more;
        forgiven += less;
    }
    println!("{met} shown; {overrun} overruns, {forgiven} budgets given up");
    let enough = near.print("`hsrp`, `sirap`").all() > 100 && met > 300 && overrun > 100 && forgiven > 100;
    assert!(enough, "{met} {overrun} {forgiven}");
}

/// How often a budget was overrun by more than 1 us, and how often one was given up.
fn overruns(plan: &Plan, seed: u64) -> (usize, usize) {
    use tierce_trace::Kind;
    let mut simulation = Simulation::new(plan, Options { seed, trace: true, ..Options::default() }).unwrap();
    simulation.run_until(100 * MS).unwrap();
    let events = simulation.take_events();
    let count = |kind: Kind, holds: &dyn Fn(i64) -> bool| {
        events.iter().filter(|event| event.kind() == Some(kind) && holds(event.value as i64)).count()
    };
    (count(Kind::Budget, &|left| left < -1000), count(Kind::Forgive, &|given| given > 1000))
}

/// More work than time: all go on.
#[test]
fn overload_is_no_deadlock() {
    for seed in 0..100 {
        let plan = Maker::new(seed, "overload").known_to_budgets(3);
        if Simulation::new(&plan, Options::default()).is_err() {
            continue;
        }
        let report = report_of(&plan, seed, 1_000 * MS);
        for node in report.nodes.iter().filter(|node| node.name.starts_with('n')) {
            assert!(node.cpu_ns > 5 * MS, "seed {seed}: {} has {} ns", node.name, node.cpu_ns);
        }
    }
}
