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
}

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
    /// One line for help and schema.
    pub meaning: &'static str,
}

impl Param {
    /// Must the plan give a value?
    pub fn required(&self) -> bool {
        self.preset.is_none() && !matches!(self.kind, ParamKind::DurationOf(_))
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
    /// Parameters of nodes with this policy, by index.
    pub node_params: Vec<Param>,
    /// Parameters of edges below such a node, by index.
    pub edge_params: Vec<Param>,
}

fn text(p: *const std::ffi::c_char) -> &'static str {
    // SAFETY: the C side only hands out string literals.
    unsafe { CStr::from_ptr(p) }.to_str().expect("policy texts are UTF-8")
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
            record.param[..record.params as usize]
                .iter()
                .filter(|p| p.of_node == node)
                .map(|p| Param {
                    name: text(p.name),
                    kind: match p.kind {
                        0 => ParamKind::Time,
                        1 => ParamKind::Count,
                        _ => ParamKind::DurationOf(p.preset as usize),
                    },
                    least: p.least,
                    most: p.most,
                    preset: (p.preset != u64::MAX && p.kind != 2).then_some(p.preset),
                    meaning: text(p.meaning),
                })
                .collect()
        };
        list.push(PolicyRecord {
            name: text(record.name),
            number: record.number,
            heeds_deadlines: record.flags & 1 != 0,
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
    Limits { nodes: of(13) - 1, edges: of(14) - 1, heads: of(15) - 1, cpus: of(16), depth: 8, crossings: 63 }
}

/// Limits of the kernel build (bpf/port.h), smaller than the native ones.
pub const KERNEL: Limits =
    Limits { nodes: 16_384 - 1, edges: 24_576 - 1, heads: 512 - 1, cpus: 64, depth: 8, crossings: 63 };

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
        let [nodes, edges, heads] = ["NODES ", "EDGES ", "ROWS "].map(|name| size(name) - 1);
        assert_eq!(KERNEL, Limits { nodes, edges, heads, cpus: size("CPUS "), ..limits() });
    }
}
