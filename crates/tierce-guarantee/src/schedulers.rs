//! What schedulers make of the guarantee that they receive (HLS, section 5.3.1): Table 5.1, and the numbers of those
//! whose numbers follow from more than admission.
//!
//! Example: start-time fair queuing over half a CPU, quantum 10 ms, six children of weights 5 and five times 1:
//!
//! ```
//! use tierce_guarantee::{schedulers, Guarantee, whole};
//! let supply = Guarantee::parse("PSBE 1/2 5ms").unwrap();
//! let weights: Vec<_> = [5, 1, 1, 1, 1, 1].map(whole).into();
//! let bound = schedulers::SfqBound::Paper;
//! let children = schedulers::sfq(&supply, &whole(10_000_000), &weights, bound).unwrap();
//! assert_eq!(children.guarantees[0].to_string(), "PSBE 1/4 75ms");
//! ```

use crate::convert::{convert, converted, Derivation, Free, Refusal, Step};
use crate::exact::Exact;
use crate::guarantee::{Guarantee, Kind, Parameter};
use crate::number::{show_about, show_share, show_time, whole};
use crate::supply::Supply;
use Kind::{All, Null, Ps, Psbe, Resbh, Resbs, Resch, Rescs, Resu};

/// A row of Table 5.1.
#[derive(Clone, Copy, Debug)]
pub struct Scheduler {
    /// Names by which it is found; the first is its own.
    pub names: &'static [&'static str],
    /// What it accepts and provides, in the order of the table; empty for join, whose rules are [`join`].
    pub conversions: &'static [Conversion],
    /// Where the table needs a word.
    pub note: &'static str,
}

/// `A ↦ B⁺`: given an A, it provides any number of Bs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The weakest type that is enough; `None`: any.
    pub accepts: Option<Kind>,
    /// It takes several of these, one per CPU.
    pub several: bool,
    /// What it provides.
    pub provides: Provides,
}

/// What a conversion provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Provides {
    /// Any number of each of these.
    Many(&'static [Kind]),
    /// One of this type.
    One(Kind),
    /// The guarantee itself to the first child, NULL to the others.
    Itself,
}

const fn many(accepts: Kind, provides: &'static [Kind]) -> Conversion {
    Conversion { accepts: Some(accepts), several: false, provides: Provides::Many(provides) }
}

const fn per_cpu(accepts: Kind) -> Conversion {
    Conversion { accepts: Some(accepts), several: true, provides: Provides::Many(&[Ps]) }
}

const fn row(
    names: &'static [&'static str],
    conversions: &'static [Conversion],
    note: &'static str,
) -> Scheduler {
    Scheduler { names, conversions, note }
}

const BOUNDED: &[Conversion] =
    &[many(Ps, &[Ps]), many(Psbe, &[Psbe]), many(Resu, &[Psbe]), many(Resch, &[Psbe])];
const UNBOUNDED: &[Conversion] = &[many(Ps, &[Ps]), many(Resu, &[Ps]), many(Resch, &[Ps])];
const HARD: &[Conversion] = &[many(All, &[Resbh]), many(Resu, &[Resbh])];
const NOTHING: &[Conversion] = &[many(Null, &[Null])];

