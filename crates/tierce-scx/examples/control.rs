//! What control operations on a live graph cost: the median time of each call, in ns, as JSON. Attaches a small graph to
//! CPU 0: for throw-away machines. With the path of a socket: what they cost who asks the plan in force there, which has
//! nodes `rt` (a reservation) and `rest` (fair); with `kept`, by one connection instead of one for each. With the name of a request besides, `tierce vm --profile` counts what these
//! requests execute; `meter profile --role end` has to follow, for the names of functions.

use anyhow::{bail, Context, Result};
use serde::de::IgnoredAny;
use serde::Serialize;
use std::collections::BTreeMap;
use std::os::unix::process::parent_id;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tierce_plan::{Below, Cpus, Edit, Keys};
use tierce_policy::{policies, Control, Params, Refusal, TASK};
use tierce_scx::kernel::{Kernel, Options};
use tierce_scx::socket::{self, Connection};

const ROUNDS: usize = 101;
/// A thread that is moved goes when it next blocks or wakes.
const LONG_ENOUGH: Duration = Duration::from_millis(1);

fn policy(name: &str) -> u32 {
    policies().iter().find(|policy| policy.name == name).map_or(0, |policy| policy.number)
}

fn ok<T>(result: Result<T, Refusal>) -> Result<T> {
    result.map_err(|refusal| anyhow::anyhow!("{refusal}"))
}

fn main() -> Result<()> {
    match std::env::args().nth(1) {
        Some(word) if word == "beside" => beside(),
        Some(socket) => {
            let rest: Vec<String> = std::env::args().skip(2).collect();
            let kept = rest.first().is_some_and(|word| word == "kept");
            through(Path::new(&socket), kept, rest.get(usize::from(kept)).map(|name| &name[..]))
        }
        None => direct(),
    }
}

/// Times by name.
type Took<'n> = BTreeMap<&'n str, Vec<u64>>;

fn print(took: Took) -> Result<()> {
    let medians: BTreeMap<_, _> = took
        .into_iter()
        .map(|(name, mut list)| {
            list.sort_unstable();
            (name, list[list.len() / 2])
        })
        .collect();
    println!("{}", serde_json::to_string(&medians).context("numbers")?);
    Ok(())
}

/// The marks of guest/profile.h.
#[cfg(target_arch = "x86_64")]
fn mark(begin: bool) {
    // SAFETY: no-operations.
    unsafe {
        match begin {
            true => std::arch::asm!("nopl 0x54524342(%rax,%rax,1)", options(att_syntax)),
            false => std::arch::asm!("nopl 0x54524345(%rax,%rax,1)", options(att_syntax)),
        }
    }
}

/// Other processors have no profile.
#[cfg(not(target_arch = "x86_64"))]
fn mark(_begin: bool) {}

/// As `tierce ctl` asks.
#[derive(Serialize)]
struct Request<'e> {
    request: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<&'e Edit>,
}

