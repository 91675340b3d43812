//! Division by multiplication: many quotients by the same period.

/// ⌊2^64 / divisor⌋ + 1; not for 1, whose reciprocal does not fit.
#[inline]
pub(crate) fn reciprocal(divisor: u64) -> u64 {
    (u64::MAX / divisor).wrapping_add(1)
}

/// With QUICK ⌊number / divisor⌋ by its reciprocal, exact while number·divisor < 2^64: the reciprocal is too large by at most
/// divisor / 2^64 of itself, so the product by less than 1/divisor, which does not reach the next whole number.
#[inline(always)]
pub(crate) fn quotient<const QUICK: bool>(number: u64, divisor: u64, reciprocal: u64) -> u64 {
    if QUICK {
        ((u128::from(number) * u128::from(reciprocal)) >> 64) as u64
    } else {
        number / divisor
    }
}

/// The largest number for which all divisors from `least` to `most` may be used with QUICK; 0 if one may not at all.
#[inline]
pub(crate) fn quick_upto(least: u64, most: u64) -> u64 {
    if least > 1 {
        (u64::MAX / most).saturating_sub(1)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact_up_to_the_bound() {
        for divisor in
            (2..2_000).chain([4_095, 4_096, 65_537, 999_999_937, 1 << 30, (1 << 40) + 1, u64::MAX / 3])
        {
            let (reciprocal, most) = (reciprocal(divisor), quick_upto(divisor, divisor));
            let around = |number: u64| {
                (number.saturating_sub(2)..=number.saturating_add(2)).filter(|number| *number <= most)
            };
            let multiples = [0, 1, most / divisor / 2, (most / divisor).saturating_sub(1), most / divisor];
            for number in multiples.into_iter().flat_map(|times| around(times * divisor)).chain(around(most))
            {
                assert_eq!(
                    quotient::<true>(number, divisor, reciprocal),
                    number / divisor,
                    "{number} / {divisor}"
                );
            }
        }
        assert_eq!(quick_upto(1, 5), 0);
    }
}
