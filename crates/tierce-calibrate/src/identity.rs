//! What works depend on: the program, its libraries, the kernel, the processor.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A file and what was in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is.
    pub path: PathBuf,
    /// SHA-256 of its contents.
    pub sha256: String,
}

impl File {
    /// The file as it is now.
    pub fn read(path: &Path) -> io::Result<File> {
        File::of(path, &opened(path)?)
    }

    /// What is in a file of that path that is open, from where it is read next.
    pub fn of(path: &Path, file: &std::fs::File) -> io::Result<File> {
        // One that grows is read as far as it was, so that it ends.
        let length = file.metadata()?.len();
        let (mut file, mut sum, mut part) = (file.take(length), Sha256::new(), vec![0; 1 << 16]);
        loop {
            match file.read(&mut part)? {
                0 => break,
                count => sum.update(&part[..count]),
            }
        }
        let sha256 = sum.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(File { path: path.into(), sha256 })
    }
}

/// A regular file. Nothing else is opened, because that alone may have an effect: a pipe waits, a device may do anything.
pub fn opened(path: &Path) -> io::Result<std::fs::File> {
    let place = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
    match place.metadata()?.is_file() {
        true => std::fs::File::open(format!("/proc/self/fd/{}", place.as_raw_fd())),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// A program and its shared libraries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The executable.
    pub executable: File,
    /// Its shared libraries, by path.
    pub libraries: Vec<File>,
}

/// The function with which a thread began, by which threads of one name are told apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routine {
    /// Where it is: `main` for the first thread of a process, else the name of a file and the place in it, `player+0x1220`.
    pub place: String,
    /// Its name, for readers, if the file has symbols.
    pub function: Option<String>,
}

impl Routine {
    /// Whether a text can be the place of one.
    pub(crate) fn is_place(text: &str) -> bool {
        let is_hex = |digit: u8| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit);
        let at =
            text.rsplit_once("+0x").filter(|(file, at)| !file.is_empty() && (1..=16).contains(&at.len()));
        text == "main" || at.is_some_and(|(_, at)| at.bytes().all(is_hex))
    }
}

/// The machine on which works were measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the processor.
    pub cpu: String,
    /// How its frequency was chosen, as far as the kernel says.
    pub frequency: String,
}

/// The files that code is mapped from, by the text of `/proc/PID/maps`.
pub fn mapped_files(maps: &str) -> impl Iterator<Item = PathBuf> + '_ {
    maps.lines().filter_map(|line| {
        let mut fields = line.splitn(6, ' ');
        let is_code = fields.nth(1)?.contains('x');
        let path = Path::new(fields.nth(3)?.trim_start());
        (is_code && path.is_absolute()).then(|| path.to_path_buf())
    })
}

/// The program with these files mapped, its own among them. A library that can no longer be read is left out.
pub fn of_program(executable: &Path, mapped: &BTreeSet<PathBuf>) -> io::Result<Program> {
    let libraries = mapped.iter().filter(|path| *path != executable);
    let libraries = libraries.filter_map(|path| File::read(path).ok()).collect();
    Ok(Program { executable: File::read(executable)?, libraries })
}

/// The machine whose /proc and /sys are below `root`.
pub fn of_machine(root: &Path) -> Machine {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default().trim().to_string();
    let cpuinfo = read("proc/cpuinfo");
    let field = |name: &str| {
        let of =
            |line: &str| Some(line.strip_prefix(name)?.trim_start().strip_prefix(':')?.trim().to_string());
        cpuinfo.lines().find_map(of)
    };
    let cpu = ["model name", "Model", "CPU part", "uarch"].iter().find_map(|name| field(name));
    let governor = read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let megahertz = |name: &str| {
        let khz = read(&format!("sys/devices/system/cpu/cpu0/cpufreq/{name}"));
        khz.parse::<u64>().map_or("?".into(), |khz| (khz / 1000).to_string())
    };
    let frequency = match governor.as_str() {
        "" => "the kernel does not change it".into(),
        _ => {
            let (least, most) = (megahertz("scaling_min_freq"), megahertz("scaling_max_freq"));
            format!("governor {governor}, {least} to {most} MHz")
        }
    };
    Machine { kernel: read("proc/sys/kernel/osrelease"), cpu: cpu.unwrap_or("unknown".into()), frequency }
}

/// Something that works depend on and that is no longer as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The executable, a library, the kernel, the processor.
    pub what: String,
    /// As it was.
    pub was: String,
    /// As it is.
    pub is: String,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: was {}, is {}", self.what, self.was, self.is)
    }
}

fn short(sum: &str) -> String {
    format!("sha256 {}", sum.get(..12).unwrap_or(sum))
}

