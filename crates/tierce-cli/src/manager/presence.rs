//! Whether anything is left of those who have asked for what no thread ends: of a user a session or a process, of a service or a container a
//! cgroup with processes. The system and groups are always there.
//!
//! A thread of its own looks: anybody can have thousands of processes and cgroups, and whoever asks meanwhile does not wait for that.

use crate::manager::machine::uid;
use crate::manager::unit::Units;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use tierce_manager::Principal;

/// They are looked at so often.
const LOOK: Duration = Duration::from_secs(5);
/// Of whom nothing is left for so long is gone: a service may start again, and a user may log in again.
const GRACE: Duration = Duration::from_secs(30);
/// Levels of cgroups that are looked through for services and containers.
const DEPTH: usize = 8;

/// Those who have been seen, or not, on this machine.
pub struct Presence {
    folder: PathBuf,
    units: Units,
    looked: Option<Instant>,
    /// A look that is under way.
    looks: Option<JoinHandle<Here>>,
    /// Since when nothing has been seen of a principal.
    missed: BTreeMap<Principal, Instant>,
}

impl Presence {
    /// Of the system below this folder: `/`.
    pub fn of(folder: &Path, units: Units) -> Self {
        Self { folder: folder.into(), units, looked: None, looks: None, missed: BTreeMap::new() }
    }

    /// He asks, so he is there.
    pub fn asks(&mut self, owner: &Principal) {
        self.missed.remove(owner);
    }

    /// Which of these are gone. Nothing: that is not known yet, or it is not time to look again.
    pub fn gone(&mut self, owners: &BTreeSet<&Principal>, now: Instant) -> Option<BTreeSet<Principal>> {
        let Some(looks) = self.looks.take_if(|looks| looks.is_finished()) else {
            if self.looks.is_none() && self.looked.is_none_or(|at| now.duration_since(at) >= LOOK) {
                self.looked = Some(now);
                let (folder, units, wanted) = (self.folder.clone(), self.units.clone(), Wanted::of(owners));
                if !wanted.users && !wanted.cgroups {
                    self.missed.clear();
                    return Some(BTreeSet::new());
                }
                let thread = Builder::new().name("manager-presence".into());
                self.looks = thread.spawn(move || Here::of(&folder, &units, wanted)).ok();
            }
            return None;
        };
        let here = looks.join().ok()?;
        let missed: Vec<_> = owners.iter().filter(|owner| !here.has(owner)).collect();
        self.missed.retain(|owner, _| missed.iter().any(|it| **it == owner));
        missed.into_iter().for_each(|owner| _ = self.missed.entry((*owner).clone()).or_insert(now));
        let gone = self.missed.iter().filter(|(_, since)| now.duration_since(**since) >= GRACE);
        Some(gone.map(|(owner, _)| owner.clone()).collect())
    }
}

/// Kinds of principals that are looked for.
struct Wanted {
    users: bool,
    /// Services and containers.
    cgroups: bool,
}

impl Wanted {
    fn of(owners: &BTreeSet<&Principal>) -> Self {
        let any = |of: fn(&Principal) -> bool| owners.iter().any(|owner| of(owner));
        Self {
            users: any(|owner| matches!(owner, Principal::User(_))),
            cgroups: any(|owner| matches!(owner, Principal::Unit(_) | Principal::Container(_))),
        }
    }
}

/// Who is there. What cannot be read, or was not looked for, says of nobody that he is gone.
struct Here {
    users: Option<BTreeSet<u32>>,
    units: Option<BTreeSet<String>>,
    containers: Option<BTreeSet<String>>,
}

impl Here {
    fn of(folder: &Path, units: &Units, wanted: Wanted) -> Self {
        let mut here = Self { users: None, units: None, containers: None };
        if wanted.users {
            here.users = users(folder);
        }
        let root = folder.join("sys/fs/cgroup");
        // Of another kind, or not there.
        if wanted.cgroups && root.join("cgroup.procs").is_file() {
            let (mut services, mut containers) = (BTreeSet::new(), BTreeSet::new());
            with_processes(&root, &mut String::new(), DEPTH, &mut |path| {
                let of = units.of_path(path);
                services.extend(of.unit);
                containers.extend(of.container);
            });
            (here.units, here.containers) = (Some(services), Some(containers));
        }
        here
    }

