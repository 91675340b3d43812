//! Random task sets: utilisations with a given sum, periods, and from both works in whole ns.
//!
//! | utilisations | drawn from | source |
//! |---|---|---|
//! | [`Shares::UntilInRange`] | each uniform in a range, one after the other until the sum is in a range; all anew when it is above | ReTAS, appendix A |
//! | [`Shares::UUniFastDiscard`] | all vectors ≥ 0 with the sum, uniformly; anew when one is above 1 | Bini & Buttazzo 2005; Davis & Burns 2009 |
//! | [`Shares::RandFixedSum`] | all vectors with the sum and each part in a range, uniformly | Stafford 2006; Emberson, Stafford & Davis, WATERS 2010 |
//!
//! Emberson, Stafford & Davis take the last one and log-uniform periods ([`Periods::LogUniform`]).
//!
//! Draws are SplitMix64 (Steele, Lea & Flood 2014). From them come whole numbers, and fractions by +, −, ×, ÷ and √, which IEEE 754
//! rounds in one way only: a seed gives the same set on every machine. Floating point only draws.
//!
//! Works are u·T to the nearest ns, 1 at least and T at most: Σ work/period is off by at most Σ 1/T, half of that where no work is
//! below a ns.

use crate::task::Task;

/// So many tasks at most.
pub const TASKS_MAX: usize = 1024;

/// After so many draws a set that does not come out as wanted is given up.
const DRAWS_MAX: usize = 1 << 22;

/// Where utilisations come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shares {
    /// As many as it takes: each from `each.0` to `each.1`, all together from `sum.0` to `sum.1`.
    UntilInRange {
        /// Of a task; the upper one is above 0 and at most 1.
        each: (f64, f64),
        /// Of all.
        sum: (f64, f64),
    },
    /// `tasks` of them with this sum.
    UUniFastDiscard {
        /// How many.
        tasks: usize,
        /// Of all.
        sum: f64,
    },
    /// `tasks` of them with this sum, each in a range.
    RandFixedSum {
        /// How many.
        tasks: usize,
        /// Of all.
        sum: f64,
        /// Of a task.
        each: (f64, f64),
    },
}

/// Where periods come from; both ends are included, the lower one above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Periods {
    /// Each ns alike.
    Uniform(u64, u64),
    /// Each ratio alike: as many from 1 to 10 ms as from 10 to 100.
    LogUniform(u64, u64),
}

/// Why there is no set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Name of the rule, snake_case.
    pub rule: &'static str,
    /// In plain words, with the bound.
    pub message: &'static str,
}

/// A stream of draws.
pub struct Draw(u64);

impl Draw {
    /// The same seed gives the same draws.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 up to 1, in steps of 2^-53.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Both ends included; biased by less than (most − least)/2^64.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        let span = u128::from(most - least) + 1;
        least + ((u128::from(self.bits()) * span) >> 64) as u64
    }

    fn within(&mut self, (least, most): (f64, f64)) -> f64 {
        least + self.unit() * (most - least)
    }
}

/// Draw a set; deadlines are periods.
pub fn tasks(shares: &Shares, periods: &Periods, draw: &mut Draw) -> Result<Vec<Task>, Refusal> {
    let (Periods::Uniform(least, most) | Periods::LogUniform(least, most)) = *periods;
    if least == 0 || least > most || most > tierce_guarantee::TIME_MAX_NS {
        return Err(Refusal { rule: "periods_are_a_range", message: "0 < shortest <= longest <= 2^60 ns" });
    }
    let shares = self::shares(shares, draw)?;
    let task = |share: f64| {
        let period_ns = match periods {
            Periods::Uniform(..) => draw.between(least, most),
            Periods::LogUniform(..) => log_uniform(least, most, draw),
        };
        let work = (share * period_ns as f64 + 0.5) as u64;
        Task::new(work.clamp(1, period_ns), period_ns)
    };
    Ok(shares.into_iter().map(task).collect())
}

/// Draw utilisations.
pub fn shares(shares: &Shares, draw: &mut Draw) -> Result<Vec<f64>, Refusal> {
    let (tasks, sum, each) = match *shares {
        Shares::UntilInRange { each, sum } => (1, sum, each),
        Shares::UUniFastDiscard { tasks, sum } => (tasks, (sum, sum), (0.0, 1.0)),
        Shares::RandFixedSum { tasks, sum, each } => (tasks, (sum, sum), each),
    };
    // Written so that what is not a number is refused.
    if !(1..=TASKS_MAX).contains(&tasks) {
        return Err(Refusal { rule: "tasks_are_some", message: "1 to 1024 tasks" });
    }
    if !(0.0 <= each.0 && each.0 <= each.1 && 0.0 < each.1 && each.1 <= 1.0) {
        return Err(Refusal {
            rule: "shares_are_a_range",
            message: "0 <= least <= most of a task, 0 < most <= 1",
        });
    }
    if !(0.0 < sum.0 && sum.0 <= sum.1 && sum.1 <= TASKS_MAX as f64) {
        return Err(Refusal { rule: "sum_is_a_range", message: "0 < least <= most of all tasks" });
    }
    let fixed = !matches!(shares, Shares::UntilInRange { .. });
    if fixed && !(each.0 * tasks as f64 <= sum.0 && sum.0 <= each.1 * tasks as f64) {
        let message =
            "the sum is from as many times the least to as many times the most share as there are tasks";
        return Err(Refusal { rule: "sum_is_in_reach", message });
    }
    match shares {
        Shares::UntilInRange { .. } => until_in_range(each, sum, draw),
        Shares::UUniFastDiscard { .. } => uunifast_discard(tasks, sum.0, draw),
        Shares::RandFixedSum { .. } => Ok(rand_fixed_sum(tasks, sum.0, each, draw)),
    }
}

