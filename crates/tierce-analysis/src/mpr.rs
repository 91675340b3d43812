//! Supplies of several CPUs together, and global EDF inside.
//!
//! The multiprocessor periodic resource model (Shin, Easwaran & Lee, "Hierarchical scheduling framework for virtual clustering of
//! multiprocessors", ECRTS 2008; Easwaran, Shin & Lee, "Optimal virtual cluster-based multiprocessor scheduling", Real-Time
//! Systems 43, 2009): a budget of CPU time in each period, anywhere within it, on at most m CPUs at any time. Periods begin at
//! the same time on all CPUs.
//!
//! **Supply** (section 3.2 of the former, Definition 1 of the latter). The least comes in a window around whose ends the budgets lie outside as far as they can: given on all m CPUs at
//! the begin of the first period and at the end of the last one, with k whole periods between them, k = 0, 1, …:
//!
//! ```text
//! sbf(t) = k·Θ + max(0, 2Θ − m·((k + 2)·Π − t))    for  (k + 1)·Π − Θ/m ≤ t < (k + 2)·Π − Θ/m;  0 before
//! ```
//!
//! Example: 6 per 5 on 2 CPUs: nothing within 4, then 2 per 1: sbf(7) = 6; nothing more until 9.
//! Θ/m is not rounded: where m does not divide the budget, the papers' form in whole time units may say more.
//!
//! **Demand.** Let a job of task k, ready at a, be the first to miss, and look at the window from the last time t₀ ≤ a before which
//! fewer than m jobs were ready: m − 1 tasks at most bring work into it. Of its length t = a − t₀ + D all supply but that next to
//! job k itself is used by jobs due in it (Baruah, "Techniques for multiprocessor global schedulability analysis", RTSS 2007,
//! Theorem 2, for whole CPUs; with sbf Theorem 1 of the first paper above). So k meets its deadlines if for every t ≥ D
//!
//! ```text
//! Σ min(Wᵢ, t − C + 1) + Σ over m − 1 largest (min(Wᵢ + Iᵢ, t − C + 1) − min(Wᵢ, t − C + 1)) + m·(C − 1) < sbf(t)
//! Wᵢ = (⌊(t − Dᵢ)/Tᵢ⌋ + 1)·Cᵢ,  Iᵢ = min(Cᵢ, (t − (⌊(t − Dᵢ)/Tᵢ⌋ + 1)·Tᵢ)₀);  of k itself at most t − D, without its C
//! ```
//!
//! Work is cut at one ns more, and compared strictly with one less of C, than where the sum is written with t − C, m·C and ≤:
//! that form accepts 1 in 2 of 100 beside 2 in 2 of 100 on one CPU, of which 3 can be due within 2. With jitter D − J stands for
//! every D.
//!
//! **Suspension.** Where job k may be suspended for S, C + S stands for the C of k itself, in what is cut, too; tasks that suspend
//! themselves may all bring work into the window, k too, beside m − 1 of the others. The proof is at the head of `global_suspension.rs`.

use crate::task::{utilisation, utilisation_bounds, Task, WINDOW_MAX_NS};
use crate::watch::Watch;
use tierce_guarantee::{ratio, whole, Exact};

/// Windows that the test looks at, for all tasks together and then for one.
const WINDOWS_MAX: u32 = 50_000;

/// A budget per period, on several CPUs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mpr {
    budget_ns: u64,
    period_ns: u64,
    cpus: u32,
}

impl Mpr {
    /// `None` unless 0 < budget ≤ CPUs·period, both in [`crate::TIME_MAX_NS`].
    pub fn new(budget_ns: u64, period_ns: u64, cpus: u32) -> Option<Self> {
        let most = u128::from(period_ns) * u128::from(cpus);
        let fits = 0 < budget_ns && u128::from(budget_ns) <= most;
        let short = budget_ns.max(period_ns) <= crate::TIME_MAX_NS;
        (fits && short).then_some(Self { budget_ns, period_ns, cpus })
    }

    /// Whole CPUs; `None`: not one.
    pub fn whole(cpus: u32) -> Option<Self> {
        Self::new(cpus.into(), 1, cpus)
    }

    /// On which it is spent at most at any time.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// CPU time per time in the long run.
    pub fn rate(&self) -> Exact {
        ratio(self.budget_ns, self.period_ns)
    }

