//! From tasks to chains.

use super::member::{Member, Path};
use super::waits::Waits;
use crate::chains::{bounds, by_fixed_priority, by_jitter_alone, Bounds, Placed, Release, Segment, Times};
use crate::question::{Policy, Question, Thresholds};
use crate::{Sections, Task};

/// How long a chain takes.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    /// The least of all bounds.
    pub bounds: Bounds,
    /// Without offsets.
    pub by_jitter: Bounds,
}

impl Latencies {
    /// Some bound of it is less than by jitter alone.
    pub fn by_offsets(&self) -> bool {
        let all = |bounds: &Bounds| [bounds.response_ns, bounds.reaction_ns, bounds.age_ns];
        all(&self.bounds) != all(&self.by_jitter)
    }
}

/// The CPU of a task.
pub fn cpu_of(asked: &Question, task: usize) -> usize {
    asked.homes.as_ref().map_or(0, |homes| homes[task])
}

/// Tasks that have what is found of locks.
pub struct Chained<'s> {
    pub members: &'s [Member],
    pub chains: &'s [Path],
    pub waits: &'s [Waits],
    pub levels: &'s [u32],
    /// There are some.
    pub locks: bool,
    pub asked: &'s Question,
}

impl Chained<'_> {
    /// With offsets, and by jitter alone.
    pub fn times(&self) -> (Vec<Times>, Vec<Times>) {
        let Self { members, asked, levels, waits, .. } = self;
        let placed = |task: usize| {
            let member = &members[task];
            let jitter_ns = member.entry.task.jitter_ns;
            // Without a bound on its wait it has none itself.
            let blocking_ns = match waits[task].blocking_ns {
                Some(_) => asked.entries[task].task.blocking_ns,
                None => u64::MAX,
            };
            Placed {
                task: Task { blocking_ns, ..asked.entries[task].task },
                least_work_ns: member.least_work_ns,
                cpu: cpu_of(asked, task),
                level: levels[task],
                release: match member.after.is_empty() {
                    true => Release::Own { jitter_ns, sporadic: member.extra_ns > 0 },
                    false => Release::After(member.after.clone()),
                },
            }
        };
        let placed: Vec<_> = (0..members.len()).map(placed).collect();
        (by_fixed_priority(&placed), by_jitter_alone(&placed))
    }

    pub fn latencies(&self, times: &[Times], by_jitter: &[Times]) -> Vec<Latencies> {
        let of = |path: &Path| Latencies {
            bounds: self.bounds(path, times),
            by_jitter: self.bounds(path, by_jitter),
        };
        // Ended early, or refused: nothing is known.
        if times.len() < self.members.len() {
            return Vec::new();
        }
        self.chains.iter().map(of).collect()
    }

    fn bounds(&self, path: &Path, times: &[Times]) -> Bounds {
        let members = self.members;
        let mut segments: Vec<Segment> = Vec::new();
        for (at, (task, delay_ns)) in path.links.iter().enumerate() {
            let (member, done) = (&members[*task], times[*task].done);
            if !member.after.is_empty() {
                segments.last_mut().into_iter().for_each(|segment| segment.done = done);
                continue;
            }
            if let (Some(segment), Some(before)) = (segments.last_mut(), at.checked_sub(1)) {
                segment.delay_ns = *delay_ns;
                segment.goes_before_next = self.goes_before(path.links[before].0, *task);
            }
            let period_ns = member.entry.task.period_ns.saturating_add(member.extra_ns);
            segments.push(Segment { period_ns, done, delay_ns: 0, goes_before_next: false });
        }
        bounds(&segments)
    }

    /// Whether the second never begins while a job of the first is ready.
    fn goes_before(&self, first: usize, second: usize) -> bool {
        let Self { members, asked, levels, locks, .. } = self;
        let plain = |member: &Member| {
            member.entry.suspension_ns == 0
                && member.entry.sections == Sections::default()
                && member.entry.threshold.is_none()
        };
        let punctual = members[first].after.is_empty() && members[first].entry.task.jitter_ns == 0;
        punctual
            && !*locks
            && asked.thresholds == Thresholds::None
            && members.iter().all(plain)
            && members[first].entry.task.blocking_ns == 0
            && matches!(asked.policy, Policy::Fp | Policy::Rm | Policy::Dm)
            && cpu_of(asked, first) == cpu_of(asked, second)
            && levels[first] < levels[second]
    }
}
