//! Budgets on several CPUs: worked cases, the decision against every choice that the bound allows, and what is shown against
//! schedules played slot by slot.

#![expect(clippy::too_many_lines, reason = "a test tells one story")]

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_analysis::several_budgets::{Budget, Budgets, Others, Taken};
use tierce_analysis::{global, Task};
use tierce_guarantee::{ratio, whole};

fn budget(budget_ns: u64, period_ns: u64) -> Budget {
    Budget::new(budget_ns, period_ns, Taken::nothing()).unwrap()
}

fn beside(budget_ns: u64, period_ns: u64, (over, under): (u64, u64), burst: u64) -> Budget {
    Budget::new(budget_ns, period_ns, Taken::new(ratio(over, under), whole(burst)).unwrap()).unwrap()
}

fn fixed(budgets: &[Budget], tasks: &[Task]) -> Vec<Option<u64>> {
    let levels: Vec<_> = (0..tasks.len() as u32).collect();
    Budgets::new(budgets.to_vec(), 0).unwrap().fixed_priority(tasks, &levels, Others::Known).unwrap()
}

/// The example at the head of the file; one task more below, which may use up what there is.
#[test]
fn one_task_with_two_budgets() {
    let two = [budget(2, 10), budget(2, 10)];
    let alone = |work| fixed(&two, &[Task::new(work, 40)])[0];
    assert_eq!([1, 2, 3, 4, 5, 8].map(alone), [9, 10, 11, 12, 21, 24].map(Some));
    // With others below, any of which may use the second CPU meanwhile: as with one budget, which is used up.
    let budgets = Budgets::new(two.to_vec(), 0).unwrap();
    let below = |work| budgets.fixed_priority(&[Task::new(work, 40)], &[0], Others::Below).unwrap()[0];
    assert_eq!([1, 2, 3, 4, 5].map(below), [9, 10, 19, 20, 29].map(Some));
    // One CPU at a time, others below: the same, and alone nothing is lost either.
    let single = Budgets::new(two.to_vec(), 1).unwrap();
    assert_eq!(single.fixed_priority(&[Task::new(2, 40)], &[0], Others::Below).unwrap(), [Some(10)]);
    assert_eq!(fixed(&two, &[Task::new(17, 40)]), [None]);
}

/// What others take: nothing in any window of less than the burst.
#[test]
fn others_on_the_cpu() {
    let found = |budgets: &[Budget]| fixed(budgets, &[Task::new(2, 100)])[0];
    assert_eq!(found(&[beside(2, 10, (0, 1), 5)]), Some(15));
    assert_eq!(found(&[beside(2, 10, (1, 2), 5)]), Some(30)); // 2 of its own, 8 spent, 5 + 30/2 for others
                                                              // A CPU that others have wholly is of no use, and does no harm.
    assert_eq!(found(&[beside(2, 10, (0, 1), 5), beside(10, 10, (1, 1), 0)]), Some(15));
    assert_eq!(found(&[beside(10, 10, (1, 1), 0)]), None);
}

#[test]
fn shares() {
    let one = Budgets::new(vec![beside(2, 10, (1, 2), 5)], 0).unwrap();
    let found = one.together().unwrap();
    assert_eq!((found.share, found.error), (ratio(1, 10), ratio(13, 5)));
    assert_eq!(one.first()[0].share, ratio(1, 10));
    // a = 1/4 each: 1/2 over 3/2.
    let two = Budgets::new(vec![budget(2, 10), budget(2, 10)], 0).unwrap();
    let found = two.together().unwrap();
    assert_eq!((found.share, found.error), (ratio(1, 3), ratio(8, 3)));
    assert_eq!((two.first()[1].share.clone(), two.first()[1].error.clone()), (ratio(1, 5), ratio(8, 5)));
    assert_eq!(two.rate(), ratio(2, 5));
    // Of two CPUs the better alone, if the other is of no use.
    let two = Budgets::new(vec![budget(2, 10), beside(5, 10, (1, 1), 0)], 0).unwrap();
    assert_eq!(two.together().unwrap().share, ratio(1, 5));
    assert_eq!(two.first().len(), 1);
    let none = Budgets::new(vec![beside(5, 10, (1, 1), 0)], 0).unwrap();
    assert!(none.together().is_none() && none.first().is_empty());
    let whole_cpus = Budgets::new(vec![budget(10, 10), budget(10, 10)], 0).unwrap();
    assert_eq!(whole_cpus.together().unwrap().share, whole(1));
}

