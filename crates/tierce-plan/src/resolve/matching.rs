//! Which live threads belong to a task: `match = …`.

use crate::model::glob::Glob;
use crate::model::realtime::{MatchClass, RealTime};
use crate::model::trust::system_unit;
use crate::model::{By, Checksum, Child, MatchEntry, Matcher, Plan};
use crate::text::faults::Fault;
use crate::text::tree::{Collector, Fields, Kind, Value};
use std::collections::HashSet;
use std::ops::RangeInclusive;

/// Entries that are compared with each other.
const ENTRIES_MAX: usize = 1000;

/// `trust = "names"`: whether it is there.
pub fn trust(owner: &str, fields: &mut Fields, collector: &mut Collector) -> bool {
    let Some(value) = fields.take("trust") else { return false };
    let text = collector.text(&format!("`trust` of {owner}"), value);
    if let Some(other) = text.filter(|text| *text != "names") {
        let fault = Fault::new("trust_must_be_known", value.spot, "a plan can trust names only").value(other);
        collector
            .add(fault.bound("\"names\"").hint("leave it out to be warned of matches that can be forged"));
    }
    text == Some("names")
}

/// One table, or a list of which any suffices.
pub fn read(owner: &str, value: &Value, collector: &mut Collector) -> Vec<Matcher> {
    let items = collector.one_or_more(value);
    if items.is_empty() {
        let fault =
            Fault::new("list_must_not_be_empty", value.spot, format!("`match` of {owner} is an empty list"));
        collector.add(fault);
    }
    items.iter().filter_map(|item| matcher(owner, item, collector)).collect()
}

fn matcher(owner: &str, value: &Value, collector: &mut Collector) -> Option<Matcher> {
    let what = format!("`match` of {owner}");
    let table = collector.table_or(&what, value, |name| Some(format!("match = {{ comm = \"{name}\" }}")))?;
    if table.entries.is_empty() {
        let fault = Fault::new("match_must_say_what", value.spot, format!("{what} would fit every thread"));
        collector.add(fault.hint("unmatched threads go to the node with `default = true`"));
    }
    let has_exe = table.entries.iter().any(|(key, _)| key.text == "exe");
    let mut fields = Fields::new(what, table);
    let matcher = Matcher {
        comm: glob("comm", 15, &mut fields, collector),
        pcomm: glob("pcomm", 15, &mut fields, collector),
        exe: glob("exe", usize::MAX, &mut fields, collector),
        exe_owner: id("exe_owner", &mut fields, collector),
        checksum: checksum(has_exe, &mut fields, collector),
        cgroup: glob("cgroup", usize::MAX, &mut fields, collector),
        unit: glob("unit", usize::MAX, &mut fields, collector),
        system_unit: glob("system_unit", usize::MAX, &mut fields, collector),
        uid: ids("uid", &mut fields, collector),
        gid: ids("gid", &mut fields, collector),
        pid: id("pid", &mut fields, collector),
        tid: id("tid", &mut fields, collector),
        ppid: id("ppid", &mut fields, collector),
        nice: nice(&mut fields, collector),
        class: class(&mut fields, collector),
        is_kthread: fields.bool("is_kthread", collector),
        is_group_leader: fields.bool("is_group_leader", collector),
    };
    fields.finish(collector);
    if let (Some(_), Some(true)) = (matcher.class, matcher.is_kthread) {
        let message = format!("`class` of `match` of {owner} fits no kernel thread");
        let fault = Fault::new("class_is_of_user_threads", value.spot, message);
        collector.add(fault.hint("kernel threads keep their class: leave out `class`, or `is_kthread`"));
    }
    Some(matcher)
}

/// Of the file at a path that is given, too: so few files have to be read.
fn checksum(has_exe: bool, fields: &mut Fields, collector: &mut Collector) -> Option<Checksum> {
    let value = fields.take("checksum")?;
    let text = collector.text(&fields.what("checksum"), value)?;
    if !has_exe {
        let fault = Fault::new("checksum_needs_exe", value.spot, "a checksum is that of an `exe`");
        collector.add(fault.hint("name the path, too: `exe = \"/opt/audio\"`, or a pattern for it"));
    }
    match text.parse() {
        Ok(checksum) => Some(checksum),
        Err(why) => {
            let fault = Fault::new("checksum_must_be_sha256", value.spot, why).value(text);
            collector.add(fault.hint("`sha256sum FILE` prints the digits: `checksum = \"sha256:…\"`"));
            None
        }
    }
}

