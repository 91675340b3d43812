//! `soft` and `firm`: words for a second parent.

use tierce_admission::PlanExt;
use tierce_plan::Plan;

fn plan(word: &str, second: &str) -> Plan {
    let text = format!(
        "[machine]\ncpus = 1\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
         [node.rt]\npolicy = \"reservation\"\nunder.top = {{ priority = 2 }}\n\
         [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = {{ priority = 1 }}\n\
         [tasks.decoder]\ncount = 2\nunder.rt = {{ budget = \"2ms\", period = \"10ms\"{word} }}\n{second}load = \"busy\"\n"
    );
    Plan::parse(&text, "plan").unwrap_or_else(|faults| panic!("{}", faults.report_plain()))
}

/// Whoever has the priority of a firm child would run before it, or not at all: equals are not preempted.
#[test]
fn firm_comes_after_all_others() {
    let plan = |rest: &str, second: &str| {
        let text = format!(
            "[machine]\ncpus = 1\n[node.top]\npolicy = \"fixed-priority\"\ncpu = 0\n\
             [node.rt]\npolicy = \"reservation\"\nunder.top = {{ priority = 2 }}\n\
             [node.rest]\npolicy = \"fair\"\ndefault = true\nunder.top = {{ priority = {rest} }}\n\
             [tasks.decoder]\ncount = 2\nunder.rt = {{ budget = \"2ms\", period = \"10ms\", firm = \"top\" }}\n{second}"
        );
        Plan::parse(&text, "plan.toml").map_err(|faults| faults.to_string())
    };
    assert!(plan("1", "").is_ok()); // firm children beside each other
    let other = "[tasks.other]\nunder.rt = { budget = \"1ms\", period = \"10ms\", firm = \"top\" }\nmatch = { comm = \"o\" }\n";
    assert!(plan("1", other).is_ok());
    let said = plan("0", "").unwrap_err();
    assert_eq!(
        said,
        "plan.toml:15:54: firm_needs_the_lowest_priority: `decoder` would run at priority 0 of `top`, and so does `rest`: equals run \
         first come, first served: priority 0, bound below all others (hint: give `rest` a priority of at least 1); \
         plan.toml:12:13: priority 0"
    );
    // A set of which no thread is there yet; threads come to it.
    let said = plan("1", "[tasks.new]\nunder.top = {}\nmatch = { comm = \"n\" }\n").unwrap_err();
    assert!(said.contains("and so does `new`"), "{said}");
}

#[test]
fn as_if_the_second_parent_were_written() {
    for (word, second) in [
        (", soft = \"rest\"", "under.rest = {}\n"),
        (", firm = \"top\"", "under.top = {}\n"),
        (", soft = \"top\"", "under.top = { priority = 0 }\n"),
    ] {
        let (by_word, written) = (plan(word, ""), plan("", second));
        let edges = |plan: &Plan| -> Vec<_> {
            plan.edges
                .iter()
                .map(|edge| (edge.parent, edge.child, edge.params, edge.rank, edge.when_spent))
                .collect()
        };
        let (by_word, written) = (edges(&by_word), edges(&written));
        assert_eq!(by_word.len(), 6);
        assert!(by_word.iter().all(|edge| written.contains(edge)), "{word}: {by_word:?} {written:?}");
    }
}
