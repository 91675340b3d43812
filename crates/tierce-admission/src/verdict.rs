//! What is said of a plan: of each node, edge and task what was tested, what it is guaranteed, why, and what fails.

use crate::demand::regions::Kept;
use crate::demand::spin_locks::Spinning;
use crate::demand::suspending_locks::Suspended;
use crate::share::Share;
use std::borrow::Cow;
use std::sync::Arc;
use tierce_analysis::chains::Bounds;
use tierce_analysis::Response;
use tierce_guarantee::Guarantee;

/// Version of the JSON that [`Admission::json`] writes.
pub const CHECK_VERSION: u32 = 4;

/// The verdict on a plan.
#[derive(Clone, Debug)]
pub struct Admission {
    /// Every node's law holds, and every guarantee asked for is shown.
    pub holds: bool,
    /// One per node, in the order of [`Plan::nodes`](tierce_plan::Plan::nodes).
    pub nodes: Vec<NodeVerdict>,
    /// One per edge, in the order of [`Plan::edges`](tierce_plan::Plan::edges).
    pub edges: Vec<EdgeVerdict>,
    /// One per task, in the order of [`Plan::tasks`](tierce_plan::Plan::tasks).
    pub tasks: Vec<TaskVerdict>,
    /// One per chain, in the order of [`Plan::chains`](tierce_plan::Plan::chains).
    pub chains: Vec<ChainVerdict>,
}

/// The verdict on a node.
#[derive(Clone, Debug)]
pub struct NodeVerdict {
    /// What it rests on; `None`: the policy promises nothing that could fail.
    pub law: Option<Law>,
    /// Sum of what its children may ask for, where that is bounded.
    pub asked: Option<Share>,
    /// The smallest bound that its test compares this with: one CPU, its cap, what is available to it.
    pub limit: Option<Share>,
    /// What is available to it in the long run if all others demand as much as they may, where that is known.
    pub available: Option<Share>,
    /// Why the law does not hold; empty: it does.
    pub failures: Vec<Failure>,
    /// What could not be looked at, in words.
    pub open: Vec<String>,
    /// What it is promised, the strongest first; at least NULL.
    pub promises: Given,
    /// For each of its `needs`.
    pub needs: Vec<Proof>,
}

impl NodeVerdict {
    /// Nothing is tested yet.
    pub(crate) fn new(available: Option<Share>) -> Self {
        Self {
            law: None,
            asked: None,
            limit: None,
            available,
            failures: Vec::new(),
            open: Vec::new(),
            promises: Given::default(),
            needs: Vec::new(),
        }
    }

    /// The sum is compared with that bound, too.
    pub(crate) fn limited_by(&mut self, bound: &Share) {
        let least = self.limit.take().map_or(bound.clone(), |limit| limit.min(bound.clone()));
        self.limit = Some(least);
    }
}

/// What was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Sum of budget/period.
    Budgets,
    /// Sum of budget/period, and what is due in every window.
    BudgetsWithDeadlines,
    /// Sum of budget/period, and when each arrives.
    BudgetsByPriority,
    /// Sum of shares.
    Shares,
    /// Sum of work/period.
    Deadlines,
    /// Sum of work/period, and what is due in every window.
    DeadlinesBelowPeriods,
}

impl Law {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Budgets => "utilisation",
            Self::BudgetsWithDeadlines => "utilisation and demand",
            Self::BudgetsByPriority => "utilisation and response times",
            Self::Shares => "sum of shares",
            Self::Deadlines => "utilisation of deadlines",
            Self::DeadlinesBelowPeriods => "utilisation and demand of deadlines",
        }
    }
}

/// A law that does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// In plain words.
    pub message: String,
    /// Value and bound.
    pub value: String,
    /// Value and bound.
    pub bound: String,
    /// The smallest change of one number that mends it.
    pub mend: Option<Mend>,
    /// Where and by how much.
    pub excess: Excess,
}

