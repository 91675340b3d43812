//! How the BPF object is compiled: by the build of this crate, and, with policies of the user's, when it is needed.

use std::path::Path;
use std::process::Command;

/// A command that compiles a source of a folder `bpf` into an object; without what it is to include beside that folder.
pub fn object(bpf: &Path, source: &str, headers: &Path, arch: &str, object: &Path) -> Command {
    let arch = match arch {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        "riscv64" => "riscv",
        other => panic!("no sched_ext backend for {other}"),
    };
    let mut command = Command::new(compiler());
    command
        .args("-g -O2 -ffreestanding -target bpf -mcpu=v4 -Wall -Wextra -Wno-unused-parameter".split(' '))
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg("-I")
        .arg(headers)
        .arg("-I")
        .arg(bpf)
        .arg("-c")
        .arg(bpf.join(source))
        .arg("-o")
        .arg(object);
    command
}

/// The compiler for the kernel side.
pub fn compiler() -> String {
    std::env::var("CLANG").unwrap_or("clang-19".into())
}