/// The rows of Table 5.1. Any guarantee that can be converted into an acceptable one is acceptable.
pub const SCHEDULERS: [Scheduler; 21] = [
    row(
        &["fixed-priority"],
        &[Conversion { accepts: None, several: false, provides: Provides::Itself }],
        "one child per priority, preemptive; all but the first get NULL",
    ),
    row(&["join"], &[], "any parent's guarantee made soft; sums where they are sound"),
    row(
        &["limit"],
        &[Conversion { accepts: Some(Resbs), several: false, provides: Provides::One(Resbh) }],
        "its periods are those of the reservation above it",
    ),
    row(&["ps"], BOUNDED, "HLS: start-time fair queuing with warp; bounded while every warp is 0"),
    row(&["rez"], HARD, ""),
    row(&["time-sharing", "ts"], NOTHING, ""),
    row(&["bss-i", "pshed"], &[many(All, &[Resu]), many(Resu, &[Resu])], ""),
    row(&["bvt"], UNBOUNDED, "warp keeps the error from being bounded"),
    row(&["cbs"], HARD, "in its hard form; the original recharges at once and provides RESBS"),
    row(&["eevdf"], &[many(All, &[Psbe]), many(Resu, &[Psbe])], "the error is one quantum"),
    row(&["linux"], NOTHING, ""),
    row(&["lottery"], UNBOUNDED, ""),
    row(
        &["resource-kernel"],
        &[many(All, &[Resbs, Resbh]), many(Resu, &[Resbs, Resbh])],
        "needs an inner notion of deadlines for the second",
    ),
    row(&["rialto", "rialto-nt"], &[many(All, &[Rescs]), many(Resu, &[Rescs])], ""),
    row(&["sfq"], BOUNDED, "equation 5.2"),
    row(&["sfs"], &[per_cpu(Ps), per_cpu(Resu), per_cpu(Resch)], "several CPUs; the error is not bounded"),
    row(&["smart"], NOTHING, ""),
    row(&["spring"], HARD, ""),
    row(&["stride"], UNBOUNDED, ""),
    row(
        &["tbs"],
        &[many(All, &[Resbs]), many(Resu, &[Resbs])],
        "the paper's RESBH for RESU is a slip: it gives slack away, so it is soft",
    ),
    row(&["windows-2000"], NOTHING, ""),
];

impl std::fmt::Display for Conversion {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let accepts = self.accepts.map_or("any", Kind::name);
        let several = if self.several { "+" } else { "" };
        write!(f, "{accepts}{several} -> ")?;
        match self.provides {
            Provides::Many([kind]) => write!(f, "{kind}+"),
            Provides::Many(kinds) => {
                let kinds: Vec<_> = kinds.iter().map(|kind| format!("{kind}+")).collect();
                write!(f, "({})", kinds.join(", "))
            }
            Provides::One(kind) => write!(f, "{kind}"),
            Provides::Itself => write!(f, "({accepts}, NULL+)"),
        }
    }
}

/// By one of its names.
pub fn by_name(name: &str) -> Option<&'static Scheduler> {
    SCHEDULERS.iter().find(|scheduler| scheduler.names.contains(&name))
}

/// A conversion of a scheduler that can be used with what it is given.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// Which.
    pub conversion: &'static Conversion,
    /// From what is given to what is accepted.
    pub derivation: Derivation,
}

impl Scheduler {
    /// Its own name.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }

    /// The conversions that are possible with `supply`, in the order of the table; or why each is not. A proportional
    /// share scheduler takes a continuous reservation for more than its share only if that has a period of one `quantum`
    /// (Theorem 5.1).
    pub fn accept(&self, supply: &Guarantee, quantum: Option<&Exact>) -> Result<Vec<Accepted>, Vec<Refusal>> {
        let mut accepted = Vec::new();
        let mut refused = Vec::new();
        for conversion in self.conversions {
            let wanted = conversion.accepts.unwrap_or(supply.kind());
            let derived = if matches!(conversion.provides, Provides::Many([Psbe | Ps])) && wanted == Resch {
                theorem_5_1(supply, quantum)
            } else {
                convert(supply, wanted, &Free::default())
            };
            match derived {
                Ok(derivation) => accepted.push(Accepted { conversion, derivation }),
                Err(refusal) => refused.push(refusal),
            }
        }
        if accepted.is_empty() {
            return Err(refused);
        }
        Ok(accepted)
    }
}

/// A continuous reservation serves a proportional share scheduler quantum by quantum if its period is the quantum.
fn theorem_5_1(supply: &Guarantee, quantum: Option<&Exact>) -> Result<Derivation, Refusal> {
    let derivation = convert(supply, Resch, &Free::default())?;
    let period = derivation.result().get(Parameter::Period);
    if quantum.is_some() && period == quantum {
        return Ok(derivation);
    }
    let of = quantum.map_or("the scheduler's quantum".into(), |quantum| {
        format!("the scheduler's quantum, {}", show_time(quantum))
    });
    let reason = format!("the period of {} must be {of}", derivation.result());
    Err(Refusal::new("Theorem 5.1", reason))
}

