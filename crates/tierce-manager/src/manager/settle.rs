//! What becomes of a request: rules are asked first, then who can give what is asked for, then admission.

use super::grants::{Guide, Place, Refusal};
use super::{Manager, Threads};
use crate::ask::{Answer, State, What};
use crate::books::{Request, Taken};
use crate::in_force::InForce;
use crate::mode::Mode;
use crate::principal::Principal;
use crate::proposal::Proposal;
use crate::rules::{cpu_time, Evaluated, RETRY, RULE};
use crate::trial::Trial;
use crate::wrong::Wrong;
use serde_json::Value;
use std::rc::Rc;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// Why a request is pending for which others have to make room.
pub const OTHERS_ARE_TOLD: &str = "others_are_told";

/// When a request is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// It is new.
    New,
    /// Others have left: nobody has to go for it.
    Retry,
    /// The others have been told, and their time is over.
    Due,
}

/// What is to be done with it.
enum Verdict {
    Grant(Box<Proposal>, Guide),
    Wait(Wrong),
    Refuse(Refusal),
}

impl<P: InForce, T: Threads> Manager<P, T> {
    /// A request that nobody has looked at. `is_dry`: only look.
    pub(super) fn settle_new(&mut self, id: u64, is_dry: bool, now_ns: u64) -> Answer {
        let (verdict, evaluated) = self.verdict(id, When::New, now_ns);
        let mut answer = Answer::new(State::Refused);
        answer.dry_run = is_dry;
        answer.rules = if is_dry { evaluated.said() } else { Vec::new() };
        match verdict {
            Verdict::Grant(proposal, guide) => {
                answer.changes = self.described(&proposal);
                let is_later = guide.grace_ms > 0 && proposal.takes();
                if is_dry {
                    answer.state = if is_later { State::Pending } else { State::Granted };
                    answer.about = self.as_granted(id, &proposal);
                    return answer;
                }
                let done = if is_later {
                    self.announce(&proposal, &guide, Some(id), now_ns);
                    let words = format!("others have {} ms to make room", guide.grace_ms);
                    self.with(id, |request| request.reason = Some(Wrong::new(OTHERS_ARE_TOLD, words)));
                    Ok(())
                } else {
                    self.carry_out(&proposal, &guide, now_ns)
                };
                match done {
                    Ok(()) => answer = self.answered(id, answer),
                    Err(wrong) => self.refused(id, Refusal::of(wrong), is_dry, &mut answer),
                }
            }
            Verdict::Wait(wrong) => {
                self.with(id, |request| (request.reason, request.waits) = (Some(wrong), true));
                answer = self.answered(id, answer);
            }
            Verdict::Refuse(refusal) => self.refused(id, refusal, is_dry, &mut answer),
        }
        if !is_dry {
            self.after_decisions(&evaluated, now_ns);
        }
        answer
    }

    /// It may wait; else it is refused.
    fn refused(&mut self, id: u64, refusal: Refusal, is_dry: bool, answer: &mut Answer) {
        let waits = self.books.get(&id).is_some_and(|request| request.waits);
        (answer.reason, answer.nearest) = (Some(refusal.wrong.clone()), refusal.nearest);
        if waits {
            answer.state = State::Pending;
            self.with(id, |request| request.reason = Some(refusal.wrong));
        }
        if waits || is_dry {
            answer.about = self.books.get(&id).map(Request::shown);
        }
    }

    fn answered(&self, id: u64, mut answer: Answer) -> Answer {
        if let Some(request) = self.books.get(&id) {
            answer.state = if request.held.is_some() { State::Granted } else { State::Pending };
            answer.reason = request.reason.clone();
            answer.about = Some(request.shown());
        }
        answer
    }

