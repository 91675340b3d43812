//! Locks of sections.
//!
//! A task that waits for a lock goes on wanting the CPU, and when the engine chooses it, who holds the lock runs in its place: along
//! its path, at its priority, on its budget. So holders inherit whatever the policies above their waiters give them (proxy
//! execution; among budgets it is bandwidth inheritance), and no policy knows of it. Ceilings are asked in the same way: a job that may not
//! begin, or may not have a lock, waits for who holds the one with that ceiling. With the protocol `none` waiters sleep.
//!
//! A lock that becomes free goes to the first that runs and requests it. The engine is not entered: it has chosen the waiter already.

use super::Simulation;
use tierce_policy::NEVER;

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
                if forever || self.locks.as_mut().is_some_and(|locks| locks.sleeps(worker, lock)) {
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

    /// Who has what this task needs to go on, and the lock.
    fn waits_for(&mut self, index: u32, now: u64) -> Option<(u32, usize)> {
        let locks = self.locks.as_mut()?;
        let task = &mut self.tasks[index as usize];
        let found = locks.request(index, !task.started, task.script.as_deref_mut());
        if found.is_some() {
            task.waits_from_ns = task.waits_from_ns.min(now);
            return found;
        }
        if let Some(script) = task.script.as_ref().filter(|_| task.left_ns == 0) {
            task.left_ns = script.left_ns();
        }
        let from_ns = std::mem::replace(&mut task.waits_from_ns, NEVER);
        if from_ns != NEVER {
            self.stats.lock_wait(self.first_task + index, now - from_ns);
        }
        None
    }

    /// A task blocks until a lock is free.
    fn sleep(&mut self, cpu: u32, index: u32, now: u64) {
        self.graph.release(self.first_task + index, now);
        let c = &mut self.cpus[cpu as usize];
        (c.task, c.worker, c.end_ns) = (0, 0, NEVER);
    }

    /// A task has come to the next place of its job: it leaves locks there. `false`: its job is done.
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
