//! An object beside another one: it writes into its maps, and is called at probes of programs.

use super::{sys, Link, Object};
use anyhow::{ensure, Result};
use std::ffi::CString;
use std::io::Error;

impl Object {
    /// Attach the program `name` to a static probe of a file: a library by its name, or an absolute path. Of every process.
    pub fn attach_usdt(&mut self, name: &str, file: &str, provider: &str, probe: &str) -> Result<Link> {
        let [text, file, provider, probe] = [name, file, provider, probe].map(CString::new);
        let (text, file, provider, probe) = (text?, file?, provider?, probe?);
        // SAFETY: valid object and names; no options.
        let link = unsafe {
            let program = sys::bpf_object__find_program_by_name(self.raw.as_ptr(), text.as_ptr());
            ensure!(!program.is_null(), "the BPF object has no program {name}");
            let (file, provider, probe) = (file.as_ptr(), provider.as_ptr(), probe.as_ptr());
            sys::bpf_program__attach_usdt(program, -1, file, provider, probe, std::ptr::null())
        };
        Link::new(link, name)
    }

    /// Before loading: a map is that of another object, which is loaded.
    pub fn share_map(&mut self, name: &str, other: &Object) -> Result<()> {
        // SAFETY: valid maps, one of them loaded.
        let code = unsafe {
            let descriptor = sys::bpf_map__fd(other.map(name)?);
            sys::bpf_map__reuse_fd(self.map(name)?, descriptor)
        };
        ensure!(code == 0, "map {name} of another object: {}", Error::from_raw_os_error(-code));
        Ok(())
    }
}
