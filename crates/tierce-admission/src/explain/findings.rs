//! Below the tree of a plan: every failure in plain words with the smallest change that fixes it, warnings, and the verdict in one
//! line.

use crate::explain::remedies::{Broken, Remedy};
use crate::explain::words::{count, wrapped};
use crate::rules::what_helps;
use crate::verdict::{Admission, Deadlines, Failure, Proof};
use std::collections::HashMap;
use tierce_plan::{Fault, Need, Plan, Shape};

/// What fails is explained at length for so many.
const EXPLAINED_MAX: usize = 16;

/// What was found, written line by line.
pub(super) struct Findings<'a> {
    admission: &'a Admission,
    plan: &'a Plan,
    shape: &'a Shape,
    /// By name and need: there may be thousands.
    broken: HashMap<(&'a str, Option<&'a str>), &'a Broken>,
    explained: usize,
    text: &'a mut String,
}

impl Admission {
    pub(super) fn findings(&self, plan: &Plan, shape: &Shape, text: &mut String) {
        let broken = self.broken(plan);
        let by_name = broken.iter().rev().map(|found| ((&*found.name, found.need.as_deref()), found));
        let by_name = by_name.collect();
        let mut findings = Findings { admission: self, plan, shape, broken: by_name, explained: 0, text };
        findings.line("");
        findings.laws();
        findings.deadlines();
        findings.needs();
        findings.chains();
        findings.unexplained();
        for warning in self.warnings(plan) {
            findings.warning(&warning);
        }
        if plan.default_node.is_none() && !plan.entries.is_empty() {
            findings.line("`tierce run` refuses it: no node is the default (`check --run` says more).");
        }
        findings.line(&self.verdict(plan, &broken));
    }

    /// "Holds: 3 nodes tested, 2 tasks meet their deadlines."
    fn verdict(&self, plan: &Plan, broken: &[Broken]) -> String {
        let failed = self.nodes.iter().filter(|node| !node.failures.is_empty()).count();
        let tested = self.nodes.iter().filter(|node| node.law.is_some() || !node.failures.is_empty()).count();
        let nodes = self.nodes.iter().flat_map(|node| &node.needs);
        let needs = nodes.chain(self.tasks.iter().flat_map(|task| &task.needs));
        let unshown = needs.filter(|proof| proof.is_err()).count();
        let first = broken.first().and_then(|first| first.edge).map_or(String::new(), |edge| {
            let edge = &plan.edges[edge];
            format!(", first at `{}` → `{}`", plan.nodes[edge.parent].name, plan.child_name(edge.child))
        });
        let met = self.tasks.iter().filter(|task| task.deadlines == Deadlines::Met).count();
        let late = self.tasks.iter().filter(|task| !task.failures.is_empty()).count();
        let slow = || self.chains.iter().flat_map(|chain| &chain.failures);
        let late = late + slow().flatten().count();
        let within = self.chains.iter().filter(|chain| !chain.failures.is_empty()).count();
        let mut kept = match met {
            0 => String::new(),
            1 => ", 1 task meets its deadlines".into(),
            _ => format!(", {met} tasks meet their deadlines"),
        };
        kept += &match within {
            0 => String::new(),
            1 => ", 1 chain takes no longer than it may".into(),
            _ => format!(", {within} chains take no longer than they may"),
        };
        let met = met + within;
        match (failed, tested, unshown, late) {
            (0, 0, 0, 0) if met == 0 => "Holds: there is nothing to prove.".into(),
            (0, 0, 0, 0) => format!("Holds: {}.", kept.trim_start_matches(", ")),
            (0, _, 0, 0) => format!("Holds: {} tested{kept}.", count(tested, "node")),
            (0, _, _, 0) => format!("Does not hold: {} not proved{first}.", count(unshown, "need")),
            (0, _, 0, _) => format!("Does not hold: {}{first}.", self.late()),
            (0, ..) => {
                format!("Does not hold: {} not proved, {}{first}.", count(unshown, "need"), self.late())
            }
            (1, 1, ..) => format!("Does not hold: 1 node failed{first}."),
            _ => format!("Does not hold: {failed} of {} failed{first}.", count(tested, "tested node")),
        }
    }
}

