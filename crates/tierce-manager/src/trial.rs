//! What a plan would be after some operations, and whether all that was promised would still hold.
//!
//! The verdict is admission's. A plan in force may have faults of its own, which are nobody's business here: only what would be
//! worse than before is refused.

use crate::books::name_of;
use crate::in_force::edited;
use crate::wrong::Wrong;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tierce_admission::{Admission, Brief, PlanExt, Promise};
use tierce_guarantee::{follows as follows_from, includes, Guarantee};
use tierce_plan::{Edit, Plan, Standing};

/// A plan, to try operations on.
#[derive(Clone)]
pub struct Trial {
    plan: Rc<Plan>,
    found: Rc<Found>,
    /// The plan whose text is written, and the operations since, of which the text says nothing; without those that others undid.
    written: Rc<Plan>,
    unwritten: Rc<Vec<Edit>>,
    /// The last of them, which may undo others.
    last: Rc<[Edit]>,
    /// It was found without its text.
    is_stepped: bool,
    /// What came of operations that were tried. A rule asks whether something fits, and the request that it admits is tried again.
    tried: Rc<RefCell<Vec<(Rc<[Edit]>, Trial)>>>,
    /// Of each part of this plan and of those that it became: from which guarantee which one was last found to follow. Most parts are
    /// promised what they were promised before.
    follows: Rc<RefCell<BTreeMap<String, (Guarantee, Guarantee)>>>,
}

/// What admission control says of a plan.
struct Found {
    brief: Brief,
    /// The same with all that explains it, once somebody asks.
    whole: OnceCell<Admission>,
    /// Why it cannot be enforced, if it cannot.
    not_runnable: Option<Wrong>,
    /// What fails already.
    failing: BTreeSet<(String, String)>,
}

impl Found {
    fn of(plan: &Plan, not_runnable: Option<Wrong>) -> Rc<Self> {
        let brief = plan.admit_briefly();
        let failing = failing(plan, &brief);
        Rc::new(Self { brief, whole: OnceCell::new(), not_runnable, failing })
    }
}

/// So many operations may be unwritten. Then the plan is read again, with their text.
const UNWRITTEN_MAX: usize = 32;

/// So many are remembered, the last ones.
const TRIED_MAX: usize = 8;

/// Of so many parts it is remembered what follows; then anew.
const FOLLOWS_MAX: usize = 1024;

/// Something that was promised to the part of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Promised<'a> {
    /// The request.
    pub id: u64,
    /// What it is to have.
    pub guarantee: &'a Guarantee,
}

impl Trial {
    /// Of this plan.
    pub fn new(plan: Rc<Plan>) -> Self {
        Self {
            found: Found::of(&plan, not_runnable(&plan)),
            written: plan.clone(),
            plan,
            unwritten: Rc::default(),
            last: Rc::default(),
            is_stepped: false,
            tried: Rc::default(),
            follows: Rc::default(),
        }
    }

    /// After these operations, if each is a small one.
    fn stepped_by(&self, edits: &Rc<[Edit]>) -> Option<Trial> {
        let (plan, is_runnable) = self.stepped_plan(edits)?;
        let unwritten = if self.last.is_empty() { self.unwritten.clone() } else { Rc::new(self.unwritten()) };
        Some(Self {
            found: Found::of(&plan, if is_runnable { None } else { not_runnable(&plan) }),
            plan: Rc::new(plan),
            written: self.written.clone(),
            unwritten,
            last: edits.clone(),
            is_stepped: true,
            tried: Rc::default(),
            follows: self.follows.clone(),
        })
    }

    /// What the plan means after these operations, if each is a small one ([`Plan::step`]), and whether it is shown already that it
    /// can be enforced: this one can, and after no step it is in question. Its text is as it was before.
    fn stepped_plan(&self, edits: &[Edit]) -> Option<(Plan, bool)> {
        let mut plan = Plan::clone(&self.plan);
        let mut is_runnable = self.found.not_runnable.is_none();
        for edit in edits {
            let step = plan.step_beside(edit, &|| Standing::of(&plan))?;
            is_runnable = is_runnable && plan.is_runnable_after(&step, plan.machine.cpus);
            plan.take(step);
        }
        Some((plan, is_runnable))
    }

    /// All operations since the text was written.
    fn unwritten(&self) -> Vec<Edit> {
        let mut all = Vec::clone(&self.unwritten);
        self.last.iter().for_each(|edit| edit.add_to(&mut all));
        all
    }

    /// This plan is in force now, and the one before it is of no interest any more.
    pub fn settled(mut self) -> Trial {
        let all = Rc::make_mut(&mut self.unwritten);
        std::mem::take(&mut self.last).iter().for_each(|edit| edit.add_to(all));
        self
    }

    /// The plan as it is.
    pub fn plan(&self) -> &Rc<Plan> {
        &self.plan
    }

    /// The plan, if it was found without its text and may go on so.
    pub fn stepped(&self) -> Option<&Rc<Plan>> {
        (self.is_stepped && self.unwritten.len() + self.last.len() <= UNWRITTEN_MAX).then_some(&self.plan)
    }

    /// The verdict on it.
    pub fn admission(&self) -> &Admission {
        self.found.whole.get_or_init(|| self.plan.admit())
    }

