//! For which person a user counts. Somebody with a range of subordinate ids (subuid(5)) can be each of 65,536 users, in a user
//! namespace or by a set-user-ID file that he makes there; whatever each user has of connections, requests and time, he would have
//! 65,536 times.
//!
//! 1. A user with an entry in `/etc/passwd` or with a session is a person. Only root makes these.
//! 2. A user in a range of `/etc/subuid` counts for the owner of the range, of several the first.
//! 3. All others together are one person, [`NAMELESS`]: nobody here knows who is behind them (containers, `DynamicUser=`, ranges of root's or
//!    of somebody without a name).
//!
//! A session makes those persons who are in a directory elsewhere (LDAP): asking that would be a wait.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tierce_manager::NAMELESS;

/// Whether files have changed is looked at so often.
const LOOK: Duration = Duration::from_millis(500);
/// Longer lines of `/etc/subuid` are not read, as by shadow.
const LINE_MAX: usize = 1023;

/// Who is who, on this machine.
#[derive(Clone)]
pub struct People(Arc<Mutex<Known>>);

struct Known {
    folder: PathBuf,
    looked: Option<Instant>,
    passwd: Text,
    subuid: Text,
    named: HashSet<u32>,
    sessions: BTreeSet<u32>,
    ranges: Vec<Range>,
}

/// Subordinate ids.
#[derive(Debug, PartialEq, Eq)]
struct Range {
    first: u64,
    count: u64,
    owner: u32,
}

/// A file as it was last read.
#[derive(Default)]
struct Text {
    /// Device, inode, size, and when it was changed.
    stamp: Option<[i64; 5]>,
    text: String,
}

impl People {
    /// Of the system below this folder: `/`.
    pub fn of(folder: &Path) -> Self {
        Self(Arc::new(Mutex::new(Known {
            folder: folder.into(),
            looked: None,
            passwd: Text::default(),
            subuid: Text::default(),
            named: HashSet::new(),
            sessions: BTreeSet::new(),
            ranges: Vec::new(),
        })))
    }

    /// The person for whom a user counts. Root is one.
    pub fn person(&self, uid: u32) -> u32 {
        if uid == 0 {
            return 0;
        }
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            known.look();
        }
        known.person(uid)
    }

    /// Users with a session: logind gives each a folder.
    pub fn sessions(&self) -> BTreeSet<u32> {
        sessions(&self.0.lock().unwrap_or_else(PoisonError::into_inner).folder)
    }
}

impl Known {
    fn look(&mut self) {
        self.looked = Some(Instant::now());
        self.sessions = sessions(&self.folder);
        let passwd = self.passwd.is_new(&self.folder.join("etc/passwd"));
        let subuid = self.subuid.is_new(&self.folder.join("etc/subuid"));
        if passwd || subuid {
            let names = names(&self.passwd.text);
            self.ranges = self.subuid.text.lines().filter_map(|line| range(line, &names)).collect();
            self.named = names.into_values().collect();
        }
    }

    fn person(&self, uid: u32) -> u32 {
        if self.named.contains(&uid) || self.sessions.contains(&uid) {
            return uid;
        }
        let has =
            |range: &&Range| (range.first..range.first.saturating_add(range.count)).contains(&uid.into());
        match self.ranges.iter().find(has) {
            Some(range) if range.owner != 0 => range.owner,
            _ => NAMELESS,
        }
    }
}

impl Text {
    /// Read it if it has changed; whether it has.
    fn is_new(&mut self, path: &Path) -> bool {
        let stamp = fs::metadata(path).ok().map(|about| {
            [about.dev() as i64, about.ino() as i64, about.size() as i64, about.mtime(), about.mtime_nsec()]
        });
        if stamp == self.stamp {
            return false;
        }
        let bytes = fs::read(path).unwrap_or_default();
        *self = Self { stamp, text: String::from_utf8_lossy(&bytes).into_owned() };
        true
    }
}

/// Number of each name in `/etc/passwd`.
fn names(passwd: &str) -> HashMap<&str, u32> {
    let named = |line| {
        let mut fields = str::split(line, ':');
        Some((fields.next()?, fields.nth(1)?.parse().ok()?))
    };
    passwd.lines().filter_map(named).collect()
}

/// A line of `/etc/subuid`, `OWNER:FIRST:COUNT`, as shadow reads it: the owner is a name or else a number, numbers may be hexadecimal or
/// octal, what comes after a fourth colon is ignored, and so is a line that is none. The ids of an owner who cannot be found are root's.
fn range(line: &str, names: &HashMap<&str, u32>) -> Option<Range> {
    if line.len() > LINE_MAX {
        return None;
    }
    let mut fields = line.split(':');
    let (owner, first, count) = (fields.next()?, number(fields.next()?)?, number(fields.next()?)?);
    let owner = (!owner.is_empty()).then(|| names.get(owner).copied().or_else(|| owner.parse().ok()))?;
    Some(Range { first, count, owner: owner.unwrap_or(0) })
}

