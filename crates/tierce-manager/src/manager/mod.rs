//! The manager: what happens when somebody asks, and when something happens.

mod divide;
mod events;
mod grants;
mod limits;
mod parts;
mod reconcile;
mod request;
mod seen;
mod settle;
mod view;

use crate::ask::{Answer, Ask, Notice, State, What};
use crate::books::{Books, Request, Target};
use crate::check::check;
use crate::in_force::InForce;
use crate::principal::{Asker, Principal};
use crate::proposal::Proposal;
use crate::rules::Rules;
use crate::trial::Trial;
use crate::wrong::Wrong;
pub use events::{Unmatched, PART_EVENTS};
pub use limits::Limits;
use seen::Seen;
use serde_json::Value;
use std::collections::VecDeque;
use std::rc::Rc;

/// What is known of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadInfo {
    /// The user of all its identities; `None`: it has several.
    pub uid: Option<u32>,
    /// When it began, in the kernel's ticks since boot.
    pub began: u64,
}

/// The machine's threads and users.
pub trait Threads {
    /// A thread by its number; `None`: there is none.
    fn look(&self, tid: u32) -> Option<ThreadInfo>;

    /// When it began, as in [`ThreadInfo`].
    fn began(&self, tid: u32) -> Option<u64> {
        self.look(tid).map(|thread| thread.began)
    }

    /// Whether anything is left of a principal who has asked for what no thread ends.
    fn has(&self, _owner: &Principal) -> bool {
        true
    }

    /// The person for whom a user counts, by the number of that person's own user: somebody may have many. [`NAMELESS`]: nobody knows.
    ///
    /// [`NAMELESS`]: crate::NAMELESS
    fn person(&self, uid: u32) -> u32 {
        uid
    }
}

/// An event that is signalled later.
struct Later {
    due_ns: u64,
    event: String,
}

/// What has become of a part, or was to be heard by rules and had no time, for rules.
struct Heard {
    event: String,
    data: Value,
    /// The request that it is about.
    id: Option<u64>,
    /// As it was, if it may be over by then.
    request: Option<Rc<Request>>,
}

/// The manager.
pub struct Manager<P, T> {
    in_force: P,
    threads: T,
    books: Books,
    rules: Rules,
    /// What rules were last given.
    seen: Seen,
    limits: Limits,
    /// Of the plan in force as it was last seen.
    trial: Option<Trial>,
    /// Notices that nobody has taken.
    told: Vec<Notice>,
    later: Vec<Later>,
    /// Those who wait and are to be looked at again.
    retries: VecDeque<u64>,
    /// Events of parts of which rules have not heard yet.
    heard: VecDeque<Heard>,
    /// Changes with every change of the books.
    revision: u64,
    /// The plan has been changed by others, or has not been looked at.
    is_foreign: bool,
    /// Rules know that the manager has started.
    has_started: bool,
    /// How a rule failed that was last asked about a part of the plan.
    failed: Option<String>,
}

impl<P: InForce, T: Threads> Manager<P, T> {
    /// With these books. The plan in force is compared with them at the first [`Manager::turn`].
    pub fn new(in_force: P, threads: T, books: Books, rules: Rules, limits: Limits) -> Self {
        Self {
            in_force,
            threads,
            books,
            rules,
            seen: Seen::default(),
            limits,
            trial: None,
            told: Vec::new(),
            later: Vec::new(),
            retries: VecDeque::new(),
            heard: VecDeque::new(),
            revision: 0,
            is_foreign: true,
            has_started: false,
            failed: None,
        }
    }

    /// Answer what somebody asks. An error: it is not well formed, or not for him to ask, or no plan is in force.
    pub fn ask(&mut self, asker: &Asker, ask: Ask, now_ns: u64) -> Result<Answer, Wrong> {
        self.rules.begin_turn();
        self.pass(now_ns)?;
        match ask {
            Ask::Request(wish) => self.request(asker, *wish, now_ns),
            Ask::Cancel(which) => self.cancel(asker, which.id, now_ns),
            Ask::Change(change) => self.change(asker, change, now_ns),
            Ask::Divide(divide) => self.divide(asker, divide),
            Ask::Signal(signal) if asker.is_system() => {
                self.signal(&signal.event, &signal.data, now_ns);
                Ok(Answer::new(State::Done))
            }
            Ask::Signal(_) => Err(Wrong::new("asker_must_be_the_system", "only root signals events")),
            Ask::List(_) => {
                let theirs = self.books.all().filter(|request| asker.acts_for(&request.owner));
                let ids: Vec<u64> = theirs.map(|request| request.id).collect();
                Ok(Answer { requests: self.with_parts(&ids)?, ..Answer::new(State::Done) })
            }
            Ask::Rules(_) => Ok(Answer { rules: self.rules.shown(), ..Answer::new(State::Done) }),
            Ask::News(news) => {
                let all = self.books.notices.iter().filter(|notice| notice.number > news.after);
                let theirs = all.filter(|notice| asker.acts_for(&notice.to));
                Ok(Answer { news: theirs.cloned().collect(), ..Answer::new(State::Done) })
            }
        }
    }