/// Which error bound of start-time fair queuing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SfqBound {
    /// Equation 5.2 as printed: δ' = w·Tq/s + w·δ/s + q. Sound, but too large: it divides by s twice, where the bound
    /// that it simplifies has absolute rates.
    Paper,
    /// δ' = w(Tq + δ) + q, from Goyal et al. with rates r = s·w.
    Tight,
}

impl SfqBound {
    /// As derivations name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "equation 5.2",
            Self::Tight => "equation 5.2, tight form",
        }
    }

    fn formula(self) -> &'static str {
        match self {
            Self::Paper => "PSBE s·w (w·Tq/s + w·δ/s + q)",
            Self::Tight => "PSBE s·w (w(Tq + δ) + q)",
        }
    }

    fn error(self, weight: &Exact, all_quanta: &Exact, supply: &Guarantee) -> Exact {
        let behind = weight * (all_quanta + &supply.values()[1]);
        match self {
            Self::Paper => behind / supply.share(),
            Self::Tight => behind,
        }
    }
}

/// What the children of a scheduler get.
#[derive(Clone, Debug)]
pub struct Children {
    /// From the supply to what the scheduler accepts.
    pub accepted: Derivation,
    /// One per child, in order.
    pub guarantees: Vec<Guarantee>,
    /// By which rule, with its formula.
    pub rule: &'static str,
    /// The rule's formula.
    pub formula: &'static str,
}

impl Children {
    /// The derivation of one child's guarantee.
    pub fn derivation(&self, child: usize) -> Derivation {
        let mut derivation = self.accepted.clone();
        derivation.steps.push(Step {
            from: derivation.result().clone(),
            to: self.guarantees[child].clone(),
            rule: self.rule,
            formula: self.formula.to_string(),
            because: "the scheduler's own conversion".into(),
        });
        derivation
    }
}

/// Fractions of the whole for weights, which are above 0.
fn fractions(weights: &[Exact]) -> Result<Vec<Exact>, Refusal> {
    if weights.is_empty() || weights.iter().any(|weight| *weight <= whole(0)) {
        return Err(Refusal::new("weights_are_positive", "every child has a weight above 0"));
    }
    let sum: Exact = weights.iter().sum();
    Ok(weights.iter().map(|weight| weight / &sum).collect())
}

/// Start-time fair queuing with one quantum for all: PSBE where the supply can be made one, otherwise PS.
pub fn sfq(
    supply: &Guarantee,
    quantum: &Exact,
    weights: &[Exact],
    bound: SfqBound,
) -> Result<Children, Refusal> {
    let all_quanta = quantum * whole(weights.len() as u64);
    let error = |weight: &Exact, given: &Guarantee| bound.error(weight, &all_quanta, given) + quantum;
    by_weight(supply, quantum, weights, (bound.name(), bound.formula()), error)
}

/// Earliest eligible virtual deadline first by weights, of whatever can be made PSBE, in every window: the child may have been
/// served a quantum ahead, less its own share of it, when the window begins, and be a quantum behind when it ends. (The
/// error of one quantum in Table 5.1 counts from a moment at which nothing is owed.)
pub fn eevdf_by_weight(supply: &Guarantee, quantum: &Exact, weights: &[Exact]) -> Result<Children, Refusal> {
    let error =
        |weight: &Exact, given: &Guarantee| weight * &given.values()[1] + quantum * (whole(2) - weight);
    by_weight(supply, quantum, weights, ("EEVDF in every window", "PSBE s·w (w·δ + q(2 − w))"), error)
}

