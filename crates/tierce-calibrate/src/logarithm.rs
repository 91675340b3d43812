//! Logarithms in whole numbers, so that what is decided by them is the same on every machine.

/// So many of these are one bit.
pub const BIT: i64 = 1 << 16;

/// log2 of `number` in 1/[`BIT`], rounded down; of 0 as of 1.
fn log2(number: u64) -> i64 {
    let number = number.max(1);
    let whole = 63 - number.leading_zeros();
    // In [1, 2), with 32 binary places. Squaring doubles the logarithm: whether the square reaches 2 is its next place.
    let mut mantissa = ((u128::from(number) << 32) >> whole) as u64;
    let mut log = i64::from(whole);
    for _ in 0..BIT.trailing_zeros() {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 32;
        let reaches = square >> 33 != 0;
        mantissa = (if reaches { square >> 1 } else { square }) as u64;
        log = (log << 1) | i64::from(reaches);
    }
    log
}

/// log2 of a fraction in 1/[`BIT`].
pub fn log2_of(numerator: u64, denominator: u64) -> i64 {
    log2(numerator) - log2(denominator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_the_logarithm() {
        assert_eq!((log2(1), log2(2), log2(1 << 40)), (0, BIT, 40 * BIT));
        for (numerator, denominator) in [(3u64, 1), (7, 8), (1, 1000), (u64::MAX, 3), (1_000_003, 999_999)] {
            let float = (numerator as f64 / denominator as f64).log2() * BIT as f64;
            let ours = log2_of(numerator, denominator) as f64;
            assert!((ours - float).abs() < 3.0, "{numerator}/{denominator}: {ours}, {float}");
        }
    }
}
