//! A scheduler that was granted belongs to its owner, who divides it without asking anybody. He never exceeds it: admission sees to that. He
//! never sees or touches what is another's: names are those below it, and the plan has them with its own name in front.

use super::grants::{is_name, NAME};
use super::request::{are_few, is_match, of_asker};
use super::{Manager, Threads};
use crate::ask::{Answer, Divide, State};
use crate::books::{Books, Request, Target};
use crate::in_force::InForce;
use crate::principal::{Asker, Principal};
use crate::proposal::Proposal;
use crate::rules::{cpu_time, RULE};
use crate::wrong::Wrong;
use std::collections::BTreeSet;
use tierce_plan::policies::{self, position};
use tierce_plan::{Child, Edit, Keys, Plan};

impl<P: InForce, T: Threads> Manager<P, T> {
    pub(super) fn divide(&mut self, asker: &Asker, divide: Divide) -> Result<Answer, Wrong> {
        let request = self.of_asker(asker, divide.id)?.clone();
        if request.target != Target::Scheduler || request.held.is_none() {
            let message = format!("request {} has no scheduler", request.id);
            return Err(Wrong::new("request_must_have_a_scheduler", message));
        }
        self.room_to_divide(&request, divide.edits.len())?;
        if !asker.is_system() {
            divide.edits.iter().try_for_each(|edit| self.limits.allow_edit(edit))?;
        }
        for tid in divide.edits.iter().flat_map(threads) {
            self.thread_of(asker, tid)?;
        }
        let inside = Inside { asker, request: &request };
        let edits: Vec<Edit> = divide.edits.iter().map(|edit| inside.edit(edit)).collect::<Result<_, _>>()?;
        let trial = self.trial()?;
        let mut answer = Answer::new(State::Refused);
        answer.dry_run = divide.dry_run;
        let proposal = Proposal { edits: edits.clone(), ..Proposal::default() };
        // One after the other, so that what one makes is known to the next.
        let mut before = trial.clone();
        let ends = cpu_time() + 2 * RULE;
        for (at, edit) in edits.iter().enumerate() {
            if at > 0 && cpu_time() >= ends {
                let message = format!("{at} of {} operations take more than 40 ms of CPU time", edits.len());
                answer.reason = Some(Wrong::new("too_much_at_once", message));
                return Ok(answer);
            }
            let next = inside.knows(before.plan(), edit);
            let next = next.and_then(|()| inside.holds_no_request(before.plan(), &self.books, edit));
            match next.and_then(|()| before.edited([edit.clone()].into())) {
                Ok(after) => before = after,
                Err(wrong) => {
                    answer.reason = Some(wrong);
                    return Ok(answer);
                }
            }
        }
        let tried = proposal.tried(&trial, &self.books).map(|_| ());
        match if divide.dry_run { tried } else { tried.and_then(|()| self.commit(&proposal)) } {
            Ok(()) => {
                answer.state = State::Done;
                if !divide.dry_run {
                    self.with(request.id, |request| {
                        edits.iter().for_each(|edit| edit.add_to(&mut request.divided))
                    });
                }
            }
            Err(wrong) => answer.reason = Some(wrong),
        }
        answer.about = self.with_parts(&[request.id])?.pop();
        Ok(answer)
    }
}

impl<P: InForce, T: Threads> Manager<P, T> {
    /// So many operations one scheduler has, so many those of a principal, and of a person.
    fn room_to_divide(&self, request: &Request, more: usize) -> Result<(), Wrong> {
        let bound = self.limits.divisions;
        let has = request.divided.len();
        if has + more > bound {
            let message = format!("{has} operations and {more} more, bound {bound}");
            return Err(Wrong::new("too_many_divisions", message));
        }
        let (bound, person) = (self.limits.divisions_each, self.person_of(request));
        let is_theirs = |other: &&Request| {
            other.owner == request.owner || person.is_some() && self.person_of(other) == person
        };
        let has: usize = self.books.all().filter(is_theirs).map(|other| other.divided.len()).sum();
        if request.owner != Principal::System && has + more > bound {
            let message =
                format!("{} has {has} operations in all and {more} more, bound {bound}", request.owner);
            return Err(Wrong::new("too_many_divisions_of_one", message));
        }
        Ok(())
    }
}

/// Threads that an operation names by their numbers.
fn threads(edit: &Edit) -> Vec<u32> {
    let (Edit::Create { who, .. } | Edit::Set { who, .. }) = edit else { return Vec::new() };
    let tids = who.iter().flatten().filter(|(key, _)| key == "tid");
    tids.filter_map(|(_, tid)| tid.parse().ok()).collect()
}

/// What an owner may do within his scheduler.
struct Inside<'a> {
    asker: &'a Asker,
    request: &'a Request,
}

