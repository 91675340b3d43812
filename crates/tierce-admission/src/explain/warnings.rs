//! Plans that hold but are unwise.

use crate::demand::jobs::job;
use crate::demand::overheads::Overheads;
use crate::demand::uncounted_threads::is_live;
use crate::explain::forged_matches;
use crate::explain::remedies::Remedy;
use crate::explain::search::EDGES_MAX;
use crate::explain::usual_mode;
use crate::explain::words::is_throttled;
use crate::share::{self, percent, percent_given, ratio, Share};
use crate::verdict::Admission;
use std::collections::BTreeMap;
use tierce_analysis::{server, Edf, FixedPriority, Supply, Task};
use tierce_guarantee::{Guarantee, Kind};
use tierce_plan::policies;
use tierce_plan::show_time;
use tierce_plan::Cpus;
use tierce_plan::Fault;
use tierce_plan::Shape;
use tierce_plan::Spot;
use tierce_plan::{Child, Edge, Load, Phase, Plan};

/// A reservation may be larger than its jobs need by a fifth. A budget of exactly the work is no advice: each cost that is charged to
/// it moves the end of a job into the next period. So a tenth is left of what is proposed.
const LARGER: (u64, u64) = (6, 5);

/// Jobs of a node for which the smallest reservation is looked for.
const JOBS_MAX: usize = 64;

const SECOND_NS: u64 = 1_000_000_000;

impl Admission {
    /// What is allowed but unwise, where the plan holds; and on what the deadlines rest that are met. In the order of the text.
    ///
    /// - `reservation_is_much_larger`: a reservation is more than a fifth larger than its jobs need.
    /// - `budget_on_every_cpu`: an edge without `cpu` gives a budget on each of several CPUs.
    /// - `default_node_is_limited`: all other threads get no more than budgets, even of a CPU that is idle.
    /// - `switches_are_many`: more switches per second and CPU are to be expected than `[machine] switches_max`.
    /// - `delay_grows_with_children`: jobs or needs below a fair node, whose delay grows with each child.
    /// - `round_is_long`: the rounds of an i-plus-pi node are longer than half the shortest period below it.
    /// - `interrupts_are_not_counted`: the machine's interrupts take time that no test takes into account.
    /// - `match_can_be_forged`: any user can start a thread that fits the `match` of a part that gets more than the default node.
    /// - `deadlines_of_usual_mode`: some hold only while no critical child needs more than it usually does.
    /// - `match_is_shadowed`: an earlier `match` takes every thread that this one fits.
    pub fn warnings(&self, plan: &Plan) -> Vec<Fault> {
        let shape = Shape::new(plan);
        let mut warnings = Vec::new();
        if self.holds {
            self.unwise(plan, &shape, &mut warnings);
        }
        warnings.extend(interrupts(plan));
        warnings.extend(usual_mode::warnings(self, plan, &shape));
        warnings.sort_by_key(|warning| warning.spot);
        warnings
    }

    fn unwise(&self, plan: &Plan, shape: &Shape, warnings: &mut Vec<Fault>) {
        self.larger(plan, shape, warnings);
        on_every_cpu(plan, warnings);
        warnings.extend(self.limited_default(plan, shape));
        switches(plan, shape, self, warnings);
        self.delays(plan, shape, warnings);
        rounds(plan, shape, warnings);
        warnings.extend(forged_matches::warnings(plan, shape));
        warnings.extend(plan.shadowed().into_iter().map(|(entry, earlier)| {
            let [name, first] = [entry, earlier].map(|entry| plan.child_name(entry.target));
            let message =
                format!("no thread belongs to `{name}`: `{first}` comes first and takes all that it matches");
            Fault::new("match_is_shadowed", entry.spot, message)
                .hint(format!("put `{name}` before `{first}`, or narrow that"))
        }));
    }

    fn limited_default(&self, plan: &Plan, shape: &Shape) -> Option<Fault> {
        let index = plan.default_node?;
        let node = &plan.nodes[index];
        if !is_throttled(plan, shape, &shape.parents[index]) {
            return None;
        }
        let most = percent_given(self.nodes[index].available.as_ref()?);
        let message = format!(
            "the default node `{}` has budgets only: all other threads together get at most {most} of a CPU, even while it is idle",
            node.base
        );
        let hint = format!(
            "give `{}` a second parent for time that is left, such as the node above the reservation",
            node.base
        );
        Some(Fault::new("default_node_is_limited", node.spot, message).hint(hint))
    }

