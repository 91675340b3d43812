//! Takes out of a BPF program what the constants of this run make unreachable, before the kernel sees it.
//!
//! The verifier would find the same by itself: it knows frozen read-only data. But it removes each dead range on its own, and
//! moves all that follows each time, in every program of the object; with a thousand ranges that takes longer than verifying
//! them. Here it is one pass: constants are followed through registers along the branches that can be taken (Wegman and Zadeck
//! 1991, "Constant propagation with conditional branches"), then what nobody reads any more goes, then the rest moves up.
//!
//! What is not understood is left as it is.

use std::collections::{BTreeMap, BTreeSet};

/// `struct bpf_insn`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Insn {
    /// Class, size or operation, mode or source.
    pub code: u8,
    registers: u8,
    /// Jump distance or displacement.
    pub offset: i16,
    /// Immediate operand.
    pub imm: i32,
}

const LD: u8 = 0;
const LDX: u8 = 1;
const ST: u8 = 2;
const STX: u8 = 3;
const ALU: u8 = 4;
const JMP: u8 = 5;
const JMP32: u8 = 6;
const ALU64: u8 = 7;

const MODE: u8 = 0xe0;
const MEM: u8 = 0x60;
const MEM_SIGNED: u8 = 0x80;
const ATOMIC: u8 = 0xc0;
const COMPARE_AND_EXCHANGE: i32 = 0xf1;

/// The register that points to the stack of a function.
const FRAME: usize = 10;

const LOAD_WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_FAR: u8 = 0x06;
const MAY_GOTO: u8 = 0xe5;
const MOVE: u8 = 0xb7;
const MOVE_32: u8 = 0xb4;

/// Sources of a wide load: the value of a map, by its descriptor; a function.
const MAP_VALUE: usize = 2;
const FUNCTION: usize = 4;
/// Source of a call: a function of the program.
const LOCAL: usize = 1;

impl Insn {
    /// An instruction of the registers `to` and `from`.
    pub fn new(code: u8, to: usize, from: usize, offset: i16, imm: i32) -> Insn {
        Insn { code, registers: (to | from << 4) as u8, offset, imm }
    }

    /// Destination register.
    pub fn to(self) -> usize {
        (self.registers & 15) as usize
    }

    /// Source register.
    pub fn from(self) -> usize {
        (self.registers >> 4) as usize
    }

    fn class(self) -> u8 {
        self.code & 7
    }

    /// Is the second operand a register?
    fn by_register(self) -> bool {
        self.code & 8 != 0
    }

    fn length(self) -> usize {
        1 + usize::from(self.code == LOAD_WIDE)
    }

    fn is_conditional(self) -> bool {
        matches!(self.class(), JMP | JMP32) && !matches!(self.code, CALL | EXIT | JUMP | JUMP_FAR | MAY_GOTO)
    }

    /// Where it jumps to from `at`, if it may jump.
    fn target(self, at: usize) -> Option<usize> {
        let distance = match (self.class(), self.code) {
            (_, CALL | EXIT) => return None,
            (_, JUMP_FAR) => self.imm as isize,
            (JMP | JMP32, _) => self.offset as isize,
            _ => return None,
        };
        at.checked_add_signed(1 + distance)
    }

    /// The function that it calls or takes the address of.
    fn function(self, at: usize) -> Option<usize> {
        let is = (self.code == CALL && self.from() == LOCAL)
            || (self.code == LOAD_WIDE && self.from() == FUNCTION);
        if is {
            at.checked_add_signed(1 + self.imm as isize)
        } else {
            None
        }
    }

    /// Does control never go on behind it?
    fn ends(self) -> bool {
        matches!(self.code, EXIT | JUMP | JUMP_FAR)
    }
}

/// Read-only data that the kernel will have frozen, as programs name it.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'a> {
    /// Descriptor of its map.
    pub map: i32,
    /// Its content.
    pub data: &'a [u8],
}

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

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Value {
    Unknown,
    Known(u64),
    /// Address in the constants.
    At(i64),
}
use Value::{At, Known, Unknown};

type Registers = [Value; 11];

const NOTHING: Registers = [Unknown; 11];

fn join(a: Value, b: Value) -> Value {
    if a == b {
        a
    } else {
        Unknown
    }
}