    /// The least that any window of that length is given.
    pub fn supply(&self, window_ns: u64) -> u128 {
        let (budget, cpus) = (u128::from(self.budget_ns), u128::from(self.cpus));
        let (period, window) = (cpus * u128::from(self.period_ns), cpus * u128::from(window_ns));
        let whole = (window + budget).saturating_sub(period) / period;
        whole * budget + (window + 2 * budget).saturating_sub((whole + 2) * period)
    }

    /// The longest time until that much is given, in whole ns, rounded up.
    pub fn time_for(&self, work_ns: u128) -> u64 {
        if work_ns == 0 {
            return 0;
        }
        let (budget, cpus) = (u128::from(self.budget_ns), u128::from(self.cpus));
        let whole = (work_ns - 1) / budget;
        let until = whole.saturating_add(2).saturating_mul(cpus * u128::from(self.period_ns)) - 2 * budget;
        u64::try_from(until.saturating_add(work_ns - whole * budget).div_ceil(cpus)).unwrap_or(u64::MAX)
    }
}

/// Whether each of `tasks` is shown to meet its deadlines under global EDF as long as the others do. Deadlines are at most
/// periods, nobody is blocked, each has room for its work and the longest time for which it suspends itself, of which there is one per
/// task in `suspensions`.
///
/// Windows are first looked at for all tasks together, from the longest down: work that is not cut is more, by as much for every task,
/// and then the less the smaller m·(C + S) − C is. So where it is supplied for one task, it is for all that follow in this order, and
/// what remains for the condition itself are windows that are short.
pub(crate) fn shown(tasks: &[Task], suspensions: &[u64], supply: &Mpr, watch: &Watch) -> Vec<bool> {
    let room = |task: &Task| task.deadline_ns - task.jitter_ns;
    let tasks: Vec<_> =
        tasks.iter().map(|task| Task { deadline_ns: room(task), jitter_ns: 0, ..*task }).collect();
    let mut shown = vec![false; tasks.len()];
    let set = Set { tasks: &tasks, suspensions, cpus: supply.cpus };
    let Some(longest) = set.longest_window(supply) else { return shown };
    let mut order: Vec<usize> = (0..tasks.len()).collect();
    // m·(C + S) − C.
    let apart = |index: &usize| {
        let (work, suspension) = (u128::from(tasks[*index].work_ns), u128::from(suspensions[*index]));
        u128::from(supply.cpus - 1) * work + u128::from(supply.cpus) * suspension
    };
    order.sort_by_key(|index| std::cmp::Reverse(apart(index)));
    let (mut left, mut more) = (WINDOWS_MAX, Vec::new());
    let mut window = tasks.iter().map(|task| task.deadline_ns).fold(longest, u64::max);
    for index in order {
        let least = tasks[index].deadline_ns;
        let uncut = |window| set.uncut_demand(index, window, &mut more);
        window = supplied_down_to(supply, window, least, &mut left, uncut);
        if left == 0 || watch.is_ended() {
            break;
        }
        let cut = |window| set.demand(index, window, &mut more);
        let mut alone = WINDOWS_MAX;
        shown[index] = supplied_down_to(supply, window, least, &mut alone, cut) < least;
    }
    shown
}

/// Tasks and the longest suspension of each.
#[derive(Clone, Copy)]
struct Set<'a> {
    tasks: &'a [Task],
    suspensions: &'a [u64],
    cpus: u32,
}

