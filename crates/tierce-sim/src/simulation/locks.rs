//! Locks of sections, and regions without preemption.
//!
//! A task that waits for a lock goes on wanting the CPU, and when the engine chooses it, who holds the lock runs in its place: along
//! its path, at its priority, on its budget. So holders inherit whatever the policies above their waiters give them (proxy
//! execution; among budgets it is bandwidth inheritance), and no policy knows of it. Ceilings are asked in the same way: a job that may not
//! begin, or may not have a lock, waits for who holds the one with that ceiling. With the protocol `none` waiters sleep.
//!
//! A lock that becomes free goes to the first that runs and requests it. The engine is not entered: it has chosen the waiter already.
//!
//! A lock between CPUs: who requests it while another one has it spins. It keeps its CPU, on which then nobody makes progress, and stands in
//! a queue. Other tasks of its node to which it does not give way wait for it, as for a ceiling: it runs in their place, spinning or with the lock. When the
//! lock is left, the first of the queue has it at once, and its CPU decides again. With MrsP the first CPU on which one spins makes
//! progress for a holder that no other CPU runs: whenever a CPU stops running such a holder, those of the queue decide again.
//!
//! With MPCP and FMLP+ who requests such a lock while another one has it blocks, as if it slept, and is woken with the lock. Who has one
//! is boosted: when the engine chooses another task directly below its node, it runs in the place of that; of several the first.
//!
//! With HSRP and SIRAP the budget above who requests a lock is asked, and orders itself by the ceiling until the lock is left: that is the engine's
//! (rule 15 of policy/reservation.c). Where the budget has not enough left for a section of SIRAP, its rest is given up, and the engine decides again.
//! Other tasks of the same node wait as if they were below a ceiling.
//!
//! A job within a region is played in the same way: whichever other task directly below the same node the engine chooses, who is in the
//! region runs in its place until that ends. So there is at most one in each node, and the nodes above go on as they would: a budget
//! that ends, ends, and the region goes on with the next one. A region has begun when 1 ns of it is done: a job that comes at the time of its begin
//! is decided about first.
//!
//! A floating region begins when it hurts: at the moment at which another task would preempt the job, which has done 1 ns or more then. It takes as
//! long as it may, or until the job is done. After that the job gives way.
//!
//! With a preemption threshold: when the engine chooses another task directly below the node, of a priority not above the threshold of a job that has
//! begun, that job runs in its place. There is at most one such job: two that have begun are the one that preempted and the one that was, and if
//! the first is not done, the engine chooses it or one that is more urgent, to which the second gives way.

use super::{Cpu, Simulation};
use crate::locks::Need;
use tierce_policy::NEVER;
use tierce_trace::waits::Lock;
use tierce_trace::Kind;

/// What keeps a task that the engine has chosen from going on.
enum Waits {
    Never,
    /// Who runs in its place: who has this lock, or does not give way.
    For(u32, Option<usize>),
    /// It spins for a lock.
    Spins,
    /// It spins, and runs the section of who has the lock.
    Helps(u32),
    /// It is suspended until it has the lock.
    Suspends,
    /// For its next budget.
    Skips,
}

