//! Who has which lock, and where jobs request and leave them; which jobs do not give way, and where. How that decides who runs is in
//! `simulation/locks.rs`.

use std::collections::VecDeque;
use tierce_plan::{Plan, Preemption, Protocol, Section, Shape};

/// At this place of a job.
#[derive(Clone, Copy, Debug)]
enum Op {
    Lock(usize),
    Unlock(usize),
    /// A region without preemption begins, or ends.
    Keep,
    GiveWay,
}

/// The places of a job at which locks are requested and left, and regions without preemption begin and end.
#[derive(Clone, Debug)]
pub struct Script {
    ops: Vec<(u64, Op)>,
    at: usize,
    /// Work done up to the last place, and in all.
    done_ns: u64,
    work_ns: u64,
    /// Whole jobs are regions.
    whole: bool,
    /// It is at the begin of a region, or within it.
    keeps: bool,
    /// The longest floating region, 0: it has none.
    floating_ns: u64,
    /// The place at which the floating region ends in which it is.
    floats_until_ns: Option<u64>,
    /// It has gone on since it gave way.
    goes_on: bool,
    /// It has a preemption threshold.
    threshold: bool,
    /// How many locks it has that the budget above it knows of: one within another.
    within_budget: u32,
}

impl Script {
    /// Of a task, if it has sections or regions.
    pub fn of(plan: &Plan, task: usize) -> Option<Box<Script>> {
        let load = plan.tasks[task].load.as_ref()?;
        let mut ops = Vec::new();
        places(load.sections(), 0, &mut ops);
        if let Preemption::Regions(regions) = load.preemption() {
            for region in regions {
                ops.push((region.at_ns, Op::Keep));
                ops.push((region.at_ns + region.length_ns, Op::GiveWay));
            }
        }
        let whole = *load.preemption() == Preemption::None;
        let floating_ns =
            if let Preemption::Floating(length_ns) = load.preemption() { *length_ns } else { 0 };
        let threshold = matches!(load.preemption(), Preemption::Threshold(_));
        let needed = whole || threshold || floating_ns > 0 || !ops.is_empty();
        let script = Script {
            ops,
            at: 0,
            done_ns: 0,
            work_ns: 0,
            whole,
            keeps: false,
            floating_ns,
            floats_until_ns: None,
            goes_on: false,
            threshold,
            within_budget: 0,
        };
        needed.then(|| Box::new(script))
    }

    /// A job of that work begins: how much until its first place.
    pub fn begin(&mut self, work_ns: u64) -> u64 {
        (self.at, self.done_ns, self.work_ns) = (0, 0, work_ns);
        self.keeps = self.whole;
        self.floats_until_ns = None;
        self.left_ns()
    }

    /// The section that begins at the next place: for how long, and with which locks, those within it included.
    fn section(&self) -> (u64, impl Iterator<Item = usize> + '_) {
        let (mut depth, mut end) = (0, self.at);
        for (_, op) in &self.ops[self.at..] {
            end += 1;
            match op {
                Op::Lock(_) => depth += 1,
                Op::Unlock(_) => depth -= 1,
                Op::Keep | Op::GiveWay => {}
            }
            if depth == 0 {
                break;
            }
        }
        let ops = &self.ops[self.at..end];
        let length_ns = ops.last().map_or(0, |(at_ns, _)| at_ns - self.done_ns);
        (length_ns, ops.iter().filter_map(|(_, op)| if let Op::Lock(lock) = op { Some(*lock) } else { None }))
    }

    /// The job goes on, perhaps at the begin of a region.
    pub fn enter(&mut self) {
        self.goes_on = true;
        if matches!(self.ops.get(self.at), Some((at_ns, Op::Keep)) if *at_ns == self.done_ns) {
            self.keeps = true;
            self.at += 1;
        }
    }