/// PSBE with the error of a rule where the supply can be made one, otherwise PS.
fn by_weight(
    supply: &Guarantee,
    quantum: &Exact,
    weights: &[Exact],
    (rule, formula): (&'static str, &'static str),
    error: impl Fn(&Exact, &Guarantee) -> Exact,
) -> Result<Children, Refusal> {
    if *quantum <= whole(0) {
        return Err(Refusal::new("quantum_is_positive", "a quantum is a time above 0"));
    }
    let fractions = fractions(weights)?;
    let quanta_are_deadlines = Free { deadlines: Some(quantum.clone()), ..Free::default() };
    if let Ok(accepted) = convert(supply, Psbe, &quanta_are_deadlines) {
        let given = accepted.result();
        let child = |weight| Guarantee::psbe(given.share() * weight, error(weight, given));
        let guarantees = fractions.iter().filter_map(child).collect();
        return Ok(Children { guarantees, rule, formula, accepted });
    }
    let accepted = convert(supply, Ps, &Free::default())?;
    let share = accepted.result().share();
    let guarantees = fractions.iter().filter_map(|weight| Guarantee::ps(&share * weight)).collect();
    Ok(Children { guarantees, rule: "PS -> PS+", formula: "PS s·w", accepted })
}

/// Earliest eligible virtual deadline first: the error is one quantum. Under a uniformly slower processor r of which each
/// quantum's end is a deadline (Theorem 5.1), shares and amounts count in its domain; a window that begins within a
/// quantum may have to wait for 2(1 − r) of one (Theorem 5.5), which the child feels with its share.
pub fn eevdf(supply: &Guarantee, quantum: &Exact, shares: &[Exact]) -> Result<Children, Refusal> {
    if *quantum <= whole(0) {
        return Err(Refusal::new("quantum_is_positive", "a quantum is a time above 0"));
    }
    let sum: Exact = shares.iter().sum();
    if shares.is_empty() || shares.iter().any(|share| *share <= whole(0)) || sum > whole(1) {
        let reason = format!("shares are above 0 and together at most 1, these are {}", show_share(&sum));
        return Err(Refusal::new("shares_fit", reason));
    }
    let accepted = convert(supply, Resu, &Free::default())?;
    let rate = accepted.result().share();
    let child = |share| {
        let late = (whole(1) - &rate) * whole(2) * share;
        Guarantee::psbe(&rate * share, &rate * quantum * (late + whole(1)))
    };
    let guarantees = shares.iter().filter_map(child).collect();
    let formula = "PSBE r·s r·q(1 + 2s(1 − r)), r = 1 for ALL";
    Ok(Children { guarantees, rule: "EEVDF", formula, accepted })
}

/// What a guarantee counted in the time of a uniformly slower processor is on the real one: amounts and shares times r.
/// Of RESU 1/2, RESBS 10 20 is RESBS 5 20. `None` for what such a processor is not known to provide.
pub fn of_slower(rate: &Exact, inner: &Guarantee) -> Option<Guarantee> {
    let scaled = |parameter: Parameter| matches!(parameter, Parameter::Amount | Parameter::Share);
    match inner.kind() {
        Kind::Resbh | Kind::Resbs | Kind::Rescs | Kind::Resu | Kind::Ps => {
            let values = inner.kind().parameters().iter().zip(inner.values());
            let values = values
                .map(|(parameter, value)| if scaled(*parameter) { value * rate } else { value.clone() });
            Guarantee::new(inner.kind(), values.collect())
        }
        Kind::Null => Some(Guarantee::null()),
        _ => None,
    }
}

/// How parents of a join stand to each other.
#[derive(Clone, Copy, Debug, Default)]
pub struct Joining {
    /// They are on different CPUs: at any time only one of them can be used.
    pub several_cpus: bool,
    /// The periods of basic reservations are known to begin together.
    pub in_phase: bool,
}

/// What the child of a join may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The guarantee.
    pub guarantee: Guarantee,
    /// By which rule.
    pub rule: &'static str,
}

