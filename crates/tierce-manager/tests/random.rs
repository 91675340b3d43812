//! Thousands of random requests, cancels, changes, revocations, users who come and go, plans that are replaced, and restarts, with
//! rules on. After each, books, plan and verdict agree: nothing is lost, and nothing is promised twice.

mod common;
#[path = "../../../tests/draw.rs"]
mod draw;

use common::*;
use draw::Draw;
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use tierce_manager::rules::STACK;
use tierce_manager::{
    check, Ask, Asker, Books, Change, Divide, InForce, InMemory, Limits, Manager, Mode, Signal, State,
    Target, ThreadInfo, Trial, What, Which, Wish,
};
use tierce_plan::{Below, Change as PlanChange, Edit};

const STEPS: usize = 400;

type RuleSet = Vec<(String, String, Value)>;

/// One CPU in slots, and another whose children take turns.
const TURNS_AND_SLOTS: &str = r#"
[machine]
cpus = 2
[node.slotted]
policy = "slots"
slot = "10ms"
cpu = 0
[node.turns]
policy = "round-robin"
quantum = "1ms"
cpu = 1
[node.rest]
policy = "fair"
default = true
under.slotted = { offset = "0ms", length = "2ms", fill = 1 }
under.turns = {}
"#;

/// Plans and rules that are played.
fn games() -> Vec<(&'static str, &'static str, RuleSet)> {
    let shares = rule("equal-shares", json!({ "percent": 90, "grace_ms": 30 }));
    let sessions = rule("session-scheduler", json!({}));
    let first = |grace: u64, everybody: bool| {
        rule("most-important-first", json!({ "grace_ms": grace, "everybody": everybody }))
    };
    vec![
        ("no rules", ONE, Vec::new()),
        ("importance", ONE, vec![first(0, true)]),
        (
            "importance with grace",
            ONE,
            vec![first(40, true), rule("limit-per-user", json!({ "percent": 60 }))],
        ),
        ("value", ONE, vec![rule("largest-total-value", json!({ "everybody": true, "grace_ms": 20 }))]),
        ("shares", ONE, vec![shares.clone(), sessions]),
        ("shares of four CPUs", FOUR, vec![shares, rule("like-periods", json!({}))]),
        ("turns and slots", TURNS_AND_SLOTS, Vec::new()),
        ("bin packing", FOUR, vec![rule("bin-packing", json!({})), rule("probabilistic", json!({}))]),
    ]
}

struct Game {
    manager: InTest,
    draw: Draw,
    rules: RuleSet,
    plan: &'static str,
    now: u64,
    next_tid: u32,
    /// What each owner believes that he has: by what he was answered and told.
    believed: BTreeMap<u64, Belief>,
    counts: BTreeMap<&'static str, usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    Granted,
    Pending,
}

/// As a scheduler has to ask, which has no jobs.
fn without_deadlines(modes: &mut [Mode]) {
    modes.iter_mut().for_each(|mode| mode.deadline_ns = None);
}

impl Game {
    fn new(plan: &'static str, rules: RuleSet, draw: Draw) -> Self {
        let manager = manager(plan, &rules);
        let (believed, counts) = (BTreeMap::new(), BTreeMap::new());
        let mut game = Self { manager, draw, rules, plan, now: NOW, next_tid: 100, believed, counts };
        game.manager.turn(NOW).unwrap();
        game
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
        if std::env::var_os("TIERCE_SHOW").is_some() {
            println!("{what}");
        }
    }

    fn uid(&mut self) -> u32 {
        1000 + self.draw.below(4) as u32
    }

    fn modes(&mut self) -> Vec<Mode> {
        let one = |draw: &mut Draw| {
            let period_us = [1_000, 5_000, 10_000, 20_000, 33_333, 100_000][draw.below(6)];
            let budget_us = 50 + draw.below(period_us * 7 / 10 - 49);
            let value = draw.below(20) as i64;
            let mode = match draw.below(12) {
                0 => Mode::parse(&format!("PS {}/100", 1 + draw.below(40)), value),
                1 => Mode::parse(&format!("RESCS {budget_us}us {}us", period_us * 2), value),
                _ => Mode::budget(budget_us as u64 * 1000, period_us as u64 * 1000, value),
            };
            let deadline_ns = (draw.below(3) == 0).then(|| 1 + draw.below(3) as u64);
            Mode { deadline_ns, ..mode.unwrap() }
        };
        (0..1 + self.draw.below(3)).map(|_| one(&mut self.draw)).collect()
    }

    fn id(&mut self) -> Option<(u64, Asker)> {
        let all: Vec<_> =
            self.manager.books().requests.values().map(|it| (it.id, it.owner.clone())).collect();
        let (id, owner) = all.get(self.draw.below(all.len().max(1)))?.clone();
        Some((id, owner.user().map_or(Asker::SYSTEM, Asker::user)))
    }

