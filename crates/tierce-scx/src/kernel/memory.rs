//! What lies in the kernel side's memory, as it is at the moment.

use super::{CpuSide, Kernel, Leaf, LockSide, Pools, Side, Words};
use std::mem::offset_of;
use std::ptr::read_volatile;
use std::sync::atomic::{AtomicU32, Ordering};
use tierce_policy::{raw, Cpus, KERNEL};

impl Kernel {
    pub(super) fn read<T>(&self, base: *const u8, at: usize) -> T {
        // SAFETY: callers pass places inside the arena, which is mapped as long as the object; T is plain data, and the
        // kernel side may change it meanwhile: a torn copy is a stale number, never an unsound value.
        unsafe { read_volatile(base.add(at).cast::<T>()) }
    }

    /// A node or task; all zeros for an id that cannot be.
    pub fn node(&self, id: u32) -> raw::Node {
        let id = id.min(self.layout.nodes - 1);
        self.read(self.state, (self.layout.node_at + id * self.layout.node_size) as usize)
    }

    /// An edge.
    pub fn edge(&self, id: u32) -> raw::Edge {
        let id = id.min(self.layout.edges - 1);
        self.read(self.state, (self.layout.edge_at + id * self.layout.edge_size) as usize)
    }

    /// Where the kernel side keeps a node. It believes what is written there: for tests that break it.
    pub fn node_address(&self, id: u32) -> *mut raw::Node {
        let id = id.min(self.layout.nodes - 1);
        let at = (self.layout.node_at + id * self.layout.node_size) as usize;
        // SAFETY: inside the arena.
        unsafe { self.state.cast_mut().add(at).cast() }
    }

    /// The same of an edge.
    pub fn edge_address(&self, id: u32) -> *mut raw::Edge {
        let id = id.min(self.layout.edges - 1);
        let at = (self.layout.edge_at + id * self.layout.edge_size) as usize;
        // SAFETY: inside the arena.
        unsafe { self.state.cast_mut().add(at).cast() }
    }

    /// A CPU.
    pub fn cpu(&self, cpu: u32) -> raw::Cpu {
        let cpu = cpu.min(KERNEL.cpus - 1);
        self.read(self.state, (self.layout.cpu_at + cpu * self.layout.cpu_size) as usize)
    }

    /// CPUs that a task may run on.
    pub fn allowed(&self, task: u32) -> Cpus {
        if !self.options.has_many_cpus() {
            return self.node(task).allowed.into();
        }
        let task = task.min(self.layout.nodes - 1) as usize;
        Cpus::from_words(
            self.read::<Words>(self.state, self.layout.set_at as usize + task * size_of::<Words>()),
        )
    }

    /// What the kernel side keeps for a task.
    pub fn leaf(&self, id: u32) -> Leaf {
        let id = id.min(self.layout.nodes - 1);
        self.read(self.side, id as usize * size_of::<Leaf>())
    }

    /// The thread is looked at now: the kernel side tells again of what changes from here on. Whether there is more than it has told: the
    /// thread has changed since, or has another leaf.
    pub(crate) fn is_looked_at(&self, tid: u32, leaf: u32) -> bool {
        leaf != 0 && (self.leaf(leaf).pid != tid || self.told(leaf).swap(0, Ordering::SeqCst) > 1)
    }

    /// What was told of threads is forgotten: it is told again.
    pub(crate) fn forget_told(&self) {
        (1..self.nodes_used()).for_each(|leaf| self.told(leaf).store(0, Ordering::SeqCst));
    }

    fn told(&self, leaf: u32) -> &AtomicU32 {
        let at = leaf.min(self.layout.nodes - 1) as usize * size_of::<Leaf>() + offset_of!(Leaf, told);
        // SAFETY: inside the arena, which is mapped as long as the object, and the kernel side changes it atomically.
        unsafe { AtomicU32::from_ptr(self.side.cast_mut().add(at).cast()) }
    }

    /// What it counts per CPU.
    pub fn cpu_side(&self, cpu: u32) -> CpuSide {
        let cpu = cpu.min(KERNEL.cpus - 1);
        self.read(self.side, (self.layout.side_cpu_at + cpu * self.layout.side_cpu_size) as usize)
    }

    /// How the lock of a CPU's domain was used; `shared`: that of the shared domain of the group whose lowest CPU it is.
    pub fn lock_side(&self, cpu: u32, shared: bool) -> LockSide {
        let domain = cpu.min(KERNEL.cpus - 1) + if shared { KERNEL.cpus } else { 0 };
        self.read(self.side, self.layout.side_lock_at as usize + domain as usize * size_of::<LockSide>())
    }

    /// What it counts as a whole.
    pub fn side(&self) -> Side {
        self.read(self.side, self.layout.side_rest_at as usize)
    }

    /// Ids of nodes and tasks are below this.
    pub fn nodes_used(&self) -> u32 {
        self.read::<u32>(self.state, self.layout.fresh_node_at as usize).clamp(1, self.layout.nodes)
    }

    /// All edges in use have smaller ids.
    pub fn edges_used(&self) -> u32 {
        self.read::<u32>(self.state, self.layout.fresh_edge_at as usize).clamp(1, self.layout.edges)
    }

    /// Pools in use.
    pub fn pools(&self) -> Pools {
        let count = |fresh: u32, spare: u32| {
            let fresh: u32 = self.read(self.state, fresh as usize);
            let spare: u32 = self.read(self.state, spare as usize);
            fresh.saturating_sub(1).saturating_sub(spare)
        };
        Pools {
            nodes: count(self.layout.fresh_node_at, self.layout.spare_nodes_at),
            edges: count(self.layout.fresh_edge_at, self.layout.spare_edges_at),
        }
    }
}
