//! Checksums of executables, for plans that match by these.
//!
//! One is wanted of few threads: of those that fit by all other keys of a match. Files are read by a thread of its own, one after the
//! other, so the loader never waits for one; and each is read once, as long as it stays as it was. A thread whose checksum is not known
//! yet fits no match that has one, and is looked at again when it is.
//!
//! Example: `/opt/audio` is started a hundred times. It is read once; until then all its threads are in the default node.

use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use tierce_plan::Checksum;

/// Longer files have no checksum: any user may start a program of any length.
pub const FILE_MAX: u64 = 1 << 30;
/// Files that are known.
const KNOWN_MAX: usize = 4096;
/// Threads that wait for a file to be read. Where there are more, all threads are looked at.
const WAITING_MAX: usize = 1 << 14;

/// Which file it is, and when it was changed: device, inode, size, times of contents and of the file.
type Stamp = [i64; 7];

/// What is known of files.
#[derive(Default)]
pub struct Checksums {
    /// Nothing: it has none, because it cannot be read or is too long.
    known: HashMap<Stamp, Option<Checksum>>,
    /// Threads that wait, each for the file that it runs.
    waiting: HashMap<u32, Stamp>,
    /// Files that are to be read.
    asked: HashMap<Stamp, ()>,
    /// Not all threads that wait are known.
    forgotten: bool,
    reader: Option<Reader>,
}

/// The thread that reads files.
struct Reader {
    ask: Sender<(Stamp, u32)>,
    answers: Receiver<(Stamp, Became)>,
}

/// What came of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Became {
    Known(Option<Checksum>),
    /// The thread has ended or runs another file now.
    Another,
}

/// Who may have a checksum now.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// These threads.
    pub tids: Vec<u32>,
    /// Any thread.
    pub all: bool,
}

impl Checksums {
    /// Of what a thread runs. Nothing: there is none, or not yet.
    pub fn of(&mut self, tid: u32) -> Option<Checksum> {
        let stamp = stamp(&fs::metadata(exe(tid)).ok()?);
        if let Some(known) = self.known.get(&stamp) {
            return *known;
        }
        match self.waiting.len() < WAITING_MAX {
            true => _ = self.waiting.insert(tid, stamp),
            false => self.forgotten = true,
        }
        if self.asked.insert(stamp, ()).is_none() {
            let reader = self.reader.get_or_insert_with(Reader::begin);
            let _ = reader.ask.send((stamp, tid)); // one that has ended is noticed when it is asked
        }
        None
    }

    /// The same at once, however long that takes.
    pub fn now(&mut self, tid: u32) -> Option<Checksum> {
        let stamp = stamp(&fs::metadata(exe(tid)).ok()?);
        if let Some(known) = self.known.get(&stamp) {
            return *known;
        }
        let Became::Known(sum) = read(stamp, tid) else { return None };
        self.keep(stamp, sum);
        sum
    }

    /// Whose files have been read since last asked.
    pub fn ready(&mut self) -> Ready {
        let mut ready = Ready::default();
        let Some(reader) = &self.reader else { return ready };
        let mut answers = Vec::new();
        let ended = loop {
            match reader.answers.try_recv() {
                Ok(answer) => answers.push(answer),
                Err(error) => break error == TryRecvError::Disconnected,
            }
        };
        if ended {
            // It could not begin, or something is very wrong: these files have none.
            answers.extend(self.asked.keys().map(|stamp| (*stamp, Became::Known(None))));
            self.reader = None;
        }
        for (stamp, became) in answers {
            self.asked.remove(&stamp);
            if let Became::Known(sum) = became {
                self.keep(stamp, sum);
            }
            ready.tids.extend(self.waiting.iter().filter(|(_, of)| **of == stamp).map(|(tid, _)| *tid));
            self.waiting.retain(|_, of| *of != stamp);
            ready.all |= std::mem::take(&mut self.forgotten);
        }
        ready.tids.sort_unstable();
        ready
    }

    fn keep(&mut self, stamp: Stamp, sum: Option<Checksum>) {
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        self.known.insert(stamp, sum);
    }
}

impl Reader {
    fn begin() -> Reader {
        let (ask, asked) = channel::<(Stamp, u32)>();
        let (answer, answers) = channel();
        let work = move || {
            for (stamp, tid) in asked {
                if answer.send((stamp, read(stamp, tid))).is_err() {
                    return; // the run has ended
                }
            }
        };
        // If it cannot begin, nobody answers.
        let _ = std::thread::Builder::new().name("tierce-checksum".into()).spawn(work);
        Reader { ask, answers }
    }
}

/// The file that a thread runs, whatever its path leads to.
fn exe(tid: u32) -> PathBuf {
    format!("/proc/{tid}/task/{tid}/exe").into()
}

fn stamp(about: &Metadata) -> Stamp {
    let times = [about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec()];
    let [written, written_ns, changed, changed_ns] = times;
    let (dev, ino, size) = (about.dev() as i64, about.ino() as i64, about.size() as i64);
    [dev, ino, size, written, written_ns, changed, changed_ns]
}

