//! Below the tree of a plan: every failure in plain words with the smallest change that mends it, warnings, and the verdict in one
//! line.

use crate::explain::remedies::Broken;
use crate::explain::words::{count, wrapped};
use crate::verdict::{Admission, Deadlines, Failure, Mend, Proof};
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
        findings.unexplained();
        for warning in self.warnings(plan) {
            findings.warning(&warning);
        }
        findings.line(&self.verdict(plan, &broken));
    }

    /// "Holds: 3 nodes tested, 2 tasks meet their deadlines."
    fn verdict(&self, plan: &Plan, broken: &[Broken]) -> String {
        let failed = self.nodes.iter().filter(|node| !node.failures.is_empty()).count();
        let tested = self.nodes.iter().filter(|node| node.law.is_some()).count();
        let nodes = self.nodes.iter().flat_map(|node| &node.needs);
        let needs = nodes.chain(self.tasks.iter().flat_map(|task| &task.needs));
        let unshown = needs.filter(|proof| proof.is_err()).count();
        let first = broken.first().and_then(|first| first.edge).map_or(String::new(), |edge| {
            let edge = &plan.edges[edge];
            format!(", first at `{}` → `{}`", plan.nodes[edge.parent].name, plan.child_name(edge.child))
        });
        let met = self.tasks.iter().filter(|task| task.deadlines == Deadlines::Met).count();
        let late = self.tasks.iter().filter(|task| !task.failures.is_empty()).count();
        let kept = match met {
            0 => String::new(),
            1 => ", 1 task meets its deadlines".into(),
            _ => format!(", {met} tasks meet their deadlines"),
        };
        match (failed, tested, unshown, late) {
            (0, 0, 0, 0) if met == 0 => "Holds: there is nothing to prove.".into(),
            (0, 0, 0, 0) => format!("Holds: {}.", kept.trim_start_matches(", ")),
            (0, _, 0, 0) => format!("Holds: {} tested{kept}.", count(tested, "node")),
            (0, _, _, 0) => format!("Does not hold: {} not proved{first}.", count(unshown, "need")),
            (0, _, 0, _) => format!("Does not hold: deadlines of {} not proved{first}.", count(late, "task")),
            (0, ..) => format!(
                "Does not hold: {} and deadlines of {} not proved{first}.",
                count(unshown, "need"),
                count(late, "task")
            ),
            _ => format!("Does not hold: {failed} of {} failed{first}.", count(tested, "tested node")),
        }
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

    fn needs_of<'n>(&mut self, name: &str, proofs: impl Iterator<Item = (&'n Need, &'n Proof)>) {
        for (need, proof) in proofs {
            let Err(reason) = proof else { continue };
            let place = self.plan.sources.place(need.spot);
            self.line(&format!("✗ {name} ({place}): {} is not proved: {reason}.", need.text));
            self.explain((name, Some(&need.text)), None);
        }
    }

    /// What it means, where it breaks, and what mends it. `law`: of the node, where that is what fails.
    fn explain(&mut self, which: (&str, Option<&str>), law: Option<&Failure>) {
        let Some(found) = self.broken.get(&which).copied() else { return };
        self.explained += 1;
        let at_length = self.explained <= EXPLAINED_MAX;
        if at_length {
            self.line(&wrapped(&found.explanation));
        }
        let tried = found.untried.is_none();
        let mend = law.and_then(|failure| failure.mend.as_ref()).map(|mend| mend.words(self.plan));
        if let Some(line) = law.and_then(|law| self.smallest_change(law, found)) {
            self.line(&line);
        }
        self.line(&format!("  {}.", found.words(self.plan)));
        let holds = if tried { "It would hold" } else { "This test would hold" };
        let words = found.nearest(self.plan).into_iter().map(|remedy| remedy.words(self.plan));
        for words in words.filter(|words| Some(words) != mend.as_ref()) {
            self.line(&format!("  {holds}: {words}."));
        }
        if let Some(why) = found.untried.as_ref().filter(|_| at_length) {
            self.line(&format!("  Changes of the whole plan were not tried: {why}."));
        }
    }

    /// What the law that fails asks for; nothing where remedies were found that mend the whole plan, unlike this change.
    fn smallest_change(&self, law: &Failure, found: &Broken) -> Option<String> {
        let tried = found.untried.is_none();
        // What one test asks for is not always enough for the others.
        let enough = |mend: &Mend| !tried || found.is_mended_by(self.plan, &mend.remedy(self.plan));
        Some(match &law.mend {
            Some(mend) if enough(mend) => {
                format!("  The smallest change that mends it: {}.", mend.words(self.plan))
            }
            _ if tried && !found.remedies.is_empty() => return None,
            Some(mend) => format!("  This test alone would hold: {}.", mend.words(self.plan)),
            None if law.too_many(self.shape, found.part()) => {
                "  Which single reduction mends it was not looked for among so many: reduce several.".into()
            }
            None if law.rule == "budget_must_pay_for_a_switch" => {
                "  Several budgets are too short: raise each of them.".into()
            }
            None => "  No single reduction was found that mends it: reduce several.".into(),
        })
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
