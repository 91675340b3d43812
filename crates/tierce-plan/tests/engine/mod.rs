//! Plans in the engine, which has rules of its own: what the parser takes, it must take.

use tierce_plan::{Members, Plan};

/// The plan as a graph of the engine.
pub fn build(plan: &Plan) -> Result<(), String> {
    let mut graph = tierce_policy::Graph::new(plan.machine.cpus, 0).map_err(|error| error.to_string())?;
    plan.build(&mut graph.at(0), Members::Played).map_err(|refused| refused.to_string())?;
    graph.check(true).map_err(|broken| format!("{broken:?}"))
}
