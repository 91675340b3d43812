//! Locks: how long a task may wait for less urgent ones that hold them (priority inversion), and where tasks could wait for each
//! other for ever (deadlock).
//!
//! A less urgent task delays a more urgent one only while it holds a lock that the latter, or one at least as urgent, may come to
//! wait for. A lock has that *reach* by its users; and one that is requested within a section of another lock has the reach of that
//! one, since who waits for the outer lock then waits for the holder of the inner one. Within such a section the holder runs in
//! the place of who waits; outside of it, it does not run before that one is done. So one job of each less urgent task counts, with one section, which
//! it entered before.
//!
//! | protocol | blocking of task i |
//! |---|---|
//! | none | no bound: while the holder does not run, any number of jobs of others between the two may |
//! | inheritance (PIP) | the largest sum of sections that reach i: of each less urgent task one at most, and of each lock one at most (no two tasks have the same lock) |
//! | ceiling (PCP), immediate ceiling, SRP | the longest section of a less urgent task whose lock has a user at least as urgent as i: one only |
//!
//! Of nested sections the outermost one that reaches i counts: the holder is back at its own priority after it.
//!
//! Example: three tasks, the first and the last with one lock, for 1 and 2 ms. Both protocols give the first and the second 2 ms of
//! blocking; without any the first waits for the second one's work, too.
//!
//! Sources: Sha, Rajkumar & Lehoczky, "Priority inheritance protocols: an approach to real-time synchronization", IEEE Transactions on
//! Computers 39, 1990 (PIP, PCP, nested sections); Baker, "Stack-based scheduling of realtime processes", Real-Time Systems 3,
//! 1991 (SRP for both policies; with fixed priorities its blocking is that of the immediate ceiling). That inheritance holds
//! below earliest deadline, too: a job that blocks another one has a later deadline and was released before, so its task has a longer
//! deadline (Spuri, "Efficient deadline scheduling in real-time systems", PhD thesis, 1995); without jitter.
//!
//! Task i has to be able to preempt: levels are those of [`crate::FixedPriority::responses_by_level`], or of deadlines. What is found here goes
//! into [`crate::Task::blocking_ns`]. Jobs do not suspend themselves.

use std::collections::BTreeMap;

/// A part of a job within which it holds a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalSection {
    /// Number of the lock.
    pub lock: usize,
    /// CPU time, with that of what is nested in it.
    pub length_ns: u64,
    /// Sections within this one, in their order.
    pub inner: Vec<CriticalSection>,
}

/// What happens when a job requests a lock that is held. All locks of one task have the same protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// It waits, and the holder keeps its priority.
    None,
    /// The holder has the priority of the most urgent job that waits for it, also through others.
    Inheritance,
    /// Priority ceilings of any kind: those that are asked at a request (PCP), that a holder has at once (immediate), or that a job is
    /// not begun below (SRP).
    Ceiling,
}

/// How long less urgent tasks may keep a task waiting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocking {
    /// `None`: there is no bound.
    pub most_ns: Option<u64>,
    /// The sections that this is the sum of; without a bound, one of them.
    pub held: Vec<Held>,
}

/// A section of another task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who holds the lock.
    pub task: usize,
    /// Which lock.
    pub lock: usize,
    /// For how long.
    pub length_ns: u64,
    /// How often it counts.
    pub times: u64,
}

/// The blocking of each task: `sections` of its jobs, `levels` as in [`crate::FixedPriority::responses_by_level`] (equal ones do not block each
/// other, they are counted with all of their work), and the protocol of each lock.
///
/// # Panics
/// When there is not one list of sections per task, or not a protocol for each lock.
pub fn blocking(sections: &[Vec<CriticalSection>], levels: &[u32], protocols: &[Protocol]) -> Vec<Blocking> {
    assert_eq!(sections.len(), levels.len(), "sections of each task");
    let reach = Reach::new(sections, levels, protocols);
    let of = |level: &u32| {
        let mut blocking = Blocking { most_ns: Some(0), held: Vec::new() };
        for protocol in [Protocol::Ceiling, Protocol::Inheritance, Protocol::None] {
            let mut held = Vec::new();
            for (task, sections) in sections.iter().enumerate().filter(|(task, _)| levels[*task] > *level) {
                for section in sections.iter().filter(|section| protocols[section.lock] == protocol) {
                    reach.collect(section, task, *level, &mut held);
                }
            }
            if protocol == Protocol::None && !held.is_empty() {
                return Blocking { most_ns: None, held: longest(&held) };
            }
            let held = if protocol == Protocol::Inheritance { apart(&held) } else { longest(&held) };
            blocking.most_ns =
                held.iter().fold(blocking.most_ns, |sum, held| sum?.checked_add(held.length_ns));
            blocking.held.extend(held);
        }
        blocking
    };
    levels.iter().map(of).collect()
}

