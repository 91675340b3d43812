//! Numbers left open, solved for exactly: the strongest guarantee that follows from one, and the weakest from which one
//! follows.
//!
//! ```
//! use tierce_guarantee::{weakest, Free, Guarantee, Wanted};
//! // The smallest share that EEVDF with a quantum of 10 ms must give for 5 ms in every 33 ms (HLS 5.3.3.2).
//! let open = Wanted::parse("PSBE ? 10ms").unwrap();
//! let goal = Guarantee::parse("RESCS 5ms 33ms").unwrap();
//! let derivation = weakest(&open, &goal, &Free::default()).unwrap();
//! assert_eq!(derivation.source.to_string(), "PSBE 5/11 10ms");
//! ```

use crate::best_number::{best_number, whole_number_of};
use crate::convert::{cell, convert, show, Cell, Derivation, Free, Refusal};
use crate::exact::Exact;
use crate::guarantee::{Guarantee, Kind, Parameter, Wanted};
use crate::number::{floor_u64, whole};

/// The strongest guarantee of the form `wanted`, of which one number is open, that can be shown to follow from `source`:
/// the largest amount or share, the smallest period or error. z of RESPS or RESSH, when open, is that of `source`, or 0.
pub fn best(source: &Guarantee, wanted: &Wanted, free: &Free) -> Result<Derivation, Refusal> {
    let wanted = with_z(wanted, source.get(Parameter::Overrun).or(source.get(Parameter::Phase)));
    if wanted.open() == 0 {
        let goal = wanted.full();
        let goal =
            goal.ok_or_else(|| Refusal::new("numbers_have_bounds", format!("there is no {wanted}")))?;
        return show(source, &goal, free);
    }
    if wanted.open() > 1 {
        return Err(Refusal::new("one open number", format!("{wanted} has more than one open number")));
    }
    let slower = free.deadlines.as_ref().filter(|_| source.kind() == Kind::Resu);
    let seen_as =
        slower.and_then(|apart| Guarantee::reservation(Kind::Resbs, source.share() * apart, apart.clone()));
    let number = best_number(seen_as.as_ref().unwrap_or(source), &wanted);
    match number.and_then(|number| wanted.filled(number)) {
        Some(goal) => show(source, &goal, free),
        None => Err(nothing(source, &wanted)),
    }
}

fn nothing(source: &Guarantee, wanted: &Wanted) -> Refusal {
    match cell(source.kind(), wanted.kind) {
        Cell::Infeasible(refusal) => refusal,
        Cell::Feasible { .. } => {
            Refusal::new("not enough", format!("no guarantee of the form {wanted} follows from {source}"))
        }
    }
}

/// z of RESPS and RESSH is nothing that could be solved for.
fn with_z(wanted: &Wanted, z: Option<&Exact>) -> Wanted {
    let mut wanted = wanted.clone();
    if wanted.open() < wanted.values.len() && matches!(wanted.kind, Kind::Resps | Kind::Ressh) {
        let z = z.cloned().unwrap_or_else(|| whole(0));
        wanted.values[2].get_or_insert(z);
    }
    wanted
}

/// The weakest guarantee of the form `open`, of which one number is open, from which `goal` can be shown to follow: the
/// smallest amount or share, the largest period or error.
pub fn weakest(open: &Wanted, goal: &Guarantee, free: &Free) -> Result<Derivation, Refusal> {
    let z = goal.get(Parameter::Overrun).or(goal.get(Parameter::Phase));
    let open = with_z(open, z);
    if open.open() != 1 {
        return Err(Refusal::new("one open number", format!("{open} must have exactly one open number")));
    }
    if let Cell::Infeasible(refusal) = cell(open.kind, goal.kind()) {
        return Err(refusal);
    }
    let none = || {
        let reason = format!("{goal} follows from no guarantee of the form {open}");
        Refusal::new("not enough", reason)
    };
    let number = weakest_number(&open, goal).ok_or_else(none)?;
    let source = open.filled(number).ok_or_else(none)?;
    show(&source, goal, free)
}

/// The number for the one that is open; not yet shown to be enough.
fn weakest_number(open: &Wanted, goal: &Guarantee) -> Option<Exact> {
    let share = goal.share();
    match open.kind {
        Kind::Ps | Kind::Resu => Some(share),
        Kind::Psbe => weakest_psbe(open, goal),
        _ if goal.kind().is_hard() => match (open.get(Parameter::Amount), goal.amount_and_period()?) {
            (Some(_), (_, period)) => Some(period.clone()),
            (None, (amount, _)) => Some(amount.clone()),
        },
        _ => weakest_reservation(open, goal),
    }
}

