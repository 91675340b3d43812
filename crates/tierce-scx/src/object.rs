//! The BPF object: a thin, safe layer over libbpf for just what the loader needs.

mod ring;
mod shared;

pub use ring::{Ring, Take};

use crate::prune::{prune, Constants, Insn, Program};
use anyhow::{anyhow, bail, ensure, Context, Result};
use libbpf_sys as sys;
use std::cell::{Cell, RefCell};
use std::ffi::{c_char, c_int, c_long, c_void, CStr, CString};
use std::io::Error;
use std::mem::{size_of, zeroed};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, Once};

static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tierce.bpf.o.zst"));

/// The kernel does not load an object.
#[derive(Debug, thiserror::Error)]
#[error("the kernel refuses the BPF object: {why}\n{said}")]
pub struct Refused {
    why: Error,
    said: String,
}

impl Refused {
    /// Is it for want of descriptors or memory, and not for what the verifier has found?
    pub fn is_shortage(&self) -> bool {
        matches!(self.why.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
    }
}

/// What libbpf had to say since it was last asked: the verifier's log comes this way.
static SAID: Mutex<String> = Mutex::new(String::new());

/// The end of what libbpf and the verifier said last, and forget it.
pub fn said() -> String {
    let text = std::mem::take(&mut *SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner()));
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}

unsafe extern "C" fn listen(
    level: sys::libbpf_print_level,
    format: *const c_char,
    list: *mut sys::__va_list_tag,
) -> c_int {
    if level == sys::LIBBPF_DEBUG && std::env::var_os("TIERCE_BPF_DEBUG").is_none() {
        return 0;
    }
    let mut text = vec![0u8; 1 << 16];
    // SAFETY: libbpf passes a matching format and list; the buffer's length goes with it.
    let length = unsafe { vsnprintf(text.as_mut_ptr().cast(), text.len(), format, list) };
    let length = (length.max(0) as usize).min(text.len() - 1);
    if let Ok(mut said) = SAID.lock() {
        said.push_str(&String::from_utf8_lossy(&text[..length]));
    }
    0
}

extern "C" {
    fn vsnprintf(to: *mut c_char, size: usize, format: *const c_char, list: *mut sys::__va_list_tag)
        -> c_int;
}

/// The object, an ELF file: the embedded one, unless policies of the user's have been added.
pub fn image() -> Result<Vec<u8>> {
    match tierce_policy::added::added() {
        None => zstd::decode_all(PACKED).context("the embedded BPF object"),
        Some(added) => zstd::decode_all(&*crate::added::object(added)?).context("the compiled BPF object"),
    }
}

/// An opened, then loaded object. Dropping it unloads everything of it.
pub struct Object {
    raw: NonNull<sys::bpf_object>,
    _image: Vec<u8>,
}

// SAFETY: a libbpf object is not tied to the thread that opened it; it is only used through &mut or fixed descriptors.
unsafe impl Send for Object {}

impl Object {
    /// Take the object with the engine apart. Its constants can be set until it is loaded.
    pub fn open() -> Result<Object> {
        Object::open_image(image()?, c"tierce")
    }

    /// Take an object apart, an ELF file.
    pub fn open_image(image: Vec<u8>, name: &CStr) -> Result<Object> {
        // SAFETY: `listen` has the type that libbpf calls.
        unsafe { sys::libbpf_set_print(Some(listen)) };
        handle_programs()?;
        // SAFETY: zeroed options with their size are libbpf's convention.
        let mut options: sys::bpf_object_open_opts = unsafe { zeroed() };
        options.sz = size_of::<sys::bpf_object_open_opts>() as _;
        options.object_name = name.as_ptr();
        // SAFETY: image is alive as long as the object.
        let raw = unsafe { sys::bpf_object__open_mem(image.as_ptr().cast(), image.len() as _, &options) };
        let raw = NonNull::new(raw)
            .ok_or_else(|| anyhow!("opening the BPF object: {}\n{}", Error::last_os_error(), said()))?;
        Ok(Object { raw, _image: image })
    }

    fn map(&self, name: &str) -> Result<*mut sys::bpf_map> {
        let text = CString::new(name)?;
        // SAFETY: the object is valid, the name is NUL-terminated.
        let map = unsafe { sys::bpf_object__find_map_by_name(self.raw.as_ptr(), text.as_ptr()) };
        ensure!(!map.is_null(), "the BPF object has no map {name}");
        Ok(map)
    }

