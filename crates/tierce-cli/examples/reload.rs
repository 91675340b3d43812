//! Has the kernel object under a plan replaced, and sees to it that this fails, for the tests in virtual machines: says what comes of
//! it, a line of JSON each.
//!
//!     reload PLAN TIMES    it fails in each way; then objects take turns; meanwhile there is a file `storm`
//!
//! Threads called `hog` and `pair` compute all the time, but stand still while objects are loaded: on emulated CPUs that takes long
//! beside others.
use anyhow::{bail, ensure, Context, Result};
use serde_json::json;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_policy::TASK;
use tierce_scx::kernel::{Kernel, Options};
use tierce_scx::live::Live;
use tierce_scx::reload::{Hears, Step};
use tierce_scx::threads;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, times] = words.as_slice() else { bail!("usage: reload PLAN TIMES") };
    let cpus = std::thread::available_parallelism()?.get() as u32;
    let plan = || {
        let plan = Plan::load_with(std::path::Path::new(path), tierce_plan::Options { cpus });
        plan.map_err(|faults| anyhow::anyhow!("{}", faults.report()))
    };
    let options =
        |plan: &Plan| Options { cpus, policies: plan.policies(), parts: plan.parts(), ..Options::default() };
    let mut other = Some(Kernel::load(options(&plan()?))?);
    let mut live = Live::start(plan()?, options(&plan()?), &mut |_| ())?;
    let meters = Meters::start(&["hog", "pair"])?;
    turns(&mut live, 500)?;
    let asked = live.options_for(&plan()?);

    // What the kernel refuses of the second one is known before the first one is detached.
    let mut steps = 0;
    let second = meters.stand_still(|| Kernel::load(Options { watchdog_ms: 31_000, ..asked.clone() }))?;
    turns(&mut live, 100)?;
    let refused = live.hand_over(second, &mut |_| steps += 1)?.err();
    say("too-long", json!({ "refused": refused, "steps": steps, "is": now(&mut live)? }));

    // The loader may not become urgent.
    let second = meters.stand_still(|| Kernel::load(asked.clone()))?;
    turns(&mut live, 100)?;
    let refused = without_real_time(|| live.hand_over(second, &mut |_| ()))??.err();
    say("lowly", json!({ "refused": refused, "is": now(&mut live)? }));

    // Another scheduler is quicker, and then leaves.
    let second = meters.stand_still(|| Kernel::load(asked.clone()))?;
    turns(&mut live, 100)?;
    let mut quick = None;
    let refused = live.hand_over(second, &mut |step| match step {
        Step::Verifies(_) => {}
        Step::Detached => quick = other.take().and_then(|other| Live::enforce(plan().ok()?, other).ok()),
        Step::Returns => other = quick.take().and_then(|quick| quick.release().ok()),
    })?;
    let other = other.context("the other scheduler could not be quicker")?;
    say("late", json!({ "refused": refused.err(), "is": now(&mut live)? }));

    // Nothing is in the way, and threads go on while the object is loaded.
    let done = live.reload(asked.clone(), &mut Hears { step: &mut |_| (), keep: &mut |_, _| Ok(()) })?;
    say("done", json!({ "done": done.is_ok(), "is": now(&mut live)? }));

    let other = take_turns(&mut live, other, times.parse()?)?;
    let second = meters.stand_still(|| Kernel::load(asked))?;
    turns(&mut live, 100)?;
    supplanted(live, second, || Live::enforce(plan().ok()?, other).ok())
}

/// Another scheduler is quicker, and stays.
fn supplanted(mut live: Live, second: Kernel, other: impl FnOnce() -> Option<Live>) -> Result<()> {
    let (mut quick, mut other) = (None, Some(other));
    let ended = live.hand_over(second, &mut |step| {
        if step == Step::Detached {
            quick = other.take().and_then(|enforce| enforce());
        }
    });
    ensure!(quick.is_some(), "the other scheduler could not be quicker");
    let ended = ended.err().map(|why| format!("{why:#}"));
    drop(quick);
    live.stop();
    say("ended", json!({ "why": ended, "state": state()? }));
    Ok(())
}

/// Processes that compute until this is dropped.
struct Meters(Vec<Child>);

impl Meters {
    fn start(names: &[&str]) -> Result<Meters> {
        let start = |name: &&str| {
            let mut meter = Command::new("meter");
            meter.args(["spin", "--name", name, "--time", "1000s"]).stdout(Stdio::null()).spawn()
        };
        Ok(Meters(names.iter().map(start).collect::<Result<_, _>>()?))
    }

    fn tell(&self, signal: libc::c_int) {
        for meter in &self.0 {
            // SAFETY: a child that nobody has waited for.
            unsafe { libc::kill(meter.id() as i32, signal) };
        }
    }

    fn stand_still<T>(&self, work: impl FnOnce() -> T) -> T {
        self.tell(libc::SIGSTOP);
        let done = work();
        self.tell(libc::SIGCONT);
        done
    }
}

impl Drop for Meters {
    fn drop(&mut self) {
        self.tell(libc::SIGKILL);
        for meter in &mut self.0 {
            let _ = meter.wait();
        }
    }
}

