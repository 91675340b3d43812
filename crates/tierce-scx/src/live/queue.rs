//! News that are not taken in yet: of each thread what was told last. Users take turns, and within a user's turn the oldest is taken in.
//!
//! Any user can cause news without end, and to take one in is some ten system calls. So a turn of the loader takes in as many as half a
//! millisecond allows, and the next goes on. Who starts threads faster than that waits longer and longer, alone: the news of one user
//! wait for one of each other user at most, each time. What is told again of a thread that waits has its place, so nobody's news wait
//! for those of a thread that has more of them; and what is told later waits behind it, so nobody's wait for those of threads that
//! were begun since.

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
    /// The threads of this process of that user may match something else: each is to be looked at.
    Process { user: u32 },
    /// A thread may match something else, whatever it was.
    Look,
    /// A CPU came or went.
    Cpus,
}

/// Whom it is about, and of what kind it is: of one kind the last counts.
type Key = (u32, u8);

/// Who has a turn for what the loader itself wants to look at, of whatever user: no user has this number.
const LOADER: u32 = u32::MAX;

/// News, by thread.
#[derive(Default)]
pub struct Queue {
    told: HashMap<Key, Told>,
    /// Each of them once, by user, oldest first. None is empty.
    order: HashMap<u32, VecDeque<Key>>,
    /// Users who have some, each once: the first is next.
    turns: VecDeque<u32>,
}

impl Queue {
    /// One more.
    pub fn add(&mut self, news: &News) {
        let leaf = news.kind >> 8;
        let (slot, told) = match news.kind & 0xff {
            NEWS_THREAD | NEWS_EXEC | NEWS_NAME => {
                let (mut news, mut leaf) = (*news, leaf);
                if let Some(Told::Seen { news: before, leaf: born }) = self.told.get(&(news.id, 0)) {
                    let or = |new: u32, old: u32| if new == 0 { old } else { new };
                    (news.leaf, leaf) = (or(news.leaf, before.leaf), or(leaf, *born));
                }
                (0, Told::Seen { news, leaf })
            }
            NEWS_CPU => return self.tell(LOADER, (0, 4), Told::Cpus),
            NEWS_BACK => (1, Told::Back),
            NEWS_LOST if leaf != 0 => (1, Told::Lost(Error(leaf))),
            NEWS_LOST => (1, Told::Back),
            NEWS_PROCESS => (3, Told::Process { user: news.user }),
            _ => (2, Told::Look), // nobody tells such a thing
        };
        self.tell(news.user, (news.id, slot), told);
    }

    fn tell(&mut self, user: u32, key: Key, told: Told) {
        if self.told.insert(key, told).is_some() {
            return;
        }
        let its = self.order.entry(user).or_default();
        if its.is_empty() {
            self.turns.push_back(user);
        }
        its.push_back(key);
    }

    /// These threads are to be looked at, whosever they are.
    pub fn look(&mut self, tids: impl IntoIterator<Item = u32>) {
        self.look_in_turn_of(LOADER, tids);
    }

    /// These threads of a user are to be looked at.
    pub fn look_in_turn_of(&mut self, user: u32, tids: impl IntoIterator<Item = u32>) {
        tids.into_iter().for_each(|tid| self.tell(user, (tid, 2), Told::Look));
    }

    /// The threads of this process of a user are to be looked at.
    pub fn look_at_process(&mut self, user: u32, pid: u32) {
        self.tell(user, (pid, 3), Told::Process { user });
    }

    /// The next to be taken in.
    pub fn next(&mut self) -> Option<(u32, Told)> {
        let user = self.turns.pop_front()?;
        let its = self.order.get_mut(&user)?;
        let key = its.pop_front()?;
        match its.is_empty() {
            true => _ = self.order.remove(&user),
            false => self.turns.push_back(user),
        }
        self.told.remove(&key).map(|told| (key.0, told))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.told.len()
    }

    /// None of them is needed.
    pub fn clear(&mut self) {
        *self = Queue::default();
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
        News { kind, id, pid: id, is_kthread: false, comm: [0; 16], policy: 0, from: 0, user: 1000, leaf: 0 }
    }

    #[test]
    fn users_take_turns_however_many_threads_one_of_them_starts() {
        let mut queue = Queue::default();
        let of = |user: u32, id: u32| News { user, ..news(NEWS_THREAD, id) };
        (0..1000).for_each(|id| queue.add(&of(1002, 100 + id)));
        [7, 8, 9].iter().for_each(|id| queue.add(&of(1001, *id)));
        queue.add(&of(0, 3));
        queue.look([50, 51]);
        let mut heard = Vec::new();
        for number in 0..8 {
            (0..10).for_each(|more| queue.add(&of(1002, 2000 + 10 * number + more)));
            heard.push(queue.next().unwrap().0);
        }
        assert_eq!(heard, [100, 7, 3, 50, 101, 8, 51, 102]);
        // Whose turn comes again is behind all others, and who has set another user's number has his place.
        queue.add(&of(1003, 9));
        assert_eq!([(); 3].map(|()| queue.next().unwrap().0), [9, 103, 104]);
        assert_eq!(queue.len(), 1000 + 80 - 5);
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
        queue.add(&News { leaf: 44, ..news(NEWS_NAME, 3) });
        queue.add(&news(NEWS_EXEC, 3));
        queue.add(&news(NEWS_LOST | 6 << 8, 3));
        assert_eq!(queue.born().collect::<Vec<_>>(), [(3, 44)]);
        assert!(matches!(queue.next(), Some((3, Told::Seen { leaf: 44, news: News { leaf: 44, .. } }))));
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
        assert!(matches!(queue.next(), Some((0, Told::Cpus))));
        assert!(matches!(queue.next(), Some((3, Told::Process { user: 1000 }))));
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
