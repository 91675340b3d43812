//! Events: what the simulator tells beside the engine, and where all of it goes.

use super::Simulation;
use crate::watch::Seen;
use tierce_trace::{Event, Kind, SCHEDULER};

impl Simulation {
    /// Tell of jobs that have arrived, of costs that are paid, and of deadlines that have passed before `now`.
    pub(super) fn look_around(&mut self, now: u64, arrived: u64) {
        let Some(mut watch) = self.watch.take() else { return };
        let mut started = false;
        for cpu in 0..self.cpus.len() {
            let c = &mut self.cpus[cpu];
            if c.scheduling && c.from_ns <= arrived {
                c.scheduling = false;
                started = true;
                let (from_ns, task) = (c.from_ns, c.task);
                self.tell(from_ns, Kind::Outside, cpu as u32, task, 0, SCHEDULER);
            }
        }
        while let Some(seen) = watch.next(now, arrived) {
            match seen {
                Seen::Arrival(task, number, job) => {
                    let id = self.first_task + task as u32;
                    self.tell(job.release_ns, Kind::JobRelease, self.cpu_of(id), id, number, job.deadline_ns);
                }
                Seen::Due(task, number, at_ns) if self.tasks[task].done < number => {
                    let id = self.first_task + task as u32;
                    self.tell(at_ns, Kind::Miss, self.cpu_of(id), id, number, at_ns);
                }
                Seen::Due(..) => {}
            }
        }
        self.watch = Some(watch);
        if started {
            self.graph.events_mut().sort_by_key(|event| event.now_ns);
        }
    }

    pub(super) fn tell(&mut self, now_ns: u64, kind: Kind, cpu: u32, a: u32, b: u32, value: u64) {
        let (kind, cpu) = (kind as u16, cpu as u16);
        self.graph.events_mut().push(tierce_policy::Event { now_ns, kind, cpu, a, b, value });
    }

    /// The CPU a task runs on or belongs to, 0 when it belongs to several.
    pub(super) fn cpu_of(&self, task: u32) -> u32 {
        let node = self.graph.node(task);
        let cpus = self.cpus.len() as u32;
        [node.on_cpu, node.domain].into_iter().find(|&cpu| cpu < cpus).unwrap_or(0)
    }

    /// Take in what the engine has told.
    #[inline]
    pub(super) fn take_in(&mut self) {
        if self.graph.events_mut().is_empty() {
            return;
        }
        let mut told = std::mem::take(self.graph.events_mut());
        for event in &told {
            if event.kind == Kind::Replenish as u16 {
                self.stats.replenish(event.a, self.graph.edge(event.a).supply_ns);
            }
            if self.observes {
                let tierce_policy::Event { now_ns, kind, cpu, a, b, value } = *event;
                self.stats.observe(&Event { now_ns, kind, cpu, a, b, pad: 0, value });
            }
        }
        if self.watch.is_some() {
            for event in &told {
                let tierce_policy::Event { now_ns, kind, mut cpu, a, b, value } = *event;
                if usize::from(cpu) >= self.cpus.len() {
                    cpu = self.home(kind, a) as u16;
                }
                self.events.push(Event { now_ns, kind, cpu, a, b, pad: 0, value });
            }
        }
        told.clear();
        *self.graph.events_mut() = told;
    }

    /// A CPU for a record of something that several CPUs share: where it runs, or the first.
    fn home(&self, kind: u16, id: u32) -> u32 {
        let on = match Kind::from_number(kind) {
            Some(Kind::Request | Kind::Release | Kind::Tell) => self.graph.node(id).on_cpu,
            _ => self.graph.edge(id).on_cpu,
        };
        if on < self.cpus.len() as u32 {
            on
        } else {
            0
        }
    }
}