    /// The plan after these operations, in which each of `promised` holds and nothing fails that did not before.
    pub fn after<'p>(
        &self,
        edits: Rc<[Edit]>,
        promised: impl IntoIterator<Item = Promised<'p>>,
    ) -> Result<Trial, Wrong> {
        let after = self.edited(edits)?;
        if let (None, Some(wrong)) = (&self.found.not_runnable, &after.found.not_runnable) {
            return Err(wrong.clone());
        }
        after.worse_than(self)?;
        let mut part = String::new();
        for Promised { id, guarantee } in promised {
            name_of(id, &mut part);
            if let Some(wrong) = after.broken(&part, guarantee) {
                return Err(wrong);
            }
        }
        Ok(after)
    }

    /// The plan after these operations, whatever they break.
    pub fn edited(&self, edits: Rc<[Edit]>) -> Result<Trial, Wrong> {
        if let Some((_, after)) = self.tried.borrow().iter().find(|(tried, _)| *tried == edits) {
            return Ok(after.clone());
        }
        let after = match self.stepped_by(&edits) {
            Some(after) => after,
            None => {
                let all = [&self.unwritten(), &edits[..]].concat();
                Trial::new(Rc::new(edited(&self.written, &all, &Standing::of(&self.plan))?))
            }
        };
        let mut tried = self.tried.borrow_mut();
        if tried.len() == TRIED_MAX {
            tried.remove(0);
        }
        tried.push((edits, after.clone()));
        Ok(after)
    }

    /// What fails here and not there.
    fn worse_than(&self, before: &Trial) -> Result<(), Wrong> {
        let Some((part, rule)) = self.found.failing.difference(&before.found.failing).next() else {
            return Ok(());
        };
        let nodes = self.plan.nodes.iter().map(|node| &node.name).zip(self.found.brief.nodes());
        let tasks = self.plan.tasks.iter().map(|task| &task.name).zip(self.found.brief.tasks());
        let its = nodes.chain(tasks).filter(|(name, _)| *name == part);
        let mut failures = its.flat_map(|(_, (failures, _))| failures);
        let words = failures.find(|failure| failure.rule == rule).map(|failure| {
            let message = failure.message.trim_end_matches('.');
            format!("{part}: {message}: {}, bound {}", failure.value, failure.bound)
        });
        Err(Wrong::new(
            rule,
            words.unwrap_or_else(|| format!("`{part}` would lose a guarantee that it needs")),
        ))
    }

    /// Why a promise does not hold.
    pub fn broken(&self, part: &str, guarantee: &Guarantee) -> Option<Wrong> {
        let Some(promises) = self.promises(part) else {
            return Some(Wrong::new("part_must_exist", format!("`{part}` is not in the plan in force")));
        };
        if promises.iter().any(|promise| includes(&promise.guarantee, guarantee)) {
            return None;
        }
        let mut follows = self.follows.borrow_mut();
        let known = follows.get(part).filter(|(_, goal)| goal == guarantee);
        if known.is_some_and(|(from, _)| promises.iter().any(|promise| promise.guarantee == *from)) {
            return None;
        }
        let shows = |promise: &&Promise| follows_from(&promise.guarantee, guarantee);
        if let Some(promise) = promises.iter().find(shows) {
            if follows.len() >= FOLLOWS_MAX {
                follows.clear();
            }
            follows.insert(part.to_string(), (promise.guarantee.clone(), guarantee.clone()));
            return None;
        }
        let best = promises.first().map_or_else(|| "nothing".to_string(), |best| best.guarantee.to_string());
        let message = format!("`{part}` would have {best}, from which {guarantee} does not follow");
        Some(Wrong::new("guarantee_must_hold", message))
    }

    /// What a task or node is promised; `None`: there is none of that name.
    pub fn promises(&self, part: &str) -> Option<&[Promise]> {
        let node = self.plan.nodes.iter().position(|node| node.base == part);
        if let Some(node) = node {
            return Some(
                self.found.brief.to_node(node).unwrap_or_else(|| &self.admission().nodes[node].promises),
            );
        }
        let task = self.plan.tasks.iter().position(|task| task.name == part)?;
        Some(self.found.brief.to_task(task).unwrap_or_else(|| &self.admission().tasks[task].promises))
    }
}

/// Why the plan cannot be enforced, if it cannot.
fn not_runnable(plan: &Plan) -> Option<Wrong> {
    let faults = plan.check_runnable(plan.machine.cpus).err()?;
    let rule = faults.faults.first().map_or("plan_has_faults", |fault| fault.rule);
    Some(Wrong::new(rule, faults.to_string()))
}

/// Parts of which a law does not hold, or something they need is not shown, each with the rule.
fn failing(plan: &Plan, brief: &Brief) -> BTreeSet<(String, String)> {
    let mut failing = BTreeSet::new();
    let nodes = plan.nodes.iter().map(|node| &node.name).zip(brief.nodes());
    let tasks = plan.tasks.iter().map(|task| &task.name).zip(brief.tasks());
    for (name, (failures, needs)) in nodes.chain(tasks) {
        let mut add = |rule: &str| _ = failing.insert((name.clone(), rule.to_string()));
        failures.iter().for_each(|failure| add(failure.rule));
        needs.iter().filter(|proof| proof.is_err()).for_each(|_| add("need_must_be_shown"));
    }
    failing
}
