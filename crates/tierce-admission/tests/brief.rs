//! The brief verdict says the same as the whole one, after every step of random operations on all plans.

#[path = "../../../tests/draw.rs"]
mod draw;
#[path = "../../../tests/edits.rs"]
mod edits;

// What `edits` takes from the crate that it is a part of.
pub use tierce_plan::{
    policies, Below, Child, Edge, Edit, Fault, Keys, MatchEntry, Matcher, Need, Options, Placed, Plan,
    Standing, Step, Unit,
};

use draw::Draw;
use tierce_admission::{Failure, PlanExt, Promise, Proof};

fn text(failures: &[Failure], needs: &[Proof]) -> String {
    format!("{failures:?} {needs:?}")
}

/// What is promised, for those who were asked about: so many were, and so many were not.
#[derive(Debug, Default)]
struct Asked(usize, usize);

impl Asked {
    fn same(&mut self, brief: Option<&[Promise]>, whole: &[Promise]) {
        match brief {
            Some(brief) => {
                let guarantees = |given: &[Promise]| -> Vec<_> {
                    given.iter().map(|promise| promise.guarantee.clone()).collect()
                };
                assert_eq!(guarantees(brief), guarantees(whole));
                self.0 += 1;
            }
            None => self.1 += 1,
        }
    }
}

fn compare(plan: &Plan, asked: &mut Asked) {
    let (brief, whole) = (plan.admit_briefly(), plan.admit());
    assert_eq!(brief.holds(), whole.holds, "{:?}", edits::meaning(plan));
    for (at, (node, found)) in whole.nodes.iter().zip(brief.nodes()).enumerate() {
        assert_eq!(text(found.0, found.1), text(&node.failures, &node.needs));
        asked.same(brief.to_node(at), &node.promises);
    }
    for (at, (task, found)) in whole.tasks.iter().zip(brief.tasks()).enumerate() {
        assert_eq!(text(found.0, found.1), text(&task.failures, &task.needs));
        asked.same(brief.to_task(at), &task.promises);
    }
}

#[test]
fn the_brief_verdict_is_the_whole_one() {
    let mut draw = Draw::new(11);
    let mut asked = Asked::default();
    for mut plan in edits::plans() {
        compare(&plan, &mut asked);
        for _ in 0..40 {
            let edit = edits::edit(&plan, &mut draw);
            let Some(step) = plan.step(&edit, &|| Standing::of(&plan), edits::lowest) else { continue };
            plan.take(step);
            compare(&plan, &mut asked);
        }
    }
    println!("{asked:?}");
    assert!(asked.0 > 1000 && asked.1 > 1000, "{asked:?}");
}
