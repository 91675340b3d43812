//! Asks the manager for CPU time, many times, and compares its books with the plan in force, with what admission control proves of it, and
//! with the kernel's graph. `bench/grants/run` starts it in a virtual machine.
//!
//!     grants churn BOOKS RATE SECONDS EVERY   so many grants and revocations per second, compared after each: books and the edges that
//!                                             the kernel has are copied after each, and at the end the books are compared with these
//!                                             edges, and with what is proved of a plan that has them. After so many, with the plan in
//!                                             force and the whole graph, too, at once
//!     grants restarts BOOKS COUNT EVERY PLAN COMMAND...   the manager, which COMMAND starts, is killed COUNT times at random moments; every
//!                                             EVERY-th time the loader of the PLAN is, by itself or with the manager: the
//!                                             machine is on its default scheduler then, until the plan is in force again
//!
//! Prints one line of JSON; 1: something did not agree.

use anyhow::{bail, ensure, Context, Result};
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_manager::{check, Books, Target, Trial};
use tierce_plan::{Edit, Options, Plan, Source, Sources, Standing};

#[path = "../../../tests/draw.rs"]
mod draw;
use draw::Draw;

const MANAGER: &str = "/run/tierce-manager.sock";
const LOADER: &str = "/run/tierce.sock";
const THREADS: usize = 24;

/// A connection to the manager.
struct Client {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Client {
    fn open() -> Result<Client> {
        let to = UnixStream::connect(MANAGER).context(MANAGER)?;
        to.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Client { from: BufReader::new(to.try_clone()?), to })
    }

    fn send(&mut self, request: &Value) -> Result<()> {
        let mut request = request.clone();
        request["version"] = json!(1);
        Ok(self.to.write_all(format!("{request}\n").as_bytes())?)
    }

    /// The answer of the next request; the error it has is in it.
    fn heard(&mut self) -> Result<Value> {
        let mut line = String::new();
        ensure!(self.from.read_line(&mut line)? > 0, "the manager has hung up");
        Ok(serde_json::from_str(&line)?)
    }

    fn ask(&mut self, request: &Value) -> Result<Value> {
        self.send(request)?;
        self.heard()
    }
}

/// Threads that sleep, for which is asked.
fn sleepers() -> Vec<i32> {
    let (tell, told) = std::sync::mpsc::channel();
    for _ in 0..THREADS {
        let tell = tell.clone();
        std::thread::spawn(move || {
            // SAFETY: takes nothing, and cannot fail.
            let _ = tell.send(unsafe { libc::gettid() });
            loop {
                std::thread::sleep(Duration::from_secs(3600));
            }
        });
    }
    told.iter().take(THREADS).collect()
}

#[derive(Default, Deserialize)]
struct InForce {
    sources: Vec<Text>,
    placed: BTreeMap<String, u32>,
}

#[derive(Default, Deserialize)]
struct Text {
    name: String,
    text: String,
}

/// Compares the manager's books with the plan in force, its proof, and the kernel's graph.
struct Checker {
    books: PathBuf,
    cpus: u32,
    boot: String,
    checks: u64,
    wrong: Vec<String>,
    pictures: Vec<Picture>,
}

/// Books, and what the kernel has, at one moment between two requests.
struct Picture {
    books: String,
    /// Edges with the manager's names.
    edges: Vec<Granted>,
}

/// What `status` says of a budget, as the kernel has it.
#[derive(Clone, Deserialize, PartialEq)]
struct Granted {
    name: String,
    tid: Option<u32>,
    parent: String,
    budget_ns: Option<u64>,
    period_ns: Option<u64>,
}

impl Checker {
    fn new(books: &str) -> Result<Checker> {
        let status = asked(json!({ "request": "status" }))?;
        let cpus = status["cpus"].as_u64().context("cpus")? as u32;
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_string();
        Ok(Checker { books: books.into(), cpus, boot, checks: 0, wrong: Vec::new(), pictures: Vec::new() })
    }

