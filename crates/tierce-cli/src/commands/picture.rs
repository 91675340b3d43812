//! Figures of commands: described here, drawn by a program of their own, `tierce-draw`.

use super::beside;
use anyhow::{bail, Context, Result};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use tierce_figure::{Figure, Format};

/// Is it the name of a picture? To be asked before anything is computed.
pub fn check(path: Option<&Path>) -> Result<()> {
    if let Some(path) = path {
        Format::of(path)?;
    }
    Ok(())
}

/// Draw a figure into a file.
pub fn write(figure: &Figure, path: &Path) -> Result<()> {
    let program = beside::program("tierce-draw")?;
    let mut draw = Command::new(&program)
        .arg(path)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|why| beside::refused(&program, why))?;
    let described = serde_json::to_vec(figure)?;
    // If it ends before it has read all, it says why.
    let _ = draw.stdin.take().context("its input")?.write_all(&described);
    let output = draw.wait_with_output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.trim().trim_start_matches("tierce-draw: "));
    }
    Ok(())
}
