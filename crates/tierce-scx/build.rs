//! Compiles the objects that the loader embeds: bpf/tierce.bpf.c, with policy/ inside, bpf/calibrate.bpf.c and bpf/marks.bpf.c.
//! They are compressed: the first is mostly the zeros of the arena.

#[path = "compile.rs"]
mod compile;

use std::path::PathBuf;
use std::{env, fs};

fn main() {
    println!("cargo:rerun-if-changed=compile.rs");
    println!("cargo:rerun-if-changed=../../policy");
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    for source in ["tierce.bpf.c", "calibrate.bpf.c", "marks.bpf.c"] {
        embed(source);
    }
}

fn embed(source: &str) {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let object = PathBuf::from(env::var("OUT_DIR").unwrap()).join(source).with_extension("o");
    let arch = env::var("CARGO_CFG_TARGET_ARCH").unwrap();
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    println!("cargo:rustc-env=BPF_INCLUDE={headers}");
    let mut command = compile::object(&root.join("bpf"), source, headers.as_ref(), &arch, &object);
    let clang = compile::compiler();
    let status = command.arg("-Werror").arg("-I").arg(root.join("policy")).status().unwrap_or_else(|error| {
        panic!("{clang}: {error} (clang 19 compiles the kernel side; set CLANG to name another)")
    });
    assert!(status.success(), "{clang} failed on bpf/{source}");
    let packed = zstd::encode_all(&*fs::read(&object).unwrap(), 19).unwrap();
    fs::write(object.with_extension("o.zst"), packed).unwrap();
}
