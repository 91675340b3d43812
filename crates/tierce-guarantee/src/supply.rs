//! What a guarantee is sure to give within a window: its supply bound function.
//!
//! Example: RESBS 3 8 may give its 3 at the begin of one period and at the end of the next, so a window of 10 can be
//! empty; from there on every 8 hold 3 again, the last 3 of them:
//!
//! ```text
//! window    0 … 10   13   18   21
//! supply         0    3    3    6
//! ```
//!
//! Source: for basic reservations the periodic resource model (Shin & Lee, RTSS 2003), which is Lemmas 5.1 to 5.3 of HLS
//! for every window; continuous ones and PSBE by their definitions.

use crate::exact::Exact;
use crate::guarantee::{Guarantee, Kind, Parameter};
use crate::number::whole;

/// The least supply in a window, as a function of its length. Tight: some pattern of the guarantee comes as close as you
/// like to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Supply {
    /// All of every window.
    Whole,
    /// `amount` per `period`, after a first wait of `gaps`·(period − amount): two gaps when the amount may come anywhere
    /// within a period, one when every window of a period holds it.
    Chunks {
        /// CPU time per period.
        amount: Exact,
        /// Length of a period.
        period: Exact,
        /// 1 or 2.
        gaps: u8,
    },
    /// max(0, share·window − error).
    Linear {
        /// Slope.
        share: Exact,
        /// Deficit.
        error: Exact,
    },
    /// Nothing in any window, however long (PS, NULL, and RESU as long as no deadlines are named).
    Nothing,
}

impl Supply {
    /// What a guarantee gives.
    pub fn of(guarantee: &Guarantee) -> Self {
        if guarantee.is_whole_cpu() {
            return Self::Whole;
        }
        if let Some((amount, period)) = guarantee.amount_and_period() {
            let gaps = if guarantee.kind().is_basic() { 2 } else { 1 };
            return Self::Chunks { amount: amount.clone(), period: period.clone(), gaps };
        }
        match (guarantee.kind(), guarantee.get(Parameter::Share), guarantee.get(Parameter::Error)) {
            (Kind::Psbe, Some(share), Some(error)) => {
                Self::Linear { share: share.clone(), error: error.clone() }
            }
            _ => Self::Nothing,
        }
    }

    /// Least supply in any window of that length.
    pub fn at(&self, window: &Exact) -> Exact {
        match self {
            Self::Whole => window.clone(),
            Self::Chunks { amount, period, gaps } => {
                let gap = period - amount;
                let rest = window - &gap * whole(u64::from(*gaps) - 1);
                if rest <= whole(0) {
                    return whole(0);
                }
                let chunks = (&rest / period).floor();
                let last = rest - &chunks * period - gap;
                chunks * amount + last.max(whole(0))
            }
            Self::Linear { share, error } => (share * window - error).max(whole(0)),
            Self::Nothing => whole(0),
        }
    }

    /// The shortest window that is sure to hold that much, which is above 0; `None`: none is.
    pub fn time_for(&self, work: &Exact) -> Option<Exact> {
        match self {
            Self::Whole => Some(work.clone()),
            Self::Chunks { amount, period, gaps } => {
                let waits = (work / amount).ceil() - whole(1) + whole(u64::from(*gaps));
                Some(waits * (period - amount) + work)
            }
            Self::Linear { share, error } => Some((work + error) / share),
            Self::Nothing => None,
        }
    }

    /// The longest time without any supply; `None`: unbounded.
    pub fn longest_gap(&self) -> Option<Exact> {
        match self {
            Self::Whole => Some(whole(0)),
            Self::Chunks { amount, period, gaps } => Some((period - amount) * whole(u64::from(*gaps))),
            Self::Linear { share, error } => Some(error / share),
            Self::Nothing => None,
        }
    }

    /// Its slope in the long run.
    pub fn rate(&self) -> Exact {
        match self {
            Self::Whole => whole(1),
            Self::Chunks { amount, period, .. } => amount / period,
            Self::Linear { share, .. } => share.clone(),
            Self::Nothing => whole(0),
        }
    }

    /// The smallest error δ with which `share` is met in every window: the largest share·t − supply(t), reached at the
    /// end of the longest gap. `None`: the share is above the rate.
    pub fn error_for(&self, share: &Exact) -> Option<Exact> {
        if *share > self.rate() {
            return None;
        }
        self.longest_gap().map(|gap| gap * share)
    }
}
