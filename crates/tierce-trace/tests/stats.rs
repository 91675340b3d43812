//! Statistics of a schedule whose totals are known.

mod synthetic;

use synthetic::{generate, Options};
use tierce_trace::{Event, Kind, Report, Source, Stats, Trace, TraceHeader};

fn report_of(trace: &Trace) -> Report {
    let mut stats = Stats::new(&trace.header);
    trace.events.iter().for_each(|event| stats.event(event));
    stats.finish(trace.end_ns());
    stats.report()
}

#[test]
fn equal_what_the_schedule_counted_itself() {
    for (seed, stolen) in [(1, false), (2, true), (3, true)] {
        let options = Options { seed, end_ns: 2_000_000_000, stolen, source: Source::Sim };
        let (trace, truth) = generate(&options);
        let report = report_of(&trace);
        for (id, truth) in truth {
            let task = report.tasks.iter().find(|task| task.id == id).unwrap();
            let got = synthetic::Truth {
                cpu_ns: task.cpu_ns,
                jobs: task.jobs,
                misses: task.misses,
                response_max_ns: task.response_ns.map_or(0, |r| r.max),
                response_sum_ns: truth.response_sum_ns,
                tardiness_max_ns: task.tardiness_ns.max,
                throttles: task.under.iter().map(|edge| edge.throttles).sum(),
                switches: task.switches,
                migrations: task.migrations,
            };
            assert_eq!(got, truth, "seed {seed}: {}", task.name);
            if let Some(response) = task.response_ns {
                assert_eq!(response.avg, truth.response_sum_ns / truth.jobs);
                assert!(response.min <= response.p99 && response.p99 <= response.max);
            }
        }
        for cpu in &report.cpus {
            assert_eq!(
                cpu.used_ns + cpu.idle_ns + cpu.stolen_ns,
                report.elapsed_ns,
                "seed {seed}: cpu {}",
                cpu.cpu
            );
            assert_eq!(stolen, cpu.stolen_ns > 0);
        }
        let used: u64 = report.cpus.iter().map(|cpu| cpu.used_ns).sum();
        let ran: u64 = report.tasks.iter().map(|task| task.cpu_ns).sum();
        let roots: u64 = report.nodes.iter().filter(|node| node.level == 0).map(|node| node.cpu_ns).sum();
        assert_eq!((used, used), (ran, roots));
        let runaway = report.tasks.iter().find(|task| task.name == "runaway").unwrap();
        let supply = runaway.under[0].supply_ns.unwrap();
        assert!(supply.max <= 6_000_000 && supply.periods > 90, "{supply:?}");
        assert!(supply.deviation_max.unwrap() >= supply.deviation_p99.unwrap());
    }
}

#[test]
fn fed_directly_they_are_the_same() {
    let (trace, _) = generate(&Options { seed: 7, end_ns: 500_000_000, stolen: true, source: Source::Sim });
    let want = report_of(&trace);
    let mut followed = Stats::new(&trace.header);
    let mut direct = Stats::new(&trace.header);
    for event in &trace.events {
        let late = followed.task(event.a).map_or(0, |task| task.tardiness_sum_ns);
        followed.event(event);
        match event.kind().unwrap() {
            Kind::JobRelease => direct.job_release(event.a),
            Kind::Miss => direct.miss(event.a),
            Kind::JobComplete => {
                let tardiness = followed.task(event.a).unwrap().tardiness_sum_ns - late;
                direct.job_complete(event.a, event.value, tardiness as u64);
            }
            Kind::Replenish => direct.replenish(event.a, followed.edge(event.a).unwrap().cpu_ns),
            _ => {}
        }
    }
    for task in &want.tasks {
        direct.set_task_usage(task.id, task.cpu_ns, task.switches, task.migrations);
    }
    for edge in want.tasks.iter().flat_map(|t| &t.under).chain(want.nodes.iter().flat_map(|n| &n.under)) {
        direct.set_edge_usage(edge.edge, edge.cpu_ns, edge.grants, edge.throttles, edge.forgiven_ns);
    }
    for cpu in &want.cpus {
        direct.set_cpu_usage(cpu.cpu, cpu.used_ns, cpu.idle_ns, cpu.stolen_ns, cpu.switches);
    }
    direct.finish(trace.end_ns());
    assert_eq!(direct.report(), want);
}

