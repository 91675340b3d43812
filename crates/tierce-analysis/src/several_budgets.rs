//! Global scheduling inside hard budgets on several CPUs (a hyper container): what a node is sure to get of budgets that it does
//! not always want, and sufficient tests of its tasks.
//!
//! **The model.** A node has a budget Qᵢ in every period Tᵢ on each of m CPUs. A task of it runs on one CPU at a time, on
//! whichever CPU serves the node. A budget is spent only while it is used, and a period may begin anew whenever the node did not
//! want the CPU for a moment: the wake-up rule of a constant bandwidth server. On CPU i others, which come before the
//! budget or may do so, take at most Oᵢ(L) = ⌈oᵢ·L⌉ + Bᵢ of any window of L.
//!
//! **Why known supply models do not hold.** The multiprocessor periodic resource (Shin, Easwaran & Lee, ECRTS 2008), the parallel
//! supply function (Bini, Bertogna & Baruah, RTSS 2009) and the multi supply function (Lipari & Bini, RTSS 2010) count supply
//! that is there whether it is wanted or not. A server that may go idle is no such supply: while the only ready task runs
//! on CPU 1, the server on CPU 0 has nothing to serve at the moment at which its turn comes. When the task stops on CPU 1, that
//! server wakes with a new period, and its budget may come up to T − Q later than before. This can happen again and again, so a
//! task may get less from two budgets than from one of them: the bandwidth that is lost is bounded only by what others can take.
//! (A node whose m servers are all backlogged, with m ready tasks or more at any time, gets the sum of their supply functions:
//! the multi supply function. Nothing here needs that.)
//!
//! **The bound.** Look at a job for a window of L from when it is ready, in which it waits for W and runs for r = L − W. Whenever
//! it waits, the node wants every CPU. So at each such moment CPU i serves others (Oᵢ(L) at most), or runs another task of the node
//! (for Aᵢ in all), or the budget there is spent. From when a budget is spent until it is back takes T − Q at most, since the period
//! began at least Q earlier, however often periods begin anew. Each time after the first one the node has used Q of it within the
//! window. With k such times after the first,
//!
//! ```text
//! W ≤ Oᵢ(L) + Aᵢ + (1 + kᵢ)·(Tᵢ − Qᵢ),    kᵢ·Qᵢ ≤ Aᵢ + rᵢ
//! ```
//!
//! where rᵢ is what the node uses on CPU i while the job runs, on whatever CPU: rᵢ ≤ r, and Σ rᵢ ≤ r + what others of the node
//! can do beside the job, (m − 1)·r at most. Σ Aᵢ is at most what tasks that come before the job can do while it waits: as in
//! the tests for whole CPUs (`global`), of which these are the generalisation: with Q = T and O = 0 they are Bertogna's.
//! If no Aᵢ, rᵢ, kᵢ are possible for W = x and r = C − 1, the job is done within x + C − 1.
//!
//! Whether they are possible is decided one-sidedly by weights μ ≥ ν: the least of Σ (μ·Aᵢ + ν·rᵢ), each CPU by itself, against
//! the most that there can be. Where the node may run on c < m CPUs at once, c of these inequalities are taken, and
//! moments at which it runs on c CPUs count as Aᵢ in all of them.
//!
//! Example: 2 in 10 on each of two CPUs, nothing else there, one task of 3 in 20. Both budgets were spent just before: it waits for
//! 8, and then has 4 in a row. Its response is 11, and that is what is found. One of the budgets alone, as a periodic resource,
//! would have it done within 27.
//!
//! Proof and tests hold for whole ns and exact rationals; shares of others are rounded up to multiples of 2⁻⁴⁰.

use crate::global::{carried, check, due, others, room, shorten, Unsupported};
use crate::task::Task;
use num_bigint::BigInt;
use tierce_guarantee::{ratio, whole, Exact};

/// Windows that one search for a response looks at.
const STEPS_MAX: u32 = 2_000;

/// Passes over all tasks under EDF.
const ROUNDS_MAX: u32 = 16;

/// Weights of what runs while a job waits, and of what runs while it runs.
const WEIGHTS: [(u128, u128); 6] = [(1, 0), (1, 1), (2, 1), (4, 1), (16, 1), (1 << 50, 1)];

