//! An analysis that may take long, and may be ended.

use std::process::ExitCode;
use std::sync::Arc;
use tierce_analysis::Watch;
use tierce_terminal::{watched, Watched};

/// Work on a thread of its own, with progress, until it is done or ended by Ctrl-C.
pub fn beside<T: Send + 'static>(
    things: &'static str,
    work: impl FnOnce(&Watch) -> T + Send + 'static,
) -> Watched<T> {
    let watch = Arc::new(Watch::default());
    let shared = Arc::clone(&watch);
    let progress = || watch.progress().map(|(done, all)| (done as u64, all as u64));
    watched("analysing", things, progress, || watch.end(), move || work(&shared))
}

pub fn ended_with_nothing() -> ExitCode {
    eprintln!("tierce analyse: ended early; nothing was found by then");
    ExitCode::from(1)
}
