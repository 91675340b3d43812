//! The best value of one open number for which a guarantee can follow from another: a bound, not yet a proof.

use crate::exact::Exact;
use crate::guarantee::{Guarantee, Kind, Parameter, Wanted};
use crate::number::whole;
use crate::supply::Supply;

/// The number for the one that is open; not yet shown to be possible.
pub(crate) fn best_number(source: &Guarantee, wanted: &Wanted) -> Option<Exact> {
    let supply = Supply::of(source);
    let slower = source.kind() == Kind::Resu;
    match (wanted.kind, wanted.get(Parameter::Amount), wanted.get(Parameter::Period)) {
        (Kind::Psbe, ..) => match wanted.get(Parameter::Share) {
            Some(share) => supply.error_for(share),
            None => {
                let (gap, error) = (supply.longest_gap()?, wanted.get(Parameter::Error)?);
                let most = if gap > whole(0) { error / gap } else { whole(1) };
                Some(most.min(supply.rate()))
            }
        },
        (Kind::Ps | Kind::Resu, ..) => Some(source.share()),
        (kind, None, Some(period)) => {
            let repeated = whole_number_of(period, source.get(Parameter::Period));
            let repeated = repeated.and_then(|times| Some(source.get(Parameter::Amount)? * times));
            match kind {
                Kind::Resbs if slower => Some(source.share() * period),
                Kind::Rescs => Some(supply.at(period)),
                Kind::Resbs | Kind::Resps => {
                    repeated.into_iter().chain([supply.at(period)]).max().filter(|best| *best > whole(0))
                }
                _ if source.is_whole_cpu() => Some(period.clone()),
                _ => repeated,
            }
        }
        (kind, Some(amount), None) => {
            let own = source.amount_and_period();
            let times = own.map(|(own, _)| (amount / own).ceil());
            let repeated = own.zip(times).map(|((_, period), times)| period * times);
            match kind {
                Kind::Resbs if slower => Some(amount / source.share()),
                Kind::Rescs => supply.time_for(amount),
                Kind::Resbs | Kind::Resps => repeated.into_iter().chain(supply.time_for(amount)).min(),
                _ if source.is_whole_cpu() => Some(amount.clone()),
                _ => repeated,
            }
        }
        _ => None,
    }
}

/// How often `part` fits into `time`, when that is a whole number.
pub(crate) fn whole_number_of(time: &Exact, part: Option<&Exact>) -> Option<Exact> {
    let times = time / part?;
    (times.is_integer() && times >= whole(1)).then_some(times)
}
