//! Files of other tools in tests/formats: NAME.toml is the plan that a file is, NAME.out the file that this plan is, with what is
//! left out each way. `UPDATE=1 cargo test -p tierce-formats --test files` writes both anew: read the difference before you commit it.

#[path = "../../../tests/draw.rs"]
mod draw;
mod essence;

use draw::Draw;
use essence::essence;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_formats::{export, import, Format, LeftOut, Unit};
use tierce_plan::Plan;

fn folder_of(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn folder() -> PathBuf {
    folder_of("tests/formats")
}

/// Files of other tools: name, text, format.
fn files() -> Vec<(String, String, Format)> {
    let mut paths: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension != "toml" && extension != "out"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = std::fs::read_to_string(&path).unwrap();
        let format = Format::guess(&name, &text).unwrap_or_else(|faults| panic!("{faults}"));
        (name, text, format)
    };
    paths.into_iter().map(read).collect()
}

fn listed(left_out: &[LeftOut]) -> String {
    left_out.iter().map(|left| format!("line {}: {}: {}\n", left.line, left.what, left.why)).collect()
}

fn compare(path: &Path, found: &str) {
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(found, expected, "{}: UPDATE=1 writes it anew", path.display());
}

fn plan(name: &str, text: &str) -> Plan {
    Plan::parse(text, name).unwrap_or_else(|faults| panic!("{name}: {faults}\n{text}"))
}

#[test]
fn files_are_the_plans_beside_them_and_these_are_files_again() {
    let files = files();
    assert!(files.len() >= 4, "{}", files.len());
    for (name, text, format) in files {
        let imported = import(&name, &text, format, Unit::Ms).unwrap_or_else(|faults| panic!("{faults}"));
        let path = folder().join(&name);
        compare(&path.with_extension("toml"), &imported.text);
        for left in &imported.left_out {
            assert!(imported.text.contains(&left.what), "{left:?} is not in the plan's head");
        }
        let plan = plan(&name, &imported.text);
        let back = export(&plan, format, Unit::Ms).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        let out = format!("{}\n{}", back.text, listed(&back.left_out));
        compare(&path.with_extension("out"), &out);
        assert_eq!(Format::guess(&name, &back.text).unwrap(), format, "{name}");
    }
}

/// What a format can say of a plan comes back.
#[test]
fn what_was_exported_is_imported_as_the_same_plan() {
    let mut whole = 0;
    for (name, text, format) in files() {
        let first = plan(&name, &import(&name, &text, format, Unit::Ms).unwrap().text);
        let back = export(&first, format, Unit::Ms).unwrap();
        let again =
            import(&name, &back.text, format, Unit::Ms).unwrap_or_else(|faults| panic!("{name}: {faults}"));
        let second = plan(&name, &again.text);
        if back.left_out.is_empty() {
            assert_eq!(essence(&first), essence(&second), "{name}");
            whole += 1;
        }
        // And all that was said is said again.
        let third = export(&second, format, Unit::Ms).unwrap();
        assert_eq!((third.text, third.left_out), (back.text, Vec::new()), "{name}");
    }
    assert!(whole >= 3, "{whole}");
}

