//! Start routines: the function with which each thread of a process began. Threads of one name can be told apart by it.
//!
//! glibc writes the start routine into its descriptor of the thread, and says in symbols for debuggers (`_thread_db_...`) where in it. The
//! descriptor also has the head of the thread's list of robust mutexes, whose address the kernel knows. So nothing is searched for, the thread
//! is not stopped, and whether it runs or sleeps does not matter. With another C library, or if the program is linked statically, the
//! routine is not known.
//!
//! What is read was written by the program. It decides nothing but which routine its own thread is taken for. All sizes are bounded. A
//! program can let those wait who read its memory (a file of a slow file system, `userfaultfd`). So no memory is read to which a file is
//! mapped; another thread reads, for which nobody waits for long; and a person whose program was slow has to wait for the next look, so that
//! one person takes a tenth of the time at most.

use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{mpsc, Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Bytes of the list of a process's mappings that are read.
const MAPS_MAX: u64 = 16 << 20;
/// Largest C library.
const LIBRARY_MAX: u64 = 64 << 20;
/// Largest file in which the name of a function is looked for.
const FILE_MAX: u64 = 256 << 20;
/// C libraries that are remembered.
const LIBRARIES_MAX: usize = 64;
/// Reading a process takes no longer, or it is not waited for.
const WAIT: Duration = Duration::from_secs(1);
/// Whose program takes longer to read, waits for that many times as long.
const SLOW: Duration = Duration::from_millis(100);
const WAITS_TIMES: u32 = 10;
/// Threads that read and do not come back, of different persons.
const READING_MAX: usize = 16;
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
    libraries: Libraries,
    /// Persons whose programs were slow: the thread that reads them, and until when the person waits.
    slow: HashMap<u32, (JoinHandle<()>, Instant)>,
}

impl Routines {
    /// Those of some threads of a process. Nothing: it is not known (yet: a thread that has only just begun has no list of robust mutexes).
    /// `person`: whose process it is. `may_read` says of a path whether the C library that the process has from there may be read.
    pub fn of(
        &mut self,
        person: u32,
        pid: u32,
        tids: &[u32],
        may_read: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Vec<Option<Routine>> {
        let others: Vec<u32> = tids.iter().copied().filter(|tid| *tid != pid).collect();
        let found = if others.is_empty() { None } else { self.read(person, pid, others, may_read) }
            .unwrap_or_default();
        let routine = |tid: &u32| if *tid == pid { Some(Routine::Main) } else { found.get(tid).cloned() };
        tids.iter().map(routine).collect()
    }

    fn read(
        &mut self,
        person: u32,
        pid: u32,
        tids: Vec<u32>,
        may_read: impl Fn(&Path) -> bool + Send + 'static,
    ) -> Option<BTreeMap<u32, Routine>> {
        let begun = Instant::now();
        self.slow.retain(|_, (thread, until)| !thread.is_finished() || begun < *until);
        let reading = self.slow.values().filter(|(thread, _)| !thread.is_finished()).count();
        if reading >= READING_MAX || self.slow.contains_key(&person) {
            return None;
        }
        let (libraries, (say, heard)) = (self.libraries.clone(), mpsc::channel());
        let read = move || {
            let process = Process::look(pid, &libraries, may_read);
            let routine = |tid| Some((tid, process.as_ref()?.routine(tid)?));
            let _ = say.send(tids.into_iter().filter_map(routine).collect()); // nobody may wait any more
        };
        let thread = Builder::new().name("start-routines".into()).spawn(read).ok()?;
        let found = heard.recv_timeout(WAIT).ok();
        let (took, now) = (begun.elapsed(), Instant::now());
        if took > SLOW {
            self.slow.insert(person, (thread, now + took * WAITS_TIMES));
        }
        found
    }
}

/// C libraries that were read.
#[derive(Clone, Default)]
struct Libraries(Arc<Mutex<HashMap<[i64; 5], Option<Layout>>>>);

impl Libraries {
    fn layout(&self, library: &Mapping) -> Option<Layout> {
        let about = fs::metadata(&library.path).ok()?;
        if about.ino() != library.inode {
            return None; // an update has replaced it, or the process has another root
        }
        let [device, inode] = [about.dev(), about.ino()].map(|number| number as i64);
        let stamp = [device, inode, about.size() as i64, about.ctime(), about.ctime_nsec()];
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layout) = known().get(&stamp) {
            return *layout;
        }
        let layout = contents(&library.path, LIBRARY_MAX).and_then(|text| Layout::of(&text));
        let mut known = known();
        if known.len() >= LIBRARIES_MAX {
            known.clear();
        }
        known.insert(stamp, layout);
        layout
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
    mappings: Vec<Mapping>,
    layout: Layout,
}

impl Process {
    fn look(pid: u32, libraries: &Libraries, may_read: impl Fn(&Path) -> bool) -> Option<Process> {
        let maps = File::open(format!("/proc/{pid}/maps")).ok()?;
        let mappings = mappings(BufReader::new(maps.take(MAPS_MAX)));
        let is_libc = |mapping: &&Mapping| mapping.path.file_name().is_some_and(|name| name == "libc.so.6");
        let libc = mappings.iter().find(is_libc).filter(|libc| may_read(&libc.path))?;
        let layout = libraries.layout(libc)?;
        Some(Process { pid, mappings, layout })
    }

    fn routine(&self, tid: u32) -> Option<Routine> {
        let list = robust_list(tid)?;
        let tid_at = list.checked_sub(LIST_AFTER_TID)?;
        let routine_at = tid_at.checked_sub(self.layout.tid)?.checked_add(self.layout.start_routine)?;
        // The program may have put its list elsewhere.
        if u32::from_le_bytes(self.read(tid_at)?) != own_number(self.pid, tid)? {
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
        if address.checked_add(SIZE as u64)? > mapping.end {
            return None;
        }
        let mut bytes = [0_u8; SIZE];
        let own = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: SIZE };
        let its = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: SIZE };
        // SAFETY: the kernel writes no more than SIZE bytes to `bytes`; the other address is one of the other process.
        let count =
            unsafe { libc::process_vm_readv(self.pid as i32, &raw const own, 1, &raw const its, 1, 0) };
        (count == SIZE as isize).then_some(bytes)
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
    status(pid, tid, "NSpid:")?.split_whitespace().last()?.parse().ok()
}

/// What /proc says of a thread after this word.
fn status(pid: u32, tid: u32, word: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix(word)).map(String::from)
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
