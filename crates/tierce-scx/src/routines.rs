//! Start routines: the function with which each thread of a process began. Threads of one name can be told apart by it.
//!
//! glibc writes the start routine into its descriptor of the thread, and says in symbols for debuggers (`_thread_db_...`) where in it. The
//! descriptor also has the head of the thread's list of robust mutexes, whose address the kernel knows. So nothing is searched for, the thread
//! is not stopped, and whether it runs or sleeps does not matter. With another C library, or if the program is linked statically, the
//! routine is not known.
//!
//! What is read was written by the program. It decides nothing but which routine its own thread is taken for. All sizes are bounded, and
//! memory is read only where no file is mapped, since a file system could let the reader wait.

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of the list of a process's mappings that are read.
const MAPS_MAX: u64 = 16 << 20;
/// Largest C library.
const LIBRARY_MAX: u64 = 64 << 20;
/// Largest file in which the name of a function is looked for.
const FILE_MAX: u64 = 256 << 20;
/// C libraries that are remembered.
const LIBRARIES_MAX: usize = 64;
/// A descriptor is smaller than that.
const DESCRIPTOR_MAX: u64 = 1 << 16;
/// In the descriptor, the list of robust mutexes comes after the thread's number: two numbers of 32 bits and a pointer.
const LIST_AFTER_TID: u64 = 16;

/// Where a thread began.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Routine {
    /// It is the first thread of its process.
    Main,
    /// A place in a file of code, wherever that is mapped.
    At {
        /// The executable or a library.
        file: PathBuf,
        /// Bytes from the begin of the file.
        offset: u64,
    },
}

impl fmt::Display for Routine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Routine::Main => f.write_str("main"),
            Routine::At { file, offset } => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                write!(f, "{}+{offset:#x}", name.replace(char::is_control, "?"))
            }
        }
    }
}

impl Routine {
    /// The name of the function, if the file's symbols say it.
    pub fn function(&self) -> Option<String> {
        let Routine::At { file, offset } = self else { return None };
        let text = contents(file, FILE_MAX)?;
        let elf = object::File::parse(&*text).ok()?;
        let address = elf.segments().find_map(|segment| {
            let (begin, size) = segment.file_range();
            let within = offset.checked_sub(begin).filter(|within| *within < size)?;
            segment.address().checked_add(within)
        })?;
        let begins = |symbol: &object::Symbol| {
            symbol.kind() == SymbolKind::Text && symbol.is_definition() && symbol.address() == address
        };
        let names = elf.symbols().chain(elf.dynamic_symbols()).filter(begins);
        let mut plain = names.filter_map(|symbol| symbol.name().ok().filter(|name| is_plain(name)));
        plain.next().map(String::from)
    }
}

fn is_plain(name: &str) -> bool {
    (1..=256).contains(&name.len()) && name.chars().all(|c| c.is_ascii_graphic())
}

/// Looks for start routines, and remembers where C libraries keep them.
#[derive(Default)]
pub struct Routines {
    libraries: HashMap<[i64; 5], Option<Layout>>,
}

impl Routines {
    /// Those of some threads of a process. Nothing: it is not known (yet: a thread that has only just begun has no list of robust mutexes).
    /// `may_read` says of a path whether the C library that the process has from there may be read.
    pub fn of(&mut self, pid: u32, tids: &[u32], may_read: impl Fn(&Path) -> bool) -> Vec<Option<Routine>> {
        let is_main = |tid: &u32| *tid == pid;
        let process = if tids.iter().all(is_main) { None } else { self.process(pid, may_read) };
        let routine = |tid: &u32| match is_main(tid) {
            true => Some(Routine::Main),
            false => process.as_ref().and_then(|process| process.routine(*tid)),
        };
        tids.iter().map(routine).collect()
    }

    fn process(&mut self, pid: u32, may_read: impl Fn(&Path) -> bool) -> Option<Process> {
        let maps = File::open(format!("/proc/{pid}/maps")).ok()?;
        let mappings = mappings(BufReader::new(maps.take(MAPS_MAX)));
        let is_libc = |mapping: &&Mapping| mapping.path.file_name().is_some_and(|name| name == "libc.so.6");
        let libc = mappings.iter().find(is_libc).filter(|libc| may_read(&libc.path))?;
        let layout = self.layout(libc)?;
        let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
        Some(Process { pid, memory, mappings, layout })
    }

    fn layout(&mut self, library: &Mapping) -> Option<Layout> {
        let about = fs::metadata(&library.path).ok()?;
        if about.ino() != library.inode {
            return None; // an update has replaced it, or the process has another root
        }
        let stamp =
            [about.dev() as i64, about.ino() as i64, about.size() as i64, about.ctime(), about.ctime_nsec()];
        if self.libraries.len() >= LIBRARIES_MAX && !self.libraries.contains_key(&stamp) {
            self.libraries.clear();
        }
        *self.libraries.entry(stamp).or_insert_with(|| Layout::of(&contents(&library.path, LIBRARY_MAX)?))
    }
}