fn until_in_range(each: (f64, f64), sum: (f64, f64), draw: &mut Draw) -> Result<Vec<f64>, Refusal> {
    let (mut shares, mut total) = (Vec::new(), 0.0);
    for _ in 0..DRAWS_MAX {
        let share = draw.within(each);
        shares.push(share);
        total += share;
        if sum.0 <= total && total <= sum.1 {
            return Ok(shares);
        }
        if total > sum.1 {
            shares.clear();
            total = 0.0;
        } else if shares.len() == TASKS_MAX {
            return Err(Refusal { rule: "tasks_are_some", message: "more than 1024 tasks would be needed" });
        }
    }
    let message = "no sum was within its range: make it wider, or each task smaller";
    Err(Refusal { rule: "sum_is_hit", message })
}

/// The gaps between sorted uniform draws are uniform over all vectors with that sum, which is what UUniFast draws; in whole
/// numbers, so that the gaps have the sum.
fn uunifast_discard(tasks: usize, sum: f64, draw: &mut Draw) -> Result<Vec<f64>, Refusal> {
    const WHOLE: u64 = 1 << 53;
    let mut cuts = vec![0; tasks + 1];
    cuts[tasks] = WHOLE;
    for _ in 0..DRAWS_MAX / tasks {
        cuts[1..tasks].iter_mut().for_each(|cut| *cut = draw.between(0, WHOLE));
        cuts[1..tasks].sort_unstable();
        let shares = cuts.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / WHOLE as f64 * sum);
        if shares.clone().all(|share| share <= 1.0) {
            return Ok(shares.collect());
        }
    }
    let message = "each try had a task above 1: less utilisation, more tasks, or randfixedsum";
    Err(Refusal { rule: "shares_are_at_most_1", message })
}

/// The part of the cube [0, 1]^n where the sum is s is cut into simplices by the planes where parts are equal to each other up to
/// whole numbers. `volumes[i][j]`: of i parts with the sum s − (k − j), up to a factor common to a row. A simplex is
/// chosen part by part, in proportion to volumes; then a place in it, uniformly. The i-th root of a uniform draw is the largest
/// of i of them, so no roots are taken. At last the parts change places, all orders alike.
fn rand_fixed_sum(tasks: usize, sum: f64, each: (f64, f64), draw: &mut Draw) -> Vec<f64> {
    let (n, span) = (tasks, each.1 - each.0);
    if n == 1 || span == 0.0 {
        return vec![sum / n as f64; n];
    }
    let s = ((sum - n as f64 * each.0) / span).clamp(0.0, n as f64);
    let k = (s as usize).min(n - 1);
    // Sums less (k, k − 1, …), and (k + n, k + n − 1, …) less sums.
    let above = |j: usize| s - (k as f64 - j as f64);
    let below = |j: usize| (k + n) as f64 - j as f64 - s;
    let mut volumes = vec![0.0; n + 1];
    volumes[1] = 1.0;
    // chances[i - 2][j]: that a choice with i parts left steps down.
    let mut chances = Vec::with_capacity(n - 1);
    for i in 2..=n {
        let (mut next, mut chance) = (vec![0.0; n + 1], vec![0.0; i]);
        for j in 0..i {
            let up = volumes[j + 1] * above(j) / i as f64;
            let down = volumes[j] * below(n - i + j) / i as f64;
            next[j + 1] = up + down;
            // Where there is no volume the sum is at an end of what can be, and all parts are 0, or all 1.
            let end = if below(n - i + j) > above(j) { 0.0 } else { 1.0 };
            chance[j] = if up + down > 0.0 { down / (up + down) } else { end };
        }
        let most = next.iter().copied().fold(0.0, f64::max);
        next.iter_mut().for_each(|volume| *volume /= most);
        volumes = next;
        chances.push(chance);
    }
    let (mut shares, mut rest, mut j, mut shift, mut scale) = (Vec::with_capacity(n), s, k, 0.0, 1.0);
    for i in (1..n).rev() {
        let step = draw.unit() < chances[i - 1].get(j).copied().unwrap_or(0.0);
        let largest = (0..i).map(|_| draw.unit()).fold(0.0, f64::max);
        shift += (1.0 - largest) * scale * rest / (i + 1) as f64;
        scale *= largest;
        shares.push(shift + if step { scale } else { 0.0 });
        if step {
            rest -= 1.0;
            j = j.saturating_sub(1);
        }
    }
    shares.push(shift + scale * rest);
    for place in (1..n).rev() {
        shares.swap(place, draw.between(0, place as u64) as usize);
    }
    shares.into_iter().map(|share| (each.0 + span * share).clamp(each.0, each.1)).collect()
}

/// `least`·(most/least)^u, u being 53 random bits: the product of the ratio's square root, fourth root, … for the bits that are
/// set.
fn log_uniform(least: u64, most: u64, draw: &mut Draw) -> u64 {
    let (mut root, mut period) = (most as f64 / least as f64, least as f64);
    let bits = draw.bits();
    for bit in 0..53 {
        root = root.sqrt();
        if bits >> bit & 1 == 1 {
            period *= root;
        }
    }
    (period as u64).clamp(least, most)
}