/// Everything that the child of a join gets (5.3.1.2, corrected): each parent's guarantee made soft, and on one CPU the
/// sums that are sound. The paper's sum of RESBS 2 30 and RESBS 3 30 is sound only if their periods begin together: with
/// phases 0 and 15 a window of 30 may hold just 2.
pub fn join(parents: &[Guarantee], how: Joining) -> Result<Vec<Joined>, Refusal> {
    let mut found: Vec<_> = parents
        .iter()
        .map(|parent| Joined { guarantee: softened(parent), rule: "one of the parents, made soft" })
        .collect();
    if how.several_cpus || parents.len() < 2 {
        return Ok(found);
    }
    let all_of = |kind: Kind| -> Vec<Guarantee> {
        parents.iter().filter_map(|parent| converted(parent, kind)).collect()
    };
    let mut add = |summands: Vec<Guarantee>, rule: &'static str| -> Result<(), Refusal> {
        if summands.len() < 2 {
            return Ok(());
        }
        let kind = summands[0].kind();
        let sum = |at: usize| summands.iter().map(|guarantee| &guarantee.values()[at]).sum::<Exact>();
        let values: Vec<_> = match kind {
            Psbe => vec![sum(0), sum(1)],
            Ps => vec![sum(0)],
            _ => vec![sum(0), summands[0].values()[1].clone()],
        };
        let share: Exact = summands.iter().map(Guarantee::share).sum();
        let guarantee = Guarantee::new(kind, values).ok_or_else(|| {
            let reason =
                format!("the parents promise {} of one CPU, which no schedule can hold", show_about(&share));
            Refusal::new("more than one CPU", reason)
        })?;
        found.push(Joined { guarantee, rule });
        Ok(())
    };
    add(all_of(Ps), "sum of PS: shares add")?;
    add(all_of(Psbe), "sum of PSBE: shares add, errors add")?;
    let continuous =
        parents.iter().filter(|parent| parent.kind().is_reservation() && !parent.kind().is_basic());
    let reservations = parents.iter().filter(|parent| parent.kind().is_reservation());
    add(equal_periods(continuous, Rescs), "sum of RESCS of equal period: every window holds both")?;
    if how.in_phase {
        add(equal_periods(reservations, Resbs), "sum of RESBS of equal period and phase")?;
    }
    Ok(found)
}

/// Each as a guarantee of type `kind` with its own numbers, if they have the same period.
fn equal_periods<'g>(parents: impl Iterator<Item = &'g Guarantee>, kind: Kind) -> Vec<Guarantee> {
    let numbers = parents.filter_map(Guarantee::amount_and_period);
    let same: Vec<_> = numbers
        .filter_map(|(amount, period)| Guarantee::reservation(kind, amount.clone(), period.clone()))
        .collect();
    let equal = same.windows(2).all(|pair| pair[0].values()[1] == pair[1].values()[1]);
    if equal {
        same
    } else {
        Vec::new()
    }
}

/// The least that the parents of a join on one CPU supply together within a window, whatever their periods and phases:
/// RESCS of that amount for any window.
pub fn joined_supply(parents: &[Guarantee], window: &Exact) -> Option<Guarantee> {
    let amount = parents.iter().map(|parent| Supply::of(parent).at(window)).sum();
    Guarantee::reservation(Rescs, amount, window.clone())
}

/// The corresponding soft guarantee: a join may give more.
fn softened(parent: &Guarantee) -> Guarantee {
    let soft = match parent.kind() {
        Resbh => Resbs,
        Resch | Kind::Resnh | Kind::Ressh => Rescs,
        _ => return parent.clone(),
    };
    let numbers = parent.amount_and_period();
    let softened =
        numbers.and_then(|(amount, period)| Guarantee::reservation(soft, amount.clone(), period.clone()));
    softened.unwrap_or_else(|| parent.clone())
}

/// A limit scheduler: RESBS x y (or what can be made one) to RESBH x y. Its periods have to be those of the reservation
/// above it; a limiter with periods of its own would throttle in the middle of theirs.
pub fn limit(supply: &Guarantee) -> Result<Derivation, Refusal> {
    let mut derivation = convert(supply, Resbs, &Free::default())?;
    let given = derivation.result().clone();
    if let Some((amount, period)) = given.amount_and_period() {
        if let Some(hard) = Guarantee::reservation(Resbh, amount.clone(), period.clone()) {
            derivation.steps.push(Step {
                from: given.clone(),
                to: hard,
                rule: "limit",
                formula: "RESBH x y".into(),
                because: "the scheduler stops its child at x in every period".into(),
            });
        }
    }
    Ok(derivation)
}
