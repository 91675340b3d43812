//! Who gives a guarantee, with what, and who has to go for it.

use super::{Manager, Threads};
use crate::ask::{Shown, What};
use crate::books::{Books, Held, Request, PREFIX};
use crate::candidates::{candidates, keys, Candidate};
use crate::in_force::InForce;
use crate::mode::Mode;
use crate::principal::Principal;
use crate::proposal::Proposal;
use crate::rules::{cpu_time, Decision, Evaluated, Fits, To};
use crate::trial::{Promised, Trial};
use crate::wrong::Wrong;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use tierce_plan::{Edit, Plan};

/// Plans that are tried for one request.
const TRIALS: u32 = 96;
/// Of these, to find the nearest guarantee that would be granted.
const NEAREST: u32 = 14;

/// Why a request is refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The rule and the reason.
    pub wrong: Wrong,
    /// What would be granted.
    pub nearest: Option<Mode>,
}

impl Refusal {
    pub fn of(wrong: Wrong) -> Self {
        Self { wrong, nearest: None }
    }
}

/// Where a new request fits, if nobody else loses anything, as a rule was told that asked: in which plan, and with what. No earlier
/// one of its modes fits there, nor an earlier place.
pub type Place = Rc<RefCell<Option<(Rc<Plan>, Held)>>>;

/// What all rules together want.
#[derive(Clone, Debug, Default)]
pub struct Guide {
    pub revoke: Vec<u64>,
    pub change: Vec<To>,
    pub reason: Option<String>,
    pub grace_ms: u64,
    pub defer: Option<String>,
    under: Option<String>,
    cpus: Vec<u32>,
    soft: Option<String>,
    modes: Option<Vec<usize>>,
    most_ppm: Option<u64>,
    pub edits: Vec<Edit>,
    /// The event that rules have decided about, if it is not a request.
    pub event: Option<String>,
}

impl Guide {
    /// The decisions of rules put together. A refusal is one of theirs, or that a rule failed, or decided what is not for it to decide.
    pub fn of(evaluated: &Evaluated, books: &Books) -> Result<Self, Refusal> {
        let mut guide = Self::default();
        for (name, owner, decision) in &evaluated.decisions {
            if let Some(wrong) = decision.refusal(name) {
                return Err(Refusal { wrong, nearest: decision.nearest.clone() });
            }
            if let Some(why) = oversteps(owner, decision, books) {
                let message = format!("the rule `{name}` has decided nothing: {why}");
                return Err(Refusal::of(Wrong::new("rule_failed", message)));
            }
            guide.add(decision);
        }
        match &evaluated.broken {
            Some(wrong) => Err(Refusal::of(wrong.clone())),
            None => Ok(guide),
        }
    }

    /// Nobody else loses anything, and it need not wait.
    pub fn takes_nothing(&self) -> bool {
        self.revoke.is_empty() && self.change.is_empty() && self.defer.is_none()
    }

    fn add(&mut self, decision: &Decision) {
        let new = |id: &&u64| !self.revoke.contains(id);
        let revoke: Vec<u64> = decision.revoke.iter().filter(new).copied().collect();
        self.revoke.extend(revoke);
        self.change.extend(decision.change.iter().cloned());
        self.edits.extend(decision.edits());
        self.grace_ms = self.grace_ms.max(decision.grace_ms);
        // Of rules that choose the same thing the first one counts.
        self.reason = self.reason.take().or_else(|| decision.reason.clone());
        self.defer = self.defer.take().or_else(|| decision.defer.clone());
        self.under = self.under.take().or_else(|| decision.under.clone());
        self.soft = self.soft.take().or_else(|| decision.soft.clone());
        if self.cpus.is_empty() {
            self.cpus.clone_from(&decision.cpus);
        }
        if !decision.modes.is_empty() {
            let has = self.modes.take();
            let both = decision.modes.iter().filter(|at| has.as_ref().is_none_or(|has| has.contains(at)));
            self.modes = Some(both.copied().collect());
        }
        self.most_ppm = self.most_ppm.into_iter().chain(decision.most_ppm).min();
    }

    fn allows(&self, at: usize, mode: &Mode) -> bool {
        self.modes.as_ref().is_none_or(|modes| modes.contains(&at))
            && self.most_ppm.is_none_or(|most| mode.ppm() <= most)
    }

