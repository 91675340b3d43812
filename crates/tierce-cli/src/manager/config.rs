//! Which rules there are, and how much one may have: the configuration of the manager.

use crate::manager::access::Access;
use crate::manager::unit::Units;
use crate::manager::{bus, programs};
use anyhow::{bail, Context, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use tierce_manager::rules::{shipped, SHIPPED};
use tierce_manager::{Limits, Principal, Rules};

/// `manager.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Written {
    limits: WrittenLimits,
    rule: Vec<WrittenRule>,
    access: Access,
    realtimekit: bus::RealtimeKit,
    programs: programs::Config,
    /// Cgroups, by name.
    containers: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenLimits {
    requests_each: Option<usize>,
    requests: Option<usize>,
    divisions: Option<usize>,
    divisions_each: Option<usize>,
    least_budget: Option<String>,
    least_period: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    /// One that comes with Tierce, or what a file's rule is to be called.
    name: Option<String>,
    /// Its text, relative to the configuration.
    file: Option<PathBuf>,
    owner: Option<Principal>,
    #[serde(default)]
    parameters: Map<String, Value>,
}

/// What is configured.
pub struct Config {
    pub rules: Rules,
    pub limits: Limits,
    pub bus: bus::Config,
    pub units: Units,
    pub programs: programs::Config,
}

/// Of a file, if there is one, and of rules named on the command line, by name or file.
pub fn read(file: Option<&Path>, more: &[String]) -> Result<Config> {
    let written: Written = match file {
        Some(file) => {
            let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
            toml::from_str(&text).with_context(|| format!("{}", file.display()))?
        }
        None => Written::default(),
    };
    let preset = Limits::default();
    let limits = Limits {
        requests_each: written.limits.requests_each.unwrap_or(preset.requests_each),
        requests: written.limits.requests.unwrap_or(preset.requests),
        divisions: written.limits.divisions.unwrap_or(preset.divisions),
        divisions_each: written.limits.divisions_each.unwrap_or(preset.divisions_each),
        least_budget_ns: time("least_budget", written.limits.least_budget, preset.least_budget_ns)?,
        least_period_ns: time("least_period", written.limits.least_period, preset.least_period_ns)?,
    };
    let mut rules = Rules::new();
    let folder = file.and_then(Path::parent).unwrap_or(Path::new(""));
    for WrittenRule { name, file, owner, parameters } in written.rule {
        let owner = owner.unwrap_or(Principal::System);
        add(&mut rules, name, file.map(|file| folder.join(file)), owner, parameters.into())?;
    }
    for rule in more {
        let is_file = rule.contains(['/', '.']);
        let (name, file) = if is_file { (None, Some(rule.into())) } else { (Some(rule.clone()), None) };
        add(&mut rules, name, file, Principal::System, Value::Object(Map::new()))?;
    }
    let units = Units::new(written.containers)?;
    let bus = bus::Config { access: written.access, realtime_kit: written.realtimekit, units: units.clone() };
    Ok(Config { rules, limits, bus, units, programs: written.programs })
}

/// A time, as plans have them.
fn time(key: &str, text: Option<String>, preset: u64) -> Result<u64> {
    let Some(text) = text else { return Ok(preset) };
    match tierce_plan::parse_time(&text) {
        Ok(ns) => Ok(ns),
        Err(why) => bail!("{}: `{key}` of [limits]: {text:?}: {}", why.rule(), why.message()),
    }
}

fn add(
    rules: &mut Rules,
    name: Option<String>,
    file: Option<PathBuf>,
    owner: Principal,
    parameters: Value,
) -> Result<()> {
    let (name, text) = match (name, file) {
        (name, Some(file)) => {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            (name.unwrap_or_else(stem), text)
        }
        (Some(name), None) => match shipped(&name) {
            Some(text) => (name, text.to_string()),
            None => {
                let all: Vec<_> = SHIPPED.iter().map(|(name, _)| *name).collect();
                bail!("rule_must_exist: no rule `{name}` comes with tierce; there are {}", all.join(", "));
            }
        },
        (None, None) => bail!("rule_must_be_given: a rule has a `name` or a `file`"),
    };
    Ok(rules.add(&name, owner, &text, &parameters)?)
}