    /// Other rules and limits from now on. Rules learn that they are there by the event `started`, and those who wait are tried again.
    pub fn set_rules(&mut self, rules: Rules, limits: Limits) {
        (self.rules, self.limits) = (rules, limits);
        (self.is_foreign, self.has_started) = (true, false);
    }

    /// The books, for the file.
    pub fn books(&self) -> &Books {
        &self.books
    }

    /// Another number than before: the books have changed.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether any rule is about this event.
    pub fn heeds(&self, event: &str) -> bool {
        self.rules.heeds(event)
    }

    /// Whether a rule of the system is about this event: only those hear of what concerns no request.
    pub fn heeds_of_system(&self, event: &str) -> bool {
        self.rules.heeds_of_system(event)
    }

    /// Notices since they were last taken.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.told)
    }

    /// The plan in force.
    pub fn in_force(&mut self) -> &mut P {
        &mut self.in_force
    }

    /// The machine's threads.
    pub fn threads(&mut self) -> &mut T {
        &mut self.threads
    }

    /// Whether books, plan and verdict agree; what does not, in words.
    pub fn check(&mut self) -> Result<Vec<String>, Wrong> {
        let trial = self.trial()?;
        Ok(check(&self.books, &trial))
    }

    /// The plan in force, to try operations on.
    fn trial(&mut self) -> Result<Trial, Wrong> {
        let plan = self.in_force.plan()?;
        match &self.trial {
            Some(trial) if Rc::ptr_eq(trial.plan(), &plan) => Ok(trial.clone()),
            _ => {
                self.is_foreign = true;
                let trial = Trial::new(plan);
                self.trial = Some(trial.clone());
                Ok(trial)
            }
        }
    }

    /// Do it: the plan first, and the books if that went well.
    fn commit(&mut self, proposal: &Proposal) -> Result<(), Wrong> {
        let operations: Rc<[_]> = proposal.operations(&self.books).into();
        if !operations.is_empty() {
            let after = self.trial()?.edited(operations.clone())?;
            self.in_force.apply(&operations, after.stepped())?;
            let plan = self.in_force.plan()?;
            let is_after = Rc::ptr_eq(after.plan(), &plan);
            self.trial = None; // nothing else keeps what the new one goes on with
            self.trial = Some(if is_after { after.settled() } else { Trial::new(plan) });
        }
        for id in &proposal.ends {
            if let Some(request) = self.books.request_mut(*id) {
                (request.held, request.ending) = (None, None);
                request.divided.clear();
            }
        }
        for (id, mode, keys) in &proposal.modes {
            let request = self.books.request_mut(*id).filter(|_| !proposal.ends.contains(id));
            if let Some(request) = request {
                let deadline_ns = request.modes.get(*mode).and_then(|mode| mode.deadline_ns);
                if let Some(held) = &mut request.held {
                    (held.mode, held.keys, held.deadline_ns) = (*mode, keys.clone(), deadline_ns);
                }
            }
        }
        for (id, held) in &proposal.grants {
            if let Some(request) = self.books.request_mut(*id) {
                (request.held, request.reason) = (Some(held.clone()), None);
            }
        }
        self.revision += 1;
        Ok(())
    }

    fn tell(&mut self, to: &Principal, id: Option<u64>, what: What, text: String, within_ms: Option<u64>) {
        let has_mode = matches!(what, What::Granted | What::Changed);
        let request = id.filter(|_| has_mode).and_then(|id| self.books.get(&id));
        let mode = request.and_then(Request::mode).cloned();
        let notice = self.books.tell(to, id, what, text);
        (notice.within_ms, notice.mode) = (within_ms, mode);
        self.told.push(notice.clone());
        self.revision += 1;
    }

    fn tell_owner(&mut self, id: u64, what: What, text: String, within_ms: Option<u64>) {
        if let Some(owner) = self.books.get(&id).map(|request| request.owner.clone()) {
            self.tell(&owner, Some(id), what, text, within_ms);
        }
    }

    /// The person for whom a request counts; the system is none.
    fn person_of(&self, request: &Request) -> Option<u32> {
        request.owner.user().or(request.by).map(|uid| self.threads.person(uid))
    }

    /// The thread of a request is there, and is still the same; of others, who has asked.
    fn is_there(&self, request: &Request) -> bool {
        match request.target {
            Target::Thread { tid, began } => self.threads.began(tid) == Some(began),
            Target::Match(_) | Target::Scheduler => self.threads.has(&request.owner),
        }
    }
}
