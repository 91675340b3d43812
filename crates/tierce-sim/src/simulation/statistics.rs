//! Statistics as of the present time, that which the engine has not charged yet included.

use super::Simulation;
use tierce_policy::NEVER;
use tierce_trace::promise::Promise;
use tierce_trace::{Report, Stats};

impl Simulation {
    /// Statistics as of now. The simulation can go on afterwards.
    pub fn report(&self) -> Report {
        let chains = self.chains.as_ref().map_or_else(Vec::new, |chains| chains.report());
        Report { chains, ..self.stats().report() }
    }

    /// Statistics as of now; see [`Self::report`].
    pub fn stats(&self) -> Stats {
        let now = self.now_ns;
        let mut stats = self.stats.clone();
        self.closing_events().iter().for_each(|event| stats.observe(event));
        let mut extra_edges: Vec<(u32, u64)> = Vec::new();
        let mut extra_tasks: Vec<(u32, u64)> = Vec::new();
        for (number, c) in self.cpus.iter().enumerate() {
            // What the engine will charge for the time since its last entry.
            let engine = self.graph.cpu(number as u32);
            let pending = now.saturating_sub(engine.charged_ns);
            let (mut used, mut idle, mut stolen) = (engine.used_ns, engine.idle_ns, engine.stolen_ns);
            if c.interrupt_end_ns != NEVER {
                stolen += pending;
            } else if engine.path_length == 0 {
                idle += pending;
            } else {
                used += pending;
                extra_tasks.push((engine.task, pending));
                let path = &engine.path[..engine.path_length as usize];
                extra_edges.extend(path.iter().map(|&edge| (edge, pending)));
            }
            stats.set_cpu_usage(number as u32, used, idle, stolen, c.switches);
        }
        let extra = |list: &[(u32, u64)], id| list.iter().filter(|e| e.0 == id).map(|e| e.1).sum::<u64>();
        for (index, task) in self.tasks.iter().enumerate() {
            let id = self.first_task + index as u32;
            let node = self.graph.node(id);
            stats.set_task_usage(
                id,
                node.ran_ns + extra(&extra_tasks, id),
                u64::from(node.switches),
                u64::from(node.migrations),
            );
            let (arrived, late) = task.program.backlog(now);
            (0..arrived).for_each(|_| stats.job_release(id));
            let misses = late + u64::from(task.begun > task.done && task.job.deadline_ns < now);
            (0..misses).for_each(|_| stats.miss(id));
        }
        for id in self.ids.edges.iter().copied().chain(self.ids.roots.iter().map(|root| root.2)) {
            let edge = self.graph.edge(id);
            let cpu_ns = edge.supply_ns + extra(&extra_edges, id);
            stats.set_edge_usage(
                id,
                cpu_ns,
                u64::from(edge.grants),
                u64::from(edge.throttles),
                edge.forgiven_ns,
            );
            stats.set_promise(id, Promise::of(edge, now));
        }
        stats.finish(now);
        stats
    }
}
