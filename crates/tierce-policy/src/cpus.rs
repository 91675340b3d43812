//! Sets of CPUs.

use crate::raw::CPUS;
use std::fmt;
use std::ops::{BitAnd, BitAndAssign, BitOr, BitOrAssign, Not};

const WORDS: usize = CPUS.div_ceil(64);

/// A set of CPUs, of as many as a native build may have. A CPU beyond those is in no set.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cpus([u64; WORDS]);

impl Cpus {
    /// No CPU.
    pub const NONE: Cpus = Cpus([0; WORDS]);
    /// Every CPU, whatever the machine has.
    pub const ALL: Cpus = Cpus([u64::MAX; WORDS]);

    /// This one alone.
    #[inline]
    pub fn only(cpu: u32) -> Cpus {
        Cpus::NONE.with(cpu)
    }

    /// CPUs 0 to `cpus` - 1.
    pub fn upto(cpus: u32) -> Cpus {
        let bits = |word: usize| match u64::from(cpus).saturating_sub(64 * word as u64) {
            some @ 0..64 => (1 << some) - 1,
            _ => u64::MAX,
        };
        Cpus(std::array::from_fn(bits))
    }

    /// Of each 64 CPUs a word, a bit each; the first ones first. What is missing is not in the set, what is beyond is left out.
    pub fn from_words(words: impl IntoIterator<Item = u64>) -> Cpus {
        let mut cpus = Cpus::NONE;
        cpus.0.iter_mut().zip(words).for_each(|(word, bits)| *word = bits);
        cpus
    }

    /// The same the other way.
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.0
    }

    /// The first 64.
    #[inline]
    pub fn first_word(&self) -> u64 {
        self.0[0]
    }

    /// The set with this CPU.
    #[must_use]
    #[inline]
    pub fn with(mut self, cpu: u32) -> Cpus {
        self.add(cpu);
        self
    }

    /// This CPU is in it from now on.
    #[inline]
    pub fn add(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }

    /// This CPU is not in it from now on.
    #[inline]
    pub fn remove(&mut self, cpu: u32) {
        if let Some(word) = self.0.get_mut(cpu as usize / 64) {
            *word &= !(1 << (cpu % 64));
        }
    }

    /// Is this CPU in it?
    #[inline]
    pub fn has(&self, cpu: u32) -> bool {
        self.0.get(cpu as usize / 64).is_some_and(|word| word >> (cpu % 64) & 1 == 1)
    }

    /// Is it empty?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// How many they are.
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// Are they more than one?
    pub fn are_several(&self) -> bool {
        self.count() > 1
    }

    /// Is all of it in the other one?
    #[inline]
    pub fn are_within(&self, other: Cpus) -> bool {
        *self & other == *self
    }

    /// Is one CPU in both?
    #[inline]
    pub fn meet(&self, other: Cpus) -> bool {
        !(*self & other).is_empty()
    }

    /// The lowest one.
    pub fn lowest(&self) -> Option<u32> {
        self.iter().next()
    }

    /// They, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        let words = self.0.into_iter().zip((0..).step_by(64));
        words.flat_map(|(word, first)| {
            std::iter::successors(Some(word), |left| Some(left & left.wrapping_sub(1)))
                .take_while(|left| *left != 0)
                .map(move |left| first + left.trailing_zeros())
        })
    }
}

impl Default for Cpus {
    fn default() -> Cpus {
        Cpus::NONE
    }
}

/// The first 64, a bit each.
impl From<u64> for Cpus {
    fn from(bits: u64) -> Cpus {
        Cpus::from_words([bits])
    }
}

impl FromIterator<u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = u32>>(cpus: I) -> Cpus {
        cpus.into_iter().fold(Cpus::NONE, Cpus::with)
    }
}

impl<'a> FromIterator<&'a u32> for Cpus {
    fn from_iter<I: IntoIterator<Item = &'a u32>>(cpus: I) -> Cpus {
        cpus.into_iter().copied().collect()
    }
}

impl BitAnd for Cpus {
    type Output = Cpus;
    #[inline]
    fn bitand(self, other: Cpus) -> Cpus {
        Cpus(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }
}
impl BitOr for Cpus {
    type Output = Cpus;
    #[inline]
    fn bitor(self, other: Cpus) -> Cpus {
        Cpus(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }
}
impl Not for Cpus {
    type Output = Cpus;
    #[inline]
    fn not(self) -> Cpus {
        Cpus(self.0.map(|word| !word))
    }
}
impl BitAndAssign for Cpus {
    #[inline]
    fn bitand_assign(&mut self, other: Cpus) {
        *self = *self & other;
    }
}
impl BitOrAssign for Cpus {
    #[inline]
    fn bitor_assign(&mut self, other: Cpus) {
        *self = *self | other;
    }
}

impl fmt::Debug for Cpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets() {
        let set: Cpus = [0, 63, 64, 511].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 511]);
        assert_eq!((set.count(), set.lowest(), Cpus::NONE.lowest()), (4, Some(0), None));
        assert!(set.has(64) && !set.has(65) && !set.has(512) && !Cpus::ALL.has(u32::MAX));
        assert!(Cpus::only(512).is_empty());
        assert!(Cpus::only(64).are_within(set) && !set.are_within(Cpus::only(64)));
        assert!(set.meet(Cpus::upto(1)) && !set.meet(Cpus::upto(63) & !Cpus::upto(1)));
        assert_eq!(set & !Cpus::only(511), [0, 63, 64].iter().collect());
        assert_eq!(Cpus::upto(0) | Cpus::only(3), Cpus::from(8));
        for cpus in [0, 1, 63, 64, 65, 128, 511, 512] {
            assert_eq!(Cpus::upto(cpus), (0..cpus).collect());
            assert_eq!(Cpus::upto(cpus).count(), cpus);
        }
        let mut less = Cpus::upto(512);
        assert_eq!((less, Cpus::upto(u32::MAX)), (Cpus::ALL, Cpus::ALL));
        less.remove(100);
        assert_eq!((less.count(), less.has(100)), (511, false));
    }
}
