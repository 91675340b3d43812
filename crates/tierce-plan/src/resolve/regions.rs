//! `preemption`, `regions`, `longest_region` and `threshold` of loads: what they are, and where they have a meaning.

use super::locks::who_moves;
use crate::model::shape::Shape;
use crate::model::{Load, Plan, Preemption, Region, Task, Work};
use crate::policies;
use crate::text::faults::Fault;
use crate::text::tree::{listed, Collector, Fields, Value};
use crate::text::units::show_time;

/// `preemption = "none"`, `regions = [ { at = "500us", length = "1ms" }, … ]`, `longest_region = "1ms"` or `threshold = 3`.
pub fn preemption(fields: &mut Fields, work: Option<&Work>, collector: &mut Collector) -> Option<Preemption> {
    let (named, regions) = (fields.take("preemption"), fields.take("regions"));
    let (longest, threshold) = (fields.take("longest_region"), fields.take("threshold"));
    let given =
        [("preemption", named), ("regions", regions), ("longest_region", longest), ("threshold", threshold)];
    let given: Vec<_> = given.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    if let [(first, _), .., (last, value)] = given[..] {
        if last != "regions" {
            let message = format!("`{last}` and `{first}` both say when jobs give way");
            let fault = Fault::new("preemption_is_said_once", value.spot, message);
            collector.add(fault.hint("leave out one of them"));
            return None;
        }
    }
    if let Some(longest) = longest {
        return floating(longest, work, collector);
    }
    if let Some(threshold) = threshold {
        let priority = collector.whole("`threshold`", threshold, 0, PRIORITY_MAX)?;
        return u64::try_from(priority).ok().map(Preemption::Threshold);
    }
    if let (Some(_), Some(regions)) = (named, regions) {
        let message = "jobs have regions, or `preemption` says it of all of them";
        let fault = Fault::new("preemption_or_regions", regions.spot, message);
        collector.add(fault.hint("without `preemption`, jobs give way outside of their regions"));
    }
    let by_name = named.map_or(Some(Preemption::Full), |value| known(value, collector));
    let Some(value) = regions else { return by_name };
    let within_ns = work.map_or(u64::MAX, Work::min_ns);
    let mut from_ns = 0;
    let items = collector.list("`regions`", value)?;
    let read: Vec<_> = items.iter().map(|item| region(item, &mut from_ns, within_ns, collector)).collect();
    let read = read.into_iter().collect::<Option<Vec<_>>>()?;
    Some(if read.is_empty() { Preemption::Full } else { Preemption::Regions(read) })
}

/// As of `fixed-priority`.
const PRIORITY_MAX: i64 = 65535;

/// Longer than the longest job it has no meaning.
fn floating(value: &Value, work: Option<&Work>, collector: &mut Collector) -> Option<Preemption> {
    let length_ns = collector.duration("`longest_region`", value)?;
    let most_ns = work.map_or(u64::MAX, Work::max_ns);
    if length_ns > most_ns {
        let message = "the longest region is longer than the most work of a job";
        let fault = Fault::new("longest_region_must_fit_the_work", value.spot, message);
        collector.add(fault.value(show_time(length_ns)).bound(show_time(most_ns)));
    }
    Some(Preemption::Floating(length_ns))
}

fn known(value: &Value, collector: &mut Collector) -> Option<Preemption> {
    let text = collector.text("`preemption`", value)?;
    let found = Preemption::NAMES.into_iter().find(|(name, _)| *name == text);
    if found.is_none() {
        let message = "`preemption` is not one there is";
        let names = listed(&Preemption::NAMES.map(|(name, _)| name));
        let hint = format!("one of {names}; or regions = [{{ at = \"500us\", length = \"1ms\" }}]");
        collector.add(Fault::new("preemption_must_be_known", value.spot, message).value(text).hint(hint));
    }
    found.map(|(_, preemption)| preemption)
}

