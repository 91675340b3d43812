//! Books and plan in force are compared: after a start, and when others have changed the plan. Who had a guarantee has it again, or is
//! told.

use super::events::why_dead;
use super::{Manager, Threads};
use crate::ask::What;
use crate::check::{disagrees, strays};
use crate::in_force::InForce;
use crate::proposal::{created, Proposal};
use crate::wrong::Wrong;
use std::collections::BTreeSet;
use tierce_plan::{Below, Edit, Plan};

impl<P: InForce, T: Threads> Manager<P, T> {
    /// What is in the plan and in no books goes; what is in the books and not in the plan comes back, where there is room.
    pub(super) fn reconcile(&mut self, now_ns: u64) -> Result<(), Wrong> {
        self.remove_strays()?;
        self.make_parts_again()?;
        // What has ended meanwhile needs nothing.
        let dead = self.books.all().filter(|request| !self.is_there(request));
        let dead: Vec<(u64, String)> = dead.map(|request| (request.id, why_dead(request))).collect();
        for (id, why) in dead {
            self.lose(id, &why, false, now_ns);
        }
        let trial = self.trial()?;
        let plan = trial.plan().clone();
        let lost = self.books.granted().filter(|(request, held)| disagrees(&plan, request, held).is_some());
        // What is below a scheduler goes with it when it is made again.
        let lost: BTreeSet<u64> = lost.flat_map(|(request, _)| self.books.with_inner(request.id)).collect();
        let value = |id: &u64| self.books.get(id).map_or(0, |request| -request.value());
        let mut lost: Vec<(i64, u64)> = lost.iter().map(|id| (value(id), *id)).collect();
        if lost.is_empty() {
            self.is_foreign = false;
            return Ok(());
        }
        // All at once, if that is possible; else the most valuable first. A scheduler comes before what is below it.
        lost.sort_by_key(|(value, id)| (self.books.depth(*id), *value, *id));
        let ids: Vec<u64> = lost.iter().map(|(_, id)| *id).collect();
        if self.again(&ids).is_err() {
            for id in ids {
                // Those below it come later, or have gone with it.
                if self.books.get(&id).is_none_or(|request| request.held.is_none()) {
                    continue;
                }
                if let Err(why) = self.again(&[id]) {
                    self.lose(id, &format!("the plan in force was changed, and {why}"), true, now_ns);
                }
            }
        }
        self.is_foreign = false;
        Ok(())
    }

    /// These have in the plan what the books say, and nobody has less for it.
    fn again(&mut self, ids: &[u64]) -> Result<(), Wrong> {
        let trial = self.trial()?;
        let mut edits = Vec::new();
        for id in ids {
            let Some((request, held)) = self.books.get(id).and_then(|it| Some((it, it.held.as_ref()?)))
            else {
                continue;
            };
            let name = request.name();
            let plan = trial.plan();
            let is_there = plan.nodes.iter().any(|node| node.base == name)
                || plan.tasks.iter().any(|task| task.name == name);
            // With the scheduler above it, it goes anyway.
            let outer = self.books.request_of(&held.under).is_some_and(|outer| ids.contains(&outer.id));
            if is_there && !outer {
                edits.push(Edit::Destroy { name, below: Below::All });
            }
            edits.push(created(request, held));
            edits.extend(request.divided.iter().cloned());
        }
        let proposal = Proposal { edits, ..Proposal::default() };
        // Others that are lost as well have nothing yet that could be broken.
        let others = self.books.granted().filter(|(request, held)| {
            ids.contains(&request.id) || disagrees(trial.plan(), request, held).is_none()
        });
        let others: Vec<u64> = others.map(|(request, _)| request.id).collect();
        let promised = proposal.promised(&self.books).filter(|promised| others.contains(&promised.id));
        trial.after(proposal.operations(&self.books).into(), promised)?;
        self.commit(&proposal)
    }

    /// A request that has lost what it had, in the books.
    fn lose(&mut self, id: u64, why: &str, may_wait: bool, now_ns: u64) {
        let all = self.books.with_inner(id);
        for id in &all {
            self.with(*id, |request| {
                (request.held, request.ending) = (None, None);
                request.divided.clear();
            });
        }
        let _ = self.remove_strays(); // what is left of it; if that fails the next look finds it again
        match may_wait {
            true => self.revoked(&all, why, now_ns),
            false => {
                all.iter().for_each(|id| self.tell_owner(*id, What::Ended, why.to_string(), None));
                self.forget(&all, now_ns);
            }
        }
    }

    fn remove_strays(&mut self) -> Result<(), Wrong> {
        let trial = self.trial()?;
        let plan = trial.plan();
        let names = strays(&self.books, plan);
        // What is below one of them by its name goes with it; what else is below goes first.
        let outer = |name: &&&str| {
            !names.iter().any(|other| name.strip_prefix(*other).is_some_and(|rest| rest.starts_with('-')))
        };
        let mut outer: Vec<&str> = names.iter().filter(outer).copied().collect();
        outer.sort_by_key(|name| std::cmp::Reverse(depth(plan, name)));
        let gone = |name: &str| Edit::Destroy { name: name.to_string(), below: Below::All };
        let edits: Vec<Edit> = outer.into_iter().map(gone).collect();
        match edits.is_empty() {
            true => Ok(()),
            false => self.commit(&Proposal { edits, ..Proposal::default() }),
        }
    }

    fn make_parts_again(&mut self) -> Result<(), Wrong> {
        let trial = self.trial()?;
        let is_missing = |name: &&String| trial.plan().nodes.iter().all(|node| node.base != **name);
        let missing: Vec<String> = self.books.parts.keys().filter(is_missing).cloned().collect();
        for name in missing {
            let Some(edit) = self.books.parts.get(&name).cloned() else { continue };
            let proposal = Proposal { edits: vec![edit], ..Proposal::default() };
            let trial = self.trial()?;
            if trial
                .after(proposal.operations(&self.books).into(), [])
                .and_then(|_| self.commit(&proposal))
                .is_err()
            {
                self.books.parts.remove(&name);
                self.revision += 1;
                let text = format!("the plan in force was changed, and has no place for `{name}` of a rule");
                self.tell(&crate::principal::Principal::System, None, What::RuleFailed, text, None);
            }
        }
        Ok(())
    }
}

/// Nodes above a part, by one of its ways.
fn depth(plan: &Plan, name: &str) -> usize {
    let above = |name: &str| {
        let edge =
            plan.edges.iter().find(|edge| plan.child_name(edge.child).split('@').next() == Some(name))?;
        Some(plan.nodes[edge.parent].base.as_str())
    };
    std::iter::successors(above(name), |name| above(name)).take(plan.nodes.len()).count()
}
