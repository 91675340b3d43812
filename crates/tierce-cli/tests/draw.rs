//! `tierce-draw` as a user calls it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// The description in the page.
fn described() -> &'static str {
    let page = include_str!("../../../docs/figures.md");
    page.split_once("```json\n").unwrap().1.split_once("```").unwrap().0
}

fn draw(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut draw = Command::new(env!("CARGO_BIN_EXE_tierce-draw"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _ = draw.stdin.take().unwrap().write_all(input.as_bytes());
    draw.wait_with_output().unwrap()
}

#[test]
fn the_figure_of_the_page() {
    let folder = folder("draw");
    std::fs::write(folder.join("figure.json"), described()).unwrap();
    for (name, begin) in [("a.svg", &b"<svg "[..]), ("a.pdf", b"%PDF-"), ("a.png", b"\x89PNG")] {
        let output = draw(&folder, &[name, "figure.json"], "");
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(draw(&folder, &["b", "-"], described()).status.code(), Some(2));
        let of_file = std::fs::read(folder.join(name)).unwrap();
        assert!(of_file.starts_with(begin) && of_file.len() > 5_000, "{name}");
        // The same from standard input.
        std::fs::remove_file(folder.join(name)).unwrap();
        assert_eq!(draw(&folder, &[name], described()).status.code(), Some(0));
        assert!(std::fs::read(folder.join(name)).unwrap() == of_file, "{name}");
    }
    let svg = std::fs::read_to_string(folder.join("a.svg")).unwrap();
    for words in [">round robin</text>", ">first miss</text>", ">0.75</text>"] {
        assert!(svg.contains(words), "{words}");
    }
}

#[test]
fn what_cannot_be_drawn() {
    let folder = folder("undrawn");
    let changed = |from: &str, to: &str| {
        let text = described().replace(from, to);
        assert_ne!(text, described());
        text
    };
    for (name, input, said) in [
        ("a.gif", described().to_string(), "picture_is_svg_pdf_or_png: a.gif, bound .svg, .pdf or .png"),
        ("no/a.svg", described().to_string(), "cannot write no/a.svg"),
        ("a.svg", "{".into(), "figure_is_json: -: not the description of a figure: EOF"),
        ("a.svg", changed("\"title\"", "\"titel\""), "unknown field `titel`"),
        (
            "a.svg",
            changed("\"width\": 760", "\"width\": 7600"),
            "width_within_range: 7600, bound 100 to 4000 pixels",
        ),
        (
            "a.svg",
            changed("\"height\": 200", "\"height\": 2"),
            "height_within_range: panel 1 of row 1: 2, bound 10",
        ),
        (
            "a.svg",
            changed("\"from\": 1,", "\"from\": 0,"),
            "logarithm_is_of_positive_numbers: panel 1 of row 1: y from 0 to 100",
        ),
    ] {
        let output = draw(&folder, &[name], &input);
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}: {words}");
        assert!(words.starts_with("tierce-draw: ") && words.contains(said), "{said}: {words}");
        assert!(!folder.join("a.svg").exists());
    }
    let output = draw(&folder, &["a.svg", "missing.json"], "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("missing.json"));
}
