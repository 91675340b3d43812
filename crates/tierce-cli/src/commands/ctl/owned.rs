//! The same operations by the owner of a scheduler that the resource manager has granted: the manager is asked, not the loader.

use anyhow::{bail, Result};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use tierce_ask::Manager;
use tierce_manager::words::words;
use tierce_manager::{Answer, Ask, Divide, List, State, Wrong, VERSION};
use tierce_plan::Edit;

/// The scheduler of a request.
pub struct Owned {
    /// Where the manager listens.
    pub listen: PathBuf,
    /// Number of the request.
    pub id: u64,
}

impl Owned {
    /// All of these operations, or none; what is below the scheduler then.
    pub fn divide(&self, edits: Vec<Edit>, dry_run: bool, as_json: bool) -> Result<ExitCode> {
        self.ask(&Ask::Divide(Divide { id: self.id, edits, dry_run }), as_json, Ok)
    }

    /// What is below the scheduler, and what each part has received.
    pub fn show(&self, as_json: bool) -> Result<ExitCode> {
        self.ask(&Ask::List(List {}), as_json, |mut answer| {
            answer.requests.retain(|request| request.id == self.id);
            match answer.requests.is_empty() {
                true => Err(Wrong::new("request_must_exist", format!("no request {} of yours", self.id))),
                false => Ok(answer),
            }
        })
    }

    fn ask(
        &self,
        ask: &Ask,
        as_json: bool,
        only: impl Fn(Answer) -> Result<Answer, Wrong>,
    ) -> Result<ExitCode> {
        let answer = match Manager::open(&self.listen)?.ask(ask)?.and_then(only) {
            Ok(answer) => answer,
            Err(wrong) if as_json => {
                println!("{}", json!({ "version": VERSION, "ok": false, "error": wrong }));
                return Ok(ExitCode::from(2));
            }
            Err(wrong) => bail!("{wrong}"),
        };
        match as_json {
            true => println!("{}", json!({ "version": VERSION, "ok": true, "answer": answer })),
            false => print!("{}", words(&answer)),
        }
        Ok(ExitCode::from(u8::from(answer.state == State::Refused)))
    }
}
