//! What is known of a thread.

/// A CPU burst: what a thread did from a wake-up until it slept again. Being preempted is part of it; a thread that waits for a CPU
/// does not sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// When it was woken (ns of one clock).
    pub woke_ns: u64,
    /// When it slept again.
    pub slept_ns: u64,
    /// CPU time that it used, without interrupts.
    pub ran_ns: u64,
    /// Time that interrupts took from it while it ran.
    pub interrupted_ns: u64,
}

impl Burst {
    /// Time that it was ready and waited for a CPU.
    pub fn waited_ns(&self) -> u64 {
        (self.slept_ns - self.woke_ns).saturating_sub(self.ran_ns + self.interrupted_ns)
    }

    /// Whether it was awake then.
    fn covers(&self, time_ns: u64) -> bool {
        self.woke_ns <= time_ns && time_ns < self.slept_ns
    }
}

/// All that was seen of one thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Watched {
    /// Its complete bursts, one after the other.
    pub bursts: Vec<Burst>,
    /// Since when it was watched.
    pub from_ns: u64,
    /// Until when.
    pub to_ns: u64,
    /// CPU time that it used, parts of bursts included.
    pub ran_ns: u64,
}

/// Whether it was awake then; bursts are in the order of time.
pub(crate) fn awake_at(bursts: &[Burst], time_ns: u64) -> bool {
    let after = bursts.partition_point(|burst| burst.woke_ns <= time_ns);
    after > 0 && bursts[after - 1].covers(time_ns)
}
