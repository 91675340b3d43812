//! Whoever reads our output may stop at any time: `tierce sim PLAN | head -n 1`.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    // A pipe whose reader is gone for certain.
    let mut reader = Command::new("true").stdin(Stdio::piped()).spawn().unwrap();
    let pipe = reader.stdin.take().unwrap();
    reader.wait().unwrap();

    let tierce = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["sim", "examples/desktop.toml", "--for", "1s", "--json"])
        .current_dir(root)
        .stdout(pipe)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = tierce.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.signal(), Some(libc::SIGPIPE), "{}", output.status);
}