impl Simulation {
    /// Find out who runs on a CPU: the task that the engine has chosen, or who holds what that one waits for; nobody while it spins.
    pub(super) fn choose_worker(&mut self, cpu: u32, now: u64) {
        let before = self.cpus[cpu as usize].worker;
        let c = &mut self.cpus[cpu as usize];
        c.worker = c.task;
        if c.task == 0 {
            return self.calls_for_help(before);
        }
        if self.locks.is_some() {
            let chosen = c.task - self.first_task;
            let (mut worker, mut steps) = (chosen, 0);
            loop {
                worker = match self.waits_for(worker, cpu, now) {
                    Waits::Never => break,
                    Waits::Spins | Waits::Skips => {
                        let c = &mut self.cpus[cpu as usize];
                        (c.worker, c.end_ns) = (0, NEVER);
                        return self.calls_for_help(before);
                    }
                    // One that runs in the place of another one has its only lock already.
                    Waits::Suspends => return self.sleep(cpu, chosen, now),
                    Waits::Helps(holder) => {
                        worker = holder;
                        break;
                    }
                    Waits::For(holder, lock) => {
                        steps += 1;
                        let forever = steps > self.tasks.len(); // they wait for each other: plans of which that is known are refused
                        let mut sleeps =
                            |lock| self.locks.as_mut().is_some_and(|locks| locks.sleeps(worker, lock));
                        if forever || lock.is_some_and(&mut sleeps) {
                            return self.sleep(cpu, chosen, now);
                        }
                        holder
                    }
                }
            }
            self.cpus[cpu as usize].worker = self.first_task + worker;
            self.ends_help(cpu, now);
        }
        let c = &mut self.cpus[cpu as usize];
        let index = c.worker - self.first_task;
        c.end_ns = c.from_ns.saturating_add(self.tasks[index as usize].left_ns);
        self.calls_for_help(before);
    }

    /// Who helped the task that now goes on here spins again.
    fn ends_help(&mut self, cpu: u32, now: u64) {
        let worker = self.cpus[cpu as usize].worker;
        if !self.is_helped(worker) {
            return;
        }
        for other in 0..self.cpus.len() as u32 {
            if other != cpu && self.cpus[other as usize].worker == worker {
                self.progress(other, now);
                let c = &mut self.cpus[other as usize];
                (c.worker, c.end_ns) = (0, NEVER);
                self.touched.mark(other);
            }
        }
    }

    /// A task goes on no more where it did: those who spin for the lock that it has are to help it.
    fn calls_for_help(&mut self, id: u32) {
        if !self.is_helped(id) || self.cpus.iter().any(|cpu| cpu.worker == id) {
            return;
        }
        let locks = self.locks.as_ref();
        let lock = locks.and_then(|locks| Some((locks, locks.is_helped(id - self.first_task)?)));
        for task in lock.into_iter().flat_map(|(locks, lock)| locks.spinning(lock)) {
            self.kicked.mark(self.cpu_of(self.first_task + task));
        }
    }

    fn is_helped(&self, id: u32) -> bool {
        let helped = |locks: &crate::locks::Locks| locks.is_helped(id - self.first_task).is_some();
        id != 0 && self.locks.as_ref().is_some_and(helped)
    }

    /// What this task waits for on a CPU, if it does.
    fn waits_for(&mut self, index: u32, cpu: u32, now: u64) -> Waits {
        let Some(locks) = self.locks.as_mut() else { return Waits::Never };
        let tasks = &mut self.tasks;
        let mut within = |keeper: &u32| {
            let task = &mut tasks[*keeper as usize];
            let Some(script) = &mut task.script else { return false };
            if script.keeps(task.left_ns) {
                return true;
            }
            let floats = script.float(task.left_ns);
            task.left_ns = floats.unwrap_or(task.left_ns);
            floats.is_some()
        };
        if let Some(keeper) = locks.keeper(index).filter(&mut within) {
            return Waits::For(keeper, None);
        }
        let has_begun = |other: &u32| {
            let task = &self.tasks[*other as usize];
            task.script.as_ref().is_some_and(|script| script.has_begun(task.left_ns))
        };
        if let Some(other) = locks.thresholds(index).find(has_begun) {
            return Waits::For(other, None);
        }
        let Some(need) = self.requests(index, cpu, now) else { return Waits::Skips };
        let Some(locks) = self.locks.as_mut() else { return Waits::Never };
        let task = &mut self.tasks[index as usize];
        if let Need::Lock(holder, lock) | Need::Spin(holder, lock) | Need::Suspend(holder, lock) = need {
            let helps = locks.is_helped(holder).is_some();
            if !std::mem::replace(&mut task.waits, true) {
                let (task, held_by) = (self.first_task + index, self.first_task + holder);
                self.tell(now, Kind::LockWait, self.cpu_of(task), task, held_by, Lock::of_plan(lock));
            }
            match need {
                Need::Lock(..) => return Waits::For(holder, Some(lock)),
                Need::Suspend(..) => return Waits::Suspends,
                _ => {}
            }
            self.start(cpu, index, now);
            let id = self.first_task + holder;
            let runs = |(other, about): (usize, &Cpu)| about.worker == id && other != cpu as usize;
            let runs = self.cpus.iter().enumerate().any(runs);
            return if helps && !runs { Waits::Helps(holder) } else { Waits::Spins };
        }
        if let Some(script) = task.script.as_mut() {
            script.enter();
            if task.left_ns == 0 {
                task.left_ns = script.left_ns();
            }
        }
        locks.go_on(index);
        if std::mem::take(&mut task.waits) {
            let task = self.first_task + index;
            self.tell(now, Kind::LockEnd, self.cpu_of(task), task, 0, 0);
        }
        Waits::Never
    }

