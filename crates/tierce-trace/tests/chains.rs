//! Chains from the events of a live run: who woke whom, what was read, what is no job of a chain.

use proptest::prelude::*;
use tierce_trace::Kind::{Decision, JobComplete, JobRelease, Lost};
use tierce_trace::{
    ChainInfo, Chains, Event, Follows, Kind, Latencies, LinkInfo, PlanChange, Seen, Source, Spread, TaskInfo,
    TraceHeader,
};

const MS: u64 = 1_000_000;

/// `a`, whose jobs wake `b`, which `c` reads.
fn header(delay_ns: u64) -> TraceHeader {
    let task = |(id, name): (u32, &str)| TaskInfo { id, name: name.into(), ..Default::default() };
    let link = |name: &str, triggered, delay_ns| LinkInfo { task: name.into(), triggered, delay_ns };
    let links = vec![link("a", false, 0), link("b", true, delay_ns), link("c", false, 0)];
    TraceHeader {
        source: Source::Run,
        cpus: 2,
        tasks: [(1, "a"), (2, "b"), (3, "c")].map(task).to_vec(),
        chains: vec![ChainInfo { name: "way".into(), links, ..Default::default() }],
        ..Default::default()
    }
}

fn measured(header: &TraceHeader, epoch_ns: Option<u64>, records: &[(u64, Kind, u32, u32)]) -> Chains {
    let mut chains = Chains::new(header, header.chains.clone(), epoch_ns);
    for (at_ms, kind, task, job) in records {
        chains.seen(&Seen::Event(Event::new(at_ms * MS, *kind, 0, *task, *job, u64::MAX)));
    }
    chains
}

/// In ms: smallest and largest of response, reaction and age.
fn found(chains: &Chains) -> [Option<(u64, u64)>; 3] {
    let report = &chains.report()[0];
    let ms = |spread: Spread| (spread.min / MS, spread.max / MS);
    [report.response_ns, report.reaction_ns, report.age_ns].map(|spread| spread.map(ms))
}

/// A first job of each, which came with its thread, and then one each.
fn one_way() -> Vec<(u64, Kind, u32, u32)> {
    let mut list = Vec::new();
    for task in [1, 2, 3] {
        list.extend([(0, JobRelease, task, 1), (1, Decision, task, 0), (2, JobComplete, task, 1)]);
    }
    list.extend([
        (100, JobRelease, 1, 2),
        (101, Decision, 1, 0),
        // It wakes `b` before it blocks; `b` is done on another CPU before `a` is.
        (104, JobRelease, 2, 2),
        (104, Decision, 2, 0),
        (106, JobComplete, 2, 2),
        (107, JobComplete, 1, 2),
        (110, JobRelease, 3, 2),
        (111, Decision, 3, 0),
        (115, JobComplete, 3, 2),
    ]);
    list
}

#[test]
fn a_wake_up_passes_on_what_the_task_before_knows() {
    // What was released at 100 ms may have waited for `c`, whose first job came at 110 ms: no response, but an age.
    let mut list = one_way();
    assert_eq!(found(&measured(&header(0), None, &list)), [None, None, Some((15, 15))]);
    list.extend([
        (120, JobRelease, 3, 3),
        (121, Decision, 3, 0),
        (125, JobComplete, 3, 3), // nothing new
        (200, JobRelease, 1, 3),
        (202, Decision, 1, 0),
        (203, JobRelease, 2, 3),
        (204, Decision, 2, 0),
        (205, JobRelease, 3, 4),
        (205, Decision, 3, 0), // `b` has not written yet
        (206, JobComplete, 2, 3),
        (207, JobComplete, 3, 4),
        (210, JobRelease, 3, 5),
        (210, Decision, 3, 0),
        (211, JobComplete, 3, 5),
    ]);
    let chains = measured(&header(0), None, &list);
    assert_eq!(found(&chains), [Some((11, 11)), Some((110, 110)), Some((11, 107))]);
    assert_eq!(chains.remarks(), Vec::<String>::new());
}

/// A message on its way: the job that sent it had begun so long before, and the next one may have begun since.
#[test]
fn a_delay_leads_to_the_job_before() {
    let list = [
        (100, JobRelease, 1, 2),
        (100, Decision, 1, 0),
        (102, JobComplete, 1, 2),
        (110, JobRelease, 1, 3),
        (110, Decision, 1, 0),
        (112, JobRelease, 2, 2), // of the job at 100 ms
        (112, Decision, 2, 0),
        (112, JobComplete, 1, 3),
        (113, JobComplete, 2, 2),
        (114, JobRelease, 3, 2),
        (114, Decision, 3, 0),
        (115, JobComplete, 3, 2),
    ];
    assert_eq!(found(&measured(&header(10 * MS), None, &list))[2], Some((15, 15)));
    assert_eq!(found(&measured(&header(0), None, &list))[2], Some((5, 5)));
}

