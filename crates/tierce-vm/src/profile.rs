//! Which instructions of the guest were executed, and how often: what the plugin of QEMU (guest/profile.c) counted, with
//! the names that the guest gave (guest/symbols.h).

use anyhow::{bail, ensure, Context, Result};
use std::collections::BTreeMap;
use std::fmt::{self, Write};

/// The plugin, to be loaded by QEMU.
pub(crate) const PLUGIN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/profile"));

/// Addresses from here on are the kernel's.
const KERNEL: u64 = 1 << 63;

/// Whose code it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Owner {
    /// The kernel itself.
    Kernel,
    /// A kernel module, by name.
    Module(String),
    /// A BPF program, or what the kernel compiled to call one.
    Bpf,
    /// Programs in user mode, all together.
    User,
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Owner::Kernel => f.write_str("kernel"),
            Owner::Module(name) => f.write_str(name),
            Owner::Bpf => f.write_str("bpf"),
            Owner::User => f.write_str("user"),
        }
    }
}

/// An instruction that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Where it is.
    pub address: u64,
    /// How often it was executed.
    pub count: u64,
    /// Its code.
    pub bytes: Vec<u8>,
    /// Disassembled, with names where it refers to functions.
    pub text: String,
    /// The source line it comes from, if it is part of a BPF program: `FILE:LINE TEXT`.
    pub line: Option<String>,
}

/// A function with all its instructions that were executed, by address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name; for a BPF program without the tag that the kernel puts before it.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// Where it begins.
    pub address: u64,
    /// How many instructions were executed in it.
    pub instructions: u64,
    /// How often its first instruction was executed.
    pub calls: u64,
    /// The instructions.
    pub code: Vec<Instruction>,
}

/// What a guest executed between its marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Instructions in all.
    pub total: u64,
    /// The functions, most instructions first.
    pub functions: Vec<Function>,
}

#[derive(Default)]
struct Symbols {
    functions: BTreeMap<u64, (String, Owner)>,
    lines: BTreeMap<u64, String>,
}

impl Symbols {
    fn parse(text: &str) -> Symbols {
        let mut symbols = Symbols::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second), Some(third)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            if first == "line" {
                let Ok(address) = u64::from_str_radix(second, 16) else { continue };
                let text = line.splitn(4, ' ').nth(3).unwrap_or("");
                symbols.lines.insert(address, format!("{} {}", short_path(third), text.trim_end()));
            } else if let ("t" | "T" | "w" | "W", Ok(address)) = (second, u64::from_str_radix(first, 16)) {
                let owner = match words.next().map(|name| name.trim_matches(['[', ']'])) {
                    None => Owner::Kernel,
                    Some("bpf") => Owner::Bpf,
                    Some(name) => Owner::Module(name.into()),
                };
                let name = if owner == Owner::Bpf { without_tag(third) } else { third };
                // Of several names the first is as good as any, but one of the linker's is not.
                symbols.functions.entry(address).or_insert_with(|| (name.to_string(), owner));
            }
        }
        symbols
    }

    fn of(&self, address: u64) -> (u64, String, Owner) {
        if address < KERNEL {
            return (0, "user space".into(), Owner::User);
        }
        match self.functions.range(..=address).next_back() {
            Some((&start, (name, owner))) => (start, name.clone(), owner.clone()),
            None => (KERNEL, "unknown".into(), Owner::Kernel),
        }
    }

    /// With the name of a function for its address.
    fn name_addresses(&self, text: &str) -> String {
        let Some((before, number)) = text.rsplit_once("0xffff") else { return text.to_string() };
        let digits = number.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(number.len());
        let address = u64::from_str_radix(&format!("ffff{}", &number[..digits]), 16);
        match address.ok().and_then(|address| self.functions.get(&address)) {
            Some((name, _)) => format!("{before}{name}{}", &number[digits..]),
            None => text.to_string(),
        }
    }
}

/// File and folder of a path.
fn short_path(path: &str) -> &str {
    let folder = path.rfind('/').and_then(|file| path[..file].rfind('/'));
    folder.map_or(path, |at| &path[at + 1..])
}

/// `bpf_prog_0123456789abcdef_NAME` is NAME.
fn without_tag(name: &str) -> &str {
    match name.strip_prefix("bpf_prog_") {
        Some(rest) if rest.len() > 17 && rest.is_char_boundary(17) => &rest[17..],
        _ => name,
    }
}