    fn larger(&self, plan: &Plan, shape: &Shape, warnings: &mut Vec<Fault>) {
        let overheads = Overheads::new(plan, shape);
        for (index, edge) in plan.edges.iter().enumerate() {
            let Some(policy) = policies::by_number(plan.nodes[edge.parent].policy) else { continue };
            let Some((budget, period)) = policies::budget_and_period(policy) else { continue };
            let promised = self.edges[index].promises.first().map(|promise| &promise.guarantee);
            let Some((amount, _)) = promised.and_then(Guarantee::amount_and_period) else { continue };
            let (budget_ns, period_ns) = (edge.params[budget], edge.params[period]);
            // Costs take from the budget what is not promised.
            let costs = tierce_guarantee::whole(budget_ns) - amount;
            let costs_ns = u64::try_from(costs.ceil().to_integer()).unwrap_or(0);
            let needs_ns = match edge.child {
                Child::Task(task)
                    if shape.task_parents[task].len() == 1 && plan.tasks[task].needs.is_empty() =>
                {
                    let load = plan.tasks[task].load.as_ref().filter(|load| !load.is_soft());
                    let job = load.and_then(|load| job(load, 0));
                    let deadline = policies::position(&policy.edge_params, "deadline").unwrap_or(period);
                    let server =
                        Task { deadline_ns: edge.params[deadline], ..Task::new(budget_ns, period_ns) };
                    job.and_then(|job| alone(&overheads.job(edge.parent, job), &server))
                }
                Child::Node(node) if shape.parents[node].len() == 1 && plan.nodes[node].needs.is_empty() => {
                    smallest(plan, shape, &overheads, node, period_ns)
                }
                _ => None,
            };
            let Some(needs_ns) = needs_ns.map(|needs| needs.saturating_add(costs_ns)) else { continue };
            let larger =
                u128::from(budget_ns) * u128::from(LARGER.1) > u128::from(needs_ns) * u128::from(LARGER.0);
            let enough_ns = needs_ns.saturating_add(needs_ns / 10);
            // Each advice is tried, where that does not take long.
            let remedy = Remedy::Parameter { edge: index, at: budget, from: budget_ns, to: enough_ns };
            if larger && (plan.edges.len() > EDGES_MAX || Admission::of(&remedy.apply(plan)).holds) {
                let name = plan.child_name(edge.child);
                let more = percent(&(ratio(budget_ns, needs_ns.max(1)) - share::one()));
                let message = format!("the reservation of `{name}` is {more} larger than its jobs need");
                let fault =
                    Fault::new("reservation_is_much_larger", edge.spot, message).value(show_time(budget_ns));
                let hint = format!("budget = \"{}\" leaves a tenth to spare", show_time(enough_ns));
                warnings.push(fault.bound(format!("{} and a fifth", show_time(needs_ns))).hint(hint));
            }
        }
    }

    fn delays(&self, plan: &Plan, shape: &Shape, warnings: &mut Vec<Fault>) {
        let mut told = Vec::new(); // one replica of a spread node is enough
        for (index, node) in plan.nodes.iter().enumerate() {
            if node.family.is_some() && told.contains(&node.family) {
                continue;
            }
            let policy = policies::by_number(node.policy);
            let Some(quantum) = policy.and_then(policies::quantum) else { continue };
            let quantum = show_time(node.params[quantum]);
            let children = &shape.children[index];
            let first = children.iter().find(|edge| match plan.edges[**edge].child {
                Child::Task(task) if shape.task_parents[task].len() == 1 => {
                    let task = &plan.tasks[task];
                    task.load.as_ref().is_some_and(|load| load.deadline_ns().is_some())
                        || windows(&task.needs)
                }
                Child::Node(node) => shape.parents[node].len() == 1 && windows(&plan.nodes[node].needs),
                _ => false,
            });
            let (Some(edge), true) = (first, children.len() > 1 || node.default) else { continue };
            told.push(node.family);
            let name = plan.child_name(plan.edges[*edge].child);
            let open = node.default || children.iter().any(|edge| is_live(plan, *edge));
            let promise = self.edges[*edge].promises.first().map(|promise| &promise.guarantee);
            let gap = promise.and_then(|promise| tierce_guarantee::Supply::of(promise).longest_gap());
            let wait = match gap {
                _ if open => "may wait for any number of others".into(),
                Some(gap) => {
                    format!(
                        "may wait {} with {} children",
                        tierce_guarantee::noted_time(&gap, true),
                        children.len()
                    )
                }
                None => format!("may wait for {} others", children.len() - 1),
            };
            let message = format!(
                "`{name}` has deadlines or needs and takes turns below `{}`: it {wait}; each child more adds up to a quantum \
                 of {quantum}",
                if node.family.is_some() { &node.base } else { &node.name }
            );
            let hint = format!("a reservation for `{name}`: its delay does not depend on others");
            warnings.push(Fault::new("delay_grows_with_children", node.spot, message).hint(hint));
        }
    }
}

