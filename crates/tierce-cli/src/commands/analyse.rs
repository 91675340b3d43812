//! `tierce analyse`: do the tasks of a table meet their deadlines under one policy?

mod criticality;
mod federated;
mod jobs;
mod one_cpu;
mod output;
mod question;
mod verdict;

pub use output::short;
pub use question::{read, read_set, time, time_within, Args};

use anyhow::Result;
use output::{in_json, print};
use question::Question;
use std::process::ExitCode;
use tierce_analysis::job_sets;
use verdict::{anywhere, in_parts};

/// Run `tierce analyse`.
pub fn run(args: Args) -> Result<ExitCode> {
    let text = question::read_text(&args.tasks)?;
    if job_sets::is_job_set(&text) {
        return jobs::run(&args, &text);
    }
    let asked = Question::new(&args, &text)?;
    if let Some(policy) = asked.policy.mixed() {
        return criticality::run(&asked, &policy, args.json);
    }
    if asked.policy == question::Policy::Federated {
        return federated::run(&asked, args.json);
    }
    let outcome = if asked.is_global() { anywhere(&asked)? } else { in_parts(&asked) };
    if args.json {
        println!("{}", serde_json::to_string_pretty(&in_json(&asked, &outcome))?);
    } else {
        print(&asked, &outcome);
    }
    Ok(ExitCode::from(u8::from(!outcome.schedulable)))
}
