//! Checksums of executables, for plans that match by these.
//!
//! One is wanted of few threads: of those that fit by all other keys of a match. Files are read by a thread of its own, one after the
//! other, so the loader never waits for one; and each is read once, as long as it stays as it was. A thread whose checksum is not known
//! yet fits no match that has one, and is looked at again when it is.
//!
//! What is kept, and what waits, is bounded, since any user can start any number of files. Of files that are known the oldest are
//! forgotten first, and never one by whose checksum a thread has its place: that thread would lose it until the file is read again.
//!
//! Example: `/opt/audio` is started a hundred times. It is read once; until then all its threads are in the default node.

use crate::threads;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use tierce_plan::Checksum;

/// Longer files of root's have no checksum.
pub const FILE_MAX: u64 = 1 << 30;
/// The same of files of others: any user may start a program of any length.
pub const USERS_FILE_MAX: u64 = 1 << 28;
/// Files that are known, beside those by which threads have their places.
const KNOWN_MAX: usize = 4096;
/// So many of these are forgotten at once.
const FORGOTTEN: usize = KNOWN_MAX / 8;
/// Files that are to be read. Where there are more, all threads are looked at when half of them have been read.
const ASKED_MAX: usize = 1024;
/// Threads that wait for a file to be read. Where there are more, the same.
const WAITING_MAX: usize = 1 << 14;
/// The same for the threads of one user.
const ASKED_OF_ONE: usize = 64;
const WAITING_OF_ONE: usize = 1 << 10;
/// Threads that hold a file, before those that have ended are looked for.
const HELD_MIN: usize = 1024;

/// Which file it is, and when it was changed: device, inode, size, times of contents and of the file.
type Stamp = [i64; 7];
/// Where the last of these are.
const CHANGED: usize = 5;

/// What is known of files.
#[derive(Default)]
pub struct Checksums {
    known: HashMap<Stamp, Known>,
    /// How many have become known.
    count: u64,
    /// Threads that have their places by what is in these files.
    held: HashMap<u32, Stamp>,
    /// With so many of them those that have ended are looked for.
    held_max: usize,
    /// Threads that wait, each for the file that it runs, and their users.
    waiting: HashMap<u32, (Stamp, u32)>,
    /// Files that are to be read, and whose thread was the first to run each.
    asked: HashMap<Stamp, u32>,
    users: HashMap<u32, User>,
    reader: Option<Reader>,
}

/// What the threads of a user wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct User {
    asked: usize,
    waiting: usize,
    /// Not all of his threads that wait are known, or not all of their files.
    forgotten: bool,
}

impl User {
    fn may_go_on(&self) -> bool {
        self.asked <= ASKED_OF_ONE / 2 && self.waiting <= WAITING_OF_ONE / 2
    }
}