/// One edge of the text that is a budget on each CPU, where it does not say that this is meant.
fn on_every_cpu(plan: &Plan, warnings: &mut Vec<Fault>) {
    let edges = plan.edges.iter().chain(plan.sets.iter().flat_map(|set| &set.under));
    let mut by_place: BTreeMap<(Spot, Child), Vec<&Edge>> = BTreeMap::new();
    for edge in edges.filter(|edge| !edge.on_each && !edge.spread) {
        by_place.entry((edge.spot, edge.child)).or_default().push(edge);
    }
    let mut told = Vec::new(); // members of a set are told once
    for ((spot, child), edges) in by_place {
        let [first, _, ..] = edges[..] else { continue };
        let policy = policies::by_number(plan.nodes[first.parent].policy);
        let Some((budget, period)) = policy.and_then(policies::budget_and_period) else { continue };
        if told.contains(&spot) {
            continue;
        }
        told.push(spot);
        let (budget_ns, period_ns) = (first.params[budget], first.params[period].max(1));
        let together = percent(&share::sum(edges.iter().map(|_| (budget_ns, period_ns))));
        let name = plan.item_name(child);
        let name =
            if name == plan.child_name(child) { format!("`{name}`") } else { format!("each of `{name}`") };
        let message = format!(
            "{name} has a budget of {} in every {} on each of {} CPUs, {together} of a CPU together",
            show_time(budget_ns),
            show_time(period_ns),
            edges.len()
        );
        let hint = "cpu = \"any\" for one CPU where it fits, cpu = 0 for a certain one, cpu = \"all\" if a budget on each is meant";
        warnings.push(Fault::new("budget_on_every_cpu", spot, message).hint(hint));
    }
}

/// Any that speaks of windows.
fn windows(needs: &[tierce_plan::Need]) -> bool {
    let kind = |need: &tierce_plan::Need| Guarantee::parse(&need.text).map(|guarantee| guarantee.kind());
    needs.iter().any(|need| !matches!(kind(need), Ok(Kind::Null | Kind::Ps) | Err(_)))
}

/// The smallest budget of a server with which a task alone below it is shown to meet its deadlines: by budgets that begin with its
/// jobs, or wherever in the period they come.
fn alone(job: &Task, server: &Task) -> Option<u64> {
    let room_ns = job.deadline_ns.checked_sub(job.jitter_ns)?.checked_sub(server.deadline_ns);
    let budgets = room_ns.map(|room_ns| room_ns / server.period_ns + 1);
    let budgets =
        budgets.map(|most| most.min(job.period_ns.saturating_sub(job.jitter_ns) / server.period_ns));
    let early = u64::from(server.deadline_ns < server.period_ns);
    let begun = budgets.filter(|budgets| *budgets > 0).map(|most| {
        let budgets = if early == 1 { 1 } else { most };
        job.work_ns.div_ceil(budgets) + early
    });
    let meets = |supply: &Supply| supply.response_alone(job).meets(job.deadline_ns);
    let anywhere = server::smallest_budget(server.period_ns, meets);
    begun.into_iter().chain(anywhere).filter(|needs| *needs <= server.work_ns).min()
}

/// The smallest budget in which all jobs of a node meet their deadlines.
fn smallest(plan: &Plan, shape: &Shape, overheads: &Overheads, node: usize, period_ns: u64) -> Option<u64> {
    let policy = policies::by_number(plan.nodes[node].policy)?;
    let mut edges = shape.children[node].clone();
    let priority = policies::priority(policy);
    let deadline = policies::position(&policy.edge_params, "deadline").filter(|_| policy.heeds_deadlines);
    let of = |edge: usize| priority.or(deadline).map_or(0, |at| plan.edges[edge].params[at]);
    edges.sort_by_key(|edge| std::cmp::Reverse(of(*edge)));
    if edges.is_empty()
        || edges.len() > JOBS_MAX
        || plan.nodes[node].default
        || !(priority.is_some() || policies::by_deadline(policy))
    {
        return None;
    }
    let jobs = edges.iter().map(|edge| match plan.edges[*edge].child {
        Child::Task(task)
            if shape.task_parents[task].len() == 1
                && !is_live(plan, *edge)
                && plan.tasks[task].needs.is_empty() =>
        {
            let own_ns = if deadline.is_some() { of(*edge) } else { 0 };
            Some(overheads.job(node, job(plan.tasks[task].load.as_ref()?, own_ns)?))
        }
        _ => None,
    });
    let jobs = jobs.collect::<Option<Vec<_>>>()?;
    if priority.is_none() {
        let mut edf = Edf::new();
        return server::smallest_budget(period_ns, |supply| edf.schedulable(&jobs, supply));
    }
    let groups = edges.chunk_by(|a, b| of(*a) == of(*b)).enumerate();
    let levels: Vec<_> =
        groups.flat_map(|(level, equals)| equals.iter().map(move |_| level as u32)).collect();
    let mut analysis = FixedPriority::new();
    server::smallest_budget(period_ns, |supply| {
        let responses = analysis.responses_by_level(&jobs, &levels, supply);
        responses.iter().zip(&jobs).all(|(response, job)| response.meets(job.deadline_ns))
    })
}

