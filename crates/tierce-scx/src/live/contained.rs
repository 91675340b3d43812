//! Threads of real-time classes that have a place in the plan.

use super::news::News;
use super::Live;
use crate::classes::{Guardian, Inherits};
use crate::dry_run;
use crate::threads::{self, Class, Proc, OTHER};
use anyhow::{Context, Result};
use tierce_plan::RealTime;

impl Live {
    /// What is known of a thread; `None`: it is gone. One that is contained is what it was before, as long as nobody has made it something
    /// else.
    pub(super) fn look(&mut self, tid: u32) -> Option<threads::Live> {
        let looked = self.looked.take().filter(|live| live.thread.tid == tid);
        let Some(mut live) = looked.or_else(|| Proc::default().look(tid)) else {
            self.classes.forget(tid);
            return None;
        };
        if let Some(was) = self.classes.of(tid) {
            match live.class == Class::Ext && self.classes.is_still(tid, live.thread.started) {
                true => live.thread.realtime = Some(was),
                false => self.classes.forget(tid),
            }
        }
        if self.plan.wants_checksum(&live.thread) {
            live.thread.checksum = self.checksums.of(tid);
        }
        Some(live)
    }

    /// Who has a place by the checksum of what it runs does not lose it when many other files are to be known.
    pub(super) fn hold_checksum(&mut self, tid: u32) {
        let place = self.bound.get(&tid).and_then(|bound| self.plan.entries[bound.entry].any.get(bound.by));
        match place.is_some_and(|matcher| matcher.checksum.is_some()) {
            true => self.checksums.hold(tid),
            false => self.checksums.let_go(tid),
        }
    }

    /// With a plan that matches threads by class the guardian has to be there before the first of them is.
    pub(super) fn guard_classes(&mut self) -> Result<()> {
        if self.plan.matchers().any(|matcher| matcher.class.is_some()) {
            self.classes.guard().context("a process that gives threads their class back")?;
        }
        Ok(())
    }

    /// What became of the guardian since last asked.
    pub fn take_guardian(&mut self) -> Vec<Guardian> {
        self.classes.take_news()
    }

    /// What a thread was before it was contained.
    pub fn class_before(&self, tid: u32) -> Option<RealTime> {
        self.classes.of(tid)
    }

    /// Why the thread is none of the plan's; one that matches by its class is, unless it is the loader's.
    pub(super) fn why_outside(&self, live: &threads::Live, entry: usize) -> Option<String> {
        if !live.class.above() || !self.plan.contains(entry, &live.thread) {
            return dry_run::outside(live);
        }
        let pid = live.thread.pid;
        let is_loaders = pid == std::process::id() || self.classes.is_guardian(pid);
        is_loaders.then(|| "the loader and its guardian keep their class".to_string())
    }

    /// A thread that has a place now leaves its real-time class for it, if it has one; why not, if it cannot.
    pub(super) fn contain(&mut self, live: &threads::Live) -> Result<Result<(), String>> {
        if !live.class.above() {
            return Ok(Ok(()));
        }
        let thread = &live.thread;
        let contained = self.classes.contain(thread.tid, thread.nice, thread.started);
        if contained.is_err() {
            self.kernel.bind(thread.tid, 0, false)?;
        }
        Ok(contained)
    }

    /// What threads of contained ones begin as: that was theirs, too. The kernel knows only that they are of SCHED_EXT.
    pub(super) fn hear_of_children(&mut self, news: &[News]) {
        if self.classes.is_empty() {
            return;
        }
        for item in news.iter().filter(|item| item.from != 0) {
            if self.classes.inherit(item.from, item.id) == Some(Inherits::Nothing) {
                if let Ok(mut attributes) = threads::attributes(item.id) {
                    attributes.policy = OTHER;
                    let _ = threads::set_attributes(item.id, &attributes);
                }
            }
        }
    }
}
