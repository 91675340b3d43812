//! Whatever text it is given, nothing panics and nothing takes for ever: plans with all that they name, guarantees, tables of
//! tasks, mutated at random as often as TIERCE_FUZZ_TEXTS says (2,500; the test command gives 30,000).
//!
//! `TIERCE_SEED=7 TIERCE_FUZZ_TEXTS=300000 cargo test -p tierce-cli --test hostile -- --nocapture` tries other and more texts.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tierce_admission::{Above, PlanExt, Reserved};
use tierce_analysis::{Edf, FixedPriority, Task};
use tierce_guarantee::{schedulers, Free, Guarantee, Kind, Wanted};
use tierce_plan::{Cpus, Options, Plan, Source, Sources};

/// No input may take longer, however slow the machine and this build are.
const LONGEST: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn files(folder: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        std::fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Plans with the texts that they name.
fn plans() -> Vec<Sources> {
    let folders = ["examples", "tests/plans", "tests/verdicts"];
    let files = folders.iter().flat_map(|folder| files(folder));
    let plans = files.filter(|path| path.extension().is_some_and(|extension| extension == "toml"));
    let read = |path: PathBuf| match Plan::load(&path) {
        Ok(plan) => plan.sources,
        Err(faults) => faults.sources,
    };
    plans.map(read).filter(|sources| !sources.0.is_empty()).collect()
}

const GUARANTEES: [&str; 14] = [
    "ALL",
    "RESU 0.5",
    "RESBH 10ms 20ms",
    "RESBS 2ms 30ms",
    "RESCH 1ms 3ms",
    "RESCS 40/3ms 20ms",
    "RESPS 5ms 33ms 10ms",
    "RESNH 1us 1s",
    "RESSH 1ms 10ms 5ms",
    "PSBE 1/2 5ms",
    "PS 15/33",
    "NULL",
    "RESCS ? 33ms",
    "PSBE ? ?",
];

const TABLES: [&str; 4] = [
    "name,work,period\na,1ms,10ms\nb,2ms,20ms\nc,5ms,100ms\n",
    "name,work,period,suspension,section,last_section\nx,1500,10000,8000,,\ny,2us,33us,,1us,5\n",
    "name,work,period,deadline,jitter,blocking,offset,priority\nx,1500,10000,8000,200,,,3\ny,2us,33us,,,1us,5,-2\n",
    "# media\nperiod , name, work\n100ms,one,1ms\n40ms,two,8ms\n",
];

/// What means something somewhere, and what is at some edge.
const PIECES: [&str; 44] = [
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "=",
    ".",
    ",",
    "\n",
    "#",
    "0",
    "-1",
    "1",
    "18446744073709551615",
    "1152921504606846976ns",
    "1152921504606846977ns",
    "99999999999999999999",
    "1.5",
    "1/0",
    "0/1",
    "1/3",
    "?",
    "ms",
    "ns",
    "\"10ms\"",
    "\"0ns\"",
    "\"1ns\"",
    "\"3600s\"",
    "\"1us\"",
    "true",
    "[]",
    "{}",
    "cpu = 0",
    "cpus = 64",
    "under.top = {}",
    "when = \"spent\"",
    "costs = { switch = \"1ms\" }",
    "load = \"busy\"",
    "needs = \"PSBE 1/2 1ms\"",
    "é",
    "\u{0}",
    "\u{feff}",
    "policy = \"edf\"",
];

fn mutate(text: &str, draw: &mut Draw) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + draw.below(4) {
        let at = draw.below(chars.len() + 1);
        let end = (at + draw.below(30)).min(chars.len());
        match draw.below(7) {
            0 if at < chars.len() => drop(chars.remove(at)),
            1 => drop(chars.splice(at..at, PIECES[draw.below(PIECES.len())].chars())),
            2 if at < chars.len() => chars[at] = char::from(32 + draw.below(95) as u8),
            3 => drop(chars.drain(at..end)),
            4 => {
                // Another number.
                let begin = chars[at..].iter().position(char::is_ascii_digit).map_or(at, |skip| at + skip);
                let length = chars[begin..].iter().take_while(|c| c.is_ascii_digit()).count();
                let number = PIECES[11 + draw.below(12)];
                drop(chars.splice(begin..begin + length, number.chars()));
            }
            5 => {
                let piece: Vec<_> = chars[at..end].to_vec();
                let to = draw.below(chars.len() + 1);
                drop(chars.splice(to..to, piece));
            }
            _ => {
                let mut lines: Vec<String> =
                    chars.iter().collect::<String>().lines().map(String::from).collect();
                if !lines.is_empty() {
                    let (a, b) = (draw.below(lines.len()), draw.below(lines.len()));
                    lines.swap(a, b);
                    chars = lines.join("\n").chars().collect();
                }
            }
        }
    }
    chars.into_iter().take(100_000).collect()
}

