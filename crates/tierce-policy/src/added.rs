//! Policies of a folder of the user's: C files like those in `policy/`, compiled together with the engine into a library, which is
//! then used instead of the engine that is linked. The engine's sources are part of this crate, so that only a C compiler is
//! needed, and library and program always fit.
//!
//! What is built is kept in a folder of the cache, by the text of all sources. Such a folder can be used in place of the user's,
//! on a machine without a compiler.

use crate::raw;
use crate::records::policies;
use anyhow::{bail, ensure, Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{id, Command};
use std::sync::OnceLock;
use std::{env, fs};

/// The C files of the engine and its ports, by names like `policy/tierce.h`.
const SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/sources.rs"));

/// In a folder of the cache: the engine for this program, the list of policies, the sources of the engine, and for what program.
const LIBRARY: &str = "engine.so";
const HEADER: &str = "added.h";
const ENGINE: &str = "engine";
const STAMP: &str = "made-for";

/// The engine for the kernel, compressed; not made before it is needed.
pub const OBJECT: &str = "tierce.bpf.o.zst";
/// The environment variable that names the folder.
pub const VARIABLE: &str = "TIERCE_POLICY_DIR";

/// The files that a machine needs that is to use what was built.
pub const FILES: [&str; 3] = [LIBRARY, OBJECT, STAMP];

/// Bits of a set of policies in the kernel port, where a number is a bit of an immediate value.
const NUMBERS: u32 = 31;
/// Bytes that the engine keeps for a policy in an edge and in a node.
const EDGE_BYTES: usize = size_of::<[u64; 6]>();
const NODE_BYTES: usize = size_of::<raw::Rounds>();

/// Policies beside those of this program, built.
pub struct Added {
    /// The user's.
    from: PathBuf,
    folder: PathBuf,
}

static ADDED: OnceLock<Added> = OnceLock::new();

/// What [`load`] has loaded.
pub fn added() -> Option<&'static Added> {
    ADDED.get()
}

/// Use the policies of a folder, too, from now on. Before anything else of this crate is used.
pub fn load(folder: &Path) -> Result<&'static Added> {
    let built = build(folder)?;
    raw::use_library(&built.folder.join(LIBRARY)).map_err(|why| {
        anyhow::anyhow!("policy_library_refused: {}: {why}", built.folder.join(LIBRARY).display())
    })?;
    let mut names: Vec<&str> = policies().iter().map(|policy| policy.name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|two| two[0] == two[1]) {
        bail!("policy_name_taken: {}: there are two policies `{}`", folder.display(), twice[0]);
    }
    Ok(ADDED.get_or_init(|| built))
}

/// Build the policies of a folder, unless that was done before.
fn build(folder: &Path) -> Result<Added> {
    let shown = folder.display();
    ensure!(folder.is_dir(), "policy_folder_missing: {shown}: there is no such folder");
    let folder = folder.canonicalize().with_context(|| shown.to_string())?;
    let stamp = format!("{:016x}", hash(&SOURCES));
    if folder.join(LIBRARY).exists() {
        let found = fs::read_to_string(folder.join(STAMP)).unwrap_or_default();
        ensure!(
            found == stamp,
            "policy_build_is_of_another_version: {shown} was built for another version of this program"
        );
        return Ok(Added { from: folder.clone(), folder });
    }
    let (header, texts) = (header(&folder)?, texts(&folder)?);
    let cache = cache()?;
    let place = format!("{:08x}-", hash(&folder) as u32);
    let made = cache.join(format!("{place}{:016x}", hash(&(&stamp, &header, &texts))));
    if !made.join(LIBRARY).exists() {
        eprintln!("tierce: compiling the policies of {shown}");
        let begun = cache.join(format!("{place}{}", id()));
        let compiled = compile(&begun, &header, &stamp);
        let done = compiled.and_then(|()| Ok(replace(&cache, &place, &begun, &made)?));
        fs::remove_dir_all(&begun).ok();
        done.with_context(|| format!("policies_not_built: {shown}"))?;
    }
    Ok(Added { from: folder, folder: made })
}

/// What was built takes the place of what was built of an earlier text.
fn replace(cache: &Path, place: &str, begun: &Path, made: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(cache)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Those that others have begun are shorter.
        if name.strip_prefix(place).is_some_and(|rest| rest.len() == 16) && path != made {
            fs::remove_dir_all(path).ok();
        }
    }
    fs::rename(begun, made).or_else(|error| if made.join(LIBRARY).exists() { Ok(()) } else { Err(error) })
}

