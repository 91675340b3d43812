//! `slots` on a whole CPU gives each its reserve, always at the same place of the slot.

use crate::bounds::leftover_supply::Taken;
use crate::demand::uncounted_threads::is_live;
use crate::laws::node::{known, Node, COSTS_TAKE_ALL};
use crate::laws::policy::{Laws, Rated, Takes};
use crate::share::{self, ratio, Share};
use crate::verdict::{Given, NodeVerdict, Origin, Promise};
use tierce_guarantee::{whole, Guarantee, Kind};
use tierce_plan::policies::slots::Reserve;
use tierce_plan::{show_time, Plan, Shape};

/// Reserves in a timeslot.
pub struct Slots;

impl Laws for Slots {
    fn supply(&self, node: &Node, _: &NodeVerdict) -> Result<Vec<Given>, String> {
        Ok(in_reserves(node))
    }

    /// In less than a whole CPU nobody knows where the time is.
    fn rates(&self, node: &Rated, rates: &mut [Option<Share>]) {
        for index in node.edges.iter().filter(|_| *node.supply >= share::one()) {
            let reserve = Reserve::of(node.plan, &node.plan.edges[*index]);
            rates[*index] = reserve.map(|reserve| ratio(reserve.length_ns, reserve.slot_ns));
        }
    }

    fn is_limited_to_its_rate(&self, node: &Rated, edge: usize) -> bool {
        Reserve::of(node.plan, &node.plan.edges[edge]).is_some_and(|reserve| !reserve.fills)
    }

    /// Work has waited for a reserve, so it counts as a budget; what fills has no bound.
    fn takes(&self, plan: &Plan, _: &Shape, edge: usize) -> Takes {
        match Reserve::of(plan, &plan.edges[edge]) {
            Some(reserve) => {
                let bounded = || Taken::bounded(reserve.length_ns, reserve.slot_ns, 0);
                Takes::Limited((!reserve.fills).then(bounded))
            }
            None => Takes::AsChild,
        }
    }
}

fn in_reserves(node: &Node) -> Vec<Given> {
    let Node { plan, index, edges, received, overheads, .. } = *node;
    let name = node.name();
    let Some(place) = received.iter().position(|promise| promise.guarantee.is_whole_cpu()) else {
        return node.gives_nothing(format!("`{name}` has no whole CPU: it may not have one in a reserve"));
    };
    let switch_ns = overheads.switch_ns(index);
    let each = edges.iter().map(|edge| {
        let Some(reserve) = Reserve::of(plan, &plan.edges[*edge]).filter(|_| !is_live(plan, *edge)) else {
            return Promise::nothing(format!("any number of threads may share a reserve of `{name}`"));
        };
        let Reserve { slot_ns, length_ns, fills, .. } = reserve;
        let because = format!("`{name}` keeps {} of each slot for it", show_time(length_ns));
        let (because, lost_ns) = match known(overheads.is_none(), || overheads.outside(*edge)) {
            Ok(None) => (because, 0),
            // A window of a slot may hold the begin of two reserves.
            Ok(Some(toll)) => {
                let lost_ns = switch_ns.saturating_mul(2).saturating_add(toll.within(slot_ns));
                (format!("{because}; switches and timers may take {}", show_time(lost_ns)), lost_ns)
            }
            Err(unknown) => return Promise::nothing(unknown),
        };
        let (kind, formula) = match fills || lost_ns > 0 {
            true => (Kind::Rescs, "RESCS length slot"),
            false => (Kind::Resnh, "RESNH length slot"),
        };
        let left = whole(length_ns.saturating_sub(lost_ns));
        Guarantee::new(kind, vec![left, whole(slot_ns)]).map_or_else(
            || Promise::nothing(format!("`{name}`: {COSTS_TAKE_ALL}")),
            |guarantee| {
                let from = [&received[place].guarantee];
                let promise = Promise::new(guarantee, because);
                [promise.by(Origin::Promise(place), &from, "reserve in a timeslot", formula)].into()
            },
        )
    });
    each.collect()
}