fn class(fields: &mut Fields, collector: &mut Collector) -> Option<MatchClass> {
    let value = fields.take("class")?;
    let text = collector.text(&fields.what("class"), value)?;
    let known = MatchClass::ALL.into_iter().find(|class| class.name() == text);
    if known.is_none() {
        let fault = Fault::new("class_must_be_known", value.spot, "no such scheduling class").value(text);
        collector.add(
            fault
                .bound("\"fifo\", \"rr\" or \"realtime\"")
                .hint("threads of other classes need no `class`; those of SCHED_DEADLINE keep theirs"),
        );
    }
    known
}

/// A pattern; one without wildcards that is longer than the kernel keeps can never fit.
fn glob(name: &'static str, longest: usize, fields: &mut Fields, collector: &mut Collector) -> Option<Glob> {
    let value = fields.take(name)?;
    let text = collector.text(&fields.what(name), value)?;
    if text.len() > longest && !text.contains(['*', '[', '\\']) {
        let fault = Fault::new("comm_is_at_most_15_bytes", value.spot, "the kernel cuts thread names off");
        collector
            .add(fault.value(text.len()).bound(longest).hint(format!("write `{}*`", cut(text, longest))));
    }
    // As /proc has it, or relative to the root group.
    let text = if name == "cgroup" { text.trim_start_matches('/') } else { text };
    match Glob::new(text) {
        Ok(glob) => Some(glob),
        Err(error) => {
            collector.add(Fault::new("pattern_must_be_a_glob", value.spot, error).value(text));
            None
        }
    }
}

fn cut(text: &str, longest: usize) -> &str {
    let end = (0..=longest.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}

fn id(name: &'static str, fields: &mut Fields, collector: &mut Collector) -> Option<u32> {
    fields.whole(name, 0, i64::from(u32::MAX), collector).map(|id| id as u32)
}

fn ids(name: &'static str, fields: &mut Fields, collector: &mut Collector) -> Option<RangeInclusive<u32>> {
    let range = range(name, 0..=i64::from(u32::MAX), fields, collector)?;
    Some(*range.start() as u32..=*range.end() as u32)
}

fn nice(fields: &mut Fields, collector: &mut Collector) -> Option<RangeInclusive<i32>> {
    let range = range("nice", -20..=19, fields, collector)?;
    Some(*range.start() as i32..=*range.end() as i32)
}

/// `nice = 5` or `nice = { min = -20, max = -1 }`.
fn range(
    name: &'static str,
    all: RangeInclusive<i64>,
    fields: &mut Fields,
    collector: &mut Collector,
) -> Option<RangeInclusive<i64>> {
    let value = fields.take(name)?;
    let (least, most, what) = (*all.start(), *all.end(), fields.what(name));
    let Kind::Table(table) = &value.kind else {
        let only = collector.whole(&what, value, least, most)?;
        return Some(only..=only);
    };
    let mut fields = Fields::new(&what, table);
    let min = fields.whole("min", least, most, collector).unwrap_or(least);
    let max = fields.whole("max", least, most, collector).unwrap_or(most);
    fields.finish(collector);
    if min > max {
        let fault = Fault::new("min_must_not_exceed_max", value.spot, format!("{what} is an empty range"));
        collector.add(fault.value(min).bound(max));
        return None;
    }
    Some(min..=max)
}

/// What is known about a live thread. An unknown text is empty; a pattern fits it only if it fits the empty text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    /// Name of the thread.
    pub comm: String,
    /// Name of its process: of the first thread.
    pub pcomm: String,
    /// Path of the executable.
    pub exe: String,
    /// User who owns the executable; `None`: the file at that path is not the one that it runs.
    pub exe_owner: Option<u32>,
    /// What is in the executable, if that was asked for ([`Plan::wants_checksum`]) and is known.
    pub checksum: Option<Checksum>,
    /// Path of its cgroup; a leading `/` does not matter.
    pub cgroup: String,
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Real user id: another one in a program that runs with its owner's rights (set-user-ID).
    pub real_uid: u32,
    /// Real group id.
    pub real_gid: u32,
    /// Process id (thread group id).
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// Process id of the parent.
    pub ppid: u32,
    /// Nice value.
    pub nice: i32,
    /// Its real-time class and priority, if it has one: that which it had when a plan took it out of it.
    pub realtime: Option<RealTime>,
    /// Whether it is a kernel thread.
    pub is_kthread: bool,
    /// When it began, since the boot of the machine, in ticks.
    pub started: u64,
}