impl Program {
    /// Which of its files have changed since.
    pub fn changes(&self) -> Vec<Change> {
        self.changes_by(|path| Ok(File::read(path)?.sha256))
    }

    /// The same, where `sum` says what the SHA-256 of a file is now.
    pub fn changes_by(&self, mut sum: impl FnMut(&Path) -> io::Result<String>) -> Vec<Change> {
        let executable = std::iter::once(("executable", &self.executable));
        let libraries = self.libraries.iter().map(|library| ("library", library));
        let change = |(kind, file): (&str, &File)| {
            let is = match sum(&file.path) {
                Ok(now) if now == file.sha256 => return None,
                Ok(now) => short(&now),
                Err(error) => error.to_string(),
            };
            Some(Change { what: format!("{kind} {}", file.path.display()), was: short(&file.sha256), is })
        };
        executable.chain(libraries).filter_map(change).collect()
    }
}

impl Machine {
    /// In what this machine differs from `now`. The frequency is a remark: it changes all the time.
    pub fn changes(&self, now: &Machine) -> Vec<Change> {
        let pairs = [("kernel", &self.kernel, &now.kernel), ("processor", &self.cpu, &now.cpu)];
        let changed = pairs.into_iter().filter(|(_, was, is)| was != is);
        changed
            .map(|(what, was, is)| Change { what: what.into(), was: was.clone(), is: is.clone() })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("tierce-identity-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_program_and_what_changes() {
        let folder = folder("program");
        let [program, library, data] = ["player", "lib player.so", "data"].map(|name| folder.join(name));
        for path in [&program, &library, &data] {
            std::fs::write(path, "abc").unwrap();
        }
        let line = |flags: &str, path: &Path| {
            format!("7f00-7f01 {flags} 00000000 08:01 42                 {}\n", path.display())
        };
        let maps = line("r-xp", &program)
            + &line("r--p", &library)
            + &line("r-xp", &library)
            + &line("r--p", &data)
            + "7f02-7f03 r-xp 00000000 00:00 0                 [vdso]\n7f04-7f05 r-xp 00000000 00:00 0\n";
        let found = of_program(&program, &mapped_files(&maps).collect()).unwrap();
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(found.executable.sha256, sum);
        assert_eq!(found.libraries, [File { path: library.clone(), sha256: sum.into() }]);
        assert!(found.changes().is_empty());
        std::fs::write(&program, "abd").unwrap();
        std::fs::remove_file(&library).unwrap();
        let said: Vec<String> = found.changes().iter().map(Change::to_string).collect();
        assert_eq!(said.len(), 2);
        assert!(said[0].ends_with("player: was sha256 ba7816bf8f01, is sha256 a52d159f262b"), "{}", said[0]);
        assert!(said[1].contains("lib player.so: was") && said[1].contains("No such file"), "{}", said[1]);
        let nothing = File::read(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(nothing.to_string(), "not a regular file");
        let empty = File::read(Path::new("/proc/self/pagemap")).unwrap();
        assert!(
            empty.sha256.starts_with("e3b0c442"),
            "what has no length is empty, however much could be read"
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_machine() {
        let root = folder("machine");
        let frequency = root.join("sys/devices/system/cpu/cpu0/cpufreq");
        std::fs::create_dir_all(root.join("proc/sys/kernel")).unwrap();
        std::fs::write(root.join("proc/sys/kernel/osrelease"), "7.0.13\n").unwrap();
        std::fs::write(
            root.join("proc/cpuinfo"),
            "processor\t: 0\nmodel name\t: A CPU: fast\nmodel name\t: x\n",
        )
        .unwrap();
        let still = of_machine(&root);
        assert_eq!((still.kernel.as_str(), still.cpu.as_str()), ("7.0.13", "A CPU: fast"));
        assert_eq!(still.frequency, "the kernel does not change it");
        std::fs::create_dir_all(&frequency).unwrap();
        for (name, text) in [
            ("scaling_governor", "powersave\n"),
            ("scaling_min_freq", "800000\n"),
            ("scaling_max_freq", "4200000\n"),
        ] {
            std::fs::write(frequency.join(name), text).unwrap();
        }
        let moving = of_machine(&root);
        assert_eq!(moving.frequency, "governor powersave, 800 to 4200 MHz");
        assert!(still.changes(&moving).is_empty());
        let other = Machine { kernel: "7.0.14".into(), cpu: "B".into(), ..moving };
        let said: Vec<String> = still.changes(&other).iter().map(Change::to_string).collect();
        assert_eq!(said, ["kernel: was 7.0.13, is 7.0.14", "processor: was A CPU: fast, is B"]);
        std::fs::remove_dir_all(root).unwrap();
    }
}