/// Switches per second that are to be expected on each CPU: two for each job or wait, two for each period of a budget that may
/// be used up, one for each quantum of a node in which two or more always want the CPU.
/// Who wakes just after its turn waits for two rounds where nobody has several bursts in one.
fn rounds(plan: &Plan, shape: &Shape, warnings: &mut Vec<Fault>) {
    let mut shortest: Vec<Option<u64>> = vec![None; plan.nodes.len()];
    for index in shape.order.iter().rev() {
        let edges = shape.children[*index].iter();
        let periods = edges.filter_map(|edge| match plan.edges[*edge].child {
            Child::Task(task) => plan.tasks[task].load.as_ref().and_then(Load::shortest_period_ns),
            Child::Node(node) => shortest[node],
            Child::Set(_) => None,
        });
        shortest[*index] = periods.min();
        let (node, children) = (&plan.nodes[*index], shape.children[*index].len() as u64);
        let Some(policy) = policies::by_number(node.policy) else { continue };
        let at = |name| policies::position(&policy.node_params, name);
        let (Some(_), Some(round), Some(burst)) = (at("inner_gain"), at("round"), at("burst")) else {
            continue;
        };
        let round_ns = match node.params[round] {
            0 => node.params[burst].saturating_mul(children),
            given => given,
        };
        let Some(period_ns) = shortest[*index].filter(|period_ns| round_ns > period_ns / 2) else { continue };
        let message = format!("a round of `{}` is longer than half the shortest period below it", node.name);
        let fault = Fault::new("round_is_long", node.spot, message);
        let hint = "a task that sleeps for a moment waits for up to two rounds; multiburst avoids that";
        warnings.push(fault.value(show_time(round_ns)).bound(show_time(period_ns / 2)).hint(hint));
    }
}

fn switches(plan: &Plan, shape: &Shape, found: &Admission, warnings: &mut Vec<Fault>) {
    let mut switches = Switches { plan, shape, found, per_second: Vec::new() };
    switches.of_wakes();
    switches.of_budgets();
    switches.of_quanta();
    for cpu in 0..plan.machine.cpus {
        warnings.extend(switches.too_many(cpu));
    }
}

/// How often CPUs are to be expected to switch.
struct Switches<'a> {
    plan: &'a Plan,
    shape: &'a Shape,
    found: &'a Admission,
    /// Where, how often, and for whom.
    per_second: Vec<(Cpus, Share, &'a str)>,
}