/// As `strtoul` reads it, with any base.
fn number(text: &str) -> Option<u64> {
    let text = text.trim_start();
    let digits = text.strip_prefix('+').unwrap_or(text);
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let is_digits = digits.chars().all(|digit| digit.is_digit(base)); // no second sign
    u64::from_str_radix(digits, base).ok().filter(|_| is_digits)
}

fn sessions(folder: &Path) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder.join("run/user")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(|uid| *uid != 0).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A system with two users, each with a range, and ids of root's and of nobody's.
    pub const PASSWD: &str =
        "root:x:0:0::/:/bin/sh\nalice:x:1001:1001::/:/bin/sh\nbob:x:1002:1002::/:/bin/sh\n";
    pub const SUBUID: &str = "alice:100000:65536\nbob:165536:65536\nroot:300000:65536\ncarol:400000:10\n";

    /// People of a folder with these files. It goes when the test does.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("tierce-people-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("etc")).unwrap();
            fs::write(path.join("etc/passwd"), PASSWD).unwrap();
            fs::write(path.join("etc/subuid"), SUBUID).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// As if the time until the next look were over.
    fn later(people: &People) {
        people.0.lock().unwrap().looked = None;
    }

    #[test]
    fn users_count_for_the_owner_of_their_range() {
        let folder = Folder::new("owner");
        let people = People::of(&folder.0);
        for (uid, person) in [
            (0, 0),
            (1001, 1001),
            (1002, 1002),
            (99_999, NAMELESS),
            (100_000, 1001),
            (165_535, 1001),
            (165_536, 1002),
            (231_071, 1002),
            (231_072, NAMELESS),
            (300_000, NAMELESS), // root's containers are not root
            (400_000, NAMELESS), // nobody knows carol
            (61_184, NAMELESS),  // DynamicUser=
            (u32::MAX - 1, NAMELESS),
        ] {
            assert_eq!(people.person(uid), person, "{uid}");
        }
    }

    #[test]
    fn what_changes_is_seen() {
        let folder = Folder::new("changes");
        let people = People::of(&folder.0);
        assert_eq!((people.person(2000), people.person(500_000)), (NAMELESS, NAMELESS));
        // She is in a directory elsewhere, and logs in. Her ids are known by her number.
        fs::create_dir_all(folder.0.join("run/user/2000")).unwrap();
        fs::write(folder.0.join("etc/subuid"), format!("{SUBUID}2000:500000:0x10\n")).unwrap();
        assert_eq!(people.person(2000), NAMELESS, "not looked at yet");
        later(&people);
        assert_eq!(
            (people.person(2000), people.person(500_015), people.person(500_016)),
            (2000, 2000, NAMELESS)
        );
        assert_eq!(people.sessions(), BTreeSet::from([2000]));
        // One whom root has given an id of a range is a person of his own.
        fs::write(folder.0.join("etc/passwd"), format!("{PASSWD}dora:x:100001:1::/:/bin/sh\n")).unwrap();
        later(&people);
        assert_eq!((people.person(100_001), people.person(100_002)), (100_001, 1001));
        fs::remove_file(folder.0.join("etc/subuid")).unwrap();
        later(&people);
        assert_eq!((people.person(100_001), people.person(100_002)), (100_001, NAMELESS));
    }

    #[test]
    fn lines_are_read_as_shadow_reads_them() {
        let names = HashMap::from([("alice", 1001), ("7", 1007)]);
        let read = |line: &str| range(line, &names).map(|range| (range.owner, range.first, range.count));
        for (line, expected) in [
            ("alice:100000:65536", Some((1001, 100_000, 65_536))),
            ("alice:0x186a0:0200000", Some((1001, 100_000, 65_536))),
            ("alice: +5:5:more", Some((1001, 5, 5))),
            ("1001:1:2", Some((1001, 1, 2))),
            ("7:1:2", Some((1007, 1, 2))), // a name comes before a number
            ("carol:1:2", Some((0, 1, 2))),
            ("alice:1:18446744073709551615", Some((1001, 1, u64::MAX))),
            ("alice:1:18446744073709551616", None),
            ("alice:-1:2", None),
            ("alice:+-1:2", None),
            ("alice:1", None),
            ("alice::2", None),
            (":1:2", None),
            ("alice:1:2x", None),
            ("alice:09:2", None),
            ("# alice", None),
            ("", None),
            (&format!("{}:1:2", "x".repeat(LINE_MAX)), None),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }
}
