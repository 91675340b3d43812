//! Threads that no longer match what something was promised to: the last of them, for those who ask now and then.

use super::{LeftOut, Live};
use std::collections::VecDeque;

/// So many are kept.
const KEPT_MAX: usize = 256;

/// The event `match_ended`, each with its number: one more than that of the one before, the first is 1.
#[derive(Debug, Default)]
pub(super) struct Unmatched {
    last: u64,
    kept: VecDeque<LeftOut>,
    /// Those that nobody has taken.
    new: Vec<LeftOut>,
}

impl Unmatched {
    pub(super) fn add(&mut self, about: LeftOut) {
        self.last += 1;
        self.kept.truncate(KEPT_MAX - 1);
        self.kept.push_front(about.clone());
        self.new.push(about);
    }

    /// The last number, and those after that one, the oldest first.
    fn after(&self, number: u64) -> (u64, Vec<&LeftOut>) {
        let count = usize::try_from(self.last.saturating_sub(number)).unwrap_or(usize::MAX);
        let mut list: Vec<_> = self.kept.iter().take(count).collect();
        list.reverse();
        (self.last, list)
    }
}

impl Live {
    /// Who no longer matches, since last taken.
    pub fn take_unmatched(&mut self) -> Vec<LeftOut> {
        std::mem::take(&mut self.unmatched.new)
    }

    /// The number of the last one, and those after `number`, of which the last 256 are known.
    pub fn unmatched_after(&self, number: u64) -> (u64, Vec<&LeftOut>) {
        self.unmatched.after(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_by_their_numbers() {
        let mut unmatched = Unmatched::default();
        let one = |tid| LeftOut {
            tid,
            comm: String::new(),
            target: String::new(),
            by: String::new(),
            why: String::new(),
        };
        assert_eq!(unmatched.after(0), (0, vec![]));
        (1..=300).for_each(|tid| unmatched.add(one(tid)));
        let tids = |after| unmatched.after(after).1.iter().map(|it| it.tid).collect::<Vec<_>>();
        assert_eq!(tids(298), [299, 300]);
        assert_eq!(tids(300), [0; 0]);
        assert_eq!(tids(u64::MAX), [0; 0], "of another run");
        assert_eq!((tids(0).len(), tids(0)[0]), (KEPT_MAX, 45));
        assert_eq!(unmatched.new.len(), 300);
    }
}