/// All that check does with a plan.
fn a_plan(sources: &Sources) -> bool {
    let plan = match Plan::from_sources(sources, Options::default()) {
        Ok(plan) => plan,
        Err(faults) => {
            assert!(!faults.faults.is_empty() && !faults.to_string().is_empty());
            assert!(!faults.report_plain().is_empty() && faults.to_json().is_array());
            return false;
        }
    };
    let everything = |plan: &Plan| {
        let admission = plan.admit();
        assert!(!admission.outline(plan).is_empty() && admission.to_json(plan).is_object());
        assert_eq!(admission.holds, admission.broken(plan).is_empty());
        for name in
            plan.nodes.iter().map(|node| &node.name).chain(plan.tasks.iter().map(|task| &task.name)).take(20)
        {
            let explained = admission.explain_json(plan, name).map(serde_json::to_value);
            assert!(admission.explain(plan, name).is_ok() && explained.is_ok_and(|json| json.is_ok()));
        }
    };
    everything(&plan);
    let _ = plan.check_runnable(plan.machine.cpus);
    let thread =
        Reserved { name: "dl".into(), cpus: Cpus::from(1), runtime_ns: 1 << 59, period_ns: (1 << 60) - 1 };
    let above = Above { online: (0..64).collect(), deadline: vec![thread], ..Above::default() };
    everything(&plan.on(&above).unwrap());
    true
}

/// All that can be asked about guarantees.
fn some_guarantees(left: &str, right: &str) -> bool {
    let (wanted, others) = (Wanted::parse(right), Wanted::parse(left));
    let (Ok(left), Ok(right)) = (Guarantee::parse(left), Guarantee::parse(right)) else {
        if let (Ok(wanted), Ok(open)) = (&wanted, &others) {
            let of = |guarantee: Option<Guarantee>| guarantee.into_iter();
            of(open.full()).for_each(|from| drop(tierce_guarantee::best(&from, wanted, &Free::default())));
            of(wanted.full()).for_each(|to| drop(tierce_guarantee::weakest(open, &to, &Free::default())));
        }
        return false;
    };
    let free = Free::default();
    for kind in Kind::ALL {
        if let Ok(derivation) = tierce_guarantee::convert(&left, kind, &free) {
            assert_eq!(derivation.result().kind(), kind);
        }
    }
    let _ = tierce_guarantee::show(&left, &right, &free);
    // A fraction may be longer than a number that a person may write.
    if let Ok(again) = Guarantee::parse(&left.to_string()) {
        assert_eq!(again, left);
    }
    let quantum = tierce_guarantee::whole(3_000_000);
    let weights = [5, 1, 1].map(tierce_guarantee::whole);
    let _ = schedulers::sfq(&left, &quantum, &weights, schedulers::SfqBound::Paper);
    let _ = schedulers::sfq(&left, &quantum, &weights, schedulers::SfqBound::Tight);
    let _ = schedulers::eevdf(&left, &quantum, &[right.share()]);
    let _ = schedulers::join(&[left.clone(), right.clone()], schedulers::Joining::default());
    let _ = schedulers::limit(&left);
    let supply = tierce_guarantee::Supply::of(&left);
    let _ = (
        supply.at(&quantum),
        supply.time_for(&quantum),
        supply.longest_gap(),
        supply.error_for(&right.share()),
    );
    let _ = tierce_analysis::Supply::of(&left).map(|supply| supply.time_for(1 << 50));
    true
}

