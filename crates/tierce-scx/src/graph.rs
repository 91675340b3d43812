//! The graph in force as it is now: its parts by name, with what the kernel side has counted for each.

use crate::live::{now_ns, Jobs, Live};
use crate::moment::Moment;
use crate::threads::{self, Proc};
use serde_json::{json, Value};
use std::collections::{HashMap, HashSet};
use tierce_plan::{show_time, Matcher};
use tierce_policy::{policies, raw, Param, PolicyRecord, TASK};
use tierce_trace::promise::Promise;

/// Version of [`Live::graph`].
pub const GRAPH_VERSION: u32 = 1;

/// `enum tierce_own`: of the default node.
const OWN_DEFAULT: u16 = 1;

pub(crate) fn policy(number: u32) -> Option<&'static PolicyRecord> {
    policies().iter().find(|policy| policy.number == number)
}

/// Times in nanoseconds, counts as numbers, choices and fractions as plans have them.
fn params(records: &[Param], values: &[u64]) -> Value {
    let one = |(param, value): (&Param, &u64)| match param.kind {
        _ if param.is_time() => (format!("{}_ns", param.name), json!(value)),
        tierce_policy::ParamKind::Count => (param.name.to_string(), json!(value)),
        _ => (param.name.to_string(), json!(param.show(*value, show_time))),
    };
    Value::Object(records.iter().zip(values).map(one).collect())
}

impl Live {
    /// CPUs, nodes and tasks, and whoever ran outside the graph. What is counted is counted since a part came.
    pub fn graph(&self) -> Value {
        let (plan, ids, kernel) = (self.plan(), self.ids(), self.kernel());
        let moment = Moment::of(kernel, now_ns());
        let names: HashMap<u32, &str> =
            ids.nodes.iter().zip(&plan.nodes).map(|(id, node)| (*id, &node.name[..])).collect();
        let nodes = plan.nodes.iter().zip(&ids.nodes).map(|(node, &id)| {
            let about = moment.node(id);
            let record = policy(node.policy);
            let under = moment.under(id, &names);
            let supply: u64 = under.iter().filter_map(|edge| edge["supply_ns"].as_u64()).sum();
            json!({
                "name": node.name,
                "policy": record.map(|record| record.name),
                "params": params(record.map_or(&[], |record| &record.node_params), &about.params()),
                "concurrency": node.concurrency,
                "default": node.default,
                "supply_ns": supply,
                "under": under,
            })
        });
        let planned = ids.tasks.iter().zip(&plan.tasks).filter(|(id, _)| **id != 0);
        let planned = planned.map(|(id, task)| self.task(*id, Some(&task.name), None, &names, &moment));
        let members: HashMap<u32, &str> = self.bound().into_iter().collect();
        let threads = (1..moment.nodes_len()).filter(|id| moment.node(*id).kind == TASK).filter_map(|id| {
            let leaf = kernel.leaf(id);
            let set = if leaf.own == OWN_DEFAULT { None } else { members.get(&leaf.pid).copied() };
            (leaf.own != 0 && leaf.pid != 0).then(|| self.task(id, None, set, &names, &moment))
        });
        let sets = plan.sets.iter().map(|set| {
            let under = set.ways().flatten().map(|edge| {
                let record = policy(plan.nodes[edge.parent].policy);
                let records = record.map_or(&[][..], |record| &record.edge_params);
                let parent = &plan.nodes[edge.parent];
                let name = if edge.spread { &parent.base } else { &parent.name };
                json!({ "parent": name, "params": params(records, &edge.params) })
            });
            json!({ "name": set.name, "under": under.collect::<Vec<_>>() })
        });
        let cpus = (0..).zip(&moment.cpus).map(|(cpu, state)| self.graph_cpu(cpu, state));
        json!({
            "version": GRAPH_VERSION,
            "plan": plan.name,
            "elapsed_ns": moment.now_ns.saturating_sub(self.start_ns()),
            "cpus": cpus.collect::<Vec<_>>(),
            "outside": self.outside(),
            "nodes": nodes.collect::<Vec<_>>(),
            "sets": sets.collect::<Vec<_>>(),
            "tasks": planned.chain(threads).collect::<Vec<_>>(),
        })
    }

