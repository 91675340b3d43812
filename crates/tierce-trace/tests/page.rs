//! The page in a real browser: it tries itself (`#selftest`), its console stays silent, its picture is not empty.
//! Without a Chromium these tests say so and pass; `make test` installs one.

mod synthetic;

use std::path::{Path, PathBuf};
use std::{env, fs, process};
use synthetic::{generate, Options};
use tierce_trace::browser::Browser;
use tierce_trace::{html, Event, Kind, Source, Trace};

fn browser() -> Option<Browser> {
    let browser = Browser::find();
    if browser.is_none() {
        eprintln!("skipped: no chromium in PATH");
    }
    browser
}

fn folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("tierce-page-{name}-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn trace(seed: u64, ms: u64, source: Source) -> Trace {
    generate(&Options { seed, end_ns: ms * 1_000_000, stolen: source == Source::Run, source }).0
}

fn page_of(folder: &Path, traces: &[&Trace]) -> PathBuf {
    let page = folder.join("page.html");
    html::write(traces, fs::File::create(&page).unwrap()).unwrap();
    page
}

/// Run the page's own test and return its lines.
fn selftest(browser: &Browser, page: &Path) -> Vec<String> {
    let output = browser.document(page, "selftest", (1400, 1000)).unwrap();
    let console: Vec<_> = output.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "the console is not silent: {console:#?}");
    let (_, rest) = output.stdout.rsplit_once("<pre id=\"selftest\">").expect("the page wrote its result");
    let lines: Vec<String> = rest.split_once("</pre>").unwrap().0.lines().map(str::to_string).collect();
    println!("{}", lines.join("\n"));
    assert!(!lines.iter().any(|line| line.starts_with("FAILED")), "{lines:#?}");
    assert!(lines.iter().filter(|line| line.starts_with("ok")).count() >= 18, "{lines:#?}");
    lines
}

#[test]
fn one_trace() {
    let Some(browser) = browser() else { return };
    let folder = folder("one");
    selftest(&browser, &page_of(&folder, &[&trace(1, 500, Source::Sim)]));
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn simulated_above_measured_with_lost_records() {
    let Some(browser) = browser() else { return };
    let folder = folder("two");
    let mut run = trace(2, 400, Source::Run);
    run.events.insert(900, Event::new(run.events[899].now_ns, Kind::Lost, 0, 0, 0, 17));
    let page = page_of(&folder, &[&trace(2, 400, Source::Sim), &run]);
    selftest(&browser, &page);
    let output = browser.document(&page, "", (1400, 1000)).unwrap();
    assert!(output.stdout.contains("17 records were lost"), "the page does not say that records were lost");
    fs::remove_dir_all(folder).unwrap();
}

/// Nothing at all; one event; a thread storm under changing names: the page still comes up.
#[test]
fn odd_traces_are_shown_too() {
    let Some(browser) = browser() else { return };
    let folder = folder("odd");
    let mut storm = trace(3, 20, Source::Run);
    let (start, cpus) = (storm.header.start_ns, storm.header.cpus);
    storm.events = (0..2000u32)
        .flat_map(|n| {
            let (now, id, cpu) = (start + u64::from(n) * 1000, 50 + n % 7, (n % cpus) as u16);
            let attach = Event::new(now, Kind::Attach, cpu, 90 + n % 7, id, 5);
            let decision = Event::new(now, Kind::Decision, cpu, id, 90 + n % 7, 0);
            [Event::naming(now, cpu, id, &format!("sh-{}", n % 90)), attach, decision]
        })
        .collect();
    let mut empty = storm.clone();
    empty.events.clear();
    let mut single = empty.clone();
    single.events.push(Event::new(5, Kind::Replenish, 0, 77, 78, 9));
    for trace in [storm, empty, single] {
        let output = browser.document(&page_of(&folder, &[&trace]), "", (1000, 800)).unwrap();
        let console: Vec<_> = output.stderr.lines().filter(|line| line.contains("CONSOLE")).collect();
        assert!(console.is_empty(), "{console:#?}");
        assert!(output.stdout.contains("<h2>Tasks</h2>"), "{} events: no tables", trace.events.len());
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_picture_is_made() {
    let Some(browser) = browser() else { return };
    let folder = folder("picture");
    let page = page_of(&folder, &[&trace(1, 100, Source::Sim)]);
    let png = folder.join("page.png");
    browser.screenshot(&page, "theme=light", (1200, 900), &png).unwrap();
    let bytes = fs::read(&png).unwrap();
    assert_eq!(&bytes[1..4], b"PNG");
    let (width, height) = (&bytes[16..20], &bytes[20..24]);
    assert_eq!((width, height), (&2400u32.to_be_bytes()[..], &1800u32.to_be_bytes()[..]));
    assert!(bytes.len() > 50_000, "{} bytes: an empty picture?", bytes.len());
    fs::remove_dir_all(folder).unwrap();
}
