//! `[lock.NAME]`, and `sections` of tasks.

use super::draft::Draft;
use tierce_analysis::locks::{deadlock, CriticalSection, Protocol as OneCpu};
use tierce_analysis::question::Policy;
use tierce_analysis::spin_locks::Spin;
use tierce_analysis::suspending_locks::Queue;
use tierce_analysis::system;
use tierce_plan::reading::{listed, Collector, Fields, Table};
use tierce_plan::{closest, Fault, Lock, Protocol};

/// As the analysis calls it.
pub fn protocol(lock: &Lock) -> system::Protocol {
    match lock.protocol {
        Protocol::None => system::Protocol::OneCpu(OneCpu::None),
        Protocol::Inheritance => system::Protocol::OneCpu(OneCpu::Inheritance),
        Protocol::Msrp => system::Protocol::Spin(Spin::NonPreemptive),
        Protocol::Mrsp => system::Protocol::Spin(Spin::Ceiling),
        Protocol::Mpcp => system::Protocol::Suspend(Queue::Priority),
        Protocol::Fmlp => system::Protocol::Suspend(Queue::Fifo),
        _ => system::Protocol::OneCpu(OneCpu::Ceiling),
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
