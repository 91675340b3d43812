//! What a plan can do once the laws of its policies are known.

use crate::bounds::higher_classes::Above;
use crate::composition::brief::Brief;
use crate::composition::placement::{self, place};
use crate::composition::{one_step, runnable};
use crate::explain::forged_matches;
use crate::verdict::Admission;
use std::path::Path;
use tierce_plan::{
    Edge, Edit, Fault, Faults, Options, Plan, Shape, Sources, Standing, Step, Upgraded, PARAMS,
};

/// To read a plan, placing what has `cpu = "any"` where the laws hold with it; to change one; and to judge it.
pub trait PlanExt: Sized {
    /// Read the plan at `path`; one CPU unless it says otherwise.
    fn load(path: impl AsRef<Path>) -> Result<Self, Faults>;

    /// Read the plan at `path`; `options` say what it does not.
    fn load_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Faults>;

    /// The texts of the plan at `path` with the names that keys and policies have now; nothing is written.
    fn upgrade(path: impl AsRef<Path>, options: Options) -> Upgraded;

    /// Resolve a text; `name` is its path for messages and for files that it names.
    fn parse(text: &str, name: &str) -> Result<Self, Faults>;

    /// Resolve a text; `options` say what it does not.
    fn parse_with(text: &str, name: &str, options: Options) -> Result<Self, Faults>;

    /// Resolve texts that were read before, e.g. [`Plan::sources`] of a plan: itself first, then what it names.
    fn from_sources(sources: &Sources, options: Options) -> Result<Self, Faults>;

    /// The same while another plan is in force: what has `cpu = "any"` keeps its CPU if that is possible.
    fn from_sources_after(sources: &Sources, options: Options, standing: &Standing) -> Result<Self, Faults>;

    /// This plan after an operation.
    fn edited(&self, edit: &Edit) -> Result<Self, Faults>;

    /// The same while it is in force.
    fn edited_beside(&self, edit: &Edit, standing: impl FnOnce() -> Standing) -> Result<Self, Faults>;

    /// The operation as a step, if it is one, while this plan is in force.
    fn step_beside(&self, edit: &Edit, standing: &dyn Fn() -> Standing) -> Option<Step>;

    /// Test every node's law.
    fn admit(&self) -> Admission;

    /// The same, without all that only explains it.
    fn admit_briefly(&self) -> Brief;

    /// The plan on a machine: what its CPUs give to their roots is what is left there. Refused where a root's CPU is not
    /// online.
    fn on(self, above: &Above) -> Result<Self, Faults>;

    /// Each `match` that any user can forge, of a part that gets more than the default node: `match_can_be_forged`.
    fn forgeable(&self) -> Faults;

    /// Whether the plan can be enforced on a machine whose online CPUs are 0 to `cpus - 1`:
    ///
    /// - every CPU has a root, and no root is on a CPU that is not there;
    /// - exactly one default node takes in the threads that match nothing; it can give them parameters, and reaches
    ///   every CPU with a share that the tasks of the plan cannot take away, however long they run;
    /// - no budget keeps a runnable thread waiting until the kernel's watchdog gives up;
    /// - what is matched fits the pools of the kernel build.
    fn check_runnable(&self, cpus: u32) -> Result<(), Faults>;

    /// Whether a plan that can be enforced still can be after this step, for which only that is looked at which it can change.
    fn is_runnable_after(&self, step: &Step, cpus: u32) -> bool;

    /// This plan, with operations written into its text that were taken as steps since.
    fn with_text(&self, edits: &[Edit], standing: &Standing) -> Result<Self, Faults>;

    /// Tasks, sets and the default node that others may keep from running altogether when they misbehave: no refusal, since the
    /// plan may trust them, but the kernel's watchdog ends a scheduler that keeps a runnable thread waiting for long.
    fn may_starve(&self) -> Vec<Fault>;

    /// The edges that a new member of a set may have: one way, or with `cpu = "any"` one for each CPU, beginning with that of which
    /// least is used. `below`: parameters of all edges below a node, an index into [`Plan::nodes`].
    fn ways<I>(&self, set: usize, below: impl Fn(usize) -> I) -> Vec<&[Edge]>
    where
        I: Iterator<Item = [u64; PARAMS]>;

    /// What has `cpu = "any"`, a line for each CPU where something is: "placed on CPU 0: video, worker[0..2]". `None`: nothing has.
    fn placement(&self) -> Option<String>;
}

impl PlanExt for Plan {
    fn load(path: impl AsRef<Path>) -> Result<Self, Faults> {
        Self::load_with(path, Options::default())
    }

    fn load_with(path: impl AsRef<Path>, options: Options) -> Result<Self, Faults> {
        Plan::read(path, options, place)
    }

    fn upgrade(path: impl AsRef<Path>, options: Options) -> Upgraded {
        match Self::load_with(path, options) {
            Ok(plan) => Upgraded { sources: plan.sources, renamings: Vec::new(), faults: None },
            Err(faults) => tierce_plan::upgrade(faults, options, place),
        }
    }

    fn parse(text: &str, name: &str) -> Result<Self, Faults> {
        Self::parse_with(text, name, Options::default())
    }

    fn parse_with(text: &str, name: &str, options: Options) -> Result<Self, Faults> {
        Plan::of_text(text, name, options, place)
    }

    fn from_sources(sources: &Sources, options: Options) -> Result<Self, Faults> {
        Self::from_sources_after(sources, options, &Standing::default())
    }

    fn from_sources_after(sources: &Sources, options: Options, standing: &Standing) -> Result<Self, Faults> {
        Plan::of_sources(sources, options, standing, place)
    }

    fn edited(&self, edit: &Edit) -> Result<Self, Faults> {
        self.edited_beside(edit, || Standing::of(self))
    }

    fn edited_beside(&self, edit: &Edit, standing: impl FnOnce() -> Standing) -> Result<Self, Faults> {
        self.edited_by(edit, standing, place)
    }

    fn step_beside(&self, edit: &Edit, standing: &dyn Fn() -> Standing) -> Option<Step> {
        self.step(edit, standing, place)
    }

    fn admit(&self) -> Admission {
        Admission::of(self)
    }

    fn admit_briefly(&self) -> Brief {
        Brief::of(self)
    }

    fn on(self, above: &Above) -> Result<Self, Faults> {
        above.under(self)
    }

    fn forgeable(&self) -> Faults {
        Faults::new(forged_matches::warnings(self, &Shape::new(self)), self.sources.clone())
    }

    fn check_runnable(&self, cpus: u32) -> Result<(), Faults> {
        runnable::check(self, cpus)
    }

    fn is_runnable_after(&self, step: &Step, cpus: u32) -> bool {
        one_step::allows(self, step, cpus)
    }

    fn with_text(&self, edits: &[Edit], standing: &Standing) -> Result<Self, Faults> {
        self.written(edits, standing, place)
    }

    fn may_starve(&self) -> Vec<Fault> {
        runnable::may_starve(self)
    }

    fn ways<I>(&self, set: usize, below: impl Fn(usize) -> I) -> Vec<&[Edge]>
    where
        I: Iterator<Item = [u64; PARAMS]>,
    {
        placement::ways(self, set, below)
    }

    fn placement(&self) -> Option<String> {
        placement::placement(self)
    }
}
