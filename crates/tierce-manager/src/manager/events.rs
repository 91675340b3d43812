//! Something happens: time passes, users come and go, deadlines are missed, rules signal events.

use super::grants::{Guide, Place};
use super::settle::OTHERS_ARE_TOLD;
use super::{Heard, Later, Manager, Threads};
use crate::ask::{Notice, What};
use crate::books::{Request, Target};
use crate::in_force::InForce;
use crate::principal::{Principal, NAMELESS};
use crate::proposal::Proposal;
use crate::rules::{cpu_time, Evaluated, Timer, RETRY};
use crate::words::plain;
use crate::wrong::Wrong;
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::BTreeSet;
use std::rc::Rc;
use tierce_trace::{Violated, Violation};

/// Events of parts of the plan, whether anybody has asked for them or not.
pub const PART_EVENTS: [&str; 3] = ["promise_not_kept", "deadline_missed", "match_ended"];

/// A thread that no longer matches a part to which something is promised.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Unmatched {
    /// The thread.
    pub tid: u32,
    /// Its name.
    pub comm: String,
    /// The part.
    pub name: String,
    /// By which keys and values it matched.
    pub by: String,
    /// What of it does not fit any more, and where it is now.
    pub why: String,
}

const MS: u64 = 1_000_000;
/// Events that one event may cause.
const CAUSED_MAX: usize = 16;
/// Events of parts of which rules have not heard yet; of more they do not hear.
const HEARD_MAX: usize = 256;
/// Events that may be waited for.
const LATER_MAX: usize = 64;

impl<P: InForce, T: Threads> Manager<P, T> {
    /// Time has passed: whatever is due happens. An error: no plan is in force.
    pub fn turn(&mut self, now_ns: u64) -> Result<(), Wrong> {
        self.rules.begin_turn();
        self.pass(now_ns)
    }

    /// Time passes.
    pub(super) fn pass(&mut self, now_ns: u64) -> Result<(), Wrong> {
        self.trial()?;
        if std::mem::take(&mut self.is_foreign) {
            if let Err(wrong) = self.reconcile(now_ns) {
                self.is_foreign = true; // once more at the next turn
                return Err(wrong);
            }
            if !std::mem::replace(&mut self.has_started, true) {
                self.signal("started", &Value::Null, now_ns);
                self.retry(now_ns);
            }
        }
        self.end_dead(now_ns);
        self.end_due(now_ns);
        let (due, later) =
            std::mem::take(&mut self.later).into_iter().partition(|later| later.due_ns <= now_ns);
        self.later = later;
        let due: Vec<Later> = due;
        due.into_iter().for_each(|later| self.signal(&later.event, &Value::Null, now_ns));
        Ok(())
    }

    /// When something is due next, if anything is.
    pub fn next_ns(&self) -> Option<u64> {
        let endings = self.books.all().filter_map(|request| Some(request.ending.as_ref()?.due_ns));
        endings.chain(self.later.iter().map(|later| later.due_ns)).min()
    }

    /// A user is there. Those without a name come and go unnoticed.
    pub fn user_enters(&mut self, uid: u32, now_ns: u64) {
        if uid != NAMELESS && self.books.users.insert(uid) {
            self.revision += 1;
            self.signal("user_enters", &json!({ "user": uid }), now_ns);
        }
    }

    /// A user is no longer there. His requests stay as long as their threads do.
    pub fn user_leaves(&mut self, uid: u32, now_ns: u64) {
        if self.books.users.remove(&uid) {
            self.revision += 1;
            self.signal("user_leaves", &json!({ "user": uid }), now_ns);
        }
    }

    /// A part of the plan has received less than it was promised, or has missed deadlines. Who has asked for it is told, or else the
    /// system, and rules hear of it ([`Manager::go_on`]). Only broken promises of requests are kept in the books: the others may come twice a second for ever.
    pub fn violated(&mut self, violation: &Violation) {
        let part = &violation.part;
        let why = violation.why();
        let (what, data) = match &violation.what {
            Violated::Promise { parent, windows, missing_ns, .. } => (
                What::PromiseNotKept,
                json!({ "part": part, "parent": parent, "windows": windows, "missing_us": missing_ns / 1000, "why": why }),
            ),
            Violated::Deadline { misses, .. } => {
                (What::DeadlineMissed, json!({ "part": part, "misses": misses, "why": why }))
            }
        };
        self.part_event(violation.event(), part, (what, violation.to_string()), data);
    }

    /// A thread no longer matches a part to which something is promised. Who is told, and that it is not kept, is as above.
    pub fn match_ended(&mut self, thread: &Unmatched) {
        let Unmatched { tid, name, by, why, .. } = thread;
        let comm = plain(&thread.comm);
        let text = plain(&format!("thread {tid} ({comm}) no longer matches {name} ({by}): {why}"));
        let data = json!({ "part": name, "tid": tid, "comm": comm, "by": by, "why": why });
        self.part_event("match_ended", name, (What::MatchEnded, text), data);
    }

