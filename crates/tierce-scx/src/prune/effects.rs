//! Which registers and places on the stack an instruction reads and changes.

use super::insn::*;

/// A bit for each register; from bit `SLOTS` on, one for each place of 8 bytes on the stack, the highest first.
pub(super) type Set = u64;

pub(super) const SLOTS: usize = 11;
/// Bytes of the stack that have such a place; further ones are left as they are.
const STACK: i32 = 8 * (Set::BITS as i32 - SLOTS as i32);

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
pub(super) fn reads(insn: Insn) -> Set {
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
pub(super) fn writes(insn: Insn) -> Set {
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
pub(super) fn only_changes(insn: Insn) -> Option<Set> {
    if matches!(insn.class(), ST | STX) && is_local(insn) {
        return Some(slots(insn).0);
    }
    let loads = insn.class() == LDX && matches!(insn.code & MODE, MEM | MEM_SIGNED);
    let pure =
        loads || matches!(insn.class(), ALU | ALU64) || (insn.code == LOAD_WIDE && insn.from() != FUNCTION);
    pure.then(|| writes(insn))
}

/// May others get to know where the stack is? Only if the frame pointer is used for more than a load or store of a place.
pub(super) fn tells_frame(insn: Insn) -> bool {
    let stores_it = insn.class() == STX && insn.from() == FRAME;
    (reads(insn) >> FRAME & 1 != 0 && !is_local(insn)) || stores_it
}