/// With the epoch, jobs count from when they should have been released.
#[test]
fn an_epoch_tells_when_jobs_were_due() {
    let mut header = header(0);
    (header.tasks[0].period_ns, header.tasks[0].phase_ns) = (Some(30 * MS), Some(2 * MS));
    assert_eq!(found(&measured(&header, Some(5 * MS), &one_way()))[2], Some((18, 18)), "due at 97 ms");
    assert_eq!(found(&measured(&header, Some(500 * MS), &one_way()))[2], Some((15, 15)), "begins later");
}

#[test]
fn what_a_trace_lacks_is_said() {
    let mut list = one_way();
    list.retain(|(_, _, task, _)| *task != 3);
    assert_eq!(measured(&header(0), None, &list).remarks(), ["way: the trace has no job of `c`"]);
    let chains = measured(&header(0), None, &one_way());
    assert_eq!(chains.remarks(), ["way: nothing has come through to the last task"]);
    list.push((300, Lost, 0, 0));
    let remarks = measured(&header(0), None, &list).remarks();
    assert!(remarks[1].starts_with("18446744073709551615 records were lost"), "{remarks:?}");
    // No decision tells when jobs begin.
    list.retain(|(_, kind, ..)| *kind != Decision);
    let remarks = measured(&header(0), None, &list).remarks();
    assert_eq!(remarks[0], "way: the trace has no job of `a`, `b`, `c`");
}

proptest! {
    /// Whatever is in a trace, nothing panics, and there are no more responses than jobs of the first task.
    #[test]
    fn any_records(
        simulated in any::<bool>(),
        epoch_ns in prop::option::of(any::<u64>()),
        tasks in prop::collection::vec((1u32..4, any::<u64>(), any::<u64>()), 1..4),
        chain in prop::collection::vec((0usize..4, any::<bool>(), any::<u64>()), 0..5),
        records in prop::collection::vec((0u16..28, 0u32..5, 0u32..4, any::<u64>(), 0u64..1000), 0..300),
    ) {
        let task = |(id, period_ns, phase_ns): (u32, u64, u64)| TaskInfo {
            id,
            name: ["a", "b", "c"][id as usize - 1].into(),
            deadline_ns: Some(period_ns),
            period_ns: Some(period_ns),
            phase_ns: Some(phase_ns),
            ..Default::default()
        };
        let link = |(task, triggered, delay_ns): (usize, bool, u64)| {
            LinkInfo { task: ["a", "b", "c", "none"][task].into(), triggered, delay_ns }
        };
        let header = TraceHeader {
            source: if simulated { Source::Sim } else { Source::Run },
            tasks: tasks.into_iter().map(task).collect(),
            chains: vec![ChainInfo { links: chain.into_iter().map(link).collect(), ..Default::default() }],
            ..Default::default()
        };
        let mut chains = Chains::new(&header, header.chains.clone(), epoch_ns);
        let (mut now_ns, mut released) = (0, 0);
        for (kind, a, b, value, later_ns) in records {
            now_ns += later_ns * MS;
            released += u64::from(kind == JobRelease as u16);
            chains.seen(&Seen::Event(Event { now_ns, kind, cpu: 0, a, b, pad: 0, value }));
        }
        let responses = chains.all().next().map(|(_, passage)| passage.times()[0].summary().count);
        prop_assert!(responses <= Some(released), "{responses:?} of {released}");
        chains.remarks();
    }
}

