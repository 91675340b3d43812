//! `tierce-manager` on D-Bus with a plan in force, in throw-away machines with Debian's dbus-daemon: a user asks over the bus (tests/vm/bus.sh);
//! PipeWire and RealtimeKit's test client ask by themselves (tests/vm/pipewire.sh); a program asks xdg-desktop-portal, outside of a sandbox
//! and in one (tests/vm/portal.sh). Time is counted in instructions.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{channel, Receiver};
use std::time::Duration;
use zbus::zvariant::{OwnedValue, Value as Variant};

const MANAGER: &str = "org.tierce.Manager1";
const KIT: &str = "org.freedesktop.RealtimeKit1";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a script has said, by the names of its scenarios. `log`: for who looks at a failure.
fn scenarios(said: &str, log: &dyn Fn() -> String) -> HashMap<String, Value> {
    let value = |line| -> Value {
        serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{}", log()))
    };
    let pair = |value: Value| (value["scenario"].as_str().unwrap().to_string(), value["got"].clone());
    said.lines().map(value).map(pair).collect()
}

/// Values of D-Bus, to be compared.
fn json(value: &Variant) -> Value {
    match value {
        Variant::Str(text) => text.as_str().into(),
        Variant::Bool(is) => (*is).into(),
        Variant::U64(number) => (*number).into(),
        Variant::I64(number) => (*number).into(),
        Variant::Value(inner) => json(inner),
        Variant::Array(list) => list.iter().map(json).collect(),
        Variant::Dict(table) => {
            let pair =
                |(key, value): (&Variant, &Variant)| (json(key).as_str().unwrap().to_string(), json(value));
            Value::Object(table.iter().map(pair).collect())
        }
        other => panic!("{other:?}"),
    }
}

fn json_table(table: &HashMap<String, OwnedValue>) -> Value {
    Value::Object(table.iter().map(|(key, value)| (key.clone(), json(value))).collect())
}

/// The answer of the manager.
fn asked<B>(bus: &zbus::blocking::Connection, method: &str, body: &B) -> zbus::Message
where
    B: serde::Serialize + zbus::zvariant::DynamicType,
{
    let answer = bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), method, body);
    answer.unwrap_or_else(|error| panic!("{method}: {error}"))
}

/// What the signal `Notice` brings from now on.
fn notices(bus: &zbus::blocking::Connection) -> Receiver<Value> {
    let (tells, told) = channel();
    let messages = zbus::blocking::MessageIterator::from(bus);
    std::thread::spawn(move || {
        for message in messages.map_while(Result::ok) {
            if message.header().member().is_some_and(|member| member == "Notice") {
                let (notice,): (HashMap<String, OwnedValue>,) = message.body().deserialize().unwrap();
                if tells.send(json_table(&notice)).is_err() {
                    return;
                }
            }
        }
    });
    told
}

/// Deadlines for the thread that `LATE` names, whose jobs need more than 5 ms: it is told of misses, and of none after it has a longer one.
/// Then none at all, and some that nobody may have.
fn late_jobs(
    bus: &zbus::blocking::Connection,
    told: &Receiver<Value>,
    said: &mut serde_json::Map<String, Value>,
) {
    let late: u32 = std::env::var("LATE").unwrap().parse().unwrap();
    let modes = |deadline: Option<&'static str>| {
        let mut mode = HashMap::from([("budget", Variant::from("1ms")), ("period", Variant::from("10ms"))]);
        mode.extend(deadline.map(|deadline| ("deadline", Variant::from(deadline))));
        vec![mode]
    };
    let table = |message: zbus::Message| json_table(&message.body().deserialize().unwrap());
    let wish = |deadline| HashMap::from([("thread", Variant::from(late)), ("modes", modes(deadline).into())]);
    let misses = || -> Vec<Value> { told.try_iter().filter(|it| it["what"] == "deadline_missed").collect() };
    let answer = table(asked(bus, "Request", &(wish(Some("5ms")),)));
    let id = answer["about"]["id"].as_u64().unwrap();
    said.insert("late".into(), answer);
    let mut heard = std::iter::from_fn(|| told.recv_timeout(Duration::from_secs(60)).ok());
    let missed = heard.find(|it| it["what"] == "deadline_missed");
    said.insert("late-missed".into(), missed.expect("a missed deadline"));
    said.insert("late-longer".into(), table(asked(bus, "Change", &(id, modes(Some("10s"))))));
    std::thread::sleep(Duration::from_secs(1)); // what was missed before that is told by then
    misses();
    std::thread::sleep(Duration::from_secs(2));
    said.insert("late-missed-longer".into(), misses().into());
    said.insert("late-none".into(), table(asked(bus, "Change", &(id, modes(None)))));
    let refused = |method: zbus::Result<zbus::Message>| Value::from(method.unwrap_err().to_string());
    let change = |deadline| {
        let body = (id, modes(Some(deadline)));
        bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), "Change", &body)
    };
    let mut scheduler = wish(Some("5ms"));
    scheduler.remove("thread");
    scheduler.insert("policy", Variant::from("fair"));
    let scheduler =
        bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), "Request", &(scheduler,));
    said.insert(
        "late-refused".into(),
        Value::from(vec![refused(change("0ms")), refused(change("5")), refused(scheduler)]),
    );
    let all: Vec<HashMap<String, OwnedValue>> = asked(bus, "List", &()).body().deserialize().unwrap();
    said.insert("late-list".into(), all.iter().map(json_table).collect());
    said.insert("late-cancel".into(), table(asked(bus, "Cancel", &(id,))));
}