/// Bits behind the point of a share.
const SHARE_BITS: u32 = 40;

/// What others take of a CPU at most: `share`·L + `burst` of any window of L.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    share: Exact,
    burst: Exact,
    scaled: u64,
    burst_ns: u64,
}

/// A hard budget on one CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    budget_ns: u64,
    period_ns: u64,
    taken: Taken,
}

/// Those of a node, one for each of its CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budgets {
    each: Vec<Budget>,
    at_once: usize,
}

/// share·t − error of any window of t.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Above 0.
    pub share: Exact,
    /// In ns.
    pub error: Exact,
}

/// Who else is in the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// Only the tasks that are tested.
    Known,
    /// Others, too, which never come before one of these.
    Below,
}

impl Taken {
    /// `None`: less than nothing, or too much to be counted.
    pub fn new(share: Exact, burst: Exact) -> Option<Self> {
        if share < whole(0) || burst < whole(0) {
            return None;
        }
        let scaled = (&share * whole(1 << SHARE_BITS)).ceil().to_integer();
        // More than a whole CPU is no more than that.
        let scaled = u64::try_from(scaled.min(BigInt::from(1u64 << SHARE_BITS))).ok()?;
        let burst_ns = u64::try_from(burst.ceil().to_integer()).ok()?;
        Some(Self { share, burst, scaled, burst_ns })
    }

    /// By nobody.
    pub fn nothing() -> Self {
        Self { share: whole(0), burst: whole(0), scaled: 0, burst_ns: 0 }
    }

    /// By both.
    pub fn and(&self, other: &Self) -> Option<Self> {
        Self::new(&self.share + &other.share, &self.burst + &other.burst)
    }

    /// By a server of that budget and period which has each of its budgets within the period: U·L + 2·Q·(1 − U), U = Q/T. Its virtual
    /// time, the deadline less what is left/U, grows by 1/U for each ns that it is served, is never more than T − Q behind the time
    /// while it is backlogged, and never more than T − Q ahead.
    pub fn by_server(budget_ns: u64, period_ns: u64) -> Option<Self> {
        let share = ratio(budget_ns, period_ns.max(1));
        let burst = whole(2) * whole(budget_ns) * (whole(1) - &share);
        Self::new(share, burst)
    }

    /// The most of a window.
    fn of(&self, window_ns: u64) -> u64 {
        let share = (u128::from(self.scaled) * u128::from(window_ns)).div_ceil(1 << SHARE_BITS);
        let most = share.saturating_add(self.burst_ns.into()).min(window_ns.into());
        most as u64 // at most the window
    }
}

impl Budget {
    /// `None` unless 0 < budget ≤ period, within [`crate::TIME_MAX_NS`].
    pub fn new(budget_ns: u64, period_ns: u64, taken: Taken) -> Option<Self> {
        let fits = 0 < budget_ns && budget_ns <= period_ns && period_ns <= crate::TIME_MAX_NS;
        fits.then_some(Self { budget_ns, period_ns, taken })
    }

    /// How long it is away once it is spent.
    fn away_ns(&self) -> u64 {
        self.period_ns - self.budget_ns
    }

    /// The least of μ·A + ν·r for a job that waits for `wait_ns` while this CPU does not serve others, with r ≤ `beside_ns`; μ ≥ ν.
    fn cost(&self, wait_ns: u64, beside_ns: u64, (mu, nu): (u128, u128)) -> u128 {
        let [wait, beside, budget, period, away] =
            [wait_ns, beside_ns, self.budget_ns, self.period_ns, self.away_ns()].map(u128::from);
        if away == 0 || wait == 0 {
            return mu * wait;
        }
        // With k budgets used up: A is at least what is left of the wait, and r as much of the rest as it may be.
        let waits = |times: u128| wait.saturating_sub((times + 1) * away);
        let cost = |times: u128| {
            let more = (times * budget).saturating_sub(waits(times)).min(beside);
            mu * waits(times).max((times * budget).saturating_sub(beside)) + nu * more
        };
        // A decreases until k budgets are more than what is left of the wait (first), and on until r is as large as it may be (most);
        // then it increases, and from where nothing is left of the wait (enough) r does. In between all is linear.
        let first = wait.saturating_sub(away) / period;
        let most = (beside / budget).max((wait + beside).saturating_sub(away) / period);
        let enough = wait.div_ceil(away) - 1;
        let turns = [first, first + 1, most, most + 1, enough.saturating_sub(1), enough];
        turns.into_iter().map(|times| cost(times.min(enough))).min().unwrap_or(0)
    }
}