impl Thread {
    /// Its systemd unit: the innermost service or scope of the cgroup path, else the innermost slice.
    ///
    /// ```
    /// let cgroup = "/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service".to_string();
    /// assert_eq!(tierce_plan::Thread { cgroup, ..Default::default() }.unit(), Some("pipewire.service"));
    /// ```
    pub fn unit(&self) -> Option<&str> {
        unit(&self.cgroup)
    }

    /// The service or scope that the system's manager has made for it: see [`system_unit`].
    pub fn system_unit(&self) -> Option<&str> {
        system_unit(&self.cgroup)
    }
}

/// What is known of a live thread so far. `None`: it is not known yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Glimpse<'a> {
    /// Name of the thread.
    pub comm: Option<&'a str>,
    /// Name of its process.
    pub pcomm: Option<&'a str>,
    /// Path of the executable.
    pub exe: Option<&'a str>,
    /// Path of its cgroup.
    pub cgroup: Option<&'a str>,
    /// Thread id.
    pub tid: u32,
    /// Process id.
    pub pid: u32,
    /// Whether it is of a real-time class.
    pub is_realtime: Option<bool>,
    /// Whether it is a kernel thread.
    pub is_kthread: bool,
}

/// The innermost service or scope of a cgroup path, else the innermost slice.
fn unit(cgroup: &str) -> Option<&str> {
    let innermost = |kinds: &[&str]| {
        let mut parts = cgroup.rsplit('/');
        parts.find(|part| kinds.iter().any(|kind| part.ends_with(kind)))
    };
    innermost(&[".service", ".scope"]).or_else(|| innermost(&[".slice"]))
}

impl Matcher {
    /// Whether all that is given fits the thread.
    pub fn fits(&self, thread: &Thread) -> bool {
        self.checksum.is_none_or(|wanted| thread.checksum == Some(wanted)) && self.fits_otherwise(thread)
    }

    /// Whether all but the checksum fits.
    fn fits_otherwise(&self, thread: &Thread) -> bool {
        let id = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
        self.may_fit(&Glimpse {
            comm: Some(&thread.comm),
            pcomm: Some(&thread.pcomm),
            exe: Some(&thread.exe),
            cgroup: Some(&thread.cgroup),
            tid: thread.tid,
            pid: thread.pid,
            is_realtime: Some(thread.realtime.is_some()),
            is_kthread: thread.is_kthread,
        }) && self.class.is_none_or(|class| thread.realtime.is_some_and(|is| class.fits(is.class)))
            && among(&self.uid, thread.uid)
            && among(&self.uid, thread.real_uid)
            && among(&self.gid, thread.gid)
            && among(&self.gid, thread.real_gid)
            && self.exe_owner.is_none_or(|wanted| thread.exe_owner == Some(wanted))
            && id(self.ppid, thread.ppid)
            && among(&self.nice, thread.nice)
    }

    /// Whether nothing of what is known keeps it from fitting.
    pub fn may_fit(&self, seen: &Glimpse) -> bool {
        let glob = |glob: &Option<Glob>, text: Option<&str>| match (glob, text) {
            (Some(glob), Some(text)) => glob.matches(text),
            _ => true,
        };
        let id = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
        let unit_of = |wanted: &Option<Glob>, of: fn(&str) -> Option<&str>| match (wanted, seen.cgroup) {
            (Some(wanted), Some(cgroup)) => of(cgroup).is_some_and(|is| wanted.matches(is)),
            _ => true,
        };
        glob(&self.comm, seen.comm)
            && glob(&self.pcomm, seen.pcomm)
            && glob(&self.exe, seen.exe)
            && glob(&self.cgroup, seen.cgroup.map(|path| path.trim_start_matches('/')))
            && unit_of(&self.unit, unit)
            && unit_of(&self.system_unit, system_unit)
            && id(self.pid, seen.pid)
            && id(self.tid, seen.tid)
            && (self.class.is_none() || (seen.is_realtime != Some(false) && !seen.is_kthread))
            && self.is_kthread.is_none_or(|is| is == seen.is_kthread)
            && self.is_group_leader.is_none_or(|is| is == (seen.pid == seen.tid))
    }
}

