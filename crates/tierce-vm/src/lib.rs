//! Throw-away virtual machines: a Linux kernel with sched_ext, programs of this machine inside, one command, its output,
//! its files and its exit code. No root, no disk image, no network in the guest, nothing left behind.
//!
//! ```no_run
//! # fn main() -> anyhow::Result<()> {
//! let vm = tierce_vm::Vm { cpus: 2, ..Default::default() };
//! let outcome = vm.run_captured(&["uname", "-r"])?;
//! assert_eq!(outcome.end, tierce_vm::End::Exit(0));
//! # Ok(()) }
//! ```
//!
//! How: an initramfs is made on the spot, the same bytes for the same content ([`cpio`]); QEMU starts the ELF kernel
//! directly; the guest's init (guest/init.c) talks over virtio-serial ports. QEMU writes to pipes and memory files of
//! ours, so there is no temporary file to clean up, and it dies with us even if we are killed.

pub mod cpio;

mod contents;
mod kernel;
mod machine;
mod outcome;
mod profile;

pub use contents::{find_program, Copy};
pub use kernel::{cache_folder, obtain, Kernel, KernelSpec, Version};
pub use machine::{Event, Mode, Vm};
pub use outcome::{End, Outcome};
pub use profile::{Function, Instruction, Owner, Profile};
