//! Conversions against schedules, by brute force: time is cut into slots of 1 ns, a pattern says which of them are given
//! and repeats itself for ever. What a pattern satisfies is counted, never derived.
//!
//! - Every conversion: a pattern that satisfies the left guarantee satisfies the right one.
//! - Every refused cell of Table 5.2: for whatever numbers on the right, a pattern of the left breaks them.
//! - Every bound: a little more than what was derived is broken by a pattern of the left.
//!
//! Not checked here: patterns that do not repeat, and gains between slots on the left (on the right every real phase is
//! tried, see [`some_phase`]).

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use std::collections::BTreeMap;
use tierce_guarantee::{
    best, cell, convert, ratio, weakest, whole, Cell, Exact, Free, Guarantee, Kind, Parameter, Wanted,
};
use Kind::{All, Null, Ps, Psbe, Resbh, Resbs, Resch, Rescs, Resnh, Resps, Ressh, Resu};

/// A pattern, with its sums.
struct Pattern {
    slots: Vec<bool>,
    sums: Vec<u64>,
    /// The least supply of windows of 0, 1, … up to the pattern's length, once somebody asks.
    least: std::cell::OnceCell<Vec<u64>>,
    /// How far apart the deadlines are that its child names, if it names any: at 0, apart, 2 apart, …
    deadlines: Option<usize>,
}

impl Pattern {
    fn new(slots: Vec<bool>) -> Self {
        let mut sums = vec![0];
        for slot in &slots {
            sums.push(sums[sums.len() - 1] + u64::from(*slot));
        }
        Self { slots, sums, least: Default::default(), deadlines: None }
    }

    fn of(length: usize, given: impl Fn(usize) -> bool) -> Self {
        Self::new((0..length).map(given).collect())
    }

    fn len(&self) -> usize {
        self.slots.len()
    }

    fn before(&self, time: usize) -> u64 {
        (time / self.len()) as u64 * self.sums[self.len()] + self.sums[time % self.len()]
    }

    fn supply(&self, begin: usize, length: usize) -> u64 {
        self.before(begin + length) - self.before(begin)
    }

    fn rate(&self) -> Exact {
        ratio(self.sums[self.len()], self.len() as u64)
    }

    /// The least and most of any window. Between whole begins the supply is linear, so whole ones are enough.
    fn windows(&self, length: usize) -> (u64, u64) {
        let supplies = || (0..self.len()).map(|begin| self.supply(begin, length));
        (supplies().min().unwrap(), supplies().max().unwrap())
    }

    fn least(&self) -> &[u64] {
        self.least.get_or_init(|| (0..=self.len()).map(|length| self.windows(length).0).collect())
    }

    /// Windows of `period` from `phase` on, until they repeat.
    fn periods(&self, phase: usize, period: usize) -> impl Iterator<Item = u64> + '_ {
        let count = self.len() / gcd(self.len(), period);
        (0..count).map(move |index| self.supply(phase + index * period, period))
    }

    /// By the definitions in the docs of [`Kind`].
    fn satisfies(&self, guarantee: &Guarantee) -> bool {
        let numbers = guarantee.amount_and_period();
        let hard = guarantee.kind().is_hard();
        match (guarantee.kind(), numbers) {
            (All, _) => self.slots.iter().all(|slot| *slot),
            (Null, _) => true,
            (Ps, _) => self.rate() >= guarantee.share(),
            // Whatever deadlines the child names; those of one slot are the hardest.
            (Resu, _) => match self.deadlines {
                None => self.slots.iter().all(|slot| *slot),
                Some(apart) => {
                    let wanted = guarantee.share() * whole(apart as u64);
                    self.periods(0, apart).all(|supply| whole(supply) >= wanted)
                }
            },
            (Psbe, _) => {
                let (share, error) = (guarantee.share(), guarantee.get(Parameter::Error).unwrap());
                let meets = |(length, least)| whole(least) >= &share * whole(length) - error;
                self.rate() >= share && (0..).zip(self.least().iter().copied()).all(meets)
            }
            (Resbs | Resps | Resbh, Some((amount, period))) => some_phase(self, amount, slots(period), hard),
            (Rescs | Resch, Some((amount, period))) => {
                let (least, most) = self.windows(slots(period));
                whole(least) >= *amount && (!hard || whole(most) == *amount)
            }
            (Resnh, Some((amount, period))) => {
                let period = slots(period);
                (0..period).any(|phase| self.is_block(phase, slots(amount), period))
            }
            (Ressh, Some((amount, period))) => {
                let phase = slots(guarantee.get(Parameter::Phase).unwrap());
                self.is_block(phase % slots(period), slots(amount), slots(period))
            }
            _ => unreachable!(),
        }
    }

    fn is_block(&self, phase: usize, amount: usize, period: usize) -> bool {
        let all = self.len() * period / gcd(self.len(), period);
        (0..all).all(|time| self.slots[time % self.len()] == ((time + period - phase) % period < amount))
    }
}

