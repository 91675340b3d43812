//! Compiles policy/*.c with the native port.

fn main() {
    println!("cargo:rerun-if-changed=../../policy");
    println!("cargo:rerun-if-changed=native");
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
