//! Transactions: events that come from outside, and what happens then, as tasks and chains.

use super::notation::quoted;
use super::operations::Operations;
use super::platform::{Platform, Server};
use super::tree::Group;
use crate::decimal::{Decimal, Round};
use crate::draft::{Chain, Draft, Release, Task};
use crate::text::{short, Refusal, Text, Word};
use std::collections::{BTreeSet, HashMap};
use tierce_plan::show_time;

/// Handlers of events in one transaction, and ways through it.
const HANDLERS_MAX: usize = 200;
const WAYS_MAX: usize = 64;

/// What makes tasks of transactions.
pub struct Flows<'a> {
    pub text: &'a Text,
    pub unit: Decimal,
    pub platform: &'a Platform<'a>,
    pub operations: &'a Operations<'a>,
    /// How many activities each server has, by its name in lower case.
    pub uses: HashMap<String, usize>,
}

/// Where an event comes from, and how much later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Origin {
    /// Index of an external event.
    Outside(usize),
    /// Index of an activity.
    Activity(usize),
}

/// A transaction that is looked at.
struct Flow<'f> {
    name: &'f Word,
    externals: &'f [Group],
    handlers: &'f [Group],
    /// Indices of handlers that are activities.
    activities: Vec<usize>,
    /// Of each event, by its name in lower case: the handler that makes it.
    makers: HashMap<String, usize>,
    /// Of each internal event: what is asked of it.
    requirements: HashMap<String, Vec<&'f Group>>,
    known: HashMap<String, Option<Vec<(Origin, u64)>>>,
}

/// A longer burst is one job.
const BURST_MAX: u64 = 64;

/// When jobs of a task come, by which external event, how many at a time, and whether its end releases others.
struct Way {
    release: Release,
    external: usize,
    burst: u64,
    leads_on: bool,
}

/// An activity as part of the plan.
struct Step {
    /// What releases it: activities, each with a delay; empty: the external event.
    after: Vec<(usize, u64)>,
    /// Its external event.
    external: usize,
    /// Index of its task.
    task: usize,
}

fn lower(word: &Word) -> String {
    word.text.to_ascii_lowercase()
}

