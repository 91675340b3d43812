//! A pruned program does what the whole one does: tried on random programs, both interpreted. TIERCE_SEED=N tries others.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_scx::prune::{prune, Constants, Insn, Program};

const MAP: i32 = 7;
const OTHER_MAP: i32 = 8;
/// Where maps are in the interpreter's memory.
const BASE: u64 = 1 << 40;
const OTHER: u64 = 1 << 41;
/// Where the stack of the first function begins; each one that is called has the next `FRAME`.
const STACK: u64 = 1 << 42;
const FRAME: u64 = 64;
const GARBAGE: u64 = 0xdead_beef_0123_4567;

const MOVE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
const WIDE: u8 = 0x18;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_FAR: u8 = 0x06;
const MAY_GOTO: u8 = 0xe5;
const EQUAL: u8 = 0x15;

fn op(code: u8, to: usize, from: usize, offset: i16, imm: i32) -> Insn {
    Insn::new(code, to, from, offset, imm)
}

fn load(data: &[u8], at: u64, code: u8) -> u64 {
    let size = [4, 2, 1, 8][(code >> 3 & 3) as usize];
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(&data[at as usize..at as usize + size]);
    let value = u64::from_le_bytes(wide);
    let unused = 64 - 8 * size as u32;
    if code & 0xe0 == 0x80 {
        ((value << unused) as i64 >> unused) as u64
    } else {
        value
    }
}

fn alu(insn: Insn, a: u64, b: u64) -> u64 {
    let wide = insn.code & 7 == 7;
    let (a, b) = if wide { (a, b) } else { (a & 0xffff_ffff, b & 0xffff_ffff) };
    let shift = (b & if wide { 63 } else { 31 }) as u32;
    let value = match insn.code >> 4 {
        0x0 => a.wrapping_add(b),
        0x1 => a.wrapping_sub(b),
        0x2 => a.wrapping_mul(b),
        0x3 => a.checked_div(b).unwrap_or(0),
        0x4 => a | b,
        0x5 => a & b,
        0x6 => a << shift,
        0x7 => a >> shift,
        0x8 => (a as i64).wrapping_neg() as u64,
        0x9 => {
            if b == 0 {
                a
            } else {
                a % b
            }
        }
        0xa => a ^ b,
        0xb => b,
        0xc if wide => ((a as i64) >> shift) as u64,
        0xc => u64::from(((a as i32) >> shift) as u32),
        other => panic!("operation {other}"),
    };
    if wide {
        value
    } else {
        value & 0xffff_ffff
    }
}

fn jumps(insn: Insn, a: u64, b: u64) -> bool {
    let wide = insn.code & 7 == 5;
    let (a, b) = if wide { (a, b) } else { (a & 0xffff_ffff, b & 0xffff_ffff) };
    let (x, y) = if wide { (a as i64, b as i64) } else { (i64::from(a as i32), i64::from(b as i32)) };
    match insn.code >> 4 {
        0x1 => a == b,
        0x2 => a > b,
        0x3 => a >= b,
        0x4 => a & b != 0,
        0x5 => a != b,
        0x6 => x > y,
        0x7 => x >= y,
        0xa => a < b,
        0xb => a <= b,
        0xc => x < y,
        0xd => x <= y,
        other => panic!("jump {other}"),
    }
}

