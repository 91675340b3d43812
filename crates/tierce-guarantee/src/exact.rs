//! Fractions that never round: of machine words while these hold them, of numbers of any size beyond.
//!
//! Sums and products divide by common factors before they multiply, so that what is multiplied stays short and the result needs
//! no other reduction (Knuth, The Art of Computer Programming 2, 4.5.1).

use num_bigint::BigInt;
use num_integer::Integer;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub, SubAssign};

/// A fraction of whole numbers of any size. Times are in ns; what a theorem yields may be finer than 1 ns.
///
/// ```
/// use tierce_guarantee::{ratio, whole};
/// assert_eq!(ratio(1, 3) + ratio(1, 6), ratio(1, 2));
/// assert_eq!((whole(10) / whole(4)).ceil(), whole(3));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Exact(Parts);

/// Above and below the bar: no common factor, above 0 below. One form per number: large only where small does not hold it.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Parts {
    /// Not `i128::MIN`, so that each has a negative.
    Small(i128, i128),
    Large(Box<(BigInt, BigInt)>),
}

use Parts::{Large, Small};

/// What fractions are made of. `None`: it does not fit.
trait Number: Sized {
    fn plus(&self, other: &Self) -> Option<Self>;
    fn times(&self, other: &Self) -> Option<Self>;
    /// Of a number by one that divides it.
    fn over(&self, other: &Self) -> Self;
    /// Above 0; `other` is.
    fn common(&self, other: &Self) -> Self;
}

impl Number for i128 {
    fn plus(&self, other: &Self) -> Option<Self> {
        self.checked_add(*other)
    }

    fn times(&self, other: &Self) -> Option<Self> {
        match (i64::try_from(*self), i64::try_from(*other)) {
            (Ok(one), Ok(two)) => Some(i128::from(one) * i128::from(two)),
            _ => self.checked_mul(*other),
        }
    }

    fn over(&self, other: &Self) -> Self {
        match (u64::try_from(*self), u64::try_from(*other)) {
            (Ok(over), Ok(under)) => (over / under).into(),
            _ => self / other,
        }
    }

    fn common(&self, other: &Self) -> Self {
        if *other == 1 {
            return 1;
        }
        match (u64::try_from(self.unsigned_abs()), u64::try_from(*other)) {
            (Ok(a), Ok(b)) => of_words(a, b).into(),
            _ => self.gcd(other),
        }
    }
}

