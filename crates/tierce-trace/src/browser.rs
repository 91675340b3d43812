//! A headless Chromium, if there is one: pictures of a page and what its scripts made of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, io, process, thread};

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];
const LIMIT: Duration = Duration::from_secs(120);

/// Nothing but the page: no GPU, no first-run work, no network of its own.
const FLAGS: [&str; 12] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--run-all-compositor-stages-before-draw",
    "--virtual-time-budget=30000",
];

/// A browser on this machine.
pub struct Browser {
    program: PathBuf,
}

/// What a browser printed.
pub struct Output {
    /// Standard output: the document, if it was asked for.
    pub stdout: String,
    /// Standard error: console messages among others.
    pub stderr: String,
}

impl Browser {
    /// The first one in `PATH`.
    pub fn find() -> Option<Browser> {
        let path = env::var_os("PATH")?;
        let places = env::split_paths(&path).flat_map(|folder| NAMES.map(|name| folder.join(name)));
        places.into_iter().find(|place| place.is_file()).map(|program| Browser { program })
    }

    /// A picture of a page (`fragment`: what follows `#`), `width` × `height` CSS pixels, two device pixels each.
    pub fn screenshot(&self, page: &Path, fragment: &str, size: (u32, u32), png: &Path) -> io::Result<()> {
        // Chromium takes a relative path as relative to its own folder.
        let target = std::path::absolute(png)?;
        let flags = [
            format!("--screenshot={}", target.display()),
            format!("--window-size={},{}", size.0, size.1),
            "--force-device-scale-factor=2".into(),
        ];
        let output = self.run(page, fragment, &flags)?;
        if !target.is_file() {
            return Err(io::Error::other(format!(
                "{} made no picture:\n{}",
                self.program.display(),
                output.stderr
            )));
        }
        Ok(())
    }

    /// The document after its scripts ran, and the console's messages.
    pub fn document(&self, page: &Path, fragment: &str, size: (u32, u32)) -> io::Result<Output> {
        let size = format!("--window-size={},{}", size.0, size.1);
        self.run(page, fragment, &["--dump-dom".into(), "--enable-logging=stderr".into(), size])
    }

    fn run(&self, page: &Path, fragment: &str, flags: &[String]) -> io::Result<Output> {
        let profile = env::temp_dir().join(format!("tierce-browser-{}-{}", process::id(), unique()));
        fs::create_dir_all(&profile)?;
        let result = self.run_in(&profile, page, fragment, flags);
        // The profile is of no use to anyone afterwards; what a straggling helper process still holds may stay.
        let _ = fs::remove_dir_all(&profile);
        result
    }

    fn run_in(&self, profile: &Path, page: &Path, fragment: &str, flags: &[String]) -> io::Result<Output> {
        let (stdout, stderr) = (profile.join("stdout"), profile.join("stderr"));
        let mut child = Command::new(&self.program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.join("data").display()))
            .args(flags)
            .arg(format!("file://{}#{fragment}", encode(&fs::canonicalize(page)?.to_string_lossy())))
            .stdin(Stdio::null())
            .stdout(fs::File::create(&stdout)?)
            .stderr(fs::File::create(&stderr)?)
            .spawn()?;
        let began = Instant::now();
        while child.try_wait()?.is_none() {
            if began.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                let text = format!("{} did not end within {} s", self.program.display(), LIMIT.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            thread::sleep(Duration::from_millis(20));
        }
        let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Output { stdout: read(&stdout)?, stderr: read(&stderr)? })
    }
}

/// A path as part of a URL.
fn encode(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
    path.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_become_urls() {
        assert_eq!(super::encode("/tmp/a b#c.html"), "/tmp/a%20b%23c.html");
    }
}