    /// Memory of a mapped map (`arena`, `.bss`, `.rodata`): address and length.
    pub fn memory(&self, name: &str) -> Result<(*mut u8, usize)> {
        let map = self.map(name)?;
        let mut size = 0;
        // SAFETY: a valid map.
        let at = unsafe { sys::bpf_map__initial_value(map, &mut size) };
        ensure!(!at.is_null(), "map {name} is not memory");
        Ok((at.cast(), size as usize))
    }

    /// Where the variable `name` of the section `.rodata` or `.bss` is in its map's memory, by the object's own BTF.
    fn variable(&self, section: &str, name: &str) -> Result<(usize, usize)> {
        let text = CString::new(section)?;
        // SAFETY: the object, its BTF and the types reached from it are valid while it is open.
        unsafe {
            let btf = sys::bpf_object__btf(self.raw.as_ptr());
            let id = sys::btf__find_by_name_kind(btf, text.as_ptr(), sys::BTF_KIND_DATASEC);
            ensure!(id > 0, "the BPF object has no section {section}");
            let kind = sys::btf__type_by_id(btf, id as u32);
            let count = (*kind).info & 0xffff;
            let entries = kind.add(1).cast::<sys::btf_var_secinfo>();
            for i in 0..count as usize {
                let entry = *entries.add(i);
                let variable = sys::btf__type_by_id(btf, entry.type_);
                let found = CStr::from_ptr(sys::btf__name_by_offset(btf, (*variable).name_off));
                if found.to_bytes() == name.as_bytes() {
                    return Ok((entry.offset as usize, entry.size as usize));
                }
            }
        }
        bail!("section {section} has no variable {name}");
    }

    /// Set a constant (`const volatile` in .rodata) before loading.
    pub fn set_constant(&mut self, name: &str, value: &[u8]) -> Result<()> {
        let (at, length) = self.memory(".rodata")?;
        let (offset, size) = self.variable(".rodata", name)?;
        ensure!(size == value.len() && offset + size <= length, "constant {name} has {size} bytes");
        // SAFETY: inside the section's memory.
        unsafe { std::ptr::copy_nonoverlapping(value.as_ptr(), at.add(offset), size) };
        Ok(())
    }

    /// A constant's value.
    pub fn constant<T: Copy>(&self, name: &str) -> Result<T> {
        let (at, length) = self.memory(".rodata")?;
        let (offset, size) = self.variable(".rodata", name)?;
        ensure!(size == size_of::<T>() && offset + size <= length, "constant {name} has {size} bytes");
        // SAFETY: inside the section's memory; T is plain data of the same size.
        Ok(unsafe { at.add(offset).cast::<T>().read_unaligned() })
    }

    /// Where a variable of the loaded arena is. libbpf puts the arena's data at its begin or, on kernels that can address
    /// it there, at its end, and does not say which; the variable `arena_mark` does.
    pub fn arena_variable(&self, name: &str) -> Result<*const u8> {
        const MARK: u64 = 0x54_4945_5243_4521;
        let (at, length) = self.memory("arena")?;
        // SAFETY: a valid map.
        let pages = unsafe { sys::bpf_map__max_entries(self.map("arena")?) } as usize;
        // SAFETY: no arguments that could be wrong.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let end = (pages * page).saturating_sub(length.next_multiple_of(page));
        let (mark, _) = self.variable(".addr_space.1", "arena_mark")?;
        let (offset, size) = self.variable(".addr_space.1", name)?;
        ensure!(offset + size <= length && mark + 8 <= length, "variable {name} lies outside the arena");
        for begin in [end, 0] {
            // SAFETY: the whole arena is mapped; both places lie inside.
            unsafe {
                if at.add(begin + mark).cast::<u64>().read_unaligned() == MARK {
                    return Ok(at.add(begin + offset));
                }
            }
        }
        bail!("the arena's data is not where libbpf puts it");
    }

    /// The number of elements of an array, before loading.
    pub fn set_array_length(&mut self, name: &str, elements: u32) -> Result<()> {
        // SAFETY: a valid map that is not loaded yet.
        let code = unsafe { sys::bpf_map__set_max_entries(self.map(name)?, elements) };
        ensure!(code == 0, "array {name}: {}", Error::from_raw_os_error(-code));
        Ok(())
    }