    /// Whatever is found for it, where it would be found without rules.
    fn leaves_the_place(&self) -> bool {
        self.under.is_none() && self.cpus.is_empty() && self.soft.is_none()
    }

    /// Those who are to have less, and what is done to the plan.
    pub fn proposal(&self, books: &Books, trial: &Trial) -> Result<Proposal, Wrong> {
        let held = |id: &u64| books.get(id).is_some_and(|request| request.held.is_some());
        let mut ends: Vec<u64> =
            self.revoke.iter().filter(|id| held(id)).flat_map(|id| books.with_inner(*id)).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut proposal = Proposal { ends, edits: self.edits.clone(), ..Proposal::default() };
        for To { id, mode } in &self.change {
            let request = books.get(id).filter(|_| !proposal.ends.contains(id));
            let Some((request, held)) = request.and_then(|it| Some((it, it.held.as_ref()?))) else {
                continue;
            };
            let wanted = request.modes.get(*mode).ok_or_else(|| {
                Wrong::new("mode_must_exist", format!("request {id} has {} modes", request.modes.len()))
            })?;
            proposal.modes.push((*id, *mode, keys_of(request, trial, &held.under, wanted)?));
        }
        Ok(proposal)
    }
}

/// Why a decision is not for this rule to make: the rules of a user decide about his own requests, and no rule about parts of the
/// plan that no rule has made.
fn oversteps(owner: &Principal, decision: &Decision, books: &Books) -> Option<String> {
    let edits = decision.edits();
    if *owner != Principal::System {
        let ids = decision.revoke.iter().chain(decision.change.iter().map(|to| &to.id));
        let mut others = ids.filter(|id| books.get(id).is_some_and(|request| request.owner != *owner));
        if let Some(id) = others.next() {
            return Some(format!("request {id} is not of {owner}"));
        }
        let elsewhere = [&decision.under, &decision.soft].into_iter().flatten();
        let mut elsewhere = elsewhere.filter(|node| books.owner_of(node) != *owner);
        if !edits.is_empty() || elsewhere.next().is_some() {
            return Some(format!("the plan is not for {owner} to change"));
        }
    }
    edits.iter().find_map(|edit| match edit {
        Edit::Create { name, .. } => (!is_name(name) || name.starts_with(PREFIX))
            .then(|| format!("{name:?} is no name for a node of a rule")),
        Edit::Destroy { name, .. } | Edit::Set { name, .. } => {
            (!books.parts.contains_key(name)).then(|| format!("no rule has made `{name}`"))
        }
        _ => None,
    })
}

/// What a name is.
pub const NAME: &str = "letters, digits, `_` and `-`, and short";

/// A name as plans have them.
pub fn is_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.chars().all(|one| one.is_ascii_alphanumeric() || "_-".contains(one))
}

/// Parameters of the edge by which a request, which is below that node already, would have that mode.
fn keys_of(request: &Request, trial: &Trial, node: &str, mode: &Mode) -> Result<tierce_plan::Keys, Wrong> {
    let at = trial.plan().nodes.iter().position(|it| it.base == node);
    let at =
        at.ok_or_else(|| Wrong::new("name_must_exist", format!("the plan in force has no node `{node}`")))?;
    keys(trial, at, &mode.guarantee, Some(&request.name()))
        .map_err(|why| Wrong::new("scheduler_must_provide_it", why))
}

impl<P: InForce, T: Threads> Manager<P, T> {
    /// How the request can have one of its modes.
    pub(super) fn acquired(
        &self,
        request: &Request,
        guide: &Guide,
        (trial, place): (&Trial, &Place),
    ) -> Result<Proposal, Wrong> {
        let base = guide.proposal(&self.books, trial)?;
        let is_allowed = |at: usize| request.modes.get(at).is_some_and(|mode| guide.allows(at, mode));
        let known = place.take().filter(|(plan, held)| {
            Rc::ptr_eq(plan, trial.plan())
                && base.is_empty()
                && guide.leaves_the_place()
                && is_allowed(held.mode)
        });
        if let Some((_, held)) = known {
            return Ok(Proposal { grants: vec![(request.id, held)], ..base });
        }
        let above = self.with_made(guide, &base, trial)?;
        let left = Cell::new(TRIALS);
        let mut refused: Option<Wrong> = None;
        for (at, mode) in request.modes.iter().enumerate().filter(|(at, mode)| guide.allows(*at, mode)) {
            let found = match self.candidates(request, guide, mode, &above) {
                Ok(found) => found,
                Err(wrong) => {
                    refused.get_or_insert(wrong);
                    continue;
                }
            };
            for held in found.iter().flat_map(|candidate| places(candidate, guide, (at, mode))) {
                let proposal = Proposal { grants: vec![(request.id, held)], ..base.clone() };
                match self.tried(&proposal, trial, &left) {
                    Ok(()) => return Ok(self.keeping(proposal, trial, &left)),
                    Err(wrong) => _ = refused.get_or_insert(wrong),
                }
            }
        }
        let none = || Wrong::new("modes_must_be_allowed", "the rules allow none of its modes");
        Err(refused.unwrap_or_else(none))
    }

