//! Recordings that the real tools made of rt-app with two known threads (data/media.json): `audio` every 10 ms, `video` every 33.333 ms.
//! The machine was busy with other work.

use std::path::PathBuf;
use tierce_recording::{Recording, Threads};

/// The names of the recordings.
#[allow(dead_code)]
pub const ALL: [&str; 3] = ["trace-cmd-6.dat.zst", "trace-cmd-7.dat", "perf.data.zst"];

/// The bytes of one.
#[allow(dead_code)]
pub fn bytes(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    let bytes = std::fs::read(path).unwrap();
    if name.ends_with(".zst") {
        zstd::decode_all(&bytes[..]).unwrap()
    } else {
        bytes
    }
}

/// What its threads did.
#[allow(dead_code)]
pub fn threads(name: &str) -> (Recording, Threads) {
    let mut recording = Recording::of_bytes(bytes(name)).unwrap();
    let threads = Threads::of(recording.by_ref()).unwrap();
    (recording, threads)
}

/// A folder that goes when the test is done.
#[allow(dead_code)]
pub struct Folder(pub PathBuf);

#[allow(dead_code)]
impl Folder {
    pub fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tierce-recording-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