/// With inheritance, for each task and each of its sections that are not within others: for how long a job of `task` may wait for what is
/// held in it, also through others. What they wait for in turn is not counted there.
pub fn reaching(sections: &[Vec<CriticalSection>], task: usize, locks: usize) -> Vec<Vec<u64>> {
    let levels: Vec<_> = (0..sections.len()).map(|other| u32::from(other != task)).collect();
    let reach = Reach::new(sections, &levels, &vec![Protocol::Inheritance; locks]);
    let time = |section: &CriticalSection| {
        let mut held = Vec::new();
        reach.collect(section, task, 0, &mut held);
        held.iter().fold(0u64, |sum, held| sum.saturating_add(held.length_ns))
    };
    sections.iter().map(|list| list.iter().map(time).collect()).collect()
}

/// The longest one.
fn longest(held: &[Held]) -> Vec<Held> {
    held.iter().rev().max_by_key(|held| held.length_ns).copied().into_iter().collect()
}

/// Among more sections than that the largest sum is not looked for.
const APART_MAX: usize = 100;

/// Sections of different tasks with different locks whose sum is the largest; where there are very many, a larger sum.
fn apart(held: &[Held]) -> Vec<Held> {
    let one_of_each = |key: &dyn Fn(&Held) -> usize| {
        let mut kept = BTreeMap::<usize, Held>::new();
        for held in held {
            let longest = kept.entry(key(held)).or_insert(*held);
            if held.length_ns > longest.length_ns {
                *longest = *held;
            }
        }
        kept.into_values().collect::<Vec<_>>()
    };
    let sum = |held: &[Held]| held.iter().fold(0u64, |sum, held| sum.saturating_add(held.length_ns));
    let differ = |keys: Vec<usize>| set(keys.clone()).len() == keys.len();
    let (tasks, locks) = (one_of_each(&|held| held.task), one_of_each(&|held| held.lock));
    let (most, is_apart) = if sum(&locks) < sum(&tasks) {
        let is_apart = differ(locks.iter().map(|held| held.task).collect());
        (locks, is_apart)
    } else {
        let is_apart = differ(tasks.iter().map(|held| held.lock).collect());
        (tasks, is_apart)
    };
    if is_apart || held.len() > APART_MAX {
        most
    } else {
        largest_apart(held)
    }
}

/// A matching of tasks and locks of the largest weight: one section more at a time, by the exchange that gains most.
fn largest_apart(held: &[Held]) -> Vec<Held> {
    let length = |at: usize| i128::from(held[at].length_ns);
    let mut chosen = Vec::<usize>::new();
    loop {
        let taken = |key: &dyn Fn(&Held) -> bool| chosen.iter().copied().find(|at| key(&held[*at]));
        let has_lock = |at: usize| taken(&|other| other.lock == held[at].lock);
        let has_task = |at: usize| taken(&|other| other.task == held[at].task);
        // What is gained if that section is the last one to come, and which one comes before it, in whose place its task's was.
        let begin = |at: usize| has_task(at).is_none().then(|| length(at));
        let mut gains: Vec<_> = (0..held.len()).map(begin).collect();
        let mut before = vec![None; held.len()];
        let mut changes = true;
        while changes {
            changes = false;
            for at in 0..held.len() {
                let Some((gain, given)) = gains[at].zip(has_lock(at)) else { continue };
                let others = |next: &usize| *next != given && held[*next].task == held[given].task;
                for next in (0..held.len()).filter(others) {
                    let more = gain - length(given) + length(next);
                    if gains[next].is_none_or(|known| known < more) {
                        (gains[next], before[next], changes) = (Some(more), Some(at), true);
                    }
                }
            }
        }
        let ends = (0..held.len()).filter(|at| has_lock(*at).is_none());
        let best = ends.filter_map(|at| Some((gains[at]?, at))).max().filter(|(gain, _)| *gain > 0);
        let Some((_, last)) = best else { break };
        let path: Vec<_> = std::iter::successors(Some(last), |at| before[*at]).collect();
        let locks: Vec<_> = path.iter().map(|at| held[*at].lock).collect();
        chosen.retain(|at| !locks.contains(&held[*at].lock));
        chosen.extend(path);
    }
    chosen.sort_unstable_by_key(|at| held[*at].task);
    chosen.into_iter().map(|at| held[at]).collect()
}

/// For each lock the most urgent level that may come to wait for it.
struct Reach(Vec<u32>);

