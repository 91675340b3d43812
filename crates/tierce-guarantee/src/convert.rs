//! Conversions between guarantees by rewriting (HLS, section 5.3.2): every pattern that the first allows is one that the
//! second allows, too.
//!
//! [`RULES`] is the one list: Table 5.2 ([`cell`]), conversions and their derivations all come from it. Example:
//!
//! ```
//! use tierce_guarantee::{convert, Free, Guarantee, Kind};
//! let source = Guarantee::parse("RESCS 10ms 20ms").unwrap();
//! let derivation = convert(&source, Kind::Psbe, &Free::default()).unwrap();
//! assert_eq!(derivation.result().to_string(), "PSBE 1/2 5ms");
//! assert_eq!(derivation.steps[0].rule, "Theorem 5.4");
//! ```

mod rules;

pub use rules::{Free, Rule, Step, RULES};

use crate::best_number::best_number;
use crate::guarantee::{Guarantee, Kind, Parameter};
use crate::number::{noted_time, show_share, show_time, whole};
use rules::{is_soft, BASIC, EXCEPTION};
use Kind::{All, Null, Ps, Psbe, Resbh, Resbs, Resch, Rescs, Resnh, Resps, Ressh, Resu};

/// How one guarantee follows from another.
#[derive(Clone, Debug)]
pub struct Derivation {
    /// What was given.
    pub source: Guarantee,
    /// One rule each; empty when the result is the source.
    pub steps: Vec<Step>,
}

impl Derivation {
    /// What was shown.
    pub fn result(&self) -> &Guarantee {
        self.steps.last().map_or(&self.source, |step| &step.to)
    }
}

/// Why there is no conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Theorem or rule.
    pub rule: &'static str,
    /// In plain words.
    pub reason: String,
}

impl Refusal {
    pub(crate) fn new(rule: &'static str, reason: impl Into<String>) -> Self {
        Self { rule, reason: reason.into() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} ({})", self.reason, self.rule)
    }
}

impl std::error::Error for Refusal {}

/// A cell of Table 5.2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// There is a conversion, for every choice of the numbers on the left.
    Feasible {
        /// "RESCS x (2y − x + c)".
        formula: String,
        /// What the caller may choose; empty: nothing.
        free: &'static str,
        /// Theorem, or "trivial".
        rule: &'static str,
        /// Why, in one line.
        because: &'static str,
    },
    /// There is none in general.
    Infeasible(Refusal),
}

/// Table 5.2: can a guarantee of type `from` be rewritten as one of type `to`, whatever its numbers are?
pub fn cell(from: Kind, to: Kind) -> Cell {
    if from == to {
        let because = "it is the same";
        return Cell::Feasible { formula: from.form(), free: "", rule: "trivial", because };
    }
    match RULES.iter().find(|rule| !rule.beyond && rule.leads(from, to)) {
        Some(rule) => {
            let (formula, free) = (rule.formula(to), rule.free);
            Cell::Feasible { formula, free, rule: rule.name, because: rule.because }
        }
        None => Cell::Infeasible(why_not(from, to)),
    }
}

