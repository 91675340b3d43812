//! Tasks to CPUs where some are split over two: S-EKG, NPS-F, clustered NPS-F.
//!
//! All CPUs count the same *slots* of S = ⌊T/δ⌋ ns, T being the shortest period, δ ≥ 1. A *server* (a split task, or some
//! tasks by earliest deadline) has a piece of each slot on one CPU, or two: at the end of CPU p's slot and at the begin of
//! p + 1's, which never overlap. Splitting wastes less than partitioning: see the bounds.
//!
//! **Length of a piece.** Let a server's tasks have deadlines equal to periods, and utilisation U. Nothing is due in a window
//! below T ≥ δS, and at most U·t in one of t. Of Θ in each slot a window of nS + r gives at least nΘ + max(0, r − S + Θ), two
//! pieces no less than one. The tightest window is δS + S − Θ, so
//!
//! ```text
//! Θ = S·f(U) is enough, f(U) = (δ + 1)·U / (U + δ)
//! ```
//!
//! **NPS-F.** Tasks first fit, by decreasing utilisation, into bins of utilisation at most 1, blocks of S·f laid end to end over the CPUs; a block that
//! reaches the end of one slot goes on at the begin of the next CPU's. Whatever asks for at most (2δ + 1)/(2δ + 2) of each CPU
//! fits: 75, 83.3, 90, 94.4 % for δ = 1, 2, 4, 8 (of any two bins the sum is above 1, and f is concave). Bletsas & Andersson,
//! RTSS 2009; Real-Time Systems 47, 2011. The bound holds for any order; with this one whatever first fit decreasing places on m CPUs
//! fits, too, since no block is more than a slot.
//!
//! **Clustered NPS-F.** Blocks first fit into clusters of k CPUs, each laid out for itself. Any-fit packing of items of at most
//! 1/k of a cluster never fails below k(m + 1)/(k + 1) CPUs of m, k dividing m, so the bound is that over m times NPS-F's.
//!
//! **S-EKG.** α = ½ + δ − √(δ(δ + 1)) is half the most by which f(U) exceeds U. A CPU is filled up to SEP = 1 − 4α = 65.7, 79.8,
//! 88.9, 94.1 %: tasks above have one each, the others next fit. The one that exceeds is split, hi here and the rest, lo, on
//! the next: pieces of S(α + hi) and S(α + lo), f of it or more. What is left for the CPU's own tasks is at least S(U + 2α): f
//! of them or more. They may run in the split tasks' pieces, too, when those want no CPU. At most m − 1 tasks are split.
//! Whatever asks for at most SEP of each CPU fits. Andersson & Bletsas, ECRTS 2008.
//!
//! **Rounding.** A = ⌈αS⌉ ns, by an integer square root; pieces are rounded up, what fits a CPU is compared exactly. Less than 2 ns
//! of each CPU's slot are lost that way: the bounds as rounded ([`bound`]) are (S − 4A − 2)/S, and (S − 2)/S of NPS-F's.
//!
//! Example, two CPUs, δ = 4, three tasks of 5.5 ms in 10 ms, so S = 2.5 ms: NPS-F gives each 2.5 ms·f(0.55), 1,510,990 ns: the second
//! in pieces of 989,010 on CPU 0 and 521,980 on CPU 1. S-EKG: A = 69,661, and a CPU takes 2,221,356 ns; the second task's 1,375,000
//! are hi = 846,356 and lo = 528,644, its pieces 916,017 and 598,305.
//!
//! What it gives up: a split server moves twice in each slot, used or not. S-EKG's margins are those of the worst utilisation.

use crate::partition::compare_shares;
use crate::task::{compare_utilisation, utilisation, Task};
use tierce_guarantee::{ratio, whole, Exact};

/// Which way to assign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Single tasks are split.
    SEkg,
    /// Bins of tasks are split.
    NpsF,
    /// The same within clusters of so many CPUs.
    Clustered(u32),
}

impl Algorithm {
    /// CPUs over which servers are laid end to end.
    fn cluster(self, cpus: u32) -> u32 {
        match self {
            Self::Clustered(cluster) => cluster,
            Self::SEkg | Self::NpsF => cpus,
        }
    }
}

