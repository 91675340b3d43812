//! What the work of the scheduler itself takes from everybody: `[machine] costs` in every test.
//!
//! Who comes in pays, as in the simulator, so all time is still charged to somebody. A *switch* is the most that one decision
//! can cost: switch, timer, level for each node of the deepest path, migration where something may come from another CPU.
//! Charged are
//!
//! - to a job, and to each part of one that suspends itself: two switches, the one to it and the one back to whom it preempted; a third, begun before it came for whom
//!   it outranks, blocks it once;
//! - to a budget: what the switch under way overran at its last end, the first switch of its period, and one for every time
//!   at which something outside of its part of the graph may come between, within a period;
//! - to a quantum: one switch at its begin; it may last one longer, and so may all others;
//! - to whoever runs: a timer for every replenishment elsewhere that preempts nobody, for whatever else a policy waits for (the end of a
//!   period of `mixed-criticality`, too long a wait in `time-sharing`, the return of a warp), and for the end of each turn of a child
//!   with a quantum of its own.
//!
//! When others may come between is known from their loads (arrivals, ends of waits) and budgets (one replenishment per
//! period). Where it is not known nothing is promised. What the owner of a guarantee causes himself, by waking up, is his own.

use crate::demand::jobs::announces;
use crate::demand::locks::Locks;
use crate::demand::uncounted_threads::{crowd, is_live, live_sets};
use crate::share;
use std::collections::BTreeMap;
use std::rc::Rc;
use tierce_analysis::Task;
use tierce_guarantee::{whole, Exact, Guarantee, Kind, Parameter, TIME_MAX_NS};
use tierce_plan::policies::reservation::{Replenishment, ServerRules};
use tierce_plan::policies::slots::Reserve;
use tierce_plan::policies::{self, fair, PolicyRecord};
use tierce_plan::Cpus;
use tierce_plan::Shape;
use tierce_plan::{Child, Edge, Load, Phase, Plan};

/// Happens once in a long time: as a period of events that happen once.
const ONCE: u64 = u64::MAX;

/// Events: how many of each period and jitter. In a window of t there are at most ⌈(t + jitter)/period⌉ of each.
#[derive(Clone, Debug, Default)]
struct Events(BTreeMap<(u64, u64), u64>);

impl Events {
    fn add(&mut self, count: u64, period_ns: u64, jitter_ns: u64) {
        *self.0.entry((period_ns.max(1), jitter_ns)).or_default() += count;
    }

    fn join(&mut self, other: &Self) {
        other.0.iter().for_each(|((period, jitter), count)| self.add(*count, *period, *jitter));
    }

    /// All but those of `some`, which are among them.
    fn without(&self, some: &Self) -> Self {
        let mut rest = self.clone();
        for (key, count) in &some.0 {
            if let Some(all) = rest.0.get_mut(key) {
                *all = all.saturating_sub(*count);
            }
        }
        rest.0.retain(|_, count| *count > 0);
        rest
    }

    fn within(&self, window_ns: u64) -> u64 {
        let of = |((period, jitter), count): (&(u64, u64), &u64)| {
            window_ns.saturating_add(*jitter).div_ceil(*period).saturating_mul(*count)
        };
        self.0.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Their time if each takes `each_ns`: at most rate·t + burst in a window of t.
    fn line(&self, each_ns: u64) -> (Exact, u64) {
        let rate =
            share::sum(self.0.iter().map(|((period, _), count)| (count.saturating_mul(each_ns), *period)));
        let burst = |((period, jitter), count): (&(u64, u64), &u64)| {
            let events = u128::from(*count) * (u128::from(*period) + u128::from(*jitter));
            u64::try_from((events * u128::from(each_ns)).div_ceil(u128::from(*period))).unwrap_or(u64::MAX)
        };
        (rate, self.0.iter().map(burst).fold(0, u64::saturating_add))
    }
}

/// Events of many, of which one asks often.
#[derive(Clone, Debug, Default)]
struct Crowd {
    events: Events,
    /// Period, jitter, count, by period; and how many these and all longer ones are.
    by_period: Vec<(u64, u64, u64, u64)>,
    jitter_max_ns: u64,
}

impl Crowd {
    fn new(events: Events) -> Self {
        let mut by_period: Vec<_> =
            events.0.iter().map(|((period, jitter), count)| (*period, *jitter, *count, 0)).collect();
        by_period.iter_mut().rev().fold(0u64, |longer, one| {
            one.3 = longer.saturating_add(one.2);
            one.3
        });
        let jitter_max_ns = by_period.iter().map(|(_, jitter, ..)| *jitter).max().unwrap_or(0);
        Self { events, by_period, jitter_max_ns }
    }

