//! `[[simulate]]`: runs of the simulator.

use super::values::Reader;
use crate::study::{Kind as TestKind, Parameter, Simulation, Template, Test, Under};
use std::path::Path;
use std::sync::Arc;
use tierce_admission::PlanExt as _;
use tierce_plan::reading::{listed, Fields, Value};
use tierce_plan::{Fault, Faults, Options, Plan, Source, Sources};

impl Reader<'_> {
    pub fn simulate(
        &mut self,
        value: &Value,
        cpus: &[u32],
        axes: &[(String, Vec<Parameter>)],
        tests: &mut Vec<Test>,
    ) -> Option<()> {
        let table = self.collector.table("`simulate`", value)?;
        let mut fields = Fields::new("`simulate`", table);
        let name = fields.text("name", &mut self.collector).map(str::to_string);
        let (policy, plan) = (fields.take("policy"), fields.take("plan"));
        let under = fields.take("under");
        let for_ns = fields.duration("for", &mut self.collector);
        let has_time = for_ns.is_some() || fields.is_misspelt("for");
        fields.finish(&mut self.collector);
        if !has_time && !table.entries.iter().any(|(key, _)| key.text == "for") {
            self.fault("time_must_be_given", value, "`for` is missing: how long is simulated");
        }
        let for_ns = for_ns?;
        match (policy, plan) {
            (Some(policy), None) => {
                if cpus.is_empty() || cpus.iter().any(|cpus| *cpus > 1) {
                    let message =
                        "`policy` schedules sets of [generate] on one CPU; for others give a `plan`";
                    self.fault("policy_is_for_sets_of_one_cpu", policy, message);
                    return None;
                }
                let names = [("edf", "edf"), ("rm", "rm"), ("dm", "dm")];
                let one = |reader: &mut Self, what: &str, value: &Value| reader.choice(what, value, &names);
                let policies = self.values("`policy`", policy, one)?;
                if policies.len() > 1 && name.is_some() {
                    let message = "`name` is for one test; with lists each is named by its values";
                    self.fault("name_is_of_one_test", value, message);
                    return None;
                }
                for policy in policies {
                    let plan = if policy == "edf" { Template::Edf } else { Template::FixedPriority };
                    let kind = TestKind::Simulate(Simulation { plan, for_ns });
                    let name = name.clone().unwrap_or_else(|| format!("{policy}, simulated"));
                    self.add_test(value, name, kind, tests);
                }
            }
            (None, Some(plan)) => {
                if let Some(under) = under.filter(|_| cpus.is_empty()) {
                    self.fault("under_needs_sets", under, "a set is put below that node: [generate]");
                    return None;
                }
                let template = self.template(plan, under, axes)?;
                let file = self.collector.text("`plan`", plan)?.to_string();
                let kind = TestKind::Simulate(Simulation { plan: template, for_ns });
                self.add_test(value, name.unwrap_or(file), kind, tests);
            }
            _ => {
                let message = "a simulation has either a `policy`, for the set alone, or a `plan`";
                self.fault("policy_or_plan", value, message);
            }
        }
        Some(())
    }

    /// A plan with the first values of all parameters is read: its faults are those of the study.
    pub fn template(
        &mut self,
        value: &Value,
        under: Option<&Value>,
        axes: &[(String, Vec<Parameter>)],
    ) -> Option<Template> {
        let file = self.collector.text("`plan`", value)?;
        let path = Path::new(self.name).parent().unwrap_or(Path::new("")).join(file);
        let name = path.display().to_string();
        let text = match self.text_of(&path, &name) {
            Ok(text) => text,
            Err(error) => {
                self.fault("file_must_be_readable", value, format!("cannot read {name}: {error}"));
                return None;
            }
        };
        let first = axes.iter().fold(text.clone(), |text, (parameter, values)| {
            text.replace(&format!("${{{parameter}}}"), &values[0].to_string())
        });
        let plan = match self.plan(first, &name) {
            Ok(plan) => plan,
            Err(faults) => {
                let fault = Fault::new("plan_must_be_right", value.spot, format!("{name} has faults"));
                self.collector.add(fault.hint(faults.to_string()));
                return None;
            }
        };
        let others = plan.sources.0[1..].to_vec();
        let itself = Arc::new(Source::new(&*name, &*text));
        for source in [&itself].into_iter().chain(&others) {
            if !self.files.iter().any(|known| known.name == source.name) {
                self.files.push(source.clone());
            }
        }
        let under = match under {
            None => None,
            Some(value) => {
                let node = self.collector.text("`under`", value)?;
                let Some(found) = plan.nodes.iter().find(|found| found.name == node) else {
                    let names: Vec<_> = plan.nodes.iter().map(|node| node.name.as_str()).collect();
                    let fault =
                        Fault::new("node_must_exist", value.spot, format!("{name} has no node `{node}`"));
                    self.collector.add(fault.hint(format!("it has {}", listed(&names))));
                    return None;
                };
                Some(Under {
                    node: node.to_string(),
                    by_priority: tierce_policy::policies()
                        .iter()
                        .any(|policy| policy.number == found.policy && policy.name == "fixed-priority"),
                })
            }
        };
        Some(Template::Text { text, name, under, others })
    }

    fn text_of(&self, path: &Path, name: &str) -> std::io::Result<String> {
        match self.given.iter().find(|given| given.name == name) {
            Some(given) => Ok(given.text.clone()),
            None => std::fs::read_to_string(path),
        }
    }

    /// With what it includes.
    fn plan(&self, text: String, name: &str) -> Result<Plan, Faults> {
        if self.given.is_empty() {
            return Plan::parse(&text, name);
        }
        let others = self.given.iter().filter(|given| given.name != name).cloned();
        let sources = [Arc::new(Source::new(name, text))].into_iter().chain(others).collect();
        Plan::from_sources(&Sources(sources), Options::default())
    }
}
