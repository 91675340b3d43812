//! The rules: what a guarantee may be rewritten to, with numbers and source.

use crate::exact::Exact;
use crate::guarantee::{Guarantee, Kind, Parameter};
use crate::number::whole;
use crate::supply::Supply;
use Kind::{All, Null, Ps, Psbe, Resbh, Resbs, Resch, Rescs, Resnh, Resps, Ressh, Resu};

/// Numbers that a theorem leaves to the caller.
#[derive(Clone, Debug, Default)]
pub struct Free {
    /// y of the result.
    pub period: Option<Exact>,
    /// c of Theorem 5.2: how much longer than 2y − x the new period is.
    pub stretch: Option<Exact>,
    /// Distance of the deadlines that the child of a uniformly slower processor names.
    pub deadlines: Option<Exact>,
}

/// One way to rewrite a guarantee.
pub struct Rule {
    /// As derivations name it.
    pub name: &'static str,
    pub(super) from: &'static [Kind],
    pub(super) to: &'static [Kind],
    /// Numbers of the result, without the 0 of a RESPS.
    pub(super) gives: &'static str,
    /// What the caller may choose.
    pub(super) free: &'static str,
    /// Why it is so, in one line.
    pub because: &'static str,
    /// Not in Table 5.2 but sound: it takes numbers into account that the table does not look at.
    pub(super) beyond: bool,
    apply: fn(&Guarantee, Kind, &Free) -> Option<Guarantee>,
}

/// A line of a derivation.
#[derive(Clone, Debug)]
pub struct Step {
    /// What is converted.
    pub from: Guarantee,
    /// Into what.
    pub to: Guarantee,
    /// Theorem or rule.
    pub rule: &'static str,
    /// Its formula: "PSBE x/y (x/y)(y − x)".
    pub formula: String,
    /// Why it is so, and what was chosen.
    pub because: String,
}

impl Rule {
    pub(super) fn leads(&self, from: Kind, to: Kind) -> bool {
        self.from.contains(&from) && self.to.contains(&to)
    }

    /// "RESCS x (2y − x + c)".
    pub(super) fn formula(&self, to: Kind) -> String {
        let gap = if self.gives.is_empty() { "" } else { " " };
        let overrun = if to == Resps { " 0" } else { "" };
        format!("{to}{gap}{}{overrun}", self.gives)
    }

    /// What follows.
    pub(super) fn result(&self, source: &Guarantee, to: Kind, free: &Free) -> Option<Guarantee> {
        (self.apply)(source, to, free)
    }

    pub(super) fn step(&self, source: &Guarantee, to: Kind, free: &Free) -> Option<Step> {
        let result = (self.apply)(source, to, free)?;
        let chosen = if self.free.is_empty() { String::new() } else { format!("; free: {}", self.free) };
        let because = format!("{}{chosen}", self.because);
        let formula = self.formula(to);
        Some(Step { from: source.clone(), to: result, rule: self.name, formula, because })
    }
}

pub const RESERVATIONS: &[Kind] = &[Resbh, Resbs, Resch, Rescs, Resps, Resnh, Ressh];
pub const BASIC: &[Kind] = &[Resbh, Resbs, Resps];
pub const CONTINUOUS: &[Kind] = &[Resch, Rescs, Resnh, Ressh];
pub const SOFT: &[Kind] = &[Resbs, Rescs, Resps];
pub const HARD: &[Kind] = &[Resbh, Resch, Resnh, Ressh];

/// The rule for x = y.
pub const EXCEPTION: &str = "Theorem 5.3";

/// A period where all are as good: nobody asked for another.
pub const PERIOD_NS: u64 = 10_000_000;

/// The same amount and period, promised of less.
const fn weaker(from: &'static [Kind], to: &'static [Kind], because: &'static str) -> Rule {
    Rule { name: "trivial", from, to, gives: "x y", free: "", because, beyond: false, apply: same_numbers }
}