    /// The size of a ring buffer, before loading.
    pub fn set_ring_size(&mut self, name: &str, bytes: u32) -> Result<()> {
        ensure!(
            bytes.is_power_of_two() && bytes >= 4096,
            "a ring of {bytes} bytes: a power of two, at least 4096"
        );
        // SAFETY: a valid map that is not loaded yet.
        let code = unsafe { sys::bpf_map__set_max_entries(self.map(name)?, bytes) };
        ensure!(code == 0, "ring {name}: {}", Error::from_raw_os_error(-code));
        Ok(())
    }

    /// timeout_ms of the operations, before loading.
    pub fn set_watchdog(&mut self, name: &str, milliseconds: u32) -> Result<()> {
        let map = self.map(name)?;
        // SAFETY: the object's BTF is valid; a struct's members follow its type; the initial value is the struct.
        unsafe {
            let btf = sys::bpf_object__btf(self.raw.as_ptr());
            let id = sys::btf__find_by_name_kind(btf, c"sched_ext_ops".as_ptr(), sys::BTF_KIND_STRUCT);
            ensure!(id > 0, "the BPF object has no operations");
            let kind = sys::btf__type_by_id(btf, id as u32);
            let members = kind.add(1).cast::<sys::btf_member>();
            let mut size = 0;
            let at = sys::bpf_map__initial_value(map, &mut size).cast::<u8>();
            ensure!(!at.is_null(), "map {name} is not memory");
            for i in 0..((*kind).info & 0xffff) as usize {
                let member = *members.add(i);
                let found = CStr::from_ptr(sys::btf__name_by_offset(btf, member.name_off));
                if found == c"timeout_ms" {
                    let offset = member.offset as usize / 8;
                    ensure!(offset + 4 <= size as usize, "timeout_ms lies outside the operations");
                    at.add(offset).cast::<u32>().write_unaligned(milliseconds);
                    return Ok(());
                }
            }
        }
        bail!("the operations have no timeout_ms");
    }

    /// A variable of .bss once loaded; the kernel side changes it meanwhile.
    pub fn variable_address(&self, name: &str) -> Result<(*mut u8, usize)> {
        let (at, length) = self.memory(".bss")?;
        let (offset, size) = self.variable(".bss", name)?;
        ensure!(offset + size <= length, "variable {name} lies outside its section");
        // SAFETY: inside the section's memory.
        Ok((unsafe { at.add(offset) }, size))
    }

    /// Leave a program out.
    pub fn omit(&mut self, name: &str) -> Result<()> {
        let text = CString::new(name)?;
        // SAFETY: valid object and name; libbpf refuses a null program.
        let code = unsafe {
            let program = sys::bpf_object__find_program_by_name(self.raw.as_ptr(), text.as_ptr());
            ensure!(!program.is_null(), "the BPF object has no program {name}");
            sys::bpf_program__set_autoload(program, false)
        };
        ensure!(code == 0, "leaving out program {name}: {}", Error::from_raw_os_error(-code));
        Ok(())
    }

    /// Let the kernel verify and load it; if `pruned`, without what its constants make unreachable. `tell` hears the name of
    /// each program that is about to be verified.
    pub fn load(&mut self, pruned: bool, tell: &mut dyn FnMut(&str)) -> Result<()> {
        said();
        let constants = if pruned { self.map(".rodata")? } else { std::ptr::null_mut() };
        // SAFETY: an open object; what it is loaded with lives until it is.
        let code = unsafe {
            let types = sys::btf__load_vmlinux_btf();
            ensure!(!types.is_null(), "the kernel's types: {}", Error::last_os_error());
            let mut loading = Loading { constants, types, pruned, tell };
            LOADING.set((&raw mut loading).cast());
            let code = sys::bpf_object__load(self.raw.as_ptr());
            LOADING.set(std::ptr::null_mut());
            sys::btf__free(types);
            code
        };
        if code != 0 {
            bail!(Refused { why: Error::from_raw_os_error(-code), said: said() });
        }
        Ok(())
    }

    /// Name and verified instructions of every program.
    pub fn programs(&self) -> Vec<(String, u32)> {
        let mut list = Vec::new();
        let mut program = std::ptr::null_mut();
        loop {
            // SAFETY: iteration over the programs of a valid object.
            unsafe {
                program = sys::bpf_object__next_program(self.raw.as_ptr(), program);
                if program.is_null() {
                    return list;
                }
                let name = CStr::from_ptr(sys::bpf_program__name(program)).to_string_lossy().into_owned();
                let mut info: sys::bpf_prog_info = zeroed();
                let mut length = size_of::<sys::bpf_prog_info>() as u32;
                let descriptor = sys::bpf_program__fd(program);
                if descriptor >= 0 && sys::bpf_prog_get_info_by_fd(descriptor, &mut info, &mut length) == 0 {
                    list.push((name, info.verified_insns));
                }
            }
        }
    }