    fn part_event(&mut self, event: &str, part: &str, (what, text): (What, String), data: Value) {
        let id = self.books.request_of(part).map(|request| request.id);
        let request = id.and_then(|id| self.books.requests.get(&id).cloned());
        let to = request.as_ref().map_or(Principal::System, |request| request.owner.clone());
        if id.is_some() && what == What::PromiseNotKept {
            self.tell(&to, id, what, text, None);
        } else {
            let (number, part) = (self.books.last_notice(), Some(part.to_string()));
            self.told.push(Notice { number, to, id, what, text, within_ms: None, mode: None, part });
        }
        if self.rules.heeds(event) && self.heard.len() < HEARD_MAX {
            self.heard.push_back(Heard { event: event.to_string(), data, id, request: None });
        }
    }

    /// Rules hear of what has become of parts, and of what there was no time for: of as much as there is time for now.
    pub(super) fn some_heard(&mut self, now_ns: u64) {
        let ends = cpu_time() + RETRY;
        while cpu_time() < ends && !self.rules.is_turn_over() {
            let Some(Heard { event, data, id, request }) = self.heard.pop_front() else { break };
            let request = id.and_then(|id| self.books.requests.get(&id).cloned()).or(request);
            self.signal_about(&event, &data, request.as_ref(), now_ns);
        }
    }

    /// Rules hear of an event, and of those that they signal.
    pub fn signal(&mut self, event: &str, data: &Value, now_ns: u64) {
        self.signal_about(event, data, None, now_ns);
    }

    pub(super) fn signal_about(
        &mut self,
        event: &str,
        data: &Value,
        request: Option<&Rc<Request>>,
        now_ns: u64,
    ) {
        let mut events = vec![event.to_string()];
        let (mut at, mut again) = (0, false);
        while at < events.len() && at < CAUSED_MAX {
            let event = events[at].clone();
            at += 1;
            if !self.rules.heeds(&event) {
                continue;
            }
            if self.rules.is_turn_over() {
                // Others are answered first.
                if self.heard.len() < HEARD_MAX {
                    let (id, request) = (request.map(|it| it.id), request.cloned());
                    self.heard.push_back(Heard { event, data: data.clone(), id, request });
                }
                continue;
            }
            let mut evaluated = self.evaluated(&event, data, request, now_ns);
            if request.is_none() && PART_EVENTS.contains(&&*event) {
                self.fail_once(&mut evaluated);
            }
            self.decided(&event, &evaluated, None, now_ns);
            let decisions = evaluated.decisions.iter();
            again |= decisions.clone().any(|(_, _, decision)| decision.retry);
            events.extend(decisions.flat_map(|(_, _, decision)| decision.signal.iter().cloned()));
            self.remarks(&evaluated, now_ns);
        }
        if again {
            self.retry(now_ns);
        }
    }

    /// A rule that fails when it is asked about a part of the plan may be asked twice a second: the same failure is told once.
    fn fail_once(&mut self, evaluated: &mut Evaluated) {
        let Some(wrong) = &evaluated.broken else { return };
        if self.failed.as_ref() == Some(&wrong.message) {
            evaluated.broken = None;
        } else {
            self.failed = Some(wrong.message.clone());
        }
    }

    fn evaluated(
        &mut self,
        event: &str,
        data: &Value,
        request: Option<&Rc<Request>>,
        now_ns: u64,
    ) -> Evaluated {
        let Ok(trial) = self.trial() else { return Evaluated::default() };
        let books = Rc::new(self.books.of_requests());
        let known = self.view(&trial, &books, request, data, now_ns);
        let fits =
            Self::questions(&trial, &books, request.map_or(0, |request| request.id), &Place::default());
        self.rules.decide(event, &known, request.map(|request| &request.owner), Some(fits))
    }

    /// Do what rules have decided about an event. `told`: those who know of it, and nobody else loses anything now.
    fn decided(&mut self, event: &str, evaluated: &Evaluated, told: Option<&BTreeSet<u64>>, now_ns: u64) {
        // A rule that failed is no reason not to do what others have decided.
        let others = Evaluated { decisions: evaluated.decisions.clone(), ..Evaluated::default() };
        let done = match Guide::of(&others, &self.books) {
            Ok(mut guide) => {
                guide.event = Some(event.to_string());
                if let Some(told) = told {
                    guide.revoke.retain(|id| told.contains(id));
                    guide.change.retain(|to| told.contains(&to.id));
                    (guide.edits, guide.grace_ms) = (Vec::new(), 0);
                }
                self.guided(&guide, now_ns)
            }
            Err(refusal) => Err(refusal.wrong),
        };
        if let Err(wrong) = done {
            let text = format!("what rules have decided about {event} cannot be done: {wrong}");
            self.tell(&Principal::System, None, What::RuleFailed, text, None);
        }
    }

