//! News that are not taken in yet: of each thread what was told last, taken in thread after thread, in the order in which they came.
//!
//! Any user can cause news without end, and to take one in is some ten system calls. So a turn takes in as many as a few milliseconds
//! allow, and the next goes on. What is told again of a thread that waits has its place, so nobody's news wait for those of a thread that
//! has more of them; and what is told later waits behind it, so nobody's wait for those of threads that were begun since.

use super::news::{News, NEWS_BACK, NEWS_CPU, NEWS_EXEC, NEWS_LOST, NEWS_NAME, NEWS_PROCESS, NEWS_THREAD};
use std::collections::{HashMap, VecDeque};
use tierce_policy::Error;

/// What was told, and what is to be done.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// A thread may match something else. One that is new may have begun with this leaf; 0: it has not.
    Seen { news: News, leaf: u32 },
    /// The same of a thread that may have its place again.
    Back,
    /// A thread cannot be where its place is.
    Lost(Error),
    /// The threads of this process may match something else: each is to be looked at.
    Process,
    /// A thread may match something else, whatever it was.
    Look,
    /// A CPU came or went.
    Cpus,
}

/// Whom it is about, and of what kind it is: of one kind the last counts.
type Key = (u32, u8);

/// News, by thread.
#[derive(Default)]
pub struct Queue {
    told: HashMap<Key, Told>,
    /// Each of them once.
    order: VecDeque<Key>,
}

impl Queue {
    /// One more.
    pub fn add(&mut self, news: &News) {
        let leaf = news.kind >> 8;
        let (slot, told) = match news.kind & 0xff {
            NEWS_THREAD | NEWS_EXEC | NEWS_NAME => {
                let leaf = match self.told.get(&(news.id, 0)) {
                    Some(Told::Seen { leaf: before, .. }) if leaf == 0 => *before,
                    _ => leaf,
                };
                (0, Told::Seen { news: *news, leaf })
            }
            NEWS_CPU => (4, Told::Cpus),
            NEWS_BACK => (1, Told::Back),
            NEWS_LOST if leaf != 0 => (1, Told::Lost(Error(leaf))),
            NEWS_LOST => (1, Told::Back),
            NEWS_PROCESS => (3, Told::Process),
            _ => (2, Told::Look), // nobody tells such a thing
        };
        let id = if slot == 4 { 0 } else { news.id };
        self.tell((id, slot), told);
    }

    fn tell(&mut self, key: Key, told: Told) {
        if self.told.insert(key, told).is_none() {
            self.order.push_back(key);
        }
    }

    /// These threads are to be looked at.
    pub fn look(&mut self, tids: impl IntoIterator<Item = u32>) {
        tids.into_iter().for_each(|tid| self.tell((tid, 2), Told::Look));
    }

    /// The next to be taken in.
    pub fn next(&mut self) -> Option<(u32, Told)> {
        let key = self.order.pop_front()?;
        self.told.remove(&key).map(|told| (key.0, told))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// None of them is needed.
    pub fn clear(&mut self) {
        self.told.clear();
        self.order.clear();
    }

    /// New threads that nobody has looked at yet, and the leaves with which they began.
    pub fn born(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.told.iter().filter_map(|((tid, _), told)| match told {
            Told::Seen { leaf, .. } if *leaf != 0 => Some((*tid, *leaf)),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(kind: u32, id: u32) -> News {
        News { kind, id, pid: id, is_kthread: false, comm: [0; 16], policy: 0, from: 0 }
    }

    #[test]
    fn everybody_has_a_turn_however_much_news_one_thread_has() {
        let mut queue = Queue::default();
        for id in [5, 9, 7] {
            queue.add(&news(NEWS_NAME, id));
        }
        let mut heard = Vec::new();
        for _ in 0..7 {
            let (id, _) = queue.next().unwrap();
            heard.push(id);
            queue.add(&news(NEWS_NAME, 5)); // once more, whenever something was heard
            queue.add(&news(NEWS_NAME, 5));
        }
        assert_eq!(heard, [5, 9, 7, 5, 5, 5, 5]);
        assert_eq!(queue.len(), 1);
    }

    /// Numbers of threads grow, until they begin anew.
    #[test]
    fn whoever_waits_is_not_behind_those_that_are_begun_later() {
        for first in [10, 30_000] {
            let mut queue = Queue::default();
            (100..103).for_each(|id| queue.add(&news(NEWS_THREAD, id)));
            let mut heard = Vec::new();
            for number in 0..6 {
                (0..2).for_each(|more| queue.add(&news(NEWS_THREAD, first + 2 * number + more)));
                heard.push(queue.next().unwrap().0);
            }
            assert_eq!(heard, [100, 101, 102, first, first + 1, first + 2]);
        }
    }

    #[test]
    fn the_last_of_a_kind_counts_and_a_birth_is_kept() {
        let mut queue = Queue::default();
        queue.add(&news(NEWS_THREAD | 44 << 8, 3));
        queue.add(&news(NEWS_NAME, 3));
        queue.add(&news(NEWS_LOST | 6 << 8, 3));
        assert_eq!(queue.born().collect::<Vec<_>>(), [(3, 44)]);
        assert!(matches!(queue.next(), Some((3, Told::Seen { leaf: 44, .. }))));
        assert!(matches!(queue.next(), Some((3, Told::Lost(Error(6))))));
        assert!(queue.next().is_none());
        // It had lost its place, and may have it again.
        queue.add(&news(NEWS_LOST | 6 << 8, 3));
        queue.add(&news(NEWS_PROCESS, 3));
        queue.add(&news(NEWS_BACK, 3));
        queue.add(&news(NEWS_CPU, 1));
        queue.add(&news(NEWS_CPU, 2));
        queue.look([3, 9]);
        assert!(matches!(queue.next(), Some((3, Told::Back))));
        assert!(matches!(queue.next(), Some((3, Told::Process))));
        assert!(matches!(queue.next(), Some((0, Told::Cpus))));
        assert!(matches!(queue.next(), Some((3, Told::Look))));
        queue.look([9, 3]);
        assert!(matches!(queue.next(), Some((9, Told::Look))));
        assert_eq!(queue.len(), 1);
        queue.clear();
        assert!(queue.next().is_none() && queue.len() == 0);
        queue.add(&news(NEWS_CPU, 2));
        assert!(matches!(queue.next(), Some((0, Told::Cpus))));
    }
}
