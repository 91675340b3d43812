//! Compiles the programs of guest/ (static, so that they run in a guest that has nothing else), and the plugin of QEMU. The programs
//! are packed as one: most of each is the same C library.

use std::{env, fs, path::Path, process::Command};

const STATIC: [&str; 2] = ["-static", "-lpthread"];
const PLUGIN: [&str; 3] = ["-shared", "-fPIC", "-fvisibility=hidden"];
const PROGRAMS: [(&str, &[&str]); 3] = [("init", &STATIC), ("meter", &STATIC), ("profile", &PLUGIN)];
const HEADERS: [&str; 3] = ["port.h", "profile.h", "symbols.h"];

fn main() {
    let source = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../guest");
    let out = env::var("OUT_DIR").unwrap();
    let compiler = env::var("GUEST_CC").unwrap_or_else(|_| "gcc".into());
    println!("cargo::rerun-if-env-changed=GUEST_CC");
    println!("cargo::rerun-if-changed={}", source.join("meter").display());
    println!("cargo::rerun-if-changed={}", source.join("../libtierce/tierce-mark.h").display());
    for header in HEADERS {
        println!("cargo::rerun-if-changed={}", source.join(header).display());
    }
    let out = Path::new(&out);
    let guest = PROGRAMS.map(|(name, options)| {
        let file = source.join(name).with_extension("c");
        println!("cargo::rerun-if-changed={}", file.display());
        compile(&compiler, &file, &out.join(name), options)
    });
    let [init, meter, _] = guest;
    fs::write(out.join("init_bytes.rs"), init.len().to_string()).unwrap();
    fs::write(out.join("guest.zst"), zstd::encode_all(&*[init, meter].concat(), 19).unwrap()).unwrap();
}

fn compile(compiler: &str, file: &Path, program: &Path, options: &[&str]) -> Vec<u8> {
    if env::var("CARGO_CFG_TARGET_ARCH").unwrap() != "x86_64" {
        // Guests are amd64. Elsewhere the crate builds, and refuses at run time.
        fs::write(program, []).unwrap();
        return Vec::new();
    }
    let done = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(program)
        .arg(file)
        .args(options)
        .status()
        .unwrap_or_else(|error| panic!("{compiler}: {error} (Debian package gcc; or set GUEST_CC)"));
    assert!(done.success(), "{compiler} could not compile {}", file.display());
    fs::read(program).unwrap()
}