/// What a change of the plan leaves as it is goes on; what it changes begins anew, and what it takes out is kept.
#[test]
fn a_change_of_the_plan_changes_chains() {
    let header = header(0);
    let way = header.chains[0].clone();
    let short = ChainInfo { name: "short".into(), links: way.links[..2].to_vec(), ..Default::default() };
    let later = |chains: &[ChainInfo], follows| {
        let mut all = Chains::new(&header, header.chains.clone(), None).following(follows);
        let play = |all: &mut Chains, from_ms: u64| {
            for (at_ms, kind, task, job) in one_way() {
                all.seen(&Seen::Event(Event::new((from_ms + at_ms) * MS, kind, 0, task, job, u64::MAX)));
            }
        };
        play(&mut all, 0);
        all.seen(&Seen::Change(PlanChange { chains: Some(chains.to_vec()), ..Default::default() }));
        play(&mut all, 1_000);
        let names = all.report().into_iter().map(|chain| (chain.name, chain.ended));
        let counts = all.all().map(|(_, passage)| passage.times()[2].summary().count);
        names.zip(counts).map(|((name, ended), count)| format!("{name} {ended} {count}")).collect::<Vec<_>>()
    };
    assert_eq!(later(&[way.clone(), short.clone()], Follows::All), ["way false 2", "short false 1"]);
    let needs = Latencies { response_ns: Some(MS), ..Default::default() };
    let tight = ChainInfo { needs, ..way.clone() };
    assert_eq!(later(std::slice::from_ref(&tight), Follows::All), ["way true 1", "way false 1"]);
    assert_eq!(later(&[], Follows::All), ["way true 1"]);
    assert_eq!(later(&[short.clone(), tight], Follows::One("short".into())), ["way true 1", "short false 1"]);
    assert_eq!(later(&[short], Follows::Nothing), ["way false 2"]);
    // What has ended is not kept for ever.
    let mut all = Chains::new(&header, header.chains.clone(), None);
    for at in 0..200 {
        let chains = Some(vec![ChainInfo { name: format!("c{at}"), ..way.clone() }]);
        all.seen(&Seen::Change(PlanChange { chains, ..Default::default() }));
    }
    assert_eq!(all.all().count(), 65);
    assert_eq!(all.report().last().unwrap().name, "c199");
}

/// Marks tell what passes, whoever wakes whom: `b` mixes up the order, and the last job deals with two items.
#[test]
fn marks_tell_what_passes() {
    let mut header = header(0);
    header.chains[0].mark = Some("frame".into());
    let mut chains = Chains::new(&header, header.chains.clone(), None);
    let mark = |at_ms: u64, task, label, item| (at_ms, Event::mark(0, 0, task, label, item));
    let event = |at_ms: u64, kind, task, job| (at_ms, Event::new(0, kind, 0, task, job, u64::MAX));
    let job = |at_ms: u64, task, number, until_ms: u64| {
        [
            event(at_ms, JobRelease, task, number),
            event(at_ms + 1, Decision, task, 0),
            event(until_ms, JobComplete, task, number),
        ]
    };
    let mut list: Vec<(u64, Event)> = Vec::new();
    for task in [1, 2, 3] {
        list.extend(job(0, task, 1, 2));
    }
    list.extend(
        [job(100, 1, 2, 105), job(110, 1, 3, 115), job(120, 1, 4, 125), job(121, 2, 2, 124)].concat(),
    );
    list.extend([mark(102, 1, "frame", 7), mark(112, 1, "frame", 8), mark(122, 1, "frame", 9)]);
    list.extend([mark(103, 1, "other", 1), mark(104, 1, "frame", 7), mark(123, 2, "frame", 8)]);
    list.push(mark(1, 1, "frame", 6)); // in a job that came with its thread: nobody knows when that was released
    list.push(mark(131, 3, "frame", 6));
    // One job of `c` deals with 7, then with 9; the next one with none, and one with what nobody has marked.
    list.extend([job(130, 3, 2, 150), job(160, 3, 3, 165), job(170, 3, 4, 175)].concat());
    list.extend([mark(132, 3, "frame", 7), mark(140, 3, "frame", 9), mark(172, 3, "frame", 70)]);
    list.sort_by_key(|(at_ms, _)| *at_ms);
    for (at_ms, event) in list {
        chains.seen(&Seen::Event(Event { now_ns: at_ms * MS, ..event }));
    }
    // Of 7 the age is known; what came before the first mark of `c` may have waited for it.
    assert_eq!(found(&chains), [None, None, Some((30, 40))]);
    let strange = "way: 1 marks `frame` of `c` have a number that `a` has not marked before";
    assert_eq!(chains.remarks(), [strange]);

    for (at_ms, event) in [job(200, 1, 5, 205), job(210, 3, 5, 219)].concat() {
        let marks = match (event.kind(), event.a) {
            (Some(Decision), task) => Some(Event::mark((at_ms + 1) * MS, 0, task, "frame", 10)),
            _ => None,
        };
        chains.seen(&Seen::Event(Event { now_ns: at_ms * MS, ..event }));
        marks.into_iter().for_each(|event| chains.seen(&Seen::Event(event)));
    }
    assert_eq!(found(&chains), [Some((19, 19)), Some((97, 97)), Some((19, 40))]);
}

#[test]
fn who_marks_nothing_is_named() {
    let mut header = header(0);
    header.chains[0].mark = Some("frame".into());
    let chains = measured(&header, None, &one_way());
    assert_eq!(chains.remarks(), ["way: `a` has written no mark `frame`"]);
    assert_eq!(found(&chains), [None, None, None]);
    // A simulation has none, and needs none.
    header.source = Source::Sim;
    assert!(Chains::new(&header, header.chains.clone(), None).remarks()[0].contains("no job of"));
}
