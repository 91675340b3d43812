//! What is inside the guest: busybox, our own programs, and what the user wants there.

use crate::cpio::{Entry, Image};
use anyhow::{bail, ensure, Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs `init`, of so many bytes, and `meter`, packed together.
const GUEST: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/guest.zst"));
const INIT_BYTES: usize = include!(concat!(env!("OUT_DIR"), "/init_bytes.rs"));

/// A file or folder of the host and where it is in the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// On the host.
    pub from: PathBuf,
    /// In the guest; relative to `/guest`, where the command starts.
    pub to: PathBuf,
}

impl Copy {
    /// `SOURCE` or `SOURCE:TARGET`; without a target it keeps its last name.
    pub fn parse(text: &str) -> Result<Copy> {
        let (from, to) = match text.split_once(':') {
            Some((from, to)) => (PathBuf::from(from), PathBuf::from(to)),
            None => (PathBuf::from(text), PathBuf::from(text)),
        };
        let named = match text.contains(':') {
            true => to,
            false => fs::canonicalize(&from)
                .with_context(|| format!("{text}: cannot be put into the guest"))?
                .file_name()
                .with_context(|| format!("{text}: has no name; say where it goes: {text}:NAME"))?
                .into(),
        };
        ensure!(
            !named.components().any(|part| part == Component::ParentDir),
            "{text}: the target leaves the guest's /guest"
        );
        Ok(Copy { from, to: named })
    }
}

/// The image under construction.
pub struct Contents {
    image: Image,
}

impl Contents {
    /// The base system: busybox with all its names, init, meter.
    pub fn new() -> Result<Contents> {
        let mut contents = Contents { image: Image::default() };
        for folder in [
            "bin", "dev", "etc", "guest", "lib", "lib64", "out", "proc", "root", "run", "sbin", "sys", "tmp",
            "usr/bin", "usr/sbin", "var",
        ] {
            contents.image.add(folder, Entry::Dir);
        }
        let guest = zstd::decode_all(GUEST)?;
        let (init, meter) = guest.split_at(INIT_BYTES);
        contents.image.file("init", init, true);
        contents.image.file("bin/meter", meter, true);
        contents.image.file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", false);
        contents.image.file("etc/group", "root:x:0:\n", false);
        contents.image.file("etc/hosts", "127.0.0.1 localhost tierce\n", false);
        if let Ok(cache) = fs::read("/etc/ld.so.cache") {
            contents.image.file("etc/ld.so.cache", cache, false);
        }
        let busybox =
            find_program("busybox").context("the guest's base system (Debian package busybox-static)")?;
        contents.program(&busybox)?;
        let listed = Command::new(&busybox).arg("--list").output().context("busybox --list")?;
        for name in String::from_utf8_lossy(&listed.stdout).split_whitespace() {
            let path = format!("bin/{name}");
            if !contents.image.has(&path) {
                contents.image.add(&path, Entry::Link("busybox".into()));
            }
        }
        Ok(contents)
    }

    /// A program of the host in `/bin`, with the shared libraries that `ldd` names, at the same places as on the host.
    pub fn program(&mut self, path: &Path) -> Result<()> {
        let name =
            path.file_name().with_context(|| format!("{}: not a program", path.display()))?.to_string_lossy();
        let content = read(path)?;
        if content.starts_with(b"\x7fELF") {
            for library in libraries(path)? {
                self.image.file(&library.to_string_lossy(), read(&library)?, true);
            }
        }
        self.image.file(&format!("bin/{name}"), without_debug_information(content), true);
        Ok(())
    }

    /// A file, or a folder with all below it.
    pub fn copy(&mut self, copy: &Copy) -> Result<()> {
        let target = Path::new("/guest").join(&copy.to);
        self.tree(&copy.from, &target)
            .with_context(|| format!("{}: cannot be put into the guest", copy.from.display()))
    }

    fn tree(&mut self, from: &Path, to: &Path) -> Result<()> {
        // `.` and `//` drop out when a path is taken apart.
        let to: PathBuf = to.components().filter(|part| *part != Component::CurDir).collect();
        let path = to.to_str().with_context(|| format!("{}: not UTF-8", to.display()))?;
        let data = fs::metadata(from).with_context(|| from.display().to_string())?;
        if data.is_dir() {
            self.image.add(path, Entry::Dir);
            for entry in fs::read_dir(from)? {
                let entry = entry?;
                let link = fs::read_link(entry.path()).ok().filter(|target| target.is_relative());
                let below = to.join(entry.file_name());
                match link.as_deref().map(Path::to_str) {
                    Some(Some(target)) => {
                        self.image.add(&below.to_string_lossy(), Entry::Link(target.into()))
                    }
                    _ => self.tree(&entry.path(), &below)?,
                }
            }
        } else {
            ensure!(data.is_file(), "{}: neither a file nor a folder", from.display());
            self.image.file(path, read(from)?, data.permissions().mode() & 0o111 != 0);
        }
        Ok(())
    }

    /// What init shall do (see guest/init.c).
    pub fn orders(
        &mut self,
        command: &[String],
        environment: &[(String, String)],
        turns_ns: Option<u64>,
    ) -> Result<()> {
        let mut words = Vec::new();
        for word in command {
            ensure!(!word.contains('\0'), "the command has a NUL character");
            words.extend_from_slice(word.as_bytes());
            words.push(0);
        }
        self.image.file("etc/tierce/command", words, false);
        let mut words = Vec::new();
        for (name, value) in environment {
            ensure!(
                !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0'),
                "{name:?}: not the name and value of an environment variable"
            );
            words.extend_from_slice(format!("{name}={value}\0").as_bytes());
        }
        self.image.file("etc/tierce/environment", words, false);
        if let Some(turns_ns) = turns_ns {
            self.image.file("etc/tierce/turns", format!("{turns_ns}\0"), false);
        }
        Ok(())
    }