    /// Bound threads that exist, below parts whose names begin so.
    pub fn threads(&self, names_begin: &str) -> Vec<Value> {
        let mut shown: HashMap<*const Matcher, String> = HashMap::new(); // thousands of threads match by a few
        let wanted = |(tid, name): &(u32, &str)| name.starts_with(names_begin) && threads::exists(*tid);
        let thread = |(tid, name): (u32, &str)| {
            let by = self.matched_by(tid);
            let by = by.map(|by| &**shown.entry(by).or_insert_with(|| by.to_string()));
            self.bound_thread(tid, name, by)
        };
        self.bound().into_iter().filter(wanted).map(thread).collect()
    }

    /// A bound thread: below which part, what made it match, and its jobs as the kernel side counts them, once it is where it belongs.
    pub fn bound_thread(&self, tid: u32, name: &str, by: Option<&str>) -> Value {
        let mut thread = json!({ "tid": tid, "name": name, "by": by });
        if let Some(Jobs { begun, misses, deadline_ns }) = self.jobs(tid) {
            thread["jobs"] = begun.into();
            thread["misses"] = misses.into();
            thread["deadline_ns"] = deadline_ns.into();
        }
        if let Some(class) = self.class_before(tid) {
            thread["class"] = class.to_string().into();
        }
        thread
    }

    /// A row for each edge with a budget, or to which something else was promised: of nodes, then of tasks and of threads of sets; of
    /// those whose names begin so. With `all_edges`: every edge of these, whatever was promised to it.
    pub fn promises(&self, names_begin: &str, all_edges: bool) -> Vec<Value> {
        let (plan, ids, moment) = (self.plan(), self.ids(), Moment::of(self.kernel(), now_ns()));
        let names: HashMap<u32, &str> =
            ids.nodes.iter().zip(&plan.nodes).map(|(id, node)| (*id, &node.name[..])).collect();
        let nodes = ids.nodes.iter().zip(&plan.nodes).map(|(id, node)| (*id, &node.name[..], None));
        let tasks = ids.tasks.iter().zip(&plan.tasks).filter(|(id, _)| **id != 0);
        let tasks = tasks.map(|(id, task)| {
            (*id, &task.name[..], Some(self.kernel().leaf(*id).pid).filter(|tid| *tid != 0))
        });
        let in_tasks: HashSet<u32> = ids.tasks.iter().copied().collect();
        let threads = self.bound().into_iter().filter_map(|(tid, name)| {
            let leaf = self.leaf_of(tid).filter(|leaf| !in_tasks.contains(leaf))?;
            (self.kernel().leaf(leaf).pid == tid).then_some((leaf, name, Some(tid)))
        });
        let all = nodes.chain(tasks).chain(threads).filter(|(_, name, _)| name.starts_with(names_begin));
        let (moment, names) = (&moment, &names);
        let rows = all.flat_map(|(id, name, tid)| {
            // Of thousands of threads hardly one has such an edge.
            let edges = moment.edges_above(id).filter(move |(_, edge)| all_edges || moment.is_promised(edge));
            edges.map(move |(_, edge)| {
                let jobs = tid.and_then(|tid| self.jobs(tid)).filter(|jobs| jobs.deadline_ns.is_some());
                let above = moment.edge_as_json(edge, names);
                // Of a share: what is promised in which time, if anything is.
                let share = edge.flags & raw::EDGE_PROMISED != 0;
                let times =
                    if share { ["promised_ns", "promise_period_ns"] } else { ["budget_ns", "period_ns"] };
                json!({
                    "name": name,
                    "tid": tid,
                    "parent": above["parent"],
                    "budget_ns": above["params"][times[0]],
                    "period_ns": above["params"][times[1]],
                    "supply_ns": above["supply_ns"],
                    "throttles": above["throttles"],
                    "misses": jobs.map(|jobs| jobs.misses),
                    "promise": above["promise"],
                })
            })
        });
        rows.collect()
    }

