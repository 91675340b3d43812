//! Takes out of a BPF program what the constants of this run make unreachable, before the kernel sees it.
//!
//! The verifier would find the same by itself: it knows frozen read-only data. But it removes each dead range on its own, and
//! moves all that follows each time, in every program of the object; with a thousand ranges that takes longer than verifying
//! them. Here it is one pass: constants are followed through registers along the branches that can be taken (Wegman and Zadeck
//! 1991, "Constant propagation with conditional branches"), then what nobody reads any more goes, then the rest moves up.
//!
//! What is not understood is left as it is.

mod constants;
mod effects;
mod insn;

pub use constants::Constants;
pub use insn::Insn;

use constants::{taken, Known};
use effects::{only_changes, reads, tells_frame, writes, Set, SLOTS};
use insn::{ALU, ALU64, JUMP, JUMP_FAR, MOVE, MOVE_32};
use std::collections::BTreeSet;
use std::ops::Range;

/// A program as the loader hands it to the kernel: all its functions, one behind the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// The instructions; a wide load takes two places.
    pub insns: Vec<Insn>,
    /// First instruction of each function, and what else its record says; ascending.
    pub functions: Vec<(u32, Vec<u8>)>,
    /// First instruction of each line of source, and what else its record says; ascending.
    pub lines: Vec<(u32, Vec<u8>)>,
}

/// What is read and changed by an instruction that stays, and which one comes next.
struct Flow {
    reads: Set,
    writes: Set,
    only_changes: Option<Set>,
    ends: bool,
    target: Option<usize>,
}

impl Flow {
    fn of(insn: Insn, at: usize, rank: impl Fn(usize) -> usize) -> Flow {
        Flow {
            reads: reads(insn),
            writes: writes(insn),
            only_changes: only_changes(insn),
            ends: insn.ends(),
            target: insn.target(at).map(rank),
        }
    }
}

/// A program of which some instructions go.
struct Pruning {
    insns: Vec<Insn>,
    /// The instructions that stay, ascending.
    kept: Vec<usize>,
    /// First instructions of functions that are called.
    entries: BTreeSet<usize>,
    /// Those in which nothing more is to be found.
    done: BTreeSet<usize>,
}

impl Pruning {
    /// Without what cannot be reached. A load of a constant becomes its value, and so does what is computed from constants.
    fn begin(mut insns: Vec<Insn>, constants: &Constants) -> Pruning {
        let mut leads = vec![false; insns.len() + 1];
        for (at, insn) in insns.iter().enumerate() {
            for to in insn.target(at).into_iter().chain(insn.function(at)) {
                leads[to] = true;
            }
        }
        leads[insns.len()] = true;
        let mut kept = Vec::new();
        for (mut at, known) in constants.follow(&insns, &leads).into_iter().enumerate() {
            let Some(mut registers) = known else { continue };
            loop {
                let insn = insns[at];
                kept.push(at);
                let decided = constants.decided(insn, &registers);
                if let Some(taken) = decided {
                    insns[at] = Insn::new(JUMP, 0, 0, if taken { insn.offset } else { 0 }, 0);
                }
                if insn.ends() || decided == Some(true) {
                    break;
                }
                let loaded = constants.loaded(insn, &registers);
                constants.pass(&insns, at, &mut registers);
                let value = match (insn.class(), registers.get(insn.to())) {
                    (ALU | ALU64, Some(&Known(value))) => Some(value),
                    _ => loaded,
                };
                if let Some(small) = value.and_then(|value| i32::try_from(value as i64).ok()) {
                    insns[at] = Insn::new(MOVE, insn.to(), 0, 0, small);
                } else if let Some(half) = value.and_then(|value| u32::try_from(value).ok()) {
                    insns[at] = Insn::new(MOVE_32, insn.to(), 0, 0, half as i32);
                }
                at += insn.length();
                if leads[at] {
                    break;
                }
            }
        }
        Pruning { insns, kept, entries: BTreeSet::new(), done: BTreeSet::new() }
    }

