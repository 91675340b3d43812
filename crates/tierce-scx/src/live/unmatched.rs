//! Threads that no longer match what something was promised to: the last of them, for those who ask now and then.

use std::collections::VecDeque;

/// So many are kept.
const KEPT_MAX: usize = 256;

/// What is known of each, with its number: one more than that of the one before, the first is 1.
#[derive(Debug)]
pub(super) struct Unmatched<T> {
    last: u64,
    kept: VecDeque<T>,
    /// Those that nobody has taken.
    new: Vec<T>,
}

impl<T> Default for Unmatched<T> {
    fn default() -> Self {
        Self { last: 0, kept: VecDeque::new(), new: Vec::new() }
    }
}

impl<T: Clone> Unmatched<T> {
    pub(super) fn add(&mut self, about: T) {
        self.last += 1;
        self.kept.truncate(KEPT_MAX - 1);
        self.kept.push_front(about.clone());
        self.new.push(about);
    }

    /// Those since last taken.
    pub(super) fn take(&mut self) -> Vec<T> {
        std::mem::take(&mut self.new)
    }

    /// The last number, and those after that one, the oldest first.
    pub(super) fn after(&self, number: u64) -> (u64, Vec<&T>) {
        let count = usize::try_from(self.last.saturating_sub(number)).unwrap_or(usize::MAX);
        let mut list: Vec<_> = self.kept.iter().take(count).collect();
        list.reverse();
        (self.last, list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_known_by_their_numbers() {
        let mut unmatched = Unmatched::default();
        assert_eq!(unmatched.after(0), (0, vec![]));
        (1..=300).for_each(|tid| unmatched.add(tid));
        let tids = |after| unmatched.after(after).1.into_iter().copied().collect::<Vec<u32>>();
        assert_eq!(tids(298), [299, 300]);
        assert_eq!(tids(300), [0; 0]);
        assert_eq!(tids(u64::MAX), [0; 0], "of another run");
        assert_eq!((tids(0).len(), tids(0)[0]), (KEPT_MAX, 45));
        assert_eq!((unmatched.take().len(), unmatched.take().len()), (300, 0));
    }
}
