//! The machine's `apt-get` with a state of its own.

use anyhow::{ensure, Context, Result};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where sched_ext kernels for Debian stable are.
pub const SUITE: &str = "trixie-backports";
/// Says which Debian mirror to take when the machine's apt has none.
const MIRROR_VARIABLE: &str = "TIERCE_DEBIAN_MIRROR";
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// An apt that shares nothing with the system's but its programs, its transport settings and the mirror.
pub struct Apt {
    folder: Scratch,
}

/// A folder that is removed again.
pub struct Scratch(pub PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Apt {
    pub fn new(folder: PathBuf) -> Result<Apt> {
        let _ = fs::remove_dir_all(&folder);
        for part in ["lists/partial", "cache/archives/partial", "state"] {
            fs::create_dir_all(folder.join(part)).with_context(|| folder.display().to_string())?;
        }
        let apt = Apt { folder: Scratch(folder) };
        ensure!(
            Path::new(KEYRING).exists(),
            "{KEYRING} is missing: it proves that a kernel is Debian's (package debian-archive-keyring)"
        );
        fs::write(apt.path("status"), "")?;
        let source = format!("deb [arch=amd64 signed-by={KEYRING}] {} {SUITE} main\n", mirror()?);
        fs::write(apt.path("sources.list"), source)?;
        Ok(apt)
    }

    /// Where what is downloaded comes to lie.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    pub fn path(&self, part: &str) -> PathBuf {
        self.folder.0.join(part)
    }

    /// Run an apt program and return what it printed.
    pub fn run(&self, program: &str, arguments: &[&str]) -> Result<String> {
        let path = |part| self.path(part).display().to_string();
        let settings = [
            format!("Dir::Etc::sourcelist={}", path("sources.list")),
            "Dir::Etc::sourceparts=/dev/null".into(),
            "Dir::Etc::preferences=/dev/null".into(),
            "Dir::Etc::preferencesparts=/dev/null".into(),
            format!("Dir::State={}", path("state")),
            format!("Dir::State::lists={}", path("lists")),
            format!("Dir::State::status={}", path("status")),
            format!("Dir::Cache={}", path("cache")),
            "APT::Architecture=amd64".into(),
            "APT::Architectures::=amd64".into(),
            "APT::Sandbox::User=".into(),
            "APT::Update::Error-Mode=any".into(),
            "Acquire::Languages=none".into(),
            "Acquire::Retries=3".into(),
            "Acquire::http::Timeout=20".into(),
            "Acquire::https::Timeout=20".into(),
        ];
        let mut command = Command::new(program);
        command.arg("-qq").args(settings.iter().flat_map(|one| ["-o", one])).args(arguments);
        output_of(command.current_dir(&self.folder.0)).context(
            "cannot get a kernel from Debian's archive; without a network, give one of your own: --kernel /path/to/vmlinux",
        )
    }
}

/// Standard output of a program that must succeed; its complaints are in the error.
fn output_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let out = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => anyhow::anyhow!(
            "{name} not found: kernels are fetched with Debian's package tools; elsewhere give a kernel of your own: \
             --kernel /path/to/vmlinux"
        ),
        _ => anyhow::anyhow!("{name}: {error}"),
    })?;
    ensure!(out.status.success(), "{name} failed: {}", String::from_utf8_lossy(&out.stderr).trim());
    Ok(String::from_utf8(out.stdout)?)
}

/// The Debian mirror that this machine's apt uses.
fn mirror() -> Result<String> {
    if let Ok(given) = std::env::var(MIRROR_VARIABLE) {
        return Ok(given);
    }
    let mut ask = Command::new("apt-get");
    ask.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let listed = output_of(&mut ask)?;
    let debian = |uri: &&str| uri.trim_end_matches('/').ends_with("/debian");
    listed.lines().find(debian).map(str::to_string).with_context(|| {
        format!(
            "this machine's apt knows no Debian mirror; name one in {MIRROR_VARIABLE} (http://HOST/debian)"
        )
    })
}
