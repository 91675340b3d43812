//! A request comes, changes, and ends.

use super::grants::{is_name, NAME};
use super::{Manager, ThreadInfo, Threads};
use crate::ask::{Answer, Change, State, What, Wish};
use crate::books::{Request, Target};
use crate::in_force::InForce;
use crate::mode::{Mode, MODES_MAX};
use crate::principal::{Asker, Principal, NAMELESS};
use crate::proposal::Proposal;
use crate::rules::keys;
use crate::wrong::Wrong;
use serde_json::{Map, Value};
use std::rc::Rc;
use tierce_plan::{policies, Keys};

/// Longest word for people and rules, bytes.
const LABEL_MAX: usize = 64;
/// Longest text of what else rules may want to know, bytes.
const ABOUT_MAX: usize = 4096;
/// Patterns of which any has to match.
const MATCHES_MAX: usize = 8;
/// Longest pattern, bytes.
const PATTERN_MAX: usize = 256;

impl<P: InForce, T: Threads> Manager<P, T> {
    /// Somebody would like to have a guarantee.
    pub(super) fn request(&mut self, asker: &Asker, wish: Wish, now_ns: u64) -> Result<Answer, Wrong> {
        let is_dry = wish.dry_run;
        let request = self.understood(asker, wish)?;
        if let (Some(uid), false) = (request.owner.user(), is_dry) {
            self.user_enters(self.threads.person(uid), now_ns);
        }
        let id = request.id;
        self.books.requests.insert(id, Rc::new(request));
        if !is_dry {
            self.books.next_id += 1;
            self.revision += 1;
        }
        let answer = self.settle_new(id, is_dry, now_ns);
        let is_over = self.books.get(&id).is_some_and(|request| request.held.is_none());
        if is_dry || is_over && answer.state == State::Refused {
            self.books.requests.remove(&id);
            if self.books.next_id == id + 1 {
                self.books.next_id = id; // nobody has heard of it
            }
            self.revision += 1;
        }
        Ok(answer)
    }

    /// A request as it was asked for, if it may be.
    fn understood(&self, asker: &Asker, wish: Wish) -> Result<Request, Wrong> {
        let owner = wish.owner.clone().unwrap_or_else(|| asker.principal());
        if !asker.acts_for(&owner) {
            let message = format!("user {} does not act for {owner}", asker.uid);
            return Err(Wrong::new("asker_must_act_for_the_owner", message));
        }
        let about = serde_json::to_string(&wish.about).map_or(0, |text| text.len());
        if about > ABOUT_MAX {
            return Err(Wrong::new("about_must_be_short", format!("{about} bytes, bound {ABOUT_MAX}")));
        }
        if let Some(label) = &wish.label {
            if label.len() > LABEL_MAX || label.chars().any(char::is_control) {
                return Err(Wrong::new(
                    "label_must_be_a_word",
                    format!("{label:?}, bound {LABEL_MAX} bytes"),
                ));
            }
        }
        if let Some(under) = wish.under.as_ref().filter(|under| !is_name(under)) {
            return Err(Wrong::new("name_must_be_plain", format!("under {under:.64?}: {NAME}")));
        }
        let has_threads = wish.thread.is_some() || !wish.matches.is_empty();
        if let Some(policy) = &wish.policy {
            if policies::by_name(policy).is_none() {
                let all = policies::names(policies::all()).join(", ");
                return Err(Wrong::new(
                    "policy_must_exist",
                    format!("no policy {policy:?}; there are {all}"),
                ));
            }
        }
        let target = match (wish.thread, &wish.matches[..]) {
            (Some(tid), []) if wish.policy.is_none() => self.thread(asker, tid)?,
            (None, [_, ..]) => Target::Match(patterns(asker, &wish.matches)?),
            (None, []) if wish.policy.is_some() => Target::Scheduler,
            _ => {
                let message =
                    "`thread`, or `match` (with a `policy`, or fair), or only the `policy` of a scheduler";
                return Err(Wrong::new("target_must_be_clear", message));
            }
        };
        debug_assert!(has_threads != (target == Target::Scheduler));
        let by = (!asker.is_system() && owner != asker.principal()).then_some(asker.uid);
        self.room_for(&owner, owner.user().or(by))?;
        let modes = self.modes(asker, &target, wish.modes)?;
        Ok(Request {
            id: self.books.next_id,
            owner,
            by,
            label: wish.label,
            about: wish.about,
            target,
            policy: wish.policy,
            modes,
            under: wish.under,
            waits: wish.wait,
            held: None,
            reason: None,
            ending: None,
            divided: Vec::new(),
        })
    }

