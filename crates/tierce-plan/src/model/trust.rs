//! What of a match the owner of a thread can choose.
//!
//! A thread can take any name, any user may start any program, and may put his threads into cgroups below his part of
//! `user.slice`. Nobody but root can take another user's id, or put threads into a cgroup that root has made, or into a unit of the system's. Who may have a real-time
//! class, root says (CAP_SYS_NICE, RLIMIT_RTPRIO).

use super::Matcher;
use crate::Glob;
use std::fmt;
use std::ops::RangeInclusive;

impl Matcher {
    /// Whether it fits by what the owner of a thread can choose alone: any user can make a thread that fits.
    pub fn is_names_only(&self) -> bool {
        let program = self.exe.is_some() && (self.exe_owner.is_some() || self.checksum.is_some());
        let ids = [self.uid.is_some(), self.gid.is_some(), self.pid.is_some(), self.tid.is_some()];
        let cgroup = self.cgroup.as_ref().is_some_and(|cgroup| is_guarded(cgroup.as_str()));
        let given = [self.system_unit.is_some(), self.class.is_some(), self.is_kthread == Some(true)];
        !(program || cgroup || given.contains(&true) || ids.contains(&true))
    }
}

impl Matcher {
    /// Whether the cgroup of a thread decides.
    pub fn looks_at_cgroups(&self) -> bool {
        self.cgroup.is_some() || self.unit.is_some() || self.system_unit.is_some()
    }
}

/// Whether a pattern says where the cgroup is, and that is not where any user can put threads: a path from the root, but below
/// `user.slice` only the part of one user.
fn is_guarded(pattern: &str) -> bool {
    let mut parts = pattern.split('/');
    let mut next = || parts.next().filter(|part| !part.contains(['*', '?', '[', '\\']));
    match next() {
        Some("user.slice") => {
            next().is_some_and(|slice| slice != "user-.slice" && slice.starts_with("user-"))
        }
        Some(_) => true,
        None => false,
    }
}

fn range<T: PartialEq + fmt::Display>(range: &Option<RangeInclusive<T>>) -> Option<String> {
    range.as_ref().map(|range| match (range.start(), range.end()) {
        (least, most) if least == most => least.to_string(),
        (least, most) => format!("{{ min = {least}, max = {most} }}"),
    })
}

/// As in a plan: `comm = "audio*", uid = 1000`.
impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: &Option<Glob>| text.as_ref().map(|glob| format!("{:?}", glob.as_str()));
        let id = |id: Option<u32>| id.map(|id| id.to_string());
        let flag = |flag: Option<bool>| flag.map(|flag| flag.to_string());
        let keys = [
            ("comm", text(&self.comm)),
            ("pcomm", text(&self.pcomm)),
            ("exe", text(&self.exe)),
            ("exe_owner", id(self.exe_owner)),
            ("checksum", self.checksum.map(|checksum| format!("\"{checksum}\""))),
            ("cgroup", text(&self.cgroup)),
            ("unit", text(&self.unit)),
            ("system_unit", text(&self.system_unit)),
            ("uid", range(&self.uid)),
            ("gid", range(&self.gid)),
            ("pid", id(self.pid)),
            ("tid", id(self.tid)),
            ("ppid", id(self.ppid)),
            ("nice", range(&self.nice)),
            ("class", self.class.map(|class| format!("{:?}", class.name()))),
            ("is_kthread", flag(self.is_kthread)),
            ("is_group_leader", flag(self.is_group_leader)),
        ];
        let given = keys.into_iter().filter_map(|(key, value)| Some(format!("{key} = {}", value?)));
        f.write_str(&given.collect::<Vec<_>>().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Checksum, MatchClass};

    fn glob(text: &str) -> Option<Glob> {
        Some(Glob::new(text).unwrap())
    }

    #[test]
    fn what_an_owner_can_choose() {
        let names = Matcher { comm: glob("audio*"), ..Default::default() };
        for forged in [
            names.clone(),
            Matcher { pcomm: glob("x"), unit: glob("x.service"), ppid: Some(1), ..names.clone() },
            Matcher { nice: Some(-20..=-1), is_kthread: Some(false), ..names.clone() },
            Matcher { is_group_leader: Some(true), ..names.clone() },
            Matcher { exe: glob("/usr/bin/audio"), ..Default::default() },
            Matcher { exe_owner: Some(0), ..Default::default() }, // any program of root's
        ] {
            assert!(forged.is_names_only(), "{forged}");
        }
        for sure in [
            Matcher { uid: Some(0..=0), ..names.clone() },
            Matcher { gid: Some(0..=0), ..names.clone() },
            Matcher { pid: Some(7), ..names.clone() },
            Matcher { tid: Some(7), ..names.clone() },
            Matcher { is_kthread: Some(true), ..names.clone() },
            Matcher { class: Some(MatchClass::Fifo), ..names.clone() },
            Matcher { system_unit: glob("x.service"), ..Default::default() },
            Matcher { exe: glob("/usr/bin/audio"), exe_owner: Some(0), ..names.clone() },
            Matcher { exe: glob("/usr/bin/audio"), checksum: Some(Checksum([7; 32])), ..names.clone() },
        ] {
            assert!(!sure.is_names_only(), "{sure}");
        }
    }

    #[test]
    fn cgroups_where_any_user_can_put_threads() {
        for (pattern, guarded) in [
            ("system.slice/audio.service", true),
            ("system.slice/docker-*.scope", true),
            ("vs1/shop", true),
            ("machine", true),
            ("user.slice", false),
            ("user.slice/**", false),
            ("user.slice/**/build*", false),
            ("user.slice/user-*.slice/**", false),
            ("user.slice/user-1000.slice/**", true),
            ("user.slice/user-1000.slice", true),
            ("user.slice/user-.slice/x", false),
            ("**/build*/**", false),
            ("*.slice/x", false),
            ("[su]*/x", false),
            ("**", false),
        ] {
            assert_eq!(is_guarded(pattern), guarded, "{pattern}");
        }
    }

    #[test]
    fn shown_as_it_is_written() {
        let matcher = Matcher {
            comm: glob("audio*"),
            uid: Some(1000..=1000),
            nice: Some(-20..=-1),
            class: Some(MatchClass::RealTime),
            is_group_leader: Some(true),
            ..Default::default()
        };
        let text = "comm = \"audio*\", uid = 1000, nice = { min = -20, max = -1 }, class = \"realtime\", is_group_leader = true";
        assert_eq!(matcher.to_string(), text);
        assert_eq!(Matcher { nice: Some(5..=5), ..Default::default() }.to_string(), "nice = 5");
    }
}
