//! A line that says how far long work has come.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// Work that is done sooner shows nothing.
const SOON: Duration = Duration::from_millis(300);

/// What is counted.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// Only the share that is done is shown.
    Share,
    /// Of files.
    Bytes,
    /// Things with this name, for example "tasks".
    Things(&'static str),
}

/// A bar, or nothing where standard error is no terminal.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    /// Nothing is done yet.
    pub fn new(all: u64, unit: Unit) -> Self {
        Self::from(0, all, unit)
    }

    /// So much was done before: it says nothing of the pace.
    pub fn from(done: u64, all: u64, unit: Unit) -> Self {
        let template = match unit {
            Unit::Share => "[{bar:40}] {percent} %, {eta} left".to_string(),
            Unit::Bytes => "[{bar:40}] {bytes} of {total_bytes}, {eta} left".to_string(),
            Unit::Things(name) => {
                format!("[{{bar:40}}] {{percent}} %, {{pos}} of {{len}} {name}, {{eta}} left")
            }
        };
        Self::drawn(Some(all), &template, done)
    }

    /// It is not known how much there is to do.
    pub fn unknown(words: &'static str) -> Self {
        Self::drawn(None, &format!("{words} for {{elapsed}}"), 0)
    }

    fn drawn(all: Option<u64>, template: &str, done: u64) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self(None);
        }
        let bar = ProgressBar::with_draw_target(all, ProgressDrawTarget::stderr_with_hz(5));
        bar.set_style(ProgressStyle::with_template(template).expect("a template of this file"));
        Self(Some(bar.with_position(done)))
    }

    /// So much is done.
    pub fn at(&self, done: u64) {
        if let Some(bar) = self.0.as_ref().filter(|bar| bar.elapsed() > SOON) {
            bar.set_position(done);
            bar.tick();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