    /// As [`Events::within`], of a window above 0: of what has longer periods there is one each.
    fn within(&self, window_ns: u64) -> u64 {
        let longest_ns = window_ns.saturating_add(self.jitter_max_ns);
        let (short, long) = self.by_period.split_at(self.by_period.partition_point(|one| one.0 < longest_ns));
        let of = |(period, jitter, count, _): &(u64, u64, u64, u64)| {
            window_ns.saturating_add(*jitter).div_ceil(*period).saturating_mul(*count)
        };
        short.iter().map(of).fold(long.first().map_or(0, |one| one.3), u64::saturating_add)
    }
}

/// Why it is not known how often something happens.
type Unknown = String;

/// Timers that go off in the middle of whoever runs.
pub struct Timers {
    each_ns: u64,
    events: Events,
}

impl Timers {
    /// As jobs that come before all others.
    pub fn as_jobs(&self) -> Vec<Task> {
        let job = |((period, jitter), count): (&(u64, u64), &u64)| Task {
            jitter_ns: *jitter,
            ..Task::new(self.each_ns.saturating_mul(*count), *period)
        };
        self.events.0.iter().map(job).collect()
    }

    /// What they leave of a guarantee; `None`: nothing.
    pub fn leave(&self, guarantee: &Guarantee) -> Option<Guarantee> {
        let toll = Toll { timer_ns: self.each_ns, timers: self.events.clone(), ..Toll::default() };
        toll.of(guarantee)
    }
}

/// What the time outside of a part of the graph costs that part.
#[derive(Clone, Debug, Default)]
pub struct Toll {
    switch_ns: u64,
    timer_ns: u64,
    switches: Events,
    /// More switches: of all that are below one node, but for some of them. Thousands of children share the former.
    others: Vec<(Rc<Crowd>, Events)>,
    timers: Events,
}

impl Toll {
    fn join(&mut self, other: &Self) {
        self.switches.join(&other.switches);
        self.others.extend(other.others.iter().cloned());
        self.timers.join(&other.timers);
    }

    /// At most this much within a window.
    pub fn within(&self, window_ns: u64) -> u64 {
        let others = self.others.iter().map(|(all, but)| match all.within(window_ns) {
            u64::MAX => u64::MAX,
            all => all.saturating_sub(but.within(window_ns)),
        });
        let switches = others.fold(self.switches.within(window_ns), u64::saturating_add);
        let switches_ns = switches.saturating_mul(self.switch_ns);
        switches_ns.saturating_add(self.timers.within(window_ns).saturating_mul(self.timer_ns))
    }

    /// All switches.
    fn switches(&self) -> Events {
        let mut switches = self.switches.clone();
        self.others.iter().for_each(|(all, but)| switches.join(&all.events.without(but)));
        switches
    }