#[test]
fn json_keeps_its_form() {
    let (trace, _) = generate(&Options { seed: 1, end_ns: 300_000_000, stolen: true, source: Source::Run });
    let report = report_of(&trace);
    let json = serde_json::to_value(&report).unwrap();
    let task = &json["tasks"][0];
    assert_eq!(task["name"], "audio");
    for key in ["cpu_ns", "jobs", "misses"] {
        assert!(task[key].is_u64(), "{key} in {task}");
    }
    for key in ["min", "avg", "p99", "max"] {
        assert!(task["response_ns"][key].is_u64(), "{key} in {task}");
    }
    assert_eq!(json["nodes"].as_array().unwrap().len(), 5);
    assert_eq!(serde_json::from_value::<Report>(json).unwrap(), report);
    let tables = report.tables();
    for word in
        ["desktop: 300 ms measured, seed 1", "runaway", "tardiness", "throttled", "rt@0", "interference"]
    {
        assert!(tables.contains(word), "{word} is missing in\n{tables}");
    }
}

/// Threads that come, go and share ids and names; edges likewise; lost records.
#[test]
fn a_changing_graph_is_followed() {
    let header = TraceHeader { cpus: 1, source: Source::Run, ..Default::default() };
    let mut stats = Stats::new(&header);
    let mut now = 0;
    for round in 0..10u32 {
        stats.event(&Event::naming(now, 0, 5, if round % 2 == 0 { "even" } else { "odd" }));
        stats.event(&Event::new(now, Kind::Attach, 0, 3, 5, 0));
        stats.event(&Event::new(now, Kind::Grant, 0, 3, 5, 0));
        stats.event(&Event::new(now, Kind::Decision, 0, 5, 3, 0));
        now += 100;
        stats.event(&Event::new(now, Kind::Decision, 0, 0, 0, 5));
        stats.event(&Event::new(now, Kind::Detach, 0, 3, 0, 0));
        now += 10;
    }
    stats.event(&Event::new(now, Kind::Lost, 0, 0, 0, 3));
    stats.event(&Event::new(now, Kind::Grant, 9, 1, 1, 0));
    stats.finish(now);
    let report = stats.report();
    let mut tasks: Vec<_> =
        report.tasks.iter().map(|t| (t.id, t.name.as_str(), t.cpu_ns, t.switches)).collect();
    tasks.sort();
    assert_eq!(tasks, [(0, "even", 500, 5), (0, "odd", 400, 4), (5, "odd", 100, 1)]);
    assert_eq!((report.lost, stats.unusable, report.elapsed_ns), (3, 1, 1100));
    assert_eq!((report.cpus[0].used_ns, report.cpus[0].idle_ns), (1000, 100));
    assert!(report.tables().contains("3 records were lost"));
}

/// A schedule seen through a sieve: nothing panics, CPU time never exceeds the time there was.
#[test]
fn records_may_be_missing_anywhere() {
    let (trace, _) = generate(&Options { seed: 5, end_ns: 400_000_000, stolen: true, source: Source::Run });
    for nth in 2..30 {
        let kept = trace.events.iter().enumerate().filter(|(at, _)| at % nth != 0).map(|(_, event)| *event);
        let report = report_of(&Trace { header: trace.header.clone(), events: kept.collect() });
        for cpu in &report.cpus {
            assert_eq!(cpu.used_ns + cpu.idle_ns + cpu.stolen_ns, report.elapsed_ns);
        }
        for node in &report.nodes {
            assert!(node.cpu_ns <= 2 * report.elapsed_ns, "{}", node.name);
        }
    }
}
