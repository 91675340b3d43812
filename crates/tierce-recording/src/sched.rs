//! What the kernel's scheduler told: the tracepoints of `sched`, read by their descriptions.

use crate::layout::{flags, Field, Layout};
use crate::refusal::{refused, Result};

/// A thread's name, as the kernel keeps it: up to 15 bytes and a zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Comm(pub [u8; 16]);

impl Comm {
    /// Of these bytes; what is too long is cut.
    pub fn new(bytes: &[u8]) -> Comm {
        let mut comm = [0; 16];
        let length = bytes.len().min(15);
        comm[..length].copy_from_slice(&bytes[..length]);
        Comm(comm)
    }

    /// As text.
    pub fn text(&self) -> String {
        let end = self.0.iter().position(|byte| *byte == 0).unwrap_or(self.0.len());
        String::from_utf8_lossy(&self.0[..end]).into_owned()
    }
}

/// A thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Who {
    /// Its thread id; 0: a CPU's idle thread.
    pub pid: i32,
    /// Its name then.
    pub comm: Comm,
    /// The kernel's priority: below 0 a deadline, up to 99 real time, 100 to 139 by nice value.
    pub prio: i32,
}

/// What becomes of a thread that leaves a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// It still wants the CPU.
    Ready,
    /// It sleeps.
    Sleeps,
    /// It ends.
    Ends,
}

/// One thing that happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sched {
    /// When.
    pub time_ns: u64,
    /// Which CPU told.
    pub cpu: u32,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The CPU turns from one thread to another.
    Switch {
        /// Which leaves.
        from: Who,
        /// What becomes of it.
        leaves: Leaves,
        /// Which comes.
        to: Who,
    },
    /// A thread is about to be woken.
    Waking(Who),
    /// A thread wants a CPU from now on.
    Woken(Who),
    /// A thread gets to another CPU.
    Migrate(Who, u32),
    /// A thread is there.
    Named(i32, Comm),
    /// A thread is about to end.
    Exit(i32),
    /// Records of this CPU are missing; 0: an unknown number.
    Lost(u64),
}

struct WhoFields {
    pid: Field,
    comm: Field,
    prio: Option<Field>,
}

impl WhoFields {
    fn of(layout: &Layout, before: &str) -> Result<WhoFields> {
        let name = |what: &str| format!("{before}{what}");
        Ok(WhoFields {
            pid: layout.field(&name("pid"))?,
            comm: layout.field(&name("comm"))?,
            prio: layout.field(&name("prio")).ok(),
        })
    }

    fn read(&self, record: &[u8]) -> Option<Who> {
        let prio = self.prio.as_ref().map_or(Some(120), |prio| prio.number(record))?;
        Some(Who {
            pid: self.pid.number(record)? as i32,
            comm: Comm::new(self.comm.text(record)?),
            prio: prio as i32,
        })
    }
}

enum Kind {
    Switch { from: WhoFields, state: Field, to: WhoFields },
    Waking(WhoFields),
    Woken(WhoFields),
    Migrate(WhoFields, Field),
    Fork { pid: Field, comm: Field },
    Exec { pid: Field, comm: Field },
    Exit { pid: Field },
}

/// Reads records by the descriptions of their events.
pub struct Decoder {
    kind_of_record: Field,
    kinds: Vec<(u64, Kind)>,
    asleep: u64,
    ended: u64,
}

impl Decoder {
    /// By these descriptions; `offset` is where they are.
    pub fn new(layouts: &[Layout], offset: u64) -> Result<Decoder> {
        let find = |name: &str| layouts.iter().find(|layout| layout.name == name);
        let Some(switch) = find("sched_switch") else {
            let message = "the file does not describe `sched_switch`: record with `-e sched:sched_switch`";
            return refused("switches_must_be_recorded", offset, message);
        };
        let kinds = layouts.iter().filter_map(|layout| kind(layout).transpose()).collect::<Result<_>>()?;
        let all = flags(&switch.print);
        let sum =
            |list: &mut dyn Iterator<Item = &(u64, String)>| list.fold(0, |all, (value, _)| all | value);
        let asleep = match sum(&mut all.iter()) {
            0 => 0xff,
            some => some,
        };
        // X and Z; a kernel that does not say them has ended threads among the sleeping ones.
        let ended =
            sum(&mut all.iter().filter(|(_, letter)| letter.eq_ignore_ascii_case("x") || letter == "Z"));
        Ok(Decoder { kind_of_record: switch.field("common_type")?, kinds, asleep, ended })
    }

    /// What the record says; `None`: another event.
    pub fn read(&self, record: &[u8], offset: u64) -> Result<Option<What>> {
        let short = || {
            let message = format!("a record has {} bytes, less than its description says", record.len());
            refused("record_must_be_whole", offset, message)
        };
        let Some(number) = self.kind_of_record.number(record) else { return short() };
        let Some((_, kind)) = self.kinds.iter().find(|(id, _)| *id == number as u64) else { return Ok(None) };
        match self.what(kind, record) {
            Some(what) => Ok(Some(what)),
            None => short(),
        }
    }

    fn what(&self, kind: &Kind, record: &[u8]) -> Option<What> {
        Some(match kind {
            Kind::Switch { from, state, to } => {
                let state = state.number(record)? as u64;
                let leaves = match () {
                    () if state & self.ended != 0 => Leaves::Ends,
                    () if state & self.asleep != 0 => Leaves::Sleeps,
                    () => Leaves::Ready,
                };
                What::Switch { from: from.read(record)?, leaves, to: to.read(record)? }
            }
            Kind::Waking(who) => What::Waking(who.read(record)?),
            Kind::Woken(who) => What::Woken(who.read(record)?),
            Kind::Migrate(who, to) => What::Migrate(who.read(record)?, to.number(record)? as u32),
            Kind::Fork { pid, comm } => {
                What::Named(pid.number(record)? as i32, Comm::new(comm.text(record)?))
            }
            Kind::Exec { pid, comm } => {
                // A thread is called as the file that it executes, without folders.
                let path = comm.text(record)?;
                let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
                What::Named(pid.number(record)? as i32, Comm::new(name))
            }
            Kind::Exit { pid } => What::Exit(pid.number(record)? as i32),
        })
    }
}

fn kind(layout: &Layout) -> Result<Option<(u64, Kind)>> {
    let kind = match layout.name.as_str() {
        "sched_switch" => Kind::Switch {
            from: WhoFields::of(layout, "prev_")?,
            state: layout.field("prev_state")?,
            to: WhoFields::of(layout, "next_")?,
        },
        "sched_waking" => Kind::Waking(WhoFields::of(layout, "")?),
        "sched_wakeup" | "sched_wakeup_new" => Kind::Woken(WhoFields::of(layout, "")?),
        "sched_migrate_task" => Kind::Migrate(WhoFields::of(layout, "")?, layout.field("dest_cpu")?),
        "sched_process_fork" => {
            Kind::Fork { pid: layout.field("child_pid")?, comm: layout.field("child_comm")? }
        }
        "sched_process_exec" => Kind::Exec { pid: layout.field("pid")?, comm: layout.field("filename")? },
        "sched_process_exit" => Kind::Exit { pid: layout.field("pid")? },
        _ => return Ok(None),
    };
    Ok(Some((layout.id, kind)))
}
