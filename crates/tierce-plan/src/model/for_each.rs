//! `for_each`: a node, with what is below it, once for each user or cgroup.
//!
//! The plan has `most` copies of the node from the beginning (`user#0`, `user#1`, …), so what is guaranteed holds for all of them. In a live
//! run a copy belongs to a user or a cgroup from the first matching thread on, and is free again after the last one.

use crate::text::source::Spot;

/// Copies of a node that a plan has, unless it says how many.
pub const COPIES_PRESET: u32 = 8;
/// At most.
pub const COPIES_MAX: u32 = 256;

/// `for_each = …` of a node.
#[derive(Clone, Debug)]
pub struct ForEach {
    /// The node, as the text names it.
    pub name: String,
    /// What a copy is for.
    pub by: By,
    /// How many copies there are.
    pub most: u32,
    /// Where it is written.
    pub spot: Spot,
}

/// What a copy is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A real user id.
    Uid,
    /// A cgroup, as deep as the pattern that matches.
    Cgroup,
}

impl By {
    /// All, in the order in which they are listed.
    pub const ALL: [By; 2] = [By::Uid, By::Cgroup];

    /// As in a plan.
    pub fn name(self) -> &'static str {
        match self {
            By::Uid => "uid",
            By::Cgroup => "cgroup",
        }
    }
}

/// One of the copies of a node and what is below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Copied {
    /// Index into [`crate::Plan::for_each`].
    pub of: usize,
    /// Which copy, from 0 on.
    pub index: u32,
}

impl Copied {
    /// What that copy is called.
    pub fn name(self, name: &str) -> String {
        format!("{name}#{}", self.index)
    }
}

/// How the text calls what has this name, which may be a copy.
pub fn text_name(name: &str) -> &str {
    name.split('#').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_copies() {
        assert_eq!(Copied { of: 0, index: 3 }.name("user"), "user#3");
        for name in ["user#3", "user", "user#3@1", "user#0[2]"] {
            assert_eq!(text_name(name), "user");
        }
    }
}
