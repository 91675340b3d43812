//! The screen as text, what keys do, and a simulation and its trace from beginning to end. `UPDATE=1` writes the screens anew.

use super::feed::{Feed, Recorded, Simulated};
use super::model::{Model, Press, Sort, View};
use super::screen::{draw, Look};
use ratatui::backend::TestBackend;
use ratatui::Terminal;
use std::path::{Path, PathBuf};
use tierce_admission::PlanExt;
use tierce_plan::Plan;
use tierce_sim::{Options, Simulation};
use tierce_trace::promise::{Promise, Unkept};
use tierce_trace::snapshot::{Counts, Cpu, Edge, EdgeCounts, Kind, Part, Running, Snapshot};
use tierce_trace::Writer;

const MS: u64 = 1_000_000;

fn desktop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/desktop.toml")
}

fn edge(parent: &str, budget_ms: u64, supply_ms: u64, broken: u64) -> Edge {
    let promise = Promise {
        windows: 100,
        promised_ns: 200 * MS,
        received_ns: 200 * MS - broken * MS,
        least_ns: Some(MS),
        not_kept: broken,
        missing_ns: broken * MS,
        why: (broken > 0).then_some(Unkept::Stolen),
    };
    let counts = EdgeCounts {
        budget_ns: (budget_ms > 0).then_some(budget_ms * MS),
        period_ns: (budget_ms > 0).then_some(10 * MS),
        supply_ns: supply_ms * MS,
        throttles: 7 * broken,
        replenishments: 100,
        promise: (budget_ms > 0).then_some(promise),
    };
    Edge { parent: parent.into(), counts }
}

fn part(name: &str, kind: Kind, under: Vec<Edge>) -> Part {
    Part { name: name.into(), kind, under, ..Part::default() }
}

/// A plan in force on two CPUs, with a spread default node, as after so many seconds.
fn live(seconds: u64) -> Snapshot {
    let audio = Part {
        tid: Some(811),
        counts: Counts { switches: 100 * seconds, migrations: 0, jobs: 100 * seconds, misses: seconds },
        ..part("audio", Kind::Task, vec![edge("rt@0", 2, 150 * seconds, 3 * seconds)])
    };
    let pool = |name: &str, kind, threads, under| Part { threads: Some(threads), ..part(name, kind, under) };
    let mut parts = vec![audio, part("video", Kind::Task, vec![edge("rt@1", 3, 300 * seconds, 0)])];
    for cpu in 0..2 {
        let at = |name: &str| format!("{name}@{cpu}");
        let mut node = |name: &str, parent: String, budget, supply, family: Option<&str>| {
            parts.push(Part {
                policy: Some("reservation".into()),
                family: family.map(str::to_string),
                ..part(&at(name), Kind::Node, vec![edge(&parent, budget, supply * seconds, 0)])
            });
        };
        node("top", format!("cpu{cpu}"), 0, 700, None);
        node("rt", at("top"), 0, 150 + 150 * cpu, None);
        node("rest", at("top"), 0, 400, Some("rest"));
    }
    parts.push(pool("build", Kind::Set, 4, vec![edge("rest", 1, 300 * seconds, 0)]));
    parts.push(pool("others", Kind::Others, 1002, vec![edge("rest", 0, 500 * seconds, 0)]));
    parts.push(Part {
        tid: Some(4711),
        set: Some("build".into()),
        ..part("cc1", Kind::Thread, vec![edge("rest", 1, 100 * seconds, 0)])
    });
    let runs = |part: &str, kind, tid, comm: &str| {
        Some(Running { part: part.into(), kind, tid: Some(tid), comm: Some(comm.into()) })
    };
    let cpu = |cpu: u32, runs| {
        let (used_ns, idle_ns) = (700 * MS * seconds, 200 * MS * seconds);
        Cpu { cpu, used_ns, idle_ns, stolen_ns: 100 * MS * seconds, runs }
    };
    Snapshot {
        version: 1,
        plan: "studio.toml".into(),
        elapsed_ns: 1_000 * MS * seconds,
        lost: 12,
        cpus: vec![
            cpu(0, runs("audio", Kind::Task, 811, "audio")),
            cpu(1, runs("build", Kind::Set, 4711, "cc1")),
        ],
        parts,
    }
}

