//! Jobs of a real periodic thread.
//!
//! ```no_run
//! use std::time::Duration;
//! use tierce_job::Periodic;
//!
//! let mut jobs = Periodic::new(Duration::from_millis(10), Duration::ZERO).deadline(Duration::from_millis(8));
//! loop {
//!     let job = jobs.wait(); // until the next release; `job.ended` is what the one before did
//!     // ... the job's work ...
//! #   let _ = job;
//! }
//! ```
//!
//! Job k is released at epoch + offset + (first + k) · period on CLOCK_MONOTONIC, where `first` is the number of the first
//! release that lies in the future when [`Periodic::wait`] is first called. The time of a release is computed, never
//! measured, and slept for absolutely: nothing adds up. A job whose release is past already when the one before is done
//! begins at once, with the response time that it has had by then; none is left out. A job that is not done at its
//! deadline is a miss.
//!
//! The first wait sets the thread's timer slack to 1 ns (`prctl(2)`, PR_SET_TIMERSLACK), so that the kernel does not delay the
//! release by up to 50 µs.
//!
//! The epoch is the begin of the clock (boot) unless said otherwise, so the jobs of all threads of a machine count from
//! one time. A plan sees what this sees: see `docs/measure.md`.

use std::time::Duration;

/// A job that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it was released (ns).
    pub released_ns: u64,
    /// From its release until it began (ns): how late the thread was.
    pub late_ns: u64,
    /// From its release until it was done (ns).
    pub response_ns: u64,
    /// It was not done at its deadline.
    pub missed: bool,
}

/// A job that begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its number, from 1.
    pub number: u64,
    /// When it was released (ns, CLOCK_MONOTONIC).
    pub released_ns: u64,
    /// From its release until now (ns).
    pub late_ns: u64,
    /// The job before, if there was one.
    pub ended: Option<Ended>,
}

/// All jobs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Done.
    pub jobs: u64,
    /// Of these, not at their deadline.
    pub misses: u64,
    /// Releases that were past when the thread came to wait for them.
    pub overruns: u64,
    /// Longest and sum of the times from release to begin (ns).
    pub late_max_ns: u64,
    /// Their sum (ns).
    pub late_sum_ns: u128,
    /// Shortest time from release to end (ns).
    pub response_min_ns: u64,
    /// Longest one (ns).
    pub response_max_ns: u64,
    /// Their sum (ns).
    pub response_sum_ns: u128,
}

impl Totals {
    fn count(&mut self, job: &Ended) {
        self.response_min_ns = match self.jobs {
            0 => job.response_ns,
            _ => self.response_min_ns.min(job.response_ns),
        };
        self.jobs += 1;
        self.misses += u64::from(job.missed);
        self.late_max_ns = self.late_max_ns.max(job.late_ns);
        self.late_sum_ns += u128::from(job.late_ns);
        self.response_max_ns = self.response_max_ns.max(job.response_ns);
        self.response_sum_ns += u128::from(job.response_ns);
    }

    /// Mean time from release to begin (ns), rounded down.
    pub fn late_avg_ns(&self) -> u64 {
        self.late_sum_ns.checked_div(self.jobs.into()).unwrap_or(0) as u64
    }

    /// Mean time from release to end (ns), rounded down.
    pub fn response_avg_ns(&self) -> u64 {
        self.response_sum_ns.checked_div(self.jobs.into()).unwrap_or(0) as u64
    }
}

/// Where time comes from, and where it passes.
pub trait Clock {
    /// Called once by the thread that is about to wait for its first release.
    fn begin(&mut self) {}
    /// Now (ns).
    fn now_ns(&mut self) -> u64;
    /// Sleep until that time, not a relative one; not at all if it is past.
    fn sleep_until(&mut self, at_ns: u64);
}

/// CLOCK_MONOTONIC. The thread that waits gets a timer slack of 1 ns: with the kernel's default of 50 µs, a thread of the
/// default class or of sched_ext may be woken that much after its release.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn begin(&mut self) {
        // SAFETY: the call takes a number and changes nothing but the calling thread's slack. 0 would restore the default.
        // Ignoring its result is right: where it is forbidden, releases are only less precise.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
    }

    fn now_ns(&mut self) -> u64 {
        read_clock(libc::CLOCK_MONOTONIC)
    }

    fn sleep_until(&mut self, at_ns: u64) {
        let at = libc::timespec {
            tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: the time is a valid timespec; no rest is asked for, since it is absolute.
        while unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
        } == libc::EINTR
        {}
    }
}

