//! Where a plan breaks first, by how much, and the smallest changes of one thing that would make it hold. In small plans each
//! was tried: the changed plan is admitted anew, and what was broken is not, nor anything that was not. In others some are
//! computed in closed form, for the test that fails alone.

use crate::bounds::smallest_reduction::MENDED_MAX;
use crate::share::percent;
use crate::verdict::{Excess, Failure, Mend, Part};
use serde_json::{json, Value};
use tierce_plan::policies::{self};
use tierce_plan::show_time;
use tierce_plan::Shape;
use tierce_plan::{Child, Edge, Load, Plan, Preemption};

/// Something that does not hold.
#[derive(Clone, Debug)]
pub struct Broken {
    /// The node or task.
    pub name: String,
    /// Which rule.
    pub rule: &'static str,
    /// The guarantee asked for, where that is what is not shown.
    pub need: Option<String>,
    /// Where: the first edge with which it does not fit; the one that gives too little.
    pub edge: Option<usize>,
    /// Which test or theorem refuses, and by how much.
    pub excess: Excess,
    /// Changes of one thing that mend it, each the smallest of its kind.
    pub remedies: Vec<Remedy>,
    /// Why no others were tried, and these only computed for the test that fails; none: each was tried on the whole plan.
    pub untried: Option<String>,
    /// What that means, in plain words.
    pub explanation: String,
    /// Nothing else breaks.
    pub(super) alone: bool,
    pub(super) problem: Problem,
}

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Another value for a parameter of an edge.
    Parameter {
        /// Index into [`Plan::edges`].
        edge: usize,
        /// Which of its parameters.
        at: usize,
        /// Instead of; ns, or a number.
        from: u64,
        /// The nearest with which it holds.
        to: u64,
    },
    /// Jobs that work less.
    Work {
        /// Index into [`Plan::edges`]: above the task.
        edge: usize,
        /// The longest work of a job, ns.
        from: u64,
        /// The largest with which it holds.
        to: u64,
    },
    /// Shorter parts of jobs in which they do not give way, or hold a lock.
    Section {
        /// Index into [`Plan::edges`]: above the task.
        edge: usize,
        /// Sections with this one; none: regions without preemption.
        lock: Option<usize>,
        /// The longest, ns; of jobs that never give way their longest work.
        from: u64,
        /// The longest with which it holds; 0: jobs give way at any time.
        to: u64,
    },
    /// Another preemption threshold.
    Threshold {
        /// Index into [`Plan::edges`]: above the task.
        edge: usize,
        /// Instead of.
        from: u64,
        /// The nearest with which it holds.
        to: u64,
    },
    /// Another parent, on another CPU.
    Parent {
        /// Index into [`Plan::edges`].
        edge: usize,
        /// Index into [`Plan::nodes`].
        to: usize,
    },
}

/// What distinguishes one problem of a plan from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Problem {
    Law(usize, &'static str),
    NodeNeed(usize, usize),
    TaskNeed(usize, usize),
    Deadline(usize),
    /// One of its needs.
    Chain(usize, usize),
}

impl Broken {
    /// Who it is.
    pub fn part(&self) -> Part {
        match self.problem {
            Problem::Law(node, _) | Problem::NodeNeed(node, _) => Part::Node(node),
            Problem::TaskNeed(task, _) | Problem::Deadline(task) => Part::Task(task),
            Problem::Chain(chain, _) => Part::Chain(chain),
        }
    }

    /// "The sum is 10 % of a CPU too large, first with `top` → `b` (plan.toml:7:13): sum of budget/period (…)".
    pub fn words(&self, plan: &Plan) -> String {
        let at = self.edge.map(|edge| {
            let edge = &plan.edges[edge];
            let (parent, child) = (&plan.nodes[edge.parent].name, plan.child_name(edge.child));
            format!("`{parent}` → `{child}` ({})", plan.sources.place(edge.spot))
        });
        let sum = matches!(
            self.rule,
            "budgets_must_fit_the_cpu"
                | "budgets_must_fit_the_cap"
                | "budgets_must_fit_the_supply"
                | "shares_must_fit_the_cpu"
                | "shares_must_fit_the_supply"
                | "deadlines_must_fit_the_supply"
        );
        let (share, ns) = (self.excess.share.as_ref().map(percent), self.excess.ns.map(show_time));
        let (by, first) = match (&self.need, share, ns) {
            (_, None, None) => ("It fails".into(), "at"),
            (None, Some(share), _) if sum => (format!("The sum is {share} of a CPU too large"), "first with"),
            (need, share, ns) => {
                let by = share.into_iter().chain(ns).collect::<Vec<_>>().join(" or ");
                match need {
                    Some(_) if !matches!(self.problem, Problem::Chain(..)) => {
                        (format!("It falls short by {by}"), "at")
                    }
                    _ => (format!("It exceeds by {by}"), "first at"),
                }
            }
        };
        let at = at.map_or(String::new(), |at| format!(", {first} {at}"));
        format!("{by}{at}: {}", self.excess.test)
    }