/// What a program does: the arguments of each call to the kernel, with the stack if it can see it, its stores elsewhere, at last its
/// result.
fn run(program: &Program, data: &[u8], other: &[u8], argument: u64) -> Vec<u64> {
    let insns = &program.insns;
    let mut did = Vec::new();
    let mut frames: Vec<(usize, [u64; 11])> = Vec::new();
    let mut r = [GARBAGE; 11];
    (r[1], r[10]) = (argument, STACK + FRAME);
    let mut stack = vec![0x5a_u8; 64 * FRAME as usize];
    let mut at = 0;
    for _ in 0..10_000 {
        let insn = insns[at];
        let operand = if insn.code & 8 != 0 { r[insn.from()] } else { insn.imm as i64 as u64 };
        let mut next = at + 1;
        match (insn.code & 7, insn.code) {
            (_, WIDE) => {
                let high = insns[at + 1].imm;
                r[insn.to()] = match insn.from() {
                    2 if insn.imm == MAP => BASE + high as u64,
                    2 => OTHER + high as u64,
                    _ => u64::from(insn.imm as u32) | u64::from(high as u32) << 32,
                };
                next += 1;
            }
            (1, code) => {
                let from = r[insn.from()].wrapping_add_signed(insn.offset.into());
                let value = if from >= STACK {
                    load(&stack, from - STACK, code)
                } else if from >= OTHER {
                    load(other, from - OTHER, code)
                } else {
                    load(data, from - BASE, code)
                };
                r[insn.to()] = value;
            }
            (2 | 3, code) => {
                let value = if code & 7 == 2 { insn.imm as i64 as u64 } else { r[insn.from()] };
                let to = r[insn.to()].wrapping_add_signed(insn.offset.into());
                let size = [4, 2, 1, 8][(code >> 3 & 3) as usize];
                let place =
                    to.checked_sub(STACK).and_then(|at| stack.get_mut(at as usize..at as usize + size));
                match place {
                    Some(place) => place.copy_from_slice(&value.to_le_bytes()[..size]),
                    None => did.extend([0x57, value]),
                }
            }
            (4 | 7, _) => r[insn.to()] = alu(insn, r[insn.to()], operand),
            (_, EXIT) => match frames.pop() {
                Some((back, saved)) => {
                    r[6..].copy_from_slice(&saved[6..]);
                    r[1..6].fill(GARBAGE);
                    next = back;
                }
                None => {
                    did.push(r[0]);
                    return did;
                }
            },
            (_, CALL) if insn.from() == 1 => {
                frames.push((next, r));
                next = next.wrapping_add_signed(insn.imm as isize);
                r[6..10].fill(GARBAGE);
                r[0] = GARBAGE;
                r[10] += FRAME;
                let frame = (r[10] - STACK) as usize;
                stack[frame - FRAME as usize..frame].fill(0x5a);
            }
            (_, CALL) => {
                did.extend(&r[1..6]);
                let is_frame =
                    |at: &&u64| (STACK + FRAME..=r[10]).contains(at) && (**at - STACK) % FRAME == 0;
                for frame in r[1..6].iter().filter(is_frame) {
                    let seen = &stack[(frame - FRAME - STACK) as usize..(frame - STACK) as usize];
                    did.extend(seen.iter().map(|byte| u64::from(*byte)));
                }
                r[0] = r[1].wrapping_mul(3) ^ r[2];
                r[1..6].fill(GARBAGE);
            }
            (_, JUMP) => next = next.wrapping_add_signed(insn.offset.into()),
            (_, JUMP_FAR) => next = next.wrapping_add_signed(insn.imm as isize),
            (_, MAY_GOTO) => (),
            _ => {
                if jumps(insn, r[insn.to()], operand) {
                    next = next.wrapping_add_signed(insn.offset.into());
                }
            }
        }
        at = next;
    }
    panic!("it does not end");
}