    /// What is left of a guarantee when that is paid; `None`: nothing.
    pub fn of(&self, guarantee: &Guarantee) -> Option<Guarantee> {
        let switches =
            !self.switches.0.is_empty() || self.others.iter().any(|(all, but)| all.events.0 != but.0);
        if !switches && (self.timers.0.is_empty() || self.timer_ns == 0) {
            return Some(guarantee.clone());
        }
        if let Some((amount, period)) = guarantee.amount_and_period().filter(|_| !guarantee.is_whole_cpu()) {
            let window_ns = u64::try_from(period.ceil().to_integer()).ok()?;
            let kind = if guarantee.kind().is_basic() { Kind::Resbs } else { Kind::Rescs };
            return Guarantee::reservation(kind, amount - whole(self.within(window_ns)), period.clone());
        }
        let error = guarantee.get(Parameter::Error).cloned().unwrap_or_else(|| whole(0));
        match guarantee.kind() {
            Kind::Null => Some(Guarantee::null()),
            Kind::Ps | Kind::Resu => Guarantee::ps(rounded(guarantee.share() - self.line().0)),
            _ => self.of_line(guarantee.share(), error),
        }
    }

    fn line(&self) -> (Exact, u64) {
        let (switches, timers) = (self.switches().line(self.switch_ns), self.timers.line(self.timer_ns));
        (switches.0 + timers.0, switches.1.saturating_add(timers.1))
    }

    fn of_line(&self, share: Exact, error: Exact) -> Option<Guarantee> {
        let (rate, burst_ns) = self.line();
        Guarantee::psbe(rounded(share - rate), (error + whole(burst_ns)).ceil())
    }
}

/// Down to a millionth: what costs leave would have denominators of any length.
fn rounded(share: Exact) -> Exact {
    let scale = whole(1_000_000);
    (share * &scale).floor() / scale
}

/// The costs of a plan's machine, and when they arise. All 0 when it has none.
pub struct Overheads<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    /// How long tasks wait for locks.
    pub locks: Locks,
    /// The most that one decision can cost, by CPU.
    switches_ns: Vec<u64>,
    /// Events at which what is below each edge may begin to want the CPU, or to have it again.
    ready: Vec<Result<Events, Unknown>>,
    /// Of all edges below each node together.
    all_ready: Vec<Result<Rc<Crowd>, Unknown>>,
    /// Timers at and below each edge.
    timers: Vec<Result<Events, Unknown>>,
}

impl<'a> Overheads<'a> {
    pub fn new(plan: &'a Plan, shape: &'a Shape) -> Self {
        let mut overheads = Self {
            plan,
            shape,
            locks: Locks::of(plan, shape),
            switches_ns: Vec::new(),
            ready: Vec::new(),
            all_ready: Vec::new(),
            timers: Vec::new(),
        };
        if overheads.is_none() {
            return overheads;
        }
        overheads.switches_ns = (0..plan.machine.cpus).map(|cpu| overheads.switch_on(cpu)).collect();
        overheads.ready = vec![Ok(Events::default()); plan.edges.len()];
        overheads.timers = vec![Ok(Events::default()); plan.edges.len()];
        overheads.all_ready = vec![Ok(Rc::default()); plan.nodes.len()];
        for node in shape.order.iter().rev() {
            for edge in &shape.children[*node] {
                overheads.ready[*edge] = overheads.wakes(*edge, None);
                overheads.timers[*edge] = overheads.timers_at(*edge);
            }
            let mut all: Result<Events, Unknown> = Ok(Events::default());
            for edge in &shape.children[*node] {
                match (&mut all, &overheads.ready[*edge]) {
                    (Ok(all), Ok(ready)) => all.join(ready),
                    (_, Err(unknown)) => all = Err(unknown.clone()),
                    (Err(_), _) => break,
                }
            }
            overheads.all_ready[*node] = all.map(|all| Rc::new(Crowd::new(all)));
        }
        overheads
    }

    /// The machine has no costs.
    pub fn is_none(&self) -> bool {
        self.plan.machine.costs == Default::default()
    }

    /// The most that one decision on the CPUs of a node can cost.
    pub fn switch_ns(&self, node: usize) -> u64 {
        let here = (0..).zip(&self.switches_ns).filter(|(cpu, _)| self.shape.reach[node].has(*cpu));
        here.map(|(_, switch_ns)| *switch_ns).max().unwrap_or(0)
    }

