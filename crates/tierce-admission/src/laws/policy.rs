//! What the proof asks of a policy. Each has one file beside this one, with the name of its file in `policy/`; what a policy has
//! no use for it leaves out.

use crate::bounds::leftover_supply::Taken;
use crate::bounds::response::Bound;
use crate::demand::overheads::Overheads;
use crate::laws::node::Node;
use crate::share::Share;
use crate::verdict::{Given, NodeVerdict};
use tierce_plan::policies::PolicyRecord;
use tierce_plan::{Edge, Plan, Shape};

/// A node whose law is tested.
#[derive(Clone, Copy)]
pub struct Tested<'a> {
    pub plan: &'a Plan,
    pub shape: &'a Shape,
    pub overheads: &'a Overheads<'a>,
    pub policy: &'static PolicyRecord,
    pub node: usize,
}

/// A node that passes on its long-run rate.
pub struct Rated<'a> {
    pub plan: &'a Plan,
    pub policy: &'static PolicyRecord,
    pub node: usize,
    pub edges: &'a [usize],
    /// What it has itself.
    pub supply: &'a Share,
    /// The most that what is below an edge may ask for.
    pub ask: &'a dyn Fn(usize) -> Share,
    /// It does ask for that much when its jobs are the longest and come as often as they may.
    pub asks: &'a dyn Fn(usize) -> bool,
}

/// What comes through an edge takes at most.
pub enum Takes {
    /// What its child takes.
    AsChild,
    /// So much, whatever the child wants; `None`: that is not bounded.
    Limited(Option<Taken>),
}

/// The laws of a policy.
pub trait Laws: Sync {
    /// Test whether what these children ask for fits; failures, and what could not be tested, go to the verdict.
    fn test(&self, _node: &Tested, _children: &[(usize, &Edge)], _verdict: &mut NodeVerdict) {}

    /// What each child is guaranteed, the strongest first; `Err`: why its budgets are not shown to arrive.
    fn supply(&self, node: &Node, _verdict: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(node.gives_nothing(format!("`{}` guarantees nothing to its children", node.name())))
    }

    /// Whatever its node is promised, [`Laws::supply`] has no reason to refuse.
    fn gives_anyway(&self) -> bool {
        false
    }

    /// The long-run rate that each child is sure to get when all others ask for as much as they may.
    fn rates(&self, _node: &Rated, _rates: &mut [Option<Share>]) {}

    /// A child gets no more than that rate while all others ask for as much as they may.
    fn is_limited_to_its_rate(&self, _node: &Rated, _edge: usize) -> bool {
        false
    }

    /// Its children get all that they ask for, up to what the node is supplied with.
    fn conserves_work(&self) -> bool {
        false
    }

    /// The weight by which a child shares all CPUs of a spread node.
    fn weight(&self, _plan: &Plan, _edge: &Edge) -> Option<u64> {
        None
    }

    /// What comes through an edge takes at most.
    fn takes(&self, _plan: &Plan, _shape: &Shape, _edge: usize) -> Takes {
        Takes::AsChild
    }

    /// Longest responses of the jobs directly below, by the task's index. `crowd`: the largest value of an edge parameter among
    /// those of whom there may be any number.
    fn responses(
        &self,
        _node: &Node,
        _crowd: &dyn Fn(usize) -> Option<u64>,
        _verdict: &mut NodeVerdict,
    ) -> Vec<(usize, Bound)> {
        Vec::new()
    }
}