fn sign_extended(value: u64, bits: u32) -> u64 {
    ((value << (64 - bits)) as i64 >> (64 - bits)) as u64
}

/// What an operation of class ALU or ALU64 gives; `None`: not followed.
fn computed(insn: Insn, a: u64, b: u64) -> Option<u64> {
    let wide = insn.class() == ALU64;
    let (a, b) = if wide { (a, b) } else { (u64::from(a as u32), u64::from(b as u32)) };
    let bits = if wide { 63 } else { 31 };
    let value = match insn.code & 0xf0 {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a << (b & bits),
        0x70 => a >> (b & bits),
        0xa0 => a ^ b,
        0xb0 => match insn.offset {
            0 => b,
            8 | 16 | 32 if insn.by_register() => sign_extended(b, insn.offset as u32),
            _ => return None,
        },
        0xc0 if wide => ((a as i64) >> (b & bits)) as u64,
        0xc0 => u64::from(((a as i32) >> (b & bits)) as u32),
        _ => return None,
    };
    Some(if wide { value } else { u64::from(value as u32) })
}

/// Is a conditional jump taken? `None`: not followed.
fn taken(insn: Insn, a: u64, b: u64) -> Option<bool> {
    let wide = insn.class() == JMP;
    let (a, b) = if wide { (a, b) } else { (u64::from(a as u32), u64::from(b as u32)) };
    let signed = |value: u64| if wide { value as i64 } else { i64::from(value as i32) };
    Some(match insn.code & 0xf0 {
        0x10 => a == b,
        0x20 => a > b,
        0x30 => a >= b,
        0x40 => a & b != 0,
        0x50 => a != b,
        0x60 => signed(a) > signed(b),
        0x70 => signed(a) >= signed(b),
        0xa0 => a < b,
        0xb0 => a <= b,
        0xc0 => signed(a) < signed(b),
        0xd0 => signed(a) <= signed(b),
        _ => return None,
    })
}