    /// Remedies right there, at what it waits for, and at the budgets on several CPUs that the node there has; all, where there are none.
    pub fn nearest(&self, plan: &Plan) -> Vec<Remedy> {
        let parent = self.edge.map(|edge| Child::Node(plan.edges[edge].parent));
        let several = plan.edges.iter().filter(|edge| Some(edge.child) == parent).count() > 1;
        let near = |remedy: &Remedy| {
            let above = several && Some(plan.edges[remedy.edge()].child) == parent;
            let waits = matches!(remedy, Remedy::Section { .. } | Remedy::Threshold { .. });
            Some(remedy.edge()) == self.edge || waits || above
        };
        let here: Vec<_> = self.remedies.iter().copied().filter(near).collect();
        if here.is_empty() {
            self.remedies.clone()
        } else {
            here
        }
    }

    /// For tools.
    pub fn to_json(&self, plan: &Plan) -> Value {
        let edge = self.edge.map(|edge| {
            let (edge, place) = (&plan.edges[edge], plan.sources.place(plan.edges[edge].spot));
            json!({
                "parent": plan.nodes[edge.parent].name, "child": plan.child_name(edge.child),
                "file": place.file, "line": place.line, "column": place.column,
            })
        });
        json!({
            "name": self.name, "rule": self.rule, "need": self.need, "edge": edge, "test": self.excess.test,
            "excess": self.excess.share.as_ref().map(ToString::to_string), "excess_ns": self.excess.ns,
            "explanation": self.explanation,
            "remedies": self.remedies.iter().map(|remedy| remedy.to_json(plan)).collect::<Vec<_>>(), "untried": self.untried,
        })
    }
}

impl Failure {
    /// Which single reduction fixes it was not looked for: the window tests are bisected for readable nodes only.
    pub(crate) fn too_many(&self, shape: &Shape, part: Part) -> bool {
        let children = match part {
            Part::Node(node) => shape.children[node].len(),
            _ => 0,
        };
        self.mend.is_none() && self.rule.ends_with("_window") && children > MENDED_MAX
    }
}

/// "shorten the longest section of `log` with lock `bus` from 3ms to 2ms (by 1ms)".
fn shortened(plan: &Plan, edge: usize, lock: Option<usize>, (from, to): (u64, u64)) -> String {
    let edge = &plan.edges[edge];
    let name = plan.child_name(edge.child);
    if to == 0 {
        return format!("let jobs of `{name}` give way at any time");
    }
    let what = match lock {
        Some(lock) => format!("section of `{name}` with lock `{}`", plan.locks[lock].name),
        None => format!("region without preemption of `{name}`"),
    };
    let (by, from) = (show_time(from.abs_diff(to)), show_time(from));
    let whole = lock.is_none() && preemption(plan, edge) == Some(&Preemption::None);
    let how = if whole { ", with `longest_region` in place of `preemption`" } else { "" };
    format!("shorten the longest {what} from {from} to {} (by {by}){how}", show_time(to))
}

/// When jobs of the task below an edge give way.
fn preemption<'a>(plan: &'a Plan, edge: &Edge) -> Option<&'a Preemption> {
    match edge.child {
        Child::Task(task) => plan.tasks[task].load.as_ref().map(Load::preemption),
        Child::Node(_) | Child::Set(_) => None,
    }
}

/// The field that says so; of whole jobs the one that takes their place.
fn own_field(plan: &Plan, edge: &Edge) -> &'static str {
    match preemption(plan, edge) {
        Some(Preemption::Regions(_)) => "regions",
        Some(Preemption::Threshold(_)) => "threshold",
        _ => "longest_region",
    }
}

/// The place of the deadline that goes with a period (at that place, from one value to another): one that is the period because the text
/// gives none, and one that would be longer than it.
fn deadline_with(plan: &Plan, edge: &Edge, (at, from, to): (usize, u64, u64)) -> Option<usize> {
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    let place = |name| policies::position(&policy.edge_params, name);
    let deadline = place("deadline").filter(|_| place("period") == Some(at))?;
    let given = edge.given & 1 << deadline != 0;
    let goes = if given { edge.params[deadline] > to } else { edge.params[deadline] == from };
    goes.then_some(deadline)
}

impl Remedy {
    /// Which edge it changes.
    pub fn edge(&self) -> usize {
        match *self {
            Self::Parameter { edge, .. }
            | Self::Work { edge, .. }
            | Self::Section { edge, .. }
            | Self::Threshold { edge, .. }
            | Self::Parent { edge, .. } => edge,
        }
    }

    /// The plan with that change.
    pub fn apply(&self, plan: &Plan) -> Plan {
        let mut changed = plan.clone();
        match *self {
            Self::Parameter { edge, at, from, to } => {
                if let Some(deadline) = deadline_with(plan, &plan.edges[edge], (at, from, to)) {
                    changed.edges[edge].params[deadline] = to;
                }
                changed.edges[edge].params[at] = to;
            }
            Self::Work { edge, .. } | Self::Section { edge, .. } | Self::Threshold { edge, .. } => {
                if let Child::Task(task) = plan.edges[edge].child {
                    changed.tasks[task].load.iter_mut().for_each(|load| self.change(load));
                }
            }
            Self::Parent { edge, to } => changed.edges[edge].parent = to,
        }
        changed
    }