    /// With the nodes that rules make for it.
    fn with_made(&self, guide: &Guide, base: &Proposal, trial: &Trial) -> Result<Trial, Wrong> {
        match guide.edits.is_empty() {
            true => Ok(trial.clone()),
            false => base.tried(trial, &self.books),
        }
    }

    fn candidates(
        &self,
        request: &Request,
        guide: &Guide,
        mode: &Mode,
        trial: &Trial,
    ) -> Result<Vec<Candidate>, Wrong> {
        let under = request.under.as_deref().or(guide.under.as_deref());
        let owner_of = |node: &str| self.books.owner_of(node);
        let found = candidates(trial, &mode.guarantee, &request.owner, under, owner_of);
        found.map_err(|why| Wrong::new("scheduler_must_provide_it", why))
    }

    fn tried(&self, proposal: &Proposal, trial: &Trial, left: &Cell<u32>) -> Result<(), Wrong> {
        let more = left.get().checked_sub(1);
        let more =
            more.ok_or_else(|| Wrong::new("too_many_places", format!("{TRIALS} places were tried")))?;
        left.set(more);
        proposal.tried(trial, &self.books).map(|_| ())
    }

    /// Those who would end may keep a lesser mode, if it fits all the same: the most valuable of them first.
    fn keeping(&self, mut proposal: Proposal, trial: &Trial, left: &Cell<u32>) -> Proposal {
        let mut ends: Vec<&Request> = proposal.ends.iter().filter_map(|id| self.books.get(id)).collect();
        ends.sort_by_key(|request| (-request.value(), request.id));
        // What is below a scheduler that ends cannot stay.
        ends.retain(|request| {
            let under = request.held.as_ref().and_then(|held| self.books.request_of(&held.under));
            under.is_none_or(|outer| !proposal.ends.contains(&outer.id))
        });
        for request in ends {
            let (Some(held), Some(has)) = (&request.held, request.mode()) else { continue };
            let lesser = request.modes.iter().enumerate().filter(|(_, mode)| mode.ppm() < has.ppm());
            for (at, mode) in lesser {
                let Ok(keys) = keys_of(request, trial, &held.under, mode) else { continue };
                let mut kept = proposal.clone();
                kept.ends.retain(|id| *id != request.id);
                kept.modes.push((request.id, at, keys));
                if self.tried(&kept, trial, left).is_ok() {
                    proposal = kept;
                    break;
                }
            }
        }
        proposal
    }

    /// The largest budget in the same period, or share, that would be granted, for the mode that needs least; to a thousandth. The time for
    /// it is bounded, with that of rules: then the largest that was found until then.
    pub(super) fn nearest(&self, request: &Request, guide: &Guide, trial: &Trial) -> Option<Mode> {
        self.rules.counted(|| self.largest(request, guide, trial, cpu_time() + self.rules.left()))
    }

