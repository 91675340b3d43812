//! A manager without a kernel: requests are played against a plan, to see what rules would do.

use crate::manager::config::Config;
use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{json, Map, Value};
use std::io::BufRead;
use tierce_manager::words::{told, words};
use tierce_manager::{Ask, Asker, Books, InMemory, Manager, ThreadInfo, Threads, Wrong};
use tierce_plan::{parse_time, Plan};

/// Every thread is there, and is whoever's asks.
struct Pretended(u32);

impl Threads for Pretended {
    fn look(&self, _: u32) -> Option<ThreadInfo> {
        Some(ThreadInfo { uid: Some(self.0), began: 1 })
    }
}

/// A line: a request as over the socket, with who asks and when. Or a user who comes or goes.
#[derive(Deserialize)]
struct Line {
    /// Who asks; nobody: root.
    #[serde(default)]
    user: u32,
    /// Since the line before.
    after: Option<String>,
    enters: Option<u32>,
    leaves: Option<u32>,
    #[serde(flatten)]
    ask: Map<String, Value>,
}

/// Answer each line of `lines`; prints what is answered, and what others are told.
pub fn play(plan: Plan, config: Config, lines: impl BufRead, as_json: bool) -> Result<()> {
    let books = Books::new("dry run");
    let mut manager = Manager::new(InMemory::new(plan), Pretended(0), books, config.rules, config.limits);
    let mut now_ns = 1_000_000_000;
    manager.turn(now_ns)?;
    tell(&mut manager, as_json);
    for (number, line) in lines.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let line: Line = serde_json::from_str(&line).with_context(|| format!("line {}", number + 1))?;
        if let Some(after) = &line.after {
            let ns = parse_time(after).map_err(|why| Wrong::new(why.rule(), format!("{after:?}")))?;
            now_ns = past(&mut manager, now_ns, ns, as_json)?;
        }
        manager.threads().0 = line.user;
        line.enters.into_iter().for_each(|uid| manager.user_enters(uid, now_ns));
        line.leaves.into_iter().for_each(|uid| manager.user_leaves(uid, now_ns));
        if !line.ask.is_empty() {
            let ask: Ask =
                serde_json::from_value(line.ask.into()).with_context(|| format!("line {}", number + 1))?;
            let answer = manager.ask(&Asker::user(line.user), ask, now_ns);
            match (answer, as_json) {
                (Ok(answer), true) => println!("{}", json!({ "ok": true, "answer": answer })),
                (Err(wrong), true) => println!("{}", json!({ "ok": false, "error": wrong })),
                (Ok(answer), false) => print!("{}", words(&answer)),
                (Err(wrong), false) => println!("wrong: {wrong}"),
            }
        }
        tell(&mut manager, as_json);
        for wrong in manager.check()? {
            println!("does not agree: {wrong}");
        }
    }
    Ok(())
}

/// Time passes; whatever is due meanwhile happens when it is.
fn past(manager: &mut Manager<InMemory, Pretended>, now_ns: u64, ns: u64, as_json: bool) -> Result<u64> {
    let until = now_ns.saturating_add(ns);
    while let Some(next) = manager.next_ns().filter(|next| *next <= until) {
        manager.turn(next)?;
        tell(manager, as_json);
        if manager.next_ns() == Some(next) {
            break;
        }
    }
    manager.turn(until)?;
    tell(manager, as_json);
    Ok(until)
}

fn tell(manager: &mut Manager<InMemory, Pretended>, as_json: bool) {
    for notice in manager.take_notices() {
        match as_json {
            true => println!("{}", json!({ "event": notice })),
            false => println!("  {}", told(&notice)),
        }
    }
}
