//! Locks of sections, and regions without preemption.
//!
//! A task that waits for a lock goes on wanting the CPU, and when the engine chooses it, who holds the lock runs in its place: along
//! its path, at its priority, on its budget. So holders inherit whatever the policies above their waiters give them (proxy
//! execution; among budgets it is bandwidth inheritance), and no policy knows of it. Ceilings are asked in the same way: a job that may not
//! begin, or may not have a lock, waits for who holds the one with that ceiling. With the protocol `none` waiters sleep.
//!
//! A lock that becomes free goes to the first that runs and requests it. The engine is not entered: it has chosen the waiter already.
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

use super::Simulation;
use tierce_policy::NEVER;
use tierce_trace::waits::Lock;
use tierce_trace::Kind;

impl Simulation {
    /// Find out who runs on a CPU: the task that the engine has chosen, or who holds what that one waits for.
    pub(super) fn choose_worker(&mut self, cpu: u32, now: u64) {
        let c = &mut self.cpus[cpu as usize];
        c.worker = c.task;
        if c.task == 0 {
            return;
        }
        if self.locks.is_some() {
            let chosen = c.task - self.first_task;
            let (mut worker, mut steps) = (chosen, 0);
            while let Some((holder, lock)) = self.waits_for(worker, now) {
                steps += 1;
                let forever = steps > self.tasks.len(); // they wait for each other: plans of which that is known are refused
                let mut sleeps = |lock| self.locks.as_mut().is_some_and(|locks| locks.sleeps(worker, lock));
                if forever || lock.is_some_and(&mut sleeps) {
                    return self.sleep(cpu, chosen, now);
                }
                worker = holder;
            }
            self.cpus[cpu as usize].worker = self.first_task + worker;
        }
        let c = &mut self.cpus[cpu as usize];
        let index = c.worker - self.first_task;
        c.end_ns = c.from_ns.saturating_add(self.tasks[index as usize].left_ns);
    }

    /// Who has what this task needs to go on, and the lock; no lock: who is in a region.
    fn waits_for(&mut self, index: u32, now: u64) -> Option<(u32, Option<usize>)> {
        let locks = self.locks.as_mut()?;
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
            return Some((keeper, None));
        }
        let has_begun = |other: &u32| {
            let task = &self.tasks[*other as usize];
            task.script.as_ref().is_some_and(|script| script.has_begun(task.left_ns))
        };
        if let Some(other) = locks.thresholds(index).find(has_begun) {
            return Some((other, None));
        }
        let task = &mut self.tasks[index as usize];
        let found = locks.request(index, !task.started, task.script.as_deref_mut());
        if let Some((holder, lock)) = found {
            if std::mem::replace(&mut task.waits, true) {
                return Some((holder, Some(lock)));
            }
            let (task, held_by) = (self.first_task + index, self.first_task + holder);
            self.tell(now, Kind::LockWait, self.cpu_of(task), task, held_by, Lock::of_plan(lock));
            return Some((holder, Some(lock)));
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
        None
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
        let Some(awake) = locks.leave(script) else { return false };
        task.left_ns = script.left_ns();
        let goes_on = !script.is_done();
        for index in awake {
            self.graph.wake(self.first_task + index, now);
        }
        goes_on
    }
}