    fn largest(&self, request: &Request, guide: &Guide, trial: &Trial, ends: Duration) -> Option<Mode> {
        let base = guide.proposal(&self.books, trial).ok()?;
        let above = self.with_made(guide, &base, trial).ok()?;
        let modes = request.modes.iter().enumerate().filter(|(_, mode)| mode.parts().is_some());
        let (at, mode) = modes.min_by_key(|(_, mode)| mode.ppm())?;
        let mut least = request.clone();
        let (mut good, mut bad) = (0, mode.parts()?);
        let mut found = None;
        for _ in 0..NEAREST {
            let middle = good + (bad - good) / 2;
            if middle == good || cpu_time() >= ends {
                break;
            }
            let smaller = mode.part(middle)?;
            least.modes[at] = smaller.clone();
            let places = self.candidates(&least, guide, &smaller, &above).unwrap_or_default();
            let mut places = places.iter().flat_map(|candidate| places_of_one(candidate, guide, (at, mode)));
            let fits = places.any(|held| {
                let mut operations = base.operations(&self.books);
                operations.push(crate::proposal::created(&least, &held));
                let new = Promised { id: least.id, guarantee: &smaller.guarantee };
                let promised = base.promised(&self.books).chain([new]);
                trial.after(operations.into(), promised).is_ok()
            });
            match fits {
                true => (good, found) = (middle, Some(smaller)),
                false => bad = middle,
            }
        }
        found.filter(|mode| request.owner == Principal::System || self.limits.allow(mode).is_ok())
    }

    /// Another mode where the request is.
    pub(super) fn in_place(&mut self, id: u64, guide: &Guide, trial: &Trial) -> Result<Proposal, Wrong> {
        let missing = || Wrong::new("request_must_exist", format!("no request {id}"));
        let request = self.books.get(&id).ok_or_else(missing)?;
        let held = request.held.as_ref().ok_or_else(missing)?;
        let base = guide.proposal(&self.books, trial)?;
        let mut refused = None;
        for (at, mode) in request.modes.iter().enumerate().filter(|(at, mode)| guide.allows(*at, mode)) {
            let tried = keys_of(request, trial, &held.under, mode).and_then(|keys| {
                let mut proposal = base.clone();
                proposal.modes.push((id, at, keys));
                proposal.tried(trial, &self.books).map(|_| proposal)
            });
            match tried {
                Ok(proposal) => return Ok(proposal),
                Err(wrong) => _ = refused.get_or_insert(wrong),
            }
        }
        Err(refused
            .unwrap_or_else(|| Wrong::new("modes_must_be_allowed", "the rules allow none of its modes")))
    }

    /// Change plan and books, and tell everybody whom it concerns.
    pub(super) fn carry_out(&mut self, proposal: &Proposal, guide: &Guide, now_ns: u64) -> Result<(), Wrong> {
        let before: Vec<(u64, Option<Mode>)> = proposal
            .modes
            .iter()
            .map(|(id, ..)| (*id, self.books.requests.get(id).and_then(|it| it.mode().cloned())))
            .collect();
        self.commit(proposal)?;
        self.keep_parts(&proposal.edits);
        let reason = guide.reason.clone().unwrap_or_else(|| "a rule has decided so".into());
        for (id, was) in before {
            let now = self.books.get(&id).and_then(Request::mode).map(|mode| mode.to_string());
            let was = was.map(|mode| mode.to_string()).unwrap_or_default();
            let text = format!("{reason}: {was} before, {} now", now.unwrap_or_default());
            self.with(id, |request| request.ending = None);
            self.tell_owner(id, What::Changed, text, None);
        }
        self.revoked(&proposal.ends, &reason, now_ns);
        let lost: Vec<u64> = proposal
            .grants
            .iter()
            .filter(|(id, _)| self.books.get(id).is_some_and(|request| !self.is_there(request)))
            .map(|(id, _)| *id)
            .collect();
        for id in lost {
            // Its number may be another thread's by now.
            self.end(id, What::Ended, "its thread has ended", true, now_ns)?;
        }
        Ok(())
    }

    /// Requests have lost what they had. They go on waiting, or are over.
    pub(super) fn revoked(&mut self, ids: &[u64], reason: &str, now_ns: u64) {
        let mut over = Vec::new();
        for &id in ids {
            let waits = self.books.get(&id).is_some_and(|request| request.waits);
            let left = if waits { "it waits for another chance" } else { "it is over" };
            let text = format!("{reason}; its threads are where they match without it, and {left}");
            self.tell_owner(id, What::Revoked, text, None);
            let why = Wrong::new("revoked", reason);
            self.with(id, |request| (request.reason, request.ending) = (Some(why), None));
            over.extend((!waits).then_some(id));
        }
        self.forget(&over, now_ns);
    }

