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

/// Whether a thread was awake, asked for times that never go back; bursts are in the order of time.
pub(crate) struct Awake<'a> {
    bursts: &'a [Burst],
    /// Bursts that began by then; `None`: not asked yet.
    begun: Option<usize>,
}

impl<'a> Awake<'a> {
    pub fn new(bursts: &'a [Burst]) -> Awake<'a> {
        Awake { bursts, begun: None }
    }

    pub fn at(&mut self, time_ns: u64) -> bool {
        let begins = |burst: &Burst| burst.woke_ns <= time_ns;
        let begun = match self.begun {
            // The next one is near, the first may be anywhere.
            Some(begun) => begun + self.bursts[begun..].iter().take_while(|burst| begins(burst)).count(),
            None => self.bursts.partition_point(begins),
        };
        self.begun = Some(begun);
        begun > 0 && self.bursts[begun - 1].covers(time_ns)
    }
}
