//! The rules that come with Tierce.

/// Name and text of each.
pub const SHIPPED: [(&str, &str); 10] = [
    ("most-important-first", include_str!("../../rules/most-important-first.rhai")),
    ("largest-total-value", include_str!("../../rules/largest-total-value.rhai")),
    ("equal-shares", include_str!("../../rules/equal-shares.rhai")),
    ("limit-per-user", include_str!("../../rules/limit-per-user.rhai")),
    ("short-periods", include_str!("../../rules/short-periods.rhai")),
    ("probabilistic", include_str!("../../rules/probabilistic.rhai")),
    ("session-scheduler", include_str!("../../rules/session-scheduler.rhai")),
    ("bin-packing", include_str!("../../rules/bin-packing.rhai")),
    ("like-periods", include_str!("../../rules/like-periods.rhai")),
    ("cage", include_str!("../../rules/cage.rhai")),
];

/// The text of the rule of that name.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