    /// Its guarantee in place of the one that it has.
    pub(super) fn settle_change(&mut self, id: u64, is_less: bool, now_ns: u64) -> Answer {
        let mut answer = Answer::new(State::Refused);
        let evaluated =
            if is_less { Evaluated::default() } else { self.rules_about(id, &Place::default(), now_ns) };
        let guide = match Guide::of(&evaluated, &self.books) {
            Ok(guide) => guide,
            Err(refusal) => {
                (answer.reason, answer.nearest) = (Some(refusal.wrong), refusal.nearest);
                return answer;
            }
        };
        if !guide.revoke.is_empty() || !guide.change.is_empty() {
            let message = "others would have to go for it: only a new request can be worth that";
            answer.reason = Some(Wrong::new("others_would_have_to_go", message));
            return answer;
        }
        let done = self.trial().and_then(|trial| self.in_place(id, &guide, &trial));
        match done.and_then(|proposal| self.commit(&proposal)) {
            Ok(()) => self.answered(id, answer),
            Err(wrong) => {
                answer.reason = Some(wrong);
                answer
            }
        }
    }

    /// Those who wait, the most valuable first. Where that takes long, others are answered before the rest ([`Manager::go_on`]); who
    /// has not been looked at then comes first.
    pub(super) fn retry(&mut self, now_ns: u64) {
        let waiting = |request: &&Request| request.held.is_none() && request.waits;
        let mut list: Vec<(i64, u64)> =
            self.books.all().filter(waiting).map(|request| (-request.value(), request.id)).collect();
        list.sort_unstable();
        let new = list.into_iter().map(|(_, id)| id).filter(|id| !self.retries.contains(id));
        let new: Vec<u64> = new.collect();
        self.retries.extend(new);
        self.some_retries(now_ns);
    }

    fn some_retries(&mut self, now_ns: u64) {
        let ends = cpu_time() + RETRY;
        while !self.rules.is_turn_over() {
            let Some(id) = self.retries.pop_front() else { break };
            self.look_again(id, When::Retry, now_ns);
            if cpu_time() >= ends {
                break;
            }
        }
    }

    /// Whether there is more to do ([`Manager::go_on`]).
    pub fn is_behind(&self) -> bool {
        !(self.retries.is_empty() && self.heard.is_empty())
    }

    /// Do some more of what others were answered before.
    pub fn go_on(&mut self, now_ns: u64) {
        if self.is_behind() {
            self.rules.begin_turn();
            match self.heard.is_empty() {
                true => self.some_retries(now_ns),
                false => self.some_heard(now_ns),
            }
        }
    }

    /// A pending request; whether it has a guarantee now.
    fn look_again(&mut self, id: u64, when: When, now_ns: u64) -> bool {
        if self.books.get(&id).is_none_or(|request| request.held.is_some()) {
            return false;
        }
        let (verdict, evaluated) = self.verdict(id, when, now_ns);
        let done = match verdict {
            Verdict::Grant(proposal, guide) => self.carry_out(&proposal, &guide, now_ns),
            Verdict::Wait(wrong) => Err(wrong),
            Verdict::Refuse(refusal) => Err(refusal.wrong),
        };
        match done {
            Ok(()) => {
                let words = self.books.get(&id).and_then(Request::mode).map(|mode| mode.to_string());
                self.tell_owner(id, What::Granted, format!("it has {}", words.unwrap_or_default()), None);
                self.stays(id, "the request for which it was to go has its guarantee");
                self.after_decisions(&evaluated, now_ns);
                true
            }
            Err(wrong) => {
                self.with(id, |request| request.reason = Some(wrong));
                false
            }
        }
    }

    /// The time of those who were told is over: the request for which they go.
    pub(super) fn due(&mut self, id: u64, now_ns: u64) {
        if self.look_again(id, When::Due, now_ns) {
            return;
        }
        self.stays(id, "the request for which it was to go cannot be granted all the same");
        if self.books.get(&id).is_some_and(|request| !request.waits && request.held.is_none()) {
            let why = self.books.get(&id).and_then(|request| request.reason.clone());
            let text = why.map_or_else(String::new, |why| why.message);
            self.tell_owner(id, What::Ended, format!("it cannot be granted: {text}"), None);
            self.forget(&[id], now_ns);
        }
    }

