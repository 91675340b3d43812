//! The verdict for tools: docs/plan-language.md, "JSON". Each part is made when it is written: of a large plan there is much.

use crate::demand::regions::{Blocker, Keeps, Kept};
use crate::explain::chains;
use crate::explain::derivation::{Derived, DerivedJson};
use crate::explain::part::named;
use crate::explain::remedies::Broken;
use crate::share::{fraction, fraction_given, Share};
use crate::verdict::{Admission, Failure, Law, Part, Promise, Proof, TaskVerdict, CHECK_VERSION};
use serde::{Serialize, Serializer};
use serde_json::{json, Map, Value};
use tierce_analysis::locks::{Blocking, Held};
use tierce_analysis::Response;
use tierce_plan::policies;
use tierce_plan::Faults;
use tierce_plan::Shape;
use tierce_plan::Spot;
use tierce_plan::{Load, Need, Plan, Region};

impl Admission {
    /// All of it, to be written.
    pub fn json<'a>(&'a self, plan: &'a Plan) -> Written<'a> {
        let all = Json { plan, admission: self };
        let warnings = Faults::new(self.warnings(plan), plan.sources.clone()).to_json();
        Written {
            version: CHECK_VERSION,
            plan: &plan.name,
            name: None,
            holds: self.holds,
            cpus: Some(plan.machine.cpus),
            nodes: all.each(0..plan.nodes.len(), Json::node),
            edges: all.each(0..plan.edges.len(), Json::edge),
            tasks: all.each(0..plan.tasks.len(), Json::task),
            chains: all.each(0..plan.chains.len(), Json::chain),
            broken: all.each(self.broken(plan), Json::broken),
            warnings: Some(warnings),
        }
    }

    /// All of it.
    pub fn to_json(&self, plan: &Plan) -> Value {
        serde_json::to_value(self.json(plan)).unwrap_or_default()
    }

    /// What [`Admission::json`] has of one node (or its replicas), task, or set: itself, and the edges that lead to it and
    /// from it. `Err`: there is no such part, but perhaps one of this name was meant.
    pub fn explain_json<'a>(&'a self, plan: &'a Plan, name: &'a str) -> Result<Written<'a>, Option<&'a str>> {
        let (all, shape) = (Json { plan, admission: self }, Shape::new(plan));
        let (nodes, tasks) = named(plan, name)?;
        let chains: Vec<_> =
            (0..plan.chains.len()).filter(|chain| plan.chains[*chain].name == name).collect();
        let above = nodes.iter().flat_map(|node| &shape.parents[*node]);
        let below = nodes.iter().flat_map(|node| &shape.children[*node]);
        let edges = above.chain(below).chain(tasks.iter().flat_map(|task| &shape.task_parents[*task]));
        let edges = edges.copied().collect::<std::collections::BTreeSet<_>>();
        let names = nodes.iter().map(|node| &plan.nodes[*node].name);
        let names: std::collections::BTreeSet<_> = names
            .chain(tasks.iter().map(|task| &plan.tasks[*task].name))
            .chain(chains.iter().map(|chain| &plan.chains[*chain].name))
            .collect();
        let mut broken = self.broken(plan);
        broken.retain(|broken| names.contains(&broken.name));
        Ok(Written {
            version: CHECK_VERSION,
            plan: &plan.name,
            name: Some(name),
            holds: broken.is_empty(),
            cpus: None,
            nodes: all.each(nodes, Json::node),
            edges: all.each(edges, Json::edge),
            tasks: all.each(tasks, Json::task),
            chains: all.each(chains, Json::chain),
            broken: all.each(broken, Json::broken),
            warnings: None,
        })
    }
}

/// A verdict, to be written.
#[derive(Serialize)]
pub struct Written<'a> {
    version: u32,
    plan: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    holds: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<u32>,
    nodes: Each<'a, usize, NodeJson<'a>>,
    edges: Each<'a, usize, EdgeJson<'a>>,
    tasks: Each<'a, usize, TaskJson<'a>>,
    chains: Each<'a, usize, Value>,
    broken: Each<'a, Broken, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Value>,
}

/// A list of which there is one at a time.
struct Each<'a, I, T> {
    all: Json<'a>,
    items: Vec<I>,
    one: fn(Json<'a>, &I) -> T,
}

impl<I, T: Serialize> Serialize for Each<'_, I, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.items.iter().map(|item| (self.one)(self.all, item)))
    }
}

#[derive(Serialize)]
struct NodeJson<'a> {
    name: &'a str,
    policy: Option<&'static str>,
    holds: Option<bool>,
    law: Option<&'static str>,
    asked: Option<String>,
    limit: Option<String>,
    available: Option<String>,
    failures: Vec<Value>,
    open: &'a [String],
    guarantees: Vec<PromiseJson<'a>>,
    needs: Vec<NeedJson<'a>>,
}

