//! What is wrong, for whoever asked.

use serde::{Deserialize, Serialize};
use std::fmt;

/// What is wrong: a rule in snake_case, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wrong {
    /// Its name.
    pub rule: String,
    /// In words.
    pub message: String,
}

impl Wrong {
    /// Of that name.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into() }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

impl std::error::Error for Wrong {}
