//! What of a match the owner of a thread can choose.
//!
//! A thread can take any name, any user may start any program, and may put his threads into cgroups below his part of
//! `user.slice`. Nobody but root can take another user's id, or put threads into a cgroup that root has made, or into a unit of the system's.
//! But some services of the system run what users tell them to run ([`runs_programs_of_users`]). Who may have a real-time class, root
//! says (CAP_SYS_NICE, RLIMIT_RTPRIO).

use super::Matcher;
use crate::Glob;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::OnceLock;

/// The service or scope of a cgroup path that the system's manager has made, and no user's: what comes first below slices, unless it is in
/// `user.slice`. What is inside of it (a container's own units, a cgroup that a service has made) is not looked at. Only root puts threads
/// there.
///
/// ```
/// use tierce_plan::system_unit;
/// assert_eq!(system_unit("/system.slice/web.service/worker"), Some("web.service"));
/// assert_eq!(system_unit("/machine.slice/shop.scope/system.slice/web.service"), Some("shop.scope"));
/// assert_eq!(system_unit("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service"), None);
/// ```
pub fn system_unit(cgroup: &str) -> Option<&str> {
    let path = cgroup.trim_start_matches('/');
    let first = path.split('/').find(|part| !part.ends_with(".slice"))?;
    let is_unit = first.ends_with(".service") || first.ends_with(".scope");
    (is_unit && path.split('/').next() != Some("user.slice")).then_some(first)
}

/// Services that run programs of users: jobs at a time, commands that mail is given to, and sessions where PAM gives these no unit of
/// their own.
const OF_USERS: [&str; 29] = [
    "anacron.service",
    "at.service",
    "atd.service",
    "console-getty.service",
    "container-getty@*.service",
    "cron.service",
    "cron-*.service",
    "crond.service",
    "cronie.service",
    "dropbear.service",
    "dropbear@*.service",
    "exim4.service",
    "fcron.service",
    "getty@*.service",
    "incron.service",
    "opensmtpd.service",
    "postfix.service",
    "postfix@*.service",
    "sendmail.service",
    "serial-getty@*.service",
    "ssh.service",
    "ssh@*.service",
    "sshd.service",
    "sshd@*.service",
    "sshd-unix-local@*.service",
    "sshd-vsock@*.service",
    "slurmd.service",
    "tailscaled.service",
    "user@*.service",
];

/// Whether a service of the system runs programs of users, so that a thread which is in it is perhaps one of a user's.
///
/// ```
/// use tierce_plan::runs_programs_of_users;
/// assert!(runs_programs_of_users("cron.service") && runs_programs_of_users("sshd@7.service"));
/// assert!(!runs_programs_of_users("web.service"));
/// ```
pub fn runs_programs_of_users(unit: &str) -> bool {
    OF_USERS.iter().any(|pattern| match pattern.split_once('*') {
        Some((begin, end)) => unit.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end)),
        None => *pattern == unit,
    })
}

/// The patterns of these services, and of all cgroups in them: below `system.slice`, or a slice in that.
struct OfUsers {
    units: Vec<Glob>,
    cgroups: Vec<Glob>,
    /// Any services below a slice in `system.slice`. Most patterns fit none of them.
    deeper: Vec<Glob>,
    deeper_cgroups: Vec<Glob>,
}

impl OfUsers {
    fn known() -> &'static Self {
        static KNOWN: OnceLock<OfUsers> = OnceLock::new();
        KNOWN.get_or_init(|| {
            let below = |slice: &str, units: &[&str]| -> Vec<Glob> {
                let both = |unit: &&str| [format!("{slice}/{unit}"), format!("{slice}/{unit}/**")];
                units.iter().flat_map(both).filter_map(|text| Glob::new(&text).ok()).collect()
            };
            let deeper = "system.slice/*.slice";
            Self {
                units: OF_USERS.iter().filter_map(|unit| Glob::new(unit).ok()).collect(),
                cgroups: below("system.slice", &OF_USERS),
                deeper: below(deeper, &["*.service"]),
                deeper_cgroups: below(deeper, &OF_USERS),
            }
        })
    }

    fn has_cgroup(&self, cgroup: &Glob) -> bool {
        let meets = |globs: &[Glob]| globs.iter().any(|glob| cgroup.meets(glob));
        meets(&self.cgroups) || meets(&self.deeper) && meets(&self.deeper_cgroups)
    }
}

