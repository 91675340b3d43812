//! One record of the stream, as `policy/events.h` lays it out.

use tierce_policy::Migration;

/// Bytes of one record in a file.
pub const RECORD_BYTES: usize = 32;

/// The `value` of a [`Kind::JobRelease`] whose job has no deadline.
pub const NO_DEADLINE: u64 = u64::MAX;

/// Longest header accepted: room for half a million tasks.
pub const HEADER_BYTES_MAX: u32 = 1 << 26;

/// `value` of a [`Kind::Outside`] record about the scheduler itself: `a` is a task, which runs from its end on.
pub const SCHEDULER: u64 = 3;

/// Largest node, task or edge id a record may carry: a bound for what readers allocate, far above every pool.
pub const ID_MAX: u32 = (1 << 22) - 1;

macro_rules! kinds {
    ($($(#[$doc:meta])* $number:literal $variant:ident $name:literal,)*) => {
        /// What a record says. The meaning of `a`, `b` and `value` is given per kind.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Kind { $($(#[$doc])* $variant = $number,)* }

        impl Kind {
            /// Every kind, in the order of their numbers.
            pub const ALL: &[Kind] = &[$(Kind::$variant,)*];

            /// The kind with this number, if there is one.
            pub const fn from_number(number: u16) -> Option<Kind> {
                match number { $($number => Some(Kind::$variant),)* _ => None }
            }

            /// The name used in `events.h` and in dumps.
            pub const fn name(self) -> &'static str {
                match self { $(Kind::$variant => $name,)* }
            }
        }
    };
}

kinds! {
    /// A CPU changes what it runs. a: task now running, 0 idle; b: edge it runs through; value: task before.
    1 Decision "decision",
    /// A task became able to use a CPU. a: task; b: why.
    2 Request "request",
    /// A task can use no CPU any more. a: task; b: why.
    3 Release "release",
    /// An edge begins to run its child on this CPU. a: edge; b: child.
    4 Grant "grant",
    /// An edge stops running its child. a: edge; b: why.
    5 Revoke "revoke",
    /// An edge's budget is used up. a: edge; b: child; value: when it is replenished (ns).
    6 Throttle "throttle",
    /// An edge gets its budget back. a: edge; b: child; value: budget now remaining (ns).
    7 Replenish "replenish",
    /// Budget sampled when charged. a: edge; b: child; value: remaining (ns, signed).
    8 Budget "budget",
    /// A job arrives. a: task; b: job number; value: absolute deadline (ns) or [`NO_DEADLINE`].
    9 JobRelease "job_release",
    /// A job runs for the first time. a: task; b: job number.
    10 JobStart "job_start",
    /// A job is done. a: task; b: job number; value: response time (ns).
    11 JobComplete "job_complete",
    /// A job was not done at its deadline. a: task; b: job number; value: absolute deadline (ns).
    12 Miss "miss",
    /// Time the CPU spent outside the graph since its last entry. a: task current meanwhile; value: ns.
    13 Stolen "stolen",
    /// Records lost before this one. value: how many.
    14 Lost "lost",
    /// Debt or budget written off. a: edge; b: child; value: ns.
    15 Forgive "forgive",
    /// A thread outside the graph. a: thread id; b: 1 begins, 0 ends; value: what kind.
    16 Outside "outside",
    /// A control operation. a: operation; b: node or edge; value: error, 0 done.
    17 Control "control",
    /// From here on this id is another thread. a: task; b, pad, value: up to 16 bytes of its name.
    18 Name "name",
    /// An edge appears. a: edge; b: child; value: parent, 0 a CPU.
    19 Attach "attach",
    /// An edge disappears. a: edge; b: child.
    20 Detach "detach",
    /// The plan is another one from here on: a part of the [`crate::PlanChange`]. a: bytes of it from here on; b, pad,
    /// value: 16 of them.
    21 Change "change",
    /// An edge has another budget, from its next replenishment on. a: edge; b: child; value: budget (ns).
    22 Resize "resize",
    /// A task tells its parents something. a: task; b: message, 1: it asks for a time constraint, 2: it ends one; value: error, 0
    /// yes.
    23 Tell "tell",
    /// The work that a time constraint was asked for is done by its deadline. a: task; value: deadline (ns).
    24 Met "met",
    /// A task below a spread node comes to the replica on this CPU. a: task; b: CPU that it leaves; value: see
    /// [`Event::migration`].
    25 Migrate "migrate",
    /// A promise was not kept. a: edge; b: why ([`crate::promise::Unkept::of`]); value: what is missing (ns).
    26 Unkept "unkept",
    /// A task waits for a lock from here on. a: task; b: who has it, 0: a thread outside the graph; value: see [`crate::waits::Lock::of`].
    27 LockWait "lock_wait",
    /// It waits no longer. a: task; b: 0 it has the lock, 1 not.
    28 LockEnd "lock_end",
    /// Critical mode of a `mixed-criticality` node. a: node; b: 1 it begins, 0 it ends; value: edge of the child that used more than its
    /// work, or left last.
    29 Mode "mode",
    /// A program says what it deals with from here on ([`Event::label`]). a: task; b and pad: 8 bytes of a label; value: number of the item.
    30 Mark "mark",
}

/// One record. Fields that a kind does not use are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Event {
    /// When, in the trace's clock.
    pub now_ns: u64,
    /// Number of the [`Kind`]; records of a later version may have kinds unknown here.
    pub kind: u16,
    /// Which CPU tells.
    pub cpu: u16,
    /// First argument.
    pub a: u32,
    /// Second argument.
    pub b: u32,
    /// Unused but by [`Kind::Name`], [`Kind::Change`] and [`Kind::Mark`].
    pub pad: u32,
    /// Third argument.
    pub value: u64,
}

