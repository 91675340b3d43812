//! `[lock.NAME]`, and `sections` of tasks.

use super::draft::Draft;
use tierce_analysis::locks::{deadlock, CriticalSection, Protocol as OneCpu};
use tierce_analysis::question::Policy;
use tierce_analysis::spin_locks::Spin;
use tierce_analysis::suspending_locks::Queue;
use tierce_analysis::system;
use tierce_plan::reading::{listed, Collector, Fields, Table, Value};
use tierce_plan::{closest, show_time, Fault, Protocol, Spot};

/// A lock.
pub struct Lock {
    pub name: String,
    pub protocol: Protocol,
    spot: Spot,
}

impl Lock {
    /// For the analysis.
    pub fn protocol(&self) -> system::Protocol {
        match self.protocol {
            Protocol::None => system::Protocol::OneCpu(OneCpu::None),
            Protocol::Inheritance => system::Protocol::OneCpu(OneCpu::Inheritance),
            Protocol::Msrp => system::Protocol::Spin(Spin::NonPreemptive),
            Protocol::Mrsp => system::Protocol::Spin(Spin::Ceiling),
            Protocol::Mpcp => system::Protocol::Suspend(Queue::Priority),
            Protocol::Fmlp => system::Protocol::Suspend(Queue::Fifo),
            _ => system::Protocol::OneCpu(OneCpu::Ceiling),
        }
    }
}

/// Those that are not told of budgets.
fn protocols() -> impl Iterator<Item = (&'static str, Protocol)> {
    Protocol::NAMES.into_iter().filter(|(_, protocol)| !protocol.is_between_budgets())
}

pub fn read(table: &Table, collector: &mut Collector) -> Vec<Lock> {
    let mut locks = Vec::new();
    for (key, value) in &table.entries {
        let what = format!("lock `{}`", key.text);
        let Some(table) = collector.table(&what, value) else { continue };
        let mut fields = Fields::new(&what, table);
        let misspelt = fields.is_misspelt("protocol");
        let names: Vec<_> = protocols().map(|(name, _)| name).collect();
        let mut found = None;
        match fields.take("protocol") {
            Some(value) => {
                let text = collector.text(&format!("`protocol` of {what}"), value);
                found = text.and_then(|text| protocols().find(|(name, _)| *name == text));
                if let (Some(text), None) = (text, found) {
                    let message = format!("`protocol` of {what} is not one that is analysed without budgets");
                    let fault = Fault::new("protocol_must_be_known", value.spot, message).value(text);
                    let hint = match closest(text, names.iter().copied()) {
                        Some(close) => format!("did you mean \"{close}\"? One of {}", listed(&names)),
                        None => format!("one of {}", listed(&names)),
                    };
                    collector.add(fault.hint(hint));
                }
            }
            None if !misspelt => {
                let fault = Fault::new("protocol_must_be_given", key.spot, format!("{what} has no protocol"));
                collector.add(fault.hint(format!("protocol = …, one of {}", listed(&names))));
            }
            None => {}
        }
        fields.finish(collector);
        let protocol = found.map_or(Protocol::Inheritance, |(_, protocol)| protocol);
        locks.push(Lock { name: key.text.clone(), protocol, spot: key.spot });
    }
    locks
}

/// `sections = [ { lock = "bus", at = "1ms", length = "2ms", sections = [ … ] }, … ]`.
pub fn sections(
    fields: &mut Fields,
    work_ns: u64,
    locks: &[Lock],
    collector: &mut Collector,
) -> Vec<CriticalSection> {
    let Some(value) = fields.take("sections") else { return Vec::new() };
    list(value, (work_ns, "the work of a job"), &mut Vec::new(), locks, collector)
}

fn list(
    value: &Value,
    within: (u64, &str),
    held: &mut Vec<usize>,
    locks: &[Lock],
    collector: &mut Collector,
) -> Vec<CriticalSection> {
    let Some(items) = collector.list("`sections`", value) else { return Vec::new() };
    let mut from_ns = 0;
    let read = items.iter().filter_map(|item| section(item, &mut from_ns, within, held, locks, collector));
    read.collect()
}