/// A file that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// Which one it was: those with the least numbers are forgotten first.
    number: u64,
    /// Nothing: it has none, because it cannot be read or is too long.
    sum: Option<Checksum>,
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
            return known.sum;
        }
        self.ask(tid, stamp);
        self.held_as(tid, &stamp)
    }

    /// It is to be read, unless too much is.
    fn ask(&mut self, tid: u32, stamp: Stamp) {
        self.waits_no_longer(tid);
        let uid = fs::metadata(format!("/proc/{tid}")).map_or(0, |about| about.uid());
        let is_new = !self.asked.contains_key(&stamp);
        let user = self.users.entry(uid).or_default();
        let is_full = self.waiting.len() >= WAITING_MAX || user.waiting >= WAITING_OF_ONE;
        if is_full || (is_new && (self.asked.len() >= ASKED_MAX || user.asked >= ASKED_OF_ONE)) {
            user.forgotten = true;
            return;
        }
        user.waiting += 1;
        self.waiting.insert(tid, (stamp, uid));
        if is_new {
            user.asked += 1;
            self.asked.insert(stamp, uid);
            let reader = self.reader.get_or_insert_with(Reader::begin);
            let _ = reader.ask.send((stamp, tid)); // one that has ended is noticed when it is asked
        }
    }

    fn waits_no_longer(&mut self, tid: u32) {
        if let Some(user) = self.waiting.remove(&tid).and_then(|(_, uid)| self.users.get_mut(&uid)) {
            user.waiting -= 1;
        }
    }

    /// By what a thread has its place, if its file is still the same but for its owner, its rights or its links.
    fn held_as(&self, tid: u32, stamp: &Stamp) -> Option<Checksum> {
        let held = self.held.get(&tid).filter(|held| held[..CHANGED] == stamp[..CHANGED])?;
        self.known.get(held)?.sum
    }

    /// The same at once, however long that takes.
    pub fn now(&mut self, tid: u32) -> Option<Checksum> {
        let stamp = stamp(&fs::metadata(exe(tid)).ok()?);
        if let Some(known) = self.known.get(&stamp) {
            return known.sum;
        }
        let Became::Known(sum) = read(stamp, tid) else { return None };
        self.keep(stamp, sum);
        sum
    }

    /// A thread has its place by the checksum of what it runs: that is known as long as the thread is there.
    pub fn hold(&mut self, tid: u32) {
        let stamp = fs::metadata(exe(tid)).map(|about| stamp(&about));
        match stamp {
            Ok(stamp) if self.known.contains_key(&stamp) => _ = self.held.insert(tid, stamp),
            Ok(stamp) if self.held_as(tid, &stamp).is_some() => {}
            _ => _ = self.held.remove(&tid),
        }
        if self.held.len() > self.held_max.max(HELD_MIN) {
            self.held.retain(|tid, _| threads::exists(*tid));
            self.held_max = 2 * self.held.len();
        }
    }

    /// A thread has no place by a checksum.
    pub fn let_go(&mut self, tid: u32) {
        self.held.remove(&tid);
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
        let mut read = HashSet::new();
        for (stamp, became) in answers {
            if let Some(user) = self.asked.remove(&stamp).and_then(|uid| self.users.get_mut(&uid)) {
                user.asked -= 1;
            }
            if let Became::Known(sum) = became {
                self.keep(stamp, sum);
            }
            read.insert(stamp);
        }
        ready.tids.extend(self.waiting.iter().filter(|(_, of)| read.contains(&of.0)).map(|(tid, _)| *tid));
        ready.tids.iter().for_each(|tid| self.waits_no_longer(*tid));
        ready.all = self.all_again();
        ready.tids.sort_unstable();
        ready
    }

    /// Whether all threads are to be looked at. With each file would be too often: that takes long.
    fn all_again(&mut self) -> bool {
        let is_half = self.asked.len() <= ASKED_MAX / 2 && self.waiting.len() <= WAITING_MAX / 2;
        let mut again = false;
        self.users.retain(|_, user| {
            again |= user.forgotten && user.may_go_on() && is_half;
            user.forgotten &= !(user.may_go_on() && is_half);
            *user != User::default()
        });
        again
    }

    fn keep(&mut self, stamp: Stamp, sum: Option<Checksum>) {
        if self.known.len() >= KNOWN_MAX {
            self.forget();
        }
        self.count += 1;
        self.known.insert(stamp, Known { number: self.count, sum });
    }

    /// The oldest files are not known any more, but those that threads hold are.
    fn forget(&mut self) {
        let held: HashSet<&Stamp> = self.held.values().collect();
        let free = self.known.iter().filter(|(stamp, _)| !held.contains(stamp));
        let mut free: Vec<(u64, Stamp)> = free.map(|(stamp, known)| (known.number, *stamp)).collect();
        if free.len() < KNOWN_MAX {
            return;
        }
        free.sort_unstable();
        for (_, stamp) in &free[..FORGOTTEN] {
            self.known.remove(stamp);
        }
    }
}