    fn step(&mut self) {
        match self.draw.below(20) {
            0..=8 => self.request(),
            9..=10 => self.cancel(),
            11..=12 => self.change(),
            13 => self.thread_ends(),
            14..=15 => self.now += self.draw.below(50) as u64 * MS,
            16 => self.user(),
            17 => self.divide(),
            18 if self.draw.below(4) == 0 => self.replaced(),
            18 => self.edited(),
            _ if self.draw.below(4) == 0 => self.restart(),
            _ => self.signal(),
        }
        self.manager.turn(self.now).unwrap();
        if self.draw.below(8) == 0 {
            self.is_as_written();
        }
        self.believe();
        let wrong = self.manager.check().unwrap();
        assert!(wrong.is_empty(), "{wrong:#?}");
        let books: BTreeMap<u64, Belief> = self
            .manager
            .books()
            .requests
            .values()
            .map(|request| {
                (request.id, if request.held.is_some() { Belief::Granted } else { Belief::Pending })
            })
            .collect();
        assert_eq!(self.believed, books, "owners know what they have");
    }

    /// Owners read what they were told.
    fn believe(&mut self) {
        for notice in self.manager.take_notices() {
            if std::env::var_os("TIERCE_SHOW").is_some() {
                println!("    {notice:?}");
            }
            let Some(id) = notice.id else { continue };
            match notice.what {
                What::Granted => _ = self.believed.insert(id, Belief::Granted),
                What::Ended => _ = self.believed.remove(&id),
                What::Revoked if notice.text.contains("it waits") => {
                    _ = self.believed.insert(id, Belief::Pending)
                }
                What::Revoked => _ = self.believed.remove(&id),
                _ => {}
            }
        }
    }

    fn request(&mut self) {
        let (uid, tid) = (self.uid(), self.next_tid);
        self.next_tid += 1;
        let mut wish = Wish { modes: self.modes(), wait: self.draw.below(3) == 0, ..Wish::default() };
        match self.draw.below(8) {
            0 => {
                wish.policy = Some(["fair", "reservation"][self.draw.below(2)].into());
                without_deadlines(&mut wish.modes);
            }
            1 => wish.matches = vec![serde_json::from_value(json!({ "comm": format!("p{tid}*") })).unwrap()],
            _ => {
                self.manager.threads().0.insert(tid, ThreadInfo { uid: Some(uid), began: u64::from(tid) });
                wish.thread = Some(tid);
            }
        }
        if self.draw.below(4) == 0 {
            wish.about = Map::from_iter([("probabilistic".to_string(), true.into())]);
        }
        if self.draw.below(6) == 0 {
            // Into a scheduler, mostly his own.
            let granted: Vec<_> = self.manager.books().granted().map(|(request, _)| request.name()).collect();
            wish.under = granted.get(self.draw.below(granted.len().max(1))).cloned();
        }
        let answer = self.manager.ask(&Asker::user(uid), Ask::Request(Box::new(wish)), self.now);
        self.believe();
        let Ok(answer) = answer else { return self.count("wrong") };
        if std::env::var_os("TIERCE_SHOW").is_some() {
            println!("  {}", json!(answer));
        }
        match (answer.state, answer.about) {
            (State::Granted, Some(about)) => {
                self.believed.insert(about.id, Belief::Granted);
                self.count("granted");
            }
            (State::Pending, Some(about)) => {
                self.believed.entry(about.id).or_insert(Belief::Pending);
                self.count("pending");
            }
            (State::Refused, _) => self.count("refused"),
            other => panic!("{other:?}"),
        }
    }

    fn cancel(&mut self) {
        let Some((id, asker)) = self.id() else { return };
        self.manager.ask(&asker, Ask::Cancel(Which { id }), self.now).unwrap();
        self.believed.remove(&id);
        self.count("cancelled");
    }

    fn change(&mut self) {
        let Some((id, asker)) = self.id() else { return };
        let mut modes = self.modes();
        if self.manager.books().requests[&id].target == Target::Scheduler {
            without_deadlines(&mut modes);
        }
        if std::env::var_os("TIERCE_SHOW").is_some() {
            println!("  change {id} {}", json!(modes));
        }
        let was = self.believed.get(&id).copied();
        let answer = self.manager.ask(&asker, Ask::Change(Change { id, modes }), self.now).unwrap();
        self.believe();
        match (answer.state, was) {
            (State::Granted, _) => _ = self.believed.insert(id, Belief::Granted),
            (State::Refused, Some(Belief::Pending)) => _ = self.believed.remove(&id),
            _ => {}
        }
        self.count("changed");
    }

