//! Guarantees asked for, `needs = "RESBS 2ms 10ms"`: their form. Whether they follow is in `promises.rs`.

use crate::faults::Fault;
use crate::source::Spot;
use crate::tree::{closest, listed, Collector};
use crate::units::parse_time;
use tierce_guarantee::Guarantee;

/// Types of guarantees and how many times and shares they have (HLS, chapter 5).
const TYPES: [(&str, &str); 12] = [
    ("ALL", ""),
    ("RESU", "s"),
    ("RESBH", "tt"),
    ("RESBS", "tt"),
    ("RESCH", "tt"),
    ("RESCS", "tt"),
    ("RESPS", "ttt"),
    ("RESNH", "tt"),
    ("RESSH", "ttt"),
    ("PSBE", "st"),
    ("PS", "s"),
    ("NULL", ""),
];

/// Report what is wrong with the form of a guarantee.
pub fn check(text: &str, spot: Spot, collector: &mut Collector) {
    let mut words = text.split_whitespace();
    let name = words.next().unwrap_or("");
    let Some((_, form)) = TYPES.iter().find(|(known, _)| *known == name) else {
        let names: Vec<_> = TYPES.iter().map(|(name, _)| *name).collect();
        let hint = match closest(name, names.iter().copied()) {
            Some(close) => format!("did you mean {close}? there are {}", listed(&names)),
            None => format!("there are {}", listed(&names)),
        };
        let fault = Fault::new("guarantee_must_be_known", spot, "there is no such guarantee");
        return collector.add(fault.value(format!("\"{name}\"")).hint(hint));
    };
    let words: Vec<_> = words.collect();
    let shape = form.chars().map(|c| if c == 't' { "TIME" } else { "SHARE" }).collect::<Vec<_>>().join(" ");
    if words.len() != form.len() {
        let fault = Fault::new("guarantee_must_have_its_numbers", spot, format!("{name} has other numbers"));
        return collector.add(fault.value(text).bound(format!("{name} {shape}").trim_end()));
    }
    let faults = collector.faults.len();
    for (word, kind) in words.iter().zip(form.chars()) {
        let message = match kind {
            't' => parse_time(word).err().map(|error| error.message()),
            _ => (!is_share(word)).then_some("a share is a fraction of 1: 0.25 or 1/4"),
        };
        if let Some(message) = message {
            let fault = Fault::new("guarantee_must_have_its_numbers", spot, message);
            collector.add(fault.value(word).bound(format!("{name} {shape}")));
        }
    }
    if collector.faults.len() > faults {
        return;
    }
    for wrong in Guarantee::parse(text).err().into_iter().flat_map(|faults| faults.0) {
        let fault = Fault::new("guarantee_must_have_its_numbers", spot, wrong.message).value(wrong.value);
        collector.add(match wrong.bound {
            Some(bound) => fault.bound(bound),
            None => fault,
        });
    }
}

/// A fraction of whole numbers or a decimal, from 0 to 1.
fn is_share(word: &str) -> bool {
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    if let Some((over, under)) = word.split_once('/') {
        return matches!((number(over), number(under)), (Some(over), Some(under)) if under > 0 && over <= under);
    }
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    match (number(whole), fraction.is_empty() || !fraction.bytes().all(|b| b.is_ascii_digit())) {
        (Some(0), false) => true,
        (Some(1), false) => fraction.bytes().all(|b| b == b'0'),
        _ => false,
    }
}
