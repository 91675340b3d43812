//! Shared resources: the locks of a plan.

use super::tree::Group;
use crate::draft::{Draft, Lock, Section, Task};
use crate::flat::Order;
use crate::text::{LeftOut, Refusal, Text};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tierce_plan::Protocol;

/// The locks that shared resources are; their names by those of the resources in lower case.
pub fn locks<'g>(
    resources: impl Iterator<Item = &'g Group>,
    text: &Text,
    draft: &mut Draft,
) -> Result<HashMap<String, String>, Refusal> {
    let mut names = HashMap::new();
    for resource in resources {
        let word = resource.need("name", text)?;
        let protocol = match &resource.kind()[..] {
            "immediate_ceiling_resource" => Protocol::ImmediateCeiling,
            "priority_inheritance_resource" => Protocol::Inheritance,
            "srp_resource" => Protocol::Srp,
            other => {
                let message = "there is no such shared resource";
                let fault = text.fault("resource_must_be_known", word.at.clone(), message).value(other);
                let known = "Immediate_Ceiling_Resource, Priority_Inheritance_Resource or SRP_Resource";
                return Err(fault.bound(known));
            }
        };
        let (name, comment) = draft.name(&word.text);
        draft.locks.push(Lock { name: name.clone(), comment, protocol, line: text.line(&word.at) });
        if names.insert(word.text.to_ascii_lowercase(), name).is_some() {
            return Err(text.fault("name_must_be_unique", word.at.clone(), "there is one more of this name"));
        }
    }
    Ok(names)
}

/// Makes locks such that a plan can have them: each of one CPU, ceilings of one node, and one protocol for all of a task. `nodes`
/// has of each node its order and CPU.
pub fn fit(draft: &mut Draft, nodes: &HashMap<String, (Order, usize)>) {
    let mut users: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in &draft.tasks {
        used(task).into_iter().for_each(|lock| users.entry(lock).or_default().extend([task.under.clone()]));
    }
    let place = |node: &String| nodes.get(node).copied().unwrap_or((Order::Priority, 0));
    let mut gone = BTreeSet::new();
    let mut left = Vec::new();
    let mut leave = |line: usize, what: String, why: &str| left.push(LeftOut { line, what, why: why.into() });
    for lock in &mut draft.locks {
        let Some(users) = users.get(&lock.name) else { continue };
        let cpus: BTreeSet<_> = users.iter().map(|node| place(node).1).collect();
        if cpus.len() > 1 {
            let why = "its users are on several CPUs, and the file does not say how one waits for another: nobody holds it";
            leave(lock.line, format!("resource `{}`", lock.name), why);
            gone.insert(lock.name.clone());
        } else if users.len() > 1 && lock.protocol.has_ceilings() {
            let why = "its users are of several schedulers: it is inherited";
            leave(lock.line, format!("ceiling of `{}`", lock.name), why);
            lock.protocol = Protocol::Inheritance;
        } else if lock.protocol.has_ceilings() {
            // The stack resource policy of priorities is the immediate ceiling.
            lock.protocol = match users.iter().next().map(|node| place(node).0) {
                Some(Order::Deadline) => Protocol::Srp,
                _ => Protocol::ImmediateCeiling,
            };
        }
    }
    for task in &mut draft.tasks {
        task.sections = without(std::mem::take(&mut task.sections), &gone);
    }
    draft.locks.retain(|lock| !gone.contains(&lock.name));
    for together in groups(&draft.tasks) {
        let mut own: Vec<_> = draft.locks.iter_mut().filter(|lock| together.contains(&lock.name)).collect();
        let Some(first) = own.first().map(|lock| lock.protocol) else { continue };
        if own.iter().any(|lock| lock.protocol != first) {
            let why = "a task has one protocol for all that it holds: these are inherited";
            leave(own[0].line, format!("protocols of {} resources", own.len()), why);
            own.iter_mut().for_each(|lock| lock.protocol = Protocol::Inheritance);
        }
    }
    draft.left_out.append(&mut left);
}

/// Names of the locks that a task holds.
fn used(task: &Task) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut open: Vec<_> = task.sections.iter().collect();
    while let Some(section) = open.pop() {
        names.insert(section.lock.clone());
        open.extend(&section.sections);
    }
    names
}

/// Locks that one task holds belong together, and so do those that have one of them in common.
fn groups(tasks: &[Task]) -> Vec<BTreeSet<String>> {
    let mut beside: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for task in tasks {
        let names = used(task);
        // To the first of them is enough.
        for name in &names {
            let first = names.first().unwrap_or(name);
            beside.entry(name.clone()).or_default().insert(first.clone());
            beside.entry(first.clone()).or_default().insert(name.clone());
        }
    }
    let mut groups = Vec::new();
    while let Some((name, next)) = beside.pop_first() {
        let mut group = BTreeSet::from([name]);
        let mut open: Vec<String> = next.into_iter().collect();
        while let Some(name) = open.pop() {
            open.extend(beside.remove(&name).into_iter().flatten());
            group.insert(name);
        }
        if group.len() > 1 {
            groups.push(group);
        }
    }
    groups
}

/// Sections of other locks than those that are `gone`; what is within one of these is in its place.
fn without(sections: Vec<Section>, gone: &BTreeSet<String>) -> Vec<Section> {
    let mut left = Vec::new();
    for mut section in sections {
        section.sections = without(section.sections, gone);
        if gone.contains(&section.lock) {
            let begin_ns = section.at_ns;
            let later = |inner: Section| Section { at_ns: inner.at_ns + begin_ns, ..inner };
            left.extend(section.sections.into_iter().map(later));
        } else {
            left.push(section);
        }
    }
    left
}