fn edits() -> [(&'static str, Edit); 6] {
    let keys = |text: &str| -> Keys {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    let create = |name: &str, policy: Option<&str>, under: &str, given: &str, who: &str| Edit::Create {
        name: name.into(),
        policy: policy.map(Into::into),
        under: under.into(),
        keys: keys(given),
        who: if who.is_empty() { Vec::new() } else { vec![keys(who)] },
        cpus: None,
    };
    let me = format!("tid={}", std::process::id());
    let place = Edit::Move {
        name: "me".into(),
        tasks: false,
        from: None,
        under: "new".into(),
        keys: keys("weight=9"),
    };
    let set = Edit::Set { name: "me".into(), under: None, keys: keys("budget=3ms"), who: Vec::new() };
    let gone = |name: &str| Edit::Destroy { name: name.into(), below: Below::Nothing };
    [
        ("create a node", create("new", Some("fair"), "rest", "", "")),
        ("begin a thread's reservation", create("me", None, "rt", "budget=2ms period=10ms", &me)),
        ("change a reservation", set),
        ("move a task", place),
        ("end a thread's reservation", gone("me")),
        ("remove a node", gone("new")),
    ]
}

/// By requests, as `tierce ctl` makes them; those of that name are marked for a profile.
fn through(path: &Path, kept: bool, profiled: Option<&str>) -> Result<()> {
    let edits = edits();
    let mut took = Took::new();
    let mut connection = if kept { Some(Connection::open(path)?) } else { None };
    let mut ask = |name: &'static str, request: Request| -> Result<socket::Served<IgnoredAny>> {
        let marked = profiled == Some(name);
        if marked {
            mark(true);
        }
        let begun = Instant::now();
        let answer = match &mut connection {
            Some(connection) => connection.ask(&request)?,
            None => Connection::open(path)?.ask(&request)?,
        };
        took.entry(name).or_default().push(begun.elapsed().as_nanos() as u64);
        if marked {
            mark(false);
        }
        Ok(answer)
    };
    for _ in 0..ROUNDS {
        let _ = ask("an unknown request", Request { request: "none", edit: None })?;
        sleep(LONG_ENOUGH);
        for (name, edit) in &edits {
            if let Err((_, why)) = ask(name, Request { request: "edit", edit: Some(edit) })? {
                bail!("{name}: {why}");
            }
            sleep(LONG_ENOUGH);
        }
    }
    print(took)
}

/// Another process, which blocks and wakes, as long as the first is there.
fn beside() -> Result<()> {
    let parent = parent_id();
    while parent_id() == parent {
        sleep(Duration::from_micros(500));
    }
    Ok(())
}

/// By the calls that a request leads to in the end.
fn direct() -> Result<()> {
    let mut times = Times(Took::new());
    let mut kernel =
        times.of("load the policies", || Kernel::load(Options { exercise: true, ..Options::default() }))?;
    let graph = Nodes::attach(&mut kernel)?;
    let homes = [graph.leaf(&kernel)?, graph.leaf(&kernel)?];
    let mut other = Command::new(std::env::current_exe()?).arg("beside").spawn()?;
    let other_home = graph.leaf(&kernel)?;
    let me = std::process::id();
    for round in 0..ROUNDS {
        times.of("a null system call", || Ok(parent_id()))?;
        times.of("an empty syscall program", || kernel.exercise(0, 0, 0, 0))?;
        graph.node_with_a_reservation(&kernel, &mut times)?;
        let home = homes[round % 2];
        times.of("move a task", || kernel.bind(me, home, false))?;
        sleep(LONG_ENOUGH);
        let names = ["begin a thread's reservation", "end a thread's reservation"];
        graph.reserve(&kernel, &mut times, (me, home), names)?;
        let names = ["begin one for another process", "end one for another process"];
        graph.reserve(&kernel, &mut times, (other.id(), other_home), names)?;
    }
    other.kill()?;
    other.wait()?;
    times.of("unload the policies", || {
        kernel.detach();
        drop(kernel);
        Ok(())
    })?;
    print(times.0)
}

struct Times(Took<'static>);

impl Times {
    fn of<T>(&mut self, name: &'static str, what: impl FnOnce() -> Result<T>) -> Result<T> {
        let begun = Instant::now();
        let done = what();
        self.add(name, begun.elapsed());
        done
    }

    fn add(&mut self, name: &'static str, took: Duration) {
        self.0.entry(name).or_default().push(took.as_nanos() as u64);
    }
}

/// Parameters of an edge, the others 0.
fn params<const N: usize>(first: [u64; N]) -> Params {
    let mut params = Params::default();
    params[..N].copy_from_slice(&first);
    params
}

fn budget(ns: u64) -> Params {
    params([ns, 10_000_000, 10_000_000])
}

/// Below the root of CPU 0 a reservation, and a fair node for all others.
struct Nodes {
    rt: u32,
    rest: u32,
    fair: u32,
}

impl Nodes {
    fn attach(kernel: &mut Kernel) -> Result<Self> {
        let (fixed_priority, reservation, fair) =
            (policy("fixed-priority"), policy("reservation"), policy("fair"));
        let mut ops = &*kernel;
        let top = ok(ops.node_new(fixed_priority, 0, Cpus::ALL, [0; 8]))?;
        ok(ops.root(0, top))?;
        let rt = ok(ops.node_new(reservation, 0, Cpus::ALL, [0; 8]))?;
        let rest = ok(ops.node_new(fair, 0, Cpus::ALL, [3_000_000, 0, 0, 0, 0, 0, 0, 0]))?;
        for (node, priority) in [(rt, 1), (rest, 0)] {
            let edge = ok(ops.edge_new(top, node, 0, false.into()))?;
            ok(ops.attach(edge, params([priority])))?;
        }
        kernel.set_default(rest, params([100]), None)?;
        kernel.attach()?;
        Ok(Self { rt, rest, fair })
    }

    /// A place for a thread among all others.
    fn leaf(&self, mut ops: &Kernel) -> Result<u32> {
        let leaf = ok(ops.node_new(TASK, 1, Cpus::ALL, [0; 8]))?;
        let edge = ok(ops.edge_new(self.rest, leaf, 0, false.into()))?;
        ok(ops.attach(edge, params([100])))?;
        Ok(leaf)
    }

    fn node_with_a_reservation(&self, mut ops: &Kernel, times: &mut Times) -> Result<()> {
        let params = [3_000_000, 0, 0, 0, 0, 0, 0, 0];
        let node = times.of("create a node", || ok(ops.node_new(self.fair, 0, Cpus::ALL, params)))?;
        let edge = ok(ops.edge_new(self.rt, node, 0, false.into()))?;
        times.of("begin a reservation", || ok(ops.attach(edge, budget(2_000_000))))?;
        times.of("change a reservation", || ok(ops.set(edge, budget(3_000_000))))?;
        times.of("end a reservation", || ok(ops.detach(edge)))?;
        times.of("remove a node", || ok(ops.node_free(node)))
    }

    /// A thread gets a reservation of its own, and goes home.
    fn reserve(
        &self,
        kernel: &Kernel,
        times: &mut Times,
        (tid, home): (u32, u32),
        [begin, end]: [&'static str; 2],
    ) -> Result<()> {
        let mut ops = kernel;
        let (leaf, edge) = times.of(begin, || {
            let leaf = ok(ops.node_new(TASK, 1, Cpus::ALL, [0; 8]))?;
            let edge = ok(ops.edge_new(self.rt, leaf, 0, false.into()))?;
            ok(ops.attach(edge, budget(2_000_000)))?;
            kernel.bind(tid, leaf, false)?;
            Ok((leaf, edge))
        })?;
        sleep(LONG_ENOUGH);
        let begun = Instant::now();
        kernel.bind(tid, home, false)?;
        let mut spent = begun.elapsed();
        sleep(LONG_ENOUGH);
        let begun = Instant::now();
        ok(ops.detach(edge))?;
        ok(ops.node_free(leaf))?;
        spent += begun.elapsed();
        times.add(end, spent);
        Ok(())
    }
}