    /// How often the kernel did not run a loaded program, because it was running already on that CPU: a thread that was preempted
    /// in it still is.
    pub fn skipped(program: c_int) -> u64 {
        // SAFETY: the structure is as long as is said; plain data, for which zeros are valid.
        unsafe {
            let mut info: sys::bpf_prog_info = zeroed();
            let mut length = size_of::<sys::bpf_prog_info>() as u32;
            match sys::bpf_prog_get_info_by_fd(program, &mut info, &mut length) {
                0 => info.recursion_misses,
                _ => 0,
            }
        }
    }

    /// The descriptor of a loaded program.
    pub fn program(&self, name: &str) -> Result<c_int> {
        let text = CString::new(name)?;
        // SAFETY: valid object and name; the descriptor of a null program is negative.
        let descriptor = unsafe {
            sys::bpf_program__fd(sys::bpf_object__find_program_by_name(self.raw.as_ptr(), text.as_ptr()))
        };
        ensure!(descriptor >= 0, "the BPF object has no program {name}");
        Ok(descriptor)
    }

    /// Attach the program `name` where its section says.
    pub fn attach(&mut self, name: &str) -> Result<Link> {
        let text = CString::new(name)?;
        // SAFETY: valid object and name.
        let link = unsafe {
            let program = sys::bpf_object__find_program_by_name(self.raw.as_ptr(), text.as_ptr());
            ensure!(!program.is_null(), "the BPF object has no program {name}");
            sys::bpf_program__attach(program)
        };
        Link::new(link, name)
    }

    /// Attach the program `name` to a tracepoint; `None`: this kernel has no such one.
    pub fn attach_raw(&mut self, name: &str, tracepoint: &str) -> Option<Link> {
        let (text, tracepoint) = (CString::new(name).ok()?, CString::new(tracepoint).ok()?);
        // SAFETY: valid object and names.
        let link = unsafe {
            let program = sys::bpf_object__find_program_by_name(self.raw.as_ptr(), text.as_ptr());
            match program.is_null() {
                true => return None,
                false => sys::bpf_program__attach_raw_tracepoint(program, tracepoint.as_ptr()),
            }
        };
        Link::new(link, name).ok()
    }

    /// Attach the operations in the map `name`: from here on the kernel calls them.
    pub fn attach_operations(&mut self, name: &str) -> Result<Link> {
        static AT_FORK: Once = Once::new();
        let map = self.map(name)?;
        // SAFETY: a valid map of a loaded object; a handler that does only what a forked child may; a valid link.
        unsafe {
            let link = Link::new(sys::bpf_map__attach_struct_ops(map), name)?;
            AT_FORK.call_once(|| _ = libc::pthread_atfork(None, None, Some(forked)));
            OPERATIONS.store(sys::bpf_link__fd(link.0.as_ptr()), Ordering::Relaxed);
            Ok(link)
        }
    }

    /// While other operations are attached: all that attaching takes but to take their place. What is wrong with these shows.
    pub fn prepare_operations(&mut self, name: &str) -> Result<()> {
        let map = self.map(name)?;
        // SAFETY: a valid map of a loaded object.
        let link = unsafe { sys::bpf_map__attach_struct_ops(map) };
        if link.is_null() && Error::last_os_error().raw_os_error() == Some(libc::EBUSY) {
            return Ok(());
        }
        drop(Link::new(link, name)?);
        bail!("the scheduler whose place it was to take has ended");
    }

    /// Read the ring buffer `name`.
    pub fn ring(&self, name: &str, take: Take) -> Result<Ring> {
        // SAFETY: a valid map.
        let map = unsafe { sys::bpf_map__fd(self.map(name)?) };
        Ring::new(map, take).with_context(|| format!("ring buffer {name}"))
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: opened once, closed once.
        unsafe { sys::bpf_object__close(self.raw.as_ptr()) };
    }
}

