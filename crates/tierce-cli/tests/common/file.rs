//! A file for `tierce analyse`, which is removed again, and what is said of it.

use std::path::PathBuf;
use std::process::{Command, Output};

pub struct File(pub PathBuf);

impl File {
    pub fn new(name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = std::env::temp_dir().join(format!("tierce-analyse-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }

    pub fn analyse(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
        command.arg("analyse").args(arguments).arg(&self.0).output().unwrap()
    }

    pub fn json(&self, arguments: &[&str], code: i32) -> serde_json::Value {
        let output = self.analyse(&[arguments, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
