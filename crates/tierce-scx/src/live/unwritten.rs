//! What was done to the plan in force and is not in its text yet.

use std::rc::Rc;
use tierce_plan::{Edit, Plan};

/// The plan as its text has it, and what was done to it since.
pub struct Unwritten {
    /// The plan with the text as it is.
    pub written: Rc<Plan>,
    /// Operations, in the order in which they were done.
    pub edits: Vec<Edit>,
}
