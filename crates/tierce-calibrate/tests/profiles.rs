//! Profiles as text, in their folders, and the plans that are made of them.

use std::path::{Path, PathBuf};
use tierce_admission::PlanExt;
use tierce_calibrate::{
    plan, Arrival, Calibration, File, Finding, Importance, Kind, Layer, Machine, Margin, Period, Profile,
    Program, Routine, Seen, Store, StoreError, Verdict, Work,
};
use tierce_plan::{Child, Plan, Thread};

const MS: u64 = 1_000_000;

fn period(period_ns: u64, work_ns: u64) -> Period {
    Period {
        period_ns,
        is_absolute: true,
        jitter_p99_ns: 20_000,
        jitter_max_ns: 31_001,
        kept: 998,
        chance_percent: 1,
        work: Work {
            jobs: 100,
            median_ns: work_ns / 2,
            p90_ns: work_ns - 200,
            p99_ns: work_ns - 100,
            max_ns: work_ns,
        },
        overruns: 0,
        resumed: 3,
        first_ns: 17,
        last_ns: 9_990 * MS,
    }
}

fn seen(name: &str, kind: Kind) -> Seen {
    let finding =
        Finding { wakeups: 1000, watched_ns: 10_000 * MS, ran_ns: 2_000 * MS, waited_ns: 10 * MS, kind };
    Seen { name: name.into(), routine: None, process: "player".into(), finding }
}

/// The same with a routine, which has a function's name if it is not at 0.
fn from(at: u64, seen: Seen) -> Seen {
    let function = (at != 0).then(|| format!("at_{at:x}"));
    Seen { routine: Some(Routine { place: format!("player+{at:#x}"), function }), ..seen }
}

fn periodic(name: &str, periods: &[Period]) -> Seen {
    seen(name, Kind::Periodic { periods: periods.to_vec(), explained: 987 })
}

fn aperiodic(name: &str) -> Seen {
    let work = Work { jobs: 1000, median_ns: 1, p90_ns: 2, p99_ns: 3, max_ns: 4 };
    seen(name, Kind::Aperiodic { arrival: Arrival::Random, chance_percent: Some(43), work })
}

fn profile(path: &str, threads: &[Seen]) -> Profile {
    let file = |path: &str| File { path: path.into(), sha256: "ab".repeat(32) };
    let program = Program {
        executable: file(path),
        libraries: vec![file("/lib/a b.so"), file("/lib/\"quoted\\\u{7}.so")],
    };
    let machine = Machine { kernel: "7.0.13".into(), cpu: "A CPU".into(), frequency: "governor x".into() };
    let calibration =
        Calibration { watched_ns: 10_000 * MS, lost: 0, importance: Importance::Normal, margin: Margin(10) };
    Profile::new(program, machine, calibration, threads)
}

fn player() -> Profile {
    let worker = |period_ns| periodic("worker", &[period(period_ns, 2 * MS)]);
    profile(
        "/usr/bin/player",
        &[
            periodic("audio", &[period(10_000_003, 2 * MS)]),
            worker(20 * MS),
            worker(20 * MS + 100_000),
            worker(40 * MS), // another period: another entry
            periodic("2 [mixed]*", &[period(10 * MS, MS), period(25 * MS, 3 * MS)]),
            aperiodic("ui"),
            seen("rare", Kind::Rare),
            seen("busy", Kind::Busy),
        ],
    )
}

#[test]
fn threads_that_are_the_same_are_one_entry() {
    let player = player();
    let count = |name: &str| {
        player.threads.iter().filter(|it| it.name == name).map(|it| it.count).collect::<Vec<_>>()
    };
    assert_eq!(count("worker"), [2, 1]);
    let both = &player.threads[1];
    assert_eq!((both.wakeups, both.load, both.periods[0].work.jobs, both.explained), (2000, 400, 200, 987));
    assert_eq!(both.periods[0].period_ns, 20 * MS);
    assert_eq!(player.threads.iter().filter(|it| it.reservation.is_some()).count(), 4);
    assert!(player.has_period() && !profile("/bin/x", &[aperiodic("ui")]).has_period());
}

#[test]
fn a_text_is_read_as_it_was_written() {
    let player = player();
    let text = player.to_string();
    assert_eq!(text.parse::<Profile>().unwrap(), player, "{text}");
    assert!(
        text.contains("reservation = { budget = \"2.2ms\", period = \"10ms\", deadline = \"10ms\" }"),
        "{text}"
    );
    let other = player.clone().with(Importance::High, Margin(50));
    assert_eq!(other.threads[0].reservation.unwrap().budget_ns, 3 * MS);
    assert_eq!(other.to_string().parse::<Profile>().unwrap(), other);
}

