//! What any user could take by a name is not given beside a manager, of whom programs can ask for it.

use std::os::unix::net::UnixStream;
use tierce_admission::PlanExt;
use tierce_manager::LISTEN;
use tierce_plan::{Faults, Plan};

/// Refuses a plan with a `match` that can be forged, if a manager answers at its usual place.
pub fn refuse_beside_a_manager(plan: &Plan) -> Result<(), Faults> {
    let faults = plan.forgeable();
    match faults.faults.is_empty() || UnixStream::connect(LISTEN).is_err() {
        true => Ok(()),
        false => Err(faults),
    }
}
