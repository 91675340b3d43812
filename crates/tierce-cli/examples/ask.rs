//! How long the manager takes to answer, over the socket and over D-Bus, beside a call of the bus itself: bench/manager/run. Asks for the
//! thread TID, by which somebody else runs, ROUNDS times each. Prints a line for each kind: microseconds of a round, and of these the
//! manager's own CPU time.
//!
//!     ask TID ROUNDS MANAGER

use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;
use zbus::blocking::Connection;
use zbus::zvariant::{OwnedValue, Value as Variant};

const NAME: &str = "org.tierce.Manager1";
const PATH: &str = "/org/tierce/Manager1";

/// CPU time of all threads of a process, in ns.
fn cpu_ns(pid: &str) -> u64 {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).expect("the manager").flatten();
    let text = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).ok();
    tasks.filter_map(text).filter_map(|text| text.split(' ').next()?.parse::<u64>().ok()).sum()
}

/// `round` is measured, and `after` undoes it.
fn measure<T>(
    what: &str,
    rounds: u32,
    manager: &str,
    mut round: impl FnMut() -> T,
    mut after: impl FnMut(T),
) {
    let (mut fastest, mut all, mut own) = (u128::MAX, 0, 0);
    for number in 0..rounds + 3 {
        let (before, begun) = (cpu_ns(manager), Instant::now());
        let done = round();
        let (ns, cpu) = (begun.elapsed().as_nanos(), cpu_ns(manager) - before);
        if number >= 3 {
            // Connections and caches are there.
            (fastest, all, own) = (fastest.min(ns), all + ns, own + cpu);
        }
        after(done);
    }
    let us = |ns: u128| ns as f64 / 1e3;
    println!(
        "{what:<30} {:9.1} us, fastest {:9.1}; the manager's own {:9.1}",
        us(all / u128::from(rounds)),
        us(fastest),
        us(u128::from(own / u64::from(rounds)))
    );
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let (tid, rounds, manager) =
        (words[1].parse::<u32>().unwrap(), words[2].parse::<u32>().unwrap(), &words[3]);
    let mut socket = BufReader::new(UnixStream::connect("/run/tierce-manager.sock").unwrap());
    let mut say = |mut request: Value| -> Value {
        request["version"] = 1.into();
        socket.get_mut().write_all(format!("{request}\n").as_bytes()).unwrap();
        let mut line = String::new();
        socket.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert!(answer["ok"] == true, "{answer}");
        answer
    };
    measure("socket: list", rounds, manager, || say(json!({ "request": "list" })), drop);
    let mut ids = Vec::new();
    measure(
        "socket: request, granted",
        rounds,
        manager,
        || {
            let modes = json!([{ "budget": "1ms", "period": "10ms" }]);
            say(json!({ "request": "request", "thread": tid, "modes": modes }))
        },
        |answer| ids.push(granted_and_cancelled(&answer)),
    );
    assert_eq!(ids.len() as u32, rounds + 3);
    let bus = Connection::system().unwrap();
    let call = |to: &'static str, path: &'static str, of: &'static str, method: &'static str| {
        bus.call_method(Some(to), path, Some(of), method, &()).unwrap()
    };
    let dbus = "org.freedesktop.DBus";
    measure(
        "D-Bus: GetId of the bus",
        rounds,
        manager,
        || call(dbus, "/org/freedesktop/DBus", dbus, "GetId"),
        drop,
    );
    let peer = "org.freedesktop.DBus.Peer";
    measure("D-Bus: Ping of the manager", rounds, manager, || call(NAME, PATH, peer, "Ping"), drop);
    measure("D-Bus: List", rounds, manager, || call(NAME, PATH, NAME, "List"), drop);
    measure(
        "D-Bus: Request, granted",
        rounds,
        manager,
        || {
            let mode = HashMap::from([("budget", Variant::from("1ms")), ("period", Variant::from("10ms"))]);
            let wish = HashMap::from([("thread", Variant::from(tid)), ("modes", Variant::from(vec![mode]))]);
            bus.call_method(Some(NAME), PATH, Some(NAME), "Request", &(wish,)).unwrap()
        },
        |answer| {
            let answer: HashMap<String, OwnedValue> = answer.body().deserialize().unwrap();
            let Variant::Dict(about) = &*answer["about"] else { panic!("{answer:?}") };
            let id: u64 = about.get(&"id").unwrap().unwrap();
            bus.call_method(Some(NAME), PATH, Some(NAME), "Cancel", &(id,)).unwrap();
        },
    );
}

/// The number of a request that was granted, and is no more.
fn granted_and_cancelled(answer: &Value) -> u64 {
    assert!(answer["answer"]["state"] == "granted", "{answer}");
    let id = answer["answer"]["about"]["id"].as_u64().unwrap();
    let mut socket = UnixStream::connect("/run/tierce-manager.sock").unwrap();
    socket.write_all(format!("{{\"version\":1,\"request\":\"cancel\",\"id\":{id}}}\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(socket).read_line(&mut line).unwrap();
    id
}
