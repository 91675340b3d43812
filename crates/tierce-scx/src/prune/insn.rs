//! Instructions of a BPF program, as the kernel takes them.

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

pub(super) const LD: u8 = 0;
pub(super) const LDX: u8 = 1;
pub(super) const ST: u8 = 2;
pub(super) const STX: u8 = 3;
pub(super) const ALU: u8 = 4;
pub(super) const JMP: u8 = 5;
pub(super) const JMP32: u8 = 6;
pub(super) const ALU64: u8 = 7;

pub(super) const MODE: u8 = 0xe0;
pub(super) const MEM: u8 = 0x60;
pub(super) const MEM_SIGNED: u8 = 0x80;
pub(super) const ATOMIC: u8 = 0xc0;
pub(super) const COMPARE_AND_EXCHANGE: i32 = 0xf1;

/// The register that points to the stack of a function.
pub(super) const FRAME: usize = 10;

pub(super) const LOAD_WIDE: u8 = 0x18;
pub(super) const CALL: u8 = 0x85;
pub(super) const EXIT: u8 = 0x95;
pub(super) const JUMP: u8 = 0x05;
pub(super) const JUMP_FAR: u8 = 0x06;
pub(super) const MAY_GOTO: u8 = 0xe5;
pub(super) const MOVE: u8 = 0xb7;
pub(super) const MOVE_32: u8 = 0xb4;

/// Sources of a wide load: the value of a map, by its descriptor; a function.
pub(super) const MAP_VALUE: usize = 2;
pub(super) const FUNCTION: usize = 4;
/// Source of a call: a function of the program.
pub(super) const LOCAL: usize = 1;

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

    pub(super) fn class(self) -> u8 {
        self.code & 7
    }

    /// Is the second operand a register?
    pub(super) fn by_register(self) -> bool {
        self.code & 8 != 0
    }

    pub(super) fn length(self) -> usize {
        1 + usize::from(self.code == LOAD_WIDE)
    }

    pub(super) fn is_conditional(self) -> bool {
        matches!(self.class(), JMP | JMP32) && !matches!(self.code, CALL | EXIT | JUMP | JUMP_FAR | MAY_GOTO)
    }

    /// Where it jumps to from `at`, if it may jump.
    pub(super) fn target(self, at: usize) -> Option<usize> {
        let distance = match (self.class(), self.code) {
            (_, CALL | EXIT) => return None,
            (_, JUMP_FAR) => self.imm as isize,
            (JMP | JMP32, _) => self.offset as isize,
            _ => return None,
        };
        at.checked_add_signed(1 + distance)
    }

    /// The function that it calls or takes the address of.
    pub(super) fn function(self, at: usize) -> Option<usize> {
        let is = (self.code == CALL && self.from() == LOCAL)
            || (self.code == LOAD_WIDE && self.from() == FUNCTION);
        if is {
            at.checked_add_signed(1 + self.imm as isize)
        } else {
            None
        }
    }

    /// Does control never go on behind it?
    pub(super) fn ends(self) -> bool {
        matches!(self.code, EXIT | JUMP | JUMP_FAR)
    }
}
