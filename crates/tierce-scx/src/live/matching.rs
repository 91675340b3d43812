//! Which thread belongs where.

use super::news::News;
use super::placing::{taken, GONE};
use super::{Bound, LeftOut, Live, Out};
use crate::dry_run;
use crate::threads::{self, Class, Proc};
use anyhow::Result;
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use tierce_plan::{Child, Copied, Cpus, Fit, Glimpse, Matcher, Plan, Thread};

/// Threads that are left out and known. A user can start any number.
const LEFT_OUT_MAX: usize = 4096;

impl Live {
    /// Look at those whose place may be another than under the old plan: each look is some ten system calls.
    pub(crate) fn match_again(&mut self, old: &Plan) -> Result<()> {
        self.guard_classes()?;
        let mut again = std::mem::take(&mut self.homeless);
        let new = self.plan.new_entries(old);
        let named = |new: &Vec<usize>| {
            let tids: Option<Vec<_>> = new.iter().map(|&entry| self.plan.entries[entry].tids()).collect();
            tids.map(|tids| tids.concat())
        };
        let (Some(named), Some(new)) = (new.as_ref().and_then(named), &new) else { return self.match_all() };
        again.extend(named);
        again.extend(self.bound.iter().filter(|(_, bound)| new.contains(&bound.entry)).map(|(tid, _)| *tid));
        again.into_iter().try_for_each(|tid| self.match_thread(tid))?;
        self.look_again()
    }

    /// The oldest first: of two that fit a task equally well that gets it.
    pub(crate) fn match_all(&mut self) -> Result<()> {
        let mut all = Proc::default().all();
        all.sort_by_key(|live| (live.thread.started, live.thread.tid));
        for live in all {
            let tid = live.thread.tid;
            self.looked = Some(live);
            self.match_thread(tid)?;
        }
        Ok(())
    }

    /// The thread may not run where its place is. It is in the default node until that changes.
    pub(super) fn lost_place(&mut self, tid: u32, error: tierce_policy::Error) {
        self.bound.remove(&tid);
        self.classes.give_back(tid);
        let live = self.look(tid);
        if let Some((entry, live)) = live.and_then(|live| Some((self.plan.entry_of(&live.thread)?, live))) {
            self.leave_out(&live.thread, entry, dry_run::may_run(&live, error), false);
        }
    }

    /// The user should know, once. (Threads are forgotten at times, so that this does not grow for ever.)
    pub(super) fn leave_out(&mut self, thread: &Thread, entry: usize, why: String, waits: bool) {
        if self.left_out.len() >= LEFT_OUT_MAX {
            self.left_out.clear();
            self.forgotten = true;
        }
        let target = self.plan.child_name(self.plan.entries[entry].target).to_string();
        let fit = self.plan.fit(entry, thread);
        let by = fit.map(|fit| self.plan.entries[entry].any[fit.at].to_string()).unwrap_or_default();
        let about = LeftOut { tid: thread.tid, comm: thread.comm.clone(), target, by, why };
        let waits = fit.filter(|_| waits).map(|fit| (fit, thread.started));
        let before = self.left_out.insert(thread.tid, Out { entry, about: about.clone(), waits });
        if before.is_none_or(|before| before.entry != entry || before.about.why != about.why) {
            self.times_left_out += 1;
            self.notices.push(about);
        }
    }

    /// The event `match_ended`: a thread to which something was promised by an entry does not match it any more.
    fn tell_unmatched(&mut self, thread: &Thread, entry: usize) {
        let target = self.plan.entries[entry].target;
        let ends = thread.exe.is_empty() && !thread.is_kthread; // its program is gone, and soon it
        if ends || self.plan.fit(entry, thread).is_some() || !self.plan.is_promised(target) {
            return;
        }
        let Some(matcher) =
            self.bound.get(&thread.tid).and_then(|bound| self.plan.entries[entry].any.get(bound.by))
        else {
            return;
        };
        let (by, why) = (matcher.to_string(), matcher.misfits(thread).join(", "));
        let now = self.plan.entry_of(thread).map(|now| self.plan.child_name(self.plan.entries[now].target));
        let why = match now {
            Some(now) => format!("{why}; it matches {now} now"),
            None => format!("{why}; it is in the default node"),
        };
        let target = self.plan.child_name(target).to_string();
        self.unmatched.add(LeftOut { tid: thread.tid, comm: thread.comm.clone(), target, by, why });
    }

