//! What is asked of the manager and what it answers: one type each, whatever carries them.
//!
//! A request that is not well formed, or that its asker may not make, is [`Wrong`]. A request that cannot be granted is
//! answered ([`State::Refused`]), with the reason and, where there is one, with the nearest guarantee that would be granted.

use crate::mode::Mode;
use crate::principal::Principal;
use crate::wrong::Wrong;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tierce_plan::Edit;

/// Version of requests and answers.
pub const VERSION: u64 = 1;

/// Where the manager listens, unless it was told otherwise.
pub const LISTEN: &str = "/run/tierce-manager.sock";

/// A request, and what it may be about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Ask {
    /// A guarantee.
    Request(Box<Wish>),
    /// A request ends, and with it its guarantee.
    Cancel(Which),
    /// Other modes for a request: less, or more.
    Change(Change),
    /// Requests that the asker may see.
    List(List),
    /// Operations below a scheduler that belongs to the asker.
    Divide(Divide),
    /// An event, for rules; only the system may signal one.
    Signal(Signal),
    /// The rules in force, and how each has fared.
    Rules(List),
    /// What the asker has been told, after the notice of that number.
    News(News),
}

/// A request, by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Its number.
    pub id: u64,
}

/// Nothing more is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {}

/// Other modes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// The request.
    pub id: u64,
    /// Instead of those it had.
    pub modes: Vec<Mode>,
}

/// Operations on a scheduler that was granted; names are those below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Divide {
    /// The request by which it was granted.
    pub id: u64,
    /// All or none. `under` is another part below it; empty: itself.
    pub edits: Vec<Edit>,
    /// Try it only.
    #[serde(default)]
    pub dry_run: bool,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signal {
    /// Its name: that of the functions it calls.
    pub event: String,
    /// What rules get as `it.data`.
    #[serde(default)]
    pub data: Value,
}

/// Notices after this number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct News {
    /// 0: all that are kept.
    #[serde(default)]
    pub after: u64,
}

/// A guarantee that somebody would like to have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wish {
    /// For this thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// For all threads that match any of these, together.
    #[serde(rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Map<String, Value>>,
    /// The policy by which these threads share it. Without threads: for a scheduler with this policy, which its owner divides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Any of these; the manager chooses by value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<Mode>,
    /// Only below this node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
    /// Stay pending if it cannot be granted now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Whose it is; the asker must act for that principal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<Principal>,
    /// A word for people and rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whatever else rules may want to know.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub about: Map<String, Value>,
    /// Change nothing: say what each rule decides and what would happen.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What has become of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It has its guarantee.
    Granted,
    /// It may get one later, and its owner is told.
    Pending,
    /// It gets none.
    Refused,
    /// It is over.
    Ended,
    /// Something else was asked for, and is done.
    Done,
}

/// An answer. What has nothing to say is left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// What has become of it.
    pub state: State,
    /// With `dry_run`: nothing has changed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The request that was asked about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Shown>,
    /// Those that were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<Shown>,
    /// Why it is refused or pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Wrong>,
    /// The nearest that would be granted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Mode>,
    /// What each rule has said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<Said>,
    /// What happens, or would, to others and to the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<String>,
    /// Notices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub news: Vec<Notice>,
}

impl Answer {
    /// Nothing but that.
    pub fn new(state: State) -> Self {
        Self {
            state,
            dry_run: false,
            about: None,
            requests: Vec::new(),
            reason: None,
            nearest: None,
            rules: Vec::new(),
            changes: Vec::new(),
            news: Vec::new(),
        }
    }
}

/// A request as its owner sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    /// Its number.
    pub id: u64,
    /// Granted or pending.
    pub state: State,
    /// Whose it is.
    pub owner: Principal,
    /// As it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<u32>,
    /// What its threads match.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matches: Vec<Map<String, Value>>,
    /// All that was asked for, the most valuable first.
    pub modes: Vec<Mode>,
    /// What it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Granted>,
    /// Why it is pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Wrong>,
    /// What it has will be taken from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    /// How its owner has divided it, if it is a scheduler.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub divided: Vec<Part>,
}

/// A part of a scheduler that its owner divides: a node, a task or a set, below another one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// As its owner has named it.
    pub name: String,
    /// The part above; empty: the scheduler.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub under: String,
    /// Of a node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// Those of the node and of the edge above it that are not the presets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// CPUs on which it may run; nothing on a machine of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<u32>,
    /// From the part above; nothing, if nobody has counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<Received>,
}

/// What a part has received since it is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Received {
    /// CPU time.
    pub cpu_ns: u64,
    /// Threads that are there, of a task or set.
    pub threads: u64,
    /// Periods in which it wanted the CPU all the time and was owed its budget.
    pub windows: u64,
    /// Those of them in which it received less.
    pub not_kept: u64,
}

/// What a request has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Granted {
    /// The task or node in the plan.
    pub name: String,
    /// The node above.
    pub under: String,
    /// The CPU, where it is on one of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Which of the modes.
    pub mode: Mode,
}

/// A guarantee that ends soon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// When, in the manager's time.
    pub due_ns: u64,
    /// Why.
    pub reason: String,
}

/// What one rule has said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// The rule.
    pub rule: String,
    /// In words.
    pub said: String,
}

/// What a principal is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Numbers increase.
    pub number: u64,
    /// Who is told.
    pub to: Principal,
    /// About which request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// What has happened.
    pub what: What,
    /// In words: the reason, and what is left.
    pub text: String,
    /// Until then something can be done about it, in ms from the notice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within_ms: Option<u64>,
    /// Granted or changed: what it has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    /// About which part of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
}

/// What has happened to a request, or to another part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A pending request has its guarantee.
    Granted,
    /// The guarantee is another mode of the request.
    Changed,
    /// It will be taken away.
    WillEnd,
    /// What was to be taken away stays.
    Stays,
    /// It was taken away.
    Revoked,
    /// It ended: its thread did, or what it was part of.
    Ended,
    /// It did not get what it was promised.
    PromiseNotKept,
    /// Jobs ended after their deadline.
    DeadlineMissed,
    /// A thread no longer matches it.
    MatchEnded,
    /// A rule failed or ran into a bound.
    RuleFailed,
    /// A rule has something to say.
    Said,
}