/// Some real phase is such that every period holds the amount. Between two whole phases the supply of a period goes
/// linearly from one value to the other, so each period allows an interval of phases there.
fn some_phase(pattern: &Pattern, amount: &Exact, period: usize, hard: bool) -> bool {
    (0..period).any(|phase| {
        let (mut low, mut high) = (whole(0), whole(1));
        for (here, next) in pattern.periods(phase, period).zip(pattern.periods(phase + 1, period)) {
            let (here, next) = (whole(here), whole(next));
            let rise = &next - &here;
            if rise == whole(0) {
                if here < *amount || hard && here != *amount {
                    return false;
                }
                continue;
            }
            let cross = (amount - &here) / &rise;
            if hard {
                (low, high) = (low.max(cross.clone()), high.min(cross));
            } else if rise > whole(0) {
                low = low.max(cross);
            } else {
                high = high.min(cross);
            }
        }
        low <= high
    })
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        gcd(b, a % b)
    }
}

fn slots(time: &Exact) -> usize {
    assert!(time.is_integer(), "{time}");
    usize::try_from(time.to_integer()).unwrap()
}

impl Draw {
    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

fn reservation(kind: Kind, amount: u64, period: usize) -> Guarantee {
    Guarantee::reservation(kind, whole(amount), whole(period as u64)).unwrap()
}

/// `amount` slots anywhere among `period`, at least; exactly if `hard`.
fn scattered(draw: &mut Draw, amount: usize, period: usize, hard: bool) -> Vec<bool> {
    let mut slots: Vec<bool> = match draw.below(4) {
        0 => (0..period).map(|at| at < amount).collect(),
        1 => (0..period).map(|at| at >= period - amount).collect(),
        _ => (0..period).map(|at| at < amount).collect(),
    };
    if draw.one_in(2) {
        for at in (1..period).rev() {
            slots.swap(at, draw.below(at + 1));
        }
    }
    if !hard && draw.one_in(3) {
        slots.iter_mut().for_each(|slot| *slot |= draw.one_in(4));
    }
    slots
}

/// A guarantee of that type and a pattern that satisfies it; by its construction, or measured.
fn drawn(draw: &mut Draw, kind: Kind) -> (Guarantee, Pattern) {
    let period = 2 + draw.below(9);
    let amount = 1 + draw.below(period);
    let periods = 1 + draw.below(7);
    let mut basic =
        |hard| -> Vec<bool> { (0..periods).flat_map(|_| scattered(draw, amount, period, hard)).collect() };
    let (guarantee, slots) = match kind {
        All => (Guarantee::all(), vec![true; period]),
        Null => (Guarantee::null(), basic(false)),
        Ps | Psbe | Rescs => {
            let slots = basic(false);
            let pattern = Pattern::new(slots.clone());
            let guarantee = match kind {
                Ps => Guarantee::ps(pattern.rate()).unwrap(),
                Rescs => {
                    let window = (1..).find(|window| pattern.windows(*window).0 > 0).unwrap() + draw.below(9);
                    reservation(Rescs, pattern.windows(window).0, window)
                }
                _ => {
                    let share = pattern.rate() * ratio(1 + draw.below(4) as u64, 4);
                    let behind =
                        (0..=slots.len()).map(|n| &share * whole(n as u64) - whole(pattern.windows(n).0));
                    Guarantee::psbe(share.clone(), behind.max().unwrap()).unwrap()
                }
            };
            (guarantee, slots)
        }
        Resch => {
            let slots = scattered(draw, amount, period, true);
            (reservation(Resch, amount as u64, period), slots)
        }
        Resnh | Ressh => {
            let phase = draw.below(period);
            let slots = (0..period).map(|at| (at + period - phase) % period < amount).collect();
            let numbers = [amount, period, phase].map(|number| whole(number as u64));
            let numbers = numbers[..kind.parameters().len()].to_vec();
            (Guarantee::new(kind, numbers).unwrap(), slots)
        }
        Resu => (Guarantee::resu(ratio(amount as u64, period as u64)).unwrap(), basic(false)),
        Resbh | Resbs | Resps => (reservation(kind, amount as u64, period), basic(kind == Resbh)),
    };
    let mut pattern = Pattern::new(slots);
    if kind == Resu {
        pattern.deadlines = Some(period);
    } else {
        pattern.slots.rotate_left(if kind == Ressh { 0 } else { draw.below(period) });
        pattern = Pattern::new(pattern.slots);
    }
    (guarantee, pattern)
}

/// Whatever the rules make of a guarantee holds in every pattern of it.
#[test]
fn what_follows_holds() {
    let mut draw = Draw::new(1);
    let mut checked: BTreeMap<(Kind, Kind), usize> = BTreeMap::new();
    for round in 0..600 {
        let (source, pattern) = drawn(&mut draw, Kind::ALL[round % 12]);
        assert!(pattern.satisfies(&source), "{source}: {:?}", pattern.slots);
        let deadlines = pattern.deadlines.map(|apart| whole(apart as u64));
        for kind in Kind::ALL {
            let period = Some(whole(1 + draw.below(25) as u64));
            let stretch = Some(whole(draw.below(5) as u64));
            let choices = [
                Free { deadlines: deadlines.clone(), ..Free::default() },
                Free { deadlines: deadlines.clone(), period: period.clone(), stretch: None },
                Free { deadlines: deadlines.clone(), period: None, stretch },
            ];
            let derivations = choices.iter().filter_map(|free| convert(&source, kind, free).ok());
            // Some numbers solved for: an amount, a period, a share, an error.
            let solved = (0..kind.parameters().len()).filter_map(|at| {
                let drawn = |parameter: &Parameter| match parameter {
                    Parameter::Share => Some(ratio(1 + draw.below(9) as u64, 10)),
                    Parameter::Period => period.clone(),
                    Parameter::Overrun | Parameter::Phase => Some(whole(0)),
                    _ => Some(whole(1 + draw.below(6) as u64)),
                };
                let mut values: Vec<_> = kind.parameters().iter().map(drawn).collect();
                values[at] = None;
                best(&source, &Wanted { kind, values }, &choices[0]).ok()
            });
            for derivation in derivations.chain(solved) {
                let result = derivation.result();
                let whole_slots = result.get(Parameter::Period).is_none_or(|period| period.is_integer());
                let named =
                    pattern.deadlines.is_none() || result.kind() != Resbs || derivation.steps.len() > 1;
                if whole_slots && (named || result.get(Parameter::Period) == deadlines.as_ref()) {
                    let text = || format!("{source} to {result}: {:?}", pattern.slots);
                    assert!(pattern.satisfies(result), "{}", text());
                    *checked.entry((source.kind(), kind)).or_default() += 1;
                }
            }
        }
    }
    for (from, to) in Kind::ALL.iter().flat_map(|from| Kind::ALL.map(|to| (*from, to))) {
        let feasible = matches!(cell(from, to), Cell::Feasible { .. });
        let tried = checked.get(&(from, to)).copied().unwrap_or(0);
        assert!(!feasible || tried >= 20, "{from} to {to} was tried {tried} times");
    }
    println!("{} conversions held", checked.values().sum::<usize>());
}

/// Patterns of a guarantee with amount 2 and period 5, share 2/5: the least, the most, the most apart.
fn patterns_of(kind: Kind) -> (Guarantee, Vec<Pattern>) {
    let early = |time: usize| time % 5 < 2;
    let late = |time: usize| time % 5 >= 3;
    let split = |time: usize| time % 5 == 0 || time % 5 == 2;
    let all = Pattern::of(1, |_| true);
    // One period early, then late ones: the longest gap, and the worst of any window.
    let apart = || Pattern::of(5 * 24, move |time| if time < 5 { early(time) } else { late(time) });
    let shifted = (0..5).map(|phase| Pattern::of(5, move |time| early(time + phase)));
    let least = [Pattern::of(5, early), Pattern::of(5, late), Pattern::of(5, split)];
    match kind {
        All => (Guarantee::all(), vec![all]),
        Null => (Guarantee::null(), vec![Pattern::of(1, |_| false)]),
        Ps => {
            let far = |length: usize| Pattern::of(5 * length, move |time| time >= 3 * length);
            (Guarantee::ps(ratio(2, 5)).unwrap(), vec![all, far(1), far(200)])
        }
        Psbe => {
            let mut found = vec![all, apart()];
            found.extend(least);
            (Guarantee::psbe(ratio(2, 5), ratio(12, 5)).unwrap(), found)
        }
        Resu => {
            let far = |apart: usize| {
                let mut pattern =
                    Pattern::of(5 * apart * 2, move |time| !(2 * apart..8 * apart).contains(&time));
                pattern.deadlines = Some(5 * apart);
                pattern
            };
            let mut every = all;
            every.deadlines = Some(1);
            (Guarantee::resu(ratio(2, 5)).unwrap(), vec![every, far(1), far(200)])
        }
        Ressh => {
            let numbers = [2, 5, 1].map(whole).to_vec();
            (Guarantee::new(Ressh, numbers).unwrap(), vec![Pattern::of(5, |time| early(time + 4))])
        }
        Resnh => (reservation(Resnh, 2, 5), shifted.collect()),
        Resch => {
            let mut found: Vec<_> = shifted.collect();
            found.extend(least);
            (reservation(Resch, 2, 5), found)
        }
        _ => {
            let mut found: Vec<_> = shifted.collect();
            found.extend(least);
            if kind != Rescs {
                found.push(apart());
            }
            if kind != Resbh {
                found.push(all);
            }
            (reservation(kind, 2, 5), found)
        }
    }
}

/// Guarantees of a type with many different numbers; no reservation of the whole period, that being ALL.
fn many_of(kind: Kind) -> Vec<Guarantee> {
    let shares = || (1..=10).map(|tenth| ratio(tenth, 10));
    let numbers =
        || (2..=15).flat_map(|period| (1..period).map(move |amount| (whole(amount), whole(period))));
    match kind {
        All => vec![Guarantee::all()],
        Null => vec![Guarantee::null()],
        Ps | Resu => shares().filter_map(|share| Guarantee::new(kind, vec![share])).collect(),
        Psbe => {
            shares().flat_map(|s| (0..40).filter_map(move |d| Guarantee::psbe(s.clone(), whole(d)))).collect()
        }
        Ressh => numbers()
            .flat_map(|(x, y)| {
                (0..5).filter_map(move |z| Guarantee::new(kind, vec![x.clone(), y.clone(), whole(z)]))
            })
            .collect(),
        _ => numbers().filter_map(|(amount, period)| Guarantee::reservation(kind, amount, period)).collect(),
    }
}

/// For every refused cell and whatever numbers on the right there is a pattern of the left that breaks them.
#[test]
fn what_is_refused_fails() {
    let mut refused = 0;
    for from in Kind::ALL {
        let (source, patterns) = patterns_of(from);
        for pattern in &patterns {
            assert!(pattern.satisfies(&source), "{source}: {:?}", pattern.slots);
        }
        for to in Kind::ALL {
            let Cell::Infeasible(_) = cell(from, to) else { continue };
            refused += 1;
            assert!(convert(&source, to, &Free::default()).is_err(), "{from} to {to}");
            for goal in many_of(to) {
                let broken = patterns.iter().any(|pattern| !pattern.satisfies(&goal));
                assert!(broken, "{source} to {goal} is refused, but no pattern breaks it");
            }
        }
    }
    assert_eq!(refused, 71);
}

/// What was solved for is the best there is: a little more, and a pattern of the source breaks it.
#[test]
fn bounds_are_tight() {
    let mut tried = 0;
    for from in [Resbh, Resbs, Resch, Rescs, Resps, Resnh] {
        let (source, patterns) = patterns_of(from);
        let breaks = |goal: Option<Guarantee>, text: &str| {
            let Some(goal) = goal else { return };
            let broken = patterns.iter().any(|pattern| !pattern.satisfies(&goal));
            assert!(broken, "{source} to {goal} ({text}) is broken by no pattern");
        };
        let solved = |wanted: &str| {
            let wanted = Wanted::parse(wanted).unwrap();
            best(&source, &wanted, &Free::default()).ok().map(|derivation| derivation.result().clone())
        };
        for period in 1..=30 {
            let amount =
                solved(&format!("RESCS ? {period}ns")).map_or(whole(0), |found| found.values()[0].clone());
            breaks(Guarantee::reservation(Rescs, amount + ratio(1, 9), whole(period)), "amount");
            tried += 1;
        }
        for amount in 1..=12 {
            let period = solved(&format!("RESCS {amount}ns ?")).unwrap().values()[1].clone();
            breaks(Guarantee::reservation(Rescs, whole(amount), period - whole(1)), "period");
            tried += 1;
        }
        for tenth in 1..=4 {
            let error = solved(&format!("PSBE 0.{tenth} ?")).unwrap().values()[1].clone();
            breaks(Guarantee::psbe(ratio(tenth, 10), error - ratio(1, 9)), "error");
            tried += 1;
        }
        breaks(Guarantee::ps(ratio(3, 7)), "share");
    }
    println!("{tried} bounds");
}

/// [`weakest`] finds a source from which the goal follows, and a little less is not enough.
#[test]
fn the_weakest_source_is_the_weakest() {
    let mut draw = Draw::new(2);
    let mut found = 0;
    for _ in 0..2_000 {
        let kinds = [Resbs, Rescs, Resps, Psbe, Ps, Resbh, Resch, Resnh];
        let (from, to) = (kinds[draw.below(8)], [Resbs, Rescs, Psbe, Ps][draw.below(4)]);
        let mut numbers = |kind: Kind| -> Vec<Option<Exact>> {
            let period = 2 + draw.below(30);
            let amount = 1 + draw.below(period);
            let numbers = kind.parameters().iter().map(|parameter| match parameter {
                Parameter::Amount => whole(amount as u64),
                Parameter::Period => whole(period as u64),
                Parameter::Share => ratio(amount as u64, period as u64),
                Parameter::Error => whole(draw.below(12) as u64),
                _ => whole(0),
            });
            numbers.map(Some).collect()
        };
        let mut open = Wanted { kind: from, values: numbers(from) };
        let goal = Wanted { kind: to, values: numbers(to) }.full().unwrap();
        let at = draw.below(from.parameters().len().min(2));
        open.values[at] = None;
        let free = Free::default();
        let Ok(derivation) = weakest(&open, &goal, &free) else { continue };
        assert_eq!(derivation.result(), &goal);
        let mut less = derivation.source.values().to_vec();
        let up = matches!(from.parameters()[at], Parameter::Period | Parameter::Error);
        less[at] = &less[at] * if up { ratio(1001, 1000) } else { ratio(999, 1000) };
        if less[at] == whole(0) {
            continue; // an error of 0 is already the largest
        }
        if let Some(less) = Guarantee::new(from, less) {
            let result = tierce_guarantee::show(&less, &goal, &free);
            assert!(result.is_err(), "{less} is weaker than {} and gives {goal}", derivation.source);
            found += 1;
        }
    }
    assert!(found > 500, "{found}");
}