/// What is taken in the middle of whoever runs: no more often than once per `every_ns`, on each CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interrupt {
    /// Least distance of two.
    pub every_ns: u64,
    /// How long one takes.
    pub takes_ns: u64,
}

/// What the machine takes and the tasks have to be given more for. Each number is the most there is (ReTAS, section 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// From the begin of a piece until its server runs: the switch to it, a timer that is late, a CPU that has not let go
    /// yet. Each piece is longer by that. A CPU with one server only has none.
    pub reserve_jitter_ns: u64,
    /// From a nominal release until the job is known to be ready. Deadlines and distances shrink by that: a job that comes
    /// late is due no later, and the next may come in time.
    pub release_jitter_ns: u64,
    /// A switch within a piece. A job pays three: to it, back to whom it preempted, and one under way when it comes, since
    /// a CPU at work on a switch does nothing else.
    pub switch_ns: u64,
    /// Ticks and others. A job of period T pays ⌊T/every⌋ + 1 of each: no more can fall into the time from its release to
    /// its deadline, so no more into where it runs.
    pub interrupts: Vec<Interrupt>,
}

impl Costs {
    /// The task with what it has to pay, its deadline being its period. A deadline below the period counts as period.
    fn size(&self, task: &Task) -> Option<Task> {
        let late = task.jitter_ns.checked_add(self.release_jitter_ns)?;
        let period_ns =
            task.deadline_ns.min(task.period_ns).checked_sub(late).filter(|period| *period > 0)?;
        let taken = |interrupt: &Interrupt| {
            u128::from(interrupt.takes_ns) * u128::from(period_ns / interrupt.every_ns.max(1) + 1)
        };
        let stolen: u128 = self.interrupts.iter().map(taken).sum();
        let work = u128::from(task.work_ns) + 3 * u128::from(self.switch_ns) + stolen;
        let work_ns = u64::try_from(work).ok().filter(|work| *work <= period_ns)?;
        Some(Task::new(work_ns, period_ns))
    }
}

/// How to split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which way.
    pub algorithm: Algorithm,
    /// CPUs.
    pub cpus: u32,
    /// Slots in the shortest period. The more, the more fits, and the more is switched.
    pub delta: u32,
    /// What the machine takes.
    pub costs: Costs,
    /// No piece is shorter, but that of who has a CPU. What that costs, twice of it at each end of a CPU's slot, is lost.
    pub piece_min_ns: u64,
    /// So much of each CPU's slot is left to whoever else there is.
    pub rest_ns: u64,
}

/// A part of each slot on one CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where.
    pub cpu: u32,
    /// From the begin of the slot.
    pub offset_ns: u64,
    /// Offset and length together are at most the slot.
    pub length_ns: u64,
}

/// Who gets pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// By earliest deadline; the indices of the tasks in their order.
    pub tasks: Vec<usize>,
    /// Of one CPU, or of two neighbours: the end of the first one's slot and the begin of the second one's.
    pub pieces: Vec<Piece>,
    /// What it needs of each slot: S·f(U), rounded up. The pieces are as long, or longer, after the jitter of each.
    pub needs_ns: u64,
    /// It may also run in other servers' pieces while these want no CPU. Nothing rests on it.
    pub fills: bool,
}

/// Who runs where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Length of a slot.
    pub slot_ns: u64,
    /// By their first CPU and offset.
    pub servers: Vec<Server>,
    /// The tasks with what they pay, in their order: what the servers are long enough for.
    pub sized: Vec<Task>,
    /// What is left to others, on each CPU in turn, after the piece that its slot begins with, if something is to be left.
    pub rest: Vec<Piece>,
}

impl Assignment {
    /// Servers on two CPUs.
    pub fn split(&self) -> usize {
        self.servers.iter().filter(|server| server.pieces.len() > 1).count()
    }
}

/// Why there is no assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no task, so no shortest period.
    NoTasks,
    /// δ is 0.
    DeltaIsZero,
    /// There is no CPU.
    CpusAreZero,
    /// Clusters are of equal size, so it divides the number of CPUs.
    ClusterMustDivide,
    /// Times of this task are 0 where they may not, or longer than 2^60 ns.
    TimesAreInRange(usize),
    /// This task may wait for others' work.
    TasksAreNotBlocked(usize),
    /// This task needs more than a CPU has for it, what the machine takes included.
    MoreThanACpu(usize),
    /// δ is more than the shortest period has ns.
    SlotIsZero,
    /// The CPUs are full.
    NoRoom {
        /// Utilisation of each CPU, what the machine takes included; above the bound.
        asked: Exact,
        /// Up to this there is always room.
        bound: Exact,
    },
}

