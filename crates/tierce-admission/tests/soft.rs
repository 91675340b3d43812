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