    /// With so much work left until its next place it does not give way: a region has begun when some of it is done, a floating one at once.
    pub fn keeps(&self, left_ns: u64) -> bool {
        self.floats_until_ns.is_some() || (self.keeps && left_ns < self.left_ns())
    }

    /// Its job has begun, by 1 ns, and does not give way to priorities up to its threshold.
    pub fn has_begun(&self, left_ns: u64) -> bool {
        self.threshold && 0 < left_ns && left_ns < self.work_ns
    }

    /// Another one would preempt it with so much work left until its next place, so a floating region begins, if it has one: how much is
    /// left until that ends. Not where nothing of the job is done, and not twice before it goes on.
    pub fn float(&mut self, left_ns: u64) -> Option<u64> {
        if self.floating_ns == 0 || !self.goes_on || left_ns == 0 {
            return None;
        }
        let done_ns = self.done_ns + self.left_ns() - left_ns;
        if done_ns == 0 {
            return None;
        }
        self.done_ns = done_ns;
        self.floats_until_ns = Some(self.work_ns.min(done_ns.saturating_add(self.floating_ns)));
        Some(self.left_ns())
    }

    /// Work until the next place.
    pub fn left_ns(&self) -> u64 {
        let next_ns = self.floats_until_ns.or(self.ops.get(self.at).map(|op| op.0));
        next_ns.unwrap_or(self.work_ns) - self.done_ns
    }

    /// It has the lock that it has spun for.
    pub fn get(&mut self) {
        self.at += 1;
    }

    /// Nothing is left of the job.
    pub fn is_done(&self) -> bool {
        self.at == self.ops.len() && self.left_ns() == 0
    }
}

/// What is known of a lock.
#[derive(Debug)]
struct Lock {
    protocol: Protocol,
    /// Index of the task that has it.
    holder: Option<u32>,
    /// The node whose tasks it keeps from beginning, and the urgency of the most urgent user; with ceilings.
    ceiling: Option<(usize, u64)>,
    /// Those that sleep until it is free.
    sleeping: Vec<u32>,
    /// Those that spin until it is theirs, the first one first.
    spinning: VecDeque<u32>,
    /// Those that are suspended until it is theirs.
    waiting: Vec<Waiter>,
    /// Of each node with users who suspend themselves: how urgent the most urgent user is that is elsewhere; MPCP's.
    remote: Vec<(usize, u64)>,
    /// Of each node with users who spin, or with budgets that know of it: how urgent the most urgent one there is to which who spins or has it does not
    /// give way.
    keeps: Vec<(usize, u64)>,
    /// The largest priority of budgets of users, where these know of it.
    budget_ceiling: u64,
}

/// A task that is suspended until a lock is its own: the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiter {
    /// How urgent it is, or 0: first come, first served.
    urgency: u64,
    /// The number of its request.
    request: u64,
    task: u32,
}

/// A task that has a lock whose waiters are suspended: the least of its node runs, whoever else is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Boosted {
    /// The ceiling of the lock there, or the number of the request.
    rank: u64,
    /// When it got it, of all.
    since: u64,
    task: u32,
    lock: usize,
}

/// Who waited for what a job has left.
#[derive(Debug, Default)]
pub struct Left {
    /// They sleep.
    pub awake: Vec<u32>,
    /// They spin, and have it now.
    pub next: Vec<u32>,
    /// They are suspended, and have it now.
    pub resumed: Vec<u32>,
    /// The budget above the job is to know that it has no lock any more.
    pub budget: bool,
}

/// What a task needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: it has it all.
    Nothing,
    /// A lock that this task has, or because of which it may not go on while that one has it or spins for it.
    Lock(u32, usize),
    /// A lock that it spins for, and that this task of another CPU has.
    Spin(u32, usize),
    /// A lock that this task has, until it leaves which this one is suspended.
    Suspend(u32, usize),
    /// That its budget says yes to a lock with that ceiling, for so much CPU time at most, 0: any.
    Budget(u64, u64),
}

