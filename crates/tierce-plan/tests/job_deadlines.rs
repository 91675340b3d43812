//! The deadline by which the kernel side counts misses: of the load, or without one of the edges that go by deadlines.

use tierce_admission::PlanExt;
use tierce_plan::{Child, Plan};

#[test]
fn of_the_load_or_of_an_edge() {
    let text = r#"
        [machine]
        cpus = 2
        [node.top]
        policy = "fixed-priority"
        per_cpu = true
        [node.jobs]
        policy = "edf"
        per_cpu = true
        under.top = {}
        [task.loaded]
        under.jobs = { cpu = 0, deadline = "3ms" }
        load = { period = "10ms", work = "1ms", deadline = "8ms" }
        [task.busy]
        under.jobs = { cpu = 0, deadline = "3ms" }
        load = "busy"
        [task.one]
        under.jobs = { cpu = 0, deadline = "3ms" }
        match = { comm = "one" }
        [task.both]
        under.jobs = [{ cpu = 0, deadline = "7ms" }, { cpu = 1, deadline = "5ms" }]
        match = { comm = "both" }
        [task.neither]
        under.jobs = { cpu = 0 }
        match = { comm = "neither" }
        [node.fair]
        policy = "fair"
        under.jobs = { cpu = 0, deadline = "3ms" }
        [task.below]
        under.fair = {}
        match = { comm = "below" }
        [tasks.many]
        under.jobs = { cpu = 1, deadline = "4ms" }
        match = { comm = "many*" }
    "#;
    let plan = Plan::parse(text, "plan.toml").unwrap_or_else(|faults| panic!("{faults}"));
    let deadline = |name: &str| {
        let task = plan.tasks.iter().position(|task| task.name == name).unwrap_or_else(|| panic!("{name}"));
        plan.job_deadline_ns(Child::Task(task))
    };
    let ms = |ms: u64| Some(ms * 1_000_000);
    assert_eq!((deadline("loaded"), deadline("busy")), (ms(8), None));
    assert_eq!((deadline("one"), deadline("both")), (ms(3), ms(5)));
    assert_eq!((deadline("neither"), deadline("below")), (None, None));
    assert_eq!(plan.job_deadline_ns(Child::Set(0)), ms(4));
    assert_eq!(plan.job_deadline_ns(Child::Node(0)), None);
}
