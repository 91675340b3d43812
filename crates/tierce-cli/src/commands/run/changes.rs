//! What requests do to the plan in force.

use super::metrics::Totals;
use crate::commands::progress::{self, Progress};
use crate::journal::{report, report_all, Level};
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_plan::{Below, Difference, Edit, Fault, Faults, Plan};
use tierce_scx::apply;
use tierce_scx::live::Live;
use tierce_scx::reload::Hears;
use tierce_scx::socket::{say, Asked, EditAsked, Manner, Said, Served};
use tierce_scx::threads;

/// The text of the plan in force is written when nothing has changed for so long.
const REST: Duration = Duration::from_secs(1);

/// How often parts and threads are looked at, for metrics.
const LOOK: Duration = Duration::from_secs(1);

/// What requests leave behind.
pub struct Service {
    pub begun: Instant,
    /// The plan in force is neither the old nor the new one.
    pub broken: Result<()>,
    /// It is not as any file has it.
    pub edited: bool,
    /// Tasks made for one thread each: name, thread.
    pub reserved: Vec<(String, u32)>,
    /// What has been changed, for the user; said after the answer.
    said: Vec<String>,
    /// Policies that are always loaded: `--policies`.
    room: u64,
    /// When the plan was changed and not written.
    stepped: Option<Instant>,
    /// Of metrics, if somebody wants them.
    pub totals: Option<Totals>,
    observed: Instant,
}

impl Service {
    pub fn new(begun: Instant, room: u64) -> Service {
        Service {
            begun,
            broken: Ok(()),
            edited: false,
            reserved: Vec::new(),
            said: Vec::new(),
            room,
            stepped: None,
            totals: None,
            observed: begun,
        }
    }

    /// Say what is to be said.
    pub fn flush(&mut self) {
        if !self.said.is_empty() {
            report_all(Level::Info, "plan_changed", &std::mem::take(&mut self.said));
        }
    }

    /// What parts have counted, before one is taken out, and after one has come.
    pub fn observe(&mut self, live: &mut Live) {
        if let Some(totals) = &mut self.totals {
            totals.observe(live.snapshot(totals.threads_max));
            self.observed = Instant::now();
        }
    }

    /// The same now and then, for threads that come and go.
    pub fn look(&mut self, live: &mut Live) {
        if self.observed.elapsed() >= LOOK {
            self.observe(live);
        }
    }

    /// Between requests.
    pub fn rest(&mut self, live: &mut Live) {
        self.flush();
        if self.stepped.is_some_and(|at| at.elapsed() >= REST) {
            self.stepped = None;
            if let Err(why) = live.write() {
                report(Level::Error, "plan_not_written", &why, &[]);
            }
        }
    }
}

/// The text of the plan in force is as the plan is, from here on.
pub fn written(live: &mut Live) -> Result<(), (String, String)> {
    live.write().map_err(|why| ("plan_must_be_written".to_string(), why))
}

/// Where events and recorded entries go, as [`Live::turn`] has it.
pub type Keep<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// What an operation or a plan has changed, as it is answered.
#[derive(Serialize)]
struct Applied<'a> {
    version: u32,
    plan: &'a str,
    applied: bool,
    /// That of the plan in force, afterwards.
    revision: u64,
    changes: Vec<Changed<'a>>,
    /// Where everything with `cpu = "any"` is.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    placed: BTreeMap<&'a str, u32>,
    /// A thread may run on some CPUs only, and so may what was made for it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    limited: bool,
    /// What held before, as `tierce check` proves it, and does not hold with this.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    not_proved: &'a [String],
    /// Another kernel object has taken over.
    #[serde(skip_serializing_if = "Option::is_none")]
    reloaded: Option<Value>,
    /// Another kernel object would take over.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    needs_reload: bool,
}

#[derive(Serialize)]
struct Changed<'a> {
    change: &'a str,
    part: &'a str,
    detail: &'a str,
    text: String,
}

impl Applied<'_> {
    fn new<'a>(plan: &'a Plan, applied: bool, revision: u64, differences: &'a [Difference]) -> Applied<'a> {
        let one = |it: &'a Difference| Changed {
            change: it.verb.name(),
            part: &it.part,
            detail: &it.detail,
            text: it.to_string(),
        };
        let changes = differences.iter().map(one).collect();
        Applied {
            version: 1,
            plan: &plan.name,
            applied,
            revision,
            changes,
            placed: plan.placed().into_iter().collect(),
            limited: false,
            not_proved: &[],
            reloaded: None,
            needs_reload: false,
        }
    }
}

/// The thread, if that is all that is said about who is meant.
fn single(keys: &tierce_plan::Keys) -> Option<u32> {
    match &keys[..] {
        [(key, tid)] if key == "tid" => tid.parse().ok(),
        _ => None,
    }
}