/// Why a type cannot be rewritten as another.
fn why_not(from: Kind, to: Kind) -> Refusal {
    if to == All {
        let gets = match from {
            Null | Ps | Resu => format!("{from} leaves time to others"),
            Psbe => "PSBE leaves time to others (only PSBE 1 0 does not)".into(),
            _ => format!("{from} leaves y − x of every period to others (only x = y does not)"),
        };
        return Refusal::new("not every instant", format!("ALL is every instant, and {gets}"));
    }
    if from == Null {
        return Refusal::new("no guarantee", "NULL guarantees nothing, so nothing follows from it");
    }
    if to == Resu {
        let own = match from {
            Ps | Psbe => "knows no deadlines",
            _ => "has periods of its own, which need not end at them",
        };
        let reason = format!(
            "RESU gives its fraction between any two deadlines that its child names, however close; {from} {own}"
        );
        return Refusal::new("deadlines of the child", reason);
    }
    if from == Ps {
        let reason = format!(
            "PS names no interval: its share may come after any delay, so no number of {to} can be shown"
        );
        return Refusal::new("no interval", reason);
    }
    if from == Resu && !to.is_hard() {
        let reason = format!(
            "RESU names no interval before its child names deadlines; {to} does not name any, RESBS does: its periods. \
             With deadlines every y, RESU s is RESBS (s·y) y, and {to} follows from that"
        );
        return Refusal::new("deadlines of the child", reason);
    }
    match to {
        Resch if BASIC.contains(&from) => {
            let reason = format!(
                "{from} x y as a continuous reservation is RESCS x (2y − x), of a smaller rate; it is hard only where \
                 both rates are equal, that is for x = y"
            );
            Refusal::new("Theorem 5.3", reason)
        }
        Ressh if from == Resnh => Refusal::new(
            "unknown phase",
            "RESSH begins at a known time; where RESNH begins its scheduler chose",
        ),
        Resnh | Ressh if from.is_hard() => {
            let reason = format!("{to} is one block at the same place in every period; {from} may be split");
            Refusal::new("not one block", reason)
        }
        _ => {
            let reason = format!(
                "{to} is hard: it promises that no more than x is given, too. {from} may be given more (a limit \
                 scheduler makes RESBH of RESBS)"
            );
            Refusal::new("no upper bound", reason)
        }
    }
}

/// Rewrite `source` as a guarantee of type `kind`. Where the numbers are not fixed by theorems, `free` or else
/// convention chooses: the period is given by the caller, is twice δ/s, or 10 ms.
pub fn convert(source: &Guarantee, kind: Kind, free: &Free) -> Result<Derivation, Refusal> {
    let period_stays = free.period.is_none() || free.period.as_ref() == source.get(Parameter::Period);
    if source.kind() == kind && period_stays {
        return Ok(Derivation { source: source.clone(), steps: Vec::new() });
    }
    let found = search(source, kind, free, &|_| true);
    found.ok_or_else(|| match cell(source.kind(), kind) {
        Cell::Infeasible(refusal) => refusal,
        Cell::Feasible { formula, free: choice, rule, .. } => {
            let period = free.period.as_ref().map(|period| format!(" and a period of {}", show_time(period)));
            let choice = if choice.is_empty() { String::new() } else { format!(" ({choice})") };
            let period = period.unwrap_or_default();
            Refusal::new(rule, format!("there is no {formula}{choice} for {source}{period}"))
        }
    })
}

/// What [`convert`] makes of it where nothing is chosen, without the steps.
pub fn converted(source: &Guarantee, kind: Kind) -> Option<Guarantee> {
    if source.kind() == kind {
        return Some(source.clone());
    }
    let free = Free::default();
    let mut direct = RULES.iter().filter(|rule| rule.leads(source.kind(), kind));
    let longer = || convert(source, kind, &free).ok().map(|found| found.result().clone());
    direct.find_map(|rule| rule.result(source, kind, &free)).or_else(longer)
}

/// Show that `goal` follows from `source`.
pub fn show(source: &Guarantee, goal: &Guarantee, free: &Free) -> Result<Derivation, Refusal> {
    let free = Free { period: goal.get(Parameter::Period).cloned(), stretch: None, ..free.clone() };
    let mut found = if covers(source, goal) {
        Derivation { source: source.clone(), steps: Vec::new() }
    } else if is_beyond(source, goal) {
        return Err(short_of(source, goal));
    } else {
        search(source, goal.kind(), &free, &|result| covers(result, goal))
            .ok_or_else(|| short_of(source, goal))?
    };
    if found.result() != goal {
        let step = Step {
            from: found.result().clone(),
            to: goal.clone(),
            rule: "less of the same",
            formula: goal.kind().form(),
            because: match goal.kind() {
                Psbe => "of PSBE s δ follows PSBE s' δ' for every s' ≤ s and δ' ≥ δ·s'/s".into(),
                Ressh => "the phase counts modulo the period".into(),
                _ => "the larger includes the smaller".into(),
            },
        };
        found.steps.push(step);
    }
    Ok(found)
}