/// The greatest common divisor. Most are found in few divisions.
fn of_words(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl Number for BigInt {
    fn plus(&self, other: &Self) -> Option<Self> {
        Some(self + other)
    }

    fn times(&self, other: &Self) -> Option<Self> {
        Some(self * other)
    }

    fn over(&self, other: &Self) -> Self {
        self / other
    }

    fn common(&self, other: &Self) -> Self {
        // Most of the time one is short; after a division both are.
        let (long, short) = if self.bits() > other.bits() { (self, other) } else { (other, self) };
        if *short == Self::ZERO {
            return long.clone();
        }
        let rest = long % short;
        match (i128::try_from(&rest), i128::try_from(short)) {
            (Ok(rest), Ok(short)) if short != i128::MIN => rest.gcd(&short).into(),
            _ => rest.gcd(short),
        }
    }
}

type Fraction<'a, T> = (&'a T, &'a T);

fn sum<T: Number>((a, b): Fraction<T>, (c, d): Fraction<T>) -> Option<(T, T)> {
    let both = b.common(d);
    let (b_alone, d_alone) = (b.over(&both), d.over(&both));
    let over = a.times(&d_alone)?.plus(&c.times(&b_alone)?)?;
    let cut = over.common(&both);
    Some((over.over(&cut), b_alone.times(&d.over(&cut))?))
}

fn product<T: Number>((a, b): Fraction<T>, (c, d): Fraction<T>) -> Option<(T, T)> {
    let (first, second) = (a.common(d), c.common(b));
    Some((a.over(&first).times(&c.over(&second))?, b.over(&second).times(&d.over(&first))?))
}

impl Exact {
    /// `over / under`.
    ///
    /// # Panics
    ///
    /// If `under` is 0.
    pub fn new(over: BigInt, under: BigInt) -> Self {
        Self::large(over, 1.into()) / Self::large(under, 1.into())
    }

    /// A whole number.
    pub fn from_integer(number: BigInt) -> Self {
        Self::large(number, 1.into())
    }

    /// The same of machine words; `under` is not 0.
    pub(crate) fn of(over: u64, under: u64) -> Self {
        assert!(under != 0, "division by zero");
        let cut = of_words(over, under);
        Self(Small((over / cut).into(), (under / cut).into()))
    }

    /// Of numbers without a common factor.
    fn large(over: BigInt, under: BigInt) -> Self {
        match (i128::try_from(&over), i128::try_from(&under)) {
            (Ok(over), Ok(under)) if over != i128::MIN => Self(Small(over, under)),
            _ => Self(Large(Box::new((over, under)))),
        }
    }

    fn with(
        &self,
        other: &Self,
        small: fn(Fraction<i128>, Fraction<i128>) -> Option<(i128, i128)>,
        large: fn(Fraction<BigInt>, Fraction<BigInt>) -> Option<(BigInt, BigInt)>,
    ) -> Self {
        if let (Small(a, b), Small(c, d)) = (&self.0, &other.0) {
            if let Some((over, under)) = small((a, b), (c, d)).filter(|(over, _)| *over != i128::MIN) {
                return Self(Small(over, under));
            }
        }
        let (one, two) = (self.parts(), other.parts());
        let fits = large((&one.0, &one.1), (&two.0, &two.1));
        let (over, under) = fits.expect("numbers of any size fit");
        Self::large(over, under)
    }

    fn plus(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (Small(a, 1), Small(b, 1)) => match a.checked_add(*b).filter(|sum| *sum != i128::MIN) {
                Some(sum) => Self(Small(sum, 1)),
                None => self.with(other, sum, sum),
            },
            _ => self.with(other, sum, sum),
        }
    }

    fn parts(&self) -> Cow<'_, (BigInt, BigInt)> {
        match &self.0 {
            Small(over, under) => Cow::Owned(((*over).into(), (*under).into())),
            Large(parts) => Cow::Borrowed(parts),
        }
    }

    /// 1 over it.
    fn inverse(&self) -> Self {
        match &self.0 {
            Small(0, _) => panic!("division by zero"),
            Small(over, under) => Self(Small(under * over.signum(), over.abs())),
            Large(parts) => {
                let (over, under) = (&parts.1, &parts.0);
                let negative = *under < BigInt::ZERO;
                if negative {
                    Self::large(-over, -under)
                } else {
                    Self::large(over.clone(), under.clone())
                }
            }
        }
    }

    /// Above the bar.
    pub fn numer(&self) -> BigInt {
        self.parts().0.clone()
    }

    /// Below the bar, above 0.
    pub fn denom(&self) -> BigInt {
        self.parts().1.clone()
    }

    /// How many binary digits it has below the bar.
    pub fn denom_bits(&self) -> u64 {
        match &self.0 {
            Small(_, under) => u64::from(128 - under.leading_zeros()),
            Large(parts) => parts.1.bits(),
        }
    }

    /// Above, below, or 0.
    pub fn sign(&self) -> Ordering {
        match &self.0 {
            Small(over, _) => over.cmp(&0),
            Large(parts) => parts.0.cmp(&BigInt::ZERO),
        }
    }

    /// Whether it is a whole number.
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Small(_, under) => *under == 1,
            Large(parts) => parts.1 == BigInt::from(1),
        }
    }

    /// As a machine word, if it is a whole number that fits.
    pub fn to_word(&self) -> Option<u64> {
        match &self.0 {
            Small(over, 1) => u64::try_from(*over).ok(),
            _ => None,
        }
    }

    /// Without what is behind the point.
    pub fn to_integer(&self) -> BigInt {
        match &self.0 {
            Small(over, under) => (over / under).into(),
            Large(parts) => &parts.0 / &parts.1,
        }
    }

    /// The largest whole number not above.
    pub fn floor(&self) -> Self {
        match &self.0 {
            Small(_, 1) => self.clone(),
            Small(over, under) => Self(Small(over.div_floor(under), 1)),
            Large(parts) => Self::from_integer(parts.0.div_floor(&parts.1)),
        }
    }

    /// The smallest whole number not below.
    pub fn ceil(&self) -> Self {
        -(-self).floor()
    }

    /// The nearest whole number; halves away from 0.
    pub fn round(&self) -> Self {
        let half = Self::of(1, 2);
        if *self < Self::of(0, 1) {
            (self - half).ceil()
        } else {
            (self + half).floor()
        }
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        if let (Small(a, b), Small(c, d)) = (&self.0, &other.0) {
            if b == d {
                return a.cmp(c);
            }
            if let (Some(one), Some(two)) = (a.times(d), c.times(b)) {
                return one.cmp(&two);
            }
        }
        let (one, two) = (self.parts(), other.parts());
        (&one.0 * &two.1).cmp(&(&two.0 * &one.1))
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Neg for &Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        Exact(match &self.0 {
            Small(over, under) => Small(-over, *under),
            Large(parts) => Large(Box::new((-&parts.0, parts.1.clone()))),
        })
    }
}

