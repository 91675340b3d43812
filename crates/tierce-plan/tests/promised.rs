//! What a part needs is what the engine counts as promised to it, below a node that shares by weight.

use tierce_admission::PlanExt;
use tierce_plan::policies::{self, promised::places};
use tierce_plan::{Edge, Plan};

#[test]
fn what_is_needed_is_promised() {
    let text = r#"
        [node.top]
        policy = "fair"
        cpu = 0
        default = true
        [task.a]
        under.top = { weight = 300 }
        needs = ["PS 1/4", "RESCS 1ms 20ms"]
        [task.b]
        under.top = { promised = "3ms", promise_period = "30ms" }
        needs = "RESCS 1ms 20ms"
        [task.c]
        under.top = {}
        [tasks.many]
        count = 2
        under.top = {}
        needs = "RESCS 1ms 40ms"
    "#;
    let plan = Plan::parse(text, "test.toml").unwrap();
    let (amount, window) = places(policies::by_name("fair").unwrap()).unwrap();
    let promised = |edge: &Edge| (edge.params[amount] / 1_000_000, edge.params[window] / 1_000_000);
    let all: Vec<_> = plan.edges.iter().map(promised).collect();
    assert_eq!(all, [(1, 20), (3, 30), (0, 0), (1, 40), (1, 40)]);
    assert_eq!(promised(&plan.sets[0].under[0]), (1, 40));
}