impl Reach {
    fn new(sections: &[Vec<CriticalSection>], levels: &[u32], protocols: &[Protocol]) -> Self {
        let mut reach = vec![u32::MAX; protocols.len()];
        let mut nested = Vec::new();
        for (sections, level) in sections.iter().zip(levels) {
            each(sections, &mut Vec::new(), &mut |section, held| {
                reach[section.lock] = reach[section.lock].min(*level);
                // Ceilings keep a job that holds a lock from waiting for another one.
                let waits = protocols[section.lock] != Protocol::Ceiling;
                nested.extend(held.iter().filter(|_| waits).map(|outer| (*outer, section.lock)));
            });
        }
        nested.sort_unstable();
        nested.dedup();
        let mut changes = true;
        while changes {
            changes = false;
            for (outer, inner) in &nested {
                changes |= reach[*outer] < reach[*inner];
                reach[*inner] = reach[*inner].min(reach[*outer]);
            }
        }
        Self(reach)
    }

    /// The outermost sections that reach this level.
    fn collect(&self, section: &CriticalSection, task: usize, level: u32, held: &mut Vec<Held>) {
        if self.0[section.lock] <= level {
            held.push(Held { task, lock: section.lock, length_ns: section.length_ns, times: 1 });
        } else {
            section.inner.iter().for_each(|inner| self.collect(inner, task, level, held));
        }
    }
}

/// Each section, with the locks that are held when it is entered.
fn each<'a>(
    sections: &'a [CriticalSection],
    held: &mut Vec<usize>,
    call: &mut dyn FnMut(&'a CriticalSection, &[usize]),
) {
    for section in sections {
        call(section, held);
        held.push(section.lock);
        each(&section.inner, held, call);
        held.pop();
    }
}

/// A task that holds locks and requests another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which task.
    pub task: usize,
    /// What it holds, the outermost first.
    pub held: Vec<usize>,
    /// What it requests.
    pub wants: usize,
}

/// Steps of the search for tasks that wait for each other.
const STEPS_MAX: u32 = 100_000;

/// Tasks of which each waits for a lock that the next one holds, and the last one for one of the first; they hold no lock in common,
/// so all can have come that far. With ceilings that does not happen: `sections` are those of other locks. In sets with very many
/// nested sections it may be a circle that a common lock prevents.
pub fn deadlock(sections: &[Vec<CriticalSection>]) -> Option<Vec<Request>> {
    let mut requests = Vec::new();
    for (task, sections) in sections.iter().enumerate() {
        each(sections, &mut Vec::new(), &mut |section, held| {
            if !held.is_empty() {
                requests.push(Request { task, held: held.to_vec(), wants: section.lock });
            }
        });
    }
    // Those that can be part of a circle: they wait for what another one holds, and hold what another one waits for.
    let mut before = usize::MAX;
    while requests.len() < before {
        before = requests.len();
        let wanted: Vec<_> = requests.iter().map(|request| request.wants).collect();
        let held: Vec<_> = requests.iter().flat_map(|request| request.held.iter().copied()).collect();
        let (wanted, held) = (set(wanted), set(held));
        requests.retain(|request| {
            let contains = |set: &[usize], lock: &usize| set.binary_search(lock).is_ok();
            contains(&held, &request.wants) && request.held.iter().any(|lock| contains(&wanted, lock))
        });
    }
    let mut steps = STEPS_MAX;
    let found = (0..requests.len()).find_map(|first| {
        let mut circle = vec![first];
        close(&requests, &mut circle, &mut steps).then_some(circle)
    });
    let circle = match found {
        Some(circle) => circle,
        None if steps > 0 => return None,
        None => walk(&requests),
    };
    Some(circle.iter().map(|at| requests[*at].clone()).collect())
}

fn set(mut locks: Vec<usize>) -> Vec<usize> {
    locks.sort_unstable();
    locks.dedup();
    locks
}

/// Add to the circle until its last waits for its first.
fn close(requests: &[Request], circle: &mut Vec<usize>, steps: &mut u32) -> bool {
    let wants = requests[*circle.last().expect("it has a first")].wants;
    if requests[circle[0]].held.contains(&wants) {
        return true;
    }
    for next in circle[0] + 1..requests.len() {
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let request = &requests[next];
        let apart = |at: &usize| {
            let other = &requests[*at];
            other.task != request.task && !other.held.iter().any(|lock| request.held.contains(lock))
        };
        if request.held.contains(&wants) && circle.iter().all(apart) {
            circle.push(next);
            if close(requests, circle, steps) {
                return true;
            }
            circle.pop();
        }
    }
    false
}

/// From one request to one that holds what it wants, until one comes again.
fn walk(requests: &[Request]) -> Vec<usize> {
    let mut walked = vec![0];
    loop {
        let wants = requests[*walked.last().expect("it has a first")].wants;
        let holder = |request: &Request| request.held.contains(&wants);
        let next = requests.iter().position(holder).expect("only those that wait for each other are left");
        if let Some(begin) = walked.iter().position(|at| *at == next) {
            return walked.split_off(begin);
        }
        walked.push(next);
    }
}
