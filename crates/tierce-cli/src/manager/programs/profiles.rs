//! The profiles that there are, as they were last read: of the machine, and those that root keeps for single users.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tierce_calibrate::{opened, File, Layer, Machine, Profile, Store};

/// Sums that are remembered.
const SUMS_MAX: usize = 4096;
/// Largest file that is read to the end for a user, bytes.
pub const FILE_MAX: u64 = 1 << 28;
/// Bytes of files that are read for one user before others have their turn.
const TURN_MAX: u64 = 1 << 26;

/// Which file, and of which state: device, inode, size, when it was changed.
pub type Stamp = [i64; 5];

/// Names that are numbers: processes, threads, users.
pub fn numbers(folder: impl AsRef<Path>) -> Vec<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Of the file to which a path leads.
pub fn stamp(path: &Path) -> io::Result<Stamp> {
    Ok(stamp_of(&fs::metadata(path)?))
}

fn stamp_of(about: &fs::Metadata) -> Stamp {
    let changed = about.ctime().wrapping_mul(1_000_000_000).wrapping_add(about.ctime_nsec());
    let written = about.mtime().wrapping_mul(1_000_000_000).wrapping_add(about.mtime_nsec());
    [about.dev() as i64, about.ino() as i64, about.size() as i64, changed, written]
}

/// A file that is read. Its sum is that of which file it was by the same descriptor: at its path there may be another one any time.
pub struct Open {
    file: fs::File,
    stamp: Stamp,
}

impl Open {
    /// The file to which the path leads.
    pub fn at(path: &Path) -> io::Result<Self> {
        let file = opened(path)?;
        let stamp = stamp_of(&file.metadata()?);
        Ok(Self { file, stamp })
    }

    /// Its length in bytes.
    pub fn length(&self) -> u64 {
        self.stamp[2] as u64
    }

    /// Its sum, and which file has that. Nothing: it was changed while it was read.
    pub fn sum(&self) -> io::Result<Option<(Stamp, String)>> {
        self.sum_by(|file| Ok(File::of(Path::new(""), file)?.sha256))
    }

    fn sum_by(
        &self,
        read: impl FnOnce(&fs::File) -> io::Result<String>,
    ) -> io::Result<Option<(Stamp, String)>> {
        let sum = read(&self.file)?;
        let is_same = stamp_of(&self.file.metadata()?) == self.stamp;
        Ok(is_same.then_some((self.stamp, sum)))
    }
}

/// What was found in a folder of profiles.
struct Shelf {
    store: Store,
    layers: &'static [Layer],
    /// Each file that is a profile, or nothing at its place.
    files: BTreeMap<PathBuf, (Stamp, Option<Found>)>,
}

/// A profile, and where it is from.
#[derive(Clone)]
pub struct Found {
    pub layer: Layer,
    pub profile: Rc<Profile>,
}

impl Found {
    fn program(&self) -> &Path {
        &self.profile.program.executable.path
    }
}

/// Something is new.
pub enum News {
    /// This profile, of a user or of the machine.
    Profile(Option<u32>, Found),
    /// A file that is none, and why.
    Wrong(String),
    /// A profile is gone.
    Gone(PathBuf),
}

/// All profiles.
pub struct Profiles {
    root: PathBuf,
    machine: Shelf,
    users: BTreeMap<u32, Shelf>,
}

impl Profiles {
    /// Of a machine whose files are below `root`. Those of a user stand for the machine's.
    pub fn at(root: &Path) -> Self {
        let machine = Shelf::new(Store::at(root, None), &Layer::ALL[..3]);
        Self { root: root.into(), machine, users: BTreeMap::new() }
    }

    /// Look for what has changed.
    pub fn look(&mut self) -> Vec<News> {
        let mut news = self.machine.look(None);
        let listed = numbers(self.root.join("var/lib/tierce/users"));
        for uid in listed {
            let new = || Shelf::new(Store::of_user(&self.root, uid), &Layer::ALL[3..]);
            self.users.entry(uid).or_insert_with(new);
        }
        for (uid, shelf) in &mut self.users {
            news.extend(shelf.look(Some(*uid)));
        }
        news
    }

    /// Nobody has any.
    pub fn is_empty(&self) -> bool {
        self.machine.is_empty() && self.users.values().all(Shelf::is_empty)
    }

    /// Whether anybody has one of this program.
    pub fn knows(&self, program: &Path) -> bool {
        self.machine.of(program).is_some() || self.users.values().any(|shelf| shelf.of(program).is_some())
    }

    /// That which holds for a user's process.
    pub fn of(&self, program: &Path, uid: u32) -> Option<Found> {
        self.users.get(&uid).and_then(|shelf| shelf.of(program)).or_else(|| self.machine.of(program))
    }
}

impl Shelf {
    fn new(store: Store, layers: &'static [Layer]) -> Self {
        Self { store, layers, files: BTreeMap::new() }
    }

