//! Most relocations of these programs add nothing but the address at which the program lies. Packed they take 20 kB in place of 640. The C
//! library that loads them has to know that form: glibc does so since 2.36.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    // Of another machine's library nothing is known here.
    let is_own = variable("HOST") == variable("TARGET") && variable("CARGO_CFG_TARGET_ENV") == "gnu";
    if is_own && glibc() >= Some((2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Version of the C library here.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let (major, minor) =
        std::str::from_utf8(&said.stdout).ok()?.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