    /// A thread that the asker may speak for.
    pub(super) fn thread_of(&self, asker: &Asker, tid: u32) -> Result<ThreadInfo, Wrong> {
        let thread = self.threads.look(tid);
        let gone = || Wrong::new("thread_must_be_there", format!("there is no thread {tid}"));
        let thread = thread.ok_or_else(gone)?;
        if !asker.is_system() && thread.uid != Some(asker.uid) {
            let message = format!("thread {tid} is not, in all its identities, of user {}", asker.uid);
            return Err(Wrong::new("thread_must_be_the_askers", message));
        }
        Ok(thread)
    }

    /// A thread that the asker may speak for, and that has no request.
    fn thread(&self, asker: &Asker, tid: u32) -> Result<Target, Wrong> {
        let thread = self.thread_of(asker, tid)?;
        let has =
            |request: &&Request| matches!(request.target, Target::Thread { tid: its, .. } if its == tid);
        if let Some(request) = self.books.all().find(has) {
            let message = format!("thread {tid} has request {}", request.id);
            return Err(Wrong::new("thread_must_have_no_request", message));
        }
        Ok(Target::Thread { tid, began: thread.began })
    }

    /// So many requests each principal has, and so many each person, under whatever names.
    fn room_for(&self, owner: &Principal, uid: Option<u32>) -> Result<(), Wrong> {
        let theirs = self.books.all().filter(|request| request.owner == *owner).count();
        let each = self.limits.requests_each;
        if *owner != Principal::System && theirs >= each {
            let message = format!("{owner} has {theirs} requests, bound {each}");
            return Err(Wrong::new("too_many_requests_of_one", message));
        }
        if let Some(uid) = uid {
            let person = self.threads.person(uid);
            let is_theirs = |request: &&Request| self.person_of(request) == Some(person);
            let theirs = self.books.all().filter(is_theirs).count();
            if theirs >= each {
                let who = match person {
                    NAMELESS => "all users without a name".to_string(),
                    person => format!("user {person}"),
                };
                let message = format!("user {uid} counts for {who}: {theirs} requests, bound {each}");
                return Err(Wrong::new("too_many_requests_of_one", message));
            }
        }
        if self.books.requests.len() >= self.limits.requests {
            let message =
                format!("there are {} requests, bound {}", self.books.requests.len(), self.limits.requests);
            return Err(Wrong::new("too_many_requests", message));
        }
        Ok(())
    }

    /// The request of that number, if the asker may end it.
    pub(super) fn of_asker(&self, asker: &Asker, id: u64) -> Result<&Request, Wrong> {
        let theirs = self.books.get(&id).filter(|request| asker.acts_for(&request.owner));
        // Who may not see it is told no more than that.
        theirs.ok_or_else(|| Wrong::new("request_must_exist", format!("no request {id} of yours")))
    }

    /// A request is over, and so is what is below what it has.
    pub(super) fn cancel(&mut self, asker: &Asker, id: u64, now_ns: u64) -> Result<Answer, Wrong> {
        let shown = self.of_asker(asker, id)?.shown();
        let by = if asker.acts_for(&shown.owner) && asker.principal() == shown.owner {
            "its owner"
        } else {
            "the system"
        };
        self.end(
            id,
            What::Ended,
            &format!("it was ended by {by}"),
            asker.principal() != shown.owner,
            now_ns,
        )?;
        Ok(Answer { about: Some(shown), ..Answer::new(State::Ended) })
    }

    /// End a request for good, with all below it. `tell`: its owner does not know.
    pub(super) fn end(
        &mut self,
        id: u64,
        what: What,
        why: &str,
        tell: bool,
        now_ns: u64,
    ) -> Result<(), Wrong> {
        let all = self.books.with_inner(id);
        self.commit(&Proposal { ends: all.clone(), ..Proposal::default() })?;
        for inner in all.iter().filter(|inner| **inner != id) {
            self.tell_owner(*inner, What::Ended, format!("what it was part of has ended: {why}"), None);
        }
        if tell {
            self.tell_owner(id, what, why.to_string(), None);
        }
        self.forget(&all, now_ns);
        self.retry(now_ns);
        Ok(())
    }

    /// Requests without a guarantee leave the books, all of them before rules hear of any.
    pub(super) fn forget(&mut self, ids: &[u64], now_ns: u64) {
        let gone: Vec<Rc<Request>> = ids.iter().filter_map(|id| self.books.requests.remove(id)).collect();
        self.revision += 1;
        for request in gone {
            self.stays(request.id, "the request for which it was to go is over");
            self.signal_about("request_ending", &Value::Null, Some(&request), now_ns);
        }
    }

