//! Metrics of the plan in force: OpenMetrics for Prometheus, over HTTP or as a file.
//!
//! Both ways ask the control socket, as any client does, in threads of their own: who fetches metrics slowly, or a disk that is slow, keeps
//! nobody waiting who enforces the plan.

mod http;
mod text;
mod totals;

pub use text::Form;
pub use totals::Totals;

use crate::journal::{report, Level};
use anyhow::{bail, Context, Result};
use serde_json::{json, Value};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tierce_scx::socket;

/// How often a file is written.
const FILE_EVERY: Duration = Duration::from_secs(5);

/// Threads that may have series of their own.
pub const THREADS_MAX: u32 = 5_000;

/// `9464` is `127.0.0.1:9464`: only this machine may ask, unless another address is given.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    port.or_else(|_| text.parse()).map_err(|_| "a port, or ADDRESS:PORT".into())
}

/// Metrics as text, from who listens at the control socket.
pub fn fetch(socket: &Path, form: Form) -> Result<String> {
    let request = json!({ "request": "metrics", "classic": form == Form::Classic });
    match socket::ask(socket, request)? {
        Ok(answer) => Ok(answer["text"].as_str().context("metrics are text")?.to_string()),
        Err((_, message)) => bail!("{message}"),
    }
}

/// The answer to the request `metrics`.
pub fn answer(totals: &Totals, request: &Value) -> Value {
    let form = if request["classic"] == true { Form::Classic } else { Form::OpenMetrics };
    json!({ "text": text::of(totals, form) })
}

/// Write a file that readers never see in part.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(format!(".{}", std::process::id())); // node_exporter reads *.prom
    let temporary = PathBuf::from(temporary);
    let written = std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, path));
    written.inspect_err(|_| _ = std::fs::remove_file(&temporary)).with_context(|| path.display().to_string())
}

/// What offers metrics while a plan is in force.
#[derive(Default)]
pub struct Exporter {
    listener: Option<TcpListener>,
    file: Option<PathBuf>,
}

impl Exporter {
    /// Take the address, try the file: what is refused is refused before anything is changed.
    pub fn open(address: Option<SocketAddr>, file: Option<PathBuf>) -> Result<Exporter> {
        let listen =
            |address: SocketAddr| TcpListener::bind(address).with_context(|| format!("--metrics {address}"));
        if let Some(path) = &file {
            write_file(path, "")?;
        }
        Ok(Exporter { listener: address.map(listen).transpose()?, file })
    }

    /// Offer them from now on.
    pub fn start(&mut self, socket: &Path) -> Result<()> {
        let thread = || std::thread::Builder::new().name("tierce-metrics".into());
        if let Some(listener) = self.listener.take() {
            let socket = socket.to_path_buf();
            thread().spawn(move || http::serve(&listener, &|| fetch(&socket, Form::OpenMetrics)))?;
        }
        if let Some(path) = self.file.clone() {
            let socket = socket.to_path_buf();
            thread().spawn(move || loop {
                if let Err(error) = fetch(&socket, Form::Classic).and_then(|text| write_file(&path, &text)) {
                    report(Level::Error, "metrics_not_written", &format!("metrics: {error:#}"), &[]);
                }
                std::thread::sleep(FILE_EVERY);
            })?;
        }
        Ok(())
    }
}

impl Drop for Exporter {
    /// What is in force no more is not said any more.
    fn drop(&mut self) {
        if let Some(path) = &self.file {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let shown = |text: &str| parse_address(text).map(|address| address.to_string());
        assert_eq!(shown("9464").as_deref(), Ok("127.0.0.1:9464"));
        assert_eq!(shown("0.0.0.0:1").as_deref(), Ok("0.0.0.0:1"));
        assert_eq!(shown("[::1]:1").as_deref(), Ok("[::1]:1"));
        for wrong in ["", "localhost:1", "99999", "1.2.3.4"] {
            assert!(shown(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_is_there_as_a_whole() {
        let path = std::env::temp_dir().join(format!("tierce-metrics-{}.prom", std::process::id()));
        write_file(&path, "one").unwrap();
        write_file(&path, "two").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        drop(Exporter::open(None, Some(path.clone())).unwrap());
        assert!(!path.exists());
        assert!(Exporter::open(None, Some("/nowhere/at.prom".into())).is_err());
    }
}