/// Whether `goal` follows from `source`: what [`show`] shows, without the steps.
pub fn follows(source: &Guarantee, goal: &Guarantee) -> bool {
    includes(source, goal) || show(source, goal, &Free::default()).is_ok()
}

/// Whether it follows without any theorem: it is less of the same, or at least what the source is exactly.
pub fn includes(source: &Guarantee, goal: &Guarantee) -> bool {
    let is_weaker = || {
        let (have, want) = (source.values(), goal.values());
        (source.kind(), goal.kind()) == (Resbh, Resbs) && have[0] >= want[0] && have[1] == want[1]
    };
    covers(source, goal) || is_weaker()
}

/// It cannot follow: in the long run more is asked for than given, or the strongest of that form that follows is weaker. Saves a
/// search that fails.
fn is_beyond(source: &Guarantee, goal: &Guarantee) -> bool {
    if goal.share() > source.share() {
        return true;
    }
    if source.kind() == Resu {
        return false; // that depends on its child's deadlines
    }
    let parameter = match goal.kind() {
        Resbs | Rescs | Resps => Parameter::Amount,
        Psbe => Parameter::Error,
        _ => return false,
    };
    let mut wanted = goal.wanted();
    let place = goal.kind().parameters().iter().position(|other| *other == parameter);
    let Some((place, asked)) = place.zip(goal.get(parameter)) else { return false };
    wanted.values[place] = None;
    match best_number(source, &wanted) {
        Some(best) if parameter == Parameter::Amount => best < *asked,
        Some(best) => best > *asked,
        None => true,
    }
}

/// `goal` follows from `given`, of the same type, without any theorem. Exact for PSBE: s'·n − δ' ≤ max(0, s·n − δ) for
/// all n.
fn covers(given: &Guarantee, goal: &Guarantee) -> bool {
    if given.kind() != goal.kind() {
        return false;
    }
    let (have, want) = (given.values(), goal.values());
    match goal.kind() {
        Resu | Ps => have[0] >= want[0],
        Psbe => have[0] >= want[0] && &have[1] * &want[0] <= &want[1] * &have[0],
        Resbs | Rescs => have[0] >= want[0] && have[1] == want[1],
        Resps => have[0] >= want[0] && have[1] == want[1] && have[2] >= want[2],
        Ressh => {
            let apart = (&have[2] - &want[2]) / &want[1];
            have[..2] == want[..2] && apart.is_integer()
        }
        _ => given == goal,
    }
}

/// What is missing, in numbers.
fn short_of(source: &Guarantee, goal: &Guarantee) -> Refusal {
    if let Cell::Infeasible(refusal) = cell(source.kind(), goal.kind()) {
        return refusal;
    }
    let open = |parameter: Parameter| {
        let mut wanted = goal.wanted();
        let at = goal.kind().parameters().iter().position(|p| *p == parameter)?;
        wanted.values[at] = None;
        best_number(source, &wanted)
    };
    let refusal = |reason| Refusal::new("not enough", reason);
    let (share, rate) = (goal.share(), source.share());
    if share > rate && !is_soft(goal.kind()) {
        let (has, wants) = (show_share(&rate), show_share(&share));
        return refusal(format!(
            "{source} guarantees {has} of the CPU in the long run, and {goal} needs {wants}"
        ));
    }
    match goal.kind() {
        Psbe => match open(Parameter::Error) {
            Some(error) => refusal(format!(
                "with the share {} the error of {source} is {}, not {}",
                show_share(&share),
                noted_time(&error, true),
                show_time(&goal.values()[1])
            )),
            None => refusal(format!("{goal} does not follow from {source}")),
        },
        kind if kind.is_reservation() && is_soft(kind) => {
            let (amount, period) = (&goal.values()[0], show_time(&goal.values()[1]));
            match open(Parameter::Amount) {
                Some(best) if best >= *amount => refusal(format!(
                    "an overrun partition is nothing that {source} has: z must be 0 for a conversion to RESPS"
                )),
                best => {
                    let best = best.unwrap_or_else(|| whole(0));
                    let (has, missing) = (noted_time(&best, false), noted_time(&(amount - &best), true));
                    refusal(format!(
                        "of {source} follows at most {has} in {period}, {missing} less than {}",
                        show_time(amount)
                    ))
                }
            }
        }
        _ => refusal(format!("{goal} does not follow from {source}: a hard guarantee keeps its numbers")),
    }
}