impl Refusal {
    /// The rule, snake_case.
    pub fn rule(&self) -> &'static str {
        match self {
            Self::NoTasks => "tasks_are_there",
            Self::DeltaIsZero => "delta_is_at_least_one",
            Self::CpusAreZero => "cpus_are_at_least_one",
            Self::ClusterMustDivide => "cluster_divides_cpus",
            Self::TimesAreInRange(_) => "times_are_in_range",
            Self::TasksAreNotBlocked(_) => "tasks_are_not_blocked",
            Self::MoreThanACpu(_) => "task_needs_at_most_a_cpu",
            Self::SlotIsZero => "slot_is_at_least_1ns",
            Self::NoRoom { .. } => "servers_fit_the_cpus",
        }
    }
}

/// The slot and what is rounded from it.
struct Slot {
    ns: u64,
    delta: u32,
    jitter_ns: u64,
    piece_min_ns: u64,
    rest_ns: u64,
}

impl Slot {
    /// A = ⌈αS⌉: the least A with S(2δ + 1) − 2A ≤ √(4S²δ(δ + 1)). S·δ is at most 2^60.
    fn alpha_ns(&self) -> u64 {
        let (slot, delta) = (u128::from(self.ns), u128::from(self.delta));
        let root = (4 * slot * delta * slot * (delta + 1)).isqrt();
        (slot * (2 * delta + 1) - root).div_ceil(2) as u64
    }

    /// What the pieces of a split task are longer than their share of it; no less than a piece may be.
    fn margin_ns(&self) -> u64 {
        self.alpha_ns().max(self.piece_min_ns)
    }

    /// Of one CPU, for servers.
    fn room_ns(&self) -> u64 {
        self.ns.saturating_sub(self.rest_ns)
    }

    /// The largest utilisation of a server, f of which leaves the rest its part: U with S·f(U) = c is δc/((δ + 1)S − c).
    fn most(&self) -> (u64, u64) {
        let whole = self.room_ns() == self.ns;
        let most_ns = if whole { self.ns } else { self.room_ns().saturating_sub(self.jitter_ns) };
        (u64::from(self.delta) * most_ns, u64::from(self.delta) * self.ns + (self.ns - most_ns))
    }

    /// A task that is more than that.
    fn too_much(&self, sized: &[Task]) -> Option<usize> {
        sized.iter().position(|task| compare_utilisation(&[*task], self.most()).is_gt())
    }

    /// Up to this S-EKG fills a CPU: two margins A each for the pieces at both ends, and three pieces may begin late.
    fn fill_ns(&self) -> u64 {
        self.room_ns()
            .saturating_sub(self.margin_ns().saturating_mul(4))
            .saturating_sub(self.jitter_ns.saturating_mul(3))
    }

    /// S·u, exactly.
    fn share(&self, task: &Task) -> Exact {
        whole(self.ns) * ratio(task.work_ns, task.period_ns)
    }

    /// Θ of that utilisation.
    fn block_ns(&self, used: &Exact) -> u64 {
        let delta = whole(u64::from(self.delta));
        up(&(whole(self.ns) * (&delta + whole(1)) * used / (used + delta)))
    }

    /// Some of `tasks` as one server.
    fn server(&self, tasks: &[Task], members: Vec<usize>, pieces: Vec<Piece>, fills: bool) -> Server {
        let mine: Vec<_> = members.iter().map(|index| tasks[*index]).collect();
        Server { needs_ns: self.block_ns(&utilisation(&mine)), tasks: members, pieces, fills }
    }

    /// All of one CPU.
    fn all(&self, cpu: u32) -> Piece {
        Piece { cpu, offset_ns: 0, length_ns: self.room_ns() }
    }

