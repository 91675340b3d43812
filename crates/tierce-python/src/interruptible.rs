//! Long work without the interpreter's lock, which Ctrl-C ends.

use crate::errors::{refused, Fault, Kind};
use pyo3::prelude::*;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long work goes on before it is asked whether somebody wants it to end.
pub const SLICE: Duration = Duration::from_millis(50);

/// Do it on a thread of its own. At Ctrl-C it is waited for no longer; what it then finds is thrown away.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    watched(py, work, &mut |py| py.check_signals())
}

/// The same, with a look every [`SLICE`]; once that fails, the work is waited for no longer.
pub fn watched<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> T + Send + 'static,
    look: &mut dyn FnMut(Python<'_>) -> PyResult<()>,
) -> PyResult<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("tierce".into()).spawn(move || {
        let _ = sender.send(work());
    });
    thread.map_err(|error| refused(py, Kind::Engine, Fault::new("thread_must_start", error.to_string())))?;
    let mut receiver = receiver;
    loop {
        let (back, found) = py.detach(move || {
            let found = receiver.recv_timeout(SLICE);
            (receiver, found)
        });
        receiver = back;
        match found {
            Ok(found) => return Ok(found),
            Err(mpsc::RecvTimeoutError::Timeout) => look(py)?,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let fault = Fault::new("work_must_end", "a bug of tierce: the work ended without a result");
                return Err(refused(py, Kind::Engine, fault));
            }
        }
    }
}

/// Tells how far long work has come: to what was given as `progress`, or by a bar on a terminal (`tierce/_progress.py`).
pub struct Progress {
    asked: Option<Py<PyAny>>,
    tell: Option<Py<PyAny>>,
    resolved: bool,
    began: Instant,
}

impl Progress {
    pub fn new(asked: Option<Py<PyAny>>) -> Self {
        Self { asked, tell: None, resolved: false, began: Instant::now() }
    }

    /// Between two slices: ends at Ctrl-C.
    pub fn at(&mut self, py: Python<'_>, done: u64, all: u64) -> PyResult<()> {
        py.check_signals()?;
        // A function hears of short work, too; a bar would only flicker.
        let is_function = self.asked.as_ref().is_some_and(|asked| asked.bind(py).is_callable());
        if !self.resolved && (is_function || self.began.elapsed() >= SLICE) {
            self.resolved = true;
            let asked = self.asked.as_ref().map(|asked| asked.bind(py));
            let tell = py.import("tierce._progress")?.getattr("resolve")?.call1((asked,))?;
            self.tell = (!tell.is_none()).then(|| tell.unbind());
        }
        match &self.tell {
            Some(tell) => tell.bind(py).call1((done, all)).map(drop),
            None => Ok(()),
        }
    }
}