impl Neg for Exact {
    type Output = Exact;
    fn neg(self) -> Exact {
        -&self
    }
}

macro_rules! operators {
    ($($name:ident $function:ident: |$one:ident, $two:ident| $result:expr;)*) => {$(
        impl $name<&Exact> for &Exact {
            type Output = Exact;
            fn $function(self, other: &Exact) -> Exact {
                let ($one, $two) = (self, other);
                $result
            }
        }
        impl $name<Exact> for &Exact {
            type Output = Exact;
            fn $function(self, other: Exact) -> Exact {
                self.$function(&other)
            }
        }
        impl $name<&Exact> for Exact {
            type Output = Exact;
            fn $function(self, other: &Exact) -> Exact {
                (&self).$function(other)
            }
        }
        impl $name<Exact> for Exact {
            type Output = Exact;
            fn $function(self, other: Exact) -> Exact {
                (&self).$function(&other)
            }
        }
    )*};
}

operators! {
    Add add: |one, two| one.plus(two);
    Sub sub: |one, two| one + -two;
    Mul mul: |one, two| one.with(two, product, product);
    Div div: |one, two| one.with(&two.inverse(), product, product);
}

impl AddAssign<&Exact> for Exact {
    fn add_assign(&mut self, other: &Exact) {
        *self = &*self + other;
    }
}

impl AddAssign for Exact {
    fn add_assign(&mut self, other: Exact) {
        *self += &other;
    }
}

impl SubAssign<&Exact> for Exact {
    fn sub_assign(&mut self, other: &Exact) {
        *self = &*self - other;
    }
}

impl<'a> Sum<&'a Exact> for Exact {
    fn sum<I: Iterator<Item = &'a Exact>>(each: I) -> Exact {
        each.fold(Exact::of(0, 1), |sum, one| sum + one)
    }
}

impl Sum for Exact {
    fn sum<I: Iterator<Item = Exact>>(each: I) -> Exact {
        each.fold(Exact::of(0, 1), |sum, one| sum + one)
    }
}

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Small(over, 1) => write!(f, "{over}"),
            Small(over, under) => write!(f, "{over}/{under}"),
            Large(parts) if self.is_integer() => write!(f, "{}", parts.0),
            Large(parts) => write!(f, "{}/{}", parts.0, parts.1),
        }
    }
}

impl fmt::Debug for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