fn screen(model: &Model, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, model, Look { color: false })).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |row: u16| (0..width).map(|column| buffer[(column, row)].symbol()).collect::<String>();
    (0..height).map(|row| line(row).trim_end().to_string() + "\n").collect()
}

fn assert_screen(name: &str, model: &Model, width: u16, height: u16) {
    let name = format!("tests/top/{name}-{width}x{height}.txt");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&name);
    let drawn = screen(model, width, height);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &drawn).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(drawn, wanted, "{name} is another one:\n{drawn}");
}

fn model() -> Model {
    let mut model = Model::default();
    for seconds in 1..=5 {
        model.take(live(seconds));
    }
    model
}

fn keys(model: &mut Model, text: &str) {
    text.chars().for_each(|c| model.key(Press::Char(c)));
}

#[test]
fn the_screen_at_each_size() {
    let mut model = model();
    for (width, height) in [(160, 40), (80, 24), (60, 20), (40, 16)] {
        assert_screen("live", &model, width, height);
    }
    model.key(Press::Move(2));
    model.key(Press::Enter);
    assert_screen("history", &model, 80, 24);
    assert_screen("history", &model, 40, 16);
    model.key(Press::Esc);
    model.key(Press::Char('?'));
    assert_screen("help", &model, 80, 24);
    assert_screen("help", &model, 40, 16);
}

#[test]
fn many_cpus_are_told_in_few_lines() {
    let mut snapshot = live(1);
    let one = snapshot.cpus[1].clone();
    snapshot.cpus = (0..64).map(|cpu| Cpu { cpu, ..one.clone() }).collect();
    let mut model = Model::default();
    model.take(snapshot);
    assert_screen("many", &model, 80, 24);
}

#[test]
fn no_size_is_too_small() {
    let mut model = model();
    for help in [false, true] {
        (model.help, model.detail) = (help, !help);
        for width in (1..90).step_by(4) {
            for height in (1..30).step_by(3) {
                screen(&model, width, height);
            }
        }
    }
    screen(&Model::default(), 80, 24);
}

#[test]
fn keys_change_what_is_shown() {
    let mut model = model();
    let names = |model: &Model| model.rows().iter().map(|row| row.name.clone()).collect::<Vec<_>>();
    let tree = names(&model);
    assert_eq!(
        tree,
        ["top@0", "rt@0", "audio", "rest@0", "top@1", "rt@1", "video", "rest@1", "build", "others"]
    );
    keys(&mut model, "t");
    assert_eq!(names(&model).last().unwrap(), "cc1");
    keys(&mut model, "t");

    // The marked row stays marked.
    model.key(Press::Move(2));
    assert_eq!(model.marked().unwrap().0.name, "audio");
    keys(&mut model, "s");
    assert_eq!((model.sort, &names(&model)[0][..]), (Sort::Share, "top@0"));
    keys(&mut model, "s");
    assert_eq!((model.sort, &names(&model)[0][..]), (Sort::NotKept, "audio"));
    assert_eq!(model.marked().unwrap().0.name, "audio");
    assert_eq!(model.marked().unwrap().1, vec![0.15; 5]);

    keys(&mut model, "/re");
    assert_eq!(names(&model), ["rest@0", "rest@1"]);
    model.key(Press::Back);
    keys(&mut model, "t");
    model.key(Press::Enter);
    assert_eq!((model.typing, names(&model).len()), (false, 2), "{:?}", names(&model));
    model.key(Press::Esc);
    assert_eq!(names(&model).len(), tree.len());

    model.key(Press::Enter);
    assert!(model.detail);
    keys(&mut model, " ?q");
    assert!(model.paused && model.help && model.quit);
    keys(&mut model, "sss");
    assert_eq!(model.sort, Sort::Name);
    keys(&mut model, "s");
    assert_eq!(model.sort, Sort::Tree);
    model.key(Press::Move(1000));
    assert_eq!(model.selected, tree.len() - 1);
}

