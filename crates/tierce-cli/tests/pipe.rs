//! Whoever reads our output may stop at any time: `tierce sim PLAN | head -n 1`.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
fn a_closed_pipe_ends_the_command_quietly() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut tierce = Command::new(env!("CARGO_BIN_EXE_tierce"))
        .args(["sim", "examples/desktop.toml", "--for", "1s", "--json"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(tierce.stdout.take());
    let mut complaints = String::new();
    tierce.stderr.take().unwrap().read_to_string(&mut complaints).unwrap();
    let status = tierce.wait().unwrap();
    assert_eq!(complaints, "");
    assert_eq!(status.signal(), Some(libc::SIGPIPE), "{status}");
}