    fn thread_ends(&mut self) {
        let threads: Vec<u32> = self.manager.threads().0.keys().copied().collect();
        let Some(tid) = threads.get(self.draw.below(threads.len().max(1))).copied() else { return };
        self.manager.threads().0.remove(&tid);
        self.count("thread ended");
    }

    fn user(&mut self) {
        let uid = self.uid();
        match self.draw.below(2) {
            0 => self.manager.user_enters(uid, self.now),
            _ => self.manager.user_leaves(uid, self.now),
        }
        self.count("user");
    }

    fn signal(&mut self) {
        let signal = Signal { event: "recalculate_shares".into(), data: Value::Null };
        self.manager.ask(&Asker::SYSTEM, Ask::Signal(signal), self.now).unwrap();
    }

    fn divide(&mut self) {
        let all: Vec<_> = self
            .manager
            .books()
            .granted()
            .filter(|(it, _)| it.target == Target::Scheduler)
            .map(|(it, _)| (it.id, it.owner.clone()))
            .collect();
        let Some((id, owner)) = all.get(self.draw.below(all.len().max(1))).cloned() else { return };
        let asker = Asker::user(owner.user().unwrap_or(0));
        let names = ["a", "b", "c", "rt", ""];
        let (name, under) = (names[self.draw.below(4)].to_string(), names[self.draw.below(5)].to_string());
        let keys = match self.draw.below(3) {
            0 => vec![("weight".to_string(), "100".to_string())],
            1 => {
                vec![("budget".to_string(), "100us".to_string()), ("period".to_string(), "400ms".to_string())]
            }
            _ => Vec::new(),
        };
        let under = if self.draw.below(2) == 0 { String::new() } else { under };
        let edit = match self.draw.below(8) {
            0 => Edit::Destroy { name, below: Below::All },
            1 => Edit::Set { name, under: None, keys, who: Vec::new() },
            2 => Edit::Move { name, tasks: false, from: None, under, keys },
            _ => Edit::Create { name, policy: Some("fair".into()), under, keys, who: Vec::new(), cpus: None },
        };
        let divide = Divide { id, edits: vec![edit], dry_run: false };
        if let Ok(answer) = self.manager.ask(&asker, Ask::Divide(divide), self.now) {
            self.count(if answer.state == State::Done { "divided" } else { "not divided" });
        }
    }

    /// Somebody enforces another plan.
    fn replaced(&mut self) {
        self.manager.in_force().replace(plan(self.plan));
        self.count("replaced");
    }

    /// Somebody changes a part that the manager has made.
    fn edited(&mut self) {
        let Some((id, _)) = self.id() else { return };
        let name = self.manager.books().requests[&id].name();
        let edit = match self.draw.below(2) {
            0 => Edit::Destroy { name, below: Below::All },
            _ => {
                let keys = vec![("budget".to_string(), "1us".to_string())];
                Edit::Set { name, under: None, keys, who: Vec::new() }
            }
        };
        let _ = self.manager.in_force().apply(&[edit], None); // a request without a guarantee has no part
        self.count("edited by others");
    }

    /// The plan that the manager has tried, and goes on with, means what the operations make of the text.
    fn is_as_written(&mut self) {
        let plan = self.manager.in_force().plan().unwrap();
        let change = PlanChange::between(&plan, self.manager.in_force().written()).unwrap();
        let differences = change.differences();
        assert!(differences.is_empty(), "{differences:#?}");
        // And what is promised follows from it, for one who remembers nothing.
        let wrong = check(self.manager.books(), &Trial::new(plan));
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// The manager is killed and comes back; the plan is as it was, and the books are as they were written.
    fn restart(&mut self) {
        let books = Books::read(&self.manager.books().written(), "test").unwrap();
        let plan = self.manager.in_force().written().as_ref().clone();
        let threads = std::mem::take(self.manager.threads());
        self.manager =
            Manager::new(InMemory::new(plan), threads, books, rules(&self.rules), Limits::default());
        self.count("restarted");
    }
}

#[test]
fn books_plan_and_verdict_agree_whatever_happens() {
    let play = || {
        for (salt, (name, plan, rules)) in games().into_iter().enumerate() {
            let mut game = Game::new(plan, rules, Draw::new(40 + salt as u64));
            for step in 0..STEPS * scale() {
                let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| game.step()));
                result.unwrap_or_else(|_| panic!("{name}, step {step}: {:?}", game.counts));
            }
            println!("{name}: {:?}", game.counts);
            assert!(game.counts["granted"] >= STEPS / 40, "{name}");
        }
    };
    std::thread::Builder::new().stack_size(STACK).spawn(play).unwrap().join().unwrap();
}

/// TIERCE_ROUNDS=10 plays ten times as long.
fn scale() -> usize {
    std::env::var("TIERCE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}