    /// Servers are laid out as if slots were shorter by the rest; put that in, after the second piece of a split server.
    fn put_rest(&self, servers: &mut [Server], cpus: u32) -> Vec<Piece> {
        if self.rest_ns == 0 {
            return Vec::new();
        }
        let place = |cpu| Piece { cpu, offset_ns: 0, length_ns: self.rest_ns };
        let mut rest: Vec<_> = (0..cpus).map(place).collect();
        for server in servers {
            server.pieces[0].offset_ns += self.rest_ns;
            if let [_, second] = server.pieces[..] {
                rest[second.cpu as usize].offset_ns = second.length_ns;
            }
        }
        rest
    }
}

/// To whole ns, which fit.
fn up(ns: &Exact) -> u64 {
    u64::try_from(ns.ceil().to_integer()).unwrap_or(u64::MAX)
}

/// Assign `tasks`: S-EKG in their order.
pub fn assign(tasks: &[Task], question: &Question) -> Result<Assignment, Refusal> {
    let sized = sized(tasks, question)?;
    let slot = slot(&sized, question)?;
    if let Some(index) = slot.too_much(&sized) {
        return Err(Refusal::MoreThanACpu(index));
    }
    let Some(mut servers) = servers(&sized, question, &slot) else {
        let asked = utilisation(&sized) / whole(question.cpus.into());
        return Err(Refusal::NoRoom { asked, bound: bound_in(question, &slot) });
    };
    let rest = slot.put_rest(&mut servers, question.cpus);
    servers.sort_by_key(|server| server.pieces.first().map(|piece| (piece.cpu, piece.offset_ns)));
    Ok(Assignment { slot_ns: slot.ns, servers, sized, rest })
}

/// Length of a slot.
pub fn slot_ns(tasks: &[Task], question: &Question) -> Result<u64, Refusal> {
    Ok(slot(&sized(tasks, question)?, question)?.ns)
}

fn servers(sized: &[Task], question: &Question, slot: &Slot) -> Option<Vec<Server>> {
    let cpus = question.cpus;
    if compare_utilisation(sized, (cpus.into(), 1)).is_gt() {
        return None;
    }
    match question.algorithm {
        Algorithm::SEkg => s_ekg(sized, cpus, slot),
        Algorithm::NpsF | Algorithm::Clustered(_) => {
            nps_f(sized, cpus, question.algorithm.cluster(cpus), slot)
        }
    }
}

/// The utilisation of each CPU, costs included, up to which [`assign`] never fails for want of room.
pub fn bound(tasks: &[Task], question: &Question) -> Result<Exact, Refusal> {
    Ok(bound_in(question, &slot(&sized(tasks, question)?, question)?))
}

fn sized(tasks: &[Task], question: &Question) -> Result<Vec<Task>, Refusal> {
    let size = |(index, task): (usize, &Task)| match task {
        _ if !task.is_valid() || task.deadline_ns == 0 => Err(Refusal::TimesAreInRange(index)),
        _ if task.blocking_ns > 0 => Err(Refusal::TasksAreNotBlocked(index)),
        _ => question.costs.size(task).ok_or(Refusal::MoreThanACpu(index)),
    };
    tasks.iter().enumerate().map(size).collect()
}

fn slot(sized: &[Task], question: &Question) -> Result<Slot, Refusal> {
    let Question { delta, cpus, ref costs, .. } = *question;
    let cluster = question.algorithm.cluster(cpus);
    let shortest = sized.iter().map(|task| task.period_ns).min();
    match shortest {
        None => Err(Refusal::NoTasks),
        _ if delta == 0 => Err(Refusal::DeltaIsZero),
        _ if cpus == 0 => Err(Refusal::CpusAreZero),
        _ if cluster == 0 || cpus % cluster != 0 => Err(Refusal::ClusterMustDivide),
        Some(shortest) if shortest < u64::from(delta) => Err(Refusal::SlotIsZero),
        Some(shortest) => {
            let (ns, jitter_ns) = (shortest / u64::from(delta), costs.reserve_jitter_ns);
            let Question { piece_min_ns, rest_ns, .. } = *question;
            Ok(Slot { ns, delta, jitter_ns, piece_min_ns, rest_ns })
        }
    }
}