/// What may hold up a job.
struct Load {
    /// Work of each of those before it, in the window.
    before: Vec<u64>,
    /// Work of others that may run beside it.
    beside: u128,
}

impl Budgets {
    /// One per CPU; the node runs on at most `at_once` of them at a time, 0: all. `None`: there is none.
    pub fn new(each: Vec<Budget>, at_once: u32) -> Option<Self> {
        let most = if at_once == 0 { each.len() } else { each.len().min(at_once as usize) };
        (most > 0).then_some(Self { each, at_once: most })
    }

    /// Of all CPUs, in the long run, when it is always wanted on all of them.
    pub fn rate(&self) -> Exact {
        let rates = self.each.iter().map(|budget| ratio(budget.budget_ns, budget.period_ns));
        rates.fold(whole(0), |sum, rate| sum + rate)
    }

    /// What the tasks of the node get together in any window in which at least one of them is ready; and a task that is alone in
    /// it. With Aᵢ = 0 and N the time in which none of them runs, the bound says S ≥ Σ aᵢ·(N − oᵢ·L − Bᵢ − Tᵢ + Qᵢ), a = U/(1 − U),
    /// over any of the CPUs; and S ≥ L − N. So S ≥ Σ aᵢ·((1 − oᵢ)·L − Bᵢ − Tᵢ + Qᵢ)/(1 + Σ aᵢ).
    pub fn together(&self) -> Option<Share> {
        let mut order: Vec<_> = self.each.iter().collect();
        order.sort_by(|a, b| a.taken.share.cmp(&b.taken.share));
        let mut best: Option<Share> = None;
        let (mut gains, mut rates, mut errors) = (whole(0), whole(0), whole(0));
        for budget in order {
            let left = whole(1) - &budget.taken.share;
            let found = if budget.away_ns() == 0 {
                Share { share: left, error: budget.taken.burst.clone() }
            } else {
                let gain = ratio(budget.budget_ns, budget.away_ns());
                rates += &gain * left;
                errors += &gain * (&budget.taken.burst + whole(budget.away_ns()));
                gains += gain;
                let all = whole(1) + &gains;
                Share { share: &rates / &all, error: &errors / all }
            };
            let better = best.as_ref().is_none_or(|best| found.share > best.share);
            best = Some(found).filter(|_| better).or(best);
        }
        best.filter(|best| best.share > whole(0))
    }

    /// What the child that comes before all others gets in any window in which it is ready; for each CPU one, the largest share
    /// first. The bound says r ≥ aᵢ·(L − r − oᵢ·L − Bᵢ − Tᵢ + Qᵢ).
    pub fn first(&self) -> Vec<Share> {
        let of = |budget: &Budget| {
            let rate = ratio(budget.budget_ns, budget.period_ns);
            let share = &rate * (whole(1) - &budget.taken.share);
            Share { share, error: rate * (&budget.taken.burst + whole(budget.away_ns())) }
        };
        let mut found: Vec<_> = self.each.iter().map(of).filter(|found| found.share > whole(0)).collect();
        found.sort_by(|a, b| b.share.cmp(&a.share).then(a.error.cmp(&b.error)));
        found
    }

    /// Whether a job is sure not to wait for `wait` in a window of `window`, of which it runs for less than `work`.
    fn excludes(&self, wait: u64, window: u64, work: u64, load: &Load, costs: &mut Vec<u128>) -> bool {
        let runs = work - 1;
        let beside = load.beside.min((self.at_once as u128 - 1) * u128::from(runs)) + u128::from(runs);
        WEIGHTS.into_iter().any(|(mu, nu)| {
            let cost =
                |budget: &Budget| budget.cost(wait.saturating_sub(budget.taken.of(window)), runs, (mu, nu));
            costs.clear();
            costs.extend(self.each.iter().map(cost));
            if self.at_once < costs.len() {
                costs.select_nth_unstable_by(self.at_once - 1, |a, b| b.cmp(a));
                costs.truncate(self.at_once);
            }
            let most = if nu == 0 { wait } else { wait.saturating_add(runs) };
            let before: u128 = load.before.iter().map(|work| u128::from((*work).min(most))).sum();
            costs.iter().sum::<u128>() > mu * before + nu * beside
        })
    }