#[test]
fn a_window_has_what_came_since() {
    let view = View::between(&live(2), &live(5));
    assert_eq!(view.window_ns, 3_000 * MS);
    let audio = view.parts.iter().find(|row| row.name == "audio").unwrap();
    assert_eq!((audio.window.edge.supply_ns, audio.total.edge.supply_ns), (450 * MS, 750 * MS));
    assert_eq!((audio.not_kept(), audio.window.edge.throttles, audio.window.threads.misses), (9, 63, 3));
    assert_eq!((audio.promised(), &audio.on[..]), (Some(0.2), &[0][..]));
    let build = view.parts.iter().find(|row| row.name == "build").unwrap();
    assert_eq!((build.promised(), &build.on[..]), (Some(0.4), &[1][..]));
    // One that was removed and is there again counts anew.
    let again = View::between(&live(5), &live(2));
    let audio = again.parts.iter().find(|row| row.name == "audio").unwrap();
    assert_eq!(audio.window.edge.supply_ns, 300 * MS);
}

/// The sums of all windows of a feed.
fn play(feed: &mut dyn Feed) -> Vec<View> {
    let (mut last, mut views) = (Snapshot::default(), Vec::new());
    while let Some(now) = feed.next(false).unwrap() {
        views.push(View::between(&last, &now));
        last = now;
    }
    views
}

#[test]
fn a_simulation_and_its_trace_show_the_same() {
    let simulated = play(&mut Simulated::new(&desktop(), 1, 1, 50 * MS, 500 * MS).unwrap());
    assert_eq!(simulated.len(), 10);
    for view in &simulated {
        let cpu = &view.cpus[0];
        assert_eq!(cpu.used_ns + cpu.idle_ns + cpu.stolen_ns, 50 * MS);
        let root = view.parts.iter().find(|row| row.parent == "cpu0").unwrap();
        assert_eq!(root.window.edge.supply_ns, cpu.used_ns);
    }
    let sum = |views: &[View], name: &str| -> u64 {
        let rows = views.iter().flat_map(|view| &view.parts).filter(|row| row.name == name);
        rows.map(|row| row.window.edge.supply_ns).sum()
    };
    assert_eq!(sum(&simulated, "audio"), 90 * MS);

    let plan = Plan::load(desktop()).unwrap();
    let mut simulation =
        Simulation::new(&plan, Options { seed: 1, trace: true, ..Options::default() }).unwrap();
    simulation.run_until(500 * MS).unwrap();
    let path = std::env::temp_dir().join(format!("tierce-top-{}.trace", std::process::id()));
    let header = tierce_trace::TraceHeader { end_ns: Some(500 * MS), ..simulation.header() };
    let mut writer = Writer::new(std::fs::File::create(&path).unwrap(), &header).unwrap();
    simulation.take_events().iter().for_each(|event| writer.write(event).unwrap());
    writer.finish().unwrap();
    let recorded = play(&mut Recorded::new(&path, 50 * MS).unwrap());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(recorded.len(), 10);
    for name in ["top", "rt", "audio", "video", "desktop", "build", "compiler", "runaway"] {
        assert_eq!(sum(&simulated, name), sum(&recorded, name), "{name}");
        assert!(sum(&simulated, name) > 0, "{name}");
    }
    let compiler = simulated[9].parts.iter().find(|row| row.name == "compiler").unwrap();
    assert_eq!((compiler.kind, compiler.threads), (Kind::Set, Some(4)));
}
