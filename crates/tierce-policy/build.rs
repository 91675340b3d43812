//! Compiles policy/*.c with the native port, and lists the sources of the engine, which are part of the crate: with them it
//! compiles policies of others (src/added.rs).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Folders of the project, and what they are called in the list.
const SOURCES: [(&str, &str); 4] =
    [("../../policy", "policy"), ("native", "native"), ("../../bpf", "bpf"), ("../../tests/engine", "tests")];

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap());
    let mut list = String::from("&[\n");
    for (folder, name) in SOURCES {
        println!("cargo:rerun-if-changed={folder}");
        add(&here.join(folder), name, &mut list);
    }
    list.push(']');
    fs::write(PathBuf::from(env::var("OUT_DIR").unwrap()).join("sources.rs"), list).unwrap();
    cc::Build::new()
        .file("native/native.c")
        .include("native")
        .include("../../policy")
        .flag("-std=gnu11")
        .flag("-ffreestanding")
        .flag("-ftls-model=initial-exec")
        .flag("-Wno-unused-parameter")
        .warnings_into_errors(true)
        .extra_warnings(true)
        .opt_level(2)
        .compile("tierce_policy");
}

/// A line for each C file of a folder: what it is called, and its text.
fn add(folder: &Path, name: &str, list: &mut String) {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let called = format!("{name}/{}", file.file_name().unwrap().to_str().unwrap());
        if file.is_dir() {
            add(&file, &called, list);
        } else if file.extension().is_some_and(|ending| ending == "c" || ending == "h") {
            writeln!(list, "    ({called:?}, include_str!({file:?})),").unwrap();
        }
    }
}
