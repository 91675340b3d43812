//! What a node, a task or each of a set is promised and needs, and from whom, up to its CPUs.

use crate::demand::locks::{awaited_words, held_words, spun_words};
use crate::demand::regions::Keeps;
use crate::explain::chains;
use crate::explain::remedies::Broken;
use crate::explain::words::{self, count};
use crate::verdict::{Admission, Failure, Part, Proof};
use tierce_guarantee::Kind;
use tierce_plan::policies;
use tierce_plan::{closest, show_time, Need, Plan, Shape};

/// The nodes (itself, or all its replicas) and tasks (itself, or all members of a set) of that name; otherwise perhaps the
/// name that was meant.
pub fn named<'p>(plan: &'p Plan, name: &str) -> Result<(Vec<usize>, Vec<usize>), Option<&'p str>> {
    let nodes = plan.nodes.iter().enumerate().filter(|(_, node)| node.name == name || node.base == name);
    let nodes: Vec<_> = nodes.map(|(index, _)| index).collect();
    let set = plan.sets.iter().find(|set| set.name == name);
    let tasks: Vec<_> = match set {
        Some(set) => set.members.clone().collect(),
        None => match plan.chains.iter().find(|chain| chain.name == name) {
            Some(chain) => chain.links.iter().map(|link| link.task).collect(),
            None => plan.tasks.iter().position(|task| task.name == name).into_iter().collect(),
        },
    };
    if nodes.is_empty() && tasks.is_empty() && set.is_none() {
        let nodes = plan.nodes.iter().map(|node| &node.base);
        let names = nodes
            .chain(plan.tasks.iter().map(|task| &task.name))
            .chain(plan.sets.iter().map(|set| &set.name))
            .chain(plan.chains.iter().map(|chain| &chain.name));
        return Err(closest(name, names.map(String::as_str)));
    }
    Ok((nodes, tasks))
}

impl Admission {
    /// What a node, a task or each of a set is promised and needs, and from whom, up to its CPUs; `Err`: there is no such
    /// part, but perhaps one of this name was meant.
    pub fn explain<'p>(&self, plan: &'p Plan, name: &str) -> Result<String, Option<&'p str>> {
        let shape = Shape::new(plan);
        let set = plan.sets.iter().find(|set| set.name == name);
        let (mut waiting, tasks) = named(plan, name)?;
        waiting.reverse();
        let asked = waiting.clone();
        let broken = self.broken(plan);
        let mut about = About { admission: self, plan, shape: &shape, broken, text: String::new() };
        if let Some(chain) = plan.chains.iter().position(|chain| chain.name == name) {
            about.chain(chain);
        } else if let Some(task) = tasks.first() {
            let each = set.map(|set| format!("each of {}", count(set.members.len(), "task")));
            about.task(*task, name, &each.unwrap_or("task".into()));
            waiting.extend(shape.task_parents[*task].iter().map(|edge| plan.edges[*edge].parent));
        } else if let Some(set) = set {
            waiting.extend(set.ways().flatten().map(|edge| edge.parent));
        }
        let mut seen = Vec::new();
        while let Some(index) = waiting.pop() {
            if seen.contains(&index) {
                continue;
            }
            seen.push(index);
            about.node(index, asked.contains(&index));
            waiting.extend(shape.parents[index].iter().map(|edge| plan.edges[*edge].parent));
        }
        Ok(about.text)
    }
}

/// What is said of parts, one after the other.
struct About<'a> {
    admission: &'a Admission,
    plan: &'a Plan,
    shape: &'a Shape,
    broken: Vec<Broken>,
    text: String,
}