/// A task that spins for a lock or has it, and does not give way to those of its node up to this urgency.
#[derive(Clone, Copy, Debug)]
struct Within {
    task: u32,
    lock: usize,
    most: u64,
}

/// All locks of a plan.
#[derive(Debug)]
pub struct Locks {
    locks: Vec<Lock>,
    /// Of each task: its node and how urgent it is there.
    urgencies: Vec<Option<(usize, u64)>>,
    /// Of each task: the node against whose tasks regions hold, where it or one of these has some.
    nodes: Vec<Option<usize>>,
    /// Of each node: who last went on, of the tasks directly below it.
    keepers: Vec<Option<u32>>,
    /// Of each node: the tasks directly below it that spin or have locks whose waiters spin.
    within: Vec<Vec<Within>>,
    /// Of each node: the tasks directly below it that have locks whose waiters are suspended, the first one first.
    boosted: Vec<Vec<Boosted>>,
    /// Requests and boosts so far.
    count: u64,
    /// Of each node: the tasks with thresholds directly below it, and how urgent the most urgent is that each does not give way to.
    thresholds: Vec<Vec<(u32, u64)>>,
}

impl Locks {
    /// Nobody has one yet, and nobody is in a region; `None`: there are none.
    pub fn of(plan: &Plan) -> Option<Locks> {
        if plan.locks.is_empty() && !plan.tasks.iter().any(|task| task.has_regions()) {
            return None;
        }
        let shape = Shape::new(plan);
        let nodes = (0..plan.tasks.len()).map(|task| plan.node_of_regions(&shape, task)).collect();
        let keepers = vec![None; plan.nodes.len()];
        let mut thresholds = vec![Vec::new(); plan.nodes.len()];
        for (index, task) in plan.tasks.iter().enumerate() {
            let node = plan.node_of_regions(&shape, index);
            if let (Some(node), Some(priority)) = (node, task.threshold()) {
                thresholds[node].push((index as u32, u64::MAX - priority));
            }
        }
        let urgency = |task: usize| {
            let edge = shape.task_parents[task].first()?;
            Some((plan.edges[*edge].parent, plan.urgency(&shape, task)?))
        };
        let urgencies: Vec<_> = (0..plan.tasks.len()).map(urgency).collect();
        let used: Vec<_> = (0..plan.tasks.len()).map(|task| plan.locks_of(task)).collect();
        let locks = plan.locks.iter().enumerate().map(|(index, lock)| {
            let users = (0..plan.tasks.len()).filter(|task| used[*task].contains(&index));
            let places: Vec<_> = users.filter_map(|task| urgencies[task]).collect();
            let ceiling = places.iter().copied().min_by_key(|(_, urgency)| *urgency);
            let ceiling = ceiling.filter(|_| lock.protocol.has_ceilings());
            let known = lock.protocol.spins() || lock.protocol.is_between_budgets();
            let keeps = if known { keeps(&places, lock.protocol) } else { Vec::new() };
            let budget_ceiling = used.iter().enumerate().filter(|(_, used)| used.contains(&index));
            let budget_ceiling =
                budget_ceiling.filter_map(|(task, _)| plan.budget_priority(&shape, task)).max();
            let remote = if lock.protocol == Protocol::Mpcp { remote(&places) } else { Vec::new() };
            let (sleeping, spinning, waiting) = (Vec::new(), VecDeque::new(), Vec::new());
            Lock {
                protocol: lock.protocol,
                holder: None,
                ceiling,
                sleeping,
                spinning,
                waiting,
                remote,
                keeps,
                budget_ceiling: budget_ceiling.unwrap_or(0),
            }
        });
        let (locks, within) = (locks.collect(), vec![Vec::new(); plan.nodes.len()]);
        let boosted = vec![Vec::new(); plan.nodes.len()];
        Some(Locks { locks, urgencies, nodes, keepers, within, boosted, count: 0, thresholds })
    }

