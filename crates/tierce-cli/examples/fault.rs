//! Enforces a plan and brings trouble upon it, one after the other, for the tests in virtual machines: says what comes of it.
//!
//!     fault PLAN TROUBLE...
//!
//!     full    no node is left for new threads; then there is room again
//!     wild    a node's first child is an edge that does not exist
//!     lost    all edges to the default node, which here all CPUs share, lead to one that does not exist
//!     loop    a list without an end, above such a node
//!     fork    the loader is killed, a child that it forked lives on
use anyhow::{bail, ensure, Context, Result};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_policy::{Control, Cpus, TASK};
use tierce_scx::kernel::{Kernel, Options};
use tierce_scx::live::Live;

const WILD: u32 = 0x00ff_ffff;

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [path, troubles @ ..] = words.as_slice() else { bail!("usage: fault PLAN TROUBLE...") };
    let cpus = std::thread::available_parallelism()?.get() as u32;
    // Longer than a busy host keeps a virtual CPU waiting, which the kernel takes for a fault.
    let mut kernel = Kernel::load(Options { cpus, watchdog_ms: 8_000, ..Options::default() })?;
    for trouble in troubles {
        let path = if trouble == "lost" || trouble == "loop" { shared(path)? } else { path.into() };
        let plan = Plan::load_with(&path, tierce_plan::Options { cpus });
        let plan = plan.map_err(|faults| anyhow::anyhow!("{}", faults.report()))?;
        let mut live = Live::enforce(plan, kernel)?;
        live.turn(&mut |_, _| Ok(()))?;
        match trouble.as_str() {
            "full" => full(&mut live, cpus)?,
            "fork" => fork()?,
            _ => {
                fault(trouble, live.kernel())?;
                println!("{trouble}: {}", end_of(&mut live)?);
            }
        }
        kernel = live.release()?;
    }
    Ok(())
}

/// The plan with a default node that is shared. (The engine itself notices a replica of a spread node that leads nowhere, and does not
/// look at the list of its parents.)
fn shared(path: &str) -> Result<PathBuf> {
    let text = std::fs::read_to_string(path)?;
    let shared = std::env::temp_dir().join("shared.toml");
    std::fs::write(&shared, text.replace("default = true", "default = true\nspread = false"))?;
    Ok(shared)
}

/// Turns of the loader for a while.
fn turns(live: &mut Live, milliseconds: u64) -> Result<()> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(milliseconds) {
        live.turn(&mut |_, _| Ok(()))?;
        if let Some(exit) = live.ended() {
            bail!("{}: {}", exit.reason, exit.message);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// What the kernel says when it has noticed.
fn end_of(live: &mut Live) -> Result<String> {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(60) {
        live.turn(&mut |_, _| Ok(()))?;
        if let Some(exit) = live.ended() {
            let state = std::fs::read_to_string("/sys/kernel/sched_ext/state").context("the state")?;
            // The reason is known a moment before the kernel has moved all threads.
            if state.trim() != "disabling" {
                return Ok(format!("{}: {}: {}", state.trim(), exit.reason, exit.message));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("the kernel has not noticed");
}

fn fault(fault: &str, kernel: &Kernel) -> Result<()> {
    let node = kernel.side().default_node;
    let edge = kernel.node(node).first_parent;
    ensure!(edge != 0, "the default node has a parent");
    // SAFETY: a node and an edge of the loaded graph; that what is written there is wrong is the point.
    unsafe {
        match fault {
            "wild" => (*kernel.node_address(node)).order = WILD,
            "lost" => {
                let mut edge = edge;
                while edge != 0 {
                    (*kernel.edge_address(edge)).child = WILD;
                    edge = kernel.edge(edge).next_parent;
                }
            }
            "loop" => (*kernel.edge_address(edge)).next_parent = edge,
            _ => bail!("{fault}: no such trouble"),
        }
    }
    Ok(())
}

/// Threads that compute for ever, and the CPU time that they have had.
struct Busy {
    ran_ns: Arc<Vec<AtomicU64>>,
    stop: Arc<AtomicBool>,
}

impl Busy {
    fn start(count: usize) -> Busy {
        let busy = Busy {
            ran_ns: Arc::new((0..count).map(|_| AtomicU64::new(0)).collect()),
            stop: Arc::new(AtomicBool::new(false)),
        };
        for index in 0..count {
            let (ran_ns, stop) = (busy.ran_ns.clone(), busy.stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    // SAFETY: an all-zero timespec is valid, and the call fills it.
                    let time = unsafe {
                        let mut time: libc::timespec = std::mem::zeroed();
                        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time);
                        time
                    };
                    ran_ns[index]
                        .store(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64, Ordering::Relaxed);
                }
            });
        }
        busy
    }

    fn ran_ns(&self) -> u64 {
        self.ran_ns.iter().map(|ran_ns| ran_ns.load(Ordering::Relaxed)).sum()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// How many shares are measured, one after the other. The one in the middle counts: a virtual CPU that stands still for some seconds makes
/// few of them wrong.
const SHARES: usize = 9;

/// What those who come later get of what all get, without and then with room for them.
fn full(live: &mut Live, cpus: u32) -> Result<()> {
    let first = Busy::start(cpus as usize);
    turns(live, 300)?;
    let mut taken = Vec::new();
    while let Ok(id) = (&mut live.kernel()).node_new(TASK, 1, Cpus::ALL, Default::default()) {
        taken.push(id);
    }
    let later = Busy::start(2 * cpus as usize);
    let share = |live: &mut Live| -> Result<f64> {
        turns(live, 200)?;
        let mut shares = [0.0; SHARES];
        for share in &mut shares {
            let before = [first.ran_ns(), later.ran_ns()];
            turns(live, 1_000)?;
            let [first, later] = [first.ran_ns() - before[0], later.ran_ns() - before[1]];
            *share = later as f64 / (first + later) as f64;
        }
        shares.sort_by(f64::total_cmp);
        Ok(shares[SHARES / 2])
    };
    let without = share(live)?;
    let outside = live.kernel().side().overflows;
    for id in taken {
        (&mut live.kernel()).node_free(id)?;
    }
    let with = share(live)?;
    println!("full: {without:.3} {with:.3} {outside}");
    Ok(())
}

fn fork() -> Result<()> {
    // SAFETY: the child only sleeps; the process ends here.
    unsafe {
        match libc::fork() {
            -1 => bail!("fork: {}", std::io::Error::last_os_error()),
            0 => _ = libc::sleep(600),
            child => {
                println!("fork: {child}");
                libc::kill(libc::getpid(), libc::SIGKILL);
            }
        }
        libc::_exit(0)
    }
}
