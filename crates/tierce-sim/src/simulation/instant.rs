//! One instant: what is due on each CPU, runs that end, waits that are over, interrupts.

use super::{Simulation, Violation};
use crate::program::{Job, Next, Step};
use tierce_plan::Work;
use tierce_policy::NEVER;
use tierce_trace::Kind;

impl Simulation {
    /// All that happens at this time.
    pub(super) fn instant(&mut self, now: u64) -> Result<(), Violation> {
        self.now_ns = now;
        self.instants += 1;
        self.look_around(now, now);
        let mut from = 0;
        while let Some(cpu) = self.cpus_next_ns.due_from(from, now) {
            self.cpu_due(cpu, now);
            from = cpu + 1;
        }
        while let Some(who) = self.queue.pop(now) {
            match self.tasks.get_mut(who as usize) {
                Some(_) => self.wake(who, now),
                None => self.interrupt(who as usize - self.tasks.len(), now),
            }
        }
        self.settle(now)
    }

    /// Decide until no CPU is kicked any more, and look at what came of it.
    pub(super) fn settle(&mut self, now: u64) -> Result<(), Violation> {
        let settled = self.decide_all(now);
        self.take_in();
        settled?;
        if self.check {
            self.verify(now)?;
        }
        Ok(())
    }

    /// What is due on this CPU itself.
    fn cpu_due(&mut self, cpu: u32, now: u64) {
        let many = self.cpus.len() > 1;
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        if c.interrupt_end_ns <= now {
            c.interrupt_end_ns = NEVER;
            self.graph.outside(cpu, false, now);
        }
        if c.from_ns > now {
            return;
        }
        if c.returning {
            c.returning = false;
            self.graph.returned(cpu, now);
        }
        if c.until_ns <= now {
            c.until_ns = NEVER;
            c.timer = true;
            self.kicked.mark(cpu);
            if many {
                self.graph.event(cpu, now, 0); // shared events come before requests
            }
        }
        if c.end_ns <= now {
            self.progress(cpu, now);
            self.run_over(cpu, now);
        }
    }

    /// Account for the progress of what the CPU runs.
    #[inline]
    pub(super) fn progress(&mut self, cpu: u32, now: u64) {
        let c = &mut self.cpus[cpu as usize];
        if c.from_ns < now {
            if c.worker != 0 {
                self.tasks[(c.worker - self.first_task) as usize].left_ns -= now - c.from_ns;
            }
            c.from_ns = now;
        }
    }

    /// The run of the task on this CPU is over: it goes on with the next one, or blocks.
    fn run_over(&mut self, cpu: u32, now: u64) {
        let id = self.cpus[cpu as usize].worker;
        let index = id - self.first_task;
        if self.leave_locks(index, now) {
            return self.go_on(cpu, now);
        }
        let in_place_of_another = id != self.cpus[cpu as usize].task;
        let task = &mut self.tasks[index as usize];
        let deadline_ns = std::mem::take(&mut task.constrained_ns);
        if deadline_ns > 0 && now <= deadline_ns {
            self.stats.met(id);
            if self.watch.is_some() {
                self.tell(now, Kind::Met, cpu, id, 0, deadline_ns);
            }
        }
        let Step { completes, next } = self.tasks[index as usize].program.step(now);
        let task = &mut self.tasks[index as usize];
        if completes {
            task.done += 1;
            let response_ns = now - task.job.release_ns;
            let late_ns = now.saturating_sub(task.job.deadline_ns);
            if late_ns > 0 {
                self.stats.miss(id);
            }
            self.stats.job_complete(id, response_ns, late_ns);
            if self.watch.is_some() {
                let number = self.tasks[index as usize].done;
                self.tell(now, Kind::JobComplete, cpu, id, number, response_ns);
            }
            self.pass_on(index, now);
        }
        match next {
            Next::Run { work_ns, begins, within_ns } => {
                self.begin(index, work_ns, begins, now);
                self.constrain(index, work_ns, within_ns, now);
                if begins.is_some() && self.locks.is_some() {
                    // Another job may be more urgent than the new one, which then takes no lock.
                    self.kicked.mark(cpu);
                    return;
                }
                return self.go_on(cpu, now);
            }
            Next::Wait(at_ns) => self.queue.push(at_ns.saturating_add(self.late_ns), index),
            Next::End => {}
        }
        self.graph.release(id, now);
        if in_place_of_another {
            return self.go_on(cpu, now);
        }
        let c = &mut self.cpus[cpu as usize];
        (c.task, c.worker, c.end_ns) = (0, 0, NEVER);
    }

    /// The CPU still runs the same task.
    fn go_on(&mut self, cpu: u32, now: u64) {
        self.choose_worker(cpu, now);
        let worker = self.cpus[cpu as usize].worker;
        if worker != 0 {
            self.start(cpu, worker - self.first_task, now);
        }
    }

