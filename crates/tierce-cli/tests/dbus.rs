//! `tierce-manager` on a bus of the test's own, and no plan in force: what is refused. What is granted is in dbus_boots.rs.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use zbus::zvariant::Value as Variant;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A user who is not root.
const NOBODY: u32 = 65534;

/// A bus with a manager on it, and no plan in force.
struct Bus {
    folder: PathBuf,
    children: Vec<Child>,
}

impl Bus {
    fn new(name: &str, config: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("tierce-dbus-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        let text = format!(
            "<busconfig><type>system</type><listen>unix:path={}/bus</listen><auth>EXTERNAL</auth>\
             <policy context='default'><allow user='*'/><allow own='*'/><allow send_type='method_call'/>\
             <allow send_type='signal'/><allow send_requested_reply='true' send_type='method_return'/>\
             <allow send_requested_reply='true' send_type='error'/><allow receive_sender='*'/></policy></busconfig>",
            folder.display()
        );
        fs::write(folder.join("bus.conf"), text).unwrap();
        fs::write(folder.join("manager.toml"), config).unwrap();
        let mut bus = Self { folder, children: Vec::new() };
        let mut daemon = Command::new("dbus-daemon");
        daemon.args(bus.arguments());
        bus.children.push(daemon.spawn().expect("dbus-daemon"));
        bus.wait_for("bus");
        bus
    }

    fn arguments(&self) -> [String; 2] {
        ["--nofork".into(), format!("--config-file={}/bus.conf", self.folder.display())]
    }

    /// The bus again, for users whom the manager does not know: dbus-daemon lets in only those who have a name. (dbus-broker lets in all.)
    fn admit(&mut self, users: std::ops::Range<u32>) {
        let _ = (self.children[0].kill(), self.children[0].wait());
        fs::remove_file(self.folder.join("bus")).unwrap();
        let named = users.map(|uid| format!("u{uid}:x:{uid}:{uid}::/:/bin/sh\n")).collect::<String>();
        let passwd = self.folder.join("passwd");
        fs::write(&passwd, fs::read_to_string("/etc/passwd").unwrap() + &named).unwrap();
        let mut daemon = Command::new("unshare");
        daemon.args(["--mount", "sh", "-c", "mount --bind \"$0\" /etc/passwd && exec dbus-daemon \"$@\""]);
        self.children[0] = daemon.arg(passwd).args(self.arguments()).spawn().unwrap();
        self.wait_for("bus");
    }

    fn manage(&mut self) {
        let file = |name: &str| self.folder.join(name);
        let mut manager = Command::new(env!("CARGO_BIN_EXE_tierce-manager"));
        manager.arg("--config").arg(file("manager.toml")).arg("--listen").arg(file("manager.sock"));
        manager.arg("--books").arg(file("books.json")).arg("--socket").arg(file("nobody.sock"));
        manager.env("DBUS_SYSTEM_BUS_ADDRESS", self.address());
        manager.stderr(fs::File::create(file("manager.err")).unwrap());
        self.children.push(manager.spawn().unwrap());
        self.wait_until("org.freedesktop.RealtimeKit1", |said| said.contains("answers as"));
    }

    fn address(&self) -> String {
        format!("unix:path={}/bus", self.folder.display())
    }

