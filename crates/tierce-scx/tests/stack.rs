//! The kernel object's call chains, read from its instructions. A BPF program has 512 bytes of stack and 8 frames; what the plan of
//! an example needs leaves room for one more policy. A chain that is too deep is told by name.

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol, RelocationTarget, SectionKind, SymbolKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use tierce_admission::PlanExt;
use tierce_plan::{Options, Plan, ThrottleAt};

/// Bytes of stack, and frames: of what the kernel can load at all, and of what a plan needs.
const ALL: (u32, usize) = (512, 8);
const PLAN: (u32, usize) = (384, 7);
/// Of the instruction set: what is looked at below.
const LOAD_CONSTANT: u8 = 0x18;
const LOAD_64: u8 = 0x79;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
const JUMP: u8 = 0x05;
const JUMP_FAR: u8 = 0x06;
const JUMP_IF_BITS: u8 = 0x45;
const MOVE_64: u8 = 0xbf;
const ADD_64: u8 = 0x07;
const FRAME: u8 = 10;

/// An instruction, with the name that it refers to.
#[derive(Clone, Debug)]
struct Instruction {
    code: u8,
    to: u8,
    from: u8,
    offset: i16,
    value: i32,
    symbol: Option<String>,
}

type Functions = BTreeMap<String, Vec<Instruction>>;

/// What a relocation refers to: a symbol with a name, or, for a static function, its section; the call then says where in it.
fn name_of<'a>(file: &'a ElfFile64<Endianness>, symbol: impl ObjectSymbol<'a>, instruction: &[u8]) -> String {
    if symbol.kind() != SymbolKind::Section {
        return symbol.name().unwrap().to_string();
    }
    let slots = i32::from_le_bytes(instruction[4..8].try_into().unwrap());
    let (section, address) = (symbol.section_index(), (i64::from(slots) + 1) as u64 * 8);
    let mut functions = file.symbols().filter(|other| is_function(other) && other.section_index() == section);
    functions
        .find(|other| other.address() == address)
        .map_or(String::new(), |it| it.name().unwrap().to_string())
}

fn is_function<'a>(symbol: &impl ObjectSymbol<'a>) -> bool {
    symbol.kind() == SymbolKind::Text && symbol.size() > 0
}

/// All functions of the object by name.
fn functions(image: &[u8]) -> Functions {
    let file = ElfFile64::<Endianness>::parse(image).unwrap();
    let mut functions = Functions::new();
    for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
        let bytes = section.data().unwrap();
        let symbols: HashMap<u64, String> = section
            .relocations()
            .filter_map(|(at, relocation)| match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    Some((at, name_of(&file, file.symbol_by_index(index).unwrap(), &bytes[at as usize..])))
                }
                _ => None,
            })
            .collect();
        let here = Some(section.index());
        for function in file.symbols().filter(|it| is_function(it) && it.section_index() == here) {
            let range = function.address()..function.address() + function.size();
            let instructions = range.step_by(8).map(|at| {
                let bytes: [u8; 8] = bytes[at as usize..at as usize + 8].try_into().unwrap();
                Instruction {
                    code: bytes[0],
                    to: bytes[1] & 15,
                    from: bytes[1] >> 4,
                    offset: i16::from_le_bytes([bytes[2], bytes[3]]),
                    value: i32::from_le_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
                    symbol: symbols.get(&at).cloned(),
                }
            });
            functions.insert(function.name().unwrap().to_string(), instructions.collect());
        }
    }
    functions
}

/// The constants that are known when an object is loaded, by name; of others both ways are looked at.
type Constants = HashMap<&'static str, u64>;

