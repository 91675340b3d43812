//! Traces for Grasp (Holenderski et al. 2010), the viewer that ExSched's recorder writes for: a script of commands, a line each.
//!
//! `newProcessor`, `newTask` and `newServer` name what there is; `plot TIME EVENT …` says what happens, times in µs. Jobs arrive, are
//! resumed, preempted, completed; servers (edges with a budget) are replenished, resumed, preempted, depleted. A task without jobs
//! of its own has one that goes on for ever. Nodes, shares and slots have no words in Grasp: they are left out.

use crate::event::{Event, Kind};
use crate::file::Trace;
use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

/// `enum tierce_why`: the edge lost its CPU because its budget is used up.
const SPENT: u32 = 5;

/// Write a trace for Grasp.
pub fn write(trace: &Trace, out: impl Write) -> io::Result<()> {
    let header = &trace.header;
    let mut script =
        Script { out, jobs: BTreeMap::new(), numbers: BTreeMap::new(), running: BTreeMap::new() };
    writeln!(script.out, "# {} ({}), times in us", header.plan.replace(['\n', '\r'], " "), header.source)?;
    for cpu in 0..header.cpus {
        writeln!(script.out, "newProcessor cpu{cpu} -name \"CPU {cpu}\"")?;
    }
    for (rank, task) in header.tasks.iter().enumerate() {
        writeln!(script.out, "newTask task{} -priority {rank} -name \"{}\"", task.id, plain(&task.name))?;
    }
    let servers: HashSet<_> =
        header.edges.iter().filter(|edge| edge.budget_ns.is_some()).map(|edge| edge.id).collect();
    for edge in header.edges.iter().filter(|edge| servers.contains(&edge.id)) {
        let (child, parent) = (plain(&edge.child_name), plain(&edge.parent_name));
        writeln!(script.out, "newServer server{} -name \"{child} below {parent}\"", edge.id)?;
    }
    let tasks: HashSet<_> = header.tasks.iter().map(|task| task.id).collect();
    for event in trace.events.iter().filter(|event| event.fault(header.cpus).is_none()) {
        match event.kind() {
            Some(Kind::Grant | Kind::Revoke | Kind::Throttle | Kind::Replenish)
                if !servers.contains(&event.a) => {}
            Some(Kind::JobRelease | Kind::JobComplete) if !tasks.contains(&event.a) => {}
            Some(kind) => script.event(kind, event, &tasks)?,
            None => {}
        }
    }
    script.out.flush()
}

/// Between quotes, in Tcl.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || " _-@.:+".contains(c) { c } else { '_' }).collect()
}

/// In µs.
fn time(ns: u64) -> String {
    match ns % 1000 {
        0 => format!("{}", ns / 1000),
        rest => format!("{}.{rest:03}", ns / 1000),
    }
}

struct Script<W: Write> {
    out: W,
    /// Of each task: the jobs that have arrived and are not completed, the oldest first.
    jobs: BTreeMap<u32, Vec<u32>>,
    /// How many have arrived.
    numbers: BTreeMap<u32, u32>,
    /// Of each CPU: task and job that run.
    running: BTreeMap<u16, (u32, u32)>,
}

impl<W: Write> Script<W> {
    fn event(&mut self, kind: Kind, event: &Event, tasks: &HashSet<u32>) -> io::Result<()> {
        let (at, a, b) = (time(event.now_ns), event.a, event.b);
        match kind {
            Kind::JobRelease => self.arrives(&at, a, b),
            Kind::JobComplete => self.completes(&at, a, b),
            Kind::Decision => {
                let next = if tasks.contains(&a) { Some((a, self.job(&at, a)?)) } else { None };
                self.switches(&at, event.cpu, next)
            }
            Kind::Replenish => {
                writeln!(self.out, "plot {at} serverReplenished server{a} {}", time(event.value))
            }
            Kind::Throttle => writeln!(self.out, "plot {at} serverDepleted server{a}"),
            Kind::Grant => writeln!(self.out, "plot {at} serverResumed server{a}"),
            Kind::Revoke if b != SPENT => writeln!(self.out, "plot {at} serverPreempted server{a}"),
            _ => Ok(()),
        }
    }

    fn arrives(&mut self, at: &str, task: u32, job: u32) -> io::Result<()> {
        self.jobs.entry(task).or_default().push(job);
        self.numbers.insert(task, job + 1);
        writeln!(self.out, "plot {at} jobArrived job{task}.{job} task{task}")
    }

    /// The job that runs when the task does: its oldest; one that nobody has announced, if it has none.
    fn job(&mut self, at: &str, task: u32) -> io::Result<u32> {
        if let Some(job) = self.jobs.get(&task).and_then(|jobs| jobs.first()) {
            return Ok(*job);
        }
        let job = self.numbers.get(&task).copied().unwrap_or(0);
        self.arrives(at, task, job)?;
        Ok(job)
    }

    fn completes(&mut self, at: &str, task: u32, job: u32) -> io::Result<()> {
        let Some(jobs) = self.jobs.get_mut(&task) else { return Ok(()) };
        if !jobs.contains(&job) {
            return Ok(());
        }
        jobs.retain(|open| *open != job);
        let next = jobs.first().copied();
        writeln!(self.out, "plot {at} jobCompleted job{task}.{job}")?;
        let on = self.running.iter().find(|(_, running)| **running == (task, job)).map(|(cpu, _)| *cpu);
        let Some(cpu) = on else { return Ok(()) };
        self.running.remove(&cpu);
        // The thread goes on with the next one that waits; without one its CPU decides anew.
        match next {
            Some(next) => self.switches(at, cpu, Some((task, next))),
            None => Ok(()),
        }
    }

    fn switches(&mut self, at: &str, cpu: u16, next: Option<(u32, u32)>) -> io::Result<()> {
        let last = self.running.get(&cpu).copied();
        if last == next {
            return Ok(());
        }
        if let Some((task, job)) = last {
            write!(self.out, "plot {at} jobPreempted job{task}.{job}")?;
            match next {
                Some((task, job)) => writeln!(self.out, " -target job{task}.{job}")?,
                None => writeln!(self.out)?,
            }
        }
        match next {
            Some((task, job)) => {
                self.running.insert(cpu, (task, job));
                writeln!(self.out, "plot {at} jobResumed job{task}.{job} -processor cpu{cpu}")
            }
            None => {
                self.running.remove(&cpu);
                Ok(())
            }
        }
    }
}