    fn wait_for(&self, file: &str) {
        let begun = Instant::now();
        while !self.folder.join(file).exists() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{file} is not there");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn wait_until(&self, what: &str, is: impl Fn(&str) -> bool) {
        let begun = Instant::now();
        loop {
            let said = fs::read_to_string(self.folder.join("manager.err")).unwrap_or_default();
            if is(&said) {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {said}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Until it is so; a person may ask ten times a second.
    fn eventually(&self, what: &str, is: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is(self) {
            assert!(begun.elapsed() < Duration::from_secs(60), "{what}: not within 60 s");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// What is answered, or the error. `before` runs gdbus; it is another user who asks, where that is possible.
    fn call(&self, before: &[&str], interface: &str, method: &str, arguments: &[&str]) -> String {
        let path = format!("/{}", interface.replace('.', "/"));
        let address = self.address();
        let mut words = before.to_vec();
        words.extend(["gdbus", "call", "--address", &address, "--dest", interface, "--object-path", &path]);
        let method = if method.contains('.') { method.to_string() } else { format!("{interface}.{method}") };
        words.extend(["--method", &method, "--"]); // numbers may be negative
        words.extend(arguments);
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        // SAFETY: no arguments.
        if unsafe { libc::geteuid() } == 0 && before != ROOT {
            command.uid(NOBODY).gid(NOBODY);
        }
        let done = command.output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr))
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        for child in self.children.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const MANAGER: &str = "org.tierce.Manager1";
const KIT: &str = "org.freedesktop.RealtimeKit1";
/// So that root asks, if this is root.
const ROOT: &[&str] = &["env"];
/// A process that limits the time for which its real-time threads run without a wait.
const LIMITED: &[&str] = &["prlimit", "--rttime=200000:200000"];

#[test]
fn what_may_not_be_asked_is_refused_by_name() {
    let mut bus = Bus::new("refused", "");
    bus.manage();
    let mode = "{'thread': <uint32 7>, 'modes': <[{'budget': <'2ms'>, 'period': <'10ms'>}]>}";
    for (method, arguments, error) in [
        ("Request", &[mode][..], "org.tierce.Manager1.PlanMustBeInForce"),
        ("Request", &["{'threat': <uint32 7>}"], "org.tierce.Manager1.RequestMustBeKnown"),
        ("Request", &["{'thread': <0.5>}"], "org.tierce.Manager1.ValueMustBePlain"),
        (
            "Change",
            &["1", "[{'budget': <'2ms'>, 'period': <'1ms'>}]"],
            "org.tierce.Manager1.RequestMustBeKnown",
        ),
        ("Divide", &["1", "[{'creat': <''>}]", "false"], "org.tierce.Manager1.RequestMustBeKnown"),
        ("Divide", &["1", "[]", "true"], "org.tierce.Manager1.PlanMustBeInForce"),
        ("Cancel", &["1"], "org.tierce.Manager1.PlanMustBeInForce"),
        ("List", &[], "org.tierce.Manager1.PlanMustBeInForce"),
        ("Watch", &["0"], "org.tierce.Manager1.PlanMustBeInForce"),
        ("No", &[], "org.freedesktop.DBus.Error.UnknownMethod"),
    ] {
        let said = bus.call(ROOT, MANAGER, method, arguments);
        assert!(said.contains(error), "{method} {arguments:?}: {said}");
    }
    let long = format!("{{'label': <'{}'>}}", "x".repeat(1 << 16));
    assert!(bus.call(ROOT, MANAGER, "Request", &[&long]).contains("RequestTooLong"));
    let wrong = zbus::blocking::connection::Builder::address(&bus.address()[..]).unwrap().build().unwrap();
    let path = "/org/tierce/Manager1";
    let error = wrong.call_method(Some(MANAGER), path, Some(MANAGER), "Request", &(7u32)).unwrap_err();
    assert!(error.to_string().contains("InvalidArgs") || error.to_string().contains("Signature"), "{error}");
    // RealtimeKit's errors: what makes no sense has failed, what is not allowed is denied.
    let (failed, denied) = ("org.freedesktop.DBus.Error.Failed", "org.freedesktop.DBus.Error.AccessDenied");
    let own = std::process::id().to_string();
    for (before, method, arguments, error) in [
        (&[][..], "MakeThreadRealtime", &["0", "0"][..], failed),
        (&[], "MakeThreadRealtime", &["0", "100"], failed),
        (&[], "MakeThreadRealtime", &["0", "21"], denied),
        (&[], "MakeThreadRealtime", &[&own, "20"], failed),
        (&[], "MakeThreadRealtime", &["18446744073709551615", "20"], failed),
        (&[], "MakeThreadRealtimeWithPID", &["4294967295", "0", "20"], failed),
        (&[], "MakeThreadRealtime", &["0", "20"], "RLIMIT_RTTIME"),
        (LIMITED, "MakeThreadRealtime", &["0", "20"], "plan_must_be_in_force"),
        (&[], "MakeThreadHighPriority", &["0", "20"], failed),
        (&[], "MakeThreadHighPriority", &["0", "-16"], denied),
        (&[], "MakeThreadHighPriorityWithPID", &["1", &own, "-5"], failed),
    ] {
        let said = bus.call(before, KIT, method, arguments);
        assert!(said.contains(error), "{method} {arguments:?}: {said}");
    }
    for (property, value) in [
        ("RTTimeUSecMax", "(<int64 200000>,)"),
        ("MaxRealtimePriority", "(<20>,)"),
        ("MinNiceLevel", "(<-15>,)"),
    ] {
        let said = bus.call(&[], KIT, "org.freedesktop.DBus.Properties.Get", &[KIT, property]);
        assert_eq!(said.trim(), value, "{property}");
    }
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } == 0 {
        let said = bus.call(&[], KIT, "MakeThreadRealtimeWithPID", &[&own, &own, "20"]);
        assert!(said.contains("another user's"), "{said}");
        for method in ["ResetKnown", "ResetAll", "Exit"] {
            let said = bus.call(&[], KIT, method, &[]);
            assert!(said.contains(denied), "{method}: {said}");
        }
        assert!(bus.call(ROOT, KIT, "Exit", &[]).contains("()"));
        assert!(bus.children[1].wait().unwrap().success(), "it ends as by SIGTERM");
    }
}

/// polkit beside the bus, with our actions alone, and with the rules of a folder of this test.
fn polkit(bus: &Bus) -> Child {
    let (actions, rules) = (bus.folder.join("actions"), bus.folder.join("rules"));
    fs::create_dir(&actions).unwrap();
    fs::create_dir(&rules).unwrap();
    let ours = "org.tierce.Manager1.policy";
    fs::copy(root().join("dist").join(ours), actions.join(ours)).unwrap();
    let mounts =
        "mount --bind \"$0\" /usr/share/polkit-1/actions && mount --bind \"$1\" /etc/polkit-1/rules.d";
    let script = format!("{mounts} && exec /usr/lib/polkit-1/polkitd --no-debug");
    let mut polkit = Command::new("unshare");
    polkit.args(["--mount", "sh", "-c", &script]).args([&actions, &rules]);
    polkit.env("DBUS_SYSTEM_BUS_ADDRESS", bus.address()).spawn().expect("unshare, util-linux")
}

#[test]
fn polkit_says_who_may_and_without_it_the_configuration() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return; // the manager's own user may do everything, and there is no other one
    }
    let mut bus = Bus::new("polkit", "[access]\nrequest = [\"user:1\"]\nreal-time = [\"group:65534\"]\n");
    bus.manage();
    let request = |bus: &Bus| bus.call(&[], MANAGER, "Request", &["{}"]);
    let real_time = |bus: &Bus| bus.call(LIMITED, KIT, "MakeThreadRealtime", &["0", "20"]);
    let by_configuration = |bus: &Bus| request(bus).contains("configuration");
    assert!(request(&bus).contains("AskerMustBeAuthorized") && by_configuration(&bus), "{}", request(&bus));
    assert!(real_time(&bus).contains("plan_must_be_in_force"));

    // By the actions as they are installed: everybody may ask, and who has no session gets no reservation by RealtimeKit.
    bus.children.push(polkit(&bus));
    bus.eventually("polkit decides", |bus| request(bus).contains("PlanMustBeInForce"));
    assert!(real_time(&bus).contains("AccessDenied") && real_time(&bus).contains("polkit"));
    assert!(bus.call(&[], KIT, "MakeThreadHighPriority", &["0", "-5"]).contains("AccessDenied"));
    // By a rule of the administrator.
    let rule = |action: &str, says: &str| {
        let named = format!("action.id == \"org.tierce.Manager1.{action}\" && subject.user == \"nobody\"");
        format!(
            "polkit.addRule(function (action, subject) {{ if ({named}) return polkit.Result.{says}; }});\n"
        )
    };
    let rules = rule("real-time", "YES") + &rule("request", "NO");
    fs::write(bus.folder.join("rules/10-test.rules"), rules).unwrap();
    bus.eventually("the rules are read", |bus| real_time(bus).contains("plan_must_be_in_force"));
    assert!(request(&bus).contains("AskerMustBeAuthorized") && request(&bus).contains("polkit"));

    // One that does not answer lets nobody in; one that is gone leaves it to the configuration.
    let pid = bus.children[2].id() as i32;
    // SAFETY: no memory; a child of this process.
    unsafe { libc::kill(pid, libc::SIGSTOP) };
    assert!(request(&bus).contains("PolkitMustAnswer"), "{}", request(&bus));
    let _ = (bus.children[2].kill(), bus.children[2].wait());
    bus.eventually("polkit is gone", by_configuration);
}

/// The bus for this thread, which is another user's from here on, unless all are.
fn as_nobody(folder: &Path) -> zbus::blocking::Connection {
    // SAFETY: no arguments but numbers. The system call changes the user of this thread alone, which ends with it.
    let is_other =
        unsafe { libc::geteuid() != 0 || libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) == 0 };
    assert!(is_other);
    let stream = std::os::unix::net::UnixStream::connect(folder.join("bus")).unwrap();
    zbus::blocking::connection::Builder::unix_stream(stream).build().unwrap()
}

#[test]
fn who_calls_too_often_is_refused() {
    let mut bus = Bus::new("often", "");
    bus.manage();
    let folder = bus.folder.clone();
    let calls = std::thread::spawn(move || {
        let bus = as_nobody(&folder);
        let list = || bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), "List", &());
        (0..200).map(|_| list().unwrap_err().to_string()).collect::<Vec<_>>()
    });
    let said = calls.join().unwrap();
    let refused = said.iter().filter(|error| error.contains("TooManyRequestsPerSecond")).count();
    println!("{refused} of 200 calls are refused");
    assert!(said[..20].iter().all(|error| error.contains("PlanMustBeInForce")), "{:?}", &said[..20]);
    assert!(refused > 50, "{refused}: {:?}", said.last());
    assert!(bus.call(ROOT, MANAGER, "List", &[]).contains("PlanMustBeInForce"));
}