    /// What a task does with that change.
    fn change(&self, load: &mut Load) {
        match *self {
            Self::Work { to, .. } => load.work_mut().into_iter().for_each(|work| work.limit(to)),
            Self::Section { lock: Some(lock), to, .. } => {
                load.sections_mut().iter_mut().for_each(|section| section.limit(lock, to));
            }
            Self::Section { lock: None, to, .. } => {
                load.preemption_mut().into_iter().for_each(|preemption| preemption.limit(to));
            }
            Self::Threshold { to, .. } => {
                load.preemption_mut()
                    .into_iter()
                    .for_each(|preemption| *preemption = Preemption::Threshold(to));
            }
            Self::Parameter { .. } | Self::Parent { .. } => {}
        }
    }

    /// "raise the budget of `video` in `rt` from 9ms to 10ms (by 1ms)".
    pub fn words(&self, plan: &Plan) -> String {
        match *self {
            Self::Parameter { edge, at, from, to } => {
                let edge = &plan.edges[edge];
                let policy = policies::by_number(plan.nodes[edge.parent].policy);
                let param = policy.and_then(|policy| policy.edge_params.get(at));
                let (what, number) = param.map_or(("?", true), |param| (param.name, !param.is_time()));
                let how = match (what, to > from) {
                    ("period" | "deadline", true) => "lengthen",
                    ("period" | "deadline", false) => "shorten",
                    (_, true) => "raise",
                    (_, false) => "reduce",
                };
                let show = |value: u64| if number { value.to_string() } else { show_time(value) };
                let name = plan.child_name(edge.child);
                let by = show(from.abs_diff(to));
                let below = &plan.nodes[edge.parent].name;
                let given = |deadline: usize| edge.given & 1 << deadline != 0;
                let too = match deadline_with(plan, edge, (at, from, to)).filter(|at| given(*at)) {
                    Some(_) => " and its deadline",
                    None => "",
                };
                format!(
                    "{how} the {what} of `{name}` in `{below}`{too} from {} to {} (by {by})",
                    show(from),
                    show(to)
                )
            }
            Self::Work { edge, from, to } => {
                let name = plan.child_name(plan.edges[edge].child);
                let by = show_time(from.abs_diff(to));
                format!("reduce the work of `{name}` from {} to {} (by {by})", show_time(from), show_time(to))
            }
            Self::Section { edge, lock, from, to } => shortened(plan, edge, lock, (from, to)),
            Self::Threshold { edge, from, to } => {
                let (name, by) = (plan.child_name(plan.edges[edge].child), from.abs_diff(to));
                let how = if to > from { "raise" } else { "reduce" };
                format!("{how} the preemption threshold of `{name}` from {from} to {to} (by {by})")
            }
            Self::Parent { edge, to } => {
                let edge = &plan.edges[edge];
                let (from, to) = (&plan.nodes[edge.parent].name, &plan.nodes[to].name);
                format!("put `{}` below `{to}` instead of `{from}`", plan.child_name(edge.child))
            }
        }
    }

    fn to_json(self, plan: &Plan) -> Value {
        let edge = &plan.edges[self.edge()];
        let (parent, child) = (&plan.nodes[edge.parent].name, plan.child_name(edge.child));
        let number = |parameter: Option<&str>, from: u64, to: u64| {
            json!({
                "parent": parent, "child": child, "parameter": parameter, "from": from, "to": to, "words": self.words(plan),
            })
        };
        match self {
            Self::Parameter { at, from, to, .. } => {
                let policy = policies::by_number(plan.nodes[edge.parent].policy);
                let param = policy.and_then(|policy| policy.edge_params.get(at));
                number(param.map(|param| param.name), from, to)
            }
            Self::Work { from, to, .. } => number(Some("work"), from, to),
            Self::Section { lock: Some(lock), from, to, .. } => {
                let mut json = number(Some("sections"), from, to);
                json["lock"] = plan.locks[lock].name.as_str().into();
                json
            }
            Self::Section { lock: None, from, to, .. } | Self::Threshold { from, to, .. } => {
                number(Some(own_field(plan, edge)), from, to)
            }
            Self::Parent { to, .. } => {
                json!({ "parent": parent, "child": child, "to_parent": plan.nodes[to].name, "words": self.words(plan) })
            }
        }
    }
}

impl Mend {
    /// The same as a change of the plan.
    pub fn remedy(&self, plan: &Plan) -> Remedy {
        let Self { edge, from_ns: from, to_ns: to, .. } = *self;
        let policy = policies::by_number(plan.nodes[plan.edges[edge].parent].policy);
        match policy.and_then(|policy| policies::position(&policy.edge_params, self.parameter)) {
            Some(at) => Remedy::Parameter { edge, at, from, to },
            None => Remedy::Work { edge, from, to },
        }
    }

    /// "reduce the budget of `video` in `rt` from 10ms to 9ms (by 1ms)".
    pub fn words(&self, plan: &Plan) -> String {
        self.remedy(plan).words(plan)
    }
}