    /// The most that one decision on a CPU can cost.
    fn switch_on(&self, cpu: u32) -> u64 {
        let costs = self.plan.machine.costs;
        let here = |reach: Cpus| reach.has(cpu);
        let nodes = || (0..self.plan.nodes.len()).filter(|node| here(self.shape.reach[*node]));
        let deepest = nodes().map(|other| self.shape.depth[other]).max().unwrap_or(1) as u64;
        let several = |task: usize| {
            let reach = self.shape.task_reach(self.plan, task);
            here(reach) && reach.are_several()
        };
        let migrates =
            (0..self.plan.tasks.len()).any(several) || nodes().any(|other| self.shape.shared(other));
        let migration_ns = if migrates { self.plan.machine.worst_migration_ns() } else { 0 };
        let levels_ns = costs.level_ns.saturating_mul(deepest);
        [costs.timer_ns, levels_ns, migration_ns].into_iter().fold(costs.switch_ns, u64::saturating_add)
    }

    /// A job with its switches; `node`: below which it is.
    pub fn job(&self, node: usize, job: Task) -> Task {
        self.job_in_parts(node, job, 1)
    }

    /// The same of one that suspends itself between so many parts, each of which comes as a job does.
    pub fn job_in_parts(&self, node: usize, job: Task, parts: u64) -> Task {
        let switch_ns = self.switch_ns(node).saturating_mul(parts);
        let work_ns = job.work_ns.saturating_add(switch_ns.saturating_mul(2));
        Task { work_ns, blocking_ns: job.blocking_ns.saturating_add(switch_ns), ..job }
    }

    /// Timers of some edges of a node and of those below them, which cost whoever runs.
    pub fn timers(&self, edges: &[usize]) -> Result<Timers, Unknown> {
        let each_ns = self.plan.machine.costs.timer_ns;
        let mut events = Events::default();
        if !self.is_none() && each_ns > 0 {
            for edge in edges {
                events.join(self.timers[*edge].as_ref().map_err(Unknown::clone)?);
            }
        }
        Ok(Timers { each_ns, events })
    }

    /// What others cost the child of an edge: of those below the same parent, of those above, and of its other parents;
    /// without the turns that it takes itself with those below the same parent.
    pub fn outside(&self, edge: usize) -> Result<Toll, Unknown> {
        let parent = self.plan.edges[edge].parent;
        let mut toll = self.beside(edge)?;
        toll.join(&self.above(parent)?);
        Ok(toll)
    }

    /// Without those above.
    pub fn beside(&self, edge: usize) -> Result<Toll, Unknown> {
        let mut toll = self.siblings(edge, false)?;
        let child = self.plan.edges[edge].child;
        for other in self.parents(child).iter().filter(|other| **other != edge) {
            toll.join(&self.siblings(*other, true)?);
            toll.switches.join(&self.replenishments(&self.plan.edges[*other], 2)); // its budget ends and begins
            toll.join(&self.above(self.plan.edges[*other].parent)?);
        }
        Ok(toll)
    }

    fn parents(&self, child: Child) -> &[usize] {
        match child {
            Child::Node(node) => &self.shape.parents[node],
            Child::Task(task) => &self.shape.task_parents[task],
            Child::Set(_) => &[],
        }
    }

    fn above(&self, node: usize) -> Result<Toll, Unknown> {
        let mut toll = self.toll(node);
        let parents = &self.shape.parents[node];
        for edge in parents {
            toll.join(&self.siblings(*edge, true)?);
            toll.switches.join(&self.replenishments(&self.plan.edges[*edge], parents.len().min(2) as u64));
            toll.join(&self.above(self.plan.edges[*edge].parent)?);
        }
        Ok(toll)
    }

    fn toll(&self, node: usize) -> Toll {
        let timer_ns = self.plan.machine.costs.timer_ns;
        Toll { switch_ns: self.switch_ns(node), timer_ns, ..Toll::default() }
    }