    fn books(&self) -> Result<Books> {
        let text = std::fs::read_to_string(&self.books)?;
        Books::read(&text, &self.boot).map_err(anyhow::Error::msg)
    }

    /// To be compared later: that takes longer than a request.
    fn picture(&mut self) -> Result<()> {
        let books = std::fs::read_to_string(&self.books)?;
        let status = asked(json!({ "request": "status" }))?;
        let mut edges = Vec::<Granted>::deserialize(&status["promises"])?;
        edges.retain(|edge| edge.name.starts_with(tierce_manager::PREFIX));
        self.pictures.push(Picture { books, edges });
        Ok(())
    }

    /// `base`: the plan without guarantees.
    fn compare_pictures(&mut self, base: &Trial) -> Result<u64> {
        let pictures = std::mem::take(&mut self.pictures);
        for (number, picture) in pictures.iter().enumerate() {
            let books = Books::read(&picture.books, &self.boot).map_err(anyhow::Error::msg)?;
            let edits: Vec<Edit> =
                picture.edges.iter().map(|edge| edge.created(&books)).collect::<Result<_>>()?;
            let wrong = match base.edited(edits.into()) {
                Ok(trial) => check(&books, &trial),
                Err(wrong) => vec![wrong.to_string()],
            };
            self.wrong.extend(wrong.into_iter().map(|wrong| format!("after {}: {wrong}", number + 1)));
        }
        Ok(pictures.len() as u64)
    }

    fn compare(&mut self) -> Result<()> {
        let trial = self.trial()?;
        let books = self.books()?;
        self.wrong.extend(check(&books, &trial));
        self.graph(&books)?;
        self.checks += 1;
        Ok(())
    }

    /// The plan in force.
    fn trial(&self) -> Result<Trial> {
        let in_force: InForce = serde_json::from_value(asked(json!({ "request": "plan" }))?)?;
        let source = |it: &Text| Arc::new(Source::new(it.name.clone(), it.text.clone()));
        let mut standing = Standing::default();
        standing.placed = in_force.placed.into_iter().collect();
        let sources = Sources(in_force.sources.iter().map(source).collect());
        let plan = Plan::from_sources_after(&sources, Options { cpus: self.cpus }, &standing);
        Ok(Trial::new(Rc::new(plan.map_err(|faults| anyhow::anyhow!("{faults}"))?)))
    }

    /// Each guarantee is an edge in the kernel, with its budget and period, and no other has the manager's name.
    fn graph(&mut self, books: &Books) -> Result<()> {
        let graph = asked(json!({ "request": "graph" }))?;
        let mut edges = BTreeMap::new();
        for part in ["nodes", "sets", "tasks"].iter().filter_map(|list| graph[*list].as_array()).flatten() {
            let name = part["name"].as_str().unwrap_or_default();
            if name.starts_with(tierce_manager::PREFIX) {
                edges.insert(name.to_string(), part["under"].clone());
            }
        }
        for (request, held) in books.granted() {
            let Some(under) = edges.remove(&request.name()) else {
                self.wrong.push(format!("{} is granted, and not in the kernel", request.name()));
                continue;
            };
            for key in ["budget", "period"] {
                let wanted = held.keys.iter().find(|(name, _)| name == key).map(|(_, value)| value);
                let wanted_ns = wanted.and_then(|value| tierce_plan::parse_time(value).ok());
                let found_ns = under[0]["params"][format!("{key}_ns")].as_u64();
                if wanted_ns != found_ns {
                    let name = request.name();
                    self.wrong.push(format!(
                        "{name}: {key} {wanted_ns:?} in the books, {found_ns:?} in the kernel"
                    ));
                }
            }
        }
        self.wrong
            .extend(edges.into_keys().map(|name| format!("{name} is in the kernel, and nobody has it")));
        Ok(())
    }
}

