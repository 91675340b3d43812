//! The verdict on tasks of one CPU.

use super::asked::{Question, Thresholds};
use super::names::Policy;
use crate::offsets::{self, Order};
use crate::{
    fifo, global, priorities, requests, sections, suspension, thresholds, Demand, Edf, Entry, FixedPriority,
    Response, Sections, Supply, Task, Watch,
};
use tierce_guarantee::show_ns;

/// What is found of some tasks on one CPU.
pub struct Verdict {
    pub schedulable: bool,
    /// That it is not schedulable, too, is shown.
    pub exact: bool,
    /// Where it could not be decided, why it fails beyond single tasks, what it is a bound for.
    pub remarks: Vec<String>,
    /// As the tasks were given.
    pub responses: Vec<Response>,
    /// The task whose priority is the threshold, of each, if there are thresholds.
    pub thresholds: Option<Vec<usize>>,
}

impl Verdict {
    /// All responses are within the deadlines.
    fn of(tasks: &[Task], responses: Vec<Response>, exact: bool) -> Self {
        let met = |(task, response): (&Task, &Response)| response.meets(task.deadline_ns);
        let schedulable = tasks.iter().zip(&responses).all(met);
        let undecided = responses.contains(&Response::TooLong);
        let missed = tasks.iter().zip(&responses).any(|pair| *pair.1 != Response::TooLong && !met(pair));
        let exact = exact && (missed || !undecided);
        let remarks = undecided.then(|| too_long("a busy period")).into_iter().collect();
        Self { schedulable, exact, remarks, responses, thresholds: None }
    }

    fn with(mut self, remark: impl Into<String>) -> Self {
        self.remarks.push(remark.into());
        self
    }
}

const NO_ORDER: &str =
    "No order of fixed priorities meets all deadlines; the results are for deadline-monotonic priorities.";

/// Response times under EDF are those that are known when it is ended.
pub fn verdict(asked: &Question, entries: &[Entry], supply: &Supply, watch: &Watch) -> Verdict {
    let policy = asked.policy;
    let for_all_phases = || match asked.thresholds {
        Thresholds::None => for_all_phases(policy, entries, supply, watch),
        of => with_thresholds(policy, entries, of, supply),
    };
    if !asked.offsets_known {
        return for_all_phases();
    }
    let played = match asked.thresholds {
        Thresholds::None => at_offsets(policy, entries, supply),
        _ => Err("with thresholds a shorter job can make others later".into()),
    };
    match played {
        Ok(found) => found,
        Err(why) => {
            let found = for_all_phases();
            let remark = format!("The offsets are of no effect: {why}; the results are for all phases.");
            Verdict { exact: false, ..found }.with(remark)
        }
    }
}

/// All deadlines are met; and that they are not is shown, too. As [`verdict`] says, but without response times where they take
/// longer than that.
pub fn holds(asked: &Question, entries: &[Entry], supply: &Supply) -> (bool, bool) {
    let lists = entries.iter().any(|entry| entry.requests.is_some());
    let plain = !asked.offsets_known && asked.thresholds == Thresholds::None && !lists;
    if !plain || entries.iter().any(|entry| entry.suspension_ns > 0) {
        let found = verdict(asked, entries, supply, &Watch::default());
        return (found.schedulable, found.exact);
    }
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let regions: Vec<_> = entries.iter().map(|entry| entry.sections).collect();
    let whole = regions.iter().any(|sections| *sections != Sections::default());
    match asked.policy {
        Policy::Fifo => (fifo::schedulable(&tasks, supply), is_in_whole_ns(supply)),
        Policy::Edf if whole => {
            let exact = sections::earliest_deadline_is_exact(&tasks, &regions) && is_in_whole_ns(supply);
            (Edf::new().schedulable(&sections::blocked(&tasks, &regions), supply), exact)
        }
        Policy::Edf => (Edf::new().schedulable(&tasks, supply), true),
        policy if whole => {
            let found = in_regions(policy, entries, &tasks, supply, &Watch::default());
            (found.schedulable, found.exact)
        }
        Policy::Audsley => (priorities::audsley(&tasks, supply).is_some(), true),
        policy => {
            let (ordered, sorted, _) = by_level(&tasks, &levels_of(policy, entries, 1));
            let schedulable = FixedPriority::new().schedulable_by_level(&ordered, &sorted, supply);
            (schedulable, is_one_order(&sorted))
        }
    }
}