/// A function of random instructions that jump forward, call later functions, and load constants of which they know much.
fn function(draw: &mut Draw, begin: usize, last: bool, calls: &mut Vec<usize>) -> Vec<Insn> {
    let length = 4 + draw.below(40);
    let mut insns: Vec<Insn> = Vec::new();
    // Where jumps lead is settled at the end, by the place of what they lead to.
    let mut open: Vec<(usize, usize)> = Vec::new();
    let mut begins = Vec::new();
    for step in 0..length {
        begins.push(insns.len());
        let [to, from] = [0, 0].map(|_| draw.below(10));
        let small = draw.below(5) as i32 - 1;
        match draw.below(16) {
            0..=2 => {
                let map = if draw.below(8) == 0 { OTHER_MAP } else { MAP };
                insns.push(op(WIDE, to, 2, 0, map));
                insns.push(op(0, 0, 0, 0, draw.below(8) as i32));
                let kind = [0x61, 0x69, 0x71, 0x79, 0x81, 0x89, 0x91][draw.below(7)];
                insns.push(op(kind, [to, from][draw.below(2)], to, draw.below(4) as i16, 0));
            }
            3 => insns.push(op(MOVE, to, 0, 0, small)),
            4 => insns.push(op(MOVE_REGISTER, to, from, 0, 0)),
            5 | 6 => {
                let operation = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12][draw.below(12)];
                let class = [4, 7][draw.below(2)] | [0, 8][draw.below(2)];
                insns.push(op(
                    (operation << 4) as u8 | if operation == 8 { class & 7 } else { class },
                    to,
                    from,
                    0,
                    small,
                ));
            }
            7 | 8 => {
                let kind = [1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13][draw.below(11)];
                open.push((insns.len(), step + 1 + draw.below(length - step)));
                insns.push(op(
                    (kind << 4) as u8 | [5, 6][draw.below(2)] | [0, 8][draw.below(2)],
                    to,
                    from,
                    0,
                    small,
                ));
            }
            9 => {
                open.push((insns.len(), step + 1 + draw.below(length - step)));
                insns.push(op([JUMP, JUMP_FAR, MAY_GOTO][draw.below(3)], 0, 0, 0, 0));
            }
            10 if !last => {
                calls.push(begin + insns.len());
                insns.push(op(CALL, 0, 1, 0, 0));
            }
            10 => insns.push(op(CALL, 0, 0, 0, 5)),
            11 => {
                // a switch
                let places = [0, 1, 2].map(|_| step + 1 + draw.below(length - step));
                for value in 0..2 + draw.below(4) as i32 {
                    open.push((insns.len(), places[draw.below(3)]));
                    insns.push(op([0x15, 0x55, 0x25][[0, 0, 0, 0, 1, 2][draw.below(6)]], to, 0, 0, value));
                }
                open.push((insns.len(), places[draw.below(3)]));
                insns.push(op(JUMP, 0, 0, 0, 0));
            }
            12 => {
                // a pointer to the stack, for whoever is called
                if draw.below(3) == 0 {
                    insns.push(op(MOVE_REGISTER, 1 + draw.below(5), 10, 0, 0));
                }
            }
            _ => {
                let size = [0x00, 0x08, 0x10, 0x18, 0x18, 0x18][draw.below(6)];
                let place = -8 - draw.below(25) as i16;
                let place = if size == 0x18 { place & -8 } else { place };
                insns.push(match draw.below(6) {
                    0..=2 => op(0x63 | size, 10, from, place, 0), // STX | MEM
                    3 => op(0x62 | size, 10, 0, place, small),
                    _ => op(0x61 | size, to, 10, place, 0),
                });
            }
        }
    }
    begins.push(insns.len());
    for (at, step) in open {
        let distance = begins[step] - at - 1;
        let insn = insns[at];
        insns[at] = match insn.code {
            JUMP_FAR => op(JUMP_FAR, 0, 0, 0, distance as i32),
            code => op(code, insn.to(), insn.from(), distance as i16, insn.imm),
        };
    }
    insns.push(op(EXIT, 0, 0, 0, 0));
    insns
}