/// Where something breaks, what says so, and by how much.
#[derive(Clone, Debug)]
pub struct Excess {
    /// The first edge, in the order of the text, with which it does not fit; index into [`Plan::edges`](tierce_plan::Plan::edges).
    pub edge: Option<usize>,
    /// The test or theorem.
    pub test: String,
    /// Too much by so many ns: of a window, or of a period of that edge.
    pub ns: Option<u64>,
    /// And by so much of that window, or of a CPU.
    pub share: Option<Share>,
}

/// Another value for one number: less, except of a budget that is too short for a switch.
#[derive(Clone, Debug)]
pub struct Mend {
    /// Index into [`Plan::edges`](tierce_plan::Plan::edges).
    pub edge: usize,
    /// `budget` of the edge or `work` of the task below it.
    pub parameter: &'static str,
    /// What it is.
    pub from_ns: u64,
    /// The nearest value at which the law holds.
    pub to_ns: u64,
}

/// What an edge gets.
#[derive(Clone, Debug)]
pub struct EdgeVerdict {
    /// What is available through this edge in the long run if all others demand as much as they may, where that is known.
    pub available: Option<Share>,
    /// What is promised through it, the strongest first; at least NULL.
    pub promises: Given,
}

/// What a task asks for and gets.
#[derive(Clone, Debug)]
pub struct TaskVerdict {
    /// work/period of its load, where that is bounded.
    pub asked: Option<Share>,
    /// What is available to it in the long run if all others demand as much as they may, where that is known.
    pub available: Option<Share>,
    /// What is known of its deadlines.
    pub deadlines: Deadlines,
    /// Misses are by design.
    pub soft: bool,
    /// A bound on the response of its jobs, where there is one.
    pub response: Option<Response>,
    /// The test that has found that bound.
    pub test: Option<&'static str>,
    /// How long its jobs wait for locks that others hold, where a lock concerns it and that is known; tasks and locks by their index.
    pub blocking: Option<tierce_analysis::locks::Blocking>,
    /// How long its jobs spin for locks that jobs of other CPUs hold: CPU time beyond their work.
    pub spinning: Option<Spinning>,
    /// For how long its jobs are suspended until they get locks that others have, where it is beside users of such locks.
    pub suspended: Option<Suspended>,
    /// The regions without preemption that its jobs wait for, and its own, where some concern it and that is known.
    pub kept: Option<Kept>,
    /// Why deadlines that have to be met are not shown to be.
    pub failures: Vec<Failure>,
    /// What it is promised, the strongest first; at least NULL.
    pub promises: Given,
    /// For each of its `needs`.
    pub needs: Vec<Proof>,
}

impl TaskVerdict {
    /// Of a task that asks for nothing, with what it is promised.
    pub(crate) fn of_no_load(promises: Given) -> Self {
        Self {
            asked: None,
            available: None,
            deadlines: Deadlines::None,
            soft: false,
            response: None,
            test: None,
            blocking: None,
            spinning: None,
            suspended: None,
            kept: None,
            failures: Vec::new(),
            promises,
            needs: Vec::new(),
        }
    }
}

/// How long a chain takes.
#[derive(Clone, Debug)]
pub struct ChainVerdict {
    /// At least and at most.
    pub bounds: Bounds,
    /// What each of its tasks takes of the response.
    pub links: Vec<LinkVerdict>,
    /// For each of its `needs` why it is not shown; `None`: it is.
    pub failures: Vec<Option<Failure>>,
}

/// What one task takes of the response of its chain.
#[derive(Clone, Copy, Debug)]
pub struct LinkVerdict {
    /// Index into [`Plan::tasks`](tierce_plan::Plan::tasks).
    pub task: usize,
    /// The one before it releases it; otherwise it reads what that wrote last.
    pub triggered: bool,
    /// What it gets comes so much later.
    pub delay_ns: u64,
    /// And is looked at so much later, at most; `None`: there is no bound.
    pub wait_ns: Option<u64>,
    /// And is passed on so much later, at most; `None`: there is no bound.
    pub takes_ns: Option<u64>,
    /// The test that has found the bound on the task's response.
    pub test: Option<&'static str>,
}

/// What is known of the deadlines of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deadlines {
    /// Its load has none.
    #[default]
    None,
    /// All are met.
    Met,
    /// An exact test says that one can be missed, or more is asked for than is sure to come.
    MayMiss,
    /// No test shows that they are met.
    NotShown,
}