impl Admission {
    /// "1 task can miss deadlines, deadlines of 2 tasks not proved".
    fn late(&self) -> String {
        let rules = || self.tasks.iter().filter_map(|task| Some(task.failures.first()?.rule));
        let can = rules().filter(|rule| *rule == "deadline_can_be_missed").count();
        let mut words = Vec::new();
        if can > 0 {
            words.push(format!("{} can miss deadlines", count(can, "task")));
        }
        if rules().count() > can {
            words.push(format!("deadlines of {} not proved", count(rules().count() - can, "task")));
        }
        let slow = self.chains.iter().filter(|chain| chain.failures.iter().any(Option::is_some)).count();
        if slow > 0 {
            words.push(format!("latency of {} not proved", count(slow, "chain")));
        }
        words.join(", ")
    }
}

impl Findings<'_> {
    fn line(&mut self, words: &str) {
        self.text.push_str(words.trim_end());
        self.text.push('\n');
    }

    /// Of nodes: those that fail, and what could not be tested.
    fn laws(&mut self) {
        for (node, verdict) in self.plan.nodes.iter().zip(&self.admission.nodes) {
            for failure in &verdict.failures {
                let place = self.plan.sources.place(node.spot);
                self.line(&format!("✗ {} ({place}): {}: {}", node.name, failure.rule, failure.message));
                self.explain((&node.name, None), Some(failure));
            }
            for open in &verdict.open {
                self.line(&format!("? {}: {open}.", node.name));
            }
        }
    }

    fn deadlines(&mut self) {
        for (task, verdict) in self.plan.tasks.iter().zip(&self.admission.tasks) {
            for failure in &verdict.failures {
                let place = self.plan.sources.place(task.spot);
                self.line(&format!("✗ {} ({place}): {}: {}", task.name, failure.rule, failure.message));
                self.explain((&task.name, None), None);
            }
        }
        let missing = self.admission.tasks.iter().filter(|task| task.deadlines.is_open() && task.soft);
        let missing = missing.count();
        if missing > 0 {
            self.line(&format!("! {} may miss deadlines, which are soft.", count(missing, "task")));
        }
    }

    fn needs(&mut self) {
        for (node, verdict) in self.plan.nodes.iter().zip(&self.admission.nodes) {
            self.needs_of(&node.name, node.needs.iter().zip(&verdict.needs));
        }
        for (task, verdict) in self.plan.tasks.iter().zip(&self.admission.tasks) {
            self.needs_of(&task.name, task.needs.iter().zip(&verdict.needs));
        }
    }

    fn chains(&mut self) {
        for (chain, verdict) in self.plan.chains.iter().zip(&self.admission.chains) {
            for (need, failure) in chain.needs.iter().zip(&verdict.failures) {
                let Some(failure) = failure else { continue };
                let place = self.plan.sources.place(need.spot);
                self.line(&format!("✗ {} ({place}): {}: {}", chain.name, failure.rule, failure.message));
                self.explain((&chain.name, Some(&need.text)), None);
            }
        }
    }

    fn needs_of<'n>(&mut self, name: &str, proofs: impl Iterator<Item = (&'n Need, &'n Proof)>) {
        for (need, proof) in proofs {
            let Err(reason) = proof else { continue };
            let place = self.plan.sources.place(need.spot);
            self.line(&format!(
                "✗ {name} ({place}): needs_must_follow: {} is not proved: {reason}.",
                need.text
            ));
            self.explain((name, Some(&need.text)), None);
        }
    }

    /// What it means, where it breaks, and what fixes it. `law`: of the node, where that is what fails.
    fn explain(&mut self, which: (&str, Option<&str>), law: Option<&Failure>) {
        let Some(found) = self.broken.get(&which).copied() else { return };
        self.explained += 1;
        let at_length = self.explained <= EXPLAINED_MAX;
        if at_length && !found.explanation.is_empty() {
            self.line(&wrapped(&found.explanation));
        }
        for line in found.lines(self.plan, self.shape, law, at_length) {
            self.line(&format!("  {line}"));
        }
    }

    fn unexplained(&mut self) {
        if self.explained > EXPLAINED_MAX {
            let more = self.explained - EXPLAINED_MAX;
            self.line(&format!(
                "Explained are the first {EXPLAINED_MAX}; for the other {more}: `--explain NAME`, or --json."
            ));
        }
    }

    fn warning(&mut self, warning: &Fault) {
        let place = self.plan.sources.place(warning.spot);
        let numbers = match (&warning.value, &warning.bound) {
            (Some(value), Some(bound)) => format!(": {value}, more than {bound}"),
            _ => String::new(),
        };
        let hint = warning.hint.as_ref().map_or(String::new(), |hint| format!(" ({hint})"));
        self.line(&format!("! {place}: {}: {}{numbers}{hint}.", warning.rule, warning.message));
    }
}

