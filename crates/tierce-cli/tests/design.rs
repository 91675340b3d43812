//! `tierce design` as a user calls it.

use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

const MEDIA_PLAYER: &str = include_str!("../../../examples/media-player.csv");

fn design(table: &str, arguments: &[&str]) -> Output {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("tierce-design-{}-{number}.csv", std::process::id()));
    std::fs::write(&file, table).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tierce"));
    let output = command.args(["design", "server"]).args(arguments).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn frontier_of_the_media_player() {
    let periods = "1ms,2ms,3ms,4ms,5ms,5.5ms,5.75ms,6ms,6.25ms,7ms";
    let output = design(MEDIA_PLAYER, &["--policy", "rm", "--json", "--periods", periods]);
    assert_eq!(output.status.code(), Some(0));
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let points = value["frontier"].as_array().unwrap();
    let budgets: Vec<_> =
        points.iter().map(|point| point["budget_ns"].as_u64().unwrap().div_ceil(1_000)).collect();
    assert_eq!(budgets, [242, 484, 726, 1_000, 1_211, 1_334, 1_392, 1_500, 1_750, 2_500]);
    assert_eq!(
        (&value["knee"]["period_ns"], &value["knee"]["budget_ns"]),
        (&6_000_000.into(), &1_500_000.into())
    );
    assert_eq!(value["best"]["period_ns"], 5_750_000);
    let output =
        design(MEDIA_PLAYER, &["--policy", "rm", "--json", "--periods", periods, "--switch-cost", "2ms"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["best"]["period_ns"], 6_000_000);
}

#[test]
fn a_table_and_a_picture() {
    let picture = std::env::temp_dir().join(format!("tierce-design-{}.svg", std::process::id()));
    let output = design(MEDIA_PLAYER, &["--policy", "edf", "--plot", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(shown.contains("         6ms         1.5ms    25.000 %       25.084 %  knee\n"), "{shown}");
    assert_eq!(shown.lines().count(), 103);
    let svg = std::fs::read_to_string(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(svg.starts_with("<svg ") && svg.contains("1.5ms / 6ms") && svg.ends_with("</svg>\n"), "{svg}");

    // the same as PNG, by the name's ending
    let picture = picture.with_extension("png");
    let output = design(MEDIA_PLAYER, &["--policy", "edf", "--plot", picture.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let png = std::fs::read(&picture).unwrap();
    std::fs::remove_file(&picture).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.len() > 10_000, "{}", png.len());
    assert_eq!(png[16..20], [0, 0, 5, 240], "1520 wide");
}

#[test]
fn what_needs_more_than_a_cpu_is_1() {
    let output = design("name,work,period,deadline\na,3,10,4\nb,3,10,5\n", &["--policy", "dm"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("on a whole CPU either"));
}

#[test]
fn bad_input_is_2() {
    for (arguments, expected) in [
        (&["--policy", "fifo"][..], "invalid value 'fifo'"),
        (
            &["--policy", "rm", "--periods", "0ms"],
            "time_must_be_positive: a period is a time: 0ms, bound above 0",
        ),
        (&["--policy", "rm", "--periods", "-1ms,2ms"], ": -1ms, bound above 0"),
        (&["--policy", "rm", "--switch-cost", "-1us"], ": -1us, bound 0 or more"),
        (&["--policy", "rm", "--periods", "1ms,2x"], "unit_must_exist"),
        (
            &["--policy", "rm", "--plot", "frontier.bmp"],
            "picture_is_svg_pdf_or_png: frontier.bmp, bound .svg, .pdf or .png",
        ),
        (&["--policy", "rm", "--plot", "frontier"], "picture_is_svg_pdf_or_png: frontier, bound"),
        (
            &["--policy", "rm", "--plot", "no/such/folder/frontier.png"],
            "cannot write no/such/folder/frontier.png",
        ),
    ] {
        let output = design(MEDIA_PLAYER, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(expected), "{arguments:?}: {}", text(&output.stderr));
    }
    let output = design("name,work\n", &["--policy", "rm"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("column_must_be_there"));
}