    /// Other modes for a request: less in every respect is always allowed, and whatever else rules and admission allow.
    pub(super) fn change(&mut self, asker: &Asker, change: Change, now_ns: u64) -> Result<Answer, Wrong> {
        let before = self.of_asker(asker, change.id)?.clone();
        let id = before.id;
        let modes = self.modes(asker, &before.target, change.modes)?;
        let is_less = before.mode().is_some_and(|has| modes.iter().all(|mode| mode.is_no_more_than(has)));
        self.with(id, |request| request.modes = modes);
        let answer = match before.held {
            Some(_) => self.settle_change(id, is_less, now_ns),
            None => self.settle_new(id, false, now_ns),
        };
        if answer.state == State::Refused {
            match before.held {
                Some(_) => self.with(id, |request| *request = Request::clone(&before)),
                None => self.forget(&[id], now_ns),
            }
        } else if is_less {
            self.after_less(id, now_ns);
        }
        Ok(answer)
    }

    /// The most valuable first. None so short that the loader could not keep to it, unless the system asks for it.
    fn modes(&self, asker: &Asker, target: &Target, mut modes: Vec<Mode>) -> Result<Vec<Mode>, Wrong> {
        if modes.is_empty() || modes.len() > MODES_MAX {
            let message = format!("{} modes, bound 1 to {MODES_MAX}", modes.len());
            return Err(Wrong::new("modes_must_be_given", message));
        }
        if !asker.is_system() {
            modes.iter().try_for_each(|mode| self.limits.allow(mode))?;
        }
        let with_deadline = modes.iter().find(|mode| mode.deadline_ns.is_some());
        if let (Some(mode), Target::Scheduler) = (with_deadline, target) {
            let message = format!("{mode}: a scheduler has no jobs; the threads below it may have deadlines");
            return Err(Wrong::new("deadline_needs_threads", message));
        }
        modes.sort_by_key(|mode| std::cmp::Reverse(mode.value));
        Ok(modes)
    }

    pub(super) fn with(&mut self, id: u64, change: impl FnOnce(&mut Request)) {
        if let Some(request) = self.books.request_mut(id) {
            change(request);
            self.revision += 1;
        }
    }
}

/// So many patterns one may have.
pub(super) fn are_few(matches: usize) -> Result<(), Wrong> {
    match matches > MATCHES_MAX {
        true => Err(Wrong::new("too_many_matches", format!("{matches}, bound {MATCHES_MAX}"))),
        false => Ok(()),
    }
}

/// A pattern is not too long.
pub(super) fn is_match(keys: &Keys) -> Result<(), Wrong> {
    if keys.is_empty() || keys.len() > MATCHES_MAX {
        let message = format!("{} keys, bound 1 to {MATCHES_MAX}", keys.len());
        return Err(Wrong::new("match_must_be_given", message));
    }
    match keys.iter().find(|(key, text)| key.len().max(text.len()) > PATTERN_MAX) {
        Some((key, _)) => {
            Err(Wrong::new("pattern_must_be_short", format!("{key:.32?}: bound {PATTERN_MAX} bytes")))
        }
        None => Ok(()),
    }
}

/// As a plan's `match` has them.
fn patterns(asker: &Asker, matches: &[Map<String, Value>]) -> Result<Vec<Keys>, Wrong> {
    are_few(matches.len())?;
    let one = |map: &Map<String, Value>| {
        let mut keys = keys(map);
        is_match(&keys)?;
        of_asker(asker, &mut keys)?;
        Ok(keys)
    };
    matches.iter().map(one).collect()
}

/// What is not asked for by the system fits no threads of others, and nobody has files read for it: the loader reads them for all, one
/// after the other.
pub(super) fn of_asker(asker: &Asker, keys: &mut Keys) -> Result<(), Wrong> {
    if asker.is_system() {
        return Ok(());
    }
    let own = asker.uid.to_string();
    if keys.iter().any(|(key, uid)| key == "uid" && *uid != own) {
        let message = format!("user {own} asks for threads of another user");
        return Err(Wrong::new("thread_must_be_the_askers", message));
    }
    if let Some((_, sum)) = keys.iter().find(|(key, _)| key == "checksum") {
        let message = format!("checksum {sum:.32?}: only matches of the system have one");
        return Err(Wrong::new("checksum_is_for_the_system", message));
    }
    keys.retain(|(key, _)| key != "uid");
    keys.push(("uid".into(), own));
    Ok(())
}