impl By {
    /// Whose copy a thread belongs to, which matches by this pattern for its cgroup, if by one: its real user id, or the begin of the path
    /// of its cgroup, with as many parts as the pattern has before `**`. Without these the whole path.
    pub fn whose(self, thread: &Thread, pattern: Option<&Glob>) -> String {
        if self == By::Uid {
            return thread.real_uid.to_string();
        }
        let parts = pattern.map_or(0, |glob| {
            glob.as_str().trim_start_matches('/').split('/').take_while(|part| !part.contains("**")).count()
        });
        let path = thread.cgroup.trim_start_matches('/');
        match parts {
            0 => path.to_string(),
            parts => path.split('/').take(parts).collect::<Vec<_>>().join("/"),
        }
    }
}

/// Whether a number is in the range, if one is given.
fn among<T: PartialOrd>(range: &Option<RangeInclusive<T>>, number: T) -> bool {
    range.as_ref().is_none_or(|range| range.contains(&number))
}

/// Whether every number of the other range is in it.
fn holds<T: PartialOrd>(own: &Option<RangeInclusive<T>>, other: &Option<RangeInclusive<T>>) -> bool {
    own.as_ref().is_none_or(|own| {
        other.as_ref().is_some_and(|other| own.contains(other.start()) && own.contains(other.end()))
    })
}

impl Matcher {
    /// Whether it fits every thread that the other fits, as far as that is plain to see.
    fn covers(&self, other: &Matcher) -> bool {
        let glob = |own: &Option<Glob>, other: &Option<Glob>| match (own, other) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own.covers(other),
        };
        let id = |own: Option<u32>, other: Option<u32>| own.is_none() || own == other;
        let flag = |own: Option<bool>, other: Option<bool>| own.is_none() || own == other;
        glob(&self.comm, &other.comm)
            && glob(&self.pcomm, &other.pcomm)
            && glob(&self.exe, &other.exe)
            && glob(&self.cgroup, &other.cgroup)
            && glob(&self.unit, &other.unit)
            && glob(&self.system_unit, &other.system_unit)
            && id(self.exe_owner, other.exe_owner)
            && (self.checksum.is_none() || self.checksum == other.checksum)
            && holds(&self.uid, &other.uid)
            && holds(&self.gid, &other.gid)
            && id(self.pid, other.pid)
            && id(self.tid, other.tid)
            && id(self.ppid, other.ppid)
            && holds(&self.nice, &other.nice)
            && self.class.is_none_or(|own| other.class.is_some_and(|class| own.covers(class)))
            && flag(self.is_kthread, other.is_kthread)
            && flag(self.is_group_leader, other.is_group_leader)
    }
}

impl Plan {
    /// Entries that no thread can belong to, each with the earlier one that takes all that it would fit. Of copies the first stands for
    /// all.
    pub fn shadowed(&self) -> Vec<(&MatchEntry, &MatchEntry)> {
        let is_first = |entry: &&MatchEntry| entry.copy.is_none_or(|copy| copy.index == 0);
        let entries: Vec<_> = self.entries.iter().filter(is_first).take(ENTRIES_MAX).collect();
        let shadow = |(at, entry): (usize, &MatchEntry)| {
            let takes = |earlier: &MatchEntry| {
                let covered = |matcher: &Matcher| earlier.any.iter().any(|own| own.covers(matcher));
                entry.any.iter().all(covered)
            };
            entries[..at].iter().position(|earlier| takes(earlier))
        };
        let found = entries.iter().copied().enumerate();
        let found = found.filter_map(|(at, entry)| Some((entry, entries[shadow((at, entry))?])));
        found.collect()
    }

    /// How a thread fits an entry, if it does: by the best of its matches.
    pub fn fit(&self, entry: usize, thread: &Thread) -> Option<Fit> {
        let fits = self.entries[entry].any.iter().enumerate().filter(|(_, matcher)| matcher.fits(thread));
        fits.map(|(at, matcher)| Fit { by_names: matcher.is_names_only(), at }).min()
    }

