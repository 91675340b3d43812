//! What a rule may use. Each bound ends the rule by its name.

use std::time::Duration;

/// CPU time of one rule for one event. A rule cannot sleep, so where nothing else wants the CPU this is time of the wall clock. Where the
/// manager waits for its turn, the wall clock would end rules that have hardly run.
pub const RULE: Duration = Duration::from_millis(20);
/// CPU time of all rules for all events between two answers, and with it of the search for what would be granted instead. A question to
/// admission that has begun ends first; so nobody waits longer for these than this and one such question.
pub const TURN: Duration = Duration::from_millis(40);
/// CPU time after which those who wait are looked at again no further, until others have been answered.
pub const RETRY: Duration = Duration::from_millis(5);
/// Steps of one rule for one event.
pub const OPERATIONS: u64 = 200_000;
/// Questions to admission (`fits`) of one rule for one event.
pub const QUESTIONS: u32 = 64;
/// Calls within calls.
pub const DEPTH: usize = 24;
/// Expressions within expressions.
pub const EXPRESSIONS: usize = 64;
/// All texts of one value, bytes. What is known of 256 requests with 8 modes each has room.
pub const STRING: usize = 1 << 20;
/// All elements of arrays of one value.
pub const ARRAY: usize = 1 << 13;
/// All entries of maps of one value.
pub const MAP: usize = 1 << 17;
/// All that one rule has for one event at a time, bytes.
pub const MEMORY: isize = 16 << 20;
/// Variables at a time.
pub const VARIABLES: usize = 256;
/// Functions of a rule.
pub const FUNCTIONS: usize = 64;
/// Text of a rule, bytes.
pub const TEXT: usize = 1 << 16;
/// Stack of the thread that runs rules: values within values are dropped one within the other.
pub const STACK: usize = 256 << 20;