/// What an object is loaded with.
struct Loading<'a> {
    /// Of one that is pruned.
    constants: *mut sys::bpf_map,
    /// The kernel's.
    types: *mut sys::btf,
    pruned: bool,
    tell: &'a mut dyn FnMut(&str),
}

thread_local! {
    /// The `Loading` that this thread is in.
    static LOADING: Cell<*mut c_void> = const { Cell::new(std::ptr::null_mut()) };
    /// Records of functions and lines of the program that is being loaded: libbpf passes them on after `prepare`.
    static RECORDS: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// What libbpf does with a program by its section is ours to do, once it asks us: bits of a handler's cookie.
const SLEEPS: c_long = 1;
const AT_TRACEPOINT: c_long = 2;

/// Have libbpf call `prepare` for the programs that have the engine inside.
fn handle_programs() -> Result<()> {
    static ONCE: Once = Once::new();
    let mut code = 0;
    ONCE.call_once(|| {
        for (section, kind, attach, cookie) in [
            (c"struct_ops+", sys::BPF_PROG_TYPE_STRUCT_OPS, 0, 0),
            (c"struct_ops.s+", sys::BPF_PROG_TYPE_STRUCT_OPS, 0, SLEEPS),
            (c"syscall", sys::BPF_PROG_TYPE_SYSCALL, 0, SLEEPS),
            (c"tp_btf+", sys::BPF_PROG_TYPE_TRACING, sys::BPF_TRACE_RAW_TP, AT_TRACEPOINT),
        ] {
            let options = sys::libbpf_prog_handler_opts {
                sz: size_of::<sys::libbpf_prog_handler_opts>() as _,
                cookie,
                prog_setup_fn: None,
                prog_prepare_load_fn: Some(prepare),
                prog_attach_fn: if cookie & AT_TRACEPOINT != 0 { Some(attach_trace) } else { None },
            };
            // SAFETY: a NUL-terminated name, options with their size, functions of the types that libbpf calls.
            code = code
                .min(unsafe { sys::libbpf_register_prog_handler(section.as_ptr(), kind, attach, &options) });
        }
    });
    ensure!(code >= 0, "libbpf takes no handlers: {}", Error::from_raw_os_error(-code));
    Ok(())
}

unsafe extern "C" fn attach_trace(
    program: *const sys::bpf_program,
    _: c_long,
    link: *mut *mut sys::bpf_link,
) -> c_int {
    // SAFETY: libbpf passes a loaded program and a place for its link.
    unsafe {
        *link = sys::bpf_program__attach_trace(program);
        if (*link).is_null() {
            -Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL)
        } else {
            0
        }
    }
}

/// Records that begin with the number of an instruction, `size` bytes each.
///
/// # Safety
/// There are `count` of them at `at`.
unsafe fn records(at: *const c_void, size: u32, count: u32) -> Vec<(u32, Vec<u8>)> {
    if at.is_null() || size < 4 {
        return Vec::new();
    }
    // SAFETY: as the caller says.
    let bytes = unsafe { std::slice::from_raw_parts(at.cast::<u8>(), (size * count) as usize) };
    let split = |record: &[u8]| (u32::from_ne_bytes(record[..4].try_into().unwrap()), record[4..].to_vec());
    bytes.chunks(size as usize).map(split).collect()
}

fn bytes(records: &[(u32, Vec<u8>)]) -> Vec<u8> {
    records.iter().flat_map(|(at, rest)| at.to_ne_bytes().into_iter().chain(rest.iter().copied())).collect()
}

/// A program is about to be loaded: everything is in its place, and constants have their values.
unsafe extern "C" fn prepare(
    program: *mut sys::bpf_program,
    options: *mut sys::bpf_prog_load_opts,
    cookie: c_long,
) -> c_int {
    // SAFETY: libbpf passes a program of the object that `LOADING` belongs to, and the options that it is loaded with.
    unsafe {
        let options = &mut *options;
        let Some(Loading { constants: map, types, pruned, tell }) = LOADING.get().cast::<Loading>().as_mut()
        else {
            return -libc::EINVAL;
        };
        let (map, types) = (*map, *types);
        tell(&CStr::from_ptr(sys::bpf_program__name(program)).to_string_lossy());
        if cookie & SLEEPS != 0 {
            options.prog_flags |= sys::BPF_F_SLEEPABLE;
        }
        if cookie & AT_TRACEPOINT != 0 {
            let section = CStr::from_ptr(sys::bpf_program__section_name(program)).to_string_lossy();
            let Ok(name) = CString::new(section.replace("tp_btf/", "btf_trace_")) else {
                return -libc::EINVAL;
            };
            let id = sys::btf__find_by_name_kind(types, name.as_ptr(), sys::BTF_KIND_TYPEDEF);
            if id < 0 {
                return id;
            }
            options.attach_btf_id = id as u32;
        }
        if *pruned {
            replace_by_pruned(program, options, map)
        } else {
            0
        }
    }
}