/// While this thread may not change to a real-time class.
fn without_real_time<T>(what: impl FnOnce() -> T) -> Result<T> {
    const CAP_SYS_NICE: u32 = 23;
    let header = [0x2008_0522u32, 0]; // version 3, this thread
    let mut sets = [0u32; 6]; // effective, permitted, inheritable: 0 to 31, then 32 to 63
    let call = |number, sets: &mut [u32; 6]| {
        // SAFETY: header and sets have the layout of that version.
        let done = unsafe { libc::syscall(number, header.as_ptr(), sets.as_mut_ptr()) } == 0;
        ensure!(done, "capabilities: {}", std::io::Error::last_os_error());
        Ok(())
    };
    call(libc::SYS_capget, &mut sets)?;
    let had = sets[0];
    sets[0] &= !(1 << CAP_SYS_NICE);
    call(libc::SYS_capset, &mut sets)?;
    let done = what();
    sets[0] = had;
    call(libc::SYS_capset, &mut sets)?;
    Ok(done)
}

/// As often as asked for, and what each gap consisted of; the object that is left.
fn take_turns(live: &mut Live, mut other: Kernel, times: u32) -> Result<Kernel> {
    let ns = |time: Duration| time.as_nanos() as u64;
    std::fs::write("storm", "")?;
    for _ in 0..times {
        turns(live, 1500)?; // the kernel's fair_server has not just had a turn
        other.retire()?;
        let (it, first) = live.hand_over(other, &mut |_| ())?.map_err(anyhow::Error::msg)?;
        other = first;
        say(
            "turn",
            json!({ "gap_ns": ns(it.gap), "detaching_ns": ns(it.detaching), "carrying_ns": ns(it.carrying),
                "attaching_ns": ns(it.attaching) }),
        );
    }
    std::fs::remove_file("storm")?;
    say("turned", now(live)?);
    other.retire()?;
    Ok(other)
}

/// Leaves whose threads are gone, if any, and what is known of them.
fn held_for_nobody(live: &Live) -> Vec<String> {
    let kernel = live.kernel();
    let leaves = (1..kernel.nodes_used()).map(|id| (id, kernel.node(id), kernel.leaf(id)));
    leaves
        .filter(|(_, node, leaf)| node.kind == TASK && leaf.own != 0 && !threads::exists(leaf.pid))
        .map(|(id, node, leaf)| format!("{id}: {leaf:?}, {node:?}"))
        .collect()
}

fn say(scenario: &str, got: serde_json::Value) {
    println!("{}", json!({ "scenario": scenario, "got": got }));
}

fn state() -> Result<String> {
    Ok(std::fs::read_to_string("/sys/kernel/sched_ext/state")?.trim().to_string())
}

/// Turns of the loader for a while.
fn turns(live: &mut Live, milliseconds: u64) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(milliseconds) {
        live.turn(&mut |_, _| Ok(()))?;
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Who has no more in a second, with a fifth of a CPU, was on one that stood still.
const STOOD_STILL_NS: u64 = 20_000_000;

/// The threads of the plan, what the one called `hog` gets in a second, and what is held for nobody. An object that is freed takes a
/// CPU from all for a while, and emulated CPUs make that long: the second begins when the hog has run again.
fn now(live: &mut Live) -> Result<serde_json::Value> {
    let hog = live.bound().into_iter().find(|(_, name)| *name == "hog").map(|(tid, _)| tid);
    let kernel = live.kernel();
    let leaf = (1..kernel.nodes_used()).find(|id| hog.is_some_and(|hog| kernel.leaf(*id).pid == hog));
    let ran_ns = |live: &Live| leaf.map_or(0, |leaf| live.kernel().node(leaf).ran_ns);
    let stolen_ns = |live: &Live| live.kernel().cpu(0).stolen_ns;
    let (first_ns, stolen_before_ns, begun) = (ran_ns(live), stolen_ns(live), Instant::now());
    while ran_ns(live) == first_ns && begun.elapsed() < Duration::from_secs(60) {
        turns(live, 20)?;
    }
    let waited_ns = begun.elapsed().as_nanos() as u64;
    let stolen_ns = stolen_ns(live) - stolen_before_ns;
    // The host may take a second from a virtual CPU, but not each of ten.
    let mut hog_ns = 0;
    for _ in 0..10 {
        let before_ns = ran_ns(live);
        turns(live, 1000)?;
        hog_ns = ran_ns(live) - before_ns;
        if hog_ns > STOOD_STILL_NS {
            break;
        }
    }
    let left_over = |live: &Live| {
        let held = live.held();
        i64::from(held.used.nodes) - i64::from(held.plan.nodes + held.threads)
    };
    let (begun, mut left) = (Instant::now(), left_over(live));
    while left != 0 && begun.elapsed() < Duration::from_secs(60) {
        turns(live, 100)?; // somebody is about to come or go
        left = left_over(live);
    }
    Ok(json!({
        "state": state()?,
        "exit": live.ended().map(|exit| exit.reason),
        "bound": live.bound().into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
        "waited_ns": waited_ns,
        "stolen_ns": stolen_ns,
        "hog_ns": hog_ns,
        "left_over": left,
        "left_over_for_ms": begun.elapsed().as_millis() as u64,
        "held_for_nobody": held_for_nobody(live),
    }))
}
