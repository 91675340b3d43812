//! `tierce analyse`: do the tasks of a table, or of a TOML file, meet their deadlines under one policy?

mod criticality;
mod early;
mod federated;
mod jobs;
mod output;
mod question;
mod system;

pub use question::{one_of, read, read_set, Args};
pub use tierce_analysis::question::{time, time_within};

use anyhow::Result;
use early::{beside, ended_with_nothing};
use output::{in_json, print};
use std::process::ExitCode;
use std::sync::Arc;
use tierce_analysis::job_sets;
use tierce_analysis::question::{Answer, Question};
use tierce_terminal::Watched;

/// Run `tierce analyse`.
pub fn run(args: Args) -> Result<ExitCode> {
    let text = question::read_text(&args.tasks)?;
    let is_toml = args.tasks.extension().is_some_and(|extension| extension == "toml");
    if !is_toml && job_sets::is_job_set(&text) {
        return jobs::run(&args, &text);
    }
    let entries = if is_toml {
        match system::read(&text, &args.tasks.display().to_string(), args.policy) {
            Ok(set) if set.is_plain() => set.entries(),
            Ok(set) => return system::run(&args, set),
            Err(faults) => {
                eprint!("{}", faults.report());
                return Ok(ExitCode::from(2));
            }
        }
    } else {
        question::parse_set(&args.tasks, &text)?.0
    };
    let asked = Arc::new(Question::new(entries, &args.options())?);
    let worker = Arc::clone(&asked);
    let (answer, early) = match beside("tasks", move |watch| worker.answer_while(watch)) {
        Watched::Done(answer) => (answer?, false),
        Watched::Early(answer) => (answer?, true),
        Watched::Nothing => return Ok(ended_with_nothing()),
    };
    match &answer {
        Answer::Criticalities(found) => criticality::run(&asked, found, args.json)?,
        Answer::Federated(found) => federated::run(&asked, found, args.json)?,
        Answer::Tasks(outcome) if args.json => {
            println!("{}", serde_json::to_string_pretty(&in_json(&asked, outcome))?);
        }
        Answer::Tasks(outcome) => print(&asked, outcome),
    }
    Ok(ExitCode::from(u8::from(early || !answer.schedulable())))
}
