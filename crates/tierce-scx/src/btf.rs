//! The kernel's type information (BTF), as far as it says whether the BPF object fits: functions with the names of
//! their parameters, which of them BPF programs may call (tagged `bpf_kfunc`), and the operations of sched_ext.
//!
//! Format: a header, a table of types, each a fixed part and what its kind adds, and a table of names. Types are
//! numbered from 1 in the order of the table; the function `kick` with two parameters is the type FUNC "kick" that refers to a
//! FUNC_PROTO with two entries.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Btf {
    functions: HashMap<String, Vec<String>>,
    tagged: HashSet<String>,
    operations: Option<Vec<String>>,
    externs: Vec<String>,
}

const MAGIC: u16 = 0xeb9f;

/// What the names of functions begin with that BPF programs call or are attached to.
const PREFIXES: [&[u8]; 3] = [b"scx_bpf_", b"bpf_", b"futex_"];
const OPERATIONS: &[u8] = b"sched_ext_ops";

/// Kinds, by number: what follows the fixed part is `fixed` bytes and `each` bytes per entry.
const KINDS: [(usize, usize); 20] = [
    (0, 0),
    (4, 0),  // INT
    (0, 0),  // PTR
    (12, 0), // ARRAY
    (0, 12), // STRUCT
    (0, 12), // UNION
    (0, 8),  // ENUM
    (0, 0),  // FWD
    (0, 0),  // TYPEDEF
    (0, 0),  // VOLATILE
    (0, 0),  // CONST
    (0, 0),  // RESTRICT
    (0, 0),  // FUNC
    (0, 8),  // FUNC_PROTO
    (4, 0),  // VAR
    (0, 12), // DATASEC
    (0, 0),  // FLOAT
    (4, 0),  // DECL_TAG
    (0, 0),  // TYPE_TAG
    (0, 12), // ENUM64
];
const STRUCT: usize = 4;
const FUNC: usize = 12;
const FUNC_PROTO: usize = 13;
const DATASEC: usize = 15;
const DECL_TAG: usize = 17;

impl Btf {
    /// Read BTF of this machine's byte order; an error says where it breaks off.
    pub fn parse(bytes: &[u8]) -> Result<Btf, String> {
        let tables = Tables::of(bytes)?;
        let found = tables.wanted()?;
        let function = |id: &u32| found.functions.get(id).map(|(name, _)| name.clone());
        let mut btf = Btf {
            tagged: found.tags.iter().filter_map(function).collect(),
            externs: found.externs.iter().filter_map(function).collect(),
            ..Btf::default()
        };
        if let Some(at) = found.operations {
            btf.operations = Some(tables.entries(at)?);
        }
        for (name, prototype) in found.functions.into_values() {
            let parameters = match found.starts.get(prototype as usize) {
                Some(&at) if at > 0 && tables.kind(at)? == FUNC_PROTO => tables.entries(at)?,
                _ => Vec::new(),
            };
            btf.functions.insert(name, parameters);
        }
        Ok(btf)
    }

    /// Names of the parameters of a function.
    pub fn parameters(&self, function: &str) -> Option<&[String]> {
        self.functions.get(function).map(Vec::as_slice)
    }

    /// Whether BPF programs may call the function.
    pub fn may_be_called(&self, function: &str) -> bool {
        self.tagged.contains(function)
    }

    /// The names of all functions that are kept.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The members of `struct sched_ext_ops`: the operations a scheduler can have.
    pub fn operations(&self) -> Option<&[String]> {
        self.operations.as_deref()
    }

    /// In the BTF of a BPF object: the kernel's functions that it calls.
    pub fn externs(&self) -> &[String] {
        &self.externs
    }
}

/// The tables of types and names.
struct Tables<'a> {
    bytes: &'a [u8],
    types: Range<usize>,
    names: &'a [u8],
}

/// Of all types those that say something; a kernel has some 150,000.
#[derive(Default)]
struct Wanted {
    /// Where each type begins.
    starts: Vec<usize>,
    /// By type: name, prototype.
    functions: HashMap<u32, (String, u32)>,
    /// Where the operations of sched_ext are.
    operations: Option<usize>,
    /// Functions that BPF programs may call.
    tags: Vec<u32>,
    externs: Vec<u32>,
}

impl<'a> Tables<'a> {
    fn of(bytes: &'a [u8]) -> Result<Self, String> {
        let mut tables = Self { bytes, types: 0..0, names: &[] };
        if tables.word(0)? as u16 != MAGIC {
            return Err("does not begin like BTF of this machine".into());
        }
        let header = tables.word(4)? as usize;
        let (types, length) = (header + tables.word(8)? as usize, tables.word(12)? as usize);
        tables.types = types..types + length;
        let (names, length) = (header + tables.word(16)? as usize, tables.word(20)? as usize);
        tables.names = bytes.get(names..names + length).ok_or_else(|| tables.short(names))?;
        Ok(tables)
    }

