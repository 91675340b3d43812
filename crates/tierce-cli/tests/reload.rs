//! `tierce apply --reload`: another kernel object takes over from the one in force (tests/vm/reload.sh).

use serde_json::{json, Value};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tierce_trace::{Event, Kind, Report, Trace};

const US: i64 = 1_000;
const MS: u64 = 1_000_000;

/// One boot, and what was said in it: scenario, value.
struct Boot {
    out: PathBuf,
    said: Vec<(String, Value)>,
    errors: String,
}

impl Boot {
    fn new(name: &str, machine: &[&str], script: &[&str]) -> Boot {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vm");
        let out = std::env::temp_dir().join(format!("tierce-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&out);
        let mut vm = Command::new(env!("CARGO_BIN_EXE_tierce"));
        vm.args(["vm", "--kernel", "7.0.13", "--memory", "1G", "--limit", "25m"]).args(machine);
        let example = example().display().to_string();
        for file in ["reload.toml", "lib.sh", "reload.sh", &*example] {
            let name = Path::new(file).file_name().unwrap().to_str().unwrap();
            vm.args(["--file", &format!("{file}:/guest/{name}")]);
        }
        let done = vm.arg("--out").arg(&out).args(["--", "sh", "reload.sh", "reload.toml"]).args(script);
        let done = done.current_dir(folder).output().unwrap();
        let (text, errors) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        let _ = std::fs::write(out.join("said"), &*text); // for who looks at a failure
        assert!(done.status.success(), "{text}\n{errors}");
        let said = text.lines().map(|line| {
            let value: Value =
                serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}\n{errors}"));
            (value["scenario"].as_str().unwrap().to_string(), value["got"].clone())
        });
        Boot { out, said: said.collect(), errors: errors.into_owned() }
    }

    fn all<'a>(&'a self, scenario: &'a str) -> impl Iterator<Item = &'a Value> {
        self.said.iter().filter(move |(name, _)| name == scenario).map(|(_, got)| got)
    }

    /// Rule and message of what was refused.
    fn error<'a>(&'a self, scenario: &'a str) -> (&'a str, &'a str) {
        let got = self.got(scenario);
        assert_eq!((&got["code"], &got["said"]["applied"]), (&json!(1), &json!(false)), "{got}");
        let error = &got["said"]["error"];
        (error["rule"].as_str().unwrap(), error["message"].as_str().unwrap())
    }

    fn got<'a>(&'a self, scenario: &'a str) -> &'a Value {
        let nothing = || panic!("{scenario}: nothing\n{:?}\n{}", self.said, self.errors);
        self.all(scenario).next().unwrap_or_else(nothing)
    }
}

impl Drop for Boot {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.out);
        }
    }
}