    /// For each instruction, which of `kept` it is, or else the next one.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = Vec::with_capacity(self.insns.len() + 1);
        for (rank, &at) in self.kept.iter().enumerate() {
            ranks.resize(at + 1, rank);
        }
        ranks.resize(self.insns.len() + 1, self.kept.len());
        ranks
    }

    /// Each function's first instruction, and which of `kept` are its.
    fn functions(&self) -> Vec<(usize, Range<usize>)> {
        let begin = |entry: usize| self.kept.partition_point(|&at| at < entry);
        let ends = self.entries.iter().skip(1).map(|&entry| begin(entry)).chain([self.kept.len()]);
        self.entries.iter().zip(ends).map(|(&entry, end)| (entry, begin(entry)..end)).collect()
    }

    /// Registers, and places on the stack, that are read later, before each of these instructions of a function, and after the last.
    fn live(&self, ranks: &[usize], function: Range<usize>) -> Vec<Set> {
        let kept = &self.kept[function.clone()];
        let flow = |&at: &usize| Flow::of(self.insns[at], at, |target| ranks[target] - function.start);
        let flows: Vec<Flow> = kept.iter().map(flow).collect();
        // If others get to know where the stack is, they may read all of it at any time.
        let shown = if kept.iter().any(|&at| tells_frame(self.insns[at])) { Set::MAX << SLOTS } else { 0 };
        let mut live: Vec<Set> = vec![0; kept.len() + 1];
        loop {
            let mut changed = false;
            for (rank, flow) in flows.iter().enumerate().rev() {
                let mut after = if flow.ends { shown } else { live[rank + 1] | shown };
                if let Some(target) = flow.target {
                    after |= live[target];
                }
                let before = match flow.only_changes {
                    Some(changes) if after & changes == 0 => after, // it goes, so it reads nothing
                    _ => (after & !flow.writes) | flow.reads | shown,
                };
                changed |= live[rank] != before;
                live[rank] = before;
            }
            if !changed {
                return live;
            }
        }
    }

    /// Where control comes to from `at`, if a test of the same register as `test` has found `value` there: past jumps, and past
    /// further tests of it.
    fn lands(&self, ranks: &[usize], mut at: usize, test: Insn, value: u64) -> usize {
        for _ in 0..64 {
            let Some(&place) = self.kept.get(ranks[at]) else { break };
            let insn = self.insns[place];
            let same = insn.is_conditional() && (insn.class(), insn.to()) == (test.class(), test.to());
            let taken = match insn.code {
                JUMP | JUMP_FAR => Some(true),
                _ if same && !insn.by_register() => taken(insn, value, insn.imm as i64 as u64),
                _ => None,
            };
            match (taken, insn.target(place)) {
                (Some(true), Some(target)) => at = target,
                (Some(false), _) => at = place + 1,
                _ => return place,
            }
        }
        at
    }

    /// Of a switch whose cases are gone, the tests for them: what is equal comes to the same place without.
    fn forget_tests(&mut self) {
        let ranks = self.ranks();
        for rank in 0..self.kept.len() {
            let at = self.kept[rank];
            let insn = self.insns[at];
            let equal = match insn.code & 0xf8 {
                0x10 => true,
                0x50 => false,
                _ => continue,
            };
            let Some(target) = insn.target(at).filter(|_| insn.is_conditional()) else { continue };
            let value = insn.imm as i64 as u64;
            if self.lands(&ranks, target, insn, value) == self.lands(&ranks, at + 1, insn, value) {
                self.insns[at] = Insn::new(JUMP, 0, 0, if equal { 0 } else { insn.offset }, 0);
            }
        }
    }

    /// Keep what control still comes to.
    fn reach(&mut self) {
        let ranks = self.ranks();
        let mut reached = vec![false; self.kept.len()];
        self.entries = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(mut rank) = open.pop() {
            while rank < self.kept.len() && !std::mem::replace(&mut reached[rank], true) {
                let at = self.kept[rank];
                let insn = self.insns[at];
                open.extend(insn.target(at).map(|target| ranks[target]));
                if let Some(function) = insn.function(at) {
                    self.entries.insert(function);
                    open.push(ranks[function]);
                }
                if insn.ends() {
                    break;
                }
                rank += 1;
            }
        }
        let mut reached = reached.into_iter();
        self.kept.retain(|_| reached.next() == Some(true));
    }

    /// Take out results that nobody reads, and jumps to what follows anyway. Whether there were any.
    fn sweep(&mut self) -> bool {
        self.forget_tests();
        self.reach();
        let ranks = self.ranks();
        let mut stays = vec![true; self.kept.len()];
        for (entry, function) in self.functions() {
            if self.done.contains(&entry) {
                continue;
            }
            let live = self.live(&ranks, function.clone());
            let mut next = self.insns.len(); // that stays
            for rank in function.clone().rev() {
                let at = self.kept[rank];
                let insn = self.insns[at];
                let jumps = insn.is_conditional() || matches!(insn.code, JUMP | JUMP_FAR);
                let idle = jumps && insn.target(at).is_some_and(|target| target > at && target <= next);
                let unread =
                    only_changes(insn).is_some_and(|changes| live[rank - function.start + 1] & changes == 0);
                if idle || unread {
                    stays[rank] = false;
                } else {
                    next = at;
                }
            }
            if stays[function].iter().all(|&stays| stays) {
                self.done.insert(entry);
            }
        }
        let before = self.kept.len();
        let mut stays = stays.into_iter();
        self.kept.retain(|_| stays.next() == Some(true));
        self.kept.len() < before
    }

    /// Where each instruction is in the new program; what is gone is where the next one that stays is.
    fn places(&self) -> Vec<u32> {
        let mut places = Vec::with_capacity(self.insns.len() + 1);
        let mut place = 0;
        for &at in &self.kept {
            places.resize(at + 1, place);
            place += self.insns[at].length() as u32;
        }
        places.resize(self.insns.len() + 1, place);
        places
    }

    fn compact(&self, places: &[u32]) -> Vec<Insn> {
        let mut insns = Vec::new();
        let distance = |from: usize, to: usize| i64::from(places[to]) - i64::from(places[from]) - 1;
        for &at in &self.kept {
            let mut insn = self.insns[at];
            if let Some(target) = insn.target(at) {
                match insn.code {
                    JUMP_FAR => insn.imm = distance(at, target) as i32,
                    _ => insn.offset = distance(at, target) as i16,
                }
            } else if let Some(function) = insn.function(at) {
                insn.imm = distance(at, function) as i32;
            }
            insns.push(insn);
            insns.extend_from_slice(&self.insns[at + 1..at + insn.length()]);
        }
        insns
    }
}

/// Take out of `program` what `constants` make unreachable, and what then has no reader.
pub fn prune(program: &Program, constants: &Constants) -> Program {
    let mut pruning = Pruning::begin(program.insns.clone(), constants);
    while pruning.sweep() {}
    let places = pruning.places();
    let insns = pruning.compact(&places);
    let moved = |(at, rest): &(u32, Vec<u8>)| (places[*at as usize], rest.clone());
    let is_entry = |at: u32| pruning.entries.contains(&(at as usize));
    let functions = program.functions.iter().filter(|(at, _)| is_entry(*at)).map(moved).collect();
    let mut lines: Vec<(u32, Vec<u8>)> = Vec::new();
    for (index, line) in program.lines.iter().enumerate() {
        let end = program.lines.get(index + 1).map_or(program.insns.len(), |next| next.0 as usize);
        let new = moved(line);
        // All of it may be gone: only at the begin of a function, which the kernel wants to have a line, it is named then.
        if new.0 < places[end] || is_entry(line.0) {
            if lines.last().is_some_and(|last| last.0 == new.0) {
                lines.pop();
            }
            lines.push(new);
        }
    }
    Program { insns, functions, lines }
}