impl Profile {
    /// From what the plugin wrote and what the guest wrote.
    pub(crate) fn parse(counted: &str, symbols: &str) -> Result<Profile> {
        let Some(counted) = counted.strip_suffix("end\n") else {
            bail!("QEMU ended before it wrote the profile");
        };
        ensure!(
            !counted.is_empty(),
            "nothing to profile: the guest marked no stretch to be counted; give --profile to meter, or call \
             `meter profile --role begin` before it and `meter profile --role end` after it"
        );
        ensure!(
            !symbols.is_empty(),
            "a profile without an end: the guest marked no end of the stretch; call `meter profile --role end` while the \
             scheduler is still loaded"
        );
        let symbols = Symbols::parse(symbols);
        let mut functions: BTreeMap<(u64, String), Function> = BTreeMap::new();
        let mut total = 0;
        for line in counted.lines() {
            let instruction = Instruction::parse(line, &symbols)
                .with_context(|| format!("the profile of QEMU has the line \"{line}\""))?;
            let (start, name, owner) = symbols.of(instruction.address);
            let function = functions.entry((start, name.clone())).or_insert_with(|| Function {
                name,
                owner,
                address: start,
                instructions: 0,
                calls: 0,
                code: Vec::new(),
            });
            total += instruction.count;
            function.instructions += instruction.count;
            if instruction.address == start {
                function.calls += instruction.count;
            }
            function.code.push(instruction);
        }
        let mut functions: Vec<Function> = functions.into_values().collect();
        for function in &mut functions {
            function.code.sort_by_key(|instruction| instruction.address);
        }
        functions.sort_by_key(|function| (std::cmp::Reverse(function.instructions), function.address));
        Ok(Profile { total, functions })
    }

    /// A table of the functions, at most so many of them, below the sums per owner.
    pub fn table(&self, most: usize) -> String {
        let mut owners: BTreeMap<&Owner, u64> = BTreeMap::new();
        for function in &self.functions {
            *owners.entry(&function.owner).or_default() += function.instructions;
        }
        let mut text = format!("{:>14} {:>7} {:>10}\n", "instructions", "share", "calls");
        let mut row = |count: u64, calls: String, name: String| {
            let _ = writeln!(text, "{count:>14} {:>7} {calls:>10}  {name}", self.share(count));
        };
        row(self.total, String::new(), "all".into());
        for (owner, count) in owners {
            row(count, String::new(), format!("[{owner}]"));
        }
        for function in self.functions.iter().take(most) {
            let calls =
                if function.owner == Owner::User { String::new() } else { function.calls.to_string() };
            row(function.instructions, calls, format!("{} [{}]", function.name, function.owner));
        }
        if self.functions.len() > most {
            let _ = writeln!(text, "{:>33}  {} more functions", "", self.functions.len() - most);
        }
        text
    }

    /// A table of the source lines of BPF programs, at most so many of them, most instructions first.
    pub fn lines(&self, most: usize) -> String {
        let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for function in &self.functions {
            for instruction in &function.code {
                if let Some(line) = &instruction.line {
                    *sums.entry((&function.name, line)).or_default() += instruction.count;
                }
            }
        }
        let mut sums: Vec<_> = sums.into_iter().collect();
        sums.sort_by_key(|(place, count)| (std::cmp::Reverse(*count), *place));
        let mut text = format!("{:>14} {:>7}  function: line\n", "instructions", "share");
        for ((function, line), count) in sums.into_iter().take(most) {
            let _ = writeln!(text, "{count:>14} {:>7}  {function}: {line}", self.share(count));
        }
        text
    }

    /// The functions of this name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Function> {
        self.functions.iter().filter(move |function| function.name == name)
    }

    /// A function instruction by instruction: offset, count, disassembly, each source line above what it became.
    pub fn listing(&self, function: &Function) -> String {
        let mut text = format!(
            "{} [{}]: {} instructions, {}, called {} times\n",
            function.name,
            function.owner,
            function.instructions,
            self.share(function.instructions).trim(),
            function.calls
        );
        let (mut line, mut next) = (None, function.address);
        for instruction in &function.code {
            if instruction.address > next && function.owner != Owner::User {
                let _ =
                    writeln!(text, "{:>8} {:>12}  {} bytes not executed", "", "", instruction.address - next);
            }
            if instruction.line.is_some() && instruction.line != line {
                line.clone_from(&instruction.line);
                let _ = writeln!(text, "; {}", line.as_deref().unwrap_or_default());
            }
            let offset = format!("+{:x}", instruction.address - function.address);
            let _ = writeln!(text, "{offset:>8} {:>12}  {}", instruction.count, instruction.text);
            next = instruction.address + instruction.bytes.len() as u64;
        }
        text
    }

    fn share(&self, count: u64) -> String {
        let per_mille = u128::from(count) * 1000 / u128::from(self.total.max(1));
        format!("{}.{} %", per_mille / 10, per_mille % 10)
    }
}

