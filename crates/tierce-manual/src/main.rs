//! `tierce-manual FOLDER`: writes man pages and shell completions of the programs into a folder.

use anyhow::{Context, Result};
use std::path::Path;

fn main() -> Result<()> {
    let folder = std::env::args_os().nth(1).context("usage: tierce-manual FOLDER")?;
    tierce_manual::write(Path::new(&folder))
}