/// Of each slot S-EKG loses less than 2 ns beyond its margins. Of two of NPS-F's bins the sum is above the largest utilisation g
/// of a bin (1, unless something is left to others), so there are less than 2/g of them for each CPU that is full, and all
/// but one are above g/2, where f(U)/U is at most (δ + 1)/(δ + g/2); each loses 1 ns, up to two jitters and two shortest pieces.
fn bound_in(question: &Question, slot: &Slot) -> Exact {
    let (cpus, delta) = (u64::from(question.cpus), u64::from(slot.delta));
    let (over, under) = slot.most();
    match question.algorithm {
        Algorithm::SEkg => ratio(slot.fill_ns().saturating_sub(2), slot.ns),
        _ if over == 0 => whole(0),
        Algorithm::NpsF | Algorithm::Clustered(_) => {
            let cluster = u64::from(question.algorithm.cluster(question.cpus));
            let half = ratio(over, under) / whole(2);
            let wasted = slot.jitter_ns.saturating_add(slot.piece_min_ns).saturating_mul(2).saturating_add(1);
            let kept = whole(slot.room_ns()) - whole(wasted) / &half;
            let bound = kept / whole(slot.ns) * (whole(delta) + half) / whole(delta + 1);
            (bound * ratio(cluster * (cpus + 1), cpus * (cluster + 1))).max(whole(0))
        }
    }
}

fn s_ekg(tasks: &[Task], cpus: u32, slot: &Slot) -> Option<Vec<Server>> {
    let (margin, fill, jitter) = (slot.margin_ns(), slot.fill_ns(), slot.jitter_ns);
    let (heavy, light): (Vec<_>, Vec<_>) =
        (0..tasks.len()).partition(|index| up(&slot.share(&tasks[*index])) > fill);
    if heavy.len() > cpus as usize || heavy.len() == cpus as usize && !light.is_empty() {
        return None;
    }
    let alone = |(cpu, index): (u32, &usize)| slot.server(tasks, vec![*index], vec![slot.all(cpu)], false);
    let mut servers: Vec<_> = (0..).zip(&heavy).map(alone).collect();
    // The CPU that is being filled: its own tasks and S·U of them; `low` and `x` of the task split before.
    let mut cpu = heavy.len() as u32;
    let (mut own, mut used, mut low, mut x) = (Vec::new(), whole(0), 0, 0);
    let own_piece = |own: &mut Vec<usize>, cpu: u32, x: u64, y: u64| {
        let length_ns = slot.room_ns() - x - y;
        let pieces = vec![Piece { cpu, offset_ns: x, length_ns }];
        (!own.is_empty()).then(|| slot.server(tasks, std::mem::take(own), pieces, true))
    };
    for index in light {
        let share = slot.share(&tasks[index]);
        let left = whole(fill) - whole(low) - &used;
        if share <= left {
            own.push(index);
            used += share;
            continue;
        }
        if cpu + 1 == cpus {
            return None;
        }
        let high = u64::try_from(left.to_integer()).unwrap_or(0);
        let y = if high > 0 { margin + high + jitter } else { 0 };
        servers.extend(own_piece(&mut own, cpu, x, y));
        if high > 0 {
            low = up(&share) - high;
            x = margin + low + jitter;
            let first = Piece { cpu, offset_ns: slot.room_ns() - y, length_ns: y };
            let second = Piece { cpu: cpu + 1, offset_ns: 0, length_ns: x };
            servers.push(slot.server(tasks, vec![index], vec![first, second], false));
            used = whole(0);
        } else {
            (own, used, low, x) = (vec![index], share, 0, 0);
        }
        cpu += 1;
    }
    servers.extend(own_piece(&mut own, cpu, x, 0));
    Some(servers)
}