impl Set<'_> {
    /// What is lost at most while a job runs or is suspended that is not done: m·(C + S − 1).
    fn beside(&self, index: usize) -> u128 {
        let own = u128::from(self.tasks[index].work_ns) + u128::from(self.suspensions[index]);
        u128::from(self.cpus) * (own - 1)
    }

    /// From there on the demand of no task can reach the supply: it is at most U·t + Σ U·(T − D) + the works that are carried in
    /// and m·(C + S), the supply at least Θ/Π·(t − 2(Π − Θ/m)). `None` if there is no such window, or none that is short enough.
    fn longest_window(&self, supply: &Mpr) -> Option<u64> {
        let Self { tasks, suspensions, .. } = *self;
        let cpus = u64::from(supply.cpus);
        // A window may be longer than it must be.
        let mut slack = supply.rate() - utilisation_bounds(tasks).1;
        if slack <= whole(0) {
            slack = supply.rate() - utilisation(tasks);
        }
        if slack <= whole(0) {
            return None;
        }
        let early = tasks.iter().map(|task| Task { work_ns: 1, ..*task });
        let early = early.zip(tasks).map(|(one, task)| {
            utilisation(&[one]) * whole(task.work_ns) * whole(task.period_ns - task.deadline_ns)
        });
        let of = |suspends: bool| {
            let pairs = tasks.iter().zip(suspensions).filter(move |(_, longest)| (**longest > 0) == suspends);
            pairs.map(|(task, _)| task.work_ns)
        };
        let mut works: Vec<_> = of(false).collect();
        works.sort_unstable_by(|a, b| b.cmp(a));
        let carried = works.into_iter().take(supply.cpus as usize - 1).chain(of(true)).map(whole);
        let own = tasks.iter().zip(suspensions).map(|(task, longest)| task.work_ns + longest).max();
        let own = whole(cpus) * whole(own.unwrap_or(0));
        let wait = whole(supply.period_ns) - whole(supply.budget_ns) / whole(cpus);
        let rest = early.chain(carried).fold(own, |sum, part| sum + part) + whole(2) * supply.rate() * wait;
        let window = u64::try_from((rest / slack).ceil().to_integer()).ok()?;
        (window < WINDOW_MAX_NS).then_some(window + 1)
    }

    /// At least the left side of the condition: nothing is cut.
    fn uncut_demand(&self, index: usize, window: u64, more: &mut Vec<u64>) -> u128 {
        let mut sum = self.beside(index);
        more.clear();
        for (task, suspension) in self.tasks.iter().zip(self.suspensions) {
            let jobs = (window + task.period_ns - task.deadline_ns) / task.period_ns;
            let first = task.work_ns.min(window.saturating_sub(jobs.saturating_mul(task.period_ns)));
            sum += u128::from(jobs) * u128::from(task.work_ns);
            if *suspension > 0 {
                sum += u128::from(first);
            } else {
                more.push(first);
            }
        }
        sum + largest(more, self.cpus) - u128::from(self.tasks[index].work_ns)
    }

    /// The left side of the condition.
    fn demand(&self, index: usize, window: u64, more: &mut Vec<u64>) -> u128 {
        let own = self.tasks[index].work_ns + self.suspensions[index];
        let mut sum = self.beside(index);
        more.clear();
        for (at, (task, suspension)) in self.tasks.iter().zip(self.suspensions).enumerate() {
            let jobs = (window + task.period_ns - task.deadline_ns) / task.period_ns;
            let (mut due, mut cut) = (u128::from(jobs) * u128::from(task.work_ns), window - own + 1);
            if at == index {
                due -= u128::from(task.work_ns);
                cut = window - task.deadline_ns;
            }
            let first = task.work_ns.min(window.saturating_sub(jobs.saturating_mul(task.period_ns)));
            let fresh = due.min(cut.into());
            let carried = (due + u128::from(first)).min(cut.into());
            if *suspension > 0 {
                sum += carried;
            } else {
                sum += fresh;
                more.push(u64::try_from(carried - fresh).unwrap_or(u64::MAX));
            }
        }
        sum + largest(more, self.cpus)
    }
}

/// The longest window up to `longest` in which the demand is not known to be supplied; less than `least`: in all from there on it is.
/// No more than `left` are looked at.
///
/// Where the demand of t is supplied within t' ≤ t, it is not more than that in those from t' to t, since it grows with the window.
fn supplied_down_to(
    supply: &Mpr,
    longest: u64,
    least: u64,
    left: &mut u32,
    mut demand: impl FnMut(u64) -> u128,
) -> u64 {
    let mut window = longest;
    while window >= least && *left > 0 {
        *left -= 1;
        let enough = supply.time_for(demand(window) + 1);
        if enough > window {
            break;
        }
        window = enough - 1;
    }
    window
}

/// The sum of the m − 1 largest.
fn largest(more: &mut Vec<u64>, cpus: u32) -> u128 {
    let carriers = cpus as usize - 1;
    if carriers < more.len() {
        more.select_nth_unstable_by(carriers, |a, b| b.cmp(a));
        more.truncate(carriers);
    }
    more.iter().map(|more| u128::from(*more)).sum()
}
