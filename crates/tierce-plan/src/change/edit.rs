//! One change of a plan, as an operation instead of a new text: the plan in force is edited by `tierce ctl`.

pub use super::toml::Keys;
use serde::{Deserialize, Serialize};

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Edit {
    /// A node with a policy; with `who`, it has a set of these threads below it. Without a policy: these threads, each with
    /// an edge of its own. Who is named here is no longer what else he matches.
    Create {
        /// Its name.
        name: String,
        /// Of the node.
        policy: Option<String>,
        /// The node above.
        under: String,
        /// Parameters of the node, and of the edge to it.
        #[serde(default)]
        keys: Keys,
        /// As `match`: any of these, all keys of it.
        #[serde(default)]
        who: Vec<Keys>,
        /// Below a `per_cpu` node: on one CPU where there is room (`cpu = "any"`), unless `keys` name one. Of these CPUs; empty: of
        /// all. `None`: on every CPU.
        #[serde(default)]
        cpus: Option<Vec<u32>>,
    },
    /// A node, task or set goes; its threads go where else they match.
    Destroy {
        /// Its name.
        name: String,
        /// What may be below it, and goes, too.
        below: Below,
    },
    /// New parameters: those that its own policy has are the node's, others those of the edge above it.
    Set {
        /// Of this node, task or set.
        name: String,
        /// Only of the edge to this parent.
        under: Option<String>,
        /// The parameters.
        #[serde(default)]
        keys: Keys,
        /// Its threads from now on; empty: those that it has.
        #[serde(default)]
        who: Vec<Keys>,
    },
    /// To another place.
    Move {
        /// A node, task or set.
        name: String,
        /// Not this node, but the tasks and sets directly below it.
        #[serde(default)]
        tasks: bool,
        /// Only the edge to this parent; none: all of them.
        from: Option<String>,
        /// The node above from now on.
        under: String,
        /// Parameters of the edge; none: those it has, if the policy above is the same.
        #[serde(default)]
        keys: Keys,
    },
    /// One more edge to a node, task or set: from another parent, or from another replica of the same parent.
    Link {
        /// What is below.
        name: String,
        /// The node above.
        under: String,
        /// Parameters of the edge.
        #[serde(default)]
        keys: Keys,
    },
    /// What the node has becomes a budget that it shares with containers inside of it: `NAME-budget`, by fixed priorities. First the
    /// containers, below the reservation `NAME-inner`, then the node. Nothing is done if there is a node `NAME-inner` already.
    Enclose {
        /// The node.
        name: String,
    },
    /// Another default node.
    Default {
        /// Its name.
        name: String,
        /// Parameters of each thread; none: those it has, if the policy is the same.
        #[serde(default)]
        keys: Keys,
    },
}

/// What may be below something that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Below {
    /// Nothing.
    Nothing,
    /// Tasks and sets.
    Threads,
    /// Whatever.
    All,
}