fn nps_f(tasks: &[Task], cpus: u32, cluster: u32, slot: &Slot) -> Option<Vec<Server>> {
    // First fit. Of any two bins the sum is above the most.
    let mut bins: Vec<(Vec<usize>, Vec<Task>)> = Vec::new();
    let mut order: Vec<_> = (0..tasks.len()).collect();
    order.sort_by(|a, b| compare_shares(&tasks[*b], &tasks[*a]));
    for index in order {
        let task = &tasks[index];
        let fits = |members: &mut Vec<Task>| {
            members.push(*task);
            let fits = compare_utilisation(members, slot.most()).is_le();
            if !fits {
                members.pop();
            }
            fits
        };
        match bins.iter_mut().find_map(|(indices, members)| fits(members).then_some(indices)) {
            Some(indices) => indices.push(index),
            None => bins.push((vec![index], vec![*task])),
        }
    }
    bins.iter_mut().for_each(|(indices, _)| indices.sort_unstable());
    let blocks: Vec<_> = bins.iter().map(|(_, members)| slot.block_ns(&utilisation(members))).collect();
    let mut clusters: Vec<Vec<usize>> = vec![Vec::new(); (cpus / cluster) as usize];
    for bin in 0..bins.len() {
        let fits = |members: &mut Vec<usize>| {
            members.push(bin);
            let fits = lay(members, &blocks, cluster, slot).is_some();
            if !fits {
                members.pop();
            }
            fits
        };
        clusters.iter_mut().position(fits)?;
    }
    let mut servers = Vec::new();
    for (number, members) in (0..).zip(&clusters) {
        for (bin, mut pieces) in lay(members, &blocks, cluster, slot)? {
            pieces.iter_mut().for_each(|piece| piece.cpu += number * cluster);
            let (tasks, needs_ns) = (std::mem::take(&mut bins[bin].0), blocks[bin]);
            servers.push(Server { tasks, pieces, needs_ns, fills: false });
        }
    }
    Some(servers)
}

/// Blocks end to end over the CPUs of a cluster, each piece longer by the jitter. One that two pieces would not fit into a slot
/// has a CPU, first of all.
fn lay(members: &[usize], blocks: &[u64], cpus: u32, slot: &Slot) -> Option<Vec<(usize, Vec<Piece>)>> {
    let (jitter, least) = (slot.jitter_ns, slot.piece_min_ns);
    let most = slot.room_ns().saturating_sub(jitter.saturating_mul(2)).saturating_sub(least);
    let (alone, others): (Vec<_>, Vec<_>) = members.iter().copied().partition(|bin| blocks[*bin] >= most);
    let mut laid: Vec<(usize, _)> = (0..).zip(alone).map(|(cpu, bin)| (bin, vec![slot.all(cpu)])).collect();
    let (mut cpu, mut at) = (laid.len() as u32, 0);
    for bin in others {
        let length_ns = (blocks[bin] + jitter).max(least);
        let room = slot.room_ns() - at;
        let fits = length_ns <= room;
        if !fits && room < least.max(1) {
            (cpu, at) = (cpu + 1, 0);
        }
        let mut pieces = vec![Piece { cpu, offset_ns: at, length_ns }];
        if !fits && at > 0 {
            // A first piece within the jitter is of no use, but the rest is long enough then.
            let rest = (length_ns + jitter - room).max(least);
            pieces = vec![
                Piece { cpu, offset_ns: at, length_ns: room },
                Piece { cpu: cpu + 1, offset_ns: 0, length_ns: rest },
            ];
        }
        (cpu, at) = pieces.last().map_or((cpu, at), |piece| (piece.cpu, piece.offset_ns + piece.length_ns));
        laid.push((bin, pieces));
    }
    laid.iter().flat_map(|(_, pieces)| pieces).all(|piece| piece.cpu < cpus).then_some(laid)
}

/// What else would be assigned, each being changed alone, no further than [`REACH`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remedy {
    /// The nearest δ.
    pub delta: Option<u32>,
    /// The smallest larger number of CPUs.
    pub cpus: Option<u32>,
}

/// How far away another δ is looked for, and how many more CPUs or clusters.
pub const REACH: u32 = 64;

/// What would help where there is no room.
pub fn remedy(tasks: &[Task], question: &Question) -> Remedy {
    let Ok(sized) = sized(tasks, question) else { return Remedy::default() };
    let holds = |delta: u32, cpus: u32| {
        let question = Question { delta, cpus, ..question.clone() };
        slot(&sized, &question)
            .is_ok_and(|slot| slot.too_much(&sized).is_none() && servers(&sized, &question, &slot).is_some())
    };
    let Question { delta, cpus, algorithm, .. } = *question;
    let near = (1..=REACH).flat_map(|by| [delta.checked_add(by), delta.checked_sub(by)]).flatten();
    let step = if let Algorithm::Clustered(cluster) = algorithm { cluster } else { 1 };
    let more = (1..=REACH).filter_map(|by| cpus.checked_add(step.checked_mul(by)?));
    Remedy {
        delta: near.into_iter().find(|delta| holds(*delta, cpus)),
        cpus: more.into_iter().find(|cpus| holds(delta, *cpus)),
    }
}
