//! The event queue: a 4-ary heap of (time, who), each of whom waits for one thing at most.
//!
//! Time and id are one 96-bit key, so that equal times are served in the order of ids without a second comparison. A
//! node's four children share a cache line. Nothing is allocated once everybody has waited at the same time.

const CHILDREN: usize = 4;

/// Who waits until when, first comes first.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    heap: Vec<u128>,
}

fn key(at_ns: u64, who: u32) -> u128 {
    u128::from(at_ns) << 32 | u128::from(who)
}

impl Queue {
    /// The first time, or never.
    #[inline]
    pub fn first_ns(&self) -> u64 {
        self.heap.first().map_or(u64::MAX, |first| (first >> 32) as u64)
    }

    /// `who`, in nobody's way so far, waits until `at_ns`.
    #[inline]
    pub fn push(&mut self, at_ns: u64, who: u32) {
        let key = key(at_ns, who);
        let mut at = self.heap.len();
        self.heap.push(key);
        while at > 0 {
            let up = (at - 1) / CHILDREN;
            if self.heap[up] <= key {
                break;
            }
            self.heap[at] = self.heap[up];
            at = up;
        }
        self.heap[at] = key;
    }

    /// Take out who waits until `now_ns` or earlier, the first of them.
    #[inline]
    pub fn pop(&mut self, now_ns: u64) -> Option<u32> {
        let first = *self.heap.first()?;
        if (first >> 32) as u64 > now_ns {
            return None;
        }
        let last = self.heap.pop()?;
        if !self.heap.is_empty() {
            self.sink(last);
        }
        Some(first as u32)
    }

    /// Put `key` in the place of the first.
    fn sink(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let mut at = 0;
        loop {
            let first = at * CHILDREN + 1;
            let least = if let Some(four) = heap.get(first..first + CHILDREN) {
                let left = usize::from(four[1] < four[0]);
                let right = 2 + usize::from(four[3] < four[2]);
                first + if four[right] < four[left] { right } else { left }
            } else if first < heap.len() {
                (first..heap.len()).min_by_key(|&child| heap[child]).unwrap_or(first)
            } else {
                break;
            };
            if heap[least] >= key {
                break;
            }
            heap[at] = heap[least];
            at = least;
        }
        heap[at] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn comes_out_sorted(times in prop::collection::vec(0u64..50, 0..200), until in 0u64..60) {
            let mut queue = Queue::default();
            for (who, &at) in times.iter().enumerate() {
                queue.push(at, who as u32);
            }
            let mut want: Vec<_> = times.iter().enumerate().map(|(who, &at)| (at, who as u32)).collect();
            want.sort_unstable();
            prop_assert_eq!(queue.first_ns(), want.first().map_or(u64::MAX, |first| first.0));
            let due: Vec<u32> = want.iter().filter(|w| w.0 <= until).map(|w| w.1).collect();
            let got: Vec<u32> = std::iter::from_fn(|| queue.pop(until)).collect();
            prop_assert_eq!(got, due);
        }
    }
}
