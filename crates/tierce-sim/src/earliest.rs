//! When something happens next on each CPU, and on which of them it is due.
//!
//! A tournament tree: each inner place has the earlier of the two times below it, so that a change costs no more than the
//! tree is high, and the earliest of all is at the top. CPUs that are due come out in their order.

/// A time for each CPU.
#[derive(Clone, Debug)]
pub struct Earliest {
    /// Place 1 is the top, those below `at` are `2 * at` and `2 * at + 1`; the second half are the CPUs.
    tree: Vec<u64>,
}

impl Earliest {
    /// Never, on so many CPUs.
    pub fn new(cpus: u32) -> Earliest {
        Earliest { tree: vec![u64::MAX; 2 * cpus.next_power_of_two() as usize] }
    }

    /// The earliest of all.
    #[inline]
    pub fn first_ns(&self) -> u64 {
        self.tree[1]
    }

    /// On this CPU it is that from now on.
    #[inline]
    pub fn set(&mut self, cpu: u32, at_ns: u64) {
        let tree = &mut self.tree[..];
        let mut at = tree.len() / 2 + cpu as usize;
        tree[at] = at_ns;
        while at > 1 {
            let earlier = tree[at].min(tree[at ^ 1]);
            at /= 2;
            if tree[at] == earlier {
                break;
            }
            tree[at] = earlier;
        }
    }

    /// The first CPU from `cpu` on where it is `now_ns` or earlier.
    #[inline]
    pub fn due_from(&self, cpu: u32, now_ns: u64) -> Option<u32> {
        let (tree, cpus) = (&self.tree[..], self.tree.len() / 2);
        let mut at = cpus + cpu as usize;
        if cpu as usize >= cpus {
            return None;
        }
        while tree[at] > now_ns {
            // On to the next place that begins behind this one.
            at += 1;
            at >>= at.trailing_zeros();
            if at == 1 {
                return None;
            }
        }
        while at < cpus {
            at = 2 * at + usize::from(tree[2 * at] > now_ns);
        }
        Some((at - cpus) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_as_a_search_does(
            cpus in 1u32..70,
            changes in prop::collection::vec((0u32..70, 0u64..30), 0..200),
            now in 0u64..30,
        ) {
            let (mut earliest, mut times) = (Earliest::new(cpus), vec![u64::MAX; cpus as usize]);
            for (cpu, at_ns) in changes {
                earliest.set(cpu % cpus, at_ns);
                times[(cpu % cpus) as usize] = at_ns;
            }
            prop_assert_eq!(earliest.first_ns(), times.iter().copied().min().unwrap_or(u64::MAX));
            for from in 0..=cpus {
                let want = (from..cpus).find(|cpu| times[*cpu as usize] <= now);
                prop_assert_eq!(earliest.due_from(from, now), want);
            }
        }
    }
}