/// One of the list, which begins at `from_ns` at the earliest and sets that to its end.
fn section(
    value: &Value,
    from_ns: &mut u64,
    within: (u64, &str),
    held: &mut Vec<usize>,
    locks: &[Lock],
    collector: &mut Collector,
) -> Option<CriticalSection> {
    let table = collector.table("a section", value)?;
    let mut fields = Fields::new("a section", table);
    let (named, at, length) = (fields.take("lock"), fields.take("at"), fields.take("length"));
    let misspelt = fields.is_misspelt("lock") || fields.is_misspelt("length");
    if (named.is_none() || length.is_none()) && !misspelt {
        let message = "a section says which lock it holds, and for how much CPU time";
        let fault = Fault::new("section_needs_lock_and_length", value.spot, message);
        collector.add(fault.hint("{ lock = \"bus\", length = \"2ms\" }"));
    }
    let lock = named.and_then(|value| find(value, locks, collector));
    if let (Some(named), Some(lock)) = (named, lock.filter(|lock| held.contains(lock))) {
        let message = "a job that requests a lock that it has waits for itself";
        collector.add(Fault::new("lock_is_held_already", named.spot, message).value(&locks[lock].name));
    }
    let at_ns = at.map_or(Some(*from_ns), |value| collector.time("`at` of a section", value));
    if let (Some(at), Some(at_ns)) = (at, at_ns.filter(|at_ns| at_ns < from_ns)) {
        let message = "a section begins before the one before it has ended";
        let fault = Fault::new("sections_follow_each_other", at.spot, message);
        collector.add(fault.value(show_time(at_ns)).bound(format!("at least {}", show_time(*from_ns))));
    }
    let length_ns = length.and_then(|value| collector.duration("`length` of a section", value));
    let end_ns = at_ns.unwrap_or(*from_ns).saturating_add(length_ns.unwrap_or(0));
    if end_ns > within.0 {
        let message = format!("the section ends after {}", within.1);
        let fault = Fault::new("section_must_fit_the_work", value.spot, message);
        collector.add(fault.value(show_time(end_ns)).bound(show_time(within.0)));
    }
    *from_ns = end_ns.max(*from_ns);
    held.extend(lock);
    let within = (length_ns.unwrap_or(u64::MAX), "the one around it");
    let inner =
        fields.take("sections").map_or(Vec::new(), |value| list(value, within, held, locks, collector));
    held.truncate(held.len() - usize::from(lock.is_some()));
    fields.finish(collector);
    Some(CriticalSection { lock: lock?, length_ns: length_ns?, inner })
}

fn find(value: &Value, locks: &[Lock], collector: &mut Collector) -> Option<usize> {
    let name = collector.text("`lock` of a section", value)?;
    let found = locks.iter().position(|lock| lock.name == name);
    if found.is_none() {
        let names: Vec<_> = locks.iter().map(|lock| lock.name.as_str()).collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(close) => format!("did you mean \"{close}\"?"),
            None if names.is_empty() => "[lock.NAME] with `protocol = …`".into(),
            None => format!("there are {}", listed(&names)),
        };
        let fault = Fault::new("lock_must_exist", value.spot, format!("there is no lock `{name}`"));
        collector.add(fault.hint(hint));
    }
    found
}

/// Locks that do not go with each other, with the CPUs or with the policy.
pub fn check(tasks: &[Draft], locks: &[Lock], policy: Option<Policy>, collector: &mut Collector) {
    for (index, lock) in locks.iter().enumerate() {
        let users: Vec<_> = tasks.iter().filter(|task| uses(&task.sections, index)).collect();
        let Some(first) = users.first() else { continue };
        let other =
            users.iter().find(|user| user.cpu != first.cpu).filter(|_| !lock.protocol.is_between_cpus());
        if let Some(other) = other {
            let (one, two) = (&first.entry.name, &other.entry.name);
            let message =
                format!("`{one}` and `{two}`, which use lock `{}`, are on different CPUs", lock.name);
            let fault = Fault::new("lock_is_for_one_cpu", other.spot, message).value(lock.protocol.name());
            let hint = "protocol = \"msrp\", \"mrsp\", \"mpcp\" and \"fmlp+\" are for tasks of several CPUs";
            collector.add(fault.hint(hint).other(lock.spot, "the lock"));
        }
        let nests = users.iter().find(|user| user.sections.iter().any(|section| !section.inner.is_empty()));
        if let Some(user) = nests.filter(|_| lock.protocol.is_between_cpus()) {
            let rule = match lock.protocol.spins() {
                true => "spinning_sections_are_not_nested",
                false => "suspending_sections_are_not_nested",
            };
            let message = format!(
                "`{}` uses lock `{}`, and has a section within another one",
                user.entry.name, lock.name
            );
            let fault = Fault::new(rule, user.spot, message).value(lock.protocol.name());
            let hint = "one lock for both, or one section after the other";
            collector.add(fault.hint(hint).other(lock.spot, "the lock"));
        }
        if let Some(wanted) = policy.and_then(|policy| misfit(lock.protocol, policy)) {
            let message = format!("lock `{}` is for {wanted}", lock.name);
            let fault =
                Fault::new("protocol_must_fit_the_policy", lock.spot, message).value(lock.protocol.name());
            collector.add(fault.hint("protocol = \"inheritance\" is for both"));
        }
    }
    alike(tasks, locks, collector);
    circles(tasks, locks, collector);
}