impl Deadlines {
    /// As JSON has it.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Met => Some("met"),
            Self::MayMiss => Some("may_miss"),
            Self::NotShown => Some("not_proved"),
        }
    }

    /// Nothing is known to prevent a miss.
    pub fn is_open(self) -> bool {
        matches!(self, Self::MayMiss | Self::NotShown)
    }
}

/// What is promised to one part: several verdicts have the same.
pub type Given = Arc<[Promise]>;

/// A guarantee, and why it holds.
#[derive(Clone, Debug)]
pub struct Promise {
    /// What is promised.
    pub guarantee: Guarantee,
    /// In words.
    pub because: Arc<str>,
    /// What it follows from.
    pub origin: Origin,
    /// And how: from there to the guarantee; empty where it is the same.
    pub steps: Vec<Step>,
    /// Of a budget by priority: how long after the begin of its period it is there at the latest (ns).
    pub within_ns: Option<u64>,
}

impl Promise {
    pub(crate) fn new(guarantee: Guarantee, because: impl Into<Arc<str>>) -> Self {
        let because = because.into();
        Self { guarantee, because, origin: Origin::None, steps: Vec::new(), within_ns: None }
    }

    /// With what it follows from, in one step.
    pub(crate) fn by(
        self,
        origin: Origin,
        from: &[&Guarantee],
        rule: &'static str,
        formula: impl Into<Cow<'static, str>>,
    ) -> Self {
        let from = from.iter().map(|from| (*from).clone()).collect();
        let (to, because) = (self.guarantee.clone(), self.because.clone());
        let step = Step { from, to, rule, formula: formula.into(), because };
        Self { origin, steps: vec![step], ..self }
    }

    pub(crate) fn nothing(because: impl Into<Arc<str>>) -> Given {
        [Self::new(Guarantee::null(), because)].into()
    }
}

/// How something asked for was shown; or why not.
pub type Proof = Result<Shown, String>;

/// How something asked for was shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// In words.
    pub words: String,
    /// What it follows from.
    pub origin: Origin,
    /// And how.
    pub steps: Vec<Step>,
}

/// One guarantee follows from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From what; nothing: from the machine.
    pub from: Vec<Guarantee>,
    /// What follows.
    pub to: Guarantee,
    /// Theorem or rule.
    pub rule: &'static str,
    /// Its formula, or empty.
    pub formula: Cow<'static, str>,
    /// Why it is so.
    pub because: Arc<str>,
}

impl From<tierce_guarantee::Step> for Step {
    fn from(step: tierce_guarantee::Step) -> Self {
        let tierce_guarantee::Step { from, to, rule, formula, because } = step;
        Self { from: vec![from], to, rule, formula: formula.into(), because: because.into() }
    }
}

/// What a promise follows from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nothing: it is NULL.
    None,
    /// A CPU.
    Cpu(u32),
    /// One of the promises to the parent, where it is one of an edge; to the part itself, where it is what that needs.
    Promise(usize),
    /// Edges, and which of the promises through them.
    Edges(Vec<(usize, usize)>),
}

/// To whom something is promised; indices into the lists of [`Plan`](tierce_plan::Plan).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A node.
    Node(usize),
    /// What is below an edge, through it.
    Edge(usize),
    /// A task.
    Task(usize),
    /// A chain, to which nothing is promised.
    Chain(usize),
}

impl Part {
    /// The edges to a node or task; none of an edge.
    pub(crate) fn above(self, shape: &tierce_plan::Shape) -> &[usize] {
        match self {
            Self::Node(node) => &shape.parents[node],
            Self::Task(task) => &shape.task_parents[task],
            Self::Edge(_) | Self::Chain(_) => &[],
        }
    }
}

impl Admission {
    /// What is promised to a part, the strongest first.
    pub(crate) fn promises_to(&self, part: Part) -> &[Promise] {
        match part {
            Part::Node(node) => &self.nodes[node].promises,
            Part::Edge(edge) => &self.edges[edge].promises,
            Part::Task(task) => &self.tasks[task].promises,
            Part::Chain(_) => &[],
        }
    }
}
