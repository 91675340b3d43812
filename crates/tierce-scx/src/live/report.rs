//! What has happened up to now.

use super::{now_ns, Held, Live};
use crate::kernel::{LockSide, Pools};
use crate::threads;
use std::collections::BTreeSet;
use tierce_policy::{raw, TASK};
use tierce_trace::promise::Promise;
use tierce_trace::report::{Contended, Contention, KickUse, LockUse};
use tierce_trace::waits::Waited;
use tierce_trace::{Kind, Measure, Report, Stats};

impl Live {
    /// Measure jitters and overheads from now on; `epoch_ns` as in [`Measure::new`].
    pub fn measure(&mut self, epoch_ns: Option<u64>) {
        self.measure = Some(Measure::new(self.header(), epoch_ns));
    }

    /// What has been measured up to now, if something is.
    pub fn measured(&self) -> Option<Measure> {
        let mut measure = self.measure.clone()?;
        measure.finish(now_ns());
        Some(measure)
    }

    /// The statistics up to now.
    pub fn report(&self) -> Report {
        let mut stats = self.stats.clone(); // what runs is charged up to now in a copy: its events are yet to come
        for cpu in 0..self.kernel.options().cpus {
            let state = self.kernel.cpu(cpu);
            let switches = stats.cpu(cpu).map_or(0, |cpu| cpu.switches);
            // The kernel side counts from the making of the graph, when all was idle.
            let counted_ns = state.used_ns.saturating_add(state.idle_ns).saturating_add(state.stolen_ns);
            let began_ns = state.charged_ns.saturating_sub(counted_ns);
            let idle_ns = state.idle_ns.saturating_sub(self.start_ns.saturating_sub(began_ns));
            stats.set_cpu_usage(cpu, state.used_ns, idle_ns, state.stolen_ns, switches);
        }
        if self.kernel.options().trace_kinds >> Kind::Decision as u16 & 1 == 0 {
            self.count(&mut stats);
        }
        for (id, edge) in self.edges() {
            stats.set_promise(self.renumber.edge(id), Promise::of(&edge, now_ns()));
        }
        stats.finish(now_ns());
        let chains = self.chains.as_ref().map_or_else(Vec::new, |chains| chains.report());
        Report { contention: self.contention(), chains, ..stats.report() }
    }

    /// Who has waited for whose locks up to now, the longest waits first.
    pub fn lock_waits(&self) -> Vec<Waited> {
        self.stats.lock_waits(now_ns())
    }

    /// How CPUs got into each other's way, if that is counted.
    fn contention(&self) -> Option<Contention> {
        let options = self.kernel.options();
        let lock = |cpu: u32, shared: bool| {
            let LockSide { taken, taken_over, waited, wait_ns, held_ns, .. } =
                self.kernel.lock_side(cpu, shared);
            let held_ns = shared.then_some(held_ns);
            let [own, group] = [!shared, shared].map(|is| is.then_some(cpu));
            LockUse {
                cpu: own,
                group,
                taken,
                contended: Some(Contended { taken_over, waited, wait_ns, held_ns }),
            }
        };
        let groups = (0..options.cpus).map(|cpu| self.kernel.cpu(cpu).group);
        let groups: BTreeSet<u32> =
            groups.zip(0..).filter(|(group, cpu)| group != cpu).map(|(group, _)| group).collect();
        let kicks = |cpu| {
            let side = self.kernel.cpu_side(cpu);
            KickUse { cpu, decisions: side.kicks, vain: side.vain_kicks }
        };
        options.count_contention.then(|| Contention {
            locks: (0..options.cpus)
                .map(|cpu| lock(cpu, false))
                .chain(groups.into_iter().map(|group| lock(group, true)))
                .collect(),
            kicks: (0..options.cpus).map(kicks).collect(),
        })
    }

    /// What the kernel side holds.
    pub fn held(&self) -> Held {
        let leaves = (1..self.kernel.nodes_used()).map(|id| self.kernel.leaf(id));
        let part = |ids: &[u32]| ids.iter().filter(|id| **id != 0).count() as u32;
        Held {
            used: self.kernel.pools(),
            plan: Pools {
                nodes: part(&self.ids.nodes) + part(&self.ids.tasks),
                edges: part(&self.ids.edges) + self.ids.roots.len() as u32,
            },
            threads: leaves.filter(|leaf| leaf.own != 0 && threads::exists(leaf.pid)).count() as u32,
        }
    }

    /// What the engine counted, where the records do not tell.
    fn count(&self, stats: &mut Stats) {
        for id in 1..self.kernel.nodes_used() {
            let node = self.kernel.node(id);
            if node.kind == TASK {
                let (switches, migrations) = (node.switches.into(), node.migrations.into());
                stats.set_task_usage(self.renumber.thing(id), node.ran_ns, switches, migrations);
            }
        }
        for (id, edge) in self.edges() {
            let (grants, throttles) = (edge.grants.into(), edge.throttles.into());
            stats.set_edge_usage(self.renumber.edge(id), edge.supply_ns, grants, throttles, edge.forgiven_ns);
        }
    }

    /// The edges that there are.
    fn edges(&self) -> impl Iterator<Item = (u32, raw::Edge)> + '_ {
        let all = (1..self.kernel.edges_used()).map(|id| (id, self.kernel.edge(id)));
        all.filter(|(_, edge)| edge.child != 0)
    }
}