    /// The first entry of [`Plan::entries`] that fits a live thread; `None`: it belongs to the default node. Of copies it is the first,
    /// whichever of them the thread belongs to: they follow it.
    pub fn entry_of(&self, thread: &Thread) -> Option<usize> {
        self.entries.iter().position(|entry| entry.any.iter().any(|matcher| matcher.fits(thread)))
    }

    /// Whether some entry may fit a thread of which this much is known.
    pub fn may_match(&self, seen: &Glimpse) -> bool {
        self.matchers().any(|matcher| matcher.may_fit(seen))
    }

    /// Whether the checksum of what the thread runs decides. That is the file at its path, as with [`Matcher::exe_owner`].
    pub fn wants_checksum(&self, thread: &Thread) -> bool {
        let wants = |matcher: &Matcher| matcher.checksum.is_some() && matcher.fits_otherwise(thread);
        thread.exe_owner.is_some() && self.matchers().any(wants)
    }

    /// What decides where threads go.
    pub fn matchers(&self) -> impl Iterator<Item = &Matcher> {
        self.entries.iter().flat_map(|entry| entry.any.iter())
    }

    /// Entries that the old plan has not, or not so: only threads that fit these may have to move, beside those whose own
    /// entry is gone. `None`: what both have has another order, so any thread may.
    pub fn new_entries(&self, old: &Plan) -> Option<Vec<usize>> {
        let mut rest = old.entries.iter();
        let known: HashSet<&str> = old.entries.iter().map(|entry| old.child_name(entry.target)).collect();
        let mut new = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            let name = self.child_name(entry.target);
            if !known.contains(name) {
                new.push(at);
                continue;
            }
            let was = rest.find(|was| old.child_name(was.target) == name)?;
            if was.any != entry.any
                || matches!(was.target, Child::Task(_)) != matches!(entry.target, Child::Task(_))
            {
                new.push(at);
            }
        }
        Some(new)
    }
}

/// How well a thread fits a match. Less is better: of several threads that want the place of one task the plan prefers who
/// fits by something that its owner cannot choose, then by what comes first in the list of the match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    /// By what the owner of the thread can choose alone.
    pub by_names: bool,
    /// Index into [`MatchEntry::any`].
    pub at: usize,
}

