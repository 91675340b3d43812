//! Compiles the programs of guest/ (static, so that they run in a guest that has nothing else), and the plugin of QEMU; packs them.

use std::{env, path::Path, process::Command};

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
    for (name, options) in PROGRAMS {
        let file = source.join(name).with_extension("c");
        let program = Path::new(&out).join(name);
        println!("cargo::rerun-if-changed={}", file.display());
        if env::var("CARGO_CFG_TARGET_ARCH").unwrap() != "x86_64" {
            // Guests are amd64. Elsewhere the crate builds, and refuses at run time.
            std::fs::write(program.with_extension("zst"), []).unwrap();
            std::fs::write(program, []).unwrap();
            continue;
        }
        let done = Command::new(&compiler)
            .args(["-std=gnu11", "-O2", "-s", "-Wall", "-Wextra", "-Werror", "-o"])
            .arg(&program)
            .arg(&file)
            .args(options)
            .status()
            .unwrap_or_else(|error| panic!("{compiler}: {error} (Debian package gcc; or set GUEST_CC)"));
        assert!(done.success(), "{compiler} could not compile {}", file.display());
        let packed = zstd::encode_all(&*std::fs::read(&program).unwrap(), 19).unwrap();
        std::fs::write(program.with_extension("zst"), packed).unwrap();
    }
}