/// Two of one name, period and kind, but of two routines, and one whose routine is not known.
fn twins() -> Profile {
    let worker = |work_ms| periodic("worker", &[period(20 * MS, work_ms * MS)]);
    let pool = |at| from(at, periodic("pool", &[period(30 * MS, MS)]));
    let main = Seen { routine: Some(Routine { place: "main".into(), function: None }), ..aperiodic("ui") };
    let all = [
        from(0x10, worker(1)),
        from(0x20, worker(4)),
        from(0x20, worker(5)),
        worker(2),
        pool(0x30),
        pool(0x30),
    ];
    profile(
        "/usr/bin/player",
        &[&all[..], &[periodic("pool", &[period(30 * MS, MS)]), main, from(0, aperiodic("ui"))]].concat(),
    )
}

#[test]
fn threads_of_one_name_are_told_apart_by_routine() {
    let twins = twins();
    let entry = |thread: &tierce_calibrate::Thread| {
        let routine = thread.routine.as_ref().map(|routine| routine.place.clone());
        (thread.name.clone(), routine, thread.count, thread.reservation.map(|it| it.budget_ns / MS))
    };
    let is = |name: &str, place: Option<&str>, count: u32, budget_ms: Option<u64>| {
        (name.to_string(), place.map(String::from), count, budget_ms)
    };
    let entries: Vec<_> = twins.threads.iter().map(entry).collect();
    let expected = [
        is("worker", Some("player+0x10"), 1, Some(1)),
        is("worker", Some("player+0x20"), 2, Some(5)),
        is("worker", None, 1, Some(2)),
        is("pool", None, 3, Some(1)), // all that are known began in one place: the name says as much
        is("ui", Some("main"), 1, None),
        is("ui", Some("player+0x0"), 1, None),
    ];
    assert_eq!(entries, expected);
    let of = |name: &str, place: Option<&str>| {
        let found = twins.thread(name, place);
        found.map(|found| twins.threads.iter().position(|thread| thread == found).unwrap())
    };
    let places = [Some("player+0x10"), Some("player+0x20"), Some("player+0x99"), None];
    assert_eq!(places.map(|place| of("worker", place)), [Some(0), Some(1), Some(2), Some(2)]);
    assert_eq!([Some("main"), Some("player+0x10"), None].map(|place| of("ui", place)), [Some(4), None, None]);
    assert_eq!(
        ["worker", "pool", "ui", "other"].map(|name| twins.has_routines(name)),
        [true, false, true, false]
    );
    assert_eq!(["pool", "other"].map(|name| of(name, Some("player+0x10"))), [Some(3), None]);
    let text = twins.to_string();
    assert_eq!(text.parse::<Profile>().unwrap(), twins, "{text}");
    assert!(text.contains("routine = \"player+0x10\"\nfunction = \"at_10\"\n"), "{text}");
    for (from, to, expected) in [
        ("\"player+0x10\"", "3", "value_must_be_text: thread[0].routine: Integer(3)"),
        (
            "\"player+0x10\"",
            "\"light\"",
            "routine_must_be_a_place: thread[0].routine: \"light\", bound \"main\" or a file",
        ),
        ("player+0x10", "player+0x", "routine_must_be_a_place"),
        ("player+0x10", "+0x10", "routine_must_be_a_place"),
        ("player+0x10", "player+0x1G", "routine_must_be_a_place"),
        ("player+0x10", "player+0x00000000000000010", "routine_must_be_a_place"),
        ("\"at_10\"", "[]", "value_must_be_text: thread[0].function"),
        ("routine = \"player+0x10\"\n", "", "key_must_be_known: thread[0].function"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = changed.parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
}

#[test]
fn texts_that_are_refused() {
    let text = player().to_string();
    for (from, to, expected) in [
        ("version = 1", "version = 3", "version_must_be_known: version: 3, bound 1"),
        ("version = 1", "", "key_must_be_given: version: missing"),
        ("version = 1", "version", "profile_must_be_toml: TOML parse error"),
        ("kernel = ", "kernels = ", "key_must_be_known: machine.kernels: "),
        ("lost = 0", "lost = 0\nfound = 1", "key_must_be_known: calibration.found: "),
        (
            "lost = 0",
            "lost = -1",
            "value_must_be_a_whole_number: calibration.lost: Integer(-1), bound 0 or more",
        ),
        ("\"2.2ms\"", "\"22ms\"", "budget_must_not_exceed_period: thread[0].reservation.budget: 22ms > 10ms"),
        (
            "\"2.2ms\"",
            "\"2.2\"",
            "time_needs_a_unit: thread[0].reservation.budget: a time needs a unit: \"2.2\"",
        ),
        ("\"2.2ms\"", "2", "value_must_be_text: thread[0].reservation.budget: Integer(2)"),
        ("verdict = \"periodic\"", "verdict = \"odd\"", "\"odd\", bound periodic, aperiodic, rare, busy"),
        ("importance = \"normal\"", "importance = \"vital\"", "\"vital\", bound low, normal, high"),
        ("clock = \"timer\"", "clock = \"sun\"", "thread[0].period[0].clock: \"sun\", bound timer, sleep"),
        ("arrival = \"random\"", "arrival = \"late\"", "\"late\", bound even, random, clustered"),
        ("jitter = {", "jitter = 1 #", "value_must_be_a_table: thread[0].period[0].jitter: Integer(1)"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(changed, text, "{from}");
        let error = changed.parse::<Profile>().unwrap_err().to_string();
        assert!(error.contains(expected), "{to}: {error}");
    }
    let head = text.split("\n[[thread]]").next().unwrap();
    let error = head
        .replacen("version = 1", "version = 1\nthread = 3", 1)
        .parse::<Profile>()
        .unwrap_err()
        .to_string();
    assert!(error.contains("value_must_be_tables: thread: Integer(3)"), "{error}");
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tierce-profiles-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn later_layers_override_earlier_ones() {
    let folder = Folder::new("layers");
    let store = Store::at(&folder.0, Some(folder.0.join("home/.config")));
    let program = Path::new("/usr/bin/player");
    assert_eq!(store.find(program).unwrap(), None);
    assert_eq!(store.list().0, []);
    for (at, layer) in Layer::ALL.into_iter().enumerate() {
        let mut profile = player();
        profile.calibration.lost = at as u64;
        let file = store.keep(layer, &profile).unwrap();
        assert!(file.ends_with("tierce/profiles/usr/bin/player.toml"), "{}", file.display());
        let found = store.find(program).unwrap().unwrap();
        assert_eq!((found.layer, found.file, found.profile), (layer, file, profile));
    }
    store.keep(Layer::Vendor, &profile("/usr/bin/other", &[aperiodic("x")])).unwrap();
    let (all, wrong) = store.list();
    let layers: Vec<_> =
        all.iter().map(|it| (it.profile.program.executable.path.to_str().unwrap(), it.layer)).collect();
    assert_eq!(layers, [("/usr/bin/other", Layer::Vendor), ("/usr/bin/player", Layer::User)]);
    assert!(wrong.is_empty());
    // Nobody's home: the other three.
    let found = Store::at(&folder.0, None).find(program).unwrap().unwrap();
    assert_eq!(found.layer, Layer::Machine);
    assert!(matches!(Store::at(&folder.0, None).keep(Layer::User, &player()), Err(StoreError::NoHome)));
}

#[test]
fn what_is_wrong_in_a_folder() {
    let folder = Folder::new("wrong");
    let store = Store::at(&folder.0, None);
    let right = store.keep(Layer::System, &player()).unwrap();
    let misplaced = right.with_file_name("impostor.toml");
    std::fs::copy(&right, &misplaced).unwrap();
    std::fs::write(right.with_file_name("broken.toml"), "version").unwrap();
    std::fs::write(right.with_file_name("notes.txt"), "no profile").unwrap();
    let (all, wrong) = store.list();
    assert_eq!((all.len(), wrong.len()), (1, 2));
    let said: Vec<String> = wrong.iter().map(ToString::to_string).collect();
    assert!(said[0].contains("broken.toml: profile_must_be_toml"), "{said:?}");
    assert!(said[1].starts_with("profile_must_lie_at_its_program: "), "{said:?}");
    assert!(matches!(store.find(Path::new("/usr/bin/impostor")), Err(StoreError::Misplaced { .. })));
    for path in ["player", "/", "/usr/../bin/x"] {
        assert!(matches!(store.find(Path::new(path)), Err(StoreError::NoPath(_))), "{path}");
    }
    std::fs::write(folder.0.join("file"), "").unwrap();
    let nowhere = Store::at(folder.0.join("file"), None);
    assert!(matches!(nowhere.keep(Layer::System, &player()), Err(StoreError::File(..))));
}

#[test]
fn a_plan_holds_and_finds_its_threads() {
    let (player, other) =
        (player(), profile("/opt/new\nline/game", &[periodic("main", &[period(16_666_667, 4 * MS)])]));
    let too_much = Plan::parse(&plan(&[&player, &other], 1), "plan.toml").unwrap_err().to_string();
    assert!(too_much.contains("cpu_must_have_room"), "{too_much}");
    let text = plan(&[&player, &other], 4);
    let plan = Plan::parse(&text, "plan.toml").unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let admission = plan.admit();
    assert!(admission.holds, "{}\n{text}", admission.outline(&plan));
    plan.check_runnable(4).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    let task = |comm: &str| {
        let thread = Thread { comm: comm.into(), exe: "/usr/bin/player".into(), ..Thread::default() };
        plan.entry_of(&thread).map(|entry| match plan.entries[entry].target {
            Child::Task(task) => plan.tasks[task].name.clone(),
            Child::Set(set) => plan.sets[set].name.clone(),
            Child::Node(_) => unreachable!(),
        })
    };
    assert_eq!(task("audio").as_deref(), Some("audio"));
    assert_eq!(task("2 [mixed]*").as_deref(), Some("thread-2--mixed--"));
    assert_eq!(task("2 m*"), None);
    assert_eq!((task("worker").as_deref(), task("ui")), (Some("worker"), None));
    assert!(text.contains("[tasks.worker]\ncount = 3\n") && plan.shadowed().is_empty(), "{text}");
    assert!(text.contains("# ui is aperiodic (random): no reservation"), "{text}");
    assert_eq!(player.threads[4].verdict, Verdict::Aperiodic);
}
