//! Fractions against those of num-rational, which are always of numbers of any size: every operation on numbers around the
//! limits of machine words, and on what comes out of these. TIERCE_SEED repeats a run.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use num_bigint::BigInt;
use num_rational::BigRational;
use std::hash::{DefaultHasher, Hash, Hasher};
use tierce_guarantee::{ratio, Exact};

/// Around powers of 2 at which something may end, or of any length.
fn number(draw: &mut Draw) -> BigInt {
    const ENDS: [u32; 12] = [0, 1, 2, 16, 31, 32, 63, 64, 126, 127, 128, 200];
    let mut number = BigInt::from(1) << ENDS[draw.below(ENDS.len())];
    if draw.below(2) == 0 {
        number += draw.below(5) as i64 - 2;
    } else {
        // As many digits, any.
        let bits = number.bits();
        let random = (0..5).fold(BigInt::ZERO, |all, _| (all << 62) + draw.below(1 << 62));
        number = random >> 310u64.saturating_sub(bits);
    }
    // Those with many factors, as times have them.
    match draw.below(4) {
        0 => number * 720_720,
        _ => number,
    }
}

fn fraction(draw: &mut Draw) -> (BigInt, BigInt) {
    let (over, under) = (number(draw), number(draw));
    let under = if under == BigInt::ZERO { BigInt::from(1) } else { under };
    if draw.below(2) == 0 {
        (over, under)
    } else {
        (-over, under)
    }
}

fn hash(exact: &Exact) -> u64 {
    let mut hasher = DefaultHasher::new();
    exact.hash(&mut hasher);
    hasher.finish()
}

/// The same number, in the one form that it has.
fn same(exact: &Exact, large: &BigRational, what: &str) {
    assert_eq!((&exact.numer(), &exact.denom()), (large.numer(), large.denom()), "{what}");
    let anew = Exact::new(large.numer().clone(), large.denom().clone());
    assert_eq!((exact, hash(exact)), (&anew, hash(&anew)), "{what}");
    assert_eq!(exact.to_string(), large.to_string(), "{what}");
}

#[test]
fn fractions_are_those_of_any_size() {
    let mut draw = Draw::new(3);
    let first = |draw: &mut Draw| {
        let (over, under) = fraction(draw);
        (Exact::new(over.clone(), under.clone()), BigRational::new(over, under))
    };
    let mut pool: Vec<_> = (0..32).map(|_| first(&mut draw)).collect();
    let (mut small, mut large) = (0, 0);
    for round in 0..10_000 {
        let ((a, big_a), (b, big_b)) = (&pool[draw.below(32)], &pool[draw.below(32)]);
        let what = format!("round {round}: {big_a} and {big_b}");
        same(a, big_a, &what);
        assert_eq!((a.cmp(b), a == b), (big_a.cmp(big_b), big_a == big_b), "{what}");
        assert_eq!(a.is_integer(), big_a.is_integer(), "{what}");
        assert_eq!(a.to_integer(), big_a.to_integer(), "{what}");
        same(&a.floor(), &big_a.floor(), &what);
        same(&a.ceil(), &big_a.ceil(), &what);
        same(&a.round(), &big_a.round(), &what);
        same(&-a, &-big_a, &what);
        same(&(a + b), &(big_a + big_b), &what);
        same(&(a - b), &(big_a - big_b), &what);
        same(&[a, b, a].into_iter().sum(), &(big_a + big_b + big_a), &what);
        let mut result = match draw.below(4) {
            0 => (a + b, big_a + big_b),
            1 => (a - b, big_a - big_b),
            2 => (a * b, big_a * big_b),
            _ if *big_b == BigRational::from_integer(BigInt::ZERO) => (b.clone(), big_b.clone()),
            _ => (a / b, big_a / big_b),
        };
        same(&(a * b), &(big_a * big_b), &what);
        same(&result.0, &result.1, &what);
        *(if result.1.numer().bits().max(result.1.denom().bits()) < 128 {
            &mut small
        } else {
            &mut large
        }) += 1;
        // Results are used again, until they are long.
        if draw.below(3) == 0 || result.1.numer().bits() + result.1.denom().bits() > 400 {
            result = first(&mut draw);
        }
        let at = draw.below(32);
        pool[at] = result;
    }
    println!("{small} results of machine words, {large} beyond");
    assert!(small > 1_500 && large > 1_500, "{small} {large}");
}

#[test]
fn the_last_machine_words_are_used_and_left() {
    let most = BigInt::from(i128::MAX);
    let of = |over: &BigInt| Exact::from_integer(over.clone());
    let one = ratio(1, 1);
    let beyond = of(&most) + &one;
    assert_eq!(beyond.numer(), &most + 1);
    assert_eq!(&beyond - &one, of(&most));
    // i128::MIN has no negative among machine words
    let least = -of(&most) - &one;
    assert_eq!((least.numer(), (-&least).numer()), (BigInt::from(i128::MIN), &most + 1));
    assert_eq!(-(-&least), Exact::from_integer(i128::MIN.into()));
    assert_eq!((&one / &least).to_string(), "-1/170141183460469231731687303715884105728");
    assert_eq!(&one / (&one / &least), least);
    // halves away from 0
    let half = ratio(1, 2);
    assert_eq!((half.round(), (-&half).round()), (one.clone(), -&one));
    assert_eq!((of(&most) + &half).round(), beyond);
}

#[test]
fn nothing_is_divided_by_0() {
    let zero = || ratio(0, 1);
    assert!(std::panic::catch_unwind(|| ratio(1, 0)).is_err());
    assert!(std::panic::catch_unwind(|| ratio(1, 2) / zero()).is_err());
    assert!(std::panic::catch_unwind(|| Exact::new(1.into(), BigInt::ZERO)).is_err());
}