fn compile(begun: &Path, header: &str, stamp: &str) -> Result<()> {
    unpack(&begun.join(ENGINE))?;
    fs::write(begun.join(HEADER), header)?;
    fs::write(begun.join(STAMP), stamp)?;
    let added = Added { from: begun.to_path_buf(), folder: begun.to_path_buf() };
    let mut command = compiler();
    command.args(["-O2", "-fPIC", "-shared", "-Wl,-Bsymbolic", "-ftls-model=initial-exec", "-ffreestanding"]);
    added.include(&mut command);
    command.arg(added.source("native/native.c")).arg("-o").arg(begun.join(LIBRARY));
    succeed(&mut command)
}

/// The C compiler of this machine, with the language and the warnings of the engine.
pub fn compiler() -> Command {
    let mut command = Command::new(env::var_os("CC").unwrap_or("cc".into()));
    command.args(["-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-parameter"]);
    command
}

/// Run a compiler, which says itself what it does not like.
pub fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().with_context(|| {
        format!("compiler_missing: {name} (install it, or name another in CC, for the kernel in CLANG)")
    })?;
    ensure!(status.success(), "{name} refuses it, see above");
    Ok(())
}

impl Added {
    /// Where they come from.
    pub fn from(&self) -> &Path {
        &self.from
    }

    /// Where what was built is kept.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The list of these policies, for other ports of the engine.
    pub fn header(&self) -> Result<PathBuf> {
        let header = self.folder.join(HEADER);
        ensure!(header.exists(), "policy_sources_needed: {} has no {HEADER}", self.folder.display());
        Ok(header)
    }

    /// A source of the engine, by a name like `bpf/tierce.bpf.c`.
    pub fn source(&self, name: &str) -> PathBuf {
        self.folder.join(ENGINE).join(name)
    }

    /// What a compiler needs to find the native port, the engine and these policies.
    pub fn include(&self, command: &mut Command) {
        command.arg("-I").arg(self.source("native"));
        self.include_policies(command);
    }

    /// What a compiler needs to find the engine and these policies.
    pub fn include_policies(&self, command: &mut Command) {
        command.arg("-I").arg(self.source("policy"));
        command.arg(format!("-DTIERCE_ADDED=\"{}\"", self.folder.join(HEADER).display()));
    }

    /// A file beside the library, made if it is not there yet.
    pub fn file(&self, name: &str, make: impl FnOnce(&Path) -> Result<()>) -> Result<PathBuf> {
        let path = self.folder.join(name);
        if !path.exists() {
            let begun = self.folder.join(format!("{name}.{}", id()));
            make(&begun)?;
            fs::rename(&begun, &path)?;
        }
        Ok(path)
    }
}

fn unpack(to: &Path) -> Result<()> {
    for (name, text) in SOURCES {
        let path = to.join(name);
        let folder = path.parent().context("a source is in a folder")?;
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// `$XDG_CACHE_HOME/tierce/policies`, or the same under `~/.cache`.
fn cache() -> Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|base| base.join("tierce/policies"))
        .context("neither XDG_CACHE_HOME nor HOME names a folder to keep what is built in")
}

/// All C files of a folder and of those in it, and their texts.
fn texts(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            found.append(&mut texts(&path)?);
        } else if path.extension().is_some_and(|ending| ending == "c" || ending == "h") {
            found.insert(path.clone(), fs::read(&path).with_context(|| path.display().to_string())?);
        }
    }
    Ok(found)
}

/// A policy to begin with: a copy of `round-robin` under another name, with the contract of a policy behind it.
pub fn skeleton(name: &str) -> Result<String> {
    let source = |name| SOURCES.iter().find(|(other, _)| *other == name).map(|(_, text)| *text);
    let copied = source("policy/round_robin.c").context("round-robin is a policy")?;
    let number = number(copied).context("it has a number")?;
    let contract = source("policy/tierce.h")
        .and_then(|text| Some(text.split_once("contract of a policy")?.1.split_once("*/\n")?.1))
        .and_then(|text| Some(text.split_once("*/\n")?.0))
        .context("policy/tierce.h has the contract of a policy")?;
    let own = copied
        .replace(&format!("P({number}, "), &format!("P(NUMBER_{name}, "))
        .replace("ROUND_ROBIN", &name.to_uppercase())
        .replace("round_robin", name)
        .replace("round-robin", &name.replace('_', "-"));
    Ok(format!("{own}\n/* The contract of a policy, from Tierce's policy/tierce.h. */\n{contract}*/\n"))
}