impl Switches<'_> {
    /// A CPU switches to a task when it wakes, and to another when it sleeps.
    fn of_wakes(&mut self) {
        for (index, task) in self.plan.tasks.iter().enumerate() {
            if let Some(load) = &task.load {
                let rate = wakes(load) * Share::from_integer(2.into());
                self.per_second.push((self.shape.task_reach(self.plan, index), rate, &task.name));
            }
        }
    }

    /// Who asks for more than its budget begins and ends in each period.
    fn of_budgets(&mut self) {
        for edge in &self.plan.edges {
            let policy = policies::by_number(self.plan.nodes[edge.parent].policy);
            let Some((budget, period)) = policy.and_then(policies::budget_and_period) else { continue };
            let period_ns = edge.params[period].max(1);
            let asked = match edge.child {
                Child::Task(task) if self.plan.tasks[task].load.is_none() => continue,
                Child::Task(task) => &self.found.tasks[task].asked,
                Child::Node(node) => &self.found.nodes[node].asked,
                Child::Set(_) => continue,
            };
            if asked.as_ref().is_none_or(|asked| *asked > ratio(edge.params[budget], period_ns)) {
                let (reach, rate) = (self.shape.reach[edge.parent], ratio(2 * SECOND_NS, period_ns));
                self.per_second.push((reach, rate, self.plan.child_name(edge.child)));
            }
        }
    }

    /// Several children that are always runnable take turns.
    fn of_quanta(&mut self) {
        let (plan, found) = (self.plan, self.found);
        let greedy = |edge: &&usize| match plan.edges[**edge].child {
            Child::Task(task) => plan.tasks[task].load.is_some() && found.tasks[task].asked.is_none(),
            Child::Node(_) | Child::Set(_) => true,
        };
        for (index, node) in plan.nodes.iter().enumerate() {
            let policy = policies::by_number(node.policy);
            let quantum = policy.and_then(policies::quantum);
            let (Some(quantum), Some(supply)) = (quantum, &found.nodes[index].available) else { continue };
            if self.shape.children[index].iter().filter(greedy).count() > 1 {
                let rate = supply * ratio(SECOND_NS, node.params[quantum].max(1));
                self.per_second.push((self.shape.reach[index], rate, &node.name));
            }
        }
    }

    fn too_many(&self, cpu: u32) -> Option<Fault> {
        let here = self.per_second.iter().filter(|(reach, ..)| reach.has(cpu));
        let part = |reach: &Cpus| Share::from_integer(u64::from(reach.count().max(1)).into());
        let mut parts: Vec<_> = here.map(|(reach, rate, what)| (rate / part(reach), what)).collect();
        let sum = parts.iter().fold(share::zero(), |sum, (rate, _)| share::add(&sum, rate));
        if sum <= ratio(self.plan.machine.switches_max, 1) {
            return None;
        }
        parts.sort_by(|a, b| b.0.cmp(&a.0));
        let most = parts.iter().take(3).map(|(rate, name)| format!("`{name}` {}", rate.ceil().to_integer()));
        let most = most.collect::<Vec<_>>().join(", ");
        let message = format!("CPU {cpu} is to be expected to switch very often, most of it for {most}");
        let root = self.plan.nodes.iter().find(|node| node.roots.contains(&cpu));
        let fault = Fault::new("switches_are_many", root.map(|root| root.spot).unwrap_or_default(), message);
        let fault = fault.value(format!("{} per second", sum.ceil().to_integer()));
        let hint = "longer periods or quanta; or set `[machine] switches_max`";
        Some(fault.bound(self.plan.machine.switches_max).hint(hint))
    }
}

/// They are for the simulator, and need not be bounded (`arrival = "poisson"`).
fn interrupts(plan: &Plan) -> Option<Fault> {
    let all = &plan.machine.interrupts;
    let on = |cpu: u32| {
        let hits = all.iter().filter(move |one| one.cpu.is_none_or(|hit| hit == cpu));
        hits.map(|one| ratio(one.takes.max_ns(), one.every_ns.max(1)))
            .fold(share::zero(), |sum, one| share::add(&sum, &one))
    };
    let most = (0..plan.machine.cpus).map(on).max().filter(|most| *most > share::zero())?;
    let message = "interrupts delay everything in the simulator, but nothing here counts them: deadlines may be missed, and less \
                   be supplied than is promised";
    let fault = Fault::new("interrupts_are_not_counted", all.first()?.spot, message);
    let hint = "leave them out to see what the plan alone does, or leave room for them";
    Some(fault.value(format!("{} of a CPU", percent(&most))).hint(hint))
}

/// How often per second a load wakes up.
fn wakes(load: &Load) -> Share {
    match load {
        Load::Busy => share::zero(),
        Load::Periodic(load) => ratio(SECOND_NS, load.period_ns.max(1)),
        Load::Sporadic(load) => ratio(SECOND_NS, load.separation_ns.saturating_add(load.extra_ns / 2).max(1)),
        Load::Triggered(load) => ratio(SECOND_NS, load.period_ns.max(1)),
        Load::Phases(load) => {
            let waits = load.phases.iter().filter(|phase| !matches!(phase, Phase::Run { .. })).count();
            let pass = load.phases.iter().map(|phase| match phase {
                Phase::Run { work, .. } | Phase::Sleep(work) | Phase::Suspend(work) => work.max_ns(),
                Phase::Timer { .. } => 0,
            });
            let timers = load.phases.iter().map(|phase| match phase {
                Phase::Timer { period_ns, .. } => *period_ns,
                _ => 0,
            });
            let pass_ns = pass.fold(0, u64::saturating_add).max(timers.max().unwrap_or(0));
            ratio((waits as u64).saturating_mul(SECOND_NS), pass_ns.max(1))
        }
        Load::Stages(load) => {
            let least_ns = load.jobs().map(|jobs| jobs.period_ns).min();
            least_ns.map_or_else(share::zero, |least_ns| ratio(SECOND_NS, least_ns.max(1)))
        }
    }
}
