//! Shares whose promise is counted while they run: what `check` proves is kept, in every window; what is more than it proves is found broken.

mod common;

use common::{parse, report_of, run, seeds, Maker};
use tierce_admission::PlanExt;
use tierce_guarantee::Kind;
use tierce_trace::promise::{Promise, Unkept};

const MS: u64 = 1_000_000;

/// What was counted of a task's only edge.
fn promise(text: &str, task: &str, for_ms: u64) -> Option<Promise> {
    run(&parse(text), for_ms * MS, 1).task(task).under[0].promise
}

fn three(of_a: &str) -> String {
    format!(
        r#"
        [machine]
        cpus = 1
        [node.top]
        policy = "fair"
        quantum = "1ms"
        cpu = 0
        default = true
        [task.a]
        under.top = {{ weight = 100{of_a} }}
        load = "busy"
        [task.b]
        under.top = {{ weight = 100 }}
        load = "busy"
        [task.c]
        under.top = {{ weight = 200 }}
        load = "busy"
        "#
    )
}

#[test]
fn by_hand() {
    // a has a quarter: 10 ms in each 40 ms
    let kept = promise(&three(r#", promised = "9ms", promise_period = "40ms""#), "a", 405).unwrap();
    assert_eq!((kept.windows, kept.not_kept, kept.promised_ns), (10, 0, 90 * MS));
    assert!(kept.received_ns.abs_diff(100 * MS) <= MS, "{kept:?}");
    let broken = promise(&three(r#", promised = "12ms", promise_period = "40ms""#), "a", 405).unwrap();
    assert_eq!((broken.windows, broken.not_kept, broken.why), (10, 10, Some(Unkept::Others)));
    assert_eq!(broken.missing_ns, 120 * MS - broken.received_ns);
    assert_eq!(promise(&three(""), "a", 405), None);
}

/// Below `fair` and below `uniform`.
#[test]
fn what_is_proved_is_kept() {
    let mut windows = 0;
    for seed in seeds() {
        let mut maker = Maker::new(seed, "shares");
        let order = ["start-tag", "eevdf"][maker.between(0, 1) as usize];
        let quantum = maker.between(1, 8);
        let text = |needs: &str, maker: &[u64]| {
            let tasks = maker.iter().enumerate().map(|(at, weight)| {
                let load = match at {
                    0 => "load = \"busy\"".to_string(),
                    _ => format!(
                        "load = {{ period = \"{}ms\", work = \"{}ms\" }}",
                        5 + weight % 40,
                        1 + weight % 7
                    ),
                };
                let needs = if at == 0 { needs } else { "" };
                format!("[task.t{at}]\nunder.top = {{ weight = {weight} }}\n{load}\n{needs}\n")
            });
            let tasks: String = tasks.collect();
            format!(
                "[machine]\ncpus = 1\n[node.top]\npolicy = \"fair\"\norder = \"{order}\"\nquantum = \"{quantum}ms\"\ncpu = 0\n\
                 {tasks}[node.rest]\npolicy = \"round-robin\"\ndefault = true\nunder.top = {{ weight = 10 }}\n"
            )
        };
        let weights: Vec<u64> = (0..maker.between(2, 5)).map(|_| maker.between(50, 400)).collect();
        let plan = parse(&text("", &weights));
        let verdict = &plan.admit().tasks[0];
        let Some(proved) = verdict.promises.iter().find(|it| it.guarantee.kind() == Kind::Psbe) else {
            continue;
        };
        let text = text(&format!("needs = \"{}\"", proved.guarantee), &weights);
        let Some(counted) = promise(&text, "t0", 4000) else { continue };
        assert_eq!(counted.not_kept, 0, "seed {seed}: {} {counted:?}\n{text}", proved.guarantee);
        windows += counted.windows;
    }
    println!("{windows} windows");
    assert!(windows > 1000, "{windows}");
}

#[test]
fn shares_until_deadlines_are_kept() {
    let mut windows = 0;
    for seed in seeds() {
        let mut maker = Maker::new(seed, "uniform");
        let period = maker.between(1, 20);
        let mut left = 1000;
        let mut tasks = String::new();
        for at in 0..maker.between(1, 6) {
            let share = maker.between(1, left.min(500));
            left -= share;
            let load = match maker.between(0, 2) {
                0 => format!(
                    "load = {{ period = \"{}ms\", work = \"{}ms\" }}",
                    maker.between(2, 40),
                    maker.between(1, 2)
                ),
                _ => "load = \"busy\"".to_string(),
            };
            tasks += &format!("[task.t{at}]\nunder.top = {{ share = \"0.{share:03}\" }}\n{load}\n");
            if left < 10 {
                break;
            }
        }
        let text = format!(
            "[machine]\ncpus = 1\n[node.all]\npolicy = \"fixed-priority\"\ncpu = 0\n[node.top]\npolicy = \"uniform\"\nperiod = \"{period}ms\"\n\
             under.all = {{ priority = 1 }}\n{tasks}[node.rest]\npolicy = \"fair\"\ndefault = true\nunder.all = {{ priority = 0 }}\n"
        );
        let report = report_of(&parse(&text), seed, 2000 * MS);
        for at in 0..6 {
            let Some(task) = report.tasks.iter().find(|task| task.name == format!("t{at}")) else {
                break;
            };
            let Some(counted) = task.under[0].promise else { continue };
            assert_eq!(counted.not_kept, 0, "seed {seed}: t{at} {counted:?}\n{text}");
            windows += counted.windows;
        }
    }
    println!("{windows} windows");
    assert!(windows > 1000, "{windows}");
}
