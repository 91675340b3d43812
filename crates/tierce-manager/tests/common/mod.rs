//! A manager without a kernel: the plan in memory, threads as they are wanted.

#![allow(dead_code)] // each test takes what it needs

use serde_json::{json, Value};
use std::collections::{BTreeMap, BTreeSet};
use tierce_admission::PlanExt;
use tierce_manager::rules::shipped;
use tierce_manager::{
    Answer, Ask, Asker, Books, InMemory, Limits, Manager, Mode, Notice, Principal, Rules, State, ThreadInfo,
    Threads, What, Wish, Wrong, NAMELESS,
};
use tierce_plan::{Options, Plan};

/// One CPU: budgets above, all others below.
pub const ONE: &str = r#"
[machine]
cpus = 1
[node.top]
policy = "fixed-priority"
cpu = 0
[node.rt]
policy = "reservation"
under.top = { priority = 1 }
[node.rest]
policy = "fair"
default = true
each = { weight = "nice" }
under.rt = { budget = "1ms", period = "20ms" }
under.top = { priority = 0 }
"#;

/// The same on four CPUs.
pub const FOUR: &str = r#"
[machine]
cpus = 4
[node.top]
policy = "fixed-priority"
per_cpu = true
[node.rt]
policy = "reservation"
per_cpu = true
under.top = { priority = 1 }
[node.rest]
policy = "fair"
default = true
each = { weight = "nice" }
under.rt = { budget = "1ms", period = "20ms" }
under.top = { priority = 0 }
"#;

pub fn plan(text: &str) -> Plan {
    Plan::parse_with(text, "test.toml", Options { cpus: 1 }).unwrap_or_else(|faults| panic!("{faults}"))
}

/// Threads that are there: their user, and when they began. Principals of whom nothing is left.
#[derive(Default)]
pub struct Pretended(pub BTreeMap<u32, ThreadInfo>, pub BTreeSet<Principal>);

impl Threads for Pretended {
    fn look(&self, tid: u32) -> Option<ThreadInfo> {
        self.0.get(&tid).copied()
    }

    fn has(&self, owner: &Principal) -> bool {
        !self.1.contains(owner)
    }

    /// User 1000 has a range of subordinate ids; who has others is not known.
    fn person(&self, uid: u32) -> u32 {
        match uid {
            0..100_000 => uid,
            100_000..165_536 => 1000,
            _ => NAMELESS,
        }
    }
}

pub type InTest = Manager<InMemory, Pretended>;

/// A rule that comes with Tierce.
pub fn rule(name: &str, parameters: Value) -> (String, String, Value) {
    (name.to_string(), shipped(name).unwrap_or_else(|| panic!("{name}")).to_string(), parameters)
}

pub fn rules(list: &[(String, String, Value)]) -> Rules {
    let mut rules = Rules::new();
    for (name, text, parameters) in list {
        rules.add(name, Principal::System, text, parameters).unwrap();
    }
    rules
}

/// A manager of that plan, with these rules of the system.
pub fn manager(text: &str, list: &[(String, String, Value)]) -> InTest {
    let threads = Pretended::default();
    Manager::new(InMemory::new(plan(text)), threads, Books::new("test"), rules(list), Limits::default())
}

/// A wish for a thread of a user, which begins now.
pub fn wish(manager: &mut InTest, uid: u32, tid: u32, modes: &[(&str, i64)]) -> Wish {
    manager.threads().0.insert(tid, ThreadInfo { uid: Some(uid), began: u64::from(tid) });
    let modes = modes.iter().map(|(text, value)| Mode::parse(text, *value).unwrap()).collect();
    Wish { thread: Some(tid), modes, ..Wish::default() }
}

pub fn ask(manager: &mut InTest, uid: u32, wish: Wish) -> Result<Answer, Wrong> {
    let asker = Asker::user(uid);
    let answer = manager.ask(&asker, Ask::Request(Box::new(wish)), NOW);
    checked(manager);
    answer
}

/// A thread of a user asks for these modes; others than `state` are an error of the test.
pub fn asked(manager: &mut InTest, uid: u32, tid: u32, modes: &[(&str, i64)], state: State) -> Answer {
    let wish = wish(manager, uid, tid, modes);
    let answer = ask(manager, uid, wish).unwrap();
    assert_eq!(answer.state, state, "{}", json!(answer));
    answer
}

pub fn granted(manager: &mut InTest, uid: u32, tid: u32, modes: &[(&str, i64)]) -> u64 {
    asked(manager, uid, tid, modes, State::Granted).about.unwrap().id
}

pub fn refused(manager: &mut InTest, uid: u32, tid: u32, modes: &[(&str, i64)]) -> (Wrong, Option<Mode>) {
    let answer = asked(manager, uid, tid, modes, State::Refused);
    (answer.reason.unwrap(), answer.nearest)
}

/// The tests begin at this time.
pub const NOW: u64 = 1_000_000_000;
pub const MS: u64 = 1_000_000;

/// Books, plan and verdict agree.
pub fn checked(manager: &mut InTest) {
    let wrong = manager.check().unwrap();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What somebody was told since this was last asked: about which request, what.
pub fn told(manager: &mut InTest) -> Vec<(u64, What)> {
    manager.take_notices().iter().filter_map(|notice: &Notice| Some((notice.id?, notice.what))).collect()
}

/// Numbers of requests that have a guarantee.
pub fn holders(manager: &InTest) -> Vec<u64> {
    manager.books().granted().map(|(request, _)| request.id).collect()
}