fn same_numbers(source: &Guarantee, to: Kind, free: &Free) -> Option<Guarantee> {
    let (amount, period) = source.amount_and_period()?;
    let stays = free.period.as_ref().is_none_or(|wanted| wanted == period);
    stays.then(|| Guarantee::reservation(to, amount.clone(), period.clone()))?
}

const fn periods_in_a_row(from: &'static [Kind], to: &'static [Kind]) -> Rule {
    Rule {
        name: "whole periods",
        from,
        to,
        gives: "nx ny",
        free: "any whole n",
        because: "n periods in a row are a period n times as long",
        beyond: true,
        apply: whole_periods,
    }
}

fn whole_periods(source: &Guarantee, to: Kind, free: &Free) -> Option<Guarantee> {
    let (amount, period) = source.amount_and_period()?;
    let times = free.period.clone()? / period;
    let fits = times.is_integer() && times >= whole(1);
    fits.then(|| Guarantee::reservation(to, amount * &times, period * times))?
}

pub fn is_soft(kind: Kind) -> bool {
    SOFT.contains(&kind)
}

/// Every rule. Of two that lead from one type to another, the first comes first in derivations.
pub const RULES: &[Rule] = &[
    Rule {
        name: "trivial",
        from: &Kind::ALL,
        to: &[Null],
        gives: "",
        free: "",
        because: "nothing is promised",
        beyond: false,
        apply: |_, _, _| Some(Guarantee::null()),
    },
    Rule {
        name: "trivial",
        from: &[All],
        to: &[Resu, Ps],
        gives: "1",
        free: "",
        because: "every instant is given, so all of any interval",
        beyond: false,
        apply: |_, to, _| Guarantee::new(to, vec![whole(1)]),
    },
    Rule {
        name: "trivial",
        from: &[All],
        to: SOFT,
        gives: "y y",
        free: "any y, and any amount up to it",
        because: "every instant is given, so all of any period",
        beyond: false,
        apply: |_, to, free| {
            let period = free.period.clone().unwrap_or(whole(PERIOD_NS));
            Guarantee::reservation(to, period.clone(), period)
        },
    },
    Rule {
        name: "trivial",
        from: &[All],
        to: &[Psbe],
        gives: "1 0",
        free: "",
        because: "every instant is given: nothing is ever behind",
        beyond: false,
        apply: |_, _, _| Guarantee::psbe(whole(1), whole(0)),
    },
    Rule {
        name: "trivial",
        from: &[Resu],
        to: &[Resbs],
        gives: "(s·y) y",
        free: "any y",
        because: "the child names the ends of its periods as deadlines",
        beyond: false,
        apply: |source, to, free| {
            let period = free.deadlines.clone().or(free.period.clone()).unwrap_or(whole(PERIOD_NS));
            Guarantee::reservation(to, source.share() * &period, period)
        },
    },
    Rule {
        name: "trivial",
        from: &[Resu, Psbe],
        to: &[Ps],
        gives: "s",
        free: "",
        because: "the share is what arrives in the long run",
        beyond: false,
        apply: |source, _, _| Guarantee::ps(source.share()),
    },
    weaker(&[Resbh], &[Resbs], "exactly x is at least x"),
    weaker(&[Resch], &[Rescs], "exactly x is at least x"),
    weaker(&[Resch], &[Resbh, Resbs], "what holds for every window of length y holds for the periods"),
    weaker(&[Rescs], &[Resbs], "what holds for every window of length y holds for the periods"),
    weaker(
        &[Resnh, Ressh],
        &[Resbh, Resbs, Resch, Rescs],
        "a block at the same place in every period leaves exactly x in any window of length y",
    ),
    weaker(&[Ressh], &[Resnh], "a block at a known time is a block at some time"),
    weaker(&[Resps], &[Resbs], "the overrun partition is forgotten"),
    weaker(
        &[Resbh, Resbs, Resch, Rescs, Resnh, Ressh],
        &[Resps],
        "the overrun partition is not promised: 0 of it will do",
    ),
    Rule {
        name: "Theorem 5.2",
        from: BASIC,
        to: &[Rescs],
        gives: "x (2y − x + c)",
        free: "any c ≥ 0",
        because: "any window of 2y − x or more holds x (Lemma 5.1)",
        beyond: false,
        apply: |source, to, free| {
            let (amount, period) = source.amount_and_period()?;
            let shortest = period * whole(2) - amount;
            let period = match (&free.period, &free.stretch) {
                (Some(period), _) => period.clone(),
                (None, Some(stretch)) => &shortest + stretch,
                (None, None) => shortest.clone(),
            };
            (period >= shortest).then(|| Guarantee::reservation(to, amount.clone(), period))?
        },
    },
    Rule {
        name: "Theorem 5.4",
        from: CONTINUOUS,
        to: &[Psbe],
        gives: "x/y (x/y)(y − x)",
        free: "",
        because: "the longest gap is y − x (Lemma 5.2); at the rate x/y that is how far it falls behind",
        beyond: false,
        apply: |source, _, _| {
            let (amount, period) = source.amount_and_period()?;
            Guarantee::psbe(source.share(), source.share() * (period - amount))
        },
    },
    Rule {
        name: "Theorem 5.5",
        from: BASIC,
        to: &[Psbe],
        gives: "x/y 2(x/y)(y − x)",
        free: "",
        because: "the longest gap is 2(y − x) (Lemma 5.3); at the rate x/y that is how far it falls behind",
        beyond: false,
        apply: |source, _, _| {
            let (amount, period) = source.amount_and_period()?;
            Guarantee::psbe(source.share(), source.share() * (period - amount) * whole(2))
        },
    },
    Rule {
        name: "Theorem 5.6",
        from: RESERVATIONS,
        to: &[Ps],
        gives: "x/y",
        free: "",
        because: "the share is what arrives in the long run",
        beyond: false,
        apply: |source, _, _| Guarantee::ps(source.share()),
    },
    Rule {
        name: "Theorem 5.7",
        from: &[Psbe],
        to: SOFT,
        gives: "(y·s − δ) y",
        free: "any y > δ/s",
        because: "that is what PSBE promises of a window of length y",
        beyond: false,
        apply: |source, to, free| {
            let (share, error) = (source.get(Parameter::Share)?, source.get(Parameter::Error)?);
            let period = free.period.clone().unwrap_or_else(|| {
                let twice = error / share * whole(2);
                if twice > whole(0) {
                    twice
                } else {
                    whole(PERIOD_NS)
                }
            });
            Guarantee::reservation(to, &period * share - error, period)
        },
    },
    periods_in_a_row(BASIC, &[Resbs, Resps]),
    periods_in_a_row(&[Resbh], &[Resbh]),
    periods_in_a_row(&[Resch], &[Resch, Resbh]),
    Rule {
        name: "worst-case supply",
        from: RESERVATIONS,
        to: SOFT,
        gives: "sbf(y') y'",
        free: "any y'",
        because:
            "sbf(y') is the least that any window of length y' holds (Lemmas 5.1 to 5.3 for every length)",
        beyond: true,
        apply: |source, to, free| {
            let period = free.period.clone()?;
            Guarantee::reservation(to, Supply::of(source).at(&period), period)
        },
    },
    Rule {
        name: EXCEPTION,
        from: &Kind::ALL,
        to: HARD,
        gives: "y y",
        free: "any y",
        because: "the exception x = y: what gets every instant can get neither less nor more",
        beyond: true,
        apply: |source, to, free| {
            let given = source.amount_and_period().map(|(_, period)| period.clone());
            let period = free.period.clone().or(given)?;
            source.is_whole_cpu().then(|| Guarantee::reservation(to, period.clone(), period))?
        },
    },
    Rule {
        name: EXCEPTION,
        from: &[Resbh, Resbs, Resch, Rescs, Resps, Resnh, Ressh, Psbe],
        to: &[All],
        gives: "",
        free: "",
        because: "the exception x = y: every instant is given",
        beyond: true,
        apply: |source, _, _| source.is_whole_cpu().then(Guarantee::all),
    },
];