/// One operation on the plan in force.
pub fn edit(live: &mut Live, asked: Asked, service: &mut Service, keep: Keep, out: &mut Vec<u8>) -> Said {
    let (mut edit, mut manner) = match asked.edit {
        Some(EditAsked { edit, manner }) => (edit, manner),
        None => {
            let request = asked.value();
            let edit = Edit::deserialize(&request["edit"])
                .map_err(|error| ("edit_must_be_known".to_string(), error.to_string()))?;
            (edit, Manner::of(&request))
        }
    };
    find_threads(live, &mut edit)?;
    manner.limited = is_limited(&edit);
    change(live, &edit, manner, service, keep, out)?;
    if !manner.dry_run {
        remember(live, service, &edit);
    }
    Ok(())
}

/// Several operations on the plan in force, as one transition: all of them, or none.
pub fn edits(live: &mut Live, asked: Asked, service: &mut Service, keep: Keep, out: &mut Vec<u8>) -> Said {
    let request = asked.value();
    let edits = Vec::<Edit>::deserialize(&request["edits"]);
    let mut edits = edits.map_err(|error| ("edits_must_be_known".to_string(), error.to_string()))?;
    edits.iter_mut().try_for_each(|edit| find_threads(live, edit))?;
    let manner = Manner { limited: edits.iter().any(is_limited), ..Manner::of(&request) };
    if let [edit] = &edits[..] {
        change(live, edit, manner, service, keep, out)?;
    } else {
        written(live)?;
        let plan = live.plan().as_ref().clone();
        let plan = edits.iter().try_fold(plan, |plan, edit| plan.edited_beside(edit, || live.standing()));
        say(&changed_to(live, plan, manner, service, keep)?, out)?;
    }
    if !manner.dry_run {
        edits.iter().for_each(|edit| remember(live, service, edit));
    }
    Ok(())
}

/// The threads that an operation names are there, and what is made for one is placed where it may run.
fn find_threads(live: &mut Live, edit: &mut Edit) -> Result<(), (String, String)> {
    let cpus = live.kernel().options().cpus;
    if let Edit::Create { who, cpus: places, .. } = edit {
        for tid in who.iter().filter_map(single) {
            let allowed = live
                .can_rule(tid)
                .map_err(|why| ("thread_must_be_there".to_string(), format!("thread {tid}: {why}")))?;
            if let (Some(places), 1) = (places.as_mut(), who.len()) {
                let may: Vec<u32> = (0..cpus).filter(|cpu| allowed.has(*cpu)).collect();
                *places = if may.len() < cpus as usize { may } else { Vec::new() };
            }
        }
    }
    Ok(())
}

/// It has been done: the plan is as no file has it, and tasks made for one thread each are known.
fn remember(live: &Live, service: &mut Service, edit: &Edit) {
    service.edited = true;
    match (edit, if let Edit::Create { who, .. } = edit { who } else { &[][..] }) {
        (Edit::Create { name, policy: None, .. }, [keys]) => {
            service.reserved.extend(single(keys).map(|tid| (name.clone(), tid)));
        }
        (Edit::Destroy { .. } | Edit::Set { .. }, _) => {
            service.reserved.retain(|made| is_made_for(live.plan(), made));
        }
        _ => {}
    }
}

/// Do it: as a step on the plan and its graph, if it is one, else by the text.
fn change(
    live: &mut Live,
    edit: &Edit,
    manner: Manner,
    service: &mut Service,
    keep: Keep,
    out: &mut Vec<u8>,
) -> Said {
    if !manner.dry_run {
        let before = manner.prove.then(|| live.plan().clone());
        match live.step(edit) {
            Ok(Some(differences)) => {
                service.stepped = Some(Instant::now());
                let not_proved = before.map_or(Vec::new(), |before| not_proved(&before, live.plan()));
                let mut applied = Applied::new(live.plan(), true, live.revision(), &differences);
                applied.not_proved = &not_proved;
                applied.limited = manner.limited;
                service.said.extend(applied.changes.iter().map(|change| change.text.to_string()));
                service.said.extend(not_proved.iter().map(|fault| format!("warning: {fault}")));
                return say(&applied, out);
            }
            Ok(None) => {}
            Err(error) => return Err(broken(error, service)),
        }
    }
    written(live)?;
    let plan = live.plan().edited_beside(edit, || live.standing());
    say(&changed_to(live, plan, manner, service, keep)?, out)
}

/// What it makes may only be where its thread may run.
fn is_limited(edit: &Edit) -> bool {
    matches!(edit, Edit::Create { cpus: Some(cpus), .. } if !cpus.is_empty())
}