impl Event {
    /// A record of a known kind.
    pub const fn new(now_ns: u64, kind: Kind, cpu: u16, a: u32, b: u32, value: u64) -> Event {
        Event { now_ns, kind: kind as u16, cpu, a, b, pad: 0, value }
    }

    /// A [`Kind::Name`] record; the name is cut after 16 bytes (at a character's boundary).
    pub fn naming(now_ns: u64, cpu: u16, task: u32, name: &str) -> Event {
        let length = (0..=name.len().min(16)).rev().find(|&n| name.is_char_boundary(n)).unwrap_or(0);
        Event { cpu, ..Event::with_text(now_ns, Kind::Name, task, &name.as_bytes()[..length]) }
    }

    /// A record with up to 16 bytes of text in b, pad and value.
    pub fn with_text(now_ns: u64, kind: Kind, a: u32, bytes: &[u8]) -> Event {
        let mut text = [0u8; 16];
        let length = bytes.len().min(16);
        text[..length].copy_from_slice(&bytes[..length]);
        let [b, pad, low, high] =
            [0, 4, 8, 12].map(|at| u32::from_le_bytes([text[at], text[at + 1], text[at + 2], text[at + 3]]));
        let value = u64::from(low) | u64::from(high) << 32;
        Event { now_ns, kind: kind as u16, cpu: 0, a, b, pad, value }
    }

    /// The kind, if this version knows it.
    pub const fn kind(&self) -> Option<Kind> {
        Kind::from_number(self.kind)
    }

    /// Of a [`Kind::Migrate`] record: why the task migrates, and whether it waits for the CPU meanwhile (else it sleeps).
    /// `None`: a reason of a later version.
    pub fn migration(&self) -> Option<(Migration, bool)> {
        Some((Migration::from_number(self.value >> 1)?, self.value & 1 == 1))
    }