    fn wanted(&self) -> Result<Wanted, String> {
        let mut found = Wanted { starts: vec![0], ..Wanted::default() };
        let mut at = self.types.start;
        while at < self.types.end {
            let (name, refers) = (self.name(self.word(at)?), self.word(at + 8)?);
            let (kind, count) = (self.kind(at)?, self.count(at)?);
            let &(fixed, each) =
                KINDS.get(kind).ok_or_else(|| format!("has a type of unknown kind {kind}, at byte {at}"))?;
            let entries = at + 12 + fixed;
            match kind {
                STRUCT if name == OPERATIONS => found.operations = found.operations.or(Some(at)),
                FUNC if PREFIXES.iter().any(|prefix| name.starts_with(prefix)) => {
                    found.functions.insert(found.starts.len() as u32, (text(name), refers));
                }
                DECL_TAG if name == b"bpf_kfunc" => found.tags.push(refers),
                DATASEC if name == b".ksyms" => {
                    for entry in 0..count {
                        found.externs.push(self.word(entries + entry * each)?);
                    }
                }
                _ => {}
            }
            found.starts.push(at);
            at = entries + count * each;
        }
        if at > self.bytes.len() {
            return Err(self.short(self.bytes.len()));
        }
        Ok(found)
    }

    /// The names with which the entries of a struct or prototype begin.
    fn entries(&self, at: usize) -> Result<Vec<String>, String> {
        let (_, each) = KINDS[self.kind(at)?];
        let name = |entry| Ok(text(self.name(self.word(at + 12 + entry * each)?)));
        (0..self.count(at)?).map(name).collect()
    }

    fn kind(&self, at: usize) -> Result<usize, String> {
        Ok((self.word(at + 4)? >> 24 & 0x1f) as usize)
    }

    fn count(&self, at: usize) -> Result<usize, String> {
        Ok((self.word(at + 4)? & 0xffff) as usize)
    }

    fn word(&self, at: usize) -> Result<u32, String> {
        let four = at.checked_add(4).and_then(|end| self.bytes.get(at..end)).ok_or_else(|| self.short(at))?;
        Ok(u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
    }

    fn name(&self, offset: u32) -> &'a [u8] {
        let rest = self.names.get(offset as usize..).unwrap_or_default();
        rest.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn short(&self, at: usize) -> String {
        format!("ends in the middle, at byte {at} of {}", self.bytes.len())
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Makes BTF for tests: functions with their parameters, callable unless the last is `aux`, structs with their members.
#[cfg(test)]
pub(crate) fn make(functions: &[(&str, &[&str])], structs: &[(&str, &[&str])]) -> Vec<u8> {
    let mut names = vec![0u8];
    let mut name = |text: &str| -> u32 {
        let at = names.len() as u32;
        names.extend_from_slice(text.as_bytes());
        names.push(0);
        at
    };
    let mut types: Vec<u32> = Vec::new();
    let mut id = 0;
    let tag = name("bpf_kfunc");
    for (function, parameters) in functions {
        types.extend([0, (FUNC_PROTO as u32) << 24 | parameters.len() as u32, 0]);
        for parameter in *parameters {
            types.extend([name(parameter), 0]);
        }
        types.extend([name(function), (FUNC as u32) << 24, id + 1]);
        id += 2;
        if parameters.last() != Some(&"aux") {
            types.extend([tag, (DECL_TAG as u32) << 24, id, u32::MAX]);
            id += 1;
        }
    }
    for (structure, members) in structs {
        types.extend([name(structure), (STRUCT as u32) << 24 | members.len() as u32, 8]);
        for member in *members {
            types.extend([name(member), 0, 0]);
        }
    }
    let types_length = types.len() as u32 * 4;
    let header = [u32::from(MAGIC) | 1 << 16, 24, 0, types_length, types_length, names.len() as u32];
    let mut bytes: Vec<u8> = header.iter().chain(&types).flat_map(|word| word.to_ne_bytes()).collect();
    bytes.extend_from_slice(&names);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_structs() {
        let bytes = make(
            &[("bpf_kick", &["cpu", "flags"]), ("bpf_stop", &[]), ("bpf_turn", &["aux"]), ("x", &[])],
            &[("sched_ext_ops", &["enqueue", "name"]), ("other", &["x"])],
        );
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.parameters("bpf_kick").unwrap(), ["cpu", "flags"]);
        assert_eq!(btf.parameters("bpf_stop").unwrap().len(), 0);
        assert_eq!(btf.parameters("x"), None);
        assert!(btf.may_be_called("bpf_kick") && !btf.may_be_called("bpf_turn"));
        assert_eq!(btf.operations().unwrap(), ["enqueue", "name"]);
        assert_eq!(btf.functions().count(), 3);
    }

    #[test]
    fn what_is_broken_is_refused() {
        let bytes = make(&[("kick", &["cpu", "flags"])], &[]);
        for end in 0..bytes.len() {
            assert!(Btf::parse(&bytes[..end]).is_err(), "{end}");
        }
        for at in 0..bytes.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut broken = bytes.clone();
                broken[at] = value;
                let _ = Btf::parse(&broken); // an answer, whatever it is
            }
        }
        assert_eq!(Btf::parse(b"\x7fELF").unwrap_err(), "does not begin like BTF of this machine");
        let mut broken = bytes;
        broken[24 + 7] = 31;
        assert_eq!(Btf::parse(&broken).unwrap_err(), "has a type of unknown kind 31, at byte 24");
    }

    #[test]
    fn this_machines_own() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else { return };
        let btf = Btf::parse(&bytes).unwrap();
        assert!(btf.parameters("bpf_task_acquire").is_some_and(|parameters| parameters == ["p"]));
    }
}
