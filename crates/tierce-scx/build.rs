//! Compiles bpf/tierce.bpf.c, with policy/ inside, into the object that the loader embeds (compressed: it is mostly the
//! zeros of the arena).

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..");
    let object = PathBuf::from(env::var("OUT_DIR").unwrap()).join("tierce.bpf.o");
    let arch = match env::var("CARGO_CFG_TARGET_ARCH").unwrap().as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        other => panic!("no sched_ext backend for {other}"),
    };
    let headers = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    println!("cargo:rerun-if-changed=../../policy");
    println!("cargo:rerun-if-changed=../../bpf");
    println!("cargo:rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang-19".into());
    let status = Command::new(&clang)
        .args(
            "-g -O2 -ffreestanding -target bpf -mcpu=v4 -Wall -Wextra -Werror -Wno-unused-parameter"
                .split(' '),
        )
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg(format!("-I{headers}"))
        .arg("-I")
        .arg(root.join("policy"))
        .arg("-I")
        .arg(root.join("bpf"))
        .arg("-c")
        .arg(root.join("bpf/tierce.bpf.c"))
        .arg("-o")
        .arg(&object)
        .status()
        .unwrap_or_else(|error| {
            panic!("{clang}: {error} (clang 19 compiles the kernel side; set CLANG to name another)")
        });
    assert!(status.success(), "{clang} failed on bpf/tierce.bpf.c");
    let packed = zstd::encode_all(&*fs::read(&object).unwrap(), 9).unwrap();
    fs::write(object.with_extension("o.zst"), packed).unwrap();
}
