//! A Prometheus that scrapes a simulated plan, as it would a plan in force: the queries of the page, the dashboard and the alerts.

use super::totals::Totals;
use super::{http, text};
use serde_json::Value;
use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::{Snapshot, Tally};

const MISSING: &str = "is missing: scripts/setup test installs it";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The simulation goes on by 100 ms with each scrape.
fn offer() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let plan = Plan::load(root().join("examples/desktop.toml")).unwrap();
        let simulation = Simulation::new(&plan, Options::default()).unwrap();
        let state = RefCell::new((simulation, Tally::default(), Totals::new(0)));
        http::serve(&listener, &|| {
            let (simulation, tally, totals) = &mut *state.borrow_mut();
            simulation.run_until(simulation.now_ns() + 100_000_000)?;
            totals.observe(Snapshot::of(&simulation.stats(), &[], tally));
            Ok(text::of(totals, text::Form::OpenMetrics))
        });
    });
    address
}

struct Prometheus {
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Prometheus {
    fn start(scraped: SocketAddr) -> Prometheus {
        let folder = std::env::temp_dir().join(format!("tierce-prometheus-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let rules = root().join("dist/prometheus/tierce.rules.yml");
        let config = format!(
            "global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\nrule_files: [{}]\n\
             scrape_configs: [{{job_name: tierce, static_configs: [{{targets: ['{scraped}']}}]}}]\n",
            rules.display()
        );
        std::fs::write(folder.join("prometheus.yml"), config).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // free again
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", folder.join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|why| panic!("prometheus {MISSING}: {why}"));
        Prometheus { child, address, folder }
    }

    fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(self.address).ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
    }

    /// What a query finds.
    fn query(&self, query: &str) -> Vec<Value> {
        let coded: String = query.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let answer = self.get(&format!("/api/v1/query?query={coded}")).unwrap_or_default();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].as_array().cloned().unwrap_or_default()
    }
}

/// The queries of the page and of the dashboard.
fn queries() -> Vec<String> {
    let page = std::fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let block = page.split("```promql\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let mut queries: Vec<String> = block.lines().map(str::to_string).collect();
    let board = std::fs::read_to_string(root().join("dist/grafana/tierce.json")).unwrap();
    let board: Value = serde_json::from_str(&board).unwrap();
    let targets = board["panels"].as_array().unwrap().iter().flat_map(|it| it["targets"].as_array().unwrap());
    queries.extend(targets.map(|target| {
        let expr = target["expr"].as_str().unwrap();
        expr.replace("$__rate_interval", "1m").replace("$instance", ".*")
    }));
    assert!(queries.len() > 12);
    queries
}

#[test]
fn prometheus_scrapes_and_every_query_finds_something() {
    let prometheus = Prometheus::start(offer());
    let begun = Instant::now();
    let scraped = |it: &Prometheus| {
        let up = it.get("/api/v1/query?query=count_over_time(up[1m])");
        let value = up.as_ref().and_then(|up| up.pointer("/data/result/0/value/1")?.as_str()?.parse().ok());
        value.unwrap_or(0) > 5
    };
    while !scraped(&prometheus) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing is scraped");
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(prometheus.query("up")[0]["value"][1], "1");
    for query in queries() {
        assert!(!prometheus.query(&query).is_empty(), "{query} finds nothing");
    }
    let audio = prometheus.query(r#"tierce_budget_seconds{part="audio",kind="task",parent="rt"}"#);
    assert_eq!(audio[0]["value"][1], "0.002");
    let rules = prometheus.get("/api/v1/rules").unwrap();
    let rules = rules["data"]["groups"][0]["rules"].as_array().unwrap().clone();
    assert_eq!(rules.len(), 5);
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
}

#[test]
fn promtool_accepts_the_alerts_and_they_fire() {
    for args in [["check", "rules", "tierce.rules.yml"], ["test", "rules", "tierce.rules.test.yml"]] {
        let said = Command::new("promtool").args(args).current_dir(root().join("dist/prometheus")).output();
        let said = said.unwrap_or_else(|why| panic!("promtool {MISSING}: {why}"));
        let text =
            [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        assert!(said.status.success(), "{text}");
    }
}