fn program(draw: &mut Draw) -> Program {
    let count = 1 + draw.below(4);
    let mut program = Program::default();
    let mut calls = Vec::new();
    for index in 0..count {
        let begin = program.insns.len();
        program.functions.push((begin as u32, vec![index as u8]));
        let insns = function(draw, begin, index + 1 == count, &mut calls);
        let mut at = begin;
        while at < begin + insns.len() {
            program.lines.push((at as u32, at.to_ne_bytes().to_vec()));
            at += 1 + draw.below(3);
        }
        program.insns.extend(insns);
    }
    let begins: Vec<usize> = program.functions.iter().map(|(at, _)| *at as usize).collect();
    for at in calls {
        let later: Vec<usize> = begins.iter().copied().filter(|&begin| begin > at).collect();
        program.insns[at] = op(CALL, 0, 1, 0, (later[draw.below(later.len())] - at - 1) as i32);
    }
    // A line must not begin inside a wide load.
    let inside: Vec<u32> = (0..program.insns.len())
        .filter(|&at| program.insns[at].code == WIDE)
        .map(|at| at as u32 + 1)
        .collect();
    program.lines.retain(|(at, _)| !inside.contains(at));
    program
}

#[test]
fn random_programs_do_the_same() {
    let mut draw = Draw::new(41);
    let (mut before, mut after, mut functions, mut left) = (0, 0, 0, 0);
    for round in 0..20_000 {
        let whole = program(&mut draw);
        let [data, other]: [Vec<u8>; 2] =
            [0, 1].map(|_| (0..32).map(|_| [0, 0, 1, 255][draw.below(4)]).collect());
        let pruned = prune(&whole, &Constants { map: MAP, data: &data });
        for argument in [0, 1, u64::MAX] {
            let [expected, did] = [&whole, &pruned].map(|program| run(program, &data, &other, argument));
            assert_eq!(expected, did, "round {round}: {whole:#?}\n{pruned:#?}");
        }
        check_records(&whole, &pruned);
        before += whole.insns.len();
        after += pruned.insns.len();
        functions += whole.functions.len();
        left += pruned.functions.len();
    }
    println!("{after} of {before} instructions, {left} of {functions} functions are left");
    assert!(after * 4 < before * 3 && left < functions, "hardly anything was pruned");
}

/// Every function that is left has its record and a line at its first instruction; lines ascend, and come from the whole.
fn check_records(whole: &Program, pruned: &Program) {
    let mut expected = vec![0];
    for (at, insn) in pruned.insns.iter().enumerate() {
        if insn.code == CALL && insn.from() == 1 {
            expected.push((at as i64 + 1 + i64::from(insn.imm)) as u32);
        }
    }
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(pruned.functions.iter().map(|(at, _)| *at).collect::<Vec<_>>(), expected);
    assert!(pruned.functions.iter().all(|(at, _)| pruned.lines.iter().any(|(line, _)| line == at)));
    assert!(pruned.lines.windows(2).all(|pair| pair[0].0 < pair[1].0));
    assert!(pruned.lines.iter().all(|(at, _)| (*at as usize) < pruned.insns.len()));
    assert!(pruned.lines.iter().all(|(_, rest)| whole.lines.iter().any(|(_, other)| other == rest)));
}

#[test]
fn what_a_constant_closes_is_gone_with_all_that_served_it() {
    // if (constant) return helper(); return 2;
    let insns = vec![
        op(WIDE, 1, 2, 0, MAP),
        op(0, 0, 0, 0, 4),
        op(0x61, 1, 1, 0, 0),
        op(EQUAL, 1, 0, 2, 0),
        op(CALL, 0, 1, 0, 3), // the function at 8
        op(EXIT, 0, 0, 0, 0),
        op(MOVE, 0, 0, 0, 2),
        op(EXIT, 0, 0, 0, 0),
        op(CALL, 0, 0, 0, 5),
        op(EXIT, 0, 0, 0, 0),
    ];
    let whole = Program {
        insns,
        functions: vec![(0, vec![1]), (8, vec![2])],
        lines: vec![(0, vec![1]), (3, vec![2]), (6, vec![3]), (8, vec![4])],
    };
    let with = |value: u8| {
        let data = [9, 9, 9, 9, value, 0, 0, 0];
        prune(&whole, &Constants { map: MAP, data: &data })
    };
    let closed = with(0);
    assert_eq!(closed.insns, [op(MOVE, 0, 0, 0, 2), op(EXIT, 0, 0, 0, 0)]);
    assert_eq!((closed.functions, closed.lines), (vec![(0, vec![1])], vec![(0, vec![3])]));
    let open = with(1);
    // Calls may take r1: its value stays, as a number.
    let called = [op(CALL, 0, 0, 0, 5), op(EXIT, 0, 0, 0, 0)];
    assert_eq!(open.insns[..3], [op(MOVE, 1, 0, 0, 1), op(CALL, 0, 1, 0, 1), op(EXIT, 0, 0, 0, 0)]);
    assert_eq!((&open.insns[3..], open.functions), (&called[..], vec![(0, vec![1]), (3, vec![2])]));
    // Another map's value is not known.
    let unknown = prune(&whole, &Constants { map: OTHER_MAP, data: &[0; 8] });
    assert_eq!(unknown, whole);
}

