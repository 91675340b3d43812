//! Counts, sums and percentiles in little memory.
//!
//! A [`Histogram`] is log-linear: 64 buckets per power of two, exact below 64. A percentile is the middle of its
//! bucket; a bucket from x is at most x/64 wide, so the relative error is at most 1/128. Example: 1,000,000 lies in
//! the bucket from 999,424 to 1,007,615 and is given back as 1,003,520, 0.35 % too much. Buckets exist only between
//! the smallest and the largest value seen: a task whose response times span 1 to 8 ms needs 3 × 64 counters.

/// Buckets per power of two.
const STEPS: u64 = 64;
const STEPS_LOG2: u32 = STEPS.trailing_zeros();

/// Count, sum, smallest and largest of a series of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// How many values.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// The smallest, `u64::MAX` when there is none.
    pub min: u64,
    /// The largest, 0 when there is none.
    pub max: u64,
}

impl Default for Summary {
    fn default() -> Self {
        Summary { count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Summary {
    /// Add a value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Add all values of another series.
    pub fn merge(&mut self, other: &Summary) {
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Mean, rounded down; `None` without values.
    pub fn avg(&self) -> Option<u64> {
        // A mean of u64 values fits into u64.
        self.sum.checked_div(u128::from(self.count)).map(|avg| avg as u64)
    }
}

/// A summary with percentiles, see the module's text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    summary: Summary,
    /// Bucket number of `counts[0]`.
    first: u32,
    /// A bucket stops counting at 2^32 - 1 values.
    counts: Vec<u32>,
}

impl Histogram {
    /// Add a value. Allocates only when it lies outside all earlier ones.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.summary.record(value);
        let bucket = bucket_of(value);
        let at = bucket.wrapping_sub(self.first) as usize;
        match self.counts.get_mut(at) {
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bucket),
        }
    }

    /// Add all values of another series.
    pub fn merge(&mut self, other: &Histogram) {
        self.summary.merge(&other.summary);
        for (at, &count) in other.counts.iter().enumerate().filter(|(_, &count)| count > 0) {
            let bucket = other.first + at as u32;
            let at = bucket.wrapping_sub(self.first) as usize;
            match self.counts.get_mut(at) {
                Some(mine) => *mine = mine.saturating_add(count),
                None => {
                    self.grow(bucket);
                    self.counts[(bucket - self.first) as usize] = count;
                }
            }
        }
    }

    /// Extend to `bucket` in steps of 16, so that a slowly widening series rarely moves, and count one there.
    #[cold]
    fn grow(&mut self, bucket: u32) {
        let first = if self.counts.is_empty() { bucket } else { self.first.min(bucket) } & !15;
        let end = (self.first + self.counts.len() as u32).max(bucket + 1).next_multiple_of(16);
        let mut counts = vec![0; (end - first) as usize];
        let old = self.first.saturating_sub(first) as usize;
        if !self.counts.is_empty() {
            counts[old..old + self.counts.len()].copy_from_slice(&self.counts);
        }
        counts[(bucket - first) as usize] = 1;
        (self.first, self.counts) = (first, counts);
    }

    /// Count, sum, smallest, largest: exact.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The value that `percent` % of all values do not exceed (nearest rank), off by at most 1/128 of itself.
    pub fn percentile(&self, percent: u32) -> Option<u64> {
        let counted: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        let rank = (u128::from(counted) * u128::from(percent.min(100))).div_ceil(100).max(1);
        if rank >= u128::from(counted) {
            return (counted > 0).then_some(self.summary.max);
        }
        let mut seen = 0u128;
        for (at, &count) in self.counts.iter().enumerate() {
            seen += u128::from(count);
            if seen >= rank {
                let middle = middle_of(self.first + at as u32);
                return Some(middle.clamp(self.summary.min, self.summary.max));
            }
        }
        None
    }

    /// Begin, end and count of every bucket that counts something, ascending; the end is not part of it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        let some = self.counts.iter().enumerate().filter(|(_, &count)| count > 0);
        some.map(|(at, &count)| {
            let bucket = self.first + at as u32;
            (start_of(bucket), start_of(bucket + 1), u64::from(count))
        })
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u32>()
    }
}