/// Where a C library's descriptor of a thread has what, in bytes from its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    tid: u64,
    start_routine: u64,
}

impl Layout {
    fn of(library: &[u8]) -> Option<Layout> {
        let elf = object::File::parse(library).ok()?;
        if !elf.is_64() || !elf.is_little_endian() {
            return None;
        }
        // Three numbers for debuggers: bits of the member, how many there are, and the offset.
        let offset = |member: &str, bits: u32| {
            let name = format!("_thread_db_pthread_{member}");
            let symbol = elf.dynamic_symbols().find(|symbol| symbol.name() == Ok(&name))?;
            let data = elf.segments().find_map(|it| it.data_range(symbol.address(), 12).ok().flatten())?;
            let [is, count, offset] = [0, 4, 8].map(|at| number(data, at));
            (is? == bits && count? == 1).then_some(u64::from(offset?)).filter(|it| *it < DESCRIPTOR_MAX)
        };
        Some(Layout { tid: offset("tid", 32)?, start_routine: offset("start_routine", 64)? })
    }
}

fn number(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at + 4)?.try_into().ok()?))
}

/// A process that is looked at.
struct Process {
    pid: u32,
    memory: File,
    mappings: Vec<Mapping>,
    layout: Layout,
}

impl Process {
    fn routine(&self, tid: u32) -> Option<Routine> {
        let list = robust_list(tid)?;
        let tid_at = list.checked_sub(LIST_AFTER_TID)?;
        let routine_at = tid_at.checked_sub(self.layout.tid)?.checked_add(self.layout.start_routine)?;
        // The program may have put its list elsewhere.
        if self.read(tid_at).map(u32::from_le_bytes) != own_number(self.pid, tid) {
            return None;
        }
        let address = u64::from_le_bytes(self.read(routine_at)?);
        let code = self.mapping(address)?;
        let is_code = code.is_executable && code.inode != 0 && code.path.is_absolute();
        let offset = (address - code.start).checked_add(code.offset)?;
        (is_code && !code.path.as_os_str().as_encoded_bytes().ends_with(b" (deleted)"))
            .then(|| Routine::At { file: code.path.clone(), offset })
    }

    fn mapping(&self, address: u64) -> Option<&Mapping> {
        self.mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&address))
    }

    /// Memory of the process's own.
    fn read<const SIZE: usize>(&self, address: u64) -> Option<[u8; SIZE]> {
        let mapping = self.mapping(address).filter(|mapping| mapping.inode == 0)?;
        let mut bytes = [0; SIZE];
        let is_within = address.checked_add(SIZE as u64)? <= mapping.end;
        (is_within && self.memory.read_exact_at(&mut bytes, address).is_ok()).then_some(bytes)
    }
}

/// The head of a thread's list of robust mutexes; each thread of glibc's has one in its descriptor.
fn robust_list(tid: u32) -> Option<u64> {
    let (mut head, mut size) = (0_u64, 0_usize);
    let number = libc::c_long::from(i32::try_from(tid).ok()?);
    // SAFETY: the kernel writes an address and a size.
    let done = unsafe { libc::syscall(libc::SYS_get_robust_list, number, &raw mut head, &raw mut size) };
    (done == 0 && head != 0).then_some(head)
}

/// The number that a thread has for itself: in a container it is another one.
fn own_number(pid: u32, tid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_whitespace().last()?.parse().ok()
}

/// A part of a process's memory.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    is_executable: bool,
    /// Of the file, where the part begins.
    offset: u64,
    /// 0: of no file.
    inode: u64,
    path: PathBuf,
}

fn mappings(maps: impl BufRead) -> Vec<Mapping> {
    maps.split(b'\n').map_while(Result::ok).filter_map(|line| mapping(&line)).collect()
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let flags = fields.next()?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let offset = hexadecimal(fields.next()?)?;
    let inode = fields.nth(1)?.parse().ok()?;
    let path = PathBuf::from(fields.next().unwrap_or_default().trim_start());
    let is_executable = flags.contains('x');
    Some(Mapping { start: hexadecimal(start)?, end: hexadecimal(end)?, is_executable, offset, inode, path })
}

/// What is in a regular file that is no larger than that.
fn contents(path: &Path, most: u64) -> Option<Vec<u8>> {
    let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).ok()?;
    let about = file.metadata().ok().filter(|about| about.is_file() && about.len() <= most)?;
    let mut bytes = Vec::with_capacity(about.len() as usize);
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
