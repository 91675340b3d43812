//! What a machine leaves for a plan: what stands above sched_ext there, and the guarantee that remains of each CPU.
//!
//! - A thread of SCHED_DEADLINE gets its runtime in every period and is stopped then: in a window of t at most (t/period + 2)
//!   of them. So PSBE 1 − Σ runtime/period, 2·Σ runtime remains, on every CPU that it may run on.
//! - A thread of SCHED_FIFO or SCHED_RR has no bound. What is sure then is what the kernel keeps for sched_ext when others take
//!   everything (its `ext_server`): RESBS runtime period; nothing, where there is none.

use tierce_guarantee::{ratio, whole, Guarantee, Kind};
use tierce_plan::show_time;
use tierce_plan::Cpus;
use tierce_plan::{Fault, Faults};
use tierce_plan::{Left, Plan};

/// What stands above sched_ext.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Above {
    /// CPUs that are online.
    pub online: Vec<u32>,
    /// Threads of SCHED_DEADLINE.
    pub deadline: Vec<Reserved>,
    /// Threads of SCHED_FIFO and SCHED_RR that count: name, and CPUs they may run on, a bit each.
    pub unbounded: Vec<(String, Cpus)>,
    /// CPU, runtime and period (ns) that the kernel keeps for sched_ext.
    pub ext_servers: Vec<(u32, u64, u64)>,
}

/// A thread of SCHED_DEADLINE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reserved {
    /// Its name.
    pub name: String,
    /// CPUs it may run on.
    pub cpus: Cpus,
    /// CPU time per period.
    pub runtime_ns: u64,
    /// From period to period, or less.
    pub period_ns: u64,
}

impl Above {
    /// What remains of that CPU.
    pub fn left(&self, cpu: u32) -> Left {
        let here = |cpus: Cpus| cpus.has(cpu);
        let server = self.ext_servers.iter().find(|(other, ..)| *other == cpu);
        let kept = || {
            let (_, runtime_ns, period_ns) = server?;
            Guarantee::reservation(Kind::Resbs, whole(*runtime_ns), whole(*period_ns))
        };
        let sure = |why: String| match kept() {
            Some(guarantee) => {
                Left { guarantee, because: format!("{why}; the kernel keeps that for sched_ext") }
            }
            None => Left {
                guarantee: Guarantee::null(),
                because: format!("{why}, and the kernel keeps nothing for sched_ext"),
            },
        };
        if let Some((name, _)) = self.unbounded.iter().find(|(_, cpus)| here(*cpus)) {
            return sure(format!("`{name}`, a real-time thread, may take all of CPU {cpu}"));
        }
        let reserved: Vec<_> = self.deadline.iter().filter(|thread| here(thread.cpus)).collect();
        if reserved.is_empty() {
            return Left { guarantee: Guarantee::all(), because: format!("nothing stands above CPU {cpu}") };
        }
        let names: Vec<_> = reserved
            .iter()
            .map(|thread| {
                format!(
                    "`{}` ({} in {})",
                    thread.name,
                    show_time(thread.runtime_ns),
                    show_time(thread.period_ns)
                )
            })
            .collect();
        let used =
            crate::share::sum(reserved.iter().map(|thread| (thread.runtime_ns, thread.period_ns.max(1))));
        let burst =
            reserved.iter().fold(0u64, |sum, thread| sum.saturating_add(thread.runtime_ns.saturating_mul(2)));
        // Down to a millionth: the denominator would be of any length.
        let share = ((whole(1) - used) * whole(1_000_000)).floor() / whole(1_000_000);
        let why = format!("SCHED_DEADLINE stands above CPU {cpu}: {}", names.join(", "));
        match Guarantee::psbe(share, whole(burst)).filter(|guarantee| guarantee.share() > ratio(0, 1)) {
            Some(guarantee) => Left { guarantee, because: why },
            None => sure(why),
        }
    }
}

impl Above {
    /// The plan on this machine: what its CPUs give to their roots is what is left there. Refused where a root's CPU is not
    /// online.
    pub fn under(&self, mut plan: Plan) -> Result<Plan, Faults> {
        let mut faults = Vec::new();
        for node in &plan.nodes {
            for cpu in node.roots.iter().filter(|cpu| !self.online.contains(cpu)) {
                let message = format!("`{}` is the root of CPU {cpu}, which is not online", node.name);
                let online: Vec<_> = self.online.iter().map(ToString::to_string).collect();
                let fault = Fault::new("root_cpu_must_be_online", node.spot, message).value(cpu);
                faults.push(fault.bound(online.join(", ")));
            }
        }
        if !faults.is_empty() {
            return Err(Faults::new(faults, plan.sources.clone()));
        }
        plan.machine.left = (0..plan.machine.cpus).map(|cpu| self.left(cpu)).collect();
        Ok(plan)
    }
}