    /// The text of a [`Kind::Name`] record.
    pub fn text(&self) -> String {
        let bytes = self.bytes();
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// The label of a [`Kind::Mark`] record.
    pub fn label(&self) -> String {
        let bytes = &self.bytes()[..8];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }

    /// A [`Kind::Mark`] record; the label is cut after 8 bytes.
    pub fn mark(now_ns: u64, cpu: u16, task: u32, label: &str, item: u64) -> Event {
        let length = label.len().min(8);
        let named = Event::with_text(now_ns, Kind::Mark, task, &label.as_bytes()[..length]);
        Event { cpu, value: item, ..named }
    }

    /// The bytes of b, pad and value.
    pub fn bytes(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&self.b.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.pad.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.value.to_le_bytes());
        bytes
    }

    /// As it is in a file: little endian, 32 bytes.
    pub fn to_bytes(&self) -> [u8; RECORD_BYTES] {
        let mut out = [0; RECORD_BYTES];
        out[0..8].copy_from_slice(&self.now_ns.to_le_bytes());
        out[8..10].copy_from_slice(&self.kind.to_le_bytes());
        out[10..12].copy_from_slice(&self.cpu.to_le_bytes());
        out[12..16].copy_from_slice(&self.a.to_le_bytes());
        out[16..20].copy_from_slice(&self.b.to_le_bytes());
        out[20..24].copy_from_slice(&self.pad.to_le_bytes());
        out[24..32].copy_from_slice(&self.value.to_le_bytes());
        out
    }

    /// The record in these bytes. Any 32 bytes are some record; [`Event::fault`] judges it.
    pub fn from_bytes(bytes: &[u8; RECORD_BYTES]) -> Event {
        let u16_at = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let u32_at = |at: usize| u32::from(u16_at(at)) | u32::from(u16_at(at + 2)) << 16;
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        Event {
            now_ns: u64_at(0),
            kind: u16_at(8),
            cpu: u16_at(10),
            a: u32_at(12),
            b: u32_at(16),
            pad: u32_at(20),
            value: u64_at(24),
        }
    }