impl Flows<'_> {
    /// The tasks and chains of one transaction.
    pub fn add(&self, transaction: &Group, draft: &mut Draft) -> Result<(), Refusal> {
        let mut flow = self.flow(transaction)?;
        match self.order(&mut flow)? {
            Ok(steps) => self.parts(&flow, steps, draft),
            Err(why) => {
                let what = format!("transaction {}", quoted(flow.name));
                draft.left_out.push(self.text.left_out(&flow.name.at, what, why));
                Ok(())
            }
        }
    }

    fn flow<'f>(&self, transaction: &'f Group) -> Result<Flow<'f>, Refusal> {
        let name = transaction.need("name", self.text)?;
        let handlers = transaction.parts("event_handlers");
        if handlers.len() > HANDLERS_MAX {
            let fault = self.text.fault(
                "handlers_must_be_few",
                name.at.clone(),
                "this transaction has too many handlers",
            );
            return Err(fault.value(handlers.len()).bound(HANDLERS_MAX));
        }
        let is_activity =
            |handler: &Group| matches!(&handler.kind()[..], "activity" | "system_timed_activity");
        let activities = (0..handlers.len()).filter(|index| is_activity(&handlers[*index])).collect();
        let mut makers = HashMap::new();
        for (index, handler) in handlers.iter().enumerate() {
            for key in ["output_event", "output_events_list"] {
                makers.extend(handler.words(key).iter().map(|word| (lower(word), index)));
            }
        }
        let mut requirements = HashMap::new();
        for event in transaction.parts("internal_events") {
            let mut all = Vec::new();
            for requirement in event.parts("timing_requirements") {
                match requirement.kind() == "composite" {
                    true => all.extend(requirement.parts("requirements_list")),
                    false => all.push(requirement),
                }
            }
            requirements.insert(lower(event.need("name", self.text)?), all);
        }
        let externals = transaction.parts("external_events");
        Ok(Flow { name, externals, handlers, activities, makers, requirements, known: HashMap::new() })
    }

    /// What releases each activity, those that release others first; or why a plan cannot have it.
    fn order(&self, flow: &mut Flow) -> Result<Result<Vec<(usize, Step)>, String>, Refusal> {
        for index in 0..flow.externals.len() {
            let name = lower(flow.externals[index].need("name", self.text)?);
            flow.known.insert(name, Some(vec![(Origin::Outside(index), 0)]));
        }
        let mut done: HashMap<usize, usize> = HashMap::new();
        let mut steps: Vec<(usize, Step)> = Vec::new();
        let mut waiting = flow.activities.clone();
        while !waiting.is_empty() {
            let before = waiting.len();
            let mut later = Vec::new();
            for activity in waiting {
                let input = flow.handlers[activity].need("input_event", self.text)?;
                let Some(origins) = self.origins(flow, &lower(input), 0)? else {
                    return Ok(Err(format!(
                        "what event {} waits for has no counterpart in plans",
                        quoted(input)
                    )));
                };
                let (mut after, mut externals) = (Vec::new(), BTreeSet::new());
                let mut ready = true;
                for (origin, delay_ns) in &origins {
                    match origin {
                        Origin::Outside(index) => {
                            externals.insert(*index);
                        }
                        Origin::Activity(index) => match done.get(index) {
                            Some(step) => {
                                externals.insert(steps[*step].1.external);
                                after.push((*step, *delay_ns));
                            }
                            None => ready = false,
                        },
                    }
                }
                if !ready {
                    later.push(activity);
                    continue;
                }
                let late = origins.iter().any(|(origin, ns)| matches!(origin, Origin::Outside(_)) && *ns > 0);
                let (Some(external), 1, false) = (externals.first(), externals.len(), late) else {
                    return Ok(Err(
                        "a task that waits for several tasks waits for those of one external event".into(),
                    ));
                };
                if !after.is_empty() && after.len() < origins.len() {
                    return Ok(Err(
                        "a task waits for an external event or for other tasks, not for both".into()
                    ));
                }
                done.insert(activity, steps.len());
                steps.push((activity, Step { after, external: *external, task: 0 }));
            }
            if later.len() == before {
                return Ok(Err("its events go round in a circle".into()));
            }
            waiting = later;
        }
        Ok(Ok(steps))
    }

    /// Where an event comes from; `None`: from what plans do not have.
    fn origins(
        &self,
        flow: &mut Flow,
        event: &str,
        depth: usize,
    ) -> Result<Option<Vec<(Origin, u64)>>, Refusal> {
        const DEPTH_MAX: usize = 64;
        if let Some(known) = flow.known.get(event) {
            return Ok(known.clone());
        }
        let Some(maker) = flow.makers.get(event).copied().filter(|_| depth < DEPTH_MAX) else {
            return Ok(None);
        };
        // While it is looked for, it comes from nowhere: a circle ends here.
        flow.known.insert(event.into(), None);
        let handler = &flow.handlers[maker];
        let found = match &handler.kind()[..] {
            "activity" | "system_timed_activity" => Some(vec![(Origin::Activity(maker), 0)]),
            "multicast" => {
                let input = lower(handler.need("input_event", self.text)?);
                self.origins(flow, &input, depth + 1)?
            }
            "delay" => {
                let input = lower(handler.need("input_event", self.text)?);
                let delay = handler.need("delay_max_interval", self.text)?;
                let delay_ns = self.text.amount(delay, self.unit, Round::Up)?;
                let origins = self.origins(flow, &input, depth + 1)?;
                let later = |(origin, ns): (Origin, u64)| (origin, ns.saturating_add(delay_ns));
                origins.map(|origins| origins.into_iter().map(later).collect())
            }
            "barrier" => {
                let mut all: HashMap<Origin, u64> = HashMap::new();
                let mut known = true;
                for input in handler.words("input_events_list") {
                    let Some(origins) = self.origins(flow, &lower(input), depth + 1)? else {
                        known = false;
                        break;
                    };
                    for (origin, ns) in origins {
                        let latest = all.entry(origin).or_insert(0);
                        *latest = ns.max(*latest);
                    }
                }
                let mut all: Vec<_> = all.into_iter().collect();
                all.sort_unstable();
                known.then_some(all)
            }
            _ => None,
        };
        flow.known.insert(event.into(), found.clone());
        Ok(found)
    }

    /// Tasks and chains of steps that are in order.
    fn parts(&self, flow: &Flow, mut steps: Vec<(usize, Step)>, draft: &mut Draft) -> Result<(), Refusal> {
        let mut nexts = vec![Vec::new(); steps.len()];
        for (index, (_, step)) in steps.iter().enumerate() {
            step.after.iter().for_each(|(before, _)| nexts[*before].push(index));
        }
        let ways = ways(&steps, &nexts);
        if ways.len() > WAYS_MAX {
            let what = format!("transaction {}", quoted(flow.name));
            let why = format!("there are more than {WAYS_MAX} ways through it");
            draft.left_out.push(self.text.left_out(&flow.name.at, what, why));
            return Ok(());
        }
        let mut bursts = Vec::new();
        for external in flow.externals {
            bursts.push(self.external(flow, external, draft)?);
        }
        for (index, (activity, step)) in steps.iter_mut().enumerate() {
            let (release, burst) = &bursts[step.external];
            let release = match (&release, step.after.is_empty()) {
                (release, true) => (*release).clone(),
                // Nothing comes once and leads on, or never: such tasks have no jobs.
                (Release::Once { .. } | Release::Never, false) => Release::Never,
                (_, false) => Release::Triggered,
            };
            let (external, leads_on) = (step.external, !nexts[index].is_empty());
            let way = Way { release, external, burst: *burst, leads_on };
            step.task = self.task(flow, &flow.handlers[*activity], way, draft)?;
        }
        let leads_on = |way: &Vec<usize>| {
            way.len() > 1 && draft.tasks[steps[way[0]].1.task].release.least_ns().is_some()
        };
        let mut chains: Vec<Vec<usize>> = ways.into_iter().filter(leads_on).collect();
        let whole = chains.len();
        let mut needs: Vec<Option<u64>> = vec![None; whole];
        for index in 0..steps.len() {
            self.requirements(flow, &steps, index, &mut chains, &mut needs, draft)?;
        }
        for (number, (way, within_ns)) in chains.iter().zip(needs).enumerate() {
            let wanted = match (whole, number) {
                (1, 0) => flow.name.text.clone(),
                _ => format!("{}_{}", flow.name.text, number + 1),
            };
            let (name, comment) = draft.name(&wanted);
            let tasks: Vec<_> =
                way.iter().map(|step| draft.tasks[steps[*step].1.task].name.clone()).collect();
            let delay = |pair: &[usize]| {
                let found = steps[pair[1]].1.after.iter().find(|(before, _)| *before == pair[0]);
                found.filter(|(_, ns)| *ns > 0).map(|(_, ns)| *ns)
            };
            let delays = way.windows(2).zip(&tasks[1..]);
            let delays = delays.filter_map(|(pair, task)| Some((task.clone(), delay(pair)?))).collect();
            draft.chains.push(Chain { name, comment, tasks, delays, within_ns });
        }
        Ok(())
    }

    /// When an external event comes, and how many of it at a time.
    fn external(&self, flow: &Flow, external: &Group, draft: &mut Draft) -> Result<(Release, u64), Refusal> {
        let time = |key: &str, round| match external.get(key) {
            Some(word) => self.text.amount(word, self.unit, round),
            None => Ok(0),
        };
        let name = external.need("name", self.text)?;
        let mut leave =
            |what: String, why: String| draft.left_out.push(self.text.left_out(&name.at, what, why));
        let event = format!("event {} of {}", quoted(name), quoted(flow.name));
        let phase_ns = time("phase", Round::Down)?;
        Ok(match &external.kind()[..] {
            "periodic" => {
                let period_ns =
                    self.text.some(external.need("period", self.text)?, self.unit, Round::Down)?;
                let mut jitter_ns = time("max_jitter", Round::Up)?;
                if jitter_ns >= period_ns {
                    let what = format!("jitter {} of {event}", show_time(jitter_ns));
                    leave(what, "it is below the period in plans: jobs of a task come in their order".into());
                    jitter_ns = period_ns - 1;
                }
                (Release::Periodic { period_ns, phase_ns, jitter_ns }, 1)
            }
            "sporadic" => {
                let word = external.need("min_interarrival", self.text)?;
                let separation_ns = self.text.some(word, self.unit, Round::Down)?;
                let average_ns = time("avg_interarrival", Round::Down)?;
                if average_ns > separation_ns {
                    let what = format!("average distance {} of {event}", show_time(average_ns));
                    leave(what, "it comes as often as it may".into());
                }
                (Release::Sporadic { separation_ns, extra_ns: 0, phase_ns: 0 }, 1)
            }
            "bursty" => {
                let word = external.need("bound_interval", self.text)?;
                let separation_ns = self.text.some(word, self.unit, Round::Down)?;
                let most = external.get("max_arrivals").map(|word| self.text.whole(word)).transpose()?;
                let most = most.unwrap_or(1).max(1);
                (Release::Sporadic { separation_ns, extra_ns: 0, phase_ns: 0 }, most)
            }
            "singular" => (Release::Once { at_ns: phase_ns }, 1),
            kind => {
                leave(
                    event,
                    format!("nothing bounds how often it comes ({}): its tasks have no jobs", short(kind)),
                );
                (Release::Never, 1)
            }
        })
    }

    fn task(&self, flow: &Flow, activity: &Group, way: Way, draft: &mut Draft) -> Result<usize, Refusal> {
        let Way { mut release, external, mut burst, leads_on } = way;
        let server_word = activity.need("activity_server", self.text)?;
        let unknown = || {
            let message = "there is no scheduling server of this name";
            self.text
                .fault("server_must_exist", server_word.at.clone(), message)
                .value(short(&server_word.text))
        };
        let server: &Server = self.platform.servers.get(&lower(server_word)).ok_or_else(unknown)?;
        let operation = activity.need("activity_operation", self.text)?;
        let mut job = self.operations.job(operation, server.unit, server.bit)?;
        draft.left_out.append(&mut job.left_out);
        if burst > 1 {
            let plain = !leads_on && job.sections.is_empty() && !server.whole;
            let alone = plain.then(|| in_bursts(&release, burst)).flatten();
            let name = flow.externals[external].need("name", self.text)?;
            let what = format!("event {} of {}", quoted(name), quoted(flow.name));
            let why = match &alone {
                Some(_) => format!("up to {burst} that come at once come 1 ns apart here"),
                None => format!("up to {burst} at a time are one job here, of as much work"),
            };
            draft.left_out.push(self.text.left_out(&name.at, what, why));
            if let Some(alone) = alone {
                (release, burst) = (alone, 1);
            }
        }
        let too_long =
            || self.text.fault("time_must_fit", operation.at.clone(), "a burst of these works too long");
        let times =
            |ns: u64| ns.checked_mul(burst).filter(|ns| *ns <= tierce_plan::TIME_MAX_NS).ok_or_else(too_long);
        let (work_ns, least_work_ns) = (times(job.work_ns)?, times(job.least_ns)?);
        if !job.sections.is_empty() && matches!(release, Release::Once { .. } | Release::Never) {
            let why = "a task that has a single job, or none, holds no locks in plans";
            let what = format!("resources of {} in {}", quoted(operation), quoted(flow.name));
            draft.left_out.push(self.text.left_out(&operation.at, what, why));
            job.sections.clear();
        }
        // MAST's best case is 0 where none is given, which matters to those that are released at the end.
        let unknown = leads_on && !job.has_least && job.sections.is_empty();
        let least_work_ns = if unknown { 1 } else { least_work_ns };
        // A server that does one thing is a task of its name.
        let several = self.uses.get(&lower(server_word)).is_some_and(|uses| *uses > 1);
        let wanted =
            if several { format!("{}_{}", server.name, operation.text) } else { server.name.clone() };
        let (name, comment) = draft.name(&wanted);
        draft.tasks.push(Task {
            name,
            line: self.text.line(&server_word.at),
            comment,
            whole: server.whole,
            under: server.node.clone(),
            edge: server.edge.clone(),
            // Nothing is asked of it, until a requirement is found.
            soft: release.least_ns().is_some(),
            release,
            least_work_ns,
            work_ns,
            deadline_ns: None,
            sections: job.sections,
        });
        Ok(draft.tasks.len() - 1)
    }

    /// What is asked of the event at the end of a step.
    fn requirements(
        &self,
        flow: &Flow,
        steps: &[(usize, Step)],
        index: usize,
        chains: &mut Vec<Vec<usize>>,
        needs: &mut Vec<Option<u64>>,
        draft: &mut Draft,
    ) -> Result<(), Refusal> {
        let (activity, step) = &steps[index];
        let Some(event) = flow.handlers[*activity].get("output_event") else { return Ok(()) };
        for requirement in flow.requirements.get(&lower(event)).into_iter().flatten() {
            let kind = requirement.kind();
            let what = || format!("`{}` of event {}", super::notation::title(&kind), quoted(event));
            let mut leave =
                |why: &str| draft.left_out.push(self.text.left_out(&requirement.at.at, what(), why));
            if !kind.ends_with("_deadline") {
                leave("plans ask for deadlines and times of chains only");
                continue;
            }
            let word = requirement.need("deadline", self.text)?;
            let deadline_ns = self.text.some(word, self.unit, Round::Down)?;
            let external = &flow.externals[step.external];
            let reference = requirement.get("referenced_event").map(lower);
            if reference.is_some_and(|name| external.get("name").map(lower) != Some(name)) {
                leave("it counts from another event than the one that begins it all");
                continue;
            }
            let task = step.task;
            if step.after.is_empty() {
                let task = &mut draft.tasks[task];
                // The shortest counts.
                task.deadline_ns = Some(task.deadline_ns.map_or(deadline_ns, |old| deadline_ns.min(old)));
                task.soft = kind.starts_with("soft");
            } else if kind == "hard_global_deadline" {
                let ends = |way: &&Vec<usize>| way.last() == Some(&index);
                if !chains.iter().any(|way| ends(&way)) {
                    let prefix = |way: &Vec<usize>| {
                        way.iter().position(|step| *step == index).map(|end| way[..=end].to_vec())
                    };
                    let new: BTreeSet<_> = chains.iter().filter_map(prefix).collect();
                    needs.extend(new.iter().map(|_| None));
                    chains.extend(new);
                }
                for (way, need) in chains.iter().zip(needs.iter_mut()) {
                    if ends(&way) {
                        // The shortest counts.
                        *need = Some(need.map_or(deadline_ns, |old| deadline_ns.min(old)));
                    }
                }
            } else {
                leave("only hard deadlines from the external event on are asked of chains");
            }
        }
        Ok(())
    }
}

/// Jobs of a burst one by one, where a plan has them so.
fn in_bursts(release: &Release, jobs: u64) -> Option<Release> {
    match release {
        Release::Sporadic { separation_ns, .. } if jobs <= BURST_MAX && *separation_ns > jobs => {
            Some(Release::Burst { jobs, interval_ns: *separation_ns })
        }
        _ => None,
    }
}

/// From each step that nothing releases to each that releases nothing; one more than the most, if there are more.
fn ways(steps: &[(usize, Step)], nexts: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut ways = Vec::new();
    let heads = (0..steps.len()).filter(|index| steps[*index].1.after.is_empty());
    let mut open: Vec<Vec<usize>> = heads.map(|head| vec![head]).collect();
    open.reverse();
    while let Some(way) = open.pop() {
        if ways.len() > WAYS_MAX {
            break;
        }
        match &nexts[way[way.len() - 1]][..] {
            [] => ways.push(way),
            several => open.extend(several.iter().rev().map(|next| {
                let mut longer = way.clone();
                longer.push(*next);
                longer
            })),
        }
    }
    ways
}