#[derive(Serialize)]
struct EdgeJson<'a> {
    parent: &'a str,
    child: &'a str,
    params: Map<String, Value>,
    rank: i32,
    when_spent: bool,
    /// The child moves between the replicas of the parent's spread node.
    spread: bool,
    /// The CPU that was chosen for `cpu = "any"`.
    placed: Option<u32>,
    available: Option<String>,
    guarantees: Vec<PromiseJson<'a>>,
}

#[derive(Serialize)]
struct TaskJson<'a> {
    name: &'a str,
    asked: Option<String>,
    available: Option<String>,
    deadline_ns: Option<u64>,
    deadlines: Option<&'static str>,
    soft: bool,
    may_miss: bool,
    failures: Vec<Value>,
    wcrt_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocking: Option<BlockingJson<'a>>,
    guarantees: Vec<PromiseJson<'a>>,
    needs: Vec<NeedJson<'a>>,
}

/// Waits for locks, or for a region without preemption.
#[derive(Serialize)]
struct BlockingJson<'a> {
    most_ns: Option<u64>,
    held: Vec<HeldJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spinning: Option<SpinningJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting: Option<WaitingJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    region: Option<RegionJson<'a>>,
}

/// CPU time of a job beyond its work: in all, and the sections that each request may wait for.
#[derive(Serialize)]
struct SpinningJson<'a> {
    most_ns: u64,
    held: Vec<HeldJson<'a>>,
}

/// While a job is suspended: in all, the sections that its requests may wait for, and how many of these may.
#[derive(Serialize)]
struct WaitingJson<'a> {
    most_ns: u64,
    held: Vec<HeldJson<'a>>,
    requests: u64,
}

#[derive(Serialize)]
struct RegionJson<'a> {
    task: &'a str,
    /// `None` of a floating region, whose place is not known.
    at_ns: Option<u64>,
    length_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<u64>,
}

#[derive(Serialize)]
struct HeldJson<'a> {
    lock: &'a str,
    task: &'a str,
    length_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<u64>,
}

#[derive(Serialize)]
struct PromiseJson<'a> {
    text: String,
    because: &'a str,
    derivation: Vec<DerivedJson<'a>>,
}

#[derive(Serialize)]
struct NeedJson<'a> {
    text: &'a str,
    proved_by: Option<&'a str>,
    reason: Option<&'a str>,
    derivation: Option<Vec<DerivedJson<'a>>>,
}

#[derive(Clone, Copy)]
struct Json<'a> {
    plan: &'a Plan,
    admission: &'a Admission,
}