    fn look(&mut self, user: Option<u32>) -> Vec<News> {
        let (mut news, mut before) = (Vec::new(), std::mem::take(&mut self.files));
        for &layer in self.layers {
            for file in self.store.files(layer).unwrap_or_default() {
                let Ok(stamp) = stamp(&file) else { continue };
                if let Some(same) = before.remove(&file).filter(|(was, _)| *was == stamp) {
                    self.files.insert(file, same);
                    continue;
                }
                let read = self.store.read(layer, &file).map_err(|error| error.to_string());
                let found = match read {
                    Ok(profile) => {
                        let found = Found { layer, profile: Rc::new(profile) };
                        news.push(News::Profile(user, found.clone()));
                        Some(found)
                    }
                    Err(why) => {
                        news.push(News::Wrong(why));
                        None
                    }
                };
                self.files.insert(file, (stamp, found));
            }
        }
        let gone = before.into_values().filter_map(|(_, found)| found);
        news.extend(gone.map(|found| News::Gone(found.program().into())));
        news
    }

    fn is_empty(&self) -> bool {
        self.files.values().all(|(_, found)| found.is_none())
    }

    /// That of the strongest layer.
    fn of(&self, program: &Path) -> Option<Found> {
        let files = self.layers.iter().rev().filter_map(|layer| self.store.file(*layer, program).ok());
        files.filter_map(|file| self.files.get(&file)?.1.clone()).next()
    }
}

/// Sums of files, each computed once.
#[derive(Default)]
pub struct Sums {
    known: HashMap<Stamp, String>,
    /// Bytes that were read for each user in this turn.
    read: HashMap<u32, u64>,
}

/// What has become of a program since it was calibrated.
#[derive(Debug, PartialEq, Eq)]
pub enum Fit {
    /// Nothing.
    Same,
    /// This is another.
    Changed(String),
    /// It is compared later: much was read for its user already.
    Later,
}

impl Sums {
    /// All may be read for once more.
    pub fn next_turn(&mut self) {
        self.read.clear();
    }

    /// Whether a profile fits the program and the machine, for a process of that user.
    pub fn fit(&mut self, profile: &Profile, machine: &Machine, uid: u32) -> Fit {
        let mut is_later = false;
        let mut changes = profile.machine.changes(machine);
        changes.extend(profile.program.changes_by(|path| match self.sum(path, uid) {
            Ok(Some(sum)) => Ok(sum),
            Ok(None) => {
                is_later = true;
                Ok(String::new())
            }
            Err(error) => Err(error),
        }));
        match changes.is_empty() {
            true => Fit::Same,
            false if is_later => Fit::Later,
            false => Fit::Changed(changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
        }
    }

    /// Nothing: not in this turn, or it is being changed.
    fn sum(&mut self, path: &Path, uid: u32) -> io::Result<Option<String>> {
        if let Some(sum) = self.known.get(&stamp(path)?) {
            return Ok(Some(sum.clone()));
        }
        let file = Open::at(path)?;
        if uid != 0 && file.length() > FILE_MAX {
            let message = format!("{} bytes, bound {FILE_MAX}", file.length());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let read = self.read.entry(uid).or_default();
        if uid != 0 && *read >= TURN_MAX {
            return Ok(None);
        }
        *read += file.length();
        let Some((stamp, sum)) = file.sum()? else { return Ok(None) };
        if self.known.len() >= SUMS_MAX {
            self.known.clear();
        }
        self.known.insert(stamp, sum.clone());
        Ok(Some(sum))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    /// Sums of a path that leads to one file and to another in turn, each as `known` says after it was asked for: all are those of the files
    /// under whose stamps they are kept.
    pub fn where_files_change_places(mut known: impl FnMut(&Path) -> HashMap<Stamp, String>) {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut right = HashMap::new();
        for name in ["one", "other"] {
            fs::write(at(name), name).unwrap();
            right.insert(stamp(&at(name)).unwrap(), File::read(&at(name)).unwrap().sha256);
        }
        let lead = |name: &str| {
            std::os::unix::fs::symlink(at(name), at("new")).unwrap();
            fs::rename(at("new"), at("program")).unwrap();
        };
        lead("one");
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(Ordering::Relaxed) {
                    ["other", "one"].into_iter().for_each(lead);
                }
            });
            let wrong =
                (0..3_000).flat_map(|_| known(&at("program"))).find(|(stamp, sum)| right[stamp] != *sum);
            ends.store(true, Ordering::Relaxed);
            assert_eq!(wrong, None);
        });
    }

    #[test]
    fn a_sum_is_that_of_the_file_that_was_read() {
        where_files_change_places(|path| {
            let mut sums = Sums::default();
            sums.sum(path, 0).unwrap();
            sums.known
        });
    }

    #[test]
    fn a_file_that_is_changed_while_it_is_read_has_no_sum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        fs::write(&path, "one").unwrap();
        let file = Open::at(&path).unwrap();
        let changed = file.sum_by(|_| fs::write(&path, "longer").map(|()| String::new()));
        assert_eq!(changed.unwrap(), None);
        let sum = Open::at(&path).unwrap().sum().unwrap();
        assert_eq!(sum, Some((stamp(&path).unwrap(), File::read(&path).unwrap().sha256)));
    }
}
