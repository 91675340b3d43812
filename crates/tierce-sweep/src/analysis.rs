//! Is a set schedulable? As `tierce analyse` says, with response times only where they are wanted.

use crate::study::Analysis;
use tierce_analysis::question::{Answer, Options, Question, Refused};
use tierce_analysis::{Entry, Response, Task};

/// What is found of a set.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// It is shown that all deadlines are met.
    pub schedulable: bool,
    /// The largest response over deadline; `None` where it was not asked for, or a task has no bound.
    pub ratio: Option<f64>,
}

/// The verdict on a set.
pub fn outcome(asked: &Analysis, tasks: &[Task], cpus: u32) -> Result<Outcome, Refused> {
    let options = Options { cpus: Some(cpus), ..asked.options.clone() };
    let question = Question::new(tasks.iter().map(entry).collect(), &options)?;
    if !asked.responses {
        return Ok(Outcome { schedulable: question.verdict()?.0, ratio: None });
    }
    let answer = question.answer()?;
    let ratio = match &answer {
        Answer::Tasks(found) => ratio(tasks, &found.responses),
        _ => None,
    };
    Ok(Outcome { schedulable: answer.schedulable(), ratio })
}

/// Without a name, which nobody is shown.
fn entry(task: &Task) -> Entry {
    Entry::new(String::new(), *task)
}

/// `None` also where one fits on no CPU: then none has a response.
fn ratio(tasks: &[Task], responses: &[Response]) -> Option<f64> {
    let each = |(task, response): (&Task, &Response)| Some(response.ns()? as f64 / task.deadline_ns as f64);
    let ratios = tasks.iter().zip(responses).map(each).collect::<Option<Vec<_>>>()?;
    ratios.into_iter().reduce(f64::max)
}