impl Constants<'_> {
    /// What a load from `at` gives.
    fn load(&self, insn: Insn, at: i64) -> Option<u64> {
        let size = [4, 2, 1, 8][(insn.code >> 3 & 3) as usize];
        let begin = usize::try_from(at.checked_add(insn.offset.into())?).ok()?;
        let bytes = self.data.get(begin..begin.checked_add(size)?)?;
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(bytes);
        let value = u64::from_le_bytes(wide);
        match insn.code & 0xe0 {
            0x60 => Some(value),
            0x80 => Some(sign_extended(value, 8 * size as u32)),
            _ => None,
        }
    }

    /// What the instruction at `at` does to `registers`.
    fn pass(&self, insns: &[Insn], at: usize, registers: &mut Registers) {
        let insn = insns[at];
        let value_of = |register: usize| registers.get(register).copied().unwrap_or(Unknown);
        let operand = if insn.by_register() { value_of(insn.from()) } else { Known(insn.imm as i64 as u64) };
        let (old, loaded) = (value_of(insn.to()), self.loaded(insn, registers));
        let mut set = |register: usize, value| {
            if let Some(place) = registers.get_mut(register) {
                *place = value;
            }
        };
        match insn.class() {
            LD if insn.code == LOAD_WIDE => {
                let next = insns.get(at + 1).map_or(0, |next| next.imm);
                let value = match insn.from() {
                    0 => Known(u64::from(insn.imm as u32) | u64::from(next as u32) << 32),
                    MAP_VALUE if insn.imm == self.map => At(next.into()),
                    _ => Unknown,
                };
                set(insn.to(), value);
            }
            LD => registers[..6].fill(Unknown), // packets: r0 is the result, r1 to r5 are lost
            LDX => set(insn.to(), loaded.map_or(Unknown, Known)),
            ALU | ALU64 => {
                let value = match (insn.code & 0xf8, old, operand) {
                    (0xb8, _, At(address)) if insn.class() == ALU64 && insn.offset == 0 => At(address),
                    (0x00, At(address), Known(more)) if insn.class() == ALU64 => {
                        At(address.wrapping_add(more as i64))
                    }
                    (0xb0 | 0xb8, _, Known(b)) => computed(insn, 0, b).map_or(Unknown, Known),
                    (_, Known(a), Known(b)) => computed(insn, a, b).map_or(Unknown, Known),
                    _ => Unknown,
                };
                set(insn.to(), value);
            }
            STX if insn.code & 0xe0 == 0xc0 => {
                set(insn.to(), if insn.imm == 0x100 { Unknown } else { old }); // a load that acquires
                set(insn.from(), Unknown);
                set(0, Unknown);
            }
            JMP if insn.code == CALL => registers[..6].fill(Unknown),
            _ => (),
        }
    }

    /// What a load gives, if it is one from the constants.
    fn loaded(&self, insn: Insn, registers: &Registers) -> Option<u64> {
        match registers.get(insn.from()) {
            Some(&At(address)) if insn.class() == LDX => self.load(insn, address),
            _ => None,
        }
    }

    /// What is known where jumps and calls lead to, as far as something leads there from the first function.
    fn follow(&self, insns: &[Insn], leads: &[bool]) -> BTreeMap<usize, Registers> {
        let mut known: BTreeMap<usize, Registers> = BTreeMap::new();
        let mut open = vec![(0, NOTHING)];
        while let Some((mut at, mut registers)) = open.pop() {
            if let Some(old) = known.get(&at) {
                for (value, &old) in registers.iter_mut().zip(old) {
                    *value = join(*value, old);
                }
                if registers == *old {
                    continue;
                }
            }
            known.insert(at, registers);
            loop {
                let insn = insns[at];
                open.extend(insn.function(at).map(|function| (function, NOTHING)));
                let decided = self.decided(insn, &registers);
                if decided != Some(false) {
                    open.extend(insn.target(at).map(|target| (target, registers)));
                }
                if insn.ends() || decided == Some(true) {
                    break;
                }
                self.pass(insns, at, &mut registers);
                at += insn.length();
                if leads[at] {
                    open.push((at, registers));
                    break;
                }
            }
        }
        known
    }

    /// Which way a conditional jump goes, if that is known.
    fn decided(&self, insn: Insn, registers: &Registers) -> Option<bool> {
        if !insn.is_conditional() {
            return None;
        }
        let known = |register: usize| match registers.get(register) {
            Some(&Known(value)) => Some(value),
            _ => None,
        };
        let b = if insn.by_register() { known(insn.from())? } else { insn.imm as i64 as u64 };
        taken(insn, known(insn.to())?, b)
    }
}

/// A bit for each register; from bit `SLOTS` on, one for each place of 8 bytes on the stack, the highest first.
type Set = u128;

const SLOTS: usize = 16;
const STACK: i32 = 512;

/// The places on the stack of which a load or store by the frame pointer `FRAME` touches a part, and whether it is the whole.
fn slots(insn: Insn) -> (Set, bool) {
    let size = [4, 2, 1, 8][(insn.code >> 3 & 3) as usize];
    let begin = STACK + i32::from(insn.offset);
    if begin < 0 || begin + size > STACK {
        return (0, false);
    }
    let [first, last] = [begin, begin + size - 1].map(|byte| SLOTS + (STACK - 1 - byte) as usize / 8);
    (1 << first | 1 << last, first == last && size == 8)
}

/// Is it a load or a store at a place on the stack that it names?
fn is_local(insn: Insn) -> bool {
    let base = match insn.class() {
        LDX => insn.from(),
        ST | STX => insn.to(),
        _ => return false,
    };
    base == FRAME && matches!(insn.code & MODE, MEM | MEM_SIGNED) && slots(insn).0 != 0
}

/// Registers, and places on the stack, that an instruction reads.
fn reads(insn: Insn) -> Set {
    let (to, from) = (1 << insn.to(), 1 << insn.from());
    match insn.class() {
        LD if insn.code == LOAD_WIDE => 0,
        LDX if is_local(insn) => from | slots(insn).0,
        LDX => from,
        ST => to,
        STX if insn.code & MODE == ATOMIC && insn.imm == COMPARE_AND_EXCHANGE => to | from | 1,
        STX => to | from,
        ALU | ALU64 => {
            let both = if insn.by_register() { from } else { 0 };
            match insn.code & 0xf0 {
                0xb0 => both,
                0x80 | 0xd0 => to,
                _ => both | to,
            }
        }
        _ => match insn.code {
            CALL => 0b11_1110,
            EXIT => 1,
            JUMP | JUMP_FAR | MAY_GOTO => 0,
            _ if insn.is_conditional() => to | if insn.by_register() { from } else { 0 },
            _ => Set::MAX,
        },
    }
}