/// What is asked of a constant in r0, as the kernel side asks, leaves nothing behind: not even where a store follows, which would
/// take r0 only if it compared. A load whose result nobody reads goes, too.
#[test]
fn what_nobody_reads_is_not_loaded() {
    // r2 = b; r3 = a; if (constant & 2) r3++; c = r3; return 0;
    let (unread, read) = (op(0x61, 2, 1, 4, 0), op(0x61, 3, 1, 0, 0));
    let (more, store) = (op(0x07, 3, 0, 0, 1), op(0x63, 1, 3, 8, 0));
    let end = [op(MOVE, 0, 0, 0, 0), op(EXIT, 0, 0, 0, 0)];
    let asked = [
        op(WIDE, 0, 2, 0, MAP),
        op(0, 0, 0, 0, 0),
        op(0x79, 0, 0, 0, 0),
        op(0x57, 0, 0, 0, 2),
        op(EQUAL, 0, 0, 1, 0),
    ];
    let insns = [&[unread, read][..], &asked, &[more, store], &end].concat();
    let whole = Program { insns, functions: vec![(0, vec![1])], lines: vec![] };
    for (value, left) in [(1, vec![read, store]), (2, vec![read, more, store])] {
        let data = [value, 0, 0, 0, 0, 0, 0, 0];
        let pruned = prune(&whole, &Constants { map: MAP, data: &data });
        assert_eq!(pruned.insns, [left, end.to_vec()].concat());
    }
}

/// What is kept on the stack only for code that is gone is not stored. A function that shows its stack to others keeps all.
#[test]
fn what_nobody_loads_from_the_stack_is_not_stored() {
    // local = r6; if (constant & 2) r0 = local; else r0 = 0; return r0;
    let store = op(0x7b, 10, 6, -16, 0);
    let load_back = op(0x79, 0, 10, -16, 0);
    let end = [op(MOVE, 0, 0, 0, 0), op(EXIT, 0, 0, 0, 0)];
    let body = [
        store,
        op(WIDE, 0, 2, 0, MAP),
        op(0, 0, 0, 0, 0),
        op(0x79, 0, 0, 0, 0),
        op(0x57, 0, 0, 0, 2),
        op(EQUAL, 0, 0, 2, 0),
        load_back,
        op(EXIT, 0, 0, 0, 0),
    ];
    let pruned = |insns: Vec<Insn>, value: u8| {
        let data = [value, 0, 0, 0, 0, 0, 0, 0];
        let whole = Program { insns, functions: vec![(0, vec![1])], lines: vec![] };
        prune(&whole, &Constants { map: MAP, data: &data }).insns
    };
    let whole = [&body[..], &end].concat();
    assert_eq!(pruned(whole.clone(), 1), end);
    assert_eq!(pruned(whole, 2), [store, load_back, op(EXIT, 0, 0, 0, 0)]);
    let shows = [op(MOVE_REGISTER, 1, 10, 0, 0), op(CALL, 0, 0, 0, 5)];
    let shown = [&body[..1], &shows, &body[1..], &end].concat();
    assert_eq!(pruned(shown, 1), [&[store][..], &shows, &end].concat());
}