    /// Who last went on, if that is another task directly below the same node.
    pub fn keeper(&self, task: u32) -> Option<u32> {
        self.keepers[self.nodes[task as usize]?].filter(|keeper| *keeper != task)
    }

    /// The other tasks directly below the same node that do not give way to it once their jobs have begun.
    pub fn thresholds(&self, task: u32) -> impl Iterator<Item = u32> + '_ {
        let (node, urgency) = self.urgencies[task as usize].unzip();
        let node = node.filter(|_| self.nodes[task as usize].is_some());
        let all = node.map_or(&[][..], |node| &self.thresholds[node]);
        let holds = move |(other, most): &&(u32, u64)| {
            *other != task && urgency.is_some_and(|urgency| *most <= urgency)
        };
        all.iter().filter(holds).map(|(other, _)| *other)
    }

    /// Another task directly below the same node that spins for a lock or has it, and does not give way to this one.
    fn within(&self, task: u32) -> Option<(u32, usize)> {
        let (node, urgency) = self.urgencies[task as usize]?;
        let others = self.within[node].iter().filter(|other| other.task != task && other.most <= urgency);
        others.min_by_key(|other| other.most).map(|other| (other.task, other.lock))
    }

    /// Another task directly below the same node that has a lock and is boosted above this one.
    fn boosted(&self, task: u32) -> Option<(u32, usize)> {
        let (node, _) = self.urgencies[task as usize]?;
        self.boosted[node].first().filter(|first| first.task != task).map(|first| (first.task, first.lock))
    }

    /// A task has a lock whose waiters are suspended; `request`: the number of its request.
    fn boost(&mut self, task: u32, lock: usize, request: u64) {
        self.locks[lock].holder = Some(task);
        let Some((node, _)) = self.urgencies[task as usize] else { return };
        let about = &self.locks[lock];
        let ceiling = about.remote.iter().find(|remote| remote.0 == node).map(|remote| remote.1);
        let rank = if about.protocol == Protocol::Mpcp { ceiling.unwrap_or(u64::MAX) } else { request };
        self.count += 1;
        let one = Boosted { rank, since: self.count, task, lock };
        let at = self.boosted[node].partition_point(|other| *other < one);
        self.boosted[node].insert(at, one);
    }

    /// A task requests a lock whose waiters are suspended: who has it already.
    fn queue(&mut self, task: u32, lock: usize) -> Option<u32> {
        self.count += 1;
        let request = self.count;
        let Some(holder) = self.locks[lock].holder else {
            self.boost(task, lock, request);
            return None;
        };
        let urgency = self.urgencies[task as usize].map_or(u64::MAX, |(_, urgency)| urgency);
        let urgency = if self.locks[lock].protocol == Protocol::Mpcp { urgency } else { 0 };
        self.locks[lock].waiting.push(Waiter { urgency, request, task });
        Some(holder)
    }

    /// A lock whose waiters are suspended is left: who has it now.
    fn pass_on(&mut self, task: u32, lock: usize) -> Option<u32> {
        if let Some((node, _)) = self.urgencies[task as usize] {
            self.boosted[node].retain(|boosted| boosted.task != task);
        }
        self.locks[lock].holder = None;
        let waiting = &mut self.locks[lock].waiting;
        let (at, next) = waiting.iter().copied().enumerate().min_by_key(|(_, waiter)| *waiter)?;
        waiting.swap_remove(at);
        self.boost(next.task, lock, next.request);
        Some(next.task)
    }

    /// Those that spin for a lock, the first one first.
    pub fn spinning(&self, lock: usize) -> impl Iterator<Item = u32> + '_ {
        self.locks[lock].spinning.iter().copied()
    }

    /// The lock that a task has, if others help it to leave that.
    pub fn is_helped(&self, task: u32) -> Option<usize> {
        let (node, _) = self.urgencies[task as usize]?;
        self.within[node].iter().find(|within| within.task == task)?;
        self.locks.iter().position(|lock| lock.protocol == Protocol::Mrsp && lock.holder == Some(task))
    }

    /// A task goes on.
    pub fn go_on(&mut self, task: u32) {
        if let Some(node) = self.nodes[task as usize] {
            self.keepers[node] = Some(task);
        }
    }

    /// What a task needs to go on; where that is nothing, it has it now. `begins`: its job has not run.
    pub fn request(&mut self, task: u32, begins: bool, script: Option<&mut Script>) -> Need {
        let above = self.above(task, false).filter(|_| begins);
        if let Some((holder, lock)) = above.or_else(|| self.within(task)).or_else(|| self.boosted(task)) {
            return Need::Lock(holder, lock);
        }
        let Some(script) = script else { return Need::Nothing };
        while let Some((at_ns, Op::Lock(lock))) = script.ops.get(script.at).copied() {
            if at_ns > script.done_ns {
                break;
            }
            if self.locks[lock].protocol.suspends() {
                if let Some(holder) = self.queue(task, lock) {
                    return Need::Suspend(holder, lock);
                }
                script.at += 1;
                continue;
            }
            if self.locks[lock].protocol.is_between_budgets() && self.locks[lock].holder.is_none() {
                if script.within_budget == 0 {
                    return self.asks_its_budget(lock, script);
                }
                self.enter(task, script);
                continue;
            }
            if self.locks[lock].protocol.spins() {
                self.keep(task, lock);
            }
            let about = &mut self.locks[lock];
            if let Some(holder) = about.holder.filter(|_| about.protocol.spins()) {
                if !about.spinning.contains(&task) {
                    about.spinning.push_back(task);
                }
                return Need::Spin(holder, lock);
            }
            let asks = about.protocol == Protocol::Ceiling;
            let above = || self.above(task, true).filter(|_| asks);
            if let Some((holder, lock)) = self.locks[lock].holder.map(|holder| (holder, lock)).or_else(above)
            {
                return Need::Lock(holder, lock);
            }
            self.locks[lock].holder = Some(task);
            script.at += 1;
        }
        Need::Nothing
    }

    /// What a job asks the budget above it for, at the begin of a section.
    fn asks_its_budget(&self, lock: usize, script: &Script) -> Need {
        let (length_ns, locks) = script.section();
        let ceiling = locks.map(|lock| self.locks[lock].budget_ceiling).max().unwrap_or(0);
        let fits = self.locks[lock].protocol == Protocol::Sirap;
        Need::Budget(ceiling, if fits { length_ns } else { 0 })
    }

    /// A job has the lock at its next place, which nobody else has; its budget knows.
    pub fn enter(&mut self, task: u32, script: &mut Script) {
        let Some((_, Op::Lock(lock))) = script.ops.get(script.at).copied() else { return };
        self.keep(task, lock);
        self.locks[lock].holder = Some(task);
        script.within_budget += 1;
        script.at += 1;
    }

    /// A task spins or has a lock, and does not give way to others of its node.
    fn keep(&mut self, task: u32, lock: usize) {
        let Some((node, _)) = self.urgencies[task as usize] else { return };
        let most =
            self.locks[lock].keeps.iter().find(|keeps| keeps.0 == node).map_or(u64::MAX, |keeps| keeps.1);
        if !self.within[node].iter().any(|within| within.task == task) {
            self.within[node].push(Within { task, lock, most });
        }
    }

    /// It spins no more, and has no lock.
    fn gives_way(&mut self, task: u32) {
        if let Some((node, _)) = self.urgencies[task as usize] {
            self.within[node].retain(|within| within.task != task);
        }
    }

    /// A task sleeps until the lock is free, if that is the lock's protocol.
    pub fn sleeps(&mut self, task: u32, lock: usize) -> bool {
        let sleeps = self.locks[lock].protocol == Protocol::None;
        if sleeps {
            self.locks[lock].sleeping.push(task);
        }
        sleeps
    }

    /// The next place of a job has come: it leaves its locks and its region there. Who waits for one of these locks: those that sleep are
    /// to be woken, those that spin have it now. `None`: no place is left.
    pub fn leave(&mut self, task: u32, script: &mut Script) -> Option<Left> {
        script.keeps = false;
        if let Some(until_ns) = script.floats_until_ns.take().filter(|until_ns| *until_ns < script.work_ns) {
            (script.done_ns, script.goes_on) = (until_ns, false);
            return Some(Left::default());
        }
        script.done_ns = script.ops.get(script.at)?.0;
        let mut left = Left::default();
        while let Some((_, op)) = script.ops.get(script.at).filter(|op| op.0 == script.done_ns).copied() {
            match op {
                Op::Unlock(lock) if self.locks[lock].protocol.suspends() => {
                    left.resumed.extend(self.pass_on(task, lock));
                }
                Op::Unlock(lock) if self.locks[lock].protocol.is_between_budgets() => {
                    self.locks[lock].holder = None;
                    script.within_budget = script.within_budget.saturating_sub(1);
                    if script.within_budget == 0 {
                        left.budget = true;
                        self.gives_way(task);
                    }
                }
                Op::Unlock(lock) => {
                    let about = &mut self.locks[lock];
                    about.holder = about.spinning.pop_front();
                    left.awake.append(&mut about.sleeping);
                    left.next.extend(about.holder);
                    self.gives_way(task);
                }
                Op::GiveWay => {}
                Op::Lock(_) | Op::Keep => break,
            }
            script.at += 1;
        }
        Some(left)
    }

    /// Of the locks that ask at a `request`, or at the begin of a job, the one with the highest ceiling that is not below this task; and
    /// who has it.
    fn above(&self, task: u32, request: bool) -> Option<(u32, usize)> {
        let (node, urgency) = self.urgencies[task as usize]?;
        let asks = |(_, lock): &(usize, &Lock)| (lock.protocol == Protocol::Ceiling) == request;
        let held = self.locks.iter().enumerate().filter(asks).filter_map(|(index, lock)| {
            let holder = lock.holder.filter(|holder| *holder != task)?;
            let ceiling = lock.ceiling.filter(|ceiling| ceiling.0 == node && ceiling.1 <= urgency)?;
            Some((ceiling.1, holder, index))
        });
        held.min().map(|(_, holder, index)| (holder, index))
    }
}

