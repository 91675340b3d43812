//! The one list of policies (policy/policies.h) as data, and the limits of builds.

use crate::raw;
use std::ffi::CStr;
use std::sync::OnceLock;

/// What a parameter's value means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// Nanoseconds.
    Time,
    /// A plain integer.
    Count,
    /// Nanoseconds; when not given, the value of the parameter with this index.
    DurationOf(usize),
    /// A fraction of at most six decimals, in units of 1 / [`RATIO_ONE`].
    Ratio,
    /// One of [`Param::choices`].
    Choice,
}

/// What stands for 1 in a parameter that is a [`ParamKind::Ratio`].
pub const RATIO_ONE: u64 = 1 << 20;
const MILLION: u64 = 1_000_000;

/// One parameter of a policy's nodes or edges.
#[derive(Clone, Debug)]
pub struct Param {
    /// Key in plans.
    pub name: &'static str,
    /// Type and unit.
    pub kind: ParamKind,
    /// Smallest value allowed.
    pub least: u64,
    /// Largest value allowed.
    pub most: u64,
    /// Value when the plan gives none; `None`: the plan has to give it (or, for `DurationOf`, the other one's value).
    pub preset: Option<u64>,
    /// The names that a [`ParamKind::Choice`] numbers.
    pub choices: Vec<&'static str>,
    /// One line for help and schema.
    pub meaning: &'static str,
}

impl Param {
    /// Must the plan give a value?
    pub fn required(&self) -> bool {
        self.preset.is_none() && !matches!(self.kind, ParamKind::DurationOf(_))
    }

    /// Is it a time?
    pub fn is_time(&self) -> bool {
        matches!(self.kind, ParamKind::Time | ParamKind::DurationOf(_))
    }

    /// A value as plans have it, times as `time` shows them.
    pub fn show(&self, value: u64, time: impl Fn(u64) -> String) -> String {
        match self.kind {
            ParamKind::Time | ParamKind::DurationOf(_) => time(value),
            ParamKind::Count => value.to_string(),
            ParamKind::Ratio => {
                // Millionths are finer than the units that they are rounded to, so the decimal is the one that was given.
                let halves = u128::from(value) * u128::from(MILLION) * 2 / u128::from(RATIO_ONE);
                let millionths = halves.div_ceil(2);
                let text = format!("{}.{:06}", millionths / 1_000_000, millionths % 1_000_000);
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            }
            ParamKind::Choice => self.choices.get(value as usize).map_or("?".into(), |name| (*name).into()),
        }
    }

    /// The values it takes, in words.
    pub fn range(&self, time: impl Fn(u64) -> String) -> String {
        match (self.kind, self.choices.split_last()) {
            (ParamKind::Choice, Some((last, others))) => format!("{} or {last}", others.join(", ")),
            // The longest time there is, 2^60 ns, bounds nothing that anybody wants.
            _ if self.most == 1 << 60 => format!("{} to 36 years", self.show(self.least, &time)),
            _ => format!("{} to {}", self.show(self.least, &time), self.show(self.most, &time)),
        }
    }

    /// What a text stands for, if this is a ratio or a choice: "0.25", "after-burst".
    pub fn read(&self, text: &str) -> Option<u64> {
        match self.kind {
            ParamKind::Choice => self.choices.iter().position(|name| *name == text).map(|at| at as u64),
            ParamKind::Ratio => {
                let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
                let digits =
                    |text: &str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
                if !digits(whole) || !digits(decimals) || whole.len() > 6 || decimals.len() > 6 {
                    return None;
                }
                let millionths: u64 = format!("{whole}{decimals:0<6}").parse().ok()?;
                Some((millionths * RATIO_ONE * 2 / MILLION).div_ceil(2))
            }
            _ => None,
        }
    }
}

/// One policy of the list.
#[derive(Clone, Debug)]
pub struct PolicyRecord {
    /// Name in plans.
    pub name: &'static str,
    /// Number in the engine.
    pub number: u32,
    /// It orders its children by the deadlines they announce.
    pub heeds_deadlines: bool,
    /// Its nodes may be spread: tasks below them move between replicas.
    pub spreads: bool,
    /// It is of the user's ([`crate::added`]): its parameters may have the names of others and mean something else.
    pub added: bool,
    /// Parameters of nodes with this policy, by index.
    pub node_params: Vec<Param>,
    /// Parameters of edges below such a node, by index.
    pub edge_params: Vec<Param>,
}

fn text(p: *const std::ffi::c_char) -> &'static str {
    // SAFETY: the C side only hands out string literals.
    unsafe { CStr::from_ptr(p) }.to_str().expect("policy texts are UTF-8")
}

fn param(p: &raw::RawParam) -> Param {
    let kind = match p.kind {
        0 => ParamKind::Time,
        1 => ParamKind::Count,
        2 => ParamKind::DurationOf(p.preset as usize),
        3 => ParamKind::Ratio,
        _ => ParamKind::Choice,
    };
    let (mut choices, mut meaning) = (Vec::new(), text(p.meaning));
    if kind == ParamKind::Choice {
        let (names, what) = meaning.split_once(": ").expect("a choice begins with its names");
        (choices, meaning) = (names.split(", ").collect(), what);
    }
    let preset = (p.preset != u64::MAX && p.kind != 2).then_some(p.preset);
    Param { name: text(p.name), kind, least: p.least, most: p.most, preset, choices, meaning }
}

