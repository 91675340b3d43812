//! Why a recording is not read.

use std::fmt::Display;
use std::io;

/// Why a recording is not read, or not read on.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// The file says something that cannot be.
    #[error("byte {offset}: {rule}: {message}")]
    Refused {
        /// Which rule it breaks.
        rule: &'static str,
        /// Where in the file.
        offset: u64,
        /// What is there, and the bound.
        message: String,
    },
    /// The file could not be read.
    #[error("byte {offset}: {source}")]
    Io {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
}

/// A recording, or why not.
pub type Result<T> = std::result::Result<T, RecordingError>;

/// What is at `offset` breaks a rule.
pub(crate) fn refused<T>(rule: &'static str, offset: u64, message: impl Display) -> Result<T> {
    Err(RecordingError::Refused { rule, offset, message: message.to_string() })
}