    fn has(&self, owner: &Principal) -> bool {
        match owner {
            Principal::User(uid) => self.users.as_ref().is_none_or(|all| all.contains(uid)),
            Principal::Unit(name) => self.units.as_ref().is_none_or(|all| all.contains(name)),
            Principal::Container(name) => self.containers.as_ref().is_none_or(|all| all.contains(name)),
            Principal::System | Principal::Group(_) => true,
        }
    }
}

/// Users with a session or a process.
fn users(folder: &Path) -> Option<BTreeSet<u32>> {
    let numbered = |path: &str| -> Option<Vec<(u32, PathBuf)>> {
        let entries = fs::read_dir(folder.join(path)).ok()?.flatten();
        Some(entries.filter_map(|it| Some((it.file_name().to_str()?.parse().ok()?, it.path()))).collect())
    };
    let mut users: BTreeSet<u32> =
        numbered("run/user").unwrap_or_default().into_iter().map(|(uid, _)| uid).collect();
    for (_, process) in numbered("proc")? {
        // One that has ended by now is of nobody.
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        users.extend(uid(&status));
    }
    Some(users)
}

/// Each cgroup below `folder` that has processes, by its path without a slash at the begin. What is below `user.slice` is of users.
fn with_processes(folder: &Path, path: &mut String, depth: usize, found: &mut impl FnMut(&str)) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|it| it.is_dir())) {
        let Ok(name) = entry.file_name().into_string() else { continue };
        let events = fs::read_to_string(entry.path().join("cgroup.events")).unwrap_or_default();
        if path.is_empty() && name == "user.slice" || !events.lines().any(|line| line == "populated 1") {
            continue;
        }
        let length = path.len();
        path.push_str(if length == 0 { "" } else { "/" });
        path.push_str(&name);
        found(path);
        if depth > 0 {
            with_processes(&entry.path(), path, depth - 1, found);
        }
        path.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_nothing_left_is_gone_after_a_while() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let cgroup = |path: &str, populated: u32| {
            write(
                &format!("sys/fs/cgroup/{path}cgroup.events"),
                &format!("populated {populated}\nfrozen 0\n"),
            );
        };
        write("proc/7/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
        write("proc/self/status", "Uid:\t1005\t1005\t1005\t1005\n");
        write("run/user/1001/bus", "");
        write("sys/fs/cgroup/cgroup.procs", "");
        cgroup("system.slice/", 1);
        cgroup("system.slice/web.service/", 1);
        cgroup("system.slice/db.service/", 0);
        cgroup("docker/", 1);
        cgroup("docker/0a1b/", 1);
        cgroup("vs1/", 1);
        cgroup("vs1/shop/", 1);
        cgroup("user.slice/", 1);
        cgroup("user.slice/docker/", 1);
        let all =
            "system group:5 user:1000 user:1001 user:1005 unit:web.service unit:db.service container:0a1b \
                   container:ffff container:shop";
        let all: Vec<Principal> = all.split_whitespace().map(|text| text.parse().unwrap()).collect();
        let owners: BTreeSet<&Principal> = all.iter().collect();
        let units = Units::new(BTreeMap::from([("shop".to_string(), "vs1/shop".to_string())])).unwrap();
        let mut presence = Presence::of(folder.path(), units);
        let begun = Instant::now();
        let mut gone = |after: u64| {
            let now = begun + Duration::from_secs(after);
            let mut gone = presence.gone(&owners, now);
            while gone.is_none() && presence.looks.is_some() {
                std::thread::yield_now();
                gone = presence.gone(&owners, now);
            }
            Some(gone?.iter().map(Principal::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(gone(0).unwrap(), "");
        assert_eq!(gone(4), None);
        assert_eq!(gone(25).unwrap(), "");
        // One has come back meanwhile, and others are gone since now.
        cgroup("system.slice/db.service/", 1);
        cgroup("vs1/shop/", 0);
        fs::remove_dir_all(folder.path().join("proc/7")).unwrap();
        assert_eq!(gone(31).unwrap(), "user:1005 container:ffff");
        assert_eq!(gone(61).unwrap(), "user:1000 user:1005 container:ffff container:shop");
        // What cannot be read says nothing.
        fs::remove_file(folder.path().join("sys/fs/cgroup/cgroup.procs")).unwrap();
        fs::remove_dir_all(folder.path().join("proc")).unwrap();
        assert_eq!(gone(70).unwrap(), "");
    }
}
