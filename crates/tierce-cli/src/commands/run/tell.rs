//! What a run says of itself while it lasts.

use crate::journal::{report, Level};
use tierce_scx::live::{Guardian, LeftOut};

/// Of this plan.
pub fn in_force(plan: &str) {
    report(Level::Info, "plan_in_force", &format!("{plan} is in force"), &[("plan", plan.into())]);
}

/// Threads that are named in one turn: a user can start any number that match.
const NAMED_MAX: usize = 20;

/// Threads that match and are not where the plan wants them.
pub fn left_out(list: &[LeftOut]) {
    matches("match_left_out", "matches", list);
}

/// Threads that have left what something was promised to.
pub fn unmatched(list: &[LeftOut]) {
    matches("match_ended", "no longer matches", list);
}

fn matches(event: &str, verb: &str, list: &[LeftOut]) {
    for LeftOut { tid, comm, target, why, .. } in list.iter().take(NAMED_MAX) {
        let message = format!("{event}: thread {tid} ({comm}) {verb} {target}: {why}");
        let fields = [
            ("tid", (*tid).into()),
            ("comm", (&**comm).into()),
            ("part", (&**target).into()),
            ("why", (&**why).into()),
        ];
        report(Level::Warn, event, &message, &fields);
    }
    if list.len() > NAMED_MAX {
        let message = format!("{event}: {} threads more (tierce status)", list.len() - NAMED_MAX);
        report(Level::Warn, event, &message, &[]);
    }
}

/// The process that would give threads their real-time class back has ended, or another one is there.
pub fn guardian(news: &[Guardian]) {
    for one in news {
        match one {
            Guardian::Ended { why, pause_ns } => {
                let until = match pause_ns / 1_000_000 {
                    0 => "another one begins".to_string(),
                    ms => format!("for {ms} ms nobody gives real-time classes back if the loader is killed"),
                };
                report(Level::Warn, "guardian_ended", &format!("guardian_ended: {why}; {until}"), &[]);
            }
            Guardian::Again => {
                report(Level::Warn, "guardian_again", "guardian_again: another one is there", &[])
            }
        }
    }
}
