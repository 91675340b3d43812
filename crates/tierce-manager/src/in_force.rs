//! The plan in force, which is the manager's truth.

use crate::ask::Received;
use crate::wrong::Wrong;
use std::collections::BTreeMap;
use std::rc::Rc;
use tierce_admission::PlanExt;
use tierce_plan::{Edit, Plan, Standing};

/// Where the plan in force is.
pub trait InForce {
    /// As it is now. An error: nobody enforces one, or cannot be asked.
    fn plan(&mut self) -> Result<Rc<Plan>, Wrong>;

    /// Do all of these operations as one transition, or none of them. `after` is what the plan will be, if that is known; whoever
    /// enforces the plan need not be asked for it then.
    fn apply(&mut self, edits: &[Edit], after: Option<&Rc<Plan>>) -> Result<(), Wrong>;

    /// What parts whose names begin so have received, by the names of the part and of the one above. Empty: nobody counts.
    fn received(&mut self, names_begin: &str) -> Result<BTreeMap<(String, String), Received>, Wrong> {
        let _ = names_begin;
        Ok(BTreeMap::new())
    }
}

/// A plan that nobody enforces: for tests, simulations and dry runs.
pub struct InMemory {
    plan: Rc<Plan>,
    /// The same, with its text.
    written: Rc<Plan>,
}

impl InMemory {
    /// Begin with that plan.
    pub fn new(plan: Plan) -> Self {
        let plan = Rc::new(plan);
        Self { written: plan.clone(), plan }
    }

    /// Another plan, as by `tierce apply`.
    pub fn replace(&mut self, plan: Plan) {
        *self = Self::new(plan);
    }

    /// The plan, with its text.
    pub fn written(&self) -> &Rc<Plan> {
        &self.written
    }
}

impl InForce for InMemory {
    fn plan(&mut self) -> Result<Rc<Plan>, Wrong> {
        Ok(self.plan.clone())
    }

    fn apply(&mut self, edits: &[Edit], after: Option<&Rc<Plan>>) -> Result<(), Wrong> {
        self.written = Rc::new(edited(&self.written, edits, &Standing::default())?);
        self.plan = after.unwrap_or(&self.written).clone();
        Ok(())
    }
}

/// The plan after these operations, whatever admission says of it. `standing`: on which CPU is what they make, if that is known.
pub fn edited(plan: &Plan, edits: &[Edit], standing: &Standing) -> Result<Plan, Wrong> {
    let mut plan = plan.clone();
    for edit in edits {
        let standing = || {
            let mut all = Standing::of(&plan);
            all.placed.extend(standing.placed.clone());
            all
        };
        plan = plan.edited_beside(edit, standing).map_err(|faults| {
            let rule = faults.faults.first().map_or("plan_has_faults", |fault| fault.rule);
            Wrong::new(rule, faults.to_string())
        })?;
    }
    Ok(plan)
}