/// The checksum of what a thread runs, if that is still this file.
fn read(wanted: Stamp, tid: u32) -> Became {
    match sum(wanted, tid) {
        Ok(Some(sum)) => Became::Known(Some(sum)),
        Ok(None) => Became::Another,
        Err(error) if error.kind() == ErrorKind::NotFound => Became::Another,
        Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Became::Another,
        Err(_) => Became::Known(None),
    }
}

/// Nothing: it is another file, before or after it was read.
fn sum(wanted: Stamp, tid: u32) -> io::Result<Option<Checksum>> {
    let mut file = File::open(exe(tid))?;
    if stamp(&file.metadata()?) != wanted {
        return Ok(None);
    }
    if file.metadata()?.len() > FILE_MAX {
        return Err(ErrorKind::InvalidData.into());
    }
    let (mut sum, mut part, mut left) = (Sha256::new(), vec![0; 1 << 16], FILE_MAX);
    loop {
        match file.read(&mut part)? as u64 {
            0 => break,
            count if count > left => return Err(ErrorKind::InvalidData.into()),
            count => {
                sum.update(&part[..count as usize]);
                left -= count;
            }
        }
    }
    let same = stamp(&file.metadata()?) == wanted;
    Ok(same.then(|| Checksum(sum.finalize().into())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::process::{Child, Command};
    use std::time::{Duration, Instant};

    fn own() -> Checksum {
        Checksum(Sha256::digest(fs::read("/proc/self/exe").unwrap()).into())
    }

    /// What they become, in the end.
    fn wait(sums: &mut Checksums) -> Ready {
        let begun = Instant::now();
        loop {
            let ready = sums.ready();
            if ready != Ready::default() || begun.elapsed() > Duration::from_secs(60) {
                return ready;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A program that sleeps.
    fn started(path: &PathBuf) -> Child {
        Command::new(path).arg("60").spawn().unwrap()
    }

    #[test]
    fn a_file_is_read_once_and_nobody_waits_for_it() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        assert_eq!(sums.ready(), Ready::default(), "nobody has asked");
        assert_eq!((sums.of(pid), sums.of(pid)), (None, None), "it is not known yet");
        assert_eq!(wait(&mut sums), Ready { tids: vec![pid], all: false });
        assert_eq!(sums.of(pid), Some(own()));
        assert_eq!((sums.known.len(), sums.ready()), (1, Ready::default()));
        assert_eq!(Checksums::default().now(pid), Some(own()), "at once");
        assert_eq!((sums.of(u32::MAX >> 1), sums.now(u32::MAX >> 1)), (None, None), "nobody");
    }

    #[test]
    fn another_file_is_read_again() {
        let folder = std::env::temp_dir().join(format!("tierce-checksums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (path, mut sums) = (folder.join("program"), Checksums::default());
        let mut found = Vec::new();
        for more in ["", "more"] {
            let mut program = fs::read("/bin/sleep").unwrap();
            program.extend(more.as_bytes()); // it runs as well with that
            fs::write(folder.join("new"), &program).unwrap();
            fs::set_permissions(folder.join("new"), fs::Permissions::from_mode(0o755)).unwrap();
            fs::rename(folder.join("new"), &path).unwrap();
            let mut child = started(&path);
            let runs = |pid| fs::read_link(exe(pid)).is_ok_and(|is| is == path);
            while !runs(child.id()) {
                std::thread::sleep(Duration::from_millis(1));
            }
            assert_eq!(sums.of(child.id()), None);
            assert_eq!(wait(&mut sums).tids, [child.id()]);
            let sum = sums.of(child.id());
            assert_eq!(sum, Some(Checksum(Sha256::digest(&program).into())));
            found.push(sum);
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_ne!(found[0], found[1]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_becomes_of_files_that_cannot_be_read() {
        let pid = std::process::id();
        let is = stamp(&fs::metadata("/proc/self/exe").unwrap());
        let mut other = is;
        other[5] += 1;
        assert_eq!(read(other, pid), Became::Another, "it was changed meanwhile");
        assert_eq!(read(is, u32::MAX >> 1), Became::Another, "the thread has ended");
        assert_eq!(read(is, pid), Became::Known(Some(own())));
        // Nobody reads: those files have no checksum, and whoever waits is looked at again.
        let mut sums = Checksums { asked: HashMap::from([(is, ())]), ..Checksums::default() };
        sums.waiting.insert(pid, is);
        sums.reader = Some(Reader { ask: channel().0, answers: channel().1 });
        assert_eq!(sums.ready(), Ready { tids: vec![pid], all: false });
        assert_eq!(sums.known, HashMap::from([(is, None)]));
    }

    #[test]
    fn who_waits_is_bounded() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        sums.waiting = (0..WAITING_MAX as u32).map(|tid| (tid | 1 << 30, [0; 7])).collect();
        assert_eq!(sums.of(pid), None);
        assert_eq!(wait(&mut sums), Ready { tids: Vec::new(), all: true });
        assert_eq!(sums.of(pid), Some(own()));
    }
}