    /// Somebody has less than before. What was to go for others may stay.
    pub(super) fn after_less(&mut self, id: u64, now_ns: u64) {
        let taken = self.books.get(&id).and_then(|request| request.ending.clone());
        if let Some(other) = taken.and_then(|taken| taken.for_id) {
            self.look_again(other, When::Retry, now_ns);
        }
        self.retry(now_ns);
    }

    /// What is to be taken for this request stays.
    pub(super) fn stays(&mut self, for_id: u64, why: &str) {
        let for_it = |taken: &Taken| taken.for_id == Some(for_id);
        let ending = |request: &&Request| request.ending.as_ref().is_some_and(for_it);
        let stay: Vec<u64> = self.books.all().filter(ending).map(|request| request.id).collect();
        for id in stay {
            self.with(id, |request| request.ending = None);
            self.tell_owner(id, What::Stays, why.to_string(), None);
        }
    }

    fn rules_about(&mut self, id: u64, place: &Place, now_ns: u64) -> Evaluated {
        if !self.rules.heeds("new_request") {
            return Evaluated::default();
        }
        let Some(request) = self.books.requests.get(&id).cloned() else { return Evaluated::default() };
        let Ok(trial) = self.trial() else { return Evaluated::default() };
        let books = Rc::new(self.books.of_requests());
        let known = self.view(&trial, &books, Some(&request), &Value::Null, now_ns);
        let fits = Self::questions(&trial, &books, id, place);
        self.rules.decide("new_request", &known, Some(&request.owner), Some(fits))
    }

    fn verdict(&mut self, id: u64, when: When, now_ns: u64) -> (Verdict, Evaluated) {
        let Some(request) = self.books.requests.get(&id).cloned() else {
            let wrong = Wrong::new("request_must_exist", "it is over");
            return (Verdict::Refuse(Refusal::of(wrong)), Evaluated::default());
        };
        // What somebody owns he divides without asking anybody.
        let above = request.under.as_ref().map(|under| self.books.owner_of(under));
        let is_own = above.is_some_and(|above| above != Principal::System && above == request.owner);
        let place = Place::default();
        let begun = cpu_time();
        let evaluated = if is_own { Evaluated::default() } else { self.rules_about(id, &place, now_ns) };
        let took = cpu_time() - begun;
        let trial = self.trial();
        let mut verdict = match &trial {
            Ok(trial) => self.judged(&request, &evaluated, when, (trial, &place)),
            Err(wrong) => Verdict::Wait(wrong.clone()),
        };
        if let (Verdict::Refuse(refusal), When::New, Ok(trial)) = (&mut verdict, when, &trial) {
            let by_rules = evaluated.broken.is_none() && Guide::of(&evaluated, &self.books).is_err();
            if by_rules && refusal.nearest.is_none() {
                refusal.nearest = self.nearest_by_rules(&request, trial, (took, now_ns));
            }
        }
        (verdict, evaluated)
    }

    /// The largest budget or share that would be granted where the rules, which have refused more, let it be; to a thousandth. The time
    /// for it is bounded, with that of rules: then the largest that was found until then. Rules that may not be done in time are not asked.
    fn nearest_by_rules(
        &mut self,
        request: &Rc<Request>,
        trial: &Trial,
        (mut took, now_ns): (Duration, u64),
    ) -> Option<Mode> {
        let ends = cpu_time() + RULE;
        let most = self.nearest(request, &Guide::default(), trial)?;
        let (mut good, mut bad, mut found) = (0, most.parts()? + 1, None);
        // First all that admission would grant.
        let mut middle = bad - 1;
        while middle > good && cpu_time() < ends && self.rules.left() > took + took / 4 {
            let mode = most.part(middle)?;
            let begun = cpu_time();
            match self.lets_through(request, &mode, trial, now_ns) {
                Some(true) => (good, found) = (middle, Some(mode)),
                Some(false) => bad = middle,
                None => break,
            }
            took = took.max(cpu_time() - begun);
            middle = good + (bad - good) / 2;
        }
        found
    }