/// By playing the schedule, or why that shows nothing.
fn at_offsets(policy: Policy, entries: &[Entry], supply: &Supply) -> Result<Verdict, String> {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let offsets: Vec<_> = entries.iter().map(|entry| entry.offset_ns).collect();
    if *supply != Supply::WHOLE {
        return Err("when the supply comes is not known".into());
    }
    for entry in entries {
        let why = match entry {
            _ if entry.sections != Sections::default() => {
                "has a region without preemption, and then a shorter job can make others later"
            }
            _ if entry.suspension_ns > 0 => "suspends itself",
            _ if entry.task.jitter_ns > 0 => "has jitter",
            _ if entry.task.blocking_ns > 0 => "may be blocked",
            _ => continue,
        };
        return Err(format!("{} {why}", entry.name));
    }
    let by = |order: Order| -> Result<Verdict, String> {
        let responses = offsets::responses(&tasks, &offsets, order);
        if responses.contains(&Response::TooLong) {
            return Err("too many jobs come until the schedule repeats itself".into());
        }
        Ok(Verdict::of(&tasks, responses, true))
    };
    match policy {
        Policy::Edf => by(Order::EarliestDeadline),
        Policy::Fifo => by(Order::FirstComeFirst),
        Policy::Audsley => {
            let found = by(Order::FixedPriority(&levels_of(Policy::Dm, entries, 1)))?;
            match offsets::audsley(&tasks, &offsets) {
                Some(order) => by(Order::FixedPriority(&ranks(&order))),
                None => Ok(found.with(NO_ORDER)),
            }
        }
        _ => by(Order::FixedPriority(&levels_of(policy, entries, 1))),
    }
}

fn for_all_phases(policy: Policy, entries: &[Entry], supply: &Supply, watch: &Watch) -> Verdict {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    if policy == Policy::Fifo {
        return Verdict::of(&tasks, fifo::responses(&tasks, supply), is_in_whole_ns(supply));
    }
    if entries.iter().any(|entry| entry.suspension_ns > 0) {
        return suspending(policy, entries, &tasks);
    }
    if entries.iter().any(|entry| entry.sections != Sections::default()) {
        return in_regions(policy, entries, &tasks, supply, watch);
    }
    if entries.iter().any(|entry| entry.requests.is_some()) {
        return by_requests(policy, entries, &tasks, supply);
    }
    if policy == Policy::Edf {
        let mut edf = Edf::new();
        let demand = edf.demand(&tasks, supply);
        let responses = edf.responses_while(&tasks, supply, watch).to_vec();
        return by_demand(demand, responses, Some(&tasks), supply);
    }
    let levels = match policy {
        Policy::Audsley => match priorities::audsley_while(&tasks, supply, watch) {
            Some(order) => ranks(&order),
            None if watch.is_ended() => {
                let responses = vec![Response::TooLong; tasks.len()];
                return Verdict { remarks: Vec::new(), ..Verdict::of(&tasks, responses, false) };
            }
            None => {
                let levels = levels_of(Policy::Dm, entries, 1);
                return by_priority(&tasks, &levels, supply, watch).with(NO_ORDER);
            }
        },
        _ => levels_of(policy, entries, 1),
    };
    by_priority(&tasks, &levels, supply, watch)
}