/// All that is analysed of a table.
fn a_table(text: &str, guarantee: &str) -> bool {
    let entries = match tierce_analysis::parse(text) {
        Ok(entries) => entries,
        Err(faults) => {
            assert!(!faults.is_empty() && faults.iter().all(|fault| !fault.to_string().is_empty()));
            return false;
        }
    };
    let tasks: Vec<Task> = entries.iter().map(|entry| entry.task).take(8).collect();
    let supply =
        Guarantee::parse(guarantee).ok().and_then(|guarantee| tierce_analysis::Supply::of(&guarantee));
    for supply in [Some(tierce_analysis::Supply::WHOLE), supply].into_iter().flatten() {
        let _ = Edf::new().schedulable_quickly(&tasks, &supply);
        let _ = Edf::new().shortest_excess(&tasks, &supply);
        let mut fixed = FixedPriority::new();
        let meets = fixed.schedulable(&tasks, &supply);
        let responses = fixed.responses(&tasks, &supply);
        assert_eq!(responses.len(), tasks.len());
        assert!(
            !meets || responses.iter().zip(&tasks).all(|(response, task)| response.meets(task.deadline_ns))
        );
    }
    let _ = (tierce_analysis::priorities::rate_monotonic(&tasks), tierce_analysis::utilisation(&tasks));
    true
}

#[test]
fn hostile_texts_neither_panic_nor_hang() {
    let texts = std::env::var("TIERCE_FUZZ_TEXTS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_500);
    println!("TIERCE_FUZZ_TEXTS={texts}");
    let plans = plans();
    assert!(plans.len() > 40, "{}", plans.len());
    let mut draw = Draw::new(9);
    let (mut rounds, mut taken, mut slowest) = (0u64, [0u64; 3], (Duration::ZERO, String::new()));
    while rounds < texts {
        let kind = [0, 1, 1, 1, 1, 2][draw.below(6)]; // plans take longest
        let (shown, run): (String, Box<dyn Fn() -> bool>) = match kind {
            0 => {
                let seed = &plans[draw.below(plans.len())];
                let (at, mut sources) = (draw.below(seed.0.len()), Sources(seed.0.clone()));
                let Source { name, text, .. } = &*seed.0[at];
                let text = mutate(text, &mut draw);
                sources.0[at] = Arc::new(Source::new(name, &text));
                (format!("{name}:\n{text}"), Box::new(move || a_plan(&sources)))
            }
            1 => {
                // At least one of them is right, or nothing would be asked of the other.
                let [left, right] = [(); 2].map(|()| GUARANTEES[draw.below(GUARANTEES.len())].to_string());
                let left = mutate(&left, &mut draw);
                let (left, right) = if draw.below(2) == 0 { (left, right) } else { (right, left) };
                (format!("{left:?} and {right:?}"), Box::new(move || some_guarantees(&left, &right)))
            }
            _ => {
                let table = mutate(TABLES[draw.below(TABLES.len())], &mut draw);
                let guarantee = GUARANTEES[draw.below(GUARANTEES.len())];
                (format!("{guarantee}:\n{table}"), Box::new(move || a_table(&table, guarantee)))
            }
        };
        let begin = Instant::now();
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(right) => taken[kind] += u64::from(right),
            Err(_) => panic!("round {rounds}, this panics: {shown}"),
        }
        let took = begin.elapsed();
        assert!(took < LONGEST, "round {rounds} took {took:?}: {shown}");
        if took > slowest.0 {
            slowest = (took, shown);
        }
        rounds += 1;
    }
    println!(
        "{rounds} texts; right were {taken:?} plans, guarantees and tables; the slowest took {:?}: {}",
        slowest.0, slowest.1
    );
    assert!(rounds > 100 && taken.iter().all(|count| *count > 0), "{rounds} {taken:?}");
}

/// A supply with a gap of years below jobs of milliseconds: no search through all of a busy period ends.
#[test]
fn busy_periods_of_years_are_answered() {
    let text = include_str!("../../../tests/verdicts/chain.toml").replace("9ms", "1.5ms");
    let begin = Instant::now();
    assert!(a_plan(&Sources(vec![Arc::new(Source::new("chain.toml", &text))])));
    assert!(begin.elapsed() < LONGEST, "{:?}", begin.elapsed());
}
