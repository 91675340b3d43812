//! CPUs that something is to be done for.

/// A set of the machine's CPUs, which costs no more than the machine is large.
#[derive(Clone, Debug)]
pub struct Marks {
    words: Vec<u64>,
}

impl Marks {
    /// None of so many CPUs.
    pub fn new(cpus: u32) -> Marks {
        Marks { words: vec![0; cpus.div_ceil(64) as usize] }
    }

    /// This one, too.
    #[inline]
    pub fn mark(&mut self, cpu: u32) {
        self.words[cpu as usize / 64] |= 1 << (cpu % 64);
    }

    /// Not this one.
    #[inline]
    pub fn clear(&mut self, cpu: u32) {
        self.words[cpu as usize / 64] &= !(1 << (cpu % 64));
    }

    /// This one?
    #[inline]
    pub fn has(&self, cpu: u32) -> bool {
        self.words[cpu as usize / 64] >> (cpu % 64) & 1 == 1
    }

    /// The first one that is not below `cpu`.
    #[inline]
    pub fn first_from(&self, cpu: u32) -> Option<u32> {
        let begin = cpu as usize / 64;
        let mut here = self.words.get(begin)? & (u64::MAX << (cpu % 64));
        for word in begin..self.words.len() {
            if word > begin {
                here = self.words[word];
            }
            if here != 0 {
                return Some(64 * word as u32 + here.trailing_zeros());
            }
        }
        None
    }

    /// All that are marked in these words, where they are no longer.
    #[inline]
    pub fn take(&mut self, words: &mut [u64]) {
        for (own, other) in self.words.iter_mut().zip(words) {
            *own |= std::mem::take(other);
        }
    }

    /// All of the others, too.
    #[inline]
    pub fn join(&mut self, others: &Marks) {
        self.words.iter_mut().zip(&others.words).for_each(|(own, other)| *own |= other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks() {
        let mut marks = Marks::new(130);
        [0, 63, 64, 129].iter().for_each(|cpu| marks.mark(*cpu));
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(cpu) = marks.first_from(from) {
            found.push(cpu);
            from = cpu + 1;
        }
        assert_eq!(found, [0, 63, 64, 129]);
        marks.clear(64);
        assert!(marks.has(63) && !marks.has(64) && !marks.has(1));
        assert_eq!(
            (marks.first_from(64), marks.first_from(130), marks.first_from(192)),
            (Some(129), None, None)
        );
        let mut words = [2, 0, 0];
        marks.take(&mut words);
        assert!(marks.has(1) && words == [0; 3]);
        let mut other = Marks::new(130);
        other.join(&marks);
        assert!(other.has(1) && other.has(129) && !other.has(2));
    }
}
