//! What those of higher priority leave, where that is bounded.
//!
//! **What a server takes.** A hard server of budget Q and period T takes at most U·t + Q·(1 − U), U = Q/T, of a window of t that
//! begins when it is asleep or has no budget left. Let its periods begin at t₁ < … < tₙ within the window, and xₖ be what it uses of
//! the k-th. A period begins when the last one has ended, xₖ ≤ Q, T later; or earlier, when the child wakes with more left than
//! fits, Q − xₖ > (tₖ + T − t)·U, which is t > tₖ + xₖ/U (rule 5 of policy/reservation.c). So tₖ₊₁ ≥ tₖ + xₖ/U. The same holds from
//! the begin of the window a for what is left of the period before: a child that wakes with r keeps it if r ≤ (d − t)·U, and t₁ ≥ d;
//! with D < T it keeps r ≤ (d − t)·Q/D ≤ (t₁ − t)·U, since t₁ = d + T − D. Together x₀ + … + xₙ₋₁ ≤ U·(tₙ − a). The last
//! period begins at least xₙ before the end of the window, and U·(t − xₙ) + xₙ ≤ U·t + Q·(1 − U). All of
//! this holds however late the server itself is served. It may use Q at the end of a period and Q again at once; but then it was
//! kept waiting, and the window does not begin there.
//!
//! One with the replenishment `periodic` may use Q at the end of a period and Q again at once even so: it takes at most U·t + 2·Q·(1 − U),
//! as a task with a jitter of T − Q. `polling` and `sporadic` budgets take no more than hard ones (`servers.rs`), and what comes
//! back at once has no bound.
//!
//! **What jobs take.** A task of work C, period T and jitter J takes at most U·(t + J) + C·(1 − U) of a window that begins
//! without a job of it: all but the last job were released T apart, the first up to J late. Works in turn and bursts have a rate and a
//! burst of their own (`tierce_analysis::requests`).
//!
//! **What is left.** Let a child of lower priority want the CPU in all of [w, b], and a ≤ w be the last time at which nothing of higher
//! priority wants it. In [a, w] those above use all that the node is supplied with, and a window from a on begins as the two
//! bounds need it. So the child gets in [w, b] at least supply(b − a) − Σ (U·(b − a) + B), which with supply(t) ≥ s·t − δ is
//! (s − ΣU)·(b − a) − δ − ΣB, and b − a ≥ b − w: PSBE (s − ΣU) (δ + ΣB).
//!
//! Example: above 2 ms in 10 ms, on a whole CPU: PSBE 4/5 1.6ms. It is reached: 1.6 ms without, the server uses x = 0.4 ms until it
//! sleeps, wakes 2 ms after its begin, and takes 2 ms more.
//!
//! Budgets hold whatever those below do; loads are taken at their word.

use crate::share::{add, ratio, zero, Share};
use tierce_analysis::requests::Requests;
use tierce_guarantee::{whole, Exact, Guarantee, Kind, Supply};

/// At most rate·t + burst ns in a window of t that begins when nothing of it wants the CPU.
#[derive(Clone, Debug)]
pub struct Taken {
    pub rate: Share,
    pub burst: Exact,
}

impl Taken {
    pub fn nothing() -> Self {
        Self { rate: zero(), burst: whole(0) }
    }

    /// Jobs or budgets of that length, that far apart.
    pub fn bounded(work_ns: u64, period_ns: u64, jitter_ns: u64) -> Self {
        let rate = ratio(work_ns, period_ns.max(1));
        let last = whole(work_ns) * (whole(1) - &rate);
        let last = last.max(whole(0));
        let burst = if jitter_ns == 0 { last } else { &rate * whole(jitter_ns) + last };
        Self { rate, burst }
    }

    /// Jobs that differ or come in bursts. `None`: it would take too long to look.
    pub fn requested(requests: &Requests, jitter_ns: u64) -> Option<Self> {
        let rate = requests.rate();
        let burst = &rate * whole(jitter_ns) + requests.ahead_of_rate()?;
        Some(Self { rate, burst })
    }

    pub fn and(&self, other: &Self) -> Self {
        let burst = match self.burst.is_integer() {
            true => &self.burst + other.burst.ceil(),
            false => (&self.burst + &other.burst).ceil(),
        };
        Self { rate: add(&self.rate, &other.rate), burst }
    }

    /// What is left of a guarantee; `None`: perhaps nothing.
    pub fn leaves(&self, of: &Guarantee) -> Option<Guarantee> {
        if matches!(of.kind(), Kind::Ps | Kind::Resu) {
            return Guarantee::ps(readable(of.share() - &self.rate));
        }
        let supply = Supply::of(of);
        let error = supply.error_for(&supply.rate())? + &self.burst;
        Guarantee::psbe(readable(supply.rate() - &self.rate), error.ceil())
            .filter(|left| left.share() > whole(0))
    }
}

/// Down to a millionth, where the fraction would be longer.
pub fn readable(share: Share) -> Share {
    let scale = whole(1_000_000);
    if share.denom() <= scale.numer() {
        return share;
    }
    (share * &scale).floor() / scale
}