/// What pyCPA's documentation prints for its own systems, from when the first task is ready, which is up to its jitter late. Check counts from the
/// release without jitter, and not again what already made a task late.
#[test]
fn bounds_of_public_examples_are_no_longer_than_published() {
    type Chains<'a> = &'a [(&'a str, u64)];
    let cases: [(&str, Chains, Chains); 2] = [
        ("pycpa-spp.xml", &[("T11", 10 + 5), ("T12", 13 + 6)], &[("T22", 13 + 21 + 6), ("T21", 10 + 2 + 5)]),
        ("pycpa-tutorial.xml", &[("T11", 10 + 3), ("T12", 13 + 1)], &[("T31", 32 + 3), ("T32", 27 + 1)]),
    ];
    for (name, heads, ends) in cases {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let plan = plan(name, &import(name, &text, Format::Pycpa, Unit::Ms).unwrap().text);
        let admission = plan.admit();
        for (index, task) in plan.tasks.iter().enumerate() {
            let Some((_, published)) = heads.iter().find(|(head, _)| *head == task.name) else { continue };
            let found = admission.tasks[index].response.and_then(|response| response.ns());
            assert_eq!(found, Some(published * 1_000_000), "{}", task.name);
        }
        for (chain, verdict) in plan.chains.iter().zip(&admission.chains) {
            let last = &plan.tasks[chain.links.last().unwrap().task].name;
            let (_, published) = ends.iter().find(|(end, _)| end == last).unwrap();
            let found = verdict.bounds.response_ns.unwrap();
            println!("{name} {last}: {found} ns, published {published} ms");
            assert!(found <= published * 1_000_000, "{name} {last}: {found}");
        }
        assert_eq!(plan.chains.len(), ends.len());
    }
}

/// Bursts are jobs one by one where plans have them so, and tasks that others release have their resources.
#[test]
fn bursts_and_resources_of_triggered_tasks() {
    let read = |name: &str| std::fs::read_to_string(folder().join(name)).unwrap();
    let import =
        |text: &str| import("f", text, Format::Mast, Unit::Ms).unwrap_or_else(|faults| panic!("{faults}"));
    let servers = read("mast-servers.txt");
    let imported = import(&servers);
    assert!(imported
        .text
        .contains(r#"separation = ["1ns", "1ns", "100ms"], work = { min = "250us", max = "500us" }"#));
    let many = import(&servers.replace("Max_Arrivals => 3", "Max_Arrivals => 65")).text;
    assert!(many.contains("up to 65 at a time are one job here") && many.contains("32.5ms"), "{many}");
    let flow = "Processing_Resource (Type => Regular_Processor, Name => cpu);
        Scheduler (Type => Primary_Scheduler, Name => main, Host => cpu, Policy => (Type => Fixed_Priority));
        Scheduling_Server (Type => Regular, Name => a, Scheduler => main,
            Server_Sched_Parameters => (Type => Fixed_Priority_Policy, The_Priority => 10));
        Scheduling_Server (Type => Regular, Name => b, Scheduler => main,
            Server_Sched_Parameters => (Type => Fixed_Priority_Policy, The_Priority => 9));
        Shared_Resource (Type => Immediate_Ceiling_Resource, Name => bus);
        Operation (Type => Simple, Name => work, Worst_Case_Execution_Time => 1, Shared_Resources_List => (bus));
        Transaction (Type => Regular, Name => flow,
            External_Events => ((Type => Periodic, Name => begin, Period => 10)),
            Internal_Events => ((Type => Regular, Name => mid), (Type => Regular, Name => end)),
            Event_Handlers => ((Type => Activity, Input_Event => begin, Output_Event => mid,
                Activity_Operation => work, Activity_Server => a), (Type => Activity, Input_Event => mid, Output_Event => end,
                Activity_Operation => work, Activity_Server => b)));";
    let imported = import(flow);
    let there = plan("flow", &imported.text);
    assert!(
        there.tasks.iter().all(|task| task.load.as_ref().unwrap().sections().len() == 1),
        "{}",
        imported.text
    );
    assert!(imported.left_out.is_empty(), "{:?}", imported.left_out);
    assert!(there.admit().chains[0].bounds.response_ns.is_some());
    // And back: of bursts no more than so many in a window as long as the last separation.
    let separations = |list: &str| {
        let text = format!(
            "[machine]\ncpus = 1\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n[task.a]\nunder.top = {{ priority = 2 }}\n\
            load = {{ separation = {list}, work = \"1ms\" }}\n"
        );
        export(&plan("bursts", &text), Format::Mast, Unit::Ms).unwrap()
    };
    let back = separations(r#"["1ns", "1ns", "100ms"]"#);
    assert!(
        back.text.contains("Bound_Interval => 100,") && back.text.contains("Max_Arrivals => 3"),
        "{}",
        back.text
    );
    assert_eq!(back.left_out, []);
    assert!(import(&back.text).text.contains(r#"separation = ["1ns", "1ns", "100ms"]"#));
    let apart = separations(r#"["1ms", "100ms"]"#);
    assert!(apart.text.contains("Max_Arrivals => 2"), "{}", apart.text);
    assert_eq!(apart.left_out[0].what, "all but the last `separation` of `a`");
}

/// Jobs are whole where nobody beside them holds a lock.
#[test]
fn tasks_without_preemption() {
    let whole = |name: &str| {
        let text = std::fs::read_to_string(folder().join(name)).unwrap();
        let text = text.replace("=> Fixed_Priority_Policy", "=> Non_Preemptible_FP_Policy");
        let imported =
            import(name, &text, Format::Mast, Unit::Ms).unwrap_or_else(|faults| panic!("{faults}"));
        let is_said = |left: &&LeftOut| left.what.ends_with("without preemption");
        let listed = imported.left_out.iter().filter(is_said).count();
        plan(name, &imported.text);
        (imported.text.matches("preemption = \"none\"").count(), listed)
    };
    assert_eq!(whole("mast-two-flows.txt"), (6, 0));
    assert_eq!(whole("mast-locks.txt"), (0, 3));
}

const PIECES: [&str; 20] = [
    "\"",
    "<",
    ">",
    "/>",
    "=",
    "=>",
    "(",
    ")",
    ",",
    ";",
    "--",
    "0",
    "-1",
    "1e24",
    "0.0000001",
    "99999999999",
    "&amp;",
    "é",
    "\u{0}",
    " ",
];

fn mutate(text: &str, draw: &mut Draw) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + draw.below(3) {
        let at = draw.below(chars.len() + 1);
        let end = (at + draw.below(40)).min(chars.len());
        match draw.below(5) {
            0 => drop(chars.drain(at..end)),
            1 => drop(chars.splice(at..at, PIECES[draw.below(PIECES.len())].chars())),
            2 if at < chars.len() => chars[at] = char::from(32 + draw.below(95) as u8),
            3 => {
                let begin = chars[at..].iter().position(char::is_ascii_digit).map_or(at, |skip| at + skip);
                let length = chars[begin..].iter().take_while(|c| c.is_ascii_digit()).count();
                drop(chars.splice(begin..begin + length, PIECES[11 + draw.below(5)].chars()));
            }
            _ => {
                let piece: Vec<_> = chars[at..end].to_vec();
                let to = draw.below(chars.len() + 1);
                drop(chars.splice(to..to, piece));
            }
        }
    }
    chars.into_iter().collect()
}

/// Nothing panics or takes long; what is imported is a plan, unless it has no room on its CPUs or its locks close a circle.
#[test]
fn mutated_files_are_plans_or_faults() {
    let count = std::env::var("TIERCE_FUZZ_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(3_000);
    let (files, mut draw) = (files(), Draw::new(41));
    let (mut plans, mut refused) = (0, 0);
    for round in 0..count {
        let (name, text, format) = &files[draw.below(files.len())];
        let text = mutate(text, &mut draw);
        let began = Instant::now();
        match import(name, &text, *format, Unit::Ms) {
            Ok(imported) => match Plan::parse(&imported.text, name) {
                Ok(plan) => {
                    plans += 1;
                    let _ = export(&plan, *format, Unit::Us);
                }
                Err(faults) => {
                    let known = ["cpu_must_have_room", "locks_must_not_close_a_circle"];
                    let faults = faults.faults.iter().filter(|fault| !known.contains(&fault.rule));
                    let faults: Vec<_> = faults.collect();
                    assert!(faults.is_empty(), "round {round}: {faults:?}\n{text}\n{}", imported.text);
                }
            },
            Err(faults) => {
                refused += 1;
                assert!(!faults.to_string().is_empty() && !faults.report_plain().is_empty());
            }
        }
        assert!(began.elapsed() < Duration::from_secs(60), "round {round}: {text}");
    }
    println!("{plans} plans, {refused} refused, of {count}");
    assert!(plans > count / 10 && refused > count / 10, "{plans} {refused}");
}

/// Whatever a plan has, it is exported and that is imported, or it is refused.
#[test]
fn all_plans_are_exported_or_refused() {
    let mut exported = 0;
    for folder in ["examples", "tests/verdicts", "tests/scenarios"] {
        for entry in std::fs::read_dir(folder_of(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(plan_there) = Plan::load(&path) else { continue };
            for format in [Format::Mast, Format::MastXml, Format::Simso, Format::Pycpa] {
                match export(&plan_there, format, Unit::Us) {
                    Err(faults) => assert_eq!(faults.faults[0].rule, "format_must_have_it"),
                    Ok(file) => {
                        let back = import("back", &file.text, format, Unit::Us);
                        let back = back.unwrap_or_else(|faults| panic!("{}: {faults}", path.display()));
                        let back = plan("back", &back.text);
                        assert!(!back.tasks.is_empty() && back.tasks.len() <= plan_there.tasks.len());
                        exported += 1;
                    }
                }
            }
        }
    }
    assert!(exported > 10, "{exported}");
    println!("{exported} exported");
}

/// What is released by a task that is left out has no jobs, and is left out as well.
/// A processor of half the speed takes twice as long, for switches and timers, too.
#[test]
fn overheads_take_as_long_as_the_processor_is_slow() {
    let text = "Processing_Resource (Type => Regular_Processor, Name => cpu, Speed_Factor => 0.5,
            System_Timer => (Type => Alarm_Clock, Worst_Overhead => 0.01));
        Scheduler (Type => Primary_Scheduler, Name => main, Host => cpu,
            Policy => (Type => Fixed_Priority, Worst_Context_Switch => 0.1));
        Scheduling_Server (Type => Regular, Name => a, Scheduler => main,
            Server_Sched_Parameters => (Type => Fixed_Priority_Policy, The_Priority => 10));
        Operation (Type => Simple, Name => work, Worst_Case_Execution_Time => 1);
        Transaction (Type => Regular, Name => flow,
            External_Events => ((Type => Periodic, Name => begin, Period => 10)),
            Internal_Events => ((Type => Regular, Name => end)),
            Event_Handlers => ((Type => Activity, Input_Event => begin, Output_Event => end,
                Activity_Operation => work, Activity_Server => a)));";
    let plan =
        import("slow.txt", text, Format::Mast, Unit::Ms).unwrap_or_else(|faults| panic!("{faults}")).text;
    for costs in ["switch = \"200us\"", "timer = \"20us\"", "work = \"2ms\""] {
        assert!(plan.contains(costs), "{costs}: {plan}");
    }
}

#[test]
fn what_nothing_releases_is_left_out() {
    let text = "[machine]\ncpus = 1\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
        [node.rt]\npolicy = \"reservation\"\nunder.top = { priority = 9 }\n\
        [task.a]\nunder.rt = { budget = \"1ms\", period = \"10ms\" }\nload = { period = \"10ms\", work = \"1ms\" }\n\
        [task.b]\nunder.top = { priority = 2 }\nload = { work = \"1ms\" }\n\
        [task.c]\nunder.top = { priority = 1 }\nload = { work = \"1ms\" }\n\
        [task.d]\nunder.top = { priority = 0 }\nload = { period = \"10ms\", work = \"1ms\" }\n\
        [chain.all]\ntasks = [\"a\", \"b\", \"c\"]\n";
    for format in [Format::Mast, Format::MastXml, Format::Simso, Format::Pycpa] {
        let file = export(&plan("p", text), format, Unit::Ms).unwrap();
        let lines: Vec<_> = file.left_out.iter().map(|left| (left.line, &left.what[..])).collect();
        for expected in [(6, "node `rt`"), (9, "task `a`"), (12, "task `b`"), (15, "task `c`")] {
            assert!(lines.contains(&expected), "{format:?}: {lines:?}");
        }
        let back = plan("back", &import("back", &file.text, format, Unit::Ms).unwrap().text);
        assert_eq!(back.tasks.iter().map(|task| &task.name).collect::<Vec<_>>(), ["d"]);
    }
}

/// What is wrong with a file is said with its place.
#[test]
fn faults_have_their_place() {
    let simso = |tasks: &str| {
        let begin =
            "<simulation><sched class='a.FP'/>\n<processors><processor id='1'/></processors>\n<tasks>";
        format!("{begin}{tasks}</tasks>\n</simulation>")
    };
    let cases = [
        ("hello".to_string(), "f:1:1: format_must_be_known"),
        ("<a>\n<b></a>".into(), "f:2:4: xml_syntax"),
        ("<a/>".into(), "f:1:1: format_must_be_known"),
        ("\u{feff}-- a model\nModel (Model_Name => a);".into(), "f:1:1: processor_must_be_given"),
        ("Model (Model_Name => );".into(), "f:1:22: mast_syntax"),
        ("Model (\n  Model_Name => (a => (b, c), d => e)".into(), "f:2:38: mast_syntax"),
        ("<a>".repeat(65), "f:1:193: elements_must_be_few"),
        ("<simulation/>".into(), "f:1:1: element_must_be_given"),
        (simso("<task/>"), "f:3:8: attribute_must_be_given"),
        (simso("<task id='1' priority='1' name='a' period='-2'/>"), "f:3:51: number_must_be_decimal"),
    ];
    for (text, expected) in cases {
        let found = Format::guess("f", &text).and_then(|format| import("f", &text, format, Unit::Ms));
        let found = found.unwrap_err().to_string();
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}