    /// The shortest window found in which a job is sure to be done once it is ready, if it is at most `room`. `load`: what
    /// others may do in a window.
    fn done_within(&self, work: u64, room: u64, mut load: impl FnMut(u64) -> Load) -> Option<u64> {
        let mut costs = Vec::new();
        let mut next = |window: u64| {
            let load = load(window);
            let mut excludes = |wait: u64| self.excludes(wait, window, work, &load, &mut costs);
            let (mut low, mut high) = (0, room - work + 1);
            if !excludes(high) {
                return None;
            }
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                *(if excludes(middle) { &mut high } else { &mut low }) = middle;
            }
            Some(high + work - 1)
        };
        let mut window = work;
        for _ in 0..STEPS_MAX {
            let longer = next(window)?;
            if longer <= window {
                return Some(longer);
            }
            window = longer;
        }
        next(room).filter(|window| *window <= room) // any window that is long enough will do
    }

    /// Longest responses under global fixed priorities, from the nominal release; `None`: nothing is shown. `levels` as in
    /// [`crate::global::fixed_priority`].
    ///
    /// # Panics
    /// When there is not one level per task.
    pub fn fixed_priority(
        &self,
        tasks: &[Task],
        levels: &[u32],
        below: Others,
    ) -> Result<Vec<Option<u64>>, Unsupported> {
        assert_eq!(tasks.len(), levels.len(), "one level per task");
        check(tasks, self.each.len() as u32)?;
        let mut ends = vec![None; tasks.len()];
        let mut order: Vec<_> = (0..tasks.len()).collect();
        order.sort_by_key(|index| levels[*index]);
        for level in order.chunk_by(|a, b| levels[*a] == levels[*b]) {
            let response = |index: &usize| {
                let task = &tasks[*index];
                let last = below == Others::Known && levels.iter().all(|level| *level <= levels[*index]);
                let found = self.done_within(task.work_ns, room(task)?, |window| {
                    let above = others(tasks, *index).filter(|(at, _)| levels[*at] <= levels[*index]);
                    // Beside each other all are taken to meet their deadlines: the first miss would be of one of them.
                    let end = |at: usize, other: &Task| ends[at].unwrap_or(other.deadline_ns);
                    let before = above.map(|(at, other)| carried(other, end(at, other), window)).collect();
                    Load { before, beside: if last { 0 } else { u128::MAX } }
                });
                found.map(|window| window + task.jitter_ns)
            };
            let found: Option<Vec<u64>> = level.iter().map(response).collect();
            let Some(found) = found else { break };
            level.iter().zip(found).for_each(|(index, end)| ends[*index] = Some(end));
        }
        Ok(ends)
    }

    /// The same under global EDF: the jobs that are due first run, ties broken in any way. All or nothing: what is shown of each
    /// task takes the others for granted.
    pub fn earliest_deadline(&self, tasks: &[Task], below: Others) -> Result<Vec<Option<u64>>, Unsupported> {
        check(tasks, self.each.len() as u32)?;
        let mut ends: Vec<_> = tasks.iter().map(|task| task.deadline_ns).collect();
        let shown = shorten(tasks, &mut ends, ROUNDS_MAX, |index, room, ends| {
            let task = &tasks[index];
            self.done_within(task.work_ns, room, |window| {
                let fits = |at: usize, other: &Task| carried(other, ends[at], window);
                let work =
                    |(at, other): (usize, &Task)| due(other, ends[at], task.deadline_ns).min(fits(at, other));
                let beside = others(tasks, index).map(|(at, other)| u128::from(fits(at, other))).sum();
                let beside = if below == Others::Known { beside } else { u128::MAX };
                Load { before: others(tasks, index).map(work).collect(), beside }
            })
        });
        let all = shown.iter().all(|shown| *shown);
        Ok(ends.into_iter().map(|end| Some(end).filter(|_| all)).collect())
    }
}