    /// What is impossible about this record in a trace of `cpus` CPUs, if anything: field, value and bound.
    ///
    /// Only kinds that say something about a CPU need one the trace has: what happens in a domain that several CPUs
    /// share is told with a number beyond them.
    pub fn fault(&self, cpus: u32) -> Option<String> {
        let kind = self.kind()?;
        let about_cpu =
            matches!(kind, Kind::Decision | Kind::Grant | Kind::Stolen | Kind::Outside | Kind::Migrate);
        if about_cpu && u32::from(self.cpu) >= cpus {
            return Some(format!("cpu is {}, the trace has {cpus}", self.cpu));
        }
        let id =
            |what: &str, id: u64| (id > ID_MAX.into()).then(|| format!("{what} is {id}, at most {ID_MAX}"));
        match kind {
            Kind::Outside | Kind::Control | Kind::Lost => None,
            Kind::Change => (self.a > HEADER_BYTES_MAX)
                .then(|| format!("a change of {} bytes, at most {HEADER_BYTES_MAX}", self.a)),
            Kind::Migrate if self.b >= cpus => Some(format!("from cpu {}, the trace has {cpus}", self.b)),
            Kind::Decision
            | Kind::Grant
            | Kind::Throttle
            | Kind::Replenish
            | Kind::Budget
            | Kind::Forgive
            | Kind::Resize
            | Kind::LockWait
            | Kind::Detach => id("a", self.a.into()).or_else(|| id("b", self.b.into())),
            Kind::Attach => {
                id("a", self.a.into()).or_else(|| id("b", self.b.into())).or_else(|| id("parent", self.value))
            }
            _ => id("a", self.a.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `E(number, name, ...)` lines of events.h, read from the source the C side is compiled from.
    fn kinds_of_header() -> Vec<(u16, String)> {
        let text = include_str!("../../../policy/events.h");
        let start = text.find("#define TIERCE_EVENT_LIST").expect("events.h has the list");
        let mut kinds = Vec::new();
        for line in text[start..].lines().skip(1) {
            let Some(rest) = line.trim().strip_prefix("E(") else { break };
            let mut parts = rest.split(',');
            let number = parts.next().unwrap().trim().parse().expect("a number first");
            kinds.push((number, parts.next().expect("then a name").trim().to_string()));
        }
        kinds
    }

    #[test]
    fn kinds_equal_events_h() {
        let ours: Vec<_> = Kind::ALL.iter().map(|&kind| (kind as u16, kind.name().to_string())).collect();
        assert_eq!(
            kinds_of_header(),
            ours,
            "policy/events.h (left) and event.rs (right) list different kinds"
        );
        for &(number, _) in &ours {
            assert_eq!(Kind::from_number(number).map(|kind| kind as u16), Some(number));
        }
        assert_eq!(Kind::from_number(0), None);
    }

    #[test]
    fn reasons_of_migrations_equal_tierce_h() {
        let text = include_str!("../../../policy/tierce.h");
        let (_, text) = text.split_once("enum tierce_migration {").unwrap();
        let (text, _) = text.split_once('}').unwrap();
        let names = text.lines().filter_map(|line| line.trim().strip_prefix("TIERCE_")?.split_once(','));
        let names: Vec<_> = names.map(|(name, _)| name.to_lowercase().replace('_', "-")).collect();
        assert_eq!(names, Migration::ALL.map(Migration::name));
    }

    #[test]
    fn layout_equals_events_h() {
        let event = Event {
            now_ns: 0x0807060504030201,
            kind: 0x0a09,
            cpu: 0x0c0b,
            a: 0x100f0e0d,
            b: 0x14131211,
            pad: 0x18171615,
            value: 0x201f1e1d1c1b1a19,
        };
        let bytes = event.to_bytes();
        assert_eq!(bytes.to_vec(), (1..=32).collect::<Vec<u8>>());
        assert_eq!(Event::from_bytes(&bytes), event);
    }

    #[test]
    fn names_travel_in_one_record() {
        for name in ["", "audio", "exactly16bytes!!", "longer than sixteen bytes"] {
            let event = Event::naming(5, 0, 9, name);
            let back = Event::from_bytes(&event.to_bytes());
            assert_eq!(back.text(), name.chars().take(16).collect::<String>());
        }
        assert_eq!(Event::naming(0, 0, 1, "fifteen bytes: é").text(), "fifteen bytes: ");
    }

    #[test]
    fn faults_name_field_and_bound() {
        let good = Event::new(0, Kind::Grant, 1, 7, 8, 0);
        assert_eq!(good.fault(2), None);
        assert_eq!(good.fault(1).unwrap(), "cpu is 1, the trace has 1");
        assert_eq!(Event { a: u32::MAX, ..good }.fault(2).unwrap(), "a is 4294967295, at most 4194303");
        assert_eq!(Event { b: u32::MAX, ..good }.fault(2).unwrap(), "b is 4294967295, at most 4194303");
        let attach = Event::new(0, Kind::Attach, 0, 1, 2, 1 << 40);
        assert_eq!(attach.fault(1).unwrap(), "parent is 1099511627776, at most 4194303");
        assert_eq!(Event::new(0, Kind::Budget, 64, 7, 8, 0).fault(2), None, "told by a shared domain");
        let migrate = Event::new(0, Kind::Migrate, 1, 7, 0, 3);
        assert_eq!((migrate.fault(2), migrate.migration()), (None, Some((Migration::Pull, true))));
        assert_eq!(migrate.fault(1).unwrap(), "cpu is 1, the trace has 1");
        assert_eq!(Event { b: 2, ..migrate }.fault(2).unwrap(), "from cpu 2, the trace has 2");
        assert_eq!(Event { value: 8, ..migrate }.migration(), None, "a reason of a later version");
        assert_eq!(Event { kind: 999, ..good }.fault(2), None, "kinds of later versions pass");
    }
}
