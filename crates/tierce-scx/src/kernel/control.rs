//! Control operations of the engine, through a BPF program.

use super::{wide, Command, Kernel, OP_SET};
use tierce_policy::{Control, Cpus, NodeParams, Params, Refusal, Way, CPUS_MAX};

const OP_NODE_NEW: u32 = 10;
const OP_NODE_SET: u32 = 11;
const OP_EDGE_NEW: u32 = 13;
const OP_ATTACH: u32 = 14;
const OP_DETACH: u32 = 16;
const OP_REPLICA: u32 = 24;
const OP_NODE_FREE: u32 = 12;
const OP_ROOT: u32 = 17;

/// Each at the time of its call.
impl Control for &Kernel {
    fn node_new(
        &mut self,
        kind: u32,
        concurrency: u32,
        allowed: Cpus,
        param: NodeParams,
    ) -> Result<u32, Refusal> {
        let (op, mut cpus) = (OP_NODE_NEW, [0; CPUS_MAX as usize / 64 - 1]);
        cpus.copy_from_slice(&allowed.words()[1..]);
        self.make(Command {
            op,
            a: kind,
            b: concurrency,
            value: allowed.first_word(),
            param,
            cpus,
            ..Default::default()
        })
    }

    fn node_set(&mut self, node: u32, param: NodeParams) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_NODE_SET, a: node, param, ..Default::default() })
    }

    fn node_free(&mut self, node: u32) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_NODE_FREE, a: node, ..Default::default() })
    }

    fn root(&mut self, cpu: u32, node: u32) -> Result<u32, Refusal> {
        self.refuse(Command { op: OP_ROOT, a: cpu, b: node, ..Default::default() })?;
        Ok(self.cpu(cpu).root_edge)
    }

    fn replica(&mut self, node: u32, first: u32) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_REPLICA, a: node, b: first, ..Default::default() })
    }

    fn edge_new(&mut self, parent: u32, child: u32, rank: i32, way: Way) -> Result<u32, Refusal> {
        let flags = u64::from(way.flags());
        let value = u64::from(rank as u32) | flags << 32;
        self.make(Command { op: OP_EDGE_NEW, a: parent, b: child, value, ..Default::default() })
    }

    fn attach(&mut self, edge: u32, param: Params) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_ATTACH, a: edge, param: wide(param), ..Default::default() })
    }

    fn set(&mut self, edge: u32, param: Params) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_SET, a: edge, param: wide(param), ..Default::default() })
    }

    fn detach(&mut self, edge: u32) -> Result<(), Refusal> {
        self.refuse(Command { op: OP_DETACH, a: edge, ..Default::default() })
    }
}