impl About<'_> {
    fn line(&mut self, words: &str) {
        self.text.push_str(words);
        self.text.push('\n');
    }

    fn task(&mut self, index: usize, name: &str, what: &str) {
        let (task, found) = (&self.plan.tasks[index], &self.admission.tasks[index]);
        self.heading(name, what, &self.shape.task_parents[index]);
        self.promised(Part::Task(index), true);
        self.needed(&task.needs, &found.needs);
        let response = found.response.and_then(tierce_analysis::Response::ns);
        let deadline = task.load.as_ref().and_then(tierce_plan::Load::deadline_ns);
        if let (Some(response), Some(deadline)) = (response, deadline) {
            let (response, deadline) = (show_time(response), show_time(deadline));
            self.line(&format!("  jobs      response at most {response}, deadline {deadline}"));
            found.test.iter().for_each(|test| self.line(&format!("            by {test}")));
        }
        if let Some(spinning) = &found.spinning {
            let (most, held) = (show_time(spinning.most_ns), spun_words(self.plan, spinning));
            self.line(&format!("  locks     it spins up to {most}: {held}"));
        }
        if let Some(found) = found.suspended.as_ref().filter(|found| found.most_ns > 0) {
            let (most, held) = (show_time(found.most_ns), awaited_words(self.plan, found));
            self.line(&format!("  locks     it is suspended up to {most}: {held}"));
        }
        if let Some(blocking) = found.blocking.as_ref().filter(|blocking| !blocking.held.is_empty()) {
            let most =
                blocking.most_ns.map_or("without a bound".into(), |ns| format!("up to {}", show_time(ns)));
            let times = found.suspended.as_ref().map_or_else(String::new, |found| found.times());
            self.line(&format!("  locks     it waits {most}: {}{times}", held_words(self.plan, blocking)));
        }
        if let Some(kept) = found.kept {
            if let Some(by) = kept.by {
                let most = show_time(kept.most_ns());
                let what =
                    if matches!(by.keeps, Keeps::Threshold { .. }) { "threshold" } else { "regions  " };
                self.line(&format!("  {what} it waits up to {most} for {}", by.words(self.plan)));
            }
            if let Some((priority, _)) = kept.threshold {
                self.line(&format!(
                    "  threshold its own jobs, once begun, give way only to priorities above {priority}"
                ));
            }
            if kept.own.last_ns > 1 {
                let last = show_time(kept.own.last_ns);
                self.line(&format!("  regions   its own jobs do not give way for their last {last}"));
            }
        }
        self.failed(&found.failures);
        let open = found.deadlines.is_open() && !found.soft || found.needs.iter().any(Result::is_err);
        if found.failures.is_empty() && open {
            let above = self.shape.task_parents[index].iter().map(|edge| self.plan.edges[*edge].parent);
            for node in above {
                for failure in &self.admission.nodes[node].failures {
                    self.line(&format!(
                        "  fails     because of `{}`: {}",
                        self.plan.nodes[node].name, failure.rule
                    ));
                }
            }
        }
        self.explanations(Part::Task(index), &[], true);
    }

    fn chain(&mut self, index: usize) {
        let verdict = &self.admission.chains[index];
        let rows = chains::rows(self.plan, &self.plan.chains[index], verdict);
        let tests = [None].into_iter().chain(verdict.links.iter().map(|link| link.test));
        for ([name, what, found], test) in rows.into_iter().zip(tests) {
            let by = test.map_or_else(String::new, |test| format!(", by {test}"));
            self.line(&format!("{name}: {what}: {}{by}", found.trim()));
        }
        self.explanations(Part::Chain(index), &[], true);
    }

    /// `asked`: it is the part in question, not one above it.
    fn node(&mut self, index: usize, asked: bool) {
        let (node, found) = (&self.plan.nodes[index], &self.admission.nodes[index]);
        let policy = policies::by_number(node.policy).map_or("node", |policy| policy.name);
        self.heading(&node.name, policy, &self.shape.parents[index]);
        self.promised(Part::Node(index), asked);
        self.needed(&node.needs, &found.needs);
        self.failed(&found.failures);
        self.explanations(Part::Node(index), &found.failures, asked);
    }

    /// "audio: task below `rt`".
    fn heading(&mut self, name: &str, what: &str, above: &[usize]) {
        let parent = |edge: &usize| {
            let (edge, node) = (&self.plan.edges[*edge], &self.plan.nodes[self.plan.edges[*edge].parent]);
            format!("`{}`", if edge.spread { &node.base } else { &node.name })
        };
        let parents: Vec<_> = above.iter().map(parent).collect();
        let below =
            if parents.is_empty() { String::new() } else { format!(" below {}", parents.join(" and ")) };
        let gap = if self.text.is_empty() { "" } else { "\n" };
        self.line(&format!("{gap}{name}: {what}{below}"));
    }

    /// `asked`: step by step from the CPUs, and what it means for the part.
    fn promised(&mut self, part: Part, asked: bool) {
        for (at, promise) in self.admission.promises_to(part).iter().enumerate() {
            let receives = match promise.guarantee.kind() {
                Kind::Null => "no guarantee: it gets what others leave".into(),
                _ => format!("{}: {}", promise.guarantee.noted(), promise.guarantee.meaning()),
            };
            self.line(&format!("  receives  {receives}"));
            self.line(&format!("            because {}", promise.because));
            let steps = if asked { self.admission.derivation(self.plan, part, at) } else { Vec::new() };
            let names = steps.iter().map(|derived| derived.step.to.to_string());
            let width = names.map(|name| name.chars().count()).max().unwrap_or(0);
            for derived in steps {
                let (name, words) = (derived.step.to.to_string(), derived.words());
                self.line(&format!("              {name:<width$}  {words}"));
            }
            if asked && at == 0 {
                let throttled = words::is_throttled(self.plan, self.shape, part.above(self.shape));
                self.line(&format!("  assumes   {}", words::assumes(&promise.guarantee)));
                self.line(&format!("  overrun   {}", words::overrun(&promise.guarantee, throttled)));
            }
        }
    }

    fn needed(&mut self, needs: &[Need], proofs: &[Proof]) {
        for (need, proof) in needs.iter().zip(proofs) {
            let (mark, why) = match proof {
                Ok(shown) => ("✓", format!("from {}", shown.words)),
                Err(reason) => ("✗", reason.clone()),
            };
            self.line(&format!("  needs     {} {mark} {why}", need.text));
        }
    }

    fn failed(&mut self, failures: &[Failure]) {
        for failure in failures {
            self.line(&format!("  fails     {}: {}", failure.rule, failure.message));
        }
    }

    /// What fails, as below the tree. `laws`: what fails of a node; `asked`: in plain words, too.
    fn explanations(&mut self, part: Part, laws: &[Failure], asked: bool) {
        let (plan, shape) = (self.plan, self.shape);
        let mut lines = Vec::new();
        for found in self.broken.iter().filter(|found| found.part() == part) {
            let law = laws.iter().find(|law| law.rule == found.rule && found.need.is_none());
            lines.extend(asked.then(|| words::wrapped(&found.explanation)));
            lines.extend(found.lines(plan, shape, law, true).into_iter().map(|line| format!("  {line}")));
        }
        lines.iter().for_each(|line| self.line(line));
    }
}