impl Broken {
    /// Where it breaks, and what fixes it. `law`: of the node, where that is what fails.
    pub(super) fn lines(
        &self,
        plan: &Plan,
        shape: &Shape,
        law: Option<&Failure>,
        at_length: bool,
    ) -> Vec<String> {
        let tried = self.untried.is_none();
        let mend = law.and_then(|law| law.mend.as_ref()).map(|mend| mend.words(plan));
        let mut lines: Vec<_> =
            law.and_then(|law| self.smallest_change(plan, shape, law)).into_iter().collect();
        lines.push(format!("{}.", self.words(plan)));
        let nearest = self.nearest(plan).into_iter().map(|remedy| (remedy.words(plan), remedy));
        let others: Vec<_> = nearest.filter(|(words, _)| Some(words) != mend.as_ref()).collect();
        if others.is_empty() && law.is_none() && tried {
            lines.push(self.no_change());
        }
        let line = |(words, remedy): &(String, Remedy)| match (
            tried,
            tried && self.whole_plan_holds(plan, remedy),
        ) {
            (false, _) => format!("This test would hold: {words}."),
            (true, true) => format!("The plan would hold (tried): {words}."),
            (true, false) => format!("This would hold, not yet the plan (tried): {words}."),
        };
        lines.extend(others.iter().map(line));
        if let Some(why) = self.untried.as_ref().filter(|_| at_length) {
            lines.push(format!("Nothing was tried on the whole plan: {why}."));
        }
        lines
    }

    /// What the law that fails asks for; nothing where remedies were found that fix the whole plan, unlike this change.
    fn smallest_change(&self, plan: &Plan, shape: &Shape, law: &Failure) -> Option<String> {
        let tried = self.untried.is_none();
        Some(match &law.mend {
            Some(mend) if !tried => {
                format!("The smallest change with which this test would hold: {}.", mend.words(plan))
            }
            // What one test asks for is not always enough for the others.
            Some(mend) if self.is_mended_by(plan, &mend.remedy(plan)) => {
                let what = match self.whole_plan_holds(plan, &mend.remedy(plan)) {
                    true => "the plan would hold (tried)",
                    false => "this would hold, not yet the plan (tried)",
                };
                format!("The smallest change with which {what}: {}.", mend.words(plan))
            }
            _ if tried && !self.remedies.is_empty() => return None,
            Some(mend) => {
                format!("With this change the test would hold, and the plan would not: {}.", mend.words(plan))
            }
            None if law.too_many(shape, self.part()) => {
                "Among so many no single reduction was looked for: reduce several.".into()
            }
            None if law.rule == "budget_must_pay_for_a_switch" => {
                "Several budgets are too short: raise each of them.".into()
            }
            None => self.no_change(),
        })
    }

    /// No change of one number helps.
    fn no_change(&self) -> String {
        let helps = what_helps(self.rule).unwrap_or("several changes");
        format!("No change of a single number was found that helps. What may help: {helps}.")
    }
}
