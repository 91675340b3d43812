//! The verdict for tools: docs/plan-language.md, "JSON".

use crate::admission::{Admission, Failure, Law, CHECK_VERSION};
use crate::derivation::{Derived, Part};
use crate::exact::{fraction, fraction_given, Share};
use crate::faults::Faults;
use crate::model::{Load, Need, Plan};
use crate::policies;
use crate::promises::{Promise, Proof};
use crate::source::Spot;
use crate::structure::Shape;
use serde_json::{json, Value};
use tierce_analysis::Response;

impl Admission {
    /// All of it.
    pub fn to_json(&self, plan: &Plan) -> Value {
        let (all, broken) = (Json { plan, admission: self }, self.broken(plan));
        json!({
            "version": CHECK_VERSION, "plan": plan.name, "holds": self.holds, "cpus": plan.machine.cpus,
            "nodes": (0..plan.nodes.len()).map(|node| all.node(node)).collect::<Vec<_>>(),
            "edges": (0..plan.edges.len()).map(|edge| all.edge(edge)).collect::<Vec<_>>(),
            "tasks": (0..plan.tasks.len()).map(|task| all.task(task)).collect::<Vec<_>>(),
            "broken": broken.iter().map(|broken| broken.to_json(plan)).collect::<Vec<_>>(),
            "warnings": Faults::new(self.warnings(plan), plan.sources.clone()).to_json(),
        })
    }

    /// What [`Admission::to_json`] has of one node (or its replicas), task, or set: itself, and the edges that lead to it and
    /// from it. `Err`: there is no such part, but perhaps one of this name was meant.
    pub fn explain_json<'p>(&self, plan: &'p Plan, name: &str) -> Result<Value, Option<&'p str>> {
        let (all, shape) = (Json { plan, admission: self }, Shape::new(plan));
        let (nodes, tasks) = plan.named(name)?;
        let above = nodes.iter().flat_map(|node| &shape.parents[*node]);
        let below = nodes.iter().flat_map(|node| &shape.children[*node]);
        let edges = above.chain(below).chain(tasks.iter().flat_map(|task| &shape.task_parents[*task]));
        let edges = edges.copied().collect::<std::collections::BTreeSet<_>>();
        let names: Vec<_> = nodes.iter().map(|node| &plan.nodes[*node].name).collect();
        let names: Vec<_> =
            names.into_iter().chain(tasks.iter().map(|task| &plan.tasks[*task].name)).collect();
        let broken = self.broken(plan);
        let broken: Vec<_> = broken.iter().filter(|broken| names.contains(&&broken.name)).collect();
        Ok(json!({
            "version": CHECK_VERSION, "plan": plan.name, "name": name, "holds": broken.is_empty(),
            "nodes": nodes.iter().map(|node| all.node(*node)).collect::<Vec<_>>(),
            "edges": edges.iter().map(|edge| all.edge(*edge)).collect::<Vec<_>>(),
            "tasks": tasks.iter().map(|task| all.task(*task)).collect::<Vec<_>>(),
            "broken": broken.iter().map(|broken| broken.to_json(plan)).collect::<Vec<_>>(),
        }))
    }
}

struct Json<'a> {
    plan: &'a Plan,
    admission: &'a Admission,
}

impl Json<'_> {
    fn node(&self, index: usize) -> Value {
        let (node, verdict) = (&self.plan.nodes[index], &self.admission.nodes[index]);
        let failures = verdict.failures.iter().map(|found| self.failure(node.spot, found));
        json!({
            "name": node.name, "policy": policies::by_number(node.policy).map(|policy| policy.name),
            "holds": verdict.law.map(|_| verdict.failures.is_empty()), "law": verdict.law.map(Law::name),
            "asked": share(&verdict.asked), "supply": given(&verdict.supply),
            "failures": failures.collect::<Vec<_>>(), "open": verdict.open,
            "guarantees": self.promised(Part::Node(index), &verdict.promises),
            "needs": self.needs(Part::Node(index), &node.needs, &verdict.needs),
        })
    }

    fn edge(&self, index: usize) -> Value {
        let (edge, verdict) = (&self.plan.edges[index], &self.admission.edges[index]);
        let policy = policies::by_number(self.plan.nodes[edge.parent].policy);
        let params = policy.map(|policy| policy.edge_params.iter().zip(edge.params));
        let params: serde_json::Map<_, _> =
            params.into_iter().flatten().map(|(param, value)| (param.name.into(), value.into())).collect();
        json!({
            "parent": self.plan.nodes[edge.parent].name, "child": self.plan.child_name(edge.child), "params": params,
            "rank": edge.rank, "when_spent": edge.when_spent, "supply": given(&verdict.supply),
            "guarantees": self.promised(Part::Edge(index), &verdict.promises),
        })
    }

    fn task(&self, index: usize) -> Value {
        let (task, verdict) = (&self.plan.tasks[index], &self.admission.tasks[index]);
        let failures = verdict.failures.iter().map(|found| self.failure(task.spot, found));
        json!({
            "name": task.name, "asked": share(&verdict.asked), "supply": given(&verdict.supply),
            "deadline_ns": task.load.as_ref().and_then(Load::deadline_ns), "deadlines": verdict.deadlines.name(),
            "soft": verdict.soft, "may_miss": verdict.deadlines.is_open(),
            "failures": failures.collect::<Vec<_>>(), "wcrt_ns": verdict.response.and_then(Response::ns),
            "guarantees": self.promised(Part::Task(index), &verdict.promises),
            "needs": self.needs(Part::Task(index), &task.needs, &verdict.needs),
        })
    }

    fn promised(&self, part: Part, promises: &[Promise]) -> Vec<Value> {
        let of = |(at, promise): (usize, &Promise)| {
            let derivation = self.admission.derivation(self.plan, part, at);
            json!({
                "text": promise.guarantee.to_string(), "because": promise.because, "derivation": self.steps(&derivation),
            })
        };
        promises.iter().enumerate().map(of).collect()
    }

    fn needs(&self, part: Part, needs: &[Need], proofs: &[Proof]) -> Vec<Value> {
        let of = |(need, proof): (&Need, &Proof)| {
            let shown = proof.as_ref().ok();
            let derivation =
                shown.map(|shown| self.admission.derivation_of_need(self.plan, part, need.spot, shown));
            json!({
                "text": need.text, "proved_by": shown.map(|shown| &shown.words), "reason": proof.as_ref().err(),
                "derivation": derivation.map(|derivation| self.steps(&derivation)),
            })
        };
        needs.iter().zip(proofs).map(of).collect()
    }

    fn steps(&self, derivation: &[Derived]) -> Vec<Value> {
        derivation.iter().map(|derived| derived.to_json(self.plan)).collect()
    }

    fn failure(&self, spot: Spot, failure: &Failure) -> Value {
        let place = self.plan.sources.place(spot);
        let mend = failure.mend.as_ref().map(|mend| {
            json!({
                "child": self.plan.child_name(self.plan.edges[mend.edge].child),
                "parameter": mend.parameter, "from_ns": mend.from_ns, "to_ns": mend.to_ns,
            })
        });
        json!({
            "rule": failure.rule, "file": place.file, "line": place.line, "column": place.column,
            "message": failure.message, "value": failure.value, "bound": failure.bound, "mend": mend,
        })
    }
}

fn given(share: &Option<Share>) -> Option<String> {
    share.as_ref().map(fraction_given)
}

fn share(share: &Option<Share>) -> Option<String> {
    share.as_ref().map(fraction)
}