    /// What the other children of the parent cost, with or without the turns between them.
    fn siblings(&self, edge: usize, turns: bool) -> Result<Toll, Unknown> {
        let (plan, own) = (self.plan, &self.plan.edges[edge]);
        let mut toll = self.toll(own.parent);
        let Some(policy) = policies::by_number(plan.nodes[own.parent].policy) else { return Ok(toll) };
        let siblings = &self.shape.children[own.parent];
        let several = self.parents(own.child).len() > 1;
        let quantum = policies::quantum(policy);
        let priority = policies::priority(policy);
        let warp = policies::position(&policy.edge_params, "warp");
        // Many children that all come between alike.
        let alike = !several && quantum.is_none() && priority.is_none() && warp.is_none();
        let all = self.all_ready[own.parent].as_ref().ok().filter(|_| alike);
        let ready = self.ready[edge].as_ref().ok();
        let at_once = all.zip(ready);
        let one_by_one: &[usize] = if at_once.is_some() { &[] } else { siblings };
        toll.others.extend(at_once.map(|(all, ready)| (all.clone(), ready.clone())));
        let credited = fair::credit(plan, own.parent) > 0;
        for other in one_by_one.iter().filter(|other| **other != edge) {
            let params = &plan.edges[*other].params;
            if credited {
                let parent = &plan.nodes[own.parent].name;
                return Err(format!(
                    "how often a child of `{parent}` that wakes preempts others by its credit is not known"
                ));
            }
            if warp.is_some_and(|warp| params[warp] > 0) {
                let (name, parent) =
                    (plan.child_name(plan.edges[*other].child), &plan.nodes[own.parent].name);
                return Err(format!(
                    "how often `{name}` comes before others of `{parent}` by its warp is not known"
                ));
            }
            let waits = quantum.is_some() || priority.is_some_and(|at| params[at] <= own.params[at]);
            if waits {
                toll.timers.join(&self.timers(&[*other])?.events);
            } else if several {
                toll.switches.join(&self.wakes(*other, Some(own.child))?);
                toll.timers.join(&self.timers(&[*other])?.events);
            } else {
                toll.switches.join(self.ready[*other].as_ref().map_err(Unknown::clone)?);
            }
        }
        if let Some(unknown) = self.stranger(own, policy) {
            return Err(unknown);
        }
        toll.timers.join(&self.turns(own));
        if let Some(at) = quantum.filter(|_| turns && siblings.len() > 1) {
            toll.switches.add(1, plan.nodes[own.parent].params[at], 0);
            toll.switches.add(1, ONCE, 0);
        }
        Ok(toll)
    }

    /// Threads that match nothing may come between.
    fn stranger(&self, own: &Edge, policy: &PolicyRecord) -> Option<Unknown> {
        let each = self.plan.each.as_ref().filter(|_| self.plan.nodes[own.parent].default)?;
        let before = match policies::priority(policy) {
            Some(at) => each.params[at] > own.params[at],
            None => policies::quantum(policy).is_none(),
        };
        before.then(|| format!("any number of threads may come to `{}`", self.plan.nodes[own.parent].name))
    }