#[test]
fn refusals() {
    assert!(
        Budget::new(0, 10, Taken::nothing()).is_none() && Budget::new(11, 10, Taken::nothing()).is_none()
    );
    assert!(Budgets::new(Vec::new(), 0).is_none());
    assert!(Taken::new(whole(0) - whole(1), whole(0)).is_none());
    let budgets = Budgets::new(vec![budget(2, 10)], 0).unwrap();
    let late = Task { deadline_ns: 11, ..Task::new(1, 10) };
    for found in [
        budgets.fixed_priority(&[late], &[0], Others::Known),
        budgets.earliest_deadline(&[late], Others::Known),
    ] {
        assert_eq!(found.unwrap_err().rule, "deadlines_are_at_most_periods");
    }
}

/// Whole CPUs are budgets that are never away: what is found is what Bertogna's tests find.
#[test]
fn whole_cpus_are_those_of_the_known_tests() {
    let mut draw = Draw::new(71);
    for _ in 0..2_000 {
        let cpus = 1 + draw.below(3) as u32;
        let tasks: Vec<_> = (0..1 + draw.below(5)).map(|_| random_task(&mut draw, 20)).collect();
        let budgets = Budgets::new(vec![budget(10, 10); cpus as usize], 0).unwrap();
        let levels: Vec<_> = (0..tasks.len() as u32).collect();
        let own = budgets.fixed_priority(&tasks, &levels, Others::Known).unwrap();
        let known = global::fixed_priority(&tasks, &levels, cpus).unwrap();
        for (own, known) in own.iter().zip(&known.tasks) {
            let rta = known.by.contains(&global::Test::Rta).then_some(());
            assert!(own.is_none() || rta.is_some(), "{tasks:?} {cpus} {own:?} {known:?}");
            assert!(own.is_some() || rta.is_none(), "{tasks:?} {cpus} {own:?} {known:?}");
        }
    }
}

fn random_task(draw: &mut Draw, longest: usize) -> Task {
    let period_ns = (4 + draw.below(longest)) as u64;
    let work_ns = 1 + draw.below(period_ns as usize / 3) as u64;
    let deadline_ns = period_ns - draw.below((period_ns - work_ns) as usize / 2 + 1) as u64;
    Task { deadline_ns, ..Task::new(work_ns, period_ns) }
}

