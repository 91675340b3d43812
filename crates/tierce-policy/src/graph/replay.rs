//! Recorded operations, run again: the test that two builds decide alike.

use super::Graph;
use crate::raw::{self, Entry};

/// `taken` of enum tierce_op: an input of the entry that follows it.
const OP_TAKEN: u32 = 20;
const OP_SEEN: u32 = 23;
const OP_MET: u32 = 27;
const OP_BALANCE: u32 = 28;

/// A replayed operation that did not do what was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the other build did.
    pub recorded: Entry,
    /// What this one did; `None`: it refused the operation's ids.
    pub replayed: Option<Entry>,
}

impl Graph {
    /// Run one recorded operation again. The state afterwards is that of the recorded machine if every operation before
    /// was replayed; the difference is reported with what this build got.
    pub fn replay(&mut self, entry: &Entry) -> Result<(), Difference> {
        let Entry { now_ns: now, value, a, b, .. } = *entry;
        if (entry.op == OP_TAKEN || entry.op == OP_SEEN) && a < self.cpus {
            let cpu = self.cpu_mut(a);
            cpu.taken_ns = value + if entry.op == OP_TAKEN { cpu.told_ns } else { cpu.paid_ns };
            return Ok(());
        }
        if entry.op == OP_BALANCE && a < self.cpus {
            self.cpu_mut(a).balance_ns = value;
            return Ok(());
        }
        if entry.op == OP_MET {
            // SAFETY: see `call`; the engine checks the number.
            self.call(|| unsafe { raw::tierce_met(a, value) });
            return Ok(());
        }
        let own = self.entries.take();
        self.record(true);
        self.drain = Some(entry.drained);
        // SAFETY: see `call`; every function checks the ids it is given.
        self.call(|| unsafe {
            match entry.op {
                1 => _ = raw::graph_init(a, now),
                2 => _ = raw::graph_request(a, b, now),
                3 => _ = raw::graph_release(a, b, now),
                4 => _ = raw::graph_announce(a, value, now),
                5 => _ = raw::graph_decide(a, 0, now, value),
                6 => _ = raw::graph_event(a, now, value),
                7 => _ = raw::graph_returned(a, now),
                8 => _ = raw::graph_outside(a, b, now),
                9 => _ = raw::graph_stage(a, value),
                10 => _ = raw::graph_node_new(a, b, value),
                11 => _ = raw::graph_node_set(a, now),
                12 => _ = raw::graph_node_free(a),
                13 => _ = raw::graph_edge_new(a, b, value as i32, (value >> 32) as u32),
                14 => _ = raw::graph_attach(a, now),
                15 => _ = raw::graph_set(a, now),
                16 => _ = raw::graph_detach(a, now),
                17 => _ = raw::graph_root(a, b, now),
                18 => _ = raw::graph_allow(a, value, now),
                19 => _ = raw::graph_online(a, b, now),
                21 => _ = raw::graph_yield(a, now),
                22 => _ = raw::graph_tell(a, b, now),
                24 => _ = raw::graph_replica(a, b),
                25 => _ = raw::graph_leave(a, b, now),
                26 => _ = raw::graph_enter(a, b, value as u32, now),
                _ => {}
            }
        });
        self.drain = None;
        let mut got = self.take_entries();
        got.retain(|entry| ![OP_TAKEN, OP_SEEN, OP_MET].contains(&entry.op));
        self.entries = own;
        match got.as_slice() {
            [one] if one == entry => Ok(()),
            got => Err(Difference { recorded: *entry, replayed: got.last().copied() }),
        }
    }
}