    /// What a task needs to go on, with the locks that its budget says yes to; `None`: that says no, and the rest of it is given up.
    fn requests(&mut self, index: u32, cpu: u32, now: u64) -> Option<Need> {
        let locks = self.locks.as_mut()?;
        let task = &mut self.tasks[index as usize];
        let mut need = locks.request(index, !task.started, task.script.as_deref_mut());
        while let (Need::Budget(ceiling, length_ns), Some(script)) = (need, task.script.as_deref_mut()) {
            let id = self.first_task + index;
            let answer = self.graph.begin_section(id, ceiling, length_ns, now);
            // A task that a control operation has moved elsewhere has no such budget.
            if answer.is_err_and(|refused| refused.name() == "section_beyond_budget") {
                let _ = self.graph.skip_to_next_budget(id, now); // nothing may be left of it already
                self.kicked.mark(cpu);
                return None;
            }
            locks.enter(index, script);
            need = locks.request(index, false, Some(script));
        }
        Some(need)
    }

    /// A task blocks until a lock is free.
    fn sleep(&mut self, cpu: u32, index: u32, now: u64) {
        self.graph.release(self.first_task + index, now);
        let c = &mut self.cpus[cpu as usize];
        (c.task, c.worker, c.end_ns) = (0, 0, NEVER);
    }

    /// A task has come to the next place of its job: it leaves locks and its region there. `false`: its job is done.
    pub(super) fn leave_locks(&mut self, index: u32, now: u64) -> bool {
        let Some(locks) = &mut self.locks else { return false };
        let task = &mut self.tasks[index as usize];
        let Some(script) = task.script.as_mut() else { return false };
        let Some(left) = locks.leave(index, script) else { return false };
        task.left_ns = script.left_ns();
        let goes_on = !script.is_done();
        if left.budget {
            let _ = self.graph.end_section(self.first_task + index, now); // the engine ends one that has overrun a whole budget
        }
        for index in left.awake {
            self.graph.wake(self.first_task + index, now);
        }
        for index in left.next {
            self.get(index, now);
        }
        for index in left.resumed {
            self.graph.wake(self.first_task + index, now);
            self.get(index, now);
        }
        goes_on
    }

    /// A task that spins or was suspended has its lock: its CPU is to see to it that it goes on, or others help it.
    fn get(&mut self, index: u32, now: u64) {
        let task = &mut self.tasks[index as usize];
        if let Some(script) = task.script.as_mut() {
            script.get();
            task.left_ns = script.left_ns();
        }
        let (waited, id) = (std::mem::take(&mut task.waits), self.first_task + index);
        if waited {
            self.tell(now, Kind::LockEnd, self.cpu_of(id), id, 0, 0);
        }
        self.kicked.mark(self.cpu_of(id));
        self.calls_for_help(id);
    }
}
