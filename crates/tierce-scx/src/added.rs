//! The BPF object with policies of the user's in it: compiled when it is needed first, and kept beside their library.

use anyhow::Result;
use std::fs;
use std::path::Path;
use tierce_policy::added::{succeed, Added, OBJECT};

#[path = "../compile.rs"]
mod compile;

/// The headers of libbpf that the sources in `bpf/` include.
const HEADERS: [(&str, &str); 4] = [
    ("bpf_core_read.h", include_str!(concat!(env!("BPF_INCLUDE"), "/bpf/bpf_core_read.h"))),
    ("bpf_helper_defs.h", include_str!(concat!(env!("BPF_INCLUDE"), "/bpf/bpf_helper_defs.h"))),
    ("bpf_helpers.h", include_str!(concat!(env!("BPF_INCLUDE"), "/bpf/bpf_helpers.h"))),
    ("bpf_tracing.h", include_str!(concat!(env!("BPF_INCLUDE"), "/bpf/bpf_tracing.h"))),
];

/// The object, compressed.
pub fn object(added: &Added) -> Result<Vec<u8>> {
    let packed = added.file(OBJECT, |path| compile(added, path))?;
    Ok(fs::read(packed)?)
}

fn compile(added: &Added, packed: &Path) -> Result<()> {
    eprintln!("tierce: compiling the policies for the kernel");
    let (object, headers) = (packed.with_extension("o"), added.source("headers"));
    fs::create_dir_all(headers.join("bpf"))?;
    for (name, text) in HEADERS {
        fs::write(headers.join("bpf").join(name), text)?;
    }
    let mut command =
        compile::object(&added.source("bpf"), "tierce.bpf.c", &headers, std::env::consts::ARCH, &object);
    added.include_policies(&mut command);
    succeed(&mut command)?;
    fs::write(packed, zstd::encode_all(&*fs::read(&object)?, 9)?)?;
    Ok(fs::remove_file(object)?)
}