/// One of the list, which begins at `from_ns` at the earliest and sets that to its end.
fn region(value: &Value, from_ns: &mut u64, within_ns: u64, collector: &mut Collector) -> Option<Region> {
    let table = collector.table("a region", value)?;
    let mut fields = Fields::new("a region", table);
    if !table.entries.iter().any(|(key, _)| key.text == "length") {
        let message = "a region says for how much CPU time jobs do not give way";
        let fault = Fault::new("region_needs_a_length", value.spot, message);
        collector.add(fault.hint("{ at = \"500us\", length = \"1ms\" }"));
    }
    let at = fields.take("at");
    let at_ns = at.map_or(Some(*from_ns), |value| collector.time("`at`", value));
    let length_ns = fields.duration("length", collector);
    if let (Some(at), Some(at_ns)) = (at, at_ns.filter(|at_ns| at_ns < from_ns)) {
        let message = "a region begins before the one before it has ended";
        let fault = Fault::new("regions_follow_each_other", at.spot, message);
        collector.add(fault.value(show_time(at_ns)).bound(format!("at least {}", show_time(*from_ns))));
    }
    let end_ns = at_ns.unwrap_or(*from_ns).saturating_add(length_ns.unwrap_or(0));
    if end_ns > within_ns {
        let message = "the region ends after the least work of a job";
        let fault = Fault::new("region_must_fit_the_work", value.spot, message);
        collector.add(fault.value(show_time(end_ns)).bound(show_time(within_ns)));
    }
    *from_ns = end_ns.max(*from_ns);
    fields.finish(collector);
    Some(Region { at_ns: at_ns?, length_ns: length_ns? })
}

impl Load {
    /// The regions of its jobs whose places are known, in their order; where they are not preempted at all, the longest job.
    pub fn regions(&self) -> Vec<Region> {
        match self.preemption() {
            Preemption::Full | Preemption::Floating(_) | Preemption::Threshold(_) => Vec::new(),
            Preemption::None => {
                let length_ns = self.work().map_or(0, Work::max_ns);
                vec![Region { at_ns: 0, length_ns }]
            }
            Preemption::Regions(regions) => regions.clone(),
        }
    }

    /// How long the region is with which each job ends; 0: not each ends with one.
    pub fn last_region_ns(&self) -> u64 {
        let Some(work) = self.work() else { return 0 };
        let ends = |region: &Region| {
            let end_ns = region.at_ns + region.length_ns;
            *self.preemption() == Preemption::None || (work.min_ns() == end_ns && work.max_ns() == end_ns)
        };
        self.regions().last().filter(|region| ends(region)).map_or(0, |region| region.length_ns)
    }
}

impl Task {
    /// Its jobs do not always give way.
    pub fn has_regions(&self) -> bool {
        self.load.as_ref().is_some_and(|load| !load.preemption().is_full())
    }
}

impl Task {
    /// Others need more than that priority to preempt its jobs once they have begun.
    pub fn threshold(&self) -> Option<u64> {
        match self.load.as_ref()?.preemption() {
            Preemption::Threshold(priority) => Some(*priority),
            _ => None,
        }
    }
}

impl Plan {
    /// The node against whose tasks the regions of a task hold: the one directly above, which orders by priorities or by deadlines.
    pub fn node_of_regions(&self, shape: &Shape, task: usize) -> Option<usize> {
        let [edge] = shape.task_parents[task][..] else { return None };
        let node = self.edges[edge].parent;
        let policy = policies::by_number(self.nodes[node].policy)?;
        ["fixed-priority", "edf"].contains(&policy.name).then_some(node)
    }

    /// What is to be said where threads run, not loads: on what bounds rest that is true only of these.
    pub fn is_so_only_in_simulation(&self) -> Vec<String> {
        let phases = self.machine.phases_known.then(|| {
            "when jobs come is up to their threads: `phases = \"known\"` holds in `tierce sim`, and bounds of `tierce check` that rest on it \
             hold here only if the programs are in step"
                .to_string()
        });
        phases.into_iter().chain(self.gives_way_in_the_kernel()).collect()
    }

    /// Which jobs give way although the plan says that they do not.
    fn gives_way_in_the_kernel(&self) -> Option<String> {
        let mut tasks = self.tasks.iter().filter(|task| task.has_regions());
        let (first, others) = (tasks.next()?, tasks.count());
        let others = if others > 0 { format!(" and {others} others") } else { String::new() };
        Some(format!(
            "jobs of `{}`{others} give way at any time here: only `tierce sim` plays `preemption`, `regions`, `longest_region` and `threshold` of loads, and bounds of \
             `tierce check` that rest on them do not hold",
            first.name
        ))
    }
}