impl Reader {
    fn begin() -> Reader {
        let (ask, asked) = channel::<(Stamp, u32)>();
        let (answer, answers) = channel();
        let work = move || {
            yield_to_others();
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

/// This thread is an ordinary one of the least weight, whatever class the loader has just now. If that is refused, it works as others do.
fn yield_to_others() {
    let ordinary = libc::sched_param { sched_priority: 0 };
    // SAFETY: numbers, and a structure of a number; 0 is this thread alone.
    unsafe {
        libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_OTHER, &ordinary);
        libc::setpriority(libc::PRIO_PROCESS, 0, 19);
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

/// So long a file of that user may be.
fn longest(owner: u32) -> u64 {
    match owner {
        0 => FILE_MAX,
        _ => USERS_FILE_MAX,
    }
}

/// Nothing: it is another file, before or after it was read.
fn sum(wanted: Stamp, tid: u32) -> io::Result<Option<Checksum>> {
    let mut file = File::open(exe(tid))?;
    let about = file.metadata()?;
    if stamp(&about) != wanted {
        return Ok(None);
    }
    let most = longest(about.uid());
    if about.len() > most {
        return Err(ErrorKind::InvalidData.into());
    }
    let (mut sum, mut part, mut left) = (Sha256::new(), vec![0; 1 << 16], most);
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
        loop {
            match Command::new(path).arg("60").spawn() {
                // Another test's process has the file open for writing, until it runs its own program.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                child => return child.unwrap(),
            }
        }
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
        let mut sums = Checksums::default();
        sums.asked.insert(is, OTHER);
        sums.waiting.insert(pid, (is, OTHER));
        sums.users.insert(OTHER, User { asked: 1, waiting: 1, forgotten: false });
        sums.reader = Some(Reader { ask: channel().0, answers: channel().1 });
        assert_eq!(sums.ready(), Ready { tids: vec![pid], all: false });
        assert_eq!(sums.known, HashMap::from([(is, Known { number: 1, sum: None })]));
        // Another one reads what is asked for afterwards.
        sums.known.clear();
        assert_eq!(sums.of(pid), None);
        assert_eq!(wait(&mut sums).tids, [pid]);
        assert_eq!(sums.of(pid), Some(own()));
    }

    /// Files that there are not.
    fn invented(number: usize) -> Stamp {
        [-1, number as i64, 0, 0, 0, 0, 0]
    }

    /// A reader that answers what a test says.
    fn played(sums: &mut Checksums) -> (Sender<(Stamp, Became)>, Receiver<(Stamp, u32)>) {
        let ((ask, asked), (answer, answers)) = (channel(), channel());
        sums.reader = Some(Reader { ask, answers });
        (answer, asked)
    }

    const OTHER: u32 = 1 << 20;

    /// So many files and threads of a user.
    fn full(sums: &mut Checksums, uid: u32, asked: usize, waiting: usize) {
        let files = sums.asked.len();
        sums.asked.extend((0..asked).map(|number| (invented(files + number), uid)));
        let first = 1 << 30 | sums.waiting.len() as u32;
        sums.waiting.extend((0..waiting as u32).map(|number| (first + number, (invented(files), uid))));
        sums.users.insert(uid, User { asked, waiting, forgotten: false });
    }

    #[test]
    fn who_waits_is_bounded() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        let (answer, _asked) = played(&mut sums);
        full(&mut sums, OTHER, 1, WAITING_MAX);
        assert_eq!(sums.of(pid), None);
        assert_eq!(sums.waiting.len(), WAITING_MAX);
        let is = stamp(&fs::metadata("/proc/self/exe").unwrap());
        answer.send((is, Became::Known(Some(own())))).unwrap();
        assert_eq!(sums.ready(), Ready::default(), "too many wait still");
        answer.send((invented(0), Became::Another)).unwrap();
        let ready = sums.ready();
        assert_eq!((ready.tids.len(), ready.all), (WAITING_MAX, true));
        assert_eq!((sums.of(pid), sums.ready(), sums.users.len()), (Some(own()), Ready::default(), 0));
    }

    #[test]
    fn what_is_to_be_read_is_bounded() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        let (answer, asked) = played(&mut sums);
        full(&mut sums, OTHER, ASKED_MAX, 0);
        assert_eq!((sums.of(pid), sums.asked.len(), sums.waiting.len()), (None, ASKED_MAX, 0));
        assert!(asked.try_recv().is_err(), "nobody is asked");
        for number in 1..ASKED_MAX / 2 {
            answer.send((invented(number), Became::Another)).unwrap();
        }
        assert_eq!(sums.ready(), Ready::default(), "all threads are not looked at with each file");
        answer.send((invented(0), Became::Another)).unwrap();
        assert_eq!(sums.ready(), Ready { tids: Vec::new(), all: true });
        assert_eq!((sums.of(pid), asked.try_recv().unwrap().1), (None, pid));
    }

    #[test]
    fn each_user_has_so_much_to_be_read() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        let (_answer, asked) = played(&mut sums);
        let user = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
        full(&mut sums, OTHER, ASKED_OF_ONE, WAITING_OF_ONE);
        assert_eq!((sums.of(pid), asked.try_recv().unwrap().1), (None, pid), "another is not concerned");
        for (files, threads) in [(ASKED_OF_ONE, 0), (1, WAITING_OF_ONE)] {
            sums = Checksums::default();
            let (answer, asked) = played(&mut sums);
            full(&mut sums, user, files, threads);
            assert_eq!((sums.of(pid), asked.try_recv().is_err()), (None, true), "{files} {threads}");
            (0..files).for_each(|number| answer.send((invented(number), Became::Another)).unwrap());
            let ready = sums.ready();
            assert_eq!((ready.tids.len(), ready.all, sums.users.len()), (threads, true, 0));
            assert_eq!((sums.of(pid), asked.try_recv().unwrap().1), (None, pid));
        }
    }