#[inline]
fn bucket_of(value: u64) -> u32 {
    if value < STEPS {
        return value as u32;
    }
    let shift = value.ilog2() - STEPS_LOG2;
    (shift << STEPS_LOG2) + (value >> shift) as u32
}

/// Its smallest value; after the last bucket `u64::MAX`.
fn start_of(bucket: u32) -> u64 {
    if u64::from(bucket) < 2 * STEPS {
        return u64::from(bucket);
    }
    let shift = (bucket >> STEPS_LOG2) - 1;
    let steps = u128::from(bucket) - (u128::from(shift) << STEPS_LOG2);
    u64::try_from(steps << shift).unwrap_or(u64::MAX)
}

fn middle_of(bucket: u32) -> u64 {
    start_of(bucket) + (1 << (bucket >> STEPS_LOG2).saturating_sub(1)) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn exact(values: &mut [u64], percent: u32) -> u64 {
        values.sort_unstable();
        let rank = (values.len() * percent as usize).div_ceil(100).max(1);
        values[rank - 1]
    }

    proptest! {
        #[test]
        fn percentiles_are_within_one_in_128(
            mut values in prop::collection::vec((0u32..64, any::<u64>()).prop_map(|(bits, v)| v >> bits), 1..400),
            percent in 1u32..=100,
        ) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.record(value));
            let (got, want) = (histogram.percentile(percent).unwrap(), exact(&mut values, percent));
            prop_assert!(u128::from(got.abs_diff(want)) * 128 <= u128::from(want), "{got} for {want}");
            let summary = histogram.summary();
            prop_assert_eq!(summary.min, values[0]);
            prop_assert_eq!(summary.max, *values.last().unwrap());
            let sum: u128 = values.iter().map(|&value| u128::from(value)).sum();
            prop_assert_eq!(summary.avg(), Some((sum / values.len() as u128) as u64));
        }

        #[test]
        fn merging_equals_recording_all(left in prop::collection::vec(0u64..1 << 40, 0..90), right in prop::collection::vec(0u64..1 << 40, 0..90)) {
            let histogram = |values: &[u64]| {
                let mut histogram = Histogram::default();
                values.iter().for_each(|&value| histogram.record(value));
                histogram
            };
            let (mut merged, both) = (histogram(&left), histogram(&[left, right.clone()].concat()));
            merged.merge(&histogram(&right));
            prop_assert_eq!(merged.summary(), both.summary());
            for percent in [1, 50, 99, 100] {
                prop_assert_eq!(merged.percentile(percent), both.percentile(percent));
            }
        }

        #[test]
        fn buckets_hold_their_middle(value in any::<u64>()) {
            prop_assert_eq!(bucket_of(middle_of(bucket_of(value))), bucket_of(value));
            let mut histogram = Histogram::default();
            histogram.record(value);
            let (from, to, count) = histogram.buckets().next().unwrap();
            prop_assert!(from <= value && (value < to || to == u64::MAX) && count == 1, "{from} {to}");
        }
    }

    #[test]
    fn edges() {
        assert_eq!(Histogram::default().percentile(99), None);
        assert_eq!(Summary::default().avg(), None);
        let mut histogram = Histogram::default();
        histogram.record(0);
        histogram.record(u64::MAX);
        assert_eq!((histogram.percentile(50), histogram.percentile(100)), (Some(0), Some(u64::MAX)));
        assert!(histogram.heap_bytes() < 16_000);
    }

    #[test]
    fn narrow_series_stay_small() {
        let mut histogram = Histogram::default();
        (1_000_000..8_000_000).step_by(1000).for_each(|value| histogram.record(value));
        assert!(histogram.heap_bytes() <= 4 * 64 * 4, "{} bytes", histogram.heap_bytes());
    }
}