/// Two tasks: nothing that the inequalities of the bound allow takes longer, whatever Aᵢ, rᵢ and kᵢ are.
#[test]
fn nothing_that_the_bound_allows_takes_longer() {
    const LONGEST: usize = 48;
    let mut draw = Draw::new(72);
    let (mut exact, mut shown) = (0, 0);
    for round in 0..1_500 {
        let count = 1 + draw.below(2);
        let numbers: Vec<_> = (0..count)
            .map(|_| {
                let period = 2 + draw.below(9);
                (1 + draw.below(period), period, draw.below(4))
            })
            .collect();
        let each = numbers
            .iter()
            .map(|(budget, period, burst)| beside(*budget as u64, *period as u64, (0, 1), *burst as u64));
        let budgets = Budgets::new(each.collect(), 0).unwrap();
        let (work, above) = (1 + draw.below(6), 1 + draw.below(5));
        let known = draw.below(2) == 0;
        let tasks =
            [above, work].map(|work| Task { deadline_ns: LONGEST as u64, ..Task::new(work as u64, 1_000) });
        let below = if known { Others::Known } else { Others::Below };
        let found = budgets.fixed_priority(&tasks, &[0, 1], below).unwrap();
        let Some(end) = found[0] else { continue };
        let runs = work - 1;
        let possible = |wait: usize| {
            let before = above.min(wait + work - 1 + end as usize - above);
            // (A, r) of each CPU, for any k and r.
            let choices: Vec<Vec<(usize, usize)>> = numbers
                .iter()
                .map(|(budget, period, burst)| {
                    let (mine, away) = (wait.saturating_sub(*burst), period - budget);
                    let times = LONGEST.checked_div(away).map_or(0, |times| times + 1);
                    let each = (0..=times).flat_map(|times| (0..=runs).map(move |beside| (times, beside)));
                    each.map(|(times, beside)| {
                        let waits = mine.saturating_sub((times + 1) * away);
                        (waits.max((times * budget).saturating_sub(beside)), beside)
                    })
                    .collect()
                })
                .collect();
            let one = vec![(0, 0)];
            let second = choices.get(1).unwrap_or(&one);
            choices[0].iter().any(|a| {
                second.iter().any(|b| {
                    let (waits, beside) = (a.0 + b.0, a.1 + b.1);
                    waits <= before.min(wait) && (!known || waits + beside <= before + runs)
                })
            })
        };
        // Who waits for longer has waited for that long before.
        let longest = (1..=LONGEST).find(|wait| !possible(*wait)).map_or(LONGEST, |wait| wait - 1);
        shown += 1;
        match found[1] {
            Some(found) => {
                assert!(
                    found as usize >= longest + work,
                    "{round} {numbers:?} {tasks:?} {known} {found} {longest}"
                );
            }
            None => {
                assert!(longest + work > LONGEST * 3 / 4, "{round} {numbers:?} {tasks:?} {known} {longest}")
            }
        }
        exact += usize::from(found[1].is_none_or(|found| found as usize == longest + work));
    }
    println!("{exact} of {shown} as long as the bound allows");
    assert!(exact * 10 > shown * 7, "only {exact} of {shown} are exact");
}

/// A server as it may behave at worst within the model: a period begins with a replenishment, or anew whenever the node has not
/// wanted the CPU, if the adversary likes.
struct Server {
    budget: u64,
    period: u64,
    left: u64,
    ends: u64,
    burst: u64,
    /// What others may still take: refilled by `rate` per `window` slots.
    credit: u64,
    gains: (u64, u64),
    reluctant: bool,
}

struct Job {
    left: u64,
    ready: u64,
    due: u64,
    task: usize,
}

/// Play a set for `slots`; the longest response of each task.
fn play(
    draw: &mut Draw,
    numbers: &[(u64, u64, u64, u64)],
    tasks: &[Task],
    edf: bool,
    extra: bool,
    at_once: usize,
    slots: u64,
) -> Vec<u64> {
    let mut servers: Vec<_> = numbers
        .iter()
        .map(|(budget, period, burst, share)| Server {
            budget: *budget,
            period: *period,
            left: draw.below(*budget as usize + 1) as u64,
            ends: draw.below((period - budget + 1) as usize) as u64,
            burst: *burst,
            credit: *burst,
            gains: (*share, 10),
            reluctant: draw.below(2) == 0,
        })
        .collect();
    let mut longest = vec![0; tasks.len()];
    let mut next: Vec<u64> = tasks.iter().map(|task| draw.below(task.period_ns as usize) as u64).collect();
    let mut jobs: Vec<Job> = Vec::new();
    let mut extras = 0; // slots that a task below all others wants
    let sync = draw.below(3) == 0;
    for now in 0..slots {
        for (task, next) in
            tasks.iter().zip(&mut next).enumerate().map(|(at, (task, next))| ((at, task), next))
        {
            let (at, task) = task;
            // Just when the budgets are spent, if it can be.
            let wait = sync && servers.iter().any(|server| server.left > 0) && draw.below(8) > 0;
            if now >= *next && !wait {
                let left = if draw.below(3) == 0 {
                    1 + draw.below(task.work_ns as usize) as u64
                } else {
                    task.work_ns
                };
                jobs.push(Job { left, ready: now, due: now + task.deadline_ns, task: at });
                *next = now + task.period_ns + if draw.below(2) == 0 { draw.below(5) as u64 } else { 0 };
            }
        }
        if extra && extras == 0 && draw.below(3) == 0 {
            extras = 1 + draw.below(20);
        }
        jobs.sort_by_key(|job| if edf { (job.due, job.task) } else { (job.task as u64, job.task) });
        let ready = jobs.len() + usize::from(extras > 0);
        // Who comes is served by whichever CPUs offer themselves, in any order.
        let mut order: Vec<_> = (0..servers.len()).collect();
        for at in (1..order.len()).rev() {
            order.swap(at, draw.below(at + 1));
        }
        let mut served = 0;
        let waits = ready > 0;
        for cpu in order {
            let server = &mut servers[cpu];
            if now >= server.ends {
                server.ends += server.period;
                server.ends = server.ends.max(now + 1);
                server.left = server.budget;
            }
            // Others may take the slot, while their bound lets them.
            if now % server.gains.1 < server.gains.0 {
                server.credit = (server.credit + 1).min(server.burst + server.gains.0);
            }
            let taken = server.credit > 0 && server.reluctant == waits && draw.below(8) > 0;
            if taken {
                server.credit -= 1;
                continue;
            }
            if server.left == 0 {
                continue;
            }
            if served < ready.min(at_once) {
                served += 1;
                server.left -= 1;
            } else if server.left > 0 && draw.below(2) == 0 {
                // Not wanted: the next time it may begin anew.
                server.left = server.budget;
                server.ends = now + 1 + server.period;
            }
        }
        for (place, job) in jobs.iter_mut().enumerate() {
            job.left -= u64::from(place < served);
        }
        if served > jobs.len() {
            extras -= 1;
        }
        jobs.retain(|job| {
            let longest = &mut longest[job.task];
            *longest = (*longest).max(now + 1 - job.ready);
            job.left > 0
        });
    }
    longest
}