    /// Whether the request would be granted with that mode alone, and nobody had to go. Nothing: a rule fails.
    fn lets_through(
        &mut self,
        request: &Rc<Request>,
        mode: &Mode,
        trial: &Trial,
        now_ns: u64,
    ) -> Option<bool> {
        let smaller = Rc::new(Request { modes: vec![mode.clone()], ..(**request).clone() });
        self.books.requests.insert(request.id, smaller.clone());
        let place = Place::default();
        let evaluated = self.rules_about(request.id, &place, now_ns);
        let guide = Guide::of(&evaluated, &self.books);
        let passes = guide.is_ok_and(|guide| {
            let is_acquired = || self.acquired(&smaller, &guide, (trial, &place)).is_ok();
            guide.takes_nothing() && self.rules.counted(is_acquired)
        });
        self.books.requests.insert(request.id, request.clone());
        evaluated.broken.is_none().then_some(passes)
    }

    fn judged(
        &self,
        request: &Request,
        evaluated: &Evaluated,
        when: When,
        within: (&Trial, &Place),
    ) -> Verdict {
        let mut guide = match Guide::of(evaluated, &self.books) {
            Ok(guide) => guide,
            Err(refusal) => return Verdict::Refuse(refusal),
        };
        if let Some(why) = guide.defer.take() {
            return Verdict::Wait(Wrong::new("deferred_by_a_rule", why));
        }
        if when == When::Due {
            let told = |id: &u64| {
                let ending = self.books.get(id).and_then(|other| other.ending.as_ref());
                ending.is_some_and(|taken| taken.for_id == Some(request.id))
            };
            guide.revoke.retain(told);
            guide.change.retain(|to| told(&to.id));
        }
        if when == When::Retry && (!guide.revoke.is_empty() || !guide.change.is_empty()) {
            let wrong = Wrong::new("others_would_have_to_go", "it waits until others leave by themselves");
            return Verdict::Wait(wrong);
        }
        match self.acquired(request, &guide, within) {
            Ok(proposal) => Verdict::Grant(Box::new(proposal), guide),
            Err(wrong) => {
                let nearest = (when == When::New).then(|| self.nearest(request, &guide, within.0));
                Verdict::Refuse(Refusal { wrong, nearest: nearest.flatten() })
            }
        }
    }

    /// Tell those who are to lose something, and remember it.
    pub(super) fn announce(&mut self, proposal: &Proposal, guide: &Guide, for_id: Option<u64>, now_ns: u64) {
        let due_ns = now_ns.saturating_add(guide.grace_ms * MS);
        let reason = guide.reason.clone().unwrap_or_else(|| "a rule has decided so".into());
        let fewer: Vec<(u64, Option<usize>)> = proposal
            .ends
            .iter()
            .map(|id| (*id, None))
            .chain(proposal.modes.iter().map(|(id, mode, _)| (*id, Some(*mode))))
            .collect();
        for (id, mode) in fewer {
            let taken = Taken { due_ns, reason: reason.clone(), for_id, event: guide.event.clone() };
            self.with(id, |request| request.ending = Some(taken));
            let left = match mode {
                Some(mode) => {
                    let mode = self.books.get(&id).and_then(|request| request.modes.get(mode));
                    format!("it will have {}", mode.map(|mode| mode.to_string()).unwrap_or_default())
                }
                None => "it will end; another wish (change) may still be granted".to_string(),
            };
            self.tell_owner(id, What::WillEnd, format!("{reason}: {left}"), Some(guide.grace_ms));
        }
    }
}