impl Instruction {
    fn parse(line: &str, symbols: &Symbols) -> Result<Instruction> {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().context("it is too short");
        let (address, count, bytes, text) = (word()?, word()?, word()?, word()?);
        let address = u64::from_str_radix(address, 16)?;
        let start = symbols.of(address).0;
        // A line holds up to the next one, but not past the end of its function.
        let line =
            symbols.lines.range(..=address).next_back().filter(|(&from, _)| from >= start && start >= KERNEL);
        Ok(Instruction {
            address,
            count: count.parse()?,
            bytes: (0..bytes.len() / 2)
                .map(|i| u8::from_str_radix(bytes.get(2 * i..2 * i + 2).unwrap_or(""), 16))
                .collect::<Result<_, _>>()?,
            text: symbols.name_addresses(text),
            line: line.map(|(_, text)| text.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYMBOLS: &str = "ffffffff81000000 T _stext
ffffffff81000100 T schedule
ffffffff81000100 t schedule_alias
ffffffff81000200 D data
ffffffffc0000000 t helper\t[module]
ffffffffc0001000 t bpf_prog_0123456789abcdef_graph_decide\t[bpf]
ffffffffc0002000 t bpf_trampoline_1\t[bpf]
line ffffffffc0001004 /home/me/crates/x/../../policy/graph.c:7 edge = n->order;
line ffffffffc0001008 graph.c:9 return edge;
";
    const COUNTED: &str = "ffffffff81000100 10 90 nop
ffffffff81000101 30 e8fafe0040 callq 0xffffffffc0001000
ffffffff81000250 1 90 nop
ffffffffc0000001 2 90 nop
ffffffffc0001000 30 f30f1efa endbr64 
ffffffffc0001004 60 90 nop
ffffffffc0001010 40 c3 retq 
ffffffffc0002000 5 90 nop
401000 22 90 nop
end
";

    #[test]
    fn what_was_executed_has_names_calls_and_lines() {
        let profile = Profile::parse(COUNTED, SYMBOLS).unwrap();
        assert_eq!(
            profile.table(3),
            "  instructions   share      calls
           200 100.0 %             all
            41  20.5 %             [kernel]
             2   1.0 %             [module]
           135  67.5 %             [bpf]
            22  11.0 %             [user]
           130  65.0 %         30  graph_decide [bpf]
            41  20.5 %         10  schedule [kernel]
            22  11.0 %             user space [user]
                                   2 more functions
"
        );
        let decide = profile.named("graph_decide").next().unwrap();
        assert_eq!(
            profile.listing(decide),
            "graph_decide [bpf]: 130 instructions, 65.0 %, called 30 times
      +0           30  endbr64 
; policy/graph.c:7 edge = n->order;
      +4           60  nop
                       11 bytes not executed
; graph.c:9 return edge;
     +10           40  retq 
"
        );
        let schedule = profile.named("schedule").next().unwrap();
        assert!(profile.listing(schedule).contains("+1           30  callq graph_decide\n"));
        assert_eq!(
            profile.lines(1),
            "  instructions   share  function: line
            60  30.0 %  graph_decide: policy/graph.c:7 edge = n->order;
"
        );
    }

    #[test]
    fn what_makes_no_profile_is_told() {
        let refused =
            |counted: &str, symbols: &str| Profile::parse(counted, symbols).unwrap_err().to_string();
        assert!(refused("", SYMBOLS).contains("QEMU ended before it wrote the profile"));
        assert!(refused("end\n", "").contains("the guest marked no stretch to be counted"));
        assert!(refused(COUNTED, "").contains("the guest marked no end of the stretch"));
        assert!(refused("81000100 x 90 nop\nend\n", SYMBOLS).contains("has the line \"81000100 x 90 nop\""));
        assert!(refused("81000100\nend\n", SYMBOLS).contains("has the line \"81000100\""));
    }
}