/// Registers, and places on the stack, to which an instruction gives a value that does not depend on the old one.
fn writes(insn: Insn) -> Set {
    match insn.class() {
        ST | STX if is_local(insn) => match slots(insn) {
            (slot, true) => slot,
            _ => 0,
        },
        LD if insn.code == LOAD_WIDE => 1 << insn.to(),
        LDX | ALU | ALU64 => 1 << insn.to(),
        JMP if insn.code == CALL => 0b11_1111,
        _ => 0,
    }
}

/// Registers, and places on the stack, that it changes, if it has no other effect.
fn only_changes(insn: Insn) -> Option<Set> {
    if matches!(insn.class(), ST | STX) && is_local(insn) {
        return Some(slots(insn).0);
    }
    let loads = insn.class() == LDX && matches!(insn.code & MODE, MEM | MEM_SIGNED);
    let pure =
        loads || matches!(insn.class(), ALU | ALU64) || (insn.code == LOAD_WIDE && insn.from() != FUNCTION);
    pure.then(|| writes(insn))
}

/// May others get to know where the stack is? Only if the frame pointer is used for more than a load or store of a place.
fn tells_frame(insn: Insn) -> bool {
    let stores_it = insn.class() == STX && insn.from() == FRAME;
    (reads(insn) >> FRAME & 1 != 0 && !is_local(insn)) || stores_it
}

/// A program of which some instructions go.
struct Pruning {
    insns: Vec<Insn>,
    /// The instructions that stay, ascending.
    kept: Vec<usize>,
    /// First instructions of functions that are called.
    entries: BTreeSet<usize>,
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
        for (mut at, mut registers) in constants.follow(&insns, &leads) {
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
        Pruning { insns, kept, entries: BTreeSet::new() }
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

    /// For each instruction that stays, the places on the stack that others may read at any time.
    fn shown(&self) -> Vec<Set> {
        let mut shown = vec![0; self.kept.len()];
        let mut begins: Vec<usize> =
            self.entries.iter().map(|entry| self.kept.partition_point(|at| at < entry)).collect();
        begins.push(self.kept.len());
        for function in begins.windows(2) {
            if self.kept[function[0]..function[1]].iter().any(|&at| tells_frame(self.insns[at])) {
                shown[function[0]..function[1]].fill(Set::MAX << SLOTS);
            }
        }
        shown
    }

    /// Registers, and places on the stack, that are read later, before each instruction that stays.
    fn live(&self, ranks: &[usize]) -> Vec<Set> {
        let shown = self.shown();
        let mut live: Vec<Set> = vec![0; self.kept.len() + 1];
        loop {
            let mut changed = false;
            for (rank, &at) in self.kept.iter().enumerate().rev() {
                let insn = self.insns[at];
                let mut after = if insn.ends() { 0 } else { live[rank + 1] };
                if let Some(target) = insn.target(at) {
                    after |= live[ranks[target]];
                }
                after |= shown[rank];
                let before = if only_changes(insn).is_some_and(|changes| after & changes == 0) {
                    after // it goes, so it reads nothing
                } else {
                    (after & !writes(insn)) | reads(insn) | shown[rank]
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
        let before = self.kept.len();
        self.forget_tests();
        self.reach();
        let live = self.live(&self.ranks());
        let mut next = self.insns.len(); // that stays
        let mut stays = Vec::with_capacity(before);
        for (rank, &at) in self.kept.iter().enumerate().rev() {
            let insn = self.insns[at];
            let jumps = insn.is_conditional() || matches!(insn.code, JUMP | JUMP_FAR);
            let idle = jumps && insn.target(at).is_some_and(|target| target > at && target <= next);
            let unread = only_changes(insn).is_some_and(|changes| live[rank + 1] & changes == 0);
            if !(idle || unread) {
                stays.push(at);
                next = at;
            }
        }
        stays.reverse();
        self.kept = stays;
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