#[test]
fn what_is_too_long_is_refused_before_it_is_unpacked() {
    let mut bus = Bus::new("long", "");
    bus.manage();
    let folder = bus.folder.clone();
    let calls = std::thread::spawn(move || {
        let bus = as_nobody(&folder);
        let table = |bytes: usize| HashMap::from([("about", Variant::from(vec![1u8; bytes]))]);
        let call = |method: &str, arguments: &HashMap<&str, Variant<'_>>| {
            let call =
                bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), method, arguments);
            call.unwrap_err().to_string()
        };
        // A property that nobody has is a value, too, and so is what has the wrong type.
        let properties = "org.freedesktop.DBus.Properties";
        let set = (KIT, "MinNiceLevel", &Variant::from(vec![1u8; 1 << 24]));
        let path = format!("/{}", KIT.replace('.', "/"));
        let set = bus.call_method(Some(KIT), &path[..], Some(properties), "Set", &set).unwrap_err();
        let mut said = vec![set.to_string()];
        said.extend([1 << 24, 1 << 20, 1 << 17].map(|bytes| call("Request", &table(bytes))));
        let mut took = Vec::new();
        for bytes in [1 << 17, 1] {
            let begun = Instant::now();
            said.extend((0..200).map(|_| call("Cancel", &table(bytes))));
            took.push(begun.elapsed());
        }
        (said, took)
    });
    let (said, took) = calls.join().unwrap();
    let short: Vec<_> = said.iter().map(|error| error.chars().take(80).collect::<String>()).collect();
    assert!(said[1..4].iter().all(|error| error.contains("RequestTooLong")), "{short:?}");
    // 20 at once, and ten per second.
    let limited = |said: &[String], took: Duration| {
        let refused = said.iter().filter(|error| error.contains("TooManyRequestsPerSecond")).count();
        said.len() - refused <= 21 + took.as_millis() as usize / 100
    };
    assert!(limited(&said[4..204], took[0]), "what is too long counts: {took:?}, {short:?}");
    assert!(limited(&said[204..], took[1]), "what is malformed counts: {took:?}, {short:?}");
    let status = fs::read_to_string(format!("/proc/{}/status", bus.children[1].id())).unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let most_kib: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
    println!("the manager had {most_kib} KiB at most");
    assert!(most_kib < 64 << 10, "{most_kib} KiB");
    assert!(bus.call(ROOT, MANAGER, "List", &[]).contains("PlanMustBeInForce"));
}