/// Lines of a derivation, the last one about less of the same aside.
const STEPS_MAX: usize = 4;

/// The shortest derivation of a guarantee of type `kind` that is `good`; among equally short ones the first in the order
/// of [`RULES`], table before the rest.
fn search(
    source: &Guarantee,
    kind: Kind,
    free: &Free,
    good: &dyn Fn(&Guarantee) -> bool,
) -> Option<Derivation> {
    (1..=STEPS_MAX).find_map(|length| {
        let steps = extend(source, kind, free, good, length, &[source.kind()])?;
        Some(Derivation { source: source.clone(), steps })
    })
}

/// Exactly `length` steps from `source` to a good guarantee of type `kind`, over types not yet `seen`.
fn extend(
    source: &Guarantee,
    kind: Kind,
    free: &Free,
    good: &dyn Fn(&Guarantee) -> bool,
    length: usize,
    seen: &[Kind],
) -> Option<Vec<Step>> {
    if length == 1 {
        // The exception x = y is for numbers that somebody gave, not for those that were chosen on the way.
        let chosen = seen.len() > 1;
        let last = RULES.iter().filter(|rule| rule.leads(source.kind(), kind));
        let last = last.filter(|rule| !(chosen && rule.name == EXCEPTION));
        let mut steps = last.filter_map(|rule| rule.step(source, kind, free));
        return steps.find(|step| good(&step.to)).map(|step| vec![step]);
    }
    // Deadlines are named for one purpose: what they made is rewritten further only if the caller said which they are.
    if source.kind() == Resu && free.deadlines.is_none() {
        return None;
    }
    let inner = Free { period: None, stretch: None, deadlines: free.deadlines.clone() };
    let between = Kind::ALL.into_iter().filter(|middle| *middle != kind && !seen.contains(middle));
    between.into_iter().find_map(|middle| {
        let rules = RULES.iter().filter(|rule| !rule.beyond && rule.leads(source.kind(), middle));
        rules.filter_map(|rule| rule.step(source, middle, &inner)).find_map(|step| {
            let seen: Vec<_> = seen.iter().copied().chain([middle]).collect();
            let mut rest = extend(&step.to, kind, free, good, length - 1, &seen)?;
            rest.insert(0, step);
            Some(rest)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is refused at once would not be found by a search either.
    #[test]
    fn beyond_is_what_no_search_finds() {
        let mut state = 5u64;
        let mut draw = |bound: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let (mut beyond, mut found) = (0, 0);
        for _ in 0..4_000 {
            let mut some = || {
                let kind = Kind::ALL[draw(12) as usize];
                let (period, share) = (1 + draw(8), crate::number::ratio(1 + draw(8), 8));
                let values = match kind.parameters() {
                    [] => vec![],
                    [_] => vec![share],
                    [Parameter::Share, _] => vec![share, whole(draw(6))],
                    [_, _] => vec![whole(1 + draw(period)), whole(period)],
                    _ => vec![whole(1 + draw(period)), whole(period), whole(draw(2))],
                };
                Guarantee::new(kind, values).unwrap()
            };
            let (source, goal) = (some(), some());
            let free = Free { period: goal.get(Parameter::Period).cloned(), ..Free::default() };
            let searched = || search(&source, goal.kind(), &free, &|result| covers(result, &goal));
            if is_beyond(&source, &goal) {
                beyond += 1;
                assert!(!covers(&source, &goal) && searched().is_none(), "{source} {goal}");
            } else if covers(&source, &goal) || searched().is_some() {
                found += 1;
            }
        }
        assert!(beyond > 1_000 && found > 500, "{beyond} {found}");
    }
}
