//! What a request costs the manager itself, from the text of the request to those of the answer and of the books, without the loader:
//! `bench/manager/instructions` counts the instructions of `one_grant`.
//!
//!     one_grant GRANTS NOTICES ROUNDS    with so many grants in force, so many notices in the books, so many requests

use serde_json::json;
use std::rc::Rc;
use tierce_admission::PlanExt;
use tierce_manager::memory::Counted;
use tierce_manager::rules::shipped;
use tierce_manager::{
    Ask, Asker, Books, InForce, Limits, Manager, Principal, Rules, State, ThreadInfo, Threads, What, Writer,
    Wrong,
};
use tierce_plan::{Edit, Options, Plan, Standing};

/// As the program `tierce-manager` has it.
#[global_allocator]
static ALLOCATOR: Counted<mimalloc::MiMalloc> = Counted(mimalloc::MiMalloc);

/// A plan that changes as it is told to, as the loader's does.
struct Obeying {
    plan: Rc<Plan>,
    /// The same with its text, and what was done since.
    written: Plan,
    edits: Vec<Edit>,
}

impl InForce for Obeying {
    fn plan(&mut self) -> Result<Rc<Plan>, Wrong> {
        Ok(self.plan.clone())
    }

    fn apply(&mut self, edits: &[Edit], after: Option<&Rc<Plan>>) -> Result<(), Wrong> {
        self.edits.extend_from_slice(edits);
        if let Some(after) = after {
            self.plan = after.clone();
            return Ok(());
        }
        self.write();
        self.plan = Rc::new(self.written.clone());
        Ok(())
    }
}

impl Obeying {
    /// This is the loader's work.
    #[inline(never)]
    fn write(&mut self) {
        let edits = std::mem::take(&mut self.edits);
        let written = self.written.with_text(&edits, &Standing::default());
        self.written = written.unwrap_or_else(|faults| panic!("{faults}"));
    }
}

/// Every thread is there: of user 1001, 1002 or 1003.
struct All;

impl Threads for All {
    fn look(&self, tid: u32) -> Option<ThreadInfo> {
        Some(ThreadInfo { uid: Some(user(tid)), began: 1 })
    }
}

fn user(tid: u32) -> u32 {
    1001 + tid % 3
}

type Here = Manager<Obeying, All>;

/// The manager, and what writes its books.
struct Served {
    manager: Here,
    writer: Writer,
    /// What is sent, as the server keeps it.
    answer: Vec<u8>,
    now_ns: u64,
}

impl Served {
    /// The text of a request, and what has to be sent and written for it.
    fn ask(&mut self, tid: u32, text: &str) -> (State, usize) {
        self.now_ns += 10_000_000;
        let answer = serde_json::from_str::<Ask>(text)
            .map_err(|error| Wrong::new("request_must_be_clear", error.to_string()))
            .and_then(|ask| self.manager.ask(&Asker::user(user(tid)), ask, self.now_ns));
        let answer = answer.unwrap_or_else(|wrong| panic!("{wrong:?}"));
        let written = self.writer.written(self.manager.books());
        self.answer.clear();
        serde_json::to_writer(&mut self.answer, &answer).expect("an answer");
        (answer.state, self.answer.len() + written.map(str::len).iter().sum::<usize>())
    }
}

/// What is counted.
#[inline(never)]
fn one_grant(served: &mut Served, tid: u32, text: &str) -> usize {
    let (state, bytes) = served.ask(tid, text);
    assert_eq!(state, State::Granted);
    bytes
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse().expect("a number"));
    let mut number = |preset: u32| numbers.next().unwrap_or(preset);
    let (grants, notices, rounds) = (number(8), number(1024), number(20));
    let text = include_str!("../../../tests/vm/manager.toml");
    let plan = Plan::parse_with(text, "manager.toml", Options { cpus: 1 })
        .unwrap_or_else(|faults| panic!("{faults}"));
    let mut rules = Rules::new();
    for name in ["limit-per-user", "most-important-first"] {
        rules.add(name, Principal::System, shipped(name).expect(name), &json!({})).expect(name);
    }
    let mut books = Books::new("boot");
    for number in 0..notices {
        books.tell(&Principal::User(1001), Some(1), What::Changed, format!("notice {number}"));
    }
    let in_force = Obeying { plan: Rc::new(plan.clone()), written: plan, edits: Vec::new() };
    let manager = Manager::new(in_force, All, books, rules, Limits::default());
    let (writer, answer) = (Writer::default(), Vec::new());
    let mut served = Served { manager, writer, answer, now_ns: 1_000_000_000 };
    let wish = |tid: u32| {
        let period = ["10ms", "20ms", "50ms"][tid as usize % 3];
        let modes = json!([{ "budget": format!("{}us", 100 + tid), "period": period, "value": tid % 9 }]);
        json!({ "request": "request", "thread": tid, "modes": modes }).to_string()
    };
    for tid in 1..=grants {
        // Code that is translated before it runs the first time may take more CPU time than rules may have.
        while served.ask(tid, &wish(tid)).0 != State::Granted {}
    }
    let mut bytes = 0;
    for tid in grants + 1..=grants + rounds {
        bytes += one_grant(&mut served, tid, &wish(tid));
        served.ask(tid, &json!({ "request": "cancel", "id": tid }).to_string());
    }
    println!("{}", json!({ "grants": grants, "notices": notices, "rounds": rounds, "bytes": bytes }));
}