    /// What rules have made is remembered, to be made again with another plan.
    pub(super) fn keep_parts(&mut self, edits: &[Edit]) {
        for edit in edits {
            match edit {
                Edit::Create { name, .. } => _ = self.books.parts.insert(name.clone(), edit.clone()),
                Edit::Destroy { name, .. } => _ = self.books.parts.remove(name),
                Edit::Set { name, keys: new, .. } => {
                    if let Some(Edit::Create { keys, .. }) = self.books.parts.get_mut(name) {
                        keys.retain(|(key, _)| new.iter().all(|(other, _)| other != key));
                        keys.extend(new.iter().cloned());
                    }
                }
                _ => {}
            }
            self.revision += 1;
        }
    }

    /// What changes for others, in words.
    pub(super) fn described(&self, proposal: &Proposal) -> Vec<String> {
        let ends = proposal.ends.iter().map(|id| format!("request {id} ends"));
        let modes = proposal.modes.iter().map(|(id, mode, _)| {
            let mode = self.books.get(id).and_then(|request| request.modes.get(*mode));
            format!("request {id} has {}", mode.map(|mode| mode.to_string()).unwrap_or_default())
        });
        let edits = proposal.edits.iter().filter_map(|edit| match edit {
            Edit::Create { name, under, .. } => Some(format!("node {name} below {under}")),
            Edit::Destroy { name, .. } => Some(format!("node {name} goes")),
            Edit::Set { name, .. } => Some(format!("node {name} has other parameters")),
            _ => None,
        });
        ends.chain(modes).chain(edits).collect()
    }

    /// The request as it would be shown.
    pub(super) fn as_granted(&self, id: u64, proposal: &Proposal) -> Option<Shown> {
        let mut request = self.books.get(&id)?.clone();
        request.held =
            proposal.grants.iter().find(|(granted, _)| *granted == id).map(|(_, held)| held.clone());
        Some(request.shown())
    }

    /// What rules may ask of admission: whether a request would be granted without some others. `place`: where the new one fits, for
    /// who looks for that next.
    pub(super) fn questions(trial: &Trial, books: &Rc<Books>, new: u64, place: &Place) -> Fits {
        let (trial, books, place) = (trial.clone(), books.clone(), place.clone());
        Rc::new(move |id, without, cpu| {
            let id = if id == 0 { new } else { id };
            let Some(request) = books.get(&id) else { return false };
            let mut ends: Vec<u64> = without.to_vec();
            ends.extend(request.held.is_some().then_some(id));
            let owner_of = |node: &str| books.owner_of(node);
            let is_new = id == new && ends.is_empty() && cpu.is_none();
            let mut tried = 0;
            request.modes.iter().enumerate().any(|(at, mode)| {
                let found =
                    candidates(&trial, &mode.guarantee, &request.owner, request.under.as_deref(), owner_of);
                found.into_iter().flatten().any(|candidate| {
                    let cpu = cpu.filter(|_| candidate.per_cpu);
                    let deadline_ns = mode.deadline_ns;
                    let Candidate { under, keys, .. } = candidate;
                    let held = Held { mode: at, under, cpu, soft: None, keys, deadline_ns };
                    let mut proposal =
                        Proposal { ends: ends.clone(), grants: vec![(id, held)], ..Proposal::default() };
                    let fits = proposal.tried(&trial, &books).is_ok();
                    tried += 1;
                    if fits && is_new && tried <= TRIALS {
                        let held = proposal.grants.pop().map(|(_, held)| (trial.plan().clone(), held));
                        place.replace(held);
                    }
                    fits
                })
            })
        })
    }
}

/// Where below a candidate it can be.
fn places<'c>(
    candidate: &'c Candidate,
    guide: &'c Guide,
    (at, mode): (usize, &Mode),
) -> impl Iterator<Item = Held> + 'c {
    let deadline_ns = mode.deadline_ns;
    let chosen = candidate.per_cpu && !guide.cpus.is_empty();
    let cpus = if chosen { guide.cpus.iter().copied().map(Some).collect() } else { vec![None] };
    cpus.into_iter().map(move |cpu| Held {
        mode: at,
        under: candidate.under.clone(),
        cpu,
        soft: guide.soft.clone(),
        keys: candidate.keys.clone(),
        deadline_ns,
    })
}

/// The same, on any CPU: what is nearest does not depend on the order in which CPUs are tried.
fn places_of_one<'c>(
    candidate: &'c Candidate,
    guide: &'c Guide,
    mode: (usize, &Mode),
) -> impl Iterator<Item = Held> + 'c {
    places(candidate, guide, mode).take(1).map(|held| Held { cpu: None, ..held })
}
