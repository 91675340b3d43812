//! What is left of a machine.

use crate::kernel::Kernel;
use crate::profile::Profile;
use anyhow::{ensure, Context, Result};
use rustix::fs::MemfdFlags;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The command ended with this code (128 + n: by signal n).
    Exit(u8),
    /// The time limit came first.
    Limit,
    /// It was stopped before ([`crate::Vm::stop`]).
    Stopped,
    /// The guest ended before the command did: a panic, a reset.
    Died,
}

/// What is left of a machine.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The kernel's log, as far as it is printed.
    pub console: String,
    /// The kernel it ran.
    pub kernel: Kernel,
    /// From the start of QEMU to the start of the command; 0 if it came to none.
    pub boot: Duration,
    /// From the start of QEMU to its end.
    pub total: Duration,
    /// What the command wrote, if run with [`crate::Vm::run_captured`].
    pub stdout: Vec<u8>,
    /// The same for standard error.
    pub stderr: Vec<u8>,
    pub(crate) files: File,
    pub(crate) counted: Option<Counted>,
}

/// What QEMU's plugin and the guest write for a profile.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) instructions: File,
    pub(crate) symbols: File,
}

impl Counted {
    pub(crate) fn new() -> Result<Counted> {
        Ok(Counted { instructions: memory_file("profile", &[])?, symbols: memory_file("symbols", &[])? })
    }
}

impl Outcome {
    /// The code for our own exit: the command's, 124 at the time limit, 125 if the guest died, 130 if it was stopped.
    pub fn code(&self) -> u8 {
        match self.end {
            End::Exit(code) => code,
            End::Limit => 124,
            End::Died => 125,
            End::Stopped => 130,
        }
    }

    /// Put what the command left in `/out` into a folder of the host; the number of files. Only an exit brings files.
    pub fn unpack(&mut self, folder: &Path) -> Result<usize> {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut count = 0;
        self.each_file(|entry| {
            if entry.header().entry_type().is_file() {
                count += 1;
            }
            ensure!(entry.unpack_in(folder)?, "{}: leads out of the folder", entry.path()?.display());
            Ok(())
        })
        .with_context(|| format!("files of the guest into {}", folder.display()))?;
        Ok(count)
    }

    /// One file of `/out`.
    pub fn file(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut found = None;
        self.each_file(|entry| {
            if entry.path()?.strip_prefix(".").is_ok_and(|path| path == Path::new(name)) {
                let content = found.insert(Vec::new());
                entry.read_to_end(content)?;
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Which instructions the guest executed between its marks, if the machine had [`Vm::profile`].
    pub fn profile(&mut self) -> Result<Profile> {
        let counted = self.counted.as_mut().context("this machine was not profiled")?;
        Profile::parse(&text_of(&mut counted.instructions)?, &text_of(&mut counted.symbols)?)
    }

    fn each_file(&mut self, mut act: impl FnMut(&mut tar::Entry<&File>) -> Result<()>) -> Result<()> {
        self.files.rewind()?;
        let mut archive = tar::Archive::new(&self.files);
        archive.entries()?.try_for_each(|entry| act(&mut entry?))
    }

    /// Why the guest died, as far as its console tells: from the first sign of trouble on, else the end; at most so many
    /// lines.
    pub fn last_words(&self, lines: usize) -> String {
        let signs = ["tierce init: ", "Kernel panic", "BUG: ", "Oops", "QEMU: "];
        let all: Vec<&str> = self.console.lines().collect();
        let trouble = all.iter().position(|line| signs.iter().any(|sign| line.contains(sign)));
        let from = trouble.unwrap_or(all.len().saturating_sub(lines));
        all[from..].iter().take(lines).copied().collect::<Vec<_>>().join("\n")
    }
}

/// A file in memory, at its end so that others append.
pub(crate) fn memory_file(name: &str, content: &[u8]) -> Result<File> {
    let mut file = File::from(rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC).context("memfd_create")?);
    file.write_all(content)?;
    Ok(file)
}

pub(crate) fn text_of(file: &mut File) -> Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
}
