//! Locks, and the parts of jobs that hold them.

use crate::text::source::Spot;

/// `[lock.NAME]`.
#[derive(Clone, Debug)]
pub struct Lock {
    /// Unique among locks.
    pub name: String,
    /// What happens when a job requests it while another one has it.
    pub protocol: Protocol,
    /// Where it is defined.
    pub spot: Spot,
}

/// How a lock is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Who requests it sleeps until it is free.
    None,
    /// The holder runs in place of its most urgent waiter.
    Inheritance,
    /// The same; and no job gets a lock unless it is more urgent than all users of all locks that others hold.
    Ceiling,
    /// No job begins unless it is more urgent than all users of all locks that others hold.
    ImmediateCeiling,
    /// The same by deadlines: the stack resource policy.
    Srp,
    /// Who requests it while a job of another CPU has it spins, first come, first served, and is not preempted until it has left it.
    Msrp,
    /// The same with the ceiling of its CPU; and who spins runs the section of a holder that is preempted.
    Mrsp,
    /// Who requests it while a job has it suspends itself, and the most urgent waiter gets it next. Who has it is boosted: it gives way only to those
    /// with locks of higher ceilings, which more urgent tasks of other CPUs use.
    Mpcp,
    /// The same, first come, first served: who has it gives way only to those with locks that requested theirs earlier.
    Fmlp,
    /// Its users are below budgets in the order of priorities. Who has it is not preempted by tasks of its own node, and its budget has the priority of the most
    /// urgent user's. A budget that ends meanwhile is overrun, and the next one is that much shorter.
    Hsrp,
    /// The same; but it is requested only while the budget has enough left for the section: otherwise with the next budget.
    Sirap,
}

impl Protocol {
    /// As in plans.
    pub const NAMES: [(&'static str, Self); 11] = [
        ("none", Self::None),
        ("inheritance", Self::Inheritance),
        ("ceiling", Self::Ceiling),
        ("immediate-ceiling", Self::ImmediateCeiling),
        ("srp", Self::Srp),
        ("msrp", Self::Msrp),
        ("mrsp", Self::Mrsp),
        ("mpcp", Self::Mpcp),
        ("fmlp+", Self::Fmlp),
        ("hsrp", Self::Hsrp),
        ("sirap", Self::Sirap),
    ];

    /// As in plans.
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, protocol)| *protocol == self).map_or("", |(name, _)| name)
    }

    /// It may have users on several CPUs, who spin.
    pub fn spins(self) -> bool {
        matches!(self, Self::Msrp | Self::Mrsp)
    }

    /// It may have users on several CPUs, who suspend themselves.
    pub fn suspends(self) -> bool {
        matches!(self, Self::Mpcp | Self::Fmlp)
    }

    /// It may have users on several CPUs.
    pub fn is_between_cpus(self) -> bool {
        self.spins() || self.suspends()
    }

    /// The budgets above its users know of it.
    pub fn is_between_budgets(self) -> bool {
        matches!(self, Self::Hsrp | Self::Sirap)
    }

    /// It keeps jobs from requests or from their begin by who uses which locks.
    pub fn has_ceilings(self) -> bool {
        matches!(self, Self::Ceiling | Self::ImmediateCeiling | Self::Srp)
    }
}

/// A part of a job in which it holds a lock.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// Index into [`Plan::locks`](crate::Plan::locks).
    pub lock: usize,
    /// Where it begins: CPU time since the begin of the job, or of the section around it.
    pub at_ns: u64,
    /// CPU time, with that of the sections within.
    pub length_ns: u64,
    /// Sections within this one, in their order.
    pub sections: Vec<Section>,
}

impl Section {
    /// No section with that lock, this one or one within, is longer than that.
    pub fn limit(&mut self, lock: usize, most_ns: u64) {
        if self.lock == lock {
            self.length_ns = most_ns.min(self.length_ns);
        }
        self.sections.iter_mut().for_each(|section| section.limit(lock, most_ns));
    }

    /// The longest with that lock, this one or one within.
    pub fn longest_ns(&self, lock: usize) -> Option<u64> {
        self.most(lock, &|section| section.length_ns)
    }

    /// The least that all with that lock can be limited to: sections within them stay as they are.
    pub fn least_ns(&self, lock: usize) -> Option<u64> {
        self.most(lock, &|section| section.sections.last().map_or(1, |last| last.at_ns + last.length_ns))
    }

    fn most(&self, lock: usize, of: &dyn Fn(&Self) -> u64) -> Option<u64> {
        let own = (self.lock == lock).then(|| of(self));
        self.sections.iter().filter_map(|section| section.most(lock, of)).chain(own).max()
    }
}