/// Regions where jobs wait for nobody, on several CPUs, or beside locks.
pub fn faults(plan: &Plan, shape: &Shape, faults: &mut Vec<Fault>) {
    for (index, _) in plan.tasks.iter().enumerate().filter(|(_, task)| task.has_regions()) {
        if plan.is_first_of_set(index) {
            faults.extend(fault(plan, shape, index));
        }
    }
}

/// Where there are no priorities, or it is below the task's own one.
fn threshold_fault(plan: &Plan, shape: &Shape, task: usize, threshold: u64) -> Option<Fault> {
    let (about, above) = (&plan.tasks[task], &shape.task_parents[task]);
    let edge = &plan.edges[*above.first()?];
    let policy = policies::by_number(plan.nodes[edge.parent].policy)?;
    if above.len() > 1 || policy.name != "fixed-priority" {
        let message = format!(
            "`{}` has a preemption threshold, which is for tasks directly below one `fixed-priority` node",
            about.name
        );
        let value =
            if above.len() > 1 { format!("{} parents", above.len()) } else { policy.name.to_string() };
        let hint = "elsewhere `preemption`, `regions` or `longest_region` say when jobs give way";
        return Some(Fault::new("threshold_needs_priorities", about.spot, message).value(value).hint(hint));
    }
    let priority = edge.params[policies::position(&policy.edge_params, "priority")?];
    let message = format!("the preemption threshold of `{}` is below its own priority", about.name);
    let fault = || Fault::new("threshold_not_below_priority", about.spot, message);
    (threshold < priority).then(|| fault().value(threshold).bound(format!("at least {priority}")))
}

fn fault(plan: &Plan, shape: &Shape, task: usize) -> Option<Fault> {
    let (about, above) = (&plan.tasks[task], &shape.task_parents[task]);
    let fault = |rule, message: String| Some(Fault::new(rule, about.spot, message));
    if let Some(found) = about.threshold().and_then(|threshold| threshold_fault(plan, shape, task, threshold))
    {
        return Some(found);
    }
    let Some(node) = plan.node_of_regions(shape, task) else {
        let first = above.first()?; // else it is unreachable, which is told already
        let value = match above.len() {
            1 => policies::by_number(plan.nodes[plan.edges[*first].parent].policy)?.name.to_string(),
            several => format!("{several} parents"),
        };
        let message = format!(
            "jobs of `{}` do not always give way, which is for tasks directly below one node that orders by priority or by deadline",
            about.name
        );
        let hint = "below a `fixed-priority` or `edf` node, which may have a reservation above it";
        return Some(fault("regions_need_an_order", message)?.value(value).hint(hint));
    };
    if shape.moves(plan, above[0]) || shape.task_reach(plan, task).are_several() {
        let message =
            format!("jobs of `{}` do not always give way, and it may run on several CPUs", about.name);
        return fault("region_is_for_one_cpu", message);
    }
    if let Some(child) = who_moves(plan, shape, node) {
        let message = format!(
            "jobs of `{}` do not always give way, and `{child}`, below the same node, moves between CPUs",
            about.name
        );
        return fault("region_is_for_one_cpu", message);
    }
    let beside = |other: &usize| {
        let here = shape.task_parents[*other].iter().any(|edge| plan.edges[*edge].parent == node);
        here && !plan.locks_of(*other).is_empty()
    };
    let other = (0..plan.tasks.len()).find(beside)?;
    let name = &plan.nodes[node].name;
    let message = match other == task {
        true => format!("`{}` has regions without preemption and sections with locks", about.name),
        false => format!(
            "below `{name}` jobs of `{}` do not always give way, and `{}` has sections with locks",
            about.name, plan.tasks[other].name
        ),
    };
    let spins = plan.locks_of(other).iter().any(|lock| plan.locks[*lock].protocol.spins());
    let hint = match spins {
        true => "with its protocol, a lock of this CPU alone that all of them use does the same",
        false => "with protocol \"immediate-ceiling\" or \"srp\", a lock that all of them use does the same",
    };
    Some(fault("regions_and_locks_are_apart", message)?.hint(hint))
}
