//! Metrics as text. Names, units and labels are documented in docs/metrics.md.

use super::totals::{Key, Sum, Totals};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{text, DescriptorEncoder, EncodeMetric, MetricEncoder};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};
use std::collections::BTreeSet;
use std::fmt;
use tierce_trace::snapshot::{Counts, Kind};
use tierce_trace::Promise;

/// The forms of the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// What Prometheus had before it, and node_exporter reads.
    Classic,
}

type Labels = Vec<(&'static str, String)>;

#[derive(Debug)]
enum Value {
    /// A counter of events.
    Events(u64),
    /// A counter of CPU time.
    Time(u64),
    /// A number that may fall.
    Gauge(f64),
}

impl Value {
    fn encode(&self, encoder: MetricEncoder) -> fmt::Result {
        match *self {
            Value::Events(count) => ConstCounter::new(count).encode(encoder),
            Value::Time(ns) => ConstCounter::new(seconds(ns)).encode(encoder),
            Value::Gauge(value) => ConstGauge::new(value).encode(encoder),
        }
    }
}

#[derive(Debug)]
struct Family {
    name: &'static str,
    help: &'static str,
    series: Vec<(Labels, Value)>,
}

#[derive(Debug)]
struct Families(Vec<Family>);

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for family in self.0.iter().filter(|family| !family.series.is_empty()) {
            let (is_counter, has_unit) = match family.series[0].1 {
                Value::Events(_) => (true, false),
                Value::Time(_) => (true, true),
                Value::Gauge(_) => (false, family.name.ends_with("_seconds")),
            };
            let unit = has_unit.then_some(Unit::Seconds);
            let name = family.name.strip_suffix("_seconds").filter(|_| has_unit).unwrap_or(family.name);
            let kind = match is_counter {
                true => ConstCounter::new(0u64).metric_type(),
                false => ConstGauge::new(0.0).metric_type(),
            };
            let mut metric = encoder.encode_descriptor(name, family.help, unit.as_ref(), kind)?;
            match &family.series[..] {
                // The library writes braces around no labels.
                [(labels, value)] if labels.is_empty() => value.encode(metric)?,
                series => {
                    for (labels, value) in series {
                        value.encode(metric.encode_family(labels)?)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// A label's value may be any text: a thread gives itself its name. The library writes it as it is.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn labels(key: &Key) -> Labels {
    let mut labels = vec![("part", escaped(&key.name)), ("kind", key.kind.name().to_string())];
    labels.push(("parent", escaped(&key.parent)));
    labels.extend(key.tid.map(|tid| ("tid", tid.to_string())));
    labels
}

fn family<'t>(
    name: &'static str,
    help: &'static str,
    totals: &'t Totals,
    value: impl Fn(&'t Key, &'t Sum) -> Option<Value>,
) -> Family {
    let series = totals.sums().filter_map(|(key, sum)| Some((labels(key), value(key, sum)?)));
    Family { name, help, series: series.collect() }
}

/// Of edges with a budget, or to which something else is promised.
fn promises(totals: &Totals) -> Vec<Family> {
    let promise = |sum: &Sum, of: fn(&Promise) -> u64| {
        let is_promised = sum.edge.budget_ns.is_some() || sum.edge.promise.is_some();
        is_promised.then(|| sum.edge.promise.as_ref().map_or(0, of))
    };
    let time = |name, help, of: fn(&Promise) -> u64| {
        family(name, help, totals, move |_, sum| promise(sum, of).map(Value::Time))
    };
    let events = |name, help, of: fn(&Promise) -> u64| {
        family(name, help, totals, move |_, sum| promise(sum, of).map(Value::Events))
    };
    let gauge = |ns: Option<u64>| ns.map(|ns| Value::Gauge(seconds(ns)));
    vec![
        family(
            "tierce_budget_seconds",
            "Budget in each period; of a pool, of each thread",
            totals,
            |_, sum| gauge(sum.edge.budget_ns),
        ),
        family("tierce_period_seconds", "Period of the budget", totals, |_, sum| {
            gauge(sum.edge.budget_ns.and(sum.edge.period_ns))
        }),
        time(
            "tierce_promised_seconds",
            "CPU time promised in periods in which it was wanted all the time",
            |it| it.promised_ns,
        ),
        time("tierce_promise_received_seconds", "CPU time received in these periods", |it| it.received_ns),
        time("tierce_promise_missing_seconds", "CPU time promised and not received", |it| it.missing_ns),
        events("tierce_promise_periods", "Periods in which CPU time was wanted all the time", |it| {
            it.windows
        }),
        events(
            "tierce_promises_not_kept",
            "Of these, those in which less was received than promised",
            |it| it.not_kept,
        ),
        family("tierce_throttles", "Times that a budget was used up", totals, |_, sum| {
            sum.edge.budget_ns.map(|_| Value::Events(sum.edge.throttles))
        }),
    ]
}

/// Of tasks, sets and threads.
fn threads(totals: &Totals) -> Vec<Family> {
    let events = |name, help, of: fn(Counts) -> u64| {
        family(name, help, totals, move |_, sum| sum.threads.map(|counts| Value::Events(of(counts))))
    };
    vec![
        events("tierce_switches", "Times that a thread got a CPU", |it| it.switches),
        events("tierce_migrations", "Times that a thread got another CPU than before", |it| it.migrations),
        events("tierce_jobs", "Jobs begun", |it| it.jobs),
        events("tierce_missed_deadlines", "Jobs that ended after their deadline", |it| it.misses),
        family("tierce_threads", "Threads of a pool", totals, |_, sum| {
            sum.pooled.map(|threads| Value::Gauge(threads.into()))
        }),
    ]
}

fn families(totals: &Totals) -> Vec<Family> {
    let now = &totals.now;
    let one = |name, help, value| Family { name, help, series: vec![(Vec::new(), value)] };
    let cpus = now.cpus.iter().flat_map(|cpu| {
        let label = |state: &str| vec![("cpu", cpu.cpu.to_string()), ("state", state.to_string())];
        [("used", cpu.used_ns), ("idle", cpu.idle_ns), ("stolen", cpu.stolen_ns)]
            .map(|(state, ns)| (label(state), Value::Time(ns)))
    });
    let nodes: BTreeSet<&str> =
        now.parts.iter().filter(|part| part.kind == Kind::Node).map(|part| &part.name[..]).collect();
    let mut list = vec![
        Family {
            name: "tierce_plan_info",
            help: "The plan in force",
            series: vec![(vec![("plan", escaped(&now.plan))], Value::Gauge(1.0))],
        },
        one(
            "tierce_in_force_seconds",
            "Time since a plan is in force",
            Value::Gauge(seconds(now.elapsed_ns)),
        ),
        one("tierce_nodes", "Schedulers of the plan", Value::Gauge(nodes.len() as f64)),
        one("tierce_lost_records", "Records lost on their way to the loader", Value::Events(now.lost)),
        Family {
            name: "tierce_cpu_seconds",
            help: "Time of each CPU: given to tasks, idle, stolen by interrupts and by threads outside of the plan",
            series: cpus.collect(),
        },
        family("tierce_received_seconds", "CPU time received through an edge", totals, |_, sum| {
            Some(Value::Time(sum.edge.supply_ns))
        }),
    ];
    list.extend(promises(totals));
    list.extend(threads(totals));
    list
}

/// All metrics.
pub fn of(totals: &Totals, form: Form) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families(totals))));
    let mut text = String::new();
    text::encode(&mut text, &registry).expect("a string takes it");
    match form {
        Form::OpenMetrics => text,
        Form::Classic => classic(&text),
    }
}