    /// When what is below an edge may begin to want the CPU, or has a budget again; `but` is left out.
    fn wakes(&self, edge: usize, but: Option<Child>) -> Result<Events, Unknown> {
        let about = &self.plan.edges[edge];
        if Some(about.child) == but {
            return Ok(Events::default());
        }
        let way = ServerRules::of(self.plan, about.parent);
        if way.is_endless() {
            let name = self.plan.child_name(about.child);
            return Err(format!("how often the budget of `{name}` comes back at once is not known"));
        }
        let mut events = self.replenishments(about, self.parts(about.parent));
        if self.plan.machine.costs.timer_ns > 0 {
            events.join(&self.other_timers(about)?); // which cost less than a switch
        }
        match about.child {
            Child::Task(task) => {
                if self.shape.task_reach(self.plan, task).are_several() {
                    return Err(format!("several CPUs reach `{}`", self.plan.tasks[task].name));
                }
                if is_live(self.plan, edge) {
                    return Err(format!(
                        "any number of threads may match like `{}`",
                        self.plan.tasks[task].name
                    ));
                }
                if let Some(load) = &self.plan.tasks[task].load {
                    if !load.sections().is_empty() {
                        let name = &self.plan.tasks[task].name;
                        return Err(format!("how often `{name}` waits for a lock is not known"));
                    }
                    wakes_of(load, &mut events);
                }
            }
            Child::Node(node) => {
                if self.shape.shared(node) {
                    return Err(format!("several CPUs reach `{}`", self.plan.nodes[node].name));
                }
                if self.plan.nodes[node].default {
                    return Err(format!(
                        "any number of threads may come to `{}`",
                        self.plan.nodes[node].name
                    ));
                }
                for below in &self.shape.children[node] {
                    match but {
                        Some(_) => events.join(&self.wakes(*below, but)?),
                        None => events.join(self.ready[*below].as_ref().map_err(Unknown::clone)?),
                    }
                }
            }
            Child::Set(_) => {}
        }
        Ok(events)
    }

    /// Timers at an edge, and at those below it.
    fn timers_at(&self, edge: usize) -> Result<Events, Unknown> {
        let about = &self.plan.edges[edge];
        let mut timers = self.turns(about);
        timers.join(&self.timers_of(about)?);
        if let Child::Node(child) = about.child {
            self.uncounted_threads_set_none(child)?;
            for below in &self.shape.children[child] {
                timers.join(self.timers[*below].as_ref().map_err(Unknown::clone)?);
            }
        }
        Ok(timers)
    }

    /// Else nobody knows how many timers there are below a node.
    fn uncounted_threads_set_none(&self, node: usize) -> Result<(), Unknown> {
        let plan = self.plan;
        let unmatched = || Edge::plain(node, Child::Set(0), plan.default_params().0, false);
        let unmatched = plan.nodes[node].default.then(unmatched);
        let matched = live_sets(plan, node).map(|(_, edge)| edge.clone());
        for about in matched.chain(unmatched) {
            if !self.timers_of(&about)?.0.is_empty() {
                let who = crowd(plan, node).unwrap_or_default();
                return Err(format!("{who}, and each sets timers"));
            }
        }
        Ok(())
    }

    /// Timers that the policy above an edge sets for it while others run.
    fn timers_of(&self, about: &Edge) -> Result<Events, Unknown> {
        let mut timers = self.replenishments(about, self.parts(about.parent));
        timers.join(&self.other_timers(about)?);
        Ok(timers)
    }

    /// In how many parts a budget below a node may come back: a sporadic one in up to three.
    fn parts(&self, parent: usize) -> u64 {
        match ServerRules::of(self.plan, parent).replenishment {
            Replenishment::Sporadic => 3,
            _ => 1,
        }
    }

    /// All of them but for replenishments.
    fn other_timers(&self, about: &Edge) -> Result<Events, Unknown> {
        let (plan, parent) = (self.plan, &self.plan.nodes[about.parent]);
        let mut events = Events::default();
        let Some(policy) = policies::by_number(parent.policy) else { return Ok(events) };
        let name = &parent.name;
        if policy.added {
            return Err(format!("how often `{name}` sets a timer, whose policy was added, is not known"));
        }
        let of_edge = |name| policies::position(&policy.edge_params, name).map_or(0, |at| about.params[at]);
        let of_node = |name| policies::position(&policy.node_params, name).map_or(0, |at| parent.params[at]);
        if policies::position(&policy.edge_params, "work_hi").is_some() {
            events.add(1, of_edge("period"), 0); // a period of its own ends
        }
        let unwarp_ns = of_edge("unwarp");
        if unwarp_ns > 0 {
            events.add(1, unwarp_ns.saturating_add(of_edge("warp_limit")), 0); // it has its warp again
        }
        // It waits for too long. Of two timers that follow each other the second may come at any time after the first, of three
        // the last comes at least that long after the first.
        let starvation_ns = of_node("starvation");
        if starvation_ns > 0 {
            if self.parents(about.child).len() > 1 {
                return Err(format!("how often a child of `{name}` comes back to it is not known"));
            }
            events.add(2, starvation_ns, 0);
        }
        if policies::share(policy).is_some() {
            if announces(plan, about.child) {
                return Err(format!("how often the deadlines below `{name}` change is not known"));
            }
            events.add(1, of_node("period"), 0); // its share is used up until then
        }
        if policies::own_budget(policy).is_some() && may_ask(plan, about.child) {
            return Err(format!("how often `{name}` is asked for time constraints is not known"));
        }
        Ok(events)
    }