    /// A job of the task is done: others that wait for it are released.
    fn pass_on(&mut self, index: u32, now: u64) {
        let Some(chains) = &mut self.chains else { return };
        for (task, at_ns) in chains.ended(index as usize, now) {
            if self.tasks[task].program.released(at_ns) {
                // What comes from another machine is no timer of this one, and no later than it says.
                self.queue.push(at_ns, task as u32);
            }
        }
    }

    /// The wait of a task is over.
    #[inline]
    fn wake(&mut self, index: u32, now: u64) {
        let Step { next, .. } = self.tasks[index as usize].program.step(now);
        match next {
            Next::Run { work_ns, begins, within_ns } => {
                self.begin(index, work_ns, begins, now);
                self.graph.wake(self.first_task + index, now);
                self.constrain(index, work_ns, within_ns, now);
            }
            Next::Wait(at_ns) => self.queue.push(at_ns.saturating_add(self.late_ns), index),
            Next::End => {}
        }
    }

    /// A run begins, and perhaps a job with it.
    #[inline]
    fn begin(&mut self, index: u32, work_ns: u64, begins: Option<Job>, now: u64) {
        let id = self.first_task + index;
        let task = &mut self.tasks[index as usize];
        task.left_ns = task.script.as_mut().map_or(work_ns, |script| script.begin(work_ns));
        let Some(job) = begins else { return };
        task.job = job;
        task.begun += 1;
        task.started = false;
        self.stats.job_release(id);
        if task.announces {
            self.graph.announce(id, job.deadline_ns, now);
        }
        let number = self.tasks[index as usize].begun;
        if let Some(watch) = self.watch.as_mut().filter(|watch| !watch.tells_arrivals(index as usize)) {
            watch.begun(index as usize, number, job.deadline_ns);
            self.tell(now, Kind::JobRelease, self.cpu_of(id), id, number, job.deadline_ns);
        }
    }

    /// The task, which wants the CPU, asks for a time constraint; whatever the answer is, it runs.
    #[inline]
    fn constrain(&mut self, index: u32, work_ns: u64, within_ns: Option<u64>, now: u64) {
        let Some(within_ns) = within_ns else { return };
        let (id, deadline_ns) = (self.first_task + index, now.saturating_add(within_ns));
        let accepted = self.graph.constrain(id, work_ns, deadline_ns, now).is_ok();
        self.stats.asked(id, accepted);
        if accepted {
            self.tasks[index as usize].constrained_ns = deadline_ns;
        }
    }

    /// The task has a CPU: its job, if it is a new one, has started.
    #[inline]
    pub(super) fn start(&mut self, cpu: u32, index: u32, now: u64) {
        let task = &mut self.tasks[index as usize];
        if !task.started {
            task.started = true;
            if let Some(chains) = &mut self.chains {
                chains.begun(index as usize, task.job.deadline_ns, now);
            }
            if self.watch.is_some() {
                let number = task.begun;
                self.tell(now, Kind::JobStart, cpu, self.first_task + index, number, 0);
            }
        }
    }

    fn interrupt(&mut self, number: usize, now: u64) {
        let source = &mut self.interrupts[number];
        let cpu = source.cpu;
        let takes_ns = match &source.takes {
            Work::Constant(ns) => *ns,
            Work::Uniform { min_ns, max_ns } => source.draws.between(*min_ns, *max_ns),
            Work::List(list) => {
                source.at += 1;
                list[(source.at - 1) % list.len()]
            }
        };
        let wait_ns =
            if source.poisson { source.draws.exponential(source.every_ns) } else { source.every_ns };
        self.queue.push(now.saturating_add(wait_ns), (self.tasks.len() + number) as u32);
        self.take_away(cpu, takes_ns, now);
    }

    /// Something that is charged to nobody takes so much time from a CPU.
    pub(super) fn take_away(&mut self, cpu: u32, takes_ns: u64, now: u64) {
        self.progress(cpu, now);
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        c.from_ns = c.from_ns.max(now).saturating_add(takes_ns);
        c.end_ns = if c.task == 0 { NEVER } else { c.end_ns.saturating_add(takes_ns) };
        if c.interrupt_end_ns == NEVER {
            c.interrupt_end_ns = now.saturating_add(takes_ns);
            self.graph.outside(cpu, true, now);
        } else {
            c.interrupt_end_ns = c.interrupt_end_ns.saturating_add(takes_ns);
        }
    }

    fn verify(&mut self, now_ns: u64) -> Result<(), Violation> {
        let rest = self.kicked.first_from(0).is_none() && self.cpus.iter().all(|cpu| !cpu.returning);
        self.graph.check(rest).map_err(|broken| Violation { now_ns, rule: format!("{broken:?}") })
    }
}
