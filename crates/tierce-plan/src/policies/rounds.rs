//! Are the control loops of a node with rounds stable? Exactly, in the numbers that the scheduler computes with.

use crate::policies::{position, Param, PolicyRecord};
use tierce_policy::RATIO_ONE;

/// A gain that makes a loop unstable: its place among the parameters, what is wrong, its value and the bound it breaks.
#[derive(Debug, PartialEq, Eq)]
pub struct Unstable {
    /// Which parameter.
    pub at: usize,
    /// What is wrong.
    pub message: &'static str,
    /// Its value.
    pub value: String,
    /// The bound that it breaks.
    pub bound: String,
}

/// A fraction, to seven places.
fn decimal(over: u128, under: u128) -> String {
    let text = format!("{}.{:07}", over / under, over % under * 10_000_000 / under);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The inner loop is stable for 0 < K_I < 1. The outer one, z³ − 2z² + (1 + g)z − gZ with g = K_I·K_R, has all its roots within
/// the unit circle for 1/2 < Z < 1 and 0 < g < (2Z − 1)/Z².
pub fn unstable(policy: &PolicyRecord, values: &[u64]) -> Option<Unstable> {
    let find = |name| position(&policy.node_params, name);
    let [inner_at, outer_at, zero_at] = [find("inner_gain")?, find("outer_gain")?, find("outer_zero")?];
    let [inner, outer, zero] =
        [inner_at, outer_at, zero_at].map(|at| u128::from(*values.get(at).unwrap_or(&0)));
    let one = u128::from(RATIO_ONE);
    let shown = |at: usize| {
        policy
            .node_params
            .get(at)
            .map_or(String::new(), |param: &Param| param.show(values[at], |_| String::new()))
    };
    let broken = |at, message, value, bound: &str| Some(Unstable { at, message, value, bound: bound.into() });
    if inner == 0 || inner >= one {
        return broken(
            inner_at,
            "the inner loop is unstable: K_I",
            shown(inner_at),
            "more than 0, less than 1",
        );
    }
    if 2 * zero <= one || zero >= one {
        return broken(
            zero_at,
            "the outer loop is unstable: Z_R",
            shown(zero_at),
            "more than 0.5, less than 1",
        );
    }
    // K_I K_R < (2Z - 1)/Z², all in units of 1/one.
    let (gain, most) = (inner * outer, (2 * zero - one) * one * one * one);
    if gain == 0 || gain * zero * zero >= most {
        let bound = format!(
            "more than 0, less than {} = (2 Z_R - 1)/Z_R^2",
            decimal((2 * zero - one) * one, zero * zero)
        );
        return broken(outer_at, "the outer loop is unstable: K_I K_R", decimal(gain, one * one), &bound);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::by_name;

    /// The largest root of z³ + a z² + b z + c, in magnitude (Durand and Kerner).
    fn radius(a: f64, b: f64, c: f64) -> f64 {
        let times = |x: (f64, f64), y: (f64, f64)| (x.0 * y.0 - x.1 * y.1, x.0 * y.1 + x.1 * y.0);
        let minus = |x: (f64, f64), y: (f64, f64)| (x.0 - y.0, x.1 - y.1);
        let value = |z| {
            let plus = |x: (f64, f64), y: f64| (x.0 + y, x.1);
            plus(times(plus(times(plus(z, a), z), b), z), c)
        };
        let mut roots = [(1.0, 0.0), (0.4, 0.9), (-0.65, 0.72)];
        for _ in 0..500 {
            for at in 0..3 {
                let [x, y] = [1, 2].map(|other| minus(roots[at], roots[(at + other) % 3]));
                let (over, under) = (value(roots[at]), times(x, y));
                let norm = (under.0 * under.0 + under.1 * under.1).max(1e-300);
                let step = times(over, (under.0 / norm, -under.1 / norm));
                roots[at] = minus(roots[at], step);
            }
        }
        roots.iter().map(|root| root.0.hypot(root.1)).fold(0.0, f64::max)
    }

    fn gains(inner: u64, outer: u64, zero: u64) -> Option<Unstable> {
        let policy = by_name("i-plus-pi").unwrap();
        unstable(policy, &[0, 0, 0, 0, inner, outer, zero, 0])
    }

    #[test]
    fn the_closed_form_is_that_of_the_roots() {
        let mut random = 4_u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut seen = [0; 2];
        for _ in 0..10_000 {
            let (inner, zero) = (next(RATIO_ONE), next(RATIO_ONE + 1000));
            let outer = next(8 * RATIO_ONE);
            let [k, r, z] = [inner, outer, zero].map(|value| value as f64 / RATIO_ONE as f64);
            // (3.6), and the inner loop z² - z + K_I as a cubic with a root at 0
            let worst = radius(-2.0, 1.0 + k * r, -k * r * z).max(radius(-1.0, k, 0.0));
            if (worst - 1.0).abs() < 1e-5 {
                continue; // too near to tell by floating point
            }
            let stable = gains(inner, outer, zero).is_none();
            assert_eq!(stable, worst < 1.0, "K_I {k} K_R {r} Z_R {z}: {worst}");
            seen[usize::from(stable)] += 1;
        }
        assert!(seen[0] > 1000 && seen[1] > 1000, "{seen:?}");
    }

    #[test]
    fn the_bound_itself_is_refused_and_one_unit_below_is_not() {
        // Z = 3/4: (2Z - 1)/Z² = 8/9; K_I = 1/2: K_R < 16/9, which lies between two units
        let (half, zero) = (RATIO_ONE / 2, RATIO_ONE / 4 * 3);
        let last = (16 * RATIO_ONE).div_ceil(9) - 1;
        assert_eq!(gains(half, last, zero), None);
        assert_eq!(gains(half, last + 1, zero).unwrap().at, 5);
        assert_eq!(gains(half, RATIO_ONE, RATIO_ONE / 2).unwrap().at, 6);
        assert_eq!(gains(half, RATIO_ONE, RATIO_ONE / 2 + 1).unwrap().at, 5);
        assert_eq!(gains(RATIO_ONE, RATIO_ONE / 8, zero).unwrap().at, 4);
        // the thesis' own settings
        for (inner, outer) in [(0.25, 0.9), (0.5, 0.9), (0.5, 1.4)] {
            let [inner, outer, zero] = [inner, outer, 0.88].map(|gain: f64| (gain * RATIO_ONE as f64) as u64);
            assert_eq!(gains(inner, outer, zero), None);
        }
        let broken = gains(half, 2 * RATIO_ONE, zero).unwrap();
        assert_eq!((broken.value.as_str(), &broken.bound[..28]), ("1", "more than 0, less than 0.888"));
    }
}
