//! Shares of a spread node on average: what its tasks get when they all want the CPU and move to where they get most.
//!
//! Tasks of weight w on CPUs of which each gives a part of its time, a task on one CPU at a time and on allowed ones only: the shares
//! are weighted max-min fair. All rise with their weights until the CPUs of some set are full with the tasks that may only be
//! there, or a task has a whole CPU. These have their share; the others rise on.
//!
//! Example: three equal tasks on two CPUs get 2/3 each. If one of them must stay on CPU 0, it still does.

use crate::share::{one, ratio, zero, Share};
use std::collections::BTreeMap;
use tierce_plan::Cpus;

/// Children of a spread node that ask for the same: CPUs where they may be, and weight; and their edges.
pub type Claims = BTreeMap<(Cpus, u64), Vec<usize>>;

/// Sets of CPUs, neither apart nor within each other, of which each union is looked at.
const SETS_MAX: usize = 10;

/// The share of each, by its edge; not known if they may run on too many different sets of CPUs.
pub fn shares(supplies: &[(u32, Share)], mut rising: Claims) -> Vec<(usize, Option<Share>)> {
    let Some(sets) = sets(&rising) else {
        return rising.into_values().flatten().map(|edge| (edge, None)).collect();
    };
    let room = |cpus: Cpus| {
        let here = supplies.iter().filter(|(cpu, _)| cpus.has(*cpu));
        here.fold(zero(), |sum, (_, supply)| sum + supply)
    };
    let mut sets: Vec<_> = sets.into_iter().map(|cpus| (cpus, room(cpus))).collect();
    let mut fixed = Vec::new();
    while let Some(most) = rising.keys().map(|(_, weight)| *weight).max() {
        let weight = |set: Cpus| {
            let within = rising.iter().filter(|((cpus, _), _)| cpus.are_within(set));
            within.map(|((_, weight), edges)| weight * edges.len() as u64).sum::<u64>()
        };
        let full: Vec<_> = sets
            .iter()
            .map(|(cpus, room)| {
                Some(weight(*cpus)).filter(|weight| *weight > 0).map(|weight| room * ratio(1, weight))
            })
            .collect();
        let level = full.iter().flatten().cloned().chain([ratio(1, most)]).min().unwrap_or_else(zero);
        let tight: Vec<_> =
            sets.iter().zip(&full).filter(|(_, full)| **full == Some(level.clone())).collect();
        let tight: Vec<Cpus> = tight.into_iter().map(|((cpus, _), _)| *cpus).collect();
        let mut others = Claims::new();
        for ((cpus, weight), edges) in rising {
            let share = &level * ratio(weight, 1);
            if share < one() && !tight.iter().any(|set| cpus.are_within(*set)) {
                others.insert((cpus, weight), edges);
                continue;
            }
            let all = &share * ratio(edges.len() as u64, 1);
            for (_, room) in sets.iter_mut().filter(|(set, _)| cpus.are_within(*set)) {
                *room = (&*room - &all).max(zero());
            }
            fixed.extend(edges.into_iter().map(|edge| (edge, Some(share.clone()))));
        }
        rising = others;
    }
    fixed
}

/// What each of several children of one node gets by its weight if it always wants the CPU, and the others ask for so much (`None`: for
/// everything): those that ask for less than their weights say leave the rest to the others.
pub fn of_one(supply: &Share, weights: &[u64], asks: Option<&[Share]>) -> Vec<Share> {
    let all: u64 = weights.iter().sum();
    let by_weight = |room: &Share, weight: u64, all: u64| room * ratio(weight, all.max(1));
    let Some(asks) = asks else {
        return weights.iter().map(|weight| by_weight(supply, *weight, all)).collect();
    };
    let mut order: Vec<usize> = (0..weights.len()).filter(|child| weights[*child] > 0).collect();
    order.sort_by_cached_key(|child| &asks[*child] * ratio(1, weights[*child]));
    let share = |child: usize| {
        let (mut room, mut left) = (supply.clone(), all);
        for other in order.iter().copied().filter(|other| *other != child) {
            if asks[other] >= by_weight(&room, weights[other], left) {
                break;
            }
            room -= &asks[other];
            left -= weights[other];
        }
        by_weight(&room, weights[child], left)
    };
    (0..weights.len()).map(share).collect()
}

