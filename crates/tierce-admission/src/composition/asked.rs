//! Which promises a verdict rests on. Whether a plan holds is asked much more often than why, and of most parts nobody asks what they
//! are promised.
//!
//! A law is a matter of budgets and rates, and needs no promise. Promises are needed
//!
//! - to nodes that have to be sure of them for what they give themselves (budgets have to arrive in them), or that several CPUs run;
//! - to what has `needs`, and to tasks whose jobs have deadlines or other bounds;
//! - to whatever is above one of these.
//!
//! Example: below `top` (by priority) are `rt`, a reservation, and `rest`, which shares what that leaves. What `rest` is promised changes
//! with each budget below `rt`; as long as nothing below it has needs, it is not looked for.

use crate::bounds::adjacent_reserves::at_once;
use crate::laws;
use tierce_plan::{policies, Child, Plan, Shape};

/// Parts of a plan, by their index.
pub struct Asked {
    nodes: Vec<bool>,
    tasks: Vec<bool>,
}

impl Asked {
    /// All of them.
    pub fn everything(plan: &Plan) -> Self {
        Self { nodes: vec![true; plan.nodes.len()], tasks: vec![true; plan.tasks.len()] }
    }

    /// Those on which it depends whether the plan holds.
    pub fn what_can_fail(plan: &Plan, shape: &Shape) -> Self {
        let tasks = plan.tasks.iter().map(|task| task.load.is_some() || !task.needs.is_empty());
        let mut asked = Self { nodes: vec![true; plan.nodes.len()], tasks: tasks.collect() };
        for node in shape.order.iter().rev() {
            let about = &plan.nodes[*node];
            let gives_anyway =
                policies::by_number(about.policy).is_some_and(|policy| laws::of(policy).gives_anyway());
            let below = || shape.children[*node].iter().any(|edge| asked.below(plan, *edge));
            let is_asked = !gives_anyway || !about.needs.is_empty() || at_once(plan, shape, *node) || below();
            asked.nodes[*node] = is_asked;
        }
        asked
    }

    pub fn node(&self, node: usize) -> bool {
        self.nodes[node]
    }

    pub fn task(&self, task: usize) -> bool {
        self.tasks[task]
    }

    /// What is below an edge.
    pub fn below(&self, plan: &Plan, edge: usize) -> bool {
        match plan.edges[edge].child {
            Child::Node(node) => self.nodes[node],
            Child::Task(task) => self.tasks[task],
            Child::Set(_) => false,
        }
    }
}