impl<'a> Json<'a> {
    fn each<I, T>(self, items: impl IntoIterator<Item = I>, one: fn(Self, &I) -> T) -> Each<'a, I, T> {
        Each { all: self, items: items.into_iter().collect(), one }
    }

    fn node(self, index: &usize) -> NodeJson<'a> {
        let (node, verdict) = (&self.plan.nodes[*index], &self.admission.nodes[*index]);
        NodeJson {
            name: &node.name,
            policy: policies::by_number(node.policy).map(|policy| policy.name),
            holds: verdict.law.map(|_| verdict.failures.is_empty()),
            law: verdict.law.map(Law::name),
            asked: share(&verdict.asked),
            limit: given(&verdict.limit),
            available: given(&verdict.available),
            failures: self.failures(node.spot, &verdict.failures),
            open: &verdict.open,
            guarantees: self.promised(Part::Node(*index), &verdict.promises),
            needs: self.needs(Part::Node(*index), &node.needs, &verdict.needs),
        }
    }

    fn edge(self, index: &usize) -> EdgeJson<'a> {
        let (edge, verdict) = (&self.plan.edges[*index], &self.admission.edges[*index]);
        let policy = policies::by_number(self.plan.nodes[edge.parent].policy);
        let params = policy.map(|policy| policy.edge_params.iter().zip(edge.params));
        EdgeJson {
            parent: &self.plan.nodes[edge.parent].name,
            child: self.plan.child_name(edge.child),
            params: params
                .into_iter()
                .flatten()
                .map(|(param, value)| (param.name.into(), value.into()))
                .collect(),
            rank: edge.rank,
            when_spent: edge.when_spent,
            spread: edge.spread,
            placed: self.plan.nodes[edge.parent].replica.filter(|_| edge.placed),
            available: given(&verdict.available),
            guarantees: self.promised(Part::Edge(*index), &verdict.promises),
        }
    }

    fn task(self, index: &usize) -> TaskJson<'a> {
        let (task, verdict) = (&self.plan.tasks[*index], &self.admission.tasks[*index]);
        TaskJson {
            name: &task.name,
            asked: share(&verdict.asked),
            available: given(&verdict.available),
            deadline_ns: task.load.as_ref().and_then(Load::deadline_ns),
            deadlines: verdict.deadlines.name(),
            soft: verdict.soft,
            may_miss: verdict.deadlines.is_open(),
            failures: self.failures(task.spot, &verdict.failures),
            wcrt_ns: verdict.response.and_then(Response::ns),
            blocking: match &verdict.blocking {
                Some(blocking) => Some(self.blocking(blocking, verdict)),
                None => verdict.kept.and_then(|kept| self.kept(kept)),
            },
            guarantees: self.promised(Part::Task(*index), &verdict.promises),
            needs: self.needs(Part::Task(*index), &task.needs, &verdict.needs),
        }
    }

    fn blocking(self, blocking: &Blocking, verdict: &TaskVerdict) -> BlockingJson<'a> {
        let held = |held: &Held| HeldJson {
            lock: &self.plan.locks[held.lock].name,
            task: &self.plan.tasks[held.task].name,
            length_ns: held.length_ns,
            times: Some(held.times).filter(|times| *times > 1),
        };
        let all = |list: &[Held]| list.iter().map(held).collect();
        let spinning = verdict
            .spinning
            .as_ref()
            .map(|spinning| SpinningJson { most_ns: spinning.most_ns, held: all(&spinning.held) });
        let waiting = verdict.suspended.as_ref().filter(|found| found.requests > 0);
        let waiting = waiting.map(|found| WaitingJson {
            most_ns: found.most_ns,
            held: all(&found.held),
            requests: found.requests,
        });
        BlockingJson { most_ns: blocking.most_ns, held: all(&blocking.held), spinning, waiting, region: None }
    }

    fn kept(self, kept: Kept) -> Option<BlockingJson<'a>> {
        let Blocker { task, keeps, .. } = kept.by?;
        let (at_ns, length_ns, threshold) = match keeps {
            Keeps::Region(Region { at_ns, length_ns }) => (Some(at_ns), length_ns, None),
            Keeps::Floating(length_ns) => (None, length_ns, None),
            Keeps::Threshold { priority, work_ns } => (Some(0), work_ns, Some(priority)),
        };
        let region = Some(RegionJson { task: &self.plan.tasks[task].name, at_ns, length_ns, threshold });
        Some(BlockingJson {
            most_ns: Some(kept.most_ns()),
            held: Vec::new(),
            spinning: None,
            waiting: None,
            region,
        })
    }

    fn chain(self, index: &usize) -> Value {
        chains::to_json(self.plan, &self.plan.chains[*index], &self.admission.chains[*index])
    }

    fn broken(self, broken: &Broken) -> Value {
        broken.to_json(self.plan)
    }

    fn promised(self, part: Part, promises: &'a [Promise]) -> Vec<PromiseJson<'a>> {
        let of = |(at, promise): (usize, &'a Promise)| PromiseJson {
            text: promise.guarantee.to_string(),
            because: &promise.because,
            derivation: self.steps(self.admission.derivation(self.plan, part, at)),
        };
        promises.iter().enumerate().map(of).collect()
    }

    fn needs(self, part: Part, needs: &'a [Need], proofs: &'a [Proof]) -> Vec<NeedJson<'a>> {
        let of = |(need, proof): (&'a Need, &'a Proof)| {
            let shown = proof.as_ref().ok();
            let derivation =
                shown.map(|shown| self.admission.derivation_of_need(self.plan, part, need.spot, shown));
            NeedJson {
                text: &need.text,
                proved_by: shown.map(|shown| &*shown.words),
                reason: proof.as_ref().err().map(String::as_str),
                derivation: derivation.map(|derivation| self.steps(derivation)),
            }
        };
        needs.iter().zip(proofs).map(of).collect()
    }

    fn steps(self, derivation: Vec<Derived<'a>>) -> Vec<DerivedJson<'a>> {
        derivation.into_iter().map(|derived| derived.json(self.plan)).collect()
    }

    fn failures(self, spot: Spot, failures: &[Failure]) -> Vec<Value> {
        failures.iter().map(|failure| self.failure(spot, failure)).collect()
    }

    fn failure(self, spot: Spot, failure: &Failure) -> Value {
        let place = self.plan.sources.place(spot);
        let mend = failure.mend.as_ref().map(|mend| {
            json!({
                "child": self.plan.child_name(self.plan.edges[mend.edge].child),
                "parameter": mend.parameter, "from_ns": mend.from_ns, "to_ns": mend.to_ns,
            })
        });
        json!({
            "rule": failure.rule, "file": place.file, "line": place.line, "column": place.column,
            "message": failure.message, "value": failure.value, "bound": failure.bound, "fix": mend,
        })
    }
}

fn given(share: &Option<Share>) -> Option<String> {
    share.as_ref().map(fraction_given)
}

fn share(share: &Option<Share>) -> Option<String> {
    share.as_ref().map(fraction)
}