/// What the machine runs this program for: a user makes each call of the interface, for this thread, and is told. Writes what was answered
/// into the file that `ASKS` names; without it there is nothing to test here.
#[test]
fn bus_client() {
    let Ok(file) = std::env::var("ASKS") else { return };
    let bus = zbus::blocking::Connection::system().unwrap();
    let told = notices(&bus);
    let mut said = serde_json::Map::new();
    let table = |message: zbus::Message| json_table(&message.body().deserialize().unwrap());
    let tables = |message: zbus::Message| -> Value {
        let all: Vec<HashMap<String, OwnedValue>> = message.body().deserialize().unwrap();
        all.iter().map(json_table).collect()
    };
    let mode = |budget: &'static str, period: &'static str| {
        vec![HashMap::from([("budget", Variant::from(budget)), ("period", Variant::from(period))])]
    };
    // SAFETY: no arguments.
    let tid = unsafe { libc::gettid() } as u32;
    let request = |wish: HashMap<&str, Variant>| table(asked(&bus, "Request", &(wish,)));
    let mine = || HashMap::from([("thread", Variant::from(tid)), ("modes", mode("3ms", "10ms").into())]);
    let list = || tables(asked(&bus, "List", &()));

    said.insert("watch".into(), tables(asked(&bus, "Watch", &(0u64,))));
    said.insert("request".into(), request(mine()));
    said.insert("change".into(), table(asked(&bus, "Change", &(1u64, mode("2ms", "10ms")))));
    said.insert("list".into(), list());
    said.insert("cancel".into(), table(asked(&bus, "Cancel", &(1u64,))));
    said.insert("list-after".into(), list());

    // Again, and a scheduler.
    said.insert("again".into(), request(mine()));
    let modes = mode("2ms", "10ms");
    let scheduler = HashMap::from([("policy", Variant::from("fair")), ("modes", modes.into())]);
    said.insert("scheduler".into(), request(scheduler));
    let create = HashMap::from([
        ("name", Variant::from("video")),
        ("policy", Variant::from("fair")),
        ("under", Variant::from("")),
        ("keys", Variant::from(vec![vec!["weight", "3"]])),
    ]);
    let edits = vec![HashMap::from([("create", Variant::from(create))])];
    said.insert("divide".into(), table(asked(&bus, "Divide", &(3u64, edits, false))));
    said.insert("list-divided".into(), list());

    // As of RealtimeKit: the nice value of this thread.
    // SAFETY: no arguments but numbers.
    let nice = || unsafe { libc::getpriority(libc::PRIO_PROCESS, tid) };
    said.insert("nice-before".into(), nice().into());
    let kit = "/org/freedesktop/RealtimeKit1";
    bus.call_method(Some(KIT), kit, Some(KIT), "MakeThreadHighPriority", &(u64::from(tid), -7i32)).unwrap();
    said.insert("nice".into(), nice().into());

    late_jobs(&bus, &told, &mut said);

    // Until all is taken away.
    fs::write(format!("{file}.ready"), "").unwrap();
    let mut heard = Vec::new();
    while heard.iter().filter(|it: &&Value| it["what"] == "revoked").count() < 2 {
        heard.push(told.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{heard:?}")));
    }
    said.insert("heard".into(), heard.into());
    said.insert("list-revoked".into(), list());
    fs::write(file, Value::Object(said).to_string()).unwrap();
}

/// What was answered in [`late_jobs`], and told.
fn judge_late_jobs(client: &Value) {
    for (call, deadline) in
        [("late", "5ms".into()), ("late-longer", "10s".into()), ("late-none", Value::Null)]
    {
        let (answer, about) = (&client[call], &client[call]["about"]);
        assert_eq!((&answer["state"], &about["id"]), (&"granted".into(), &4.into()), "{call}: {answer}");
        assert_eq!(about["granted"]["mode"]["budget"], "1ms", "{call}: {answer}");
        assert_eq!(about["granted"]["mode"]["deadline"], deadline, "{call}: {answer}");
    }
    let missed = &client["late-missed"];
    assert_eq!((&missed["id"], &missed["to"]), (&4.into(), &"user:1001".into()), "{missed}");
    assert_eq!(missed["part"], client["late"]["about"]["granted"]["name"], "{missed}");
    assert!(missed["text"].as_str().unwrap().contains("missed the deadline"), "{missed}");
    assert_eq!(client["late-missed-longer"], serde_json::json!([]));
    for (said, (error, rule)) in client["late-refused"].as_array().unwrap().iter().zip([
        ("org.tierce.Manager1.RequestMustBeKnown", "time_must_not_be_zero"),
        ("org.tierce.Manager1.RequestMustBeKnown", "time_needs_a_unit"),
        ("org.tierce.Manager1.DeadlineNeedsThreads", "a scheduler has no jobs"),
    ]) {
        let said = said.as_str().unwrap();
        assert!(said.contains(error) && said.contains(rule), "{said}");
    }
    // What was refused has changed nothing.
    let requests = client["late-list"].as_array().unwrap();
    assert_eq!(
        (requests.len(), &requests[2]["id"], &requests[2]["state"]),
        (3, &4.into(), &"granted".into())
    );
    assert_eq!(requests[2]["granted"], client["late-none"]["about"]["granted"]);
    assert_eq!(client["late-cancel"]["state"], "ended");
}

/// Each call of the interface while a plan is in force, and the signal.
#[test]
fn a_user_asks_over_the_bus_and_is_told() {
    let out = std::env::temp_dir().join(format!("tierce-bus-{}", std::process::id()));
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args(["vm", "--deterministic", "--limit", "25m", "--kernel", "7.0.13", "--cpus", "1"]);
    vm.args(["--program", "dbus-daemon", "--program", "gdbus"]);
    vm.args(["--file", "/usr/share/dbus-1/system.conf:/usr/share/dbus-1/system.conf"]);
    for name in ["org.tierce.Manager1.conf", "org.tierce.RealtimeKit1.conf"] {
        vm.arg("--file").arg(format!("../../dist/{name}:/etc/dbus-1/system.d/{name}"));
    }
    for file in ["lib.sh", "manager.toml", "manager-rules.toml", "endless.rhai", "missed.rhai"] {
        vm.args(["--file", file]);
    }
    vm.arg("--file").arg(format!("{}:/guest/clients", std::env::current_exe().unwrap().display()));
    vm.arg("--out").arg(&out).args(["--", "sh", "bus.sh"]).current_dir(root().join("tests/vm"));
    let done = vm.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let file = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let log = || {
        let all = ["manager.err", "plan.err", "alice.log"].map(|name| format!("== {name}\n{}", file(name)));
        format!("{}\n{}\n{}", text(&done.stdout), text(&done.stderr), all.join("\n"))
    };
    assert!(done.status.success(), "{}", log());
    let got = scenarios(&text(&done.stdout), &log);
    assert_eq!(got["client-end"], 0, "{}", log());
    let client = &got["client"];
    println!("{client}");
    for (call, state, id, budget) in [
        ("request", "granted", 1, "3ms"),
        ("change", "granted", 1, "2ms"),
        ("again", "granted", 2, "3ms"),
        ("scheduler", "granted", 3, "2ms"),
        ("divide", "done", 3, "2ms"),
    ] {
        let (answer, about) = (&client[call], &client[call]["about"]);
        assert_eq!((&answer["state"], &about["id"]), (&state.into(), &id.into()), "{call}: {answer}");
        assert_eq!(about["granted"]["mode"]["budget"], budget, "{call}: {answer}");
        assert_eq!(about["owner"], "user:1001", "{call}: {answer}");
    }
    assert_eq!(client["cancel"]["state"], "ended");
    judge_late_jobs(client);
    let budgets = |list: &str| -> Vec<Value> {
        let all = client[list].as_array().unwrap();
        all.iter().map(|request| request["granted"]["mode"]["budget"].clone()).collect()
    };
    assert_eq!((budgets("list"), budgets("list-after")), (vec!["2ms".into()], Vec::new()));
    assert_eq!(budgets("list-divided"), ["3ms", "2ms"]);
    let part = &client["list-divided"][1]["divided"][0];
    assert_eq!((&part["name"], &part["params"]["weight"]), (&"video".into(), &"3".into()), "{part}");
    // The same as over the socket; another user sees and divides nothing of it, and what is only tried is not done.
    let requests = got["requests"]["answer"]["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 2, "{}", got["requests"]);
    assert_eq!(requests[1]["divided"].as_array().unwrap().len(), 1, "{}", got["requests"]);
    let said = |scenario: &str| got[scenario].as_str().unwrap();
    assert!(said("tried").contains("'state': <'done'>"), "{}", said("tried"));
    assert!(said("of-another").contains("org.tierce.Manager1.RequestMustExist"), "{}", said("of-another"));
    assert_eq!(said("seen-by-another"), "(@aa{sv} [],)");
    // As of RealtimeKit.
    assert_eq!((&client["nice-before"], &client["nice"]), (&0.into(), &(-7).into()));
    // Told before and after.
    assert_eq!(got["important"]["answer"]["state"], "granted", "{}", got["important"]);
    let heard = client["heard"].as_array().unwrap();
    let mut told: Vec<(&str, u64)> = Vec::new();
    for notice in heard {
        assert_eq!(notice["to"], "user:1001", "{notice}");
        told.push((notice["what"].as_str().unwrap(), notice["id"].as_u64().unwrap()));
    }
    told.sort_unstable();
    assert!(told.ends_with(&[("will_end", 2), ("will_end", 3)]), "{told:?}");
    assert!(told.contains(&("revoked", 2)) && told.contains(&("revoked", 3)), "{told:?}");
    assert_eq!(client["list-revoked"], serde_json::json!([]));
    assert_eq!(got["plan-end"], serde_json::json!({ "code": 0, "state": "disabled" }), "{}", log());
    let _ = fs::remove_dir_all(&out);
}

/// The other boot: PipeWire and its player ask by themselves, have what they asked for, and are never late beside hogs and a fork storm, which
/// they are without the manager. RealtimeKit's own client gets what it asks for, and the guarantees end with their threads.
#[test]
fn pipewire_asks_by_itself_and_is_never_late() {
    let out = std::env::temp_dir().join(format!("tierce-pipewire-{}", std::process::id()));
    let mut run = Command::new(root().join("bench/pipewire/run"));
    let done = run.arg("10").arg(&out).env("TIERCE", env!("CARGO_BIN_EXE_tierce")).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let file = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
    let log = || {
        let all = ["manager.err", "plan.err", "with.pipewire", "with.player", "rtkit-test", "bob"];
        let all: Vec<String> = all.iter().map(|name| format!("== {name}\n{}", file(name))).collect();
        format!("{}\n{}\n{}", text(&done.stdout), text(&done.stderr), all.join("\n"))
    };
    assert!(done.status.success(), "{}", log());
    println!("{}", text(&done.stdout));
    let got = scenarios(&file("said.json"), &log);
    // polkit lets alice ask, and nobody else.
    assert!(file("bob").contains("Failed to become realtime: Permission denied"), "{}", log());
    // Both have asked, each for the one of its threads that has deadlines.
    let requests = got["requests"]["answer"]["requests"].as_array().unwrap_or_else(|| panic!("{}", log()));
    assert_eq!(requests.len(), 2, "{}", log());
    let threads = file("threads");
    let threads: Vec<&str> = threads.lines().filter(|line| !line.is_empty()).collect();
    let status: Value = serde_json::from_str(&file("status.json")).unwrap_or_else(|_| panic!("{}", log()));
    for request in requests {
        assert_eq!((&request["state"], &request["label"]), (&"granted".into(), &"realtimekit".into()));
        assert_eq!(request["granted"]["mode"]["budget"], "3ms");
        let tid = request["thread"].to_string();
        assert!(threads.contains(&&tid[..]), "{tid} is none of {threads:?}");
        let name = request["granted"]["name"].as_str().unwrap();
        assert!(status.to_string().contains(name), "{name} is in the status: {status}");
    }
    // Periods, ends, delays and the quantum of all cycles, in us.
    let cycles = |part: &str| -> Vec<Vec<u64>> {
        let text = file(&format!("{part}.cycles"));
        let numbers = |line: &str| line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        text.lines().map(numbers).filter(|line: &Vec<u64>| line.len() == 4).collect()
    };
    let late = |part: &str| cycles(part).iter().filter(|cycle| cycle[1] >= cycle[3]).count();
    assert!(cycles("with").len() > 900 && cycles("without").len() > 100, "{}", log());
    assert!(cycles("with").iter().all(|cycle| cycle[3] == 10_000), "a quantum of 10 ms");
    assert_eq!((late("with"), &got["with"]["said_late"]), (0, &0.into()), "{}", log());
    assert!(late("without") > 10, "the load is none: {}", log());
    assert_eq!(got["rtkit-test"], "1", "{}", log());
    assert_eq!(got["gone"]["answer"]["requests"], Value::Null, "they end with their threads: {}", log());
    let _ = fs::remove_dir_all(&out);
}

/// What the machine runs this program for: it asks the portal for a thread of its own, and for some that it may not have. Writes what was
/// answered into the file that `PORTAL` names, and waits until that was read; without it there is nothing to test here.
#[test]
fn portal_client() {
    let Ok(file) = std::env::var("PORTAL") else { return };
    let bus = zbus::blocking::Connection::session().unwrap();
    let (tells, told) = channel();
    let (ends, end) = channel::<()>();
    let with_deadlines = std::thread::Builder::new().name("with-deadlines".into());
    let with_deadlines = with_deadlines.spawn(move || {
        // SAFETY: no arguments.
        tells.send(unsafe { libc::gettid() } as u64).unwrap();
        let _ = end.recv();
    });
    let (process, thread) = (u64::from(std::process::id()), told.recv().unwrap());
    let call = |method: &str, process: u64, thread: u64, number: Variant| {
        let (name, path) = ("org.freedesktop.portal.Desktop", "/org/freedesktop/portal/desktop");
        let interface = Some("org.freedesktop.portal.Realtime");
        let done = match number {
            Variant::U32(number) => {
                bus.call_method(Some(name), path, interface, method, &(process, thread, number))
            }
            Variant::I32(number) => {
                bus.call_method(Some(name), path, interface, method, &(process, thread, number))
            }
            _ => unreachable!(),
        };
        done.map_or_else(|error| error.to_string(), |_| "done".into())
    };
    let real_time =
        |process, thread, priority: u32| call("MakeThreadRealtimeWithPID", process, thread, priority.into());
    let high =
        |process, thread, nice: i32| call("MakeThreadHighPriorityWithPID", process, thread, nice.into());
    let mut said = serde_json::Map::new();
    let mut say = |what: &str, answer: Value| said.insert(what.into(), answer);
    say("thread", thread.into());
    say("unlimited", real_time(process, thread, 10).into());
    let limit = libc::rlimit { rlim_cur: 200_000, rlim_max: 200_000 };
    // SAFETY: the limit outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_RTTIME, &limit) }, 0);
    say("realtime", real_time(process, thread, 10).into());
    say("again", real_time(process, thread, 10).into());
    say("priority", real_time(process, thread, 21).into());
    say("high", high(process, process, -7).into());
    // SAFETY: no arguments but numbers.
    say("nice", unsafe { libc::getpriority(libc::PRIO_PROCESS, process as u32) }.into());
    let foreign = std::env::var("FOREIGN").unwrap().parse().unwrap();
    say("foreign", real_time(foreign, foreign, 10).into());
    say("foreign-high", high(foreign, foreign, -7).into());
    say("not-of-the-process", real_time(process, foreign, 10).into());
    fs::write(format!("{file}.ready"), Value::Object(said).to_string()).unwrap();
    while !Path::new(&format!("{file}.go")).exists() {
        std::thread::sleep(Duration::from_millis(100));
    }
    drop(ends);
    with_deadlines.unwrap().join().unwrap();
}

/// xdg-desktop-portal asks for threads of programs that ask it, also of one whose processes have other numbers in its sandbox: they have
/// reservations as if they had asked by themselves, and other users' threads have none.
#[test]
fn programs_ask_through_the_portal() {
    let out = std::env::temp_dir().join(format!("tierce-portal-{}", std::process::id()));
    let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
    vm.args([
        "vm",
        "--deterministic",
        "--limit",
        "25m",
        "--kernel",
        "7.0.13",
        "--cpus",
        "1",
        "--memory",
        "1G",
    ]);
    let portal = ["xdg-desktop-portal", "xdg-permission-store"].map(|name| format!("/usr/libexec/{name}"));
    for program in ["dbus-daemon", "gdbus", &portal[0], &portal[1]] {
        vm.args(["--program", program]);
    }
    for name in ["system", "session"] {
        vm.arg("--file").arg(format!("/usr/share/dbus-1/{name}.conf:/usr/share/dbus-1/{name}.conf"));
    }
    for name in ["org.tierce.Manager1.conf", "org.tierce.RealtimeKit1.conf"] {
        vm.arg("--file").arg(format!("../../dist/{name}:/etc/dbus-1/system.d/{name}"));
    }
    for file in ["lib.sh", "manager.toml", "pipewire-manager.toml"] {
        vm.args(["--file", file]);
    }
    vm.arg("--file").arg(format!("{}:/guest/clients", std::env::current_exe().unwrap().display()));
    vm.arg("--out").arg(&out).args(["--", "sh", "portal.sh"]).current_dir(root().join("tests/vm"));
    let done = vm.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let log = || {
        let file = |name: &str| fs::read_to_string(out.join(name)).unwrap_or_default();
        let all = ["manager.err", "plan.err", "portal.log", "plain.log", "sandbox.log"];
        let all = all.map(|name| format!("== {name}\n{}", file(name)));
        format!("{}\n{}\n{}", text(&done.stdout), text(&done.stderr), all.join("\n"))
    };
    assert!(done.status.success(), "{}", log());
    let got = scenarios(&text(&done.stdout), &log);
    for program in ["plain", "sandbox"] {
        let of = |what: &str| &got[&format!("{program}{what}")];
        let said = of("");
        println!("{program}: thread {} is {} outside; {said}", said["thread"], of("-thread"));
        assert_eq!(said["thread"] == *of("-thread"), program == "plain", "{}", log());
        assert!(said["unlimited"].as_str().unwrap().contains("RLIMIT_RTTIME"), "{}", log());
        assert_eq!((&said["realtime"], &said["again"]), (&"done".into(), &"done".into()), "{}", log());
        assert!(said["priority"].as_str().unwrap().contains("priority 21, bound 20"), "{}", log());
        assert_eq!((&said["high"], &said["nice"]), (&"done".into(), &(-7).into()), "{}", log());
        // One request, for that thread, in the name of its user; the thread has its place in the plan in force.
        let requests = of("-requests")["answer"]["requests"].as_array().unwrap();
        assert_eq!(requests.len(), 1, "{}", log());
        let request = &requests[0];
        assert_eq!((&request["state"], &request["owner"]), (&"granted".into(), &"user:1001".into()));
        assert_eq!((&request["label"], &request["thread"]), (&"realtimekit".into(), of("-thread")));
        assert_eq!(request["granted"]["mode"]["budget"], "3ms", "{request}");
        let threads = of("-status")["threads"].as_array().unwrap();
        let place = threads.iter().find(|thread| thread["tid"] == *of("-thread"));
        assert_eq!(place.unwrap_or_else(|| panic!("{threads:?}"))["name"], request["granted"]["name"]);
        assert_eq!(got[&format!("{program}-end")], 0, "{}", log());
        assert_eq!(of("-gone")["answer"]["requests"], Value::Null, "it ends with its thread: {}", log());
    }
    // From the sandbox the portal finds only what is in it.
    for (program, what, error) in [
        ("plain", "foreign", "another user's"),
        ("plain", "foreign-high", "another user's"),
        ("plain", "not-of-the-process", "No such file or directory"),
        ("sandbox", "foreign", "Could not map"),
        ("sandbox", "foreign-high", "Could not map"),
        ("sandbox", "not-of-the-process", "Could not map"),
    ] {
        assert!(got[program][what].as_str().unwrap().contains(error), "{program} {what}: {}", log());
    }
    assert_eq!(got["plan-end"], serde_json::json!({ "code": 0, "state": "disabled" }), "{}", log());
    let _ = fs::remove_dir_all(&out);
}