/// The text as it was before OpenMetrics: a counter has one name, there are no units, and no end.
fn classic(text: &str) -> String {
    let counters: BTreeSet<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter")).collect();
    let mut classic = String::with_capacity(text.len());
    for line in text.lines().filter(|line| !line.starts_with("# UNIT ") && *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", what, name, rest] if counters.contains(name) => {
                classic += &format!("# {what} {name}_total {rest}\n");
            }
            _ => classic = classic + line + "\n",
        }
    }
    classic
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};
    use tierce_trace::snapshot::{Cpu, Edge, EdgeCounts, Part, Snapshot};

    fn totals() -> Totals {
        let promise = Promise {
            windows: 10,
            promised_ns: 20_000_000,
            received_ns: 19_000_000,
            least_ns: None,
            not_kept: 1,
            missing_ns: 1_000_000,
            why: None,
        };
        let counts = EdgeCounts {
            budget_ns: Some(2_000_000),
            period_ns: Some(10_000_000),
            supply_ns: 1_500_000_000,
            throttles: 7,
            replenishments: 9,
            promise: Some(promise),
        };
        let part = |name: &str, kind, threads, counts| Part {
            name: name.into(),
            kind,
            threads,
            tid: Some(811),
            under: vec![Edge { parent: "rt@0".into(), counts }],
            ..Part::default()
        };
        let plain = EdgeCounts { supply_ns: 1, ..EdgeCounts::default() };
        let mut totals = Totals::new(1);
        totals.observe(Snapshot {
            plan: "a \"plan\".toml".into(),
            elapsed_ns: 2_500_000_000,
            lost: 3,
            cpus: vec![Cpu { cpu: 0, used_ns: 1, idle_ns: 2, stolen_ns: 3, runs: None }],
            parts: vec![
                part("audio", Kind::Task, None, counts),
                part("others", Kind::Others, Some(1000), plain),
                part("bad\"\\\nname", Kind::Thread, None, plain),
            ],
            ..Snapshot::default()
        });
        totals
    }

    #[test]
    fn numbers_have_names_units_and_labels() {
        let text = of(&totals(), Form::OpenMetrics);
        for line in [
            "# TYPE tierce_received_seconds counter",
            "# UNIT tierce_received_seconds seconds",
            r#"tierce_received_seconds_total{part="audio",kind="task",parent="rt@0"} 1.5"#,
            r#"tierce_promised_seconds_total{part="audio",kind="task",parent="rt@0"} 0.02"#,
            r#"tierce_promises_not_kept_total{part="audio",kind="task",parent="rt@0"} 1"#,
            r#"tierce_budget_seconds{part="audio",kind="task",parent="rt@0"} 0.002"#,
            r#"tierce_threads{part="others",kind="others",parent="rt@0"} 1000.0"#,
            r#"tierce_switches_total{part="bad\"\\\nname",kind="thread",parent="rt@0",tid="811"} 0"#,
            r#"tierce_plan_info{plan="a \"plan\".toml"} 1.0"#,
            "tierce_lost_records_total 3",
            r#"tierce_cpu_seconds_total{cpu="0",state="stolen"} 3e-9"#,
            "tierce_in_force_seconds 2.5",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        assert!(text.ends_with("# EOF\n"), "{text}");
        assert!(!text.contains(r#"tierce_throttles_total{part="others""#), "{text}");
    }

    /// Every name is in the page, and every name of the page is there.
    #[test]
    fn the_page_has_every_name() {
        let page = include_str!("../../../../../../docs/metrics.md");
        let text = of(&totals(), Form::Classic);
        let said = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let said: BTreeSet<&str> = said.collect();
        let table = page.lines().filter_map(|line| line.strip_prefix("| `tierce_")?.split('`').next());
        let table: BTreeSet<String> = table.map(|name| format!("tierce_{name}")).collect();
        assert_eq!(said.into_iter().map(str::to_string).collect::<BTreeSet<_>>(), table);
    }

    /// `promtool`, of Prometheus, finds nothing wrong.
    #[test]
    fn promtool_finds_nothing_wrong() {
        let text = of(&totals(), Form::Classic);
        let mut command = Command::new("promtool");
        command
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("promtool is missing: scripts/setup test installs it");
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let said = child.wait_with_output().unwrap();
        let said = (said.status.success(), String::from_utf8_lossy(&said.stderr).into_owned());
        assert_eq!(said, (true, String::new()), "{text}");
    }
}
