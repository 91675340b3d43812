//! What stands above sched_ext on a machine, and what a plan can promise there.

use tierce_admission::{Above, Admission, PlanExt, Reserved};
use tierce_plan::{Cpus, Plan};

const MS: u64 = 1_000_000;

fn two_cpus() -> Above {
    Above { online: vec![0, 1], ..Above::default() }
}

fn deadline(runtime_ms: u64, period_ms: u64, cpus: u64) -> Reserved {
    Reserved {
        name: "dl".into(),
        cpus: Cpus::from(cpus),
        runtime_ns: runtime_ms * MS,
        period_ns: period_ms * MS,
    }
}

fn left(above: &Above) -> [String; 2] {
    [0, 1].map(|cpu| above.left(cpu).guarantee.to_string())
}

#[test]
fn deadline_threads_leave_the_rest() {
    let mut above = two_cpus();
    assert_eq!(left(&above), ["ALL", "ALL"]);
    above.deadline.push(deadline(2, 10, 0b10));
    assert_eq!(left(&above), ["ALL", "PSBE 4/5 4ms"]);
    above.deadline.push(deadline(3, 30, 0b11));
    assert_eq!(left(&above), ["PSBE 9/10 6ms", "PSBE 7/10 10ms"]);
    above.deadline.push(deadline(9, 10, 0b01)); // with the 3 in 30: all of it
    assert_eq!(left(&above), ["NULL", "PSBE 7/10 10ms"]);
    above.ext_servers.push((0, 50 * MS, 1000 * MS));
    assert_eq!(left(&above), ["RESBS 50ms 1s", "PSBE 7/10 10ms"]);
}

/// No more than t·share − error is missing when a thread that is stopped after its runtime takes it as badly as it can.
#[test]
fn what_is_left_is_left_in_the_worst_window() {
    let (runtime, period) = (3u64, 10u64);
    let above = Above { deadline: vec![deadline(runtime, period, 1)], ..two_cpus() };
    let supply = tierce_guarantee::Supply::of(&above.left(0).guarantee);
    // At the end of one period, then at the begin of each.
    let taken = |t: u64| {
        t.min(runtime)
            + (t.saturating_sub(runtime) / period) * runtime
            + (t.saturating_sub(runtime) % period).min(runtime)
    };
    for t in 0..200 {
        let sure = supply.at(&tierce_guarantee::whole(t * MS));
        assert!(tierce_guarantee::whole((t - taken(t)) * MS) >= sure, "{t} ms");
    }
}

#[test]
fn real_time_threads_leave_what_the_kernel_keeps() {
    let mut above = two_cpus();
    above.unbounded.push(("rt".into(), Cpus::from(0b01)));
    assert_eq!(left(&above), ["NULL", "ALL"]);
    above.ext_servers = vec![(0, 50 * MS, 1000 * MS), (1, 50 * MS, 1000 * MS)];
    assert_eq!(left(&above), ["RESBS 50ms 1s", "ALL"]);
    assert!(above.left(0).because.contains("`rt`, a real-time thread"), "{}", above.left(0).because);
}

fn on(text: &str, above: &Above) -> (Plan, Admission) {
    let plan = Plan::parse(text, "host.toml").unwrap().on(above).unwrap();
    let admission = plan.admit();
    (plan, admission)
}

#[test]
fn a_plan_promises_what_the_machine_can_keep() {
    let plan = |budget: &str| {
        format!(
            "[node.top]\npolicy = \"reservation\"\ncpu = 0\n\
             [task.a]\nunder.top = {{ budget = \"{budget}\", period = \"20ms\" }}\nneeds = \"RESBS {budget} 20ms\"\n"
        )
    };
    let above = Above { deadline: vec![deadline(2, 10, 1)], ..two_cpus() }; // PSBE 4/5 4ms: 12 in 20
    assert!(on(&plan("12ms"), &above).1.holds);
    let (text, admission) = on(&plan("13ms"), &above);
    assert!(!admission.holds && Plan::parse(&plan("13ms"), "all").unwrap().admit().holds);
    let failure = &admission.nodes[0].failures[0];
    assert_eq!((failure.rule, failure.bound.as_str()), ("budgets_must_fit_what_is_left", "PSBE 4/5 4ms"));
    assert!(admission.outline(&text).contains("What stands above sched_ext leaves too little"));
    // In the long run, too.
    let rule = on(&plan("17ms"), &above).1.nodes[0].failures[0].rule;
    assert_eq!(rule, "budgets_must_fit_the_supply");
    // Jobs by deadline on what is left.
    let jobs = |deadline: &str| {
        format!("[node.top]\npolicy = \"edf\"\ncpu = 0\n[task.a]\nunder.top = {{}}\nload = {{ period = \"50ms\", work = \"4ms\", deadline = \"{deadline}\" }}\n")
    };
    assert!(on(&jobs("10ms"), &above).1.holds); // (4 + 4)/0.8
    assert_eq!(on(&jobs("9.9ms"), &above).1.nodes[0].failures[0].rule, "deadlines_must_fit_what_is_promised");
    // Where all may be taken nothing is promised.
    let above = Above { unbounded: vec![("rt".into(), Cpus::from(1))], ..two_cpus() };
    assert!(!on(&plan("1ms"), &above).1.holds);
}

#[test]
fn roots_are_on_cpus_that_are_online() {
    let plan =
        Plan::parse("[machine]\ncpus = 4\n[node.top]\npolicy = \"fair\"\ncpu = 3\n", "host.toml").unwrap();
    let faults = plan.clone().on(&two_cpus()).unwrap_err();
    assert_eq!(faults.to_string(), "host.toml:3:7: root_cpu_must_be_online: `top` is the root of CPU 3, which is not online: 3, bound 0, 1");
    assert!(plan.on(&Above { online: vec![0, 3], ..Above::default() }).is_ok());
}