impl MatchEntry {
    /// The only threads that may fit; `None`: they are not named one by one.
    pub fn tids(&self) -> Option<Vec<u32>> {
        self.any.iter().map(|matcher| matcher.tid).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::any_cpu::unplaced;
    use crate::model::realtime::Class;

    fn plan(text: &str) -> Result<Plan, crate::Faults> {
        Plan::of_text(text, "match.toml", Default::default(), unplaced)
    }

    /// Which of the tasks a, b, … with these matches a thread falls to.
    fn entry(matches: &[&str], thread: &Thread) -> Option<usize> {
        let mut text = "[node.top]\npolicy = \"fair\"\ncpu = 0\n".to_string();
        for (index, matches) in matches.iter().enumerate() {
            text += &format!("[task.t{index}]\nunder.top = {{}}\nmatch = {matches}\n");
        }
        plan(&text).unwrap().entry_of(thread)
    }

    fn thread() -> Thread {
        Thread {
            comm: "audio-0".into(),
            pcomm: "rt-app".into(),
            exe: "/usr/bin/rt-app".into(),
            cgroup: "/user.slice/user-1000.slice/session-3.scope".into(),
            exe_owner: Some(0),
            checksum: None,
            uid: 1000,
            gid: 100,
            real_uid: 1000,
            real_gid: 100,
            pid: 70,
            tid: 71,
            ppid: 1,
            nice: -5,
            realtime: Some(RealTime { class: Class::Fifo, priority: 50 }),
            is_kthread: false,
            started: 5,
        }
    }

    /// Names of the new entries.
    fn new(old: &[(&str, &str)], now: &[(&str, &str)]) -> Option<Vec<String>> {
        let plan = |list: &[(&str, &str)]| {
            let mut text = "[node.top]\npolicy = \"fair\"\ncpu = 0\n".to_string();
            for (name, matches) in list {
                text += &format!("[{name}]\nunder.top = {{}}\nmatch = {matches}\n");
            }
            plan(&text).unwrap()
        };
        let now = plan(now);
        let name = |at: usize| now.child_name(now.entries[at].target).to_string();
        Some(now.new_entries(&plan(old))?.into_iter().map(name).collect())
    }

    #[test]
    fn new_entries_are_what_may_move_threads() {
        let [a, b, c] =
            [("task.a", "{ comm = \"a\" }"), ("task.b", "{ tid = 7 }"), ("tasks.c", "{ uid = 1 }")];
        let names = |list: &[&str]| Some(list.iter().map(|name| name.to_string()).collect());
        assert_eq!(new(&[a, b, c], &[a, b, c]), names(&[]));
        assert_eq!(new(&[a, c], &[b, a, c]), names(&["b"]), "one more");
        assert_eq!(new(&[a, b, c], &[a, c]), names(&[]), "one less");
        assert_eq!(new(&[a, b, c], &[b, a, c]), None, "another order");
        assert_eq!(new(&[a, b, c], &[a, ("task.b", "{ tid = 8 }"), c]), names(&["b"]), "another match");
        assert_eq!(new(&[a, b, c], &[a, b, ("task.c", c.1)]), names(&["c"]), "another kind");
        assert_eq!(new(&[a, b], &[b, c]), names(&["c"]));
    }

    #[test]
    fn an_entry_names_its_threads_or_does_not() {
        let tids = |matches: &str| {
            let text = format!(
                "[node.top]\npolicy = \"fair\"\ncpu = 0\n[tasks.t]\nunder.top = {{}}\nmatch = {matches}\n"
            );
            plan(&text).unwrap().entries[0].tids()
        };
        assert_eq!(tids("{ tid = 7 }"), Some(vec![7]));
        assert_eq!(tids("[{ tid = 7, comm = \"a\" }, { tid = 9 }]"), Some(vec![7, 9]));
        assert_eq!(tids("[{ tid = 7 }, { comm = \"a\" }]"), None);
    }

    /// What has been seen of a thread never rules out what fits the whole thread, and rules out what it contradicts.
    #[test]
    fn a_glimpse_rules_out_only_what_it_contradicts() {
        let may = |matches: &str, seen: &Glimpse| {
            let text = format!(
                "[node.top]\npolicy = \"fair\"\ncpu = 0\n[task.t]\nunder.top = {{}}\nmatch = {matches}\n"
            );
            plan(&text).unwrap().may_match(seen)
        };
        let thread = thread();
        let named = Glimpse { comm: Some(&thread.comm), tid: 71, pid: 70, ..Glimpse::default() };
        let known = Glimpse { cgroup: Some(&thread.cgroup), exe: Some(&thread.exe), ..named };
        for (matches, by_name, by_all) in [
            (r#"{ comm = "audio*" }"#, true, true),
            (r#"{ comm = "video*" }"#, false, false),
            (r#"[{ comm = "video*" }, { uid = 0 }]"#, true, true),
            (r#"{ pcomm = "other" }"#, true, true),
            (r#"{ exe = "/bin/sh" }"#, true, false),
            (r#"{ cgroup = "system.slice/**" }"#, true, false),
            (r#"{ cgroup = "user.slice/**" }"#, true, true),
            (r#"{ unit = "cron.service" }"#, true, false),
            (r#"{ unit = "session-3.scope" }"#, true, true),
            (r#"{ system_unit = "*.scope" }"#, true, false),
            ("{ tid = 71 }", true, true),
            ("{ tid = 70 }", false, false),
            ("{ pid = 71 }", false, false),
            ("{ is_kthread = true }", false, false),
            ("{ is_group_leader = true }", false, false),
            ("{ gid = 0, ppid = 3, nice = 7 }", true, true),
            (r#"{ class = "rr" }"#, true, true),
        ] {
            assert_eq!((may(matches, &named), may(matches, &known)), (by_name, by_all), "{matches}");
        }
        let fifo = r#"{ class = "fifo" }"#;
        assert!(may(fifo, &Glimpse { is_realtime: Some(true), ..named }));
        assert!(!may(fifo, &Glimpse { is_realtime: Some(false), ..named }));
        assert!(!may(fifo, &Glimpse { is_kthread: true, ..named }), "no kernel thread, whatever its class");
    }

    #[test]
    fn every_key_decides() {
        for (matches, fits) in [
            (r#"{ comm = "audio*" }"#, true),
            (r#"{ comm = "audio" }"#, false),
            (r#"{ pcomm = "rt-app" }"#, true),
            (r#"{ pcomm = "rt" }"#, false),
            (r#"{ exe = "**/rt-app" }"#, true),
            (r#"{ exe = "*/rt-app" }"#, false),
            (r#"{ cgroup = "user.slice/**" }"#, true),
            (r#"{ cgroup = "/user.slice/**" }"#, true),
            (r#"{ cgroup = "system.slice/**" }"#, false),
            (r#"{ unit = "session-*.scope" }"#, true),
            (r#"{ unit = "user-1000.slice" }"#, false),
            (r#"{ system_unit = "session-*.scope" }"#, false),
            ("{ uid = 1000 }", true),
            ("{ uid = 0 }", false),
            ("{ gid = 100 }", true),
            ("{ gid = 0 }", false),
            ("{ pid = 70 }", true),
            ("{ pid = 71 }", false),
            ("{ tid = 71 }", true),
            ("{ tid = 70 }", false),
            ("{ ppid = 1 }", true),
            ("{ ppid = 2 }", false),
            ("{ nice = -5 }", true),
            ("{ nice = { max = -1 } }", true),
            ("{ nice = { min = 0 } }", false),
            (r#"{ class = "fifo" }"#, true),
            (r#"{ class = "realtime" }"#, true),
            (r#"{ class = "rr" }"#, false),
            ("{ is_kthread = false }", true),
            ("{ is_kthread = true }", false),
            ("{ is_group_leader = false }", true),
            ("{ is_group_leader = true }", false),
            (r#"{ comm = "audio*", uid = 0 }"#, false),
            (r#"[{ comm = "audio*", uid = 0 }, { nice = -5 }]"#, true),
        ] {
            assert_eq!(entry(&[matches], &thread()).is_some(), fits, "{matches}");
        }
    }

    #[test]
    fn what_an_earlier_entry_takes_is_shadowed() {
        for (first, second, shadowed) in [
            (r#"{ comm = "x" }"#, r#"{ comm = "x" }"#, true),
            (r#"{ comm = "*" }"#, r#"{ comm = "firefox" }"#, true),
            (r#"{ comm = "*" }"#, r#"{ comm = "x*", nice = 5 }"#, true),
            (r#"{ comm = "*" }"#, r#"{ comm = "kworker/0:1" }"#, false),
            (r#"{ comm = "**" }"#, r#"{ comm = "k**" }"#, true),
            (r#"{ comm = "fire*" }"#, r#"{ comm = "firefox" }"#, true),
            (r#"{ comm = "fire*" }"#, r#"{ comm = "fi*" }"#, false),
            (r#"{ comm = "x" }"#, r#"{ uid = 1 }"#, false),
            (r#"{ comm = "x", uid = 1 }"#, r#"{ comm = "x" }"#, false),
            (r#"{ system_unit = "x*" }"#, r#"{ system_unit = "x.scope" }"#, true),
            (r#"{ system_unit = "x" }"#, r#"{ unit = "x" }"#, false),
            ("{ uid = 1 }", "{ uid = 1, gid = 2 }", true),
            ("{ nice = { min = -5, max = 5 } }", "{ nice = 5 }", true),
            ("{ nice = 5 }", "{ nice = { min = 5, max = 6 } }", false),
            (r#"{ class = "realtime" }"#, r#"{ class = "rr" }"#, true),
            (r#"{ class = "rr" }"#, r#"{ class = "realtime" }"#, false),
            (r#"{ class = "rr" }"#, r#"{ comm = "x" }"#, false),
            ("{ is_kthread = true }", "{ is_kthread = false }", false),
            (r#"[{ comm = "a" }, { comm = "b" }]"#, r#"[{ comm = "b" }, { comm = "a" }]"#, true),
            (r#"{ comm = "a" }"#, r#"[{ comm = "b" }, { comm = "a" }]"#, false),
        ] {
            let text = format!(
                "[node.top]\npolicy = \"fair\"\ncpu = 0\n[task.a]\nunder.top = {{}}\nmatch = {first}\n\
                 [tasks.b]\nunder.top = {{}}\nmatch = {second}\n"
            );
            assert_eq!(plan(&text).unwrap().shadowed().len(), usize::from(shadowed), "{first} {second}");
        }
    }

    /// Whatever a user names his own units, and a container its services.
    #[test]
    fn units_of_the_system_are_its_own() {
        let wanted = Matcher { system_unit: Some(Glob::new("web.service").unwrap()), ..Matcher::default() };
        for (cgroup, unit, fits) in [
            ("/system.slice/web.service", Some("web.service"), true),
            ("system.slice/web.service/worker/audio.service", Some("web.service"), true),
            ("/system.slice/system-web.slice/web.service", Some("web.service"), true),
            ("/web.service", Some("web.service"), true), // Slice=-.slice
            ("/shop.slice/web.service", Some("web.service"), true),
            ("/system.slice/audio.service/web.service", Some("audio.service"), false),
            ("/system.slice/docker-1.scope/system.slice/web.service", Some("docker-1.scope"), false),
            ("/docker/1/system.slice/web.service", None, false),
            ("/user.slice/user-1000.slice/user@1000.service/app.slice/web.service", None, false),
            ("/user.slice/user-1000.slice/session-3.scope", None, false),
            ("/user.slice/web.service", None, false),
            ("/../system.slice/web.service", None, false),
            ("/system.slice/web.service (deleted)", None, false),
            ("/system.slice", None, false),
            ("/", None, false),
            ("", None, false),
        ] {
            let thread = Thread { cgroup: cgroup.into(), ..Thread::default() };
            assert_eq!((thread.system_unit(), wanted.fits(&thread)), (unit, fits), "{cgroup}");
        }
    }

    #[test]
    fn a_checksum_is_asked_for_if_it_decides() {
        let sum = Checksum([0xab; 32]);
        let text = format!(
            "[node.top]\npolicy = \"fair\"\ncpu = 0\n[task.t]\nunder.top = {{}}\n\
             match = {{ exe = \"**/rt-app\", checksum = \"{sum}\", uid = 1000 }}\n"
        );
        let plan = plan(&text).unwrap();
        let at = |thread: &Thread| (plan.wants_checksum(thread), plan.entry_of(thread).is_some());
        let (mut thread, other) = (Thread { exe_owner: Some(0), ..thread() }, Checksum([0xaa; 32]));
        assert_eq!(at(&thread), (true, false), "not known yet");
        assert_eq!(at(&Thread { checksum: Some(other), ..thread.clone() }), (true, false));
        assert_eq!(at(&Thread { exe: "/bin/sh".into(), ..thread.clone() }), (false, false));
        assert_eq!(at(&Thread { uid: 0, ..thread.clone() }), (false, false));
        assert_eq!(
            at(&Thread { exe_owner: None, ..thread.clone() }),
            (false, false),
            "not the file at that path"
        );
        thread.checksum = Some(sum);
        assert_eq!(at(&thread), (true, true));
        assert!(plan.fit(0, &thread).is_some_and(|fit| !fit.by_names));
    }

    #[test]
    fn whose_copy_it_is() {
        let cgroup = "/machine.slice/shop.scope/payload/web".to_string();
        let thread = Thread { cgroup, uid: 0, real_uid: 1000, ..Thread::default() };
        assert_eq!(By::Uid.whose(&thread, None), "1000", "also in a program with its owner's rights");
        for (pattern, whose) in [
            (Some("machine.slice/*"), "machine.slice/shop.scope"),
            (Some("/machine.slice/*/**"), "machine.slice/shop.scope"),
            (Some("machine.slice/**"), "machine.slice"),
            (Some("**/web"), "machine.slice/shop.scope/payload/web"),
            (None, "machine.slice/shop.scope/payload/web"),
        ] {
            let glob = pattern.map(|pattern| Glob::new(pattern).unwrap());
            assert_eq!(By::Cgroup.whose(&thread, glob.as_ref()), whose, "{pattern:?}");
        }
    }

    #[test]
    fn the_first_entry_wins() {
        assert_eq!(entry(&["{ uid = 7 }", "{ uid = 1000 }", r#"{ comm = "**" }"#], &thread()), Some(1));
        assert_eq!(entry(&["{ uid = 7 }"], &thread()), None);
    }
}