    /// The initramfs.
    pub fn bytes(&self) -> Vec<u8> {
        self.image.bytes()
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// A program by path or, without a slash, through PATH.
pub fn find_program(name: &str) -> Result<PathBuf> {
    if name.contains('/') {
        ensure!(Path::new(name).is_file(), "{name}: no such program");
        return Ok(name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let runs = |file: &PathBuf| {
        fs::metadata(file).is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let system = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let found = std::env::split_paths(&path).chain(system).map(|folder| folder.join(name)).find(runs);
    found.with_context(|| format!("{name}: no such program on this machine"))
}

/// The files that the dynamic linker would load, itself included.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let program = fs::canonicalize(program)?;
    let out =
        Command::new("ldd").arg(&program).stdin(Stdio::null()).output().context("ldd (package libc-bin)")?;
    let text = String::from_utf8_lossy(&out.stdout);
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some((name, _)) = line.split_once("=> not found") {
            bail!("{}: needs {}, which this machine does not have", program.display(), name.trim());
        }
        // "libc.so.6 => /lib/…/libc.so.6 (0x…)" or "/lib64/ld-linux-x86-64.so.2 (0x…)"
        let path = line.rsplit("=> ").next().unwrap_or(line).trim();
        if let Some((path, _)) = path.split_once(" (0x").filter(|(path, _)| path.starts_with('/')) {
            found.push(path.into());
        }
    }
    Ok(found)
}

/// Everything that is loaded lies before the end of the last segment; what follows (debug information, symbols, the
/// section table) can be a hundred megabytes, and the guest keeps its files in memory. Small programs stay as they are.
fn without_debug_information(mut content: Vec<u8>) -> Vec<u8> {
    const SMALL: usize = 8 << 20;
    let word = |at: usize, size: usize| -> Option<u64> {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(content.get(at..at + size)?);
        Some(u64::from_le_bytes(bytes))
    };
    let loaded_end = || -> Option<usize> {
        let is_elf64_le = content.get(..6)? == b"\x7fELF\x02\x01";
        let (table, size, count) = (word(0x20, 8)?, word(0x36, 2)?, word(0x38, 2)?);
        let mut end = table + size * count;
        for header in (0..count).map(|i| (table + i * size) as usize) {
            end = end.max(word(header + 0x08, 8)?.checked_add(word(header + 0x20, 8)?)?);
        }
        (is_elf64_le && end <= content.len() as u64).then_some(end as usize)
    };
    if content.len() > SMALL {
        if let Some(end) = loaded_end() {
            content.truncate(end);
            content[0x28..0x30].fill(0); // where the section table is: nowhere
            content[0x3c..0x40].fill(0); // its entries, and the one with the names: none
        }
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_read() {
        let copy = |text| Copy::parse(text).map(|c| c.to.display().to_string()).map_err(|e| format!("{e:#}"));
        assert_eq!(copy("/etc/passwd").unwrap(), "passwd");
        assert_eq!(copy("/etc/passwd:/etc/shadow").unwrap(), "/etc/shadow");
        assert_eq!(copy("src:.").unwrap(), ".");
        assert!(copy("/").unwrap_err().contains("has no name"));
        assert!(copy("/no/such").unwrap_err().contains("cannot be put into the guest"));
        assert!(copy("a:../b").unwrap_err().contains("leaves"));
    }

    #[test]
    fn missing_programs_are_named() {
        let error = find_program("no-such-program-here").unwrap_err().to_string();
        assert!(error.contains("no-such-program-here: no such program"), "{error}");
        assert!(find_program("/no/such").is_err());
        assert!(find_program("sh").is_ok());
    }

    #[test]
    fn bad_orders_are_refused() {
        let mut contents = Contents { image: Image::default() };
        let refused = |c: &mut Contents, word: &str, name: &str| {
            c.orders(&[word.into()], &[(name.into(), "x".into())], None).unwrap_err().to_string()
        };
        assert!(refused(&mut contents, "a\0b", "A").contains("NUL"));
        assert!(refused(&mut contents, "a", "A=B").contains("not the name"));
        assert!(refused(&mut contents, "a", "").contains("not the name"));
    }

    /// This test itself, made big by what no segment loads, as debug information; what is left of it still starts.
    #[test]
    fn a_program_without_debug_information_still_runs() {
        let mut whole = fs::read(std::env::current_exe().unwrap()).unwrap();
        let program = whole.len();
        whole.resize(program + (9 << 20), b'd');
        let slim = without_debug_information(whole);
        assert!(slim.len() < program, "{} of {program} bytes are left", slim.len());
        let file = std::env::temp_dir().join(format!("tierce-slim-{}", std::process::id()));
        fs::write(&file, slim).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let ran = Command::new(&file).arg("--list").output().unwrap();
        fs::remove_file(&file).unwrap();
        assert!(String::from_utf8_lossy(&ran.stdout).contains("still_runs: test"));
        assert_eq!(without_debug_information(vec![0; 9 << 20]).len(), 9 << 20, "not an ELF: untouched");
    }
}