/// CPU time of the calling thread so far (ns).
pub fn cpu_time_ns() -> u64 {
    read_clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

fn read_clock(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call fills the timespec it is given.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The jobs of one thread.
#[derive(Clone, Debug)]
pub struct Periodic<C = Monotonic> {
    clock: C,
    period_ns: u64,
    offset_ns: u64,
    epoch_ns: u64,
    after_ns: u64,
    deadline_ns: u64,
    next_ns: Option<u64>,
    current: Option<(u64, u64)>,
    totals: Totals,
}

fn whole(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Periodic {
    /// A job every `period` (at least 1 ns), `offset` after the epoch; its deadline is the next release.
    pub fn new(period: Duration, offset: Duration) -> Periodic {
        Periodic::with_clock(period, offset, Monotonic)
    }
}

impl<C: Clock> Periodic<C> {
    /// The same by another clock.
    pub fn with_clock(period: Duration, offset: Duration, clock: C) -> Periodic<C> {
        let period_ns = whole(period).max(1);
        Periodic {
            clock,
            period_ns,
            offset_ns: whole(offset),
            epoch_ns: 0,
            after_ns: 0,
            deadline_ns: period_ns,
            next_ns: None,
            current: None,
            totals: Totals::default(),
        }
    }

    /// Jobs have to be done so long after their release.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline_ns = whole(deadline);
        self
    }

    /// Releases count from this time of the clock. One in the future is waited for.
    pub fn epoch(mut self, epoch: Duration) -> Self {
        self.epoch_ns = whole(epoch);
        self
    }

    /// The first release is after this time of the clock, too.
    pub fn after(mut self, time: Duration) -> Self {
        self.after_ns = whole(time);
        self
    }

    /// The first release after `now_ns`.
    fn first_ns(&self, now_ns: u64) -> u64 {
        let begin_ns = self.epoch_ns.saturating_add(self.offset_ns);
        match now_ns.checked_sub(begin_ns) {
            Some(since_ns) => {
                begin_ns.saturating_add((since_ns / self.period_ns + 1).saturating_mul(self.period_ns))
            }
            None => begin_ns,
        }
    }

    /// The current job is done; returns when the next one begins: at its release, or at once if that is past.
    pub fn wait(&mut self) -> Begun {
        let ended = self.done();
        if self.next_ns.is_none() {
            self.clock.begin();
        }
        let now_ns = self.clock.now_ns();
        let at_ns = self.next_ns.unwrap_or_else(|| self.first_ns(now_ns.max(self.after_ns)));
        self.next_ns = Some(at_ns.saturating_add(self.period_ns));
        let mut begun_ns = now_ns;
        if now_ns < at_ns {
            self.clock.sleep_until(at_ns);
            begun_ns = self.clock.now_ns();
        } else {
            self.totals.overruns += 1;
        }
        let late_ns = begun_ns.saturating_sub(at_ns);
        self.current = Some((at_ns, late_ns));
        let number = self.totals.jobs + 1;
        Begun { number, released_ns: at_ns, late_ns, ended }
    }

    /// The current job is done, and the thread does not wait for another one (yet).
    pub fn done(&mut self) -> Option<Ended> {
        let (released_ns, late_ns) = self.current.take()?;
        let response_ns = self.clock.now_ns().saturating_sub(released_ns);
        let job = Ended { released_ns, late_ns, response_ns, missed: response_ns > self.deadline_ns };
        self.totals.count(&job);
        Some(job)
    }

    /// All jobs that are done.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Jobs that were not done at their deadline.
    pub fn misses(&self) -> u64 {
        self.totals.misses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that is `late_ns` late whenever somebody sleeps.
    #[derive(Clone, Debug, Default)]
    struct Made {
        now_ns: u64,
        late_ns: u64,
        sleeps: Vec<u64>,
    }

    impl Clock for &mut Made {
        fn now_ns(&mut self) -> u64 {
            self.now_ns
        }
        fn sleep_until(&mut self, at_ns: u64) {
            self.sleeps.push(at_ns);
            self.now_ns = self.now_ns.max(at_ns) + self.late_ns;
        }
    }

    const US: u64 = 1_000;

    fn us(time: u64) -> Duration {
        Duration::from_micros(time)
    }

    impl<C: Clock> Periodic<C> {
        fn is(&self, period: u64, deadline: u64) -> bool {
            (self.period_ns, self.deadline_ns) == (period, deadline)
        }
    }

    #[test]
    fn lateness_does_not_add_up() {
        let mut clock = Made { now_ns: 12_345 * US, late_ns: 7 * US, ..Default::default() };
        let mut jobs = Periodic::with_clock(us(1_000), us(300), &mut clock);
        for number in 1..=1_000 {
            let job = jobs.wait();
            assert_eq!((job.number, job.late_ns), (number, 7 * US));
            assert_eq!(job.released_ns, (13_300 + (number - 1) * 1_000) * US);
            jobs.clock.now_ns += 100 * US + number; // its work, never the same
            if let Some(ended) = job.ended {
                assert_eq!((ended.response_ns, ended.missed), (107 * US + number - 1, false));
            }
        }
        jobs.done();
        let totals = jobs.totals();
        assert_eq!((totals.jobs, totals.misses, totals.overruns), (1_000, 0, 0));
        assert_eq!((totals.late_max_ns, totals.late_avg_ns()), (7 * US, 7 * US));
        assert_eq!((totals.response_min_ns, totals.response_max_ns), (107 * US + 1, 108 * US));
        assert_eq!(totals.response_avg_ns(), 107 * US + 500);
        assert_eq!(clock.sleeps.len(), 1_000);
        assert_eq!(clock.sleeps[999], (13_300 + 999 * 1_000) * US);
    }

    #[test]
    fn what_is_past_begins_at_once_and_nothing_is_left_out() {
        let mut clock = Made::default();
        let mut jobs = Periodic::with_clock(us(10), us(0), &mut clock).deadline(us(8));
        let mut job = |work_us: u64| {
            let job = jobs.wait();
            jobs.clock.now_ns += work_us * US;
            (
                job.released_ns / US,
                job.late_ns / US,
                job.ended.map(|ended| (ended.response_ns / US, ended.missed)),
            )
        };
        assert_eq!(job(3), (10, 0, None)); // the release at 0 is not in the future
        assert_eq!(job(25), (20, 0, Some((3, false))));
        assert_eq!(job(1), (30, 15, Some((25, true)))); // 45: it begins at once
        assert_eq!(job(1), (40, 6, Some((16, true)))); // 46
        assert_eq!(job(8), (50, 0, Some((7, false)))); // in time again
        assert_eq!(job(9), (60, 0, Some((8, false)))); // at its deadline is in time
        jobs.done();
        assert_eq!(jobs.done(), None);
        let totals = jobs.totals();
        assert_eq!((totals.jobs, totals.misses, totals.overruns), (6, 3, 2));
        assert_eq!(jobs.misses(), 3);
        assert_eq!(clock.sleeps, [10, 20, 50, 60].map(|us| us * US));
    }

    #[test]
    fn releases_count_from_the_epoch() {
        let mut clock = Made { now_ns: 1_000_000, ..Default::default() };
        let first = |jobs: Periodic<&mut Made>| jobs.first_ns(1_000_000);
        assert_eq!(first(Periodic::with_clock(us(300), us(0), &mut clock)), 1_200_000);
        assert_eq!(first(Periodic::with_clock(us(300), us(100), &mut clock)), 1_300_000);
        assert_eq!(first(Periodic::with_clock(us(300), us(0), &mut clock).epoch(us(950))), 1_250_000);
        assert_eq!(first(Periodic::with_clock(us(300), us(50), &mut clock).epoch(us(5_000))), 5_050_000);
        assert_eq!(
            first(Periodic::with_clock(us(1_000), us(0), &mut clock)),
            2_000_000,
            "now is not the future"
        );
        let mut jobs = Periodic::with_clock(us(300), us(0), &mut clock).after(us(1_700));
        assert_eq!(jobs.wait().released_ns, 1_800_000);
        let never = Periodic::with_clock(Duration::MAX, Duration::MAX, &mut clock).epoch(Duration::MAX);
        assert_eq!((never.first_ns(5), never.is(u64::MAX, u64::MAX)), (u64::MAX, true));
        assert!(Periodic::with_clock(us(0), us(0), &mut clock).is(1, 1));
    }

    #[test]
    fn who_waits_for_releases_has_no_timer_slack() {
        // SAFETY: the call only returns a number, in a thread of this test alone.
        let slack_ns = || unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        std::thread::spawn(move || {
            let before_ns = slack_ns();
            let mut jobs = Periodic::new(us(100), us(0));
            assert_eq!(slack_ns(), before_ns, "it is the thread that waits, not the one that makes the jobs");
            jobs.wait();
            assert_eq!(slack_ns(), 1);
        })
        .join()
        .unwrap();
    }

    /// On a real clock, on a machine that may be busy: never early, and each release a whole number of periods after the epoch.
    #[test]
    fn a_real_clock_is_never_early() {
        let mut jobs = Periodic::new(us(2_000), us(500)).deadline(Duration::from_secs(3_600));
        let begun_ns = Monotonic.now_ns();
        let mut before_ns = None;
        for _ in 0..20 {
            let job = jobs.wait();
            assert!(Monotonic.now_ns() >= job.released_ns && job.released_ns > begun_ns);
            assert_eq!((job.released_ns - 500 * US) % (2_000 * US), 0);
            assert!(before_ns.is_none_or(|before| job.released_ns == before + 2_000 * US));
            before_ns = Some(job.released_ns);
            assert!(job.ended.is_none_or(|ended| !ended.missed && ended.response_ns >= ended.late_ns));
        }
        let before_ns = cpu_time_ns();
        while cpu_time_ns() == before_ns {}
    }
}