fn example() -> PathBuf {
    let example = Path::new(env!("CARGO_BIN_EXE_tierce")).parent().unwrap().join("examples/reload");
    assert!(example.exists(), "build it: cargo build -p tierce-cli --example reload");
    example
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Median and largest of the times with this name.
fn spread(times: &[&Value], name: &str) -> (u64, u64) {
    let mut list: Vec<u64> = times.iter().map(|time| ns(&time[name])).collect();
    list.sort_unstable();
    (list[list.len() / 2], *list.last().unwrap())
}

/// Replenishments of the edge from `rt@0` to `hog`: when, and what it had had since the one before.
fn periods(trace: &Trace) -> Vec<(u64, i64)> {
    let mut edges = trace.header.edges.iter();
    let edge = edges.find(|edge| edge.child_name == "hog" && edge.parent_name == "rt@0").unwrap().id;
    let (mut supply, mut since, mut list) = (0i64, None, Vec::new());
    for event in &trace.events {
        match event.kind() {
            Some(Kind::Lost) => panic!("{} records lost", event.value),
            Some(Kind::Stolen) if event.cpu == 0 && since.is_some() => supply -= event.value as i64,
            Some(Kind::Grant) if event.a == edge => since = Some(event.now_ns),
            Some(Kind::Revoke) if event.a == edge => {
                supply += since.take().map_or(0, |since| (event.now_ns - since) as i64);
            }
            Some(Kind::Replenish) if event.a == edge => {
                let now = since.map_or(0, |since| (event.now_ns - since) as i64);
                list.push((event.now_ns, supply + now));
                (supply, since) = (-now, since);
            }
            _ => {}
        }
    }
    list
}

/// Begin and end of a gap.
fn span(gap: &Value) -> (u64, u64) {
    (ns(&gap["begun_ns"]), ns(&gap["begun_ns"]) + ns(&gap["gap_ns"]))
}

/// What takes CPU 0 from all: the gaps, up to its first decision, and soon after each the kernel's worker that frees the first object.
fn taken(trace: &Trace, gaps: &[&Value]) -> Vec<(u64, u64)> {
    let stolen: Vec<(u64, u64)> = trace
        .events
        .iter()
        .filter(|event| event.cpu == 0 && event.kind() == Some(Kind::Stolen))
        .map(|event| (event.now_ns - event.value, event.now_ns))
        .collect();
    // A gap is stolen without a break.
    let gaps = gaps.iter().map(|gap| {
        let (from, to) = span(gap);
        let within = stolen.iter().filter(|it| it.1 > from && it.1 <= to);
        let follows = |end, it: &(u64, u64)| if it.0 <= end { it.1 } else { end };
        (from, within.fold(from + 100_000, follows))
    });
    let gaps: Vec<(u64, u64)> = gaps.collect();
    let mut taken = gaps.clone();
    for it in stolen.iter().filter(|it| it.1 - it.0 > 5 * MS) {
        let is_gap = gaps.iter().any(|gap| it.1 > gap.0 && it.0 < gap.1);
        let after = gaps.iter().filter(|gap| it.0 >= gap.1).map(|gap| it.0 - gap.1).min();
        if let Some(after) = after.filter(|_| !is_gap) {
            println!("{} ns stolen, {after} ns after a gap", it.1 - it.0);
            assert!(after < 2000 * MS && it.1 - it.0 < 200 * MS, "{it:?}");
            taken.push(*it);
        }
    }
    taken.sort_unstable();
    // One begins where another ends: that is one.
    taken.dedup_by(|next, one| {
        let follows = next.0 <= one.1 + 100_000;
        one.1 = if follows { one.1.max(next.1) } else { one.1 };
        follows
    });
    taken
}

/// When in 10 ms periods of the hog end: where the middle one of the first nine is, since replenishments may be late and most are not.
fn phase_of(periods: &[(u64, i64)]) -> u64 {
    let first = periods[0].0 % (10 * MS);
    let mut offs: Vec<i64> = periods.iter().take(9).map(|(end, _)| lateness(*end, first)).collect();
    offs.sort_unstable();
    (first + 10 * MS).saturating_add_signed(offs[(offs.len() - 1) / 2]) % (10 * MS)
}

/// How long after the end of its period with this phase, up to 5 ms before and after it.
fn lateness(end: u64, phase: u64) -> i64 {
    ((end + 15 * MS - phase) % (10 * MS)) as i64 - 5 * MS as i64
}

/// The hog has 2 ms in each period, and periods keep their phase.
fn budgets_are_carried_over(trace: &Trace, gaps: &[&Value], cpus: u16) {
    let late = if cpus > 1 { 120 * US } else { 20 * US }; // virtual CPUs stand still in turn
    let taken = taken(trace, gaps);
    let is_taken = |from: u64, to: u64| taken.iter().any(|it| it.0 < to && from < it.1);
    let periods = periods(trace);
    let (begun, ended) = (span(gaps[0]).0 - 500 * MS, span(gaps[1]).1 + 300 * MS);
    let within: Vec<_> = periods.iter().filter(|(end, _)| (begun..ended).contains(end)).collect();
    assert!(within.len() > 1000, "{}", within.len());
    let mut phase = phase_of(&periods[periods.partition_point(|(end, _)| *end < begun)..]);
    let (mut count, mut late_count) = (0, 0);
    for (end, supply) in within {
        if is_taken(end - 20 * MS, *end) {
            assert!(*supply <= 2 * MS as i64 + late, "{supply} ns in a period of a gap that ends at {end}");
            continue;
        }
        // A period that is over as a whole by then is not made up for: the next one begins with what is left of the budget spent.
        for gap in taken.iter().filter(|gap| gap.1 < *end && end - gap.1 <= 30 * MS) {
            let at = periods.partition_point(|(at, _)| *at < gap.1 - 2 * MS); // threads come back before it ends
            let (before, after) = (periods[at - 1].0, periods[at].0);
            println!("{} ns from a replenishment to the end of a gap", gap.1 - before);
            if after - before > 20 * MS - 100 * US as u64 {
                let next_gap = taken.iter().map(|it| it.0).filter(|from| *from > after).min();
                let until = periods.partition_point(|(at, _)| *at < next_gap.unwrap_or(u64::MAX));
                phase = phase_of(&periods[at..until]);
                let due = after as i64 - lateness(after, phase);
                assert!(due - (gap.1 as i64) < 3 * MS as i64, "none when the gap {gap:?} ends, but at {due}");
            }
        }
        assert!((supply - 2 * MS as i64).abs() <= late, "{supply} ns in the period that ends at {end}");
        let off = lateness(*end, phase);
        // The kernel may have had interrupts off.
        assert!(
            (-50 * US..=4 * MS as i64).contains(&off),
            "a replenishment at {end}: {off} ns from where it was"
        );
        (count, late_count) = (count + 1, late_count + u32::from(off > late));
    }
    println!("{late_count} of {count} replenishments later than {late} ns");
    assert!(late_count * 50 <= count, "{late_count} of {count} replenishments later than {late} ns");
}

/// The gap is stolen time, on each CPU up to its first decision, and no thread gets another leaf in it; how much that was on CPU 0.
fn gaps_are_stolen(trace: &Trace, gaps: &[&Value], cpus: u16) -> u64 {
    let mut sum = 0;
    for gap in gaps {
        let (from, to) = span(gap);
        let here = |event: &&Event| event.now_ns > from && event.now_ns <= to;
        let stolen = |cpu: u16| -> u64 {
            let events = trace.events.iter().filter(here);
            let stolen = events.filter(|event| event.cpu == cpu && event.kind() == Some(Kind::Stolen));
            stolen.map(|event| event.value.min(event.now_ns - from)).sum()
        };
        let least = ns(&gap["detaching_ns"]) + ns(&gap["carrying_ns"]);
        let all: Vec<u64> = (0..cpus).map(stolen).collect();
        let off = (to - from) as i64 - *all.iter().max().unwrap() as i64;
        assert!((-100 * US..=100 * US).contains(&off), "{all:?} ns of {gap}");
        assert!(all.iter().all(|stolen| stolen + 100_000 >= least), "{all:?} ns of {gap}");
        let named: Vec<_> =
            trace.events.iter().filter(here).filter(|event| event.kind() == Some(Kind::Name)).collect();
        assert!(named.is_empty(), "{named:?}");
        assert!(to - from < 60 * MS * u64::from(cpus), "{gap}"); // with a turn of the fair_server
        sum += all[0];
    }
    sum
}

/// Threads go from CPU to CPU before the gaps, between them and afterwards.
fn threads_move(trace: &Trace, gaps: &[&Value]) {
    let spans = [span(gaps[0]), span(gaps[1])];
    for (from, to) in [(0, spans[0].0), (spans[0].1, spans[1].0)] {
        let here = |event: &&Event| event.now_ns > from && event.now_ns < to;
        let moves = trace.events.iter().filter(here).filter(|event| event.kind() == Some(Kind::Migrate));
        assert!(moves.count() > 10, "from {from} to {to}");
    }
}

/// It is refused if it was not asked for; else the plan is in force, and every thread has the leaf that it had.
fn it_is_asked_for(boot: &Boot, cpus: u16) {
    let (rule, message) = boot.error("refused");
    assert!(
        rule == "policy_is_not_loaded"
            && message.contains("without round-robin")
            && message.contains("--reload"),
        "{message}"
    );
    assert_eq!(boot.got("dry")["said"]["needs_reload"], true);
    for (what, again) in [("add-1", true), ("take-1", false), ("add-2", true), ("take-2", false)] {
        let got = boot.got(what);
        assert_eq!((&got["code"], &got["said"]["applied"]), (&json!(0), &json!(true)), "{got}");
        assert_eq!(got["said"]["reloaded"].is_object(), again, "{what}: {got}");
    }

    // Who is where before and after.
    let threads = usize::from(cpus) + 1;
    let bound = |scenario: &str| -> Vec<String> {
        let list = boot.got(scenario)["threads"].as_array().unwrap().iter();
        list.map(|thread| format!("{} {}", thread["name"].as_str().unwrap(), thread["tid"])).collect()
    };
    let (before, after) = (bound("before"), bound("after"));
    assert_eq!((before.len(), after.len()), (threads, threads + 1), "{before:?} {after:?}");
    assert!(before.iter().all(|thread| after.contains(thread)), "{before:?} {after:?}");
}

/// Statistics go on, nothing is left over, and every decision is made again in a replay across all gaps.
fn nothing_is_lost(boot: &Boot, stolen_ns: u64) {
    let report: Report = serde_json::from_value(boot.got("report").clone()).unwrap();
    assert!(report.lost == 0 && report.cpus[0].stolen_ns >= stolen_ns, "{report:?}");
    let kernel = &boot.got("report")["kernel"];
    assert_eq!(
        ns(&kernel["used"]["nodes"]),
        ns(&kernel["plan"]["nodes"]) + ns(&kernel["threads"]),
        "{kernel}"
    );
    assert_eq!(boot.got("reload-end"), &json!({ "code": 0, "state": "disabled" }));
    let record = boot.out.join("reload.rec");
    let replayed =
        Command::new(env!("CARGO_BIN_EXE_tierce")).args(["sim", "--json", "--replay"]).arg(record).output();
    let replayed: Value = serde_json::from_slice(&replayed.unwrap().stdout).unwrap();
    assert!(replayed["identical"] == true && ns(&replayed["decisions"]) > 10_000, "{replayed}");
}

/// No descriptors for a second object.
fn no_object_is_no_harm(boot: &Boot) {
    let (rule, message) = boot.error("no-object");
    assert!(rule == "object_is_not_replaced" && message.contains("Too many open files"), "{message}");
    assert_eq!(boot.got("still")["plan"], "a.toml");
    assert_eq!(boot.got("narrow-end"), &json!({ "code": 0, "state": "disabled" }));
}

/// At each place where it can fail; `least_ns`: what the hog has in a second.
fn failures_leave_the_first_one_in_force(boot: &Boot, least_ns: u64) {
    for (what, why) in [
        ("too-long", "Argument list too long"),
        ("lowly", "the loader could not become urgent: Operation not permitted"),
        ("late", "Device or resource busy"),
    ] {
        assert!(
            boot.got(what)["refused"].as_str().is_some_and(|said| said.contains(why)),
            "{}",
            boot.got(what)
        );
    }
    assert_eq!(boot.got("too-long")["steps"], 0, "it was known before anything was detached");
    for what in ["too-long", "lowly", "late", "done"] {
        let is = &boot.got(what)["is"];
        assert_eq!(
            (&is["state"], &is["bound"], &is["left_over"]),
            (&json!("enabled"), &json!(["hog", "pair"]), &json!(0)),
            "{what}: {is}"
        );
        assert!(ns(&is["hog_ns"]) > least_ns, "{what}: {is}");
    }
    let ended = boot.got("ended");
    assert!(ended["why"].as_str().unwrap().contains("the machine is on its default scheduler"), "{ended}");
    assert_eq!(ended["state"], "disabled");
}

/// Five times, two objects in turn.
fn objects_take_turns(boot: &Boot) {
    let turns: Vec<&Value> = boot.all("turn").collect();
    assert_eq!(turns.len(), 5);
    for name in ["gap_ns", "detaching_ns", "carrying_ns", "attaching_ns"] {
        let (median, worst) = spread(&turns, name);
        println!("{name}: median {median}, worst {worst}");
    }
    assert!(spread(&turns, "gap_ns").0 < 20 * MS, "{turns:?}");
    let turned = boot.got("turned");
    assert_eq!((&turned["state"], &turned["left_over"]), (&json!("enabled"), &json!(0)), "{turned}");
}

/// Time counted in instructions: budgets, periods, threads, statistics and recording go on across each gap.
fn another_object_takes_over(cpus: u16) -> Boot {
    let machine = ["--deterministic", "--cpus", &cpus.to_string()];
    let boot = Boot::new(&format!("reload-{cpus}"), &machine, &[]);
    it_is_asked_for(&boot, cpus);
    let gaps = ["add-1", "add-2"].map(|add| &boot.got(add)["said"]["reloaded"]);
    let (trace, fault) = Trace::read(File::open(boot.out.join("reload.trace")).unwrap()).unwrap();
    assert!(fault.is_none(), "{fault:?}");
    budgets_are_carried_over(&trace, &gaps, cpus);
    let stolen_ns = gaps_are_stolen(&trace, &gaps, cpus);
    if cpus > 1 {
        threads_move(&trace, &gaps);
    }
    nothing_is_lost(&boot, stolen_ns);
    boot
}

#[test]
fn on_one_cpu() {
    let boot = another_object_takes_over(1);
    no_object_is_no_harm(&boot);
    failures_leave_the_first_one_in_force(&boot, 190 * MS);
    objects_take_turns(&boot);
}

#[test]
fn on_two_cpus() {
    another_object_takes_over(2);
}

/// Ten times in the midst of processes that come and go. No thread is left without a CPU, or the kernel would have ended it; none
/// without its leaf. Before that, what fails leaves the first object in force.
fn in_a_storm(cpus: u32) {
    let boot = Boot::new(&format!("reload-storm-{cpus}"), &["--cpus", &cpus.to_string()], &["storm"]);
    failures_leave_the_first_one_in_force(&boot, 10 * MS); // the host may be busy
    assert_eq!(boot.all("turn").count(), 10);
    let turned = boot.got("turned");
    assert_eq!(
        (&turned["state"], &turned["bound"], &turned["left_over"]),
        (&json!("enabled"), &json!(["hog", "pair"]), &json!(0)),
        "{turned}"
    );
    assert!(ns(&turned["hog_ns"]) > 10 * MS, "{turned}");
}

#[test]
fn in_a_storm_on_two_cpus() {
    in_a_storm(2);
}

#[test]
fn in_a_storm_on_four_cpus() {
    in_a_storm(4);
}