    /// The entry of the copy that the thread belongs to, if it fits the entry of copies; why there is none.
    fn copy_for(&mut self, entry: usize, thread: &Thread) -> Result<usize, String> {
        let mut copies = std::mem::take(&mut self.copies);
        let used = OnceCell::new(); // seldom asked for
        let is_used = |copy| used.get_or_init(|| self.used_copies()).contains(&copy);
        let found = copies.entry(&self.plan, entry, thread, is_used);
        self.copies = copies;
        found
    }

    /// Copies that have a thread.
    fn used_copies(&self) -> HashSet<Copied> {
        let mut used = HashSet::new();
        for (tid, bound) in &self.bound {
            if let Some(copy) = self.plan.entries[bound.entry].copy.filter(|copy| !used.contains(copy)) {
                if threads::exists(*tid) {
                    used.insert(copy);
                }
            }
        }
        used
    }

    /// Who waits for a copy of a node gets one when it has no threads any more, the oldest thread first.
    fn fill_copies(&mut self) -> Result<()> {
        let mut waiting: BTreeMap<usize, BTreeSet<(u64, u32)>> = BTreeMap::new();
        for (tid, out) in &self.left_out {
            if let (Some(copy), Some((_, started))) = (self.plan.entries[out.entry].copy, out.waits) {
                waiting.entry(copy.of).or_default().insert((started, *tid));
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let used = self.used_copies();
        for (of, threads) in waiting {
            if (0..self.plan.for_each[of].most).any(|index| !used.contains(&Copied { of, index })) {
                threads.into_iter().try_for_each(|(_, tid)| self.match_thread(tid))?;
            }
        }
        Ok(())
    }

    /// Who waits for the place of a task gets it when nobody has it any more: who fits best, then the oldest.
    pub(super) fn fill_places(&mut self) -> Result<()> {
        if !self.plan.for_each.is_empty() {
            self.fill_copies()?;
        }
        let mut first: BTreeMap<usize, (Fit, u64, u32)> = BTreeMap::new();
        for (tid, out) in &self.left_out {
            let Some((fit, started)) = out.waits else { continue };
            let its = (fit, started, *tid);
            first.entry(out.entry).and_modify(|first| *first = its.min(*first)).or_insert(its);
        }
        for (entry, (_, _, tid)) in first {
            let Child::Task(task) = self.plan.entries[entry].target else { continue };
            if self.holder(self.ids.tasks[task]).is_some() {
                continue;
            }
            self.match_thread(tid)?;
            let others = self.left_out.values_mut().filter(|out| out.entry == entry && out.waits.is_some());
            others.for_each(|out| out.about.why = taken(tid));
        }
        Ok(())
    }

    /// Look at a thread again: it is new, or its name, program, class, … changed.
    pub(super) fn match_thread(&mut self, tid: u32) -> Result<()> {
        let Some(live) = self.look(tid) else {
            self.bound.remove(&tid);
            self.left_out.remove(&tid);
            return Ok(());
        };
        let Some(entry) = self.plan.entry_of(&live.thread) else { return self.unbind(tid) };
        let entry = match self.copy_for(entry, &live.thread) {
            Ok(entry) => entry,
            Err(why) => {
                self.unbind(tid)?;
                self.leave_out(&live.thread, entry, why, true);
                return Ok(());
            }
        };
        let is_contained = self.class_before(tid).is_some();
        if is_contained && !self.plan.contains(entry, &live.thread) {
            self.classes.give_back(tid);
            return self.match_thread(tid);
        }
        if live.class.above() {
            self.bound.remove(&tid);
        }
        if let Some(why) = self.why_outside(&live, entry) {
            self.bound.remove(&tid);
            self.leave_out(&live.thread, entry, why, false);
            return Ok(());
        }
        let by = self.plan.fit(entry, &live.thread).map_or(0, |fit| fit.at);
        if let Some(bound) = self.bound.get_mut(&tid).filter(|bound| bound.entry == entry) {
            bound.by = by;
            self.hold_checksum(tid);
            return Ok(());
        }
        if let Some(before) = self.bound.get(&tid).map(|bound| bound.entry) {
            self.tell_unmatched(&live.thread, before);
        }
        let is_task = matches!(self.plan.entries[entry].target, Child::Task(_));
        let place = match self.place(&live, entry)? {
            Ok(leaf) => self.contain(&live)?.map(|()| leaf),
            refused => refused,
        };
        let thread = live.thread;
        match place {
            Ok(leaf) => {
                let before = self.kernel.leaf(leaf);
                self.has_leaf_now(tid, Bound { entry, by, leaf, before: (before.job, before.misses) });
                self.hold_checksum(tid);
                self.left_out.remove(&tid);
                // A sleeping thread moves when it wakes, a waiting one now; one that cannot be requeued at its next block.
                let _ = threads::requeue(tid);
            }
            Err(why) if why == GONE => {}
            Err(why) => self.leave_out(&thread, entry, why, is_task),
        }
        Ok(())
    }

    /// The thread has the leaf, and nobody else: who is said to have it besides is gone, and its leaf was given away.
    pub(super) fn has_leaf_now(&mut self, tid: u32, bound: Bound) {
        self.bound.retain(|_, other| other.leaf != bound.leaf);
        self.bound.insert(tid, bound);
    }

    /// A thread has begun with a leaf like its parent's: it stays there if that is what it matches.
    pub(super) fn match_born(&mut self, tid: u32, leaf: u32) -> Result<()> {
        let Some(live) = self.look(tid) else { return Ok(()) };
        let Some(entry) = self.plan.entry_of(&live.thread) else {
            self.classes.give_back(tid);
            self.kernel.bind(tid, 0, false)?;
            let _ = threads::requeue(tid);
            return Ok(());
        };
        let Ok(entry) = self.copy_for(entry, &live.thread) else { return self.match_thread(tid) };
        let has_it = [0, tid].contains(&self.kernel.leaf(leaf).pid);
        if has_it && self.way_of(leaf, self.plan.entries[entry].target).is_some() {
            let by = self.plan.fit(entry, &live.thread).map_or(0, |fit| fit.at);
            self.has_leaf_now(tid, Bound { entry, by, leaf, before: (0, 0) });
            self.hold_checksum(tid);
            return Ok(());
        }
        self.match_thread(tid)
    }

    /// Whether a thread may match something, with as little of /proc as it takes to know that it does not.
    pub(super) fn may_match(&self, news: &News) -> bool {
        let end = news.comm.iter().position(|&byte| byte == 0).unwrap_or(news.comm.len());
        let comm = String::from_utf8_lossy(&news.comm[..end]);
        // Kernel threads have longer names in /proc.
        let comm = (!news.is_kthread).then_some(&*comm);
        let (tid, pid, is_kthread) = (news.id, news.pid, news.is_kthread);
        let is_realtime = Class::from_number(news.policy.into()).above() || self.class_before(tid).is_some();
        let pcomm = comm.filter(|_| pid == tid);
        let is_realtime = Some(is_realtime);
        let mut seen = Glimpse { comm, pcomm, exe: None, cgroup: None, tid, pid, is_realtime, is_kthread };
        if !self.plan.may_match(&seen) {
            return false;
        }
        if !self.plan.matchers().any(Matcher::looks_at_cgroups) {
            return true;
        }
        let cgroup = Proc::default().cgroup(tid);
        seen.cgroup = cgroup.as_deref();
        self.plan.may_match(&seen)
    }

    /// The thread matches nothing.
    pub(super) fn unbind(&mut self, tid: u32) -> Result<()> {
        if let Some(before) = self.bound.get(&tid).map(|bound| bound.entry) {
            if let Some(live) = self.look(tid) {
                self.tell_unmatched(&live.thread, before);
            }
        }
        self.left_out.remove(&tid);
        self.checksums.let_go(tid);
        self.classes.give_back(tid);
        if self.bound.remove(&tid).is_some() && self.kernel.bind(tid, 0, false)? {
            let _ = threads::requeue(tid);
        }
        Ok(())
    }

    /// It is where it was bound to.
    pub(super) fn is_in_place(&self, tid: u32) -> bool {
        self.bound.get(&tid).is_some_and(|bound| self.kernel.leaf(bound.leaf).pid == tid)
    }

    /// Threads that are not where they were bound to, and are not bound any more.
    pub(super) fn take_lost(&mut self) -> Vec<u32> {
        let lost: Vec<u32> = self.bound.keys().copied().filter(|tid| !self.is_in_place(*tid)).collect();
        lost.iter().for_each(|tid| _ = self.bound.remove(tid));
        lost
    }

    /// They are looked at again.
    pub(super) fn match_lost(&mut self) -> Result<()> {
        self.take_lost().into_iter().try_for_each(|tid| self.match_thread(tid))
    }

    /// The CPUs where a thread may run, a bit each; or why a plan cannot rule it.
    pub fn can_rule(&mut self, tid: u32) -> Result<Cpus, String> {
        if let Some(allowed) = threads::allowed_if_ruled(tid) {
            return Ok(allowed);
        }
        self.looked = Proc::default().look(tid);
        match &self.looked {
            Some(live) => dry_run::outside(live).map_or(Ok(live.allowed), Err),
            None => Err(GONE.into()),
        }
    }
}
