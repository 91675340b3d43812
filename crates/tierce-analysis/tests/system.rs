//! Tasks on given CPUs: as those of each CPU alone, and what locks add to them.

#[path = "../../../tests/draw.rs"]
mod draw;

use draw::Draw;
use tierce_analysis::locks::{self, CriticalSection};
use tierce_analysis::question::{Answer, Options, Outcome, Policy, Question};
use tierce_analysis::system::{Member, Protocol, System};
use tierce_analysis::{Entry, Task, Watch};

fn outcome(asked: &Question) -> Outcome {
    match asked.answer().unwrap() {
        Answer::Tasks(outcome) => outcome,
        _ => panic!("tasks of one criticality"),
    }
}

fn drawn(draw: &mut Draw) -> (Vec<Entry>, Vec<usize>) {
    let count = 2 + draw.below(6);
    let entry = |at: usize, draw: &mut Draw| {
        let period = 5 + draw.below(40) as u64;
        let mut task = Task::new(1 + draw.below(period as usize / 3) as u64, period);
        task.deadline_ns = task.work_ns + draw.below((period - task.work_ns + 1) as usize) as u64;
        Entry { priority: Some(draw.below(10) as i64), ..Entry::new(format!("t{at}"), task) }
    };
    let entries = (0..count).map(|at| entry(at, draw)).collect();
    (entries, (0..count).map(|_| draw.below(3)).collect())
}

#[test]
fn each_cpu_is_as_if_it_were_alone() {
    let (mut draw, mut seen) = (Draw::new(11), [0; 2]);
    for _ in 0..500 {
        let (entries, cpus) = drawn(&mut draw);
        for policy in [Policy::Fp, Policy::Dm, Policy::Edf, Policy::Fifo, Policy::Audsley] {
            let options = Options { policy: Some(policy), ..Options::default() };
            let together = Question::on_cpus(entries.clone(), cpus.clone(), &options).unwrap();
            let found = outcome(&together);
            assert_eq!(together.verdict().unwrap(), (found.schedulable, found.exact));
            seen[usize::from(found.schedulable)] += 1;
            let mut all = true;
            for cpu in 0..3 {
                let here: Vec<_> = (0..cpus.len()).filter(|at| cpus[*at] == cpu).collect();
                if here.is_empty() {
                    continue;
                }
                let own = here.iter().map(|at| entries[*at].clone()).collect();
                let alone = outcome(&Question::new(own, &options).unwrap());
                all &= alone.schedulable;
                let of_both: Vec<_> = here.iter().map(|at| found.responses[*at]).collect();
                assert_eq!(of_both, alone.responses, "{policy:?} {entries:?}");
            }
            assert_eq!(found.schedulable, all);
        }
    }
    assert!(seen[0] > 100 && seen[1] > 100, "{seen:?}");
}

/// What a protocol adds is what its user would have put into the table.
#[test]
fn locks_are_the_blocking_that_they_cause() {
    let mut draw = Draw::new(12);
    let mut blocked = 0;
    for _ in 0..500 {
        let (mut entries, _) = drawn(&mut draw);
        entries.iter_mut().zip(0..).for_each(|(entry, at)| entry.priority = Some(at));
        let member = |entry: &Entry, draw: &mut Draw| {
            let length_ns = 1 + draw.below(entry.task.work_ns as usize) as u64;
            let section = CriticalSection { lock: draw.below(2), length_ns, inner: Vec::new() };
            let sections = if draw.below(3) > 0 { vec![section] } else { Vec::new() };
            let (entry, after) = (entry.clone(), Vec::new());
            Member { entry, sections, least_work_ns: 0, extra_ns: 0, after }
        };
        let members: Vec<_> = entries.iter().map(|entry| member(entry, &mut draw)).collect();
        let options = Options { policy: Some(Policy::Fp), ..Options::default() };
        let protocol =
            if draw.below(2) == 0 { locks::Protocol::Inheritance } else { locks::Protocol::Ceiling };
        let sections: Vec<_> = members.iter().map(|member| member.sections.clone()).collect();
        let levels: Vec<_> = (0..entries.len() as u32).rev().collect();
        for (entry, found) in entries.iter_mut().zip(locks::blocking(&sections, &levels, &[protocol; 2])) {
            entry.task.blocking_ns = found.most_ns.unwrap();
            blocked += u32::from(entry.task.blocking_ns > 0);
        }
        let cpus = vec![0; entries.len()];
        let system =
            System::new(members, cpus, &[Protocol::OneCpu(protocol); 2], Vec::new(), &options).unwrap();
        let (found, table) = (
            system.answer_while(&Watch::default()).unwrap().outcome,
            outcome(&Question::new(entries, &options).unwrap()),
        );
        assert_eq!((found.responses, found.schedulable), (table.responses, table.schedulable));
    }
    assert!(blocked > 300, "{blocked}");
}
