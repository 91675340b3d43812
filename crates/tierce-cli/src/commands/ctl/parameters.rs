//! What an operation of `tierce ctl` is given: who is meant, and parameters, which are whatever the policies have.

use clap::{Arg, ArgMatches, Command};
use std::collections::BTreeMap;
use tierce_plan::{show_time, Keys};
use tierce_policy::{policies, ParamKind};

/// `1234`, or `KEY=VALUE,KEY=VALUE`.
pub fn who(text: &str) -> Result<Keys, String> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty() {
        return Ok(vec![("tid".into(), text.into())]);
    }
    let pair =
        |pair: &str| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.into(), value.into())),
            _ => Err("the number of a thread, or KEY=VALUE as in `match` of a plan: pid=1234, comm=make*"
                .to_string()),
        };
    text.split(',').map(pair).collect()
}

/// Keys of an edge with a budget on one CPU.
pub const ON: [&str; 4] = ["cpu", "budget", "period", "deadline"];

/// `CPU:BUDGET/PERIOD`, or `CPU:BUDGET/PERIOD/DEADLINE`.
pub fn on(text: &str) -> Result<Keys, String> {
    let words: Option<Vec<&str>> =
        text.split_once(':').map(|(cpu, times)| [cpu].into_iter().chain(times.split('/')).collect());
    let words =
        words.filter(|words| (3..=ON.len()).contains(&words.len()) && words.iter().all(|it| !it.is_empty()));
    let words = words.ok_or("CPU:BUDGET/PERIOD, as in 0:2ms/10ms, or CPU:BUDGET/PERIOD/DEADLINE")?;
    Ok(ON.iter().zip(words).map(|(key, word)| (key.to_string(), word.to_string())).collect())
}

/// Keys of nodes and edges that belong to no policy.
const OTHER_KEYS: [(&str, &str, &str); 6] = [
    ("concurrency", "NUMBER", "CPUs that may run the node at once"),
    ("spread", "true|false", "of the node: a replica on each CPU, between which the tasks below it move"),
    ("rank", "NUMBER", "of the edge: which CPU gets a child that several want to run; larger wins"),
    ("when", "spent", "of the edge: used only while every other edge of the child has no budget left"),
    (
        "job_deadline",
        "TIME|none",
        "of a task, or of the threads of a set or node: jobs that end later are counted as missed",
    ),
    ("cpu", "NUMBER|any", "of the edge: which replica of the parent; any: one where there is room"),
];

/// What was given of them.
pub struct Params(pub Keys);

/// An option for each of them.
fn options(mut command: Command) -> Command {
    let mut known: BTreeMap<&str, (&str, Vec<String>)> = BTreeMap::new();
    for policy in policies() {
        for param in policy.edge_params.iter().chain(&policy.node_params) {
            let value = match param.kind {
                ParamKind::Time | ParamKind::DurationOf(_) => "TIME",
                ParamKind::Choice => "CHOICE",
                ParamKind::Count | ParamKind::Ratio => "NUMBER",
            };
            let meaning = format!("{}: {} ({})", policy.name, param.meaning, param.range(show_time));
            known.entry(param.name).or_insert((value, Vec::new())).1.push(meaning);
        }
    }
    for (key, value, meaning) in OTHER_KEYS {
        known.insert(key, (value, vec![meaning.to_string()]));
    }
    for (name, (value, meanings)) in known {
        let arg = Arg::new(name).long(name).value_name(value).allow_negative_numbers(true);
        command = command.arg(arg.help(meanings.join("; ")).help_heading("Parameters"));
    }
    command
}

impl clap::Args for Params {
    /// Only those of the operation that is asked for: there are many, and they are half of the work of a short request.
    fn augment_args(command: Command) -> Command {
        command.defer(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Params {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let names = policies().iter().flat_map(|policy| policy.node_params.iter().chain(&policy.edge_params));
        let mut names: Vec<&str> =
            names.map(|param| param.name).chain(OTHER_KEYS.map(|(key, ..)| key)).collect();
        names.sort_unstable();
        names.dedup();
        let given = |name: &str| Some((name.to_string(), matches.get_one::<String>(name)?.clone()));
        Ok(Params(names.into_iter().filter_map(given).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0 = Self::from_arg_matches(matches)?.0;
        Ok(())
    }
}
