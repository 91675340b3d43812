//! Decisions: one after another on each CPU that was kicked, and what they cost.

use super::{Simulation, Violation};
use tierce_policy::NEVER;
use tierce_trace::{Kind, SCHEDULER};

/// Decisions at one instant before it is a livelock: 64 CPUs, each as often as it has crossing edges, and more.
const ROUNDS_MAX: u32 = 10_000;

impl Simulation {
    /// Each CPU that was kicked and is not busy with itself decides, until no kick is left.
    pub(super) fn decide_all(&mut self, now_ns: u64) -> Result<(), Violation> {
        let (mut rounds, now) = (0, now_ns);
        loop {
            if let Some(words) = self.graph.kicked_words() {
                self.kicked.take(words);
            }
            let mut due = self.kicked.first_from(0);
            while let Some(cpu) = due.filter(|cpu| self.cpus[*cpu as usize].from_ns > now) {
                due = self.kicked.first_from(cpu + 1); // busy with itself
            }
            let Some(cpu) = due else { break };
            self.kicked.clear(cpu);
            self.decide(cpu, now);
            rounds += 1;
            if rounds == ROUNDS_MAX {
                return Err(Violation {
                    now_ns,
                    rule: "livelock: the CPUs kick each other without end".into(),
                });
            }
        }
        self.plan_cpus();
        Ok(())
    }

    #[inline]
    fn decide(&mut self, cpu: u32, now: u64) {
        self.progress(cpu, now);
        self.touched.mark(cpu);
        let c = &mut self.cpus[cpu as usize];
        if std::mem::take(&mut c.returning) {
            self.graph.returned(cpu, now);
        }
        let ran = self.graph.cpu(cpu).task;
        let task = self.choose(cpu, now);
        if ran != 0 && ran != task && self.graph.is_spread(ran) {
            self.graph.offer(ran);
        }
        let c = &mut self.cpus[cpu as usize];
        let engine = self.graph.cpu(cpu);
        c.until_ns = engine.until_ns.saturating_add(self.late_ns);
        let (leaves, levels) = (engine.leaves > 0, u64::from(engine.path_length.saturating_sub(1)));
        let changed = task != c.task;
        c.switches += u64::from(task != ran && task != 0);
        c.task = task;
        c.from_ns = now;
        if task == 0 {
            (c.worker, c.end_ns) = (0, NEVER);
        } else {
            let index = task - self.first_task;
            let t = &mut self.tasks[index as usize];
            let mut cost_ns = if c.timer { self.costs.timer_ns } else { 0 };
            if changed {
                cost_ns += self.costs.switch_ns + self.costs.level_ns * levels;
                if t.last_cpu != cpu {
                    if t.last_cpu != u32::MAX {
                        cost_ns += self.costs.migration.of(self.topology.distance(t.last_cpu, cpu));
                    }
                    t.last_cpu = cpu;
                }
            }
            c.from_ns = now.saturating_add(cost_ns);
            self.choose_worker(cpu, now);
            let worker = self.cpus[cpu as usize].worker;
            if worker != 0 {
                self.start(cpu, worker - self.first_task, now);
            }
            if cost_ns > 0 && self.watch.is_some() {
                self.cpus[cpu as usize].scheduling = true;
                self.tell(now, Kind::Outside, cpu, task, 1, SCHEDULER);
            }
        }
        let c = &mut self.cpus[cpu as usize];
        c.timer = false;
        if leaves {
            if c.from_ns == now {
                self.graph.returned(cpu, now);
            } else {
                c.returning = true;
            }
        }
        if c.until_ns <= now {
            self.kicked.mark(cpu); // more was due than one entry takes
        }
    }

    /// A decision; a CPU that finds nothing takes a task that waits elsewhere, and one where tasks wait may give one away.
    #[inline]
    fn choose(&mut self, cpu: u32, now: u64) -> u32 {
        let task = self.graph.decide(cpu, now, 0);
        if !self.spreads {
            return task;
        }
        if task == 0 && self.graph.cpu(cpu).leaves == 0 && self.graph.pull(cpu, now) != 0 {
            return self.graph.decide(cpu, now, 0);
        }
        if task != 0 {
            self.graph.balance(cpu, now);
        }
        task
    }
}
