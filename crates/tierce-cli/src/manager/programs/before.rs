//! What a manager before this one has asked for. Whoever still has a profile is taken over when it is asked for again; of the others
//! nobody would know.

use super::{look, Programs, LABEL};
use crate::journal::{report, Level};
use std::fs;
use std::path::PathBuf;
use tierce_manager::{Ask, Asker, List, Mode, Shown, Which};

impl Programs {
    /// The request that a manager before this one has made here for a thread, and what it asks for.
    pub(super) fn request_of(&self, tid: u32) -> Option<(u64, Mode)> {
        let all = self.way.ask(&Asker::SYSTEM, Ask::List(List {})).ok()?.requests;
        let own = |shown: &&Shown| shown.thread == Some(tid) && shown.label.as_deref() == Some(LABEL);
        all.iter().find(own).and_then(|shown| Some((shown.id, shown.modes.first()?.clone())))
    }

    /// Requests of programs whose profile went while no manager was there end, once the first plan is in force.
    pub(super) fn end_forgotten(&mut self) {
        if self.has_ended_forgotten {
            return;
        }
        let Ok(all) = self.way.ask(&Asker::SYSTEM, Ask::List(List {})) else { return }; // no plan is in force yet
        self.has_ended_forgotten = true;
        for request in all.requests.iter().filter(|request| request.label.as_deref() == Some(LABEL)) {
            let Some((tid, program)) = request.thread.and_then(|tid| Some((tid, program_of(tid)?))) else {
                continue; // the manager ends what has no thread
            };
            let uid = look(tid).and_then(|info| info.uid);
            if uid.is_none_or(|uid| self.profiles.of(&program, uid).is_some()) {
                continue;
            }
            let program = program.display().to_string();
            let message =
                format!("{program}: request {} of thread {tid} ends: its profile is gone", request.id);
            report(Level::Info, "program_forgotten", &message, &[("program", (&*program).into())]);
            // The manager may have ended it together with its thread.
            let _ = self.way.ask(&Asker::SYSTEM, Ask::Cancel(Which { id: request.id }));
        }
    }
}

/// What a thread runs, also if another file has been installed at its path since.
fn program_of(tid: u32) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/{tid}/exe")).ok()?;
    let text = path.to_str().and_then(|text| text.strip_suffix(" (deleted)")).map(PathBuf::from);
    Some(text.unwrap_or(path))
}