fn weakest_psbe(open: &Wanted, goal: &Guarantee) -> Option<Exact> {
    let (share, error) = (open.get(Parameter::Share), open.get(Parameter::Error));
    match (goal.amount_and_period(), goal.kind(), share, error) {
        (Some((amount, period)), _, Some(share), _) => Some(share * period - amount),
        (Some((amount, period)), _, None, Some(error)) => Some((amount + error) / period),
        (None, Kind::Psbe, Some(share), _) => Some(&goal.values()[1] * share / goal.share()),
        (None, Kind::Psbe, None, Some(error)) => {
            let goal_error = &goal.values()[1];
            if *goal_error == whole(0) {
                return (*error == whole(0)).then(|| goal.share());
            }
            Some((error * goal.share() / goal_error).max(goal.share()))
        }
        (None, Kind::Ps, None, _) => Some(goal.share()),
        _ => None, // any error will do
    }
}

/// With the waits of [`Supply::Chunks`]: a window of y' holds x' if (k + gaps)(y − x) + x' ≤ y', where k chunks are used up
/// entirely, k = ⌈x'/x⌉ − 1. A basic reservation gives a basic one also where its periods fit n times: n·x ≥ x', n·y = y'.
fn weakest_reservation(open: &Wanted, goal: &Guarantee) -> Option<Exact> {
    let gaps = whole(if open.kind.is_basic() { 2 } else { 1 });
    let share = goal.share();
    match (goal.amount_and_period(), open.get(Parameter::Amount), open.get(Parameter::Period)) {
        (Some((amount, period)), Some(own), None) => {
            let chunks = (amount / own).ceil() - whole(1);
            let by_supply = own + (period - amount) / (&chunks + gaps);
            let repeated = (open.kind.is_basic() && goal.kind().is_basic())
                .then(|| period / (chunks + whole(1)))
                .filter(|period| period >= own);
            repeated.into_iter().chain([by_supply]).max()
        }
        (Some((amount, period)), None, Some(own)) => {
            let by_supply = smallest_amount(amount, period, own, &gaps);
            let repeated = whole_number_of(period, Some(own))
                .filter(|_| open.kind.is_basic() && goal.kind().is_basic())
                .map(|times| amount / times);
            repeated.into_iter().chain(by_supply).min()
        }
        (None, Some(own), None) => match goal.get(Parameter::Error) {
            Some(error) => Some((own / &share).min(own + error / (&share * gaps))),
            None => Some(own / share), // PS
        },
        (None, None, Some(own)) => match goal.get(Parameter::Error) {
            Some(error) => Some((&share * own).max(own - error / (&share * gaps))),
            None => Some(share * own),
        },
        _ => None,
    }
}

/// The smallest x such that any window of `period` holds `amount`, with chunks of x in each `own`. For each number of
/// whole chunks k, x ≥ amount/(k + 1) and x ≥ own − (period − amount)/(k + gaps); the first falls with k, the second
/// rises, so the best k is where they cross.
fn smallest_amount(amount: &Exact, period: &Exact, own: &Exact, gaps: &Exact) -> Option<Exact> {
    let falls = |chunks: u64| amount / whole(chunks + 1);
    let rises = |chunks: u64| own - (period - amount) / (whole(chunks) + gaps);
    // From here on the second is the larger one: with k ≥ period/own, it is at least amount/(k + 1).
    let (mut low, mut high) = (0, floor_u64(&(period / own))?.checked_add(2)?);
    while low < high {
        let middle = low + (high - low) / 2;
        if rises(middle) >= falls(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    let at = |chunks: u64| falls(chunks).max(rises(chunks));
    let best = at(low).min(at(low.saturating_sub(1)));
    (best <= *own).then_some(best)
}

/// As [`convert`] or [`show`] or [`best`], whatever is open in `wanted`.
pub fn derive(source: &Guarantee, wanted: &Wanted, free: &Free) -> Result<Derivation, Refusal> {
    match wanted.full() {
        Some(goal) => show(source, &goal, free),
        None if wanted.open() == wanted.values.len() => convert(source, wanted.kind, free),
        None => best(source, wanted, free),
    }
}
