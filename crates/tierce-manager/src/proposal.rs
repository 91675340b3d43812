//! Changes of books and plan that belong together: all of them happen in one transition, or none.

use crate::books::{Books, Held, Request, Target};
use crate::trial::{Promised, Trial};
use crate::wrong::Wrong;
use tierce_plan::{show_time, Below, Edit, Keys, JOB_DEADLINE, NO_DEADLINE};

/// What is to change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proposal {
    /// Requests that lose what they have.
    pub ends: Vec<u64>,
    /// Requests that get another of their modes, by an edge with these parameters.
    pub modes: Vec<(u64, usize, Keys)>,
    /// What rules, or the owner of a scheduler, want to be done to the plan.
    pub edits: Vec<Edit>,
    /// Requests that get something.
    pub grants: Vec<(u64, Held)>,
}

impl Proposal {
    /// Nothing is to change.
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }

    /// Somebody would have less than before.
    pub fn takes(&self) -> bool {
        !self.ends.is_empty() || !self.modes.is_empty()
    }

    /// The operations, those that make room first. Of what ends, that comes first which is below the other.
    pub fn operations(&self, books: &Books) -> Vec<Edit> {
        let mut ends = self.ends.clone();
        ends.sort_unstable();
        ends.dedup();
        ends.sort_by_key(|id| std::cmp::Reverse(books.depth(*id)));
        let held = |id: &u64| books.get(id).filter(|request| request.held.is_some());
        let gone = ends
            .iter()
            .filter_map(held)
            .map(|request| Edit::Destroy { name: request.name(), below: Below::All });
        let modes = self.modes.iter().filter(|(id, ..)| !ends.contains(id)).filter_map(|(id, mode, keys)| {
            let request = held(id)?;
            let is = request.held.as_ref()?;
            let deadline_ns = request.modes.get(*mode).and_then(|mode| mode.deadline_ns);
            let mut keys = keys.clone();
            if deadline_ns != is.deadline_ns {
                keys.push(of_jobs(deadline_ns));
            }
            Some(Edit::Set { name: request.name(), under: Some(is.under.clone()), keys, who: Vec::new() })
        });
        let grants = self.grants.iter().flat_map(|(id, held)| {
            let request = books.get(id).map(|request| created(request, held));
            request.into_iter()
        });
        gone.chain(modes).chain(self.edits.iter().cloned()).chain(grants).collect()
    }

    /// What everybody is to have afterwards.
    pub fn promised<'b>(&'b self, books: &'b Books) -> impl Iterator<Item = Promised<'b>> {
        let stays = books.granted().filter(|(request, _)| !self.ends.contains(&request.id));
        let stays = stays.map(move |(request, held)| {
            let mode =
                self.modes.iter().find(|(id, ..)| *id == request.id).map_or(held.mode, |(_, mode, _)| *mode);
            (request, mode)
        });
        let new = self.grants.iter().filter_map(|(id, held)| Some((books.get(id)?, held.mode)));
        let promised = |(request, mode): (&'b Request, usize)| {
            Some(Promised { id: request.id, guarantee: &request.modes.get(mode)?.guarantee })
        };
        stays.chain(new).filter_map(promised)
    }

    /// Whether all that everybody is to have would hold.
    pub fn tried(&self, trial: &Trial, books: &Books) -> Result<Trial, Wrong> {
        trial.after(self.operations(books).into(), self.promised(books))
    }
}

/// What a plan says of the deadline of jobs.
fn of_jobs(deadline_ns: Option<u64>) -> (String, String) {
    (JOB_DEADLINE.into(), deadline_ns.map_or(NO_DEADLINE.into(), show_time))
}

/// The operation that grants a request.
pub fn created(request: &Request, held: &Held) -> Edit {
    let mut keys = held.keys.clone();
    keys.extend(held.soft.iter().map(|node| ("soft".to_string(), node.clone())));
    keys.extend(held.cpu.iter().map(|cpu| ("cpu".to_string(), cpu.to_string())));
    keys.extend(held.deadline_ns.map(|ns| of_jobs(Some(ns))));
    let (policy, who) = match &request.target {
        Target::Thread { tid, .. } => (None, vec![vec![("tid".to_string(), tid.to_string())]]),
        Target::Match(who) => (Some(request.policy.clone().unwrap_or_else(|| "fair".into())), who.clone()),
        Target::Scheduler => (request.policy.clone(), Vec::new()),
    };
    let cpus = Some(Vec::new());
    Edit::Create { name: request.name(), policy, under: held.under.clone(), keys, who, cpus }
}
