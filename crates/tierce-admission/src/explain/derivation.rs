//! How a promise follows, step by step, from what the CPUs give: the same for people and for tools.

use crate::verdict::{Admission, Origin, Part, Shown, Step};
use serde::Serialize;
use tierce_plan::Plan;
use tierce_plan::{Place, Spot};

/// A step, and where in the plan it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived<'a> {
    /// The step.
    pub step: &'a Step,
    /// Who gives; none: a CPU, or the part itself.
    pub parent: Option<&'a str>,
    /// Who gets.
    pub child: &'a str,
    /// The place in the text.
    pub spot: Spot,
}

impl Admission {
    /// From the CPUs down to one of the promises to a part; empty where that is nothing.
    pub fn derivation<'a>(&'a self, plan: &'a Plan, part: Part, at: usize) -> Vec<Derived<'a>> {
        let mut walk = Walk { plan, admission: self, seen: Vec::new(), steps: Vec::new() };
        walk.promise(part, at);
        walk.steps
    }

    /// From the CPUs down to something that a part needs.
    pub fn derivation_of_need<'a>(
        &'a self,
        plan: &'a Plan,
        part: Part,
        spot: Spot,
        shown: &'a Shown,
    ) -> Vec<Derived<'a>> {
        let mut walk = Walk { plan, admission: self, seen: Vec::new(), steps: Vec::new() };
        walk.origin(part, &shown.origin);
        walk.steps(part, &shown.steps, Some(spot));
        walk.steps
    }
}

struct Walk<'a> {
    plan: &'a Plan,
    admission: &'a Admission,
    /// Two ways may lead up to the same node.
    seen: Vec<(Part, usize)>,
    steps: Vec<Derived<'a>>,
}

impl<'a> Walk<'a> {
    /// Every part is above the one before: the graph has no cycles and few levels.
    fn promise(&mut self, part: Part, at: usize) {
        let Some(promise) = self.admission.promises_to(part).get(at) else { return };
        if self.seen.contains(&(part, at)) {
            return;
        }
        self.seen.push((part, at));
        match (&promise.origin, part) {
            (Origin::Promise(above), Part::Edge(edge)) => {
                self.promise(Part::Node(self.plan.edges[edge].parent), *above);
            }
            (origin, _) => self.origin(part, origin),
        }
        self.steps(part, &promise.steps, None);
    }

    fn origin(&mut self, part: Part, origin: &Origin) {
        match origin {
            Origin::None | Origin::Cpu(_) => {}
            Origin::Promise(at) => self.promise(part, *at),
            Origin::Edges(edges) => edges.iter().for_each(|(edge, at)| self.promise(Part::Edge(*edge), *at)),
        }
    }

    fn steps(&mut self, part: Part, steps: &'a [Step], spot: Option<Spot>) {
        let plan = self.plan;
        let (parent, child, own) = match part {
            Part::Node(node) => (None, &*plan.nodes[node].name, plan.nodes[node].spot),
            Part::Task(task) => (None, &*plan.tasks[task].name, plan.tasks[task].spot),
            Part::Chain(chain) => (None, &*plan.chains[chain].name, plan.chains[chain].spot),
            Part::Edge(edge) => {
                let edge = &plan.edges[edge];
                (Some(&*plan.nodes[edge.parent].name), plan.child_name(edge.child), edge.spot)
            }
        };
        let each = |step| Derived { step, parent, child, spot: spot.unwrap_or(own) };
        self.steps.extend(steps.iter().map(each));
    }
}

/// [`Derived`], to be written.
#[derive(Serialize)]
pub(crate) struct DerivedJson<'a> {
    from: Vec<String>,
    to: String,
    rule: &'static str,
    formula: Option<&'a str>,
    because: &'a str,
    r#where: WhereJson<'a>,
}

#[derive(Serialize)]
struct WhereJson<'a> {
    parent: Option<&'a str>,
    child: &'a str,
    file: String,
    line: usize,
    column: usize,
}

impl<'a> Derived<'a> {
    /// Where and by what: "`rt` → `audio`, by Theorem 5.5: PSBE x/y 2(x/y)(y − x)".
    pub fn words(&self) -> String {
        let Step { rule, formula, .. } = self.step;
        let formula = if formula.is_empty() { String::new() } else { format!(": {formula}") };
        let place = match self.parent {
            Some(parent) => format!("`{parent}` → `{}`", self.child),
            None => format!("`{}`", self.child),
        };
        format!("{place}, by {rule}{formula}")
    }

    /// For tools.
    pub(crate) fn json(&self, plan: &Plan) -> DerivedJson<'a> {
        let Step { from, to, rule, formula, because } = self.step;
        let Place { file, line, column } = plan.sources.place(self.spot);
        DerivedJson {
            from: from.iter().map(ToString::to_string).collect(),
            to: to.to_string(),
            rule,
            formula: Some(&**formula).filter(|formula| !formula.is_empty()),
            because,
            r#where: WhereJson { parent: self.parent, child: self.child, file, line, column },
        }
    }
}