/// The prefixes of the policies whose records a text has.
fn records(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter_map(|line| line.strip_prefix("#define POLICY_")?.split_once('('))
        .map(|(name, _)| name)
}

/// The number of a policy of the engine: in its record, the line after its name.
fn number(text: &str) -> Option<u32> {
    text.lines().find_map(|line| line.trim().strip_prefix("P(")?.split_once(',')?.0.parse().ok())
}

/// A policy of a folder.
struct Found {
    name: String,
    number: u32,
    text: String,
}

/// The policies of a folder, with numbers from `first` on, and the files that have them.
fn find(folder: &Path, first: u32) -> Result<(Vec<Found>, Vec<PathBuf>)> {
    let shown = folder.display();
    let engine = SOURCES.iter().filter(|(name, _)| name.starts_with("policy/"));
    let mut taken: Vec<String> = engine.flat_map(|(_, text)| records(text)).map(Into::into).collect();
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for (file, text) in texts(folder)? {
        if file.parent() != Some(folder) || file.extension().is_none_or(|ending| ending != "c") {
            continue;
        }
        let text = String::from_utf8(text).with_context(|| format!("{}: no text", file.display()))?;
        for (name, number) in records(&text).zip(first + found.len() as u32..) {
            let name = name.to_string();
            ensure!(
                !taken.contains(&name),
                "policy_name_taken: {}: there is a policy {name} already",
                file.display()
            );
            ensure!(number <= NUMBERS, "too_many_policies: {shown}: {} fit", NUMBERS + 1 - first);
            taken.push(name.clone());
            found.push(Found { name, number, text: text.clone() });
        }
        files.push(file);
    }
    ensure!(
        !found.is_empty(),
        "policy_folder_empty: {shown} has no C file with a policy's record (#define POLICY_name(P, V)); \
         `tierce policy new {shown}/NAME.c` writes one to begin with"
    );
    Ok((found, files))
}

/// The list of the policies of a folder: what `policies.h`, `tierce.h` and `check.h` have for those of the engine.
fn header(folder: &Path) -> Result<String> {
    let path = folder.to_str().filter(|path| !path.contains(['"', '\\', '\n']));
    ensure!(path.is_some(), "policy_folder_name: {}: a compiler would not understand it", folder.display());
    let numbers = SOURCES.iter().filter(|(_, text)| records(text).next().is_some());
    let first = numbers.filter_map(|(_, text)| number(text)).max().context("the engine has policies")? + 1;
    let (found, files) = find(folder, first)?;
    let mut header = format!("#define TIERCE_ADDED_FIRST {first}u\n");
    let (mut lists, mut checks) = ([const { String::new() }; 4], String::new());
    let [policies, edges, nodes, invariants] = &mut lists;
    for Found { name, number, text } in &found {
        writeln!(header, "#define NUMBER_{name} {number}")?;
        write!(policies, " \\\n\tPOLICY_{name}(P, V)")?;
        let says = format!("the record of {name} begins with P(NUMBER_{name}, {name},");
        writeln!(checks, "_Static_assert(TIERCE_{name} == {number}, \"{says}\");")?;
        for (what, most, states) in [("edge", EDGE_BYTES, &mut *edges), ("node", NODE_BYTES, &mut *nodes)] {
            let state = format!("struct {name}_{what}");
            if text.contains(&format!("{state} {{")) {
                write!(states, " {state} {name};")?;
                let says = format!("{state} has at most {most} bytes");
                writeln!(checks, "_Static_assert(sizeof({state}) <= {most}, \"{says}\");")?;
            }
        }
        if text.contains(&format!("#define INVARIANTS_{name}(I)")) {
            write!(invariants, " INVARIANTS_{name}(I)")?;
        }
    }
    for (name, list) in ["POLICIES(P, V)", "EDGES", "NODES", "INVARIANTS(I)"].iter().zip(&lists) {
        writeln!(header, "#define TIERCE_ADDED_{name}{list}")?;
    }
    for file in files {
        writeln!(header, "#include \"{}\"", file.display())?;
    }
    Ok(header + "#ifdef TIERCE_POLICY_BODIES\n" + &checks + "#endif\n")
}