    /// The ends of the turns of a child with a quantum of its own: each is a timer, also where it has no equals.
    fn turns(&self, about: &Edge) -> Events {
        let policy = policies::by_number(self.plan.nodes[about.parent].policy);
        let quantum = policy.and_then(|policy| policies::position(&policy.edge_params, "quantum"));
        let mut events = Events::default();
        if let Some(turn_ns) = quantum.map(|at| about.params[at]).filter(|ns| *ns > 0) {
            events.add(1, turn_ns, 0);
        }
        events
    }

    /// `count` per period, where the edge has a budget or a reserve.
    fn replenishments(&self, edge: &Edge, count: u64) -> Events {
        let mut events = Events::default();
        let policy = policies::by_number(self.plan.nodes[edge.parent].policy);
        if let Some((_, period)) = policy.and_then(policies::budget_and_period) {
            events.add(count, edge.params[period], 0);
        }
        if let Some(reserve) = Reserve::of(self.plan, edge) {
            events.add(count.saturating_mul(2), reserve.slot_ns, 0); // it opens and closes
        }
        events
    }
}

/// May a child ask for time constraints? Of nodes nobody knows.
fn may_ask(plan: &Plan, child: Child) -> bool {
    let Child::Task(task) = child else { return true };
    match &plan.tasks[task].load {
        Some(Load::Phases(load)) => {
            load.phases.iter().any(|phase| matches!(phase, Phase::Run { within_ns: Some(_), .. }))
        }
        Some(_) => false,
        None => true,
    }
}

/// When a load wakes up.
fn wakes_of(load: &Load, events: &mut Events) {
    match load {
        Load::Busy => events.add(1, ONCE, 0),
        Load::Periodic(load) => events.add(1, load.period_ns, load.jitter_ns),
        Load::Sporadic(load) => events.add(1, load.separation_ns, 0),
        Load::Triggered(load) => events.add(1, load.period_ns, load.jitter_ns.unwrap_or(TIME_MAX_NS)),
        Load::Phases(load) => {
            events.add(1, ONCE, 0);
            // The same wait comes again after a pass at the earliest, a timer after its period.
            let (mut waits, mut pass_ns) = (0, 0u64);
            for phase in &load.phases {
                let (work, wait) = match phase {
                    Phase::Run { work, .. } => (work, 0),
                    Phase::Sleep(work) | Phase::Suspend(work) => (work, 1),
                    Phase::Timer { period_ns, .. } => {
                        events.add(1, *period_ns, 0);
                        continue;
                    }
                };
                waits += wait;
                pass_ns = pass_ns.saturating_add(work.min_ns());
            }
            if waits > 0 {
                events.add(waits, pass_ns, 0);
            }
        }
        Load::Stages(load) => load.jobs().for_each(|jobs| events.add(1, jobs.period_ns, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_counts_like_its_events() {
        let mut events = Events::default();
        for (count, period, jitter) in [(2, 10, 0), (1, 10, 7), (3, 25, 40), (1, 100, 0), (5, ONCE, 0)] {
            events.add(count, period, jitter);
        }
        let crowd = Crowd::new(events.clone());
        for window in (1..200).chain([u64::MAX]) {
            assert_eq!(crowd.within(window), events.within(window), "{window}");
        }
    }
}