impl Granted {
    /// The operation by which a plan has this edge. A thread that is not at its place yet is in the books.
    fn created(&self, books: &Books) -> Result<Edit> {
        let mut requests = books.all().filter(|request| request.name() == self.name);
        let tid = requests.next().and_then(|request| match request.target {
            Target::Thread { tid, .. } => Some(tid),
            _ => None,
        });
        let ns = |ns: Option<u64>| Ok::<_, anyhow::Error>(format!("{}ns", ns.context("a budget")?));
        let tid = self.tid.or(tid).unwrap_or(0).to_string();
        Ok(Edit::Create {
            name: self.name.clone(),
            policy: None,
            under: self.parent.split('@').next().unwrap_or_default().to_string(),
            keys: vec![("budget".into(), ns(self.budget_ns)?), ("period".into(), ns(self.period_ns)?)],
            who: vec![vec![("tid".into(), tid)]],
            cpus: Some(Vec::new()),
        })
    }
}

/// What the loader answers.
fn asked(request: Value) -> Result<Value> {
    let served = tierce_scx::socket::ask(Path::new(LOADER), request)?;
    served.map_err(|(rule, message)| anyhow::anyhow!("{rule}: {message}"))
}

/// Budgets of 1 to 18 % of a CPU. If half of the threads had one, as they would if all were granted, that were more than there is: some are more
/// than a user may have, and for many others have to go.
fn wish(draw: &mut Draw, tid: i32) -> Value {
    let period_ms = [10, 20, 50][draw.below(3)];
    let modes = json!([{ "budget": format!("{}us", period_ms * (10 + draw.below(170))), "period": format!("{period_ms}ms"),
        "value": draw.below(9) }]);
    let owner = format!("user:{}", 1001 + draw.below(3));
    json!({ "request": "request", "thread": tid, "modes": modes, "owner": owner })
}