    #[test]
    fn who_has_a_place_keeps_it_while_its_file_has_another_owner() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        let sum = sums.now(pid);
        sums.hold(pid);
        let (_answer, asked) = played(&mut sums);
        // As it was before its rights were changed.
        let is = stamp(&fs::metadata("/proc/self/exe").unwrap());
        let (known, mut before) = (sums.known.remove(&is).unwrap(), is);
        before[CHANGED] -= 1;
        sums.known.insert(before, known);
        sums.held.insert(pid, before);
        assert_eq!((sums.of(pid), asked.try_recv().unwrap()), (sum, (is, pid)), "it is read again");
        sums.hold(pid);
        assert_eq!(sums.of(pid), sum, "until then it has its place");
        // Other contents: none.
        before[CHANGED - 1] -= 1;
        sums.known.insert(before, known);
        sums.held.insert(pid, before);
        assert_eq!(sums.of(pid), None);
        sums.hold(pid);
        assert!(sums.held.is_empty());
    }

    #[test]
    fn who_has_a_place_keeps_it_however_many_files_there_are() {
        let (pid, mut sums) = (std::process::id(), Checksums::default());
        let sum = sums.now(pid);
        assert_eq!(sum, Some(own()));
        sums.hold(pid);
        for number in 0..3 * KNOWN_MAX {
            sums.keep(invented(number), None);
            assert_eq!(sums.of(pid), sum, "{number}");
            assert!(sums.known.len() <= KNOWN_MAX + 1);
        }
        // The oldest are forgotten, not all.
        let known = |sums: &Checksums, number| sums.known.contains_key(&invented(number));
        assert!(sums.known.len() > KNOWN_MAX - FORGOTTEN && known(&sums, 3 * KNOWN_MAX - 1));
        assert!(known(&sums, 2 * KNOWN_MAX + FORGOTTEN) && !known(&sums, KNOWN_MAX));
        // As that of a thread that has no place by it.
        sums.let_go(pid);
        (0..KNOWN_MAX).for_each(|number| sums.keep(invented(number + 3 * KNOWN_MAX), None));
        assert_eq!(sums.of(pid), None);
        // Threads that have ended hold nothing for ever.
        sums.held = (0..HELD_MIN as u32).map(|tid| (tid | 1 << 30, invented(0))).collect();
        sums.now(pid);
        sums.hold(pid);
        assert_eq!(sums.held.len(), 1);
        sums.hold(u32::MAX >> 1);
        assert_eq!(sums.held.len(), 1, "nobody");
    }

    #[test]
    fn a_file_of_a_user_is_shorter() {
        let folder = std::env::temp_dir().join(format!("tierce-checksums-long-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("program");
        fs::copy("/bin/sleep", &path).unwrap();
        File::options().append(true).open(&path).unwrap().set_len(USERS_FILE_MAX + 1).unwrap();
        let _ = std::os::unix::fs::chown(&path, Some(1), None); // only root can, and needs to
        let mut child = started(&path);
        while fs::read_link(exe(child.id())).is_ok_and(|is| is != path) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let is = stamp(&fs::metadata(&path).unwrap());
        let found = read(is, child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(found, Became::Known(None));
        assert_eq!((longest(0), longest(1)), (1 << 30, 1 << 28));
    }

    #[test]
    fn files_are_read_when_others_have_no_work() {
        let mut sums = Checksums::default();
        sums.of(std::process::id());
        let is_reader = |tid: &u32| threads::name(*tid).is_some_and(|name| name == "tierce-checksum");
        // SAFETY: numbers only.
        let nice = |tid: u32| unsafe { libc::getpriority(libc::PRIO_PROCESS, tid) };
        let begun = Instant::now();
        while !threads::of(std::process::id()).iter().filter(|tid| is_reader(tid)).any(|tid| nice(*tid) == 19)
        {
            assert!(begun.elapsed() < Duration::from_secs(60), "no reader has the least weight");
            std::thread::sleep(Duration::from_millis(1));
        }
        // SAFETY: as above.
        assert!(nice(unsafe { libc::gettid() } as u32) < 19, "nobody else");
    }
}
