//! What a run says of itself while it lasts.

use crate::journal::{report, Level};
use std::time::{Duration, Instant};
use tierce_manager::words::plain;
use tierce_scx::live::{Guardian, LeftOut};

/// Of this plan.
pub fn in_force(plan: &str) {
    report(Level::Info, "plan_in_force", &format!("{plan} is in force"), &[("plan", plan.into())]);
}

/// Threads that are named in so long a time: a user can have any number that match, and change their names.
const NAMED_MAX: usize = 20;
const NAMED_IN: Duration = Duration::from_secs(10);

/// Threads of which one thing is said.
pub struct Threads {
    event: &'static str,
    verb: &'static str,
    since: Instant,
    named: usize,
    more: usize,
}

impl Threads {
    /// Threads that match and are not where the plan wants them.
    pub fn left_out() -> Self {
        Self::new("match_left_out", "matches")
    }

    /// Threads that have left what something was promised to.
    pub fn unmatched() -> Self {
        Self::new("match_ended", "no longer matches")
    }

    fn new(event: &'static str, verb: &'static str) -> Self {
        Self { event, verb, since: Instant::now(), named: 0, more: 0 }
    }

    /// These are new.
    pub fn tell(&mut self, list: &[LeftOut]) {
        if self.since.elapsed() >= NAMED_IN {
            if self.more > 0 {
                let message = format!("{}: {} threads more (tierce status)", self.event, self.more);
                report(Level::Warn, self.event, &message, &[]);
            }
            (self.since, self.named, self.more) = (Instant::now(), 0, 0);
        }
        for thread in list {
            match self.named < NAMED_MAX {
                true => self.name(thread),
                false => self.more += 1,
            }
        }
    }

    fn name(&mut self, LeftOut { tid, comm, target, why, .. }: &LeftOut) {
        self.named += 1;
        // A thread may have any name, and its cgroup too.
        let message = plain(&format!("{}: thread {tid} ({comm}) {} {target}: {why}", self.event, self.verb));
        let fields = [
            ("tid", (*tid).into()),
            ("comm", (&**comm).into()),
            ("part", (&**target).into()),
            ("why", (&**why).into()),
        ];
        report(Level::Warn, self.event, &message, &fields);
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