fn is_plain(pattern: &str) -> bool {
    !pattern.contains(['*', '?', '[', '\\'])
}

impl Matcher {
    /// Whether it fits by what the owner of a thread can choose alone: any user can make a thread that fits.
    pub fn is_names_only(&self) -> bool {
        let program = self.exe.is_some() && (self.exe_owner.is_some() || self.checksum.is_some());
        let ids = [self.uid.is_some(), self.gid.is_some(), self.pid.is_some(), self.tid.is_some()];
        let given = [program, self.class.is_some(), self.is_kthread == Some(true)];
        let is_sure = given.contains(&true) || ids.contains(&true);
        !is_sure
            && !self.cgroup.as_ref().is_some_and(is_guarded)
            && !self.system_unit.as_ref().is_some_and(is_own)
    }

    /// Whether it fits threads of services that run programs of users, by the unit or the cgroup.
    pub fn fits_programs_of_users(&self) -> bool {
        self.system_unit.as_ref().is_some_and(|unit| !is_own(unit))
            || self.cgroup.as_ref().is_some_and(is_of_users)
    }
}

impl Matcher {
    /// Whether the cgroup of a thread decides.
    pub fn looks_at_cgroups(&self) -> bool {
        self.cgroup.is_some() || self.unit.is_some() || self.system_unit.is_some()
    }
}

/// Whether a pattern fits only services that run what root has given them.
fn is_own(unit: &Glob) -> bool {
    match is_plain(unit.as_str()) {
        true => !runs_programs_of_users(unit.as_str()),
        false => !OfUsers::known().units.iter().any(|of_users| unit.meets(of_users)),
    }
}

/// Whether a pattern fits cgroups of a service that runs programs of users.
fn is_of_users(cgroup: &Glob) -> bool {
    match is_plain(cgroup.as_str()) {
        true => system_unit(cgroup.as_str()).is_some_and(runs_programs_of_users),
        false => OfUsers::known().has_cgroup(cgroup),
    }
}

/// Whether a pattern says where the cgroup is, and that is not where any user can put threads: a path from the root, but below
/// `user.slice` only the part of one user, and no service that runs programs of users.
fn is_guarded(cgroup: &Glob) -> bool {
    let mut parts = cgroup.as_str().split('/');
    let mut next = || parts.next().filter(|part| is_plain(part));
    match next() {
        Some("user.slice") => {
            next().is_some_and(|slice| slice != "user-.slice" && slice.starts_with("user-"))
        }
        Some(_) => !is_of_users(cgroup),
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
            Matcher { system_unit: glob("cron.service"), ..names.clone() },
            Matcher { system_unit: glob("sshd@7-10.0.0.1:22.service"), ..names.clone() },
            Matcher { system_unit: glob("*.service"), ..names.clone() },
            Matcher { cgroup: glob("system.slice/cron.service"), ..names.clone() },
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
            Matcher { system_unit: glob("x*"), ..Default::default() },
            Matcher { system_unit: glob("*.scope"), ..Default::default() },
            Matcher { system_unit: glob("cron.service"), uid: Some(0..=0), ..names.clone() },
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
            ("system.slice/audio*.service/**", true),
            ("system.slice/audio.service/**", true),
            ("system.slice/cron.service", false),
            ("system.slice/cron.service/**", false),
            ("system.slice/cron.service/job", false),
            ("system.slice/my-cron.service", true),
            ("system.slice/system-sshd.slice/sshd@7.service", false),
            ("system.slice/system-sshd.slice/**", false),
            ("system.slice/system-web.slice/web@*.service", true),
            ("other.slice/cron.service/job", false),
            ("system.slice/user@1000.service/app.slice/**", false),
            ("system.slice/*", false),
            ("system.slice/**", false),
            ("system.slice/a*", false),
            ("system.slice", true),
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
            assert_eq!(is_guarded(&glob(pattern).unwrap()), guarded, "{pattern}");
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
