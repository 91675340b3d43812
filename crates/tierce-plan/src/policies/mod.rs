//! The policies there are, as the scheduling core describes them. Nothing about a policy is known here but what its
//! record says, and the names of the parameters that several policies share: `budget`, `period`, `deadline`, `weight`. What
//! parameters of one policy mean together, and which do not go together, is in the file that has its name. What a policy of the
//! user's means by these names is not known.

pub mod criticality;
pub mod fair;
pub mod promised;
pub mod reservation;
pub mod rounds;
pub mod slots;

pub use tierce_policy::{limits, policies, Param, ParamKind, PolicyRecord, KERNEL};

/// The policy of that name.
pub fn by_name(name: &str) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.name == name)
}

/// The policy of that number.
pub fn by_number(number: u32) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.number == number)
}

/// All of them, a bit each by number.
pub fn all() -> u64 {
    policies().iter().fold(0, |mask, policy| mask | 1 << policy.number)
}

/// The names of a set of them, a bit each by number.
pub fn names(mask: u64) -> Vec<&'static str> {
    policies().iter().filter(|policy| mask >> policy.number & 1 == 1).map(|policy| policy.name).collect()
}

/// Position of a parameter of edges by its usual meaning.
fn usual(policy: &PolicyRecord, name: &str) -> Option<usize> {
    position(&policy.edge_params, name).filter(|_| !policy.added)
}

/// Position of the parameter of that name.
pub fn position(params: &[Param], name: &str) -> Option<usize> {
    params.iter().position(|param| param.name == name)
}

/// Position of the `priority` by which a policy orders its children, where nothing else does: no budget, no usual work, no levels that move.
pub fn priority(policy: &PolicyRecord) -> Option<usize> {
    let place = |name| usual(policy, name);
    place("priority").filter(|_| place("budget").or(place("work")).or(place("boost")).is_none())
}

/// Position of the `share` that a policy gives its children of a CPU.
pub fn share(policy: &PolicyRecord) -> Option<usize> {
    usual(policy, "share")
}

/// Position of the `quantum` of nodes whose children take turns.
pub fn quantum(policy: &PolicyRecord) -> Option<usize> {
    position(&policy.node_params, "quantum").filter(|_| !policy.added)
}

/// Positions of `budget` and `period` if a node of this policy counts on a budget of its own.
pub fn own_budget(policy: &PolicyRecord) -> Option<(usize, usize)> {
    let place = |name| position(&policy.node_params, name).filter(|_| !policy.added);
    Some((place("budget")?, place("period")?))
}

/// Its children go by their own deadlines, and nothing else bounds what they take.
pub fn by_deadline(policy: &PolicyRecord) -> bool {
    policy.heeds_deadlines && share(policy).is_none() && !policy.added
}

/// Positions of `budget` and `period` if edges below this policy have a budget.
pub fn budget_and_period(policy: &PolicyRecord) -> Option<(usize, usize)> {
    Some((usual(policy, "budget")?, usual(policy, "period")?))
}