/// The plan that operations have made of the one in force, if it can be enforced.
fn changed_to(
    live: &mut Live,
    plan: Result<Plan, Faults>,
    manner: Manner,
    service: &mut Service,
    keep: Keep,
) -> Served {
    let cpus = live.kernel().options().cpus;
    let plan = plan.and_then(|plan| plan.check_runnable(cpus).map(|()| plan));
    let rule = |faults: &Faults| faults.faults.first().map_or("plan_has_faults", |fault| fault.rule);
    let plan = plan.map_err(|faults| (rule(&faults).to_string(), faults.to_string()))?;
    put_into_force(live, plan, manner, service, keep)
}

/// The plan in force is neither the old nor the new one.
fn broken(error: anyhow::Error, service: &mut Service) -> (String, String) {
    let message = format!("{error:#}");
    service.broken = Err(error);
    ("plan_is_broken".into(), message)
}

/// The task of that name is still the one for that thread.
pub fn is_made_for(plan: &Plan, (name, tid): &(String, u32)) -> bool {
    let mut its = plan.entries.iter().filter(|entry| plan.child_name(entry.target) == name);
    its.any(|entry| entry.any.iter().any(|matcher| matcher.tid == Some(*tid)))
}

/// A task that was made for a thread ends with it: the number may be another's soon. One that is in its place is there, and
/// need not be looked for.
pub fn end_reservations(live: &mut Live, service: &mut Service) {
    let is_there = |(_, tid): &(String, u32)| live.jobs(*tid).is_some() || threads::exists(*tid);
    let (stay, gone) = std::mem::take(&mut service.reserved).into_iter().partition(is_there);
    service.reserved = stay;
    let gone: Vec<(String, u32)> = gone;
    for made in gone {
        if !is_made_for(live.plan(), &made) {
            continue;
        }
        let edit = Edit::Destroy { name: made.0, below: Below::Nothing };
        let _ = change(live, &edit, Manner::default(), service, &mut |_, _| Ok(()), &mut Vec::new());
    }
}

/// What of the new plan admission control cannot prove, of which that was not so before. The engine refuses only what cannot be.
fn not_proved(old: &Plan, new: &Plan) -> Vec<String> {
    let known = old.admit().faults(old);
    let is_new = |fault: &&Fault| {
        !known.faults.iter().any(|other| (other.rule, &other.message) == (fault.rule, &fault.message))
    };
    let faults = new.admit().faults(new);
    faults.faults.iter().filter(is_new).map(|fault| faults.line(fault)).collect()
}

/// Change the plan in force, or try it.
pub fn put_into_force(
    live: &mut Live,
    mut plan: Plan,
    Manner { dry_run, reload, prove, limited }: Manner,
    service: &mut Service,
    keep: Keep,
) -> Served {
    service.flush();
    plan.run.policies |= service.room;
    let (plan, progress) = (Rc::new(plan), Progress::new());
    let mut hears = Hears { step: &mut |step| progress.step(step), keep };
    let would_reload = reload && !live.not_loaded(&plan).is_empty();
    let not_proved = if prove { not_proved(live.plan(), &plan) } else { Vec::new() };
    let applied = match dry_run {
        true => live.try_apply(&plan, reload).map(|tried| {
            tried.map(|it| apply::Applied { differences: it.differences().to_vec(), reloaded: None })
        }),
        false => live.apply(plan.clone(), reload.then_some(&mut hears)),
    };
    if would_reload {
        progress.end();
    }
    let refused = match applied {
        Ok(Ok(apply::Applied { differences, reloaded })) => {
            if !dry_run {
                let again = reloaded.iter().map(progress::reloaded);
                let warnings = not_proved.iter().map(|fault| format!("warning: {fault}"));
                let changes: Vec<_> =
                    again.chain(differences.iter().map(|it| it.to_string())).chain(warnings).collect();
                report_all(Level::Info, "plan_changed", &changes);
            }
            let mut applied = Applied::new(&plan, !dry_run, live.revision(), &differences);
            (applied.not_proved, applied.limited) = (&not_proved, limited);
            applied.needs_reload = would_reload && dry_run;
            applied.reloaded = reloaded.as_ref().map(progress::to_json);
            return serde_json::to_value(applied).map_err(|error| ("answer".into(), error.to_string()));
        }
        Ok(Err(refused)) => refused,
        Err(error) => return Err(broken(error, service)),
    };
    let mut message = refused.to_string();
    // What a node cannot promise any more, with value and bound.
    let admission = plan.admit();
    for (node, verdict) in plan.nodes.iter().zip(&admission.nodes) {
        for failure in &verdict.failures {
            let (text, value, bound) =
                (failure.message.trim_end_matches('.'), &failure.value, &failure.bound);
            message +=
                &format!("\n{}: {}: {text} (exactly {value}, at most {bound})", node.name, failure.rule);
        }
    }
    if !dry_run {
        let message = format!("refused, the plan in force goes on: {message}");
        report(Level::Warn, "plan_refused", &message, &[("rule", refused.rule().into())]);
    }
    Err((refused.rule().into(), message))
}