impl Inside<'_> {
    /// The name of a part below it in the plan; the scheduler itself has none.
    fn name(&self, name: &str) -> Result<String, Wrong> {
        let long = format!("{}-{name}", self.request.name());
        if !is_name(name) || !is_name(&long) {
            let message = format!("{name:.64?}: {NAME}");
            return Err(Wrong::new("name_must_be_plain", message));
        }
        Ok(long)
    }

    /// What is above a part: another one, or the scheduler.
    fn above(&self, name: &str) -> Result<String, Wrong> {
        match name {
            "" => Ok(self.request.name()),
            name => self.name(name),
        }
    }

    /// The operation, with the names of the plan.
    fn edit(&self, edit: &Edit) -> Result<Edit, Wrong> {
        Ok(match edit {
            Edit::Create { name, policy, under, keys, who, cpus: _ } => Edit::Create {
                name: self.name(name)?,
                policy: policy.clone(),
                under: self.above(under)?,
                keys: keys.clone(),
                who: self.who(who)?,
                cpus: None,
            },
            Edit::Destroy { name, below } => Edit::Destroy { name: self.name(name)?, below: *below },
            Edit::Set { name, under, keys, who } => Edit::Set {
                name: self.name(name)?,
                under: under.as_deref().map(|under| self.above(under)).transpose()?,
                keys: keys.clone(),
                who: self.who(who)?,
            },
            Edit::Move { name, tasks, from, under, keys } => Edit::Move {
                name: self.name(name)?,
                tasks: *tasks,
                from: from.as_deref().map(|from| self.above(from)).transpose()?,
                under: self.above(under)?,
                keys: keys.clone(),
            },
            Edit::Link { name, under, keys } => {
                Edit::Link { name: self.name(name)?, under: self.above(under)?, keys: keys.clone() }
            }
            Edit::Enclose { name } => Edit::Enclose { name: self.name(name)? },
            Edit::Default { .. } => {
                return Err(Wrong::new("default_node_is_the_systems", "only root chooses the default node"));
            }
        })
    }

    /// Threads of the asker alone, unless it is the system.
    fn who(&self, who: &[Keys]) -> Result<Vec<Keys>, Wrong> {
        are_few(who.len())?;
        who.iter().try_for_each(is_match)?;
        let mut who = who.to_vec();
        who.iter_mut().try_for_each(|keys| of_asker(self.asker, keys))?;
        Ok(who)
    }

    /// What goes has no request below it: that ends by its own number, not with a part.
    fn holds_no_request(&self, plan: &Plan, books: &Books, edit: &Edit) -> Result<(), Wrong> {
        let Edit::Destroy { name, .. } = edit else { return Ok(()) };
        let mut gone = BTreeSet::from([name.as_str()]);
        loop {
            let below = plan.edges.iter().filter(|edge| gone.contains(plan.nodes[edge.parent].base.as_str()));
            let below = below.filter_map(|edge| match edge.child {
                Child::Node(node) => Some(plan.nodes[node].base.as_str()),
                _ => None,
            });
            let more: BTreeSet<&str> = below.filter(|name| !gone.contains(name)).collect();
            if more.is_empty() {
                break;
            }
            gone.extend(more);
        }
        let inner = books.granted().find(|(_, held)| gone.contains(held.under.as_str()));
        let Some((inner, _)) = inner else { return Ok(()) };
        let part = name.strip_prefix(&self.request.name()).and_then(|name| name.strip_prefix('-'));
        let message = format!(
            "request {} is below `{}`: `tierce request --cancel {}` ends it. To go on elsewhere, ask for it again there (--under)",
            inner.id,
            part.unwrap_or(name),
            inner.id
        );
        Err(Wrong::new("part_must_hold_no_request", message))
    }

    /// Only parameters of the policies: other keys could name parts that are not below the scheduler.
    fn knows(&self, plan: &Plan, edit: &Edit) -> Result<(), Wrong> {
        let (keys, policy, above) = match edit {
            Edit::Create { keys, policy, under, .. } => (keys, policy.as_deref(), under.clone()),
            Edit::Move { keys, under, .. } | Edit::Link { keys, under, .. } => (keys, None, under.clone()),
            Edit::Set { name, under, keys, .. } => {
                let own = plan.nodes.iter().find(|node| node.base == *name);
                let own = own.and_then(|node| policies::by_number(node.policy)).map(|policy| policy.name);
                let above = plan
                    .edges
                    .iter()
                    .find(|edge| plan.child_name(edge.child).split('@').next() == Some(name));
                let above = above.map(|edge| plan.nodes[edge.parent].base.clone());
                (keys, own, under.clone().or(above).unwrap_or_default())
            }
            Edit::Destroy { .. } | Edit::Enclose { .. } | Edit::Default { .. } => return Ok(()),
        };
        let own = policy.and_then(policies::by_name);
        let above = plan.nodes.iter().find(|node| node.base == above);
        let above = above.and_then(|node| policies::by_number(node.policy));
        let is_param = |key: &str| {
            own.is_some_and(|policy| position(&policy.node_params, key).is_some())
                || above.is_some_and(|policy| position(&policy.edge_params, key).is_some())
        };
        match keys.iter().find(|(key, _)| !is_param(key)) {
            Some((key, _)) => {
                let message = format!("{key:.32}: only parameters of the policies are allowed here");
                Err(Wrong::new("key_must_be_a_parameter", message))
            }
            None => Ok(()),
        }
    }
}