fn percentile(sorted: &[u128], percent: usize) -> u128 {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

fn churn(books: &str, rate: u32, seconds: u64, every: u32) -> Result<ExitCode> {
    let (mut client, mut checker, mut draw) = (Client::open()?, Checker::new(books)?, Draw::new(23));
    let tids = sleepers();
    let base = checker.trial()?;
    let mut held: BTreeMap<i32, u64> = BTreeMap::new();
    let (mut granted, mut refused, mut ended, mut revoked) = (0u64, 0u64, 0u64, 0u64);
    let mut took = Vec::new();
    let (begun, gap) = (Instant::now(), Duration::from_secs(1) / rate);
    let mut number = 0;
    while begun.elapsed() < Duration::from_secs(seconds) {
        std::thread::sleep((gap * number).saturating_sub(begun.elapsed()));
        number += 1;
        let tid = tids[draw.below(tids.len())];
        let (request, ends) = match held.get(&tid) {
            Some(id) => (json!({ "request": "cancel", "id": id }), true),
            None => (wish(&mut draw, tid), false),
        };
        let before = Instant::now();
        let answer = client.ask(&request)?;
        match (ends, answer["answer"]["state"].as_str()) {
            (true, Some("ended")) => {
                held.remove(&tid);
                ended += 1;
            }
            (false, Some("granted")) => {
                took.push(before.elapsed().as_micros());
                held.insert(tid, answer["answer"]["about"]["id"].as_u64().context("id")?);
                granted += 1;
            }
            (false, Some("refused")) => refused += 1,
            // A rule has revoked it meanwhile, and it was not to wait.
            (true, None) if answer["error"]["rule"] == "request_must_exist" => {
                held.remove(&tid);
                revoked += 1;
            }
            _ => bail!("{request}: {answer}"),
        }
        checker.picture()?;
        if number % every == 0 {
            checker.compare()?;
        }
    }
    let lasted = begun.elapsed();
    let pictures = checker.compare_pictures(&base)?;
    took.sort_unstable();
    let per_second = u128::from(granted + ended) * 1_000 / lasted.as_millis().max(1);
    println!(
        "{}",
        json!({ "granted": granted, "ended": ended, "refused": refused, "revoked": revoked, "seconds": lasted.as_secs(), "per_second": per_second as u64,
            "compared_after_each": pictures, "checks": checker.checks, "wrong": checker.wrong,
            "request_to_grant_us": { "p50": percentile(&took, 50) as u64, "p99": percentile(&took, 99) as u64,
                "max": took.last().copied().unwrap_or(0) as u64 } })
    );
    Ok(ExitCode::from(u8::from(!checker.wrong.is_empty())))
}

/// The manager, until it is killed.
struct Manager {
    command: Vec<String>,
    child: Child,
}

impl Manager {
    /// `has_plan`: there is one in force.
    fn start(command: &[String], has_plan: bool) -> Result<(Manager, Client)> {
        let errors = std::fs::OpenOptions::new().append(true).create(true).open("/out/manager.err")?;
        let child = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).stderr(errors).spawn();
        let mut manager = Manager { command: command.to_vec(), child: child.context(command[0].clone())? };
        let begun = Instant::now();
        loop {
            let listed = Client::open().and_then(|mut client| {
                let answer = client.ask(&json!({ "request": "list" }))?;
                ensure!(answer["ok"] == has_plan, "{answer}");
                Ok(client)
            });
            if let Ok(client) = listed {
                return Ok((manager, client));
            }
            if let Some(status) = manager.child.try_wait()? {
                bail!("{:?} has ended: {status}", manager.command);
            }
            ensure!(begun.elapsed() < Duration::from_secs(60), "the manager does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn kill(mut self) -> Result<Vec<String>> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(self.command)
    }
}

/// The loader, until it is killed.
struct Loader(Child);

impl Loader {
    fn start(plan: &str) -> Result<Loader> {
        let errors = std::fs::OpenOptions::new().append(true).create(true).open("/out/loader.err")?;
        let mut command = Command::new("tierce");
        let mut child =
            command.args(["run", plan]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).spawn()?;
        let begun = Instant::now();
        while asked(json!({ "request": "status" })).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("the loader has ended: {status}");
            }
            ensure!(begun.elapsed() < Duration::from_secs(120), "the loader does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Loader(child))
    }

    /// The machine is on its default scheduler when this returns.
    fn kill(&mut self) -> Result<()> {
        self.0.kill()?;
        self.0.wait()?;
        let begun = Instant::now();
        while std::fs::read_to_string("/sys/kernel/sched_ext/state")?.trim() != "disabled" {
            ensure!(begun.elapsed() < Duration::from_secs(5), "the plan goes on without its loader");
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

/// What each thread has, once the manager has answered; `believed`: those of whom nothing else is known have it again by then, or were told
/// that it has ended. The manager may have to see first that the plan is another run of itself.
fn regained(client: &mut Client, believed: &BTreeMap<i32, u64>) -> Result<(BTreeMap<i32, u64>, u64)> {
    let begun = Instant::now();
    loop {
        let answer = client.ask(&json!({ "request": "news", "after": 0 }))?;
        let news = answer["answer"]["news"].as_array().cloned().unwrap_or_default();
        let ended: Vec<u64> =
            news.iter().filter(|it| it["what"] == "ended").filter_map(|it| it["id"].as_u64()).collect();
        let (had, told): (Vec<_>, Vec<_>) = believed.iter().partition(|(_, id)| !ended.contains(id));
        let now = granted(client)?;
        if had.iter().all(|(tid, id)| now.get(*tid) == Some(*id)) || begun.elapsed() > Duration::from_secs(10)
        {
            return Ok((now, told.len() as u64));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Threads that have a guarantee, and its number.
fn granted(client: &mut Client) -> Result<BTreeMap<i32, u64>> {
    let list = client.ask(&json!({ "request": "list" }))?;
    let list = list["answer"]["requests"].as_array().cloned().unwrap_or_default();
    let granted = list.iter().filter(|it| it["state"] == "granted");
    Ok(granted.filter_map(|it| Some((it["thread"].as_i64()? as i32, it["id"].as_u64()?))).collect())
}

/// Some requests and cancels, and often one more whose answer nobody has heard: how many were granted, and for which thread that one is.
fn some_requests(
    client: &mut Client,
    draw: &mut Draw,
    tids: &[i32],
    believed: &mut BTreeMap<i32, u64>,
) -> Result<(u64, Option<i32>)> {
    let mut grants = 0;
    for _ in 0..draw.below(6) {
        let tid = tids[draw.below(tids.len())];
        let answer = match believed.get(&tid) {
            Some(id) => client.ask(&json!({ "request": "cancel", "id": id }))?,
            None => client.ask(&wish(draw, tid))?,
        };
        match answer["answer"]["state"].as_str() {
            Some("granted") => {
                believed.insert(tid, answer["answer"]["about"]["id"].as_u64().context("id")?);
                grants += 1;
            }
            Some("ended") => _ = believed.remove(&tid),
            _ => {}
        }
    }
    if draw.below(4) == 0 {
        return Ok((grants, None));
    }
    let tid = tids[draw.below(tids.len())];
    let request = match believed.get(&tid) {
        Some(id) => json!({ "request": "cancel", "id": id }),
        None => wish(draw, tid),
    };
    client.send(&request)?;
    Ok((grants, Some(tid)))
}

fn restarts(books: &str, count: u64, every: u64, plan: &str, command: &[String]) -> Result<ExitCode> {
    let mut loader = Loader::start(plan)?;
    let (mut manager, mut client) = Manager::start(command, true)?;
    let (mut checker, mut draw) = (Checker::new(books)?, Draw::new(29));
    let tids = sleepers();
    // By what was answered. What was asked for when it was killed may have been done, or not.
    let mut believed: BTreeMap<i32, u64> = BTreeMap::new();
    let (mut lost, mut grants, mut cut, mut loader_kills, mut told) = (Vec::new(), 0u64, 0u64, 0u64, 0u64);
    for round in 0..count {
        let (granted, open) = some_requests(&mut client, &mut draw, &tids, &mut believed)?;
        grants += granted;
        cut += u64::from(open.is_some());
        std::thread::sleep(Duration::from_micros(draw.below(20_000) as u64));
        let kills_loader = every > 0 && round % every == every - 1;
        if kills_loader {
            loader.kill()?;
            loader_kills += 1;
        }
        if !kills_loader || draw.below(2) == 0 {
            let command = manager.kill()?;
            (manager, client) = Manager::start(&command, !kills_loader)?;
        } else if open.is_some() {
            client.heard()?; // refused, or done before
        }
        if kills_loader {
            loader = Loader::start(plan)?;
        }
        let waits_for =
            believed.iter().filter(|(tid, _)| open != Some(**tid)).map(|(tid, id)| (*tid, *id)).collect();
        let (now, ended) = regained(&mut client, &waits_for)?;
        told += ended;
        for (tid, id) in &believed {
            if open != Some(*tid) && now.get(tid) != Some(id) {
                lost.push(format!("round {round}: request {id} was granted, and is not in the list"));
            }
        }
        for (tid, id) in &now {
            if open != Some(*tid) && believed.get(tid) != Some(id) {
                lost.push(format!("round {round}: request {id} is granted, and nobody asked for it"));
            }
        }
        believed = now;
        checker.compare()?;
    }
    manager.kill()?;
    loader.kill()?;
    println!(
        "{}",
        json!({ "kills": count, "of_the_loader": loader_kills, "told_that_it_has_ended": told, "during_a_request": cut, "granted": grants, "held_at_the_end": believed.len(), "checks": checker.checks,
            "lost": lost, "wrong": checker.wrong })
    );
    Ok(ExitCode::from(u8::from(!lost.is_empty() || !checker.wrong.is_empty())))
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match &words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["churn", books, rate, seconds, every] => {
            churn(books, rate.parse()?, seconds.parse()?, every.parse()?)
        }
        ["restarts", books, count, every, plan, _, ..] => {
            restarts(books, count.parse()?, every.parse()?, plan, &words[5..])
        }
        _ => bail!("usage: grants churn BOOKS RATE SECONDS EVERY | grants restarts BOOKS COUNT EVERY PLAN COMMAND..."),
    }
}