/// Sets of CPUs that may be full before others. Where any two lie apart or one within the other these are the sets themselves, since
/// what may be in two that lie apart must be in one of them; else all their unions.
fn sets(claims: &Claims) -> Option<Vec<Cpus>> {
    let mut sets: Vec<Cpus> = claims.keys().map(|(cpus, _)| *cpus).collect();
    sets.dedup();
    let nested = |a: Cpus, b: Cpus| !a.meet(b) || a.are_within(b) || b.are_within(a);
    if sets.iter().all(|a| sets.iter().all(|b| nested(*a, *b))) {
        return Some(sets);
    }
    if sets.len() > SETS_MAX {
        return None;
    }
    let unions = (1..1u32 << sets.len()).map(|chosen| {
        let chosen = sets.iter().enumerate().filter(|(at, _)| chosen & 1 << at != 0);
        chosen.fold(Cpus::NONE, |union, (_, set)| union | *set)
    });
    let mut unions: Vec<Cpus> = unions.collect();
    unions.sort_unstable();
    unions.dedup();
    Some(unions)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shared(supplies: &[(u64, u64)], claims: &[(u64, u64)]) -> Vec<String> {
        let supplies: Vec<_> = (0..).zip(supplies.iter().map(|(of, in_)| ratio(*of, *in_))).collect();
        let mut all = Claims::new();
        for (edge, (cpus, weight)) in claims.iter().enumerate() {
            all.entry((Cpus::from(*cpus), *weight)).or_default().push(edge);
        }
        let mut shares = shares(&supplies, all);
        shares.sort_by_key(|(edge, _)| *edge);
        shares.into_iter().map(|(_, share)| share.map_or("?".into(), |share| share.to_string())).collect()
    }

    #[test]
    fn who_asks_for_less_leaves_the_rest() {
        let of_one = |weights: &[u64], asks: &[(u64, u64)]| -> Vec<String> {
            let asks: Vec<_> = asks.iter().map(|(of, in_)| ratio(*of, *in_)).collect();
            let shares = super::of_one(&one(), weights, Some(&asks));
            shares.into_iter().map(|share| share.to_string()).collect()
        };
        assert_eq!(of_one(&[1, 1], &[(1, 1), (1, 1)]), ["1/2", "1/2"]);
        assert_eq!(of_one(&[1, 1], &[(1, 5), (3, 5)]), ["1/2", "4/5"]);
        // By weight between those that ask for more; the first would take up to its part of what the second leaves.
        assert_eq!(of_one(&[1, 1, 2], &[(1, 2), (1, 10), (1, 2)]), ["2/5", "1/4", "3/5"]);
        assert_eq!(of_one(&[1, 1, 2], &[(1, 1), (1, 10), (1, 1)]), ["3/10", "1/4", "3/5"]);
        // Nothing is asked for, and by how many: none.
        assert_eq!(of_one(&[3, 1], &[(0, 1), (0, 1)]), ["1", "1"]);
        assert!(of_one(&[], &[]).is_empty());
    }

    #[test]
    fn all_rise_until_their_cpus_are_full_or_they_have_one() {
        let whole = [(1, 1), (1, 1)];
        assert_eq!(shared(&whole, &[(3, 100); 3]), ["2/3"; 3]);
        assert_eq!(shared(&whole, &[(3, 100)]), ["1"]);
        // By weight, up to a CPU.
        assert_eq!(shared(&whole, &[(3, 300), (3, 100), (3, 100)]), ["1", "1/2", "1/2"]);
        assert_eq!(shared(&whole, &[(3, 200), (3, 100), (3, 100), (3, 100)]), ["4/5", "2/5", "2/5", "2/5"]);
        // Who must stay shares its CPU only with who has nowhere better to go.
        assert_eq!(shared(&whole, &[(1, 100), (3, 100), (3, 100)]), ["2/3"; 3]);
        assert_eq!(shared(&whole, &[(1, 100), (1, 100), (1, 100), (3, 100)]), ["1/3", "1/3", "1/3", "1"]);
        // A part of a CPU.
        assert_eq!(shared(&[(1, 2), (1, 1)], &[(3, 100); 3]), ["1/2"; 3]);
        // Sets that overlap: CPUs 0 and 1 are full with three, CPU 2 has one more.
        let three = [(1, 1), (1, 1), (1, 1)];
        assert_eq!(shared(&three, &[(3, 1), (3, 1), (3, 1), (6, 1)]), ["2/3", "2/3", "2/3", "1"]);
        assert_eq!(shared(&three, &[(3, 1), (6, 1), (3, 1), (6, 1)]), ["3/4"; 4]);
        // Many sets, each within all CPUs; and too many that overlap.
        let many = [(1, 1); 64];
        let apart: Vec<_> = (0..64).map(|cpu| (1 << cpu, 1)).chain([(u64::MAX, 1); 64]).collect();
        assert_eq!(shared(&many, &apart), vec!["1/2"; 128]);
        let overlap: Vec<_> = (0..12).map(|cpu| (3 << cpu, 1)).collect();
        assert_eq!(shared(&many, &overlap), ["?"; 12]);
    }
}