fn uses(sections: &[CriticalSection], lock: usize) -> bool {
    sections.iter().any(|section| section.lock == lock || uses(&section.inner, lock))
}

/// The policy that a protocol is for, if it is not this one.
fn misfit(protocol: Protocol, policy: Policy) -> Option<&'static str> {
    match protocol {
        Protocol::Srp if policy != Policy::Edf => Some("--policy edf"),
        Protocol::Ceiling | Protocol::ImmediateCeiling if policy == Policy::Edf => {
            Some("--policy fp, rm and dm")
        }
        _ => None,
    }
}

/// Locks between CPUs are of one protocol, and go with no others; nor do those of one task.
fn alike(tasks: &[Draft], locks: &[Lock], collector: &mut Collector) {
    let used: Vec<_> =
        (0..locks.len()).filter(|lock| tasks.iter().any(|task| uses(&task.sections, *lock))).collect();
    let Some(first) = used.iter().map(|lock| &locks[*lock]).find(|lock| lock.protocol.is_between_cpus())
    else {
        for task in tasks {
            let mut theirs =
                used.iter().filter(|lock| uses(&task.sections, **lock)).map(|lock| &locks[*lock]);
            let Some(first) = theirs.next() else { continue };
            let Some(other) = theirs.find(|lock| lock.protocol != first.protocol) else { continue };
            let message = format!(
                "`{}` uses locks of two protocols, `{}` and `{}`",
                task.entry.name, first.name, other.name
            );
            let fault = Fault::new("locks_of_a_task_have_one_protocol", task.spot, message);
            collector.add(fault.value(other.protocol.name()).bound(first.protocol.name()));
        }
        return;
    };
    for lock in used.iter().map(|lock| &locks[*lock]).filter(|lock| lock.protocol != first.protocol) {
        let message =
            format!("lock `{}` has another protocol than `{}`, which is between CPUs", lock.name, first.name);
        let fault = Fault::new("locks_between_cpus_are_alike", lock.spot, message);
        let fault = fault.value(lock.protocol.name()).bound(first.protocol.name());
        collector.add(fault.hint("it may be for one CPU, too").other(first.spot, "the other lock"));
    }
}

/// Tasks that may wait for each other for ever.
fn circles(tasks: &[Draft], locks: &[Lock], collector: &mut Collector) {
    let waits = |section: &&CriticalSection| {
        let protocol = locks[section.lock].protocol;
        !protocol.has_ceilings() && !protocol.is_between_cpus()
    };
    let sections = |task: &Draft| task.sections.iter().filter(waits).cloned().collect::<Vec<_>>();
    let sections: Vec<_> = tasks.iter().map(sections).collect();
    let Some(circle) = deadlock(&sections).filter(|circle| circle.len() > 1) else { return };
    let words: Vec<_> = circle
        .iter()
        .map(|request| {
            let held: Vec<_> = request.held.iter().map(|lock| locks[*lock].name.as_str()).collect();
            format!(
                "`{}` has {} and waits for `{}`",
                tasks[request.task].entry.name,
                listed(&held),
                locks[request.wants].name
            )
        })
        .collect();
    let message = format!("tasks can wait for each other for ever: {}", words.join(", "));
    let fault = Fault::new("locks_must_not_close_a_circle", tasks[circle[0].task].spot, message);
    collector.add(fault.hint("nest them in the same order everywhere, or use a protocol with ceilings"));
}