/// # Safety
/// They are of one object that libbpf is about to load.
unsafe fn replace_by_pruned(
    program: *mut sys::bpf_program,
    options: &mut sys::bpf_prog_load_opts,
    constants: *mut sys::bpf_map,
) -> c_int {
    // SAFETY: as the caller says; an instruction of ours has the layout of libbpf's.
    unsafe {
        let mut size = 0;
        let data = sys::bpf_map__initial_value(constants, &mut size);
        if data.is_null() {
            return -libc::EINVAL;
        }
        let data = std::slice::from_raw_parts(data.cast::<u8>(), size as usize);
        let insns = std::slice::from_raw_parts(
            sys::bpf_program__insns(program).cast::<Insn>(),
            sys::bpf_program__insn_cnt(program) as usize,
        );
        let whole = Program {
            insns: insns.to_vec(),
            functions: records(options.func_info, options.func_info_rec_size, options.func_info_cnt),
            lines: records(options.line_info, options.line_info_rec_size, options.line_info_cnt),
        };
        let mut pruned = prune(&whole, &Constants { map: sys::bpf_map__fd(constants), data });
        RECORDS.with_borrow_mut(|[functions, lines]| {
            (*functions, *lines) = (bytes(&pruned.functions), bytes(&pruned.lines));
            if !options.func_info.is_null() {
                options.func_info = functions.as_ptr().cast();
                options.func_info_cnt = pruned.functions.len() as u32;
            }
            if !options.line_info.is_null() {
                options.line_info = lines.as_ptr().cast();
                options.line_info_cnt = pruned.lines.len() as u32;
            }
        });
        sys::bpf_program__set_insns(program, pruned.insns.as_mut_ptr().cast(), pruned.insns.len() as _)
    }
}

/// Run the syscall program behind `descriptor` on `context`, which it may change; what it returns.
pub fn call<T>(descriptor: c_int, context: &mut T) -> Result<u32> {
    // SAFETY: zeroed options with their size are libbpf's convention; context has the length that is passed.
    unsafe {
        let mut options: sys::bpf_test_run_opts = zeroed();
        options.sz = size_of::<sys::bpf_test_run_opts>() as _;
        options.ctx_in = (context as *mut T).cast::<c_void>();
        options.ctx_size_in = size_of::<T>() as u32;
        let code = sys::bpf_prog_test_run_opts(descriptor, &mut options);
        ensure!(code == 0, "calling the kernel side: {}", Error::from_raw_os_error(-code));
        Ok(options.retval)
    }
}

/// The descriptor of the operations' link, -1: none. A child that is forked, and not another program, has a copy of it, which
/// would keep the plan in force after us.
static OPERATIONS: AtomicI32 = AtomicI32::new(-1);

/// Such a child loses it. Its number stays taken, so that nothing else is closed by it.
extern "C" fn forked() {
    let link = OPERATIONS.load(Ordering::Relaxed);
    if link < 0 {
        return;
    }
    // SAFETY: system calls that a forked child may make.
    unsafe {
        let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if libc::dup3(nothing, link, libc::O_CLOEXEC) < 0 {
            libc::close(link);
        }
        libc::close(nothing);
    }
}

/// Something attached; dropping it detaches.
pub struct Link(NonNull<sys::bpf_link>);

// SAFETY: a libbpf link is not tied to a thread.
unsafe impl Send for Link {}

impl Link {
    fn new(raw: *mut sys::bpf_link, what: &str) -> Result<Link> {
        let error = Error::last_os_error();
        NonNull::new(raw).map(Link).ok_or_else(|| anyhow!("attaching {what}: {error}\n{}", said()))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // SAFETY: attached once, destroyed once.
        unsafe {
            let descriptor = sys::bpf_link__fd(self.0.as_ptr());
            let _ = OPERATIONS.compare_exchange(descriptor, -1, Ordering::Relaxed, Ordering::Relaxed);
            sys::bpf_link__destroy(self.0.as_ptr());
        }
    }
}
