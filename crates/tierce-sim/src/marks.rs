//! CPUs that something is to be done for.

/// A set of the machine's CPUs, which costs no more than the machine is large: nearly all have up to 64.
#[derive(Clone, Debug)]
pub struct Marks {
    first: u64,
    more: Vec<u64>,
}

impl Marks {
    /// None of so many CPUs.
    pub fn new(cpus: u32) -> Marks {
        Marks { first: 0, more: vec![0; cpus.saturating_sub(1) as usize / 64] }
    }

    #[inline]
    fn word(&mut self, cpu: u32) -> &mut u64 {
        match cpu / 64 {
            0 => &mut self.first,
            word => &mut self.more[word as usize - 1],
        }
    }

    /// This one, too.
    #[inline]
    pub fn mark(&mut self, cpu: u32) {
        *self.word(cpu) |= 1 << (cpu % 64);
    }

    /// Not this one.
    #[inline]
    pub fn clear(&mut self, cpu: u32) {
        *self.word(cpu) &= !(1 << (cpu % 64));
    }

    /// This one?
    #[inline]
    pub fn has(&self, cpu: u32) -> bool {
        let word = if cpu < 64 { self.first } else { self.more[cpu as usize / 64 - 1] };
        word >> (cpu % 64) & 1 == 1
    }

    /// The first one that is not below `cpu`.
    #[inline]
    pub fn first_from(&self, cpu: u32) -> Option<u32> {
        if cpu < 64 {
            let here = self.first & (u64::MAX << cpu);
            if here != 0 {
                return Some(here.trailing_zeros());
            }
        }
        self.more.iter().zip(1..).find_map(|(word, at): (_, u32)| {
            let below = cpu.saturating_sub(64 * at);
            let here = if below < 64 { word & (u64::MAX << below) } else { 0 };
            (here != 0).then(|| 64 * at + here.trailing_zeros())
        })
    }

    /// All that are marked in these words, where they are no longer.
    #[inline]
    pub fn take(&mut self, words: &mut [u64]) {
        let Some((first, more)) = words.split_first_mut() else { return };
        self.first |= std::mem::take(first);
        self.more.iter_mut().zip(more).for_each(|(own, other)| *own |= std::mem::take(other));
    }

    /// All of the others, too.
    #[inline]
    pub fn join(&mut self, others: &Marks) {
        self.first |= others.first;
        self.more.iter_mut().zip(&others.more).for_each(|(own, other)| *own |= other);
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