fn read() -> Vec<PolicyRecord> {
    let mut list = Vec::new();
    for index in 0.. {
        // SAFETY: all-zero bytes are a valid RawRecord (null pointers, integers).
        let mut record: raw::RawRecord = unsafe { std::mem::zeroed() };
        // SAFETY: the function writes one record or nothing.
        if unsafe { raw::tierce_policy_record(index, &mut record) } == 0 {
            break;
        }
        let of = |node: u32| {
            record.param[..record.params as usize].iter().filter(|p| p.of_node == node).map(param).collect()
        };
        list.push(PolicyRecord {
            name: text(record.name),
            number: record.number,
            heeds_deadlines: record.flags & 1 != 0,
            spreads: record.flags & 2 != 0,
            added: record.added != 0,
            node_params: of(1),
            edge_params: of(0),
        });
    }
    list
}

/// Every policy, in the order of the list.
pub fn policies() -> &'static [PolicyRecord] {
    static LIST: OnceLock<Vec<PolicyRecord>> = OnceLock::new();
    LIST.get_or_init(read)
}

/// How much a build can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Nodes and tasks together.
    pub nodes: u32,
    /// Edges, root edges included.
    pub edges: u32,
    /// Nodes and tasks that several CPUs share directly (heads).
    pub heads: u32,
    /// Spread nodes.
    pub families: u32,
    /// CPUs.
    pub cpus: u32,
    /// Nodes from CPU to task.
    pub depth: u32,
    /// Edges from one CPU's tree into shared nodes.
    pub crossings: u32,
}

/// Limits of the native build (simulator). Ids start at 1, so one less than the pools' sizes.
pub fn limits() -> Limits {
    // SAFETY: a pure function of its argument.
    let of = |what| unsafe { raw::tierce_layout(what) } as u32;
    let [nodes, edges, heads, families] = [13, 14, 15, 20].map(|what| of(what) - 1);
    Limits { nodes, edges, heads, families, cpus: of(16), depth: 8, crossings: 63 }
}

/// Limits of the kernel build (bpf/port.h), smaller than the native ones.
pub const KERNEL: Limits = Limits {
    nodes: 16_384 - 1,
    edges: 24_576 - 1,
    heads: 512 - 1,
    families: 64 - 1,
    cpus: 512,
    depth: 8,
    crossings: 63,
};

/// Parts of the engine that not every plan needs: `enum tierce_part` of policy/tierce.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Nodes and tasks with parents on several CPUs.
    Shared,
    /// Spread nodes.
    Spread,
    /// `fair` nodes by eevdf, stride, lottery.
    ByClock,
    /// `reservation` nodes other than hard ones by deadline that are charged for CPU time.
    Servers,
}

impl Part {
    /// All of them.
    pub const ALL: [Part; 4] = [Part::Shared, Part::Spread, Part::ByClock, Part::Servers];

    /// Its bit in a set.
    pub fn bit(self) -> u64 {
        1 << self as u32
    }

    /// What it is, in words for users.
    pub fn text(self) -> &'static str {
        match self {
            Part::Shared => "nodes with parents on several CPUs",
            Part::Spread => "spread nodes",
            Part::ByClock => "the orders eevdf, stride and lottery of fair",
            Part::Servers => {
                "reservations by priority, charged for wall time, with feedback, or with a replenishment other than hard"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_limits_are_those_of_its_port() {
        let text = include_str!("../../../bpf/port.h");
        let size = |name: &str| -> u32 {
            let mut defines = text.lines().filter_map(|line| line.strip_prefix("#define TIERCE_"));
            let value = defines.find_map(|line| line.strip_prefix(name)).expect(name);
            value.trim().trim_end_matches('u').parse().expect(name)
        };
        let [nodes, edges, heads, families] =
            ["NODES ", "EDGES ", "ROWS ", "FAMILIES "].map(|name| size(name) - 1);
        assert_eq!(KERNEL, Limits { nodes, edges, heads, families, cpus: size("CPUS "), ..limits() });
        assert_eq!(limits().cpus, crate::CPUS_MAX);
    }

    /// Their bits are what the loader and the engine understand each other by.
    #[test]
    fn parts_are_those_of_the_engine() {
        let text = include_str!("../../../policy/tierce.h");
        let (_, list) = text.split_once("enum tierce_part {").unwrap();
        let names = list.lines().skip(1).map_while(|line| line.trim().strip_prefix("TIERCE_PART_"));
        let theirs: Vec<String> =
            names.map(|name| name.split_once(',').unwrap().0.replace('_', "")).collect();
        let ours: Vec<String> = Part::ALL.iter().map(|part| format!("{part:?}").to_lowercase()).collect();
        assert_eq!(ours, theirs);
        assert!(Part::ALL.iter().enumerate().all(|(bit, part)| part.bit() == 1 << bit));
    }
}