/// Works in turn, or bursts.
fn by_requests(policy: Policy, entries: &[Entry], tasks: &[Task], supply: &Supply) -> Verdict {
    let all = entries.iter().map(Entry::requesting).collect::<Option<Vec<_>>>();
    let Some(all) = all else {
        return Verdict::of(tasks, vec![Response::Unbounded; tasks.len()], false);
    };
    if policy == Policy::Edf {
        let demand = requests::earliest_deadline(&all, supply);
        let responses = requests::earliest_deadline_responses(&all, supply);
        let found = by_demand(demand, responses, None, supply);
        return Verdict { exact: false, ..found }.with(MAY_BE_MET);
    }
    let levels = levels_of(policy, entries, 1);
    let mut order: Vec<_> = (0..all.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let ordered: Vec<_> = order.iter().map(|index| all[*index].clone()).collect();
    let sorted: Vec<_> = order.iter().map(|index| levels[*index]).collect();
    let mut responses = vec![Response::Unbounded; all.len()];
    let found = requests::fixed_priority(&ordered, &sorted, supply);
    order.iter().zip(found).for_each(|(index, response)| responses[*index] = response);
    Verdict::of(tasks, responses, false).with(MAY_BE_MET)
}

/// A region begins, and a job of an order of arrival is done, at a whole ns of what is supplied.
fn is_in_whole_ns(supply: &Supply) -> bool {
    !matches!(supply, Supply::Linear(_))
}

fn suspending(policy: Policy, entries: &[Entry], tasks: &[Task]) -> Verdict {
    const BOUND: &str =
        "With suspension the results are bounds: what they do not show to be met may be met all the same.";
    let suspensions: Vec<_> = entries.iter().map(|entry| entry.suspension_ns).collect();
    if policy == Policy::Edf {
        let (schedulable, responses) = suspension::earliest_deadline(tasks, &suspensions);
        return Verdict {
            schedulable,
            exact: false,
            remarks: vec![BOUND.into()],
            responses,
            thresholds: None,
        };
    }
    let mut remark = None;
    let levels = match policy {
        Policy::Audsley => {
            let working = suspension::as_work(tasks, &suspensions);
            let order = priorities::audsley(&working, &Supply::WHOLE);
            if order.is_none() {
                remark = Some("No order of fixed priorities was found that meets all deadlines; the results are for deadline-monotonic priorities.");
            }
            order.map_or_else(|| levels_of(Policy::Dm, entries, 1), |order| ranks(&order))
        }
        _ => levels_of(policy, entries, 1),
    };
    let (ordered, sorted, order) = by_level(tasks, &levels);
    let suspended: Vec<_> = order.iter().map(|index| suspensions[*index]).collect();
    let found = suspension::fixed_priority(&ordered, &suspended, &sorted);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    order.iter().zip(found).for_each(|(index, response)| responses[*index] = response);
    let found = Verdict::of(tasks, responses, false).with(BOUND);
    match remark {
        Some(remark) => found.with(remark),
        None => found,
    }
}

const MAY_BE_MET: &str = "The results are bounds: what they do not show to be met may be met all the same.";

fn with_thresholds(policy: Policy, entries: &[Entry], of: Thresholds, supply: &Supply) -> Verdict {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    let levels = levels_of(policy, entries, 1);
    // Those above a threshold have a level before it.
    let given = |entry: &Entry| {
        let above = entries
            .iter()
            .zip(&levels)
            .filter(|(other, _)| other.priority > entry.threshold.or(entry.priority));
        above.map(|(_, level)| level + 1).max().unwrap_or(0)
    };
    let chosen = match of {
        Thresholds::Chosen => thresholds::choose(&tasks, &levels, supply),
        _ => Some(entries.iter().map(given).collect()),
    };
    let remark =
        chosen.is_none().then_some("No thresholds meet all deadlines; the results are for full preemption.");
    let limits = chosen.unwrap_or_else(|| levels.clone());
    let exact =
        is_one_order(&levels) && tasks.iter().all(|task| task.blocking_ns == 0) && is_in_whole_ns(supply);
    let responses = thresholds::fixed_priority(&tasks, &levels, &limits, supply);
    let mut found = Verdict::of(&tasks, responses, exact);
    found.remarks.extend(remark.into_iter().chain((!exact).then_some(MAY_BE_MET)).map(String::from));
    let at = |limit: &u32| levels.iter().position(|level| level == limit).unwrap_or(0);
    Verdict { thresholds: Some(limits.iter().map(at).collect()), ..found }
}

/// No two tasks have one priority.
fn is_one_order(levels: &[u32]) -> bool {
    let mut all = levels.to_vec();
    all.sort_unstable();
    all.windows(2).all(|pair| pair[0] < pair[1])
}

fn in_regions(policy: Policy, entries: &[Entry], tasks: &[Task], supply: &Supply, watch: &Watch) -> Verdict {
    let regions: Vec<_> = entries.iter().map(|entry| entry.sections).collect();
    let blocked = tasks.iter().any(|task| task.blocking_ns > 0);
    if policy == Policy::Edf {
        let (demand, responses) = sections::earliest_deadline_while(tasks, &regions, supply, watch);
        let exact = sections::earliest_deadline_is_exact(tasks, &regions) && is_in_whole_ns(supply);
        let found = by_demand(demand, responses, Some(&sections::blocked(tasks, &regions)), supply);
        let found = Verdict { exact, ..found };
        return if exact { found } else { found.with(MAY_BE_MET) };
    }
    let (levels, remark) = match policy {
        Policy::Audsley => match sections::audsley(tasks, &regions, supply) {
            Some(order) => (ranks(&order), None),
            None => (levels_of(Policy::Dm, entries, 1), Some(NO_ORDER)),
        },
        _ => (levels_of(policy, entries, 1), None),
    };
    let exact = is_one_order(&levels) && !blocked && is_in_whole_ns(supply);
    let mut found = Verdict::of(tasks, sections::fixed_priority(tasks, &regions, &levels, supply), exact);
    found.remarks.extend(remark.into_iter().chain((!exact).then_some(MAY_BE_MET)).map(String::from));
    found
}

/// The rank of each task, the smallest first.
pub fn ranks(order: &[usize]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    (0..).zip(order).for_each(|(rank, index)| ranks[*index] = rank);
    ranks
}

/// The level of each task: the smaller, the higher its priority.
pub fn levels_of(policy: Policy, entries: &[Entry], cpus: u32) -> Vec<u32> {
    let tasks: Vec<_> = entries.iter().map(|entry| entry.task).collect();
    match policy {
        Policy::Rm => ranks(&priorities::rate_monotonic(&tasks)),
        Policy::Dkc | Policy::Audsley => ranks(&global::d_minus_kc(&tasks, cpus)),
        Policy::Fp if entries.iter().any(|entry| entry.priority.is_some()) => {
            let mut all: Vec<_> = entries.iter().map(|entry| std::cmp::Reverse(entry.priority)).collect();
            all.sort();
            all.dedup();
            let level = |entry: &Entry| all.partition_point(|other| other.0 > entry.priority);
            entries.iter().map(|entry| u32::try_from(level(entry)).unwrap_or(u32::MAX)).collect()
        }
        _ => ranks(&priorities::deadline_monotonic(&tasks)),
    }
}

/// The tasks by decreasing priority, their levels, and where each of them was.
fn by_level(tasks: &[Task], levels: &[u32]) -> (Vec<Task>, Vec<u32>, Vec<usize>) {
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by_key(|index| levels[*index]);
    let ordered = order.iter().map(|index| tasks[*index]).collect();
    let sorted = order.iter().map(|index| levels[*index]).collect();
    (ordered, sorted, order)
}

fn by_priority(tasks: &[Task], levels: &[u32], supply: &Supply, watch: &Watch) -> Verdict {
    let mut analysis = FixedPriority::new();
    let (ordered, sorted, order) = by_level(tasks, levels);
    let found = analysis.responses_by_level_while(&ordered, &sorted, supply, watch);
    let mut responses = vec![Response::Unbounded; tasks.len()];
    for (index, response) in order.iter().zip(found) {
        responses[*index] = *response;
    }
    let exact = is_one_order(levels);
    let mut found = Verdict::of(tasks, responses, exact);
    if watch.is_ended() {
        found.remarks.clear(); // who asked for that says so
    }
    if exact {
        found
    } else {
        found.with(MAY_BE_MET)
    }
}

fn too_long(what: &str) -> String {
    format!("Not decided: {what} is too long to examine. Utilisation and supply are nearly equal, or there are very many tasks.")
}

/// `tasks` are blocked as they are in the demand; without them the window that was found is the shortest.
fn by_demand(demand: Demand, responses: Vec<Response>, tasks: Option<&[Task]>, supply: &Supply) -> Verdict {
    let remark = match demand {
        Demand::Met => None,
        Demand::Exceeds { window_ns, due_ns } => {
            let shortest = tasks.and_then(|tasks| Edf::new().shortest_excess(tasks, supply));
            let (window_ns, due_ns) = shortest.unwrap_or((window_ns, due_ns));
            let (due, window) = (show_ns(due_ns), show_ns(window_ns));
            Some(format!("In a window of {window} the demand can be {due}, more than the guaranteed supply."))
        }
        Demand::Overload => Some("The demand is larger than the supply in the long run.".to_string()),
        Demand::TooLong => Some(too_long("a window")),
    };
    let (schedulable, exact) = (demand == Demand::Met, demand != Demand::TooLong);
    Verdict { schedulable, exact, remarks: remark.into_iter().collect(), responses, thresholds: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_decided_is_exact_only_beside_a_miss() {
        let tasks = [Task::new(1, 5), Task::new(1, 5)];
        for (first, shown) in
            [(Response::Within(1), false), (Response::Within(6), true), (Response::Unbounded, true)]
        {
            let found = Verdict::of(&tasks, vec![first, Response::TooLong], true);
            assert_eq!((found.schedulable, found.exact, found.remarks.len()), (false, shown, 1), "{first:?}");
        }
        assert!(!by_demand(Demand::TooLong, vec![Response::TooLong; 2], Some(&tasks), &Supply::WHOLE).exact);
    }
}