#[test]
fn users_without_a_name_call_as_often_as_one() {
    // SAFETY: no arguments.
    if unsafe { libc::geteuid() } != 0 {
        return; // nobody else can be somebody else
    }
    let users = 3_000_000_000..3_000_000_050;
    let mut bus = Bus::new("nameless", "");
    bus.admit(users.clone());
    bus.manage();
    let folder = bus.folder.clone();
    let begun = Instant::now();
    let calls = std::thread::spawn(move || {
        let mut said = Vec::new();
        for uid in users {
            const SAME: u32 = u32::MAX;
            // SAFETY: no arguments but numbers. The system call changes the user of this thread alone, which ends with it.
            let be = |uid: u32| unsafe { libc::syscall(libc::SYS_setresuid, SAME, uid, SAME) };
            assert_eq!(be(uid), 0);
            let stream = std::os::unix::net::UnixStream::connect(folder.join("bus")).unwrap();
            let bus = zbus::blocking::connection::Builder::unix_stream(stream).build().unwrap();
            assert_eq!(be(0), 0);
            let list = bus.call_method(Some(MANAGER), "/org/tierce/Manager1", Some(MANAGER), "List", &());
            said.push(list.unwrap_err().to_string());
        }
        said
    });
    let said = calls.join().unwrap();
    let answered = said.iter().filter(|error| error.contains("PlanMustBeInForce")).count();
    let refused = said.iter().filter(|error| error.contains("TooManyRequestsPerSecond")).count();
    println!("{answered} of 50 users are answered, {refused} refused");
    let most = 21 + begun.elapsed().as_millis() as usize / 100; // 20 at once, and ten per second
    assert!((20..=most).contains(&answered) && answered + refused == said.len(), "{said:?}");
}

#[test]
fn a_bus_that_comes_back_is_found_again() {
    let mut bus = Bus::new("again", "");
    bus.manage();
    let _ = (bus.children[0].kill(), bus.children[0].wait());
    bus.wait_until("hung up", |said| said.contains("the bus has hung up"));
    fs::remove_file(bus.folder.join("bus")).unwrap();
    bus.children[0] = Command::new("dbus-daemon").args(bus.arguments()).spawn().unwrap();
    bus.wait_until("again", |said| said.matches("answers as").count() == 2);
    assert!(bus.call(ROOT, MANAGER, "List", &[]).contains("PlanMustBeInForce"));
}
