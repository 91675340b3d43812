//! Whether a plan in force still can be after a step is what the whole plan says, after every step of random operations on all plans.

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
use tierce_admission::PlanExt;

/// Asking for the whole plan is what the short way is compared with, so most of it must not come from there.
#[test]
fn what_is_found_of_a_step_is_found_of_the_whole() {
    let mut draw = Draw::new(7);
    let (mut allowed, mut refused) = (0, 0);
    let plans = edits::plans().into_iter().filter(|plan| plan.check_runnable(plan.machine.cpus).is_ok());
    for mut plan in plans.collect::<Vec<_>>() {
        for _ in 0..200 {
            let edit = edits::edit(&plan, &mut draw);
            let Some(step) = plan.step(&edit, &|| Standing::of(&plan), edits::lowest) else { continue };
            let cpus = plan.machine.cpus;
            let mut after = plan.clone();
            after.take(step.clone());
            let whole = after.check_runnable(cpus).is_ok();
            assert_eq!(plan.is_runnable_after(&step, cpus), whole, "{edit:?}\n{:?}", edits::meaning(&plan));
            if whole {
                allowed += 1;
                plan = after;
            } else {
                refused += 1;
            }
        }
    }
    println!("{allowed} allowed, {refused} refused");
    assert!(allowed > 500 && refused > 50, "{allowed} {refused}");
}

/// What is new, and what has another budget, is placed by a step as it is by the text, and nothing else moves.
#[test]
fn a_step_places_as_the_text_does() {
    let mut draw = Draw::new(31);
    let (mut steps, mut placed, mut others) = (0, 0, 0);
    for plan in edits::plans().into_iter().filter(|plan| plan.machine.cpus > 1) {
        let again = Plan::from_sources(&plan.sources, Options { cpus: plan.machine.cpus });
        let Ok(mut text) = again else { continue };
        let mut model = text.clone();
        for _ in 0..100 {
            let edit = edits::edit(&text, &mut draw);
            let step = model.step_beside(&edit, &|| Standing::of(&model));
            match (step, text.edited(&edit)) {
                (Some(step), Ok(anew)) => {
                    steps += 1;
                    placed += usize::from(step.edge().is_some_and(|edge| edge.placed));
                    model.take(step);
                    text = anew;
                }
                (Some(_), Err(faults)) => panic!("{edit:?} is refused: {faults}"),
                (None, Ok(anew)) => {
                    others += 1;
                    (model, text) = (anew.clone(), anew);
                }
                (None, Err(_)) => {}
            }
            assert_eq!(edits::meaning(&model), edits::meaning(&text), "{edit:?}\n{}", text.sources.0[0].text);
        }
    }
    println!("{steps} steps, {placed} of them placed; {others} by the text");
    assert!(steps > 500 && placed > 100 && others > 100, "{steps} {placed} {others}");
}