    fn graph_cpu(&self, cpu: u32, state: &raw::Cpu) -> Value {
        let plan = self.plan();
        let root = plan.nodes.iter().find(|node| node.roots.contains(&cpu)).map(|node| &node.name);
        let interrupts_ns = state.taken_ns.min(state.stolen_ns);
        json!({
            "cpu": cpu,
            "root": root,
            "used_ns": state.used_ns,
            "idle_ns": state.idle_ns,
            "stolen_ns": state.stolen_ns,
            "stolen_by": { "interrupts_ns": interrupts_ns, "threads_ns": state.stolen_ns - interrupts_ns },
            "decisions": state.decisions,
        })
    }

    /// A task: one of the plan by its name, else the thread of a set or of the default node.
    fn task(
        &self,
        id: u32,
        name: Option<&str>,
        set: Option<&str>,
        names: &HashMap<u32, &str>,
        moment: &Moment,
    ) -> Value {
        let (about, leaf) = (moment.node(id), self.kernel().leaf(id));
        let tid = Some(leaf.pid).filter(|tid| *tid != 0);
        json!({
            "name": name,
            "set": set,
            "tid": tid,
            "comm": tid.and_then(threads::name),
            "ran_ns": about.ran_ns,
            "switches": about.switches,
            "migrations": about.migrations,
            "jobs": (leaf.deadline_ns != 0).then_some(leaf.job),
            "misses": (leaf.deadline_ns != 0 && leaf.deadline_ns != u64::MAX).then_some(leaf.misses),
            "under": moment.under(id, names),
        })
    }

    /// Threads of higher scheduling classes and kernel threads of one CPU, and what each has run since this one is in force.
    fn outside(&self) -> Vec<Value> {
        let proc = Proc::default();
        let may_be = |tid: &u32| threads::allowed_if_ruled(*tid).is_none();
        let threads = proc.ids().into_iter().filter(may_be).filter_map(|tid| proc.look(tid));
        let threads = threads.filter(|live| live.is_outside());
        let mut list: Vec<(u64, Value)> = threads
            .filter_map(|live| {
                let ran_ns =
                    threads::ran_ns(live.thread.tid)?.saturating_sub(self.ran_before(live.thread.tid));
                let (tid, comm) = (live.thread.tid, live.thread.comm);
                let one = json!({ "tid": tid, "comm": comm, "class": live.class.name(), "ran_ns": ran_ns });
                (ran_ns > 0).then_some((ran_ns, one))
            })
            .collect();
        list.sort_by_key(|(ran_ns, _)| std::cmp::Reverse(*ran_ns));
        list.into_iter().map(|(_, one)| one).collect()
    }
}

impl Moment {
    /// Edges above a node or task, for JSON.
    fn under(&self, id: u32, names: &HashMap<u32, &str>) -> Vec<Value> {
        self.edges_above(id).map(|(_, edge)| self.edge_as_json(edge, names)).collect()
    }

    fn edge_as_json(&self, edge: &raw::Edge, names: &HashMap<u32, &str>) -> Value {
        let parent = names.get(&edge.parent).map_or(format!("cpu{}", edge.cpu), |name| name.to_string());
        let records = self.edge_params(edge);
        json!({
            "parent": parent,
            "rank": edge.rank,
            "when_spent": edge.flags & raw::EDGE_WHEN_SPENT != 0,
            "params": params(records, &edge.params()),
            "supply_ns": edge.supply_ns,
            "grants": edge.grants,
            "throttles": edge.throttles,
            "replenishments": edge.replenishments,
            "forgiven_ns": edge.forgiven_ns,
            "promise": Promise::of(edge, self.now_ns),
            "spent": edge.flags & raw::EDGE_SPENT != 0,
        })
    }

    /// Does it have a budget, or has anything else been promised to it?
    fn is_promised(&self, edge: &raw::Edge) -> bool {
        let has_budget = self.edge_params(edge).iter().any(|param| param.name == "budget");
        has_budget || Promise::of(edge, self.now_ns).is_some()
    }

    /// What the policy above has for each child; nothing for a root.
    fn edge_params(&self, edge: &raw::Edge) -> &'static [Param] {
        let above = policy(self.node(edge.parent).kind).filter(|_| edge.parent != 0);
        above.map_or(&[], |record| &record.edge_params)
    }
}