#[test]
fn nothing_played_takes_longer() {
    let mut draw = Draw::new(73);
    let (mut shown, mut near, mut edf_shown) = (0, 0, 0);
    for round in 0..4_000 {
        let cpus = 1 + draw.below(3);
        let numbers: Vec<_> = (0..cpus)
            .map(|_| {
                let period = 2 + draw.below(9) as u64;
                let others = draw.below(3) == 0;
                let burst = if others { draw.below(4) as u64 } else { 0 };
                (
                    1 + draw.below(period as usize) as u64,
                    period,
                    burst,
                    if others { draw.below(5) as u64 } else { 0 },
                )
            })
            .collect();
        let tasks: Vec<_> = (0..1 + draw.below(4))
            .map(|_| random_task(&mut draw, 60))
            .map(|task| Task { work_ns: task.work_ns.min(5), ..task })
            .collect();
        let edf = draw.below(2) == 0;
        let extra = draw.below(2) == 0;
        let at_once = if draw.below(3) == 0 { 1 + draw.below(cpus) } else { cpus };
        let each = numbers.iter().map(|(budget, period, burst, share)| {
            // The credit of `share` per 10 slots comes at their begin: 2·share more than the line at most.
            beside(*budget, *period, (*share, 10), *burst + 2 * share)
        });
        let budgets = Budgets::new(each.collect(), at_once as u32).unwrap();
        let below = if extra { Others::Below } else { Others::Known };
        let levels: Vec<_> = (0..tasks.len() as u32).collect();
        let found = if edf {
            budgets.earliest_deadline(&tasks, below)
        } else {
            budgets.fixed_priority(&tasks, &levels, below)
        };
        let found = found.unwrap();
        if found.iter().all(Option::is_none) {
            continue;
        }
        let played = play(&mut draw, &numbers, &tasks, edf, extra, at_once, 3_000);
        for ((played, found), task) in played.iter().zip(&found).zip(&tasks) {
            let Some(found) = *found else { continue };
            shown += 1;
            edf_shown += usize::from(edf);
            assert!(*played <= found, "{round}: {played} > {found} of {task:?} in {tasks:?}, {numbers:?}, edf {edf}, extra {extra}, {at_once}");
            near += usize::from(played * 10 >= found * 9);
        }
    }
    println!("{shown} responses, {edf_shown} by deadline; {near} reached to 90 %");
    assert!(shown > 1_000 && edf_shown > 200 && near * 10 > shown, "{shown} {edf_shown} {near}");
}
