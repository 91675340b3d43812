//! What is known of registers, and so of jumps, from constants.

use super::insn::*;

/// Read-only data that the kernel will have frozen, as programs name it.
#[derive(Clone, Copy, Debug)]
pub struct Constants<'a> {
    /// Descriptor of its map.
    pub map: i32,
    /// Its content.
    pub data: &'a [u8],
}

/// What is known of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    Unknown,
    Known(u64),
    /// Address in the constants.
    At(i64),
}
pub(super) use Value::{At, Known, Unknown};

pub(super) type Registers = [Value; 11];

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
pub(super) fn taken(insn: Insn, a: u64, b: u64) -> Option<bool> {
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
    pub(super) fn pass(&self, insns: &[Insn], at: usize, registers: &mut Registers) {
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
    pub(super) fn loaded(&self, insn: Insn, registers: &Registers) -> Option<u64> {
        match registers.get(insn.from()) {
            Some(&At(address)) if insn.class() == LDX => self.load(insn, address),
            _ => None,
        }
    }

    /// What is known at each instruction where jumps and calls lead to, as far as something leads there from the first function.
    pub(super) fn follow(&self, insns: &[Insn], leads: &[bool]) -> Vec<Option<Registers>> {
        let mut known: Vec<Option<Registers>> = vec![None; insns.len()];
        let mut open = vec![(0, NOTHING)];
        while let Some((mut at, mut registers)) = open.pop() {
            if let Some(old) = &known[at] {
                for (value, &old) in registers.iter_mut().zip(old) {
                    *value = join(*value, old);
                }
                if registers == *old {
                    continue;
                }
            }
            known[at] = Some(registers);
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
    pub(super) fn decided(&self, insn: Insn, registers: &Registers) -> Option<bool> {
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
