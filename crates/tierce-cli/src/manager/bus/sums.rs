//! Checksums of programs whose processes ask over the bus. A file may be long, or on a file system of the user's own that never answers:
//! another thread reads it, of each person one at a time, and nobody waits for long.

use crate::manager::programs::profiles::{stamp, Open, Stamp, FILE_MAX};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// So long the bus waits for a sum. Who asks again later may find it.
const PATIENCE: Duration = Duration::from_secs(1);
/// Who took longer rests for ten times as long.
const LONG: Duration = Duration::from_millis(100);
/// Sums, and persons, that are remembered.
const KNOWN_MAX: usize = 1024;

#[derive(Clone, Default)]
pub struct Sums(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    sums: HashMap<Stamp, String>,
    /// Those for whom nothing is read until then; no time: for whom something is being read.
    rest: HashMap<u32, Option<Instant>>,
}

impl Sums {
    /// Of that file, for a process of that person. Nothing: it cannot be read, is too long, or takes too long.
    pub fn of(&self, person: u32, path: PathBuf) -> Option<String> {
        let all = self.clone();
        self.by(person, move || all.read(person, &path))
    }

    fn read(&self, person: u32, path: &std::path::Path) -> Option<String> {
        let stamp = stamp(path).ok()?;
        if let Some(sum) = self.known(|known| known.sums.get(&stamp).cloned()) {
            return Some(sum);
        }
        let file = Open::at(path).ok()?;
        if person != 0 && file.length() > FILE_MAX {
            return None;
        }
        let (stamp, sum) = file.sum().ok()??; // perhaps of another file than just now
        self.known(|known| {
            if known.sums.len() >= KNOWN_MAX {
                known.sums.clear();
            }
            known.sums.insert(stamp, sum.clone());
        });
        Some(sum)
    }

    fn by(&self, person: u32, read: impl FnOnce() -> Option<String> + Send + 'static) -> Option<String> {
        let may = self.known(|known| {
            if known.rest.len() >= KNOWN_MAX {
                known.rest.retain(|_, until| until.is_none_or(|until| until > Instant::now()));
            }
            let rests = |until: &Option<Instant>| until.is_none_or(|until| until > Instant::now());
            let may = !known.rest.get(&person).is_some_and(rests) && known.rest.len() < KNOWN_MAX;
            if may {
                known.rest.insert(person, None);
            }
            may
        });
        if !may {
            return None;
        }
        let (says, said) = channel();
        let all = self.clone();
        let thread = std::thread::Builder::new().name("manager-bus-sum".into()).spawn(move || {
            let begun = Instant::now();
            let sum = read();
            let took = begun.elapsed();
            all.known(|known| match took > LONG && person != 0 {
                true => known.rest.insert(person, Some(Instant::now() + 10 * took)),
                false => known.rest.remove(&person),
            });
            let _ = says.send(sum); // who has waited may be gone
        });
        if thread.is_err() {
            self.known(|known| known.rest.remove(&person));
        }
        said.recv_timeout(PATIENCE).ok().flatten()
    }

    fn known<T>(&self, of: impl FnOnce(&mut Known) -> T) -> T {
        of(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manager::programs::profiles::tests::where_files_change_places;
    use tierce_calibrate::File;

    #[test]
    fn a_sum_is_that_of_the_file_that_was_read() {
        where_files_change_places(|path| {
            let sums = Sums::default();
            sums.read(0, path);
            sums.known(|known| std::mem::take(&mut known.sums))
        });
    }

    #[test]
    fn a_file_that_is_too_long_or_takes_too_long_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let (short, long) = (folder.path().join("short"), folder.path().join("long"));
        std::fs::write(&short, "x").unwrap();
        std::fs::File::create(&long).unwrap().set_len(FILE_MAX + 1).unwrap();
        let sums = Sums::default();
        let sum = File::read(&short).ok().map(|file| file.sha256);
        // This machine may be slower than the patience is long, but not for ten persons.
        let told = |person| sums.of(person, short.clone()) == sum;
        assert!(sum.is_some() && (1000..1010).any(told));
        // What is refused takes no time: he need not rest.
        assert!((1010..1020).any(|person| sums.of(person, long.clone()).is_none() && told(person)));
        // One that never ends, as by a file system of the user's own.
        let (_lives, ends) = channel::<()>();
        let begun = Instant::now();
        assert_eq!(sums.by(2000, move || ends.recv().ok().map(|()| String::new())), None);
        assert_eq!(sums.of(2000, short.clone()), None, "one at a time");
        assert!((2001..2011).any(told), "of each person");
        assert!(begun.elapsed() < Duration::from_secs(60));
        // One that took long.
        let slow = || {
            std::thread::sleep(2 * LONG);
            Some("slow".to_string())
        };
        let rests = |person: &u32| {
            sums.by(*person, slow).as_deref() == Some("slow") && sums.of(*person, short.clone()).is_none()
        };
        let person = (2011..2021).find(rests).expect("he rests");
        let begun = Instant::now();
        while !told(person) {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(LONG);
        }
    }
}
