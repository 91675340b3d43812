//! Why a question has no answer.

/// What is wrong with a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// In plain words, with value and bound.
    pub message: String,
}

impl Refused {
    pub(crate) fn new(rule: &'static str, message: impl Into<String>) -> Self {
        Self { rule, message: message.into() }
    }
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

impl std::error::Error for Refused {}

/// Return with a rule and its message.
macro_rules! refuse {
    ($rule:literal, $($message:tt)*) => {
        return Err($crate::question::Refused::new($rule, format!($($message)*)))
    };
}
pub(crate) use refuse;