/// What a function needs when these constants are loaded: bytes of stack, and whom it calls.
fn needs(all: &Functions, name: &str, constants: &Constants) -> (u32, BTreeSet<String>) {
    let list = &all[name];
    let (mut seen, mut open) = (vec![false; list.len()], vec![0]);
    let (mut stack, mut calls) = (0, BTreeSet::new());
    while let Some(at) = open.pop() {
        if at >= list.len() || std::mem::replace(&mut seen[at], true) {
            continue;
        }
        let it = &list[at];
        let jump = |by: i32| (at as i64 + 1 + i64::from(by)) as usize;
        match it.code {
            EXIT => {}
            CALL => {
                calls.extend(it.symbol.clone().filter(|to| all.contains_key(to)));
                open.push(at + 1);
            }
            LOAD_CONSTANT => open.push(at + 2),
            JUMP => open.push(jump(i32::from(it.offset))),
            JUMP_FAR => open.push(jump(it.value)),
            // A bit of a constant is asked for (KNOWN_BIT in bpf/port.h).
            JUMP_IF_BITS if at >= 3 && list[at - 1].code == LOAD_64 => {
                let constant = list[at - 3].symbol.as_deref().and_then(|name| constants.get(name));
                let taken = constant.map(|constant| constant & it.value as u32 as u64 != 0);
                open.extend((taken != Some(true)).then_some(at + 1));
                open.extend((taken != Some(false)).then_some(jump(i32::from(it.offset))));
            }
            code => {
                open.push(at + 1);
                if matches!(code & 7, 5 | 6) {
                    open.push(jump(i32::from(it.offset)));
                }
                let (class, register) = (code & 7, if code & 7 == 1 { it.from } else { it.to });
                if matches!(class, 1..=3) && register == FRAME {
                    stack = stack.max(u32::from(it.offset.unsigned_abs()));
                }
                if code == ADD_64 && at > 0 && list[at - 1].code == MOVE_64 && list[at - 1].from == FRAME {
                    stack = stack.max(it.value.unsigned_abs());
                }
            }
        }
    }
    (stack, calls)
}

/// A chain of calls: what it needs with rounding as in the verifier, and its functions.
type Chain = (u32, Vec<String>);

/// The chains from each function that take most stack, and most frames.
fn deepest(all: &Functions, constants: &Constants) -> (Chain, Chain) {
    fn walk(
        name: &str,
        needs: &BTreeMap<&str, (u32, BTreeSet<String>)>,
        known: &mut HashMap<String, (Chain, Chain)>,
    ) -> (Chain, Chain) {
        if let Some(found) = known.get(name) {
            return found.clone();
        }
        let (stack, calls) = &needs[name];
        let (mut most, mut longest): (Chain, Chain) = Default::default();
        for to in calls {
            let (other, frames) = walk(to, needs, known);
            most = if other.0 > most.0 { other } else { most };
            longest = if frames.1.len() > longest.1.len() { frames } else { longest };
        }
        for chain in [&mut most, &mut longest] {
            chain.0 += (*stack).max(1).next_multiple_of(16);
            chain.1.insert(0, format!("{name} ({stack})"));
        }
        known.insert(name.to_string(), (most.clone(), longest.clone()));
        (most, longest)
    }
    let needs: BTreeMap<&str, _> = all.keys().map(|name| (&name[..], needs(all, name, constants))).collect();
    let (mut known, mut most, mut longest): (_, Chain, Chain) = Default::default();
    // A program is what nobody calls.
    let called: BTreeSet<&String> = all.values().flatten().filter_map(|it| it.symbol.as_ref()).collect();
    for name in all.keys().filter(|name| !called.contains(name) && *name != "exercise") {
        let (stack, frames) = walk(name, &needs, &mut known);
        most = if stack.0 > most.0 { stack } else { most };
        longest = if frames.1.len() > longest.1.len() { frames } else { longest };
    }
    (most, longest)
}

#[test]
fn no_chain_of_calls_is_too_deep() {
    let all = functions(&tierce_scx::object::image().unwrap());
    assert!(all.len() > 100, "{:?}", all.keys());
    let mut refused = Vec::new();
    let mut check = |what: &str, constants: Constants, (bytes, frames): (u32, usize)| {
        let (most, longest) = deepest(&all, &constants);
        let count = longest.1.len();
        println!("{what}: {} bytes, {count} frames", most.0);
        if most.0 > bytes {
            refused.push(format!("{what}: {} bytes, at most {bytes}: {}", most.0, most.1.join(" > ")));
        }
        if count > frames {
            refused.push(format!("{what}: {count} frames, at most {frames}: {}", longest.1.join(" > ")));
        }
    };
    check("everything", HashMap::new(), ALL);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "toml") {
            continue;
        }
        for cpus in [1, 2, 65] {
            let Ok(plan) = Plan::load_with(&path, Options { cpus }) else { continue };
            let name = path.file_name().unwrap().to_string_lossy();
            let constants = HashMap::from([
                ("policies", plan.policies()),
                ("parts", plan.parts()),
                ("several_cpus", u64::from(cpus > 1)),
                ("throttle_at_user", u64::from(plan.run.throttle == ThrottleAt::User)),
                ("many_cpus", u64::from(cpus > 64)),
                ("inherits", u64::from(plan.run.inherits)),
                ("count_contention", 0),
            ]);
            check(&format!("{name}, {cpus} CPUs"), constants, PLAN);
        }
    }
    assert!(refused.is_empty(), "{}", refused.join("\n"));
}