/// Of each of the nodes how urgent the most urgent is to which who spins or has such a lock does not give way.
fn keeps(users: &[(usize, u64)], protocol: Protocol) -> Vec<(usize, u64)> {
    let mut keeps: Vec<(usize, u64)> = Vec::new();
    for (node, urgency) in users {
        match keeps.iter_mut().find(|keeps| keeps.0 == *node) {
            Some(keeps) => keeps.1 = keeps.1.min(*urgency),
            None => keeps.push((*node, *urgency)),
        }
    }
    if protocol.is_between_budgets() || (protocol == Protocol::Msrp && keeps.len() > 1) {
        keeps.iter_mut().for_each(|keeps| keeps.1 = 0);
    }
    keeps
}

/// Of each of the nodes how urgent the most urgent user is that is below another one.
fn remote(users: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let elsewhere = |node: usize| users.iter().filter(move |user| user.0 != node).map(|user| user.1).min();
    users.iter().filter_map(|(node, _)| Some((*node, elsewhere(*node)?))).collect()
}

fn places(sections: &[Section], from_ns: u64, ops: &mut Vec<(u64, Op)>) {
    for section in sections {
        let at_ns = from_ns + section.at_ns;
        ops.push((at_ns, Op::Lock(section.lock)));
        places(&section.sections, at_ns, ops);
        ops.push((at_ns + section.length_ns, Op::Unlock(section.lock)));
    }
}