    fn guided(&mut self, guide: &Guide, now_ns: u64) -> Result<(), Wrong> {
        let trial = self.trial()?;
        let proposal = guide.proposal(&self.books, &trial)?;
        if proposal.is_empty() {
            return Ok(());
        }
        proposal.tried(&trial, &self.books)?;
        if guide.grace_ms == 0 || !proposal.takes() {
            return self.carry_out(&proposal, guide, now_ns);
        }
        if !guide.edits.is_empty() {
            let edits = Proposal { edits: guide.edits.clone(), ..Proposal::default() };
            self.carry_out(&edits, guide, now_ns)?;
        }
        self.announce(&proposal, guide, None, now_ns);
        Ok(())
    }

    /// What rules have decided beside the verdict on a request.
    pub(super) fn after_decisions(&mut self, evaluated: &Evaluated, now_ns: u64) {
        self.remarks(evaluated, now_ns);
        let decisions = evaluated.decisions.iter();
        let events: Vec<String> =
            decisions.flat_map(|(_, _, decision)| decision.signal.iter().cloned()).collect();
        events.iter().take(CAUSED_MAX).for_each(|event| self.signal(event, &Value::Null, now_ns));
    }

    /// Timers, remarks and failures of rules.
    fn remarks(&mut self, evaluated: &Evaluated, now_ns: u64) {
        for (name, _, decision) in &evaluated.decisions {
            for Timer { ms, event } in &decision.after {
                if self.later.len() < LATER_MAX {
                    let due_ns = now_ns.saturating_add(ms.saturating_mul(MS));
                    self.later.push(Later { due_ns, event: event.clone() });
                }
            }
            if let Some(text) = &decision.say {
                self.tell(&Principal::System, None, What::Said, format!("{name}: {text:.256}"), None);
            }
        }
        if let Some(wrong) = &evaluated.broken {
            self.tell(&Principal::System, None, What::RuleFailed, wrong.message.clone(), None);
        }
    }

    /// Requests whose threads have ended, or whose owners are gone. What is below another one has ended with it.
    fn end_dead(&mut self, now_ns: u64) {
        let dead = self.books.all().filter(|request| !self.is_there(request));
        let dead: Vec<(u64, String)> = dead.map(|request| (request.id, why_dead(request))).collect();
        for (id, why) in dead {
            if self.books.get(&id).is_none() {
                continue;
            }
            // The loader may have taken its task out of the plan already.
            let lost = self.end(id, What::Ended, &why, true, now_ns);
            if lost.is_err() {
                self.is_foreign = true;
            }
        }
    }

    /// Requests for which others were to make room, who have all left by themselves.
    fn not_waited_for(&self) -> Vec<u64> {
        let endings = self.books.all().filter_map(|request| request.ending.as_ref());
        let told: BTreeSet<u64> = endings.filter_map(|taken| taken.for_id).collect();
        let waits = |request: &&Request| {
            request.reason.as_ref().is_some_and(|why| why.rule == OTHERS_ARE_TOLD)
                && !told.contains(&request.id)
        };
        self.books.all().filter(waits).map(|request| request.id).collect()
    }

    /// Those who were told that they lose something, and whose time is over.
    fn end_due(&mut self, now_ns: u64) {
        if self.books.all().all(|request| request.ending.is_none() && request.reason.is_none()) {
            return;
        }
        let due = |request: &&Request| request.ending.as_ref().is_some_and(|taken| taken.due_ns <= now_ns);
        let due: Vec<&Request> = self.books.all().filter(due).collect();
        let endings = due.iter().filter_map(|request| request.ending.as_ref());
        let mut for_ids: BTreeSet<u64> = endings.clone().filter_map(|taken| taken.for_id).collect();
        for_ids.extend(self.not_waited_for());
        let events: BTreeSet<String> =
            endings.filter(|taken| taken.for_id.is_none()).filter_map(|taken| taken.event.clone()).collect();
        let told: BTreeSet<u64> = due.iter().map(|request| request.id).collect();
        // What there is no time for is due when others have been answered.
        for id in for_ids {
            if self.rules.is_turn_over() {
                return;
            }
            self.due(id, now_ns);
        }
        for event in events {
            if self.rules.is_turn_over() {
                return;
            }
            let evaluated = self.evaluated(&event, &Value::Null, None, now_ns);
            self.decided(&event, &evaluated, Some(&told), now_ns);
            self.retry(now_ns);
        }
        // Whatever rules say now, nobody is told twice that the same thing ends.
        for id in told {
            let is_due =
                |request: &Request| request.ending.as_ref().is_some_and(|taken| taken.due_ns <= now_ns);
            if self.books.get(&id).is_some_and(is_due) {
                self.with(id, |request| request.ending = None);
                self.tell_owner(id, What::Stays, "there is no need any more".into(), None);
            }
        }
    }
}

/// Why a request is over by itself.
pub fn why_dead(request: &Request) -> String {
    match request.target {
        Target::Thread { .. } => "its thread has ended".into(),
        Target::Match(_) | Target::Scheduler => format!("nothing of {} is left", request.owner),
    }
}
